//! Stacks against closed forms: times of a lone request, limits of pools, causes that account for everything.

use crate::database::{Connection, parse};
use crate::room::{LocalStorage, section::config};
use crate::stack::{Stage, Way};
use crate::{Link, Server, ServerConfig, ServerFigures, ServiceCounts, Stack};
use flashyard_describe::{NoFiles, Rooms, load};
use flashyard_measure::{Pacing, RunPlan, StopRule, StreamSpec};
use flashyard_services::Shares;
use flashyard_units::{Named, SimSpan, VolumeId};

const SCENARIO: &str = include_str!("../../../../scenarios/local-storage/scenario.toml");

static ROOMS: Rooms = Rooms::new(&[&LocalStorage]);

/// A run of `stack` with `drives` virtual drives and these settings; of so many requests of each, where `requests` says so.
fn run(stack: Stack, drives: u32, requests: Option<u64>, settings: &[&str]) -> ServerFigures {
    let small = ["drive.blocks_per_plane=100", "drive.pages_per_block=48", "run.warmup=10 ms", "run.measure=20 ms"];
    let settings: Vec<String> = small.iter().chain(settings).map(|&setting| setting.to_owned()).collect();
    let resolved = ROOMS.resolve(SCENARIO, "scenario.toml", &settings, &NoFiles);
    let scenario = resolved.unwrap_or_else(|error| panic!("{error}")).scenario;
    let config = ServerConfig { drives, ..config(&scenario, stack).expect("it is a server") };
    let mut plan = load::plan(&scenario).expect("it is a plan");
    if let Some(requests) = requests {
        plan = RunPlan { warmup: SimSpan::ZERO, stop: StopRule::Requests(requests), ..plan };
    }
    let sources = load::sources(&scenario, drives, config.capacity(), &NoFiles).expect("it is a load");
    let server = Server::new(config, plan, plan.streams(sources)).expect("it is a server");
    let figures = server.run(&mut |_| true).expect("it runs");
    assert!(figures.sanity.holds(), "{stack:?}: {:#?}", figures.sanity);
    figures
}

/// Time that a lone request spends in the stages of its stack.
fn alone(stack: Stack, way: Way, bytes: u64) -> SimSpan {
    let stage = |stage: &Stage| match *stage {
        Stage::Work { time, .. }
        | Stage::Delay { time, .. }
        | Stage::Interrupt { time }
        | Stage::Gather { time, .. } => time,
        Stage::Carry { bytes_per_us, way: of, .. } if of == way => SimSpan::from_ps(bytes * 1_000_000 / bytes_per_us),
        Stage::Carry { .. } | Stage::Turn { .. } | Stage::Services { .. } | Stage::Storage => SimSpan::ZERO,
    };
    let table = stack.table();
    table.stages.iter().chain(table.below.unwrap_or_default()).map(stage).sum()
}

#[test]
fn a_lone_request_takes_the_time_of_its_drive_and_of_its_stages() {
    for (way, read_share, size) in [(Way::Up, 1, "4 KiB"), (Way::Up, 1, "128 KiB"), (Way::Down, 0, "4 KiB")] {
        let (share, of) = (format!("workload.read_share={read_share}.0"), format!("workload.size={size}"));
        let settings = [share.as_str(), of.as_str(), "workload.depth=1"];
        let bytes = if size == "4 KiB" { 4096 } else { 131_072 };
        let mean = |stack| run(stack, 1, Some(100), &settings).latency().mean_us();
        // The drive sees the same requests, each alone, behind every stack.
        let drive = mean(Stack::Physical) - alone(Stack::Physical, way, bytes).as_us_f64();
        for stack in Stack::ALL.iter().copied().filter(|stack| stack.table().network.is_none()) {
            let (found, expected) = (mean(stack), drive + alone(stack, way, bytes).as_us_f64());
            // Writes pass a buffer that empties meanwhile.
            assert!(
                (found - expected).abs() < 0.002 * expected,
                "{stack:?} {way:?} {size}: {found} and not {expected}"
            );
        }
    }
}

