//! Translation pages on their way from flash, and the commands that wait for them.

use std::collections::VecDeque;

/// Translation pages on their way from flash. They are few: at most one for each command under way.
#[derive(Default)]
pub(crate) struct Loads {
    loads: Vec<Load>,
    /// Queues without a page: their memory is used again.
    spare: Vec<VecDeque<u32>>,
}

struct Load {
    page: u32,
    waiters: VecDeque<u32>,
}

impl Loads {
    /// Whether `page` is being read from flash.
    #[inline]
    pub(crate) fn is_loading(&self, page: u32) -> bool {
        self.loads.iter().any(|load| load.page == page)
    }

    /// Lets command `index` wait for `page` if that is on its way; returns whether it is.
    #[inline]
    pub(crate) fn wait(&mut self, page: u32, index: u32) -> bool {
        let load = self.loads.iter_mut().find(|load| load.page == page);
        load.map(|load| load.waiters.push_back(index)).is_some()
    }

    /// `page` is read from flash for command `index`.
    pub(crate) fn begin(&mut self, page: u32, index: u32) {
        let mut waiters = self.spare.pop().unwrap_or_default();
        waiters.push_back(index);
        self.loads.push(Load { page, waiters });
    }

    /// `page` has come: the commands that waited for it, in order. Their queue goes back by [`Loads::keep`].
    pub(crate) fn end(&mut self, page: u32) -> VecDeque<u32> {
        let position = self.loads.iter().position(|load| load.page == page).expect("a loaded page was asked for");
        self.loads.swap_remove(position).waiters
    }

    /// Keeps the memory of a queue.
    pub(crate) fn keep(&mut self, mut waiters: VecDeque<u32>) {
        waiters.clear();
        self.spare.push(waiters);
    }

    /// Nothing is on its way any more; calls `page_lost` for every page that was.
    pub(crate) fn forget(&mut self, mut page_lost: impl FnMut(u32)) {
        for Load { page, mut waiters } in self.loads.drain(..) {
            page_lost(page);
            waiters.clear();
            self.spare.push(waiters);
        }
    }
}
