//! A pass of a trace that its characteristics describe, repeated as a trace is that is read in a loop.

use crate::arrival::{Arrival, Clock};
use crate::sizes::SizeMix;
use crate::source::{RequestSource, SourceError};
use crate::spec_error::SpecError;
use crate::surrogates::Characteristics;
use flashyard_blk::{BlockRequest, Operation, TraceRecord};
use flashyard_kernel::Rng;
use std::ops::Range;

/// Unit of addresses and sizes.
const SLOT_BYTES: u32 = 4096;

/// Requests of a pass at most. \[A\] two gigabytes for its order
const REQUESTS_MAX: f64 = (1_u32 << 29) as f64;

/// One drawn pass, without end repeated: writes only.
///
/// The footprint is laid out with writes, end to end, of the sizes of the row. A run is a row of writes that follow each other, as many as
/// the row's share of sequential writes says. A pass makes every run as often as the traffic of its part of the footprint asks for, hot or
/// cold, with a fraction rounded either way by chance, and in random order. So it writes each page of the footprint as soon as it is
/// long enough for the cold ones: r / h times the footprint.
///
/// Source: \[P\] the footprint is the space "that has write accesses", so a pass covers it. \[A\]: a run begins and ends at the
/// same place each time.
#[derive(Clone, Debug)]
pub struct Pass {
    /// First slots of the writes of the layout, and its end.
    borders: Vec<u32>,
    /// Writes of each run, by their places in the layout.
    runs: Vec<Range<u32>>,
    /// Runs in the order of a pass.
    order: Vec<u32>,
    /// Place in the order, and of the next write of its run in the layout.
    next: (usize, u32),
    clock: Clock,
    rng: Rng,
}

impl Pass {
    /// A pass of `row` that writes its footprint on a drive of `logical_bytes` so many `times`.
    ///
    /// Errors: a length of no request or of too many; a footprint beyond 16 TiB; arrivals outside their range.
    pub fn new(
        row: &Characteristics,
        logical_bytes: u64,
        times: f64,
        arrival: &Arrival,
        mut rng: Rng,
    ) -> Result<Self, SpecError> {
        arrival.validate()?;
        let wrong = |range| SpecError::new("length of a pass", times.to_string(), range);
        let footprint = row.footprint_bytes(logical_bytes) / u64::from(SLOT_BYTES);
        let slots = u32::try_from(footprint).map_err(|_| wrong("a footprint of less than 16 TiB"))?;
        if !(times > 0.0 && times * f64::from(slots) < REQUESTS_MAX) {
            return Err(wrong("above 0, and below 2^29 pages in all"));
        }
        let (borders, runs) = lay_out(row, slots, &mut rng);
        let order = order(row, times, &borders, &runs, &mut rng);
        let first = order.first().ok_or_else(|| wrong("enough for one request"))?;
        let next = (0, runs[*first as usize].start);
        Ok(Self { borders, runs, order, next, clock: arrival.start(), rng })
    }

    /// Slots that a pass writes.
    pub fn slots(&self) -> u64 {
        let run = |&run: &u32| {
            let Range { start, end } = self.runs[run as usize].clone();
            u64::from(self.borders[end as usize] - self.borders[start as usize])
        };
        self.order.iter().map(run).sum()
    }
}

/// Writes end to end over `slots` slots, and the runs that they are cut into.
fn lay_out(row: &Characteristics, slots: u32, rng: &mut Rng) -> (Vec<u32>, Vec<Range<u32>>) {
    // Places are not drawn here.
    let sizes = SizeMix::Mean(row.write_kib * 1024.0).prepare(|_| 1);
    let (mut borders, mut runs) = (vec![0], Vec::<Range<u32>>::new());
    let mut end = 0;
    while end < slots {
        let write = borders.len() as u32 - 1;
        let goes_on = rng.unit() < row.sequential;
        match runs.last_mut() {
            Some(run) if goes_on => run.end += 1,
            _ => runs.push(write..write + 1),
        }
        end = slots.min(end + sizes.draw(rng).len_bytes.div_ceil(SLOT_BYTES));
        borders.push(end);
    }
    (borders, runs)
}

/// Runs in the order of a pass.
fn order(row: &Characteristics, times: f64, borders: &[u32], runs: &[Range<u32>], rng: &mut Rng) -> Vec<u32> {
    let slots = borders.last().copied().map_or(0.0, f64::from);
    let (space, traffic) = (row.hot_space_percent / 100.0, row.hot_traffic_percent / 100.0);
    let (hot, cold) = (times * traffic / space, times * (1.0 - traffic) / (1.0 - space));
    let mut order = Vec::new();
    for (number, run) in (0..).zip(runs) {
        let is_hot = f64::from(borders[run.start as usize]) < space * slots;
        let visits = if is_hot { hot } else { cold };
        let whole = visits.floor();
        let count = whole as usize + usize::from(rng.unit() < visits - whole);
        order.extend(std::iter::repeat_n(number, count));
    }
    for place in (1..order.len()).rev() {
        order.swap(place, rng.below(place as u64 + 1) as usize);
    }
    order
}

