//! Scans of descriptors: what they cost the cores of drives and hosts, and when they bear fruit.

use super::super::enclosure::Enclosure;
use super::Lending;
use flashyard_cxl::ENDPOINTS_MAX;
use flashyard_ssd::Job;
use flashyard_units::{DriveId, SimSpan, SimTime};

/// Tags from here up are scans of descriptors by the firmware of a drive, not requests.
const SCAN_TAGS: u32 = u32::MAX - ENDPOINTS_MAX;

/// The drive whose firmware has read its peers' descriptors, if `tag` says that.
#[inline]
pub(in super::super) fn scan_of(tag: u32) -> Option<DriveId> {
    tag.checked_sub(SCAN_TAGS).map(|drive| DriveId::new(drive as u16))
}

/// Cost and yield of looking for lenders, over the whole run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SearchFigures {
    /// Scans of each drive.
    pub scans: Vec<u64>,
    /// Time that a core of each drive waited for the lines of its scans.
    pub scanning: Vec<SimSpan>,
    /// Time that cores of all hosts waited for the lines of theirs.
    pub host_scanning: SimSpan,
    /// From the start of the stream whose command it was to the first command of each drive that went to a lender.
    pub first_redirected: Vec<Option<SimSpan>>,
}

impl SearchFigures {
    pub(in super::super) fn new(drives: usize) -> Self {
        Self {
            scans: vec![0; drives],
            scanning: vec![SimSpan::ZERO; drives],
            host_scanning: SimSpan::ZERO,
            first_redirected: vec![None; drives],
        }
    }

    /// A command of `drive` goes to a lender; its stream has `started` when that says.
    #[inline]
    pub(super) fn note_redirected(&mut self, now: SimTime, drive: DriveId, started: impl FnOnce() -> SimTime) {
        let first = &mut self.first_redirected[drive.index()];
        if first.is_none() {
            *first = Some(now.since(started()));
        }
    }
}

impl Lending {
    /// The firmware of `drive` loads `lines` lines from each peer: a core of it waits for one after the other.
    pub(super) fn scan(
        &mut self,
        enclosure: &mut Enclosure,
        now: SimTime,
        drive: DriveId,
        peers: Vec<DriveId>,
        lines: u64,
    ) {
        let stall = enclosure.fabric.scan(drive.get(), peers.into_iter().map(DriveId::get), lines);
        self.search.scans[drive.index()] += 1;
        self.search.scanning[drive.index()] += stall;
        let job = Job { tag: SCAN_TAGS + u32::from(drive.get()), busy: SimSpan::ZERO, stall };
        enclosure.on_drive(now, drive, |drive, now, out| drive.enqueue(now, 0, job, out));
    }

    /// Every host's driver loads the processor descriptors of all drives, for any may lend to its own: one core of each
    /// waits for one line after the other. A host is joined to the leaf switch of its first drive.
    pub(super) fn scan_by_hosts(&mut self, enclosure: &mut Enclosure, now: SimTime) {
        // A line holds four descriptors.
        let lines = u64::from(self.harvest.config().processor_offers.div_ceil(4));
        for (number, host) in enclosure.hosts.iter_mut().enumerate() {
            let beside = number as u32 * enclosure.config.drives_per_host();
            let stall = enclosure.fabric.scan(beside as u16, 0..enclosure.drives.len() as u16, lines);
            self.search.host_scanning += stall;
            host.run(now, stall);
        }
    }
}
