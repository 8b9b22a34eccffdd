//! The oracle against a checker that tries every order of the operations.

use flashyard_faults::{Action, Event, Extent, History, OperationId};
use flashyard_units::SimTime;
use proptest::prelude::*;
use std::collections::BTreeSet;

/// One operation on the only slot, with the indices of the events between which it took effect.
#[derive(Clone, Copy, Debug)]
struct Interval {
    start: usize,
    end: usize,
    must_happen: bool,
    /// The value written or read.
    value: u64,
    reads: bool,
}

/// The operations of a history whose ids are given away once each.
fn intervals(history: &History) -> Vec<Interval> {
    let mut found: Vec<(OperationId, Interval)> = Vec::new();
    let mut open = Vec::new();
    for (index, (_, event)) in history.events.iter().enumerate() {
        let place = |id: &OperationId, found: &[(OperationId, Interval)]| {
            found.iter().position(|(other, _)| other == id).expect("it was issued")
        };
        match event {
            Event::Issue { id, action, .. } => {
                let (value, reads) = match action {
                    Action::Read => (0, true),
                    Action::Write(stamp) => (*stamp, false),
                    Action::Trim => (0, false),
                };
                let interval = Interval { start: index, end: usize::MAX, must_happen: false, value, reads };
                found.push((*id, interval));
            }
            Event::Acknowledged(id) => {
                let at = place(id, &found);
                found[at].1.end = index;
                found[at].1.must_happen = true;
            }
            Event::Returned(id, stamps) => {
                let at = place(id, &found);
                found[at].1.end = index;
                found[at].1.must_happen = true;
                found[at].1.value = stamps[0];
            }
            Event::Failed(id) => open.push(place(id, &found)),
            Event::Settle(_) => open.drain(..).for_each(|at| found[at].1.end = index),
        }
    }
    // A read without an answer restricts nothing.
    found.into_iter().map(|(_, interval)| interval).filter(|one| one.must_happen || !one.reads).collect()
}

/// Whether the operations have an order: tries all of them.
fn has_an_order(operations: &[Interval]) -> bool {
    let mut visited = BTreeSet::new();
    let mut waiting = vec![(0_u32, 0_u64)];
    while let Some((done, held)) = waiting.pop() {
        if !visited.insert((done, held)) {
            continue;
        }
        let is_done = |index: usize| done & 1 << index != 0;
        if operations.iter().enumerate().all(|(index, one)| is_done(index) || !one.must_happen) {
            return true;
        }
        for (index, next) in operations.iter().enumerate().filter(|(index, _)| !is_done(*index)) {
            let in_time = operations.iter().enumerate().all(|(other, one)| match is_done(other) {
                true => one.start < next.end,
                false => other == index || !one.must_happen || next.start < one.end,
            });
            if in_time && (!next.reads || next.value == held) {
                waiting.push((done | 1 << index, if next.reads { held } else { next.value }));
            }
        }
    }
    false
}

/// A register that takes effect at random moments, and the history that its host sees.
#[derive(Default)]
struct Register {
    held: u64,
    issued: u32,
    /// Answered or not: (id, action, what a read has seen, whether it has taken effect, whether given up).
    under_way: Vec<(OperationId, Action, u64, bool, bool)>,
    history: History,
}

impl Register {
    fn step(&mut self, what: u8, which: u8, operations_max: u32) {
        match what {
            0..=6 if self.issued < operations_max => {
                self.issued += 1;
                let id = OperationId(self.issued);
                let action = match what {
                    0..=2 => Action::Write(u64::from(self.issued)),
                    3 => Action::Trim,
                    _ => Action::Read,
                };
                self.tell(Event::Issue { id, action, extent: Extent::slot(0, 0) });
                self.under_way.push((id, action, 0, false, false));
            }
            7..=9 => {
                if let Some(index) = self.pick(which, |_| true) {
                    self.take_effect(index);
                }
            }
            10..=15 => {
                if let Some(index) = self.pick(which, |given_up| !given_up) {
                    self.take_effect(index);
                    let (id, action, seen, ..) = self.under_way.remove(index);
                    self.tell(match action {
                        Action::Read => Event::Returned(id, vec![seen]),
                        _ => Event::Acknowledged(id),
                    });
                }
            }
            16 | 17 => {
                if let Some(index) = self.pick(which, |given_up| !given_up) {
                    self.under_way[index].4 = true;
                    self.tell(Event::Failed(self.under_way[index].0));
                }
            }
            18 => {
                self.under_way.retain(|one| !one.4);
                self.tell(Event::Settle(0));
            }
            _ => {}
        }
    }

