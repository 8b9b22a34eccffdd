//! A drive's profile from what fio measured on a real one, or a data sheet states of it.
//!
//! 1. Each figure of fio has one parameter of the drive that moves it most ([`PARAMETERS`]).
//! 2. All figures are simulated, and each parameter is moved by what its figure misses, until every figure is met within
//!    [`CLOSE`] or rounds make it no better.
//! 3. At the end each parameter is moved alone: one that moves none of the figures is not determined by them, and two that move all of them alike
//!    cannot be told apart.
//!
//! Six means and rates do not show everything: tails, planes, caches of single-level cells and the map's memory stay as they are by default.

mod gather;
mod measured;
mod parameters;
mod simulate;
mod stated;

pub use gather::{FiguresError, gather};
pub use measured::{Figure, FigureKind, MeasuredError, measured};
pub use parameters::Parameter;

use crate::WorkbenchError;
use crate::parallel::Watch;
use parameters::{PARAMETERS, Values};
use serde_json::{Value, json};
use simulate::Simulator;

pub use simulate::FitRequest;
pub use stated::{StatedError, stated};

/// A figure is met when it is as near as this. \[A\] a fifth of what is asked of a fit
const CLOSE: f64 = 0.02;
/// Rounds at most. \[A\] a round halves a miss at least
const ROUNDS: usize = 14;
/// Change of a parameter that shows what it moves. \[A\]
const NUDGE: f64 = 0.25;
/// A figure that moves by less than this share of the nudge does not depend on the parameter. \[A\] the runs' noise is a percent
const MOVES: f64 = 0.1;
/// Two parameters move figures alike from this cosine on. \[A\]
const ALIKE: f64 = 0.98;

/// A parameter of the fitted drive.
#[derive(Clone, Debug)]
pub struct Fitted {
    /// The key of a scenario: `drive.read_time`.
    pub key: &'static str,
    /// Its value, as a scenario takes it.
    pub value: String,
    /// The figure that it was fitted to.
    pub figure: FigureKind,
    /// The figures' verdict on it.
    pub verdict: Verdict,
}

/// The figures' verdict on a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// They determine it.
    Determined,
    /// No figure moves with it: another value does as well.
    Free,
    /// It moves the figures just as another parameter does.
    Like(&'static str),
}

/// A figure as it was measured, and as the fitted drive has it.
#[derive(Clone, Copy, Debug)]
pub struct Met {
    /// The measured figure.
    pub figure: Figure,
    /// The simulated value, in the unit of the measured one.
    pub simulated: f64,
}

impl Met {
    /// The simulated value by the measured one, less one.
    pub fn error(&self) -> f64 {
        self.simulated / self.figure.value - 1.0
    }
}

/// A fitted drive.
#[derive(Clone, Debug)]
pub struct Fit {
    /// Its parameters, those that were known left out.
    pub parameters: Vec<Fitted>,
    /// Figures, measured and simulated.
    pub figures: Vec<Met>,
}

impl Fit {
    /// The keys of `[drive]` for a profile: known ones, and fitted ones on which a figure depends. The others keep their defaults.
    pub fn drive_keys(&self, known: &[(String, String)]) -> Vec<(String, String)> {
        let fitted = self.parameters.iter().filter(|one| one.verdict != Verdict::Free).filter_map(|one| {
            let key = one.key.strip_prefix("drive.")?;
            Some((key.to_owned(), one.value.clone()))
        });
        known.iter().cloned().chain(fitted).collect()
    }

    /// The keys of the host that were fitted, and on which a figure depends, with their values.
    pub fn host_keys(&self) -> Vec<(String, String)> {
        let fitted = self.parameters.iter().filter(|one| one.key.starts_with("host.") && one.verdict != Verdict::Free);
        fitted.map(|one| (one.key.to_owned(), one.value.trim_matches('"').to_owned())).collect()
    }

    /// The largest miss of all figures, as a share.
    pub fn worst(&self) -> f64 {
        self.figures.iter().map(|met| met.error().abs()).fold(0.0, f64::max)
    }
}

impl Fit {
    /// Figures, measured and fitted, and parameters with verdicts, for programs.
    pub fn json(&self) -> Value {
        let figure = |met: &Met| {
            let (name, unit) = met.figure.kind.in_words();
            json!({
                "load": name, "unit": unit, "block_bytes": met.figure.block_bytes, "depth": met.figure.depth,
                "measured": met.figure.value, "fitted": met.simulated,
            })
        };
        let parameter = |one: &Fitted| {
            let (verdict, like) = match one.verdict {
                Verdict::Determined => ("determined", None),
                Verdict::Free => ("open", None),
                Verdict::Like(other) => ("like", Some(other)),
            };
            json!({
                "key": one.key, "value": one.value.trim_matches('"'), "load": one.figure.in_words().0, "verdict": verdict,
                "like": like,
            })
        };
        json!({
            "figures": self.figures.iter().map(figure).collect::<Vec<_>>(),
            "parameters": self.parameters.iter().map(parameter).collect::<Vec<_>>(),
        })
    }
}

