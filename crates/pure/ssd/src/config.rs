//! Parameters of a drive.

use crate::command::CommandSpec;
use crate::offsite::{PLACES_MAX, RECORDS_MAX};
use crate::pacing::PacingRule;
use crate::read_plan::Together;
use crate::records::RecordsConfig;
use crate::stripe::StripeConfig;
use flashyard_flash::Geometry;
use flashyard_ftl::{Frontiers, FtlConfig, FtlConfigError, RecoveryError};
use flashyard_nand::{NandConfig, NandConfigError};
use flashyard_units::{ByteRate, Hertz, SimSpan};
use std::ops::Range;

/// Cost of a command in firmware: a cycles and b cycles for each 4 KiB slice, and a stall for each mapping entry read
/// from DRAM. Source: [D] xbof §8.1, §8.3.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FirmwareCost {
    /// Cycles a command, whatever its size.
    pub cycles_per_command: u64,
    /// Cycles a slice of 4 KiB.
    pub cycles_per_slice: u64,
    /// Time a core waits for the mapping entry of each slice. A waiting core is occupied but not busy:
    /// the performance counters count executed cycles.
    pub stall_per_slice: SimSpan,
    /// Cycles for each slice that garbage collection moves, before those of commands: the map changes for it, too.
    pub cycles_per_moved_slice: u64,
    /// Time between two commands that cores begin, at least: what the controller takes in. None where it is zero. A lone command does not
    /// wait for it. Moves of garbage collection are not commands.
    pub command_interval: SimSpan,
}

impl FirmwareCost {
    /// Executed cycles of a command of `slices`.
    #[inline]
    pub const fn cycles(&self, slices: u64) -> u64 {
        self.cycles_per_command + self.cycles_per_slice * slices
    }
}

/// Translation pages of a segment of borrowed memory where nothing else is said. Source: see `HarvestConfig` of `xbof`.
pub const SEGMENT_PAGES: u32 = 512;
/// Records of the redo log of a segment where nothing else is said. Source: as above.
pub const LOG_RECORDS: u32 = 512;

/// Slots of the largest mapping unit. Source: \[X\] drives have units of 4 to 64 KiB.
const UNIT_MAX: u32 = 16;

/// Parameters of one drive.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DriveConfig {
    /// The flash.
    pub nand: NandConfig,
    /// The translation layer.
    pub ftl: FtlConfig,
    /// Controller cores, 1 to 32.
    pub cores: u32,
    /// Their clock.
    pub core_clock: Hertz,
    /// Cost of a command on the cores.
    pub firmware: FirmwareCost,
    /// DMA rate towards the host.
    pub read_rate: ByteRate,
    /// DMA rate from the host.
    pub write_rate: ByteRate,
    /// Write buffer in slots of 4 KiB.
    pub buffer_slots: u32,
    /// Slots that are mapped and written together: 1, 2, 4, 8 or 16.
    pub mapping_unit: u32,
    /// Slots that the controller keeps of reads; none for 0.
    pub read_cache_slots: u32,
    /// Slots that it reads ahead of hosts that read in sequence, into that cache; at most half of it.
    pub read_ahead_slots: u32,
    /// Translation pages held in the drive's own memory; all of them when at least as many as there are.
    pub mapping_cache_pages: u32,
    /// Bytes over the channel bus for one translation page.
    pub translation_page_bytes: u32,
    /// Where the host keeps the map: time from the arrival of a translation page in its memory until its software goes on.
    /// `mapping_cache_pages` are then the host's, which sends a command for each page that it does not hold. The drive keeps
    /// the map without it.
    pub host_map: Option<SimSpan>,
    /// Time to reach a translation page in a peer's memory.
    pub offsite_access: SimSpan,
    /// Rate at which translation pages are copied home from a peer's memory.
    pub offsite_rate: ByteRate,
    /// Translation pages of one segment of borrowed memory, 1 to 512.
    pub segment_pages: u32,
    /// Records of the redo log of a segment, up to 512 of a page of 4 KiB; half of them are flushed at a time.
    pub log_records: u32,
    /// Reads of garbage collection in flight at most.
    pub reclaim_reads: u32,
    /// Whether the write buffer survives power loss, so that a flush has nothing to wait for.
    pub power_loss_protection: bool,
    /// Whether power cuts may come: a drive without protection then keeps what it would have left. Without effect on others.
    pub expects_power_cuts: bool,
    /// Erases that every superblock has had when the drive is made.
    pub erases: u32,
    /// How host writes are paced while garbage collection works.
    pub pacing: PacingRule,
    /// Bytes that are programmed in a second at most, whatever the dies could do: what the drive's power is enough
    /// for. No limit without it.
    pub program_rate: Option<ByteRate>,
    /// Journal and checkpoints of the map that the drive writes to flash; none without it.
    pub records: Option<RecordsConfig>,
    /// Parity across dies; none without it.
    pub stripe: Option<StripeConfig>,
}

