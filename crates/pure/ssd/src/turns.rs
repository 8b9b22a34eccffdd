//! Turns of dies to work for garbage collection: one die of each stripe at a time, so that all other dies of it can be
//! read.
//!
//! A die keeps its turn until its commands have completed; then comes the next one with work, round and round. Commands
//! for others are held meanwhile, and so are more for this die as soon as another one waits: garbage collection cannot
//! stay at one die.
//!
//! Source: [A] sheet cvss §5, rotating garbage collection; the order of turns is [A].

use flashyard_flash::{CommandKind, FlashCommand};
use std::collections::VecDeque;

/// The turns of all stripes of dies.
pub(crate) struct Turns {
    members: u32,
    groups: Vec<Group>,
    held_programs: u32,
}

/// Dies whose rows make stripes together.
struct Group {
    /// Member at its turn; means nothing while nothing is in flight.
    holder: u32,
    in_flight: u32,
    /// By member.
    held: Vec<VecDeque<FlashCommand>>,
    held_count: u32,
}

impl Turns {
    pub(crate) fn new(members: u32, dies: u32) -> Self {
        let group =
            || Group { holder: 0, in_flight: 0, held: (0..members).map(|_| VecDeque::new()).collect(), held_count: 0 };
        Self { members, groups: (0..dies / members).map(|_| group()).collect(), held_programs: 0 }
    }

    /// Programs that wait for their turn.
    pub(crate) fn held_programs(&self) -> u32 {
        self.held_programs
    }

    /// Whether a command of garbage collection may go to its die now; it is held otherwise.
    pub(crate) fn admit(&mut self, command: &FlashCommand) -> bool {
        let (number, member) = self.place(command.die);
        let group = &mut self.groups[number];
        if group.in_flight == 0 || (group.holder == member && group.held_count == 0) {
            group.holder = member;
            group.in_flight += 1;
            return true;
        }
        group.held[member as usize].push_back(*command);
        group.held_count += 1;
        self.held_programs += u32::from(command.kind == CommandKind::Program);
        false
    }

    /// A command of garbage collection has completed. Commands that may go next are put into `next`; they count as
    /// admitted.
    pub(crate) fn ended(&mut self, die: u16, next: &mut Vec<FlashCommand>) {
        let (number, member) = self.place(die);
        let members = self.members;
        let group = &mut self.groups[number];
        group.in_flight -= 1;
        if group.in_flight > 0 || group.held_count == 0 {
            return;
        }
        let waiting = (1..=members).map(|step| (member + step) % members);
        let chosen = waiting.into_iter().find(|&member| !group.held[member as usize].is_empty());
        group.holder = chosen.expect("something is held");
        let before = next.len();
        next.extend(group.held[group.holder as usize].drain(..));
        group.in_flight = (next.len() - before) as u32;
        group.held_count -= group.in_flight;
        let programs = next[before..].iter().filter(|command| command.kind == CommandKind::Program).count();
        self.held_programs -= programs as u32;
    }

    /// Nothing is in flight any more, nothing is held: returns the commands that were held, die by die in order.
    pub(crate) fn reset(&mut self) -> Vec<FlashCommand> {
        self.held_programs = 0;
        let mut held = Vec::new();
        for group in &mut self.groups {
            group.in_flight = 0;
            group.held_count = 0;
            group.held.iter_mut().for_each(|queue| held.extend(queue.drain(..)));
        }
        held
    }

    fn place(&self, die: u16) -> (usize, u32) {
        (usize::from(die) / self.members as usize, u32::from(die) % self.members)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flashyard_flash::{Pages, Planes, Priority};
    use proptest::prelude::*;

    fn erase(die: u16, tag: u64) -> FlashCommand {
        FlashCommand {
            kind: CommandKind::Erase,
            die,
            planes: Planes::together(1),
            pages: Pages::LSB,
            priority: Priority::Background,
            erases: 0,
            reads: 0,
            bus_bytes: 0,
            tag,
        }
    }

    #[test]
    fn a_die_that_always_has_more_work_lets_the_next_one_have_its_turn() {
        let mut turns = Turns::new(4, 8);
        assert!(turns.admit(&erase(0, 0)) && turns.admit(&erase(0, 1)));
        assert!(!turns.admit(&erase(2, 2)) && !turns.admit(&erase(0, 3)));
        // Another stripe's dies have turns of their own.
        assert!(turns.admit(&erase(5, 4)));
        let mut next = Vec::new();
        turns.ended(0, &mut next);
        assert!(next.is_empty());
        turns.ended(0, &mut next);
        assert_eq!(next, [erase(2, 2)]);
    }

    proptest! {
        #[test]
        fn one_die_of_a_stripe_works_at_a_time_and_everything_gets_done(
            work in prop::collection::vec((0_u16..12, prop::bool::ANY), 1..200),
        ) {
            let mut turns = Turns::new(4, 12);
            let mut running: Vec<FlashCommand> = Vec::new();
            let (mut asked, mut done) = (0, 0);
            let mut end = |turns: &mut Turns, running: &mut Vec<FlashCommand>| {
                if running.is_empty() {
                    return false;
                }
                let ended = running.remove(0);
                turns.ended(ended.die, running);
                done += 1;
                true
            };
            for (tag, (die, ends)) in (0..).zip(work) {
                asked += 1;
                if turns.admit(&erase(die, tag)) {
                    running.push(erase(die, tag));
                }
                for one in &running {
                    let others = running.iter().filter(|other| other.die / 4 == one.die / 4);
                    prop_assert!(others.into_iter().all(|other| other.die == one.die));
                }
                if ends {
                    end(&mut turns, &mut running);
                }
            }
            while end(&mut turns, &mut running) {}
            prop_assert_eq!(asked, done);
            prop_assert!(turns.reset().is_empty());
        }
    }
}
