//! The keys of a drive.

use super::records::RecordsSection;
use crate::flash::FlashSection;
use crate::names::{Choice, Policy};
use crate::quantity::{Rate, Size, Time};
use crate::wear::WearSection;
use flashyard_ftl::{Allocation, Frontiers, VictimPolicy, WearLeveling};
use flashyard_ssd::{BlockedReads, Overwrites, PacingRule};
use schemars::JsonSchema;
use serde::Deserialize;

/// A drive.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(transform = super::sheet::add_to)]
pub struct DriveSection {
    /// Name of the profile this came from.
    #[serde(default)]
    pub profile: String,
    /// Channels.
    #[schemars(range(min = 1, max = 256))]
    pub channels: u32,
    /// Dies on each channel.
    #[schemars(range(min = 1, max = 256))]
    pub dies_per_channel: u32,
    /// Planes of each die.
    #[schemars(range(min = 1, max = 64))]
    pub planes_per_die: u32,
    /// Blocks of each plane.
    #[schemars(range(min = 1, max = 4_194_304))]
    pub blocks_per_plane: u32,
    /// Pages of each block.
    #[schemars(range(min = 1, max = 65_536))]
    pub pages_per_block: u32,
    /// Page size.
    #[schemars(extend("x-minimum" = "4 KiB", "x-maximum" = "256 KiB"))]
    pub page_size: Size,
    /// Share of the raw capacity kept back, 0 to 1.
    #[schemars(range(min = 0.0, max = 0.99))]
    pub over_provisioning: f64,
    /// Share of the exported capacity written sequentially before the run.
    #[serde(default = "one")]
    #[schemars(range(min = 0.0, max = 1.0))]
    pub filled: f64,
    /// Random overwrites of the whole filled capacity before the run, without timing.
    #[serde(default)]
    #[schemars(range(min = 0.0, max = 100.0))]
    pub overwritten: f64,
    /// Whether the overwrites go on until write amplification is steady by the rule of SNIA's specification: over five
    /// rounds of an eighth of the filled capacity within a fifth of its mean, and the line through them within a tenth;
    /// after 25 rounds at the latest.
    #[serde(default)]
    pub until_steady: bool,
    /// Whether the filled capacity lies as after overwriting it at random for long before that: the steady state is drawn
    /// from the seed and takes no time. Needs victims of fewest valid slots and no single-level cache.
    #[serde(default)]
    pub drawn: bool,
    /// File of an aged drive (`flashyard age --save`) that the drive begins as, in place of being filled and
    /// overwritten; from the directory of the scenario.
    pub aged_state: Option<String>,
    /// Read time of LSB pages.
    #[schemars(extend("x-minimum" = "0 ns", "x-maximum" = "1 s"))]
    pub read_lsb: Time,
    /// Read time of CSB pages.
    #[schemars(extend("x-minimum" = "0 ns", "x-maximum" = "1 s"))]
    pub read_csb: Time,
    /// Read time of MSB pages.
    #[schemars(extend("x-minimum" = "0 ns", "x-maximum" = "1 s"))]
    pub read_msb: Time,
    /// One program pulse with its verify.
    #[schemars(extend("x-minimum" = "0 ns", "x-maximum" = "1 s"))]
    pub program_pulse: Time,
    /// Pulses for LSB, CSB and MSB pages.
    #[schemars(inner(range(min = 1, max = 1000)))]
    pub program_pulses: [u32; 3],
    /// Erase time.
    #[schemars(extend("x-minimum" = "0 ns", "x-maximum" = "10 s"))]
    pub erase: Time,
    /// Channel bus rate.
    #[schemars(extend("x-minimum" = "1 MB/s", "x-maximum" = "10000 TB/s"))]
    pub channel_rate: Rate,
    /// Reads that may pass a waiting program.
    #[schemars(range(min = 0, max = 1_000_000))]
    pub starvation_bound: u32,
    /// Raw bit error rate.
    #[schemars(range(min = 0.0, max = 0.5))]
    pub raw_bit_error_rate: f64,
    /// Raw bit error rate that the code corrects.
    #[schemars(range(min = 0.0, max = 0.5))]
    pub correctable_bit_error_rate: f64,
    /// Retries after which a read is given up and its data counts as lost, 0 to 14; without it every read succeeds in
    /// the end, as published.
    #[schemars(range(min = 0, max = 14))]
    pub read_retries_max: Option<u32>,
    /// Capabilities of the flash beyond one command at a time, page by page; nothing without it, as published.
    pub flash: Option<FlashSection>,
    /// Effects of erases, reads and age on the flash; without it only the rates above count.
    pub wear: Option<WearSection>,
    /// Supply voltage.
    #[schemars(range(min = 0.0, max = 100.0))]
    pub supply_volts: f64,
    /// Array current of a busy die.
    #[schemars(range(min = 0.0, max = 10_000.0))]
    pub active_milliamperes: f64,
    /// Current of a die on the bus.
    #[schemars(range(min = 0.0, max = 10_000.0))]
    pub bus_idle_milliamperes: f64,
    /// Standby current of a die.
    #[schemars(range(min = 0.0, max = 10_000.0))]
    pub standby_milliamperes: f64,
    /// Controller cores with full resources.
    #[schemars(range(min = 1, max = 32))]
    pub cores: u32,
    /// Their clock.
    #[schemars(range(min = 1, max = 100_000))]
    pub core_clock_mhz: u64,
    /// Power of a core.
    #[schemars(range(min = 0.0, max = 1_000.0))]
    pub core_power_watts: f64,
    /// Firmware cycles a command.
    #[schemars(range(min = 0, max = 1_000_000_000))]
    pub cycles_per_command: u64,
    /// Firmware cycles a slice of 4 KiB.
    #[schemars(range(min = 0, max = 1_000_000))]
    pub cycles_per_slice: u64,
    /// Firmware cycles for each slice of 4 KiB that garbage collection moves; none without the key.
    #[serde(default)]
    #[schemars(range(min = 0, max = 1_000_000))]
    pub cycles_per_moved_slice: u64,
    /// Time between two commands that the controller begins, at least; none without the key. A lone command does not wait for it.
    #[schemars(extend("x-minimum" = "0 ns", "x-maximum" = "1 s"))]
    pub command_interval: Option<Time>,
    /// Stall for each mapping entry.
    #[schemars(extend("x-minimum" = "0 ns", "x-maximum" = "1 ms"))]
    pub stall_per_slice: Time,
    /// DMA rate to the host.
    #[schemars(extend("x-minimum" = "1 MB/s", "x-maximum" = "10000 TB/s"))]
    pub read_rate: Rate,
    /// DMA rate from the host.
    #[schemars(extend("x-minimum" = "1 MB/s", "x-maximum" = "10000 TB/s"))]
    pub write_rate: Rate,
    /// Link rate.
    #[schemars(extend("x-minimum" = "1 MB/s", "x-maximum" = "10000 TB/s"))]
    pub link_rate: Rate,
    /// Write buffer.
    #[schemars(extend("x-minimum" = "8 KiB", "x-maximum" = "2 GiB"))]
    pub write_buffer: Size,
    /// Memory for data of reads; none without the key.
    #[schemars(extend("x-minimum" = "32 KiB", "x-maximum" = "64 GiB"))]
    pub read_cache: Option<Size>,
    /// Data that is read ahead of hosts that read in sequence, into `read_cache`; none without the key, and half of the cache at
    /// most.
    #[schemars(extend("x-minimum" = "4 KiB", "x-maximum" = "32 GiB"))]
    pub read_ahead: Option<Size>,
    /// Data that one entry of the map is for: a power of two from 4 KiB (as without the key) to 64 KiB. A write of less reads
    /// the rest and writes it again.
    #[schemars(extend("x-minimum" = "4 KiB", "x-maximum" = "64 KiB"))]
    pub mapping_unit: Option<Size>,
    /// Memory for the map, 4 bytes for each mapping unit; without the key there is enough for the whole map. What it does not
    /// hold is read from flash.
    #[schemars(extend("x-minimum" = "4 KiB", "x-maximum" = "64 GiB"))]
    pub map_memory: Option<Size>,
    /// Bytes over the channel for a translation page.
    #[schemars(extend("x-minimum" = "0 B", "x-maximum" = "1 MiB"))]
    pub translation_page_transfer: Size,
    /// How garbage collection chooses its victim.
    pub victim: Choice<VictimPolicy>,
    /// Which erased superblock is opened next: fifo (as without the key), youngest-first, oldest-first or wear-focusing.
    pub allocation: Option<Choice<Allocation>>,
    /// Wear leveling: none (as without the key), hot-cold-swap(TH), obp(TH,PT), dp(TH), pwl(PERCENT) or uneven(PERCENT).
    pub wear_leveling: Option<Policy<WearLeveling>>,
    /// Write frontiers of host data and moved data: separate (as without the key) or shared.
    pub frontiers: Option<Choice<Frontiers>>,
    /// Erased superblocks that start reclaim.
    #[schemars(range(min = 2, max = 65_536))]
    pub reclaim_below: u32,
    /// Reclaim reads in flight.
    #[schemars(range(min = 1, max = 65_536))]
    pub reclaim_reads: u32,
    /// How host writes are paced while garbage collection works: none (as without the key), debt or rate.
    pub pacing: Option<Choice<PacingRule>>,
    /// Bytes that are programmed in a second at most, which the drive's power limits: the sequential write of a data sheet
    /// where that is below link and dies. All dies at once without the key.
    #[schemars(extend("x-minimum" = "1 MB/s", "x-maximum" = "10000 TB/s"))]
    pub program_rate: Option<Rate>,
    /// Journal and checkpoints of the map that the drive writes to flash; none without it.
    pub records: Option<RecordsSection>,
    /// Stripes of dies with parity; none without it.
    pub stripe: Option<StripeSection>,
    /// Superblocks of single-level cache.
    #[schemars(range(min = 0, max = 65_536))]
    pub slc_superblocks: u32,
    /// Whether the cache takes erased superblocks beyond that which nothing else needs.
    #[serde(default)]
    pub slc_grows: bool,
    /// Host reads of a superblock after which its data is moved; never without the key.
    #[schemars(range(min = 1, max = 4_000_000_000_u32))]
    pub refresh_reads: Option<u32>,
    /// Whether commands share flash pages.
    pub coalesce_writes: bool,
    /// Whether the write buffer survives power loss. If not, a flush waits for flash, and a power cut takes what was not
    /// flushed.
    pub power_loss_protection: bool,
    /// DRAM energy.
    #[schemars(range(min = 0.0, max = 1e6))]
    pub dram_picojoules_per_bit: f64,
    /// Link energy.
    #[schemars(range(min = 0.0, max = 1e6))]
    pub link_picojoules_per_bit: f64,
}

impl DriveSection {
    /// Overwrites before the run.
    pub fn overwrites(&self) -> Overwrites {
        Overwrites { times: self.overwritten, until_steady: self.until_steady }
    }
}

/// Parity across dies.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StripeSection {
    /// Dies of a stripe, that of the parity among them: a divisor of the channels from 2 up.
    #[schemars(range(min = 2, max = 256))]
    pub members: u32,
    /// Whether reclaim works on one die of a stripe at a time, in turn.
    #[serde(default = "yes")]
    pub rotates: bool,
    /// The way of a read whose die is held by a program or an erase of reclaim: wait, rebuild (as without the key;
    /// from the other dies of the stripe) or rebuild-if-sooner.
    pub blocked_reads: Option<Choice<BlockedReads>>,
}

fn yes() -> bool {
    true
}

fn one() -> f64 {
    1.0
}
