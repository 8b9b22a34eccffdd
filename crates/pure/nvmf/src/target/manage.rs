//! Namespace Management and Namespace Attachment: what a controller says to them.
//!
//! Space is the backend's: it hears of a wish ([`Wish::Create`], [`Wish::Delete`], [`Wish::Attach`]), keeps what came of it, and
//! sets the namespaces ([`Target::set_namespaces`]). Which controllers have a namespace is state of theirs.

use super::answer::Answer;
use super::attachment::{Attach, Attachment, NewNamespace};
use super::config::{Namespace, Subsystem};
use super::directory::{Demand, Target, Wish};
use super::session::Session;
use flashyard_nvme::admin::Management;
use flashyard_nvme::event::AsyncEvent;
use flashyard_nvme::identify::{IdentifyNamespace, read_controllers};
use flashyard_nvme::log::ErrorEntry;
use flashyard_nvme::{NSID_ALL, Status};
use zerocopy::FromBytes;
use zerocopy::little_endian::U16;

/// Bytes of the data of these commands.
const DATA_BYTES: usize = 4096;

/// Carries Namespace Management out; without an answer it comes when the drive has done it.
pub(super) fn manage(
    session: &Session,
    target: &mut Target,
    command_id: u16,
    (nsid, select, command_set): (u32, u8, u8),
    data: &[u8],
) -> Option<Answer> {
    let wish = match select {
        Management::CREATE => creation(session, target, command_set, data),
        Management::DELETE => deletion(session, target, nsid),
        _ => Err(Status::INVALID_FIELD),
    };
    begin(session, target, command_id, wish)
}

/// Carries Namespace Attachment out, likewise.
pub(super) fn attach(
    session: &Session,
    target: &mut Target,
    command_id: u16,
    (nsid, select): (u32, u8),
    data: &[u8],
) -> Option<Answer> {
    let wish = match select {
        Management::ATTACH => attachment(session, target, nsid, true, data),
        Management::DETACH => attachment(session, target, nsid, false, data),
        _ => Err(Status::INVALID_FIELD),
    };
    begin(session, target, command_id, wish)
}

fn begin(session: &Session, target: &mut Target, command_id: u16, wish: Result<Wish, Status>) -> Option<Answer> {
    let controller = session.queue.controller;
    let subsystem = target.controller(controller).and_then(|controller| controller.subsystem);
    let wish = wish.and_then(|wish| Ok((wish, subsystem.ok_or(Status::CONTROLLER_PATHING)?)));
    match wish {
        Ok((wish, subsystem)) => {
            target.demand(Demand { subsystem, wish, controller, command_id });
            None
        }
        // Later the same command may succeed.
        Err(status @ (Status::FORMAT_IN_PROGRESS | Status::SANITIZE_IN_PROGRESS | Status::NAMESPACE_NOT_READY)) => {
            Some(Answer { status, result: 0 })
        }
        Err(status) => Some(Answer::refusal(status)),
    }
}

/// The subsystem of the controller, if hosts may manage its namespaces now.
fn manageable<'a>(session: &Session, target: &'a mut Target) -> Result<(usize, &'a Subsystem), Status> {
    let controller = session.controller(target).ok_or(Status::CONTROLLER_PATHING)?;
    let place = controller.subsystem.ok_or(Status::INVALID_OPCODE)?;
    let subsystem = &target.config.subsystems[place];
    if subsystem.management.is_none() {
        return Err(Status::INVALID_OPCODE);
    }
    match target.figures[place].erasure.refusal(NSID_ALL) {
        Some(status) => Err(status),
        None if target.is_away(place) => Err(Status::NAMESPACE_NOT_READY),
        None => Ok((place, subsystem)),
    }
}

