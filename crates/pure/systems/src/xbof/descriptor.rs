//! The idle resource descriptor: one 128-bit word in the lender's exposed memory.
//!
//! From bit 0: valid 1, type 1, borrower 8, amount 32, info 64, version 22. Sum 128.
//! Source: [P] sheet xbof §3.2; the packing order and the version counter are [A].

/// The borrower id that means "nobody".
pub const NOBODY: u8 = 0xFF;

/// What is lent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DescriptorKind {
    /// Processor time; amount is the utilization of borrower (upper half) and lender, 65535 for 100 %.
    Processor,
    /// Mapping memory; amount is segments of 2 MiB.
    Memory,
}

/// A packed descriptor. Every change goes through the packed word, so what peers read is what acts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Descriptor(u128);

const VALID: u32 = 0;
const KIND: u32 = 1;
const BORROWER: u32 = 2;
const AMOUNT: u32 = 10;
const INFO: u32 = 42;
const VERSION: u32 = 106;

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

    /// The next version of this word; wraps after 2^22 changes.
    fn changed(self) -> Self {
        self.with(VERSION, 22, self.field(VERSION, 22) + 1)
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

    /// What is lent.
    pub fn kind(self) -> DescriptorKind {
        if self.field(KIND, 1) == 0 { DescriptorKind::Processor } else { DescriptorKind::Memory }
    }

    /// Who has taken it; [`NOBODY`] when it is free.
    pub fn borrower(self) -> u8 {
        self.field(BORROWER, 8) as u8
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
            .with(VALID, 1, 1)
            .changed()
    }

    /// A borrower's compare-and-swap from nobody to itself; `None` when the offer is gone or taken.
    #[must_use]
    pub fn taken(self, borrower: u8, info: u64) -> Option<Self> {
        (self.is_valid() && self.borrower() == NOBODY && borrower != NOBODY)
            .then(|| self.with(BORROWER, 8, u128::from(borrower)).with(INFO, 64, u128::from(info)).changed())
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

    /// Either side writes its utilization, 0 to 1, into the amount of a processor descriptor.
    #[must_use]
    pub fn with_utilizations(self, borrower: f64, lender: f64) -> Self {
        let encode = |share: f64| (share.clamp(0.0, 1.0) * 65_535.0 + 0.5) as u128;
        self.with(AMOUNT, 32, encode(borrower) << 16 | encode(lender)).changed()
    }

    /// Utilizations of borrower and lender, 0 to 1.
    pub fn utilizations(self) -> (f64, f64) {
        let amount = self.amount();
        (f64::from(amount >> 16) / 65_535.0, f64::from(amount & 0xFFFF) / 65_535.0)
    }
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
            let taken = Descriptor::from_word(offer.word()).taken(taker, !info).expect("the offer is free");
            prop_assert_eq!((taken.borrower(), taken.amount(), taken.info()), (taker, amount, !info));
            prop_assert_eq!(taken.taken(taker, 0), None);
            prop_assert_eq!(taken.released().borrower(), NOBODY);
            prop_assert!(!taken.withdrawn().is_valid());
        }
    }

    #[test]
    fn a_word_changes_its_version_with_every_step() {
        let offer = Descriptor::INVALID.offered(DescriptorKind::Processor, 0, 7);
        let again = offer.taken(3, 7).expect("free").released();
        assert_ne!(offer.word(), again.word(), "a stale compare-and-swap must fail");
    }
}
