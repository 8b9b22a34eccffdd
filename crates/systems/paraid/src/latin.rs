//! Declustered stripes by orthogonal Latin squares, as FusionRAID lays them out. Source: sheet paraid §5; layers for drives of unlike
//! sizes are \[A\], as the source needs equal ones.

use flashyard_array::layout::{Column, LayoutError, Member};

/// Drives that have as much left as each other, with the stripes that they make.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Layer {
    /// Stripes of the layers before it.
    first: u64,
    stripes: u64,
    /// The drives, and the place on each at which the layer begins.
    drives: Vec<Column>,
    /// Multipliers of the squares, which take turns: numbers below that of the drives that share no divisor with it.
    multipliers: Vec<u64>,
}

/// Stripes of k chunks over N drives: stripe i of square m has chunk c on drive m·c + i, counted around the drives.
///
/// Invariants: no two chunks of a stripe are on one drive, and no two at one place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Latin {
    width: usize,
    layers: Vec<Layer>,
}

impl Latin {
    /// The squares over drives with room for so many chunks; the smallest of them bounds a layer, and the others make a further one.
    ///
    /// Errors: no room for a stripe.
    pub fn new(members: &[Member], width: usize) -> Result<Self, LayoutError> {
        if !(1..=members.len()).contains(&width) {
            return Err(LayoutError::Width { width, drives: members.len() });
        }
        let mut layers = Vec::new();
        let (mut used, mut first) = (0, 0);
        loop {
            let able = |drive: &usize| members[*drive].chunks > used;
            let drives: Vec<usize> = (0..members.len()).filter(able).collect();
            if drives.len() < width {
                break;
            }
            let least = drives.iter().map(|&drive| members[drive].chunks).min().unwrap_or(used);
            // Whole squares: each takes `width` places of every drive.
            let cycles = (least - used) / width as u64;
            let stripes = cycles * drives.len() as u64;
            if stripes > 0 {
                let column = |drive: usize| Column { drive: drive as u8, first: used };
                let multipliers = multipliers(drives.len() as u64);
                layers.push(Layer { first, stripes, drives: drives.into_iter().map(column).collect(), multipliers });
                first += stripes;
            }
            used = least;
        }
        if first == 0 { Err(LayoutError::NoRoom) } else { Ok(Self { width, layers }) }
    }

    /// Stripes.
    pub fn stripes(&self) -> u64 {
        self.layers.last().map_or(0, |layer| layer.first + layer.stripes)
    }

    /// Where a chunk of a stripe lies.
    ///
    /// # Panics
    /// When there is no such stripe.
    pub fn place(&self, stripe: u64, column: usize) -> Column {
        let layer = &self.layers[self.layers.partition_point(|layer| layer.first <= stripe) - 1];
        let count = layer.drives.len() as u64;
        let (cycle, row) = ((stripe - layer.first) / count, (stripe - layer.first) % count);
        let multiplier = layer.multipliers[(cycle % layer.multipliers.len() as u64) as usize];
        let drive = (multiplier * column as u64 + row) % count;
        let Column { drive, first } = layer.drives[drive as usize];
        Column { drive, first: first + cycle * self.width as u64 + column as u64 }
    }
}

fn multipliers(count: u64) -> Vec<u64> {
    (1..count.max(2)).filter(|&of| divisor(of, count) == 1).collect()
}

fn divisor(one: u64, other: u64) -> u64 {
    if other == 0 { one } else { divisor(other, one % other) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn chunks_of_a_stripe_lie_apart_and_places_have_one_chunk(
            sizes in prop::collection::vec(0_u64..60, 3..12),
            width in 2_usize..6,
        ) {
            let members: Vec<Member> = sizes.iter().map(|&chunks| Member { chunks, speed: 1 }).collect();
            let Ok(latin) = Latin::new(&members, width) else { return Ok(()) };
            let mut places = BTreeSet::new();
            for stripe in 0..latin.stripes() {
                let mut drives = BTreeSet::new();
                for column in 0..width {
                    let Column { drive, first } = latin.place(stripe, column);
                    prop_assert!(drives.insert(drive) && places.insert((drive, first)));
                    prop_assert!(first < sizes[usize::from(drive)]);
                }
            }
        }
    }

    #[test]
    fn stripes_of_equal_drives_are_spread_over_all() {
        let latin = Latin::new(&[Member { chunks: 30, speed: 1 }; 7], 3).expect("there is room");
        assert_eq!(latin.stripes(), 70);
        let sets: BTreeSet<Vec<u8>> =
            (0..70).map(|stripe| (0..3).map(|column| latin.place(stripe, column).drive).collect()).collect();
        assert_eq!(sets.len(), 42, "six squares of seven rows");
    }
}
