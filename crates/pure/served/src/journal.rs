//! Journals of worlds that serve: what was asked and done, and when, so that a virtual-time run repeats it exactly.
//!
//! A journal is bytes: the magic word, then the seed, the hash and the text of the scenario, then what the drives held
//! if they were in use before, then records. A record is the number of events and the picoseconds since the record
//! before, a kind, and its fields, all as variable-length integers of seven bits a byte. Digests of all effects so far
//! stand between them, and at the end: a replay that differs is found out near the place where it begins to.
//!
//! What it does not hold: payload. It holds where payload goes.

use crate::codec::{hash_of_bytes, number, put_contents, take, take_contents};
use crate::{Answer, Control, Effect, Refused, Served};
use flashyard_blk::{Operation, VolumeRequest};
use flashyard_faults::Fingerprint;
use flashyard_ftl::SuperblockContents;
use flashyard_kernel::{Pace, Wake};
use flashyard_ssd::Movement;
use flashyard_units::{DriveId, SimSpan, SimTime, VolumeId};

const MAGIC: &[u8] = b"flashyard journal 1\n";

/// Records between digests.
const RECORDS_PER_DIGEST: u32 = 4096;

/// The beginning of a journal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JournalHeader {
    /// Seed of the run.
    pub seed: u64,
    /// The scenario with everything merged in, as text.
    pub scenario: String,
    /// Contents of the drives at the beginning, if they were in use before.
    pub contents: Option<Vec<Vec<SuperblockContents>>>,
}

/// One record.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Entry {
    /// A request was taken in.
    Submit {
        /// Its token.
        token: u32,
        /// The request itself.
        request: VolumeRequest,
    },
    /// Something was done to the world.
    Control(Control),
    /// The digest of all effects up to here.
    Digest(u64),
    /// The last record: the same, and the run was ended in order.
    End(u64),
}

/// A record and its place in the run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Record {
    /// Events handled before.
    pub steps: u64,
    /// The time at which it was taken in.
    pub at: SimTime,
    /// The entry itself.
    pub entry: Entry,
}

/// Why a journal cannot be read or repeated.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum JournalError {
    /// It begins with something else.
    #[error("this is no journal of this version: it does not begin with {:?}", String::from_utf8_lossy(MAGIC))]
    Magic,
    /// The scenario in it is not the one written.
    #[error("the scenario in the journal is damaged")]
    Scenario,
    /// The contents of the drives cannot be read.
    #[error("what the drives held at the beginning is damaged")]
    Contents,
    /// A record that cannot be.
    #[error("record {number} at byte {offset} makes no sense")]
    Record {
        /// Count of records, from 1.
        number: u64,
        /// Where it begins.
        offset: usize,
    },
    /// A record that the world does not take.
    #[error("record {number} was taken once and is refused now")]
    Refused {
        /// Count of records, from 1.
        number: u64,
        /// Why.
        #[source]
        refused: Refused,
    },
    /// A record for a moment that the run does not have.
    #[error("record {number} is for event {steps}, and there are no more than {events}")]
    NoEvent {
        /// Count of records, from 1.
        number: u64,
        /// Its place.
        steps: u64,
        /// Events that there are.
        events: u64,
    },
}

/// A digest of effects: two runs with the same one had the same effects, in the same order.
#[derive(Clone, Copy, Debug, Default)]
pub struct EffectDigest(Fingerprint);

