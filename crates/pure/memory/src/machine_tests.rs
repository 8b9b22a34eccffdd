//! Closed forms of the machine.

use super::*;
use crate::accesses::{Mix, MixConfig, Stream, StreamKernel};
use flashyard_kernel::Rng;
use proptest::prelude::*;

/// A memory that takes always as long, and notes when it was asked.
#[derive(Default)]
struct Fixed {
    latency: SimSpan,
    asked: SimTime,
    requests: [u64; 2],
}

impl Memory for Fixed {
    fn limits(&self) -> flashyard_cxl::MemoryLimits {
        flashyard_cxl::MemoryLimits { bytes: u64::MAX, access_bytes: 64, atomics: false }
    }

    fn access(&mut self, now: SimTime, _: u64, access: &MemoryAccess) -> Completes {
        assert!(now >= self.asked, "times only grow");
        self.asked = now;
        self.requests[usize::from(access.operation == Transaction::Store)] += 1;
        Completes::At(now + self.latency)
    }
}

const fn level(bytes: u64, ways: u32, cycles: u32, shared: bool) -> LevelConfig {
    LevelConfig { bytes, ways, cycles, shared }
}

fn config() -> MachineConfig {
    MachineConfig {
        cores: 1,
        clock: Hertz::new(4_000_000_000),
        width: 4,
        window: 224,
        queue: 64,
        levels: vec![level(4096, 4, 4, false), level(65_536, 8, 20, true)],
        core_misses: 16,
        last_misses: 32,
        uncached_from: None,
        annotations: AnnotationRules::default(),
    }
}

fn machine(config: MachineConfig, latency_ns: u64) -> Machine<Fixed> {
    let memory = Fixed { latency: SimSpan::from_ns(latency_ns), ..Fixed::default() };
    Machine::new(config, memory).expect("it is possible")
}

fn loads(addresses: impl IntoIterator<Item = u64>, depends: bool) -> std::vec::IntoIter<Access> {
    let load = |address| Access { address, depends, ..Access::default() };
    addresses.into_iter().map(load).collect::<Vec<_>>().into_iter()
}

#[test]
fn a_chain_of_loads_takes_the_mean_access_time_of_each() {
    // Every load waits for the one before: two rounds over 32 lines, the first of which misses everywhere.
    let mut machine = machine(config(), 100);
    let chain = loads((0..64).map(|load| load % 32 * 64), true);
    assert_eq!(machine.run(&mut [chain], u64::MAX), 64);
    let counters = *machine.counters().next().expect("there is a core");
    assert_eq!((counters.misses, counters.hits[0], counters.loads), (32, 32, 64));
    // AMAT: a miss takes 20 cycles of 250 ps and the memory; a hit takes 4 cycles.
    let expected = SimSpan::from_ns(32 * (5 + 100) + 32);
    assert_eq!(counters.latency, expected);
    // The first dispatch takes a quarter of a cycle; each further one hides behind the load that it waits for.
    let took = machine.drained().since(SimTime::ZERO);
    assert!(took >= expected && took < expected + SimSpan::from_ns(1), "{took:?}");
}

#[test]
fn independent_misses_overlap_as_far_as_registers_go() {
    let mut machine = machine(config(), 1000);
    machine.run(&mut [loads((0..160).map(|load| load * 64), false)], u64::MAX);
    // Sixteen at a time, ten times over.
    let took = machine.drained().since(SimTime::ZERO).as_ns();
    assert!((10_000..10_200).contains(&took), "{took}");
    let stalls = machine.counters().next().expect("there is a core").stalls;
    assert!(stalls.misses > SimSpan::from_us(8), "{stalls:?}");
}

#[test]
fn the_reorder_window_bounds_what_overlaps() {
    // One miss in 56 instructions: four in a window of 224.
    let mut machine = machine(config(), 1000);
    let sparse = (0..400_u64).map(|load| Access { address: load * 64, gap: 55, ..Access::default() });
    machine.run(&mut [sparse.collect::<Vec<_>>().into_iter()], u64::MAX);
    let took = machine.drained().since(SimTime::ZERO).as_ns();
    assert!((100_000..106_000).contains(&took), "{took}");
}

#[test]
fn a_load_hides_no_more_instructions_than_the_window_holds() {
    // A load in 2,240 instructions, which take 140 ns: a window of 224 dispatches 14 ns of them while the load before it waits.
    let mut machine = machine(config(), 1000);
    let sparse = (0..100_u64).map(|load| Access { address: load * 64, gap: 2239, ..Access::default() });
    machine.run(&mut [sparse.collect::<Vec<_>>().into_iter()], u64::MAX);
    let took = machine.drained().since(SimTime::ZERO).as_ns();
    assert!((113_000..113_300).contains(&took), "{took}");
}

