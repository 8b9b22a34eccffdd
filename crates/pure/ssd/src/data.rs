//! The data-end: its parts, the entry of commands, and the paths of flash completions.

use crate::collection::GarbageCollection;
use crate::command::{CommandSpec, Commands, Tag};
use crate::config::{DriveConfig, DriveConfigError};
use crate::counters::DataCounters;
use crate::dma::{Dma, SharedLink};
use crate::event::{DriveEffect, DriveEvent};
use crate::flash_port::FlashPort;
use crate::loads::Loads;
use crate::lost::LostData;
use crate::merging::Merging;
use crate::movement::MovementLog;
use crate::offsite::Offsite;
use crate::pacing::Pacer;
use crate::preconditioning::Overwrites;
use crate::read_cache::ReadCache;
use crate::read_plan::ReadPlan;
use crate::rebuilds::Rebuilds;
use crate::records::Records;
use crate::scan::Scan;
use crate::supply::Power;
use crate::volatile::Volatile;
use crate::write_buffer::WriteBuffer;
use flashyard_blk::Operation;
use flashyard_flash::Priority;
use flashyard_ftl::{
    AgedState, Ftl, MappingCache, RecoveryError, SLOTS_PER_TRANSLATION_PAGE, Stream, SuperblockContents, VictimPolicy,
};
use flashyard_kernel::{Outbox, Rng};
use flashyard_nand::{NandDone, NandEvent};
use flashyard_units::SimTime;

/// The data-end of one drive.
pub struct DataEnd {
    pub(crate) config: DriveConfig,
    /// The translation layer.
    pub ftl: Ftl,
    /// The part of the map that is in memory.
    pub cache: MappingCache,
    /// The flash and the way to it.
    pub flash: FlashPort,
    pub(crate) collection: GarbageCollection,
    pub(crate) rebuilds: Rebuilds,
    pub(crate) pacer: Pacer,
    pub(crate) offsite: Offsite,
    pub(crate) power: Power,
    /// Whether reads of superblocks are counted.
    pub(crate) counts_reads: bool,
    /// Whether a read only reads flash: there are no read cache, parity, stamps or counts of reads.
    pub(crate) reads_plainly: bool,
    /// Changes with every power cut.
    pub(crate) generation: u32,
    pub(crate) commands: Commands,
    /// `None` without one.
    pub(crate) read_cache: Option<Box<ReadCache>>,
    pub(crate) loads: Loads,
    /// The plan of the read at hand, and plans of translations that have ended: their memory is used again.
    pub(crate) plan: ReadPlan,
    pub(crate) spare_plans: Vec<ReadPlan>,
    /// Rests of mapping units that writes leave as they are.
    pub(crate) merging: Merging,
    pub(crate) pending_store: u32,
    pub(crate) next_store_die: u32,
    /// `None` where the drive writes nothing about itself.
    pub(crate) records: Option<Box<Records>>,
    pub(crate) buffer: WriteBuffer,
    pub(crate) lost: LostData,
    /// `None` unless a power cut may come that takes what is not on flash.
    pub(crate) volatile: Option<Box<Volatile>>,
    pub(crate) scan: Scan,
    /// To the host.
    pub(crate) read_dma: Dma,
    /// The link to the host, where reads and writes share it.
    pub link: SharedLink,
    pub(crate) counters: DataCounters,
    /// Stamps of the read commands completed last, when the layer keeps stamps: tag, slot, stamp.
    pub(crate) stamps_read: Vec<(u32, u32, u64)>,
    /// Movements of payload, for an owner that keeps it.
    pub movements: MovementLog,
}

/// Fills die rows that were begun, and takes them as programmed.
fn fill_rows(ftl: &mut Ftl) {
    let unit = ftl.layout().slots_per_die_row;
    for stream in [Stream::Host, Stream::Moved] {
        if let Some(row) = ftl.pad(stream, unit) {
            ftl.row_programmed(row.number);
        }
    }
}

impl DataEnd {
    /// A data-end over preconditioned flash.
    ///
    /// Errors: a parameter outside its range.
    pub fn new(config: DriveConfig, seed: u64) -> Result<Self, DriveConfigError> {
        config.validate()?;
        let mut ftl = Ftl::new(&config.data_geometry(), config.translation(seed))?;
        if config.erases > 0 {
            ftl.project_erase_counts(&vec![config.erases; ftl.layout().superblocks as usize]);
            // Leveling begins with them, as after preconditioning.
            ftl.set_wear_leveling(ftl.config().wear_leveling);
        }
        Ok(Self::over(config, ftl, 0, seed))
    }

