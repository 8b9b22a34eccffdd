//! Requests that cross from one extent of their volume to the next: each part is a request of its own, and the client gets one
//! answer when all have theirs. Seldom: a namespace lies in several extents only if no free one had room for it.

use super::Engine;
use super::request::{Carried, Gather};
use crate::front::{Answered, Inbound};
use crate::front_ends::FrontEnds;
use crate::media::Data;
use flashyard_blk::{Operation, Payload, VolumeRequest};
use flashyard_kernel::Slab;
use flashyard_nvme::protection::Tuple;
use flashyard_served::Answer;
use flashyard_units::SimTime;

/// The front end of parts: no other one has this number.
const GATHER: usize = usize::MAX - 1;

/// Tags of parts: the number of the request above the number of the part.
const PART_BITS: u32 = 24;

/// A request in parts that has come to its end.
pub(super) struct Gathered {
    pub(super) operation: Operation,
    pub(super) len_bytes: u64,
    pub(super) asked: SimTime,
}

/// Takes in a request of a client.
#[inline]
pub(super) fn take_in(engine: &mut Engine, now: SimTime, inbound: Inbound) {
    let Inbound::Submit { front, tag, request, payload, metadata, is_lost } = inbound else { return };
    let carried = Carried { payload, metadata, is_lost };
    if engine.spaces.of(request.volume).is_contiguous() || request.operation == Operation::Flush {
        engine.submit(now, (front, tag), request, carried);
    } else {
        submit_in_parts(engine, now, (front, tag), request, carried);
    }
}

/// Takes in a request to a volume that does not lie in one piece.
#[cold]
fn submit_in_parts(
    engine: &mut Engine,
    now: SimTime,
    (front, tag): (usize, u64),
    request: VolumeRequest,
    carried: Carried,
) {
    let parts = parts_of(engine, &request);
    if let [only] = parts[..] {
        return engine.submit(now, (front, tag), only, carried);
    }
    let block_bytes = u64::from(flashyard_flash::SLOT_BYTES >> engine.shifts[request.volume.index()]);
    let offset = |part: &VolumeRequest| (part.first - request.first) * block_bytes;
    let len_bytes = u64::from(request.count) * block_bytes;
    let read_bytes = if request.operation == Operation::Read { len_bytes } else { 0 };
    let metadata_bytes = read_bytes / block_bytes * u64::from(engine.spaces.of(request.volume).metadata.bytes());
    let gather = Gather {
        front,
        tag,
        request,
        asked: now,
        len_bytes,
        left: parts.len() as u32,
        offsets: parts.iter().map(offset).collect(),
        answer: Answer::Done,
        no_room: false,
        bytes: vec![0; read_bytes as usize],
        metadata: vec![0; metadata_bytes as usize],
        block_bytes: block_bytes as u32,
    };
    let number = engine.gathers.insert(gather) as u64;
    if parts.is_empty() {
        // The namespace is gone: nothing of it is left to be asked.
        let Some(Gather { front, tag, .. }) = engine.gathers.remove(number as usize) else { return };
        let answer = Answer::Failed;
        return engine.fronts.answered(front, Answered { tag, answer, no_room: false, data: Data::NONE });
    }
    for (place, part) in (0..).zip(parts) {
        let own = match &carried.payload {
            Payload::Bytes(bytes) => {
                let first = offset(&part) as usize;
                let len = part.count as usize * block_bytes as usize;
                Payload::Bytes(bytes[first..first + len].to_vec())
            }
            Payload::Zeros => Payload::Zeros,
            Payload::None => Payload::None,
        };
        let metadata = carried.metadata.part((part.first - request.first) as u32, part.count);
        let own = Carried { payload: own, metadata, is_lost: carried.is_lost };
        engine.submit(now, (GATHER, number << PART_BITS | place), part, own);
    }
    if let Payload::Bytes(buffer) = carried.payload {
        engine.fronts.give_buffer(buffer);
    }
}

