//! Checks of a command before its data moves.

use super::config::{COPY_RANGES_MAX, Limits, Namespace, TargetConfig};
use super::directory::Target;
use super::edition::Edition;
use super::session::{QueueKind, Session};
use super::slots::{Plan, Work, direction_of};
use crate::volume::{request_of, status_of};
use flashyard_blk::check;
use flashyard_nvme::log::AnaState;
use flashyard_nvme::nvm::{CopyRange, Direction, DsmRange, NvmCommand};
use flashyard_nvme::protection::Protection;
use flashyard_nvme::sgl::Sgl;
use flashyard_nvme::tcp::ADMIN_CAPSULE_DATA_BYTES;
use flashyard_nvme::zone::SendAction;
use flashyard_nvme::{Sqe, Status};

/// Flags of an entry: fused operation, and how data is described.
const FUSED: u8 = 0b11;
const DATA_POINTER: u8 = 0b1100_0000;

/// The descriptor of an entry whose flags are those of fabrics.
fn descriptor(sqe: &Sqe) -> Result<Sgl, Status> {
    if sqe.flags & FUSED != 0 || sqe.flags & DATA_POINTER != Sqe::SGL {
        return Err(Status::INVALID_FIELD.do_not_retry());
    }
    Sgl::decode(&sqe.data).map_err(|_| Status::INVALID_SGL_TYPE.do_not_retry())
}

impl Session {
    /// An admin or a fabrics command.
    pub(super) fn plan_here(&self, target: &Target, sqe: &Sqe) -> Result<Plan, Status> {
        let sgl = descriptor(sqe)?;
        let most = match self.queue.kind {
            // Memory is for hosts that have shown who they are.
            QueueKind::Unconnected => ADMIN_CAPSULE_DATA_BYTES,
            _ if self.queue.dialogue.is_some() => ADMIN_CAPSULE_DATA_BYTES,
            _ => target.config.limits.data_bytes_max(),
        };
        if sgl.len_bytes() > most {
            return Err(Status::INVALID_FIELD.do_not_retry());
        }
        let direction = direction_of(sqe);
        let len = if direction == Direction::ToController { sgl.len_bytes() } else { 0 };
        if direction == Direction::ToHost && matches!(sgl, Sgl::InCapsule { .. }) {
            return Err(Status::INVALID_SGL_TYPE.do_not_retry());
        }
        Ok(Plan { work: Work::Here(*sqe), len, sgl, edition: Edition::default(), protection: None })
    }

