//! The measure of a processor's load where drives compare each other: in descriptors, in the trigger's question whether
//! a drive is busy, in lender choice, and in the balance law.
//!
//! - `utilization`: the busy share of the cores. A tenth of a small processor and a tenth of a large one look alike,
//!   and so do a queue of one and a queue of a hundred at 100 %.
//! - `queue-depth`: the commands that a further one would wait behind, and itself.
//! - `waiting-work`: how long a further command would take: the work that waits, in the time of all cores at their
//!   clock, and its own time on one of them. What is shortest is best ("shortest expected delay"), and a large
//!   processor may have a long queue.
//!
//! The means of a period come from Little's law: time waited by the jobs of the period over its length. What a drive
//! compares with itself (when to stop lending and borrowing) stays its utilization.
//!
//! In a descriptor's amount each side has 16 bits, unsigned, saturating: utilization in steps of 1/65535, commands in
//! steps of 1/16 (up to 4095), waiting work in steps of 100 ns (up to 6.55 ms). In this crate the three are shares of
//! these full scales, 0 to 1.
//!
//! Source: [P] sheet xbof §3.10 names queue depth for unlike drives; encodings, thresholds and waiting work are ours.

use super::balance::{Weights, redirect_share, share_of_ratio};
use super::reading::DriveReading;
use flashyard_units::{Named, SimSpan};

/// Measure of a processor's load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Indicator {
    /// Busy share.
    Utilization,
    /// Commands that wait.
    QueueDepth,
    /// Time that the waiting work takes.
    WaitingWork,
}

/// Commands at full scale: 65535 sixteenths.
const DEPTH_FULL: f64 = 65_535.0 / 16.0;

/// Waiting work at full scale.
const WORK_FULL: SimSpan = SimSpan::from_ns(6_553_500);

/// Waiting commands above which a processor is busy: what three cores have at the published watermark of 75 %, in the
/// closed form for exponential times (M/M/3: 1.70). [D]
const DEPTH_BUSY: f64 = 1.7;

/// Waiting work above which it is busy: the same 1.7 commands of 64 KiB, 23 us each on one of three cores. [D]
const WORK_BUSY: SimSpan = SimSpan::from_us(13);

/// The least difference that the field shows: nothing is less loaded than this.
const LEAST: f64 = 1.0 / 65_535.0;

impl Named for Indicator {
    const ALL: &'static [Self] = &[Self::Utilization, Self::QueueDepth, Self::WaitingWork];

    fn name(self) -> &'static str {
        match self {
            Self::Utilization => "utilization",
            Self::QueueDepth => "queue-depth",
            Self::WaitingWork => "waiting-work",
        }
    }
}

impl Indicator {
    /// The value that a drive writes into descriptors: a share of the full scale, 0 to 1.
    pub fn amount(self, reading: &DriveReading) -> f64 {
        match self {
            Self::Utilization => reading.processor,
            Self::QueueDepth => ((reading.waiting + 1.0) / DEPTH_FULL).min(1.0),
            Self::WaitingWork => (backlog(reading) + reading.service).ratio_of(WORK_FULL).min(1.0),
        }
    }

    /// Whether a drive is too busy to lend: by utilization, above `watermark`. A drive that `borrows` counts all that its
    /// cores do.
    pub(super) fn is_busy(self, reading: &DriveReading, borrows: bool, watermark: f64) -> bool {
        match self {
            Self::Utilization => {
                let own = if borrows { reading.processor } else { reading.processor_own };
                own > watermark
            }
            Self::QueueDepth => reading.waiting > DEPTH_BUSY && serves_itself(reading, borrows),
            Self::WaitingWork => backlog(reading) > WORK_BUSY && serves_itself(reading, borrows),
        }
    }

    /// The balance law's share of commands to redirect, from the amounts of both sides.
    pub(super) fn share(self, lender: f64, borrower: f64, weights: &Weights) -> f64 {
        match self {
            Self::Utilization => redirect_share(lender, borrower, weights),
            // An amount counts the command itself, so an idle lender's is not zero and needs no floor but the field's.
            Self::QueueDepth | Self::WaitingWork => share_of_ratio(lender.max(LEAST) / borrower.max(LEAST), weights),
        }
    }
}

