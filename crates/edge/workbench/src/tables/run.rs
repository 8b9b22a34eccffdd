//! A report as tables. Designs, drives and intervals follow each other as in the report.

use super::Table;
use crate::WorkbenchError;
use flashyard_columns::Values;
use flashyard_report::{
    Component, ComponentTimeline, DRIVE, DesignDetail, ExplorerPoint, Form, Front, LatencyBucket, LentResource, Metric,
    Part, ReportDocument, SplitRow, Timeline, Value,
};
use std::borrow::Cow;

/// A name and columns for each table that follows from declarations, kind by kind.
pub(super) fn declared(document: &ReportDocument) -> Vec<(&str, Table<'_>)> {
    let of_part = |part: &Part| {
        let timeline = (!(part.series)().is_empty()).then(|| (part.timeline, timeline(document, part)));
        timeline.into_iter().chain([(part.kind.plural, components(document, part))])
    };
    let parts = document.parts.iter().flat_map(of_part);
    parts.chain([("latency_split", latency_split(document))]).collect()
}

/// Values of a metric in one column.
fn column(metric: &Metric, values: Vec<Value>) -> (Cow<'static, str>, Values) {
    let numbers = || values.iter().map(|value| value.number());
    let values = match metric.form {
        Form::Count => {
            Values::U64(values.iter().map(|value| if let Value::Count(count) = value { *count } else { 0 }).collect())
        }
        Form::Number => Values::F64(numbers().map(|number| number.unwrap_or(f64::NAN)).collect()),
        Form::Maybe => Values::OptionalF64(numbers().collect()),
    };
    (metric.column_name(), values)
}

/// A row for each interval of each component of a kind.
fn timeline(document: &ReportDocument, part: &Part) -> Table<'static> {
    let all: Vec<(&DesignDetail, &ComponentTimeline)> = document
        .details
        .iter()
        .flat_map(|detail| detail.timeline.components.of(part.kind).iter().map(move |one| (detail, one)))
        .collect();
    let names = |name: fn(&(&DesignDetail, &ComponentTimeline)) -> String| {
        let intervals = |one: &(&DesignDetail, _)| one.0.timeline.begin_seconds.len();
        Values::Text(all.iter().flat_map(|one| std::iter::repeat_n(name(one), intervals(one))).collect())
    };
    let times = |times: fn(&Timeline) -> Vec<f64>| {
        Values::F64(all.iter().flat_map(|(detail, _)| times(&detail.timeline)).collect())
    };
    let series = |metric: &'static Metric| {
        column(metric, all.iter().flat_map(|(_, one)| one.of(metric)).map(|&value| value.into()).collect())
    };
    let mut columns: Table<'static> = vec![
        ("design".into(), names(|(detail, _)| detail.name.clone())),
        (part.kind.id.into(), names(|(_, one)| one.name.clone())),
        ("begin_seconds".into(), times(|timeline| timeline.begin_seconds.clone())),
        ("end_seconds".into(), times(ends)),
    ];
    columns.extend((part.series)().into_iter().map(series));
    columns
}

/// A row for each component of a kind of each design.
fn components(document: &ReportDocument, part: &Part) -> Table<'static> {
    let designs = document.report.designs.iter();
    let rows: Vec<(&str, &Component)> = designs
        .flat_map(|design| design.components.of(part.kind).iter().map(move |one| (design.name.as_str(), one)))
        .collect();
    let names = |name: fn(&(&str, &Component)) -> String| Values::Text(rows.iter().map(name).collect());
    let mut columns: Table<'static> = vec![
        ("design".into(), names(|(design, _)| (*design).to_owned())),
        (part.kind.id.into(), names(|(_, one)| one.name.clone())),
    ];
    let figures =
        |metric: &'static Metric| column(metric, rows.iter().map(|(_, one)| one.figures.get(metric)).collect());
    columns.extend((part.metrics)().into_iter().map(figures));
    columns
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
fn latency_split(document: &ReportDocument) -> Table<'static> {
    let designs = document.report.designs.iter();
    let rows: Vec<(&str, &SplitRow)> =
        designs.flat_map(|design| design.latency_split.iter().map(move |row| (design.name.as_str(), row))).collect();
    let text = |text: fn(&(&str, &SplitRow)) -> String| Values::Text(rows.iter().map(text).collect());
    let mut columns: Table<'static> = vec![
        ("design".into(), text(|(design, _)| (*design).to_owned())),
        ("at".into(), text(|(_, row)| row.at.clone())),
        ("requests".into(), Values::U64(rows.iter().map(|(_, row)| row.requests).collect())),
        ("latency_us".into(), Values::F64(rows.iter().map(|(_, row)| row.latency_us).collect())),
    ];
    columns.extend(document.causes.iter().enumerate().map(|(index, cause)| {
        let parts = rows.iter().map(|(_, row)| row.parts_us[index]).collect();
        (format!("{}_us", cause.key).into(), Values::F64(parts))
    }));
    columns
}

/// A row for each figure of each design under each seed, where several were run.
pub(super) fn seeds(document: &ReportDocument) -> Option<Table<'_>> {
    let seeds = document.report.seeds.as_ref()?;
    let (mut texts, mut numbers, mut values) = ([const { Vec::new() }; 2], Vec::new(), Vec::new());
    for design in &seeds.designs {
        for figure in &design.figures {
            for (seed, value) in seeds.seeds.iter().zip(&figure.values) {
                for (column, text) in texts.iter_mut().zip([&design.name, figure.key]) {
                    column.push(text.to_owned());
                }
                numbers.push(*seed);
                values.push(*value);
            }
        }
    }
    let [design, figure] = texts.map(Values::Text);
    Some(vec![
        ("design".into(), design),
        ("figure".into(), figure),
        ("seed".into(), Values::U64(numbers)),
        ("value".into(), Values::OptionalF64(values)),
    ])
}

/// A row for each interval of each loan.
///
/// Errors: a lender or borrower that is no drive of the design.
pub(super) fn lending(document: &ReportDocument) -> Result<Table<'_>, WorkbenchError> {
    let (mut texts, mut times) = ([const { Vec::new() }; 5], [const { Vec::new() }; 3]);
    for detail in &document.details {
        let drive = |index: u32| {
            let drive = detail.timeline.components.of(&DRIVE).get(index as usize);
            drive.ok_or_else(|| WorkbenchError::NoSuchDrive { design: detail.name.clone(), drive: index })
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
