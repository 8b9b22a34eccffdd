//! An expander of flash or other media: internal DRAM in frames of 4 KiB whose sectors of 256 bytes are filled one by one, and the
//! load that its answers carry.
//!
//! Sectors are sent from the medium alone. Flash senses their page once, as long as its die keeps it in the register.
//!
//! Source: sheet micro-cxl-gpu §3.2 (hints), §7 (frames and sectors, \[A\]).

use crate::banks::Banks;
use flashyard_cache::{Policy, PolicyKind};
use flashyard_cxl::{CACHE_LINE_BYTES, DevLoad, MemoryAccess, Transaction};
use flashyard_memory::{Device, DeviceQueue, DramConfig, Medium, MediumConfig, MemoryError, Served};
use flashyard_units::{Named, SimSpan, SimTime};

/// Lines of a frame, and of a sector.
const FRAME_LINES: u64 = 64;
const SECTOR_LINES: u64 = 4;
const SECTOR_BYTES: u32 = (SECTOR_LINES * CACHE_LINE_BYTES) as u32;
const SECTORS: usize = (FRAME_LINES / SECTOR_LINES) as usize;

/// The part of the data that a hint brings into internal DRAM.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum HintFill {
    /// The sectors that it names.
    Sectors,
    /// The pages that it touches: the source has devices bring target pages.
    Pages,
}

impl Named for HintFill {
    const ALL: &'static [Self] = &[Self::Sectors, Self::Pages];

    fn name(self) -> &'static str {
        match self {
            Self::Sectors => "sectors",
            Self::Pages => "pages",
        }
    }
}

/// Parameters of an expander.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ExpanderConfig {
    /// The internal DRAM.
    pub dram: DramConfig,
    /// Frames of 4 KiB that it holds.
    pub frames: u32,
    /// The part that hints bring.
    pub hints: HintFill,
    /// The medium.
    pub medium: MediumConfig,
}

/// Counts of an expander.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExpanderCounters {
    /// Loads.
    pub loads: u64,
    /// Loads whose line was there when they arrived.
    pub hits: u64,
    /// Loads whose line was on its way when they arrived, as another request had asked for it. They are no `hits`.
    pub coming: u64,
    /// Stores.
    pub stores: u64,
    /// Reads of the medium.
    pub media_reads: u64,
    /// Reads of the medium for hints.
    pub hinted_reads: u64,
    /// Changed frames that were written to the medium.
    pub media_writes: u64,
    /// Time that stores waited for a frame.
    pub store_waited: SimSpan,
    /// Time that loads waited for the medium, or for a frame.
    pub load_waited: SimSpan,
    /// The frames' part of it: a changed page had to go to the medium first.
    pub load_placed: SimSpan,
}

#[derive(Clone, Copy, Debug)]
struct Frame {
    /// Lines that are there or on their way.
    lines: u64,
    /// When each sector's fill has come.
    ready: [SimTime; SECTORS],
    /// When its read had its turn at the medium.
    turn: [SimTime; SECTORS],
    /// Lines that were stored: they are there without their sector's fill.
    stored: u64,
    /// When the frame has its place.
    placed: SimTime,
    is_dirty: bool,
}

const EMPTY: Frame = Frame {
    lines: 0,
    ready: [SimTime::ZERO; SECTORS],
    turn: [SimTime::ZERO; SECTORS],
    stored: 0,
    placed: SimTime::ZERO,
    is_dirty: false,
};

/// A frame that sectors were read into, or that had them.
struct Filled {
    slot: usize,
    /// When there was a place for it.
    placed: SimTime,
    /// When the read of its sectors has its turn at the medium; now where none was read.
    turn: SimTime,
}

/// An expander whose medium is slower than memory.
pub struct MediaExpander {
    dram: Banks,
    policy: Box<dyn Policy + Send>,
    frames: Vec<Frame>,
    hints: HintFill,
    medium: Medium,
    /// Requests that wait for it.
    queue: DeviceQueue,
    counters: ExpanderCounters,
}