#[test]
fn accesses_past_the_caches_go_one_at_a_time() {
    let mut machine = machine(MachineConfig { levels: Vec::new(), uncached_from: Some(0), ..config() }, 1000);
    machine.run(&mut [loads([0; 50], false)], u64::MAX);
    assert!((50_000..50_020).contains(&machine.drained().since(SimTime::ZERO).as_ns()));
    assert_eq!(machine.memory().requests, [50, 0]);
}

#[test]
fn a_part_of_the_addresses_lies_past_the_caches() {
    let mut machine = machine(MachineConfig { uncached_from: Some(4096), ..config() }, 1000);
    machine.run(&mut [loads([0, 4096, 0, 4096, 0, 4096], false)], u64::MAX);
    let counters = *machine.counters().next().expect("there is a core");
    assert_eq!((counters.misses, counters.hits[0]), (4, 2));
    assert_eq!(machine.memory().requests, [4, 0]);
}

#[test]
fn a_persistent_store_is_waited_for_and_a_store_is_not() {
    let store = |kind| vec![Access { kind, ..Access::default() }, Access::default()].into_iter();
    let mut posted = machine(config(), 1000);
    posted.run(&mut [store(AccessKind::Store)], u64::MAX);
    let mut persistent = machine(config(), 1000);
    persistent.run(&mut [store(AccessKind::PersistentStore)], u64::MAX);
    let stalls = |machine: &Machine<Fixed>| machine.counters().next().expect("there is a core").stalls.ordered;
    assert_eq!((stalls(&posted), stalls(&persistent)), (SimSpan::ZERO, SimSpan::from_us(1)));
}

#[test]
fn changed_lines_reach_the_memory_once_they_leave() {
    let mut machine = machine(config(), 100);
    // Stores to four times the last level, in order: every line comes and goes once, but for those still held.
    let lines = 4 * 1024_u64;
    let stores = (0..lines).map(|line| Access { kind: AccessKind::Store, address: line * 64, ..Access::default() });
    machine.run(&mut [stores.collect::<Vec<_>>().into_iter()], u64::MAX);
    let [reads, writes] = machine.memory().requests;
    assert_eq!(reads, lines);
    assert!(writes <= lines && writes >= lines - 1024 - 64, "{writes}");
    let counters = *machine.counters().next().expect("there is a core");
    assert_eq!(counters.requests, [reads, writes]);
}

#[test]
fn cores_share_the_last_level() {
    let streams = |threads: u32| -> Vec<Stream> {
        (0..threads).map(|thread| Stream::new(StreamKernel::Add, 1 << 20, thread, threads, 0)).collect()
    };
    let time = |cores: u32| {
        let mut machine = machine(MachineConfig { cores, last_misses: 256, ..config() }, 500);
        machine.run(&mut streams(cores), 120_000 / u64::from(cores));
        machine.drained().since(SimTime::ZERO).as_ns()
    };
    let (one, four) = (time(1), time(4));
    assert!((3.5..4.2).contains(&(one as f64 / four as f64)), "{one} {four}");
}

#[test]
fn cores_run_up_to_a_time() {
    let mut machine = machine(MachineConfig { cores: 2, ..config() }, 1000);
    // One core waits for each of its loads, and the other one for none.
    let far = |base: u64| (0..100_000).map(move |load| base + load * 64);
    let until = SimTime::ZERO + SimSpan::from_us(100);
    machine.run_until(&mut [loads(far(0), true), loads(far(1 << 40), false)], until);
    let done: Vec<u64> = machine.counters().map(|core| core.loads).collect();
    assert!((95..=101).contains(&done[0]) && (1500..=1650).contains(&done[1]), "{done:?}");
    assert!(machine.now() > until && machine.now() < until + SimSpan::from_us(2));
}

#[test]
fn machines_that_cannot_be_are_refused() {
    let refused = |config| Machine::new(config, Fixed::default()).is_err();
    assert!(refused(MachineConfig { cores: 0, ..config() }));
    assert!(refused(MachineConfig { levels: vec![level(64, 4, 4, false)], ..config() }));
    assert!(refused(MachineConfig { levels: vec![level(4096, 4, 4, true), level(4096, 4, 4, false)], ..config() }));
    assert!(refused(MachineConfig { levels: vec![level(4096, 4, 4, true); 5], ..config() }));
}

proptest! {
    #[test]
    fn every_access_is_answered_by_one_place(
        seed: u64, misses in 0.1_f64..30.0, hits in 0.0_f64..0.9, loads in 0.05_f64..0.5, cores in 1_u32..4,
    ) {
        let mix = MixConfig {
            misses_per_thousand: misses, loads, stores: 0.2, footprint: 1 << 28, last_level_hits: hits, warm_lines: 80, skew: 0.8, words_per_line: 1,
        };
        let mut machine = machine(MachineConfig { cores, ..config() }, 100);
        let mut sources: Vec<Mix> = (0..cores)
            .filter_map(|core| Mix::new(&mix, Rng::named(seed, &format!("core {core}"))).ok())
            .collect();
        prop_assume!(sources.len() == cores as usize);
        prop_assert_eq!(machine.run(&mut sources, 2_000), 2_000 * u64::from(cores));
        for core in machine.counters() {
            prop_assert_eq!(core.loads + core.stores, 2_000);
            prop_assert_eq!(core.hits.iter().sum::<u64>() + core.misses, 2_000);
            prop_assert!(core.latency >= core.memory_latency);
            prop_assert_eq!(core.requests[0], core.misses);
        }
        let requests: u64 = machine.counters().map(|core| core.requests[0] + core.requests[1]).sum();
        prop_assert_eq!(machine.memory().requests.iter().sum::<u64>(), requests);
    }
}