    fn pick(&self, which: u8, fits: impl Fn(bool) -> bool) -> Option<usize> {
        let fitting: Vec<usize> = (0..self.under_way.len()).filter(|&index| fits(self.under_way[index].4)).collect();
        fitting.get(usize::from(which) % fitting.len().max(1)).copied()
    }

    fn take_effect(&mut self, index: usize) {
        let one = &mut self.under_way[index];
        if !one.3 {
            one.3 = true;
            match one.1 {
                Action::Read => one.2 = self.held,
                Action::Write(stamp) => self.held = stamp,
                Action::Trim => self.held = 0,
            }
        }
    }

    fn tell(&mut self, event: Event) {
        let time = SimTime::from_ps(self.history.events.len() as u64 / 2);
        self.history.events.push((time, event));
    }
}

fn legal_history(steps: &[(u8, u8)], operations_max: u32) -> History {
    let mut register = Register { history: History { slots_by_drive: vec![1], events: Vec::new() }, ..<_>::default() };
    steps.iter().for_each(|&(what, which)| register.step(what, which, operations_max));
    register.history
}

/// Replaces the value that one read returned.
fn corrupt(history: &mut History, which: u8, stamp: u8, operations_max: u32) {
    let is_read = |event: &&mut (SimTime, Event)| matches!(event.1, Event::Returned(..));
    let reads = history.events.iter_mut().filter(is_read).count().max(1);
    if let Some((_, Event::Returned(_, stamps))) =
        history.events.iter_mut().filter(is_read).nth(usize::from(which) % reads)
    {
        stamps[0] = u64::from(stamp) % u64::from(operations_max + 1);
    }
}

fn steps(length: usize) -> impl Strategy<Value = Vec<(u8, u8)>> {
    prop::collection::vec((0_u8..19, any::<u8>()), 0..length)
}

fn check_against_all_orders(history: &History) {
    let possible = has_an_order(&intervals(history));
    match history.check() {
        Ok(counters) => {
            assert_eq!(counters.slots_given_up, 0, "small histories are checked to the end");
            assert!(possible, "accepted without an order:\n{history}");
        }
        Err(violation) => assert!(!possible, "{violation}, but there is an order:\n{history}"),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(20_000))]

    #[test]
    fn what_a_register_returns_is_accepted(steps in steps(60)) {
        let history = legal_history(&steps, 12);
        if let Err(violation) = history.check() {
            panic!("{violation}\n{history}");
        }
    }

    #[test]
    fn a_corrupted_stamp_is_rejected_exactly_if_no_order_explains_it(
        steps in steps(60), which in any::<u8>(), stamp in any::<u8>(),
    ) {
        let mut history = legal_history(&steps, 9);
        corrupt(&mut history, which, stamp, 9);
        check_against_all_orders(&history);
    }

    #[test]
    fn arbitrary_answers_are_accepted_exactly_if_an_order_explains_them(
        steps in steps(60), stamps in prop::collection::vec(0_u8..6, 9),
    ) {
        let mut history = legal_history(&steps, 9);
        for (which, &stamp) in stamps.iter().enumerate() {
            corrupt(&mut history, which as u8, stamp, 9);
        }
        check_against_all_orders(&history);
    }

    #[test]
    fn many_trims_and_few_writes_are_told_apart_where_they_can_be(
        steps in prop::collection::vec((2_u8..19, any::<u8>()), 0..60), which in any::<u8>(), stamp in 0_u8..2,
    ) {
        let mut history = legal_history(&steps, 10);
        corrupt(&mut history, which, stamp * 3, 10);
        check_against_all_orders(&history);
    }
}
