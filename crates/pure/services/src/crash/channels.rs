//! Virtual channels as a world for the explorer of faults: channels are remapped while clients use them, legs refuse orders or stand still, and
//! power is lost.
//!
//! The rules are those of any client. At every start no two channels have one place, and the newest map that was told counts.

use super::client::{Client, Habits};
use super::drill::Drill;
use super::machine::{AWAY, Machine, faults};
use crate::{ChannelRoom, Channels};
use flashyard_blk::{VolumeInfo, VolumeLimits};
use flashyard_faults::{Case, Fault, Fingerprint, Injector, Outcome, World};
use flashyard_kernel::Rng;
use flashyard_service::contract::{BLOCK_BYTES, stamp_of};
use flashyard_service::{Rebuild, Service};
use flashyard_units::VolumeId;

/// Blocks of a leg, of which the record takes some. \[A\]
const LEG_BLOCKS: u64 = 40;
/// Blocks that are copied at once. \[A\]
const PIECES: [u32; 3] = [2, 3, 32];
/// Requests of a channel under way at most. \[A\]
const DEPTHS: [u16; 2] = [2, 6];
/// One request in so many is followed by a wish to move a channel. \[A\]
const MOVES_ONE_IN: u64 = 3;
/// Requests of a run that says nothing else. \[A\]
const REQUESTS: u32 = 60;
/// Events of a request at most, before a run counts as stuck. \[A\]
const EVENTS_PER_REQUEST: u64 = 2000;

/// Channels to break.
#[derive(Clone, Copy, Debug, Default)]
pub struct ChannelWorld;

impl World for ChannelWorld {
    fn name(&self) -> String {
        "open-channel".to_owned()
    }

    fn faults(&self) -> Vec<Fault> {
        faults(2)
    }

    fn size(&self) -> u32 {
        REQUESTS
    }

    fn run(&self, case: &Case) -> Outcome {
        let requests = case.size.unwrap_or(REQUESTS);
        Run::new(case.seed, requests).run(case, (u64::from(requests) + 10) * EVENTS_PER_REQUEST)
    }
}

/// Counts of a run.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    cuts: u64,
    begun: u64,
    moved: u64,
    given_up: u64,
    /// Losses of power while a channel was moved.
    cut_moves: u64,
}

struct Run {
    client: Client,
    rng: Rng,
    room: ChannelRoom,
    piece: u32,
    machine: Machine<Channels>,
    fingerprint: Fingerprint,
    /// Whether clients ask before the map is found. Then its blocks are changing when it is.
    is_early: bool,
    /// The map that was told last, and the one that a move under way would make of it.
    told: Vec<u16>,
    wished: Option<(u16, u16)>,
    is_recovering: bool,
    counts: Counts,
}

fn channels(room: ChannelRoom, piece: u32) -> Channels {
    let limits = VolumeLimits { request_blocks: piece, ..VolumeLimits::new(LEG_BLOCKS, false) };
    let leg = VolumeInfo { id: VolumeId::new(0), block_bytes: BLOCK_BYTES, limits, protected: false };
    Channels::new(room, &leg).expect("legs have room for channels")
}

impl Run {
    fn new(seed: u64, requests: u32) -> Self {
        let at = |step: u64, of: usize| (seed / step) as usize % of;
        let legs = 1 + at(1, 2) as u8;
        let room = ChannelRoom { legs, channels: 3, spares: 1 + 2 * at(2, 2) as u16, depth: DEPTHS[at(4, 2)] };
        let piece = PIECES[at(8, 3)];
        let service = channels(room, piece);
        let blocks = 3 * service.channel_blocks();
        let (has_trims, protected) = (at(3, 2) == 1, at(24, 4) == 3);
        let habits = Habits { requests, blocks, span: blocks, has_trims, whole: false, protected };
        Self {
            client: Client::new(habits, Rng::named(seed, "channels.client")),
            rng: Rng::named(seed, "channels.moves"),
            room,
            piece,
            machine: Machine::new(service, LEG_BLOCKS, protected, Rng::named(seed, "channels.legs")),
            fingerprint: Fingerprint::default(),
            is_early: at(48, 2) == 1,
            told: (0..room.channels).collect(),
            wished: None,
            is_recovering: true,
            counts: Counts::default(),
        }
    }

    /// Wishes a channel elsewhere. Some wishes are refused: the place may have a channel, or another one is being moved.
    fn wish(&mut self) {
        let channel = self.rng.below(self.room.channels.into()) as u16;
        let to = self.rng.below(u64::from(self.room.channels + self.room.spares)) as u16;
        let now = self.machine.now;
        let is_new = self.machine.service.places()[usize::from(channel)] != to;
        let begins = self.machine.tell(|channels, out| {
            let begins = channels.remap(channel, to);
            channels.wake(now, out);
            begins
        });
        if begins && is_new {
            self.wished = Some((channel, to));
            self.counts.begun += 1;
        }
        self.look_at_map();
    }

    /// Whether the map is the one that was told last, or a wish has come true.
    fn look_at_map(&mut self) {
        let service = &self.machine.service;
        if service.has_started() != Ok(true) {
            return;
        }
        if service.places() != self.told {
            let mut expected = self.told.clone();
            if let Some((channel, to)) = self.wished.take() {
                expected[usize::from(channel)] = to;
                self.counts.moved += 1;
            }
            if service.places() != expected {
                let problem = format!("the map is {:?}, not {:?} or {expected:?}", service.places(), self.told);
                self.client.violate(problem);
            }
            self.told = self.machine.service.places().to_vec();
        } else if self.wished.is_some() && !service.is_moving() {
            self.wished = None;
            self.counts.given_up += 1;
        }
        let mut places = self.told.clone();
        places.sort_unstable();
        places.dedup();
        if places.len() != usize::from(self.room.channels) {
            self.client.violate(format!("two channels have one place: {:?}", self.told));
        }
    }

