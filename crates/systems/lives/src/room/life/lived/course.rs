//! Follows a life, so that its course can be shown.

use super::record::sample;
use crate::lifetime::{Life, LifeConfig};
use flashyard_describe::Scenario;
use flashyard_describe::WearSection;
use flashyard_nand::{RetryRule, WearModel};
use flashyard_report::{LifeCourse, LifeMoment, LifeReads};
use std::collections::BTreeMap;

/// Moments that are kept, at most; at least half as many of a life that is looked at more often. [A] a few for each
/// pixel of a chart would be too many, one for ten pixels too few
const MOMENTS_MAX: usize = 200;

/// Looks at a life from time to time and keeps moments that are evenly apart, however long the life becomes.
pub(super) struct Follower {
    wear: WearModel,
    errors: String,
    endurance: Option<u32>,
    /// Looks for each moment kept.
    every: u64,
    looks: u64,
    moments: Vec<LifeMoment>,
}

impl Follower {
    /// Follows the lifetime of `config`, whose reads err as the drive of the scenario says.
    ///
    /// A drive without `[drive.wear]` has the usual chip, stretched to the erases that it is made for.
    pub(super) fn new(scenario: &Scenario, config: &LifeConfig, wear: Option<WearModel>) -> Self {
        let endurance = config.ftl.endurance.unwrap_or(0).max(1);
        let source = if scenario.drive.wear.is_some() { "[drive.wear]" } else { "the usual chip" };
        let wear = wear.unwrap_or_else(|| WearSection::usual(endurance));
        let rule = match wear.rule {
            RetryRule::Halving => "halved by each retry",
            RetryRule::ByErases => "a retry for each 50 erases",
        };
        let at_end = 100.0 * wear.rate(endurance, 0);
        let errors = format!(
            "{source}: {:.2} % wrong bits when new, {at_end:.2} % after {endurance} erases; {} of 4 KiB corrected, {rule}",
            100.0 * wear.rate(0, 0),
            wear.ecc.bits_per_4_kib
        );
        Self { wear, errors, endurance: config.ftl.retire_at, every: 1, looks: 0, moments: Vec::new() }
    }

    /// Looks at the life, which has gone on a step.
    pub(super) fn look(&mut self, life: &Life) {
        if self.looks.is_multiple_of(self.every) {
            if self.moments.len() == MOMENTS_MAX {
                // Every second one, the first among them; MOMENTS_MAX is even, so this look would be kept as well.
                let mut number = 0_u32;
                self.moments.retain(|_| {
                    number += 1;
                    number % 2 == 1
                });
                self.every *= 2;
            }
            self.moments.push(moment(life, &self.wear));
        }
        self.looks += 1;
    }

    /// The course of the life, which has ended.
    pub(super) fn finish(mut self, life: &Life) -> LifeCourse {
        if self.moments.last().is_none_or(|last| last.sample.host_slots != life.host_slots()) {
            self.moments.push(moment(life, &self.wear));
        }
        LifeCourse {
            drive_bytes: u64::from(life.drive_slots()) * u64::from(flashyard_flash::SLOT_BYTES),
            endurance: self.endurance,
            errors: self.errors,
            moments: self.moments,
        }
    }
}

fn moment(life: &Life, wear: &WearModel) -> LifeMoment {
    let ftl = life.ftl();
    let mut counts = BTreeMap::new();
    // Slots of data by the erases of where they lie.
    let mut data: BTreeMap<u32, u64> = BTreeMap::new();
    for (erases, valid) in ftl.erase_counts().zip(ftl.valid_counts()) {
        *counts.entry(erases).or_insert(0) += 1;
        if valid > 0 {
            *data.entry(erases).or_insert(0) += u64::from(valid);
        }
    }
    let layout = ftl.layout();
    LifeMoment {
        sample: sample(&life.now()),
        usable_slots: u64::from(layout.superblocks - ftl.retired_superblocks())
            * u64::from(layout.slots_per_superblock),
        erase_counts: counts.into_iter().collect(),
        reads: reads(&data, wear),
    }
}

