//! Formats and sanitizes of a drive, as far as they outlive the process.

/// An erasure of all data of a drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Erase {
    /// A format: blocks have this size afterwards.
    Format {
        /// 512 or 4096.
        block_bytes: u32,
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
    /// Bytes of a block since the last format, if there was one.
    pub block_bytes: Option<u32>,
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
    /// 0   logarithm of the bytes of a block, 5 bits
    /// 5   logarithm of those that a format under way leads to, 5 bits
    /// 10  kind of the erasure under way, 2 bits
    /// 12  whether a format destroys data
    /// 13  outcome of the last sanitize, 2 bits
    /// 16  dword 10 of it, 10 bits
    /// 32  dword 10 of a sanitize under way, 10 bits
    /// ```
    pub(super) fn encode(&self) -> u64 {
        let log2 = |bytes: u32| u64::from(bytes.max(1).trailing_zeros());
        let under_way = match self.under_way {
            Some(Erase::Format { block_bytes, destroys }) => {
                log2(block_bytes) << 5 | FORMAT << 10 | u64::from(destroys) << 12
            }
            Some(Erase::Sanitize { command }) => SANITIZE << 10 | (u64::from(command) & COMMAND_BITS) << 32,
            Some(Erase::LeaveFailure) | None => 0,
        };
        let outcome = match self.sanitized {
            SanitizeOutcome::Never => 0,
            SanitizeOutcome::Done => 1,
            SanitizeOutcome::Failed => 2,
            SanitizeOutcome::Left => 3,
        };
        self.block_bytes.map_or(0, log2) | under_way | outcome << 13 | (u64::from(self.command) & COMMAND_BITS) << 16
    }

    /// The reverse of [`Erasures::encode`]; sizes of blocks that there are not are none.
    pub(super) fn decode(bits: u64) -> Self {
        let bytes = |log2: u64| Some(1_u32 << (log2 & 0x1F)).filter(|bytes| matches!(bytes, 512 | 4096));
        let under_way = match bits >> 10 & 3 {
            FORMAT => bytes(bits >> 5).map(|block_bytes| Erase::Format { block_bytes, destroys: bits & 1 << 12 != 0 }),
            SANITIZE => Some(Erase::Sanitize { command: (bits >> 32 & COMMAND_BITS) as u32 }),
            _ => None,
        };
        let sanitized = match bits >> 13 & 3 {
            0 => SanitizeOutcome::Never,
            1 => SanitizeOutcome::Done,
            2 => SanitizeOutcome::Failed,
            _ => SanitizeOutcome::Left,
        };
        Self { block_bytes: bytes(bits), under_way, sanitized, command: (bits >> 16 & COMMAND_BITS) as u32 }
    }

    /// The state once its erasure has come to its end, well or not.
    pub(crate) fn ended(self, is_done: bool) -> Self {
        let ended = Self { under_way: None, ..self };
        match self.under_way {
            Some(Erase::Format { block_bytes, .. }) if is_done => Self { block_bytes: Some(block_bytes), ..ended },
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

    fn erase() -> impl Strategy<Value = Erase> {
        let block_bytes = prop_oneof![Just(512), Just(4096)];
        prop_oneof![
            (block_bytes, any::<bool>()).prop_map(|(block_bytes, destroys)| Erase::Format { block_bytes, destroys }),
            (0_u32..1024).prop_map(|command| Erase::Sanitize { command }),
        ]
    }

    proptest! {
        #[test]
        fn erasures_are_read_as_they_were_written(
            block_bytes in proptest::option::of(prop_oneof![Just(512), Just(4096)]),
            under_way in proptest::option::of(erase()), outcome in 0_u64..4, command in 0_u32..1024,
        ) {
            let sanitized = Erasures::decode(outcome << 13).sanitized;
            let erasures = Erasures { block_bytes, under_way, sanitized, command };
            prop_assert!(erasures.encode() < 1 << 48);
            prop_assert_eq!(Erasures::decode(erasures.encode()), erasures);
        }
    }

    #[test]
    fn a_drive_of_before_was_never_erased_and_a_format_that_fails_leaves_its_blocks() {
        assert_eq!((Erasures::decode(0), Erasures::default().encode()), (Erasures::default(), 0));
        let format = Erase::Format { block_bytes: 512, destroys: true };
        let begun = Erasures { under_way: Some(format), ..Erasures::default() };
        assert_eq!((begun.ended(false).block_bytes, begun.ended(true).block_bytes), (None, Some(512)));
        let begun = Erasures { under_way: Some(Erase::Sanitize { command: 2 }), ..begun.ended(true) };
        assert_eq!((begun.ended(true).sanitized, begun.ended(true).command), (SanitizeOutcome::Done, 2));
        assert_eq!(
            (begun.ended(false).sanitized, begun.ended(false).block_bytes),
            (SanitizeOutcome::Failed, Some(512))
        );
    }
}
