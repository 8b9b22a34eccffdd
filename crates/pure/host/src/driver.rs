//! The driver in front of drives: which attempts of commands it waits for, and which drives it trusts.
//!
//! It learns of a fault by itself: a drive that has not answered for some periods, or has restarted, is *given up*,
//! and so is one that holds a command for longer than its time-out. Commands for a drive that is given up are held until
//! the drive has been reset. A command that is sent again is a new *attempt* under a number of its own, because what still
//! comes of the old attempt must not be taken for the new one.
//!
//! An attempt that was given up may still be named by an event, a queue or a drive. Its number is *retired*, and free once
//! no holder of numbers names it. No reference count is kept on the way of a command: when enough numbers are retired,
//! the owner of the driver scans all holders ([`Driver::scan_is_due`]).
//!
//! Source: detection by periods, the reset and the time-outs are [A]; [X] Linux doubles neither.

use flashyard_units::{DriveId, SimSpan, SimTime};

/// Doublings of a command's time-out at most: that of Linux has become eight hours. [A]
const TIMEOUTS_MAX: u8 = 10;

/// Retired numbers below which a scan for them is not worth its cost of some microseconds. [A]
const RETIRED_MIN: usize = 64;

/// Parameters of the driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DriverConfig {
    /// Time between two looks at all drives, which is when silent drives and overdue commands are found. `None` looks
    /// when the owner has another reason to: in an enclosure, with the period of harvesting.
    pub period: Option<SimSpan>,
    /// Periods without an answer after which a drive is given up. [A]
    pub silent_periods: u32,
    /// Time after which a command is given up, with the drive that has it. [X] the default of Linux
    pub io_timeout: SimSpan,
}

impl Default for DriverConfig {
    fn default() -> Self {
        Self { period: None, silent_periods: 2, io_timeout: SimSpan::from_ms(30_000) }
    }
}

/// Whether the driver still waits for this attempt of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attempt {
    /// It does.
    Live,
    /// The drive that worked for the owner was given up; the command is sent again once the owner is done with it.
    Draining,
    /// The client has taken the command back before it came to the data, and was answered: it goes no further.
    Withdrawn,
    /// The command has ended, or was sent again under another number.
    Dead,
}

/// Counts of the driver's actions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DriverCounters {
    /// Drives given up.
    pub given_up: u64,
    /// Commands sent again.
    pub resubmitted: u64,
    /// Commands sent again after the owner was done with the first attempt.
    pub drained: u64,
    /// Commands that took too long.
    pub timed_out: u64,
    /// Drives reset.
    pub resets: u64,
}

/// One attempt of a command.
#[derive(Clone, Copy, Debug)]
struct Command {
    attempt: Attempt,
    /// Attempts that took too long so far.
    timeouts: u8,
    /// The owner has carried out the change of data, though the driver may not have heard of it.
    applied: bool,
    sent: SimTime,
}

/// State of one drive, as far as the driver knows it.
#[derive(Clone, Debug, Default)]
struct View {
    /// Starts and link failures that the driver has seen.
    breaks: u32,
    silent_periods: u32,
    /// Given up, and not reset yet.
    lost: bool,
    /// Its reset is under way.
    resetting: bool,
    held: Vec<u32>,
}

/// The driver. Commands go by the numbers that their owner gives them; methods panic beyond the drives and for numbers
/// that [`Driver::begin`] has not seen.
#[derive(Debug)]
pub struct Driver {
    config: DriverConfig,
    views: Vec<View>,
    commands: Vec<Command>,
    retired: Vec<u32>,
    /// Retired numbers that make the next scan worth its cost: twice as many as the last one had to leave.
    scan_at: usize,
    counters: DriverCounters,
}

impl Driver {
    /// A driver that trusts all of its drives.
    pub fn new(drives: usize, config: DriverConfig) -> Self {
        Self {
            config,
            views: vec![View::default(); drives],
            commands: Vec::new(),
            retired: Vec::new(),
            scan_at: RETIRED_MIN,
            counters: DriverCounters::default(),
        }
    }

