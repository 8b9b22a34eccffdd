//! The small enclosure of `scenarios/faults` while it serves: payload follows the drives' movements, whatever breaks,
//! and a journal repeats the session exactly.

use flashyard_blk::{Operation, VolumeRequest};
use flashyard_describe::{NoFiles, Scenario};
use flashyard_flash::Slot;
use flashyard_kernel::{Pace, Rng, Wake};
use flashyard_served::{
    Answer, Control, Effect, JournalError, JournalHeader, Refused, Served, Session, read_journal, replay,
};
use flashyard_ssd::Movement;
use flashyard_units::{DriveId, SimSpan, SimTime, VolumeId};
use flashyard_xbof::jbof::LiveJbof;
use flashyard_xbof::room::{live, resolve};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::sync::LazyLock;

fn scenario() -> Scenario {
    scenario_with(&[])
}

fn scenario_with(settings: &[&str]) -> Scenario {
    let text = include_str!("../../../../scenarios/faults/scenario.toml");
    let settings: Vec<String> =
        ["drive.filled=0.9"].iter().chain(settings).map(|&setting| setting.to_owned()).collect();
    resolve(text, "faults", &settings, &NoFiles).expect("the scenario is whole").scenario
}

/// A script for the clock on the wall: nothing is due after its time.
struct Until(SimTime);

impl Pace for Until {
    fn wait_until(&mut self, deadline: SimTime) -> Wake {
        if deadline <= self.0 { Wake::Due { late: SimSpan::ZERO } } else { Wake::Input { now: self.0 } }
    }
}

/// A request, in the numbers that drives have in this test.
#[derive(Clone, Copy, Debug)]
struct Ask {
    token: u32,
    drive: u16,
    operation: Operation,
    first: u32,
    count: u32,
    source: u32,
}

impl Ask {
    fn request(&self) -> VolumeRequest {
        let Self { drive, operation, first, count, source, .. } = *self;
        let volume = VolumeId::new(drive);
        VolumeRequest { volume, operation, first: first.into(), count, source: source.into() }
    }
}

#[derive(Clone)]
struct Asked {
    ask: Ask,
    /// Stamp of each slot of a write.
    stamp: u64,
    /// Slots that it changes, and their stamps.
    changes: Vec<(u32, u64)>,
    /// Places and stamps that a read has found so far.
    found: Vec<(Slot, u64)>,
    /// Stamps that each slot of a read may have.
    allowed: Vec<Vec<u64>>,
}

/// Clients, and the bytes of all drives by physical slot; a stamp stands for 4 KiB.
struct Clients {
    session: Session<LiveJbof>,
    media: Vec<BTreeMap<u32, u64>>,
    under_way: BTreeMap<u32, Asked>,
    /// Given up; a drive that the driver has lost may still be at it.
    dropped: BTreeMap<u32, Asked>,
    /// Stamps that a read may find in a slot: all written since the last write that was answered before.
    current: BTreeMap<(u16, u32), Vec<u64>>,
    gone: Vec<bool>,
    tokens: u32,
    answered: u64,
    erased: u64,
    remapped: u64,
    /// Places that reads had found, and that were erased before the reads were answered: another of their pages waited for an erase.
    promised: usize,
    effects: u64,
}

impl Clients {
    fn new(journal: bool) -> Self {
        Self::of(&scenario(), journal)
    }

    fn of(scenario: &Scenario, journal: bool) -> Self {
        let world = live(scenario, &NoFiles, None).expect("its enclosure can serve");
        let drives = world.drives() as usize;
        let header = JournalHeader { seed: 1, scenario: "the small box".to_owned(), contents: None };
        Self {
            session: Session::new(Box::new(world), journal.then_some(&header)),
            media: vec![BTreeMap::new(); drives],
            under_way: BTreeMap::new(),
            dropped: BTreeMap::new(),
            current: BTreeMap::new(),
            gone: vec![false; drives],
            tokens: 0,
            answered: 0,
            erased: 0,
            remapped: 0,
            promised: 0,
            effects: 0,
        }
    }

