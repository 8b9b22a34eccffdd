//! One volume: a service over its legs, the bytes of requests under way, and their answers.
//!
//! Bytes are copied where they must be and nowhere else: a write goes from its client's buffer to memory, and is copied for
//! threads and sockets, which outlive the step. A read of one piece of memory is answered from there.

mod legs;

use crate::held::{Asked, Client, Content, Held};
use crate::leg::{BLOCK, Begun, End, LegState, Source, Storage, Task};
use crate::reshape::{Next, Parked, Reshape, Wish};
use crate::services::Services;
use flashyard_blk::{Operation, Payload, VolumeInfo, VolumeLimits, VolumeRequest};
use flashyard_live::{Answered, Data as Found, FrontEnds};
use flashyard_served::Answer;
use flashyard_service::{Data, Failure, Leg, Order, Orders, Rebuild, Request, Service, Sum};
use flashyard_services::Below;
use flashyard_units::{SimTime, VolumeId};

/// Blocks that are trimmed in one order, which may become a write of zeros: 8 MiB.
const TRIM_BLOCKS: u32 = 2048;

/// An order under way.
#[derive(Clone, Copy, Debug)]
struct Placed {
    order: Order,
    /// The flush after a durable write is under way.
    flushing: bool,
    /// Its end waits to be told.
    ended: bool,
}

/// A volume and what it is made of.
pub(crate) struct Stack {
    pub(crate) name: String,
    pub(crate) service: Services,
    pub(crate) legs: Vec<LegState>,
    /// Blocks that the service takes in one request.
    request_blocks: u32,
    held: Held,
    placed: Vec<Option<Placed>>,
    /// Bytes that orders have read for the service, by order.
    read: Vec<Vec<u8>>,
    started: bool,
    ends: Vec<(u32, Result<(), Failure>)>,
    out: Orders,
    wake_at: Option<SimTime>,
    arrived: Vec<End>,
    /// Requests that were answered: reads, writes, trims, flushes; and those that have failed.
    pub(crate) answered: [u64; 4],
    pub(crate) failed: u64,
    /// The result of the last request of the engine itself.
    own: Option<Result<(), Failure>>,
    /// Requests of the engine itself so far: earlier ones that end late are not taken for the last one.
    own_asked: u64,
    /// A leg, and the storage that takes its place when its orders have ended.
    replacing: Option<(usize, LegState)>,
    /// A service that comes or leaves, and the result of the last one.
    reshape: Option<Box<Reshape>>,
    pub(crate) reshaped: Option<Result<(), String>>,
}

impl Stack {
    pub(crate) fn new(name: String, service: Services, legs: Vec<LegState>) -> Self {
        let infos: Vec<VolumeInfo> = legs.iter().map(LegState::info).collect();
        let request_blocks = service.limits(&infos).request_blocks;
        Self {
            reshape: None,
            reshaped: None,
            replacing: None,
            name,
            service,
            legs,
            request_blocks,
            held: Held::default(),
            placed: Vec::new(),
            read: Vec::new(),
            started: false,
            ends: Vec::new(),
            out: Orders::default(),
            wake_at: None,
            arrived: Vec::new(),
            answered: [0; 4],
            failed: 0,
            own: None,
            own_asked: 0,
        }
    }

    /// The volume as clients see it: of requests of any length.
    pub(crate) fn info(&self, id: VolumeId) -> VolumeInfo {
        let infos = self.infos();
        let limits = self.service.limits(&infos);
        let limits = VolumeLimits { request_blocks: u32::MAX, ..limits };
        VolumeInfo { id, block_bytes: BLOCK as u32, limits, protected: false }
    }

    /// Whether anything is under way.
    pub(crate) fn is_busy(&self) -> bool {
        !self.held.requests.is_empty()
    }

    /// When something is to be done without input.
    pub(crate) fn due(&self) -> Option<SimTime> {
        let throttles = self.legs.iter().filter_map(|leg| leg.throttle.as_ref()?.due());
        throttles.chain(self.wake_at).min()
    }

