//! Laws of dies, whatever they can do: random commands against random capabilities.

use crate::intrusive::NIL;
use crate::timed::{NandDone, NandEvent, TimedNand};
use crate::{Capabilities, Currents, IsppModel, NandConfig, SingleLevel, Suspend, WordLine};
use flashyard_flash::{CommandKind, FlashCommand, Geometry, Pages, Planes, Priority};
use flashyard_kernel::{EventQueue, Machine, Nested};
use flashyard_units::{ByteRate, SimSpan, SimTime};
use proptest::prelude::*;

const PLANES: u32 = 4;

pub(crate) fn config(capabilities: Capabilities, starvation_bound: u32) -> NandConfig {
    NandConfig {
        geometry: Geometry {
            channels: 2,
            dies_per_channel: 2,
            planes_per_die: PLANES,
            blocks_per_plane: 8,
            pages_per_block: 6,
            page_bytes: 16_384,
            pages_per_program: if capabilities.word_line.is_some() { 3 } else { 1 },
        },
        read: [30, 45, 60].map(SimSpan::from_us),
        program: IsppModel { pulse: SimSpan::from_us(40), pulses: [5, 7, 10] },
        erase: SimSpan::from_ms(3),
        channel: ByteRate::from_mb(1600),
        starvation_bound,
        raw_bit_error_rate: 0.0,
        correctable_bit_error_rate: 4e-3,
        read_retries_max: None,
        wear: None,
        currents: Currents { volts: 3.3, active_ma: 25.0, bus_idle_ma: 5.0, standby_ma: 0.01 },
        capabilities,
    }
}

/// A command as a controller of this flash would send it.
fn command(config: &NandConfig, kind: CommandKind, die: u16, choice: u32, tag: u64) -> FlashCommand {
    let capabilities = &config.capabilities;
    let bit = choice % 3;
    let (planes, pages) = match kind {
        CommandKind::Read if choice.is_multiple_of(5) => (Planes::together(PLANES as u8), Pages::of_bits(0, bit)),
        CommandKind::Read if capabilities.independent_planes => {
            (Planes::alone((choice % PLANES) as u8), Pages::of_bits(bit, bit))
        }
        CommandKind::Program if capabilities.word_line.is_some() => {
            (Planes::together(PLANES as u8), Pages::of_bits(0, 2))
        }
        _ => (Planes::together(1), Pages::of_bits(bit, bit)),
    };
    let pages =
        if capabilities.single_level.is_some() && choice.is_multiple_of(7) { pages.single_level() } else { pages };
    let bus_bytes = match kind {
        CommandKind::Erase => 0,
        CommandKind::Read if capabilities.partial_transfers => 4096,
        _ => 16_384 * planes.count() * pages.count(),
    };
    let priority = if choice.is_multiple_of(4) || kind == CommandKind::Erase {
        Priority::Background
    } else {
        Priority::Foreground
    };
    FlashCommand { kind, die, planes, pages, priority, erases: 0, reads: 0, bus_bytes, tag }
}

/// Runs commands that come at these times; checks after every event.
struct Bench {
    nand: TimedNand,
    queue: EventQueue<Option<NandEvent>>,
    submitted: Vec<(SimTime, FlashCommand)>,
    done: Vec<(SimTime, NandDone)>,
}

impl Bench {
    fn run(config: NandConfig, commands: Vec<(u64, CommandKind, u16, u32)>) -> Self {
        Self::run_late(config, commands, (0, 0))
    }

