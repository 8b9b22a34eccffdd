//! One full-duplex link.

use flashyard_cxl::{FLIT_BYTES, FLIT_PAYLOAD_BYTES, wire_bytes};
use flashyard_units::{ByteRate, SimSpan, SimTime};

/// Which way data goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Away from the endpoint.
    Out,
    /// Towards the endpoint.
    In,
}

#[derive(Clone, Copy, Debug, Default)]
struct Lane {
    free_at: SimTime,
    busy: SimSpan,
    payload: u64,
}

/// A link with one lane a direction, each served first come first served.
#[derive(Clone, Debug)]
pub struct Link {
    rate: ByteRate,
    lanes: [Lane; 2],
}

impl Link {
    /// An idle link of `rate` on the wire, each direction.
    pub fn new(rate: ByteRate) -> Self {
        Self { rate, lanes: [Lane::default(); 2] }
    }

    /// The rate that payload can reach after flit overhead.
    pub fn payload_rate(&self) -> ByteRate {
        ByteRate::new((self.rate.get() * FLIT_PAYLOAD_BYTES / FLIT_BYTES).max(1))
    }

    /// Carries `payload` bytes as soon as the lane is free; returns when the last of them has passed.
    #[inline]
    pub fn carry(&mut self, now: SimTime, direction: Direction, payload: u64) -> SimTime {
        let lane = &mut self.lanes[direction as usize];
        let span = self.rate.span_of(wire_bytes(payload));
        let ends = lane.free_at.max(now) + span;
        lane.free_at = ends;
        lane.busy += span;
        lane.payload += payload;
        ends
    }

    /// Counts `payload` bytes that something slower than the link paces: it never waits for the lane.
    #[inline]
    pub fn stream(&mut self, direction: Direction, payload: u64) {
        let lane = &mut self.lanes[direction as usize];
        lane.busy += self.rate.span_of(wire_bytes(payload));
        lane.payload += payload;
    }

    /// Payload bytes carried.
    pub fn payload(&self, direction: Direction) -> u64 {
        self.lanes[direction as usize].payload
    }

    /// Time the lane was busy.
    pub fn busy(&self, direction: Direction) -> SimSpan {
        self.lanes[direction as usize].busy
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn payload_has_fifteen_sixteenths_of_the_rate_and_never_no_rate() {
        assert_eq!(Link::new(ByteRate::from_mb(16_000)).payload_rate(), ByteRate::from_mb(15_000));
        assert_eq!(Link::new(ByteRate::new(1)).payload_rate(), ByteRate::new(1));
    }

    proptest! {
        #[test]
        fn a_link_is_never_faster_than_its_rate_and_loses_no_byte(
            transfers in prop::collection::vec((0_u64..10_000, 1_u64..100_000), 1..100),
        ) {
            let mut link = Link::new(ByteRate::from_mb(16_000));
            let (mut now, mut last, mut sum) = (SimTime::ZERO, SimTime::ZERO, 0);
            for (gap_ns, bytes) in transfers {
                now += SimSpan::from_ns(gap_ns);
                let ends = link.carry(now, Direction::Out, bytes);
                prop_assert!(ends > last && ends > now, "first come first served");
                last = ends;
                sum += bytes;
            }
            prop_assert_eq!(link.payload(Direction::Out), sum);
            prop_assert_eq!(link.payload(Direction::In), 0);
            prop_assert_eq!(link.busy(Direction::In), SimSpan::ZERO);
            // Each transfer is rounded up to a byte of the wire, and to a picosecond.
            let exact_ps = sum as f64 * 1e12 / link.payload_rate().get() as f64;
            let busy_ps = link.busy(Direction::Out).as_ps() as f64;
            prop_assert!((0.0..64.0 * 100.0).contains(&(busy_ps - exact_ps)), "{} ps for {} ps", busy_ps, exact_ps);
            let seconds = last.as_secs_f64();
            prop_assert!(sum as f64 / seconds <= 15.0e9 * 1.000_001, "{} B in {} s", sum, seconds);
        }
    }
}
