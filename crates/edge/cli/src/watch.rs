//! The dashboard of an enclosure that serves: figures from the engine to the page, commands from the page to the engine.

use anyhow::{Context, Result};
use flashyard_dash::Dash;
use flashyard_live::{Handle, Reader, Tempo};
use flashyard_report::{
    DrivePoints, DriveSnapshot, DriveState, DriveTotals, LatencySummary, Lateness, LentResource, LiveCommand,
    LiveEvent, LiveEventKind, Loan, Points, Snapshot,
};
use flashyard_served::{Control, DriveGauges, Gauges, Presence};
use flashyard_units::DriveId;
use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// One point of the fine series.
const STEP: Duration = Duration::from_millis(10);
/// Points of a snapshot.
const STEPS: usize = 10;
/// Lent shares of a core below this are what is left of ones that have ended.
const CORES_LEAST: f64 = 0.005;

/// Facts of the enclosure itself for the page.
pub(crate) struct Subject {
    /// Name of the scenario.
    pub(crate) scenario: String,
    /// NVMe qualified name of each drive.
    pub(crate) nqns: Vec<String>,
    /// The clock that rules.
    pub(crate) tempo: Tempo,
    /// Erases that a block takes before the drive counts as used up.
    pub(crate) endurance_erases: u32,
    /// Noise of the machine's clock on an idle thread, at the 99th percentile.
    pub(crate) noise_us: f64,
}

/// A dashboard that is there as long as this is.
pub(crate) struct Watch {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Watch {
    /// Serves the page at `address`; also returns its address for users that may give commands.
    ///
    /// Errors: an address that cannot be listened on.
    pub(crate) fn start(address: SocketAddr, subject: Subject, handle: Handle) -> Result<(Self, String)> {
        let commands = handle.clone();
        let carry_out = move |command: LiveCommand| -> Result<(), String> {
            let control = control(&command)?;
            // The page's thread must not wait for the engine: what is refused is seen by nothing happening.
            let commands = commands.clone();
            std::thread::spawn(move || {
                if let Ok(Err(refused)) = commands.call(move |engine| engine.control(control)) {
                    tracing::warn!(%refused, "a command of the page");
                }
            });
            Ok(())
        };
        let dash = Dash::start(address, Box::new(carry_out)).context("--dash: the page cannot be served")?;
        let url = dash.url();
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = std::thread::spawn(move || follow(dash, &subject, &handle, &stopped));
        Ok((Self { stop, thread: Some(thread) }, url))
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("the dashboard has failed");
        }
    }
}

fn control(command: &LiveCommand) -> Result<Control, String> {
    let number = |name: &str| {
        let number = name.strip_prefix("drive-").and_then(|number| number.parse::<u16>().ok());
        number.map(DriveId::new).ok_or_else(|| format!("there is no drive {name:?}"))
    };
    Ok(match command {
        LiveCommand::Pull { drive } => Control::Pull { drive: number(drive)? },
        LiveCommand::Insert { drive } => Control::Insert { drive: number(drive)? },
        LiveCommand::Power { on: true } => Control::PowerOn,
        LiveCommand::Power { on: false } => Control::PowerOff,
        LiveCommand::Link { drive, up } => Control::Link { drive: number(drive)?, up: *up },
        LiveCommand::Age { drive, raw_bit_error_rate } => {
            Control::Age { drive: number(drive)?, raw_bit_error_rate: *raw_bit_error_rate }
        }
        LiveCommand::Harvest { on } => Control::Harvest { on: *on },
    })
}

