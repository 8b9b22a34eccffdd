//! The text form of a case: short enough for a command line, and exact.
//!
//! `seed=7;size=40;power@e132+2ms;lose3@r14;stall0@t1500us+1ms`: a seed, perhaps a size, and the faults in order,
//! each as kind and drive, `@` and a moment (`e` event, `t` time, `r` events after the fault before), and
//! perhaps `+` and how long it lasts.

use crate::plan::{At, Case, Fault, FaultPlan};
use flashyard_units::{SimSpan, SimTime};
use std::fmt;
use std::str::FromStr;
use thiserror::Error;

/// A text that is no case.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("part {number} of the case, {part:?}: {problem}; a case is for example {EXAMPLE}")]
pub struct CaseError {
    /// Number of the part between semicolons, from 1.
    pub number: usize,
    /// The part.
    pub part: String,
    /// Its problem.
    pub problem: Problem,
}

/// The problem with a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Problem {
    /// The first part.
    #[error("expected seed= and a number")]
    Seed,
    /// The part that begins with `size=`.
    #[error("expected size= and a number up to 4294967295, right after the seed")]
    Size,
    /// Nothing between `@` and the end or `+`, or no `@`.
    #[error("expected a fault, @ and a moment")]
    NoMoment,
    /// Before `@`.
    #[error("expected power, or lose, link, withdraw, stall or spoil and the number of a drive")]
    Kind,
    /// After `@`.
    #[error("expected e and an event number, t and a time, or r and events after the fault before")]
    Moment,
    /// After `+`, or after `t`.
    #[error("expected a whole number and ps, ns, us, ms or s, up to 213 days")]
    Span,
    /// No `+` where one must be.
    #[error("expected + and how long it lasts")]
    NoSpan,
    /// A `+` where none can be.
    #[error("a withdrawal or damage is over at once and cannot last")]
    NeedlessSpan,
}

const EXAMPLE: &str = "seed=7;power@e132+2ms;lose3@r14";

/// Units of time with their picoseconds, the largest first.
const UNITS: [(&str, u64); 5] =
    [("s", 1_000_000_000_000), ("ms", 1_000_000_000), ("us", 1_000_000), ("ns", 1_000), ("ps", 1)];

impl FromStr for Case {
    type Err = CaseError;

    fn from_str(text: &str) -> Result<Self, CaseError> {
        let mut case = Self { seed: 0, size: None, plan: FaultPlan::NONE };
        for (index, part) in text.split(';').map(str::trim).enumerate() {
            let read = match index {
                0 => number(part.strip_prefix("seed=").unwrap_or_default())
                    .map(|seed| case.seed = seed)
                    .ok_or(Problem::Seed),
                _ if part.starts_with("size=") => {
                    let size = number(&part["size=".len()..]).and_then(|size| u32::try_from(size).ok());
                    case.size = size.filter(|_| index == 1);
                    case.size.map(|_| ()).ok_or(Problem::Size)
                }
                _ => fault(part).map(|one| case.plan.faults.push(one)),
            };
            read.map_err(|problem| CaseError { number: index + 1, part: part.to_owned(), problem })?;
        }
        Ok(case)
    }
}

fn fault(part: &str) -> Result<(At, Fault), Problem> {
    let (what, rest) = part.split_once('@').ok_or(Problem::NoMoment)?;
    let (moment, lasts) = match rest.split_once('+') {
        Some((moment, lasts)) => (at(moment)?, Some(span(lasts)?)),
        None => (at(rest)?, None),
    };
    let digits = what.find(|c: char| c.is_ascii_digit()).unwrap_or(what.len());
    let drive = || number(&what[digits..]).and_then(|drive| u32::try_from(drive).ok()).ok_or(Problem::Kind);
    let fault = match (&what[..digits], what.len() - digits) {
        ("power", 0) => Fault::PowerLoss { off_for: lasts.ok_or(Problem::NoSpan)? },
        ("lose", _) => Fault::LoseDrive { drive: drive()?, gone_for: lasts },
        ("link", _) => Fault::LinkDown { drive: drive()?, down_for: lasts },
        ("withdraw", _) => match lasts {
            Some(_) => return Err(Problem::NeedlessSpan),
            None => Fault::Withdraw { drive: drive()? },
        },
        ("spoil", _) => match lasts {
            Some(_) => return Err(Problem::NeedlessSpan),
            None => Fault::Spoil { drive: drive()? },
        },
        ("stall", _) => Fault::StallDrive { drive: drive()?, held_for: lasts.ok_or(Problem::NoSpan)? },
        _ => return Err(Problem::Kind),
    };
    Ok((moment, fault))
}

