//! The front end: a socket for each volume, one guest at each.

use crate::config::request_bytes_max;
use crate::device::Device;
use crate::request::{Asked, Memory, Parsed, Refused, Segment, Status, gather, is_within, parse, scatter, total};
use flashyard_blk::{Operation, Payload, VolumeInfo, VolumeRequest};
use flashyard_kernel::Slab;
use flashyard_live::{Answered, Context, Data, FrontEnd, Readiness, SocketPath};
use flashyard_served::Answer;
use flashyard_units::VolumeId;
use mio::Interest;
use mio::unix::SourceFd;
use rustix::io::ioctl_fionread;
use rustix::net::{RecvFlags, recv};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use vhost::vhost_user::{BackendReqHandler, Error};
use vm_memory::{Bytes, GuestAddress};

/// Keys of a disk: its listener, its connection, and a kick for each ring.
const KEYS: usize = 2 + crate::config::QUEUES_MAX;
/// Requests taken from a disk in one turn at most: others have their turn, too.
const TAKEN_MAX: usize = 256;
/// A request of so many bytes counts as one more of these. Source: \[A\] some tens of megabytes are copied in a turn at most.
const TAKEN_BYTES: usize = 128 * 1024;
/// Bytes of a message's header: kind, flags, bytes of its body. Source: the vhost-user protocol.
const HEADER_BYTES: usize = 12;
/// The message that stops a ring. Source: as above.
const GET_VRING_BASE: u32 = 11;
/// Bytes that a guest gets as the disk's name. Source: virtio 1.2 §5.2.6.
const NAME_BYTES: usize = 20;

/// The front end of virtual machines.
pub struct VhostUserBlk {
    disks: Vec<Disk>,
    under_way: Slab<Work>,
    /// Bytes of requests under way, over all disks.
    bytes: usize,
    /// Writes that are to be flushed, by tag.
    to_flush: Vec<usize>,
    /// Disks with rings that are to be told of answers.
    owed: Vec<usize>,
}

/// A volume as a disk.
struct Disk {
    volume: VolumeInfo,
    listener: UnixListener,
    name: Option<SocketPath>,
    peer: Option<Peer>,
    /// Requests of connections that have ended.
    abandoned: u32,
    /// A connection may wait.
    is_knocked: bool,
}

/// A volume as a disk at `path`.
///
/// Errors: a path that cannot be listened at.
fn disk(path: &Path, volume: VolumeInfo) -> io::Result<Disk> {
    let (name, listener) = SocketPath::listen(path)?;
    listener.set_nonblocking(true)?;
    Ok(Disk { volume, listener, name: Some(name), peer: None, abandoned: 0, is_knocked: true })
}

/// The program that runs a guest.
struct Peer {
    stream: UnixStream,
    messages: BackendReqHandler<Mutex<Device>>,
    device: Arc<Mutex<Device>>,
    /// A message may have come.
    has_message: bool,
    /// It sends nothing more.
    has_ended: bool,
}

/// A request under way.
struct Work {
    disk: usize,
    /// Its ring; none once its connection has ended.
    ring: Option<usize>,
    head: u16,
    status: GuestAddress,
    /// Where a read's data goes.
    data: Vec<Segment>,
    bytes: usize,
    /// Whether a flush follows.
    flushes: bool,
}

fn locked(device: &Mutex<Device>) -> MutexGuard<'_, Device> {
    device.lock().unwrap_or_else(PoisonError::into_inner)
}

impl VhostUserBlk {
    /// Listens at `path` for the volume, or, where there are several, at `path` with `-` and the number of each behind it.
    ///
    /// Errors: a path that cannot be listened at, such as one at which another server does.
    pub fn new(path: &Path, volumes: &[VolumeInfo]) -> io::Result<Self> {
        let of_volume = |volume: &VolumeInfo| {
            let mut own = PathBuf::from(path);
            if volumes.len() > 1 {
                let mut name = own.into_os_string();
                name.push(format!("-{}", volume.id));
                own = name.into();
            }
            disk(&own, *volume)
        };
        let disks = volumes.iter().map(of_volume).collect::<io::Result<_>>()?;
        Ok(Self { disks, under_way: Slab::default(), bytes: 0, to_flush: Vec::new(), owed: Vec::new() })
    }

