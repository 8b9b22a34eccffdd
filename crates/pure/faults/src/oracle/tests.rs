use super::*;
use flashyard_units::SimTime;

/// An oracle over two drives of 1,000 slots, with one event a microsecond.
struct Told {
    oracle: Oracle,
    us: u64,
}

impl Told {
    fn new() -> Self {
        Self { oracle: Oracle::new(&[1000, 1000]), us: 0 }
    }

    fn tick(&mut self) -> SimTime {
        self.us += 1;
        SimTime::from_ps(self.us * 1_000_000)
    }

    fn issue(&mut self, id: u32, action: Action) {
        let at = self.tick();
        self.oracle.issue(at, OperationId(id), action, Extent::slot(0, 7));
    }

    fn acknowledged(&mut self, id: u32) {
        let at = self.tick();
        self.oracle.acknowledged(at, OperationId(id)).expect("it is under way");
    }

    fn failed(&mut self, id: u32) {
        let at = self.tick();
        self.oracle.failed(at, OperationId(id)).expect("it is under way");
    }

    fn settle(&mut self) {
        let at = self.tick();
        self.oracle.settle(at, 0);
    }

    fn returned(&mut self, id: u32, stamp: u64) -> Result<(), Violation> {
        let at = self.tick();
        self.oracle.returned(at, OperationId(id), &[stamp])
    }

    fn write(&mut self, id: u32, stamp: u64) {
        self.issue(id, Action::Write(stamp));
        self.acknowledged(id);
    }

    fn read(&mut self, id: u32, stamp: u64) -> Result<(), Violation> {
        self.issue(id, Action::Read);
        self.returned(id, stamp)
    }

    fn kept(&self) -> usize {
        self.oracle.values_kept(0, 7)
    }
}

#[test]
fn an_acknowledged_write_is_read_and_nothing_older() {
    let mut told = Told::new();
    assert_eq!(told.read(0, 0), Ok(()));
    told.write(1, 5);
    told.write(2, 8);
    assert_eq!(told.read(3, 8), Ok(()));
    assert!(told.read(3, 5).is_err() && told.read(3, 0).is_err() && told.read(3, 99).is_err());
}

#[test]
fn a_violation_says_what_was_read_and_what_was_there() {
    let mut told = Told::new();
    told.issue(0, Action::Read);
    told.write(1, 5);
    told.write(2, 8);
    told.issue(3, Action::Read);
    let violation = told.returned(3, 5).expect_err("it was overwritten");
    assert_eq!(
        violation.to_string(),
        "drive 0 slot 7: read 3, issued 6.00 us (#6), returned 7.00 us (#7) stamp 5, but the slot held stamp 8; \
         nothing was there in the beginning; \
         write 1 of 5 was issued 2.00 us (#2), acknowledged 3.00 us (#3); \
         write 2 of 8 was issued 4.00 us (#4), acknowledged 5.00 us (#5)"
    );
}

#[test]
fn a_write_given_up_may_be_seen_or_not_and_once_seen_stays() {
    let mut told = Told::new();
    told.write(1, 5);
    told.issue(2, Action::Write(6));
    told.failed(2);
    assert_eq!(told.read(3, 5), Ok(()));
    assert_eq!(told.read(3, 6), Ok(()));
    assert!(told.read(3, 5).is_err());
}

#[test]
fn a_write_given_up_may_happen_late_but_not_after_it_is_settled() {
    let mut told = Told::new();
    told.issue(1, Action::Write(5));
    told.failed(1);
    told.write(2, 6);
    assert_eq!(told.clone_read(3, 5), Ok(()));
    told.settle();
    told.write(4, 7);
    assert!(told.read(3, 5).is_err());
    assert_eq!(told.read(3, 7), Ok(()));
}

impl Told {
    /// Reads without leaving a mark.
    fn clone_read(&self, id: u32, stamp: u64) -> Result<(), Violation> {
        Self { oracle: self.oracle.clone(), us: self.us }.read(id, stamp)
    }
}

#[test]
fn reads_that_fixed_an_order_of_concurrent_writes_keep_it() {
    let mut told = Told::new();
    told.issue(1, Action::Write(5));
    told.issue(2, Action::Write(6));
    assert_eq!(told.read(3, 6), Ok(()));
    assert_eq!(told.read(3, 5), Ok(()));
    told.acknowledged(1);
    told.acknowledged(2);
    assert!(told.clone_read(3, 6).is_err());
    assert_eq!(told.read(3, 5), Ok(()));
}

#[test]
fn a_trim_under_way_is_not_held_against_a_read_that_another_trim_explains() {
    let mut told = Told::new();
    told.write(1, 5);
    // One trim is given up, one is answered at the very end; the first read of nothing may be of either.
    told.issue(2, Action::Trim);
    told.failed(2);
    told.issue(3, Action::Trim);
    assert_eq!(told.read(4, 0), Ok(()));
    told.settle();
    told.write(5, 6);
    assert_eq!(told.read(4, 6), Ok(()));
    told.acknowledged(3);
    assert_eq!(told.clone_read(4, 6), Ok(()), "trim 3 came before the write");
    assert_eq!(told.read(4, 0), Ok(()), "trim 3 came after it, and what was read before was trim 2");
    assert!(told.read(4, 6).is_err());
}

