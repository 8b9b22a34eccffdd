//! The loop: one thread that runs volumes and their front ends.

use crate::compose::{ABOVE_ARRAYS, LEGS_MAX, Maker, Settings};
use crate::control::{ControlError, Place, VolumeStatus};
use crate::error::told;
use crate::held::Client;
use crate::leg::{LegState, Storage};
use crate::mark::Mark;
use crate::opening::Opening;
use crate::reshape::Wish;
use crate::stack::Stack;
use crate::used;
use flashyard_blk::{VolumeInfo, VolumeLimits};
use flashyard_describe::volumes::{Leg, ServiceName};
use flashyard_latte::Counters;
use flashyard_live::{Drives, EngineError, FrontEnds, Inbound, ManageError, SERVED_MAX, time_of};
use flashyard_served::Refused;
use flashyard_service::Service;
use flashyard_services::Below;
use flashyard_units::{SimTime, VolumeId};
use std::fmt;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

/// Longest sleep before the engine looks whether the program should end.
const SLEEP_MAX: Duration = Duration::from_millis(100);
/// The poll of the operating system wakes to the millisecond: nothing that is due sooner is left to it.
const SPIN_BELOW: Duration = Duration::from_millis(2);
/// Sleeps end so long before something is due.
const SPIN_MARGIN: Duration = Duration::from_millis(1);
/// A client that was just answered is likely to ask again: sleeping and waking would cost it more than the answer.
const LINGER: Duration = Duration::from_millis(1);
/// Patience for the last flushes when the engine ends.
const LAST_FLUSH: Duration = Duration::from_secs(60);

/// Volumes made of real storage, and their front ends.
pub struct VolumeEngine {
    pub(crate) fronts: FrontEnds,
    pub(crate) stacks: Vec<Stack>,
    /// Volume and leg of each socket.
    pub(crate) sockets: Vec<(usize, usize)>,
    began: Instant,
    exports: Vec<Export>,
    opening: Opening,
    errands: Receiver<Errand>,
    sender: Sender<Errand>,
}

/// Something that the engine's thread does for another one.
type Errand = Box<dyn FnOnce(&mut VolumeEngine) + Send>;

/// A volume as clients see it.
pub(crate) struct Export {
    pub(crate) name: String,
    /// The volume that it is a name of.
    pub(crate) stack: usize,
    /// The class of its clients.
    pub(crate) class: u16,
    /// The part of it that it shows.
    pub(crate) window: Window,
}

/// One of several equal parts of a volume.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Window {
    /// From 0.
    pub(crate) number: u32,
    /// Parts, at least one.
    pub(crate) of: u32,
    /// Its clients change nothing: it is a version.
    pub(crate) read_only: bool,
}

impl Window {
    /// This part of a volume.
    fn info(self, volume: VolumeInfo) -> VolumeInfo {
        let blocks = volume.limits.blocks / u64::from(self.of);
        VolumeInfo { limits: VolumeLimits { blocks, read_only: self.read_only, ..volume.limits }, ..volume }
    }
}

/// Errands a turn at most, so that requests go on.
const ERRANDS_MAX: usize = 16;

/// The engine has ended, and with it whatever was asked of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the engine has ended")]
pub struct VolumesEnded;

/// A way to an engine for other threads.
#[derive(Clone)]
pub struct VolumeHandle {
    errands: Sender<Errand>,
    waker: Arc<mio::Waker>,
}

