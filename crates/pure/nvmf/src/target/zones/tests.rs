//! The machine against a model that counts everything again at each step.

use super::*;
use proptest::prelude::*;
use zerocopy::FromBytes;

const SHAPE: ZoneShape = ZoneShape { zone_blocks: 8, capacity_blocks: 6, open_max: 2, active_max: 3 };
const ZONES: u64 = 6;

/// A zone as a table row: its state, the blocks that are written, and its turn among implicitly open ones.
type Row = (ZoneState, u64, u64);

/// The second reading of the specification: states in a list, nothing counted in advance.
struct Model {
    rows: Vec<Row>,
    turn: u64,
    shape: ZoneShape,
}

impl Model {
    fn in_states(&self, states: &[ZoneState]) -> usize {
        self.rows.iter().filter(|row| states.contains(&row.0)).count()
    }

    fn take_resources(&mut self, at: usize, state: ZoneState) -> Result<(), Status> {
        use ZoneState::{Closed, Empty, ExplicitlyOpen, ImplicitlyOpen};
        let active = self.in_states(&[ImplicitlyOpen, ExplicitlyOpen, Closed]) as u32;
        let open = self.in_states(&[ImplicitlyOpen, ExplicitlyOpen]) as u32;
        if self.rows[at].0 == Empty && self.shape.active_max != 0 && active >= self.shape.active_max {
            return Err(Status::ZONE_TOO_MANY_ACTIVE);
        }
        let limit = if self.shape.open_max == 0 { self.shape.active_max } else { self.shape.open_max };
        if matches!(self.rows[at].0, Empty | Closed) && limit != 0 && open >= limit {
            let candidates = self.rows.iter().enumerate().filter(|(_, row)| row.0 == ImplicitlyOpen);
            let Some((victim, _)) = candidates.min_by_key(|(_, row)| row.2) else {
                return Err(Status::ZONE_TOO_MANY_OPEN);
            };
            self.rows[victim].0 = Closed;
        }
        self.turn += 1;
        self.rows[at] = (state, self.rows[at].1, self.turn);
        Ok(())
    }

    fn write(&mut self, lba: u64, blocks: u64) -> Result<(), Status> {
        use ZoneState::{Closed, Empty, Full, ImplicitlyOpen, Offline, ReadOnly};
        let (at, offset) = ((lba / self.shape.zone_blocks) as usize, lba % self.shape.zone_blocks);
        match self.rows[at].0 {
            Full => return Err(Status::ZONE_FULL),
            ReadOnly => return Err(Status::ZONE_READ_ONLY),
            Offline => return Err(Status::ZONE_OFFLINE),
            _ if offset != self.rows[at].1 => return Err(Status::ZONE_INVALID_WRITE),
            _ if offset + blocks > self.shape.capacity_blocks => return Err(Status::ZONE_BOUNDARY_ERROR),
            Empty | Closed => self.take_resources(at, ImplicitlyOpen)?,
            _ => {}
        }
        self.rows[at].1 += blocks;
        if self.rows[at].1 == self.shape.capacity_blocks {
            self.rows[at].0 = Full;
        }
        Ok(())
    }

    fn send(&mut self, at: usize, action: SendAction) -> Result<(), Status> {
        use ZoneState::{Closed, Empty, ExplicitlyOpen, Full, ImplicitlyOpen, Offline, ReadOnly};
        let state = self.rows[at].0;
        let allowed: &[ZoneState] = match action {
            SendAction::Open => &[Empty, ImplicitlyOpen, ExplicitlyOpen, Closed],
            SendAction::Close => &[ImplicitlyOpen, ExplicitlyOpen, Closed],
            SendAction::Finish => &[Empty, ImplicitlyOpen, ExplicitlyOpen, Closed, Full],
            SendAction::Reset => &[Empty, ImplicitlyOpen, ExplicitlyOpen, Closed, Full],
            SendAction::Offline => &[ReadOnly, Offline],
            SendAction::Other(_) => return Err(Status::INVALID_FIELD),
        };
        if !allowed.contains(&state) {
            return Err(Status::ZONE_INVALID_TRANSITION);
        }
        match action {
            SendAction::Open if state == ExplicitlyOpen => {}
            SendAction::Open => self.take_resources(at, ExplicitlyOpen)?,
            SendAction::Close => self.rows[at].0 = Closed,
            SendAction::Finish => self.rows[at].0 = Full,
            SendAction::Reset => self.rows[at] = (Empty, 0, 0),
            SendAction::Offline | SendAction::Other(_) => self.rows[at].0 = Offline,
        }
        Ok(())
    }

