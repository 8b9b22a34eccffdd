//! The map: a tree for each column, and exceptions.

use super::leaves::{Leaf, ONE, Run, STRIDES, fit};
use super::levels::Levels;
use crate::layout::Layout;
use crate::table::Table;

/// A place for a chunk on a drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// Number of the drive.
    pub drive: u8,
    /// Number of the chunk there.
    pub chunk: u32,
}

/// A chunk of a stripe.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Chunk {
    /// Number of the stripe.
    pub stripe: u32,
    /// Its column.
    pub column: u8,
}

impl Place {
    const fn key(self) -> u64 {
        (self.chunk as u64) << 8 | self.drive as u64
    }

    const fn of(key: u64) -> Self {
        Self { drive: key as u8, chunk: (key >> 8) as u32 }
    }
}

impl Chunk {
    const fn key(self) -> u64 {
        // By column first: retraining goes column by column.
        (self.column as u64) << 32 | self.stripe as u64
    }

    const fn of(key: u64) -> Self {
        Self { column: (key >> 32) as u8, stripe: key as u32 }
    }
}

/// Why a map cannot be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MapError {
    /// A column or a map without stripes, or more than 255 columns.
    #[error("a map has 1 to 255 columns with a stripe or more, not {0}")]
    Columns(usize),
    /// Runs do not follow each other, or columns have other stripes.
    #[error("stripe {stripe} of column {column} has no place, or two")]
    Stripe {
        /// Number of the column.
        column: usize,
        /// Number of the stripe.
        stripe: u64,
    },
    /// Stripes of a run lie at one place, or too far apart.
    #[error(
        "stripes from {stripe} on of column {column} lie at one place or further apart than 7 places; make them runs of one stripe"
    )]
    Stride {
        /// Number of the column.
        column: usize,
        /// The first stripe of the run.
        stripe: u32,
    },
    /// A place or a stripe beyond 2^32.
    #[error("column {0} has a stripe or a place beyond 2^32 - 1; take larger chunks")]
    Range(usize),
    /// Two chunks have the same place.
    #[error("two chunks lie at place {} of drive {}", .0.chunk, .0.drive)]
    Shared(Place),
}

/// The tree of a column.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Column {
    starts: Vec<u32>,
    leaves: Vec<Leaf>,
    levels: Levels,
}

impl Column {
    fn new(runs: &[Run]) -> Self {
        let (starts, leaves) = fit(runs);
        Self { levels: Levels::new(&starts), starts, leaves }
    }

    #[inline]
    fn place(&self, stripe: u32) -> Place {
        let leaf = self.levels.find(&self.starts, stripe);
        let behind = stripe - self.starts[leaf];
        let leaf = self.leaves[leaf];
        Place { drive: leaf.drive, chunk: leaf.place(behind) as u32 }
    }

    /// Stripes of a leaf.
    fn count(&self, leaf: usize, stripes: u32) -> u32 {
        self.starts.get(leaf + 1).unwrap_or(&stripes) - self.starts[leaf]
    }
}

/// A leaf, for those that come from places.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Back {
    drive: u8,
    column: u8,
    leaf: u32,
    /// The lowest place of its stripes.
    lowest: u32,
}

/// Where each chunk of each stripe lies, and which chunk lies at a place.
///
/// Invariants: it is exact, for every stripe and column; no place has two chunks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LearnedMap {
    stripes: u32,
    columns: Vec<Column>,
    /// All leaves by drive and lowest place, and the places of the longest one.
    back: Vec<Back>,
    longest: u32,
    /// Chunks that have moved since: by chunk, and by place.
    moved: Table,
    arrived: Table,
}

impl LearnedMap {
    /// The map of a layout.
    ///
    /// Errors: it is too large.
    pub fn of(layout: &Layout) -> Result<Self, MapError> {
        let column = |column: usize| {
            let run = |group: &crate::layout::Group| {
                let place = group.columns[column];
                let number = |value: u64| u32::try_from(value).map_err(|_| MapError::Range(column));
                number(group.first + group.stripes)?;
                number(place.first + group.stripes)?;
                let (first, count) = (group.first as u32, group.stripes as u32);
                Ok(Run { first, count, drive: place.drive, chunk: place.first as u32, stride: 1 })
            };
            layout.groups().iter().map(run).collect::<Result<Vec<Run>, MapError>>()
        };
        let columns = (0..layout.width()).map(column).collect::<Result<Vec<_>, _>>()?;
        Self::new(&columns)
    }

