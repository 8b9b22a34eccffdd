//! The drive of the source: planes that collect within themselves, in the way of other commands of the channel, or of the plane alone.
//!
//! A plane has a page map of its own. Traditional collection (*channel-blocking*) moves pages over the channel, which serves nothing else
//! until the block is erased. ttFlash moves them within the plane (*plane-blocking*), on one plane of a group at a time (*rotating*), and
//! reads of that plane are rebuilt from the others of its stripe (*GC-tolerant read*). Writes end in memory that survives a loss
//! of power, for both (*GC-tolerant flush*). Planes and channels serve reads before programs, and channels collection before both, as the
//! simulator of the source does.
//!
//! Source: \[X\] Yan et al., FAST '17, sections 3 and 5: mechanisms, geometry and times; SSDSim, its simulator: the order of service. What
//! they do not say is \[A\].

mod map;
mod work;

use flashyard_kernel::{EventQueue, Rng, Slab};
use flashyard_stats::LatencyHistogram;
use flashyard_units::{SimSpan, SimTime};
use map::{PlaneMap, PlaneShape};
use std::collections::VecDeque;
use work::{ChannelQueue, Command, Parity, PlaneQueue, PlaneWork, Request, Transfer, stripes_of};

/// Channels, and planes of a channel. Source: \[X\] FAST '17, section 5.
const CHANNELS: u32 = 8;
/// Source: \[X\] as `CHANNELS`.
const PLANES: u32 = 8;
/// Blocks of a plane, and pages of a block. Source: \[X\] 4,096 and 256 pages of 4 KiB; \[A\] a sixteenth of the blocks.
const SHAPE: PlaneShape = PlaneShape { blocks: 256, pages: 256 };
/// Pages of data in a stripe: one channel of each has parity. Source: \[X\].
const DATA: u32 = CHANNELS - 1;
/// From flash to the register of a plane. Source: \[X\] FAST '17, section 5.
const READ: SimSpan = SimSpan::from_us(40);
/// From the register to flash. Source: \[X\] as `READ`.
const PROGRAM: SimSpan = SimSpan::from_us(800);
/// Of a block. Source: \[X\] as `READ`.
const ERASE: SimSpan = SimSpan::from_ms(2);
/// Of a page, over the channel. Source: \[X\] as `READ`.
const TRANSFER: SimSpan = SimSpan::from_us(100);
/// A plane collects when it has no more erased blocks than these. Source: \[A\] 5 %, a usual threshold of simulators.
const LOW: u32 = SHAPE.blocks / 20;
/// The part of all pages that the host does not see. Source: \[A\] that of the study's other drive.
const SPARE: f64 = 0.0687;

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

/// A load and the drive under it.
#[derive(Clone, Copy, Debug)]
pub(super) struct PlaneRun {
    pub(super) collection: Collection,
    /// Data in percent of what a drive without parity exports.
    pub(super) percent: u32,
    /// Pages of a request.
    pub(super) pages: u32,
    /// Reads among requests.
    pub(super) read_share: f64,
    pub(super) requests_per_second: f64,
    /// Times that all data is overwritten at random before.
    pub(super) overwritten: f64,
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
    /// From when collection was granted until it ends.
    collects: bool,
    /// It has asked for its turn.
    waits: bool,
    /// Since when it is at work.
    since: SimTime,
}

#[derive(Default)]
struct Channel {
    queue: ChannelQueue,
    at: Option<Transfer>,
}

/// The drive under its load.
struct Drive {
    run: PlaneRun,
    /// Pages of data.
    data: u32,
    planes: Vec<Plane>,
    channels: Vec<Channel>,
    /// By group of planes: those that wait for their turn.
    turns: Vec<VecDeque<u32>>,
    requests: Slab<Request>,
    parities: Slab<Parity>,
    queue: EventQueue<Event>,
    rng: Rng,
    is_measured: bool,
    figures: PlaneFigures,
    busy: SimSpan,
}

