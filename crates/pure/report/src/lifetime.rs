//! Lives of drives: a record of each, and tables of them.

use crate::fitted::right;
use crate::table::table;
use comfy_table::Cell;
use serde::{Deserialize, Serialize};

/// Bytes of a slot, the unit of writing here.
pub(crate) const SLOT_BYTES: u64 = 4096;

/// One finished life, or part of one. Slots are of 4 KiB, counted since preconditioning.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LifeRecord {
    /// Name of the life.
    pub name: String,
    /// Cause of its end; absent when the drive was not dead.
    pub death: Option<String>,
    /// Slots exported when new: one drive write.
    pub drive_slots: u32,
    /// The drive at the end.
    pub last: LifeSample,
    /// The drive from time to time.
    pub samples: Vec<LifeSample>,
    /// Erase counts of the superblocks at the end: the 0th to the 100th percentile.
    pub erase_percentiles: Vec<u32>,
    /// Share of the superblocks above 1,200 erases.
    pub above_1200: f64,
    /// Share of the moves to the most erased superblock that came within twice the protection of the one before; absent
    /// without old block protection, and where there was no second move.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reentered_soon: Option<f64>,
}

/// A drive at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct LifeSample {
    /// Slots the host wrote.
    pub host_slots: u64,
    /// Those that fast-forward ageing passed over: nothing else is counted of them.
    #[serde(default)]
    pub skipped_slots: u64,
    /// Slots that garbage collection moved.
    pub moved_slots: u64,
    /// Slots that wear leveling moved.
    pub leveled_slots: u64,
    /// Superblocks retired.
    pub retired: u32,
    /// Slots exported.
    pub logical_slots: u32,
    /// Slots that the file system relocated.
    pub relocated_slots: u64,
    /// Mean erase count.
    pub erases_mean: f64,
    /// Standard deviation of the erase counts.
    pub erases_deviation: f64,
    /// Least erase count.
    pub erases_min: u32,
    /// Greatest erase count.
    pub erases_max: u32,
}

impl LifeSample {
    /// Slots of the host that were written one by one.
    pub fn simulated_slots(&self) -> u64 {
        self.host_slots.saturating_sub(self.skipped_slots)
    }

    /// Bytes that the host wrote.
    pub fn host_bytes(&self) -> f64 {
        (self.host_slots * SLOT_BYTES) as f64
    }
}

impl LifeRecord {
    /// Host writes in whole drives.
    pub fn drive_writes(&self) -> f64 {
        self.last.host_slots as f64 / f64::from(self.drive_slots)
    }

    /// Slots moved by garbage collection for each slot of the host that was simulated.
    pub fn reclaim_share(&self) -> f64 {
        self.last.moved_slots as f64 / self.last.simulated_slots().max(1) as f64
    }

    /// Slots moved by wear leveling for each slot of the host that was simulated.
    pub fn leveling_share(&self) -> f64 {
        self.last.leveled_slots as f64 / self.last.simulated_slots().max(1) as f64
    }

    /// Drive writes and the slots that wear leveling moved for each slot of the host, sample by sample.
    pub fn leveling_by_time(&self) -> Vec<(f64, f64)> {
        let mut before = (0, 0);
        let share = |sample: &LifeSample| {
            let (host, leveled) = (sample.simulated_slots() - before.0, sample.leveled_slots - before.1);
            before = (sample.simulated_slots(), sample.leveled_slots);
            (sample.host_slots as f64 / f64::from(self.drive_slots), leveled as f64 / host.max(1) as f64)
        };
        self.samples.iter().map(share).collect()
    }
}

/// One row a life.
pub fn lives_table(lives: &[LifeRecord]) -> String {
    let mut table = table(&[
        "life",
        "host writes\ndrives",
        "TiB",
        "moved by\nreclaim",
        "moved by\nleveling",
        "erases\nmean",
        "deviation",
        "p1",
        "p50",
        "p99",
        "max",
        "retired",
        "capacity\n%",
        "end",
    ]);
    for life in lives {
        let percentile = |rank: usize| right(life.erase_percentiles.get(rank).map_or(String::new(), u32::to_string));
        table.add_row(vec![
            Cell::new(&life.name),
            right(format!("{:.1}", life.drive_writes())),
            right(format!("{:.2}", (life.last.host_slots * SLOT_BYTES) as f64 / (1_u64 << 40) as f64)),
            right(format!("{:.2}", life.reclaim_share())),
            right(format!("{:.2}", life.leveling_share())),
            right(format!("{:.1}", life.last.erases_mean)),
            right(format!("{:.1}", life.last.erases_deviation)),
            percentile(1),
            percentile(50),
            percentile(99),
            right(life.last.erases_max.to_string()),
            right(life.last.retired.to_string()),
            right(format!("{:.1}", 100.0 * f64::from(life.last.logical_slots) / f64::from(life.drive_slots))),
            Cell::new(life.death.as_deref().unwrap_or("alive")),
        ]);
    }
    table.to_string()
}

