//! The file system above the drive: where it keeps the load's pages, which data of the drive it no longer needs, and
//! how it shrinks.
//!
//! In place, a page stays where it was first written. As a log:
//! 1. Data is appended to a section at a time, the next free one by address.
//! 2. When sections are short, cleaning copies the live pages of the section with the fewest among the next
//!    [`SEARCH`] ones; or, threaded, the log fills the holes of that section.
//! 3. Overwritten or deleted data stays in the drive until the discard arrives, or its place is written again.
//!
//! Source: [P] sheet cvss §2 and §3.3; [X] F2FS for sections and threaded logging.

use flashyard_kernel::Rng;
use flashyard_units::Named;
use std::collections::VecDeque;
use std::str::FromStr;

/// No owner, and no place.
const NONE: u32 = u32::MAX;

/// Sections looked at for one to clean. Source: [X] the limit of F2FS.
const SEARCH: usize = 4096;

/// Free sections that are left to cleaning. [A]
const RESERVE: u32 = 3;

/// Where data goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placement {
    /// Where it was first written.
    InPlace,
    /// To the end of a log.
    Log,
}

impl Named for Placement {
    const ALL: &'static [Self] = &[Self::InPlace, Self::Log];

    fn name(self) -> &'static str {
        match self {
            Self::InPlace => "in-place",
            Self::Log => "log",
        }
    }
}

/// When the drive learns which data is no longer needed. Source: [P] sheet cvss §3.3.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Discards {
    /// At once.
    Immediate,
    /// This number of discards for each page written, the oldest first: 160 a second (8 every 50 ms, [X]) beside
    /// thousands of small writes.
    Limited(f64),
    /// While the drive is idle, which under load it never is.
    Idle,
}

/// Discards for each page written, at most: each page of a full drive once. [A]
const DISCARDS_MAX: f64 = 1e6;

/// A text that names no way of discards.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no {0:?}; give immediate, idle or limited(RATE), with 0 to 1000000 discards for each page written")]
pub struct UnknownDiscards(String);

impl FromStr for Discards {
    type Err = UnknownDiscards;

    /// Errors: an unknown name, a rate outside its range.
    fn from_str(text: &str) -> Result<Self, UnknownDiscards> {
        let rate = |text: &str| text.trim().parse().ok().filter(|rate| (0.0..=DISCARDS_MAX).contains(rate));
        let limited = || text.strip_prefix("limited(")?.strip_suffix(')').and_then(rate);
        match text {
            "immediate" => Ok(Self::Immediate),
            "idle" => Ok(Self::Idle),
            _ => limited().map(Self::Limited).ok_or_else(|| UnknownDiscards(text.to_owned())),
        }
    }
}

/// Action of a log when free sections are short.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cleaning {
    /// It copies live data together.
    Copying,
    /// It fills the holes between live data.
    Threaded,
}

impl Named for Cleaning {
    const ALL: &'static [Self] = &[Self::Copying, Self::Threaded];

    fn name(self) -> &'static str {
        match self {
            Self::Copying => "copying",
            Self::Threaded => "threaded",
        }
    }
}

/// Which free section a log takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reuse {
    /// The next one by address.
    NextByAddress,
    /// Any: the free space of an aged file system lies scattered. [A]
    Scattered,
}

/// Parameters of a file system.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FileSystemConfig {
    /// Where data goes.
    pub placement: Placement,
    /// When the drive hears of deletions.
    pub discards: Discards,
    /// How a log finds room.
    pub cleaning: Cleaning,
    /// Which free section a log takes.
    pub reuse: Reuse,
    /// Pages of a section, at least 1. [A] 32: several overwrites fall into one, and several into a superblock, as the
    /// published 2 MiB of blocks of 4 KiB do
    pub section_pages: u32,
}

/// A command to the drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Command {
    /// Write a page of the load there.
    Write { to: u32, page: u32 },
    /// Write a page there that cleaning moves.
    Clean { to: u32 },
    /// The data there is no longer needed.
    Discard(u32),
    /// Give the data of a place to another.
    Remap { to: u32, from: u32 },
}

/// There is no room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Full;

pub(crate) struct FileSystem {
    config: FileSystemConfig,
    /// The place of each page of the load.
    places: Vec<u32>,
    /// The page of the load at each place.
    owners: Vec<u32>,
    /// Live pages of each section.
    live_in: Vec<u32>,
    open: Vec<bool>,
    free: u32,
    live: u32,
    end: u32,
    /// Sections being written: by the load, by cleaning. With the next place to look at.
    logs: [Option<(u32, u32)>; 2],
    next_free: u32,
    next_dirty: usize,
    rng: Rng,
    late: VecDeque<u32>,
    queued: Vec<bool>,
    credit: f64,
    commands: Vec<Command>,
}