#[test]
fn a_stack_is_as_fast_as_the_pool_that_is_busiest() {
    // Thousands of requests a second: of one virtual drive, and of each of eight.
    for (stack, single, of_eight) in [
        (Stack::Kernel, 55.0, 55.0),
        (Stack::Espresso, 576.0, 576.0),
        (Stack::EspressoM, 576.0, 576.0),
        (Stack::Doppio, 661.0, 660.0),
        // A core of the card for each.
        (Stack::Ristretto, 923.4, 923.4),
        (Stack::Ebs, 225.0, 225.0),
        // One core for all: 1.54 us of the host's, and a third more and a sixteenth of 5 us of a card's.
        (Stack::LeapIo, 649.4, 81.2),
        (Stack::LeapIoSoc, 423.6, 52.9),
    ] {
        for (drives, expected) in [(1, single), (8, of_eight)] {
            // Where a request takes long, fewer in flight end more evenly.
            let depth = match stack {
                Stack::Kernel => 8,
                Stack::LeapIo | Stack::LeapIoSoc => 256 / drives,
                _ => 256,
            };
            let depth = format!("workload.depth={depth}");
            let figures = run(stack, drives, None, &[depth.as_str()]);
            let found = figures.per_second(figures.ios()) / f64::from(drives) / 1e3;
            assert!((found / expected - 1.0).abs() < 0.02, "{stack:?}, {drives}: {found} and not {expected}");
        }
    }
}

/// A server with this chain of services.
fn chained(stack: Stack, links: &[Link], settings: &[&str]) -> ServerFigures {
    let small = ["drive.blocks_per_plane=100", "drive.pages_per_block=48", "run.warmup=10 ms", "run.measure=20 ms"];
    let settings: Vec<String> = small.iter().chain(settings).map(|&setting| setting.to_owned()).collect();
    let scenario = ROOMS.resolve(SCENARIO, "scenario.toml", &settings, &NoFiles).expect("it is one").scenario;
    let mut config = config(&scenario, stack).expect("it is a server");
    config.chain.cost = SimSpan::from_ns(150);
    links.iter().enumerate().for_each(|(place, &link)| config.chain.links[place] = Some(link));
    let sources = load::sources(&scenario, 1, config.capacity(), &NoFiles).expect("it is a load");
    let plan = load::plan(&scenario).expect("it is a plan");
    let figures = Server::new(config, plan, plan.streams(sources)).expect("it is a server").run(&mut |_| true);
    let figures = figures.expect("it runs");
    assert!(figures.sanity.holds(), "{stack:?}: {:#?}", figures.sanity);
    figures
}

#[test]
fn services_take_their_time_of_the_runtime_s_core() {
    let open = Link::Priority(Shares { most: 65_536, ..Shares::published(u16::MAX) });
    for (stack, count, expected) in [
        (Stack::LeapIo, 1, 1000.0 / 1.69),
        (Stack::LeapIo, 3, 1000.0 / 1.99),
        (Stack::LeapIoSoc, 3, 1000.0 / (2.048 + 0.3125 + 3.0 * 0.1995)),
        (Stack::LeapIoRemote, 3, 1000.0 / 1.99),
    ] {
        let figures = chained(stack, &vec![open; count], &["workload.depth=256"]);
        let found = figures.per_second(figures.ios()) / 1e3;
        assert!((found / expected - 1.0).abs() < 0.02, "{stack:?}, {count}: {found} and not {expected}");
    }
}

#[test]
fn two_drives_give_twice_the_reads_and_copies_take_twice_the_writes() {
    let deep = ["workload.depth=64", "drive.commands_per_second=100000"];
    let reads = |links: &[Link]| {
        let figures = chained(Stack::LeapIoRemote, links, &deep);
        figures.per_second(figures.ios()) / 1e3
    };
    let (one, stripe, mirror) = (reads(&[]), reads(&[Link::Stripe { legs: 2, chunk: 16 }]), reads(&[Link::Mirror(2)]));
    assert!((one / 100.0 - 1.0).abs() < 0.03, "{one}");
    assert!((stripe / 200.0 - 1.0).abs() < 0.06, "{stripe}");
    assert!((mirror / 200.0 - 1.0).abs() < 0.06, "{mirror}");
    // The laws count written bytes on each copy.
    let mixed = [&deep[..], &["workload.read_share=0.5"]].concat();
    for links in [&[Link::Mirror(3)][..], &[Link::Stripe { legs: 2, chunk: 1 }]] {
        assert!(chained(Stack::LeapIo, links, &mixed).ios() > 0);
    }
}

#[test]
fn links_of_a_card_are_shared_by_its_drives_and_each_way_is_its_own() {
    let sequential = ["workload.size=128 KiB", "workload.depth=32"];
    for (drives, share, expected) in [(1, "1.0", 4.1), (2, "1.0", 7.88), (4, "1.0", 15.76)] {
        let figures =
            run(Stack::Doppio, drives, None, &[&sequential[..], &[&format!("workload.read_share={share}")]].concat());
        let found = figures.per_second(figures.bytes()) / 1e9;
        assert!((found / expected - 1.0).abs() < 0.02, "{drives} drives: {found} GB/s and not {expected}");
    }
}

