//! Latencies, misses, double reads and metadata of tiers. Means are arithmetic, of one program each.

use super::runs::{GinkgoNumber, GinkgoRecord, GinkgoRun, TierRecord, of};
use crate::tiered::TierKind::{self, Alloy, Ginkgo, GinkgoMany, GinkgoRank, Ideal, Unison};
use flashyard_describe::reproduce::{Number, claim, percent_above};

/// The article's programs. \[P\] sheet micro-ginkgo §6
const BTREE: &str = "btree";
const PR: &str = "pagerank";
/// Of its motivation. [P] the article's text on Fig. 1(c)
const CC: &str = "cc";
/// Programs that stand for those of the motivation. \[A\]
pub(super) const PROGRAMS: [&str; 4] = [BTREE, PR, CC, "apex"];

/// Time of an index in the sensitivity test, in ns. \[P\] sheet §4
const INDEX_NS: f64 = 5.0;

/// Places of 64 and of 16 KiB among the sizes of SRAM. \[P\] sheet §4
const OF_64_KIB: usize = 4;
const OF_16_KIB: usize = 2;

/// DRAM of the article's BTree by bytes of a line, with four bytes of metadata, in MB. \[D\] sheet §4: 8 GB / 64 B x 4 B
const UNISON_METADATA_MB: f64 = (8_u64 * 1024 / 64 * 4) as f64;

/// Huge pages of the article's BTree by those of its PR. \[D\] sheet §4: 32 GB and 16 GB
const BTREE_PAGES_BY_PR: f64 = 2.0;

fn mean(values: impl Iterator<Item = f64>) -> f64 {
    let (sum, count) = values.fold((0.0, 0.0), |(sum, count), value| (sum + value, count + 1.0));
    sum / count
}

/// By how many percent `value` is below `against`.
fn percent_below(value: f64, against: f64) -> f64 {
    100.0 * (1.0 - value / against)
}

fn both(with: fn(GinkgoRun) -> GinkgoRun) -> Vec<GinkgoRun> {
    [BTREE, PR].map(|program| with(of(program))).into()
}

fn plain(run: GinkgoRun) -> GinkgoRun {
    run
}

/// The mean over runs of a figure of two tiers of each.
fn compared(
    id: &str,
    runs: Vec<GinkgoRun>,
    tiers: (TierKind, TierKind),
    figure: fn(&TierRecord, &TierRecord) -> f64,
) -> GinkgoNumber {
    Number::of(id, runs, move |records: &[&GinkgoRecord]| {
        mean(records.iter().map(|record| figure(record.tier(tiers.0), record.tier(tiers.1))))
    })
}

/// A figure of two tiers of one run.
fn of_one(
    id: &str,
    run: GinkgoRun,
    tiers: (TierKind, TierKind),
    figure: fn(&TierRecord, &TierRecord) -> f64,
) -> GinkgoNumber {
    compared(id, vec![run], tiers, figure)
}

fn faster(one: &TierRecord, other: &TierRecord) -> f64 {
    percent_below(one.serial_ns, other.serial_ns)
}

fn faster_literally(one: &TierRecord, other: &TierRecord) -> f64 {
    percent_below(one.literal_ns, other.literal_ns)
}

fn faster_with_index(one: &TierRecord, other: &TierRecord) -> f64 {
    percent_below(one.with_index(INDEX_NS), other.serial_ns)
}

fn slower(one: &TierRecord, other: &TierRecord) -> f64 {
    percent_above(one.serial_ns, other.serial_ns)
}

fn fewer_misses(one: &TierRecord, other: &TierRecord) -> f64 {
    percent_below(one.miss_percent(), other.miss_percent())
}

fn points_fewer(one: &TierRecord, other: &TierRecord) -> f64 {
    other.miss_percent() - one.miss_percent()
}

fn more_misses(one: &TierRecord, other: &TierRecord) -> f64 {
    percent_above(one.miss_percent(), other.miss_percent())
}

/// Double reads of a tier, the most over runs.
fn double(id: &str, runs: impl Into<Vec<GinkgoRun>>, tier: TierKind, size: usize) -> GinkgoNumber {
    Number::of(id, runs, move |records: &[&GinkgoRecord]| {
        records.iter().map(|record| record.tier(tier).double_by_sram[size]).fold(0.0, f64::max)
    })
}

