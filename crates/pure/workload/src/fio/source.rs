//! The requests of one clone of a job on one drive.

use super::draws::Draws;
use super::error::FioError;
use super::job::{FioJob, Pace, RandomGenerator};
use super::lfsr::ShiftRegister;
use super::passes::Passes;
use super::popular::{Distribution, Popular, ZipfSums};
use super::positions::Positions;
use super::seeds::Seeds;
use super::visited::Visited;
use crate::arrival::{Arrival, Clock};
use crate::source::{RequestSource, SourceError};
use flashyard_blk::{BlockRequest, Operation, TraceRecord};
use flashyard_kernel::Rng;
use flashyard_units::SimTime;
use std::ops::Range;

const OPERATIONS: [Operation; 3] = [Operation::Read, Operation::Write, Operation::Trim];

/// When a direction with a target may issue next.
#[derive(Clone, Debug)]
enum Meter {
    /// At once.
    Free,
    /// Not before the bytes asked for so far have had their time at the target.
    Linear { bytes_per_second: u64, bytes: u64 },
    /// At random moments.
    Poisson(Clock),
}

/// Requests of a job, those of fio in fio's order.
///
/// Invariant: requests begin inside the job's range and lie on the drive, and arrivals never go backwards. Arrivals are
/// the earliest moments that the targets allow; without a target they are zero.
#[derive(Clone, Debug)]
pub struct FioSource {
    passes: Passes,
    draws: Draws,
    meters: [Meter; 3],
    arrival: SimTime,
    /// Random moments of Poisson's targets.
    rng: Rng,
    state: State,
}

/// Where a job is in its course.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    New,
    InPass,
    BetweenPasses,
    Ended,
}

impl FioJob {
    /// The requests of clone `clone` (from 0) on a drive of `capacity` bytes. With `randrepeat=0`, and for the moments of
    /// Poisson's targets, the random numbers are those of `rng`.
    ///
    /// Errors: a range that does not fit the drive, rates that cannot be.
    pub fn source(&self, capacity: u64, clone: u32, rng: Rng) -> Result<FioSource, FioError> {
        self.source_with(capacity, clone, rng, &mut ZipfSums::default())
    }

    /// [`FioJob::source`] with sums that other sources have made.
    ///
    /// Errors: those of [`FioJob::source`].
    pub fn source_with(
        &self,
        capacity: u64,
        clone: u32,
        mut rng: Rng,
        sums: &mut ZipfSums,
    ) -> Result<FioSource, FioError> {
        let range = self.range(capacity, clone)?;
        let wrong = |error| FioError::new(self.line, "job", format!("{}: {error}", self.name));
        let mut meters = [Meter::Free, Meter::Free, Meter::Free];
        for (index, meter) in meters.iter_mut().enumerate().filter(|(index, _)| self.operations[*index]) {
            *meter = self.meter(index).map_err(wrong)?;
        }
        let seeds = Seeds::new(self, clone, &mut rng);
        let (size, io_size) = self.amounts(&range);
        let blocks = (range.end - range.start) / self.smallest();
        let positions = self.positions(&range, capacity, clone, &seeds, sums);
        Ok(FioSource {
            passes: Passes::new(self, size, io_size),
            draws: Draws::new(self, seeds, self.wide(blocks), positions),
            meters,
            arrival: SimTime::ZERO,
            rng,
            state: State::New,
        })
    }

    /// Whether the random numbers of the first pass, and those of later ones, have 64 bits. fio takes note that 32 bits are
    /// too few for the blocks when the first pass has its numbers already.
    fn wide(&self, blocks: u64) -> (bool, bool) {
        match self.generator {
            Some(generator) => {
                let is_wide = generator == RandomGenerator::Tausworthe64;
                (is_wide, is_wide)
            }
            None => {
                let is_even = matches!(self.distribution, Distribution::Random | Distribution::Zoned(_));
                (false, self.random && is_even && blocks > u64::from(u32::MAX))
            }
        }
    }

    fn positions(&self, range: &Range<u64>, whole: u64, clone: u32, seeds: &Seeds, sums: &mut ZipfSums) -> Positions {
        let span = range.end - range.start;
        let blocks = span / self.smallest();
        let mut popular = || {
            let block = self.sizes[0].smallest().min(self.sizes[1].smallest());
            let seed = seeds.popularity(&self.file_name(clone));
            Popular::new(&self.distribution, span.div_ceil(block), seed, sums)
        };
        let popular = if self.random { popular() } else { None };
        let shifts = self.random && popular.is_none() && self.generator == Some(RandomGenerator::Lfsr);
        Positions {
            begin: range.start,
            span,
            whole,
            ends: [range.start; 3],
            starts: [u64::MAX; 3],
            visited: (self.has_random_map() && !shifts).then(|| Visited::new(blocks)),
            register: shifts.then(|| ShiftRegister::new(blocks, seeds.blocks())),
            popular,
        }
    }

