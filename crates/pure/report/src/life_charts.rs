//! A life as a page of charts.

use crate::charts::{Chart, ChartAxis, ChartForm, ChartPage, ChartSection, ChartSeries, ChartTable};
use crate::course::{LifeCourse, LifeMoment};
use crate::figure::digits;
use crate::lifetime::LifeRecord;

/// Histograms of a page. [A] as many as a reader tells apart
const HISTOGRAMS: usize = 10;

/// Steps of a histogram, at most. [A] a few pixels each
const STEPS_MAX: u32 = 60;

/// Name of the horizontal axes.
const WRITTEN: &str = "written by the host";

/// A life from new to its end as a page.
///
/// `name`, `title` and `facts` describe the aged drive; `life` is its record and `course` its moments.
pub fn life_page(
    name: &str,
    title: &str,
    facts: Vec<(String, String)>,
    life: &LifeRecord,
    course: &LifeCourse,
    version: &str,
) -> ChartPage {
    let end = match &life.death {
        Some(cause) => format!("{cause}, after {:.1} drive writes", life.drive_writes()),
        None => format!("alive after {:.1} drive writes", life.drive_writes()),
    };
    // The page gives most room to the first two.
    let mut all =
        vec![("Life".to_owned(), format!("{title}: {end}")), ("Errors of reads".to_owned(), course.errors.clone())];
    all.push(("Capacity when new".to_owned(), bytes(course.drive_bytes as f64)));
    all.extend(facts);
    ChartPage {
        kind: "Flashyard life of a drive".to_owned(),
        title: name.to_owned(),
        facts: all,
        complete: true,
        sections: vec![wear(course), amplification(life, course), reads(course), capacity(life, course)],
        version: version.to_owned(),
    }
}

fn wear(course: &LifeCourse) -> ChartSection {
    let chosen = course.evenly(HISTOGRAMS);
    let over = |name: &str, percent| over_life(course, name, move |moment| f64::from(moment.erases_at(percent)));
    let quantiles = [("most", 100), ("p99", 99), ("median", 50), ("p1", 1), ("least", 0)];
    let charts = vec![
        Chart::lines(
            "Superblocks by erases since new, at moments evenly apart",
            ChartAxis::new("erases of a superblock", ""),
            ChartAxis::new("superblocks in a step", "share"),
            histograms(&chosen),
        )
        .drawn_as(ChartForm::Steps),
        Chart::lines(
            "Erases of superblocks over life",
            ChartAxis::new(WRITTEN, "B"),
            ChartAxis::new("erases", ""),
            quantiles.into_iter().map(|(name, percent)| over(name, percent)).collect(),
        ),
    ];
    let finding = chosen.last().map_or_else(
        || "Nothing was written.".to_owned(),
        |last| {
            format!(
                "At the end a superblock has had {:.1} erases on average, with a deviation of {:.1}; the least {}, the most {}{}.",
                last.sample.erases_mean,
                last.sample.erases_deviation,
                last.sample.erases_min,
                last.sample.erases_max,
                course.endurance.map_or_else(String::new, |endurance| format!(", of {endurance} it is made for"))
            )
        },
    );
    ChartSection::of("wear", "How evenly does it wear?", finding, charts).with_table(table(&chosen))
}

fn amplification(life: &LifeRecord, course: &LifeCourse) -> ChartSection {
    let found = course.amplifications();
    let of = |name: &str, figure: fn(&crate::course::Amplification) -> f64| {
        let moments = course.moments.iter().map(|moment| moment.sample.host_bytes());
        ChartSeries::partly(name, moments.zip(&found).skip(1).map(|(x, one)| (x, one.as_ref().map(figure))))
    };
    let chart = Chart::lines(
        "Slots programmed for each slot of the host, since the moment before",
        ChartAxis::new(WRITTEN, "B"),
        ChartAxis::new("slots for a slot of the host", ""),
        vec![
            of("total", |one| one.total),
            of("moved by reclaim", |one| one.reclaim),
            of("moved by wear leveling", |one| one.leveling),
        ],
    );
    let finding = format!(
        "Over its life the drive programs {:.2} slots for each that the host writes: reclaim moves {:.2}, wear leveling {:.2}.",
        1.0 + life.reclaim_share() + life.leveling_share(),
        life.reclaim_share(),
        life.leveling_share()
    );
    ChartSection::of("amplification", "How much is written for a write of the host?", finding, vec![chart])
}

