//! Models of how erase counts grow: FF-SSD's and those of its rivals.

use super::groups;
use flashyard_units::Named;

/// A model by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Prediction {
    /// FF-SSD: for each block the line through its last two points; earlier ones are dropped. \[P\]
    TwoPoint,
    /// FF-SSD with one line for a group of blocks. \[P\] as an option
    Grouped,
    /// Discrete-event models that are chosen once: of a two-point line, a least-squares line and a parabola over the
    /// first periods, the best for the next period; never refitted. \[A\] sheet ff-ssd §5
    Devs,
    /// Continuous learning: for each block the least-squares line over all its log has, of which predicted counts are a part. \[C\] the
    /// public code appends them to the log that its regression reads whole (`FF_BuildServer.py`)
    Cml,
}

impl Named for Prediction {
    const ALL: &'static [Self] = &[Self::TwoPoint, Self::Grouped, Self::Devs, Self::Cml];

    fn name(self) -> &'static str {
        match self {
            Self::TwoPoint => "two-point",
            Self::Grouped => "grouped",
            Self::Devs => "devs",
            Self::Cml => "cml",
        }
    }
}

impl Prediction {
    /// A predicted count as a whole number. Source: \[C\] the public code rounds what a regression over its log says up, but for noise
    /// (`FF_BuildServer.py`: the nearest to 0.49 more). A two-point line is whole by itself; for the others the nearest: \[A\].
    pub(super) fn whole(self, predicted: f64) -> f64 {
        let more = if self == Self::Cml { 0.49 } else { 0.0 };
        (predicted + more).round()
    }
}

/// Counts at a time.
struct Point {
    period: u32,
    counts: Vec<u32>,
}

/// A model with what it has learned.
pub(super) struct Predictor {
    prediction: Prediction,
    /// The last two points; the first four of DEVS until it has chosen.
    points: Vec<Point>,
    devs: Option<Vec<Parabola>>,
    cml: Sums,
}

/// Erases since a fit as a function of periods since then: `slope * t + bend * t * t`.
#[derive(Clone, Copy)]
struct Parabola {
    origin: u32,
    slope: f64,
    bend: f64,
}

impl Parabola {
    /// The increase from `from` to `to`.
    fn between(&self, from: u32, to: u32) -> f64 {
        let value = |period: u32| {
            let t = f64::from(period) - f64::from(self.origin);
            self.slope * t + self.bend * t * t
        };
        value(to) - value(from)
    }
}

/// Sums of a least-squares line over time, for all blocks at once.
#[derive(Default)]
struct Sums {
    points: f64,
    times: f64,
    squares: f64,
    counts: Vec<f64>,
    products: Vec<f64>,
}

impl Predictor {
    pub(super) fn new(prediction: Prediction, blocks: usize) -> Self {
        let cml = Sums { counts: vec![0.0; blocks], products: vec![0.0; blocks], ..Sums::default() };
        Self { prediction, points: Vec::new(), devs: None, cml }
    }

    /// Periods that must be simulated before the first prediction.
    pub(super) fn warm_up(&self) -> u32 {
        match self.prediction {
            // Three points for the candidates and one to choose by.
            Prediction::Devs => 3,
            _ => 2,
        }
    }

    /// Learns from a simulated period.
    pub(super) fn observe(&mut self, period: u32, counts: &[u32]) {
        self.learn(period, counts);
        self.remember(period, counts);
    }

    /// Takes note of where a jump led: the next point is seen from there.
    pub(super) fn projected(&mut self, period: u32, counts: &[u32]) {
        self.learn(period, counts);
        self.remember(period, counts);
    }

    fn learn(&mut self, period: u32, counts: &[u32]) {
        if self.prediction == Prediction::Cml {
            let time = f64::from(period);
            self.cml.points += 1.0;
            self.cml.times += time;
            self.cml.squares += time * time;
            for (block, &count) in counts.iter().enumerate() {
                self.cml.counts[block] += f64::from(count);
                self.cml.products[block] += f64::from(count) * time;
            }
        }
    }

    fn remember(&mut self, period: u32, counts: &[u32]) {
        self.points.push(Point { period, counts: counts.to_vec() });
        let choosing = self.prediction == Prediction::Devs && self.devs.is_none();
        if choosing && self.points.len() == 4 {
            self.devs = Some(chosen(&self.points));
        }
        if !choosing && self.points.len() > 2 {
            self.points.remove(0);
        }
    }

    /// The count of every block at `period`. Call after the warm-up only.
    pub(super) fn predict(&self, period: u32) -> Vec<f64> {
        let [.., before, last] = self.points.as_slice() else { unreachable!("the warm-up has given two points") };
        let (apart, ahead) = (last.period - before.period, period - last.period);
        match self.prediction {
            Prediction::TwoPoint => {
                let reach = f64::from(ahead) / f64::from(apart);
                let line = |(&before, &last): (&u32, &u32)| f64::from(last) + reach * f64::from(last - before);
                before.counts.iter().zip(&last.counts).map(line).collect()
            }
            Prediction::Grouped => groups::predict(&before.counts, &last.counts, apart, ahead),
            Prediction::Devs => {
                let models = self.devs.as_deref().unwrap_or_default();
                let grown = |(model, &last_count): (&Parabola, &u32)| {
                    f64::from(last_count) + model.between(last.period, period)
                };
                models.iter().zip(&last.counts).map(grown).collect()
            }
            Prediction::Cml => {
                let sums = &self.cml;
                let spread = sums.points * sums.squares - sums.times * sums.times;
                let line = |(count, product): (&f64, &f64)| {
                    let slope = (sums.points * product - sums.times * count) / spread;
                    (count - slope * sums.times) / sums.points + slope * f64::from(period)
                };
                sums.counts.iter().zip(&sums.products).map(line).collect()
            }
        }
    }
}

/// Slope and bend through three counts one period apart, at the last of them.
type Candidate = fn(f64, f64, f64) -> (f64, f64);

/// The candidates of DEVS, the simplest first: the line through the last two, the least-squares line, the parabola.
const CANDIDATES: [Candidate; 3] = [
    |_, b, c| (c - b, 0.0),
    |a, _, c| ((c - a) / 2.0, 0.0),
    |a, b, c| ((3.0 * c - 4.0 * b + a) / 2.0, (c - 2.0 * b + a) / 2.0),
];

/// DEVS: fits every candidate to the first three points, and keeps the nearest to the fourth over all blocks; ties go
/// to the simpler one. The points are one period apart.
fn chosen(points: &[Point]) -> Vec<Parabola> {
    let [first, second, third, fourth] = points else { unreachable!("DEVS chooses by four points") };
    let fit = |candidate: Candidate| -> Vec<Parabola> {
        let counts = first.counts.iter().zip(&second.counts).zip(&third.counts);
        counts
            .map(|((&a, &b), &c)| {
                let (slope, bend) = candidate(f64::from(a), f64::from(b), f64::from(c));
                Parabola { origin: third.period, slope, bend }
            })
            .collect()
    };
    let error = |models: &[Parabola]| -> f64 {
        let blocks = models.iter().zip(third.counts.iter().zip(&fourth.counts));
        let off = |(model, (&last, &next)): (&Parabola, (&u32, &u32))| {
            (f64::from(last) + model.between(third.period, fourth.period) - f64::from(next)).abs()
        };
        blocks.map(off).sum()
    };
    let fitted = CANDIDATES.map(fit).map(|models| (error(&models), models));
    let best = fitted.into_iter().reduce(|best, other| if other.0 < best.0 { other } else { best });
    best.map(|(_, models)| models).unwrap_or_default()
}
