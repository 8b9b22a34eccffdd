//! Beyond the source: several LATTEs on one drive, a scan beside a cache, and what each stack costs.

use super::numbers::database;
use super::runs::{FixedRule, Phase, Scan, StackRecord, StackRun, name_of};
use crate::stack::Stack;
use flashyard_cache::PolicyKind;
use flashyard_latte::CachePolicy;
use flashyard_report::{Chart, ChartAxis, ChartPanel, ChartSection, ChartSeries, factor_chart};
use flashyard_units::Named;

/// Virtual drives that share one drive. Source: \[P\] sheet alibaba-local-storage §2.6: one fast drive could be split among several.
const SHARERS: [u32; 4] = [1, 2, 4, 8];

/// Rules for writes whose ends are shared; none is the learned one.
const RULES: [Option<FixedRule>; 3] = [None, Some(FixedRule::Shortest), Some(FixedRule::Front)];

/// Policies that meet a scan.
const POLICIES: [CachePolicy; 5] = [
    CachePolicy::InMap,
    CachePolicy::Apart(PolicyKind::Lru),
    CachePolicy::Apart(PolicyKind::Fifo),
    CachePolicy::Apart(PolicyKind::Arc),
    CachePolicy::Apart(PolicyKind::WTinyLfu),
];

/// Reads of 4 KiB at depth 32 of so many LATTEs on one drive.
const fn reads_of(sharers: u32) -> StackRun {
    StackRun { shared: true, ..StackRun::new(Stack::Latte, sharers, true, 4, 32) }
}

/// Writes of 128 KiB at depth 16 of so many LATTEs on one drive.
const fn writes_of(sharers: u32, rule: Option<FixedRule>) -> StackRun {
    StackRun { shared: true, rule, ..StackRun::new(Stack::Latte, sharers, false, 128, 16) }
}

const fn scan(policy: CachePolicy, scans: bool) -> StackRun {
    StackRun { scan: Some(Scan { policy, scans }), ..StackRun::new(Stack::Latte, 1, true, 4, 32) }
}

/// Reads that keep a stack busy, of one job.
const fn busy(stack: Stack) -> StackRun {
    StackRun::new(stack, 1, true, 4, 128).of_one_job()
}

/// The runs that are drawn.
pub(super) fn drawn() -> Vec<StackRun> {
    let writes = SHARERS.iter().flat_map(|&sharers| RULES.map(|rule| writes_of(sharers, rule)));
    let scans = POLICIES.iter().flat_map(|&policy| [scan(policy, false), scan(policy, true)]);
    SHARERS
        .map(reads_of)
        .into_iter()
        .chain(OF_DATABASES.iter().flat_map(|&stack| Phase::ALL.map(|phase| database(stack, phase))))
        .chain(writes)
        .chain(scans)
        .chain(Stack::LOCAL.iter().map(|&stack| busy(stack)))
        .collect()
}

/// Stacks that a database was measured on. Source: \[P\] figure 19.
const OF_DATABASES: [Stack; 5] = [Stack::Espresso, Stack::Doppio, Stack::Ristretto, Stack::Ebsx, Stack::Latte];

fn of<'a>(records: &'a [(StackRun, StackRecord)], wanted: &StackRun) -> Option<&'a StackRecord> {
    records.iter().find(|(run, _)| run == wanted).map(|(_, record)| record)
}

pub(super) fn sections(records: &[(StackRun, StackRecord)]) -> Vec<ChartSection> {
    vec![shared(records), scans(records), databases(records), costs(records)]
}

/// Rates and latencies of each of several LATTEs on one drive.
fn shared(records: &[(StackRun, StackRecord)]) -> ChartSection {
    let reads = |sharers: u32| Some((f64::from(sharers), of(records, &reads_of(sharers))?.mean_us));
    let writes = |rule: Option<FixedRule>| {
        let found = |sharers: u32| {
            let record = of(records, &writes_of(sharers, rule))?;
            Some((f64::from(sharers), 1e9 * record.gigabytes_per_second / f64::from(sharers)))
        };
        (rule.map_or("learned", FixedRule::name).to_owned(), SHARERS.into_iter().filter_map(found).collect())
    };
    let sharers = "LATTEs on one drive";
    let charts = vec![
        factor_chart("Writes of each", sharers, ChartAxis::new("rate", "B/s"), &RULES.map(writes)),
        factor_chart(
            "Reads, mean latency",
            sharers,
            ChartAxis::new("latency", "µs"),
            &[("three of four hit".to_owned(), SHARERS.into_iter().filter_map(reads).collect())],
        ),
    ];
    let finding = "Each LATTE has a network volume of its own; writes are of 128 KiB at depth 16, reads of 4 KiB at depth 32. A rule \
                   that compares both ends may move all writes to the network volumes and stay there, for it remembers the drive as \
                   it was when all wrote to it. The learned rule explores. Reads that hit have no choice: they wait for the drive."
        .to_owned();
    let panels = vec![ChartPanel { name: String::new(), charts }];
    ChartSection::choice("shared", "What does each of several LATTEs get of one drive?", finding, "", panels)
}

