//! Channels over legs that fail, move and are asked too much.

use super::keeper::{Errand, Keeper};
use super::record::Record;
use super::shape::Shape;
use super::*;
use flashyard_blk::{Payload, Volume, VolumeRequest};
use flashyard_kernel::Rng;
use flashyard_service::Over;
use flashyard_service::contract::{ModelVolume, Plan, check_seeds};
use flashyard_units::{SimSpan, VolumeId};

const BLOCK_BYTES: u32 = 64;

fn leg(blocks: u64, request_blocks: u32) -> VolumeInfo {
    let limits = VolumeLimits { request_blocks, ..VolumeLimits::new(blocks, false) };
    VolumeInfo { id: VolumeId::new(0), block_bytes: BLOCK_BYTES, limits, protected: false }
}

/// Channels that are moved now and then, whatever clients do.
struct Restless {
    channels: Channels,
    rng: Rng,
}

impl Service for Restless {
    fn legs(&self) -> usize {
        self.channels.legs()
    }

    fn limits(&self, legs: &[VolumeInfo]) -> VolumeLimits {
        self.channels.limits(legs)
    }

    fn start(&mut self, now: SimTime, legs: &[VolumeInfo], out: &mut Orders) {
        self.channels.start(now, legs, out);
    }

    fn submit(&mut self, now: SimTime, request: &Request, out: &mut Orders) {
        let places = u64::from(self.channels.shape.physical);
        let channel = self.rng.below(self.channels.channels.len() as u64);
        if self.rng.below(4) == 0 && self.channels.set(&format!("channel-{channel}"), self.rng.below(places)) {
            self.channels.wake(now, out);
        }
        self.channels.submit(now, request, out);
    }

    fn received(&mut self, order: u32, bytes: &[u8]) {
        self.channels.received(order, bytes);
    }

    fn completed(&mut self, now: SimTime, order: u32, result: Result<(), Failure>, out: &mut Orders) {
        self.channels.completed(now, order, result, out);
    }

    fn wake(&mut self, now: SimTime, out: &mut Orders) {
        self.channels.wake(now, out);
    }
}

#[test]
fn the_contract_holds_while_channels_are_moved() {
    for (legs, channels, spares, request_blocks) in [(1, 600, 24, 3), (2, 900, 100, 2), (3, 7, 2, 4000), (2, 1, 1, 5)] {
        let room = ChannelRoom { legs, channels, spares, depth: 3 };
        let mut seed = 0;
        check_seeds(150, || {
            seed += 1;
            let channels = Channels::new(room, &leg(4096, request_blocks)).expect("there is room");
            Restless { channels, rng: Rng::named(seed, "channels.restless") }
        });
    }
}

fn over(room: ChannelRoom, blocks: u64) -> Over<Channels, ModelVolume> {
    let plan = Plan { leg_blocks: blocks, ..Plan::new(7) };
    let legs = (0..room.legs.into()).map(|leg| ModelVolume::new(leg, plan)).collect();
    Over::new(VolumeId::new(0), Channels::new(room, &leg(blocks, u32::MAX)).expect("there is room"), legs)
}

fn settle(volume: &mut Over<Channels, ModelVolume>, now: &mut SimTime) {
    for _ in 0..1000 {
        *now = volume.advance(*now + SimSpan::from_us(50), &mut Vec::new()).expect("it goes on");
    }
}

#[test]
fn wishes_that_make_no_sense_are_refused() {
    let mut volume = over(ChannelRoom { legs: 1, channels: 3, spares: 1, depth: 2 }, 44);
    assert!(!volume.service_mut().remap(0, 3), "the map is not known yet");
    let mut now = SimTime::ZERO;
    settle(&mut volume, &mut now);
    let mut set = |name: &str, value| {
        volume.tell(|channels, now, out| {
            let is_taken = channels.set(name, value);
            channels.wake(now, out);
            is_taken
        })
    };
    assert!(!set("channel-0", 1), "another channel is there");
    assert!(!set("channel-0", 4) && !set("channel-3", 3) && !set("channel-", 3) && !set("chanel-0", 3));
    assert!(!set("channel-0", 1 << 16 | 3));
    assert!(set("channel-0", 0), "it is there already");
    assert!(set("channel-0", 3));
    assert!(!set("channel-1", 0), "one is moved at a time");
    settle(&mut volume, &mut now);
    assert_eq!(volume.service().places(), [3, 1, 2]);
    assert_eq!(volume.service().note().as_deref(), Some("channels 0 on 3, 1 on 1, 2 on 2"));
}