#[test]
fn polling_cores_count_whether_they_work_or_not() {
    let cores = |stack, depth: &str| run(stack, 8, None, &[&format!("workload.depth={depth}")]).host_cores;
    assert_eq!([cores(Stack::Espresso, "1"), cores(Stack::Espresso, "128")], [8.0, 8.0]);
    assert_eq!([cores(Stack::Ristretto, "128"), cores(Stack::Doppio, "128")], [0.0, 0.0]);
    let (idle, busy) = (cores(Stack::Kernel, "1"), cores(Stack::Kernel, "128"));
    assert!(idle < busy && busy > 7.9 && busy <= 8.0, "{idle} and {busy}");
}

#[test]
fn a_limit_of_commands_is_one_of_rate_and_no_time_of_a_lone_command() {
    let limited = |depth: u32, limit: u32| {
        let settings = [format!("workload.depth={depth}"), format!("drive.commands_per_second={limit}")];
        run(Stack::Physical, 1, (depth == 1).then_some(200), &settings.each_ref().map(String::as_str))
    };
    let [slow, fast] = [250_000, 1_000_000].map(|limit| limited(1, limit).latency().mean_us());
    assert!((slow - fast).abs() < 1e-9, "{slow} and {fast}");
    for limit in [250_000, 1_000_000] {
        let figures = limited(256, limit);
        let found = figures.per_second(figures.ios());
        assert!((found / f64::from(limit) - 1.0).abs() < 0.01, "{found} of {limit}");
    }
}

#[test]
fn no_pool_is_busy_for_longer_than_it_has_servers() {
    for queues in ["server.queues=1", "server.queues=4"] {
        let pools = run(Stack::Ristretto, 1, None, &["workload.depth=256", queues]).pools;
        assert!(pools.iter().all(|&(_, busy)| busy <= 1.0) && pools.iter().any(|&(_, busy)| busy > 0.9), "{pools:?}");
    }
}

#[test]
fn figures_of_a_virtual_drive_are_of_all_drives_behind_it() {
    let settings = ["workload.depth=64", "workload.read_share=0.0", "drive.commands_per_second=100000"];
    let slots = |links: &[Link]| {
        let figures = chained(Stack::LeapIo, links, &settings);
        let of = figures.drives[0].ftl.host_slots as f64;
        (of * 4096.0 / figures.drives[0].write_bytes as f64, figures.drives[0].flash_utilization)
    };
    for (links, copies) in [(&[Link::Stripe { legs: 2, chunk: 16 }][..], 1.0), (&[Link::Mirror(3)], 3.0)] {
        let (found, utilization) = slots(links);
        assert!((found / copies - 1.0).abs() < 0.05, "{found} slots for each that was written, {copies} expected");
        assert!(utilization > 0.0 && utilization <= 1.0, "{utilization}");
    }
}

#[test]
fn the_same_seed_gives_the_same_run_and_another_one_another() {
    let events = |seed: &str| {
        let figures = run(Stack::Ebs, 2, None, &[&format!("seed={seed}"), "workload.read_share=0.5"]);
        (figures.events, figures.requests, figures.latency().mean_us().to_bits())
    };
    assert_eq!(events("1"), events("1"));
    assert_ne!(events("1"), events("2"));
}

/// Sizes of a service for tests.
const SMALL: [&str; 3] = ["latte.volume=64 MiB", "latte.log=64 MiB", "latte.cache=48 MiB"];

