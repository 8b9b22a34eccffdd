use super::*;
use ReservationKind::*;
use proptest::prelude::*;
use std::collections::BTreeMap;

fn host(number: u8) -> HostIdentity {
    HostIdentity { nqn: format!("nqn.2026-01.test:{number}"), id: [number; 16] }
}

fn refuses(state: &Reservations, number: u8, is_read: bool) -> bool {
    let host = host(number);
    state.refuses((&host.nqn, &host.id), is_read)
}

/// A namespace on which hosts 1 and 2 are registered with their numbers as keys, and 1 has taken a reservation.
fn taken(kind: ReservationKind) -> Reservations {
    let mut state = Reservations::default();
    for number in [1, 2] {
        let keys = (0, number.into());
        state.register((&host(number), 0xFFFF), RegisterAction::Register, false, keys).expect("it is new");
    }
    state.acquire(&host(1), AcquireAction::Acquire, kind, (1, 0)).expect("it is free");
    state
}

#[test]
fn commands_conflict_as_the_table_of_the_specification_says() {
    // Base 2.0, section 8.19, "Command Behavior in the Presence of a Reservation": a read and a write of a registrant that
    // does not hold it, a read and a write of a host that is not registered; true is a conflict.
    let table = [
        (WriteExclusive, [false, true, false, true]),
        (ExclusiveAccess, [true, true, true, true]),
        (WriteExclusiveRegistrants, [false, false, false, true]),
        (ExclusiveAccessRegistrants, [false, false, true, true]),
        (WriteExclusiveAll, [false, false, false, true]),
        (ExclusiveAccessAll, [false, false, true, true]),
    ];
    for (kind, row) in table {
        let state = taken(kind);
        let seen = [(2, true), (2, false), (3, true), (3, false)].map(|(who, is_read)| refuses(&state, who, is_read));
        assert_eq!(seen, row, "{kind:?}");
        assert!(!refuses(&state, 1, true) && !refuses(&state, 1, false), "{kind:?}: its holder");
        assert_eq!(state.strangers() == Strangers::Nothing, row[2], "{kind:?}");
        assert!(!refuses(&Reservations::default(), 3, false), "without one there is no conflict");
    }
}

#[test]
fn an_identifier_under_another_name_is_another_host() {
    let state = taken(ExclusiveAccess);
    assert!(state.refuses(("nqn.2026-01.test:liar", &[1; 16]), true));
    assert!(state.refuses((&host(1).nqn, &[9; 16]), true));
}

#[test]
fn releases_are_told_to_the_registrants_who_may_go_on_by_them() {
    for kind in ReservationKind::ALL {
        let mut state = taken(kind);
        assert_eq!(state.release(&host(1), ReleaseAction::Release, 9, 1), Err(INVALID), "{kind:?}: another kind");
        assert_eq!(state.release(&host(1), ReleaseAction::Release, kind.number(), 2), Err(CONFLICT), "another key");
        let told = state.release(&host(1), ReleaseAction::Release, kind.number(), 1).expect("it is its own").notices;
        let expected = if kind.is_of_one() { vec![] } else { vec![(host(2), Notice::ReservationReleased)] };
        assert_eq!((told, state.kind()), (expected, None), "{kind:?}");
    }
    // The second registrant holds it only where all do.
    let mut state = taken(WriteExclusiveRegistrants);
    assert_eq!(state.release(&host(2), ReleaseAction::Release, 3, 2), Ok(Consequences::default()));
    assert_eq!(state.kind(), Some(WriteExclusiveRegistrants));
    let mut state = taken(WriteExclusiveAll);
    assert!(state.release(&host(2), ReleaseAction::Release, 5, 2).is_ok() && state.kind().is_none());
}

#[test]
fn a_holder_that_registers_no_longer_gives_its_reservation_back() {
    for kind in ReservationKind::ALL {
        let mut state = taken(kind);
        let told = state.register((&host(1), 1), RegisterAction::Unregister, false, (1, 0)).expect("its key").notices;
        let is_released = matches!(kind, WriteExclusiveRegistrants | ExclusiveAccessRegistrants);
        assert_eq!(told.len(), usize::from(is_released), "{kind:?}");
        assert_eq!(state.kind(), kind.is_of_all().then_some(kind), "{kind:?}");
        state.register((&host(2), 1), RegisterAction::Unregister, true, (0, 0)).expect("its key does not matter");
        assert_eq!((state.kind(), state.registrants()), (None, &[][..]), "{kind:?}");
    }
}

