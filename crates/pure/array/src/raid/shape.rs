//! The shape of an array: chunks of its stripes and their places, and the room for its records.

use super::op::roles;
use crate::layout::{Layout, LayoutError, Member};
use crate::learned::{Chunk, LearnedMap, MapError, Place};
use flashyard_blk::VolumeInfo;
use flashyard_service::Leg;
use flashyard_service::parity::CHUNKS_MAX;
use flashyard_units::SimSpan;

/// Legs at most: a bit each.
pub(crate) const LEGS_MAX: usize = 64;

/// The way in which an array keeps changes of stripes that are under way, so that a loss of power leaves no stripe whose parity is wrong (the write hole).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Journal {
    /// All chunks that change, before they are written in place, on as many drives as may be lost and one more: after a loss of power a change is
    /// whole or can be repeated, also without these drives.
    #[default]
    Whole,
    /// With one parity: the sum of the data that does not change, on the drive of the parity. After a loss of power parity is made again. A drive that
    /// is lost together with the power may take blocks with it that were being written; others are safe. A stripe that lacks a drive has its
    /// change journaled whole. Source: \[X\] partial parity log of Linux md.
    PartialParity,
    /// Nothing. After a loss of power stripes that were being changed may have a wrong parity until a scrub mends them: if a drive is lost before, its
    /// chunks of these stripes are made of it, and are wrong.
    None,
}

/// The shape of an array.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArrayConfig {
    /// Tells its records from those of other arrays.
    pub id: u64,
    /// Chunks of a stripe, parity included.
    pub width: u8,
    /// Those of parity: 1 (RAID-5) or 2 (RAID-6).
    pub parities: u8,
    /// Blocks of a chunk.
    pub chunk_blocks: u32,
    /// The way in which changes under way are kept.
    pub journal: Journal,
    /// Changes of stripes that the journal has room for at once.
    pub slots: u32,
    /// Whether writes that wait for one stripe become one.
    pub aggregates: bool,
    /// By leg: its speed, of which only the order counts.
    pub speeds: Vec<u64>,
    /// Time between two stripes of a rebuild or a scrub.
    pub pause: SimSpan,
    /// Blocks at the beginning of each leg that are not the array's, such as a [`Label`](crate::Label).
    pub reserved: u32,
    /// Whether chunks move, and how.
    pub moves: Option<MovesConfig>,
}

/// The way in which chunks move between fast and slow drives. Each drive keeps a place free for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MovesConfig {
    /// Blocks of a drive that a map has room for, and as many moves as follow it until it is written again. Each drive has both twice.
    pub map_blocks: u32,
    /// See there.
    pub log_blocks: u32,
    /// Time between two looks at what is hot.
    pub interval: SimSpan,
    /// One access in so many counts.
    pub sample: u32,
    /// Time between two moves.
    pub pause: SimSpan,
    /// Time until it looks for idle drives again.
    pub look: SimSpan,
}

/// Why legs make no array.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ArrayError {
    /// Parities other than 1 or 2, or no data beside them.
    #[error(
        "stripes of {width} chunks with {parities} parities; take 1 or 2 parities and up to {CHUNKS_MAX} chunks with data among them"
    )]
    Shape {
        /// Chunks of a stripe.
        width: u8,
        /// Parities.
        parities: u8,
    },
    /// More legs than an array has bits for, or other legs than speeds.
    #[error("{legs} legs with {speeds} speeds; take a speed for each of up to {LEGS_MAX} legs")]
    Legs {
        /// Legs.
        legs: usize,
        /// Speeds.
        speeds: usize,
    },
    /// Chunks of no blocks, or a stripe of them with a header that is larger than a leg takes at once.
    #[error(
        "chunks of {0} blocks; take at least 1, and so few that a leg takes a stripe of them and one block more in one request"
    )]
    Chunk(u32),
    /// A journal without room, or a partial-parity log of two parities.
    #[error("a journal of {0} slots; take at least 1, no partial parity with two parities, or no journal")]
    Journal(u32),
    /// An area that has no room for the map of the drives and a move.
    #[error(
        "the map of these drives takes {bytes} bytes, and has room for {room}; give it more, and its log at least 1 block"
    )]
    Moves {
        /// Bytes of the map.
        bytes: usize,
        /// Those that it has room for.
        room: u64,
    },
    /// Blocks that are too small for a record.
    #[error("blocks of {0} bytes are smaller than the records of an array, which take 64")]
    Block(u32),
    /// Drives have no layout.
    #[error(transparent)]
    Layout(#[from] LayoutError),
    /// The layout is too large.
    #[error(transparent)]
    Map(#[from] MapError),
}

/// Counts of an array.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ArrayCounters {
    /// Reads that were made of other chunks.
    pub degraded_reads: u64,
    /// Changes of stripes that were repeated at a start.
    pub repeated: u64,
    /// Chunks that were rebuilt.
    pub rebuilt: u64,
    /// Stripes that a scrub has looked at.
    pub scrubbed: u64,
    /// Stripes whose parity was wrong then.
    pub wrong: u64,
    /// Chunks that could not be read, and were written again.
    pub repaired: u64,
    /// Writes that became one with another one of their stripe.
    pub aggregated: u64,
    /// Chunks that were copied to another drive.
    pub moved: u64,
    /// Chunks that a write has taken to another drive.
    pub moved_by_writes: u64,
    /// Moves that were given up because a drive was lost.
    pub abandoned: u64,
}

