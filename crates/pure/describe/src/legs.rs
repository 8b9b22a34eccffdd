//! Legs of a volume: storage, or a service over further legs, and what is wrong with their keys.

use crate::arrays::{self, ArrayKeys, JournalName};
use crate::lending::ChoiceName;
use crate::quantity::{Rate, Size, Time};
use serde::Deserialize;
use std::net::SocketAddr;
use std::path::PathBuf;

/// Bytes of the log of atomic writes at least.
const LOG_MIN: u64 = 64 << 10;

/// Why a file describes no volumes.
#[derive(Debug, thiserror::Error)]
pub enum DescriptionError {
    /// It is no TOML, or a key is wrong; the text has the place.
    #[error("{0}")]
    Toml(String),
    /// A description that makes no sense.
    #[error("line {line}: {problem}")]
    Value {
        /// From 1.
        line: usize,
        /// The problem, and what would do.
        problem: String,
    },
}

impl DescriptionError {
    /// The words of the parser about a file, with the line alone.
    pub(crate) fn of_toml(error: &toml::de::Error, text: &str) -> Self {
        let Some(span) = error.span() else { return Self::Toml(error.message().to_owned()) };
        let line = text[..span.start.min(text.len())].matches('\n').count() + 1;
        Self::Value { line, problem: error.message().to_owned() }
    }
}

/// The service between a volume and its back end.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum ServiceName {
    /// Requests go to the storage as they are.
    #[default]
    None,
    /// A read cache that writes go through.
    Cache,
    /// Both ends take writes, and copies of what is read twice are kept in front.
    Latte,
    /// Chunks lie on the legs in turn.
    Stripe,
    /// Every block is on every leg.
    Mirror,
    /// The blocks of the first leg, then those of the second.
    SpillOver,
    /// Requests of its own name come before those of names that are batch.
    Priority,
    /// Each write happens whole or not at all, over a loss of power as well.
    Atomic,
    /// Versions of the volume are taken while it is written, and are read as it was.
    Versions,
    /// Virtual channels, each on a physical one, which are isolated from each other and remapped.
    OpenChannel,
    /// Stripes with parity over legs of unlike sizes.
    Array,
}

impl ServiceName {
    /// Whether it is made of `legs` where it is the service of a volume.
    pub const fn is_composed(self) -> bool {
        !matches!(self, Self::None | Self::Cache | Self::Latte)
    }

    /// Legs that it takes, the least and the most.
    const fn legs(self) -> (usize, usize) {
        match self {
            Self::Stripe => (2, 64),
            Self::Mirror => (1, 8),
            Self::OpenChannel => (1, 64),
            Self::Array => arrays::LEGS,
            Self::Priority | Self::Atomic | Self::Versions => (1, 1),
            _ => (2, 2),
        }
    }

    /// Its name in files.
    pub const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Cache => "cache",
            Self::Latte => "latte",
            Self::Stripe => "stripe",
            Self::Mirror => "mirror",
            Self::SpillOver => "spill-over",
            Self::Priority => "priority",
            Self::Atomic => "atomic",
            Self::Versions => "versions",
            Self::OpenChannel => "open-channel",
            Self::Array => "array",
        }
    }
}

/// Which end takes a write.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum RuleName {
    /// The front end, as long as it has room.
    Front,
    /// The back end.
    Back,
    /// The end with the shorter predicted completion.
    Shortest,
    /// The end that a model names which is trained on the requests as they come.
    Learned,
}

