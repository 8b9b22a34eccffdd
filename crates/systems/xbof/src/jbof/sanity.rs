//! Laws that every run of a JBOF must obey, whatever the design: those of any world (`flashyard_measure`), the utilization
//! law and the conservation of bytes and commands. They hold exactly, in integers: over the whole run once nothing is in
//! flight, and over the measured window with what is under way at its two ends.

use super::bench::{Bench, CoreMarks};
use super::enclosure::Enclosure;
use flashyard_measure::{Ledger, SanityCheck, SanityReport};

/// Checks the laws on a run that has drained.
pub(super) fn sanity(bench: &Bench, enclosure: &Enclosure) -> SanityReport {
    let mut checks = bench.ledger.laws().to_vec();
    checks.extend(whole_run(&bench.ledger, enclosure));
    if let (Some(begun), Some(ended)) = (&bench.begun, &bench.ended) {
        checks.extend(begun.ledger.laws_until(&ended.ledger));
        checks.push(begun.counters.cores.law_until(&ended.counters.cores));
        checks.extend(bench.figure_laws());
    }
    SanityReport { checks }
}

/// The laws about components, over the whole run.
fn whole_run(ledger: &Ledger, enclosure: &Enclosure) -> [SanityCheck; 4] {
    let sum = |figure: fn(&flashyard_ssd::Drive) -> u64| -> u128 {
        enclosure.drives.iter().map(|drive| u128::from(figure(drive))).sum()
    };
    [
        CoreMarks::of(enclosure).law(),
        SanityCheck::new(
            "bytes read by the host = bytes sent by drives",
            ledger.read_bytes,
            sum(|drive| drive.data.counters().read_bytes),
        ),
        SanityCheck::new(
            "bytes written by the host = bytes taken by drives",
            ledger.write_bytes,
            sum(|drive| drive.data.counters().write_bytes),
        ),
        SanityCheck::new(
            "commands executed by drives = commands completed by drives",
            sum(|drive| drive.data.counters().executed),
            sum(|drive| drive.data.counters().completed),
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::super::config::Design;
    use super::super::small;
    use super::super::world::Jbof;
    use super::*;
    use flashyard_ssd::{CommandSpec, Operation};
    use flashyard_units::{DriveId, SimSpan};

    /// Which law, and what breaks it in the books of a run.
    type Break = (&'static str, fn(&mut Jbof));

    const BREAKS: [Break; 9] = [
        ("requests issued = requests finished", |world| world.bench.ledger.issued += 1),
        ("requests issued = requests finished", |world| world.bench.ledger.finished -= 1),
        ("Little's law", |world| world.bench.ledger.level += 1),
        ("Little's law", |world| world.bench.ledger.level -= 1),
        ("time of requests = sum of its causes", |world| world.bench.ledger.accounted -= 1),
        ("utilization law", |world| world.enclosure.demand += SimSpan::from_ps(1)),
        ("bytes read by the host", |world| world.bench.ledger.read_bytes += 1),
        ("bytes read by the host", |world| world.bench.ledger.read_bytes -= 1),
        ("bytes written by the host", |world| world.bench.ledger.write_bytes -= 1),
    ];

    fn broken(world: &Jbof) -> Vec<String> {
        let report = sanity(&world.bench, &world.enclosure);
        assert_eq!(report.holds(), report.broken().next().is_none());
        report.broken().map(ToString::to_string).collect()
    }

    #[test]
    fn books_that_are_wrong_by_one_break_the_law_about_it_and_no_other() {
        for design in Design::ALL {
            let mut world = small::drained(design, 300);
            assert_eq!(broken(&world), Vec::<String>::new(), "{design:?}");
            let (books, demand) = (world.bench.ledger, world.enclosure.demand);
            assert!(books.read_bytes > 0 && books.write_bytes > 0 && books.latencies > 0, "{design:?} did nothing");
            for (law, break_it) in BREAKS {
                break_it(&mut world);
                let found = broken(&world);
                assert!(found.len() == 1 && found[0].starts_with(law), "{design:?}: {law} is broken, not {found:?}");
                (world.bench.ledger, world.enclosure.demand) = (books, demand);
            }
            // Latencies stand on the same side of two laws.
            world.bench.ledger.latencies += 1;
            assert_eq!(broken(&world).len(), 2, "{design:?}");
        }
    }

    #[test]
    fn a_command_that_a_drive_never_completes_breaks_a_law() {
        let mut world = small::drained(Design::Conv, 50);
        let lost = CommandSpec { tag: 0, operation: Operation::Read, first: 0, count: 1, source: 0, stamp: 0 };
        let now = world.now();
        world.enclosure.on_drive(now, DriveId::new(0), |drive, now, out| drive.execute(now, lost, out));
        let found = broken(&world);
        assert!(found.len() == 1 && found[0].starts_with("commands executed by drives"), "{found:?}");
    }

    #[test]
    fn a_request_that_is_never_answered_breaks_the_laws_about_requests() {
        let mut world = small::drained(Design::Conv, 50);
        let (now, request) = (world.now(), world.enclosure.requests[0]);
        world.bench.ledger.issued(now, request.operation, request.bytes());
        world.bench.ledger.advance(now + SimSpan::from_us(1));
        let found = broken(&world);
        assert!(found.iter().any(|law| law.starts_with("requests issued")), "{found:?}");
        assert!(found.iter().any(|law| law.starts_with("Little's law")), "{found:?}");
    }
}
