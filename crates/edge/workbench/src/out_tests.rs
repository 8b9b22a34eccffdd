use crate::out::write_run_tables;
use crate::run_tables;
use flashyard_columns::{TableReader, Values};
use flashyard_report::{
    ByKind, Cause, Component, ComponentKind, ComponentTimeline, DRIVE, Declaration, DesignDetail, DesignResult, ENERGY,
    ENERGY_PER_GB, Equipment, Explorer, IOS, LATENCY_P99, LATENCY_P999, LatencyBucket, Laws, Lending, LentResource,
    Metric, PRICE, Part, ReportDocument, RunReport, SplitRow, THROUGHPUT, Timeline, Unit, Value, component_tables,
    run_table, split_table,
};
use flashyard_scenario::result::DECLARATION;
use std::borrow::Cow;
use std::fs::File;
use std::path::Path;

const FILES: [&str; 6] = ["timeline", "latency_histogram", "latency_split", "lending", "drives", "explorer"];

static READ_RATE: Metric = Metric::number("read_bytes_per_s", "Data read", Unit::BytesPerSecond, "bytes a second read");
static MEAN: Metric = Metric::maybe("latency_mean_us", "Latency, mean", Unit::Microseconds, "mean latency");
static SETTLED: Metric = Metric::maybe("settled_seconds", "Settled", Unit::Seconds, "until it settles");

/// Declaration of the made-up system of these tests.
static DECLARED: Declaration = Declaration {
    metrics: || vec![&THROUGHPUT, &IOS, &LATENCY_P99, &PRICE, &ENERGY, &ENERGY_PER_GB],
    shown: &[&THROUGHPUT, &PRICE],
    parts: &[Part {
        kind: &DRIVE,
        metrics: || vec![&IOS, &LATENCY_P999, &SETTLED, &PRICE],
        series: || vec![&READ_RATE, &MEAN],
        timeline: "timeline",
        shown: &[],
    }],
    causes: &[
        Cause { key: "host", label: "Host software", note: "on host cores" },
        Cause { key: "die", label: "Flash die", note: "array time" },
    ],
    tables: &[],
};

fn drive(name: &str) -> Component {
    let figures: [(&Metric, Value); 4] =
        [(&IOS, 10_u64.into()), (&LATENCY_P999, 101.0.into()), (&SETTLED, Some(0.125).into()), (&PRICE, 900.0.into())];
    Component { name: name.to_owned(), figures: figures.into_iter().collect() }
}

fn design_result(name: &str) -> DesignResult {
    let joules = 6.0;
    let figures: [(&Metric, Value); 6] = [
        (&THROUGHPUT, 163_840.0.into()),
        (&IOS, 20_u64.into()),
        (&LATENCY_P99, 99.0.into()),
        (&PRICE, 1800.0.into()),
        (&ENERGY, joules.into()),
        (&ENERGY_PER_GB, Some(joules / (81_920.0 / 1e9)).into()),
    ];
    DesignResult {
        point: Vec::new(),
        name: name.to_owned(),
        design: name.to_owned(),
        computes_on_host: false,
        declared: &DECLARED,
        figures: figures.into_iter().collect(),
        latency_split: vec![SplitRow {
            at: "mean".to_owned(),
            requests: 20,
            latency_us: 45.0,
            parts_us: vec![0.0, 45.0],
        }],
        causes: DECLARED.causes.to_vec(),
        halves: Vec::new(),
        laws: Laws { hold: true, broken: Vec::new() },
        components: ByKind::new(&DRIVE, vec![drive("ssd0"), drive("ssd1")]),
    }
}

/// Two intervals, the second one shorter.
fn timeline_of(name: &str, base: f64) -> ComponentTimeline {
    let series = vec![(&READ_RATE, vec![Some(base + 1.0), Some(base + 1.5)]), (&MEAN, vec![None, Some(base)])];
    ComponentTimeline { name: name.to_owned(), series }
}