#[test]
fn a_lone_read_of_a_service_takes_the_time_of_its_end_and_of_the_stages_there() {
    let alone_on = |stages: &[Stage]| -> SimSpan {
        let span = |stage: &Stage| match *stage {
            Stage::Work { time, .. } | Stage::Delay { time, .. } | Stage::Interrupt { time } => time,
            _ => SimSpan::ZERO,
        };
        stages.iter().map(span).sum()
    };
    let lone =
        |stack, settings: &[&str]| run(stack, 1, Some(200), &[&SMALL[..], &["workload.depth=1"], settings].concat());
    let tiers = Stack::Latte.table().tiers.expect("it has ends");
    // All reads hit: what the drive takes, the service's stages, and those of its orders.
    let drive = lone(Stack::Physical, &[]).latency().mean_us();
    let drive = drive - alone_on(Stack::Physical.table().stages).as_us_f64();
    let hits = lone(Stack::Latte, &["latte.cache=64 MiB"]);
    let expected = drive + (alone_on(Stack::Latte.table().stages) + alone_on(tiers.front)).as_us_f64();
    let found = hits.latency().mean_us();
    assert!((found / expected - 1.0).abs() < 0.02, "{found} us and not {expected}");
    // No read hits: what the network takes.
    let network = lone(Stack::Ebs, &[]).latency().mean_us() - alone_on(Stack::Ebs.table().stages).as_us_f64();
    let misses = lone(Stack::Latte, &["latte.warm=false", "latte.promotes=false"]);
    let expected = network + (alone_on(Stack::Latte.table().stages) + alone_on(tiers.back)).as_us_f64();
    let found = misses.latency().mean_us();
    assert!((found / expected - 1.0).abs() < 0.001, "{found} us and not {expected}");
}

#[test]
fn reads_of_a_service_are_as_fast_as_its_two_ends_beside_each_other() {
    // Thousands a second: a queue of the drive has 550, the volume 225.
    for (cache, share) in [("16 MiB", 0.25), ("32 MiB", 0.5), ("48 MiB", 0.75), ("64 MiB", 1.0)] {
        let cache = format!("latte.cache={cache}");
        let settings = ["server.queues=1", "latte.promotes=false", "workload.depth=256", cache.as_str()];
        let figures = run(Stack::Latte, 1, None, &[&SMALL[..], &settings].concat());
        let found = figures.per_second(figures.ios()) / 1e3;
        let expected = flashyard_latte::dispatch::throughput(550.0, 225.0, share);
        assert!((found / expected - 1.0).abs() < 0.03, "{cache}: {found} and not {expected}");
        let blocks = figures.drives[0].service.expect("it has a service").blocks;
        let hits = blocks.hits as f64 / (blocks.hits + blocks.misses) as f64;
        assert!((hits - share).abs() < 0.01, "{cache}: {hits}");
    }
}

#[test]
fn each_rule_sends_writes_where_it_says() {
    let writes = |stack, settings: &[&str]| {
        let more = ["workload.read_share=0.0", "workload.depth=32", "latte.check_every=2 ms", "latte.training=1 ms"];
        let own: Vec<_> = more.into_iter().filter(|key| !key.contains("check") && !key.contains("training")).collect();
        let learns = settings.contains(&"latte.rule=learned");
        let keys = if learns { more.to_vec() } else { own };
        run(stack, 1, None, &[&SMALL[..], &keys, settings].concat()).drives[0].service.expect("it has a service")
    };
    let share = |counts: &ServiceCounts| {
        counts.blocks.front_writes as f64 / (counts.blocks.front_writes + counts.blocks.back_writes) as f64
    };
    assert_eq!(share(&writes(Stack::Latte, &["latte.rule=back"])), 0.0);
    let split = share(&writes(Stack::Latte, &["latte.rule=split", "latte.front_share=0.25", "latte.log=1 GiB"]));
    assert!((split - 0.25).abs() < 0.01, "{split}");
    // A log that fills gives room as fast as the volume behind takes flushes.
    let csal = writes(Stack::Csal, &["latte.cache=1 MiB", "latte.log=8 MiB"]);
    assert!(csal.blocks.flushes > 0 && csal.blocks.waited > 0, "{csal:?}");
    let learned = writes(Stack::Latte, &["latte.rule=learned", "latte.log=1 GiB"]);
    assert!(learned.learnt.decisions > 1000, "it was trained in the warm-up: {learned:?}");
    let right = learned.learnt.right as f64 / learned.learnt.decisions as f64;
    assert!(right > 0.9, "{right}");
}

#[test]
fn completions_share_interrupts_up_to_their_number_and_their_time() {
    let queues = "server.queues=1";
    // In a loop of eight requests, seven wait for the eighth.
    let eight = ["workload.depth=8", "server.shared_interrupts=8", "server.interrupt_time=10 ms", queues];
    let shared = run(Stack::Ristretto, 1, None, &eight);
    let completions = shared.ios() as f64 / shared.interrupts as f64;
    assert!((completions - 8.0).abs() < 0.05, "{completions} completions an interrupt");
    let own = run(Stack::Ristretto, 1, None, &["workload.depth=8", queues]);
    assert_eq!(own.interrupts, 0);
    assert!(shared.latency().mean_us() > own.latency().mean_us() + 1.0, "seven of eight wait");
    // A lone request waits as long as it must.
    let alone =
        |settings: &[&str]| run(Stack::Ristretto, 1, Some(100), &[&["workload.depth=1", queues], settings].concat());
    let timed = alone(&["server.shared_interrupts=8", "server.interrupt_time=30 us"]);
    let found = timed.latency().mean_us() - alone(&[]).latency().mean_us();
    assert!((found - 30.0).abs() < 0.5, "{found} us later than with an interrupt of its own");
    assert_eq!(timed.interrupts, 100);
    // A guest that polls has none.
    assert_eq!(run(Stack::EspressoM, 1, None, &eight).interrupts, 0);
}