/// Waiting work in the time of all cores.
fn backlog(reading: &DriveReading) -> SimSpan {
    let picoseconds = reading.service.as_ps() as f64 * reading.waiting / f64::from(reading.cores.max(1));
    SimSpan::from_ps(picoseconds as u64)
}

/// Whether what waits may be the drive's own: others' commands do not make a lender a borrower.
fn serves_itself(reading: &DriveReading, borrows: bool) -> bool {
    borrows || reading.processor_own > 0.5 * reading.processor
}

#[cfg(test)]
mod tests {
    use super::super::Descriptor;
    use super::*;

    const EQUAL: Weights = Weights { lender_total: 1, shadow: 1, borrower_bound: 1, borrower_total: 1 };

    /// Commands of 64 KiB on `cores` cores; three of 1 GHz take 23 us each.
    fn reading(processor: f64, waiting: f64, service_us: u64, cores: u32) -> DriveReading {
        let service = SimSpan::from_us(service_us);
        DriveReading { processor, processor_own: processor, waiting, service, cores, ..Default::default() }
    }

    #[test]
    fn utilization_prefers_the_slow_lender_and_waiting_work_the_fast_one() {
        let slow = reading(0.3, 0.1, 92, 1);
        let fast = reading(0.5, 0.2, 8, 8);
        let least = |indicator: Indicator| indicator.amount(&slow) < indicator.amount(&fast);
        assert!(least(Indicator::Utilization), "30 % against 50 %");
        assert!(least(Indicator::QueueDepth), "1.1 against 1.2 commands");
        assert!(!least(Indicator::WaitingWork), "101 us against 8 us");
    }

    #[test]
    fn a_saturated_borrower_gives_more_to_the_lender_that_is_sooner_done() {
        let borrower = reading(1.0, 60.0, 23, 3);
        let share = |indicator: Indicator, lender: &DriveReading| {
            indicator.share(indicator.amount(lender), indicator.amount(&borrower), &EQUAL)
        };
        let (slow, fast) = (reading(0.9, 8.0, 92, 1), reading(0.9, 8.0, 8, 8));
        for indicator in [Indicator::Utilization, Indicator::QueueDepth] {
            let difference = share(indicator, &slow) - share(indicator, &fast);
            assert!(difference.abs() < 1e-12, "{indicator:?} sees no difference");
        }
        // 460 + 23 us at the borrower; 736 + 92 us at the slow lender, 8 + 8 us at the fast one.
        assert!((share(Indicator::WaitingWork, &slow) - 483.0 / (483.0 + 828.0)).abs() < 1e-6);
        assert!((share(Indicator::WaitingWork, &fast) - 483.0 / (483.0 + 16.0)).abs() < 1e-6);
    }

    #[test]
    fn the_field_saturates_and_resolves_as_documented() {
        let through = |indicator: Indicator, reading: &DriveReading| {
            let word = Descriptor::INVALID.with_lender_utilization(indicator.amount(reading));
            word.amount() & 0xFFFF
        };
        assert_eq!(through(Indicator::QueueDepth, &reading(1.0, 9.0, 23, 3)), 160);
        assert_eq!(through(Indicator::QueueDepth, &reading(1.0, 5000.0, 23, 3)), 65_535);
        assert_eq!(through(Indicator::WaitingWork, &reading(1.0, 60.0, 23, 3)), 4830);
        assert_eq!(through(Indicator::WaitingWork, &reading(1.0, 5000.0, 23, 3)), 65_535);
        assert_eq!(through(Indicator::Utilization, &reading(0.5, 0.0, 23, 3)), 32_768);
    }

    #[test]
    fn a_busy_drive_is_one_where_commands_wait_for_its_own_work() {
        let busy = |indicator: Indicator, reading: &DriveReading| indicator.is_busy(reading, false, 0.75);
        // Eight fast cores at 90 % with half a command waiting: nothing to gain from lenders.
        let fast = reading(0.9, 0.5, 8, 8);
        assert!(busy(Indicator::Utilization, &fast));
        assert!(!busy(Indicator::QueueDepth, &fast) && !busy(Indicator::WaitingWork, &fast));
        for &indicator in Indicator::ALL {
            assert!(busy(indicator, &reading(1.0, 30.0, 23, 3)));
            let lending = DriveReading { processor_own: 0.1, ..reading(1.0, 30.0, 23, 3) };
            assert!(!busy(indicator, &lending), "what waits is what it was lent for");
        }
    }
}
