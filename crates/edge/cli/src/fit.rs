//! `flashyard fit`: the profile of a drive from what fio measured on a real one, or a data sheet states of it.

use crate::new_drive::{free_path, from_there, write_profile};
use crate::parallel::{Terminal, threads};
use crate::{Outcome, output, parallel};
use anyhow::{Context, Result, bail};
use clap::Args;
use flashyard_report::rows_table;
use flashyard_workbench::{FigureKind, Fit, FitRequest, Fitted, Verdict, carried, fit, gather};
use std::path::PathBuf;

/// Results of fio for six loads, and a profile of a drive that has them
#[derive(Debug, Args)]
#[command(after_help = AFTER)]
pub(crate) struct FitOptions {
    /// Name of the profile, for example my-drive
    #[arg(required_unless_present = "jobs")]
    name: Option<String>,
    /// Results of fio --output-format=json
    #[arg(required_unless_present_any = ["jobs", "figure"])]
    results: Vec<PathBuf>,
    /// A figure that a data sheet or a review states, for example --figure write-many="62.5 k/s"; loads are the jobs that --jobs prints
    #[arg(long, value_name = "LOAD=VALUE")]
    figure: Vec<String>,
    /// Capacity of the drive, for example "1.92 TB"
    #[arg(long, value_name = "SIZE", required_unless_present = "jobs")]
    capacity: Option<String>,
    /// Any other key of [drive] that is known and is not to be fitted, for example --set channels=8
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// Profile of the host that fio ran on
    #[arg(long, value_name = "NAME", default_value = "linux")]
    host: String,
    /// Print the job file to measure a drive with; it writes the whole drive
    #[arg(long)]
    jobs: bool,
    /// Directory in whose profiles/drives the file is written
    #[arg(long, value_name = "PATH", default_value = ".")]
    directory: PathBuf,
    /// Overwrite a file that exists
    #[arg(long)]
    force: bool,
    /// Print JSON instead of tables
    #[arg(long)]
    json: bool,
    /// Runs at once; all cores without it. Results do not depend on it
    #[arg(long, value_name = "N", value_parser = threads)]
    threads: Option<usize>,
}

const AFTER: &str = "\
Measure the drive, which loses all that is on it, then fit it:
  flashyard fit --jobs > six.fio
  fio six.fio --filename=/dev/nvme1n1 --output-format=json --output=six.json
  flashyard fit my-drive six.json --capacity \"1.92 TB\"
Or fit what a data sheet states:
  flashyard fit my-drive --capacity \"4 TB\" --figure read-alone=\"115 us\" --figure write-many=\"62.5 k/s\"";

/// The job file of the six loads, among those that the program carries.
const JOBS: &str = "six.fio";

/// A fit is good when no figure is farther off. Source: \[A\] what is asked of one
const GOOD: f64 = 0.10;

pub(crate) fn run(options: &FitOptions) -> Result<Outcome> {
    if options.jobs {
        let files = carried("fio").map_or(&[][..], |carried| carried.files);
        let (_, jobs) = files.iter().find(|file| file.0 == JOBS).context("the program carries no job file")?;
        output::line(jobs.trim_end());
        return Ok(Outcome::Done);
    }
    let (Some(name), Some(capacity)) = (&options.name, &options.capacity) else {
        bail!("give a name, results of fio and --capacity");
    };
    // Before minutes are spent on what could not be kept.
    free_path(name, &options.directory, options.force)?;
    let request = FitRequest {
        known: known(capacity, &options.set)?,
        host: options.host.clone(),
        figures: gather(&options.results, &options.figure)?,
        seed: 1,
    };
    parallel::catch_interrupt()?;
    let fitted = fit(&request, options.threads, &Terminal::default())?;
    let Some(found) = fitted else { return Ok(Outcome::Interrupted) };
    let keys = found.drive_keys(&request.known);
    let path = write_profile(name, &keys, &options.directory, options.force)?;
    if options.json {
        output::json(&found.json());
    } else {
        tell(&found);
        output::line(&format!("wrote {path}"));
        output::line(&format!(
            "run it: {}flashyard run demo --set drive.profile={name}{}",
            from_there(&options.directory),
            host_settings(&found, &options.host)
        ));
    }
    Ok(if found.worst() <= GOOD { Outcome::Done } else { Outcome::OutsideTolerance })
}

fn known(capacity: &str, set: &[String]) -> Result<Vec<(String, String)>> {
    let mut known = vec![("capacity".to_owned(), capacity.to_owned())];
    for setting in set {
        let Some((key, value)) = setting.split_once('=') else {
            bail!("--set {setting}: give KEY=VALUE, for example --set channels=8");
        };
        known.push((key.trim().to_owned(), value.trim().to_owned()));
    }
    Ok(known)
}

/// Keys of the host that were fitted, as options.
fn host_settings(found: &Fit, host: &str) -> String {
    let keys: String = found.host_keys().iter().map(|(key, value)| format!(" --set '{key}={value}'")).collect();
    format!(" --set host.profile={host}{keys}")
}

/// A value in its unit.
fn shown(kind: FigureKind, value: f64) -> String {
    match kind {
        FigureKind::ReadAlone | FigureKind::WriteAlone => format!("{value:.1} us"),
        FigureKind::ReadMany | FigureKind::WriteMany => format!("{:.1} k/s", value / 1e3),
        FigureKind::ReadSequential | FigureKind::WriteSequential => format!("{:.2} GB/s", value / 1e9),
    }
}

fn verdict(fitted: &Fitted) -> String {
    match fitted.verdict {
        Verdict::Determined => format!("from {}", fitted.figure),
        Verdict::Free => format!("open: {} and the others do not depend on it here", fitted.figure),
        Verdict::Like(other) => format!("cannot be told from {other}: both move the figures alike"),
    }
}

fn tell(found: &Fit) {
    let rows: Vec<Vec<String>> = found
        .figures
        .iter()
        .map(|met| {
            let (figure, kib) = (met.figure, met.figure.block_bytes / 1024);
            let load = format!("{}, {kib} KiB, depth {}", figure.kind, figure.depth);
            let off = format!("{:+.1} %", 100.0 * met.error());
            vec![load, shown(figure.kind, figure.value), shown(figure.kind, met.simulated), off]
        })
        .collect();
    let width = output::width();
    output::line(&rows_table(&["load", "measured", "fitted", "difference"], 1, &rows, width));
    let rows: Vec<Vec<String>> = found
        .parameters
        .iter()
        .map(|one| vec![one.key.to_owned(), one.value.trim_matches('"').to_owned(), verdict(one)])
        .collect();
    output::line(&rows_table(&["key", "value", "what the figures say"], 3, &rows, width));
    let worst = 100.0 * found.worst();
    if found.worst() > GOOD {
        output::line(&format!(
            "a figure is {worst:.0} % off: no value of these keys meets it. Give what you know of the drive, for example --set channels=8 --set dies_per_channel=8, or --set class=qlc"
        ));
    }
}