/// Takes figures every [`STEP`] until told to stop.
fn follow(mut dash: Dash, subject: &Subject, handle: &Handle, stop: &AtomicBool) {
    let began = Instant::now();
    let mut steps: Vec<Gauges> = Vec::with_capacity(STEPS);
    let mut past = Past::default();
    let mut due = STEP;
    while !stop.load(Ordering::Relaxed) {
        std::thread::sleep(due.saturating_sub(began.elapsed()));
        due = began.elapsed().max(due) + STEP;
        let taken = handle.call(|engine| {
            let gauges = engine.gauges(Reader::Dashboard);
            let late = &engine.lateness().answers;
            let lateness = Lateness { p50: late.percentile_us(0.5), p99: late.percentile_us(0.99), max: late.max_us() };
            (gauges, lateness, engine.connections())
        });
        // The engine has ended.
        let Ok((gauges, lateness, connections)) = taken else { break };
        steps.push(gauges);
        if steps.len() == STEPS {
            let snapshot = past.snapshot(&steps, lateness, began.elapsed(), subject);
            dash.publish(Snapshot { connections, ..snapshot });
            steps.clear();
        }
    }
    dash.stop();
}

/// State from earlier snapshots.
#[derive(Default)]
struct Past {
    number: u64,
    events: u64,
    states: Vec<DriveState>,
    lent: BTreeSet<(DriveId, DriveId)>,
    latency_seconds: Vec<f64>,
    harvests: Option<bool>,
}

impl Past {
    fn snapshot(&mut self, steps: &[Gauges], lateness: Lateness, wall: Duration, subject: &Subject) -> Snapshot {
        let (Some(first), Some(last)) = (steps.first(), steps.last()) else { return Snapshot::default() };
        let seconds: f64 = steps.iter().map(|step| step.span.as_secs_f64()).sum();
        let begin = first.at.as_secs_f64() - first.span.as_secs_f64();
        let count = last.drives.len();
        self.latency_seconds.resize(count, 0.0);
        let mut whole = first.clone();
        steps[1..].iter().for_each(|step| whole.absorb(step));
        let of_drive = |drive: usize| steps.iter().map(move |step| (&step.drives[drive], step.span.as_secs_f64()));
        let figures = whole.drives.iter().zip(&mut self.latency_seconds).enumerate();
        let drives: Vec<DriveSnapshot> = figures
            .map(|(number, (drive, latency_seconds))| {
                *latency_seconds += drive.latency.mean_us() * drive.latency.count() as f64 / 1e6;
                drive_snapshot(number, drive, seconds, *latency_seconds, subject)
            })
            .collect();
        self.number += 1;
        Snapshot {
            number: self.number,
            scenario: subject.scenario.clone(),
            time_seconds: last.at.as_secs_f64(),
            wall_seconds: wall.as_secs_f64(),
            interval_seconds: seconds,
            pace: match subject.tempo {
                Tempo::Scaled(scale) => Some(scale),
                Tempo::Off => None,
            },
            harvest: last.harvests,
            segment_mib: last.segment_bytes as f64 / 1_048_576.0,
            lending: lending(&whole),
            lateness_us: lateness,
            noise_us: subject.noise_us,
            events: self.events(last, &drives),
            points: Points {
                begin_seconds: begin,
                step_seconds: seconds / steps.len() as f64,
                drives: (0..count).map(|drive| points(of_drive(drive))).collect(),
            },
            drives,
            ..Snapshot::default()
        }
    }

