//! Where the blocks of volumes lie in the volumes of the world.

use super::extent::{Extent, cut, units_of};
use super::table::{NAMESPACES_MAX, Table};
use flashyard_blk::{Operation, VolumeInfo, VolumeLimits, VolumeRequest};
use flashyard_flash::SLOT_BYTES;
use flashyard_nvme::protection::Metadata;
use flashyard_nvmf::target::Attachment;
use flashyard_ssd::Movement;
use flashyard_units::VolumeId;

/// Where a volume lies.
#[derive(Clone, Debug)]
pub(crate) struct Space {
    /// The volume of the world.
    pub(crate) world: VolumeId,
    /// Whether it is all of that volume, from its beginning.
    is_whole: bool,
    /// In the order of its own units.
    extents: Vec<Extent>,
    /// Metadata of its blocks.
    pub(crate) metadata: Metadata,
    /// Units of it that hold something, where it is a part.
    used: u64,
    /// Its extents go on to an end that it has lost, for requests under way.
    keeps_end: bool,
}

/// A namespace as front ends see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamespaceInfo {
    /// Identifier.
    pub nsid: u32,
    /// Counts the namespaces that the drive has had.
    pub serial: u32,
    /// The volume that it is.
    pub volume: VolumeId,
    /// One controller at a time may have it.
    pub is_private: bool,
    /// Its hosts.
    pub attachment: Attachment,
}

/// All of them.
#[derive(Debug)]
pub(crate) struct Spaces {
    /// The volumes of the world.
    world: Vec<VolumeInfo>,
    /// By volume of the world: its namespaces, once it was divided.
    tables: Vec<Option<Table>>,
    /// By volume; those behind the ones of the world are there once a drive was divided.
    spaces: Vec<Space>,
}

impl Spaces {
    /// Volumes of a world that is not divided.
    pub(crate) fn new(world: Vec<VolumeInfo>) -> Self {
        let whole = |volume: &VolumeInfo| Space {
            world: volume.id,
            is_whole: true,
            extents: vec![Extent { first: 0, units: volume.limits.blocks }],
            metadata: Metadata::None,
            used: 0,
            keeps_end: false,
        };
        Self { tables: vec![None; world.len()], spaces: world.iter().map(whole).collect(), world }
    }

    /// Whether there are numbers for the namespaces of all volumes.
    pub(crate) fn can_divide(&self) -> bool {
        self.world.len() * NAMESPACES_MAX as usize <= 1 << 16
    }

    /// The number of a namespace as a volume.
    pub(crate) fn volume_of(&self, world: VolumeId, nsid: u32) -> VolumeId {
        if nsid == 1 {
            return world;
        }
        let behind = world.index() * (NAMESPACES_MAX as usize - 1) + nsid as usize - 2;
        VolumeId::new((self.world.len() + behind) as u16)
    }

    /// The volume of the world in which a volume lies. Panics beyond the volumes.
    pub(crate) fn world_of(&self, volume: VolumeId) -> VolumeId {
        self.spaces.get(volume.index()).map_or_else(|| self.behind(volume), |space| space.world)
    }

    fn behind(&self, volume: VolumeId) -> VolumeId {
        VolumeId::new(((volume.index() - self.world.len()) / (NAMESPACES_MAX as usize - 1)) as u16)
    }

    /// The identifier of a volume among the namespaces of its drive.
    pub(crate) fn nsid_of(&self, volume: VolumeId) -> u32 {
        match volume.index().checked_sub(self.world.len()) {
            Some(behind) => (behind % (NAMESPACES_MAX as usize - 1)) as u32 + 2,
            None => 1,
        }
    }

    /// A volume of the world.
    pub(crate) fn world(&self, world: VolumeId) -> &VolumeInfo {
        &self.world[world.index()]
    }

    /// Volumes in all that may be named.
    pub(crate) fn volumes(&self) -> usize {
        self.spaces.len()
    }

    /// The namespaces of a volume of the world, if it was divided.
    pub(crate) fn table(&self, world: VolumeId) -> Option<&Table> {
        self.tables[world.index()].as_ref()
    }