fn at(moment: &str) -> Result<At, Problem> {
    let kind = moment.chars().next().ok_or(Problem::NoMoment)?;
    let value = &moment[kind.len_utf8()..];
    match kind {
        'e' => number(value).map(At::Event).ok_or(Problem::Moment),
        'r' => number(value).map(At::After).ok_or(Problem::Moment),
        't' => Ok(At::Time(SimTime::from_ps(span(value)?.as_ps()))),
        _ => Err(Problem::Moment),
    }
}

fn span(text: &str) -> Result<SimSpan, Problem> {
    let digits = text.find(|c: char| !c.is_ascii_digit()).ok_or(Problem::Span)?;
    let (_, unit) = UNITS.iter().find(|(name, _)| *name == &text[digits..]).ok_or(Problem::Span)?;
    let ps = number(&text[..digits]).and_then(|count| count.checked_mul(*unit)).ok_or(Problem::Span)?;
    Ok(SimSpan::from_ps(ps))
}

/// A number of digits only: `u64::from_str` also takes a plus sign.
fn number(text: &str) -> Option<u64> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok()).flatten()
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "seed={}", self.seed)?;
        if let Some(size) = self.size {
            write!(f, ";size={size}")?;
        }
        self.plan.faults.iter().try_for_each(|(at, fault)| write!(f, ";{}", WithMoment(*fault, *at)))
    }
}

/// A fault with its moment between its kind and its duration.
struct WithMoment(Fault, At);

impl fmt::Display for WithMoment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0.kind())?;
        if let Some(drive) = self.0.drive() {
            write!(f, "{drive}")?;
        }
        match self.1 {
            At::Event(event) => write!(f, "@e{event}")?,
            At::After(events) => write!(f, "@r{events}")?,
            At::Time(time) => write!(f, "@t{}", Exactly(time.as_ps()))?,
        }
        self.0.lasts().map_or(Ok(()), |span| write!(f, "+{}", Exactly(span.as_ps())))
    }
}

/// Picoseconds in the largest unit that divides them.
struct Exactly(u64);

