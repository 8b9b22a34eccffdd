//! Front ends between clients and the engine: a protocol of the network, or a queue inside the program.
//!
//! # One turn
//!
//! The engine has one thread. In every turn it lets the enclosure do what is due, hands answers out
//! ([`FrontEnd::answered`]), looks at the sockets ([`FrontEnd::ready`] for each that has something,
//! [`FrontEnd::turn`] once for everything else), takes in what was asked through the [`Context`] meanwhile, and lets
//! everything be sent ([`FrontEnd::send`]). Nothing may block, and nothing needs a lock.
//!
//! # A request
//!
//! ```text
//! ready/turn: context.submit(tag, request, payload)    payload: a buffer from context.buffer(bytes), filled
//!      … virtual time …
//! answered(Answered { tag, answer, data, .. })         data.slices(): a read's bytes where they lie, no copy
//! send()                                               vectored writes of what answered() has queued
//! ```
//!
//! The slices of an answer are valid during the call only: what the socket does not take at once must be copied.
//! Tags are the front end's own; two requests under way have different ones.
//!
//! # Drives that go away
//!
//! An enclosure holds requests for a drive that is away until it is back. A client whose connection was closed must not
//! find them carried out later, after newer writes of its own: on closing a connection, call [`Context::give_up`] for
//! each of its requests under way, and let the client in again once [`Answered`] has come for all of them.

use crate::block_metadata::BlockMetadata;
use crate::budget::{Budget, Limits};
use crate::media::{Data, Erase, Erasures, Life, Media, RecordKind, reads_as_zeros};
use crate::namespaces::{Manage, ManageError, NamespaceInfo, Spaces};
use crate::reserved::Reserved;
use flashyard_blk::{Payload, VolumeInfo, VolumeRequest, check};
use flashyard_flash::{Layout, SLOT_BYTES};
use flashyard_nvme::protection::Metadata;
use flashyard_nvmf::target::{Attachment, BlockFormat, Strangers};
use flashyard_served::{Answer, Capacity, Control, Health, Presence, Refused, Served};
use flashyard_units::{DriveId, VolumeId};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::SocketAddr;
use std::ops::Range;
use std::time::Duration;

/// A request that has ended.
pub struct Answered<'a> {
    /// The front end's number.
    pub tag: u64,
    /// Carried out, or given up.
    pub answer: Answer,
    /// Whether a write has failed because the disk that keeps the drives' bytes is full.
    pub no_room: bool,
    /// Data that a read has found; nothing for everything else.
    pub data: Data<'a>,
}

/// The drives below an engine's volumes, for what protocols tell of drives.
#[derive(Clone, Copy)]
pub struct Drives<'a>(Option<(&'a dyn Served, &'a Media, &'a Spaces)>);

impl<'a> Drives<'a> {
    /// Volumes that are made of other things.
    pub const NONE: Self = Self(None);

    pub(crate) fn of(world: &'a dyn Served, media: &'a Media, spaces: &'a Spaces) -> Self {
        Self(Some((world, media, spaces)))
    }
}

/// State of a block, as the map of its drive has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockState {
    /// It is not mapped, and reads as zeros.
    Unmapped,
    /// It is mapped, and reads as zeros.
    Zeros,
    /// It may hold anything.
    Data,
}

/// The engine as a front end may use it during a call: requests are handed in here.
pub struct Context<'a> {
    pub(crate) registry: &'a mio::Registry,
    pub(crate) keys: usize,
    pub(crate) elapsed: Duration,
    pub(crate) volumes: &'a [VolumeInfo],
    pub(crate) inbox: &'a mut Vec<Inbound>,
    /// Buffers, and the bytes of them.
    pub(crate) spare: (&'a mut Vec<Vec<u8>>, &'a mut usize),
    pub(crate) front: usize,
    pub(crate) drives: Drives<'a>,
    pub(crate) limits: &'a Limits,
    pub(crate) budget: &'a mut Budget,
    pub(crate) reserved: &'a mut Reserved,
    /// Drives, as volumes of the world, that a front end shows as zoned: it says so as it starts, and their size is that of their zones.
    pub(crate) zoned: &'a mut BTreeSet<VolumeId>,
    /// Volumes whose data is being erased, and how far, of 65,536 in all.
    pub(crate) erasing: &'a BTreeMap<VolumeId, (u16, u32)>,
}

