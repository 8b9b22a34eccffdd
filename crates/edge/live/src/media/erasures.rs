//! Formats and sanitizes of a drive, as far as they outlive the process.

use flashyard_flash::SLOT_BYTES;
use flashyard_nvme::protection::Metadata;

/// The format of the blocks of a volume.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockFormat {
    /// Data of a block in bytes, 512 or 4096.
    pub data_bytes: u32,
    /// Its metadata.
    pub metadata: Metadata,
}

impl BlockFormat {
    /// Blocks without metadata.
    pub const fn plain(data_bytes: u32) -> Self {
        Self { data_bytes, metadata: Metadata::None }
    }

    /// Blocks with protection information of type `kind`, 1 to 3; 0 is none.
    pub fn with_protection(data_bytes: u32, kind: u8) -> Self {
        Self { data_bytes, metadata: Metadata::of(kind > 0, kind).unwrap_or_default() }
    }

    /// Whether there are such blocks.
    pub(crate) fn exists(&self) -> bool {
        matches!(self.data_bytes, 512 | SLOT_BYTES)
    }
}

/// An erasure of all data of a drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Erase {
    /// A format.
    Format {
        /// The blocks afterwards.
        block: BlockFormat,
        /// Data must not be left anywhere.
        destroys: bool,
    },
    /// A sanitize: data is left nowhere.
    Sanitize {
        /// Dword 10 of the command that began it.
        command: u32,
    },
    /// No erasure: the failure mode that a sanitize has left ends.
    LeaveFailure,
}

/// Outcome of the last sanitize of a drive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SanitizeOutcome {
    /// There was none.
    #[default]
    Never,
    /// All data is gone.
    Done,
    /// Something of it may be left.
    Failed,
    /// As before, but the failure mode has been left.
    Left,
}

/// Traces of formats and sanitizes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Erasures {
    /// Blocks since the last format, if there was one.
    pub block: Option<BlockFormat>,
    /// The erasure that is under way: one that a process has begun goes on in the next.
    pub under_way: Option<Erase>,
    /// Outcome of the last sanitize that is over.
    pub sanitized: SanitizeOutcome,
    /// Dword 10 of the last sanitize.
    pub command: u32,
}

/// Bits of dword 10 of a sanitize.
const COMMAND_BITS: u64 = 0x3FF;

// Kinds of erasures under way; zero is none.
const FORMAT: u64 = 1;
const SANITIZE: u64 = 2;

impl Erasures {
    /// In 48 bits, of which none is set for a drive that was never erased.
    ///
    /// ```text
    /// 0   logarithm of the data of a block in bytes, 5 bits
    /// 5   logarithm of those that a format under way leads to, 5 bits
    /// 10  kind of the erasure under way, 2 bits
    /// 12  whether a format destroys data
    /// 13  outcome of the last sanitize, 2 bits
    /// 16  dword 10 of it, 10 bits
    /// 26  metadata of a block, 3 bits
    /// 29  that to which a format under way leads, 3 bits
    /// 32  dword 10 of a sanitize under way, 10 bits
    /// ```
    pub(super) fn encode(&self) -> u64 {
        let bits = |block: BlockFormat, size_at: u32, metadata_at: u32| {
            let log2 = u64::from(block.data_bytes.max(1).trailing_zeros());
            log2 << size_at | u64::from(block.metadata.code()) << metadata_at
        };
        let under_way = match self.under_way {
            Some(Erase::Format { block, destroys }) => bits(block, 5, 29) | FORMAT << 10 | u64::from(destroys) << 12,
            Some(Erase::Sanitize { command }) => SANITIZE << 10 | (u64::from(command) & COMMAND_BITS) << 32,
            Some(Erase::LeaveFailure) | None => 0,
        };
        let outcome = match self.sanitized {
            SanitizeOutcome::Never => 0,
            SanitizeOutcome::Done => 1,
            SanitizeOutcome::Failed => 2,
            SanitizeOutcome::Left => 3,
        };
        let block = self.block.map_or(0, |block| bits(block, 0, 26));
        block | under_way | outcome << 13 | (u64::from(self.command) & COMMAND_BITS) << 16
    }

