//! From the figures of a JBOF to those of reports.

use super::detail::split_rows;
use super::groups::OneDrive;
use super::steadiness::{Steadiness, halves, steadiness};
use flashyard_report::{DesignResult, DriveResult, HarvestResult, LatencySummary, Laws, SearchResult, WearResult};
use flashyard_ssd::WearStates;
use flashyard_systems::jbof::{DriveFigures, JbofFigures, SanityReport};
use flashyard_units::SimSpan;

/// Figures of one design, as reports have them.
pub(crate) fn design_result(figures: &JbofFigures, drives: &[OneDrive]) -> DesignResult {
    let seconds = figures.window.as_secs_f64();
    let count = figures.drives.len();
    let per_second = |amount: u64| if seconds > 0.0 { amount as f64 / seconds } else { 0.0 };
    let cost: f64 = drives.iter().map(|drive| drive.price).sum();
    let mut ftl = flashyard_ftl::FtlCounters::default();
    for drive in &figures.drives {
        ftl.host_slots += drive.ftl.host_slots;
        ftl.moved_slots += drive.ftl.moved_slots;
        ftl.leveled_slots += drive.ftl.leveled_slots;
        ftl.padded_slots += drive.ftl.padded_slots;
    }
    let segments: u64 = figures.loans.iter().map(|loan| u64::from(loan.segments)).sum();
    DesignResult {
        point: Vec::new(),
        name: figures.design.name().to_owned(),
        design: figures.design.name().to_owned(),
        computes_on_host: figures.design.computes_on_host(),
        window_seconds: seconds,
        ios: figures.ios(),
        read_bytes: figures.drives.iter().map(|drive| drive.read_bytes).sum(),
        write_bytes: figures.drives.iter().map(|drive| drive.write_bytes).sum(),
        throughput_bytes_per_s: figures.throughput(),
        iops: per_second(figures.ios()),
        latency_us: LatencySummary::from(&figures.latency()),
        latency_split: split_rows(figures),
        processor_utilization: figures.mean(count, |drive| drive.processor_utilization),
        flash_utilization: figures.mean(count, DriveFigures::flash_utilization),
        mapping_miss_ratio: figures.mapping_miss_ratio(),
        write_amplification: ftl.write_amplification(),
        energy_joules: figures.energy().as_joules(),
        energy_joules_per_gb: per_gb(figures.energy().as_joules(), figures.bytes()),
        halves: halves(figures).map_or_else(Vec::new, Vec::from),
        bom_dollars: cost,
        throughput_bytes_per_s_per_dollar: if cost > 0.0 { figures.throughput() / cost } else { 0.0 },
        host_utilization: figures.host_utilization,
        redirected_share: figures.redirected as f64 / (figures.requests.max(1)) as f64,
        lent_segments: segments,
        harvest: HarvestResult {
            processors_taken: figures.harvest.processors_taken,
            processors_returned: figures.harvest.processors_returned,
            memories_taken: figures.harvest.memories_taken,
            memories_returned: figures.harvest.memories_returned,
            contended: figures.harvest.contended,
            forced: figures.harvest.forced,
        },
        search: search_result(figures),
        laws: laws(&figures.sanity),
        drives: figures
            .drives
            .iter()
            .enumerate()
            .zip(drives)
            .map(|((number, drive), one)| drive_result(one, drive, &steadiness(figures, number), seconds))
            .collect(),
    }
}

/// Energy for each 10^9 bytes; `None` when nothing was moved.
fn per_gb(joules: f64, bytes: u64) -> Option<f64> {
    (bytes > 0).then(|| joules / (bytes as f64 / 1e9))
}

fn laws(sanity: &SanityReport) -> Laws {
    Laws { hold: sanity.holds(), broken: sanity.broken().map(ToString::to_string).collect() }
}

fn search_result(figures: &JbofFigures) -> SearchResult {
    let simulated = figures.simulated;
    let seekers = || (0..figures.drives.len()).filter(|&number| figures.search.scans[number] > 0);
    let cores: u64 = seekers().map(|number| u64::from(figures.drives[number].servers.cores)).sum();
    let scanning = seekers().map(|number| figures.search.scanning[number]).sum::<SimSpan>();
    let first: Vec<f64> = figures.search.first_redirected.iter().flatten().map(|span| span.as_secs_f64()).collect();
    SearchResult {
        scans: figures.search.scans.iter().sum(),
        core_share: if cores == 0 { 0.0 } else { scanning.ratio_of(simulated * cores) },
        host_core_share: figures.search.host_scanning.ratio_of(simulated * figures.host_cores),
        borrowers: first.len() as u64,
        first_redirected_seconds_mean: first.iter().fold(0.0, |sum, first| sum + first) / first.len().max(1) as f64,
        first_redirected_seconds_max: first.iter().copied().fold(0.0, f64::max),
    }
}

fn drive_result(one: &OneDrive, drive: &DriveFigures, redirected: &Steadiness, seconds: f64) -> DriveResult {
    let per_second = |amount: u64| if seconds > 0.0 { amount as f64 / seconds } else { 0.0 };
    DriveResult {
        name: one.name.clone(),
        ios: drive.ios,
        read_bytes: drive.read_bytes,
        write_bytes: drive.write_bytes,
        throughput_bytes_per_s: per_second(drive.read_bytes + drive.write_bytes),
        iops: per_second(drive.ios),
        latency_us: LatencySummary::from(&drive.latency),
        processor_utilization: drive.processor_utilization,
        lent_utilization: drive.lent_utilization,
        redirected_share: redirected.mean,
        redirected_swing: redirected.swing,
        redirected_settled_seconds: redirected.settled.map(SimSpan::as_secs_f64),
        flash_utilization: drive.flash_utilization(),
        mapping_miss_ratio: drive.cache.miss_ratio(),
        write_amplification: drive.ftl.write_amplification(),
        energy_joules: drive.energy.total().as_joules(),
        bom_dollars: one.price,
        wear: drive.wear.map(|states| wear_result(one, drive, states)),
    }
}

fn wear_result(one: &OneDrive, drive: &DriveFigures, states: WearStates) -> WearResult {
    let erases: u64 = drive.erase_counts.iter().copied().map(u64::from).sum();
    let (reads, retries) = (drive.medium.page_reads.max(1) as f64, drive.medium.read_retries as f64);
    let page_gib = f64::from(one.model.drive.nand.geometry.page_bytes) / f64::from(1 << 30);
    WearResult {
        erases_mean: erases as f64 / drive.erase_counts.len().max(1) as f64,
        erases_max: drive.erase_counts.iter().copied().max().unwrap_or(0),
        young: states.young,
        middle_aged: states.middle_aged,
        retired: states.retired,
        retries_per_read: retries / reads,
        retries_per_gib: retries / reads / page_gib,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flashyard_systems::jbof::SanityCheck;

    #[test]
    fn a_law_that_does_not_hold_is_named_with_both_of_its_sides() {
        let check = |law, counted| SanityCheck { law, expected: 7, counted };
        let whole = laws(&SanityReport { checks: vec![check("bytes", 7), check("time", 7)] });
        assert!(whole.hold && whole.broken.is_empty());
        let broken = laws(&SanityReport { checks: vec![check("bytes", 7), check("time", 8)] });
        assert!(!broken.hold);
        assert_eq!(broken.broken, ["time: 7 against 8"]);
    }
}