/// The wish of a host for a new namespace, as far as the controller can judge it.
fn creation(session: &Session, target: &mut Target, command_set: u8, data: &[u8]) -> Result<Wish, Status> {
    let (_, subsystem) = manageable(session, target)?;
    if command_set != super::config::NVM_COMMAND_SET {
        return Err(Status::COMMAND_SET_NOT_SUPPORTED);
    }
    let wanted = data.get(..DATA_BYTES).and_then(|data| IdentifyNamespace::ref_from_bytes(data).ok());
    let wanted = wanted.ok_or(Status::INVALID_SGL_DATA_LENGTH)?;
    let formats = subsystem.management.map_or(&[][..], |management| management.formats);
    let format = usize::from(wanted.format & 0xF) | usize::from(wanted.format >> 5 & 3) << 4;
    let (is_inline, kind) = (wanted.format & IdentifyNamespace::INLINE != 0, wanted.protection & 7);
    let block = formats.get(format).ok_or(Status::INVALID_FORMAT)?;
    let metadata = block.metadata_of(is_inline, kind).ok_or(Status::INVALID_FORMAT)?;
    let block_log2 = block.data_log2;
    if !matches!(wanted.ana_group.get(), 0 | 1) {
        return Err(Status::INVALID_ANA_GROUP);
    }
    let (blocks, capacity) = (wanted.size_blocks.get(), wanted.capacity_blocks.get());
    if blocks == 0 || capacity > blocks {
        return Err(Status::INVALID_FIELD);
    }
    if capacity < blocks {
        // All blocks of a namespace have their space.
        return Err(Status::THIN_PROVISIONING_NOT_SUPPORTED);
    }
    Ok(Wish::Create(NewNamespace { blocks, block_log2, metadata, is_private: wanted.sharing & 1 == 0 }))
}

fn deletion(session: &Session, target: &mut Target, nsid: u32) -> Result<Wish, Status> {
    let by = session.queue.controller;
    let (place, subsystem) = manageable(session, target)?;
    let named = |namespace: &&Namespace| nsid == NSID_ALL || namespace.nsid == nsid;
    let found: Vec<u32> = subsystem.namespaces.iter().filter(named).map(|namespace| namespace.nsid).collect();
    if found.is_empty() && nsid != NSID_ALL {
        return Err(Status::INVALID_NAMESPACE);
    }
    debug_assert!(target.config.subsystems.len() > place);
    if found.iter().any(|&nsid| target.is_reserved(by, nsid, false)) {
        return Err(Status::RESERVATION_CONFLICT);
    }
    Ok(Wish::Delete { nsid })
}

/// A change of the namespaces that the listed controllers have.
fn attachment(
    session: &Session,
    target: &mut Target,
    nsid: u32,
    is_attached: bool,
    data: &[u8],
) -> Result<Wish, Status> {
    let by = session.queue.controller;
    let (place, subsystem) = manageable(session, target)?;
    subsystem.namespace(nsid).ok_or(Status::INVALID_NAMESPACE)?;
    if target.is_reserved(by, nsid, false) {
        return Err(Status::RESERVATION_CONFLICT);
    }
    let listed = data.get(..DATA_BYTES).ok_or(Status::INVALID_SGL_DATA_LENGTH)?;
    let listed = read_controllers(listed).filter(|listed| !listed.is_empty()).ok_or(Status::INVALID_CONTROLLER_LIST)?;
    let of_it = |id: &u16| {
        let index = usize::from(*id).wrapping_sub(1);
        let controller = target.controllers.get(index).and_then(Option::as_ref);
        Some((index, controller.filter(|controller| controller.subsystem == Some(place))?.serial))
    };
    let controllers: Option<Vec<(usize, u64)>> = listed.iter().map(of_it).collect();
    let controllers = controllers.ok_or(Status::INVALID_CONTROLLER_LIST)?;
    let mut attach = Attach { nsid, controllers, is_attached, attachment: Attachment::NONE };
    attach.attachment = attached(target, (by, place), &attach)?;
    Ok(Wish::Attach(attach))
}

