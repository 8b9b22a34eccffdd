//! A mirror that keeps a record as a world for the explorer of faults: legs lose their power together, end one by one, come back old, or are
//! replaced by others, while copies are made.
//!
//! The rules are those of any client. At every start, and at the end, the copies that count are alike, whichever leg is read.

use super::client::{Client, Habits};
use super::drill::Drill;
use super::leg::{Block, ZEROS};
use super::machine::{AWAY, Machine, faults};
use crate::{IntentRoom, Mirrored};
use flashyard_blk::{VolumeInfo, VolumeLimits};
use flashyard_faults::{Case, Fault, Fingerprint, Injector, Outcome, World};
use flashyard_kernel::Rng;
use flashyard_service::contract::{BLOCK_BYTES, stamp_of};
use flashyard_service::{Leg, Service};
use flashyard_units::{SimSpan, SimTime, VolumeId};

/// Blocks of a leg, of which the record takes some. \[A\]
const LEG_BLOCKS: u64 = 32;
/// Regions at most: blocks of a region are several, some, one. \[A\]
const REGIONS: [u32; 3] = [3, 7, 40];
/// When regions count as clean: soon, after some requests, never. \[A\]
const CLEAN_AFTER: [SimSpan; 3] = [SimSpan::from_us(60), SimSpan::from_us(900), SimSpan::from_secs(5)];
/// Requests of a run that says nothing else. \[A\]
const REQUESTS: u32 = 60;
/// Events of a request at most, before a run counts as stuck. \[A\]
const EVENTS_PER_REQUEST: u64 = 2000;
/// How long a place stays empty before another leg is put there. \[A\]
const EMPTY: [SimSpan; 2] = [SimSpan::from_us(30), SimSpan::from_us(600)];

/// A mirror to break.
#[derive(Clone, Copy, Debug, Default)]
pub struct MirrorWorld;

impl World for MirrorWorld {
    fn name(&self) -> String {
        "mirror-legs".to_owned()
    }

    fn faults(&self) -> Vec<Fault> {
        let lose = |drive: u32| {
            let gone_for = EMPTY.map(Some).into_iter().chain([None]);
            gone_for.map(move |gone_for| Fault::LoseDrive { drive, gone_for })
        };
        faults(2).into_iter().chain((0..3).flat_map(lose)).collect()
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
    copied: u64,
    compared: u64,
}

struct Run {
    client: Client,
    legs: u8,
    room: IntentRoom,
    machine: Machine<Mirrored>,
    fingerprint: Fingerprint,
    empty: Vec<Empty>,
    /// Whether a new leg brings the bytes of another mirror along.
    has_foreign: bool,
    is_recovering: bool,
    counts: Counts,
}

fn mirror(legs: u8, room: IntentRoom) -> Mirrored {
    let limits = VolumeLimits::new(LEG_BLOCKS, false);
    let leg = VolumeInfo { id: VolumeId::new(0), block_bytes: BLOCK_BYTES, limits, protected: false };
    Mirrored::recorded(legs, &leg, room).expect("legs have room for a record")
}

impl Run {
    fn new(seed: u64, requests: u32) -> Self {
        let at = |step: u64, of: usize| (seed / step) as usize % of;
        let legs = 2 + at(1, 2) as u8;
        let room = IntentRoom {
            id: 7 << 32,
            regions: REGIONS[at(2, 3)],
            clean_after: CLEAN_AFTER[at(6, 3)],
            alike: at(18, 2) == 0,
            blank: 0,
        };
        let service = mirror(legs, room);
        let blocks = service.blocks();
        let (has_trims, protected) = (at(36, 2) == 1, at(72, 4) == 3);
        let habits =
            Habits { requests, blocks, span: blocks.min(9 + 30 * at(5, 2) as u64), has_trims, whole: false, protected };
        Self {
            client: Client::new(habits, Rng::named(seed, "mirror.client")),
            legs,
            room,
            machine: Machine::new(service, LEG_BLOCKS, protected, Rng::named(seed, "mirror.legs")),
            fingerprint: Fingerprint::default(),
            empty: Vec::new(),
            has_foreign: at(3, 2) == 1,
            is_recovering: true,
            counts: Counts::default(),
        }
    }

