//! Write intents of a mirror: a region is dirty in the record on every leg before a block of it is changed, and what legs have missed is there before
//! a change is answered. So after a loss of power the copies that may differ are known, and one of them is chosen.
//!
//! A record goes to all legs that answer, in rounds: one at a time, and the next one takes in all that has come up meanwhile. Each leg has two places
//! for it, and the newer one is never written over.

use super::record::{HEADER_BYTES, Record, Region, blocks_of};
use crate::overlap::Range;
use flashyard_blk::VolumeInfo;
use flashyard_service::Failure;
use flashyard_units::{SimSpan, SimTime};

/// Failures in a row at a leg before the mirror goes on without it, and the wait after the first, which doubles. Source: \[A\] about a second.
const TRIES: u8 = 10;
const RETRY: SimSpan = SimSpan::from_ms(1);
/// Places for records at the end of a leg.
const PLACES: u64 = 2;
/// A start without legs that should be there adds this to the epoch: these may have later records than those that are, and are still older.
const WITHOUT: u64 = 1 << 32;

/// The record of a mirror.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IntentRoom {
    /// The mirror's number, by which legs know that they belong together. It counts when none has a record. Where legs of several mirrors meet, those count
    /// that agree with it in the upper half.
    pub id: u64,
    /// Regions at most.
    pub regions: u32,
    /// Time after which regions that were not changed count as clean again.
    pub clean_after: SimSpan,
    /// Whether legs without any record hold the same; otherwise all are copied from the first one.
    pub alike: bool,
    /// Legs that are known to hold nothing, a bit each, whether they answer or not. Where no leg has a record, the first of the others counts.
    pub blank: u8,
}

impl IntentRoom {
    /// Regions whose record is one block of 4 KiB, clean after 5 s. Source: \[A\]; Linux md cleans its bitmap every 5 s as well.
    pub const fn usual(id: u64, alike: bool) -> Self {
        Self { id, regions: 2016, clean_after: SimSpan::from_secs(5), alike, blank: 0 }
    }

    /// Blocks of the volume on legs of this size, and of a region; nothing where the record has no room.
    pub(super) fn layout(&self, leg: &VolumeInfo) -> Option<(u64, u64)> {
        let bytes = u64::from(leg.block_bytes);
        let record = PLACES * blocks_of(u64::from(self.regions), bytes);
        let blocks = leg.limits.blocks.checked_sub(record).filter(|&blocks| blocks > 0)?;
        (bytes >= HEADER_BYTES as u64 && self.regions > 0).then(|| (blocks, blocks.div_ceil(self.regions.into())))
    }
}

/// Something that a leg is to do for the record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Errand {
    /// A place is read when the mirror starts.
    Find { leg: u8, place: u8 },
    /// The record of the round is written.
    Write { leg: u8 },
    /// Changes of regions that are to count as clean are made durable.
    Flush { leg: u8 },
}

impl Errand {
    /// The leg that does it.
    pub(super) const fn leg(self) -> u8 {
        let (Self::Find { leg, .. } | Self::Write { leg } | Self::Flush { leg }) = self;
        leg
    }
}

/// A record on its way to the legs, a bit each.
#[derive(Clone, Debug)]
struct Round {
    record: Record,
    /// The last of all wishes that it fulfils.
    covers: u64,
    under_way: u8,
    done: u8,
}

/// Flushes of all legs.
#[derive(Clone, Copy, Debug)]
struct Flush {
    under_way: u8,
    failed: bool,
}

/// Records that legs have when the mirror starts.
#[derive(Clone, Debug, Default)]
struct Finding {
    /// By leg and place.
    found: Vec<[Option<(u8, Record)>; PLACES as usize]>,
    /// Places that were asked, and that have answered, a bit each.
    asked: u16,
    answered: u16,
}

