//! One run: random operations on a file system and on the model of it.

use super::tree::{Tree, TreeFile, join};
use crate::error::FsError;
use crate::fs::{Cleaning, FileSystem, ROOT};
use crate::names::NewInode;
use crate::node::Kind;
use crate::resizing::Method;
use flashyard_blk::Volume;
use flashyard_kernel::Rng;
use flashyard_units::{SimSpan, SimTime};
use std::rc::Rc;

/// Names in one directory.
const NAMES: u64 = 7;
/// Blocks that an operation may find missing before it must not say that there is no space.
const SLACK_BLOCKS: u64 = 60;

/// A file system's model, and the states that a mount may find after a loss of power.
pub(super) struct Run {
    pub(super) rng: Rng,
    pub(super) tree: Tree,
    /// Trees since the last durable checkpoint, the one of that checkpoint first; the last one is `tree`.
    pub(super) since: Vec<Tree>,
    next_file: u32,
    clock: u64,
    /// The size that the change of size under way leads to.
    size_wanted: Option<u32>,
    /// Inodes that are open.
    held: Vec<u32>,
    pub(super) shrinks: u64,
    pub(super) refusals: u64,
}

/// Change of the model, made once the file system has done the operation.
type Effect = Box<dyn FnOnce(&mut Tree, &mut u32)>;

impl Run {
    pub(super) fn new(seed: u64, tree: Tree) -> Self {
        let rng = Rng::named(seed, "cvfs.workload");
        Self {
            rng,
            since: vec![tree.clone()],
            tree,
            next_file: 1,
            clock: 0,
            size_wanted: None,
            held: Vec::new(),
            shrinks: 0,
            refusals: 0,
        }
    }

    /// Does one operation, here and there.
    ///
    /// Errors: the file system fails, or refuses what it should not.
    pub(super) fn step<D: Volume>(&mut self, fs: &mut FileSystem<D>) -> Result<(), FsError> {
        self.clock += 1;
        let before = fs.counters().checkpoints;
        let done = self.operate(fs);
        let after = fs.counters().checkpoints;
        match done {
            Ok(effect) => {
                effect(&mut self.tree, &mut self.next_file);
                self.since.push(self.tree.clone());
            }
            Err(FsError::NoSpace) => {
                self.refusals += 1;
            }
            Err(error) => {
                // A change of size counts from a moment that only the device has seen.
                let wanted = self.size_wanted.map(|blocks| Tree { blocks, ..self.tree.clone() });
                self.since.extend(wanted);
                return Err(error);
            }
        }
        if after > before {
            // The checkpoint came before the effect of the operation, at the earliest.
            let keep = self.since.len().saturating_sub(2);
            self.since.drain(..keep);
        }
        if !fs.is_dirty() {
            let keep = self.since.len() - 1;
            self.since.drain(..keep);
        }
        Ok(())
    }

    /// The tree was found as number `index` of those it may be.
    pub(super) fn found(&mut self, index: usize) {
        self.tree = self.since.swap_remove(index);
        self.tree.forget_nameless();
        self.since = vec![self.tree.clone()];
        self.size_wanted = None;
        self.held.clear();
    }

    fn pick(&mut self, paths: Vec<Vec<u8>>) -> Option<Vec<u8>> {
        let index = self.rng.below(paths.len().max(1) as u64) as usize;
        paths.into_iter().nth(index)
    }

    fn directory(&mut self) -> Vec<u8> {
        let mut paths = self.tree.paths(|file| *file == TreeFile::Directory);
        paths.push(Vec::new());
        self.pick(paths).unwrap_or_default()
    }

    fn file(&mut self) -> Option<Vec<u8>> {
        let paths = self.tree.paths(|file| matches!(file, TreeFile::File(_)));
        self.pick(paths)
    }

    fn name(&mut self) -> Vec<u8> {
        format!("n{}", self.rng.below(NAMES)).into_bytes()
    }

