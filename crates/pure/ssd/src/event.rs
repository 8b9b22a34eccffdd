//! Events that a drive schedules for itself, and effects by which it reports.

use crate::offsite::LoanId;
use flashyard_nand::NandEvent;
use flashyard_stats::TimeSplit;
use flashyard_units::SimTime;

/// Events that a drive schedules for itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DriveEvent {
    /// A core has come to the end of its job, or to that of a slice where other queues have work. It may also have been on its way
    /// to an end that has become another one since.
    CoreDone {
        /// The core.
        core: u8,
    },
    /// The flash has news.
    Nand(NandEvent),
    /// A command's translation pages have arrived from a peer's memory.
    Mapped {
        /// The data-end's command.
        command: u32,
    },
    /// The host's command for a translation page has arrived.
    FetchPage {
        /// The page.
        page: u32,
    },
    /// The host's command that writes translation pages has arrived.
    StorePages {
        /// The die that takes them.
        die: u16,
    },
    /// The host has heard that a translation page is in its memory.
    PageHeard {
        /// The page.
        page: u32,
    },
    /// A write's data has arrived in the buffer.
    Buffered {
        /// The data-end's command.
        command: u32,
    },
    /// The pacer may let the next write in.
    Paced,
    /// The power is enough for the next program.
    Powered,
    /// The pages that half of a borrowed segment's log is about have been copied home.
    SegmentFlushed {
        /// The segment's number here.
        segment: u16,
        /// Tells this flush from abandoned ones.
        ticket: u16,
    },
    /// The dirty pages of a segment that is given back have been copied home.
    SegmentReturned {
        /// The segment's number here.
        segment: u16,
        /// Tells this return from abandoned ones.
        ticket: u16,
    },
    /// The pages of a lost segment have been read from flash.
    SegmentRecovered {
        /// The segment's number here.
        segment: u16,
        /// Tells this recovery from abandoned ones.
        ticket: u16,
    },
}

/// Reports of a drive to its owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DriveEffect {
    /// The firmware work of a job is done.
    FirmwareDone {
        /// The job's tag.
        tag: u32,
    },
    /// A command completes at the drive.
    Completed {
        /// The command's tag.
        tag: u32,
        /// When: now, or when the last DMA of a read, reserved by now, will have ended. Reporting that in advance saves
        /// the world an event for each read.
        at: SimTime,
        /// Where the time went since the command was handed to the data-end.
        time: TimeSplit,
    },
    /// A write has no room and never will have: the drive is worn out. It has written nothing, and completes next.
    WriteFailed {
        /// The command's tag.
        tag: u32,
    },
    /// A read found data that could not be corrected: its result means nothing, and it completes next.
    ReadFailed {
        /// The command's tag.
        tag: u32,
        /// The first logical slot of that data, as far as it can be determined.
        slot: u32,
    },
    /// The host, which keeps the map, has to send a command for a translation page: [`DriveEvent::FetchPage`] follows when
    /// that has arrived.
    FetchPage {
        /// The page.
        page: u32,
    },
    /// The host, which keeps the map, has to send a command that writes translation pages: [`DriveEvent::StorePages`]
    /// follows when that has arrived.
    StorePages {
        /// The die that takes them.
        die: u16,
    },
    /// All segments of a loan that was being given back are the lender's own again.
    SegmentsReturned {
        /// The loan.
        loan: LoanId,
    },
    /// All lost segments of a loan are restored at home.
    SegmentsRecovered {
        /// The loan.
        loan: LoanId,
    },
    /// The drive takes commands again after a power cut.
    Ready,
}
