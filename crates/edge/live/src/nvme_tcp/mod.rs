//! NVMe/TCP: sockets around the machines of `nvmf`.
//!
//! Each drive is a subsystem, with one namespace until hosts create others. A drive that goes away takes its controllers with it:
//! their connections are closed, and hosts that connect are told to try again until it is back. A host in the middle of
//! setting a controller up gets its last answer first, as it does not look at the end of a connection before.
//!
//! No connection is listened to before everything that closed connections had asked for has come to an end: an old
//! write must not come after a newer one of the same host. Resets of zones, which may take minutes, are the exception: later writes of
//! their zones wait for them.
//!
//! One client cannot take the target away from the others. A connection has ten seconds from its first byte to a queue
//! of a controller, and as long to take the last word of its end; connections are no more than the engine's limits
//! say; what hosts hold of memory is counted, and a host that has no room left waits ([`crate::budget`]). A host that
//! neither takes its answers nor sends the data it was asked for keeps what it holds until another client needs it.

mod erasure;
mod fences;
mod fused;
mod health;
mod manage;
mod peer;
mod ports;
mod protect;
mod self_test;
mod shutdown;
mod subsystems;
mod telemetry;
mod work;

pub use ports::ListenError;

use crate::clock::time_of;
use crate::connection::Reading;
use crate::front::{Answered, Context, FrontEnd, KEYS_MAX, Readiness};
use crate::namespaces::ManageError;
use crate::peers::{HELD_PERIOD, Marked, Peers, STILL_MAX};
use crate::stream::Stream;
use crate::tls::ServerKeys;
use flashyard_nvmf::target::{Command, ConfigError, Security, SessionId, Tag, Target, TargetConfig, superseded};
use flashyard_served::Refused;
use flashyard_units::{SimTime, VolumeId};
use peer::Peer;
use ports::Ports;
use shutdown::Shutdowns;
use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;
use subsystems::{Subsystems, is_zoned};
use work::{Done, Works};

/// Bytes read from a socket at once.
const READ_BYTES: usize = 256 * 1024;
/// A host that is setting up a controller sends its next command sooner than this. [A]
const ORPHAN_MAX: Duration = Duration::from_secs(5);
/// The front end.
pub struct NvmeTcp {
    target: Target,
    ports: Ports,
    /// By which hosts come to ports of TLS, if there are any.
    keys: Option<ServerKeys>,
    subsystems: Subsystems,
    /// By key less the number of ports.
    peers: Peers<Peer>,
    by_session: BTreeMap<SessionId, usize>,
    works: Works,
    shutdowns: Shutdowns,
    /// Connections without a controller that may hear of one more command, and when they are closed at the latest.
    orphans: Vec<(SessionId, Duration)>,
    /// Commands that hosts want back, and those that the enclosure has been asked to give back in this turn.
    to_abort: Vec<(SessionId, Tag)>,
    tried: Vec<(SessionId, Tag)>,
    /// Connections that may have something to read, those that must wait with that until somebody gives something
    /// back, and those that have something to send.
    readable: Marked,
    held: Marked,
    dirty: Marked,
    /// How often something had been given back when those were last let go on.
    releases: u64,
    /// When connections that stand still are looked for next.
    look_still: Duration,
    /// When those that wait are let go on in any case.
    look_held: Duration,
    wakes: Vec<SessionId>,
    buffer: Vec<u8>,
    now: SimTime,
}

impl NvmeTcp {
    /// Listens on `addresses`, which become the ports of the target, in order and counted from one. `volumes` names the
    /// volume behind each subsystem of `config`; a block takes `endurance_erases` before its drive counts as used up.
    ///
    /// Errors: an address that cannot be listened on; a configuration that contradicts itself.
    pub fn new(
        addresses: &[SocketAddr],
        config: TargetConfig,
        volumes: Vec<VolumeId>,
        endurance_erases: u32,
    ) -> Result<Self, ListenError> {
        Self::with_tls(addresses, &[], config, volumes, endurance_erases)
    }

    /// Listens on the addresses of `tls` as well: ports that speak TLS 1.3 only, by the keys of the hosts of `config`.
    ///
    /// Errors: as [`NvmeTcp::new`]; ports of TLS in a program without it.
    pub fn with_tls(
        addresses: &[SocketAddr],
        tls: &[SocketAddr],
        mut config: TargetConfig,
        volumes: Vec<VolumeId>,
        endurance_erases: u32,
    ) -> Result<Self, ListenError> {
        let keys = if tls.is_empty() { None } else { Some(ServerKeys::new(config.tls_keys())?) };
        let ports = Ports::open(addresses, tls)?;
        config.ports = ports.as_seen_by_hosts();
        let subsystems = Subsystems::new(&config.subsystems, volumes, endurance_erases);
        Ok(Self {
            target: Target::new(config).map_err(|source: ConfigError| ListenError::Target(source))?,
            ports,
            keys,
            subsystems,
            peers: Peers::default(),
            by_session: BTreeMap::new(),
            works: Works::default(),
            shutdowns: Shutdowns::default(),
            orphans: Vec::new(),
            to_abort: Vec::new(),
            tried: Vec::new(),
            readable: Marked::default(),
            held: Marked::default(),
            dirty: Marked::default(),
            releases: 0,
            look_still: STILL_MAX,
            look_held: Duration::ZERO,
            wakes: Vec::new(),
            buffer: vec![0; READ_BYTES],
            now: SimTime::ZERO,
        })
    }

