//! Lists of nodes in the order in which they came, without memory of their own.

use crate::index::NONE;

/// The neighbours of a node in its list.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Link {
    pub(crate) older: u32,
    pub(crate) newer: u32,
}

/// No list.
pub(crate) const UNLINKED: Link = Link { older: NONE, newer: NONE };

/// The ends of a list whose links lie in an array; a node is in one list of an array at most.
#[derive(Clone, Copy, Debug)]
pub(crate) struct List {
    newest: u32,
    oldest: u32,
    len: u32,
}

impl List {
    pub(crate) const EMPTY: Self = Self { newest: NONE, oldest: NONE, len: 0 };

    #[inline]
    pub(crate) fn len(&self) -> u32 {
        self.len
    }

    #[inline]
    pub(crate) fn oldest(&self) -> Option<u32> {
        (self.oldest != NONE).then_some(self.oldest)
    }

    /// Adds `node` as the newest.
    #[inline]
    pub(crate) fn push(&mut self, links: &mut [Link], node: u32) {
        links[node as usize] = Link { older: self.newest, newer: NONE };
        match self.newest {
            NONE => self.oldest = node,
            newest => links[newest as usize].newer = node,
        }
        self.newest = node;
        self.len += 1;
    }

    /// Takes `node` out, which is in this list.
    #[inline]
    pub(crate) fn unlink(&mut self, links: &mut [Link], node: u32) {
        let Link { older, newer } = links[node as usize];
        match older {
            NONE => self.oldest = newer,
            older => links[older as usize].newer = newer,
        }
        match newer {
            NONE => self.newest = older,
            newer => links[newer as usize].older = older,
        }
        self.len -= 1;
    }

    /// Puts `other`, which is in no list, at the place of `node`, which leaves this one.
    pub(crate) fn substitute(&mut self, links: &mut [Link], node: u32, other: u32) {
        let link = links[node as usize];
        links[other as usize] = link;
        match link.older {
            NONE => self.oldest = other,
            older => links[older as usize].newer = other,
        }
        match link.newer {
            NONE => self.newest = other,
            newer => links[newer as usize].older = other,
        }
    }

    /// Makes `node`, which is in this list, the newest.
    #[inline]
    pub(crate) fn renew(&mut self, links: &mut [Link], node: u32) {
        if self.newest != node {
            self.unlink(links, node);
            self.push(links, node);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(list: &List, links: &[Link]) -> Vec<u32> {
        let mut nodes = Vec::new();
        let mut node = list.oldest;
        while node != NONE {
            nodes.push(node);
            node = links[node as usize].newer;
        }
        nodes
    }

    #[test]
    fn nodes_leave_from_both_ends_and_from_between() {
        let mut links = [UNLINKED; 5];
        let mut list = List::EMPTY;
        (0..5).for_each(|node| list.push(&mut links, node));
        list.renew(&mut links, 1);
        list.renew(&mut links, 1);
        assert_eq!(order(&list, &links), [0, 2, 3, 4, 1]);
        for (node, left) in [(3, vec![0, 2, 4, 1]), (0, vec![2, 4, 1]), (1, vec![2, 4]), (2, vec![4]), (4, vec![])] {
            list.unlink(&mut links, node);
            assert_eq!((order(&list, &links), list.len() as usize), (left.clone(), left.len()));
        }
        list.push(&mut links, 3);
        assert_eq!((list.oldest(), order(&list, &links)), (Some(3), vec![3]));
    }

    #[test]
    fn a_substitute_stands_where_the_node_stood() {
        let mut links = [UNLINKED; 6];
        let mut list = List::EMPTY;
        (0..3).for_each(|node| list.push(&mut links, node));
        for (node, other) in [(0, 3), (1, 4), (2, 5)] {
            list.substitute(&mut links, node, other);
        }
        assert_eq!((order(&list, &links), list.newest, list.len()), (vec![3, 4, 5], 5, 3));
    }
}
