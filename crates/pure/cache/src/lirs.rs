//! LIRS: keys whose accesses are near each other stay, whatever was accessed last.
//!
//! 1. Keys are LIR (nearly all of the cache) or HIR (the rest, a queue Q). A stack S orders keys by their last access: all
//!    LIR keys, HIR keys, and HIR keys that left the cache. Its oldest is always LIR: others there are forgotten (pruned).
//! 2. The first keys are LIR, until these have their share.
//! 3. A hit of a LIR key makes it the newest of S.
//! 4. A hit of a HIR key that is in S makes it LIR, the newest of S, and the oldest LIR key becomes HIR, the newest of Q. One
//!    that is not in S becomes the newest of S and Q.
//! 5. A miss evicts the oldest of Q, which stays in S where it is. A key that is in S becomes LIR as in 4; any other
//!    becomes the newest of S and Q.
//! 6. Where S is longer than twice the capacity, what left the cache first is forgotten.
//!
//! Source: [P] Jiang and Zhang, LIRS: An Efficient Low Inter-reference Recency Set Replacement Policy, SIGMETRICS 2002, which
//! gives HIR keys 1 %. The bound of S is that of libCacheSim.

use crate::kind::PolicyKind;
use crate::list::{Link, List, UNLINKED};
use crate::policy::{CAPACITY_MAX, Evicted, Inserted, Policy};
use crate::store::Store;

/// Keys of HIR, as a part of the capacity.
const HIR_PART: u32 = 100;

/// LIRS. 71.7 bytes a key: it remembers 1.01 times as many as it holds, with eight more bytes of links and one of state each.
#[derive(Clone, Debug)]
pub struct Lirs {
    store: Store,
    /// Links of S, for slots and ghosts; those of the store are of Q, and of the queue of ghosts.
    stack_links: Vec<Link>,
    stack: List,
    /// Q: HIR keys that the cache holds.
    queue: List,
    /// HIR keys that left it and are in S, in the order in which they left.
    ghosts: List,
    states: Vec<State>,
    lir: u32,
    lir_max: u32,
    /// As many as S has beside a full set of LIR keys.
    ghosts_max: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Lir,
    HirInStack,
    /// Not in S. Ghosts are always in S.
    Hir,
}

impl Lirs {
    /// An empty cache. Panics where `capacity` is 0 or above [`CAPACITY_MAX`](crate::CAPACITY_MAX).
    pub fn new(capacity: u32) -> Self {
        let hir_max = (capacity / HIR_PART).max(1);
        let lir_max = capacity.saturating_sub(hir_max);
        assert!((1..=CAPACITY_MAX).contains(&capacity), "a cache holds 1 to {CAPACITY_MAX} keys, not {capacity}");
        let ghosts_max = 2 * capacity - lir_max;
        let nodes = (capacity + ghosts_max) as usize;
        Self {
            store: Store::new(capacity, ghosts_max),
            stack_links: vec![UNLINKED; nodes],
            stack: List::EMPTY,
            queue: List::EMPTY,
            ghosts: List::EMPTY,
            states: vec![State::Hir; nodes],
            lir: 0,
            lir_max,
            ghosts_max,
        }
    }

    /// Makes `slot`, which is in neither list, a HIR key that was accessed now. A cache of one key has no LIR keys and no S.
    fn become_hir(&mut self, slot: u32) {
        self.store.push(&mut self.queue, slot);
        self.states[slot as usize] = State::Hir;
        if self.lir_max > 0 {
            self.stack.push(&mut self.stack_links, slot);
            self.states[slot as usize] = State::HirInStack;
        }
    }

    /// Makes `slot`, which is in neither list, a LIR key that was accessed now. There must be room among those.
    fn become_lir(&mut self, slot: u32) {
        self.stack.push(&mut self.stack_links, slot);
        self.states[slot as usize] = State::Lir;
        self.lir += 1;
    }

    /// Makes the oldest LIR key, which is the oldest of S, the newest of Q. There is one.
    fn demote(&mut self) {
        let slot = self.stack.oldest().expect("LIR keys are in the stack");
        self.stack.unlink(&mut self.stack_links, slot);
        self.lir -= 1;
        self.states[slot as usize] = State::Hir;
        self.store.push(&mut self.queue, slot);
        self.prune();
    }

