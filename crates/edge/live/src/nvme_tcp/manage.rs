//! Namespaces of drives, between what hosts ask for and what the engine does.

use crate::media::BlockFormat;
use crate::namespaces::{Manage, ManageError, NamespaceInfo};
use flashyard_nvme::{NSID_ALL, Status};
use flashyard_nvmf::target::{
    Attach, Demand, Namespace, NewNamespace, Target, Wish, attach_controllers, settle_with, settle_without_room,
};

/// The change that a host asks for, if it asks for one.
pub(super) fn wanted(wish: &Wish) -> Option<Manage> {
    match wish {
        Wish::Create(NewNamespace { blocks, block_log2, metadata, is_private }) => {
            let block = BlockFormat { data_bytes: 1 << block_log2, metadata: *metadata };
            Some(Manage::Create { blocks: *blocks, block, is_private: *is_private })
        }
        Wish::Delete { nsid } => Some(Manage::Delete { nsid: Some(*nsid).filter(|&nsid| nsid != NSID_ALL) }),
        Wish::Attach(Attach { nsid, attachment, .. }) => {
            Some(Manage::Attach { nsid: *nsid, attachment: attachment.clone() })
        }
        _ => None,
    }
}

/// Whether a namespace has come or gone because of what this host has asked for.
pub(super) fn explains(demand: &Demand, subsystem: usize, nsid: u32) -> bool {
    let is_it = match demand.wish {
        Wish::Delete { nsid: deleted } => deleted == nsid || deleted == NSID_ALL,
        _ => false,
    };
    is_it && demand.subsystem == subsystem
}

/// Tells a host what has come of what it asked for.
pub(super) fn settle(target: &mut Target, demand: &Demand, done: Result<u32, ManageError>) {
    let status = match done {
        Ok(nsid) => {
            attach_controllers(target, demand);
            let result = if matches!(demand.wish, Wish::Create(_)) { nsid } else { 0 };
            return settle_with(target, demand, Status::SUCCESS, result.into());
        }
        Err(ManageError::NoRoom { needed_bytes, .. }) => return settle_without_room(target, demand, needed_bytes),
        Err(ManageError::NoIdentifier) => Status::NAMESPACE_IDENTIFIER_UNAVAILABLE,
        Err(ManageError::Unknown(_)) => Status::INVALID_NAMESPACE,
        Err(error @ (ManageError::Refused(_) | ManageError::NotKept(_) | ManageError::Size)) => {
            tracing::warn!(%error, "the namespaces of a drive stay as they are");
            Status::OPERATION_DENIED
        }
    };
    target.settle(demand, status.do_not_retry());
}

/// A namespace of a drive whose first one is `template`. One that a host has created has identifiers that no other has had.
pub(super) fn namespace(template: &Namespace, info: NamespaceInfo) -> Namespace {
    let NamespaceInfo { nsid, serial, is_private, attachment, .. } = info;
    let mut namespace = Namespace { nsid, serial, is_private, attachment, ..template.clone() };
    if serial > 0 {
        namespace.uuid = mixed(&template.uuid, serial, b"uuid");
        // A UUID of version 8: of our own making.
        namespace.uuid[6] = 0x80 | (namespace.uuid[6] & 0x0F);
        namespace.uuid[8] = 0x80 | (namespace.uuid[8] & 0x3F);
        namespace.nguid = mixed(&template.uuid, serial, b"nguid");
    }
    namespace
}

/// Bytes that follow from those of a template, a number and a word.
fn mixed(template: &[u8; 16], serial: u32, word: &[u8]) -> [u8; 16] {
    let mut state = 0xCBF2_9CE4_8422_2325_u64;
    let mut bytes = [0; 16];
    for (place, byte) in (0..).zip(&mut bytes) {
        for &part in template.iter().chain(&serial.to_le_bytes()).chain(word).chain([&place]) {
            state = (state ^ u64::from(part)).wrapping_mul(0x0100_0000_01B3);
        }
        *byte = (state >> 56) as u8;
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use flashyard_nvmf::target::Attachment;
    use flashyard_units::VolumeId;

    #[test]
    fn every_namespace_that_was_ever_created_has_identifiers_of_its_own() {
        let template = Namespace { uuid: [7; 16], ..Namespace::new(1, 8, 12) };
        let of = |serial| {
            let attachment = Attachment::NONE;
            let info = NamespaceInfo { nsid: 1, serial, volume: VolumeId::new(0), is_private: false, attachment };
            namespace(&template, info)
        };
        let first = of(0);
        assert_eq!((first.uuid, first.nguid), ([7; 16], [0; 16]));
        let mut seen = std::collections::BTreeSet::from([first.uuid]);
        for serial in 1..500 {
            let found = of(serial);
            assert!(seen.insert(found.uuid) && seen.insert(found.nguid), "{serial}");
        }
    }
}