    /// Its namespaces as front ends see them; a volume that was not divided has one.
    pub(crate) fn namespaces(&self, world: VolumeId) -> Vec<NamespaceInfo> {
        let Some(table) = self.table(world) else {
            let attachment = Attachment::ALL;
            return vec![NamespaceInfo { nsid: 1, serial: 0, volume: world, is_private: false, attachment }];
        };
        let info = |entry: &super::Entry| NamespaceInfo {
            nsid: entry.nsid,
            serial: entry.serial,
            volume: self.volume_of(world, entry.nsid),
            is_private: entry.is_private,
            attachment: entry.attachment.clone(),
        };
        table.entries.iter().map(info).collect()
    }

    /// A volume of the world, and its namespaces behind the first.
    pub(crate) fn volumes_in(&self, world: VolumeId) -> Vec<VolumeId> {
        let namespaces = self.namespaces(world).into_iter().map(|namespace| namespace.volume);
        std::iter::once(world).chain(namespaces.filter(|&volume| volume != world)).collect()
    }

    /// Bytes of a volume of the world that no namespace has.
    pub(crate) fn free_bytes(&self, world: VolumeId) -> u64 {
        let units = self.world[world.index()].limits.blocks;
        self.table(world).map_or(0, |table| units_of(&table.free(units)) * u64::from(SLOT_BYTES))
    }

    /// A volume of the world has these namespaces from now on; `mapped` counts units of extents that hold something. Those that are
    /// gone keep their space for requests under way until [`Spaces::forget`].
    pub(crate) fn divide(&mut self, world: VolumeId, table: Table, mut mapped: impl FnMut(&[Extent]) -> u64) {
        if self.spaces.len() == self.world.len() {
            let nowhere = |number: usize| Space {
                world: self.behind(VolumeId::new(number as u16)),
                is_whole: false,
                extents: Vec::new(),
                metadata: Metadata::None,
                used: 0,
                keeps_end: false,
            };
            let count = self.world.len() * NAMESPACES_MAX as usize;
            let behind: Vec<Space> = (self.world.len()..count).map(nowhere).collect();
            self.spaces.extend(behind);
        }
        // A namespace comes where nothing is mapped, and grows by such space: only what a first division finds is counted, and
        // what is cut off. Counting a drive of terabytes takes seconds.
        let before = self.tables[world.index()].take();
        for entry in &table.entries {
            let volume = self.volume_of(world, entry.nsid);
            let had = before.as_ref().map(|table| table.entry(entry.nsid).filter(|had| had.serial == entry.serial));
            let space = &mut self.spaces[volume.index()];
            if space.is_whole || space.extents != entry.extents {
                let is_cut = space.keeps_end && cut(&space.extents, entry.units()).0 == entry.extents;
                let extents = if is_cut { space.extents.clone() } else { entry.extents.clone() };
                let used = match had {
                    None => mapped(&entry.extents),
                    Some(None) => 0,
                    Some(Some(had)) => {
                        let (kept, lost) = cut(&had.extents, entry.units());
                        debug_assert!(entry.extents.starts_with(&kept) || lost.is_empty(), "it keeps its beginning");
                        space.used - mapped(&lost).min(space.used)
                    }
                };
                let metadata = Metadata::None;
                *space = Space { world, is_whole: false, extents, metadata, used, keeps_end: is_cut };
            }
            space.metadata = entry.block.metadata;
        }
        self.tables[world.index()] = Some(table);
    }

    /// Nothing is under way to a namespace that is gone.
    pub(crate) fn forget(&mut self, volume: VolumeId) {
        let world = self.world_of(volume);
        let metadata = Metadata::None;
        let (is_whole, extents, used, keeps_end) = (false, Vec::new(), 0, false);
        self.spaces[volume.index()] = Space { world, is_whole, extents, metadata, used, keeps_end };
    }

    /// A namespace will lose its end in [`Spaces::divide`]: that is there for requests under way until [`Spaces::settle`].
    pub(crate) fn keep_end(&mut self, volume: VolumeId) {
        self.spaces[volume.index()].keeps_end = true;
    }

