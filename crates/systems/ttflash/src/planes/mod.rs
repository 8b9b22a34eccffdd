//! The drive of the source: planes that collect within themselves, in the way of other commands of the channel, or of the plane alone.
//!
//! A plane has a page map of its own. Traditional collection (*channel-blocking*) moves pages while the channel serves nothing else.
//! ttFlash moves them in the way of the plane alone (*plane-blocking*), on one plane of a group at a time (*rotating*), and
//! reads of that plane are rebuilt from the others of its stripe (*GC-tolerant read*). Writes end in memory that survives a loss
//! of power, for both (*GC-tolerant flush*).
//!
//! A plane collects from when its erased blocks are few. Until they are very few it leaves the channel to commands: it begins when none is
//! under way there. Channels and planes serve reads before writes.
//!
//! Source: \[C\] the simulator of the authors (ucare-uchicago/tinyTailFlash: its configurations `def`, `nogc` and `rgc`, and `pagemap.c`);
//! \[X\] Yan et al., FAST '17, names and mechanisms. What they do not say is \[A\].

mod map;
mod work;

use flashyard_kernel::{EventQueue, Rng, Slab};
use flashyard_stats::LatencyHistogram;
use flashyard_units::{SimSpan, SimTime};
use map::{PlaneMap, PlaneShape};
use std::collections::VecDeque;
use work::{Arrival, ChannelQueue, Command, Parity, PlaneQueue, PlaneWork, Request, Transfer, stripes_of};

/// Channels, and planes of a channel. Source: \[C\] `channel number`, and `chip number`: a chip is a plane there.
const CHANNELS: u32 = 8;
/// Source: \[C\] as `CHANNELS`.
const PLANES: u32 = 8;
/// Blocks of a plane, and pages of a block. Source: \[C\] 4,096 and 256 pages of 4 KiB; \[A\] a sixteenth of the blocks.
const SHAPE: PlaneShape = PlaneShape { blocks: 256, pages: 256 };
/// Pages of data in a stripe: one channel of each has parity. Source: \[C\].
const DATA: u32 = CHANNELS - 1;
/// From flash to the register of a plane. Source: \[C\] `t_R`.
const READ: SimSpan = SimSpan::from_us(40);
/// From the register to flash. Source: \[C\] `t_PROG`.
const PROGRAM: SimSpan = SimSpan::from_us(800);
/// Of a block. Source: \[C\] `t_BERS`.
const ERASE: SimSpan = SimSpan::from_ms(2);
/// Of a page, over the channel. Source: \[C\] 4,096 times `t_RC`, to the microsecond.
const TRANSFER: SimSpan = SimSpan::from_us(102);
/// A plane collects when it has no more erased blocks than these. Source: \[C\] `gc threshold`, 0.30.
const LOW: u32 = SHAPE.blocks * 30 / 100;
/// It lets commands of its channel go first while it has more than these. Source: \[C\] `gc hard threshold`, 0.10.
const VERY_LOW: u32 = SHAPE.blocks * 10 / 100;
/// The part of all pages that holds nothing, and as much holds data, parity included. Source: \[C\] half of `aged ratio`, 0.665.
const HALF_AGED: f64 = 0.3325;
/// Blocks of a plane that have what holds nothing, and how much of each. Source: \[C\] `make_aged`: so much of a block as is in use of the
/// drive, and a page, in as many blocks as it takes.
const WORN_PAGES: u32 = 172;
/// \[D\] 0.3325 * 65,536 / 172, rounded up
const WORN_BLOCKS: u32 = 127;
/// Reads under way at once; other requests wait until one has ended, in the order in which they came. Source: \[C\] `queue_length`.
const OUTSTANDING: u32 = 32;

/// How garbage is collected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Collection {
    /// In no time.
    Free,
    /// Over the channel, which serves nothing else.
    Channel,
    /// Within the plane, in turns of its group, with reads that are rebuilt.
    Rotating,
}

/// Requests of a load.
#[derive(Clone, Copy, Debug)]
pub(super) struct PlaneLoad {
    /// Pages of a read.
    pub(super) read_pages: u32,
    /// Pages of a write.
    pub(super) write_pages: u32,
    /// Reads among requests.
    pub(super) read_share: f64,
    pub(super) requests_per_second: f64,
}

