//! The link to the host in one direction: transfers one after the other.

use flashyard_flash::SLOT_BYTES;
use flashyard_units::{ByteRate, SimSpan, SimTime};

/// DMA in one direction.
pub(crate) struct Dma {
    rate: ByteRate,
    /// When the last transfer reserved so far ends.
    free: SimTime,
}

impl Dma {
    pub(crate) fn new(rate: ByteRate) -> Self {
        Self { rate, free: SimTime::ZERO }
    }

    /// Time of a transfer by itself.
    #[inline]
    pub(crate) fn span_of(&self, slots: u32) -> SimSpan {
        self.rate.span_of(u64::from(slots) * u64::from(SLOT_BYTES))
    }

    /// Reserves a transfer of `slots`; returns when it ends.
    #[inline]
    pub(crate) fn reserve(&mut self, now: SimTime, slots: u32) -> SimTime {
        self.free = now.max(self.free) + self.span_of(slots);
        self.free
    }

    /// All transfers end at once.
    pub(crate) fn reset(&mut self, now: SimTime) {
        self.free = now;
    }
}

/// A link to the host that reads and writes share, beside the rates of their DMA engines; without one these alone pace transfers.
#[derive(Default)]
pub struct SharedLink(Option<Dma>);

impl SharedLink {
    /// Lets reads and writes share a link of this rate.
    pub fn share(&mut self, rate: ByteRate) {
        self.0 = Some(Dma::new(rate));
    }

    /// When `slots` that set out now will have passed; at once where nothing is shared.
    #[inline]
    pub(crate) fn pass(&mut self, now: SimTime, slots: u32) -> SimTime {
        self.0.as_mut().map_or(now, |link| link.reserve(now, slots))
    }

    /// All transfers end at once.
    pub(crate) fn reset(&mut self, now: SimTime) {
        if let Some(link) = &mut self.0 {
            link.reset(now);
        }
    }
}
