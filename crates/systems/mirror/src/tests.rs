//! Runs of a small mirror: laws, figures of policies, times that add up, and repetition.

use crate::figures::MirrorFigures;
use crate::policy::ReadPolicy;
use crate::request::OTHER_COPY;
use crate::small::{config, mix, plan};
use crate::world::Mirror;
use flashyard_blk::Operation;
use flashyard_stats::SplitPart;
use flashyard_units::{Named, SimSpan, SimTime};

fn run(policy: ReadPolicy, reads: u64, requests: u64, depth: u32) -> MirrorFigures {
    let mirror = Mirror::new(config(policy), plan(requests, depth), vec![mix(1, reads)]).expect("it can be built");
    let figures = mirror.run(&mut |_| true).expect("it runs");
    assert!(figures.sanity.holds(), "{:?}", figures.sanity.broken().collect::<Vec<_>>());
    figures
}

#[test]
fn every_policy_obeys_all_laws_and_splits_times_exactly() {
    for &policy in ReadPolicy::ALL {
        let figures = run(policy, 50, 4_000, 8);
        assert!(figures.ios > 3_000 && figures.sanity.checks.len() == 13, "{:?}", figures.sanity);
        // The law about the causes of time is exact, in picoseconds; their mean is as well, but for its rounding.
        let split = figures.split.mean();
        assert_eq!(split.requests, figures.ios);
        assert!((split.total_us() / figures.latency.mean_us() - 1.0).abs() < 1e-9);
        assert!(split.parts_us[OTHER_COPY.place()] > 1.0, "{split:?}");
    }
}

#[test]
fn reads_wait_for_no_other_copy_and_writes_wait_for_the_slower_drive() {
    let reads = run(ReadPolicy::Turns, 100, 2_000, 4);
    assert_eq!(reads.split.mean().parts_us[OTHER_COPY.place()], 0.0);
    assert_eq!(reads.drives.each_ref().map(|drive| drive.write_bytes), [0, 0]);
    let writes = run(ReadPolicy::Turns, 0, 2_000, 4);
    let latency = &writes.streams[0].of(Operation::Write).latency;
    let [first, second] = writes.drives.each_ref().map(|drive| drive.latency.mean_us());
    assert!(second > 2.0 * first && latency.mean_us() > 0.95 * second, "{first} {second} {}", latency.mean_us());
}

#[test]
fn policies_share_reads_as_they_say() {
    let share = |policy| run(policy, 100, 6_000, 16).drives.map(|drive| drive.read_share);
    assert_eq!(share(ReadPolicy::First), [1.0, 0.0]);
    let [turns, _] = share(ReadPolicy::Turns);
    assert!((turns - 0.5).abs() < 0.01, "{turns}");
    let [_, fast] = share(ReadPolicy::ShorterQueue);
    assert!(fast > 0.55, "{fast}");
    let throughput = |policy| run(policy, 100, 6_000, 16).throughput();
    let [shorter, first, turns] = [ReadPolicy::ShorterQueue, ReadPolicy::First, ReadPolicy::Turns].map(throughput);
    assert!(shorter > turns && turns > first, "{shorter} {turns} {first}");
}

#[test]
fn a_run_is_a_function_of_its_seed() {
    let text = |figures: MirrorFigures| {
        let split = figures.split.mean();
        format!("{:?} {split:?} {:?} {:?}", figures.sanity, figures.timeline, figures.drives.map(|drive| drive.ftl))
    };
    let once = || text(run(ReadPolicy::ShorterQueue, 60, 2_000, 8));
    assert_eq!(once(), once());
}

#[test]
fn a_drive_that_returns_gets_what_it_missed_and_reads_go_round_it_until_then() {
    let mut mirror = Mirror::new(config(ReadPolicy::First), plan(3_000, 4), vec![mix(1, 50)]).expect("it can be built");
    mirror.start();
    let mut stale = 0;
    while let Some(now) = mirror.runner.advance(&mut flashyard_kernel::FreeRun) {
        let event = mirror.runner.take();
        if mirror.steps == 2_000 {
            mirror.cut_power(now, 0, now + SimSpan::from_ms(5));
            mirror.settle(now);
        }
        mirror.handle(now, event);
        mirror.steps += 1;
        stale = stale.max(mirror.sides[0].stale.len());
        assert!(mirror.fault.is_none(), "{:?}", mirror.fault);
    }
    assert!(mirror.is_over() && mirror.runner.now() > SimTime::ZERO && mirror.requests.is_empty());
    assert!(stale > 20 && mirror.sides.iter().all(|side| side.stale.is_empty()), "{stale}");
    assert!(mirror.outages.blocks_copied >= stale / 2 && mirror.outages.sent_again > 0, "{:?}", mirror.outages);
    let figures = MirrorFigures::of(mirror);
    assert!(figures.sanity.holds(), "{:?}", figures.sanity.broken().collect::<Vec<_>>());
    assert!(figures.drives[1].read_share > 0.05, "{}", figures.drives[1].read_share);
}
