//! Drives of an array as whole SSDs: cores, mapping, flash and garbage collection, of crate `ssd`.

use crate::member::{Member, MemberCounters};
use flashyard_kernel::Outbox;
use flashyard_ssd::{CommandSpec, Drive, DriveConfig, DriveConfigError, DriveEffect, DriveEvent};
use flashyard_units::{SimSpan, SimTime};

/// A simulated SSD.
pub struct TimedMember {
    pub(crate) drive: Drive,
    /// Commands under way, and since when there are any.
    under_way: u32,
    since: SimTime,
    /// Time that a command takes alone, roughly: what one that waits adds to the backlog.
    turn: SimSpan,
    counters: MemberCounters,
}

impl TimedMember {
    /// An idle, preconditioned SSD.
    ///
    /// Errors: a parameter outside its range.
    pub fn new(config: DriveConfig, turn: SimSpan, seed: u64) -> Result<Self, DriveConfigError> {
        let drive = Drive::new(config, &[1], seed)?;
        Ok(Self { drive, under_way: 0, since: SimTime::ZERO, turn, counters: MemberCounters::default() })
    }

    /// Takes a command in: its firmware waits for a core.
    pub(crate) fn take(
        &mut self,
        now: SimTime,
        spec: &CommandSpec,
        is_write: bool,
        bytes: u32,
        out: &mut impl Outbox<DriveEvent, DriveEffect>,
    ) {
        if self.under_way == 0 {
            self.since = now;
        }
        self.under_way += 1;
        self.counters.commands[usize::from(is_write)] += 1;
        self.counters.bytes[usize::from(is_write)] += u64::from(bytes);
        let job = self.drive.firmware_job(spec.tag, spec.count);
        self.drive.enqueue(now, 1, job, out);
    }

    /// A command completes.
    pub(crate) fn completed(&mut self, now: SimTime) {
        self.under_way -= 1;
        if self.under_way == 0 {
            let busy = now.since(self.since);
            self.counters.busy += busy;
            self.counters.nominal += busy;
        }
    }
}

impl Member for TimedMember {
    fn is_idle(&self, _now: SimTime) -> bool {
        self.under_way == 0
    }

    fn backlog(&self, _now: SimTime) -> SimSpan {
        self.turn * u64::from(self.under_way)
    }

    fn counters(&self, now: SimTime) -> MemberCounters {
        let open = if self.under_way > 0 { now.saturating_since(self.since) } else { SimSpan::ZERO };
        let MemberCounters { busy, nominal, .. } = self.counters;
        let ftl = self.drive.data.ftl.counters();
        let slots = [ftl.host_slots, ftl.programmed_slots()];
        MemberCounters { busy: busy + open, nominal: nominal + open, slots, ..self.counters }
    }
}
