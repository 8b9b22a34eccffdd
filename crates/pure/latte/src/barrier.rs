//! Flushes of clients: they end when the back end has all that was acknowledged before them. The location map lies in memory, so
//! what the front end alone has would not be found after a loss of power.

/// A client's flush that waits for the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Barrier {
    pub(crate) request: u32,
    /// Positions of the log below this are to be at the back end.
    pub(crate) until: u64,
    /// Positions below this are.
    pub(crate) settled: u64,
}

/// Flushes that wait, in the order of arrival.
#[derive(Clone, Debug, Default)]
pub(crate) struct Barriers(Vec<Barrier>);

impl Barriers {
    pub(crate) fn push(&mut self, barrier: Barrier) {
        self.0.push(barrier);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Takes one out whose part of the log is settled; `settle` says up to where it is from a position on.
    pub(crate) fn take_settled(&mut self, mut settle: impl FnMut(&Barrier) -> u64) -> Option<Barrier> {
        for barrier in &mut self.0 {
            barrier.settled = settle(barrier);
        }
        let place = self.0.iter().position(|barrier| barrier.settled >= barrier.until)?;
        Some(self.0.remove(place))
    }

    /// All of them: an end is lost.
    pub(crate) fn take_all(&mut self) -> Vec<Barrier> {
        std::mem::take(&mut self.0)
    }
}
