//! NBD: sockets around the machine of `nbd`. Each drive is an export; TCP or a Unix socket.
//!
//! NBD has no word for a drive that goes away: its connections are closed, and clients that know how connect again.

mod peer;
mod stream;

use crate::front::{Answered, Desk, FrontEnd, Payload, Request as Ask};
use flashyard_blk::Operation;
use flashyard_flash::SLOT_BYTES;
use flashyard_nbd::{ErrorCode, Export, Kind, REPLY_BYTES, Request, reply_header};
use flashyard_systems::jbof::Answer;
use peer::Peer;
use std::io;
use stream::Listener;

pub use stream::NbdAddress;

/// Bytes read from a socket at once.
const READ_BYTES: usize = 256 * 1024;
/// Buffers of payload kept for the next writes of a connection.
const SPARE_BUFFERS: usize = 64;

/// The front end.
pub struct Nbd {
    listener: Listener,
    exports: Vec<Export>,
    /// Drive of each export.
    drives: Vec<u16>,
    gone: Vec<bool>,
    peers: Vec<Option<Peer>>,
    readable: Vec<usize>,
    dirty: Vec<usize>,
    works: Vec<Option<Work>>,
    free: Vec<usize>,
    /// Requests under way of connections that are closed.
    abandoned: usize,
    to_flush: Vec<usize>,
    buffer: Vec<u8>,
}

#[derive(Debug)]
struct Work {
    place: Option<usize>,
    cookie: u64,
    drive: u16,
    len_bytes: u32,
    flush: bool,
}

impl Nbd {
    /// Listens on `address`; `drives` are the exports by name, each with the number of its drive and its slots.
    ///
    /// Errors: an address that cannot be listened on, such as a socket file that somebody serves already.
    pub fn new(address: &NbdAddress, drives: &[(String, u16, u32)]) -> io::Result<Self> {
        let export = |(name, _, slots): &(String, u16, u32)| Export {
            name: name.clone(),
            size_bytes: u64::from(*slots) * u64::from(SLOT_BYTES),
            block_bytes: SLOT_BYTES,
        };
        Ok(Self {
            listener: Listener::open(address)?,
            exports: drives.iter().map(export).collect(),
            drives: drives.iter().map(|(_, drive, _)| *drive).collect(),
            gone: vec![false; drives.len()],
            peers: Vec::new(),
            readable: Vec::new(),
            dirty: Vec::new(),
            works: Vec::new(),
            free: Vec::new(),
            abandoned: 0,
            to_flush: Vec::new(),
            buffer: vec![0; READ_BYTES],
        })
    }

    /// Where it listens, with the port that was chosen where none was asked for.
    pub fn address(&self) -> &NbdAddress {
        self.listener.address()
    }

    fn accept(&mut self, desk: &mut Desk<'_>) {
        while let Some(mut stream) = self.listener.accept() {
            let place = match self.peers.iter().position(Option::is_none) {
                Some(place) => place,
                None => {
                    self.peers.push(None);
                    self.peers.len() - 1
                }
            };
            if let Err(error) = stream.register(desk.registry(), desk.token(place + 1)) {
                tracing::warn!(%error, "a connection cannot be taken");
                continue;
            }
            self.peers[place] = Some(Peer::new(stream));
            self.readable.push(place);
            self.dirty.push(place);
        }
    }

    /// Reads what has come; returns whether there may be more.
    fn read(&mut self, place: usize, desk: &mut Desk<'_>) -> bool {
        let Some(peer) = self.peers[place].as_mut() else { return false };
        if peer.connection.is_new() && self.abandoned > 0 {
            return true;
        }
        let more = peer.read(&self.exports, &mut self.buffer);
        // An export whose drive is away lets nobody in.
        if peer.session.export().is_some_and(|export| self.gone[export]) {
            peer.connection.end();
        }
        while let Some(request) = self.peers[place].as_mut().and_then(Peer::next_request) {
            let writes = request.kind == Kind::Write;
            self.begin(place, request, desk);
            // The engine keeps the buffer of a write, and gives another one back.
            if let Some(peer) = self.peers[place].as_mut()
                && writes
                && peer.output.spare.len() < SPARE_BUFFERS
            {
                peer.output.spare.push(desk.buffer(0));
            }
        }
        self.dirty.push(place);
        more || self.peers[place].as_ref().is_some_and(Peer::waits)
    }

    fn begin(&mut self, place: usize, request: Request, desk: &mut Desk<'_>) {
        let Request { cookie, export, kind, offset_bytes, len_bytes, force_unit_access, payload } = request;
        let drive = self.drives[export];
        let protected = desk.exports().iter().any(|export| export.drive == drive && export.protected);
        let (operation, payload) = match kind {
            Kind::Read => (Operation::Read, Payload::None),
            Kind::Write => (Operation::Write, Payload::Bytes(payload)),
            Kind::Flush => (Operation::Flush, Payload::None),
            Kind::Trim | Kind::WriteZeroes { hole: true } => (Operation::Trim, Payload::None),
            Kind::WriteZeroes { hole: false } => (Operation::Write, Payload::Zeros),
        };
        let writes = matches!(kind, Kind::Write | Kind::WriteZeroes { .. });
        let work =
            Work { place: Some(place), cookie, drive, len_bytes, flush: writes && force_unit_access && !protected };
        let number = match self.free.pop() {
            Some(number) => {
                self.works[number] = Some(work);
                number
            }
            None => {
                self.works.push(Some(work));
                self.works.len() - 1
            }
        };
        let first = (offset_bytes / u64::from(SLOT_BYTES)) as u32;
        let count = len_bytes / SLOT_BYTES;
        let asked = desk.ask(Ask { tag: number as u64, drive, operation, first, count, source: 0 }, payload);
        let Some(peer) = self.peers[place].as_mut() else { return };
        match asked {
            Ok(()) => {
                peer.under_way += 1;
                peer.under_way_bytes += len_bytes as usize;
            }
            Err(_) => {
                peer.output.bytes.extend(reply_header(cookie, ErrorCode::Invalid));
                self.works[number] = None;
                self.free.push(number);
            }
        }
    }

