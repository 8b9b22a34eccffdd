//! Legality and closed forms of the timed medium.

use flashyard_flash::{CommandKind, FlashCommand, Geometry, Pages, Planes, Priority};
use flashyard_kernel::{EventQueue, Machine, Nested};
use flashyard_nand::{
    Capabilities, Currents, EccStrength, ErrorRates, IsppModel, NandConfig, NandDone, NandEvent, RetryRule,
    SingleLevel, Suspend, TimedNand, WearModel,
};
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
fn an_erase_does_not_wait_for_the_bus() {
    for capabilities in [Capabilities::default(), Capabilities { cache_program: true, ..Capabilities::default() }] {
        let mut nand = TimedNand::new(NandConfig { capabilities, ..config() }, 1);
        let mut queue: EventQueue<NandEvent> = EventQueue::default();
        let mut effects: Vec<NandDone> = Vec::new();
        let same = |event: NandEvent| event;
        // Dies 0 and 2 share a channel, on which data of a program passes.
        for command in
            [command(CommandKind::Program, 0, 4, Pages::LSB, 0), command(CommandKind::Erase, 2, 4, Pages::LSB, 1)]
        {
            nand.submit(SimTime::ZERO, command, &mut Nested::new(&mut queue, same, &mut effects));
        }
        let mut ends = SimTime::ZERO;
        while effects.iter().all(|done| done.tag != 1) {
            let (now, event) = queue.pop().expect("there is work");
            ends = now;
            nand.handle(now, event, &mut Nested::new(&mut queue, same, &mut effects));
        }
        assert_eq!(ends.since(SimTime::ZERO), SimSpan::from_ms(3));
    }
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
    for capabilities in [Capabilities::default(), Capabilities { cache_program: true, ..Capabilities::default() }] {
        reset(NandConfig { capabilities, ..config() });
    }
}

fn reset(config: NandConfig) {
    let mut nand = TimedNand::new(config, 1);
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
    let transfer = config.channel.span_of(4 * 16_384);
    assert_eq!(ends.since(cut), SimSpan::from_us(30) + transfer);
}

/// Submits one command to a medium of this configuration, at its beginning; returns its report and when that came.
fn alone(config: NandConfig, command: FlashCommand) -> (NandDone, SimSpan, TimedNand) {
    let mut nand = TimedNand::new(config, 1);
    let mut queue: EventQueue<NandEvent> = EventQueue::default();
    let mut effects: Vec<NandDone> = Vec::new();
    let same = |event: NandEvent| event;
    nand.submit(SimTime::ZERO, command, &mut Nested::new(&mut queue, same, &mut effects));
    let mut ends = SimTime::ZERO;
    while let Some((now, event)) = queue.pop() {
        ends = now;
        nand.handle(now, event, &mut Nested::new(&mut queue, same, &mut effects));
    }
    (effects.pop().expect("it was reported"), ends.since(SimTime::ZERO), nand)
}

#[test]
fn a_read_without_hope_is_given_up_after_its_retries() {
    for (read_retries_max, retries, uncorrected) in [(Some(2), 2, true), (Some(0), 0, true), (None, 8, false)] {
        for capabilities in [Capabilities::default(), Capabilities { cache_program: true, ..Capabilities::default() }] {
            let noise = NandConfig {
                raw_bit_error_rate: 0.5,
                correctable_bit_error_rate: 1e-9,
                read_retries_max,
                capabilities,
                ..config()
            };
            let (done, ends, nand) = alone(noise, command(CommandKind::Read, 0, 4, Pages::CSB, 7));
            let again = SimSpan::from_us(45) * retries;
            assert_eq!((done.uncorrected, done.time.retry, done.time.die), (uncorrected, again, SimSpan::from_us(45)));
            assert_eq!(ends, SimSpan::from_us(45) + again + noise.channel.span_of(4 * 16_384));
            assert_eq!((nand.counters().read_retries, nand.array_busy()), (retries * 4, SimSpan::from_us(45) + again));
            assert_eq!(nand.config().read_retries_max, read_retries_max);
        }
    }
}

