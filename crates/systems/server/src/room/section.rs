//! The `[server]` section of scenarios, and the parameters that follow from it.

use super::services;
use crate::stack::Stack;
use crate::{Coalescing, NetworkLimits, ServerConfig, ServerError};
use flashyard_cache::PolicyKind;
use flashyard_describe::Purpose::Run;
use flashyard_describe::drive::drive;
use flashyard_describe::{Choice, Rate, Scenario, ScenarioError, Section, Size, Time, Unknown, is_in, keyed};
use flashyard_flash::SLOT_BYTES;
use flashyard_latte::{CachePolicy, Learning, Rule};
use flashyard_units::{Bytes, Named, SimSpan};
use schemars::JsonSchema;
use serde::Deserialize;

/// The section.
pub(super) static SECTIONS: [&Section; 3] = [&SERVER, &LATTE, &NETWORK];

/// The sections of LeapIO.
pub(super) static OF_LEAPIO: [&Section; 2] = [&SERVER, &services::SERVICES];

static SERVER: Section = Section::of::<ServerSection>("server", &[("server", &[Run])]);
static NETWORK: Section = Section::of::<NetworkSection>("network", &[("network", &[Run])]);
static LATTE: Section = Section::of::<LatteSection>("latte", &[("latte", &[Run])]);

/// The sections as they are read.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Sections {
    /// The server.
    pub(super) server: ServerSection,
    /// The service of stacks that have one.
    #[serde(default)]
    pub(super) latte: LatteSection,
    /// Network volumes.
    #[serde(default)]
    pub(super) network: NetworkSection,
    /// Services of a runtime.
    #[serde(default)]
    pub(super) services: services::ServicesSection,
}

/// A server whose guests have virtual drives.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ServerSection {
    /// Virtual drives. Each has a drive of `[drive]` or its part of one, or a network volume of as much, and runs the workload.
    #[schemars(range(min = 1, max = 64))]
    pub(super) virtual_drives: u32,
    /// Virtual drives that have equal parts of one drive; 1 gives each a drive of its own.
    #[serde(default = "one")]
    #[schemars(range(min = 1, max = 64))]
    pub(super) per_drive: u32,
    /// Queues of each guest.
    #[serde(default = "four")]
    #[schemars(range(min = 1, max = 128))]
    pub(super) queues: u32,
    /// Completions of a queue that share an interrupt at most, where guests do not poll; with 1 each has its own.
    #[serde(default = "one")]
    #[schemars(range(min = 1, max = 256))]
    pub(super) shared_interrupts: u32,
    /// Time after which a shared interrupt comes, however few completions wait.
    #[serde(default = "hundred_us")]
    #[schemars(extend("x-minimum" = "1 us", "x-maximum" = "100 ms"))]
    pub(super) interrupt_time: Time,
}

const fn one() -> u32 {
    1
}

/// [X] NVM Express base specification, feature 08h: the unit of its time
const fn hundred_us() -> Time {
    Time(SimSpan::from_us(100))
}

/// [P] sheet alibaba-local-storage §2.4: four queues of a guest as an example
const fn four() -> u32 {
    4
}

/// Limits of network volumes, where they are not those of their class.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(super) struct NetworkSection {
    /// Requests a second that a volume may have.
    #[schemars(range(min = 1, max = 100_000_000))]
    pub(super) requests_per_second: Option<u64>,
    /// Bytes a second in each direction.
    #[schemars(extend("x-minimum" = "1 MB/s", "x-maximum" = "1000 GB/s"))]
    pub(super) rate: Option<Rate>,
}

/// The rule that chooses an end for a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RuleName {
    Learned,
    Shortest,
    Split,
    Front,
    Back,
}

impl Named for RuleName {
    const ALL: &'static [Self] = &[Self::Learned, Self::Shortest, Self::Split, Self::Front, Self::Back];

    fn name(self) -> &'static str {
        match self {
            Self::Learned => "learned",
            Self::Shortest => "shortest",
            Self::Split => "split",
            Self::Front => "front",
            Self::Back => "back",
        }
    }
}

/// The policy of a cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PolicyName {
    InMap,
    Fifo,
    Lru,
    Clock,
    Sieve,
    Arc,
    Lirs,
    S3Fifo,
    WTinyLfu,
}

