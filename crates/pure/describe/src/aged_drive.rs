//! Files of aged drives: what a drive has become, for any run on a drive of the same shape to start from.
//!
//! A file is bytes: the magic word, the shape of the drive, the hash of the scenario that aged it and a note, then the
//! state of the translation layer ([`AgedState`]), all as variable-length integers of seven bits a byte; at the end a
//! hash of all bytes before. Its keeper compresses it: the places of sequential data differ by one.

use flashyard_flash::{Geometry, SLOT_BYTES};
use flashyard_ftl::{AgedState, FtlCounters, RecoveryError};
use flashyard_served::codec::{hash_of_bytes, number, put_contents, take, take_contents};
use flashyard_ssd::DriveConfig;

const MAGIC: &[u8] = b"flashyard aged drive 2\n";

/// Bytes of the hash at the end.
const HASH_BYTES: usize = 8;

/// Numbers of 32 bits take five bytes at most, those of 64 bits ten. A slot is in the contents with its place and its
/// owner, perhaps as lost, and perhaps as remapped with its owner.
const BYTES_OF_SLOT: u64 = 5 * 5;
/// Seven numbers in the contents, one in each of four lists.
const BYTES_OF_SUPERBLOCK: u64 = 11 * 10;
/// Everything else, with a note of any sensible length. Source: \[A\]
const BYTES_OF_HEAD: u64 = 1 << 20;

/// A drive that has aged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgedDrive {
    /// How its flash is divided.
    pub geometry: Geometry,
    /// Slots of 4 KiB that it exports.
    pub logical_slots: u32,
    /// Hash of the scenario that aged it, with its profiles, as text.
    pub scenario: u64,
    /// Where it comes from, for people.
    pub note: String,
    /// Its aged state.
    pub state: AgedState,
}

/// Why no drive starts from an aged state.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AgedDriveError {
    /// Other bytes.
    #[error("these bytes are no aged drive of version 2; make one with flashyard age --save")]
    Magic,
    /// Bytes are missing, or are not those that were written.
    #[error("the aged drive is cut short or damaged")]
    Damaged,
    /// The file was made for another drive.
    #[error("the aged drive ({note}) has {name} = {aged}, and the drive has {wanted}; age one of the same shape")]
    Shape {
        /// The note of the file.
        note: String,
        /// The parameter that differs.
        name: &'static str,
        /// In the file.
        aged: u32,
        /// Of the drive that was to start from it.
        wanted: u32,
    },
    /// The contents contradict themselves.
    #[error("the aged drive cannot be")]
    State(#[from] RecoveryError),
}

impl AgedDrive {
    /// A drive of this shape and state, aged by the scenario of this text.
    pub fn new(geometry: &Geometry, logical_slots: u32, scenario: &str, note: String, state: AgedState) -> Self {
        Self { geometry: *geometry, logical_slots, scenario: hash_of_bytes(scenario.as_bytes()), note, state }
    }

    /// Bytes that a drive of this shape takes at most.
    pub fn most_bytes(geometry: &Geometry) -> u64 {
        let &Geometry {
            channels, dies_per_channel, planes_per_die, blocks_per_plane, pages_per_block, page_bytes, ..
        } = geometry;
        let counts = [channels, dies_per_channel, planes_per_die, blocks_per_plane, pages_per_block, page_bytes];
        let flash_bytes = counts.iter().fold(1, |product: u64, &count| product.saturating_mul(count.into()));
        let slots = flash_bytes / u64::from(SLOT_BYTES);
        let for_superblocks = u64::from(blocks_per_plane).saturating_mul(BYTES_OF_SUPERBLOCK);
        slots.saturating_mul(BYTES_OF_SLOT).saturating_add(for_superblocks).saturating_add(BYTES_OF_HEAD)
    }

