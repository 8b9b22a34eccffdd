//! NBD: sockets around the machine of `nbd`. Each drive is an export; TCP or a Unix socket.
//!
//! NBD has no word for a drive that goes away: its connections are closed, and clients that know how connect again.
//!
//! One client cannot take the server away from the others: the rules are those of [`crate::nvme_tcp`].

mod peer;
mod replies;
mod resize;
mod stream;

use crate::acceptor::Acceptor;
use crate::connection::Reading;
use crate::front::{Answered, BlockState, Context, FrontEnd, KEYS_MAX, Readiness};
use crate::media::Data;
use crate::namespaces::ManageError;
use crate::peers::{HELD_PERIOD, Marked, Peers, STILL_MAX};
use crate::under_way::{Command, UnderWay};
use flashyard_blk::{Operation, Payload, VolumeInfo, VolumeRequest};
use flashyard_nbd::{Allocation, ErrorCode, Export, Failure, Kind, Piece, REPLY_BYTES, Request};
use flashyard_served::{Answer, Refused};
use flashyard_units::VolumeId;
use peer::Peer;
use std::io;
use std::time::Duration;
use stream::{Listener, Stream};

pub use stream::NbdAddress;

/// Bytes read from a socket at once.
const READ_BYTES: usize = 256 * 1024;
/// Buffers of payload kept for the next writes of a connection.
const SPARE_BUFFERS: usize = 64;

/// Blocks that one answer tells the state of, and such answers of a connection in a turn: a client that asks for more asks
/// again, and the others do not wait for it. A block takes some nanoseconds.
const STATUS_BLOCKS: u32 = 8192;
const STATUS_PER_TURN: usize = 4;
/// The export has become smaller since the request came.
const BEYOND_END: Failure = Failure::new(ErrorCode::NoSpace, "the range ends beyond the export");

/// The front end.
pub struct Nbd {
    acceptor: Acceptor<Listener>,
    exports: Vec<Export>,
    /// Volume of each export, and the name of each drive: namespaces behind its first have that name with their number.
    volumes: Vec<VolumeInfo>,
    drives: Vec<(VolumeId, String)>,
    peers: Peers<Peer>,
    /// As those of NVMe/TCP.
    readable: Marked,
    held: Marked,
    dirty: Marked,
    releases: u64,
    look_still: Duration,
    /// When those that wait are let go on in any case.
    look_held: Duration,
    under_way: UnderWay<Work>,
    /// Cookies of resizes under way. They carry no data that could come late, and so no client waits for those of others that left.
    resizes: UnderWay<u64>,
    /// Drives that were pulled.
    pulled: Vec<VolumeId>,
    buffer: Vec<u8>,
}

#[derive(Debug)]
struct Work {
    cookie: u64,
    volume: VolumeId,
    kind: Kind,
    offset_bytes: u64,
    len_bytes: u32,
    block_bytes: u32,
    /// Whether a flush follows.
    flush: bool,
}

impl Work {
    /// Why it has failed, in words.
    fn failure(&self, answered: &Answered<'_>) -> Option<Failure> {
        let failed = |words| Some(Failure::new(ErrorCode::Io, words));
        match answered.answer {
            Answer::Done => None,
            Answer::Failed if answered.no_room => {
                let words = "the disk that keeps the bytes of the drive is full";
                Some(Failure::new(ErrorCode::NoSpace, words))
            }
            Answer::Failed => {
                failed("it could not be carried out: a drive is worn out, or something below a volume has failed")
            }
            Answer::Unread { block } => {
                let at = block.saturating_mul(self.block_bytes.into());
                let is_inside = at >= self.offset_bytes && at - self.offset_bytes < self.len_bytes.into();
                let at_bytes = is_inside.then_some(at);
                failed("a block cannot be read").map(|failure| Failure { at_bytes, ..failure })
            }
            Answer::Dropped => failed("it was given up"),
        }
    }
}

