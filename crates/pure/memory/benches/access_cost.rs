//! Cost of one simulated access: `cargo bench -p flashyard-memory`.
//!
//! Prints the fastest of several rounds for each case, in time of the thread on its processor, with a hash of the counts, so that
//! two versions are compared on equal work. The aim is below 50 ns for an access that a cache answers, and below 330 ns for one
//! that reaches the endpoint. `-- --accesses=N NAME` makes N accesses of the cases whose names begin so: for counts of instructions.

#![expect(clippy::disallowed_types, reason = "a bench measures the real clock; nothing simulated sees it")]
#![expect(clippy::disallowed_methods, reason = "a bench measures the real clock; nothing simulated sees it")]

use flashyard_cache as _;
use flashyard_flash::Geometry;
use flashyard_kernel::Rng;
use flashyard_memory::{
    Access, Accesses, AnnotationRules, ApexMap, Dram, DramConfig, Endpoint, EndpointConfig, Expander, Flash,
    FlashConfig, LevelConfig, Machine, MachineConfig, MediumConfig, Mix, MixConfig, PathConfig, Stream, StreamKernel,
};
use flashyard_units::{ByteRate, Hertz, SimSpan, SimTime};
use std::time::Instant;

const ROUNDS: u32 = 5;

fn main() {
    // `cargo test --benches` passes no `--bench`: then a handful of accesses shows that it still runs.
    let is_bench = std::env::args().any(|argument| argument == "--bench");
    let given = std::env::args().find_map(|argument| argument.strip_prefix("--accesses=")?.parse().ok());
    let accesses = given.unwrap_or(if is_bench { 10_000_000 } else { 1_000 });
    let mix = |misses_per_thousand| MixConfig {
        misses_per_thousand,
        loads: 0.2,
        stores: 0.15,
        footprint: 16 << 30,
        last_level_hits: 0.22,
        warm_lines: 1280,
        skew: 0.8,
        words_per_line: 1,
    };
    let of_mix = |rate: f64| Mix::new(&mix(rate), Rng::named(1, "bench")).expect("the mix is possible");
    report("generator of a mix alone", accesses, || {
        let mut source = of_mix(1.5);
        let mut hash = 0_u64;
        for _ in 0..accesses {
            hash = hash.wrapping_mul(31).wrapping_add(source.next_access().map_or(0, |access| access.address));
        }
        hash
    });
    report("accesses that caches answer", accesses, || run(&mut [Circle::default()], accesses));
    report("a mix, 1.5 misses in 1000 instructions", accesses, || run(&mut [of_mix(1.5)], accesses));
    report("a mix, 150 misses in 1000 instructions", accesses, || run(&mut [of_mix(150.0)], accesses));
    report("STREAM triad", accesses, || run(&mut [Stream::new(StreamKernel::Triad, 1 << 27, 0, 1, 1)], accesses));
    let random = || ApexMap::new(1 << 30, 1.0, 1, 1, Rng::named(1, "bench")).expect("the map is possible");
    report("Apex-Map, alpha 1, all reach the endpoint", accesses, || run(&mut [random()], accesses));
    report("flash, three reads to a write", accesses, || flash(accesses));
}

/// Pages of worn-in flash that are read and written at random, four accesses a microsecond.
fn flash(accesses: u64) -> u64 {
    let geometry = Geometry {
        channels: 8,
        dies_per_channel: 8,
        planes_per_die: 1,
        blocks_per_plane: 128,
        pages_per_block: 32,
        page_bytes: 4096,
        pages_per_program: 1,
    };
    let config = FlashConfig {
        geometry,
        spare: 0.25,
        read: SimSpan::from_us(3),
        program: SimSpan::from_us(100),
        erase: SimSpan::from_ms(1),
        suspend: None,
        channel_rate: ByteRate::from_mb(1200),
        buffer_pages: 64,
        collect_below: 0.1,
        collect_always_below: 0.04,
        worn_in: true,
        collection_due: false,
        seed: 1,
    };
    let mut flash = Flash::new(config).expect("the flash is possible");
    let mut rng = Rng::named(1, "bench");
    let (mut now, mut hash) = (SimTime::ZERO, 0_u64);
    for number in 0..accesses {
        now += SimSpan::from_ns(250);
        let page = rng.below(u64::from(flash.pages())) as u32;
        let at = if number % 4 == 0 { flash.write(now, page, false).accepted } else { flash.read(now, page) };
        hash = hash.wrapping_mul(31).wrapping_add(at.as_ps());
        now = now.max(SimTime::from_ps(at.as_ps().saturating_sub(100_000_000)));
    }
    hash
}

