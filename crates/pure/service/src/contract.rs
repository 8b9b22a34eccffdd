//! Any service against the contract of volumes: random requests over model volumes that complete in any order and fail, with an
//! oracle of what each read may return.
//!
//! The oracle knows the contract while power is on: a read returns a version that was not overwritten before the read began,
//! and versions that were read never go back. Losses of power are explored by `faults`, in worlds of their own.

use crate::over::Over;
use crate::service::Service;
use flashyard_blk::{
    Completion, Operation, Payload, RequestError, Volume, VolumeError, VolumeInfo, VolumeLimits, VolumeRequest,
    check as check_request,
};
use flashyard_kernel::Rng;
use flashyard_units::{SimSpan, SimTime, VolumeId};
use std::collections::BTreeMap;

/// Bytes of a block of the model: a version stamp in its first eight, and room for the records of a service.
pub const BLOCK_BYTES: u32 = 64;
/// Blocks of a request at most.
const REQUEST_BLOCKS: u32 = 8;

/// Faults of legs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Trouble {
    /// One order in so many fails and has no effect; none if 0.
    pub fails_one_in: u32,
    /// The leg that ends, and the request of the client before which it does.
    pub gone: Option<(u8, u32)>,
}

/// The shape of a contract test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plan {
    /// Seed of requests and times.
    pub seed: u64,
    /// Blocks of each leg.
    pub leg_blocks: u64,
    /// Blocks that clients ask for, from the first: few, so that requests meet.
    pub span_blocks: u64,
    /// Requests.
    pub requests: u32,
    /// Requests under way at most.
    pub depth: u32,
    /// Trouble of the legs.
    pub trouble: Trouble,
}

impl Plan {
    /// One of 400 requests at depth 8 to 24 blocks, without trouble.
    pub const fn new(seed: u64) -> Self {
        let trouble = Trouble { fails_one_in: 0, gone: None };
        Self { seed, leg_blocks: 4096, span_blocks: 24, requests: 400, depth: 8, trouble }
    }
}

/// Counts of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Requests that were carried out.
    pub carried_out: u32,
    /// Requests that failed.
    pub failed: u32,
    /// Blocks whose version was checked.
    pub blocks_checked: u64,
}

/// A breach of the contract.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Breach {
    /// A read returned a version that it must not.
    #[error("seed {seed}: request {request} read version {version} of block {block}")]
    Version {
        /// Seed of the run.
        seed: u64,
        /// Number of the request, from 0.
        request: u64,
        /// The block.
        block: u64,
        /// Number of the write that it returned, plus 1; 0 before the first.
        version: u64,
    },
    /// Requests under way have no completion to come.
    #[error("seed {seed}: {under_way} requests have no answer")]
    Stuck {
        /// Seed of the run.
        seed: u64,
        /// Requests without an answer.
        under_way: usize,
    },
    /// A request failed although no leg did.
    #[error("seed {seed}: request {request} failed, and no leg did")]
    Failed {
        /// Seed of the run.
        seed: u64,
        /// Number of the request, from 0.
        request: u64,
    },
}

/// Runs `service` through `plan` over model volumes.
///
/// Errors: the first breach of the contract. It prints its seed.
pub fn check<S: Service>(service: S, plan: Plan) -> Result<Summary, Breach> {
    let legs = (0..service.legs()).map(|leg| ModelVolume::new(leg, plan)).collect();
    Run {
        volume: Over::new(VolumeId::new(0), service, legs),
        plan,
        rng: Rng::named(plan.seed, "contract.requests"),
        under_way: BTreeMap::new(),
        blocks: vec![vec![Version::default()]; plan.span_blocks as usize],
        moment: 0,
        summary: Summary::default(),
    }
    .carry_out()
}

/// Runs services that `make` makes through plans of the seeds from 0, with legs in order, failing, and ending in turn.
///
/// # Panics
/// With the first breach of the contract.
pub fn check_seeds<S: Service>(seeds: u64, mut make: impl FnMut() -> S) {
    for seed in 0..seeds {
        let service = make();
        let legs = service.legs() as u64;
        let mut plan = Plan::new(seed);
        match seed % 3 {
            1 => plan.trouble.fails_one_in = 10,
            2 => plan.trouble.gone = Some(((seed / 3 % legs) as u8, 200)),
            _ => {}
        }
        if let Err(breach) = check(service, plan) {
            panic!("{breach} ({plan:?})");
        }
    }
}

/// A value that a block had or may have.
#[derive(Clone, Copy, Debug, Default)]
struct Version {
    /// Its number; `None` for a trim, after which a block reads as anything.
    number: Option<u64>,
    began: u64,
    /// When its write ended; under way without.
    ended: Option<u64>,
    /// When the version was surely there: the end of its write, or of a read that returned it, if earlier.
    seen: Option<u64>,
}

