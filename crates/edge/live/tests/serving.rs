//! The small enclosure of `scenarios/faults` under the wall clock, with clients inside the program.

mod small;

use flashyard_blk::{Operation, VolumeError, VolumeRequest};
use flashyard_live::{
    ChannelFront, ChannelVolume, Engine, EngineAccess, Handle, Load, LoadReport, Payload, Reader, Remote, SetUp, Tempo,
    run_load,
};
use flashyard_scenario::{NoFiles, live};
use flashyard_served::{Control, JournalHeader, Presence, Session, read_journal, replay};
use flashyard_units::{DriveId, SimSpan, VolumeId};
use small::{Shared, enclosure_of, exported, scenario, while_serving};
use std::sync::atomic::{AtomicBool, Ordering};

use std::time::{Duration, Instant};

/// Requests of a load that goes on as long as something is done beside it.
const UNTIL_DONE: u64 = u64::MAX;

/// The load on each of the volumes, on threads of their own, and what it has found on all of them.
fn load_all(
    volumes: Vec<ChannelVolume>,
    load: &Load,
    stop: impl Fn() -> bool + Sync,
) -> Result<LoadReport, VolumeError> {
    let stop = &stop;
    std::thread::scope(|scope| {
        let on_one = |(number, mut volume): (u64, ChannelVolume)| {
            let load = Load { seed: load.seed + number, ..load.clone() };
            scope.spawn(move || run_load(&mut volume, &load, stop))
        };
        let threads: Vec<_> = (0..).zip(volumes).map(on_one).collect();
        threads.into_iter().try_fold(LoadReport::default(), |mut sum, thread| {
            sum.add(thread.join().expect("no load panics")?);
            Ok(sum)
        })
    })
}

fn serve(tempo: Tempo, requests: u64, filled: &str) {
    serve_beside(tempo, requests, filled, &mut |_| {});
}

/// Serves a load while `beside` works at the engine, and repeats what the journal says.
fn serve_beside(tempo: Tempo, requests: u64, filled: &str, beside: &mut (impl FnMut(&Handle) + Send)) {
    let scenario = scenario(filled);
    let SetUp { world, media, .. } = enclosure_of(&scenario, None).expect("its enclosure can serve");
    let header = JournalHeader { seed: scenario.seed, scenario: String::new(), contents: None };
    let session = Session::new(world, Some(&header));
    let journal = Shared::default();
    let mut engine = Engine::new(session, media, &exported(), tempo).expect("there is a poll");
    engine.set_journal(Box::new(journal.clone()));
    let mut front = ChannelFront::new(engine.waker());
    let volumes: Vec<_> = engine.volumes().iter().map(|info| front.connect().volume(*info)).collect();
    engine.add_front(Box::new(front));
    let (remote, handle) = Remote::new(engine.waker());
    engine.add_hook(Box::new(remote));
    let load = Load {
        blocks: 20_000,
        requests: requests / 4,
        depth: 8,
        blocks_max: 12,
        reads: 0.4,
        seed: 7,
        patience: SimSpan::from_ms(30_000),
    };
    let (done, worked) = (AtomicBool::new(false), AtomicBool::new(false));
    let report = std::thread::scope(|scope| {
        let (done, worked) = (&done, &worked);
        let client = scope.spawn(move || {
            let report = load_all(volumes, &load, || worked.load(Ordering::Relaxed) && requests == UNTIL_DONE);
            done.store(true, Ordering::Relaxed);
            report
        });
        let beside = scope.spawn(move || {
            beside(&handle);
            worked.store(true, Ordering::Relaxed);
        });
        let report = engine.run(|_| done.load(Ordering::Relaxed)).expect("nothing is in the way");
        beside.join().expect("whatever was done beside it was done");
        let seen = client.join().expect("the client ends").expect("every request is answered");
        assert_eq!((seen.dropped, seen.wrong), (0, Vec::new()));
        assert!(seen.answered == requests || (requests == UNTIL_DONE && seen.answered > 0));
        report
    });
    let bytes = journal.0.lock().expect("no thread panicked").clone();
    let (_, records) = read_journal(&bytes).expect("it was just written");
    let replayed = replay(&mut live(&scenario, &NoFiles, None).expect("its enclosure can serve"), records, |_| {});
    let replayed = replayed.expect("the journal is whole");
    assert_eq!((replayed.digest, replayed.differs_at, replayed.complete), (report.digest, None, true));
    assert_eq!(replayed.events, report.events);
}

#[test]
fn a_client_reads_what_it_wrote_without_a_clock_and_the_journal_repeats_it() {
    serve(Tempo::Off, 20_000, "0.0");
    serve(Tempo::Off, 20_000, "0.9");
}

/// A clock that was read twice in one turn, with a request between, ended the server after a few of these.
#[test]
fn controls_beside_a_journal_under_load_have_the_moment_of_what_is_taken_in() {
    let switch = |pairs: u32| {
        move |handle: &Handle| {
            for on in (0..2 * pairs).map(|number| number % 2 == 1) {
                let control = Control::Harvest { on };
                handle.call(move |engine| engine.control(control)).expect("it serves").expect("it is never refused");
            }
        }
    };
    serve_beside(Tempo::Scaled(1.0), UNTIL_DONE, "0.5", &mut switch(400));
    serve_beside(Tempo::Scaled(0.1), UNTIL_DONE, "0.5", &mut switch(200));
    serve_beside(Tempo::Off, UNTIL_DONE, "0.5", &mut switch(200));
}