    /// Takes a request of a front end.
    pub(crate) fn submit(
        &mut self,
        now: SimTime,
        client: Client,
        request: VolumeRequest,
        payload: Payload,
        fronts: &mut FrontEnds,
    ) {
        if client.front.is_some()
            && let Some(reshape) = &mut self.reshape
        {
            return reshape.parked.push_back(Parked { from: client, request, payload });
        }
        let (content, bytes) = match payload {
            Payload::Bytes(bytes) => (Content::Bytes, bytes),
            Payload::Zeros | Payload::None => (Content::None, Vec::new()),
        };
        let asked =
            Asked { client, request, done: 0, part: 0, content, bytes, named: 0, is_answered: false, goes_on: false };
        if !self.started {
            self.start(now, fronts);
        }
        let id = self.held.requests.insert(asked) as u32;
        self.begin_part(now, id, fronts);
        self.settle(now, fronts);
    }

    /// Begins a flush of the engine itself; [`Stack::take_own`] has its result.
    pub(crate) fn flush(&mut self, now: SimTime, fronts: &mut FrontEnds) {
        let (volume, operation) = (VolumeId::new(0), Operation::Flush);
        let flush = VolumeRequest { volume, operation, first: 0, count: 0, source: 0 };
        self.own = None;
        self.own_asked += 1;
        self.submit(now, Client { tag: self.own_asked, ..Client::ENGINE }, flush, Payload::None, fronts);
    }

    /// The result of a flush of the engine.
    pub(crate) fn take_own(&mut self) -> Option<Result<(), Failure>> {
        self.own.take()
    }

    /// Tells the service what it stands on, before the first request.
    #[cold]
    fn start(&mut self, now: SimTime, fronts: &mut FrontEnds) {
        self.started = true;
        let infos = self.infos();
        self.service.start(now, &infos, &mut self.out);
        self.carry_out(now, None, fronts);
    }

    /// Takes what legs have done, and does what is due; returns whether anything has come.
    pub(crate) fn turn(&mut self, now: SimTime, fronts: &mut FrontEnds) -> bool {
        if !self.started {
            self.start(now, fronts);
        }
        let mut arrived = std::mem::take(&mut self.arrived);
        let mut has_come = false;
        for number in 0..self.legs.len() {
            // Its orders have ended, and an answer that still comes would be taken for that of another one.
            let leg = &mut self.legs[number];
            if leg.is_told && matches!(leg.storage, Storage::Remote(_) | Storage::Drive(_)) {
                continue;
            }
            leg.poll(&mut arrived);
            has_come |= !arrived.is_empty();
            arrived.drain(..).for_each(|end| self.arrive(number, end));
            if self.legs[number].gone.is_some() {
                self.tell_gone(now, number, fronts);
            }
            while let Some((task, bytes)) = self.legs[number].throttle.as_mut().and_then(|throttle| throttle.pop(now)) {
                let kept = bytes.as_deref().map_or(Source::Zeros, Source::Bytes);
                self.run(task.order, Some(kept));
            }
        }
        self.arrived = arrived;
        self.settle(now, fronts);
        if self.replacing.is_some() {
            self.replace_when_idle(now, fronts);
        }
        if self.reshape.is_some() {
            self.reshape_on(now, fronts);
        }
        has_come
    }

    /// Orders under way at a leg.
    pub(crate) fn under_way(&self, leg: usize) -> usize {
        self.placed.iter().flatten().filter(|placed| usize::from(placed.order.leg.0) == leg).count()
    }

    /// Requests under way.
    pub(crate) fn requests_under_way(&self) -> usize {
        self.held.requests.len()
    }

    /// Takes a version, and returns its slot.
    ///
    /// Errors: no service keeps versions, or why there is none.
    pub(crate) fn take_version(&mut self, now: SimTime, fronts: &mut FrontEnds) -> Result<u32, String> {
        let taken = self.service.take_version(now, &mut self.out);
        self.carry_out(now, None, fronts);
        self.settle(now, fronts);
        told(taken, "its map cannot be used; `status` says why")
    }

    /// Drops the version in a slot.
    ///
    /// Errors: no service keeps versions, or there is none in that slot.
    pub(crate) fn drop_version(&mut self, now: SimTime, slot: u32, fronts: &mut FrontEnds) -> Result<(), String> {
        let dropped = self.service.drop_version(now, slot, &mut self.out);
        self.carry_out(now, None, fronts);
        self.settle(now, fronts);
        told(dropped, "there is no version in that slot")
    }

    /// How far copies to replaced legs are.
    pub(crate) fn rebuild(&self) -> Option<Rebuild> {
        self.service.rebuild()
    }