impl PolicyName {
    fn policy(self) -> CachePolicy {
        CachePolicy::Apart(match self {
            Self::InMap => return CachePolicy::InMap,
            Self::Fifo => PolicyKind::Fifo,
            Self::Lru => PolicyKind::Lru,
            Self::Clock => PolicyKind::Clock,
            Self::Sieve => PolicyKind::Sieve,
            Self::Arc => PolicyKind::Arc,
            Self::Lirs => PolicyKind::Lirs,
            Self::S3Fifo => PolicyKind::S3Fifo,
            Self::WTinyLfu => PolicyKind::WTinyLfu,
        })
    }
}

impl Named for PolicyName {
    const ALL: &'static [Self] = &[
        Self::InMap,
        Self::Fifo,
        Self::Lru,
        Self::Clock,
        Self::Sieve,
        Self::Arc,
        Self::Lirs,
        Self::S3Fifo,
        Self::WTinyLfu,
    ];

    fn name(self) -> &'static str {
        match self.policy() {
            CachePolicy::InMap => "s3-fifo-in-map",
            CachePolicy::Apart(kind) => kind.name(),
        }
    }
}

/// A service with a drive as its front end and a network volume as its back end. All have defaults.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(super) struct LatteSection {
    /// Size of each volume.
    #[schemars(extend("x-minimum" = "1 MiB", "x-maximum" = "4 TiB"))]
    pub(super) volume: Size,
    /// Part of the drive that takes writes.
    #[schemars(extend("x-minimum" = "1 MiB", "x-maximum" = "4 TiB"))]
    pub(super) log: Size,
    /// Part of the drive that keeps copies for reads; `csal` writes to it, too.
    #[schemars(extend("x-minimum" = "1 MiB", "x-maximum" = "4 TiB"))]
    pub(super) cache: Size,
    /// Whether the cache is full when the run begins, with runs of blocks spread evenly over the volume.
    pub(super) warm: bool,
    /// Whether blocks that are read twice are copied to the drive; otherwise the cache keeps what it began with.
    pub(super) promotes: bool,
    /// The rule that chooses an end for a write: `learned`, `shortest` (the end with the shorter predicted completion), `split` (by
    /// share), `front` or `back`.
    pub(super) rule: Choice<RuleName>,
    /// The policy of the cache: `s3-fifo-in-map` (its counters in the location map), or one with an index of its own: `fifo`, `lru`,
    /// `clock`, `sieve`, `arc`, `lirs`, `s3-fifo` or `w-tinylfu`.
    pub(super) policy: Choice<PolicyName>,
    /// Share of writes that `split` sends to the drive.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub(super) front_share: f64,
    /// Time after which `learned` looks at throughput and latency, and perhaps trains.
    #[schemars(extend("x-minimum" = "1 ms", "x-maximum" = "1000 s"))]
    pub(super) check_every: Time,
    /// Time that a training takes.
    #[schemars(extend("x-minimum" = "0 ns", "x-maximum" = "1000 s"))]
    pub(super) training: Time,
    /// Orders to the drive from which on their latency grows with their number, as rules predict it.
    #[schemars(range(min = 1, max = 65_536))]
    pub(super) front_depth: u32,
    /// Orders to the network volume from which on their latency grows with their number, as rules predict it.
    #[schemars(range(min = 1, max = 65_536))]
    pub(super) back_depth: u32,
    /// Age at which the oldest write is flushed.
    #[schemars(extend("x-minimum" = "1 ms", "x-maximum" = "1000 s"))]
    pub(super) flush_age: Time,
}

impl Default for LatteSection {
    fn default() -> Self {
        let gib = |count: u64| Size(Bytes::new(count << 30));
        Self {
            // [A] sizes: a volume that a run of seconds meets again, halves of the front end as in sheet §3.5
            volume: gib(16),
            log: gib(12),
            // [P] sheet §4: three quarters of reads hit
            cache: gib(12),
            warm: true,
            promotes: true,
            rule: Choice(RuleName::Learned),
            policy: Choice(PolicyName::InMap),
            front_share: 0.5,
            // [P] sheet §3.2
            check_every: Time(SimSpan::from_secs(60)),
            training: Time(SimSpan::from_secs(5)),
            // [A] sheet §3.2
            front_depth: 128,
            back_depth: 128,
            // [A] sheet §3.4
            flush_age: Time(SimSpan::from_secs(30)),
        }
    }
}

