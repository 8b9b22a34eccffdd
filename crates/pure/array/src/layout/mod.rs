//! Stripes of `k` chunks over N drives of unlike sizes and speeds. Source: sheet paraid §3.1 and §3.2.
//!
//! The number of stripes has a closed form, [`most_stripes`]. Of the many layouts with so many stripes [`Layout::new`] takes one
//! that is best in its slowest members: as few stripes as possible touch the slowest drives, of the others as few as possible the
//! second slowest, and so on. Stripes with the same drives make a group, and groups lie behind each other in the volume, the
//! fastest first.

mod flow;

use flow::{Levels, shares};

/// A drive of an array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Member {
    /// Chunks that it has room for.
    pub chunks: u64,
    /// Its speed, in any unit that all members share, such as bytes in a second. Only the order counts.
    pub speed: u64,
}

/// Why drives make no array.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LayoutError {
    /// Stripes are wider than the array, or have no chunk.
    #[error("stripes of {width} chunks need as many drives, and there are {drives}; take 1 to {drives}")]
    Width {
        /// Chunks of a stripe.
        width: usize,
        /// Drives.
        drives: usize,
    },
    /// More drives than an array may have.
    #[error("an array has at most {DRIVES_MAX} drives, not {0}")]
    Drives(usize),
    /// A drive with more chunks than can be counted with those of all others.
    #[error("drive {0} has more than 2^48 chunks")]
    Chunks(usize),
    /// Not a single stripe fits.
    #[error("the drives have no room for one stripe")]
    NoRoom,
}

/// Drives of an array at most: their numbers are those of the legs of a service.
pub const DRIVES_MAX: usize = 256;

/// Most stripes of `width` chunks, no two on one drive, that drives with room for so many chunks hold:
/// D = max { D : Σ min(Sᵢ, D) ≥ k·D }. Source: \[D\] sheet paraid §3.1. 0 where `width` is 0.
pub fn most_stripes(chunks: &[u64], width: usize) -> u64 {
    let width = width as u128;
    let sum = |most: u64| chunks.iter().map(|&chunks| u128::from(chunks.min(most))).sum::<u128>();
    let fits = |stripes: u64| sum(stripes) >= width * u128::from(stripes);
    let bound = u64::try_from(sum(u64::MAX).checked_div(width).unwrap_or(0)).unwrap_or(u64::MAX);
    last(bound, fits)
}

/// The largest number up to `bound` that fits; all below one that fits do, and 0 does.
fn last(bound: u64, fits: impl Fn(u64) -> bool) -> u64 {
    let (mut low, mut high) = (0, bound);
    while low < high {
        let middle = high - (high - low) / 2;
        if fits(middle) {
            low = middle;
        } else {
            high = middle - 1;
        }
    }
    low
}

/// Stripes beside each other whose chunks lie on the same drives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// Stripes of the groups before it.
    pub first: u64,
    /// Its stripes.
    pub stripes: u64,
    /// By chunk of a stripe: the drive, and the place there that the first stripe of the group has. The others follow it.
    pub columns: Vec<Column>,
}

/// Chunks beside each other on a drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Column {
    /// Number of the drive.
    pub drive: u8,
    /// The first of its chunks.
    pub first: u64,
}

/// Where the stripes of an array lie.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    width: usize,
    stripes: u64,
    groups: Vec<Group>,
}

impl Layout {
    /// The layout with most stripes of `width` chunks, and among these with the fastest slowest members.
    ///
    /// Errors: there is no room for a stripe, or numbers are out of range.
    pub fn new(members: &[Member], width: usize) -> Result<Self, LayoutError> {
        check(members, width)?;
        let chunks: Vec<u64> = members.iter().map(|member| member.chunks).collect();
        let stripes = most_stripes(&chunks, width);
        let mut groups = Vec::new();
        let levels = levels(members, width, stripes);
        let shares = shares(&levels, width as u64).ok_or(LayoutError::NoRoom)?;
        let mut used = vec![0; members.len()];
        for (level, shares) in levels.counts.iter().zip(shares) {
            fill(members, *level, &shares, width, &mut used, &mut groups);
        }
        Self::of(groups, width, members)
    }

    /// The layout of somebody who joins drives by hand: the drives with most room left make stripes until one of them is full. Source: \[A\] sheet
    /// paraid §8.2, since the baseline of figure 62 must be weaker than one that chooses for each stripe.
    ///
    /// Errors: those of [`Layout::new`].
    pub fn by_hand(members: &[Member], width: usize) -> Result<Self, LayoutError> {
        check(members, width)?;
        let mut used = vec![0; members.len()];
        let mut groups = Vec::new();
        loop {
            let mut order: Vec<usize> = (0..members.len()).collect();
            order.sort_by_key(|&drive| (std::cmp::Reverse(members[drive].chunks - used[drive]), drive));
            order.truncate(width);
            let last = order[width - 1];
            let stripes = members[last].chunks - used[last];
            if stripes == 0 {
                break;
            }
            push_group(&order, stripes, &mut used, &mut groups);
        }
        Self::of(groups, width, members)
    }

