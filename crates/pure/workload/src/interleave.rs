//! Several sources as one.

use crate::source::{RequestSource, SourceError};
use flashyard_blk::TraceRecord;

/// Takes a request from each of its sources in turn, until all have ended. Arrival times are those of the sources:
/// of use where they do not matter.
pub struct Interleaved {
    sources: Vec<Box<dyn RequestSource>>,
    next: usize,
    /// Sources that have ended.
    ended: usize,
}

impl Interleaved {
    /// The sources in the order of their turns.
    pub fn new(sources: Vec<Box<dyn RequestSource>>) -> Self {
        Self { sources, next: 0, ended: 0 }
    }
}

impl RequestSource for Interleaved {
    fn next_request(&mut self) -> Result<Option<TraceRecord>, SourceError> {
        while !self.sources.is_empty() {
            self.next %= self.sources.len();
            if let Some(record) = self.sources[self.next].next_request()? {
                self.next += 1;
                return Ok(Some(record));
            }
            self.sources.remove(self.next);
            self.ended += 1;
        }
        Ok(None)
    }

    fn progress(&self) -> Option<f64> {
        let going: Option<f64> = self.sources.iter().map(|source| source.progress()).sum();
        Some((self.ended as f64 + going?) / (self.ended + self.sources.len()).max(1) as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flashyard_blk::{BlockRequest, Operation};
    use flashyard_units::SimTime;

    struct Some3(u64);

    impl RequestSource for Some3 {
        fn next_request(&mut self) -> Result<Option<TraceRecord>, SourceError> {
            self.0 += 1;
            let request = BlockRequest { operation: Operation::Read, offset_bytes: self.0, len_bytes: 1 };
            let record = TraceRecord { arrival: SimTime::ZERO, volume: 0, request };
            Ok((self.0 % 10 < 4).then_some(record))
        }
    }

    #[test]
    fn sources_take_turns_and_the_longer_one_goes_on() {
        let mut both = Interleaved::new(vec![Box::new(Some3(0)), Box::new(Some3(11))]);
        let mut offsets = Vec::new();
        while let Some(record) = both.next_request().expect("nothing fails") {
            offsets.push(record.request.offset_bytes);
        }
        assert_eq!(offsets, [1, 12, 2, 13, 3]);
        assert_eq!(both.next_request(), Ok(None));
        assert_eq!(both.progress(), Some(1.0));
        assert_eq!(Interleaved::new(vec![Box::new(Some3(0))]).progress(), None);
    }
}