impl VolumeHandle {
    /// Does `act` on the engine's thread between two turns, and waits for what it returns.
    ///
    /// Errors: the engine has ended.
    pub fn call<R: Send + 'static>(
        &self,
        act: impl FnOnce(&mut VolumeEngine) -> R + Send + 'static,
    ) -> Result<R, VolumesEnded> {
        let (reply, answer) = channel();
        // The caller may have gone.
        let errand: Errand = Box::new(move |engine| _ = reply.send(act(engine)));
        self.errands.send(errand).map_err(|_| VolumesEnded)?;
        self.waker.wake().map_err(|_| VolumesEnded)?;
        answer.recv().map_err(|_| VolumesEnded)
    }

    /// Lets storage, by the keys of a leg, take the place of a leg of a volume.
    ///
    /// Errors: no such volume or leg; storage that cannot be opened or is too small; a leg that cannot be missed; the engine has ended.
    pub fn replace(&self, volume: &str, leg: usize, keys: &str) -> Result<(), ControlError> {
        let name = volume.to_owned();
        self.act(move |engine| engine.close_gone(&name, leg))?;
        let (storage, name) = (self.open(volume, keys)?, volume.to_owned());
        let (mut storage, mark) = self.act(move |engine| engine.mark_for(&name, leg, storage))?;
        // On this thread: volumes go on while it answers.
        mark.put_on(&mut storage).map_err(ControlError)?;
        let name = volume.to_owned();
        self.act(move |engine| engine.replace(&name, leg, storage))
    }

    /// Makes storage, by the keys of a leg, one more leg of a mirror.
    ///
    /// Errors: no such volume or mirror; storage that cannot be opened or is too small; the engine has ended.
    pub fn attach(&self, volume: &str, service: usize, keys: &str) -> Result<(), ControlError> {
        let (storage, name) = (self.open(volume, keys)?, volume.to_owned());
        self.act(move |engine| engine.attach(&name, service, storage))
    }

    fn act<R: Send + 'static>(
        &self,
        act: impl FnOnce(&mut VolumeEngine) -> Result<R, ControlError> + Send + 'static,
    ) -> Result<R, ControlError> {
        self.call(act).map_err(|error| ControlError(error.to_string()))?
    }

    /// Begins to put a service, by the keys of a leg without the one that it comes above, over a place of a volume. This volume waits until nothing is under way
    /// there; [`VolumeEngine::reshaped`] has the result.
    ///
    /// Errors: no such volume or place; a service that changes where blocks lie, or how many there are; legs that cannot be opened; the engine has ended.
    pub fn insert(&self, volume: &str, place: Place, keys: &str) -> Result<(), ControlError> {
        let (mut described, at) = Leg::parse_above(keys).map_err(|error| ControlError(error.to_string()))?;
        let name = volume.to_owned();
        self.act(move |engine| engine.place_info(&name, place).map(drop))?;
        let legs = described.legs.take().into_iter().flatten();
        let legs = legs.map(|leg| self.open_leg(volume, leg)).collect::<Result<Vec<_>, _>>()?;
        let name = volume.to_owned();
        self.act(move |engine| engine.insert(&name, place, (&described, at), legs))
    }

    /// Opens storage by the keys of a leg.
    fn open(&self, volume: &str, keys: &str) -> Result<LegState, ControlError> {
        self.open_leg(volume, Leg::parse(keys).map_err(|error| ControlError(error.to_string()))?)
    }

    /// Opens storage on this thread: that may take a while, and volumes go on meanwhile. Space that is borrowed is found later; the engine knows which lenders the
    /// volume has already.
    fn open_leg(&self, volume: &str, described: Leg) -> Result<LegState, ControlError> {
        if described.service.is_some() {
            return Err(ControlError("a leg is storage, not a service".to_owned()));
        }
        let opened = |storage: Result<LegState, _>| storage.map_err(|error| ControlError(told(&error)));
        let name = volume.to_owned();
        if described.borrow.is_some() {
            return self.act(move |engine| {
                let number = engine.volume(&name)?;
                opened(engine.opening.leg(&name, &described, &engine.stacks[number].legs))
            });
        }
        let opening = self.act(move |engine| engine.volume(&name).map(|_| engine.opening.clone()))?;
        opened(opening.leg(volume, &described, &[]))
    }
}

/// Counts of one volume.
#[derive(Clone, Debug)]
pub struct VolumeReport {
    /// Its name.
    pub name: String,
    /// Requests answered: reads, writes, trims, flushes.
    pub answered: [u64; 4],
    /// Those of them that have failed.
    pub failed: u64,
    /// Counts of its LATTE or cache.
    pub latte: Option<Counters>,
    /// Why the last flush has failed, if it has.
    pub unflushed: Option<String>,
}

