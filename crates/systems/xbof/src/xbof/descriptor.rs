//! The idle resource descriptor: one 128-bit word in the lender's exposed memory.
//!
//! From bit 0: valid 1, type 1, borrower 8, amount 32, info 64, limit 8, version 14. Sum 128.
//! Source: [P] sheet xbof §3.2; the packing order and the version counter are [A], the limit is ours.

use flashyard_units::DriveId;

/// The borrower field of a free descriptor.
const NOBODY: u8 = 0xFF;

/// Drives that the borrower field names, and a message its lender: the published layouts have 8 bits for them, and one
/// value is that of no drive.
pub const DRIVES_MAX: u32 = NOBODY as u32;

/// Kind of the resource lent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DescriptorKind {
    /// Processor time; amount is the load of borrower (upper half) and lender: 65535 is 100 % of utilization, or the
    /// full scale of another indicator ([`super::Indicator`]).
    Processor,
    /// Mapping memory; amount is segments of 2 MiB.
    Memory,
}

/// The info field of a processor descriptor, from bit 0: directory address 32, borrower queue 16, shadow queue 16.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProcessorInfo {
    /// Where the borrower's mapping directory is, in its exposed memory ([`super::window`]).
    pub directory: u32,
    /// Completion queue id of the borrower's queue pair whose commands may be redirected.
    pub borrower_queue: u16,
    /// Completion queue id of the lender's shadow queue pair.
    pub shadow_queue: u16,
}

impl ProcessorInfo {
    /// The packed field.
    pub const fn pack(self) -> u64 {
        self.directory as u64 | (self.borrower_queue as u64) << 32 | (self.shadow_queue as u64) << 48
    }

    /// The fields of a packed word.
    pub const fn unpack(info: u64) -> Self {
        Self { directory: info as u32, borrower_queue: (info >> 32) as u16, shadow_queue: (info >> 48) as u16 }
    }
}

/// The info field of a memory descriptor, from bit 0: segment list address 32, log page address 32.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryInfo {
    /// Where the list of lent segments begins, in the lender's exposed memory.
    pub segment_list: u32,
    /// Where the log pages for these segments begin, in the borrower's exposed memory.
    pub log_pages: u32,
}

impl MemoryInfo {
    /// The packed field.
    pub const fn pack(self) -> u64 {
        self.segment_list as u64 | (self.log_pages as u64) << 32
    }

    /// The fields of a packed word.
    pub const fn unpack(info: u64) -> Self {
        Self { segment_list: info as u32, log_pages: (info >> 32) as u32 }
    }
}

/// A packed descriptor. Every change goes through the packed word, so what peers read is what acts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Descriptor(u128);

const VALID: u32 = 0;
const KIND: u32 = 1;
const BORROWER: u32 = 2;
const AMOUNT: u32 = 10;
const INFO: u32 = 42;
const LIMIT: u32 = 106;
const VERSION: u32 = 114;

/// The limit field that sets none.
const UNLIMITED: u8 = 0xFF;

impl Descriptor {
    /// A descriptor that offers nothing.
    pub const INVALID: Self = Self((NOBODY as u128) << BORROWER);

    fn field(self, at: u32, bits: u32) -> u128 {
        self.0 >> at & ((1 << bits) - 1)
    }

    fn with(self, at: u32, bits: u32, value: u128) -> Self {
        let mask = ((1_u128 << bits) - 1) << at;
        Self(self.0 & !mask | (value << at & mask))
    }

    /// The next version of this word; wraps after 2^14 changes: minutes, while a swap is under way for a microsecond.
    fn changed(self) -> Self {
        self.with(VERSION, 14, self.field(VERSION, 14) + 1)
    }

    /// The word as it lies in memory.
    pub const fn word(self) -> u128 {
        self.0
    }

    /// A descriptor read from memory.
    pub const fn from_word(word: u128) -> Self {
        Self(word)
    }

    /// Whether the offer stands.
    pub fn is_valid(self) -> bool {
        self.field(VALID, 1) == 1
    }

    /// Kind of the resource lent.
    pub fn kind(self) -> DescriptorKind {
        if self.field(KIND, 1) == 0 { DescriptorKind::Processor } else { DescriptorKind::Memory }
    }

    /// The borrower; `None` when it is free.
    #[inline]
    pub fn borrower(self) -> Option<DriveId> {
        let field = self.field(BORROWER, 8) as u8;
        (field != NOBODY).then_some(DriveId::new(field as u16))
    }

    /// The amount field, by kind.
    pub fn amount(self) -> u32 {
        self.field(AMOUNT, 32) as u32
    }

    /// The info field, by kind.
    pub fn info(self) -> u64 {
        self.field(INFO, 64) as u64
    }

