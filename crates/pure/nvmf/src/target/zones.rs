//! Zones of one namespace: their states, their write pointers, and the resources that open and active ones take.
//!
//! A host writes a zone from its first block on, in order. Blocks behind the write pointer of a zone hold nothing. The
//! machine judges each write as it comes and moves the pointer at once; bytes are the backend's business.
//!
//! | state | write | open | close | finish | reset |
//! |---|---|---|---|---|---|
//! | empty | implicitly open | explicitly open | refused | full | empty |
//! | implicitly open | stays | explicitly open | closed | full | empty |
//! | explicitly open | stays | stays | closed | full | empty |
//! | closed | implicitly open | explicitly open | stays | full | empty |
//! | full | refused | refused | refused | stays | empty |
//! | read only, offline | refused | refused | refused | refused | refused |
//!
//! A zone whose last block is written is full. An implicitly open zone gives its place among open ones up for another zone:
//! the one that was opened first.
//!
//! Source: \[P\] NVM Express Zoned Namespace Command Set 1.1, section 2.1.1.3 (zone state machine) and 2.1.1.4 (resources).

#[cfg(test)]
mod tests;

use super::config::{Namespace, ZoneShape};
use flashyard_nvme::Status;
use flashyard_nvme::nvm::BlockRange;
use flashyard_nvme::zone::{Receive, ReportHeader, SendAction, ZoneDescriptor, ZoneState};
use std::collections::{BTreeMap, BTreeSet};
use zerocopy::IntoBytes;

/// Zones by subsystem and namespace; namespaces without zones have no entry.
pub(super) type AllZones = BTreeMap<(usize, u32), Zones>;

/// The zones of a namespace.
#[derive(Clone, Debug)]
pub(super) struct Zones {
    shape: ZoneShape,
    zones: Vec<Zone>,
    /// Zones that are open, in either way, and zones that are open or closed.
    open: u32,
    active: u32,
    /// Implicitly open zones, in the order in which they were opened.
    implicit: BTreeSet<(u64, usize)>,
    opened: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Zone {
    state: ZoneState,
    /// Blocks from the first one to the write pointer.
    written: u64,
    /// When it was opened, among all zones.
    opened: u64,
}

const EMPTY: Zone = Zone { state: ZoneState::Empty, written: 0, opened: 0 };

impl Zones {
    /// Empty zones of a namespace of `blocks` blocks.
    pub(super) fn new(shape: ZoneShape, blocks: u64) -> Self {
        let zones = vec![EMPTY; (blocks / shape.zone_blocks) as usize];
        Self { shape, zones, open: 0, active: 0, implicit: BTreeSet::new(), opened: 0 }
    }

    /// Whether these are zones of that shape.
    pub(super) fn are(&self, shape: &ZoneShape, blocks: u64) -> bool {
        self.shape == *shape && self.zones.len() as u64 == blocks / shape.zone_blocks
    }

    /// Takes over what a drive holds as it starts: the write pointer of a zone is behind its last written block. Zones are
    /// empty, closed or full then; there may be more active ones than [`ZoneShape::active_max`].
    pub(super) fn restore(&mut self, mut is_written: impl FnMut(u64) -> bool) {
        (self.open, self.active) = (0, 0);
        self.implicit.clear();
        for (index, zone) in self.zones.iter_mut().enumerate() {
            let first = index as u64 * self.shape.zone_blocks;
            let last = (0..self.shape.capacity_blocks).rev().find(|block| is_written(first + block));
            let written = last.map_or(0, |last| last + 1);
            let state = match written {
                0 => ZoneState::Empty,
                _ if written == self.shape.capacity_blocks => ZoneState::Full,
                _ => ZoneState::Closed,
            };
            self.active += u32::from(state == ZoneState::Closed);
            *zone = Zone { state, written, opened: 0 };
        }
    }

    /// A host writes `range`: the pointer of the zone moves behind it.
    pub(super) fn write(&mut self, range: BlockRange) -> Result<(), Status> {
        let (index, offset) = self.split(range.lba)?;
        let zone = self.zones[index];
        refuse_unwritable(zone.state)?;
        if offset != zone.written {
            return Err(Status::ZONE_INVALID_WRITE);
        }
        let end = offset + u64::from(range.blocks);
        if end > self.shape.capacity_blocks {
            return Err(Status::ZONE_BOUNDARY_ERROR);
        }
        if !matches!(zone.state, ZoneState::ImplicitlyOpen | ZoneState::ExplicitlyOpen) {
            self.open(index, ZoneState::ImplicitlyOpen)?;
        }
        self.zones[index].written = end;
        if end == self.shape.capacity_blocks {
            self.set(index, ZoneState::Full);
        }
        Ok(())
    }