impl fmt::Display for VolumeReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [reads, writes, trims, flushes] = self.answered;
        write!(f, "{}: {reads} reads, {writes} writes, {trims} trims, {flushes} flushes", self.name)?;
        write!(f, "; {} failed", self.failed)?;
        if let Some(counters) = &self.latte {
            let Counters { hits, misses, front_writes, back_writes, promotions, flushes, lost, .. } = counters;
            write!(f, "; blocks: {hits} hits, {misses} misses, {front_writes} written in front, ")?;
            write!(f, "{back_writes} written behind, {promotions} copied in front, {flushes} flushed, {lost} lost")?;
        }
        match &self.unflushed {
            Some(why) => write!(f, "; NOT FLUSHED: {why}"),
            None => Ok(()),
        }
    }
}

impl VolumeEngine {
    /// Errors: those of the operating system.
    pub(crate) fn new(mut stacks: Vec<Stack>, exports: Vec<Export>, opening: Opening) -> std::io::Result<Self> {
        let info =
            |(number, export): (u16, &Export)| export.window.info(stacks[export.stack].info(VolumeId::new(number)));
        let fronts = FrontEnds::new((0..).zip(&exports).map(info).collect())?;
        let mut sockets = Vec::new();
        for (volume, stack) in stacks.iter_mut().enumerate() {
            for (number, leg) in stack.legs.iter_mut().enumerate() {
                if let Storage::Remote(remote) = &mut leg.storage {
                    remote.namespace().register(fronts.registry(), FrontEnds::token(sockets.len()))?;
                    sockets.push((volume, number));
                }
            }
        }
        let (sender, errands) = channel();
        Ok(Self { fronts, stacks, sockets, began: Instant::now(), exports, opening, errands, sender })
    }

    /// A way to it for other threads.
    pub fn handle(&self) -> VolumeHandle {
        VolumeHandle { errands: self.sender.clone(), waker: self.fronts.waker() }
    }

    fn volume(&self, name: &str) -> Result<usize, ControlError> {
        let number = self.stacks.iter().position(|stack| stack.name == name);
        let names = || self.stacks.iter().map(|stack| stack.name.as_str()).collect::<Vec<_>>().join(", ");
        number.ok_or_else(|| ControlError(format!("there is no volume {name}, give one of {}", names())))
    }

    /// Its volumes: their parts, and the work that these do.
    pub fn status(&self) -> Vec<VolumeStatus> {
        self.stacks.iter().map(VolumeStatus::of).collect()
    }

    /// A leg that is gone gives up what it has open: it may be the one that comes back.
    fn close_gone(&mut self, volume: &str, leg: usize) -> Result<(), ControlError> {
        let number = self.volume(volume)?;
        let stack = &mut self.stacks[number];
        if leg < stack.legs.len() && stack.legs[leg].gone.is_some() && stack.under_way(leg) == 0 {
            stack.legs[leg].close();
        }
        Ok(())
    }

    /// The mark that open storage must have to take the place of a leg.
    fn mark_for(&mut self, volume: &str, leg: usize, storage: LegState) -> Result<(LegState, Mark), ControlError> {
        let number = self.volume(volume)?;
        let mark = self.stacks[number].mark_for(leg, &storage).map_err(ControlError)?;
        Ok((storage, mark))
    }

    /// Lets open storage take the place of a leg.
    fn replace(&mut self, volume: &str, leg: usize, storage: LegState) -> Result<(), ControlError> {
        let (number, now) = (self.volume(volume)?, self.now());
        let storage = self.come(number, leg, storage)?;
        self.stacks[number].replace(now, leg, storage, &mut self.fronts).map_err(ControlError)?;
        // Space that was borrowed there is not looked for again.
        self.stacks[number].legs[leg].loan = None;
        Ok(())
    }

    /// Storage that will have this number among the legs of a volume, if it can be used.
    fn come(&mut self, stack: usize, leg: usize, mut storage: LegState) -> Result<LegState, ControlError> {
        if let Some(why) = storage.gone {
            return Err(ControlError(why));
        }
        self.register((stack, leg), &mut storage)?;
        Ok(storage)
    }

    /// The properties of a place of a volume.
    fn place_info(&self, volume: &str, place: Place) -> Result<VolumeInfo, ControlError> {
        let stack = &self.stacks[self.volume(volume)?];
        let there = stack.service.place_info(place.below(), &stack.infos());
        there.ok_or_else(|| ControlError(format!("{volume} has no such place; see its status")))
    }

