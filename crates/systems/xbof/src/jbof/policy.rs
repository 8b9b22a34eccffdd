//! How commands find cores and memory: one value, which owns its state. The designs are these four policies over drives
//! of different sizes ([`super::JbofConfig::placed`]).

use super::config::Design;
use super::enclosure::Enclosure;
use super::lending::{Lending, SHADOW_QUEUES, SearchFigures};
use super::request::Request;
use super::spread::VirtualDrives;
use flashyard_ssd::Drive;
use flashyard_units::{DriveId, SimSpan};

/// How commands find cores and memory.
pub(super) enum Policy {
    /// Each drive's own.
    Direct,
    /// The host's: it has done the firmware's work when a command arrives.
    OpenChannel,
    /// Each drive's own, but the data of busy drives is spread over idle ones.
    Virtual(Box<VirtualDrives>),
    /// Each drive's own, or a lender's.
    Lending(Box<Lending>),
}

impl Policy {
    /// The policy of the enclosure's design; `seed` is that of the run.
    pub(super) fn new(enclosure: &Enclosure, seed: u64) -> Self {
        match enclosure.config.design {
            Design::Conv | Design::Shrunk => Self::Direct,
            Design::Oc => Self::OpenChannel,
            Design::Vh | Design::VhIdeal => Self::Virtual(Box::new(VirtualDrives::new(&enclosure.config, seed))),
            Design::ProcH | Design::Xbof => Self::Lending(Box::new(Lending::new(enclosure, seed))),
        }
    }

    /// The state of lending, if drives lend.
    #[inline]
    pub(super) fn lending(&self) -> Option<&Lending> {
        match self {
            Self::Lending(lending) => Some(lending),
            _ => None,
        }
    }

    /// The state of lending, if drives lend.
    #[inline]
    pub(super) fn lending_mut(&mut self) -> Option<&mut Lending> {
        match self {
            Self::Lending(lending) => Some(lending),
            _ => None,
        }
    }

    /// The state of virtual drives, if there are any.
    #[inline]
    pub(super) fn spread(&self) -> Option<&VirtualDrives> {
        match self {
            Self::Virtual(drives) => Some(drives),
            _ => None,
        }
    }

    /// The drive whose cores run the firmware of request `id`.
    #[inline]
    pub(super) fn compute(&self, id: u32, request: &Request) -> DriveId {
        match self {
            Self::Lending(lending) => lending.compute(id, request.drive),
            _ => request.drive,
        }
    }

    /// The drive that has the data of request `id`, and the one whose cores run its firmware.
    pub(super) fn drives_of(&self, id: u32, enclosure: &Enclosure) -> (DriveId, DriveId) {
        let request = &enclosure.requests[id as usize];
        (request.drive, self.compute(id, request))
    }

    /// The busy drive that request `id` was asked of.
    #[inline]
    pub(super) fn home(&self, id: u32, request: &Request) -> DriveId {
        match self {
            Self::Virtual(drives) => drives.home(id),
            _ => request.drive,
        }
    }

    /// Requests that went to lenders.
    pub(super) fn redirected(&self) -> u64 {
        match self {
            Self::Direct | Self::OpenChannel => 0,
            Self::Virtual(drives) => drives.redirected,
            Self::Lending(lending) => lending.redirected,
        }
    }

    /// Busy time that `drive` gave to others.
    pub(super) fn lent(&self, drive: &Drive) -> SimSpan {
        self.lending().map_or(SimSpan::ZERO, |_| drive.compute.busy_from(SHADOW_QUEUES))
    }

    /// Operations of redirected commands that the agent of drive `number` has carried out.
    pub(super) fn agent_operations(&self, number: usize) -> u64 {
        self.lending().map_or(0, |lending| lending.agent_operations(number))
    }

    /// Cost and yield of looking for lenders, of `drives` drives.
    pub(super) fn search(&self, drives: usize) -> SearchFigures {
        self.lending().map_or_else(|| SearchFigures::new(drives), |lending| lending.search.clone())
    }
}
