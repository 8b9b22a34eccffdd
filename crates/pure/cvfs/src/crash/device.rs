//! A device that loses power.

use crate::device::{BLOCK_BYTES, Block, info_of, zeros};
use flashyard_blk::{Completion, Immediate, Operation, Payload, Volume, VolumeError, VolumeInfo, VolumeRequest, check};
use flashyard_faults::{Fault, Injector};
use flashyard_kernel::Rng;
use flashyard_units::{SimSpan, SimTime};
use std::rc::Rc;

/// Part of the commands since the last flush that is left when power is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loss {
    /// Nothing.
    All,
    /// Everything.
    None,
    /// Any blocks of any commands, in their order.
    Some,
    /// Like `Some`, and a write may have reached any of its sectors.
    Torn,
}

impl Loss {
    /// All of them, the simplest first.
    pub const ALL: [Self; 4] = [Self::All, Self::None, Self::Some, Self::Torn];

    /// The fault that stands for it in plans: the time without power encodes it.
    pub fn fault(self) -> Fault {
        Fault::PowerLoss { off_for: SimSpan::from_ms(1 + self as u64) }
    }

    fn of(fault: Fault) -> Option<Self> {
        Self::ALL.into_iter().find(|loss| loss.fault() == fault)
    }
}

/// Bytes that a torn write keeps together.
const SECTOR: usize = 512;
/// Byte that unmapped blocks read as: nothing may depend on zeros.
const JUNK: u8 = 0xdb;

type Cell = Option<Rc<Block>>;

#[derive(Clone, Debug)]
enum Change {
    Write(u32, Rc<Block>),
    Trim(u32),
    Remap { destination: u32, source: u32 },
}

/// A device in memory that loses power when a plan says so, and can be switched on again.
#[derive(Debug)]
pub struct CrashDevice<'a> {
    now: Vec<Cell>,
    durable: Vec<Cell>,
    pending: Vec<Change>,
    injector: Injector<'a>,
    lost: Option<Loss>,
    /// While it is watched, nothing happens to it and nothing is counted.
    watched: bool,
    rng: Rng,
    /// Blocks remapped so far.
    pub remapped: u64,
    /// Blocks trimmed so far.
    pub trimmed: u64,
    ended: Immediate,
}

fn apply(cells: &mut [Cell], change: &Change) {
    match change {
        Change::Write(block, bytes) => cells[*block as usize] = Some(bytes.clone()),
        Change::Trim(block) => cells[*block as usize] = None,
        Change::Remap { destination, source } => {
            if let Some(bytes) = cells[*source as usize].take() {
                cells[*destination as usize] = Some(bytes);
            }
        }
    }
}

impl<'a> CrashDevice<'a> {
    /// An empty device on which nothing happens until [`Self::watch`] is called with `false`.
    pub fn new(blocks: u32, injector: Injector<'a>, seed: u64) -> Self {
        Self {
            now: vec![None; blocks as usize],
            durable: vec![None; blocks as usize],
            pending: Vec::new(),
            injector,
            lost: None,
            watched: true,
            rng: Rng::named(seed, "cvfs.loss"),
            remapped: 0,
            trimmed: 0,
            ended: Immediate::default(),
        }
    }

    /// Whether nothing happens to it and nothing is counted.
    pub fn watch(&mut self, watched: bool) {
        self.watched = watched;
    }

    /// Events so far: commands that change something.
    pub fn events(&self) -> u64 {
        self.injector.events()
    }

    /// How it has lost power, if it has.
    pub fn lost(&self) -> Option<Loss> {
        self.lost
    }

