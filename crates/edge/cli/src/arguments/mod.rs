//! The command line.

mod control;
mod cvfs;
mod serve;
mod trace;
mod values;

pub(crate) use control::{AgeLevel, CtlOptions, NamespaceName, Switch};
pub(crate) use cvfs::{CvfsCommand, CvfsManageOptions, CvfsMkfsOptions, CvfsMountOptions, CvfsShrinkOptions};
pub(crate) use serve::{BillboardOptions, LoadOptions, ReplayOptions, ServeOptions, TlsHash, TlsKeyOptions};
pub(crate) use trace::{CachesOptions, ConvertOptions, TraceCommand};
use values::{drive_writes, seed, seeds};

use crate::fit::FitOptions;
use crate::new_drive::NewDriveOptions;
use crate::parallel::threads;
use crate::systems;
use clap::{ArgGroup, Args, Parser, Subcommand};
use flashyard_faults::Case;
use std::path::PathBuf;

/// An open proving ground for disaggregated flash storage
#[derive(Debug, Parser)]
#[command(name = "flashyard", version, about = ABOUT, after_help = EXAMPLES, max_term_width = 100)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// What the program is, at the top of its help.
const ABOUT: &str = "An open proving ground for disaggregated flash storage";

/// First steps, at the end of its help.
const EXAMPLES: &str = "\
Examples:
  flashyard demo                                   compare seven JBOF designs
  flashyard demo --trace FILE --out page           the same on a trace of yours, as a page for the browser
  flashyard init mine && flashyard run mine/scenario.toml --sweep drive.cores=2,3,6
  flashyard serve live --listen 127.0.0.1:4420     drives that Linux connects to over NVMe/TCP

Exit status: 0 done, 1 a check failed, 2 bad input, 130 interrupted";

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Compare seven designs of a JBOF on a generated workload, or on a trace of yours
    Demo(DemoOptions),
    /// Write a scenario and its profiles into a directory, to start from
    Init(InitOptions),
    /// Write the profile of a drive of yours from the figures of its data sheet
    NewDrive(NewDriveOptions),
    /// Make the profile of a drive from what fio measured on a real one
    Fit(FitOptions),
    /// Run a scenario: every design it names, on the workload it describes
    Run(RunOptions),
    /// Run what a published system's results need and put ours beside theirs
    Reproduce(ReproduceOptions),
    /// Age a drive without timing: to its death, or by so many writes of the whole drive
    Age(AgeOptions),
    /// Look for lost data: run a world under faults at every point, and shrink what fails
    Faults(FaultsOptions),
    /// Serve the drives of a scenario under the wall clock, with real bytes
    Serve(ServeOptions),
    /// Repeat the journal of an enclosure that served in virtual time, and compare
    Replay(ReplayOptions),
    /// Pull drives, cut power and links, and ask for figures while an enclosure serves
    Ctl(CtlOptions),
    /// Keep what servers post that lend each other space, for those that borrow
    Billboard(BillboardOptions),
    /// Run LeapIO's runtime over queue pairs in memory that programs share, and measure it
    Queues {
        #[command(subcommand)]
        command: crate::queues::QueuesCommand,
    },
    /// Load a drive over NVMe/TCP, and measure it as a host that never sleeps
    Load(LoadOptions),
    /// Make a key of TLS, which a host and the target share: print it as nvme gen-tls-key does
    TlsKey(TlsKeyOptions),
    /// Look at trace files
    Trace {
        #[command(subcommand)]
        command: TraceCommand,
    },
    /// Volumes that shrink while they are in use: make, mount, shrink, check
    Cvfs {
        #[command(subcommand)]
        command: CvfsCommand,
    },
    /// List the systems that the program knows, with their designs, and what can be done with each
    Systems(SystemsOptions),
    /// Print the JSON Schema of scenario files
    Schema,
    /// Print what a shell needs to complete commands and options, for example: flashyard completions bash > /etc/bash_completion.d/flashyard
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Write manual pages of all commands into a directory
    Man {
        /// The directory, made where it is missing
        directory: PathBuf,
    },
}

#[derive(Debug, Args)]
pub(crate) struct DemoOptions {
    /// Drive the designs with this trace file in place of the generated workload
    #[arg(long, value_name = "FILE")]
    pub(crate) trace: Option<PathBuf>,
    /// Override a key, for example --set jbof.drives=24
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub(crate) set: Vec<String>,
    /// Write report.html, report.json, resolved.toml and Parquet tables to this directory
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Print JSON instead of a table
    #[arg(long)]
    pub(crate) json: bool,
    /// Designs run at once; all cores without it. Results do not depend on it
    #[arg(long, value_name = "N")]
    pub(crate) threads: Option<usize>,
}