    /// A host appends as many blocks as `range` has to the zone that begins with it; returns the first block to write.
    pub(super) fn append(&mut self, range: BlockRange) -> Result<u64, Status> {
        let index = self.beginning(range.lba)?;
        let zone = self.zones[index];
        refuse_unwritable(zone.state)?;
        let lba = range.lba + zone.written;
        self.write(BlockRange { lba, ..range })?;
        Ok(lba)
    }

    /// A host reads `range`, which may cross zones. Blocks behind write pointers read as zeros.
    pub(super) fn read(&self, range: BlockRange) -> Result<(), Status> {
        let last = range.lba + u64::from(range.blocks.max(1)) - 1;
        let (from, to) = (self.split(range.lba)?.0, self.split(last)?.0);
        let is_offline = self.zones[from..=to].iter().any(|zone| zone.state == ZoneState::Offline);
        if is_offline { Err(Status::ZONE_OFFLINE) } else { Ok(()) }
    }

    /// Zone Management Send about the zone that begins with `first`, or about all. Returns blocks for the backend: of a
    /// reset those to be deallocated; of a finish the last block of each zone, which is to be written, so that
    /// [`Zones::restore`] finds it full.
    pub(super) fn send(&mut self, first: u64, action: SendAction, all: bool) -> Result<Vec<BlockRange>, Status> {
        if let SendAction::Other(_) = action {
            return Err(Status::INVALID_FIELD);
        }
        if !all {
            let index = self.beginning(first)?;
            return Ok(self.act(index, action)?.into_iter().collect());
        }
        let concerned: Vec<usize> =
            (0..self.zones.len()).filter(|&at| concerns(action, self.zones[at].state)).collect();
        let limit = self.shape.open_limit();
        if action == SendAction::Open && limit > 0 && self.open as usize + concerned.len() > limit as usize {
            return Err(Status::ZONE_TOO_MANY_OPEN);
        }
        let mut ranges: Vec<BlockRange> = Vec::new();
        for index in concerned {
            ranges.extend(self.act(index, action)?);
        }
        Ok(ranges)
    }

    /// The owner of a zone says that it can be written no more, or not be read either. Other states are none of its business.
    pub(super) fn give_up(&mut self, lba: u64, state: ZoneState) {
        if let (Ok((index, _)), ZoneState::ReadOnly | ZoneState::Offline) = (self.split(lba), state) {
            self.set(index, state);
        }
    }

    /// Zone Management Receive from the zone that `first` is in: `receive.len_bytes` bytes, appended to `out`.
    pub(super) fn report(&self, first: u64, receive: &Receive, out: &mut Vec<u8>) -> Result<(), Status> {
        let (from, _) = self.split(first)?;
        let room = receive.len_bytes as usize;
        // Zones have no descriptor extensions, so that there is no extended report either.
        if receive.action != Receive::REPORT || receive.filter > Receive::FILTER_MAX || room < ReportHeader::BYTES {
            return Err(Status::INVALID_FIELD);
        }
        let wanted = self.zones.iter().enumerate().skip(from).filter(|(_, zone)| receive.wants(zone.state));
        let fitting = (room - ReportHeader::BYTES) / ZoneDescriptor::BYTES;
        let count = if receive.is_partial { wanted.clone().take(fitting).count() } else { wanted.clone().count() };
        let start = out.len();
        out.extend_from_slice(ReportHeader { zones: (count as u64).into(), reserved_8: [0; 56] }.as_bytes());
        for (index, zone) in wanted.take(fitting) {
            let first = index as u64 * self.shape.zone_blocks;
            let has_pointer = !matches!(zone.state, ZoneState::Full | ZoneState::ReadOnly | ZoneState::Offline);
            let pointer = has_pointer.then_some(first + zone.written);
            let descriptor = ZoneDescriptor::new(zone.state, first, self.shape.capacity_blocks, pointer);
            out.extend_from_slice(descriptor.as_bytes());
        }
        out.resize(start + room, 0);
        Ok(())
    }

    /// The zone that a block is in, and its place there.
    fn split(&self, lba: u64) -> Result<(usize, u64), Status> {
        let index = lba / self.shape.zone_blocks;
        if index >= self.zones.len() as u64 {
            return Err(Status::LBA_OUT_OF_RANGE);
        }
        Ok((index as usize, lba % self.shape.zone_blocks))
    }

    /// The zone that begins with a block.
    fn beginning(&self, lba: u64) -> Result<usize, Status> {
        match self.split(lba)? {
            (index, 0) => Ok(index),
            _ => Err(Status::INVALID_FIELD),
        }
    }