    /// All blocks as they are read, when nothing is under way.
    fn look_at_all(&mut self) {
        let blocks = u64::from(self.room.channels) * self.machine.service.channel_blocks();
        let stamp = |block| {
            let (leg, at) = self.machine.service.place_of(block);
            stamp_of(self.machine.get_of(leg.0.into(), at))
        };
        let stamps: Vec<u64> = (0..blocks).map(stamp).collect();
        self.client.saw_all(self.machine.now, &stamps);
    }

    fn cut_power(&mut self, event: u64) {
        self.counts.cuts += 1;
        self.counts.cut_moves += u64::from(self.machine.service.is_moving());
        self.machine.cut_power(channels(self.room, self.piece));
        self.client.lost_power(self.machine.now);
        self.is_recovering = true;
        self.client.outcome.recoveries.push(event..event + 1);
        self.fingerprint.step(99);
    }
}

impl Drill for Run {
    type Service = Channels;

    fn parts(&mut self) -> (&mut Client, &mut Machine<Channels>) {
        (&mut self.client, &mut self.machine)
    }

    fn issue_more(&mut self) {
        while self.is_early || !self.is_recovering {
            let Some((request, blocks)) = self.client.next(self.machine.now) else { break };
            self.machine.submit(request, blocks);
            self.take_answers();
            if self.rng.below(MOVES_ONE_IN) == 0 {
                self.wish();
            }
        }
    }

    fn step(&mut self, event: u64) {
        let name = self.machine.step();
        self.look_at_map();
        if self.is_recovering {
            self.fingerprint.step(name);
            match self.machine.service.has_started() {
                Ok(false) => {}
                Ok(true) => {
                    self.is_recovering = false;
                    if !self.is_early || self.client.is_over() {
                        self.look_at_all();
                    }
                    if let Some(recovery) = self.client.outcome.recoveries.last_mut() {
                        recovery.end = event + 1;
                    }
                }
                Err(failure) => self.client.violate(format!("the channels have not found their map: {failure}")),
            }
        }
        self.take_answers();
    }

    fn strike(&mut self, fault: Fault, event: u64) {
        let now = self.machine.now;
        let is_there = fault.drive().is_none_or(|leg| leg < u32::from(self.room.legs));
        match fault {
            Fault::PowerLoss { .. } => self.cut_power(event),
            Fault::LinkDown { drive, down_for } if is_there => {
                self.machine.fail(drive, now + down_for.unwrap_or(AWAY[2]));
            }
            Fault::StallDrive { drive, held_for } if is_there => self.machine.hold(drive, now + held_for),
            _ => {}
        }
    }

    /// Power is cut once more, and every block is looked at.
    fn end(mut self, injector: Injector<'_>) -> Outcome {
        if !self.client.is_over() {
            self.client.violate(format!("requests have no answer at {:?}", self.machine.now));
        }
        let events = injector.events();
        let mut steps = 0;
        let left = |run: &Self| {
            run.machine.service.rebuild() != Some(Rebuild { left: 0, all: run.machine.service.channel_blocks() })
        };
        while (self.machine.service.is_moving() || left(&self)) && steps < 10 * EVENTS_PER_REQUEST {
            if self.machine.next_time().is_none() {
                self.client.violate("a move has no end".to_owned());
                break;
            }
            self.step(events);
            steps += 1;
        }
        self.cut_power(events);
        self.client.outcome.recoveries.pop();
        while self.machine.service.has_started() == Ok(false) && steps < 20 * EVENTS_PER_REQUEST {
            self.step(events);
            steps += 1;
        }
        if self.machine.service.has_started() != Ok(true) {
            self.client.violate("the last recovery has no end".to_owned());
        }
        let blocks = self.client.finish(self.machine.now);
        let Counts { cuts, begun, moved, given_up, cut_moves } = self.counts;
        let mut outcome = self.client.outcome;
        outcome.counters.extend([
            ("power cuts", cuts),
            ("moves begun", begun),
            ("channels moved", moved),
            ("moves given up", given_up),
            ("power cuts while a channel was moved", cut_moves),
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
    fn channels_have_their_blocks_at_some_thousand_points() {
        for seed in [0, 13, 55, 75] {
            let base = Case { seed, size: None, plan: FaultPlan::NONE };
            let report = explore(&ChannelWorld, base, Limits { points: 3_000, ..Limits::default() });
            assert_eq!(report.violations(), 0, "{report}\n{:?}", report.failures());
            let counters = report.counters();
            for name in ["channels moved", "moves given up", "power cuts while a channel was moved"] {
                assert!(counters[name] > 300, "{name}: {report}");
            }
        }
    }

    #[test]
    fn a_case_is_all_that_determines_an_outcome() {
        let case: Case = "seed=5;size=40;power@e30+20us;link0@r10+20us".parse().expect("a case");
        assert_eq!(ChannelWorld.run(&case), ChannelWorld.run(&case));
        assert_eq!(ChannelWorld.run(&case).taken.len(), 2);
    }
}