fn detail(name: &str) -> DesignDetail {
    DesignDetail {
        name: name.to_owned(),
        latency: vec![LatencyBucket { up_to_us: 69.0, requests: 15 }, LatencyBucket { up_to_us: 102.0, requests: 5 }],
        timeline: Timeline {
            interval_seconds: 0.5,
            begin_seconds: vec![0.0, 0.5],
            end_seconds: 0.75,
            measured_from_seconds: 0.25,
            measured_to_seconds: 0.75,
            components: ByKind::new(&DRIVE, vec![timeline_of("ssd0", 100.0), timeline_of("ssd1", 200.0)]),
        },
        lending: vec![Lending {
            resource: LentResource::Memory,
            lender: 1,
            borrower: 0,
            amount: vec![64.0, 0.0],
            mean: 42.0,
        }],
        ..DesignDetail::default()
    }
}

fn document(designs: &[&str]) -> ReportDocument {
    let report = RunReport {
        scenario: "test".to_owned(),
        title: String::new(),
        command: String::new(),
        about: Vec::new(),
        closed_loop: true,
        notes: Vec::new(),
        seed: 7,
        simulated_seconds: 0.75,
        wall_seconds: 1.0,
        workload: "none".to_owned(),
        scaling: Vec::new(),
        complete: true,
        designs: designs.iter().map(|name| design_result(name)).collect(),
        explorer: None,
        seeds: None,
        failed: Vec::new(),
        interrupted: false,
    };
    ReportDocument::new(&DECLARED, report, designs.iter().map(|name| detail(name)).collect(), "", "1.2.3")
}

fn table(directory: &Path, name: &str) -> TableReader {
    let file = File::open(directory.join(format!("{name}.parquet"))).expect("it was written");
    TableReader::new(file).expect("it is a table")
}

fn column(table: &TableReader, name: &str) -> Values {
    table.column(name).expect("it reads").unwrap_or_else(|| panic!("there is no column {name}"))
}

fn text(values: &[&str]) -> Values {
    Values::Text(values.iter().map(|&value| value.to_owned()).collect())
}

#[test]
fn the_timeline_has_a_row_for_each_interval_of_each_drive() {
    let directory = tempfile::tempdir().expect("a temporary directory can be made");
    write_run_tables(directory.path(), &document(&["conv", "xbof"])).expect("it can be written");
    let timeline = table(directory.path(), "timeline");
    assert_eq!((timeline.rows(), timeline.metadata("flashyard.seed")), (8, Some("7")));
    let designs = ["conv", "conv", "conv", "conv", "xbof", "xbof", "xbof", "xbof"];
    assert_eq!(column(&timeline, "design"), text(&designs));
    assert_eq!(column(&timeline, "drive"), text(&["ssd0", "ssd0", "ssd1", "ssd1", "ssd0", "ssd0", "ssd1", "ssd1"]));
    assert_eq!(column(&timeline, "begin_seconds"), Values::F64([0.0, 0.5].repeat(4)));
    assert_eq!(column(&timeline, "end_seconds"), Values::F64([0.5, 0.75].repeat(4)));
    assert_eq!(column(&timeline, "read_bytes_per_s"), Values::F64([101.0, 101.5, 201.0, 201.5].repeat(2)));
    let latencies = [None, Some(100.0), None, Some(200.0)].repeat(2);
    assert_eq!(column(&timeline, "latency_mean_us"), Values::OptionalF64(latencies));
}

#[test]
fn distributions_lending_and_drives_are_those_of_the_report() {
    let directory = tempfile::tempdir().expect("a temporary directory can be made");
    write_run_tables(&directory.path().join("new"), &document(&["xbof"])).expect("it can be written");
    let path = directory.path().join("new");
    let histogram = table(&path, "latency_histogram");
    assert_eq!(column(&histogram, "up_to_us"), Values::F64(vec![69.0, 102.0]));
    assert_eq!(column(&histogram, "requests"), Values::U64(vec![15, 5]));
    let split = table(&path, "latency_split");
    assert_eq!(column(&split, "at"), text(&["mean"]));
    assert_eq!([column(&split, "host_us"), column(&split, "die_us")], [0.0, 45.0].map(|us| Values::F64(vec![us])));
    let lending = table(&path, "lending");
    assert_eq!(column(&lending, "lender"), text(&["ssd1", "ssd1"]));
    assert_eq!(column(&lending, "borrower"), text(&["ssd0", "ssd0"]));
    assert_eq!((column(&lending, "resource"), column(&lending, "unit")), (text(&["memory"; 2]), text(&["MiB"; 2])));
    assert_eq!(column(&lending, "amount"), Values::F64(vec![64.0, 0.0]));
    let drives = table(&path, "drives");
    assert_eq!(column(&drives, "drive"), text(&["ssd0", "ssd1"]));
    assert_eq!(column(&drives, "latency_p999_us"), Values::OptionalF64(vec![Some(101.0); 2]));
    assert_eq!(column(&drives, "bom_dollars"), Values::F64(vec![900.0; 2]));
    assert_eq!(column(&drives, "requests"), Values::U64(vec![10; 2]));
    assert_eq!(column(&drives, "settled_seconds"), Values::OptionalF64(vec![Some(0.125); 2]));
}

