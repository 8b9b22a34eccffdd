//! The sections of scenarios that belong to JBOFs: the enclosure, groups of drives that differ, hosts, switches,
//! harvesting, virtual drives.

use crate::jbof::Placement;
use crate::xbof::{BalanceRule, Indicator, LenderChoice, ScanOrder};
use flashyard_applications::hosted::{FileSystemName, ProgramName};
use flashyard_describe::Purpose::{Faults, Run, Serve};
use flashyard_describe::{Choice, DriveSection, PricesSection, Scenario, ScenarioError, Section, Size, Time};
use flashyard_host::Completions;
use flashyard_report::Shares;
use schemars::JsonSchema;
use serde::Deserialize;
use std::ops::{Deref, DerefMut};

/// The sections.
pub(super) static SECTIONS: [&Section; 9] =
    [&JBOF, &GROUP, &HOST, &flashyard_describe::PRICES, &HARVEST, &FABRIC, &VH, &CHAIN, &PROGRAM];

static JBOF: Section = Section::of::<JbofSection>("jbof", &[("jbof", &[Run, Serve, Faults])]);
static GROUP: Section = Section::of::<Vec<GroupSection>>("group", &[("group", &[Run, Serve])]).with_drives();
static HOST: Section = Section::of::<HostSection>(
    "host",
    &[
        ("host.memory", &[Run]),
        ("host.oc_cycles_factor", &[Run]),
        ("host.oc_latency", &[Run]),
        ("host.period", &[Serve, Faults]),
        ("host.silent_periods", &[Serve, Faults]),
        ("host.io_timeout", &[Serve, Faults]),
        ("host", &[Run, Serve, Faults]),
    ],
)
.with_profiles(
    "hosts",
    &[
        ("dpu", include_str!("../../../../../profiles/hosts/dpu.toml")),
        ("free", include_str!("../../../../../profiles/hosts/free.toml")),
        ("linux", include_str!("../../../../../profiles/hosts/linux.toml")),
    ],
);
static HARVEST: Section =
    Section::of::<HarvestSection>("harvest", &[("harvest", &[Run, Serve, Faults])]).with_moved(&[
        ("harvest.io_timeout", "host.io_timeout", "for the driver of every design has it"),
        ("harvest.silent_periods", "host.silent_periods", "for the driver of every design has it"),
    ]);
static FABRIC: Section = Section::of::<FabricSection>("fabric", &[("fabric", &[Run, Serve, Faults])]);
static VH: Section = Section::of::<VhSection>("vh", &[("vh", &[Run])]);
static CHAIN: Section = Section::of::<ChainSection>("chain", &[("chain", &[Run, Serve, Faults])]);
static PROGRAM: Section = Section::of::<ProgramSection>("program", &[("program", &[Run])]);

/// The sections as they are read.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Sections {
    jbof: JbofSection,
    #[serde(default)]
    group: Vec<GroupSection>,
    host: HostSection,
    prices: PricesSection,
    #[serde(default)]
    harvest: HarvestSection,
    #[serde(default)]
    fabric: FabricSection,
    #[serde(default)]
    vh: VhSection,
    #[serde(default)]
    chain: ChainSection,
    program: Option<ProgramSection>,
}

/// The scenario of a JBOF: what all scenarios have, and its own sections.
#[derive(Clone, Debug)]
pub(crate) struct JbofScenario {
    common: Scenario,
    /// The enclosure.
    pub(crate) jbof: JbofSection,
    /// Groups of drives that differ; without any, all are as `drive` says.
    pub(crate) group: Vec<GroupSection>,
    /// The host.
    pub(crate) host: HostSection,
    /// Prices.
    pub(crate) prices: PricesSection,
    /// Harvesting.
    pub(crate) harvest: HarvestSection,
    /// Switches between drives and hosts.
    pub(crate) fabric: FabricSection,
    /// Virtual drives.
    pub(crate) vh: VhSection,
    /// Services before commands.
    pub(crate) chain: ChainSection,
    /// Programs in place of a workload.
    pub(crate) program: Option<ProgramSection>,
}

impl JbofScenario {
    /// The scenario with its own sections read.
    ///
    /// Errors: a scenario of another system.
    pub(crate) fn of(scenario: &Scenario) -> Result<Self, ScenarioError> {
        let Sections { jbof, group, host, prices, harvest, fabric, vh, chain, program } = scenario.own()?;
        Ok(Self { common: scenario.clone(), jbof, group, host, prices, harvest, fabric, vh, chain, program })
    }
}