    fn ask(&mut self, now: SimTime, operation: Operation, drive: u16, first: u32, count: u32) {
        let token = self.tokens;
        self.tokens += 1;
        let ask = Ask { token, drive, operation, first, count, source: 0 };
        let stamp = if operation == Operation::Write { u64::from(token) + 1 } else { 0 };
        let changed = if matches!(operation, Operation::Write | Operation::Trim) { first..first + count } else { 0..0 };
        self.hand_in(now, ask, stamp, changed.map(|slot| (slot, stamp)).collect());
    }

    /// A remap, of slots whose contents are known and do not change until it is carried out.
    fn remap(&mut self, now: SimTime, drive: u16, first: u32, source: u32, count: u32) {
        let token = self.tokens;
        self.tokens += 1;
        let pairs = (first..first + count).zip(source..);
        let mapped = pairs.filter(|&(_, source)| self.session.world().place(DriveId::new(drive), source).is_some());
        let changes = mapped.flat_map(|(slot, source)| {
            let stamps = self.allowed(drive, source);
            assert_eq!(stamps.len(), 1, "slot {source} is known");
            [(slot, stamps[0]), (source, 0)]
        });
        let changes = changes.collect();
        self.hand_in(now, Ask { token, drive, operation: Operation::Remap, first, count, source }, 0, changes);
    }

    fn hand_in(&mut self, now: SimTime, ask: Ask, stamp: u64, changes: Vec<(u32, u64)>) {
        let Ask { token, drive, operation, first, count, .. } = ask;
        let mut allowed = Vec::new();
        if operation == Operation::Read {
            allowed.extend((first..first + count).map(|slot| self.allowed(drive, slot)));
        }
        for &(slot, stamp) in &changes {
            self.current.entry((drive, slot)).or_insert_with(|| vec![0]).push(stamp);
            for asked in self.under_way.values_mut().filter(|asked| asked.ask.drive == drive) {
                if let Some(place) = slot.checked_sub(asked.ask.first)
                    && let Some(stamps) = asked.allowed.get_mut(place as usize)
                {
                    stamps.push(stamp);
                }
            }
        }
        let found = vec![(Slot::NONE, u64::MAX); if operation == Operation::Read { count as usize } else { 0 }];
        self.under_way.insert(token, Asked { ask, stamp, changes, found, allowed });
        self.session.submit(now, token, &ask.request()).expect("the request is possible");
        self.follow();
    }

    fn allowed(&self, drive: u16, slot: u32) -> Vec<u64> {
        self.current.get(&(drive, slot)).cloned().unwrap_or_else(|| vec![0])
    }

    fn conflicts(&self, drive: u16, first: u32, count: u32) -> bool {
        let meets = |start: u32, ask: &Ask| first < start + ask.count && start < first + count;
        self.under_way.values().any(|Asked { ask, .. }| {
            let remaps = ask.operation == Operation::Remap;
            let changes = remaps || matches!(ask.operation, Operation::Write | Operation::Trim);
            changes && ask.drive == drive && (meets(ask.first, ask) || remaps && meets(ask.source, ask))
        })
    }

    fn run_until(&mut self, time: SimTime) {
        self.session.run(&mut Until(time), u64::MAX);
        self.follow();
    }

    fn follow(&mut self) {
        let mut effects = Vec::new();
        self.session.take_effects(&mut effects);
        for effect in effects {
            self.effects += 1;
            match effect {
                Effect::Payload { drive, movement } => self.moved(drive.get(), movement),
                Effect::Answered { token, answer, .. } => self.answered(token, answer),
                Effect::Copied { .. } => unreachable!("each volume of an enclosure lies on one drive"),
                Effect::Gone { volume } => self.gone[volume.index()] = true,
                Effect::Back { volume } => self.gone[volume.index()] = false,
            }
        }
    }

