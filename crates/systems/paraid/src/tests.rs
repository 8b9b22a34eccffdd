//! Arrays under small loads, against what can be said without a simulation.

use crate::exchange::Exchanges;
use crate::places::Places;
use crate::{Array, ArrayConfig, ChunkSize, Design, FusionConfig, MovesConfig, RateConfig, SoftwareConfig, WearConfig};
use flashyard_blk::{BlockRequest, Operation, TraceRecord};
use flashyard_kernel::Rng;
use flashyard_units::{ByteRate, Named, SimSpan, SimTime};
use flashyard_workload::{AddressPattern, Arrival, RequestSource, SizeMix, SourceError, Synthetic, SyntheticSpec};

const MIB: u64 = 1 << 20;

fn drive(capacity_mib: u64, rate_mb: u64) -> RateConfig {
    RateConfig {
        capacity: capacity_mib * MIB,
        read_rate: ByteRate::from_mb(rate_mb),
        write_rate: ByteRate::from_mb(rate_mb / 2),
        small_rate: ByteRate::from_mb(rate_mb / 4),
        read_latency: SimSpan::from_us(80),
        write_latency: SimSpan::from_us(20),
    }
}

pub(crate) fn config(design: Design, drives: Vec<RateConfig>) -> ArrayConfig {
    ArrayConfig {
        design,
        drives,
        timed: Vec::new(),
        chunk: ChunkSize::USUAL,
        width: 3,
        parities: 1,
        failed: None,
        wear: None,
        software: SoftwareConfig {
            request: SimSpan::from_us(3),
            command: SimSpan::from_us(1),
            parity_rate: ByteRate::from_mb(10_000),
            visit: SimSpan::from_us(2),
            parity_cache: 16,
        },
        moves: MovesConfig { interval: SimSpan::from_ms(20), sample: 1, look: SimSpan::from_us(100) },
        fusion: FusionConfig { spike: SimSpan::from_ms(1), replicated: 64 },
        spare: 0.25,
        workers: 8,
        warmup: SimSpan::from_ms(100),
        measure: SimSpan::from_ms(400),
        seed: 1,
    }
}

fn load(read_share: f64, address: AddressPattern, size: u32, span_bytes: u64) -> Box<Synthetic> {
    let spec = SyntheticSpec {
        read_share,
        read_size: SizeMix::Fixed(size),
        write_size: SizeMix::Fixed(size),
        address,
        span_bytes,
        alignment_bytes: size,
        arrival: Arrival::Immediate,
        requests: None,
    };
    Box::new(Synthetic::new(spec, Rng::named(1, "load")).expect("it is a load"))
}

pub(crate) fn alike() -> Vec<RateConfig> {
    vec![drive(256, 2000); 3]
}

fn throughput_mb(config: ArrayConfig, read_share: f64, size: u32) -> f64 {
    let seconds = config.measure.as_secs_f64();
    let array = Array::new(config).expect("it is an array");
    let source = load(read_share, AddressPattern::Uniform, size, array.volume());
    let figures = array.run(source, &mut |_| true).expect("it runs");
    assert!(figures.broken.is_empty(), "{:?}", figures.broken);
    figures.window.bytes.iter().sum::<u64>() as f64 / 1e6 / seconds
}

#[test]
fn reads_of_many_workers_get_what_all_drives_give() {
    let mut config = config(Design::Straid, alike());
    config.workers = 64;
    let rate = throughput_mb(config, 1.0, 64 << 10);
    assert!((5700.0..6000.0).contains(&rate), "{rate}");
}

#[test]
fn a_slow_drive_holds_up_all() {
    let mut config = config(Design::Straid, vec![drive(256, 2000), drive(256, 2000), drive(256, 400)]);
    config.workers = 64;
    let rate = throughput_mb(config, 1.0, 64 << 10);
    assert!((1150.0..1210.0).contains(&rate), "three times the slowest: {rate}");
}

#[test]
fn a_lone_write_takes_the_sum_of_its_parts() {
    let mut config = config(Design::Straid, alike());
    config.workers = 1;
    let array = Array::new(config).expect("it is an array");
    let source = load(0.0, AddressPattern::Uniform, 64 << 10, array.volume());
    let figures = array.run(source, &mut |_| true).expect("it runs");
    // 3 us of software and 1 for a read; 80 us and 64 KiB at 2 GB/s; 1 us for each of two writes and 128 KiB combined at 10 GB/s; 20 us
    // and 64 KiB at 1 GB/s.
    let expected = 4.0 + 80.0 + 32.768 + 2.0 + 13.107 + 20.0 + 65.536;
    let found = figures.window.latency.percentile_us(0.5);
    assert!((found / expected - 1.0).abs() < 0.01, "{found} of {expected}");
}

#[test]
fn one_thread_for_stripes_is_slower_than_threads_of_their_own() {
    let [md, own] =
        [Design::Mdraid, Design::Straid].map(|design| throughput_mb(config(design, alike()), 0.0, 64 << 10));
    // Three visits of 16 stripes of 4 KiB at 2 us, 13 us of parity and three commands: 112 us.
    assert!((md / (65_536.0 / 112.1) - 1.0).abs() < 0.03, "{md}");
    assert!(own > 1.5 * md, "{own} {md}");
}