/// Reads that hit, beside a scan and without one.
fn scans(records: &[(StackRun, StackRecord)]) -> ChartSection {
    let names = POLICIES.map(|policy| name_of(policy).to_owned()).to_vec();
    let bar = |name: &str, scans: bool| {
        let found = POLICIES.map(|policy| of(records, &scan(policy, scans)).map(|record| record.first_stream[0]));
        ChartSeries::of_categories(name, found)
    };
    let series = vec![bar("alone", false), bar("beside a scan", true)];
    let charts = vec![Chart::bars("Reads of few blocks, mean latency", ChartAxis::new("latency", "µs"), names, series)];
    let finding = "32 reads of 4 KiB in flight over 256 MiB, nine of ten for blocks that fit the cache, beside a scan of 131 MB/s. \
                   Every policy admits a block at its second miss alone, and a scan meets each block once: it brings nothing in. \
                   First in, first out copies its hot blocks again and again, which costs more than the scan."
        .to_owned();
    let panels = vec![ChartPanel { name: String::new(), charts }];
    ChartSection::choice("scan", "What does a scan take from reads that hit?", finding, "", panels)
}

/// Requests of a recorded database by stack.
fn databases(records: &[(StackRun, StackRecord)]) -> ChartSection {
    let bar = |phase: Phase| {
        let found = OF_DATABASES.map(|stack| of(records, &database(stack, phase)));
        ChartSeries::of_categories(
            phase.name(),
            found.map(|record| record.map(|record| 1e3 * record.thousand_per_second)),
        )
    };
    let names = OF_DATABASES.map(|stack| stack.name().to_owned()).to_vec();
    let series = Phase::ALL.map(bar).to_vec();
    let charts = vec![Chart::bars("Requests of four connections", ChartAxis::new("rate", "1/s"), names, series)];
    let finding = "Four connections replay what sysbench made MariaDB ask for, and think as long as it did.".to_owned();
    let panels = vec![ChartPanel { name: String::new(), charts }];
    ChartSection::choice("database", "What does a database get of each stack?", finding, "", panels)
}

/// Price and cores of each stack, busy with reads.
fn costs(records: &[(StackRun, StackRecord)]) -> ChartSection {
    let bars = |caption: &str, axis: ChartAxis, figure: fn(&StackRecord) -> Option<f64>| {
        let known = |stack: &Stack| Some((*stack, figure(of(records, &busy(*stack))?)?));
        let (stacks, values): (Vec<_>, Vec<_>) = Stack::LOCAL.iter().filter_map(known).unzip();
        let names = stacks.into_iter().map(|stack| stack.name().to_owned()).collect();
        let series = ChartSeries::of_categories("", values.into_iter().map(Some));
        Chart::bars(caption, axis, names, vec![series])
    };
    let charts = vec![
        bars("Price, 4 TB", ChartAxis::new("price", "×"), |record| record.price),
        bars("Requests for the price", ChartAxis::new("rate", "1/s"), |record| {
            record.price.map(|price| 1e3 * record.thousand_per_second / price)
        }),
        bars("Cores of the host", ChartAxis::new("cores", ""), |record| Some(record.host_cores)),
    ];
    let finding = "One virtual drive busy with reads of 4 KiB of one job. Prices are in units of a drive behind ristretto; network \
                   volumes scale and are paid by what they do. Stacks without a published price are left out."
        .to_owned();
    let panels = vec![ChartPanel { name: String::new(), charts }];
    ChartSection::choice("costs", "What does each stack cost?", finding, "", panels)
}
