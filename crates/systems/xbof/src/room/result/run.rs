//! Figures of a JBOF as a whole.

use crate::jbof::{DriveFigures, JbofFigures};
use flashyard_ftl::FtlCounters;
use flashyard_report::{
    ENERGY, ENERGY_PER_GB, FLASH_UTILIZATION, Figures, IOPS, IOS, LATENCY_MAX, LATENCY_MEAN, LATENCY_P50, LATENCY_P99,
    LATENCY_P999, LATENCY_P9999, LatencySummary, MAPPING_MISS_RATIO, MOVED_BYTES, Metric, PRICE, PROCESSOR_UTILIZATION,
    READ_BYTES, THROUGHPUT, THROUGHPUT_PER_DOLLAR, Unit, Value, WINDOW, WRITE_AMPLIFICATION, WRITE_BYTES,
};
use flashyard_units::SimSpan;

/// Busy share of the host's cores.
pub static HOST_UTILIZATION: Metric =
    Metric::number("host_utilization", "Host cores busy", Unit::Share, "busy share of the host's cores")
        .column("host_busy_share")
        .percent("host\ncores %");

/// Requests that another drive had a part in.
pub static REDIRECTED_SHARE: Metric = Metric::number(
    "redirected_share",
    "Redirected requests",
    Unit::Share,
    "share of requests whose firmware or data went to another drive",
);

/// Offers of processors that were taken.
pub static PROCESSORS_TAKEN: Metric =
    Metric::count("harvest.processors_taken", "Processors taken", "processor offers taken, over the whole run");

/// Offers that came too late.
pub static CONTENDED: Metric = Metric::count(
    "harvest.contended",
    "Came too late",
    "offers that another drive had taken when the borrower's compare-and-swap arrived",
);

/// Scans of descriptors by drives.
pub static SCANS: Metric =
    Metric::count("search.scans", "Scans", "scans of peers' descriptors by drives, over the whole run");

/// The part of the drives' cores that scans take.
pub static SCAN_CORE_SHARE: Metric = Metric::number(
    "search.core_share",
    "Cores in scans",
    Unit::Share,
    "share of the core time of the drives that scanned, in which a core waited for the lines of a scan",
);

/// The part of the hosts' cores that scans take.
pub static SCAN_HOST_CORE_SHARE: Metric = Metric::number(
    "search.host_core_share",
    "Host cores in scans",
    Unit::Share,
    "share of the hosts' core time, likewise",
);

/// Drives that borrowed.
pub static BORROWERS: Metric =
    Metric::count("search.borrowers", "Borrowers", "drives with a command that went to a lender");

/// A metric of a run, and the function that computes it.
type Measure = (&'static Metric, fn(&Run<'_>) -> Value);

/// The figures of a run in the order of JSON.
static MEASURES: &[Measure] = &[
    (&WINDOW, |run| run.seconds.into()),
    (&IOS, |run| run.figures.ios().into()),
    (&READ_BYTES, |run| run.sum(|drive| drive.read_bytes).into()),
    (&WRITE_BYTES, |run| run.sum(|drive| drive.write_bytes).into()),
    (&THROUGHPUT, |run| run.figures.throughput().into()),
    (&IOPS, |run| if run.seconds > 0.0 { run.figures.ios() as f64 / run.seconds } else { 0.0 }.into()),
    (&LATENCY_MEAN, |run| run.latency.map(|latency| latency.mean).into()),
    (&LATENCY_P50, |run| run.latency.map(|latency| latency.p50).into()),
    (&LATENCY_P99, |run| run.latency.map(|latency| latency.p99).into()),
    (&LATENCY_P999, |run| run.latency.map(|latency| latency.p999).into()),
    (&LATENCY_P9999, |run| run.latency.map(|latency| latency.p9999).into()),
    (&LATENCY_MAX, |run| run.latency.map(|latency| latency.max).into()),
    (&PROCESSOR_UTILIZATION.about("busy share of the drives' cores, without those of the host"), |run| {
        run.mean(|drive| drive.processor_utilization).into()
    }),
    (&FLASH_UTILIZATION.about("the busier of buses and dies, mean over drives"), |run| {
        run.mean(DriveFigures::flash_utilization).into()
    }),
    (&MAPPING_MISS_RATIO, |run| run.figures.mapping_miss_ratio().into()),
    (&WRITE_AMPLIFICATION.about("slots written to flash for each slot written by the host"), |run| {
        run.write_amplification().into()
    }),
    (&ENERGY.about("energy of all drives in joules, without the host"), |run| run.joules().into()),
    (&ENERGY_PER_GB, |run| {
        let bytes = run.figures.bytes();
        (bytes > 0).then(|| run.joules() / (bytes as f64 / 1e9)).into()
    }),
    (&PRICE.about("price of all drives in US dollars, without the host"), |run| run.price.into()),
    (&THROUGHPUT_PER_DOLLAR, |run| if run.price > 0.0 { run.figures.throughput() / run.price } else { 0.0 }.into()),
    (&HOST_UTILIZATION, |run| run.figures.host_utilization.into()),
    (&REDIRECTED_SHARE, |run| (run.figures.redirected as f64 / (run.figures.requests.max(1)) as f64).into()),
    (&Metric::count("lent_segments", "Segments lent", "segments of mapping memory lent at the end"), |run| {
        run.figures.loans.iter().map(|loan| u64::from(loan.segments)).sum::<u64>().into()
    }),
    (&PROCESSORS_TAKEN, |run| run.figures.harvest.processors_taken.into()),
    (
        &Metric::count(
            "harvest.processors_returned",
            "Processors returned",
            "processor offers given back or withdrawn",
        ),
        |run| run.figures.harvest.processors_returned.into(),
    ),
    (&Metric::count("harvest.memories_taken", "Memories taken", "memory offers taken"), |run| {
        run.figures.harvest.memories_taken.into()
    }),
    (
        &Metric::count("harvest.memories_returned", "Memories returned", "memory offers given back, withdrawn or lost"),
        |run| run.figures.harvest.memories_returned.into(),
    ),
    (&CONTENDED, |run| run.figures.harvest.contended.into()),
    (&Metric::count("harvest.forced", "Forced", "withdrawals whose borrower did not let go in time"), |run| {
        run.figures.harvest.forced.into()
    }),
    (&SCANS, |run| run.figures.search.scans.iter().sum::<u64>().into()),
    (&SCAN_CORE_SHARE, |run| run.scanning_share().into()),
    (&SCAN_HOST_CORE_SHARE, |run| {
        let figures = run.figures;
        figures.search.host_scanning.ratio_of(figures.simulated * figures.host_cores).into()
    }),
    (&BORROWERS, |run| (run.first_redirected().count() as u64).into()),
    (
        &Metric::number(
            "search.first_redirected_seconds_mean",
            "First command lent, mean",
            Unit::Seconds,
            "mean over these of the seconds from the start of their stream to that command",
        ),
        |run| {
            let sum = run.first_redirected().fold(0.0, |sum, first| sum + first);
            (sum / run.first_redirected().count().max(1) as f64).into()
        },
    ),
    (
        &Metric::number(
            "search.first_redirected_seconds_max",
            "First command lent, longest",
            Unit::Seconds,
            "the longest of these times",
        ),
        |run| run.first_redirected().fold(0.0, f64::max).into(),
    ),
    (&MOVED_BYTES, |run| run.figures.bytes().into()),
];