    /// Forgets what is older in S than all LIR keys.
    fn prune(&mut self) {
        while let Some(node) = self.stack.oldest().filter(|&node| self.states[node as usize] != State::Lir) {
            self.stack.unlink(&mut self.stack_links, node);
            if self.store.is_slot(node) {
                self.states[node as usize] = State::Hir;
            } else {
                self.store.unlink(&mut self.ghosts, node);
                self.store.release(node);
            }
        }
    }

    /// Evicts the oldest of Q; where that is in S, a ghost takes its place there.
    fn evict_hir(&mut self) -> Option<Evicted> {
        let slot = self.store.pop(&mut self.queue)?;
        let key = self.store.key(slot);
        if self.states[slot as usize] != State::HirInStack {
            self.store.release(slot);
            return Some(Evicted { key, slot });
        }
        if self.ghosts.len() == self.ghosts_max {
            self.forget_oldest_ghost();
        }
        let ghost = self.store.ghost_of(slot);
        self.store.push(&mut self.ghosts, ghost);
        self.states[ghost as usize] = State::HirInStack;
        self.stack.substitute(&mut self.stack_links, slot, ghost);
        Some(Evicted { key, slot })
    }

    fn forget_oldest_ghost(&mut self) {
        if let Some(ghost) = self.store.pop(&mut self.ghosts) {
            self.stack.unlink(&mut self.stack_links, ghost);
            self.store.release(ghost);
        }
    }

    /// Keeps S within its bound.
    fn limit_stack(&mut self) {
        while self.stack.len() > 2 * self.capacity() && self.ghosts.len() > 0 {
            self.forget_oldest_ghost();
        }
    }
}

impl Policy for Lirs {
    fn kind(&self) -> PolicyKind {
        PolicyKind::Lirs
    }

    fn capacity(&self) -> u32 {
        self.store.capacity()
    }

    fn len(&self) -> u32 {
        self.store.len()
    }

    fn slot_of(&self, key: u64) -> Option<u32> {
        self.store.slot(key)
    }

    fn touch(&mut self, key: u64) -> Option<u32> {
        let slot = self.store.slot(key)?;
        match self.states[slot as usize] {
            State::Lir => {
                self.stack.renew(&mut self.stack_links, slot);
                self.prune();
            }
            State::HirInStack => {
                self.store.unlink(&mut self.queue, slot);
                self.stack.unlink(&mut self.stack_links, slot);
                if self.lir == self.lir_max {
                    self.demote();
                }
                self.become_lir(slot);
            }
            State::Hir => {
                self.store.unlink(&mut self.queue, slot);
                // After removals only: else the first keys filled the set.
                if self.lir < self.lir_max {
                    self.become_lir(slot);
                } else {
                    self.become_hir(slot);
                }
            }
        }
        self.limit_stack();
        Some(slot)
    }

    fn insert(&mut self, key: u64) -> Inserted {
        let ghost = self.store.ghost(key);
        if let Some(ghost) = ghost {
            self.store.unlink(&mut self.ghosts, ghost);
            self.stack.unlink(&mut self.stack_links, ghost);
            self.store.release(ghost);
        }
        // The oldest of Q makes room for a LIR key that comes to Q as for a new key there.
        let evicted = if self.store.is_full() { self.evict() } else { None };
        let is_lir = if self.lir < self.lir_max {
            true
        } else if ghost.is_some() {
            self.demote();
            true
        } else {
            false
        };
        let slot = self.store.insert(key);
        if is_lir {
            self.become_lir(slot);
        } else {
            self.become_hir(slot);
        }
        self.limit_stack();
        Inserted { slot, evicted }
    }

    fn remove(&mut self, key: u64) -> Option<u32> {
        let slot = self.store.slot(key)?;
        match self.states[slot as usize] {
            State::Lir => {
                self.stack.unlink(&mut self.stack_links, slot);
                self.lir -= 1;
            }
            State::HirInStack => {
                self.store.unlink(&mut self.queue, slot);
                self.stack.unlink(&mut self.stack_links, slot);
            }
            State::Hir => self.store.unlink(&mut self.queue, slot),
        }
        self.store.release(slot);
        self.prune();
        Some(slot)
    }

    fn evict(&mut self) -> Option<Evicted> {
        if self.queue.len() == 0 && self.lir > 0 {
            self.demote();
        }
        self.evict_hir()
    }

    fn memory_bytes(&self) -> usize {
        self.store.memory_bytes()
            + self.stack_links.capacity() * size_of::<Link>()
            + self.states.capacity() * size_of::<State>()
    }
}
