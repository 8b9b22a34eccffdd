//! Bytes of requests and buffers under way, and the arithmetic that services ask for on them.

use crate::leg::BLOCK;
use flashyard_blk::VolumeRequest;
use flashyard_kernel::Slab;
use flashyard_service::{Data, Encode, Mix, parity};

/// Zeros, as many as are mixed in at once.
static ZEROS: [u8; BLOCK] = [0; BLOCK];

/// Where the bytes of a request are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Content {
    /// There are none, or zeros.
    None,
    /// In its buffer.
    Bytes,
    /// In the memory of a leg, from this block on.
    Memory { leg: u8, first: u64 },
}

/// A request under way. A service that takes less at once gets it part by part.
#[derive(Debug)]
pub(crate) struct Asked {
    /// Number of the front end; none for requests of the engine itself.
    pub(crate) front: Option<usize>,
    /// Class of the client, for services that tell clients apart.
    pub(crate) class: u16,
    pub(crate) tag: u64,
    pub(crate) request: VolumeRequest,
    /// Blocks of the parts that are done, and of the one under way.
    pub(crate) done: u32,
    pub(crate) part: u32,
    pub(crate) content: Content,
    pub(crate) bytes: Vec<u8>,
    /// Reads under way that name it.
    pub(crate) named: u32,
    pub(crate) is_answered: bool,
    /// Whether the next part is to begin.
    pub(crate) goes_on: bool,
}

/// A buffer of the service.
#[derive(Debug, Default)]
pub(crate) struct Buffer {
    pub(crate) bytes: Vec<u8>,
    pub(crate) named: u32,
    pub(crate) is_taken: bool,
    pub(crate) is_released: bool,
}

/// The bytes that an order writes; `None` for zeros.
pub(crate) fn source<'a>(
    requests: &'a Slab<Asked>,
    buffers: &'a [Buffer],
    own: &'a [u8],
    data: Data,
    count: u32,
) -> Option<&'a [u8]> {
    let (bytes, from) = match data {
        Data::None => return None,
        Data::Request { id, at } => {
            let asked = &requests[id as usize];
            if asked.content == Content::None {
                return None;
            }
            (asked.bytes.as_slice(), (asked.done + at) as usize * BLOCK)
        }
        Data::Buffer { id, at } => (buffers[id as usize].bytes.as_slice(), at as usize * BLOCK),
        Data::Own { at } => (own, at as usize),
    };
    Some(&bytes[from..from + count as usize * BLOCK])
}

/// Does a step of arithmetic. Bytes that change are those of a buffer, or of a request that reads and whose bytes lie in no leg.
pub(crate) fn mix(requests: &mut Slab<Asked>, buffers: &mut [Buffer], own: &[u8], mix: &Mix) {
    let Mix { to, scale, from, factor, count } = *mix;
    let len = count as usize * BLOCK;
    let (mut bytes, at) = match to {
        Data::Buffer { id, at } => (std::mem::take(&mut buffers[id as usize].bytes), at),
        Data::Request { id, at } => {
            let asked = &mut requests[id as usize];
            asked.bytes.resize(asked.request.count as usize * BLOCK, 0);
            asked.content = Content::Bytes;
            (std::mem::take(&mut asked.bytes), asked.done + at)
        }
        Data::None | Data::Own { .. } => return,
    };
    let at = at as usize * BLOCK;
    match (from, to) {
        (Data::Buffer { id, at: begin }, Data::Buffer { id: same, .. }) if id == same => {
            let begin = begin as usize * BLOCK;
            let (low, high) = bytes.split_at_mut(at.max(begin));
            let (into, from) = if at < begin { (&mut low[at..], &*high) } else { (high, &low[begin..]) };
            parity::mix(&mut into[..len], scale, &from[..len], factor);
        }
        _ => match source(requests, buffers, own, from, count) {
            Some(from) => parity::mix(&mut bytes[at..at + len], scale, from, factor),
            None => bytes[at..at + len].chunks_mut(BLOCK).for_each(|block| parity::mix(block, scale, &ZEROS, factor)),
        },
    }
    match to {
        Data::Buffer { id, .. } => buffers[id as usize].bytes = bytes,
        Data::Request { id, .. } => requests[id as usize].bytes = bytes,
        Data::None | Data::Own { .. } => {}
    }
}

/// Makes the parity of a stripe in a buffer.
pub(crate) fn encode(buffers: &mut [Buffer], encode: &Encode) {
    encode.carry_out(&mut buffers[encode.buffer as usize].bytes, BLOCK);
}

#[cfg(test)]
mod tests {
    use super::*;
    use flashyard_blk::Operation;
    use flashyard_units::VolumeId;

    fn asked(operation: Operation, count: u32, content: Content, bytes: Vec<u8>) -> Asked {
        let request = VolumeRequest { volume: VolumeId::new(0), operation, first: 0, count, source: 0 };
        Asked {
            front: None,
            class: 0,
            tag: 0,
            request,
            done: 1,
            part: count - 1,
            content,
            bytes,
            named: 0,
            is_answered: false,
            goes_on: false,
        }
    }

    fn blocks(values: &[u8]) -> Vec<u8> {
        values.iter().flat_map(|&value| [value; BLOCK]).collect()
    }

    #[test]
    fn blocks_of_buffers_and_requests_are_mixed_in_their_places() {
        let mut requests = Slab::default();
        let written = requests.insert(asked(Operation::Write, 3, Content::Bytes, blocks(&[1, 2, 4]))) as u32;
        let zeros = requests.insert(asked(Operation::Write, 3, Content::None, Vec::new())) as u32;
        let read = requests.insert(asked(Operation::Read, 3, Content::None, Vec::new())) as u32;
        let mut buffers = vec![Buffer { bytes: blocks(&[8, 16, 32, 64]), ..Buffer::default() }];
        let buffer = |at| Data::Buffer { id: 0, at };
        let mut step = |to, scale, from, factor, count| {
            mix(&mut requests, &mut buffers, &blocks(&[128]), &Mix { to, scale, from, factor, count });
            (
                buffers[0].bytes.chunks(BLOCK).map(|block| block[9]).collect::<Vec<_>>(),
                requests[read as usize].bytes.clone(),
            )
        };
        // A part of a request begins behind what is done of it.
        assert_eq!(step(buffer(0), 1, Data::Request { id: written, at: 0 }, 1, 2).0, [10, 20, 32, 64]);
        assert_eq!(step(buffer(0), 1, buffer(2), 1, 1).0, [42, 20, 32, 64]);
        assert_eq!(step(buffer(2), 0, buffer(0), 1, 2).0, [42, 20, 42, 20]);
        assert_eq!(step(buffer(1), 1, Data::Own { at: 0 }, 1, 1).0, [42, 148, 42, 20]);
        assert_eq!(step(buffer(1), 0, Data::Request { id: zeros, at: 0 }, 1, 1).0, [42, 0, 42, 20]);
        assert_eq!(step(buffer(0), 2, Data::None, 1, 1).0, [84, 0, 42, 20]);
        assert_eq!(step(Data::Request { id: read, at: 1 }, 0, buffer(3), 1, 1).1, blocks(&[0, 0, 20]));
        let mut buffers = vec![Buffer { bytes: blocks(&[1, 2, 0]), ..Buffer::default() }];
        let mut places = [0; parity::CHUNKS_MAX];
        places[..3].copy_from_slice(&[0, 1, 2]);
        encode(&mut buffers, &Encode { buffer: 0, rows: 1, data: 2, parities: 1, places });
        assert_eq!(buffers[0].bytes, blocks(&[1, 2, 3]));
    }
}
