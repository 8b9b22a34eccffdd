//! The loop: one thread that runs the enclosure, its media and its front ends.

mod change;
mod claimed;
mod claims;
mod erase;
mod gather;
mod manage;
mod pending;
mod protect;
mod request;
mod reservations;
mod resize;
mod space;
mod tables;
mod window;

use crate::budget::Limits;
use crate::clock::{Lateness, Paced, SERVED_MAX, Tempo, noise};
use crate::error::{BlockSizeError, EngineError};
use crate::front::{Context, Drives, FrontEnd, Inbound};
use crate::front_ends::FrontEnds;
use crate::hook::{EngineAccess, Hook, Unseen, carry_out};
use crate::media::{BlockFormat, Media};
use crate::namespaces::{ManageError, Spaces};
use crate::report::Report;
use claimed::Claims;
use flashyard_blk::VolumeInfo;
use flashyard_flash::SLOT_BYTES;
use flashyard_kernel::Slab;
use flashyard_served::{Effect, Presence, Session};
use flashyard_stats::LatencyHistogram;
use flashyard_units::{DriveId, SimTime, VolumeId};
use request::{Change, Erasing, Gather, Pending, Places, Waiting};
use std::io::{self, Write};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

/// Events of the enclosure between two looks at the sockets, at most: some hundred microseconds of work.
const EVENTS_PER_TURN: u64 = 512;

/// Like [`EVENTS_PER_TURN`], where no clock rules.
const EVENTS_PER_FREE_TURN: u64 = 64;

/// The poll of the operating system wakes to the millisecond: nothing that is due sooner is left to it.
const SPIN_BELOW: Duration = Duration::from_millis(2);

/// Sleeps end so long before something is due.
const SPIN_MARGIN: Duration = Duration::from_millis(1);

/// Where no client waits for an answer, the enclosure may be late, and the thread sleeps at least so long.
const IDLE_SLEEP_MIN: Duration = Duration::from_millis(1);

/// Longest sleep before the engine looks whether the program should end.
const SLEEP_MAX: Duration = Duration::from_millis(100);

/// A client that was just answered is likely to ask again: sleeping and waking would cost it more than the answer.
const LINGER: Duration = Duration::from_millis(1);

/// How long the machine is watched before the start.
const NOISE_SPAN: Duration = Duration::from_millis(20);

/// Period at which the lifetime records of drives are stored: a kill may cost what they counted in one.
const KEEP_PERIOD: Duration = Duration::from_millis(500);

/// Divides a volume into namespaces of so many units of 4 KiB, before clients have seen it; one whose namespaces were kept by an
/// earlier process stays as it is. Panics beyond the volumes of the world.
///
/// Errors: more units than it has; a volume that lies on several drives; a record that cannot be kept.
pub fn divide(engine: &mut Engine, volume: VolumeId, sizes: &[u64]) -> Result<(), ManageError> {
    manage::divide(engine, volume, sizes)
}

/// Sets the format of a volume's blocks as [`Engine::set_block_bytes`] sets their size.
///
/// Errors: those of [`Engine::set_block_bytes`]; metadata that has no place.
pub fn set_format(engine: &mut Engine, volume: VolumeId, block: BlockFormat) -> Result<(), BlockSizeError> {
    if !block.exists() {
        return Err(BlockSizeError::Unknown(block.data_bytes));
    }
    let drives = engine.session.world().drives_of(volume);
    if block != BlockFormat::plain(SLOT_BYTES) && drives.len() > 1 {
        return Err(BlockSizeError::SeveralDrives(volume));
    }
    let formatted = engine.media.drive(drives[0]).before().erasures.block;
    let block = formatted.unwrap_or(block);
    tables::prepare(engine, volume, block).map_err(|error| BlockSizeError::NotKept(error.to_string()))?;
    erase::set_blocks(engine, volume, block);
    Ok(())
}

/// Whether a volume was divided into namespaces, be it one. Panics beyond the volumes of the world.
pub fn is_divided(engine: &Engine, volume: VolumeId) -> bool {
    engine.spaces.table(volume).is_some()
}

