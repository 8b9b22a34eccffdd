//! Kernels that a GPU runs, as the lines of 64 bytes that the lanes of its warps load and store.
//!
//! The source names Rodinia, and its GPU is Vortex, whose public tests carry programs of these names. Where the loads of such a program among
//! its accesses to memory are within five points of the published share \[A\], the kernel is that program, with its own loads and stores. Otherwise the
//! lines follow the program, and the published share says how many stores come between them.
//!
//! | kernel | public program | what a work item does | its loads | published | taken |
//! |---|---|---|--:|--:|---|
//! | `sort` | Vortex `psort` | loads its element, then all elements one after the other, and stores once: its rank is their count | 100 % | 98.7 % | whole |
//! | `gemm` | Vortex `sgemm` | for each k a word of a row that adjacent items have adjacent words of, and one that all of them share | 100 % | 99.9 % | whole |
//! | `vadd` | Vortex `vecadd` | two loads, a store | 66.7 % | 69.1 % | whole |
//! | `saxpy` | Vortex `saxpy` | two loads, a store to the word that was loaded last | 66.7 % | 69.2 % | whole |
//! | `path` | Rodinia `pathfinder` | a word of the result so far, one of each of five rows of a grid, a store | 91.7 % | 92.7 % | whole |
//! | `conv3` | Vortex `conv3` | nine words of three rows of an image, nine weights, a store | 94.7 % | 78.6 % | lines |
//! | `stencil` | Vortex `stencil`, of Parboil | seven words in five lines of three planes, a store | 87.5 % | 72.5 % | lines |
//! | `cfd` | Rodinia `cfd`, fluxes | 41 loads from 21 arrays, five stores | 89.1 % | 42.6 % | lines |
//! | `bfs` | Rodinia `bfs`, a level | marks, node and edges of a vertex, and marks of the vertices that these lead to; stores of both launches | 60 to 90 % | 43.2 % | lines |
//! | `gauss` | Rodinia `gaussian`, `Fan2` | a word of its row, one of the pivot's, a multiplier, a store | 75.0 % | 48.5 % | a row a lane |
//! | `rsum` | none: Vortex `psum` is a reduction | a word, then words of local memory | 97.0 % | 53.3 % | a sweep |
//!
//! Local memory is left out of these shares. With it `path` has 66 % and `psum` 60 %; the source does not say whether it counts such accesses.
//! Programs that store more than they load cannot be found among those of these names: the published shares of `cfd`, `gauss` and `bfs` are
//! of other code, or count stores to the stack. The share of `mri` lies below those of both of its parts, which no mix of them has.
//!
//! Tasks are divided as Vortex divides them: a core has a run of adjacent ones, each of its warps a run of these, and lanes of a warp have
//! adjacent ones at a time.
//!
//! Source: \[P\] sheet micro-cxl-gpu §4, Table 1b; \[C\] Vortex: `tests/opencl/{psort, sgemm, conv3, stencil, psum}/kernel.cl`,
//! `benchmarks/new_opencl/saxpy/kernel.cl` and `kernel/src/vx_spawn.c` (commit 04314cef); \[X\] Rodinia's code and its generator of graphs;
//! other forms and their numbers are \[A\].

mod graph;
mod kernel;
mod mesh;
mod programs;
mod rows;
mod sweep;
mod tasks;
mod walk;

pub use kernel::{Class, Kernel, Pattern, Place, Step};
pub use walk::Walk;

#[cfg(test)]
mod tests {
    use super::*;
    use flashyard_units::Named;

    /// Points of percent that the share of a program that is taken whole may differ from the published one.
    const NEAR: f64 = 5.0;

    /// A warp of one lane.
    fn alone(warp: u32, core: u32) -> Place {
        Place { core, cores: 8, warp, warps: 8, lane: 0, lanes: 1 }
    }

    /// So many steps of a lane that waits for no other.
    fn steps(walk: &mut Walk, count: usize) -> Vec<Step> {
        let mut steps = Vec::new();
        while steps.len() < count {
            match walk.step() {
                Some(step) => steps.push(step),
                None => walk.go_on(),
            }
        }
        steps
    }

    fn percent_of_loads(steps: &[Step]) -> f64 {
        100.0 * steps.iter().filter(|step| !step.is_store).count() as f64 / steps.len() as f64
    }

    #[test]
    fn lines_lie_within_the_data() {
        for &kernel in Kernel::ALL {
            for (warp, core) in [(0, 0), (7, 7), (3, 2)] {
                for lines in [4_096, 40_000] {
                    let mut walk = Walk::new(kernel, lines, alone(warp, core), 1);
                    assert!(steps(&mut walk, 50_000).iter().all(|step| step.line < lines), "{}", kernel.name());
                }
            }
        }
    }

    #[test]
    fn shares_are_those_of_the_table_where_a_program_is_not_taken_with_its_stores() {
        for kernel in [Kernel::Rsum, Kernel::Stencil, Kernel::Conv3, Kernel::Cfd, Kernel::Gauss, Kernel::Bfs] {
            let mut walk = Walk::new(kernel, 40_000, alone(3, 2), 1);
            let found = percent_of_loads(&steps(&mut walk, 50_000));
            assert!((found - kernel.shares().1).abs() < 0.1, "{}: {found} % loads", kernel.name());
        }
    }

    #[test]
    fn programs_that_are_taken_whole_are_near_the_published_shares() {
        for kernel in [Kernel::Sort, Kernel::Gemm, Kernel::Vadd, Kernel::Saxpy, Kernel::Path] {
            let (computes, published) = kernel.shares();
            let mut words = [0.0; 2];
            // All lanes of a core of four warps, with data so small that they carry out many tasks.
            for lane in 0..32 {
                let place = Place { core: 1, cores: 2, warp: lane / 8, warps: 4, lane: lane % 8, lanes: 8 };
                let mut walk = Walk::new(kernel, 4_096, place, 1);
                for step in (0..30_000).filter_map(|_| walk.step()) {
                    words[usize::from(step.is_store)] += f64::from(step.instructions) * (1.0 - computes / 100.0);
                }
            }
            let found = 100.0 * words[0] / (words[0] + words[1]);
            assert!((found - published).abs() < NEAR, "{}: {found} % and not {published} %", kernel.name());
        }
    }

    #[test]
    fn kernels_made_of_others_run_them_in_turn() {
        for (kernel, parts) in [
            (Kernel::Gnn, &[Kernel::Bfs, Kernel::Vadd, Kernel::Gemm][..]),
            (Kernel::Mri, &[Kernel::Sort, Kernel::Conv3]),
        ] {
            assert_eq!(kernel.parts(), parts);
            let mut whole = Walk::new(kernel, 40_000, alone(3, 2), 1);
            for &part in parts {
                let mut alone = Walk::new(part, 40_000, alone(3, 2), 1);
                for _ in 0..4_096 {
                    let step = whole.step();
                    assert_eq!(step, alone.step(), "{part:?}");
                    if step.is_none() {
                        whole.go_on();
                        alone.go_on();
                    }
                }
            }
        }
        // Of graphs, sums and products together; no mix of sorting and convolving has the 53.3 % of `mri`.
        let mut gnn = Walk::new(Kernel::Gnn, 40_000, alone(3, 2), 1);
        let found = percent_of_loads(&steps(&mut gnn, 60_000));
        assert!((found - Kernel::Gnn.shares().1).abs() < NEAR, "{found}");
    }
}
