//! The front ends of an engine, with what all of them share: sockets under one poll, buffers of payload, memory that is
//! counted. An engine lets them work once a turn, takes in what they ask for, and hands its answers to them. What lies
//! below their volumes is the engine's business: drives of a model ([`crate::Engine`]), or anything else.

use crate::budget::{Budget, Limits};
use crate::error::EngineError;
use crate::front::{Answered, Context, Drives, FrontEnd, Inbound, KEYS_MAX, Readiness};
use crate::namespaces::ManageError;
use crate::operator::Operator;
use crate::record::Recorder;
use crate::reserved::Reserved;
use flashyard_blk::{VolumeInfo, VolumeRequest};
use flashyard_nvmf::target::Strangers;
use flashyard_served::Refused;
use flashyard_units::VolumeId;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::Arc;
use std::time::Duration;

/// The token of wake-ups from other threads.
const WAKE: mio::Token = mio::Token(usize::MAX);

/// Bytes of buffers kept for the next writes.
const SPARE_BYTES_MAX: usize = 16 << 20;

/// The front ends of one engine.
pub struct FrontEnds {
    fronts: Vec<Box<dyn FrontEnd>>,
    /// Those that clients see, and what they lie in: the same but for drives of several namespaces.
    volumes: Vec<VolumeInfo>,
    drives: Vec<VolumeInfo>,
    poll: mio::Poll,
    waker: Arc<mio::Waker>,
    /// When this turn began.
    turned: Duration,
    inbox: Vec<Inbound>,
    limits: Limits,
    budget: Budget,
    spare: Vec<Vec<u8>>,
    spare_bytes: usize,
    recorder: Option<Recorder>,
    reserved: Reserved,
    zoned: BTreeSet<VolumeId>,
    pub(crate) operator: Operator,
    erasing: BTreeMap<VolumeId, (u16, u32)>,
}

impl FrontEnds {
    /// No front ends yet, for these volumes.
    ///
    /// Errors: those of the operating system.
    pub fn new(volumes: Vec<VolumeInfo>) -> io::Result<Self> {
        let poll = mio::Poll::new()?;
        let waker = Arc::new(mio::Waker::new(poll.registry(), WAKE)?);
        Ok(Self {
            fronts: Vec::new(),
            drives: volumes.clone(),
            volumes,
            poll,
            waker,
            turned: Duration::ZERO,
            inbox: Vec::new(),
            limits: Limits::default(),
            budget: Budget::new(Limits::default().in_flight_bytes),
            spare: Vec::new(),
            spare_bytes: 0,
            recorder: None,
            reserved: Reserved::default(),
            zoned: BTreeSet::new(),
            operator: Operator::default(),
            erasing: BTreeMap::new(),
        })
    }

    /// Adds a way for clients to reach the volumes.
    pub fn add(&mut self, front: Box<dyn FrontEnd>) {
        self.fronts.push(front);
    }

    /// Sets their limits, before they begin.
    pub fn set_limits(&mut self, limits: Limits) {
        self.limits = limits;
        self.budget = Budget::new(limits.in_flight_bytes);
    }

    /// Writes a trace of all requests to `out` from now on: what came when, and how long it took.
    pub fn record(&mut self, out: Box<dyn io::Write>) {
        self.recorder = Some(Recorder::new(out, block_bytes(&self.volumes)));
    }

    /// Ends a wait, from any thread.
    pub fn waker(&self) -> Arc<mio::Waker> {
        Arc::clone(&self.waker)
    }

    /// The volumes that clients see.
    pub fn volumes(&self) -> &[VolumeInfo] {
        &self.volumes
    }

    /// The drives in which these volumes lie, whatever namespaces they have.
    pub fn drives(&self) -> &[VolumeInfo] {
        &self.drives
    }

    /// Clients see these volumes from now on, which lie in these drives.
    pub(crate) fn set_volumes(&mut self, volumes: Vec<VolumeInfo>, drives: Vec<VolumeInfo>) {
        (self.volumes, self.drives) = (volumes, drives);
        let block_bytes = block_bytes(&self.volumes);
        if let Some(recorder) = &mut self.recorder {
            recorder.set_blocks(block_bytes);
        }
    }