    fn moved(&mut self, drive: u16, movement: Movement) {
        let media = &mut self.media[drive as usize];
        match movement {
            Movement::Opened { .. } => {}
            Movement::Written { tag, place, logical, slot, .. } => {
                let asked =
                    self.under_way.get(&tag).or(self.dropped.get(&tag)).expect("only what was asked for writes");
                assert_eq!(logical, asked.ask.first + place);
                assert_eq!(media.insert(slot.get(), asked.stamp), None, "a slot is written once between erases");
            }
            Movement::Moved { from, to, .. } => {
                let payload = media.get(&from.get()).copied().unwrap_or(0);
                assert_eq!(media.insert(to.get(), payload), None, "a slot is written once between erases");
            }
            Movement::Remapped { .. } => self.remapped += 1,
            Movement::Lost { .. } => panic!("no read of this enclosure is given up"),
            Movement::Reverted { .. } => panic!("the drives of this enclosure are protected"),
            Movement::Trimmed { .. } => {}
            Movement::Erased { superblock } => {
                self.erased += 1;
                let layout = self.session.world().layout(DriveId::new(drive));
                let first = layout.slot(superblock, 0).get();
                for asked in self.under_way.values().filter(|asked| asked.ask.drive == drive) {
                    let lies = |slot: Slot| slot.is_some() && layout.split(slot).0 == superblock;
                    // An owner of real bytes has to copy these now; here a read has its payload already.
                    self.promised += asked.found.iter().filter(|(slot, _)| lies(*slot)).count();
                }
                media.retain(|slot, _| !(first..first + layout.slots_per_superblock).contains(slot));
            }
            Movement::Read { tag, place, slot } => {
                let payload = if slot.is_some() { media.get(&slot.get()).copied().unwrap_or(0) } else { 0 };
                if let Some(asked) = self.under_way.get_mut(&tag) {
                    asked.found[place as usize] = (slot, payload);
                } else {
                    assert!(self.session.world().keeps(tag), "{tag} reads and is not under way");
                }
            }
        }
    }

    fn answered(&mut self, token: u32, answer: Answer) {
        let asked = self.under_way.remove(&token).expect("answered once");
        self.answered += 1;
        if answer == Answer::Dropped {
            self.dropped.insert(token, asked);
            return;
        }
        let Asked { ask, changes, found, allowed, .. } = asked;
        for (slot, stamp) in changes {
            self.current.insert((ask.drive, slot), vec![stamp]);
        }
        for ((slot, payload), allowed) in found.into_iter().zip(allowed) {
            assert!(allowed.contains(&payload), "{ask:?} found {payload} at {slot:?}, may find {allowed:?}");
        }
    }

    /// Gives every drive its power and its link.
    fn give_back(&mut self, now: SimTime) {
        self.session.control(now, Control::PowerOn).expect("power can be given");
        DriveId::first(4)
            .for_each(|drive| self.session.control(now, Control::Link { drive, up: true }).expect("there are four"));
        self.follow();
    }

    /// A random request to one of the drives.
    fn ask_something(&mut self, now: SimTime, rng: &mut Rng) {
        let drive = rng.below(4).min(rng.below(4)) as u16;
        let slots = u64::from(self.session.world().slots(DriveId::new(drive)));
        let operation = match rng.below(100) {
            0..50 => Operation::Write,
            50..92 => Operation::Read,
            92..95 => Operation::Trim,
            95..97 => Operation::Remap,
            _ => Operation::Flush,
        };
        let count = 1 + rng.below(8) as u32;
        let first = if rng.below(2) == 0 { rng.below(64) } else { rng.below(slots - 8) } as u32;
        if operation == Operation::Remap {
            let source = if rng.below(2) == 0 { rng.below(64) } else { rng.below(slots - 8) } as u32;
            // A request given up may yet be carried out.
            let known = self.dropped.is_empty() && !self.conflicts(drive, source, count);
            if known && source.abs_diff(first) >= count && !self.conflicts(drive, first, count) {
                self.remap(now, drive, first, source, count);
            }
        } else if !matches!(operation, Operation::Write | Operation::Trim) || !self.conflicts(drive, first, count) {
            self.ask(now, operation, drive, first, count);
        }
    }
}

/// A session of `requests` requests at about `gap` of each other, in which `control` may do things.
fn session(
    seed: u64,
    requests: u32,
    gap: SimSpan,
    journal: bool,
    control: impl FnMut(&mut Clients, SimTime, u32, &mut Rng),
) -> Clients {
    session_of(Clients::new(journal), seed, requests, gap, control)
}