#[derive(Debug)]
struct Run<S> {
    volume: Over<S, ModelVolume>,
    plan: Plan,
    rng: Rng,
    /// By token: the request, and when it began.
    under_way: BTreeMap<u64, (VolumeRequest, u64)>,
    blocks: Vec<Vec<Version>>,
    /// Counts submissions and completions.
    moment: u64,
    summary: Summary,
}

impl<S: Service> Run<S> {
    fn carry_out(mut self) -> Result<Summary, Breach> {
        let mut now = SimTime::from_ps(0);
        for blocks in &mut self.blocks {
            blocks[0] = Version { number: Some(0), began: 0, ended: Some(0), seen: Some(0) };
        }
        for token in 0..u64::from(self.plan.requests) {
            if let Some((leg, _)) = self.plan.trouble.gone.filter(|&(_, at)| u64::from(at) == token) {
                self.volume.legs_mut()[usize::from(leg)].is_gone = true;
            }
            while self.under_way.len() >= self.plan.depth as usize {
                now = self.step(now)?;
            }
            self.submit(now, token);
        }
        while !self.under_way.is_empty() {
            now = self.step(now)?;
        }
        Ok(self.summary)
    }

    fn submit(&mut self, now: SimTime, token: u64) {
        let first = self.rng.below(self.plan.span_blocks);
        let longest = (self.plan.span_blocks - first).min(REQUEST_BLOCKS.into());
        let count = 1 + self.rng.below(longest) as u32;
        let operation = match self.rng.below(100) {
            0..45 => Operation::Read,
            45..90 => Operation::Write,
            90..95 => Operation::Trim,
            _ => Operation::Flush,
        };
        let request = VolumeRequest { volume: VolumeId::new(0), operation, first, count, source: 0 };
        let stamp = token + 1;
        let payload = match operation {
            Operation::Write => Payload::Bytes(block_of(stamp).repeat(count as usize)),
            _ => Payload::None,
        };
        self.moment += 1;
        if matches!(operation, Operation::Write | Operation::Trim) {
            let number = (operation == Operation::Write).then_some(stamp);
            let version = Version { number, began: self.moment, ended: None, seen: None };
            for versions in &mut self.blocks[first as usize..][..count as usize] {
                versions.push(version);
            }
        }
        self.under_way.insert(token, (request, self.moment));
        let durable = self.rng.below(4) == 0;
        self.volume.submit_with(now, token, &request, payload, durable).expect("the request lies within the volume");
    }

    fn step(&mut self, now: SimTime) -> Result<SimTime, Breach> {
        let stuck = Breach::Stuck { seed: self.plan.seed, under_way: self.under_way.len() };
        let mut ended = Vec::new();
        // A service that waits for its timer has an hour.
        let until = now.saturating_add(SimSpan::from_secs(3600));
        let now = self.volume.advance(until, &mut ended).map_err(|_| stuck)?;
        if ended.is_empty() {
            return Err(stuck);
        }
        for completion in ended {
            self.complete(&completion)?;
        }
        Ok(now)
    }

