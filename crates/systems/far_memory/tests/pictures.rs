//! Pictures of the memory machine in the pages of docs: latency over time while garbage is collected, the time of a request by its parts, and sweeps by
//! switches and by the effectiveness of a predictor.
//!
//! ```text
//! FLASHYARD_WRITE_TABLES=1 cargo test --profile quick -p flashyard-far-memory --test pictures -- --ignored
//! ```

#![expect(clippy::disallowed_methods, reason = "a test writes the pictures that it holds; no model sees them")]

use flashyard_describe::{Measured, NoFiles, Room, Rooms};
use flashyard_far_memory::room::MemoryRoom;
use serde_json::Value;
use std::fmt::Write;

static LANGUAGE: Rooms = Rooms::new(&[&MemoryRoom]);
const TEXT: &str = include_str!("../../../../scenarios/memory-combined/scenario.toml");
const IMAGES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../docs/images");
const COLOURS: [&str; 5] = ["#1b6ca8", "#d95f02", "#66a61e", "#7570b3", "#a6761d"];

fn run(design: &str, settings: &[&str]) -> Measured {
    let owned: Vec<String> = settings.iter().map(|setting| format!("memory.{setting}")).collect();
    let resolved = LANGUAGE.resolve(TEXT, "scenario.toml", &owned, &NoFiles);
    let scenario = resolved.unwrap_or_else(|error| panic!("{settings:?}: {error}")).scenario;
    (MemoryRoom.run().expect("it runs").design)(&scenario, design, &NoFiles, &mut |_| true).expect("it runs")
}

fn milliseconds(design: &str, settings: &[&str]) -> f64 {
    let json = serde_json::to_value(&run(design, settings).result).expect("it is plain data");
    json.pointer("/window_seconds").and_then(Value::as_f64).expect("it took time") * 1e3
}

/// A panel of lines in a picture.
struct Panel {
    title: String,
    x: &'static str,
    /// Name and points of each line.
    lines: Vec<(String, Vec<(f64, f64)>)>,
    is_logarithmic: bool,
}

const WIDTH: f64 = 330.0;
const HEIGHT: f64 = 200.0;

impl Panel {
    /// The panel, `left` from the edge of the picture.
    fn draw(&self, left: f64) -> String {
        let points = || self.lines.iter().flat_map(|line| &line.1);
        let scale = |y: f64| if self.is_logarithmic { y.max(1e-9).log10() } else { y };
        let [x_least, x_most] = [
            points().map(|point| point.0).fold(f64::MAX, f64::min),
            points().map(|point| point.0).fold(f64::MIN, f64::max),
        ];
        let y_most = points().map(|point| scale(point.1)).fold(f64::MIN, f64::max);
        let y_least = if self.is_logarithmic {
            points().map(|point| scale(point.1)).fold(f64::MAX, f64::min).floor()
        } else {
            0.0
        };
        let y_most = if self.is_logarithmic { y_most.ceil() } else { y_most * 1.05 };
        let at_x = |x: f64| left + 46.0 + (x - x_least) / (x_most - x_least).max(1e-12) * (WIDTH - 60.0);
        let at_y = |y: f64| 40.0 + HEIGHT - (scale(y) - y_least) / (y_most - y_least).max(1e-12) * HEIGHT;
        let mut text = format!("<text x=\"{:.0}\" y=\"22\" font-weight=\"bold\">{}</text>\n", left + 10.0, self.title);
        let marks: Vec<f64> = if self.is_logarithmic {
            (y_least as i32..=y_most as i32).map(|power| 10_f64.powi(power)).collect()
        } else {
            (0..=4).map(|part| y_most * f64::from(part) / 4.0).collect()
        };
        for mark in marks {
            let label = if mark >= 10.0 || mark == 0.0 { format!("{mark:.0}") } else { format!("{mark:.1}") };
            writeln!(
                text,
                "<path d=\"M{:.0} {y:.1}H{:.0}\" stroke=\"#ddd\"/><text x=\"{:.0}\" y=\"{:.1}\" text-anchor=\"end\">{label}</text>",
                left + 46.0,
                left + WIDTH - 14.0,
                left + 40.0,
                at_y(mark) + 4.0,
                y = at_y(mark),
            )
            .expect("a string takes all");
        }
        for x in [x_least, x_most] {
            writeln!(
                text,
                "<text x=\"{:.1}\" y=\"{:.0}\" text-anchor=\"middle\">{x:.0}</text>",
                at_x(x),
                56.0 + HEIGHT
            )
            .expect("a string takes all");
        }
        writeln!(
            text,
            "<text x=\"{:.1}\" y=\"{:.0}\" text-anchor=\"middle\">{}</text>",
            left + WIDTH / 2.0,
            56.0 + HEIGHT,
            self.x
        )
        .expect("a string takes all");
        for (number, (name, points)) in self.lines.iter().enumerate() {
            let path: Vec<String> = points.iter().map(|(x, y)| format!("{:.1} {:.1}", at_x(*x), at_y(*y))).collect();
            let (colour, y) = (COLOURS[number % COLOURS.len()], 74.0 + HEIGHT + 15.0 * number as f64);
            writeln!(text, "<path d=\"M{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"1.5\"/>", path.join("L"))
                .expect("a string takes all");
            writeln!(
                text,
                "<rect x=\"{:.0}\" y=\"{:.0}\" width=\"12\" height=\"3\" fill=\"{colour}\"/><text x=\"{:.0}\" y=\"{:.0}\">{name}</text>",
                left + 46.0,
                y - 5.0,
                left + 64.0,
                y
            )
            .expect("a string takes all");
        }
        text
    }
}

