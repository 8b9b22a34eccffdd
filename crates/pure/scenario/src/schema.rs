//! The scenario file: every key, with its unit in its name or its value. One definition feeds parsing, the
//! JSON Schema and the resolved copy in every result.

use crate::explore::ExploreSection;
use crate::life::LifeSection;
use crate::live::ServeSection;
use crate::quantity::{Rate, Size, Time};
use crate::sweep::Sweep;
use crate::wear::WearSection;
use flashyard_report::Shares;
use schemars::JsonSchema;
use serde::Deserialize;

/// A scenario with its profiles merged in.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// Short name, used in results.
    pub name: String,
    /// One line for people.
    #[serde(default)]
    pub title: String,
    /// Seed of all random streams.
    pub seed: u64,
    /// Designs to run: conv, oc, shrunk, vh, vh-ideal, proch, xbof.
    pub designs: Vec<String>,
    /// The box.
    pub jbof: JbofSection,
    /// The drive; `profile` names a file of profiles/drives, other keys override it.
    pub drive: DriveSection,
    /// Groups of drives that differ; without any, all are as `drive` says.
    #[serde(default)]
    pub group: Vec<GroupSection>,
    /// The host; `profile` names a file of profiles/hosts.
    pub host: HostSection,
    /// Prices; `profile` names a file of profiles/prices.
    pub prices: PricesSection,
    /// Harvesting.
    #[serde(default)]
    pub harvest: HarvestSection,
    /// Switches between drives and hosts.
    #[serde(default)]
    pub fabric: FabricSection,
    /// Virtual drives.
    #[serde(default)]
    pub vh: VhSection,
    /// What is asked of the busy drives; nothing of a box that only serves.
    #[serde(default)]
    pub workload: WorkloadSection,
    /// How long to run.
    #[serde(default)]
    pub run: RunSection,
    /// How a drive ages.
    #[serde(default)]
    pub life: LifeSection,
    /// How the box serves.
    #[serde(default)]
    pub serve: ServeSection,
    /// Keys to sweep, each with its values: `"drive.cores" = [2, 3, 6]`. Every combination is run.
    #[serde(default)]
    pub sweep: Sweep,
    /// What the runs of a sweep are held against.
    #[serde(default)]
    pub explore: ExploreSection,
}

/// The box.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct JbofSection {
    /// Drives, 1 to 255.
    pub drives: u32,
    /// Drives that run the workload; the others are idle.
    pub busy_drives: u32,
    /// Share of cores and mapping memory that shrunk designs keep.
    #[serde(default = "half")]
    pub shrunk_share: f64,
    /// Share of the cores alone, where it differs.
    pub shrunk_cores: Option<f64>,
    /// Share of the mapping memory alone, where it differs.
    pub shrunk_memory: Option<f64>,
}

impl JbofSection {
    /// What shrunk designs keep.
    pub(crate) fn kept(&self) -> Shares {
        Shares {
            cores: self.shrunk_cores.unwrap_or(self.shrunk_share),
            memory: self.shrunk_memory.unwrap_or(self.shrunk_share),
        }
    }
}

