//! The learned map beside a table of places of all chunks of 64 KiB, at random chunks: `cargo bench -p flashyard-array`.
//!
//! The arrays are the published configurations 1 (528 GiB) and 2 (8.51 TiB). Aims: sheet paraid, table 10: 72 and 76 ns a look-up, 145
//! and 183 ns an update, 2.1 bytes for each GiB. An exchange is two updates; the map
//! learns again when it is time.

use criterion::{Criterion, criterion_group, criterion_main};
use flashyard_array::layout::{Layout, Member};
use flashyard_array::learned::{Chunk, LearnedMap, Place};
use flashyard_kernel::Rng;
use std::hint::black_box;

/// Chunks of 64 KiB in a GiB, as a power of two.
const CHUNKS: u32 = 14;

fn arrays() -> [(&'static str, Layout); 2] {
    let member = |&(gib, speed): &(u64, u64)| Member { chunks: gib << CHUNKS, speed };
    let first = [(150, 333), (120, 333), (100, 333), (80, 48), (60, 48), (20, 48)];
    let fast = [(894, 333), (894, 333), (894, 333), (894, 333), (2969, 333), (894, 258)];
    let second = [&fast[..], &[(447, 48), (447, 48), (447, 48), (1740, 48)]].concat();
    let layout = |sizes: &[(u64, u64)], width| {
        Layout::new(&sizes.iter().map(member).collect::<Vec<_>>(), width).expect("drives make an array")
    };
    [("528 GiB", layout(&first, 3)), ("8.51 TiB", layout(&second, 6))]
}

/// Chunks at random, so many that none of them is known before.
fn chunks(map: &LearnedMap, count: usize, seed: u64) -> Vec<Chunk> {
    let mut rng = Rng::named(seed, "bench");
    let (stripes, width) = (u64::from(map.stripes()), map.width() as u64);
    let chunk = |_| Chunk { stripe: rng.below(stripes) as u32, column: rng.below(width) as u8 };
    (0..count).map(chunk).collect()
}

fn size(name: &str, what: &str, map: &LearnedMap) {
    let gib = f64::from(map.stripes()) * map.width() as f64 / f64::from(1 << CHUNKS);
    let (bytes, back) = (map.bytes(), map.inverse_bytes());
    println!(
        "{name}, {what}: {} leaves, {bytes} B, {:.2} B for each GiB; back from places {back} B",
        map.leaves(),
        bytes as f64 / gib
    );
}

fn look_ups(criterion: &mut Criterion) {
    for (name, layout) in arrays() {
        let fresh = LearnedMap::of(&layout).expect("a map");
        size(name, "fresh", &fresh);
        // As many leaves as the published map has in bytes: 1,328 and 14,288.
        let mut moved = fresh.clone();
        let published = if layout.width() == 3 { 1328 } else { 14_288 };
        for (number, pair) in chunks(&fresh, 2 << 10, 3).chunks_exact(2).enumerate() {
            if moved.bytes() + number * 20 < published + 400 {
                moved.exchange(pair[0], pair[1]);
            }
        }
        size(name, "with exceptions", &moved);
        let mut retrained = moved.clone();
        retrained.retrain();
        size(name, "retrained", &retrained);
        let asked = chunks(&fresh, 1 << 20, 1);
        let mut group = criterion.benchmark_group(name);
        for (what, map) in [("fresh", &fresh), ("with exceptions", &moved), ("retrained", &retrained)] {
            let mut next = asked.iter().cycle();
            group.bench_function(format!("look-up, {what}"), |bencher| {
                bencher.iter(|| next.next().map(|&chunk| black_box(map.get(chunk))));
            });
            let mut next = asked.iter().cycle();
            group.bench_function(format!("back from a place, {what}"), |bencher| {
                bencher.iter(|| next.next().map(|&chunk| black_box(map.find(map.get(chunk)))));
            });
        }
        let width = fresh.width();
        let place =
            |number: usize| fresh.get(Chunk { stripe: (number / width) as u32, column: (number % width) as u8 });
        let mut table: Vec<Place> = (0..fresh.stripes() as usize * width).map(place).collect();
        println!("{name}, table: {} B", size_of_val(table.as_slice()));
        let at = |chunk: Chunk| chunk.stripe as usize * width + usize::from(chunk.column);
        let mut next = asked.iter().cycle();
        group.bench_function("look-up, table", |bencher| {
            bencher.iter(|| next.next().map(|&chunk| black_box(table[at(chunk)])));
        });
        let mut next = asked.chunks_exact(2).cycle();
        group.bench_function("exchange, table", |bencher| {
            bencher.iter(|| next.next().map(|pair| table.swap(at(pair[0]), at(pair[1]))));
        });
        group.finish();
    }
}

fn updates(criterion: &mut Criterion) {
    for (name, layout) in arrays() {
        let mut map = LearnedMap::of(&layout).expect("a map");
        let pairs = chunks(&map, 1 << 12, 2);
        let mut next = pairs.chunks_exact(2).cycle();
        criterion.benchmark_group(name).bench_function("exchange", |bencher| {
            bencher.iter(|| {
                if let Some(pair) = next.next() {
                    map.exchange(pair[0], pair[1]);
                }
                if map.wants_retraining() {
                    map.retrain();
                }
            });
        });
        size(name, "after updates", &map);
    }
}

criterion_group!(benches, look_ups, updates);
criterion_main!(benches);
