//! Waits of reads at a die that also works for garbage collection, against queueing theory.

use flashyard_flash::{CommandKind, FlashCommand, Geometry, Pages, Planes, Priority};
use flashyard_kernel::{EventQueue, Machine, Nested, Rng};
use flashyard_nand::{Capabilities, Currents, IsppModel, NandConfig, NandDone, NandEvent, TimedNand};
use flashyard_units::{ByteRate, SimSpan, SimTime};

const READ: SimSpan = SimSpan::from_us(50);
const ERASE: SimSpan = SimSpan::from_ms(5);

fn one_die() -> TimedNand {
    let config = NandConfig {
        geometry: Geometry {
            channels: 1,
            dies_per_channel: 1,
            planes_per_die: 1,
            blocks_per_plane: 8,
            pages_per_block: 8,
            page_bytes: 4096,
            pages_per_program: 1,
        },
        read: [READ; 3],
        program: IsppModel { pulse: SimSpan::from_us(500), pulses: [1; 3] },
        erase: ERASE,
        channel: ByteRate::from_mb(1000),
        starvation_bound: u32::MAX,
        raw_bit_error_rate: 0.0,
        correctable_bit_error_rate: 4e-3,
        read_retries_max: None,
        wear: None,
        currents: Currents { volts: 3.3, active_ma: 25.0, bus_idle_ma: 5.0, standby_ma: 0.01 },
        capabilities: Capabilities::default(),
    };
    TimedNand::new(config, 1)
}

/// A command that needs no bus.
fn command(kind: CommandKind, priority: Priority) -> FlashCommand {
    FlashCommand {
        kind,
        die: 0,
        planes: Planes::together(1),
        pages: Pages::LSB,
        priority,
        erases: 0,
        reads: 0,
        bus_bytes: 0,
        tag: 0,
    }
}

/// Arrivals that have nothing to do with each other.
struct Poisson {
    next: SimTime,
    per_second: f64,
    rng: Rng,
}

impl Poisson {
    fn new(per_second: f64, name: &str) -> Self {
        let mut arrivals = Self { next: SimTime::ZERO, per_second, rng: Rng::named(1, name) };
        arrivals.step();
        arrivals
    }

    fn step(&mut self) {
        let seconds = -libm::log(1.0 - self.rng.unit()) / self.per_second;
        self.next += SimSpan::from_ps((seconds * 1e12) as u64);
    }
}

/// Mean waits of `count` reads in microseconds: in all, and behind erases.
fn waits(reads: f64, erases: f64, count: u64) -> (f64, f64) {
    let mut nand = one_die();
    let mut queue: EventQueue<NandEvent> = EventQueue::default();
    let mut effects: Vec<NandDone> = Vec::new();
    let (mut reads, mut erases) = (Poisson::new(reads, "reads"), Poisson::new(erases, "erases"));
    let same = |event: NandEvent| event;
    let (mut done, mut all, mut behind) = (0_u64, 0.0, 0.0);
    while done < count {
        let arrival = reads.next.min(erases.next);
        if queue.next_time().is_some_and(|time| time <= arrival) {
            let Some((now, event)) = queue.pop() else { unreachable!("it has a time") };
            nand.handle(now, event, &mut Nested::new(&mut queue, same, &mut effects));
        } else if arrival == reads.next {
            let read = command(CommandKind::Read, Priority::Foreground);
            nand.submit(arrival, read, &mut Nested::new(&mut queue, same, &mut effects));
            reads.step();
        } else {
            let erase = command(CommandKind::Erase, Priority::Background);
            nand.submit(arrival, erase, &mut Nested::new(&mut queue, same, &mut effects));
            erases.step();
        }
        for read in effects.drain(..).filter(|done| done.kind == CommandKind::Read) {
            done += 1;
            let background = read.time.background.as_secs_f64();
            behind += background;
            all += background + read.time.die.as_secs_f64() - READ.as_secs_f64();
        }
    }
    (1e6 * all / done as f64, 1e6 * behind / done as f64)
}

#[test]
fn reads_that_pass_reclaim_wait_as_long_as_the_theory_of_priorities_says() {
    let (read, erase) = (READ.as_secs_f64(), ERASE.as_secs_f64());
    for (reads, erases) in [(4000.0, 20.0), (8000.0, 50.0), (1000.0, 100.0)] {
        let (all, behind) = waits(reads, erases, 1_000_000);
        // M/G/1 with two classes and no preemption: the work in progress, by the share that reads leave.
        let in_progress = (reads * read * read + erases * erase * erase) / 2.0;
        let expected = 1e6 * in_progress / (1.0 - reads * read);
        assert!((all / expected - 1.0).abs() < 0.05, "{reads} reads, {erases} erases: {all} us, theory {expected}");
        // A read finds an erase in progress with the share of time that erases take, and waits for half of it.
        let expected = 1e6 * erases * erase * erase / 2.0;
        assert!(
            (behind / expected - 1.0).abs() < 0.05,
            "{reads} reads, {erases} erases: {behind} us, theory {expected}"
        );
    }
}

#[test]
fn reads_alone_wait_as_in_a_queue_of_one_server_and_equal_services() {
    let (all, behind) = waits(10_000.0, 1e-9, 300_000);
    // M/D/1 at half of its capacity.
    let expected = 0.5 * 50.0 / (2.0 * 0.5);
    assert!((all / expected - 1.0).abs() < 0.03 && behind == 0.0, "{all} us, theory {expected}");
}
