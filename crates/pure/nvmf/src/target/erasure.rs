//! Format NVM and Sanitize: what a controller says to them, and to other commands meanwhile.
//!
//! The data is the backend's: it hears of a wish ([`Wish::Format`], [`Wish::Sanitize`]), and tells how far it has come
//! ([`Target::set_erasure`]).

use super::answer::Answer;
use super::config::Subsystem;
use super::directory::{Demand, Target, Wish};
use super::session::Session;
use flashyard_nvme::admin::{Format, Sanitize};
use flashyard_nvme::event::AsyncEvent;
use flashyard_nvme::log::SanitizeLog;
use flashyard_nvme::{NSID_ALL, Status};

/// The state of a subsystem's data as far as it is being erased, or was.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Erasure {
    /// An erasure that is under way, and its progress, of 65,536 in all.
    pub under_way: Option<(ErasureKind, u16)>,
    /// Outcome of the last sanitize that is over.
    pub sanitized: Sanitized,
    /// Dword 10 of the last Sanitize.
    pub command: u32,
}

/// Which command erases.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErasureKind {
    /// Format NVM.
    Format,
    /// Sanitize.
    Sanitize,
}

/// Outcome of the last sanitize.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sanitized {
    /// There was none.
    #[default]
    Never,
    /// All data is gone.
    Done,
    /// Something of it may be left: the subsystem is in its failure mode.
    Failed,
    /// It had failed, and a host has left the failure mode.
    Left,
}

impl Erasure {
    /// The status of commands that may not be carried out now.
    pub(super) fn refusal(&self) -> Option<Status> {
        match (self.under_way, self.sanitized) {
            // Hosts may try again later.
            (Some((ErasureKind::Format, _)), _) => Some(Status::FORMAT_IN_PROGRESS),
            (Some((ErasureKind::Sanitize, _)), _) => Some(Status::SANITIZE_IN_PROGRESS),
            (None, Sanitized::Failed) => Some(Status::SANITIZE_FAILED.do_not_retry()),
            (None, _) => None,
        }
    }

    /// The page of sanitize status.
    pub(super) fn page(&self) -> SanitizeLog {
        let (status, progress) = match (self.under_way, self.sanitized) {
            (Some((ErasureKind::Sanitize, progress)), _) => (SanitizeLog::UNDER_WAY, progress),
            (_, Sanitized::Never) => (SanitizeLog::NEVER, u16::MAX),
            (_, Sanitized::Done) => (SanitizeLog::DONE, u16::MAX),
            (_, Sanitized::Failed | Sanitized::Left) => (SanitizeLog::FAILED, u16::MAX),
        };
        SanitizeLog::new(status, progress, self.command)
    }

    /// The indicator of a format's progress: that there is one, and the percentage that is left.
    pub(super) fn format_progress(&self) -> u8 {
        const IS_THERE: u8 = 1 << 7;
        match self.under_way {
            // Not zero before the end.
            Some((ErasureKind::Format, progress)) => {
                IS_THERE | (100 - u32::from(progress) * 100 / 65_536).clamp(1, 100) as u8
            }
            _ => IS_THERE,
        }
    }
}

impl Subsystem {
    /// Whether hosts may format and sanitize it: it is one namespace of a drive that knows formats.
    pub(super) fn is_erasable(&self) -> bool {
        matches!(&self.namespaces[..], [only] if !only.formats.is_empty())
    }
}

/// Tells hosts of `subsystem` what has become of its erasure since `before`: of the end, and of a format's beginning.
pub(super) fn announce(target: &mut Target, subsystem: usize, before: Erasure) {
    let erasure = target.figures[subsystem].erasure;
    if before == erasure {
        return;
    }
    let is = |erasure: &Erasure, wanted: ErasureKind| erasure.under_way.is_some_and(|(kind, _)| kind == wanted);
    if is(&before, ErasureKind::Sanitize) && !is(&erasure, ErasureKind::Sanitize) {
        target.raise(AsyncEvent::Sanitized, |controller| controller.subsystem == Some(subsystem));
    }
    if is(&before, ErasureKind::Format) != is(&erasure, ErasureKind::Format) {
        let changed: Vec<u32> = target.config.subsystems[subsystem].namespaces.iter().map(|one| one.nsid).collect();
        for controller in target.controllers.iter_mut().flatten().filter(|c| c.subsystem == Some(subsystem)) {
            controller.note_changed(&changed);
        }
        target.raise(AsyncEvent::Namespaces, |controller| controller.subsystem == Some(subsystem));
    }
}

