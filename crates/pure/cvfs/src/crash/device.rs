//! A device that loses power.

use crate::device::{BLOCK_BYTES, Block, BlockDevice, DeviceError, check_range, zeros};
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
    fn event(&mut self) -> Result<(), DeviceError> {
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

    fn check_power(&self) -> Result<(), DeviceError> {
        if self.lost.is_some() { Err(DeviceError::PowerLost) } else { Ok(()) }
    }

    fn change(&mut self, change: Change) {
        apply(&mut self.now, &change);
        self.pending.push(change);
    }
}

impl BlockDevice for CrashDevice<'_> {
    fn blocks(&self) -> u32 {
        self.now.len() as u32
    }

    fn read(&mut self, first: u32, buffer: &mut [u8]) -> Result<(), DeviceError> {
        self.check_power()?;
        check_range(first, (buffer.len() / BLOCK_BYTES) as u64, self.blocks())?;
        for (to, from) in buffer.chunks_exact_mut(BLOCK_BYTES).zip(&self.now[first as usize..]) {
            match from {
                Some(bytes) => to.copy_from_slice(&bytes[..]),
                None => to.fill(JUNK),
            }
        }
        Ok(())
    }

    fn write(&mut self, first: u32, bytes: &[u8]) -> Result<(), DeviceError> {
        self.event()?;
        check_range(first, (bytes.len() / BLOCK_BYTES) as u64, self.blocks())?;
        for (index, from) in bytes.chunks_exact(BLOCK_BYTES).enumerate() {
            let mut block = zeros();
            block.copy_from_slice(from);
            self.change(Change::Write(first + index as u32, Rc::from(block)));
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<(), DeviceError> {
        self.event()?;
        for change in self.pending.drain(..) {
            apply(&mut self.durable, &change);
        }
        Ok(())
    }

    fn trim(&mut self, first: u32, count: u32) -> Result<(), DeviceError> {
        self.event()?;
        check_range(first, count.into(), self.blocks())?;
        self.trimmed += u64::from(count);
        (first..first + count).for_each(|block| self.change(Change::Trim(block)));
        Ok(())
    }

    fn can_remap(&self) -> bool {
        true
    }

    fn remap(&mut self, destination: u32, source: u32, count: u32) -> Result<(), DeviceError> {
        self.event()?;
        check_range(destination, count.into(), self.blocks())?;
        check_range(source, count.into(), self.blocks())?;
        self.remapped += u64::from(count);
        for index in 0..count {
            self.change(Change::Remap { destination: destination + index, source: source + index });
        }
        Ok(())
    }
}