impl FileSystem {
    /// An empty one of `end` places for a load of `pages`.
    pub(super) fn new(config: FileSystemConfig, pages: u32, end: u32) -> Self {
        let sections = end / config.section_pages;
        let end = sections * config.section_pages;
        Self {
            config,
            places: vec![NONE; pages as usize],
            owners: vec![NONE; end as usize],
            live_in: vec![0; sections as usize],
            open: vec![false; sections as usize],
            free: sections,
            live: 0,
            end,
            logs: [None; 2],
            next_free: 0,
            next_dirty: 0,
            rng: Rng::named(u64::from(pages), "cvss.reuse"),
            late: VecDeque::new(),
            queued: vec![false; end as usize],
            credit: 0.0,
            commands: Vec::new(),
        }
    }

    /// Pages kept free for cleaning and logs.
    pub(crate) fn kept(config: &FileSystemConfig) -> u32 {
        if config.placement == Placement::Log { (RESERVE + 3) * config.section_pages } else { 0 }
    }

    /// Where a page of the load is, unless nowhere.
    #[inline]
    pub(super) fn place(&self, page: u32) -> Option<u32> {
        Some(self.places[page as usize]).filter(|&place| place != NONE)
    }

    /// Pages of the load that are stored.
    pub(super) fn live(&self) -> u32 {
        self.live
    }

    /// Places below which it keeps everything.
    pub(super) fn end(&self) -> u32 {
        self.end
    }

    /// Commands to the drive since the last time, in order.
    pub(super) fn take_commands(&mut self, into: &mut Vec<Command>) {
        into.clear();
        std::mem::swap(&mut self.commands, into);
    }

    /// Writes a page of the load.
    pub(super) fn write(&mut self, page: u32) -> Result<(), Full> {
        if self.config.placement == Placement::InPlace {
            if self.places[page as usize] == NONE {
                self.settle(page, page);
            }
            self.commands.push(Command::Write { to: page, page });
        } else {
            let to = self.next_place(0)?;
            // Cleaning may have moved it.
            let before = self.places[page as usize];
            if before != NONE {
                self.release(before);
            }
            self.settle(page, to);
            self.commands.push(Command::Write { to, page });
        }
        self.discard_some();
        Ok(())
    }

    /// Deletes a page of the load, if it is there.
    pub(super) fn delete(&mut self, page: u32) {
        let before = std::mem::replace(&mut self.places[page as usize], NONE);
        if before != NONE {
            self.release(before);
        }
    }

    /// Gives up the places from `end` on: live pages there are remapped to lower ones.
    ///
    /// Errors: when it does not fit below; nothing has changed then.
    pub(super) fn shrink(&mut self, end: u32) -> Result<(), Full> {
        let sections = end / self.config.section_pages;
        let end = sections * self.config.section_pages;
        if self.config.placement == Placement::InPlace {
            if self.owners[end as usize..].iter().any(|&owner| owner != NONE) {
                return Err(Full);
            }
        } else if self.live + Self::kept(&self.config) > end {
            return Err(Full);
        }
        for log in 0..self.logs.len() {
            if self.logs[log].is_some_and(|(section, _)| section >= sections) {
                self.close(log);
            }
        }
        let above = &self.live_in[sections as usize..];
        self.free -= above.iter().filter(|&&live| live == 0).count() as u32;
        self.live_in.truncate(sections as usize);
        self.open.truncate(sections as usize);
        let before = std::mem::replace(&mut self.end, end);
        for from in end..before {
            let page = self.owners[from as usize];
            if page == NONE {
                continue;
            }
            // There is room: it was checked before.
            let to = self.hole()?;
            self.live -= 1;
            self.settle(page, to);
            self.commands.push(Command::Remap { to, from });
        }
        self.owners.truncate(end as usize);
        Ok(())
    }

    /// The next free place for a remapped page: a hole wherever it is, so that shrinking copies nothing.
    fn hole(&mut self) -> Result<u32, Full> {
        if self.free > RESERVE {
            return self.next_place(1);
        }
        loop {
            if let Some(place) = self.advance(1) {
                return Ok(place);
            }
            let section = self.fewest_live().ok_or(Full)?;
            self.open_section(1, section);
        }
    }