    fn operate<D: Volume>(&mut self, fs: &mut FileSystem<D>) -> Result<Effect, FsError> {
        match self.rng.below(100) {
            0..15 => self.create(fs),
            15..45 => self.write(fs),
            45..49 => self.truncate(fs),
            49..55 => self.remove(fs),
            55..62 => self.rename(fs),
            62..65 => self.link(fs),
            65..74 => fs.sync().map(|()| nothing()),
            74..80 => {
                // Discards may go wrong, too.
                let now = SimTime::ZERO + SimSpan::from_ms(60 * self.clock);
                fs.tick(now, false).map(|()| nothing())
            }
            80 => fs.clean().map(|_| nothing()),
            81 => self.held.pop().map_or(Ok(()), |ino| fs.release(ino)).map(|()| nothing()),
            82..88 => self.shrink(fs, 1),
            88..94 => self.shrink(fs, u32::MAX),
            _ => self.grow(fs),
        }
    }

    fn create<D: Volume>(&mut self, fs: &mut FileSystem<D>) -> Result<Effect, FsError> {
        let (directory, name) = (self.directory(), self.name());
        let path = join(&directory, &name);
        let parent = find(fs, &directory)?;
        let what = self.rng.below(6);
        let kind = [Kind::Directory, Kind::Symlink].get(what as usize).copied().unwrap_or(Kind::File);
        let target = format!("to {}", self.clock).into_bytes();
        let new = NewInode::of(kind, 0o644);
        let made = match kind {
            Kind::Symlink => fs.symlink(parent, &name, &target, new, self.clock),
            _ => fs.create(parent, &name, new, self.clock),
        };
        match made {
            Err(FsError::Exists) if self.tree.names.contains_key(&path) => return Ok(nothing()),
            made => self.allow(fs, made.map(drop))?,
        }
        Ok(Box::new(move |tree, next| {
            let file = match kind {
                Kind::Directory => TreeFile::Directory,
                Kind::Symlink => TreeFile::Symlink(target),
                Kind::File => {
                    *next += 1;
                    tree.contents.insert(*next, Rc::new(Vec::new()));
                    TreeFile::File(*next)
                }
            };
            tree.names.insert(path, file);
        }))
    }

    fn write<D: Volume>(&mut self, fs: &mut FileSystem<D>) -> Result<Effect, FsError> {
        let Some(path) = self.file() else { return Ok(nothing()) };
        let ino = find(fs, &path)?;
        let size = fs.inode(ino)?.size;
        let offset = match self.rng.below(100) {
            0..12 => size,
            // The first page below a node of pointers. Rare: such a file is four megabytes to compare.
            12 => (crate::node::DIRECT as u64) * 4096 - 2000,
            13..25 => self.rng.below(size + 1),
            25..37 => self.rng.below(20_000),
            _ => self.rng.below(5) * 4096,
        };
        let len = 1 + self.rng.below(6 * 4096) as usize;
        let stamp = (self.clock % 251) as u8 + 1;
        let mut bytes: Vec<u8> = (0..len).map(|index| stamp.wrapping_add((index / 512) as u8)).collect();
        let written = fs.write(ino, offset, &bytes, self.clock);
        bytes.truncate(self.allow(fs, written)?);
        Ok(Box::new(move |tree, _| {
            let Some(contents) = contents_of(tree, &path) else { return };
            let end = offset as usize + bytes.len();
            let held = Rc::make_mut(contents);
            held.resize(held.len().max(end), 0);
            held[offset as usize..end].copy_from_slice(&bytes);
        }))
    }

    fn truncate<D: Volume>(&mut self, fs: &mut FileSystem<D>) -> Result<Effect, FsError> {
        let Some(path) = self.file() else { return Ok(nothing()) };
        let ino = find(fs, &path)?;
        let size = if self.rng.below(3) == 0 { 0 } else { self.rng.below(30_000) };
        let cut = fs.truncate(ino, size, self.clock);
        self.allow(fs, cut)?;
        Ok(Box::new(move |tree, _| {
            if let Some(contents) = contents_of(tree, &path) {
                Rc::make_mut(contents).resize(size as usize, 0);
            }
        }))
    }

