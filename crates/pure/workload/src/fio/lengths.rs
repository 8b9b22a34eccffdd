//! How long requests are: `bs`, `bsrange`, `bssplit`.

use super::tausworthe::Generator;

/// Sizes of the requests of one direction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockSizes {
    /// `bs`, in bytes.
    pub plain: u32,
    /// Smallest and largest size, in bytes, that `bsrange` or `bssplit` allows; they take the place of `bs`.
    pub bounds: Option<(u32, u32)>,
    /// Sizes of `bssplit` in bytes with whole percentages, least first.
    pub split: Vec<(u32, u32)>,
}

impl BlockSizes {
    /// Requests of one size.
    pub fn fixed(bytes: u32) -> Self {
        Self { plain: bytes, bounds: None, split: Vec::new() }
    }

    /// The smallest size in bytes: offsets are its multiples.
    pub fn smallest(&self) -> u64 {
        self.bounds.map_or(self.plain, |bounds| bounds.0).into()
    }

    /// The largest size in bytes.
    pub fn largest(&self) -> u64 {
        self.bounds.map_or(self.plain, |bounds| bounds.1).into()
    }

    /// The next size that is at most `room` bytes; the only size whatever the room. `None` where nothing fits.
    #[inline]
    pub(super) fn draw(&self, draws: &mut Generator, room: u64) -> Option<u64> {
        let (least, most) = (self.smallest(), self.largest());
        if least == most {
            return Some(least);
        }
        if least > room || !self.ends(room) {
            return None;
        }
        loop {
            let bytes = if self.split.is_empty() { least + draws.share_of(most) } else { self.split_size(draws, room) };
            let bytes = (bytes - bytes % least).min(most);
            if bytes <= room {
                return Some(bytes);
            }
        }
    }

    /// The first size whose percentages up to it reach the draw and that fits, or the last one.
    fn split_size(&self, draws: &mut Generator, room: u64) -> u64 {
        let (drawn, hundredth) = (draws.draw(), draws.largest() / 100);
        let (mut sum, mut bytes) = (0, 0);
        for &(size, percent) in self.split.iter().filter(|entry| entry.1 > 0) {
            bytes = u64::from(size);
            sum += u64::from(percent);
            if drawn / sum <= hundredth && bytes <= room {
                break;
            }
        }
        bytes
    }

    /// Whether a draw can end: fio draws for ever where no size of a share above zero fits.
    fn ends(&self, room: u64) -> bool {
        self.split.is_empty() || self.split.iter().any(|&(size, percent)| percent > 0 && u64::from(size) <= room)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_drawn_in_multiples_and_cut_at_the_largest() {
        let sizes = BlockSizes { bounds: Some((4096, 10_000)), ..BlockSizes::fixed(4096) };
        let mut draws = Generator::seeded(7, false);
        let found: Vec<u64> = (0..1000).filter_map(|_| sizes.draw(&mut draws, u64::MAX)).collect();
        // A whole size beyond the largest is cut to it.
        assert!([4096, 8192, 10_000].iter().all(|size| found.contains(size)));
        assert!(found.iter().all(|size| [4096, 8192, 10_000].contains(size)));
        assert!((0..100).all(|_| sizes.draw(&mut draws, 9000).is_some_and(|size| size <= 8192)));
        assert_eq!(sizes.draw(&mut draws, 4000), None);
    }

    #[test]
    fn splits_come_out_in_their_shares_and_never_draw_for_ever() {
        let sizes = BlockSizes {
            bounds: Some((4096, 65_536)),
            split: vec![(4096, 0), (8192, 30), (65_536, 70)],
            ..BlockSizes::fixed(4096)
        };
        let mut draws = Generator::seeded(7, true);
        let large = (0..10_000).filter(|_| sizes.draw(&mut draws, u64::MAX) == Some(65_536)).count();
        assert!((6900..7100).contains(&large), "{large}");
        assert_eq!((sizes.draw(&mut draws, 8192), sizes.draw(&mut draws, 4096)), (Some(8192), None));
    }
}