impl LatteSection {
    fn config(&self, seed: u64) -> flashyard_latte::Config {
        let blocks = |size: Size| (size.0.get() / u64::from(SLOT_BYTES)) as u32;
        // A millionth of the writes is as fine as a share needs to be.
        let front = (self.front_share * 1e6) as u64;
        let rule = match self.rule.0 {
            RuleName::Learned => {
                let (check_every, training) = (self.check_every.0, self.training.0);
                Rule::Learned(Learning { seed, check_every, training })
            }
            RuleName::Shortest => Rule::Shortest,
            RuleName::Split => Rule::Split(front, 1_000_000 - front),
            RuleName::Front => Rule::Front,
            RuleName::Back => Rule::Back,
        };
        flashyard_latte::Config {
            blocks: blocks(self.volume),
            log_slots: blocks(self.log),
            cache_slots: blocks(self.cache),
            rule,
            policy: self.policy.0.policy(),
            promotes: self.promotes,
            saturation_depths: [self.front_depth, self.back_depth],
            flush_age: self.flush_age.0,
        }
    }
}

/// Why a key of `[latte]` has no effect in a scenario.
pub(super) fn idle(key: &str, scenario: &Scenario) -> Option<String> {
    let Ok(Sections { latte, server, services, .. }) = scenario.own() else { return None };
    let stacks =
        || scenario.designs.iter().filter_map(|name| Stack::by_name(name)).filter_map(|stack| stack.table().tiers);
    if is_in(key, "latte") && stacks().count() == 0 {
        return Some("only latte and csal have the service, and neither is among the designs".to_owned());
    }
    let networked = |name: &String| Stack::by_name(name).is_some_and(|stack| stack.table().network.is_some());
    if is_in(key, "network") && !scenario.designs.iter().any(networked) {
        return Some("no design has a network volume".to_owned());
    }
    if let Some(reason) = services::idle(key, &services) {
        return Some(reason);
    }
    if key == "server.interrupt_time" && server.shared_interrupts == 1 {
        return Some("server.shared_interrupts is 1: each completion has an interrupt of its own".to_owned());
    }
    let rule = latte.rule.0;
    let needed = match key {
        "latte.front_share" => RuleName::Split,
        "latte.check_every" | "latte.training" => RuleName::Learned,
        "latte.rule" | "latte.policy" | "latte.promotes" | "latte.front_depth" | "latte.back_depth"
            if !stacks().any(|tiers| tiers.chooses) =>
        {
            return Some("csal alone has no choice".to_owned());
        }
        _ => return None,
    };
    (rule != needed).then(|| format!("latte.rule is {}, and {} has it", rule.name(), needed.name()))
}

/// The parameters of a server with this stack.
///
/// Errors: values outside their ranges.
pub(crate) fn config(scenario: &Scenario, stack: Stack) -> Result<ServerConfig, ScenarioError> {
    let Sections { server, latte, network, services } = scenario.own()?;
    let config = ServerConfig {
        stack,
        drives: server.virtual_drives,
        per_drive: server.per_drive,
        coalescing: Coalescing { completions: server.shared_interrupts, time: server.interrupt_time.0 },
        drive: drive(&scenario.drive)?,
        overwrites: scenario.drive.overwrites(),
        queues: server.queues,
        latte: latte.config(scenario.seed),
        chain: services.chain()?,
        is_warm: latte.warm,
        limits: NetworkLimits {
            requests_per_second: network.requests_per_second,
            bytes_per_us: network.rate.map(|rate| rate.0.get() / 1_000_000),
        },
    };
    config.validate().map_err(of_server)?;
    Ok(config)
}

/// An error of a server, as one of its scenario.
pub(super) fn of_server(error: ServerError) -> ScenarioError {
    match error {
        ServerError::Interrupted => ScenarioError::Interrupted,
        ServerError::Drive(error) => keyed::drive(error),
        other => ScenarioError::of_world(other),
    }
}

/// The stack called `name`.
///
/// Errors: a name that is none.
pub(super) fn stack_called(name: &str) -> Result<Stack, ScenarioError> {
    let unknown = || Unknown::new("design", name, Stack::names()).to_string();
    Stack::by_name(name).ok_or_else(|| ScenarioError::value("designs", unknown()))
}
