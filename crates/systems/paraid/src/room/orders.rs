//! Designs beside each other, as the text orders them in words. Source: Z. Jiao's dissertation (Syracuse 2025), sections 6.1 and 6.5

use super::numbers::{FIU, emission_by_work, mean_ratio, ratio, run};
use super::runs::{Manner, ParaidNumber, ParaidRecord, ParaidRun};
use crate::Design;
use Design::{FusionRaid, LogRaid, Mdraid, Paraid, ParaidStatic, Straid, Swan};
use Manner::{Degraded, Replay, Study, Workers};
use flashyard_describe::reproduce::{Number, claim};

/// paRAID, and what it is compared with.
const ALL: [Design; 7] = [Paraid, Mdraid, Straid, ParaidStatic, FusionRaid, Swan, LogRaid];

/// Whether the first run has more throughput than the second.
fn more(id: &str, first: ParaidRun, second: ParaidRun) -> ParaidNumber {
    Number::of(id, [first, second], |runs: &[&ParaidRecord]| claim(runs[0].gib_per_s > runs[1].gib_per_s))
}

/// Whether paRAID has more throughput than every other design under each of `loads`.
fn best(id: &str, loads: &[&'static str]) -> ParaidNumber {
    let under = |load: &&'static str| ALL.map(|design| run("config-1", design, load, Replay));
    Number::of(id, loads.iter().flat_map(under).collect::<Vec<_>>(), |runs: &[&ParaidRecord]| {
        claim(runs.chunks(ALL.len()).all(|load| load[1..].iter().all(|rival| rival.gib_per_s < load[0].gib_per_s)))
    })
}

/// Runs of `design` under Meta's and FIU's loads.
fn of_all_loads(design: Design) -> [ParaidRun; 3] {
    ["meta", FIU[0], FIU[1]].map(|load| run("config-1", design, load, Replay))
}

/// Mean emission by throughput and volume of three runs.
fn emission(runs: &[&ParaidRecord]) -> f64 {
    runs.iter().map(|run| emission_by_work(run)).sum::<f64>() / runs.len() as f64
}

/// Whether the mean emission of the first design is above that of the second.
fn emits_more(id: &str, first: Design, second: Design) -> ParaidNumber {
    Number::of(id, [of_all_loads(first), of_all_loads(second)].concat(), |runs: &[&ParaidRecord]| {
        claim(emission(&runs[..3]) > emission(&runs[3..]))
    })
}

/// Replayed loads.
fn of_loads() -> Vec<ParaidNumber> {
    let small = |design| run("config-1", design, "meta", Replay);
    let large = |design| run("config-2", design, "meta", Replay);
    let gains = [Straid, Mdraid].map(|design| FIU.map(|load| run("config-2", design, load, Replay))).concat();
    vec![
        more("raid5-meta-log", small(Mdraid), small(LogRaid)),
        ratio("raid5-meta-static", vec![small(ParaidStatic)], vec![small(FusionRaid)]),
        best("raid5-meta-best", &["meta"]),
        best("raid5-fiu-best", &FIU),
        more("raid6-meta-log", large(Mdraid), large(LogRaid)),
        ratio("raid6-meta-straid", vec![large(Straid)], vec![large(Mdraid)]),
        more("raid6-meta-fusion", large(FusionRaid), large(Mdraid)),
        ratio("raid6-meta-static", vec![large(ParaidStatic)], vec![large(FusionRaid)]),
        Number::of(
            "raid6-fiu-straid",
            [vec![large(Straid), large(Mdraid)], gains].concat(),
            |runs: &[&ParaidRecord]| claim(mean_ratio(&runs[2..]) > mean_ratio(&runs[..2])),
        ),
    ]
}

/// Emission of all designs.
fn of_emission() -> Vec<ParaidNumber> {
    vec![
        Number::of("emission-least", ALL.map(of_all_loads).concat(), |runs: &[&ParaidRecord]| {
            let designs: Vec<f64> = runs.chunks(3).map(emission).collect();
            claim(designs[1..].iter().all(|rival| *rival > designs[0]))
        }),
        emits_more("emission-log", LogRaid, Mdraid),
        emits_more("emission-fusion", LogRaid, FusionRaid),
    ]
}

/// Loads that are made, on three drives.
fn of_three() -> Vec<ParaidNumber> {
    let writes = |design| ["p-write", "f-write"].map(|load| run("three-nvme", design, load, Workers)).to_vec();
    let gone = |load| [2, 0].map(|drive| run("mixed", Paraid, load, Degraded(drive)));
    vec![
        ratio(
            "mixed-sata",
            vec![run("case-1", Mdraid, "p-read", Study)],
            vec![run("three-sata", Mdraid, "p-read", Study)],
        ),
        ratio("alike-static", writes(ParaidStatic), writes(Paraid)),
        ratio(
            "alike-full-reads",
            vec![run("three-nvme", Paraid, "f-read", Workers)],
            vec![run("three-nvme", Mdraid, "f-read", Workers)],
        ),
        Number::of("degraded-sata", [gone("p-read"), gone("p-write")].concat(), |runs: &[&ParaidRecord]| {
            claim(runs.chunks(2).all(|pair| pair[0].gib_per_s > pair[1].gib_per_s))
        }),
    ]
}

/// All of them.
pub(super) fn numbers() -> Vec<ParaidNumber> {
    [of_loads(), of_emission(), of_three()].into_iter().flatten().collect()
}
