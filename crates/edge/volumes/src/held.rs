//! Bytes of requests and buffers under way: how long they are kept, where reads bring them, and the arithmetic that services ask for on
//! them.

use crate::leg::BLOCK;
use flashyard_blk::VolumeRequest;
use flashyard_kernel::Slab;
use flashyard_live::FrontEnds;
use flashyard_service::{Data, Encode, Mix, checksum, checksum_of_zeros, parity};

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

/// The client that has asked for something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Client {
    /// Number of the front end; none for requests of the engine itself.
    pub(crate) front: Option<usize>,
    /// The front end's name of the request.
    pub(crate) tag: u64,
    /// Class of the client, for services that tell clients apart.
    pub(crate) class: u16,
    /// Blocks of the volume before the part that the client sees, by which its blocks have other numbers here.
    pub(crate) shift: u64,
}

impl Client {
    /// The engine itself.
    pub(crate) const ENGINE: Self = Self { front: None, tag: 0, class: 0, shift: 0 };
}

/// A request under way. A service that takes less at once gets it part by part.
#[derive(Debug)]
pub(crate) struct Asked {
    pub(crate) client: Client,
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
struct Buffer {
    bytes: Vec<u8>,
    named: u32,
    is_taken: bool,
    is_released: bool,
}

/// Requests and buffers whose bytes are under way.
#[derive(Debug, Default)]
pub(crate) struct Held {
    pub(crate) requests: Slab<Asked>,
    buffers: Vec<Buffer>,
    /// Requests whose next part is to begin.
    again: Vec<u32>,
}

impl Held {
    /// A buffer of so many blocks of zeros, or of what it held before, for the service.
    pub(crate) fn take(&mut self, id: u32, blocks: u32) {
        let place = id as usize;
        if place >= self.buffers.len() {
            self.buffers.resize_with(place + 1, Buffer::default);
        }
        let buffer = &mut self.buffers[place];
        debug_assert!(!buffer.is_taken, "buffer {id} is in use");
        buffer.bytes.resize(blocks as usize * BLOCK, 0);
        (buffer.is_taken, buffer.is_released) = (true, false);
    }

    /// The service needs a buffer no more. It is free once no read names it.
    pub(crate) fn release(&mut self, id: u32) {
        let buffer = &mut self.buffers[id as usize];
        buffer.is_released = true;
        buffer.is_taken = buffer.named > 0;
    }

    /// A read into that place is under way.
    pub(crate) fn name(&mut self, data: Data) {
        match data {
            Data::Request { id, .. } => self.requests[id as usize].named += 1,
            Data::Buffer { id, .. } => self.buffers[id as usize].named += 1,
            Data::None | Data::Own { .. } => {}
        }
    }

    /// A read into that place has ended.
    pub(crate) fn unname(&mut self, data: Data, fronts: &mut FrontEnds) {
        match data {
            Data::Request { id, .. } => {
                self.requests[id as usize].named -= 1;
                self.drop_unused(id, fronts);
            }
            Data::Buffer { id, .. } => {
                let buffer = &mut self.buffers[id as usize];
                buffer.named -= 1;
                buffer.is_taken &= !buffer.is_released || buffer.named > 0;
            }
            Data::None | Data::Own { .. } => {}
        }
    }

    /// A request that was answered goes, and the next part of another may begin, once no read names it.
    pub(crate) fn drop_unused(&mut self, id: u32, fronts: &mut FrontEnds) {
        let Some(asked) = self.requests.get_mut(id as usize).filter(|asked| asked.named == 0) else { return };
        if asked.is_answered {
            let asked = self.requests.remove(id as usize);
            asked.into_iter().for_each(|asked| fronts.give_buffer(asked.bytes));
        } else if std::mem::replace(&mut asked.goes_on, false) {
            self.again.push(id);
        }
    }

    /// A request whose next part is to begin.
    pub(crate) fn next_part(&mut self) -> Option<u32> {
        self.again.pop()
    }

    /// Where the bytes of a read go, in a buffer or a request whose bytes lie in no leg.
    pub(crate) fn destination(&mut self, data: Data, len: usize) -> &mut [u8] {
        let (bytes, at) = match data {
            Data::Request { id, at } => {
                let asked = &mut self.requests[id as usize];
                asked.bytes.resize(asked.request.count as usize * BLOCK, 0);
                asked.content = Content::Bytes;
                (&mut asked.bytes, asked.done + at)
            }
            Data::Buffer { id, at } => (&mut self.buffers[id as usize].bytes, at),
            Data::None | Data::Own { .. } => return &mut [],
        };
        &mut bytes[at as usize * BLOCK..][..len]
    }

    /// Takes the bytes that a read has brought, or copies them to where they go.
    pub(crate) fn bring(&mut self, data: Data, bytes: &mut Vec<u8>) {
        let (into, at) = match data {
            Data::Request { id, at } => {
                let asked = &mut self.requests[id as usize];
                (&mut asked.bytes, asked.done + at)
            }
            Data::Buffer { id, at } => (&mut self.buffers[id as usize].bytes, at),
            Data::None | Data::Own { .. } => return,
        };
        let from = at as usize * BLOCK;
        if into.len() == bytes.len() {
            std::mem::swap(into, bytes);
        } else if let Some(into) = into.get_mut(from..from + bytes.len()) {
            into.copy_from_slice(bytes);
        }
    }

    /// The bytes that an order writes; `None` for zeros.
    pub(crate) fn source<'a>(&'a self, own: &'a [u8], data: Data, count: u32) -> Option<&'a [u8]> {
        let (bytes, from) = match data {
            Data::None => return None,
            Data::Request { id, at } => {
                let asked = &self.requests[id as usize];
                if asked.content == Content::None {
                    return None;
                }
                (asked.bytes.as_slice(), (asked.done + at) as usize * BLOCK)
            }
            Data::Buffer { id, at } => (self.buffers[id as usize].bytes.as_slice(), at as usize * BLOCK),
            Data::Own { at } => (own, at as usize),
        };
        Some(&bytes[from..from + count as usize * BLOCK])
    }