    /// Begins to put a service with open legs over a place of a volume; the leg there comes in at `at` among them.
    fn insert(
        &mut self,
        volume: &str,
        place: Place,
        (described, at): (&Leg, usize),
        storage: Vec<LegState>,
    ) -> Result<(), ControlError> {
        let (number, now) = (self.volume(volume)?, self.now());
        let there = self.place_info(volume, place)?;
        let place = place.below();
        let (mut legs, mut infos) = (Vec::new(), Vec::new());
        for leg in storage {
            let leg = self.come(number, self.stacks[number].legs.len() + legs.len(), leg)?;
            infos.push(leg.info());
            legs.push(leg);
        }
        if self.stacks[number].legs.len() + legs.len() > LEGS_MAX {
            return Err(ControlError(format!("more than {LEGS_MAX} pieces of storage")));
        }
        if described.service == Some(ServiceName::Mirror) {
            for (leg, info) in legs.iter_mut().zip(&mut infos) {
                used::keep(leg, there.limits.blocks).map_err(ControlError)?;
                *info = leg.info();
            }
        }
        infos.insert(at, there);
        // A record would take blocks that the volume has already.
        let settings = Settings { record: Some(described.record.unwrap_or(false)), ..Settings::of(described) };
        let name = described.service.unwrap_or_default();
        let maker = Maker { volume, number: 0, is_new: false, blank: 0 };
        let service = maker.make(name, settings, &infos).map_err(|error| ControlError(told(&error)))?;
        let limits = service.limits(&infos);
        if limits.blocks != there.limits.blocks {
            let (has, needs) = (limits.blocks, there.limits.blocks);
            return Err(ControlError(format!("with it there would be {has} blocks, and there are {needs}")));
        }
        if self.stacks[number].service.mixes() && matches!(place, Below::Service(_)) && !service.hands_on() {
            return Err(ControlError(ABOVE_ARRAYS.to_owned()));
        }
        if limits.request_blocks < there.limits.request_blocks && place != Below::Service(0) {
            let most = limits.request_blocks;
            return Err(ControlError(format!("it takes {most} blocks at once: put it above all others (s0)")));
        }
        self.stacks[number].reshape(now, Wish::Insert { place, service, at, legs }).map_err(ControlError)
    }

    /// Begins to take a service out of a volume: what it stands on takes its place once all is flushed and nothing is under way;
    /// [`VolumeEngine::reshaped`] has the result.
    ///
    /// Errors: no such volume or service.
    pub fn leave(&mut self, volume: &str, service: usize) -> Result<(), ControlError> {
        let (number, now) = (self.volume(volume)?, self.now());
        if self.stacks[number].service.place_info(Below::Service(service), &self.stacks[number].infos()).is_none() {
            return Err(ControlError(format!("{volume} has no service s{service}; see its status")));
        }
        self.stacks[number].reshape(now, Wish::Leave { node: service }).map_err(ControlError)
    }

    /// The result of the last [`VolumeHandle::insert`] or [`VolumeEngine::leave`], once there is one.
    ///
    /// Errors: no such volume.
    pub fn reshaped(&mut self, volume: &str) -> Result<Option<Result<(), ControlError>>, ControlError> {
        let number = self.volume(volume)?;
        Ok(self.stacks[number].reshaped.take().map(|result| result.map_err(ControlError)))
    }

    /// Makes open storage one more leg of a mirror.
    fn attach(&mut self, volume: &str, service: usize, storage: LegState) -> Result<(), ControlError> {
        let (number, now) = (self.volume(volume)?, self.now());
        let storage = self.come(number, self.stacks[number].legs.len(), storage)?;
        self.stacks[number].attach(now, service, storage, &mut self.fronts).map_err(ControlError)
    }

    /// Lets a mirror go on without a leg.
    ///
    /// Errors: no such volume or leg, or a leg that cannot be missed.
    pub fn detach(&mut self, volume: &str, leg: usize) -> Result<(), ControlError> {
        let (number, now) = (self.volume(volume)?, self.now());
        self.stacks[number].detach(now, leg, &mut self.fronts).map_err(ControlError)?;
        self.stacks[number].legs[leg].loan = None;
        Ok(())
    }

