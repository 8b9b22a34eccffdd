//! The oracle: it hears what the host sees and reports when that is impossible.

use super::cache::{Cache, Stage, Version};
use super::moment::Moment;
use super::operation::{Action, Extent, Operation, OperationId};
use super::slot::{Slot, Verdict};
use super::value::Progress;
use super::violation::{Evidence, Violation, Wrong};
use flashyard_units::SimTime;

/// Slots of one piece of the index; a piece is made when one of its slots is first used.
const PIECE_SLOTS: u64 = 256;

/// Checks that a history of reads, writes and trims is linearizable, slot by slot, as it happens.
///
/// Every write carries a stamp that is unique in each of its slots; a trim writes 0, which is also what a slot
/// holds in the beginning. A request that the host sends again after a time-out is one operation: issued once,
/// answered once. An operation over several slots may take effect slot by slot.
///
/// A drive may have a volatile write cache ([`Oracle::make_volatile`]): a power cut may then take what was not flushed.
///
/// Times never decrease; operations reported at one time happened in the order of the reports. Slots and ids are plain
/// indices; memory is that of the pieces touched, and a slot keeps its superseded values only while a read under way
/// may return them.
#[derive(Clone, Debug)]
pub struct Oracle {
    now: Moment,
    /// By operation id.
    operations: Vec<Option<Operation>>,
    drives: Vec<Drive>,
    /// Writes and trims that were given up and may still happen.
    open: Vec<Operation>,
    counters: OracleCounters,
}

#[derive(Clone, Debug)]
struct Drive {
    slots: u64,
    pieces: Vec<Option<Box<[Slot]>>>,
    /// `None` where a power cut takes nothing.
    cache: Option<Box<Cache>>,
}

/// Counts of the oracle's checks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OracleCounters {
    /// Operations issued.
    pub operations: u64,
    /// Slots whose stamps were checked.
    pub slots_read: u64,
    /// Operations given up by the host.
    pub failed: u64,
    /// Slots that are no longer checked: too many trims and reads of 0 at once.
    pub slots_given_up: u64,
}

impl Oracle {
    /// Drives with these numbers of slots, none of them ever written.
    pub fn new(slots_by_drive: &[u64]) -> Self {
        let drive = |&slots: &u64| Drive { slots, pieces: Vec::new(), cache: None };
        Self {
            now: Moment::default(),
            operations: Vec::new(),
            drives: slots_by_drive.iter().map(drive).collect(),
            open: Vec::new(),
            counters: OracleCounters::default(),
        }
    }

    /// The host issues an operation.
    ///
    /// Panics when time goes backwards, when the id is under way, when the extent is empty or outside its
    /// drive, and when a write has stamp 0: those are bugs of the caller.
    #[inline]
    pub fn issue(&mut self, at: SimTime, id: OperationId, action: Action, extent: Extent) {
        let issued = self.tick(at);
        let drive = &mut self.drives[extent.drive as usize];
        assert!(extent.count > 0, "operation {id} is empty");
        let end = extent.first.checked_add(u64::from(extent.count));
        assert!(end.is_some_and(|end| end <= drive.slots), "operation {id} is outside its drive: {extent:?}");
        assert!(action != Action::Write(0), "write {id} has stamp 0, which is that of a trim");
        let index = id.0 as usize;
        if index >= self.operations.len() {
            self.operations.resize(index + 1, None);
        }
        let place = &mut self.operations[index];
        assert!(place.is_none(), "operation {id} is under way already");
        *place = Some(Operation { action, extent, issued });
        self.counters.operations += 1;
        for number in slots(extent) {
            if drive.cache.is_some() {
                drive.begin_version(number, id, action, issued);
            }
            let slot = drive.slot(number);
            match action {
                Action::Read => slot.begin_read(issued.order),
                Action::Write(stamp) => slot.begin_write(stamp, id, issued),
                Action::Trim => slot.begin_write(0, id, issued),
            }
        }
    }

    /// A write or trim is acknowledged: it has happened.
    ///
    /// Errors: it is not under way, or is a read.
    #[inline]
    pub fn acknowledged(&mut self, at: SimTime, id: OperationId) -> Result<(), Violation> {
        let at = self.tick(at);
        let operation = self.take(at, id)?;
        if operation.action == Action::Read {
            return Err(Violation::of_answer(at, id, Wrong::ReadWithoutData));
        }
        self.end(&operation, Progress::Acknowledged(at));
        Ok(())
    }