    /// The map of runs, by column, each from stripe 0 on to the last.
    ///
    /// Errors: they do not follow each other, are too large, or share places.
    pub fn new(columns: &[Vec<Run>]) -> Result<Self, MapError> {
        if !(1..=255).contains(&columns.len()) {
            return Err(MapError::Columns(columns.len()));
        }
        let mut stripes = None;
        for (number, runs) in columns.iter().enumerate() {
            let end = check_runs(number, runs)?;
            if *stripes.get_or_insert(end) != end {
                return Err(MapError::Stripe { column: number, stripe: end.into() });
            }
        }
        let stripes = stripes.filter(|&stripes| stripes > 0).ok_or(MapError::Columns(0))?;
        let mut map = Self {
            stripes,
            columns: columns.iter().map(|runs| Column::new(runs)).collect(),
            back: Vec::new(),
            longest: 0,
            moved: Table::default(),
            arrived: Table::default(),
        };
        map.index_places();
        map.verify(columns)?;
        Ok(map)
    }

    /// Whether leaves say what runs do, without error, and no place has two chunks.
    fn verify(&self, columns: &[Vec<Run>]) -> Result<(), MapError> {
        for (number, runs) in columns.iter().enumerate() {
            let column = &self.columns[number];
            let mut leaf = 0;
            for run in runs {
                let (mut stripe, end) = (run.first, run.first + run.count);
                while stripe < end {
                    leaf += usize::from(column.starts.get(leaf + 1) == Some(&stripe));
                    let last = end.min(column.starts[leaf] + column.count(leaf, self.stripes)) - 1;
                    // Two lines with the same slope are one if they are at both ends.
                    let is_line = i64::from(column.leaves[leaf].slope) == ONE * i64::from(run.stride);
                    let step = if is_line { (last - stripe).max(1) } else { 1 };
                    for stripe in (stripe..=last).step_by(step as usize) {
                        let way = i64::from(run.stride) * i64::from(stripe - run.first);
                        let place = Place { drive: run.drive, chunk: (i64::from(run.chunk) + way) as u32 };
                        if column.place(stripe) != place {
                            return Err(MapError::Stripe { column: number, stripe: stripe.into() });
                        }
                    }
                    stripe = last + 1;
                }
            }
        }
        self.verify_apart()
    }

    /// Whether no two leaves have a place in common.
    fn verify_apart(&self) -> Result<(), MapError> {
        for (number, back) in self.back.iter().enumerate() {
            let column = &self.columns[usize::from(back.column)];
            let (leaf, count) = (column.leaves[back.leaf as usize], column.count(back.leaf as usize, self.stripes));
            let (_, highest) = leaf.span(count);
            // Places of a leaf never turn back: only neighbours can share one, and only where it is flat.
            let is_shared = |&behind: &u32| leaf.place(behind) == leaf.place(behind - 1);
            let flat = if i64::from(leaf.slope).abs() < ONE { count } else { 0 };
            if let Some(behind) = (1..flat).find(is_shared) {
                return Err(MapError::Shared(Place { drive: back.drive, chunk: leaf.place(behind) as u32 }));
            }
            let others = self.back[number + 1..].iter();
            let meets = |other: &&Back| other.drive == back.drive && i64::from(other.lowest) <= highest;
            for other in others.take_while(meets) {
                let column = &self.columns[usize::from(other.column)];
                let other_count = column.count(other.leaf as usize, self.stripes);
                let other_leaf = column.leaves[other.leaf as usize];
                let (few, many) = if count < other_count {
                    ((leaf, count), (other_leaf, other_count))
                } else {
                    ((other_leaf, other_count), (leaf, count))
                };
                let mut places = (0..few.1).map(|behind| few.0.place(behind) as u32);
                if let Some(chunk) = places.find(|&place| many.0.behind(place, many.1).is_some()) {
                    return Err(MapError::Shared(Place { drive: back.drive, chunk }));
                }
            }
        }
        Ok(())
    }

    fn index_places(&mut self) {
        self.back.clear();
        self.longest = 0;
        for (number, column) in self.columns.iter().enumerate() {
            for (place, leaf) in column.leaves.iter().enumerate() {
                let (lowest, highest) = leaf.span(column.count(place, self.stripes));
                self.longest = self.longest.max((highest - lowest) as u32);
                let (column, leaf_number) = (number as u8, place as u32);
                self.back.push(Back { drive: leaf.drive, column, leaf: leaf_number, lowest: lowest as u32 });
            }
        }
        self.back.sort_unstable_by_key(|back| (back.drive, back.lowest));
    }

