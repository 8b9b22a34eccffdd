//! `flashyard trace`.

use crate::{Outcome, output};
use anyhow::{Context, Result};
use flashyard_trace_io::{Format, OpenOptions, open, summarize};
use serde_json::json;
use std::path::Path;

pub(crate) fn info(file: &Path, format: Option<&str>, as_json: bool) -> Result<Outcome> {
    let format = format
        .map(|name| {
            Format::by_name(name)
                .with_context(|| format!("--format {name}: there is no such format, give one of {}", Format::names()))
        })
        .transpose()?;
    let summary = summarize(open(file, OpenOptions { format })?)?;
    if !as_json {
        output::line(&summary.to_string());
        return Ok(Outcome::Done);
    }
    let counts = &summary.counts;
    output::json(&json!({
        "file": file.display().to_string(),
        "format": summary.format,
        "rows": counts.rows,
        "reads": summary.reads,
        "writes": summary.writes,
        "read_percent": summary.read_percent(),
        "mean_read_kib": summary.mean_read_kib(),
        "mean_write_kib": summary.mean_write_kib(),
        "read_bytes": summary.read_bytes,
        "write_bytes": summary.write_bytes,
        "footprint_bytes": summary.footprint_bytes,
        "duration_seconds": summary.duration_seconds,
        "volumes": summary.volumes,
        "reordered_rows": counts.reordered,
        "jumped_rows": counts.jumped,
        "rounded_rows": counts.rounded,
        "skipped_lines": counts.skipped,
    }));
    Ok(Outcome::Done)
}