/// A drive.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DriveSection {
    /// Name of the profile this came from.
    #[serde(default)]
    pub profile: String,
    /// Channels.
    pub channels: u32,
    /// Dies on each channel.
    pub dies_per_channel: u32,
    /// Planes of each die.
    pub planes_per_die: u32,
    /// Blocks of each plane.
    pub blocks_per_plane: u32,
    /// Pages of each block.
    pub pages_per_block: u32,
    /// Page size.
    pub page_size: Size,
    /// Share of the raw capacity kept back, 0 to 1.
    pub over_provisioning: f64,
    /// Share of the exported capacity written sequentially before the run.
    #[serde(default = "one")]
    pub filled: f64,
    /// Random overwrites of the whole filled capacity before the run, without timing.
    #[serde(default)]
    pub overwritten: f64,
    /// File of an aged drive (`flashyard age --save`) that the drive begins as, in place of being filled and
    /// overwritten; from the directory of the scenario.
    pub aged_state: Option<String>,
    /// Read time of LSB pages.
    pub read_lsb: Time,
    /// Read time of CSB pages.
    pub read_csb: Time,
    /// Read time of MSB pages.
    pub read_msb: Time,
    /// One program pulse with its verify.
    pub program_pulse: Time,
    /// Pulses for LSB, CSB and MSB pages.
    pub program_pulses: [u32; 3],
    /// Erase time.
    pub erase: Time,
    /// Channel bus rate.
    pub channel_rate: Rate,
    /// Reads that may pass a waiting program.
    pub starvation_bound: u32,
    /// Raw bit error rate.
    pub raw_bit_error_rate: f64,
    /// Raw bit error rate that the code corrects.
    pub correctable_bit_error_rate: f64,
    /// Retries after which a read is given up and its data counts as lost, 0 to 14; without it every read succeeds in
    /// the end, as published.
    pub read_retries_max: Option<u32>,
    /// What erases, reads and age do to the flash; without it only the rates above count.
    pub wear: Option<WearSection>,
    /// Supply voltage.
    pub supply_volts: f64,
    /// Array current of a busy die.
    pub active_milliamperes: f64,
    /// Current of a die on the bus.
    pub bus_idle_milliamperes: f64,
    /// Standby current of a die.
    pub standby_milliamperes: f64,
    /// Controller cores with full resources.
    pub cores: u32,
    /// Their clock.
    pub core_clock_mhz: u64,
    /// Power of a core.
    pub core_power_watts: f64,
    /// Firmware cycles a command.
    pub cycles_per_command: u64,
    /// Firmware cycles a slice of 4 KiB.
    pub cycles_per_slice: u64,
    /// Stall for each mapping entry.
    pub stall_per_slice: Time,
    /// DMA rate to the host.
    pub read_rate: Rate,
    /// DMA rate from the host.
    pub write_rate: Rate,
    /// Link rate.
    pub link_rate: Rate,
    /// Write buffer.
    pub write_buffer: Size,
    /// Bytes over the channel for a translation page.
    pub translation_page_transfer: Size,
    /// greedy, cost-benefit, capacity-variant or fewest-valid-oldest.
    pub victim: VictimName,
    /// Which erased superblock is opened next: fifo (as without the key), youngest-first, oldest-first or wear-focusing.
    pub allocation: Option<String>,
    /// Wear leveling: none (as without the key), hot-cold-swap(TH), obp(TH,PT), dp(TH), pwl(PERCENT) or uneven(PERCENT).
    pub wear_leveling: Option<String>,
    /// Write frontiers of host data and moved data: separate (as without the key) or shared.
    pub frontiers: Option<String>,
    /// Erased superblocks that start reclaim.
    pub reclaim_below: u32,
    /// Reclaim reads in flight.
    pub reclaim_reads: u32,
    /// Stripes of dies with parity; none without it.
    pub stripe: Option<StripeSection>,
    /// Superblocks of single-level cache.
    pub slc_superblocks: u32,
    /// Whether commands share flash pages.
    pub coalesce_writes: bool,
    /// Whether the write buffer survives power loss.
    pub power_loss_protection: bool,
    /// DRAM energy.
    pub dram_picojoules_per_bit: f64,
    /// Link energy.
    pub link_picojoules_per_bit: f64,
}

/// Parity across dies.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StripeSection {
    /// Dies of a stripe, that of the parity among them: a divisor of the channels from 2 up.
    pub members: u32,
    /// Whether reclaim works on one die of a stripe at a time, in turn.
    #[serde(default = "yes")]
    pub rotates: bool,
    /// What becomes of a read whose die is held by a program or an erase of reclaim: wait, rebuild (as without the key;
    /// from the other dies of the stripe) or rebuild-if-sooner.
    pub blocked_reads: Option<String>,
}

/// Drives that are alike. The box has the drives of all groups; `jbof.drives` and `jbof.busy_drives` follow from them.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GroupSection {
    /// Name in results.
    pub name: String,
    /// Drives.
    pub count: u32,
    /// Drives of them that run the workload; the others are idle.
    #[serde(default)]
    pub busy: u32,
    /// Share of the cores that shrunk designs keep, where it differs from that of the box.
    pub shrunk_cores: Option<f64>,
    /// Share of the mapping memory that they keep, where it differs.
    pub shrunk_memory: Option<f64>,
    /// Price of a full controller, where it differs from the price list.
    pub controller_dollars: Option<f64>,
    /// Keys of `drive` that differ, `drive.cores = 12`, or another `drive.profile`.
    pub drive: DriveSection,
}