/// Readiness of a socket, as the operating system reports it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Readiness {
    /// There may be something to read, be it the end.
    pub readable: bool,
    /// It may take something.
    pub writable: bool,
    /// The other side has ended, or the connection has failed: nothing more will be told of it.
    pub ended: bool,
}

/// Input that a front end has handed in, under a tag of its own.
pub enum Inbound {
    /// A request, which its volume takes.
    Submit {
        /// Number of the front end.
        front: usize,
        /// Its number for the request.
        tag: u64,
        /// The request.
        request: VolumeRequest,
        /// Bytes of a write.
        payload: Payload,
        /// Metadata of the blocks of a write.
        metadata: BlockMetadata,
        /// The blocks of a write fail to be read until they are written again.
        is_lost: bool,
    },
    /// A command wants blocks for itself: [`FrontEnd::claimed`] tells when it has them.
    Claim {
        /// Number of the front end.
        front: usize,
        /// The claim.
        claim: Claim,
    },
    /// It wants them no more, whether it has them or not.
    Release {
        /// Number of the front end.
        front: usize,
        /// A number of its requests.
        tag: u64,
    },
    /// A request is given up ([`Context::give_up`]).
    GiveUp {
        /// Number of the front end.
        front: usize,
        /// Its number for the request.
        tag: u64,
    },
    /// All data of a volume is to be erased ([`Context::erase`]).
    Erase {
        /// Number of the front end.
        front: usize,
        /// Its number for it.
        tag: u64,
        /// Which volume of the world.
        volume: VolumeId,
        /// Which of its namespaces, or [`flashyard_nvme::NSID_ALL`].
        nsid: u32,
        /// How.
        erase: Erase,
    },
    /// The namespaces of a drive are to be others ([`Context::manage`]).
    Manage {
        /// Number of the front end.
        front: usize,
        /// Its number for it.
        tag: u64,
        /// Which volume of the world.
        volume: VolumeId,
        /// The wish.
        wish: Manage,
    },
    /// Something is to be done to a drive ([`Context::control`]).
    Control {
        /// Number of the front end.
        front: usize,
        /// Its number for it.
        tag: u64,
        /// The wish.
        control: Control,
    },
}

/// Blocks that one command has for itself: requests that would change them wait, but for its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    /// Numbers that the front end has for its requests; the first one names the claim.
    pub tags: Range<u64>,
    /// The volume.
    pub volume: VolumeId,
    /// First block.
    pub first: u64,
    /// Blocks.
    pub count: u32,
}

/// Blocks of a volume on one drive: units of 4 KiB, which the drive maps, and parts of them of 512 bytes, without and with
/// metadata.
const FORMATS: [BlockFormat; 4] =
    [BlockFormat::plain(12), BlockFormat::plain(9), BlockFormat::with_metadata(12), BlockFormat::with_metadata(9)];

/// Sockets of one front end at most: its keys are below this.
pub const KEYS_MAX: usize = 1 << 16;

