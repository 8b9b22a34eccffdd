//! One slot: the values that reads may still return.
//!
//! A read of 0 does not tell which trim it saw. Where that matters, the slot goes on with every possible assignment (a
//! *reading* of its history), and is violated when none is left.

use super::cache::{Stage, Version};
use super::moment::Moment;
use super::operation::OperationId;
use super::value::{NEVER, Progress, Value};
use crate::short::Short;

/// Readings that a slot goes on with at most. Most need one; ten operations at once on one slot, half of them
/// trims, were seen to need more than 64, and eleven, seven of them trims or reads of trims, more than 512.
const READINGS_MAX: usize = 4096;

/// The live values of a slot under one assignment of reads of 0 to trims.
pub(super) type Reading = Short<Value>;

/// One register.
#[derive(Clone, Debug)]
pub(super) struct Slot {
    /// Never empty.
    readings: Short<Reading>,
    /// Orders at which the reads under way began, ascending.
    reads: Short<u64>,
    /// Too many readings: every read here is accepted.
    given_up: bool,
}

/// Verdict on a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It may return that.
    Legal,
    /// It may not.
    Illegal,
    /// Legal, but the slot has too many readings and is not checked from now on.
    GivenUp,
}

impl Slot {
    pub(super) fn new() -> Self {
        Self { readings: Short::of(Short::of(Value::NOTHING)), reads: Short::default(), given_up: false }
    }

    #[inline]
    pub(super) fn begin_read(&mut self, order: u64) {
        self.reads.push(order);
    }

    /// The read that began at `start` is over, whatever it returned.
    #[inline]
    pub(super) fn end_read(&mut self, start: u64) {
        self.reads.retain(|&other| other != start);
    }

    #[inline]
    pub(super) fn begin_write(&mut self, stamp: u64, writer: OperationId, at: Moment) {
        if self.given_up {
            return;
        }
        for reading in self.readings.iter_mut() {
            debug_assert!(stamp == 0 || reading.iter().all(|value| value.stamp != stamp), "stamp {stamp} is unique");
            reading.push(Value::issued(stamp, writer, at));
        }
    }

    /// Answers the write that was issued at `issued`.
    #[inline]
    pub(super) fn end_write(&mut self, issued: u64, progress: Progress) {
        let oldest_read = self.oldest_read();
        for reading in self.readings.iter_mut() {
            // A value that was seen and overwritten before its answer may be forgotten already.
            if let Some(value) = reading.iter_mut().find(|value| value.issued.order == issued) {
                match progress {
                    Progress::Acknowledged(at) => value.acknowledge(at),
                    other => value.progress = other,
                }
            }
            forget(reading, oldest_read);
        }
        self.merge();
    }

    /// Takes in that the read from `start` to `end`, which `end_read` has removed, returned `stamp`.
    #[inline]
    pub(super) fn read(&mut self, stamp: u64, start: u64, end: Moment) -> Verdict {
        if self.given_up {
            return Verdict::Legal;
        }
        let oldest_read = self.oldest_read();
        if self.readings.len() == 1 {
            let reading = self.readings.at_mut(0);
            let mut candidates = (0..reading.len()).filter(|&index| reading.at(index).stamp == stamp);
            match (candidates.next(), candidates.next()) {
                (None, _) => return Verdict::Illegal,
                (Some(index), None) => {
                    let Some(value) = with_read(reading, index, start, end) else { return Verdict::Illegal };
                    *reading.at_mut(index) = value;
                    forget(reading, oldest_read);
                    return Verdict::Legal;
                }
                _ => {}
            }
        }
        self.fork(stamp, start, end)
    }

    /// The slow way: every reading goes on with every value that the read can have seen.
    fn fork(&mut self, stamp: u64, start: u64, end: Moment) -> Verdict {
        let oldest_read = self.oldest_read();
        let mut next = Short::default();
        for reading in self.readings.iter() {
            for (index, value) in candidates(reading, stamp, start, end) {
                let mut with = reading.clone();
                *with.at_mut(index) = value;
                forget(&mut with, oldest_read);
                next.push(with);
            }
        }
        if next.len() == 0 {
            return Verdict::Illegal;
        }
        self.readings = next;
        self.merge();
        if self.readings.len() <= READINGS_MAX {
            return Verdict::Legal;
        }
        self.given_up = true;
        self.readings = Short::of(Short::of(Value::NOTHING));
        Verdict::GivenUp
    }

    /// Whether a read is under way.
    pub(super) fn is_being_read(&self) -> bool {
        self.reads.len() > 0
    }

