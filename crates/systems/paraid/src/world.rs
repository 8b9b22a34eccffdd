//! An array under requests: workers, the measured time, figures.

use crate::base::{AnyMember, Base, Counters, Event, Request};
use crate::config::{ArrayConfig, ArrayRunError};
use crate::log::Log;
use crate::member::{MemberCounters, RateMember};
use crate::places::Places;
use crate::stripes::Stripes;
use crate::timed::TimedMember;
use flashyard_array::placement::Profile;
use flashyard_blk::{BlockRequest, Operation};
use flashyard_kernel::{FreeRun, Rng, Runner, Slab};
use flashyard_measure::Source;
use flashyard_stats::LatencyHistogram;
use flashyard_units::{SimSpan, SimTime};

/// A load with so many requests in a row that move no data has none that do: it would be asked for ever.
const PASSED_BY_MAX: u32 = 1 << 20;

/// Requests that count.
#[derive(Clone, Debug, Default)]
pub struct Window {
    /// Requests, reads and writes.
    pub requests: [u64; 2],
    /// Their bytes.
    pub bytes: [u64; 2],
    /// Times of all.
    pub latency: LatencyHistogram,
}

/// An array.
pub struct Array {
    base: Base,
    stripes: Stripes,
    log: Option<Log>,
    source: Option<Source>,
    is_measuring: bool,
    window: Window,
    begun: Vec<MemberCounters>,
}

/// Figures of a run.
#[derive(Clone, Debug)]
pub struct ArrayFigures {
    /// Requests that count.
    pub window: Window,
    /// For how long.
    pub measured: SimSpan,
    /// Of drives in that time.
    pub drives: Vec<MemberCounters>,
    /// Work of software, from the beginning.
    pub counters: Counters,
    /// Bytes of the volume.
    pub volume: u64,
    /// Bytes of the learned map, at the scale of the run.
    pub map_bytes: u64,
    /// Requests under way at the end.
    pub under_way: u64,
    /// Laws that do not hold.
    pub broken: Vec<String>,
}

impl Array {
    /// An array that nothing was asked of.
    ///
    /// Errors: parameters that do not go together, drives that make no array.
    pub fn new(config: ArrayConfig) -> Result<Self, ArrayRunError> {
        config.validate()?;
        let places = Places::new(&config)?;
        let stripes = places.stripes() as usize;
        let log = if config.design.is_log() { Some(Log::new(&config, &places)?) } else { None };
        let mut drives: Vec<AnyMember> =
            config.drives.iter().map(|&drive| AnyMember::Rate(RateMember::new(drive))).collect();
        for (number, drive) in &config.timed {
            let mut rng = Rng::named(config.seed, &format!("precondition.{number}"));
            let turn = config.drives[*number].read_latency;
            drives[*number] = AnyMember::Timed(Box::new(TimedMember::new(*drive, turn, rng.next_u64())?));
        }
        if let Some(wear) = config.wear
            && let AnyMember::Rate(drive) = &mut drives[wear.drive]
        {
            drive.slow_down(SimTime::ZERO + wear.after, wear.keeps);
        }
        let base = Base {
            drives,
            commands: Slab::default(),
            waits: Slab::default(),
            open: None,
            effects: Vec::new(),
            failed: None,
            profile: config.design.moves().then(|| Profile::new(stripes * config.width, config.moves.sample)),
            runner: Runner::default(),
            requests: Slab::default(),
            counters: Counters::default(),
            config,
            places,
        };
        Ok(Self {
            stripes: Stripes::new(&base.config, stripes),
            base,
            log,
            source: None,
            is_measuring: false,
            window: Window::default(),
            begun: Vec::new(),
        })
    }

    /// Bytes of the volume.
    pub fn volume(&self) -> u64 {
        match &self.log {
            Some(log) => log.volume(),
            None => {
                self.base.places.stripes() * self.base.config.data() as u64 * u64::from(self.base.config.chunk.bytes())
            }
        }
    }

    /// Lets the workers take requests of `source` in turn, each the next one when its last is complete, until the measured time is over.
    /// The observer hears of the share that is done and may stop the run.
    ///
    /// Errors: a source that fails, an observer that stops.
    pub fn run(mut self, source: Source, observer: &mut dyn FnMut(f64) -> bool) -> Result<ArrayFigures, ArrayRunError> {
        self.source = Some(source);
        let end = SimTime::ZERO + self.base.config.warmup + self.base.config.measure;
        self.base.runner.queue.push(SimTime::ZERO + self.base.config.warmup, Event::Measure);
        if self.base.profile.is_some() {
            self.base.runner.queue.push(SimTime::ZERO + self.base.config.moves.interval, Event::Interval);
            self.base.runner.queue.push(SimTime::ZERO + self.base.config.moves.look, Event::Look);
        }
        for _ in 0..self.base.config.workers {
            self.issue(SimTime::ZERO);
        }
        let mut events = 0_u64;
        while let Some(now) = self.base.runner.advance(&mut FreeRun) {
            if now >= end {
                break;
            }
            events += 1;
            if events.is_multiple_of(1 << 16) && !observer(now.as_ps() as f64 / end.as_ps() as f64) {
                return Err(ArrayRunError::Interrupted);
            }
            let event = self.base.runner.take();
            self.handle(now, event);
            if let Some(error) = self.base.failed.take() {
                return Err(error);
            }
        }
        Ok(self.figures(end))
    }