/// A memory that notes its stores and takes 50 ns for each, and a microsecond to persist.
#[derive(Default)]
struct Noting(Vec<u64>, u32);

impl Memory for Noting {
    fn limits(&self) -> flashyard_cxl::MemoryLimits {
        flashyard_cxl::MemoryLimits { bytes: u64::MAX, access_bytes: 64, atomics: false }
    }

    fn access(&mut self, now: SimTime, _: u64, access: &MemoryAccess) -> Completes {
        if access.operation == Transaction::Store {
            self.0.push(access.address / CACHE_LINE_BYTES);
        }
        Completes::At(now + SimSpan::from_ns(50))
    }

    fn persist(&mut self, now: SimTime) -> SimTime {
        self.1 += 1;
        now + SimSpan::from_us(1)
    }
}

#[test]
fn a_flush_writes_each_changed_line_once_and_waits_for_the_memory() {
    let mut machine = Machine::new(config(), Noting::default()).expect("it is possible");
    let of = |kind, line: u64| Access { kind, address: line * 64, ..Access::default() };
    let changes = [3, 900, 3, 17].map(|line| of(AccessKind::Store, line));
    let flush = of(AccessKind::Flush, 0);
    let source = [&changes[..], &[flush, flush]].concat();
    machine.run(&mut [source.into_iter()], 100);
    assert_eq!((machine.memory().0.as_slice(), machine.memory().1), (&[3, 17, 900][..], 2));
    assert_eq!(machine.commits().count(), 2);
    let longest = machine.commits().percentile_us(1.0);
    assert!((1.0..1.3).contains(&longest), "three lines and the memory: {longest} us");
    let counters = *machine.counters().next().expect("there is a core");
    assert_eq!(counters.loads + counters.stores, counters.hits.iter().sum::<u64>() + counters.misses);
}

/// A memory that takes a microsecond, and notes the most requests that were under way when one came.
#[derive(Default)]
struct Counting(Vec<SimTime>, usize);

impl Memory for Counting {
    fn limits(&self) -> flashyard_cxl::MemoryLimits {
        flashyard_cxl::MemoryLimits { bytes: u64::MAX, access_bytes: 64, atomics: false }
    }

    fn access(&mut self, now: SimTime, _: u64, _: &MemoryAccess) -> Completes {
        self.0.retain(|end| *end > now);
        self.0.push(now + SimSpan::from_us(1));
        self.1 = self.1.max(self.0.len());
        Completes::At(now + SimSpan::from_us(1))
    }
}

/// Accesses to a first level of two lines and a last one of two: the last of them misses, and two changed lines leave for it.
fn pushing_two_out() -> (MachineConfig, std::vec::IntoIter<Access>) {
    let levels = vec![level(128, 2, 4, false), level(128, 2, 20, true)];
    let of = |(kind, line): (AccessKind, u64)| Access { kind, address: line * 64, gap: 10_000, ..Access::default() };
    let (load, store) = (AccessKind::Load, AccessKind::Store);
    let (x, a, b) = (0, 1, 2);
    let steps = [(store, x), (store, a), (load, x), (store, b), (load, x), (load, a), (load, a), (load, b)];
    (MachineConfig { levels, last_misses: 1, ..config() }, steps.map(of).to_vec().into_iter())
}

#[test]
fn no_more_requests_are_under_way_than_there_are_registers() {
    let (config, accesses) = pushing_two_out();
    let mut machine = Machine::new(config, Counting::default()).expect("it is possible");
    machine.run(&mut [accesses], u64::MAX);
    let counters = *machine.counters().next().expect("there is a core");
    assert_eq!((counters.requests, machine.memory().1), ([4, 2], 1));
}

#[test]
fn the_wait_of_a_written_line_for_its_register_is_no_time_of_the_access_that_pushed_it_out() {
    let (config, accesses) = pushing_two_out();
    let mut machine = machine(config, 1000);
    machine.run(&mut [accesses], u64::MAX);
    let counters = *machine.counters().next().expect("there is a core");
    assert_eq!((counters.misses, counters.memory_latency), (4, SimSpan::from_ns(4 * (1000 + 5))));
    // The second of two lines that leave waits for the first, and that one for the miss.
    assert!(counters.stalls.misses > SimSpan::from_ns(1900), "{:?}", counters.stalls);
}