    /// Where it listens, with the port that was chosen where none was asked for; ports of TLS come last.
    pub fn addresses(&self) -> impl Iterator<Item = SocketAddr> + '_ {
        self.ports.addresses()
    }

    fn accept(&mut self, port: usize, context: &mut Context<'_>) {
        let most = context.limits().connections.min(KEYS_MAX - self.ports.len());
        while let Some(socket) = self.ports.acceptor(port).next(context.elapsed(), self.peers.len(), most) {
            self.take_in(port, socket, context);
        }
    }

    fn take_in(&mut self, port: usize, mut socket: mio::net::TcpStream, context: &Context<'_>) {
        let token = context.token(self.ports.len() + self.peers.next_place());
        let interest = mio::Interest::READABLE | mio::Interest::WRITABLE;
        if let Err(error) = context.registry().register(&mut socket, token, interest) {
            tracing::warn!(%error, "a connection cannot be taken");
            return;
        }
        let keys = self.keys.as_ref().filter(|_| self.ports.security(port) == Security::Tls13);
        let stream = match Stream::accept(socket, keys) {
            Ok(stream) => stream,
            Err(error) => return tracing::warn!(%error, "a connection cannot be taken"),
        };
        let peer = Peer::new(stream, &mut self.target, port);
        let session = peer.session.id();
        let place = self.peers.insert(peer);
        tracing::debug!(place, port, "connection");
        self.by_session.insert(session, place);
        self.peers.set_deadline(place, context.elapsed() + context.limits().set_up);
        self.readable.mark(place);
    }

    /// Reads what has come, unless this has to wait.
    fn read(&mut self, place: usize, context: &mut Context<'_>) {
        let Some(peer) = self.peers.get(place) else { return };
        if peer.connection.is_new() && self.works.any_abandoned() {
            return self.held.mark(place);
        }
        self.begin_commands(place, context);
        let Some(peer) = self.peers.get_mut(place) else { return };
        if peer.waits() {
            return self.held.mark(place);
        }
        match peer.read(&mut self.target, self.now, &mut self.buffer, context.budget) {
            Reading::Empty if !peer.session.awaits_room() => {}
            Reading::More => self.readable.mark(place),
            Reading::Held | Reading::Empty => self.held.mark(place),
        }
        self.begin_commands(place, context);
        self.dirty.mark(place);
    }

    /// Hands commands on to the enclosure, as far as there is room.
    fn begin_commands(&mut self, place: usize, context: &mut Context<'_>) {
        let Some(peer) = self.peers.get_mut(place) else { return };
        while let Some((command, cost)) = peer.next_command(context.budget) {
            if let Some(status) = superseded(&self.target, &command) {
                // It has waited for room while its namespace was deleted, or formatted.
                peer.under_way -= cost;
                context.budget.give(cost);
                let Command { tag, payload, second, .. } = command;
                peer.session.complete(&mut self.target, tag, status, payload, &mut peer.effects);
                if let Some(second) = second {
                    peer.session.complete(&mut self.target, second.tag, status, second.payload, &mut peer.effects);
                }
                continue;
            }
            let drive = self.subsystems.volume(command.subsystem);
            let volume = (context.namespace(drive, command.nsid), is_zoned(&self.target, command.subsystem));
            self.works.begin(place, volume, command, cost, context);
            // The engine keeps the buffers of writes: one comes back for each that went.
            peer.effects.output.give(context.buffer(0));
        }
        if peer.waits() {
            self.held.mark(place);
        }
        peer.settle(context.budget);
    }

    /// Closes connections that have no session in time, and those that do not take the last word.
    fn close_late(&mut self, context: &mut Context<'_>) {
        let now = context.elapsed();
        while let Some(place) = self.peers.take_late(now) {
            let Some(peer) = self.peers.get(place) else { continue };
            if peer.connection.is_new() && self.works.any_abandoned() {
                // It could not be heard.
                self.peers.set_deadline(place, now + context.limits().set_up);
            } else if peer.is_closing || !peer.session.is_live() {
                tracing::debug!(place, "a connection has no session in time, or does not take its end");
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
            if !peer.holds_anything() {
                peer.effects.output.shrink();
            }
        }
        if context.budget.has_waited_since(then) {
            for place in still {
                tracing::warn!(place, "a connection that moves nothing is closed: others wait for the memory it holds");
                self.close(place, context);
            }
        }
    }

    fn complete(&mut self, done: Done) {
        let Done { place, tag, status, failed_at, stopped_at, second, payload, cost } = done;
        if let Some(peer) = self.peers.get_mut(place) {
            peer.under_way -= cost;
            if let Some(block) = failed_at {
                let failed = second.filter(|_| status.is_success()).map_or(tag, |(second, _)| second);
                peer.session.fails_at(failed, block);
            }
            if let Some(range) = stopped_at {
                peer.session.stops_at_range(tag, range);
            }
            peer.session.complete(&mut self.target, tag, status, payload, &mut peer.effects);
            if let Some((tag, status)) = second {
                peer.session.complete(&mut self.target, tag, status, Vec::new(), &mut peer.effects);
            }
            self.dirty.mark(place);
        }
    }

    /// Lets connections know what others, or time, have done to them.
    fn wake(&mut self) {
        while self.target.has_wakes() {
            self.wakes.extend(self.target.take_wakes());
            for session in std::mem::take(&mut self.wakes) {
                if let Some(&place) = self.by_session.get(&session)
                    && let Some(peer) = self.peers.get_mut(place)
                {
                    peer.session.poll(&mut self.target, &mut peer.effects);
                    self.to_abort.extend(peer.effects.aborts.drain(..).map(|tag| (session, tag)));
                    self.dirty.mark(place);
                }
            }
        }
    }

    fn close_orphans(&mut self, context: &mut Context<'_>) {
        if self.orphans.first().is_none_or(|&(_, until)| until > context.elapsed()) {
            return;
        }
        for (session, until) in std::mem::take(&mut self.orphans) {
            match self.by_session.get(&session) {
                Some(&place) if until <= context.elapsed() => self.close(place, context),
                Some(_) => self.orphans.push((session, until)),
                None => {}
            }
        }
    }

    /// Asks the enclosure to give back what hosts want aborted.
    fn abort(&mut self, context: &mut Context<'_>) {
        for (session, tag) in std::mem::take(&mut self.to_abort) {
            if let Some(&place) = self.by_session.get(&session)
                && !self.works.give_up(place, tag, context)
            {
                self.tried.push((session, tag));
            }
        }
    }

    /// The enclosure has given back what it could.
    fn tell_what_was_aborted(&mut self) {
        for (session, tag) in std::mem::take(&mut self.tried) {
            if let Some(&place) = self.by_session.get(&session)
                && let Some(peer) = self.peers.get_mut(place)
            {
                peer.session.abort_tried(&mut self.target, tag);
            }
        }
    }

    fn close(&mut self, place: usize, context: &mut Context<'_>) {
        let Some(mut peer) = self.peers.remove(place) else { return };
        peer.let_go(context.budget);
        tracing::debug!(place, reason = ?peer.effects.close, "connection closed");
        peer.session.closed(&mut self.target);
        self.by_session.remove(&peer.session.id());
        self.works.abandon(place, context);
        if let Err(error) = context.registry().deregister(peer.connection.socket.socket()) {
            tracing::debug!(%error, "a socket was not registered");
        }
    }

    /// Closes every connection that came through the port.
    fn close_port(&mut self, port: usize, context: &mut Context<'_>) {
        for place in self.peers.places() {
            if self.peers.get(place).is_some_and(|peer| peer.port == port) {
                self.close(place, context);
            }
        }
    }
}