/// The record of a mirror, and all that waits for it.
#[derive(Clone, Debug)]
pub(super) struct Intent {
    room: IntentRoom,
    block_bytes: usize,
    /// Blocks of a record.
    record_blocks: u32,
    /// As it should be on the legs.
    record: Record,
    finding: Option<Finding>,
    /// By region: the flush that was the last one begun when it was changed, and the wish that made it dirty.
    changed: Vec<u64>,
    dirtied: Vec<u64>,
    /// Wishes that are to be on the legs before something goes on, and those of them that are.
    wanted: u64,
    kept: u64,
    /// Whether the record has changed in a way that nothing waits for.
    has_news: bool,
    round: Option<Round>,
    /// By leg: the place of its last record.
    places: Vec<u8>,
    failures: Vec<u8>,
    pause: Option<SimTime>,
    flush: Option<Flush>,
    flushes: u64,
    clean_at: Option<SimTime>,
    /// Whether there will be something to clean, whose time is not set yet.
    is_to_clean: bool,
    /// Whether what there is to clean is not to wait.
    is_urgent: bool,
    /// By region: legs with old copies, as the legs have it.
    kept_stale: Vec<u8>,
    /// Answers that wait for a wish, with the blocks that were changed.
    held: Vec<(u64, u32, Range, Result<(), Failure>)>,
}

impl Intent {
    /// The record of a mirror of so many legs of this size; nothing where they have no room for it.
    pub(super) fn new(room: IntentRoom, legs: u8, leg: &VolumeInfo) -> Option<Self> {
        let (blocks, region_blocks) = room.layout(leg)?;
        let regions = blocks.div_ceil(region_blocks) as usize;
        let record_blocks = blocks_of(u64::from(room.regions), leg.block_bytes.into()) as u32;
        let record = Record {
            id: room.id,
            epoch: 0,
            base: 0,
            blocks,
            region_blocks,
            out: 0,
            regions: vec![Region::default(); regions],
        };
        Some(Self {
            room,
            block_bytes: leg.block_bytes as usize,
            record_blocks,
            record,
            finding: Some(Finding { found: vec![[None, None]; legs.into()], ..Finding::default() }),
            changed: vec![0; regions],
            dirtied: vec![0; regions],
            wanted: 0,
            kept: 0,
            has_news: false,
            round: None,
            places: vec![0; legs.into()],
            failures: vec![0; legs.into()],
            pause: None,
            flush: None,
            flushes: 0,
            clean_at: None,
            is_to_clean: false,
            is_urgent: false,
            kept_stale: vec![0; regions],
            held: Vec::new(),
        })
    }

    /// Blocks of the volume.
    pub(super) fn blocks(&self) -> u64 {
        self.record.blocks
    }

    /// Whether records are still being looked for.
    pub(super) fn is_finding(&self) -> bool {
        self.finding.is_some()
    }

    /// Whether all that something waits for is on the legs.
    pub(super) fn is_kept(&self) -> bool {
        self.kept >= self.wanted
    }

    /// When it is to be asked again.
    pub(super) fn wake_at(&self) -> Option<SimTime> {
        // A flush under way ends by itself.
        self.pause.or(self.clean_at.filter(|_| self.flush.is_none()))
    }

    /// The blocks of a leg in which its next record goes, or those of a place that is read.
    pub(super) fn range_of(&self, errand: Errand) -> Range {
        let place = match errand {
            Errand::Find { place, .. } => place,
            Errand::Write { leg } => self.places[usize::from(leg)] ^ 1,
            Errand::Flush { .. } => return Range::new(0, 0),
        };
        Range::new(self.record.blocks + u64::from(place) * u64::from(self.record_blocks), self.record_blocks)
    }

    /// Appends the record of the round as a leg gets it.
    pub(super) fn bytes(&self, leg: u8, to: &mut Vec<u8>) {
        let record = self.round.as_ref().map_or(&self.record, |round| &round.record);
        record.encode(leg, self.record_blocks as usize * self.block_bytes, to);
    }

    fn regions(&self, range: Range) -> std::ops::Range<usize> {
        let of = |block: u64| (block / self.record.region_blocks) as usize;
        of(range.first)..of(range.end - 1) + 1
    }

