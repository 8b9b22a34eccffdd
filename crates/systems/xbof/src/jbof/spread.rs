//! Virtual drives: writes of a busy drive go to one of its drives, reads to wherever the data is, and copies bring it
//! home when the burst is over. What went where is in [`CopyBack`].

use super::config::{Design, JbofConfig, VhConfig};
use super::request::Request;
use crate::vh::{CopyBack, CopyPiece, Piece};
use flashyard_kernel::Rng;
use flashyard_ssd::Operation;
use flashyard_units::{DriveId, SimSpan};

/// State of a request that only virtual drives keep.
#[derive(Clone, Copy, Debug, Default)]
struct Spread {
    /// The busy drive that was asked.
    home: DriveId,
    /// Parts of a split read that have not completed.
    parts: u32,
}

/// The state of the virtual drives of an enclosure.
pub(super) struct VirtualDrives {
    config: VhConfig,
    busy: u32,
    idle: u32,
    /// Whether data is copied back to its owners.
    copies_back: bool,
    copy_back: CopyBack,
    rng: Rng,
    /// By request.
    spreads: Vec<Spread>,
    /// Writes and trims that went to lenders.
    pub(super) redirected: u64,
}

impl VirtualDrives {
    /// Nothing is redirected yet; `seed` is that of the run.
    pub(super) fn new(config: &JbofConfig, seed: u64) -> Self {
        Self {
            config: config.vh,
            busy: config.busy_drives,
            idle: config.drives - config.busy_drives,
            copies_back: config.design == Design::Vh,
            copy_back: CopyBack::new(config.busy_drives),
            rng: Rng::named(seed, "vh.spread"),
            spreads: Vec::new(),
            redirected: 0,
        }
    }

    /// The drive that takes a write or trim of busy drive `owner`: a write may go to a lender.
    pub(super) fn place(&mut self, owner: DriveId, operation: Operation) -> DriveId {
        if operation != Operation::Write {
            return owner;
        }
        let lenders = u64::from(self.config.lenders.min(self.idle));
        // Draw 0 of 1 + lenders stays home.
        let Some(index) = self.rng.below(lenders + 1).checked_sub(1) else { return owner };
        let place = (u64::from(owner.get()) * lenders + index) % u64::from(self.idle);
        self.redirected += 1;
        DriveId::new((u64::from(self.busy) + place) as u16)
    }

    /// The runs of one drive that make up a read.
    pub(super) fn pieces(&mut self, owner: DriveId, first: u32, count: u32) -> Vec<Piece> {
        let mut pieces = Vec::new();
        self.copy_back.map(owner).pieces(first, count, |piece| pieces.push(piece));
        pieces
    }

    /// Request `id` is one of busy drive `home`, split into `parts`, or into none.
    pub(super) fn begin(&mut self, id: u32, home: DriveId, parts: u32) {
        if self.spreads.len() <= id as usize {
            self.spreads.resize(id as usize + 1, Spread::default());
        }
        self.spreads[id as usize] = Spread { home, parts };
    }

    /// The busy drive that request `id` is one of.
    #[inline]
    pub(super) fn home(&self, id: u32) -> DriveId {
        self.spreads[id as usize].home
    }

    /// Parts of request `id` that have not completed.
    pub(super) fn parts(&self, id: u32) -> u32 {
        self.spreads[id as usize].parts
    }

    /// A part of request `id` has completed; returns whether it was the last one.
    pub(super) fn part_done(&mut self, id: u32) -> bool {
        let parts = &mut self.spreads[id as usize].parts;
        *parts -= 1;
        *parts == 0
    }

    /// Extra host time of a request that goes to a lender.
    pub(super) fn cost(&self, id: u32, request: &Request, config: &JbofConfig) -> SimSpan {
        let is_moved = self.home(id) != request.drive && !request.is_copy() && !request.is_part();
        if is_moved { config.host.clock.span_of(self.config.redirect_cycles) } else { SimSpan::ZERO }
    }

    /// Reads find what was written on the drive that took it, from the completion on: until then it is not there, and
    /// they are sent to where the data was.
    pub(super) fn note_written(&mut self, id: u32, request: &Request) {
        if matches!(request.operation, Operation::Write | Operation::Trim) {
            let home = self.home(id);
            let lender = (request.drive != home).then_some(request.drive);
            self.copy_back.map(home).write(request.first, request.count, lender);
        }
    }

    /// Forgets what was redirected so far, as though it had been copied back.
    pub(super) fn forget(&mut self) {
        self.copy_back.forget();
    }