    fn left(&self) -> u64 {
        self.machine.service.rebuild().map_or(0, |rebuild| rebuild.left)
    }

    /// Puts another leg in an empty place.
    fn fill(&mut self, place: usize) {
        let Empty { leg, .. } = self.empty[place];
        self.machine.now = self.machine.now.max(self.empty[place].until);
        // The bytes there belong to others: the end of another mirror, and stamps that no client has written here.
        let foreign: Option<Vec<Block>> = self.has_foreign.then(|| {
            let mut other = Machine::new(
                mirror(self.legs, IntentRoom { id: 99 << 32, ..self.room }),
                LEG_BLOCKS,
                false,
                Rng::named(u64::from(leg), "mirror.foreign"),
            );
            while other.service.has_started() == Ok(false) {
                other.step();
            }
            (0..LEG_BLOCKS).map(|block| *other.get_of(leg as usize, block)).collect()
        });
        let block = |at: u64| foreign.as_ref().map_or(ZEROS, |blocks| blocks[at as usize]);
        if !self.machine.put(leg, block) {
            // Its last orders are on their way.
            self.empty[place].until = self.machine.now + SimSpan::from_us(5);
            return;
        }
        self.empty.remove(place);
        self.counts.replaced += 1;
        let now = self.machine.now;
        let is_taken = self.machine.tell(|mirror, out| {
            let is_taken = mirror.replaced(Leg(leg as u8));
            mirror.wake(now, out);
            is_taken
        });
        if !is_taken {
            self.client.violate(format!("a mirror that has started takes no new leg {leg}"));
        }
    }

    /// All blocks as they are read, when nothing is under way.
    fn look_at_all(&mut self) {
        let mut stamps = Vec::new();
        for block in 0..self.machine.service.blocks() {
            match self.machine.service.source(block) {
                Some(leg) => stamps.push(stamp_of(self.machine.get_of(leg.0.into(), block))),
                None => self.client.violate(format!("block {block} has no copy that counts")),
            }
        }
        if stamps.len() as u64 == self.machine.service.blocks() {
            self.client.saw_all(self.machine.now, &stamps);
        }
    }

    /// Whether the service knows of all legs that have ended.
    fn knows_legs(&self) -> bool {
        let gone = (0..u32::from(self.legs)).filter(|&leg| self.machine.is_gone(leg)).count();
        gone as u32 == u32::from(self.legs) - self.machine.service.legs_alive()
    }

    /// Whether the others have all that a leg has, and take what is under way.
    fn can_miss(&self, leg: u32) -> bool {
        let service = &self.machine.service;
        self.knows_legs() && service.can_miss(Leg(leg as u8)) && !service.has_refusals() && !self.machine.fails_now()
    }

    fn cut_power(&mut self, event: u64) {
        self.counts.cuts += 1;
        self.counts.old += (0..u32::from(self.legs)).filter(|&leg| self.machine.is_gone(leg)).count() as u64;
        self.empty.clear();
        self.machine.cut_power(mirror(self.legs, self.room));
        self.client.lost_power(self.machine.now);
        self.is_recovering = true;
        self.client.outcome.recoveries.push(event..event + 1);
        self.fingerprint.step(99);
    }
}

impl Drill for Run {
    type Service = Mirrored;

    fn parts(&mut self) -> (&mut Client, &mut Machine<Mirrored>) {
        (&mut self.client, &mut self.machine)
    }

    fn next_time(&mut self) -> Option<SimTime> {
        let place = self.empty.iter().map(|empty| empty.until);
        self.machine.next_time().into_iter().chain(place).min()
    }

