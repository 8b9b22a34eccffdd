//! Requests into a service, orders and answers out of it.

use crate::failure::Failure;
use crate::parity::{self, CHUNKS_MAX};
use flashyard_blk::{Operation, VolumeInfo, VolumeLimits};
use flashyard_units::SimTime;

/// Number of a volume below a service, from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Leg(pub u8);

/// A client's request. Its range was checked against the limits of the service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// The caller's number for it, which no request has that is under way or whose data an order names. Numbers are small:
    /// a service may index a table by them.
    pub id: u32,
    /// The operation to do. Services take no [`Operation::Remap`].
    pub operation: Operation,
    /// First block. Means nothing for a flush.
    pub first: u64,
    /// Blocks. Means nothing for a flush.
    pub count: u32,
    /// Whether the answer waits until a loss of power cannot undo it (forced unit access).
    pub durable: bool,
    /// The client that it came from, for services that tell clients apart.
    pub source: u16,
}

/// The blocks that an order moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Data {
    /// No blocks, for trims and flushes. A write without data writes zeros; a read without data drops its bytes.
    None,
    /// Those of a client's request. A read brings bytes into a read only; a write may take those of either.
    Request {
        /// Number of the request. It may have been answered, in the same step, or earlier if an order that names it is under way.
        id: u32,
        /// First block, counted from that of the request.
        at: u32,
    },
    /// Those of a buffer that the service has taken.
    Buffer {
        /// Number of the buffer. It may have been released as a request may have been answered.
        id: u32,
        /// First block in it.
        at: u32,
    },
    /// Those of the service itself. A write takes them from [`Orders::own`]; a read hands them to [`Service::received`].
    Own {
        /// The byte of [`Orders::own`] at which the blocks of a write begin. Means nothing for a read.
        at: u32,
    },
}

/// A checksum of bytes that the service does not see. The caller puts it in its place before it carries out an order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sum {
    /// The blocks that it is of, as a write would name them.
    pub data: Data,
    /// So many of them.
    pub count: u32,
    /// The byte of [`Orders::own`] from which on its four bytes lie, the lowest first.
    pub at: u32,
}

/// Arithmetic on bytes that the service does not see ([`parity::mix`](crate::parity::mix)): the blocks of `to` become `scale` times what they are, plus
/// `factor` times those of `from`. The caller does it before it sums up and carries out orders.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mix {
    /// The blocks that change: those of a buffer, or those of a request that reads.
    pub to: Data,
    /// Their factor: 0 where they are replaced, 1 where something is added to them.
    pub scale: u8,
    /// The blocks that are added, as a write would name them. They are not those that change.
    pub from: Data,
    /// Their factor.
    pub factor: u8,
    /// So many of them.
    pub count: u32,
}

/// The parity of a stripe whose chunks lie in a buffer ([`parity::encode`]). The caller makes it when the arithmetic
/// before it is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Encode {
    /// Number of the buffer.
    pub buffer: u32,
    /// Blocks of each chunk in it.
    pub rows: u32,
    /// Chunks of data, and of parity behind them.
    pub data: u8,
    /// Chunks of parity.
    pub parities: u8,
    /// Where each of them lies in the buffer, counted in chunks.
    pub places: [u8; CHUNKS_MAX],
}

impl Encode {
    /// Makes it in the bytes of the buffer.
    ///
    /// # Panics
    /// As [`parity::encode`] does.
    pub fn carry_out(&self, bytes: &mut [u8], block_bytes: usize) {
        let (data, parities) = (usize::from(self.data), usize::from(self.parities));
        let (places, rest) = self.places.split_at(data);
        parity::encode(bytes, self.rows as usize * block_bytes, places, &rest[..parities]);
    }
}

/// A request to a leg.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Order {
    /// The service's number for it, which no other order under way has.
    pub id: u32,
    /// Where it goes.
    pub leg: Leg,
    /// The operation to do.
    pub operation: Operation,
    /// First block of the leg. Means nothing for a flush.
    pub first: u64,
    /// Blocks. Means nothing for a flush.
    pub count: u32,
    /// Where its bytes come from or go to.
    pub data: Data,
    /// Whether it ends only when a loss of power cannot undo it.
    pub durable: bool,
}

