//! Lifetime record of a drive, kept beside its data: the counters of its health log, and what a manager wants of it.
//!
//! A record is little endian: a version, sixteen numbers of eight bytes (the first one grows from record to record),
//! and a checksum over all of it. A record written in part, or by another version, is not believed.

use super::erasures::Erasures;
use flashyard_served::Health;
use std::time::Duration;

/// Bytes of a record.
pub(super) const BYTES: usize = 4 + NUMBERS * 8 + 4;
const NUMBERS: usize = 16;
/// Not zero: a page that was never written is not a record.
const VERSION: u32 = 1;

// Bits of the flags.
const DARK: u64 = 1;
const DEGRADED: u64 = 1 << 1;
const RULE: u64 = 1 << 2;
const RATE: u64 = 1 << 3;
const RETRIES: u64 = 1 << 4;
/// The flags above what an erasure takes of them.
const ERASURE_AT: u32 = 8;

/// The life of a drive.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Life {
    /// Starts, and losses of power or link that it came back from.
    pub(crate) power_cycles: u64,
    /// Losses of power without announcement.
    pub(crate) unsafe_shutdowns: u64,
    /// Time with power, on the wall.
    pub(crate) powered_ms: u64,
    /// Read commands.
    pub(crate) reads: u64,
    /// Write commands.
    pub(crate) writes: u64,
    /// Bytes to hosts.
    pub(crate) read_bytes: u64,
    /// Bytes from hosts.
    pub(crate) write_bytes: u64,
    /// Time with at least one command under way.
    pub(crate) busy_us: u64,
    /// Times that data could not be corrected.
    pub(crate) media_errors: u64,
    /// Pages read, without retries.
    pub(crate) page_reads: u64,
    /// Pages sensed again.
    pub(crate) read_retries: u64,
    /// Entries of the error log.
    pub(crate) error_entries: u64,
    /// Whether it has no power, and so has none to lose.
    pub(crate) is_dark: bool,
    /// Whether it is in the degraded mode.
    pub(crate) is_degraded: bool,
    /// When superblocks are retired, if a manager has said so.
    pub(crate) rule: Option<Rule>,
    /// Formats and sanitizes, and the one under way.
    pub(crate) erasures: Erasures,
}

/// A rule of retirement as it was given: [`flashyard_served::Control::Retire`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Rule {
    pub(crate) rate: Option<f64>,
    pub(crate) retries: Option<u32>,
}

/// State of a place for a record.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Found {
    /// Nothing was ever written there.
    Nothing,
    /// A record that is whole, and its number.
    Whole(u64, Life),
    /// A record that is not whole.
    Torn,
}

impl Found {
    pub(super) fn whole(self) -> Option<(u64, Life)> {
        if let Self::Whole(sequence, life) = self { Some((sequence, life)) } else { None }
    }
}

impl Life {
    /// Of a drive that is started for the first time.
    pub(super) fn first() -> Self {
        Self { power_cycles: 1, ..Self::default() }
    }

    /// This life with what has come to it since the enclosure began: `health`, time with power, entries of the error log.
    pub(crate) fn until(&self, health: &Health, powered: Duration, error_entries: u64) -> Self {
        let add = |before: u64, since: u64| before.saturating_add(since);
        let breaks = u64::from(health.breaks);
        Self {
            power_cycles: add(self.power_cycles, breaks),
            unsafe_shutdowns: add(self.unsafe_shutdowns, breaks),
            powered_ms: add(self.powered_ms, powered.as_millis() as u64),
            reads: add(self.reads, health.reads),
            writes: add(self.writes, health.writes),
            read_bytes: add(self.read_bytes, health.read_bytes),
            write_bytes: add(self.write_bytes, health.write_bytes),
            busy_us: add(self.busy_us, health.busy.as_ps() / 1_000_000),
            media_errors: add(self.media_errors, health.media_errors),
            page_reads: add(self.page_reads, health.page_reads),
            read_retries: add(self.read_retries, health.read_retries),
            error_entries: add(self.error_entries, error_entries),
            is_dark: false,
            is_degraded: health.degraded,
            rule: self.rule,
            erasures: self.erasures,
        }
    }