    /// Blocks of a region.
    fn range_of_region(&self, region: usize) -> Range {
        let first = region as u64 * self.record.region_blocks;
        Range { first, end: (first + self.record.region_blocks).min(self.record.blocks) }
    }

    /// Whether blocks may be changed: their regions are dirty on all legs.
    pub(super) fn may_change(&self, range: Range) -> bool {
        self.regions(range).all(|region| self.record.regions[region].dirty && self.dirtied[region] <= self.kept)
    }

    /// Blocks are to be changed soon.
    pub(super) fn intend(&mut self, now: SimTime, range: Range) {
        let wish = self.wanted + 1;
        for region in self.regions(range) {
            if !self.record.regions[region].dirty {
                self.record.regions[region].dirty = true;
                self.dirtied[region] = wish;
                self.wanted = wish;
            }
        }
        self.clean_at.get_or_insert(now + self.room.clean_after);
    }

    /// Legs whose copies of all blocks of the region of a block count by the record.
    pub(super) fn whole(&self, block: u64, alive: u8) -> u8 {
        alive & !self.record.regions[(block / self.record.region_blocks) as usize].stale
    }

    /// The regions of a range, each with all of its blocks.
    pub(super) fn parts(&self, range: Range) -> impl Iterator<Item = Range> {
        self.regions(range).map(|region| self.range_of_region(region))
    }

    /// Whether the others have a copy of everything, and their records say so.
    pub(super) fn can_miss(&self, leg: u8, alive: u8) -> bool {
        let others = alive & !(1 << leg);
        let regions = self.record.regions.iter().zip(&self.kept_stale);
        regions.map(|(region, kept)| others & !region.stale & !kept).all(|legs| legs > 0)
    }

    /// Copies were made that the record should know of soon.
    pub(super) fn has_copies(&mut self) {
        self.is_urgent = true;
    }

    /// Blocks were changed.
    pub(super) fn touch(&mut self, now: SimTime, range: Range) {
        for region in self.regions(range) {
            self.changed[region] = self.flushes;
        }
        self.clean_at.get_or_insert(now + self.room.clean_after);
    }

    /// Legs have old copies of blocks from now on.
    pub(super) fn make_stale(&mut self, range: Range, legs: u8) {
        for region in self.regions(range) {
            let stale = &mut self.record.regions[region].stale;
            if legs & !*stale > 0 {
                *stale |= legs;
                self.wanted += 1;
            }
        }
    }

    /// A leg answers no more.
    pub(super) fn lose(&mut self, leg: u8) {
        self.record.out |= 1 << leg;
        self.is_urgent = true;
        self.wanted += 1;
    }

    /// Another volume has taken the place of a leg.
    pub(super) fn replaced(&mut self, leg: u8) {
        self.record.out &= !(1 << leg);
        self.places[usize::from(leg)] = 0;
        self.failures[usize::from(leg)] = 0;
        self.make_stale(Range { first: 0, end: self.record.blocks }, 1 << leg);
        self.wanted += 1;
        self.is_to_clean = true;
    }

    /// A mirror has one more leg, the last.
    pub(super) fn attach(&mut self) {
        self.places.push(0);
        self.failures.push(0);
    }

    /// Answers now, or when the record has all that came before.
    pub(super) fn answer(
        &mut self,
        id: u32,
        range: Range,
        result: Result<(), Failure>,
    ) -> Option<(u32, Result<(), Failure>)> {
        if self.is_kept() {
            return Some((id, result));
        }
        self.held.push((self.wanted, id, range, result));
        None
    }

    /// Whether a loss of power could still undo a change of these blocks that has ended.
    pub(super) fn is_unsure(&self, range: Range) -> bool {
        self.held.iter().any(|(_, _, changed, _)| changed.meets(&range))
    }