/// Victim policies by name.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum VictimName {
    /// Fewest valid slots.
    Greedy,
    /// Free space times age for each slot moved.
    CostBenefit,
    /// By invalid share, erases and reads; needs a `wear` section.
    CapacityVariant,
    /// Fewest valid slots, then most erases.
    FewestValidOldest,
}

/// A host.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HostSection {
    /// Name of the profile this came from.
    #[serde(default)]
    pub profile: String,
    /// Drives in front of which one host stands, in order; without it, one host stands in front of all.
    #[serde(default)]
    pub drives_per_host: Option<u32>,
    /// Cores of each host.
    pub cores: u32,
    /// Their clock.
    pub clock_mhz: u64,
    /// DRAM of each host.
    pub memory: Size,
    /// Driver cycles a command.
    pub driver_cycles: u64,
    /// Latency to the drive, off the cores.
    pub submit_latency: Time,
    /// Latency back.
    pub complete_latency: Time,
    /// OC: host cycles for each firmware cycle.
    pub oc_cycles_factor: f64,
    /// OC: hand-over latency.
    pub oc_latency: Time,
}

/// Prices.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PricesSection {
    /// Name of the profile this came from.
    #[serde(default)]
    pub profile: String,
    /// NAND.
    pub nand_dollars_per_128_gb: f64,
    /// DRAM.
    pub dram_dollars_per_gb: f64,
    /// Full controller.
    pub controller_dollars: f64,
    /// Open-channel controller.
    pub oc_controller_dollars: f64,
    /// Everything else.
    pub other_dollars: f64,
    /// Premium on compute for CXL.
    pub cxl_premium: f64,
}

/// Harvesting. Absent keys keep the defaults of the sheet.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct HarvestSection {
    /// Monitor and descriptor period.
    pub period: Option<Time>,
    /// What stands for the load of a processor: utilization, queue-depth or waiting-work.
    pub indicator: Option<String>,
    /// Utilization above which an end is busy.
    pub watermark: Option<f64>,
    /// Processor descriptors each lender offers.
    pub processor_offers: Option<u32>,
    /// Memory descriptors each lender has, for equal parts of its spare memory.
    pub memory_offers: Option<u32>,
    /// Lenders a borrower takes at most.
    pub lenders_max: Option<u32>,
    /// Translation pages of 4 KiB in a segment.
    pub segment_pages: Option<u32>,
    /// Records of the redo log of a segment.
    pub log_records: Option<u32>,
    /// Mapping accesses in a period that a miss ratio needs to count.
    pub accesses_min: Option<u64>,
    /// Periods that a lender waits for memory it has withdrawn.
    pub withdraw_periods: Option<u32>,
    /// Periods without an answer after which the driver gives a drive up.
    pub silent_periods: Option<u32>,
    /// How long the driver waits for a command before it gives up who has it.
    pub io_timeout: Option<Time>,
    /// Weight of all queues of a lender.
    pub lender_weight: Option<u32>,
    /// Weight of a shadow queue.
    pub shadow_weight: Option<u32>,
    /// Which processor on offer a borrower takes: least-loaded, next, random, two-choices or most-spare.
    pub lender_choice: Option<String>,
    /// Whose tables a borrower reads: all, or leaf-first (those behind its own switch, then the others if need be).
    pub scan: Option<String>,
    /// How the driver balances: literal, damped or water-filling.
    pub balance: Option<String>,
    /// Step towards the rule's share each period; 1 is the literal rule.
    pub damping: Option<f64>,
    /// How long after the drives the host looks at the descriptors, as a share of a period.
    pub host_phase: Option<f64>,
    /// Whole periods that the utilizations which the driver balances by are old.
    pub sensing_delay: Option<u32>,
    /// Standard deviation of these utilizations, as a share of the value.
    pub sensing_noise: Option<f64>,
    /// How much lending may raise the p99 of a lender's own commands, as a share of it: 0.1 is a tenth.
    pub lender_p99_cap: Option<f64>,
    /// Miss ratio above which mapping memory is borrowed.
    pub target_miss_ratio: Option<f64>,
    /// Whether borrowed memory is warm at once.
    pub warm_memory: Option<bool>,
}

