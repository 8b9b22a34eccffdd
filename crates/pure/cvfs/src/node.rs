//! Nodes: inodes and blocks of pointers, as values and as blocks.

use crate::bytes::{is_sealed, put, seal, u16_at, u32_at, u64_at};
use crate::device::{BLOCK_BYTES, Block, zeros};
use crate::error::FsError;

/// Slot of an owner entry that means the node itself.
pub(crate) const WHOLE_NODE: u16 = u16::MAX;
/// Offset of the last bytes of each node: its identity, and a checksum.
const FOOTER: usize = BLOCK_BYTES - 32;
/// Bytes of an inode before its pointers.
const HEADER: usize = 128;
/// Pointers of a node of pointers.
pub(crate) const POINTERS: usize = FOOTER / 4;
/// Pages that an inode points to itself.
pub(crate) const DIRECT: usize = (FOOTER - HEADER) / 4 - 3;
/// Bytes that a file can have: 4,000 GiB and a little.
pub const FILE_BYTES_MAX: u64 = {
    let pointers = POINTERS as u64;
    (DIRECT as u64 + pointers + pointers * pointers + pointers * pointers * pointers) * BLOCK_BYTES as u64
};

/// A pointer to nothing: a hole, which reads as zeros.
pub(crate) const HOLE: u32 = 0;
/// A pointer to a page that is in memory only, and for which space is set aside.
pub(crate) const UNWRITTEN: u32 = u32::MAX;

/// Kind of an inode.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// Bytes.
    File,
    /// Names.
    Directory,
    /// A path.
    Symlink,
}

impl Kind {
    pub(crate) fn from_code(code: u8) -> Option<Self> {
        [Self::File, Self::Directory, Self::Symlink].into_iter().find(|kind| *kind as u8 + 1 == code)
    }

    pub(crate) fn code(self) -> u8 {
        self as u8 + 1
    }
}

/// Attributes of a file, directory or symbolic link. Times are nanoseconds since 1970, with their sign in two's
/// complement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Inode {
    /// Its kind.
    pub kind: Kind,
    /// Permission bits.
    pub mode: u16,
    /// Owner.
    pub uid: u32,
    /// Group.
    pub gid: u32,
    /// Names that it has; for a directory two, and one for each directory in it.
    pub links: u32,
    /// Bytes.
    pub size: u64,
    /// Blocks of pages that are not holes.
    pub pages: u64,
    /// Last read, as the front end reports.
    pub accessed: u64,
    /// Last change of the contents.
    pub modified: u64,
    /// Last change of any kind.
    pub changed: u64,
    /// The directory that this directory is in; zero otherwise.
    pub parent: u32,
}

/// A node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Node {
    pub(crate) nid: u32,
    /// The inode that it belongs to: itself for an inode.
    pub(crate) ino: u32,
    /// First page below it.
    pub(crate) base: u64,
    /// Nodes between it and pages; zero for an inode.
    pub(crate) level: u8,
    pub(crate) inode: Option<Inode>,
    /// Blocks of pages at level zero, nodes above. The last three of an inode: nodes of levels 0, 1 and 2.
    pub(crate) pointers: Vec<u32>,
}

/// Where the pointer to a page is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Path {
    /// Pointers to follow, beginning in the inode; the last one points to the page.
    pub(crate) slots: [u16; 4],
    pub(crate) depth: usize,
    /// First page below each node on the way.
    pub(crate) bases: [u64; 4],
}

impl Path {
    /// The way to a page; `None` beyond the largest file.
    pub(crate) fn to(page: u64) -> Option<Self> {
        let mut path = Self { slots: [0; 4], depth: 1, bases: [0; 4] };
        if page < DIRECT as u64 {
            path.slots[0] = page as u16;
            return Some(path);
        }
        let mut base = DIRECT as u64;
        let mut span = POINTERS as u64;
        for level in 0..3 {
            if page - base < span {
                path.slots[0] = (DIRECT + level) as u16;
                for step in 0..=level {
                    path.bases[step + 1] = base;
                    span /= POINTERS as u64;
                    let slot = (page - base) / span;
                    path.slots[step + 1] = slot as u16;
                    base += slot * span;
                }
                path.depth = level + 2;
                return Some(path);
            }
            base += span;
            span *= POINTERS as u64;
        }
        None
    }
}

impl Node {
    pub(crate) fn inode(ino: u32, inode: Inode) -> Self {
        Self { nid: ino, ino, base: 0, level: 0, inode: Some(inode), pointers: vec![HOLE; DIRECT + 3] }
    }

    pub(crate) fn pointers(nid: u32, ino: u32, base: u64, level: u8) -> Self {
        Self { nid, ino, base, level, inode: None, pointers: vec![HOLE; POINTERS] }
    }

    /// Pages below pointer `slot` of this node: the first, and how many.
    pub(crate) fn pages_below(&self, slot: usize) -> (u64, u64) {
        let pointers = POINTERS as u64;
        if self.inode.is_none() {
            let span = pointers.pow(u32::from(self.level));
            return (self.base + slot as u64 * span, span);
        }
        match slot.checked_sub(DIRECT) {
            None => (slot as u64, 1),
            Some(0) => (DIRECT as u64, pointers),
            Some(1) => (DIRECT as u64 + pointers, pointers * pointers),
            Some(_) => (DIRECT as u64 + pointers + pointers * pointers, pointers * pointers * pointers),
        }
    }

    /// The level of the node that a pointer refers to; `None` when it refers to a page.
    pub(crate) fn child_level(&self, slot: usize) -> Option<u8> {
        match &self.inode {
            Some(_) => slot.checked_sub(DIRECT).map(|level| level as u8),
            None => self.level.checked_sub(1),
        }
    }