impl Context<'_> {
    /// Takes a request in under the front end's `tag`, at the end of this part of the turn. The answer comes as
    /// [`FrontEnd::answered`], never during this call.
    ///
    /// Errors: a volume that is not exported, what [`check`] says against the request, payload of another length; a volume
    /// that is reserved by the host of another front end ([`Context::reserve`]).
    pub fn submit(&mut self, tag: u64, request: VolumeRequest, payload: Payload) -> Result<(), Refused> {
        self.submit_with(tag, request, (payload, BlockMetadata::None), false)
    }

    /// Like [`Context::submit`], with the metadata of the blocks of a write; without any the blocks get what
    /// the drive makes for them ([`Context::metadata`]). The blocks of a write that `is_lost` fail to be read until they are written
    /// again; they are whole units of 4 KiB.
    ///
    /// Errors: those of [`Context::submit`].
    pub(crate) fn submit_with(
        &mut self,
        tag: u64,
        request: VolumeRequest,
        (payload, metadata): (Payload, BlockMetadata),
        is_lost: bool,
    ) -> Result<(), Refused> {
        let VolumeRequest { volume, .. } = request;
        let volumes = self.volumes.len() as u16;
        let volume = self.volume(volume).ok_or(Refused::NoVolume { volume, volumes })?;
        check(&request, &volume.limits)?;
        payload.check(&request, volume.block_bytes)?;
        if !self.erasing.is_empty() && self.erasing.contains_key(&request.volume) {
            return Err(Refused::Control { reason: format!("volume {} is being erased", request.volume) });
        }
        if self.reserved.keeps_out(self.front, &request) {
            return Err(Refused::Reserved { volume: request.volume });
        }
        self.inbox.push(Inbound::Submit { front: self.front, tag, request, payload, metadata, is_lost });
        Ok(())
    }

    /// Tells the other front ends what their clients may still do to a volume: this one knows the hosts that have reserved it.
    pub fn reserve(&mut self, volume: VolumeId, strangers: Strangers) {
        self.reserved.set(volume, self.front, strangers);
    }

    /// Keeps a record of a drive, given as a volume of the world: whole, or as it was.
    ///
    /// Errors: those of the operating system.
    pub(crate) fn keep_record(&self, drive: VolumeId, kind: RecordKind, record: &[u8]) -> io::Result<()> {
        let Some((_, media, _)) = self.drives.0 else { return Ok(()) };
        media.keep_record(self.first_drive_of(drive), kind, record)
    }

    /// A record of a drive that an earlier process has kept.
    pub(crate) fn record(&self, drive: VolumeId, kind: RecordKind) -> Option<&[u8]> {
        let (_, media, _) = self.drives.0?;
        media.record(self.first_drive_of(drive), kind)
    }

    /// Whether a volume's first drive has power. Panics beyond the volumes of the world.
    pub(crate) fn has_power(&self, volume: VolumeId) -> bool {
        let presence = |(world, _, _): (&dyn Served, _, _)| world.presence(self.first_drive_of(volume));
        self.drives.0.is_none_or(|drives| presence(drives) != Presence::NoPower)
    }

    /// Gives a request up: it is answered as soon as nothing can come of it any more.
    pub fn give_up(&mut self, tag: u64) {
        self.inbox.push(Inbound::GiveUp { front: self.front, tag });
    }

    /// Does something to the enclosure, as a client has asked for; what comes of it comes as [`FrontEnd::controlled`].
    pub fn control(&mut self, tag: u64, control: Control) {
        self.inbox.push(Inbound::Control { front: self.front, tag, control });
    }

    /// Lets all data of a namespace of a drive go, or of all (`nsid`), as a client has asked for; how that begins, or ends, comes as
    /// [`FrontEnd::erased`]. Requests of its clients that are under way end first, and others are refused until the end.
    pub fn erase(&mut self, tag: u64, (volume, nsid): (VolumeId, u32), erase: Erase) {
        self.inbox.push(Inbound::Erase { front: self.front, tag, volume, nsid, erase });
    }

    /// Changes the namespaces of a drive, as a client has asked for; what comes of it comes as [`FrontEnd::managed`].
    pub fn manage(&mut self, tag: u64, volume: VolumeId, wish: Manage) {
        self.inbox.push(Inbound::Manage { front: self.front, tag, volume, wish });
    }

    /// How far the data of a volume is being erased, of 65,536 in all; `None` while it is not.
    pub fn erasing(&self, volume: VolumeId) -> Option<u16> {
        self.erasing.get(&volume).map(|&(progress, _)| progress)
    }

    /// How far data of a drive is being erased, and which of its namespaces that is about, or all.
    pub(crate) fn erasing_of(&self, drive: VolumeId) -> Option<(u16, u32)> {
        let namespaces = self.namespaces(drive).into_iter().map(|namespace| namespace.volume);
        namespaces.chain([drive]).find_map(|volume| self.erasing.get(&volume).copied())
    }

    /// The volume of the world in which a volume lies: the drive of a namespace.
    pub fn drive_volume(&self, volume: VolumeId) -> VolumeId {
        self.drives.0.map_or(volume, |(_, _, spaces)| spaces.world_of(volume))
    }

    /// The namespaces of a drive, given as a volume of the world; of volumes that are made of other things the only one.
    pub fn namespaces(&self, drive: VolumeId) -> Vec<NamespaceInfo> {
        let attachment = Attachment::ALL;
        let only = || vec![NamespaceInfo { nsid: 1, serial: 0, volume: drive, is_private: false, attachment }];
        self.drives.0.map_or_else(only, |(_, _, spaces)| spaces.namespaces(drive))
    }

    /// The number of a namespace of a drive as a volume.
    #[inline]
    pub fn namespace(&self, drive: VolumeId, nsid: u32) -> VolumeId {
        match self.drives.0 {
            Some((_, _, spaces)) if nsid != 1 => spaces.volume_of(drive, nsid),
            _ => drive,
        }
    }

    /// The identifier of a volume among the namespaces of its drive.
    pub fn nsid_of(&self, volume: VolumeId) -> u32 {
        self.drives.0.map_or(1, |(_, _, spaces)| spaces.nsid_of(volume))
    }

    /// Whether a drive, given as a volume of the world, was divided into namespaces; one that was not is one namespace.
    pub fn is_divided(&self, drive: VolumeId) -> bool {
        self.drives.0.is_some_and(|(_, _, spaces)| spaces.table(drive).is_some())
    }

    /// Whether a drive can be divided: it is one, and volumes have numbers for its namespaces.
    pub fn can_divide(&self, drive: VolumeId) -> bool {
        self.formats(drive).len() > 1 && self.drives.0.is_some_and(|(_, _, spaces)| spaces.can_divide())
    }

    /// Bytes of a drive, given as a volume of the world, and those that no namespace has.
    pub fn capacity_bytes(&self, drive: VolumeId) -> (u64, u64) {
        let of_volume = || self.volume(drive).map_or(0, VolumeInfo::size_bytes);
        self.drives.0.map_or_else(
            || (of_volume(), 0),
            |(_, _, spaces)| (spaces.world(drive).size_bytes(), spaces.free_bytes(drive)),
        )
    }

    /// Traces of formats and sanitizes of a volume. Panics beyond the volumes of the world.
    pub fn erasures(&self, volume: VolumeId) -> Erasures {
        self.before(volume).erasures
    }

    /// An empty buffer with room for `bytes`; buffers of payload come back here.
    pub fn buffer(&mut self, bytes: usize) -> Vec<u8> {
        let mut buffer = self.spare.0.pop().unwrap_or_default();
        *self.spare.1 -= buffer.capacity();
        buffer.clear();
        buffer.reserve(bytes);
        buffer
    }

    /// Where sockets are registered, under [`Context::token`].
    pub fn registry(&self) -> &mio::Registry {
        self.registry
    }

    /// The token under which the front end's socket `key` (below [`KEYS_MAX`]) is registered.
    pub fn token(&self, key: usize) -> mio::Token {
        assert!(key < KEYS_MAX, "key {key} of a front end that may have {KEYS_MAX}");
        mio::Token(self.keys + key)
    }

    /// Limits that hold for each front end.
    pub fn limits(&self) -> &Limits {
        self.limits
    }

    /// Time on the wall since the engine began: for keep-alive timers, which do not scale.
    pub fn elapsed(&self) -> Duration {
        self.elapsed
    }

    /// The volumes that clients may see.
    pub fn volumes(&self) -> &[VolumeInfo] {
        self.volumes
    }

    /// The volume of this number, if clients may see it.
    pub fn volume(&self, id: VolumeId) -> Option<&VolumeInfo> {
        self.volumes.iter().find(|volume| volume.id == id)
    }

    /// The drive that stands for a volume where its protocol knows one drive only: the first of those on which its bytes
    /// lie, and drive 0 where they lie on none. Panics beyond the volumes of the world.
    pub fn first_drive_of(&self, volume: VolumeId) -> DriveId {
        self.drives.0.map_or(DriveId::default(), |(world, _, spaces)| {
            *world.drives_of(spaces.world_of(volume)).first().expect("a volume lies on a drive")
        })
    }

    /// Whether [`Context::block_state`] knows more than that a block may hold anything: there is a map below.
    pub fn has_map(&self) -> bool {
        self.drives.0.is_some()
    }

    /// State of a block now, with everything that was answered. Panics beyond the blocks of the volume.
    pub fn block_state(&self, volume: VolumeId, block: u64) -> BlockState {
        let Some((world, media, spaces)) = self.drives.0 else { return BlockState::Data };
        let unit = spaces.of(volume).unit(block / self.blocks_of_unit(volume));
        match world.place(spaces.world_of(volume), unit) {
            Some((_, slot)) if !slot.is_some() => BlockState::Unmapped,
            Some((drive, slot)) if reads_as_zeros(media.drive(drive), slot) => BlockState::Zeros,
            _ => BlockState::Data,
        }
    }

    /// Whether a unit of a volume can be read, as far as its bytes tell. Panics beyond the units of the volume.
    pub(crate) fn is_unit_whole(&self, volume: VolumeId, unit: u64) -> bool {
        let Some((world, media, spaces)) = self.drives.0 else { return true };
        match world.place(spaces.world_of(volume), spaces.of(volume).unit(unit)) {
            Some((drive, slot)) if slot.is_some() => media.drive(drive).is_whole(slot),
            _ => true,
        }
    }

    /// The life of a volume's first drive since the world began, for its health log. Panics beyond the volumes of the
    /// world.
    pub fn health(&self, volume: VolumeId) -> Health {
        let health = |(world, _, _): (&dyn Served, _, _)| world.health(self.first_drive_of(volume), world.now());
        self.drives.0.map(health).unwrap_or_default()
    }

    /// Blocks of a volume that hold something, counted by whole units, as the drive on which most of them lie has it; `None` for a volume that is
    /// made of other things. Panics beyond the volumes of the world.
    pub fn used_blocks(&self, volume: VolumeId) -> Option<u64> {
        let (world, _, spaces) = self.drives.0?;
        if let Some(used) = spaces.of(volume).used() {
            let blocks = self.volume(volume).map_or(0, |volume| volume.limits.blocks);
            return Some((used * self.blocks_of_unit(volume)).min(blocks));
        }
        let mapped = |drive: DriveId| world.health(drive, world.now()).mapped_slots;
        let units = world.drives_of(volume).into_iter().map(mapped).max();
        units.map(|units| units * self.blocks_of_unit(volume))
    }

    /// Blocks of a volume in one unit, of 4 KiB, that a drive maps.
    pub fn blocks_of_unit(&self, volume: VolumeId) -> u64 {
        self.volume(volume).map_or(1, |volume| u64::from(SLOT_BYTES / volume.block_bytes.clamp(1, SLOT_BYTES)))
    }

    /// The metadata that blocks of a volume have.
    pub fn metadata(&self, volume: VolumeId) -> Metadata {
        self.drives.0.map_or(Metadata::None, |(_, _, spaces)| spaces.of(volume).metadata)
    }

    /// Formats that the blocks of a volume may have, the fastest first; none of a volume that is made of other things. Panics beyond
    /// the volumes of the world.
    pub fn formats(&self, volume: VolumeId) -> &'static [BlockFormat] {
        match self.drives.0 {
            Some((world, _, spaces)) if world.drives_of(spaces.world_of(volume)).len() == 1 => &FORMATS,
            Some(_) => &FORMATS[..1],
            None => &[],
        }
    }

    /// How the flash of a volume's first drive is divided; `None` for a volume that is made of other things. Panics beyond
    /// the volumes of the world.
    pub fn layout(&self, volume: VolumeId) -> Option<Layout> {
        self.drives.0.map(|(world, _, _)| world.layout(self.first_drive_of(volume)))
    }

    /// The lifetime record of a volume's first drive before the world began, with this start. Panics beyond the volumes of
    /// the world.
    pub(crate) fn before(&self, volume: VolumeId) -> Life {
        self.drives.0.map(|(_, media, _)| *media.drive(self.first_drive_of(volume)).before()).unwrap_or_default()
    }

    /// Erases of each superblock of a volume's first drive; of none of a volume that is made of other things. Panics beyond the volumes of the
    /// world.
    pub(crate) fn erase_counts(&self, volume: VolumeId) -> Vec<u32> {
        self.drives.0.map_or(Vec::new(), |(world, _, _)| world.erase_counts(self.first_drive_of(volume)))
    }

    /// Capacity that a volume's first drive has left, where its flash wears. Panics beyond the volumes of the world.
    pub fn capacity(&self, volume: VolumeId) -> Option<Capacity> {
        self.drives.0.and_then(|(world, _, _)| world.capacity(self.first_drive_of(volume)))
    }
}