    /// Sets a number of its services; returns whether one of them has it and takes the value.
    pub(crate) fn set(&mut self, now: SimTime, name: &str, value: u64, fronts: &mut FrontEnds) -> bool {
        let has = self.service.set(name, value);
        if has {
            self.service.wake(now, &mut self.out);
            self.carry_out(now, None, fronts);
            self.settle(now, fronts);
        }
        has
    }

    /// Properties of its legs.
    pub(crate) fn infos(&self) -> Vec<VolumeInfo> {
        self.legs.iter().map(LegState::info).collect()
    }

    /// Begins to change the tree. The result comes with [`Stack::reshaped`].
    ///
    /// Errors: it is being changed already.
    pub(crate) fn reshape(&mut self, now: SimTime, wish: Wish) -> Result<(), String> {
        if self.reshape.is_some() || self.replacing.is_some() {
            return Err("it is being changed already; try again".to_owned());
        }
        if self.rebuild().is_some_and(|rebuild| rebuild.left > 0) {
            return Err("copies are being made; try again when they are".to_owned());
        }
        self.reshaped = None;
        self.reshape = Some(Box::new(Reshape::new(wish, now)));
        Ok(())
    }

    #[cold]
    fn reshape_on(&mut self, now: SimTime, fronts: &mut FrontEnds) {
        let Some(mut reshape) = self.reshape.take() else { return };
        let is_idle = self.held.requests.is_empty() && self.placed.iter().all(Option::is_none);
        let own = &mut self.own;
        let result = match reshape.next(now, self.held.requests.is_empty(), is_idle, || own.take()) {
            Next::Wait => return self.reshape = Some(reshape),
            Next::Flush => {
                self.reshape = Some(reshape);
                return self.flush(now, fronts);
            }
            Next::Change => self.change(now, reshape.wish),
            Next::GiveUp(problem) => Err(problem),
        };
        match &result {
            Ok(()) => tracing::info!(volume = %self.name, "its services have changed"),
            Err(problem) => tracing::warn!(volume = %self.name, problem, "its services have not changed"),
        }
        self.reshaped = Some(result);
        self.request_blocks = self.service.limits(&self.infos()).request_blocks;
        self.carry_out(now, None, fronts);
        self.settle(now, fronts);
        for Parked { from, request, payload } in reshape.parked {
            self.submit(now, from, request, payload, fronts);
        }
    }

    /// The server ends: nothing is changed any more.
    pub(crate) fn give_up_reshape(&mut self, now: SimTime, fronts: &mut FrontEnds) {
        if let Some(reshape) = self.reshape.take() {
            reshape.parked.into_iter().for_each(|one| self.submit(now, one.from, one.request, one.payload, fronts));
        }
    }

    /// Changes the tree; nothing is under way.
    fn change(&mut self, now: SimTime, wish: Wish) -> Result<(), String> {
        let mut out = std::mem::take(&mut self.out);
        // It stands on the legs that there are, before others come.
        self.service.tree(&self.infos());
        let result = match wish {
            Wish::Insert { place, service, at, legs } => {
                let mut places: Vec<Below> = legs.into_iter().map(|leg| Below::Leg(self.add_leg(leg))).collect();
                places.insert(at, place);
                let infos = self.infos();
                self.service.tree(&infos).insert(now, service, places, at, &infos, &mut out);
                Ok(())
            }
            Wish::Leave { node } => {
                let infos = self.infos();
                self.service.tree(&infos).leave(now, node, &infos, &mut out).map(|free| {
                    for leg in free {
                        let leg = &mut self.legs[usize::from(leg.0)];
                        // The storage is closed, and its number is not used again.
                        *leg = LegState::none("it is no leg any more");
                    }
                })
            }
        };
        self.out = out;
        self.wake_at = Some(now);
        result.map_err(|error| error.to_string())
    }

    /// One more piece of storage, below no service yet.
    pub(crate) fn add_leg(&mut self, leg: LegState) -> Leg {
        self.legs.push(leg);
        Leg((self.legs.len() - 1) as u8)
    }

