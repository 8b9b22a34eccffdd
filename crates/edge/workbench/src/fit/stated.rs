//! Figures as data sheets state them: `write-many=62.5 k/s`, `read-many=645 k/s at 128`.

use super::measured::{Figure, FigureKind};
use flashyard_scenario::{Rate, Time};

/// Loads by the names of the jobs of `flashyard fit --jobs`, with their bytes of a request and their depth.
const LOADS: [(&str, FigureKind, u64, u32); 6] = [
    ("read-alone", FigureKind::ReadAlone, 4096, 1),
    ("read-many", FigureKind::ReadMany, 4096, 256),
    ("read-sequential", FigureKind::ReadSequential, 131_072, 32),
    ("write-alone", FigureKind::WriteAlone, 4096, 1),
    ("write-many", FigureKind::WriteMany, 4096, 256),
    ("write-sequential", FigureKind::WriteSequential, 131_072, 32),
];
/// Units of requests a second.
const REQUESTS: [(&str, f64); 3] = [("M/s", 1e6), ("k/s", 1e3), ("/s", 1.0)];
/// The word before a depth.
const AT: &str = " at ";

/// Why a text states no figure.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StatedError {
    /// It has no value.
    #[error("{0:?} states no figure: give LOAD=VALUE, for example write-many=\"62.5 k/s\"")]
    Form(String),
    /// There is no such load.
    #[error(
        "there is no load {0:?}: give read-alone, read-many, read-sequential, write-alone, write-many or write-sequential"
    )]
    Load(String),
    /// A value that its load does not have.
    #[error("{load}: {message}")]
    Value {
        /// The load.
        load: &'static str,
        /// The mistake, and what is accepted.
        message: String,
    },
}

/// The figure that a text states: a load, its value with a unit, and the depth where it is not that of `flashyard fit --jobs`.
///
/// Errors: another form, a load that is none of the six, a value without its unit, a depth that its load does not have.
pub fn stated(text: &str) -> Result<Figure, StatedError> {
    let (load, rest) = text.split_once('=').ok_or_else(|| StatedError::Form(text.to_owned()))?;
    let found = LOADS.iter().find(|(name, ..)| *name == load.trim());
    let &(load, kind, block_bytes, usual) = found.ok_or_else(|| StatedError::Load(load.trim().to_owned()))?;
    let wrong = |message: String| StatedError::Value { load, message };
    let (value, depth) = match rest.split_once(AT) {
        None => (rest, usual),
        Some((value, depth)) => {
            let depth = depth.trim().parse().ok().filter(|depth| (1..=65_536).contains(depth));
            (value, depth.ok_or_else(|| wrong(format!("{rest:?} has no depth of 1 to 65536 behind \"at\"")))?)
        }
    };
    let value = value_of(kind, value.trim()).map_err(wrong)?;
    if usual == 1 && depth != 1 {
        return Err(wrong("its depth is 1".to_owned()));
    }
    Ok(Figure { kind, block_bytes, depth, value })
}

/// A value in the unit of its load.
fn value_of(kind: FigureKind, text: &str) -> Result<f64, String> {
    let value = match kind {
        FigureKind::ReadAlone | FigureKind::WriteAlone => Time::parse(text)?.0.as_us_f64(),
        FigureKind::ReadSequential | FigureKind::WriteSequential => Rate::parse(text)?.0.get() as f64,
        FigureKind::ReadMany | FigureKind::WriteMany => {
            let split = REQUESTS.iter().find_map(|(unit, scale)| Some((text.strip_suffix(unit)?, scale)));
            let number = split.and_then(|(number, scale)| Some(number.trim().parse::<f64>().ok()? * scale));
            number
                .ok_or_else(|| format!("{text:?} is no rate of requests; write a number and a unit of k/s, M/s, /s"))?
        }
    };
    if value.is_finite() && value > 0.0 { Ok(value) } else { Err(format!("{text:?} is not above zero")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_stated_in_their_units() {
        let figure = |kind, block_bytes, depth, value| Ok(Figure { kind, block_bytes, depth, value });
        assert_eq!(stated("read-alone=115 us"), figure(FigureKind::ReadAlone, 4096, 1, 115.0));
        assert_eq!(stated("read-many = 645 k/s at 128"), figure(FigureKind::ReadMany, 4096, 128, 645e3));
        assert_eq!(stated("write-many=1.2M/s"), figure(FigureKind::WriteMany, 4096, 256, 1.2e6));
        assert_eq!(stated("write-many=62500 /s"), figure(FigureKind::WriteMany, 4096, 256, 62_500.0));
        assert_eq!(stated("read-sequential=3.2 GB/s"), figure(FigureKind::ReadSequential, 131_072, 32, 3.2e9));
    }

    #[test]
    fn other_texts_are_refused_with_what_is_accepted() {
        for (text, part) in [
            ("read-alone", "LOAD=VALUE"),
            ("reads=3 us", "read-sequential"),
            ("read-alone=115", "unit is missing"),
            ("read-alone=0 us", "not above zero"),
            ("read-alone=115 us at 2", "its depth is 1"),
            ("read-many=645 at 128", "k/s"),
            ("read-many=nan k/s", "not above zero"),
            ("read-many=1 k/s at 0", "depth of 1 to 65536"),
            ("write-sequential=3 GB", "GB/s"),
        ] {
            let error = stated(text).expect_err("it is wrong").to_string();
            assert!(error.contains(part), "{text}: {error}");
        }
    }
}