/// The hosts that have a namespace once it is attached, or detached, as things stand now.
///
/// Errors: a change that cannot be.
fn attached(target: &Target, (by, place): ((usize, u64), usize), attach: &Attach) -> Result<Attachment, Status> {
    let &Attach { nsid, is_attached, .. } = attach;
    let namespace = target.config.subsystems[place].namespace(nsid).ok_or(Status::INVALID_NAMESPACE)?;
    if target.is_reserved(by, nsid, false) {
        return Err(Status::RESERVATION_CONFLICT);
    }
    // The host that has had a private namespace last may be gone: it is free.
    let is_taken_over = is_attached && namespace.is_private;
    let mut attachment = if is_taken_over { Attachment::NONE } else { namespace.attachment.clone() };
    for &(index, serial) in &attach.controllers {
        let controller = target.controllers.get(index).and_then(Option::as_ref);
        let controller = controller.filter(|controller| controller.serial == serial);
        let controller = controller.ok_or(Status::INVALID_CONTROLLER_LIST)?;
        match (controller.has_namespace(nsid), is_attached) {
            (true, true) => return Err(Status::NAMESPACE_ATTACHED),
            (false, false) => return Err(Status::NAMESPACE_NOT_ATTACHED),
            _ => {}
        }
        attachment = attachment.with(&controller.host_nqn, is_attached);
    }
    let mut others = target.controllers.iter().flatten().filter(|controller| controller.subsystem == Some(place));
    if is_taken_over && (attach.controllers.len() > 1 || others.any(|it| it.has_namespace(nsid))) {
        return Err(Status::NAMESPACE_PRIVATE);
    }
    if attachment.exceptions.len() > Attachment::EXCEPTIONS_MAX {
        return Err(Status::ATTACHMENT_LIMIT_EXCEEDED);
    }
    Ok(attachment)
}

/// Judges a demand for another attachment again, just before it is carried out: others may have been carried out since it came, and
/// what they have changed stays. Other demands stay as they are.
///
/// Errors: the status with which the demand is to be settled.
pub fn judge_attachment(target: &Target, demand: &mut Demand) -> Result<(), Status> {
    if let Wish::Attach(attach) = &mut demand.wish {
        attach.attachment =
            attached(target, (demand.controller, demand.subsystem), attach).map_err(Status::do_not_retry)?;
    }
    Ok(())
}

/// The drive has done what was asked for in a demand for another attachment, and has kept it: the controllers follow.
pub fn attach_controllers(target: &mut Target, demand: &Demand) {
    let Wish::Attach(Attach { nsid, controllers, is_attached, attachment }) = &demand.wish else { return };
    let namespaces = &mut target.config.subsystems[demand.subsystem].namespaces;
    let Some(namespace) = namespaces.iter_mut().find(|namespace| namespace.nsid == *nsid) else { return };
    namespace.attachment = attachment.clone();
    for &key in controllers {
        let Some(controller) = target.controller(key) else { continue };
        if controller.set_namespace(*nsid, *is_attached) && key != demand.controller {
            controller.note_changed(&[*nsid]);
            let woken = controller.raise(AsyncEvent::Namespaces).then_some(controller.admin_session);
            target.wake.extend(woken.flatten());
        }
    }
}

/// A demand cannot be met for want of room, of which so many bytes are needed: its host finds that in the error log too.
pub fn settle_without_room(target: &mut Target, demand: &Demand, needed_bytes: u64) {
    let status = Status::INSUFFICIENT_CAPACITY.do_not_retry().more();
    if let Some(controller) = target.controller(demand.controller) {
        controller.log_error(ErrorEntry {
            command_id: U16::new(demand.command_id),
            status: U16::new(status.bits() << 1),
            parameter: U16::new(u16::MAX),
            transport: 3,
            command_specific: needed_bytes.into(),
            ..ErrorEntry::default()
        });
        target.errors[demand.subsystem] += 1;
    }
    target.settle(demand, status);
}