/// An array's configuration, layout and map.
#[derive(Clone, Debug)]
pub(super) struct Shape {
    pub(super) config: ArrayConfig,
    pub(super) layout: Layout,
    pub(super) map: LearnedMap,
    pub(super) block_bytes: u32,
    /// By leg: places for chunks.
    pub(super) rooms: Vec<u32>,
    /// Blocks that every leg takes at once.
    pub(super) piece_blocks: u32,
}

impl Shape {
    /// That of an array over `legs`.
    ///
    /// Errors: the legs do not fit the configuration.
    pub(super) fn new(config: ArrayConfig, legs: &[VolumeInfo]) -> Result<Self, ArrayError> {
        let ArrayConfig { width, parities, chunk_blocks, slots, journal, .. } = config;
        if !(1..=2).contains(&parities) || parities >= width || usize::from(width) > CHUNKS_MAX {
            return Err(ArrayError::Shape { width, parities });
        }
        if (slots == 0 && journal != Journal::None) || (journal == Journal::PartialParity && parities > 1) {
            return Err(ArrayError::Journal(slots));
        }
        let speeds = config.speeds.len();
        if legs.len() > LEGS_MAX || speeds != legs.len() {
            return Err(ArrayError::Legs { legs: legs.len(), speeds });
        }
        let largest = legs.iter().map(|leg| leg.limits.request_blocks).min().unwrap_or(0);
        if chunk_blocks == 0 || slot_blocks(&config) > u64::from(largest) {
            return Err(ArrayError::Chunk(chunk_blocks));
        }
        let block_bytes = legs.first().map_or(0, |leg| leg.block_bytes);
        if (block_bytes as usize) < super::record::RECORD_BYTES {
            return Err(ArrayError::Block(block_bytes));
        }
        let base = base(&config);
        let room = |leg: &VolumeInfo| leg.limits.blocks.saturating_sub(base) / u64::from(chunk_blocks);
        let spare = u64::from(config.moves.is_some());
        let member = |(leg, &speed): (&VolumeInfo, &u64)| Member { chunks: room(leg).saturating_sub(spare), speed };
        let members: Vec<Member> = legs.iter().zip(&config.speeds).map(member).collect();
        let layout = Layout::new(&members, width.into())?;
        let map = LearnedMap::of(&layout)?;
        if let Some(moves) = config.moves {
            let mut saved = Vec::new();
            map.save(&mut saved);
            let (bytes, room) = (saved.len(), u64::from(moves.map_blocks) * u64::from(block_bytes));
            // An exception more.
            if bytes as u64 + 10 > room || moves.log_blocks == 0 {
                return Err(ArrayError::Moves { bytes, room });
            }
        }
        let rooms = legs.iter().map(|leg| u32::try_from(room(leg)).unwrap_or(u32::MAX)).collect();
        Ok(Self { config, layout, map, block_bytes, rooms, piece_blocks: largest })
    }

