use super::*;
use flashyard_faults::{Action, Extent, Fingerprint, Injector, OperationId, Oracle};
use flashyard_units::{SimSpan, SimTime};

/// A register that is written and read in turn. A loss of power takes the write before it back, if `forgetful`, and a
/// stall at event 13 panics.
struct Register {
    forgetful: bool,
    panics: bool,
}

impl World for Register {
    fn name(&self) -> String {
        "register".to_owned()
    }

    fn faults(&self) -> Vec<Fault> {
        let span = SimSpan::from_us(5);
        vec![Fault::PowerLoss { off_for: span }, Fault::StallDrive { drive: 0, held_for: span }]
    }

    fn size(&self) -> u32 {
        30
    }

    fn run(&self, case: &Case) -> RunOutcome {
        let mut injector = Injector::new(&case.plan);
        let mut oracle = Oracle::new(&[1]);
        let mut fingerprint = Fingerprint::default();
        let mut outcome = RunOutcome::default();
        let (mut held, mut before) = (0, 0);
        for event in 0..u64::from(case.size.unwrap_or(self.size())) {
            let now = SimTime::from_ps(event * 1_000_000);
            while let Some((fault, _)) = injector.due(now) {
                fingerprint.step(event % 7);
                outcome.recoveries.push(event..event + 3);
                match fault {
                    Fault::StallDrive { .. } => assert!(!self.panics || event != 13, "event {event} is unlucky"),
                    _ if self.forgetful => held = before,
                    _ => {}
                }
            }
            let action = if event % 2 == 0 { Action::Write(case.seed + event + 1) } else { Action::Read };
            oracle.issue(now, OperationId(0), action, Extent::slot(0, 0));
            let checked = match action {
                Action::Write(stamp) => {
                    (before, held) = (held, stamp);
                    oracle.acknowledged(now, OperationId(0))
                }
                _ => oracle.returned(now, OperationId(0), &[held]),
            };
            outcome.note(checked);
            injector.handled();
        }
        outcome.counters.insert("operations", oracle.counters().operations);
        RunOutcome {
            events: injector.events(),
            taken: injector.into_taken(),
            fingerprint: fingerprint.get(),
            ..outcome
        }
    }
}

fn texts(world: &Register, threads: usize) -> (Report, String) {
    let base = Case { seed: 5, size: None, plan: FaultPlan::NONE };
    let limits = Limits { points: 5_000, failures_kept: SHOWN, ..Limits::default() };
    let report = explore(&Guarded(world), base, limits, Some(threads));
    let shrunk = shrink_all(&Guarded(world), &report, Some(threads));
    let text = format!("{report}\n{}", shrunk.join("\n"));
    (report, text)
}

#[test]
fn an_exploration_tells_the_same_on_any_number_of_threads() {
    for forgetful in [false, true] {
        let world = Register { forgetful, panics: false };
        let (report, alone) = texts(&world, 1);
        assert_eq!((report.points(), report.violations() > 0), (5_000, forgetful), "{alone}");
        for threads in [2, 5] {
            assert_eq!(texts(&world, threads), (report.clone(), alone.clone()));
        }
    }
}

#[test]
fn a_violation_ends_with_the_text_that_repeats_it() {
    let (_, text) = texts(&Register { forgetful: true, panics: false }, 2);
    assert!(text.ends_with("--replay 'seed=5;size=2;power@e1+5us'"), "{text}");
    let world = Register { forgetful: true, panics: false };
    let case = "seed=5;size=2;power@e1+5us".parse().expect("a case");
    assert_eq!(replay(&world, &case), Outcome::Violated);
    assert_eq!(replay(&Register { forgetful: false, panics: false }, &case), Outcome::Done);
}

#[test]
fn a_panic_of_the_world_is_a_violation_with_its_case() {
    let world = Register { forgetful: false, panics: true };
    let case = "seed=5;size=30;stall0@e13+5us".parse().expect("a case");
    let shrunk = shrink(&Guarded(&world), &case, 1_000).expect("it panics");
    assert_eq!(shrunk.failure.violation, "panic: event 13 is unlucky");
    assert_eq!(shrunk.failure.case.to_string(), "seed=5;size=14;stall0@e13+5us");
}

#[test]
fn a_fault_that_cannot_strike_is_refused_with_its_place() {
    let world = Register { forgetful: false, panics: false };
    let told = |text: &str| check_plan(&world, &text.parse().expect("a case")).map_err(|error| error.to_string());
    assert_eq!(told("seed=5;stall0@e13+5us"), Ok(()));
    let drive = "--replay, fault 2: there is no drive 9, give 0 to 0".to_owned();
    assert_eq!(told("seed=5;power@e1+5us;stall9@e13+5us"), Err(drive));
    let kind = "--replay, fault 1: register has no fault \"withdraw\"; it has power, stall".to_owned();
    assert_eq!(told("seed=5;withdraw0@e1"), Err(kind));
}
