//! Which chunks are hot: the profiler and the threshold of adaptive placement. Source: sheet paraid §3.4.
//!
//! Accesses of a chunk in an interval, x, move its average: EMA = d·x + (1 − d)·EMA. Chunks whose average lies in [2^n, 2^(n+1)) make
//! bin n of a histogram. The hot bins are the upper ones whose chunks just fit the fast drives together.

/// Weight of the last interval. Source: \[P\] sheet paraid §4.
pub const DECAY: f32 = 0.5;

/// The lowest bin: averages below 2^LOWEST are none. Source: \[A\] one access sixteen intervals ago at decay 0.5.
const LOWEST: i32 = -16;
/// Bins, from [`LOWEST`] on.
const BINS: usize = 48;

/// Averages of all chunks of an array, by number.
#[derive(Clone, Debug)]
pub struct Profile {
    average: Vec<f32>,
    /// Accesses of the present interval.
    seen: Vec<u16>,
    sample: u32,
    skipped: u32,
}

/// A bin of the histogram, or above.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Bin(u8);

impl Profile {
    /// Averages of `chunks` chunks, all zero. One access in `sample` counts; 0 is as 1.
    pub fn new(chunks: usize, sample: u32) -> Self {
        Self { average: vec![0.0; chunks], seen: vec![0; chunks], sample: sample.max(1), skipped: 0 }
    }

    /// A device was asked for a chunk.
    ///
    /// # Panics
    /// When there is no such chunk.
    #[inline]
    pub fn note(&mut self, chunk: usize) {
        self.skipped += 1;
        if self.skipped >= self.sample {
            self.skipped = 0;
            self.seen[chunk] = self.seen[chunk].saturating_add(1);
        }
    }

    /// The interval has ended: averages take it in.
    pub fn end_interval(&mut self) {
        for (average, seen) in self.average.iter_mut().zip(&mut self.seen) {
            *average = DECAY * f32::from(*seen) + (1.0 - DECAY) * *average;
            *seen = 0;
        }
    }

    /// The average of a chunk.
    ///
    /// # Panics
    /// When there is no such chunk.
    pub fn average(&self, chunk: usize) -> f32 {
        self.average[chunk]
    }

    /// The bin of a chunk; `None` of one that is not asked for.
    ///
    /// # Panics
    /// When there is no such chunk.
    pub fn bin(&self, chunk: usize) -> Option<Bin> {
        bin_of(self.average[chunk])
    }

    /// The lowest bin such that the chunks in it and above fit `room`; `None` when not even the upmost does.
    pub fn hot_from(&self, room: u64) -> Option<Bin> {
        let mut counts = [0_u64; BINS];
        for &average in &self.average {
            if let Some(Bin(bin)) = bin_of(average) {
                counts[usize::from(bin)] += 1;
            }
        }
        let mut left = room;
        let mut hot = None;
        for (number, &count) in counts.iter().enumerate().rev() {
            let Some(rest) = left.checked_sub(count) else { break };
            left = rest;
            if count > 0 {
                hot = Some(Bin(number as u8));
            }
        }
        hot
    }
}

/// The bin of an average: its exponent, which its bits hold.
fn bin_of(average: f32) -> Option<Bin> {
    const BIAS: i32 = 127;
    let exponent = (average.to_bits() >> 23) as i32 - BIAS;
    let bin = exponent - LOWEST;
    (bin >= 0).then(|| Bin((bin as usize).min(BINS - 1) as u8))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn profile(accesses: &[u16]) -> Profile {
        let mut profile = Profile::new(accesses.len(), 1);
        for (chunk, &times) in accesses.iter().enumerate() {
            (0..times).for_each(|_| profile.note(chunk));
        }
        profile.end_interval();
        profile
    }

    #[test]
    fn an_average_is_that_of_the_source() {
        let mut profile = profile(&[8, 0]);
        assert_eq!((profile.average(0), profile.average(1)), (4.0, 0.0));
        profile.end_interval();
        assert_eq!(profile.average(0), 2.0);
        assert!(profile.bin(1).is_none());
    }

    #[test]
    fn bins_are_powers_of_two() {
        let profile = profile(&[2, 3, 4, 7, 8]);
        let bins: Vec<_> = (0..5).map(|chunk| profile.bin(chunk).expect("it was asked for")).collect();
        assert!(bins[0] == bins[1] && bins[1] < bins[2] && bins[2] == bins[3] && bins[3] < bins[4]);
    }

    #[test]
    fn hot_chunks_just_fit() {
        let profile = profile(&[2, 3, 4, 7, 8]);
        let hot = |room| profile.hot_from(room).map(|bin| (0..5).filter(|&of| profile.bin(of) >= Some(bin)).count());
        assert_eq!([0, 1, 2, 3, 4, 5, 9].map(hot), [None, Some(1), Some(1), Some(3), Some(3), Some(5), Some(5)]);
    }

    #[test]
    fn one_access_in_several_is_seen() {
        let mut profile = Profile::new(1, 16);
        (0..40).for_each(|_| profile.note(0));
        profile.end_interval();
        assert_eq!(profile.average(0), 1.0);
    }
}
