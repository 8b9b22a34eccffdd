//! Any bytes as the file of an aged drive, with a hash that is right: what is read becomes a drive, or is refused.

#![no_main]

use flashyard_faults::Fingerprint;
use flashyard_ftl::{Ftl, FtlConfig};
use flashyard_describe::AgedDrive;
use libfuzzer_sys::fuzz_target;

const MAGIC: &[u8] = b"flashyard aged drive 2\n";

/// What the file ends with.
fn hash(bytes: &[u8]) -> u64 {
    let mut hash = Fingerprint::default();
    bytes.iter().for_each(|&byte| hash.step(byte.into()));
    hash.get()
}

fuzz_target!(|input: &[u8]| {
    let mut bytes = [MAGIC, input].concat();
    let hash = hash(&bytes);
    bytes.extend(hash.to_le_bytes());
    let Ok(drive) = AgedDrive::decode(&bytes) else { return };
    let slots = u64::from(drive.geometry.planes_per_die) * u64::from(drive.geometry.blocks_per_plane);
    // Of the shapes that fit into memory; a scenario says which one it wants.
    if AgedDrive::most_bytes(&drive.geometry) < 8 << 20 && slots < 1 << 16 && drive.logical_slots > 0 {
        let config = FtlConfig { logical_slots: drive.logical_slots, ..FtlConfig::default() };
        if let Ok(ftl) = Ftl::from_aged(&drive.geometry, config, &drive.state) {
            ftl.check();
        }
    }
});
