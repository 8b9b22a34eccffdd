//! A network volume: limits of its class, a link, and a service whose latency is drawn.

use crate::stack::{Network, Way};
use flashyard_host::ProcessorPool;
use flashyard_kernel::Rng;
use flashyard_units::{Hertz, SimSpan, SimTime};

/// A network volume of one virtual drive.
pub(crate) struct NetworkVolume {
    network: Network,
    /// Requests one after the other, as often as the class allows.
    limit: ProcessorPool,
    links: [ProcessorPool; 2],
    rng: Rng,
    carried: u64,
}

/// One server, for what is one after the other.
fn single() -> ProcessorPool {
    ProcessorPool::new(1, Hertz::new(1))
}

/// Time of `bytes` at a rate.
pub(crate) fn span_of(bytes: u64, bytes_per_us: u64) -> SimSpan {
    SimSpan::from_ps(bytes * 1_000_000 / bytes_per_us)
}

impl NetworkVolume {
    pub(crate) fn new(network: Network, rng: Rng) -> Self {
        Self { network, limit: single(), links: [single(), single()], rng, carried: 0 }
    }

    /// Requests carried out since the beginning.
    pub(crate) fn carried(&self) -> u64 {
        self.carried
    }

    /// Carries a request out; returns when it has ended.
    pub(crate) fn carry_out(&mut self, now: SimTime, is_read: bool, bytes: u64) -> SimTime {
        self.carried += 1;
        let step = SimSpan::from_ps(1_000_000_000_000 / self.network.requests_per_second);
        let admitted = self.limit.run(now, step);
        let way = if is_read { Way::Up } else { Way::Down };
        // Bytes in flight overlap with the service: the link's time is that of its queue.
        let carried = self.links[way as usize].run(now, span_of(bytes, self.network.bytes_per_us));
        admitted.max(carried) + self.latency(is_read)
    }

    /// The latency of the service: log-normal, and for a share of requests several times that.
    fn latency(&mut self, is_read: bool) -> SimSpan {
        let Network { medians, sigma, tail_share, tail_factor, .. } = self.network;
        // Box and Muller: one of the two is enough.
        let (radius, angle) = (1.0 - self.rng.unit(), self.rng.unit());
        let normal = libm::sqrt(-2.0 * libm::log(radius)) * libm::cos(2.0 * core::f64::consts::PI * angle);
        let factor = if self.rng.unit() < tail_share { tail_factor } else { 1.0 };
        let median = medians[usize::from(!is_read)].as_ps() as f64;
        SimSpan::from_ps((median * libm::exp(sigma * normal) * factor) as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stack::Stack;
    use flashyard_units::Named;

    #[test]
    fn a_volume_keeps_its_class_and_its_latency_is_log_normal() {
        for stack in Stack::ALL.iter().filter(|stack| stack.table().network.is_some()) {
            let network = stack.table().network.expect("it was filtered");
            let mut volume = NetworkVolume::new(network, Rng::named(1, "test"));
            let count = 100_000_u64;
            let last = (0..count).map(|_| volume.carry_out(SimTime::ZERO, true, 4096)).max().expect("there are some");
            let least = 1e12 / network.requests_per_second as f64 * count as f64;
            assert!(last.as_ps() as f64 >= least, "{stack:?}: no faster than its class");
            let mut latencies: Vec<u64> = (0..count).map(|_| volume.latency(true).as_ps()).collect();
            latencies.sort_unstable();
            let at = |share: f64| latencies[(share * count as f64) as usize] as f64 / network.medians[0].as_ps() as f64;
            assert!((at(0.5) - 1.0).abs() < 0.02, "{stack:?}: {}", at(0.5));
            // The quantile of a normal variable at 0.84 is one deviation, near enough of the mixture too.
            assert!((libm::log(at(0.8413)) / network.sigma - 1.0).abs() < 0.1, "{stack:?}: {}", at(0.8413));
            assert!(at(0.995) > 3.0, "{stack:?}: one in a hundred takes five times as long");
        }
    }
}
