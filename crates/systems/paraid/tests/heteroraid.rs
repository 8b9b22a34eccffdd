//! The tables and pictures of `docs/heteroraid.md`.
//!
//! The page is held against runs of today. `FLASHYARD_WRITE_TABLES=1` writes it again, with its pictures:
//!
//! ```text
//! FLASHYARD_WRITE_TABLES=1 cargo test -p flashyard-paraid --test heteroraid
//! ```

#![expect(clippy::disallowed_methods, reason = "a test reads and writes the page that it holds; no model sees it")]

mod drawing;

use drawing::{Line, lines};
use flashyard_describe::{NoFiles, Room, Rooms};
use flashyard_paraid::fleet::room::FleetRoom;
use flashyard_paraid::parity::room::ParityRoom;
use serde_json::Value;
use std::fmt::Write;

static LANGUAGE: Rooms = Rooms::new(&[&ParityRoom, &FleetRoom]);
const PARITY: &str = include_str!("../../../../scenarios/parity-exchange/scenario.toml");
const FLEET: &str = include_str!("../../../../scenarios/ageing-fleet/scenario.toml");
const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../docs/heteroraid.md");
const IMAGES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../docs/images");

/// The result of a run of a scenario's design.
fn run(room: &dyn Room, text: &str, design: &str, settings: &[String]) -> Value {
    let resolved = LANGUAGE.resolve(text, "scenario.toml", settings, &NoFiles);
    let scenario = resolved.unwrap_or_else(|error| panic!("{settings:?}: {error}")).scenario;
    let measured = (room.run().expect("it runs").design)(&scenario, design, &NoFiles, &mut |_| true).expect("it runs");
    assert!(measured.result.laws.hold, "{design} {settings:?}: {:?}", measured.result.laws.broken);
    serde_json::to_value(&measured.result).expect("it is plain data")
}

fn of(result: &Value, key: &str) -> f64 {
    let pointer = format!("/{}", key.replace('.', "/"));
    result.pointer(&pointer).and_then(Value::as_f64).unwrap_or_else(|| panic!("{key} is not in {result}"))
}

/// Tables and pictures as they are today: the page must have the former between its marks, and the latter beside it.
fn hold(tables: &[(&str, String)], pictures: &[(&str, String)]) {
    let is_writing = std::env::var_os("FLASHYARD_WRITE_TABLES").is_some();
    let old = std::fs::read_to_string(PAGE).expect("the page is there");
    let mut page = old.clone();
    for (name, table) in tables {
        let (begin, end) = (format!("<!-- generated: {name} -->\n"), format!("<!-- end of {name} -->\n"));
        let (before, rest) = page.split_once(&begin).unwrap_or_else(|| panic!("{begin:?} is not in the page"));
        let (_, after) = rest.split_once(&end).unwrap_or_else(|| panic!("{end:?} is not in the page"));
        page = format!("{before}{begin}{table}{end}{after}");
    }
    if is_writing {
        std::fs::write(PAGE, &page).expect("it can be written");
    } else {
        assert_eq!(old, page, "FLASHYARD_WRITE_TABLES=1 writes {PAGE}");
    }
    for (name, picture) in pictures {
        let path = format!("{IMAGES}/{name}");
        if is_writing {
            std::fs::write(&path, picture).expect("it can be written");
        }
        assert_eq!(&std::fs::read_to_string(&path).expect("the picture is there"), picture, "{name}");
    }
}

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

fn aged(design: &str, seed: u32, settings: &[String]) -> Value {
    let mut all = vec![format!("seed={seed}")];
    all.extend_from_slice(settings);
    run(&FleetRoom, FLEET, design, &all)
}

/// Means of figures over seeds.
fn means(design: &str, settings: &[String], keys: &[&str]) -> Vec<f64> {
    let runs: Vec<Value> = SEEDS.iter().map(|&seed| aged(design, seed, settings)).collect();
    keys.iter().map(|key| runs.iter().map(|run| of(run, key)).sum::<f64>() / runs.len() as f64).collect()
}

const PREDICTORS: [&str; 3] = ["last", "smoothed", "learned"];

#[test]
fn the_ageing_fleet_is_that_of_today() {
    let mut text = "| predictor | mean error of the mean, us | median | mean error of p99, us | median | AUC | failures flagged | of wear | flags before a failure |\n|---|--:|--:|--:|--:|--:|--:|--:|--:|\n".to_owned();
    let mut drawn = [Vec::new(), Vec::new()];
    for design in PREDICTORS {
        let keys = ["error.mean_us", "error.mean_share", "error.p99_us", "error.p99_share", "failure.auc"];
        let rates = ["failure.recall", "failure.recall_of_wear", "failure.precision"];
        let figures = means(design, &[], &[&keys[..], &rates[..]].concat());
        writeln!(
            text,
            "| `{design}` | {:.1} | {:.1} % | {:.0} | {:.1} % | {:.3} | {:.0} % | {:.0} % | {:.0} % |",
            figures[0],
            figures[1] * 100.0,
            figures[2],
            figures[3] * 100.0,
            figures[4],
            figures[5] * 100.0,
            figures[6] * 100.0,
            figures[7] * 100.0,
        )
        .expect("a string takes all");
        let mut lines = [Vec::new(), Vec::new()];
        for budget in BUDGETS {
            let settings = [format!("fleet.budget={}", budget / 100.0)];
            let figures = means(design, &settings, &["failure.recall_of_wear", "failure.precision"]);
            for (line, figure) in lines.iter_mut().zip(figures) {
                line.push((budget, figure * 100.0));
            }
        }
        for (drawn, points) in drawn.iter_mut().zip(lines) {
            drawn.push(Line { name: design, points });
        }
    }
    let [recall, precision] = drawn;
    let picture = lines(
        "Worn drives that were flagged in the three months before, and flags that came true, by the share of months that may be flagged",
        &[("Worn drives flagged, %, by budget, %", recall), ("Flags that came true, %, by budget, %", precision)],
    );
    hold(&[("fleet", text)], &[("ageing-fleet.svg", picture)]);
}
