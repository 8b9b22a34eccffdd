//! Commands as requests to volumes, and the statuses of those that a volume does not take.

use flashyard_blk::{Operation, RequestError, VolumeRequest};
use flashyard_nvme::Status;
use flashyard_nvme::nvm::NvmCommand;
use flashyard_units::VolumeId;

/// The request to its namespace, as a volume, that a command makes; `None` for those that name no range, or name ranges in their data.
pub(crate) fn request_of(command: &NvmCommand) -> Option<VolumeRequest> {
    let range = command.range()?;
    let (operation, source) = match *command {
        NvmCommand::Remap { source, .. } => (Operation::Remap, source),
        _ if command.is_write() => (Operation::Write, 0),
        _ => (Operation::Read, 0),
    };
    Some(VolumeRequest { volume: VolumeId::default(), operation, first: range.lba, count: range.blocks, source })
}

/// The status of a command that a volume does not take.
pub(crate) fn status_of(error: RequestError) -> Status {
    let status = match error {
        RequestError::Range { .. } => Status::LBA_OUT_OF_RANGE,
        RequestError::Unsupported { .. } => Status::INVALID_OPCODE,
        RequestError::Overlap { .. } | RequestError::TooLong { .. } | RequestError::Payload { .. } => {
            Status::INVALID_FIELD
        }
    };
    status.do_not_retry()
}