    fn meter(&self, index: usize) -> Result<Meter, crate::SpecError> {
        let smallest = self.sizes[index].smallest();
        let bytes_per_second = match self.rates[index] {
            None => return Ok(Meter::Free),
            Some(Pace::Bytes(bytes)) => bytes,
            Some(Pace::Requests(requests)) => requests.saturating_mul(smallest),
        };
        if !self.poisson {
            return Ok(Meter::Linear { bytes_per_second, bytes: 0 });
        }
        let arrival = Arrival::Poisson { per_second: bytes_per_second as f64 / smallest as f64 };
        arrival.validate()?;
        Ok(Meter::Poisson(arrival.start()))
    }
}

impl Meter {
    /// The earliest moment for the next request, of `len_bytes`.
    #[inline]
    fn next(&mut self, len_bytes: u32, rng: &mut Rng) -> Result<SimTime, SourceError> {
        match self {
            Self::Free => Ok(SimTime::ZERO),
            Self::Linear { bytes_per_second, bytes } => {
                let ps = u128::from(*bytes) * 1_000_000_000_000 / u128::from(*bytes_per_second);
                *bytes += u64::from(len_bytes);
                u64::try_from(ps).map(SimTime::from_ps).map_err(|_| SourceError::beyond_time())
            }
            Self::Poisson(clock) => clock.next(rng),
        }
    }
}

impl RequestSource for FioSource {
    #[inline]
    fn next_request(&mut self) -> Result<Option<TraceRecord>, SourceError> {
        loop {
            if self.state != State::InPass && !self.begin_pass() {
                return Ok(None);
            }
            let drawn = if self.passes.goes_on() { self.draws.next() } else { None };
            let Some(drawn) = drawn else {
                self.state = if self.passes.is_empty() { State::Ended } else { State::BetweenPasses };
                continue;
            };
            self.passes.count(drawn.direction, drawn.len);
            // Sizes have 32 bits.
            let len_bytes = drawn.len as u32;
            self.arrival = self.arrival.max(self.meters[drawn.direction].next(len_bytes, &mut self.rng)?);
            let request =
                BlockRequest { operation: OPERATIONS[drawn.direction], offset_bytes: drawn.offset, len_bytes };
            return Ok(Some(TraceRecord { arrival: self.arrival, volume: 0, request }));
        }
    }

    fn progress(&self) -> Option<f64> {
        self.passes.progress()
    }
}