impl Nbd {
    /// Listens on `address`; `volumes` are the exports by name.
    ///
    /// Errors: an address that cannot be listened on, such as a socket file that somebody serves already.
    pub fn new(address: &NbdAddress, volumes: &[(String, VolumeInfo)]) -> io::Result<Self> {
        let export = |(name, volume): &(String, VolumeInfo)| export(name, volume);
        Ok(Self {
            acceptor: Acceptor::new(Listener::open(address)?),
            exports: volumes.iter().map(export).collect(),
            volumes: volumes.iter().map(|(_, volume)| *volume).collect(),
            drives: volumes.iter().map(|(name, volume)| (volume.id, name.clone())).collect(),
            peers: Peers::default(),
            readable: Marked::default(),
            held: Marked::default(),
            dirty: Marked::default(),
            releases: 0,
            look_still: STILL_MAX,
            look_held: Duration::ZERO,
            under_way: UnderWay::default(),
            resizes: UnderWay::default(),
            pulled: Vec::new(),
            buffer: vec![0; READ_BYTES],
        })
    }

    /// Where it listens, with the port that was chosen where none was asked for.
    pub fn address(&self) -> &NbdAddress {
        self.acceptor.listener.address()
    }

    fn accept(&mut self, context: &mut Context<'_>) {
        let most = context.limits().connections.min(KEYS_MAX - 1);
        while let Some(stream) = self.acceptor.next(context.elapsed(), self.peers.len(), most) {
            self.take_in(stream, context);
        }
    }

    fn take_in(&mut self, mut stream: Stream, context: &Context<'_>) {
        if let Err(error) = stream.register(context.registry(), context.token(self.peers.next_place() + 1)) {
            tracing::warn!(%error, "a connection cannot be taken");
            return;
        }
        let place = self.peers.insert(Peer::new(stream));
        self.peers.set_deadline(place, context.elapsed() + context.limits().set_up);
        self.readable.mark(place);
        self.dirty.mark(place);
    }

    /// Reads what has come, unless this has to wait.
    fn read(&mut self, place: usize, context: &mut Context<'_>) {
        let Some(peer) = self.peers.get(place) else { return };
        if peer.connection.is_new() && self.under_way.any_abandoned() {
            return self.held.mark(place);
        }
        self.begin_requests(place, context);
        let Some(peer) = self.peers.get_mut(place) else { return };
        if peer.waits() {
            return;
        }
        match peer.read(&self.exports, &mut self.buffer, context.budget) {
            Reading::Empty => {}
            Reading::More => self.readable.mark(place),
            Reading::Held => self.held.mark(place),
        }
        self.begin_requests(place, context);
        self.dirty.mark(place);
    }

    /// Hands requests on to the enclosure, as far as there is room.
    fn begin_requests(&mut self, place: usize, context: &mut Context<'_>) {
        let mut queries = 0;
        while queries < STATUS_PER_TURN
            && let Some((request, cost)) = self.peers.get_mut(place).and_then(|peer| peer.next_request(context.budget))
        {
            if let Kind::BlockStatus { one } = request.kind {
                queries += 1;
                self.tell_status(place, &request, one, cost, context);
                continue;
            }
            if request.kind == Kind::Resize {
                self.resize(place, &request, cost, context);
                continue;
            }
            let writes = request.kind == Kind::Write;
            self.begin(place, request, cost, context);
            // The engine keeps the buffer of a write, and gives another one back.
            if let Some(peer) = self.peers.get_mut(place)
                && writes
                && peer.output.spare.len() < SPARE_BUFFERS
            {
                peer.output.spare.push(context.buffer(0));
            }
        }
        let Some(peer) = self.peers.get_mut(place) else { return };
        if peer.waits() {
            // It is read on once it waits no longer.
            let waits_for_a_turn = queries == STATUS_PER_TURN;
            if waits_for_a_turn { self.readable.mark(place) } else { self.held.mark(place) }
        }
        peer.settle(context.budget);
    }

    /// Answers what the map says about blocks now.
    fn tell_status(&mut self, place: usize, request: &Request, one: bool, cost: usize, context: &mut Context<'_>) {
        let Request { cookie, export, offset_bytes, len_bytes, .. } = *request;
        let VolumeInfo { id, block_bytes, .. } = self.volumes[export];
        let (first, count) = (offset_bytes / u64::from(block_bytes), len_bytes / block_bytes);
        let Some(peer) = self.peers.get_mut(place) else { return };
        // It may be less since the request came.
        let blocks = context.volume(id).map_or(0, |now| now.limits.blocks);
        if first + u64::from(count) > blocks {
            peer.refuse(cookie, cost, &BEYOND_END);
            context.budget.give(cost);
            return self.dirty.mark(place);
        }
        let states =
            (first..first + u64::from(count.min(STATUS_BLOCKS))).map(|block| match context.block_state(id, block) {
                BlockState::Unmapped => Allocation::Hole,
                BlockState::Zeros => Allocation::Zeros,
                BlockState::Data => Allocation::Data,
            });
        let form = peer.session.replies();
        peer.replies.append(REPLY_BYTES, |bytes| form.allocation(cookie, block_bytes, one, states, bytes));
        peer.ended(cost);
        context.budget.give(cost);
        self.dirty.mark(place);
    }

