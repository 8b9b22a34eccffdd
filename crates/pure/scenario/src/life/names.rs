//! Policies of a drive's life by name.

use crate::assemble::value;
use crate::parse::ScenarioError;
use flashyard_ftl::{Allocation, Frontiers, WearLeveling};

/// Forms of wear leveling that are accepted.
const LEVELING_FORMS: &str = "none, hot-cold-swap(TH), obp(TH,PT), dp(TH), pwl(PERCENT) or uneven(PERCENT)";

/// Wear leveling by name, `obp(4,8)`, as `key` says it.
///
/// Errors: an unknown name, wrong numbers in the brackets.
pub(crate) fn leveling(key: &'static str, text: &str) -> Result<WearLeveling, ScenarioError> {
    let wrong = || value(key, format!("there is no {text:?}, give {LEVELING_FORMS}"));
    let (name, rest) = text.split_once('(').unwrap_or((text, ""));
    let numbers: Vec<u32> = match rest.strip_suffix(')') {
        Some(inside) => {
            inside.split(',').map(|part| part.trim().parse().map_err(|_| wrong())).collect::<Result<_, _>>()?
        }
        None if rest.is_empty() => Vec::new(),
        None => return Err(wrong()),
    };
    match (name, numbers.as_slice()) {
        ("none", []) => Ok(WearLeveling::None),
        ("hot-cold-swap", &[threshold]) => Ok(WearLeveling::HotColdSwap { threshold }),
        ("obp", &[threshold, protection]) => {
            Ok(WearLeveling::OldBlockProtection { threshold, protection: protection.into() })
        }
        ("dp", &[threshold]) => Ok(WearLeveling::DualPool { threshold }),
        ("pwl", &[percent]) => Ok(WearLeveling::Progressive { percent }),
        ("uneven", &[percent]) => Ok(WearLeveling::UnevenFactor { percent }),
        _ => Err(wrong()),
    }
}

/// The name of a wear leveling, as [`leveling`] reads it.
pub(crate) fn leveling_name(leveling: WearLeveling) -> String {
    match leveling {
        WearLeveling::None => "none".to_owned(),
        WearLeveling::HotColdSwap { threshold } => format!("hot-cold-swap({threshold})"),
        WearLeveling::OldBlockProtection { threshold, protection } => format!("obp({threshold},{protection})"),
        WearLeveling::DualPool { threshold } => format!("dp({threshold})"),
        WearLeveling::Progressive { percent } => format!("pwl({percent})"),
        WearLeveling::UnevenFactor { percent } => format!("uneven({percent})"),
    }
}

/// Allocation by name, as `key` says it.
pub(crate) fn allocation(key: &'static str, text: &str) -> Result<Allocation, ScenarioError> {
    match text {
        "fifo" => Ok(Allocation::Fifo),
        "youngest-first" => Ok(Allocation::YoungestFirst),
        "oldest-first" => Ok(Allocation::OldestFirst),
        "wear-focusing" => Ok(Allocation::WearFocusing),
        _ => {
            let forms = "fifo, youngest-first, oldest-first or wear-focusing";
            Err(value(key, format!("there is no {text:?}, give {forms}")))
        }
    }
}

/// Frontiers by name, as `key` says them.
pub(crate) fn frontiers(key: &'static str, text: &str) -> Result<Frontiers, ScenarioError> {
    match text {
        "shared" => Ok(Frontiers::Shared),
        "separate" => Ok(Frontiers::Separate),
        _ => Err(value(key, format!("there is no {text:?}, give shared or separate"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_wear_leveling_is_read_back_by_its_name() {
        for name in ["none", "hot-cold-swap(8)", "obp(4,8)", "dp(5)", "pwl(50)", "uneven(70)"] {
            assert_eq!(leveling_name(leveling("key", name).expect("it is one of the forms")), name);
        }
    }

    #[test]
    fn wrong_forms_are_told_the_right_ones() {
        for name in ["obp", "obp(4)", "dp(5", "pwl(x)", "greedy", "dp(-1)", "none(1)"] {
            let message = leveling("key", name).expect_err("it is wrong").to_string();
            assert!(message.contains(LEVELING_FORMS) && message.contains(name), "{message}");
        }
        assert!(allocation("life.allocation", "lifo").expect_err("it is wrong").to_string().contains("youngest-first"));
        assert!(frontiers("key", "one").expect_err("it is wrong").to_string().contains("separate"));
    }
}
