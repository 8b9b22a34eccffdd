//! A snapshot in the text format of Prometheus, version 0.0.4.
//!
//! Base units only: seconds, bytes, shares as ratios. Source: the Prometheus exposition formats and naming rules.

use flashyard_report::{DriveSnapshot, DriveState, LentResource, Snapshot};
use std::fmt::Write;

/// Bytes in a MiB.
const MIB: f64 = 1_048_576.0;
/// Seconds in a microsecond.
const US: f64 = 1e-6;

const STATES: [(DriveState, &str); 5] = [
    (DriveState::Ready, "ready"),
    (DriveState::Away, "away"),
    (DriveState::Off, "off"),
    (DriveState::Unlinked, "unlinked"),
    (DriveState::Resetting, "resetting"),
];

/// A figure of every drive: name, kind, help, value; figures that do not exist are left out.
type DriveMetric = (&'static str, &'static str, &'static str, fn(&DriveSnapshot) -> Option<f64>);

const DRIVES: [DriveMetric; 18] = [
    ("read_bytes_total", "counter", "Bytes read.", |d| Some(d.totals.read_bytes as f64)),
    ("write_bytes_total", "counter", "Bytes written.", |d| Some(d.totals.write_bytes as f64)),
    ("reads_total", "counter", "Reads completed.", |d| Some(d.totals.reads as f64)),
    ("writes_total", "counter", "Writes completed.", |d| Some(d.totals.writes as f64)),
    ("media_errors_total", "counter", "Times that data could not be corrected, in the drive's life.", |d| {
        Some(d.media_errors as f64)
    }),
    ("read_bytes_per_second", "gauge", "Bytes read a second, over the last interval.", |d| Some(d.read_bytes_per_s)),
    ("write_bytes_per_second", "gauge", "Bytes written a second, over the last interval.", |d| {
        Some(d.write_bytes_per_s)
    }),
    ("requests_per_second", "gauge", "Requests completed a second, over the last interval.", |d| Some(d.iops)),
    ("processor_utilization_ratio", "gauge", "Busy share of the cores.", |d| Some(d.processor_utilization)),
    ("lent_utilization_ratio", "gauge", "Share of the cores that served other drives.", |d| Some(d.lent_utilization)),
    ("die_utilization_ratio", "gauge", "Busy share of the flash dies.", |d| Some(d.die_utilization)),
    ("bus_utilization_ratio", "gauge", "Busy share of the channel buses.", |d| Some(d.bus_utilization)),
    ("dram_utilization_ratio", "gauge", "Share of the mapping memory in use.", |d| Some(d.dram_utilization)),
    ("mapping_miss_ratio", "gauge", "Mapping misses for each mapping access.", |d| d.mapping_miss_ratio),
    ("redirected_ratio", "gauge", "Share of commands that go to lenders.", |d| Some(d.redirected_share)),
    ("wear_ratio", "gauge", "Rated erases used up; may exceed 1.", |d| Some(d.wear_percent / 100.0)),
    ("spare_ratio", "gauge", "Spare blocks left.", |d| Some(d.spare_percent / 100.0)),
    ("queue_depth", "gauge", "Requests accepted and not yet answered.", |d| Some(f64::from(d.queue_depth))),
];

/// The latest figures, for scrapers.
pub(crate) fn metrics(snapshot: &Snapshot) -> String {
    let mut page = Page::default();
    for (name, kind, help, figure) in DRIVES {
        let family = format!("flashyard_drive_{name}");
        page.family(&family, kind, help);
        for drive in &snapshot.drives {
            if let Some(value) = figure(drive) {
                page.sample(&family, &[("drive", &drive.name)], value);
            }
        }
    }
    latencies(&mut page, snapshot);
    states(&mut page, snapshot);
    loans(&mut page, snapshot);
    run(&mut page, snapshot);
    page.text
}

fn latencies(page: &mut Page, snapshot: &Snapshot) {
    let family = "flashyard_drive_latency_seconds";
    page.family(family, "summary", "Latency of requests; quantiles over the last interval, sum and count of all.");
    for drive in &snapshot.drives {
        let latency = drive.latency_us;
        for (quantile, us) in [("0.5", latency.p50), ("0.99", latency.p99), ("0.999", latency.p999)] {
            page.sample(family, &[("drive", &drive.name), ("quantile", quantile)], us * US);
        }
        let (sum, count) = (format!("{family}_sum"), format!("{family}_count"));
        page.sample(&sum, &[("drive", &drive.name)], drive.totals.latency_seconds);
        page.sample(&count, &[("drive", &drive.name)], (drive.totals.reads + drive.totals.writes) as f64);
    }
    let family = "flashyard_drive_latency_max_seconds";
    page.family(family, "gauge", "Longest latency of the last interval.");
    for drive in &snapshot.drives {
        page.sample(family, &[("drive", &drive.name)], drive.latency_us.max * US);
    }
}

fn states(page: &mut Page, snapshot: &Snapshot) {
    let family = "flashyard_drive_state";
    page.family(family, "gauge", "1 for the state that the drive is in, 0 for the others.");
    for drive in &snapshot.drives {
        for (state, word) in STATES {
            let value = f64::from(u8::from(drive.state == state));
            page.sample(family, &[("drive", &drive.name), ("state", word)], value);
        }
    }
}

fn loans(page: &mut Page, snapshot: &Snapshot) {
    let name = |index: u32| {
        let drive = usize::try_from(index).ok().and_then(|index| snapshot.drives.get(index));
        drive.map_or_else(|| index.to_string(), |drive| drive.name.clone())
    };
    for (resource, family, help, unit) in [
        (LentResource::Processor, "flashyard_lent_cores", "Cores that a drive lends another, on average.", 1.0),
        (LentResource::Memory, "flashyard_lent_memory_bytes", "Mapping memory that a drive lends another.", MIB),
    ] {
        page.family(family, "gauge", help);
        for loan in snapshot.lending.iter().filter(|loan| loan.resource == resource) {
            let (lender, borrower) = (name(loan.lender), name(loan.borrower));
            page.sample(family, &[("lender", &lender), ("borrower", &borrower)], loan.amount * unit);
        }
    }
}

fn run(page: &mut Page, snapshot: &Snapshot) {
    let family = "flashyard_lateness_seconds";
    page.family(family, "gauge", "How late answers left in the last interval, on the wall clock.");
    let late = snapshot.lateness_us;
    // A label `quantile` would make it a summary, which has a sum and a count.
    for (percentile, us) in [("50", late.p50), ("99", late.p99), ("100", late.max)] {
        page.sample(family, &[("percentile", percentile)], us * US);
    }
    let mut single = |name: &str, kind: &str, help: &str, value: f64| {
        page.family(name, kind, help);
        page.sample(name, &[], value);
    };
    single("flashyard_noise_seconds", "gauge", "Longest time the machine held the engine up.", snapshot.noise_us * US);
    single("flashyard_simulated_seconds_total", "counter", "Simulated time since the start.", snapshot.time_seconds);
    single("flashyard_wall_seconds_total", "counter", "Wall time since the start.", snapshot.wall_seconds);
    let pace = snapshot.pace.unwrap_or(0.0);
    single("flashyard_pace_ratio", "gauge", "Simulated seconds for each wall second; 0 without a pace.", pace);
    single("flashyard_harvest", "gauge", "1 while drives lend and borrow.", f64::from(u8::from(snapshot.harvest)));
    single("flashyard_connections", "gauge", "Connections of hosts.", f64::from(snapshot.connections));
}

/// The text as it grows.
#[derive(Default)]
struct Page {
    text: String,
}

impl Page {
    fn family(&mut self, name: &str, kind: &str, help: &str) {
        // Writing to a string cannot fail.
        let _ = write!(self.text, "# HELP {name} {help}\n# TYPE {name} {kind}\n");
    }

    fn sample(&mut self, name: &str, labels: &[(&str, &str)], value: f64) {
        self.text.push_str(name);
        for (place, (label, text)) in labels.iter().enumerate() {
            let _ = write!(self.text, "{}{label}=\"{}\"", if place == 0 { '{' } else { ',' }, escaped(text));
        }
        self.text.push_str(if labels.is_empty() { " " } else { "} " });
        self.text.push_str(&number(value));
        self.text.push('\n');
    }
}

fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

/// A value as Prometheus reads it.
fn number(value: f64) -> String {
    match value {
        _ if value.is_nan() => "NaN".to_owned(),
        f64::INFINITY => "+Inf".to_owned(),
        f64::NEG_INFINITY => "-Inf".to_owned(),
        // Sums of floating-point products end in noise that says nothing.
        _ => format!("{}", format!("{value:.14e}").parse::<f64>().unwrap_or(value)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flashyard_report::{DriveTotals, LatencySummary, Loan};
    use std::collections::{BTreeMap, BTreeSet};

    fn snapshot() -> Snapshot {
        let drive = |name: &str| DriveSnapshot {
            name: name.to_owned(),
            state: DriveState::Away,
            latency_us: LatencySummary { mean: 90.0, p50: 80.0, p99: 250.0, p999: 600.0, p9999: 800.0, max: 900.0 },
            media_errors: 2,
            totals: DriveTotals { reads: 3, writes: 1, read_bytes: 12_288, write_bytes: 4096, latency_seconds: 0.25 },
            ..DriveSnapshot::default()
        };
        let loan = |resource, amount| Loan { resource, lender: 1, borrower: 0, amount };
        Snapshot {
            drives: vec![drive("busy-0"), drive("a \"b\" \\ c\nd")],
            lending: vec![loan(LentResource::Processor, 0.5), loan(LentResource::Memory, 2.0)],
            noise_us: f64::NAN,
            ..Snapshot::default()
        }
    }

    /// Names and label texts of the samples, with their values, from a reader that takes nothing but the format.
    fn read(text: &str) -> BTreeMap<String, f64> {
        let (mut samples, mut families) = (BTreeMap::new(), BTreeSet::new());
        let (mut current, mut is_summary) = (String::new(), false);
        for line in text.lines() {
            if let Some(rest) = line.strip_prefix("# HELP ") {
                current = rest.split(' ').next().unwrap().to_owned();
                assert!(families.insert(current.clone()), "{current} is there twice");
            } else if let Some(rest) = line.strip_prefix("# TYPE ") {
                let (name, kind) = rest.split_once(' ').unwrap();
                assert_eq!(name, current);
                assert!(["counter", "gauge", "summary"].contains(&kind), "{kind}");
                is_summary = kind == "summary";
                assert_eq!(kind == "counter", name.ends_with("_total"), "{name} is a {kind}");
            } else {
                let (series, value) = line.rsplit_once(' ').unwrap();
                let name = series.split('{').next().unwrap();
                assert!(is_summary || !series.contains("quantile="), "{line} is not of a summary");
                let family = name.strip_suffix("_sum").or(name.strip_suffix("_count")).unwrap_or(name);
                assert_eq!(family, current, "{line} stands in the wrong family");
                assert!(name.bytes().all(|b| b.is_ascii_lowercase() || b == b'_'), "{name}");
                let value = if value == "NaN" { f64::NAN } else { value.parse().unwrap() };
                assert!(samples.insert(series.to_owned(), value).is_none(), "{series} is there twice");
            }
        }
        assert!(text.ends_with('\n'));
        samples
    }

    #[test]
    fn every_figure_is_there_in_base_units() {
        let samples = read(&metrics(&snapshot()));
        for (series, value) in [
            ("flashyard_drive_read_bytes_total{drive=\"busy-0\"}", 12_288.0),
            ("flashyard_drive_media_errors_total{drive=\"busy-0\"}", 2.0),
            ("flashyard_drive_latency_seconds{drive=\"busy-0\",quantile=\"0.99\"}", 0.00025),
            ("flashyard_drive_latency_seconds_sum{drive=\"busy-0\"}", 0.25),
            ("flashyard_drive_latency_seconds_count{drive=\"busy-0\"}", 4.0),
            ("flashyard_drive_state{drive=\"busy-0\",state=\"away\"}", 1.0),
            ("flashyard_drive_state{drive=\"busy-0\",state=\"ready\"}", 0.0),
            ("flashyard_pace_ratio", 0.0),
        ] {
            assert_eq!(samples.get(series), Some(&value), "{series}");
        }
        let lent = samples.iter().find(|(series, _)| series.starts_with("flashyard_lent_memory_bytes")).unwrap();
        assert_eq!(*lent.1, 2_097_152.0);
    }

    #[test]
    fn names_cannot_leave_their_label() {
        let text = metrics(&snapshot());
        assert!(text.contains(r#"flashyard_drive_reads_total{drive="a \"b\" \\ c\nd"} 3"#), "{text}");
        assert!(text.contains(r#"{lender="a \"b\" \\ c\nd",borrower="busy-0"} 0.5"#), "{text}");
    }

    #[test]
    fn figures_that_do_not_exist_are_left_out_or_not_a_number() {
        let samples = read(&metrics(&snapshot()));
        assert!(!samples.keys().any(|series| series.starts_with("flashyard_drive_mapping_miss_ratio")));
        assert!(samples["flashyard_noise_seconds"].is_nan());
        assert_eq!(number(f64::INFINITY), "+Inf");
    }
}
