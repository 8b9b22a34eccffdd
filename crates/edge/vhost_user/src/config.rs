//! The device as a guest sees it: features and the configuration space. Source: virtio 1.2 §5.2.3 to §5.2.5.

use flashyard_blk::VolumeInfo;

/// Bytes of a sector of virtio, whatever blocks a device has.
pub(crate) const SECTOR_BYTES: u64 = 512;

/// Queues of a disk at most. Source: \[A\] more than guests here have processors.
pub(crate) const QUEUES_MAX: usize = 16;
/// Entries of a queue at most. Source: \[A\] QEMU takes 128 without a word.
pub(crate) const QUEUE_ENTRIES_MAX: u16 = 1024;
/// Data descriptors of a request at most. Source: \[A\] a queue of 128 entries, without header and status.
const SEGMENTS_MAX: u32 = 126;
/// Bytes of a request that are offered at most, where the volume takes more. Source: \[A\] 1 MiB.
const REQUEST_BYTES_MAX: u64 = 1 << 20;
/// Bytes of a request that are taken at most. A guest that has not agreed on `SIZE_MAX` and `SEG_MAX` need not keep to what is
/// offered (virtio 1.2 §5.2.6.1): firmware reads a kernel at once. Source: \[A\] what NBD takes at once.
const TAKEN_BYTES_MAX: u64 = 32 << 20;

/// Bits of features. Source: virtio 1.2 §5.2.3 and §6; bit 30 is the vhost-user protocol's own.
const SIZE_MAX: u64 = 1 << 1;
const SEG_MAX: u64 = 1 << 2;
const READ_ONLY: u64 = 1 << 5;
const BLK_SIZE: u64 = 1 << 6;
/// The guest may ask for a flush; one that cannot takes every write as durable.
pub(crate) const FLUSH: u64 = 1 << 9;
const MQ: u64 = 1 << 12;
const DISCARD: u64 = 1 << 13;
const WRITE_ZEROES: u64 = 1 << 14;
const INDIRECT: u64 = 1 << 28;
/// Interrupts and kicks by index.
pub(crate) const EVENT_IDX: u64 = 1 << 29;
/// Rings begin disabled, and features of the protocol are agreed on.
pub(crate) const PROTOCOL_FEATURES: u64 = 1 << 30;
const VERSION_1: u64 = 1 << 32;

/// Everything that a guest of `volume` is offered.
pub(crate) fn features(volume: &VolumeInfo) -> u64 {
    if volume.limits.read_only { FEATURES & !(DISCARD | WRITE_ZEROES) | READ_ONLY } else { FEATURES }
}

/// Everything that there is for disks that can be written.
const FEATURES: u64 = SIZE_MAX
    | SEG_MAX
    | BLK_SIZE
    | FLUSH
    | MQ
    | DISCARD
    | WRITE_ZEROES
    | INDIRECT
    | EVENT_IDX
    | PROTOCOL_FEATURES
    | VERSION_1;

/// Bytes of the configuration space. Source: virtio 1.2 §5.2.4, up to the fields of secure erase, which is not offered.
const SPACE_BYTES: usize = 60;

/// Data descriptors of a request for a volume, and bytes of each: together no more than the volume takes at once.
fn segments(volume: &VolumeInfo) -> (u32, u32) {
    let block = u64::from(volume.block_bytes);
    let most = (u64::from(volume.limits.request_blocks) * block).min(REQUEST_BYTES_MAX).max(block);
    let count = u64::from(SEGMENTS_MAX).min(most / block);
    ((count as u32), ((most / count / block).max(1) * block) as u32)
}

/// Bytes of a request that are taken at most where all clients together may hold `in_flight_bytes`: what is offered always is.
pub(crate) fn request_bytes_max(in_flight_bytes: u64, block_bytes: u32) -> u64 {
    in_flight_bytes.clamp(REQUEST_BYTES_MAX, TAKEN_BYTES_MAX).max(block_bytes.into())
}

/// The configuration space of a volume's disk.
pub(crate) fn space(volume: &VolumeInfo) -> [u8; SPACE_BYTES] {
    let mut space = [0; SPACE_BYTES];
    let mut put = |at: usize, bytes: &[u8]| space[at..at + bytes.len()].copy_from_slice(bytes);
    let (segments_max, size_max) = segments(volume);
    let sectors_of_block = volume.block_bytes / SECTOR_BYTES as u32;
    let most_sectors = volume.limits.request_blocks.saturating_mul(sectors_of_block);
    put(0, &(volume.size_bytes() / SECTOR_BYTES).to_le_bytes());
    put(8, &size_max.to_le_bytes());
    put(12, &segments_max.to_le_bytes());
    put(20, &volume.block_bytes.to_le_bytes());
    put(34, &(QUEUES_MAX as u16).to_le_bytes());
    // Discards: sectors at most, one range a request, in whole blocks; then zeroes, which may deallocate.
    put(36, &most_sectors.to_le_bytes());
    put(40, &1_u32.to_le_bytes());
    put(44, &sectors_of_block.to_le_bytes());
    put(48, &most_sectors.to_le_bytes());
    put(52, &1_u32.to_le_bytes());
    put(56, &[1]);
    space
}

#[cfg(test)]
mod tests {
    use super::*;
    use flashyard_blk::VolumeLimits;
    use flashyard_units::VolumeId;

    #[test]
    fn requests_within_the_offered_segments_are_within_the_volume() {
        for request_blocks in [1, 2, 7, 126, 127, 256, 1000, u32::MAX] {
            let limits = VolumeLimits { request_blocks, ..VolumeLimits::new(1 << 20, false) };
            let volume = VolumeInfo { id: VolumeId::new(0), block_bytes: 4096, limits, protected: true };
            let (count, bytes) = segments(&volume);
            let most = u64::from(count) * u64::from(bytes);
            assert!(count > 0 && bytes % 4096 == 0 && bytes > 0, "{request_blocks}: {count} of {bytes}");
            assert!(most <= u64::from(request_blocks) * 4096, "{request_blocks}: {count} of {bytes}");
            let space = space(&volume);
            assert_eq!(space[..8], (8_u64 << 20).to_le_bytes(), "sectors of 512 bytes");
            assert_eq!(space[20..24], 4096_u32.to_le_bytes());
        }
    }

    #[test]
    fn a_disk_that_is_read_only_says_so() {
        let limits = VolumeLimits { read_only: true, ..VolumeLimits::new(64, false) };
        let volume = VolumeInfo { id: VolumeId::new(0), block_bytes: 4096, limits, protected: true };
        assert_eq!(features(&volume) & (READ_ONLY | DISCARD | WRITE_ZEROES | FLUSH), READ_ONLY | FLUSH);
    }
}