/// Errors and retries of reads; `data` counts slots by the erases of their flash.
fn reads(data: &BTreeMap<u32, u64>, wear: &WearModel) -> LifeReads {
    let all = data.values().sum::<u64>().max(1) as f64;
    let mut found = LifeReads::default();
    for (&erases, &slots) in data {
        let (rate, retries, share) = (wear.rate(erases, 0), wear.retries(erases, 0), slots as f64 / all);
        found.error_rate_mean += share * rate;
        found.error_rate_max = found.error_rate_max.max(rate);
        found.retries_mean += share * f64::from(retries);
        if retries > 0 {
            found.retried_share += share;
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::super::super::LIVES;
    use super::super::age;
    use super::*;
    use flashyard_describe::LifeStop;
    use flashyard_describe::NoFiles;

    const AGEING: &str = include_str!("../../../../../../../scenarios/wear-leveling/scenario.toml");

    fn course(settings: &[&str], stop: LifeStop) -> LifeCourse {
        let small = ["drive.blocks_per_plane=120", "drive.pages_per_block=32", "life.endurance=60"];
        let settings: Vec<String> = small.iter().chain(settings).map(|&setting| setting.to_owned()).collect();
        let scenario =
            LIVES.resolve(AGEING, "wear-leveling", &settings, &NoFiles).expect("the scenario is good").scenario;
        let aged = age(&scenario, stop, &NoFiles, &mut |_| true).expect("it lives").expect("nobody stopped it");
        assert_eq!(aged.course.moments.last().expect("there is an end").sample, aged.record.last);
        aged.course
    }

    /// Distances between moments but the last, in slots of the host.
    fn distances(course: &LifeCourse) -> Vec<u64> {
        let moments = &course.moments[..course.moments.len() - 1];
        moments.windows(2).map(|pair| pair[1].sample.host_slots - pair[0].sample.host_slots).collect()
    }

    #[test]
    fn a_life_of_any_length_has_some_hundred_moments_that_are_evenly_apart() {
        for drive_writes in [Some(2.0), Some(20.0), None] {
            let course = course(&["drive.wear_leveling=pwl(50)"], LifeStop { drive_writes, ..LifeStop::default() });
            let count = course.moments.len();
            assert!((75..=MOMENTS_MAX + 1).contains(&count), "{drive_writes:?}: {count}");
            let distances = distances(&course);
            let (least, most) = (distances.iter().min().expect("some"), distances.iter().max().expect("some"));
            // A request may end a step late.
            assert!(most - least <= 600, "{drive_writes:?}: {least} to {most}");
            assert_eq!(course.moments[0].sample.host_slots, 0);
        }
    }

    #[test]
    fn reads_err_more_and_more_and_superblocks_are_all_counted() {
        let course = course(&[], LifeStop::default());
        let rates: Vec<f64> = course.moments.iter().map(|moment| moment.reads.error_rate_mean).collect();
        assert!(rates.first() < rates.last(), "{rates:?}");
        let last = course.moments.last().expect("there is an end");
        assert!(last.reads.retries_mean > 1.0 && last.reads.error_rate_max < 0.07, "{:?}", last.reads);
        for moment in &course.moments {
            assert_eq!(moment.erase_counts.iter().map(|&(_, superblocks)| superblocks).sum::<u32>(), 120);
        }
        assert!(last.usable_bytes() < course.moments[0].usable_bytes());
    }

    #[test]
    fn a_life_in_fast_forward_has_a_course_too_and_its_amplification_is_that_of_what_was_simulated() {
        let settings = ["life.period_drive_writes=0.1", "drive.wear_leveling=pwl(50)"];
        let full = course(&settings, LifeStop::default());
        let fast = course(&settings, LifeStop { acceleration: Some(2.0), ..LifeStop::default() });
        let mean = |course: &LifeCourse| {
            let last = course.moments.last().expect("there is an end").sample;
            last.moved_slots as f64 / last.simulated_slots() as f64
        };
        assert!(fast.moments.last().expect("there is an end").sample.skipped_slots > 0);
        assert!((mean(&fast) / mean(&full) - 1.0).abs() < 0.2, "{} and {}", mean(&fast), mean(&full));
    }

    #[test]
    fn data_in_worn_flash_weighs_by_its_slots() {
        let wear = WearSection::usual(300);
        let found = reads(&BTreeMap::from([(0, 300), (300, 100)]), &wear);
        assert!((found.retried_share - 0.25).abs() < 1e-12);
        assert!((found.retries_mean - 0.25 * f64::from(wear.retries(300, 0))).abs() < 1e-12);
        assert_eq!(reads(&BTreeMap::new(), &wear), LifeReads::default());
    }
}
