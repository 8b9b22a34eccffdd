//! A served enclosure whose drives age and lose data: its journal repeats it exactly, in the life after as well.

use flashyard_blk::{Operation, VolumeRequest};
use flashyard_describe::{NoFiles, Scenario};
use flashyard_kernel::{FreeRun, Rng};
use flashyard_served::{Answer, Control, Effect, JournalHeader, Refused, Session, read_journal, replay};
use flashyard_units::{DriveId, SimTime, VolumeId};
use flashyard_xbof::jbof::LiveJbof;
use flashyard_xbof::room::{live, resolve};

const DRIVE: DriveId = DriveId::new(0);

fn scenario() -> Scenario {
    let text = include_str!("../../../../scenarios/faults/scenario.toml");
    let settings = [
        "drive.filled=0.9",
        "drive.blocks_per_plane=64",
        "drive.over_provisioning=0.3",
        "drive.read_retries_max=5",
        "drive.wear.endurance=300",
    ];
    resolve(text, "faults", &settings.map(str::to_owned), &NoFiles).expect("the scenario is whole").scenario
}

/// A few thousand requests on drive 0 as it is aged and made to err, after what lasts of an earlier life; its journal,
/// and reads that were given up.
fn lived(world: LiveJbof, header: &JournalHeader, lasts: &[Control], seed: u64) -> (Session<LiveJbof>, u32) {
    let mut session = Session::new(Box::new(world), Some(header));
    for &control in lasts {
        session.control(SimTime::ZERO, control).expect("it was possible");
    }
    let mut rng = Rng::named(seed, "lost");
    let slots = session.world().slots(DriveId::new(0));
    let mut unread = 0;
    for number in 0..3000_u32 {
        let now = session.world().now();
        let control = match number {
            500 => Some(Control::Wear { drive: DRIVE, level: 0.27 }),
            600 => Some(Control::Retire { drive: DRIVE, rate: Some(0.05), retries: Some(2) }),
            700 => Some(Control::Degrade { drive: DRIVE, on: true }),
            800 => Some(Control::Age { drive: DRIVE, raw_bit_error_rate: 0.3 }),
            1400 => Some(Control::Age { drive: DRIVE, raw_bit_error_rate: 0.0 }),
            _ => None,
        };
        if let Some(control) = control {
            session.control(now, control).expect("it is possible");
        }
        let operation = if rng.below(3) == 0 { Operation::Read } else { Operation::Write };
        let count = 1 + rng.below(8) as u32;
        let first = rng.below(u64::from(slots / 2 - count));
        let request = VolumeRequest { volume: VolumeId::new(0), operation, first, count, source: 0 };
        session.submit(now, number, &request).expect("it is possible");
        let mut answered = false;
        while !answered {
            assert!(session.run(&mut FreeRun, 1) == 1, "request {number} is never answered");
            let mut effects = Vec::new();
            session.take_effects(&mut effects);
            for effect in effects {
                if let Effect::Answered { answer, .. } = effect {
                    answered = true;
                    unread += u32::from(matches!(answer, Answer::Unread { .. }));
                }
            }
        }
    }
    session.end();
    (session, unread)
}

fn repeats(session: &mut Session<LiveJbof>, mut world: LiveJbof) {
    let bytes = session.take_journal();
    let (_, records) = read_journal(&bytes).expect("it was just written");
    let replayed = replay(&mut world, records, |_| {}).expect("the journal is whole");
    assert_eq!((replayed.digest, replayed.differs_at), (session.digest(), None));
    assert!(replayed.complete);
}