    /// Chunk `role` of a stripe, its data from 0 on and then parity, as the map has it.
    ///
    /// # Panics
    /// When there is no such role.
    pub(super) fn chunk(&self, stripe: u32, role: u8) -> Chunk {
        let ArrayConfig { width, parities, .. } = self.config;
        let data = width - parities;
        assert!(role < width, "chunk {role} of {width}");
        // Parity moves on from stripe to stripe: sheet paraid §11.
        let shift = if role < data { role + parities } else { role - data };
        Chunk { stripe, column: ((stripe % u32::from(width)) as u8 + shift) % width }
    }

    /// The role of a chunk.
    pub(super) fn role(&self, Chunk { stripe, column }: Chunk) -> u8 {
        let ArrayConfig { width, parities, .. } = self.config;
        let shift = (column + width - (stripe % u32::from(width)) as u8) % width;
        if shift < parities { self.data() + shift } else { shift - parities }
    }

    /// Where chunk `role` of a stripe lies: the leg, and the first block there.
    pub(super) fn place(&self, stripe: u32, role: u8) -> (Leg, u64) {
        self.at(self.map.get(self.chunk(stripe, role)))
    }

    /// The leg and the first block of a place.
    pub(super) fn at(&self, place: Place) -> (Leg, u64) {
        (Leg(place.drive), base(&self.config) + u64::from(place.chunk) * u64::from(self.config.chunk_blocks))
    }

    /// Chunks of a stripe on some legs, a bit each.
    pub(super) fn chunks_on(&self, stripe: u32, is_on: impl Fn(Leg) -> bool) -> u32 {
        let is_there = |&role: &u8| is_on(self.place(stripe, role).0);
        roles(self.all_roles()).filter(is_there).fold(0, |chunks, role| chunks | 1 << role)
    }

    /// Chunks of data in a stripe.
    pub(super) const fn data(&self) -> u8 {
        self.config.width - self.config.parities
    }

    /// Blocks of data in a stripe.
    pub(super) fn stripe_blocks(&self) -> u32 {
        u32::from(self.data()) * self.config.chunk_blocks
    }

    pub(super) fn all_roles(&self) -> u32 {
        u32::MAX >> (u32::BITS - u32::from(self.config.width))
    }

    pub(super) fn all_data(&self) -> u32 {
        u32::MAX >> (u32::BITS - u32::from(self.data()))
    }

    /// Slots of the journal.
    pub(super) const fn slots(&self) -> u32 {
        slots(&self.config)
    }

    /// The block of the record of members.
    pub(super) fn members_at(&self) -> u64 {
        self.config.reserved.into()
    }

    /// The first block of a slot, which may be the one behind the last.
    pub(super) fn slot_at(&self, slot: u32) -> u64 {
        self.members_at() + 1 + u64::from(slot) * slot_blocks(&self.config)
    }

    /// Blocks of an area: its head, the map, and the log.
    pub(super) fn area_blocks(&self) -> u64 {
        area_blocks(&self.config)
    }

    /// The first block of the area of a generation.
    pub(super) fn area_at(&self, generation: u64) -> u64 {
        self.slot_at(self.slots()) + generation % 2 * self.area_blocks()
    }

    /// The first block of its log.
    pub(super) fn log_at(&self, generation: u64) -> u64 {
        let map_blocks = self.config.moves.map_or(0, |moves| moves.map_blocks);
        self.area_at(generation) + 1 + u64::from(map_blocks)
    }

    /// Blocks of a slot.
    pub(super) fn slot_blocks(&self) -> u32 {
        slot_blocks(&self.config) as u32
    }
}

/// Blocks before the chunks of a leg: what is reserved, the record of members, the journal, and the areas of the map.
fn base(config: &ArrayConfig) -> u64 {
    u64::from(config.reserved) + 1 + u64::from(slots(config)) * slot_blocks(config) + 2 * area_blocks(config)
}

fn area_blocks(config: &ArrayConfig) -> u64 {
    config.moves.map_or(0, |moves| 1 + u64::from(moves.map_blocks) + u64::from(moves.log_blocks))
}

const fn slots(config: &ArrayConfig) -> u32 {
    match config.journal {
        Journal::Whole | Journal::PartialParity => config.slots,
        Journal::None => 0,
    }
}

/// Blocks of a slot of the journal: a header and the chunks of a stripe.
fn slot_blocks(config: &ArrayConfig) -> u64 {
    1 + u64::from(config.width) * u64::from(config.chunk_blocks)
}
