//! How a rack finds space: fleets that live by a billboard, beyond the source.

use flashyard_billboard::{Choice, Fleet, FleetFigures, FleetPlan};
use flashyard_report::{ChartAxis, ChartPanel, ChartSection, factor_chart};
use flashyard_units::SimSpan;

/// Servers of a fleet. \[A\]
const SERVERS: u16 = 300;
/// Seconds between two posts of a server. Source: \[P\] sheet leapio §3.6, every few minutes.
const POSTS: [u64; 5] = [10, 60, 180, 600, 1800];
/// Mean needs as shares of a server's space. \[A\]
const DEMANDS: [f64; 5] = [0.1, 0.2, 0.35, 0.5, 0.7];

type Curves = Vec<(String, Vec<(f64, f64)>)>;

/// Runs of every rule at each of `points`, which `plan` makes of a rule and a point.
fn runs<const N: usize>(
    points: [f64; N],
    plan: impl Fn(Choice, f64) -> FleetPlan,
) -> Vec<(Choice, Vec<(f64, FleetFigures)>)> {
    let of = |choice| (choice, points.iter().map(|&point| (point, Fleet::new(plan(choice, point)).run())).collect());
    Choice::ALL.into_iter().map(of).collect()
}

fn curves(runs: &[(Choice, Vec<(f64, FleetFigures)>)], figure: fn(&FleetFigures) -> f64) -> Curves {
    let points = |runs: &[(f64, FleetFigures)]| runs.iter().map(|(at, figures)| (*at, figure(figures))).collect();
    runs.iter().map(|(choice, runs)| (choice.name().to_owned(), points(runs))).collect()
}

fn served(figures: &FleetFigures) -> f64 {
    100.0 * figures.served as f64 / figures.needs.max(1) as f64
}

fn asked(figures: &FleetFigures) -> f64 {
    figures.asked as f64 / figures.served.max(1) as f64
}

fn fragmented(figures: &FleetFigures) -> f64 {
    100.0 * figures.fragmented
}

/// Needs that are served, questions for each, and free space in pieces too small, along the age of the board and along the need.
pub(super) fn section() -> ChartSection {
    let usual = |choice| FleetPlan::usual(SERVERS, choice, 1);
    let by_age = runs(POSTS.map(|seconds| seconds as f64), |choice, seconds| FleetPlan {
        posts_every: SimSpan::from_secs(seconds as u64),
        ..usual(choice)
    });
    let by_need = runs(DEMANDS, |choice, demand| FleetPlan { demand, ..usual(choice) });
    let chart = |name: &str, along: &str, unit: &'static str, runs, figure| {
        factor_chart(name, along, ChartAxis::new("", unit), &curves(runs, figure))
    };
    let age = "seconds between posts";
    let need = "mean need, share of a server's space";
    let charts = vec![
        chart("Needs that are served", age, "%", &by_age, served as fn(&FleetFigures) -> f64),
        chart("Questions for each", age, "", &by_age, asked),
        chart("Needs that are served, posts every 180 s", need, "%", &by_need, served),
        chart("Free space in pieces smaller than the mean need", need, "%", &by_need, fragmented),
    ];
    let finding = format!(
        "{SERVERS} servers for an hour, each of which needs space of others every five minutes for ten, and leaves after two hours. Four candidates \
         are asked. A rule that all servers apply to one old board makes them ask one server."
    );
    let panels = vec![ChartPanel { name: String::new(), charts }];
    ChartSection::choice("fleet", "How does a rack find space?", finding, "", panels)
}