impl MediaExpander {
    /// An expander whose internal DRAM is empty.
    ///
    /// Errors: no frame, a medium that cannot be.
    pub fn new(config: ExpanderConfig) -> Result<Self, MemoryError> {
        if config.frames == 0 {
            return Err(MemoryError::Range { name: "frames of internal DRAM", value: 0, range: "at least 1" });
        }
        Ok(Self {
            dram: Banks::new(config.dram)?,
            policy: PolicyKind::Lru.cache(config.frames),
            frames: vec![EMPTY; config.frames as usize],
            hints: config.hints,
            medium: Medium::new(&config.medium)?,
            queue: DeviceQueue::default(),
            counters: ExpanderCounters::default(),
        })
    }

    /// Counts so far.
    pub fn counters(&self) -> ExpanderCounters {
        self.counters
    }

    /// The load that an answer carries at `now`.
    pub fn load_at(&self, now: SimTime) -> DevLoad {
        self.queue.load_at(now, self.medium.is_collecting(now))
    }

    /// A hint that lines from `first` on will be loaded, which arrives at `at`.
    pub fn hint(&mut self, at: SimTime, first: u64, lines: u64) {
        let mut line = first / SECTOR_LINES * SECTOR_LINES;
        while line < first + lines {
            let frame_ends = (line / FRAME_LINES + 1) * FRAME_LINES;
            let end = (first + lines).min(frame_ends);
            let filled = self.fill(at, line, end - line, true);
            let mut turn = filled.turn;
            if self.hints == HintFill::Pages {
                turn = turn.max(self.fill_rest(at, filled.slot, self.page(line), filled.placed));
            }
            self.queue.note_hint(at, turn);
            line = frame_ends;
        }
    }

    /// Reads the sectors of these lines, all of one frame, that are not there.
    fn fill(&mut self, at: SimTime, first: u64, lines: u64, is_hint: bool) -> Filled {
        let page = self.page(first);
        let (slot, placed) = self.frame(at, page);
        let missing = sectors_of(mask_of(first, lines) & !self.frames[slot].lines);
        if missing == 0 {
            return Filled { slot, placed, turn: at };
        }
        self.counters.hinted_reads += u64::from(is_hint);
        let turn = self.bring(at, slot, page, missing, placed);
        Filled { slot, placed, turn }
    }

    /// Reads what is missing of a frame after its first sectors: flash has the page in the register by then. Returns when this read has
    /// its turn.
    fn fill_rest(&mut self, at: SimTime, slot: usize, page: u32, placed: SimTime) -> SimTime {
        match sectors_of(!self.frames[slot].lines) {
            0 => at,
            missing => {
                self.counters.hinted_reads += 1;
                self.bring(at, slot, page, missing, placed)
            }
        }
    }

    /// Reads sectors of a page into its frame, which has its place from `placed` on; returns when the read has its turn.
    fn bring(&mut self, at: SimTime, slot: usize, page: u32, sectors: u32, placed: SimTime) -> SimTime {
        self.counters.media_reads += 1;
        let arrives = self.read(at, page, sectors).max(placed);
        let turn = at + self.medium.take_turn();
        let frame = &mut self.frames[slot];
        for sector in (0..SECTORS).filter(|sector| sectors >> sector & 1 == 1) {
            // Lines that were stored meanwhile are newer, and there already.
            frame.lines |= mask_of(sector as u64 * SECTOR_LINES, SECTOR_LINES);
            (frame.ready[sector], frame.turn[sector]) = (arrives, turn);
        }
        turn
    }

    /// Reads sectors of a page, which are bits.
    fn read(&mut self, at: SimTime, page: u32, sectors: u32) -> SimTime {
        self.medium.read_part(at, page, sectors.trailing_zeros() * SECTOR_BYTES, sectors.count_ones() * SECTOR_BYTES)
    }