/// Fits a drive; `None` where the watcher stopped it.
///
/// Errors: known keys that make no drive, and runs that fail.
pub fn fit(request: &FitRequest, threads: Option<usize>, watch: &dyn Watch) -> Result<Option<Fit>, WorkbenchError> {
    let parameters: Vec<&'static Parameter> = PARAMETERS
        .iter()
        .filter(|one| request.figures.iter().any(|figure| figure.kind == one.figure) && !one.is_known(&request.known))
        .collect();
    let simulator = Simulator::new(request, threads, watch);
    let mut values = Values::of(&parameters);
    let Some(mut simulated) = simulator.figures(&values, "first round")? else { return Ok(None) };
    let miss = |simulated: &[f64]| {
        let shares =
            request.figures.iter().zip(simulated).map(|(figure, simulated)| (simulated / figure.value).ln().abs());
        shares.fold(0.0, f64::max)
    };
    let mut best = (miss(&simulated), values.clone(), simulated.clone());
    for round in 1..ROUNDS {
        if best.0 <= CLOSE {
            break;
        }
        values.follow(&request.figures, &simulated);
        let Some(found) = simulator.figures(&values, &format!("round {}", round + 1))? else { return Ok(None) };
        simulated = found;
        if miss(&simulated) < best.0 {
            best = (miss(&simulated), values.clone(), simulated.clone());
        }
    }
    let (_, values, simulated) = best;
    let Some(moved) = moves(&simulator, &request.figures, &values, &simulated)? else { return Ok(None) };
    let parameters = values.entries.iter().enumerate().map(|(place, entry)| Fitted {
        key: entry.parameter.key,
        value: entry.parameter.text(entry.value),
        figure: entry.parameter.figure,
        verdict: verdict(place, &moved, &values),
    });
    let figures = request.figures.iter().zip(&simulated);
    Ok(Some(Fit {
        parameters: parameters.collect(),
        figures: figures.map(|(&figure, &simulated)| Met { figure, simulated }).collect(),
    }))
}

/// For each parameter, by how much its nudge moves each figure, as shares of the nudge.
fn moves(
    simulator: &Simulator<'_>,
    figures: &[Figure],
    values: &Values,
    simulated: &[f64],
) -> Result<Option<Vec<Vec<f64>>>, WorkbenchError> {
    let mut rows = Vec::new();
    for place in 0..values.entries.len() {
        // Towards the side on which the figure is bound to notice: a limit is felt below it.
        let nudged = values.nudged(place, 1.0 - NUDGE);
        let (from, to) = (&values.entries[place], &nudged.entries[place]);
        let own = figures.iter().find(|figure| figure.kind == from.parameter.figure).map_or(1.0, |figure| figure.value);
        let share = from.share(to.value, own);
        let label = format!("what {} moves", values.entries[place].parameter.key);
        let Some(found) = simulator.figures(&nudged, &label)? else { return Ok(None) };
        rows.push(found.iter().zip(simulated).map(|(to, from)| (to / from).ln() / share).collect());
    }
    Ok(Some(rows))
}