/// Wishes of a service after a step. The caller owns it, carries it out in the order of the fields and clears it.
#[derive(Clone, Debug, Default)]
pub struct Orders {
    /// Buffers taken: the service's number and the blocks. A number is free again when it was released and no order names it.
    pub taken: Vec<(u32, u32)>,
    /// Bytes of the service that orders of this step write ([`Data::Own`]). The caller copies them when it carries the orders out.
    pub own: Vec<u8>,
    /// Arithmetic on buffers, in this order.
    pub mixes: Vec<Mix>,
    /// Parity of buffers.
    pub encodes: Vec<Encode>,
    /// Checksums ([`checksum`](crate::checksum)) that belong into `own`.
    pub sums: Vec<Sum>,
    /// Requests to legs. The caller submits those for one leg in this order.
    pub orders: Vec<Order>,
    /// Requests that have ended.
    pub answers: Vec<(u32, Result<(), Failure>)>,
    /// Buffers released. The caller keeps their bytes while an order names them.
    pub released: Vec<u32>,
    /// When the service wants to be woken: the one timer, in place of an earlier one. `None` leaves it as it is.
    pub wake_at: Option<SimTime>,
}

impl Orders {
    /// Empties it and keeps its memory.
    pub fn clear(&mut self) {
        self.taken.clear();
        self.own.clear();
        self.mixes.clear();
        self.encodes.clear();
        self.sums.clear();
        self.orders.clear();
        self.answers.clear();
        self.released.clear();
        self.wake_at = None;
    }

    /// Whether it asks for nothing.
    pub fn is_empty(&self) -> bool {
        self.taken.is_empty()
            && self.mixes.is_empty()
            && self.encodes.is_empty()
            && self.orders.is_empty()
            && self.answers.is_empty()
            && self.released.is_empty()
            && self.wake_at.is_none()
    }
}

/// How far copies to legs that were replaced are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rebuild {
    /// Blocks whose copies are to be made, over all legs.
    pub left: u64,
    /// Blocks of all legs.
    pub all: u64,
}

/// A machine between a volume that clients see and its legs.
///
/// Contract: that of [`Volume`](flashyard_blk::Volume) for what clients see, as long as the legs keep it. Each request is
/// answered exactly once. Times only grow. In the steady state no step allocates. The caller starts it once, before the first
/// request; a service that reads its legs then lets requests wait until it has.
pub trait Service {
    /// Legs that it needs.
    fn legs(&self) -> usize;

    /// Requests that its volume takes over `legs`, of which there are [`Service::legs`] with blocks of one size.
    fn limits(&self, legs: &[VolumeInfo]) -> VolumeLimits;

    /// Power is on, and this is what it stands on: `legs` are those of [`Service::limits`].
    fn start(&mut self, _now: SimTime, _legs: &[VolumeInfo], _out: &mut Orders) {}

    /// A client's request.
    fn submit(&mut self, now: SimTime, request: &Request, out: &mut Orders);

    /// An order with [`Data::Own`] has read these bytes. The caller tells it just before the end of the order, if that is no failure. There are no
    /// bytes where the volumes below keep none.
    fn received(&mut self, _order: u32, _bytes: &[u8]) {}

    /// The end of an order. Each order ends exactly once, those of one leg in any order.
    fn completed(&mut self, now: SimTime, order: u32, result: Result<(), Failure>, out: &mut Orders);

    /// The timer, at [`Orders::wake_at`] or later.
    fn wake(&mut self, now: SimTime, out: &mut Orders);

    /// Whether every block can be read without this leg.
    fn can_miss(&self, _leg: Leg) -> bool {
        false
    }

    /// A leg has ended for good. Orders that are under way there end as well, with [`Failure::Gone`]. A service that is not told learns of it by these.
    fn lost(&mut self, _now: SimTime, _leg: Leg, _out: &mut Orders) {}

    /// A volume whose contents do not count has taken the place of a leg that has no orders under way. Returns whether the service can go on
    /// with it: then it is to be woken.
    fn replaced(&mut self, _leg: Leg) -> bool {
        false
    }