impl FrontEnd for NvmeTcp {
    fn name(&self) -> String {
        let places: Vec<String> = self.addresses().map(|address| address.to_string()).collect();
        format!("NVMe/TCP on {}", places.join(", "))
    }

    fn start(&mut self, context: &mut Context<'_>) -> io::Result<()> {
        self.subsystems.start(&mut self.target, context);
        self.ports.register(context)
    }

    fn ready(&mut self, key: usize, what: Readiness, context: &mut Context<'_>) {
        let Some(place) = key.checked_sub(self.ports.len()) else { return self.accept(key, context) };
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
        self.now = time_of(context.elapsed());
        self.works.follow_up(context);
        let works = &self.works;
        let is_at_work = |volume| works.any_abandoned() || works.any_reset_of(volume);
        self.subsystems.restore(&mut self.target, is_at_work, context);
        self.subsystems.turn(&mut self.target, context);
        for port in 0..self.ports.len() {
            if self.ports.acceptor(port).take_due(context.elapsed()) {
                self.accept(port, context);
            }
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
        let mut has_more = self.subsystems.ask_drives(&mut self.target, context);
        self.close_orphans(context);
        if self.target.deadline().is_some_and(|deadline| deadline <= self.now) {
            self.target.expire(self.now);
        }
        let subsystems = &self.subsystems;
        self.shutdowns.begin(&mut self.target, |subsystem| subsystems.volume(subsystem), context);
        has_more |= self.subsystems.follow_reservations(&mut self.target, context);
        self.wake();
        self.abort(context);
        has_more
            || !self.readable.is_empty()
            || self.works.has_to_go_on()
            || self.ports.waits_at_once(context.elapsed())
    }

    fn answered(&mut self, answered: Answered<'_>) {
        if self.shutdowns.answered(&mut self.target, answered.tag) {
            return;
        }
        if let Some(done) = self.works.answered(&answered) {
            self.complete(done);
        }
    }

    fn claimed(&mut self, tag: u64) {
        self.works.claimed(tag);
    }

    fn controlled(&mut self, tag: u64, done: Result<(), Refused>) {
        self.subsystems.controlled(&mut self.target, tag, done);
    }

    fn erased(&mut self, tag: u64, done: Result<(), Refused>) {
        self.controlled(tag, done);
    }

    fn managed(&mut self, tag: u64, done: Result<u32, ManageError>) {
        self.subsystems.managed(&mut self.target, tag, done);
    }

    fn changed(&mut self, volume: VolumeId, context: &mut Context<'_>) {
        self.subsystems.changed(&mut self.target, volume, context);
    }

    fn send(&mut self, context: &mut Context<'_>) {
        while let Some(done) = self.works.take_over() {
            self.complete(done);
        }
        self.tell_what_was_aborted();
        self.wake();
        context.budget.give(self.works.take_ended_cost());
        Marked::look(
            self,
            |front| &mut front.dirty,
            |front, place| {
                // Answers free places of the queue: commands that waited may go on.
                front.begin_commands(place, context);
                let Some(peer) = front.peers.get_mut(place) else { return };
                // The last answer of a queue that its host gives back has just come, or was taken in in this turn.
                let is_live = peer.session.is_live();
                if std::mem::replace(&mut peer.was_live, is_live) && !is_live {
                    front.peers.set_deadline(place, context.elapsed() + context.limits().set_up);
                }
                let Some(peer) = front.peers.get_mut(place) else { return };
                if peer.send().is_break() {
                    return front.close(place, context);
                }
                peer.settle(context.budget);
                let is_closing = peer.effects.close.is_some();
                if is_closing && !std::mem::replace(&mut peer.is_closing, true) {
                    front.peers.set_deadline(place, context.elapsed() + context.limits().set_up);
                }
            },
        );
    }

    fn wake_at(&self) -> Option<Duration> {
        let deadline = self.target.deadline();
        let deadline = deadline.map(|deadline| Duration::from_nanos(deadline.since(SimTime::ZERO).as_ps() / 1000));
        deadline.into_iter().chain(self.subsystems.wake_at()).min()
    }

    fn connections(&self) -> u32 {
        self.peers.len() as u32
    }

    fn error_entries(&self, volume: VolumeId) -> u64 {
        self.subsystems.of(volume).map_or(0, |subsystem| self.target.error_entries(subsystem))
    }

    fn gone(&mut self, volume: VolumeId, context: &mut Context<'_>) {
        let Some(subsystem) = self.subsystems.of(context.drive_volume(volume)) else { return };
        // Hosts of other drives hear first of what is theirs: a session that is woken below loses its connection.
        self.wake();
        self.subsystems.gone(&mut self.target, subsystem, context);
        self.works.set_away(volume, true);
        // A drive without power says nothing more.
        self.wakes.extend(self.target.take_wakes());
        for session in std::mem::take(&mut self.wakes) {
            if let Some(&place) = self.by_session.get(&session) {
                self.close(place, context);
            }
        }
        let until = context.elapsed() + ORPHAN_MAX;
        self.orphans.extend(self.target.take_orphans().map(|session| (session, until)));
    }

    fn back(&mut self, volume: VolumeId, context: &mut Context<'_>) {
        let Some(subsystem) = self.subsystems.of(context.drive_volume(volume)) else { return };
        self.works.set_away(volume, false);
        self.subsystems.back(&mut self.target, subsystem);
    }

    fn ports(&self) -> Vec<SocketAddr> {
        self.addresses().collect()
    }

    fn port(&mut self, address: SocketAddr, up: bool, context: &mut Context<'_>) -> io::Result<bool> {
        let Some(port) = self.ports.find(address) else { return Ok(false) };
        if up {
            self.ports.reopen(port, context)?;
        } else {
            self.ports.close(port, context);
            self.close_port(port, context);
        }
        Ok(true)
    }
}
