//! Kernels by name, with what the source's table says of them, and where a lane is among all lanes.
//!
//! Source: \[P\] sheet micro-cxl-gpu §4, Table 1b.

use flashyard_units::Named;

/// Bytes of a line, and words of four bytes in it.
pub(super) const LINE_BYTES: u64 = 64;
pub(super) const LINE_WORDS: u64 = 16;

/// A kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kernel {
    /// Prefix sums.
    Rsum,
    /// A stencil of the seven points around one of a cube.
    Stencil,
    /// Sorting by rank: each item is compared with all others.
    Sort,
    /// Product of matrices, an item of the result for each lane.
    Gemm,
    /// Sum of two vectors.
    Vadd,
    /// A scaled vector onto another one.
    Saxpy,
    /// A convolution of 3 by 3.
    Conv3,
    /// Shortest paths.
    Path,
    /// Fluxes between elements of a mesh.
    Cfd,
    /// Gaussian elimination.
    Gauss,
    /// Breadth-first search.
    Bfs,
    /// `bfs`, `vadd` and `gemm` in turn.
    Gnn,
    /// `sort` and `conv3` in turn.
    Mri,
}

impl Named for Kernel {
    const ALL: &'static [Self] = &[
        Self::Rsum,
        Self::Stencil,
        Self::Sort,
        Self::Gemm,
        Self::Vadd,
        Self::Saxpy,
        Self::Conv3,
        Self::Path,
        Self::Cfd,
        Self::Gauss,
        Self::Bfs,
        Self::Gnn,
        Self::Mri,
    ];

    fn name(self) -> &'static str {
        match self {
            Self::Rsum => "rsum",
            Self::Stencil => "stencil",
            Self::Sort => "sort",
            Self::Gemm => "gemm",
            Self::Vadd => "vadd",
            Self::Saxpy => "saxpy",
            Self::Conv3 => "conv3",
            Self::Path => "path",
            Self::Cfd => "cfd",
            Self::Gauss => "gauss",
            Self::Bfs => "bfs",
            Self::Gnn => "gnn",
            Self::Mri => "mri",
        }
    }
}

/// The class of a kernel in the source's table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// Computes much.
    Compute,
    /// Loads much.
    Load,
    /// Stores much.
    Store,
    /// Made of others.
    Real,
}

/// The order in which a kernel goes through its data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pattern {
    /// Forward.
    Sequential,
    /// Forward and back around a place.
    Around,
    /// Anywhere.
    Random,
}

impl Kernel {
    /// Computing instructions among all, and loads among accesses, in percent. \[P\] Table 1b
    pub const fn shares(self) -> (f64, f64) {
        match self {
            Self::Rsum => (31.4, 53.3),
            Self::Stencil => (37.5, 72.5),
            Self::Sort => (38.1, 98.7),
            Self::Gemm => (11.6, 99.9),
            Self::Vadd => (15.6, 69.1),
            Self::Saxpy => (16.2, 69.2),
            Self::Conv3 => (21.8, 78.6),
            Self::Path => (27.0, 92.7),
            Self::Cfd => (20.9, 42.6),
            Self::Gauss => (23.5, 48.5),
            Self::Bfs => (29.3, 43.2),
            Self::Gnn => (27.4, 73.8),
            Self::Mri => (29.2, 53.3),
        }
    }

    /// Its class. \[P\] Table 1b
    pub const fn class(self) -> Class {
        match self {
            Self::Rsum | Self::Stencil | Self::Sort => Class::Compute,
            Self::Gemm | Self::Vadd | Self::Saxpy | Self::Conv3 | Self::Path => Class::Load,
            Self::Cfd | Self::Gauss | Self::Bfs => Class::Store,
            Self::Gnn | Self::Mri => Class::Real,
        }
    }

    /// Its pattern in the source's table, by which means are taken; those of `rsum`, `stencil`, `sort` and `cfd` are \[A\]. `None` for
    /// those made of others. The lines of a kernel follow from its program, and not from this.
    pub const fn pattern(self) -> Option<Pattern> {
        match self {
            Self::Rsum | Self::Stencil | Self::Gemm | Self::Vadd | Self::Saxpy | Self::Conv3 => {
                Some(Pattern::Sequential)
            }
            Self::Sort | Self::Cfd | Self::Gauss => Some(Pattern::Around),
            Self::Path | Self::Bfs => Some(Pattern::Random),
            Self::Gnn | Self::Mri => None,
        }
    }

    /// Kernels that it is made of, each of which runs as it does alone.
    pub(super) const fn parts(self) -> &'static [Self] {
        match self {
            Self::Gnn => &[Self::Bfs, Self::Vadd, Self::Gemm],
            Self::Mri => &[Self::Sort, Self::Conv3],
            _ => &[],
        }
    }
}

/// One step of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// The line that is accessed.
    pub line: u64,
    /// Whether it is stored to.
    pub is_store: bool,
    /// Instructions with and before it: accesses to the line, and computing.
    pub instructions: u32,
}

/// A lane among all lanes of a GPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Its core, and cores.
    pub core: u32,
    /// See `core`.
    pub cores: u32,
    /// Its warp in the core, and warps of a core.
    pub warp: u32,
    /// See `warp`.
    pub warps: u32,
    /// Its number in the warp, and lanes of a warp.
    pub lane: u32,
    /// See `lane`.
    pub lanes: u32,
}
