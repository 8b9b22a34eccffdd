//! `flashyard trace caches`.

use super::plot::{bytes, count};
use super::reading::{Progress, open_as};
use crate::arguments::CachesOptions;
use crate::{Outcome, output, parallel};
use anyhow::Result;
use flashyard_cache::PolicyKind;
use flashyard_trace_io::{CacheComparison, CacheMisses, CacheOptions, OpenOptions, compare_caches, open};
use flashyard_workbench::refuse_stream;
use serde_json::{Map, Value, json};
use std::path::Path;

/// Memory of all caches of a comparison, in bytes: with the usual sizes, enough for 130 GiB of footprint.
const MEMORY_BYTES_MAX: u64 = 8 << 30;
/// Ratios that a table shows as equal.
const EQUAL: f64 = 0.0005;

pub(crate) fn caches(options: &CachesOptions) -> Result<Outcome> {
    refuse_stream(&options.file).map_err(anyhow::Error::msg)?;
    let reader = open_as(&options.file, options.format.as_deref())?;
    // Both readings take the format that the first one was told or found.
    let format = Some(reader.format());
    drop(reader);
    parallel::catch_interrupt()?;
    let mut progress = Progress::begin(None);
    let available = std::thread::available_parallelism().map_or(1, usize::from);
    let how = CacheOptions {
        sizes: options.sizes.clone(),
        memory_bytes_max: MEMORY_BYTES_MAX,
        threads: options.threads.unwrap_or(available),
    };
    let found = compare_caches(|| open(&options.file, OpenOptions { format }), &how, &mut |rows| {
        progress.rows(rows);
        !parallel::interrupted()
    })?;
    drop(progress);
    let Some(found) = found else { return Ok(Outcome::Interrupted) };
    if options.json {
        output::json(&contract(&options.file, &found));
    } else {
        output::line(&text(&found));
    }
    Ok(Outcome::Done)
}

/// The JSON form: fields are added, never renamed.
fn contract(file: &Path, found: &CacheComparison) -> Value {
    let sizes = found.sizes.iter().map(|size| {
        let ratios = PolicyKind::ALL.iter().zip(&size.miss_ratios);
        let ratios: Map<String, Value> = ratios.map(|(policy, &ratio)| (policy.to_string(), ratio.into())).collect();
        json!({ "cache_bytes": size.bytes, "miss_ratios": ratios })
    });
    json!({
        "file": file.display().to_string(),
        "format": found.summary.format,
        "rows": found.summary.counts.rows,
        "page_accesses": found.accesses,
        "footprint_bytes": found.summary.footprint_bytes,
        "caches": sizes.collect::<Vec<Value>>(),
        "note": found.summary.note,
    })
}

/// A table with a row for each size.
fn text(found: &CacheComparison) -> String {
    let footprint = found.summary.footprint_bytes;
    let first = 100.0 * (footprint / 4096) as f64 / found.accesses.max(1) as f64;
    let heads = PolicyKind::ALL.map(|policy| format!("{:>10}", policy.name())).concat();
    let mut lines = vec![
        format!("{:<16}{}", "format", found.summary.format),
        format!(
            "{:<16}{} to 4 KiB pages, {first:.1} % of them the first to their page",
            "accesses",
            count(found.accesses)
        ),
        format!("{:<16}{}", "footprint", bytes(footprint)),
        String::new(),
        "misses in percent of all accesses".to_owned(),
        format!("{:>12}{:>8}{heads}  fewest", "cache", "of all"),
    ];
    lines.extend(found.sizes.iter().map(|size| row(size, footprint)));
    lines.join("\n")
}

fn row(size: &CacheMisses, footprint: u64) -> String {
    // A trace of trims alone touches no data.
    let share = if footprint == 0 {
        "–".to_owned()
    } else {
        format!("{:.1} %", 100.0 * size.bytes as f64 / footprint as f64)
    };
    let ratios: String = size.miss_ratios.iter().map(|ratio| format!("{:>10.1}", 100.0 * ratio)).collect();
    format!("{:>12}{:>8}{ratios}  {}", bytes(size.bytes), share, fewest(&size.miss_ratios))
}

/// The policies that miss least.
fn fewest(ratios: &[f64]) -> String {
    let least = ratios.iter().copied().fold(f64::INFINITY, f64::min);
    let best = PolicyKind::ALL.iter().zip(ratios).filter(|(_, ratio)| **ratio < least + EQUAL);
    let best: Vec<&str> = best.map(|(policy, _)| policy.name()).collect();
    if best.len() == PolicyKind::ALL.len() { "all alike".to_owned() } else { best.join(", ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_are_named_unless_all_are() {
        let mut ratios = [0.5; 8];
        assert_eq!(fewest(&ratios), "all alike");
        ratios[4] = 0.4;
        ratios[6] = 0.4004;
        assert_eq!(fewest(&ratios), "arc, s3-fifo");
    }
}