impl Deref for JbofScenario {
    type Target = Scenario;

    fn deref(&self) -> &Scenario {
        &self.common
    }
}

impl DerefMut for JbofScenario {
    fn deref_mut(&mut self) -> &mut Scenario {
        &mut self.common
    }
}

/// The enclosure.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct JbofSection {
    /// Drives, 1 to 4,096; at most 255 in designs that lend, whose published descriptors name drives with 8 bits.
    #[schemars(range(min = 1, max = 4096))]
    pub drives: u32,
    /// Drives that run the workload; the others are idle.
    #[schemars(range(min = 1, max = 4096))]
    pub busy_drives: u32,
    /// Share of cores and mapping memory that shrunk designs keep.
    #[serde(default = "half")]
    #[schemars(range(max = 1.0), extend("exclusiveMinimum" = 0))]
    pub shrunk_share: f64,
    /// Share of the cores alone, where it differs.
    #[schemars(range(max = 1.0), extend("exclusiveMinimum" = 0))]
    pub shrunk_cores: Option<f64>,
    /// Share of the mapping memory alone, where it differs.
    #[schemars(range(max = 1.0), extend("exclusiveMinimum" = 0))]
    pub shrunk_memory: Option<f64>,
}

impl JbofSection {
    /// Shares that shrunk designs keep.
    pub(crate) fn kept(&self) -> Shares {
        Shares {
            cores: self.shrunk_cores.unwrap_or(self.shrunk_share),
            memory: self.shrunk_memory.unwrap_or(self.shrunk_share),
        }
    }
}

/// Drives that are alike. The enclosure has the drives of all groups; `jbof.drives` and `jbof.busy_drives` follow from them.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct GroupSection {
    /// Name in results.
    pub name: String,
    /// Drives.
    #[schemars(range(min = 1, max = 4096))]
    pub count: u32,
    /// Drives of them that run the workload; the others are idle.
    #[serde(default)]
    #[schemars(range(min = 0, max = 4096))]
    pub busy: u32,
    /// Share of the cores that shrunk designs keep, where it differs from that of the enclosure.
    #[schemars(range(max = 1.0), extend("exclusiveMinimum" = 0))]
    pub shrunk_cores: Option<f64>,
    /// Share of the mapping memory that they keep, where it differs.
    #[schemars(range(max = 1.0), extend("exclusiveMinimum" = 0))]
    pub shrunk_memory: Option<f64>,
    /// Price of a full controller, where it differs from the price list.
    #[schemars(range(min = 0.0, max = 1e9))]
    pub controller_dollars: Option<f64>,
    /// Keys of `drive` that differ, `drive.cores = 12`, or another `drive.profile`.
    pub drive: DriveSection,
}