#[test]
fn a_write_may_be_torn_between_slots_but_not_in_time() {
    let mut oracle = Oracle::new(&[8]);
    let both = Extent { drive: 0, first: 2, count: 2 };
    let mut time = (1..).map(SimTime::from_ps);
    let mut now = || time.next().expect("time goes on");
    oracle.issue(now(), OperationId(0), Action::Write(9), both);
    assert_eq!(oracle.failed(now(), OperationId(0)), Ok(()));
    oracle.settle(now(), 0);
    oracle.issue(now(), OperationId(0), Action::Read, both);
    assert_eq!(oracle.returned(now(), OperationId(0), &[9, 0]), Ok(()));
    oracle.issue(now(), OperationId(0), Action::Read, both);
    let violation = oracle.returned(now(), OperationId(0), &[0, 0]).expect_err("what was seen stays");
    assert_eq!((violation.drive, violation.slot), (Some(0), Some(2)));
}

#[test]
fn superseded_values_are_forgotten_as_soon_as_no_read_under_way_can_return_them() {
    let mut told = Told::new();
    for round in 0..1000 {
        told.write(1, 10 + round);
        assert_eq!(told.kept(), 1);
    }
    told.issue(2, Action::Read);
    (0..10).for_each(|round| told.write(1, 2000 + round));
    assert_eq!(told.kept(), 11, "the read may return each of them");
    assert_eq!(told.returned(2, 2004), Ok(()));
    told.write(1, 3000);
    assert_eq!(told.kept(), 1);
    (0..50).for_each(|round| {
        told.issue(1, Action::Write(4000 + round));
        told.failed(1);
    });
    told.settle();
    told.write(1, 5000);
    assert_eq!(told.kept(), 1, "what was given up is settled and overwritten");
}

#[test]
fn second_answers_answers_to_nothing_and_missing_answers_are_violations() {
    let mut told = Told::new();
    told.write(1, 5);
    let at = told.tick();
    let twice = told.oracle.acknowledged(at, OperationId(1)).expect_err("answered already");
    assert_eq!(twice.to_string(), "operation 1 was answered 3.00 us (#3), but is not under way");
    assert!(told.oracle.failed(at, OperationId(40)).is_err());
    assert_eq!(told.oracle.finish(at), Ok(()));
    told.issue(6, Action::Trim);
    told.issue(2, Action::Write(6));
    let at = told.tick();
    let hung = told.oracle.finish(at).expect_err("two are under way");
    assert!(hung.to_string().contains("trim 6, issued 4.00 us (#5), has no answer at the end"), "{hung}");
    assert_eq!(told.oracle.under_way().count(), 2);
}

#[test]
fn data_must_be_that_of_a_read_and_of_its_length() {
    let mut told = Told::new();
    told.issue(1, Action::Read);
    let at = told.tick();
    assert!(told.oracle.returned(at, OperationId(1), &[0, 0]).is_err());
    told.issue(1, Action::Read);
    let at = told.tick();
    assert!(told.oracle.acknowledged(at, OperationId(1)).is_err());
    told.issue(1, Action::Trim);
    assert!(told.returned(1, 0).is_err());
}

#[test]
#[should_panic(expected = "outside its drive")]
fn slots_beyond_the_drive_are_a_bug_of_the_caller() {
    Oracle::new(&[8]).issue(SimTime::ZERO, OperationId(0), Action::Read, Extent { drive: 0, first: 7, count: 2 });
}

/// A measurement, run by hand in a release build: 20 million operations on a million slots.
#[test]
#[ignore = "takes seconds; a measurement of speed"]
fn twenty_million_operations_are_checked() {
    let mut oracle = Oracle::new(&[1 << 20]);
    let mut rng = flashyard_kernel::Rng::named(1, "throughput");
    let mut held = vec![0_u64; 1 << 20];
    for number in 1..=20_000_000_u64 {
        let (at, id) = (SimTime::from_ps(number), OperationId((number % 64) as u32));
        let slot = rng.below(1 << 20);
        if number.is_multiple_of(2) {
            oracle.issue(at, id, Action::Write(number), Extent::slot(0, slot));
            held[slot as usize] = number;
            assert_eq!(oracle.acknowledged(at, id), Ok(()));
        } else {
            oracle.issue(at, id, Action::Read, Extent::slot(0, slot));
            assert_eq!(oracle.returned(at, id, &[held[slot as usize]]), Ok(()));
        }
    }
    assert_eq!(oracle.counters().operations, 20_000_000);
}

impl Told {
    fn volatile() -> Self {
        let mut told = Self::new();
        told.oracle.make_volatile(0);
        told
    }