/// Runs an enclosure, its media and its front ends.
pub struct Engine {
    session: Session,
    media: Media,
    pace: Paced,
    fronts: FrontEnds,
    hooks: Vec<Box<dyn Hook>>,
    /// Figures for those who read them through hooks.
    unseen: Unseen,
    journal: Option<Box<dyn Write>>,
    /// Why the journal ends before the enclosure does.
    journal_failed: Option<io::Error>,
    turns: u64,
    /// The moment at which something was last done to the enclosure, or could have been.
    moment: SimTime,
    /// When this turn began, and when something last came from outside.
    turned: Duration,
    heard: Duration,
    /// By token.
    pending: Slab<Pending>,
    /// Requests that change units in part, and those of them that go on with their next step.
    changes: Slab<Change>,
    changes_to_go_on: Vec<u32>,
    /// Space that is being deallocated: of volumes whose data is erased, of namespaces that come and go.
    erasing: Vec<Erasing>,
    jobs: u64,
    waiting: Vec<Waiting>,
    /// Blocks that commands have for themselves.
    claims: Claims,
    /// Requests to volumes that do not lie in one piece.
    gathers: Slab<Gather>,
    /// Volumes of the world that clients see, and where the volumes of clients lie.
    exports: Vec<VolumeId>,
    spaces: Spaces,
    /// By drive: the volume of the world that lies on it alone.
    volume_on: Vec<Option<VolumeId>>,
    /// By volume: a unit that its drive maps has 2^n of its blocks.
    shifts: Vec<u8>,
    /// Room for the places of slots, of requests that are over.
    spare_places: Vec<Places>,
    /// Tokens of requests that were given up and that a drive may still be at, and when to look at them again.
    given_up: Vec<u32>,
    look_again: Duration,
    /// When the lifetime records of drives are stored next.
    keep_again: Duration,
    effects: Vec<Effect>,
    lateness: Lateness,
    /// As clients had it: from the request to its answer, in virtual time.
    latency: LatencyHistogram,
    requests: [u64; 5],
    bytes: [u64; 2],
}

impl Engine {
    /// An engine around a world that has not run and its media, which shows clients `exports` of its volumes. What was
    /// done to the world before a restart and lasts is done to it again. Panics beyond the volumes of the world.
    ///
    /// Errors: those of the operating system.
    pub fn new(mut session: Session, media: Media, exports: &[VolumeId], tempo: Tempo) -> io::Result<Self> {
        for control in media.resumption() {
            if let Err(refused) = session.control(SimTime::ZERO, control) {
                tracing::warn!(%refused, ?control, "what was so before the restart is so no more");
            }
        }
        let volumes = session.world().volumes();
        let shifts = vec![0; volumes.len()];
        let shown = exports.iter().map(|id| volumes[id.index()]).collect();
        let fronts = FrontEnds::new(shown)?;
        let mut volume_on = vec![None; session.world().drives().into()];
        for volume in &volumes {
            if let [drive] = session.world().drives_of(volume.id)[..] {
                volume_on[drive.index()] = Some(volume.id);
            }
        }
        let mut engine = Self {
            session,
            media,
            pace: Paced::new(tempo),
            fronts,
            hooks: Vec::new(),
            unseen: Unseen::default(),
            journal: None,
            journal_failed: None,
            turns: 0,
            moment: SimTime::ZERO,
            turned: Duration::ZERO,
            heard: Duration::ZERO,
            pending: Slab::default(),
            changes: Slab::default(),
            changes_to_go_on: Vec::new(),
            erasing: Vec::new(),
            jobs: 0,
            waiting: Vec::new(),
            claims: Claims::default(),
            gathers: Slab::default(),
            exports: exports.to_vec(),
            spaces: Spaces::new(volumes),
            volume_on,
            shifts,
            spare_places: Vec::new(),
            given_up: Vec::new(),
            look_again: Duration::ZERO,
            keep_again: KEEP_PERIOD,
            effects: Vec::new(),
            lateness: Lateness::default(),
            latency: LatencyHistogram::new(),
            requests: [0; 5],
            bytes: [0; 2],
        };
        manage::resume(&mut engine)?;
        erase::resume(&mut engine)?;
        reservations::resume(&mut engine)?;
        Ok(engine)
    }

    /// Sets the size of a volume's blocks, before clients have seen it; one that a host has formatted keeps those of that
    /// format. Drives map units of 4 KiB whatever it is: a block may
    /// be smaller, and is then a part of a unit. Panics beyond the volumes of the world.
    ///
    /// Errors: a size that there is not; smaller blocks of a volume that lies on several drives, as what one of them holds beside
    /// such a block may be old.
    pub fn set_block_bytes(&mut self, volume: VolumeId, block_bytes: u32) -> Result<(), BlockSizeError> {
        set_format(self, volume, BlockFormat::plain(block_bytes))
    }

    /// Adds a way for clients to reach the enclosure.
    pub fn add_front(&mut self, front: Box<dyn FrontEnd>) {
        self.fronts.add(front);
    }

