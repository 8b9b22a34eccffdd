//! The requests of one clone of a job on one drive.

use super::error::FioError;
use super::job::{Extent, FioJob, Pace};
use crate::address::{AddressPattern, Placer};
use crate::arrival::{Arrival, Clock};
use crate::sizes::{SizeMix, Sizes};
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

#[derive(Clone, Debug)]
struct Lane {
    sizes: Sizes,
    /// Index into the placers: random directions of one alignment share theirs, and with it the random map.
    placer: usize,
    meter: Meter,
}

/// Requests of a job.
///
/// Invariant: requests lie inside the job's range, and arrivals never go backwards. Arrivals are the earliest
/// moments that the targets allow; without a target they are zero.
#[derive(Clone, Debug)]
pub struct FioSource {
    begin: u64,
    lanes: [Option<Lane>; 3],
    placers: Vec<Placer>,
    /// Share of reads where there are reads and writes.
    read_share: f64,
    arrival: SimTime,
    rng: Rng,
    /// Bytes and requests still to come.
    bytes_left: u64,
    requests_left: u64,
}

impl FioJob {
    /// The bytes that clone `clone` (from 0) addresses on a drive of `capacity` bytes.
    ///
    /// Errors: a range that does not fit the drive, or the largest request.
    pub fn range(&self, capacity: u64, clone: u32) -> Result<Range<u64>, FioError> {
        let wrong = |message: String| FioError::new(self.line, "size", format!("job {}: {message}", self.name));
        let step = self.offset_increment.of(capacity).saturating_mul(u64::from(clone));
        let exact = self.offset.of(capacity).saturating_add(step);
        let used = || self.sizes.iter().zip(self.operations).filter(|(_, used)| *used).map(|(sizes, _)| sizes);
        // A share of a drive need not begin at a block: it begins at the next one, and may lose its end to that.
        let is_share = [self.offset, self.offset_increment].iter().any(|place| matches!(place, Extent::Percent(_)));
        let block = u64::from(used().map(smallest).min().unwrap_or(1));
        let begin = if is_share { exact.div_ceil(block).saturating_mul(block) } else { exact };
        let rest = capacity.saturating_sub(begin);
        let size = self.size.map_or(rest, |size| size.of(capacity));
        let size = if size > rest && size - rest <= begin - exact { rest } else { size };
        if size > rest || size == 0 {
            return Err(wrong(format!(
                "{size} bytes from byte {begin} are not on a drive of {capacity} bytes, give a smaller size or offset, \
                 or percentages"
            )));
        }
        let largest = u64::from(used().map(largest).max().unwrap_or(0));
        if largest > size {
            return Err(wrong(format!("requests of {largest} bytes do not fit into {size} bytes, give a larger size")));
        }
        Ok(begin..begin + size)
    }

    /// Bytes that a clone moves before it ends; `None` when only time or a number of requests ends it.
    fn bytes(&self, range: &Range<u64>, capacity: u64) -> Option<u64> {
        if self.time_based {
            return None;
        }
        let once = self.io_size.map_or(range.end - range.start, |bytes| bytes.of(capacity));
        Some(once.saturating_mul(self.loops))
    }

    /// The requests of clone `clone` (from 0) on a drive of `capacity` bytes, with the random numbers of `rng`.
    ///
    /// Errors: a range that does not fit the drive, sizes or rates that cannot be.
    pub fn source(&self, capacity: u64, clone: u32, rng: Rng) -> Result<FioSource, FioError> {
        let range = self.range(capacity, clone)?;
        let span = range.end - range.start;
        let wrong = |error| FioError::new(self.line, "job", format!("{}: {error}", self.name));
        let mut placers: Vec<(u64, Placer)> = Vec::new();
        let mut lanes: [Option<Lane>; 3] = [None, None, None];
        for (index, lane) in lanes.iter_mut().enumerate().filter(|(index, _)| self.operations[*index]) {
            let mix = &self.sizes[index];
            mix.validate(span).map_err(wrong)?;
            let alignment = u64::from(smallest(mix));
            let shared = placers.iter().position(|placer| self.random && placer.0 == alignment);
            let placer = shared.unwrap_or(placers.len());
            if shared.is_none() {
                let pattern = self.pattern();
                pattern.validate().map_err(wrong)?;
                placers.push((alignment, pattern.prepare(span, alignment)));
            }
            let sizes = mix.prepare(|len_bytes| Placer::places(span, alignment, len_bytes));
            *lane = Some(Lane { sizes, placer, meter: self.meter(index, alignment).map_err(wrong)? });
        }
        Ok(FioSource {
            begin: range.start,
            lanes,
            placers: placers.into_iter().map(|placer| placer.1).collect(),
            read_share: self.read_percent as f64 / 100.0,
            arrival: SimTime::ZERO,
            rng,
            bytes_left: self.bytes(&range, capacity).unwrap_or(u64::MAX),
            requests_left: self.requests.unwrap_or(u64::MAX),
        })
    }

    fn pattern(&self) -> AddressPattern {
        match (&self.distribution, self.random, self.random_map) {
            (_, false, _) => AddressPattern::Sequential { start: 0 },
            (Some(distribution), ..) => distribution.clone(),
            (None, true, true) => AddressPattern::Once,
            (None, true, false) => AddressPattern::Uniform,
        }
    }