/// Carries a run out; `None` when the observer, who hears of progress, stops it.
pub(super) fn carry_out(run: PlaneRun, observer: &mut dyn FnMut(f64) -> bool) -> Option<PlaneFigures> {
    let mut drive = Drive::aged(run);
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
    /// A drive whose data was overwritten.
    fn aged(run: PlaneRun) -> Self {
        let raw = CHANNELS * PLANES * SHAPE.blocks * SHAPE.pages;
        let data = (f64::from(raw) * (1.0 - SPARE) * f64::from(run.percent) / 100.0) as u32;
        let data = data / (DATA * CHANNELS * PLANES) * (DATA * CHANNELS * PLANES);
        let columns = if run.collection == Collection::Rotating { DATA * PLANES } else { CHANNELS * PLANES };
        let plane = || Plane {
            map: PlaneMap::new(SHAPE, data / columns),
            queue: PlaneQueue::default(),
            at: None,
            collects: false,
            waits: false,
            since: SimTime::ZERO,
        };
        let mut drive = Self {
            run,
            data,
            planes: (0..CHANNELS * PLANES).map(|_| plane()).collect(),
            channels: (0..CHANNELS).map(|_| Channel::default()).collect(),
            turns: vec![VecDeque::new(); PLANES as usize],
            requests: Slab::default(),
            parities: Slab::default(),
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
        for page in 0..data {
            drive.write_at_once(page);
        }
        for _ in 0..(f64::from(data) * run.overwritten) as u64 / u64::from(run.pages) {
            let first = drive.first_page();
            (first..first + run.pages).for_each(|page| drive.write_at_once(page));
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
    fn first_page(&mut self) -> u32 {
        self.rng.below((self.data / self.run.pages).into()) as u32 * self.run.pages
    }

    fn next_arrival(&mut self, now: SimTime) {
        let mean_us = 1e6 / self.run.requests_per_second;
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
        let (first, pages) = (self.first_page(), self.run.pages);
        let is_read = self.rng.unit() < self.run.read_share;
        let request = self.requests.insert(Request { arrived: now, is_read, left: 0 }) as u32;
        if is_read {
            self.read(now, request, first..first + pages)
        } else {
            self.write(now, request, first..first + pages)
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
            self.give(now, plane, PlaneWork::Sense(Command::Host(request)));
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
            self.give(now, plane, PlaneWork::Sense(Command::Parity(id)));
        }
    }

    fn parity_known(&mut self, now: SimTime, id: u32) {
        let Some(Parity { stripe, .. }) = self.parities.remove(id as usize) else { return };
        let (plane, local) = self.parity_place(stripe);
        self.transfer(now, plane, Transfer::In { plane, local, command: Command::None });
    }

    fn give(&mut self, now: SimTime, plane: u32, work: PlaneWork) {
        self.planes[plane as usize].queue.push(work);
        self.start_plane(now, plane);
    }

    fn transfer(&mut self, now: SimTime, plane: u32, transfer: Transfer) {
        let channel = plane % CHANNELS;
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
            PlaneWork::Sense(_) => READ,
            PlaneWork::Program { local, .. } => {
                plane.map.write(local);
                self.figures.programmed += u64::from(self.is_measured);
                PROGRAM
            }
            PlaneWork::Collect => {
                let moved = plane.map.collect().unwrap_or(0);
                self.figures.programmed += u64::from(moved) * u64::from(self.is_measured);
                (READ + PROGRAM) * u64::from(moved) + ERASE
            }
        };
        (plane.at, plane.since) = (Some(work), now);
        self.queue.push(now + span, Event::Plane(number));
        self.want_collection(now, number);
    }

    fn plane_done(&mut self, now: SimTime, number: u32) {
        let plane = &mut self.planes[number as usize];
        self.busy += now.since(plane.since);
        match plane.at.take() {
            Some(PlaneWork::Sense(command)) => self.transfer(now, number, Transfer::Out { command }),
            Some(PlaneWork::Program { command, .. }) => self.ended(now, command),
            Some(PlaneWork::Collect) => {
                plane.collects = false;
                let group = number / CHANNELS;
                if let Some(next) = self.turns[group as usize].pop_front() {
                    self.take_turn(now, next);
                }
                self.want_collection(now, number);
            }
            None => {}
        }
        self.start_plane(now, number);
    }

    /// Asks for collection where a plane has few erased blocks left.
    fn want_collection(&mut self, now: SimTime, number: u32) {
        let plane = &mut self.planes[number as usize];
        if plane.map.erased() > LOW || plane.collects || plane.waits {
            return;
        }
        match self.run.collection {
            Collection::Free => while plane.map.erased() <= LOW && plane.map.collect().is_some() {},
            Collection::Channel => {
                plane.collects = true;
                self.transfer(now, number, Transfer::Collect { plane: number });
            }
            Collection::Rotating => {
                let group = number / CHANNELS;
                let planes = &self.planes[(group * CHANNELS) as usize..][..CHANNELS as usize];
                if planes.iter().any(|plane| plane.collects) {
                    self.planes[number as usize].waits = true;
                    self.turns[group as usize].push_back(number);
                } else {
                    self.take_turn(now, number);
                }
            }
        }
    }

    fn take_turn(&mut self, now: SimTime, number: u32) {
        let plane = &mut self.planes[number as usize];
        (plane.collects, plane.waits) = (true, false);
        self.give(now, number, PlaneWork::Collect);
    }

    fn start_channel(&mut self, now: SimTime, number: u32) {
        let channel = &mut self.channels[number as usize];
        if channel.at.is_some() {
            return;
        }
        let Some(transfer) = channel.queue.pop() else { return };
        channel.at = Some(transfer);
        let span = match transfer {
            Transfer::In { .. } | Transfer::Out { .. } => TRANSFER,
            Transfer::Collect { plane } => {
                let moved = self.planes[plane as usize].map.collect().unwrap_or(0);
                self.figures.programmed += u64::from(moved) * u64::from(self.is_measured);
                let span = (READ + TRANSFER * 2 + PROGRAM) * u64::from(moved) + ERASE;
                self.busy += span;
                span
            }
        };
        self.queue.push(now + span, Event::Channel(number));
    }

    fn channel_done(&mut self, now: SimTime, number: u32) {
        match self.channels[number as usize].at.take() {
            Some(Transfer::In { plane, local, command }) => {
                self.give(now, plane, PlaneWork::Program { local, command })
            }
            Some(Transfer::Out { command }) => self.ended(now, command),
            Some(Transfer::Collect { plane }) => {
                self.planes[plane as usize].collects = false;
                self.want_collection(now, plane);
                self.start_plane(now, plane);
            }
            None => {}
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