    /// A volume was reserved before a restart: its hosts are known to no front end yet.
    pub(crate) fn set_reserved(&mut self, volume: VolumeId, strangers: Strangers) {
        self.reserved.set(volume, usize::MAX, strangers);
    }

    /// The data of a volume is being erased, and so far, alone or with others (the namespace that it is about, or all); or it is so
    /// no more.
    pub(crate) fn set_erasing(&mut self, volume: VolumeId, progress: Option<(u16, u32)>) {
        match progress {
            Some(progress) => self.erasing.insert(volume, progress),
            None => self.erasing.remove(&volume),
        };
    }

    /// Tells front end `number` what came of an erasure that it wanted.
    pub fn erased(&mut self, number: usize, tag: u64, done: Result<(), Refused>) {
        self.fronts[number].erased(tag, done);
    }

    /// Tells front end `number` that a claim of blocks has begun.
    pub fn claimed(&mut self, number: usize, tag: u64) {
        self.fronts[number].claimed(tag);
    }

    /// Tells front end `number` what came of a change of namespaces that it wanted.
    pub fn managed(&mut self, number: usize, tag: u64, done: Result<u32, ManageError>) {
        match self.fronts.get_mut(number) {
            Some(front) => front.managed(tag, done),
            None => self.operator.answer(tag, done),
        }
    }

    /// Whether clients see zones of a drive, given as a volume of the world.
    pub(crate) fn is_zoned(&self, drive: VolumeId) -> bool {
        self.zoned.contains(&drive)
    }

    /// Whether a reservation keeps clients of front end `number` from a request.
    pub(crate) fn keeps_out(&self, number: usize, request: &VolumeRequest) -> bool {
        self.reserved.keeps_out(number, request)
    }

    /// Where an engine registers sockets of its own, under the tokens of [`FrontEnds::token`].
    pub fn registry(&self) -> &mio::Registry {
        self.poll.registry()
    }

    /// The token of an engine's own socket `number`, which [`FrontEnds::turn`] names when something has come.
    pub fn token(number: usize) -> mio::Token {
        mio::Token(WAKE.0 - 1 - number)
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.fronts.len()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &dyn FrontEnd> {
        self.fronts.iter().map(|front| &**front)
    }

    /// They begin.
    ///
    /// Errors: one that cannot.
    pub fn start(&mut self, drives: Drives<'_>) -> Result<(), EngineError> {
        (0..self.fronts.len()).try_for_each(|number| {
            self.with(number, drives, |front, context| {
                front.start(context).map_err(|source| EngineError::Start { name: front.name(), source })
            })
        })
    }

    /// Tells them what the poll has seen and lets each work, at `now` since the beginning; returns whether there is more to do
    /// at once. Numbers of the engine's own sockets go to `other`.
    pub fn turn(
        &mut self,
        now: Duration,
        events: &mut mio::Events,
        drives: Drives<'_>,
        mut other: impl FnMut(usize),
    ) -> bool {
        self.turned = now;
        for event in events.iter().filter(|event| event.token() != WAKE) {
            let (number, key) = (event.token().0 / KEYS_MAX, event.token().0 % KEYS_MAX);
            let ended = event.is_read_closed() || event.is_error();
            let readable = event.is_readable() || ended;
            let writable = event.is_writable() || event.is_write_closed() || event.is_error();
            if number < self.fronts.len() {
                let what = Readiness { readable, writable, ended };
                self.with(number, drives, |front, context| front.ready(key, what, context));
            } else {
                other(WAKE.0 - 1 - event.token().0);
            }
        }
        events.clear();
        let mut more = false;
        for number in 0..self.fronts.len() {
            more |= self.with(number, drives, |front, context| front.turn(context));
        }
        more
    }

    /// Everything of this turn was answered: they send it.
    pub fn send(&mut self, drives: Drives<'_>) {
        (0..self.fronts.len()).for_each(|number| self.with(number, drives, |front, context| front.send(context)));
    }

    /// They end.
    ///
    /// Errors: the trace of requests could not be written to its end.
    pub fn stop(&mut self, drives: Drives<'_>) -> io::Result<()> {
        self.fronts.iter_mut().for_each(|front| front.stop());
        self.send(drives);
        self.recorder.take().map_or(Ok(()), Recorder::finish)
    }

    /// Waits for something to happen to a socket, or for [`FrontEnds::waker`], at most for `timeout`.
    ///
    /// Errors: those of the operating system.
    pub fn wait(&mut self, events: &mut mio::Events, timeout: Duration) -> io::Result<()> {
        match self.poll.poll(events, Some(timeout)) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(()),
            result => result,
        }
    }