#[test]
fn a_map_survives_and_a_damaged_one_is_not_guessed() {
    let room = ChannelRoom { legs: 1, channels: 3, spares: 1, depth: 2 };
    let shape = Shape::new(room, &leg(44, u32::MAX)).expect("there is room");
    let bytes = shape.record_blocks as usize * BLOCK_BYTES as usize;
    let start = |first: Option<&[u8]>, second: Option<&[u8]>| {
        let mut keeper = Keeper::new(shape);
        let mut wishes = Vec::new();
        while let Some(errand) = keeper.wish(SimTime::ZERO) {
            wishes.push(errand);
            if let Errand::Find(place) = errand
                && let Some(bytes) = [first, second][usize::from(place)]
            {
                keeper.received(place, bytes);
            }
            keeper.ended(SimTime::ZERO, Ok(()));
        }
        (keeper.broken(), keeper.places().to_vec(), wishes.last().copied())
    };
    let record = |epoch, places: [u16; 3], blocks| {
        let mut written = Vec::new();
        Record { epoch, physical: 4, blocks, places: places.to_vec() }.encode(bytes, &mut written);
        written
    };
    let (zeros, junk) = (vec![0; bytes], vec![7; bytes]);
    let (old, new) = (record(5, [0, 1, 2], shape.blocks), record(6, [3, 1, 2], shape.blocks));
    assert_eq!(start(None, None), (None, vec![0, 1, 2], Some(Errand::Write(1))), "legs without bytes");
    assert_eq!(
        start(Some(&zeros), Some(&junk)),
        (None, vec![0, 1, 2], Some(Errand::Write(1))),
        "the first one was torn"
    );
    assert_eq!(start(Some(&new), Some(&old)), (None, vec![3, 1, 2], Some(Errand::Settle)));
    assert_eq!(start(Some(&junk), Some(&old)), (None, vec![0, 1, 2], Some(Errand::Settle)), "the next one was torn");
    let broken = Some(Failure::Failed);
    assert_eq!(start(Some(&junk), Some(&zeros)).0, broken, "bytes of others");
    assert_eq!(start(Some(&junk), Some(&junk)).0, broken);
    assert_eq!(start(Some(&record(6, [3, 1, 2], shape.blocks + 1)), Some(&old)).0, broken, "another shape");
    assert_eq!(start(Some(&record(6, [3, 3, 2], shape.blocks)), Some(&old)).0, broken, "two channels in one place");
}

#[test]
fn a_channel_that_is_asked_too_much_keeps_the_others_free() {
    // A leg that carries out one order after another, 10 us each.
    let waits = |depth: u16| {
        let room = ChannelRoom { legs: 1, channels: 2, spares: 0, depth };
        let mut channels = Channels::new(room, &leg(104, u32::MAX)).expect("there is room");
        let mut out = Orders::default();
        let mut line: VecDeque<u32> = VecDeque::new();
        channels.start(SimTime::ZERO, &[leg(104, u32::MAX)], &mut out);
        while channels.has_started() == Ok(false) {
            let ids: Vec<u32> = out.orders.iter().map(|order| order.id).collect();
            out.clear();
            ids.into_iter().for_each(|id| channels.completed(SimTime::ZERO, id, Ok(()), &mut out));
        }
        out.clear();
        let read = |id, first| Request { id, operation: Operation::Read, first, count: 1, durable: false, source: 0 };
        (0..200).for_each(|id| channels.submit(SimTime::ZERO, &read(id, 3), &mut out));
        channels.submit(SimTime::ZERO, &read(200, 50), &mut out);
        for served in 0.. {
            line.extend(out.orders.iter().map(|order| order.id));
            out.clear();
            let next = line.pop_front().expect("something is under way");
            channels.completed(SimTime::ZERO, next, Ok(()), &mut out);
            if out.answers.iter().any(|&(id, _)| id == 200) {
                return served;
            }
        }
        unreachable!("it is answered")
    };
    assert_eq!([1, 4, 32].map(waits), [1, 4, 32], "as many as the depth are served before it");
}

#[test]
fn blocks_are_where_the_map_says() {
    let room = ChannelRoom { legs: 2, channels: 3, spares: 1, depth: 4 };
    let mut volume = over(room, 24);
    let mut now = SimTime::ZERO;
    settle(&mut volume, &mut now);
    let blocks = volume.service().channel_blocks();
    let write = |first: u64| VolumeRequest {
        volume: VolumeId::new(0),
        operation: Operation::Write,
        first,
        count: 1,
        source: 0,
    };
    for block in 0..3 * blocks {
        let bytes = flashyard_service::contract::block_of(1000 + block).to_vec();
        volume.submit(now, block, &write(block), Payload::Bytes(bytes)).expect("it is taken");
        settle(&mut volume, &mut now);
    }
    volume.tell(|channels, now, out| {
        assert!(channels.remap(1, 3));
        channels.wake(now, out);
    });
    settle(&mut volume, &mut now);
    assert_eq!(volume.service().places(), [0, 3, 2]);
    for block in 0..3 * blocks {
        let mut ended = Vec::new();
        volume
            .submit(now, block, &VolumeRequest { operation: Operation::Read, ..write(block) }, Payload::None)
            .expect("it is taken");
        while ended.is_empty() {
            now = volume.advance(now + SimSpan::from_us(50), &mut ended).expect("it goes on");
        }
        assert_eq!(ended[0].bytes, flashyard_service::contract::block_of(1000 + block), "block {block}");
    }
}