    /// The lender offers: all fields at once, then valid.
    #[must_use]
    pub fn offered(self, kind: DescriptorKind, amount: u32, info: u64) -> Self {
        let kind_bit = u128::from(kind == DescriptorKind::Memory);
        self.with(KIND, 1, kind_bit)
            .with(BORROWER, 8, u128::from(NOBODY))
            .with(AMOUNT, 32, u128::from(amount))
            .with(INFO, 64, u128::from(info))
            .with(LIMIT, 8, u128::from(UNLIMITED))
            .with(VALID, 1, 1)
            .changed()
    }

    /// A borrower's compare-and-swap from nobody to itself; `None` when the offer is gone or taken, and for a drive that
    /// the field cannot name ([`DRIVES_MAX`]).
    #[must_use]
    pub fn taken(self, borrower: DriveId, info: u64) -> Option<Self> {
        (self.is_valid() && self.borrower().is_none() && u32::from(borrower.get()) < DRIVES_MAX)
            .then(|| self.with(BORROWER, 8, u128::from(borrower.get())).with(INFO, 64, u128::from(info)).changed())
    }

    /// The borrower gives it back.
    #[must_use]
    pub fn released(self) -> Self {
        self.with(BORROWER, 8, u128::from(NOBODY)).changed()
    }

    /// The lender withdraws the offer.
    #[must_use]
    pub fn withdrawn(self) -> Self {
        self.with(VALID, 1, 0).changed()
    }

    /// The borrower writes its own utilization, 0 to 1, beside the lender's.
    #[must_use]
    pub fn with_borrower_utilization(self, borrower: f64) -> Self {
        self.with(AMOUNT + 16, 16, encode(borrower)).changed()
    }

    /// The lender writes its own utilization, 0 to 1, beside the borrower's.
    #[must_use]
    pub fn with_lender_utilization(self, lender: f64) -> Self {
        self.with(AMOUNT, 16, encode(lender)).changed()
    }

    /// The lender writes how much of its cores' time it lends at most, 0 to 1, in steps of 1/254; infinity is no limit.
    #[must_use]
    pub fn with_limit(self, limit: f64) -> Self {
        let field = if limit.is_finite() { (limit.clamp(0.0, 1.0) * 254.0) as u128 } else { u128::from(UNLIMITED) };
        self.with(LIMIT, 8, field).changed()
    }

    /// How much of its cores' time the lender lends at most; infinity is no limit.
    pub fn limit(self) -> f64 {
        let field = self.field(LIMIT, 8) as u8;
        if field == UNLIMITED { f64::INFINITY } else { f64::from(field) / 254.0 }
    }

    /// Utilizations of borrower and lender, 0 to 1.
    pub fn utilizations(self) -> (f64, f64) {
        let amount = self.amount();
        (f64::from(amount >> 16) / 65_535.0, f64::from(amount & 0xFFFF) / 65_535.0)
    }
}

/// A utilization, 0 to 1, as 16 bits: 65535 for 100 %. [A] sheet xbof §3.2
fn encode(share: f64) -> u128 {
    (share.clamp(0.0, 1.0) * 65_535.0 + 0.5) as u128
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn every_field_survives_the_packed_word(amount: u32, info: u64, taker in 0_u8..255, memory: bool) {
            let kind = if memory { DescriptorKind::Memory } else { DescriptorKind::Processor };
            let offer = Descriptor::INVALID.offered(kind, amount, info);
            prop_assert_eq!((offer.kind(), offer.amount(), offer.info()), (kind, amount, info));
            let taken = Descriptor::from_word(offer.word()).taken(DriveId::new(taker.into()), !info).expect("the offer is free");
            prop_assert_eq!((taken.borrower(), taken.amount(), taken.info()), (Some(DriveId::new(taker.into())), amount, !info));
            prop_assert_eq!(taken.taken(DriveId::new(taker.into()), 0), None);
            prop_assert_eq!(taken.released().borrower(), None);
            prop_assert!(!taken.withdrawn().is_valid());
        }
    }

    proptest! {
        #[test]
        fn both_kinds_of_info_fill_their_64_bits(word: u64) {
            prop_assert_eq!(ProcessorInfo::unpack(word).pack(), word);
            prop_assert_eq!(MemoryInfo::unpack(word).pack(), word);
        }

        #[test]
        fn the_sides_write_their_own_half_of_the_amount(borrower in 0.0..1.0_f64, lender in 0.0..1.0_f64) {
            let offer = Descriptor::INVALID.offered(DescriptorKind::Processor, 0, 7);
            let (b, l) = offer.with_borrower_utilization(borrower).with_lender_utilization(lender).utilizations();
            prop_assert!((b - borrower).abs() < 1e-4 && (l - lender).abs() < 1e-4);
            let limited = offer.with_limit(lender).limit();
            prop_assert!(offer.limit() == f64::INFINITY && (0.0..0.004).contains(&(lender - limited)));
        }
    }

    #[test]
    fn a_word_changes_its_version_with_every_step() {
        let offer = Descriptor::INVALID.offered(DescriptorKind::Processor, 0, 7);
        let again = offer.taken(DriveId::new(3), 7).expect("free").released();
        assert_ne!(offer.word(), again.word(), "a stale compare-and-swap must fail");
    }
}
