//! Answers to Set Features and Get Features.

use super::answer::Answer;
use super::config::Subsystem;
use super::controller::{Controller, Features};
use super::directory::{Demand, Target, Wish};
use super::reserve;
use super::session::Session;
use flashyard_nvme::admin::Select;
use flashyard_nvme::feature::{Queues, RetirementRule, Supported, TemperatureThreshold, id};
use flashyard_nvme::{NSID_ALL, Status};
use flashyard_units::{SimSpan, SimTime};

/// Bytes of the host identifier that hosts over fabrics have.
const HOST_ID_BYTES: usize = 16;

/// Size of the structure of host behaviour.
const HOST_BEHAVIOR_BYTES: usize = 512;

impl Session {
    /// Sets a feature for as long as the controller exists.
    pub(super) fn set_feature(
        &self,
        target: &mut Target,
        now: SimTime,
        feature: u8,
        nsid: u32,
        values: [u32; 5],
        data: &[u8],
    ) -> Answer {
        let io_queues = u32::from(target.config.limits.io_queues);
        if !self.has_feature(target, feature) {
            return Answer::refusal(Status::INVALID_FIELD);
        }
        let place = self.controller(target).and_then(|controller| controller.subsystem);
        let smart = place.map(|place| target.figures[place].smart).unwrap_or_default();
        let Some(controller) = self.controller(target) else { return Answer::refusal(Status::CONTROLLER_PATHING) };
        if !matches!(nsid, 0 | NSID_ALL) && feature != id::ERROR_RECOVERY {
            return Answer::refusal(Status::FEATURE_NOT_NAMESPACE);
        }
        let value = values[0];
        let features = &mut controller.features;
        match feature {
            id::ARBITRATION => features.arbitration = value,
            id::POWER if value & 0x1F != 0 => return Answer::refusal(Status::INVALID_FIELD),
            id::POWER => features.power = value,
            id::TEMPERATURE => {
                let threshold = TemperatureThreshold::decode(value);
                let sensors = [TemperatureThreshold::COMPOSITE, TemperatureThreshold::ALL_SENSORS];
                let Some(threshold) = threshold.filter(|threshold| sensors.contains(&threshold.sensor)) else {
                    return Answer::refusal(Status::INVALID_FIELD);
                };
                let before = controller.warnings(&smart);
                controller.features.set_temperature(threshold);
                // The answer to this command takes events along.
                controller.warn(controller.warnings(&smart) & !before);
            }
            id::ERROR_RECOVERY => features.error_recovery = value,
            id::WRITE_CACHE => features.write_cache = value & 1 != 0,
            id::QUEUES => {
                let Some(asked) = Queues::decode(value) else { return Answer::refusal(Status::INVALID_FIELD) };
                // Source: NVM Express Base 2.0, section 5.27.1.5: not once there are queues.
                if !controller.io_sessions.is_empty() {
                    return Answer::refusal(Status::COMMAND_SEQUENCE);
                }
                let granted = asked.submission.min(asked.completion).min(io_queues);
                features.queues = Some(granted as u16);
                return Answer::result(u64::from(Queues { submission: granted, completion: granted }.encode()));
            }
            id::WRITE_ATOMICITY => features.write_atomicity = value & 1,
            id::ASYNC_EVENTS => {
                let before = std::mem::replace(&mut features.async_events, value);
                // A host that begins to want a warning hears of one that is there already. The answer to this command takes events along.
                controller.warn(controller.warnings(&smart) & !(before as u8));
            }
            id::TIMESTAMP => {
                let Some(bytes) = data.first_chunk::<8>() else { return Answer::refusal(Status::INVALID_FIELD) };
                features.timestamp_ms = u64::from_le_bytes(*bytes) & 0xFFFF_FFFF_FFFF;
                features.timestamp_set = now;
            }
            id::KEEP_ALIVE => {
                controller.keep_alive = SimSpan::from_ms(u64::from(value));
                controller.heard = now;
            }
            id::HOST_BEHAVIOR => match data.first() {
                Some(behavior) => features.host_behavior = *behavior,
                None => return Answer::refusal(Status::INVALID_FIELD),
            },
            // The one combination of I/O command sets.
            id::COMMAND_SET_PROFILE if value & 0x1FF == 0 => {}
            id::COMMAND_SET_PROFILE => return Answer::refusal(Status::COMMAND_SET_COMBINATION_REJECTED),
            // Interrupts do not exist over fabrics, and the host identifier comes with Connect.
            id::HOST_ID => return Answer::refusal(Status::COMMAND_SEQUENCE),
            _ => return Answer::refusal(Status::FEATURE_NOT_CHANGEABLE),
        }
        Answer::SUCCESS
    }

    /// Whether the controller has the feature: that of the write cache goes with the cache, and a choice of I/O command sets
    /// with zones.
    fn has_feature(&self, target: &mut Target, feature: u8) -> bool {
        let place = self.controller(target).and_then(|controller| controller.subsystem);
        let subsystem = place.map(|place| &target.config.subsystems[place]);
        let has_what_it_is_of = match feature {
            id::WRITE_CACHE => subsystem.is_some_and(|subsystem| subsystem.has_write_cache),
            id::COMMAND_SET_PROFILE => subsystem.is_some_and(Subsystem::has_zones),
            _ => true,
        };
        is_known(feature, place.is_none()) && has_what_it_is_of
    }