/// Whether a reservation or the drive's own state is against erasing all of `place`.
fn check_erasable(target: &Target, by: (usize, u64), place: usize) -> Result<(), Status> {
    let subsystem = &target.config.subsystems[place];
    if !subsystem.is_erasable() {
        return Err(Status::INVALID_OPCODE);
    }
    if subsystem.namespaces.iter().any(|namespace| namespace.is_read_only) {
        return Err(Status::NAMESPACE_WRITE_PROTECTED);
    }
    if subsystem.namespaces.iter().any(|namespace| target.is_reserved(by, namespace.nsid, false)) {
        return Err(Status::RESERVATION_CONFLICT);
    }
    if target.is_away(place) { Err(Status::NAMESPACE_NOT_READY) } else { Ok(()) }
}

/// Carries Format NVM out; without an answer it comes when the drive has done it.
pub(super) fn format(session: &Session, target: &mut Target, command_id: u16, format: &Format) -> Result<(), Status> {
    let place = place_of(session, target)?;
    check_erasable(target, session.queue.controller, place)?;
    if let Some(status) = target.figures[place].erasure.refusal() {
        return Err(status);
    }
    let namespace = &target.config.subsystems[place].namespaces[0];
    if format.nsid != NSID_ALL && format.nsid != namespace.nsid {
        return Err(Status::INVALID_NAMESPACE);
    }
    let has_metadata = format.metadata_inline || format.protection != 0 || format.protection_first;
    let block_log2 = namespace.formats.get(usize::from(format.format)).copied().filter(|_| !has_metadata);
    let block_log2 = block_log2.ok_or(Status::INVALID_FORMAT)?;
    let destroys = match format.secure_erase {
        Format::NO_SECURE_ERASE => false,
        Format::USER_DATA_ERASE => true,
        // Data is not encrypted: there is no key to delete.
        _ => return Err(Status::INVALID_FIELD),
    };
    begin(session, target, place, command_id, Wish::Format { block_log2, destroys }, ErasureKind::Format);
    Ok(())
}

/// Carries Sanitize out; without an answer it comes when the drive has begun, or has done what was asked for.
pub(super) fn sanitize(
    session: &Session,
    target: &mut Target,
    command_id: u16,
    sanitize: &Sanitize,
) -> Result<bool, Status> {
    let place = place_of(session, target)?;
    check_erasable(target, session.queue.controller, place)?;
    let erasure = &mut target.figures[place].erasure;
    match (erasure.under_way, sanitize.action) {
        (Some(_), _) => Err(erasure.refusal().unwrap_or(Status::SANITIZE_IN_PROGRESS)),
        (None, Sanitize::EXIT_FAILURE_MODE) if erasure.sanitized != Sanitized::Failed => Ok(true),
        (None, Sanitize::EXIT_FAILURE_MODE) if Sanitize::of_dword(erasure.command).unrestricted_exit => {
            let controller = session.queue.controller;
            target.demand(Demand { subsystem: place, wish: Wish::LeaveFailure, controller, command_id });
            Ok(false)
        }
        (None, Sanitize::EXIT_FAILURE_MODE) => Err(Status::SANITIZE_FAILED),
        (None, Sanitize::BLOCK_ERASE) if !sanitize.no_deallocate => {
            let command = sanitize.dword();
            erasure.command = command;
            begin(session, target, place, command_id, Wish::Sanitize { command }, ErasureKind::Sanitize);
            Ok(false)
        }
        // Data is not encrypted, and flash is not overwritten in place.
        _ => Err(Status::INVALID_FIELD),
    }
}

fn begin(session: &Session, target: &mut Target, place: usize, command_id: u16, wish: Wish, kind: ErasureKind) {
    // From now on, as the backend has not yet heard of it.
    let before = target.figures[place].erasure;
    target.figures[place].erasure.under_way = Some((kind, 0));
    announce(target, place, before);
    target.demand(Demand { subsystem: place, wish, controller: session.queue.controller, command_id });
}

fn place_of(session: &Session, target: &mut Target) -> Result<usize, Status> {
    let controller = session.controller(target).ok_or(Status::CONTROLLER_PATHING)?;
    controller.subsystem.ok_or(Status::INVALID_OPCODE)
}

/// The answer to Format NVM or Sanitize, where there is one now.
pub(super) fn answer_of(result: Result<bool, Status>) -> Option<Answer> {
    match result {
        Ok(is_over) => is_over.then_some(Answer::SUCCESS),
        Err(status) => Some(Answer { status, result: 0 }),
    }
}