    fn step(&mut self, event: u64) {
        let left = self.left();
        let next = self.machine.next_time();
        let due = self.empty.iter().position(|empty| next.is_none_or(|next| empty.until <= next));
        let name = if let Some(place) = due {
            self.fill(place);
            50
        } else {
            self.machine.step()
        };
        self.counts.copied += left.saturating_sub(self.left());
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
                Err(failure) => self.client.violate(format!("the mirror has not found its record: {failure}")),
            }
        }
        self.take_answers();
    }

    fn strike(&mut self, fault: Fault, event: u64) {
        let now = self.machine.now;
        let is_there = fault.drive().is_none_or(|leg| leg < u32::from(self.legs) && !self.machine.is_gone(leg));
        match fault {
            Fault::PowerLoss { .. } => self.cut_power(event),
            // A change that one leg took with it and another one refuses is nowhere.
            Fault::LinkDown { drive, down_for } if is_there && self.knows_legs() => {
                self.machine.fail(drive, now + down_for.unwrap_or(AWAY[2]));
            }
            Fault::StallDrive { drive, held_for } if is_there => self.machine.hold(drive, now + held_for),
            Fault::LoseDrive { drive, gone_for } if is_there && self.can_miss(drive) => {
                self.counts.lost += 1;
                self.machine.lose(drive);
                // Some callers know of it before an order has ended.
                if self.counts.lost.is_multiple_of(2) {
                    self.machine.tell(|mirror, out| mirror.lost(now, Leg(drive as u8), out));
                }
                self.empty.extend(gone_for.map(|span| Empty { leg: drive, until: now + span }));
            }
            _ => {}
        }
    }

    /// Power is cut once more, all copies are made, and every block of every leg is looked at.
    fn end(mut self, injector: Injector<'_>) -> Outcome {
        if !self.client.is_over() {
            self.client.violate(format!("requests have no answer at {:?}", self.machine.now));
        }
        let events = injector.events();
        self.cut_power(events);
        self.client.outcome.recoveries.pop();
        let mut steps = 0;
        while (self.machine.service.has_started() == Ok(false) || self.left() > 0) && steps < 10 * EVENTS_PER_REQUEST {
            self.step(events);
            steps += 1;
        }
        if self.machine.service.has_started() != Ok(true) || self.left() > 0 {
            self.client.violate(format!("the last recovery has no end, {} copies are left", self.left()));
        }
        self.look_at_all();
        for block in 0..self.machine.service.blocks() {
            let copies: Vec<u64> = (0..self.legs.into()).map(|leg| stamp_of(self.machine.get_of(leg, block))).collect();
            self.counts.compared += copies.len() as u64;
            if copies.iter().any(|copy| *copy != copies[0]) {
                self.client.violate(format!("copies of block {block} differ: {copies:?}"));
            }
        }
        let blocks = self.client.finish(self.machine.now);
        let Counts { cuts, lost, replaced, old, copied, compared } = self.counts;
        let mut outcome = self.client.outcome;
        outcome.counters.extend([
            ("power cuts", cuts),
            ("legs lost", lost),
            ("legs replaced", replaced),
            ("legs that came back old", old),
            ("blocks copied to legs", copied),
            ("copies compared", compared),
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
    fn copies_are_alike_at_some_thousand_points() {
        for seed in [1, 8, 219] {
            let base = Case { seed, size: None, plan: FaultPlan::NONE };
            let report = explore(&MirrorWorld, base, Limits { points: 3_000, ..Limits::default() });
            assert_eq!(report.violations(), 0, "{report}\n{:?}", report.failures());
            let counters = report.counters();
            for name in ["power cuts", "legs lost", "legs replaced", "legs that came back old", "blocks copied to legs"]
            {
                assert!(counters[name] > 300, "{name}: {report}");
            }
        }
    }

    #[test]
    fn a_case_is_all_that_determines_an_outcome() {
        let case: Case = "seed=5;size=40;power@e30+20us;link0@r10+20us".parse().expect("a case");
        assert_eq!(MirrorWorld.run(&case), MirrorWorld.run(&case));
        assert_eq!(MirrorWorld.run(&case).taken.len(), 2);
    }
}
