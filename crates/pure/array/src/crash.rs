//! An array as a world for the explorer of faults: legs lose their power together, end one by one, come back old, are replaced, refuse orders for a
//! while, or cannot read some blocks any more, while stripes are written, rebuilt and scrubbed.
//!
//! The rules are those of any client. Faults stay within what parity makes up for, so no request may fail. At every start all blocks are
//! made of what is on media, and at the end each stripe's parity must be that of its data (no write hole), before a scrub as well as after.

use crate::layout::Layout;
use crate::raid::{Array, ArrayConfig, Journal, MovesConfig, factors};
use flashyard_blk::{VolumeInfo, VolumeLimits};
use flashyard_faults::{Case, Fault, Fingerprint, Injector, Outcome, World};
use flashyard_kernel::Rng;
use flashyard_service::contract::{BLOCK_BYTES, stamp_of};
use flashyard_service::{Leg, Service, parity};
use flashyard_services::crash::client::{Client, Habits};
use flashyard_services::crash::drill::Drill;
use flashyard_services::crash::leg::{Block, ZEROS};
use flashyard_services::crash::machine::{AWAY, Machine, faults};
use flashyard_units::{SimSpan, SimTime, VolumeId};
use std::collections::BTreeSet;

/// Requests of a run that says nothing else. \[A\]
const REQUESTS: u32 = 50;
/// Events of a request at most, before a run counts as stuck. \[A\]
const EVENTS_PER_REQUEST: u64 = 4000;
/// How long a place stays empty before another leg is put there. \[A\]
const EMPTY: [SimSpan; 2] = [SimSpan::from_us(30), SimSpan::from_us(600)];
/// Blocks that cannot be read any more at once. \[A\]
const SPOILED: u64 = 4;
/// Legs at most. \[A\]
const LEGS_MAX: u32 = 6;

/// Arrays: chunks of each leg, chunks of a stripe, parities, blocks of a chunk. \[A\]
const ARRAYS: [(&[u64], u8, u8, u32); 4] =
    [(&[6, 6, 6], 3, 1, 1), (&[9, 6, 4, 2], 3, 1, 2), (&[7, 7, 4, 4, 3], 4, 2, 1), (&[6, 5, 5, 4], 4, 2, 2)];

/// Those whose chunks move: stripes leave legs to which they can. \[A\]
const MOVING: [(&[u64], u8, u8, u32); 3] =
    [(&[9, 8, 7, 7, 5], 3, 1, 1), (&[8, 8, 7, 6, 5, 5], 3, 1, 2), (&[9, 8, 8, 6, 6, 6], 4, 2, 1)];

/// Moves of chunks: two and a new map, often. \[A\]
const MOVES: MovesConfig = MovesConfig {
    map_blocks: 24,
    log_blocks: 2,
    interval: SimSpan::from_us(60),
    sample: 1,
    pause: SimSpan::from_us(2),
    look: SimSpan::from_us(3),
};

/// An array to break.
#[derive(Clone, Copy, Debug, Default)]
pub struct ArrayWorld;

impl World for ArrayWorld {
    fn name(&self) -> String {
        "array".to_owned()
    }

    fn faults(&self) -> Vec<Fault> {
        let of = |drive: u32| {
            let gone_for = EMPTY.map(Some).into_iter().chain([None]);
            gone_for.map(move |gone_for| Fault::LoseDrive { drive, gone_for }).chain([Fault::Spoil { drive }])
        };
        faults(3).into_iter().chain((0..LEGS_MAX).flat_map(of)).collect()
    }

    fn size(&self) -> u32 {
        REQUESTS
    }

    fn run(&self, case: &Case) -> Outcome {
        let requests = case.size.unwrap_or(REQUESTS);
        Run::new(case.seed, requests).run(case, (u64::from(requests) + 10) * EVENTS_PER_REQUEST)
    }
}

/// A place that waits for another leg.
#[derive(Clone, Copy, Debug)]
struct Empty {
    leg: u32,
    until: SimTime,
}

/// Counts of a run.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    cuts: u64,
    lost: u64,
    replaced: u64,
    old: u64,
    spoiled: u64,
    repeated: u64,
    rebuilt: u64,
    degraded: u64,
    aggregated: u64,
    compared: u64,
    moved: u64,
    moved_by_writes: u64,
    abandoned: u64,
}

