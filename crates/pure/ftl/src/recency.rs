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

/// Neighbours of a page, with its state in the two bits above each: a page costs one cache line fetch, and the fetches
/// of random pages are the cost of an access.
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
        // The caller links the page again or forgets it: its own links change there.
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const PAGES: u32 = 12;

    /// A list of pages, spelled out: the page used last comes first, and pages out of reach are in no order.
    #[derive(Default)]
    struct Plain {
        listed: Vec<u32>,
        place: [u8; PAGES as usize],
        dirty: [bool; PAGES as usize],
    }

    #[derive(Clone, Copy, Debug)]
    enum Step {
        Use(u32, bool),
        Dirty(u32, bool),
        Lose(u32),
        Remove(u32),
    }

    fn step() -> impl Strategy<Value = Step> {
        let page = 0..PAGES;
        prop_oneof![
            6 => (page.clone(), any::<bool>()).prop_map(|(page, offsite)| Step::Use(page, offsite)),
            2 => (page.clone(), any::<bool>()).prop_map(|(page, dirty)| Step::Dirty(page, dirty)),
            1 => page.clone().prop_map(Step::Lose),
            2 => page.prop_map(Step::Remove),
        ]
    }

    impl Plain {
        fn take(&mut self, recency: &mut Recency, step: Step) {
            match step {
                Step::Use(page, offsite) => match self.place[page as usize] {
                    0 => {
                        recency.insert(page, if offsite { Place::Offsite } else { Place::Local });
                        self.place[page as usize] = 1 + u8::from(offsite);
                        self.listed.insert(0, page);
                    }
                    3 => {}
                    _ => {
                        recency.touch(page);
                        self.listed.retain(|&listed| listed != page);
                        self.listed.insert(0, page);
                    }
                },
                Step::Dirty(page, dirty) => {
                    recency.set_dirty(page, dirty);
                    self.dirty[page as usize] = dirty;
                }
                Step::Lose(page) if matches!(self.place[page as usize], 1 | 2) => {
                    recency.lose(page);
                    self.place[page as usize] = 3;
                    self.listed.retain(|&listed| listed != page);
                }
                Step::Remove(page) if self.place[page as usize] > 0 => {
                    assert_eq!(recency.remove(page), self.dirty[page as usize]);
                    self.place[page as usize] = 0;
                    self.dirty[page as usize] = false;
                    self.listed.retain(|&listed| listed != page);
                }
                Step::Lose(_) | Step::Remove(_) => {}
            }
        }
    }

    proptest! {
        #[test]
        fn pages_are_in_the_order_of_their_last_use(steps in prop::collection::vec(step(), 1..200)) {
            let (mut recency, mut plain) = (Recency::new(PAGES), Plain::default());
            for step in steps {
                plain.take(&mut recency, step);
                let from_least = std::iter::successors(recency.least(), |&page| recency.used_after(page));
                prop_assert!(from_least.eq(plain.listed.iter().rev().copied()), "{:?}", plain.listed);
                for page in 0..PAGES {
                    prop_assert_eq!(recency.place(page) as u8, plain.place[page as usize]);
                    prop_assert_eq!(recency.is_dirty(page), plain.dirty[page as usize]);
                }
            }
        }
    }
}
