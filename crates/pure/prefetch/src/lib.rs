//! Predictors of memory requests: which lines will be asked for, and when.
//!
//! What it models: Best-Offset and ISB, an oracle of set accuracy and coverage, three small networks (an LSTM over pages and offsets, an
//! attention network over segments of addresses, and a transformer over two modalities, addresses and program counters) that are trained
//! on the requests of a program and run in eight bits; a decision tree that tells behaviours apart; the estimate of arrival times.
//!
//! The path of a request: its owner shows it to a [`Predictor`] as [`Seen`], and gets the lines that it should have ready, each with the
//! number of requests until it is due; [`Arrivals`] turns that number into a time.
//!
//! What it does not model: the hardware of an inference beyond its bytes and operations; learning while a network runs.
//!
//! Invariants: predictions depend on what was seen and on the seed alone, bit by bit on every machine; a network in eight bits has the shape
//! of the one that was trained; bytes and operations are counted from the shapes that run.
//!
//! Sources: sheet micro-expand §3.4 to §3.8 and §5; papers in the file of each predictor.

mod arrivals;
mod attention;
mod behaviour;
mod best_offset;
mod isb;
mod lstm;
mod nn;
mod oracle;
mod predictor;
mod run_ahead;
mod training;
mod transformer;
mod words;

pub use arrivals::Arrivals;
pub use attention::AttentionShape;
pub use best_offset::BestOffset;
pub use isb::Isb;
pub use lstm::LstmShape;
pub use oracle::{Oracle, OracleConfig};
pub use predictor::{AnyPredictor, Cost, Predicted, Predictor, Seen};
pub use training::Training;
pub use transformer::TransformerShape;

/// ML1: an LSTM over pages and offsets, trained on requests.
pub fn lstm(seen: &[Seen], shape: LstmShape, training: &Training) -> Box<dyn AnyPredictor> {
    Box::new(run_ahead::RunAhead::new(lstm::Lstm::trained(seen, shape, training), None))
}

/// ML2: attention over segments of addresses, trained on requests.
pub fn attention(seen: &[Seen], shape: AttentionShape, training: &Training) -> Box<dyn AnyPredictor> {
    Box::new(attention::Attention::trained(seen, shape, training))
}

/// The predictor of ExPAND, trained on requests; `events` says whether changes of behaviour reach it.
pub fn transformer(seen: &[Seen], shape: TransformerShape, training: &Training, events: bool) -> Box<dyn AnyPredictor> {
    let network = transformer::Transformer::trained(seen, shape, training);
    let behaviour = events.then(|| behaviour::Behaviour::trained(training.part(seen)));
    Box::new(run_ahead::RunAhead::new(network, behaviour))
}