/// The figures of a run that terminal and page show, in their order.
pub(super) static SHOWN: &[&Metric] = &[
    &THROUGHPUT,
    &IOPS,
    &LATENCY_MEAN,
    &LATENCY_P50,
    &LATENCY_P99,
    &LATENCY_P999,
    &LATENCY_P9999,
    &LATENCY_MAX,
    &PROCESSOR_UTILIZATION,
    &HOST_UTILIZATION,
    &FLASH_UTILIZATION,
    &MAPPING_MISS_RATIO,
    &REDIRECTED_SHARE,
    &WRITE_AMPLIFICATION,
    &ENERGY_PER_GB,
    &PRICE,
    &THROUGHPUT_PER_DOLLAR,
    &IOS,
    &MOVED_BYTES,
    &ENERGY,
    &WINDOW,
];

pub(super) fn metrics() -> Vec<&'static Metric> {
    MEASURES.iter().map(|(metric, _)| *metric).collect()
}

/// A run and what several of its figures are made of.
struct Run<'a> {
    figures: &'a JbofFigures,
    latency: Option<LatencySummary>,
    /// Length of the window.
    seconds: f64,
    /// Price of all drives.
    price: f64,
}

impl Run<'_> {
    fn sum(&self, figure: fn(&DriveFigures) -> u64) -> u64 {
        self.figures.drives.iter().map(figure).sum()
    }

    fn mean(&self, figure: fn(&DriveFigures) -> f64) -> f64 {
        self.figures.mean(self.figures.drives.len(), figure)
    }

    fn joules(&self) -> f64 {
        self.figures.energy().as_joules()
    }

    fn write_amplification(&self) -> Option<f64> {
        let ftl: FtlCounters = self.figures.drives.iter().map(|drive| drive.ftl).sum();
        ftl.amplification()
    }

    /// Share of the core time of the drives that scanned, in which a core waited for a scan.
    fn scanning_share(&self) -> f64 {
        let (drives, search) = (&self.figures.drives, &self.figures.search);
        let seekers = || (0..drives.len()).filter(|&number| search.scans[number] > 0);
        let cores: u64 = seekers().map(|number| u64::from(drives[number].servers.cores)).sum();
        let scanning = seekers().map(|number| search.scanning[number]).sum::<SimSpan>();
        if cores == 0 { 0.0 } else { scanning.ratio_of(self.figures.simulated * cores) }
    }

    /// Seconds of each borrower until its first command went to a lender.
    fn first_redirected(&self) -> impl Iterator<Item = f64> {
        self.figures.search.first_redirected.iter().flatten().map(|span| span.as_secs_f64())
    }
}

/// The figures of a run whose drives cost `price` together.
pub(super) fn figures(figures: &JbofFigures, price: f64) -> Figures {
    let run =
        Run { figures, latency: LatencySummary::of(&figures.latency()), seconds: figures.window.as_secs_f64(), price };
    MEASURES.iter().map(|(metric, of)| (*metric, of(&run))).collect()
}
