//! Options of commands about volumes that shrink while they are in use.

use crate::byte_count::bytes;
use clap::{Args, Subcommand};
use std::path::PathBuf;

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
