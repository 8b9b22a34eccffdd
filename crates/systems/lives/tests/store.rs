//! Lives under a store: every record is found, reads of a worn drive are retried, and merges do not hold the client up.

use flashyard_ftl::ScoreWeights;
use flashyard_lives::cvss::{
    Below, CvssFigures, DegradeRule, Design, DeviceConfig, HostConfig, StoreConfig, StoreLife, StoreLoad,
};
use flashyard_nand::{EccStrength, ErrorRates, RetryRule, WearModel};
use flashyard_units::SimSpan;

fn config(design: Design, changes: f64) -> StoreConfig {
    let wear = WearModel {
        rates: ErrorRates::TLC_2018_AT_300,
        ecc: EccStrength { bits_per_4_kib: 50 },
        rule: RetryRule::ByErases,
        retention_days: 0.0,
    };
    StoreConfig {
        device: DeviceConfig {
            design,
            reliability: None,
            requirement: None,
            weights: ScoreWeights::default(),
            exchanges_read_hot: false,
            degraded_by: DegradeRule::Drive,
            pages_beyond: 0,
            wear,
        },
        host: HostConfig { memory_bytes: 2 << 30, dirty_share: 0.1, request_us: 5.0 },
        below: Below::PUBLISHED,
        load: StoreLoad {
            records: 10_000_000,
            record_bytes: 1024,
            gets: 0.5,
            changes,
            skew: 0.99,
            run: SimSpan::from_ms(100),
            every_pages: 60_000,
        },
        seed: 3,
    }
}

fn live(config: StoreConfig, stretches: usize) -> CvssFigures {
    let mut left = stretches;
    let mut life = StoreLife::new(config).expect("it is valid");
    life.live(&mut |_| {
        left -= 1;
        left > 0
    })
    .expect("every record is found")
}

#[test]
fn a_new_drive_serves_records_and_its_reads_take_a_sense() {
    let figures = live(config(Design::Artifact, 0.0), 4);
    for sample in &figures.samples {
        assert_eq!((sample.retried, sample.timing.delayed), (0.0, 0.0));
        assert!(sample.timing.read_mean_us >= 50.0, "{sample:?}");
        // A request is at least the client's own 5 us, and most reads of a popular record are in the page cache.
        assert!((5.0..2000.0).contains(&sample.timing.operation_mean_us), "{sample:?}");
    }
}

#[test]
fn the_same_life_gives_the_same_figures() {
    let run = || live(config(Design::Traditional, 0.5), 2);
    assert_eq!(run(), run());
}