#[test]
fn degraded_arrays_answer() {
    for design in [Design::Mdraid, Design::Straid, Design::Paraid] {
        for share in [0.0, 0.5, 1.0] {
            let mut config = config(design, alike());
            config.failed = Some(1);
            let rate = throughput_mb(config, share, 64 << 10);
            assert!(rate > 100.0, "{} {share}: {rate}", design.name());
        }
    }
}

#[test]
fn fusionraid_sends_nothing_to_a_drive_that_is_gone() {
    for (drives, share) in [(3, 0.0), (3, 0.5), (5, 0.0), (5, 0.5)] {
        let mut config = config(Design::FusionRaid, vec![drive(256, 2000); drives]);
        config.failed = Some(1);
        let array = Array::new(config).expect("it is an array");
        let source = load(share, AddressPattern::Uniform, 4096, array.volume());
        let figures = array.run(source, &mut |_| true).expect("it runs");
        let commands: Vec<[u64; 2]> = figures.drives.iter().map(|drive| drive.commands).collect();
        assert_eq!(commands[1], [0, 0], "{commands:?}");
        assert!(figures.window.requests[1] > 1000 && figures.broken.is_empty(), "{:?}", figures.broken);
    }
}

#[test]
fn logs_collect_for_requests_that_need_more_stripes_than_are_few() {
    for (design, workers, seed) in [Design::Swan, Design::LogRaid]
        .into_iter()
        .flat_map(|design| [(design, 1, 1), (design, 1, 2), (design, 8, 3), (design, 8, 4)])
    {
        let run = |warmup| {
            let mut config = config(design, vec![drive(16, 2000); 6]);
            (config.workers, config.seed) = (workers, seed);
            (config.warmup, config.measure) = (warmup, SimSpan::from_secs(1));
            let array = Array::new(config).expect("it is an array");
            // Sixteen stripes of 128 KiB, of 256 or 512 of a group of which few are free.
            let source = load(0.0, AddressPattern::Uniform, 2 << 20, array.volume());
            let figures = array.run(source, &mut |_| true).expect("it runs");
            assert!(figures.broken.is_empty(), "{:?}", figures.broken);
            figures.window.requests[1]
        };
        // It goes on as it has begun.
        let (first, second) = (run(SimSpan::ZERO), run(SimSpan::from_secs(1)));
        assert!(first > 100 && second > first / 2, "{} {workers} {seed}: {first}, then {second}", design.name());
    }
}

#[test]
fn a_write_that_a_log_has_no_room_for_is_refused() {
    let mut config = config(Design::LogRaid, vec![drive(16, 2000); 6]);
    config.spare = 0.1;
    let array = Array::new(config).expect("it is an array");
    let source = load(0.0, AddressPattern::Uniform, 8 << 20, array.volume());
    let refused = array.run(source, &mut |_| true).expect_err("it is too long").to_string();
    assert!(refused.starts_with("a write of 8192 KiB, and the log has 6"), "{refused}");
}

#[test]
fn logs_collect_and_go_on() {
    for design in [Design::Swan, Design::LogRaid] {
        let drives = vec![drive(64, 2000); 6];
        let mut config = config(design, drives);
        config.measure = SimSpan::from_secs(2);
        let array = Array::new(config).expect("it is an array");
        let source = load(0.1, AddressPattern::Uniform, 4096, array.volume());
        let figures = array.run(source, &mut |_| true).expect("it runs");
        assert!(figures.counters.collected[0] > 1000, "{}: {:?}", design.name(), figures.counters);
        assert!(figures.window.requests[1] > 10_000, "{}: {:?}", design.name(), figures.window.requests);
    }
}

#[test]
fn hot_chunks_move_to_fast_drives_and_stripes_stay_apart() {
    let drives =
        [(64, 2000), (64, 2000), (64, 2000), (64, 400), (64, 400), (64, 400)].map(|(mib, rate)| drive(mib, rate));
    for read_share in [0.0, 0.9] {
        let mut config = config(Design::Paraid, drives.to_vec());
        config.workers = 2;
        config.measure = SimSpan::from_secs(1);
        let array = Array::new(config.clone()).expect("it is an array");
        let source = load(read_share, AddressPattern::Zipf { theta: 1.1 }, 64 << 10, array.volume());
        let volume = array.volume();
        let moved = array.run(source, &mut |_| true).expect("it runs");
        assert!(moved.counters.exchanged.iter().sum::<u64>() > 20, "{:?}", moved.counters);
        config.design = Design::ParaidStatic;
        let array = Array::new(config).expect("it is an array");
        let source = load(read_share, AddressPattern::Zipf { theta: 1.1 }, 64 << 10, volume);
        let stayed = array.run(source, &mut |_| true).expect("it runs");
        let bytes = |figures: &crate::ArrayFigures| figures.window.bytes.iter().sum::<u64>();
        assert!(bytes(&moved) > bytes(&stayed), "{read_share}: {} {}", bytes(&moved), bytes(&stayed));
    }
}