impl DemoOptions {
    /// The run that the demo is.
    pub(crate) fn run(self) -> RunOptions {
        let mut set = self.set;
        set.extend(self.trace.map(|trace| format!("workload.trace={}", trace.display())));
        RunOptions {
            scenario: PathBuf::from("demo"),
            set,
            sweep: Vec::new(),
            fio: None,
            seed: None,
            seeds: None,
            out: self.out,
            json: self.json,
            json_fio: false,
            threads: self.threads,
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct InitOptions {
    /// Directory to write to; made where it is missing
    pub(crate) directory: PathBuf,
    #[arg(long, help = systems::carried_in_words(), value_name = "NAME", default_value = "demo")]
    pub(crate) from: String,
    /// Overwrite files that exist
    #[arg(long)]
    pub(crate) force: bool,
}

impl InitOptions {
    /// The command that the scenario is made for.
    pub(crate) fn verb(&self) -> &'static str {
        match self.from.as_str() {
            "live" => "serve",
            "ageing" => "age --drive-writes 2",
            "faults" => "faults",
            _ => "run",
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct RunOptions {
    /// Scenario file (TOML), or the name of a scenario that the program carries, for example demo
    pub(crate) scenario: PathBuf,
    /// Override a key, for example --set jbof.drives=24
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub(crate) set: Vec<String>,
    /// Run every combination of values, for example --sweep drive.cores=2,3,6
    #[arg(long, value_name = "KEY=VALUES")]
    pub(crate) sweep: Vec<String>,
    /// Job file of fio, in place of the scenario's workload and length of the run
    #[arg(long, value_name = "FILE")]
    pub(crate) fio: Option<PathBuf>,
    /// Seed of all random streams, in place of the scenario's
    #[arg(long, value_parser = seed)]
    pub(crate) seed: Option<u64>,
    /// Run under so many seeds, from that one on: means with 95 % confidence intervals, and differences that are none
    #[arg(long, value_name = "N", value_parser = seeds, conflicts_with = "json_fio")]
    pub(crate) seeds: Option<u64>,
    /// Write report.html, report.json, resolved.toml and Parquet tables to this directory
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Print JSON instead of a table
    #[arg(long)]
    pub(crate) json: bool,
    /// Print what fio --output-format=json would, for one design; with --out, fio-DESIGN.json for each
    #[arg(long, conflicts_with = "json")]
    pub(crate) json_fio: bool,
    /// Designs run at once; all cores without it. Results do not depend on it
    #[arg(long, value_name = "N", value_parser = threads)]
    pub(crate) threads: Option<usize>,
}

#[derive(Debug, Args)]
pub(crate) struct SystemsOptions {
    /// Print JSON instead of a table
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ReproduceOptions {
    #[arg(help = systems::studies_in_words())]
    pub(crate) system: String,
    /// Numbers to reproduce, by id; all without it
    pub(crate) ids: Vec<String>,
    /// Write comparison.json, report.html and the runs to this directory; finished runs are kept there, and not repeated
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Print JSON instead of a table
    #[arg(long)]
    pub(crate) json: bool,
    /// Runs at once; all cores without it. Results do not depend on it
    #[arg(long, value_name = "N", value_parser = threads)]
    pub(crate) threads: Option<usize>,
}

#[derive(Debug, Args)]
#[command(group(ArgGroup::new("goal").required(true).args(["drive_writes", "to_death"])))]
pub(crate) struct AgeOptions {
    /// Scenario file (TOML); its drive, workload and [life] count
    pub(crate) scenario: PathBuf,
    /// Override a key, for example --set drive.wear_leveling=pwl(50)
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub(crate) set: Vec<String>,
    /// Seed of all random streams, in place of the scenario's
    #[arg(long, value_parser = seed)]
    pub(crate) seed: Option<u64>,
    /// Write the whole drive so many times, or until it is dead
    #[arg(long, value_name = "N", value_parser = drive_writes)]
    pub(crate) drive_writes: Option<f64>,
    /// Go on until the drive is dead
    #[arg(long)]
    pub(crate) to_death: bool,
    /// Simulate only one part in so many of the time and predict the wear of the others: 1.5, or a whole number
    #[arg(long, value_name = "FACTOR")]
    pub(crate) fast_forward: Option<f64>,
    /// Predict as far as write amplification is steady, so many periods at most
    #[arg(long, value_name = "PERIODS", conflicts_with = "fast_forward", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) adaptive: Option<u32>,
    /// Write the aged drive to a file, for drive.aged_state of any run on a drive of the same shape
    #[arg(long, value_name = "FILE")]
    pub(crate) save: Option<PathBuf>,
    /// Replace the file of --save if it is there already
    #[arg(long, requires = "save")]
    pub(crate) force: bool,
    /// Write report.html and the course of the life as tables to this directory
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Print JSON instead of a table
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct FaultsOptions {
    /// Scenario file (TOML); a small enclosure of four drives without one
    pub(crate) scenario: Option<PathBuf>,
    #[arg(long, help = systems::worlds_in_words(), default_value = systems::default_world())]
    pub(crate) world: String,
    /// Override a key of the scenario, as in --set jbof.drives=6
    #[arg(long, value_name = "KEY=VALUE")]
    pub(crate) set: Vec<String>,
    /// Crash points: runs with at least one planned fault
    #[arg(long, value_name = "N", default_value_t = 100_000, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) points: u64,
    /// Seed of the workload; random plans take the seeds after it
    #[arg(long, default_value_t = 0)]
    pub(crate) seed: u64,
    /// Length of the workload in the world's own unit; as long as the world makes it without this
    #[arg(long, value_name = "N")]
    pub(crate) size: Option<u32>,
    /// Run one case instead, as a violation names it, for example 'seed=7;power@e132+2ms;lose3@r14'
    #[arg(long, value_name = "CASE", conflicts_with_all = ["points", "seed", "size", "threads"])]
    pub(crate) replay: Option<Case>,
    /// Runs at once; all cores without it. Results do not depend on it
    #[arg(long, value_name = "N", value_parser = threads)]
    pub(crate) threads: Option<usize>,
}
