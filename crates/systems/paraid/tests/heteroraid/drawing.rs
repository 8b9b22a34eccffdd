//! Lines in panels, as SVG.

use std::fmt::Write;

const COLOURS: [&str; 6] = ["#1b6ca8", "#d95f02", "#66a61e", "#7570b3", "#a6761d", "#666666"];
const WIDTH: f64 = 360.0;
const HEIGHT: f64 = 200.0;

/// A line with its name.
pub(crate) struct Line {
    pub(crate) name: &'static str,
    pub(crate) points: Vec<(f64, f64)>,
}

/// Panels side by side, each with a title and lines from zero up.
pub(crate) fn lines(title: &str, panels: &[(&str, Vec<Line>)]) -> String {
    let whole = WIDTH * panels.len() as f64;
    let legend = panels.iter().map(|panel| panel.1.len()).max().unwrap_or(0);
    let height = HEIGHT + 80.0 + 18.0 * legend as f64;
    let mut text = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {whole:.0} {height:.0}\" font-family=\"sans-serif\" font-size=\"12\" role=\"img\"><title>{title}</title><rect width=\"{whole:.0}\" height=\"{height:.0}\" fill=\"#fff\"/>\n"
    );
    for (number, (title, lines)) in panels.iter().enumerate() {
        text += &panel(WIDTH * number as f64, title, lines);
    }
    text + "</svg>\n"
}

/// The distance of marks: 1, 2 or 5 times a power of ten, of which at most six fit.
fn step(most: f64) -> f64 {
    let power = 10_f64.powf((most / 6.0).log10().floor());
    [1.0, 2.0, 5.0, 10.0].map(|step| step * power).into_iter().find(|step| most / step <= 6.0).unwrap_or(most)
}

fn panel(left: f64, title: &str, lines: &[Line]) -> String {
    let points = || lines.iter().flat_map(|line| &line.points);
    let x_least = points().map(|point| point.0).fold(f64::MAX, f64::min);
    let x_most = points().map(|point| point.0).fold(f64::MIN, f64::max);
    let y_most = points().map(|point| point.1).fold(f64::MIN, f64::max).max(1e-12) * 1.05;
    let at_x = |x: f64| left + 50.0 + (x - x_least) / (x_most - x_least).max(1e-12) * (WIDTH - 70.0);
    let at_y = |y: f64| 40.0 + HEIGHT - y / y_most * HEIGHT;
    let mut text = format!("<text x=\"{:.0}\" y=\"22\" font-weight=\"bold\">{title}</text>\n", left + 10.0);
    let step = step(y_most);
    for part in (0..).take_while(|&part| step * f64::from(part) <= y_most) {
        let mark = step * f64::from(part);
        let label = if step >= 1.0 { format!("{mark:.0}") } else { format!("{mark}") };
        writeln!(
            text,
            "<path d=\"M{:.0} {y:.1}H{:.0}\" stroke=\"#ddd\"/><text x=\"{:.0}\" y=\"{:.1}\" text-anchor=\"end\">{label}</text>",
            left + 50.0,
            left + WIDTH - 20.0,
            left + 44.0,
            at_y(mark) + 4.0,
            y = at_y(mark),
        )
        .expect("a string takes all");
    }
    for x in [x_least, (x_least + x_most) / 2.0, x_most] {
        writeln!(
            text,
            "<text x=\"{:.1}\" y=\"{:.0}\" text-anchor=\"middle\">{}</text>",
            at_x(x),
            HEIGHT + 58.0,
            (x * 10.0).round() / 10.0
        )
        .expect("a string takes all");
    }
    for (number, line) in lines.iter().enumerate() {
        let colour = COLOURS[number % COLOURS.len()];
        let path: Vec<String> = line.points.iter().map(|&(x, y)| format!("{:.1},{:.1}", at_x(x), at_y(y))).collect();
        let y = HEIGHT + 80.0 + 18.0 * number as f64;
        writeln!(
            text,
            "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\"/><path d=\"M{:.0} {:.0}h16\" stroke=\"{colour}\" stroke-width=\"3\"/><text x=\"{:.0}\" y=\"{y:.0}\">{}</text>",
            path.join(" "),
            left + 50.0,
            y - 4.0,
            left + 72.0,
            line.name
        )
        .expect("a string takes all");
    }
    text
}