#[test]
fn preempting_the_holder_takes_the_reservation_over() {
    let mut state = taken(WriteExclusive);
    let done = state.acquire(&host(2), AcquireAction::Preempt, ExclusiveAccess, (2, 1)).expect("a registrant may");
    assert_eq!(done.preempted, [host(1)]);
    assert_eq!(done.notices, [(host(1), Notice::RegistrationPreempted)]);
    assert!(state.holds(&host(2)) && refuses(&state, 1, true));
    // Its own reservation: another kind, and no host loses a registration.
    let done = state.acquire(&host(2), AcquireAction::Preempt, WriteExclusiveAll, (2, 2)).expect("its own");
    assert_eq!((done.preempted.len(), state.kind(), state.registrants().len()), (0, Some(WriteExclusiveAll), 1));
    assert_eq!(state.acquire(&host(2), AcquireAction::Preempt, WriteExclusive, (2, 7)), Err(CONFLICT), "no such key");
    // Zero is for reservations that all hold.
    let mut state = taken(WriteExclusive);
    assert_eq!(state.acquire(&host(2), AcquireAction::Preempt, WriteExclusive, (2, 0)), Err(INVALID));
    let mut state = taken(WriteExclusiveAll);
    let done = state.acquire(&host(2), AcquireAction::PreemptAndAbort, WriteExclusive, (2, 0)).expect("it may");
    assert_eq!((done.preempted, state.kind()), (vec![host(1)], Some(WriteExclusive)));
    assert!(state.holds(&host(2)) && state.registrants().len() == 1);
}

#[test]
fn clearing_ends_everything_and_tells_the_others() {
    let mut state = taken(ExclusiveAccess);
    let before = state.generation;
    let told = state.release(&host(2), ReleaseAction::Clear, 0, 2).expect("any registrant may").notices;
    assert_eq!(told, [(host(1), Notice::ReservationPreempted)]);
    assert_eq!(state, Reservations { generation: before + 1, ..Reservations::default() });
}

#[test]
fn a_key_is_registered_once_and_replaced_by_its_host() {
    let mut state = Reservations::default();
    let mut ask = |action, ignores, keys| state.register((&host(1), 1), action, ignores, keys).map(|_| ());
    assert_eq!(ask(RegisterAction::Register, false, (0, 0)), Err(INVALID));
    assert_eq!(ask(RegisterAction::Replace, false, (5, 6)), Err(CONFLICT), "not registered");
    assert_eq!(ask(RegisterAction::Register, false, (0, 5)), Ok(()));
    assert_eq!(ask(RegisterAction::Register, false, (0, 5)), Ok(()), "the same key again");
    assert_eq!(ask(RegisterAction::Register, false, (5, 6)), Err(CONFLICT));
    assert_eq!(ask(RegisterAction::Replace, false, (4, 6)), Err(CONFLICT));
    assert_eq!(ask(RegisterAction::Replace, false, (5, 6)), Ok(()));
    assert_eq!(ask(RegisterAction::Unregister, false, (5, 0)), Err(CONFLICT));
    assert_eq!(ask(RegisterAction::Unregister, false, (6, 0)), Ok(()));
    assert_eq!(ask(RegisterAction::Replace, true, (0, 8)), Ok(()), "without regard to its registration");
    assert_eq!((state.registrants()[0].key, state.generation), (8, 5));
}

#[test]
fn registrations_do_not_pile_up_without_end() {
    let mut state = Reservations::default();
    for number in 0..REGISTRANTS_MAX {
        let host = HostIdentity { nqn: number.to_string(), id: [0; 16] };
        state.register((&host, 1), RegisterAction::Register, false, (0, 1)).expect("there is room");
    }
    assert_eq!(state.register((&host(1), 1), RegisterAction::Replace, true, (0, 1)), Err(Status::INTERNAL));
    let known = HostIdentity { nqn: "0".into(), id: [0; 16] };
    assert!(state.register((&known, 1), RegisterAction::Replace, false, (1, 2)).is_ok());
}

/// The rules once more, on a map of keys: holders are a set that is computed, not kept.
#[derive(Clone, Default)]
struct Naive {
    keys: BTreeMap<u8, u64>,
    /// Kind and first holder.
    held: Option<(u8, u8)>,
    generation: u32,
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Register { who: u8, action: u8, ignores: bool, current: u64, new: u64 },
    Acquire { who: u8, action: u8, kind: u8, current: u64, other: u64 },
    Release { who: u8, clear: bool, kind: u8, current: u64 },
}

impl Naive {
    fn holders(&self) -> Vec<u8> {
        match self.held {
            None => Vec::new(),
            Some((5 | 6, _)) => self.keys.keys().copied().collect(),
            Some((_, holder)) => vec![holder],
        }
    }

    /// A reservation needs a holder that is registered.
    fn tidy(&mut self) {
        let holders = self.holders();
        if !holders.iter().any(|holder| self.keys.contains_key(holder)) {
            self.held = None;
        }
    }

    /// Whether it has succeeded.
    fn step(&mut self, step: Step) -> bool {
        let before = self.clone();
        let done = match step {
            Step::Register { who, action, ignores, current, new } => self.register(who, action, ignores, current, new),
            Step::Acquire { who, current, .. } | Step::Release { who, current, .. }
                if self.keys.get(&who) != Some(&current) =>
            {
                false
            }
            Step::Acquire { who, action: 0, kind, .. } => match self.held {
                None => {
                    self.held = Some((kind, who));
                    true
                }
                Some((held, _)) => held == kind && self.holders().contains(&who),
            },
            Step::Acquire { who, kind, other, .. } => self.preempt(who, kind, other),
            Step::Release { clear: true, .. } => {
                (self.keys, self.held) = (BTreeMap::new(), None);
                self.generation += 1;
                true
            }
            Step::Release { who, kind, .. } => match self.held {
                Some((held, _)) if self.holders().contains(&who) => {
                    self.held = None;
                    held == kind
                }
                _ => true,
            },
        };
        self.tidy();
        if !done {
            *self = before;
        }
        done
    }