    /// Answers that wait no more.
    pub(super) fn answers(&mut self) -> impl Iterator<Item = (u32, Result<(), Failure>)> + use<> {
        let kept = self.kept;
        let ready: Vec<_> = self.held.extract_if(.., |&mut (wish, ..)| wish <= kept).collect();
        ready.into_iter().map(|(_, id, _, result)| (id, result))
    }

    /// Nothing answers any more: what waits has failed.
    pub(super) fn give_up(&mut self) {
        (self.kept, self.round) = (self.wanted, None);
        self.held.iter_mut().for_each(|(.., result)| *result = Err(Failure::Gone));
    }

    /// The errands that are to begin now; `alive` are the legs that answer.
    pub(super) fn errands(&mut self, now: SimTime, alive: u8) -> Vec<Errand> {
        self.pause = self.pause.filter(|&until| until > now);
        if self.pause.is_some() {
            return Vec::new();
        }
        if self.finding.is_some() {
            return self.places_to_read(alive);
        }
        if std::mem::take(&mut self.is_to_clean) {
            self.clean_at.get_or_insert(now + self.room.clean_after);
        }
        if std::mem::take(&mut self.is_urgent) {
            self.clean_at = Some(now);
        }
        let mut errands = Vec::new();
        if self.round.is_none() && (self.wanted > self.kept || self.has_news) {
            self.record.epoch += 1;
            self.has_news = false;
            let (record, covers) = (self.record.clone(), self.wanted);
            self.round = Some(Round { record, covers, under_way: 0, done: 0 });
        }
        if let Some(round) = &mut self.round {
            let to = alive & !round.under_way & !round.done;
            round.under_way |= to;
            errands.extend(numbers(to).map(|leg| Errand::Write { leg }));
        }
        if self.clean_at.is_some_and(|at| at <= now) && self.flush.is_none() {
            self.clean_at = None;
            if self.record.regions.iter().any(|region| region.dirty || region.stale & alive > 0) {
                self.flushes += 1;
                self.flush = Some(Flush { under_way: alive, failed: false });
                errands.extend(numbers(alive).map(|leg| Errand::Flush { leg }));
            }
        }
        errands
    }

    fn places_to_read(&mut self, alive: u8) -> Vec<Errand> {
        let Some(finding) = &mut self.finding else { return Vec::new() };
        let all = numbers(alive).flat_map(|leg| [(leg, 0), (leg, 1)]);
        let mut errands = Vec::new();
        for (leg, place) in all {
            let bit = place_bit(leg, place);
            if finding.asked & bit == 0 {
                finding.asked |= bit;
                errands.push(Errand::Find { leg, place });
            }
        }
        errands
    }

    /// The bytes of a place.
    pub(super) fn found(&mut self, leg: u8, place: u8, bytes: &[u8]) {
        if let Some(finding) = &mut self.finding {
            finding.found[usize::from(leg)][usize::from(place)] = Record::decode(bytes);
        }
    }

    /// An errand has ended. Returns whether its leg has failed for too long.
    pub(super) fn ended(&mut self, now: SimTime, errand: Errand, result: Result<(), Failure>) -> bool {
        let leg = errand.leg();
        let bit = 1 << leg;
        match errand {
            Errand::Find { place, .. } => {
                if let Some(finding) = &mut self.finding {
                    if result.is_ok() {
                        finding.answered |= place_bit(leg, place);
                    } else {
                        finding.asked &= !place_bit(leg, place);
                    }
                }
            }
            Errand::Write { .. } => {
                if let Some(round) = &mut self.round {
                    round.under_way &= !bit;
                    if result.is_ok() {
                        round.done |= bit;
                        self.places[usize::from(leg)] ^= 1;
                    }
                }
            }
            Errand::Flush { .. } => {
                if let Some(flush) = &mut self.flush {
                    flush.under_way &= !bit;
                    // A leg that is lost is left out by the same record at the latest.
                    flush.failed |= result.is_err_and(|failure| failure != Failure::Gone);
                }
                return false;
            }
        }
        let failures = &mut self.failures[usize::from(leg)];
        match result {
            Ok(()) => {
                *failures = 0;
                return false;
            }
            Err(Failure::Gone) => return false,
            Err(_) => {}
        }
        *failures += 1;
        self.pause = Some(now + RETRY * (1 << (*failures - 1).min(TRIES)));
        *failures > TRIES
    }

