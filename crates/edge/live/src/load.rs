//! Load from inside the program that knows what it wrote: random reads, writes and trims, every byte compared.

use crate::channel::{Client, ClientError};
use crate::front::{Payload, Request};
use flashyard_blk::Operation;
use flashyard_flash::SLOT_BYTES;
use flashyard_kernel::Rng;
use flashyard_systems::jbof::Answer;
use std::collections::BTreeMap;
use std::time::Duration;

/// What a client asks for.
#[derive(Clone, Debug)]
pub struct Load {
    /// The drives that it uses, each with as many slots as are touched.
    pub drives: Vec<(u16, u32)>,
    /// Requests.
    pub requests: u64,
    /// Requests under way at most.
    pub depth: usize,
    /// Slots of a request at most.
    pub slots_max: u32,
    /// Share of reads, 0 to 1; one in thirty of the others is a trim.
    pub reads: f64,
    /// Seed of the choices.
    pub seed: u64,
    /// How long an answer may take.
    pub patience: Duration,
}

/// What came of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LoadReport {
    /// Requests answered.
    pub answered: u64,
    /// Requests given up by the box.
    pub dropped: u64,
    /// Slots compared with what was written.
    pub compared: u64,
    /// What was found in place of what was written.
    pub wrong: Vec<String>,
}

/// The bytes of a slot in its `version`: words that name slot and version, so that a stray one is known.
pub fn stamped(drive: u16, slot: u32, version: u64) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(SLOT_BYTES as usize);
    fill(&mut bytes, drive, slot, version);
    bytes
}

fn fill(bytes: &mut Vec<u8>, drive: u16, slot: u32, version: u64) {
    if version == 0 {
        bytes.resize(bytes.len() + SLOT_BYTES as usize, 0);
        return;
    }
    let place = u64::from(drive) << 48 | u64::from(slot);
    for word in 0..u64::from(SLOT_BYTES) / 16 {
        bytes.extend_from_slice(&place.to_le_bytes());
        bytes.extend_from_slice(&(version << 8 | word & 0xFF).to_le_bytes());
    }
}

struct UnderWay {
    operation: Operation,
    drive: u16,
    first: u32,
    count: u32,
    version: u64,
}

/// What one client knows of its drives.
#[derive(Default)]
struct Known {
    /// The version of each slot that was ever changed; 0 is zeros.
    versions: BTreeMap<(u16, u32), u64>,
    under_way: BTreeMap<u64, UnderWay>,
}

impl Known {
    fn conflicts(&self, drive: u16, first: u32, count: u32) -> bool {
        self.under_way
            .values()
            .any(|other| other.drive == drive && first < other.first + other.count && other.first < first + count)
    }
}

/// Puts `load` on the box and compares all that it reads with what it wrote; no other client may change those slots.
/// The slots must hold zeros before. Ends after all its requests, when `stop` says so, or with the engine.
///
/// Errors: answers come too late.
pub fn run_load(client: &Client, load: &Load, stop: impl Fn() -> bool) -> Result<LoadReport, ClientError> {
    let mut rng = Rng::named(load.seed, "load");
    let mut report = LoadReport::default();
    let mut known = Known::default();
    let mut issued = 0;
    while report.answered + report.dropped < load.requests {
        while known.under_way.len() < load.depth && issued < load.requests {
            let (drive, slots) = load.drives[rng.below(load.drives.len() as u64) as usize];
            let count = 1 + rng.below(u64::from(load.slots_max.min(slots))) as u32;
            let first = rng.below(u64::from(slots - count + 1)) as u32;
            if known.conflicts(drive, first, count) {
                break;
            }
            let operation = match rng.unit() {
                share if share < load.reads => Operation::Read,
                _ if rng.below(30) == 0 => Operation::Trim,
                _ => Operation::Write,
            };
            issued += 1;
            let version = if operation == Operation::Write { issued } else { 0 };
            let payload = if operation == Operation::Write {
                let mut bytes = Vec::with_capacity(count as usize * SLOT_BYTES as usize);
                (first..first + count).for_each(|slot| fill(&mut bytes, drive, slot, version));
                Payload::Bytes(bytes)
            } else {
                Payload::None
            };
            known.under_way.insert(issued, UnderWay { operation, drive, first, count, version });
            match client.submit(Request { tag: issued, drive, operation, first, count, source: 0 }, payload) {
                // What was answered before counts.
                Err(ClientError::Ended) => return Ok(report),
                submitted => submitted?,
            }
        }
        if stop() {
            break;
        }
        let reply = match client.next(load.patience) {
            Err(ClientError::Ended) => break,
            reply => reply?,
        };
        let Some(asked) = known.under_way.remove(&reply.tag) else { continue };
        if reply.answer? != Answer::Done {
            report.dropped += 1;
            continue;
        }
        report.answered += 1;
        match asked.operation {
            Operation::Read => compare(&known, &asked, &reply.data, &mut report),
            _ => {
                for slot in asked.first..asked.first + asked.count {
                    known.versions.insert((asked.drive, slot), asked.version);
                }
            }
        }
    }
    Ok(report)
}

fn compare(known: &Known, asked: &UnderWay, data: &[u8], report: &mut LoadReport) {
    for (slot, found) in (asked.first..).zip(data.chunks(SLOT_BYTES as usize)) {
        let version = known.versions.get(&(asked.drive, slot)).copied().unwrap_or(0);
        report.compared += 1;
        if found != stamped(asked.drive, slot, version) {
            report.wrong.push(format!(
                "drive {} slot {slot}: version {version} was written, found words {:x?}",
                asked.drive,
                found.first_chunk::<16>()
            ));
        }
    }
}