/// A load and the drive under it.
#[derive(Clone, Copy, Debug)]
pub(super) struct PlaneRun {
    pub(super) collection: Collection,
    pub(super) load: PlaneLoad,
    pub(super) warmup: SimSpan,
    pub(super) measure: SimSpan,
    pub(super) seed: u64,
}

/// Figures of the measured part.
#[derive(Clone, Debug)]
pub(super) struct PlaneFigures {
    pub(super) reads: LatencyHistogram,
    /// Until all pages of a write are in flash.
    pub(super) writes: LatencyHistogram,
    pub(super) host_pages: u64,
    pub(super) programmed: u64,
    /// Reads of pages that were rebuilt, and reads of flash for them.
    pub(super) rebuilt: u64,
    pub(super) rebuilding: u64,
    /// Time that planes were busy, of all.
    pub(super) busy: f64,
}

#[derive(Clone, Copy, Debug)]
enum Event {
    Arrival,
    Plane(u32),
    Channel(u32),
}

struct Plane {
    map: PlaneMap,
    queue: PlaneQueue,
    /// The work that it is at.
    at: Option<PlaneWork>,
    /// From when collection begins until it ends.
    collects: bool,
    /// It is among those of its channel that want to collect.
    waits: bool,
    /// Since when it is at work.
    since: SimTime,
}

#[derive(Default)]
struct Channel {
    queue: ChannelQueue,
    at: Option<Transfer>,
    /// Pages of commands that its planes or itself have yet to serve: of reads until they are over, of writes until they are programmed.
    pending: u32,
    /// Planes that want to collect, the first first.
    wanting: VecDeque<u32>,
}

/// The drive under its load.
struct Drive {
    run: PlaneRun,
    /// Pages of data.
    data: u32,
    planes: Vec<Plane>,
    channels: Vec<Channel>,
    requests: Slab<Request>,
    parities: Slab<Parity>,
    /// Requests that wait outside, and reads under way.
    outside: VecDeque<Arrival>,
    reading: u32,
    queue: EventQueue<Event>,
    rng: Rng,
    is_measured: bool,
    figures: PlaneFigures,
    busy: SimSpan,
}

/// Carries a run out; `None` when the observer, who hears of progress, stops it.
pub(super) fn carry_out(run: PlaneRun, observer: &mut dyn FnMut(f64) -> bool) -> Option<PlaneFigures> {
    live(Drive::aged(run), observer)
}

fn live(mut drive: Drive, observer: &mut dyn FnMut(f64) -> bool) -> Option<PlaneFigures> {
    let run = drive.run;
    drive.next_arrival(SimTime::ZERO);
    let begin = SimTime::ZERO + run.warmup;
    let end = begin + run.measure;
    let mut seen = 0_u32;
    while let Some((now, event)) = drive.queue.pop().filter(|(now, _)| *now < end) {
        if !drive.is_measured && now >= begin {
            drive.begin_measuring(now);
        }
        drive.handle(now, event);
        seen = seen.wrapping_add(1);
        if seen.is_multiple_of(1 << 16) && !observer(now.since(SimTime::ZERO).ratio_of(run.warmup + run.measure)) {
            return None;
        }
    }
    let working = drive.planes.iter().filter(|plane| plane.at.is_some());
    let last: SimSpan = working.map(|plane| end.since(plane.since.max(begin))).sum();
    drive.figures.busy = (drive.busy + last).ratio_of(run.measure * u64::from(CHANNELS * PLANES));
    Some(drive.figures)
}

impl Drive {
    /// A drive in use, whose planes are all about to collect.
    fn aged(run: PlaneRun) -> Self {
        let logical = (HALF_AGED * f64::from(SHAPE.blocks * SHAPE.pages)) as u32;
        let columns = if run.collection == Collection::Rotating { DATA * PLANES } else { CHANNELS * PLANES };
        let plane = || Plane {
            map: PlaneMap::aged(SHAPE, logical, WORN_BLOCKS, WORN_PAGES),
            queue: PlaneQueue::default(),
            at: None,
            collects: false,
            waits: false,
            since: SimTime::ZERO,
        };
        let mut drive = Self {
            run,
            data: logical * columns,
            planes: (0..CHANNELS * PLANES).map(|_| plane()).collect(),
            channels: (0..CHANNELS).map(|_| Channel::default()).collect(),
            requests: Slab::default(),
            parities: Slab::default(),
            outside: VecDeque::new(),
            reading: 0,
            queue: EventQueue::default(),
            rng: Rng::named(run.seed, "ttflash.load"),
            is_measured: false,
            figures: PlaneFigures {
                reads: LatencyHistogram::new(),
                writes: LatencyHistogram::new(),
                host_pages: 0,
                programmed: 0,
                rebuilt: 0,
                rebuilding: 0,
                busy: 0.0,
            },
            busy: SimSpan::ZERO,
        };
        // Source: [C] the authors warm the drive up with the trace itself, whose hour writes what is free above the threshold.
        while drive.planes.iter().any(|plane| plane.map.erased() > LOW + 1) {
            let pages = run.load.write_pages;
            let first = drive.first_page(pages);
            (first..first + pages).for_each(|page| drive.write_at_once(page));
        }
        drive
    }

