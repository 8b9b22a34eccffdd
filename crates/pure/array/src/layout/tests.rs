use super::*;
use flashyard_kernel::Rng;
use microlp::{ComparisonOp, OptimizationDirection, Problem, SolveOutcome, Variable};
use proptest::prelude::*;
use std::collections::BTreeSet;

/// Drives of one speed.
fn alike(chunks: &[u64]) -> Vec<Member> {
    chunks.iter().map(|&chunks| Member { chunks, speed: 1 }).collect()
}

/// Every stripe has its chunks on drives of its own, and every place has one chunk at most.
fn assert_legal(layout: &Layout, members: &[Member]) {
    let mut places = BTreeSet::new();
    for stripe in 0..layout.stripes() {
        let mut drives = BTreeSet::new();
        for column in 0..layout.width() {
            let Column { drive, first } = layout.place(stripe, column);
            assert!(first < members[usize::from(drive)].chunks, "stripe {stripe} of {layout:?}");
            assert!(drives.insert(drive) && places.insert((drive, first)), "stripe {stripe} of {layout:?}");
        }
    }
}

/// Speed of the slowest member of each stripe.
fn slowest(layout: &Layout, members: &[Member]) -> Vec<u64> {
    let of = |stripe: u64| {
        (0..layout.width()).map(|column| members[usize::from(layout.place(stripe, column).drive)].speed).min()
    };
    (0..layout.stripes()).filter_map(of).collect()
}

/// The published integer program (sheet paraid §3.1), over chunks, stripes and drives. Returns the number of stripes.
fn program(chunks: &[u64], width: usize) -> u64 {
    let most = (chunks.iter().sum::<u64>() / width as u64) as usize;
    let mut problem = Problem::new(OptimizationDirection::Maximize);
    let stripes: Vec<Variable> = (0..most).map(|_| problem.add_binary_var(1.0)).collect();
    let chunk = |problem: &mut Problem| (0..width).map(|_| problem.add_binary_var(0.0)).collect::<Vec<_>>();
    let mut lies = Vec::new();
    for _ in &stripes {
        lies.push(chunks.iter().map(|_| chunk(&mut problem)).collect::<Vec<_>>());
    }
    for (drives, &stripe) in lies.iter().zip(&stripes) {
        for column in 0..width {
            let of_chunk = drives.iter().map(|columns| (columns[column], 1.0)).chain([(stripe, -1.0)]);
            problem.add_constraint(of_chunk.collect::<Vec<_>>().as_slice(), ComparisonOp::Eq, 0.0);
        }
        for columns in drives {
            for (number, &one) in columns.iter().enumerate() {
                problem.add_constraint([(one, 1.0), (stripe, -1.0)], ComparisonOp::Le, 0.0);
                for &other in &columns[number + 1..] {
                    problem.add_constraint([(one, 1.0), (other, 1.0), (stripe, -1.0)], ComparisonOp::Le, 0.0);
                }
            }
        }
    }
    for (drive, &room) in chunks.iter().enumerate() {
        let on_drive = lies.iter().flat_map(|drives| drives[drive].iter().map(|&one| (one, 1.0)));
        problem.add_constraint(on_drive.collect::<Vec<_>>().as_slice(), ComparisonOp::Le, room as f64);
    }
    match problem.solve().expect("no stripe at all is a solution") {
        SolveOutcome::Solution(solution) => solution.objective().round() as u64,
        SolveOutcome::Interrupted(interrupted) => panic!("no limit was set: {interrupted:?}"),
    }
}

#[test]
fn the_published_program_has_as_many_stripes_on_a_thousand_arrays() {
    let mut rng = Rng::named(1, "arrays");
    for number in 0..1000 {
        let drives = 2 + rng.below(4) as usize;
        let width = 2 + rng.below(drives as u64 - 1) as usize;
        let most = [9, 9, 6, 4, 3, 2][drives];
        let chunks: Vec<u64> = (0..drives).map(|_| rng.below(most + 1)).collect();
        assert_eq!(program(&chunks, width), most_stripes(&chunks, width), "array {number}: {chunks:?} in {width}");
    }
}