    /// A command of an I/O queue that is not one of fabrics.
    pub(super) fn plan_nvm(&self, target: &mut Target, sqe: &Sqe) -> Result<Plan, Status> {
        if self.queue.dialogue.is_some() {
            return Err(Status::AUTHENTICATION_REQUIRED.do_not_retry());
        }
        debug_assert!(matches!(self.queue.kind, QueueKind::Io(_)));
        let sgl = descriptor(sqe)?;
        let mut operation = NvmCommand::decode(sqe).map_err(|unknown| unknown.status())?;
        let Some(controller) = self.controller(target) else { return Err(Status::CONTROLLER_PATHING) };
        if !controller.is_ready() {
            return Err(Status::COMMAND_SEQUENCE.do_not_retry());
        }
        controller.is_at_work = true;
        if !controller.features.write_cache {
            // Source: NVM Express Base, Volatile Write Cache feature: written data is on the medium at completion then.
            operation.force_unit_access();
        }
        let nsid = sqe.nsid.get();
        let (subsystem, port, sees_zones) = (controller.subsystem, controller.port, controller.sees_zones());
        let is_attached = controller.has_namespace(nsid);
        let subsystem = subsystem.ok_or(Status::INVALID_OPCODE.do_not_retry())?;
        if matches!(operation, NvmCommand::Remap { .. }) && !target.config.subsystems[subsystem].takes_remaps() {
            return Err(Status::INVALID_OPCODE.do_not_retry());
        }
        if matches!(operation, NvmCommand::WriteUncorrectable { .. })
            && !target.config.subsystems[subsystem].takes_uncorrectable()
        {
            return Err(Status::INVALID_OPCODE.do_not_retry());
        }
        if let Some(status) = target.figures[subsystem].erasure.refusal(nsid) {
            return Err(status);
        }
        let found = target.config.subsystems[subsystem].namespace(nsid).filter(|_| is_attached);
        let found = found.filter(|namespace| sees_zones || namespace.zones.is_none());
        let namespace = found.ok_or(Status::INVALID_NAMESPACE.do_not_retry())?;
        if !is_of_command_set(&operation, namespace.zones.is_some()) {
            return Err(Status::INVALID_OPCODE.do_not_retry());
        }
        match target.ana(subsystem, port, namespace.ana_group).0 {
            AnaState::Optimized | AnaState::NonOptimized => {}
            AnaState::Inaccessible => return Err(Status::ANA_INACCESSIBLE),
            AnaState::PersistentLoss => return Err(Status::ANA_PERSISTENT_LOSS),
            AnaState::Change => return Err(Status::ANA_TRANSITION),
        }
        if let Some(request) = request_of(&operation) {
            check(&request, &namespace.limits()).map_err(status_of)?;
        }
        if namespace.is_read_only && operation.is_write() {
            return Err(Status::NAMESPACE_WRITE_PROTECTED.do_not_retry());
        }
        if let NvmCommand::ZoneManagementSend { action: SendAction::Other(_), .. } = operation {
            return Err(Status::INVALID_FIELD.do_not_retry());
        }
        if let NvmCommand::Copy { ranges, format, protection, .. } = operation {
            if format != 0 || namespace.metadata.is_none() && protection != 0 {
                return Err(Status::INVALID_FIELD.do_not_retry());
            }
            if ranges > COPY_RANGES_MAX.into() {
                return Err(Status::COMMAND_SIZE_LIMIT.do_not_retry());
            }
        }
        let protection = protection_of(sqe, &operation, namespace).map_err(Status::do_not_retry)?;
        let carried = protection.filter(|it| it.carries(namespace.metadata)).map_or(0, |_| namespace.metadata.bytes());
        let needed = operation.data_bytes(namespace.block_bytes() + carried);
        if needed > u64::from(target.config.limits.data_bytes_max()) {
            return Err(Status::INVALID_FIELD.do_not_retry());
        }
        let given = u64::from(sgl.len_bytes());
        // Hosts send the ranges of Dataset Management in a buffer that may be longer than they need.
        let may_be_longer = matches!(operation, NvmCommand::DatasetManagement { .. }) && given <= 4096;
        if given < needed || given > needed && !may_be_longer {
            return Err(Status::INVALID_SGL_DATA_LENGTH.do_not_retry());
        }
        if operation.direction() == Direction::ToHost && !matches!(sgl, Sgl::Transport { .. }) {
            return Err(Status::INVALID_SGL_TYPE.do_not_retry());
        }
        let edition = Edition { serial: namespace.serial, epoch: target.epochs.of((subsystem, nsid)) };
        Ok(Plan { work: Work::Nvm(operation), len: given as u32, sgl, edition, protection })
    }
}