    fn is_striped(&self) -> bool {
        self.run.collection == Collection::Rotating
    }

    /// The plane of a page of data, by number over all channels, and its page there.
    fn place_of(&self, page: u32) -> (u32, u32) {
        if !self.is_striped() {
            return (page % (CHANNELS * PLANES), page / (CHANNELS * PLANES));
        }
        let (stripe, member) = (page / DATA, page % DATA);
        let parity = self.parity_channel(stripe);
        let channel = member + u32::from(member >= parity);
        (stripe % PLANES * CHANNELS + channel, stripe / PLANES)
    }

    /// The channel that has the parity of a stripe: it goes round.
    fn parity_channel(&self, stripe: u32) -> u32 {
        stripe / PLANES % CHANNELS
    }

    fn parity_place(&self, stripe: u32) -> (u32, u32) {
        (stripe % PLANES * CHANNELS + self.parity_channel(stripe), stripe / PLANES)
    }

    fn write_at_once(&mut self, page: u32) {
        let (plane, local) = self.place_of(page);
        let parity = self.is_striped().then(|| self.parity_place(page / DATA));
        for (plane, local) in [Some((plane, local)), parity].into_iter().flatten() {
            let map = &mut self.planes[plane as usize].map;
            map.write(local);
            while map.erased() <= LOW && map.collect().is_some() {}
        }
    }

    /// The first page of a request, aligned to its size.
    fn first_page(&mut self, pages: u32) -> u32 {
        self.rng.below((self.data / pages).into()) as u32 * pages
    }

    fn next_arrival(&mut self, now: SimTime) {
        let mean_us = 1e6 / self.run.load.requests_per_second;
        let wait = SimSpan::from_ns_f64(-1e3 * mean_us * libm::log(1.0 - self.rng.unit()));
        self.queue.push(now + wait, Event::Arrival);
    }

    fn begin_measuring(&mut self, now: SimTime) {
        self.is_measured = true;
        self.busy = SimSpan::ZERO;
        self.planes.iter_mut().for_each(|plane| plane.since = now);
    }

    fn handle(&mut self, now: SimTime, event: Event) {
        match event {
            Event::Arrival => {
                self.arrive(now);
                self.next_arrival(now);
            }
            Event::Plane(plane) => self.plane_done(now, plane),
            Event::Channel(channel) => self.channel_done(now, channel),
        }
    }

    fn arrive(&mut self, now: SimTime) {
        let load = self.run.load;
        let is_read = self.rng.unit() < load.read_share;
        let first = self.first_page(if is_read { load.read_pages } else { load.write_pages });
        self.outside.push_back(Arrival { at: now, is_read, first });
        self.let_in(now);
    }

    /// Begins requests that wait, as many as may be under way.
    fn let_in(&mut self, now: SimTime) {
        while self.reading < OUTSTANDING {
            let Some(Arrival { at, is_read, first }) = self.outside.pop_front() else { return };
            let request = self.requests.insert(Request { arrived: at, is_read, left: 0 }) as u32;
            if is_read {
                self.reading += 1;
                self.read(now, request, first..first + self.run.load.read_pages)
            } else {
                self.write(now, request, first..first + self.run.load.write_pages)
            }
        }
    }