    /// Nothing is under way to the end that a namespace has lost.
    pub(crate) fn settle(&mut self, volume: VolumeId) {
        let (world, nsid) = (self.world_of(volume), self.nsid_of(volume));
        let entry = self.tables[world.index()].as_ref().and_then(|table| table.entry(nsid));
        let space = &mut self.spaces[volume.index()];
        space.keeps_end = false;
        if let Some(entry) = entry {
            space.extents.clone_from(&entry.extents);
        }
    }

    /// Blocks of a volume of the world that was not divided have this metadata from now on.
    pub(crate) fn set_metadata(&mut self, world: VolumeId, metadata: Metadata) {
        self.spaces[world.index()].metadata = metadata;
    }

    /// A volume of the world, with blocks of 2^-`shift` units.
    pub(crate) fn whole(&self, world: VolumeId, shift: u8) -> VolumeInfo {
        with_blocks(*self.world(world), SLOT_BYTES >> shift)
    }

    /// The volumes that clients see of a volume of the world, with blocks of 2^-`shift` units where it was not divided.
    pub(crate) fn shown(&self, world: VolumeId, shift: u8) -> Vec<VolumeInfo> {
        match self.table(world) {
            None => vec![self.whole(world, shift)],
            Some(table) => table.entries.iter().map(|entry| self.shown_entry(self.world(world), entry)).collect(),
        }
    }

    fn shown_entry(&self, volume: &VolumeInfo, entry: &super::Entry) -> VolumeInfo {
        let blocks = with_blocks(*volume, entry.block.data_bytes);
        // Remaps are of a drive that is one namespace.
        let limits = VolumeLimits { blocks: entry.blocks, remaps: false, ..blocks.limits };
        VolumeInfo { id: self.volume_of(volume.id, entry.nsid), limits, ..blocks }
    }

    /// Where a volume lies. Panics beyond the volumes.
    #[inline]
    pub(crate) fn of(&self, volume: VolumeId) -> &Space {
        &self.spaces[volume.index()]
    }

    /// Whether anything was divided.
    #[inline]
    pub(crate) fn is_plain(&self) -> bool {
        self.spaces.len() == self.world.len()
    }

    /// Follows what happens to the units of a volume of the world.
    #[cold]
    pub(crate) fn follow(&mut self, world: VolumeId, movement: &Movement) {
        let (logical, grows) = match *movement {
            Movement::Written { logical, before, .. } if !before.is_some() => (logical, true),
            Movement::Trimmed { logical, before } if before.is_some() => (logical, false),
            Movement::Reverted { logical, before, slot } if before.is_some() != slot.is_some() => {
                (logical, slot.is_some())
            }
            _ => return,
        };
        let Some(table) = self.tables[world.index()].as_ref() else { return };
        let unit = u64::from(logical);
        let holds = |entry: &&super::Entry| entry.extents.iter().any(|it| (it.first..it.end()).contains(&unit));
        let Some(nsid) = table.entries.iter().find(holds).map(|entry| entry.nsid) else { return };
        let volume = self.volume_of(world, nsid);
        let used = &mut self.spaces[volume.index()].used;
        *used = if grows { *used + 1 } else { used.saturating_sub(1) };
    }
}

impl Space {
    /// The extent of the world's volume in which a unit of the volume lies, and the first unit of the volume that lies in it.
    #[inline]
    pub(crate) fn extent(&self, unit: u64) -> (Extent, u64) {
        if let [only] = self.extents[..] {
            return (only, 0);
        }
        self.search(unit)
    }

    #[cold]
    fn search(&self, unit: u64) -> (Extent, u64) {
        let mut first = 0;
        for &extent in &self.extents {
            if unit < first + extent.units {
                return (extent, first);
            }
            first += extent.units;
        }
        // Beyond its end nothing is asked for, and a namespace that is gone has no units.
        (Extent { first: 0, units: 0 }, 0)
    }

    /// Whether it lies in one piece.
    #[inline]
    pub(crate) fn is_contiguous(&self) -> bool {
        self.extents.len() == 1
    }

