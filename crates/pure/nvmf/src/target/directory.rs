//! State that all connections share: subsystems, controllers, and news for each of them.

use super::answer::Answer;
use super::attachment::{Attach, NewNamespace};
use super::config::{Abilities, ConfigError, Figures, Hosts, Management, Namespace, Subsystem, TargetConfig};
use super::controller::{Class, Controller};
use super::edition::Epochs;
use super::effects::{Command, SessionId, Shutdown};
use super::erasure::{Erasure, ErasureKind};
use super::fence::Fences;
use super::insides::Insides;
use super::keeping::Keeping;
use super::reservation::Reservations;
use super::zones::{AllZones, zones_of};
use flashyard_nvme::Status;
use flashyard_nvme::event::AsyncEvent;
use flashyard_nvme::feature::RetirementRule;
use flashyard_nvme::log::{AnaState, SelfTestLog, SmartLog};
use flashyard_nvme::protection::Metadata;
use flashyard_units::SimTime;
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// Request to a capacity-variant drive by Set Features; its answer waits for [`Target::settle`].
#[derive(Clone, Debug)]
pub struct Demand {
    /// Place of the subsystem in the configuration.
    pub subsystem: usize,
    /// The request itself.
    pub wish: Wish,
    /// Place and serial number of the controller, and the command.
    pub(super) controller: (usize, u64),
    pub(super) command_id: u16,
}

/// One thing that can be asked of a drive; the first two of a capacity-variant one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wish {
    /// To be in the degraded mode, or not.
    Degraded(bool),
    /// To retire superblocks by this rule.
    Retirement(RetirementRule),
    /// To let all data go and have blocks of 2^`block_log2` bytes with this metadata. It is settled at the end.
    Format {
        /// Namespace, or [`flashyard_nvme::NSID_ALL`].
        nsid: u32,
        /// Data of a block, one of those that the namespace announces.
        block_log2: u8,
        /// Metadata of a block.
        metadata: Metadata,
        /// Data must not be left anywhere.
        destroys: bool,
    },
    /// To erase all data wherever it is. It is settled once it has begun for good, and nothing but its end stops it.
    Sanitize {
        /// Dword 10 of the command.
        command: u32,
    },
    /// To leave the failure mode that a sanitize has left.
    LeaveFailure,
    /// To have a further namespace, which is attached to no controller. It is settled with its identifier.
    Create(NewNamespace),
    /// To have a namespace no more, or none of all. It is settled when their space is free.
    Delete {
        /// Namespace, or [`flashyard_nvme::NSID_ALL`].
        nsid: u32,
    },
    /// To keep it that controllers have a namespace, or have it no more; [`attach_controllers`](super::attach_controllers) follows where that is done.
    Attach(Attach),
    /// To test itself, or to end the test that is under way. It is settled once that has begun, or ended.
    SelfTest {
        /// Namespace that is tested, [`flashyard_nvme::NSID_ALL`], or zero for none.
        nsid: u32,
        /// [`SelfTestLog::SHORT`], [`SelfTestLog::EXTENDED`] or [`SelfTestLog::ABORT`].
        code: u8,
    },
}

