//! The chart: the learned map as all whole drives have it, so that it survives with the array. Source: \[A\] sheet paraid §11 asks for a journal of moves.
//!
//! A drive has two areas, which take turns. An area is a header, the map as it was, and a log of moves since. A generation of the map is written to the area
//! that is not in use; when all drives have it, moves go to its log. So one of both is whole whenever power is lost. The newest that any whole drive has is
//! right: a chunk is at its new place before a move is recorded, and its old place is used again only when all drives have the record.

use super::members::Members;
use super::orders::{Desk, Under};
use super::record::{Area, Moved};
use super::shape::Shape;
use crate::learned::{Chunk, LearnedMap, Place};
use flashyard_blk::Operation;
use flashyard_service::{Data, Failure, Leg, Order, Orders};
use flashyard_units::SimTime;

/// Bytes of an exception in a saved map.
const MOVED_BYTES: u64 = 10;

/// Which generation is in use, and the one that is being written.
#[derive(Clone, Debug, Default)]
pub(super) struct Chart {
    /// Of the area in use, and the moves in its log.
    generation: u64,
    moves: u32,
    /// Moves that the log takes before the map could outgrow an area.
    most: u32,
    /// Drives that have it all, a bit each.
    on: u64,
    /// A generation is being written to these drives: orders under way, and whether one of them has to be sent again.
    writing: u64,
    waits: u32,
    again: bool,
    saved: Vec<u8>,
}

impl Chart {
    /// The one that was found: a new generation follows it.
    pub(super) fn found(&mut self, generation: u64) {
        *self = Self { generation, ..Self::default() };
    }

    /// Drives that have the map, a bit each.
    pub(super) const fn on(&self) -> u64 {
        self.on
    }

    /// Whether a generation is being written.
    pub(super) const fn is_writing(&self) -> bool {
        self.waits > 0 || self.again
    }

    /// Whether its log has no room for a move.
    pub(super) const fn is_full(&self) -> bool {
        self.moves >= self.most
    }

    /// Whether it is full, and a new generation would have room.
    pub(super) const fn is_used_up(&self) -> bool {
        self.is_full() && self.moves > 0
    }

    /// Begins the next generation on some drives. Exceptions become leaves where these fit.
    pub(super) fn begin(&mut self, shape: &mut Shape, legs: u64) {
        let Some(moves) = shape.config.moves else { return };
        let room = u64::from(moves.map_blocks) * u64::from(shape.block_bytes);
        let save = |map: &LearnedMap| {
            let mut bytes = Vec::new();
            map.save(&mut bytes);
            bytes
        };
        let mut trained = shape.map.clone();
        trained.retrain();
        self.saved = save(&trained);
        if self.saved.len() as u64 <= room {
            shape.map = trained;
        } else {
            self.saved = save(&shape.map);
        }
        let left = room.saturating_sub(self.saved.len() as u64) / MOVED_BYTES;
        self.most = u32::try_from(left).unwrap_or(u32::MAX).min(moves.log_blocks);
        (self.generation, self.moves, self.on, self.writing) = (self.generation + 1, 0, 0, legs);
    }

    /// Orders that write the generation that was begun.
    fn orders(&self, shape: &Shape, out: &mut Orders) -> Vec<Order> {
        let block = shape.block_bytes as usize;
        let first = shape.area_at(self.generation);
        let at = out.own.len() as u32;
        let area = Area {
            array: shape.config.id,
            generation: self.generation,
            bytes: self.saved.len() as u64,
            sum: sum_of(&self.saved),
        };
        area.encode(&mut out.own);
        out.own.resize(at as usize + block, 0);
        out.own.extend_from_slice(&self.saved);
        let blocks = 1 + self.saved.len().div_ceil(block) as u32;
        out.own.resize(at as usize + blocks as usize * block, 0);
        let pieces = (0..blocks).step_by(shape.piece_blocks as usize);
        let piece = |from: u32| Order {
            id: 0,
            leg: Leg(0),
            operation: Operation::Write,
            first: first + u64::from(from),
            count: (blocks - from).min(shape.piece_blocks),
            data: Data::Own { at: at + from * block as u32 },
            durable: true,
        };
        pieces.map(piece).collect()
    }

    /// Sends the generation that was begun to its drives.
    pub(super) fn send(&mut self, shape: &Shape, desk: &mut Desk, out: &mut Orders) {
        self.again = false;
        let orders = self.orders(shape, out);
        for leg in super::op::numbers(self.writing) {
            for order in &orders {
                self.waits += 1;
                desk.send(Under::Chart { leg }, Order { leg: Leg(leg), ..*order }, out);
            }
        }
    }

