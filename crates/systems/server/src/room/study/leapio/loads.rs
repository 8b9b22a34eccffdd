//! Loads of the study: programs that poll, databases that think, a search engine, and batch work beside it.

use flashyard_blk::{BlockRequest, Operation, TraceRecord};
use flashyard_kernel::Rng;
use flashyard_measure::{Pacing, StreamSpec};
use flashyard_units::{SimSpan, SimTime, VolumeId};
use flashyard_workload::{RequestSource, SourceError};

/// Bytes of a block.
const BLOCK: u64 = 4096;

/// Requests at random, with sizes and thinking of a program.
#[derive(Debug)]
pub(super) struct Program {
    rng: Rng,
    /// Blocks of its volume.
    blocks: u64,
    /// Blocks between the volume and what is read.
    behind: u64,
    read_share: f64,
    size: Size,
    /// Time of thinking before each request.
    thinks: SimSpan,
    thought: SimTime,
}

/// Sizes of a program's requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Size {
    /// So many blocks.
    Blocks(u64),
    /// Of index lookups: log-normal with the published median and mean.
    Search,
}

/// Median and mean size of an index lookup, and the greatest. Source: \[P\] sheet leapio §6; that the sizes are log-normal is \[A\].
const SEARCH_MEDIAN: f64 = 32.0 * 1024.0;
/// See [`SEARCH_MEDIAN`].
const SEARCH_MEAN: f64 = 36.0 * 1024.0;
/// See [`SEARCH_MEDIAN`].
const SEARCH_MOST: f64 = 7.0 * 1024.0 * 1024.0;

impl Size {
    fn draw(self, rng: &mut Rng) -> u64 {
        match self {
            Self::Blocks(blocks) => blocks,
            Self::Search => {
                // The mean of a log-normal variable is its median times e to half its variance.
                let sigma = libm::sqrt(2.0 * libm::log(SEARCH_MEAN / SEARCH_MEDIAN));
                let (radius, angle) = (1.0 - rng.unit(), rng.unit());
                let normal = libm::sqrt(-2.0 * libm::log(radius)) * libm::cos(2.0 * core::f64::consts::PI * angle);
                let bytes = (SEARCH_MEDIAN * libm::exp(sigma * normal)).min(SEARCH_MOST);
                libm::round(bytes / BLOCK as f64).max(1.0) as u64
            }
        }
    }
}

impl RequestSource for Program {
    fn next_request(&mut self) -> Result<Option<TraceRecord>, SourceError> {
        let count = self.size.draw(&mut self.rng);
        let operation = if self.rng.unit() < self.read_share { Operation::Read } else { Operation::Write };
        let first = self.behind + self.rng.below(self.blocks - count + 1);
        self.thought += self.thinks;
        let request = BlockRequest { operation, offset_bytes: first * BLOCK, len_bytes: (count * BLOCK) as u32 };
        Ok(Some(TraceRecord { arrival: self.thought, volume: 0, request }))
    }
}

/// Bytes in sequence at a rate: what compaction writes.
#[derive(Debug)]
struct Compaction {
    blocks: u64,
    next: u64,
    at: SimTime,
}

/// Blocks of a request of compaction: 128 KiB, and the time between two: 200 MB/s. \[A\]
const COMPACTED: u64 = 32;
/// See [`COMPACTED`].
const COMPACTION_PERIOD: SimSpan = SimSpan::from_us(655);

impl RequestSource for Compaction {
    fn next_request(&mut self) -> Result<Option<TraceRecord>, SourceError> {
        let first = self.next;
        self.next = (self.next + COMPACTED) % (self.blocks - COMPACTED);
        self.at += COMPACTION_PERIOD;
        let (operation, len_bytes) = (Operation::Write, (COMPACTED * BLOCK) as u32);
        let request = BlockRequest { operation, offset_bytes: first * BLOCK, len_bytes };
        Ok(Some(TraceRecord { arrival: self.at, volume: 0, request }))
    }
}

/// The load of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Load {
    /// 4 KiB at random in flight in each guest, of which so many percent are reads.
    Polling { guests: u32, depth: u32, read_percent: u32 },
    /// Clients of a database that read 4 KiB and think 20 us between.
    Database { clients: u32 },
    /// Eight clients that read 4 KiB and think 5 us, beside what compaction writes.
    DbBench,
    /// Eight lookups of an index in flight, perhaps beside batch work of the same guest.
    Search { batch: bool },
    /// One read of 4 KiB in flight, perhaps beside a guest that writes to the same drive, or to other channels of it.
    Neighbours { writes: bool, isolated: bool },
}

