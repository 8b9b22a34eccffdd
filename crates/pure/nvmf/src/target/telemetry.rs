//! Telemetry: the insides of a drive in words, as they were when a host asked for them, or when the drive began to warn.
//!
//! The words are the backend's ([`set_telemetry`]); the target keeps what was written down. What a host has asked for is its controller's
//! and stays as it is until the host asks again; what a drive has written down by itself is that of its subsystem.
//!
//! Source: \[P\] NVM Express Base 2.0, sections 5.16.1.8, 5.16.1.9 and 8.24. \[A\] Drives write down by themselves what was so when a warning
//! of SMART comes.

use super::answer::Answer;
use super::directory::Target;
use super::session::Session;
use flashyard_nvme::Status;
use flashyard_nvme::admin::GetLogPage;
use flashyard_nvme::log::{ErrorEntry, TelemetryHeader, page};
use flashyard_nvme::text::padded;
use zerocopy::FromZeros;

/// Sets the insides of the drive of `subsystem` in words, by data area, with the warnings of SMART: a new one is written down.
pub fn set_telemetry(target: &mut Target, subsystem: usize, texts: [String; 3], warnings: u8) {
    let insides = target.insides.entry(subsystem).or_default();
    if warnings & !insides.warnings != 0 {
        insides.kept = texts.clone();
        insides.is_available = true;
        insides.generation = insides.generation.wrapping_add(1);
    }
    (insides.texts, insides.warnings) = (texts, warnings);
}

/// Answers Get Log Page for one of the two pages of a subsystem that has them: the whole page, in `reply`.
///
/// Errors: a part of the page that is not one of whole blocks.
pub(super) fn log_page(
    session: &Session,
    target: &mut Target,
    place: usize,
    get: &GetLogPage,
    reply: &mut Vec<u8>,
) -> Result<(), Answer> {
    let block = TelemetryHeader::BLOCK_BYTES as u64;
    if !get.offset_bytes.is_multiple_of(block) || !get.len_bytes.is_multiple_of(block) {
        return Err(Answer::refusal(Status::INVALID_FIELD));
    }
    let is_by_host = get.page == page::TELEMETRY_HOST;
    if is_by_host && get.specific & TelemetryHeader::CREATE != 0 {
        target.look(place);
        let connections = connections_of(target, place);
        let texts = target.insides.get(&place).map(|insides| insides.texts.clone()).unwrap_or_default();
        let Some(controller) = session.controller(target) else {
            return Err(Answer::refusal(Status::CONTROLLER_PATHING));
        };
        let errors = errors_of(controller.errors.iter());
        let asked = &mut controller.telemetry;
        let [first, second, third] = texts;
        asked.texts = [first + &connections, second + &errors, third];
        asked.generation = asked.generation.wrapping_add(1);
    }
    let insides = target.insides.entry(place).or_default();
    let (is_available, generation, kept) = (insides.is_available, insides.generation, insides.kept.clone());
    let asked = session.controller(target).map(|controller| &controller.telemetry);
    let header = TelemetryHeader {
        page: get.page,
        host_generation: if is_by_host { asked.as_ref().map_or(0, |asked| asked.generation) } else { 0 },
        available: is_available.into(),
        generation,
        reason: match (is_by_host, generation) {
            (true, _) => padded("a host has asked for it"),
            (false, 0) => padded(""),
            (false, _) => padded("a warning of SMART has come"),
        },
        ..TelemetryHeader::new_zeroed()
    };
    let none = Default::default();
    reply.extend(header.page(if is_by_host { asked.map_or(&none, |asked| &asked.texts) } else { &kept }));
    Ok(())
}

/// A host has read what the drive of `subsystem` has written down by itself.
pub(super) fn was_read(target: &mut Target, subsystem: usize) {
    if let Some(insides) = target.insides.get_mut(&subsystem) {
        insides.is_available = false;
    }
}

/// Controllers of a subsystem and their queues.
fn connections_of(target: &Target, place: usize) -> String {
    let mut text = String::new();
    for controller in target.controllers.iter().flatten().filter(|it| it.subsystem == Some(place)) {
        text += &format!("controller {}: {} I/O queues\n", controller.id, controller.io_sessions.len());
    }
    text
}

/// Entries of an error log, the newest first.
fn errors_of<'a>(entries: impl Iterator<Item = &'a ErrorEntry>) -> String {
    let mut text = String::new();
    for entry in entries {
        let (status, nsid, lba) = (entry.status.get() >> 1, entry.nsid.get(), entry.lba.get());
        let queue = entry.sq_id.get();
        let count = entry.count.get();
        text += &format!("error {count}: status {status:#06x} queue {queue} namespace {nsid} block {lba}\n");
    }
    text
}
