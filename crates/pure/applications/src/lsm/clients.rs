//! Requests of clients: YCSB's core workloads, and mixes of key-value traces.

use super::bloom::scramble;
use flashyard_kernel::Rng;
use flashyard_workload::Zipf;

/// A request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Request {
    /// Reads a record.
    Get(u64),
    /// Writes a record.
    Put(u64),
    /// Reads a record, and then writes it.
    Change(u64),
}

/// Shares of requests, and how keys are drawn.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Mix {
    /// Keys.
    pub keys: u64,
    /// Share of reads, 0 to 1.
    pub gets: f64,
    /// Share of reads that write what they have read, 0 to 1 with that of reads.
    pub changes: f64,
    /// Exponent of Zipf's law over the keys; zero for uniform keys.
    pub skew: f64,
}

impl Mix {
    /// YCSB's workload A over `keys` keys: half reads, half updates. Source: [X] YCSB, with its Zipf constant of 0.99
    pub const fn ycsb_a(keys: u64) -> Self {
        Self { keys, gets: 0.5, changes: 0.0, skew: 0.99 }
    }

    /// YCSB's workload F: half reads, half reads with an update. Source: [X] YCSB
    pub const fn ycsb_f(keys: u64) -> Self {
        Self { keys, gets: 0.5, changes: 0.5, skew: 0.99 }
    }
}

/// Clients at work.
#[derive(Clone, Debug)]
pub struct Clients {
    mix: Mix,
    zipf: Option<Zipf>,
    rng: Rng,
}

impl Clients {
    /// Clients of a mix of at least one key.
    pub fn new(mix: Mix, seed: u64) -> Self {
        let zipf = (mix.skew > 0.0).then(|| Zipf::new(mix.keys, mix.skew));
        Self { mix, zipf, rng: Rng::named(seed, "applications.clients") }
    }

    /// The key with this number, of as many as the mix has: neighbours in popularity are none in the order of keys.
    pub fn key(&self, number: u64) -> u64 {
        scramble(number)
    }

    /// The next request.
    pub fn next_request(&mut self) -> Request {
        let rank = match &self.zipf {
            Some(zipf) => zipf.draw(&mut self.rng),
            None => self.rng.below(self.mix.keys),
        };
        let key = self.key(rank);
        let kind = self.rng.unit();
        if kind < self.mix.gets {
            Request::Get(key)
        } else if kind < self.mix.gets + self.mix.changes {
            Request::Change(key)
        } else {
            Request::Put(key)
        }
    }
}