fn verdict(place: usize, moved: &[Vec<f64>], values: &Values) -> Verdict {
    let row = &moved[place];
    if row.iter().all(|share| share.abs() < MOVES) {
        return Verdict::Free;
    }
    let alike = |other: &Vec<f64>| {
        let product: f64 = row.iter().zip(other).map(|(one, two)| one * two).sum();
        let length = |row: &[f64]| row.iter().map(|share| share * share).sum::<f64>().sqrt();
        product.abs() / (length(row) * length(other)) >= ALIKE
    };
    let others = (0..moved.len()).filter(|&other| other != place);
    let mut telling = others.filter(|&other| moved[other].iter().any(|share| share.abs() >= MOVES));
    telling
        .find(|&other| alike(&moved[other]))
        .map_or(Verdict::Determined, |other| Verdict::Like(values.entries[other].parameter.key))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parallel::tests::Unwatched;
    use measured::Loaded;

    /// A drive whose truth is known.
    const TRUTH: [(&str, f64); 6] = [
        ("drive.read_time", 71.0),
        ("drive.commands_per_second", 450_000.0),
        ("drive.read_rate", 3.1e9),
        ("host.submit_latency", 6.0),
        ("drive.over_provisioning", 0.2),
        ("drive.program_rate", 1.1e9),
    ];

    fn kinds() -> Vec<Figure> {
        let figure = |kind, block_bytes, depth| Figure { kind, block_bytes, depth, value: 1.0 };
        vec![
            figure(FigureKind::ReadAlone, 4096, 1),
            figure(FigureKind::ReadMany, 4096, 128),
            figure(FigureKind::ReadSequential, 131_072, 32),
            figure(FigureKind::WriteAlone, 4096, 1),
            figure(FigureKind::WriteMany, 4096, 64),
            figure(FigureKind::WriteSequential, 131_072, 32),
        ]
    }

    fn request(figures: Vec<Figure>) -> FitRequest {
        // Small, with the dies of a large one.
        let known = [("capacity", "128 GB"), ("channels", "8"), ("dies_per_channel", "8")];
        let known = known.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        FitRequest { known, host: "linux".to_owned(), figures, seed: 7 }
    }

    /// Figures of the drive that is the truth, under loads of another seed.
    fn of_truth() -> Vec<Figure> {
        let asked = FitRequest { seed: 3, ..request(kinds()) };
        let all: Vec<&Parameter> = PARAMETERS.iter().collect();
        let mut values = Values::of(&all);
        for entry in &mut values.entries {
            entry.value = TRUTH.iter().find(|one| one.0 == entry.parameter.key).expect("each has one").1;
        }
        let simulator = Simulator::new(&asked, None, &Unwatched);
        let found = simulator.figures(&values, "truth").expect("it is a drive").expect("it was not stopped");
        kinds().into_iter().zip(found).map(|(figure, value)| Figure { value, ..figure }).collect()
    }

    #[test]
    fn a_drive_whose_truth_is_known_is_found_again() {
        let found = fit(&request(of_truth()), None, &Unwatched).expect("it is a drive").expect("it was not stopped");
        assert!(found.worst() < 0.05, "{found:?}");
        for fitted in &found.parameters {
            let truth = TRUTH.iter().find(|one| one.0 == fitted.key).expect("each has one").1;
            let text = fitted.value.trim_matches('"');
            let number: f64 = text.split(' ').next().and_then(|number| number.parse().ok()).expect("a number");
            let value = number
                * if text.ends_with("ns") {
                    1e-3
                } else if text.ends_with("MB/s") {
                    1e6
                } else {
                    1.0
                };
            let near = (value / truth - 1.0).abs() < 0.1;
            assert!(near || fitted.verdict != Verdict::Determined, "{} is {text}, not {truth}: {found:?}", fitted.key);
        }
        assert!(found.parameters.iter().filter(|one| one.verdict == Verdict::Determined).count() >= 4, "{found:?}");
    }

    #[test]
    fn what_no_figure_shows_is_said() {
        // Four reads at once never keep a controller busy, however fast the drive was that was measured.
        let few = vec![Figure { kind: FigureKind::ReadMany, block_bytes: 4096, depth: 4, value: 1e6 }];
        let asked = request(few);
        let found = fit(&asked, None, &Unwatched).expect("it is a drive").expect("it was not stopped");
        let controller =
            found.parameters.iter().find(|one| one.key == "drive.commands_per_second").expect("it is fitted");
        assert_eq!(controller.verdict, Verdict::Free, "{found:?}");
        assert!(found.worst() > 0.5, "no value of it meets the figure: {found:?}");
        assert_eq!(found.drive_keys(&asked.known), asked.known, "an open key keeps its default");
    }

    #[test]
    fn known_keys_are_not_moved() {
        let figures = vec![Figure { kind: FigureKind::ReadAlone, block_bytes: 4096, depth: 1, value: 90.0 }];
        let known =
            vec![("capacity".to_owned(), "\"128 GB\"".to_owned()), ("read_time".to_owned(), "\"40 us\"".to_owned())];
        let found = fit(&FitRequest { known, ..request(figures) }, None, &Unwatched).expect("it is a drive");
        assert_eq!(found.expect("it was not stopped").parameters.len(), 0);
    }

    #[test]
    fn a_key_that_is_none_is_an_error_with_its_name() {
        let known = vec![("capacitty".to_owned(), "\"128 GB\"".to_owned())];
        let figures = vec![Figure { kind: FigureKind::ReadAlone, block_bytes: 4096, depth: 1, value: 90.0 }];
        let refused =
            fit(&FitRequest { known, ..request(figures) }, None, &Unwatched).expect_err("there is no such key");
        assert!(refused.to_string().contains("capacitty"), "{refused}");
        assert!(Loaded::of(&Value::Null).is_none());
    }
}
