//! Self-tests of drives: whether a drive is healthy, and, of an extended one, whether each block that it maps can be read.
//!
//! An extended test looks at the media and not at the model: it takes no simulated time, and nothing of the drive's. It is kept that one
//! is under way, and one that the end of the process interrupts begins again in the next. Segments are numbered as in the example of
//! the specification, section 8.6: 2 is the check of SMART, 7 that of the media.

use crate::front::Context;
use crate::media::{Erase, RecordKind};
use flashyard_nvme::log::{SelfTestLog, SelfTestResult, SmartLog};
use flashyard_nvme::{NSID_ALL, Status};
use flashyard_nvmf::target::{Demand, Target, is_asking, set_self_test};
use flashyard_units::VolumeId;
use std::time::Duration;
use zerocopy::{FromBytes, IntoBytes};

/// A short test takes so long, an extended one no less than that.
const SHORT_SPAN: Duration = Duration::from_secs(1);
const EXTENDED_SPAN: Duration = Duration::from_secs(3);
/// Between two looks at the media, and units of 4 KiB looked at in one: less than a millisecond of checksums.
const LOOK_PERIOD: Duration = Duration::from_millis(2);
const UNITS_PER_LOOK: u64 = 1024;
/// Between two looks at a drive without power.
const DARK_PERIOD: Duration = Duration::from_millis(100);

const SMART_SEGMENT: u8 = 2;
const MEDIA_SEGMENT: u8 = 7;

/// A test that is under way.
#[derive(Debug)]
struct Running {
    code: u8,
    /// The command that began it; `None` where an earlier process did.
    by: Option<Demand>,
    begun: Duration,
    next: Duration,
    /// Namespaces that are tested, their volumes and units, and how far that is.
    namespaces: Vec<(u32, VolumeId, u64)>,
    at: (usize, u64),
    looked_at: u64,
    /// The first block that cannot be read, with its namespace.
    failed: Option<(u32, u64)>,
}

impl Running {
    fn units(&self) -> u64 {
        self.namespaces.iter().map(|&(_, _, units)| units).sum()
    }
}

/// The self-tests of one drive.
#[derive(Debug)]
pub(super) struct SelfTests {
    log: SelfTestLog,
    running: Option<Running>,
}

impl SelfTests {
    /// Those that an earlier process has kept, if any; a test that it began goes on.
    pub(super) fn start(drive: VolumeId, context: &Context<'_>) -> Self {
        let mut tests = Self { log: SelfTestLog::NEVER, running: None };
        let record = context.record(drive, RecordKind::SelfTests).unwrap_or_default();
        let Some((log, nsid)) = decode(record) else { return tests };
        tests.log = log;
        match log.operation {
            SelfTestLog::EXTENDED => tests.run((nsid, log.operation), None, drive, context),
            SelfTestLog::SHORT => tests.end(SelfTestResult::ABORTED_BY_RESET, drive, context),
            _ => {}
        }
        tests
    }

    /// Whether [`SelfTests::go_on`] has anything to do.
    pub(super) fn is_due(&self, now: Duration) -> bool {
        self.running.as_ref().is_some_and(|running| running.next <= now)
    }

    /// When [`SelfTests::go_on`] has something to do.
    pub(super) fn wake_at(&self) -> Option<Duration> {
        self.running.as_ref().map(|running| running.next)
    }

    /// Begins a test, or ends the one that is under way.
    pub(super) fn ask(&mut self, (nsid, code): (u32, u8), demand: &Demand, drive: VolumeId, context: &Context<'_>) {
        if code == SelfTestLog::ABORT {
            if self.running.is_some() {
                self.end(SelfTestResult::ABORTED_BY_HOST, drive, context);
            }
            return;
        }
        self.run((nsid, code), Some(demand.clone()), drive, context);
        self.keep(nsid, drive, context);
    }