    /// Reads pages, or rebuilds those whose plane collects.
    fn read(&mut self, now: SimTime, request: u32, pages: std::ops::Range<u32>) {
        let mut planes: Vec<u32> = Vec::with_capacity(CHANNELS as usize);
        let mut rebuilt: Vec<u32> = Vec::new();
        for page in pages {
            let (plane, _) = self.place_of(page);
            if self.is_striped() && self.planes[plane as usize].collects {
                rebuilt.push(plane)
            } else {
                planes.push(plane)
            }
        }
        for &plane in &rebuilt {
            let before = planes.len();
            // Pages of the stripe that are read for others of the request are at hand. No two stripes of a request share a group.
            let group = plane / CHANNELS * CHANNELS;
            let others = (group..group + CHANNELS).filter(|&other| other != plane);
            let missing: Vec<u32> = others.filter(|other| !planes.contains(other)).collect();
            planes.extend(missing);
            self.figures.rebuilt += u64::from(self.is_measured);
            self.figures.rebuilding += (planes.len() - before) as u64 * u64::from(self.is_measured);
        }
        self.requests[request as usize].left = planes.len() as u32;
        for plane in planes {
            self.sense(now, plane, Command::Host(request));
        }
    }

    /// Writes pages, and the parity of their stripes.
    fn write(&mut self, now: SimTime, request: u32, pages: std::ops::Range<u32>) {
        self.requests[request as usize].left = pages.len() as u32;
        self.figures.host_pages += pages.len() as u64 * u64::from(self.is_measured);
        if self.is_striped() {
            for (stripe, written) in stripes_of(pages.clone(), DATA) {
                self.write_parity(now, stripe, written);
            }
        }
        for page in pages {
            let (plane, local) = self.place_of(page);
            self.transfer(now, plane, Transfer::In { plane, local, command: Command::Host(request) });
        }
    }

    /// Writes the parity of a stripe some of whose pages are written. The others are read for it, or what was there before and the old
    /// parity, whichever is less.
    fn write_parity(&mut self, now: SimTime, stripe: u32, written: std::ops::Range<u32>) {
        let count = written.len() as u32;
        let (parity, _) = self.parity_place(stripe);
        let place_of = |member: u32| self.place_of(stripe * DATA + member).0;
        let reads: Vec<u32> = if count < DATA - count {
            written.map(place_of).chain([parity]).collect()
        } else {
            (0..DATA).filter(|member| !written.contains(member)).map(place_of).collect()
        };
        let id = self.parities.insert(Parity { stripe, left: reads.len() as u32 }) as u32;
        if reads.is_empty() {
            return self.parity_known(now, id);
        }
        for plane in reads {
            self.sense(now, plane, Command::Parity(id));
        }
    }

    fn parity_known(&mut self, now: SimTime, id: u32) {
        let Some(Parity { stripe, .. }) = self.parities.remove(id as usize) else { return };
        let (plane, local) = self.parity_place(stripe);
        self.transfer(now, plane, Transfer::In { plane, local, command: Command::None });
    }

    /// Gives a plane a page to read.
    fn sense(&mut self, now: SimTime, plane: u32, command: Command) {
        self.channels[(plane % CHANNELS) as usize].pending += 1;
        self.planes[plane as usize].queue.sense(command);
        self.start_plane(now, plane);
    }

    fn transfer(&mut self, now: SimTime, plane: u32, transfer: Transfer) {
        let channel = plane % CHANNELS;
        if let Transfer::In { .. } = transfer {
            self.channels[channel as usize].pending += 1;
        }
        self.channels[channel as usize].queue.push(transfer);
        self.start_channel(now, channel);
    }

    /// Begins the next work of a plane that does nothing.
    fn start_plane(&mut self, now: SimTime, number: u32) {
        let plane = &mut self.planes[number as usize];
        if plane.at.is_some() {
            return;
        }
        let Some(work) = plane.queue.pop(plane.map.has_room()) else { return };
        let span = match work {
            PlaneWork::Program { local, .. } => {
                plane.map.write(local);
                self.channels[(number % CHANNELS) as usize].pending -= 1;
                self.figures.programmed += u64::from(self.is_measured);
                PROGRAM
            }
            _ => READ,
        };
        self.work(now, number, work, span);
        self.want_collection(number);
        self.collect(now, number % CHANNELS);
    }

    fn work(&mut self, now: SimTime, number: u32, work: PlaneWork, span: SimSpan) {
        let plane = &mut self.planes[number as usize];
        (plane.at, plane.since) = (Some(work), now);
        self.queue.push(now + span, Event::Plane(number));
    }