    fn handle(&mut self, now: SimTime, event: Event) {
        let (base, stripes) = (&mut self.base, &mut self.stripes);
        match event {
            Event::Start(request) => self.start(now, request),
            Event::Answer(request) => self.answer(now, request),
            Event::Begun(op) => stripes.begun(base, now, op),
            Event::Read(op) => stripes.combine(base, now, op),
            Event::Combined(op) => stripes.combined(base, now, op),
            Event::Written(op) => stripes.written(base, now, op),
            Event::Ended(op) => stripes.ended(base, now, op),
            Event::Interval => stripes.end_interval(base, now),
            Event::Look => stripes.look(base, now),
            Event::MoveRead(number) => stripes.move_read(base, now, number),
            Event::Moved(number) => stripes.moved(base, now, number),
            Event::VictimRead(group) => {
                if let Some(log) = &mut self.log {
                    log.victim_read(base, now, group);
                }
            }
            Event::Collected(group) => {
                if let Some(log) = &mut self.log {
                    log.collected(base, now, group);
                }
            }
            Event::Drive { drive, event } => base.on_drive(now, drive, event),
            Event::Measure => {
                self.is_measuring = true;
                self.begun = self.base.drives.iter().map(|drive| drive.counters(now)).collect();
            }
        }
        self.base.settle(now);
    }

    /// A worker takes the next request.
    fn issue(&mut self, now: SimTime) {
        let Some(source) = &mut self.source else { return };
        match next_transfer(source) {
            Ok(Some((of, is_write))) => {
                let volume = self.volume();
                let len = u64::from(of.len_bytes).clamp(1, volume) as u32;
                let offset = of.offset_bytes.min(volume - u64::from(len));
                let request = Request { issued: now, offset, len, is_write, left: 0 };
                let number = self.base.requests.insert(request) as u32;
                self.base.counters.requests[0] += 1;
                self.base.runner.queue.push(now + self.base.config.software.request, Event::Start(number));
            }
            Ok(None) => {}
            Err(error) => self.base.failed = Some(error),
        }
    }

    #[inline]
    fn start(&mut self, now: SimTime, number: u32) {
        let is_write = self.base.requests[number as usize].is_write;
        match (&mut self.log, is_write) {
            (None, false) => self.base.read(now, number),
            (None, true) => self.stripes.write(&mut self.base, now, number),
            (Some(log), false) => log.read(&mut self.base, now, number),
            (Some(log), true) => log.write(&mut self.base, now, number),
        }
    }

    /// A request is complete: its worker goes on.
    fn answer(&mut self, now: SimTime, number: u32) {
        let Some(request) = self.base.requests.remove(number as usize) else { return };
        self.base.counters.requests[1] += 1;
        if self.is_measuring {
            let kind = usize::from(request.is_write);
            self.window.requests[kind] += 1;
            self.window.bytes[kind] += u64::from(request.len);
            self.window.latency.record(now.since(request.issued));
        }
        self.issue(now);
    }

    fn figures(self, end: SimTime) -> ArrayFigures {
        let measured = self.base.config.measure;
        let since = |(drive, begun): (&AnyMember, &MemberCounters)| drive.counters(end).since(begun);
        let drives: Vec<MemberCounters> = self.base.drives.iter().zip(&self.begun).map(since).collect();
        let mut broken = Vec::new();
        let under_way = self.base.requests.len() as u64;
        let [issued, completed] = self.base.counters.requests;
        if issued != completed + under_way {
            broken.push(format!("{issued} requests were issued, {completed} completed, {under_way} are under way"));
        }
        for (number, drive) in self.base.drives.iter().enumerate() {
            let busy = drive.counters(end).busy;
            if busy > end.since(SimTime::ZERO) + drive.backlog(end) {
                broken.push(format!("drive {number} worked for {busy} of {}", end.since(SimTime::ZERO)));
            }
        }
        if self.base.counters.exchanged != [0; 2]
            && let Some(stripe) = self.base.places.shared(self.base.config.width)
        {
            broken.push(format!("stripe {stripe} has two chunks on one drive"));
        }
        if self.log.as_ref().is_some_and(|log| !log.is_whole()) {
            broken.push("blocks of the log are lost, or counted twice".to_owned());
        }
        let map_bytes = match &self.base.places {
            Places::Learned(map) => map.bytes() as u64,
            _ => 0,
        };
        ArrayFigures {
            measured,
            drives,
            counters: self.base.counters,
            volume: self.volume(),
            map_bytes,
            under_way,
            broken,
            window: self.window,
        }
    }
}