    /// The frame of a page, which another one leaves for it, and when it has a place.
    fn frame(&mut self, at: SimTime, page: u32) -> (usize, SimTime) {
        if let Some(slot) = self.policy.touch(page.into()) {
            return (slot as usize, at);
        }
        let inserted = self.policy.insert(page.into());
        let slot = inserted.slot as usize;
        let mut placed = at;
        if let Some(evicted) = inserted.evicted {
            let left = self.frames[evicted.slot as usize];
            if left.is_dirty {
                // Lines that are not there are read and merged.
                if left.lines != u64::MAX {
                    self.counters.media_reads += 1;
                    placed = placed.max(self.read(at, evicted.key as u32, sectors_of(!left.lines)));
                }
                self.counters.media_writes += 1;
                placed = placed.max(self.medium.write(at, evicted.key as u32, false).accepted);
            }
        }
        self.frames[slot] = Frame { placed, ..EMPTY };
        (slot, placed)
    }

    fn page(&self, line: u64) -> u32 {
        (line / FRAME_LINES % u64::from(self.medium.pages())) as u32
    }

    fn load(&mut self, at: SimTime, line: u64) -> Served {
        self.counters.loads += 1;
        let bit = mask_of(line, 1);
        let sector = (line % FRAME_LINES / SECTOR_LINES) as usize;
        let page = self.page(line);
        let (ready, turn) = match self.policy.touch(page.into()) {
            Some(slot) if self.frames[slot as usize].lines & bit != 0 => {
                let frame = &self.frames[slot as usize];
                let is_stored = frame.stored & bit != 0;
                let (ready, turn) =
                    if is_stored { (frame.placed, frame.placed) } else { (frame.ready[sector], frame.turn[sector]) };
                self.counters.coming += u64::from(ready > at);
                (ready, turn)
            }
            _ => {
                let Filled { slot, placed, turn } =
                    self.fill(at, line / SECTOR_LINES * SECTOR_LINES, SECTOR_LINES, false);
                self.counters.load_placed += placed.since(at);
                (self.frames[slot].ready[sector].max(placed), turn.max(placed))
            }
        };
        self.queue.note(at, turn);
        self.counters.hits += u64::from(ready <= at);
        self.counters.load_waited += ready.max(at).since(at);
        Served { at: self.in_dram(at, ready, line), from_medium: ready > at }
    }

    /// When a line of internal DRAM that may be used from `ready` on is done. A line that is waited for holds no bank until
    /// then: banks serve in the order of arrival, and those behind it would wait for the medium as well.
    fn in_dram(&mut self, at: SimTime, ready: SimTime, line: u64) -> SimTime {
        if ready > at { ready + self.dram.row_miss() } else { self.dram.line(at, line) }
    }

    fn store(&mut self, at: SimTime, line: u64) -> Served {
        self.counters.stores += 1;
        let page = self.page(line);
        let (slot, placed) = self.frame(at, page);
        let frame = &mut self.frames[slot];
        frame.lines |= mask_of(line, 1);
        frame.stored |= mask_of(line, 1);
        frame.is_dirty = true;
        self.counters.store_waited += placed.since(at);
        self.queue.note(at, placed);
        Served { at: self.in_dram(at, placed, line), from_medium: placed > at }
    }
}

/// Lines of a frame as bits.
fn mask_of(first: u64, lines: u64) -> u64 {
    let all = if lines >= FRAME_LINES { u64::MAX } else { (1 << lines) - 1 };
    all << (first % FRAME_LINES)
}

/// Sectors with any of these lines, as bits.
fn sectors_of(lines: u64) -> u32 {
    let of = |sector: usize| u32::from(lines & mask_of(sector as u64 * SECTOR_LINES, SECTOR_LINES) != 0) << sector;
    (0..SECTORS).fold(0, |sectors, sector| sectors | of(sector))
}

