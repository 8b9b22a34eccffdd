//! The small box of `scenarios/faults` under the wall clock, with clients inside the program.

mod small;

use flashyard_live::{ChannelFront, Engine, Load, SetUp, Tempo, run_load};
use flashyard_systems::jbof::{JournalHeader, Session, read_journal, replay};
use small::{box_of, exported, scenario};
use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// A journal in memory that outlives its engine.
#[derive(Clone, Default)]
struct Shared(Arc<Mutex<Vec<u8>>>);

impl Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().expect("no thread panicked").extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

fn serve(tempo: Tempo, requests: u64, filled: &str) {
    let scenario = scenario(filled);
    let SetUp { world, media, .. } = box_of(&scenario, None).expect("its box can serve");
    let header = JournalHeader { seed: scenario.seed, scenario: String::new() };
    let session = Session::new(world, Some(&header));
    let journal = Shared::default();
    let mut engine = Engine::new(session, media, &exported(), tempo).expect("there is a poll");
    engine.set_journal(Box::new(journal.clone()));
    let mut front = ChannelFront::new(engine.waker());
    let client = front.connect();
    engine.add_front(Box::new(front));
    let load = Load {
        drives: (0..4).map(|drive| (drive, 20_000)).collect(),
        requests,
        depth: 32,
        slots_max: 12,
        reads: 0.4,
        seed: 7,
        patience: Duration::from_secs(30),
    };
    let done = Arc::new(AtomicBool::new(false));
    let report = std::thread::scope(|scope| {
        let client = scope.spawn({
            let done = Arc::clone(&done);
            move || {
                let report = run_load(&client, &load);
                done.store(true, Ordering::Relaxed);
                report
            }
        });
        let report = engine.run(|_| done.load(Ordering::Relaxed)).expect("nothing is in the way");
        let seen = client.join().expect("the client ends").expect("every request is answered");
        assert_eq!((seen.answered, seen.dropped), (requests, 0));
        assert_eq!(seen.wrong, Vec::<String>::new(), "of {} slots", seen.compared);
        assert!(seen.compared > requests);
        report
    });
    println!("{report}");
    assert_eq!(report.requests.iter().sum::<u64>(), requests);
    let bytes = journal.0.lock().expect("no thread panicked").clone();
    let (_, records) = read_journal(&bytes).expect("it was just written");
    let replayed = replay(&mut scenario.live(None).expect("its box can serve"), records, |_| {});
    let replayed = replayed.expect("the journal is whole");
    assert_eq!((replayed.digest, replayed.differs_at, replayed.complete), (report.digest, None, true));
    assert_eq!(replayed.events, report.events);
}

#[test]
fn a_client_reads_what_it_wrote_without_a_clock_and_the_journal_repeats_it() {
    serve(Tempo::Off, 20_000, "0.0");
    serve(Tempo::Off, 20_000, "0.9");
}

#[test]
fn a_client_reads_what_it_wrote_under_the_clock_and_the_journal_repeats_it() {
    serve(Tempo::Scaled(1.0), 3_000, "0.5");
    serve(Tempo::Scaled(0.25), 300, "0.0");
    serve(Tempo::Scaled(50.0), 3_000, "0.0");
}