/// Switches between drives and hosts. Absent keys keep the defaults of the sheet.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct FabricSection {
    /// Downstream ports of a switch: drives under a leaf, leaves under a switch above them.
    pub radix: Option<u32>,
    /// Latency of each switch beyond the first on a path, one way.
    pub hop: Option<Time>,
}

/// Virtual drives. Absent keys keep the defaults.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct VhSection {
    /// Idle drives joined to each busy one.
    pub lenders: Option<u32>,
    /// Host cycles for each redirected write.
    pub redirect_cycles: Option<u64>,
    /// Size of a copy-back command.
    pub copy_back_size: Option<Size>,
    /// Copy-back commands in flight for each busy drive.
    pub copy_back_depth: Option<u32>,
}

/// What is asked of the busy drives: `fio`, or else `trace` or `traces`, or else `table2`, or else a pattern.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct WorkloadSection {
    /// Job files of fio, from the directory of the scenario: one for all busy drives, or one each in order, given out
    /// again from the first when there are fewer. A drive runs all jobs of its file at once. No other key of this section
    /// goes with it.
    pub fio: Option<OneOrMany>,
    /// Trace files: one for all busy drives, or one each.
    pub trace: Option<OneOrMany>,
    /// Trace files, one a busy drive in order; fewer than drives are given out again from the first, each time at
    /// another place of the drive. `FILE#format` names the format.
    pub traces: Option<Vec<String>>,
    /// How often a trace is replayed; without it, as often as needed. Also called `repeat`.
    #[serde(alias = "repeat")]
    pub repetitions: Option<u64>,
    /// Multiplies the request sizes of a trace, to whole sectors of 512 bytes and at least one.
    pub size_factor: Option<f64>,
    /// Divides the arrival times of a trace; open loop only.
    pub speed: Option<f64>,
    /// Name of a workload of the published Table 2, generated.
    pub table2: Option<String>,
    /// Name of a trace of the wear-levelling study, generated from its characteristics.
    pub surrogate: Option<String>,
    /// Pattern: sequential, uniform, zipf or hot-cold.
    pub pattern: Option<PatternName>,
    /// Pattern: request size.
    pub size: Option<Size>,
    /// Pattern: share of reads.
    pub read_share: Option<f64>,
    /// Pattern: Zipf exponent.
    pub zipf_theta: Option<f64>,
    /// Pattern: hot share of the space.
    pub hot_space: Option<f64>,
    /// Pattern: share of requests that go there.
    pub hot_traffic: Option<f64>,
    /// Pattern and table2: addressed part of the drive, from its start; all of it without this.
    pub span: Option<Size>,
    /// Pattern and table2, open loop: requests a second of each drive, Poisson arrivals.
    pub requests_per_second: Option<f64>,
    /// Burst length; arrivals then come in bursts.
    pub burst: Option<Time>,
    /// Pause between bursts.
    pub pause: Option<Time>,
    /// Closed loop: requests in flight for each busy drive. Without it, arrival times are kept.
    pub depth: Option<u32>,
}

/// One file or several.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum OneOrMany {
    /// One.
    One(String),
    /// Several.
    Many(Vec<String>),
}

/// Address patterns by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PatternName {
    /// One after the other.
    Sequential,
    /// Anywhere.
    Uniform,
    /// Zipf.
    Zipf,
    /// A hot and a cold part.
    HotCold,
}

/// How long to run.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct RunSection {
    /// Simulated time before figures count; with a job file, in place of its `ramp_time`.
    pub warmup: Option<Time>,
    /// Simulated time that figures cover; with a job file, the most that they cover.
    pub measure: Option<Time>,
    /// Requests of each busy drive that warm its mapping cache before the run, without timing. A trace warms
    /// with one pass at most.
    pub warm_mapping_requests: u64,
    /// Requests of each busy drive, when `measure` is absent: the run and its measured window end when the first drive
    /// has been asked for so many, since load falls from then on.
    pub requests_per_drive: Option<u64>,
}

fn yes() -> bool {
    true
}

fn half() -> f64 {
    0.5
}

fn one() -> f64 {
    1.0
}