/// Why a drive cannot be built.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum DriveConfigError {
    /// The flash cannot be.
    #[error(transparent)]
    Nand(#[from] NandConfigError),
    /// The translation layer cannot be.
    #[error(transparent)]
    Ftl(#[from] FtlConfigError),
    /// Flash cannot hold the given state.
    #[error(transparent)]
    Recovery(#[from] RecoveryError),
    /// A number outside its range.
    #[error("{name} is {value}, give {least} to {most}")]
    Range {
        /// Name of the parameter.
        name: &'static str,
        /// The value given.
        value: u64,
        /// The least possible.
        least: u64,
        /// The most possible.
        most: u64,
    },
    /// A mapping unit that cannot be.
    #[error("a mapping unit of {unit} slots of 4 KiB, give 1, 2, 4, 8 or 16 that divides the {row} slots of a die row")]
    Unit {
        /// Slots asked for.
        unit: u32,
        /// Slots of a die row.
        row: u64,
    },
    /// A mapping unit on a drive whose rows it would not stay whole in.
    #[error(
        "mapping units of several slots need separate frontiers, and pages that hold whole units or are shared by commands"
    )]
    UnitRows,
    /// A mapping unit on a drive whose state is drawn slot by slot.
    #[error("a drawn state has slots and no mapping units")]
    UnitDrawn,
    /// Entries of the map that cannot be.
    #[error("an entry of the map has {bytes} bytes, give 4 or 8")]
    MapEntry {
        /// Bytes asked for.
        bytes: u32,
    },
    /// Records that leave no flash for data.
    #[error("journal and checkpoints take all blocks, give a shorter journal")]
    Records,
    /// Stripes that do not fit the channels.
    #[error("stripes of {members} dies on {channels} channels, give a divisor of the channels from 2 up")]
    Stripe {
        /// Members asked for.
        members: u32,
        /// Channels of the drive.
        channels: u32,
    },
}

impl DriveConfig {
    /// The flash without parity and records, as the translation layer sees it. Means nothing unless the stripes and the records
    /// fit.
    pub fn data_geometry(&self) -> Geometry {
        let geometry = self.nand.geometry;
        let geometry = self.stripe.map_or(geometry, |stripe| stripe.data_geometry(&geometry));
        let records =
            self.records.map_or(0, |records| records.blocks(&geometry, self.ftl.logical_slots, self.mapping_unit));
        Geometry { blocks_per_plane: geometry.blocks_per_plane.saturating_sub(records), ..geometry }
    }

    /// The translation layer with what it has to know of the flash, and the drive's seed for its random choices.
    pub fn translation(&self, seed: u64) -> FtlConfig {
        let capabilities = &self.nand.capabilities;
        FtlConfig {
            seed,
            independent_planes: capabilities.independent_planes,
            sends_codewords: capabilities.partial_transfers,
            loses_memory: self.loses_memory(),
            ..self.ftl
        }
    }

    /// Whether a write may leave a part of a mapping unit as it is.
    #[inline]
    pub(crate) fn has_units(&self) -> bool {
        self.mapping_unit > 1
    }

    /// Slots of the mapping units that a command touches.
    pub(crate) fn units(&self, spec: &CommandSpec) -> Range<u32> {
        let unit = self.mapping_unit;
        let end = u64::from(spec.first + spec.count).next_multiple_of(u64::from(unit));
        spec.first / unit * unit..end.min(u64::from(self.ftl.logical_slots)) as u32
    }

