//! The tables and pictures of `docs/heteroraid.md`.
//!
//! The page is held against runs of today. `FLASHYARD_WRITE_TABLES=1` writes it again, with its pictures:
//!
//! ```text
//! FLASHYARD_WRITE_TABLES=1 cargo test -p flashyard-paraid --test heteroraid -- --include-ignored --test-threads 1
//! ```

#![expect(clippy::disallowed_methods, reason = "a test reads and writes the page that it holds; no model sees it")]

mod carbon;
mod chunks;
mod drawing;
mod page;

use drawing::{Line, lines};
use flashyard_describe::NoFiles;
use flashyard_paraid::fleet::room::{FleetRoom, config};
use flashyard_paraid::fleet::{Cause, FleetConfig, FleetLife, Placement, Predictor, judge, live, train};
use flashyard_paraid::parity::room::ParityRoom;
use flashyard_units::Named;
use page::{LANGUAGE, hold, of, run};
use serde_json::Value;
use std::fmt::Write;

const PARITY: &str = include_str!("../../../../../scenarios/parity-exchange/scenario.toml");
const FLEET: &str = include_str!("../../../../../scenarios/ageing-fleet/scenario.toml");
/// Widths of the table. [A] around those from which on the closed form says that the host's link limits: 9, 10, 12 and 23
const WIDTHS: [u32; 8] = [4, 8, 9, 10, 12, 16, 23, 32];

fn exchanged(design: &str, width: u32, full_share: &str, depth: u32) -> Value {
    let settings =
        [format!("parity.width={width}"), format!("parity.full_share={full_share}"), format!("parity.depth={depth}")];
    run(&ParityRoom, PARITY, design, &settings)
}