    /// Lets one of them work, with the context that it needs.
    pub(crate) fn with<R>(
        &mut self,
        number: usize,
        drives: Drives<'_>,
        act: impl FnOnce(&mut dyn FrontEnd, &mut Context<'_>) -> R,
    ) -> R {
        let mut context = Context {
            registry: self.poll.registry(),
            keys: number * KEYS_MAX,
            elapsed: self.turned,
            volumes: &self.volumes,
            inbox: &mut self.inbox,
            spare: (&mut self.spare, &mut self.spare_bytes),
            front: number,
            drives,
            limits: &self.limits,
            budget: &mut self.budget,
            reserved: &mut self.reserved,
            zoned: &mut self.zoned,
            erasing: &self.erasing,
        };
        act(self.fronts[number].as_mut(), &mut context)
    }

    /// Whether they have asked for anything that was not taken in.
    pub fn has_asked(&self) -> bool {
        !self.inbox.is_empty()
    }

    /// The wishes that they have handed in; the list comes back by [`FrontEnds::give_inbox`].
    pub fn take_inbox(&mut self) -> Vec<Inbound> {
        if let Some(recorder) = &mut self.recorder {
            for asked in &self.inbox {
                if let Inbound::Submit { front, tag, request, .. } = asked {
                    recorder.asked(*front, *tag, *request);
                }
            }
        }
        std::mem::take(&mut self.inbox)
    }

    /// Keeps the memory of an empty list for the next turn.
    pub fn give_inbox(&mut self, inbox: Vec<Inbound>) {
        self.inbox = inbox;
    }

    /// Hands an answer to front end `number`.
    #[inline]
    pub fn answered(&mut self, number: usize, answered: Answered<'_>) {
        if let Some(recorder) = &mut self.recorder {
            recorder.answered(number, answered.tag);
        }
        self.fronts[number].answered(answered);
    }

    /// Tells front end `number` what came of something that it wanted done to a drive.
    pub fn controlled(&mut self, number: usize, tag: u64, done: Result<(), Refused>) {
        self.fronts[number].controlled(tag, done);
    }

    /// Keeps a buffer of payload for the next writes.
    #[inline]
    pub fn give_buffer(&mut self, buffer: Vec<u8>) {
        if self.spare_bytes + buffer.capacity() <= SPARE_BYTES_MAX {
            self.spare_bytes += buffer.capacity();
            self.spare.push(buffer);
        }
    }

    /// How often memory was given back: front ends that wait for room may go on once this has changed.
    pub fn releases(&self) -> u64 {
        self.budget.releases()
    }

    /// Bytes that clients hold of [`Limits::in_flight_bytes`].
    pub fn in_flight_bytes(&self) -> usize {
        self.budget.held()
    }

    /// When the first of their timers is due.
    pub fn wake_at(&self) -> Option<Duration> {
        self.iter().filter_map(FrontEnd::wake_at).min()
    }
}

/// Bytes of a block of each volume, by number.
fn block_bytes(volumes: &[VolumeInfo]) -> Vec<u32> {
    let count = volumes.iter().map(|volume| volume.id.index() + 1).max().unwrap_or(0);
    let mut found = vec![0; count];
    volumes.iter().for_each(|volume| found[volume.id.index()] = volume.block_bytes);
    found
}