    /// Where it listens, by volume.
    pub fn paths(&self) -> impl Iterator<Item = &Path> {
        self.disks.iter().filter_map(|disk| disk.name.as_ref()).map(SocketPath::path)
    }

    fn listen(&self, place: usize, context: &Context<'_>) -> io::Result<()> {
        let mut source = SourceFd(&self.disks[place].listener.as_raw_fd());
        context.registry().register(&mut source, context.token(place * KEYS), Interest::READABLE)
    }

    /// The size of a disk may be another one.
    fn take_shape(&mut self, volume: VolumeId, context: &Context<'_>) {
        if let Some(&now) = context.volume(volume) {
            self.disks.iter_mut().filter(|disk| disk.volume.id == volume).for_each(|disk| disk.volume = now);
        }
    }

    /// Listens for guests of a namespace behind the first of its drive, if it does not: beside the socket of the drive.
    ///
    /// Errors: those of the operating system.
    fn add(&mut self, volume: VolumeId, context: &Context<'_>) -> io::Result<()> {
        let drive = context.drive_volume(volume);
        let of_drive = self.disks.iter().find(|disk| disk.volume.id == drive).and_then(|disk| disk.name.as_ref());
        let is_there = self.disks.iter().any(|disk| disk.volume.id == volume);
        let (Some(name), Some(&now), false) = (of_drive, context.volume(volume), is_there) else { return Ok(()) };
        let mut path = name.path().to_owned().into_os_string();
        path.push(format!(".{}", context.nsid_of(volume)));
        self.disks.push(disk(&PathBuf::from(path), now)?);
        self.listen(self.disks.len() - 1, context)
    }