#[test]
fn reads_are_retried_by_the_erases_of_their_block() {
    let wear = WearModel {
        rates: ErrorRates::TLC_2018_AT_300,
        ecc: EccStrength::BITS_50,
        rule: RetryRule::ByErases,
        retention_days: 0.0,
    };
    let worn = NandConfig { wear: Some(wear), ..config() };
    for (erases, retries) in [(0, 0), (49, 0), (100, 2), (299, 6)] {
        let read = FlashCommand { erases, ..command(CommandKind::Read, 1, 1, Pages::LSB, 7) };
        let (done, ends, _) = alone(worn, read);
        assert_eq!((done.time.retry, done.die), (SimSpan::from_us(30) * retries, 1));
        assert_eq!(ends, SimSpan::from_us(30) * (retries + 1) + PAGE);
        // As many retries as a read may have correct it; one less does not.
        for most in [retries, retries.saturating_sub(1)] {
            let limited = NandConfig { read_retries_max: Some(most as u32), ..worn };
            assert_eq!(alone(limited, read).0.uncorrected, most < retries, "{most} of {retries} retries");
        }
    }
}

#[test]
fn a_device_that_ages_begins_to_retry() {
    let mut nand = TimedNand::new(config(), 1);
    let mut queue: EventQueue<NandEvent> = EventQueue::default();
    let mut effects: Vec<NandDone> = Vec::new();
    let same = |event: NandEvent| event;
    let read = command(CommandKind::Read, 0, 1, Pages::LSB, 0);
    for rate in [0.0, 0.5] {
        nand.set_raw_bit_error_rate(rate);
        assert_eq!(nand.config().raw_bit_error_rate, rate);
        let now = SimTime::ZERO + SimSpan::from_secs(1) * u64::from(rate > 0.0);
        nand.submit(now, read, &mut Nested::new(&mut queue, same, &mut effects));
        while let Some((now, event)) = queue.pop() {
            nand.handle(now, event, &mut Nested::new(&mut queue, same, &mut effects));
        }
    }
    // Seven halvings of a half are below 0.4 %, but for pages of a factor above one.
    assert_eq!(effects[0].time.retry, SimSpan::ZERO);
    assert!(effects[1].time.retry >= SimSpan::from_us(30) * 4, "{:?}", effects[1].time);
}

#[test]
fn a_die_says_when_it_is_free_and_whether_background_work_holds_it() {
    let background = |kind| FlashCommand { priority: Priority::Background, ..command(kind, 1, 1, Pages::LSB, 0) };
    let foreground = |kind| command(kind, 1, 1, Pages::LSB, 0);
    let (read, program, erase) = (CommandKind::Read, CommandKind::Program, CommandKind::Erase);
    let whole = [SimSpan::from_us(30) + PAGE, SimSpan::from_us(200) + PAGE, SimSpan::from_ms(3)];
    for (kind, whole) in [read, program, erase].into_iter().zip(whole) {
        for (command, holds) in [(foreground(kind), false), (background(kind), kind != read)] {
            let mut nand = TimedNand::new(config(), 1);
            let mut queue: EventQueue<NandEvent> = EventQueue::default();
            let mut effects: Vec<NandDone> = Vec::new();
            let begins = SimTime::ZERO + SimSpan::from_us(5);
            assert_eq!((nand.frees_at(begins, 1), nand.is_held_by_reclaim(1)), (begins, false));
            nand.submit(begins, command, &mut Nested::new(&mut queue, |event: NandEvent| event, &mut effects));
            assert_eq!((nand.frees_at(begins, 1), nand.is_held_by_reclaim(1)), (begins + whole, holds), "{command:?}");
            let late = begins + SimSpan::from_secs(1);
            assert_eq!((nand.frees_at(late, 1), nand.frees_at(begins, 0)), (late, begins));
            assert_eq!((nand.is_held_by_reclaim(0), nand.pending()), (false, 1));
        }
    }
}

#[test]
fn reads_that_may_not_pass_any_more_wait_for_background_work() {
    for kind in [CommandKind::Read, CommandKind::Program, CommandKind::Erase] {
        for (priority, holds) in [(Priority::Background, true), (Priority::Foreground, false)] {
            if kind == CommandKind::Read && priority == Priority::Foreground {
                continue;
            }
            let mut nand = TimedNand::new(config(), 1);
            let mut queue: EventQueue<NandEvent> = EventQueue::default();
            let mut effects: Vec<NandDone> = Vec::new();
            let same = |event: NandEvent| event;
            let waits = FlashCommand { priority, ..command(kind, 0, 1, Pages::LSB, 100) };
            let mut commands: Vec<FlashCommand> =
                (0..8).map(|tag| command(CommandKind::Read, 0, 1, Pages::LSB, tag)).collect();
            commands.insert(1, waits);
            for command in commands {
                nand.submit(SimTime::ZERO, command, &mut Nested::new(&mut queue, same, &mut effects));
            }
            let mut held = vec![nand.is_held_by_reclaim(0)];
            while effects.len() < 4 {
                let (now, event) = queue.pop().expect("there is work");
                nand.handle(now, event, &mut Nested::new(&mut queue, same, &mut effects));
                held.push(nand.is_held_by_reclaim(0));
            }
            // The third read that passes is the last that may; what waits begins once that has ended.
            let began = held.iter().position(|&held| held);
            let (of_three, active) = (Some(6), kind != CommandKind::Read && holds);
            assert_eq!((began, held.last()), (of_three.filter(|_| holds), Some(&active)), "{kind:?} {priority:?}");
        }
    }
}

