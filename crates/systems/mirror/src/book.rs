//! Effects and counts of a mirror that serves, for its owner.

use crate::config::VOLUME;
use crate::marks::MirrorReading;
use crate::request::{Command, Purpose, Request};
use crate::side::Side;
use flashyard_blk::Operation;
use flashyard_kernel::Slab;
use flashyard_served::{Answer, Effect};
use flashyard_ssd::{Drive, Movement};
use flashyard_stats::LatencyHistogram;
use flashyard_units::{DriveId, SimSpan, SimTime};

/// Effects and counts that a world that serves keeps.
#[derive(Default)]
pub(crate) struct Book {
    pub(crate) effects: Vec<Effect>,
    /// Requests under way.
    pub(crate) in_flight: u32,
    /// Whether the volume was reported gone.
    gone: bool,
    /// By drive: it was pulled out, and not put back.
    pub(crate) pulled: [bool; 2],
    /// Of reads and writes completed since figures were last taken.
    pub(crate) latency: LatencyHistogram,
    /// The counters when figures were last taken.
    pub(crate) reading: Option<MirrorReading>,
    /// Room for one step's movements.
    movements: Vec<Movement>,
    /// Stamps that read commands under way have found: command, block, stamp.
    found: Vec<(u32, u32, u64)>,
    /// Stamps that reads have found, by token, if they are kept.
    pub(crate) reads: Option<Vec<(u32, Vec<u64>)>>,
}

impl Book {
    #[cold]
    pub(crate) fn note_stamps(&mut self, found: Vec<(u32, u32, u64)>) {
        if self.reads.is_some() {
            self.found.extend(found);
        }
    }

    /// A command is lost with what it has found.
    pub(crate) fn forget_stamps(&mut self, command: u32) {
        self.found.retain(|found| found.0 != command);
    }

    /// A command has completed for its request: keeps what it has found.
    pub(crate) fn keep_stamps(&mut self, command: u32, request: &Request) {
        let (Some(reads), Purpose::Asked { token }, Operation::Read) =
            (&mut self.reads, request.purpose, request.operation)
        else {
            return self.forget_stamps(command);
        };
        let mut stamps = vec![0; request.count as usize];
        for &(_, block, stamp) in self.found.iter().filter(|found| found.0 == command) {
            stamps[(block - request.first) as usize] = stamp;
        }
        reads.push((token, stamps));
        self.forget_stamps(command);
    }

    /// A request from outside has ended.
    pub(crate) fn answer(&mut self, now: SimTime, token: u32, operation: Operation, latency: SimSpan, answer: Answer) {
        self.in_flight -= 1;
        if matches!(operation, Operation::Read | Operation::Write) {
            self.latency.record(latency);
        }
        self.effects.push(Effect::Answered { token, at: now, answer });
    }

    /// Takes over what the drives tell of payload, under the tokens of requests.
    #[inline]
    pub(crate) fn gather(&mut self, drives: &mut [Drive; 2], requests: &Slab<Request>, commands: &Slab<Command>) {
        for drive in 0..2 {
            if !drives[drive].data.movements.is_empty() {
                self.gather_of(drive, drives, |tag| requests[commands[tag as usize].request as usize].purpose);
            }
        }
    }

    fn gather_of(&mut self, number: usize, drives: &mut [Drive; 2], purpose: impl Fn(u32) -> Purpose) {
        drives[number].data.movements.take(&mut self.movements);
        let drive = DriveId::new(number as u16);
        for mut movement in self.movements.drain(..) {
            if let Movement::Written { tag, .. } | Movement::Read { tag, .. } = &mut movement {
                match purpose(*tag) {
                    Purpose::Asked { token } => *tag = token,
                    Purpose::Stream { .. } => continue,
                    Purpose::Resync { .. } => {
                        let Movement::Written { logical, slot, before, .. } = movement else { continue };
                        let from = DriveId::new(1 - number as u16);
                        // The block is locked: it holds there what was read, wherever garbage collection has moved it.
                        let source = drives[1 - number].data.ftl.lookup(logical);
                        self.effects.push(Effect::Copied { from, source, drive, logical, slot, before });
                        continue;
                    }
                }
            }
            self.effects.push(Effect::Payload { drive, movement });
        }
    }

    /// Tells when the volume has no drive any more, and when it has one again.
    pub(crate) fn tell_presence(&mut self, sides: &[Side; 2]) {
        let gone = sides.iter().all(|side| !side.serves);
        let volume = VOLUME;
        if self.gone != gone {
            self.gone = gone;
            self.effects.push(if gone { Effect::Gone { volume } } else { Effect::Back { volume } });
        }
    }
}
