//! Wear leveling beside a plain model of the rules, on a small drive: nothing of the layer is in it.
//!
//! The printed rules leave a case open: of several least erased blocks, which gives its data away? The public simulator takes the one at the
//! top of a heap ([C] FTLSim-WL, `get_ecmin`), and the layer does as well. It is not a detail: blocks that were closed first have lost most of
//! their data, so the data that one of them gives is reclaimed soon, and its new place is leveled again.

mod counting;
mod skewed;

use flashyard_ftl::{Ftl, FtlConfig, WearLeveling};
use skewed::{DRIVE_WRITES, LOGICAL, PAGES, drive, leveled};
use std::collections::VecDeque;

/// The spare tenth, and beside it the blocks that garbage collection keeps erased.
const KEPT: usize = 3;
const BLOCKS: usize = LOGICAL / PAGES * 10 / 9 + KEPT;
const NOWHERE: usize = usize::MAX;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Ties {
    Heap,
    LastClosed,
    FirstClosed,
}

/// OBP(4,8) after §3.3, on the drive of §3.1.
struct Plain {
    ties: Ties,
    place: Vec<usize>,
    owner: Vec<usize>,
    valid: Vec<usize>,
    erases: Vec<u32>,
    leveled_at: Vec<u64>,
    /// By reclaim.
    erased_total: u64,
    free: VecDeque<usize>,
    /// Full blocks by valid pages, in the order in which they came to have that number.
    bins: Vec<VecDeque<usize>>,
    /// Full blocks in the order in which they were closed.
    closed: Vec<usize>,
    /// All blocks as a heap by erases, made when leveling begins.
    heap: Vec<usize>,
    open: usize,
    next: usize,
    moved: u64,
    leveled: u64,
}

impl Plain {
    fn new(ties: Ties) -> Self {
        Self {
            ties,
            place: vec![NOWHERE; LOGICAL],
            owner: vec![NOWHERE; BLOCKS * PAGES],
            valid: vec![0; BLOCKS],
            erases: vec![0; BLOCKS],
            leveled_at: vec![0; BLOCKS],
            erased_total: 0,
            free: (1..BLOCKS).collect(),
            bins: vec![VecDeque::new(); PAGES + 1],
            closed: Vec::new(),
            heap: Vec::new(),
            open: 0,
            next: 0,
            moved: 0,
            leveled: 0,
        }
    }

    fn write(&mut self, page: usize, level: bool) {
        if level && self.heap.is_empty() {
            let blocks = [self.open]
                .into_iter()
                .chain(self.free.iter().rev().copied())
                .chain(self.bins.iter().flatten().copied());
            for block in blocks.collect::<Vec<_>>() {
                let mut place = self.heap.len();
                self.heap.push(block);
                while place > 0 && self.erases[self.heap[(place - 1) / 2]] > self.erases[block] {
                    self.heap.swap(place, (place - 1) / 2);
                    place = (place - 1) / 2;
                }
            }
        }
        self.append(page);
        // The layer reclaims when it needs the next block, this one when it has taken it.
        while self.free.len() < KEPT - 1 {
            let bin = self.bins.iter_mut().find(|bin| !bin.is_empty()).expect("some block is full");
            let victim = bin.pop_front().expect("it is not empty");
            self.closed.retain(|&block| block != victim);
            for page in self.take(victim) {
                self.append(page);
                self.moved += 1;
            }
            self.erase(victim);
            self.erased_total += 1;
            if level {
                self.sink(victim);
                self.level(victim);
            }
        }
    }

    /// Lets a block that has one more erase sink to where it belongs.
    fn sink(&mut self, block: usize) {
        let mut place = self.heap.iter().position(|&entry| entry == block).expect("every block is in it");
        loop {
            let children = (2 * place + 1..2 * place + 3).filter(|&child| child < self.heap.len());
            // The first of equals.
            let Some(child) = children.min_by_key(|&child| self.erases[self.heap[child]]) else { return };
            if self.erases[self.heap[child]] >= self.erases[block] {
                return;
            }
            self.heap.swap(place, child);
            place = child;
        }
    }

    /// The full block of fewest erases that is found near the top of the heap, as far down as it has to be looked for.
    fn youngest_by_heap(&self) -> Option<usize> {
        let levels =
            (0..).map(|level| (1 << level) - 1..(2 << level) - 1).take_while(|level| level.end <= self.heap.len());
        let mut levels = levels;
        levels.find_map(|level: std::ops::Range<usize>| {
            let full = level.map(|place| self.heap[place]).filter(|block| self.closed.contains(block));
            full.min_by_key(|&block| self.erases[block])
        })
    }