fn reads(course: &LifeCourse) -> ChartSection {
    let charts = vec![
        Chart::lines(
            "Raw bit errors of what the drive holds",
            ChartAxis::new(WRITTEN, "B"),
            ChartAxis::new("wrong bits before correction", "%"),
            vec![
                over_life(course, "worst superblock", |moment| 100.0 * moment.reads.error_rate_max),
                over_life(course, "mean", |moment| 100.0 * moment.reads.error_rate_mean),
            ],
        ),
        Chart::lines(
            "Retries of a read of any data",
            ChartAxis::new(WRITTEN, "B"),
            ChartAxis::new("retries a read, mean", ""),
            vec![over_life(course, "retries", |moment| moment.reads.retries_mean)],
        ),
    ];
    let first = course.moments.iter().find(|moment| moment.reads.retried_share >= 0.5);
    let end = course.moments.last().map_or(0.0, |moment| moment.reads.retries_mean);
    let half = match first {
        Some(moment) => {
            format!("half of the data needs a retry after {}", bytes(moment.sample.host_bytes()))
        }
        None => "less than half of the data ever needs a retry".to_owned(),
    };
    let finding = format!("At the end a read is retried {end:.2} times on average; {half}.");
    ChartSection::of("reads", "How often must it read again?", finding, charts)
}

fn capacity(life: &LifeRecord, course: &LifeCourse) -> ChartSection {
    let chart = Chart::lines(
        "Capacity over life",
        ChartAxis::new(WRITTEN, "B"),
        ChartAxis::new("capacity", "B"),
        vec![
            over_life(course, "flash not retired", |moment| moment.usable_bytes() as f64),
            over_life(course, "exported", |moment| moment.exported_bytes() as f64),
        ],
    );
    let left = 100.0 * f64::from(life.last.logical_slots) / f64::from(life.drive_slots.max(1));
    let finding =
        format!("At the end {left:.1} % of the capacity is left, and {} superblocks are retired.", life.last.retired);
    ChartSection::of("capacity", "How much can it hold?", finding, vec![chart])
}

/// A figure of every moment by what the host had written.
fn over_life(course: &LifeCourse, name: &str, figure: impl Fn(&LifeMoment) -> f64) -> ChartSeries {
    ChartSeries::new(name, course.moments.iter().map(|moment| (moment.sample.host_bytes(), figure(moment))))
}

/// A histogram of each moment, in steps of one width.
fn histograms(moments: &[&LifeMoment]) -> Vec<ChartSeries> {
    let most = moments.iter().map(|moment| moment.sample.erases_max).max().unwrap_or(0);
    let width = (most / STEPS_MAX).max(1);
    moments.iter().map(|moment| histogram(moment, width)).collect()
}

/// One histogram: the middle of each step and the share of the superblocks in it, an empty step on either side.
fn histogram(moment: &LifeMoment, width: u32) -> ChartSeries {
    let all: u32 = moment.erase_counts.iter().map(|&(_, superblocks)| superblocks).sum();
    let step_of = |erases: u32| i64::from(erases / width);
    let first = moment.erase_counts.first().map_or(0, |&(erases, _)| step_of(erases));
    let last = moment.erase_counts.last().map_or(0, |&(erases, _)| step_of(erases));
    let share = |step: i64| {
        let inside = moment.erase_counts.iter().filter(|&&(erases, _)| step_of(erases) == step);
        f64::from(inside.map(|&(_, superblocks)| superblocks).sum::<u32>()) / f64::from(all.max(1))
    };
    let middle = |step: i64| step as f64 * f64::from(width) + f64::from(width - 1) / 2.0;
    let steps = (first - 1..=last + 1).filter(|&step| step >= 0).map(|step| (middle(step), share(step)));
    ChartSeries::new(&bytes(moment.sample.host_bytes()), steps)
}