    /// Hands a feature of capacity-variant drives on; the answer comes when the drive has done it.
    pub(super) fn ask_drive(
        &self,
        target: &mut Target,
        command_id: u16,
        feature: u8,
        values: [u32; 5],
    ) -> Result<(), Status> {
        let place = self.controller(target).and_then(|controller| controller.subsystem);
        let place = place.filter(|&place| target.figures[place].capacity.is_some()).ok_or(Status::INVALID_FIELD)?;
        let wish = match feature {
            id::DEGRADED => Wish::Degraded(values[0] & 1 != 0),
            _ => Wish::Retirement(RetirementRule::decode([values[0], values[1]]).ok_or(Status::INVALID_FIELD)?),
        };
        target.demand(Demand { subsystem: place, wish, controller: self.queue.controller, command_id });
        Ok(())
    }

    /// Reads a feature, given with its parameter.
    pub(super) fn get_feature(
        &self,
        target: &mut Target,
        now: SimTime,
        (feature, parameter): (u8, u32),
        select: Select,
        reply: &mut Vec<u8>,
    ) -> Answer {
        let io_queues = u32::from(target.config.limits.io_queues);
        if !self.has_feature(target, feature) {
            return Answer::refusal(Status::INVALID_FIELD);
        }
        let Some(controller) = self.controller(target) else { return Answer::refusal(Status::CONTROLLER_PATHING) };
        let place = controller.subsystem;
        let features = match select {
            Select::Current => controller.features,
            // Nothing is saved, and then the saved value is the default.
            Select::Default | Select::Saved => Features::DEFAULT,
            Select::Supported => {
                let namespaces = place.map(|place| &target.config.subsystems[place].namespaces[..]).unwrap_or_default();
                let keeps = namespaces.iter().any(|namespace| namespace.keeps_reservations);
                return Answer::result(u64::from(supported(feature, keeps).encode()));
            }
            Select::Reserved(_) => return Answer::refusal(Status::INVALID_FIELD),
        };
        let value = match feature {
            id::ARBITRATION => features.arbitration,
            id::POWER => features.power,
            id::TEMPERATURE => match TemperatureThreshold::decode(parameter) {
                Some(asked) if asked.sensor == TemperatureThreshold::COMPOSITE => features.temperature(asked.is_lower),
                // There are no sensors beside it.
                _ => return Answer::refusal(Status::INVALID_FIELD),
            },
            id::ERROR_RECOVERY => features.error_recovery,
            id::WRITE_CACHE => u32::from(features.write_cache),
            id::QUEUES => {
                let granted = features.queues.map_or(io_queues, u32::from);
                Queues { submission: granted, completion: granted }.encode()
            }
            id::WRITE_ATOMICITY => features.write_atomicity,
            id::ASYNC_EVENTS => features.async_events,
            id::KEEP_ALIVE => keep_alive_ms(controller),
            id::TIMESTAMP => {
                put_timestamp(&features, now, reply);
                0
            }
            id::HOST_BEHAVIOR => {
                reply.push(features.host_behavior);
                reply.resize(HOST_BEHAVIOR_BYTES, 0);
                0
            }
            // Source: NVM Express Base 2.0, section 5.27.1.25: over fabrics the short form is not there.
            id::HOST_ID if parameter & 1 == 0 => return Answer::refusal(Status::INVALID_FIELD),
            id::HOST_ID => {
                debug_assert_eq!(controller.host_id.len(), HOST_ID_BYTES);
                reply.extend_from_slice(&controller.host_id);
                // The identifier is the one of 128 bits.
                1
            }
            _ => 0,
        };
        Answer::result(u64::from(value))
    }
}

/// Whether a controller, of discovery or not, has the feature.
fn is_known(feature: u8, is_discovery: bool) -> bool {
    match feature {
        id::ASYNC_EVENTS | id::KEEP_ALIVE | id::HOST_ID => true,
        id::ARBITRATION
        | id::POWER
        | id::TEMPERATURE
        | id::ERROR_RECOVERY
        | id::WRITE_CACHE
        | id::QUEUES
        | id::INTERRUPT_COALESCING
        | id::INTERRUPT_VECTOR
        | id::WRITE_ATOMICITY
        | id::TIMESTAMP
        | id::HOST_BEHAVIOR
        | id::COMMAND_SET_PROFILE
        | id::RESERVATION_MASK
        | id::RESERVATION_PERSISTENCE => !is_discovery,
        _ => false,
    }
}

/// How a feature may be set, where registrations can outlast a loss of power or not.
fn supported(feature: u8, keeps_reservations: bool) -> Supported {
    let is_fixed = match feature {
        id::HOST_ID | id::INTERRUPT_COALESCING | id::INTERRUPT_VECTOR => true,
        id::RESERVATION_PERSISTENCE => !keeps_reservations,
        _ => false,
    };
    Supported { saveable: false, per_namespace: reserve::is_feature(feature), changeable: !is_fixed }
}

/// The keep-alive timeout in milliseconds.
fn keep_alive_ms(controller: &Controller) -> u32 {
    (controller.keep_alive.as_ns() / 1_000_000) as u32
}

/// Milliseconds since the timestamp was set, added to it, and where it came from.
fn put_timestamp(features: &Features, now: SimTime, reply: &mut Vec<u8>) {
    const SET_BY_HOST: u64 = 1 << 49;
    let passed_ms = now.saturating_since(features.timestamp_set).as_ns() / 1_000_000;
    let origin = if features.timestamp_ms > 0 { SET_BY_HOST } else { 0 };
    let value = (features.timestamp_ms.wrapping_add(passed_ms) & 0xFFFF_FFFF_FFFF) | origin;
    reply.extend_from_slice(&value.to_le_bytes());
}