    /// Plans the copying back, if there is one to plan; returns the copies that each busy drive may have under way.
    pub(super) fn plan(&mut self) -> Option<u32> {
        let plans = self.copies_back && !self.copy_back.is_planned();
        plans.then(|| {
            self.copy_back.plan(self.config.copy_back_slots);
            self.config.copy_back_depth
        })
    }

    /// Whether the measured window ends with the copying back, not with the streams.
    pub(super) fn copies_back(&self) -> bool {
        self.copies_back
    }

    /// The next copy of busy drive `owner`.
    pub(super) fn next_copy(&mut self, owner: DriveId) -> Option<CopyPiece> {
        self.copy_back.next(owner)
    }

    /// A copy has reached its owner.
    pub(super) fn copy_done(&mut self) {
        self.copy_back.done();
    }

    /// Whether copies are queued or under way.
    pub(super) fn is_copying(&self) -> bool {
        self.copy_back.is_running()
    }

    /// The drive that holds a slot of `drive`.
    pub(super) fn holder(&self, drive: DriveId, slot: u32) -> DriveId {
        self.copy_back.holder(drive, slot)
    }
}

#[cfg(test)]
mod tests {
    use super::super::request::{Phase, Purpose};
    use super::super::small;
    use super::*;
    use flashyard_units::SimTime;

    fn drives(design: Design) -> VirtualDrives {
        VirtualDrives::new(&small::config(design), 1)
    }

    fn request(drive: DriveId, operation: Operation) -> Request {
        Request {
            stream: 0,
            drive,
            phase: Phase::Completed,
            operation,
            purpose: Purpose::Foreground,
            first: 8,
            count: 4,
            source: 0,
            len_bytes: 0,
            issued: SimTime::ZERO,
            stamp: 0,
        }
    }

    #[test]
    fn writes_go_home_or_to_the_lender_of_their_drive_and_nothing_else_moves() {
        let mut drives = drives(Design::Vh);
        let places: Vec<DriveId> = (0..100).map(|_| drives.place(DriveId::new(1), Operation::Write)).collect();
        let moved = places.iter().filter(|&&place| place == DriveId::new(3)).count();
        assert!(
            places.iter().all(|&place| place == DriveId::new(1) || place == DriveId::new(3))
                && (30..70).contains(&moved),
            "{places:?}"
        );
        assert_eq!(drives.redirected, moved as u64);
        for operation in [Operation::Trim, Operation::Flush] {
            assert!((0..20).all(|_| drives.place(DriveId::new(1), operation) == DriveId::new(1)), "{operation:?}");
        }
    }

    #[test]
    fn reads_follow_a_write_that_has_completed_and_a_copy_covers_it() {
        let mut drives = drives(Design::Vh);
        drives.begin(5, DriveId::new(0), 0);
        drives.note_written(5, &request(DriveId::new(2), Operation::Write));
        let pieces = drives.pieces(DriveId::new(0), 6, 8);
        let homes: Vec<_> = pieces.iter().map(|piece| (piece.first, piece.count, piece.lender)).collect();
        assert_eq!(homes, [(6, 2, None), (8, 4, Some(DriveId::new(2))), (12, 2, None)]);
        assert_eq!(
            (drives.holder(DriveId::new(0), 8), drives.holder(DriveId::new(0), 12)),
            (DriveId::new(2), DriveId::new(0))
        );
        assert!(drives.plan().is_some() && drives.plan().is_none(), "it is planned once");
        let copy = drives.next_copy(DriveId::new(0)).expect("the write is copied back");
        assert_eq!((copy.lender, copy.first, copy.count), (DriveId::new(2), 8, 4));
        assert!(
            drives.is_copying()
                && drives.next_copy(DriveId::new(0)).is_none()
                && drives.next_copy(DriveId::new(1)).is_none()
        );
        drives.copy_done();
        assert!(!drives.is_copying());
    }

    #[test]
    fn only_a_request_of_an_application_that_goes_elsewhere_costs_the_host_more() {
        let (config, mut drives) = (small::config(Design::VhIdeal), drives(Design::VhIdeal));
        drives.begin(0, DriveId::new(0), 0);
        let cost = |drive, purpose| drives.cost(0, &Request { purpose, ..request(drive, Operation::Read) }, &config);
        assert!(cost(DriveId::new(2), Purpose::Foreground) > SimSpan::ZERO);
        assert_eq!(cost(DriveId::new(0), Purpose::Foreground), SimSpan::ZERO);
        assert_eq!(cost(DriveId::new(2), Purpose::Part { parent: 1 }), SimSpan::ZERO);
        assert_eq!(cost(DriveId::new(2), Purpose::CopyRead), SimSpan::ZERO);
        assert!(drives.plan().is_none(), "data is not copied back");
    }
}