    /// Counts of its actions so far.
    pub fn counters(&self) -> &DriverCounters {
        &self.counters
    }

    /// Command `id` begins, at `now`.
    pub fn begin(&mut self, now: SimTime, id: u32) {
        let command = Command { attempt: Attempt::Live, timeouts: 0, applied: false, sent: now };
        if self.commands.len() <= id as usize {
            self.commands.resize(id as usize + 1, command);
        }
        self.commands[id as usize] = command;
    }

    /// Command `id` begins as another attempt of `first`, with its patience and with what its owner has done.
    pub fn begin_again(&mut self, now: SimTime, id: u32, first: u32) {
        let Command { timeouts, applied, .. } = self.commands[first as usize];
        self.begin(now, id);
        self.commands[id as usize] = Command { attempt: Attempt::Live, timeouts, applied, sent: now };
        self.counters.resubmitted += 1;
    }

    /// The command goes to its drive: its time-out begins.
    pub fn send(&mut self, now: SimTime, id: u32) {
        self.commands[id as usize].sent = now;
    }

    /// The command waits until `drive` is back.
    pub fn hold(&mut self, now: SimTime, drive: DriveId, id: u32) {
        self.views[drive.index()].held.push(id);
        self.commands[id as usize].sent = now;
    }

    /// The command does not wait for `drive` any more.
    pub fn drop_held(&mut self, drive: DriveId, id: u32) {
        self.views[drive.index()].held.retain(|&held| held != id);
        self.end(id);
    }

    /// Commands that wait for `drive`.
    pub fn held(&self, drive: DriveId) -> usize {
        self.views[drive.index()].held.len()
    }

    /// Time since the command was last sent, or was put aside.
    pub fn waited(&self, now: SimTime, id: u32) -> SimSpan {
        now.since(self.commands[id as usize].sent)
    }

    /// Whether the driver waits for the command.
    #[inline]
    pub fn attempt(&self, id: u32) -> Attempt {
        self.commands[id as usize].attempt
    }

    /// Whether the driver waits for the command without reservation.
    #[inline]
    pub fn is_live(&self, id: u32) -> bool {
        self.attempt(id) == Attempt::Live
    }

    /// The owner has carried out the change of data that the command asks for.
    pub fn note_applied(&mut self, id: u32, applied: bool) {
        self.commands[id as usize].applied = applied;
    }

    /// Whether the owner has carried it out: then it must not do so again.
    #[inline]
    pub fn is_applied(&self, id: u32) -> bool {
        self.commands[id as usize].applied
    }

    /// The owner of the commands that `is_owned` names has lost its memory, and with it what it has carried out.
    pub fn forget_applied(&mut self, is_owned: impl Fn(u32) -> bool) {
        let applied = (0..).zip(&mut self.commands).filter(|(_, command)| command.applied);
        applied.filter(|(id, _)| is_owned(*id)).for_each(|(_, command)| command.applied = false);
    }

    /// The command is sent again once its owner is done with this attempt.
    pub fn drain(&mut self, id: u32) {
        self.commands[id as usize].attempt = Attempt::Draining;
    }

    /// The owner is done with an attempt that was draining: its number is retired.
    pub fn drained(&mut self, id: u32) {
        self.retire(id);
        self.counters.drained += 1;
    }

    /// The client has taken the command back.
    pub fn withdraw(&mut self, id: u32) {
        self.commands[id as usize].attempt = Attempt::Withdrawn;
    }

    /// Nothing more comes of the command, and no holder names its number.
    pub fn end(&mut self, id: u32) {
        self.commands[id as usize].attempt = Attempt::Dead;
    }

    /// The driver does not wait for this attempt any more, but its number may still be named.
    pub fn retire(&mut self, id: u32) {
        self.end(id);
        self.retired.push(id);
    }

    /// The owner of the commands that `is_owned` names has forgotten what it had not come to: numbers of those that were withdrawn
    /// are retired.
    pub fn retire_withdrawn(&mut self, is_owned: impl Fn(u32) -> bool) {
        for id in 0..self.commands.len() as u32 {
            if self.attempt(id) == Attempt::Withdrawn && is_owned(id) {
                self.retire(id);
            }
        }
    }