/// The state that all connections of a target share.
#[derive(Debug)]
pub struct Target {
    pub(super) config: TargetConfig,
    pub(super) figures: Vec<Figures>,
    /// Entries that error logs have had, by subsystem.
    pub(super) errors: Vec<u64>,
    /// By controller identifier less one.
    pub(super) controllers: Vec<Option<Controller>>,
    /// State by subsystem, port and group; absent ones are optimized.
    ana: BTreeMap<(usize, u16, u32), (AnaState, u64)>,
    /// Changes of the discovery log.
    pub(super) generation: u64,
    /// Changes of ANA states.
    pub(super) ana_changes: u64,
    sessions: u64,
    nonces: u64,
    pub(super) wake: Vec<SessionId>,
    orphans: Vec<SessionId>,
    /// By subsystem: it does not answer.
    away: Vec<bool>,
    demands: Vec<Demand>,
    looks: Vec<usize>,
    /// By subsystem and namespace; absent ones are empty.
    pub(super) reservations: BTreeMap<(usize, u32), Reservations>,
    /// Of namespaces that have zones.
    pub(super) zones: AllZones,
    /// Subsystems whose reservations have changed.
    pub(super) reserved: Vec<usize>,
    /// Commands of preempted hosts that others wait for.
    pub(super) fences: Fences,
    /// Changes of reservations that wait for being kept.
    pub(super) keeping: Keeping,
    /// Controllers that are to be shut down.
    pub(super) shutdowns: Vec<Shutdown>,
    /// By subsystem: its self-tests.
    pub(super) self_tests: Vec<SelfTestLog>,
    /// Of subsystems that are drives: their insides in words.
    pub(super) insides: BTreeMap<usize, Insides>,
    /// Blocks that hold something, of namespaces of subsystems that have several.
    pub(super) used: BTreeMap<(usize, u32), u64>,
    /// Erasures that namespaces have seen.
    pub(super) epochs: Epochs,
}

impl Target {
    /// A target without connections.
    ///
    /// Errors: the configuration contradicts itself.
    pub fn new(config: TargetConfig) -> Result<Self, ConfigError> {
        config.check()?;
        let subsystems = config.subsystems.iter().enumerate();
        let zones = subsystems
            .flat_map(|(place, it)| zones_of(place, &it.namespaces, &mut AllZones::new()).collect::<Vec<_>>());
        Ok(Self {
            zones: zones.collect(),
            figures: config.subsystems.iter().map(Figures::of).collect(),
            errors: vec![0; config.subsystems.len()],
            away: vec![false; config.subsystems.len()],
            self_tests: vec![SelfTestLog::NEVER; config.subsystems.len()],
            insides: BTreeMap::new(),
            config,
            controllers: Vec::new(),
            ana: BTreeMap::new(),
            generation: 1,
            ana_changes: 0,
            sessions: 0,
            nonces: 0,
            wake: Vec::new(),
            orphans: Vec::new(),
            demands: Vec::new(),
            looks: Vec::new(),
            reservations: BTreeMap::new(),
            used: BTreeMap::new(),
            epochs: Epochs::default(),
            reserved: Vec::new(),
            fences: Fences::default(),
            keeping: Keeping::default(),
            shutdowns: Vec::new(),
        })
    }

    /// The configuration in force.
    pub fn config(&self) -> &TargetConfig {
        &self.config
    }

    /// Takes `subsystem` (its place in the configuration) away, or brings it back. Its controllers end, and hosts that
    /// connect meanwhile get a status that asks them to try again later.
    pub fn set_away(&mut self, subsystem: usize, away: bool) {
        self.away[subsystem] = away;
        for index in 0..self.controllers.len() {
            let of_it = |controller: &Controller| controller.subsystem == Some(subsystem);
            if away && self.controllers[index].as_ref().is_some_and(of_it) {
                self.lose_controller(index);
            }
        }
    }

    pub(super) fn is_away(&self, subsystem: usize) -> bool {
        self.away[subsystem]
    }

    /// Sets what controllers of `subsystem` (its place in the configuration) report from now on; hosts hear of what has become of
    /// an erasure, and of warnings about health that are new.
    pub fn set_figures(&mut self, subsystem: usize, figures: Figures) {
        let before = std::mem::replace(&mut self.figures[subsystem], figures);
        announce_erasure(self, subsystem, before.erasure);
        warn(self, subsystem, &before.smart);
    }

    /// Entries that the error logs of all controllers of `subsystem` (its place in the configuration) have had so far.
    pub fn error_entries(&self, subsystem: usize) -> u64 {
        self.errors[subsystem]
    }