struct Run {
    client: Client,
    config: ArrayConfig,
    blocks: Vec<u64>,
    machine: Machine<Array>,
    fingerprint: Fingerprint,
    rng: Rng,
    empty: Vec<Empty>,
    /// Whether legs have refused more than parity makes up for since power is on: requests may fail.
    is_strained: bool,
    is_recovering: bool,
    counts: Counts,
}

fn array(config: &ArrayConfig, blocks: &[u64]) -> Array {
    let info = |&blocks: &u64| VolumeInfo {
        id: VolumeId::new(0),
        block_bytes: BLOCK_BYTES,
        limits: VolumeLimits::new(blocks, false),
        protected: false,
    };
    let legs: Vec<VolumeInfo> = blocks.iter().map(info).collect();
    Array::new(config.clone(), &legs).expect("the legs of a world make an array")
}

impl Run {
    fn new(seed: u64, requests: u32) -> Self {
        let at = |step: u64, of: usize| (seed / step) as usize % of;
        let moves = at(1, 3) > 0;
        let (chunks, width, parities, chunk_blocks) =
            if moves { MOVING[at(3, MOVING.len())] } else { ARRAYS[at(3, ARRAYS.len())] };
        let is_partial = parities == 1 && at(4, 3) == 2;
        let config = ArrayConfig {
            id: 7,
            width,
            parities,
            chunk_blocks,
            journal: if is_partial { Journal::PartialParity } else { Journal::Whole },
            slots: 1 + at(12, 3) as u32,
            aggregates: at(36, 4) > 0,
            speeds: (0..chunks.len()).map(|leg| [3, 0, 4][(leg + at(11, 3)) % 3]).collect(),
            pause: SimSpan::from_us([0, 40][at(2, 2)]),
            reserved: at(3, 2) as u32,
            moves: moves.then_some(MovesConfig { pause: SimSpan::from_us([2, 80][at(5, 2)]), ..MOVES }),
        };
        let spare = u64::from(config.moves.is_some());
        let areas = config.moves.map_or(0, |moves| 2 * u64::from(1 + moves.map_blocks + moves.log_blocks));
        let slots = u64::from(config.slots) * (1 + u64::from(width) * u64::from(chunk_blocks));
        let base = u64::from(config.reserved) + 1 + slots + areas;
        let blocks: Vec<u64> = chunks.iter().map(|chunks| base + (chunks + spare) * u64::from(chunk_blocks)).collect();
        let service = array(&config, &blocks);
        let (has_trims, protected) = (at(5, 2) == 1, at(7, 4) == 3);
        let volume = service.blocks();
        let habits = Habits {
            requests,
            blocks: volume,
            span: volume.min(9 + 30 * at(3, 2) as u64),
            has_trims,
            whole: false,
            protected,
        };
        Self {
            client: Client::new(habits, Rng::named(seed, "array.client")),
            machine: Machine::with_legs(service, &blocks, protected, Rng::named(seed, "array.legs")),
            config,
            blocks,
            fingerprint: Fingerprint::default(),
            rng: Rng::named(seed, "array.faults"),
            empty: Vec::new(),
            is_strained: false,
            is_recovering: true,
            counts: Counts::default(),
        }
    }

    fn legs(&self) -> u32 {
        self.blocks.len() as u32
    }

    /// Legs of which something is missing, or refused now: parity makes up for so many only.
    fn bad(&self) -> u64 {
        let of = |leg: u32| {
            let is_spoiled = self.has_spoiled(leg);
            let is_whole = self.machine.service.whole() >> leg & 1 == 1;
            is_spoiled || !is_whole || self.machine.is_gone(leg) || self.machine.leg_fails(leg)
        };
        (0..self.legs()).filter(|&leg| of(leg)).fold(0, |legs, leg| legs | 1 << leg)
    }

    fn has_spoiled(&self, leg: u32) -> bool {
        (0..self.blocks[leg as usize]).any(|block| !self.machine.is_readable(leg as usize, block))
    }

    /// Whether a leg has lost anything that it will not bring back by itself.
    fn has_lost(&self) -> bool {
        (0..self.legs()).any(|leg| self.machine.is_gone(leg) || self.has_spoiled(leg))
    }