impl FioSource {
    /// Begins a pass if there is one more.
    fn begin_pass(&mut self) -> bool {
        if self.state == State::Ended || !self.passes.begin(self.draws.is_at_end()) {
            self.state = State::Ended;
            return false;
        }
        self.draws.begin_pass(self.state == State::New);
        self.state = State::InPass;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::super::FioJobs;
    use super::*;
    // Named, because proptest's prelude has an `Rng` of its own.
    use flashyard_kernel::Rng;
    use proptest::prelude::*;

    const CAPACITY: u64 = 1 << 30;

    fn job(options: &str) -> FioJob {
        FioJobs::parse(&format!("[job]\n{options}\n")).expect("it is good").jobs.remove(0)
    }

    /// At most 200,000 requests of a clone.
    fn requests(options: &str, clone: u32) -> Vec<TraceRecord> {
        let rng = Rng::named(7, &format!("fio.{clone}"));
        let mut source = job(options).source(CAPACITY, clone, rng).expect("it is good");
        std::iter::from_fn(|| source.next_request().expect("time does not end here")).take(200_000).collect()
    }

    fn offsets(records: &[TraceRecord], operation: Operation) -> Vec<u64> {
        let of = records.iter().filter(|record| record.request.operation == operation);
        of.map(|record| record.request.offset_bytes).collect()
    }

    #[test]
    fn a_sequential_job_walks_its_range_and_wraps() {
        let found = offsets(&requests("rw=write\nbs=64k\nsize=256k\noffset=1m\nloops=2", 0), Operation::Write);
        let once: Vec<u64> = (0..4).map(|index| (1 << 20) + index * 65_536).collect();
        assert_eq!(found, [once.clone(), once].concat());
    }

    #[test]
    fn a_sequential_mix_walks_once_for_each_direction_and_ends_after_size_bytes() {
        let found = requests("rw=rw\nrwmixread=70\nsize=16m", 0);
        assert_eq!(found.len(), 4096);
        for operation in [Operation::Read, Operation::Write] {
            let walk = offsets(&found, operation);
            assert!(walk.iter().enumerate().all(|(index, &offset)| offset == index as u64 * 4096), "{operation:?}");
        }
        let share = offsets(&found, Operation::Read).len() as f64 / 4096.0;
        assert!((share - 0.7).abs() < 0.03, "{share} (seed 7)");
    }

    #[test]
    fn the_random_map_takes_each_block_once_whatever_its_direction() {
        let mut found: Vec<u64> =
            requests("rw=randrw\nsize=4m\noffset=8k", 0).iter().map(|record| record.request.offset_bytes).collect();
        found.sort_unstable();
        assert!(found.into_iter().eq((0..1024).map(|block| 8192 + block * 4096)));
        let free = requests("rw=randread\nsize=4m\nnorandommap", 0);
        let mut distinct = offsets(&free, Operation::Read);
        distinct.sort_unstable();
        distinct.dedup();
        // 1 - 1/e of the blocks.
        assert!((distinct.len() as f64 / 1024.0 - 0.632).abs() < 0.04, "{} (seed 7)", distinct.len());
    }

    #[test]
    fn passes_repeat_the_first_one_unless_a_seed_is_given() {
        let passes = |options: &str| {
            let found = offsets(&requests(options, 0), Operation::Read);
            let length = found.len() / 3;
            (found[..length].to_vec(), found[length..2 * length].to_vec(), found[2 * length..].to_vec())
        };
        let (first, second, third) = passes("rw=randread\nsize=4m\nloops=3");
        assert!(first == second && second == third && first.len() == 1024);
        for options in ["randseed=7", "randrepeat=0"] {
            let (first, second, third) = passes(&format!("rw=randread\nsize=4m\nloops=3\n{options}"));
            assert!(first != second && second != third, "{options}");
        }
    }

    #[test]
    fn requests_that_repeat_need_no_numbers_and_others_take_them() {
        let from = |options: &str, seed: u64| {
            let source = job(options).source(CAPACITY, 0, Rng::named(seed, "test")).expect("it is good");
            let mut source = source;
            let next = || source.next_request().expect("time does not end here");
            offsets(&std::iter::from_fn(next).collect::<Vec<_>>(), Operation::Read)
        };
        for options in ["", "allrandrepeat=1\nrandrepeat=0", "randseed=3"] {
            let options = format!("rw=randread\nsize=1m\n{options}");
            assert_eq!(from(&options, 1), from(&options, 2), "{options}");
        }
        assert_ne!(from("rw=randread\nsize=1m\nrandrepeat=0", 1), from("rw=randread\nsize=1m\nrandrepeat=0", 2));
        let anew = job("rw=randread\nsize=1m").drawn_anew();
        let first = |seed| anew.source(CAPACITY, 0, Rng::named(seed, "test")).map(|mut source| source.next_request());
        assert_ne!(first(1), first(2));
    }

    #[test]
    fn size_splits_come_out_in_their_shares_for_each_direction() {
        let found = requests("rw=randrw\nnorandommap\nbssplit=4k/50:64k/50,8k\nsize=512m", 0);
        let count = |operation, len| {
            found
                .iter()
                .filter(|record| record.request.operation == operation && record.request.len_bytes == len)
                .count()
        };
        let (small, large) = (count(Operation::Read, 4096) as f64, count(Operation::Read, 65_536) as f64);
        assert!((small / (small + large) - 0.5).abs() < 0.02, "{small} and {large} (seed 7)");
        assert_eq!(count(Operation::Write, 8192), offsets(&found, Operation::Write).len());
    }

    #[test]
    fn targets_space_requests_and_directions_keep_their_own() {
        let found = requests("rw=read\nrate_iops=1000\nsize=1m", 0);
        assert!(found.iter().enumerate().all(|(index, record)| record.arrival.as_ps() == index as u64 * 1_000_000_000));
        let bytes = requests("rw=write\nbs=64k\nrate=64m\nsize=64m", 0);
        assert_eq!(bytes[512].arrival, SimTime::from_ps(500_000_000_000));
        let poisson = requests("rw=read\nrate_iops=1000\nrate_process=poisson\nsize=400m", 0);
        let mean = poisson[99_999].arrival.as_ps() as f64 / 1e5;
        assert!((mean / 1e9 - 1.0).abs() < 0.02, "{mean} (seed 7)");
        let mixed = requests("rw=rw\nrate_iops=1000,\nsize=1m", 0);
        assert!(mixed.windows(2).all(|pair| pair[0].arrival <= pair[1].arrival));
    }

    #[test]
    fn clones_have_their_own_numbers_and_increments() {
        let options = "rw=randread\nsize=1m\nnumjobs=2\noffset_increment=10%";
        let (first, second) = (requests(options, 0), requests(options, 1));
        // A tenth of the drive, from the next block on.
        let step = (CAPACITY / 10).div_ceil(4096) * 4096;
        assert!(second.iter().all(|record| (step..step + (1 << 20)).contains(&record.request.offset_bytes)));
        let moved: Vec<u64> = offsets(&first, Operation::Read).iter().map(|offset| offset + step).collect();
        assert_ne!(moved, offsets(&second, Operation::Read));
    }

    #[test]
    fn a_job_ends_after_its_bytes_or_requests_and_a_timed_one_does_not() {
        assert_eq!(requests("size=1m\nio_size=2m", 0).len(), 512);
        assert_eq!(requests("size=1m\nnumber_ios=10", 0).len(), 10);
        assert_eq!(requests("size=1m\ntime_based\nruntime=1", 0).len(), 200_000);
    }

    #[test]
    fn a_range_beyond_the_drive_is_refused_with_both_sizes() {
        let error = |options: &str| job(options).range(CAPACITY, 0).expect_err("it is too large").to_string();
        assert_eq!(
            error("size=2g"),
            "line 1: size: job job: 2147483648 bytes from byte 0 are not on a drive of 1073741824 bytes, give a \
             smaller size or offset, or percentages"
        );
        assert!(error("size=600m\noffset=50%").contains("are not on a drive"));
        // A share ends with the drive.
        assert_eq!(job("size=60%\noffset=50%").range(CAPACITY, 0), Ok(CAPACITY / 2..CAPACITY));
        assert!(error("bs=8k\nsize=4k").contains("requests of 8192 bytes do not fit into 4096 bytes"));
    }

    #[test]
    fn shares_of_a_drive_begin_at_a_block() {
        let range = |options: &str, clone| job(options).range(CAPACITY, clone);
        assert_eq!(range("offset=50%", 0), Ok(CAPACITY / 2..CAPACITY));
        let last = range("bs=64k\noffset=90%\nsize=10%", 0).expect("it loses its end");
        assert!(last.start.is_multiple_of(65_536) && last.end == CAPACITY, "{last:?}");
        assert_eq!(range("offset=1000\nsize=1m", 0), Ok(1000..1000 + (1 << 20)));
        let second = range("bs=8k\nnumjobs=2\noffset_increment=1%\nsize=1m", 1).expect("it fits");
        assert_eq!(second.start, (CAPACITY / 100).div_ceil(8192) * 8192);
    }

    proptest! {
        #[test]
        fn every_request_begins_inside_its_range_and_ends_on_the_drive(
            mode in prop::sample::select(vec![
                "read", "randread", "randrw", "rw", "randtrim", "trimwrite", "randtrimwrite", "randread:4", "write:-8k",
            ]),
            distribution in prop::sample::select(vec![
                "random", "zipf:1.2", "pareto:0.3", "normal:20", "zoned:70/20:30/80",
            ]),
            offset in 0_u64..1 << 20, size in 65_536_u64..1 << 22, clone in 0_u32..3, seed in any::<u64>(),
            extra in prop::sample::select(vec![
                "", "randrepeat=0", "norandommap", "random_generator=lfsr", "percentage_random=40", "iodepth=8",
                "bs_is_seq_rand=1", "rw_sequencer=identical",
            ]),
        ) {
            let random = mode.starts_with("rand");
            let distribution = if random { format!("random_distribution={distribution}") } else { String::new() };
            let options = format!(
                "rw={mode}\nbssplit=4k/30:24k,12k/50:64k/50\noffset={offset}\nsize={size}\noffset_increment=9000\n\
                 loops=2\nnumjobs=3\nioengine=libaio\n{extra}\n{distribution}"
            );
            let job = job(&options);
            let range = job.range(CAPACITY, clone).expect("it fits");
            let mut source = job.source(CAPACITY, clone, Rng::named(seed, "test")).expect("it is good");
            let mut bytes = 0;
            while let Some(record) = source.next_request().expect("time does not end here") {
                let end = record.request.end_bytes().expect("it ends");
                prop_assert!(range.contains(&record.request.offset_bytes) && end <= CAPACITY, "{:?}", record);
                bytes += u64::from(record.request.len_bytes);
            }
            // A job may write all that it trims.
            prop_assert!(bytes <= 4 * (size + 65_536), "{} of {}", bytes, size);
        }
    }
}
