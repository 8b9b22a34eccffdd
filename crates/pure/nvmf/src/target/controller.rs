//! State of one controller: configuration, features, events.

use super::answer::Answer;
use super::effects::SessionId;
use super::insides::Asked;
use super::notices::Notices;
use flashyard_nvme::event::AsyncEvent;
use flashyard_nvme::feature::TemperatureThreshold;
use flashyard_nvme::log::{ErrorEntry, SmartLog};
use flashyard_nvme::property::{Configuration, ControllerStatus, Shutdown, ShutdownStatus};
use flashyard_units::{SimSpan, SimTime};
use std::collections::VecDeque;
use std::net::IpAddr;

/// Entries that the error log keeps.
pub(super) const ERROR_ENTRIES: usize = 64;

/// Time that a host gets beyond its timeout: one granularity of the keep-alive timer.
const KEEP_ALIVE_GRACE: SimSpan = SimSpan::from_ms(100);

/// Time from Connect within which a host proves who it is and enables its controller. [A] Linux takes milliseconds
const SETUP_TIME: SimSpan = SimSpan::from_ms(10_000);

/// Silence that ends a controller of discovery without a timeout of its host. Source: NVM Express Base 2.0, section
/// 3.1.2.3: two minutes.
const DISCOVERY_SILENCE: SimSpan = SimSpan::from_ms(120_000);

/// Which limit a controller counts to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Class {
    /// Discovery: nothing is proved.
    Discovery,
    /// The host has not proved who it is, or not enabled the controller.
    Pending,
    /// The host works with it.
    Settled,
}

/// The controller that a host has connected to.
#[derive(Debug)]
pub(super) struct Controller {
    pub(super) id: u16,
    /// Tells this controller from a later one under the same identifier.
    pub(super) serial: u64,
    /// Place of the subsystem; `None` is discovery.
    pub(super) subsystem: Option<usize>,
    pub(super) port: u16,
    pub(super) host_nqn: String,
    pub(super) host_id: [u8; 16],
    /// Where the host is, if that is known.
    pub(super) host_address: Option<IpAddr>,
    /// When its host must have enabled it; `None` once it has.
    set_up_by: Option<SimTime>,
    pub(super) admin_session: Option<SessionId>,
    /// Queue identifiers and their connections.
    pub(super) io_sessions: Vec<(u16, SessionId)>,
    /// Connections of queues that a reset has deleted, until they have gone with their commands.
    pub(super) resetting: Vec<SessionId>,
    pub(super) configuration: Configuration,
    pub(super) status: ControllerStatus,
    pub(super) features: Features,
    pub(super) keep_alive: SimSpan,
    pub(super) heard: SimTime,
    /// Its host has done with setting it up: it reads, writes or waits for events.
    pub(super) is_at_work: bool,
    /// Command identifiers of Asynchronous Event Requests.
    pub(super) event_requests: VecDeque<u16>,
    pub(super) aborts: Vec<Abort>,
    /// Answers to admin commands that had to wait, by command identifier.
    pub(super) answers: VecDeque<(u16, Answer)>,
    events: VecDeque<AsyncEvent>,
    /// Events that were reported and whose log page has not been read.
    reported: Vec<AsyncEvent>,
    changed: Vec<u32>,
    pub(super) notices: Notices,
    pub(super) errors: VecDeque<ErrorEntry>,
    pub(super) error_count: u64,
    pub(super) telemetry: Asked,
    /// Namespaces that are attached to it, in ascending order.
    namespaces: Vec<u32>,
}

/// Values of features.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Features {
    pub(super) arbitration: u32,
    pub(super) power: u32,
    pub(super) temperature_over: u16,
    pub(super) temperature_under: u16,
    pub(super) error_recovery: u32,
    pub(super) write_cache: bool,
    pub(super) write_atomicity: u32,
    pub(super) async_events: u32,
    pub(super) timestamp_ms: u64,
    pub(super) timestamp_set: SimTime,
    pub(super) host_behavior: u8,
    /// I/O queues that the host was granted; `None` before it has asked, and then it may have as many as there are.
    pub(super) queues: Option<u16>,
}

impl Features {
    /// Values after a reset.
    pub(super) const DEFAULT: Self = Self {
        arbitration: 0,
        power: 0,
        // 70 degrees Celsius.
        temperature_over: 343,
        temperature_under: 0,
        error_recovery: 0,
        write_cache: true,
        write_atomicity: 0,
        async_events: 0,
        timestamp_ms: 0,
        timestamp_set: SimTime::ZERO,
        host_behavior: 0,
        queues: None,
    };

    /// Sets one of the thresholds of the composite temperature.
    pub(super) fn set_temperature(&mut self, threshold: TemperatureThreshold) {
        let of_type = if threshold.is_lower { &mut self.temperature_under } else { &mut self.temperature_over };
        *of_type = threshold.kelvin;
    }