    /// Puts groups behind each other, the fastest first.
    fn of(mut groups: Vec<Group>, width: usize, members: &[Member]) -> Result<Self, LayoutError> {
        let speed = |group: &Group| {
            let speeds = group.columns.iter().map(|column| members[usize::from(column.drive)].speed);
            let sum: u128 = speeds.clone().map(u128::from).sum();
            std::cmp::Reverse((speeds.min(), sum))
        };
        groups.sort_by_cached_key(speed);
        let mut stripes = 0;
        for group in &mut groups {
            group.first = stripes;
            stripes += group.stripes;
        }
        if stripes == 0 { Err(LayoutError::NoRoom) } else { Ok(Self { width, stripes, groups }) }
    }

    /// Chunks of a stripe.
    pub const fn width(&self) -> usize {
        self.width
    }

    /// Stripes.
    pub const fn stripes(&self) -> u64 {
        self.stripes
    }

    /// Groups of stripes, in the order of the volume.
    pub fn groups(&self) -> &[Group] {
        &self.groups
    }

    /// The group of a stripe.
    ///
    /// # Panics
    /// When there is no such stripe.
    pub fn group(&self, stripe: u64) -> &Group {
        assert!(stripe < self.stripes, "stripe {stripe} of {}", self.stripes);
        &self.groups[self.groups.partition_point(|group| group.first <= stripe) - 1]
    }

    /// Where chunk `column` of a stripe lies.
    ///
    /// # Panics
    /// When there is no such stripe or chunk.
    pub fn place(&self, stripe: u64, column: usize) -> Column {
        let group = self.group(stripe);
        let Column { drive, first } = group.columns[column];
        Column { drive, first: first + (stripe - group.first) }
    }

    /// Chunks in stripes, parity included, per chunk of the drives.
    pub fn utilization(&self, members: &[Member]) -> f64 {
        let all: u64 = members.iter().map(|member| member.chunks).sum();
        (self.stripes * self.width as u64) as f64 / all as f64
    }
}

fn check(members: &[Member], width: usize) -> Result<(), LayoutError> {
    if members.len() > DRIVES_MAX {
        return Err(LayoutError::Drives(members.len()));
    }
    if !(1..=members.len()).contains(&width) {
        return Err(LayoutError::Width { width, drives: members.len() });
    }
    let too_large = members.iter().position(|member| member.chunks > 1 << 48);
    too_large.map_or(Ok(()), |drive| Err(LayoutError::Chunks(drive)))
}

/// Gives each level as few stripes as it needs, the slowest first; the fastest has all others.
fn levels(members: &[Member], width: usize, stripes: u64) -> Levels {
    let mut speeds: Vec<u64> = members.iter().map(|member| member.speed).collect();
    speeds.sort_unstable_by(|a, b| b.cmp(a));
    speeds.dedup();
    let level = |member: &Member| (member.chunks, speeds.partition_point(|&speed| speed > member.speed));
    let drives: Vec<(u64, usize)> = members.iter().map(level).collect();
    // Levels up to some are one at first: all of their drives are fast.
    let merged = |up_to: usize, counts: Vec<u64>| {
        let drives = drives.iter().map(|&(chunks, level)| (chunks, level.saturating_sub(up_to))).collect();
        Levels { drives, counts }
    };
    let mut slow: Vec<u64> = Vec::new();
    let mut left = stripes;
    for level in (1..speeds.len()).rev() {
        let fast = last(left, |fast| {
            let counts = [fast, left - fast].into_iter().chain(slow.iter().rev().copied()).collect();
            shares(&merged(level - 1, counts), width as u64).is_some()
        });
        slow.push(left - fast);
        left = fast;
    }
    merged(0, std::iter::once(left).chain(slow.into_iter().rev()).collect())
}

/// Makes groups of `stripes` stripes to which each drive gives its share, at most one chunk to each: drives fill row by row of a table whose
/// columns are the stripes, and the stripes between two ends of drives have the same.
fn fill(members: &[Member], stripes: u64, shares: &[u64], width: usize, used: &mut [u64], groups: &mut Vec<Group>) {
    if stripes == 0 {
        return;
    }
    let mut order: Vec<usize> = (0..members.len()).filter(|&drive| shares[drive] > 0).collect();
    order.sort_by_key(|&drive| (members[drive].speed, std::cmp::Reverse(shares[drive]), drive));
    let mut ends = Vec::with_capacity(order.len());
    let mut end = 0;
    for &drive in &order {
        end += shares[drive];
        ends.push(end);
    }
    let mut cuts: Vec<u64> = ends.iter().map(|end| end % stripes).chain([0, stripes]).collect();
    cuts.sort_unstable();
    cuts.dedup();
    for cut in cuts.windows(2) {
        let rows = (0..width as u64).map(|row| row * stripes + cut[0]);
        let drives: Vec<usize> = rows.map(|at| order[ends.partition_point(|&end| end <= at)]).collect();
        push_group(&drives, cut[1] - cut[0], used, groups);
    }
}

fn push_group(drives: &[usize], stripes: u64, used: &mut [u64], groups: &mut Vec<Group>) {
    let mut columns: Vec<Column> = Vec::with_capacity(drives.len());
    for &drive in drives {
        columns.push(Column { drive: drive as u8, first: used[drive] });
        used[drive] += stripes;
    }
    groups.push(Group { first: 0, stripes, columns });
}

#[cfg(test)]
mod tests;
