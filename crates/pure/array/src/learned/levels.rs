//! Inner nodes: linear models that predict the number of a leaf from a stripe, with a bounded error. Source: \[X\] piecewise
//! linear indexes with bounded error; sheet paraid §3.3 has models that choose the child.

/// Numbers by which a model is wrong at most. Source: \[A\] a window of so many starts is a cache line or two.
const ERROR: i64 = 7;

/// A model of the children from `first` on: a stripe `behind` its start has child `first + behind * slope / 2^32`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Model {
    start: u32,
    slope: u32,
    first: u32,
}

impl Model {
    fn child(self, stripe: u32) -> i64 {
        i64::from(self.first) + ((u64::from(stripe - self.start) * u64::from(self.slope)) >> 32) as i64
    }
}

/// Levels of models above leaves, the lowest first; the last has one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Levels(Vec<Vec<Model>>);

impl Levels {
    /// Models of leaves that begin at `starts`, which grow.
    pub(super) fn new(starts: &[u32]) -> Self {
        let mut levels: Vec<Vec<Model>> = Vec::new();
        let mut models = fit(starts);
        while models.len() > 1 {
            let starts: Vec<u32> = models.iter().map(|model| model.start).collect();
            levels.push(models);
            models = fit(&starts);
        }
        levels.push(models);
        Self(levels)
    }

    /// The last of `starts`, of which it was made, that is not behind a stripe.
    #[inline]
    pub(super) fn find(&self, starts: &[u32], stripe: u32) -> usize {
        let mut at = 0;
        for (level, models) in self.0.iter().enumerate().rev() {
            let end = models.get(at + 1).map(|next| next.first as usize);
            at = match level.checked_sub(1).map(|below| &self.0[below]) {
                Some(below) => search(models[at], end.unwrap_or(below.len()), stripe, |at| below[at].start),
                None => search(models[at], end.unwrap_or(starts.len()), stripe, |at| starts[at]),
            };
        }
        at
    }

    /// Bytes of all models.
    pub(super) fn bytes(&self) -> usize {
        self.0.iter().map(Vec::len).sum::<usize>() * size_of::<Model>()
    }
}

/// The last child of a model, up to `end`, that does not start behind a stripe.
#[inline]
fn search(model: Model, end: usize, stripe: u32, start: impl Fn(usize) -> u32) -> usize {
    let near = model.child(stripe).min(end as i64 - 1);
    let mut low = (near - ERROR - 1).max(model.first.into()) as usize;
    let mut high = ((near + ERROR + 2) as usize).min(end);
    // All before `low` and `low` itself start in time, none from `high` on does.
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        if start(middle) <= stripe { low = middle } else { high = middle }
    }
    low
}

/// Models of numbers of starts with an error of [`ERROR`] at most.
fn fit(starts: &[u32]) -> Vec<Model> {
    let mut models = Vec::new();
    let mut first = 0;
    while first < starts.len() {
        let (mut low, mut high) = (0, i64::from(u32::MAX));
        let mut end = first + 1;
        while let Some(&start) = starts.get(end) {
            let (behind, number) = (i64::from(start - starts[first]), (end - first) as i64);
            let to_low = ((number - ERROR) << 32).div_euclid(behind) + 1;
            let to_high = ((number + ERROR) << 32).div_euclid(behind);
            if low.max(to_low) > high.min(to_high) {
                break;
            }
            (low, high, end) = (low.max(to_low), high.min(to_high), end + 1);
        }
        let slope = (low + (high - low) / 2) as u32;
        let slope = if end == first + 1 { 0 } else { slope };
        models.push(Model { start: starts[first], slope, first: first as u32 });
        first = end;
    }
    models
}