    fn plane_done(&mut self, now: SimTime, number: u32) {
        let plane = &mut self.planes[number as usize];
        self.busy += now.since(plane.since);
        match plane.at.take() {
            Some(PlaneWork::Sense(command)) => self.transfer(now, number, Transfer::Out { command }),
            Some(PlaneWork::Program { command, .. }) => self.ended(now, command),
            Some(PlaneWork::Move) => self.work(now, number, PlaneWork::Erase, ERASE),
            Some(PlaneWork::Erase) => {
                plane.collects = false;
                self.want_collection(number);
                let group = number / CHANNELS * CHANNELS;
                (group..group + CHANNELS).for_each(|other| self.collect(now, other % CHANNELS));
            }
            None => {}
        }
        self.collect(now, number % CHANNELS);
        self.start_plane(now, number);
    }

    /// Notes that a plane has few erased blocks left.
    fn want_collection(&mut self, number: u32) {
        let plane = &mut self.planes[number as usize];
        if plane.map.erased() > LOW || plane.collects || plane.waits {
            return;
        }
        if self.run.collection == Collection::Free {
            while plane.map.erased() <= LOW && plane.map.collect().is_some() {}
        } else {
            plane.waits = true;
            self.channels[(number % CHANNELS) as usize].wanting.push_back(number);
        }
    }

    /// Begins the collection that a channel has waited longest for and may begin.
    fn collect(&mut self, now: SimTime, number: u32) {
        let channel = &self.channels[number as usize];
        if channel.at.is_some() || channel.wanting.is_empty() {
            return;
        }
        let others = (0..PLANES).map(|group| &self.planes[(group * CHANNELS + number) as usize]);
        // Source: [C] `gc_chip`: one at a time on a channel; its erase is not counted.
        if others.into_iter().any(|plane| plane.at == Some(PlaneWork::Move)) {
            return;
        }
        let may = |&wanting: &u32| {
            let plane = &self.planes[wanting as usize];
            let forced = plane.map.erased() <= VERY_LOW;
            let group = wanting / CHANNELS * CHANNELS;
            let turn = self.run.collection != Collection::Rotating
                || !self.planes[group as usize..][..CHANNELS as usize].iter().any(|plane| plane.collects);
            plane.at.is_none() && turn && (forced || channel.pending == 0)
        };
        let Some(place) = channel.wanting.iter().position(may) else { return };
        let channel = &mut self.channels[number as usize];
        let Some(chosen) = channel.wanting.remove(place) else { return };
        let plane = &mut self.planes[chosen as usize];
        plane.waits = false;
        let Some(moved) = plane.map.collect() else { return };
        plane.collects = true;
        self.figures.programmed += u64::from(moved) * u64::from(self.is_measured);
        let span = (READ + PROGRAM) * u64::from(moved);
        self.work(now, chosen, PlaneWork::Move, span);
        if self.run.collection == Collection::Channel {
            self.channels[number as usize].at = Some(Transfer::Blocked);
            self.queue.push(now + span, Event::Channel(number));
        }
    }

    fn start_channel(&mut self, now: SimTime, number: u32) {
        self.collect(now, number);
        let channel = &mut self.channels[number as usize];
        if channel.at.is_some() {
            return;
        }
        let Some(transfer) = channel.queue.pop() else { return };
        channel.at = Some(transfer);
        self.queue.push(now + TRANSFER, Event::Channel(number));
    }

    fn channel_done(&mut self, now: SimTime, number: u32) {
        match self.channels[number as usize].at.take() {
            Some(Transfer::In { plane, local, command }) => {
                self.planes[plane as usize].queue.program(local, command);
                self.start_plane(now, plane);
            }
            Some(Transfer::Out { command }) => {
                self.channels[number as usize].pending -= 1;
                self.ended(now, command);
            }
            Some(Transfer::Blocked) | None => {}
        }
        self.start_channel(now, number);
    }

    /// A part of a command is over.
    fn ended(&mut self, now: SimTime, command: Command) {
        match command {
            Command::Host(id) => {
                let request = &mut self.requests[id as usize];
                request.left -= 1;
                if request.left > 0 {
                    return;
                }
                let Request { arrived, is_read, .. } = *request;
                self.requests.remove(id as usize);
                if is_read {
                    self.reading -= 1;
                    self.let_in(now);
                }
                if self.is_measured {
                    let latencies = if is_read { &mut self.figures.reads } else { &mut self.figures.writes };
                    latencies.record(now.since(arrived));
                }
            }
            Command::Parity(id) => {
                self.parities[id as usize].left -= 1;
                if self.parities[id as usize].left == 0 {
                    self.parity_known(now, id);
                }
            }
            Command::None => {}
        }
    }
}

#[cfg(test)]
mod tests;
