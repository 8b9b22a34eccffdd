//! The limit that a drive's power sets to its programs.
//!
//! A drive of 8 to 25 W cannot program all its dies at once, so firmware starts programs one after the other at the rate that
//! the power is enough for. Every program counts by its bytes: those of hosts, of garbage collection, of parity and of the map.
//! Source: \[X\] power states of NVMe drives limit their writes; that programs start in equal steps and in the order in which
//! they come is \[A\].

use flashyard_flash::{CommandKind, FlashCommand};
use flashyard_units::{ByteRate, SimTime};
use std::collections::VecDeque;

/// Starts programs at a rate.
pub(crate) struct PowerLimit {
    rate: ByteRate,
    /// When the next program may start.
    next: SimTime,
    /// Programs that wait, in order. While one does, an event is due at `next`.
    held: VecDeque<FlashCommand>,
}

impl PowerLimit {
    pub(crate) fn new(rate: ByteRate) -> Self {
        Self { rate, next: SimTime::ZERO, held: VecDeque::new() }
    }

    /// Whether a command may go to its die now. A program that may not is held, and `due` is called with the time of the event
    /// that it needs if none is due yet.
    pub(crate) fn admits(&mut self, now: SimTime, command: &FlashCommand, due: impl FnOnce(SimTime)) -> bool {
        if command.kind != CommandKind::Program {
            return true;
        }
        if self.held.is_empty() && self.next <= now {
            self.take(now, command);
            return true;
        }
        if self.held.is_empty() {
            due(self.next);
        }
        self.held.push_back(*command);
        false
    }

    /// The event has come: the program that starts now. `due` is called with the time of the next event if one is needed.
    pub(crate) fn next(&mut self, now: SimTime, due: impl FnOnce(SimTime)) -> Option<FlashCommand> {
        let command = self.held.pop_front()?;
        self.take(now, &command);
        if !self.held.is_empty() {
            due(self.next);
        }
        Some(command)
    }

    fn take(&mut self, now: SimTime, command: &FlashCommand) {
        self.next = now + self.rate.span_of(u64::from(command.bus_bytes));
    }

    /// Programs that wait.
    pub(crate) fn held(&self) -> u32 {
        self.held.len() as u32
    }

    /// The power fails: the programs that waited, in order. No event is due any more.
    pub(crate) fn reset(&mut self, now: SimTime) -> impl Iterator<Item = FlashCommand> + '_ {
        self.next = now;
        self.held.drain(..)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flashyard_flash::{Pages, Planes, Priority};
    use flashyard_units::SimSpan;
    use proptest::prelude::*;

    fn command(kind: CommandKind, bus_bytes: u32, tag: u64) -> FlashCommand {
        FlashCommand {
            kind,
            die: 0,
            planes: Planes::together(1),
            pages: Pages::LSB,
            priority: Priority::Foreground,
            erases: 0,
            reads: 0,
            bus_bytes,
            tag,
        }
    }

    proptest! {
        /// Programs start in order, no earlier than the rate allows and no later than they must; nothing else waits.
        #[test]
        fn programs_start_in_order_at_the_rate(
            arrivals in proptest::collection::vec((0_u64..200, 0_u32..2, 1_u32..40), 1..100),
        ) {
            let rate = ByteRate::from_mb(1000);
            let mut limit = PowerLimit::new(rate);
            let (mut now, mut event, mut started) = (SimTime::ZERO, None, Vec::new());
            let mut expected = SimTime::ZERO;
            let mut list: Vec<(SimTime, FlashCommand)> = Vec::new();
            let mut at = SimTime::ZERO;
            for (tag, &(gap, kind, kib)) in (0..).zip(&arrivals) {
                at += SimSpan::from_us(gap);
                let kind = if kind == 0 { CommandKind::Program } else { CommandKind::Read };
                list.push((at, command(kind, kib * 1024, tag)));
            }
            let mut arriving = list.iter().peekable();
            loop {
                let comes = arriving.peek().map(|entry| entry.0);
                let is_event = event.is_some_and(|time| comes.is_none_or(|comes| time <= comes));
                if is_event {
                    now = event.take().unwrap_or(now);
                    let next = limit.next(now, |time| event = Some(time)).expect("an event has a program");
                    started.push((now, next));
                } else if let Some((time, command)) = arriving.next() {
                    now = *time;
                    if limit.admits(now, command, |time| event = Some(time)) {
                        started.push((now, *command));
                    }
                } else {
                    break;
                }
            }
            prop_assert_eq!(started.len(), list.len());
            prop_assert_eq!(limit.held(), 0);
            let programs = |command: &&(SimTime, FlashCommand)| command.1.kind == CommandKind::Program;
            let came = list.iter().filter(programs);
            for ((start, command), (arrived, own)) in started.iter().filter(programs).zip(came) {
                prop_assert_eq!(command.tag, own.tag);
                prop_assert_eq!(*start, expected.max(*arrived));
                expected = *start + rate.span_of(u64::from(command.bus_bytes));
            }
            for (start, command) in started.iter().filter(|entry| entry.1.kind == CommandKind::Read) {
                prop_assert_eq!(*start, list[command.tag as usize].0);
            }
        }
    }
}
