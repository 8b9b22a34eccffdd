//! The queue logic of a root port inside a GPU: speculative reads ahead of queued loads, as far as the expander's load allows, and
//! stores that complete at once.
//!
//! Loads come into the queue of speculative reads, and into the memory queue from there. Stores have places in the memory queue alone \[P\].
//! Requests that find no place wait before the port in the order of their arrival \[A\].
//!
//! Source: \[P\] sheet micro-cxl-gpu §3.2 to §3.5; readings and numbers that the sheet marks \[A\] are marked here.

use crate::banks::Banks;
use crate::expander::MediaExpander;
use crate::stores::StoreStack;
use flashyard_cxl::{CACHE_LINE_BYTES, Completes, DevLoad, Memory, MemoryAccess, Transaction};
use flashyard_memory::{Beside, Device, Expander, Hinter, MEMORY_QUEUE, PathConfig, ReadAhead, Served};
use flashyard_units::{SimSpan, SimTime};
use std::collections::VecDeque;

/// Entries of the memory queue, and of the queue of speculative reads. \[P\]
const QUEUE: usize = MEMORY_QUEUE;
/// A store counts as late after so many times the median time of one. \[A\]
const LATE: u64 = 2;
/// Times of stores that the median is taken of. \[A\]
const TIMES: usize = 15;

/// Memory at the end of a path.
pub(crate) enum Far {
    /// DRAM.
    Dram(Box<Banks>),
    /// Another medium, behind DRAM of its own.
    Media(Box<MediaExpander>),
}

impl Device for Far {
    fn serve(&mut self, now: SimTime, access: &MemoryAccess) -> Served {
        match self {
            Self::Dram(dram) => dram.serve(now, access),
            Self::Media(media) => media.serve(now, access),
        }
    }
}

/// A request of a thread, or of the flusher.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Asked {
    pub(crate) line: u64,
    pub(crate) is_store: bool,
    /// The thread that waits for its end.
    pub(crate) thread: Option<u32>,
    /// When it came to the port.
    pub(crate) at: SimTime,
}

/// An answer of the device, when it has come back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) asked: Asked,
    pub(crate) sent: SimTime,
}

/// Answer to a thread that asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reply {
    /// It is done by then.
    Done(SimTime),
    /// Its answer comes.
    Waits,
}

/// Counts of a port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PortCounters {
    /// Hints that were sent.
    pub hints: u64,
    /// Lines in them.
    pub hinted_lines: u64,
    /// Requests that found all queues full.
    pub refused: u64,
    /// Stores that were kept in the GPU's memory.
    pub diverted: u64,
    /// Lines that this took.
    pub diverted_lines: u64,
    /// Loads of lines that were kept there.
    pub kept_hits: u64,
    /// Stores that were written from there later.
    pub flushed: u64,
    /// Time for which the memory queue was full.
    pub full: SimSpan,
    /// Time of loads in the queues of the port, all together; then over the path and at the device.
    pub loads_queued: SimSpan,
    /// See `loads_queued`.
    pub loads_away: SimSpan,
    /// Time of stores over the path and at the device, all together: as long they take a place of the memory queue.
    pub stores_away: SimSpan,
}

/// The queues of a port beside a load. Requests that wait before the port are in none of them. \[P\]
struct Queues<'a> {
    under_way: &'a [u64],
    queue: &'a VecDeque<Asked>,
}

impl Beside for Queues<'_> {
    fn prior(&self, from: u64, to: u64) -> usize {
        self.under_way.iter().filter(|&&at| (from..to).contains(&at)).count()
    }

    fn future(&self, from: u64, to: u64) -> usize {
        self.queue.iter().filter(|asked| (from..to).contains(&asked.line)).count()
    }
}