/// One leg: exactly one of `memory`, `file`, `drive`, `nvme_tcp`, `borrow` and `service`, with the keys that go with it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Leg {
    /// A service over legs of its own.
    pub service: Option<ServiceName>,
    /// The storage of that service.
    pub legs: Option<Vec<Leg>>,
    /// Bytes of a stripe on a leg before the next one.
    pub chunk: Option<Size>,
    /// Bytes of the log of atomic writes.
    pub log: Option<Size>,
    /// Whether a mirror keeps a record of what its legs have missed.
    pub record: Option<bool>,
    /// Chunks of a stripe of an array, parity included.
    pub stripe: Option<u8>,
    /// Those of parity.
    pub parity: Option<u8>,
    /// The way in which an array keeps changes under way.
    pub journal: Option<JournalName>,
    /// Changes of stripes of an array under way at once.
    pub slots: Option<u32>,
    /// Time between two stripes of a rebuild or a scrub of an array.
    pub pause: Option<Time>,
    /// Whether hot chunks of an array move to fast legs.
    pub moves: Option<bool>,
    /// Time between two of these moves.
    pub move_pause: Option<Time>,
    /// Time between two looks at what is hot.
    pub move_interval: Option<Time>,
    /// One access in so many counts there.
    pub move_sample: Option<u32>,
    /// Speed of a leg of an array, in any unit that all share. Stripes go by the order; legs with more than half of the fastest one's are fast.
    pub speed: Option<u64>,
    /// The end that takes writes, for LATTE.
    pub rule: Option<RuleName>,
    /// Age at which LATTE flushes a block.
    pub flush_age: Option<Time>,
    /// Memory of this size.
    pub memory: Option<Size>,
    /// A file or a block device.
    pub file: Option<PathBuf>,
    /// Of a file that is to be made.
    pub size: Option<Size>,
    /// The scenario of an enclosure whose drives this server runs.
    pub drive: Option<PathBuf>,
    /// Directory that keeps the bytes of its drives; memory without it.
    pub data: Option<PathBuf>,
    /// The number of the volume among those that it exports; the first one without the key.
    pub number: Option<u16>,
    /// Address of an NVMe/TCP target.
    pub nvme_tcp: Option<SocketAddr>,
    /// Its subsystem.
    pub nqn: Option<String>,
    /// The number of its namespace.
    pub namespace: Option<u32>,
    /// The name by which this host connects.
    pub host_nqn: Option<String>,
    /// File with the secret of this host.
    pub secret_file: Option<PathBuf>,
    /// File with the secret of the controller.
    pub controller_secret_file: Option<PathBuf>,
    /// Space of so much that another server lends.
    pub borrow: Option<Size>,
    /// The billboard where servers post what they lend.
    pub board: Option<SocketAddr>,
    /// The rule by which they are asked.
    pub choice: Option<ChoiceName>,
    /// Requests a second that a server must have free to be asked.
    pub free_iops: Option<u32>,
    /// Bytes a second that a server must have free to be asked.
    pub free_bandwidth: Option<Rate>,
    /// Reads and writes a second at most.
    pub iops: Option<u64>,
    /// Bytes of reads and writes a second at most.
    pub bandwidth: Option<Rate>,
    /// Time that everything takes at least.
    pub latency: Option<Time>,
}

impl std::fmt::Display for Leg {
    /// Its storage, for messages.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self { file: Some(path), .. } | Self { drive: Some(path), .. } => path.display().fmt(f),
            Self { nvme_tcp: Some(address), nqn, .. } => {
                write!(f, "{} at {address}", nqn.as_deref().unwrap_or("a subsystem"))
            }
            Self { memory: Some(_), .. } => f.write_str("memory"),
            _ => f.write_str("storage"),
        }
    }
}

/// Where a borrowed leg stands.
pub(crate) const BORROW: &str =
    "borrow is for legs of service = \"mirror\", which moves what it has when a lender leaves";
/// The kinds of a leg.
const KINDS: &str = "give one of memory, file, drive, nvme_tcp, borrow and service";

/// Where that key stands.
pub(crate) const RECORD: &str = "record goes with service = \"mirror\"";

/// Where the speed of a leg stands.
pub(crate) const SPEED: &str = "speed is for legs of service = \"array\"";
/// Legs of an array.
const STORAGE: &str = "legs of an array are storage, not services";

/// The first thing that is wrong with what only arrays have, in a service with these legs.
pub(crate) fn array_problem<'a, I: Iterator<Item = &'a Leg>>(
    is_array: bool,
    keys: ArrayKeys,
    legs: impl Fn() -> I,
) -> Option<String> {
    if is_array && legs().any(|leg| leg.service.is_some()) {
        return Some(STORAGE.to_owned());
    }
    if !is_array && legs().any(|leg| leg.speed.is_some()) {
        return Some(SPEED.to_owned());
    }
    keys.problem(is_array.then(|| legs().count()))
}

impl Leg {
    /// Keys of an array.
    pub const fn array_keys(&self) -> ArrayKeys {
        let Self { stripe, parity, journal, slots, pause, moves, move_pause, move_interval, move_sample, .. } = *self;
        ArrayKeys { stripe, parity, journal, slots, pause, moves, move_pause, move_interval, move_sample }
    }