/// A host.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct HostSection {
    /// Name of the profile this came from.
    #[serde(default, rename = "profile")]
    pub _profile: String,
    /// Drives in front of which one host stands, in order; without it, one host stands in front of all.
    #[serde(default)]
    #[schemars(range(min = 1, max = 4096))]
    pub drives_per_host: Option<u32>,
    /// Cores of each host.
    #[schemars(range(min = 1, max = 1024))]
    pub cores: u32,
    /// Their clock.
    #[schemars(range(min = 1, max = 100_000))]
    pub clock_mhz: u64,
    /// DRAM of each host.
    #[schemars(extend("x-minimum" = "4 KiB", "x-maximum" = "64 TiB"))]
    pub memory: Size,
    /// Driver cycles a command.
    #[schemars(range(min = 0, max = 1_000_000_000))]
    pub driver_cycles: u64,
    /// Latency to the drive, off the cores.
    #[schemars(extend("x-minimum" = "0 ns", "x-maximum" = "10 s"))]
    pub submit_latency: Time,
    /// Latency back.
    #[schemars(extend("x-minimum" = "0 ns", "x-maximum" = "10 s"))]
    pub complete_latency: Time,
    /// The write of NVMe's doorbell, until the drive sees it: a posted write over the link, beside `host.submit_latency`.
    /// Not in the time of a command without it.
    #[serde(default)]
    #[schemars(extend("x-minimum" = "0 ns", "x-maximum" = "1 ms"))]
    pub doorbell: Option<Time>,
    /// The drive's fetch of the submission entry of 64 bytes: a round trip over the link.
    #[serde(default)]
    #[schemars(extend("x-minimum" = "0 ns", "x-maximum" = "1 ms"))]
    pub command_fetch: Option<Time>,
    /// The completion entry of 16 bytes, until it is in the host's memory: a posted write over the link.
    #[serde(default)]
    #[schemars(extend("x-minimum" = "0 ns", "x-maximum" = "1 ms"))]
    pub completion_write: Option<Time>,
    /// How the driver hears of completions: polled, which is the default, or interrupt.
    #[serde(default)]
    pub completions: Option<Choice<Completions>>,
    /// From a message-signalled interrupt to the driver's look at the completion queue.
    #[serde(default)]
    #[schemars(extend("x-minimum" = "0 ns", "x-maximum" = "10 ms"))]
    pub interrupt_latency: Option<Time>,
    /// Completions of a drive that one interrupt tells of at most: the aggregation threshold of NVMe's feature 08h, which
    /// counts from 0 there. Without it, every completion has its interrupt.
    #[serde(default)]
    #[schemars(range(min = 2, max = 256))]
    pub interrupt_threshold: Option<u32>,
    /// How long a completion waits for others at most: the aggregation time of NVMe's feature 08h, a multiple of 100 us.
    #[serde(default)]
    #[schemars(extend("x-minimum" = "100 us", "x-maximum" = "25500 us"))]
    pub interrupt_time: Option<Time>,
    /// Time between two looks of the driver at its drives and at the time-outs of its commands; `harvest.period` without
    /// it.
    #[serde(default)]
    #[schemars(extend("x-minimum" = "1 us", "x-maximum" = "100 s"))]
    pub period: Option<Time>,
    /// Periods without an answer after which the driver gives a drive up.
    #[serde(default)]
    #[schemars(range(min = 1, max = 1_000_000))]
    pub silent_periods: Option<u32>,
    /// Time that the driver waits for a command before it gives up the drive that has it.
    #[serde(default)]
    #[schemars(extend("x-minimum" = "1 us", "x-maximum" = "1000 s"))]
    pub io_timeout: Option<Time>,
    /// OC: host cycles for each firmware cycle.
    #[schemars(range(min = 0.0, max = 1000.0))]
    pub oc_cycles_factor: f64,
    /// OC: hand-over latency.
    #[schemars(extend("x-minimum" = "0 ns", "x-maximum" = "10 s"))]
    pub oc_latency: Time,
}

/// Harvesting. Absent keys keep the defaults of the sheet.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct HarvestSection {
    /// Monitor and descriptor period.
    #[schemars(extend("x-minimum" = "1 us", "x-maximum" = "100 s"))]
    pub period: Option<Time>,
    /// Measure of the load of a processor: utilization, queue-depth or waiting-work.
    pub indicator: Option<Choice<Indicator>>,
    /// Utilization above which an end is busy.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub watermark: Option<f64>,
    /// Processor descriptors each lender offers.
    #[schemars(range(min = 1, max = 64))]
    pub processor_offers: Option<u32>,
    /// Memory descriptors each lender has, for equal parts of its spare memory.
    #[schemars(range(min = 1, max = 64))]
    pub memory_offers: Option<u32>,
    /// Lenders a borrower takes at most.
    #[schemars(range(min = 1, max = 4095))]
    pub lenders_max: Option<u32>,
    /// Translation pages of 4 KiB in a segment.
    #[schemars(range(min = 1, max = 512))]
    pub segment_pages: Option<u32>,
    /// Records of the redo log of a segment.
    #[schemars(range(min = 2, max = 512))]
    pub log_records: Option<u32>,
    /// Mapping accesses in a period that a miss ratio needs to count.
    #[schemars(range(min = 0, max = 1_000_000_000_000_i64))]
    pub accesses_min: Option<u64>,
    /// Periods that a lender waits for memory it has withdrawn.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub withdraw_periods: Option<u32>,
    /// Weight of all queues of a lender.
    #[schemars(range(min = 2, max = 1_000_000))]
    pub lender_weight: Option<u32>,
    /// Weight of a shadow queue.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub shadow_weight: Option<u32>,
    /// Whether a shadow queue has the low weight only while its lender has commands of its own, and equal weight while it has none.
    pub reserves: Option<bool>,
    /// Whether a drive that asks whether it may lend counts what its cores do for borrowers.
    pub counts_lent: Option<bool>,
    /// Which processor on offer a borrower takes: least-loaded, next, random, two-choices or most-spare.
    pub lender_choice: Option<Choice<LenderChoice>>,
    /// Whose tables a borrower reads: all, or leaf-first (those behind its own switch, then the others if need be).
    pub scan: Option<Choice<ScanOrder>>,
    /// How the driver balances: literal, damped or water-filling.
    pub balance: Option<Choice<BalanceRule>>,
    /// Step towards the rule's share each period; 1 is the literal rule.
    #[schemars(range(max = 1.0), extend("exclusiveMinimum" = 0))]
    pub damping: Option<f64>,
    /// How long after the drives the host looks at the descriptors, as a share of a period.
    #[schemars(range(min = 0.0, max = 0.99))]
    pub host_phase: Option<f64>,
    /// Whole periods that the utilizations which the driver balances by are old.
    #[schemars(range(min = 0, max = 4))]
    pub sensing_delay: Option<u32>,
    /// Standard deviation of these utilizations, as a share of the value.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub sensing_noise: Option<f64>,
    /// How much lending may raise the p99 of a lender's own commands, as a share of it: 0.1 is a tenth.
    #[schemars(range(min = 0.0, max = 100.0))]
    pub lender_p99_cap: Option<f64>,
    /// Miss ratio above which mapping memory is borrowed.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub target_miss_ratio: Option<f64>,
    /// Whether borrowed memory is warm at once.
    pub warm_memory: Option<bool>,
}

