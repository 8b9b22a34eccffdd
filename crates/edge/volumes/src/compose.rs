//! Trees of services over storage, from their description.

use crate::array::{ArraySettings, Opened, assemble};
use crate::error::OpenError;
use crate::leg::{BLOCK, LegState};
use crate::used;
use crate::zeroing::Zeroing;
use flashyard_blk::{VolumeInfo, VolumeLimits};
use flashyard_describe::arrays::ArrayKeys;
use flashyard_describe::volumes::{Leg, RuleName, ServiceName, VERSIONS};
use flashyard_describe::{Size, Time};
use flashyard_latte::{Config, Latte, Learning, Rule};
use flashyard_service::{PassThrough, Service, checksum};
use flashyard_services::{
    AtomicWrites, Below, ChannelRoom, Channels, IntentRoom, Mirrored, Prioritized, Shares, SpillOver, Striped, Tree,
    TreeError, VersionRoom, Versioned,
};
use std::time::{SystemTime, UNIX_EPOCH};

/// Bytes of a stripe on a leg before the next one, without `chunk`. Source: \[A\] 64 KiB, a common default of software RAID.
const CHUNK: u64 = 64 << 10;
/// Blocks of a mirror at most: a byte each.
const MIRROR_MAX: u64 = 1 << 33;

/// Blocks of a front end at least: a LATTE takes no request of more than half of it at once. 8 MiB.
const FRONT_MIN: u64 = 2048;
/// Blocks of a LATTE at most: what its numbers have room for.
const LATTE_MAX: u64 = (1 << 31) - 1;
/// Blocks of the log of a cache, which takes no writes: as many as a request may have. 1 MiB.
const CACHE_LOG: u32 = 256;

/// Pieces of storage of a volume at most.
pub(crate) const LEGS_MAX: usize = u8::MAX as usize;

/// Bytes of the log of atomic writes, without `log`. Source: \[A\] some thousand writes of 8 KiB.
const LOG: u64 = 64 << 20;

/// Part of a leg that keeps versions, without `store`: a fifth. Source: \[A\].
const STORE_SHARE: u64 = 5;
/// Blocks of the log of the map of versions: 4 MiB. Source: \[A\].
const VERSION_LOG: u64 = 1024;

/// Services above one that makes parity.
pub(crate) const ABOVE_ARRAYS: &str =
    "above an array only stripe, spill-over and priority may stand, which keep no blocks of their own";

/// Settings that a service may be given.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Settings {
    pub(crate) chunk: Option<Size>,
    pub(crate) log: Option<Size>,
    pub(crate) record: Option<bool>,
    pub(crate) rule: Option<RuleName>,
    pub(crate) flush_age: Option<Time>,
    /// Versions, and the bytes that keep them.
    pub(crate) versions: Option<u32>,
    pub(crate) store: Option<Size>,
    /// Virtual channels, physical ones beyond these, and requests of each below.
    pub(crate) channels: (u16, u16, u16),
    /// Those of an array.
    pub(crate) array: ArrayKeys,
}

impl Settings {
    /// Those of a leg.
    pub(crate) fn of(leg: &Leg) -> Self {
        let Leg { chunk, log, record, rule, flush_age, .. } = *leg;
        Self { chunk, log, record, rule, flush_age, array: leg.array_keys(), ..Self::default() }
    }
}

type Nodes = Vec<(Box<dyn Service + Send>, Vec<Below>)>;

/// A service or a piece of storage of a volume, for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Part {
    /// The storage of this number.
    Leg(usize),
    /// A service over others.
    Service {
        /// Its number, as long as none comes or leaves.
        number: usize,
        /// Its name in files.
        name: &'static str,
        /// Its state in a few words, if it has anything to say.
        note: Option<String>,
        /// Those below it, in order.
        below: Vec<Part>,
    },
}

/// Makes a service of a volume.
pub(crate) struct Maker<'a> {
    pub(crate) volume: &'a str,
    /// Its number in the tree.
    pub(crate) number: usize,
    /// Whether all storage below it was made just now.
    pub(crate) is_new: bool,
    /// Legs that hold nothing, for they are borrowed just now or later: a bit each.
    pub(crate) blank: u8,
}