    /// Stripes.
    pub const fn stripes(&self) -> u32 {
        self.stripes
    }

    /// Chunks of a stripe.
    pub fn width(&self) -> usize {
        self.columns.len()
    }

    /// Where a chunk lies.
    ///
    /// # Panics
    /// When there is no such column. The place of a stripe behind the last means nothing.
    #[inline]
    pub fn get(&self, chunk: Chunk) -> Place {
        let moved = self.moved.get(chunk.key()).map(Place::of);
        moved.unwrap_or_else(|| self.columns[usize::from(chunk.column)].place(chunk.stripe))
    }

    /// The chunk at a place, if there is one.
    pub fn find(&self, place: Place) -> Option<Chunk> {
        if let Some(chunk) = self.arrived.get(place.key()) {
            return Some(Chunk::of(chunk));
        }
        // It may have left the place.
        self.find_in_leaves(place).filter(|chunk| self.moved.get(chunk.key()).is_none())
    }

    /// The chunk that was at a place before anything moved.
    fn find_in_leaves(&self, place: Place) -> Option<Chunk> {
        let end = self.back.partition_point(|back| (back.drive, back.lowest) <= (place.drive, place.chunk));
        let near = |back: &&Back| back.drive == place.drive && back.lowest >= place.chunk.saturating_sub(self.longest);
        self.back[..end].iter().rev().take_while(near).find_map(|back| {
            let column = &self.columns[usize::from(back.column)];
            let leaf = back.leaf as usize;
            let behind = column.leaves[leaf].behind(place.chunk, column.count(leaf, self.stripes))?;
            Some(Chunk { stripe: column.starts[leaf] + behind, column: back.column })
        })
    }

    /// The first stripe from `from` on that may have a chunk on a drive, or the number of stripes. None between has one.
    pub fn next_stripe_on(&self, drive: u8, from: u32) -> u32 {
        let of_column = |column: &Column| {
            let first = column.starts.partition_point(|&start| start <= from).saturating_sub(1);
            let leaf = column.leaves.iter().skip(first).position(|leaf| leaf.drive == drive)?;
            Some(column.starts[first + leaf].max(from))
        };
        let in_leaves = self.columns.iter().filter_map(of_column);
        let moved = self.moved.iter().filter(|&(_, place)| Place::of(place).drive == drive);
        let arrived = moved.map(|(chunk, _)| Chunk::of(chunk).stripe).filter(|&stripe| stripe >= from);
        in_leaves.chain(arrived).min().unwrap_or(self.stripes).min(self.stripes)
    }

    /// Where the leaf of a chunk has it, and where it lies.
    fn places(&self, chunk: Chunk) -> (Place, Place) {
        let home = self.columns[usize::from(chunk.column)].place(chunk.stripe);
        (home, self.moved.get(chunk.key()).map_or(home, Place::of))
    }

    /// A chunk has moved to a place at which none lies.
    pub fn relocate(&mut self, chunk: Chunk, to: Place) {
        let (home, from) = self.places(chunk);
        self.arrived.remove(from.key());
        self.put(chunk, home, to);
    }

    /// Two chunks have exchanged their places.
    pub fn exchange(&mut self, one: Chunk, other: Chunk) {
        let ((home, from), (other_home, to)) = (self.places(one), self.places(other));
        self.put(one, home, to);
        self.put(other, other_home, from);
    }

    fn put(&mut self, chunk: Chunk, home: Place, to: Place) {
        if home == to {
            self.moved.remove(chunk.key());
            self.arrived.remove(to.key());
        } else {
            self.moved.insert(chunk.key(), to.key());
            self.arrived.insert(to.key(), chunk.key());
        }
    }

    /// Chunks have moved at once, each to a place that is free or that another one of them leaves. Errors: the number of the first that cannot.
    pub(super) fn put_all(&mut self, moved: &[(Chunk, Place)]) -> Result<(), usize> {
        for (number, &(chunk, to)) in moved.iter().enumerate() {
            let is_there = chunk.stripe < self.stripes && usize::from(chunk.column) < self.columns.len();
            if !is_there || self.moved.get(chunk.key()).is_some() || self.arrived.get(to.key()).is_some() {
                return Err(number);
            }
            self.moved.insert(chunk.key(), to.key());
            self.arrived.insert(to.key(), chunk.key());
        }
        // All are away from their leaves: a leaf has a chunk there only if that one stays.
        let stays = |chunk: Chunk| self.moved.get(chunk.key()).is_none();
        moved.iter().position(|&(_, to)| self.find_in_leaves(to).is_some_and(stays)).map_or(Ok(()), Err)
    }