    pub(crate) fn encode(&self, version: u64) -> Box<Block> {
        let mut block = zeros();
        let bytes = &mut block[..];
        let first = if self.inode.is_some() { HEADER } else { 0 };
        if let Some(inode) = &self.inode {
            bytes[0] = inode.kind.code();
            put(bytes, 2, &inode.mode.to_le_bytes());
            for (at, number) in [(4, inode.uid), (8, inode.gid), (12, inode.links), (16, inode.parent)] {
                put(bytes, at, &number.to_le_bytes());
            }
            let long = [inode.size, inode.pages, inode.accessed, inode.modified, inode.changed];
            for (index, number) in long.into_iter().enumerate() {
                put(bytes, 24 + 8 * index, &number.to_le_bytes());
            }
        }
        for (to, pointer) in bytes[first..FOOTER].chunks_exact_mut(4).zip(&self.pointers) {
            to.copy_from_slice(&pointer.to_le_bytes());
        }
        put(bytes, FOOTER, &self.nid.to_le_bytes());
        put(bytes, FOOTER + 4, &self.ino.to_le_bytes());
        put(bytes, FOOTER + 8, &self.base.to_le_bytes());
        put(bytes, FOOTER + 16, &version.to_le_bytes());
        bytes[FOOTER + 24] = self.level;
        seal(bytes);
        block
    }

    /// Errors: not a node, or damaged.
    pub(crate) fn decode(bytes: &[u8], at: u32) -> Result<Self, FsError> {
        let damaged = FsError::Corrupt { what: "node", block: at };
        if !is_sealed(bytes) {
            return Err(damaged);
        }
        let (nid, ino) = (u32_at(bytes, FOOTER), u32_at(bytes, FOOTER + 4));
        let mut inode = None;
        if nid == ino {
            inode = Some(Inode {
                kind: Kind::from_code(bytes[0]).ok_or(damaged)?,
                mode: u16_at(bytes, 2),
                uid: u32_at(bytes, 4),
                gid: u32_at(bytes, 8),
                links: u32_at(bytes, 12),
                parent: u32_at(bytes, 16),
                size: u64_at(bytes, 24),
                pages: u64_at(bytes, 32),
                accessed: u64_at(bytes, 40),
                modified: u64_at(bytes, 48),
                changed: u64_at(bytes, 56),
            });
        }
        let first = if inode.is_some() { HEADER } else { 0 };
        let pointers = bytes[first..FOOTER].chunks_exact(4).map(|pointer| u32_at(pointer, 0)).collect();
        Ok(Self { nid, ino, base: u64_at(bytes, FOOTER + 8), level: bytes[FOOTER + 24], inode, pointers })
    }
}

/// The node of this number from the block at `at`.
///
/// Errors: not a node, another one, or damaged.
pub(crate) fn decode_as(nid: u32, bytes: &[u8], at: u32) -> Result<Node, FsError> {
    let node = Node::decode(bytes, at)?;
    if node.nid == nid { Ok(node) } else { Err(FsError::Corrupt { what: "node", block: at }) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_way_leads_to_each_page_and_no_two_share_their_end() {
        let pointers = POINTERS as u64;
        let direct = DIRECT as u64;
        let cases = [
            (0, 1, vec![0]),
            (direct - 1, 1, vec![direct - 1]),
            (direct, 2, vec![direct, 0]),
            (direct + pointers - 1, 2, vec![direct, pointers - 1]),
            (direct + pointers, 3, vec![direct + 1, 0, 0]),
            (direct + 2 * pointers + 1, 3, vec![direct + 1, 1, 1]),
            (direct + pointers + pointers * pointers, 4, vec![direct + 2, 0, 0, 0]),
            (FILE_BYTES_MAX / 4096 - 1, 4, vec![direct + 2, pointers - 1, pointers - 1, pointers - 1]),
        ];
        for (page, depth, slots) in cases {
            let path = Path::to(page).unwrap();
            assert_eq!(path.depth, depth);
            assert_eq!(path.slots[..depth].iter().map(|&slot| u64::from(slot)).collect::<Vec<_>>(), slots, "{page}");
        }
        assert_eq!(Path::to(FILE_BYTES_MAX / 4096), None);
    }

    #[test]
    fn the_pages_below_a_pointer_agree_with_the_way_down() {
        for page in [0, 970, 980, 1990, 1996, 1_000_000, 1_040_000, 500_000_000] {
            let path = Path::to(page).unwrap();
            let inode = Inode {
                kind: Kind::File,
                mode: 0,
                uid: 0,
                gid: 0,
                links: 1,
                size: 0,
                pages: 0,
                accessed: 0,
                modified: 0,
                changed: 0,
                parent: 0,
            };
            let mut node = Node::inode(1, inode);
            for step in 0..path.depth {
                let (first, count) = node.pages_below(path.slots[step].into());
                assert!((first..first + count).contains(&page), "{page} {path:?} {step}");
                match node.child_level(path.slots[step].into()) {
                    None => assert_eq!((first, count, step + 1), (page, 1, path.depth)),
                    Some(level) => {
                        assert_eq!(path.bases[step + 1], first);
                        node = Node::pointers(2, 1, first, level);
                    }
                }
            }
        }
    }

    #[test]
    fn a_node_is_read_as_it_was_written() {
        let mut node = Node::pointers(9, 3, 972, 0);
        node.pointers[5] = 77;
        let block = node.encode(4);
        assert_eq!(Node::decode(&block[..], 0), Ok(node));
        let mut torn = block;
        torn[2000] ^= 1;
        assert_eq!(Node::decode(&torn[..], 8), Err(FsError::Corrupt { what: "node", block: 8 }));
    }
}