fn picture(title: &str, panels: &[Panel]) -> String {
    let legends = panels.iter().map(|panel| panel.lines.len()).max().unwrap_or(0) as f64;
    let (width, height) = (WIDTH * panels.len() as f64 + 10.0, 74.0 + HEIGHT + 15.0 * legends);
    let drawn: String = panels.iter().enumerate().map(|(number, panel)| panel.draw(WIDTH * number as f64)).collect();
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {height:.0}\" font-family=\"sans-serif\" font-size=\"11\" role=\"img\"><title>{title}</title><rect width=\"{width:.0}\" height=\"{height:.0}\" fill=\"#fff\"/>\n{drawn}</svg>\n"
    )
}

/// Holds a picture against the one in docs, or writes it.
fn hold(name: &str, drawn: &str) {
    let path = format!("{IMAGES}/{name}");
    if std::env::var_os("FLASHYARD_WRITE_TABLES").is_some() {
        std::fs::write(&path, drawn).expect("it can be written");
    }
    let found = std::fs::read_to_string(&path).expect("it is there");
    assert!(found == drawn, "FLASHYARD_WRITE_TABLES=1 writes {path}");
}

/// A series of the memory over time, in milliseconds.
fn over_time(measured: &Measured, key: &str) -> Vec<(f64, f64)> {
    let json = serde_json::to_value(&measured.detail).expect("it is plain data");
    let begins = json.pointer("/timeline/begin_seconds").and_then(Value::as_array).expect("it has intervals");
    let values = json.pointer(&format!("/timeline/drives/0/{key}")).and_then(Value::as_array).expect("it has values");
    let from = json.pointer("/timeline/measured_from_seconds").and_then(Value::as_f64).expect("it has a begin");
    let point = |(begin, value): (&Value, &Value)| Some(((begin.as_f64()? - from) * 1e3, value.as_f64()?));
    begins.iter().zip(values).filter_map(point).filter(|point| point.0 >= 0.0).collect()
}

#[test]
#[ignore = "some seconds: make test-long"]
fn latency_under_collection() {
    let of = |key: &str, title: &str| {
        let line =
            |(name, design, settings): (&str, &str, &[&str])| (name.to_owned(), over_time(&run(design, settings), key));
        let lines = [
            ("CXL-SSD: collection goes on", "cxl-ssd", &["program=\"libquantum\""][..]),
            (
                "deterministic: collection waits for guards",
                "cxl-assd",
                &["program=\"libquantum\"", "annotations.functions=1.0", "annotations.requests=1.0"],
            ),
            (
                "bufferable alone",
                "cxl-assd",
                &["program=\"libquantum\"", "annotations.functions=1.0", "annotations.requests=0.0"],
            ),
        ];
        Panel { title: title.to_owned(), x: "ms", lines: lines.map(line).into(), is_logarithmic: true }
    };
    let panels = [of("latency_longest_us", "Longest latency, us"), of("latency_mean_us", "Mean latency, us")];
    hold(
        "memory-collection.svg",
        &picture("Latency of requests while garbage is collected, and while it is postponed", &panels),
    );
}