/// Throughput, bytes on the host's link and tails by width, and throughput as lines.
fn by_width(full_share: &str, designs: &[&'static str]) -> (String, Vec<Line>) {
    let mut text = "| drives | parity | GB/s | closed form, GB/s | host sends, B/B | host receives, B/B | between drives, B/B | mean alone, us | p99 of 64, us |\n|--:|---|--:|--:|--:|--:|--:|--:|--:|\n".to_owned();
    let mut drawn: Vec<Line> = designs.iter().map(|&design| Line { name: design, points: Vec::new() }).collect();
    for width in WIDTHS {
        for (design, line) in designs.iter().zip(&mut drawn) {
            let (alone, loaded) = (exchanged(design, width, full_share, 1), exchanged(design, width, full_share, 64));
            let throughput = of(&loaded, "throughput_bytes_per_s") / 1e9;
            line.points.push((f64::from(width), throughput));
            writeln!(
                text,
                "| {width} | {design} | {throughput:.2} | {:.2} | {:.2} | {:.2} | {:.2} | {:.0} | {:.0} |",
                of(&loaded, "bound_bytes_per_s") / 1e9,
                of(&loaded, "host_sent_per_byte"),
                of(&loaded, "host_received_per_byte"),
                of(&loaded, "peers_per_byte"),
                of(&alone, "latency_us.mean"),
                of(&loaded, "latency_us.p99"),
            )
            .expect("a string takes all");
        }
    }
    (text, drawn)
}

#[test]
fn the_exchange_of_parity_is_that_of_today() {
    let (full, full_lines) = by_width("1.0", &["host", "star", "chain", "tree"]);
    // One difference goes to the parity by any way.
    let (partial, partial_lines) = by_width("0.0", &["host", "star"]);
    let picture = lines(
        "Throughput of writes by the width of the array",
        &[("Whole stripes, GB/s by drives", full_lines), ("Partial writes, GB/s by drives", partial_lines)],
    );
    hold(&[("parity-full", full), ("parity-partial", partial)], &[("parity-exchange.svg", picture)]);
}

/// Seeds of the fleet. [A] three fleets of 240 places
const SEEDS: [u32; 3] = [1, 2, 3];

/// Budgets of flags in percent.
const BUDGETS: [f64; 6] = [0.5, 1.0, 2.0, 5.0, 10.0, 20.0];

/// Fleets of the scenario that lived, with settings, for each seed.
fn aged(seeds: &[u32], settings: &[&str]) -> Vec<(FleetConfig, FleetLife)> {
    let lived = |seed: &u32| {
        let all: Vec<String> =
            settings.iter().map(|&setting| setting.to_owned()).chain([format!("seed={seed}")]).collect();
        let scenario = LANGUAGE.resolve(FLEET, "scenario.toml", &all, &NoFiles).expect("it is good").scenario;
        let config = config(&scenario).expect("it is a fleet");
        let fleet = live(&config, None, &mut |_| true).expect("it lives");
        (config, fleet)
    };
    seeds.iter().map(lived).collect()
}

/// Figures of a predictor, in the mean over fleets.
fn judged(fleets: &[(FleetConfig, FleetLife)], predictor: Predictor, budget: f64) -> [f64; 8] {
    let mut sums = [0.0; 8];
    for (config, fleet) in fleets {
        let config = FleetConfig { budget, ..*config };
        let judged = judge(&config, fleet, &train(predictor, &config, fleet));
        let figures = [judged.error_us[0], judged.error_share[0], judged.error_us[1], judged.error_share[1]];
        let rates = [judged.auc, judged.recall, judged.recall_of_wear, judged.precision];
        for (sum, figure) in sums.iter_mut().zip(figures.into_iter().chain(rates)) {
            *sum += figure / fleets.len() as f64;
        }
    }
    sums
}

const JUDGED: &str = "mean error of the mean, us | median | mean error of p99, us | median | AUC | failures flagged | of wear | flags before a failure |";

/// The rows of predictors under a name.
fn judged_rows(name: &str, fleets: &[(FleetConfig, FleetLife)]) -> String {
    let mut rows = String::new();
    for predictor in Predictor::ALL.iter().copied() {
        let [mean, mean_share, p99, p99_share, auc, recall, of_wear, precision] =
            judged(fleets, predictor, fleets[0].0.budget);
        writeln!(
            rows,
            "| {name}`{}` | {mean:.1} | {:.1} % | {p99:.0} | {:.1} % | {auc:.3} | {:.0} % | {:.0} % | {:.0} % |",
            predictor.name(),
            mean_share * 100.0,
            p99_share * 100.0,
            recall * 100.0,
            of_wear * 100.0,
            precision * 100.0,
        )
        .expect("a string takes all");
    }
    rows
}

#[test]
fn the_ageing_fleet_is_that_of_today() {
    let fleets = aged(&SEEDS, &[]);
    let table = format!("| predictor | {JUDGED}\n|---|--:|--:|--:|--:|--:|--:|--:|--:|\n{}", judged_rows("", &fleets));
    let ends = |cause| {
        let lives = fleets.iter().flat_map(|(_, fleet)| &fleet.drives).filter(|life| life.array % 2 == 1);
        lives.filter(|life| life.end == Some(cause)).count()
    };
    let ended = format!(
        "\nOver three seeds {} drives of judged arrays wore out, and {} failed for other reasons.\n",
        ends(Cause::Wear),
        ends(Cause::Other)
    );
    let line = |predictor: Predictor, which: usize| Line {
        name: predictor.name(),
        points: BUDGETS
            .iter()
            .map(|&budget| (budget, judged(&fleets, predictor, budget / 100.0)[which] * 100.0))
            .collect(),
    };
    let drawn = |which| Predictor::ALL.iter().map(|&predictor| line(predictor, which)).collect::<Vec<_>>();
    let picture = lines(
        "Worn drives that were flagged in the three months before, and flags that came true, by the share of months that may be flagged",
        &[("Worn drives flagged, %, by budget, %", drawn(6)), ("Flags that came true, %, by budget, %", drawn(7))],
    );
    hold(&[("fleet", table + &ended)], &[("ageing-fleet.svg", picture)]);
}

#[test]
#[ignore = "half a minute: make test-long"]
fn the_varied_fleets_are_those_of_today() {
    let mut varied = format!("| fleet | predictor | {JUDGED}\n|---|---|--:|--:|--:|--:|--:|--:|--:|--:|\n");
    for (name, setting) in [
        ("four times as many reads a month", "fleet.commands=8000"),
        ("load alike in all months", "fleet.load.by_month=0.0"),
        ("drives of one quality", "fleet.drive.by_drive=0.0"),
        ("drives twice as unlike", "fleet.drive.by_drive=0.2"),
        ("ten times as many other failures", "fleet.drive.other_failures=0.05"),
    ] {
        varied += &judged_rows(&format!("{name} | "), &aged(&SEEDS[..1], &[setting]));
    }
    hold(&[("fleet-varied", varied)], &[]);
}

#[test]
fn a_small_fleet_runs_as_a_scenario() {
    let small = ["fleet.arrays=4", "fleet.drives=3", "fleet.months=40"].map(str::to_owned);
    for placement in ["even", "both"] {
        let mut settings = small.to_vec();
        settings.push(format!("fleet.placement=\"{placement}\""));
        for predictor in Predictor::ALL {
            let result = run(&FleetRoom, FLEET, predictor.name(), &settings);
            assert!(of(&result, "predicted_months") > 100.0 && of(&result, "arrays.mean_us") > 60.0, "{result}");
        }
    }
}

/// Placements by the predictor that they follow.
const PLACED: [(&str, Placement, Predictor); 8] = [
    ("even", Placement::Even, Predictor::Last),
    ("reads, as measured last", Placement::Reads, Predictor::Last),
    ("reads, as learned", Placement::Reads, Predictor::Learned),
    ("writes, by erases", Placement::Writes, Predictor::Last),
    ("writes, by erases and used spare", Placement::Writes, Predictor::Smoothed),
    ("writes, as learned", Placement::Writes, Predictor::Learned),
    ("both, as measured", Placement::Both, Predictor::Last),
    ("both, as learned", Placement::Both, Predictor::Learned),
];

#[test]
#[ignore = "half a minute: make test-long"]
fn placement_by_prediction_is_that_of_today() {
    let fleets = aged(&SEEDS, &[]);
    let mut table = "| placement | mean read, us | slowest drive of the array, us | drives worn out | months with two ends in an array |\n|---|--:|--:|--:|--:|\n".to_owned();
    for (name, placement, predictor) in PLACED {
        let (mut latency, mut worn, mut coincidences) = ([0.0; 2], 0, 0);
        for (config, even) in &fleets {
            let model = train(predictor, config, even);
            let config = FleetConfig { placement, ..*config };
            let placed = live(&config, Some(&model), &mut |_| true).expect("it lives");
            for (which, sum) in latency.iter_mut().enumerate() {
                *sum += placed.arrays.iter().map(|month| month[which]).sum::<f64>() / placed.arrays.len() as f64;
            }
            let lives = placed.drives.iter().filter(|life| life.array % 2 == 1);
            worn += lives.filter(|life| life.end == Some(Cause::Wear)).count();
            coincidences += placed.coincidences;
        }
        let [mean, slowest] = latency.map(|sum| sum / fleets.len() as f64);
        writeln!(table, "| {name} | {mean:.0} | {slowest:.0} | {worn} | {coincidences} |").expect("a string takes all");
    }
    hold(&[("fleet-placed", table)], &[]);
}
