//! Legality and closed forms of the timed medium.

use flashyard_flash::{CommandKind, FlashCommand, Geometry, Pages, Planes, Priority};
use flashyard_kernel::{EventQueue, Machine, Nested};
use flashyard_nand::{Capabilities, Currents, IsppModel, NandConfig, NandDone, NandEvent, TimedNand};
use flashyard_units::{ByteRate, SimSpan, SimTime};

fn config() -> NandConfig {
    NandConfig {
        geometry: Geometry {
            channels: 2,
            dies_per_channel: 2,
            planes_per_die: 4,
            blocks_per_plane: 8,
            pages_per_block: 6,
            page_bytes: 16_384,
            pages_per_program: 1,
        },
        read: [30, 45, 60].map(SimSpan::from_us),
        program: IsppModel { pulse: SimSpan::from_us(40), pulses: [5, 7, 10] },
        erase: SimSpan::from_ms(3),
        channel: ByteRate::from_mb(2400),
        starvation_bound: 3,
        raw_bit_error_rate: 0.0,
        correctable_bit_error_rate: 4e-3,
        read_retries_max: None,
        wear: None,
        currents: Currents { volts: 3.3, active_ma: 25.0, bus_idle_ma: 5.0, standby_ma: 0.01 },
        capabilities: Capabilities::default(),
    }
}

fn command(kind: CommandKind, die: u16, planes: u8, pages: Pages, tag: u64) -> FlashCommand {
    let bus_bytes = if kind == CommandKind::Erase { 0 } else { 16_384 * u32::from(planes) };
    FlashCommand {
        kind,
        die,
        planes: Planes::together(planes),
        pages,
        priority: Priority::Foreground,
        erases: 0,
        reads: 0,
        bus_bytes,
        tag,
    }
}

/// Submits all commands at once and returns (tag, completion) in order of completion.
fn run(commands: &[FlashCommand]) -> (Vec<(u64, SimSpan)>, TimedNand) {
    let mut nand = TimedNand::new(config(), 1);
    let mut queue: EventQueue<NandEvent> = EventQueue::default();
    let mut effects: Vec<NandDone> = Vec::new();
    let same = |event: NandEvent| event;
    for command in commands {
        nand.submit(SimTime::ZERO, *command, &mut Nested::new(&mut queue, same, &mut effects));
    }
    let mut done = Vec::new();
    while let Some((now, event)) = queue.pop() {
        nand.handle(now, event, &mut Nested::new(&mut queue, same, &mut effects));
        done.extend(effects.drain(..).map(|effect| (effect.tag, now.since(SimTime::ZERO))));
    }
    assert_eq!(nand.pending(), 0, "every command is reported");
    (done, nand)
}

const PAGE: SimSpan = SimSpan::from_ps(6_826_667);

#[test]
fn an_unloaded_read_takes_sensing_and_transfer() {
    for (page, us) in [(Pages::LSB, 30), (Pages::CSB, 45), (Pages::MSB, 60)] {
        let (done, _) = run(&[command(CommandKind::Read, 0, 1, page, 7)]);
        assert_eq!(done, [(7, SimSpan::from_us(us) + PAGE)]);
    }
}

#[test]
fn an_unloaded_program_takes_transfer_and_its_pulses() {
    let (done, _) = run(&[command(CommandKind::Program, 0, 1, Pages::MSB, 7)]);
    assert_eq!(done, [(7, SimSpan::from_us(400) + PAGE)]);
}

#[test]
fn dies_of_one_channel_sense_together_and_take_turns_on_the_bus() {
    let read = |die, tag| command(CommandKind::Read, die, 1, Pages::LSB, tag);
    let (done, _) = run(&[read(0, 0), read(2, 1), read(1, 2)]);
    let sensed = SimSpan::from_us(30);
    // Dies 0 and 2 share channel 0; die 1 has channel 1 for itself.
    assert_eq!(done, [(0, sensed + PAGE), (2, sensed + PAGE), (1, sensed + PAGE * 2)]);
}