/// A figure of learned indices of runs, put together by `of_all`.
fn learned(
    id: &str,
    runs: Vec<GinkgoRun>,
    figure: fn((f64, f64)) -> f64,
    of_all: fn(&mut dyn Iterator<Item = f64>) -> f64,
) -> GinkgoNumber {
    Number::of(id, runs, move |records: &[&GinkgoRecord]| {
        of_all(&mut records.iter().filter_map(|record| record.tier(Ginkgo).learned.map(figure)))
    })
}

fn least(values: &mut dyn Iterator<Item = f64>) -> f64 {
    values.fold(f64::INFINITY, f64::min)
}

/// A figure of pages of each program, put together.
fn of_pages(id: &str, figure: fn(&GinkgoRecord) -> f64, most: bool) -> GinkgoNumber {
    Number::of(id, PROGRAMS.map(of), move |records: &[&GinkgoRecord]| {
        let values = records.iter().map(|record| figure(record));
        if most { values.fold(0.0, f64::max) } else { mean(values) }
    })
}

pub(super) fn numbers() -> Vec<GinkgoNumber> {
    let mut numbers = of_latency();
    numbers.extend(of_misses());
    numbers.extend(of_double_reads());
    numbers.extend(of_metadata());
    numbers.extend(of_motivation());
    numbers
}

fn of_latency() -> Vec<GinkgoNumber> {
    let (alloy, unison) = ((Ginkgo, Alloy), (Ginkgo, Unison));
    let cost = |one: &TierRecord, other: &TierRecord| faster(one, other) - faster_with_index(one, other);
    vec![
        compared("latency-alloy", both(plain), alloy, faster),
        compared("latency-alloy-literal", both(plain), alloy, faster_literally),
        compared("latency-alloy-unfiltered", both(GinkgoRun::unfiltered), alloy, faster),
        compared("latency-alloy-rank", both(plain), (GinkgoRank, Alloy), faster),
        compared("latency-unison", both(plain), unison, faster),
        compared("latency-unison-literal", both(plain), unison, faster_literally),
        compared("latency-unison-unfiltered", both(GinkgoRun::unfiltered), unison, faster),
        compared("latency-unison-whole", both(GinkgoRun::whole), unison, faster),
        compared("index-alloy", both(plain), alloy, faster_with_index),
        compared("index-unison", both(plain), unison, faster_with_index),
        compared("index-cost", both(plain), alloy, cost),
        compared("index-cost-literal", both(plain), alloy, |one, other| {
            100.0 * (one.with_index(INDEX_NS) - one.serial_ns) / other.literal_ns
        }),
        compared("index-cost-unfiltered", both(GinkgoRun::unfiltered), alloy, cost),
        of_one("pr-latency", of(PR), (Unison, Ginkgo), slower),
        of_one("pr-latency-unfiltered", of(PR).unfiltered(), (Unison, Ginkgo), slower),
    ]
}

fn of_misses() -> Vec<GinkgoNumber> {
    let (alloy, unison) = ((Ginkgo, Alloy), (Ginkgo, Unison));
    let by = |one: &TierRecord, other: &TierRecord| one.miss_percent() / other.miss_percent();
    vec![
        compared("miss-alloy", both(plain), alloy, fewer_misses),
        compared("miss-alloy-points", both(plain), alloy, points_fewer),
        compared("miss-alloy-unfiltered", both(GinkgoRun::unfiltered), alloy, fewer_misses),
        compared("miss-alloy-rank", both(plain), (GinkgoRank, Alloy), fewer_misses),
        of_one("miss-btree", of(BTREE), unison, by),
        of_one("miss-btree-unfiltered", of(BTREE).unfiltered(), unison, by),
        of_one("miss-pr", of(PR), unison, more_misses),
        of_one("miss-pr-points", of(PR), unison, |one, other| -points_fewer(one, other)),
        of_one("miss-pr-unfiltered", of(PR).unfiltered(), unison, more_misses),
        compared("segments", both(plain), (Ginkgo, GinkgoMany), more_misses),
    ]
}

