//! Checking that everything fits together.

use crate::checkpoint::Checkpoint;
use crate::device::{BLOCK_BYTES, blocks_of};
use crate::error::FsError;
use crate::fs::{FileSystem, ROOT};
use crate::holes::is_given_back;
use crate::layout::Layout;
use crate::node::{HOLE, Inode, Kind, WHOLE_NODE};
use flashyard_blk::{Volume, VolumeError};
use std::collections::{BTreeMap, BTreeSet};

/// Problems reported in words; the others are counted.
const TOLD_MAX: usize = 100;

/// Findings of a check.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FsckReport {
    /// The first problems, in words.
    pub problems: Vec<String>,
    /// All of them.
    pub problem_count: u64,
    /// Directories.
    pub directories: u64,
    /// Files.
    pub files: u64,
    /// Symbolic links.
    pub symlinks: u64,
    /// Blocks in use, nodes and pages.
    pub blocks: u64,
}

impl FsckReport {
    /// Whether there was no problem.
    pub fn is_clean(&self) -> bool {
        self.problem_count == 0
    }

    fn tell(&mut self, problem: impl FnOnce() -> String) {
        self.problem_count += 1;
        if self.problems.len() < TOLD_MAX {
            self.problems.push(problem());
        }
    }
}

/// State of the walk over all nodes.
struct Seen {
    /// Blocks that something points to, by segment.
    blocks: Vec<Vec<bool>>,
    inodes: BTreeMap<u32, Inode>,
    /// Nodes of pointers, and those that something points to.
    nodes: BTreeSet<u32>,
    children: BTreeSet<u32>,
    /// Pages below each inode.
    pages: BTreeMap<u32, u64>,
}

impl<D: Volume> FileSystem<D> {
    /// Checks every structure after a checkpoint. Reads all nodes and directories, no data.
    ///
    /// Errors: the device fails. Damage is in the report.
    pub fn check(&mut self) -> Result<FsckReport, FsError> {
        self.sync()?;
        let mut report = FsckReport::default();
        let mut seen = Seen {
            blocks: vec![vec![false; self.layout.segment_blocks as usize]; self.layout.segments as usize],
            inodes: BTreeMap::new(),
            nodes: BTreeSet::new(),
            children: BTreeSet::new(),
            pages: BTreeMap::new(),
        };
        for nid in 1..self.addresses.entries() {
            if self.address(nid)? != HOLE {
                self.check_node(nid, &mut seen, &mut report)?;
            }
        }
        for nid in seen.nodes.symmetric_difference(&seen.children) {
            report.tell(|| format!("node {nid} is pointed to by nobody, or does not exist"));
        }
        self.check_counts(&seen, &mut report)?;
        self.check_tree(&seen, &mut report)?;
        self.check_device(&mut report)?;
        report.blocks = self.segments.valid();
        Ok(report)
    }

    fn check_node(&mut self, nid: u32, seen: &mut Seen, report: &mut FsckReport) -> Result<(), FsError> {
        let at = self.address(nid)?;
        self.claim(at, nid, WHOLE_NODE, seen, report)?;
        let node = match self.node(nid) {
            Ok(node) => node.clone(),
            Err(FsError::Device(error)) if !matches!(error, VolumeError::Unread { .. }) => return Err(error.into()),
            Err(error) => {
                report.tell(|| format!("node {nid}: {error}"));
                return Ok(());
            }
        };
        match node.inode {
            Some(inode) => drop(seen.inodes.insert(nid, inode)),
            None => drop(seen.nodes.insert(nid)),
        }
        let size = self.inode(node.ino).map(|inode| inode.size).unwrap_or(0);
        for (slot, &pointer) in node.pointers.iter().enumerate().filter(|&(_, &pointer)| pointer != HOLE) {
            let (first, _) = node.pages_below(slot);
            if first >= size.div_ceil(BLOCK_BYTES as u64) {
                report.tell(|| format!("inode {}: page {first} is beyond its end", node.ino));
            }
            let Some(level) = node.child_level(slot) else {
                *seen.pages.entry(node.ino).or_default() += 1;
                self.claim(pointer, nid, slot as u16, seen, report)?;
                continue;
            };
            if !seen.children.insert(pointer) {
                report.tell(|| format!("node {pointer} is pointed to twice"));
            }
            let belongs = (node.ino, first, level, None);
            // An unreadable one is reported when its turn comes.
            if self.node(pointer).is_ok_and(|child| (child.ino, child.base, child.level, child.inode) != belongs) {
                report.tell(|| format!("node {pointer} does not belong where node {nid} has it"));
            }
        }
        Ok(())
    }