    /// A drive has taken a piece of it, or refused to.
    pub(super) fn ended(
        &mut self,
        now: SimTime,
        (leg, result): (u8, Result<(), Failure>),
        members: &mut Members,
        needs_all: bool,
    ) {
        self.waits -= 1;
        if let Err(failure) = result {
            let is_kept = needs_all && failure != Failure::Gone;
            if is_kept {
                members.retry(now);
            }
            if !is_kept && members.refuse(now, leg, failure) {
                self.writing &= !(1 << leg);
            } else {
                self.again = true;
            }
        }
        if self.waits == 0 && !self.again {
            (self.on, self.writing) = (self.writing, 0);
            self.saved = Vec::new();
        }
    }

    /// Sends again what a drive has refused.
    pub(super) fn try_again(&mut self, shape: &Shape, desk: &mut Desk, out: &mut Orders) {
        if self.again && self.waits == 0 {
            self.send(shape, desk, out);
        }
    }

    /// Drives other than these do not have it.
    pub(super) const fn keep(&mut self, legs: u64) {
        self.on &= legs;
        self.writing &= legs;
    }

    /// An order that records a move on leg 0.
    pub(super) fn record(&self, shape: &Shape, (chunk, to): (Chunk, Place), out: &mut Orders) -> Order {
        let at = out.own.len() as u32;
        let moved = Moved { array: shape.config.id, generation: self.generation, number: self.moves, chunk, to };
        moved.encode(&mut out.own);
        out.own.resize(at as usize + shape.block_bytes as usize, 0);
        let first = shape.log_at(self.generation) + u64::from(self.moves);
        let (operation, data) = (Operation::Write, Data::Own { at });
        Order { id: 0, leg: Leg(0), operation, first, count: 1, data, durable: true }
    }

    /// A move is recorded on all drives.
    pub(super) fn recorded(&mut self) {
        self.moves += 1;
    }
}

/// The newest map in areas of drives, as they were read: its generation, and how often chunks have moved since.
pub(super) fn find_map(shape: &Shape, areas: &[Vec<u8>]) -> Option<(u64, LearnedMap)> {
    let block = shape.block_bytes as usize;
    let map_blocks = shape.config.moves?.map_blocks as usize;
    let area_bytes = shape.area_blocks() as usize * block;
    let mut best: Option<((u64, usize), LearnedMap)> = None;
    for area in areas.iter().flat_map(|areas| areas.chunks(area_bytes)) {
        let Some(header) = Area::decode(shape.config.id, area) else { continue };
        let log = area.get((1 + map_blocks) * block..).unwrap_or(&[]);
        let moves: Vec<Moved> = (0..)
            .zip(log.chunks_exact(block))
            .map_while(|(number, record)| Moved::decode(&header, number, record))
            .collect();
        let rank = (header.generation, moves.len());
        if best.as_ref().is_some_and(|&(best, _)| best >= rank) {
            continue;
        }
        let Some(mut map) = load(shape, &header, area.get(block..)) else { continue };
        if moves.iter().all(|&Moved { chunk, to, .. }| follow(shape, &mut map, chunk, to)) {
            best = Some((rank, map));
        }
    }
    best.map(|((generation, _), map)| (generation, map))
}

/// The checksum that a saved map ends with. One of all its bytes would say nothing: a cyclic checksum of bytes and their own checksum is the same for all.
fn sum_of(saved: &[u8]) -> u32 {
    saved.last_chunk().map_or(0, |sum| u32::from_le_bytes(*sum))
}

/// The map behind a header, if it is that of an array of this shape.
fn load(shape: &Shape, header: &Area, bytes: Option<&[u8]>) -> Option<LearnedMap> {
    let saved = bytes?.get(..usize::try_from(header.bytes).ok()?)?;
    let map = (sum_of(saved) == header.sum).then(|| LearnedMap::load(saved).ok())??;
    let is_alike = map.stripes() == shape.map.stripes() && map.width() == shape.map.width();
    is_alike.then_some(map)
}

/// A chunk moves to a free place of a drive, as a record says.
fn follow(shape: &Shape, map: &mut LearnedMap, chunk: Chunk, to: Place) -> bool {
    let room = shape.rooms.get(usize::from(to.drive));
    let is_sane = chunk.stripe < map.stripes()
        && usize::from(chunk.column) < map.width()
        && room.is_some_and(|&room| to.chunk < room)
        && map.find(to).is_none();
    if is_sane {
        map.relocate(chunk, to);
    }
    is_sane
}
