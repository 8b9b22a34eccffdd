//! The loop: one thread that runs volumes and their front ends.

use crate::leg::Storage;
use crate::stack::Stack;
use flashyard_latte::Counters;
use flashyard_live::{Drives, EngineError, FrontEnds, Inbound};
use flashyard_served::Refused;
use flashyard_units::{SimSpan, SimTime, VolumeId};
use std::fmt;
use std::time::{Duration, Instant};

/// Longest sleep before the engine looks whether the program should end.
const SLEEP_MAX: Duration = Duration::from_millis(100);
/// The poll of the operating system wakes to the millisecond: nothing that is due sooner is left to it.
const SPIN_BELOW: Duration = Duration::from_millis(2);
/// Sleeps end so long before something is due.
const SPIN_MARGIN: Duration = Duration::from_millis(1);
/// A client that was just answered is likely to ask again: sleeping and waking would cost it more than the answer.
const LINGER: Duration = Duration::from_millis(1);
/// Patience for the last flushes when the engine ends.
const LAST_FLUSH: Duration = Duration::from_secs(60);

/// Volumes made of real storage, and their front ends.
pub struct VolumeEngine {
    fronts: FrontEnds,
    stacks: Vec<Stack>,
    /// Volume and leg of each socket.
    sockets: Vec<(usize, usize)>,
    began: Instant,
}

/// Counts of one volume.
#[derive(Clone, Debug)]
pub struct VolumeReport {
    /// Its name.
    pub name: String,
    /// Requests answered: reads, writes, trims, flushes.
    pub answered: [u64; 4],
    /// Those of them that have failed.
    pub failed: u64,
    /// Counts of its LATTE or cache.
    pub latte: Option<Counters>,
    /// Why the last flush has failed, if it has.
    pub unflushed: Option<String>,
}

impl fmt::Display for VolumeReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [reads, writes, trims, flushes] = self.answered;
        write!(f, "{}: {reads} reads, {writes} writes, {trims} trims, {flushes} flushes", self.name)?;
        write!(f, "; {} failed", self.failed)?;
        if let Some(counters) = &self.latte {
            let Counters { hits, misses, front_writes, back_writes, promotions, flushes, lost, .. } = counters;
            write!(f, "; blocks: {hits} hits, {misses} misses, {front_writes} written in front, ")?;
            write!(f, "{back_writes} written behind, {promotions} copied in front, {flushes} flushed, {lost} lost")?;
        }
        match &self.unflushed {
            Some(why) => write!(f, "; NOT FLUSHED: {why}"),
            None => Ok(()),
        }
    }
}

impl VolumeEngine {
    /// Errors: those of the operating system.
    pub(crate) fn new(stacks: Vec<Stack>) -> std::io::Result<Self> {
        let infos = (0..).zip(&stacks).map(|(number, stack)| stack.info(VolumeId::new(number))).collect();
        Self::over(FrontEnds::new(infos)?, stacks)
    }

    fn over(fronts: FrontEnds, mut stacks: Vec<Stack>) -> std::io::Result<Self> {
        let mut sockets = Vec::new();
        for (volume, stack) in stacks.iter_mut().enumerate() {
            for (number, leg) in stack.legs.iter_mut().enumerate() {
                if let Storage::Remote(remote) = &mut leg.storage {
                    remote.namespace().register(fronts.registry(), FrontEnds::token(sockets.len()))?;
                    sockets.push((volume, number));
                }
            }
        }
        Ok(Self { fronts, stacks, sockets, began: Instant::now() })
    }

    /// The ways in for clients.
    pub fn fronts_mut(&mut self) -> &mut FrontEnds {
        &mut self.fronts
    }

    fn now(&self) -> SimTime {
        SimTime::ZERO + SimSpan::from_ns(self.began.elapsed().as_nanos() as u64)
    }

