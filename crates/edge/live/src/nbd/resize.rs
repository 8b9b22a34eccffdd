//! Exports that become larger and smaller: RESIZE of the experimental extension, and the size that clients find.

use super::Nbd;
use crate::front::Context;
use crate::namespaces::{Manage, ManageError};
use flashyard_blk::VolumeInfo;
use flashyard_nbd::{ErrorCode, Export, Failure, REPLY_BYTES, Request};
use flashyard_units::VolumeId;

/// Whether a volume may become larger and smaller while it is served: it is a namespace of a drive without zones.
pub(super) fn can_resize(volume: VolumeId, context: &Context<'_>) -> bool {
    let drive = context.drive_volume(volume);
    context.can_divide(drive) && !context.zoned.contains(&drive)
}

/// An export has the size and the blocks of its volume now.
pub(super) fn set_size(export: &mut Export, now: &VolumeInfo) {
    (export.size_bytes, export.block_bytes) = (now.size_bytes(), now.block_bytes);
    export.size_max_bytes = export.size_max_bytes.max(export.size_bytes);
}

/// An export begins with the size and the blocks of its volume.
pub(super) fn set_first_size(export: &mut Export, now: &VolumeInfo) {
    export.size_max_bytes = 0;
    set_size(export, now);
}

fn failure_of(error: &ManageError) -> Failure {
    match error {
        ManageError::NoRoom { .. } => Failure::new(ErrorCode::NoSpace, "the drive has not so much free space"),
        ManageError::Size => Failure::new(ErrorCode::Invalid, "a size is a multiple of 4 KiB, and not 0"),
        ManageError::NotKept(_) => Failure::new(ErrorCode::Io, "the new size cannot be kept"),
        ManageError::Refused(why) => Failure::new(ErrorCode::NotPermitted, why),
        ManageError::NoIdentifier | ManageError::Unknown(_) => {
            Failure::new(ErrorCode::NotPermitted, "there is no such namespace any more")
        }
    }
}

impl Nbd {
    /// Asks for another size of an export, which is answered at the end. The present one is there already.
    pub(super) fn resize(&mut self, place: usize, request: &Request, cost: usize, context: &mut Context<'_>) {
        let Request { cookie, export, offset_bytes: bytes, .. } = *request;
        let volume = self.volumes[export].id;
        let number = self.resizes.begin(place, cost, cookie) as u64;
        if bytes == self.exports[export].size_bytes {
            return self.resized(number, Ok(0));
        }
        let (drive, nsid) = (context.drive_volume(volume), context.nsid_of(volume));
        context.manage(number, drive, Manage::Resize { nsid, bytes });
    }

    /// An export has another size, or keeps the one that it has.
    pub(super) fn resized(&mut self, tag: u64, done: Result<u32, ManageError>) {
        let Some(ended) = self.resizes.end(tag as usize) else { return };
        let (Some(place), cookie) = (ended.place, ended.work) else { return };
        let Some(peer) = self.peers.get_mut(place) else { return };
        peer.ended(ended.cost);
        let form = peer.session.replies();
        peer.replies.append(REPLY_BYTES, |bytes| match done {
            Ok(_) => form.done(cookie, bytes),
            Err(error) => form.failed(cookie, &failure_of(&error), bytes),
        });
        self.dirty.mark(place);
    }
}
