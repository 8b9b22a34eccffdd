//! `flashyard queues`: LeapIO's runtime over queue pairs in shared memory, and a guest that measures it.

use crate::byte_count::bytes;
use crate::{Outcome, output, parallel};
use anyhow::{Context, Result, bail, ensure};
use clap::{Args, Subcommand};
use flashyard_live::SocketPath;
use flashyard_shared_queues::{Guest, Options, serve};
use flashyard_stats::LatencyHistogram;
use flashyard_units::SimSpan;
use serde_json::json;
use std::path::PathBuf;
use std::time::{Duration, Instant};

#[derive(Debug, Subcommand)]
pub(crate) enum QueuesCommand {
    /// Poll queue pairs of guests that connect to a socket, over a drive in memory
    Serve(ServeQueues),
    /// Be a guest in a closed loop, and measure
    Bench(BenchQueues),
}

#[derive(Debug, Args)]
pub(crate) struct ServeQueues {
    /// Socket for guests
    socket: PathBuf,
    /// Size of the drive, of which each guest has an equal part
    #[arg(long, value_parser = bytes, default_value = "256MiB")]
    memory: u64,
    /// Guests at once, 1 to 256
    #[arg(long, default_value_t = 4)]
    guests: u32,
    /// Services that touch no data between guests and the drive, 0 to 64
    #[arg(long, default_value_t = 0)]
    services: u32,
    /// Nanoseconds that an access to a guest's queue takes beside its own, as from a card
    #[arg(long, value_name = "NS", default_value_t = 0)]
    far_access: u64,
    /// Entries that one such access brings, 1 to 64
    #[arg(long, default_value_t = 16)]
    fetch: usize,
    /// Sleep until a guest kicks, and wake guests by interrupts, in place of polling
    #[arg(long)]
    kicked: bool,
    /// End after this many seconds
    #[arg(long)]
    seconds: Option<f64>,
}

#[derive(Debug, Args)]
pub(crate) struct BenchQueues {
    /// Socket of the server
    socket: PathBuf,
    /// Commands in flight, 1 to 4096
    #[arg(long, default_value_t = 1)]
    depth: u32,
    /// Seconds
    #[arg(long, default_value_t = 2.0)]
    seconds: f64,
    /// Blocks of 4 KiB of a command, 1 to 256
    #[arg(long, default_value_t = 1)]
    blocks: u32,
    /// Percent of reads; the others are writes
    #[arg(long, default_value_t = 100)]
    reads: u32,
    /// Write everything first, and compare every byte that is read
    #[arg(long)]
    verify: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(command: &QueuesCommand) -> Result<Outcome> {
    match command {
        QueuesCommand::Serve(options) => serve_queues(options),
        QueuesCommand::Bench(options) => bench(options),
    }
}

fn serve_queues(options: &ServeQueues) -> Result<Outcome> {
    let shown = options.socket.display();
    let (_name, listener) = SocketPath::listen(&options.socket).with_context(|| shown.to_string())?;
    parallel::catch_interrupt()?;
    let seconds = options.seconds.map(Duration::try_from_secs_f64).transpose().context("--seconds")?;
    let begun = Instant::now();
    let served = serve(
        listener,
        Options {
            blocks: options.memory / 4096,
            guests: options.guests,
            services: options.services,
            fetch: options.fetch,
            far_access: Duration::from_nanos(options.far_access),
            kicked: options.kicked,
        },
        || parallel::interrupted() || seconds.is_some_and(|seconds| begun.elapsed() >= seconds),
    )?;
    let each = served.busy.as_nanos() as f64 / served.completed.max(1) as f64;
    output::line(&format!(
        "{} guests, {} commands, {} of them failed, {} accesses to queues; {each:.0} ns of the runtime for each command",
        served.guests, served.completed, served.failed, served.fetches
    ));
    Ok(Outcome::Done)
}

/// A closed loop of random commands.
struct Loop {
    guest: Guest,
    blocks: u32,
    reads: u32,
    verify: bool,
    /// Random numbers: of no seed that matters.
    state: u64,
    /// Commands in flight by identifier: first block, when, whether it reads.
    slots: Vec<(u64, Instant, bool)>,
    buffer: Vec<u8>,
}

impl Loop {
    fn random(&mut self, bound: u64) -> u64 {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        self.state % bound
    }

    /// The byte that every block is filled with, so that any two writes of it are alike.
    fn fill(block: u64) -> u8 {
        (block.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 56) as u8
    }

    fn place(&self, id: u16) -> usize {
        usize::from(id) * self.blocks as usize * 4096
    }