/// The wishes of a command about the metadata of its blocks; `None` where they have none, or where it is about no blocks.
///
/// Errors: it wants what cannot be. Source: \[P\] NVM Command Set 1.0, section 5.2.2; of a Compare and a Verify, which leave nothing to
/// take off, as QEMU has it.
fn protection_of(sqe: &Sqe, operation: &NvmCommand, namespace: &Namespace) -> Result<Option<Protection>, Status> {
    let metadata = namespace.metadata;
    let (first, information) = match *operation {
        _ if metadata.is_none() => return Ok(None),
        NvmCommand::Copy { first, protection, .. } => (first, Some(protection)),
        NvmCommand::DatasetManagement { .. } | NvmCommand::WriteUncorrectable { .. } => return Ok(None),
        _ => match operation.range() {
            Some(range) => (range.lba, None),
            None => return Ok(None),
        },
    };
    let protection = Protection::decode(sqe);
    protection.admit(metadata, first)?;
    let keeps_nothing = matches!(operation, NvmCommand::Compare { .. } | NvmCommand::Verify { .. });
    if metadata.is_protection() && protection.action && keeps_nothing {
        return Err(Status::INVALID_PROTECTION);
    }
    let acts = |information: u8| Protection::of_source(information, &CopyRange::default()).action;
    if metadata.is_protection() && information.is_some_and(|both| acts(both & 0xF) != acts(both >> 4)) {
        return Err(Status::INVALID_FIELD);
    }
    Ok(Some(protection))
}

/// Whether a namespace with zones or without has such a command. A remap would write anywhere, and the write pointer of a zone is
/// found by what can be read.
fn is_of_command_set(operation: &NvmCommand, has_zones: bool) -> bool {
    match operation {
        NvmCommand::ZoneAppend { .. }
        | NvmCommand::ZoneManagementSend { .. }
        | NvmCommand::ZoneManagementReceive { .. } => has_zones,
        NvmCommand::Remap { .. } | NvmCommand::WriteUncorrectable { .. } => !has_zones,
        _ => true,
    }
}

impl TargetConfig {
    /// Checks ranges that come as data of a command, after the plan; bytes behind them are cut off. Returns the bytes of the
    /// blocks that the backend has to hold at once.
    pub(super) fn check_ranges(
        &self,
        (subsystem, nsid): (Option<usize>, u32),
        operation: &NvmCommand,
        data: &mut Vec<u8>,
    ) -> Result<u32, Status> {
        if !matches!(operation, NvmCommand::DatasetManagement { .. } | NvmCommand::Copy { .. }) {
            return Ok(0);
        }
        let outside = Status::LBA_OUT_OF_RANGE.do_not_retry();
        let namespace = subsystem.and_then(|subsystem| self.subsystems[subsystem].namespace(nsid));
        let namespace = namespace.ok_or(outside)?;
        data.truncate(operation.data_bytes(namespace.block_bytes()) as usize);
        if let NvmCommand::Copy { first, protection, .. } = *operation {
            for range in CopyRange::decode_all(data).filter(|_| namespace.metadata.is_protection()) {
                let asked = Protection::of_source(protection & 0xF, &range);
                asked.admit(namespace.metadata, range.range().lba).map_err(Status::do_not_retry)?;
            }
            return check_copy(first, CopyRange::decode_all(data), namespace, &self.limits);
        }
        let limits = namespace.limits();
        // An empty range is allowed.
        let fits = DsmRange::decode_all(data).all(|range| limits.contain(range.lba.get(), range.blocks.get()));
        if fits { Ok(0) } else { Err(outside) }
    }
}

/// Whether a Copy to `first` may be carried out; returns the bytes of its longest range.
fn check_copy(
    first: u64,
    sources: impl Iterator<Item = CopyRange>,
    namespace: &Namespace,
    limits: &Limits,
) -> Result<u32, Status> {
    let most = limits.copy(namespace.block_log2);
    let (mut longest, mut blocks, mut is_inside) = (0, 0, true);
    for range in sources.map(|source| source.range()) {
        longest = longest.max(range.blocks);
        blocks += range.blocks;
        is_inside &= namespace.limits().contain(range.lba, range.blocks);
    }
    if longest > most.range_blocks.into() || blocks > most.blocks {
        return Err(Status::COMMAND_SIZE_LIMIT.do_not_retry());
    }
    if !is_inside || !namespace.limits().contain(first, blocks) {
        return Err(Status::LBA_OUT_OF_RANGE.do_not_retry());
    }
    Ok(longest * (namespace.block_bytes() + namespace.metadata.bytes()))
}