    /// This life for a drive that has lost its power: that was counted as a cycle, which its next start ends.
    pub(crate) fn dark(self) -> Self {
        Self { power_cycles: self.power_cycles.saturating_sub(1), is_dark: true, ..self }
    }

    /// The record with this number.
    pub(super) fn encode(&self, sequence: u64) -> [u8; BYTES] {
        let flag = |is_set: bool, flag: u64| if is_set { flag } else { 0 };
        let rule = self.rule.unwrap_or(Rule { rate: None, retries: None });
        let flags = flag(self.is_dark, DARK)
            | flag(self.is_degraded, DEGRADED)
            | flag(self.rule.is_some(), RULE)
            | flag(rule.rate.is_some(), RATE)
            | flag(rule.retries.is_some(), RETRIES)
            | self.erasures.encode() << ERASURE_AT;
        let numbers: [u64; NUMBERS] = [
            sequence,
            self.power_cycles,
            self.unsafe_shutdowns,
            self.powered_ms,
            self.reads,
            self.writes,
            self.read_bytes,
            self.write_bytes,
            self.busy_us,
            self.media_errors,
            self.page_reads,
            self.read_retries,
            self.error_entries,
            flags,
            rule.rate.unwrap_or(0.0).to_bits(),
            rule.retries.unwrap_or(0).into(),
        ];
        let mut bytes = [0; BYTES];
        bytes[..4].copy_from_slice(&VERSION.to_le_bytes());
        for (place, number) in bytes[4..BYTES - 4].chunks_exact_mut(8).zip(numbers) {
            place.copy_from_slice(&number.to_le_bytes());
        }
        let check = crc32c::crc32c(&bytes[..BYTES - 4]);
        bytes[BYTES - 4..].copy_from_slice(&check.to_le_bytes());
        bytes
    }

    /// The record in the first [`BYTES`] of `bytes`, with its number.
    pub(super) fn decode(bytes: &[u8]) -> Found {
        let Some(bytes) = bytes.first_chunk::<BYTES>() else { return Found::Torn };
        if bytes.iter().all(|&byte| byte == 0) {
            return Found::Nothing;
        }
        let check = crc32c::crc32c(&bytes[..BYTES - 4]).to_le_bytes();
        if bytes[..4] != VERSION.to_le_bytes() || bytes[BYTES - 4..] != check {
            return Found::Torn;
        }
        let mut numbers = [0; NUMBERS];
        for (number, place) in numbers.iter_mut().zip(bytes[4..BYTES - 4].chunks_exact(8)) {
            *number = place.iter().rev().fold(0, |number, &byte| number << 8 | u64::from(byte));
        }
        let [sequence, power_cycles, unsafe_shutdowns, powered_ms, reads, writes, read_bytes, write_bytes, ..] =
            numbers;
        let [.., busy_us, media_errors, page_reads, read_retries, error_entries, flags, rate, retries] = numbers;
        let is_set = |flag: u64| flags & flag != 0;
        let rule = Rule {
            rate: is_set(RATE).then_some(f64::from_bits(rate)),
            retries: is_set(RETRIES).then_some(u32::try_from(retries).unwrap_or(u32::MAX)),
        };
        let life = Self {
            power_cycles,
            unsafe_shutdowns,
            powered_ms,
            reads,
            writes,
            read_bytes,
            write_bytes,
            busy_us,
            media_errors,
            page_reads,
            read_retries,
            error_entries,
            is_dark: is_set(DARK),
            is_degraded: is_set(DEGRADED),
            rule: is_set(RULE).then_some(rule),
            erasures: Erasures::decode(flags >> ERASURE_AT),
        };
        Found::Whole(sequence, life)
    }
}

