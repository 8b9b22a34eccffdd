//! Commands on their way to the backend: the last checks once their data is there, and what zones make of them.

use super::directory::Target;
use super::edition::Edition;
use super::effects::Command;
use super::slots::{Slot, Tag, Work};
use super::zones::Zones;
use flashyard_nvme::Status;
use flashyard_nvme::nvm::{BlockRange, CopyRange, DsmRange, NvmCommand};
use flashyard_nvme::zone::ZoneState;
use zerocopy::IntoBytes;

/// A command that may be carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Admitted {
    /// By the backend, as this operation.
    Backend {
        operation: NvmCommand,
        /// Bytes of blocks that the backend holds at once.
        held_bytes: u32,
        /// Result of the completion of a Zone Append.
        result: u64,
    },
    /// It is done, and its data is in the buffer.
    Done,
}

/// Judges a command of the host of a controller whose data is complete. Zones change by this.
pub(super) fn admit(
    target: &mut Target,
    key: (usize, u64),
    (nsid, edition): (u32, Edition),
    operation: NvmCommand,
    payload: &mut Vec<u8>,
) -> Result<Admitted, Status> {
    let controller = target.controller(key);
    let is_attached = controller.as_ref().is_some_and(|controller| controller.has_namespace(nsid));
    let subsystem = controller.and_then(|controller| controller.subsystem);
    let namespace = subsystem.and_then(|subsystem| target.config.subsystems[subsystem].namespace(nsid));
    // Its data may have come while another host has detached or deleted the namespace, and created one under its number.
    if !is_attached || namespace.is_none_or(|namespace| namespace.serial != edition.serial) {
        return Err(Status::INVALID_NAMESPACE.do_not_retry());
    }
    // Its data may have come while another host has begun to format the namespace, or once that was over.
    let is_erasing = |subsystem: usize| target.figures[subsystem].erasure.refusal(nsid);
    let is_erased = |subsystem: usize| target.epochs.refusal((subsystem, nsid), edition.epoch);
    if let Some(status) = subsystem.and_then(|subsystem| is_erasing(subsystem).or_else(|| is_erased(subsystem))) {
        return Err(status);
    }
    let held_bytes = target.config.check_ranges((subsystem, nsid), &operation, payload)?;
    // It may have waited for its data while another host has taken a reservation.
    if target.is_reserved(key, nsid, operation.is_read_to_reservations()) {
        return Err(Status::RESERVATION_CONFLICT.do_not_retry());
    }
    let zones = subsystem.and_then(|subsystem| target.zones.get_mut(&(subsystem, nsid)));
    let Some(zones) = zones else { return Ok(Admitted::Backend { operation, held_bytes, result: 0 }) };
    enter(zones, operation, held_bytes, payload).map_err(Status::do_not_retry)
}

/// The operation that the command of a slot has become, with the bytes that are held for its answer, as the backend gets it.
pub(super) fn for_backend(
    slot: &Slot,
    tag: Tag,
    subsystem: usize,
    (operation, held_bytes): (NvmCommand, u32),
    payload: Vec<u8>,
) -> Command {
    let Slot { nsid, edition, protection, expected: data_bytes, .. } = *slot;
    Command { tag, subsystem, nsid, edition, operation, protection, data_bytes, held_bytes, payload, second: None }
}

/// One half of a fused operation whose data is complete, as the backend gets it.
///
/// Errors: its status.
pub(super) fn admit_half(
    target: &mut Target,
    key: (usize, u64),
    subsystem: usize,
    slot: Option<&mut Slot>,
    tag: Tag,
) -> Result<Command, Status> {
    let slot = slot.ok_or(Status::INTERNAL)?;
    let (Work::Nvm(operation), None) = (slot.work, slot.failure) else {
        return Err(slot.failure.unwrap_or(Status::INTERNAL));
    };
    let mut payload = std::mem::take(&mut slot.payload);
    match admit(target, key, (slot.nsid, slot.edition), operation, &mut payload)? {
        Admitted::Backend { operation, held_bytes, .. } => {
            Ok(for_backend(slot, tag, subsystem, (operation, held_bytes), payload))
        }
        Admitted::Done => Err(Status::INTERNAL),
    }
}

/// Finds the zones of `subsystem` (its place in the configuration) by the blocks that its drive holds: as the drive starts,
/// and when it has lost its power. Hosts must have no command under way.
pub fn restore_zones(target: &mut Target, subsystem: usize, mut is_written: impl FnMut(u64) -> bool) {
    for (_, zones) in target.zones.range_mut((subsystem, 0)..=(subsystem, u32::MAX)) {
        zones.restore(&mut is_written);
    }
}

/// Puts the zone that holds `lba` into the state Read Only or Offline: its drive can write it, or read it, no more.
pub fn give_up_zone(target: &mut Target, subsystem: usize, nsid: u32, lba: u64, state: ZoneState) {
    if let Some(zones) = target.zones.get_mut(&(subsystem, nsid)) {
        zones.give_up(lba, state);
    }
}

/// Turns a command of a zoned namespace into one for the backend, or carries it out.
fn enter(zones: &mut Zones, operation: NvmCommand, held_bytes: u32, payload: &mut Vec<u8>) -> Result<Admitted, Status> {
    let backend = |operation, result| Ok(Admitted::Backend { operation, held_bytes, result });
    match operation {
        NvmCommand::Write { range, .. } => zones.write(range)?,
        // The write pointer of a drive that starts again is behind its last mapped block: zeros are mapped.
        NvmCommand::WriteZeroes { range, fua, .. } => {
            zones.write(range)?;
            return backend(NvmCommand::WriteZeroes { range, deallocate: false, fua }, 0);
        }
        NvmCommand::Copy { first, .. } => {
            let sources: Vec<BlockRange> = CopyRange::decode_all(payload).map(|source| source.range()).collect();
            sources.iter().try_for_each(|&source| zones.read(source))?;
            let blocks = sources.iter().map(|source| source.blocks).sum();
            zones.write(BlockRange { lba: first, blocks })?;
        }
        NvmCommand::ZoneAppend { range, fua } => {
            let lba = zones.append(range)?;
            return backend(NvmCommand::Write { range: BlockRange { lba, ..range }, fua }, lba);
        }
        NvmCommand::Read { range, .. } | NvmCommand::Compare { range, .. } | NvmCommand::Verify { range, .. } => {
            zones.read(range)?;
        }
        // A hint, which a controller may leave alone: for the same reason.
        NvmCommand::DatasetManagement { .. } => return Ok(Admitted::Done),
        NvmCommand::ZoneManagementReceive { first, receive } => {
            zones.report(first, &receive, payload)?;
            return Ok(Admitted::Done);
        }
        NvmCommand::ZoneManagementSend { first, action, all } => {
            let ranges = zones.send(first, action, all)?;
            if ranges.is_empty() {
                return Ok(Admitted::Done);
            }
            payload.extend(ranges.iter().flat_map(|&range| DsmRange::new(range).as_bytes().to_vec()));
        }
        NvmCommand::Flush | NvmCommand::WriteUncorrectable { .. } | NvmCommand::Remap { .. } => {}
    }
    backend(operation, 0)
}
