//! The bytes of all drives of an enclosure, in memory or in a directory.

use super::directory::{DataDirectory, MediaError, RecordKind, Records, Shape};
use super::drive::{DriveMedia, files_of, keep_metadata, revert, touch, write_with};
use super::erasures::Erasures;
use super::life::{Life, Rule};
use super::mapping::Mapping;
use super::recover::RecoveryReport;
use super::scrub::{Scrub, scrub, scrub_dead};
use super::tuples::{Entry, Tuples};
use flashyard_flash::{Layout, Slot};
use flashyard_ftl::SuperblockContents;
use flashyard_served::{Control, Effect, Served};
use flashyard_ssd::Movement;
use flashyard_units::DriveId;
use std::collections::BTreeSet;
use std::fs::File;
use std::io;
use std::path::Path;

/// The bytes of all drives of an enclosure.
#[derive(Debug)]
pub struct Media {
    drives: Vec<DriveMedia>,
    /// Keeps the lock of the directory.
    directory: Option<DataDirectory>,
    /// Their records, as they were found.
    records: Vec<Records>,
}

impl Media {
    /// Empty drives in memory, of these layouts.
    ///
    /// Errors: those of the operating system.
    pub fn memory(layouts: impl IntoIterator<Item = Layout>) -> io::Result<Self> {
        let drives = layouts.into_iter().map(DriveMedia::memory);
        Ok(Self { drives: drives.collect::<io::Result<_>>()?, directory: None, records: Vec::new() })
    }

    /// Takes over what drives hold before they are used: zeros where `contents` say that something is current; one entry for each
    /// drive.
    ///
    /// Errors: those of the operating system.
    pub fn adopt(&mut self, contents: &[Vec<SuperblockContents>]) -> io::Result<()> {
        self.drives.iter_mut().zip(contents).try_for_each(|(drive, contents)| drive.adopt(contents))
    }

    /// Takes memory of so many bytes from the system for drives in memory, an equal part for each, before clients come: their first writes do not
    /// wait for it.
    ///
    /// Errors: the system has not so much memory, or is too old for it (Linux 5.14).
    pub fn populate(&self, bytes: u64) -> io::Result<()> {
        let part = usize::try_from(bytes / self.drives.len().max(1) as u64).unwrap_or(usize::MAX);
        self.drives.iter().try_for_each(|drive| drive.payload.populate(part))
    }

    /// New drives in `directory`, which hold zeros where `contents` say that something is current.
    ///
    /// Errors: those of the operating system.
    pub fn create(
        directory: DataDirectory,
        shapes: &[Shape],
        contents: &[Vec<SuperblockContents>],
    ) -> Result<Self, MediaError> {
        let drives = directory.make(shapes, contents)?;
        Ok(Self { drives, directory: Some(directory), records: Vec::new() })
    }

    /// One drive. Panics beyond the drives.
    pub fn drive(&self, drive: DriveId) -> &DriveMedia {
        &self.drives[drive.index()]
    }

    /// A read of a block of a drive has failed for its bytes. Panics beyond the drives.
    pub(crate) fn failed_read(&mut self, drive: DriveId, logical: u32) {
        self.drives[drive.index()].failed_read(logical);
    }

    /// The bytes that a write has just left in a place of a drive are not to be believed. Panics beyond the drives.
    pub(crate) fn lose(&mut self, drive: DriveId, logical: u32, slot: Slot) {
        self.drives[drive.index()].lost(logical, slot);
    }

    /// Loads what following `effects` will look at: records of the copies that writes replace, records and bytes of reads. The misses of all
    /// overlap then.
    pub(crate) fn touch(&self, effects: &[Effect]) {
        let touched = effects.iter().map(|effect| match effect {
            Effect::Payload { drive, movement: Movement::Written { before, .. } } => {
                touch(self.drive(*drive), *before, false)
            }
            Effect::Payload { drive, movement: Movement::Read { slot, .. } } => touch(self.drive(*drive), *slot, true),
            _ => 0,
        });
        std::hint::black_box(touched.fold(0, |all, byte| all ^ byte));
    }