    fn remove<D: Volume>(&mut self, fs: &mut FileSystem<D>) -> Result<Effect, FsError> {
        let Some(path) = self.pick(self.tree.paths(|_| true)) else { return Ok(nothing()) };
        let (parent, name) = split(fs, &path)?;
        let removed = match self.tree.names[&path] {
            TreeFile::Directory => match fs.remove_directory(parent, &name, self.clock) {
                Err(FsError::NotEmpty) if self.has_names(&path) => return Ok(nothing()),
                removed => removed,
            },
            _ if self.rng.below(3) == 0 => {
                // Deleted while it is open.
                let ino = fs.lookup(parent, &name)?;
                fs.open(ino)?;
                self.held.push(ino);
                fs.unlink(parent, &name, self.clock)
            }
            _ => fs.unlink(parent, &name, self.clock),
        };
        self.allow(fs, removed)?;
        Ok(Box::new(move |tree, _| {
            tree.names.remove(&path);
            tree.forget_nameless();
        }))
    }

    fn has_names(&self, directory: &[u8]) -> bool {
        self.tree.names.keys().any(|path| path != directory && Tree::is_below(path, directory))
    }

    fn rename<D: Volume>(&mut self, fs: &mut FileSystem<D>) -> Result<Effect, FsError> {
        let Some(from) = self.pick(self.tree.paths(|_| true)) else { return Ok(nothing()) };
        let (directory, name) = (self.directory(), self.name());
        let to = join(&directory, &name);
        let (parent, old_name) = split(fs, &from)?;
        let new_parent = find(fs, &directory)?;
        let moving = self.tree.names[&from].clone();
        let target = self.tree.names.get(&to).cloned();
        let both = (&moving, &target);
        let refused = match both {
            _ if from == to => false,
            (TreeFile::Directory, _) if Tree::is_below(&to, &from) => true,
            (TreeFile::Directory, Some(TreeFile::Directory)) => self.has_names(&to),
            (TreeFile::Directory, Some(_)) | (_, Some(TreeFile::Directory)) => true,
            _ => false,
        };
        let renamed = fs.rename((parent, &old_name), (new_parent, &name), true, self.clock);
        if refused {
            return match renamed {
                Ok(()) => Err(FsError::Invalid("a rename that must be refused was not")),
                Err(FsError::Device(error)) => Err(error.into()),
                Err(_) => Ok(nothing()),
            };
        }
        self.allow(fs, renamed)?;
        let same = target.as_ref() == Some(&moving) && matches!(moving, TreeFile::File(_));
        Ok(Box::new(move |tree, _| {
            if from == to || same {
                // Two names of one file stay as they are.
                return;
            }
            let moved: Vec<Vec<u8>> = tree.names.keys().filter(|path| Tree::is_below(path, &from)).cloned().collect();
            for path in moved {
                if let Some(file) = tree.names.remove(&path) {
                    tree.names.insert([&to[..], &path[from.len()..]].concat(), file);
                }
            }
            tree.forget_nameless();
        }))
    }

    fn link<D: Volume>(&mut self, fs: &mut FileSystem<D>) -> Result<Effect, FsError> {
        let Some(path) = self.file() else { return Ok(nothing()) };
        let (directory, name) = (self.directory(), self.name());
        let to = join(&directory, &name);
        let (ino, parent) = (find(fs, &path)?, find(fs, &directory)?);
        match fs.link(ino, parent, &name, self.clock) {
            Err(FsError::Exists) if self.tree.names.contains_key(&to) => return Ok(nothing()),
            linked => self.allow(fs, linked)?,
        }
        Ok(Box::new(move |tree, _| {
            if let Some(file) = tree.names.get(&path).cloned() {
                tree.names.insert(to, file);
            }
        }))
    }

    fn method(&mut self) -> Method {
        // Remap, which has most to lose, half of the time.
        [Method::Remap, Method::Remap, Method::Relocate, Method::Holes][self.rng.below(4) as usize]
    }

