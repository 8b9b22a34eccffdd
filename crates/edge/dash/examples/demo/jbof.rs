//! A made-up enclosure: busy drives want more cores than they have and borrow from the idle ones.

use flashyard_report::{
    DrivePoints, DriveSnapshot, DriveState, DriveTotals, LatencySummary, Lateness, LentResource, LiveCommand,
    LiveEvent, LiveEventKind, Loan, Points, Snapshot,
};

/// Cores of a drive.
const CORES: f64 = 3.0;
/// Length of a step.
pub(crate) const STEP_SECONDS: f64 = 0.01;
/// Steps in a snapshot.
pub(crate) const STEPS: u32 = 10;
const SEGMENT_MIB: f64 = 64.0;
/// Bytes a second that a core reads and writes.
const BYTES_PER_CORE: [f64; 2] = [1.1e9, 0.16e9];
const REQUEST_BYTES: f64 = 16_384.0;
/// A drive that came back serves after this time.
const RESET_SECONDS: f64 = 0.5;

/// The enclosure as it is now.
pub(crate) struct Jbof {
    drives: Vec<DriveSnapshot>,
    busy: usize,
    /// When a drive that comes back serves again.
    ready_at: Vec<f64>,
    /// Segments lent, by lender and borrower.
    segments: Vec<Vec<f64>>,
    steps: u64,
    harvest: bool,
    number: u64,
    events: Vec<LiveEvent>,
    told: u64,
    seed: u64,
}

/// Cores in one step, by drive, and lent by lender and borrower.
struct Step {
    wanted: Vec<f64>,
    loans: Vec<Vec<f64>>,
}

impl Step {
    fn lent(&self, lender: usize) -> f64 {
        self.loans[lender].iter().sum()
    }

    /// Cores that serve a drive: its own, and borrowed ones.
    fn served(&self, drive: usize) -> f64 {
        self.wanted[drive].min(CORES) + self.loans.iter().map(|row| row[drive]).sum::<f64>()
    }

    /// Mean latency of a drive's requests in microseconds: more work waits longer, missing cores longer still.
    fn latency_us(&self, drive: usize) -> f64 {
        let wanted = self.wanted[drive];
        let missing = if wanted > 0.0 { 1.0 - self.served(drive) / wanted } else { 0.0 };
        70.0 + 18.0 * wanted + 420.0 * missing.max(0.0)
    }

    fn utilization(&self, drive: usize) -> f64 {
        ((self.wanted[drive].min(CORES) + self.lent(drive)) / CORES).min(1.0)
    }
}

impl Jbof {
    pub(crate) fn new(count: usize, busy: usize) -> Self {
        let drive = |index: usize| {
            let name = format!("{}-{index}", if index < busy { "busy" } else { "idle" });
            let nqn = format!("nqn.2026-01.example.flashyard:demo:{name}");
            DriveSnapshot { name, nqn, wear_percent: 4.0, spare_percent: 100.0, ..DriveSnapshot::default() }
        };
        let mut jbof = Self {
            drives: (0..count).map(drive).collect(),
            busy,
            ready_at: vec![0.0; count],
            segments: vec![vec![0.0; count]; count],
            steps: 0,
            harvest: true,
            number: 0,
            events: Vec::new(),
            told: 0,
            seed: 7,
        };
        jbof.tell(LiveEventKind::Connection, None, format!("{busy} hosts connected"));
        jbof
    }

    fn now(&self) -> f64 {
        self.steps as f64 * STEP_SECONDS
    }

    /// A number from 0 to 1 (after Park and Miller).
    fn random(&mut self) -> f64 {
        self.seed = self.seed * 48_271 % 2_147_483_647;
        self.seed as f64 / 2_147_483_647.0
    }

    fn tell(&mut self, kind: LiveEventKind, drive: Option<String>, text: String) {
        self.told += 1;
        self.events.push(LiveEvent { number: self.told, time_seconds: self.now(), kind, drive, text });
    }

