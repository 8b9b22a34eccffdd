//! Lives under fio against closed forms and an independent simulation of the same rules: sheet cvss §8.

use flashyard_ftl::ScoreWeights;
use flashyard_lives::cvss::{
    Below, CvssError, CvssFigures, DegradeRule, Design, DeviceConfig, DiscardRule, FioConfig, FioLife, FioLoad,
    HostConfig, PAGE_BYTES, Placement, RAW_PAGES,
};
use flashyard_nand::{EccStrength, ErrorRates, RetryRule, WearModel};
use flashyard_units::SimSpan;

const IN_PLACE: Below = Below { placement: Placement::InPlace, discards: DiscardRule::Published };

fn config(design: Design, pages: u32, below: Below) -> FioConfig {
    FioConfig {
        device: DeviceConfig {
            design,
            reliability: None,
            requirement: None,
            weights: ScoreWeights::default(),
            exchanges_read_hot: false,
            degraded_by: DegradeRule::Drive,
            pages_beyond: 0,
            wear: WearModel {
                rates: ErrorRates::TLC_2018_AT_300,
                ecc: EccStrength::BITS_50,
                rule: RetryRule::ByErases,
                retention_days: 0.0,
            },
        },
        host: HostConfig { memory_bytes: 0, dirty_share: 0.1, request_us: 5.0 },
        below,
        load: FioLoad { pages, skew: 0.0, direct_depth: None, run: Some(SimSpan::from_ms(50)), every_pages: 238_419 },
        seed: 1,
    }
}

fn live(config: FioConfig) -> CvssFigures {
    FioLife::new(config).expect("it is valid").live(&mut |_| true).expect("the drive obeys")
}

/// Terabytes until a mean read is retried more than once, which is 0.8 of the first performance in the independent
/// simulation: it has no time.
fn retried_at_most_once(figures: &CvssFigures) -> f64 {
    let fresh = figures.samples.iter().take_while(|sample| sample.retries_mean <= 1.0);
    fresh.last().map_or(0.0, |sample| (sample.load_pages * PAGE_BYTES) as f64 / 1e12)
}

/// In place each pass overwrites what the one before wrote, in its order: whole superblocks die, nothing is moved, and what is read
/// lies where nothing wears.
#[test]
fn a_load_that_repeats_focuses_wear_as_the_closed_form_says() {
    let [fixed, variable] =
        [Design::Traditional, Design::Artifact].map(|design| live(config(design, 36_240, IN_PLACE)));
    // While the variable drive has spare flash to give up, nothing moves.
    let focused: Vec<f64> =
        variable.samples.iter().filter(|sample| sample.retired < 219).map(|sample| sample.amplification).collect();
    assert!(focused.len() > 50 && focused.iter().all(|&amplification| amplification < 1.001), "{focused:?}");
    // Programs of the fixed one are 300 erases of all flash, but for what is left when its last spare superblock retires. [A] 6 %
    let (all, programmed) = (300.0 * f64::from(RAW_PAGES), fixed.programmed_pages as f64);
    assert!((0.94..1.0).contains(&(programmed / all)), "{programmed} of {all} pages");
    // Nearly the 28.03 TB of ideal focusing, and the 15 TB of a simulation of the artifact's traditional drive without a file system. [A] a tenth
    let (fixed, variable) = (retried_at_most_once(&fixed), retried_at_most_once(&variable));
    assert!((13.5..16.5).contains(&fixed) && (25.0..30.0).contains(&variable), "{variable} and {fixed} TB");
}

/// Superblocks retired in the first sample of the degraded drive, if there is one; nothing sets it back in place.
fn degraded_at(figures: &CvssFigures) -> Option<u32> {
    let first = figures.samples.iter().position(|sample| sample.degraded)?;
    assert!(figures.samples[first..].iter().all(|sample| sample.degraded), "it stays degraded");
    Some(figures.samples[first].retired)
}

