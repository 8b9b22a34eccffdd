//! Scans of descriptors: what they cost the cores of drives and hosts, and when they bear fruit.

use flashyard_cxl::ENDPOINTS_MAX;
use flashyard_units::{DriveId, SimSpan, SimTime};

/// Tags from here up are scans of descriptors by the firmware of a drive, not requests.
const SCAN_TAGS: u32 = u32::MAX - ENDPOINTS_MAX;

/// The tag of a scan by the firmware of `drive`.
pub(super) fn scan_tag(drive: DriveId) -> u32 {
    SCAN_TAGS + u32::from(drive.get())
}

/// The drive whose firmware has read its peers' descriptors, if `tag` says that.
#[inline]
pub(crate) fn scan_of(tag: u32) -> Option<DriveId> {
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
    pub(crate) fn new(drives: usize) -> Self {
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
