//! The explorer in the terminal.

use super::points::{Explorer, ExplorerLoad, ExplorerPoint, Front};
use crate::fitted::{fitted, right};
use comfy_table::Cell;

/// A table of the fronts of each load, with the number of dominated runs, and the cheapest run of the same service; at
/// most `width` characters wide. `None` where no runs of the same load differ in price.
pub fn explorer_text(explorer: &Explorer, width: usize) -> Option<String> {
    if !explorer.is_a_choice {
        return None;
    }
    let dominated: usize = explorer.loads.iter().map(|load| load.dominated).sum();
    let alike = if explorer.loads.len() > 1 { "; runs are compared with those of the same load" } else { "" };
    let mut lines = vec![format!(
        "explorer: {dominated} of {} runs are dominated: another one is at least as good in cost, p99 and throughput, \
         and better in one{alike}",
        explorer.points.len()
    )];
    let mut hosted: Vec<&str> = explorer
        .points
        .iter()
        .filter(|point| point.equipment.computes_on_host)
        .map(|point| point.equipment.design.as_str())
        .collect();
    hosted.sort_unstable();
    hosted.dedup();
    if !hosted.is_empty() {
        lines.push(format!(
            "not weighed: {}, where host cores work whose price and energy are not known",
            hosted.join(", ")
        ));
    }
    for load in explorer.loads.iter().filter(|load| load.is_a_choice(&explorer.points)) {
        lines.push(heading(explorer, load));
        lines.push(front_table(explorer, load, width));
        lines.push(cheapest_sentence(explorer, load));
    }
    Some(lines.join("\n"))
}

/// `jbof.busy_drives=6 (1.0 idle drives for each busy one): 33 runs, 20 dominated; on a front:`
fn heading(explorer: &Explorer, load: &ExplorerLoad) -> String {
    let settings = if load.settings.is_empty() { "one load".to_owned() } else { load.settings.join(", ") };
    let idle = load.points.first().map_or(0.0, |&place| explorer.points[place].equipment.lenders_per_busy);
    format!(
        "\n{settings} ({idle:.1} idle drives for each busy one): {} runs, {} dominated; on a front:",
        load.points.len(),
        load.dominated
    )
}

/// The runs of a load that are on any front, the cheapest first.
fn front_table(explorer: &Explorer, load: &ExplorerLoad, width: usize) -> String {
    let mut rows: Vec<&ExplorerPoint> = load.points.iter().map(|&place| &explorer.points[place]).collect();
    rows.retain(|point| !point.fronts.is_empty());
    rows.sort_by(|a, b| {
        let key = |point: &ExplorerPoint| [point.jbof_dollars, -point.throughput_bytes_per_s];
        key(a).partial_cmp(&key(b)).unwrap_or(std::cmp::Ordering::Equal)
    });
    let header = [
        "run",
        "cores",
        "map in\nDRAM %",
        "drive\n$",
        "JBOF\n$",
        "energy\nJ/GB",
        "throughput\nGB/s",
        "p99\nus",
        "best for cost\nwith",
        "best for energy\nwith",
    ];
    let row = |point: &ExplorerPoint| {
        let known =
            |figure: Option<f64>, digits: usize| right(figure.map_or("-".to_owned(), |f| format!("{f:.digits$}")));
        let cost = [Front::CostP99Throughput, Front::CostP99, Front::CostThroughput];
        let energy = [Front::EnergyP99Throughput, Front::EnergyP99, Front::EnergyThroughput];
        vec![
            Cell::new(title(explorer, point)),
            right(point.equipment.cores.to_string()),
            right(format!("{:.0}", point.equipment.memory_share * 100.0)),
            right(format!("{:.2}", point.drive_dollars)),
            right(format!("{:.0}", point.jbof_dollars)),
            known(point.energy_joules_per_gb, 3),
            right(format!("{:.2}", point.throughput_bytes_per_s / 1e9)),
            known(point.latency_p99_us, 1),
            Cell::new(fronts(point, cost)),
            Cell::new(fronts(point, energy)),
        ]
    };
    fitted(1, &header, &rows.into_iter().map(row).collect::<Vec<_>>(), width)
}

/// The design of a run, or its whole name where the sweep has another run of that design with as many cores and as
/// much memory for the same load.
fn title<'a>(explorer: &'a Explorer, point: &'a ExplorerPoint) -> &'a str {
    let alike = explorer.points.iter().filter(|other| other.equipment == point.equipment).count() > 1;
    if alike { &point.name } else { &point.equipment.design }
}

/// The fronts with both figures, with p99 and with throughput that a run is on.
fn fronts(point: &ExplorerPoint, [both, p99, throughput]: [Front; 3]) -> String {
    let named = [(both, "both"), (p99, "p99"), (throughput, "throughput")];
    let on = named.iter().filter(|(front, _)| point.fronts.contains(front)).map(|(_, name)| *name);
    on.collect::<Vec<_>>().join(", ")
}

fn cheapest_sentence(explorer: &Explorer, load: &ExplorerLoad) -> String {
    let (name, within) = (&explorer.reference, explorer.within_percent);
    let Some(reference) = load.reference.map(|place| &explorer.points[place]) else {
        return format!("{name} was not run at this load, so nothing is held against it");
    };
    if load.cheapest.is_none() && reference.latency_p99_us.is_some() {
        return format!("no run whose price is known is within {within} % of the throughput and p99 of {name}");
    }
    let Some(cheapest) = load.cheapest.map(|place| &explorer.points[place]) else {
        return format!("{name} completed no request at this load, so nothing is held against it");
    };
    let p99 = |point: &ExplorerPoint| point.latency_p99_us.unwrap_or(f64::NAN);
    if load.cheapest == load.reference {
        return format!("nothing cheaper is within {within} % of the throughput and p99 of {name}");
    }
    let change = |ours: f64, theirs: f64| 100.0 * (ours / theirs - 1.0);
    let equipment = &cheapest.equipment;
    format!(
        "cheapest within {within} % of the throughput and p99 of {name}: {}, {} cores, {:.0} % of the map in DRAM: \
         ${:.2} a drive ({:+.1} %), throughput {:+.1} %, p99 {:+.1} %, energy per GB {:+.1} %",
        title(explorer, cheapest),
        equipment.cores,
        equipment.memory_share * 100.0,
        cheapest.drive_dollars,
        change(cheapest.drive_dollars, reference.drive_dollars),
        change(cheapest.throughput_bytes_per_s, reference.throughput_bytes_per_s),
        change(p99(cheapest), p99(reference)),
        change(cheapest.energy_joules_per_gb.unwrap_or(f64::NAN), reference.energy_joules_per_gb.unwrap_or(f64::NAN)),
    )
}