fn session_of(
    mut clients: Clients,
    seed: u64,
    requests: u32,
    gap: SimSpan,
    mut control: impl FnMut(&mut Clients, SimTime, u32, &mut Rng),
) -> Clients {
    let mut rng = Rng::named(seed, "live");
    let mut now = SimTime::ZERO;
    for number in 0..requests {
        now += SimSpan::from_ps(rng.below(2 * gap.as_ps()));
        clients.run_until(now);
        control(&mut clients, now, number, &mut rng);
        clients.follow();
        while clients.under_way.len() > 48 {
            now = clients.session.world().next_due().expect("requests are under way").max(now);
            clients.run_until(now);
            if clients.gone.contains(&true) {
                clients.give_back(now);
            }
        }
        clients.ask_something(now, &mut rng);
    }
    clients.give_back(now);
    let end = now + SimSpan::from_ms(40);
    clients.run_until(end);
    assert!(clients.under_way.is_empty(), "never answered: {:?}", clients.under_way.keys().collect::<Vec<_>>());
    clients
}

#[test]
fn what_is_read_is_what_was_written_while_reclaim_runs_and_drives_lend() {
    for seed in 1..4 {
        let clients = session(seed, 40_000, SimSpan::from_us(30), false, |_, _, _, _| {});
        assert!(clients.erased > 20, "reclaim was hardly exercised: {}", clients.erased);
        assert!(clients.remapped > 500, "remaps were hardly exercised: {}", clients.remapped);
        assert_eq!(u64::from(clients.tokens), clients.answered);
    }
}

fn break_something(clients: &mut Clients, now: SimTime, number: u32, rng: &mut Rng) {
    if number % 40 != 39 {
        return;
    }
    let drive = DriveId::new(rng.below(4) as u16);
    let control = match rng.below(10) {
        0 => Control::Pull { drive },
        1 | 2 => Control::Insert { drive },
        3 => Control::PowerOff,
        4 => Control::PowerOn,
        5 => Control::Link { drive, up: false },
        6 => Control::Link { drive, up: true },
        7 => Control::Hang { drive, span: SimSpan::from_us(rng.below(900)) },
        8 => Control::Harvest { on: rng.below(2) == 0 },
        _ => Control::Age { drive, raw_bit_error_rate: rng.unit() * 0.01 },
    };
    clients.session.control(now, control).expect("all of these are possible");
    // Dead drives must not be the rule.
    for drive in DriveId::first(4) {
        if rng.below(3) > 0 {
            let power = clients.session.control(now, Control::Insert { drive });
            power.and_then(|()| clients.session.control(now, Control::Link { drive, up: true })).expect("it exists");
        }
    }
}

#[test]
fn what_is_read_is_what_was_written_whatever_breaks() {
    for seed in 10..14 {
        let clients = session(seed, 12_000, SimSpan::from_us(30), false, break_something);
        assert_eq!(u64::from(clients.tokens), clients.answered);
        assert!(clients.gone.iter().all(|gone| !gone), "everything is back");
    }
}

/// A reset of the controller takes nothing of its memory; a power cut would, and drives that lend keep what must not be lost there.
#[test]
fn drives_without_protection_survive_links_and_firmware_that_fail_and_keep_their_power() {
    let scenario = scenario_with(&["drive.power_loss_protection=false"]);
    let clients =
        session_of(Clients::of(&scenario, false), 17, 8_000, SimSpan::from_us(30), |clients, now, number, rng| {
            if number % 40 != 39 {
                return;
            }
            let drive = DriveId::new(rng.below(4) as u16);
            let control = match rng.below(3) {
                0 => Control::Link { drive, up: false },
                1 => Control::Link { drive, up: true },
                _ => Control::Hang { drive, span: SimSpan::from_us(rng.below(900)) },
            };
            clients.session.control(now, control).expect("all of these are possible");
            for control in [Control::Pull { drive }, Control::PowerOff] {
                let refused = clients.session.control(now, control).expect_err("it would lose data").to_string();
                assert!(refused.contains("has no power-loss protection"), "{refused}");
            }
            for drive in DriveId::first(4).filter(|_| rng.below(3) > 0) {
                clients.session.control(now, Control::Link { drive, up: true }).expect("it exists");
            }
        });
    assert_eq!(u64::from(clients.tokens), clients.answered);
}