    /// Whether parity makes up for a leg and all that is bad.
    fn has_room_for(&self, leg: u32) -> bool {
        (self.bad() | 1 << leg).count_ones() <= self.config.parities.into()
    }

    fn can_miss(&self, leg: u32) -> bool {
        !self.is_recovering && self.machine.service.can_miss(Leg(leg as u8))
    }

    fn scrub(&mut self, value: u64) {
        let now = self.machine.now;
        self.machine.tell(|array, out| {
            array.set("scrub", value);
            array.wake(now, out);
        });
    }

    /// Puts another leg in an empty place: zeros, or bytes that were there before.
    fn fill(&mut self, place: usize) {
        let Empty { leg, .. } = self.empty[place];
        self.machine.now = self.machine.now.max(self.empty[place].until);
        let is_old = self.rng.below(2) == 0;
        let blocks = 0..self.blocks[leg as usize];
        let old: Vec<Block> =
            blocks.map(|block| if is_old { *self.machine.get_of(leg as usize, block) } else { ZEROS }).collect();
        if !self.machine.put(leg, |block| old[block as usize]) {
            // Its last orders are on their way.
            self.empty[place].until = self.machine.now + SimSpan::from_us(5);
            return;
        }
        self.empty.remove(place);
        self.counts.replaced += 1;
        let now = self.machine.now;
        let is_taken = self.machine.tell(|array, out| {
            array.lost(now, Leg(leg as u8), out);
            let is_taken = array.replaced(Leg(leg as u8));
            array.wake(now, out);
            is_taken
        });
        if !is_taken && !self.is_recovering {
            self.client.violate(format!("an array that has started takes no new leg {leg}"));
        }
    }

    /// The blocks of a stripe at one row, by role; those of legs that do not count are made of the others.
    fn row(&self, layout: &Layout, stripe: u32, row: u32) -> Vec<Block> {
        let array = &self.machine.service;
        let width = layout.width() as u8;
        let places: Vec<(Leg, u64)> = (0..width).map(|role| array.place(stripe, role)).collect();
        let mut blocks: Vec<Block> =
            places.iter().map(|&(leg, first)| *self.machine.get_of(leg.0.into(), first + u64::from(row))).collect();
        let is_missing = |role: &u8| array.whole() >> places[usize::from(*role)].0.0 & 1 == 0;
        let missing = (0..width).filter(is_missing).fold(0, |missing, role| missing | 1 << role);
        let data = width - self.config.parities;
        for wanted in (0..data).filter(is_missing) {
            let Some(factors) = factors(data, self.config.parities, missing, wanted) else { continue };
            let mut made = ZEROS;
            for (block, &factor) in blocks.iter().zip(&factors) {
                parity::mix(&mut made, 1, block, factor);
            }
            blocks[usize::from(wanted)] = made;
        }
        blocks
    }

    /// All blocks as they are on media.
    fn look_at_all(&mut self) {
        let layout = self.machine.service.layout().clone();
        let mut stamps = Vec::new();
        for stripe in 0..layout.stripes() as u32 {
            let rows: Vec<Vec<Block>> =
                (0..self.config.chunk_blocks).map(|row| self.row(&layout, stripe, row)).collect();
            for role in 0..usize::from(self.config.width - self.config.parities) {
                stamps.extend(rows.iter().map(|row| stamp_of(&row[role])));
            }
        }
        self.client.saw_all(self.machine.now, &stamps);
    }

    /// Each parity is that of its data.
    fn check_parity(&mut self, when: &str) {
        let layout = self.machine.service.layout().clone();
        let data = usize::from(self.config.width - self.config.parities);
        for stripe in 0..layout.stripes() as u32 {
            for row in 0..self.config.chunk_blocks {
                let blocks = self.row(&layout, stripe, row);
                for (number, found) in blocks[data..].iter().enumerate() {
                    let mut sum = ZEROS;
                    for (role, block) in (0_u8..).zip(&blocks[..data]) {
                        parity::mix(&mut sum, 1, block, if number == 0 { 1 } else { parity::power(role) });
                    }
                    self.counts.compared += 1;
                    if *found != sum {
                        self.client.violate(format!("parity {number} of stripe {stripe} is wrong {when}"));
                    }
                }
            }
        }
    }