    fn begin_part(&mut self, now: SimTime, id: u32, fronts: &mut FrontEnds) {
        let asked = &mut self.held.requests[id as usize];
        let VolumeRequest { operation, first, count, .. } = asked.request;
        let most = match operation {
            Operation::Trim => self.request_blocks.min(TRIM_BLOCKS),
            _ => self.request_blocks,
        };
        asked.part = (count - asked.done).min(most);
        let source = asked.client.class;
        let (first, count) = (first + u64::from(asked.done), asked.part);
        self.service.submit(now, &Request { id, operation, first, count, durable: false, source }, &mut self.out);
        self.carry_out(now, None, fronts);
    }

    /// Carries out what the service asked for in its last step. `fresh` is the request whose bytes may lie in memory.
    fn carry_out(&mut self, now: SimTime, fresh: Option<u32>, fronts: &mut FrontEnds) {
        let mut out = std::mem::take(&mut self.out);
        self.wake_at = out.wake_at.or(self.wake_at);
        for &(id, blocks) in &out.taken {
            self.held.take(id, blocks);
        }
        if !out.orders.is_empty() {
            // An order may write where the bytes lie.
            fresh.into_iter().for_each(|id| self.bring(id));
        }
        for one in &out.mixes {
            // Bytes in the memory of a leg are the leg's.
            for data in [one.to, one.from] {
                if let Data::Request { id, .. } = data {
                    self.bring(id);
                }
            }
            self.held.mix(&out.own, one);
        }
        out.encodes.iter().for_each(|one| self.held.encode(one));
        for &Sum { data, count, at } in &out.sums {
            let sum = self.held.sum(&out.own, data, count);
            out.own[at as usize..][..4].copy_from_slice(&sum.to_le_bytes());
        }
        for order in &out.orders {
            self.place(now, *order, &out.own);
        }
        for &(id, result) in &out.answers {
            self.answer(id, result, fronts);
        }
        for &id in &out.released {
            self.held.release(id);
        }
        fresh.into_iter().for_each(|id| self.bring(id));
        out.clear();
        self.out = out;
    }

    /// Copies the bytes of a read that lie in the memory of a leg.
    fn bring(&mut self, id: u32) {
        let Some(asked) = self.held.requests.get_mut(id as usize).filter(|asked| !asked.is_answered) else { return };
        if let Content::Memory { leg, first } = asked.content
            && let Storage::Memory(memory) = &self.legs[usize::from(leg)].storage
        {
            asked.bytes.clear();
            asked.bytes.extend_from_slice(memory.slice(first, asked.request.count));
            asked.content = Content::Bytes;
        }
    }

    fn place(&mut self, now: SimTime, order: Order, own: &[u8]) {
        let place = order.id as usize;
        if place >= self.placed.len() {
            self.placed.resize(place + 1, None);
            self.read.resize(place + 1, Vec::new());
        }
        debug_assert!(self.placed[place].is_none(), "order {} is under way already", order.id);
        self.placed[place] = Some(Placed { order, flushing: false, ended: false });
        if order.operation == Operation::Read {
            self.held.name(order.data);
        }
        let leg = &mut self.legs[usize::from(order.leg.0)];
        if leg.gone.is_some() {
            return self.end(order.id, Err(Failure::Gone));
        }
        let is_write = order.operation == Operation::Write;
        if is_write || order.operation == Operation::Read {
            let carried = &mut leg.carried;
            carried.orders[usize::from(is_write)] += 1;
            carried.bytes[usize::from(is_write)] += u64::from(order.count) * BLOCK as u64;
        }
        let Some(throttle) = &mut leg.throttle else {
            let own = match order.data {
                Data::Own { at } if is_write => {
                    Some(Source::Bytes(&own[at as usize..][..order.count as usize * BLOCK]))
                }
                _ => None,
            };
            return self.run(order.id, own);
        };
        let bytes = is_write.then(|| self.held.source(own, order.data, order.count)).flatten();
        throttle.push(now, task_of(&order), bytes.map(<[u8]>::to_vec));
    }