    fn settle(&mut self, page: u32, place: u32) {
        self.places[page as usize] = place;
        self.owners[place as usize] = page;
        let section = (place / self.config.section_pages) as usize;
        if self.live_in[section] == 0 && !self.open[section] {
            self.free -= 1;
        }
        self.live_in[section] += 1;
        self.live += 1;
    }

    fn release(&mut self, place: u32) {
        self.live -= 1;
        self.vacate(place);
        match self.config.discards {
            Discards::Immediate => self.commands.push(Command::Discard(place)),
            Discards::Limited(_) if !self.queued[place as usize] => {
                self.queued[place as usize] = true;
                self.late.push_back(place);
            }
            Discards::Limited(_) | Discards::Idle => {}
        }
    }

    fn vacate(&mut self, place: u32) {
        self.owners[place as usize] = NONE;
        let section = (place / self.config.section_pages) as usize;
        self.live_in[section] -= 1;
        if self.live_in[section] == 0 && !self.open[section] {
            self.free += 1;
        }
    }

    /// Sends as many discards as the limit allows; places written again meanwhile need none.
    fn discard_some(&mut self) {
        let Discards::Limited(rate) = self.config.discards else { return };
        self.credit = (self.credit + rate).min(8.0);
        while self.credit >= 1.0
            && let Some(place) = self.late.pop_front()
        {
            self.queued[place as usize] = false;
            if self.owners.get(place as usize) == Some(&NONE) {
                self.commands.push(Command::Discard(place));
                self.credit -= 1.0;
            }
        }
    }

    /// The next place of a log.
    fn next_place(&mut self, log: usize) -> Result<u32, Full> {
        loop {
            if let Some(place) = self.advance(log) {
                return Ok(place);
            }
            let reserve = if log == 0 { RESERVE } else { 0 };
            if self.free > reserve {
                let section = self.next_free_section().ok_or(Full)?;
                self.open_section(log, section);
            } else if self.config.cleaning == Cleaning::Threaded {
                let section = self.fewest_live().ok_or(Full)?;
                self.open_section(log, section);
            } else if log == 0 {
                self.clean()?;
            } else {
                return Err(Full);
            }
        }
    }

    /// The next hole of a log's section; closes it when there is none.
    fn advance(&mut self, log: usize) -> Option<u32> {
        let (section, next) = self.logs[log]?;
        let end = (section + 1) * self.config.section_pages;
        let hole = (next..end).find(|&place| self.owners[place as usize] == NONE);
        match hole {
            Some(place) => self.logs[log] = Some((section, place + 1)),
            None => self.close(log),
        }
        hole
    }

    fn open_section(&mut self, log: usize, section: u32) {
        if self.live_in[section as usize] == 0 {
            self.free -= 1;
        }
        self.open[section as usize] = true;
        self.logs[log] = Some((section, section * self.config.section_pages));
    }

    fn close(&mut self, log: usize) {
        let Some((section, _)) = self.logs[log].take() else { return };
        self.open[section as usize] = false;
        if self.live_in[section as usize] == 0 {
            self.free += 1;
        }
    }

    /// The next free section by address from the last one or from anywhere, round the whole space.
    fn next_free_section(&mut self) -> Option<u32> {
        let sections = self.live_in.len() as u32;
        let ready = |section: &u32| self.live_in[*section as usize] == 0 && !self.open[*section as usize];
        let start = match self.config.reuse {
            Reuse::NextByAddress => self.next_free.min(sections),
            Reuse::Scattered => self.rng.below(u64::from(sections)) as u32,
        };
        let found = (start..sections).chain(0..start).find(ready)?;
        self.next_free = found + 1;
        Some(found)
    }

    /// The closed section with the fewest live pages among the next ones, if it has a hole.
    fn fewest_live(&mut self) -> Option<u32> {
        let sections = self.live_in.len();
        let look = sections.min(SEARCH);
        let candidates = (0..look).map(|step| (self.next_dirty + step) % sections);
        // Free ones are the reserve.
        let closed = candidates.filter(|&section| !self.open[section] && self.live_in[section] > 0);
        let least = closed.min_by_key(|&section| self.live_in[section])?;
        self.next_dirty = (self.next_dirty + look) % sections;
        (self.live_in[least] < self.config.section_pages).then_some(least as u32)
    }

    /// Copies the live pages of one section to the cleaning log.
    fn clean(&mut self) -> Result<(), Full> {
        let victim = self.fewest_live().ok_or(Full)?;
        let first = victim * self.config.section_pages;
        for from in first..first + self.config.section_pages {
            let page = self.owners[from as usize];
            if page == NONE {
                continue;
            }
            let to = self.next_place(1)?;
            self.release(from);
            self.settle(page, to);
            self.commands.push(Command::Clean { to });
        }
        Ok(())
    }

