//! Mapping look-ups: translation pages found in memory, fetched from flash, and written back.

use crate::command::{Active, Tag};
use crate::config::DriveConfig;
use crate::data::DataEnd;
use crate::event::{DriveEffect, DriveEvent};
use flashyard_blk::Operation;
use flashyard_flash::{CommandKind, FlashCommand, Pages, Planes, Priority};
use flashyard_ftl::Residence;
use flashyard_kernel::Outbox;
use flashyard_stats::Cause;
use flashyard_units::{SimSpan, SimTime};

/// The read of a translation page.
pub(crate) fn page_read(config: &DriveConfig, page: u32) -> FlashCommand {
    // Translation pages are spread over the dies by their number and kept in the fastest mode:
    // the published penalty of a miss fits no slower one ([D] xbof §8.7).
    let geometry = &config.nand.geometry;
    let place = page.wrapping_mul(2_654_435_761);
    let planes = if config.nand.capabilities.independent_planes {
        Planes::alone((place / geometry.dies() % geometry.planes_per_die) as u8)
    } else {
        Planes::together(1)
    };
    FlashCommand {
        kind: CommandKind::Read,
        die: (place % geometry.dies()) as u16,
        planes,
        pages: Pages::LSB.single_level(),
        priority: Priority::Foreground,
        // Where translation pages lie is not modelled, nor is their wear.
        erases: 0,
        reads: 0,
        bus_bytes: config.translation_page_bytes,
        tag: Tag::Load(page).pack(),
    }
}

/// The program of a flash page of translation pages on `die`.
pub(crate) fn page_program(config: &DriveConfig, die: u16) -> FlashCommand {
    FlashCommand {
        kind: CommandKind::Program,
        die,
        planes: Planes::together(1),
        pages: Pages::LSB.single_level(),
        priority: Priority::Background,
        erases: 0,
        reads: 0,
        bus_bytes: config.nand.geometry.page_bytes,
        tag: Tag::Store.pack(),
    }
}

impl DataEnd {
    /// Looks up the command's translation pages from its present one on; goes on to the data once all
    /// are there.
    #[inline]
    pub(crate) fn look_up(&mut self, now: SimTime, index: u32, out: &mut impl Outbox<DriveEvent, DriveEffect>) {
        let Active { spec, page: first, .. } = self.commands[index];
        if self.cache.is_complete() {
            self.cache.access(first, false);
            return self.start_data(now, index, out);
        }
        let write = spec.operation != Operation::Read;
        for page in first..=spec.last_page() {
            let access = self.cache.access(page, write);
            if access.found == Residence::Lost {
                self.commands[index].page = page;
                return self.offsite.park(&self.cache, page, index);
            }
            self.commands[index].page = page + 1;
            if let Some(evicted) = access.evicted {
                self.left_cache(now, evicted, out);
            }
            if self.loads.wait(page, index) {
                return;
            }
            match access.found {
                Residence::Local => {}
                Residence::Offsite => self.commands[index].remote += self.config.offsite_access,
                Residence::Flash | Residence::Lost => return self.load(now, page, index, out),
            }
        }
        self.looked_up(now, index, out);
    }

    /// All translation pages are there: the accesses to peers' memory take their time, then the data follows.
    #[inline]
    fn looked_up(&mut self, now: SimTime, index: u32, out: &mut impl Outbox<DriveEvent, DriveEffect>) {
        let active = &mut self.commands[index];
        let remote = active.remote;
        if remote > SimSpan::ZERO {
            active.account(now, Cause::Mapping);
            active.time.add(Cause::InterDrive, remote);
            active.accounted = now + remote;
            out.at(now + remote, DriveEvent::Mapped { command: index });
        } else {
            self.start_data(now, index, out);
        }
    }

    /// Reads a translation page from flash on behalf of a command.
    fn load(&mut self, now: SimTime, page: u32, index: u32, out: &mut impl Outbox<DriveEvent, DriveEffect>) {
        self.loads.begin(page, index);
        self.counters.translation_reads += 1;
        if self.config.host_map.is_some() {
            return out.emit(DriveEffect::FetchPage { page });
        }
        self.flash.issue(now, page_read(&self.config, page), out);
    }

    /// Notes a dirty translation page that goes to flash; four share a flash page ([A] xbof §9.3).
    pub(crate) fn store(&mut self, now: SimTime, out: &mut impl Outbox<DriveEvent, DriveEffect>) {
        self.pending_store += 1;
        if self.pending_store < self.ftl.layout().slots_per_page {
            return;
        }
        self.pending_store = 0;
        self.next_store_die = (self.next_store_die + 1) % self.config.nand.geometry.dies();
        self.counters.translation_programs += 1;
        let die = self.next_store_die as u16;
        if self.config.host_map.is_some() {
            return out.emit(DriveEffect::StorePages { die });
        }
        self.flash.issue(now, page_program(&self.config, die), out);
    }

    /// A translation page has come to where the map is kept: commands that waited for it go on.
    pub(crate) fn loaded(&mut self, now: SimTime, page: u32, out: &mut impl Outbox<DriveEvent, DriveEffect>) {
        let mut waiters = self.loads.end(page);
        while let Some(index) = waiters.pop_front() {
            let Active { spec, page, .. } = self.commands[index];
            if page > spec.last_page() {
                self.looked_up(now, index, out);
            } else {
                self.look_up(now, index, out);
            }
        }
        self.loads.keep(waiters);
    }

    /// Starts on the data of a command whose translation is known.
    // Not in each caller: see `ReadPlan::walk`.
    #[inline(never)]
    pub(crate) fn start_data(&mut self, now: SimTime, index: u32, out: &mut impl Outbox<DriveEvent, DriveEffect>) {
        let active = &mut self.commands[index];
        active.account(now, Cause::Mapping);
        match active.spec.operation {
            Operation::Read => self.start_read(now, index, out),
            Operation::Write => self.start_write(now, index, out),
            Operation::Trim => self.change_map(now, index, out),
            Operation::Remap => self.start_remap(now, index, out),
            Operation::Flush => unreachable!("a flush touches no data"),
        }
    }
}