    /// Slots that a write takes of the buffer and of the flash, before those of commands that share no pages are rounded.
    #[inline]
    pub(crate) fn width(&self, spec: &CommandSpec) -> u32 {
        if self.has_units() { self.units(spec).len() as u32 } else { spec.count }
    }

    /// Slots of a torn write's units of which the first `arrived` slots of the host are there: only whole ones count.
    pub(crate) fn whole_units(&self, spec: &CommandSpec, arrived: u32) -> Range<u32> {
        let units = self.units(spec);
        let there = (spec.first + arrived) / self.mapping_unit * self.mapping_unit;
        units.start..if arrived == spec.count { units.end } else { there.max(units.start) }
    }

    /// Pages of several planes that one command senses.
    #[inline]
    pub(crate) fn reads_together(&self) -> Together {
        let capabilities = &self.nand.capabilities;
        match (capabilities.independent_planes, capabilities.cache_read.is_some()) {
            (false, _) => Together::Neighbours,
            (true, false) => Together::Rows,
            (true, true) => Together::None,
        }
    }

    /// Whether a power cut that may come takes what is not on flash.
    pub(crate) fn loses_memory(&self) -> bool {
        self.expects_power_cuts && !self.power_loss_protection
    }

    /// Checks the records, if there are any.
    fn check_records(&self) -> Result<(), DriveConfigError> {
        let Some(RecordsConfig { journal_entry_bytes, map_entry_bytes, journal_pages }) = self.records else {
            return Ok(());
        };
        if !matches!(map_entry_bytes, 4 | 8) {
            return Err(DriveConfigError::MapEntry { bytes: map_entry_bytes });
        }
        let ranges =
            [("journal_entry_bytes", journal_entry_bytes, 4, 64), ("journal_pages", journal_pages, 1, 1 << 28)];
        for (name, value, least, most) in ranges {
            if !(least..=most).contains(&value) {
                let [value, least, most] = [value, least, most].map(u64::from);
                return Err(DriveConfigError::Range { name, value, least, most });
            }
        }
        if self.data_geometry().blocks_per_plane == 0 {
            return Err(DriveConfigError::Records);
        }
        Ok(())
    }

    /// Checks ranges.
    pub fn validate(&self) -> Result<(), DriveConfigError> {
        self.nand.validate()?;
        if let Some(StripeConfig { members, .. }) = self.stripe {
            let channels = self.nand.geometry.channels;
            if members < 2 || !channels.is_multiple_of(members) {
                return Err(DriveConfigError::Stripe { members, channels });
            }
        }
        self.check_records()?;
        self.ftl.validate(&self.data_geometry())?;
        let row = u64::from(self.nand.geometry.planes_per_die) * u64::from(self.nand.geometry.page_bytes / 4096);
        let ranges = [
            ("cores", u64::from(self.cores), 1, 32),
            ("buffer_slots", u64::from(self.buffer_slots), 2 * row, u64::from(u32::MAX)),
            ("segment_pages", u64::from(self.segment_pages), 1, u64::from(PLACES_MAX)),
            // A reclaimed die row must fit into one half, or garbage collection could not go on.
            ("log_records", u64::from(self.log_records), 2 * row.min(256), u64::from(RECORDS_MAX)),
            ("read_ahead_slots", u64::from(self.read_ahead_slots), 0, u64::from(self.read_cache_slots) / 2),
            ("reclaim_reads", u64::from(self.reclaim_reads), 1, 65_536),
        ];
        for (name, value, least, most) in ranges {
            if !(least..=most).contains(&value) {
                return Err(DriveConfigError::Range { name, value, least, most });
            }
        }
        let unit = self.mapping_unit;
        let page = self.nand.geometry.page_bytes / 4096;
        if !unit.is_power_of_two() || unit > UNIT_MAX || !row.is_multiple_of(u64::from(unit)) {
            return Err(DriveConfigError::Unit { unit, row });
        }
        if unit > 1 && (self.ftl.frontiers == Frontiers::Shared || !self.ftl.coalesce && !page.is_multiple_of(unit)) {
            return Err(DriveConfigError::UnitRows);
        }
        if unit > 1 && self.ftl.drawn {
            return Err(DriveConfigError::UnitDrawn);
        }
        Ok(())
    }
}
