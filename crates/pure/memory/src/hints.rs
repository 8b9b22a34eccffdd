//! Hints ahead of loads: which lines a root port names to a device before they are asked for, as far as the device's load allows.
//!
//! A hint of units of 256 bytes covers a window at a load. The window grows while answers say that the device is lightly loaded, shrinks
//! when they say that it is overloaded, and no hint goes to one that is severely so. A ring of hints that were issued keeps the port
//! from naming lines twice. The ends of a window are rounded to the nearest borders of units; a hint for each load is of 64 bytes, as
//! CXL has it.
//!
//! Source: \[P\] sheet micro-cxl-gpu §3.2 to §3.4; readings and numbers that the sheet marks \[A\] are marked here.

use flashyard_cxl::{DevLoad, UNIT_LINES as UNIT, UNITS_MAX};
use flashyard_units::{Named, SimTime};
use std::cmp::Ordering;
use std::collections::VecDeque;

/// Hints that the ring keeps. \[A\]
const RING: usize = 32;
/// Half windows in lines, from one line to 512 bytes. \[A\]
const STEPS: [u64; 4] = [1, 2, 4, 8];
/// Answers of a lightly loaded device before the window grows. \[A\]
const LIGHT_ANSWERS: u32 = 4;

/// Reads ahead of queued loads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum ReadAhead {
    /// Nothing.
    #[default]
    None,
    /// The line of each load.
    Naive,
    /// Lines from it on, as many as the device's load allows.
    Dynamic,
    /// Lines around it, by where queued loads lie.
    Window,
    /// That window by the letter of the source, which counts requests inside it.
    Literal,
    /// As many lines from it on as a hint can name, whatever the device's load is.
    Largest,
}

impl Named for ReadAhead {
    const ALL: &'static [Self] = &[Self::None, Self::Naive, Self::Dynamic, Self::Window, Self::Literal, Self::Largest];

    fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Naive => "naive",
            Self::Dynamic => "dynamic",
            Self::Window => "window",
            Self::Literal => "literal",
            Self::Largest => "largest",
        }
    }
}

/// Requests of a port beside a load, counted by the lines that they are to.
pub trait Beside {
    /// Requests under way to lines of a range.
    fn prior(&self, from: u64, to: u64) -> usize;

    /// Loads to lines of a range that wait to be sent.
    fn future(&self, from: u64, to: u64) -> usize;
}

/// The part of a root port that gives hints.
#[derive(Clone, Debug)]
pub struct Hinter {
    read_ahead: ReadAhead,
    /// Lines of hints that were issued, first and end.
    ring: VecDeque<(u64, u64)>,
    step: usize,
    light: u32,
    is_stopped: bool,
    load: DevLoad,
}

impl Hinter {
    /// A port that has heard nothing of its device.
    pub fn new(read_ahead: ReadAhead) -> Self {
        Self {
            read_ahead,
            ring: VecDeque::with_capacity(RING),
            step: 0,
            light: 0,
            is_stopped: false,
            load: DevLoad::Light,
        }
    }

    /// The load of the device by its last answer.
    pub fn load(&self) -> DevLoad {
        self.load
    }

    /// Follows the load of the device, which an answer has brought.
    pub fn heard(&mut self, load: DevLoad) {
        self.load = load;
        match load {
            DevLoad::Light => {
                if self.is_stopped {
                    (self.is_stopped, self.step) = (false, 0);
                }
                self.light += 1;
                if self.light >= LIGHT_ANSWERS {
                    (self.light, self.step) = (0, (self.step + 1).min(STEPS.len() - 1));
                }
            }
            DevLoad::Optimal => self.light = 0,
            DevLoad::Moderate => (self.light, self.step) = (0, self.step.saturating_sub(1)),
            DevLoad::Severe => (self.light, self.is_stopped) = (0, true),
        }
    }

