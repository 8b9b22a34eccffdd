//! The label of a drive: the array that it is a member of, its number there, and the shape that all members share. Source: \[A\].
//!
//! It lies in the first block of a drive, which the array leaves alone ([`ArrayConfig::reserved`]), and changes only when another drive takes the
//! number. Without it two drives that have changed places, or another length of chunks, would be found by wrong data only.

use crate::raid::{ArrayConfig, Journal, LEGS_MAX, MovesConfig};
use flashyard_service::checksum;
use flashyard_units::SimSpan;

/// Bytes of a label: blocks are no smaller.
const LABEL_BYTES: usize = 640;
const MAGIC: [u8; 4] = *b"FYAL";
/// Version of the format, and of that of arrays whose chunks move.
const VERSION: u32 = 1;
const VERSION_OF_MOVES: u32 = 2;
/// The byte of the first leg's blocks, of the first leg's speed, and of the checksum of all before.
const BLOCKS_AT: usize = 32;
const SPEEDS_AT: usize = BLOCKS_AT + 8 * LEGS_MAX;
const SUM_AT: usize = SPEEDS_AT + LEGS_MAX;
/// Where chunks move, room for maps and logs of moves lies before the checksum.
const MOVES_AT: usize = SUM_AT;
const MOVES_SUM_AT: usize = MOVES_AT + 8;
const _: () = assert!(MOVES_SUM_AT + 4 <= LABEL_BYTES);

/// The label of a drive of an array.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Label {
    /// The array.
    pub array: u64,
    /// The number of this drive.
    pub leg: u8,
    /// Chunks of a stripe, parity included.
    pub width: u8,
    /// Those of parity.
    pub parities: u8,
    /// Blocks of a chunk.
    pub chunk_blocks: u32,
    /// The way in which changes under way are kept, and how many at once.
    pub journal: Journal,
    /// See there.
    pub slots: u32,
    /// Blocks of a map, and of the log of moves behind it, where chunks move.
    pub moves: Option<(u32, u32)>,
    /// By leg: its blocks, and how many speeds are lower than its own.
    pub legs: Vec<(u64, u8)>,
}

/// The meaning of the first block of a drive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Found {
    /// Zeros.
    Blank,
    /// A label.
    Label(Label),
    /// Something else.
    Other,
}

impl Label {
    /// That of leg 0 of an array of legs with so many blocks.
    pub fn new(config: &ArrayConfig, blocks: &[u64]) -> Self {
        let lower = |speed: &u64| {
            let mut lower: Vec<u64> = config.speeds.iter().copied().filter(|other| other < speed).collect();
            lower.sort_unstable();
            lower.dedup();
            lower.len() as u8
        };
        Self {
            array: config.id,
            leg: 0,
            width: config.width,
            parities: config.parities,
            chunk_blocks: config.chunk_blocks,
            journal: config.journal,
            slots: config.slots,
            moves: config.moves.map(|moves| (moves.map_blocks, moves.log_blocks)),
            legs: blocks.iter().copied().zip(config.speeds.iter().map(lower)).collect(),
        }
    }

    /// The configuration of the array, whose labels have a block each, with pauses of its rebuild and these settings of moves.
    pub fn config(&self, pause: SimSpan, moves: &MovesConfig) -> ArrayConfig {
        let sized = |(map_blocks, log_blocks)| MovesConfig { map_blocks, log_blocks, ..*moves };
        ArrayConfig {
            id: self.array,
            width: self.width,
            parities: self.parities,
            chunk_blocks: self.chunk_blocks,
            journal: self.journal,
            slots: self.slots,
            aggregates: true,
            speeds: self.legs.iter().map(|&(_, speed)| speed.into()).collect(),
            pause,
            reserved: 1,
            moves: self.moves.map(sized),
        }
    }

    /// A block of so many bytes that has it.
    ///
    /// # Panics
    /// When blocks are smaller than a label, or there are more than 64 legs.
    pub fn encode(&self, block_bytes: usize) -> Vec<u8> {
        assert!(block_bytes >= LABEL_BYTES, "a label has {LABEL_BYTES} bytes");
        assert!(self.legs.len() <= LEGS_MAX, "{} legs", self.legs.len());
        let mut block = vec![0; block_bytes];
        let mut put = |at: usize, bytes: &[u8]| block[at..at + bytes.len()].copy_from_slice(bytes);
        put(0, &MAGIC);
        let (version, sum_at) = if self.moves.is_some() { (VERSION_OF_MOVES, MOVES_SUM_AT) } else { (VERSION, SUM_AT) };
        put(4, &version.to_le_bytes());
        put(8, &self.array.to_le_bytes());
        let journal = match self.journal {
            Journal::Whole => 0,
            Journal::PartialParity => 1,
            Journal::None => 2,
        };
        put(16, &[self.leg, self.width, self.parities, journal]);
        put(20, &self.chunk_blocks.to_le_bytes());
        put(24, &self.slots.to_le_bytes());
        put(28, &(self.legs.len() as u32).to_le_bytes());
        for (leg, &(blocks, speed)) in self.legs.iter().enumerate() {
            put(BLOCKS_AT + 8 * leg, &blocks.to_le_bytes());
            put(SPEEDS_AT + leg, &[speed]);
        }
        if let Some((map_blocks, log_blocks)) = self.moves {
            put(MOVES_AT, &map_blocks.to_le_bytes());
            put(MOVES_AT + 4, &log_blocks.to_le_bytes());
        }
        let sum = checksum(0, &block[..sum_at]);
        block[sum_at..sum_at + 4].copy_from_slice(&sum.to_le_bytes());
        block
    }