#[cfg(test)]
mod tests {
    use super::super::band::Band;
    use super::super::mapping::Mapping;
    use super::*;
    use flashyard_flash::{Geometry, Layout};
    use flashyard_units::SimSpan;
    use proptest::prelude::*;

    fn life(number: u64, rule: Option<Rule>) -> Life {
        Life {
            power_cycles: number,
            unsafe_shutdowns: number ^ 1,
            powered_ms: number ^ 2,
            reads: number ^ 3,
            writes: number ^ 4,
            read_bytes: number ^ 5,
            write_bytes: number ^ 6,
            busy_us: number ^ 7,
            media_errors: number ^ 8,
            page_reads: number ^ 9,
            read_retries: number ^ 10,
            error_entries: number ^ 11,
            is_dark: number & 1 != 0,
            is_degraded: number & 2 != 0,
            rule,
            erasures: Erasures::decode(Erasures::decode(number).encode()),
        }
    }

    fn band() -> Band {
        let geometry = Geometry {
            channels: 1,
            dies_per_channel: 1,
            planes_per_die: 1,
            blocks_per_plane: 4,
            pages_per_block: 8,
            page_bytes: 4096,
            pages_per_program: 1,
        };
        let layout = Layout::new(&geometry);
        Band::new(Mapping::memory(Band::bytes(&layout)).expect("there is memory"), layout)
    }

    proptest! {
        #[test]
        fn a_life_is_read_as_it_was_written(
            number: u64, sequence: u64, ruled: bool, rate in proptest::option::of(0.0..0.5_f64), retries: Option<u32>,
        ) {
            let life = life(number, ruled.then_some(Rule { rate, retries }));
            prop_assert_eq!(Life::decode(&life.encode(sequence)), Found::Whole(sequence, life));
        }

        #[test]
        fn bytes_that_are_no_record_are_not_believed(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            prop_assert!(matches!(Life::decode(&bytes), Found::Torn | Found::Nothing));
        }

        #[test]
        fn a_record_that_ends_anywhere_leaves_the_one_before(first: u64, second: u64, whole in 0..BYTES) {
            let (mut band, mut after) = (band(), band());
            band.set_life(&life(first, None));
            after.set_life(&life(first, None));
            after.set_life(&life(second, None));
            prop_assert_eq!(after.life(), (Some(life(second, None)), 0));
            // The process ends after that many bytes of the second record.
            let torn = after.mapping.bytes()[2048..2048 + whole].to_vec();
            band.mapping.bytes_mut()[2048..2048 + whole].copy_from_slice(&torn);
            // Bytes that were there already may end the record just as well: zeros, now and then.
            let is_whole = band.mapping.bytes()[2048..2048 + BYTES] == after.mapping.bytes()[2048..2048 + BYTES];
            prop_assert_eq!(band.life().0, Some(life(if is_whole { second } else { first }, None)));
            // The next one takes its place.
            band.set_life(&life(second, None));
            prop_assert_eq!(band.life(), (Some(life(second, None)), 0));
        }
    }

    #[test]
    fn counters_go_on_from_where_they_were_and_stop_at_the_end_of_numbers() {
        let before = Life { reads: 5, power_cycles: 2, write_bytes: u64::MAX - 1, ..Life::default() };
        let health = Health { reads: 3, write_bytes: 4096, breaks: 1, busy: SimSpan::from_us(7), ..Health::default() };
        let now = before.until(&health, Duration::from_secs(2), 9);
        assert_eq!((now.reads, now.write_bytes, now.error_entries), (8, u64::MAX, 9));
        assert_eq!((now.power_cycles, now.unsafe_shutdowns, now.powered_ms, now.busy_us), (3, 1, 2000, 7));
        assert_eq!((now.dark().power_cycles, now.dark().is_dark), (2, true));
    }
}
