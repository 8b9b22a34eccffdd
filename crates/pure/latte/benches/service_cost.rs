//! Cost of LATTE on a core: `cargo bench -p flashyard-latte`.
//!
//! The fastest of several rounds of each: one inference with its window; the location map alone; one request through the whole
//! service, with all that it orders and what comes of that. Blocks are at random over 16 GiB, so most steps miss the processor's
//! caches. The aims are 100 ns an inference, and 150 ns for location map and cache together.

#![expect(clippy::disallowed_types, reason = "a bench measures the real clock; nothing simulated sees it")]
#![expect(clippy::disallowed_methods, reason = "a bench measures the real clock; nothing simulated sees it")]

use flashyard_blk::Operation;
use flashyard_kernel::Rng;
use flashyard_latte::dispatch::{BACK, FRONT};
use flashyard_latte::model::{FIGURES, Model, Window};
use flashyard_latte::{Config, Latte, Locations, Rule};
use flashyard_service::{Orders, Request, Service};
use flashyard_units::SimTime;
use std::hint::black_box;
use std::time::Instant;

const ROUNDS: u32 = 5;

fn main() {
    // `cargo test --benches` passes no `--bench`: then few steps show that it still runs.
    let is_bench = std::env::args().any(|argument| argument == "--bench");
    let (blocks, steps) = if is_bench { (1 << 22, 4_000_000) } else { (1 << 10, 1000) };
    inference(steps);
    training(is_bench);
    map(blocks, steps);
    for (name, operation, is_warm, durable) in [
        ("read that hits", Operation::Read, true, false),
        ("read that misses, and is copied at times", Operation::Read, false, false),
        ("write to the log", Operation::Write, false, false),
        ("write through", Operation::Write, false, true),
    ] {
        let slots = blocks;
        let config = Config { cache_slots: slots, log_slots: slots, rule: Rule::Front, ..Config::halves(blocks, 2) };
        let mut latte = Latte::new(config);
        if is_warm {
            latte.warm();
        }
        request(name, latte, blocks, steps, (operation, durable));
    }
}

/// Prints the fastest of several rounds of `steps`.
fn measure(name: &str, steps: u32, mut round: impl FnMut()) {
    let time = || {
        let began = Instant::now();
        round();
        began.elapsed().as_nanos() as f64 / f64::from(steps)
    };
    let best = std::iter::repeat_with(time).take(ROUNDS as usize).fold(f64::INFINITY, f64::min);
    println!("{best:7.1} ns  {name}");
}

fn inference(steps: u32) {
    let mut rng = Rng::named(1, "bench");
    let model = Model::random(&mut rng);
    let mut window = Window::default();
    measure("window and inference", steps, || {
        for step in 0..steps {
            window.push(black_box(&[step as f32; FIGURES]));
            black_box(model.infer(window.features()));
        }
    });
}

/// A training on as many windows as the rule keeps.
fn training(is_bench: bool) {
    let mut rng = Rng::named(1, "bench");
    let mut window = Window::default();
    let windows = if is_bench { 100_000 } else { 100 };
    let trace: Vec<_> = (0..windows)
        .map(|_| {
            window.push(&[0; FIGURES].map(|_: u8| rng.below(1000) as f32));
            let features = *window.features();
            (features, if features[0] > features[1] { BACK } else { FRONT })
        })
        .collect();
    let mut model = Model::random(&mut rng);
    let began = Instant::now();
    model.train(&trace, &mut rng);
    println!("{:7.3} s   training on {windows} windows", began.elapsed().as_secs_f64());
}

fn map(blocks: u32, steps: u32) {
    let mut map = Locations::at_back(blocks as usize);
    let mut rng = Rng::named(1, "bench");
    measure("location map: a write, and a look at another block", steps, || {
        for _ in 0..steps {
            let block = rng.below(blocks.into());
            map.written_front(block, block);
            black_box(map.get(rng.below(blocks.into())));
        }
    });
}

fn request(name: &str, mut latte: Latte, blocks: u32, steps: u32, (operation, durable): (Operation, bool)) {
    let (mut out, mut ends, mut rng) = (Orders::default(), Vec::new(), Rng::named(1, "bench"));
    measure(name, steps, || {
        for _ in 0..steps {
            let request = Request { id: 0, operation, first: rng.below(blocks.into()), count: 1, durable, source: 0 };
            out.clear();
            latte.submit(SimTime::ZERO, &request, &mut out);
            ends.extend(out.orders.iter().map(|order| order.id));
            while let Some(order) = ends.pop() {
                out.clear();
                latte.completed(SimTime::ZERO, order, Ok(()), &mut out);
                ends.extend(out.orders.iter().map(|order| order.id));
            }
        }
    });
}