#[test]
fn the_explorer_has_a_row_for_each_run_of_a_sweep() {
    let directory = tempfile::tempdir().expect("a temporary directory can be made");
    let mut document = document(&["conv", "xbof"]);
    let designs = &mut document.report.designs;
    designs[1].point = vec!["jbof.shrunk_cores=0.5".to_owned()];
    designs[1].figures.set(&PRICE, 1500.0);
    let equipment =
        ["conv", "xbof"].map(|design| Equipment { design: design.to_owned(), cores: 3, ..Equipment::default() });
    document.report.explorer = Explorer::new(designs, &equipment, "conv", 5.0);
    write_run_tables(directory.path(), &document).expect("it can be written");
    let explorer = table(directory.path(), "explorer");
    assert_eq!(column(&explorer, "design"), text(&["conv", "xbof"]));
    assert_eq!(column(&explorer, "cores"), Values::U32(vec![3, 3]));
    assert_eq!(column(&explorer, "computes_on_host"), Values::U32(vec![0, 0]));
    assert_eq!(column(&explorer, "drive_dollars"), Values::F64(vec![900.0, 750.0]));
    let joules = 6.0 / (81_920.0 / 1e9);
    assert_eq!(column(&explorer, "energy_joules_per_gb"), Values::OptionalF64(vec![Some(joules); 2]));
    assert_eq!(column(&explorer, "on_front_cost_p99"), Values::U32(vec![0, 1]));
    assert_eq!(column(&explorer, "on_front_energy_p99"), Values::U32(vec![1, 1]));
}

#[test]
fn the_same_document_makes_the_same_bytes() {
    let bytes = |document: &ReportDocument| {
        let directory = tempfile::tempdir().expect("a temporary directory can be made");
        write_run_tables(directory.path(), document).expect("it can be written");
        let mut entries: Vec<_> = std::fs::read_dir(directory.path()).expect("it can be listed").collect();
        entries.sort_by_key(|entry| entry.as_ref().map(|entry| entry.file_name()).ok());
        assert_eq!(entries.len(), FILES.len(), "nothing else is left");
        FILES.map(|name| std::fs::read(directory.path().join(format!("{name}.parquet"))).expect("it was written"))
    };
    let mut again = document(&["conv", "xbof"]);
    again.report.wall_seconds = 99.0;
    assert_eq!(bytes(&document(&["conv", "xbof"])), bytes(&again));
    assert_ne!(bytes(&document(&["conv"])), bytes(&again));
}

#[test]
fn a_report_without_designs_has_its_columns() {
    let directory = tempfile::tempdir().expect("a temporary directory can be made");
    write_run_tables(directory.path(), &document(&[])).expect("it can be written");
    for name in FILES {
        assert_eq!(table(directory.path(), name).rows(), 0, "{name}");
    }
}

/// Asks to write `docs/results.md` again.
const WRITE: &str = "FLASHYARD_WRITE_RESULTS";

/// The type of a column in words.
fn kind(values: &Values) -> &'static str {
    match values {
        Values::Text(_) => "text",
        Values::U64(_) => "unsigned 64",
        Values::U32(_) => "unsigned 32",
        Values::F64(_) => "double",
        Values::OptionalF64(_) => "double or null",
    }
}