    /// The drive as bytes.
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        self.shape().iter().for_each(|&(_, count)| number(&mut bytes, count.into()));
        number(&mut bytes, self.scenario);
        number(&mut bytes, self.note.len() as u64);
        bytes.extend_from_slice(self.note.as_bytes());
        let AgedState { contents, erased, closed, retiring, reads, remapped, counters, degraded } = &self.state;
        put_contents(&mut bytes, std::slice::from_ref(contents));
        for list in [erased, closed, retiring, reads] {
            number(&mut bytes, list.len() as u64);
            list.iter().for_each(|&entry| number(&mut bytes, entry.into()));
        }
        number(&mut bytes, remapped.len() as u64);
        for &(slot, logical) in remapped {
            number(&mut bytes, slot.into());
            number(&mut bytes, logical.into());
        }
        counters_of(counters).iter().for_each(|&count| number(&mut bytes, count));
        bytes.push(u8::from(*degraded));
        let hash = hash_of_bytes(&bytes);
        bytes.extend_from_slice(&hash.to_le_bytes());
        bytes
    }

    /// The drive of these bytes.
    ///
    /// Errors: bytes of something else, bytes that are missing or damaged.
    pub fn decode(bytes: &[u8]) -> Result<Self, AgedDriveError> {
        let inner = bytes.strip_prefix(MAGIC).ok_or(AgedDriveError::Magic)?;
        let end = inner.len().checked_sub(HASH_BYTES).ok_or(AgedDriveError::Damaged)?;
        let (mut inner, hash) = inner.split_at(end);
        if hash != hash_of_bytes(&bytes[..bytes.len() - HASH_BYTES]).to_le_bytes() {
            return Err(AgedDriveError::Damaged);
        }
        let drive = Self::take(&mut inner).ok_or(AgedDriveError::Damaged)?;
        if inner.is_empty() { Ok(drive) } else { Err(AgedDriveError::Damaged) }
    }

    fn take(bytes: &mut &[u8]) -> Option<Self> {
        let mut count = || u32::try_from(take(bytes)?).ok();
        let geometry = Geometry {
            channels: count()?,
            dies_per_channel: count()?,
            planes_per_die: count()?,
            blocks_per_plane: count()?,
            pages_per_block: count()?,
            page_bytes: count()?,
            pages_per_program: count()?,
        };
        let logical_slots = count()?;
        let scenario = take(bytes)?;
        let length = usize::try_from(take(bytes)?).ok()?;
        let (note, rest) = bytes.split_at_checked(length)?;
        *bytes = rest;
        let note = String::from_utf8(note.to_vec()).ok()?;
        let contents = take_contents(bytes)?.pop()?;
        let (erased, closed) = (list(bytes)?, list(bytes)?);
        let (retiring, reads) = (list(bytes)?, list(bytes)?);
        let pairs = take(bytes)?;
        let mut half = || u32::try_from(take(bytes)?).ok();
        let remapped = (0..pairs).map(|_| Some((half()?, half()?))).collect::<Option<_>>()?;
        let counters = take_counters(bytes)?;
        let (&degraded, rest) = bytes.split_first()?;
        *bytes = rest;
        let degraded = degraded == 1;
        let state = AgedState { contents, erased, closed, retiring, reads, remapped, counters, degraded };
        Some(Self { geometry, logical_slots, scenario, note, state })
    }

    /// Whether a drive of `config` can start from this one.
    ///
    /// Errors: the first number in which the two differ.
    pub fn check(&self, config: &DriveConfig) -> Result<(), AgedDriveError> {
        let wanted = shape(&config.data_geometry(), config.ftl.logical_slots);
        match self.shape().into_iter().zip(wanted).find(|(aged, wanted)| aged != wanted) {
            None => Ok(()),
            Some(((name, aged), (_, wanted))) => {
                Err(AgedDriveError::Shape { note: self.note.clone(), name, aged, wanted })
            }
        }
    }

    fn shape(&self) -> [(&'static str, u32); 8] {
        shape(&self.geometry, self.logical_slots)
    }
}

