//! Fluxes between elements of a mesh.
//!
//! Source: \[X\] Rodinia's `cfd`: an element has five variables, four neighbours and twelve parts of normals in arrays of their own, and so
//! have the five fluxes that are stored.

use super::tasks::Tasks;
use flashyard_kernel::Rng;

const VARIABLES: u64 = 5;
const FACES: u64 = 4;
const AXES: u64 = 3;
const ARRAYS: u64 = 2 * VARIABLES + FACES + FACES * AXES;
/// Lines around an element in which its neighbours lie. \[A\] 4 KiB either way
const NEIGHBOURS: u64 = 64;

/// A walk over elements.
#[derive(Clone, Debug)]
pub(super) struct Mesh {
    tasks: Tasks,
    /// Lines of an array.
    lines: u64,
    at: u64,
    /// Loads for the elements of a line so far.
    tap: u64,
    /// The line of the neighbour whose variables are loaded.
    neighbour: u64,
    flux: u64,
    rng: Rng,
}

impl Mesh {
    pub(super) fn new(tasks: Tasks, lines: u64, rng: Rng) -> Self {
        Self { tasks, lines: lines / ARRAYS, at: 0, tap: 0, neighbour: 0, flux: 0, rng }
    }

    /// The next line that is loaded, and words of it that are used: the variables of the elements, then for each face its neighbour, its
    /// normal, and the variables of that neighbour of each element.
    pub(super) fn load(&mut self) -> (u64, u32) {
        let elements = self.tasks.words();
        let line = self.tasks.line(self.at, self.lines);
        let tap = self.tap;
        let of_face = 1 + AXES + VARIABLES * u64::from(elements);
        self.tap = (tap + 1) % (VARIABLES + FACES * of_face);
        self.at += u64::from(self.tap == 0);
        let Some(of_faces) = tap.checked_sub(VARIABLES) else {
            return (tap * self.lines + line, elements);
        };
        let (face, part) = (of_faces / of_face, of_faces % of_face);
        if let Some(gathered) = part.checked_sub(1 + AXES) {
            let variable = gathered % VARIABLES;
            if variable == 0 {
                let shift = self.rng.below(2 * NEIGHBOURS);
                self.neighbour = (line + self.lines * NEIGHBOURS + shift - NEIGHBOURS) % self.lines;
            }
            return (variable * self.lines + self.neighbour, 1);
        }
        let array = if part == 0 { VARIABLES + face } else { VARIABLES + FACES + (part - 1) * FACES + face };
        (array * self.lines + line, elements)
    }

    /// The next line that is stored to.
    pub(super) fn stored(&mut self) -> u64 {
        self.flux = (self.flux + 1) % VARIABLES;
        (ARRAYS - VARIABLES + self.flux) * self.lines + self.tasks.line(self.at, self.lines)
    }
}

#[cfg(test)]
mod tests {
    use super::super::kernel::Place;
    use super::*;

    #[test]
    fn an_element_loads_41_words_of_21_arrays() {
        let tasks = Tasks::new(Place { core: 0, cores: 8, warp: 0, warps: 4, lane: 0, lanes: 16 });
        let mut mesh = Mesh::new(tasks, 26_000, Rng::named(1, "test"));
        for element in 0..20 {
            let mut of_array = [0; 21];
            for _ in 0..41 {
                let (line, words) = mesh.load();
                assert_eq!(words, 1, "16 lanes have a word of each line");
                of_array[(line / 1_000) as usize] += 1;
                let away = (line % 1_000 + 1_000 - element) % 1_000;
                assert!(away <= 64 || away >= 936, "{line}");
            }
            assert!(of_array[..5].iter().all(|&loads| loads == 5) && of_array[5..].iter().all(|&loads| loads == 1));
        }
        assert!((0..5).all(|_| (21_000..26_000).contains(&mesh.stored())));
    }
}