fn of_double_reads() -> Vec<GinkgoNumber> {
    let (btree, pr) = (of(BTREE), of(PR));
    vec![
        double("double-unison-btree", [btree], Unison, OF_64_KIB),
        double("double-unison-btree-whole", [btree.whole()], Unison, OF_64_KIB),
        double("double-unison-btree-unfiltered", [btree.unfiltered()], Unison, OF_64_KIB),
        double("double-unison-pr", [pr], Unison, OF_64_KIB),
        double("double-unison-pr-whole", [pr.whole()], Unison, OF_64_KIB),
        double("double-unison-pr-unfiltered", [pr.unfiltered()], Unison, OF_64_KIB),
        double("double-ginkgo", both(plain), Ginkgo, OF_64_KIB),
        double("double-ginkgo-whole", both(GinkgoRun::whole), Ginkgo, OF_64_KIB),
        double("double-ginkgo-unfiltered", both(GinkgoRun::unfiltered), Ginkgo, OF_64_KIB),
        double("double-unison-btree-16", [btree], Unison, OF_16_KIB),
        double("double-unison-pr-16", [pr], Unison, OF_16_KIB),
        Number::of("double-unison-rise", both(plain), |records: &[&GinkgoRecord]| {
            let rise = |record: &GinkgoRecord| {
                let percent = &record.tier(Unison).double_by_sram;
                percent[OF_16_KIB] - percent[OF_64_KIB]
            };
            claim(rise(records[0]) >= 1.0 && rise(records[1]).abs() < 1.0)
        }),
        double("double-ginkgo-btree-16", [btree], Ginkgo, OF_16_KIB),
        double("double-ginkgo-pr-16", [pr], Ginkgo, OF_16_KIB),
    ]
}

fn of_metadata() -> Vec<GinkgoNumber> {
    let by_page = |id, program, times: f64| {
        Number::of(id, [of(program)], move |records: &[&GinkgoRecord]| {
            times * records[0].tier(Ginkgo).metadata_bytes as f64 / records[0].pages[0] as f64
        })
    };
    vec![
        Number::closed("metadata-unison", UNISON_METADATA_MB),
        by_page("metadata-btree", BTREE, 1.0),
        by_page("metadata-btree-swapped", PR, 1.0 / BTREE_PAGES_BY_PR),
        by_page("metadata-pr", PR, 1.0),
        by_page("metadata-pr-swapped", BTREE, BTREE_PAGES_BY_PR),
        learned("metadata-page", both(plain), |learned| learned.1, |values| mean(values)),
        Number::of("metadata-ratio", both(plain), |records: &[&GinkgoRecord]| {
            let ratio = |record: &&GinkgoRecord| {
                record.tier(Unison).metadata_bytes as f64 / record.tier(Ginkgo).metadata_bytes as f64
            };
            records.iter().map(ratio).fold(f64::INFINITY, f64::min)
        }),
        learned("surplus-btree", vec![of(BTREE)], |learned| learned.0, least),
        learned("surplus-pr", vec![of(PR)], |learned| learned.0, least),
        learned("surplus-random", both(GinkgoRun::random), |learned| learned.0, least),
    ]
}

fn of_motivation() -> Vec<GinkgoNumber> {
    let all = |with: fn(GinkgoRun) -> GinkgoRun| PROGRAMS.map(|program| with(of(program))).to_vec();
    let regular = [BTREE, PR, CC].map(of);
    vec![
        of_pages("bloat-2mb", |record| record.bloat[1], false),
        of_pages("bloat-2mb-most", |record| record.bloat[1], true),
        of_pages("bloat-4kb", |record| record.bloat[0], false),
        of_pages("waste", |record| record.waste_percent, false),
        compared("ideal", all(plain), (Ideal, Alloy), fewer_misses),
        compared("ideal-points", all(plain), (Ideal, Alloy), points_fewer),
        compared("ideal-unfiltered", all(GinkgoRun::unfiltered), (Ideal, Alloy), fewer_misses),
        Number::of("ideal-conflicts", regular, |records: &[&GinkgoRecord]| {
            let left = |record: &&GinkgoRecord| {
                100.0 * record.tier(Ideal).conflicts as f64 / record.tier(Alloy).conflicts.max(1) as f64
            };
            records.iter().map(left).fold(0.0, f64::max)
        }),
    ]
}
