//! Load on a volume that knows what it wrote: random reads, writes and trims, every byte compared.

use flashyard_blk::{Completion, Operation, Payload, Volume, VolumeError, VolumeInfo, VolumeRequest};
use flashyard_flash::SLOT_BYTES;
use flashyard_kernel::Rng;
use flashyard_units::{SimSpan, SimTime, VolumeId};
use std::collections::BTreeMap;
use std::ops::Range;

/// Requests that a client makes.
#[derive(Clone, Debug)]
pub struct Load {
    /// Blocks that are touched, from the beginning of the volume on; all of a smaller one.
    pub blocks: u64,
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
    /// How long a completion may take.
    pub patience: SimSpan,
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

impl LoadReport {
    /// Adds the result of a load beside this one.
    pub fn add(&mut self, other: Self) {
        self.answered += other.answered;
        self.dropped += other.dropped;
        self.compared += other.compared;
        self.wrong.extend(other.wrong);
    }
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

fn payload_of(request: &VolumeRequest, version: u64) -> Payload {
    if request.operation != Operation::Write {
        return Payload::None;
    }
    let mut bytes = Vec::with_capacity(request.count as usize * SLOT_BYTES as usize);
    blocks_of(request).for_each(|block| fill(&mut bytes, request.volume, block, version));
    Payload::Bytes(bytes)
}

fn blocks_of(request: &VolumeRequest) -> Range<u64> {
    request.first..request.first + u64::from(request.count)
}

/// State of the volume, as far as one client knows it.
#[derive(Default)]
struct Known {
    /// The version of each block that was ever changed; 0 is zeros.
    versions: BTreeMap<u64, u64>,
    /// By token: requests, and the version that they write.
    under_way: BTreeMap<u64, (VolumeRequest, u64)>,
}

impl Known {
    fn conflicts(&self, first: u64, count: u32) -> bool {
        let meets = |other: Range<u64>| first < other.end && other.start < first + u64::from(count);
        self.under_way.values().any(|(other, _)| meets(blocks_of(other)))
    }

    /// The next request; `None` where its range is under way already.
    fn choose(&self, load: &Load, info: &VolumeInfo, rng: &mut Rng) -> Option<VolumeRequest> {
        let blocks = load.blocks.min(info.limits.blocks);
        let most = u64::from(load.blocks_max.min(info.limits.request_blocks));
        let count = 1 + rng.below(most.min(blocks)) as u32;
        let first = rng.below(blocks - u64::from(count) + 1);
        if self.conflicts(first, count) {
            return None;
        }
        let operation = match rng.unit() {
            share if share < load.reads => Operation::Read,
            _ if rng.below(30) == 0 => Operation::Trim,
            _ => Operation::Write,
        };
        Some(VolumeRequest { volume: info.id, operation, first, count, source: 0 })
    }

    /// Counts a request that has ended, and compares what a read has found.
    ///
    /// Errors: the volume has refused it.
    fn take_in(&mut self, ended: Completion, volume: VolumeId, report: &mut LoadReport) -> Result<(), VolumeError> {
        let Some((asked, version)) = self.under_way.remove(&ended.token) else { return Ok(()) };
        match ended.result {
            Ok(()) => report.answered += 1,
            Err(error @ VolumeError::Refused(_)) => return Err(error),
            Err(_) => {
                report.dropped += 1;
                return Ok(());
            }
        }
        if asked.operation != Operation::Read {
            self.versions.extend(blocks_of(&asked).map(|block| (block, version)));
            return Ok(());
        }
        for (block, found) in blocks_of(&asked).zip(ended.bytes.chunks(SLOT_BYTES as usize)) {
            let version = self.versions.get(&block).copied().unwrap_or(0);
            report.compared += 1;
            if found != stamped(volume, block, version) {
                report.wrong.push(format!(
                    "volume {volume} block {block}: version {version} was written, found words {:x?}",
                    found.first_chunk::<16>()
                ));
            }
        }
        Ok(())
    }
}

/// Puts `load` on the volume and compares all that it reads with what it wrote; no other client may change those blocks.
/// The blocks must hold zeros before. Ends after all its requests, when `stop` says so, or with the volume.
///
/// Errors: completions come too late; the volume does not take the requests.
pub fn run_load(volume: &mut impl Volume, load: &Load, stop: impl Fn() -> bool) -> Result<LoadReport, VolumeError> {
    let info = volume.info();
    assert_eq!(info.block_bytes, SLOT_BYTES, "blocks are stamped whole");
    let mut rng = Rng::named(load.seed, "load");
    let mut report = LoadReport::default();
    let mut known = Known::default();
    let (mut now, mut ended, mut issued) = (SimTime::ZERO, Vec::new(), 0);
    while report.answered + report.dropped < load.requests {
        while known.under_way.len() < load.depth && issued < load.requests {
            let Some(request) = known.choose(load, &info, &mut rng) else { break };
            issued += 1;
            let version = if request.operation == Operation::Write { issued } else { 0 };
            let payload = payload_of(&request, version);
            known.under_way.insert(issued, (request, version));
            match volume.submit(now, issued, &request, payload) {
                // Earlier answers count.
                Err(VolumeError::Ended) => return Ok(report),
                submitted => submitted?,
            }
        }
        if stop() {
            break;
        }
        let deadline = now.saturating_add(load.patience);
        now = match volume.advance(deadline, &mut ended) {
            Err(VolumeError::Ended) => break,
            advanced => advanced?,
        };
        if ended.is_empty() && now >= deadline {
            return Err(VolumeError::Late(load.patience));
        }
        for completion in ended.drain(..) {
            known.take_in(completion, info.id, &mut report)?;
        }
    }
    Ok(report)
}
