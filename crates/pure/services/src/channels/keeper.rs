//! Keeps the map of virtual channels: finds it in its two places, makes the first one, and writes each one that follows durably.

use super::record::Record;
use super::shape::Shape;
use crate::patience::Patience;
use flashyard_service::Failure;
use flashyard_units::SimTime;

/// Something to do on the leg that keeps the record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Errand {
    /// A place is read.
    Find(u8),
    /// The record that was found is made durable: the server before this one may have ended while it was not.
    Settle,
    /// A place is written.
    Write(u8),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Find(u8),
    Settle,
    /// The record is written, the first one or the next one.
    Write,
    Ready,
}

/// The bytes of a place.
#[derive(Clone, Debug, Default)]
enum Found {
    /// Zeros, or a leg that keeps no bytes.
    #[default]
    Nothing,
    Record(Record),
    /// Bytes that are no record.
    Other,
}

/// The map, and its record.
#[derive(Clone, Debug)]
pub(super) struct Keeper {
    shape: Shape,
    step: Step,
    found: [Found; 2],
    /// The record as it is, or as it is being written.
    record: Record,
    /// The map that requests follow.
    places: Vec<u16>,
    patience: Patience,
    is_busy: bool,
}

impl Keeper {
    pub(super) fn new(shape: Shape) -> Self {
        let places: Vec<u16> = (0..shape.channels).collect();
        let (physical, blocks) = (shape.physical.into(), shape.blocks);
        Self {
            shape,
            step: Step::Find(0),
            found: [Found::Nothing, Found::Nothing],
            record: Record { epoch: 0, physical, blocks, places: places.clone() },
            places,
            patience: Patience::default(),
            is_busy: false,
        }
    }

    /// The physical channel of each virtual one.
    pub(super) fn places(&self) -> &[u16] {
        &self.places
    }

    pub(super) fn is_ready(&self) -> bool {
        self.step == Step::Ready
    }

    /// Why the map cannot be known.
    pub(super) fn broken(&self) -> Option<Failure> {
        self.patience.broken()
    }

    /// When an errand that has failed is tried again.
    pub(super) fn pause(&mut self, now: SimTime) -> Option<SimTime> {
        self.patience.pause(now)
    }

    /// The next errand, unless one is under way or has to wait.
    pub(super) fn wish(&mut self, now: SimTime) -> Option<Errand> {
        if self.is_busy || self.broken().is_some() || self.patience.pause(now).is_some() {
            return None;
        }
        let errand = match self.step {
            Step::Find(place) => Errand::Find(place),
            Step::Settle => Errand::Settle,
            // The newer record is never written over.
            Step::Write => Errand::Write((self.record.epoch % 2) as u8),
            Step::Ready => return None,
        };
        self.is_busy = true;
        Some(errand)
    }

    /// Appends the record that is being written.
    pub(super) fn encode(&self, to: &mut Vec<u8>) {
        self.record.encode(self.shape.record_blocks as usize * self.shape.block_bytes as usize, to);
    }

    /// A place has these bytes.
    pub(super) fn received(&mut self, place: u8, bytes: &[u8]) {
        self.found[usize::from(place)] = match Record::decode(bytes) {
            Some(record) => Found::Record(record),
            None if bytes.iter().all(|&byte| byte == 0) => Found::Nothing,
            None => Found::Other,
        };
    }

    /// A channel is elsewhere as soon as the record says so.
    pub(super) fn change(&mut self, channel: usize, place: u16) {
        self.record.epoch += 1;
        self.record.places[channel] = place;
        self.step = Step::Write;
    }

    /// An errand has ended; returns whether the map has changed with it.
    pub(super) fn ended(&mut self, now: SimTime, result: Result<(), Failure>) -> bool {
        self.is_busy = false;
        if result.is_err() {
            self.patience.ended(now, result);
            return false;
        }
        self.patience.succeeded();
        self.step = match self.step {
            Step::Find(0) => Step::Find(1),
            Step::Find(_) => self.choose(),
            Step::Settle | Step::Ready => Step::Ready,
            Step::Write => {
                self.places.clone_from(&self.record.places);
                self.step = Step::Ready;
                return true;
            }
        };
        false
    }

    /// The newer of two records counts. Where there is none, the first one is made, unless there is something else.
    fn choose(&mut self) -> Step {
        let Shape { physical, blocks, channels, .. } = self.shape;
        let fits = |record: &Record| record.fits(physical.into(), blocks, channels.into());
        let found = std::mem::take(&mut self.found);
        // The first record goes to the second place: while that is being written, the first place holds nothing.
        let is_new = matches!(found[0], Found::Nothing) && !matches!(found[1], Found::Record(_));
        let records =
            found.into_iter().filter_map(|found| if let Found::Record(record) = found { Some(record) } else { None });
        match records.max_by_key(|record| record.epoch) {
            Some(newest) if fits(&newest) => {
                self.places.clone_from(&newest.places);
                self.record = newest;
                Step::Settle
            }
            None if is_new => {
                self.record.epoch = 1;
                Step::Write
            }
            _ => {
                self.patience.break_down(Failure::Failed);
                Step::Find(0)
            }
        }
    }
}