    fn flush(&mut self) {
        let at = self.tick();
        let issued = self.oracle.flush(at);
        let at = self.tick();
        self.oracle.flushed(at, 0, issued);
    }

    fn cut(&mut self) {
        let at = self.tick();
        self.oracle.power_lost(at, 0);
    }

    /// Stamps that a read would be allowed to return now.
    fn may_hold(&self, most: u64) -> Vec<u64> {
        let legal = |&stamp: &u64| Self { oracle: self.oracle.clone(), us: self.us }.read(999, stamp).is_ok();
        (0..=most).filter(legal).collect()
    }
}

#[test]
fn a_power_cut_takes_what_was_not_flushed_and_no_more() {
    let mut told = Told::volatile();
    told.write(1, 5);
    told.write(2, 6);
    told.flush();
    told.write(3, 7);
    told.issue(4, Action::Trim);
    told.acknowledged(4);
    told.write(5, 9);
    assert_eq!(told.may_hold(10), [9]);
    told.cut();
    assert_eq!(told.may_hold(10), [0, 6, 7, 9]);
    assert_eq!(told.read(6, 7), Ok(()));
    assert_eq!(told.may_hold(10), [7], "what is there is there");
    told.cut();
    assert_eq!(told.may_hold(10), [7], "it was on flash");
    assert_eq!(told.kept(), 1);
}

#[test]
fn a_power_cut_of_a_protected_drive_takes_nothing() {
    let mut told = Told::new();
    told.write(1, 5);
    told.write(2, 6);
    told.cut();
    assert_eq!(told.may_hold(10), [6]);
}

#[test]
fn a_flush_is_sure_of_writes_acknowledged_before_it_was_issued_once_it_has_completed() {
    let mut told = Told::volatile();
    told.write(1, 5);
    let at = told.tick();
    let issued = told.oracle.flush(at);
    told.write(2, 6);
    let under_way = Told { oracle: told.oracle.clone(), us: told.us };
    let mut cut = under_way;
    cut.cut();
    assert_eq!(cut.may_hold(10), [0, 5, 6], "it has not completed");
    let at = told.tick();
    told.oracle.flushed(at, 0, issued);
    told.cut();
    assert_eq!(told.may_hold(10), [5, 6]);
}

#[test]
fn a_write_that_was_given_up_makes_no_flush_sure_of_it() {
    let mut told = Told::volatile();
    told.write(1, 5);
    told.issue(2, Action::Write(6));
    let at = told.tick();
    assert_eq!(told.oracle.failed(at, OperationId(2)), Ok(()));
    let at = told.tick();
    told.oracle.settle(at, 0);
    told.flush();
    told.cut();
    assert_eq!(told.may_hold(10), [5, 6], "it may have happened or not");
}

#[test]
fn a_write_under_way_may_be_seen_before_a_cut_and_done_again_after_it() {
    let mut told = Told::volatile();
    told.write(1, 5);
    told.flush();
    told.issue(2, Action::Write(6));
    assert_eq!(told.read(3, 6), Ok(()));
    told.issue(4, Action::Read);
    told.cut();
    assert_eq!(told.returned(4, 6), Ok(()), "it was found before the cut");
    assert_eq!(told.read(3, 5), Ok(()));
    told.acknowledged(2);
    assert_eq!(told.may_hold(10), [6]);
    told.cut();
    assert_eq!(told.may_hold(10), [5, 6]);
}

mod proptests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// One operation after the other: then the slot may hold exactly the versions since the last flush, before
        /// a read has told which.
        #[test]
        fn a_cut_leaves_any_version_since_the_last_flush(
            steps in prop::collection::vec((0_u32..10, any::<prop::sample::Index>()), 1..40),
        ) {
            let mut told = Told::volatile();
            // Stamps that the slot may hold now, and those that a cut may bring back.
            let (mut now, mut versions) = (vec![0_u64], vec![0_u64]);
            for (number, (kind, choice)) in (1_u32..).zip(steps) {
                match kind {
                    0..4 => {
                        told.write(number, u64::from(number));
                        versions.push(u64::from(number));
                        now = vec![u64::from(number)];
                    }
                    4 => {
                        told.issue(number, Action::Trim);
                        told.acknowledged(number);
                        versions.push(0);
                        now = vec![0];
                    }
                    5 => {
                        told.flush();
                        versions = now.clone();
                    }
                    6 | 7 => {
                        told.cut();
                        now = versions.clone();
                        now.sort_unstable();
                        now.dedup();
                    }
                    _ => {
                        let stamp = now[choice.index(now.len())];
                        prop_assert_eq!(told.read(number, stamp), Ok(()));
                        if now.len() > 1 {
                            // After a cut it tells what was left.
                            versions = vec![stamp];
                        }
                        now = vec![stamp];
                    }
                }
                prop_assert_eq!(&told.may_hold(41), &now, "after step {}", number);
            }
        }
    }
}