    /// Like [`run`](Self::run), but events of the flash between these microseconds come at the end of that time: the drive
    /// stands still.
    fn run_late(config: NandConfig, mut commands: Vec<(u64, CommandKind, u16, u32)>, still: (u64, u64)) -> Self {
        config.validate().expect("the flash can be");
        commands.sort_by_key(|command| command.0);
        let nand = TimedNand::new(config, 1);
        let mut bench = Self { nand, queue: EventQueue::default(), submitted: Vec::new(), done: Vec::new() };
        for &(us, ..) in &commands {
            bench.queue.push(SimTime::ZERO + SimSpan::from_us(us), None);
        }
        let mut next = commands.into_iter();
        let still = (SimTime::ZERO + us(still.0), SimTime::ZERO + us(still.1));
        while let Some((now, event)) = bench.queue.pop() {
            if event.is_some() && still.0 <= now && now < still.1 {
                bench.queue.push(still.1, event);
                continue;
            }
            let mut effects = Vec::new();
            let out = &mut Nested::new(&mut bench.queue, Some, &mut effects);
            match event {
                Some(event) => bench.nand.handle(now, event, out),
                None => {
                    let (_, kind, die, choice) = next.next().expect("one for each arrival");
                    let command = command(&config, kind, die, choice, bench.submitted.len() as u64);
                    bench.submitted.push((now, command));
                    bench.nand.submit(now, command, out);
                }
            }
            bench.done.extend(effects.drain(..).map(|done| (now, done)));
            bench.check();
        }
        assert_eq!(bench.nand.pending(), 0, "every command is reported");
        bench
    }

    /// No die does two things at once that it cannot.
    fn check(&self) {
        let nand = &self.nand;
        let command = |index: u32| nand.slab[index as usize].command;
        for (number, die) in nand.dies.iter().enumerate() {
            let first = nand.first_lane(number as u16) as usize;
            let lanes = &nand.lanes[first..first + nand.lanes_per_die as usize];
            let active: Vec<u32> = lanes.iter().map(|lane| lane.active).filter(|&index| index != NIL).collect();
            let of_the_die = |index: u32| {
                command(index).kind != CommandKind::Read
                    || (nand.lanes_per_die > 1 && command(index).planes.plane().is_none())
            };
            if active.iter().any(|&index| of_the_die(index)) {
                assert_eq!(active.len(), 1, "die {number} does something beside what holds all of it");
                let takes_data_in = command(active[0]).kind == CommandKind::Program;
                let register = lanes.iter().any(|lane| lane.register != NIL);
                assert!(!(takes_data_in && register), "die {number} takes data into a register that is full");
            }
            if die.staged != NIL {
                assert!(
                    active.iter().any(|&index| command(index).kind == CommandKind::Program),
                    "staged beside nothing"
                );
                assert!(lanes.iter().all(|lane| lane.register == NIL), "die {number} has two uses for its register");
                assert_eq!(die.suspended, NIL, "a suspended die has data of another program");
            }
            if nand.config.capabilities.cache_read.is_none() {
                assert!(lanes.iter().all(|lane| lane.register == NIL), "there is no cache register");
            }
        }
    }

    /// The sum of the parts of each command is its latency; buses are busy for each byte once.
    fn check_times(&self) {
        let mut bus = SimSpan::ZERO;
        for &(ended, done) in &self.done {
            let (began, command) = self.submitted[done.tag as usize];
            let time = done.time;
            let parts = time.die + time.bus + time.retry + time.background;
            assert_eq!(parts, ended.since(began), "{command:?}: {time:?}");
            let capabilities = &self.nand.config.capabilities;
            let transfer = self.nand.config.transfer_time::<false>(&command);
            bus += match command.kind {
                CommandKind::Erase => capabilities.command_cycles,
                CommandKind::Read => transfer,
                CommandKind::Program => {
                    let fine = capabilities.word_line.is_some_and(|word_line| word_line.fine.is_some());
                    transfer * if fine && !command.pages.is_single_level() { 2 } else { 1 }
                }
            };
        }
        assert_eq!(self.nand.bus_busy(), bus, "bus time is that of the transfers");
    }

    /// Array time of all commands, were each alone.
    fn array_time_alone(&self) -> SimSpan {
        self.submitted.iter().map(|(_, command)| self.nand.times.whole(command)).sum()
    }
}

fn us(us: u64) -> SimSpan {
    SimSpan::from_us(us)
}