    fn complete(&mut self, completion: &Completion) -> Result<(), Breach> {
        let seed = self.plan.seed;
        let token = completion.token;
        let stuck = Breach::Stuck { seed, under_way: self.under_way.len() };
        let (request, began) = self.under_way.remove(&token).ok_or(stuck)?;
        self.moment += 1;
        if completion.result.is_ok() {
            self.summary.carried_out += 1;
        } else {
            self.summary.failed += 1;
            if self.plan.trouble == Trouble::default() {
                return Err(Breach::Failed { seed, request: token });
            }
        }
        match request.operation {
            Operation::Read if completion.result.is_ok() => self.check_read(&request, token, began, &completion.bytes),
            Operation::Write | Operation::Trim => {
                for versions in &mut self.blocks[request.first as usize..][..request.count as usize] {
                    let own = versions.iter_mut().find(|version| version.began == began);
                    let own = own.expect("a version under way is kept");
                    own.ended = Some(self.moment);
                    if completion.result.is_ok() {
                        own.seen = own.seen.or(Some(self.moment));
                    }
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn check_read(&mut self, request: &VolumeRequest, token: u64, began: u64, bytes: &[u8]) -> Result<(), Breach> {
        let (blocks, _) = bytes.as_chunks::<{ BLOCK_BYTES as usize }>();
        for block in request.first..request.first + u64::from(request.count) {
            let at = (block - request.first) as usize;
            let version = blocks.get(at).map_or(u64::MAX, stamp_of);
            self.summary.blocks_checked += 1;
            let versions = &mut self.blocks[block as usize];
            // Overwritten before the read began, by a version that was surely there.
            let overwritten = |old: &Version| {
                let ended = old.ended.unwrap_or(u64::MAX);
                versions.iter().any(|new| new.began > ended && new.seen.is_some_and(|seen| seen < began))
            };
            let allowed: Vec<usize> = (0..versions.len()).filter(|&index| !overwritten(&versions[index])).collect();
            let found = allowed.iter().find(|&&index| versions[index].number == Some(version)).copied();
            let anything = allowed.iter().any(|&index| versions[index].number.is_none());
            match found {
                Some(index) if !anything => {
                    let moment = self.moment;
                    versions[index].seen.get_or_insert(moment);
                }
                None if !anything => {
                    return Err(Breach::Version { seed: self.plan.seed, request: token, block, version });
                }
                _ => {}
            }
        }
        Ok(())
    }
}

/// A block with a version stamp.
pub fn block_of(stamp: u64) -> [u8; BLOCK_BYTES as usize] {
    let mut block = [0; BLOCK_BYTES as usize];
    block[..8].copy_from_slice(&stamp.to_le_bytes());
    block
}

/// The version stamp of a block.
pub fn stamp_of(block: &[u8; BLOCK_BYTES as usize]) -> u64 {
    block.first_chunk().map_or(u64::MAX, |stamp| u64::from_le_bytes(*stamp))
}

/// A volume of blocks with version stamps whose requests take effect as they end, after random times.
#[derive(Clone, Debug)]
pub struct ModelVolume {
    info: VolumeInfo,
    blocks: BTreeMap<u64, [u8; BLOCK_BYTES as usize]>,
    rng: Rng,
    fails_one_in: u32,
    /// Whether it has ended.
    is_gone: bool,
    under_way: BTreeMap<(SimTime, u64), (VolumeRequest, Payload)>,
}

impl ModelVolume {
    /// Leg `leg` of a run of `plan`, all of whose blocks hold zeros.
    pub fn new(leg: usize, plan: Plan) -> Self {
        let limits = VolumeLimits::new(plan.leg_blocks, false);
        Self {
            info: VolumeInfo { id: VolumeId::new(leg as u16), block_bytes: BLOCK_BYTES, limits, protected: leg == 0 },
            blocks: BTreeMap::new(),
            rng: Rng::named(plan.seed ^ (leg as u64) << 56, "contract.leg"),
            fails_one_in: plan.trouble.fails_one_in,
            is_gone: false,
            under_way: BTreeMap::new(),
        }
    }

    /// Answers no further request.
    pub fn end_now(&mut self) {
        self.is_gone = true;
    }

    fn end(&mut self, token: u64, request: &VolumeRequest, payload: &Payload) -> Completion {
        if self.fails_one_in > 0 && self.rng.below(self.fails_one_in.into()) == 0 {
            return Completion { token, result: Err(VolumeError::Dropped), bytes: Vec::new() };
        }
        let blocks = request.first..request.first + u64::from(request.count);
        let mut bytes = Vec::new();
        match (request.operation, payload) {
            (Operation::Read, _) => {
                let none = block_of(0);
                blocks.for_each(|block| bytes.extend(self.blocks.get(&block).unwrap_or(&none)));
            }
            (Operation::Write, Payload::Bytes(payload)) => {
                let (written, _) = payload.as_chunks::<{ BLOCK_BYTES as usize }>();
                self.blocks.extend(blocks.zip(written.iter().copied()));
            }
            (Operation::Write | Operation::Trim, _) => self.blocks.retain(|block, _| !blocks.contains(block)),
            _ => {}
        }
        Completion { token, result: Ok(()), bytes }
    }
}

impl Volume for ModelVolume {
    fn info(&self) -> VolumeInfo {
        self.info
    }

    fn submit(
        &mut self,
        now: SimTime,
        token: u64,
        request: &VolumeRequest,
        payload: Payload,
    ) -> Result<(), VolumeError> {
        if self.is_gone {
            return Err(VolumeError::Ended);
        }
        check_request(request, &self.info.limits)?;
        let fits: Result<(), RequestError> = payload.check(request, BLOCK_BYTES);
        fits?;
        let due = now.saturating_add(SimSpan::from_us(1 + self.rng.below(100)));
        self.under_way.insert((due, token), (*request, payload));
        Ok(())
    }

    fn advance(&mut self, until: SimTime, into: &mut Vec<Completion>) -> Result<SimTime, VolumeError> {
        if self.is_gone {
            self.under_way.clear();
            return Err(VolumeError::Ended);
        }
        while let Some((&(due, token), _)) = self.under_way.first_key_value()
            && due <= until
        {
            let (request, payload) = self.under_way.remove(&(due, token)).expect("it is the first");
            let completion = self.end(token, &request, &payload);
            into.push(completion);
        }
        Ok(until)
    }

    fn next_due(&self) -> Option<SimTime> {
        if self.is_gone { None } else { self.under_way.first_key_value().map(|(&(due, _), _)| due) }
    }
}
