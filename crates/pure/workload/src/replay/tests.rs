//! Tests of the replay.

use super::*;
use flashyard_blk::Operation;
use flashyard_units::SimSpan;
use proptest::prelude::*;

const SPAN: u64 = 16_384;

fn record(us: u64, volume: u32, offset_bytes: u64, len_bytes: u32) -> TraceRecord {
    let request = BlockRequest { operation: Operation::Read, offset_bytes, len_bytes };
    TraceRecord { arrival: SimTime::ZERO + SimSpan::from_us(us), volume, request }
}

fn three() -> Vec<TraceRecord> {
    vec![record(0, 0, 0, 8192), record(10, 1, 12_288, 8192), record(20, 2, 40_000, 8192)]
}

fn options() -> ReplayOptions {
    ReplayOptions {
        span_bytes: SPAN,
        shift_bytes: 0,
        size_factor: 1.0,
        speed: 2.0,
        repetitions: Some(2),
        keeps_arrivals: false,
        volumes: None,
    }
}

fn replay_of(trace: Vec<TraceRecord>, options: ReplayOptions) -> Replay {
    let open =
        move || -> Result<Records, SourceError> { Ok(records(trace.clone().into_iter().map(Ok::<_, SourceError>))) };
    Replay::new(Box::new(open), options)
}

/// At most ten requests.
fn drain(replay: &mut Replay) -> Vec<TraceRecord> {
    std::iter::from_fn(|| replay.next_request().expect("the records are good")).take(10).collect()
}

fn ranges(trace: Vec<TraceRecord>, options: ReplayOptions) -> Vec<(u64, u32)> {
    let found = drain(&mut replay_of(trace, ReplayOptions { repetitions: Some(1), ..options }));
    found.iter().map(|r| (r.request.offset_bytes, r.request.len_bytes)).collect()
}

#[test]
fn addresses_fold_into_the_drive_and_times_scale_and_go_on() {
    let found = drain(&mut replay_of(three(), options()));
    let found: Vec<(u64, u64)> =
        found.iter().map(|r| (r.arrival.as_ps() / 1_000_000, r.request.offset_bytes)).collect();
    assert_eq!(found, [(0, 0), (5, 8192), (10, 7232), (10, 0), (15, 8192), (20, 7232)]);
}

#[test]
fn a_round_is_the_first_one_again_request_by_request_and_gap_by_gap() {
    // Out of order, across the end, cut and resized, at a speed that rounds.
    let trace =
        vec![record(7, 0, 8192, 4096), record(3, 1, 12_288, 9000), record(20, 3, 1 << 40, 700), record(23, 0, 0, 1)];
    let twisted = ReplayOptions {
        shift_bytes: 5000,
        size_factor: 1.3,
        speed: 0.7,
        repetitions: Some(5),
        volumes: Some((0, 1)),
        ..options()
    };
    let mut replay = replay_of(trace, twisted);
    let found: Vec<TraceRecord> = std::iter::from_fn(|| replay.next_request().expect("the records are good")).collect();
    assert_eq!(found.len(), 20);
    let period = found[4].arrival.since(found[0].arrival);
    assert_eq!(
        period,
        found[3].arrival.since(SimTime::ZERO),
        "a round takes as long as the first one to its last arrival"
    );
    for (earlier, later) in found.iter().zip(&found[4..]) {
        assert_eq!((earlier.request, earlier.volume), (later.request, later.volume));
        assert_eq!(later.arrival.since(earlier.arrival), period);
    }
}

#[test]
fn a_trace_that_takes_no_time_is_not_repeated_by_its_times() {
    let still = || vec![record(0, 0, 0, 512), record(0, 0, 512, 512)];
    let keeping = |repetitions| ReplayOptions { repetitions, keeps_arrivals: true, ..options() };
    let mut replay = replay_of(still(), keeping(None));
    assert!((0..2).all(|_| matches!(replay.next_request(), Ok(Some(_)))));
    let told = replay.next_request().expect_err("the round took no time").to_string();
    assert!(told.contains("all requests of the trace arrive together"), "{told}");
    assert_eq!(drain(&mut replay_of(vec![record(5, 0, 0, 512)], keeping(None))).len(), 10);
    assert_eq!(drain(&mut replay_of(still(), keeping(Some(3)))).len(), 6);
    let mut closed = replay_of(still(), ReplayOptions { keeps_arrivals: false, ..keeping(None) });
    assert!((0..9).all(|_| matches!(closed.next_request(), Ok(Some(_)))));
    assert_eq!(closed.rounds(), 5);
}

#[test]
fn a_request_across_the_end_moves_back_and_keeps_its_alignment() {
    // 512 bytes beyond the end: back by 4096, not by 512.
    assert_eq!(ranges(vec![record(0, 0, SPAN - 4096, 4608)], options()), [(SPAN - 8192, 4608)]);
    // No whole 4 KiB fit before it: to the very end.
    assert_eq!(ranges(vec![record(0, 0, 512, 16_000)], options()), [(SPAN - 16_000, 16_000)]);
    // Longer than the drive: cut.
    assert_eq!(ranges(vec![record(0, 0, 8192, 20_000)], options()), [(0, 16_384)]);
}