impl EffectDigest {
    /// Takes in one effect, with everything that it says.
    pub fn add(&mut self, effect: &Effect) {
        let mut step = |kind: u64, numbers: [u64; 4]| {
            self.0.step(kind);
            numbers.into_iter().for_each(|number| self.0.step(number));
        };
        let pair = |high: u32, low: u32| u64::from(high) << 32 | u64::from(low);
        match *effect {
            Effect::Answered { token, at, answer } => {
                let (code, block) = match answer {
                    Answer::Dropped => (0, 0),
                    Answer::Done => (1, 0),
                    Answer::Failed => (2, 0),
                    Answer::Unread { block } => (3, block),
                };
                step(1, [token.into(), at.as_ps(), code, block]);
            }
            Effect::Copied { from, source, drive, logical, slot, before } => {
                let drives = pair(from.get().into(), drive.get().into());
                step(12, [drives, source.get().into(), logical.into(), pair(slot.get(), before.get())]);
            }
            Effect::Gone { volume } => step(2, [volume.get().into(), 0, 0, 0]),
            Effect::Back { volume } => step(3, [volume.get().into(), 0, 0, 0]),
            Effect::Payload { drive, movement } => {
                let drive = u64::from(drive.get());
                match movement {
                    Movement::Opened { superblock, stream, single_level } => {
                        step(4, [drive, superblock.into(), stream as u64, single_level.into()]);
                    }
                    Movement::Written { tag, place, logical, slot, before } => {
                        step(5, [drive, pair(tag, place), logical.into(), pair(slot.get(), before.get())]);
                    }
                    Movement::Moved { logical, from, to } => {
                        step(6, [drive, logical.into(), from.get().into(), to.get().into()]);
                    }
                    Movement::Lost { logical, slot } => step(11, [drive, logical.into(), slot.get().into(), 0]),
                    Movement::Trimmed { logical, before } => step(7, [drive, logical.into(), before.get().into(), 0]),
                    Movement::Remapped { logical, source, slot, before } => {
                        step(10, [drive, pair(logical, source), slot.get().into(), before.get().into()]);
                    }
                    Movement::Reverted { logical, before, slot } => {
                        step(13, [drive, logical.into(), before.get().into(), slot.get().into()]);
                    }
                    Movement::Erased { superblock } => step(8, [drive, superblock.into(), 0, 0]),
                    Movement::Read { tag, place, slot } => {
                        step(9, [drive, tag.into(), place.into(), slot.get().into()])
                    }
                }
            }
        }
    }

    /// The digest so far.
    pub fn get(self) -> u64 {
        self.0.get()
    }
}

/// A world that serves, with a digest of what it did and, if wanted, a journal.
pub struct Session<W: Served + ?Sized = dyn Served> {
    digest: EffectDigest,
    /// The part of the journal that was not taken yet.
    journal: Option<Vec<u8>>,
    last: (u64, SimTime),
    since_digest: u32,
    world: Box<W>,
}

impl<W: Served + ?Sized> Session<W> {
    /// A session that begins with `world`, which has not run; with a journal if there is a header for it.
    pub fn new(world: Box<W>, journal: Option<&JournalHeader>) -> Self {
        let journal = journal.map(encode_header);
        Self { digest: EffectDigest::default(), journal, last: (0, SimTime::ZERO), since_digest: 0, world }
    }

    /// The world, to look at.
    pub fn world(&self) -> &W {
        &self.world
    }

    /// The world, to take figures of: they change nothing of what it does.
    pub fn world_mut(&mut self) -> &mut W {
        &mut self.world
    }

    /// Handles what `pace` lets happen, at most `events_max` events; returns how many those were.
    pub fn run(&mut self, pace: &mut dyn Pace, events_max: u64) -> u64 {
        self.world.run(pace, events_max)
    }

    /// Lets time pass while requests are in progress, as [`Served::run_in_progress`].
    pub fn run_in_progress(&mut self, events_max: u64) -> u64 {
        self.world.run_in_progress(events_max)
    }

    /// Takes a request in, as [`Served::submit`].
    ///
    /// Errors: as there.
    pub fn submit(&mut self, now: SimTime, token: u32, request: &VolumeRequest) -> Result<(), Refused> {
        let steps = self.world.steps();
        self.world.submit(now, token, request)?;
        self.note(steps, now, Entry::Submit { token, request: *request });
        Ok(())
    }

    /// Does something to the world, as [`Served::control`].
    ///
    /// Errors: as there.
    pub fn control(&mut self, now: SimTime, control: Control) -> Result<(), Refused> {
        let steps = self.world.steps();
        self.world.control(now, control)?;
        self.note(steps, now, Entry::Control(control));
        Ok(())
    }

    /// Moves the effects since the last call to the end of `into`, in order.
    pub fn take_effects(&mut self, into: &mut Vec<Effect>) {
        let first = into.len();
        self.world.take_effects(into);
        into[first..].iter().for_each(|effect| self.digest.add(effect));
        if self.journal.is_some() && self.since_digest >= RECORDS_PER_DIGEST {
            self.since_digest = 0;
            self.note(self.world.steps(), self.world.now().max(self.last.1), Entry::Digest(self.digest.get()));
        }
    }