    fn write(&mut self, first: u64, id: u16) -> Result<()> {
        let at = self.place(id);
        if self.verify {
            for block in 0..u64::from(self.blocks) {
                let bytes = [Self::fill(first + block); 4096];
                self.guest.set_data(at + block as usize * 4096, &bytes);
            }
        }
        self.slots[usize::from(id)] = (first, Instant::now(), false);
        self.guest.write(first, self.blocks, id, at as u64).context("the server has ended")
    }

    fn read(&mut self, first: u64, id: u16) -> Result<()> {
        let at = self.place(id);
        self.slots[usize::from(id)] = (first, Instant::now(), true);
        self.guest.read(first, self.blocks, id, at as u64).context("the server has ended")
    }

    fn next(&mut self, id: u16) -> Result<()> {
        let first = self.random(self.guest.blocks() - u64::from(self.blocks) + 1);
        if self.random(100) < u64::from(self.reads) { self.read(first, id) } else { self.write(first, id) }
    }

    /// The next completion: its identifier and how long it took.
    fn end(&mut self) -> Result<(u16, Duration)> {
        let completed = self.guest.wait().context("the server has ended")?;
        ensure!(completed.status.is_success(), "a command failed: {:?}", completed.status);
        let (first, begun, is_read) = self.slots[usize::from(completed.id)];
        let took = begun.elapsed();
        if self.verify && is_read {
            let at = self.place(completed.id);
            self.buffer.resize(self.blocks as usize * 4096, 0);
            self.guest.data(at, &mut self.buffer);
            for (block, bytes) in (first..).zip(self.buffer.chunks(4096)) {
                let expected = Self::fill(block);
                ensure!(bytes.iter().all(|&byte| byte == expected), "block {block} has other bytes than were written");
            }
        }
        Ok((completed.id, took))
    }
}

fn bench(options: &BenchQueues) -> Result<Outcome> {
    let BenchQueues { depth, blocks, reads, verify, .. } = *options;
    ensure!((1..=4096).contains(&depth), "--depth is {depth}, give 1 to 4096");
    ensure!((1..=256).contains(&blocks), "--blocks is {blocks}, give 1 to 256");
    ensure!(reads <= 100, "--reads is {reads}, give 0 to 100");
    let entries = (depth + 1).next_power_of_two();
    let data = u64::from(depth) * u64::from(blocks) * 4096;
    let shown = options.socket.display();
    let guest = Guest::connect(&options.socket, entries, data).with_context(|| shown.to_string())?;
    if guest.blocks() < u64::from(blocks) {
        bail!("the namespace has {} blocks, and --blocks is {blocks}", guest.blocks());
    }
    let slots = vec![(0, Instant::now(), false); depth as usize];
    let mut run = Loop { guest, blocks, reads, verify, state: 0x1234_5678_9ABC_DEF1, slots, buffer: Vec::new() };
    if verify {
        let last = run.guest.blocks() - u64::from(blocks);
        let firsts = (0..last).step_by(blocks as usize).chain([last]);
        for first in firsts {
            run.write(first, 0)?;
            run.end()?;
        }
    }
    let length = Duration::try_from_secs_f64(options.seconds).context("--seconds")?;
    let (mut latency, before, begun) = (LatencyHistogram::new(), run.guest.counts(), Instant::now());
    for id in 0..depth as u16 {
        run.next(id)?;
    }
    let mut completed = 0_u64;
    let elapsed = loop {
        let (id, took) = run.end()?;
        completed += 1;
        latency.record(SimSpan::from_ns(took.as_nanos() as u64));
        let elapsed = begun.elapsed();
        if elapsed >= length {
            break elapsed;
        }
        run.next(id)?;
    };
    let after = run.guest.counts();
    let busy = (after[1] - before[1]) as f64 / (after[0] - before[0]).max(1) as f64;
    let rate = completed as f64 / elapsed.as_secs_f64();
    let (mean, p50, p99) = (latency.mean_us(), latency.percentile_us(0.5), latency.percentile_us(0.99));
    if options.json {
        output::json(&json!({
            "iops": rate,
            "latency_us": { "mean": mean, "p50": p50, "p99": p99 },
            "runtime_ns": busy,
            "verified": verify,
        }));
    } else {
        output::line(&format!(
            "{rate:.0} commands/s, {mean:.2} us mean, {p50:.2} us p50, {p99:.2} us p99; {busy:.0} ns of the runtime for each"
        ));
    }
    Ok(Outcome::Done)
}