    /// Hints at the window of a load, as far as it was not hinted at before: `send` gets the first line of each hint and the one
    /// after its last.
    pub fn hint(&mut self, line: u64, beside: &impl Beside, mut send: impl FnMut(u64, u64)) {
        let is_bounded = !matches!(self.read_ahead, ReadAhead::None | ReadAhead::Naive | ReadAhead::Largest);
        if self.read_ahead == ReadAhead::None || is_bounded && self.is_stopped || self.is_covered(line) {
            return;
        }
        if self.read_ahead == ReadAhead::Naive {
            self.issue(line, line + 1, &mut send);
            return;
        }
        let (first, end) = rounded(line, self.window(line, beside));
        let mut unit = first;
        // Runs of units that no hint of the ring has.
        while unit < end {
            if self.is_covered(unit) {
                unit += UNIT;
                continue;
            }
            let begin = unit;
            while unit < end && !self.is_covered(unit) {
                unit += UNIT;
            }
            self.issue(begin, unit, &mut send);
        }
    }

    fn issue(&mut self, first: u64, end: u64, send: &mut impl FnMut(u64, u64)) {
        if self.ring.len() == RING {
            self.ring.pop_front();
        }
        self.ring.push_back((first, end));
        send(first, end);
    }

    fn is_covered(&self, line: u64) -> bool {
        self.ring.iter().any(|&(first, end)| (first..end).contains(&line))
    }

    /// Lines that are worth reading for a load, first and end.
    fn window(&self, line: u64, beside: &impl Beside) -> (u64, u64) {
        let half = STEPS[self.step];
        let (back, forward) = (line.saturating_sub(2 * half), line + 2 * half);
        match self.read_ahead {
            ReadAhead::None | ReadAhead::Naive => (line, line + 1),
            ReadAhead::Dynamic => (line, forward),
            ReadAhead::Largest => (line, line + 2 * STEPS[STEPS.len() - 1]),
            ReadAhead::Window => {
                let up = beside.prior(back, line) + beside.future(line + 1, forward + 1);
                let down = beside.prior(line + 1, forward + 1) + beside.future(back, line);
                match up.cmp(&down) {
                    Ordering::Greater => (line, forward),
                    Ordering::Less => ((line + 1).saturating_sub(2 * half), line + 1),
                    Ordering::Equal => (line.saturating_sub(half), line + half),
                }
            }
            ReadAhead::Literal => {
                let (start, end) = (line.saturating_sub(half), line + half);
                let up = beside.prior(start, end) as u64;
                let down = beside.future(start, end) as u64;
                ((start + up).min(line), end.saturating_sub(down).max(line + 1))
            }
        }
    }
}

/// A window with its ends at the nearest borders of units \[P\]. It has the unit of its load, and no more units than a hint names: those that
/// are farthest from the load are left out. \[A\]
fn rounded(line: u64, (start, end): (u64, u64)) -> (u64, u64) {
    let nearest = |at: u64| (at + UNIT / 2) / UNIT * UNIT;
    let own = line / UNIT * UNIT;
    let (mut first, mut end) = (nearest(start).min(own), nearest(end).max(own + UNIT));
    while end - first > UNITS_MAX * UNIT {
        if own - first > end - UNIT - own {
            first += UNIT;
        } else {
            end -= UNIT;
        }
    }
    (first, end)
}

/// The hints of a port whose requests are sent at once: none waits, and those under way are the ones that have no answer yet.
#[derive(Clone, Debug)]
pub(crate) struct PortHints {
    hinter: Hinter,
    under_way: Sent,
    /// Hints that were sent, and the lines in them.
    pub(crate) counts: [u64; 2],
}

/// A request without an answer, by its line, with the time of the answer and the load that it brings.
#[derive(Clone, Debug)]
struct Sent(Vec<(u64, SimTime, DevLoad)>);

impl Beside for Sent {
    fn prior(&self, from: u64, to: u64) -> usize {
        self.0.iter().filter(|sent| (from..to).contains(&sent.0)).count()
    }

    fn future(&self, _: u64, _: u64) -> usize {
        0
    }
}

impl PortHints {
    pub(crate) fn new(read_ahead: ReadAhead) -> Self {
        Self { hinter: Hinter::new(read_ahead), under_way: Sent(Vec::with_capacity(RING)), counts: [0; 2] }
    }