    /// A size to shrink to, from a segment less to the least one, and beyond.
    fn smaller<D: Volume>(&mut self, fs: &FileSystem<D>) -> u32 {
        let usage = fs.usage();
        let segments = usage.blocks.saturating_sub(usage.blocks_min) / usage.segment_blocks;
        usage.blocks - usage.segment_blocks * (1 + self.rng.below(u64::from(segments) + 2) as u32)
    }

    /// Shrinks: in one go, or to be continued with other operations in between.
    fn shrink<D: Volume>(&mut self, fs: &mut FileSystem<D>, steps: u32) -> Result<Effect, FsError> {
        let blocks = self.smaller(fs);
        let method = self.method();
        match fs.shrink_begin(blocks, method) {
            Ok(()) => self.size_wanted = (method != Method::Holes).then_some(blocks),
            Err(FsError::Busy) => {}
            Err(FsError::NoSpace | FsError::Invalid(_)) => return Ok(nothing()),
            Err(error) => return Err(error),
        }
        for _ in 0..steps {
            match fs.shrink_step(6) {
                Ok(Some(shrunk)) => {
                    self.shrinks += 1;
                    self.size_wanted = None;
                    return Ok(Box::new(move |tree, _| tree.blocks = shrunk.blocks));
                }
                Ok(None) => {}
                Err(FsError::NoSpace) => {
                    self.size_wanted = None;
                    break;
                }
                Err(error) => return Err(error),
            }
        }
        Ok(nothing())
    }

    fn grow<D: Volume>(&mut self, fs: &mut FileSystem<D>) -> Result<Effect, FsError> {
        let usage = fs.usage();
        let room = ((fs.device().info().limits.blocks as u32) - usage.blocks) / usage.segment_blocks;
        let blocks = usage.blocks + usage.segment_blocks * room.min(1 + self.rng.below(20) as u32);
        let wanted = self.size_wanted.replace(blocks);
        let grown = fs.grow(blocks);
        if !matches!(grown, Err(FsError::Device(_))) {
            self.size_wanted = wanted;
        }
        match grown {
            Ok(blocks) => Ok(Box::new(move |tree, _| tree.blocks = blocks)),
            Err(FsError::Invalid(_) | FsError::Busy) => Ok(nothing()),
            Err(error) => Err(error),
        }
    }

    /// Lets "no space" pass where there is little.
    fn allow<D: Volume, T>(&mut self, fs: &FileSystem<D>, done: Result<T, FsError>) -> Result<T, FsError> {
        let usage = fs.usage();
        if matches!(done, Err(FsError::NoSpace)) && usage.used + SLACK_BLOCKS < usage.capacity {
            return Err(FsError::Invalid("no space, although there is"));
        }
        done
    }
}

fn nothing() -> Effect {
    Box::new(|_, _| {})
}

fn contents_of<'a>(tree: &'a mut Tree, path: &[u8]) -> Option<&'a mut Rc<Vec<u8>>> {
    let TreeFile::File(number) = tree.names.get(path)? else { return None };
    tree.contents.get_mut(number)
}

/// The inode at a path.
fn find<D: Volume>(fs: &mut FileSystem<D>, path: &[u8]) -> Result<u32, FsError> {
    path.split(|&byte| byte == b'/').skip(1).try_fold(ROOT, |directory, name| fs.lookup(directory, name))
}

/// The directory that a path is in, and the name there.
fn split<D: Volume>(fs: &mut FileSystem<D>, path: &[u8]) -> Result<(u32, Vec<u8>), FsError> {
    let at = path.iter().rposition(|&byte| byte == b'/').unwrap_or(0);
    Ok((find(fs, &path[..at])?, path[at + 1..].to_vec()))
}

/// Cleaning rule that a seed stands for.
pub(super) fn cleaning(seed: u64) -> Cleaning {
    if seed.is_multiple_of(2) { Cleaning::Greedy } else { Cleaning::CostBenefit }
}
