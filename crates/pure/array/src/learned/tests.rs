use super::*;
use crate::layout::{Layout, Member};
use proptest::prelude::*;
use std::collections::BTreeMap;

/// A plain table: by column and stripe, the place.
type Plain = Vec<Vec<Place>>;

/// As long runs as a table has.
fn runs_of(plain: &Plain) -> Vec<Vec<Run>> {
    let column = |places: &Vec<Place>| {
        let mut runs: Vec<Run> = Vec::new();
        for (stripe, place) in (0_u32..).zip(places) {
            let goes_on =
                runs.last().is_some_and(|run| run.drive == place.drive && run.chunk + run.count == place.chunk);
            match runs.last_mut() {
                Some(run) if goes_on => run.count += 1,
                _ => runs.push(Run { first: stripe, count: 1, drive: place.drive, chunk: place.chunk, stride: 1 }),
            }
        }
        runs
    };
    plain.iter().map(column).collect()
}

fn assert_same(map: &LearnedMap, plain: &Plain) {
    let mut at = BTreeMap::new();
    for (column, places) in (0_u8..).zip(plain) {
        for (stripe, &place) in (0_u32..).zip(places) {
            let chunk = Chunk { stripe, column };
            assert_eq!(map.get(chunk), place, "{chunk:?}");
            at.insert(place, chunk);
        }
    }
    let last = at.keys().map(|place| place.chunk).max().unwrap_or(0);
    for drive in 0..6 {
        for chunk in 0..last + 3 {
            let place = Place { drive, chunk };
            assert_eq!(map.find(place), at.get(&place).copied(), "{place:?}");
        }
    }
}

/// Tables of stripes in pieces of some slopes, on drives of their own for each column, with gaps.
fn tables() -> impl Strategy<Value = Plain> {
    let piece = (1_usize..30, 0_u8..2, prop::sample::select(vec![1_i64, 1, 1, 2, 3, -1, -2, 7]), 0_i64..4);
    let column = prop::collection::vec(piece, 1..12);
    prop::collection::vec(column, 1..4).prop_map(|columns| {
        let mut ends = [0_i64; 6];
        let mut plain: Plain = Vec::new();
        for (number, pieces) in columns.iter().enumerate() {
            let mut places = Vec::new();
            for &(count, side, slope, gap) in pieces {
                let drive = 2 * number as u8 + side;
                let length = slope.abs() * (count as i64 - 1);
                let low = ends[usize::from(drive)] + gap;
                let first = if slope < 0 { low + length } else { low };
                ends[usize::from(drive)] = low + length + 1;
                places.extend((0..count as i64).map(|step| Place { drive, chunk: (first + slope * step) as u32 }));
            }
            plain.push(places);
        }
        let stripes = plain.iter().map(Vec::len).min().unwrap_or(0);
        plain.iter_mut().for_each(|places| places.truncate(stripes));
        plain
    })
}

