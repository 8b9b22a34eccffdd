//! Channel buses: one transfer at a time, read data before data to be programmed.

use crate::intrusive::{Fifo, NIL};
use crate::queued::Queued;
use flashyard_units::{SimSpan, SimTime};

/// The bus of one channel.
#[derive(Clone)]
pub(crate) struct Channel {
    /// Commands with sensed data, then commands that want data.
    pub(crate) outgoing: Fifo,
    pub(crate) incoming: Fifo,
    passed: u32,
    /// The command whose transfer is running.
    pub(crate) active: u32,
    pub(crate) busy: SimSpan,
    /// When the transfer in progress began.
    pub(crate) since: SimTime,
    /// Time of background transfers that have ended.
    pub(crate) background: SimSpan,
}

impl Channel {
    pub(crate) fn idle() -> Self {
        Self {
            outgoing: Fifo::default(),
            incoming: Fifo::default(),
            passed: 0,
            active: NIL,
            busy: SimSpan::ZERO,
            since: SimTime::ZERO,
            background: SimSpan::ZERO,
        }
    }

    /// The next command to have the bus: read data first, unless `starvation_bound` transfers of it have passed a waiting
    /// one already.
    #[inline]
    pub(crate) fn next(&mut self, slab: &mut [Queued], starvation_bound: u32) -> Option<u32> {
        let waiting = !self.incoming.is_empty();
        let mut next = None;
        if !(waiting && self.passed >= starvation_bound) {
            next = self.outgoing.pop(slab, |queued| &mut queued.next);
            self.passed += u32::from(waiting);
        }
        if next.is_none() {
            next = self.incoming.pop(slab, |queued| &mut queued.next);
            self.passed = 0;
        }
        next
    }

    /// Forgets all transfers. The commands are still those of their dies.
    pub(crate) fn forget(&mut self) {
        self.outgoing = Fifo::default();
        self.incoming = Fifo::default();
        self.passed = 0;
        self.active = NIL;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queued::FlashTime;
    use flashyard_flash::{CommandKind, FlashCommand, Pages, Planes, Priority};

    #[test]
    fn read_data_passes_a_waiting_program_as_often_as_it_may() {
        let queued = Queued {
            command: FlashCommand {
                kind: CommandKind::Read,
                die: 0,
                planes: Planes::together(1),
                pages: Pages::LSB,
                priority: Priority::Foreground,
                erases: 0,
                reads: 0,
                bus_bytes: 0,
                tag: 0,
            },
            next: NIL,
            waits_since: SimTime::ZERO,
            background_mark: SimSpan::ZERO,
            time: FlashTime::default(),
            uncorrected: false,
            passes_left: 0,
        };
        let mut slab = vec![queued; 10];
        let mut channel = Channel::idle();
        // While nothing else waits, no read passes anything.
        (0..7).for_each(|read| channel.outgoing.push(&mut slab, read, |queued| &mut queued.next));
        let mut order: Vec<u32> = (0..2).filter_map(|_| channel.next(&mut slab, 2)).collect();
        [8, 9].into_iter().for_each(|program| channel.incoming.push(&mut slab, program, |queued| &mut queued.next));
        order.extend(std::iter::from_fn(|| channel.next(&mut slab, 2)));
        assert_eq!(order, [0, 1, 2, 3, 8, 4, 5, 9, 6]);
    }
}