    /// Its first unit whose extent begins there, behind `unit`; the end of its units for the last extent.
    pub(crate) fn next_boundary(&self, unit: u64) -> u64 {
        let (extent, first) = self.extent(unit);
        first + extent.units
    }

    /// The request to the world that a request in its units is, and the distance from the units of the volume to those of the
    /// world, modulo 2^64. The request lies in one extent.
    #[inline]
    pub(crate) fn place(&self, request: &VolumeRequest) -> (VolumeRequest, u64) {
        if self.is_whole || request.operation == Operation::Flush {
            return (VolumeRequest { volume: self.world, ..*request }, 0);
        }
        let (extent, first) = self.extent(request.first);
        let shift = extent.first.wrapping_sub(first);
        (VolumeRequest { volume: self.world, first: request.first.wrapping_add(shift), ..*request }, shift)
    }

    /// The unit of the world that a unit of the volume is.
    pub(crate) fn unit(&self, unit: u64) -> u64 {
        let (extent, first) = self.extent(unit);
        unit.wrapping_sub(first).wrapping_add(extent.first)
    }

    /// Units that hold something, where it is a part of its drive.
    pub(crate) fn used(&self) -> Option<u64> {
        (!self.is_whole).then_some(self.used)
    }

    /// Its extents.
    pub(crate) fn extents(&self) -> &[Extent] {
        &self.extents
    }
}

