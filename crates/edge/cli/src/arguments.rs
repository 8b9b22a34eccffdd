//! The command line.

use crate::byte_count::bytes;
use crate::fit::FitOptions;
use crate::new_drive::NewDriveOptions;
use crate::parallel::threads;
use crate::systems;
use clap::{ArgGroup, Args, Parser, Subcommand, ValueEnum};
use flashyard_faults::Case;
use flashyard_live::NbdAddress;
use flashyard_scenario::Pacing;
use flashyard_trace_io::CacheSize;
use flashyard_workbench::SEED_MAX;
use std::net::{SocketAddr, ToSocketAddrs};
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

#[derive(Debug, Subcommand)]
pub(crate) enum CvfsCommand {
    /// Make an empty file system on a file, or on a drive over NVMe/TCP
    Mkfs(CvfsMkfsOptions),
    /// Mount one through FUSE and serve it until it is unmounted
    Mount(CvfsMountOptions),
    /// Give capacity of a mounted one back, while it is in use
    Shrink(CvfsShrinkOptions),
    /// Manage a mounted one and the drive below it: shrink as the drive retires what is too worn
    Manage(CvfsManageOptions),
    /// Check one that is not mounted
    Fsck {
        /// File, or tcp:ADDRESS:PORT/NQN
        device: String,
    },
    /// Space of one, and what it has done if it is mounted
    Info {
        /// Directory where it is mounted, or file, or tcp:ADDRESS:PORT/NQN
        path: String,
    },
}

#[derive(Debug, Args)]
pub(crate) struct CvfsMkfsOptions {
    /// File, or tcp:ADDRESS:PORT/NQN
    pub(crate) device: String,
    /// Make the file, or make it this large, for example 1GiB
    #[arg(long, value_parser = bytes)]
    pub(crate) size: Option<u64>,
    /// Write over what is on the device, whatever it is
    #[arg(long)]
    pub(crate) force: bool,
    /// Blocks of 4 KiB in a segment, 8 to 512
    #[arg(long, value_name = "N", default_value_t = 512)]
    pub(crate) segment_blocks: u32,
}

#[derive(Debug, Args)]
pub(crate) struct CvfsMountOptions {
    /// File, or tcp:ADDRESS:PORT/NQN
    pub(crate) device: String,
    /// Where to mount it
    pub(crate) directory: PathBuf,
    /// When to tell the device what is free: aggressive, idle or never
    #[arg(long, default_value = "aggressive")]
    pub(crate) discards: String,
    /// Let a file play a drive that remaps, by copying
    #[arg(long)]
    pub(crate) play_remap: bool,
}

#[derive(Debug, Args)]
pub(crate) struct CvfsShrinkOptions {
    /// Directory where it is mounted
    pub(crate) mount: PathBuf,
    /// Size wanted, for example 900MiB
    #[arg(value_parser = bytes)]
    pub(crate) size: u64,
    /// remap (if the device can), relocate or holes
    #[arg(long, default_value = "relocate")]
    pub(crate) method: String,
}

#[derive(Debug, Args)]
pub(crate) struct CvfsManageOptions {
    /// Directory where it is mounted
    pub(crate) mount: PathBuf,
    /// The drive that it lies on: tcp:ADDRESS:PORT/NQN
    #[arg(long)]
    pub(crate) drive: String,
    /// Share of the first performance to keep, above 0 and up to 1: superblocks that need too many retries are retired
    #[arg(long, value_name = "SHARE")]
    pub(crate) performance: Option<f64>,
    /// Bit error rate above which superblocks are retired, for example 0.05
    #[arg(long, value_name = "RATE")]
    pub(crate) reliability: Option<f64>,
    /// Flash below which the drive is degraded, for example 100GiB
    #[arg(long, value_name = "SIZE", value_parser = bytes)]
    pub(crate) watermark: Option<u64>,
    /// Seconds between two looks at the drive
    #[arg(long, value_name = "N", default_value_t = 1.0)]
    pub(crate) period: f64,
    /// Look once and end
    #[arg(long)]
    pub(crate) once: bool,
}

/// Memory of what is in flight that a server can work with.
const IN_FLIGHT: std::ops::RangeInclusive<u64> = 16 << 20..=1 << 40;

fn in_flight(text: &str) -> Result<u64, String> {
    match bytes(text)? {
        size if IN_FLIGHT.contains(&size) => Ok(size),
        _ => Err("give 16 MiB to 1 TiB".to_owned()),
    }
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

/// What a drive that serves is aged to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum AgeLevel {
    /// Share of its nominal erases.
    Used(f64),
    /// Raw bit error rate.
    ErrorRate(f64),
}

