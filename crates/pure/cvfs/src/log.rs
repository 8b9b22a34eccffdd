//! Logs: data and nodes, each by how soon it is likely to die.

/// Logs that are written side by side.
pub(crate) const LOGS: usize = 4;

/// Contents of a log. Blocks that die at about the same time lie together, and cleaning finds emptier victims.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Log {
    /// Inodes of directories and of files.
    NodeHot,
    /// Nodes of pointers, and nodes that cleaning has moved.
    NodeCold,
    /// Pages of directories, and pages that were written before.
    DataHot,
    /// Pages written for the first time, and pages that cleaning has moved.
    DataCold,
}

impl Log {
    pub(crate) const ALL: [Self; LOGS] = [Self::NodeHot, Self::NodeCold, Self::DataHot, Self::DataCold];
}

impl Log {
    /// The other log of nodes, or of data.
    pub(crate) const fn sibling(self) -> Self {
        match self {
            Self::NodeHot => Self::NodeCold,
            Self::NodeCold => Self::NodeHot,
            Self::DataHot => Self::DataCold,
            Self::DataCold => Self::DataHot,
        }
    }
}