impl Maker<'_> {
    fn wrong(&self, problem: String) -> OpenError {
        OpenError::Size { volume: self.volume.to_owned(), problem }
    }

    /// A service over legs with these properties.
    ///
    /// Errors: sizes that do not fit.
    pub(crate) fn make(
        &self,
        name: ServiceName,
        settings: Settings,
        infos: &[VolumeInfo],
    ) -> Result<Box<dyn Service + Send>, OpenError> {
        let count = infos.len() as u8;
        let blocks = infos.iter().map(|info| info.limits.blocks).min().unwrap_or(0);
        Ok(match name {
            ServiceName::Stripe => {
                let chunk = settings.chunk.map_or(CHUNK, |chunk| chunk.0.get()) / BLOCK as u64;
                if chunk > blocks {
                    return Err(self.wrong(format!("a leg of {blocks} blocks holds no chunk of {chunk}")));
                }
                Box::new(Striped::new(count, chunk as u32))
            }
            ServiceName::Mirror if blocks > MIRROR_MAX => {
                return Err(self.wrong(format!("a mirror of {blocks} blocks, give at most {MIRROR_MAX}")));
            }
            ServiceName::Mirror if settings.record == Some(false) => Box::new(Mirrored::new(count, blocks)),
            ServiceName::Mirror => {
                let room = IntentRoom { blank: self.blank, ..IntentRoom::usual(self.new_id(), self.is_new) };
                let leg = info_of(VolumeLimits { blocks, ..infos[0].limits });
                let mirror = Mirrored::recorded(count, &leg, room);
                Box::new(mirror.ok_or_else(|| {
                    self.wrong(format!("legs of {blocks} blocks have no room for the record of a mirror"))
                })?)
            }
            ServiceName::Cache | ServiceName::Latte => {
                let blocks = (infos[0].limits.blocks, infos[1].limits.blocks);
                Box::new(latte(name, settings, blocks).map_err(|problem| self.wrong(problem))?)
            }
            ServiceName::Priority => Box::new(Prioritized::new(Shares::published(1))),
            ServiceName::Versions => {
                let store = settings.store.map_or(blocks / STORE_SHARE, |store| store.0.get() / BLOCK as u64);
                let room = VersionRoom { slots: settings.versions.unwrap_or(VERSIONS), store, log: VERSION_LOG };
                let service = Versioned::new(room);
                if service.limits(infos).blocks == 0 {
                    return Err(
                        self.wrong(format!("a leg of {blocks} blocks has no room for a store of {store} and the map"))
                    );
                }
                Box::new(service)
            }
            ServiceName::OpenChannel => {
                let (channels, spares, depth) = settings.channels;
                let room = ChannelRoom { legs: count, channels, spares, depth };
                let leg = info_of(VolumeLimits { blocks, ..infos[0].limits });
                let service = Channels::new(room, &leg);
                Box::new(service.ok_or_else(|| {
                    let all = u32::from(channels) + u32::from(spares);
                    self.wrong(format!("legs of {blocks} blocks have no room for {all} channels and their record"))
                })?)
            }
            ServiceName::Atomic => {
                let log = settings.log.map_or(LOG, |log| log.0.get()) / BLOCK as u64;
                if log >= blocks {
                    return Err(self.wrong(format!("a leg of {blocks} blocks has no room for a log of {log}")));
                }
                Box::new(AtomicWrites::new(log))
            }
            ServiceName::Array => return Err(self.wrong("an array is made with its volume".to_owned())),
            ServiceName::None | ServiceName::SpillOver => Box::new(SpillOver::new(infos[0].limits.blocks)),
        })
    }

    /// A number for a mirror or an array that is made now: what it has in common with the same volume of a later start, and what no other has.
    fn new_id(&self) -> u64 {
        let name = checksum(checksum(0, self.volume.as_bytes()), &(self.number as u64).to_le_bytes());
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        u64::from(name) << 32 | since.as_nanos() as u64 & u64::from(u32::MAX)
    }
}

