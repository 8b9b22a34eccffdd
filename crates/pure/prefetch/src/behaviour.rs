//! Behaviours: a decision tree puts the last requests into one of 64 categories, and a change of category is an event.
//!
//! A node asks whether one feature of a window of sixteen requests is above its mean over the windows that came to it in training; the feature
//! is the one that varies most there.
//!
//! Source: [P] sheet micro-expand §3.5: a pre-trained tree, 64 categories; features and splits are [A].

use crate::predictor::Seen;

/// Requests of a window. [A] sheet micro-expand §3.4
const WINDOW: usize = 16;
/// Depth of the tree. [P] 64 categories
const DEPTH: usize = 6;
/// Features of a window.
const FEATURES: usize = 5;

/// A decision tree over windows of requests, and the present category.
#[derive(Clone, Debug)]
pub(crate) struct Behaviour {
    /// Feature and threshold of each inner node, the children of node n being 2n + 1 and 2n + 2.
    nodes: Vec<(usize, f32)>,
    window: Vec<Seen>,
    category: Option<usize>,
    events: u64,
}

/// Steps from one line to the next, the kinds of them, places in the program, pages, and lines that come again: as shares of the window.
fn features(window: &[Seen]) -> [f32; FEATURES] {
    let count = window.len() as f32;
    let distinct = |mut items: Vec<u64>| {
        items.sort_unstable();
        items.dedup();
        items.len() as f32 / count
    };
    let deltas: Vec<u64> = window.windows(2).map(|pair| pair[1].line.wrapping_sub(pair[0].line)).collect();
    let near = deltas.iter().filter(|delta| delta.wrapping_add(64) < 128).count() as f32;
    [
        distinct(deltas),
        near / count,
        distinct(window.iter().map(|seen| seen.counter.into()).collect()),
        distinct(window.iter().map(|seen| seen.line / 64).collect()),
        distinct(window.iter().map(|seen| seen.line).collect()),
    ]
}

impl Behaviour {
    /// A tree that was trained on requests.
    pub(crate) fn trained(seen: &[Seen]) -> Self {
        let windows: Vec<[f32; FEATURES]> = seen.chunks_exact(WINDOW).map(features).collect();
        let mut nodes = vec![(0, 0.0); (1 << DEPTH) - 1];
        let mut here: Vec<Vec<usize>> = vec![(0..windows.len()).collect()];
        for (node, (feature, threshold)) in nodes.iter_mut().enumerate() {
            let members = std::mem::take(&mut here[node]);
            let spread = |feature: usize| {
                let mean = members.iter().map(|&window| windows[window][feature]).sum::<f32>() / members.len() as f32;
                let away = |window: usize| windows[window][feature] - mean;
                members.iter().map(|&window| away(window) * away(window)).sum::<f32>()
            };
            let most =
                |best: (usize, f32), next: usize| if spread(next) > best.1 { (next, spread(next)) } else { best };
            *feature = (0..FEATURES).fold((0, -1.0), most).0;
            let sum: f32 = members.iter().map(|&window| windows[window][*feature]).sum();
            *threshold = sum / members.len().max(1) as f32;
            let (above, below) = members.into_iter().partition(|&window| windows[window][*feature] > *threshold);
            here.extend([below, above]);
        }
        Self { nodes, window: Vec::with_capacity(WINDOW), category: None, events: 0 }
    }

    /// Category of a window.
    fn classify(&self, window: &[Seen]) -> usize {
        let features = features(window);
        let mut node = 0;
        for _ in 0..DEPTH {
            let (feature, threshold) = self.nodes[node];
            node = 2 * node + 1 + usize::from(features[feature] > threshold);
        }
        node - self.nodes.len()
    }

    /// Takes a request in; whether a window has ended with it whose category is another than that of the window before.
    pub(crate) fn observe(&mut self, seen: Seen) -> bool {
        self.window.push(seen);
        if self.window.len() < WINDOW {
            return false;
        }
        let category = self.classify(&self.window);
        self.window.clear();
        let event = self.category.replace(category).is_some_and(|before| before != category);
        self.events += u64::from(event);
        event
    }

    /// Bytes: a feature and a threshold a node, and the window.
    pub(crate) fn bytes(&self) -> u64 {
        (self.nodes.len() * 2 + WINDOW * 12) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flashyard_kernel::Rng;

    fn requests(random: bool, count: u64, rng: &mut Rng) -> Vec<Seen> {
        let line = |number| if random { rng.below(1 << 30) } else { number };
        (0..count).map(line).map(|line| Seen { line, counter: u32::from(random) }).collect()
    }

    #[test]
    fn a_program_that_changes_makes_an_event() {
        let mut rng = Rng::named(1, "test");
        let [first, second] = [false, true].map(|random| requests(random, 1600, &mut rng));
        let mut behaviour = Behaviour::trained(&[first.clone(), second.clone()].concat());
        let events = first.iter().filter(|seen| behaviour.observe(**seen)).count();
        assert_eq!(events, 0, "a stream is of one category");
        assert!(second[..32].iter().any(|seen| behaviour.observe(*seen)));
        assert_eq!(behaviour.nodes.len() + 1, 64);
    }

    #[test]
    fn nothing_to_learn_from_makes_a_tree_as_well() {
        let mut behaviour = Behaviour::trained(&[]);
        assert!(!(0..100).any(|line| behaviour.observe(Seen { line, counter: 0 })));
    }
}