    /// Checksum of such bytes.
    pub(crate) fn sum(&self, own: &[u8], data: Data, count: u32) -> u32 {
        let bytes = self.source(own, data, count);
        bytes.map_or_else(|| checksum_of_zeros(0, count as usize * BLOCK), |bytes| checksum(0, bytes))
    }

    /// Does a step of arithmetic. Bytes that change are those of a buffer, or of a request that reads and whose bytes lie in no leg.
    pub(crate) fn mix(&mut self, own: &[u8], mix: &Mix) {
        let Mix { to, scale, from, factor, count } = *mix;
        let len = count as usize * BLOCK;
        let (mut bytes, at) = match to {
            Data::Buffer { id, at } => (std::mem::take(&mut self.buffers[id as usize].bytes), at),
            Data::Request { id, at } => {
                let asked = &mut self.requests[id as usize];
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
            _ => match self.source(own, from, count) {
                Some(from) => parity::mix(&mut bytes[at..at + len], scale, from, factor),
                None => {
                    bytes[at..at + len].chunks_mut(BLOCK).for_each(|block| parity::mix(block, scale, &ZEROS, factor))
                }
            },
        }
        match to {
            Data::Buffer { id, .. } => self.buffers[id as usize].bytes = bytes,
            Data::Request { id, .. } => self.requests[id as usize].bytes = bytes,
            Data::None | Data::Own { .. } => {}
        }
    }

    /// Makes the parity of a stripe in a buffer.
    pub(crate) fn encode(&mut self, encode: &Encode) {
        encode.carry_out(&mut self.buffers[encode.buffer as usize].bytes, BLOCK);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flashyard_blk::Operation;
    use flashyard_units::VolumeId;

    fn asked(operation: Operation, count: u32, content: Content, bytes: Vec<u8>) -> Asked {
        let request = VolumeRequest { volume: VolumeId::new(0), operation, first: 0, count, source: 0 };
        Asked {
            client: Client::ENGINE,
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
        let mut held = Held::default();
        let written = held.requests.insert(asked(Operation::Write, 3, Content::Bytes, blocks(&[1, 2, 4]))) as u32;
        let zeros = held.requests.insert(asked(Operation::Write, 3, Content::None, Vec::new())) as u32;
        let read = held.requests.insert(asked(Operation::Read, 3, Content::None, Vec::new())) as u32;
        held.buffers.push(Buffer { bytes: blocks(&[8, 16, 32, 64]), ..Buffer::default() });
        let buffer = |at| Data::Buffer { id: 0, at };
        let mut step = |to, scale, from, factor, count| {
            held.mix(&blocks(&[128]), &Mix { to, scale, from, factor, count });
            (
                held.buffers[0].bytes.chunks(BLOCK).map(|block| block[9]).collect::<Vec<_>>(),
                held.requests[read as usize].bytes.clone(),
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
        held.buffers[0].bytes = blocks(&[1, 2, 0]);
        let mut places = [0; parity::CHUNKS_MAX];
        places[..3].copy_from_slice(&[0, 1, 2]);
        held.encode(&Encode { buffer: 0, rows: 1, data: 2, parities: 1, places });
        assert_eq!(held.buffers[0].bytes, blocks(&[1, 2, 3]));
    }

    #[test]
    fn a_request_and_a_buffer_are_kept_while_reads_name_them() {
        let (mut held, mut fronts) = (Held::default(), FrontEnds::new(Vec::new()).expect("it can be made"));
        let id = held.requests.insert(asked(Operation::Read, 3, Content::None, Vec::new())) as u32;
        let (request, buffer) = (Data::Request { id, at: 1 }, Data::Buffer { id: 0, at: 0 });
        held.take(0, 1);
        for data in [request, buffer, request] {
            held.name(data);
        }
        held.release(0);
        held.requests[id as usize].is_answered = true;
        held.drop_unused(id, &mut fronts);
        held.unname(request, &mut fronts);
        assert!(held.requests.get(id as usize).is_some() && held.buffers[0].is_taken);
        for data in [request, buffer] {
            held.unname(data, &mut fronts);
        }
        assert!(held.requests.get(id as usize).is_none() && !held.buffers[0].is_taken);
        let id = held.requests.insert(asked(Operation::Read, 3, Content::None, Vec::new())) as u32;
        held.requests[id as usize].goes_on = true;
        (0..2).for_each(|_| held.drop_unused(id, &mut fronts));
        assert_eq!([held.next_part(), held.next_part()], [Some(id), None], "its next part begins once");
    }

    #[test]
    fn what_a_read_brings_goes_to_its_place() {
        let mut held = Held::default();
        let id = held.requests.insert(asked(Operation::Read, 3, Content::None, Vec::new())) as u32;
        held.destination(Data::Request { id, at: 0 }, BLOCK).fill(7);
        held.bring(Data::Request { id, at: 1 }, &mut blocks(&[9]));
        assert_eq!(held.requests[id as usize].bytes, blocks(&[0, 7, 9]), "behind the block that is done");
        let mut whole = blocks(&[1, 2, 3]);
        let place = whole.as_ptr();
        held.take(0, 3);
        held.bring(Data::Buffer { id: 0, at: 0 }, &mut whole);
        assert_eq!(held.buffers[0].bytes.as_ptr(), place, "all of a buffer is not copied");
        assert_eq!(held.sum(&[], Data::None, 1), held.sum(&blocks(&[0]), Data::Own { at: 0 }, 1));
    }
}