fn capabilities() -> impl Strategy<Value = Capabilities> {
    let switches = prop::collection::vec(any::<bool>(), 10);
    (switches, 0_u32..4, any::<bool>()).prop_map(|(on, most, fine)| Capabilities {
        independent_planes: on[0],
        partial_transfers: on[1],
        cache_read: on[2].then_some(us(2)),
        cache_program: on[3],
        suspend: on[4].then_some(Suspend { programs: on[5], erases: true, entry: us(20), resume: us(15), most }),
        word_line: on[6].then_some(WordLine { program: us(700), fine: fine.then_some(us(900)) }),
        single_level: on[7].then_some(SingleLevel { read: us(20), program: us(100) }),
        read_top: None,
        command_cycles: if on[8] { SimSpan::from_ns(300) } else { SimSpan::ZERO },
        status_poll: if on[9] { SimSpan::from_ns(700) } else { SimSpan::ZERO },
    })
}

fn commands() -> impl Strategy<Value = Vec<(u64, CommandKind, u16, u32)>> {
    let kind = prop_oneof![
        6 => Just(CommandKind::Read),
        3 => Just(CommandKind::Program),
        1 => Just(CommandKind::Erase),
    ];
    prop::collection::vec((0_u64..20_000, kind, 0_u16..4, any::<u32>()), 1..150)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]
    #[test]
    fn no_die_does_what_it_cannot_and_every_command_takes_the_sum_of_its_parts(
        capabilities in capabilities(), bound in 0_u32..20, commands in commands(),
    ) {
        let bench = Bench::run(config(capabilities, bound), commands);
        bench.check_times();
        let elapsed = bench.done.last().map_or(SimSpan::ZERO, |(end, _)| end.since(SimTime::ZERO));
        prop_assert!(bench.nand.held() <= elapsed * 4, "four dies");
        let (alone, array) = (bench.array_time_alone(), bench.nand.array_busy());
        let overlaps = capabilities.independent_planes;
        let more = capabilities.suspend.is_some() || capabilities.cache_read.is_some();
        prop_assert!(overlaps || array >= alone, "array time is lost: {array:?} of {alone:?}");
        prop_assert!(more || array <= alone, "array time is made up: {array:?} of {alone:?}");
    }

    #[test]
    fn commands_end_and_dies_do_only_what_they_can_when_events_come_late(
        capabilities in capabilities(), commands in commands(), still in (0_u64..20_000, 0_u64..20_000),
    ) {
        let count = commands.len();
        let bench = Bench::run_late(config(capabilities, 4), commands, (still.0, still.0 + still.1));
        prop_assert_eq!(bench.done.len(), count);
    }

    #[test]
    fn a_power_cut_gives_back_every_command_that_was_not_reported(
        capabilities in capabilities(), commands in commands(), cut in 0_u64..20_000,
    ) {
        let config = config(capabilities, 4);
        let mut nand = TimedNand::new(config, 1);
        let mut queue: EventQueue<NandEvent> = EventQueue::default();
        let mut effects: Vec<NandDone> = Vec::new();
        let (mut now, mut done, mut commands) = (SimTime::ZERO, Vec::new(), commands);
        commands.sort_by_key(|command| command.0);
        commands.retain(|command| command.0 <= cut);
        let mut next = commands.iter().enumerate().peekable();
        let end = SimTime::ZERO + us(cut);
        loop {
            let arrival = next.peek().map(|(_, command)| SimTime::ZERO + us(command.0));
            let event = queue.next_time();
            let Some(first) = arrival.into_iter().chain(event).min().filter(|&time| time <= end) else { break };
            now = first;
            let out = &mut Nested::new(&mut queue, |event: NandEvent| event, &mut effects);
            if arrival == Some(first) {
                let (tag, &(_, kind, die, choice)) = next.next().expect("it was peeked at");
                nand.submit(now, command(&config, kind, die, choice, tag as u64), out);
            } else {
                let (time, event) = queue.pop().expect("it was peeked at");
                nand.handle(time, event, &mut Nested::new(&mut queue, |event: NandEvent| event, &mut effects));
            }
            done.extend(effects.drain(..).map(|effect| effect.tag));
        }
        let mut all: Vec<u64> = nand.reset(end).iter().map(|command| command.tag).chain(done).collect();
        all.sort_unstable();
        prop_assert_eq!(all, (0..commands.len() as u64).collect::<Vec<_>>());
        let sums = (nand.held(), nand.array_busy(), nand.bus_busy());
        let most = end.since(SimTime::ZERO) * 4;
        prop_assert!(sums.0 <= most && sums.1 <= most && sums.2 <= most, "more than there was time for: {sums:?}");
        prop_assert!(now <= end && nand.reset(end).is_empty());
    }
}