    /// Closes connections that have no export in time, and those that do not take the last word.
    fn close_late(&mut self, context: &mut Context<'_>) {
        let now = context.elapsed();
        while let Some(place) = self.peers.take_late(now) {
            let Some(peer) = self.peers.get(place) else { continue };
            let could_not_be_heard = peer.connection.is_new() && self.under_way.any_abandoned();
            if could_not_be_heard || (peer.is_closing && !peer.has_only_to_hear()) {
                self.peers.set_deadline(place, now + context.limits().set_up);
            } else if peer.is_closing || peer.session.export().is_none() {
                tracing::debug!(place, "a connection has no export in time, or does not take its end");
                self.close(place, context);
            }
        }
    }

    /// Closes connections that stand still with what others wait for.
    fn close_still(&mut self, context: &mut Context<'_>) {
        let now = context.elapsed();
        if now < self.look_still {
            return;
        }
        let then = std::mem::replace(&mut self.look_still, now + STILL_MAX).saturating_sub(STILL_MAX);
        let mut still = Vec::new();
        for place in self.peers.places() {
            let is_held = self.held.has(place);
            let Some(peer) = self.peers.get_mut(place) else { continue };
            if peer.stands_still(is_held) {
                still.push(place);
            } else if is_held {
                context.budget.note_waiting(now);
            }
        }
        if context.budget.has_waited_since(then) {
            for place in still {
                tracing::warn!(place, "a connection that moves nothing is closed: others wait for the memory it holds");
                self.close(place, context);
            }
        }
    }

    fn begin(&mut self, place: usize, request: Request, cost: usize, context: &mut Context<'_>) {
        let Request { cookie, export, kind, offset_bytes, len_bytes, force_unit_access, payload } = request;
        let VolumeInfo { id: volume, block_bytes, protected, .. } = self.volumes[export];
        let (operation, payload) = match kind {
            // Queries of the map, and sizes, are no requests to a drive.
            Kind::Read { .. } | Kind::BlockStatus { .. } | Kind::Resize => (Operation::Read, Payload::None),
            Kind::Write => (Operation::Write, Payload::Bytes(payload)),
            Kind::Flush => (Operation::Flush, Payload::None),
            Kind::Trim | Kind::WriteZeroes { hole: true } => (Operation::Trim, Payload::None),
            Kind::WriteZeroes { hole: false } => (Operation::Write, Payload::Zeros),
        };
        // Every command that changes blocks may want that to be durable before its answer: proto.md, NBD_CMD_FLAG_FUA.
        let writes = matches!(kind, Kind::Write | Kind::WriteZeroes { .. } | Kind::Trim);
        let work = Work {
            cookie,
            volume,
            kind,
            offset_bytes,
            len_bytes,
            block_bytes,
            flush: writes && force_unit_access && !protected,
        };
        let number = self.under_way.begin(place, cost, work);
        let (first, count) = (offset_bytes / u64::from(block_bytes), len_bytes / block_bytes);
        let asked =
            context.submit(number as u64, VolumeRequest { volume, operation, first, count, source: 0 }, payload);
        if let Err(refused) = asked {
            self.under_way.end(number);
            let Some(peer) = self.peers.get_mut(place) else { return };
            let has_shrunk = context.volume(volume).is_some_and(|now| first + u64::from(count) > now.limits.blocks);
            let failure = match refused {
                Refused::Reserved { .. } => Failure::new(ErrorCode::Io, "a host of NVMe/TCP has reserved the drive"),
                _ if has_shrunk => BEYOND_END,
                _ => Failure::new(ErrorCode::Invalid, "the volume does not take this request"),
            };
            peer.refuse(cookie, cost, &failure);
        }
    }