    /// Reads the keys of storage, as they stand between the braces of a leg.
    ///
    /// Errors: the first thing that is wrong.
    pub fn parse(keys: &str) -> Result<Self, DescriptionError> {
        /// The leg alone.
        #[derive(Deserialize)]
        struct Alone {
            leg: Leg,
        }
        let text = format!("leg = {{ {keys} }}");
        let alone: Alone = toml::from_str(&text).map_err(|error| DescriptionError::Toml(error.message().to_owned()))?;
        match alone.leg.problem() {
            Some(problem) => Err(DescriptionError::Value { line: 1, problem }),
            None => Ok(alone.leg),
        }
    }

    /// Reads the keys of a service that is to come above something that is there, which is one more of its legs: the last one of those with a
    /// front end, and the first one of others. Returns it with the place of that leg.
    ///
    /// Errors: the first thing that is wrong.
    pub fn parse_above(keys: &str) -> Result<(Self, usize), DescriptionError> {
        /// The leg alone.
        #[derive(Deserialize)]
        struct Alone {
            leg: Leg,
        }
        let text = format!("leg = {{ {keys} }}");
        let mut alone: Alone =
            toml::from_str(&text).map_err(|error| DescriptionError::Toml(error.message().to_owned()))?;
        let stand_in = Self::parse("memory = \"4 KiB\"")?;
        let has_front = matches!(alone.leg.service, Some(ServiceName::Cache | ServiceName::Latte));
        let legs = alone.leg.legs.get_or_insert_default();
        let at = if has_front { legs.len() } else { 0 };
        legs.insert(at, stand_in);
        let wrong = |problem| Err(DescriptionError::Value { line: 1, problem });
        if let Some(problem) = alone.leg.problem() {
            return wrong(problem);
        }
        match alone.leg.service {
            Some(ServiceName::Priority | ServiceName::Mirror | ServiceName::Cache | ServiceName::Latte) => {}
            Some(other) => {
                let problem = format!("{} would lay blocks out in another way: make a volume with it", other.name());
                return wrong(problem);
            }
            None => return wrong("give the service that is to come: priority, mirror, cache or latte".to_owned()),
        }
        let legs = alone.leg.legs.get_or_insert_default();
        legs.remove(at);
        if legs.iter().any(|leg| leg.service.is_some()) {
            return wrong("its legs are storage, not services".to_owned());
        }
        Ok((alone.leg, at))
    }

    /// The first thing that is wrong with the keys of space that is borrowed.
    fn borrow_problem(&self) -> Option<String> {
        let keys = [
            ("board", self.board.is_some()),
            ("choice", self.choice.is_some()),
            ("free_iops", self.free_iops.is_some()),
            ("free_bandwidth", self.free_bandwidth.is_some()),
        ];
        let Some(size) = self.borrow else {
            let stray = keys.iter().find(|(_, is_there)| *is_there);
            if let Some((key, _)) = stray {
                return Some(format!("{key} goes with borrow only"));
            }
            let of_mirror = self.service == Some(ServiceName::Mirror);
            let has_loan = self.legs.iter().flatten().any(|leg| leg.borrow.is_some());
            return (has_loan && !of_mirror).then(|| BORROW.to_owned());
        };
        if size.0.get() == 0 || !size.0.get().is_multiple_of(1 << 20) {
            return Some(format!("borrow is whole MiB, not {} bytes", size.0.get()));
        }
        self.board.is_none().then(|| "borrow needs the address of the billboard: board = \"ADDRESS:PORT\"".to_owned())
    }

    /// Whether it is borrowed, or stands on space that is.
    pub(crate) fn borrows(&self) -> bool {
        self.borrow.is_some() || self.legs.iter().flatten().any(Self::borrows)
    }

