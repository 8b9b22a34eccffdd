//! Virtual drives: writes of a busy drive spread over idle peers, a map of what went where, and the
//! copying back when the burst is over.
//!
//! A write is in the map from its completion on, and copying back begins once no request is under way: so every read
//! finds what was written. Data on a lender lies at the slots that it has on its owner. Room for it, beside the data of
//! the lender and of other owners, is not modelled.
//!
//! Source: [P] sheet xbof §5 (VH, VH(ideal)); write split 1 / (1 + lenders) [A].

use flashyard_units::DriveId;

mod ranges;

pub use ranges::{Piece, RangeMap};

/// A range to copy back: read from the lender, write to the owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CopyPiece {
    /// The busy drive.
    pub owner: DriveId,
    /// Where the data is.
    pub lender: DriveId,
    /// First slot, the same on both.
    pub first: u32,
    /// Slots.
    pub count: u32,
}

/// Redirected writes as virtual drives remember them, and the progress of copying back.
pub struct CopyBack {
    maps: Vec<RangeMap>,
    queues: Vec<Vec<CopyPiece>>,
    in_flight: u32,
    planned: bool,
}

impl CopyBack {
    /// Nothing redirected yet, for `owners` busy drives.
    pub fn new(owners: u32) -> Self {
        Self {
            maps: (0..owners).map(|_| RangeMap::default()).collect(),
            queues: vec![Vec::new(); owners as usize],
            in_flight: 0,
            planned: false,
        }
    }

    /// The redirected ranges of a busy drive.
    pub fn map(&mut self, owner: DriveId) -> &mut RangeMap {
        &mut self.maps[owner.index()]
    }

    /// The drive that holds a slot of `drive`.
    pub fn holder(&self, drive: DriveId, slot: u32) -> DriveId {
        let mut holder = drive;
        if let Some(map) = self.maps.get(drive.index()) {
            map.pieces(slot, 1, |piece| holder = piece.lender.unwrap_or(drive));
        }
        holder
    }

    /// Forgets what was redirected so far, as though it had been copied back.
    pub fn forget(&mut self) {
        self.maps.iter_mut().for_each(RangeMap::clear);
    }

    /// Lists what is to be copied, in commands of at most `slots`, lowest addresses last to first.
    pub fn plan(&mut self, slots: u32) {
        self.planned = true;
        for (owner, map) in self.maps.iter_mut().enumerate() {
            let pieces = map.iter().flat_map(|piece| split(piece, DriveId::new(owner as u16), slots));
            self.queues[owner] = pieces.collect();
            self.queues[owner].reverse();
            map.clear();
        }
    }

    /// Whether it is known what is to be copied.
    pub fn is_planned(&self) -> bool {
        self.planned
    }

    /// The next piece of a busy drive; it counts as in flight.
    pub fn next(&mut self, owner: DriveId) -> Option<CopyPiece> {
        let piece = self.queues[owner.index()].pop()?;
        self.in_flight += 1;
        Some(piece)
    }

    /// A piece has been written to its owner.
    pub fn done(&mut self) {
        self.in_flight -= 1;
    }

    /// Whether pieces are queued or in flight.
    pub fn is_running(&self) -> bool {
        self.in_flight > 0 || self.queues.iter().any(|queue| !queue.is_empty())
    }
}

fn split(piece: Piece, owner: DriveId, slots: u32) -> impl Iterator<Item = CopyPiece> {
    let end = piece.first + piece.count;
    let lender = piece.lender.expect("only redirected ranges are listed");
    (piece.first..end).step_by(slots as usize).map(move |first| CopyPiece {
        owner,
        lender,
        first,
        count: slots.min(end - first),
    })
}