/// Time in which a service reads its map. \[A\]
pub(super) const RECOVERY: SimSpan = SimSpan::from_ms(20);
/// Thinking of a client of a database. \[A\]
const THINKS: SimSpan = SimSpan::from_us(20);
/// Thinking of a client of a database that polls, and clients. \[A\]
const POLLING_THINKS: SimSpan = SimSpan::from_us(5);
/// See [`POLLING_THINKS`].
const POLLING_CLIENTS: u32 = 8;
/// Lookups in flight. \[A\]
const LOOKUPS: u32 = 8;
/// Requests of batch work in flight, and blocks of each: 64 KiB. \[A\]
const BATCH: u32 = 32;
/// See [`BATCH`].
const BATCH_BLOCKS: u64 = 16;

impl Load {
    /// Guests.
    pub(super) fn guests(self) -> u32 {
        match self {
            Self::Polling { guests, .. } => guests,
            Self::Neighbours { .. } => 2,
            _ => 1,
        }
    }

    /// Streams whose latency is the result; the others are batch.
    pub(super) fn watched(self) -> usize {
        match self {
            Self::Polling { guests, .. } => guests as usize,
            Self::Database { clients } => clients as usize,
            Self::DbBench => POLLING_CLIENTS as usize,
            Self::Search { .. } | Self::Neighbours { .. } => 1,
        }
    }

    /// The streams, on virtual drives of `blocks`. Those that are watched read a version that lies `window` blocks behind.
    pub(super) fn streams(self, blocks: u64, window: u64, seed: u64) -> Vec<StreamSpec> {
        let program = |number: u32, volume: u16, read_share: f64, size: Size, thinks: SimSpan, depth: Option<u32>| {
            let rng = Rng::named(seed, &format!("leapio.{number}"));
            let behind = if number == 0 { window } else { 0 };
            let source = Program { rng, blocks, behind, read_share, size, thinks, thought: SimTime::ZERO };
            let pacing = depth.map_or(Pacing::Thinking, |depth| Pacing::Closed { depth });
            // A version is there when its service has read its map.
            let delay = if window > 0 { RECOVERY } else { SimSpan::ZERO };
            StreamSpec { delay, ..StreamSpec::new(VolumeId::new(volume), Box::new(source), pacing) }
        };
        let one = Size::Blocks(1);
        match self {
            Self::Polling { guests, depth, read_percent } => {
                let share = f64::from(read_percent) / 100.0;
                (0..guests).map(|guest| program(guest, guest as u16, share, one, SimSpan::ZERO, Some(depth))).collect()
            }
            Self::Database { clients } => {
                (0..clients).map(|number| program(number, 0, 1.0, one, THINKS, None)).collect()
            }
            Self::DbBench => {
                let client = |number| program(number, 0, 1.0, one, POLLING_THINKS, None);
                let compaction = Box::new(Compaction { blocks, next: 0, at: SimTime::ZERO });
                let compaction = StreamSpec::new(VolumeId::new(0), compaction, Pacing::Open);
                (0..POLLING_CLIENTS).map(client).chain([compaction]).collect()
            }
            Self::Search { batch } => {
                let search = program(0, 0, 1.0, Size::Search, SimSpan::ZERO, Some(LOOKUPS));
                let beside = || program(1, 0, 0.5, Size::Blocks(BATCH_BLOCKS), SimSpan::ZERO, Some(BATCH));
                std::iter::once(search).chain(batch.then(beside)).collect()
            }
            Self::Neighbours { writes, .. } => {
                let reader = program(0, 0, 1.0, one, SimSpan::ZERO, Some(1));
                let writer = || program(1, 1, 0.0, Size::Blocks(BATCH_BLOCKS), SimSpan::ZERO, Some(BATCH));
                std::iter::once(reader).chain(writes.then(writer)).collect()
            }
        }
    }

    pub(super) fn name(self) -> String {
        match self {
            Self::Polling { guests, depth, read_percent } => {
                format!("{guests} guests, 4 KiB at random, {read_percent} % reads, {depth} in flight")
            }
            Self::Database { clients } => format!("database of {clients} clients"),
            Self::DbBench => "polling database beside compaction".to_owned(),
            Self::Search { batch: false } => "search".to_owned(),
            Self::Search { batch: true } => "search beside batch".to_owned(),
            Self::Neighbours { writes: false, isolated: false } => "reads beside an idle guest".to_owned(),
            Self::Neighbours { writes: false, isolated: true } => {
                "reads beside an idle guest, channels apart".to_owned()
            }
            Self::Neighbours { writes: true, isolated: false } => "reads beside a guest that writes".to_owned(),
            Self::Neighbours { writes: true, isolated: true } => {
                "reads beside a guest that writes, channels apart".to_owned()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lookups_have_the_published_median_and_mean() {
        let mut rng = Rng::named(1, "test");
        let mut sizes: Vec<u64> = (0..100_000).map(|_| Size::Search.draw(&mut rng)).collect();
        sizes.sort_unstable();
        let mean = sizes.iter().sum::<u64>() as f64 * 4.0 / sizes.len() as f64;
        assert_eq!(sizes[sizes.len() / 2], 8);
        assert!((mean - 36.0).abs() < 0.5, "{mean}");
        assert!(sizes[0] >= 1 && sizes[sizes.len() - 1] <= 1792);
    }
}
