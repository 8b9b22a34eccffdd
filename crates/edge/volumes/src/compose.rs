//! Trees of services over storage, from their description.

use crate::error::OpenError;
use crate::leg::{BLOCK, LegState};
use flashyard_blk::{VolumeInfo, VolumeLimits};
use flashyard_describe::Size;
use flashyard_describe::volumes::{Leg, ServiceName, VERSIONS};
use flashyard_service::{PassThrough, Service};
use flashyard_services::{
    AtomicWrites, Below, Mirrored, Prioritized, Shares, SpillOver, Striped, Tree, VersionRoom, Versioned,
};

/// Bytes of a stripe on a leg before the next one, without `chunk`. Source: \[A\] 64 KiB, a common default of software RAID.
const CHUNK: u64 = 64 << 10;
/// Blocks of a mirror at most: a byte each.
const MIRROR_MAX: u64 = 1 << 33;

/// Bytes of the log of atomic writes, without `log`. Source: \[A\] some thousand writes of 8 KiB.
const LOG: u64 = 64 << 20;

/// Part of a leg that keeps versions, without `store`: a fifth. Source: \[A\].
const STORE_SHARE: u64 = 5;
/// Blocks of the log of the map of versions: 4 MiB. Source: \[A\].
const VERSION_LOG: u64 = 1024;

/// Sizes that a service may be given.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sizes {
    pub(crate) chunk: Option<Size>,
    pub(crate) log: Option<Size>,
    /// Versions, and the bytes that keep them.
    pub(crate) versions: Option<u32>,
    pub(crate) store: Option<Size>,
}

type Nodes = Vec<(Box<dyn Service + Send>, Vec<Below>)>;

/// A service or a piece of storage of a volume, for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Part {
    /// The storage of this number.
    Leg(usize),
    /// A service over others.
    Service {
        /// Its name in files.
        name: &'static str,
        /// Those below it, in order.
        below: Vec<Part>,
    },
}

/// A tree that is being built, with the storage below it.
pub(crate) struct Composer<'a> {
    pub(crate) volume: &'a str,
    /// Opens storage.
    pub(crate) open: &'a dyn Fn(&Leg) -> Result<LegState, OpenError>,
    pub(crate) legs: Vec<LegState>,
    nodes: Nodes,
}

impl<'a> Composer<'a> {
    pub(crate) fn new(volume: &'a str, open: &'a dyn Fn(&Leg) -> Result<LegState, OpenError>) -> Self {
        Self { volume, open, legs: Vec::new(), nodes: Vec::new() }
    }

    fn wrong(&self, problem: String) -> OpenError {
        OpenError::Size { volume: self.volume.to_owned(), problem }
    }

    /// A service over `legs`, and all below; returns its limits.
    pub(crate) fn service<'b>(
        &mut self,
        name: ServiceName,
        sizes: Sizes,
        legs: impl Iterator<Item = &'b Leg>,
    ) -> Result<(VolumeLimits, Part), OpenError> {
        // A service comes before those below it.
        let number = self.nodes.len();
        self.nodes.push((Box::new(PassThrough), Vec::new()));
        let (mut below, mut infos, mut parts) = (Vec::new(), Vec::new(), Vec::new());
        for leg in legs {
            let info = if let Some(service) = leg.service {
                below.push(Below::Service(self.nodes.len()));
                let sizes = Sizes { chunk: leg.chunk, log: leg.log, ..Sizes::default() };
                let (limits, part) = self.service(service, sizes, leg.legs.iter().flatten())?;
                parts.push(part);
                VolumeInfo { limits, ..info_of(limits) }
            } else {
                let leg = (self.open)(leg)?;
                below.push(Below::Leg(flashyard_service::Leg(self.legs.len() as u8)));
                let info = leg.info();
                parts.push(Part::Leg(self.legs.len()));
                self.legs.push(leg);
                info
            };
            infos.push(info);
        }
        if self.legs.len() > usize::from(u8::MAX) {
            return Err(self.wrong(format!("more than {} pieces of storage", u8::MAX)));
        }
        let count = below.len() as u8;
        let blocks = infos.iter().map(|info| info.limits.blocks).min().unwrap_or(0);
        let service: Box<dyn Service + Send> = match name {
            ServiceName::Stripe => {
                let chunk = sizes.chunk.map_or(CHUNK, |chunk| chunk.0.get()) / BLOCK as u64;
                if chunk > blocks {
                    return Err(self.wrong(format!("a leg of {blocks} blocks holds no chunk of {chunk}")));
                }
                Box::new(Striped::new(count, chunk as u32))
            }
            ServiceName::Mirror if blocks > MIRROR_MAX => {
                return Err(self.wrong(format!("a mirror of {blocks} blocks, give at most {MIRROR_MAX}")));
            }
            ServiceName::Mirror => Box::new(Mirrored::new(count, blocks)),
            ServiceName::Priority => Box::new(Prioritized::new(Shares::published(1))),
            ServiceName::Versions => {
                let store = sizes.store.map_or(blocks / STORE_SHARE, |store| store.0.get() / BLOCK as u64);
                let room = VersionRoom { slots: sizes.versions.unwrap_or(VERSIONS), store, log: VERSION_LOG };
                let service = Versioned::new(room);
                if service.limits(&infos).blocks == 0 {
                    return Err(
                        self.wrong(format!("a leg of {blocks} blocks has no room for a store of {store} and the map"))
                    );
                }
                Box::new(service)
            }
            ServiceName::Atomic => {
                let log = sizes.log.map_or(LOG, |log| log.0.get()) / BLOCK as u64;
                if log >= blocks {
                    return Err(self.wrong(format!("a leg of {blocks} blocks has no room for a log of {log}")));
                }
                Box::new(AtomicWrites::new(log))
            }
            _ => Box::new(SpillOver::new(infos[0].limits.blocks)),
        };
        let limits = service.limits(&infos);
        self.nodes[number] = (service, below);
        Ok((limits, Part::Service { name: name.name(), below: parts }))
    }

    /// The tree, and its storage in order.
    pub(crate) fn finish(self) -> Result<(Tree, Vec<LegState>), OpenError> {
        let Self { volume, legs, nodes, .. } = self;
        let problem =
            |error| OpenError::Size { volume: volume.to_owned(), problem: format!("no tree of services: {error:?}") };
        Ok((Tree::new(nodes).map_err(problem)?, legs))
    }
}

/// Properties of a service, as those of a volume.
fn info_of(limits: VolumeLimits) -> VolumeInfo {
    VolumeInfo { id: flashyard_units::VolumeId::new(0), block_bytes: BLOCK as u32, limits, protected: false }
}