#[test]
fn a_client_reads_what_it_wrote_under_the_clock_and_the_journal_repeats_it() {
    serve(Tempo::Scaled(1.0), 3_000, "0.5");
    serve(Tempo::Scaled(0.25), 300, "0.0");
    serve(Tempo::Scaled(50.0), 3_000, "0.0");
}

#[test]
fn a_drive_can_be_pulled_and_put_back_under_load_and_figures_tell() {
    let SetUp { world, media, .. } = enclosure_of(&scenario("0.5"), None).expect("its enclosure can serve");
    let mut engine = Engine::new(Session::new(world, None), media, &exported(), Tempo::Off).expect("there is a poll");
    let mut front = ChannelFront::new(engine.waker());
    let volumes: Vec<_> = engine.volumes().iter().map(|info| front.connect().volume(*info)).collect();
    engine.add_front(Box::new(front));
    let (remote, handle) = Remote::new(engine.waker());
    engine.add_hook(Box::new(remote));
    let load = Load {
        blocks: 2_000,
        requests: 20_000 / 4,
        depth: 4,
        blocks_max: 8,
        reads: 0.5,
        seed: 3,
        patience: SimSpan::from_ms(30_000),
    };
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let over = &done;
        let load = scope.spawn(move || {
            let report = load_all(volumes, &load, || false);
            over.store(true, Ordering::Relaxed);
            report.expect("every request is answered")
        });
        let watch = scope.spawn(|| {
            let (mut ready, mut away, mut ios) = (0, 0, 0);
            while !done.load(Ordering::Relaxed) {
                let drive = DriveId::new(ios as u16 % 4);
                let pulled = handle.call(move |engine| {
                    engine.control(Control::Pull { drive }).expect("it is protected");
                    engine.session().world().presence(drive)
                });
                away += u32::from(pulled == Ok(Presence::NoPower));
                let put_back = handle.call(move |engine| engine.control(Control::Insert { drive }));
                let Ok(Ok(())) = put_back else { break };
                let Ok(gauges) = handle.call(|engine| engine.gauges(Reader::Operator)) else { break };
                ios += gauges.drives.iter().map(|drive| drive.ios).sum::<u64>();
                ready += gauges.drives.iter().filter(|drive| drive.presence == Presence::Ready).count();
                assert!(gauges.drives.iter().all(|drive| drive.latency.count() <= drive.ios && drive.die <= 1.0));
                std::thread::sleep(Duration::from_millis(5));
            }
            (ready, away, ios)
        });
        let report = engine.run(|_| done.load(Ordering::Relaxed)).expect("nothing is in the way");
        let seen = load.join().expect("the client ends");
        assert_eq!((seen.answered, seen.wrong), (20_000, Vec::new()));
        let (ready, away, ios) = watch.join().expect("the watch ends");
        println!("{report}\n{ready} {away} {ios}");
        assert!(away > 3 && ready > 3 && ios > 1_000, "{away} {ready} {ios}");
    });
}

#[test]
fn without_a_clock_a_request_for_a_drive_that_is_away_does_not_let_time_pass() {
    let SetUp { world, media, .. } = enclosure_of(&scenario("0.5"), None).expect("its enclosure can serve");
    let mut engine = Engine::new(Session::new(world, None), media, &exported(), Tempo::Off).expect("there is a poll");
    let mut front = ChannelFront::new(engine.waker());
    let mut client = front.connect();
    engine.add_front(Box::new(front));
    let (remote, handle) = Remote::new(engine.waker());
    engine.add_hook(Box::new(remote));
    while_serving(engine, || {
        let control = |control| {
            handle.call(move |engine| engine.control(control)).expect("it serves").expect("it can be done");
        };
        let figures = || {
            let look = |engine: &mut EngineAccess<'_>| {
                (engine.session().world().steps(), engine.session().world().in_flight(), engine.turns())
            };
            handle.call(look).expect("it serves")
        };
        control(Control::Pull { drive: DriveId::new(2) });
        let volume = VolumeId::new(2);
        let read = VolumeRequest { volume, operation: Operation::Read, first: 0, count: 1, source: 0 };
        client.submit(1 << 40, read, Payload::None).expect("it serves");
        assert!(client.read(VolumeId::new(1), 0, 1).is_ok(), "other drives serve");
        let begun = Instant::now();
        let (steps, turns) = loop {
            let (steps, in_flight, turns) = figures();
            std::thread::sleep(Duration::from_millis(300));
            if (figures().0, in_flight) == (steps, 1) {
                break (steps, turns);
            }
            assert!(begun.elapsed() < Duration::from_secs(60), "time passes: {steps} events");
        };
        let now = figures();
        assert!(now.2 - turns < 10_000, "{} turns in 0.3 s: it runs in circles", now.2 - turns);
        assert_eq!((now.0, now.1), (steps, 1));
        control(Control::Insert { drive: DriveId::new(2) });
        assert_eq!(client.next(Duration::from_secs(60)).expect("it is back").token, 1 << 40);
    });
}
