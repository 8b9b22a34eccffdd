//! Trace files on their way in: opened as a format, with progress on the terminal.

use super::plot::count;
use anyhow::{Context, Result, bail};
use flashyard_trace_io::{Format, Meter, OpenOptions, TraceReader, open};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::Read;
use std::path::Path;
use std::time::{Duration, Instant};

/// A command that takes no longer shows no progress.
const QUIET: Duration = Duration::from_secs(2);

/// Opens `file` as the format of this name, or as the one its content tells.
pub(super) fn open_as(file: &Path, format: Option<&str>) -> Result<TraceReader> {
    let known = |name: &str| {
        Format::by_name(name)
            .with_context(|| format!("--format {name}: there is no such format, give one of {}", Format::names()))
    };
    let format = format.map(known).transpose()?;
    if is_parquet(file) {
        bail!(
            "{}: this is Parquet, which `trace convert` writes for other programs and no command here reads; give the trace \
             that it was made of, or its iolog (`trace convert --to iolog`)",
            file.display()
        );
    }
    Ok(open(file, OpenOptions { format })?)
}

/// Whether a file begins as Parquet does. One that cannot be read is reported by its reader.
fn is_parquet(file: &Path) -> bool {
    let mut word = [0; 4];
    let is_file = std::fs::metadata(file).is_ok_and(|found| found.is_file());
    is_file && std::fs::File::open(file).and_then(|mut file| file.read_exact(&mut word)).is_ok() && &word == b"PAR1"
}

/// Rows read so far, on the terminal, and which share of a file they are. How many rows will come is not known.
pub(super) struct Progress {
    began: Instant,
    bar: Option<ProgressBar>,
    meter: Option<Meter>,
}

impl Progress {
    /// Begins, with the meter of the file where it is read once.
    pub(super) fn begin(meter: Option<&Meter>) -> Self {
        Self { began: Instant::now(), bar: None, meter: meter.cloned() }
    }

    /// Shows that `rows` were read, once it takes long.
    pub(super) fn rows(&mut self, rows: u64) {
        if self.bar.is_none() && self.began.elapsed() >= QUIET {
            let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr()).with_elapsed(QUIET);
            if let Ok(style) = ProgressStyle::with_template("{spinner} {human_pos} rows in {elapsed}, {msg}") {
                bar.set_style(style);
            }
            self.bar = Some(bar);
        }
        if let Some(bar) = &self.bar {
            // From the beginning on: the bar was not there yet.
            let pace = count((rows as f64 / self.began.elapsed().as_secs_f64()) as u64);
            let of_file = |meter: &Meter| format!(", {:.0} % of the file", 100.0 * meter.share());
            let share = self.meter.as_ref().map(of_file).unwrap_or_default();
            bar.set_message(format!("{pace} rows/s{share}"));
            bar.set_position(rows);
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