/// Opens storage, beside legs of the same service.
type Opens<'a> = &'a dyn Fn(&Leg, &[LegState]) -> Result<LegState, OpenError>;

/// A tree that is being built, with the storage below it.
pub(crate) struct Composer<'a> {
    pub(crate) volume: &'a str,
    /// Opens storage.
    pub(crate) open: Opens<'a>,
    pub(crate) legs: Vec<LegState>,
    nodes: Nodes,
}

impl Part {
    /// A place of a tree, with all below it.
    pub(crate) fn of(tree: &Tree, place: Below) -> Self {
        match place {
            Below::Leg(leg) => Self::Leg(leg.0.into()),
            Below::Service(number) => {
                let (name, legs) = tree.service(number).unwrap_or_default();
                let note = tree.note_of(number);
                Self::Service { number, name, note, below: legs.iter().map(|&leg| Self::of(tree, leg)).collect() }
            }
        }
    }
}

impl<'a> Composer<'a> {
    pub(crate) fn new(volume: &'a str, open: Opens<'a>) -> Self {
        Self { volume, open, legs: Vec::new(), nodes: Vec::new() }
    }

    /// A service over `legs`, and all below; returns its limits.
    pub(crate) fn service<'b>(
        &mut self,
        name: ServiceName,
        settings: Settings,
        legs: impl Iterator<Item = &'b Leg>,
    ) -> Result<VolumeLimits, OpenError> {
        if name == ServiceName::Array {
            return self.array(settings, legs);
        }
        // A service comes before those below it.
        let number = self.nodes.len();
        self.nodes.push((Box::new(PassThrough), Vec::new()));
        let from = self.legs.len();
        let (mut below, mut infos) = (Vec::new(), Vec::new());
        for leg in legs {
            let info = if let Some(service) = leg.service {
                below.push(Below::Service(self.nodes.len()));
                let limits = self.service(service, Settings::of(leg), leg.legs.iter().flatten())?;
                VolumeInfo { limits, ..info_of(limits) }
            } else {
                let mut leg = (self.open)(leg, &self.legs[from..])?;
                if name == ServiceName::Mirror {
                    used::find(&mut leg).map_err(|problem| self.wrong(problem))?;
                }
                below.push(Below::Leg(flashyard_service::Leg(self.legs.len() as u8)));
                let info = leg.info();
                self.legs.push(leg);
                info
            };
            infos.push(info);
        }
        if name == ServiceName::Mirror {
            self.keep_size(&below, &mut infos)?;
        }
        let gone = |place: &Below| match place {
            Below::Leg(leg) => self.legs[usize::from(leg.0)].gone.as_ref(),
            Below::Service(_) => None,
        };
        // Others would go on until space for it is found.
        if let (Some(why), true) = (below.first().and_then(gone), below.iter().all(|place| gone(place).is_some())) {
            return Err(OpenError::Loan { volume: self.volume.to_owned(), problem: why.clone() });
        }
        if self.legs.len() > LEGS_MAX {
            let problem = format!("more than {LEGS_MAX} pieces of storage");
            return Err(OpenError::Size { volume: self.volume.to_owned(), problem });
        }
        let is_blank = |place: &Below| match place {
            Below::Leg(leg) => self.legs[usize::from(leg.0)].loan.is_some(),
            Below::Service(_) => false,
        };
        // Only mirrors have such legs, eight at most.
        let blank = (0..8).zip(&below).filter(|(_, place)| is_blank(place)).fold(0, |legs, (leg, _)| legs | 1 << leg);
        let is_new = self.legs[from..].iter().all(|leg| leg.is_new);
        let maker = Maker { volume: self.volume, number, is_new, blank };
        let service = maker.make(name, settings, &infos)?;
        let limits = service.limits(&infos);
        self.nodes[number] = (service, below);
        Ok(limits)
    }

    fn wrong(&self, problem: String) -> OpenError {
        OpenError::Size { volume: self.volume.to_owned(), problem }
    }

    /// Legs of a mirror that have more blocks than the smallest are used in part, also once that one has left.
    fn keep_size(&mut self, below: &[Below], infos: &mut [VolumeInfo]) -> Result<(), OpenError> {
        let least = infos.iter().map(|info| info.limits.blocks).min().unwrap_or(0);
        for (place, info) in below.iter().zip(infos) {
            if let Below::Leg(number) = place
                && self.legs[usize::from(number.0)].gone.is_none()
            {
                let leg = &mut self.legs[usize::from(number.0)];
                used::keep(leg, least)
                    .map_err(|problem| OpenError::Size { volume: self.volume.to_owned(), problem })?;
                *info = leg.info();
            }
        }
        Ok(())
    }

    /// An array over storage.
    fn array<'b>(
        &mut self,
        settings: Settings,
        legs: impl Iterator<Item = &'b Leg>,
    ) -> Result<VolumeLimits, OpenError> {
        let number = self.nodes.len();
        let id = Maker { volume: self.volume, number, is_new: false, blank: 0 }.new_id();
        let settings = ArraySettings { keys: settings.array, chunk: settings.chunk, id };
        let open =
            |leg: &Leg| Opened { leg: (self.open)(leg, &[]), speed: leg.speed.unwrap_or(1), name: leg.to_string() };
        let (array, legs) = assemble(self.volume, &settings, legs.map(open).collect())?;
        let infos: Vec<VolumeInfo> = legs.iter().map(LegState::info).collect();
        let first = self.legs.len();
        let below = (first..first + legs.len()).map(|leg| Below::Leg(flashyard_service::Leg(leg as u8))).collect();
        self.legs.extend(legs);
        if self.legs.len() > LEGS_MAX {
            let problem = format!("more than {LEGS_MAX} pieces of storage");
            return Err(OpenError::Size { volume: self.volume.to_owned(), problem });
        }
        let limits = array.limits(&infos);
        self.nodes.push((Box::new(array), below));
        Ok(limits)
    }

    /// The tree, and its storage in order.
    pub(crate) fn finish(self) -> Result<(Tree, Vec<LegState>), OpenError> {
        let Self { volume, legs, nodes, .. } = self;
        let problem = |error| {
            let problem = match error {
                TreeError::Mixes { .. } => ABOVE_ARRAYS.to_owned(),
                error => format!("no tree of services: {error:?}"),
            };
            OpenError::Size { volume: volume.to_owned(), problem }
        };
        Ok((Tree::new(nodes).map_err(problem)?, legs))
    }
}