#[test]
fn a_request_for_a_drive_that_is_away_is_held_and_can_be_dropped() {
    let mut clients = Clients::new(false);
    let now = SimTime::ZERO + SimSpan::from_us(50);
    clients.run_until(now);
    clients.session.control(now, Control::Pull { drive: DriveId::new(2) }).expect("there is a drive 2");
    clients.follow();
    assert_eq!(clients.gone, [false, false, true, false]);
    clients.ask(now, Operation::Write, 2, 0, 4);
    clients.ask(now, Operation::Write, 2, 8, 4);
    let later = now + SimSpan::from_ms(3);
    clients.run_until(later);
    assert_eq!(clients.answered, 0);
    clients.session.control(later, Control::Drop { token: 0 }).expect("dropping is always possible");
    clients.follow();
    assert_eq!(clients.answered, 1);
    clients.session.control(later, Control::Insert { drive: DriveId::new(2) }).expect("there is a drive 2");
    clients.run_until(later + SimSpan::from_ms(3));
    assert_eq!((clients.answered, clients.gone[2]), (2, false));
    assert!(clients.media[2].values().all(|&stamp| stamp != 1), "what was dropped is not written later");
}

#[test]
fn a_request_that_has_not_come_to_the_data_can_be_taken_back_and_one_that_has_is_carried_out() {
    let mut clients = Clients::new(false);
    let now = SimTime::ZERO + SimSpan::from_us(50);
    clients.run_until(now);
    for block in 0..64 {
        clients.ask(now, Operation::Write, 0, block, 1);
    }
    // The first ones are with the data by now, the last ones wait for a core.
    let mut later = now;
    while clients.answered == 0 {
        later = clients.session.world().next_due().expect("they are under way");
        clients.run_until(later);
    }
    let answered = clients.answered;
    for token in 0..64 {
        clients.session.control(later, Control::Drop { token }).expect("dropping is always possible");
    }
    clients.follow();
    let dropped = clients.answered - answered;
    assert!((1..63).contains(&dropped), "{answered} were answered, {dropped} could be taken back");
    clients.run_until(later + SimSpan::from_ms(3));
    assert_eq!(clients.answered, 64);
    assert_eq!(clients.media[0].values().filter(|&&stamp| stamp > 0).count() as u64, 64 - dropped);
    // Numbers taken back are used again: nothing of an old request is taken for a new one.
    for block in 0..64 {
        clients.ask(later + SimSpan::from_ms(3), Operation::Read, 0, block, 1);
    }
    clients.run_until(later + SimSpan::from_ms(9));
    assert_eq!(clients.answered, 128);
}

#[test]
fn what_is_read_is_what_was_written_while_requests_are_taken_back_and_things_break() {
    for seed in 20..23 {
        let clients = session(seed, 12_000, SimSpan::from_us(30), false, |clients, now, number, rng| {
            break_something(clients, now, number, rng);
            if number % 7 == 6
                && let Some(&token) = clients.under_way.keys().nth(rng.below(8) as usize)
            {
                clients.session.control(now, Control::Drop { token }).expect("dropping is always possible");
            }
        });
        assert_eq!(u64::from(clients.tokens), clients.answered);
    }
}

#[test]
fn numbers_of_requests_that_were_given_up_are_used_again() {
    let numbers = |requests| {
        let mut numbers = 0;
        session(30, requests, SimSpan::from_us(30), false, |clients, now, number, rng| {
            break_something(clients, now, number, rng);
            numbers = clients.session.world().numbers();
        });
        numbers
    };
    let (short, long) = (numbers(4_000), numbers(24_000));
    assert!(long <= 2 * short, "{short} numbers for 4,000 requests, {long} for 24,000");
}