#[test]
fn a_drive_with_a_chunk_of_every_stripe_gets_parity_of_hot_stripes() {
    let drives = [(64, 2000), (64, 2000), (64, 400)].map(|(mib, rate)| drive(mib, rate));
    for (read_share, gain) in [(1.0, 1.2), (0.7, 1.0), (0.0, 0.95)] {
        let bytes = [Design::Paraid, Design::ParaidStatic].map(|design| {
            let mut config = config(design, drives.to_vec());
            config.workers = 2;
            config.warmup = SimSpan::from_secs(1);
            config.measure = SimSpan::from_secs(1);
            let array = Array::new(config).expect("it is an array");
            let source = load(read_share, AddressPattern::Zipf { theta: 1.1 }, 64 << 10, array.volume());
            let figures = array.run(source, &mut |_| true).expect("it runs");
            assert_eq!(figures.broken, Vec::<String>::new());
            assert_eq!(figures.counters.exchanged.iter().sum::<u64>() > 0, design == Design::Paraid);
            figures.window.bytes.iter().sum::<u64>() as f64
        });
        assert!(bytes[0] > gain * bytes[1], "{read_share}: {bytes:?}");
    }
}

#[test]
fn an_array_that_measures_its_drives_leaves_one_that_becomes_slow() {
    let drives = [(64, 2000), (64, 2000), (64, 2000), (64, 2000), (64, 400)].map(|(mib, rate)| drive(mib, rate));
    let bytes = [Design::Paraid, Design::HeteroRaid].map(|design| {
        let mut config = config(design, drives.to_vec());
        config.wear = Some(WearConfig { drive: 1, after: SimSpan::from_ms(50), keeps: 0.1 });
        config.warmup = SimSpan::from_secs(1);
        let array = Array::new(config).expect("it is an array");
        let source = load(0.7, AddressPattern::Zipf { theta: 1.1 }, 64 << 10, array.volume());
        array.run(source, &mut |_| true).expect("it runs").window.bytes.iter().sum::<u64>()
    });
    assert!(bytes[1] > 5 * bytes[0] / 4, "{bytes:?}");
}

#[test]
fn arrays_pass_by_requests_that_move_no_data() {
    struct Mixed([Operation; 3], usize);
    impl RequestSource for Mixed {
        fn next_request(&mut self) -> Result<Option<TraceRecord>, SourceError> {
            self.1 += 1;
            let request = BlockRequest { operation: self.0[self.1 % 3], offset_bytes: 0, len_bytes: 4096 };
            Ok(Some(TraceRecord { arrival: SimTime::ZERO, volume: 0, request }))
        }
    }
    let run = |operations| {
        let array = Array::new(config(Design::Paraid, vec![drive(64, 500); 5])).expect("it is an array");
        array.run(Box::new(Mixed(operations, 0)), &mut |_| true)
    };
    let window = run([Operation::Trim, Operation::Write, Operation::Flush]).expect("it runs").window;
    assert!(window.requests[0] == 0 && window.requests[1] > 0, "{:?}", window.requests);
    let error = run([Operation::Trim; 3]).expect_err("there is nothing to do").to_string();
    assert!(error.contains("no read or write"), "{error}");
}

#[test]
fn layouts_have_their_published_sizes() {
    let gib = [150, 120, 100, 80, 60, 20].map(|gib| drive(gib * 16, 100));
    for (design, stripes) in [(Design::Mdraid, 43_520), (Design::Paraid, 45_226), (Design::FusionRaid, 39_253)] {
        let places = Places::new(&config(design, gib.to_vec())).expect("it is an array");
        let found = places.stripes();
        assert!(found.abs_diff(stripes) < 20, "{}: {found}", design.name());
        let mut seen = vec![std::collections::BTreeSet::new(); 6];
        for stripe in (0..found as u32).step_by(7) {
            let drives: std::collections::BTreeSet<u8> =
                (0..3).map(|column| places.place(stripe, column).drive).collect();
            assert_eq!(drives.len(), 3);
            for column in 0..3 {
                let place = places.place(stripe, column);
                assert!(seen[usize::from(place.drive)].insert(place.chunk));
            }
        }
    }
    assert!(Exchanges::new(&config(Design::Paraid, gib.to_vec())).policy.listed().is_empty());
}

#[test]
fn runs_are_the_same_again() {
    let figures = || {
        let mut config = config(Design::Paraid, vec![drive(64, 2000), drive(64, 2000), drive(64, 400), drive(64, 400)]);
        config.measure = SimSpan::from_ms(100);
        let array = Array::new(config).expect("it is an array");
        let source = load(0.5, AddressPattern::Zipf { theta: 1.0 }, 64 << 10, array.volume());
        let figures = array.run(source, &mut |_| true).expect("it runs");
        (figures.window.bytes, figures.counters, figures.drives)
    };
    assert_eq!(figures(), figures());
}
