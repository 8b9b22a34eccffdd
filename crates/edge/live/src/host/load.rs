//! Load from a host over the network, and what it measures.

use super::queues::{Host, HostError, Queue};
use flashyard_kernel::Rng;
use flashyard_nvme::Status;
use flashyard_nvme::nvm::{BlockRange, NvmCommand};
use flashyard_nvmf::initiator::NamespaceInfo;
use flashyard_stats::LatencyHistogram;
use flashyard_units::SimSpan;
use std::time::{Duration, Instant};

/// Where the next request goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pattern {
    /// Anywhere.
    Random,
    /// After the one before.
    Sequential,
}

/// The load asked for.
#[derive(Clone, Debug, PartialEq)]
pub struct HostLoad {
    /// Bytes of a request; a multiple of the namespace's block.
    pub request_bytes: u32,
    /// Requests under way, over all queues; as many as the queues hold where that is less.
    pub depth: usize,
    /// Share of reads, 0 to 1.
    pub reads: f64,
    /// Where requests go.
    pub pattern: Pattern,
    /// How long.
    pub span: Duration,
    /// Time before that, which is not measured.
    pub ramp: Duration,
    /// Seed of the choices.
    pub seed: u64,
}

/// The result of a load.
#[derive(Clone, Debug)]
pub struct HostReport {
    /// Requests under way.
    pub depth: usize,
    /// Requests completed in the measured time; those that failed are counted apart.
    pub requests: u64,
    /// Bytes of them.
    pub bytes: u64,
    /// Requests that failed.
    pub failed: u64,
    /// How long it was measured.
    pub span: Duration,
    /// From the submission of a request to its completion.
    pub latency: LatencyHistogram,
}

impl HostReport {
    /// Requests a second.
    pub fn iops(&self) -> f64 {
        self.requests as f64 / self.span.as_secs_f64().max(1e-9)
    }
}

struct Aim {
    rng: Rng,
    places: u64,
    next: u64,
    blocks: u32,
}

impl Aim {
    fn next(&mut self, load: &HostLoad) -> NvmCommand {
        let place = match load.pattern {
            Pattern::Random => self.rng.below(self.places),
            Pattern::Sequential => {
                self.next = (self.next + 1) % self.places;
                self.next
            }
        };
        let range = BlockRange { lba: place * u64::from(self.blocks), blocks: self.blocks };
        if load.reads >= 1.0 || self.rng.unit() < load.reads {
            NvmCommand::Read { range, fua: false }
        } else {
            NvmCommand::Write { range, fua: false }
        }
    }
}

/// Loads the first namespace of the host's controller.
///
/// Errors: a request that does not fit the namespace, a connection that fails, ten seconds without an answer.
pub fn run_host_load(host: &mut Host, load: &HostLoad) -> Result<HostReport, HostError> {
    let namespace = *host.controller().namespaces.first().ok_or(HostError::Nothing("no namespace"))?;
    if namespace.metadata_bytes > 0 {
        return Err(HostError::Nothing("no namespace without metadata, and this load sends none"));
    }
    let blocks = load.request_bytes / namespace.block_bytes.max(1);
    let places = namespace.blocks.checked_div(u64::from(blocks)).unwrap_or(0);
    if places == 0 || !load.request_bytes.is_multiple_of(namespace.block_bytes) {
        return Err(HostError::Nothing("no room for requests of that size"));
    }
    let mut aim = Aim { rng: Rng::named(load.seed, "host.load"), places, next: 0, blocks };
    let depth = load.depth.min(host.queues.iter().map(|queue| queue.machine.capacity()).sum());
    let report =
        HostReport { depth, requests: 0, bytes: 0, failed: 0, span: load.span, latency: LatencyHistogram::new() };
    let mut run = Run { report, sent: vec![Instant::now(); depth] };
    let begun = Instant::now();
    let measured_from = begun + load.ramp;
    let end = measured_from + load.span;
    let queues = host.queues.len();
    for token in 0..depth {
        run.submit(&mut host.queues[token % queues], token as u64, &namespace, load, &mut aim);
    }
    let mut heard = Instant::now();
    let mut under_way = depth;
    while under_way > 0 {
        for queue in &mut host.queues {
            queue.turn()?;
            let now = Instant::now();
            if queue.effects.completions.is_empty() {
                if now.duration_since(heard) > host.patience {
                    return Err(HostError::Silent(host.patience));
                }
                continue;
            }
            heard = now;
            let mut completions = std::mem::take(&mut queue.effects.completions);
            for completion in completions.drain(..) {
                if now >= measured_from && now < end {
                    run.count(completion.token, completion.status, now, load);
                }
                queue.effects.output.give(completion.data);
                if now < end {
                    run.submit(queue, completion.token, &namespace, load, &mut aim);
                } else {
                    under_way -= 1;
                }
            }
            queue.effects.completions = completions;
            queue.send()?;
        }
        // The admin queue keeps the controller alive.
        if run.report.requests & 0x3FF == 0 {
            host.admin.turn()?;
        }
    }
    Ok(run.report)
}

struct Run {
    report: HostReport,
    /// By token.
    sent: Vec<Instant>,
}

impl Run {
    fn submit(&mut self, queue: &mut Queue, token: u64, namespace: &NamespaceInfo, load: &HostLoad, aim: &mut Aim) {
        let operation = aim.next(load);
        let data = match operation {
            NvmCommand::Write { .. } => {
                let mut data = queue.effects.output.take();
                data.resize(load.request_bytes as usize, token as u8);
                data
            }
            _ => Vec::new(),
        };
        self.sent[token as usize] = Instant::now();
        let effects = &mut queue.effects;
        if queue.machine.submit(token, namespace.nsid, operation, data, load.request_bytes, effects).is_err() {
            debug_assert!(false, "the depth is no more than the queues hold");
        }
    }

    fn count(&mut self, token: u64, status: Status, now: Instant, load: &HostLoad) {
        if !status.is_success() {
            self.report.failed += 1;
            return;
        }
        self.report.requests += 1;
        self.report.bytes += u64::from(load.request_bytes);
        let span = now.duration_since(self.sent[token as usize]);
        self.report.latency.record(SimSpan::from_ns(span.as_nanos() as u64));
    }
}