    /// That threshold in kelvin.
    pub(super) fn temperature(&self, is_lower: bool) -> u32 {
        u32::from(if is_lower { self.temperature_under } else { self.temperature_over })
    }
}

/// An Abort command that is not answered.
#[derive(Clone, Copy, Debug)]
pub(super) struct Abort {
    /// Identifier of the Abort command itself.
    pub(super) command_id: u16,
    /// The connection whose command it is about, and that command.
    pub(super) session: SessionId,
    pub(super) victim: u16,
    /// Whether that connection has heard of it.
    pub(super) is_heard: bool,
}

/// Work for the caller that a configuration has begun.
pub(super) struct Configured {
    pub(super) is_reset: bool,
    pub(super) shuts_down: bool,
}

impl Controller {
    pub(super) fn new(
        subsystem: Option<usize>,
        port: u16,
        host_nqn: &str,
        host_id: [u8; 16],
        session: SessionId,
        now: SimTime,
    ) -> Self {
        Self {
            id: 0,
            serial: 0,
            subsystem,
            port,
            host_nqn: host_nqn.to_owned(),
            host_id,
            host_address: None,
            set_up_by: Some(now.saturating_add(SETUP_TIME)),
            admin_session: Some(session),
            io_sessions: Vec::new(),
            resetting: Vec::new(),
            configuration: Configuration::default(),
            status: ControllerStatus::default(),
            features: Features::DEFAULT,
            keep_alive: SimSpan::ZERO,
            heard: now,
            is_at_work: false,
            event_requests: VecDeque::new(),
            aborts: Vec::new(),
            answers: VecDeque::new(),
            events: VecDeque::new(),
            reported: Vec::new(),
            changed: Vec::new(),
            notices: Notices::default(),
            errors: VecDeque::new(),
            error_count: 0,
            telemetry: Asked::default(),
            namespaces: Vec::new(),
        }
    }

    /// When the controller ends unless its host is heard of.
    pub(super) fn deadline(&self) -> Option<SimTime> {
        let limit = match (self.keep_alive, self.subsystem) {
            (SimSpan::ZERO, Some(_)) => return self.set_up_by,
            (SimSpan::ZERO, None) => DISCOVERY_SILENCE,
            (span, _) => SimSpan::from_ps(span.as_ps().saturating_add(KEEP_ALIVE_GRACE.as_ps())),
        };
        let silent = self.heard.saturating_add(limit);
        Some(self.set_up_by.map_or(silent, |by| by.min(silent)))
    }

    /// Which limit it counts to.
    pub(super) fn class(&self) -> Class {
        match (self.subsystem, self.set_up_by) {
            (None, _) => Class::Discovery,
            (Some(_), Some(_)) => Class::Pending,
            (Some(_), None) => Class::Settled,
        }
    }

    /// The host sets the configuration; returns whether that resets the controller, whose queues the caller then ends, and whether it
    /// shuts it down, which the caller hands on. Enabling takes no time.
    pub(super) fn configure(&mut self, bits: u32) -> Configured {
        let new = Configuration::decode(bits);
        let old = std::mem::replace(&mut self.configuration, new);
        if new.enable && !old.enable {
            // Over fabrics entries of 64 and 16 bytes are the only ones; zero is left by old hosts of discovery.
            let sizes_fit = matches!(new.sq_entry_size, 0 | 6) && matches!(new.cq_entry_size, 0 | 4);
            let is_supported = sizes_fit && new.memory_page_size == 0 && new.arbitration == 0;
            self.status = ControllerStatus { ready: is_supported, fatal: !is_supported, ..self.status };
            self.status.shutdown = ShutdownStatus::None;
            if is_supported {
                self.set_up_by = None;
            }
        }
        let is_reset = !new.enable && old.enable;
        if is_reset {
            self.reset();
        }
        let shuts_down = new.shutdown != Shutdown::None && old.shutdown == Shutdown::None;
        if shuts_down {
            // Discovery has nothing to make durable.
            let is_discovery = self.subsystem.is_none();
            self.status.shutdown = if is_discovery { ShutdownStatus::Complete } else { ShutdownStatus::Processing };
        } else if new.shutdown == Shutdown::None && old.shutdown != Shutdown::None {
            self.status.shutdown = ShutdownStatus::None;
        }
        Configured { is_reset, shuts_down }
    }

    /// The status as the host sees it: a reset is over, and the controller not ready any more, once no command of a deleted queue is
    /// under way. Source: \[P\] NVM Express Base 2.0, section 3.7.2.
    pub(super) fn reported_status(&self) -> ControllerStatus {
        ControllerStatus { ready: self.status.ready || !self.resetting.is_empty(), ..self.status }
    }

    fn reset(&mut self) {
        self.status = ControllerStatus::default();
        self.features = Features::DEFAULT;
        self.event_requests.clear();
        self.aborts.clear();
        self.answers.clear();
        self.events.clear();
        self.reported.clear();
        self.changed.clear();
        self.notices = Notices::default();
    }

