//! Controls of a world while it serves: pull a drive, cut power or a link, let it age, stop lending.

use flashyard_blk::RequestError;
use flashyard_units::{DriveId, SimSpan, VolumeId};

/// One thing done to a world.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Control {
    /// Takes the power of a drive away until [`Control::Insert`].
    Pull {
        /// Which.
        drive: DriveId,
    },
    /// Gives it back.
    Insert {
        /// Which.
        drive: DriveId,
    },
    /// Takes the power of all drives away until [`Control::PowerOn`].
    PowerOff,
    /// Gives it back to those that have none, and puts back those that were pulled.
    PowerOn,
    /// Takes the link of a drive away, or gives it back. The drive goes on alone.
    Link {
        /// Whose.
        drive: DriveId,
        /// Whether there is one from now on.
        up: bool,
    },
    /// Lets the firmware of a drive stand still.
    Hang {
        /// Which.
        drive: DriveId,
        /// For so long, at most an hour.
        span: SimSpan,
    },
    /// Lets drives lend each other cores and memory, or takes back what is lent.
    Harvest {
        /// Whether they lend.
        on: bool,
    },
    /// Sets the raw bit error rate of a drive's flash: what wear and retention make of it.
    Age {
        /// Which.
        drive: DriveId,
        /// From 0 (never a retry) to 0.5.
        raw_bit_error_rate: f64,
    },
    /// Wears a drive: every superblock has had its share of the nominal erases from now on, and is read accordingly.
    Wear {
        /// Which.
        drive: DriveId,
        /// Share of its life that is used, from 0; 1 is the end of the nominal one.
        level: f64,
    },
    /// Puts a drive into its degraded mode, or out of it.
    Degrade {
        /// Which.
        drive: DriveId,
        /// Whether it is degraded from now on.
        on: bool,
    },
    /// Sets when superblocks of a drive are retired: at the first erase after which either condition holds.
    Retire {
        /// Which.
        drive: DriveId,
        /// Wear alone makes a bit error rate above this.
        rate: Option<f64>,
        /// An undisturbed read needs more retries than this.
        retries: Option<u32>,
    },
    /// Goes on with a rule that was in force before a restart, as [`Control::Retire`] but whatever it leaves.
    Reinstate {
        /// Which.
        drive: DriveId,
        /// As there.
        rate: Option<f64>,
        /// As there.
        retries: Option<u32>,
    },
    /// Takes a superblock that was retired before a restart out of use again; nothing if something is in it.
    Retired {
        /// Which drive.
        drive: DriveId,
        /// Which superblock.
        superblock: u32,
    },
    /// Gives a request up. It is answered when nothing can come of it any more: at once where it is kept for a drive
    /// that is away or has not come to the drive's data, and in its time where it has.
    Drop {
        /// The request's token.
        token: u32,
    },
}

/// Why a world does not do what was asked.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Refused {
    /// There is no such volume.
    #[error("there is no volume {volume}, give 0 to {}", volumes - 1)]
    NoVolume {
        /// Asked for.
        volume: VolumeId,
        /// How many there are.
        volumes: u16,
    },
    /// The volume does not take the request.
    #[error(transparent)]
    Request(#[from] RequestError),
    /// A host has reserved the volume, or it is zoned, and the client is not one of those that may still use it so.
    #[error("volume {volume} is reserved by a host, or zoned, and this client may not use it so")]
    Reserved {
        /// Which.
        volume: VolumeId,
    },
    /// A control that is not possible, with the reason of the world in its own words.
    #[error("{reason}")]
    Control {
        /// Why not, with what would be possible.
        reason: String,
    },
}
