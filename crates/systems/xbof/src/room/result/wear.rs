//! Wear of the drives of a JBOF and its cost, where wear decides how flash is read.

use crate::jbof::DriveFigures;
use flashyard_report::{
    DRIVE, DesignResult, Figures, IOS, LATENCY_MEAN, LATENCY_P99, Metric, RunReport, Unit, Value, text_table,
};
use flashyard_ssd::WearStates;

const NO_WEAR: &str = "wear decides nothing";

/// A figure of wear; drives whose wear decides nothing have none.
const fn of_wear(key: &'static str, title: &'static str, unit: Unit, about: &'static str) -> Metric {
    Metric::maybe(key, title, unit, about).or_absent(NO_WEAR)
}

/// Mean erases of a superblock.
pub static ERASES_MEAN: Metric = of_wear(
    "wear.erases_mean",
    "Erases, mean",
    Unit::Ratio,
    "erases of a superblock since the drive was new, mean over all; figures of wear are null where it decides nothing",
);

/// Most erases of a superblock.
pub static ERASES_MAX: Metric =
    of_wear("wear.erases_max", "Erases, most", Unit::Count, "erases of the most erased superblock");

/// Superblocks that are read without a retry.
pub static YOUNG: Metric =
    of_wear("wear.young", "Young superblocks", Unit::Count, "superblocks that are read without a retry, at the end");

/// Superblocks that need retries.
pub static MIDDLE_AGED: Metric =
    of_wear("wear.middle_aged", "Middle-aged superblocks", Unit::Count, "superblocks that need retries");

/// Superblocks that are used no more.
pub static RETIRED: Metric =
    of_wear("wear.retired", "Retired superblocks", Unit::Count, "superblocks that are used no more");

/// Retries for each page sensed.
pub static RETRIES_PER_READ: Metric = of_wear(
    "wear.retries_per_read",
    "Retries for each page",
    Unit::Ratio,
    "retries for each page sensed, over the measured window",
);

/// A metric of wear, and the function that computes it.
type Measure = (&'static Metric, fn(&WornDrive<'_>) -> Value);

static MEASURES: &[Measure] = &[
    (&ERASES_MEAN, |worn| {
        let erases: u64 = worn.drive.erase_counts.iter().copied().map(u64::from).sum();
        (erases as f64 / worn.drive.erase_counts.len().max(1) as f64).into()
    }),
    (&ERASES_MAX, |worn| worn.drive.erase_counts.iter().copied().max().unwrap_or(0).into()),
    (&YOUNG, |worn| worn.states.young.into()),
    (&MIDDLE_AGED, |worn| worn.states.middle_aged.into()),
    (&RETIRED, |worn| worn.states.retired.into()),
    (&RETRIES_PER_READ, |worn| worn.retries_per_read().into()),
    (
        &of_wear(
            "wear.retries_per_gib",
            "Retries for each GiB",
            Unit::Ratio,
            "retries for each GiB that the flash was read, over the measured window",
        ),
        |worn| {
            let page_gib = f64::from(worn.page_bytes) / f64::from(1 << 30);
            (worn.retries_per_read() / page_gib).into()
        },
    ),
];

/// A drive whose wear decides how flash is read.
struct WornDrive<'a> {
    page_bytes: u32,
    drive: &'a DriveFigures,
    states: WearStates,
}

impl WornDrive<'_> {
    fn retries_per_read(&self) -> f64 {
        self.drive.medium.read_retries as f64 / self.drive.medium.page_reads.max(1) as f64
    }
}

pub(super) fn metrics() -> impl Iterator<Item = &'static Metric> {
    MEASURES.iter().map(|(metric, _)| *metric)
}

/// The wear of a drive; nothing where it decides nothing.
pub(super) fn figures(drive: &DriveFigures, page_bytes: u32) -> Vec<(&'static Metric, Value)> {
    let of = |states| {
        let worn = WornDrive { drive, page_bytes, states };
        MEASURES.iter().map(|(metric, of)| (*metric, of(&worn))).collect()
    };
    drive.wear.map_or_else(Vec::new, of)
}

/// Wear of the drives that served requests, one line for each run, if any drive wears; at most `width` characters wide.
pub(super) fn wear_table(report: &RunReport, width: usize) -> Option<String> {
    let header = ["run", "erases", "young", "middle-aged", "retired", "retries/page", "mean us", "p99 us"];
    let rows: Vec<_> = report.designs.iter().filter_map(row).collect();
    (!rows.is_empty()).then(|| text_table(&header, rows, width))
}

fn row(design: &DesignResult) -> Option<Vec<String>> {
    let drives = design.components.of(&DRIVE).iter().map(|drive| &drive.figures);
    let is_worn = |drive: &&Figures| drive.count(&IOS) > 0 && drive.get(&ERASES_MEAN) != Value::Absent;
    let worn: Vec<&Figures> = drives.filter(is_worn).collect();
    let mean = |metric: &Metric| worn.iter().map(|wear| wear.number(metric)).sum::<f64>() / worn.len() as f64;
    let sum = |metric: &Metric| worn.iter().map(|wear| wear.count(metric)).sum::<u64>().to_string();
    (!worn.is_empty()).then(|| {
        vec![
            design.name.clone(),
            format!("{:.1}", mean(&ERASES_MEAN)),
            sum(&YOUNG),
            sum(&MIDDLE_AGED),
            sum(&RETIRED),
            format!("{:.2}", mean(&RETRIES_PER_READ)),
            format!("{:.1}", design.figures.number(&LATENCY_MEAN)),
            format!("{:.1}", design.figures.number(&LATENCY_P99)),
        ]
    })
}