fn table(moments: &[&LifeMoment]) -> ChartTable {
    let head = [
        "Written",
        "Erases, mean",
        "Deviation",
        "Least",
        "p1",
        "Median",
        "p99",
        "Most",
        "Retries a read",
        "Wrong bits",
        "Exported",
        "Retired",
    ];
    let row = |moment: &&LifeMoment| {
        let LifeMoment { sample, reads, .. } = moment;
        vec![
            bytes(sample.host_bytes()),
            format!("{:.1}", sample.erases_mean),
            format!("{:.1}", sample.erases_deviation),
            sample.erases_min.to_string(),
            moment.erases_at(1).to_string(),
            moment.erases_at(50).to_string(),
            moment.erases_at(99).to_string(),
            sample.erases_max.to_string(),
            format!("{:.2}", reads.retries_mean),
            format!("{} %", digits(100.0 * reads.error_rate_mean)),
            bytes(moment.exported_bytes() as f64),
            sample.retired.to_string(),
        ]
    };
    ChartTable {
        caption: "The drive at the moments of the histograms".to_owned(),
        head: head.map(str::to_owned).to_vec(),
        rows: moments.iter().map(row).collect(),
    }
}

/// Bytes with a decimal prefix and three digits.
pub(crate) fn bytes(value: f64) -> String {
    const UNITS: [&str; 6] = ["B", "kB", "MB", "GB", "TB", "PB"];
    let (mut value, mut unit) = (value, 0);
    while value >= 999.5 && unit + 1 < UNITS.len() {
        (value, unit) = (value / 1000.0, unit + 1);
    }
    let digits = if unit == 0 || value >= 99.95 {
        0
    } else if value >= 9.995 {
        1
    } else {
        2
    };
    format!("{value:.digits$} {}", UNITS[unit])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::course::tests::course;
    use crate::lifetime::tests::life;

    fn page() -> ChartPage {
        life_page("ageing", "A drive", vec![("Seed".to_owned(), "1".to_owned())], &life(), &course(), "0")
    }

    #[test]
    fn every_section_of_a_life_has_points_and_a_sentence() {
        for section in page().sections {
            assert!(section.finding.ends_with('.'), "{}", section.finding);
            for chart in section.panels.iter().flat_map(|panel| &panel.charts) {
                assert!(!chart.y.name.is_empty() && !chart.x.name.is_empty(), "{}", chart.caption);
                assert!(chart.series.iter().all(|series| series.points.len() > 1), "{}", chart.caption);
            }
        }
    }

    #[test]
    fn a_histogram_adds_up_to_all_superblocks_and_ends_in_empty_steps() {
        let course = course();
        for width in [1, 7] {
            for moment in &course.moments {
                let points = histogram(moment, width).points;
                let sum: f64 = points.iter().filter_map(|point| point.1).sum();
                assert!((sum - 1.0).abs() < 1e-12, "{points:?}");
                assert_eq!(points.last().and_then(|point| point.1), Some(0.0));
            }
        }
    }

    #[test]
    fn ten_histograms_are_named_by_what_was_written() {
        let page = page();
        let names: Vec<&str> =
            page.sections[0].panels[0].charts[0].series.iter().map(|one| one.name.as_str()).collect();
        assert_eq!((names.len(), names[0], names[9]), (10, "164 kB", "1.64 MB"));
    }

    #[test]
    fn bytes_have_three_digits() {
        let cases = [
            (0.0, "0 B"),
            (999.0, "999 B"),
            (1e3, "1.00 kB"),
            (99_960.0, "100 kB"),
            (268.4e9, "268 GB"),
            (1e19, "10000 PB"),
        ];
        for (value, text) in cases {
            assert_eq!(bytes(value), text);
        }
    }

    #[test]
    fn a_few_wrong_bits_are_not_none() {
        let mut course = course();
        for moment in &mut course.moments {
            moment.reads.error_rate_mean = 3.127e-5;
        }
        let page = life_page("ageing", "A drive", Vec::new(), &life(), &course, "0");
        let table = page.sections.iter().find_map(|section| section.tables.first()).expect("there is one");
        let place = table.head.iter().position(|head| head == "Wrong bits").expect("it is a column");
        assert!(table.rows.iter().all(|row| row[place] == "0.00313 %"), "{:?}", table.rows);
    }
}
