//! The study as charts: misses, double reads by SRAM, and the time that an index may take.

use super::numbers::PROGRAMS;
use super::runs::{GinkgoRecord, GinkgoRun, SRAM_KIB, TierRecord, of};
use crate::tiered::TierKind;
use flashyard_report::{Bar, Chart, ChartAxis, ChartSection, ChartSeries, Comparison, bar_panels};
use flashyard_units::Named;

type Records = [(GinkgoRun, GinkgoRecord)];

/// Times of an index, in ns. [A] around the 5 ns of the article
const INDEX_NS: [f64; 5] = [0.0, 2.0, 5.0, 10.0, 20.0];

pub(super) fn sections(records: &Records, _: &[Comparison]) -> Vec<ChartSection> {
    vec![misses(records), double_reads(records), latency(records), pages(records)]
}

fn found(records: &Records, run: GinkgoRun) -> Option<&GinkgoRecord> {
    records.iter().find(|entry| entry.0 == run).map(|entry| &entry.1)
}

/// A bar for each program and tier, in panels by what passes to the tiers.
fn bars(records: &Records, value: impl Fn(&GinkgoRecord, &TierRecord) -> f64) -> Vec<Bar> {
    let mut bars = Vec::new();
    for (panel, with) in [("behind caches", true), ("all accesses", false)] {
        for program in PROGRAMS {
            let run = if with { of(program) } else { of(program).unfiltered() };
            let Some(record) = found(records, run) else { continue };
            bars.extend(record.tiers.iter().map(|tier| Bar {
                panel: panel.to_owned(),
                category: program.to_owned(),
                series: tier.tier.clone(),
                value: value(record, tier),
            }));
        }
    }
    bars
}

fn misses(records: &Records) -> ChartSection {
    let bars = bars(records, |_, tier| tier.miss_percent() / 100.0);
    ChartSection::choice(
        "misses",
        "How many accesses does CXL memory answer?",
        "Shares of accesses whose block was in no line of DRAM, first touches among them.".to_owned(),
        "Accesses",
        bar_panels("Miss ratio", &ChartAxis::new("misses", "share"), &bars),
    )
}

fn double_reads(records: &Records) -> ChartSection {
    let sizes = SRAM_KIB.iter().map(|kib| format!("{kib} KiB")).collect::<Vec<_>>();
    let series = |(program, tier): (&str, TierKind)| {
        let record = records.iter().find(|(run, _)| *run == of_name(program));
        let values = record.map_or_else(Vec::new, |(_, record)| record.tier(tier).double_by_sram.clone());
        ChartSeries::of_categories(&format!("{program}, {}", tier.name()), values.into_iter().map(Some))
    };
    let tiers = [TierKind::Unison, TierKind::Ginkgo];
    let all = PROGRAMS.iter().take(2).flat_map(|program| tiers.map(|tier| (*program, tier)));
    let axis = ChartAxis::new("double reads", "%");
    let chart = Chart::bars("Accesses that read DRAM once more for metadata", axis, sizes, all.map(series).collect());
    let finding = "SRAM is named by its size in the article, and scaled with the data.".to_owned();
    ChartSection::of("sram", "How much SRAM does metadata need?", finding, vec![chart])
}

fn of_name(program: &str) -> GinkgoRun {
    PROGRAMS.into_iter().find(|name| *name == program).map_or_else(|| of(PROGRAMS[0]), of)
}

fn latency(records: &Records) -> ChartSection {
    let names: Vec<String> = PROGRAMS.iter().map(|&program| program.to_owned()).collect();
    let series = |tier: TierKind| {
        let mean = |&program: &&'static str| found(records, of(program)).map(|record| record.tier(tier).serial_ns);
        ChartSeries::of_categories(tier.name(), PROGRAMS.iter().map(mean).collect::<Vec<_>>())
    };
    let means = Chart::bars(
        "Mean latency",
        ChartAxis::new("latency", "ns"),
        names,
        TierKind::ALL.iter().map(|&tier| series(tier)).collect(),
    );
    let times = INDEX_NS.iter().map(|time| format!("{time} ns")).collect();
    let by_time = |(program, tier): (&'static str, TierKind)| {
        let values = INDEX_NS.map(|time| {
            let record = found(records, of(program))?;
            Some(record.tier(tier).with_index(time) / record.tier(TierKind::Alloy).serial_ns)
        });
        ChartSeries::of_categories(&format!("{program}, {}", tier.name()), values)
    };
    let learned = [TierKind::Ginkgo, TierKind::GinkgoRank];
    let all = PROGRAMS.into_iter().take(2).flat_map(|program| learned.map(|tier| (program, tier)));
    let index = Chart::bars(
        "Latency with an index that takes time",
        ChartAxis::near("latency", "of the direct map"),
        times,
        all.map(by_time).collect(),
    );
    let finding = "A miss looks in DRAM first; the direct map and sets of ways need no computation.".to_owned();
    ChartSection::of("latency", "What does a learned index gain, and what may it cost?", finding, vec![means, index])
}

fn pages(records: &Records) -> ChartSection {
    let names: Vec<String> = PROGRAMS.iter().map(|&program| program.to_owned()).collect();
    let bloat = |(name, of_which): (&str, usize)| {
        let values = PROGRAMS.iter().map(|&program| found(records, of(program)).map(|record| record.bloat[of_which]));
        ChartSeries::of_categories(name, values.collect::<Vec<_>>())
    };
    let axis = ChartAxis::new("memory", "times touched blocks");
    let chart = Chart::bars("Memory in touched pages", axis, names, [("4 KiB", 0), ("2 MiB", 1)].map(bloat).into());
    let finding = "Pages have blocks that are never touched; a direct map keeps lines for them.".to_owned();
    ChartSection::of("pages", "How much of a page is touched?", finding, vec![chart])
}
