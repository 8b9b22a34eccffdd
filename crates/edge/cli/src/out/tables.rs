//! A report as tables. Designs, drives and intervals follow each other as in the report.

use anyhow::{Context, Result};
use flashyard_columns::Values;
use flashyard_report::{
    DesignDetail, DriveResult, DriveTimeline, ExplorerPoint, Front, LatencyBucket, LentResource, ReportDocument,
    SplitRow, Timeline,
};
use std::borrow::Cow;

/// Columns by name.
pub(super) type Table<'a> = Vec<(Cow<'a, str>, Values)>;

/// A row for each interval of each drive.
pub(super) fn timeline(document: &ReportDocument) -> Table<'_> {
    let drives: Vec<(&DesignDetail, &DriveTimeline)> = document
        .details
        .iter()
        .flat_map(|detail| detail.timeline.drives.iter().map(move |drive| (detail, drive)))
        .collect();
    let numbers = |series: fn(&DriveTimeline) -> &Vec<f64>| {
        Values::F64(drives.iter().flat_map(|(_, drive)| series(drive)).copied().collect())
    };
    let maybe = |series: fn(&DriveTimeline) -> &Vec<Option<f64>>| {
        Values::OptionalF64(drives.iter().flat_map(|(_, drive)| series(drive)).copied().collect())
    };
    let names = |name: fn(&(&DesignDetail, &DriveTimeline)) -> String| {
        let intervals = |drive: &(&DesignDetail, _)| drive.0.timeline.begin_seconds.len();
        Values::Text(drives.iter().flat_map(|drive| std::iter::repeat_n(name(drive), intervals(drive))).collect())
    };
    let times = |times: fn(&Timeline) -> Vec<f64>| {
        Values::F64(drives.iter().flat_map(|(detail, _)| times(&detail.timeline)).collect())
    };
    vec![
        ("design".into(), names(|(detail, _)| detail.name.clone())),
        ("drive".into(), names(|(_, drive)| drive.name.clone())),
        ("begin_seconds".into(), times(|timeline| timeline.begin_seconds.clone())),
        ("end_seconds".into(), times(ends)),
        ("read_bytes_per_s".into(), numbers(|drive| &drive.read_bytes_per_s)),
        ("write_bytes_per_s".into(), numbers(|drive| &drive.write_bytes_per_s)),
        ("requests_per_s".into(), numbers(|drive| &drive.iops)),
        ("latency_mean_us".into(), maybe(|drive| &drive.latency_mean_us)),
        ("processor_busy_share".into(), numbers(|drive| &drive.processor_utilization)),
        ("lent_busy_share".into(), numbers(|drive| &drive.lent_utilization)),
        ("redirected_share".into(), numbers(|drive| &drive.redirected_share)),
        ("bus_busy_share".into(), numbers(|drive| &drive.bus_utilization)),
        ("die_busy_share".into(), numbers(|drive| &drive.die_utilization)),
        ("mapping_miss_ratio".into(), maybe(|drive| &drive.mapping_miss_ratio)),
        ("write_amplification_ratio".into(), maybe(|drive| &drive.write_amplification)),
    ]
}

/// The end of each interval: the begin of the next one.
fn ends(timeline: &Timeline) -> Vec<f64> {
    timeline
        .begin_seconds
        .iter()
        .skip(1)
        .copied()
        .chain([timeline.end_seconds])
        .take(timeline.begin_seconds.len())
        .collect()
}

/// A row for each bucket of each design.
pub(super) fn latency_histogram(document: &ReportDocument) -> Table<'_> {
    let buckets: Vec<(&DesignDetail, &LatencyBucket)> =
        document.details.iter().flat_map(|detail| detail.latency.iter().map(move |bucket| (detail, bucket))).collect();
    vec![
        ("design".into(), Values::Text(buckets.iter().map(|(detail, _)| detail.name.clone()).collect())),
        ("up_to_us".into(), Values::F64(buckets.iter().map(|(_, bucket)| bucket.up_to_us).collect())),
        ("requests".into(), Values::U64(buckets.iter().map(|(_, bucket)| bucket.requests).collect())),
    ]
}

/// A row for the mean and for each percentile of each design, with a column for each cause.
pub(super) fn latency_split(document: &ReportDocument) -> Table<'_> {
    let designs = document.report.designs.iter();
    let rows: Vec<(&str, &SplitRow)> =
        designs.flat_map(|design| design.latency_split.iter().map(move |row| (design.name.as_str(), row))).collect();
    let mut table: Table<'_> = vec![
        ("design".into(), Values::Text(rows.iter().map(|(design, _)| (*design).to_owned()).collect())),
        ("at".into(), Values::Text(rows.iter().map(|(_, row)| row.at.clone()).collect())),
        ("requests".into(), Values::U64(rows.iter().map(|(_, row)| row.requests).collect())),
        ("latency_us".into(), Values::F64(rows.iter().map(|(_, row)| row.latency_us).collect())),
    ];
    for (index, cause) in document.causes.iter().enumerate() {
        let parts = rows.iter().map(|(_, row)| row.parts_us[index]).collect();
        table.push((format!("{}_us", cause.key).into(), Values::F64(parts)));
    }
    table
}