    /// Changes since the snapshot before.
    fn events(&mut self, now: &Gauges, drives: &[DriveSnapshot]) -> Vec<LiveEvent> {
        let mut found = Vec::new();
        self.states.resize(drives.len(), DriveState::Ready);
        for (drive, before) in drives.iter().zip(&mut self.states) {
            let before = std::mem::replace(before, drive.state);
            if before != drive.state {
                let (kind, text) = match drive.state {
                    DriveState::Ready => (LiveEventKind::Back, "takes commands again"),
                    DriveState::Resetting => (LiveEventKind::Back, "starts"),
                    DriveState::Unlinked => (LiveEventKind::Lost, "has lost its link"),
                    DriveState::Away => (LiveEventKind::Lost, "was pulled out"),
                    DriveState::Off => (LiveEventKind::Lost, "has lost its power"),
                };
                found.push((kind, Some(drive.name.clone()), format!("{} {text}", drive.name)));
            }
        }
        let lent: BTreeSet<(DriveId, DriveId)> = now
            .processor_lent
            .iter()
            .filter(|loan| loan.cores > CORES_LEAST)
            .map(|loan| (loan.lender, loan.borrower))
            .collect();
        for (pairs, text) in
            [(lent.difference(&self.lent), "lends cores to"), (self.lent.difference(&lent), "no longer lends cores to")]
        {
            for &(lender, borrower) in pairs {
                let name = drives[lender.index()].name.clone();
                let text = format!("{name} {text} {}", drives[borrower.index()].name);
                found.push((LiveEventKind::Lending, Some(name), text));
            }
        }
        self.lent = lent;
        if self.harvests.replace(now.harvests).is_some_and(|before| before != now.harvests) {
            let text = if now.harvests { "drives may lend" } else { "drives may not lend" };
            found.push((LiveEventKind::Setting, None, text.to_owned()));
        }
        found
            .into_iter()
            .map(|(kind, drive, text)| {
                self.events += 1;
                LiveEvent { number: self.events, time_seconds: now.at.as_secs_f64(), kind, drive, text }
            })
            .collect()
    }
}

fn drive_snapshot(
    number: usize,
    drive: &DriveGauges,
    seconds: f64,
    latency_seconds: f64,
    subject: &Subject,
) -> DriveSnapshot {
    let per_second = |amount: u64| if seconds > 0.0 { amount as f64 / seconds } else { 0.0 };
    let health = &drive.health;
    DriveSnapshot {
        name: format!("drive-{number}"),
        nqn: subject.nqns.get(number).cloned().unwrap_or_default(),
        state: match drive.presence {
            _ if drive.pulled => DriveState::Away,
            Presence::Ready => DriveState::Ready,
            Presence::NoPower => DriveState::Off,
            Presence::NoLink => DriveState::Unlinked,
            Presence::Starting => DriveState::Resetting,
        },
        read_bytes_per_s: per_second(drive.read_bytes),
        write_bytes_per_s: per_second(drive.write_bytes),
        iops: per_second(drive.ios),
        latency_us: LatencySummary::from(&drive.latency),
        processor_utilization: drive.processor,
        lent_utilization: drive.lent,
        die_utilization: drive.die,
        bus_utilization: drive.bus,
        dram_utilization: drive.memory,
        mapping_miss_ratio: drive.miss_ratio(),
        redirected_share: drive.redirected,
        wear_percent: 100.0 * health.used(subject.endurance_erases),
        spare_percent: 100.0 * health.spare(),
        media_errors: health.media_errors,
        queue_depth: drive.depth,
        totals: DriveTotals {
            reads: health.reads,
            writes: health.writes,
            read_bytes: health.read_bytes,
            write_bytes: health.write_bytes,
            latency_seconds,
        },
    }
}

fn points<'a>(steps: impl Iterator<Item = (&'a DriveGauges, f64)>) -> DrivePoints {
    let mut points = DrivePoints::default();
    for (drive, seconds) in steps {
        let per_second = |amount: u64| if seconds > 0.0 { amount as f64 / seconds } else { 0.0 };
        points.read_bytes_per_s.push(per_second(drive.read_bytes));
        points.write_bytes_per_s.push(per_second(drive.write_bytes));
        points.latency_mean_us.push((drive.latency.count() > 0).then(|| drive.latency.mean_us()));
        points.processor_utilization.push(drive.processor);
        points.lent_utilization.push(drive.lent);
    }
    points
}