    /// Its name in files, for people.
    fn name(&self) -> &'static str {
        "service"
    }

    /// Another volume, whose contents do not count, becomes its last leg. Returns whether it takes one more; then it is to be woken.
    fn attach(&mut self) -> bool {
        false
    }

    /// The leg that clients could have in place of the service, with nothing under way and all flushed: it has every block where the service shows
    /// it. `None` from services for which there is none.
    fn alone(&self) -> Option<Leg> {
        None
    }

    /// Whether there are blocks that it refuses to read, for what was written last to them is lost, and a leg has something older.
    fn has_lost(&self) -> bool {
        false
    }

    /// How far copies to replaced legs are; `None` where none are made.
    fn rebuild(&self) -> Option<Rebuild> {
        None
    }

    /// Pieces of data that it has moved to other legs since it was made; `None` where none move.
    fn moved(&self) -> Option<u64> {
        None
    }

    /// Takes a version of the volume as it is now, and returns its slot; `None` from services that keep none.
    fn take_version(&mut self, _now: SimTime, _out: &mut Orders) -> Option<Result<u32, Failure>> {
        None
    }

    /// Drops the version in a slot; `None` from services that keep none.
    fn drop_version(&mut self, _now: SimTime, _slot: u32, _out: &mut Orders) -> Option<Result<(), Failure>> {
        None
    }

    /// Slots of versions that are there after a loss of power; `None` from services that keep none.
    fn versions(&self) -> Option<Vec<u32>> {
        None
    }

    /// Its state in a few words, for people.
    fn note(&self) -> Option<String> {
        None
    }

    /// The state of a leg in a few words, for people; `None` from services that have nothing to say of it.
    fn leg_note(&self, _leg: Leg) -> Option<String> {
        None
    }

    /// Whether all that it orders to read goes to its clients, and all that it writes comes from them: then a service that does arithmetic can lie
    /// below it.
    fn hands_on(&self) -> bool {
        false
    }

    /// Whether it asks for arithmetic on bytes ([`Orders::mixes`] and [`Orders::encodes`]), which not every caller does.
    fn mixes(&self) -> bool {
        false
    }

    /// Sets a number that it has under a name; then it is to be woken. Returns whether it has one and takes the value.
    fn set(&mut self, _name: &str, _value: u64) -> bool {
        false
    }
}

impl<S: Service + ?Sized> Service for Box<S> {
    fn legs(&self) -> usize {
        (**self).legs()
    }

    fn limits(&self, legs: &[VolumeInfo]) -> VolumeLimits {
        (**self).limits(legs)
    }

    fn start(&mut self, now: SimTime, legs: &[VolumeInfo], out: &mut Orders) {
        (**self).start(now, legs, out);
    }

    fn submit(&mut self, now: SimTime, request: &Request, out: &mut Orders) {
        (**self).submit(now, request, out);
    }

    fn received(&mut self, order: u32, bytes: &[u8]) {
        (**self).received(order, bytes);
    }

    fn completed(&mut self, now: SimTime, order: u32, result: Result<(), Failure>, out: &mut Orders) {
        (**self).completed(now, order, result, out);
    }

    fn wake(&mut self, now: SimTime, out: &mut Orders) {
        (**self).wake(now, out);
    }

    fn can_miss(&self, leg: Leg) -> bool {
        (**self).can_miss(leg)
    }

    fn lost(&mut self, now: SimTime, leg: Leg, out: &mut Orders) {
        (**self).lost(now, leg, out);
    }

    fn replaced(&mut self, leg: Leg) -> bool {
        (**self).replaced(leg)
    }

    fn name(&self) -> &'static str {
        (**self).name()
    }

    fn attach(&mut self) -> bool {
        (**self).attach()
    }

    fn alone(&self) -> Option<Leg> {
        (**self).alone()
    }

    fn has_lost(&self) -> bool {
        (**self).has_lost()
    }

    fn rebuild(&self) -> Option<Rebuild> {
        (**self).rebuild()
    }

    fn moved(&self) -> Option<u64> {
        (**self).moved()
    }

    fn take_version(&mut self, now: SimTime, out: &mut Orders) -> Option<Result<u32, Failure>> {
        (**self).take_version(now, out)
    }

    fn drop_version(&mut self, now: SimTime, slot: u32, out: &mut Orders) -> Option<Result<(), Failure>> {
        (**self).drop_version(now, slot, out)
    }

    fn versions(&self) -> Option<Vec<u32>> {
        (**self).versions()
    }

    fn note(&self) -> Option<String> {
        (**self).note()
    }

    fn leg_note(&self, leg: Leg) -> Option<String> {
        (**self).leg_note(leg)
    }

    fn hands_on(&self) -> bool {
        (**self).hands_on()
    }

    fn mixes(&self) -> bool {
        (**self).mixes()
    }

    fn set(&mut self, name: &str, value: u64) -> bool {
        (**self).set(name, value)
    }
}