    /// The digest of all effects taken so far.
    pub fn digest(&self) -> u64 {
        self.digest.get()
    }

    /// Ends the journal. Effects must have been taken.
    pub fn end(&mut self) {
        self.note(self.world.steps(), self.world.now().max(self.last.1), Entry::End(self.digest.get()));
    }

    /// Bytes of the journal since the last call.
    pub fn take_journal(&mut self) -> Vec<u8> {
        self.journal.as_mut().map(std::mem::take).unwrap_or_default()
    }

    fn note(&mut self, steps: u64, at: SimTime, entry: Entry) {
        if let Some(journal) = &mut self.journal {
            number(journal, steps - self.last.0);
            number(journal, at.since(self.last.1).as_ps());
            encode_entry(journal, &entry);
            self.last = (steps, at);
            self.since_digest += 1;
        }
    }
}

/// Findings of a replay.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Replayed {
    /// Requests and controls repeated.
    pub records: u64,
    /// Effects seen.
    pub effects: u64,
    /// Events handled.
    pub events: u64,
    /// The last time.
    pub at: SimTime,
    /// The digest of all effects.
    pub digest: u64,
    /// The first record whose digest differs from that of the replay.
    pub differs_at: Option<u64>,
    /// Whether the journal ends in order.
    pub complete: bool,
}

/// Virtual time up to a moment.
struct Until(SimTime);

impl Pace for Until {
    #[inline]
    fn wait_until(&mut self, deadline: SimTime) -> Wake {
        if deadline <= self.0 { Wake::Due { late: SimSpan::ZERO } } else { Wake::Input { now: self.0 } }
    }
}

/// Repeats `records` in virtual time on a `world` that has not run. `seen` gets every effect.
///
/// Errors: a record that cannot be read, that is refused, or that lies beyond the run.
pub fn replay(
    world: &mut (impl Served + ?Sized),
    records: JournalRecords<'_>,
    mut seen: impl FnMut(&Effect),
) -> Result<Replayed, JournalError> {
    let mut digest = EffectDigest::default();
    let mut found = Replayed::default();
    let mut effects = Vec::new();
    for (number, record) in (1..).zip(records) {
        let Record { steps, at, entry } = record?;
        while world.steps() < steps {
            let batch = (steps - world.steps()).min(1 << 16);
            // A damaged number of events must not make it run for ever: none of them is later than the record.
            if world.run(&mut Until(at), batch) == 0 {
                return Err(JournalError::NoEvent { number, steps, events: world.steps() });
            }
            take_in(world, &mut effects, &mut digest, &mut found, &mut seen);
        }
        // A time that the run cannot have would end in a panic of the world.
        let in_order = world.now() <= at && world.next_due().is_none_or(|next| at <= next);
        let possible = in_order && at <= world.latest();
        match entry {
            Entry::Submit { .. } | Entry::Control(_) if !possible => {
                return Err(JournalError::NoEvent { number, steps, events: world.steps() });
            }
            Entry::Submit { token, request } => {
                world.submit(at, token, &request).map_err(|refused| JournalError::Refused { number, refused })?;
                found.records += 1;
            }
            Entry::Control(control) => {
                world.control(at, control).map_err(|refused| JournalError::Refused { number, refused })?;
                found.records += 1;
            }
            Entry::Digest(expected) | Entry::End(expected) => {
                if expected != digest.get() {
                    found.differs_at.get_or_insert(number);
                }
                found.complete = matches!(entry, Entry::End(_));
            }
        }
        take_in(world, &mut effects, &mut digest, &mut found, &mut seen);
        found.at = at;
    }
    found.events = world.steps();
    found.digest = digest.get();
    Ok(found)
}

fn take_in(
    world: &mut (impl Served + ?Sized),
    effects: &mut Vec<Effect>,
    digest: &mut EffectDigest,
    found: &mut Replayed,
    seen: &mut impl FnMut(&Effect),
) {
    world.take_effects(effects);
    for effect in effects.drain(..) {
        digest.add(&effect);
        found.effects += 1;
        seen(&effect);
    }
}