    /// Takes a version of a volume, and returns its slot.
    ///
    /// Errors: no such volume, no service that keeps versions, no room.
    pub fn take_version(&mut self, volume: &str) -> Result<u32, ControlError> {
        let (number, now) = (self.volume(volume)?, self.now());
        self.stacks[number].take_version(now, &mut self.fronts).map_err(ControlError)
    }

    /// Drops a version of a volume. Its readers end first.
    ///
    /// Errors: no such volume, no service that keeps versions, none in that slot.
    pub fn drop_version(&mut self, volume: &str, slot: u32) -> Result<(), ControlError> {
        let (number, now) = (self.volume(volume)?, self.now());
        self.stacks[number].drop_version(now, slot, &mut self.fronts).map_err(ControlError)
    }

    /// Sets a number of a volume's services.
    ///
    /// Errors: no such volume, or none of its services has that number or takes the value.
    pub fn set(&mut self, volume: &str, name: &str, value: u64) -> Result<(), ControlError> {
        let (number, now) = (self.volume(volume)?, self.now());
        let refused = || ControlError(format!("no service of {volume} has a {name} that can be {value}"));
        self.stacks[number].set(now, name, value, &mut self.fronts).then_some(()).ok_or_else(refused)
    }

    /// The ways in for clients.
    pub fn fronts_mut(&mut self) -> &mut FrontEnds {
        &mut self.fronts
    }

    pub(crate) fn now(&self) -> SimTime {
        time_of(self.began.elapsed())
    }

    /// Serves until `stop` says so; then brings everything to the back ends, and returns what was done.
    ///
    /// Errors: a front end that cannot begin, and the operating system's poll.
    pub fn run(mut self, mut stop: impl FnMut(Duration) -> bool) -> Result<Vec<VolumeReport>, EngineError> {
        self.fronts.start(Drives::NONE)?;
        let mut events = mio::Events::with_capacity(1024);
        let mut heard = Duration::ZERO;
        loop {
            let elapsed = self.began.elapsed();
            if stop(elapsed) {
                break;
            }
            if elapsed >= SERVED_MAX {
                tracing::error!("the server ends: it has run for 200 days, and time has a range");
                break;
            }
            for _ in 0..ERRANDS_MAX {
                let Ok(errand) = self.errands.try_recv() else { break };
                errand(&mut self);
            }
            let has_heard = events.iter().next().is_some();
            let (more, has_come) = self.turn(elapsed, &mut events);
            if has_heard || has_come {
                heard = elapsed;
            }
            // Orders under way outside wake the poll when they end, and may need this processor.
            let lingers = elapsed < heard + LINGER && !self.stacks.iter().any(Stack::is_busy);
            let timeout = if more || lingers { Duration::ZERO } else { self.sleep_time() };
            self.fronts.wait(&mut events, timeout).map_err(EngineError::Poll)?;
        }
        let recorded = self.fronts.stop(Drives::NONE);
        let reports = self.finish(&mut events)?;
        recorded.map_err(EngineError::Record)?;
        Ok(reports)
    }

    /// One turn; returns whether there is more to do at once, and whether anything has come.
    fn turn(&mut self, elapsed: Duration, events: &mut mio::Events) -> (bool, bool) {
        let releases = self.fronts.releases();
        let (sockets, stacks) = (&self.sockets, &mut self.stacks);
        let ready = |socket: usize| {
            // A leg that is to come has its socket before its place.
            if let Some(&(volume, leg)) = sockets.get(socket)
                && let Some(leg) = stacks[volume].legs.get_mut(leg)
                && let Storage::Remote(remote) = &mut leg.storage
            {
                remote.ready();
            }
        };
        let mut more = self.fronts.turn(elapsed, events, Drives::NONE, ready);
        let now = time_of(elapsed);
        let mut has_come = self.fronts.has_asked();
        self.stacks.iter_mut().for_each(|stack| has_come |= stack.turn(now, &mut self.fronts));
        self.take_in(now);
        self.fronts.send(Drives::NONE);
        more |= self.fronts.has_asked() || self.fronts.releases() != releases;
        (more, has_come)
    }