/// A LATTE over a front end and a back end of so many blocks, or a cache, which is one that takes no writes.
///
/// Errors: sizes that it does not take.
pub(crate) fn latte(service: ServiceName, settings: Settings, (front, back): (u64, u64)) -> Result<Zeroing, String> {
    let mib = |blocks: u64| (blocks * BLOCK as u64) >> 20;
    if !(FRONT_MIN..=LATTE_MAX).contains(&front) {
        return Err(format!("a front end of {} MiB, give {} MiB or more", mib(front), mib(FRONT_MIN)));
    }
    if back > LATTE_MAX {
        return Err(format!("a back end of {} MiB, give at most {}", mib(back), mib(LATTE_MAX)));
    }
    let mut config = Config::halves(back as u32, front as u32);
    if service == ServiceName::Cache {
        (config.log_slots, config.cache_slots) = (CACHE_LOG, front as u32 - CACHE_LOG);
        config.rule = Rule::Back;
    }
    config.rule = settings.rule.map_or(config.rule, rule_of);
    config.flush_age = settings.flush_age.map_or(config.flush_age, |age| age.0);
    Ok(Zeroing(Latte::new(config), service.name()))
}

fn rule_of(name: RuleName) -> Rule {
    match name {
        RuleName::Front => Rule::Front,
        RuleName::Back => Rule::Back,
        RuleName::Shortest => Rule::Shortest,
        // A run of a real volume is not repeated: any seed will do.
        RuleName::Learned => Rule::Learned(Learning::published(1)),
    }
}

/// Properties of a service, as those of a volume.
fn info_of(limits: VolumeLimits) -> VolumeInfo {
    VolumeInfo { id: flashyard_units::VolumeId::new(0), block_bytes: BLOCK as u32, limits, protected: false }
}