/// A root port with its queues, and the expander behind it.
pub(crate) struct RootPort {
    hinter: Hinter,
    pub(crate) memory: Expander<Far>,
    path: PathConfig,
    /// Loads whose hints were sent, in the order of arrival; then requests that found no place.
    queue: VecDeque<Asked>,
    waiting: VecDeque<Asked>,
    /// Lines of requests that the device has.
    under_way: Vec<u64>,
    stores: Option<StoreStack>,
    /// Whether the kernel has ended: what is kept is written in the background then, and not in its time.
    is_over: bool,
    /// Times of the last stores, and how many were timed.
    times: [SimSpan; TIMES],
    timed: usize,
    /// When the oldest stores under way were sent.
    sent_stores: VecDeque<SimTime>,
    full_since: Option<SimTime>,
    pub(crate) counters: PortCounters,
    /// Answers that the machine is to deliver, and threads that need not wait for one.
    pub(crate) answers: Vec<(SimTime, Answer)>,
    pub(crate) goes_on: Vec<u32>,
    /// Requests that were sent or flushed, for tests.
    #[cfg(test)]
    log: Vec<(tests::Stage, Asked)>,
}

impl RootPort {
    pub(crate) fn new(read_ahead: ReadAhead, stores: Option<StoreStack>, path: PathConfig, far: Far) -> Self {
        Self {
            hinter: Hinter::new(read_ahead),
            memory: Expander::new(path, far),
            path,
            queue: VecDeque::with_capacity(QUEUE),
            waiting: VecDeque::new(),
            under_way: Vec::with_capacity(QUEUE),
            stores,
            is_over: false,
            times: [SimSpan::ZERO; TIMES],
            timed: 0,
            sent_stores: VecDeque::new(),
            full_since: None,
            counters: PortCounters::default(),
            answers: Vec::new(),
            goes_on: Vec::new(),
            #[cfg(test)]
            log: Vec::new(),
        }
    }

    /// A request of a thread at `now`.
    pub(crate) fn ask(&mut self, now: SimTime, line: u64, is_store: bool, thread: u32) -> Reply {
        let is_slow = self.is_slow(now);
        let has_place = self.has_place(is_store);
        if let Some(stores) = &mut self.stores {
            if stores.holds(line) {
                self.counters.diverted += u64::from(is_store);
                self.counters.kept_hits += u64::from(!is_store);
                let done = stores.access(now, line);
                return Reply::Done(if is_store { now } else { done });
            }
            if is_store && (is_slow || !has_place) && stores.put(line) {
                self.counters.diverted += 1;
                self.counters.diverted_lines += 1;
                // Its request is released at once, as that of a store to the GPU's own memory.
                stores.access(now, line);
                return Reply::Done(now);
            }
        }
        // The thread goes on while a store is on its way.
        let goes_on = is_store && has_place;
        let asked = Asked { line, is_store, thread: (!goes_on).then_some(thread), at: now };
        self.counters.refused += u64::from(!has_place);
        self.waiting.push_back(asked);
        if has_place {
            self.send_on(now);
        }
        if goes_on { Reply::Done(now) } else { Reply::Waits }
    }

    /// Whether a request finds a place in the queue that it comes into.
    fn has_place(&self, is_store: bool) -> bool {
        let taken = if is_store { self.under_way.len() } else { self.queue.len() };
        self.waiting.is_empty() && taken < QUEUE
    }

    /// Takes requests into their queues and sends them, as far as these have room.
    fn send_on(&mut self, now: SimTime) {
        loop {
            while self.queue.len() < QUEUE
                && let Some(asked) = self.waiting.pop_front_if(|asked| !asked.is_store)
            {
                self.hint(now, asked.line);
                self.queue.push_back(asked);
            }
            if self.under_way.len() >= QUEUE {
                break;
            }
            // Loads that came before a store have left the queue before it.
            let Some(mut asked) = self.queue.pop_front().or_else(|| self.waiting.pop_front()) else { break };
            if asked.is_store {
                // It has its place now.
                self.goes_on.extend(asked.thread.take());
            }
            self.send(now, asked);
        }
        let is_full = self.under_way.len() >= QUEUE;
        match self.full_since {
            None if is_full => self.full_since = Some(now),
            Some(since) if !is_full => {
                self.counters.full += now.since(since);
                self.full_since = None;
            }
            _ => {}
        }
    }

