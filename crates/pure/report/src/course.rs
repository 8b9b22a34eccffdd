//! The course of a life from new to its end: content of its page and its files.

use crate::lifetime::{LifeSample, SLOT_BYTES};

/// A life at moments that follow each other; the first is that of the new drive, the last its end.
#[derive(Clone, Debug, PartialEq)]
pub struct LifeCourse {
    /// Bytes exported when new.
    pub drive_bytes: u64,
    /// Erases that a superblock is made for, if that is known.
    pub endurance: Option<u32>,
    /// How reads err: the model and its parameters in words.
    pub errors: String,
    /// The moments.
    pub moments: Vec<LifeMoment>,
}

/// A drive at one moment of its life.
#[derive(Clone, Debug, PartialEq)]
pub struct LifeMoment {
    /// Counters and capacity.
    pub sample: LifeSample,
    /// Slots of superblocks that are not retired.
    pub usable_slots: u64,
    /// Erase counts and the superblocks with each, rising; retired ones count.
    pub erase_counts: Vec<(u32, u32)>,
    /// Reads at that moment.
    pub reads: LifeReads,
}

/// Errors and retries of reads that go to all data alike, with no reads before them.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct LifeReads {
    /// Raw bit error rate, mean over the data.
    pub error_rate_mean: f64,
    /// Raw bit error rate of the worst superblock with data.
    pub error_rate_max: f64,
    /// Retries of a read, mean over the data.
    pub retries_mean: f64,
    /// Share of the data that is retried at all.
    pub retried_share: f64,
}

/// Slots programmed between two moments for each slot of the host.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Amplification {
    /// For the host, by garbage collection and by wear leveling.
    pub total: f64,
    /// By garbage collection alone.
    pub reclaim: f64,
    /// By wear leveling alone.
    pub leveling: f64,
}

impl LifeCourse {
    /// Amplification since the moment before, for every moment; none for the first, and where nothing was simulated.
    pub fn amplifications(&self) -> Vec<Option<Amplification>> {
        let between = |pair: &[LifeMoment]| {
            let (before, after) = (&pair[0].sample, &pair[1].sample);
            let host = after.simulated_slots().checked_sub(before.simulated_slots()).filter(|&slots| slots > 0)? as f64;
            let reclaim = (after.moved_slots - before.moved_slots) as f64 / host;
            let leveling = (after.leveled_slots - before.leveled_slots) as f64 / host;
            Some(Amplification { total: 1.0 + reclaim + leveling, reclaim, leveling })
        };
        std::iter::once(None).chain(self.moments.windows(2).map(between)).collect()
    }

    /// Moments at even distances of host writes, at most `count`; the last is among them.
    pub fn evenly(&self, count: usize) -> Vec<&LifeMoment> {
        let Some(last) = self.moments.last() else { return Vec::new() };
        let written = last.sample.host_slots;
        let mut chosen: Vec<&LifeMoment> = Vec::new();
        for part in 1..=count as u64 {
            let wanted = written * part / count as u64;
            let from = self.moments.partition_point(|moment| moment.sample.host_slots < wanted);
            let moment = self.moments.get(from).unwrap_or(last);
            if chosen.last().is_none_or(|&before| !std::ptr::eq(before, moment)) {
                chosen.push(moment);
            }
        }
        chosen
    }
}

impl LifeMoment {
    /// Bytes exported.
    pub fn exported_bytes(&self) -> u64 {
        u64::from(self.sample.logical_slots) * SLOT_BYTES
    }

    /// Bytes of flash that is not retired.
    pub fn usable_bytes(&self) -> u64 {
        self.usable_slots * SLOT_BYTES
    }

    /// Erases that `percent` of the superblocks do not exceed.
    pub fn erases_at(&self, percent: u64) -> u32 {
        let all: u64 = self.erase_counts.iter().map(|&(_, superblocks)| u64::from(superblocks)).sum();
        let rank = (all * percent).div_ceil(100).max(1);
        let mut below = 0;
        let reached = self.erase_counts.iter().find(|&&(_, superblocks)| {
            below += u64::from(superblocks);
            below >= rank
        });
        reached.map_or(0, |&(erases, _)| erases)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A life of 40 moments; a tenth of the drive is written in each.
    pub(crate) fn course() -> LifeCourse {
        let moment = |number: u32| LifeMoment {
            sample: LifeSample {
                host_slots: u64::from(number) * 10,
                skipped_slots: 0,
                moved_slots: u64::from(number) * 5,
                leveled_slots: u64::from(number / 2) * 10,
                retired: number / 20,
                logical_slots: 100,
                relocated_slots: 0,
                erases_mean: f64::from(number),
                erases_deviation: 0.5,
                erases_min: number,
                erases_max: number + 1,
            },
            usable_slots: u64::from(120 - number / 20),
            erase_counts: vec![(number, 6), (number + 1, 4)],
            reads: LifeReads { error_rate_mean: 0.001, error_rate_max: 0.002, retries_mean: 0.5, retried_share: 0.5 },
        };
        LifeCourse {
            drive_bytes: 100 * SLOT_BYTES,
            endurance: Some(40),
            errors: "none".to_owned(),
            moments: (0..=40).map(moment).collect(),
        }
    }

    #[test]
    fn amplification_is_that_of_each_interval() {
        let found = course().amplifications();
        assert_eq!(found.len(), 41);
        assert_eq!(found[0], None);
        assert_eq!(found[1], Some(Amplification { total: 1.5, reclaim: 0.5, leveling: 0.0 }));
        assert_eq!(found[2], Some(Amplification { total: 2.5, reclaim: 0.5, leveling: 1.0 }));
    }

    #[test]
    fn an_interval_that_was_passed_over_has_no_amplification() {
        let mut course = course();
        for moment in &mut course.moments[1..] {
            moment.sample.skipped_slots = 10;
        }
        assert_eq!(course.amplifications()[1], None);
        assert!(course.amplifications()[2].is_some());
    }

    #[test]
    fn ten_moments_of_a_life_end_with_its_end() {
        let course = course();
        let chosen: Vec<u64> = course.evenly(10).iter().map(|moment| moment.sample.host_slots).collect();
        assert_eq!(chosen, (1..=10).map(|part| part * 40).collect::<Vec<_>>());
        let short = LifeCourse { moments: course.moments[..2].to_vec(), ..course };
        assert_eq!(short.evenly(10).len(), 1);
    }

    #[test]
    fn percentiles_of_erases_are_those_of_the_superblocks() {
        let moment = &course().moments[3];
        assert_eq!([0, 1, 60, 61, 100].map(|percent| moment.erases_at(percent)), [3, 3, 3, 4, 4]);
        assert_eq!(LifeMoment { erase_counts: Vec::new(), ..moment.clone() }.erases_at(50), 0);
    }
}