    /// Chunks that lie elsewhere than their leaves say.
    pub fn exceptions(&self) -> usize {
        self.moved.len()
    }

    /// Whether exceptions are as many as leaves, and at least 64: so retraining stays a constant share of what moves cost. Source: \[A\].
    pub fn wants_retraining(&self) -> bool {
        self.exceptions() >= self.leaves().max(64)
    }

    /// Makes leaves of all exceptions. The map says what it said before.
    pub fn retrain(&mut self) {
        let moved = self.moved.sorted();
        let mut moved = moved.as_slice();
        let mut runs = Vec::new();
        for (number, column) in self.columns.iter_mut().enumerate() {
            let of_column = moved.partition_point(|&(key, _)| usize::from(Chunk::of(key).column) <= number);
            let (mine, others) = moved.split_at(of_column);
            moved = others;
            if mine.is_empty() {
                continue;
            }
            runs.clear();
            column_runs(column, self.stripes, mine, &mut runs);
            *column = Column::new(&runs);
        }
        (self.moved, self.arrived) = (Table::default(), Table::default());
        self.index_places();
    }

    /// Leaves of all columns.
    pub fn leaves(&self) -> usize {
        self.columns.iter().map(|column| column.leaves.len()).sum()
    }

    /// Bytes for look-ups from chunk to place: six for a leaf, four for its start, models, exceptions.
    pub fn bytes(&self) -> usize {
        let column = |column: &Column| 10 * column.leaves.len() + column.levels.bytes();
        self.columns.iter().map(column).sum::<usize>() + self.moved.bytes()
    }

    /// Bytes that look-ups from place to chunk take beside [`LearnedMap::bytes`].
    pub fn inverse_bytes(&self) -> usize {
        size_of_val(self.back.as_slice()) + self.arrived.bytes()
    }

    /// Runs of all columns with nothing moved, and the exceptions: chunk and place.
    pub(super) fn parts(&self) -> (Vec<Vec<Run>>, Vec<(Chunk, Place)>) {
        let runs = |column: &Column| {
            let mut runs = Vec::new();
            column_runs(column, self.stripes, &[], &mut runs);
            runs
        };
        let moved = self.moved.sorted().into_iter().map(|(chunk, place)| (Chunk::of(chunk), Place::of(place)));
        (self.columns.iter().map(runs).collect(), moved.collect())
    }
}

/// Runs of a column, with its exceptions in the order of stripes.
fn column_runs(column: &Column, stripes: u32, mut moved: &[(u64, u64)], runs: &mut Vec<Run>) {
    for (number, leaf) in column.leaves.iter().enumerate() {
        let (start, count) = (column.starts[number], column.count(number, stripes));
        let mut behind = 0;
        while let Some((&(chunk, place), rest)) = moved.split_first() {
            let stripe = Chunk::of(chunk).stripe;
            if stripe - start >= count {
                break;
            }
            leaf.runs(start, behind..stripe - start, runs);
            let Place { drive, chunk } = Place::of(place);
            runs.push(Run { first: stripe, count: 1, drive, chunk, stride: 0 });
            behind = stripe - start + 1;
            moved = rest;
        }
        leaf.runs(start, behind..count, runs);
    }
}

/// The stripes that runs of a column have, which follow each other.
fn check_runs(column: usize, runs: &[Run]) -> Result<u32, MapError> {
    let mut end = 0;
    for run in runs {
        if run.first != end || run.count == 0 {
            return Err(MapError::Stripe { column, stripe: end.into() });
        }
        if run.count > 1 && (run.stride == 0 || !STRIDES.contains(&run.stride)) {
            return Err(MapError::Stride { column, stripe: run.first });
        }
        end = end.checked_add(run.count).ok_or(MapError::Range(column))?;
        let last = i64::from(run.chunk) + i64::from(run.stride) * i64::from(run.count - 1);
        if !(0..=i64::from(u32::MAX)).contains(&last) {
            return Err(MapError::Range(column));
        }
    }
    Ok(end)
}