#[test]
fn a_command_longer_than_the_time_out_is_carried_out_in_the_end() {
    let scenario = scenario_with(&["host.io_timeout=\"20 us\""]);
    let mut clients = Clients::of(&scenario, false);
    let now = SimTime::ZERO + SimSpan::from_us(50);
    clients.run_until(now);
    for block in 0..16 {
        clients.ask(now, Operation::Write, 1, 32 * block, 32);
    }
    clients.run_until(now + SimSpan::from_ms(200));
    assert_eq!(clients.answered, 16);
    clients.ask(now + SimSpan::from_ms(200), Operation::Flush, 1, 0, 0);
    clients.run_until(now + SimSpan::from_ms(400));
    assert_eq!(clients.answered, 17);
}

#[test]
fn requests_for_a_drive_that_is_away_are_not_in_progress_and_those_for_one_that_hangs_are() {
    let mut clients = Clients::new(false);
    let mut now = SimTime::ZERO + SimSpan::from_us(50);
    clients.run_until(now);
    let state = |clients: &Clients| (clients.session.world().in_flight(), clients.session.world().in_progress());
    let mut control = |clients: &mut Clients, control| {
        clients.session.control(now, control).expect("it can be done");
        for block in 0..4 {
            clients.ask(now, Operation::Write, 2, 8 * block, 4);
        }
        now += SimSpan::from_ms(3);
        clients.run_until(now);
        state(clients)
    };
    assert_eq!(control(&mut clients, Control::Pull { drive: DriveId::new(2) }), (4, 0));
    assert_eq!(control(&mut clients, Control::Insert { drive: DriveId::new(2) }), (0, 0));
    assert_eq!(control(&mut clients, Control::Link { drive: DriveId::new(2), up: false }), (4, 0));
    assert_eq!(control(&mut clients, Control::Link { drive: DriveId::new(2), up: true }), (0, 0));
    assert_eq!(control(&mut clients, Control::Hang { drive: DriveId::new(2), span: SimSpan::from_ms(500) }), (4, 4));
}

#[test]
fn what_cannot_be_asked_is_refused_in_words() {
    let mut clients = Clients::new(false);
    let mut ask = |drive, first, count| {
        let ask = Ask { token: 0, drive, operation: Operation::Read, first, count, source: 0 };
        clients.session.submit(SimTime::ZERO, 0, &ask.request()).expect_err("it is impossible").to_string()
    };
    assert_eq!(ask(4, 0, 1), "there is no volume 4, give 0 to 3");
    assert!(ask(0, u32::MAX, 2).contains("give at least one, and none beyond the last"));
    assert!(ask(0, 0, 0).contains("0 blocks"));
    let rate =
        clients.session.control(SimTime::ZERO, Control::Age { drive: DriveId::new(0), raw_bit_error_rate: f64::NAN });
    assert_eq!(rate, Err(Refused::Control { reason: "NaN is no bit error rate, give 0 to 0.5".to_owned() }));
    let hang = Control::Hang { drive: DriveId::new(0), span: SimSpan::from_secs(3601) };
    let refused = clients.session.control(SimTime::ZERO, hang).expect_err("an hour is the most").to_string();
    assert_eq!(refused, "a firmware cannot stand still for 3601.000 s, give at most 3600.000 s");
}

/// Every byte of a journal's records changed in several ways: each is repeated or refused, and none for ever.
#[test]
fn a_damaged_journal_is_repeated_or_refused_and_ends() {
    let control = |clients: &mut Clients, now, number, rng: &mut Rng| break_something(clients, now, number, rng);
    let mut clients = session(9, 60, SimSpan::from_us(40), true, control);
    clients.session.end();
    let bytes = clients.session.take_journal();
    let records = bytes.len() - "the small box".len();
    let begins = bytes.windows(9).position(|words| words == b"small box").expect("it is in the head") + 10;
    let mut rng = Rng::named(1, "damage");
    let mut refused = 0;
    for number in 0..400 {
        let mut damaged = bytes.clone();
        let at = begins + rng.below((bytes.len() - begins) as u64) as usize;
        match number % 4 {
            0 => damaged[at] ^= 1 << rng.below(8),
            1 => damaged[at] |= 0x80,
            2 => damaged.truncate(at),
            _ => (at..damaged.len().min(at + 9)).for_each(|at| damaged[at] = 0xFF),
        }
        let Ok((_, records)) = read_journal(&damaged) else { continue };
        let mut world = live(&scenario(), &NoFiles, None).expect("its enclosure can serve");
        refused += u32::from(replay(&mut world, records, |_| {}).is_err());
    }
    assert!(records > 100 && refused > 50, "{refused} of 400 are refused");
}