    /// Adds code that is called once a turn.
    pub fn add_hook(&mut self, hook: Box<dyn Hook>) {
        self.hooks.push(hook);
    }

    /// Sets the limits of its front ends, before it runs.
    pub fn set_limits(&mut self, limits: Limits) {
        self.fronts.set_limits(limits);
    }

    /// Writes the session's journal to `out` as it grows.
    pub fn set_journal(&mut self, out: Box<dyn Write>) {
        self.journal = Some(out);
    }

    /// Ends a sleep of the engine, from any thread: a queue inside the program has something, or it should stop.
    pub fn waker(&self) -> Arc<mio::Waker> {
        self.fronts.waker()
    }

    /// The volumes that clients see.
    pub fn volumes(&self) -> &[VolumeInfo] {
        self.fronts.volumes()
    }

    /// The ways in for clients.
    pub fn fronts_mut(&mut self) -> &mut FrontEnds {
        &mut self.fronts
    }

    /// Serves until `stop` says so, and returns what was done.
    ///
    /// Errors: a front end that cannot begin, and whatever makes it impossible to go on. The media are closed in order
    /// only without one.
    pub fn run(mut self, mut stop: impl FnMut(Duration) -> bool) -> Result<Report, EngineError> {
        self.lateness.noise = noise(NOISE_SPAN);
        self.pace = Paced::new(self.pace.tempo());
        self.fronts.start(Drives::of(self.session.world(), &self.media, &self.spaces))?;
        let mut events = mio::Events::with_capacity(1024);
        let latest = self.session.world().latest();
        while !stop(self.turned) {
            // Front ends have the time on the wall, which the enclosure's need not follow.
            if self.moment >= latest || self.turned >= SERVED_MAX {
                tracing::error!("the server ends: it has run for 200 days, and time has a range");
                break;
            }
            let busy = self.turn(&mut events)?;
            self.wait(busy, &mut events)?;
        }
        self.finish()
    }

    /// One turn; returns whether there is more to do at once.
    fn turn(&mut self, events: &mut mio::Events) -> Result<bool, EngineError> {
        self.turned = self.pace.elapsed();
        self.turns += 1;
        let releases = self.fronts.releases();
        // The enclosure does what is due by now before anything is done to it.
        let mut more = self.run_world()?;
        let heard = events.iter().next().is_some();
        let drives = Drives::of(self.session.world(), &self.media, &self.spaces);
        more |= self.fronts.turn(self.turned, events, drives, |_| {});
        let asked = self.fronts.has_asked() || !self.changes_to_go_on.is_empty();
        if heard || asked {
            self.heard = self.turned;
        }
        // One moment for all that is done to the enclosure in this turn: a second look at the clock, with events between that
        // what was taken in has made, could fall behind the first one.
        let now = self.moment();
        self.moment = now;
        self.take_in(now);
        if !self.claims.is_empty() {
            more |= claims::go_on(self);
        }
        if !self.erasing.is_empty() {
            more |= erase::go_on(self, now)?;
        }
        self.release();
        if self.turned >= self.keep_again {
            self.keep_again = self.turned + KEEP_PERIOD;
            self.keep_lives();
        }
        self.run_hooks(now);
        self.follow()?;
        // Without a clock what was just asked for can be answered in the same turn.
        if asked && self.pace.tempo() == Tempo::Off {
            more |= self.run_world()?;
        }
        self.fronts.send(Drives::of(self.session.world(), &self.media, &self.spaces));
        self.write_journal();
        // Front ends that wait for room may go on once something was given back.
        Ok(more || self.fronts.has_asked() || !self.changes_to_go_on.is_empty() || self.fronts.releases() != releases)
    }

    /// Lets the enclosure do what is due, at most for a while, and hands answers out; returns whether there may be more.
    fn run_world(&mut self) -> Result<bool, EngineError> {
        let more = match self.pace.tempo() {
            Tempo::Scaled(_) => self.session.run(&mut self.pace, EVENTS_PER_TURN) == EVENTS_PER_TURN,
            Tempo::Off => self.run_while_somebody_waits(),
        };
        self.follow()?;
        Ok(more)
    }

    /// Without a clock: work of the enclosure while no client waits, such as looking at its monitors, would be in the
    /// way of the next request.
    fn run_while_somebody_waits(&mut self) -> bool {
        self.session.run_in_progress(EVENTS_PER_FREE_TURN);
        self.pace.reach(self.session.world().now());
        // Requests held for a pulled drive do not let time pass.
        let waits = self.session.world().in_progress() > 0;
        self.pace.want(waits);
        waits
    }

