//! Cost of one generated request: `cargo bench -p flashyard-workload`.
//!
//! Prints the fastest of several rounds for each kind of workload, and a hash of the requests, so that two
//! versions are compared on equal work. The aim is below 20 ns for a uniform 4 KiB read, a small part of the cost of a
//! simulated request.

#![expect(clippy::disallowed_types, reason = "a bench measures the real clock; nothing simulated sees it")]
#![expect(clippy::disallowed_methods, reason = "a bench measures the real clock; nothing simulated sees it")]

use flashyard_kernel::Rng;
use flashyard_workload::fio::FioJobs;
use flashyard_workload::{AddressPattern, Arrival, RequestSource, SizeMix, Synthetic, SyntheticSpec, table2};
use std::time::Instant;

const ROUNDS: u32 = 7;

fn main() {
    // `cargo test --benches` passes no `--bench`: then a handful of requests shows that it still runs.
    let requests = if std::env::args().any(|argument| argument == "--bench") { 2_000_000 } else { 1_000 };
    let read = |address| SyntheticSpec {
        read_share: 1.0,
        read_size: SizeMix::Fixed(4096),
        write_size: SizeMix::Fixed(4096),
        address,
        span_bytes: 4 << 40,
        alignment_bytes: 4096,
        arrival: Arrival::Immediate,
        requests: None,
    };
    let uniform = read(AddressPattern::Uniform);
    let runs = AddressPattern::Runs { go_on: 0.75, starts: Box::new(AddressPattern::Uniform) };
    let cases = [
        ("uniform 4 KiB reads", uniform.clone()),
        ("uniform, Poisson", SyntheticSpec { arrival: Arrival::Poisson { per_second: 1e6 }, ..uniform }),
        ("sequential", read(AddressPattern::Sequential { start: 0 })),
        ("runs of four", read(runs)),
        ("hot-cold", read(AddressPattern::HotCold { space: 0.2, traffic: 0.7 })),
        ("zipf 0.99 over 2^30 places", read(AddressPattern::Zipf { theta: 0.99 })),
        ("table 2, Ali-0", table2::workload("Ali-0", 4 << 40).expect("the table has it")),
    ];
    for (name, spec) in cases {
        let open = || Synthetic::new(spec.clone(), Rng::named(1, "bench")).expect("the cases are valid");
        report(name, requests, || Box::new(open()));
    }
    // Passes over a million blocks, each to its end.
    let jobs = [
        ("fio, random map", "rw=randread"),
        ("fio, random map, mix, sizes", "rw=randrw\nbsrange=4k-16k"),
        ("fio, no map", "rw=randread\nnorandommap"),
        ("fio, shift register", "rw=randread\nrandom_generator=lfsr"),
        ("fio, zipf:1.1", "rw=randread\nrandom_distribution=zipf:1.1"),
        ("fio, normal:20", "rw=randread\nrandom_distribution=normal:20"),
    ];
    for (name, options) in jobs {
        let text = format!("[job]\nioengine=libaio\nsize=4g\nloops=100\n{options}\n");
        let job = FioJobs::parse(&text).expect("the job is good").jobs.remove(0);
        report(name, requests, || Box::new(job.source(1 << 40, 0, Rng::named(1, "bench")).expect("it fits")));
    }
}

fn report(name: &str, requests: u64, source: impl Fn() -> Box<dyn RequestSource>) {
    let (nanoseconds, hash) = measure(source, requests);
    println!("{name:28} {nanoseconds:7.2} ns a request, hash {hash:016x}");
}

/// The fastest round in nanoseconds a request, through the trait object that worlds use, and a hash.
fn measure(open: impl Fn() -> Box<dyn RequestSource>, requests: u64) -> (f64, u64) {
    let (mut fastest, mut hash) = (f64::INFINITY, 0_u64);
    for _ in 0..ROUNDS {
        let mut source = open();
        hash = 0;
        let begun = Instant::now();
        for _ in 0..requests {
            let record = source.next_request().expect("time does not end here").expect("it has no end");
            hash = (hash ^ record.request.offset_bytes ^ record.arrival.as_ps())
                .wrapping_mul(0x0100_0000_01b3)
                .rotate_left(23);
        }
        fastest = fastest.min(begun.elapsed().as_nanos() as f64 / requests as f64);
    }
    (fastest, hash)
}