/// Parameters that have to agree, by their names in scenarios.
fn shape(geometry: &Geometry, logical_slots: u32) -> [(&'static str, u32); 8] {
    [
        ("channels", geometry.channels),
        ("dies_per_channel", geometry.dies_per_channel),
        ("planes_per_die", geometry.planes_per_die),
        ("blocks_per_plane", geometry.blocks_per_plane),
        ("pages_per_block", geometry.pages_per_block),
        ("page_size", geometry.page_bytes),
        ("pages_per_program", geometry.pages_per_program),
        ("exported slots", logical_slots),
    ]
}

fn list(bytes: &mut &[u8]) -> Option<Vec<u32>> {
    (0..take(bytes)?).map(|_| u32::try_from(take(bytes)?).ok()).collect()
}

fn counters_of(counters: &FtlCounters) -> [u64; 8] {
    [
        counters.host_slots,
        counters.moved_slots,
        counters.leveled_slots,
        counters.padded_slots,
        counters.trimmed_slots,
        counters.erased_superblocks,
        counters.leveled_superblocks,
        counters.retired_superblocks,
    ]
}

fn take_counters(bytes: &mut &[u8]) -> Option<FtlCounters> {
    Some(FtlCounters {
        host_slots: take(bytes)?,
        moved_slots: take(bytes)?,
        leveled_slots: take(bytes)?,
        padded_slots: take(bytes)?,
        trimmed_slots: take(bytes)?,
        erased_superblocks: take(bytes)?,
        leveled_superblocks: take(bytes)?,
        retired_superblocks: take(bytes)?,
        // Ageing reads nothing.
        refreshed_superblocks: 0,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use flashyard_ftl::{Ftl, FtlConfig};
    use flashyard_kernel::Rng;
    use flashyard_nand::CountingMedium;
    use proptest::prelude::*;

    fn drive(writes: u32) -> AgedDrive {
        let geometry = Geometry {
            channels: 1,
            dies_per_channel: 2,
            planes_per_die: 1,
            blocks_per_plane: 12,
            pages_per_block: 6,
            page_bytes: 2 * SLOT_BYTES,
            pages_per_program: 1,
        };
        let config = FtlConfig { logical_slots: 150, filled_slots: 120, remap_entries: 8, ..FtlConfig::default() };
        let mut ftl = Ftl::new(&geometry, config).expect("the small drive fits");
        let (mut rng, mut medium) = (Rng::named(1, "test"), CountingMedium::default());
        for _ in 0..writes {
            ftl.age_write(rng.below(150) as u32, 0, &mut medium).expect("nothing wears out");
        }
        ftl.remap(3, 4).expect("both hold data");
        ftl.count_read(ftl.lookup(3));
        let state = ftl.aged_state();
        AgedDrive { geometry, logical_slots: 150, scenario: 77, note: "small, 3 drive writes".to_owned(), state }
    }

    #[test]
    fn an_aged_drive_comes_back_from_its_bytes() {
        for writes in [0, 100, 5_000] {
            let drive = drive(writes);
            let bytes = drive.encode();
            let slots = 12 * 12 * 2;
            assert!(bytes.len() as u64 <= AgedDrive::most_bytes(&drive.geometry) - BYTES_OF_HEAD);
            assert_eq!(AgedDrive::most_bytes(&drive.geometry), slots * 25 + 12 * 110 + (1 << 20));
            assert_eq!(AgedDrive::decode(&bytes), Ok(drive));
        }
    }

    proptest! {
        #[test]
        fn damaged_bytes_are_found_out(place: prop::sample::Index, change in 1_u8..=255, cut: prop::sample::Index) {
            let bytes = drive(1_000).encode();
            let mut damaged = bytes.clone();
            damaged[place.index(bytes.len())] ^= change;
            prop_assert!(AgedDrive::decode(&damaged).is_err());
            prop_assert!(AgedDrive::decode(&bytes[..cut.index(bytes.len())]).is_err());
        }
    }

    proptest! {
        #[test]
        fn a_drive_that_cannot_be_is_refused_in_words(
            changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        ) {
            let drive = drive(300);
            let mut bytes = drive.encode();
            let end = bytes.len() - HASH_BYTES;
            for (place, byte) in changes {
                bytes[MAGIC.len() + place.index(end - MAGIC.len())] = byte;
            }
            // As if it had been written like this: the hash finds nothing.
            let hash = hash_of_bytes(&bytes[..end]).to_le_bytes();
            bytes[end..].copy_from_slice(&hash);
            if let Ok(changed) = AgedDrive::decode(&bytes) {
                let config = FtlConfig { logical_slots: 150, remap_entries: 8, ..FtlConfig::default() };
                match Ftl::from_aged(&drive.geometry, config, &changed.state) {
                    Ok(ftl) => ftl.check(),
                    Err(error) => prop_assert!(!error.to_string().is_empty()),
                }
            }
        }
    }

    #[test]
    fn other_bytes_are_named() {
        assert_eq!(AgedDrive::decode(b"PAR1"), Err(AgedDriveError::Magic));
    }
}
