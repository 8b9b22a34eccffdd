//! The study as charts: lifetimes as bars, published beside measured; erase counts by policy.

use super::runs::{End, LifeRun, Load, Victims};
use flashyard_report::{
    Bar, ChartAxis, ChartSection, Comparison, LifeRecord, agreement, bar_panels, beside, erases_section,
};
use flashyard_workload::surrogates::TRACES;

/// Units in which the source states lifetimes.
const LIFETIME_UNITS: [&str; 3] = ["times", "%", "drives"];

pub(super) fn sections(lives: &[(LifeRun, LifeRecord)], comparisons: &[Comparison]) -> Vec<ChartSection> {
    vec![lifetimes(comparisons), by_trace(lives), erases(lives)]
}

/// Numbers made of lives until death.
fn lifetimes(comparisons: &[Comparison]) -> ChartSection {
    let made = super::lifetimes::numbers().into_iter().chain(super::bounded::numbers());
    let ids: Vec<String> =
        made.filter(|number| number.runs.iter().all(|run| !run.end.is_never())).map(|number| number.id).collect();
    let of_lives = |one: &&Comparison| ids.contains(&one.id) && LIFETIME_UNITS.contains(&one.unit.as_str());
    let chosen: Vec<Comparison> = comparisons.iter().filter(of_lives).cloned().collect();
    let finding = format!("{}.", agreement(&chosen));
    beside("lifetimes", "How long do drives live, and how long should they?", finding, &chosen)
}

/// Every life until death under a trace.
fn by_trace(lives: &[(LifeRun, LifeRecord)]) -> ChartSection {
    let bar = |(run, life): &(LifeRun, LifeRecord)| {
        let Load::Trace(place) = run.load else { return None };
        let panel = match run.end {
            End::Never { .. } => return None,
            End::Fixed => "fixed".to_owned(),
            End::Variable => "variable".to_owned(),
            End::Bounded(gib) => format!("relocation of at most {gib} GiB"),
        };
        let panel = match run.victims {
            Victims::Greedy => panel,
            Victims::CostBenefit => format!("{panel}, cost-benefit victims"),
            Victims::Score => format!("{panel}, victims of the printed score"),
        };
        let (category, series) = (TRACES[place].name.to_owned(), run.leveling.to_string());
        Some(Bar { panel, category, series, value: life.drive_writes() })
    };
    let mut bars: Vec<Bar> = lives.iter().filter_map(bar).collect();
    // A policy has the same colour in every panel.
    bars.sort_by_key(|bar| (bar.series != "none", bar.series.clone()));
    let longest = bars.iter().max_by(|a, b| a.value.total_cmp(&b.value));
    let finding = longest.map_or_else(
        || "No life under a trace was asked for.".to_owned(),
        |bar| {
            format!(
                "The longest of {} lives: {:.0} drive writes under {}, capacity {}, wear leveling {}.",
                bars.len(),
                bar.value,
                bar.category,
                bar.panel,
                bar.series
            )
        },
    );
    let panels = bar_panels("Host writes until death, by trace", &ChartAxis::new("drive writes", "drives"), &bars);
    ChartSection::choice("traces", "What does each policy make of each trace?", finding, "Capacity", panels)
}

/// Erase counts after 100 drive writes without retirement.
fn erases(lives: &[(LifeRun, LifeRecord)]) -> ChartSection {
    let placed = |(run, life): &'_ (LifeRun, LifeRecord)| {
        match run.load {
            Load::Hot { traffic, space, footprint } => {
                let panel = format!("{traffic} % of writes to {space} % of {footprint} % of the drive");
                Some((panel, run.leveling.to_string()))
            }
            Load::Trace(_) => None,
        }
        .map(|(panel, name)| (panel, name, life.clone()))
    };
    let found: Vec<(String, String, LifeRecord)> = lives.iter().filter_map(placed).collect();
    let chosen: Vec<(String, String, &LifeRecord)> =
        found.iter().map(|(panel, name, life)| (panel.clone(), name.clone(), life)).collect();
    let widest = chosen.iter().max_by(|a, b| a.2.last.erases_deviation.total_cmp(&b.2.last.erases_deviation));
    let finding = widest.map_or_else(
        || "No such life was asked for.".to_owned(),
        |(panel, name, life)| {
            let deviation = life.last.erases_deviation;
            format!("After 100 drive writes the widest spread is that of {name}: a deviation of {deviation:.0} erases, {panel}.")
        },
    );
    erases_section("erases", "How evenly do policies wear?", finding, &chosen)
}
