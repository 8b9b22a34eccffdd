//! Options of `flashyard ctl`.

use super::values::{address, number};
use crate::byte_count::bytes;
use clap::{Args, Subcommand, ValueEnum};
use std::net::SocketAddr;
use std::path::PathBuf;

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

/// A namespace of a drive, by the name that its NBD export has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NamespaceName {
    /// Number of the drive.
    pub(crate) drive: u16,
    /// Identifier of the namespace, from 1.
    pub(crate) nsid: u32,
}

impl std::str::FromStr for NamespaceName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let named = text.strip_prefix("drive-").unwrap_or(text);
        let (drive, nsid) = named.split_once('/').unwrap_or((named, "1"));
        let found = drive.parse().ok().zip(nsid.parse().ok().filter(|&nsid| nsid > 0));
        let (drive, nsid) = found.ok_or_else(|| {
            format!("{text:?} is no namespace; give drive-0 for the first of a drive, drive-0/2 for its second")
        })?;
        Ok(Self { drive, nsid })
    }
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
        #[arg(value_parser = number)]
        drive: u16,
    },
    /// Put a drive back
    Insert {
        /// Number of the drive
        #[arg(value_parser = number)]
        drive: u16,
    },
    /// Cut the power of all drives
    PowerCut,
    /// Restore the power of all drives
    PowerRestore,
    /// Take the link of a drive down, or up again
    Link {
        /// Number of the drive
        #[arg(value_parser = number)]
        drive: u16,
        /// Whether there is a link
        state: OnOff,
    },
    /// Let the firmware of a drive stand still
    Hang {
        /// Number of the drive
        #[arg(value_parser = number)]
        drive: u16,
        /// Simulated milliseconds
        ms: f64,
    },
    /// Age a drive: to a level of wear, or to a raw bit error rate
    Age {
        /// Number of the drive
        #[arg(value_parser = number)]
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
    /// Give a namespace of a drive another size, while it is served; a smaller one loses the blocks at its end
    Resize {
        /// The namespace, by the name of its NBD export: drive-0, or drive-0/2 for the second one
        namespace: NamespaceName,
        /// Its size, as in 512MiB, a multiple of 4 KiB
        #[arg(value_parser = bytes)]
        size: u64,
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
