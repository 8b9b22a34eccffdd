//! Parameters of harvesting.

use super::balance::{BalanceRule, Weights};
use super::choice::LenderChoice;
use super::indicator::Indicator;
use super::scan::ScanOrder;
use super::sensing::Sensing;
use flashyard_units::SimSpan;

/// Parameters of XBOF's harvesting. Defaults are those of the sheet, §4.2 and §3.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HarvestConfig {
    /// Whether processors are lent.
    pub processors: bool,
    /// Whether mapping memory is lent.
    pub memory: bool,
    /// Monitor, descriptor and host refresh period. [P]
    pub period: SimSpan,
    /// Measure of a processor's load, in descriptors and in the trigger.
    pub indicator: Indicator,
    /// Utilization above which processor or data-end is busy. [P]
    pub watermark: f64,
    /// Estimated own utilization below which borrowing stops. [A] hysteresis
    pub stop_borrowing_below: f64,
    /// Data-end utilization above which borrowing cannot help any more. [A] hysteresis
    pub data_end_saturated: f64,
    /// Utilization above which lending stops: of own commands at the first sample, or of all with `counts_lent`, for `samples` in
    /// a row. [A] hysteresis
    pub stop_lending_above: f64,
    /// Whether a drive that asks whether it may lend counts what its cores do for borrowers, as a counter of busy clocks does. \[P\]
    /// §4.2: the monitor polls the processor's PMU. Its own commands alone decide whether it borrows.
    pub counts_lent: bool,
    /// Samples in a row that a condition must hold. [A]
    pub samples: u32,
    /// Processor descriptors each lender has, and shadow queue pairs: how many borrowers it can serve. [A]
    pub processor_offers: u32,
    /// Memory descriptors each lender has, which lend equal parts of its spare segments. With one, a borrower takes
    /// all of it, more than its target asks for; what more of them change is in scenarios/xbof/README.md, row 34. [A]
    pub memory_offers: u32,
    /// Periods that a lender waits for the borrower to let go of what it has withdrawn. [A] sheet xbof §3.9
    pub withdraw_periods: u32,
    /// Lenders a borrower takes at most.
    pub lenders_max: u32,
    /// Which of the processors on offer a borrower takes. Of mapping memory it takes offers of the
    /// lender that has most.
    pub lender_choice: LenderChoice,
    /// The peers whose tables a borrower reads.
    pub scan: ScanOrder,
    /// Drives under one leaf switch: drives of neighbouring numbers share one.
    pub leaf_drives: u32,
    /// How the driver balances.
    pub balance: BalanceRule,
    /// Weights of the balance law. [A]
    pub weights: Weights,
    /// Whether a lender gives its shadow queue the low weight of `weights` only while it has commands of its own, and equal weight
    /// while it has none: in its queues, and so in the published law.
    pub reserves: bool,
    /// Step towards the rule's share each period; the literal rule takes whole steps. [A]
    pub damping: f64,
    /// Age and noise of utilizations between the monitors and the driver.
    pub sensing: Sensing,
    /// How much lending may raise the p99 of a lender's own commands, as a share of it; `None` lets it cost what it
    /// costs.
    pub lender_p99_cap: Option<f64>,
    /// Seed of the random choices.
    pub seed: u64,
    /// Translation pages a segment holds: 2 MiB of 4 KiB pages. [P]
    pub pages_per_segment: u32,
    /// Redo records that the log page of a segment holds: 4 KiB of 8 bytes. [P] [A]
    pub log_records: u32,
    /// Miss ratio above which mapping memory is borrowed, and below which the borrower's prediction must bring it. [P]
    pub target_miss_ratio: f64,
    /// Rise of the predicted miss ratio that makes a segment worth keeping. [A]
    pub spare_miss_ratio: f64,
    /// Accesses a miss ratio needs before it counts. [A]
    pub accesses_min: u64,
    /// Host time for the balance law, each command. [P]
    pub host_cost: SimSpan,
    /// Agent time to take and unwrap one DMA or flash operation. [P]
    pub agent_cost: SimSpan,
    /// Time a reader holds the lock of a translation page of a shared map, and its core is busy with it. [A] sheet xbof §9.9
    pub read_lock: SimSpan,
    /// That of a writer. [A] sheet xbof §9.9
    pub write_lock: SimSpan,
    /// Redo-log commit of a mapping update in a borrowed segment. [P]
    pub log_commit: SimSpan,
    /// Whether borrowed memory is warm at once, as after a long run, instead of filling with time.
    pub warm_memory: bool,
}

impl HarvestConfig {
    /// Weights of the balance law beside a lender that has had commands of its own in the last period, or none.
    ///
    /// Source: \[P\] §4.4, a lender "can assign the shadow SQ with a low weight if it wants to minimize the performance
    /// impact on the lender's own I/O".
    pub(super) fn weights_beside(&self, has_own: bool) -> Weights {
        if self.reserves && !has_own { self.weights.equal() } else { self.weights }
    }

    /// Weight of a shadow queue where the lender's own queue has [`own_weight`](Self::own_weight).
    pub fn shadow_weight(&self, has_own: bool) -> u32 {
        if self.reserves && !has_own { self.own_weight() } else { self.weights.shadow }
    }

    /// Weight of a drive's own queue.
    pub fn own_weight(&self) -> u32 {
        self.weights.lender_total.saturating_sub(self.weights.shadow).max(1)
    }

    /// The index of memory descriptor `number` in a table.
    pub(super) fn memory_index(&self, number: u16) -> u16 {
        self.processor_offers as u16 + number
    }
}

impl Default for HarvestConfig {
    fn default() -> Self {
        Self {
            processors: true,
            memory: true,
            period: SimSpan::from_ms(10),
            indicator: Indicator::Utilization,
            watermark: 0.75,
            stop_borrowing_below: 0.65,
            data_end_saturated: 0.95,
            stop_lending_above: 0.80,
            counts_lent: false,
            samples: 2,
            processor_offers: 1,
            memory_offers: 1,
            withdraw_periods: 3,
            lenders_max: 4,
            lender_choice: LenderChoice::LeastLoaded,
            scan: ScanOrder::All,
            leaf_drives: 32,
            balance: BalanceRule::Damped,
            weights: Weights { lender_total: 3, shadow: 1, borrower_bound: 1, borrower_total: 1 },
            reserves: false,
            damping: 0.5,
            sensing: Sensing::default(),
            lender_p99_cap: None,
            seed: 0,
            pages_per_segment: flashyard_ssd::SEGMENT_PAGES,
            log_records: flashyard_ssd::LOG_RECORDS,
            target_miss_ratio: 0.10,
            spare_miss_ratio: 0.001,
            accesses_min: 64,
            host_cost: SimSpan::from_ns(20),
            agent_cost: SimSpan::from_ps(114_200),
            read_lock: SimSpan::from_ns(100),
            write_lock: SimSpan::from_ns(200),
            log_commit: SimSpan::from_ps(321_900),
            warm_memory: true,
        }
    }
}