    /// Checks the invariants. For tests.
    #[cfg(test)]
    pub(super) fn check(&self) {
        let owned = self.owners.iter().filter(|&&owner| owner != NONE).count();
        assert_eq!(owned as u32, self.live, "owned and live pages differ");
        for (page, &place) in self.places.iter().enumerate().filter(|entry| *entry.1 != NONE) {
            assert!(place < self.end, "page {page} is above the end");
            assert_eq!(self.owners[place as usize], page as u32);
        }
        let free = self.live_in.iter().zip(&self.open).filter(|&(&live, &open)| live == 0 && !open).count();
        assert_eq!(free as u32, self.free, "free sections and their count differ");
        assert_eq!(self.live_in.iter().sum::<u32>(), self.live);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    // Named, because proptest's prelude has an `Rng` of its own.
    use flashyard_kernel::Rng;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    /// Contents of the drive: the page of the load at each place that is not discarded.
    fn obey(fs: &mut FileSystem, drive: &mut BTreeMap<u32, u32>) {
        let mut commands = Vec::new();
        fs.take_commands(&mut commands);
        for command in commands {
            match command {
                Command::Write { to, page } => drop(drive.insert(to, page)),
                // Cleaning names no page: the file system knows whose place it is now, unless it was moved on.
                Command::Clean { to } => drop(drive.insert(to, fs.owners[to as usize])),
                Command::Discard(place) => drop(drive.remove(&place)),
                Command::Remap { to, from } => {
                    let page = drive.remove(&from).expect("only what is there is remapped");
                    drive.insert(to, page);
                }
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(60))]
        #[test]
        fn every_live_page_is_found_where_it_lies_whatever_happened(
            seed: u64, threaded: bool, in_place: bool, discards in 0_u32..3,
        ) {
            let config = FileSystemConfig {
                placement: if in_place { Placement::InPlace } else { Placement::Log },
                discards: [Discards::Immediate, Discards::Limited(0.3), Discards::Idle][discards as usize],
                cleaning: if threaded { Cleaning::Threaded } else { Cleaning::Copying },
                reuse: Reuse::NextByAddress,
            section_pages: 8,
            };
            let mut rng = Rng::named(seed, "test");
            let mut fs = FileSystem::new(config, 150, 400);
            let mut drive = BTreeMap::new();
            for step in 0..4_000 {
                let page = rng.below(150) as u32;
                if rng.below(12) == 0 {
                    fs.delete(page);
                } else {
                    fs.write(page).expect("there is room");
                }
                obey(&mut fs, &mut drive);
                if step % 500 == 499 && fs.end() > 250 {
                    fs.shrink(fs.end() - 30).expect("there is room");
                    obey(&mut fs, &mut drive);
                    drive.retain(|&place, _| place < fs.end());
                }
                if step % 100 == 0 {
                    fs.check();
                }
            }
            for page in 0..150 {
                if let Some(place) = fs.place(page) {
                    prop_assert_eq!(drive.get(&place), Some(&page));
                }
            }
            if discards == 0 {
                prop_assert_eq!(drive.len() as u32, fs.live());
            }
        }
    }

    #[test]
    fn cleaning_of_a_nearly_full_file_system_ends() {
        for cleaning in [Cleaning::Copying, Cleaning::Threaded] {
            let config = FileSystemConfig {
                placement: Placement::Log,
                discards: Discards::Immediate,
                cleaning,
                reuse: Reuse::NextByAddress,
                section_pages: 8,
            };
            let mut rng = Rng::named(4, "test");
            let mut fs = FileSystem::new(config, 340, 400);
            for _ in 0..5_000 {
                fs.write(rng.below(340) as u32).expect("there is room");
                fs.take_commands(&mut Vec::new());
            }
            fs.check();
        }
    }

    #[test]
    fn a_shrink_that_does_not_fit_changes_nothing() {
        let config = FileSystemConfig {
            placement: Placement::Log,
            discards: Discards::Immediate,
            cleaning: Cleaning::Copying,
            reuse: Reuse::NextByAddress,
            section_pages: 8,
        };
        let mut fs = FileSystem::new(config, 200, 400);
        (0..200).for_each(|page| fs.write(page).expect("there is room"));
        assert_eq!((fs.shrink(208), fs.end()), (Err(Full), 400));
        assert_eq!((fs.shrink(260), fs.end()), (Ok(()), 256));
        fs.check();
    }
}