#[test]
fn a_shift_moves_addresses_around_the_drive() {
    let shifted = ReplayOptions { shift_bytes: 12_288, ..options() };
    assert_eq!(ranges(vec![record(0, 0, 8192, 4096), record(0, 0, 0, 4096)], shifted), [(4096, 4096), (12_288, 4096)]);
    let far = ReplayOptions { shift_bytes: u64::MAX, ..options() };
    assert_eq!(ranges(vec![record(0, 0, u64::MAX, 1)], far), [(SPAN - 2, 1)]);
}

#[test]
fn volumes_are_spread_over_drives() {
    let found = drain(&mut replay_of(three(), ReplayOptions { volumes: Some((0, 2)), ..options() }));
    assert_eq!(found.iter().map(|r| r.volume).collect::<Vec<_>>(), [0, 2, 0, 2]);
}

#[test]
fn chosen_volumes_are_replayed_alone() {
    let mut replay = replay_of(three(), options()).only_volumes(vec![2, 1, 2]);
    assert_eq!(drain(&mut replay).iter().map(|r| r.volume).collect::<Vec<_>>(), [1, 2, 1, 2]);
    assert_eq!(replay.scaling_note().left_out, 2);
}

#[test]
fn a_drive_without_records_ends_instead_of_repeating_for_ever() {
    let none = ReplayOptions { volumes: Some((7, 9)), repetitions: None, ..options() };
    assert!(drain(&mut replay_of(three(), none)).is_empty());
}

#[test]
fn a_limit_ends_an_endless_replay() {
    let endless = ReplayOptions { repetitions: None, ..options() };
    assert_eq!(drain(&mut replay_of(three(), endless).limit(4)).len(), 4);
}

#[test]
fn a_reader_that_opens_once_is_replayed_once() {
    let mut replay = Replay::once(records(three().into_iter().map(Ok::<_, SourceError>)), options());
    assert_eq!(drain(&mut replay).len(), 3);
}

#[test]
fn the_note_counts_what_was_changed() {
    let trace = vec![record(5, 0, 0, 4096), record(4, 0, 12_288, 8192), record(6, 0, 40_000, 512)];
    let mut replay = replay_of(trace, options());
    drain(&mut replay);
    let note = replay.scaling().expect("a replay scales");
    assert_eq!(
        note.to_string(),
        "addresses modulo 16384 bytes, speed x2, replayed 2 times: 6 requests in 2 rounds, 2 (33.3 %) folded, \
         2 (33.3 %) moved back from the end, 2 (33.3 %) counted as the whole units of 4 KiB that they touch, \
         2 (33.3 %) put in order of arrival"
    );
}

#[test]
fn sizes_scale_to_whole_sectors_and_at_least_one() {
    let trace = vec![record(0, 0, 0, 4096), record(1, 0, 0, 512), record(2, 0, 0, 700), record(3, 0, 0, 1024)];
    let lengths = |size_factor| -> Vec<u32> {
        let options = ReplayOptions { size_factor, ..options() };
        ranges(trace.clone(), options).into_iter().map(|(_, len)| len).collect()
    };
    assert_eq!(lengths(2.0), [8192, 1024, 1536, 2048]);
    assert_eq!(lengths(0.25), [1024, 512, 512, 512]);
    assert_eq!(lengths(1.0), [4096, 512, 700, 1024]);
    assert_eq!(lengths(1e18), [16_384; 4], "cut to the drive");
}

#[test]
fn the_note_says_how_sizes_were_scaled_and_how_the_trace_was_read() {
    struct Noted(std::vec::IntoIter<TraceRecord>);
    impl Iterator for Noted {
        type Item = Result<TraceRecord, SourceError>;
        fn next(&mut self) -> Option<Self::Item> {
            self.0.next().map(Ok)
        }
    }
    impl RecordStream for Noted {
        fn note(&self) -> String {
            format!("read as slate, {} rows to come", self.0.len())
        }
    }
    let noted = ReplayOptions { size_factor: 0.5, ..options() };
    let open = || -> Result<Records, SourceError> { Ok(Box::new(Noted(three().into_iter()))) };
    let mut replay = Replay::new(Box::new(open), noted).limit(4);
    let first = replay.next_request();
    assert!(first.is_ok() && replay.scaling_note().to_string().ends_with("read as slate, 2 rows to come"));
    drain(&mut replay);
    let note = replay.scaling_note().to_string();
    assert!(
        note.starts_with("addresses modulo 16384 bytes, sizes x0.5, speed x2, replayed 2 times: 4 requests"),
        "{note}"
    );
    assert!(note.contains("4 (100.0 %) resized") && note.ends_with("; read as slate, 2 rows to come"), "{note}");
}