#[test]
fn a_multi_plane_command_senses_once_and_transfers_every_page() {
    let (done, nand) = run(&[command(CommandKind::Read, 0, 4, Pages::CSB, 0)]);
    let transfer = SimSpan::from_ps(27_306_667);
    assert_eq!(done, [(0, SimSpan::from_us(45) + transfer)]);
    assert_eq!((nand.counters().page_reads, nand.bus_busy()), (4, transfer));
    assert_eq!(nand.held(), SimSpan::from_us(45) + transfer);
    assert_eq!((nand.die_held(0), nand.die_held(1)), (nand.held(), SimSpan::ZERO));
    assert_eq!((nand.channel_busy(0), nand.channel_busy(1)), (transfer, SimSpan::ZERO));
}

#[test]
fn reads_pass_programs_until_the_starvation_bound() {
    let mut commands = vec![command(CommandKind::Read, 0, 1, Pages::LSB, 0)];
    commands.push(command(CommandKind::Program, 0, 1, Pages::LSB, 100));
    commands.extend((1..8).map(|tag| command(CommandKind::Read, 0, 1, Pages::LSB, tag)));
    let (done, _) = run(&commands);
    let order: Vec<u64> = done.iter().map(|entry| entry.0).collect();
    // Read 0 starts before the program comes; then three reads pass it, and no more.
    assert_eq!(order, [0, 1, 2, 3, 100, 4, 5, 6, 7]);
}

#[test]
fn energy_is_current_times_voltage_times_time() {
    let (_, nand) = run(&[command(CommandKind::Erase, 0, 4, Pages::LSB, 0)]);
    let span = SimSpan::from_ms(3);
    // One die active for 3 ms at 25 mA and 3.3 V, three in standby at 10 uA.
    let expected = 3.3 * (0.025 + 3.0 * 0.000_01) * 0.003;
    assert!((nand.energy(span).as_joules() / expected - 1.0).abs() < 1e-9);
}

#[test]
fn a_reset_drops_everything_and_books_busy_time_up_to_that_moment() {
    let mut nand = TimedNand::new(config(), 1);
    let mut queue: EventQueue<NandEvent> = EventQueue::default();
    let mut effects: Vec<NandDone> = Vec::new();
    let same = |event: NandEvent| event;
    // Die 0 senses for 30 us and is cut in its transfer, die 2 waits for the same bus to take data in, die 1 erases,
    // die 3 programs since its transfer ended.
    let commands = [
        command(CommandKind::Read, 0, 4, Pages::LSB, 0),
        command(CommandKind::Read, 0, 1, Pages::LSB, 1),
        command(CommandKind::Erase, 1, 4, Pages::LSB, 2),
        command(CommandKind::Program, 3, 1, Pages::MSB, 3),
    ];
    for command in commands {
        nand.submit(SimTime::ZERO, command, &mut Nested::new(&mut queue, same, &mut effects));
    }
    let cut = SimTime::ZERO + SimSpan::from_us(32);
    while queue.next_time().is_some_and(|time| time <= cut) {
        let (now, event) = queue.pop().expect("it was seen");
        nand.handle(now, event, &mut Nested::new(&mut queue, same, &mut effects));
    }
    let dropped = nand.reset(cut);
    assert_eq!(dropped.iter().map(|command| command.tag).collect::<Vec<_>>(), [0, 1, 2, 3]);
    assert_eq!(nand.pending(), 0);
    let programmed = SimSpan::from_us(32) - PAGE;
    assert_eq!(nand.array_busy(), SimSpan::from_us(30) + SimSpan::from_us(32) + programmed);
    assert_eq!(nand.bus_busy(), SimSpan::from_us(2) + PAGE);
    assert_eq!(nand.held(), SimSpan::from_us(32) * 3);
    // It works as if new.
    let mut fresh: EventQueue<NandEvent> = EventQueue::default();
    nand.submit(cut, commands[0], &mut Nested::new(&mut fresh, same, &mut effects));
    let mut ends = cut;
    while let Some((now, event)) = fresh.pop() {
        ends = now;
        nand.handle(now, event, &mut Nested::new(&mut fresh, same, &mut effects));
    }
    assert_eq!(effects.len(), 1);
    let transfer = config().channel.span_of(4 * 16_384);
    assert_eq!(ends.since(cut), SimSpan::from_us(30) + transfer);
}
