//! One published number: the runs it needs, and what it is made of.

/// Makes the number of the figures of its runs, in their order.
type Value<F> = Box<dyn Fn(&[&F]) -> f64 + Send + Sync>;

/// A number that can be measured from figures `F` of runs `R`.
pub struct Number<R, F> {
    /// Its name among the expectations.
    pub id: String,
    /// Runs that it is made of; none for closed forms.
    pub runs: Vec<R>,
    value: Value<F>,
}

impl<R: PartialEq, F> Number<R, F> {
    /// The number `id`, made by `value` of the figures of `runs`.
    pub fn of(
        id: impl Into<String>,
        runs: impl Into<Vec<R>>,
        value: impl Fn(&[&F]) -> f64 + Send + Sync + 'static,
    ) -> Self {
        Self { id: id.into(), runs: runs.into(), value: Box::new(value) }
    }

    /// A number that is arithmetic.
    pub fn closed(id: &str, value: f64) -> Self {
        Self::of(id, [], move |_| value)
    }

    /// The number; `None` while a run is missing.
    pub fn value_of(&self, finished: &[(R, F)]) -> Option<f64> {
        let find = |run: &R| finished.iter().find(|entry| entry.0 == *run).map(|entry| &entry.1);
        let figures: Option<Vec<&F>> = self.runs.iter().map(find).collect();
        figures.map(|figures| (self.value)(&figures))
    }
}

/// By how many percent `value` is above `against`.
pub fn percent_above(value: f64, against: f64) -> f64 {
    100.0 * (value / against - 1.0)
}

/// A statement that holds, 1, or does not, 0.
pub fn claim(holds: bool) -> f64 {
    f64::from(u8::from(holds))
}