    fn send_all(&mut self, action: SendAction) -> Result<(), Status> {
        use ZoneState::{Closed, ExplicitlyOpen, Full, ImplicitlyOpen, ReadOnly};
        let concerned: &[ZoneState] = match action {
            SendAction::Open => &[Closed],
            SendAction::Close => &[ImplicitlyOpen, ExplicitlyOpen],
            SendAction::Finish => &[ImplicitlyOpen, ExplicitlyOpen, Closed],
            SendAction::Reset => &[ImplicitlyOpen, ExplicitlyOpen, Closed, Full],
            SendAction::Offline => &[ReadOnly],
            SendAction::Other(_) => return Err(Status::INVALID_FIELD),
        };
        let limit = if self.shape.open_max == 0 { self.shape.active_max } else { self.shape.open_max } as usize;
        let open_after = self.in_states(&[ImplicitlyOpen, ExplicitlyOpen]) + self.in_states(&[Closed]);
        if action == SendAction::Open && limit != 0 && open_after > limit {
            return Err(Status::ZONE_TOO_MANY_OPEN);
        }
        for at in 0..self.rows.len() {
            if concerned.contains(&self.rows[at].0) {
                self.send(at, action)?;
            }
        }
        Ok(())
    }
}

#[derive(Clone, Debug)]
enum Step {
    Write {
        lba: u64,
        blocks: u32,
    },
    /// Where the zone's pointer is.
    WriteNext {
        zone: u64,
        blocks: u32,
    },
    Append {
        zone: u64,
        blocks: u32,
    },
    Send {
        zone: u64,
        action: u8,
        all: bool,
    },
    GiveUp {
        zone: u64,
        offline: bool,
    },
}

fn any_step() -> impl Strategy<Value = Step> {
    let zone = || 0..ZONES;
    prop_oneof![
        1 => (0..ZONES * SHAPE.zone_blocks, 1..9_u32).prop_map(|(lba, blocks)| Step::Write { lba, blocks }),
        6 => (zone(), 1..5_u32).prop_map(|(zone, blocks)| Step::WriteNext { zone, blocks }),
        4 => (zone(), 1..5_u32).prop_map(|(zone, blocks)| Step::Append { zone, blocks }),
        6 => (zone(), 1..7_u8, prop::bool::weighted(0.1)).prop_map(|(zone, action, all)| Step::Send { zone, action, all }),
        1 => (zone(), prop::bool::weighted(0.3)).prop_map(|(zone, offline)| Step::GiveUp { zone, offline }),
    ]
}

fn rows(zones: &Zones) -> Vec<(ZoneState, u64)> {
    zones.zones.iter().map(|zone| (zone.state, if zone.state == ZoneState::Full { 0 } else { zone.written })).collect()
}

fn all(filter: u8, is_partial: bool, len_bytes: u64) -> Receive {
    Receive { action: Receive::REPORT, filter, is_partial, len_bytes }
}