impl std::str::FromStr for AgeLevel {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = |text: &str| text.trim().parse::<f64>().ok().filter(|number| number.is_finite());
        let found = match text.strip_suffix('%') {
            Some(percent) => number(percent).map(|percent| Self::Used(percent / 100.0)),
            None => number(text).map(Self::ErrorRate),
        };
        found.ok_or_else(|| format!("{text:?} is no age; give a level of wear as in 50%, or an error rate as in 0.004"))
    }
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

#[derive(Debug, Args)]
#[command(group(ArgGroup::new("nvme").args(["listen", "listen_tls"]).multiple(true)))]
pub(crate) struct ServeOptions {
    /// Scenario file (TOML), or live; its first design is served. Or a file that describes volumes
    pub(crate) scenario: PathBuf,
    /// Override a key, for example --set jbof.drives=24
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub(crate) set: Vec<String>,
    /// Seed of all random streams, in place of the scenario's
    #[arg(long, value_parser = seed)]
    pub(crate) seed: Option<u64>,
    /// Serve NVMe over TCP at this address, for example 127.0.0.1:4420; several make several ports to the same drives
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = address)]
    pub(crate) listen: Vec<SocketAddr>,
    /// Serve NVMe over TCP within TLS 1.3 at this address, to the hosts of --hosts that have a key; several make several ports
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = address, requires = "hosts")]
    pub(crate) listen_tls: Vec<SocketAddr>,
    /// Hosts that may connect: lines of NQN [SECRET [CONTROLLER-SECRET]] [TLS-KEY], for all drives or for those of a line
    /// [drive-0 drive-3] above, in a file that others cannot read; everybody without it
    #[arg(long, value_name = "FILE", requires = "nvme")]
    pub(crate) hosts: Option<PathBuf>,
    /// Let clients in from other machines, or over NBD beside --hosts, without any proof of who they are
    #[arg(long)]
    pub(crate) insecure: bool,
    /// Begin the drives' NVMe qualified names with this, in place of serve.nqn: two servers of one scenario that one host
    /// uses need different ones
    #[arg(long, value_name = "NQN")]
    pub(crate) nqn: Option<String>,
    /// Serve NBD at this address, or at the socket unix:PATH
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub(crate) nbd: Option<NbdAddress>,
    /// Serve disks of virtual machines by vhost-user-blk at this socket; with several drives at PATH-0, PATH-1 and so on
    #[arg(long, value_name = "PATH")]
    pub(crate) vhost_user_blk: Option<PathBuf>,
    /// Connections of each front end at most
    #[arg(long, value_name = "N", default_value_t = 4096, value_parser = clap::value_parser!(u16).range(1..=60_000))]
    pub(crate) connections: u16,
    /// Memory that requests and answers of all clients may take together
    #[arg(long, value_name = "SIZE", default_value = "256 MiB", value_parser = in_flight)]
    pub(crate) in_flight: u64,
    /// Serve the dashboard at this address, for example 127.0.0.1:8080
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = address)]
    pub(crate) dash: Option<SocketAddr>,
    /// Keep the drives' bytes in this directory, over restarts; in memory without it
    #[arg(long, value_name = "DIR")]
    pub(crate) data: Option<PathBuf>,
    /// real, off (as fast as possible while requests are in flight), or simulated seconds a second
    #[arg(long, value_name = "PACE")]
    pub(crate) pace: Option<Pacing>,
    /// Write everything that is asked and done to this file, for `flashyard replay`
    #[arg(long, value_name = "FILE")]
    pub(crate) journal: Option<PathBuf>,
    /// Write a trace of all requests to this file, with the time that each took
    #[arg(long, value_name = "FILE")]
    pub(crate) record: Option<PathBuf>,
    /// Replace the files of --journal and --record if they are there already
    #[arg(long)]
    pub(crate) force: bool,
    /// End after so many seconds; on Ctrl-C without it
    #[arg(long, value_name = "N", value_parser = seconds)]
    pub(crate) seconds: Option<f64>,
    /// Listen for `flashyard ctl` at this socket
    #[arg(long, value_name = "PATH")]
    pub(crate) control: Option<PathBuf>,
    /// Put load on the drives from inside the program, so many requests in flight, and compare every byte
    #[arg(long, value_name = "DEPTH", value_parser = clap::value_parser!(u16).range(1..=4096))]
    pub(crate) load: Option<u16>,
    /// Tell more of what happens
    #[arg(long, short)]
    pub(crate) verbose: bool,
}

