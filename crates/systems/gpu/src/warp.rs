//! Lanes that carry out one instruction together.
//!
//! A step takes the next access of each lane that has one, and accesses to one line become one request. Lanes without one are idle: at the
//! borders of a grid, and in a search, where lanes begin their next vertices together and those whose vertices are not in the frontier wait. Source: \[C\] Vortex:
//! `hw/rtl/libs/VX_mem_coalescer.sv` merges the accesses of a warp to one line, and its scoreboard holds a warp until all lanes have their
//! data; that all of the requests leave at once, and lanes of one step may store and load, is \[A\].

use crate::kernels::{Kernel, Place, Walk};

/// An access to a line, of one lane or of several.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Request {
    pub(crate) line: u64,
    pub(crate) is_store: bool,
}

/// A warp in lockstep.
pub(crate) struct Warp {
    lanes: Vec<Walk>,
    /// Of its last step.
    requests: Vec<Request>,
}

impl Warp {
    /// The warp whose first lane has this place.
    pub(crate) fn new(kernel: Kernel, lines: u64, first: Place, seed: u64) -> Self {
        let lane = |lane| Walk::new(kernel, lines, Place { lane, ..first }, seed);
        Self { lanes: (0..first.lanes).map(lane).collect(), requests: Vec::with_capacity(first.lanes as usize) }
    }

    /// Takes a step of at most `most` requests, the last ones of a run. Returns its instructions and the accesses of lanes.
    pub(crate) fn step(&mut self, most: usize) -> (u32, u32) {
        self.requests.clear();
        let (mut instructions, mut accesses) = (1, 0);
        while accesses == 0 {
            for step in self.lanes.iter_mut().filter_map(Walk::step) {
                let request = Request { line: step.line, is_store: step.is_store };
                if !self.requests.contains(&request) {
                    if self.requests.len() == most {
                        continue;
                    }
                    self.requests.push(request);
                }
                instructions = instructions.max(step.instructions);
                accesses += 1;
            }
            if accesses == 0 {
                self.lanes.iter_mut().for_each(Walk::go_on);
            }
        }
        (instructions, accesses)
    }

    /// Requests of the last step.
    pub(crate) fn requests(&self) -> &[Request] {
        &self.requests
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flashyard_units::Named;

    fn warp(kernel: Kernel, lanes: u32) -> Warp {
        Warp::new(kernel, 400_000, Place { core: 0, cores: 8, warp: 1, warps: 4, lane: 0, lanes }, 1)
    }

    #[test]
    fn lanes_with_adjacent_elements_make_one_request_a_line() {
        for kernel in [Kernel::Vadd, Kernel::Conv3, Kernel::Stencil, Kernel::Rsum] {
            let (mut warp, mut whole) = (warp(kernel, 8), warp(kernel, 1));
            let (mut together, mut alone) = (0, 0);
            for _ in 0..10_000 {
                let (instructions, accesses) = warp.step(8);
                assert_eq!((warp.requests().len(), accesses), (1, 8), "{kernel:?}");
                together += u64::from(instructions);
                alone += u64::from(whole.step(1).0);
                assert_eq!(warp.requests(), whole.requests(), "the lines are those of a warp of one lane");
            }
            // Eight lanes go through the 16 words of a line with an eighth of the instructions.
            assert!((alone as f64 / together as f64 / 8.0 - 1.0).abs() < 0.01, "{kernel:?}: {alone} {together}");
        }
        // Of 32 lanes, 16 words make a line.
        let mut wide = warp(Kernel::Vadd, 32);
        assert_eq!((wide.step(32).1, wide.requests().len()), (32, 2));
    }

    #[test]
    fn lanes_with_rows_of_their_own_make_a_request_each() {
        let mut gauss = warp(Kernel::Gauss, 8);
        // All lanes load the row of the pivot, every other one from its end.
        let mut loads = Vec::new();
        while loads.len() < 4 {
            gauss.step(8);
            loads.extend((!gauss.requests()[0].is_store).then(|| gauss.requests().len()));
        }
        assert_eq!(loads, [2, 8, 2, 8]);
        assert!(gauss.step(3) != (0, 0) && gauss.requests().len() <= 3, "no more than are left of a run");
    }

    #[test]
    fn lanes_that_sort_load_every_line_together() {
        let mut sort = warp(Kernel::Sort, 8);
        assert_eq!((sort.step(8).1, sort.requests().len()), (8, 1), "elements of their own, which are adjacent");
        for line in 0..1000 {
            // Each lane compares with the 16 words.
            assert!(matches!(sort.step(8), (25 | 26, 8)));
            assert_eq!(sort.requests(), [Request { line, is_store: false }]);
        }
    }

    #[test]
    fn lanes_whose_vertices_are_not_in_the_frontier_wait_for_the_others() {
        let mut bfs = warp(Kernel::Bfs, 8);
        let mut idle = 0;
        for _ in 0..10_000 {
            let (_, accesses) = bfs.step(8);
            assert!((1..=8).contains(&accesses));
            idle += u64::from(accesses < 8);
        }
        assert!(idle > 5_000, "half of the vertices are in the frontier");
        for &kernel in Kernel::ALL {
            let mut warp = warp(kernel, 8);
            for _ in 0..20_000 {
                let (_, accesses) = warp.step(8);
                assert!(warp.requests().len() <= accesses as usize && accesses > 0, "{kernel:?}");
            }
        }
    }
}