    fn meter(&self, index: usize, smallest: u64) -> Result<Meter, crate::SpecError> {
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

fn lengths(sizes: &SizeMix) -> Vec<u32> {
    match sizes {
        SizeMix::Fixed(size) => vec![*size],
        SizeMix::Weighted(sizes) => sizes.iter().filter(|entry| entry.1 > 0.0).map(|entry| entry.0).collect(),
        SizeMix::Mean(_) => unreachable!("no option of a job file makes a mean"),
    }
}

fn smallest(sizes: &SizeMix) -> u32 {
    lengths(sizes).into_iter().min().unwrap_or(4096)
}

fn largest(sizes: &SizeMix) -> u32 {
    lengths(sizes).into_iter().max().unwrap_or(0)
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
        if self.bytes_left == 0 || self.requests_left == 0 {
            return Ok(None);
        }
        let rng = &mut self.rng;
        let index = match &self.lanes {
            [Some(_), Some(_), _] => usize::from(rng.unit() >= self.read_share),
            [Some(_), ..] => 0,
            [_, Some(_), _] => 1,
            _ => 2,
        };
        let Some(lane) = &mut self.lanes[index] else { return Ok(None) };
        let size = lane.sizes.draw(rng);
        let offset_bytes = self.begin + self.placers[lane.placer].place(size, rng);
        self.arrival = self.arrival.max(lane.meter.next(size.len_bytes, rng)?);
        self.bytes_left = self.bytes_left.saturating_sub(u64::from(size.len_bytes));
        self.requests_left -= 1;
        let request = BlockRequest { operation: OPERATIONS[index], offset_bytes, len_bytes: size.len_bytes };
        Ok(Some(TraceRecord { arrival: self.arrival, volume: 0, request }))
    }
}

#[cfg(test)]
mod tests {
    use super::super::FioJobs;
    use super::*;
    // Named, because proptest's prelude has an `Rng` of its own.
    use flashyard_kernel::Rng;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

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

    /// Requests for each block, most first.
    fn popularity(options: &str) -> Vec<u64> {
        let mut counts = BTreeMap::new();
        for offset in offsets(&requests(options, 0), Operation::Read) {
            *counts.entry(offset).or_insert(0_u64) += 1;
        }
        let mut counts: Vec<u64> = counts.into_values().collect();
        counts.sort_unstable_by(|a, b| b.cmp(a));
        counts
    }

    #[test]
    fn distributions_make_blocks_as_popular_as_fio_makes_them() {
        // Shares of the most popular blocks among 1024, as fio 3.33 wrote them to an I/O log in 20,480 requests:
        // zipf:1.2 4657 and 2076, zipf:0.8 1284 and 810, pareto:0.2 7763 and 784. [C]
        let golden = [("zipf:1.2", [4657.0, 2076.0]), ("zipf:0.8", [1284.0, 810.0]), ("pareto:0.2", [7763.0, 784.0])];
        for (distribution, published) in golden {
            let options = format!("rw=randread\nsize=4m\nio_size=800m\nrandom_distribution={distribution}");
            let found = popularity(&options);
            for (count, published) in found.iter().zip(published) {
                let share = *count as f64 / 200_000.0;
                let (published, deviation) = (published / 20_480.0, f64::sqrt(published) / 20_480.0);
                // fio's draw is an approximation: two percent besides the chance of its 20,480 requests.
                let bound = 4.0 * deviation + 0.02 * published;
                assert!((share - published).abs() < bound, "{distribution}: {share} against {published} (seed 7)");
            }
        }
    }

    #[test]
    fn size_splits_come_out_in_their_shares_for_each_direction() {
        let found = requests("rw=randrw\nbssplit=4k/50:64k/50,8k\nsize=512m", 0);
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
        let options = "rw=randread\nsize=1m\noffset_increment=10%";
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
        assert!(error("size=60%\noffset=50%").contains("are not on a drive"));
        assert!(error("bs=8k\nsize=4k").contains("requests of 8192 bytes do not fit into 4096 bytes"));
    }

    #[test]
    fn shares_of_a_drive_begin_at_a_block() {
        let range = |options: &str, clone| job(options).range(CAPACITY, clone);
        assert_eq!(range("offset=50%", 0), Ok(CAPACITY / 2..CAPACITY));
        let last = range("bs=64k\noffset=90%\nsize=10%", 0).expect("it loses its end");
        assert!(last.start.is_multiple_of(65_536) && last.end == CAPACITY, "{last:?}");
        assert_eq!(range("offset=1000\nsize=1m", 0), Ok(1000..1000 + (1 << 20)));
        let second = range("bs=8k\noffset_increment=1%\nsize=1m", 1).expect("it fits");
        assert_eq!(second.start, (CAPACITY / 100).div_ceil(8192) * 8192);
    }

    proptest! {
        #[test]
        fn every_request_lies_inside_its_range(
            mode in prop::sample::select(vec!["read", "randread", "randrw", "rw", "randtrim"]),
            distribution in prop::sample::select(vec!["random", "zipf:1.2", "pareto:0.3", "normal:20", "zoned:70/20:30/80"]),
            offset in 0_u64..1 << 20, size in 65_536_u64..1 << 22, clone in 0_u32..3, seed in any::<u64>(),
        ) {
            let random = mode.starts_with("rand");
            let distribution = if random { format!("random_distribution={distribution}") } else { String::new() };
            let options = format!(
                "rw={mode}\nbssplit=4k/30:24k,12k/50:64k/50\noffset={offset}\nsize={size}\noffset_increment=9000\n\
                 loops=2\n{distribution}"
            );
            let job = job(&options);
            let range = job.range(CAPACITY, clone).expect("it fits");
            let mut source = job.source(CAPACITY, clone, Rng::named(seed, "test")).expect("it is good");
            let mut bytes = 0;
            while let Some(record) = source.next_request().expect("time does not end here") {
                let end = record.request.end_bytes().expect("it ends");
                prop_assert!(range.contains(&record.request.offset_bytes) && end <= range.end, "{:?}", record);
                bytes += u64::from(record.request.len_bytes);
            }
            prop_assert!(bytes >= 2 * size && bytes < 2 * size + 65_536, "{} of {}", bytes, size);
        }
    }
}
