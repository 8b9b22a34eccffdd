//! A file system as a value: names and the bytes they lead to. The model that ours is compared with.

use crate::error::FsError;
use crate::fs::{FileSystem, ROOT};
use crate::node::Kind;
use flashyard_blk::Volume;
use std::collections::BTreeMap;
use std::rc::Rc;

/// Target of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TreeFile {
    /// A directory.
    Directory,
    /// A symbolic link and its target.
    Symlink(Vec<u8>),
    /// A file: which of [`Tree::contents`].
    File(u32),
}

/// A tree of names, and the volume below it. Two trees are equal when no program could tell them apart.
#[derive(Clone, Debug, Default)]
pub struct Tree {
    /// Every name but the root's, by its path from there.
    pub names: BTreeMap<Vec<u8>, TreeFile>,
    /// Contents of files by number. Files with several names have one number.
    pub contents: BTreeMap<u32, Rc<Vec<u8>>>,
    /// Blocks of the volume.
    pub blocks: u32,
}

impl PartialEq for Tree {
    fn eq(&self, other: &Self) -> bool {
        // Numbers of files differ, but equal ones must correspond.
        let mut pairs = BTreeMap::new();
        let mut back = BTreeMap::new();
        self.blocks == other.blocks
            && self.names.len() == other.names.len()
            && self.names.iter().zip(&other.names).all(|((path, mine), (theirs_path, theirs))| {
                path == theirs_path
                    && match (mine, theirs) {
                        (TreeFile::File(mine), TreeFile::File(theirs)) => {
                            *pairs.entry(*mine).or_insert(*theirs) == *theirs
                                && *back.entry(*theirs).or_insert(*mine) == *mine
                                && self.contents[mine] == other.contents[theirs]
                        }
                        _ => mine == theirs,
                    }
            })
    }
}

impl Tree {
    /// Tree of a mounted file system.
    ///
    /// Errors: those of reading it.
    pub fn of<D: Volume>(fs: &mut FileSystem<D>) -> Result<Self, FsError> {
        let mut tree = Self { blocks: fs.usage().blocks, ..Self::default() };
        let mut waiting = vec![(ROOT, Vec::new())];
        while let Some((directory, path)) = waiting.pop() {
            for entry in fs.list(directory)? {
                let path = join(&path, &entry.name);
                let size = fs.inode(entry.ino)?.size as usize;
                let file = match entry.kind {
                    Kind::Directory => {
                        waiting.push((entry.ino, path.clone()));
                        TreeFile::Directory
                    }
                    kind => {
                        let mut bytes = vec![0; size];
                        fs.read(entry.ino, 0, &mut bytes)?;
                        if kind == Kind::Symlink {
                            TreeFile::Symlink(bytes)
                        } else {
                            tree.contents.insert(entry.ino, Rc::new(bytes));
                            TreeFile::File(entry.ino)
                        }
                    }
                };
                tree.names.insert(path, file);
            }
        }
        Ok(tree)
    }

    /// The first difference to another tree, in words.
    pub fn difference(&self, other: &Self) -> String {
        if self.blocks != other.blocks {
            return format!("{} blocks instead of {}", other.blocks, self.blocks);
        }
        for (path, mine) in &self.names {
            let name = String::from_utf8_lossy(path);
            match (mine, other.names.get(path)) {
                (_, None) => return format!("{name} is missing"),
                (TreeFile::File(mine), Some(TreeFile::File(theirs))) => {
                    let (mine, theirs) = (&self.contents[mine], &other.contents[theirs]);
                    if mine.len() != theirs.len() {
                        return format!("{name} has {} bytes instead of {}", theirs.len(), mine.len());
                    }
                    if let Some(at) = mine.iter().zip(theirs.iter()).position(|(mine, theirs)| mine != theirs) {
                        return format!("{name} has {:#x} at byte {at} instead of {:#x}", theirs[at], mine[at]);
                    }
                }
                (mine, Some(theirs)) if mine != theirs => return format!("{name} is {theirs:?} instead of {mine:?}"),
                _ => {}
            }
        }
        match other.names.keys().find(|path| !self.names.contains_key(*path)) {
            Some(path) => format!("{} should not be there", String::from_utf8_lossy(path)),
            None => "names of one file are names of two".to_owned(),
        }
    }

    /// Paths of everything that `wanted` accepts.
    pub(crate) fn paths(&self, wanted: impl Fn(&TreeFile) -> bool) -> Vec<Vec<u8>> {
        self.names.iter().filter(|(_, file)| wanted(file)).map(|(path, _)| path.clone()).collect()
    }

    /// Whether a path is below another one, or the same.
    pub(crate) fn is_below(path: &[u8], above: &[u8]) -> bool {
        path.strip_prefix(above).is_some_and(|rest| rest.is_empty() || rest[0] == b'/')
    }

    /// Drops contents that no name leads to.
    pub(crate) fn forget_nameless(&mut self) {
        let named: Vec<u32> = self
            .names
            .values()
            .filter_map(|file| if let TreeFile::File(number) = file { Some(*number) } else { None })
            .collect();
        self.contents.retain(|number, _| named.contains(number));
    }
}

/// A name in a directory, as a path.
pub(crate) fn join(directory: &[u8], name: &[u8]) -> Vec<u8> {
    [directory, b"/", name].concat()
}