    /// Follows a movement other than a read; `payload` gives the bytes of a write, `None` for zeros. Returns whether there
    /// was room for the bytes of a write.
    ///
    /// Errors: those of the operating system, after which nothing is lost if nothing more is followed.
    #[inline]
    pub fn follow<'a>(
        &mut self,
        drive: DriveId,
        movement: &Movement,
        payload: impl FnOnce() -> Option<&'a [u8]>,
    ) -> io::Result<bool> {
        let media = &mut self.drives[drive.index()];
        match *movement {
            Movement::Opened { superblock, stream, single_level } => media.opened(superblock, stream, single_level),
            Movement::Written { logical, slot, before, .. } => {
                return Ok(media.write(logical, slot, before, payload()));
            }
            Movement::Moved { logical, from, to } => media.moved(logical, from, to)?,
            Movement::Lost { logical, slot } => media.lost(logical, slot),
            Movement::Trimmed { logical, before } => media.trimmed(logical, before),
            Movement::Remapped { logical, source, slot, before } => media.remapped(logical, source, slot, before)?,
            Movement::Reverted { logical, before, slot } => revert(media, logical, before, slot),
            Movement::Erased { superblock } => media.erased(superblock)?,
            Movement::Read { .. } => {}
        }
        Ok(true)
    }

    /// Follows the write of a slot whose blocks have metadata. Panics beyond the drives.
    pub(crate) fn write_with(
        &mut self,
        drive: DriveId,
        places: (u32, Slot, Slot),
        payload: Option<&[u8]>,
        metadata: &Entry,
    ) -> bool {
        write_with(&mut self.drives[drive.index()], places, payload, metadata)
    }

    /// Whether metadata of blocks has a place on a drive. Panics beyond the drives.
    pub(crate) fn has_metadata(&self, drive: DriveId) -> bool {
        self.drives[drive.index()].tuples.is_some()
    }

    /// Gives metadata of blocks a place on a drive, unless it has one. Panics beyond the drives.
    ///
    /// Errors: those of the operating system.
    pub(crate) fn keep_metadata(&mut self, drive: DriveId) -> io::Result<()> {
        if self.has_metadata(drive) {
            return Ok(());
        }
        let media = &mut self.drives[drive.index()];
        let layout = *media.layout();
        let bytes = Tuples::bytes(&layout);
        let memory = || Mapping::memory(bytes);
        let mapping = self.directory.as_ref().map_or_else(memory, |directory| directory.make_metadata(drive, bytes))?;
        keep_metadata(media, Tuples::new(mapping, layout));
        Ok(())
    }

    /// Writes a block of `drive` with what another drive holds at a place. What is damaged there is lost here.
    ///
    /// Errors: those of the operating system; no room for the bytes among them, as no client can be told.
    pub(crate) fn copy(
        &mut self,
        (from, source): (DriveId, Slot),
        drive: DriveId,
        logical: u32,
        slot: Slot,
        before: Slot,
    ) -> io::Result<()> {
        let held = &self.drives[from.index()];
        let (is_whole, has_payload) = (held.is_whole(source), held.has_payload(held.place_of(source)));
        let bytes = has_payload.then(|| held.slot(source).to_vec());
        let media = &mut self.drives[drive.index()];
        if !media.write(logical, slot, before, bytes.as_deref()) {
            return Err(io::ErrorKind::StorageFull.into());
        }
        if !is_whole {
            media.lost(logical, slot);
        }
        Ok(())
    }

    /// Keeps what was just done to a drive of `world` and outlives the process, if it is such a thing. Panics beyond the
    /// drives.
    pub(crate) fn keep_control(&mut self, control: &Control, world: &dyn Served) {
        match *control {
            Control::Wear { drive, .. } => self.drives[drive.index()].set_erases(world.erase_counts(drive).into_iter()),
            Control::Degrade { drive, on } => self.drives[drive.index()].keep_degraded(on),
            Control::Retire { drive, rate, retries } => {
                self.drives[drive.index()].keep_wish(|life| life.rule = Some(Rule { rate, retries }));
            }
            _ => {}
        }
    }

    /// Keeps what formats and sanitizes of a drive have left. Panics beyond the drives.
    pub(crate) fn keep_erasures(&mut self, drive: DriveId, erasures: Erasures) {
        self.drives[drive.index()].keep_wish(|life| life.erasures = erasures);
    }

    /// As of [`scrub`]. Panics beyond the drives.
    pub(crate) fn scrub(&mut self, drive: DriveId, from: Scrub) -> io::Result<Option<Scrub>> {
        scrub(&mut self.drives[drive.index()], from)
    }

    /// As of [`scrub_dead`]. Panics beyond the drives.
    pub(crate) fn scrub_dead(
        &mut self,
        drive: DriveId,
        needed: &BTreeSet<Slot>,
        from: Scrub,
    ) -> io::Result<Option<Scrub>> {
        scrub_dead(&mut self.drives[drive.index()], needed, from)
    }

    /// As of [`files_of`]. Panics beyond the drives.
    pub(crate) fn files(&self, drive: DriveId) -> io::Result<Vec<File>> {
        files_of(self.drive(drive))
    }

    /// A record of a drive that an earlier process has left.
    pub(crate) fn record(&self, drive: DriveId, kind: RecordKind) -> Option<&[u8]> {
        self.records.get(drive.index())?[kind as usize].as_deref()
    }

    /// Keeps a record of a drive: whole, or as it was.
    ///
    /// Errors: those of the operating system.
    pub(crate) fn keep_record(&self, drive: DriveId, kind: RecordKind, record: &[u8]) -> io::Result<()> {
        self.directory.as_ref().map_or(Ok(()), |directory| directory.keep_record(drive, kind, record))
    }

    /// Controls for an enclosure that begins with these drives, so that what was done to it before the restart lasts.
    pub(crate) fn resumption(&self) -> Vec<Control> {
        let mut controls = Vec::new();
        for (drive, media) in (0..).map(DriveId::new).zip(&self.drives) {
            controls.extend(media.retired().map(|superblock| Control::Retired { drive, superblock }));
            let Life { rule, is_degraded, .. } = media.before();
            controls.extend(rule.map(|Rule { rate, retries }| Control::Reinstate { drive, rate, retries }));
            controls.extend(is_degraded.then_some(Control::Degrade { drive, on: true }));
        }
        controls
    }

    /// Whether they outlive the process.
    pub(crate) fn is_kept(&self) -> bool {
        self.directory.is_some()
    }

    /// Stores the lifetime record of `drive`, and which of its superblocks are retired. Panics beyond the drives.
    pub(crate) fn keep(&mut self, drive: DriveId, life: Life, world: &dyn Served) {
        let media = &mut self.drives[drive.index()];
        media.keep(life);
        let retired = world.retired(drive);
        media.mark_retired(retired.len() as u32, retired.into_iter());
    }

    /// Writes everything back and notes that the end was in order.
    ///
    /// Errors: those of the operating system.
    pub fn close(self) -> io::Result<()> {
        self.drives.iter().try_for_each(DriveMedia::sync)?;
        self.directory.map_or(Ok(()), |directory| directory.close(&self.drives))
    }
}

/// A directory as it was found.
pub enum Opened {
    /// There were no drives in it: [`Media::create`] makes them.
    New(DataDirectory),
    /// It keeps the drives of an earlier run.
    Kept {
        /// Their bytes.
        media: Media,
        /// Contents of their superblocks, drive by drive.
        contents: Vec<Vec<SuperblockContents>>,
        /// Findings on the way.
        report: RecoveryReport,
    },
}

impl DataDirectory {
    /// Locks the directory at `path`, made if it is not there, and reads the drives in it.
    ///
    /// Errors: another process has it; it keeps other drives; the operating system refuses.
    pub fn open(path: &Path, shapes: &[Shape]) -> Result<Opened, MediaError> {
        let directory = Self::lock(path)?;
        if !directory.keeps(shapes)? {
            return Ok(Opened::New(directory));
        }
        let (drives, contents, report) = directory.recover(shapes)?;
        let records = directory.records(shapes.len())?;
        Ok(Opened::Kept { media: Media { drives, directory: Some(directory), records }, contents, report })
    }
}

#[cfg(test)]
impl Media {
    /// The drives, for a test to change.
    pub(super) fn drives_mut(&mut self) -> &mut [DriveMedia] {
        &mut self.drives
    }
}
