//! The message queue of the data-end agent: a ring of 64-byte entries in the borrower's exposed memory, one for each
//! lender, filled by the lender's coherent stores.
//!
//! The producer's index is the lender's own; the consumer's is published now and then. Whether an entry is new stands
//! in the entry: its phase flag changes with every turn of the ring, so the consumer never reads the producer's index.
//! Memory is kept for the entries between the two indices only: turns through the whole ring would cost the simulator a
//! cache miss for each. A ring that was closed goes on with another generation: what a lender that was given up still
//! stores is not taken. Source: [P] sheet xbof §3.7; layout, generation and capacity [A].

use flashyard_units::DriveId;
use std::collections::VecDeque;

/// Entries of a ring: 256 KiB.
const ENTRIES: u32 = 4096;

/// Kind of work for the data-end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MessageKind {
    /// Move data between host and buffer.
    Dma,
    /// Read flash: the lender has translated.
    FlashRead,
    /// Look up and read: a translation page was not in memory, only the owner can load it.
    LookUpRead,
    /// Take data in, place it and point the map at it; the owner looks its translation pages up when `span` is zero.
    Program,
    /// Point the map at nothing; as for [`MessageKind::Program`].
    Deallocate,
}

impl MessageKind {
    const ALL: [Self; 5] = [Self::Dma, Self::FlashRead, Self::LookUpRead, Self::Program, Self::Deallocate];
}

/// One wrapped operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message {
    /// Kind of work.
    pub kind: MessageKind,
    /// The lender that asks.
    pub lender: DriveId,
    /// The command it belongs to.
    pub command: u32,
    /// Host memory of a DMA, named by the command that owns it.
    pub buffer: u32,
    /// First logical slot; for flash reads the first physical slot.
    pub first: u32,
    /// Slots that a flash operation spans; of a DMA, how many flash operations follow.
    pub span: u32,
    /// Slots of data; of the DMA of a read, those that need no flash.
    pub slots: u32,
    /// Where the lender waits for the operation: a line in its own exposed memory.
    pub completion: u32,
}

/// The words of a cache line that say something; the other eight are zero.
type Line = [u32; 8];

impl Message {
    /// From word 0: phase 1 bit, kind 7, lender 8, generation 16; then the other fields, a word each.
    fn pack(&self, phase: bool, generation: u16) -> Line {
        let head = u32::from(phase)
            | (self.kind as u32) << 1
            | u32::from(self.lender.get()) << 8
            | u32::from(generation) << 16;
        let mut line = [0; 8];
        line[..7].copy_from_slice(&[
            head,
            self.command,
            self.buffer,
            self.first,
            self.span,
            self.slots,
            self.completion,
        ]);
        line[7] = check(&line);
        line
    }

    fn unpack(line: &Line) -> Option<(Self, u16)> {
        let kind = *MessageKind::ALL.get((line[0] >> 1 & 0x7F) as usize)?;
        let message = Self {
            kind,
            lender: DriveId::new((line[0] >> 8 & 0xFF) as u16),
            command: line[1],
            buffer: line[2],
            first: line[3],
            span: line[4],
            slots: line[5],
            completion: line[6],
        };
        (line[7] == check(line)).then_some((message, (line[0] >> 16) as u16))
    }
}

/// The check word, by which the agent sees that nothing of the line is missing or from elsewhere.
fn check(line: &Line) -> u32 {
    line[..7].iter().fold(0x9E37_79B9, |sum, &word| (sum ^ word).wrapping_mul(0x85EB_CA6B).rotate_left(13))
}

/// Counters of a drive's rings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RingCounters {
    /// Entries taken.
    pub taken: u64,
    /// Entries of a generation that was closed.
    pub stale: u64,
    /// Stores that found the ring full.
    pub full: u64,
    /// Entries whose check failed.
    pub spoilt: u64,
}

/// The ring that one lender fills for one borrower.
#[derive(Default)]
pub struct MessageRing {
    /// Entries stored and not taken.
    lines: VecDeque<Line>,
    /// The lender's own index: entries stored so far.
    produced: u32,
    /// Entries taken so far.
    consumed: u32,
    /// `consumed` as the lender last read it.
    published: u32,
    generation: u16,
    counters: RingCounters,
}

impl MessageRing {
    /// Entries that it holds at most.
    pub const ENTRIES: u32 = ENTRIES;

    /// The generation that entries must carry to be taken.
    pub fn generation(&self) -> u16 {
        self.generation
    }

    /// Counters of the ring.
    pub fn counters(&self) -> &RingCounters {
        &self.counters
    }