    /// The plan's side of it.
    pub fn into_injector(self) -> Injector<'a> {
        self.injector
    }

    /// Power is back, with what the loss has left.
    pub fn switch_on(&mut self) {
        let Some(loss) = self.lost.take() else { return };
        let mut left = self.durable.clone();
        for change in std::mem::take(&mut self.pending) {
            let kept = match loss {
                Loss::All => false,
                Loss::None => true,
                Loss::Some | Loss::Torn => self.rng.below(2) == 0,
            };
            match (&change, loss) {
                (Change::Write(block, bytes), Loss::Torn) if self.rng.below(4) == 0 => {
                    let torn = self.tear(left[*block as usize].as_deref(), bytes);
                    left[*block as usize] = Some(Rc::new(torn));
                }
                _ if kept => apply(&mut left, &change),
                _ => {}
            }
        }
        self.durable.clone_from(&left);
        self.now = left;
    }

    fn tear(&mut self, before: Option<&Block>, after: &Block) -> Block {
        let mut torn = *before.unwrap_or(&[JUNK; BLOCK_BYTES]);
        for (to, from) in torn.chunks_exact_mut(SECTOR).zip(after.chunks_exact(SECTOR)) {
            if self.rng.below(2) == 0 {
                to.copy_from_slice(from);
            }
        }
        torn
    }

    /// An event is about to happen, unless power is lost before.
    fn event(&mut self) -> Result<(), VolumeError> {
        if self.lost.is_none() && !self.watched {
            // Commands take a microsecond each, for plans that name times.
            let time = SimTime::ZERO + SimSpan::from_us(self.injector.events());
            if let Some((fault, _)) = self.injector.due(time) {
                self.lost = Loss::of(fault);
            }
            if self.lost.is_none() {
                self.injector.handled();
            }
        }
        self.check_power()
    }

    fn check_power(&self) -> Result<(), VolumeError> {
        if self.lost.is_some() { Err(VolumeError::PowerLost) } else { Ok(()) }
    }

    fn change(&mut self, change: Change) {
        apply(&mut self.now, &change);
        self.pending.push(change);
    }
}

impl CrashDevice<'_> {
    fn carry_out(&mut self, request: &VolumeRequest, payload: Payload) -> Result<Vec<u8>, VolumeError> {
        let (first, count) = (request.first as u32, request.count);
        match (request.operation, payload) {
            (Operation::Read, _) => {
                self.check_power()?;
                let mut found = Vec::with_capacity(count as usize * BLOCK_BYTES);
                for cell in &self.now[first as usize..][..count as usize] {
                    found.extend_from_slice(cell.as_deref().unwrap_or(&[JUNK; BLOCK_BYTES]));
                }
                return Ok(found);
            }
            (Operation::Write, payload) => {
                self.event()?;
                let Payload::Bytes(mut bytes) = payload else {
                    (first..first + count).for_each(|block| self.change(Change::Write(block, Rc::from(zeros()))));
                    return Ok(Vec::new());
                };
                for (block, from) in (first..).zip(bytes.chunks_exact(BLOCK_BYTES)) {
                    let mut to = zeros();
                    to.copy_from_slice(from);
                    self.change(Change::Write(block, Rc::from(to)));
                }
                bytes.clear();
                return Ok(bytes);
            }
            (Operation::Flush, _) => {
                self.event()?;
                for change in self.pending.drain(..) {
                    apply(&mut self.durable, &change);
                }
            }
            (Operation::Trim, _) => {
                self.event()?;
                self.trimmed += u64::from(count);
                (first..first + count).for_each(|block| self.change(Change::Trim(block)));
            }
            (Operation::Remap, _) if self.info().limits.remaps => {
                self.event()?;
                self.remapped += u64::from(count);
                for (destination, source) in (first..first + count).zip(request.source as u32..) {
                    self.change(Change::Remap { destination, source });
                }
            }
            _ => return Err(request.unsupported().into()),
        }
        Ok(Vec::new())
    }
}

impl Volume for CrashDevice<'_> {
    fn info(&self) -> VolumeInfo {
        info_of(self.now.len(), true)
    }

    fn submit(
        &mut self,
        now: SimTime,
        token: u64,
        request: &VolumeRequest,
        payload: Payload,
    ) -> Result<(), VolumeError> {
        check(request, &self.info().limits)?;
        payload.check(request, BLOCK_BYTES as u32)?;
        let result = self.carry_out(request, payload);
        self.ended.complete(now, token, result);
        Ok(())
    }

    fn advance(&mut self, until: SimTime, into: &mut Vec<Completion>) -> Result<SimTime, VolumeError> {
        Ok(self.ended.advance(until, into))
    }
}
