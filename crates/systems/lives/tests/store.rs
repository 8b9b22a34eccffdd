//! Lives under a store: every record is found, reads of a worn drive are retried, and merges do not hold the client up.

use flashyard_ftl::ScoreWeights;
use flashyard_lives::cvss::{
    CvssFigures, Design, DeviceConfig, HostConfig, MixName, StoreConfig, StoreLife, StoreLoad,
};
use flashyard_nand::{EccStrength, ErrorRates, RetryRule, WearModel};
use flashyard_units::SimSpan;

fn config(design: Design, mix: MixName) -> StoreConfig {
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
            requirement: 0.8,
            weights: ScoreWeights::default(),
            exchanges_read_hot: false,
            wear,
        },
        host: HostConfig { memory_bytes: 2 << 30, dirty_share: 0.1, request_us: 5.0 },
        load: StoreLoad { mix, records: 10_000_000, run: SimSpan::from_ms(100), every_pages: 60_000 },
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
    let figures = live(config(Design::Artifact, MixName::YcsbA), 4);
    for sample in &figures.samples {
        assert_eq!((sample.retried, sample.timing.delayed), (0.0, Some(0.0)));
        assert!(sample.timing.read_mean_us >= 50.0, "{sample:?}");
        // A request is at least the client's own 5 us, and most reads of a popular record are in the page cache.
        assert!((5.0..2000.0).contains(&sample.timing.operation_mean_us), "{sample:?}");
    }
}

#[test]
fn the_same_life_gives_the_same_figures() {
    let run = || live(config(Design::Traditional, MixName::YcsbF), 2);
    assert_eq!(run(), run());
}