    /// Lets the next guest in, once all requests of the last one have ended, and an erasure of the disk.
    fn accept(&mut self, place: usize, context: &Context<'_>) {
        let disk = &mut self.disks[place];
        let is_being_erased = context.erasing(disk.volume.id).is_some();
        let is_gone = context.volume(disk.volume.id).is_none();
        if disk.peer.is_some() || disk.abandoned > 0 || is_being_erased || is_gone {
            return;
        }
        let stream = match disk.listener.accept() {
            Ok((stream, _)) => stream,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                disk.is_knocked = false;
                return;
            }
            Err(error) => return tracing::warn!(%error, "a virtual machine cannot be let in"),
        };
        let device = Arc::new(Mutex::new(Device::new(disk.volume)));
        let token = context.token(place * KEYS + 1);
        let begun = stream.try_clone().and_then(|own| {
            context.registry().register(&mut SourceFd(&stream.as_raw_fd()), token, Interest::READABLE)?;
            Ok(BackendReqHandler::from_stream(own, Arc::clone(&device)))
        });
        match begun {
            Ok(messages) => disk.peer = Some(Peer { stream, messages, device, has_message: true, has_ended: false }),
            Err(error) => tracing::warn!(%error, "a virtual machine cannot be let in"),
        }
    }

    /// Handles messages that have come whole.
    fn converse(&mut self, place: usize, context: &mut Context<'_>) {
        let Some(peer) = &mut self.disks[place].peer else { return };
        loop {
            match peer.next_message() {
                Ok(true) => {}
                // A message that waits for requests of a ring is looked at again when one has ended.
                Ok(false) => break,
                Err(error) => {
                    tracing::debug!(%error, "a virtual machine has gone");
                    return self.close(place, context);
                }
            }
            if let Err(error) = peer.messages.handle_request() {
                match error {
                    Error::Disconnected => tracing::debug!("a virtual machine has gone"),
                    // The program was told, or did not want to be.
                    Error::InvalidOperation(_) | Error::InvalidParam | Error::ReqHandlerError(_) => {
                        tracing::warn!(%error, "a virtual machine asks for what the disk has not");
                        continue;
                    }
                    error => tracing::warn!(%error, "the connection of a virtual machine is given up"),
                }
                return self.close(place, context);
            }
            let heard = listen_to_kicks(&mut locked(&peer.device), place, context);
            if let Err(error) = heard {
                tracing::warn!(%error, "the kicks of a virtual machine cannot be heard");
                return self.close(place, context);
            }
        }
    }

    /// Takes requests from the rings of a disk; returns whether there may be more.
    fn take(&mut self, place: usize, context: &mut Context<'_>) -> bool {
        let Some(peer) = &self.disks[place].peer else { return false };
        let device = Arc::clone(&peer.device);
        let mut device = locked(&device);
        let Some(memory) = device.memory.clone() else { return false };
        let flushes = !device.flushes() && !self.disks[place].volume.protected;
        let mut left = TAKEN_MAX;
        for number in 0..device.rings.len() {
            while device.rings[number].is_kicked {
                if left == 0 {
                    return true;
                }
                let Some(chain) = device.rings[number].next(&memory) else { break };
                let head = chain.head_index();
                let asked = parse(chain, &memory, &self.disks[place].volume);
                let bytes = asked.as_ref().map_or(0, |parsed| total(&parsed.data)) as usize;
                // Whatever is asked first must be possible, or it would wait for ever.
                if self.bytes > 0 && self.bytes.saturating_add(bytes) > context.limits().in_flight_bytes {
                    device.rings[number].put_back();
                    return false;
                }
                left = left.saturating_sub(1 + bytes / TAKEN_BYTES);
                let said = match asked {
                    Ok(parsed) => self.begin((place, number, head), parsed, (&memory, flushes), context),
                    Err(refused) => Some((refused, 0)),
                };
                if let Some((refused, written)) = said {
                    let written = written + say(refused, &memory);
                    device.rings[number].give_back(&memory, head, written);
                    self.owed.push(place);
                }
            }
        }
        false
    }

    /// Hands a request on to the engine. Returns what to say at once, if it does not, and the bytes of data written before that.
    fn begin(
        &mut self,
        (disk, ring, head): (usize, usize, u16),
        parsed: Parsed,
        (memory, flushes): (&Memory, bool),
        context: &mut Context<'_>,
    ) -> Option<(Refused, u32)> {
        let Parsed { asked, first, count, data, status } = parsed;
        let VolumeInfo { id: volume, limits, block_bytes, .. } = self.disks[disk].volume;
        let limit_bytes = context.limits().in_flight_bytes as u64;
        let failed = Some((Refused::With(Status::IoError, status), 0));
        let end = first.saturating_add(count.into());
        if end > limits.blocks || count > limits.request_blocks {
            return failed;
        }
        // What it asks to be kept is looked at before anything is kept: a guest can put any length and any address here.
        let bytes = total(&data);
        if bytes > request_bytes_max(limit_bytes, block_bytes) || !is_within(&data, memory) {
            return failed;
        }
        let bytes = bytes as usize;
        let (operation, payload) = match asked {
            Asked::Read => (Operation::Read, Payload::None),
            Asked::Write => {
                let mut buffer = context.buffer(bytes);
                buffer.resize(bytes, 0);
                if !gather(&data, memory, &mut buffer) {
                    return failed;
                }
                (Operation::Write, Payload::Bytes(buffer))
            }
            Asked::Flush => (Operation::Flush, Payload::None),
            Asked::Trim => (Operation::Trim, Payload::None),
            Asked::Zeroes => (Operation::Write, Payload::Zeros),
            Asked::Name => {
                let name = format!("{:\0<NAME_BYTES$}", format!("flashyard-{volume}"));
                let written = scatter([&name.as_bytes()[..NAME_BYTES]].into_iter(), &data, memory);
                return Some((Refused::With(Status::Ok, status), written));
            }
        };
        let flushes = flushes && matches!(asked, Asked::Write | Asked::Zeroes | Asked::Trim);
        let data = if asked == Asked::Read { data } else { Vec::new() };
        let work = Work { disk, ring: Some(ring), head, status, data, bytes, flushes };
        let tag = self.under_way.insert(work);
        let request = VolumeRequest { volume, operation, first, count, source: 0 };
        if let Err(refused) = context.submit(tag as u64, request, payload) {
            tracing::debug!(%refused, "a request of a virtual machine is refused");
            self.under_way.remove(tag);
            return failed;
        }
        self.bytes += bytes;
        None
    }

    fn close(&mut self, place: usize, context: &mut Context<'_>) {
        let Some(peer) = self.disks[place].peer.take() else { return };
        let registry = context.registry();
        let deregister = |fd: i32| {
            if let Err(error) = registry.deregister(&mut SourceFd(&fd)) {
                tracing::debug!(%error, "a descriptor was not listened to");
            }
        };
        deregister(peer.stream.as_raw_fd());
        let mut device = locked(&peer.device);
        let retired = std::mem::take(&mut device.retired);
        retired.iter().for_each(|kick| deregister(kick.as_raw_fd()));
        device.rings.iter().filter_map(|ring| ring.kick.as_ref()).for_each(|kick| deregister(kick.as_raw_fd()));
        let own: Vec<_> = self.under_way.iter().filter(|(_, work)| work.disk == place && work.ring.is_some()).collect();
        let tags: Vec<usize> = own.into_iter().map(|(tag, _)| tag).collect();
        for tag in tags {
            self.under_way[tag].ring = None;
            self.disks[place].abandoned += 1;
            context.give_up(tag as u64);
        }
    }
}