    fn run(&mut self, (nsid, code): (u32, u8), by: Option<Demand>, drive: VolumeId, context: &Context<'_>) {
        let named = context.namespaces(drive).into_iter().filter(|it| nsid == NSID_ALL || it.nsid == nsid);
        let namespaces = named.map(|it| (it.nsid, it.volume, units_of(it.volume, context))).collect();
        let (begun, at, looked_at, failed) = (context.elapsed(), (0, 0), 0, None);
        self.running = Some(Running { code, by, begun, next: begun, namespaces, at, looked_at, failed });
        (self.log.operation, self.log.completion) = (code, 0);
    }

    /// Does the next bit of the test that is under way, with these warnings in SMART. Without power it stands still.
    pub(super) fn go_on(&mut self, target: &Target, warnings: u8, drive: VolumeId, context: &Context<'_>) {
        let Some(running) = &mut self.running else { return };
        let now = context.elapsed();
        if !context.has_power(drive) {
            running.next = now + DARK_PERIOD;
            return;
        }
        running.next = now + LOOK_PERIOD;
        if let Some(outcome) = interrupted(running, target, drive, context) {
            return self.end(outcome, drive, context);
        }
        let span = if running.code == SelfTestLog::SHORT { SHORT_SPAN } else { EXTENDED_SPAN };
        let passed = now.saturating_sub(running.begun);
        let by_time = (passed.as_secs_f64() / span.as_secs_f64()).min(1.0);
        let units = running.units();
        let mut share = by_time;
        if running.code == SelfTestLog::EXTENDED && units > 0 {
            let due = (units as f64 * by_time).ceil() as u64;
            look(running, due.saturating_sub(running.looked_at).min(UNITS_PER_LOOK), context);
            share = running.looked_at as f64 / units as f64;
        }
        self.log.completion = (share * 100.0).min(99.0) as u8;
        if by_time < 1.0 || share < 1.0 {
            return;
        }
        let is_ill = warnings & (SmartLog::WARNING_SPARE | SmartLog::WARNING_READ_ONLY) != 0;
        let is_failed = is_ill || running.failed.is_some();
        self.end(if is_failed { SelfTestResult::FAILED } else { SelfTestResult::PASSED }, drive, context);
        if is_ill {
            self.log.results[0].segment = SMART_SEGMENT;
        }
        self.keep(0, drive, context);
    }

    /// The drive has lost its power: a short test does not outlast that.
    pub(super) fn lose_power(&mut self, drive: VolumeId, context: &Context<'_>) {
        if self.log.operation == SelfTestLog::SHORT {
            self.end(SelfTestResult::ABORTED_BY_RESET, drive, context);
        }
    }

    fn end(&mut self, outcome: u8, drive: VolumeId, context: &Context<'_>) {
        let mut result = SelfTestResult { status: self.log.operation << 4 | outcome, ..SelfTestResult::default() };
        let (health, before) = (context.health(drive), context.before(drive));
        let life = before.until(&health, context.elapsed(), 0);
        result.power_on_hours.set(life.powered_ms / 3_600_000);
        let failed = self.running.take().and_then(|running| running.failed);
        if let (Some((nsid, lba)), SelfTestResult::FAILED) = (failed, outcome) {
            let status = Status::UNRECOVERED_READ.bits();
            (result.segment, result.valid) = (MEDIA_SEGMENT, 0xF);
            result.nsid.set(nsid);
            result.lba.set(lba);
            (result.status_type, result.status_code) = ((status >> 8) as u8 & 7, status as u8);
        }
        self.log.end(result);
        self.keep(0, drive, context);
    }

    /// Keeps results, and that a test of a namespace is under way.
    fn keep(&self, nsid: u32, drive: VolumeId, context: &Context<'_>) {
        if let Err(error) = context.keep_record(drive, RecordKind::SelfTests, &encode(&self.log, nsid)) {
            tracing::error!(volume = %drive, %error, "the results of self-tests are not kept");
        }
    }

