//! When a pass ends, and whether another one follows.
//!
//! fio counts a job's bytes twice. All of its passes together may move `loops` times its bytes; one pass may queue them
//! once. An engine that waits completes requests without queueing them, so the second count stays at zero: its pass ends
//! when no offset is left, and a job without a random map makes a single long pass of all its loops.
//! \[C\] fio 3.33, backend.c

use super::job::FioJob;

/// The course of a job from pass to pass.
#[derive(Clone, Debug)]
pub(super) struct Passes {
    /// Bytes of the range that a pass moves, and those of `io_size`.
    size: u64,
    io_size: Option<u64>,
    loops: u64,
    loops_left: u64,
    requests: Option<u64>,
    time_based: bool,
    largest: u64,
    /// Which directions count towards the bytes of the job.
    counted: [bool; 3],
    /// Which directions are queued by the engine.
    queued: [bool; 3],
    trims_and_writes: bool,
    /// Writes anywhere without a memory may go on to `io_size` bytes in a pass.
    to_io_size: bool,
    moved: [u64; 3],
    made: u64,
    /// Of the present pass.
    queued_bytes: u64,
    may_queue: u64,
    is_empty: bool,
}

impl Passes {
    /// The course of `job` over a range of which a pass moves `size` bytes.
    pub(super) fn new(job: &FioJob, size: u64, io_size: Option<u64>) -> Self {
        let [reads, writes, trims] = job.operations;
        Self {
            size,
            io_size,
            loops: job.loops,
            loops_left: job.loops,
            requests: job.requests,
            time_based: job.time_based,
            largest: job.sizes.iter().map(super::lengths::BlockSizes::largest).max().unwrap_or(0),
            counted: [reads, writes, trims && !reads && !writes],
            queued: std::array::from_fn(|direction| job.queues(direction)),
            trims_and_writes: job.trims_and_writes(),
            to_io_size: writes && job.random && !job.has_random_map(),
            moved: [0; 3],
            made: 0,
            queued_bytes: 0,
            may_queue: 0,
            is_empty: true,
        }
    }

    fn limit(&self) -> u64 {
        self.io_size.unwrap_or(self.size)
    }

    fn made_all(&self) -> bool {
        self.requests.is_some_and(|requests| self.made >= requests.saturating_mul(self.loops))
    }

    /// Begins a pass if there is one more. `at_end` says that the last one found no offset.
    pub(super) fn begin(&mut self, at_end: bool) -> bool {
        if !self.another(at_end) {
            return false;
        }
        (self.queued_bytes, self.is_empty) = (0, true);
        self.may_queue = if self.to_io_size { self.size.max(self.io_size.unwrap_or(0)) } else { self.size };
        // Each byte is trimmed and written. fio doubles the number of requests once for each pass.
        if self.trims_and_writes {
            self.may_queue = self.may_queue.saturating_add(self.limit().saturating_mul(self.loops));
            self.requests = self.requests.map(|requests| requests.saturating_mul(2));
        }
        true
    }

    fn another(&mut self, at_end: bool) -> bool {
        if self.time_based {
            return true;
        }
        if self.loops_left > 0 {
            self.loops_left -= 1;
            return true;
        }
        // Bytes may be missing after all loops: `io_size` above `size`, or a pass that ended early.
        let missing = self.limit().saturating_sub(self.moved.iter().sum());
        !self.made_all() && missing > 0 && missing >= self.largest && (!at_end || self.io_size.is_some())
    }

    /// Share of the job's bytes or requests that was moved; `None` for a job that ends by time.
    pub(super) fn progress(&self) -> Option<f64> {
        if self.time_based {
            return None;
        }
        let share = |done: u64, all: u64| done as f64 / all.saturating_mul(self.loops).max(1) as f64;
        let of_bytes = share(self.moved.iter().sum(), self.limit());
        Some(of_bytes.max(self.requests.map_or(0.0, |requests| share(self.made, requests))).min(1.0))
    }

    /// Whether the present pass goes on.
    #[inline]
    pub(super) fn goes_on(&self) -> bool {
        if self.time_based {
            return true;
        }
        let counted = self.moved.iter().zip(self.counted).filter(|(_, counted)| *counted).map(|(bytes, _)| bytes);
        counted.sum::<u64>() < self.limit().saturating_mul(self.loops)
            && !self.made_all()
            && self.queued_bytes < self.may_queue
    }

    /// Counts a request.
    #[inline]
    pub(super) fn count(&mut self, direction: usize, len: u64) {
        self.moved[direction] += len;
        self.made += 1;
        self.is_empty = false;
        if self.queued[direction] {
            self.queued_bytes += len;
        }
    }

    /// Whether the present pass made no request: fio ends a job that moves nothing.
    pub(super) fn is_empty(&self) -> bool {
        self.is_empty
    }
}