    /// Looks at the sockets, and sleeps until something is there or due if there is nothing to do.
    fn wait(&mut self, busy: bool, events: &mut mio::Events) -> Result<(), EngineError> {
        let timeout = if busy { Duration::ZERO } else { self.sleep_time() };
        self.fronts.wait(events, timeout).map_err(EngineError::Poll)
    }

    fn sleep_time(&self) -> Duration {
        if self.turned < self.heard + LINGER && self.heard > Duration::ZERO {
            return Duration::ZERO;
        }
        let elapsed = self.pace.elapsed();
        let timers = self.fronts.iter().filter_map(FrontEnd::wake_at).map(|at| at.saturating_sub(elapsed));
        let due = match self.pace.tempo() {
            Tempo::Scaled(_) => self.session.world().next_due().and_then(|due| self.pace.until(due)),
            Tempo::Off => (self.session.world().in_progress() > 0).then_some(Duration::ZERO),
        };
        let least = timers.chain(due).min().unwrap_or(SLEEP_MAX).min(SLEEP_MAX);
        if self.session.world().in_progress() == 0 {
            // Monitors, and work in the background: no client sees when exactly that happens.
            return least.max(IDLE_SLEEP_MIN);
        }
        if least < SPIN_BELOW { Duration::ZERO } else { least - SPIN_MARGIN }
    }