    /// Hands an order to its leg; `kept` are the bytes of a write, where they were kept for it.
    fn run(&mut self, id: u32, kept: Option<Source<'_>>) {
        let Some(Placed { order, .. }) = self.placed[id as usize] else { return };
        let Order { leg, operation, first, data, .. } = order;
        let state = &mut self.legs[usize::from(leg.0)];
        let changes = matches!(operation, Operation::Write | Operation::Trim);
        let durable = order.durable && changes && matches!(state.storage, Storage::File(_));
        let task = Task { durable, ..task_of(&order) };
        if let Some(placed) = self.placed[id as usize].as_mut().filter(|_| durable) {
            placed.flushing = true;
        }
        let begun = match (operation, data) {
            (Operation::Write, _) => {
                let bytes = || self.held.source(&[], data, order.count);
                let now = || bytes().map_or(Source::Zeros, Source::Bytes);
                state.begin(task, kept.unwrap_or_else(now), &mut [])
            }
            (Operation::Read, Data::Request { id, at }) => {
                let asked = &mut self.held.requests[id as usize];
                let is_whole = at == 0 && order.count == asked.request.count;
                if is_whole && matches!(state.storage, Storage::Memory(_)) {
                    asked.content = Content::Memory { leg: leg.0, first };
                    Begun::Ended(Ok(()))
                } else {
                    state.begin(task, Source::Zeros, self.held.destination(data, task.bytes()))
                }
            }
            (Operation::Read, Data::Buffer { .. }) => {
                state.begin(task, Source::Zeros, self.held.destination(data, task.bytes()))
            }
            (Operation::Read, Data::Own { .. }) => {
                let into = &mut self.read[id as usize];
                into.resize(task.bytes(), 0);
                state.begin(task, Source::Zeros, into)
            }
            _ => state.begin(task, Source::Zeros, &mut []),
        };
        if let Begun::Ended(result) = begun {
            self.end(id, result);
        }
    }

    /// A leg has carried out an order that was under way.
    fn arrive(&mut self, leg: usize, end: End) {
        let End { order: id, result, mut bytes } = end;
        let Some(Placed { order, .. }) = self.placed[id as usize] else { return };
        if order.operation == Operation::Read && result.is_ok() {
            match order.data {
                Data::Own { .. } => std::mem::swap(&mut self.read[id as usize], &mut bytes),
                data => self.held.bring(data, &mut bytes),
            }
        }
        if let Storage::File(file) = &mut self.legs[leg].storage {
            file.give(bytes);
        }
        self.end(id, result);
    }

    /// An order has ended, or its write has and the flush behind it begins.
    fn end(&mut self, id: u32, result: Result<(), Failure>) {
        let Some(placed) = &mut self.placed[id as usize] else { return };
        let order = placed.order;
        let changes = matches!(order.operation, Operation::Write | Operation::Trim);
        if result.is_ok() && order.durable && changes && !std::mem::replace(&mut placed.flushing, true) {
            let flush = Task { order: id, operation: Operation::Flush, first: 0, count: 0, durable: false };
            match self.legs[usize::from(order.leg.0)].begin(flush, Source::Zeros, &mut []) {
                Begun::Ended(result) => return self.end(id, result),
                Begun::UnderWay => return,
            }
        }
        placed.ended = true;
        self.ends.push((id, result));
    }

    /// Tells the service once that a leg has ended.
    fn tell_gone(&mut self, now: SimTime, number: usize, fronts: &mut FrontEnds) {
        if !std::mem::replace(&mut self.legs[number].is_told, true) {
            self.lose(number);
            self.service.lost(now, Leg(number as u8), &mut self.out);
            self.carry_out(now, None, fronts);
        }
    }

    /// A leg has ended: so have its orders. Threads of a file still tell the ends of theirs.
    #[cold]
    fn lose(&mut self, number: usize) {
        let leg = &mut self.legs[number];
        let why = leg.gone.as_deref().unwrap_or_default();
        match (&self.service, number) {
            (Services::Latte(_), 0) => tracing::error!(
                volume = %self.name, end = %leg.name, why,
                "the front end is lost, and with it what was not flushed; the volume goes on with its back end"
            ),
            (Services::Latte(_), _) => tracing::error!(
                volume = %self.name, end = %leg.name, why,
                "the back end is lost: what only it has cannot be read, and nothing can be flushed any more"
            ),
            (Services::Tree(_), _) => {
                tracing::error!(volume = %self.name, end = %leg.name, why, "the volume has lost a part of its storage");
            }
            (Services::None(_), _) => {
                tracing::error!(volume = %self.name, end = %leg.name, why, "the volume has lost its storage");
            }
        }
        let mut lost: Vec<u32> =
            leg.throttle.iter_mut().flat_map(|throttle| throttle.take_all()).map(|task| task.order).collect();
        if matches!(leg.storage, Storage::Remote(_) | Storage::Drive(_)) {
            let of_leg = |placed: &&Placed| placed.order.leg == Leg(number as u8) && !placed.ended;
            lost = self.placed.iter().flatten().filter(of_leg).map(|placed| placed.order.id).collect();
        }
        lost.into_iter().for_each(|id| self.end(id, Err(Failure::Gone)));
    }