/// Columns of declared tables that are no metrics.
const NAMES: [(&str, &str); 7] = [
    ("design", "name of the design"),
    ("drive", "name of the drive"),
    ("begin_seconds", "begin of the interval"),
    ("end_seconds", "its end; the last interval may be shorter than the others"),
    ("latency_split.at", "`mean`, `near p50`, `near p99` or `near p99.9`"),
    ("latency_split.requests", "requests that the row averages over: all, or those in a bucket around the percentile"),
    (
        "latency_split.latency_us",
        "their mean latency in microseconds, which is not the percentile itself; the columns below add up to it",
    ),
];

/// The meaning of a column of a declared table.
fn about(document: &ReportDocument, table: &str, column: &str) -> String {
    let of_table = format!("{table}.{column}");
    let names = NAMES.iter().filter(|(name, _)| *name == column || *name == of_table).map(|(_, about)| *about);
    let parts = || document.parts.iter();
    let metrics = parts().filter(|part| part.kind.plural == table).flat_map(|part| (part.metrics)());
    let series = parts().filter(|part| part.timeline == table).flat_map(|part| (part.series)());
    let metrics = metrics.chain(series).filter(|metric| metric.column_name() == column).map(|metric| metric.about);
    let causes = document.causes.iter().filter(|cause| format!("{}_us", cause.key) == column).map(|cause| cause.note);
    names.chain(metrics).chain(causes).next().unwrap_or_else(|| panic!("{of_table} has no meaning")).to_owned()
}

/// `page` with `table` in place of the first one below the heading of `name`.
fn with_table(page: &str, name: &str, table: &str) -> String {
    let heading =
        page.find(&format!("### `{name}.parquet`")).unwrap_or_else(|| panic!("{name}.parquet has no heading"));
    let begin = heading + page[heading..].find("\n|").expect("it has a table") + 1;
    let end = begin + page[begin..].find("\n\n").expect("the table ends") + 1;
    [&page[..begin], table, &page[end..]].concat()
}

/// The tables of declared columns are written from their declarations; `FLASHYARD_WRITE_RESULTS=1` writes them again.
#[test]
fn the_page_on_results_has_the_columns_that_a_jbof_declares() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../docs/results.md");
    let page = std::fs::read_to_string(path).expect("the page is there");
    let report = document(&[]).report;
    let document = ReportDocument::new(&DECLARATION, report, Vec::new(), "", "");
    let mut expected = page.clone();
    let tables = run_tables(&document).expect("there is no lending in it");
    let of_the_house = ["latency_histogram", "lending", "explorer"];
    for (name, columns) in tables.into_iter().filter(|(name, _)| !of_the_house.contains(name)) {
        let row = |(column, values): &(Cow<'_, str>, Values)| {
            format!("| `{column}` | {} | {} |\n", kind(values), about(&document, name, column))
        };
        let head = "| column | type | unit and meaning |\n|---|---|---|\n".to_owned();
        let table: String = std::iter::once(head).chain(columns.iter().map(row)).collect();
        expected = with_table(&expected, name, &table);
        if std::env::var_os(WRITE).is_none() {
            assert!(page.contains(&table), "docs/results.md needs, or {WRITE}=1 writes:\n\n{table}");
        }
    }
    if std::env::var_os(WRITE).is_some() {
        std::fs::write(path, expected).expect("the page can be written");
    }
}

#[test]
fn every_column_is_in_the_page_on_results() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../docs/results.md");
    let page = std::fs::read_to_string(page).expect("the page is there");
    let directory = tempfile::tempdir().expect("a temporary directory can be made");
    write_run_tables(directory.path(), &document(&["conv"])).expect("it can be written");
    for name in FILES {
        assert!(page.contains(&format!("`{name}.parquet`")), "{name}.parquet");
        if ["timeline", "drives", "latency_split"].contains(&name) {
            continue;
        }
        for (column, _) in table(directory.path(), name).fields() {
            assert!(page.contains(&format!("`{column}`")), "{name}.parquet: {column}");
        }
    }
}

static VOLUME: ComponentKind = ComponentKind { id: "volume", plural: "volumes", title: "Volumes" };
static HITS: Metric =
    Metric::number("cache.hit_ratio", "Hits", Unit::Share, "hits for each access").percent("cache\nhits %");
