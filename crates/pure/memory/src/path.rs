//! The way from a root port over switches to an endpoint, and back.

use crate::hints::{PortHints, ReadAhead};
use flashyard_cxl::{
    CACHE_LINE_BYTES, Completes, DevLoad, Memory, MemoryAccess, MemoryLimits, SpeculativeRead, Transaction,
};
use flashyard_fabric::{Direction, Link};
use flashyard_units::{ByteRate, SimSpan, SimTime};

/// An access that an endpoint has served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Served {
    /// When its answer is ready to leave.
    pub at: SimTime,
    /// Whether the medium paced it, and not memory: such answers are far slower than the link and do not queue for it.
    pub from_medium: bool,
}

/// A device at the end of a path. Times only grow, as for [`Memory`].
pub trait Device {
    /// Takes in an access that has arrived at `now`.
    fn serve(&mut self, now: SimTime, access: &MemoryAccess) -> Served;

    /// Has everything that it has taken outlive a loss of power; returns when it would.
    fn persist(&mut self, now: SimTime) -> SimTime {
        now
    }

    /// A hint that lines from an address on will be loaded, which has arrived at `now`. A device may ignore it.
    fn hint(&mut self, now: SimTime, address: u64, lines: u64) {
        let _ = (now, address, lines);
    }

    /// The load that an answer carries which leaves at `now`.
    fn load_at(&self, now: SimTime) -> DevLoad {
        let _ = now;
        DevLoad::Light
    }
}

/// Parameters of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathConfig {
    /// Rate of the endpoint's link on the wire, each direction.
    pub link_rate: ByteRate,
    /// Root port, endpoint port and wires, one way.
    pub port: SimSpan,
    /// Switches between root port and endpoint.
    pub switches: u32,
    /// A switch, one way.
    pub switch: SimSpan,
}

impl PathConfig {
    /// Latency without data, one way.
    pub fn one_way(&self) -> SimSpan {
        self.port + self.switch * u64::from(self.switches)
    }
}

/// Where the time of accesses over a path went, all of them together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PathTimes {
    /// Ports and switches.
    pub path: SimSpan,
    /// Data on the link, and waiting for it.
    pub link: SimSpan,
    /// The endpoint.
    pub device: SimSpan,
}

impl PathTimes {
    /// The times since those of `earlier`.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        Self { path: self.path - earlier.path, link: self.link - earlier.link, device: self.device - earlier.device }
    }
}

/// Memory behind a path: a message for each request and each answer, with the bytes that they take in flits.
pub struct Expander<D> {
    config: PathConfig,
    link: Link,
    device: D,
    transactions: [u64; 2],
    times: PathTimes,
    /// Hints that the root port gives, where it does.
    hints: Option<Box<PortHints>>,
}

impl<D: Device> Expander<D> {
    /// A device at the end of an idle path.
    pub fn new(config: PathConfig, device: D) -> Self {
        let link = Link::new(config.link_rate);
        Self { config, link, device, transactions: [0; 2], times: PathTimes::default(), hints: None }
    }

    /// The path with a root port that reads ahead of loads.
    #[must_use]
    pub fn reading_ahead(self, read_ahead: ReadAhead) -> Self {
        let hints = (read_ahead != ReadAhead::None).then(|| Box::new(PortHints::new(read_ahead)));
        Self { hints, ..self }
    }

    /// Hints that the root port has sent, and the lines in them.
    pub fn hinted(&self) -> [u64; 2] {
        self.hints.as_ref().map_or([0; 2], |hints| hints.counts)
    }

    /// The device.
    pub fn device(&self) -> &D {
        &self.device
    }

    /// The device, for work outside the run: warming, flushes.
    pub fn device_mut(&mut self) -> &mut D {
        &mut self.device
    }

    /// The endpoint's link.
    pub fn link(&self) -> &Link {
        &self.link
    }

    /// Loads and stores that went over the path.
    pub fn transactions(&self) -> [u64; 2] {
        self.transactions
    }

    /// Where their time went.
    pub fn times(&self) -> PathTimes {
        self.times
    }

    /// Payload bytes that went to the device, and that came from it.
    pub fn payload(&self) -> [u64; 2] {
        [Direction::In, Direction::Out].map(|direction| self.link.payload(direction))
    }

    /// Puts the messages of a hint at these lines on the link, the last of them excluded. A hint is a request without an answer, a slot on the
    /// link. \[P\] sheet micro-cxl-gpu §3.2
    #[inline]
    pub fn carry_hint(&mut self, first: u64, end: u64) {
        carry_hint(&mut self.link, first, end);
    }
}

fn carry_hint(link: &mut Link, first: u64, end: u64) {
    let messages = SpeculativeRead::of_lines(first, end).count() as u64;
    link.stream(Direction::In, messages * SpeculativeRead::BYTES);
}

impl<D: Device> Memory for Expander<D> {
    fn limits(&self) -> MemoryLimits {
        MemoryLimits { bytes: u64::MAX, access_bytes: CACHE_LINE_BYTES as u32, atomics: false }
    }

    #[inline]
    fn access(&mut self, now: SimTime, _token: u64, access: &MemoryAccess) -> Completes {
        if access.operation == Transaction::Load {
            self.hint(now, access.address);
        }
        let arrives = self.send(now, access.operation.request_bytes());
        Completes::At(self.answer(arrives, access))
    }

    /// The device is told, and answers once all is done.
    fn persist(&mut self, now: SimTime) -> SimTime {
        self.device.persist(now + self.config.one_way()) + self.config.one_way()
    }
}

impl<D: Device> Expander<D> {
    /// Latency without data, one way.
    #[inline]
    pub(crate) fn one_way(&self) -> SimSpan {
        self.config.one_way()
    }

