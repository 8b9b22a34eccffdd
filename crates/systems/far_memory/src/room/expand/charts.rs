//! The study as charts: speed-up by predictor, effectiveness, switches, timeliness.

use super::numbers::{GRAPH, NINE};
use super::runs::{EFFECTIVENESS, ExpandRecord, ExpandRun, Media, PLAIN, Point, SPOILED, of};
use crate::design::Design;
use flashyard_report::{Chart, ChartAxis, ChartSection, ChartSeries, Comparison};
use flashyard_units::Named;

type Runs = [(ExpandRun, ExpandRecord)];

pub(super) fn sections(runs: &Runs, _: &[Comparison]) -> Vec<ChartSection> {
    vec![predictors(runs), effectiveness(runs), switches(runs), timeliness(runs)]
}

fn at(runs: &Runs, run: ExpandRun, point: Point) -> Option<f64> {
    runs.iter().find(|entry| entry.0 == run).map(|entry| entry.1.at(point).seconds)
}

/// Time of one run at its plain point by that of another run at a point.
fn ratio(runs: &Runs, base: ExpandRun, run: ExpandRun, point: Point) -> Option<f64> {
    Some(at(runs, base, PLAIN)? / at(runs, run, point)?)
}

const PREDICTORS: [Design; 6] =
    [Design::BestOffset, Design::Isb, Design::Lstm, Design::Attention, Design::Expand, Design::Oracle];

fn predictors(runs: &Runs) -> ChartSection {
    let names: Vec<String> = NINE.iter().map(|&program| program.to_owned()).collect();
    let gain = |program, design| ratio(runs, of(program, Design::CxlSsd), of(program, design), PLAIN);
    let speed = |design: Design| {
        let values: Vec<Option<f64>> = NINE.iter().map(|&program| gain(program, design)).collect();
        ChartSeries::of_categories(design.name(), values)
    };
    let share = |design: Design| {
        let of_program = |&program: &&'static str| {
            let found = runs.iter().find(|entry| entry.0 == of(program, design))?;
            found.1.at(PLAIN).accuracy.map(|share| 100.0 * share)
        };
        ChartSeries::of_categories(design.name(), NINE.iter().map(of_program).collect::<Vec<_>>())
    };
    let gains: Vec<f64> = NINE.iter().filter_map(|&program| gain(program, Design::Expand)).collect();
    let mean = gains.iter().sum::<f64>() / gains.len().max(1) as f64;
    let finding =
        format!("A device that pushes makes programs {mean:.1} times as fast on average as one that does not.");
    let charts = vec![
        Chart::bars(
            "Speed-up over no prefetching",
            ChartAxis::new("times", ""),
            names.clone(),
            PREDICTORS.map(speed).into(),
        ),
        Chart::bars("Fetched lines that are used", ChartAxis::new("share", "%"), names, PREDICTORS.map(share).into()),
    ];
    ChartSection::of("predictors", "Which predictor gains most?", finding, charts)
}

fn effectiveness(runs: &Runs) -> ChartSection {
    let names: Vec<String> = EFFECTIVENESS.iter().map(|percent| percent.to_string()).collect();
    let slower = |program: &'static str, percent: u32| {
        let (oracle, dram) = (of(program, Design::Oracle), of(program, Design::Dram));
        Some(at(runs, oracle, PLAIN.effective(percent))? / at(runs, dram, PLAIN)?)
    };
    let series = |&program: &&'static str| {
        ChartSeries::of_categories(program, EFFECTIVENESS.map(|percent| slower(program, percent)).to_vec())
    };
    let worst = GRAPH.iter().filter_map(|&program| slower(program, 100)).fold(0.0, f64::max);
    let finding =
        format!("With an oracle that is always right, kernels take at most {worst:.1} times as long as in DRAM.");
    let chart = Chart::bars(
        "Time by accuracy and coverage of an oracle",
        ChartAxis::new("times that of DRAM", ""),
        names,
        GRAPH.iter().map(series).collect(),
    );
    ChartSection::of("effectiveness", "How good must a predictor be?", finding, vec![chart])
}

fn switches(runs: &Runs) -> ChartSection {
    let names: Vec<String> = (0..=4).map(|switches: u32| switches.to_string()).collect();
    let slower = |run: ExpandRun, base: Point, point: Point| Some(at(runs, run, point)? / at(runs, run, base)?);
    let aware = |&program: &&'static str| {
        let run = of(program, Design::Expand);
        let values = (0..=4).map(|switches| slower(run, PLAIN, PLAIN.behind(switches))).collect::<Vec<_>>();
        ChartSeries::of_categories(program, values)
    };
    let unaware = |&program: &&'static str| {
        let (run, base) = (of(program, Design::Oracle), PLAIN.effective(90));
        let of_level = |switches| slower(run, base, if switches == 0 { base } else { base.behind(switches).unaware() });
        ChartSeries::of_categories(program, (0..=4).map(of_level).collect::<Vec<_>>())
    };
    let media = |media: Media, name: &str| {
        let run = of("tc", Design::Expand);
        let of_level = |switches| slower(run, PLAIN.on(media), PLAIN.on(media).behind(switches));
        ChartSeries::of_categories(name, (0..=4).map(of_level).collect::<Vec<_>>())
    };
    let four: Vec<f64> =
        GRAPH.iter().filter_map(|&program| slower(of(program, Design::Expand), PLAIN, PLAIN.behind(4))).collect();
    let mean = four.iter().sum::<f64>() / four.len().max(1) as f64;
    let finding = format!("Four switches make kernels take {mean:.2} times as long, where the device knows them.");
    let axis = || ChartAxis::new("times that without switches", "");
    let charts = vec![
        Chart::bars("ExPAND by switches", axis(), names.clone(), GRAPH.iter().map(aware).collect()),
        Chart::bars(
            "An oracle of 90 % that does not know the switches",
            axis(),
            names.clone(),
            GRAPH.iter().map(unaware).collect(),
        ),
        Chart::bars(
            "ExPAND by switches and media, triangles",
            axis(),
            names,
            vec![media(Media::Flash, "Z-NAND"), media(Media::Pmem, "PMEM"), media(Media::Dram, "DRAM")],
        ),
    ];
    ChartSection::of("switches", "What do switches cost?", finding, charts)
}

fn timeliness(runs: &Runs) -> ChartSection {
    let run = of("tc", Design::Expand);
    let names: Vec<String> = SPOILED.iter().rev().map(|spoiled| (100 - spoiled).to_string()).collect();
    let slower = |spoiled: u32| Some(at(runs, run, PLAIN.spoiled(spoiled))? / at(runs, run, PLAIN)?);
    let values: Vec<Option<f64>> = SPOILED.iter().rev().map(|&spoiled| slower(spoiled)).collect();
    let worst = values.iter().flatten().copied().fold(0.0, f64::max);
    let finding = format!("With half of the estimates spoiled, triangles take {worst:.2} times as long.");
    let chart = Chart::bars(
        "Time by estimates left as they are, triangles",
        ChartAxis::new("times that with all", ""),
        names,
        vec![ChartSeries::of_categories("expand", values)],
    );
    ChartSection::of("timeliness", "How much does the time of a push matter?", finding, vec![chart])
}