/// Records of a journal, in order.
pub struct JournalRecords<'a> {
    bytes: &'a [u8],
    offset: usize,
    number: u64,
    steps: u64,
    at: SimTime,
}

/// Reads the beginning of a journal; the records follow.
///
/// Errors: no journal; a damaged scenario.
pub fn read_journal(bytes: &[u8]) -> Result<(JournalHeader, JournalRecords<'_>), JournalError> {
    let mut rest = bytes.strip_prefix(MAGIC).ok_or(JournalError::Magic)?;
    let (Some(seed), Some(hash), Some(length)) = (take(&mut rest), take(&mut rest), take(&mut rest)) else {
        return Err(JournalError::Scenario);
    };
    let length = usize::try_from(length).map_err(|_| JournalError::Scenario)?;
    let (text, records) = rest.split_at_checked(length).ok_or(JournalError::Scenario)?;
    let scenario = String::from_utf8(text.to_vec()).map_err(|_| JournalError::Scenario)?;
    if hash_of_bytes(scenario.as_bytes()) != hash {
        return Err(JournalError::Scenario);
    }
    let (flag, mut records) = records.split_at_checked(1).ok_or(JournalError::Scenario)?;
    let contents = match flag {
        [0] => None,
        _ => Some(take_contents(&mut records).ok_or(JournalError::Contents)?),
    };
    let offset = bytes.len() - records.len();
    let records = JournalRecords { bytes, offset, number: 0, steps: 0, at: SimTime::ZERO };
    Ok((JournalHeader { seed, scenario, contents }, records))
}

impl Iterator for JournalRecords<'_> {
    type Item = Result<Record, JournalError>;

    /// The next record; a journal that was cut short in the middle of one ends before it.
    fn next(&mut self) -> Option<Self::Item> {
        let mut rest = self.bytes.get(self.offset..)?;
        if rest.is_empty() {
            return None;
        }
        self.number += 1;
        let wrong = JournalError::Record { number: self.number, offset: self.offset };
        let whole = rest;
        let parsed = (|| {
            let steps = self.steps.checked_add(take(&mut rest)?)?;
            let at = SimTime::from_ps(self.at.as_ps().checked_add(take(&mut rest)?)?);
            Some(Record { steps, at, entry: decode_entry(&mut rest)? })
        })();
        match parsed {
            Some(record) => {
                self.offset += whole.len() - rest.len();
                (self.steps, self.at) = (record.steps, record.at);
                Some(Ok(record))
            }
            None => {
                self.offset = self.bytes.len();
                // No record is longer than eight numbers of ten bytes: a short rest was cut off by whatever ended the
                // program, a longer one is damage.
                (whole.len() > 80).then_some(Err(wrong))
            }
        }
    }
}

fn encode_header(header: &JournalHeader) -> Vec<u8> {
    let mut bytes = MAGIC.to_vec();
    number(&mut bytes, header.seed);
    number(&mut bytes, hash_of_bytes(header.scenario.as_bytes()));
    number(&mut bytes, header.scenario.len() as u64);
    bytes.extend_from_slice(header.scenario.as_bytes());
    bytes.push(u8::from(header.contents.is_some()));
    if let Some(contents) = &header.contents {
        put_contents(&mut bytes, contents);
    }
    bytes
}

