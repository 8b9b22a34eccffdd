use super::write_parquet;
use flashyard_columns::{TableReader, Values};
use flashyard_report::{
    CAUSES, DesignDetail, DesignResult, DriveResult, DriveTimeline, Equipment, Explorer, HarvestResult, LatencyBucket,
    LatencySummary, Laws, Lending, LentResource, ReportDocument, RunReport, SearchResult, SplitRow, Timeline,
};
use std::fs::File;
use std::path::Path;

const FILES: [&str; 6] = ["timeline", "latency_histogram", "latency_split", "lending", "drives", "explorer"];

fn drive_result(name: &str) -> DriveResult {
    DriveResult {
        name: name.to_owned(),
        ios: 10,
        read_bytes: 40_960,
        write_bytes: 0,
        throughput_bytes_per_s: 81_920.0,
        iops: 20.0,
        latency_us: LatencySummary { mean: 70.0, p50: 69.0, p99: 99.0, p999: 101.0, max: 102.0 },
        processor_utilization: 0.5,
        lent_utilization: 0.25,
        redirected_share: 0.5,
        redirected_swing: 0.25,
        redirected_settled_seconds: Some(0.125),
        flash_utilization: 0.75,
        mapping_miss_ratio: 0.125,
        write_amplification: 1.5,
        energy_joules: 3.0,
        bom_dollars: 900.0,
        wear: None,
    }
}

fn design_result(name: &str) -> DesignResult {
    let parts_us = std::array::from_fn(|index| index as f64);
    DesignResult {
        point: Vec::new(),
        name: name.to_owned(),
        design: name.to_owned(),
        computes_on_host: false,
        window_seconds: 0.5,
        ios: 20,
        read_bytes: 81_920,
        write_bytes: 0,
        throughput_bytes_per_s: 163_840.0,
        iops: 40.0,
        latency_us: LatencySummary::default(),
        latency_split: vec![SplitRow { at: "mean".to_owned(), requests: 20, latency_us: 45.0, parts_us }],
        processor_utilization: 0.5,
        flash_utilization: 0.75,
        mapping_miss_ratio: 0.125,
        write_amplification: 1.5,
        energy_joules: 6.0,
        energy_joules_per_gb: Some(6.0 / (81_920.0 / 1e9)),
        halves: Vec::new(),
        bom_dollars: 1800.0,
        throughput_bytes_per_s_per_dollar: 91.0,
        host_utilization: 0.1,
        redirected_share: 0.2,
        lent_segments: 3,
        harvest: HarvestResult::default(),
        search: SearchResult::default(),
        laws: Laws { hold: true, broken: Vec::new() },
        drives: vec![drive_result("ssd0"), drive_result("ssd1")],
    }
}

/// Two intervals, the second one shorter.
fn drive_timeline(name: &str, base: f64) -> DriveTimeline {
    let series = |offset: f64| vec![base + offset, base + offset + 0.5];
    DriveTimeline {
        name: name.to_owned(),
        read_bytes_per_s: series(1.0),
        write_bytes_per_s: series(2.0),
        iops: series(3.0),
        latency_mean_us: vec![None, Some(base)],
        processor_utilization: series(0.0),
        lent_utilization: series(0.0),
        redirected_share: series(0.0),
        bus_utilization: series(0.0),
        die_utilization: series(0.0),
        mapping_miss_ratio: vec![Some(0.25), None],
        write_amplification: vec![None, None],
    }
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
            drives: vec![drive_timeline("ssd0", 100.0), drive_timeline("ssd1", 200.0)],
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

pub(crate) fn document(designs: &[&str]) -> ReportDocument {
    ReportDocument {
        report: RunReport {
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
        },
        details: designs.iter().map(|name| detail(name)).collect(),
        causes: CAUSES,
        resolved: String::new(),
        version: "1.2.3".to_owned(),
    }
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
    write_parquet(directory.path(), &document(&["conv", "xbof"])).expect("it can be written");
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
    assert_eq!(column(&timeline, "write_amplification_ratio"), Values::OptionalF64(vec![None; 8]));
}

#[test]
fn distributions_lending_and_drives_are_those_of_the_report() {
    let directory = tempfile::tempdir().expect("a temporary directory can be made");
    write_parquet(&directory.path().join("new"), &document(&["xbof"])).expect("it can be written");
    let path = directory.path().join("new");
    let histogram = table(&path, "latency_histogram");
    assert_eq!(column(&histogram, "up_to_us"), Values::F64(vec![69.0, 102.0]));
    assert_eq!(column(&histogram, "requests"), Values::U64(vec![15, 5]));
    let split = table(&path, "latency_split");
    assert_eq!(column(&split, "at"), text(&["mean"]));
    for (index, cause) in CAUSES.iter().enumerate() {
        assert_eq!(column(&split, &format!("{}_us", cause.key)), Values::F64(vec![index as f64]));
    }
    let lending = table(&path, "lending");
    assert_eq!(column(&lending, "lender"), text(&["ssd1", "ssd1"]));
    assert_eq!(column(&lending, "borrower"), text(&["ssd0", "ssd0"]));
    assert_eq!((column(&lending, "resource"), column(&lending, "unit")), (text(&["memory"; 2]), text(&["MiB"; 2])));
    assert_eq!(column(&lending, "amount"), Values::F64(vec![64.0, 0.0]));
    let drives = table(&path, "drives");
    assert_eq!(column(&drives, "drive"), text(&["ssd0", "ssd1"]));
    assert_eq!(column(&drives, "latency_p999_us"), Values::F64(vec![101.0; 2]));
    assert_eq!(column(&drives, "bom_dollars"), Values::F64(vec![900.0; 2]));
}

#[test]
fn the_explorer_has_a_row_for_each_run_of_a_sweep() {
    let directory = tempfile::tempdir().expect("a temporary directory can be made");
    let mut document = document(&["conv", "xbof"]);
    let designs = &mut document.report.designs;
    (designs[1].point, designs[1].bom_dollars) = (vec!["jbof.shrunk_cores=0.5".to_owned()], 1500.0);
    let equipment =
        ["conv", "xbof"].map(|design| Equipment { design: design.to_owned(), cores: 3, ..Equipment::default() });
    document.report.explorer = Explorer::new(designs, &equipment, "conv", 5.0);
    write_parquet(directory.path(), &document).expect("it can be written");
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
        write_parquet(directory.path(), document).expect("it can be written");
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
    write_parquet(directory.path(), &document(&[])).expect("it can be written");
    for name in FILES {
        assert_eq!(table(directory.path(), name).rows(), 0, "{name}");
    }
}

#[test]
fn every_column_is_in_the_page_on_results() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../docs/results.md");
    let page = std::fs::read_to_string(page).expect("the page is there");
    let directory = tempfile::tempdir().expect("a temporary directory can be made");
    write_parquet(directory.path(), &document(&["conv"])).expect("it can be written");
    for name in FILES {
        assert!(page.contains(&format!("`{name}.parquet`")), "{name}.parquet");
        for (column, _) in table(directory.path(), name).fields() {
            assert!(page.contains(&format!("`{column}`")), "{name}.parquet: {column}");
        }
    }
}
