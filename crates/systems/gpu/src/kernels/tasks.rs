//! The part of a kernel's tasks that falls to a lane.
//!
//! Source: \[C\] Vortex, `kernel/src/vx_spawn.c` (commit 04314cef): a core has a run of tasks, each warp a run of these, and adjacent lanes
//! adjacent ones.

use super::kernel::{LINE_WORDS, Place};

/// The tasks of a lane.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tasks {
    /// Number of its warp among all, and warps.
    warp: u64,
    warps: u64,
    lane: u64,
    lanes: u64,
}

impl Tasks {
    pub(super) fn new(place: Place) -> Self {
        Self {
            warp: (place.core * place.warps + place.warp).into(),
            warps: (place.cores * place.warps).into(),
            lane: place.lane.into(),
            lanes: place.lanes.into(),
        }
    }

    /// The lane's task number `at` of so many; it begins again after the last one.
    pub(super) fn task(&self, at: u64, tasks: u64) -> u64 {
        let part = (tasks / self.warps).max(1);
        (self.warp * part + (at * self.lanes + self.lane) % part) % tasks
    }

    /// Tasks of a lane, of so many.
    pub(super) fn of_lane(&self, tasks: u64) -> u64 {
        (tasks / self.warps / self.lanes).max(1)
    }

    /// The lane's line number `at` of an array of so many lines whose words are tasks: lanes of a warp go through a line together.
    pub(super) fn line(&self, at: u64, lines: u64) -> u64 {
        let part = (lines / self.warps).max(1);
        let together = self.lanes.div_ceil(LINE_WORDS);
        (self.warp * part + (at * together + self.lane / LINE_WORDS) % part) % lines
    }

    /// Words of such a line that are the lane's.
    pub(super) fn words(&self) -> u32 {
        LINE_WORDS.div_ceil(self.lanes) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn warps_have_runs_of_tasks_and_lanes_adjacent_ones() {
        let tasks = |warp, lane| Tasks::new(Place { core: 1, cores: 2, warp, warps: 2, lane, lanes: 8 });
        // Four warps have 100 tasks each.
        assert_eq!([0, 1, 12].map(|at| tasks(0, 0).task(at, 400)), [200, 208, 296]);
        assert_eq!([0, 1].map(|lane| tasks(1, lane).task(1, 400)), [308, 309]);
        assert_eq!(tasks(1, 7).task(12, 400), 300 + 103 % 100, "begins again");
        assert_eq!([0, 7].map(|lane| tasks(0, lane).line(3, 400)), [203, 203]);
        assert_eq!(tasks(0, 0).words(), 2);
    }
}
