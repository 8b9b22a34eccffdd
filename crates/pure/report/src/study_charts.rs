//! Studies as pages of charts: published figures beside ours, and the runs of a study.

use crate::capacity::{CapacityRecord, CapacitySample};
use crate::charts::{Chart, ChartAxis, ChartForm, ChartPage, ChartPanel, ChartSection, ChartSeries, ChartTable};
use crate::expectation::{Comparison, agreement};
use crate::lifetime::LifeRecord;

/// Unit of an expectation that is a sentence, true or not.
const CLAIM: &str = "claim";

/// A figure and its place.
#[derive(Clone, Debug, PartialEq)]
pub struct Bar {
    /// Panel that shows it.
    pub panel: String,
    /// Group of bars in it.
    pub category: String,
    /// Bar of the group.
    pub series: String,
    /// The figure.
    pub value: f64,
}

/// A run and its place: its panel, its name there, its record.
pub type Placed<'a, R> = (String, String, &'a R);

/// A study as a page: its own sections, then every published figure beside ours.
pub fn study_page(
    name: &str,
    complete: bool,
    sections: Vec<ChartSection>,
    comparisons: &[Comparison],
    version: &str,
) -> ChartPage {
    let mut sections = sections;
    sections.push(beside(
        "published",
        "How close does it come to what is published?",
        format!("{}.", agreement(comparisons)),
        comparisons,
    ));
    ChartPage {
        kind: "Flashyard reproduction".to_owned(),
        title: name.to_owned(),
        facts: vec![(
            "Published numbers".to_owned(),
            comparisons.iter().filter(|one| one.is_a_number()).count().to_string(),
        )],
        complete,
        sections,
        version: version.to_owned(),
    }
}

/// Published figures beside ours as bars, a panel for each unit; claims stand in the table alone.
pub fn beside(id: &str, title: &str, finding: String, comparisons: &[Comparison]) -> ChartSection {
    let measured = comparisons.iter().filter(|one| one.unit != CLAIM && one.measured.is_some());
    let panels = grouped(measured.map(|one| (one.unit.clone(), one))).into_iter().map(|(unit, ours)| {
        let values = |figure: fn(&Comparison) -> Option<f64>| ours.iter().map(move |one| figure(one));
        let chart = Chart::bars(
            "Published and measured",
            ChartAxis::new("", &unit),
            ours.iter().map(|one| one.id.clone()).collect(),
            vec![
                ChartSeries::of_categories("published", values(|one| Some(one.published))),
                ChartSeries::of_categories("measured", values(|one| one.measured)),
            ],
        );
        ChartPanel { name: unit, charts: vec![chart] }
    });
    ChartSection::choice(id, title, finding, "Unit", panels.collect()).with_table(figures(comparisons))
}

/// Bars by panel, group and colour, in the order in which each comes first.
pub fn bar_panels(caption: &str, axis: &ChartAxis, bars: &[Bar]) -> Vec<ChartPanel> {
    let panel = |(name, bars): (String, Vec<&Bar>)| {
        let mut categories: Vec<String> = Vec::new();
        for bar in &bars {
            if !categories.contains(&bar.category) {
                categories.push(bar.category.clone());
            }
        }
        let series = grouped(bars.into_iter().map(|bar| (bar.series.clone(), bar))).into_iter().map(|(name, own)| {
            let value = |category: &String| own.iter().find(|bar| bar.category == *category).map(|bar| bar.value);
            ChartSeries::of_categories(&name, categories.iter().map(value))
        });
        let series = series.collect();
        ChartPanel { charts: vec![Chart::bars(caption, axis.clone(), categories, series)], name }
    };
    grouped(bars.iter().map(|bar| (bar.panel.clone(), bar))).into_iter().map(panel).collect()
}

