//! The tables and the picture of `docs/combinations.md`: mechanisms of different sources in one memory machine.
//!
//! The page is held against runs of today. `FLASHYARD_WRITE_TABLES=1` writes it again, with its picture:
//!
//! ```text
//! FLASHYARD_WRITE_TABLES=1 cargo test --profile quick -p flashyard-far-memory --test combinations -- --ignored
//! ```

#![expect(clippy::disallowed_methods, reason = "a test reads and writes the page that it holds; no model sees it")]

use flashyard_describe::{NoFiles, Room, Rooms};
use flashyard_far_memory::room::MemoryRoom;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt::Write;

static LANGUAGE: Rooms = Rooms::new(&[&MemoryRoom]);
const TEXT: &str = include_str!("../../../../scenarios/memory-combined/scenario.toml");
const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../docs/combinations.md");
const MEMORY_PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../docs/memory.md");
const PICTURE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../docs/images/combinations.svg");

/// Figures of a run.
#[derive(Clone, Copy, Debug)]
struct Run {
    milliseconds: f64,
    /// Share of requests that need no medium.
    hits: f64,
    p999_us: f64,
    reads: f64,
    writes: f64,
    rounds: f64,
    hints: f64,
    metadata: f64,
    lent: f64,
    withdrawn: f64,
    /// Mean and p99 of commits, and how many there were.
    commits: [f64; 3],
}

/// Runs that were made, by what makes them.
#[derive(Default)]
struct Runs(BTreeMap<String, Run>);

impl Runs {
    fn of(&mut self, design: &str, settings: &[String]) -> Run {
        let name = format!("{design} {}", settings.join(" "));
        *self.0.entry(name).or_insert_with(|| run(design, settings))
    }
}

fn run(design: &str, settings: &[String]) -> Run {
    let resolved = LANGUAGE.resolve(TEXT, "scenario.toml", settings, &NoFiles);
    let scenario = resolved.unwrap_or_else(|error| panic!("{settings:?}: {error}")).scenario;
    let room = MemoryRoom.run().expect("it runs");
    let measured = (room.design)(&scenario, design, &NoFiles, &mut |_| true).expect("it runs");
    assert!(measured.result.laws.hold, "{design} {settings:?}: {:?}", measured.result.laws.broken);
    let json = serde_json::to_value(&measured.result).expect("it is plain data");
    let of = |pointer: &str| json.pointer(pointer).and_then(Value::as_f64).unwrap_or(0.0);
    Run {
        milliseconds: of("/window_seconds") * 1e3,
        hits: of("/device_hits"),
        p999_us: of("/latency_us/p999"),
        reads: of("/flash/reads"),
        writes: of("/flash/writes"),
        rounds: of("/flash/collection_rounds"),
        hints: of("/hints"),
        metadata: of("/device_metadata_reads"),
        lent: of("/lent/hits"),
        withdrawn: of("/lent/withdrawn"),
        commits: ["/commits/mean_us", "/commits/p99_us", "/commits/count"].map(of),
    }
}

fn settings(of: &[(&str, &str)]) -> Vec<String> {
    of.iter().map(|(key, value)| format!("memory.{key}={value}")).collect()
}

