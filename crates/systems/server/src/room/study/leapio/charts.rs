//! The study as charts: figure 6 along the depth, a search engine's reads by service, and what services cost where they run.

use super::numbers::{DEPTHS, search};
use super::runs::{LeapRecord, LeapRun, Services};
use crate::stack::Stack;
use flashyard_report::{Chart, ChartAxis, ChartPanel, ChartSection, ChartSeries, Comparison, factor_chart};
use flashyard_units::Named;

/// Stacks whose reads are drawn along the depth.
const ALONG: [Stack; 5] =
    [Stack::PassThrough, Stack::VirtualHost, Stack::LeapIo, Stack::LeapIoSoc, Stack::FullVirtualization];

/// Places at which a chain can run.
const PLACES: [Stack; 5] =
    [Stack::PassThrough, Stack::LeapIo, Stack::LeapIoSoc, Stack::LeapIoRemote, Stack::LeapIoRemoteSoc];

/// Lengths of chains.
const LENGTHS: [u32; 4] = [0, 1, 2, 3];

/// A search engine's reads, with the name of each line. Source: \[P\] figure 11.
const LINES: [(&str, LeapRun); 12] = [
    ("alone", search(Stack::LeapIo, false, Services::None)),
    ("beside batch", search(Stack::LeapIo, true, Services::None)),
    ("with priority", search(Stack::LeapIo, true, Services::Priority)),
    ("a version, alone", search(Stack::LeapIo, false, Services::Versions)),
    ("a version, beside batch", search(Stack::LeapIo, true, Services::Versions)),
    ("a version, with priority", search(Stack::LeapIo, true, Services::PriorityVersions)),
    ("remote, alone", search(Stack::LeapIoRemote, false, Services::None)),
    ("remote, beside batch", search(Stack::LeapIoRemote, true, Services::None)),
    ("remote, with priority", search(Stack::LeapIoRemote, true, Services::Priority)),
    ("two stripes, with priority", search(Stack::LeapIoRemote, true, Services::PriorityStripe)),
    ("two copies, with priority", search(Stack::LeapIoRemote, true, Services::PriorityMirror)),
    ("on a card, with priority", search(Stack::LeapIoSoc, true, Services::Priority)),
];

/// Reads at depth 32 and 256 through so many services.
fn placed(stack: Stack, services: u32, depth: u32) -> LeapRun {
    let chain = if services == 0 { Services::None } else { Services::Priorities(services) };
    LeapRun::reads(stack, depth).with(chain)
}

pub(super) fn drawn() -> Vec<LeapRun> {
    let along = ALONG.iter().flat_map(|&stack| DEPTHS.map(|depth| LeapRun::reads(stack, depth)));
    let places = PLACES.iter().flat_map(|&stack| {
        LENGTHS.iter().flat_map(move |&length| [placed(stack, length, 1), placed(stack, length, 256)])
    });
    along.chain(places).chain(LINES.map(|line| line.1)).collect()
}

fn of<'a>(records: &'a [(LeapRun, LeapRecord)], wanted: &LeapRun) -> Option<&'a LeapRecord> {
    records.iter().find(|(run, _)| run == wanted).map(|(_, record)| record)
}

pub(super) fn sections(records: &[(LeapRun, LeapRecord)], _: &[Comparison]) -> Vec<ChartSection> {
    vec![depths(records), lines(records), places(records), super::fleet::section()]
}

fn depths(records: &[(LeapRun, LeapRecord)]) -> ChartSection {
    let curves = |figure: fn(&LeapRecord) -> f64| {
        ALONG.map(|stack| {
            let point = |&depth: &u32| Some((f64::from(depth), figure(of(records, &LeapRun::reads(stack, depth))?)));
            (stack.name().to_owned(), DEPTHS.iter().filter_map(point).collect())
        })
    };
    let chart = |name: &str, axis: ChartAxis, figure: fn(&LeapRecord) -> f64| {
        factor_chart(name, "requests in flight", axis, &curves(figure))
    };
    let charts = vec![
        chart("Requests", ChartAxis::new("rate", "1/s"), |record| 1e3 * record.thousand_per_second),
        chart("Latency, mean", ChartAxis::new("latency", "µs"), |record| record.mean_us),
        chart("Latency, p99.9", ChartAxis::new("latency", "µs"), |record| record.percentiles_us[2]),
    ];
    let finding = "Reads of 4 KiB at random from one drive of this server.".to_owned();
    let panels = vec![ChartPanel { name: String::new(), charts }];
    ChartSection::choice("depth", "What does each way to a drive give at which depth?", finding, "", panels)
}

fn lines(records: &[(LeapRun, LeapRecord)]) -> ChartSection {
    let names = LINES.iter().map(|line| line.0.to_owned()).collect();
    let series = |name: &str, figure: fn(&LeapRecord) -> f64| {
        ChartSeries::of_categories(name, LINES.iter().map(|(_, run)| of(records, run).map(figure)))
    };
    let latency = vec![
        series("p50", |record| record.percentiles_us[0]),
        series("mean", |record| record.mean_us),
        series("p99", |record| record.percentiles_us[1]),
    ];
    let rates = vec![
        series("search", |record| 1e9 * record.gigabytes_per_second[0]),
        series("batch", |record| 1e9 * record.gigabytes_per_second[1]),
    ];
    let charts = vec![
        Chart::bars(
            "Latency of lookups",
            ChartAxis::new("latency", "µs"),
            LINES.map(|line| line.0.to_owned()).into(),
            latency,
        ),
        Chart::bars("Bytes", ChartAxis::new("rate", "B/s"), names, rates),
    ];
    let finding =
        "Eight lookups of an index in flight, alone and beside 32 requests of 64 KiB of batch work.".to_owned();
    let panels = vec![ChartPanel { name: String::new(), charts }];
    ChartSection::choice("search", "What do services do for a search engine?", finding, "", panels)
}

/// Costs of a chain at each place: latency alone, and the greatest rate.
fn places(records: &[(LeapRun, LeapRecord)]) -> ChartSection {
    let curves = |depth: u32, figure: fn(&LeapRecord) -> f64| {
        PLACES.map(|stack| {
            let point = |&length: &u32| Some((f64::from(length), figure(of(records, &placed(stack, length, depth))?)));
            (stack.name().to_owned(), LENGTHS.iter().filter_map(point).collect())
        })
    };
    let charts = vec![
        factor_chart(
            "Latency of a lone read",
            "services",
            ChartAxis::new("latency", "µs"),
            &curves(1, |record| record.mean_us),
        ),
        factor_chart(
            "Greatest rate",
            "services",
            ChartAxis::new("rate", "1/s"),
            &curves(256, |record| 1e3 * record.thousand_per_second),
        ),
    ];
    let finding = "Services that touch no data, 150 ns of a core of the host each and a third more on a card, of which every runtime \
                   has one core; those of pass-through run in the guest, on eight."
        .to_owned();
    let panels = vec![ChartPanel { name: String::new(), charts }];
    ChartSection::choice("places", "Where do services pay?", finding, "", panels)
}