    fn level(&mut self, old: usize) {
        let least = self.closed.iter().map(|&block| self.erases[block]).min().expect("some block is full");
        let mut equal = self.closed.iter().copied().filter(|&block| self.erases[block] == least);
        let young = match self.ties {
            Ties::Heap => self.youngest_by_heap(),
            Ties::LastClosed => equal.next_back(),
            Ties::FirstClosed => equal.next(),
        };
        let Some(young) = young else { return };
        let least = self.erases[young];
        if self.erases[old] <= least + 4 || self.erased_total - self.leveled_at[old] <= 8 {
            return;
        }
        self.free.retain(|&block| block != old);
        self.closed.retain(|&block| block != young);
        self.bins[self.valid[young]].retain(|&block| block != young);
        for (place, page) in self.take(young).into_iter().enumerate() {
            self.put(page, old * PAGES + place);
            self.leveled += 1;
        }
        self.close(old);
        self.erase(young);
        self.sink(young);
        self.leveled_at[old] = self.erased_total;
    }

    /// The valid pages of a block that is in no list.
    fn take(&self, block: usize) -> Vec<usize> {
        let owners = &self.owner[block * PAGES..(block + 1) * PAGES];
        owners.iter().copied().filter(|&page| page != NOWHERE).collect()
    }

    fn append(&mut self, page: usize) {
        if self.next == PAGES {
            self.close(self.open);
            self.open = self.free.pop_front().expect("reclaim keeps some");
            self.next = 0;
        }
        self.put(page, self.open * PAGES + self.next);
        self.next += 1;
    }

    fn put(&mut self, page: usize, place: usize) {
        let before = std::mem::replace(&mut self.place[page], place);
        if before != NOWHERE {
            self.owner[before] = NOWHERE;
            let block = before / PAGES;
            self.valid[block] -= 1;
            let bin = &mut self.bins[self.valid[block] + 1];
            if let Some(at) = bin.iter().position(|&entry| entry == block) {
                bin.remove(at);
                self.bins[self.valid[block]].push_back(block);
            }
        }
        self.owner[place] = page;
        self.valid[place / PAGES] += 1;
    }

    fn close(&mut self, block: usize) {
        self.bins[self.valid[block]].push_back(block);
        self.closed.push(block);
    }

    fn erase(&mut self, block: usize) {
        self.erases[block] += 1;
        self.free.push_back(block);
    }
}

/// Slots moved by garbage collection and by leveling for each of the host, and the most erases of a block by the mean.
fn plain(ties: Ties) -> [f64; 3] {
    let mut model = Plain::new(ties);
    let mut before = (0, 0);
    let mut begun = false;
    drive(|page, level| {
        if level && !std::mem::replace(&mut begun, true) {
            before = (model.moved, model.leveled);
        }
        model.write(page, level);
    });
    outcome(model.moved - before.0, model.leveled - before.1, &model.erases)
}

/// The layer after the same writes under OBP.
fn layer(threshold: u32, protection: u64) -> (Ftl, [f64; 3]) {
    let wear_leveling = WearLeveling::OldBlockProtection { threshold, protection };
    let (ftl, done) = leveled(BLOCKS, KEPT - 1, FtlConfig { wear_leveling, ..FtlConfig::default() });
    let outcome = outcome(done.moved_slots, done.leveled_slots, &ftl.erase_counts().collect::<Vec<_>>());
    (ftl, outcome)
}

fn outcome(moved: u64, leveled: u64, erases: &[u32]) -> [f64; 3] {
    let host = (DRIVE_WRITES * LOGICAL) as f64;
    let most = erases.iter().copied().max().map_or(0.0, f64::from);
    let mean = erases.iter().copied().map(f64::from).sum::<f64>() / erases.len() as f64;
    [moved as f64 / host, leveled as f64 / host, most / mean]
}

#[test]
fn old_block_protection_moves_what_a_plain_model_of_its_rules_moves() {
    let ((_, layer), plain) = (layer(4, 8), plain(Ties::Heap));
    // Source: [A] the two do not reclaim at the same moment, and on so few blocks their courses part: by 7 % as written.
    let near = |one: f64, other: f64| (one / other - 1.0).abs() < 0.1;
    assert!(layer.iter().zip(plain).all(|(&one, other)| near(one, other)), "{layer:?} against {plain:?}");
}

#[test]
fn the_tie_between_equally_worn_blocks_decides_how_much_is_levelled() {
    let (last, first) = (plain(Ties::LastClosed), plain(Ties::FirstClosed));
    assert!(first[1] > 1.4 * last[1] && first[2] > 1.4 * last[2], "{first:?} against {last:?}");
}

#[test]
fn the_oldest_superblock_is_levelled_again_soon_after_its_protection() {
    // As many erases as the study's 1,000 are of its drive of 1,145 blocks.
    let (ftl, _) = layer(5, 250);
    let oldest = ftl.oldest_reentries().expect("it is old block protection");
    assert!(oldest.all > 10 && 2 * oldest.soon > oldest.all, "{oldest:?}");
}