#[test]
#[ignore = "a minute: make test-long"]
fn sweeps_by_switches_and_effectiveness() {
    fn with<'a>(settings: &[&'a str]) -> Vec<&'a str> {
        [&["accesses=200000", "warm_accesses=100000"], settings].concat()
    }
    let line = |program: &str, design: &str, name: &str| {
        let program = format!("program=\"{program}\"");
        let base = milliseconds("cxl-ssd", &with(&[&program]));
        let point = |switches: u32| {
            let switches_of = format!("cxl.switches={switches}");
            (f64::from(switches), milliseconds(design, &with(&[&program, &switches_of])) / base)
        };
        (name.to_owned(), (0..5).map(point).collect::<Vec<_>>())
    };
    let switches = Panel {
        title: "Time by switches, CXL-SSD without any is 1".to_owned(),
        x: "switches",
        lines: vec![
            line("pagerank", "cxl-ssd", "pagerank, CXL-SSD"),
            line("pagerank", "expand", "pagerank, ExPAND"),
            line("btree", "cxl-ssd", "btree, CXL-SSD"),
        ],
        is_logarithmic: false,
    };
    let effective = |program: &str| {
        let name = format!("program=\"{program}\"");
        let base = milliseconds("cxl-ssd", &with(&[&name]));
        let point = |percent: u32| {
            let share = f64::from(percent) / 100.0;
            let [accuracy, coverage] = ["accuracy", "coverage"].map(|of| format!("ahead.oracle_{of}={share:.2}"));
            (f64::from(percent), base / milliseconds("oracle", &with(&[&name, &accuracy, &coverage])))
        };
        (program.to_owned(), [50, 60, 70, 80, 90, 95, 100].map(point).to_vec())
    };
    let effectiveness = Panel {
        title: "Gain by effectiveness of an oracle".to_owned(),
        x: "accuracy and coverage, %",
        lines: ["libquantum", "pagerank", "btree"].map(effective).into(),
        is_logarithmic: false,
    };
    hold(
        "memory-sweeps.svg",
        &picture("Switches before the device, and predictors by how good they are", &[switches, effectiveness]),
    );
}

#[test]
#[ignore = "some seconds: make test-long"]
fn the_time_of_a_request() {
    let designs = ["cxl-dram", "pcie-ssd", "cxl-ssd", "cxl-assd", "expand"];
    let mut bars = String::new();
    let mut names = Vec::new();
    for (row, program) in ["libquantum", "pagerank", "btree"].into_iter().enumerate() {
        let split = |design: &&str| {
            let short = ["accesses=100000", "warm_accesses=100000"];
            let program = format!("program=\"{program}\"");
            let measured = run(design, &[&short[..], &[&program]].concat());
            names = measured.result.causes.iter().map(|cause| cause.label).collect();
            measured.result.latency_split[0].parts_us.clone()
        };
        let splits: Vec<Vec<f64>> = designs.iter().map(split).collect();
        let most = splits.iter().map(|parts| parts.iter().sum::<f64>()).fold(0.0, f64::max);
        let top = 20.0 + 130.0 * row as f64;
        writeln!(bars, "<text x=\"20\" y=\"{top:.0}\" font-weight=\"bold\">{program}</text>")
            .expect("a string takes all");
        for (number, (design, parts)) in designs.iter().zip(&splits).enumerate() {
            let y = top + 8.0 + 20.0 * number as f64;
            writeln!(bars, "<text x=\"80\" y=\"{:.0}\" text-anchor=\"end\">{design}</text>", y + 12.0)
                .expect("a string takes all");
            let mut x = 88.0;
            for (part, us) in parts.iter().enumerate() {
                let width = us / most * 480.0;
                writeln!(
                    bars,
                    "<rect x=\"{x:.1}\" y=\"{y:.0}\" width=\"{width:.1}\" height=\"15\" fill=\"{}\"/>",
                    COLOURS[part]
                )
                .expect("a string takes all");
                x += width;
            }
            writeln!(
                bars,
                "<text x=\"{:.1}\" y=\"{:.0}\">{:.2} us</text>",
                x + 6.0,
                y + 12.0,
                parts.iter().sum::<f64>()
            )
            .expect("a string takes all");
        }
    }
    for (part, name) in names.iter().enumerate() {
        let x = 20 + 130 * part;
        writeln!(
            bars,
            "<rect x=\"{x}\" y=\"402\" width=\"12\" height=\"12\" fill=\"{}\"/><text x=\"{}\" y=\"412\">{name}</text>",
            COLOURS[part],
            x + 17
        )
        .expect("a string takes all");
    }
    hold(
        "memory-split.svg",
        &format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 680 424\" font-family=\"sans-serif\" font-size=\"11\" role=\"img\"><title>Mean time of a request by its parts</title><rect width=\"680\" height=\"424\" fill=\"#fff\"/>\n{bars}</svg>\n"
        ),
    );
}