/// When a read is done that comes `after` a program was given to its die, and when the program is.
fn read_beside_a_program(config: NandConfig, program: FlashCommand, after: &[SimSpan]) -> (Vec<SimSpan>, SimSpan) {
    let mut nand = TimedNand::new(config, 1);
    let mut queue: EventQueue<NandEvent> = EventQueue::default();
    let mut effects: Vec<NandDone> = Vec::new();
    let same = |event: NandEvent| event;
    nand.submit(SimTime::ZERO, program, &mut Nested::new(&mut queue, same, &mut effects));
    let mut reads = (1..).zip(after).peekable();
    let mut done = vec![SimSpan::ZERO; after.len() + 1];
    while let Some((now, event)) = queue.pop() {
        // Until the next event all is as it was when the read came.
        while let Some((tag, after)) = reads.next_if(|(_, after)| SimTime::ZERO + **after <= now) {
            let read = command(CommandKind::Read, 0, 1, Pages::LSB, tag);
            nand.submit(SimTime::ZERO + *after, read, &mut Nested::new(&mut queue, same, &mut effects));
        }
        nand.handle(now, event, &mut Nested::new(&mut queue, same, &mut effects));
        effects.drain(..).for_each(|effect| done[effect.tag as usize] = now.since(SimTime::ZERO));
    }
    let program = done.remove(0);
    (done, program)
}

#[test]
fn a_program_makes_way_for_a_read_also_where_that_came_while_its_data_was_sent() {
    let us = SimSpan::from_us;
    let suspend = Suspend { programs: true, erases: true, entry: us(5), resume: us(5), most: 1 };
    let capabilities = Capabilities { suspend: Some(suspend), ..Capabilities::default() };
    let program = command(CommandKind::Program, 0, 4, Pages::LSB, 0);
    let sent = config().channel.span_of(4 * 16_384);
    let alone = sent + us(200);
    for comes in [us(1), us(20), us(60)] {
        let (reads, ends) = read_beside_a_program(NandConfig { capabilities, ..config() }, program, &[comes]);
        let stops = comes.max(sent) + us(5);
        assert_eq!(reads, [stops + us(30) + PAGE], "a read that comes at {comes:?}");
        assert_eq!(ends, alone + us(5) + us(30) + PAGE + us(5), "it loses what making way takes");
    }
    // It makes way once: another read waits for its end.
    let (reads, ends) = read_beside_a_program(NandConfig { capabilities, ..config() }, program, &[us(1), us(100)]);
    assert!(reads[0] < us(80) && reads[1] > ends, "{reads:?} and {ends:?}");
}

#[test]
fn cells_of_one_bit_are_sensed_in_their_own_time() {
    assert_eq!(TimedNand::new(config(), 1).single_level_read(), SimSpan::from_us(30));
    let single_level = Some(SingleLevel { read: SimSpan::from_us(20), program: SimSpan::from_us(100) });
    let fast = NandConfig { capabilities: Capabilities { single_level, ..Capabilities::default() }, ..config() };
    assert_eq!(TimedNand::new(fast, 1).single_level_read(), SimSpan::from_us(20));
}

#[test]
fn a_die_is_busy_sensing_and_sending_but_no_longer_than_it_has_commands() {
    let (_, nand) = run(&[command(CommandKind::Read, 0, 1, Pages::LSB, 0); 2]);
    assert_eq!((nand.die_busy(), nand.held()), (SimSpan::from_us(60) + PAGE * 2, SimSpan::from_us(60) + PAGE * 2));
    let (_, nand) = run(&[0, 2].map(|die| command(CommandKind::Read, die, 1, Pages::LSB, 0)));
    // The second die waits for the bus.
    assert_eq!((nand.die_busy(), nand.held()), (SimSpan::from_us(60) + PAGE * 2, SimSpan::from_us(60) + PAGE * 3));
}