    /// Tells the service what has ended by now, until nothing further has.
    fn settle(&mut self, now: SimTime, fronts: &mut FrontEnds) {
        loop {
            let mut ends = std::mem::take(&mut self.ends);
            for (id, result) in ends.drain(..) {
                let Some(Placed { order, .. }) = self.placed[id as usize].take() else { continue };
                let fresh = match order.data {
                    Data::Request { id, .. } if order.operation == Operation::Read => Some(id),
                    _ => None,
                };
                if order.operation == Operation::Read && matches!(order.data, Data::Own { .. }) {
                    let read = std::mem::take(&mut self.read[id as usize]);
                    if result.is_ok() {
                        self.service.received(id, &read);
                    }
                    self.read[id as usize] = read;
                }
                self.service.completed(now, id, result, &mut self.out);
                self.carry_out(now, fresh, fronts);
                if order.operation == Operation::Read {
                    self.held.unname(order.data, fronts);
                }
            }
            if self.ends.is_empty() {
                self.ends = ends;
            }
            while let Some(id) = self.held.next_part() {
                self.begin_part(now, id, fronts);
            }
            if self.wake_at.is_some_and(|at| at <= now) {
                self.wake_at = None;
                self.service.wake(now, &mut self.out);
                self.carry_out(now, None, fronts);
            } else if self.ends.is_empty() {
                return;
            }
        }
    }

    /// A request, or a part of it, has ended.
    fn answer(&mut self, id: u32, result: Result<(), Failure>, fronts: &mut FrontEnds) {
        let asked = &mut self.held.requests[id as usize];
        let VolumeRequest { operation, first, count, .. } = asked.request;
        if result.is_ok() && asked.done + asked.part < count {
            asked.done += asked.part;
            asked.goes_on = true;
            return self.held.drop_unused(id, fronts);
        }
        asked.is_answered = true;
        let is_read = operation == Operation::Read;
        let answer = match result {
            Ok(()) => Answer::Done,
            Err(Failure::Unread { block }) => Answer::Unread { block: block.saturating_sub(asked.client.shift) },
            Err(_) if is_read => Answer::Unread { block: first.saturating_sub(asked.client.shift) },
            Err(_) => Answer::Failed,
        };
        let kind = match operation {
            Operation::Read => 0,
            Operation::Write => 1,
            Operation::Trim => 2,
            _ => 3,
        };
        self.answered[kind] += 1;
        self.failed += u64::from(result.is_err());
        let data = match asked.content {
            _ if !is_read || result.is_err() => Found::NONE,
            Content::Bytes => Found::of(&asked.bytes),
            Content::Memory { leg, first } => match &self.legs[usize::from(leg)].storage {
                Storage::Memory(memory) => Found::of(memory.slice(first, count)),
                _ => Found::NONE,
            },
            Content::None => Found::NONE,
        };
        match asked.client.front {
            Some(front) => {
                let no_room = result == Err(Failure::NoRoom);
                fronts.answered(front, Answered { tag: asked.client.tag, answer, no_room, data });
            }
            None if asked.client.tag == self.own_asked => self.own = Some(result),
            None => {}
        }
        self.held.drop_unused(id, fronts);
    }
}

/// The answer of a service that keeps versions, in words; `failed` are those for one that it does not carry out.
fn told<T>(answer: Option<Result<T, Failure>>, failed: &str) -> Result<T, String> {
    match answer {
        None => Err("no service keeps versions: give the volume service = \"versions\"".to_owned()),
        Some(Err(Failure::NoRoom)) => Err("no slot is free, or no place of the store: drop a version".to_owned()),
        Some(Err(Failure::Failed)) => Err(failed.to_owned()),
        Some(Err(Failure::Dropped)) => Err("the volume is still reading its map; try again".to_owned()),
        Some(Err(failure)) => Err(failure.to_string()),
        Some(Ok(value)) => Ok(value),
    }
}

fn task_of(order: &Order) -> Task {
    let Order { id, operation, first, count, .. } = *order;
    Task { order: id, operation, first, count, durable: false }
}