impl Device for MediaExpander {
    fn serve(&mut self, now: SimTime, access: &MemoryAccess) -> Served {
        let line = access.address / CACHE_LINE_BYTES;
        match access.operation {
            Transaction::Load => self.load(now, line),
            Transaction::Store | Transaction::Atomic => self.store(now, line),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flashyard_flash::Geometry;
    use flashyard_memory::FlashConfig;
    use flashyard_units::ByteRate;

    const AT: fn(u64) -> SimTime = |us| SimTime::ZERO + SimSpan::from_us(us);

    fn expander(frames: u32) -> MediaExpander {
        let ns = SimSpan::from_ns;
        let dram = DramConfig {
            channels: 1,
            banks: 8,
            row_bytes: 2048,
            precharge: ns(0),
            activate: ns(0),
            column: ns(10),
            burst: ns(2),
            controller: ns(0),
        };
        let medium =
            MediumConfig::InPlace { pages: 100, units: 4, read: SimSpan::from_us(5), write: SimSpan::from_us(2) };
        MediaExpander::new(ExpanderConfig { dram, frames, hints: HintFill::Sectors, medium }).expect("it is possible")
    }

    #[test]
    fn a_sector_is_read_once_and_its_lines_are_hits_when_it_has_come() {
        let mut expander = expander(4);
        let first = expander.load(AT(0), 8);
        assert_eq!(first.at, AT(5) + SimSpan::from_ns(12));
        expander.store(AT(0), 72);
        let other = expander.load(AT(1), 72);
        assert_eq!(other.at, AT(1) + SimSpan::from_ns(12), "a line that is there waits for no line that is not");
        expander.counters = ExpanderCounters { hits: 0, media_reads: 1, ..expander.counters };
        assert!(expander.load(AT(1), 9).at >= AT(5), "it is on its way");
        assert_eq!((expander.counters().hits, expander.counters().media_reads), (0, 1));
        assert_eq!(expander.counters().coming, 1, "a load before it asked for its sector");
        assert!(!expander.load(AT(6), 10).from_medium && !expander.load(AT(6), 11).from_medium);
        assert!(expander.load(AT(7), 12).from_medium, "the next sector");
        assert_eq!((expander.counters().hits, expander.counters().media_reads), (2, 2));
    }

    #[test]
    fn a_stored_line_waits_for_its_frame_alone() {
        let mut stored = expander(4);
        stored.store(AT(0), 73);
        assert!(stored.load(AT(1), 72).from_medium, "its sector is read for its neighbour");
        assert!(!stored.load(AT(2), 73).from_medium, "and it is there before that has come");
        assert_eq!(stored.counters().coming, 0);
        // The one frame has to be written first.
        let mut small = expander(1);
        small.store(AT(0), 5);
        let placed = small.store(AT(1), 64);
        assert!(placed.from_medium && placed.at > AT(2));
        assert!(small.load(AT(2), 64).from_medium, "it has no place yet");
        assert_eq!((small.counters().hits, small.counters().coming), (0, 1));
    }

    #[test]
    fn a_hint_brings_lines_over_two_pages_with_one_read_of_each() {
        let mut expander = expander(4);
        expander.hint(AT(0), 56, 16);
        assert_eq!(expander.counters().media_reads, 2);
        for line in 56..72 {
            assert!(!expander.load(AT(10), line).from_medium, "line {line}");
        }
        assert!(expander.load(AT(10), 72).from_medium && expander.load(AT(10), 52).from_medium);
        expander.hint(AT(20), 56, 16);
        assert_eq!(expander.counters().hinted_reads, 2, "they are there");
    }

    #[test]
    fn a_hint_of_a_line_may_bring_its_page() {
        let mut expander = MediaExpander { hints: HintFill::Pages, ..expander(4) };
        expander.hint(AT(0), 70, 1);
        for line in 64..128 {
            // The named sector comes first; then four units read the others in turn, one of them behind that one.
            let sector = (line - 64) / 4;
            let comes = if sector == 1 { AT(5) } else { AT(25) };
            assert_eq!(expander.frames[0].ready[sector as usize], comes, "line {line}");
            assert!(!expander.load(AT(30), line).from_medium, "line {line}");
        }
        assert!(expander.load(AT(30), 128).from_medium, "the next page");
    }

    #[test]
    fn a_changed_frame_is_merged_and_written_when_it_leaves() {
        let mut expander = expander(1);
        expander.store(AT(0), 5);
        assert!(!expander.load(AT(1), 5).from_medium, "a store is there at once");
        assert!(expander.load(AT(2), 64).from_medium);
        assert_eq!((expander.counters().media_writes, expander.counters().media_reads), (1, 2));
        for line in 0..64 {
            expander.store(AT(100), line);
        }
        expander.load(AT(200), 64);
        assert_eq!((expander.counters().media_writes, expander.counters().media_reads), (2, 3), "nothing to merge");
    }

    fn serve(expander: &mut MediaExpander, at: SimTime, operation: Transaction, line: u64) {
        expander.serve(at, &MemoryAccess::lines(operation, line * CACHE_LINE_BYTES, 1));
    }

    #[test]
    fn requests_that_wait_for_their_turn_at_the_medium_are_its_load() {
        let mut expander = expander(64);
        // Four units read a page each: no request waits while they have nothing else to do.
        for page in 0..4 {
            (0..4).for_each(|line| serve(&mut expander, AT(0), Transaction::Load, 64 * page + line));
        }
        assert_eq!(expander.load_at(AT(1)), DevLoad::Light, "sixteen loads are served at once");
        // Two sectors whose lines come behind those, for one turn.
        (0..8).for_each(|line| serve(&mut expander, AT(1), Transaction::Load, 64 * 4 + line));
        assert_eq!([2, 6, 11].map(|at| expander.load_at(AT(at))), [DevLoad::Optimal, DevLoad::Light, DevLoad::Light]);
        // Hints wait as loads do.
        (8..26).for_each(|page| expander.hint(AT(12), 64 * page, 4));
        assert_eq!(expander.load_at(AT(13)), DevLoad::Optimal, "four of eighteen are served");
        (26..46).for_each(|page| expander.hint(AT(13), 64 * page, 4));
        assert_eq!(
            [14, 18, 23].map(|at| expander.load_at(AT(at))),
            [DevLoad::Moderate; 3],
            "hints overload the medium, and are no entries of the memory queue"
        );
        assert_eq!(expander.load_at(AT(100)), DevLoad::Light);
        (0..1000).for_each(|line| serve(&mut expander, AT(100), Transaction::Load, line % 8));
        expander.hint(AT(100), 64 * 8, 4);
        assert_eq!(expander.load_at(AT(100)), DevLoad::Light, "all of that is there");
    }

    #[test]
    fn dies_with_programs_leave_the_device_lightly_loaded_and_stores_without_a_place_load_it() {
        let ns = SimSpan::from_ns;
        let geometry = Geometry {
            channels: 1,
            dies_per_channel: 4,
            planes_per_die: 1,
            blocks_per_plane: 64,
            pages_per_block: 16,
            page_bytes: 4096,
            pages_per_program: 1,
        };
        let medium = MediumConfig::Flash(FlashConfig {
            geometry,
            spare: 0.25,
            read: ns(3_000),
            program: ns(100_000),
            erase: ns(1_000_000),
            suspend: None,
            channel_rate: ByteRate::from_mb(4096),
            buffer_pages: 8,
            collect_below: 0.1,
            collect_always_below: 0.05,
            worn_in: false,
            collection_due: false,
            seed: 1,
        });
        let of = expander(1);
        let mut expander = MediaExpander { medium: Medium::new(&medium).expect("it is possible"), ..of };
        // Each page that is stored to sends the one before it to the medium, whole: nothing is read for it.
        let store_page = |expander: &mut MediaExpander, at, page: u64| {
            (64 * page..64 * page + 64).for_each(|line| serve(expander, at, Transaction::Store, line));
        };
        (0..=8).for_each(|page| store_page(&mut expander, AT(0), page));
        assert_eq!(expander.counters().media_writes, 8, "two programs for each die, and no store waited");
        assert_eq!(expander.load_at(AT(10)), DevLoad::Light);
        // The buffer is full: stores to further pages wait for a place.
        (20..52).for_each(|page| serve(&mut expander, AT(10), Transaction::Store, 64 * page));
        assert_eq!(expander.load_at(AT(11)), DevLoad::Severe);
    }
}
