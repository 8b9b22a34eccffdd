//! Coherent Device Attribute Table: what a device says of its memory and of its latency.
//!
//! Source: [X] CDAT 1.03, with the structures that enumeration needs; [P] sheet micro-expand §3.7 (latency by DSLBIS).

use flashyard_units::{Bytes, SimSpan};

/// Bytes of a structure for latency or for a range of memory. [X] CDAT
pub const DSLBIS_BYTES: usize = 24;

/// Type of a structure that describes a range of memory. [X] CDAT
const DSMAS: u8 = 0;
/// Type of one that tells latency or bandwidth. [X] CDAT
const DSLBIS: u8 = 1;
/// The data type of read latency. [X] CDAT
const READ_LATENCY: u8 = 1;

/// The latency that a device reports of itself: one entry of the Device Scoped Latency and Bandwidth Information Structure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dslbis {
    /// Range of addresses that it is about.
    pub handle: u8,
    /// Kind of datum: 1 for the latency of reads.
    pub data_type: u8,
    /// Picoseconds of a unit.
    pub unit_ps: u64,
    /// Units.
    pub entry: u16,
}

/// A range of a device's memory: the Device Scoped Memory Affinity Structure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dsmas {
    /// Its number.
    pub handle: u8,
    /// First address, as the device counts.
    pub base: u64,
    /// Its size.
    pub size: Bytes,
}

fn u16_at(bytes: &[u8; DSLBIS_BYTES], at: usize) -> u16 {
    u16::from_le_bytes([bytes[at], bytes[at + 1]])
}

fn u64_at(bytes: &[u8; DSLBIS_BYTES], at: usize) -> u64 {
    let mut number = [0; 8];
    number.copy_from_slice(&bytes[at..at + 8]);
    u64::from_le_bytes(number)
}

/// A structure of this type and of the length that both have.
fn structure(of: u8) -> [u8; DSLBIS_BYTES] {
    let mut bytes = [0; DSLBIS_BYTES];
    bytes[0] = of;
    bytes[2..4].copy_from_slice(&(DSLBIS_BYTES as u16).to_le_bytes());
    bytes
}

fn is_of(bytes: &[u8; DSLBIS_BYTES], of: u8) -> bool {
    bytes[0] == of && usize::from(u16_at(bytes, 2)) == DSLBIS_BYTES
}

impl Dslbis {
    /// A read latency in nanoseconds, at most 65,535.
    pub fn read_latency(span: SimSpan) -> Self {
        let entry = u16::try_from(span.as_ns()).unwrap_or(u16::MAX);
        Self { handle: 0, data_type: READ_LATENCY, unit_ps: 1000, entry }
    }

    /// The latency.
    pub fn span(&self) -> SimSpan {
        SimSpan::from_ps(self.unit_ps.saturating_mul(self.entry.into()))
    }

    /// The structure as the mailbox hands it out.
    pub fn encode(&self) -> [u8; DSLBIS_BYTES] {
        let mut bytes = structure(DSLBIS);
        bytes[4] = self.handle;
        bytes[6] = self.data_type;
        bytes[8..16].copy_from_slice(&self.unit_ps.to_le_bytes());
        bytes[16..18].copy_from_slice(&self.entry.to_le_bytes());
        bytes
    }

    /// Reads a structure; `None` for another type or length.
    pub fn decode(bytes: &[u8; DSLBIS_BYTES]) -> Option<Self> {
        is_of(bytes, DSLBIS).then(|| Self {
            handle: bytes[4],
            data_type: bytes[6],
            unit_ps: u64_at(bytes, 8),
            entry: u16_at(bytes, 16),
        })
    }
}

impl Dsmas {
    /// The structure as the mailbox hands it out.
    pub fn encode(&self) -> [u8; DSLBIS_BYTES] {
        let mut bytes = structure(DSMAS);
        bytes[4] = self.handle;
        bytes[8..16].copy_from_slice(&self.base.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.size.get().to_le_bytes());
        bytes
    }

    /// Reads a structure; `None` for another type or length.
    pub fn decode(bytes: &[u8; DSLBIS_BYTES]) -> Option<Self> {
        is_of(bytes, DSMAS).then(|| Self {
            handle: bytes[4],
            base: u64_at(bytes, 8),
            size: Bytes::new(u64_at(bytes, 16)),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn structures_are_read_back_and_not_taken_for_each_other(
            handle: u8, unit_ps: u64, entry: u16, base: u64, size: u64, any in prop::array::uniform24(any::<u8>()),
        ) {
            let table = Dslbis { handle, data_type: 1, unit_ps, entry };
            let range = Dsmas { handle, base, size: Bytes::new(size) };
            prop_assert_eq!(Dslbis::decode(&table.encode()), Some(table));
            prop_assert_eq!(Dsmas::decode(&range.encode()), Some(range));
            prop_assert_eq!((Dslbis::decode(&range.encode()), Dsmas::decode(&table.encode())), (None, None));
            prop_assert!(Dslbis::decode(&any).is_none() || Dsmas::decode(&any).is_none());
        }
    }

    #[test]
    fn a_latency_is_told_in_units() {
        let table = Dslbis { handle: 3, data_type: 1, unit_ps: 100, entry: 1234 };
        assert_eq!(table.span(), SimSpan::from_ps(123_400));
        assert_eq!(Dslbis::read_latency(SimSpan::from_ns(120)).span(), SimSpan::from_ns(120));
        assert_eq!(Dslbis::read_latency(SimSpan::from_ms(1)).entry, u16::MAX);
        assert_eq!(Dslbis::decode(&[0; DSLBIS_BYTES]), None);
    }
}