fn encode_entry(bytes: &mut Vec<u8>, entry: &Entry) {
    let mut put = |numbers: &[u64]| numbers.iter().for_each(|&value| number(bytes, value));
    match *entry {
        Entry::Submit { token, request } => {
            let VolumeRequest { volume, operation, first, source, count } = request;
            let kind = match operation {
                Operation::Read => 0,
                Operation::Write => 1,
                Operation::Trim => 2,
                Operation::Flush => 3,
                Operation::Remap => 6,
            };
            put(&[kind, token.into(), volume.get().into(), first, count.into()]);
            if operation == Operation::Remap {
                put(&[source]);
            }
        }
        Entry::Digest(digest) => put(&[4, digest]),
        Entry::End(digest) => put(&[5, digest]),
        Entry::Control(control) => match control {
            Control::Pull { drive } => put(&[8, drive.get().into()]),
            Control::Insert { drive } => put(&[9, drive.get().into()]),
            Control::PowerOff => put(&[10]),
            Control::PowerOn => put(&[11]),
            Control::Link { drive, up } => put(&[12, drive.get().into(), up.into()]),
            Control::Hang { drive, span } => put(&[13, drive.get().into(), span.as_ps()]),
            Control::Harvest { on } => put(&[14, on.into()]),
            Control::Age { drive, raw_bit_error_rate } => put(&[15, drive.get().into(), raw_bit_error_rate.to_bits()]),
            Control::Wear { drive, level } => put(&[17, drive.get().into(), level.to_bits()]),
            Control::Drop { token } => put(&[16, token.into()]),
            Control::Degrade { drive, on } => put(&[18, drive.get().into(), on.into()]),
            Control::Retire { drive, rate, retries } | Control::Reinstate { drive, rate, retries } => {
                let kind = if matches!(control, Control::Retire { .. }) { 19 } else { 20 };
                // One more than it is, so that nothing is zero.
                let retries = retries.map_or(0, |retries| u64::from(retries) + 1);
                put(&[kind, drive.get().into(), rate.is_some().into(), rate.unwrap_or(0.0).to_bits(), retries]);
            }
            Control::Retired { drive, superblock } => put(&[21, drive.get().into(), superblock.into()]),
        },
    }
}

