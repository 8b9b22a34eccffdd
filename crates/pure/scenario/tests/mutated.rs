//! Scenarios and journals that were damaged: they are read, or refused in words, and nothing panics.

use flashyard_blk::{Operation, VolumeRequest};
use flashyard_scenario::{NoFiles, live, resolve};
use flashyard_served::{Control, JournalHeader, Session, read_journal};
use flashyard_units::{DriveId, SimTime, VolumeId};
use proptest::prelude::*;
use std::sync::LazyLock;

const SCENARIOS: [&str; 3] = [
    include_str!("../../../../scenarios/faults/scenario.toml"),
    include_str!("../../../../scenarios/live/scenario.toml"),
    include_str!("../../../../scenarios/ageing/scenario.toml"),
];

/// Values that a line may be given in place of its own.
const VALUES: [&str; 12] =
    ["-1", "0", "1", "1e400", "nan", "inf", "\"\"", "\"1 B\"", "[]", "{}", "18446744073709551615", "\"0 ms\""];

/// A change to the lines of a scenario.
#[derive(Clone, Debug)]
enum Change {
    /// A line goes.
    Remove(prop::sample::Index),
    /// A line comes twice, the second time elsewhere.
    Copy(prop::sample::Index, prop::sample::Index),
    /// A line has another value.
    Value(prop::sample::Index, usize),
    /// A line has any text in it.
    Text(prop::sample::Index, String),
}

fn change() -> impl Strategy<Value = Change> {
    let at = any::<prop::sample::Index>;
    prop_oneof![
        at().prop_map(Change::Remove),
        (at(), at()).prop_map(|(from, to)| Change::Copy(from, to)),
        (at(), 0..VALUES.len()).prop_map(|(line, value)| Change::Value(line, value)),
        (at(), "\\PC{0,12}").prop_map(|(line, text)| Change::Text(line, text)),
    ]
}

fn changed(text: &str, changes: &[Change]) -> String {
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    for change in changes {
        match change {
            Change::Remove(line) => drop(lines.remove(line.index(lines.len()))),
            Change::Copy(from, to) => lines.insert(to.index(lines.len()), lines[from.index(lines.len())].clone()),
            Change::Value(line, value) => {
                let line = line.index(lines.len());
                if let Some((key, _)) = lines[line].split_once('=') {
                    lines[line] = format!("{key}= {}", VALUES[*value]);
                }
            }
            Change::Text(line, text) => {
                let line = line.index(lines.len());
                lines[line].push_str(text);
            }
        }
    }
    lines.join("\n")
}

/// A session of a few requests and controls, with an earlier life.
static JOURNAL: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let settings = ["drive.filled=0.1".to_owned(), "drive.blocks_per_plane=32".to_owned()];
    let settings = [&settings[..], &["drive.over_provisioning=0.5".to_owned()]].concat();
    let scenario = resolve(SCENARIOS[0], "faults", &settings, &NoFiles).expect("the scenario is whole").scenario;
    let world = live(&scenario, &NoFiles, None).expect("its enclosure can serve");
    let contents = Some(DriveId::first(world.drives()).map(|drive| world.contents(drive)).collect());
    let header = JournalHeader { seed: 1, scenario: "the small box".to_owned(), contents };
    let mut session = Session::new(Box::new(world), Some(&header));
    for token in 0..20 {
        let operation = [Operation::Write, Operation::Read, Operation::Trim][token as usize % 3];
        let volume = VolumeId::new((token % 4) as u16);
        let request = VolumeRequest { volume, operation, first: token.into(), count: 2, source: 0 };
        session.submit(SimTime::ZERO, token, &request).expect("the slots are there");
    }
    session.control(SimTime::ZERO, Control::Pull { drive: DriveId::new(1) }).expect("the drive is there");
    session.end();
    session.take_journal()
});

proptest! {
    #[test]
    fn a_changed_scenario_is_read_or_refused_in_words(
        which in 0..SCENARIOS.len(), changes in prop::collection::vec(change(), 1..6),
    ) {
        if let Err(error) = resolve(&changed(SCENARIOS[which], &changes), "changed", &[], &NoFiles) {
            prop_assert!(!error.to_string().is_empty());
        }
    }

    #[test]
    fn a_damaged_journal_is_read_or_refused_in_words(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
        cut in prop::option::of(any::<prop::sample::Index>()),
    ) {
        let mut bytes = JOURNAL.clone();
        for (at, byte) in changes {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        bytes.truncate(cut.map_or(bytes.len(), |cut| cut.index(bytes.len())));
        match read_journal(&bytes) {
            Ok((_, records)) => prop_assert!(records.count() <= bytes.len()),
            Err(error) => prop_assert!(!error.to_string().is_empty()),
        }
    }
}