/// When each command ends, in microseconds, of commands that come at these times.
fn ends(capabilities: Capabilities, commands: &[(u64, CommandKind, u32)]) -> Vec<f64> {
    let commands = commands.iter().map(|&(at, kind, choice)| (at, kind, 0, choice)).collect();
    let bench = Bench::run(config(capabilities, 4), commands);
    bench.check_times();
    let mut ends = vec![0.0; bench.submitted.len()];
    for (end, done) in bench.done {
        ends[done.tag as usize] = end.since(SimTime::ZERO).as_ps() as f64 / 1e6;
    }
    ends
}

/// Choices 3, 6 and 9 are foreground reads of the first page (30 us) of one plane each.
#[test]
fn choices_of_these_tests_are_what_they_say() {
    let config = config(Capabilities { independent_planes: true, ..Capabilities::default() }, 4);
    for (choice, plane) in [(3, 3), (6, 2), (9, 1)] {
        let made = command(&config, READ, 0, choice, 0);
        assert_eq!((made.planes.plane(), made.pages, made.priority), (Some(plane), Pages::LSB, Priority::Foreground));
    }
}

/// 16 KiB at 1,600 MB/s.
const PAGE: f64 = 10.24;

fn close(found: &[f64], expected: &[f64]) {
    assert_eq!(found.len(), expected.len());
    for (found, expected) in found.iter().zip(expected) {
        assert!((found - expected).abs() < 1e-3, "{found} us, not {expected} us");
    }
}

const READ: CommandKind = CommandKind::Read;
const PROGRAM: CommandKind = CommandKind::Program;

#[test]
fn independent_planes_sense_at_once_and_send_one_after_the_other() {
    let on = Capabilities { independent_planes: true, ..Capabilities::default() };
    close(&ends(on, &[(0, READ, 6), (0, READ, 3)]), &[30.0 + PAGE, 30.0 + 2.0 * PAGE]);
    // One die, one server, without it.
    close(&ends(Capabilities::default(), &[(0, READ, 6), (0, READ, 3)]), &[30.0 + PAGE, 60.0 + 2.0 * PAGE]);
}

/// Choice 15 is a foreground read of the first page of all four planes.
#[test]
fn a_read_of_all_planes_senses_once_and_has_its_turn_among_those_of_one() {
    let on = Capabilities { independent_planes: true, ..Capabilities::default() };
    close(&ends(on, &[(0, READ, 15)]), &[30.0 + 4.0 * PAGE]);
    // It waits for the plane that senses, a later read of an idle plane for it.
    let (first, joint) = (30.0 + PAGE, 60.0 + 5.0 * PAGE);
    close(&ends(on, &[(0, READ, 6), (1, READ, 15), (2, READ, 9)]), &[first, joint, joint + 30.0 + PAGE]);
    // It passes a program.
    close(&ends(on, &[(0, READ, 6), (1, PROGRAM, 6), (2, READ, 15)]), &[first, joint + PAGE + 200.0, joint]);
}

