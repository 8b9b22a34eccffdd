//! Requests of 64 KiB that one thread of the simulator carries through ten drives under RAID-6: `cargo bench -p flashyard-paraid`. The aim
//! is half a million a second.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use flashyard_kernel::Rng;
use flashyard_paraid::{
    Array, ArrayConfig, ArrayFigures, ChunkSize, Design, FusionConfig, MovesConfig, RateConfig, SoftwareConfig,
};
use flashyard_units::{ByteRate, Named, SimSpan};
use flashyard_workload::{AddressPattern, Arrival, SizeMix, Synthetic, SyntheticSpec};

fn config(design: Design) -> ArrayConfig {
    let drive = |rate_mb| RateConfig {
        capacity: 1 << 30,
        read_rate: ByteRate::from_mb(rate_mb),
        write_rate: ByteRate::from_mb(rate_mb / 2),
        small_rate: ByteRate::from_mb(rate_mb / 4),
        read_latency: SimSpan::from_us(80),
        write_latency: SimSpan::from_us(20),
    };
    ArrayConfig {
        design,
        drives: [[drive(3500); 6].as_slice(), &[drive(500); 4]].concat(),
        timed: Vec::new(),
        chunk: ChunkSize::USUAL,
        width: 6,
        parities: 2,
        failed: None,
        wear: None,
        software: SoftwareConfig {
            request: SimSpan::from_us(3),
            command: SimSpan::from_us(1),
            parity_rate: ByteRate::from_mb(10_000),
            visit: SimSpan::from_ns(2500),
            parity_cache: 64,
        },
        moves: MovesConfig { interval: SimSpan::from_secs(1), sample: 16, look: SimSpan::from_ms(1) },
        fusion: FusionConfig { spike: SimSpan::from_ms(1), replicated: 1024 },
        spare: 0.2,
        workers: 64,
        warmup: SimSpan::from_ms(1),
        measure: SimSpan::from_secs(10),
        seed: 1,
    }
}

fn run(design: Design, read_share: f64) -> ArrayFigures {
    let array = Array::new(config(design)).expect("it is an array");
    let spec = SyntheticSpec {
        read_share,
        read_size: SizeMix::Fixed(64 << 10),
        write_size: SizeMix::Fixed(64 << 10),
        address: AddressPattern::Uniform,
        span_bytes: array.volume(),
        alignment_bytes: 64 << 10,
        arrival: Arrival::Immediate,
        requests: None,
    };
    let source = Synthetic::new(spec, Rng::named(1, "bench")).expect("it is a load");
    array.run(Box::new(source), &mut |_| true).expect("it runs")
}

fn requests(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("ten drives, RAID-6, requests of 64 KiB");
    group.sample_size(10);
    for design in [Design::Mdraid, Design::Straid, Design::Paraid] {
        for (name, read_share) in [("reads", 1.0), ("half writes", 0.5), ("writes", 0.0)] {
            group.throughput(Throughput::Elements(run(design, read_share).counters.requests[1]));
            group.bench_function(format!("{}, {name}", design.name()), |bencher| {
                bencher.iter(|| run(design, read_share))
            });
        }
    }
    group.finish();
}

criterion_group!(benches, requests);
criterion_main!(benches);
