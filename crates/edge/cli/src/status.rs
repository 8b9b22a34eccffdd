//! The figures of `flashyard ctl ... status` for people: of drives, and of volumes with their trees.

use anyhow::{Context, Result};
use serde_json::Value;

/// The figures with those of one drive only, where one is asked for.
///
/// Errors: a drive that there is not.
pub(crate) fn of_drive(status: &Value, drive: Option<u16>) -> Result<Value> {
    let mut status = status.clone();
    let Some(number) = drive else { return Ok(status) };
    let drives = status["drives"].as_array().map_or(&[][..], Vec::as_slice);
    let last = drives.len().saturating_sub(1);
    let found = drives.get(usize::from(number)).cloned();
    let found = found.with_context(|| format!("--drive {number}: there is no such drive; give 0 to {last}"))?;
    status["drives"] = Value::Array(vec![found]);
    Ok(status)
}

/// Heads of the columns, and how wide they are.
const COLUMNS: [(&str, usize); 12] = [
    ("drive", 5),
    ("state", 10),
    ("depth", 5),
    ("IO/s", 9),
    ("read MB/s", 9),
    ("write MB/s", 10),
    ("p50 us", 8),
    ("p99 us", 8),
    ("cores %", 7),
    ("lent %", 6),
    ("dies %", 6),
    ("errors", 6),
];

/// A line on the enclosure, a line of heads, and a line for each drive.
pub(crate) fn table(status: &Value) -> String {
    let number = |value: &Value| value.as_f64().unwrap_or(0.0);
    let lends = |key: &str| status[key].as_array().map_or(0, Vec::len);
    let mut lines = vec![format!(
        "at {:.3} s simulated, over the last {:.3} s: lending is {}, {} loans of cores, {} of memory; answers are {:.1} us late \
         (p99)",
        number(&status["time_seconds"]),
        number(&status["interval_seconds"]),
        if status["harvest"] == true { "on" } else { "off" },
        lends("processors_lent"),
        lends("memory_lent"),
        number(&status["lateness_us"]["p99"]),
    )];
    lines.push(row(COLUMNS.map(|column| column.0.to_owned())));
    for drive in status["drives"].as_array().into_iter().flatten() {
        let percent = |key: &str| format!("{:.0}", 100.0 * number(&drive[key]));
        let megabytes = |key: &str| format!("{:.1}", number(&drive[key]) / 1e6);
        lines.push(row([
            drive["drive"].to_string(),
            drive["state"].as_str().unwrap_or("?").to_owned(),
            drive["queue_depth"].to_string(),
            format!("{:.0}", number(&drive["iops"])),
            megabytes("read_bytes_per_s"),
            megabytes("write_bytes_per_s"),
            format!("{:.1}", number(&drive["latency_us"]["p50"])),
            format!("{:.1}", number(&drive["latency_us"]["p99"])),
            percent("processor_utilization"),
            percent("lent_utilization"),
            percent("die_utilization"),
            drive["media_errors"].to_string(),
        ]));
    }
    lines.join("\n")
}

/// A line of the table; words on the left, numbers on the right.
fn row(cells: [String; COLUMNS.len()]) -> String {
    let cells = cells.iter().zip(COLUMNS).map(|(cell, (head, width))| match head {
        "state" => format!("{cell:<width$}"),
        _ => format!("{cell:>width$}"),
    });
    cells.collect::<Vec<_>>().join(" ").trim_end().to_owned()
}

/// A line on each volume, and a line for each service and leg of it.
pub(crate) fn tree(status: &Value) -> String {
    let seconds = status["interval_seconds"].as_f64().unwrap_or(0.0);
    let mut lines = vec![format!("over the last {seconds:.1} s")];
    for volume in status["volumes"].as_array().into_iter().flatten() {
        let rebuild = match volume["rebuild"]["left_blocks"].as_u64() {
            Some(left) if left > 0 => {
                let share = 100.0 * volume["rebuild"]["share"].as_f64().unwrap_or(0.0);
                format!(", {share:.0} % of copies made, {left} blocks left")
            }
            _ => String::new(),
        };
        let slots = volume["versions"].as_array().into_iter().flatten().map(Value::to_string).collect::<Vec<_>>();
        let versions =
            if slots.is_empty() { String::new() } else { format!(", versions in slots {}", slots.join(", ")) };
        lines.push(format!(
            "{}: {:.0} requests/s, {} under way, {} failed{rebuild}{versions}",
            volume["name"].as_str().unwrap_or("?"),
            volume["iops"].as_f64().unwrap_or(0.0),
            volume["queue_depth"],
            volume["failed"],
        ));
        branch(&volume["tree"], 1, &mut lines);
    }
    lines.join("\n")
}

fn branch(part: &Value, depth: usize, lines: &mut Vec<String>) {
    let indent = "  ".repeat(depth);
    if let Some(service) = part["service"].as_str() {
        let note = part["note"].as_str().map(|note| format!(": {note}")).unwrap_or_default();
        lines.push(format!("{indent}s{} {service}{note}", part["number"]));
        part["below"].as_array().into_iter().flatten().for_each(|below| branch(below, depth + 1, lines));
        return;
    }
    let number = |key: &str| part[key].as_f64().unwrap_or(0.0);
    lines.push(format!(
        "{indent}{} {}: {}{}, {} under way, {:.0} reads/s of {:.1} MB/s, {:.0} writes/s of {:.1} MB/s",
        part["leg"],
        part["name"].as_str().unwrap_or("?"),
        part["why"].as_str().map_or_else(|| "ready".to_owned(), |why| format!("lost, {why}")),
        part["note"].as_str().map(|note| format!(", {note}")).unwrap_or_default(),
        part["queue_depth"],
        number("reads_per_s"),
        number("read_bytes_per_s") / 1e6,
        number("writes_per_s"),
        number("write_bytes_per_s") / 1e6,
    ));
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn status() -> Value {
        let drive = |number: u32| {
            json!({
                "drive": number, "state": "ready", "queue_depth": 4, "iops": 81234.5, "read_bytes_per_s": 332.7e6,
                "write_bytes_per_s": 0.0, "latency_us": { "p50": 80.25, "p99": 512.5 }, "processor_utilization": 0.731,
                "lent_utilization": 0.0, "die_utilization": 0.25, "media_errors": 0,
            })
        };
        let drives: Vec<Value> = (0..12).map(drive).collect();
        json!({
            "time_seconds": 12.5, "interval_seconds": 2.0, "harvest": true, "lateness_us": { "p99": 3.25 },
            "processors_lent": [{}], "memory_lent": [], "drives": drives,
        })
    }

    #[test]
    fn twelve_drives_are_a_table_of_fourteen_lines() {
        let text = table(&status());
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 14);
        assert!(
            lines[0].contains("12.500 s simulated") && lines[0].contains("lending is on, 1 loans of cores"),
            "{text}"
        );
        let cells: Vec<&str> = lines[13].split_whitespace().collect();
        assert_eq!(cells, ["11", "ready", "4", "81234", "332.7", "0.0", "80.2", "512.5", "73", "0", "25", "0"]);
        assert!(lines[1..].iter().all(|line| line.len() <= 110), "{text}");
    }

    #[test]
    fn one_drive_may_be_asked_for() {
        let one = of_drive(&status(), Some(3)).expect("it is there");
        assert_eq!(one["drives"].as_array().map(Vec::len), Some(1));
        assert_eq!(one["drives"][0]["drive"], 3);
        let error = of_drive(&status(), Some(12)).expect_err("there are twelve").to_string();
        assert_eq!(error, "--drive 12: there is no such drive; give 0 to 11");
    }
}