#[test]
fn the_journal_of_a_box_that_loses_data_gives_the_identical_effects_in_this_life_and_the_next() {
    let mut header = JournalHeader { seed: 1, scenario: "a box that loses data".to_owned(), contents: None };
    let world = || live(&scenario(), &NoFiles, None).expect("its enclosure can serve");
    let (mut session, unread) = lived(world(), &header, &[], 1);
    let health = session.world().health(DriveId::new(0), session.world().now());
    println!("{unread} reads were given up, {} media errors", health.media_errors);
    assert!(unread > 0 && health.media_errors > u64::from(unread), "reclaim meets some too");
    repeats(&mut session, world());
    let contents: Vec<_> =
        DriveId::first(session.world().drives()).map(|drive| session.world().contents(drive)).collect();
    assert!(contents[0].iter().any(|superblock| superblock.used.as_ref().is_some_and(|used| !used.lost.is_empty())));
    header.contents = Some(contents);
    // Lost slots are written in the journal too.
    let text = Session::new(Box::new(world()), Some(&header)).take_journal();
    let found = read_journal(&text).expect("it was just written").0;
    assert_eq!(found.contents, header.contents);
    let next = || live(&scenario(), &NoFiles, found.contents.as_deref()).expect("its enclosure can serve");
    let erased = found.contents.iter().flatten().flatten().position(|superblock| superblock.used.is_none());
    let lasts = [
        Control::Retired { drive: DRIVE, superblock: erased.expect("one is kept erased") as u32 },
        Control::Reinstate { drive: DRIVE, rate: Some(0.05), retries: Some(2) },
        Control::Degrade { drive: DRIVE, on: true },
    ];
    let (mut session, _) = lived(next(), &header, &lasts, 2);
    repeats(&mut session, next());
}

#[test]
fn a_rule_of_retirement_that_leaves_too_little_is_refused_in_words() {
    let mut session = Session::new(Box::new(live(&scenario(), &NoFiles, None).expect("its enclosure can serve")), None);
    let now = session.world().now();
    let retire = Control::Retire { drive: DRIVE, rate: None, retries: Some(2) };
    session.control(now, Control::Wear { drive: DRIVE, level: 0.5 }).expect("it can be so old");
    let refused = session.control(now, retire).expect_err("all of it is too old");
    assert!(refused.to_string().starts_with("drive 0 would keep 0 superblocks, and needs "), "{refused}");
    session.control(now, Control::Wear { drive: DRIVE, level: 0.1 }).expect("it can be so young");
    session.control(now, retire).expect("there is enough");
    assert_eq!(session.world().capacity(DriveId::new(0)).expect("it wears").retires_at, Some(85));
    let rate = session.control(now, Control::Retire { drive: DRIVE, rate: Some(0.7), retries: None });
    assert_eq!(rate, Err(Refused::Control { reason: "0.7 is no bit error rate, give 0 to 0.5".to_owned() }));
}

#[test]
fn what_was_done_to_a_drive_in_an_earlier_life_is_done_again_whatever_it_leaves() {
    let mut session = Session::new(Box::new(live(&scenario(), &NoFiles, None).expect("its enclosure can serve")), None);
    let now = session.world().now();
    session.control(now, Control::Wear { drive: DRIVE, level: 0.5 }).expect("it can be so old");
    session.control(now, Control::Reinstate { drive: DRIVE, rate: None, retries: Some(2) }).expect("it was in force");
    let before = session.world().capacity(DriveId::new(0)).expect("it wears");
    assert_eq!((before.retires_at, before.states.retired), (Some(85), 0), "those that are erased are used once more");
    let contents = session.world().contents(DriveId::new(0));
    for (superblock, contents) in (0..).zip(&contents) {
        session.control(now, Control::Retired { drive: DRIVE, superblock }).expect("there is such a superblock");
        assert_eq!(
            session.world().retired(DriveId::new(0)).any(|retired| retired == superblock),
            contents.used.is_none()
        );
    }
    let superblocks = contents.len() as u32;
    let beyond = session.control(now, Control::Retired { drive: DRIVE, superblock: superblocks });
    let beyond = beyond.expect_err("there are none beyond the last").to_string();
    let last = superblocks - 1;
    assert_eq!(beyond, format!("there is no superblock {superblocks} in drive 0, give 0 to {last}"));
}
