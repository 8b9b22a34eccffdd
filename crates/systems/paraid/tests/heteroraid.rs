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
use flashyard_paraid::parity::room::ParityRoom;
use serde_json::Value;
use std::fmt::Write;

static LANGUAGE: Rooms = Rooms::new(&[&ParityRoom]);
const PARITY: &str = include_str!("../../../../scenarios/parity-exchange/scenario.toml");
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