    fn close(&mut self, place: usize, context: &mut Context<'_>) {
        let Some(mut peer) = self.peers.remove(place) else { return };
        peer.let_go(context.budget);
        peer.connection.socket.deregister(context.registry());
        for number in self.under_way.abandon(place) {
            context.give_up(number as u64);
        }
        // These go on to their end.
        self.resizes.abandon(place);
    }

    /// Adds the export of a namespace behind the first of its drive, if it is not there.
    fn add(&mut self, volume: VolumeId, context: &Context<'_>) {
        let drive = context.drive_volume(volume);
        let found = self.drives.iter().find(|(known, _)| *known == drive);
        if let (Some((_, name)), Some(now)) = (found, context.volume(volume))
            && self.volumes.iter().all(|known| known.id != volume)
        {
            let named = format!("{name}/{}", context.nsid_of(volume));
            let can_resize = resize::can_resize(volume, context);
            self.exports.push(Export { has_map: context.has_map(), can_resize, ..export(&named, now) });
            self.volumes.push(*now);
        }
    }

    /// A namespace is gone: so are its clients.
    fn remove(&mut self, volume: VolumeId, context: &mut Context<'_>) {
        for export in 0..self.volumes.len() {
            if self.volumes[export].id == volume {
                self.exports[export].is_gone = true;
                self.close_export(export, context);
            }
        }
    }

    /// Closes every connection to the drive's export.
    fn close_export(&mut self, export: usize, context: &mut Context<'_>) {
        for place in self.peers.places() {
            if self.peers.get(place).is_some_and(|peer| peer.session.export() == Some(export)) {
                self.close(place, context);
            }
        }
    }
}

/// An export under a name.
fn export(name: &str, volume: &VolumeInfo) -> Export {
    Export {
        name: name.to_owned(),
        size_bytes: volume.size_bytes(),
        size_max_bytes: volume.size_bytes(),
        can_resize: false,
        block_bytes: volume.block_bytes,
        is_away: false,
        is_gone: false,
        has_map: false,
        read_only: volume.limits.read_only,
    }
}

impl FrontEnd for Nbd {
    fn name(&self) -> String {
        format!("NBD on {}", self.acceptor.listener.address())
    }

    fn start(&mut self, context: &mut Context<'_>) -> io::Result<()> {
        let drives: Vec<VolumeId> = self.drives.iter().map(|(drive, _)| *drive).collect();
        for namespace in drives.into_iter().flat_map(|drive| context.namespaces(drive)) {
            self.add(namespace.volume, context);
        }
        for (export, volume) in self.exports.iter_mut().zip(&mut self.volumes) {
            export.is_gone = context.volume(volume.id).is_none();
            *volume = context.volume(volume.id).copied().unwrap_or(*volume);
            resize::set_first_size(export, volume);
            export.has_map = context.has_map();
            export.can_resize = resize::can_resize(volume.id, context);
            export.is_away |= context.erasing(volume.id).is_some();
        }
        let token = context.token(0);
        self.acceptor.listener.register(context.registry(), token)
    }

    fn ready(&mut self, key: usize, what: Readiness, context: &mut Context<'_>) {
        let Some(place) = key.checked_sub(1) else { return self.accept(context) };
        let Some(peer) = self.peers.get_mut(place) else { return };
        if what.ended {
            peer.connection.peer_ends();
        }
        if what.writable && peer.connection.take_full() {
            self.dirty.mark(place);
        }
        if what.readable {
            self.readable.mark(place);
        }
    }

    fn turn(&mut self, context: &mut Context<'_>) -> bool {
        for number in self.under_way.take_to_go_on() {
            if let Some(Command { work, .. }) = self.under_way.get_mut(number) {
                work.flush = false;
                let volume = work.volume;
                let flush = VolumeRequest { volume, operation: Operation::Flush, first: 0, count: 0, source: 0 };
                if let Err(refused) = context.submit(number as u64, flush, Payload::None) {
                    tracing::error!(%refused, "a flush was refused");
                    self.answered(Answered {
                        tag: number as u64,
                        answer: Answer::Failed,
                        no_room: false,
                        data: Data::NONE,
                    });
                }
            }
        }
        if self.acceptor.take_due(context.elapsed()) {
            self.accept(context);
        }
        // What it waits for may also have happened without a release: all are looked at now and then.
        if self.releases != context.budget.releases() || context.elapsed() >= self.look_held {
            self.releases = context.budget.releases();
            self.look_held = context.elapsed() + HELD_PERIOD;
            Marked::look(self, |front| &mut front.held, |front, place| front.readable.mark(place));
        }
        Marked::look(self, |front| &mut front.readable, |front, place| front.read(place, context));
        self.close_late(context);
        self.close_still(context);
        !self.readable.is_empty() || self.acceptor.is_due(context.elapsed())
    }

