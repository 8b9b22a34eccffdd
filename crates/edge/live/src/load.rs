//! Load from inside the program that knows what it wrote: random reads, writes and trims, every byte compared.

use crate::channel::{Client, ClientError};
use crate::front::Payload;
use flashyard_blk::{Operation, VolumeRequest};
use flashyard_flash::SLOT_BYTES;
use flashyard_kernel::Rng;
use flashyard_served::Answer;
use flashyard_units::VolumeId;
use std::collections::BTreeMap;
use std::time::Duration;

/// Requests that a client makes.
#[derive(Clone, Debug)]
pub struct Load {
    /// The volumes that it uses, each with as many blocks from its beginning on as are touched.
    pub volumes: Vec<(VolumeId, u64)>,
    /// Requests.
    pub requests: u64,
    /// Requests under way at most.
    pub depth: usize,
    /// Blocks of a request at most.
    pub blocks_max: u32,
    /// Share of reads, 0 to 1; one in thirty of the others is a trim.
    pub reads: f64,
    /// Seed of the choices.
    pub seed: u64,
    /// How long an answer may take.
    pub patience: Duration,
}

/// The result of a load.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LoadReport {
    /// Requests answered.
    pub answered: u64,
    /// Requests given up by the enclosure.
    pub dropped: u64,
    /// Blocks compared with what was written.
    pub compared: u64,
    /// Blocks that held something else than was written.
    pub wrong: Vec<String>,
}

/// The bytes of a block in its `version`: words that name block and version, so that a stray one is known.
pub fn stamped(volume: VolumeId, block: u64, version: u64) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(SLOT_BYTES as usize);
    fill(&mut bytes, volume, block, version);
    bytes
}

fn fill(bytes: &mut Vec<u8>, volume: VolumeId, block: u64, version: u64) {
    if version == 0 {
        bytes.resize(bytes.len() + SLOT_BYTES as usize, 0);
        return;
    }
    let place = u64::from(volume.get()) << 48 | block;
    for word in 0..u64::from(SLOT_BYTES) / 16 {
        bytes.extend_from_slice(&place.to_le_bytes());
        bytes.extend_from_slice(&(version << 8 | word & 0xFF).to_le_bytes());
    }
}

struct UnderWay {
    operation: Operation,
    volume: VolumeId,
    first: u64,
    count: u32,
    version: u64,
}

/// State of its drives, as far as one client knows it.
#[derive(Default)]
struct Known {
    /// The version of each block that was ever changed; 0 is zeros.
    versions: BTreeMap<(VolumeId, u64), u64>,
    under_way: BTreeMap<u64, UnderWay>,
}

impl Known {
    fn conflicts(&self, volume: VolumeId, first: u64, count: u32) -> bool {
        let meets =
            |other: &UnderWay| first < other.first + u64::from(other.count) && other.first < first + u64::from(count);
        self.under_way.values().any(|other| other.volume == volume && meets(other))
    }
}

/// Puts `load` on the enclosure and compares all that it reads with what it wrote; no other client may change those blocks.
/// The blocks must hold zeros before. Ends after all its requests, when `stop` says so, or with the engine.
///
/// Errors: answers come too late.
pub fn run_load(client: &Client, load: &Load, stop: impl Fn() -> bool) -> Result<LoadReport, ClientError> {
    let mut rng = Rng::named(load.seed, "load");
    let mut report = LoadReport::default();
    let mut known = Known::default();
    let mut issued = 0;
    while report.answered + report.dropped < load.requests {
        while known.under_way.len() < load.depth && issued < load.requests {
            let (volume, blocks) = load.volumes[rng.below(load.volumes.len() as u64) as usize];
            let count = 1 + rng.below(u64::from(load.blocks_max).min(blocks)) as u32;
            let first = rng.below(blocks - u64::from(count) + 1);
            if known.conflicts(volume, first, count) {
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
                (first..first + u64::from(count)).for_each(|block| fill(&mut bytes, volume, block, version));
                Payload::Bytes(bytes)
            } else {
                Payload::None
            };
            known.under_way.insert(issued, UnderWay { operation, volume, first, count, version });
            match client.submit(issued, VolumeRequest { volume, operation, first, count, source: 0 }, payload) {
                // Earlier answers count.
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
                for block in asked.first..asked.first + u64::from(asked.count) {
                    known.versions.insert((asked.volume, block), asked.version);
                }
            }
        }
    }
    Ok(report)
}

fn compare(known: &Known, asked: &UnderWay, data: &[u8], report: &mut LoadReport) {
    for (block, found) in (asked.first..).zip(data.chunks(SLOT_BYTES as usize)) {
        let version = known.versions.get(&(asked.volume, block)).copied().unwrap_or(0);
        report.compared += 1;
        if found != stamped(asked.volume, block, version) {
            report.wrong.push(format!(
                "volume {} block {block}: version {version} was written, found words {:x?}",
                asked.volume,
                found.first_chunk::<16>()
            ));
        }
    }
}
