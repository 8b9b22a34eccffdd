//! Virtual drives: writes of a busy drive go to one of its drives, reads to wherever the data is, and copies bring it home
//! when the burst is over. What went where is in [`CopyBack`].

use super::config::{Design, JbofConfig, VhConfig};
use super::request::Request;
use crate::vh::{CopyBack, CopyPiece, Piece};
use flashyard_kernel::Rng;
use flashyard_ssd::Operation;
use flashyard_units::SimSpan;

/// What a virtual drive knows of a request beside what every design does.
#[derive(Clone, Copy, Debug, Default)]
struct Spread {
    /// The busy drive that was asked.
    home: u16,
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
    pub(super) fn place(&mut self, owner: u16, operation: Operation) -> u16 {
        if operation != Operation::Write {
            return owner;
        }
        let lenders = u64::from(self.config.lenders.min(self.idle));
        // Draw 0 of 1 + lenders stays home.
        let Some(index) = self.rng.below(lenders + 1).checked_sub(1) else { return owner };
        let place = (u64::from(owner) * lenders + index) % u64::from(self.idle);
        self.redirected += 1;
        (u64::from(self.busy) + place) as u16
    }

    /// The runs of one drive that make up a read.
    pub(super) fn pieces(&mut self, owner: u16, first: u32, count: u32) -> Vec<Piece> {
        let mut pieces = Vec::new();
        self.copy_back.map(owner).pieces(first, count, |piece| pieces.push(piece));
        pieces
    }

    /// Request `id` is one of busy drive `home`, split into `parts`, or into none.
    pub(super) fn begin(&mut self, id: u32, home: u16, parts: u32) {
        if self.spreads.len() <= id as usize {
            self.spreads.resize(id as usize + 1, Spread::default());
        }
        self.spreads[id as usize] = Spread { home, parts };
    }

    /// The busy drive that request `id` is one of.
    #[inline]
    pub(super) fn home(&self, id: u32) -> u16 {
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

    /// Reads find what was written on the drive that took it, from the completion on: until then it is not there, and they
    /// are sent to where the data was.
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
    pub(super) fn next_copy(&mut self, owner: u16) -> Option<CopyPiece> {
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
    pub(super) fn holder(&self, drive: u16, slot: u32) -> u16 {
        self.copy_back.holder(drive, slot)
    }
}