    /// Notes that a block is pointed to.
    fn claim(
        &mut self,
        block: u32,
        nid: u32,
        slot: u16,
        seen: &mut Seen,
        report: &mut FsckReport,
    ) -> Result<(), FsError> {
        let Some(place) = self.layout.place(block).filter(|_| block < self.blocks) else {
            report.tell(|| format!("node {nid} points to block {block}, beyond the segments"));
            return Ok(());
        };
        if !self.segments.is_valid(place) {
            report.tell(|| format!("block {block} of node {nid} is not valid"));
        }
        if std::mem::replace(&mut seen.blocks[place.0 as usize][place.1 as usize], true) {
            report.tell(|| format!("block {block} is pointed to twice"));
        }
        if self.owner(block)? != (nid, slot) {
            report.tell(|| format!("block {block} does not name node {nid} as its owner"));
        }
        Ok(())
    }

    fn check_counts(&mut self, seen: &Seen, report: &mut FsckReport) -> Result<(), FsError> {
        for (segment, blocks) in seen.blocks.iter().enumerate() {
            let segment = segment as u32;
            let claimed = blocks.iter().filter(|&&claimed| claimed).count() as u32;
            let valid = self.segments.valid_count(segment);
            let mut given = 0;
            for within in self.segments.valid_in(segment).collect::<Vec<_>>() {
                given += u32::from(is_given_back(self, self.layout.segment_first(segment) + within)?);
            }
            let counted = self.segments.reserved_in(segment);
            if given != counted {
                report.tell(|| format!("segment {segment} has given {counted} blocks back, of which {given} say so"));
            }
            let valid = valid - given;
            if claimed != valid {
                report.tell(|| format!("segment {segment} has {valid} valid blocks, of which {claimed} are in use"));
            }
            let free = self.segments.is_free(segment);
            if free && (valid + given > 0 || self.segments.is_open(segment)) {
                report.tell(|| format!("segment {segment} is free and in use"));
            }
        }
        let nodes = (seen.inodes.len() + seen.nodes.len()) as u32;
        if nodes != self.nodes.used {
            report.tell(|| format!("{nodes} nodes, and {} counted", self.nodes.used));
        }
        if self.unwritten != 0 {
            report.tell(|| format!("{} blocks are set aside for nothing", self.unwritten));
        }
        for (ino, inode) in &seen.inodes {
            let pages = seen.pages.get(ino).copied().unwrap_or(0);
            if pages != inode.pages {
                report.tell(|| format!("inode {ino} has {pages} pages, and {} counted", inode.pages));
            }
        }
        Ok(())
    }

    fn check_tree(&mut self, seen: &Seen, report: &mut FsckReport) -> Result<(), FsError> {
        let mut links = BTreeMap::<u32, u32>::new();
        let mut waiting = vec![ROOT];
        while let Some(directory) = waiting.pop() {
            *links.entry(directory).or_default() += 2;
            let entries = match self.list(directory) {
                Ok(entries) => entries,
                Err(error) => {
                    report.tell(|| format!("directory {directory}: {error}"));
                    continue;
                }
            };
            for entry in entries {
                let name = String::from_utf8_lossy(&entry.name).into_owned();
                let Some(inode) = seen.inodes.get(&entry.ino).filter(|inode| inode.kind == entry.kind) else {
                    report.tell(|| format!("{name:?} in directory {directory} names inode {}", entry.ino));
                    continue;
                };
                if entry.kind != Kind::Directory {
                    *links.entry(entry.ino).or_default() += 1;
                } else if links.contains_key(&entry.ino) || inode.parent != directory {
                    report.tell(|| format!("directory {} is not where it says", entry.ino));
                } else {
                    *links.entry(directory).or_default() += 1;
                    waiting.push(entry.ino);
                }
            }
        }
        for (ino, inode) in &seen.inodes {
            match inode.kind {
                Kind::Directory => report.directories += 1,
                Kind::File => report.files += 1,
                Kind::Symlink => report.symlinks += 1,
            }
            let found = links.get(ino).copied().unwrap_or(0);
            if found == 0 && self.orphans.contains(ino) && !self.held.is_held(*ino) {
                report.tell(|| format!("inode {ino} has no name, and could not be deleted"));
            } else if found != inode.links || (found == 0 && !self.orphans.contains(ino)) {
                report.tell(|| format!("inode {ino} has {found} names, and {} counted", inode.links));
            }
        }
        Ok(())
    }

    /// Checks that the device holds what memory holds.
    fn check_device(&mut self, report: &mut FsckReport) -> Result<(), FsError> {
        let (layout, blocks, agree) = Layout::read_superblock(&mut self.device)?;
        if layout != self.layout || blocks != self.blocks || !agree {
            report.tell(|| "the superblocks differ from the volume".to_owned());
        }
        let checkpoint = Checkpoint::read(&mut self.device, &self.layout)?;
        if checkpoint.version != self.version || checkpoint.blocks != self.blocks {
            report.tell(|| format!("checkpoint {} is not the last one, {}", checkpoint.version, self.version));
        }
        if self.segments.limit() == self.layout.segments_in(self.blocks) && self.blocks > blocks_of(&self.device) {
            report.tell(|| "the volume is larger than its device".to_owned());
        }
        Ok(())
    }
}
