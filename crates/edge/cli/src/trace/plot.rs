//! Numbers as characters: sparklines, bars, and quantities in the unit that a person would use.

/// Eighths of a character's height.
const HEIGHTS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
/// Eighths of a character's width.
const WIDTHS: [char; 8] = ['█', '▏', '▎', '▍', '▌', '▋', '▊', '▉'];

/// One character a value, from zero to the greatest; a blank is nothing at all.
pub(super) fn sparkline(values: &[f64]) -> String {
    let top = values.iter().copied().fold(0.0, f64::max);
    let height = |value: f64| match value {
        value if value <= 0.0 => ' ',
        // Eighths, rounded up: `as` holds at the ends.
        value => HEIGHTS[((value / top * 8.0).ceil() as usize).clamp(1, 8) - 1],
    };
    values.iter().map(|&value| height(value)).collect()
}

/// A bar of `share` (0 to 1) of `width` characters.
pub(super) fn bar(share: f64, width: usize) -> String {
    let eighths = (share.clamp(0.0, 1.0) * width as f64 * 8.0).round() as usize;
    let mut bar: String = std::iter::repeat_n(WIDTHS[0], eighths / 8).collect();
    if !eighths.is_multiple_of(8) {
        bar.push(WIDTHS[eighths % 8]);
    }
    bar
}

/// Bytes in B, KiB, MiB, ...: whole where they are, else with one digit after the point.
pub(super) fn bytes(bytes: u64) -> String {
    let units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    let unit = (bytes.max(1).ilog2() / 10) as usize;
    let value = bytes as f64 / (1_u64 << (10 * unit)) as f64;
    let digits = usize::from(value.fract() != 0.0);
    format!("{value:.digits$} {}", units[unit])
}

/// Microseconds in ns, us, ms, s or h, with three digits.
pub(super) fn time(us: f64) -> String {
    let units = [(3.6e9, "h"), (1e6, "s"), (1e3, "ms"), (1.0, "us")];
    match units.into_iter().find(|(length, _)| us >= *length) {
        Some((length, unit)) => format!("{} {unit}", digits(us / length)),
        None => format!("{} ns", digits(us * 1e3)),
    }
}

/// A number with three digits, and no more after the point than it needs: 0, 0.025, 3.14, 31.4, 314, 3140.
pub(super) fn digits(value: f64) -> String {
    // The first limits are where rounding would make a fourth digit.
    let places = match value {
        value if value >= 99.95 || value <= 0.0 => 0,
        value if value >= 9.995 => 1,
        value if value >= 0.9995 => 2,
        // One more for each zero after the point; what is below 1e-9 of the unit is shown as nothing.
        value => (3..9).find(|places| value * 10_f64.powi(*places) >= 99.95).unwrap_or(9),
    };
    let places = usize::try_from(places).unwrap_or(0);
    let text = format!("{value:.places$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

/// A count with a comma before each three digits.
pub(super) fn count(count: u64) -> String {
    let plain = count.to_string();
    let mut text = String::new();
    for (index, digit) in plain.chars().enumerate() {
        if index > 0 && (plain.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sparkline_reaches_from_nothing_to_the_greatest() {
        assert_eq!(sparkline(&[0.0, 0.001, 1.0, 4.0, 7.9, 8.0]), " ▁▁▄██");
        assert_eq!((sparkline(&[]), sparkline(&[0.0, 0.0])), (String::new(), "  ".to_owned()));
    }

    #[test]
    fn a_bar_has_eighths_of_characters() {
        assert_eq!([bar(0.0, 4), bar(0.5, 4), bar(1.0, 4), bar(0.53125, 4)], ["", "██", "████", "██▏"]);
        assert_eq!(bar(2.0, 2), "██");
    }

    #[test]
    fn quantities_are_in_the_unit_that_fits() {
        assert_eq!([bytes(0), bytes(512), bytes(4096), bytes(1536 << 20)], ["0 B", "512 B", "4 KiB", "1.5 GiB"]);
        assert_eq!([time(0.0), time(0.25), time(12.0), time(1_500.0)], ["0 ns", "250 ns", "12 us", "1.5 ms"]);
        assert_eq!([time(1e9), time(7.2e9)], ["1000 s", "2 h"]);
        assert_eq!([count(7), count(1_000), count(1_234_567)], ["7", "1,000", "1,234,567"]);
        let numbers = [0.0, 0.25649, 0.00029, 31.44, 99.99, 0.99999, 1e-30].map(digits);
        assert_eq!(numbers, ["0", "0.256", "0.00029", "31.4", "100", "1", "0"]);
    }
}
