//! How a host hears of completions: it polls the completion queue, or the drive interrupts it, perhaps once for several.
//!
//! Source of coalescing: [P] NVM Express Base Specification, Set Features 08h, Interrupt Coalescing: an interrupt waits until
//! the aggregation threshold of completions is reached or the aggregation time is over, whichever is first. A drive here has
//! one interrupt vector. The specification lets a drive choose how it counts the time; here it begins with the first
//! completion that waits.

use flashyard_units::{Named, SimSpan, SimTime};

/// How the host learns of a completion.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Completions {
    /// A core looks at the completion queue all the time.
    #[default]
    Polled,
    /// The drive sends a message-signalled interrupt.
    Interrupt,
}

impl Named for Completions {
    const ALL: &'static [Self] = &[Self::Polled, Self::Interrupt];

    fn name(self) -> &'static str {
        match self {
            Self::Polled => "polled",
            Self::Interrupt => "interrupt",
        }
    }
}

/// NVMe's queues over a link, in the parts that take time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueInterface {
    /// The write of the doorbell, until the drive sees it.
    pub doorbell: SimSpan,
    /// The drive's fetch of the submission entry of 64 bytes: a round trip.
    pub command_fetch: SimSpan,
    /// The completion entry of 16 bytes, until it is in the host's memory.
    pub completion_write: SimSpan,
    /// How the host learns of it.
    pub completions: Completions,
    /// From the interrupt to the driver's look at the queue; unused where the host polls.
    pub interrupt_latency: SimSpan,
    /// Completions for which an interrupt waits at most: 1 to 256, 1 for no coalescing.
    pub threshold: u32,
    /// How long a completion waits for others at most; zero for no coalescing.
    pub time: SimSpan,
}

impl QueueInterface {
    /// Queues that take no time.
    pub const FREE: Self = Self {
        doorbell: SimSpan::ZERO,
        command_fetch: SimSpan::ZERO,
        completion_write: SimSpan::ZERO,
        completions: Completions::Polled,
        interrupt_latency: SimSpan::ZERO,
        threshold: 1,
        time: SimSpan::ZERO,
    };

    /// From the driver's write of the doorbell to a command inside the drive.
    pub fn submission(&self) -> SimSpan {
        self.doorbell + self.command_fetch
    }

    /// From a completion entry in the host's memory, or from its interrupt, to the driver.
    pub fn notice(&self) -> SimSpan {
        match self.completions {
            Completions::Polled => SimSpan::ZERO,
            Completions::Interrupt => self.interrupt_latency,
        }
    }

    /// Whether one interrupt may tell of several completions.
    pub fn coalesces(&self) -> bool {
        self.completions == Completions::Interrupt && self.threshold > 1 && self.time > SimSpan::ZERO
    }
}

/// Consequence of a completion entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Posted {
    /// The interrupt is sent now, for all that wait.
    Signal,
    /// It is the first that waits: the interrupt is due then, if nothing sends it before.
    Due(SimTime),
    /// An interrupt is due already.
    Waits,
}

/// Completions of one drive whose interrupt has not been sent.
#[derive(Clone, Debug, Default)]
pub struct Coalescer {
    waiting: Vec<(u32, SimTime)>,
}

impl Coalescer {
    /// The completion of `command` is in the host's memory.
    pub fn post(&mut self, now: SimTime, command: u32, interface: &QueueInterface) -> Posted {
        self.waiting.push((command, now));
        if self.waiting.len() >= interface.threshold as usize {
            Posted::Signal
        } else if self.waiting.len() == 1 {
            Posted::Due(now + interface.time)
        } else {
            Posted::Waits
        }
    }

    /// Whether the aggregation time of what waits is over. A timer of completions that an interrupt has told of already
    /// comes too early.
    pub fn is_due(&self, now: SimTime, interface: &QueueInterface) -> bool {
        self.waiting.first().is_some_and(|first| first.1 + interface.time <= now)
    }

    /// Sends the interrupt: the commands that it tells of leave in the order of their completion, each with the time at
    /// which it was posted.
    pub fn signal(&mut self) -> impl Iterator<Item = (u32, SimTime)> + '_ {
        self.waiting.drain(..)
    }

    /// Commands that wait for an interrupt.
    pub fn commands(&self) -> impl Iterator<Item = u32> + '_ {
        self.waiting.iter().map(|waiting| waiting.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn interface(threshold: u32, micros: u64) -> QueueInterface {
        QueueInterface {
            completions: Completions::Interrupt,
            threshold,
            time: SimSpan::from_us(micros),
            ..QueueInterface::FREE
        }
    }

    #[test]
    fn either_threshold_or_time_sends_the_interrupt_and_nothing_is_lost() {
        // Gaps that vary without a random stream: the oracle is the order of what was posted.
        for (threshold, micros) in [(1, 100), (2, 100), (8, 100), (8, 300), (256, 100)] {
            let interface = interface(threshold, micros);
            let mut coalescer = Coalescer::default();
            let (mut now, mut due, mut told) = (SimTime::ZERO, None, Vec::new());
            let mut tell = |coalescer: &mut Coalescer, at: SimTime| {
                let batch: Vec<_> = coalescer.signal().collect();
                assert!(batch.len() <= threshold as usize);
                for (command, posted) in batch {
                    assert!(at.since(posted) <= interface.time, "{command} waited {:?}", at.since(posted));
                    told.push(command);
                }
            };
            for command in 0..1000_u32 {
                now += SimSpan::from_us(u64::from(command * 7919 % 97));
                if let Some(at) = due.filter(|&at| at <= now) {
                    if coalescer.is_due(at, &interface) {
                        tell(&mut coalescer, at);
                    }
                    due = coalescer.waiting.first().map(|first| first.1 + interface.time);
                }
                match coalescer.post(now, command, &interface) {
                    Posted::Signal => tell(&mut coalescer, now),
                    Posted::Due(at) => due = Some(at),
                    Posted::Waits => assert!(due.is_some()),
                }
            }
            if let Some(at) = coalescer.waiting.first().map(|first| first.1 + interface.time) {
                assert!(coalescer.is_due(at, &interface));
                tell(&mut coalescer, at);
            }
            assert_eq!(told, (0..1000).collect::<Vec<_>>(), "threshold {threshold}");
        }
    }

    #[test]
    fn a_timer_of_completions_that_were_told_of_does_nothing() {
        let interface = interface(2, 100);
        let mut coalescer = Coalescer::default();
        let at = |micros| SimTime::ZERO + SimSpan::from_us(micros);
        assert_eq!(coalescer.post(at(0), 1, &interface), Posted::Due(at(100)));
        assert_eq!(coalescer.post(at(10), 2, &interface), Posted::Signal);
        assert_eq!(coalescer.signal().count(), 2);
        assert_eq!(coalescer.post(at(50), 3, &interface), Posted::Due(at(150)));
        assert!(!coalescer.is_due(at(100), &interface));
        assert!(coalescer.is_due(at(150), &interface));
    }
}