    /// Gives it the namespaces that it begins with.
    pub(super) fn begin_with(&mut self, namespaces: Vec<u32>) {
        self.namespaces = namespaces;
    }

    /// Whether a namespace is attached to it.
    #[inline]
    pub(super) fn has_namespace(&self, nsid: u32) -> bool {
        self.namespaces.first() == Some(&nsid) || self.namespaces.binary_search(&nsid).is_ok()
    }

    /// Namespaces that are attached to it.
    pub(super) fn namespaces(&self) -> &[u32] {
        &self.namespaces
    }

    /// Attaches a namespace, or detaches it; returns whether that changes anything.
    pub(super) fn set_namespace(&mut self, nsid: u32, is_attached: bool) -> bool {
        match (self.namespaces.binary_search(&nsid), is_attached) {
            (Err(place), true) => self.namespaces.insert(place, nsid),
            (Ok(place), false) => drop(self.namespaces.remove(place)),
            _ => return false,
        }
        true
    }

    /// Whether a connection has the I/O queue.
    pub(super) fn has_queue(&self, queue: u16) -> bool {
        self.io_sessions.iter().any(|(taken, _)| *taken == queue)
    }

    /// Whether I/O commands and Asynchronous Event Requests are taken.
    pub(super) fn is_ready(&self) -> bool {
        self.status.ready
    }

    /// Whether the host has enabled all I/O command sets: it knows zoned namespaces then, and sees those that there are.
    pub(super) fn sees_zones(&self) -> bool {
        self.configuration.command_set == Configuration::ALL_COMMAND_SETS
    }

    /// Notes `event`, if the host wants it and does not know it yet. Whether there is something to send.
    pub(super) fn raise(&mut self, event: AsyncEvent) -> bool {
        let bit = event.enable_bit();
        let is_enabled = bit == 0 || self.features.async_events & bit != 0;
        is_enabled && self.note(event)
    }

    /// The warnings about health that a page of SMART has for its host: those of the drive, and one of a temperature that has reached a
    /// threshold which the host has set. Source: \[P\] NVM Express Base 2.0, figure 207 and section 5.27.1.3.
    pub(super) fn warnings(&self, smart: &SmartLog) -> u8 {
        let kelvin = smart.temperature_k.get();
        let (over, under) = (self.features.temperature_over, self.features.temperature_under);
        // Zero is no temperature.
        let is_outside = kelvin > 0 && (kelvin >= over || kelvin <= under);
        smart.critical_warning | if is_outside { SmartLog::WARNING_TEMPERATURE } else { 0 }
    }

    /// Notes an event for each of the warnings about health (bits of the SMART log) that the host wants to hear of. Whether there is
    /// something to send.
    ///
    /// Source: \[P\] NVM Express Base 2.0, sections 5.2 and 5.27.1.8: each warning has a bit of the feature, in the same place, and media
    /// that can only be read are an event of reliability.
    pub(super) fn warn(&mut self, warnings: u8) -> bool {
        let wanted = warnings & self.features.async_events as u8;
        let events = [
            (SmartLog::WARNING_SPARE, AsyncEvent::Spare),
            (SmartLog::WARNING_TEMPERATURE, AsyncEvent::Temperature),
            (SmartLog::WARNING_RELIABILITY | SmartLog::WARNING_READ_ONLY, AsyncEvent::Reliability),
        ];
        let noted = events.map(|(bits, event)| wanted & bits != 0 && self.note(event));
        noted.contains(&true)
    }

    fn note(&mut self, event: AsyncEvent) -> bool {
        if self.reported.contains(&event) || self.events.contains(&event) {
            return false;
        }
        self.events.push_back(event);
        !self.event_requests.is_empty()
    }

    /// The next event and the request that it completes.
    pub(super) fn next_event(&mut self) -> Option<(u16, AsyncEvent)> {
        if self.events.is_empty() {
            return None;
        }
        let request = self.event_requests.pop_front()?;
        let event = self.events.pop_front()?;
        self.reported.push(event);
        Some((request, event))
    }

    /// The host has read `page`: its events may be reported again.
    pub(super) fn page_was_read(&mut self, page: u8) {
        self.reported.retain(|event| event.page() != page);
    }

    /// Namespaces that changed.
    pub(super) fn note_changed(&mut self, namespaces: &[u32]) {
        for nsid in namespaces {
            if let Err(place) = self.changed.binary_search(nsid) {
                self.changed.insert(place, *nsid);
            }
        }
    }

    /// Namespaces that changed; with `forget` the list begins again.
    pub(super) fn changed(&mut self, forget: bool) -> Vec<u32> {
        if forget { std::mem::take(&mut self.changed) } else { self.changed.clone() }
    }

    /// Adds an entry to the error log, with the next number.
    pub(super) fn log_error(&mut self, mut entry: ErrorEntry) {
        self.error_count += 1;
        entry.count.set(self.error_count);
        if self.errors.len() == ERROR_ENTRIES {
            self.errors.pop_back();
        }
        self.errors.push_front(entry);
    }
}