impl fmt::Display for Exactly {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The last unit divides everything.
        let (name, unit) = UNITS.into_iter().find(|(_, unit)| self.0.is_multiple_of(*unit)).unwrap_or(UNITS[4]);
        write!(f, "{}{name}", self.0 / unit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn any_span() -> impl Strategy<Value = SimSpan> {
        prop_oneof![any::<u64>(), (0_u64..9000).prop_map(|ms| ms * 1_000_000_000)].prop_map(SimSpan::from_ps)
    }

    fn any_fault() -> impl Strategy<Value = Fault> {
        let drive = any::<u32>();
        prop_oneof![
            any_span().prop_map(|off_for| Fault::PowerLoss { off_for }),
            (drive, prop::option::of(any_span())).prop_map(|(drive, gone_for)| Fault::LoseDrive { drive, gone_for }),
            (any::<u32>(), prop::option::of(any_span()))
                .prop_map(|(drive, down_for)| Fault::LinkDown { drive, down_for }),
            any::<u32>().prop_map(|drive| Fault::Withdraw { drive }),
            any::<u32>().prop_map(|drive| Fault::Spoil { drive }),
            (any::<u32>(), any_span()).prop_map(|(drive, held_for)| Fault::StallDrive { drive, held_for }),
        ]
    }

    fn any_moment() -> impl Strategy<Value = At> {
        prop_oneof![
            any::<u64>().prop_map(At::Event),
            any::<u64>().prop_map(At::After),
            any_span().prop_map(|span| At::Time(SimTime::from_ps(span.as_ps()))),
        ]
    }

    proptest! {
        #[test]
        fn every_case_survives_its_text(
            seed in any::<u64>(), size in prop::option::of(any::<u32>()),
            faults in prop::collection::vec((any_moment(), any_fault()), 0..6),
        ) {
            let case = Case { seed, size, plan: FaultPlan { faults } };
            prop_assert_eq!(case.to_string().parse(), Ok(case));
        }

        #[test]
        fn a_text_that_is_read_means_what_its_case_prints(text in "(seed=[0-9]{1,22};)?([a-z]{0,8}[0-9]{0,12}@?[etrx]?[0-9]{0,22}[a-zµ+;]{0,4}){0,3}") {
            if let Ok(case) = text.parse::<Case>() {
                prop_assert_eq!(case.to_string().parse(), Ok(case));
            }
        }
    }

    #[test]
    fn the_text_is_short_and_uses_the_largest_unit() {
        let plan = FaultPlan::one(At::Event(132), Fault::PowerLoss { off_for: SimSpan::from_ms(2) })
            .then(At::After(14), Fault::LoseDrive { drive: 3, gone_for: None })
            .then(At::Time(SimTime::from_ps(1_500_000_000)), Fault::StallDrive { drive: 0, held_for: SimSpan::ZERO });
        let case = Case { seed: 7, size: Some(40), plan };
        assert_eq!(case.to_string(), "seed=7;size=40;power@e132+2ms;lose3@r14;stall0@t1500us+0s");
    }

    #[test]
    fn spaces_around_parts_are_allowed() {
        assert_eq!(
            "seed=7; withdraw2@e5".parse::<Case>().map(|case| case.to_string()).as_deref(),
            Ok("seed=7;withdraw2@e5")
        );
    }

    #[test]
    fn bad_text_is_answered_with_the_part_and_what_belongs_there() {
        let check = |text: &str, number, problem| {
            let error = text.parse::<Case>().expect_err(text);
            assert_eq!((error.number, error.problem), (number, problem), "{text}");
        };
        check("", 1, Problem::Seed);
        check("power@e1+1ms", 1, Problem::Seed);
        check("seed=+7", 1, Problem::Seed);
        check("seed=18446744073709551616", 1, Problem::Seed);
        check("seed=7;size=4294967296", 2, Problem::Size);
        check("seed=7;power@e1+1ms;size=3", 3, Problem::Size);
        check("seed=7;", 2, Problem::NoMoment);
        check("seed=7;power", 2, Problem::NoMoment);
        check("seed=7;power@", 2, Problem::NoMoment);
        check("seed=7;power@e1", 2, Problem::NoSpan);
        check("seed=7;power3@e1+1ms", 2, Problem::Kind);
        check("seed=7;lose@e1", 2, Problem::Kind);
        check("seed=7;flood3@e1", 2, Problem::Kind);
        check("seed=7;lose4294967296@e1", 2, Problem::Kind);
        check("seed=7;lose3@x1", 2, Problem::Moment);
        check("seed=7;lose3@e", 2, Problem::Moment);
        check("seed=7;lose3@t5", 2, Problem::Span);
        check("seed=7;lose3@e1+5min", 2, Problem::Span);
        check("seed=7;lose3@e1+18446745s", 2, Problem::Span);
        check("seed=7;withdraw3@e1+5ms", 2, Problem::NeedlessSpan);
        assert_eq!(
            "seed=7;power@x".parse::<Case>().map_err(|error| error.to_string()),
            Err("part 2 of the case, \"power@x\": expected e and an event number, t and a time, or r and events after the \
                 fault before; a case is for example seed=7;power@e132+2ms;lose3@r14"
                .to_owned())
        );
    }
}