    /// Replaces the namespaces of `subsystem`; connected hosts that have them are notified. One of another serial number is
    /// another namespace: nothing of the reservations of the old one is left.
    ///
    /// Errors: the namespaces contradict the specification, and the old ones stay.
    pub fn set_namespaces(&mut self, subsystem: usize, namespaces: Vec<Namespace>) -> Result<(), ConfigError> {
        set_namespaces_by(self, subsystem, namespaces, None)
    }

    /// Replaces the hosts that may connect to `subsystem`; hosts that read the discovery log are notified. Existing
    /// controllers stay.
    pub fn set_hosts(&mut self, subsystem: usize, hosts: Hosts) {
        self.generation += 1;
        self.config.subsystems[subsystem].hosts = hosts;
        self.raise(AsyncEvent::Discovery, |controller| controller.subsystem.is_none());
    }

    /// Requests of hosts to capacity-variant drives since the last call. Each is to be settled.
    pub fn take_demands(&mut self) -> Vec<Demand> {
        std::mem::take(&mut self.demands)
    }

    /// Places of the subsystems whose page of capacity was read since the last call: if their figures are set again
    /// now, a host that reads the page twice sees the current state.
    pub fn take_looks(&mut self) -> Vec<usize> {
        std::mem::take(&mut self.looks)
    }

    /// Whether [`Target::take_looks`] would return anything.
    pub fn has_looks(&self) -> bool {
        !self.looks.is_empty()
    }

    pub(super) fn look(&mut self, subsystem: usize) {
        if !self.looks.contains(&subsystem) {
            self.looks.push(subsystem);
        }
    }

    pub(super) fn demand(&mut self, demand: Demand) {
        self.demands.push(demand);
    }

    /// The drive has done what was asked for, or has not: its host hears of it, if it is still there.
    pub fn settle(&mut self, demand: &Demand, status: Status) {
        settle_with(self, demand, status, 0);
    }

    /// How well `port` reaches `group` of `subsystem` from now on; connected hosts are notified.
    pub fn set_ana(&mut self, subsystem: usize, port: u16, group: u32, state: AnaState) {
        self.ana_changes += 1;
        self.ana.insert((subsystem, port, group), (state, self.ana_changes));
        self.raise(AsyncEvent::Ana, |controller| controller.subsystem == Some(subsystem) && controller.port == port);
    }

    /// How well `port` reaches `group` of `subsystem`, and the change that made it so.
    pub(super) fn ana(&self, subsystem: usize, port: u16, group: u32) -> (AnaState, u64) {
        self.ana.get(&(subsystem, port, group)).copied().unwrap_or((AnaState::Optimized, 0))
    }

    pub(super) fn raise(&mut self, event: AsyncEvent, concerns: impl Fn(&Controller) -> bool) {
        for controller in self.controllers.iter_mut().flatten().filter(|controller| concerns(controller)) {
            if controller.raise(event) {
                self.wake.extend(controller.admin_session);
            }
        }
    }

    /// When [`Target::expire`] has to be called next at the latest; `None` while no host has a keep-alive timeout, or sets
    /// a controller up.
    pub fn deadline(&self) -> Option<SimTime> {
        self.controllers.iter().flatten().filter_map(Controller::deadline).min()
    }

    /// Ends controllers whose host has been silent for longer than it promised, or has not set them up in time.
    pub fn expire(&mut self, now: SimTime) {
        for index in 0..self.controllers.len() {
            let deadline = self.controllers[index].as_ref().and_then(Controller::deadline);
            if deadline.is_some_and(|deadline| deadline <= now) {
                self.end_controller(index);
            }
        }
    }

