//! Volumes that hosts of one front end have reserved, for the others: their clients are no hosts, and count as such that are
//! not registered.

use flashyard_blk::{Operation, VolumeRequest};
use flashyard_nvmf::target::{KeptReservations, Strangers};
use flashyard_units::VolumeId;
use std::collections::BTreeMap;

/// Reserved volumes: the front end that knows the hosts, and the requests that clients of others may make.
#[derive(Debug, Default)]
pub(crate) struct Reserved(BTreeMap<VolumeId, (usize, Strangers)>);

impl Reserved {
    pub(crate) fn set(&mut self, volume: VolumeId, front: usize, strangers: Strangers) {
        match strangers {
            Strangers::All => self.0.remove(&volume),
            _ => self.0.insert(volume, (front, strangers)),
        };
    }

    /// Whether a client of this front end may not make the request. A flush changes nothing, and may belong to a write that
    /// was taken before.
    pub(crate) fn keeps_out(&self, front: usize, request: &VolumeRequest) -> bool {
        let Some(&(knowing, strangers)) = self.0.get(&request.volume) else { return false };
        knowing != front
            && match request.operation {
                Operation::Flush => false,
                Operation::Read => strangers == Strangers::Nothing,
                _ => true,
            }
    }
}

/// The record of reservations that outlast a loss of power: what the target makes of them, and a checksum over it.
pub(crate) fn record_of(kept: &KeptReservations) -> Vec<u8> {
    let mut bytes = kept.encode();
    let check = crc32c::crc32c(&bytes);
    bytes.extend_from_slice(&check.to_le_bytes());
    bytes
}

/// The reverse of [`record_of`]; `None` for bytes that are no such record.
pub(crate) fn kept_in(record: &[u8]) -> Option<KeptReservations> {
    let (bytes, check) = record.split_last_chunk::<4>()?;
    KeptReservations::decode(bytes).filter(|_| crc32c::crc32c(bytes).to_le_bytes() == *check)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_of_other_front_ends_are_kept_out_as_far_as_the_reservation_goes() {
        const VOLUME: VolumeId = VolumeId::new(3);
        let mut reserved = Reserved::default();
        let kept_out = |reserved: &Reserved, front, volume| {
            [Operation::Read, Operation::Write, Operation::Trim, Operation::Remap, Operation::Flush].map(|operation| {
                reserved.keeps_out(front, &VolumeRequest { volume, operation, first: 0, count: 1, source: 9 })
            })
        };
        assert_eq!(kept_out(&reserved, 1, VOLUME), [false; 5]);
        reserved.set(VOLUME, 0, Strangers::Reads);
        assert_eq!(kept_out(&reserved, 1, VOLUME), [false, true, true, true, false]);
        reserved.set(VOLUME, 0, Strangers::Nothing);
        assert_eq!(kept_out(&reserved, 1, VOLUME), [true, true, true, true, false]);
        assert_eq!(kept_out(&reserved, 0, VOLUME), [false; 5], "the front end that knows its hosts judges by itself");
        assert_eq!(kept_out(&reserved, 1, VolumeId::new(2)), [false; 5]);
        reserved.set(VOLUME, 0, Strangers::All);
        assert_eq!(kept_out(&reserved, 1, VOLUME), [false; 5]);
    }
}
