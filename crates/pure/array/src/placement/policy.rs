//! The choice of chunks that change drives: hot ones of slow drives, the hottest first, and cold ones of fast drives.

use super::profile::{Bin, Profile};
use crate::learned::{Chunk, LearnedMap, Place};
use flashyard_service::parity::CHUNKS_MAX;

/// Places of fast drives that one search for a cold chunk looks at. Source: \[A\].
const LOOKS: usize = 64;
/// Hot chunks that are listed after an interval. Source: \[A\].
const LISTED: usize = 65_536;
/// Drives of these rates that are fast: above half of the fastest one's. Source: \[A\] the source's classes are NVMe and SATA, seven to one.
pub fn fast_of(rates: &[u64]) -> Vec<bool> {
    let fastest = rates.iter().copied().max().unwrap_or(0);
    rates.iter().map(|&rate| 2 * u128::from(rate) > u128::from(fastest)).collect()
}

/// The chunks that are hot, and the drives that are fast.
#[derive(Clone, Debug)]
pub struct Policy {
    /// By drive: its chunks, and whether it is fast.
    rooms: Vec<u32>,
    fast: Vec<bool>,
    hot: Option<Bin>,
    /// Hot chunks on slow drives, the hottest last.
    listed: Vec<Chunk>,
    /// The place of a fast drive at which the next search begins.
    cursor: Place,
}

impl Policy {
    /// One for drives with room for so many chunks, at these rates.
    pub fn new(rooms: Vec<u32>, rates: &[u64]) -> Self {
        Self { rooms, fast: fast_of(rates), hot: None, listed: Vec::new(), cursor: Place { drive: 0, chunk: 0 } }
    }

    /// Drives have other rates now.
    pub fn set_rates(&mut self, rates: &[u64]) {
        self.fast = fast_of(rates);
    }

    /// Whether a drive is fast.
    ///
    /// # Panics
    /// When there is no such drive.
    pub fn is_fast(&self, drive: u8) -> bool {
        self.fast[usize::from(drive)]
    }

    /// Whether any chunk is hot.
    pub const fn has_hot(&self) -> bool {
        self.hot.is_some()
    }

    /// The profiler takes an interval in; chunks that are hot and lie on slow drives are listed.
    pub fn end_interval(&mut self, profile: &mut Profile, map: &LearnedMap) {
        let fast = self.rooms.iter().zip(&self.fast).filter(|(_, is_fast)| **is_fast);
        let room = fast.map(|(&room, _)| u64::from(room)).sum();
        profile.end_interval();
        self.hot = profile.hot_from(room);
        self.listed.clear();
        let Some(hot) = self.hot else { return };
        let width = map.width();
        for number in (0..map.stripes() as usize * width).filter(|&number| profile.bin(number) >= Some(hot)) {
            let chunk = Chunk { stripe: (number / width) as u32, column: (number % width) as u8 };
            if !self.is_fast(map.get(chunk).drive) {
                self.listed.push(chunk);
            }
        }
        // Averages are never below zero, so that their bits have their order.
        self.listed.sort_by_key(|&chunk| profile.average(number_of(chunk, width)).to_bits());
        let more = self.listed.len().saturating_sub(LISTED);
        self.listed.drain(..more);
    }

    /// Hot chunks on slow drives, the hottest last: those that were when the interval ended.
    pub fn listed(&self) -> &[Chunk] {
        &self.listed
    }

    /// Takes a chunk off the list.
    ///
    /// # Panics
    /// When there is no such number.
    pub fn unlist(&mut self, number: usize) {
        self.listed.remove(number);
    }

    /// Whether a chunk is hot, and on a slow drive.
    pub fn is_hot_and_slow(&self, profile: &Profile, map: &LearnedMap, chunk: Chunk) -> bool {
        self.hot.is_some_and(|hot| profile.bin(number_of(chunk, map.width())) >= Some(hot))
            && !self.is_fast(map.get(chunk).drive)
    }

    /// A cold chunk on a fast drive that may go to drive `to`, and whose drive may have the hot one. Only drives that are able to, and stripes that are free.
    pub fn find_cold(
        &mut self,
        (profile, map): (&Profile, &LearnedMap),
        (hot, to): (Chunk, u8),
        is_able: impl Fn(u8) -> bool,
        is_free: impl Fn(u32) -> bool,
    ) -> Option<Chunk> {
        let threshold = self.hot?;
        let width = map.width();
        // Drives of the other chunks of the hot one's stripe.
        let mut others = [u8::MAX; CHUNKS_MAX];
        for column in (0..width.min(CHUNKS_MAX) as u8).filter(|&column| column != hot.column) {
            others[usize::from(column)] = map.get(Chunk { column, ..hot }).drive;
        }
        for _ in 0..LOOKS {
            let at = self.cursor;
            let drive = usize::from(at.drive);
            let next = ((drive + 1) % self.rooms.len()) as u8;
            let is_over = !self.fast[drive] || u64::from(at.chunk) + 1 >= u64::from(self.rooms[drive]);
            self.cursor = if is_over { Place { drive: next, chunk: 0 } } else { Place { chunk: at.chunk + 1, ..at } };
            if !self.fast[drive] || !is_able(at.drive) || others.contains(&at.drive) {
                // No place of this drive will do.
                self.cursor = Place { drive: next, chunk: at.chunk };
                continue;
            }
            let Some(cold) = map.find(at) else { continue };
            if cold.stripe != hot.stripe
                && profile.bin(number_of(cold, width)) < Some(threshold)
                && is_free(cold.stripe)
                && !has_beside(map, cold, to)
            {
                return Some(cold);
            }
        }
        None
    }

    /// The coldest chunk of a hot one's own stripe on a fast drive that is able to, where it is in a lower bin: mostly parity of a stripe
    /// that is read. Drives with a chunk of every stripe have no other one to exchange with. Source: \[A\].
    pub fn find_cold_beside(
        &self,
        (profile, map): (&Profile, &LearnedMap),
        hot: Chunk,
        is_able: impl Fn(u8) -> bool,
    ) -> Option<Chunk> {
        let number = |chunk: Chunk| number_of(chunk, map.width());
        let limit = profile.bin(number(hot));
        let all = (0..map.width() as u8).map(|column| Chunk { column, ..hot });
        let cold = all.filter(|&chunk| profile.bin(number(chunk)) < limit).filter(|&chunk| {
            let Place { drive, .. } = map.get(chunk);
            self.is_fast(drive) && is_able(drive)
        });
        cold.min_by(|&one, &other| profile.average(number(one)).total_cmp(&profile.average(number(other))))
    }
}

/// Whether another chunk of a chunk's stripe is on a drive.
pub(crate) fn has_beside(map: &LearnedMap, chunk: Chunk, drive: u8) -> bool {
    let mut others = (0..map.width() as u8).filter(|&column| column != chunk.column);
    others.any(|column| map.get(Chunk { column, ..chunk }).drive == drive)
}

/// The number of a chunk in a profile.
pub(crate) fn number_of(chunk: Chunk, width: usize) -> usize {
    chunk.stripe as usize * width + usize::from(chunk.column)
}