#[test]
fn virtual_drives_share_a_drive_and_not_a_block_of_it() {
    // A million commands a second of one drive, a quarter for each of four.
    let figures = run(Stack::Ristretto, 4, None, &["server.per_drive=4", "workload.depth=128"]);
    for drive in &figures.drives {
        let found = figures.per_second(drive.ios) / 1e3;
        assert!((found - 231.0).abs() < 25.0, "{found} thousand a second of one of four");
    }
    let thousands = figures.per_second(figures.ios()) / 1e3;
    assert!(thousands < 1000.5, "{thousands} thousand a second of one drive");
    // Each has written its part once: more would take space from another one, and make garbage.
    let fills =
        ["server.per_drive=4", "workload.read_share=0.0", "workload.pattern=sequential", "workload.size=128 KiB"];
    let apart = run(Stack::Ristretto, 4, None, &fills);
    let alone = run(Stack::Ristretto, 1, None, &fills);
    let rate = |figures: &ServerFigures| figures.per_second(figures.bytes());
    assert!((rate(&apart) / rate(&alone) - 1.0).abs() < 0.05, "{} and {}", rate(&apart), rate(&alone));
    let services = run(Stack::Latte, 2, None, &[&SMALL[..], &["server.per_drive=2", "workload.depth=64"]].concat());
    assert_eq!(services.drives.len(), 2);
}

#[test]
fn a_volume_costs_what_its_network_has_carried_out() {
    let price = |stack, settings: &[&str]| run(stack, 1, None, settings).price();
    let found = price(Stack::Ebs, &["workload.depth=256"]).expect("it has a price");
    // 225 thousand requests a second.
    assert!((found - (1.1 + 0.225 * 10.9)).abs() < 0.05, "{found}");
    assert_eq!([price(Stack::Ristretto, &[]), price(Stack::Ebsx, &[])], [Some(1.0), Some(19.0)]);
    assert_eq!(price(Stack::Kernel, &[]), None);
    let reads = [&SMALL[..], &["server.queues=1", "latte.promotes=false", "workload.depth=128"]].concat();
    let (half, all) =
        (price(Stack::Latte, &reads), price(Stack::Latte, &[&reads[..], &["latte.cache=64 MiB"]].concat()));
    assert!(half > all && all == Some(2.1), "{half:?} and {all:?}");
}

#[test]
fn a_database_thinks_between_its_requests_and_waits_for_them() {
    let settings = ["run.warmup=1 ms", "run.measure=50 ms"].map(str::to_owned);
    let scenario = ROOMS.resolve(SCENARIO, "scenario.toml", &settings, &NoFiles).expect("it is one").scenario;
    let config = config(&scenario, Stack::Ristretto).expect("it is a server");
    let served = |clients: usize| {
        // Two reads together, then one alone after 300 us of thinking.
        let text = "time_us,op,offset_4k,size_4k\n100,r,5,1\n100,r,50000,1\n400,r,90000,1\n";
        let stream = |number| {
            let steps = parse(text).expect("it is a recording");
            let source = Box::new(Connection::new(steps, number, clients).expect("it has steps"));
            StreamSpec::new(VolumeId::new(0), source, Pacing::Thinking)
        };
        let plan = load::plan(&scenario).expect("it is a plan");
        let server = Server::new(config, plan, (0..clients).map(stream).collect()).expect("it is a server");
        server.run(&mut |_| true).expect("it runs")
    };
    let one = served(1);
    // A round is 400 us of thinking, and a read for each of two waits.
    let read = one.latency().mean_us();
    let (found, expected) = (one.per_second(one.ios()), 3e6 / (400.0 + 2.0 * read));
    assert!((found / expected - 1.0).abs() < 0.02, "{found} a second and not {expected}");
    assert!(one.closed_loop && read > 50.0, "{read} us");
    let four = served(4);
    assert!((four.per_second(four.ios()) / found - 4.0).abs() < 0.1, "clients do not wait for each other");
}
