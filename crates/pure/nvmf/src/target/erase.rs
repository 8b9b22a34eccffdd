//! Format NVM and Sanitize: what a controller says to them.
//!
//! The data is the backend's: it hears of a wish ([`Wish::Format`], [`Wish::Sanitize`]), and tells how far it has come
//! ([`super::Figures::erasure`]).

use super::answer::Answer;
use super::config::{BlockFormat, Namespace, Subsystem};
use super::directory::{Demand, Target, Wish, announce_erasure};
use super::erasure::{ErasureKind, Sanitized};
use super::session::Session;
use flashyard_nvme::admin::{Format, Sanitize};
use flashyard_nvme::protection::Metadata;
use flashyard_nvme::{NSID_ALL, Status};

impl Subsystem {
    /// Whether hosts may format and sanitize it: it is one namespace of a drive that knows formats, or those that hosts manage.
    pub(super) fn is_erasable(&self) -> bool {
        self.management.is_some() || matches!(&self.namespaces[..], [only] if !only.formats.is_empty())
    }
}

impl BlockFormat {
    /// The metadata that blocks of this format get with protection information of type `kind`, or none (0). It is always a part of
    /// the data, as fabrics have no pointer to metadata: a host has to ask for it to be `inline`. Where protection information
    /// is all of the metadata, it is its beginning as much as its end. `None`: there is no such format.
    pub(super) fn metadata_of(self, is_inline: bool, kind: u8) -> Option<Metadata> {
        Metadata::of(self.has_metadata, kind).filter(|_| is_inline == self.has_metadata)
    }
}

/// Whether a reservation or the drive's own state is against erasing a namespace of `place`, or all.
fn check_erasable(target: &Target, by: (usize, u64), (place, nsid): (usize, u32)) -> Result<(), Status> {
    let subsystem = &target.config.subsystems[place];
    if !subsystem.is_erasable() {
        return Err(Status::INVALID_OPCODE);
    }
    let is_named = |namespace: &&Namespace| nsid == NSID_ALL || namespace.nsid == nsid;
    let mut named = subsystem.namespaces.iter().filter(is_named);
    if named.clone().any(|namespace| namespace.is_read_only) {
        return Err(Status::NAMESPACE_WRITE_PROTECTED);
    }
    if named.any(|namespace| target.is_reserved(by, namespace.nsid, false)) {
        return Err(Status::RESERVATION_CONFLICT);
    }
    if target.is_away(place) { Err(Status::NAMESPACE_NOT_READY) } else { Ok(()) }
}

/// Carries Format NVM out; without an answer it comes when the drive has done it.
pub(super) fn format(session: &Session, target: &mut Target, command_id: u16, format: &Format) -> Result<(), Status> {
    let place = place_of(session, target)?;
    check_erasable(target, session.queue.controller, (place, format.nsid))?;
    // One at a time.
    if let Some(status) = target.figures[place].erasure.refusal(NSID_ALL) {
        return Err(status);
    }
    let mut named = target.config.subsystems[place].namespaces.iter();
    let namespace = named.find(|namespace| format.nsid == NSID_ALL || namespace.nsid == format.nsid);
    let namespace = namespace.ok_or(Status::INVALID_NAMESPACE)?;
    let wanted = namespace.formats.get(usize::from(format.format)).ok_or(Status::INVALID_FORMAT)?;
    let block_log2 = wanted.data_log2;
    let metadata = wanted.metadata_of(format.metadata_inline, format.protection).ok_or(Status::INVALID_FORMAT)?;
    let destroys = match format.secure_erase {
        Format::NO_SECURE_ERASE => false,
        Format::USER_DATA_ERASE => true,
        // Data is not encrypted: there is no key to delete.
        _ => return Err(Status::INVALID_FIELD),
    };
    let wish = Wish::Format { nsid: format.nsid, block_log2, metadata, destroys };
    target.figures[place].erasure.nsid = format.nsid;
    begin(session, target, place, command_id, wish, ErasureKind::Format);
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
    check_erasable(target, session.queue.controller, (place, NSID_ALL))?;
    let erasure = &mut target.figures[place].erasure;
    match (erasure.under_way, sanitize.action) {
        (Some(_), _) => Err(erasure.refusal(NSID_ALL).unwrap_or(Status::SANITIZE_IN_PROGRESS)),
        (None, Sanitize::EXIT_FAILURE_MODE) if erasure.sanitized != Sanitized::Failed => Ok(true),
        (None, Sanitize::EXIT_FAILURE_MODE) if Sanitize::of_dword(erasure.command).unrestricted_exit => {
            let controller = session.queue.controller;
            target.demand(Demand { subsystem: place, wish: Wish::LeaveFailure, controller, command_id });
            Ok(false)
        }
        (None, Sanitize::EXIT_FAILURE_MODE) => Err(Status::SANITIZE_FAILED),
        (None, Sanitize::BLOCK_ERASE) if !sanitize.no_deallocate => {
            let command = sanitize.dword();
            (erasure.command, erasure.nsid) = (command, NSID_ALL);
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
    announce_erasure(target, place, before);
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
        // Later the same command may succeed.
        Err(status @ (Status::FORMAT_IN_PROGRESS | Status::SANITIZE_IN_PROGRESS | Status::NAMESPACE_NOT_READY)) => {
            Some(Answer { status, result: 0 })
        }
        Err(status) => Some(Answer::refusal(status)),
    }
}