fn lending(whole: &Gauges) -> Vec<Loan> {
    let cores = whole.processor_lent.iter().filter(|lent| lent.cores > CORES_LEAST).map(|lent| Loan {
        resource: LentResource::Processor,
        lender: u32::from(lent.lender.get()),
        borrower: u32::from(lent.borrower.get()),
        amount: lent.cores,
    });
    let mib = whole.segment_bytes as f64 / 1_048_576.0;
    let memory = whole.memory_lent.iter().map(|lent| Loan {
        resource: LentResource::Memory,
        lender: u32::from(lent.lender.get()),
        borrower: u32::from(lent.borrower.get()),
        amount: f64::from(lent.segments) * mib,
    });
    cores.chain(memory).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use flashyard_kernel::{Pace, Wake};
    use flashyard_scenario::{NoFiles, live, resolve};
    use flashyard_served::Session;
    use flashyard_units::{SimSpan, SimTime};

    /// The four drives of `scenarios/faults`, and the facts of them for the page.
    struct Watched {
        session: Session,
        past: Past,
        subject: Subject,
        now: SimTime,
    }

    /// Lets happen what is due by then.
    struct Until(SimTime);

    impl Pace for Until {
        fn wait_until(&mut self, deadline: SimTime) -> Wake {
            if deadline <= self.0 { Wake::Due { late: SimSpan::ZERO } } else { Wake::Input { now: self.0 } }
        }
    }

    impl Watched {
        fn new() -> Self {
            let text = include_str!("../../../../scenarios/faults/scenario.toml");
            let scenario = resolve(text, "faults", &[], &NoFiles).expect("the scenario is whole").scenario;
            let subject = Subject {
                scenario: scenario.name.clone(),
                nqns: (0..4).map(|drive| format!("nqn.2026-11.org.example:{drive}")).collect(),
                tempo: Tempo::Scaled(1.0),
                endurance_erases: 3000,
                noise_us: 1.0,
            };
            let world = live(&scenario, &NoFiles, None).expect("it can serve");
            let mut watched = Self {
                session: Session::new(Box::new(world), None),
                past: Past::default(),
                subject,
                now: SimTime::ZERO,
            };
            watched.look();
            watched
        }

        /// The snapshot after some time without requests.
        fn look(&mut self) -> Snapshot {
            self.now += SimSpan::from_ms(100);
            self.session.run(&mut Until(self.now), u64::MAX);
            let gauges = self.session.world_mut().gauges(self.now);
            self.past.snapshot(&[gauges], Lateness::default(), Duration::ZERO, &self.subject)
        }

        /// States and events after the page has given a command.
        fn after(&mut self, command: &LiveCommand) -> (Vec<DriveState>, Vec<String>) {
            let control = control(command).expect("it is one");
            self.session.control(self.now, control).expect("it can be done");
            let snapshot = self.look();
            let texts = snapshot.events.into_iter().map(|event| event.text).collect();
            (snapshot.drives.iter().map(|drive| drive.state).collect(), texts)
        }
    }

    #[test]
    fn a_drive_that_is_pulled_is_away_and_one_without_power_is_off() {
        use DriveState::{Away, Off, Ready};
        let mut watched = Watched::new();
        let drive = || "drive-1".to_owned();
        let pulled = watched.after(&LiveCommand::Pull { drive: drive() });
        assert_eq!(pulled, (vec![Ready, Away, Ready, Ready], vec!["drive-1 was pulled out".to_owned()]));
        let (states, events) = watched.after(&LiveCommand::Power { on: false });
        assert_eq!(states, [Off, Away, Off, Off]);
        assert_eq!(events, ["drive-0 has lost its power", "drive-2 has lost its power", "drive-3 has lost its power"]);
        let (states, _) = watched.after(&LiveCommand::Insert { drive: drive() });
        assert!(!states.contains(&Away), "{states:?}");
        watched.after(&LiveCommand::Pull { drive: drive() });
        // Power for all puts back what was pulled.
        let (states, _) = watched.after(&LiveCommand::Power { on: true });
        assert!(!states.contains(&Away) && !states.contains(&Off), "{states:?}");
    }
}