proptest! {
    #[test]
    fn the_machine_does_what_the_model_does(
        steps in prop::collection::vec(any_step(), 1..120), open_max in 0..4_u32, active_more in 0..3_u32, limited: bool,
    ) {
        let shape = ZoneShape { open_max, active_max: if limited { open_max + active_more } else { 0 }, ..SHAPE };
        let mut zones = Zones::new(shape, ZONES * SHAPE.zone_blocks);
        let mut model = Model { rows: vec![(ZoneState::Empty, 0, 0); ZONES as usize], turn: 0, shape };
        for step in steps {
            match step {
                Step::Write { lba, blocks } => {
                    prop_assert_eq!(zones.write(BlockRange { lba, blocks }), model.write(lba, blocks.into()));
                }
                Step::WriteNext { zone, blocks } => {
                    let lba = zone * shape.zone_blocks + model.rows[zone as usize].1;
                    prop_assert_eq!(zones.write(BlockRange { lba, blocks }), model.write(lba, blocks.into()));
                }
                Step::Append { zone, blocks } => {
                    let first = zone * shape.zone_blocks;
                    let lba = first + model.rows[zone as usize].1;
                    let expected = model.write(lba, blocks.into()).map(|()| lba);
                    prop_assert_eq!(zones.append(BlockRange { lba: first, blocks }), expected);
                }
                Step::Send { zone, action, all } => {
                    let action = [SendAction::Close, SendAction::Finish, SendAction::Open, SendAction::Reset,
                        SendAction::Offline, SendAction::Other(0x10)][usize::from(action) - 1];
                    let expected = if all { model.send_all(action) } else { model.send(zone as usize, action) };
                    prop_assert_eq!(zones.send(zone * shape.zone_blocks, action, all).map(|_| ()), expected);
                }
                Step::GiveUp { zone, offline } => {
                    let state = if offline { ZoneState::Offline } else { ZoneState::ReadOnly };
                    zones.give_up(zone * shape.zone_blocks + 3, state);
                    model.rows[zone as usize].0 = state;
                }
            }
            let expected: Vec<_> = model.rows.iter()
                .map(|row| (row.0, if row.0 == ZoneState::Full { 0 } else { row.1 })).collect();
            prop_assert_eq!(rows(&zones), expected);
            let open = model.in_states(&[ZoneState::ImplicitlyOpen, ZoneState::ExplicitlyOpen]) as u32;
            prop_assert_eq!((zones.open, zones.active), (open, open + model.in_states(&[ZoneState::Closed]) as u32));
            prop_assert!(shape.active_max == 0 || zones.active <= shape.active_max);
            prop_assert!(shape.open_limit() == 0 || zones.open <= shape.open_limit());
        }
    }

    #[test]
    fn zones_are_found_again_by_the_blocks_that_are_mapped(steps in prop::collection::vec(any_step(), 1..80)) {
        let shape = ZoneShape { open_max: 0, active_max: 0, ..SHAPE };
        let mut zones = Zones::new(shape, ZONES * SHAPE.zone_blocks);
        let mut mapped = vec![false; (ZONES * SHAPE.zone_blocks) as usize];
        let mark = |mapped: &mut Vec<bool>, range: BlockRange, is_mapped: bool| {
            mapped[range.lba as usize..][..range.blocks as usize].fill(is_mapped);
        };
        for step in steps {
            match step {
                Step::Write { lba, blocks } if zones.write(BlockRange { lba, blocks }).is_ok() => {
                    mark(&mut mapped, BlockRange { lba, blocks }, true);
                }
                Step::WriteNext { zone, blocks } | Step::Append { zone, blocks } => {
                    if let Ok(lba) = zones.append(BlockRange { lba: zone * shape.zone_blocks, blocks }) {
                        mark(&mut mapped, BlockRange { lba, blocks }, true);
                    }
                }
                Step::Send { zone, action, all } => {
                    let action = [SendAction::Close, SendAction::Finish, SendAction::Open, SendAction::Reset][usize::from(action) % 4];
                    for range in zones.send(zone * shape.zone_blocks, action, all).unwrap_or_default() {
                        mark(&mut mapped, range, action == SendAction::Finish);
                    }
                }
                _ => {}
            }
        }
        let before = rows(&zones);
        zones.restore(|lba| mapped[lba as usize]);
        let expected: Vec<_> = before.into_iter().map(|(state, written)| match state {
            // An open zone without data, or a closed one, takes no resources after a loss of power.
            ZoneState::ImplicitlyOpen | ZoneState::ExplicitlyOpen | ZoneState::Closed if written == 0 => (ZoneState::Empty, 0),
            ZoneState::ImplicitlyOpen | ZoneState::ExplicitlyOpen => (ZoneState::Closed, written),
            state => (state, written),
        }).collect();
        prop_assert_eq!(rows(&zones), expected);
    }
}

