//! The runs of the study and how each is set up.

use crate::room::run::figures;
use crate::room::section::config;
use crate::stack::{Part, Stack};
use crate::{CAUSES, ServerConfig, ServerFigures};
use flashyard_blk::Operation;
use flashyard_describe::reproduce::NamedRun;
use flashyard_describe::{Files, PatternName, Scenario, ScenarioError, Size, Time};
use flashyard_report::text_table;
use flashyard_stats::CAUSE_COUNT;
use flashyard_units::{Bytes, Named, SimSpan};
use serde::{Deserialize, Serialize};

/// State in which drives begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// Written once in sequence.
    Filled,
    /// In the steady state of random overwrites.
    Steady,
}

/// One run: all virtual drives under the same load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StackRun {
    pub(super) stack: Stack,
    /// Virtual drives.
    pub(super) drives: u32,
    /// Whether requests are reads; writes otherwise.
    pub(super) reads: bool,
    /// KiB of a request: 4 at random, 128 in sequence.
    pub(super) kib: u32,
    /// Requests in flight of each virtual drive.
    pub(super) depth: u32,
    pub(super) state: State,
}

/// Figures of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct StackRecord {
    /// Name of the run.
    pub(super) name: String,
    /// Thousands of requests a second, of all virtual drives.
    pub(super) thousand_per_second: f64,
    /// 10^9 bytes a second, of all virtual drives.
    pub(super) gigabytes_per_second: f64,
    /// Mean latency in microseconds.
    pub(super) mean_us: f64,
    /// Latency in microseconds that 99, 99.9 and 99.99 of 100 requests do not exceed.
    pub(super) percentiles_us: [f64; 3],
    /// Mean time in microseconds in the guest, on the host, in a card, in the network, waiting for one of them, and held by a service.
    pub(super) parts_us: [f64; 6],
    /// Cores of the host.
    pub(super) host_cores: f64,
}

impl StackRun {
    fn scenario(&self, base: &Scenario) -> Scenario {
        let mut scenario = base.clone();
        let is_small = self.kib == 4;
        scenario.drive.drawn = self.state == State::Steady;
        let load = &mut scenario.workload;
        load.pattern = Some(if is_small { PatternName::Uniform } else { PatternName::Sequential });
        load.size = Some(Size(Bytes::new(u64::from(self.kib) * 1024)));
        load.read_share = Some(if self.reads { 1.0 } else { 0.0 });
        load.depth = Some(self.depth);
        // [A] a steady drive for the rhythm of its collection, others for ten thousand requests
        let (warmup, measure) = match (self.state, self.drives) {
            (State::Steady, _) => (1000, 5000),
            (State::Filled, 1) => (10, 200),
            (State::Filled, _) => (10, 50),
        };
        scenario.run.warmup = Some(Time(SimSpan::from_ms(warmup)));
        scenario.run.measure = Some(Time(SimSpan::from_ms(measure)));
        scenario
    }

    fn record(&self, figures: &ServerFigures) -> StackRecord {
        let latency = figures.latency();
        let mean = figures.split.mean().parts_us;
        StackRecord {
            name: self.name(),
            thousand_per_second: figures.per_second(figures.ios()) / 1e3,
            gigabytes_per_second: figures.per_second(figures.bytes()) / 1e9,
            mean_us: latency.mean_us(),
            percentiles_us: [0.99, 0.999, 0.9999].map(|share| latency.percentile_us(share)),
            parts_us: std::array::from_fn(|part| mean[CAUSE_COUNT + part]),
            host_cores: figures.host_cores,
        }
    }
}

impl StackRecord {
    /// Mean time in a part of the stack, in microseconds.
    pub(super) fn part_us(&self, part: Part) -> f64 {
        self.parts_us[part as usize]
    }
}

impl NamedRun for StackRun {
    type Base = Scenario;
    type Record = StackRecord;

    fn name(&self) -> String {
        let operation = if self.reads { Operation::Read } else { Operation::Write };
        let order = if self.kib == 4 { "random" } else { "sequential" };
        let state = match self.state {
            State::Filled => "filled",
            State::Steady => "steady",
        };
        let Self { stack, drives, kib, depth, .. } = self;
        let (stack, operation) = (stack.name(), operation.name());
        format!("{stack}, virtual drives {drives}, {order} {operation} of {kib} KiB, depth {depth}, {state}")
    }

    fn carry_out(
        &self,
        base: &Scenario,
        files: &'static dyn Files,
        observer: &mut dyn FnMut(f64) -> bool,
    ) -> Result<Option<StackRecord>, ScenarioError> {
        let scenario = self.scenario(base);
        let config = ServerConfig { drives: self.drives, ..config(&scenario, self.stack)? };
        let finished = ScenarioError::unless_stopped(figures(&scenario, config, None, files, observer))?;
        Ok(finished.map(|figures| self.record(&figures)))
    }

    fn table(records: &[StackRecord]) -> String {
        let header = ["run", "requests\nk/s", "rate\nGB/s", "mean\nus", "p99\nus", "p99.9\nus", "host\ncores"];
        let row = |record: &StackRecord| {
            let [p99, p999, _] = record.percentiles_us;
            let mut row = vec![record.name.clone(), format!("{:.1}", record.thousand_per_second)];
            row.push(format!("{:.2}", record.gigabytes_per_second));
            row.extend([record.mean_us, p99, p999, record.host_cores].map(|value| format!("{value:.1}")));
            row
        };
        text_table(&header, records.iter().map(row).collect(), 160)
    }
}

const _: () = assert!(CAUSES == CAUSE_COUNT + 6, "a record has a place for each part of a stack");