/// A walk in a circle that the nearest level holds.
#[derive(Default)]
struct Circle(u64);

impl Accesses for Circle {
    fn next_access(&mut self) -> Option<Access> {
        self.0 = (self.0 + 8) & 0x3fff;
        Some(Access { address: self.0, gap: 2, ..Access::default() })
    }
}

/// Nanoseconds that this thread has had a processor for, where the system tells.
fn on_processor() -> Option<u64> {
    std::fs::read_to_string("/proc/thread-self/schedstat").ok()?.split(' ').next()?.parse().ok()
}

fn report(name: &str, accesses: u64, mut round: impl FnMut() -> u64) {
    let wanted: Vec<String> = std::env::args().skip(1).filter(|argument| !argument.starts_with("--")).collect();
    if !(wanted.is_empty() || wanted.iter().any(|wanted| name.starts_with(wanted.as_str()))) {
        return;
    }
    let (mut fastest, mut hash) = (f64::MAX, 0);
    for _ in 0..ROUNDS {
        let (begun, worked) = (Instant::now(), on_processor());
        hash = round();
        // Other programs on the machine take no part of the thread's own time.
        let took = on_processor().zip(worked).map(|(ends, begins)| (ends - begins) as f64 / 1e9);
        fastest = fastest.min(took.unwrap_or_else(|| begun.elapsed().as_secs_f64()));
    }
    let nanoseconds = fastest * 1e9 / accesses as f64;
    println!("{name:44} {nanoseconds:8.1} ns an access, {:6.1} M/s, hash {hash:016x}", 1e3 / nanoseconds);
}

fn dram() -> DramConfig {
    DramConfig {
        channels: 2,
        banks: 16,
        row_bytes: 8192,
        precharge: SimSpan::from_ns_f64(9.1),
        activate: SimSpan::from_ns_f64(9.1),
        column: SimSpan::from_ns_f64(9.1),
        burst: SimSpan::from_ns_f64(2.5),
        controller: SimSpan::from_ns(10),
    }
}

fn run<A: Accesses>(sources: &mut [A], accesses: u64) -> u64 {
    let endpoint = Endpoint::new(EndpointConfig {
        controller: SimSpan::from_ns(20),
        dram: dram(),
        cache_pages: 393_216,
        policy: flashyard_cache::PolicyKind::Lru,
        caches_loads: true,
        buffers_lines: false,
        reads_lines: false,
        reads_annotations: false,
        reads_buffering: true,
        unannounced_part: 16,
        prefetch_pages: 0,
        guard: SimSpan::from_us(30),
        medium: MediumConfig::InPlace {
            pages: 1 << 25,
            units: 64,
            read: SimSpan::from_us(3),
            write: SimSpan::from_ns(6_250),
        },
    });
    let path = PathConfig {
        link_rate: ByteRate::from_mb(64_000),
        port: SimSpan::from_ns(40),
        switches: 1,
        switch: SimSpan::from_ns(70),
    };
    let level = |bytes, ways, cycles, shared| LevelConfig { bytes, ways, cycles, shared };
    let config = MachineConfig {
        cores: 1,
        clock: Hertz::new(4_000_000_000),
        width: 4,
        window: 224,
        queue: 64,
        levels: vec![level(64 << 10, 12, 5, false), level(2 << 20, 8, 20, true)],
        core_misses: 16,
        last_misses: 32,
        uncached_from: None,
        annotations: AnnotationRules::default(),
    };
    Dram::new(dram()).expect("the DRAM is possible");
    let memory = Expander::new(path, endpoint.expect("the endpoint is possible"));
    let mut machine = Machine::new(config, memory).expect("the machine is possible");
    machine.run(sources, accesses);
    let counters = machine.counters().next().expect("there is a core");
    let endpoint = machine.memory().device().counters();
    counters.latency.as_ps() ^ counters.hits[0].rotate_left(20) ^ endpoint.hits.rotate_left(40)
}