    fn decode(block: &[u8]) -> Option<Self> {
        let word = |at: usize| Some(u32::from_le_bytes(*block.get(at..)?.first_chunk()?));
        let long = |at: usize| Some(u64::from_le_bytes(*block.get(at..)?.first_chunk()?));
        let sum_at = match word(4)? {
            VERSION => SUM_AT,
            VERSION_OF_MOVES => MOVES_SUM_AT,
            _ => return None,
        };
        let body = block.get(..sum_at)?;
        if !body.starts_with(&MAGIC) || word(sum_at)? != checksum(0, body) {
            return None;
        }
        let moves = if sum_at == SUM_AT { None } else { Some((word(MOVES_AT)?, word(MOVES_AT + 4)?)) };
        let count = usize::try_from(word(28)?).ok().filter(|count| (1..=LEGS_MAX).contains(count))?;
        let journal = match body[19] {
            0 => Journal::Whole,
            1 => Journal::PartialParity,
            2 => Journal::None,
            _ => return None,
        };
        let leg = |leg: usize| Some((long(BLOCKS_AT + 8 * leg)?, body[SPEEDS_AT + leg]));
        let legs = (0..count).map(leg).collect::<Option<Vec<_>>>()?;
        let (array, chunk_blocks, slots) = (long(8)?, word(20)?, word(24)?);
        let (leg, width, parities) = (body[16], body[17], body[18]);
        Some(Self { array, leg, width, parities, chunk_blocks, journal, slots, moves, legs })
    }

    /// Looks at the first block of a drive.
    pub fn find(block: &[u8]) -> Found {
        if block.iter().all(|&byte| byte == 0) {
            return Found::Blank;
        }
        Self::decode(block).map_or(Found::Other, Found::Label)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn label(legs: Vec<(u64, u8)>, journal: Journal) -> Label {
        Label { array: 9 << 41, leg: 2, width: 6, parities: 2, chunk_blocks: 16, journal, slots: 32, moves: None, legs }
    }

    proptest! {
        #[test]
        fn labels_are_read_as_written_and_flipped_bits_are_found(
            legs in prop::collection::vec((any::<u64>(), any::<u8>()), 1..=LEGS_MAX),
            journal in prop::sample::select(vec![Journal::Whole, Journal::PartialParity, Journal::None]),
            moves in prop::option::of(any::<(u32, u32)>()),
            bit in 0..8 * (SUM_AT + 4),
        ) {
            let label = Label { moves, ..label(legs, journal) };
            let mut block = label.encode(4096);
            prop_assert_eq!(Label::find(&block), Found::Label(label));
            block[bit / 8] ^= 1 << (bit % 8);
            prop_assert_eq!(Label::find(&block), Found::Other);
        }

        #[test]
        fn any_bytes_are_no_reason_to_panic(bytes in prop::collection::vec(any::<u8>(), 0..700), has_magic: bool) {
            let mut bytes = bytes;
            if has_magic && bytes.len() > SUM_AT + 4 {
                bytes[..4].copy_from_slice(&MAGIC);
                let sum = checksum(0, &bytes[..SUM_AT]);
                bytes[SUM_AT..SUM_AT + 4].copy_from_slice(&sum.to_le_bytes());
            }
            let _ = Label::find(&bytes);
        }
    }

    #[test]
    fn of_speeds_only_the_order_counts() {
        let moves = MovesConfig {
            map_blocks: 0,
            log_blocks: 0,
            interval: SimSpan::ZERO,
            sample: 1,
            pause: SimSpan::ZERO,
            look: SimSpan::ZERO,
        };
        let config = |speeds: Vec<u64>| ArrayConfig {
            speeds,
            ..label(vec![(1, 0); 4], Journal::Whole).config(SimSpan::ZERO, &moves)
        };
        let of = |speeds| Label::new(&config(speeds), &[40, 30, 20, 10]);
        assert_eq!(of(vec![480, 3330, 3330, 1]), of(vec![2, 7, 7, 0]));
        assert_eq!(of(vec![480, 3330, 3330, 1]).legs, [(40, 1), (30, 2), (20, 2), (10, 0)]);
        assert_eq!(Label::find(&[0; 4096]), Found::Blank);
    }
}