impl Peer {
    /// Whether a message has come whole, and its ring, if it stops one, has nothing under way.
    ///
    /// Errors: the end of the connection.
    fn next_message(&mut self) -> io::Result<bool> {
        let mut head = [0_u8; HEADER_BYTES + 4];
        let (count, _) = match recv(&self.stream, &mut head[..], RecvFlags::PEEK | RecvFlags::DONTWAIT) {
            Ok((0, _)) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(counts) => counts,
            Err(error) if error == rustix::io::Errno::AGAIN => {
                self.has_message = false;
                return Ok(false);
            }
            Err(error) => return Err(error.into()),
        };
        let word = |at: usize| u32::from_ne_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
        let whole = HEADER_BYTES as u64 + u64::from(word(8));
        if count < HEADER_BYTES || ioctl_fionread(&self.stream)? < whole {
            // The rest comes with a word of the operating system, or not at all.
            if self.has_ended {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            self.has_message = false;
            return Ok(false);
        }
        if word(0) == GET_VRING_BASE && count == head.len() {
            let mut device = locked(&self.device);
            if let Some(ring) = device.rings.get_mut(word(HEADER_BYTES) as usize)
                && ring.under_way > 0
            {
                ring.is_enabled = false;
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// Listens to new kicks, and no longer to those that no ring has. What a guest passes here it has, too: closing it would not end
/// that.
fn listen_to_kicks(device: &mut Device, place: usize, context: &Context<'_>) -> io::Result<()> {
    for kick in device.retired.drain(..) {
        context.registry().deregister(&mut SourceFd(&kick.as_raw_fd()))?;
    }
    for ring in std::mem::take(&mut device.renewed) {
        let Some(kick) = &device.rings[ring].kick else { continue };
        let token = context.token(place * KEYS + 2 + ring);
        context.registry().register(&mut SourceFd(&kick.as_raw_fd()), token, Interest::READABLE)?;
    }
    Ok(())
}

/// Writes a status into the guest's memory; returns the bytes written.
fn say(refused: Refused, memory: &Memory) -> u32 {
    let Refused::With(status, address) = refused else { return 0 };
    u32::from(memory.write_obj(status as u8, address).is_ok())
}

impl FrontEnd for VhostUserBlk {
    fn name(&self) -> String {
        let paths: Vec<String> = self.paths().map(|path| path.display().to_string()).collect();
        format!("vhost-user-blk at {}", paths.join(", "))
    }

    fn start(&mut self, context: &mut Context<'_>) -> io::Result<()> {
        for place in 0..self.disks.len() {
            self.listen(place, context)?;
        }
        for drive in self.disks.iter().map(|disk| disk.volume.id).collect::<Vec<_>>() {
            self.take_shape(drive, context);
            for namespace in context.namespaces(drive) {
                self.add(namespace.volume, context)?;
            }
        }
        Ok(())
    }

    fn ready(&mut self, key: usize, what: Readiness, _context: &mut Context<'_>) {
        let Some(disk) = self.disks.get_mut(key / KEYS) else { return };
        match (key % KEYS, &mut disk.peer) {
            (0, _) => disk.is_knocked = true,
            (1, Some(peer)) => {
                peer.has_message |= what.readable || what.ended;
                peer.has_ended |= what.ended;
            }
            (ring, Some(peer)) if ring > 1 => {
                // The count of kicks is left alone: each one is a change, whatever the count is.
                locked(&peer.device).rings[ring - 2].is_kicked = true;
            }
            _ => {}
        }
    }

    fn turn(&mut self, context: &mut Context<'_>) -> bool {
        for tag in std::mem::take(&mut self.to_flush) {
            let volume = self.disks[self.under_way[tag].disk].volume.id;
            let flush = VolumeRequest { volume, operation: Operation::Flush, first: 0, count: 0, source: 0 };
            if let Err(refused) = context.submit(tag as u64, flush, Payload::None) {
                tracing::error!(%refused, "a flush was refused");
                self.answered(Answered { tag: tag as u64, answer: Answer::Failed, no_room: false, data: Data::NONE });
            }
        }
        let mut has_more = false;
        for place in 0..self.disks.len() {
            if self.disks[place].is_knocked {
                self.accept(place, context);
            }
            if self.disks[place].peer.as_ref().is_some_and(|peer| peer.has_message) {
                self.converse(place, context);
            }
            has_more |= self.take(place, context);
        }
        has_more
    }

    fn answered(&mut self, answered: Answered<'_>) {
        let tag = answered.tag as usize;
        let Some(work) = self.under_way.get_mut(tag) else { return };
        if answered.answer == Answer::Done && work.flushes && work.ring.is_some() {
            work.flushes = false;
            return self.to_flush.push(tag);
        }
        let Some(work) = self.under_way.remove(tag) else { return };
        self.bytes -= work.bytes;
        let disk = &mut self.disks[work.disk];
        let (Some(number), Some(peer)) = (work.ring, &mut disk.peer) else {
            disk.abandoned -= 1;
            return;
        };
        let mut device = locked(&peer.device);
        let device = &mut *device;
        let (Some(memory), Some(ring)) = (&device.memory, device.rings.get_mut(number)) else { return };
        let memory: &Memory = memory;
        let is_done = answered.answer == Answer::Done;
        let mut status = if is_done { Status::Ok } else { Status::IoError };
        let mut written = 0;
        if is_done && !work.data.is_empty() {
            written = scatter(answered.data.slices(), &work.data, memory);
            if written as usize != work.bytes {
                status = Status::IoError;
            }
        }
        written += say(Refused::With(status, work.status), memory);
        ring.give_back(memory, work.head, written);
        // A message may have waited for this one.
        peer.has_message |= ring.under_way == 0 && !ring.is_enabled;
        self.owed.push(work.disk);
    }

    fn send(&mut self, _context: &mut Context<'_>) {
        for place in self.owed.drain(..) {
            let Some(peer) = &self.disks[place].peer else { continue };
            let mut device = locked(&peer.device);
            let device = &mut *device;
            let Some(memory) = &device.memory else { continue };
            device.rings.iter_mut().filter(|ring| ring.is_owed).for_each(|ring| ring.tell(memory));
        }
    }

    fn changed(&mut self, volume: VolumeId, context: &mut Context<'_>) {
        self.take_shape(volume, context);
        if let Err(error) = self.add(volume, context) {
            tracing::error!(%error, %volume, "a namespace is no disk of virtual machines");
        }
    }

    /// A guest looks at its disk once.
    fn pins(&self, volume: VolumeId) -> bool {
        self.disks.iter().any(|disk| disk.volume.id == volume && disk.peer.is_some())
    }

    fn connections(&self) -> u32 {
        self.disks.iter().filter(|disk| disk.peer.is_some()).count() as u32
    }

    fn stop(&mut self) {
        self.disks.iter_mut().for_each(|disk| drop(disk.name.take()));
    }
}