#[test]
fn reads_of_all_planes_let_programs_and_housekeeping_have_their_turns() {
    let on = Capabilities { independent_planes: true, ..Capabilities::default() };
    // Choices 12 and 24 are background reads of planes 0; four reads may pass.
    for (kind, choice) in [(READ, 12), (READ, 24), (PROGRAM, 6), (CommandKind::Erase, 6)] {
        let mut commands = vec![(0, READ, 0, 15); 12];
        commands.insert(1, (0, kind, 0, choice));
        let bench = Bench::run(config(on, 4), commands);
        bench.check_times();
        let place = bench.done.iter().position(|(_, done)| done.tag == 1);
        assert_eq!(place, Some(5), "{kind:?}: one had begun, four have passed");
    }
}

#[test]
fn reads_that_were_served_before_a_program_came_have_not_passed_it() {
    let mut commands = vec![(0, READ, 0, 3); 12];
    commands.push((50, PROGRAM, 0, 6));
    let bench = Bench::run(config(Capabilities::default(), 4), commands);
    let place = bench.done.iter().position(|(_, done)| done.tag == 12);
    assert_eq!(place, Some(6), "two had begun, four have passed");
}

#[test]
fn reads_of_one_plane_let_programs_have_their_turns_and_housekeeping_comes_last() {
    let on = Capabilities { independent_planes: true, ..Capabilities::default() };
    for kind in [PROGRAM, CommandKind::Erase] {
        let mut commands = vec![(0, READ, 0, 3); 12];
        commands.insert(1, (0, kind, 0, 6));
        let bench = Bench::run(config(on, 4), commands);
        let place = bench.done.iter().position(|(_, done)| done.tag == 1);
        assert_eq!(place, Some(5), "{kind:?}: one had begun, four have passed");
    }
    // The plane of a background read is idle, but a program waits for all of them.
    let program = 30.0 + 2.0 * PAGE + 200.0;
    close(&ends(on, &[(0, READ, 6), (1, PROGRAM, 6), (2, READ, 12)]), &[30.0 + PAGE, program, program + 30.0 + PAGE]);
}

#[test]
fn a_partial_transfer_sends_a_codeword() {
    let on = Capabilities { partial_transfers: true, ..Capabilities::default() };
    close(&ends(on, &[(0, READ, 6)]), &[30.0 + PAGE / 4.0]);
}

#[test]
fn a_cache_read_senses_while_the_page_before_is_sent() {
    let on = Capabilities { cache_read: Some(us(2)), ..Capabilities::default() };
    // Each sensing hands over for 2 us; the bus is never the bottleneck.
    close(&ends(on, &[(0, READ, 6), (0, READ, 3), (0, READ, 9)]), &[32.0 + PAGE, 64.0 + PAGE, 96.0 + PAGE]);
}

#[test]
fn a_read_of_all_planes_fills_the_registers_of_all_until_it_is_sent() {
    let on = Capabilities { independent_planes: true, cache_read: Some(us(2)), ..Capabilities::default() };
    let joint = 32.0 + 4.0 * PAGE;
    close(&ends(on, &[(0, READ, 15), (0, READ, 6)]), &[joint, joint + 32.0 + PAGE]);
}

#[test]
fn a_cache_program_takes_data_in_while_the_one_before_programs() {
    let on = Capabilities { cache_program: true, ..Capabilities::default() };
    // LSB pages take five pulses of 40 us.
    close(&ends(on, &[(0, PROGRAM, 6), (0, PROGRAM, 3)]), &[PAGE + 200.0, PAGE + 400.0]);
    // A read that waits has the bus first: no data is taken in before it.
    let read = PAGE + 200.0 + 30.0 + PAGE;
    close(&ends(on, &[(0, PROGRAM, 6), (50, READ, 3), (60, PROGRAM, 9)]), &[PAGE + 200.0, read, read + PAGE + 200.0]);
    for off in [Capabilities::default(), Capabilities { cache_read: Some(us(2)), ..Capabilities::default() }] {
        close(&ends(off, &[(0, PROGRAM, 6), (0, PROGRAM, 3)]), &[PAGE + 200.0, 2.0 * PAGE + 400.0]);
    }
}