    /// No stripe has two chunks on one leg, and no place has two chunks.
    fn check_places(&mut self) {
        let mut places = BTreeSet::new();
        for stripe in 0..self.machine.service.layout().stripes() as u32 {
            let of_stripe: Vec<(Leg, u64)> =
                (0..self.config.width).map(|role| self.machine.service.place(stripe, role)).collect();
            let legs: BTreeSet<Leg> = of_stripe.iter().map(|&(leg, _)| leg).collect();
            let is_apart = legs.len() == of_stripe.len();
            if !is_apart || !of_stripe.iter().all(|&place| places.insert(place)) {
                self.client.violate(format!("stripe {stripe} has two chunks on a leg, or shares a place"));
            }
        }
    }

    fn cut_power(&mut self, event: u64) {
        self.counts.cuts += 1;
        self.counts.old += (0..self.legs()).filter(|&leg| self.machine.is_gone(leg)).count() as u64;
        self.take_counters();
        self.empty.clear();
        self.is_strained = false;
        self.machine.cut_power(array(&self.config, &self.blocks));
        self.client.lost_power(self.machine.now);
        self.is_recovering = true;
        self.client.outcome.recoveries.push(event..event + 1);
        self.fingerprint.step(99);
    }

    fn take_counters(&mut self) {
        let counters = self.machine.service.counters();
        self.counts.repeated += counters.repeated;
        self.counts.rebuilt += counters.rebuilt;
        self.counts.degraded += counters.degraded_reads;
        self.counts.aggregated += counters.aggregated;
        self.counts.moved += counters.moved;
        self.counts.moved_by_writes += counters.moved_by_writes;
        self.counts.abandoned += counters.abandoned;
    }

    /// Lets the array start, rebuild and scrub to their ends.
    fn settle(&mut self, events: u64) {
        let mut steps = 0;
        let is_left = |array: &Array| {
            let left = array.rebuild().map_or(0, |rebuild| rebuild.left);
            array.has_started() == Ok(false) || left > 0 || array.is_scrubbing()
        };
        let all = (1 << self.legs()) - 1;
        while (is_left(&self.machine.service) || self.machine.service.whole() != all)
            && self.next_time().is_some()
            && steps < 20 * EVENTS_PER_REQUEST
        {
            self.step(events);
            steps += 1;
        }
        if is_left(&self.machine.service) || self.machine.service.whole() != all {
            let note = self.machine.service.note().unwrap_or_default();
            self.client.violate(format!("the array does not come to rest: {note}"));
        }
    }
}

impl Drill for Run {
    type Service = Array;

    fn parts(&mut self) -> (&mut Client, &mut Machine<Array>) {
        (&mut self.client, &mut self.machine)
    }

    fn next_time(&mut self) -> Option<SimTime> {
        let place = self.empty.iter().map(|empty| empty.until);
        self.machine.next_time().into_iter().chain(place).min()
    }

    fn step(&mut self, event: u64) {
        let next = self.machine.next_time();
        let due = self.empty.iter().position(|empty| next.is_none_or(|next| empty.until <= next));
        let name = if let Some(place) = due {
            self.fill(place);
            50
        } else {
            self.machine.step()
        };
        if self.is_recovering {
            self.fingerprint.step(name);
            match self.machine.service.has_started() {
                Ok(false) => {}
                Ok(true) => {
                    self.is_recovering = false;
                    self.look_at_all();
                    if let Some(recovery) = self.client.outcome.recoveries.last_mut() {
                        recovery.end = event + 1;
                    }
                }
                Err(failure) => self.client.violate(format!("the array does not start: {failure}")),
            }
        }
        self.take_answers();
    }

    fn may_fail(&mut self) -> bool {
        self.is_strained
    }