    fn answered(&mut self, answered: Answered<'_>) {
        let number = answered.tag as usize;
        let is_to_flush = |command: &Command<Work>| command.work.flush && command.place.is_some();
        if answered.answer == Answer::Done && self.under_way.get(number).is_some_and(is_to_flush) {
            return self.under_way.go_on_next(number);
        }
        let Some(ended) = self.under_way.end(number) else { return };
        let Command { place: Some(place), cost, work, .. } = ended else { return };
        let Some(peer) = self.peers.get_mut(place) else { return };
        peer.ended(cost);
        let Work { cookie, kind, offset_bytes, .. } = work;
        let form = peer.session.replies();
        peer.replies.append(REPLY_BYTES + answered.data.len(), |bytes| match (work.failure(&answered), kind) {
            (Some(failure), _) => form.failed(cookie, &failure, bytes),
            (None, Kind::Read { whole }) => {
                let piece = |(bytes, is_stored): (_, bool)| {
                    if is_stored { Piece::Bytes(bytes) } else { Piece::Zeros(bytes.len()) }
                };
                form.data(cookie, offset_bytes, whole, answered.data.parts().map(piece), bytes);
            }
            (None, _) => form.done(cookie, bytes),
        });
        self.dirty.mark(place);
    }

    fn managed(&mut self, tag: u64, done: Result<u32, ManageError>) {
        self.resized(tag, done);
    }

    fn send(&mut self, context: &mut Context<'_>) {
        context.budget.give(self.under_way.take_ended_cost() + self.resizes.take_ended_cost());
        Marked::look(
            self,
            |front| &mut front.dirty,
            |front, place| {
                let Some(peer) = front.peers.get_mut(place) else { return };
                if peer.send() {
                    return front.close(place, context);
                }
                peer.settle(context.budget);
                let is_closing = peer.output.closed.is_some();
                if is_closing && !std::mem::replace(&mut peer.is_closing, true) {
                    front.peers.set_deadline(place, context.elapsed() + context.limits().set_up);
                }
            },
        );
    }

    fn connections(&self) -> u32 {
        self.peers.len() as u32
    }

    fn gone(&mut self, volume: VolumeId, context: &mut Context<'_>) {
        let drive = context.drive_volume(volume);
        if !self.pulled.contains(&drive) {
            self.pulled.push(drive);
        }
        for export in 0..self.volumes.len() {
            if self.volumes[export].id == volume {
                self.exports[export].is_away = true;
                self.close_export(export, context);
            }
        }
    }

    fn back(&mut self, volume: VolumeId, context: &mut Context<'_>) {
        self.pulled.retain(|&drive| drive != context.drive_volume(volume));
        for export in 0..self.volumes.len() {
            self.exports[export].is_away &= self.volumes[export].id != volume || context.erasing(volume).is_some();
        }
    }

    /// Clients know the size of blocks from the beginning of their connections, which end for that. Another size of the export goes
    /// with them: what they ask for beyond it fails.
    fn changed(&mut self, volume: VolumeId, context: &mut Context<'_>) {
        let Some(&now) = context.volume(volume) else { return self.remove(volume, context) };
        self.add(volume, context);
        let is_pulled = self.pulled.contains(&context.drive_volume(volume));
        for export in 0..self.volumes.len() {
            if self.volumes[export].id == volume {
                let is_erased = context.erasing(volume).is_some();
                let is_other = is_erased || self.volumes[export].block_bytes != now.block_bytes;
                self.volumes[export] = now;
                if is_other || self.exports[export].is_gone {
                    resize::set_first_size(&mut self.exports[export], &now);
                } else {
                    resize::set_size(&mut self.exports[export], &now);
                }
                (self.exports[export].is_gone, self.exports[export].is_away) = (false, is_erased || is_pulled);
                if is_other {
                    self.close_export(export, context);
                }
            }
        }
    }

    fn stop(&mut self) {
        self.acceptor.listener.remove();
    }
}
