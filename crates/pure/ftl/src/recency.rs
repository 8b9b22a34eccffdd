//! Pages in order of their last use: a doubly linked list in an array, with each page's state in its links.

/// No page. Two bits stay free above it.
pub(crate) const NIL: u32 = u32::MAX >> 2;

const STATE_SHIFT: u32 = 30;
const DIRTY: u32 = 1 << STATE_SHIFT;

/// Where a page is, as two bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    Absent = 0,
    Local = 1,
    Offsite = 2,
    /// In a frame whose memory cannot be reached: not listed.
    Lost = 3,
}

/// Neighbours of a page, with its state in the two bits above each: a page costs one cache line fetch, and the
/// fetches of random pages are what an access costs.
#[derive(Clone, Copy)]
struct Node {
    /// Page after this one; above it the place.
    next_and_place: u32,
    /// Page before this one; above it whether it is dirty.
    previous_and_dirty: u32,
}

impl Node {
    const ABSENT: Self = Self { next_and_place: NIL, previous_and_dirty: NIL };

    #[inline]
    fn next(self) -> u32 {
        self.next_and_place & NIL
    }

    #[inline]
    fn previous(self) -> u32 {
        self.previous_and_dirty & NIL
    }

    #[inline]
    fn set_next(&mut self, page: u32) {
        self.next_and_place = self.next_and_place & !NIL | page;
    }

    #[inline]
    fn set_previous(&mut self, page: u32) {
        self.previous_and_dirty = self.previous_and_dirty & !NIL | page;
    }
}

/// The list of pages in memory, most recently used first, and the state of every page.
pub(crate) struct Recency {
    nodes: Vec<Node>,
    head: u32,
    tail: u32,
}

impl Recency {
    /// `pages` pages, all absent.
    pub(crate) fn new(pages: u32) -> Self {
        Self { nodes: vec![Node::ABSENT; pages as usize], head: NIL, tail: NIL }
    }

    /// Whether it tracks no page at all.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    #[inline]
    pub(crate) fn place(&self, page: u32) -> Place {
        match self.nodes[page as usize].next_and_place >> STATE_SHIFT {
            0 => Place::Absent,
            1 => Place::Local,
            2 => Place::Offsite,
            _ => Place::Lost,
        }
    }

    #[inline]
    pub(crate) fn is_dirty(&self, page: u32) -> bool {
        self.nodes[page as usize].previous_and_dirty > NIL
    }

    #[inline]
    pub(crate) fn set_dirty(&mut self, page: u32, dirty: bool) {
        let word = &mut self.nodes[page as usize].previous_and_dirty;
        *word = if dirty { *word | DIRTY } else { *word & NIL };
    }

    /// The page used longest ago.
    #[inline]
    pub(crate) fn least(&self) -> Option<u32> {
        (self.tail != NIL).then_some(self.tail)
    }

    /// The page used just after `page`.
    pub(crate) fn used_after(&self, page: u32) -> Option<u32> {
        let previous = self.nodes[page as usize].previous();
        (previous != NIL).then_some(previous)
    }

    /// Makes a listed page the one used last.
    #[inline]
    pub(crate) fn touch(&mut self, page: u32) {
        if self.head != page {
            let place = self.nodes[page as usize].next_and_place >> STATE_SHIFT;
            self.unlink(page);
            self.link(page, place);
        }
    }

    /// Lists an absent page as the one used last.
    #[inline]
    pub(crate) fn insert(&mut self, page: u32, place: Place) {
        debug_assert_eq!(self.place(page), Place::Absent, "page {page} is listed already");
        self.link(page, place as u32);
    }

    /// Takes a page off the list but keeps its state as being out of reach.
    pub(crate) fn lose(&mut self, page: u32) {
        self.unlink(page);
        let node = &mut self.nodes[page as usize];
        node.next_and_place = (Place::Lost as u32) << STATE_SHIFT | NIL;
        node.set_previous(NIL);
    }

    /// Forgets a page; returns whether it was dirty.
    #[inline]
    pub(crate) fn remove(&mut self, page: u32) -> bool {
        let dirty = self.is_dirty(page);
        if self.place(page) != Place::Lost {
            self.unlink(page);
        }
        self.nodes[page as usize] = Node::ABSENT;
        dirty
    }

    #[inline]
    fn link(&mut self, page: u32, place: u32) {
        let head = std::mem::replace(&mut self.head, page);
        if head == NIL {
            self.tail = page;
        } else {
            self.nodes[head as usize].set_previous(page);
        }
        let node = &mut self.nodes[page as usize];
        node.next_and_place = place << STATE_SHIFT | head;
        node.set_previous(NIL);
    }

    #[inline]
    fn unlink(&mut self, page: u32) {
        let node = self.nodes[page as usize];
        let (next, previous) = (node.next(), node.previous());
        if previous == NIL {
            self.head = next;
        } else {
            self.nodes[previous as usize].set_next(next);
        }
        if next == NIL {
            self.tail = previous;
        } else {
            self.nodes[next as usize].set_previous(previous);
        }
        // The caller links the page anew or forgets it: its own links change there.
    }
}