    /// A data-end over flash with these contents, its protected buffer among them. Without protection everything is on flash: the last
    /// owner has flushed it.
    ///
    /// Errors: a parameter outside its range, contents that cannot be.
    pub fn recovered(
        config: DriveConfig,
        contents: &[SuperblockContents],
        seed: u64,
    ) -> Result<Self, DriveConfigError> {
        config.validate()?;
        let mut ftl = Ftl::recovered(&config.data_geometry(), config.translation(seed), contents)?;
        if config.loses_memory() {
            fill_rows(&mut ftl);
        }
        let buffered = ftl.buffered(Stream::Host);
        let mut data = Self::over(config, ftl, buffered, seed);
        data.lost.adopt(contents);
        Ok(data)
    }

    fn over(config: DriveConfig, ftl: Ftl, buffered: u32, seed: u64) -> Self {
        let buffer = WriteBuffer::new(&config, &ftl, buffered);
        let pages = config.ftl.logical_slots.div_ceil(SLOTS_PER_TRANSLATION_PAGE);
        let volatile = config.loses_memory().then(|| {
            assert!(
                config.stripe.is_none() && buffered == 0,
                "a power cut would take parity, or data of an earlier owner"
            );
            Box::new(Volatile::new(*ftl.layout()))
        });
        let counts_reads = config.nand.wear.is_some()
            || config.ftl.refresh_reads.is_some()
            || matches!(config.ftl.victim, VictimPolicy::CapacityVariant(_));
        Self {
            ftl,
            cache: MappingCache::new(pages, config.mapping_cache_pages),
            flash: FlashPort::new(&config, seed),
            collection: GarbageCollection::default(),
            rebuilds: Rebuilds::default(),
            pacer: Pacer::new(config.pacing, config.buffer_slots / 2),
            offsite: Offsite::new(&config),
            power: Power::Ready,
            counts_reads,
            reads_plainly: !counts_reads
                && config.read_cache_slots == 0
                && config.stripe.is_none()
                && !config.ftl.stamps,
            generation: 0,
            commands: Commands::new(),
            read_cache: (config.read_cache_slots > 0)
                .then(|| Box::new(ReadCache::new(config.read_cache_slots, config.read_ahead_slots))),
            loads: Loads::default(),
            plan: ReadPlan::default(),
            spare_plans: Vec::new(),
            merging: Merging::default(),
            pending_store: 0,
            next_store_die: 0,
            records: config.records.map(|records| {
                let page_bytes = config.nand.geometry.page_bytes;
                Box::new(Records::new(records, page_bytes, config.ftl.logical_slots, config.mapping_unit))
            }),
            buffer,
            lost: LostData::default(),
            volatile,
            scan: Scan::default(),
            read_dma: Dma::new(config.read_rate),
            link: SharedLink::default(),
            counters: DataCounters::default(),
            stamps_read: Vec::new(),
            movements: MovementLog::default(),
            config,
        }
    }

    /// Overwrites the filled slots at random, without timing: the state of a drive in use. The mapping cache keeps what it
    /// held.
    pub fn overwrite(&mut self, overwrites: Overwrites, rng: &mut Rng) {
        let filled = u64::from(self.config.ftl.filled_slots);
        overwrites.carry_out(&mut self.ftl, (filled, self.config.mapping_unit.into()), rng);
        pad_frontiers(&mut self.ftl);
    }

    /// Restores an aged state; its write buffer is flushed.
    ///
    /// Errors: a state that cannot be, or not of this drive; nothing has changed then.
    pub fn restore(&mut self, state: &AgedState) -> Result<(), RecoveryError> {
        self.ftl =
            Ftl::from_aged(&self.config.data_geometry(), self.config.translation(self.ftl.config().seed), state)?;
        pad_frontiers(&mut self.ftl);
        Ok(())
    }

    /// Counts of the work so far.
    pub fn counters(&self) -> &DataCounters {
        &self.counters
    }

    /// The state that decides whether writes and garbage collection can go on, for messages about a drive that is
    /// stuck.
    pub fn describe(&self) -> String {
        format!(
            "buffer {} of {} slots, {} promised, room for {} host and {} moved slots, {} writes and {} flushes wait, \
             {} programs and {} reclaim reads in flight, reclaim needed: {}, under way: {}, {} single-level superblocks, {} changes wait for a log",
            self.buffer.used(),
            self.config.buffer_slots,
            self.buffer.promised(),
            self.ftl.host_room(),
            self.ftl.moved_room(),
            self.buffer.line(),
            self.buffer.flushes_waiting(),
            self.buffer.programs(),
            self.collection.reads(),
            self.ftl.reclaim_needed(),
            self.ftl.reclaiming(),
            self.ftl.single_level_in_use(),
            self.offsite.waiting.len()
        )
    }