    /// The commands of entries that are stored and not taken.
    pub fn commands(&self) -> impl Iterator<Item = u32> + '_ {
        self.lines.iter().map(|line| line[1])
    }

    /// Whether `count` entries can be stored. The lender reads the published index only when its copy says no.
    pub fn has_room(&mut self, count: u32) -> bool {
        let fits = |published: u32| self.produced.wrapping_sub(published) + count <= ENTRIES;
        if fits(self.published) {
            return true;
        }
        self.published = self.consumed;
        let room = fits(self.published);
        self.counters.full += u64::from(!room);
        room
    }

    /// Stores an entry for `generation`: what the lender knows of it. Panics when there is no room.
    #[inline]
    pub fn store(&mut self, message: &Message, generation: u16) {
        assert!(self.has_room(1), "the lender has asked for room");
        self.lines.push_back(message.pack(phase(self.produced), generation));
        self.produced = self.produced.wrapping_add(1);
    }

    /// Takes the next entry that is new; entries of other generations and spoilt ones are passed over and counted.
    #[inline]
    pub fn take(&mut self) -> Option<Message> {
        loop {
            let is_new = |line: &mut Line| (line[0] & 1 == 1) == phase(self.consumed);
            let line = self.lines.pop_front_if(is_new)?;
            self.consumed = self.consumed.wrapping_add(1);
            match Message::unpack(&line) {
                Some((message, generation)) if generation == self.generation => {
                    self.counters.taken += 1;
                    return Some(message);
                }
                Some(_) => self.counters.stale += 1,
                None => self.counters.spoilt += 1,
            }
        }
    }

    /// Takes the entries of the next whole command: its DMA operation, whose `span` says how many flash operations
    /// follow, and those into `flash`. A command that lost a part is passed over: the host will ask again.
    #[inline]
    pub fn take_command(&mut self, flash: &mut Vec<Message>) -> Option<Message> {
        flash.clear();
        let mut dma: Option<Message> = None;
        while let Some(entry) = self.take() {
            if entry.kind == MessageKind::Dma {
                if entry.span == 0 {
                    return Some(entry);
                }
                dma = Some(entry);
                flash.clear();
            } else if let Some(dma) = dma.filter(|dma| dma.command == entry.command) {
                flash.push(entry);
                if flash.len() == dma.span as usize {
                    return Some(dma);
                }
            }
        }
        None
    }

    /// Gives the lender up: nothing stored so far or later under the present generation will be taken.
    pub fn close(&mut self) {
        self.generation = self.generation.wrapping_add(1);
    }

    /// Flips bits of the next entry to be taken, as a fault would.
    #[cfg(test)]
    fn spoil(&mut self, word: usize, bits: u32) {
        self.lines[0][word] ^= bits;
    }
}

/// The phase flag of entry number `index`: 1 on the first turn of the ring, 0 on the second, and so on.
fn phase(index: u32) -> bool {
    (index / ENTRIES).is_multiple_of(2)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn message(number: u32) -> Message {
        let kind = MessageKind::ALL[number as usize % MessageKind::ALL.len()];
        Message {
            kind,
            lender: DriveId::new(u16::from(number as u8)),
            command: number,
            buffer: !number,
            first: 7,
            span: 2,
            slots: 1,
            completion: 9,
        }
    }

    proptest! {
        #[test]
        fn entries_come_out_in_order_over_many_turns(steps in prop::collection::vec((0_u32..3000, 0_u32..3000), 1..40)) {
            let mut ring = MessageRing::default();
            let (mut stored, mut taken) = (0, 0);
            for (stores, takes) in steps {
                for _ in 0..stores {
                    if ring.has_room(1) {
                        ring.store(&message(stored), 0);
                        stored += 1;
                    }
                }
                for _ in 0..takes {
                    let next = ring.take();
                    prop_assert_eq!(next, (taken < stored).then(|| message(taken)));
                    taken += u32::from(next.is_some());
                }
                prop_assert!(stored - taken <= ENTRIES);
            }
        }

        #[test]
        fn a_flipped_bit_is_never_taken_for_what_was_stored(word in 0_usize..8, bit in 0_u32..32) {
            let mut ring = MessageRing::default();
            ring.store(&message(3), 0);
            ring.store(&message(4), 0);
            ring.spoil(word, 1 << bit);
            prop_assert_ne!(ring.take(), Some(message(3)));
        }
    }

    #[test]
    fn a_ring_names_the_commands_that_it_holds_wherever_its_indices_are() {
        let mut ring = MessageRing::default();
        let store = |ring: &mut MessageRing, command| ring.store(&Message { command, ..message(0) }, 0);
        (1..4).for_each(|command| store(&mut ring, command));
        assert_eq!(ring.commands().collect::<Vec<_>>(), [1, 2, 3]);
        (0..2).for_each(|_| assert!(ring.take().is_some()));
        store(&mut ring, 4);
        assert_eq!(ring.commands().collect::<Vec<_>>(), [3, 4]);
    }

    #[test]
    fn commands_come_out_whole_or_not_at_all() {
        let mut ring = MessageRing::default();
        let entry = |kind, command, span| Message { kind, command, span, ..message(0) };
        let mut store = |entries: &[Message]| entries.iter().for_each(|entry| ring.store(entry, 0));
        // Everything at hand: no flash operation. Then two of them. Then a command that lost its middle.
        store(&[entry(MessageKind::Dma, 1, 0), entry(MessageKind::Dma, 2, 2)]);
        store(&[entry(MessageKind::FlashRead, 2, 1), entry(MessageKind::FlashRead, 2, 4)]);
        store(&[entry(MessageKind::Dma, 3, 2), entry(MessageKind::FlashRead, 3, 1)]);
        store(&[entry(MessageKind::Dma, 4, 1), entry(MessageKind::Program, 4, 0)]);
        let mut flash = Vec::new();
        let mut taken = || ring.take_command(&mut flash).map(|dma| (dma.command, flash.len()));
        assert_eq!([taken(), taken(), taken(), taken()], [Some((1, 0)), Some((2, 2)), Some((4, 1)), None]);
    }

    #[test]
    fn a_closed_ring_takes_nothing_of_the_lender_that_was_given_up() {
        let mut ring = MessageRing::default();
        let known_to_the_lender = ring.generation();
        ring.store(&message(1), known_to_the_lender);
        ring.close();
        ring.store(&message(2), known_to_the_lender);
        ring.store(&message(3), ring.generation());
        assert_eq!(ring.take(), Some(message(3)));
        assert_eq!(ring.counters().stale, 2);
    }
}
