//! Slack space: segments with blocks that may be written between valid ones.
//!
//! Source: \[X\] F2FS, which gives a log the segment of its own kind that has the fewest valid blocks.

use crate::log::{LOGS, Log};
use std::collections::BTreeSet;

/// Segments that have slack, by the log that wrote them and by how much they have.
#[derive(Clone, Debug)]
pub(crate) struct Slack {
    by_log: [BTreeSet<(u32, u32)>; LOGS],
    /// Log and blocks of each segment.
    of: Box<[(Log, u32)]>,
    blocks: u64,
}

impl Slack {
    /// No slack in any of these segments.
    pub(crate) fn new(segments: u32) -> Self {
        Self { by_log: Default::default(), of: vec![(Log::DataCold, 0); segments as usize].into(), blocks: 0 }
    }

    /// A segment of this log has so many blocks of slack; none takes it out.
    pub(crate) fn set(&mut self, segment: u32, log: Log, blocks: u32) {
        let before = std::mem::replace(&mut self.of[segment as usize], (log, blocks));
        if before == (log, blocks) {
            return;
        }
        if before.1 > 0 {
            self.by_log[before.0 as usize].remove(&(before.1, segment));
            self.blocks -= u64::from(before.1);
        }
        if blocks > 0 {
            self.by_log[log as usize].insert((blocks, segment));
            self.blocks += u64::from(blocks);
        }
    }

    /// Takes the segment of a log that has most slack out; of equals the next one after `taken`, around the end.
    pub(crate) fn take(&mut self, log: Log, taken: u32) -> Option<u32> {
        let segments = &self.by_log[log as usize];
        let &(most, first) = segments.range((segments.last()?.0, 0)..).next()?;
        let segment = segments.range((most, taken.saturating_add(1))..).next().map_or(first, |&(_, segment)| segment);
        self.set(segment, log, 0);
        Some(segment)
    }

    /// Blocks of one segment.
    pub(crate) fn of(&self, segment: u32) -> u32 {
        self.of[segment as usize].1
    }

    /// Blocks in all.
    pub(crate) fn blocks(&self) -> u64 {
        self.blocks
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_segment_with_most_slack_is_taken_and_equals_in_turn() {
        let mut slack = Slack::new(9);
        [(1, 3), (4, 5), (6, 5), (7, 5)].iter().for_each(|&(segment, blocks)| slack.set(segment, Log::NodeHot, blocks));
        assert_eq!((slack.blocks(), slack.take(Log::DataHot, 0)), (18, None));
        let taken = [5, 6, 7, 0].map(|taken| slack.take(Log::NodeHot, taken));
        assert_eq!(taken, [Some(6), Some(7), Some(4), Some(1)]);
        assert_eq!((slack.blocks(), slack.take(Log::NodeHot, 0)), (0, None));
    }

    proptest! {
        #[test]
        fn slack_is_what_was_set_last(sets in prop::collection::vec((0_u32..20, 0_usize..LOGS, 0_u32..4), 0..100)) {
            let mut slack = Slack::new(20);
            let mut model = [(Log::DataCold, 0); 20];
            for (segment, log, blocks) in sets {
                slack.set(segment, Log::ALL[log], blocks);
                model[segment as usize] = (Log::ALL[log], blocks);
                prop_assert_eq!(slack.blocks(), model.iter().map(|&(_, blocks)| u64::from(blocks)).sum::<u64>());
            }
            for log in Log::ALL {
                let most = model.iter().filter(|&&(of, _)| of == log).map(|&(_, blocks)| blocks).max().unwrap_or(0);
                let taken = slack.take(log, 9);
                prop_assert_eq!(taken.map_or(0, |segment| model[segment as usize].1), most);
            }
        }
    }
}