    /// Connections whose [`super::Session::poll`] has to be called: something happened that they have to send, or they
    /// are to be closed. Each call returns those since the last one; names of connections that are gone mean nothing.
    pub fn take_wakes(&mut self) -> impl Iterator<Item = SessionId> + '_ {
        self.wake.drain(..)
    }

    /// Whether [`Target::take_wakes`] would return anything.
    pub fn has_wakes(&self) -> bool {
        !self.wake.is_empty()
    }

    /// The connection has something to hear of.
    pub(super) fn wake(&mut self, session: SessionId) {
        self.wake.push(session);
    }

    /// The controller at a place, if it is still the one with this serial number.
    pub(super) fn controller(&mut self, (index, serial): (usize, u64)) -> Option<&mut Controller> {
        self.controllers.get_mut(index)?.as_mut().filter(|controller| controller.serial == serial)
    }

    pub(super) fn new_session(&mut self) -> SessionId {
        self.sessions += 1;
        SessionId(self.sessions)
    }

    /// A number that is never returned twice.
    pub(super) fn nonce(&mut self) -> u64 {
        self.nonces += 1;
        self.nonces
    }

    /// Puts `controller` under a free identifier, or under `wanted`. `None` where there is none.
    ///
    /// Hosts that have proved nothing keep no other host out: beyond their limits, the longest silent one ends.
    pub(super) fn add_controller(&mut self, wanted: Option<u16>, mut controller: Controller) -> Option<usize> {
        let limit = usize::from(self.config.limits.controllers);
        if controller.class() != Class::Discovery && self.count(Class::Settled) >= limit {
            return None;
        }
        self.make_room(&controller);
        let index = match wanted {
            Some(id) => usize::from(id).checked_sub(1).filter(|index| *index < limit)?,
            None => self.controllers.iter().position(Option::is_none).unwrap_or(self.controllers.len()),
        };
        if self.controllers.get(index).is_some_and(Option::is_some) {
            return None;
        }
        while self.controllers.len() <= index {
            self.controllers.push(None);
        }
        controller.id = index as u16 + 1;
        self.controllers[index] = Some(controller);
        Some(index)
    }

    fn count(&self, class: Class) -> usize {
        self.controllers.iter().flatten().filter(|controller| controller.class() == class).count()
    }

    /// Ends a controller of the class of `newcomer` if there are as many as may be: the longest silent of those from
    /// the same address, or else of all.
    fn make_room(&mut self, newcomer: &Controller) {
        let class = newcomer.class();
        let limits = &self.config.limits;
        let limit = match class {
            Class::Discovery => limits.discovery_controllers,
            Class::Pending => limits.pending_controllers,
            Class::Settled => return,
        };
        if self.count(class) < usize::from(limit) {
            return;
        }
        let present = self.controllers.iter().enumerate().filter_map(|(index, there)| Some((index, there.as_ref()?)));
        let victim = present.filter(|(_, controller)| controller.class() == class).max_by_key(|(_, there)| {
            (there.host_address == newcomer.host_address, Reverse((there.heard, there.serial)))
        });
        if let Some((index, _)) = victim {
            self.end_controller(index);
        }
    }

    /// Removes a controller; its connections are woken and find it gone.
    pub(super) fn end_controller(&mut self, index: usize) {
        if let Some(controller) = self.controllers.get_mut(index).and_then(Option::take) {
            self.wake.extend(controller.admin_session);
            self.wake.extend(controller.io_sessions.iter().map(|(_, session)| *session));
        }
    }

    /// Ends a controller whose drive is gone. A host that is at work with it hears of that by the end of its
    /// connections. A host that is still setting it up does not listen to that, and would wait a minute for the answer
    /// to its last command (Linux does): its connections get an answer first.
    fn lose_controller(&mut self, index: usize) {
        let is_at_work = self.controllers[index].as_ref().is_some_and(|controller| controller.is_at_work);
        if is_at_work {
            return self.end_controller(index);
        }
        if let Some(controller) = self.controllers[index].take() {
            self.orphans.extend(controller.admin_session);
            self.orphans.extend(controller.io_sessions.iter().map(|(_, session)| *session));
        }
    }

    /// Connections that have lost their controller while their host was setting it up, since the last call. Each answers
    /// one more command, with a failure, and is then to be closed; the owner closes those that hear of none.
    pub fn take_orphans(&mut self) -> impl Iterator<Item = SessionId> + '_ {
        self.orphans.drain(..)
    }

    /// The subsystem named `nqn` if `port` leads to it, with its place.
    pub(super) fn subsystem(&self, nqn: &str, port: u16) -> Option<(usize, &Subsystem)> {
        let found = self.config.subsystems.iter().enumerate().find(|(_, subsystem)| subsystem.nqn == nqn);
        found.filter(|(_, subsystem)| subsystem.ports.is_empty() || subsystem.ports.contains(&port))
    }
}