    /// Serves until `stop` says so; then brings everything to the back ends, and returns what was done.
    ///
    /// Errors: a front end that cannot begin, and the operating system's poll.
    pub fn run(mut self, mut stop: impl FnMut(Duration) -> bool) -> Result<Vec<VolumeReport>, EngineError> {
        self.fronts.start(Drives::NONE)?;
        let mut events = mio::Events::with_capacity(1024);
        let mut heard = Duration::ZERO;
        loop {
            let elapsed = self.began.elapsed();
            if stop(elapsed) {
                break;
            }
            let has_heard = events.iter().next().is_some();
            let (more, has_come) = self.turn(elapsed, &mut events);
            if has_heard || has_come {
                heard = elapsed;
            }
            // Orders under way outside wake the poll when they end, and may need this processor.
            let lingers = elapsed < heard + LINGER && !self.stacks.iter().any(Stack::is_busy);
            let timeout = if more || lingers { Duration::ZERO } else { self.sleep_time() };
            self.fronts.wait(&mut events, timeout).map_err(EngineError::Poll)?;
        }
        self.fronts.stop(Drives::NONE);
        self.finish(&mut events)
    }

    /// One turn; returns whether there is more to do at once, and whether anything has come.
    fn turn(&mut self, elapsed: Duration, events: &mut mio::Events) -> (bool, bool) {
        let releases = self.fronts.releases();
        let (sockets, stacks) = (&self.sockets, &mut self.stacks);
        let ready = |socket: usize| {
            if let Some(&(volume, leg)) = sockets.get(socket)
                && let Storage::Remote(remote) = &mut stacks[volume].legs[leg].storage
            {
                remote.ready();
            }
        };
        let mut more = self.fronts.turn(elapsed, events, Drives::NONE, ready);
        let now = SimTime::ZERO + SimSpan::from_ns(elapsed.as_nanos() as u64);
        let mut has_come = self.fronts.has_asked();
        self.stacks.iter_mut().for_each(|stack| has_come |= stack.turn(now, &mut self.fronts));
        self.take_in(now);
        self.fronts.send(Drives::NONE);
        more |= self.fronts.has_asked() || self.fronts.releases() != releases;
        (more, has_come)
    }

    /// Hands what was asked to the volumes. What is given up ends in its time.
    fn take_in(&mut self, now: SimTime) {
        let mut inbox = self.fronts.take_inbox();
        for inbound in inbox.drain(..) {
            match inbound {
                Inbound::Submit { front, tag, request, payload } => {
                    let stack = &mut self.stacks[request.volume.index()];
                    stack.submit(now, (Some(front), tag), request, payload, &mut self.fronts);
                }
                Inbound::GiveUp { .. } => {}
                Inbound::Control { front, tag, .. } => {
                    let reason = "the volume is no drive of a model".to_owned();
                    self.fronts.controlled(front, tag, Err(Refused::Control { reason }));
                }
            }
        }
        self.fronts.give_inbox(inbox);
    }

    fn sleep_time(&self) -> Duration {
        let elapsed = self.began.elapsed();
        let timer = self.fronts.wake_at().map(|at| at.saturating_sub(elapsed));
        let due = self.stacks.iter().filter_map(Stack::due).min();
        let due = due.map(|due| Duration::from_nanos(due.saturating_since(self.now()).as_ns()));
        let least = timer.into_iter().chain(due).min().unwrap_or(SLEEP_MAX).min(SLEEP_MAX);
        if least < SPIN_BELOW { Duration::ZERO } else { least - SPIN_MARGIN }
    }

    /// Flushes every volume, with what is under way before.
    fn finish(mut self, events: &mut mio::Events) -> Result<Vec<VolumeReport>, EngineError> {
        let until = self.began.elapsed() + LAST_FLUSH;
        let now = self.now();
        self.stacks.iter_mut().for_each(|stack| stack.flush(now, &mut self.fronts));
        while self.stacks.iter().any(Stack::is_busy) && self.began.elapsed() < until {
            self.turn(self.began.elapsed(), events);
            let timeout = self.sleep_time().min(Duration::from_millis(1));
            self.fronts.wait(events, timeout).map_err(EngineError::Poll)?;
        }
        let report = |mut stack: Stack| {
            let unflushed = match stack.take_own() {
                Some(Ok(())) => None,
                Some(Err(failure)) => Some(failure.to_string()),
                None => Some(format!("no answer for {} s", LAST_FLUSH.as_secs())),
            };
            let (answered, failed, latte) = (stack.answered, stack.failed, stack.counters().copied());
            VolumeReport { name: stack.name, answered, failed, latte, unflushed }
        };
        Ok(self.stacks.into_iter().map(report).collect())
    }
}