    /// A read returns one stamp for each of its slots; 0 for slots never written or trimmed.
    ///
    /// Errors: it is not under way, is no read, has another number of slots, or a slot cannot hold that stamp.
    /// The first of several bad slots is reported; all others are taken in.
    #[inline]
    pub fn returned(&mut self, at: SimTime, id: OperationId, stamps: &[u64]) -> Result<(), Violation> {
        let at = self.tick(at);
        let operation = self.take(at, id)?;
        let extent = operation.extent;
        if operation.action != Action::Read || stamps.len() != extent.count as usize {
            return Err(Violation::of_answer(at, id, Wrong::DataOfAnother { stamps: stamps.len() }));
        }
        let mut violation = None;
        self.counters.slots_read += u64::from(extent.count);
        let drive = &mut self.drives[extent.drive as usize];
        for (number, &stamp) in slots(extent).zip(stamps) {
            let started = operation.issued.order;
            let was_read_before =
                drive.cache.as_ref().is_some_and(|cache| cache.was_read_before(number, started, stamp));
            let slot = drive.slot(number);
            slot.end_read(started);
            if was_read_before {
                continue;
            }
            match slot.read(stamp, operation.issued.order, at) {
                Verdict::Legal => {}
                Verdict::GivenUp => self.counters.slots_given_up += 1,
                Verdict::Illegal => {
                    violation.get_or_insert_with(|| bad_read(slot, &operation, id, number, stamp, at));
                }
            }
        }
        violation.map_or(Ok(()), Err)
    }

    /// The host gives an operation up: by an error, a time-out, or because the host itself lost power. A write may
    /// have happened, slot by slot, and may still happen until [`Self::settle`] says no.
    ///
    /// Errors: it is not under way.
    pub fn failed(&mut self, at: SimTime, id: OperationId) -> Result<(), Violation> {
        let at = self.tick(at);
        let operation = self.take(at, id)?;
        self.counters.failed += 1;
        if operation.action == Action::Read {
            let drive = &mut self.drives[operation.extent.drive as usize];
            slots(operation.extent).for_each(|slot| drive.slot(slot).end_read(operation.issued.order));
        } else {
            self.end(&operation, Progress::Open);
            self.open.push(operation);
        }
        Ok(())
    }

    /// Operations of `drive` that were given up have happened by now or never will: nothing of them is left on the
    /// way, as after a loss of power.
    pub fn settle(&mut self, at: SimTime, drive: u32) {
        let at = self.tick(at);
        let given_up = std::mem::take(&mut self.open);
        let (over, open): (Vec<_>, Vec<_>) = given_up.into_iter().partition(|other| other.extent.drive == drive);
        self.open = open;
        for operation in over {
            self.end(&operation, Progress::Over(at));
        }
    }

    /// The write cache of a drive is volatile from now on: [`Self::power_lost`] may take from it what was not flushed.
    pub fn make_volatile(&mut self, drive: u32) {
        self.drives[drive as usize].cache.get_or_insert_default();
    }

    /// The host issues a flush of a drive; returns what to hand to [`Self::flushed`] when it has completed.
    pub fn flush(&mut self, at: SimTime) -> Moment {
        self.tick(at)
    }

    /// A flush of `drive` has completed: what was acknowledged before it was `issued` is there after every power cut.
    pub fn flushed(&mut self, at: SimTime, drive: u32, issued: Moment) {
        self.tick(at);
        if let Some(cache) = &mut self.drives[drive as usize].cache {
            cache.flushed(issued.order);
        }
    }

    /// The power of `drive` fails. Where its write cache is volatile, each slot has now any one of the versions since
    /// the last one that was flushed. A write under way may have happened, and may happen again.
    pub fn power_lost(&mut self, at: SimTime, drive: u32) {
        let at = self.tick(at);
        self.drives[drive as usize].power_lost(at);
    }

    /// At the end of a run: every operation was answered or given up.
    ///
    /// Errors: one was not, the earliest of them.
    pub fn finish(&self, at: SimTime) -> Result<(), Violation> {
        let under_way = self.operations.iter().enumerate();
        let oldest = under_way
            .filter_map(|(index, operation)| operation.map(|operation| (index, operation)))
            .min_by_key(|(_, operation)| operation.issued.order);
        let Some((index, operation)) = oldest else { return Ok(()) };
        let now = Moment { order: self.now.order, time: at };
        let wrong = Wrong::Unanswered { noun: operation.action.noun(), issued: operation.issued };
        let mut violation = Violation::of_answer(now, OperationId(index as u32), wrong);
        violation.drive = Some(operation.extent.drive);
        violation.slot = Some(operation.extent.first);
        Err(violation)
    }