    /// Numbers that are retired.
    pub fn retired(&self) -> &[u32] {
        &self.retired
    }

    /// Whether enough numbers are retired for a scan of their holders to pay.
    pub fn scan_is_due(&self) -> bool {
        self.retired.len() >= self.scan_at
    }

    /// Takes the retired numbers back that are not `named` by any holder.
    pub fn take_back(&mut self, named: &[bool]) -> Vec<u32> {
        let (kept, freed): (Vec<u32>, Vec<u32>) = self.retired.iter().copied().partition(|&id| named[id as usize]);
        self.scan_at = RETIRED_MIN.max(2 * kept.len());
        self.retired = kept;
        freed
    }

    /// Whether the command has been under way for longer than its time-out. Each attempt is given twice the time of the one
    /// before: a command that is longer than the time-out gets done in the end.
    pub fn is_overdue(&self, now: SimTime, id: u32) -> bool {
        let Command { timeouts, sent, .. } = self.commands[id as usize];
        now.since(sent) > self.config.io_timeout * (1 << timeouts)
    }

    /// The command has taken too long.
    pub fn time_out(&mut self, id: u32) {
        let timeouts = &mut self.commands[id as usize].timeouts;
        *timeouts = (*timeouts + 1).min(TIMEOUTS_MAX);
        self.counters.timed_out += 1;
    }

    /// One look at `drive`, which answers or does not and has broken so often; returns whether it is to be given up.
    pub fn look(&mut self, drive: DriveId, answers: bool, breaks: u32) -> bool {
        let view = &mut self.views[drive.index()];
        view.silent_periods = if answers { 0 } else { view.silent_periods + 1 };
        !view.lost && (view.breaks != breaks || view.silent_periods >= self.config.silent_periods)
    }

    /// Gives `drive` up; returns whether it was trusted until now.
    pub fn give_up(&mut self, drive: DriveId) -> bool {
        let trusted = !std::mem::replace(&mut self.views[drive.index()].lost, true);
        self.counters.given_up += u64::from(trusted);
        trusted
    }

    /// Whether `drive` is given up, and not reset yet.
    #[inline]
    pub fn is_lost(&self, drive: DriveId) -> bool {
        self.views[drive.index()].lost
    }

    /// Whether no drive is given up.
    pub fn trusts_all(&self) -> bool {
        self.views.iter().all(|view| !view.lost)
    }

    /// Whether `drive`, which has broken so often, was enabled since it last broke: it has queue pairs.
    #[inline]
    pub fn has_enabled(&self, drive: DriveId, breaks: u32) -> bool {
        let view = &self.views[drive.index()];
        !view.lost && view.breaks == breaks
    }

    /// Begins the reset of `drive`, which answers, if it is given up and none is under way; returns whether it did.
    pub fn begin_reset(&mut self, drive: DriveId) -> bool {
        let view = &mut self.views[drive.index()];
        let begins = view.lost && !view.resetting;
        view.resetting |= begins;
        self.counters.resets += u64::from(begins);
        begins
    }

