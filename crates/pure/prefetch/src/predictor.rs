//! The contract of predictors.

/// A request that the last level of cache could not answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seen {
    /// Number of the line: its address over 64.
    pub line: u64,
    /// The place in the program that asked.
    pub counter: u32,
}

/// A line that will be asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Predicted {
    /// Number of the line.
    pub line: u64,
    /// How many requests after the newest it is expected, 1 for the next.
    pub after: u32,
}

/// Hardware that a predictor takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    /// Bytes of tables and weights.
    pub bytes: u64,
    /// Integer operations of an inference.
    pub operations: u64,
    /// Inferences so far.
    pub inferences: u64,
}

/// Predicts requests from those before.
pub trait Predictor {
    /// Takes a request in and appends lines that it has not predicted before.
    /// `ahead` bounds how many requests a prediction may be ahead of its use, but for the next line of a place in the program.
    fn observe(&mut self, seen: Seen, ahead: u32, predicted: &mut Vec<Predicted>);

    /// Hears that a line has arrived at the host: one that was read ahead, or one that a request has asked for.
    fn filled(&mut self, line: u64, read_ahead: bool) {
        let _ = (line, read_ahead);
    }

    /// Hardware that it takes.
    fn cost(&self) -> Cost;
}

/// A predictor of any kind, which can be had again as it is.
pub trait AnyPredictor: Predictor + Send {
    /// Another one in the same state.
    fn again(&self) -> Box<dyn AnyPredictor>;
}

impl<P: Predictor + Clone + Send + 'static> AnyPredictor for P {
    fn again(&self) -> Box<dyn AnyPredictor> {
        Box::new(self.clone())
    }
}

impl<P: Predictor + ?Sized> Predictor for Box<P> {
    fn observe(&mut self, seen: Seen, ahead: u32, predicted: &mut Vec<Predicted>) {
        (**self).observe(seen, ahead, predicted);
    }

    fn filled(&mut self, line: u64, read_ahead: bool) {
        (**self).filled(line, read_ahead);
    }

    fn cost(&self) -> Cost {
        (**self).cost()
    }
}