    /// Ends a round that all legs have which answer. Returns whether one has ended.
    pub(super) fn end_round(&mut self, alive: u8) -> bool {
        let is_over = |round: &mut Round| round.under_way & alive == 0 && alive & !round.done == 0;
        let Some(round) = self.round.take_if(is_over) else { return false };
        self.kept = round.covers;
        self.record.base = round.record.epoch;
        self.kept_stale = round.record.regions.iter().map(|region| region.stale).collect();
        true
    }

    /// Ends flushes of all legs: regions that were not changed since are clean. `is_changing` tells whether anything of a range is, `is_wanted` whether
    /// anything is to be soon, and `stale` which legs have an old copy of a block of it.
    pub(super) fn end_flush(
        &mut self,
        now: SimTime,
        alive: u8,
        is_changing: impl Fn(Range) -> bool,
        is_wanted: impl Fn(Range) -> bool,
        stale: impl Fn(Range) -> u8,
    ) {
        let Some(flush) = self.flush.take_if(|flush| flush.under_way & alive == 0) else { return };
        let (mut is_left, mut is_urgent) = (flush.failed, false);
        for region in 0..self.record.regions.len() {
            let Region { stale: old, dirty } = self.record.regions[region];
            if !dirty && old & alive == 0 {
                continue;
            }
            let range = self.range_of_region(region);
            if flush.failed || self.changed[region] >= self.flushes || is_changing(range) {
                is_left = true;
                is_urgent |= alive & !old == 0;
                continue;
            }
            let clean = Region { stale: stale(range), dirty: is_wanted(range) };
            is_left |= clean.stale > 0 || clean.dirty;
            self.has_news |= clean != self.record.regions[region];
            self.record.regions[region] = clean;
        }
        if is_left {
            let pause = if is_urgent { RETRY } else { self.room.clean_after };
            let at = now + pause;
            self.clean_at = Some(self.clean_at.map_or(at, |earlier| earlier.min(at)));
        }
    }

    /// Once all places were read: chooses the record that counts. Returns the legs with old copies of the blocks of each region, or nothing as long as
    /// places are to be read.
    ///
    /// Errors: the legs belong to several mirrors, or are not in their order.
    pub(super) fn decide(&mut self, now: SimTime, alive: u8) -> Result<Option<Vec<(Range, u8)>>, Failure> {
        let missing = |finding: &Finding| {
            numbers(alive)
                .flat_map(|leg| [(leg, 0), (leg, 1)])
                .any(|(leg, at)| finding.answered & place_bit(leg, at) == 0)
        };
        let Some(finding) = self.finding.take_if(|finding| !missing(finding)) else { return Ok(None) };
        let mut newest: Vec<Option<Record>> = Vec::new();
        for (leg, places) in finding.found.into_iter().enumerate() {
            let epoch = |at: usize| places[at].as_ref().map(|(_, record)| record.epoch);
            let place = usize::from(epoch(1) > epoch(0));
            self.places[leg] = place as u8;
            let [first, second] = places;
            let found = if place == 0 { first } else { second };
            let Record { blocks, region_blocks, ref regions, .. } = self.record;
            let fits = |(number, found): &(u8, Record)| {
                usize::from(*number) == leg
                    && (found.blocks, found.region_blocks, found.regions.len())
                        == (blocks, region_blocks, regions.len())
            };
            if alive >> leg & 1 == 1 && found.as_ref().is_some_and(|found| !fits(found)) {
                return Err(Failure::Failed);
            }
            newest.push(found.map(|(_, record)| record).filter(|_| alive >> leg & 1 == 1));
        }
        self.choose(alive, &newest)?;
        self.wanted += 1;
        self.clean_at = Some(now + self.room.clean_after);
        let regions = self.record.regions.iter().enumerate();
        Ok(Some(regions.map(|(number, region)| (self.range_of_region(number), region.stale)).collect()))
    }

