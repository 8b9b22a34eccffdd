//! The bytes of one drive by physical slot, which follow what its data-end tells of payload.

use super::band::{Band, Found, Header, Record, State};
use super::life::{Life, Rule};
use super::mapping::Mapping;
use super::payload::Payload;
use flashyard_flash::{Layout, SLOT_BYTES, Slot};
use flashyard_ftl::{Stream, SuperblockContents};
use std::io;

/// Bytes of a slot.
pub(crate) const BYTES: usize = SLOT_BYTES as usize;

/// What a slot without payload reads as.
static ZEROS: [u8; BYTES] = [0; BYTES];

/// The bytes of one drive.
#[derive(Debug)]
pub struct DriveMedia {
    layout: Layout,
    pub(super) payload: Payload,
    pub(super) band: Band,
    /// Number of the last slot written.
    pub(super) sequence: u64,
    /// Whether payload gets checksums: it outlives the process.
    pub(super) checked: bool,
    /// What it remembers of its life before this run, with this start, and as it was last kept.
    before: Life,
    kept: Life,
    /// Superblocks that are marked as retired.
    marked: u32,
}

impl DriveMedia {
    /// A drive in memory.
    ///
    /// Errors: those of the operating system.
    pub(super) fn memory(layout: Layout) -> io::Result<Self> {
        let payload = Payload::memory(layout)?;
        let band = Band::new(Mapping::memory(Band::bytes(&layout))?, layout);
        Ok(Self::over(layout, payload, band, false))
    }

    pub(super) fn of(layout: Layout, payload: Mapping, band: Mapping) -> Self {
        let payload = Payload::file(payload, layout);
        Self::over(layout, payload, Band::new(band, layout), true)
    }

    fn over(layout: Layout, payload: Payload, band: Band, checked: bool) -> Self {
        let life = Life::first();
        Self { layout, payload, band, sequence: 0, checked, before: life, kept: life, marked: 0 }
    }

    /// Slot arithmetic of the drive.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// What `slot` holds: zeros where nothing was written, and for [`Slot::NONE`].
    #[inline]
    pub fn slot(&self, slot: Slot) -> &[u8] {
        if self.has_payload(slot) { self.payload.run(slot, 1) } else { &ZEROS }
    }

    /// Whether there are bytes for `slot`.
    #[inline]
    pub(super) fn has_payload(&self, slot: Slot) -> bool {
        slot.is_some()
            && self.payload.holds(slot)
            && matches!(self.band.get(slot.get()), Found::Whole(Record { state, .. }) if state != State::Zeros)
    }

    /// Whether the bytes of `next` lie behind those of the slot before it.
    #[inline]
    pub(super) fn adjoins(&self, next: Slot) -> bool {
        self.layout.split(next).1 != 0
    }

    /// Takes over what the drive holds before it is used: slots that are current, and hold zeros.
    pub(super) fn adopt(&mut self, contents: &[SuperblockContents]) {
        let mut order: Vec<_> = (0..).zip(contents).collect();
        // Superblocks are numbered in the order in which they were opened.
        order.sort_by_key(|(_, contents)| contents.used.as_ref().map_or(0, |used| used.opened));
        for (superblock, contents) in order {
            let erases = contents.erases;
            let Some(used) = &contents.used else {
                self.band.set_header(superblock, &Header { erases, ..Header::NEW });
                continue;
            };
            self.sequence += 1;
            let (stream, single_level) = (used.stream, used.single_level);
            let opened = self.sequence;
            self.band
                .set_header(superblock, &Header { used: true, stream, single_level, retired: false, erases, opened });
            let mut valid = used.valid.iter().peekable();
            let is_lost = |logical| used.lost.contains(&logical);
            for index in 0..used.written {
                self.sequence += 1;
                let current = valid.next_if(|entry| entry.0 == index);
                let state = match current {
                    Some(&(_, logical)) if is_lost(logical) => State::Lost,
                    Some(_) => State::Zeros,
                    None => State::Dead,
                };
                let logical = current.map_or(u32::MAX, |entry| entry.1);
                let record = Record { sequence: self.sequence, logical, state, checksum: 0 };
                self.band.set(self.layout.slot(superblock, index).get(), &record);
            }
        }
    }

    /// A superblock is opened.
    pub(super) fn opened(&mut self, superblock: u32, stream: Stream, single_level: bool) {
        self.sequence += 1;
        let (erases, opened) = (self.band.header(superblock).erases, self.sequence);
        self.band.set_header(superblock, &Header { used: true, stream, single_level, retired: false, erases, opened });
    }

    /// A slot of a write goes to its place; `None` stands for zeros. Payload first, then what says that it is there,
    /// then what says that the old copy is not current: whatever moment the process ends at, one of both is.
    #[inline]
    pub(super) fn write(&mut self, logical: u32, slot: Slot, before: Slot, payload: Option<&[u8]>) {
        let (mut state, mut checksum) = (State::Zeros, 0);
        if let Some(payload) = payload {
            self.payload.set(slot, payload);
            state = State::Data;
            checksum = if self.checked { crc32c::crc32c(payload) } else { 0 };
        }
        self.written(logical, slot, before, state, checksum);
    }

