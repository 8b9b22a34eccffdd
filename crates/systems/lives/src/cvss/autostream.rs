//! Automatic streams: each write goes to one of the drive's streams, by the frequency and recency of its chunk.
//!
//! A chunk moves up a queue with each doubling of its writes, and down one for each time to live without any, by parts of one.
//!
//! Source: [X] sheet cvss §5; times to live and decay are [A].

use flashyard_ftl::HOST_STREAMS_MAX;

/// State of each chunk, which is a page of the model: 1 MiB.
pub(super) struct AutoStream {
    counts: Vec<f32>,
    last: Vec<u64>,
    now: u64,
    /// Pages written after which a chunk is forgotten by half.
    decay: u64,
}

impl AutoStream {
    pub(super) fn new(pages: u32) -> Self {
        let chunks = pages as usize;
        Self { counts: vec![0.0; chunks], last: vec![0; chunks], now: 0, decay: u64::from(pages) }
    }

    /// The stream of a write of `page`.
    pub(super) fn stream(&mut self, page: u32) -> u32 {
        self.now += 1;
        let place = page as usize;
        let halvings = (self.now - self.last[place]) as f64 / self.decay as f64;
        self.last[place] = self.now;
        self.counts[place] = (f64::from(self.counts[place]) * libm::exp2(-halvings)) as f32 + 1.0;
        (libm::log2(f64::from(self.counts[place])) as u32).min(HOST_STREAMS_MAX - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_often_climbs_and_what_rests_falls() {
        let mut streams = AutoStream::new(64);
        let climbed: Vec<u32> = (0..8).map(|_| streams.stream(5)).collect();
        // A little below 2, 4 and 8 writes when these have come.
        assert_eq!(climbed, [0, 0, 1, 1, 2, 2, 2, 2]);
        for write in 0..256 {
            streams.stream(8 + write % 32);
        }
        assert!(streams.stream(5) < 3);
        assert!((0..100_000).all(|_| streams.stream(9) < HOST_STREAMS_MAX));
    }

    #[test]
    fn a_chunk_that_is_written_now_and_then_stays_where_its_rate_puts_it() {
        let mut streams = AutoStream::new(122_070);
        let (mut streams_of, mut counts) = (Vec::new(), Vec::new());
        for _ in 0..50 {
            streams.now += 99_999;
            streams_of.push(streams.stream(7));
            counts.push(streams.counts[7]);
        }
        // 1 / (1 - 2^(-100,000 / 122,070)).
        assert!(counts.iter().all(|&count| count < 2.31) && counts[49] > 2.30, "{counts:?}");
        assert_eq!(streams_of[49], 1);
    }
}