/// A number with as many digits as say something.
fn short(value: f64) -> String {
    match value {
        _ if value == 0.0 => "0".to_owned(),
        _ if value >= 100.0 => format!("{value:.0}"),
        _ if value >= 10.0 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

/// Annotations, as a table names them: shares of functions and of requests.
const ANNOTATED: [(&str, &str, &str); 4] =
    [("none", "0.0", "0.0"), ("bufferable", "1.0", "0.0"), ("deterministic", "0.0", "1.0"), ("both", "1.0", "1.0")];

const PROGRAMS: [&str; 3] = ["libquantum", "pagerank", "btree"];

fn annotated(runs: &mut Runs, program: &str, design: &str, (name, functions, requests): (&str, &str, &str)) -> Run {
    let program = format!("\"{program}\"");
    let mut of = vec![("program", program.as_str())];
    if name != "none" {
        of.extend([("combine.annotations", "true"), ("annotations.functions", functions)]);
        of.push(("annotations.requests", requests));
    }
    runs.of(design, &settings(&of))
}

/// Annotations of CXL-SSD with the prefetcher of ExPAND.
fn annotations(runs: &mut Runs, programs: &[&str]) -> String {
    let mut text = "| program | annotations | CXL-SSD, ms | gain | ExPAND, ms | gain | both over the product | p99.9 with ExPAND, us | rounds of collection with ExPAND |\n|---|---|--:|--:|--:|--:|--:|--:|--:|\n".to_owned();
    for program in programs {
        let base = annotated(runs, program, "cxl-ssd", ANNOTATED[0]).milliseconds;
        let pushed = base / annotated(runs, program, "expand", ANNOTATED[0]).milliseconds;
        for kind in ANNOTATED {
            let plain = annotated(runs, program, "cxl-ssd", kind).milliseconds;
            let expand = annotated(runs, program, "expand", kind);
            let whole = base / expand.milliseconds;
            writeln!(
                text,
                "| `{program}` | {} | {} | {} | {} | {} | {} | {} | {:.0} |",
                kind.0,
                short(plain),
                short(base / plain),
                short(expand.milliseconds),
                short(whole),
                short(whole / (pushed * base / plain)),
                short(expand.p999_us),
                expand.rounds
            )
            .expect("a string takes all");
        }
    }
    text
}

/// Hints of CXL-GPU for a processor.
fn hints(runs: &mut Runs, programs: &[&str]) -> String {
    let mut text = "| program | internal DRAM caches | hints | ms | gain | pages read | hints sent |\n|---|---|---|--:|--:|--:|--:|\n".to_owned();
    for program in programs {
        for (caches, about) in [("true", "loads and stores"), ("false", "stores alone")] {
            let name = format!("\"{program}\"");
            let mut base = f64::NAN;
            for kind in ["none", "naive", "dynamic", "window", "largest"] {
                let quoted = format!("\"{kind}\"");
                let of = [("program", name.as_str()), ("endpoint.caches_loads", caches), ("combine.hints", &quoted)];
                let run = runs.of("cxl-ssd", &settings(&of));
                if kind == "none" {
                    base = run.milliseconds;
                }
                writeln!(
                    text,
                    "| `{program}` | {about} | {kind} | {} | {} | {:.0} | {:.0} |",
                    short(run.milliseconds),
                    short(base / run.milliseconds),
                    run.reads,
                    run.hints
                )
                .expect("a string takes all");
            }
        }
    }
    text
}

/// The index of Ginkgo in the internal DRAM of a device, and its rivals.
fn indices(runs: &mut Runs, programs: &[&str]) -> String {
    let mut text = "| program | pages are found | SRAM | ms | gain | internal DRAM answers | reads for metadata a thousand pages read |\n|---|---|--:|--:|--:|--:|--:|\n".to_owned();
    for program in programs {
        let name = format!("\"{program}\"");
        let mut base = f64::NAN;
        for (index, about) in [
            ("policy", "anywhere, places known"),
            ("table", "anywhere, by a table"),
            ("direct", "by number"),
            ("sets", "in sets of four"),
            ("learned", "by a learned function"),
        ] {
            for sram in ["1 KiB", "64 KiB"] {
                let without = matches!(index, "policy" | "direct");
                if without && sram == "1 KiB" {
                    continue;
                }
                let (index, sram_of) = (format!("\"{index}\""), format!("\"{sram}\""));
                let mut of = vec![
                    ("program", name.as_str()),
                    ("endpoint.cache", "\"128 MiB\""),
                    ("warm_accesses", "4000000"),
                    ("accesses", "2000000"),
                    ("combine.index", &index),
                    ("combine.sram", &sram_of),
                ];
                if *program == "gcc" {
                    // Changed pages that leave would blur what placement does.
                    of.push(("mix.gcc.stores", "0.0"));
                }
                let run = runs.of("cxl-ssd", &settings(&of));
                if base.is_nan() {
                    base = run.milliseconds;
                }
                writeln!(
                    text,
                    "| `{program}` | {about} | {} | {} | {} | {:.1} % | {:.0} |",
                    if without { "–" } else { sram },
                    short(run.milliseconds),
                    short(base / run.milliseconds),
                    run.hits * 100.0,
                    run.metadata / run.reads * 1e3
                )
                .expect("a string takes all");
            }
        }
    }
    text
}

/// DRAM that idle drives lend to a device, as in XBOF.
fn lent(runs: &mut Runs, accesses: &str) -> String {
    let mut text = "| lenders of 64 MiB | idle, busy | switches | ms | gain | pages read | requests that lent DRAM answers | pages withdrawn |\n|--:|---|--:|--:|--:|--:|--:|--:|\n".to_owned();
    let mut base = f64::NAN;
    let mut row = |lenders: &str, (idle, busy, about): (&str, &str, &str), switches: &str, cache: &str| {
        let [cache, idle, busy] = [cache, idle, busy].map(|value| format!("\"{value}\""));
        let mut of = vec![
            ("program", "\"btree\""),
            ("endpoint.cache", cache.as_str()),
            ("warm_accesses", "1000000"),
            ("accesses", accesses),
        ];
        if lenders != "0" {
            of.extend([("combine.lenders", lenders), ("combine.lender_idle", &idle), ("combine.lender_busy", &busy)]);
            of.push(("combine.lender_path.switches", switches));
        }
        let run = runs.of("cxl-ssd", &settings(&of));
        if base.is_nan() {
            base = run.milliseconds;
        }
        writeln!(
            text,
            "| {} | {about} | {} | {} | {} | {:.0} | {:.0} | {:.0} |",
            if cache == "\"16 MiB\"" {
                lenders.to_owned()
            } else {
                format!("{lenders}; {} of its own", cache.trim_matches('"'))
            },
            if lenders == "0" { "–" } else { switches },
            short(run.milliseconds),
            short(base / run.milliseconds),
            run.reads,
            run.lent,
            run.withdrawn
        )
        .expect("a string takes all");
    };
    let (always, long) = (("1000 s", "10 ms", "always idle"), ("200 ms", "10 ms", "200 ms, 10 ms"));
    let (even, short) = (("20 ms", "10 ms", "20 ms, 10 ms"), ("2 ms", "10 ms", "2 ms, 10 ms"));
    row("0", ("1 s", "1 s", "–"), "1", "16 MiB");
    for lenders in ["1", "2", "4"] {
        for times in [always, long, even, short] {
            row(lenders, times, "1", "16 MiB");
        }
    }
    row("2", always, "4", "16 MiB");
    row("0", ("1 s", "1 s", "–"), "1", "80 MiB");
    row("0", ("1 s", "1 s", "–"), "1", "144 MiB");
    text
}

/// Records of a journal by stores that persist, and by flushes of everything.
fn commits(runs: &mut Runs) -> String {
    let mut text = "| lines that a transaction changes | medium | a commit by a persistent store, mean (p99), us | by a global flush, mean (p99), us | pages written a commit | by a flush |\n|--:|---|--:|--:|--:|--:|\n".to_owned();
    for medium in ["Z-NAND", "PMEM"] {
        for updates in ["1", "4", "16", "64"] {
            let [store, flush] = [("cxl-assd", "\"store\""), ("cxl-ssd", "\"flush\"")].map(|(design, commit)| {
                let mut of = vec![
                    ("program", "\"journal\""),
                    ("journal.journal.updates", updates),
                    ("journal.journal.commit", commit),
                    ("accesses", "20000"),
                    ("warm_accesses", "4000"),
                ];
                if medium == "PMEM" {
                    of.push(("medium", "\"pmem\""));
                }
                runs.of(design, &settings(&of))
            });
            let time = |run: &Run| format!("{} ({})", short(run.commits[0]), short(run.commits[1]));
            // Writes are those of the whole run, a sixth of which is not measured.
            let pages = |run: &Run| match medium {
                "PMEM" => "–".to_owned(),
                _ => short(run.writes / (run.commits[2] * 1.2)),
            };
            writeln!(
                text,
                "| {updates} | {medium} | {} | {} | {} | {} |",
                time(&store),
                time(&flush),
                pages(&store),
                pages(&flush)
            )
            .expect("a string takes all");
        }
    }
    text
}

/// Bars: gains of annotations, of pushes, and of both.
fn picture(runs: &mut Runs) -> String {
    const COLOURS: [&str; 3] = ["#8da0cb", "#66a61e", "#d95f02"];
    let mut bars = String::new();
    for (group, program) in PROGRAMS.into_iter().enumerate() {
        let base = annotated(runs, program, "cxl-ssd", ANNOTATED[0]).milliseconds;
        let gains = [("cxl-ssd", ANNOTATED[3]), ("expand", ANNOTATED[0]), ("expand", ANNOTATED[3])]
            .map(|(design, kind)| base / annotated(runs, program, design, kind).milliseconds);
        let left = 70 + 220 * group;
        for (number, gain) in gains.into_iter().enumerate() {
            let (x, height) = (left + 55 * number, 25.0 * gain.max(0.02));
            let y = 250.0 - height;
            writeln!(
                bars,
                "<rect x=\"{x}\" y=\"{y:.1}\" width=\"48\" height=\"{height:.1}\" fill=\"{}\"/>",
                COLOURS[number]
            )
            .expect("a string takes all");
            writeln!(bars, "<text x=\"{}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>", x + 24, y - 5.0, short(gain))
                .expect("a string takes all");
        }
        writeln!(bars, "<text x=\"{}\" y=\"270\" text-anchor=\"middle\">{program}</text>", left + 79)
            .expect("a string takes all");
    }
    let mut legend = String::new();
    for (number, name) in ["annotations", "pushed lines", "both"].into_iter().enumerate() {
        let x = 70 + 150 * number;
        let colour = COLOURS[number];
        writeln!(legend, "<rect x=\"{x}\" y=\"288\" width=\"12\" height=\"12\" fill=\"{colour}\"/><text x=\"{}\" y=\"298\">{name}</text>", x + 18)
            .expect("a string takes all");
    }
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 740 310\" font-family=\"sans-serif\" font-size=\"12\" role=\"img\"><title>Gains over CXL-SSD of annotations, of pushed lines and of both</title><rect width=\"740\" height=\"310\" fill=\"#fff\"/>\n<text x=\"20\" y=\"24\" font-weight=\"bold\">Times as fast as CXL-SSD</text>\n<path d=\"M60 225H720\" stroke=\"#ddd\"/><text x=\"54\" y=\"229\" text-anchor=\"end\">1</text>\n<path d=\"M60 250H720\" stroke=\"#888\"/>\n{bars}{legend}</svg>\n"
    )
}

/// The page with tables between their marks.
fn page(old: &str, tables: &[(&str, String)]) -> String {
    let mut page = old.to_owned();
    for (name, table) in tables {
        let (begin, end) = (format!("<!-- generated: {name} -->\n"), format!("<!-- end of {name} -->\n"));
        let (before, rest) = page.split_once(&begin).unwrap_or_else(|| panic!("{begin:?} is not in the page"));
        let (_, after) = rest.split_once(&end).unwrap_or_else(|| panic!("{end:?} is not in the page"));
        page = format!("{before}{begin}{table}{end}{after}");
    }
    page
}

#[test]
#[ignore = "four minutes: make test-long"]
fn the_tables_of_the_page_are_those_of_today() {
    let mut runs = Runs::default();
    let tables = [
        ("annotations", annotations(&mut runs, &PROGRAMS)),
        ("hints", hints(&mut runs, &PROGRAMS)),
        ("indices", indices(&mut runs, &["gcc", "btree"])),
        ("lent", lent(&mut runs, "2000000")),
    ];
    let old = std::fs::read_to_string(PAGE).expect("the page is there");
    let new = page(&old, &tables);
    if std::env::var_os("FLASHYARD_WRITE_TABLES").is_some() {
        std::fs::write(PAGE, &new).expect("it can be written");
        std::fs::write(PICTURE, picture(&mut runs)).expect("it can be written");
    }
    assert!(
        std::env::var_os("FLASHYARD_WRITE_TABLES").is_some() || old == new,
        "FLASHYARD_WRITE_TABLES=1 writes {PAGE}"
    );
    assert_eq!(std::fs::read_to_string(PICTURE).expect("the picture is there"), picture(&mut runs));
}

#[test]
#[ignore = "half a minute: make test-long"]
fn the_table_of_commits_is_that_of_today() {
    let old = std::fs::read_to_string(MEMORY_PAGE).expect("the page is there");
    let new = page(&old, &[("commits", commits(&mut Runs::default()))]);
    if std::env::var_os("FLASHYARD_WRITE_TABLES").is_some() {
        std::fs::write(MEMORY_PAGE, &new).expect("it can be written");
    } else {
        assert_eq!(old, new, "FLASHYARD_WRITE_TABLES=1 writes {MEMORY_PAGE}");
    }
}

#[test]
fn annotations_help_a_device_that_pushes_as_one_that_does_not_where_a_stream_changes_its_pages() {
    let small = settings(&[
        ("program", "\"libquantum\""),
        ("accesses", "60000"),
        ("warm_accesses", "60000"),
        ("ahead.training_requests", "500"),
        ("ahead.training_epochs", "1"),
        // Superblocks of which even a short run changes several.
        ("flash.pages_per_block", "8"),
    ]);
    let with = settings(&[("combine.annotations", "true")]);
    let time = |design, annotated: bool| {
        let all: Vec<String> = small.iter().chain(if annotated { &with[..] } else { &[] }).cloned().collect();
        run(design, &all)
    };
    let [plain, annotated] = [false, true].map(|annotated| time("cxl-ssd", annotated));
    let [pushed, both] = [false, true].map(|annotated| time("expand", annotated));
    assert!(annotated.milliseconds < 0.5 * plain.milliseconds, "{plain:?} {annotated:?}");
    assert!(both.milliseconds < 0.5 * pushed.milliseconds, "{pushed:?} {both:?}");
    assert!(annotated.rounds == 0.0 && plain.rounds > 0.0 && plain.writes > 0.0, "collection waits for guards");
    // A design that annotates by itself does nothing else than one that was told to.
    assert_eq!(format!("{annotated:?}"), format!("{:?}", time("cxl-assd", false)));
}
