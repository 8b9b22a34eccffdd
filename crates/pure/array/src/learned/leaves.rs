//! Leaves: stripes beside each other whose chunks lie on a line.

/// Places between two stripes of a run, so that leaves have slopes for all runs.
pub(super) const STRIDES: std::ops::RangeInclusive<i32> = -8..=7;

/// A slope of 1: slopes are multiples of a sixteenth. Source: \[A\] sheet paraid §3.3 leaves the format of slopes open.
pub(super) const ONE: i64 = 16;

/// Chunks of stripes beside each other at places of one drive that are evenly apart: stripe `first + i` has place `chunk + i * stride`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// The first stripe.
    pub first: u32,
    /// Stripes, at least one.
    pub count: u32,
    /// Number of the drive.
    pub drive: u8,
    /// Place of the first stripe on the drive, in chunks.
    pub chunk: u32,
    /// Places from one stripe to the next.
    pub stride: i32,
}

/// Slope and intercept of a leaf, six bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Leaf {
    /// Places per stripe, in sixteenths.
    pub(super) slope: i8,
    pub(super) drive: u8,
    /// Place of its first stripe.
    pub(super) intercept: u32,
}

impl Leaf {
    /// The place of the stripe that is so many behind the first.
    #[inline]
    pub(super) fn place(self, behind: u32) -> i64 {
        let way = i64::from(self.slope) * i64::from(behind) + ONE / 2;
        i64::from(self.intercept) + way.div_euclid(ONE)
    }

    /// The stripe at a place, counted from the first; `count` are those of the leaf.
    pub(super) fn behind(self, place: u32, count: u32) -> Option<u32> {
        let way = i64::from(place) - i64::from(self.intercept);
        let slope = i64::from(self.slope);
        let near = if slope == 0 { 0 } else { way * ONE / slope };
        let is_it =
            |&behind: &i64| (0..i64::from(count)).contains(&behind) && self.place(behind as u32) == i64::from(place);
        [near, near - 1, near + 1].into_iter().find(is_it).map(|behind| behind as u32)
    }

    /// The lowest and the highest place of its stripes.
    pub(super) fn span(self, count: u32) -> (i64, i64) {
        let (first, last) = (self.place(0), self.place(count - 1));
        (first.min(last), first.max(last))
    }

    /// Its stripes behind the first `skipped`, as runs without rounding.
    pub(super) fn runs(self, start: u32, stripes: std::ops::Range<u32>, out: &mut Vec<Run>) {
        let Self { slope, drive, .. } = self;
        let run = |behind: u32, count, stride| Run {
            first: start + behind,
            count,
            drive,
            chunk: self.place(behind) as u32,
            stride,
        };
        if stripes.is_empty() {
        } else if i64::from(slope) % ONE == 0 {
            out.push(run(stripes.start, stripes.len() as u32, i32::from(slope) / ONE as i32));
        } else {
            out.extend(stripes.map(|behind| run(behind, 1, 0)));
        }
    }
}

/// A leaf that still grows, and the slopes without error so far.
struct Growing {
    first: u32,
    end: u32,
    drive: u8,
    chunk: u32,
    low: i64,
    high: i64,
}

impl Growing {
    fn new(run: &Run) -> Self {
        let Run { first, drive, chunk, .. } = *run;
        Self { first, end: first + 1, drive, chunk, low: i64::from(i8::MIN), high: i64::from(i8::MAX) }
    }

    /// Takes one more stripe if there is a slope for it.
    fn takes(&mut self, way: i64) -> bool {
        let behind = i64::from(self.end - self.first);
        // floor((slope * behind + ONE / 2) / ONE) == way
        let low = -(ONE / 2 - ONE * way).div_euclid(behind);
        let high = (ONE * way + ONE / 2 - 1).div_euclid(behind);
        let (low, high) = (self.low.max(low), self.high.min(high));
        let takes = low <= high;
        if takes {
            (self.low, self.high, self.end) = (low, high, self.end + 1);
        }
        takes
    }

    /// Takes stripes of a run from number `from` on; returns how many.
    fn take(&mut self, run: &Run, from: u32) -> u32 {
        let chunk = i64::from(self.chunk);
        let way = |number: u32| i64::from(run.chunk) + i64::from(run.stride) * i64::from(number) - chunk;
        let stride = i64::from(run.stride);
        let on_line = way(from) == stride * i64::from(self.end - self.first);
        if run.drive != self.drive || run.first + from != self.end {
            return 0;
        }
        if on_line && (self.low..=self.high).contains(&(stride * ONE)) {
            // The farthest stripe bounds the slope most.
            let last = way(run.count - 1);
            self.end = run.first + run.count - 1;
            let takes = self.takes(last);
            debug_assert!(takes, "a line takes its own points");
            return run.count - from;
        }
        let before = self.end;
        for number in from..run.count {
            let way = way(number);
            if !self.takes(way) {
                break;
            }
        }
        self.end - before
    }

    fn leaf(&self) -> Leaf {
        // Whole slopes are those of runs; 1 is that of stripes that were never moved.
        let whole = self.high.div_euclid(ONE) * ONE;
        let slope = [ONE, whole].into_iter().find(|slope| (self.low..=self.high).contains(slope)).unwrap_or(self.low);
        Leaf { slope: slope as i8, drive: self.drive, intercept: self.chunk }
    }
}

/// Leaves of the stripes of `runs`, which follow each other from stripe 0 on: starts, and leaves.
pub(super) fn fit(runs: &[Run]) -> (Vec<u32>, Vec<Leaf>) {
    let (mut starts, mut leaves) = (Vec::new(), Vec::new());
    let mut growing: Option<Growing> = None;
    for run in runs {
        let mut from = 0;
        while from < run.count {
            let taken = growing.as_mut().map_or(0, |leaf| leaf.take(run, from));
            from += taken;
            if from < run.count {
                let chunk = (i64::from(run.chunk) + i64::from(run.stride) * i64::from(from)) as u32;
                let rest = Run { first: run.first + from, chunk, ..*run };
                if let Some(full) = growing.replace(Growing::new(&rest)) {
                    starts.push(full.first);
                    leaves.push(full.leaf());
                }
                from += 1;
            }
        }
    }
    if let Some(last) = growing {
        starts.push(last.first);
        leaves.push(last.leaf());
    }
    (starts, leaves)
}
