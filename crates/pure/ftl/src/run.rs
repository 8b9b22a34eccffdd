//! Runs: slots that a stream appends to one superblock one after the other, on a medium that completes at once.
//!
//! A run has the result of [`Ftl::append`] and a program of every row, slot by slot. But work that does not depend on
//! the single slot is done once for all of them, and loops over tables are short enough for their misses to overlap.

use crate::ftl::{DieRow, Frontier, Ftl, Stream};
use flashyard_flash::{Medium, Priority, Slot};

impl Ftl {
    /// Slots that the stream can append as a run: all that its open superblock has left but the last one, which closes
    /// it, too.
    #[inline]
    pub(crate) fn run_room(&self, stream: Stream) -> u32 {
        self.frontiers[self.lane(stream)].map_or(0, |frontier| frontier.limit - frontier.next - 1)
    }

    /// Takes the next slots of the stream for `logicals`, [`Ftl::run_room`] at most, without touching the map, and programs
    /// the die rows that this fills. Returns the first slot.
    pub(crate) fn place_run(&mut self, stream: Stream, logicals: &[u32], medium: &mut impl Medium) -> Slot {
        let lane = self.lane(stream);
        let frontier = self.frontiers[lane].expect("a run has room");
        let count = logicals.len() as u32;
        let first = self.layout.slot(frontier.superblock, frontier.next);
        self.blocks.fill_run(frontier.superblock, first, logicals);
        if let Some(stamps) = &mut self.stamps {
            stamps[first.get() as usize..][..logicals.len()].fill(0);
        }
        *self.counter(stream) += u64::from(count);
        let after = Frontier { next: frontier.next + count, ..frontier };
        assert!(after.next < after.limit, "a run leaves the slot that fills the superblock");
        self.frontiers[lane] = Some(after);
        self.program_rows(frontier, after.next, medium);
        first
    }

    /// Points the map of `logicals` at the slots from `first`; their old slots are no longer current.
    pub(crate) fn repoint_run(&mut self, first: Slot, logicals: &[u32]) {
        // Slots written together are overwritten together: a superblock loses several slots at once.
        let (mut number, mut lost) = (0, 0);
        for (slot, &logical) in (first.get()..).zip(logicals) {
            let old = self.map.replace(logical, Slot::new(slot));
            if self.gives_up(logical, old) {
                let superblock = self.blocks.invalidate_uncounted(old);
                if superblock != number {
                    self.blocks.lose(number, lost);
                    (number, lost) = (superblock, 0);
                }
                lost += 1;
            }
        }
        self.blocks.lose(number, lost);
    }

    /// Programs the die rows that were filled while a frontier went on to `next`.
    fn program_rows(&mut self, frontier: Frontier, next: u32, medium: &mut impl Medium) {
        let rows = self.layout.full_die_rows(frontier.next)..self.layout.full_die_rows(next);
        if rows.is_empty() {
            return;
        }
        let (die, row) = self.layout.die_and_row(rows.start);
        let number = frontier.superblock * self.layout.die_rows_per_superblock + rows.start;
        let pages = self.row_pages(frontier.superblock, row);
        let command = self.program_command(DieRow { number, die, pages }, Priority::Background, 0);
        medium.accept_alike(command, rows.len() as u64);
        self.blocks.program_rows(frontier.superblock, rows);
    }
}
