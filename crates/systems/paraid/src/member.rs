//! Drives of an array, as servers of published rates.

use flashyard_units::{ByteRate, SimSpan, SimTime};

/// A drive in virtual time, as the array sees it.
pub trait Member {
    /// Whether it has nothing to do.
    fn is_idle(&self, now: SimTime) -> bool;

    /// Work that lies before it.
    fn backlog(&self, now: SimTime) -> SimSpan;

    /// Its work so far.
    fn counters(&self, now: SimTime) -> MemberCounters;
}

/// Work of a drive since the beginning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemberCounters {
    /// Time for which its one server worked.
    pub busy: SimSpan,
    /// The part of it that the published rates account for.
    pub nominal: SimSpan,
    /// Reads and writes.
    pub commands: [u64; 2],
    /// Bytes read and written.
    pub bytes: [u64; 2],
    /// Slots of 4 KiB that an SSD put on flash for its host, and all that it programmed: those, garbage collection's and padding. None
    /// of a server of rates.
    pub slots: [u64; 2],
}

impl MemberCounters {
    /// Work since `before`.
    pub(crate) fn since(&self, before: &Self) -> Self {
        let less = |now: [u64; 2], before: [u64; 2]| [now[0] - before[0], now[1] - before[1]];
        Self {
            busy: self.busy - before.busy,
            nominal: self.nominal - before.nominal,
            commands: less(self.commands, before.commands),
            bytes: less(self.bytes, before.bytes),
            slots: less(self.slots, before.slots),
        }
    }
}

/// A drive that is known by what was measured of it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RateConfig {
    /// Room in bytes.
    pub capacity: u64,
    /// Bytes a second that it reads.
    pub read_rate: ByteRate,
    /// Bytes a second that it writes.
    pub write_rate: ByteRate,
    /// Bytes a second that it reads in commands of 4 KiB: its limit of commands.
    pub small_rate: ByteRate,
    /// Time of a read beside its turn at the server.
    pub read_latency: SimSpan,
    /// Time of a write beside it.
    pub write_latency: SimSpan,
}

/// One server that takes commands in turn: each for its bytes at the drive's rate, but no shorter than its limit of commands allows;
/// the latency comes after and delays no other command. Reads and writes share the server.
///
/// What it does not model: garbage collection, caches and dies inside the drive.
#[derive(Clone, Debug)]
pub struct RateMember {
    config: RateConfig,
    ps_per_byte: [f64; 2],
    /// The shortest turn.
    turn: SimSpan,
    /// From when on turns take longer, and by which factor.
    slow: Option<(SimTime, f64)>,
    free: SimTime,
    counters: MemberCounters,
}

impl RateMember {
    /// An idle drive.
    pub fn new(config: RateConfig) -> Self {
        let ps_per_byte = [config.read_rate, config.write_rate].map(|rate| 1e12 / rate.get() as f64);
        let turn = config.small_rate.span_of(4096);
        Self { config, ps_per_byte, turn, slow: None, free: SimTime::ZERO, counters: MemberCounters::default() }
    }
}

impl RateMember {
    /// The drive keeps a share of its rates from `when` on.
    pub(crate) fn slow_down(&mut self, when: SimTime, keeps: f64) {
        self.slow = Some((when, 1.0 / keeps));
    }

    /// Takes a command in and says when it will be complete. Commands come in the order of their times.
    #[inline]
    pub fn submit(&mut self, now: SimTime, is_write: bool, bytes: u32) -> SimTime {
        let kind = usize::from(is_write);
        let turn = SimSpan::from_ps((self.ps_per_byte[kind] * f64::from(bytes)) as u64).max(self.turn);
        self.counters.nominal += turn;
        let turn = match self.slow {
            Some((when, factor)) if now >= when => SimSpan::from_ps((turn.as_ps() as f64 * factor) as u64),
            _ => turn,
        };
        self.free = self.free.max(now) + turn;
        self.counters.busy += turn;
        self.counters.commands[kind] += 1;
        self.counters.bytes[kind] += u64::from(bytes);
        self.free + if is_write { self.config.write_latency } else { self.config.read_latency }
    }
}

impl Member for RateMember {
    #[inline]
    fn is_idle(&self, now: SimTime) -> bool {
        self.free <= now
    }

    #[inline]
    fn backlog(&self, now: SimTime) -> SimSpan {
        self.free.saturating_since(now)
    }

    fn counters(&self, _now: SimTime) -> MemberCounters {
        self.counters
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drive() -> RateMember {
        RateMember::new(RateConfig {
            capacity: 1 << 30,
            read_rate: ByteRate::new(1_000_000_000),
            write_rate: ByteRate::new(500_000_000),
            small_rate: ByteRate::new(409_600_000),
            read_latency: SimSpan::from_us(80),
            write_latency: SimSpan::from_us(20),
        })
    }

    #[test]
    fn commands_take_turns_and_latencies_do_not() {
        let mut drive = drive();
        let done = [(false, 100_000), (true, 100_000), (false, 4096)]
            .map(|(write, bytes)| drive.submit(SimTime::ZERO, write, bytes).as_ps() / 1_000_000);
        // 100 us; 200 us after it; 10 us for a command of 4 KiB, of which 100,000 go through in a second.
        assert_eq!(done, [180, 320, 390]);
        assert_eq!(drive.backlog(SimTime::from_ps(300_000_000)), SimSpan::from_us(10));
        assert!(drive.is_idle(SimTime::from_ps(310_000_000)));
        assert_eq!(drive.counters(SimTime::ZERO).commands, [2, 1]);
    }
}