#[test]
fn the_zone_that_was_opened_first_is_closed_for_another() {
    let mut zones = Zones::new(SHAPE, ZONES * 8);
    for first in [8, 0, 8, 16] {
        assert!(zones.append(BlockRange { lba: first, blocks: 1 }).is_ok());
    }
    let states: Vec<_> = rows(&zones).into_iter().map(|row| row.0).take(3).collect();
    assert_eq!(states, [ZoneState::ImplicitlyOpen, ZoneState::Closed, ZoneState::ImplicitlyOpen]);
    assert_eq!(zones.append(BlockRange { lba: 24, blocks: 1 }), Err(Status::ZONE_TOO_MANY_ACTIVE));
    for first in [0, 16] {
        assert_eq!(zones.send(first, SendAction::Open, false), Ok(vec![]));
    }
    assert_eq!(zones.write(BlockRange { lba: 10, blocks: 1 }), Err(Status::ZONE_TOO_MANY_OPEN));
}

#[test]
fn a_report_begins_with_the_zone_of_its_block_and_counts_what_was_asked_for() {
    let mut zones = Zones::new(SHAPE, ZONES * 8);
    assert_eq!(zones.write(BlockRange { lba: 8, blocks: 2 }), Ok(()));
    assert_eq!(zones.write(BlockRange { lba: 16, blocks: 6 }), Ok(()));
    let report = |first, receive: Receive| {
        let mut out = Vec::new();
        zones.report(first, &receive, &mut out).map(|()| out)
    };
    let described = |bytes: &[u8]| -> Vec<ZoneDescriptor> {
        bytes[64..].chunks_exact(64).filter_map(|chunk| ZoneDescriptor::read_from_bytes(chunk).ok()).collect()
    };
    let bytes = report(9, all(0, false, 64 + 2 * 64)).expect("it is a report");
    assert_eq!((bytes[0], bytes.len()), (5, 192));
    let open = ZoneDescriptor::new(ZoneState::ImplicitlyOpen, 8, 6, Some(10));
    assert_eq!(described(&bytes), [open, ZoneDescriptor::new(ZoneState::Full, 16, 6, None)]);
    assert_eq!(report(9, all(0, true, 64 + 2 * 64)).expect("it is a report")[0], 2);
    let full = report(0, all(5, false, 4096)).expect("it is a report");
    assert_eq!((full[0], described(&full)[0].first.get(), described(&full)[1].kind), (1, 16, 0));
    assert_eq!(report(0, all(6, true, 64)).expect("it is a report")[0], 0);
    assert_eq!(report(48, all(0, false, 64)), Err(Status::LBA_OUT_OF_RANGE));
    assert_eq!(report(0, all(8, false, 64)), Err(Status::INVALID_FIELD));
    assert_eq!(report(0, all(0, false, 60)), Err(Status::INVALID_FIELD));
    assert_eq!(report(0, Receive { action: 1, ..all(0, false, 64) }), Err(Status::INVALID_FIELD));
}

#[test]
fn blocks_between_capacity_and_size_are_read_and_never_written() {
    let mut zones = Zones::new(SHAPE, ZONES * 8);
    assert_eq!(zones.write(BlockRange { lba: 0, blocks: 7 }), Err(Status::ZONE_BOUNDARY_ERROR));
    assert_eq!(zones.write(BlockRange { lba: 6, blocks: 1 }), Err(Status::ZONE_INVALID_WRITE));
    assert_eq!(zones.append(BlockRange { lba: 3, blocks: 1 }), Err(Status::INVALID_FIELD));
    assert_eq!(zones.read(BlockRange { lba: 4, blocks: 8 }), Ok(()));
    zones.give_up(8, ZoneState::Offline);
    assert_eq!(zones.read(BlockRange { lba: 4, blocks: 8 }), Err(Status::ZONE_OFFLINE));
    assert_eq!(zones.read(BlockRange { lba: 4, blocks: 4 }), Ok(()));
}