/// A record whose number of events and whose time are both far away, of an enclosure that never rests.
#[test]
fn a_record_that_names_more_events_than_its_time_has_is_refused_at_once() {
    let mut clients = Clients::new(true);
    let mut bytes = clients.session.take_journal();
    // 2^62 events until a microsecond, and a flush.
    bytes.extend([0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x40, 0xC0, 0x84, 0x3D, 3, 0, 0, 0, 0]);
    let (_, records) = read_journal(&bytes).expect("the head is whole");
    let refused = replay(&mut live(&scenario(), &NoFiles, None).expect("its enclosure can serve"), records, |_| {});
    assert!(matches!(refused, Err(JournalError::NoEvent { number: 1, .. })), "{refused:?}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]
    #[test]
    fn replaying_a_journal_gives_the_identical_effects(seed: u64, gap_us in 5_u64..60, breaks: bool) {
        let gap = SimSpan::from_us(gap_us);
        let control = |clients: &mut Clients, now, number, rng: &mut Rng| {
            if breaks { break_something(clients, now, number, rng) }
        };
        let mut clients = session(seed, 3_000, gap, true, control);
        clients.session.end();
        let bytes = clients.session.take_journal();
        let (header, records) = read_journal(&bytes).expect("it was just written");
        prop_assert_eq!(header.scenario, "the small box");
        let mut world = live(&scenario(), &NoFiles, None).expect("its enclosure can serve");
        let replayed = replay(&mut world, records, |_| {}).expect("the journal is whole");
        prop_assert_eq!(replayed.digest, clients.session.digest());
        prop_assert_eq!(replayed.differs_at, None);
        prop_assert_eq!(replayed.effects, clients.effects);
        prop_assert!(replayed.complete);
        prop_assert_eq!(replayed.events, clients.session.world().steps());
        // One request more, and it is another session.
        let (_, records) = read_journal(&bytes).expect("it was just written");
        let mut other = live(&scenario(), &NoFiles, None).expect("its enclosure can serve");
        let read = Ask { token: u32::MAX, drive: 0, operation: Operation::Read, first: 0, count: 1, source: 0 };
        other.submit(SimTime::ZERO, read.token, &read.request()).expect("a read of one slot");
        let differs = replay(&mut other, records, |_| {}).map_or(true, |other| other.digest != replayed.digest);
        prop_assert!(differs);
    }

    #[test]
    fn any_bytes_are_read_as_a_journal_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        let mut whole = b"flashyard journal 1\n".to_vec();
        whole.extend(&bytes);
        for text in [&bytes, &whole] {
            if let Ok((_, records)) = read_journal(text) {
                records.for_each(drop);
            }
        }
    }
}

/// A journal in which nothing has happened yet: what stands before the first record.
static HEAD: LazyLock<Vec<u8>> = LazyLock::new(|| Clients::new(true).session.take_journal());

proptest! {
    #[test]
    fn any_bytes_after_a_journals_head_are_records_in_order_of_time_or_refused(
        bytes in prop::collection::vec(prop_oneof![4 => 0_u8..12, 1 => any::<u8>()], 0..400),
    ) {
        let journal = [&HEAD[..], &bytes].concat();
        let (header, records) = read_journal(&journal).expect("the head is whole");
        prop_assert_eq!(header.scenario, "the small box");
        let (mut steps, mut at, mut failed) = (0, SimTime::ZERO, false);
        for (number, record) in (1_u64..).zip(records) {
            prop_assert!(!failed, "something is read after what is wrong");
            match record {
                Ok(record) => {
                    prop_assert!(record.steps >= steps && record.at >= at, "time runs backwards");
                    (steps, at) = (record.steps, record.at);
                }
                Err(JournalError::Record { number: found, offset }) => {
                    prop_assert_eq!(found, number);
                    prop_assert!((HEAD.len()..journal.len()).contains(&offset));
                    failed = true;
                }
                Err(error) => prop_assert!(false, "{error}"),
            }
        }
    }
}