static GUESTS: Metric = Metric::count("guests", "Guests", "guests that share the server").terminal("guests", 1.0, 0);
static QUEUED: Metric = Metric::maybe("queued", "Queued", Unit::Symbol("requests"), "requests that wait");

/// Declaration of a system that nothing but this test knows.
static ANOTHER: Declaration = Declaration {
    metrics: || vec![&GUESTS],
    shown: &[&GUESTS],
    parts: &[Part {
        kind: &VOLUME,
        metrics: || vec![&HITS],
        series: || vec![&QUEUED],
        timeline: "timeline_volumes",
        shown: &[&HITS],
    }],
    causes: &[Cause { key: "exit", label: "Guest exit", note: "leaving the guest and entering it again" }],
    tables: &[],
};

/// The report of that system.
fn another() -> ReportDocument {
    let volume = Component { name: "vol0".to_owned(), figures: [(&HITS, 0.625.into())].into_iter().collect() };
    let ReportDocument { mut report, mut details, .. } = document(&["conv"]);
    let design = &mut report.designs[0];
    (design.declared, design.causes) = (&ANOTHER, ANOTHER.causes.to_vec());
    design.figures = [(&GUESTS, 48_u64.into())].into_iter().collect();
    design.latency_split[0].parts_us = vec![45.0];
    design.components = ByKind::new(&VOLUME, vec![volume]);
    let waits = ComponentTimeline { name: "vol0".to_owned(), series: vec![(&QUEUED, vec![Some(3.0), None])] };
    details[0].timeline.components = ByKind::new(&VOLUME, vec![waits]);
    details[0].lending.clear();
    ReportDocument::new(&ANOTHER, report, details, "", "")
}

#[test]
fn what_a_system_declares_reaches_json_terminal_parquet_and_the_page_with_nothing_else_changed() {
    let document = another();
    let json = serde_json::to_value(&document).expect("it is plain data");
    let design = &json["report"]["designs"][0];
    assert_eq!((&design["guests"], &design["volumes"][0]["cache"]["hit_ratio"]), (&48.into(), &0.625.into()));
    assert_eq!(json["details"][0]["timeline"]["volumes"][0]["queued"], serde_json::json!([3.0, null]));
    assert_eq!(json["components"], serde_json::json!([{ "id": "volume", "plural": "volumes", "title": "Volumes" }]));
    assert_eq!(json["causes"][0]["key"], "exit");
    let metrics = json["metrics"].as_array().expect("there are some");
    let keys: Vec<_> = metrics.iter().map(|metric| (&metric["component"], &metric["key"], &metric["shown"])).collect();
    let (volume, none) = ("volume".into(), serde_json::Value::Null);
    assert_eq!(keys[0], (&none, &"guests".into(), &true.into()));
    assert_eq!(keys[1], (&volume, &"cache.hit_ratio".into(), &true.into()));
    assert_eq!(keys[2], (&volume, &"queued".into(), &false.into()));

    let runs = run_table(&document.report, 80);
    assert!(runs.contains("guests") && runs.contains("48"), "{runs}");
    let [(title, volumes)] = &component_tables(&document.report, 80)[..] else { panic!("volumes have a table") };
    assert!(*title == "Volumes" && volumes.contains("hits %") && volumes.contains("62.5"), "{volumes}");
    assert!(split_table(&document.report, 80).contains("exit"));

    let directory = tempfile::tempdir().expect("a temporary directory can be made");
    write_run_tables(directory.path(), &document).expect("it can be written");
    let volumes = table(directory.path(), "volumes");
    assert_eq!(
        (column(&volumes, "volume"), column(&volumes, "cache_hit_ratio")),
        (text(&["vol0"]), Values::F64(vec![0.625]))
    );
    let timeline = table(directory.path(), "timeline_volumes");
    assert_eq!(column(&timeline, "queued"), Values::OptionalF64(vec![Some(3.0), None]));
    assert_eq!(column(&table(directory.path(), "latency_split"), "exit_us"), Values::F64(vec![45.0]));
}
