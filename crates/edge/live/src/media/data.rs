//! Data that a read has found, as slices of the media.

use super::band::{Found, Record, State};
use super::drive::{DriveMedia, metadata_of};
use super::payload::BYTES;
use super::tuples::Entry;
use flashyard_flash::Slot;
use flashyard_nvme::protection::Tuple;

/// A slot whose superblock was erased before its reader was answered: the bytes that it was promised.
#[derive(Debug)]
pub(crate) struct Kept {
    pub(crate) place: u32,
    pub(crate) bytes: Box<[u8]>,
    /// The metadata of its blocks.
    pub(crate) metadata: Entry,
    /// Whether they had their checksum.
    pub(crate) is_whole: bool,
}

impl Kept {
    /// Bytes that `slot` holds now, for a read that wants them at `place`.
    pub(crate) fn of(media: &DriveMedia, place: u32, slot: Slot) -> Self {
        let metadata = metadata_of(media, slot);
        Self { place, bytes: media.slot(slot).into(), metadata, is_whole: media.is_whole(slot) }
    }
}

/// Whether a read of `slot` gives zeros, as far as that can be known without looking at bytes.
pub(crate) fn reads_as_zeros(media: &DriveMedia, slot: Slot) -> bool {
    let place = media.place_of(slot);
    if !place.is_some() {
        return !media.unkept.is_gone(slot);
    }
    matches!(media.band.get(place.get()), Found::Nothing | Found::Whole(Record { state: State::Zeros, .. }))
}

/// The bytes of a read, where they lie.
#[derive(Clone, Copy)]
pub struct Data<'a> {
    media: Option<&'a DriveMedia>,
    found: &'a [Slot],
    kept: &'a [Kept],
    /// Bytes of the first slot before them, and how many they are.
    skip: usize,
    len: usize,
    /// All of them, where they do not lie in the media, and the metadata of their blocks.
    bytes: &'a [u8],
    metadata: &'a [u8],
}

impl<'a> Data<'a> {
    /// No bytes: the answer to everything but a read.
    pub const NONE: Self = Self { media: None, found: &[], kept: &[], skip: 0, len: 0, bytes: &[], metadata: &[] };

    pub(crate) fn new(media: &'a DriveMedia, found: &'a [Slot], kept: &'a [Kept]) -> Self {
        Self { media: Some(media), found, kept, len: found.len() * BYTES, ..Self::NONE }
    }

    /// Some `len` bytes of them, behind the first `skip`, which are less than a slot.
    #[must_use]
    pub(crate) fn part(self, skip: usize, len: usize) -> Self {
        Self { skip, len, ..self }
    }

    /// Whole slots that lie one after the other.
    pub fn of(bytes: &'a [u8]) -> Self {
        Self { bytes, ..Self::NONE }
    }

    /// Blocks that lie one after the other, and their metadata.
    pub(crate) fn with_metadata(bytes: &'a [u8], metadata: &'a [u8]) -> Self {
        Self { bytes, metadata, ..Self::NONE }
    }

    /// Copies the metadata of its blocks, which have `block_bytes`, to the end of `into`: eight bytes of each.
    pub(crate) fn copy_metadata_to(&self, block_bytes: usize, into: &mut Vec<u8>) {
        let Some(media) = self.media else { return into.extend_from_slice(self.metadata) };
        let (mut first, mut left) = (self.skip / block_bytes, self.len / block_bytes);
        for (place, &slot) in (0..).zip(self.found) {
            let kept = self.kept.iter().find(|kept| kept.place == place);
            let entry = kept.map_or_else(|| metadata_of(media, slot), |kept| kept.metadata);
            let count = (BYTES / block_bytes - first).min(left);
            into.extend_from_slice(&entry[first * Tuple::BYTES..(first + count) * Tuple::BYTES]);
            (first, left) = (0, left - count);
        }
    }

    /// The first place whose bytes are not what was written.
    pub(crate) fn damaged(&self) -> Option<u32> {
        let media = self.media.filter(|media| media.is_checked() || media.has_lost)?;
        let is_whole = |place: u32, slot: Slot| match self.kept.iter().find(|kept| kept.place == place) {
            Some(kept) => kept.is_whole,
            None => media.is_whole(slot),
        };
        (0..).zip(self.found).find(|&(place, &slot)| !is_whole(place, slot)).map(|(place, _)| place)
    }

    /// Bytes in all.
    pub fn len(&self) -> usize {
        self.len + self.bytes.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The bytes in order: as few slices as the places of the slots allow, each of whole slots but
    /// where the first or the last one is wanted in part.
    pub fn slices(&self) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        self.parts().map(|(bytes, _)| bytes)
    }

    /// Those slices, and whether their bytes are stored. The others are zeros of a slot that holds no payload.
    pub fn parts(&self) -> impl Iterator<Item = (&'a [u8], bool)> + use<'a> {
        let Self { media, found, kept, skip, len, bytes, .. } = *self;
        let mut rest = Some(bytes).filter(|bytes| !bytes.is_empty());
        let (mut skip, mut left) = (skip, len);
        let mut wanted = move |bytes: &'a [u8]| {
            let bytes = &bytes[std::mem::take(&mut skip)..];
            let bytes = &bytes[..bytes.len().min(left)];
            left -= bytes.len();
            bytes
        };
        let mut place = 0;
        std::iter::from_fn(move || {
            let Some(media) = media else { return Some((rest.take()?, true)) };
            let &slot = found.get(place)?;
            // Seldom any, and never many.
            if let Some(kept) = kept.iter().find(|kept| kept.place as usize == place) {
                place += 1;
                return Some((wanted(&kept.bytes), true));
            }
            let slot = media.place_of(slot);
            if !media.has_payload(slot) {
                place += 1;
                return Some((wanted(media.slot(slot)), false));
            }
            let mut count = 1;
            while let Some(&next) = found.get(place + count)
                && next.is_some()
                && next.get() == slot.get() + count as u32
                && media.place_of(next) == next
                && media.adjoins(next)
                && kept.is_empty()
                && media.has_payload(next)
            {
                count += 1;
            }
            place += count;
            Some((wanted(media.payload.run(slot, count)), true))
        })
    }

    /// Copies the bytes to the end of `into`.
    pub fn copy_to(&self, into: &mut Vec<u8>) {
        self.slices().for_each(|slice| into.extend_from_slice(slice));
    }
}
