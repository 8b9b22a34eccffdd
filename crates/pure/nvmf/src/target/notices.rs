//! News about reservations that wait until the host of a controller reads them.

use flashyard_nvme::reservation::{Notice, NoticePage};
use std::collections::{BTreeMap, VecDeque};
use zerocopy::FromZeros;

/// News that wait for a host; the oldest go where there are more. \[A\] As many as the page can count.
const NOTICES_MAX: usize = 255;

/// News about reservations for the host of a controller.
#[derive(Debug, Default)]
pub(super) struct Notices {
    /// Number, news and namespace.
    waiting: VecDeque<(u64, Notice, u32)>,
    count: u64,
    /// By namespace: news that are not told, as the feature has them.
    pub(super) masks: BTreeMap<u32, u32>,
}

impl Notices {
    /// Whether it was noted.
    pub(super) fn note(&mut self, notice: Notice, nsid: u32) -> bool {
        if self.masks.get(&nsid).is_some_and(|mask| mask & notice.mask_bit() != 0) {
            return false;
        }
        self.count = self.count.checked_add(1).unwrap_or(1);
        if self.waiting.len() == NOTICES_MAX {
            self.waiting.pop_front();
        }
        self.waiting.push_back((self.count, notice, nsid));
        true
    }

    /// The oldest.
    pub(super) fn page(&self) -> NoticePage {
        let mut page = NoticePage::new_zeroed();
        if let Some((count, notice, nsid)) = self.waiting.front() {
            page.count.set(*count);
            page.notice = *notice as u8;
            page.waiting = (self.waiting.len() - 1).min(255) as u8;
            page.nsid.set(*nsid);
        }
        page
    }

    /// The oldest was read. Whether there are more.
    pub(super) fn was_read(&mut self) -> bool {
        self.waiting.pop_front();
        !self.waiting.is_empty()
    }
}