    /// The reverse of [`Erasures::encode`]; blocks that there are not are none.
    pub(super) fn decode(bits: u64) -> Self {
        let block = |size_at: u32, metadata_at: u32| {
            let metadata = Metadata::from_code((bits >> metadata_at & 7) as u8)?;
            Some(BlockFormat { data_bytes: 1 << (bits >> size_at & 0x1F), metadata }).filter(BlockFormat::exists)
        };
        let under_way = match bits >> 10 & 3 {
            FORMAT => block(5, 29).map(|block| Erase::Format { block, destroys: bits & 1 << 12 != 0 }),
            SANITIZE => Some(Erase::Sanitize { command: (bits >> 32 & COMMAND_BITS) as u32 }),
            _ => None,
        };
        let sanitized = match bits >> 13 & 3 {
            0 => SanitizeOutcome::Never,
            1 => SanitizeOutcome::Done,
            2 => SanitizeOutcome::Failed,
            _ => SanitizeOutcome::Left,
        };
        Self { block: block(0, 26), under_way, sanitized, command: (bits >> 16 & COMMAND_BITS) as u32 }
    }

    /// The state once its erasure has come to its end, well or not.
    pub(crate) fn ended(self, is_done: bool) -> Self {
        let ended = Self { under_way: None, ..self };
        match self.under_way {
            Some(Erase::Format { block, .. }) if is_done => Self { block: Some(block), ..ended },
            Some(Erase::Sanitize { command }) => {
                let sanitized = if is_done { SanitizeOutcome::Done } else { SanitizeOutcome::Failed };
                Self { sanitized, command, ..ended }
            }
            _ => ended,
        }
    }
}

impl Erase {
    /// Whether it is always about a whole drive.
    pub(crate) fn is_of_all(&self) -> bool {
        matches!(self, Self::Sanitize { .. } | Self::LeaveFailure)
    }

    /// Whether data must be left nowhere.
    pub(crate) fn destroys(&self) -> bool {
        matches!(self, Self::Format { destroys: true, .. } | Self::Sanitize { .. })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn block() -> impl Strategy<Value = BlockFormat> {
        let metadata = (0_u8..5).prop_filter_map("there is such metadata", Metadata::from_code);
        (prop_oneof![Just(512), Just(4096)], metadata)
            .prop_map(|(data_bytes, metadata)| BlockFormat { data_bytes, metadata })
    }

    fn erase() -> impl Strategy<Value = Erase> {
        prop_oneof![
            (block(), any::<bool>()).prop_map(|(block, destroys)| Erase::Format { block, destroys }),
            (0_u32..1024).prop_map(|command| Erase::Sanitize { command }),
        ]
    }

    proptest! {
        #[test]
        fn erasures_are_read_as_they_were_written(
            block in proptest::option::of(block()),
            under_way in proptest::option::of(erase()), outcome in 0_u64..4, command in 0_u32..1024,
        ) {
            let sanitized = Erasures::decode(outcome << 13).sanitized;
            let erasures = Erasures { block, under_way, sanitized, command };
            prop_assert!(erasures.encode() < 1 << 48);
            prop_assert_eq!(Erasures::decode(erasures.encode()), erasures);
        }
    }

    #[test]
    fn a_drive_of_before_was_never_erased_and_a_format_that_fails_leaves_its_blocks() {
        assert_eq!((Erasures::decode(0), Erasures::default().encode()), (Erasures::default(), 0));
        let small = BlockFormat { data_bytes: 512, metadata: Metadata::Type1 };
        let format = Erase::Format { block: small, destroys: true };
        let begun = Erasures { under_way: Some(format), ..Erasures::default() };
        assert_eq!((begun.ended(false).block, begun.ended(true).block), (None, Some(small)));
        let begun = Erasures { under_way: Some(Erase::Sanitize { command: 2 }), ..begun.ended(true) };
        assert_eq!((begun.ended(true).sanitized, begun.ended(true).command), (SanitizeOutcome::Done, 2));
        assert_eq!((begun.ended(false).sanitized, begun.ended(false).block), (SanitizeOutcome::Failed, Some(small)));
    }
}