#[test]
fn the_example_of_the_source_fills_eighteen_of_nineteen_chunks() {
    let members = alike(&[6, 4, 2, 5, 2]);
    let layout = Layout::new(&members, 3).expect("a layout");
    assert_eq!(layout.stripes(), 6);
    assert_legal(&layout, &members);
}

/// Configurations 1 and 2 in GiB. Source: \[P\] sheet paraid §4.
fn configurations() -> [(Vec<Member>, usize); 2] {
    let of = |speed: u64, sizes: &[u64]| sizes.iter().map(|&chunks| Member { chunks, speed }).collect::<Vec<_>>();
    let first = [of(333, &[150, 120, 100]), of(48, &[80, 60, 20])].concat();
    let second = [of(333, &[894, 894, 894, 894, 2969]), of(258, &[894]), of(48, &[447, 447, 447, 1740])].concat();
    [(first, 3), (second, 6)]
}

#[test]
fn both_published_arrays_have_their_published_capacity() {
    let [(first, k), (second, m)] = configurations();
    let layout = Layout::new(&first, k).expect("a layout");
    assert_eq!(layout.stripes() * 3, 528, "GiB");
    assert_legal(&layout, &first);
    // (370 - 40 - 40) / 3 GiB of stripes are on fast drives alone if all of the others is used: sheet paraid §3.2.
    let chunks = |member: &Member| Member { chunks: member.chunks << 14, ..*member };
    let fine: Vec<Member> = first.iter().map(chunks).collect();
    let layout = Layout::new(&fine, k).expect("a layout");
    let is_fast = |group: &&Group| group.columns.iter().all(|column| fine[usize::from(column.drive)].speed == 333);
    let fast: u64 = layout.groups().iter().filter(is_fast).map(|group| group.stripes).sum();
    assert_eq!(layout.stripes(), (530 << 14) / 3, "chunks of 64 KiB");
    // Chunks that make no whole stripe are left over on slow drives.
    assert_eq!(fast, (290 << 14) / 3 + 2);
    let layout = Layout::new(&second, m).expect("a layout");
    assert_eq!(layout.stripes(), 1452, "8.51 TiB");
    assert_legal(&layout, &second);
}

proptest! {
    #[test]
    fn layouts_are_legal_whole_and_the_fastest_come_first(
        drives in prop::collection::vec((0_u64..40, 1_u64..5), 2..9),
        narrow in 0_usize..8,
    ) {
        let members: Vec<Member> = drives.iter().map(|&(chunks, speed)| Member { chunks, speed }).collect();
        let width = 1 + narrow % members.len();
        let chunks: Vec<u64> = members.iter().map(|member| member.chunks).collect();
        let most = most_stripes(&chunks, width);
        for layout in [Layout::new(&members, width), Layout::by_hand(&members, width)].into_iter().flatten() {
            assert_legal(&layout, &members);
            let slowest = slowest(&layout, &members);
            prop_assert!(slowest.is_sorted_by(|a, b| a >= b));
            prop_assert!(layout.stripes() <= most);
        }
        let stripes = Layout::new(&members, width).map_or(0, |layout| layout.stripes());
        prop_assert_eq!(stripes, most);
        prop_assert!(Layout::new(&members, width).is_ok_and(|layout| layout.groups().len() <= 5 * (members.len() + 1)) || most == 0);
    }

    #[test]
    fn no_layout_with_two_speeds_has_fewer_slow_stripes(
        drives in prop::collection::vec((0_u64..5, 1_u64..3), 2..6),
        narrow in 0_usize..5,
    ) {
        let members: Vec<Member> = drives.iter().map(|&(chunks, speed)| Member { chunks, speed }).collect();
        let width = 1 + narrow % members.len();
        if let Ok(layout) = Layout::new(&members, width) {
            let slow = slowest(&layout, &members).iter().filter(|&&speed| speed == 1).count() as u64;
            let chunks: Vec<u64> = members.iter().map(|member| member.chunks).collect();
            let speeds: Vec<u64> = members.iter().map(|member| member.speed).collect();
            let fewest = fewest_slow(chunks, &speeds, width, layout.stripes());
            prop_assert_eq!(Some(layout.stripes().min(slow)), fewest);
        }
    }
}