    /// Reclaim has moved a slot.
    pub(super) fn moved(&mut self, logical: u32, from: Slot, to: Slot) {
        let Found::Whole(record) = self.band.get(from.get()) else {
            return self.written(logical, to, from, State::Zeros, 0);
        };
        let state = match record.state {
            State::Lost => State::Lost,
            _ if self.has_payload(from) => State::Data,
            _ => State::Zeros,
        };
        if state == State::Data {
            self.payload.copy(from, to);
        }
        self.written(logical, to, from, state, record.checksum);
    }

    fn written(&mut self, logical: u32, slot: Slot, before: Slot, state: State, checksum: u32) {
        self.sequence += 1;
        self.band.set(slot.get(), &Record { sequence: self.sequence, logical, state, checksum });
        self.kill(logical, before);
    }

    /// What has just been moved to `slot` could not be read.
    pub(super) fn lost(&mut self, logical: u32, slot: Slot) {
        if let Found::Whole(record) = self.band.get(slot.get())
            && record.logical == logical
        {
            self.band.set(slot.get(), &Record { state: State::Lost, ..record });
        }
    }

    /// A logical slot was deallocated.
    pub(super) fn trimmed(&mut self, logical: u32, before: Slot) {
        self.kill(logical, before);
    }

    /// The data of `source` in `slot` became that of `logical`, which was in `before`.
    pub(super) fn remapped(&mut self, logical: u32, source: u32, slot: Slot, before: Slot) {
        if let Found::Whole(record) = self.band.get(slot.get())
            && record.logical == source
        {
            self.sequence += 1;
            self.band.replace(slot.get(), &Record { sequence: self.sequence, logical, ..record });
            self.kill(logical, before);
        }
    }

    /// The data of `logical` in `slot` is no longer current. Readers that were promised it still find it.
    fn kill(&mut self, logical: u32, slot: Slot) {
        if slot.is_some()
            && let Found::Whole(record) = self.band.get(slot.get())
            // A map that was led astray may name a slot that is another's.
            && record.logical == logical
        {
            let state = if record.state == State::Zeros { State::Zeros } else { State::Dead };
            // Zeros stay zeros for readers, but belong to nobody.
            self.band.set(slot.get(), &Record { logical: u32::MAX, state, ..record });
        }
    }

    /// A superblock was erased.
    ///
    /// Errors: those of the operating system.
    pub(super) fn erased(&mut self, superblock: u32) -> io::Result<()> {
        self.payload.erase(superblock)?;
        self.band.forget(superblock)?;
        let erases = self.band.header(superblock).erases + 1;
        self.band.set_header(superblock, &Header { erases, ..Header::NEW });
        Ok(())
    }

    /// Superblocks have had so many erases, in order.
    pub(super) fn set_erases(&mut self, counts: impl Iterator<Item = u32>) {
        for (superblock, erases) in (0..self.layout.superblocks).zip(counts) {
            let header = self.band.header(superblock);
            self.band.set_header(superblock, &Header { erases, ..header });
        }
    }

    /// Counts this start of the drive: its life so far is on record before it serves. The last one ended in order, or
    /// lost the power that it had.
    pub(super) fn start(&mut self, in_order: bool) {
        let (life, torn) = self.band.life();
        if torn > 0 {
            tracing::warn!(torn, known = life.is_some(), "a record of the life of a drive was written in part");
        }
        let life = life.unwrap_or_default();
        self.before = Life {
            power_cycles: life.power_cycles.saturating_add(1),
            unsafe_shutdowns: life.unsafe_shutdowns.saturating_add(u64::from(!in_order && !life.is_dark)),
            is_dark: false,
            ..life
        };
        self.marked = (0..self.layout.superblocks).filter(|&number| self.band.header(number).retired).count() as u32;
        self.keep(self.before);
    }

    /// What the drive remembers of its life before this run, with this start; what a manager wants of it, as it is now.
    pub(crate) fn before(&self) -> &Life {
        &self.before
    }

    /// Puts on record what its life is now.
    pub(super) fn keep(&mut self, life: Life) {
        self.kept = life;
        self.band.set_life(&life);
    }

    /// The manager of capacity wants superblocks to be retired so.
    pub(super) fn keep_rule(&mut self, rule: Rule) {
        self.before.rule = Some(rule);
        self.keep(Life { rule: Some(rule), ..self.kept });
    }

    /// The drive is in its degraded mode, or not.
    pub(super) fn keep_degraded(&mut self, is_degraded: bool) {
        self.keep(Life { is_degraded, ..self.kept });
    }

    /// Marks superblocks as retired, `count` of them, unless as many are.
    pub(super) fn mark_retired(&mut self, count: u32, retired: impl Iterator<Item = u32>) {
        if self.marked != count {
            self.marked = count;
            for superblock in retired {
                let header = self.band.header(superblock);
                self.band.set_header(superblock, &Header { retired: true, ..header });
            }
        }
    }

    /// Superblocks that are marked as retired.
    pub(crate) fn retired(&self) -> impl Iterator<Item = u32> + '_ {
        (0..self.layout.superblocks).filter(|&superblock| self.band.header(superblock).retired)
    }

    /// Waits until everything is on disk.
    pub(super) fn sync(&self) -> io::Result<()> {
        self.payload.sync()?;
        self.band.mapping.sync()
    }
}