/// A controller that is reset loses its I/O queues, and whatever was asked of it is not answered: their connections are woken, and find
/// the serial number of their controller gone. Returns the new one. Source: \[P\] NVM Express Base 2.0, section 3.7.2: a
/// controller level reset stops outstanding commands and deletes all I/O queues.
pub(super) fn reset_queues(target: &mut Target, index: usize) -> u64 {
    let serial = target.nonce();
    if let Some(controller) = target.controllers.get_mut(index).and_then(Option::as_mut) {
        controller.serial = serial;
        let ended = controller.io_sessions.drain(..).map(|(_, session)| session);
        controller.resetting.extend(ended);
        target.wake.extend(&controller.resetting);
    }
    serial
}

/// The connection of an I/O queue has gone.
pub(super) fn leave_queue(target: &mut Target, index: usize, id: SessionId) {
    if let Some(controller) = target.controllers.get_mut(index).and_then(Option::as_mut) {
        controller.io_sessions.retain(|(_, session)| *session != id);
        controller.resetting.retain(|session| *session != id);
    }
}

/// Replaces the namespaces of `subsystem`, as a host may have asked for, which is not notified: [`Target::set_namespaces`].
///
/// Errors: as there.
pub fn set_namespaces_by(
    target: &mut Target,
    subsystem: usize,
    namespaces: Vec<Namespace>,
    by: Option<&Demand>,
) -> Result<(), ConfigError> {
    let before = std::mem::replace(&mut target.config.subsystems[subsystem].namespaces, namespaces);
    if let Err(error) = target.config.check() {
        target.config.subsystems[subsystem].namespaces = before;
        return Err(error);
    }
    let after = &target.config.subsystems[subsystem].namespaces;
    let changed: Vec<u32> = before
        .iter()
        .filter(|namespace| !after.contains(namespace))
        .chain(after.iter().filter(|namespace| !before.contains(namespace)))
        .map(|namespace| namespace.nsid)
        .collect();
    let missing = |from: &[Namespace], of: &[Namespace]| -> Vec<u32> {
        let is_there = |one: &Namespace| of.iter().any(|it| (it.nsid, it.serial) == (one.nsid, one.serial));
        from.iter().filter(|one| !is_there(one)).map(|one| one.nsid).collect()
    };
    let (added, gone) = (missing(after, &before), missing(&before, after));
    target.reservations.retain(|&(place, nsid), _| place != subsystem || !gone.contains(&nsid));
    target.used.retain(|&(place, nsid), _| place != subsystem || !gone.contains(&nsid));
    target.epochs.forget(|(place, nsid)| place == subsystem && gone.contains(&nsid));
    for now in after {
        let same = |it: &&Namespace| (it.nsid, it.serial) == (now.nsid, now.serial);
        let was = before.iter().find(same).map(Namespace::blocks_shape);
        if was.is_some_and(|was| was != now.blocks_shape()) {
            target.epochs.reshape((subsystem, now.nsid));
        }
    }
    let mut zones = target.zones.split_off(&(subsystem, 0));
    let mut later = zones.split_off(&(subsystem + 1, 0));
    target.zones.extend(zones_of(subsystem, after, &mut zones));
    target.zones.append(&mut later);
    // Controllers hear of namespaces that they had, or have now.
    let by = by.map(|demand| demand.controller);
    let had = concerned(target, subsystem, &changed);
    follow_namespaces(target, subsystem, &added, &gone);
    let has = concerned(target, subsystem, &changed);
    for (index, concerns) in had.into_iter().zip(has).map(|(had, has)| (had.0, [had.1, has.1].concat())) {
        let Some(controller) = target.controllers[index].as_mut() else { continue };
        if !concerns.is_empty() && by != Some((index, controller.serial)) {
            controller.note_changed(&concerns);
            if controller.raise(AsyncEvent::Namespaces) {
                target.wake.extend(controller.admin_session);
            }
        }
    }
    Ok(())
}