    /// Takes the stamps read since the last call: (command tag, logical slot, stamp). Empty without stamps.
    pub fn take_stamps_read(&mut self) -> Vec<(u32, u32, u64)> {
        std::mem::take(&mut self.stamps_read)
    }

    /// Carries out a command whose firmware work is done. Panics beyond the exported slots, and while the drive is
    /// not ready: the owner has checked the range, and waits for [`DriveEffect::Ready`].
    #[inline]
    pub fn execute(&mut self, now: SimTime, spec: CommandSpec, out: &mut impl Outbox<DriveEvent, DriveEffect>) {
        spec.check(self.ftl.config());
        let index = self.admit(now, spec);
        if spec.operation == Operation::Flush {
            self.flush(now, index, out);
        } else {
            self.look_up(now, index, out);
        }
    }

    /// Takes a command in; returns its number here.
    #[inline]
    pub(crate) fn admit(&mut self, now: SimTime, spec: CommandSpec) -> u32 {
        assert!(self.power == Power::Ready, "a command for a drive that is not ready");
        self.counters.executed += 1;
        self.commands.admit(now, spec)
    }

    #[inline]
    pub(crate) fn complete(&mut self, at: SimTime, index: u32, out: &mut impl Outbox<DriveEvent, DriveEffect>) {
        self.counters.completed += 1;
        self.commands.complete(at, index, out);
    }

    /// Handles the data-end's own events.
    #[inline]
    pub(crate) fn nand_event(
        &mut self,
        now: SimTime,
        event: NandEvent,
        out: &mut impl Outbox<DriveEvent, DriveEffect>,
    ) {
        let completions = self.flash.handle(now, event, out);
        // Not drained: that hands its ends over in memory, and a processor waits for them.
        for done in &completions {
            self.flash_done(now, done, out);
        }
        self.flash.keep(completions);
    }

    #[inline]
    fn flash_done(&mut self, now: SimTime, done: &NandDone, out: &mut impl Outbox<DriveEvent, DriveEffect>) {
        let recovers = done.uncorrected && self.given_up(now, Tag::unpack(done.tag), done.die, out);
        if done.priority == Priority::Background && self.flash.has_turns() && self.flash.end_turn(now, done.die, out) {
            // Garbage collection reads no more while too much waits for its turn.
            self.pump_reclaim(now, out);
        }
        if recovers {
            return;
        }
        match Tag::unpack(done.tag) {
            Tag::Read(index, slots) => self.read_done(now, index, slots, &done.time, out),
            Tag::Load(page) => match self.config.host_map {
                None => self.loaded(now, page, out),
                Some(software) => {
                    let sent = self.read_dma.reserve(now, 1).max(self.link.pass(now, 1));
                    out.at(sent + software, DriveEvent::PageHeard { page });
                }
            },
            Tag::HostRow(row) => {
                self.buffer.give_back(self.ftl.layout().slots_per_die_row);
                self.programmed(now, row, out);
                self.admit_waiting(now, out);
            }
            Tag::MovedRow(row) => self.programmed(now, row, out),
            Tag::Store | Tag::Record => {}
            Tag::Reclaim(row) => self.reclaim_read_done(now, row, out),
            Tag::Erase(superblock) => self.erase_done(now, superblock, out),
            Tag::Rebuild(number) => self.rebuild_done(now, number, &done.time, out),
            Tag::Parity(stripe) => self.flash.parity_programmed(stripe),
            Tag::Ahead(fetch) => self.fetched(now, fetch, out),
            Tag::Merge(index) => self.read_done(now, index, 0, &done.time, out),
            Tag::Scan => {
                self.scan.row_read();
                self.become_ready(out);
            }
        }
    }

    #[inline]
    fn programmed(&mut self, now: SimTime, row: u32, out: &mut impl Outbox<DriveEvent, DriveEffect>) {
        self.ftl.row_programmed(row);
        if let Some(volatile) = &mut self.volatile {
            volatile.row_programmed(row);
            if self.collection.release_needed(volatile) {
                self.collection.erase_released(now, &self.ftl, &mut self.flash, Some(volatile), out);
            }
        }
        if self.buffer.program_ends() {
            while let Some(index) = self.buffer.next_flushed() {
                self.commands.account_wait(now, index, self.collection.clock(now));
                self.complete(now, index, out);
            }
        }
        self.pump_reclaim(now, out);
        self.end_hopeless(now, out);
    }
}

/// The last die rows are on flash too: the write buffer is empty when time begins.
fn pad_frontiers(ftl: &mut Ftl) {
    let unit = ftl.layout().slots_per_die_row;
    for stream in [Stream::Host, Stream::Moved] {
        if let Some(row) = ftl.pad(stream, unit) {
            ftl.row_programmed(row.number);
        }
    }
}