/// Parts of a request that lie in one extent each.
fn parts_of(engine: &Engine, request: &VolumeRequest) -> Vec<VolumeRequest> {
    let shift = engine.shifts[request.volume.index()];
    let space = engine.spaces.of(request.volume);
    let (mut first, mut left) = (request.first, u64::from(request.count));
    let mut parts = Vec::new();
    while left > 0 {
        let boundary = space.next_boundary(first >> shift) << shift;
        let count = boundary.saturating_sub(first).min(left);
        if count == 0 {
            return Vec::new();
        }
        parts.push(VolumeRequest { first, count: count as u32, ..*request });
        first += count;
        left -= count;
    }
    parts
}

/// Hands an answer to the front end whose it is, or notes it for the request of which it is a part; returns that one if it has
/// come to its end.
#[inline]
pub(super) fn reply(
    (gathers, fronts): (&mut Slab<Gather>, &mut FrontEnds),
    front: usize,
    answered: Answered<'_>,
) -> Option<Gathered> {
    if front == GATHER {
        return note(gathers, fronts, &answered);
    }
    fronts.answered(front, answered);
    None
}

#[cold]
fn note(gathers: &mut Slab<Gather>, fronts: &mut FrontEnds, answered: &Answered<'_>) -> Option<Gathered> {
    let (number, part) = ((answered.tag >> PART_BITS) as usize, answered.tag & ((1 << PART_BITS) - 1));
    let gather = gathers.get_mut(number)?;
    gather.left -= 1;
    if answered.answer == Answer::Done {
        let mut at = gather.offsets.get(part as usize).copied().unwrap_or_default() as usize;
        if !gather.metadata.is_empty() {
            let (mut found, first) = (Vec::new(), at / gather.block_bytes as usize * Tuple::BYTES);
            answered.data.copy_metadata_to(gather.block_bytes as usize, &mut found);
            if let Some(place) = gather.metadata.get_mut(first..first + found.len()) {
                place.copy_from_slice(&found);
            }
        }
        for slice in answered.data.slices() {
            if let Some(place) = gather.bytes.get_mut(at..at + slice.len()) {
                place.copy_from_slice(slice);
            }
            at += slice.len();
        }
    } else if gather.answer == Answer::Done {
        (gather.answer, gather.no_room) = (answered.answer, answered.no_room);
    }
    if gather.left > 0 {
        return None;
    }
    let Gather { front, tag, request, asked, len_bytes, answer, no_room, bytes, metadata, .. } =
        gathers.remove(number)?;
    let data = if answer == Answer::Done { Data::with_metadata(&bytes, &metadata) } else { Data::NONE };
    fronts.answered(front, Answered { tag, answer, no_room, data });
    (answer != Answer::Dropped).then_some(Gathered { operation: request.operation, len_bytes, asked })
}

/// The operation, the bytes and the beginning of the request that an answer to a front end is the end of, if it is one: parts are
/// none.
pub(super) fn counted(
    front: usize,
    gathered: Option<Gathered>,
    own: (Operation, u64, SimTime),
) -> Option<(Operation, u64, SimTime)> {
    match gathered {
        Some(Gathered { operation, len_bytes, asked }) => Some((operation, len_bytes, asked)),
        None => (front != GATHER).then_some(own),
    }
}

/// Requests in parts are given up part by part.
pub(super) fn give_up_parts(gathers: &Slab<Gather>, given_up: &mut Vec<(usize, u64)>) {
    let is_it = |gather: &Gather| given_up.contains(&(gather.front, gather.tag));
    let found = gathers.iter().filter(|(_, gather)| is_it(gather));
    let parts = found.flat_map(|(number, gather)| {
        (0..gather.offsets.len() as u64).map(move |part| (GATHER, (number as u64) << PART_BITS | part))
    });
    let parts: Vec<_> = parts.collect();
    given_up.extend(parts);
}
