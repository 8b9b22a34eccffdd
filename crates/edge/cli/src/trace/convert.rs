//! `flashyard trace convert`.

use super::reading::{Progress, open_as};
use crate::arguments::ConvertOptions;
use crate::{Outcome, output, parallel};
use anyhow::{Context, Error, Result, bail};
use flashyard_trace_io::{ConvertError, OutputFormat};
use std::path::Path;

pub(crate) fn convert(options: &ConvertOptions) -> Result<Outcome> {
    let to = output_format(&options.out, options.to.as_deref())?;
    flashyard_trace_io::files_of(&options.file).iter().for_each(|path| flashyard_workbench::note_read(path));
    flashyard_workbench::refuse_input(&options.out)?;
    let reader = open_as(&options.file, options.format.as_deref())?;
    parallel::catch_interrupt()?;
    let mut progress = Progress::begin(reader.meter());
    let mut observer = |rows: u64| {
        progress.rows(rows);
        !parallel::interrupted()
    };
    let cannot_write = |error| Error::from(error).context(format!("{}: cannot be written", options.out.display()));
    let rows = flashyard_workbench::replace_file(&options.out, |file| {
        flashyard_trace_io::convert(reader, to, file, &mut observer).map_err(|error| match error {
            // It names the trace and the line; the others are about the output.
            ConvertError::Trace(error) => error.into(),
            error => cannot_write(error),
        })
    })?;
    drop(progress);
    let Some(rows) = rows else { return Ok(Outcome::Interrupted) };
    output::line(&format!("{}: {rows} rows", options.out.display()));
    Ok(Outcome::Done)
}

fn output_format(out: &Path, to: Option<&str>) -> Result<OutputFormat> {
    if let Some(name) = to {
        let known = || format!("--to {name}: there is no such format, give one of {}", OutputFormat::names());
        return OutputFormat::by_name(name).with_context(known);
    }
    match OutputFormat::by_extension(out) {
        Some(format) => Ok(format),
        None => {
            bail!("{}: the extension tells no format, give --to with one of {}", out.display(), OutputFormat::names())
        }
    }
}