    /// Hands what was asked to the volumes. What is given up ends in its time.
    fn take_in(&mut self, now: SimTime) {
        let mut inbox = self.fronts.take_inbox();
        for inbound in inbox.drain(..) {
            match inbound {
                Inbound::Submit { front, tag, mut request, payload, .. } => {
                    let Export { stack, class, window, .. } = self.exports[request.volume.index()];
                    let mut client = Client { front: Some(front), tag, class, shift: 0 };
                    if window.number > 0 {
                        let part = window.info(self.stacks[stack].info(request.volume));
                        client.shift = u64::from(window.number) * part.limits.blocks;
                        request.first += client.shift;
                    }
                    self.stacks[stack].submit(now, client, request, payload, &mut self.fronts);
                }
                // No front end claims blocks of volumes that are no drives.
                Inbound::GiveUp { .. } | Inbound::Claim { .. } | Inbound::Release { .. } => {}
                Inbound::Erase { front, tag, .. } => {
                    let reason = "a volume that is made of other things is not formatted".to_owned();
                    self.fronts.erased(front, tag, Err(Refused::Control { reason }));
                }
                Inbound::Manage { front, tag, .. } => {
                    let refused = ManageError::Refused("a volume that is made of other things is one namespace");
                    self.fronts.managed(front, tag, Err(refused));
                }
                Inbound::Control { front, tag, .. } => {
                    let reason = "the volume is no drive of a model".to_owned();
                    self.fronts.controlled(front, tag, Err(Refused::Control { reason }));
                }
            }
        }
        self.fronts.give_inbox(inbox);
    }

    fn sleep_time(&self) -> Duration {
        let elapsed = self.began.elapsed();
        let timer = self.fronts.wake_at().map(|at| at.saturating_sub(elapsed));
        let due = self.stacks.iter().filter_map(Stack::due).min();
        let due = due.map(|due| Duration::from_nanos(due.saturating_since(self.now()).as_ns()));
        let least = timer.into_iter().chain(due).min().unwrap_or(SLEEP_MAX).min(SLEEP_MAX);
        if least < SPIN_BELOW { Duration::ZERO } else { least - SPIN_MARGIN }
    }