    fn close(&mut self, place: usize, desk: &mut Desk<'_>) {
        let Some(mut peer) = self.peers[place].take() else { return };
        peer.connection.socket.deregister(desk.registry());
        for number in 0..self.works.len() {
            if let Some(work) = self.works[number].as_mut()
                && work.place == Some(place)
            {
                work.place = None;
                self.abandoned += 1;
                if self.to_flush.contains(&number) {
                    self.to_flush.retain(|&other| other != number);
                    self.end(number);
                } else {
                    desk.give_up(number as u64);
                }
            }
        }
    }

    fn end(&mut self, number: usize) -> Option<Work> {
        let work = self.works[number].take()?;
        self.free.push(number);
        if work.place.is_none() {
            self.abandoned -= 1;
        }
        Some(work)
    }

    /// Closes every connection to the drive's export.
    fn close_export(&mut self, export: usize, desk: &mut Desk<'_>) {
        for place in 0..self.peers.len() {
            let of_it = |peer: &Peer| peer.session.export() == Some(export);
            if self.peers[place].as_ref().is_some_and(of_it) {
                self.close(place, desk);
            }
        }
    }
}

impl FrontEnd for Nbd {
    fn name(&self) -> String {
        format!("NBD on {}", self.listener.address())
    }

    fn start(&mut self, desk: &mut Desk<'_>) -> io::Result<()> {
        let token = desk.token(0);
        self.listener.register(desk.registry(), token)
    }

    fn ready(&mut self, key: usize, readable: bool, writable: bool, desk: &mut Desk<'_>) {
        let Some(place) = key.checked_sub(1) else { return self.accept(desk) };
        let Some(peer) = self.peers.get_mut(place).and_then(Option::as_mut) else { return };
        if writable && peer.connection.take_full() {
            self.dirty.push(place);
        }
        if readable && !self.readable.contains(&place) {
            self.readable.push(place);
        }
    }

    fn turn(&mut self, desk: &mut Desk<'_>) -> bool {
        for number in std::mem::take(&mut self.to_flush) {
            if let Some(work) = self.works[number].as_mut() {
                work.flush = false;
                let drive = work.drive;
                let flush =
                    Ask { tag: number as u64, drive, operation: Operation::Flush, first: 0, count: 0, source: 0 };
                if let Err(refused) = desk.ask(flush, Payload::None) {
                    tracing::error!(%refused, "a flush was refused");
                }
            }
        }
        let mut readable = std::mem::take(&mut self.readable);
        readable.retain(|&place| self.read(place, desk));
        readable.append(&mut self.readable);
        self.readable = readable;
        !self.readable.is_empty()
    }

    fn answered(&mut self, answered: Answered<'_>) {
        let number = answered.tag as usize;
        if self.works[number].as_ref().is_some_and(|work| work.flush && work.place.is_some())
            && answered.answer == Answer::Done
        {
            return self.to_flush.push(number);
        }
        let Some(Work { place: Some(place), cookie, len_bytes, .. }) = self.end(number) else { return };
        let Some(peer) = self.peers[place].as_mut() else { return };
        peer.under_way -= 1;
        peer.under_way_bytes -= len_bytes as usize;
        let error = match answered.answer {
            Answer::Done => ErrorCode::None,
            Answer::Failed if answered.no_room => ErrorCode::NoSpace,
            _ => ErrorCode::Io,
        };
        let bytes = &mut peer.output.bytes;
        bytes.reserve(REPLY_BYTES + answered.data.len());
        bytes.extend(reply_header(cookie, error));
        if error == ErrorCode::None {
            answered.data.copy_to(bytes);
        }
        self.dirty.push(place);
    }

    fn send(&mut self, desk: &mut Desk<'_>) {
        for place in std::mem::take(&mut self.dirty) {
            if let Some(peer) = self.peers[place].as_mut()
                && peer.send()
            {
                self.close(place, desk);
            }
        }
    }

    fn connections(&self) -> u32 {
        self.peers.iter().flatten().count() as u32
    }

    fn gone(&mut self, drive: u16, desk: &mut Desk<'_>) {
        for export in (0..self.drives.len()).filter(|&export| self.drives[export] == drive).collect::<Vec<_>>() {
            self.gone[export] = true;
            self.close_export(export, desk);
        }
    }

    fn back(&mut self, drive: u16, _desk: &mut Desk<'_>) {
        for export in 0..self.drives.len() {
            self.gone[export] &= self.drives[export] != drive;
        }
    }

    fn stop(&mut self) {
        self.listener.remove();
    }
}