    fn strike(&mut self, fault: Fault, event: u64) {
        let now = self.machine.now;
        let is_there = fault.drive().is_none_or(|leg| leg < self.legs() && !self.machine.is_gone(leg));
        match fault {
            Fault::PowerLoss { .. } => self.cut_power(event),
            Fault::StallDrive { drive, held_for } if is_there => self.machine.hold(drive, now + held_for),
            // A drive that is left out is rebuilt of the others, all of whose blocks must be readable.
            Fault::LinkDown { drive, down_for } if is_there && (self.has_room_for(drive) || !self.has_lost()) => {
                self.is_strained |= !self.has_room_for(drive) || self.is_recovering;
                self.machine.fail(drive, now + down_for.unwrap_or(AWAY[2]));
            }
            Fault::LoseDrive { drive, gone_for } if is_there && self.has_room_for(drive) && self.can_miss(drive) => {
                self.counts.lost += 1;
                self.machine.lose(drive);
                // Some callers know of it before an order has ended.
                if self.counts.lost.is_multiple_of(2) {
                    self.machine.tell(|array, out| array.lost(now, Leg(drive as u8), out));
                }
                self.empty.extend(gone_for.map(|span| Empty { leg: drive, until: now + span }));
            }
            // A partial parity log needs the data that it is not of: of blocks that were written when power was lost, too.
            Fault::Spoil { drive }
                if is_there
                    && self.has_room_for(drive)
                    && self.config.journal == Journal::Whole
                    && !self.is_recovering =>
            {
                for _ in 0..SPOILED {
                    self.counts.spoiled += 1;
                    let reserved = u64::from(self.config.reserved);
                    let block = reserved + self.rng.below(self.blocks[drive as usize] - reserved);
                    self.machine.spoil(drive as usize, block);
                }
                self.scrub(1);
            }
            _ => {}
        }
    }

    /// Power is cut once more, everything is rebuilt, and every stripe is looked at.
    fn end(mut self, injector: Injector<'_>) -> Outcome {
        if !self.client.is_over() {
            self.client.violate(format!("requests have no answer at {:?}", self.machine.now));
        }
        let events = injector.events();
        self.cut_power(events);
        self.client.outcome.recoveries.pop();
        self.settle(events);
        self.check_parity("before a scrub");
        self.scrub(1);
        self.settle(events);
        self.check_parity("after a scrub");
        self.look_at_all();
        self.check_places();
        let layout = self.machine.service.layout().clone();
        for stripe in 0..layout.stripes() as u32 {
            for (leg, first) in (0..self.config.width).map(|role| self.machine.service.place(stripe, role)) {
                let mut blocks = first..first + u64::from(self.config.chunk_blocks);
                if let Some(block) = blocks.find(|&block| !self.machine.is_readable(leg.0.into(), block)) {
                    self.client.violate(format!("block {block} of leg {} cannot be read after a scrub", leg.0));
                }
            }
        }
        self.take_counters();
        let blocks = self.client.finish(self.machine.now);
        let Counts { cuts, lost, replaced, old, spoiled, repeated, rebuilt, degraded, aggregated, compared, .. } =
            self.counts;
        let Counts { moved, moved_by_writes, abandoned, .. } = self.counts;
        let mut outcome = self.client.outcome;
        outcome.counters.extend([
            ("power cuts", cuts),
            ("legs lost", lost),
            ("legs replaced", replaced),
            ("legs that came back old", old),
            ("blocks spoiled", spoiled),
            ("changes repeated", repeated),
            ("chunks rebuilt", rebuilt),
            ("degraded reads", degraded),
            ("writes aggregated", aggregated),
            ("parities compared", compared),
            ("chunks moved", moved),
            ("chunks moved by writes", moved_by_writes),
            ("moves given up", abandoned),
            ("blocks checked", blocks),
        ]);
        Outcome { events, taken: injector.into_taken(), fingerprint: self.fingerprint.get(), ..outcome }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flashyard_faults::{FaultPlan, Limits, explore};

    #[test]
    fn no_stripe_has_a_wrong_parity_at_some_thousand_points() {
        for seed in [0, 1, 2, 5, 7, 9] {
            let base = Case { seed, size: None, plan: FaultPlan::NONE };
            let report = explore(&ArrayWorld, base, Limits { points: 2_000, ..Limits::default() });
            assert_eq!(report.violations(), 0, "{report}\n{:?}", report.failures());
            let counters = report.counters();
            for name in ["power cuts", "legs lost", "legs replaced", "legs that came back old", "changes repeated"] {
                assert!(counters[name] > 100, "{name}: {report}");
            }
        }
    }

    #[test]
    fn a_case_is_all_that_determines_an_outcome() {
        let case: Case = "seed=5;size=40;power@e130+20us;spoil1@r14;link0@r10+20us".parse().expect("a case");
        assert_eq!(ArrayWorld.run(&case), ArrayWorld.run(&case));
        assert_eq!(ArrayWorld.run(&case).taken.len(), 3);
    }
}
