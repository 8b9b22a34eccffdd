//! Carbon of a request.

use crate::drawing::{Line, lines};
use crate::page::{hold, of, run};
use flashyard_paraid::Design;
use flashyard_paraid::room::ParaidRoom;
use flashyard_units::Named;
use serde_json::Value;
use std::fmt::Write;

pub(crate) const ARRAYS: &str = include_str!("../../../../../scenarios/paraid/scenario.toml");

/// Loads of the page, with their titles.
const LOADS: [(&str, &str); 3] = [("p-read", "read"), ("p-write", "partial write"), ("f-write", "whole stripe")];
/// Grids in g/kWh: [X] the United States and the world, [A] a clean one and a very clean one
const GRIDS: [f64; 4] = [380.0, 301.0, 100.0, 25.0];

/// A run of a design under a load, for so long.
fn carried(design: &str, load: &str, grid: f64, [warmup, measure]: [&str; 2]) -> Value {
    let settings = [
        format!("paraid.workload=\"{load}\""),
        format!("carbon.grid_g_per_kwh={grid}"),
        format!("paraid.warmup=\"{warmup}\""),
        format!("paraid.measure=\"{measure}\""),
    ];
    run(&ParaidRoom, ARRAYS, design, &settings)
}

/// Operation, making by time and making by wear of a request, in ng.
fn parts(result: &Value) -> [f64; 3] {
    ["operation", "making", "wear"].map(|part| of(result, &format!("emission.{part}_g_per_request")) * 1e9)
}

/// The name of the largest part.
fn largest([operation, making, wear]: [f64; 3]) -> &'static str {
    match () {
        () if operation >= making && operation >= wear => "operation",
        () if making >= wear => "making",
        () => "wear",
    }
}

/// The largest part on each grid: its name alone where it is always one.
fn largest_by_grid([operation, making, wear]: [f64; 3]) -> String {
    let on = |grid: f64| largest([operation * grid / GRIDS[0], making, wear]);
    let mut text = on(GRIDS[0]).to_owned();
    for pair in GRIDS.windows(2).filter(|pair| on(pair[0]) != on(pair[1])) {
        write!(text, ", from {:.0} down {}", pair[1], on(pair[1])).expect("a string takes all");
    }
    text
}

#[test]
fn operation_follows_the_grid_and_nothing_else_does() {
    for design in Design::names() {
        let on = |grid| carried(design, "p-write", grid, ["100 ms", "200 ms"]);
        let (dirty, clean) = (on(GRIDS[0]), on(GRIDS[3]));
        let ([operation, making, wear], [clean_operation, ..]) = (parts(&dirty), parts(&clean));
        let expected = operation * GRIDS[3] / GRIDS[0];
        assert!(
            operation > 0.0 && (clean_operation - expected).abs() <= 1e-9 * expected,
            "{design}: {clean_operation}"
        );
        assert_eq!([making, wear], [parts(&clean)[1], parts(&clean)[2]], "{design}");
        assert_eq!(of(&dirty, "ios"), of(&clean, "ios"), "{design}");
    }
}

#[test]
#[ignore = "a minute: make test-long"]
fn carbon_of_requests_is_that_of_today() {
    let mut table = "| request | design | thousand a second | operation at 380 g/kWh, ng | at 301 | at 100 | at 25 | making by time, ng | making by wear, ng | largest part |\n|---|---|--:|--:|--:|--:|--:|--:|--:|---|\n".to_owned();
    let mut panels = Vec::new();
    for (load, title) in LOADS {
        let mut drawn = Vec::new();
        for design in Design::ALL.iter().map(|design| design.name()) {
            let result = carried(design, load, GRIDS[0], ["20 s", "5 s"]);
            let [operation, making, wear] = parts(&result);
            let [first, second, third, fourth] = GRIDS.map(|grid| operation * grid / GRIDS[0]);
            writeln!(
                table,
                "| {title} | {design} | {:.1} | {first:.1} | {second:.1} | {third:.1} | {fourth:.1} | {making:.1} | {wear:.0} | {} |",
                of(&result, "iops") / 1e3,
                largest_by_grid([operation, making, wear]),
            )
            .expect("a string takes all");
            let names = match design {
                "mdraid" => ["operation, mdraid", "making by time, mdraid"],
                "paraid" => ["operation, paraid", "making by time, paraid"],
                _ => continue,
            };
            let by_grid = [GRIDS.map(|grid| (grid, operation * grid / GRIDS[0])), GRIDS.map(|grid| (grid, making))];
            drawn.extend(names.into_iter().zip(by_grid).map(|(name, points)| Line { name, points: points.to_vec() }));
        }
        panels.push((format!("{title}, ng by g/kWh"), drawn));
    }
    let panels: Vec<_> = panels.iter_mut().map(|(title, drawn)| (title.as_str(), std::mem::take(drawn))).collect();
    let picture = lines("Carbon of a request by the grid, without wear", &panels);
    hold(&[("carbon", table)], &[("carbon-of-a-request.svg", picture)]);
}