#[test]
fn a_readers_error_comes_through_with_its_causes() {
    #[derive(Debug, thiserror::Error)]
    #[error("line 7 is torn")]
    struct Torn(#[source] std::num::ParseIntError);

    let cause = "x".parse::<u32>().expect_err("x is no number");
    let reader = vec![Ok(record(0, 0, 0, 512)), Err(Torn(cause))].into_iter();
    let mut replay = Replay::once(records(reader), options());
    assert!(replay.next_request().is_ok_and(|record| record.is_some()));
    let error = replay.next_request().expect_err("the second record is bad");
    assert_eq!(error.to_string(), "line 7 is torn: invalid digit found in string");
}

#[test]
fn an_arrival_beyond_simulated_time_is_an_error() {
    let late = TraceRecord { arrival: SimTime::MAX, ..record(0, 0, 0, 512) };
    let mut replay = replay_of(vec![late], ReplayOptions { speed: 1.0, ..options() });
    assert!(replay.next_request().is_ok());
    assert!(replay.next_request().is_err());
    // In the first round as well, where the time is slowed down.
    let record = TraceRecord { arrival: SimTime::from_ps(4_000_000_000_000_000_000), ..record(0, 0, 0, 512) };
    for (speed, is_there) in [(0.25, true), (0.2, false), (1e-3, false), (1e-30, false)] {
        let found = replay_of(vec![record], ReplayOptions { speed, ..options() }).next_request();
        assert_eq!(found.is_ok(), is_there, "{speed}");
    }
}

#[test]
#[should_panic(expected = "at least one drive")]
fn volumes_modulo_zero_are_a_bug() {
    replay_of(three(), ReplayOptions { volumes: Some((0, 0)), ..options() });
}

proptest! {
    #[test]
    fn requests_stay_inside_the_span_and_aligned_and_in_order(
        trace in prop::collection::vec((0_u64..10_000, any::<u64>(), any::<u32>()), 1..10),
        blocks in 1_u64..1 << 40, shift in 0_u64..1 << 50, speed in 0.01_f64..100.0,
        size_factor in prop_oneof![Just(1.0), 0.001_f64..1000.0],
    ) {
        let span_bytes = blocks * 4096;
        let trace = trace.into_iter().map(|(us, offset, len)| record(us, 0, offset / 512 * 512, len / 512 * 512));
        let shift_bytes = shift * 4096;
        let options = ReplayOptions { span_bytes, shift_bytes, size_factor, speed, repetitions: Some(1), ..options() };
        let trace: Vec<TraceRecord> = trace.collect();
        let found = drain(&mut replay_of(trace.clone(), options));
        prop_assert_eq!(found.len(), trace.len());
        prop_assert!(found.is_sorted_by_key(|r| r.arrival));
        for (found, recorded) in found.iter().zip(&trace) {
            prop_assert!(found.request.end_bytes().is_some_and(|end| end <= span_bytes), "{:?}", found);
            prop_assert!(found.request.offset_bytes.is_multiple_of(512));
            prop_assert!(found.request.len_bytes.is_multiple_of(512));
            if size_factor <= 1.0 {
                prop_assert!(found.request.len_bytes <= recorded.request.len_bytes);
            }
        }
    }
}

#[test]
fn progress_is_the_share_of_all_rounds_or_of_the_limit() {
    struct Counted(usize, Vec<TraceRecord>);
    impl Iterator for Counted {
        type Item = Result<TraceRecord, SourceError>;
        fn next(&mut self) -> Option<Self::Item> {
            self.0 += 1;
            self.1.get(self.0 - 1).map(|record| Ok(*record))
        }
    }
    impl RecordStream for Counted {
        fn progress(&self) -> Option<f64> {
            Some(self.0 as f64 / self.1.len() as f64)
        }
    }
    let open = || -> Result<Records, SourceError> { Ok(Box::new(Counted(0, three()))) };
    let course = |mut replay: Replay| {
        let mut shares = vec![replay.progress()];
        while replay.next_request().expect("the records are good").is_some() {
            shares.push(replay.progress());
        }
        shares.push(replay.progress());
        shares.into_iter().map(|share| share.map(|share| (share * 6.0).round())).collect::<Vec<_>>()
    };
    let sixths = |shares: &[u8]| shares.iter().map(|&share| Some(f64::from(share))).collect::<Vec<_>>();
    assert_eq!(course(Replay::new(Box::new(open), options())), sixths(&[0, 1, 2, 3, 4, 5, 6, 6]));
    let limited = Replay::new(Box::new(open), ReplayOptions { repetitions: None, ..options() }).limit(3);
    assert_eq!(course(limited), sixths(&[0, 2, 4, 6, 6]));
    assert_eq!(replay_of(three(), options()).progress(), Some(0.0));
    let mut unknown = replay_of(three(), options());
    assert!(unknown.next_request().is_ok() && unknown.progress().is_none());
}