    /// Hints at a load of `now`, after the answers that have come by then.
    pub(crate) fn hint(&mut self, now: SimTime, line: u64, mut send: impl FnMut(u64, u64)) {
        let Self { hinter, under_way, counts } = self;
        under_way.0.retain(|sent| {
            let waits = sent.1 > now;
            if !waits {
                hinter.heard(sent.2);
            }
            waits
        });
        hinter.hint(line, under_way, |first, end| {
            counts[0] += 1;
            counts[1] += end - first;
            send(first, end);
        });
    }

    /// Notes a request that was sent, whose answer comes at `done`.
    pub(crate) fn sent(&mut self, line: u64, done: SimTime, load: DevLoad) {
        self.under_way.0.push((line, done, load));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Lines(Vec<u64>, Vec<u64>);

    impl Beside for Lines {
        fn prior(&self, from: u64, to: u64) -> usize {
            self.0.iter().filter(|line| (from..to).contains(line)).count()
        }

        fn future(&self, from: u64, to: u64) -> usize {
            self.1.iter().filter(|line| (from..to).contains(line)).count()
        }
    }

    fn hints(hinter: &mut Hinter, line: u64, beside: &Lines) -> Vec<(u64, u64)> {
        let mut sent = Vec::new();
        hinter.hint(line, beside, |first, end| sent.push((first, end)));
        sent
    }

    #[test]
    fn a_window_goes_where_loads_go_and_grows_while_the_device_is_light() {
        let mut hinter = Hinter::new(ReadAhead::Window);
        (0..3 * LIGHT_ANSWERS).for_each(|_| hinter.heard(DevLoad::Light));
        let up = Lines(vec![96, 97, 98], vec![]);
        assert_eq!(hints(&mut hinter, 100, &up), [(100, 116)]);
        let down = Lines(vec![202, 204], vec![]);
        assert_eq!(hints(&mut hinter, 203, &Lines(vec![204, 205], vec![])), [(188, 204)]);
        assert_eq!(hints(&mut hinter, 303, &down), [(296, 312)], "loads elsewhere say nothing");
        assert_eq!(hints(&mut hinter, 104, &up), [], "it was hinted at");
        assert_eq!(hints(&mut hinter, 116, &up), [(116, 124)], "of a window, what is new");
    }

    #[test]
    fn ends_of_a_window_are_the_nearest_borders_of_units() {
        let around = |line: u64, half: u64| rounded(line, (line - half, line + half));
        // Windows of 512 bytes either way are as long as a hint can be, wherever their load lies in its unit.
        assert_eq!([100, 101, 102, 103].map(|line| around(line, 8)), [(92, 108), (92, 108), (96, 112), (96, 112)]);
        assert_eq!([100, 101, 102, 103].map(|line| around(line, 4)), [(96, 104), (96, 104), (100, 108), (100, 108)]);
        assert_eq!([100, 101, 102, 103].map(|line| around(line, 1)), [(100, 104); 4], "the unit of the load at least");
        assert_eq!([(100, 116), (103, 119)].map(|window| rounded(window.0, window)), [(100, 116); 2]);
        assert_eq!([(85, 101), (88, 104)].map(|window| rounded(window.1 - 1, window)), [(88, 104); 2]);
    }

    #[test]
    fn a_hint_for_each_load_is_of_its_line_alone() {
        let mut hinter = Hinter::new(ReadAhead::Naive);
        let nothing = Lines(vec![], vec![]);
        assert_eq!(
            [101, 102, 101].map(|line| hints(&mut hinter, line, &nothing)),
            [vec![(101, 102)], vec![(102, 103)], vec![]]
        );
    }

    #[test]
    fn a_device_that_cannot_keep_up_gets_no_hints_until_it_is_light_again() {
        let nothing = Lines(vec![], vec![]);
        for (read_ahead, goes_on) in [(ReadAhead::Dynamic, false), (ReadAhead::Largest, true)] {
            let mut hinter = Hinter::new(read_ahead);
            hinter.heard(DevLoad::Severe);
            hinter.heard(DevLoad::Optimal);
            assert_eq!(hints(&mut hinter, 100, &nothing).len(), usize::from(goes_on));
            hinter.heard(DevLoad::Light);
            assert_eq!(hints(&mut hinter, 500, &nothing).len(), 1);
        }
    }
}
