//! Parameters of a drive that figures of fio are about.

use super::measured::{Figure, FigureKind};

/// How a parameter follows a miss of its figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Follows {
    /// A time that is part of a latency: it takes up what the latency misses.
    Sum,
    /// A share or a rate that the figure grows with: by the ratio of the figures.
    Ratio,
    /// A limit of the figure, which is none as long as the drive is not faster than measured. Then it is the figure itself, and follows by the ratio.
    Limit,
}

/// Unit of a parameter's number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unit {
    Microseconds,
    BytesPerSecond,
    /// A whole number.
    Count,
    Share,
}

/// A parameter and the figure that it moves most.
#[derive(Debug)]
pub struct Parameter {
    /// The key of scenarios.
    pub key: &'static str,
    /// Other keys that make it known.
    also: &'static [&'static str],
    /// The figure that it is fitted to.
    pub figure: FigureKind,
    follows: Follows,
    unit: Unit,
    least: f64,
    most: f64,
    /// Its first value: of a limit none at all.
    begins: f64,
}

/// Parameters in the order in which a report names them. Bounds are \[A\]: beyond them there is no drive.
pub(super) const PARAMETERS: [Parameter; 6] = [
    Parameter {
        key: "drive.read_time",
        also: &["read_lsb"],
        figure: FigureKind::ReadAlone,
        follows: Follows::Sum,
        unit: Unit::Microseconds,
        least: 0.5,
        most: 1000.0,
        begins: 50.0,
    },
    Parameter {
        key: "drive.commands_per_second",
        also: &["command_interval", "cycles_per_command"],
        figure: FigureKind::ReadMany,
        follows: Follows::Limit,
        unit: Unit::Count,
        least: 1e3,
        most: 2.6e6,
        begins: 2.6e6,
    },
    Parameter {
        key: "drive.read_rate",
        also: &[],
        figure: FigureKind::ReadSequential,
        follows: Follows::Limit,
        unit: Unit::BytesPerSecond,
        least: 1e7,
        most: 3e10,
        begins: 3e10,
    },
    Parameter {
        key: "host.submit_latency",
        also: &[],
        figure: FigureKind::WriteAlone,
        follows: Follows::Sum,
        unit: Unit::Microseconds,
        least: 0.0,
        most: 1000.0,
        begins: 0.0,
    },
    Parameter {
        key: "drive.over_provisioning",
        also: &["raw_capacity"],
        figure: FigureKind::WriteMany,
        follows: Follows::Ratio,
        unit: Unit::Share,
        least: 0.05,
        most: 0.6,
        begins: 0.1268,
    },
    Parameter {
        key: "drive.program_rate",
        also: &[],
        figure: FigureKind::WriteSequential,
        follows: Follows::Limit,
        unit: Unit::BytesPerSecond,
        least: 1e7,
        most: 3e10,
        begins: 3e10,
    },
];

impl Parameter {
    /// Whether the user gives it.
    pub(super) fn is_known(&self, known: &[(String, String)]) -> bool {
        let own = self.key.split_once('.').map_or(self.key, |(_, key)| key);
        known.iter().any(|(key, _)| key == own || self.also.contains(&key.as_str()))
    }

    /// A value as a scenario takes it.
    pub(super) fn text(&self, value: f64) -> String {
        match self.unit {
            Unit::Microseconds => format!("\"{} ns\"", (value * 1e3).round()),
            Unit::BytesPerSecond => format!("\"{} MB/s\"", (value / 1e6).round().max(1.0)),
            Unit::Count => format!("{}", value.round()),
            Unit::Share => format!("{:.4}", value),
        }
    }
}

/// A parameter with its value.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) parameter: &'static Parameter,
    pub(super) value: f64,
}

impl Entry {
    /// A change to `value` as a share, whose logarithm a figure of `own` would move by if it were all of the figure.
    pub(super) fn share(&self, value: f64, own: f64) -> f64 {
        match self.parameter.follows {
            Follows::Sum => (value - self.value) / own,
            Follows::Ratio | Follows::Limit => (value / self.value).ln(),
        }
    }
}

/// Values of all parameters that are fitted.
#[derive(Clone, Debug)]
pub(super) struct Values {
    pub(super) entries: Vec<Entry>,
}

impl Values {
    /// First values.
    pub(super) fn of(parameters: &[&'static Parameter]) -> Self {
        Self { entries: parameters.iter().map(|&parameter| Entry { parameter, value: parameter.begins }).collect() }
    }

    /// Moves each parameter by what its figure misses.
    pub(super) fn follow(&mut self, figures: &[Figure], simulated: &[f64]) {
        for entry in &mut self.entries {
            let place = figures.iter().position(|figure| figure.kind == entry.parameter.figure);
            let Some((figure, simulated)) = place.map(|place| (figures[place].value, simulated[place])) else {
                continue;
            };
            let moved = match entry.parameter.follows {
                Follows::Sum => entry.value + figure - simulated,
                Follows::Limit if simulated > figure && entry.value > 1.5 * figure => figure,
                // No further than a factor of two at once: a figure that does not follow must not run away.
                Follows::Ratio | Follows::Limit => entry.value * (figure / simulated).clamp(0.5, 2.0),
            };
            entry.value = moved.clamp(entry.parameter.least, entry.parameter.most);
        }
    }

    /// With one parameter changed by a factor; a time of none becomes a microsecond.
    pub(super) fn nudged(&self, place: usize, factor: f64) -> Self {
        let mut nudged = self.clone();
        let value = &mut nudged.entries[place].value;
        *value = if *value == 0.0 { 1.0 } else { *value * factor };
        nudged
    }
}
