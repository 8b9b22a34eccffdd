//! The loop of fast-forward ageing, without the drive.

use super::predictors::{Prediction, Predictor};
use super::steadiness::{Acceleration, Steadiness};

/// How to age fast.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ForwardConfig {
    /// Model of the blocks.
    pub prediction: Prediction,
    /// When to jump and how far.
    pub acceleration: Acceleration,
    /// Erases that no prediction exceeds; `None` for no limit.
    pub endurance: Option<u32>,
}

/// The next step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Simulate a period and observe.
    Simulate,
    /// Project: this number of periods passes at once.
    Jump(u32),
}

/// The state of fast-forward ageing: time in periods, models, schedule.
pub struct FastForward {
    config: ForwardConfig,
    predictor: Predictor,
    steadiness: Steadiness,
    last: Vec<u32>,
    period: u32,
    simulated: u32,
}

impl FastForward {
    /// Ageing that begins with a drive whose blocks have `counts` erases.
    pub fn new(config: ForwardConfig, counts: Vec<u32>) -> Self {
        let mut predictor = Predictor::new(config.prediction, counts.len());
        predictor.observe(0, &counts);
        let steadiness = Steadiness::new(config.acceleration);
        Self { config, predictor, steadiness, last: counts, period: 0, simulated: 0 }
    }

    /// Periods that have passed, simulated or predicted.
    pub fn period(&self) -> u32 {
        self.period
    }

    /// Periods that were simulated.
    pub fn simulated(&self) -> u32 {
        self.simulated
    }

    /// The next step, when `left` periods remain.
    pub fn next(&self, left: u32) -> Step {
        match self.steadiness.jump().min(left) {
            0 => Step::Simulate,
            _ if self.simulated < self.predictor.warm_up() => Step::Simulate,
            ahead => Step::Jump(ahead),
        }
    }

    /// Takes the erase counts of all blocks after a simulated period, and the write amplification in it.
    /// Panics when the number of blocks changes.
    pub fn observe(&mut self, counts: Vec<u32>, amplification: f64) {
        assert_eq!(counts.len(), self.last.len(), "a drive keeps its blocks");
        self.period += 1;
        self.simulated += 1;
        self.predictor.observe(self.period, &counts);
        self.steadiness.observe(amplification);
        self.last = counts;
    }

    /// Jumps `ahead` periods: the erase counts that the drive then has.
    pub fn project(&mut self, ahead: u32) -> &[u32] {
        let limit = self.config.endurance.unwrap_or(u32::MAX);
        let predicted = self.predictor.predict(self.period + ahead);
        let prediction = self.config.prediction;
        for (count, predicted) in self.last.iter_mut().zip(predicted) {
            // A worn-out block stays as it is. Others may get younger where a model says so: the public code writes back what was predicted.
            if *count < limit {
                *count = (prediction.whole(predicted).clamp(0.0, f64::from(u32::MAX)) as u32).min(limit);
            }
        }
        self.period += ahead;
        self.predictor.projected(self.period, &self.last);
        self.steadiness.jumped();
        &self.last
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flashyard_units::Named;

    /// Ages blocks whose erases a period are `rates`, and `late` times that from period 20 on.
    fn age(config: ForwardConfig, rates: &[u32], late: u32, periods: u32) -> (Vec<u32>, u32) {
        let mut counts: Vec<u32> = vec![0; rates.len()];
        let mut forward = FastForward::new(config, counts.clone());
        while forward.period() < periods {
            match forward.next(periods - forward.period()) {
                Step::Simulate => {
                    let factor = if forward.period() < 20 { 1 } else { late };
                    counts.iter_mut().zip(rates).for_each(|(count, rate)| *count += factor * rate);
                    forward.observe(counts.clone(), 4.0);
                }
                Step::Jump(ahead) => counts = forward.project(ahead).to_vec(),
            }
        }
        (counts, forward.simulated())
    }

    fn config(prediction: Prediction, factor: f64) -> ForwardConfig {
        let acceleration = Acceleration::by_factor(factor).expect("the factor is a possible one");
        ForwardConfig { prediction, acceleration, endurance: None }
    }

    #[test]
    fn steady_wear_is_predicted_exactly_by_every_model() {
        for &prediction in Prediction::ALL {
            for factor in [1.0, 1.5, 2.0, 3.0, 4.0] {
                let (counts, _) = age(config(prediction, factor), &[3, 5, 0, 9], 1, 60);
                assert_eq!(counts, [180, 300, 0, 540], "{prediction:?} at {factor}");
            }
        }
    }

    #[test]
    fn the_factor_is_the_share_of_periods_that_were_simulated() {
        for (factor, simulated) in [(1.0, 60), (1.5, 40), (2.0, 31), (4.0, 16)] {
            let (_, found) = age(config(Prediction::TwoPoint, factor), &[3], 1, 60);
            assert_eq!(found, simulated, "at {factor}");
        }
    }

    #[test]
    fn wear_that_speeds_up_needs_models_that_are_refitted() {
        let real = age(config(Prediction::TwoPoint, 1.0), &[3], 5, 60).0[0];
        let error = |prediction| age(config(prediction, 1.5), &[3], 5, 60).0[0].abs_diff(real);
        assert!(error(Prediction::TwoPoint) < error(Prediction::Devs));
        assert!(error(Prediction::TwoPoint) < error(Prediction::Cml));
    }

    #[test]
    fn continuous_learning_writes_back_what_it_predicts_and_learns_from_it() {
        let mut forward = FastForward::new(config(Prediction::Cml, 2.0), vec![0]);
        [0, 0, 0, 100].into_iter().for_each(|count| forward.observe(vec![count], 1.0));
        assert_eq!(forward.project(1), [80], "the line is below what is there");
        forward.observe(vec![200], 1.0);
        assert_eq!(forward.project(1), [178], "80 at 5 is one of seven points, and a regression is rounded up: 177.1");
    }

    #[test]
    fn what_is_worn_out_stays_so() {
        let mut forward =
            FastForward::new(ForwardConfig { endurance: Some(100), ..config(Prediction::Cml, 2.0) }, vec![0]);
        [0, 0, 0, 100].into_iter().for_each(|count| forward.observe(vec![count], 1.0));
        assert_eq!(forward.project(1), [100]);
    }

    #[test]
    fn no_prediction_passes_the_endurance() {
        let limited = ForwardConfig { endurance: Some(100), ..config(Prediction::TwoPoint, 4.0) };
        let mut forward = FastForward::new(limited, vec![0]);
        forward.observe(vec![45], 1.0);
        forward.observe(vec![90], 1.0);
        assert_eq!(forward.project(3), [100]);
    }
}