/// One row a moment of a life.
pub fn life_table(life: &LifeRecord) -> String {
    let mut table = table(&[
        "host writes\ndrives",
        "TiB",
        "moved by\nreclaim",
        "moved by\nleveling",
        "erases\nmean",
        "deviation",
        "min",
        "max",
        "retired",
        "capacity\n%",
    ]);
    let (mut before, mut host_before) = ((0, 0, 0), 0);
    for sample in life.samples.iter().chain([&life.last]) {
        if sample.host_slots == host_before {
            continue;
        }
        let simulated = sample.simulated_slots() - before.0;
        let share = |slots: u64| match simulated {
            0 => right("–".to_owned()),
            _ => right(format!("{:.2}", slots as f64 / simulated as f64)),
        };
        table.add_row(vec![
            right(format!("{:.1}", sample.host_slots as f64 / f64::from(life.drive_slots))),
            right(format!("{:.2}", (sample.host_slots * SLOT_BYTES) as f64 / (1_u64 << 40) as f64)),
            share(sample.moved_slots - before.1),
            share(sample.leveled_slots - before.2),
            right(format!("{:.1}", sample.erases_mean)),
            right(format!("{:.1}", sample.erases_deviation)),
            right(sample.erases_min.to_string()),
            right(sample.erases_max.to_string()),
            right(sample.retired.to_string()),
            right(format!("{:.1}", 100.0 * f64::from(sample.logical_slots) / f64::from(life.drive_slots))),
        ]);
        before = (sample.simulated_slots(), sample.moved_slots, sample.leveled_slots);
        host_before = sample.host_slots;
    }
    table.to_string()
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    fn sample(host_slots: u64, leveled_slots: u64) -> LifeSample {
        LifeSample {
            host_slots,
            skipped_slots: 0,
            moved_slots: 2 * host_slots,
            leveled_slots,
            retired: 0,
            logical_slots: 100,
            relocated_slots: 0,
            erases_mean: 1.5,
            erases_deviation: 0.5,
            erases_min: 1,
            erases_max: 2,
        }
    }

    pub(crate) fn life() -> LifeRecord {
        LifeRecord {
            name: "Fix_NoWL".to_owned(),
            death: None,
            drive_slots: 100,
            last: sample(250, 150),
            samples: vec![sample(100, 0), sample(200, 100)],
            erase_percentiles: vec![1; 101],
            above_1200: 0.0,
            reentered_soon: None,
        }
    }

    #[test]
    fn shares_of_wear_leveling_are_those_of_each_interval() {
        assert_eq!(life().leveling_by_time(), [(1.0, 0.0), (2.0, 1.0)]);
        assert!((life().leveling_share() - 0.6).abs() < 1e-12);
        assert!((life().drive_writes() - 2.5).abs() < 1e-12);
    }

    #[test]
    fn slots_that_were_passed_over_do_not_make_amplification_smaller() {
        let mut life = life();
        for sample in life.samples.iter_mut().chain([&mut life.last]) {
            sample.skipped_slots = sample.host_slots / 2;
        }
        assert_eq!(life.leveling_by_time(), [(1.0, 0.0), (2.0, 2.0)]);
        assert!((life.leveling_share() - 1.2).abs() < 1e-12);
        assert!((life.reclaim_share() - 4.0).abs() < 1e-12);
        // An interval that was passed over whole has no amplification.
        life.samples[1].skipped_slots += 50;
        assert!(life_table(&life).contains('–'));
    }

    #[test]
    fn a_record_reads_back_as_it_was_written() {
        let text = serde_json::to_string(&life()).expect("it is plain data");
        assert_eq!(serde_json::from_str::<LifeRecord>(&text).expect("it was just written"), life());
    }

    #[test]
    fn tables_have_a_row_a_life_and_a_row_a_moment() {
        assert!(lives_table(&[life()]).contains("Fix_NoWL"));
        assert_eq!(life_table(&life()).matches("100.0").count(), 3);
    }
}
