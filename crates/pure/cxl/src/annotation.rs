//! Annotations of memory requests: what the program needs of the memory beside the data.
//!
//! Source: [P] sheet micro-cxl-ssd §3.4: reserved bits of M2S Req and S2M NDR, ten of them, so that no message grows.

/// Whether data may stay in a buffer that loses it without power.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Buffering {
    /// Not said: the memory does as it does by default.
    #[default]
    Unsaid,
    /// It may, and is worth keeping there (BF).
    Bufferable,
    /// It may not: a store is complete when its data outlives a loss of power (NB).
    NotBufferable,
}

/// Knowledge of the program about a request, which travels in reserved bits of its header. A memory may ignore it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Annotation {
    /// Whether internal tasks of the memory must not delay the request (DT and not ND).
    pub deterministic: bool,
    /// Where the data may lie.
    pub buffering: Buffering,
}

/// Reserved bits that annotations may use. [P] sheet micro-cxl-ssd §4
pub const ANNOTATION_BITS: u32 = 10;

/// Bit of a deterministic request. [A] the source assigns no bits: sheet §3.4
const DETERMINISTIC: u16 = 1;
/// Bit of a bufferable request. [A] as above
const BUFFERABLE: u16 = 1 << 1;
/// Bit of a request that says whether it is bufferable. [A] as above
const SAID: u16 = 1 << 2;

impl Annotation {
    /// The reserved bits of the request.
    pub const fn bits(self) -> u16 {
        let buffering = match self.buffering {
            Buffering::Unsaid => 0,
            Buffering::Bufferable => SAID | BUFFERABLE,
            Buffering::NotBufferable => SAID,
        };
        buffering | if self.deterministic { DETERMINISTIC } else { 0 }
    }

    /// The annotation in reserved bits; `None` for bits that no annotation has.
    pub const fn of_bits(bits: u16) -> Option<Self> {
        let buffering = match bits & !DETERMINISTIC {
            0 => Buffering::Unsaid,
            SAID => Buffering::NotBufferable,
            rest if rest == SAID | BUFFERABLE => Buffering::Bufferable,
            _ => return None,
        };
        Some(Self { deterministic: bits & DETERMINISTIC != 0, buffering })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_are_read_back_and_others_are_refused() {
        let read: Vec<Annotation> = (0..=u16::MAX).filter_map(Annotation::of_bits).collect();
        assert_eq!(read.len(), 6);
        for annotation in read {
            assert_eq!(Annotation::of_bits(annotation.bits()), Some(annotation));
            assert!(annotation.bits() < 1 << ANNOTATION_BITS);
        }
        assert_eq!(Annotation::default().bits(), 0);
    }
}