    fn register(&mut self, who: u8, action: u8, ignores: bool, current: u64, new: u64) -> bool {
        let known = self.keys.get(&who).copied();
        let may = match action {
            0 => new != 0 && known.is_none_or(|key| key == new),
            1 => known.is_some_and(|key| ignores || key == current),
            _ => new != 0 && (ignores || known == Some(current)),
        };
        if may {
            self.generation += 1;
            if action == 1 {
                self.keys.remove(&who)
            } else {
                self.keys.insert(who, new)
            };
        }
        may
    }

    fn preempt(&mut self, who: u8, kind: u8, key: u64) -> bool {
        self.generation += 1;
        let takes_over = match self.held {
            None => false,
            Some((5 | 6, _)) => key == 0,
            Some((_, holder)) => self.keys[&holder] == key,
        };
        if takes_over {
            self.keys.retain(|&other, theirs| other == who || (key != 0 && *theirs != key));
            self.held = Some((kind, who));
            return true;
        }
        let count = self.keys.len();
        self.keys.retain(|_, theirs| *theirs != key);
        self.keys.len() < count
    }

    fn refuses(&self, who: u8, is_read: bool) -> bool {
        let Some((kind, _)) = self.held else { return false };
        let (holds, registered) = (self.holders().contains(&who), self.keys.contains_key(&who));
        match (kind, is_read) {
            (1 | 3 | 5, true) => false,
            (1 | 2, _) => !holds,
            _ => !registered,
        }
    }
}

fn any_step() -> impl Strategy<Value = Step> {
    let (who, key) = (1_u8..=4, 0_u64..4);
    prop_oneof![
        (who.clone(), 0_u8..3, any::<bool>(), key.clone(), key.clone())
            .prop_map(|(who, action, ignores, current, new)| Step::Register { who, action, ignores, current, new }),
        (who.clone(), 0_u8..3, 1_u8..=6, key.clone(), key.clone())
            .prop_map(|(who, action, kind, current, other)| Step::Acquire { who, action, kind, current, other }),
        (who, prop::bool::weighted(0.1), 1_u8..=6, key).prop_map(|(who, clear, kind, current)| Step::Release {
            who,
            clear,
            kind,
            current
        }),
    ]
}

fn carry_out(state: &mut Reservations, step: Step) -> Result<Consequences, Status> {
    match step {
        Step::Register { who, action, ignores, current, new } => {
            let actions = [RegisterAction::Register, RegisterAction::Unregister, RegisterAction::Replace];
            state.register((&host(who), 0xFFFF), actions[usize::from(action)], ignores, (current, new))
        }
        Step::Acquire { who, action, kind, current, other } => {
            let actions = [AcquireAction::Acquire, AcquireAction::Preempt, AcquireAction::PreemptAndAbort];
            let kind = ReservationKind::from_number(kind).expect("1 to 6");
            state.acquire(&host(who), actions[usize::from(action)], kind, (current, other))
        }
        Step::Release { who, clear, kind, current } => {
            let action = if clear { ReleaseAction::Clear } else { ReleaseAction::Release };
            state.release(&host(who), action, kind, current)
        }
    }
}

proptest! {
    #[test]
    fn any_history_ends_where_the_rules_written_once_more_end(steps in prop::collection::vec(any_step(), 1..60)) {
        let (mut state, mut naive) = (Reservations::default(), Naive::default());
        for step in steps {
            let before = state.clone();
            let done = carry_out(&mut state, step);
            prop_assert_eq!(done.is_ok(), naive.step(step), "{:?}", step);
            let keys: BTreeMap<u8, u64> = state.registrants().iter().map(|it| (it.host.id[0], it.key)).collect();
            prop_assert_eq!(&keys, &naive.keys, "{:?}", step);
            prop_assert_eq!(state.kind().map(ReservationKind::number), naive.held.map(|(kind, _)| kind), "{:?}", step);
            prop_assert_eq!(state.generation, naive.generation);
            for who in 1..=5 {
                prop_assert_eq!(state.holds(&host(who)), naive.holders().contains(&who), "{} after {:?}", who, step);
                for is_read in [false, true] {
                    prop_assert_eq!(refuses(&state, who, is_read), naive.refuses(who, is_read), "{} after {:?}", who, step);
                }
            }
            match done {
                Err(_) => prop_assert_eq!(&state, &before),
                Ok(Consequences { preempted, notices }) => {
                    let was = |host: &HostIdentity| before.registrants().iter().any(|it| it.host == *host);
                    prop_assert!(preempted.iter().all(|host| was(host) && !state.registrants().iter().any(|it| it.host == *host)));
                    prop_assert!(notices.iter().all(|(host, _)| was(host)), "{:?}", notices);
                }
            }
        }
    }
}
