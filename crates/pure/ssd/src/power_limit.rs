//! The limit that a drive's power sets to its programs.
//!
//! A drive of 8 to 25 W cannot program all its dies at once, so firmware starts programs one after the other at the rate that
//! the power is enough for. Every program counts by its bytes: those of hosts, of garbage collection, of parity and of the map.
//! While both wait, programs of hosts and of collection take turns: hosts have always more to write, so that collection
//! would otherwise begin when the last erased superblock is full.
//! Source: \[X\] power states of NVMe drives limit their writes; equal steps, and the turns, are \[A\].

use flashyard_flash::{CommandKind, FlashCommand, Priority};
use flashyard_units::{ByteRate, SimTime};
use std::collections::VecDeque;

/// Starts programs at a rate.
pub(crate) struct PowerLimit {
    rate: ByteRate,
    /// When the next program may start.
    next: SimTime,
    /// Programs that wait, those of hosts and those of collection, each in order. While one does, an event is due at `next`.
    held: [VecDeque<FlashCommand>; 2],
    /// Of which ones the next program is, if there is one.
    turn: usize,
}

/// Of which ones a program is.
fn class(command: &FlashCommand) -> usize {
    usize::from(command.priority == Priority::Background)
}

impl PowerLimit {
    pub(crate) fn new(rate: ByteRate) -> Self {
        Self { rate, next: SimTime::ZERO, held: [VecDeque::new(), VecDeque::new()], turn: 0 }
    }

    /// Whether a command may go to its die now. A program that may not is held, and `due` is called with the time of the event
    /// that it needs if none is due yet.
    pub(crate) fn admits(&mut self, now: SimTime, command: &FlashCommand, due: impl FnOnce(SimTime)) -> bool {
        if command.kind != CommandKind::Program {
            return true;
        }
        let is_free = self.held() == 0;
        if is_free && self.next <= now {
            self.take(now, command);
            return true;
        }
        if is_free {
            due(self.next);
        }
        self.held[class(command)].push_back(*command);
        false
    }

    /// The event has come: the program that starts now. `due` is called with the time of the next event if one is needed.
    pub(crate) fn next(&mut self, now: SimTime, due: impl FnOnce(SimTime)) -> Option<FlashCommand> {
        let (first, second) = (self.turn, 1 - self.turn);
        let command = self.held[first].pop_front().or_else(|| self.held[second].pop_front())?;
        self.take(now, &command);
        if self.held() > 0 {
            due(self.next);
        }
        Some(command)
    }

    fn take(&mut self, now: SimTime, command: &FlashCommand) {
        self.turn = 1 - class(command);
        self.next = now + self.rate.span_of(u64::from(command.bus_bytes));
    }

    /// Programs that wait.
    pub(crate) fn held(&self) -> u32 {
        self.held.iter().map(VecDeque::len).sum::<usize>() as u32
    }

    /// Programs of garbage collection among them.
    pub(crate) fn held_of_collection(&self) -> u32 {
        self.held[1].len() as u32
    }

    /// The power fails: the programs that waited, those of hosts first, each in order. No event is due any more.
    pub(crate) fn reset(&mut self, now: SimTime) -> impl Iterator<Item = FlashCommand> + '_ {
        self.next = now;
        self.held.iter_mut().flat_map(|held| held.drain(..))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flashyard_flash::{Pages, Planes};
    use flashyard_units::SimSpan;
    use proptest::prelude::*;

    fn command(kind: CommandKind, priority: Priority, tag: u64) -> FlashCommand {
        FlashCommand {
            kind,
            die: 0,
            planes: Planes::together(1),
            pages: Pages::LSB,
            priority,
            erases: 0,
            reads: 0,
            bus_bytes: 16 * 1024,
            tag,
        }
    }

    proptest! {
        /// Programs of each class start in order, none earlier than the rate allows and one as soon as it does; the classes
        /// take turns; nothing else waits.
        #[test]
        fn programs_start_in_turns_at_the_rate(arrivals in proptest::collection::vec((0_u64..30, 0_u32..3), 1..100)) {
            let rate = ByteRate::from_mb(1000);
            let step = rate.span_of(16 * 1024);
            let mut limit = PowerLimit::new(rate);
            let (mut event, mut started) = (None, Vec::new());
            let mut list: Vec<(SimTime, FlashCommand)> = Vec::new();
            let mut at = SimTime::ZERO;
            for (tag, &(gap, kind)) in (0..).zip(&arrivals) {
                at += SimSpan::from_us(gap);
                let (kind, priority) = match kind {
                    0 => (CommandKind::Read, Priority::Foreground),
                    1 => (CommandKind::Program, Priority::Foreground),
                    _ => (CommandKind::Program, Priority::Background),
                };
                list.push((at, command(kind, priority, tag)));
            }
            let mut arriving = list.iter().peekable();
            loop {
                let comes = arriving.peek().map(|entry| entry.0);
                if event.is_some_and(|time| comes.is_none_or(|comes| time <= comes)) {
                    let now = event.take().expect("it was seen");
                    let next = limit.next(now, |time| event = Some(time)).expect("an event has a program");
                    started.push((now, next));
                } else if let Some((time, command)) = arriving.next() {
                    if limit.admits(*time, command, |time| event = Some(time)) {
                        started.push((*time, *command));
                    }
                } else {
                    break;
                }
            }
            prop_assert_eq!(started.len(), list.len());
            prop_assert_eq!(limit.held(), 0);
            let programs = |command: &&(SimTime, FlashCommand)| command.1.kind == CommandKind::Program;
            // All are alike, so that the times are those of one queue.
            let mut free = SimTime::ZERO;
            for (start, came) in started.iter().filter(programs).zip(list.iter().filter(programs)) {
                prop_assert_eq!(start.0, free.max(came.0));
                free = start.0 + step;
            }
            for of in [0, 1] {
                let tags = |all: &[(SimTime, FlashCommand)]| -> Vec<u64> {
                    all.iter().filter(programs).filter(|entry| class(&entry.1) == of).map(|entry| entry.1.tag).collect()
                };
                prop_assert_eq!(tags(&started), tags(&list));
            }
            let in_order: Vec<_> = started.iter().filter(programs).collect();
            for pair in in_order.windows(2).filter(|pair| class(&pair[0].1) == class(&pair[1].1)) {
                let other = |entry: &&&(SimTime, FlashCommand)| class(&entry.1) != class(&pair[1].1);
                let waited = |entry: &&(SimTime, FlashCommand)| {
                    list[entry.1.tag as usize].0 < pair[1].0 && entry.0 > pair[1].0
                };
                prop_assert_eq!(in_order.iter().copied().filter(|entry| other(&entry) && waited(entry)).count(), 0);
            }
            for (start, command) in started.iter().filter(|entry| entry.1.kind == CommandKind::Read) {
                prop_assert_eq!(*start, list[command.tag as usize].0);
            }
        }
    }
}