#[test]
fn a_word_line_is_sent_and_programmed_as_a_whole_in_one_pass_or_two() {
    let planes = 12.0 * PAGE;
    let on = |fine| Capabilities { word_line: Some(WordLine { program: us(700), fine }), ..Capabilities::default() };
    close(&ends(on(None), &[(0, PROGRAM, 6)]), &[planes + 700.0]);
    close(&ends(on(Some(us(900))), &[(0, PROGRAM, 6)]), &[2.0 * planes + 1600.0]);
}

#[test]
fn a_program_makes_way_for_a_read_and_ends_as_much_later() {
    let suspend = Suspend { programs: true, erases: true, entry: us(20), resume: us(15), most: 1 };
    let on = Capabilities { suspend: Some(suspend), ..Capabilities::default() };
    let program = PAGE + 200.0;
    // The read comes at 50 us: it starts at 70 and ends 40.24 later, then the program goes on. It makes way once.
    let read = 70.0 + 30.0 + PAGE;
    close(&ends(on, &[(0, PROGRAM, 6), (50, READ, 3)]), &[program + (read - 50.0) + 15.0, read]);
    let late = program + (read - 50.0) + 15.0;
    close(&ends(on, &[(0, PROGRAM, 6), (50, READ, 3), (130, READ, 9)]), &[late, read, late + 30.0 + PAGE]);
    // The program behind it makes way once, too.
    let again = 370.0 + 30.0 + PAGE;
    let both = [(0, PROGRAM, 6), (50, READ, 3), (60, PROGRAM, 9), (350, READ, 3)];
    close(&ends(on, &both), &[late, read, late + program + (again - 350.0) + 15.0, again]);
    // It has 30.24 us left at 180: making way would take longer than waiting.
    close(&ends(on, &[(0, PROGRAM, 6), (180, READ, 3)]), &[program, program + 30.0 + PAGE]);
    // As long as waiting is not worth it either: 35 us are left of the erase.
    close(&ends(on, &[(0, CommandKind::Erase, 6), (2965, READ, 3)]), &[3000.0, 3030.0 + PAGE]);
    // Neither a read of housekeeping nor another program asks for it.
    close(&ends(on, &[(0, PROGRAM, 6), (50, READ, 12)]), &[program, program + 30.0 + PAGE]);
    close(&ends(on, &[(0, PROGRAM, 6), (50, PROGRAM, 3)]), &[program, 2.0 * program]);
}

#[test]
fn commands_take_their_cycles_on_the_bus_and_are_noticed_by_polling() {
    let on = Capabilities { command_cycles: us(1), status_poll: us(7), ..Capabilities::default() };
    // Sensing ends at 30 us and is noticed at 35.
    close(&ends(on, &[(0, READ, 6)]), &[35.0 + 1.0 + PAGE]);
    close(&ends(on, &[(0, CommandKind::Erase, 6)]), &[1.0 + 3003.0]);
}

#[test]
fn a_die_is_held_while_it_has_commands_and_busy_no_longer_than_that() {
    let page = SimSpan::from_ns(10_240);
    let planes = Capabilities { independent_planes: true, ..Capabilities::default() };
    let cache_read = Capabilities { cache_read: Some(us(2)), ..Capabilities::default() };
    let cache_program = Capabilities { cache_program: true, ..Capabilities::default() };
    // Each sends or takes in while its array works, and then pauses.
    for (on, kind, second, both) in [
        (planes, READ, 35, us(65) + page),
        (cache_read, READ, 0, us(64) + page),
        (cache_program, PROGRAM, 0, us(400) + page),
    ] {
        let bench =
            Bench::run(config(on, 4), vec![(0, kind, 1, 6), (second, kind, 1, 3), (2_000, CommandKind::Erase, 1, 6)]);
        let held = both + SimSpan::from_ms(3);
        assert_eq!((bench.nand.held(), bench.nand.die_held(1), bench.nand.die_held(0)), (held, held, SimSpan::ZERO));
        assert!(bench.nand.array_busy() + bench.nand.bus_busy() > held, "{on:?} overlaps");
        assert_eq!(bench.nand.die_busy(), held, "{on:?}");
    }
}
