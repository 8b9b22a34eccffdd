//! Options of `flashyard trace`.

use crate::byte_count::bytes;
use clap::{Args, Subcommand};
use flashyard_trace_io::CacheSize;
use std::path::PathBuf;

#[derive(Debug, Subcommand)]
pub(crate) enum TraceCommand {
    /// Statistics of a trace
    Info {
        /// Trace file, plain, zstd, gzip or xz
        file: PathBuf,
        /// Format, when its content does not tell (msr, disksim-us, ...)
        #[arg(long)]
        format: Option<String>,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Misses of caches with eight eviction policies on a trace
    Caches(CachesOptions),
    /// Write a trace in another format
    Convert(ConvertOptions),
}

#[derive(Debug, Args)]
pub(crate) struct CachesOptions {
    /// Trace file, plain, zstd, gzip or xz; it is read twice
    pub(crate) file: PathBuf,
    /// Format, when its content does not tell (msr, disksim-us, ...)
    #[arg(long)]
    pub(crate) format: Option<String>,
    /// Sizes of the caches, in percent of the pages that the trace touches, or for example 512MiB
    #[arg(long, value_name = "SIZE,...", value_delimiter = ',', value_parser = cache_size, default_value = "1%,5%,10%,20%,40%")]
    pub(crate) sizes: Vec<CacheSize>,
    /// Threads; all cores without it. Results do not depend on it
    #[arg(long, value_name = "N")]
    pub(crate) threads: Option<usize>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// A part of the footprint, or bytes.
fn cache_size(text: &str) -> Result<CacheSize, String> {
    let Some(percent) = text.strip_suffix('%') else {
        return bytes(text).map(CacheSize::Bytes).map_err(|why| format!("{why}, or a percentage, such as 10%"));
    };
    match percent.trim().parse() {
        Ok(percent) if percent > 0.0 && percent <= 100.0 => Ok(CacheSize::Percent(percent)),
        _ => Err("a percentage is above 0 and at most 100".to_owned()),
    }
}

#[derive(Debug, Args)]
pub(crate) struct ConvertOptions {
    /// Trace file, plain, zstd, gzip or xz
    pub(crate) file: PathBuf,
    /// File to write; an existing one is replaced when the new one is complete
    pub(crate) out: PathBuf,
    /// Format of FILE, when its content does not tell (msr, disksim-us, ...)
    #[arg(long)]
    pub(crate) format: Option<String>,
    /// Format of OUT, when its extension does not tell: parquet, or iolog for fio
    #[arg(long, value_name = "FORMAT")]
    pub(crate) to: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_percentages_or_bytes() {
        assert_eq!(cache_size("2.5%"), Ok(CacheSize::Percent(2.5)));
        assert_eq!(cache_size("3GiB"), Ok(CacheSize::Bytes(3 << 30)));
        for wrong in ["0%", "101%", "x%", "NaN%", "3 rooms", ""] {
            assert!(cache_size(wrong).is_err_and(|why| why.contains("percent")), "{wrong}");
        }
    }
}