#[derive(Debug, Args)]
pub(crate) struct BillboardOptions {
    /// Listen at this address
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = address, default_value = "127.0.0.1:7000")]
    pub(crate) listen: SocketAddr,
    /// Let servers of other machines in, without any proof of who they are
    #[arg(long)]
    pub(crate) insecure: bool,
    /// End after this time
    #[arg(long, value_name = "N", value_parser = some_seconds)]
    pub(crate) seconds: Option<f64>,
}

#[derive(Debug, Args)]
pub(crate) struct LoadOptions {
    /// Where the target listens
    #[arg(value_parser = address)]
    pub(crate) address: SocketAddr,
    /// NVMe qualified name of the subsystem
    pub(crate) nqn: String,
    /// Requests in flight, over all queues
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=4000))]
    pub(crate) depth: u16,
    /// I/O queues, each with a connection of its own
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=64))]
    pub(crate) queues: u16,
    /// Bytes of a request
    #[arg(long, default_value_t = 4096, value_parser = clap::value_parser!(u32).range(512..=1_048_576))]
    pub(crate) block_bytes: u32,
    /// Reads among the requests, in percent; the others write
    #[arg(long, default_value_t = 100)]
    pub(crate) reads: u8,
    /// One request after the other in place of random ones
    #[arg(long)]
    pub(crate) sequential: bool,
    /// How long it is measured
    #[arg(long, value_name = "N", default_value_t = 5.0, value_parser = some_seconds)]
    pub(crate) seconds: f64,
    /// Seed of the choices
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
    /// Name of this host
    #[arg(long, default_value = "nqn.2026-11.io.flashyard:load")]
    pub(crate) host_nqn: String,
    /// File with what this host proves to know, as nvme gen-dhchap-key prints it; - is the standard input
    #[arg(long, value_name = "FILE")]
    pub(crate) secret_file: Option<PathBuf>,
    /// File with the key of TLS of this host, as flashyard tls-key prints it; - is the standard input
    #[arg(long, value_name = "FILE")]
    pub(crate) tls_key_file: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct TlsKeyOptions {
    /// The hash function of its cipher suite: sha-256 for a key of 32 bytes, sha-384 for 48
    #[arg(long, value_enum, default_value_t = TlsHash::Sha256)]
    pub(crate) hash: TlsHash,
}

/// Hash functions of the cipher suites of NVMe/TCP.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum TlsHash {
    #[value(name = "sha-256")]
    Sha256,
    #[value(name = "sha-384")]
    Sha384,
}

/// A seed.
fn seed(text: &str) -> Result<u64, String> {
    let seed = text.parse().ok().filter(|seed| *seed <= SEED_MAX);
    seed.ok_or_else(|| format!("give a whole number from 0 to {SEED_MAX}"))
}

/// A number of seeds: one has no confidence interval.
fn seeds(text: &str) -> Result<u64, String> {
    let seeds = text.parse().ok().filter(|seeds| (2..=1000).contains(seeds));
    seeds.ok_or_else(|| "give a whole number from 2 to 1000".to_owned())
}

/// An address with its port. A name is looked up; of several addresses one of IPv4 is preferred, as names of this machine
/// usually have both.
fn address(text: &str) -> Result<SocketAddr, String> {
    if let Ok(address) = text.parse() {
        return Ok(address);
    }
    let wrong = |why: &str| format!("{why}; give ADDRESS:PORT, for example 127.0.0.1:4420 or [::1]:4420");
    let Some((name, port)) = text.rsplit_once(':') else { return Err(wrong("the port is missing")) };
    if port.parse::<u16>().is_err() {
        return Err(wrong(&format!("{port:?} is no port from 0 to 65535")));
    }
    if name.is_empty() {
        return Err(wrong("the address is missing"));
    }
    let found: Vec<SocketAddr> = text.to_socket_addrs().map(Iterator::collect).unwrap_or_default();
    let preferred = found.iter().find(|address| address.is_ipv4()).or(found.first());
    preferred.copied().ok_or_else(|| wrong(&format!("there is no host {name:?}")))
}

/// A number of drive writes: above zero, at most a million.
fn drive_writes(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(number) if number > 0.0 && number <= 1e6 => Ok(number),
        _ => Err("give a number above 0, at most 1000000".to_owned()),
    }
}

/// A length of time on the wall.
fn seconds(text: &str) -> Result<f64, String> {
    let seconds: f64 = text.parse().map_err(|_| "give a number of seconds".to_owned())?;
    if (0.0..=1e9).contains(&seconds) { Ok(seconds) } else { Err("give 0 to 1000000000 seconds".to_owned()) }
}