/// Places of the controllers of a subsystem, and those of these namespaces that are attached to them.
fn concerned(target: &Target, subsystem: usize, namespaces: &[u32]) -> Vec<(usize, Vec<u32>)> {
    let controllers = target.controllers.iter().enumerate().filter_map(|(index, there)| Some((index, there.as_ref()?)));
    let of_it = controllers.filter(|(_, controller)| controller.subsystem == Some(subsystem));
    let attached = |it: &Controller| namespaces.iter().copied().filter(|&nsid| it.has_namespace(nsid)).collect();
    of_it.map(|(index, it)| (index, attached(it))).collect()
}

/// The namespaces that a controller of `host` begins with.
pub(super) fn first_namespaces(target: &Target, subsystem: usize, host: &str) -> Vec<u32> {
    let of_it = |controller: &&Controller| controller.subsystem == Some(subsystem);
    let is_free = |namespace: &Namespace| {
        !namespace.is_private
            || !target.controllers.iter().flatten().filter(of_it).any(|it| it.has_namespace(namespace.nsid))
    };
    let namespaces = target.config.subsystems[subsystem].namespaces.iter();
    let begins = namespaces.filter(|namespace| namespace.attachment.includes(host) && is_free(namespace));
    begins.map(|namespace| namespace.nsid).collect()
}

/// Namespaces of a subsystem have come (`added`) and gone (`gone`): controllers get those that their hosts have, and lose the
/// others.
fn follow_namespaces(target: &mut Target, subsystem: usize, added: &[u32], gone: &[u32]) {
    for index in 0..target.controllers.len() {
        let Some(controller) = target.controllers[index].as_mut().filter(|it| it.subsystem == Some(subsystem)) else {
            continue;
        };
        for &nsid in gone {
            controller.set_namespace(nsid, false);
        }
        let host = controller.host_nqn.clone();
        let first = first_namespaces(target, subsystem, &host);
        let Some(controller) = target.controllers[index].as_mut() else { continue };
        for &nsid in added.iter().filter(|nsid| first.contains(nsid)) {
            controller.set_namespace(nsid, true);
        }
    }
}

/// Sets how many blocks of a namespace hold something, where its subsystem has several.
pub fn set_used_blocks(target: &mut Target, subsystem: usize, nsid: u32, used_blocks: u64) {
    target.used.insert((subsystem, nsid), used_blocks);
}

/// Sets how hosts may create and delete namespaces of `subsystem`.
pub fn set_management(target: &mut Target, subsystem: usize, management: Option<Management>) {
    target.config.subsystems[subsystem].management = management;
}

/// Sets what the backend of `subsystem` can do.
pub fn set_abilities(target: &mut Target, subsystem: usize, abilities: Abilities) {
    target.config.subsystems[subsystem].abilities = abilities;
}