    fn send(&mut self, now: SimTime, asked: Asked) {
        let operation = if asked.is_store { Transaction::Store } else { Transaction::Load };
        let access = MemoryAccess::lines(operation, asked.line * CACHE_LINE_BYTES, 1);
        let Completes::At(at) = self.memory.access(now, 0, &access) else { return };
        #[cfg(test)]
        self.log.push((tests::Stage::Sent, asked));
        self.under_way.push(asked.line);
        let away = at.since(now);
        if asked.is_store {
            self.sent_stores.push_back(now);
            self.counters.stores_away += away;
        } else {
            self.counters.loads_queued += now.since(asked.at);
            self.counters.loads_away += away;
        }
        self.answers.push((at, Answer { asked, sent: now }));
    }

    /// An answer has come back.
    pub(crate) fn answered(&mut self, now: SimTime, answer: &Answer) {
        let Some(place) = self.under_way.iter().position(|&line| line == answer.asked.line) else { return };
        if answer.asked.is_store {
            let took = now.since(answer.sent);
            self.times[self.timed % TIMES] = took;
            self.timed += 1;
            if let Some(oldest) = self.sent_stores.iter().position(|&sent| sent == answer.sent) {
                self.sent_stores.remove(oldest);
            }
        }
        self.under_way.swap_remove(place);
        // An answer carries the load of the device when it left.
        let load = match self.memory.device() {
            Far::Dram(_) => DevLoad::Light,
            Far::Media(media) => {
                media.load_at(SimTime::from_ps(now.as_ps().saturating_sub(self.path.one_way().as_ps())))
            }
        };
        self.hinter.heard(load);
        self.send_on(now);
        self.flush(now);
    }

    /// Hints at the window of a load.
    fn hint(&mut self, now: SimTime, line: u64) {
        let at = now + self.path.one_way();
        let Self { hinter, memory, under_way, queue, counters, .. } = self;
        hinter.hint(line, &Queues { under_way, queue }, |first, end| {
            counters.hints += 1;
            counters.hinted_lines += end - first;
            memory.carry_hint(first, end);
            if let Far::Media(media) = memory.device_mut() {
                media.hint(at, first, end - first);
            }
        });
    }

    /// Whether stores are kept back: the device is busy, or its answers are late.
    fn is_slow(&self, now: SimTime) -> bool {
        if self.hinter.load() >= DevLoad::Moderate {
            return true;
        }
        let Some(&oldest) = self.sent_stores.front() else { return false };
        let mut times = self.times;
        times.sort_unstable();
        self.timed >= TIMES && now.since(oldest) > times[TIMES / 2] * LATE
    }

    /// Lines that are still kept stay so.
    pub(crate) fn stop_flushing(&mut self) {
        self.is_over = true;
    }

    /// Writes what was kept back, when the device has recovered and the queues have room to spare: in the background, so that requests of
    /// threads find places. \[P\] [A] half of each queue
    fn flush(&mut self, now: SimTime) {
        let has_room = self.under_way.len() < QUEUE / 2 && self.queue.len() < QUEUE / 2;
        if self.is_over || self.hinter.load() > DevLoad::Optimal || !has_room {
            return;
        }
        if let Some(line) = self.stores.as_mut().and_then(StoreStack::pop) {
            self.counters.flushed += 1;
            let asked = Asked { line, is_store: true, thread: None, at: now };
            #[cfg(test)]
            self.log.push((tests::Stage::Flushed, asked));
            self.send(now, asked);
        }
    }

    /// Kept stores, at the end.
    pub(crate) fn kept(&self) -> usize {
        self.stores.as_ref().map_or(0, StoreStack::len)
    }
}

#[cfg(test)]
mod tests;