    /// Flushes every volume, with what is under way before.
    fn finish(mut self, events: &mut mio::Events) -> Result<Vec<VolumeReport>, EngineError> {
        let until = self.began.elapsed() + LAST_FLUSH;
        let now = self.now();
        self.stacks.iter_mut().for_each(|stack| stack.give_up_reshape(now, &mut self.fronts));
        self.stacks.iter_mut().for_each(|stack| stack.flush(now, &mut self.fronts));
        while self.stacks.iter().any(Stack::is_busy) && self.began.elapsed() < until {
            self.turn(self.began.elapsed(), events);
            let timeout = self.sleep_time().min(Duration::from_millis(1));
            self.fronts.wait(events, timeout).map_err(EngineError::Poll)?;
        }
        let report = |mut stack: Stack| {
            let unflushed = match stack.take_own() {
                Some(Ok(())) => None,
                Some(Err(failure)) => Some(failure.to_string()),
                None => Some(format!("no answer for {} s", LAST_FLUSH.as_secs())),
            };
            let (answered, failed, latte) = (stack.answered, stack.failed, stack.service.counters().copied());
            VolumeReport { name: stack.name, answered, failed, latte, unflushed }
        };
        Ok(self.stacks.into_iter().map(report).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flashyard_blk::{Operation, Payload, VolumeRequest};
    use flashyard_live::{Answered, Context, FrontEnd, Readiness};
    use flashyard_served::Answer;
    use std::path::Path;
    use std::sync::Mutex;

    /// An engine whose only volume has that back end.
    fn engine(folder: &Path, back: &str) -> VolumeEngine {
        engine_of(folder, &format!("back = {{ {back} }}"))
    }

    /// An engine whose only volume has these keys.
    fn engine_of(folder: &Path, keys: &str) -> VolumeEngine {
        let text = format!("[[volume]]\nname = \"v\"\n{keys}\n");
        let no_drive = |_: &Path, _: Option<&Path>, _, _| Err("no drive is served".to_owned());
        let no_secret = |_: &Path| Err("there is none".to_owned());
        crate::open(&text, folder, no_secret, no_drive).expect("it is right").engine
    }

    #[test]
    fn a_server_of_volumes_flushes_and_ends_before_time_has_no_more() {
        let mut engine = engine(Path::new("."), "memory = \"1 MiB\"");
        engine.began = Instant::now().checked_sub(SERVED_MAX).expect("there was a time");
        let mut asked = 0;
        let stop = |_| {
            asked += 1;
            asked > 100
        };
        let reports = engine.run(stop).expect("it ends");
        assert_eq!((asked, &reports[0].unflushed), (1, &None));
    }

    #[test]
    fn a_leg_beyond_the_numbers_that_there_are_is_refused_and_not_taken_for_the_first_one() {
        let leg = "{ memory = \"1 MiB\" }";
        let mut engine =
            engine_of(Path::new("."), &format!("service = \"mirror\"\nrecord = false\nlegs = [{leg}, {leg}]"));
        let storage = || LegState::new(Storage::Memory(crate::leg::Memory::new(256)), "memory".to_owned());
        // Legs that have come and gone: their numbers are not used again.
        let gone = || LegState::none("it was detached");
        engine.stacks[0].legs.resize_with(LEGS_MAX - 1, gone);
        engine.attach("v", 0, storage()).expect("there is one more number");
        for _ in 0..2 {
            let refused = engine.attach("v", 0, storage()).expect_err("there is none");
            assert!(refused.to_string().contains("more than 255 pieces of storage"), "{refused}");
            assert_eq!(engine.stacks[0].legs.len(), LEGS_MAX);
        }
    }

    #[test]
    fn the_result_of_a_flush_is_not_taken_for_that_of_a_later_one() {
        let mut engine = engine(Path::new("."), "memory = \"1 MiB\", latency = \"200 ms\"");
        let at = |ms| SimTime::ZERO + flashyard_units::SimSpan::from_ms(ms);
        let (stack, fronts) = (&mut engine.stacks[0], &mut engine.fronts);
        stack.flush(at(0), fronts);
        stack.flush(at(150), fronts);
        stack.turn(at(250), fronts);
        assert_eq!((stack.requests_under_way(), stack.take_own()), (1, None));
        stack.turn(at(400), fronts);
        assert_eq!((stack.requests_under_way(), stack.take_own()), (0, Some(Ok(()))));
    }

    /// A front end that reads block 3, and notes the answer.
    struct Reader {
        is_asked: bool,
        seen: Arc<Mutex<Option<Answer>>>,
    }

    impl FrontEnd for Reader {
        fn name(&self) -> String {
            "a reader".to_owned()
        }

        fn start(&mut self, _context: &mut Context<'_>) -> std::io::Result<()> {
            Ok(())
        }

        fn ready(&mut self, _key: usize, _what: Readiness, _context: &mut Context<'_>) {}

        fn turn(&mut self, context: &mut Context<'_>) -> bool {
            if !std::mem::replace(&mut self.is_asked, true) {
                let (volume, operation) = (VolumeId::new(0), Operation::Read);
                let request = VolumeRequest { volume, operation, first: 3, count: 1, source: 0 };
                context.submit(0, request, Payload::None).expect("it is within the volume");
            }
            false
        }

        fn answered(&mut self, answered: Answered<'_>) {
            *self.seen.lock().expect("no panic") = Some(answered.answer);
        }

        fn send(&mut self, _context: &mut Context<'_>) {}
    }

    #[test]
    fn an_error_names_the_block_that_the_client_of_a_part_has_asked_for() {
        let folder = tempfile::tempdir().expect("there is room");
        let mut engine = engine(folder.path(), "file = \"disk\", size = \"1 MiB\"");
        engine.exports[0].window = Window { number: 1, of: 2, read_only: false };
        // Its blocks are gone behind the back of the volume.
        std::fs::File::options()
            .write(true)
            .open(folder.path().join("disk"))
            .expect("it is there")
            .set_len(0)
            .expect("it may");
        let seen = Arc::new(Mutex::new(None));
        engine.fronts_mut().add(Box::new(Reader { is_asked: false, seen: Arc::clone(&seen) }));
        let is_over = Arc::clone(&seen);
        engine.run(|elapsed| is_over.lock().expect("no panic").is_some() || elapsed > LAST_FLUSH).expect("it serves");
        assert_eq!(*seen.lock().expect("no panic"), Some(Answer::Unread { block: 3 }));
    }
}