    /// Time of so many payload bytes on an idle link.
    #[inline]
    pub(crate) fn link_time(&self, payload: u64) -> SimSpan {
        self.config.link_rate.span_of(flashyard_cxl::wire_bytes(payload))
    }

    /// Hints at a load that is about to be sent.
    #[inline]
    pub(crate) fn hint(&mut self, now: SimTime, address: u64) {
        if self.hints.is_some() {
            self.hint_at(now, address);
        }
    }

    #[cold]
    fn hint_at(&mut self, now: SimTime, address: u64) {
        let Self { hints: Some(hints), link, device, config, .. } = self else { return };
        let at = now + config.one_way();
        hints.hint(now, address / CACHE_LINE_BYTES, |first, end| {
            carry_hint(link, first, end);
            device.hint(at, first * CACHE_LINE_BYTES, end - first);
        });
    }

    /// Sends a request of so many payload bytes; returns when it arrives.
    #[inline]
    pub(crate) fn send(&mut self, now: SimTime, payload: u64) -> SimTime {
        let sent = self.link.carry(now, Direction::In, payload);
        self.times.link += sent.since(now);
        sent + self.config.one_way()
    }

    /// Sends payload to the host that it has not asked for; returns when it is there.
    #[inline]
    pub(crate) fn push(&mut self, taken: Served, payload: u64) -> SimTime {
        self.leave(taken, payload) + self.config.one_way()
    }

    /// Payload leaves for the host: at once it takes its turn on the link; what waits for the medium until then holds no turn before, or all
    /// behind it would wait as well.
    #[inline]
    fn leave(&mut self, served: Served, payload: u64) -> SimTime {
        if served.from_medium {
            self.link.stream(Direction::Out, payload);
            served.at + self.link_time(payload)
        } else {
            self.link.carry(served.at, Direction::Out, payload)
        }
    }

    /// Counts a message that nothing waits for.
    #[inline]
    pub(crate) fn tell(&mut self, direction: Direction, payload: u64) {
        self.link.stream(direction, payload);
    }

    /// Has a request served that has arrived; returns when its answer is at the host.
    #[inline]
    pub(crate) fn answer(&mut self, arrives: SimTime, access: &MemoryAccess) -> SimTime {
        let operation = access.operation;
        let one_way = self.config.one_way();
        let served = self.device.serve(arrives, access);
        let answered = self.leave(served, operation.response_bytes());
        self.transactions[usize::from(operation != Transaction::Load)] += 1;
        self.times.path += one_way * 2;
        self.times.link += answered.since(served.at);
        self.times.device += served.at.since(arrives);
        let done = answered + one_way;
        if let Some(hints) = &mut self.hints {
            hints.sent(access.address / CACHE_LINE_BYTES, done, self.device.load_at(served.at));
        }
        done
    }
}

impl Device for crate::dram::Dram {
    #[inline]
    fn serve(&mut self, now: SimTime, access: &MemoryAccess) -> Served {
        let at = match Memory::access(self, now, 0, access) {
            Completes::At(at) => at,
            Completes::Later => now,
        };
        Served { at, from_medium: false }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flashyard_cxl::wire_bytes;
    use proptest::prelude::*;

    /// A device that takes always as long.
    struct Fixed(SimSpan);

    impl Device for Fixed {
        fn serve(&mut self, now: SimTime, _: &MemoryAccess) -> Served {
            Served { at: now + self.0, from_medium: false }
        }
    }

    fn path(switches: u32) -> PathConfig {
        PathConfig {
            link_rate: ByteRate::from_mb(64_000),
            port: SimSpan::from_ns(40),
            switches,
            switch: SimSpan::from_ns(70),
        }
    }

    #[test]
    fn one_access_takes_the_sum_of_its_parts() {
        for switches in 0..5 {
            let config = path(switches);
            let mut memory = Expander::new(config, Fixed(SimSpan::from_ns(100)));
            let done = memory.access(SimTime::ZERO, 0, &MemoryAccess::lines(Transaction::Load, 0, 1));
            let wire = |payload| config.link_rate.span_of(wire_bytes(payload));
            let expected = wire(16) + wire(80) + SimSpan::from_ns(2 * (40 + 70 * u64::from(switches)) + 100);
            assert_eq!(done, Completes::At(SimTime::ZERO + expected));
        }
    }

    proptest! {
        #[test]
        fn no_byte_and_no_time_is_lost(accesses in prop::collection::vec((0_u64..50, any::<bool>()), 1..200)) {
            let mut memory = Expander::new(path(1), Fixed(SimSpan::from_ns(30)));
            let (mut now, mut latency, mut kinds) = (SimTime::ZERO, SimSpan::ZERO, [0_u64; 2]);
            for (gap, store) in accesses {
                now += SimSpan::from_ns(gap);
                let operation = if store { Transaction::Store } else { Transaction::Load };
                kinds[usize::from(store)] += 1;
                let Completes::At(done) = memory.access(now, 0, &MemoryAccess::lines(operation, 0, 1)) else {
                    panic!("the time is known");
                };
                latency += done.since(now);
            }
            let times = memory.times();
            prop_assert_eq!(times.path + times.link + times.device, latency);
            prop_assert_eq!(memory.transactions(), kinds);
            // Flits are conserved: requests of 16 and 80 bytes in, answers of 80 and 16 out.
            prop_assert_eq!(memory.link().payload(Direction::In), kinds[0] * 16 + kinds[1] * 80);
            prop_assert_eq!(memory.link().payload(Direction::Out), kinds[0] * 80 + kinds[1] * 16);
        }
    }
}
