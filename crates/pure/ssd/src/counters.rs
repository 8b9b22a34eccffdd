//! Counts of a data-end's work.

/// Counts of the data-end's work.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DataCounters {
    /// Slots read from the read cache.
    pub read_cache_hits: u64,
    /// Slots read ahead into it.
    pub read_ahead_slots: u64,
    /// Reads of flash for writes that leave a part of a mapping unit.
    pub merge_reads: u64,
    /// Slots written with them that the host has not written.
    pub merged_slots: u64,
    /// Commands executed.
    pub executed: u64,
    /// Commands completed.
    pub completed: u64,
    /// Commands that power cuts made vanish.
    pub vanished: u64,
    /// Logical slots that power cuts gave older data back, or none, on a drive without protection.
    pub reverted_slots: u64,
    /// Bytes to the host.
    pub read_bytes: u64,
    /// Bytes from the host.
    pub write_bytes: u64,
    /// Translation pages read from flash.
    pub translation_reads: u64,
    /// Flash pages of translation pages programmed.
    pub translation_programs: u64,
    /// Flash pages of the journal of the map programmed.
    pub journal_programs: u64,
    /// Flash pages of checkpoints of the map programmed.
    pub checkpoint_programs: u64,
    /// Slots read from the write buffer.
    pub buffer_hits: u64,
    /// Times that data could not be corrected: reads of flash that were given up, for hosts or for garbage collection,
    /// and reads of slots that garbage collection had given up before.
    pub media_errors: u64,
    /// Die rows of parity programmed.
    pub parity_programs: u64,
    /// Flash reads of hosts that were rebuilt from the other members of their stripe.
    pub rebuilt_reads: u64,
    /// Flash reads that this took.
    pub rebuilding_reads: u64,
    /// Flash reads, of hosts or of garbage collection, that were given up and whose data parity gave back.
    pub recovered_reads: u64,
}
