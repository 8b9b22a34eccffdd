//! How atomic writes begin: the records that a loss of power has left are brought home, and the log begins again.
//!
//! One step after the other, and each may be done again: a loss of power in between changes nothing. Records count from the anchor on, as
//! long as each lies where the one before it ends, is of the anchor's epoch, and has the checksums of its header and of its data. The
//! first that does not is where power was lost; a record behind it may be whole, and counts no more, since the next epoch has begun.

use super::record::{Anchor, Header, Kind};
use flashyard_service::{Failure, checksum};

/// The request to the leg that is next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wish {
    /// Blocks of the leg are read for [`Recovery::received`].
    Read {
        first: u64,
        count: u32,
    },
    /// Blocks that were read are written, or an anchor.
    Write {
        first: u64,
        count: u32,
    },
    Trim {
        first: u64,
        count: u32,
    },
    Flush,
}

/// A step of the recovery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Anchor(u8),
    Header,
    /// Data from this block of it on is read.
    Data(Header, u32),
    /// The data, or the trim, goes home.
    Home(Header),
    /// Everything that is home stays there.
    Settle,
    Begin,
    Keep,
    Ready,
}

/// A recovery under way.
#[derive(Clone, Debug)]
pub(crate) struct Recovery {
    step: Step,
    blocks: u64,
    ring: u64,
    block_bytes: usize,
    /// Blocks that were read last; the data of a record is gathered here.
    bytes: Vec<u8>,
    found: [Option<Anchor>; 2],
    is_broken: bool,
    /// The anchor that counts, and how far its records go.
    anchor: Anchor,
    position: u64,
    /// Records that were brought home.
    pub(crate) replayed: u64,
}

impl Recovery {
    /// One of a volume of `blocks`, with a ring of `ring` and two anchors behind it.
    pub(crate) fn new(blocks: u64, ring: u64, block_bytes: usize) -> Self {
        Self {
            step: Step::Anchor(0),
            blocks,
            ring,
            block_bytes,
            bytes: Vec::new(),
            found: [None; 2],
            is_broken: false,
            anchor: Anchor { epoch: 0, tail: 0, generation: 0, blocks, log: ring },
            position: 0,
            replayed: 0,
        }
    }

    /// The anchor of the epoch that begins, once all is done.
    pub(crate) fn anchor(&self) -> Option<Anchor> {
        (self.step == Step::Ready).then_some(self.anchor)
    }

    /// Block of the leg at which an anchor of this generation lies.
    pub(crate) fn place(&self, generation: u64) -> u64 {
        self.blocks + self.ring + generation % 2
    }

    /// The request that is next; nothing once all is done.
    pub(crate) fn wish(&self) -> Option<Wish> {
        let at = self.position % self.ring;
        Some(match self.step {
            Step::Anchor(number) => Wish::Read { first: self.place(number.into()), count: 1 },
            Step::Header => Wish::Read { first: self.blocks + at, count: 1 },
            Step::Data(header, done) => {
                let at = (self.position + 1 + u64::from(done)) % self.ring;
                let count = u64::from(header.follows - done).min(self.ring - at) as u32;
                Wish::Read { first: self.blocks + at, count }
            }
            Step::Home(Header { kind: Kind::Trim, first, count, .. }) => Wish::Trim { first, count },
            Step::Home(Header { first, count, .. }) => Wish::Write { first, count },
            Step::Settle | Step::Keep => Wish::Flush,
            Step::Begin => Wish::Write { first: self.place(self.anchor.generation), count: 1 },
            Step::Ready => return None,
        })
    }

    /// The bytes that a write of now writes. What is missing of the last block is zeros.
    pub(crate) fn bytes(&self, out: &mut Vec<u8>) {
        match self.step {
            Step::Begin => out.extend_from_slice(&self.anchor.encode()),
            _ => out.extend_from_slice(&self.bytes),
        }
    }

    /// Takes what was read.
    pub(crate) fn received(&mut self, bytes: &[u8]) {
        if !matches!(self.step, Step::Data(_, 1..)) {
            self.bytes.clear();
        }
        self.bytes.extend_from_slice(bytes);
    }

    /// The wish was carried out.
    ///
    /// Errors: a log of another shape, or one that was damaged.
    pub(crate) fn done(&mut self) -> Result<(), Failure> {
        self.step = match self.step {
            Step::Anchor(number) => {
                self.found[usize::from(number)] = Anchor::decode(&self.bytes);
                self.is_broken |= self.found[usize::from(number)].is_none() && Anchor::is_meant(&self.bytes);
                if number == 0 { Step::Anchor(1) } else { self.choose()? }
            }
            Step::Header => self.next_of_header(),
            Step::Data(header, _) => {
                let done = (self.bytes.len() / self.block_bytes.max(1)) as u32;
                let is_short = self.bytes.is_empty();
                if !is_short && done < header.follows {
                    Step::Data(header, done)
                } else if !is_short && checksum(0, &self.bytes) == header.sum {
                    Step::Home(header)
                } else {
                    Step::Settle
                }
            }
            Step::Home(header) => self.behind(&header),
            Step::Settle => {
                self.anchor.epoch += 1;
                self.anchor.generation += 1;
                self.anchor.tail = self.position;
                Step::Begin
            }
            Step::Begin => Step::Keep,
            Step::Keep | Step::Ready => Step::Ready,
        };
        Ok(())
    }

    /// The newer of the anchors counts. There are none where the log has never begun.
    fn choose(&mut self) -> Result<Step, Failure> {
        let newest = self.found.iter().flatten().max_by_key(|anchor| anchor.generation);
        let Some(&anchor) = newest else {
            return if self.is_broken { Err(Failure::Failed) } else { Ok(Step::Settle) };
        };
        if (anchor.blocks, anchor.log) != (self.blocks, self.ring) {
            return Err(Failure::Failed);
        }
        self.anchor = anchor;
        self.position = anchor.tail;
        Ok(Step::Header)
    }

    /// A record, or the end of them.
    fn next_of_header(&mut self) -> Step {
        let Some(header) = Header::decode(&self.bytes) else { return Step::Settle };
        let Header { kind, epoch, position, first, count, follows, .. } = header;
        let is_next = epoch == self.anchor.epoch && position == self.position;
        let end = position.saturating_add(1 + u64::from(follows));
        let fits =
            end.saturating_sub(self.anchor.tail) <= self.ring && first.saturating_add(count.into()) <= self.blocks;
        if !is_next || !fits {
            return Step::Settle;
        }
        match kind {
            Kind::Write if follows == count && count > 0 => Step::Data(header, 0),
            Kind::Trim if follows == 0 => Step::Home(header),
            Kind::Void => self.behind(&header),
            Kind::Write | Kind::Trim => Step::Settle,
        }
    }

    fn behind(&mut self, header: &Header) -> Step {
        self.replayed += u64::from(header.kind != Kind::Void);
        self.position += 1 + u64::from(header.follows);
        Step::Header
    }
}