    /// Does what a command asks for; a command that does not fit the state changes nothing.
    pub(crate) fn follow(&mut self, command: &LiveCommand) {
        use DriveState::{Away, Off, Ready, Resetting, Unlinked};
        let (from, to, words): (&[DriveState], DriveState, &str) = match command {
            LiveCommand::Pull { .. } => (&[Ready, Resetting], Away, "pulled"),
            LiveCommand::Insert { .. } => (&[Away], Resetting, "put back"),
            LiveCommand::Power { on: false } => (&[Ready, Resetting, Unlinked], Off, "power of all drives cut"),
            LiveCommand::Power { on: true } => (&[Off], Resetting, "power restored"),
            LiveCommand::Link { up: false, .. } => (&[Ready], Unlinked, "lost its link"),
            LiveCommand::Link { up: true, .. } => (&[Unlinked], Ready, "has its link again"),
            LiveCommand::Age { raw_bit_error_rate, .. } => {
                let text = format!("raw bit error rate is {raw_bit_error_rate:e}");
                return self.tell(LiveEventKind::Setting, command.drive().map(str::to_owned), text);
            }
            LiveCommand::Harvest { on } => {
                self.harvest = *on;
                let text = if *on { "harvesting on" } else { "harvesting off" };
                return self.tell(LiveEventKind::Setting, None, text.to_owned());
            }
        };
        let now = self.now();
        let mut changed = false;
        for (drive, ready_at) in self.drives.iter_mut().zip(&mut self.ready_at) {
            let named = command.drive().is_none_or(|name| name == drive.name);
            if named && from.contains(&drive.state) {
                (drive.state, *ready_at, changed) = (to, now + RESET_SECONDS, true);
            }
        }
        if changed {
            let kind = if matches!(to, Ready | Resetting) { LiveEventKind::Back } else { LiveEventKind::Lost };
            let drive = command.drive().map(str::to_owned);
            let text = drive.as_ref().map_or_else(|| words.to_owned(), |name| format!("{name} {words}"));
            self.tell(kind, drive, text);
        }
    }

    /// The next 100 ms.
    pub(crate) fn next(&mut self, wall_seconds: f64) -> Snapshot {
        let begin_seconds = self.now();
        let steps: Vec<Step> = (0..STEPS).map(|_| self.step()).collect();
        self.lend_memory();
        for drive in 0..self.drives.len() {
            self.sum(drive, &steps);
        }
        self.number += 1;
        let lateness_us = Lateness {
            p50: 11.0 + 2.0 * self.random(),
            p99: 60.0 + 30.0 * self.random(),
            max: 140.0 + 200.0 * self.random(),
        };
        let serving = |drive: &&DriveSnapshot| drive.state == DriveState::Ready;
        Snapshot {
            number: self.number,
            scenario: "Made-up enclosure".to_owned(),
            time_seconds: self.now(),
            wall_seconds,
            interval_seconds: f64::from(STEPS) * STEP_SECONDS,
            pace: Some(1.0),
            harvest: self.harvest,
            segment_mib: SEGMENT_MIB,
            drives: self.drives.clone(),
            lending: self.loans(&steps),
            lateness_us,
            noise_us: 90.0 + 60.0 * self.random(),
            connections: self.drives[..self.busy].iter().filter(serving).count() as u32,
            events: std::mem::take(&mut self.events),
            points: Points {
                begin_seconds,
                step_seconds: STEP_SECONDS,
                drives: (0..self.drives.len()).map(|drive| points(drive, &steps)).collect(),
            },
        }
    }

    fn step(&mut self) -> Step {
        self.steps += 1;
        let now = self.now();
        for index in 0..self.drives.len() {
            if self.drives[index].state == DriveState::Resetting && now >= self.ready_at[index] {
                self.drives[index].state = DriveState::Ready;
                let name = self.drives[index].name.clone();
                self.tell(LiveEventKind::Back, Some(name.clone()), format!("{name} serves again"));
            }
        }
        let up: Vec<bool> = self.drives.iter().map(|drive| drive.state == DriveState::Ready).collect();
        let wanted: Vec<f64> =
            (0..up.len()).map(|index| if up[index] && index < self.busy { self.load(index) } else { 0.0 }).collect();
        let is_lender = |index: usize| up[index] && index >= self.busy && self.harvest;
        let mut free: Vec<f64> = (0..up.len()).map(|index| if is_lender(index) { 0.85 * CORES } else { 0.0 }).collect();
        let mut loans = vec![vec![0.0; up.len()]; up.len()];
        for (borrower, cores) in wanted.iter().enumerate() {
            let mut open = cores - CORES;
            // Each busy drive begins with another lender, so that not all ask the same.
            for lender in (0..up.len()).map(|turn| (borrower + self.busy + turn) % up.len()) {
                let given = open.min(free[lender]).min(1.4);
                if given > 0.02 {
                    loans[lender][borrower] = given;
                    free[lender] -= given;
                    open -= given;
                }
            }
        }
        Step { wanted, loans }
    }

    /// Cores that a busy drive wants: a slow wave with bursts.
    fn load(&mut self, index: usize) -> f64 {
        let (now, place) = (self.now(), index as f64);
        let wave = 3.4 + 1.1 * (now / (5.0 + place) + 2.1 * place).sin();
        let burst = if (now + 3.7 * place) % 17.0 < 4.0 { 1.3 } else { 0.0 };
        ((wave + burst) * (0.97 + 0.06 * self.random())).max(0.4)
    }