fn decode_entry(bytes: &mut &[u8]) -> Option<Entry> {
    let kind = take(bytes)?;
    let mut next = || take(bytes);
    let drive = |value: u64| u16::try_from(value).ok().map(DriveId::new);
    let narrow = |value: u64| u32::try_from(value).ok();
    Some(match kind {
        0..=3 | 6 => {
            let operation = match kind {
                0 => Operation::Read,
                1 => Operation::Write,
                2 => Operation::Trim,
                3 => Operation::Flush,
                _ => Operation::Remap,
            };
            let (token, volume) = (narrow(next()?)?, VolumeId::new(u16::try_from(next()?).ok()?));
            let (first, count) = (next()?, narrow(next()?)?);
            let source = if operation == Operation::Remap { next()? } else { 0 };
            Entry::Submit { token, request: VolumeRequest { volume, operation, first, count, source } }
        }
        4 => Entry::Digest(next()?),
        5 => Entry::End(next()?),
        8 => Entry::Control(Control::Pull { drive: drive(next()?)? }),
        9 => Entry::Control(Control::Insert { drive: drive(next()?)? }),
        10 => Entry::Control(Control::PowerOff),
        11 => Entry::Control(Control::PowerOn),
        12 => Entry::Control(Control::Link { drive: drive(next()?)?, up: next()? != 0 }),
        13 => Entry::Control(Control::Hang { drive: drive(next()?)?, span: SimSpan::from_ps(next()?) }),
        14 => Entry::Control(Control::Harvest { on: next()? != 0 }),
        15 => Entry::Control(Control::Age { drive: drive(next()?)?, raw_bit_error_rate: f64::from_bits(next()?) }),
        17 => Entry::Control(Control::Wear { drive: drive(next()?)?, level: f64::from_bits(next()?) }),
        16 => Entry::Control(Control::Drop { token: narrow(next()?)? }),
        18 => Entry::Control(Control::Degrade { drive: drive(next()?)?, on: next()? != 0 }),
        19 | 20 => {
            let (drive, has_rate, rate) = (drive(next()?)?, next()? != 0, f64::from_bits(next()?));
            let retries = next()?.checked_sub(1).map(u32::try_from).transpose().ok()?;
            let rate = has_rate.then_some(rate);
            Entry::Control(match kind {
                19 => Control::Retire { drive, rate, retries },
                _ => Control::Reinstate { drive, rate, retries },
            })
        }
        21 => Entry::Control(Control::Retired { drive: drive(next()?)?, superblock: narrow(next()?)? }),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use flashyard_flash::Slot;

    /// Journals are files that outlive the program: their records are these bytes for ever.
    #[test]
    fn records_are_the_bytes_that_they_always_were() {
        let submit = |operation, source| Entry::Submit {
            token: 5,
            request: VolumeRequest { volume: VolumeId::new(1), operation, first: 300, count: 2, source },
        };
        let drive = DriveId::new(3);
        let rate = 0.5_f64.to_bits();
        let mut half = Vec::new();
        number(&mut half, rate);
        let with_rate = |head: &[u8], tail: &[u8]| [head, &half, tail].concat();
        let cases = [
            (submit(Operation::Read, 0), vec![0, 5, 1, 0xAC, 2, 2]),
            (submit(Operation::Write, 0), vec![1, 5, 1, 0xAC, 2, 2]),
            (submit(Operation::Trim, 0), vec![2, 5, 1, 0xAC, 2, 2]),
            (submit(Operation::Flush, 0), vec![3, 5, 1, 0xAC, 2, 2]),
            (Entry::Digest(130), vec![4, 0x82, 1]),
            (Entry::End(130), vec![5, 0x82, 1]),
            (submit(Operation::Remap, 9), vec![6, 5, 1, 0xAC, 2, 2, 9]),
            (Entry::Control(Control::Pull { drive }), vec![8, 3]),
            (Entry::Control(Control::Insert { drive }), vec![9, 3]),
            (Entry::Control(Control::PowerOff), vec![10]),
            (Entry::Control(Control::PowerOn), vec![11]),
            (Entry::Control(Control::Link { drive, up: true }), vec![12, 3, 1]),
            (Entry::Control(Control::Hang { drive, span: SimSpan::from_ps(200) }), vec![13, 3, 0xC8, 1]),
            (Entry::Control(Control::Harvest { on: false }), vec![14, 0]),
            (Entry::Control(Control::Age { drive, raw_bit_error_rate: 0.5 }), with_rate(&[15, 3], &[])),
            (Entry::Control(Control::Drop { token: 7 }), vec![16, 7]),
            (Entry::Control(Control::Wear { drive, level: 0.5 }), with_rate(&[17, 3], &[])),
            (Entry::Control(Control::Degrade { drive, on: true }), vec![18, 3, 1]),
            (
                Entry::Control(Control::Retire { drive, rate: Some(0.5), retries: Some(2) }),
                with_rate(&[19, 3, 1], &[3]),
            ),
            (Entry::Control(Control::Reinstate { drive, rate: None, retries: None }), vec![20, 3, 0, 0, 0]),
            (Entry::Control(Control::Retired { drive, superblock: 9 }), vec![21, 3, 9]),
        ];
        for (entry, expected) in cases {
            let mut bytes = Vec::new();
            encode_entry(&mut bytes, &entry);
            assert_eq!(bytes, expected, "{entry:?}");
            assert_eq!(decode_entry(&mut &bytes[..]), Some(entry));
            assert_eq!(decode_entry(&mut &bytes[..bytes.len() - 1]), None, "cut short");
        }
        assert_eq!((decode_entry(&mut &[7][..]), decode_entry(&mut &[22, 0, 0][..])), (None, None), "no such kinds");
    }

    /// A digest tells every effect from every other: by kind, by what it names, by order.
    #[test]
    fn digests_of_different_effects_differ() {
        let volume = VolumeId::new(2);
        let at = SimTime::from_ps(9);
        let answered = |answer| Effect::Answered { token: 1, at, answer };
        let effects = [
            answered(Answer::Done),
            answered(Answer::Failed),
            answered(Answer::Dropped),
            answered(Answer::Unread { block: 0 }),
            answered(Answer::Unread { block: 1 << 32 }),
            Effect::Gone { volume },
            Effect::Back { volume },
            Effect::Copied {
                from: DriveId::new(0),
                source: Slot::new(0),
                drive: DriveId::new(2),
                logical: 0,
                slot: Slot::new(0),
                before: Slot::NONE,
            },
            Effect::Payload { drive: DriveId::new(2), movement: Movement::Erased { superblock: 0 } },
            Effect::Payload { drive: DriveId::new(3), movement: Movement::Erased { superblock: 0 } },
        ];
        let digest = |effects: &[Effect]| {
            let mut digest = EffectDigest::default();
            effects.iter().for_each(|effect| digest.add(effect));
            digest.get()
        };
        let mut found: Vec<u64> = effects.iter().map(|effect| digest(&[*effect])).collect();
        found.extend([digest(&effects[..2]), digest(&[effects[1], effects[0]]), digest(&[])]);
        found.sort_unstable();
        found.dedup();
        assert_eq!(found.len(), effects.len() + 3);
    }
}