/// The next read or write of `source`, and whether it is a write. Arrays here neither trim nor flush, and pass by requests that move no data.
fn next_transfer(source: &mut Source) -> Result<Option<(BlockRequest, bool)>, ArrayRunError> {
    for _ in 0..PASSED_BY_MAX {
        let Some(record) = source.next_request()? else { return Ok(None) };
        match record.request.operation {
            Operation::Read => return Ok(Some((record.request, false))),
            Operation::Write => return Ok(Some((record.request, true))),
            _ => {}
        }
    }
    Err(ArrayRunError::NoTransfers(PASSED_BY_MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{BLOCK_BYTES, ChunkSize, Design, WearConfig};
    use crate::tests::{alike, config};
    use flashyard_describe::DriveSection;
    use flashyard_ssd::DriveConfig;
    use proptest::collection::vec;
    use proptest::prelude::{prop_assert, proptest};

    fn ssd() -> DriveConfig {
        let text = include_str!("../../../../profiles/drives/r8.toml");
        let mut section: DriveSection = toml::from_str(text).expect("it is a drive");
        section.pages_per_block = 16;
        flashyard_describe::drive::drive(&section).expect("it is a drive")
    }

    /// Commands that a request sends to SSDs: operations, first blocks in their chunks, and counts.
    fn commands(chunk: ChunkSize, offset: u64, len: u32, is_write: bool) -> Vec<(Operation, u32, u32)> {
        let mut config = config(Design::Straid, alike());
        config.chunk = chunk;
        config.timed = (0..config.drives.len()).map(|number| (number, ssd())).collect();
        let mut array = Array::new(config).expect("it is an array");
        let request = Request { issued: SimTime::ZERO, offset, len, is_write, left: 0 };
        let number = array.base.requests.insert(request) as u32;
        array.handle(SimTime::ZERO, Event::Start(number));
        let mut sent: Vec<(u32, u8, Operation, u32, u32)> = Vec::new();
        loop {
            for (number, (_, drive, spec)) in array.base.commands.iter() {
                let one = (number as u32, *drive, spec.operation, spec.first, spec.count);
                if !sent.contains(&one) {
                    sent.push(one);
                }
            }
            let Some(now) = array.base.runner.advance(&mut FreeRun) else { break };
            let event = array.base.runner.take();
            array.handle(now, event);
        }
        assert!(array.base.requests.is_empty() && array.base.failed.is_none());
        let blocks = u32::from(chunk.blocks());
        sent.iter().map(|&(_, _, operation, first, count)| (operation, first % blocks, count)).collect()
    }

    #[test]
    fn an_ssd_with_its_own_flash_is_not_slowed_by_wear() {
        let mut config = config(Design::Paraid, alike());
        config.timed = vec![(1, ssd())];
        let mut refused = |drive| {
            config.wear = Some(WearConfig { drive, after: SimSpan::from_ms(50), keeps: 0.1 });
            config.validate().err().map(|error| error.to_string())
        };
        assert_eq!(refused(0), None);
        assert!(refused(1).is_some_and(|error| error.contains("drive 1 is timed")));
    }

    #[test]
    fn parts_of_chunks_lie_at_their_places_on_ssds() {
        for kib in [16, 64, 256] {
            let chunk = ChunkSize::new(kib << 10).expect("it is a size");
            let (bytes, blocks) = (u64::from(chunk.bytes()), u32::from(chunk.blocks()));
            let last_but_one = 2 * bytes - 2 * u64::from(BLOCK_BYTES);
            // The other chunk of data is read for parity; data and parity are written.
            let sent = commands(chunk, last_but_one, BLOCK_BYTES, true);
            let expected = [Operation::Read, Operation::Write, Operation::Write];
            assert_eq!(sent, expected.map(|operation| (operation, blocks - 2, 1)), "{kib}");
            let sent = commands(chunk, bytes - u64::from(BLOCK_BYTES), 2 * BLOCK_BYTES, false);
            assert_eq!(sent, [(Operation::Read, blocks - 1, 1), (Operation::Read, 0, 1)], "{kib}");
            // Half a block of each: bytes of neither begin at a block.
            let sent = commands(chunk, u64::from(BLOCK_BYTES) / 2, BLOCK_BYTES, false);
            assert_eq!(sent, [(Operation::Read, 0, 2)], "{kib}");
        }
    }

    /// When writes of `[offset, len]` that come at once are complete, in microseconds, and how many parts of them joined.
    fn written_at(design: Design, writes: &[[u64; 2]]) -> (Vec<f64>, u64) {
        let mut array = Array::new(config(design, alike())).expect("it is an array");
        let numbers: Vec<u32> = writes
            .iter()
            .map(|&[offset, len]| {
                let len = len as u32;
                let request = Request { issued: SimTime::ZERO, offset, len, is_write: true, left: 0 };
                array.base.requests.insert(request) as u32
            })
            .collect();
        numbers.iter().for_each(|&number| array.handle(SimTime::ZERO, Event::Start(number)));
        let mut done = vec![0.0; writes.len()];
        while let Some(now) = array.base.runner.advance(&mut FreeRun) {
            let event = array.base.runner.take();
            if let Event::Answer(number) = event {
                let which = numbers.iter().position(|&of| of == number).expect("it is one of them");
                done[which] = now.since(SimTime::ZERO).as_us_f64();
            }
            array.handle(now, event);
        }
        assert!(array.base.requests.is_empty() && array.stripes.ops.is_empty(), "all are written");
        assert!(array.stripes.active.iter().all(|&op| op == u32::MAX), "nothing is locked");
        (done, array.base.counters.joined)
    }

    const BLOCK: u64 = BLOCK_BYTES as u64;

    #[test]
    fn writers_of_different_blocks_of_a_chunk_do_not_wait_for_each_other_under_md() {
        let (lone, _) = written_at(Design::Mdraid, &[[0, BLOCK]]);
        let (apart, joined) = written_at(Design::Mdraid, &[[0, BLOCK], [BLOCK, BLOCK], [7 * BLOCK, BLOCK]]);
        assert!(apart.iter().all(|&at| at < lone[0] + 40.0), "{apart:?} and {lone:?} alone");
        // Those of one block do, in their order.
        let (alike, also_joined) = written_at(Design::Mdraid, &[[0, BLOCK]; 3]);
        for (turn, at) in alike.iter().enumerate() {
            assert!((at / (lone[0] * (turn + 1) as f64) - 1.0).abs() < 0.01, "{alike:?} and {lone:?} alone");
        }
        assert_eq!([joined, also_joined], [0, 0]);
    }

    #[test]
    fn bios_of_one_row_join_unless_they_overlap() {
        // The second chunk of data begins behind 64 KiB.
        let (first, second) = ([0, BLOCK], [64 << 10, BLOCK]);
        let (done, joined) = written_at(Design::Mdraid, &[first, second, first, first, second]);
        // The second and third write wait for the first and become one; the fourth overlaps the third, and the fifth joins it.
        assert_eq!(joined, 2, "{done:?}");
        assert!(done[0] < done[1] && done[1] == done[2] && done[2] < done[3] && done[3] == done[4], "{done:?}");
        // Parts of a longer write wait where they must.
        let (done, joined) = written_at(Design::Mdraid, &[[3 * BLOCK, BLOCK], [0, 8 * BLOCK], [5 * BLOCK, BLOCK]]);
        assert_eq!(joined, 0);
        assert!(done[1] > 1.5 * done[0] && done[2] > done[0], "{done:?}");
    }

    #[test]
    fn rows_of_both_chunks_read_nothing_and_the_others_do() {
        for (len, reads) in [(2 * BLOCK, 1), (128 << 10, 0)] {
            let mut array = Array::new(config(Design::Mdraid, alike())).expect("it is an array");
            let offset = if reads > 0 { (64 << 10) - BLOCK } else { 0 };
            let request = Request { issued: SimTime::ZERO, offset, len: len as u32, is_write: true, left: 0 };
            let number = array.base.requests.insert(request) as u32;
            array.handle(SimTime::ZERO, Event::Start(number));
            // The last row of the first chunk, and the first of the second.
            assert_eq!(array.stripes.ops.len(), 1 + reads, "{len}");
            assert_eq!(array.base.counters.ways[0], u64::from(reads == 0));
        }
    }

    proptest! {
        /// Whatever is written at once, all of it is, for every size of chunks.
        #[test]
        fn md_writes_all_that_comes_at_once(writes in vec((0_u64..96, 1_u64..40), 1..12)) {
            let writes: Vec<[u64; 2]> = writes.into_iter().map(|(at, blocks)| [at * BLOCK, blocks * BLOCK]).collect();
            let (done, _) = written_at(Design::Mdraid, &writes);
            prop_assert!(done.iter().all(|&at| at > 0.0), "{:?}", done);
        }
    }
}