/// Erase counts of the superblocks at the end of lives, by rank.
pub fn erases_section(id: &str, title: &str, finding: String, lives: &[Placed<'_, LifeRecord>]) -> ChartSection {
    let panels = placed(lives).map(|(name, lives)| {
        let ranks = |life: &LifeRecord| -> Vec<(f64, f64)> {
            let ranks = (0_u32..).zip(&life.erase_percentiles);
            ranks.map(|(rank, &erases)| (f64::from(rank) / 100.0, f64::from(erases))).collect()
        };
        let chart = Chart::lines(
            "Erases that a share of the superblocks does not exceed",
            ChartAxis::new("superblocks", "share"),
            ChartAxis::new("erases", ""),
            lives.into_iter().map(|(name, life)| ChartSeries::new(&name, ranks(life))).collect(),
        );
        ChartPanel { name, charts: vec![chart] }
    });
    ChartSection::choice(id, title, finding, "Load", panels.collect())
}

/// Capacity and performance that lives of capacity-variant drives keep, against each other and over writes.
pub fn capacity_section(id: &str, title: &str, finding: String, lives: &[Placed<'_, CapacityRecord>]) -> ChartSection {
    let panels = placed(lives).map(|(name, lives)| ChartPanel { name, charts: capacity_charts(&lives) });
    ChartSection::choice(id, title, finding, "Load and causes", panels.collect())
}

fn capacity_charts(lives: &[(String, &CapacityRecord)]) -> Vec<Chart> {
    let pages = lives.iter().flat_map(|(_, life)| &life.samples).map(|sample| sample.logical_pages);
    let most = f64::from(pages.max().unwrap_or(1).max(1));
    let capacity = move |sample: &CapacitySample| f64::from(sample.logical_pages) / most;
    let series = |x: &dyn Fn(&CapacitySample) -> f64, y: &dyn Fn(&CapacitySample) -> f64| -> Vec<ChartSeries> {
        let of = |life: &CapacityRecord| life.samples.iter().map(|sample| (x(sample), y(sample))).collect::<Vec<_>>();
        lives.iter().map(|(name, life)| ChartSeries::new(name, of(life))).collect()
    };
    let over = |caption: &str, y: ChartAxis, figure: &dyn Fn(&CapacitySample) -> f64| {
        Chart::lines(caption, written(), y, series(&|sample| sample.written_bytes, figure))
    };
    let performance = || ChartAxis::new("of the first performance", "share");
    vec![
        Chart::lines(
            "Performance against capacity, from new to dead",
            ChartAxis::new("capacity left", "share"),
            performance(),
            series(&capacity, &|sample| sample.performance),
        )
        .drawn_as(ChartForm::Curve),
        over("Performance", performance(), &|sample| sample.performance),
        over("Capacity", ChartAxis::new("capacity left", "share"), &capacity),
        over("Write amplification of the drive", ChartAxis::new("pages for a page of the host", ""), &|sample| {
            sample.amplification
        }),
    ]
}

fn written() -> ChartAxis {
    ChartAxis::new("written by the host", "B")
}

/// A figure along a factor, a curve for each name.
pub fn factor_chart(caption: &str, factor: &str, figure: ChartAxis, curves: &[(String, Vec<(f64, f64)>)]) -> Chart {
    let series = curves.iter().map(|(name, points)| ChartSeries::new(name, points.iter().copied()));
    Chart::lines(caption, ChartAxis::near(factor, ""), figure, series.collect()).drawn_as(ChartForm::Curve)
}

/// Runs by panel, in the order in which each panel comes first.
fn placed<'a, R>(runs: &[Placed<'a, R>]) -> impl Iterator<Item = (String, Vec<(String, &'a R)>)> {
    grouped(runs.iter().map(|(panel, name, record)| (panel.clone(), (name.clone(), *record)))).into_iter()
}

fn grouped<T>(entries: impl Iterator<Item = (String, T)>) -> Vec<(String, Vec<T>)> {
    let mut groups: Vec<(String, Vec<T>)> = Vec::new();
    for (name, entry) in entries {
        match groups.iter_mut().find(|group| group.0 == name) {
            Some(group) => group.1.push(entry),
            None => groups.push((name, vec![entry])),
        }
    }
    groups
}

fn figures(comparisons: &[Comparison]) -> ChartTable {
    let head = ["Number", "What is measured", "Where", "Kind", "Unit", "Published", "Measured", "Tolerance", "Verdict"];
    let row = |one: &Comparison| {
        vec![
            one.id.clone(),
            one.metric.clone(),
            one.r#where.clone(),
            one.kind_in_words(),
            one.unit.clone(),
            format!("{}{}", one.relation.sign(), number(one.published)),
            one.measured.map_or("–".to_owned(), number),
            number(one.tolerance),
            one.verdict().name().to_owned(),
        ]
    };
    ChartTable {
        caption: "Every published number beside ours".to_owned(),
        head: head.map(str::to_owned).to_vec(),
        rows: comparisons.iter().map(row).collect(),
    }
}

fn number(value: f64) -> String {
    let text = format!("{value:.3}");
    let short = text.trim_end_matches('0').trim_end_matches('.');
    if short == "-0" { "0".to_owned() } else { short.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::expectation::Expectation;
    use crate::expectation::tests::expectation;
    use crate::lifetime::tests::life;

    fn comparison(id: &str, unit: &str, published: f64, measured: Option<f64>) -> Comparison {
        let text = |text: &str| text.to_owned();
        let expectation = Expectation {
            id: text(id),
            r#where: text("Fig. 1"),
            metric: text("lifetime"),
            unit: text(unit),
            ..expectation(published, 0.5)
        };
        Comparison::new(&expectation, &[], measured)
    }

    fn bar(panel: &str, category: &str, series: &str, value: f64) -> Bar {
        Bar { panel: panel.to_owned(), category: category.to_owned(), series: series.to_owned(), value }
    }

    #[test]
    fn published_figures_stand_beside_ours_by_unit_and_claims_in_the_table_alone() {
        let all = [
            comparison("a", "times", 2.0, Some(2.2)),
            comparison("b", "%", 84.0, Some(10.0)),
            comparison("c", "times", 3.0, None),
            comparison("d", "claim", 1.0, Some(1.0)),
        ];
        let page = study_page("study", true, Vec::new(), &all, "0");
        let section = &page.sections[0];
        let names: Vec<&str> = section.panels.iter().map(|panel| panel.name.as_str()).collect();
        assert_eq!(names, ["times", "%"]);
        let chart = &section.panels[0].charts[0];
        assert_eq!(chart.categories, ["a"]);
        assert_eq!(chart.series[0].points, [(0.0, Some(2.0))]);
        assert_eq!(chart.series[1].points, [(0.0, Some(2.2))]);
        let rows: Vec<[&str; 5]> =
            section.tables[0].rows.iter().map(|row| [0, 3, 5, 6, 8].map(|column| &row[column][..])).collect();
        assert_eq!(rows[1], ["b", "predicted", "84", "10", "disagrees"]);
        assert_eq!(rows[2], ["c", "predicted", "3", "–", "not measured"]);
        assert_eq!(rows[3], ["d", "predicted", "1", "1", "agrees"]);
    }

    #[test]
    fn bars_without_a_value_leave_a_gap_in_their_group() {
        let bars = [bar("p", "x", "one", 1.0), bar("p", "y", "two", 2.0), bar("q", "x", "one", 3.0)];
        let panels = bar_panels("lives", &ChartAxis::new("", "drives"), &bars);
        assert_eq!((panels.len(), &panels[1].name[..]), (2, "q"));
        let chart = &panels[0].charts[0];
        assert_eq!(chart.categories, ["x", "y"]);
        assert_eq!(chart.series[0].points, [(0.0, Some(1.0)), (1.0, None)]);
        assert_eq!(chart.series[1].points, [(0.0, None), (1.0, Some(2.0))]);
    }

    #[test]
    fn lives_of_one_load_share_a_panel() {
        let (first, second) = (life(), life());
        let lives = [
            ("A".to_owned(), "none".to_owned(), &first),
            ("B".to_owned(), "none".to_owned(), &first),
            ("A".to_owned(), "pwl(50)".to_owned(), &second),
        ];
        let section = erases_section("erases", "How?", "So.".to_owned(), &lives);
        let series: Vec<usize> = section.panels.iter().map(|panel| panel.charts[0].series.len()).collect();
        assert_eq!(series, [2, 1]);
        assert_eq!(section.panels[0].charts[0].series[0].points.len(), 101);
    }

    #[test]
    fn capacity_is_a_share_of_the_most_that_any_life_has() {
        let sample = |logical_pages, performance| CapacitySample {
            written_bytes: 1e12,
            performance,
            requests_per_second: 1e3 * performance,
            written_bytes_per_second: 1e6 * performance,
            read_p99_us: 100.0,
            read_mean_us: 50.0,
            operation_mean_us: 50.0,
            operation_p99_us: 50.0,
            delayed: 0.0,
            blocked: 0.0,
            waited: 0.0,
            retries_mean: 0.0,
            retried: 0.0,
            retries_p99: 0,
            amplification: 1.5,
            retired: 0,
            logical_pages,
            degraded: false,
            in_one_state: 0.0,
            misjudged: 0.0,
        };
        let record = CapacityRecord {
            name: String::new(),
            death: None,
            written_bytes: 2e12,
            written_bytes_at_80: 1e12,
            amplification: 1.5,
            file_system_amplification: 1.0,
            retries_mean: 0.0,
            retries_per_read: 0.0,
            erases_mean: 0.0,
            reductions: (0, 0),
            remapped_pages: (0, 0),
            samples: vec![sample(200, 1.0), sample(100, 0.9)],
        };
        let lives = [("zipf".to_owned(), "cv".to_owned(), &record)];
        let section = capacity_section("capacity", "What?", "So.".to_owned(), &lives);
        let charts = &section.panels[0].charts;
        assert_eq!(charts[0].series[0].points, [(1.0, Some(1.0)), (0.5, Some(0.9))]);
        assert_eq!(charts[1].series[0].points[1], (1e12, Some(0.9)));
        assert_eq!(charts[2].series[0].points[1], (1e12, Some(0.5)));
    }

    #[test]
    fn numbers_end_where_they_are_exact() {
        let cases = [(2.0, "2"), (0.816, "0.816"), (-0.0001, "0"), (-5.5, "-5.5"), (100.0, "100")];
        for (value, text) in cases {
            assert_eq!(number(value), text);
        }
    }
}