    /// Operations under way, in the order of their ids.
    pub fn under_way(&self) -> impl Iterator<Item = (OperationId, Action, Extent)> {
        let named = |(index, operation): (usize, &Option<Operation>)| {
            operation.map(|operation| (OperationId(index as u32), operation.action, operation.extent))
        };
        self.operations.iter().enumerate().filter_map(named)
    }

    /// Counts of the oracle's checks.
    pub fn counters(&self) -> OracleCounters {
        self.counters
    }

    /// Values kept for one slot: 1 when nothing is under way and nothing was given up.
    pub fn values_kept(&self, drive: u32, slot: u64) -> usize {
        let piece = self.drives[drive as usize].pieces.get((slot / PIECE_SLOTS) as usize);
        piece.and_then(Option::as_ref).map_or(1, |piece| piece[(slot % PIECE_SLOTS) as usize].kept())
    }

    #[inline]
    fn tick(&mut self, at: SimTime) -> Moment {
        assert!(at >= self.now.time, "time goes backwards");
        self.now = Moment { order: self.now.order + 1, time: at };
        self.now
    }

    /// Removes an operation that is being answered.
    #[inline]
    fn take(&mut self, at: Moment, id: OperationId) -> Result<Operation, Violation> {
        let place = self.operations.get_mut(id.0 as usize).and_then(Option::take);
        place.ok_or_else(|| Violation::of_answer(at, id, Wrong::NotUnderWay))
    }

    #[inline]
    fn end(&mut self, operation: &Operation, progress: Progress) {
        let drive = &mut self.drives[operation.extent.drive as usize];
        for slot in slots(operation.extent) {
            drive.slot(slot).end_write(operation.issued.order, progress);
            if let Some(cache) = &mut drive.cache {
                let stage = match progress {
                    Progress::UnderWay => Stage::UnderWay,
                    Progress::Open => Stage::Open,
                    Progress::Acknowledged(at) => Stage::Ended(at.order),
                    Progress::Over(at) => Stage::Over(at.order),
                };
                cache.end(slot, operation.issued.order, stage);
            }
        }
    }
}

impl Drive {
    #[inline]
    fn slot(&mut self, slot: u64) -> &mut Slot {
        let index = (slot / PIECE_SLOTS) as usize;
        if index >= self.pieces.len() {
            self.pieces.resize(index + 1, None);
        }
        let piece = self.pieces[index].get_or_insert_with(|| vec![Slot::new(); PIECE_SLOTS as usize].into());
        &mut piece[(slot % PIECE_SLOTS) as usize]
    }

    /// A write or trim is issued that a power cut may take.
    fn begin_version(&mut self, number: u64, id: OperationId, action: Action, issued: Moment) {
        let stamp = match action {
            Action::Read => return,
            Action::Write(stamp) => stamp,
            Action::Trim => 0,
        };
        let Some(mut cache) = self.cache.take() else { return };
        let version = Version { stamp, writer: Some(id), issued, stage: Stage::UnderWay };
        cache.begin(number, || self.slot(number).allowed(issued.order, issued), version);
        self.cache = Some(cache);
    }

    fn power_lost(&mut self, at: Moment) {
        let Some(mut cache) = self.cache.take() else { return };
        for (number, versions) in cache.take(at.order) {
            let slot = self.slot(number);
            let (stamps, has_reads) = (slot.stamps(&versions), slot.is_being_read());
            slot.power_lost(&versions, at);
            cache.settle(number, versions, stamps, has_reads);
        }
        self.cache = Some(cache);
    }
}

fn slots(extent: Extent) -> std::ops::Range<u64> {
    extent.first..extent.first + u64::from(extent.count)
}

/// The report of an impossible read.
#[cold]
fn bad_read(slot: &Slot, read: &Operation, id: OperationId, number: u64, stamp: u64, at: Moment) -> Violation {
    let start = read.issued.order;
    Violation {
        at,
        operation: id,
        drive: Some(read.extent.drive),
        slot: Some(number),
        wrong: Wrong::Stamp { issued: read.issued, returned: stamp, allowed: slot.allowed(start, at) },
        evidence: slot.values().map(Evidence::of).collect(),
    }
}
