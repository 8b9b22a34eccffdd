//! Drives whose write cache is volatile: what a power cut may take.
//!
//! Data that was acknowledged and not flushed may be there after a cut or not, each slot by itself. A slot so has
//! any of the versions since the last one that a flush has made sure of, and one of them for good.
//!
//! A flush makes sure of writes that were acknowledged before it was issued, once it has completed: versions that were
//! acknowledged before such a write was issued are gone. Source: NVM Express NVM Command Set, Flush command, and
//! volatile write cache.

use super::moment::Moment;
use super::operation::OperationId;
use std::collections::BTreeMap;

/// How far the operation has come that makes a version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// It is not answered yet.
    UnderWay,
    /// The host has given it up, and it may still happen.
    Open,
    /// Acknowledged by the event of this number; 0 for what was there before.
    Ended(u64),
    /// Given up, and over by the event of this number, whether it has happened or not.
    Over(u64),
}

impl Stage {
    /// Whether nothing more comes of the operation.
    pub(super) const fn is_over(self) -> bool {
        matches!(self, Self::Ended(_) | Self::Over(_))
    }
}

/// A version that a slot may have after a power cut.
#[derive(Clone, Copy, Debug)]
pub(super) struct Version {
    pub(super) stamp: u64,
    pub(super) writer: Option<OperationId>,
    pub(super) issued: Moment,
    pub(super) stage: Stage,
}

/// Versions of the slots of one drive that a power cut may bring back.
#[derive(Clone, Debug, Default)]
pub(super) struct Cache {
    /// Slots with more than one version, or with operations that are not over.
    slots: BTreeMap<u64, Vec<Version>>,
    /// Stamps that reads begun before the last cut may return, by slot, and the number of that cut.
    before: BTreeMap<u64, Vec<u64>>,
    cut: u64,
}

impl Version {
    /// Something that is there, and that no cut takes.
    fn sure(stamp: u64) -> Self {
        Self { stamp, writer: None, issued: Moment::default(), stage: Stage::Ended(0) }
    }
}

impl Cache {
    /// A write or trim of a slot is issued, which may hold the stamps of `held` now.
    pub(super) fn begin(&mut self, slot: u64, held: impl FnOnce() -> Vec<u64>, version: Version) {
        let versions = self.slots.entry(slot).or_insert_with(|| held().into_iter().map(Version::sure).collect());
        versions.push(version);
    }

    /// The operation on a slot that was issued as event `issued` has come further.
    pub(super) fn end(&mut self, slot: u64, issued: u64, stage: Stage) {
        let versions = self.slots.get_mut(&slot).into_iter().flatten();
        versions.filter(|version| version.issued.order == issued).for_each(|version| version.stage = stage);
    }

    /// A flush that was issued as event `issued` has completed.
    pub(super) fn flushed(&mut self, issued: u64) {
        self.slots.retain(|_, versions| {
            let sure = versions.iter().filter(|version| matches!(version.stage, Stage::Ended(end) if end < issued));
            // A version that had ended before the last of them began is older than it.
            let since = sure.map(|version| version.issued.order).max().unwrap_or(0);
            versions.retain(|version| !matches!(version.stage, Stage::Ended(end) | Stage::Over(end) if end < since));
            versions.len() > 1
        });
    }

    /// The power fails: for each slot that may change, its versions.
    pub(super) fn take(&mut self, cut: u64) -> BTreeMap<u64, Vec<Version>> {
        self.cut = cut;
        self.before.clear();
        std::mem::take(&mut self.slots)
    }

    /// After a cut: reads of a slot that began before it may still return `stamps`, if there are `reads` of that kind.
    /// Operations that are not over go on.
    pub(super) fn settle(&mut self, slot: u64, versions: Vec<Version>, stamps: Vec<u64>, reads: bool) {
        if reads {
            self.before.insert(slot, stamps);
        }
        if versions.iter().any(|version| !version.stage.is_over()) {
            let sure = |version: Version| if version.stage.is_over() { Version::sure(version.stamp) } else { version };
            self.slots.insert(slot, versions.into_iter().map(sure).collect());
        }
    }

    /// Whether a read that was issued as event `issued` may have got the stamp before the last cut.
    pub(super) fn was_read_before(&self, slot: u64, issued: u64, stamp: u64) -> bool {
        issued < self.cut && self.before.get(&slot).is_some_and(|stamps| stamps.contains(&stamp))
    }
}