    /// Makes the record that the mirror begins with from the newest ones of its legs.
    fn choose(&mut self, alive: u8, newest: &[Option<Record>]) -> Result<(), Failure> {
        let best_of =
            |id: u64| newest.iter().flatten().filter(|record| record.id == id).max_by_key(|record| record.epoch);
        // Others may be there that came from elsewhere: the record of the mirror says that they have nothing yet.
        let knows = |record: &&Record| {
            let old = record.regions.iter().fold(u8::MAX, |legs, region| legs & region.stale) | record.out;
            legs_where(newest, |other| other.id != record.id) & !old == 0
        };
        let mut ids: Vec<u64> = newest.iter().flatten().map(|record| record.id).collect();
        ids.sort_unstable();
        ids.dedup();
        if ids.is_empty() {
            // A leg that does not answer may be the one that has everything.
            let blank = self.room.blank & all(newest.len());
            if alive | blank != all(newest.len()) || alive == 0 {
                return Err(Failure::Failed);
            }
            // The first leg counts where none has a record, and one that holds nothing only where all do.
            let filled = if alive & !blank > 0 { alive & !blank } else { alive };
            let others = if self.room.alike { 0 } else { alive & !(filled & filled.wrapping_neg()) };
            self.record.regions.iter_mut().for_each(|region| region.stale = others);
            self.record.out = !alive & all(newest.len());
            return Ok(());
        }
        let is_ours = |record: &&Record| record.id >> 32 == self.room.id >> 32;
        let bests = || ids.iter().filter_map(|&id| best_of(id));
        let only = |mut records: Vec<Record>| records.pop().filter(|_| records.is_empty());
        let all_of = |is: &dyn Fn(&&Record) -> bool| bests().filter(is).cloned().collect();
        let best = only(all_of(&|_| true)).or_else(|| only(all_of(&is_ours))).or_else(|| only(all_of(&knows)));
        let Some(best) = best else { return Err(Failure::Failed) };
        // As long as no round has ended, a leg may have no record yet.
        let epoch_of = |found: &Option<Record>| match found {
            Some(record) => (record.id == best.id).then_some(record.epoch),
            None => Some(0),
        };
        let is_up_to_date = |leg: &u8| epoch_of(&newest[usize::from(*leg)]).is_some_and(|epoch| epoch >= best.base);
        let members = numbers(alive & !best.out).filter(is_up_to_date).fold(0, |legs, leg| legs | 1 << leg);
        let is_complete = members | best.out | !all(newest.len()) == u8::MAX;
        let epoch = if is_complete { best.epoch } else { best.epoch / WITHOUT * WITHOUT + WITHOUT };
        let base = numbers(members).filter_map(|leg| epoch_of(&newest[usize::from(leg)])).min().unwrap_or(0);
        self.record = Record { epoch, base, out: !alive & all(newest.len()), ..best.clone() };
        for region in &mut self.record.regions {
            region.stale |= alive & !members;
            let whole = alive & !region.stale;
            if region.dirty && whole > 0 {
                region.stale |= whole & (whole - 1);
            }
        }
        Ok(())
    }
}

const fn place_bit(leg: u8, place: u8) -> u16 {
    1 << (2 * leg + place)
}

/// Bits of so many legs.
const fn all(legs: usize) -> u8 {
    ((1_u16 << legs) - 1) as u8
}

/// The numbers of legs.
pub(super) fn numbers(legs: u8) -> impl Iterator<Item = u8> {
    (0..8).filter(move |leg| legs >> leg & 1 == 1)
}

fn legs_where(newest: &[Option<Record>], is: impl Fn(&Record) -> bool) -> u8 {
    let bit = |(leg, record): (usize, &Option<Record>)| u8::from(record.as_ref().is_some_and(&is)) << leg;
    newest.iter().enumerate().map(bit).fold(0, |legs, bit| legs | bit)
}