proptest! {
    #[test]
    fn it_says_what_a_plain_table_says(
        mut plain in tables(),
        steps in prop::collection::vec((0_usize..400, 0_usize..400, 0_u8..10), 0..80),
    ) {
        let mut map = LearnedMap::new(&runs_of(&plain)).expect("a map");
        assert_same(&map, &plain);
        let stripes = plain[0].len();
        for (one, other, what) in steps {
            let chunk = |number: usize| (number % stripes, number / stripes % plain.len());
            let ((stripe, column), (to_stripe, to_column)) = (chunk(one), chunk(other));
            let name = |stripe: usize, column: usize| Chunk { stripe: stripe as u32, column: column as u8 };
            match what {
                0 => map.retrain(),
                1 => {
                    let mut bytes = vec![1, 2];
                    map.save(&mut bytes);
                    let loaded = LearnedMap::load(&bytes[2..]).expect("it was saved");
                    prop_assert_eq!(loaded.exceptions(), map.exceptions());
                    map = loaded;
                }
                2 => {
                    let place = Place { drive: plain[column][stripe].drive, chunk: 5000 + other as u32 };
                    if map.find(place).is_none() {
                        map.relocate(name(stripe, column), place);
                        plain[column][stripe] = place;
                    }
                }
                // Chunks beside each other move together, so that leaves of other slopes come about.
                _ => {
                    for step in 0..usize::from(what % 4) + 1 {
                        let (from, to) = ((stripe + step) % stripes, (to_stripe + step) % stripes);
                        if (from, column) != (to, to_column) {
                            map.exchange(name(from, column), name(to, to_column));
                            let place = plain[column][from];
                            plain[column][from] = std::mem::replace(&mut plain[to_column][to], place);
                        }
                    }
                }
            }
        }
        assert_same(&map, &plain);
        map.retrain();
        prop_assert_eq!(map.exceptions(), 0);
        assert_same(&map, &plain);
    }

    #[test]
    fn damaged_bytes_are_refused(plain in tables(), bit in any::<prop::sample::Index>(), is_cut in any::<bool>()) {
        let mut map = LearnedMap::new(&runs_of(&plain)).expect("a map");
        map.relocate(Chunk { stripe: 0, column: 0 }, Place { drive: 9, chunk: 9 });
        let mut bytes = Vec::new();
        map.save(&mut bytes);
        prop_assert_eq!(LearnedMap::load(&bytes).map(|map| map.exceptions()), Ok(1));
        if is_cut {
            bytes.truncate(bit.index(bytes.len()));
        } else {
            let bit = bit.index(8 * bytes.len());
            bytes[bit / 8] ^= 1 << (bit % 8);
        }
        prop_assert!(LearnedMap::load(&bytes).is_err());
    }

    #[test]
    fn any_runs_make_a_map_or_an_error(
        columns in prop::collection::vec(prop::collection::vec((0_u32..60, 0_u32..9, 0_u8..3, any::<u32>(), -3_i32..4), 0..4), 0..4),
    ) {
        let column = |runs: &Vec<(u32, u32, u8, u32, i32)>| {
            let run = |&(first, count, drive, chunk, stride): &_| Run { first, count, drive, chunk: chunk % 99, stride };
            runs.iter().map(run).collect::<Vec<Run>>()
        };
        let columns: Vec<Vec<Run>> = columns.iter().map(column).collect();
        if let Ok(map) = LearnedMap::new(&columns) {
            for column in 0..map.width() as u8 {
                for stripe in 0..map.stripes() {
                    let chunk = Chunk { stripe, column };
                    prop_assert_eq!(map.find(map.get(chunk)), Some(chunk));
                }
            }
        }
    }
}

#[test]
fn runs_that_share_places_or_leave_stripes_out_are_refused() {
    let run = |first, count, drive, chunk| Run { first, count, drive, chunk, stride: 1 };
    let shared = MapError::Shared(Place { drive: 0, chunk: 4 });
    assert_eq!(LearnedMap::new(&[vec![run(0, 5, 0, 0), run(5, 5, 0, 4)]]), Err(shared));
    let missing = MapError::Stripe { column: 0, stripe: 5 };
    assert_eq!(LearnedMap::new(&[vec![run(0, 5, 0, 0), run(6, 5, 0, 9)]]), Err(missing));
    let other = MapError::Stripe { column: 1, stripe: 4 };
    assert_eq!(LearnedMap::new(&[vec![run(0, 5, 0, 0)], vec![run(0, 4, 1, 0)]]), Err(other));
    assert_eq!(LearnedMap::new(&[vec![run(0, 5, 0, u32::MAX - 3)]]), Err(MapError::Range(0)));
    assert_eq!(LearnedMap::new(&[]), Err(MapError::Columns(0)));
}

#[test]
fn stripes_at_even_distances_need_one_leaf() {
    for stride in [-3, -1, 1, 2, 7] {
        let run = Run { first: 0, count: 1000, drive: 3, chunk: 10_000, stride };
        assert_eq!(LearnedMap::new(&[vec![run]]).map(|map| map.leaves()), Ok(1), "stride {stride}");
    }
}

#[test]
fn a_fresh_map_takes_less_than_the_published_one() {
    // Configuration 1 and 2 in chunks of 64 KiB; 1,328 and 14,288 bytes: sheet paraid, table 10.
    let members = |sizes: &[(u64, u64)]| {
        let member = |&(gib, speed): &(u64, u64)| Member { chunks: gib << 14, speed };
        sizes.iter().map(member).collect::<Vec<_>>()
    };
    let first = members(&[(150, 333), (120, 333), (100, 333), (80, 48), (60, 48), (20, 48)]);
    let fast = [(894, 333), (894, 333), (894, 333), (894, 333), (2969, 333), (894, 258)];
    let second = members(&[&fast[..], &[(447, 48), (447, 48), (447, 48), (1740, 48)]].concat());
    for (members, width, published) in [(first, 3, 1328), (second, 6, 14_288)] {
        let map = LearnedMap::of(&Layout::new(&members, width).expect("a layout")).expect("a map");
        let bytes = map.bytes() + map.inverse_bytes();
        eprintln!("{} leaves, {} and {} bytes", map.leaves(), map.bytes(), map.inverse_bytes());
        assert!(bytes <= published, "{bytes} bytes, {} leaves", map.leaves());
    }
}