    fn act(&mut self, index: usize, action: SendAction) -> Result<Option<BlockRange>, Status> {
        use ZoneState::{Closed, Empty, ExplicitlyOpen, Full, ImplicitlyOpen, Offline, ReadOnly};
        let state = self.zones[index].state;
        let first = index as u64 * self.shape.zone_blocks;
        let capacity = self.shape.capacity_blocks;
        match (action, state) {
            (SendAction::Open, Empty | ImplicitlyOpen | ExplicitlyOpen | Closed) => self.open(index, ExplicitlyOpen)?,
            (SendAction::Close, ImplicitlyOpen | ExplicitlyOpen) => self.set(index, Closed),
            (SendAction::Close, Closed) | (SendAction::Finish, Full) | (SendAction::Reset, Empty) => {}
            (SendAction::Finish, Empty | ImplicitlyOpen | ExplicitlyOpen | Closed) => {
                self.set(index, Full);
                return Ok(Some(BlockRange { lba: first + capacity - 1, blocks: 1 }));
            }
            (SendAction::Reset, ImplicitlyOpen | ExplicitlyOpen | Closed | Full) => {
                // Of a full zone it is not known whether it was written to its end or finished.
                let written = if state == Full { capacity } else { self.zones[index].written };
                self.set(index, Empty);
                // A zone has less than 2^32 blocks.
                return Ok((written > 0).then_some(BlockRange { lba: first, blocks: written as u32 }));
            }
            (SendAction::Offline, ReadOnly | Offline) => self.set(index, Offline),
            _ => return Err(Status::ZONE_INVALID_TRANSITION),
        }
        Ok(None)
    }

    /// Opens a zone that is empty, closed or open, with the resources that this takes.
    fn open(&mut self, index: usize, to: ZoneState) -> Result<(), Status> {
        let state = self.zones[index].state;
        let is_active = is_active(state);
        if !is_active && self.shape.active_max > 0 && self.active >= self.shape.active_max {
            return Err(Status::ZONE_TOO_MANY_ACTIVE);
        }
        let limit = self.shape.open_limit();
        if !is_open(state) && limit > 0 && self.open >= limit {
            let &(_, oldest) = self.implicit.first().ok_or(Status::ZONE_TOO_MANY_OPEN)?;
            self.set(oldest, ZoneState::Closed);
        }
        self.set(index, to);
        Ok(())
    }

    /// Puts a zone into a state, and counts what this takes or gives back.
    fn set(&mut self, index: usize, to: ZoneState) {
        let zone = &mut self.zones[index];
        let from = std::mem::replace(&mut zone.state, to);
        if from == ZoneState::ImplicitlyOpen {
            self.implicit.remove(&(zone.opened, index));
        }
        if to == ZoneState::ImplicitlyOpen {
            self.opened += 1;
            zone.opened = self.opened;
            self.implicit.insert((zone.opened, index));
        }
        if to == ZoneState::Empty {
            zone.written = 0;
        }
        self.open = self.open + u32::from(is_open(to)) - u32::from(is_open(from));
        self.active = self.active + u32::from(is_active(to)) - u32::from(is_active(from));
    }
}

/// Zones for the namespaces of a subsystem; those in `before` whose shape has not changed stay as they are.
pub(super) fn zones_of(
    subsystem: usize,
    namespaces: &[Namespace],
    before: &mut AllZones,
) -> impl Iterator<Item = ((usize, u32), Zones)> {
    namespaces.iter().filter_map(move |namespace| {
        let (shape, key) = (namespace.zones?, (subsystem, namespace.nsid));
        let kept = before.remove(&key).filter(|zones| zones.are(&shape, namespace.blocks));
        Some((key, kept.unwrap_or_else(|| Zones::new(shape, namespace.blocks))))
    })
}

/// Whether zones in a state are among those that an action on all zones is about.
fn concerns(action: SendAction, state: ZoneState) -> bool {
    match action {
        SendAction::Open => state == ZoneState::Closed,
        SendAction::Close => is_open(state),
        SendAction::Finish => is_active(state),
        SendAction::Reset => is_active(state) || state == ZoneState::Full,
        SendAction::Offline => state == ZoneState::ReadOnly,
        SendAction::Other(_) => false,
    }
}

fn is_open(state: ZoneState) -> bool {
    matches!(state, ZoneState::ImplicitlyOpen | ZoneState::ExplicitlyOpen)
}

fn is_active(state: ZoneState) -> bool {
    is_open(state) || state == ZoneState::Closed
}

fn refuse_unwritable(state: ZoneState) -> Result<(), Status> {
    match state {
        ZoneState::Full => Err(Status::ZONE_FULL),
        ZoneState::ReadOnly => Err(Status::ZONE_READ_ONLY),
        ZoneState::Offline => Err(Status::ZONE_OFFLINE),
        _ => Ok(()),
    }
}