    /// The first thing that is wrong with it.
    pub(crate) fn problem(&self) -> Option<String> {
        let kinds = [
            self.memory.is_some(),
            self.file.is_some(),
            self.drive.is_some(),
            self.nvme_tcp.is_some(),
            self.borrow.is_some(),
            self.service.is_some(),
        ];
        if kinds.iter().filter(|is_there| **is_there).count() != 1 {
            return Some(KINDS.to_owned());
        }
        if let Some(problem) = self.borrow_problem() {
            return Some(problem);
        }
        if self.service == Some(ServiceName::Versions) {
            return Some("versions are of a volume: service = \"versions\" stands at the top".to_owned());
        }
        if self.service == Some(ServiceName::OpenChannel) {
            return Some("channels are of a volume: service = \"open-channel\" stands at the top".to_owned());
        }
        if self.service == Some(ServiceName::None) {
            return Some(
                "the service of a leg is stripe, mirror, array, spill-over, priority, atomic, cache or latte"
                    .to_owned(),
            );
        }
        if self.service != Some(ServiceName::Latte) && (self.rule.is_some() || self.flush_age.is_some()) {
            return Some("rule and flush_age go with service = \"latte\"".to_owned());
        }
        if self.service != Some(ServiceName::Mirror) && self.record.is_some() {
            return Some(RECORD.to_owned());
        }
        let paced = [self.iops.is_some(), self.bandwidth.is_some(), self.latency.is_some()];
        // As a leg, those with a front end are made of legs like the others: the front end, then the back end.
        if let Some(problem) = composed(self.service, true, self.legs.as_ref().map(Vec::len), self.chunk, self.log) {
            return Some(problem);
        }
        let is_array = self.service == Some(ServiceName::Array);
        if let Some(problem) = array_problem(is_array, self.array_keys(), || self.legs.iter().flatten()) {
            return Some(problem);
        }
        if self.service.is_some() && paced.contains(&true) {
            return Some("iops, bandwidth and latency go with storage, not with a service".to_owned());
        }
        if let Some(problem) = self.legs.iter().flatten().find_map(Leg::problem) {
            return Some(problem);
        }
        if let Some((key, _)) = [("data", self.data.is_some()), ("number", self.number.is_some())]
            .iter()
            .find(|(_, is_there)| *is_there && self.drive.is_none())
        {
            return Some(format!("{key} goes with drive only"));
        }
        let of_remote = [
            ("nqn", self.nqn.is_some()),
            ("namespace", self.namespace.is_some()),
            ("host_nqn", self.host_nqn.is_some()),
            ("secret_file", self.secret_file.is_some()),
            ("controller_secret_file", self.controller_secret_file.is_some()),
        ];
        let stray = of_remote.iter().find(|(_, is_there)| *is_there && self.nvme_tcp.is_none());
        if let Some((key, _)) = stray {
            return Some(format!("{key} goes with nvme_tcp only"));
        }
        if self.size.is_some() && self.file.is_none() {
            return Some("size goes with file only".to_owned());
        }
        if self.nvme_tcp.is_some() && self.nqn.is_none() {
            return Some("nvme_tcp needs the name of its subsystem: nqn = \"…\"".to_owned());
        }
        if self.iops == Some(0) || self.bandwidth.is_some_and(|rate| rate.0.get() == 0) {
            return Some("iops and bandwidth are above zero".to_owned());
        }
        None
    }
}

/// The first thing that is wrong with a service over so many legs.
pub(crate) fn composed(
    service: Option<ServiceName>,
    is_leg: bool,
    legs: Option<usize>,
    chunk: Option<Size>,
    log: Option<Size>,
) -> Option<String> {
    match (service, legs) {
        (Some(service), legs) if service.is_composed() || is_leg => {
            let ((least, most), count) = (service.legs(), legs.unwrap_or(0));
            if !(least..=most).contains(&count) {
                let range = if least == most { least.to_string() } else { format!("{least} to {most}") };
                return Some(format!("{count} legs, give {range} (legs = [{{ … }}, …])"));
            }
        }
        (Some(_), None) if legs.is_none() => {}
        (None, None) => {}
        _ => {
            let composed = "legs go with service = \"stripe\", \"mirror\", \"array\", \"spill-over\", \"priority\", \"atomic\", \"versions\" or \"open-channel\"";
            return Some(composed.to_owned());
        }
    }
    match log {
        Some(_) if service != Some(ServiceName::Atomic) => {
            return Some("log goes with service = \"atomic\"".to_owned());
        }
        Some(log) if log.0.get() < LOG_MIN || log.0.get() % 4096 > 0 => {
            return Some("log is whole blocks of 4 KiB, 64 KiB or more".to_owned());
        }
        _ => {}
    }
    match chunk {
        Some(_) if !matches!(service, Some(ServiceName::Stripe | ServiceName::Array)) => {
            Some("chunk goes with service = \"stripe\" or \"array\"".to_owned())
        }
        Some(chunk) if chunk.0.get() == 0 || chunk.0.get() % 4096 > 0 => {
            Some("chunk is whole blocks of 4 KiB".to_owned())
        }
        _ => None,
    }
}