    /// Whether one is under way, in words.
    pub(super) fn state(&self) -> &'static str {
        match self.log.operation {
            SelfTestLog::EXTENDED => "an extended one is under way",
            SelfTestLog::SHORT => "a short one is under way",
            _ => "none is under way",
        }
    }

    /// Lets hosts know.
    pub(super) fn tell(&self, target: &mut Target, subsystem: usize) {
        set_self_test(target, subsystem, self.log);
    }
}

/// Units of 4 KiB of a volume, now.
fn units_of(volume: VolumeId, context: &Context<'_>) -> u64 {
    context.volume(volume).map_or(0, |it| it.size_bytes().div_ceil(4096))
}

/// How a test ends before its time, if it does.
fn interrupted(running: &Running, target: &Target, drive: VolumeId, context: &Context<'_>) -> Option<u8> {
    let is_there = |&(nsid, volume, _): &(u32, VolumeId, u64)| {
        context.namespaces(drive).iter().any(|it| (it.nsid, it.volume) == (nsid, volume))
    };
    let is_reset = running.by.as_ref().is_some_and(|demand| !is_asking(target, demand));
    match (context.erasing_of(drive), context.erasures(drive).under_way) {
        (Some(_), Some(Erase::Sanitize { .. })) => Some(SelfTestResult::ABORTED_BY_SANITIZE),
        (Some((_, nsid)), _) if nsid == NSID_ALL || running.namespaces.iter().any(|&(tested, ..)| tested == nsid) => {
            Some(SelfTestResult::ABORTED_BY_FORMAT)
        }
        _ if !running.namespaces.iter().all(is_there) => Some(SelfTestResult::ABORTED_BY_DELETION),
        // An extended one outlasts its controller.
        _ if is_reset && running.code == SelfTestLog::SHORT => Some(SelfTestResult::ABORTED_BY_RESET),
        _ => None,
    }
}

/// Looks whether the next units can be read.
fn look(running: &mut Running, mut units: u64, context: &Context<'_>) {
    while units > 0
        && let Some(&(nsid, volume, all)) = running.namespaces.get(running.at.0)
    {
        let first = running.at.1;
        let end = (first + units).min(all);
        if running.failed.is_none() {
            // It may have become smaller since the test began.
            let there = end.min(units_of(volume, context));
            let damaged = (first..there).find(|&unit| !context.is_unit_whole(volume, unit));
            running.failed = damaged.map(|unit| (nsid, unit * context.blocks_of_unit(volume)));
        }
        (units, running.looked_at) = (units - (end - first), running.looked_at + (end - first));
        running.at = if end == all { (running.at.0 + 1, 0) } else { (running.at.0, end) };
    }
}

/// The log page, the namespace of the test under way, and a checksum.
fn encode(log: &SelfTestLog, nsid: u32) -> Vec<u8> {
    let mut bytes = [log.as_bytes(), &nsid.to_le_bytes()].concat();
    let check = crc32c::crc32c(&bytes);
    bytes.extend_from_slice(&check.to_le_bytes());
    bytes
}

/// The reverse of [`encode`]; `None` for bytes that are no such record: results of tests are lost then, and nothing else.
fn decode(record: &[u8]) -> Option<(SelfTestLog, u32)> {
    let (body, check) = record.split_last_chunk::<4>()?;
    let (log, nsid) = body.split_last_chunk::<4>()?;
    let is_whole = crc32c::crc32c(body).to_le_bytes() == *check;
    Some((SelfTestLog::read_from_bytes(log).ok().filter(|_| is_whole)?, u32::from_le_bytes(*nsid)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_read_as_they_were_written_and_damaged_ones_are_not() {
        let mut log = SelfTestLog::NEVER;
        log.end(SelfTestResult { status: 0x27, segment: 7, ..SelfTestResult::default() });
        log.operation = SelfTestLog::EXTENDED;
        let mut record = encode(&log, 9);
        assert_eq!(decode(&record), Some((log, 9)));
        assert_eq!(decode(&record[..record.len() - 1]), None);
        record[30] ^= 1;
        assert_eq!(decode(&record), None);
    }
}