/// The status of a command that has waited for the backend while what it is about has gone: its namespace, the blocks that this had, or
/// their data.
pub fn superseded(target: &Target, command: &Command) -> Option<Status> {
    let &Command { subsystem, nsid, edition, .. } = command;
    let namespace = target.config.subsystems[subsystem].namespace(nsid);
    if namespace.is_none_or(|namespace| namespace.serial != edition.serial) {
        return Some(Status::INVALID_NAMESPACE.do_not_retry());
    }
    let is_erasing = target.figures[subsystem].erasure.refusal(nsid);
    is_erasing.or_else(|| target.epochs.refusal((subsystem, nsid), edition.epoch))
}

/// The drive has done what was asked for, with this result: [`Target::settle`].
pub fn settle_with(target: &mut Target, demand: &Demand, status: Status, result: u64) {
    if let Some(controller) = target.controller(demand.controller) {
        controller.answers.push_back((demand.command_id, Answer { status, result }));
        let session = controller.admin_session;
        target.wake.extend(session);
    }
}

/// Tells hosts of `subsystem` of warnings about its health that are new since `before`.
fn warn(target: &mut Target, subsystem: usize, before: &SmartLog) {
    let smart = &target.figures[subsystem].smart;
    let of_it = |controller: &&mut Controller| controller.subsystem == Some(subsystem);
    for controller in target.controllers.iter_mut().flatten().filter(of_it) {
        if controller.warn(controller.warnings(smart) & !controller.warnings(before)) {
            target.wake.extend(controller.admin_session);
        }
    }
}

/// The erasure that controllers of `subsystem` (its place in the configuration) report at present.
pub fn erasure_of(target: &Target, subsystem: usize) -> Erasure {
    target.figures[subsystem].erasure
}

/// Notes an erasure of `subsystem` that has begun since `before`, and tells its hosts of its end, and of a format's beginning.
pub(super) fn announce_erasure(target: &mut Target, subsystem: usize, before: Erasure) {
    let erasure = target.figures[subsystem].erasure;
    if before == erasure {
        return;
    }
    let begun = |erasure: &Erasure| erasure.under_way.map(|(kind, _)| (kind, erasure.nsid));
    if let Some((kind, _)) = begun(&erasure).filter(|_| begun(&before) != begun(&erasure)) {
        let namespaces = target.config.subsystems[subsystem].namespaces.iter().map(|one| one.nsid);
        for nsid in namespaces.filter(|&nsid| kind == ErasureKind::Sanitize || erasure.concerns(nsid)) {
            target.epochs.erase((subsystem, nsid), kind);
        }
    }
    let is = |erasure: &Erasure, wanted: ErasureKind| erasure.under_way.is_some_and(|(kind, _)| kind == wanted);
    if is(&before, ErasureKind::Sanitize) && !is(&erasure, ErasureKind::Sanitize) {
        target.raise(AsyncEvent::Sanitized, |controller| controller.subsystem == Some(subsystem));
    }
    if is(&before, ErasureKind::Format) != is(&erasure, ErasureKind::Format) {
        let formatted = if is(&before, ErasureKind::Format) { before } else { erasure };
        let all = target.config.subsystems[subsystem].namespaces.iter().map(|one| one.nsid);
        let changed: Vec<u32> = all.filter(|&nsid| formatted.concerns(nsid)).collect();
        let has =
            |it: &Controller| it.subsystem == Some(subsystem) && changed.iter().any(|&nsid| it.has_namespace(nsid));
        for controller in target.controllers.iter_mut().flatten().filter(|it| has(it)) {
            controller.note_changed(&changed);
        }
        target.raise(AsyncEvent::Namespaces, has);
    }
}

impl Figures {
    /// Figures of a subsystem that has not worked yet.
    fn of(subsystem: &Subsystem) -> Self {
        let capacity = subsystem.namespaces.iter().map(|namespace| namespace.blocks << namespace.block_log2).sum();
        let mut figures = Self { capacity_bytes: capacity, ..Self::default() };
        // 25 degrees Celsius and all of the spare.
        figures.smart.temperature_k.set(298);
        figures.smart.spare_percent = 100;
        figures.smart.spare_threshold_percent = 10;
        figures
    }
}
