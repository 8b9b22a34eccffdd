//! Options of commands that serve, and of those beside them.

use super::values::{address, depth, nqn, seconds, seed, some_seconds};
use crate::byte_count::bytes;
use clap::{ArgGroup, Args, ValueEnum};
use flashyard_live::NbdAddress;
use flashyard_scenario::Pacing;
use std::net::SocketAddr;
use std::path::PathBuf;

/// Memory of what is in flight that a server can work with.
const IN_FLIGHT: std::ops::RangeInclusive<u64> = 16 << 20..=1 << 40;

fn in_flight(text: &str) -> Result<u64, String> {
    match bytes(text)? {
        size if IN_FLIGHT.contains(&size) => Ok(size),
        _ => Err("give 16 MiB to 1 TiB".to_owned()),
    }
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
    #[arg(long, value_name = "NQN", value_parser = nqn)]
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
    /// Take this much memory for the drives' bytes before clients come, an equal part for each drive, so that their first
    /// writes do not wait for it
    #[arg(long, value_name = "SIZE", value_parser = bytes, conflicts_with = "data")]
    pub(crate) prefault: Option<u64>,
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
    #[arg(long, value_name = "DEPTH", value_parser = depth)]
    pub(crate) load: Option<u16>,
    /// Tell more of what happens
    #[arg(long, short)]
    pub(crate) verbose: bool,
}

impl ServeOptions {
    /// Whether there is any way to use the drives.
    pub(crate) fn is_reachable(&self) -> bool {
        let Self { listen, listen_tls, nbd, vhost_user_blk, load, control, dash, .. } = self;
        !(listen.is_empty() && listen_tls.is_empty())
            || nbd.is_some()
            || vhost_user_blk.is_some()
            || load.is_some()
            || control.is_some()
            || dash.is_some()
    }
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

#[derive(Debug, Args)]
pub(crate) struct ReplayOptions {
    /// Journal of `flashyard serve --journal`
    pub(crate) journal: PathBuf,
}