    /// Lets one front end work, with the context that it needs.
    fn with_front<R>(&mut self, number: usize, act: impl FnOnce(&mut dyn FrontEnd, &mut Context<'_>) -> R) -> R {
        self.fronts.with(number, Drives::of(self.session.world(), &self.media, &self.spaces), act)
    }

    /// The time at which something is done to the enclosure now: what is due by then has happened.
    fn moment(&self) -> SimTime {
        let world = self.session.world();
        let clock = self.pace.now().unwrap_or(world.now()).max(world.now());
        match world.next_due() {
            // Behind the clock: the enclosure has not come that far.
            Some(due) if due <= clock => world.now(),
            _ => clock,
        }
    }

    /// Hands what was asked over to the enclosure.
    fn take_in(&mut self, now: SimTime) {
        if !self.changes_to_go_on.is_empty() {
            self.go_on_changes(now);
        }
        let mut inbox = self.fronts.take_inbox();
        let mut given_up = Vec::new();
        for inbound in inbox.drain(..) {
            let Some(inbound) = self.claims.admit(inbound) else { continue };
            match inbound {
                Inbound::Submit { .. } => gather::take_in(self, now, inbound),
                Inbound::Control { front, tag, control } => {
                    let done = carry_out(&mut self.session, &mut self.media, now, control);
                    self.fronts.controlled(front, tag, done);
                }
                Inbound::Erase { front, tag, volume, nsid, erase } => {
                    erase::begin(self, (front, tag), (volume, nsid), erase);
                }
                Inbound::Manage { front, tag, volume, wish } => manage::begin(self, (front, tag), volume, wish),
                Inbound::Claim { front, claim } => self.claims.make(front, claim),
                Inbound::Release { front, tag } => {
                    for freed in self.claims.release(front, tag) {
                        gather::take_in(self, now, freed);
                    }
                }
                Inbound::GiveUp { front, tag } => given_up.push((front, tag)),
            }
        }
        self.fronts.give_inbox(inbox);
        if !given_up.is_empty() {
            claims::give_up(self, &given_up);
            self.give_up(now, given_up);
        }
    }

    /// Lets hooks look and act.
    fn run_hooks(&mut self, now: SimTime) {
        let mut hooks = std::mem::take(&mut self.hooks);
        for hook in &mut hooks {
            let mut access = EngineAccess {
                session: &mut self.session,
                media: &mut self.media,
                now,
                elapsed: self.turned,
                lateness: &self.lateness,
                volumes: self.fronts.volumes(),
                changed: false,
                ports: Vec::new(),
                wanted: Vec::new(),
                fronts: &self.fronts,
                in_flight_bytes: self.fronts.in_flight_bytes(),
                turns: self.turns,
                unseen: &mut self.unseen,
            };
            hook.turn(&mut access);
            let (changed, ports, wanted) = (access.changed, access.ports, access.wanted);
            wanted.into_iter().for_each(|wanted| manage::begin_wanted(self, wanted));
            for (address, up) in ports {
                self.switch_port(address, up);
            }
            if changed {
                tracing::debug!(at_us = now.as_ps() / 1_000_000, "something was done to the enclosure");
            }
        }
        self.hooks = hooks;
    }

    fn switch_port(&mut self, address: SocketAddr, up: bool) {
        let mut found = false;
        for number in 0..self.fronts.len() {
            match self.with_front(number, |front, context| front.port(address, up, context)) {
                Ok(is_its) => found |= is_its,
                Err(error) => tracing::error!(%error, %address, "the port stays down"),
            }
        }
        tracing::info!(%address, up, found, "port");
    }

    /// Does what the enclosure tells: moves bytes, hands out answers.
    fn follow(&mut self) -> Result<(), EngineError> {
        let mut effects = std::mem::take(&mut self.effects);
        self.session.take_effects(&mut effects);
        self.media.touch(&effects);
        for effect in effects.drain(..) {
            match effect {
                Effect::Payload { drive, movement } => {
                    self.move_bytes(drive, &movement)?;
                    if !self.spaces.is_plain()
                        && let Some(volume) = self.volume_on[drive.index()]
                    {
                        self.spaces.follow(volume, &movement);
                    }
                }
                Effect::Copied { from, source, drive, logical, slot, before } => {
                    let copied = self.media.copy((from, source), drive, logical, slot, before);
                    copied.map_err(EngineError::Media)?;
                }
                Effect::Answered { token, at, answer } => self.answer(token, at, answer),
                Effect::Gone { volume } => {
                    tracing::info!(%volume, "volume does not answer any more");
                    for volume in self.spaces.volumes_in(volume) {
                        (0..self.fronts.len())
                            .for_each(|front| self.with_front(front, |front, context| front.gone(volume, context)));
                    }
                }
                Effect::Back { volume } => {
                    tracing::info!(%volume, "volume is back");
                    for volume in self.spaces.volumes_in(volume) {
                        (0..self.fronts.len())
                            .for_each(|front| self.with_front(front, |front, context| front.back(volume, context)));
                    }
                }
            }
        }
        self.effects = effects;
        Ok(())
    }

    /// Stores the lifetime records of drives as they are now, where they outlive the process.
    fn keep_lives(&mut self) {
        if !self.media.is_kept() {
            return;
        }
        let world = self.session.world();
        for drive in DriveId::first(world.drives()) {
            let of_drive = self.exports.iter().filter(|volume| world.drives_of(**volume).contains(&drive));
            let entries = |volume: VolumeId| self.fronts.iter().map(move |front| front.error_entries(volume));
            let errors = of_drive.flat_map(|&volume| entries(volume)).sum();
            let before = self.media.drive(drive).before();
            let life = before.until(&world.health(drive, world.now()), self.pace.elapsed(), errors);
            let life = if world.presence(drive) == Presence::NoPower { life.dark() } else { life };
            self.media.keep(drive, life, world);
        }
    }

    /// Clients are served without a journal that cannot be written any more; the end tells of it.
    fn write_journal(&mut self) {
        let bytes = self.session.take_journal();
        if let Some(out) = self.journal.as_mut().filter(|_| !bytes.is_empty())
            && let Err(error) = out.write_all(&bytes)
        {
            self.stop_journal(error);
        }
    }

    #[cold]
    fn stop_journal(&mut self, error: io::Error) {
        tracing::error!(%error, "the journal ends here; the drives are served without it");
        self.journal = None;
        self.journal_failed = Some(error);
    }

    fn finish(mut self) -> Result<Report, EngineError> {
        let recorded = self.fronts.stop(Drives::of(self.session.world(), &self.media, &self.spaces));
        self.keep_lives();
        self.session.end();
        self.write_journal();
        if let Some(Err(error)) = self.journal.as_mut().map(|out| out.flush()) {
            self.stop_journal(error);
        }
        // The machine may not be as still now as it was at the start.
        self.lateness.noise.merge(&noise(NOISE_SPAN));
        let world = self.session.world();
        let report = Report {
            elapsed: self.pace.elapsed(),
            simulated: world.now().since(SimTime::ZERO),
            requests: self.requests,
            bytes: self.bytes,
            unanswered: world.in_flight(),
            latency: self.latency,
            lateness: self.lateness,
            digest: self.session.digest(),
            events: world.steps(),
        };
        self.media.close().map_err(EngineError::Media)?;
        self.journal_failed.map_or(Ok(()), |error| Err(EngineError::Journal(error)))?;
        recorded.map_err(EngineError::Record)?;
        Ok(report)
    }
}
