//! ARC and LIRS.

use super::{Model, oldest, take};

/// Figure 4 of the paper on ARC.
pub(crate) struct Arc {
    c: usize,
    t1: Vec<u64>,
    t2: Vec<u64>,
    b1: Vec<u64>,
    b2: Vec<u64>,
    p: f64,
}

impl Arc {
    pub(crate) fn new(c: usize) -> Self {
        Self { c, t1: Vec::new(), t2: Vec::new(), b1: Vec::new(), b2: Vec::new(), p: 0.0 }
    }

    fn is_full(&self) -> bool {
        self.t1.len() + self.t2.len() == self.c
    }

    fn replace(&mut self, in_b2: bool) -> Option<u64> {
        let t1 = self.t1.len() as f64;
        if !self.t1.is_empty() && (t1 > self.p || (in_b2 && t1 == self.p)) || self.t2.is_empty() {
            let key = oldest(&mut self.t1)?;
            self.b1.push(key);
            Some(key)
        } else {
            let key = oldest(&mut self.t2)?;
            self.b2.push(key);
            Some(key)
        }
    }
}

impl Model for Arc {
    fn access(&mut self, key: u64) -> (bool, Option<u64>) {
        let mut evicted = None;
        let (b1, b2) = (self.b1.len() as f64, self.b2.len() as f64);
        if take(&mut self.t1, key) || take(&mut self.t2, key) {
            self.t2.push(key);
            return (true, None);
        }
        if take(&mut self.b1, key) {
            self.p = (self.p + (b2 / b1).max(1.0)).min(self.c as f64);
            if self.is_full() {
                evicted = self.replace(false);
            }
            self.t2.push(key);
        } else if take(&mut self.b2, key) {
            self.p = (self.p - (b1 / b2).max(1.0)).max(0.0);
            if self.is_full() {
                evicted = self.replace(true);
            }
            self.t2.push(key);
        } else {
            if self.t1.len() + self.b1.len() == self.c {
                if self.t1.len() < self.c {
                    oldest(&mut self.b1);
                    if self.is_full() {
                        evicted = self.replace(false);
                    }
                } else {
                    evicted = oldest(&mut self.t1);
                }
            } else {
                if self.t1.len() + self.t2.len() + self.b1.len() + self.b2.len() == 2 * self.c {
                    oldest(&mut self.b2);
                }
                if self.is_full() {
                    evicted = self.replace(false);
                }
            }
            self.t1.push(key);
        }
        (false, evicted)
    }

    fn remove(&mut self, key: u64) {
        let _ = take(&mut self.t1, key) || take(&mut self.t2, key);
    }

    fn evict(&mut self) -> Option<u64> {
        if self.t1.is_empty() && self.t2.is_empty() {
            return None;
        }
        // As many ghosts as keys at most.
        if self.b1.len() + self.b2.len() == self.c && oldest(&mut self.b2).is_none() {
            oldest(&mut self.b1);
        }
        self.replace(false)
    }
}

/// LIRS. A key of the stack is LIR, or HIR; a HIR key is held where it is in the queue.
pub(crate) struct Lirs {
    capacity: usize,
    lir_max: usize,
    stack: Vec<u64>,
    lir: Vec<u64>,
    queue: Vec<u64>,
    gone: Vec<u64>,
}

impl Lirs {
    pub(crate) fn new(capacity: usize) -> Self {
        let lir_max = capacity - (capacity / 100).max(1);
        Self { capacity, lir_max, stack: Vec::new(), lir: Vec::new(), queue: Vec::new(), gone: Vec::new() }
    }

    fn prune(&mut self) {
        while self.stack.first().is_some_and(|key| !self.lir.contains(key)) {
            let key = self.stack.remove(0);
            take(&mut self.gone, key);
        }
    }

    fn become_lir(&mut self, key: u64) {
        if self.lir.len() == self.lir_max {
            self.demote();
        }
        take(&mut self.stack, key);
        self.stack.push(key);
        self.lir.push(key);
        self.prune();
    }

    fn become_hir(&mut self, key: u64) {
        take(&mut self.queue, key);
        self.queue.push(key);
        if self.lir_max > 0 {
            take(&mut self.stack, key);
            self.stack.push(key);
        }
    }

    /// The oldest LIR key becomes HIR.
    fn demote(&mut self) {
        let key = self.stack.remove(0);
        assert!(take(&mut self.lir, key), "the oldest of the stack is LIR");
        self.queue.push(key);
        self.prune();
    }

    /// The oldest HIR key leaves.
    fn evict_hir(&mut self) -> Option<u64> {
        let key = oldest(&mut self.queue)?;
        if self.stack.contains(&key) {
            if self.gone.len() == 2 * self.capacity - self.lir_max {
                self.forget();
            }
            self.gone.push(key);
        }
        Some(key)
    }

    fn forget(&mut self) {
        if let Some(key) = oldest(&mut self.gone) {
            take(&mut self.stack, key);
        }
    }
}

impl Model for Lirs {
    fn access(&mut self, key: u64) -> (bool, Option<u64>) {
        let mut evicted = None;
        let mut is_hit = true;
        if self.lir.contains(&key) {
            take(&mut self.stack, key);
            self.stack.push(key);
            self.prune();
        } else if self.queue.contains(&key) {
            if self.stack.contains(&key) || self.lir.len() < self.lir_max {
                take(&mut self.queue, key);
                // While the oldest LIR key goes, this one is where it was.
                take(&mut self.stack, key);
                self.become_lir(key);
            } else {
                self.become_hir(key);
            }
        } else {
            is_hit = false;
            let was_known = take(&mut self.gone, key);
            if was_known {
                take(&mut self.stack, key);
            }
            if self.lir.len() + self.queue.len() == self.capacity {
                evicted = self.evict();
            }
            if was_known || self.lir.len() < self.lir_max {
                self.become_lir(key);
            } else {
                self.become_hir(key);
            }
        }
        while self.stack.len() > 2 * self.capacity && !self.gone.is_empty() {
            self.forget();
        }
        (is_hit, evicted)
    }

    fn remove(&mut self, key: u64) {
        if take(&mut self.lir, key) || take(&mut self.queue, key) {
            take(&mut self.stack, key);
            self.prune();
        }
    }

    fn evict(&mut self) -> Option<u64> {
        if self.queue.is_empty() && !self.lir.is_empty() {
            self.demote();
        }
        self.evict_hir()
    }
}
