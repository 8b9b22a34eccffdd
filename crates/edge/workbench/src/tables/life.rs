//! The course of a life as tables.

use super::Table;
use flashyard_columns::Values;
use flashyard_report::{Amplification, LifeCourse, LifeMoment};

/// A row for each moment.
pub(super) fn moments(course: &LifeCourse) -> Table<'_> {
    let whole = |figure: fn(&LifeMoment) -> u64| Values::U64(course.moments.iter().map(figure).collect());
    let number = |figure: fn(&LifeMoment) -> f64| Values::F64(course.moments.iter().map(figure).collect());
    let amplifications = course.amplifications();
    let share = |figure: fn(&Amplification) -> f64| {
        Values::OptionalF64(amplifications.iter().map(|one| one.as_ref().map(figure)).collect())
    };
    vec![
        ("host_written_bytes".into(), number(|moment| moment.sample.host_bytes())),
        ("host_slots".into(), whole(|moment| moment.sample.host_slots)),
        ("skipped_slots".into(), whole(|moment| moment.sample.skipped_slots)),
        ("moved_slots".into(), whole(|moment| moment.sample.moved_slots)),
        ("leveled_slots".into(), whole(|moment| moment.sample.leveled_slots)),
        ("relocated_slots".into(), whole(|moment| moment.sample.relocated_slots)),
        ("write_amplification_ratio".into(), share(|one| one.total)),
        ("reclaim_ratio".into(), share(|one| one.reclaim)),
        ("leveling_ratio".into(), share(|one| one.leveling)),
        ("erases_mean".into(), number(|moment| moment.sample.erases_mean)),
        ("erases_deviation".into(), number(|moment| moment.sample.erases_deviation)),
        ("erases_min".into(), whole(|moment| moment.sample.erases_min.into())),
        ("erases_p1".into(), whole(|moment| moment.erases_at(1).into())),
        ("erases_p50".into(), whole(|moment| moment.erases_at(50).into())),
        ("erases_p99".into(), whole(|moment| moment.erases_at(99).into())),
        ("erases_max".into(), whole(|moment| moment.sample.erases_max.into())),
        ("raw_bit_error_rate_mean".into(), number(|moment| moment.reads.error_rate_mean)),
        ("raw_bit_error_rate_max".into(), number(|moment| moment.reads.error_rate_max)),
        ("retries_per_read_mean".into(), number(|moment| moment.reads.retries_mean)),
        ("retried_share".into(), number(|moment| moment.reads.retried_share)),
        ("exported_bytes".into(), whole(LifeMoment::exported_bytes)),
        ("usable_flash_bytes".into(), whole(LifeMoment::usable_bytes)),
        ("retired_superblocks".into(), whole(|moment| moment.sample.retired.into())),
    ]
}

/// A row for each number of erases that superblocks had at a moment.
pub(super) fn erase_counts(course: &LifeCourse) -> Table<'_> {
    let counts = || course.moments.iter().flat_map(|one| one.erase_counts.iter().map(move |count| (one, *count)));
    let column = |figure: fn((&LifeMoment, (u32, u32))) -> u64| Values::U64(counts().map(figure).collect());
    vec![
        ("host_written_bytes".into(), Values::F64(counts().map(|(moment, _)| moment.sample.host_bytes()).collect())),
        ("erases".into(), column(|(_, (erases, _))| erases.into())),
        ("superblocks".into(), column(|(_, (_, superblocks))| superblocks.into())),
    ]
}