impl RequestSource for Pass {
    #[inline]
    fn next_request(&mut self) -> Result<Option<TraceRecord>, SourceError> {
        let (place, write) = self.next;
        let (first, end) = (self.borders[write as usize], self.borders[write as usize + 1]);
        self.next = if write + 1 < self.runs[self.order[place] as usize].end {
            (place, write + 1)
        } else {
            let place = (place + 1) % self.order.len();
            (place, self.runs[self.order[place] as usize].start)
        };
        let arrival = self.clock.next(&mut self.rng)?;
        let request = BlockRequest {
            operation: Operation::Write,
            offset_bytes: u64::from(first) * u64::from(SLOT_BYTES),
            len_bytes: (end - first) * SLOT_BYTES,
        };
        Ok(Some(TraceRecord { arrival, volume: 0, request }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::surrogates::{TRACES, characteristics};

    const LOGICAL: u64 = 1 << 30;

    fn pass(name: &str, times: f64) -> Pass {
        let row = characteristics(name).expect("it is in the table");
        Pass::new(row, LOGICAL, times, &Arrival::Immediate, Rng::named(3, name)).expect("the pass is possible")
    }

    /// Writes of a pass, as slots.
    fn writes(pass: &mut Pass) -> Vec<Range<u64>> {
        let mut left = pass.slots();
        let mut found = Vec::new();
        while left > 0 {
            let request = pass.next_request().expect("time stands still").expect("it has no end").request;
            let first = request.offset_bytes / u64::from(SLOT_BYTES);
            let count = u64::from(request.len_bytes / SLOT_BYTES);
            left = left.checked_sub(count).expect("a pass ends with a write");
            found.push(first..first + count);
        }
        found
    }

    #[test]
    fn a_pass_covers_its_footprint_and_has_the_figures_of_its_row() {
        for row in &TRACES {
            // Long enough for each page of the cold part, and shorter than what is drawn without this bound would be.
            let times = 1.05 * row.hot_traffic_percent / row.hot_space_percent;
            let mut pass = pass(row.name, times);
            let slots = row.footprint_bytes(LOGICAL) / u64::from(SLOT_BYTES);
            let mut counts = vec![0_u32; slots as usize];
            let found = writes(&mut pass);
            found.iter().flat_map(Clone::clone).for_each(|slot| counts[slot as usize] += 1);
            assert!(counts.iter().all(|&count| count > 0), "{}: a page is never written", row.name);
            let total = pass.slots() as f64;
            // A small footprint is of some dozens of runs.
            let near = |what: &str, found: f64, expected: f64, tolerance: f64| {
                assert!((found / expected - 1.0).abs() < tolerance, "{}, {what}: {found} for {expected}", row.name);
            };
            near("length", total / slots as f64, times, 0.12);
            counts.sort_unstable_by(|a, b| b.cmp(a));
            let hot = (row.hot_space_percent / 100.0 * slots as f64) as usize;
            let traffic = counts[..hot].iter().map(|&count| f64::from(count)).sum::<f64>() / total;
            near("traffic of the hottest pages", traffic, row.hot_traffic_percent / 100.0, 0.1);
            if slots > 4_000 {
                near("size", 4.0 * total / found.len() as f64, row.write_kib, 0.02);
                let follow = found.windows(2).filter(|pair| pair[1].start == pair[0].end).count();
                let sequential = follow as f64 / found.len() as f64;
                assert!((sequential - row.sequential).abs() < 0.03, "{}: {sequential}", row.name);
            }
        }
    }

    #[test]
    fn passes_are_alike_and_other_seeds_are_not() {
        let mut source = pass("RAD-BE", 5.8);
        let first = writes(&mut source);
        assert_eq!(first, writes(&mut source));
        assert_eq!(first, writes(&mut pass("RAD-BE", 5.8)));
        let row = characteristics("RAD-BE").expect("it is in the table");
        let other = Pass::new(row, LOGICAL, 5.8, &Arrival::Immediate, Rng::named(4, "RAD-BE"));
        assert_ne!(first, writes(&mut other.expect("the pass is possible")));
    }

    #[test]
    fn a_pass_that_cannot_be_is_refused() {
        let row = characteristics("VDI").expect("it is in the table");
        for times in [0.0, -1.0, f64::NAN, 1e9] {
            let pass = Pass::new(row, LOGICAL, times, &Arrival::Immediate, Rng::named(1, "test"));
            assert!(pass.is_err(), "{times}");
        }
    }
}