    /// `drive`, which has broken so often, is ready. If that ends its reset, the driver trusts it again and returns the
    /// commands that it held.
    pub fn end_reset(&mut self, drive: DriveId, breaks: u32) -> Option<Vec<u32>> {
        let view = &mut self.views[drive.index()];
        std::mem::take(&mut view.resetting).then(|| {
            view.lost = false;
            view.breaks = breaks;
            std::mem::take(&mut view.held)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DRIVES: [DriveId; 2] = [DriveId::new(0), DriveId::new(1)];

    fn at(us: u64) -> SimTime {
        SimTime::ZERO + SimSpan::from_us(us)
    }

    fn driver() -> Driver {
        Driver::new(2, DriverConfig { io_timeout: SimSpan::from_us(10), ..DriverConfig::default() })
    }

    #[test]
    fn a_drive_is_given_up_after_silent_periods_in_a_row_or_a_start_and_once_only() {
        let mut driver = driver();
        assert!(
            !driver.look(DRIVES[0], false, 0) && !driver.look(DRIVES[0], true, 0) && !driver.look(DRIVES[0], false, 0)
        );
        assert!(driver.look(DRIVES[0], false, 0), "two periods in a row");
        assert!(driver.look(DRIVES[1], true, 1), "it has restarted");
        assert!(driver.give_up(DRIVES[1]) && !driver.give_up(DRIVES[1]) && !driver.look(DRIVES[1], true, 1));
        assert_eq!((driver.trusts_all(), driver.counters().given_up), (false, 1));
    }

    #[test]
    fn what_was_withdrawn_of_a_drive_that_forgets_it_is_retired() {
        let mut driver = driver();
        (0..4).for_each(|id| driver.begin(at(0), id));
        (0..2).for_each(|id| driver.withdraw(id));
        driver.drain(2);
        driver.retire_withdrawn(|id| id != 1);
        assert_eq!(driver.retired(), [0]);
        let attempts = [Attempt::Dead, Attempt::Withdrawn, Attempt::Draining, Attempt::Live];
        assert_eq!([0, 1, 2, 3].map(|id| driver.attempt(id)), attempts);
    }

    #[test]
    fn a_reset_ends_once_and_gives_back_what_was_held() {
        let mut driver = driver();
        assert!(!driver.begin_reset(DRIVES[0]), "it is trusted");
        driver.give_up(DRIVES[0]);
        for id in [3, 5, 4] {
            driver.begin(at(0), id);
            driver.hold(at(2), DRIVES[0], id);
        }
        driver.drop_held(DRIVES[0], 5);
        assert_eq!(driver.end_reset(DRIVES[0], 7), None, "none is under way");
        assert!(driver.begin_reset(DRIVES[0]) && !driver.begin_reset(DRIVES[0]));
        assert_eq!(driver.end_reset(DRIVES[0], 7), Some(vec![3, 4]));
        assert!(driver.has_enabled(DRIVES[0], 7) && !driver.has_enabled(DRIVES[0], 8) && driver.held(DRIVES[0]) == 0);
        assert_eq!((driver.waited(at(5), 3), driver.attempt(5)), (SimSpan::from_us(3), Attempt::Dead));
    }

    #[test]
    fn each_attempt_is_given_twice_the_time_of_the_one_before() {
        let mut driver = driver();
        driver.begin(at(0), 0);
        driver.note_applied(0, true);
        for (id, patience) in (0..12).zip([10, 20, 40, 80, 160, 320, 640, 1280, 2560, 5120, 10240, 10240]) {
            assert!(!driver.is_overdue(at(patience), id) && driver.is_overdue(at(patience + 1), id), "attempt {id}");
            driver.time_out(id);
            driver.retire(id);
            driver.begin_again(at(0), id + 1, id);
            assert!(driver.is_live(id + 1) && driver.is_applied(id + 1), "attempt {id}");
        }
        driver.begin(at(0), 12);
        assert!(driver.is_overdue(at(11), 12) && !driver.is_applied(12), "another command under that number");
    }

    #[test]
    fn an_owner_that_loses_its_memory_forgets_what_it_has_carried_out() {
        let mut driver = driver();
        for id in 0..3 {
            driver.begin(at(0), id);
            driver.note_applied(id, true);
        }
        driver.forget_applied(|id| id != 1);
        assert_eq!([0, 1, 2].map(|id| driver.is_applied(id)), [false, true, false]);
    }

    #[test]
    fn a_retired_number_is_free_once_it_is_not_named() {
        let mut driver = driver();
        (0..RETIRED_MIN as u32).for_each(|id| driver.begin(at(0), id));
        (1..RETIRED_MIN as u32).for_each(|id| driver.retire(id));
        assert!(!driver.scan_is_due());
        driver.drain(0);
        driver.drained(0);
        assert!(driver.scan_is_due());
        let mut named = vec![true; RETIRED_MIN];
        named[7] = false;
        assert_eq!(driver.take_back(&named), [7]);
        assert!(!driver.retired().contains(&7) && !driver.scan_is_due());
        assert_eq!(driver.counters().drained, 1);
    }
}