/// Switches between drives and hosts. Absent keys keep the defaults of the sheet.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct FabricSection {
    /// Downstream ports of a switch: drives under a leaf, leaves under a switch above them.
    #[schemars(range(min = 2, max = 255))]
    pub radix: Option<u32>,
    /// Latency of each switch beyond the first on a path, one way.
    #[schemars(extend("x-minimum" = "0 ns", "x-maximum" = "1 s"))]
    pub hop: Option<Time>,
    /// Whether reads and writes of a drive share the rate of one direction of its link, as they do in NVMeVirt.
    pub half_duplex: Option<bool>,
}

/// Virtual drives. Absent keys keep the defaults.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct VhSection {
    /// Idle drives joined to each busy one.
    #[schemars(range(min = 1, max = 4095))]
    pub lenders: Option<u32>,
    /// Host cycles for each redirected write.
    #[schemars(range(min = 0, max = 1_000_000_000))]
    pub redirect_cycles: Option<u64>,
    /// Size of a copy-back command.
    #[schemars(extend("x-minimum" = "4 KiB", "x-maximum" = "256 MiB"))]
    pub copy_back_size: Option<Size>,
    /// Copy-back commands in flight for each busy drive.
    #[schemars(range(min = 1, max = 4096))]
    pub copy_back_depth: Option<u32>,
}

/// Services that every command passes before its drive works on it. Absent keys keep the defaults.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct ChainSection {
    /// Services one after the other; none without the key.
    #[schemars(range(min = 0, max = 16))]
    pub services: Option<u32>,
    /// Cycles of a core that each service takes for a command; 400 without the key.
    #[schemars(range(min = 0, max = 1_000_000_000))]
    pub cycles: Option<u64>,
    /// The cores that run them: "drive", with the firmware, or "host", with the driver. Open-channel drives have theirs on the host.
    pub placement: Option<Choice<Placement>>,
}

/// A program on a file system of its own on each busy drive, in place of `[workload]`: its threads wait for their requests.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ProgramSection {
    /// fileserver, webserver or varmail of filebench, or overwrite, readrandom or readrandomwriterandom of db_bench.
    pub name: Choice<ProgramName>,
    /// The file system below it: cvfs, which is the default, or in-place.
    pub file_system: Option<Choice<FileSystemName>>,
    /// Threads; without it, filebench's own 50, 100 and 16, and 64 clients of the store.
    #[schemars(range(min = 1, max = 256))]
    pub threads: Option<u32>,
    /// Files of the file set, or records of the store.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub entries: Option<u32>,
    /// A thread's own time for each operation; 5 us without the key.
    #[schemars(extend("x-minimum" = "1 ns", "x-maximum" = "1 s"))]
    pub operation_time: Option<Time>,
}

fn half() -> f64 {
    0.5
}