    /// Every lender gives two borrowers a segment at a time, and takes them back when one of the two is gone.
    fn lend_memory(&mut self) {
        let now = self.now();
        let ready = |drive: &DriveSnapshot| drive.state == DriveState::Ready;
        for lender in self.busy..self.drives.len() {
            for borrower in [lender % self.busy, (lender + 2) % self.busy] {
                let both = self.harvest && ready(&self.drives[lender]) && ready(&self.drives[borrower]);
                let most = 4.0 + (now / 9.0 + lender as f64).sin().round();
                let held = self.segments[lender][borrower];
                let grown = if self.number.is_multiple_of(4) { held + 1.0 } else { held };
                self.segments[lender][borrower] = if both { grown.min(most) } else { 0.0 };
                if held == 0.0 && self.segments[lender][borrower] > 0.0 {
                    let [from, to] = [lender, borrower].map(|index| self.drives[index].name.clone());
                    let text = format!("{from} begins to lend {to} memory");
                    self.tell(LiveEventKind::Lending, Some(to), text);
                }
            }
        }
    }

    /// Figures of a drive over the steps.
    fn sum(&mut self, index: usize, steps: &[Step]) {
        let mean = |figure: &dyn Fn(&Step) -> f64| steps.iter().map(figure).sum::<f64>() / steps.len() as f64;
        let cores = mean(&|step| step.served(index));
        let middle = mean(&|step| step.latency_us(index));
        let [read, write] = BYTES_PER_CORE.map(|bytes| cores * bytes);
        let borrowed: f64 = self.segments.iter().map(|row| row[index]).sum();
        let lent: f64 = self.segments[index].iter().sum();
        let [tail, far, max] = [2.6, 4.0, 6.0].map(|factor| middle * (factor + 0.15 * factor * self.random()));
        let (is_busy, has_load) = (index < self.busy, cores > 0.0);
        let drive = &mut self.drives[index];
        let up = f64::from(u8::from(drive.state == DriveState::Ready));
        let seconds = f64::from(STEPS) * STEP_SECONDS;
        let totals = drive.totals;
        drive.read_bytes_per_s = read;
        drive.write_bytes_per_s = write;
        drive.iops = (read + write) / REQUEST_BYTES;
        drive.latency_us = match has_load {
            true => LatencySummary { mean: middle, p50: 0.8 * middle, p99: tail, p999: far, p9999: max, max },
            false => LatencySummary::default(),
        };
        drive.processor_utilization = (mean(&|step| step.utilization(index)) + 0.01 * up).min(1.0);
        drive.lent_utilization = mean(&|step| step.lent(index)) / CORES;
        drive.die_utilization = up * (0.14 * cores + 0.02);
        drive.bus_utilization = up * (0.11 * cores + 0.01);
        drive.dram_utilization = up * if is_busy { 0.96 } else { 0.12 + 0.08 * lent };
        drive.mapping_miss_ratio = has_load.then(|| 0.22 * (-borrowed / 3.0).exp());
        drive.redirected_share = if has_load { (1.0 - CORES / cores).max(0.0) } else { 0.0 };
        drive.wear_percent += write * 2e-14;
        drive.queue_depth = if has_load { 64 } else { 0 };
        drive.totals = DriveTotals {
            reads: totals.reads + (read * seconds / REQUEST_BYTES) as u64,
            writes: totals.writes + (write * seconds / REQUEST_BYTES) as u64,
            read_bytes: totals.read_bytes + (read * seconds) as u64,
            write_bytes: totals.write_bytes + (write * seconds) as u64,
            latency_seconds: totals.latency_seconds + drive.iops * seconds * middle * 1e-6,
        };
    }

    fn loans(&self, steps: &[Step]) -> Vec<Loan> {
        let count = self.drives.len();
        let pairs = (0..count).flat_map(|lender| (0..count).map(move |borrower| (lender, borrower)));
        let loans = pairs.flat_map(|(from, to)| {
            let cores = steps.iter().map(|step| step.loans[from][to]).sum::<f64>() / steps.len() as f64;
            let loan = |resource, amount| Loan { resource, lender: from as u32, borrower: to as u32, amount };
            let memory = SEGMENT_MIB * self.segments[from][to];
            [loan(LentResource::Processor, cores), loan(LentResource::Memory, memory)]
        });
        loans.filter(|loan| loan.amount > 0.0).collect()
    }
}

fn points(drive: usize, steps: &[Step]) -> DrivePoints {
    let series = |figure: &dyn Fn(&Step) -> f64| steps.iter().map(figure).collect::<Vec<f64>>();
    let latency = |step: &Step| (step.wanted[drive] > 0.0).then(|| step.latency_us(drive));
    DrivePoints {
        read_bytes_per_s: series(&|step| step.served(drive) * BYTES_PER_CORE[0]),
        write_bytes_per_s: series(&|step| step.served(drive) * BYTES_PER_CORE[1]),
        latency_mean_us: steps.iter().map(latency).collect(),
        processor_utilization: series(&|step| step.utilization(drive)),
        lent_utilization: series(&|step| step.lent(drive) / CORES),
    }
}
