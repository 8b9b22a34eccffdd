//! Garbage collection at the flash: its reads and erases in flight, and the time for which it has been under way.

use crate::command::Tag;
use crate::event::{DriveEffect, DriveEvent};
use crate::flash_port::FlashPort;
use crate::grace::Grace;
use crate::volatile::Volatile;
use flashyard_ftl::{Appended, Ftl};
use flashyard_kernel::Outbox;
use flashyard_units::{SimSpan, SimTime};

/// Work of garbage collection in flight.
#[derive(Default)]
pub(crate) struct GarbageCollection {
    reads: u32,
    /// Superblocks being erased and the dies that have yet to report.
    erasing: Vec<(u32, u32)>,
    /// Since when it is under way.
    since: Option<SimTime>,
    /// How long it was under way before that.
    busy: SimSpan,
    /// Die rows that were read and have no core yet.
    for_cores: Vec<u32>,
    /// Emptied superblocks that translations under way may lead to.
    pub(crate) grace: Grace,
    /// Emptied superblocks whose data is not on flash elsewhere; none on a protected drive.
    needed: Vec<u32>,
    /// Whether the die rows that one of them waits for may be full only after padding.
    pub(crate) hurries: bool,
    /// Superblocks about to be erased, and slots about to be moved: empty between events; their memory is used again.
    released: Vec<u32>,
    pub(crate) moved: Vec<(u32, Appended)>,
}

impl GarbageCollection {
    /// Reads in flight.
    pub(crate) fn reads(&self) -> u32 {
        self.reads
    }

    /// Whether it has no command at the flash.
    pub(crate) fn is_idle(&self) -> bool {
        self.reads == 0 && self.erasing.is_empty()
    }

    /// Time for which garbage collection was under way.
    #[inline]
    pub(crate) fn clock(&self, now: SimTime) -> SimSpan {
        self.busy + self.since.map_or(SimSpan::ZERO, |since| now.since(since))
    }

    #[inline]
    fn set_under_way(&mut self, now: SimTime, under_way: bool) {
        if under_way != self.since.is_some() {
            self.busy = self.clock(now);
            self.since = under_way.then_some(now);
        }
    }

    /// Whether garbage collection is under way: it empties a victim, or superblocks that it has emptied are not erased yet.
    #[inline]
    pub(crate) fn is_under_way(&self, ftl: &Ftl) -> bool {
        let emptied = !self.erasing.is_empty() || self.is_holding();
        ftl.reclaiming() || self.reads > 0 || emptied
    }

    /// Whether an emptied superblock waits before its erase.
    #[inline]
    pub(crate) fn is_holding(&self) -> bool {
        self.grace.is_holding() || self.holds_needed()
    }

    /// Whether an emptied superblock holds data that is not on flash elsewhere.
    #[inline]
    pub(crate) fn holds_needed(&self) -> bool {
        !self.needed.is_empty()
    }

    /// Lets the superblocks go on to their erase whose data is on flash elsewhere now; returns whether there are any.
    pub(crate) fn release_needed(&mut self, volatile: &Volatile) -> bool {
        let before = self.needed.len();
        let grace = &mut self.grace;
        self.needed.retain(|&superblock| {
            let is_needed = volatile.needs(superblock);
            if !is_needed {
                grace.hold(superblock);
            }
            is_needed
        });
        self.needed.len() < before
    }

    /// The power fails, and what is not on flash is lost: gives up everything but erases. Returns the superblocks that were emptied
    /// and are not being erased.
    pub(crate) fn abandon(&mut self) -> Vec<u32> {
        self.reads = 0;
        self.for_cores.clear();
        self.hurries = false;
        let mut emptied = std::mem::take(&mut self.needed);
        self.grace.give_up(&mut emptied);
        emptied
    }

    /// Keeps the clock going while garbage collection is under way.
    #[inline]
    pub(crate) fn note(&mut self, now: SimTime, ftl: &Ftl) {
        let under_way = self.is_under_way(ftl);
        self.set_under_way(now, under_way);
    }

    /// The power fails: the clock stands still, and translations are void.
    pub(crate) fn power_cut(&mut self, now: SimTime) {
        self.grace.forget_translations();
        self.set_under_way(now, false);
    }

    /// A die row is being read.
    pub(crate) fn read_begins(&mut self) {
        self.reads += 1;
    }

    /// A die row that was read is moved.
    pub(crate) fn read_ends(&mut self) {
        self.reads -= 1;
    }

    /// A die row has been read, and moving it is to be the work of a core.
    pub(crate) fn give_to_cores(&mut self, row: u32) {
        self.for_cores.push(row);
    }

    /// Takes a die row whose move is to be the work of a core.
    pub(crate) fn take_for_cores(&mut self) -> Option<u32> {
        self.for_cores.pop()
    }

    /// Erases the emptied superblocks that no translation under way can lead to, and that a drive without protection does
    /// not need.
    pub(crate) fn erase_released(
        &mut self,
        now: SimTime,
        ftl: &Ftl,
        flash: &mut FlashPort,
        volatile: Option<&Volatile>,
        out: &mut impl Outbox<DriveEvent, DriveEffect>,
    ) {
        self.grace.release(&mut self.released);
        let dies = flash.nand.config().geometry.dies();
        for superblock in self.released.drain(..) {
            if volatile.is_some_and(|volatile| volatile.needs(superblock)) {
                self.needed.push(superblock);
                self.hurries = true;
                continue;
            }
            self.erasing.push((superblock, dies));
            for die in 0..dies {
                let command = ftl.erase_command(die as u16, Tag::Erase(superblock).pack());
                flash.issue(now, command, out);
            }
        }
    }

    /// One die has erased its share of a superblock; returns whether it was the last one.
    pub(crate) fn erased(&mut self, superblock: u32) -> bool {
        let erasing = &mut self.erasing;
        let position = erasing.iter().position(|entry| entry.0 == superblock).expect("it was being erased");
        erasing[position].1 -= 1;
        let whole = erasing[position].1 == 0;
        if whole {
            erasing.swap_remove(position);
        }
        whole
    }
}