/// A volume of a world, whose blocks are the units of its drive, with blocks of this size. Remaps are of whole units.
fn with_blocks(volume: VolumeInfo, block_bytes: u32) -> VolumeInfo {
    let blocks = SLOT_BYTES / block_bytes;
    let limits = VolumeLimits {
        blocks: volume.limits.blocks * u64::from(blocks),
        remaps: volume.limits.remaps && blocks == 1,
        request_blocks: volume.limits.request_blocks.saturating_mul(blocks),
        ..volume.limits
    };
    VolumeInfo { block_bytes, limits, ..volume }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::media::BlockFormat;
    use crate::namespaces::Entry;
    use flashyard_flash::Slot;

    fn spaces() -> Spaces {
        let limits = VolumeLimits { blocks: 100, remaps: true, request_blocks: 8, read_only: false };
        let volume = |id| VolumeInfo { id: VolumeId::new(id), block_bytes: SLOT_BYTES, limits, protected: true };
        Spaces::new(vec![volume(0), volume(1)])
    }

    /// Units of even numbers.
    fn even(extents: &[Extent]) -> u64 {
        extents.iter().map(|extent| extent.end().div_ceil(2) - extent.first.div_ceil(2)).sum()
    }

    #[test]
    fn namespaces_are_volumes_behind_those_of_the_world() {
        let spaces = spaces();
        let mut seen = std::collections::BTreeSet::new();
        for world in [0, 1].map(VolumeId::new) {
            for nsid in 1..=NAMESPACES_MAX {
                let volume = spaces.volume_of(world, nsid);
                assert!(seen.insert(volume) && spaces.world_of(volume) == world && spaces.nsid_of(volume) == nsid);
            }
        }
        assert_eq!(seen.last().map(|last| last.index()), Some(2 * NAMESPACES_MAX as usize - 1));
    }

    #[test]
    fn a_request_is_placed_where_its_extent_lies() {
        let mut spaces = spaces();
        let (drive, second) = (VolumeId::new(0), spaces.volume_of(VolumeId::new(0), 2));
        let read = |volume, first| VolumeRequest { volume, operation: Operation::Read, first, count: 1, source: 0 };
        assert_eq!(spaces.of(drive).place(&read(drive, 7)), (read(drive, 7), 0));
        let mut table = Table::divided(100, BlockFormat::plain(SLOT_BYTES), &[10, 30]).expect("there is room");
        if let Some(entry) = table.entry_mut(2) {
            entry.extents = vec![Extent { first: 50, units: 20 }, Extent { first: 10, units: 10 }];
        }
        spaces.divide(drive, table, even);
        assert!(!spaces.is_plain());
        let space = spaces.of(second);
        let placed = |unit| space.place(&read(second, unit)).0;
        assert_eq!([0, 19, 20, 29].map(placed), [50, 69, 10, 19].map(|first| read(drive, first)));
        assert_eq!([0, 19, 20].map(|unit| space.next_boundary(unit)), [20, 20, 30]);
        assert_eq!([0, 19, 20, 29].map(|unit| space.unit(unit)), [50, 69, 10, 19]);
        assert_eq!(
            (space.used(), spaces.of(drive).used(), spaces.of(VolumeId::new(1)).used()),
            (Some(15), Some(5), None)
        );
        assert_eq!(spaces.free_bytes(drive), 60 * u64::from(SLOT_BYTES));
        assert_eq!(spaces.free_bytes(VolumeId::new(1)), 0);
    }

    #[test]
    fn only_a_first_division_and_what_is_cut_off_are_counted() {
        let mut spaces = spaces();
        let drive = VolumeId::new(0);
        let second = spaces.volume_of(drive, 2);
        let mut looked_at = Vec::new();
        let mut divide = |spaces: &mut Spaces, table: &Table| {
            looked_at.clear();
            spaces.divide(drive, table.clone(), |extents| {
                looked_at.extend(extents);
                even(extents)
            });
            let used = [drive, second].map(|volume| spaces.of(volume).used());
            (looked_at.clone(), used)
        };
        let extent = |first, units| Extent { first, units };
        let mut table = Table::divided(100, BlockFormat::plain(SLOT_BYTES), &[10]).expect("there is room");
        assert_eq!(divide(&mut spaces, &table), (vec![extent(0, 10)], [Some(5), Some(0)]));
        let created = Entry { nsid: 2, extents: vec![extent(20, 10)], ..table.entries[0].clone() };
        table.add(created);
        assert_eq!(divide(&mut spaces, &table), (vec![], [Some(5), Some(0)]), "it has come where nothing is mapped");
        spaces.follow(
            drive,
            &Movement::Written { tag: 0, place: 0, logical: 25, slot: Slot::new(1), before: Slot::NONE },
        );
        let set = |table: &mut Table, extents: &[Extent]| table.entries[1].extents = extents.to_vec();
        set(&mut table, &[extent(20, 20), extent(60, 8)]);
        assert_eq!(divide(&mut spaces, &table), (vec![], [Some(5), Some(1)]), "so has what it has grown by");
        set(&mut table, &[extent(20, 5)]);
        let cut = vec![extent(25, 15), extent(60, 8)];
        assert_eq!(divide(&mut spaces, &table), (cut, [Some(5), Some(0)]), "no more than it holds");
        // Another one under its number.
        table.entries.remove(1);
        assert_eq!(divide(&mut spaces, &table).0, []);
        table.add(Entry { nsid: 2, extents: vec![extent(20, 5)], ..table.entries[0].clone() });
        assert_eq!(divide(&mut spaces, &table), (vec![], [Some(5), Some(0)]));
    }

    #[test]
    fn a_namespace_that_shrinks_keeps_its_end_for_requests_under_way() {
        let mut spaces = spaces();
        let drive = VolumeId::new(0);
        let table = |units| Table::divided(100, BlockFormat::plain(SLOT_BYTES), &[units]).expect("there is room");
        spaces.divide(drive, table(40), units_of);
        assert_eq!(spaces.of(drive).extents(), [Extent { first: 0, units: 40 }]);
        spaces.keep_end(drive);
        spaces.divide(drive, table(30), units_of);
        assert_eq!(spaces.of(drive).extents(), [Extent { first: 0, units: 40 }]);
        assert_eq!((spaces.of(drive).used(), spaces.free_bytes(drive)), (Some(30), 70 * u64::from(SLOT_BYTES)));
        spaces.settle(drive);
        assert_eq!(spaces.of(drive).extents(), [Extent { first: 0, units: 30 }]);
        spaces.divide(drive, table(20), units_of);
        assert_eq!(spaces.of(drive).extents(), [Extent { first: 0, units: 20 }]);
    }
}
