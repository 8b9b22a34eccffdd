//! The steps of a lane: accesses of its kernel's program, or its loads with as many stores between them as are published.

use super::graph::Graph;
use super::kernel::{Kernel, Place, Step};
use super::mesh::Mesh;
use super::programs::{Access, Grid, Product, Rank, Vectors};
use super::rows::Rows;
use super::sweep::Sweep;
use super::tasks::Tasks;
use flashyard_kernel::Rng;

/// Steps of a kernel before the next one of a kernel that is made of several. \[A\]
const PART_STEPS: u32 = 4096;

/// Where accesses lie.
#[derive(Clone, Debug)]
enum Form {
    Vectors(Vectors),
    Product(Product),
    Rank(Rank),
    Grid(Grid),
    Loads(Loads),
    /// Kernels in turn: the present one, and its steps that are left.
    Parts(Vec<Walk>, usize, u32),
}

/// Where loads lie, with stores between them by the published share.
#[derive(Clone, Debug)]
struct Loads {
    of: LoadsOf,
    /// Stores owed.
    owed: f64,
    /// The line that stores go to, and words of the last load that are used.
    last: u64,
    words: u32,
}

#[derive(Clone, Debug)]
enum LoadsOf {
    Sweep(Sweep),
    Mesh(Mesh),
    Rows(Rows),
    Graph(Box<Graph>),
}

impl Loads {
    const fn new(of: LoadsOf) -> Self {
        Self { of, owed: 0.0, last: 0, words: 1 }
    }

    /// The next access, where so many percent are loads. `None` where the vertex of the lane has no line left.
    fn next(&mut self, percent: f64) -> Option<Access> {
        if matches!(&self.of, LoadsOf::Graph(graph) if !graph.has_left()) {
            return None;
        }
        self.owed += 1.0 - percent / 100.0;
        let is_store = self.owed >= 1.0;
        self.owed -= f64::from(u8::from(is_store));
        let line = if is_store { self.stored() } else { self.load()? };
        Some(Access { line, words: self.words, is_store })
    }

    fn stored(&mut self) -> u64 {
        match &mut self.of {
            LoadsOf::Graph(graph) => graph.stored(),
            LoadsOf::Mesh(mesh) => mesh.stored(),
            LoadsOf::Sweep(_) | LoadsOf::Rows(_) => self.last,
        }
    }

    fn load(&mut self) -> Option<u64> {
        let (line, words) = match &mut self.of {
            LoadsOf::Graph(graph) => graph.load()?,
            LoadsOf::Mesh(mesh) => mesh.load(),
            LoadsOf::Sweep(sweep) => {
                let (line, words, result) = sweep.load();
                self.last = result;
                (line, words)
            }
            LoadsOf::Rows(rows) => {
                let (line, words, changed) = rows.load();
                self.last = changed.unwrap_or(self.last);
                (line, words)
            }
        };
        self.words = words;
        Some(line)
    }
}

/// The steps of one lane, without end.
#[derive(Clone, Debug)]
pub struct Walk {
    kernel: Kernel,
    form: Form,
    /// Instructions owed.
    owed: f64,
}

impl Walk {
    /// The walk of a lane through data of so many lines, at least 4096.
    pub fn new(kernel: Kernel, lines: u64, place: Place, seed: u64) -> Self {
        let number = u64::from((place.core * place.warps + place.warp) * place.lanes + place.lane);
        let rng = || Rng::named(seed ^ number << 32, "gpu.kernel");
        let tasks = Tasks::new(place);
        let loads = |of| Form::Loads(Loads::new(of));
        let form = match kernel {
            Kernel::Vadd => Form::Vectors(Vectors::new(tasks, lines, false)),
            Kernel::Saxpy => Form::Vectors(Vectors::new(tasks, lines, true)),
            Kernel::Gemm => Form::Product(Product::new(tasks, lines)),
            Kernel::Sort => Form::Rank(Rank::new(tasks, lines, rng())),
            Kernel::Path => Form::Grid(Grid::new(tasks, lines)),
            Kernel::Rsum | Kernel::Stencil | Kernel::Conv3 => loads(LoadsOf::Sweep(Sweep::new(kernel, tasks, lines))),
            Kernel::Cfd => loads(LoadsOf::Mesh(Mesh::new(tasks, lines, rng()))),
            Kernel::Gauss => loads(LoadsOf::Rows(Rows::new(place, lines))),
            Kernel::Bfs => loads(LoadsOf::Graph(Box::new(Graph::new(tasks, lines, rng())))),
            Kernel::Gnn | Kernel::Mri => {
                let part = |&part: &Kernel| Self::new(part, lines, place, seed);
                Form::Parts(kernel.parts().iter().map(part).collect(), 0, PART_STEPS)
            }
        };
        Self { kernel, form, owed: 0.0 }
    }

    /// The next step; `None` where the lane has no access while others of its warp have.
    pub fn step(&mut self) -> Option<Step> {
        let (computes, loads) = self.kernel.shares();
        let Access { line, words, is_store } = match &mut self.form {
            Form::Vectors(vectors) => vectors.next(),
            Form::Product(product) => product.next(),
            Form::Rank(rank) => rank.next(),
            Form::Grid(grid) => grid.next()?,
            Form::Loads(of) => of.next(loads)?,
            Form::Parts(parts, part, left) => {
                if *left == 0 {
                    (*part, *left) = ((*part + 1) % parts.len(), PART_STEPS);
                }
                *left -= 1;
                return parts[*part].step();
            }
        };
        self.owed += f64::from(words) / (1.0 - computes / 100.0);
        let instructions = self.owed as u32;
        self.owed -= f64::from(instructions);
        Some(Step { line, is_store, instructions: instructions.max(1) })
    }

    /// Goes on where no lane of a warp has an access left: to the next vertices of a search.
    pub fn go_on(&mut self) {
        match &mut self.form {
            Form::Loads(Loads { of: LoadsOf::Graph(graph), .. }) => graph.begin_vertex(),
            Form::Parts(parts, part, _) => parts[*part].go_on(),
            _ => {}
        }
    }
}