/// The same, but not none.
fn some_seconds(text: &str) -> Result<f64, String> {
    match seconds(text) {
        Ok(seconds) if seconds > 0.0 => Ok(seconds),
        _ => Err("give more than 0 seconds, at most 1000000000".to_owned()),
    }
}

#[derive(Debug, Args)]
pub(crate) struct ReplayOptions {
    /// Journal of `flashyard serve --journal`
    pub(crate) journal: PathBuf,
}

#[derive(Debug, Args)]
pub(crate) struct CtlOptions {
    /// The socket of `flashyard serve --control`
    pub(crate) control: PathBuf,
    #[command(subcommand)]
    pub(crate) command: Switch,
}

#[derive(Clone, Debug, Subcommand)]
pub(crate) enum Switch {
    /// Pull a drive out: its power is away until it is put back
    Pull {
        /// Number of the drive
        drive: u16,
    },
    /// Put a drive back
    Insert {
        /// Number of the drive
        drive: u16,
    },
    /// Cut the power of all drives
    PowerCut,
    /// Restore the power of all drives
    PowerRestore,
    /// Take the link of a drive down, or up again
    Link {
        /// Number of the drive
        drive: u16,
        /// Whether there is a link
        state: OnOff,
    },
    /// Let the firmware of a drive stand still
    Hang {
        /// Number of the drive
        drive: u16,
        /// Simulated milliseconds
        ms: f64,
    },
    /// Age a drive: to a level of wear, or to a raw bit error rate
    Age {
        /// Number of the drive
        drive: u16,
        /// Share of the nominal erases that is used, as in 50% (of a drive with [drive.wear]); or a raw bit error rate
        /// from 0 to 0.5
        level: AgeLevel,
    },
    /// Let drives lend each other cores and memory, or not
    Harvest {
        /// Whether they lend
        state: OnOff,
    },
    /// Take a port of NVMe/TCP down, or up again
    Port {
        /// Its address, as given to --listen
        #[arg(value_parser = address)]
        address: SocketAddr,
        /// Whether it listens
        state: OnOff,
    },
    /// Let other storage take the place of a leg of a volume, and rebuild it while the volume serves
    Replace {
        /// Name of the volume
        volume: String,
        /// Number of the leg, as in `status`
        leg: usize,
        /// Keys of the storage, for example 'file = "new", size = "1 GiB"'
        storage: String,
    },
    /// Put a service over a leg or a service of a volume that is served
    Add {
        /// Name of the volume
        volume: String,
        /// What it comes above, as in `status`: the number of a leg, or s0 and so on
        place: String,
        /// Keys of the service and of its other legs, for example 'service = "mirror", legs = [{ file = "b" }]'
        service: String,
    },
    /// Take a service out of a volume that is served; requests wait until all is flushed
    Remove {
        /// Name of the volume
        volume: String,
        /// The service, as in `status`: s0 and so on
        place: String,
    },
    /// Make storage one more leg of a mirror, which copies everything to it
    Attach {
        /// Name of the volume
        volume: String,
        /// The mirror, as in `status`: s0 and so on
        place: String,
        /// Keys of the storage, for example 'file = "new", size = "1 GiB"'
        storage: String,
    },
    /// Let a mirror go on without one of its legs
    Detach {
        /// Name of the volume
        volume: String,
        /// Number of the leg, as in `status`
        leg: usize,
    },
    /// Take a version of a volume as it is now, and print its slot
    Take {
        /// Name of the volume
        volume: String,
    },
    /// Drop a version of a volume
    Drop {
        /// Name of the volume
        volume: String,
        /// Its slot, from 1
        slot: u32,
    },
    /// Set a number of a volume's services
    Set {
        /// Name of the volume
        volume: String,
        /// The number: batch_one_in, under_way or batch_under_way of a priority; scrub, pause_us, moves or move_pause_us of an array
        name: String,
        /// Its value
        value: u64,
    },
    /// Print figures since they were asked for last: a line for each drive, or the trees of volumes
    Status {
        /// Print all figures as JSON
        #[arg(long)]
        json: bool,
        /// Print this drive only
        #[arg(long, value_name = "N")]
        drive: Option<u16>,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum OnOff {
    /// There is one, or they do
    #[value(alias = "up")]
    On,
    /// There is none, or they do not
    #[value(alias = "down")]
    Off,
}

impl OnOff {
    pub(crate) fn is_on(self) -> bool {
        self == Self::On
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum TraceCommand {
    /// Statistics of a trace
    Info {
        /// Trace file, plain, zstd or gzip
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
    /// Trace file, plain, zstd or gzip; it is read twice
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
    /// Trace file, plain, zstd or gzip
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
