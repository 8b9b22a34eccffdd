//! Cores as servers with one queue, by reservation: the completion time is known when work is given.

use flashyard_units::{Hertz, SimSpan, SimTime};

/// Interchangeable cores that serve in order of arrival.
#[derive(Clone, Debug)]
pub struct ProcessorPool {
    free_at: Vec<SimTime>,
    clock: Hertz,
    busy: SimSpan,
}

impl ProcessorPool {
    /// `cores` idle cores of one clock. Panics without a core.
    pub fn new(cores: u32, clock: Hertz) -> Self {
        assert!(cores > 0, "a pool needs a core");
        Self { free_at: vec![SimTime::ZERO; cores as usize], clock, busy: SimSpan::ZERO }
    }

    /// The number of cores.
    pub fn cores(&self) -> u32 {
        u32::try_from(self.free_at.len()).expect("built from a u32")
    }

    /// The clock of the cores.
    pub fn clock(&self) -> Hertz {
        self.clock
    }

    /// Runs work of length `span` on the core that is free first (the lowest numbered of several), and
    /// returns when it ends. Times of calls must not go backwards.
    #[inline]
    pub fn run(&mut self, now: SimTime, span: SimSpan) -> SimTime {
        let mut best = 0;
        for (core, &free) in self.free_at.iter().enumerate() {
            if free <= now {
                best = core;
                break;
            }
            if free < self.free_at[best] {
                best = core;
            }
        }
        let ends = self.free_at[best].max(now) + span;
        self.free_at[best] = ends;
        self.busy += span;
        ends
    }

    /// Work given so far, done or not.
    pub fn busy(&self) -> SimSpan {
        self.busy
    }

    /// Work done up to `now`, exact to the picosecond; work reserved beyond `now` is left out.
    ///
    /// `now` must not be before the last call of [`run`](Self::run): from there on the work of a core has no gap.
    pub fn busy_until(&self, now: SimTime) -> SimSpan {
        self.busy - self.free_at.iter().map(|free| free.saturating_since(now)).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flashyard_kernel::Rng;

    /// Mean wait of Poisson arrivals at load `rho` with a fixed service of 1 us on one core.
    fn mean_wait_us(rho: f64, seed: u64) -> f64 {
        let mut rng = Rng::named(seed, "arrivals");
        let mut pool = ProcessorPool::new(1, Hertz::new(1_000_000_000));
        let service = SimSpan::from_us(1);
        let (mut now, mut waited, count) = (SimTime::ZERO, 0.0, 2_000_000);
        for _ in 0..count {
            let gap_us = -libm::log(1.0 - rng.unit()) / rho;
            now += SimSpan::from_ns_f64(gap_us * 1e3);
            let ends = pool.run(now, service);
            waited += ends.since(now).as_us_f64() - 1.0;
        }
        waited / f64::from(count)
    }

    #[test]
    fn one_core_waits_as_an_m_d_1_queue_does() {
        for rho in [0.3, 0.6, 0.8] {
            let theory = rho / (2.0 * (1.0 - rho));
            let found = mean_wait_us(rho, 5);
            assert!((found / theory - 1.0).abs() < 0.02, "load {rho}: {found} us against {theory} us (seed 5)");
        }
    }

    #[test]
    fn work_goes_to_the_core_that_is_free_first() {
        let mut pool = ProcessorPool::new(2, Hertz::new(1));
        let (zero, us) = (SimTime::ZERO, SimSpan::from_us);
        assert_eq!(pool.run(zero, us(4)), zero + us(4));
        assert_eq!(pool.run(zero, us(1)), zero + us(1));
        assert_eq!(pool.run(zero, us(1)), zero + us(2));
        assert_eq!(pool.busy(), us(6));
    }

    /// Exponential with mean `mean_ns`, at least a picosecond.
    fn exponential(rng: &mut Rng, mean_ns: f64) -> SimSpan {
        SimSpan::from_ns_f64(-libm::log(1.0 - rng.unit()) * mean_ns + 0.001)
    }

    #[test]
    fn several_cores_wait_as_an_m_m_c_queue_does() {
        let (seed, cores, rho, service_ns, count) = (9, 4_u32, 0.8, 1_000.0, 3_000_000);
        let (mut arrivals, mut services) = (Rng::named(seed, "arrivals"), Rng::named(seed, "services"));
        let mut pool = ProcessorPool::new(cores, Hertz::new(1));
        let (mut now, mut waited) = (SimTime::ZERO, 0.0);
        for _ in 0..count {
            now += exponential(&mut arrivals, service_ns / (rho * f64::from(cores)));
            let service = exponential(&mut services, service_ns);
            waited += (pool.run(now, service).since(now) - service).as_us_f64();
        }
        // Erlang B by its recursion, Erlang C from it, and the mean wait of all arrivals.
        let load = rho * f64::from(cores);
        let lost = (1..=cores).fold(1.0, |lost, servers| load * lost / (f64::from(servers) + load * lost));
        let waits = lost / (1.0 - rho * (1.0 - lost));
        let theory = waits / (f64::from(cores) * (1.0 - rho));
        let found = waited / f64::from(count);
        assert!((found / theory - 1.0).abs() < 0.02, "{found} us against {theory} us (seed {seed})");
    }
}