/// In place nothing is moved before, so that victims are empty and the share of what is left decides.
#[test]
fn a_drive_degrades_itself_at_three_quarters_and_its_manager_does_at_the_first_spare_share() {
    let pages = 60_000;
    let at = |degraded_by| {
        let base = config(Design::Artifact, pages, IN_PLACE);
        let device = DeviceConfig { degraded_by, ..base.device };
        degraded_at(&live(FioConfig { device, ..base })).expect("it gives up flash until it is degraded")
    };
    let left = |share: f64| 512 - (f64::from(pages) / share / 256.0) as u32;
    // Several superblocks may retire between two samples.
    let (itself, managed) = (at(DegradeRule::Drive), at(DegradeRule::Manager));
    assert!((left(0.75)..left(0.75) + 12).contains(&itself), "{itself} by {}", left(0.75));
    assert!((left(1.0 / 1.0737)..left(1.0 / 1.0737) + 12).contains(&managed), "{managed}");
}

#[test]
fn a_drive_whose_file_system_shrinks_keeps_its_data_to_the_end() {
    let figures = live(config(Design::Artifact, 30_000, Below::PUBLISHED));
    let samples = &figures.samples;
    assert!(samples.windows(2).all(|pair| pair[0].logical_pages >= pair[1].logical_pages), "it never grows");
    assert!(
        figures.reductions.0 > 20 && figures.remapped_pages.0 > 0 && figures.remapped_pages.1 > 0,
        "{:?} {:?}",
        figures.reductions,
        figures.remapped_pages
    );
    assert!(figures.death.is_some());
}

/// Wear leveling comes in waves, which one timed pass may miss; the mean of all passes has them.
#[test]
fn a_job_that_is_timed_from_end_to_end_has_all_its_time_in_its_samples() {
    let base = config(Design::Traditional, 36_240, IN_PLACE);
    let load = FioLoad { run: None, direct_depth: Some(128), every_pages: 100_000, ..base.load };
    let mut life = FioLife::new(FioConfig { load, ..base }).expect("it is valid");
    let mut left = 4;
    let figures = life.live(&mut |_| {
        left -= 1;
        left > 0
    });
    let samples = figures.expect("the drive obeys").samples;
    assert_eq!(samples.len(), 3);
    let mut before = samples[0].load_pages - 100_000;
    for sample in &samples {
        let pages = sample.load_pages - before;
        before = sample.load_pages;
        assert!((100_000..100_016).contains(&pages), "{pages}");
        // Half of the requests are writes of four pages, each of which counts for two erases; a program takes 500 us of a die.
        let seconds = pages as f64 / 2.0 * 4096.0 / sample.timing.written_bytes_per_second;
        let least = pages as f64 / 2.0 * 500e-6 / 64.0;
        assert!((least..1.3 * least).contains(&seconds), "{seconds} s, {least} for programs");
    }
}

#[test]
fn retirement_follows_rate_erases_or_requirement() {
    let at = |design, reliability, requirement| {
        let device = config(design, 64, IN_PLACE).device;
        DeviceConfig { reliability, requirement, ..device }.retires_at()
    };
    assert_eq!(at(Design::Traditional, Some(0.05), Some(0.8)), 300);
    assert_eq!([0.04, 0.05, 0.06].map(|rate| at(Design::Literal, Some(rate), None)), [239, 267, 293]);
    assert_eq!(at(Design::Artifact, None, None), 291);
    // One retry on average is allowed, two of a block: the third comes at 150 erases.
    assert_eq!([0.8, 1.0].map(|share| at(Design::Artifact, None, Some(share))), [150, 50]);
}

#[test]
fn numbers_outside_their_ranges_are_refused() {
    let valid = config(Design::Artifact, 4_000, Below::PUBLISHED);
    let refused = |config: FioConfig| FioLife::new(config).map(drop).expect_err("it is wrong").to_string();
    let mut wrong = valid;
    wrong.device.requirement = Some(0.0);
    assert!(refused(wrong).contains("requirement"));
    let mut wrong = valid;
    wrong.load.pages = 63;
    assert!(refused(wrong).contains("at least 64 pages"));
    for below in [Below::PUBLISHED, IN_PLACE] {
        let wrong = FioConfig { load: FioLoad { pages: 122_100, ..valid.load }, below, ..valid };
        assert!(matches!(FioLife::new(wrong).map(drop), Err(CvssError::Load { .. })));
    }
}

#[test]
fn the_same_life_gives_the_same_figures() {
    let run = || {
        let mut left = 3;
        let mut life = FioLife::new(config(Design::AutoStream, 10_000, Below::PUBLISHED)).expect("it is valid");
        life.live(&mut |_| {
            left -= 1;
            left > 0
        })
    };
    assert_eq!(run().expect("the drive obeys"), run().expect("the drive obeys"));
}
