//! Lives under filebench: they end, repeat themselves, and their times are those of the dies.

use flashyard_applications::filebench::PersonalityName;
use flashyard_ftl::ScoreWeights;
use flashyard_lives::cvss::{
    Below, CvssFigures, DegradeRule, Design, DeviceConfig, FilebenchConfig, FilebenchLife, FilebenchLoad, HostConfig,
};
use flashyard_nand::{EccStrength, ErrorRates, RetryRule, WearModel};
use flashyard_units::SimSpan;

fn config(design: Design, name: PersonalityName) -> FilebenchConfig {
    let wear = WearModel {
        rates: ErrorRates::TLC_2018_AT_300,
        ecc: EccStrength { bits_per_4_kib: 50 },
        rule: RetryRule::ByErases,
        retention_days: 0.0,
    };
    FilebenchConfig {
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
        host: HostConfig { memory_bytes: 4 << 30, dirty_share: 0.1, request_us: 5.0 },
        below: Below::PUBLISHED,
        load: FilebenchLoad { name, pages: 20_000, run: SimSpan::from_ms(200), every_pages: 1_000_000 },
        seed: 3,
    }
}

/// A life of some runs.
fn live(config: FilebenchConfig, runs: usize) -> CvssFigures {
    let mut left = runs;
    let mut life = FilebenchLife::new(config).expect("it is valid");
    life.live(&mut |_| {
        left -= 1;
        left > 0
    })
    .expect("the drive obeys")
}

#[test]
fn a_new_drive_retries_nothing_and_an_old_one_does() {
    for name in [PersonalityName::Fileserver, PersonalityName::Varmail, PersonalityName::Netsfs] {
        let figures = live(config(Design::Traditional, name), 12);
        let (first, last) = (&figures.samples[0], &figures.samples[figures.samples.len() - 1]);
        assert_eq!((first.timing.delayed, first.timing.blocked, first.retried), (0.0, 0.0, 0.0), "{name:?}");
        assert!(first.timing.requests_per_second > 0.0 && first.timing.operation_mean_us >= 5.0, "{first:?}");
        // 12 million pages are some 90 erases and more: a retry or two for each read.
        assert!(last.timing.delayed > 0.0, "{name:?}: {last:?}");
        // A server that waits for its next round has a retry of its own to wait for, and hardly one of collection before it.
        let blocked = last.timing.blocked;
        assert!(if name == PersonalityName::Netsfs { blocked < 0.05 } else { blocked > 0.0 }, "{name:?}: {last:?}");
        assert!(last.retries_mean > 0.9, "{name:?}: {last:?}");
        assert!(figures.retries_per_read() > figures.retries_mean(), "{name:?}: collection reads as well");
        assert!(last.timing.operation_mean_us >= first.timing.operation_mean_us, "{name:?}: {last:?} {first:?}");
    }
}

#[test]
fn the_same_life_gives_the_same_figures() {
    let run = || live(config(Design::Artifact, PersonalityName::Varmail), 3);
    assert_eq!(run(), run());
}

#[test]
fn forced_discards_leave_less_dead_data_in_the_drive() {
    let kept = |design| {
        let figures = live(config(design, PersonalityName::Fileserver), 3);
        figures.samples[figures.samples.len() - 1].misjudged
    };
    let (forced, idle) = (kept(Design::Artifact), kept(Design::Traditional));
    assert!(forced < idle - 0.2, "{forced} with forced discards, {idle} without");
}