/// A row for each interval of each loan.
///
/// Errors: a lender or borrower that is no drive of the design.
pub(super) fn lending(document: &ReportDocument) -> Result<Table<'_>> {
    let (mut texts, mut times) = ([const { Vec::new() }; 5], [const { Vec::new() }; 3]);
    for detail in &document.details {
        let drive = |index: u32| {
            let drive = detail.timeline.drives.get(index as usize);
            drive.with_context(|| format!("{}: drive {index} lends or borrows, but is not in the report", detail.name))
        };
        let ends = ends(&detail.timeline);
        for loan in &detail.lending {
            let (resource, unit) = match loan.resource {
                LentResource::Processor => ("processor", "cores"),
                LentResource::Memory => ("memory", "MiB"),
            };
            let (lender, borrower) = (&drive(loan.lender)?.name, &drive(loan.borrower)?.name);
            for ((begin, end), amount) in detail.timeline.begin_seconds.iter().zip(&ends).zip(&loan.amount) {
                for (column, text) in texts.iter_mut().zip([&detail.name, resource, lender, borrower, unit]) {
                    column.push(text.to_owned());
                }
                for (column, value) in times.iter_mut().zip([begin, end, amount]) {
                    column.push(*value);
                }
            }
        }
    }
    let [design, resource, lender, borrower, unit] = texts.map(Values::Text);
    let [begin, end, amount] = times.map(Values::F64);
    Ok(vec![
        ("design".into(), design),
        ("resource".into(), resource),
        ("lender".into(), lender),
        ("borrower".into(), borrower),
        ("begin_seconds".into(), begin),
        ("end_seconds".into(), end),
        ("amount".into(), amount),
        ("unit".into(), unit),
    ])
}

/// A row for each drive of each design.
pub(super) fn drives(document: &ReportDocument) -> Table<'_> {
    let designs = document.report.designs.iter();
    let rows: Vec<(&str, &DriveResult)> =
        designs.flat_map(|design| design.drives.iter().map(move |drive| (design.name.as_str(), drive))).collect();
    let count = |figure: fn(&DriveResult) -> u64| Values::U64(rows.iter().map(|(_, drive)| figure(drive)).collect());
    let number = |figure: fn(&DriveResult) -> f64| Values::F64(rows.iter().map(|(_, drive)| figure(drive)).collect());
    let maybe = |figure: fn(&DriveResult) -> Option<f64>| {
        Values::OptionalF64(rows.iter().map(|(_, drive)| figure(drive)).collect())
    };
    vec![
        ("design".into(), Values::Text(rows.iter().map(|(design, _)| (*design).to_owned()).collect())),
        ("drive".into(), Values::Text(rows.iter().map(|(_, drive)| drive.name.clone()).collect())),
        ("requests".into(), count(|drive| drive.ios)),
        ("read_bytes".into(), count(|drive| drive.read_bytes)),
        ("write_bytes".into(), count(|drive| drive.write_bytes)),
        ("throughput_bytes_per_s".into(), number(|drive| drive.throughput_bytes_per_s)),
        ("requests_per_s".into(), number(|drive| drive.iops)),
        ("latency_mean_us".into(), number(|drive| drive.latency_us.mean)),
        ("latency_p50_us".into(), number(|drive| drive.latency_us.p50)),
        ("latency_p99_us".into(), number(|drive| drive.latency_us.p99)),
        ("latency_p999_us".into(), number(|drive| drive.latency_us.p999)),
        ("latency_max_us".into(), number(|drive| drive.latency_us.max)),
        ("processor_busy_share".into(), number(|drive| drive.processor_utilization)),
        ("lent_busy_share".into(), number(|drive| drive.lent_utilization)),
        ("redirected_share".into(), number(|drive| drive.redirected_share)),
        ("redirected_swing".into(), number(|drive| drive.redirected_swing)),
        ("redirected_settled_seconds".into(), maybe(|drive| drive.redirected_settled_seconds)),
        ("flash_busy_share".into(), number(|drive| drive.flash_utilization)),
        ("mapping_miss_ratio".into(), number(|drive| drive.mapping_miss_ratio)),
        ("write_amplification_ratio".into(), number(|drive| drive.write_amplification)),
        ("energy_joules".into(), number(|drive| drive.energy_joules)),
        ("bom_dollars".into(), number(|drive| drive.bom_dollars)),
    ]
}

/// A row for each run of a sweep; none without one.
pub(super) fn explorer(document: &ReportDocument) -> Table<'_> {
    let points: &[ExplorerPoint] = document.report.explorer.as_ref().map_or(&[], |explorer| &explorer.points);
    let text = |figure: fn(&ExplorerPoint) -> String| Values::Text(points.iter().map(figure).collect());
    let number = |figure: fn(&ExplorerPoint) -> f64| Values::F64(points.iter().map(figure).collect());
    let maybe = |figure: fn(&ExplorerPoint) -> Option<f64>| Values::OptionalF64(points.iter().map(figure).collect());
    let mut table: Table<'_> = vec![
        ("run".into(), text(|point| point.name.clone())),
        ("design".into(), text(|point| point.equipment.design.clone())),
        ("load".into(), text(|point| point.equipment.load.join(", "))),
        (
            "computes_on_host".into(),
            Values::U32(points.iter().map(|point| point.equipment.computes_on_host.into()).collect()),
        ),
        ("cores".into(), Values::U32(points.iter().map(|point| point.equipment.cores).collect())),
        ("memory_share".into(), number(|point| point.equipment.memory_share)),
        ("lenders_per_busy".into(), number(|point| point.equipment.lenders_per_busy)),
        ("drive_dollars".into(), number(|point| point.drive_dollars)),
        ("jbof_dollars".into(), number(|point| point.jbof_dollars)),
        ("energy_joules".into(), number(|point| point.energy_joules)),
        ("energy_joules_per_gb".into(), maybe(|point| point.energy_joules_per_gb)),
        ("throughput_bytes_per_s".into(), number(|point| point.throughput_bytes_per_s)),
        ("latency_p99_us".into(), maybe(|point| point.latency_p99_us)),
    ];
    for front in Front::ALL {
        let members = points.iter().map(|point| u32::from(point.fronts.contains(&front))).collect();
        table.push((format!("on_front_{}", front.name()).into(), Values::U32(members)));
    }
    table
}
