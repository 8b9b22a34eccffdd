//! Automatic streams: each write goes to one of the drive's streams, by the frequency and recency of its chunk.
//!
//! By queues: a chunk moves up a queue with each doubling of its writes, and down one for each time to live without any.
//! By weight: a sequential continuation stays in its stream; otherwise the stream is the logarithm of the chunk's writes,
//! which lose half their weight with each decay.
//!
//! Source: [X] sheet cvss §5; times to live and decay are [A].

use flashyard_ftl::HOST_STREAMS_MAX;

/// How streams are chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamRule {
    /// By queues (MQ).
    Queues,
    /// By sequentiality, frequency and recency (SFR).
    Weight,
}

/// State of each chunk, which is a page of the model: 1 MiB.
pub(super) struct AutoStream {
    rule: StreamRule,
    counts: Vec<f32>,
    last: Vec<u64>,
    now: u64,
    /// Pages written after which a chunk is forgotten by half.
    decay: u64,
    continued: (u32, u32),
}

impl AutoStream {
    pub(super) fn new(rule: StreamRule, pages: u32) -> Self {
        let chunks = pages as usize;
        let decay = u64::from(pages);
        Self { rule, counts: vec![0.0; chunks], last: vec![0; chunks], now: 0, decay, continued: (u32::MAX, 0) }
    }

    /// The stream of a write of `page`.
    pub(super) fn stream(&mut self, page: u32) -> u32 {
        self.now += 1;
        let place = page as usize;
        let idle = self.now - self.last[place];
        self.last[place] = self.now;
        let halvings = match self.rule {
            StreamRule::Queues => (idle / self.decay) as f64,
            StreamRule::Weight => idle as f64 / self.decay as f64,
        };
        self.counts[place] = (f64::from(self.counts[place]) * libm::exp2(-halvings)) as f32 + 1.0;
        let (next, stream) = self.continued;
        let stream = if self.rule == StreamRule::Weight && next == page {
            stream
        } else {
            (libm::log2(f64::from(self.counts[place])) as u32).min(HOST_STREAMS_MAX - 1)
        };
        self.continued = (page + 1, stream);
        stream
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_often_climbs_and_what_rests_falls() {
        let mut streams = AutoStream::new(StreamRule::Queues, 64);
        let climbed: Vec<u32> = (0..8).map(|_| streams.stream(5)).collect();
        assert_eq!(climbed, [0, 1, 1, 2, 2, 2, 2, 3]);
        for write in 0..256 {
            streams.stream(8 + write % 32);
        }
        assert!(streams.stream(5) < 3);
        assert!((0..100_000).all(|_| streams.stream(9) < HOST_STREAMS_MAX));
    }

    #[test]
    fn a_sequential_write_stays_in_its_stream() {
        let mut streams = AutoStream::new(StreamRule::Weight, 64);
        let hot = (0..9).map(|_| streams.stream(5)).last();
        assert_eq!(hot, Some(streams.stream(6)));
        assert_eq!(streams.stream(20), 0);
    }
}