/// Fewest stripes with a drive of speed 1, over all ways to lay out so many stripes.
fn fewest_slow(chunks: Vec<u64>, speeds: &[u64], width: usize, stripes: u64) -> Option<u64> {
    type Known = std::collections::BTreeMap<Vec<u64>, Option<u64>>;
    fn search(left: Vec<u64>, speeds: &[u64], width: usize, stripes: u64, known: &mut Known) -> Option<u64> {
        if stripes == 0 {
            return Some(0);
        }
        if let Some(&answer) = known.get(&left) {
            return answer;
        }
        let answer = (0_u32..1 << left.len())
            .filter(|set| set.count_ones() as usize == width)
            .filter_map(|set| {
                let in_set = |drive: usize| set >> drive & 1 == 1;
                let is_slow = (0..left.len()).any(|drive| in_set(drive) && speeds[drive] == 1);
                let take = |(drive, &chunks): (usize, &u64)| chunks.checked_sub(in_set(drive).into());
                let after: Option<Vec<u64>> = left.iter().enumerate().map(take).collect();
                Some(u64::from(is_slow) + search(after?, speeds, width, stripes - 1, known)?)
            })
            .min();
        known.insert(left, answer);
        answer
    }
    search(chunks, speeds, width, stripes, &mut Known::new())
}

/// Mean share of capacity in stripes over arrays of `drives` drives whose capacities are uniform around 10 TiB, in percent.
/// Source: \[D\] sheet paraid §8.2, 300 draws.
fn mean_utilization(drives: usize, variation: f64, of: impl Fn(&[Member]) -> f64) -> f64 {
    let mut rng = Rng::named(1, "capacities");
    let draws = 300;
    // In extents of 1 GiB, as the published solver has them.
    let mean = 10.0 * 1024.0;
    let half = variation * 3.0_f64.sqrt() * mean;
    let sum: f64 = (0..draws)
        .map(|_| {
            let chunks: Vec<u64> = (0..drives).map(|_| (mean + half * (2.0 * rng.unit() - 1.0)) as u64).collect();
            of(&alike(&chunks))
        })
        .sum();
    100.0 * sum / f64::from(draws)
}

#[test]
fn utilization_is_as_derived_over_drives_and_variation() {
    let ours = |members: &[Member]| Layout::new(members, 6).expect("a layout").utilization(members);
    for (drives, variation, expected) in
        [(10, 0.1, 100.0), (10, 0.3, 100.0), (10, 0.4, 99.4), (10, 0.5, 96.8), (20, 0.5, 100.0), (40, 0.5, 100.0)]
    {
        let found = mean_utilization(drives, variation, ours);
        assert!((found - expected).abs() < 1.0, "{drives} drives at {variation}: {found:.2} %");
    }
    // RAID over the smallest of all, against its closed form: sheet paraid §10.
    let smallest = |members: &[Member]| {
        let chunks = members.iter().map(|member| member.chunks);
        members.len() as f64 * chunks.clone().min().unwrap_or(0) as f64 / chunks.sum::<u64>() as f64
    };
    for variation in [0.1, 0.3, 0.5] {
        let found = mean_utilization(10, variation, smallest);
        let form = 100.0 * (1.0 - 3.0_f64.sqrt() * variation * 9.0 / 11.0);
        assert!((found - form).abs() < 1.5, "{variation}: {found:.2} and {form:.2} %");
    }
}

#[test]
fn drives_that_make_no_array_are_refused() {
    let width = LayoutError::Width { width: 3, drives: 2 };
    assert_eq!(Layout::new(&alike(&[5, 5]), 3), Err(width));
    assert_eq!(Layout::new(&alike(&[5, 0]), 2), Err(LayoutError::NoRoom));
    assert_eq!(Layout::by_hand(&alike(&[5, 0]), 2), Err(LayoutError::NoRoom));
    assert_eq!(Layout::new(&alike(&[5; 257]), 2), Err(LayoutError::Drives(257)));
    assert_eq!(Layout::new(&alike(&[5, 1 << 49]), 2), Err(LayoutError::Chunks(1)));
    assert_eq!(most_stripes(&[5, 5], 0), 0);
}