/// A way for clients to reach the enclosure. See the page of this module for the order of calls.
pub trait FrontEnd {
    /// Its name, for logs and reports.
    fn name(&self) -> String;

    /// The engine begins: listening sockets are registered here.
    ///
    /// Errors: those of the sockets, which end the program.
    fn start(&mut self, context: &mut Context<'_>) -> io::Result<()>;

    /// Something may have happened to socket `key`. It is reported once for each change: read until
    /// [`io::ErrorKind::WouldBlock`], or go on in [`FrontEnd::turn`]. A socket that gives less than it was asked for is
    /// empty as well, but not once its other side has ended: the end is reported with the last bytes.
    fn ready(&mut self, key: usize, what: Readiness, context: &mut Context<'_>);

    /// Everything else, once a turn: timers, queues inside the program, sockets that were not read to the end.
    /// Returns whether there is more to do at once, so that the engine must not sleep.
    fn turn(&mut self, context: &mut Context<'_>) -> bool;

    /// A request has ended.
    fn answered(&mut self, answered: Answered<'_>);

    /// A claim of blocks ([`Inbound::Claim`]) has begun, given by its first number. It lasts until [`Inbound::Release`].
    fn claimed(&mut self, tag: u64) {
        let _ = tag;
    }

    /// Something was done to the enclosure, or refused, as [`Context::control`] asked for under `tag`.
    fn controlled(&mut self, tag: u64, done: Result<(), Refused>) {
        let _ = (tag, done);
    }

    /// The erasure that [`Context::erase`] asked for under `tag` was refused, has begun (a sanitize), or has come to its end (everything
    /// else).
    fn erased(&mut self, tag: u64, done: Result<(), Refused>) {
        let _ = (tag, done);
    }

    /// A change that [`Context::manage`] asked for under `tag` is done, with the namespace that it was about, or refused; in the case of
    /// several the first.
    fn managed(&mut self, tag: u64, done: Result<u32, ManageError>) {
        let _ = (tag, done);
    }

    /// A volume has come or gone, its blocks are others now, or it is being erased, or is so no more: [`Context::volume`] and
    /// [`Context::erasing`] tell.
    fn changed(&mut self, volume: VolumeId, context: &mut Context<'_>) {
        let _ = (volume, context);
    }

    /// Whether a client uses a volume that cannot be told that its blocks or its data change.
    fn pins(&self, volume: VolumeId) -> bool {
        let _ = volume;
        false
    }

    /// Everything of this turn was answered: sends it.
    fn send(&mut self, context: &mut Context<'_>);

    /// When [`FrontEnd::turn`] must be called at the latest, as [`Context::elapsed`] counts.
    fn wake_at(&self) -> Option<Duration> {
        None
    }

    /// A volume does not answer any more: its drive is pulled, without power, or without its link.
    fn gone(&mut self, volume: VolumeId, context: &mut Context<'_>) {
        let _ = (volume, context);
    }

    /// A volume that was gone is back.
    fn back(&mut self, volume: VolumeId, context: &mut Context<'_>) {
        let _ = (volume, context);
    }

    /// Connections of clients now.
    fn connections(&self) -> u32 {
        0
    }

    /// Entries that an error log of its protocol has had for a volume, since it began.
    fn error_entries(&self, volume: VolumeId) -> u64 {
        let _ = volume;
        0
    }

    /// The ports that [`FrontEnd::port`] takes away and gives back.
    fn ports(&self) -> Vec<SocketAddr> {
        Vec::new()
    }

    /// Takes the port at `address` away, or gives it back; returns whether it is one of this front end's.
    ///
    /// Errors: an address that cannot be listened on any more.
    fn port(&mut self, address: SocketAddr, up: bool, context: &mut Context<'_>) -> io::Result<bool> {
        let _ = (address, up, context);
        Ok(false)
    }

    /// The engine ends: says goodbye where the protocol has a word for it.
    fn stop(&mut self) {}
}