    /// Stamps that a read under way may return, and those of `versions`.
    pub(super) fn stamps(&self, versions: &[Version]) -> Vec<u64> {
        let live = self.readings.iter().flat_map(|reading| reading.iter().map(|value| value.stamp));
        live.chain(versions.iter().map(|version| version.stamp)).collect()
    }

    /// The power has failed at `cut`: the slot holds any of the versions, one reading for each. Operations that are not
    /// over may happen in all of them, also the one whose version it is: it may have happened before, and be done again.
    pub(super) fn power_lost(&mut self, versions: &[Version], cut: Moment) {
        if self.given_up {
            return;
        }
        let floating = |version: &&Version| !version.stage.is_over();
        let mut readings = Short::default();
        let mut stamps: Vec<u64> = Vec::new();
        for version in versions {
            if stamps.contains(&version.stamp) {
                continue;
            }
            stamps.push(version.stamp);
            let mut reading = Short::of(Value::left(version.stamp, version.writer, cut.time));
            for other in versions.iter().filter(floating) {
                let writer = other.writer.expect("what is not over was issued");
                let mut value = Value::issued(other.stamp, writer, other.issued);
                if other.stage == Stage::Open {
                    value.progress = Progress::Open;
                }
                reading.push(value);
            }
            readings.push(reading);
        }
        self.readings = readings;
    }

    /// Stamps that a read from `start` to `end` may return, ascending.
    pub(super) fn allowed(&self, start: u64, end: Moment) -> Vec<u64> {
        let mut stamps: Vec<u64> = self
            .readings
            .iter()
            .flat_map(|reading| {
                let legal = move |&index: &usize| with_read(reading, index, start, end).is_some();
                (0..reading.len()).filter(legal).map(|index| reading.at(index).stamp)
            })
            .collect();
        stamps.sort_unstable();
        stamps.dedup();
        stamps
    }

    /// Live values under the first reading.
    pub(super) fn values(&self) -> impl Iterator<Item = &Value> {
        self.readings.at(0).iter()
    }

    /// Values kept in all readings.
    pub(super) fn kept(&self) -> usize {
        self.readings.iter().map(Short::len).sum()
    }

    #[inline]
    fn oldest_read(&self) -> u64 {
        self.reads.first().copied().unwrap_or(NEVER)
    }

    /// Drops readings that have become equal: they agree for ever.
    #[inline]
    fn merge(&mut self) {
        if self.readings.len() > 1 {
            let mut distinct: Vec<Reading> = Vec::with_capacity(self.readings.len());
            self.readings.retain(|reading| {
                let is_new = !distinct.contains(reading);
                if is_new {
                    distinct.push(reading.clone());
                }
                is_new
            });
        }
    }
}

/// The value at `index` with a read more, if the other values still agree with it.
#[inline]
pub(super) fn with_read(reading: &Reading, index: usize, start: u64, end: Moment) -> Option<Value> {
    let value = reading.at(index).seen_by(start, end);
    let agrees = |(other, with): (usize, &Value)| other == index || value.agrees_with(with);
    reading.iter().enumerate().all(agrees).then_some(value)
}

/// Values that a read can have seen, as (index, value with the read), without those that allow less than another.
fn candidates(reading: &Reading, stamp: u64, start: u64, end: Moment) -> Vec<(usize, Value)> {
    let mut found: Vec<(usize, Value)> = Vec::new();
    let mut floating_found = false;
    // Latest issue first: of floating values the earlier one leaves more freedom to the reads to come.
    for index in (0..reading.len()).rev() {
        let value = reading.at(index);
        let alike = value.is_floating() && value.issued.order < start;
        if value.stamp != stamp || (alike && floating_found) {
            continue;
        }
        let Some(with) = with_read(reading, index, start, end) else { continue };
        if with == *value {
            // The read costs no freedom at all.
            return vec![(index, with)];
        }
        floating_found |= alike;
        found.push((index, with));
    }
    found
}

/// Forgets values that no read can return any more, given the order at which the oldest read under way began.
///
/// A value is superseded when another was issued after all that is known of it, and happened before any read that is
/// not over began. An event that contradicts a forgotten value contradicts its successor as well.
#[inline]
fn forget(reading: &mut Reading, oldest_read: u64) {
    if reading.len() < 2 {
        return;
    }
    let current = reading.iter().filter(|value| value.first_end < oldest_read).map(|value| value.issued.order).max();
    if let Some(current) = current {
        reading.retain(|value| value.settled_by() >= current);
    }
}
