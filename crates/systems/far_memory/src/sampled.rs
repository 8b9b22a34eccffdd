//! Systematic sampling of kernels: windows at equal distances over a whole computation.
//!
//! The computation is carried out once through the caches, without time. Where a window begins, the program and the caches are kept as they
//! are there, and each design goes on from them: first a part that figures do not count, then the measured one, which begins at the middle
//! of its part of the computation. Which windows there are follows from the number of accesses of the computation alone.
//!
//! Sources: [X] Wunderlich et al., "SMARTS", ISCA 2003, on windows at equal distances with caches and predictors that are kept warm between
//! them; Wenisch et al., "Simulation Sampling with Live-Points", ISPASS 2006, on states that are kept.

use crate::ahead::Recorded;
use crate::program::Source;
use flashyard_cxl::CACHE_LINE_BYTES;
use flashyard_describe::ScenarioError;
use flashyard_memory::{AccessKind, Accesses, Caches, MachineConfig};
use flashyard_prefetch::Seen;

/// A program where a window of it begins.
pub(crate) struct Window<'g> {
    sources: Vec<Source<'g>>,
    caches: Caches,
}

impl<'g> Window<'g> {
    /// The program of each core from here on.
    pub(crate) fn sources(&self) -> Vec<Source<'g>> {
        self.sources.iter().filter_map(Source::again).collect()
    }

    /// The caches that it has filled up to here.
    pub(crate) fn caches(&self) -> Caches {
        self.caches.clone()
    }
}

/// How accesses are spread over a computation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sampling {
    /// Windows.
    pub(crate) windows: u32,
    /// Accesses of each core in a window, before the measured part and in it.
    pub(crate) warm: u64,
    pub(crate) measured: u64,
}

/// Accesses of a kernel up to the begin of the computation that stands for all, and up to its end; `None` for other programs.
///
/// Passes of PageRank ask for the same, and the first one finds empty caches: its second one stands for all. The other kernels are computed
/// once.
fn whole(source: &mut Source<'_>) -> Option<[u64; 2]> {
    let first = u32::from(matches!(source, Source::PageRank(_)));
    let mut accesses = 0;
    let mut until = |rounds: u32| {
        while source.rounds()? < rounds {
            source.next_access()?;
            accesses += 1;
        }
        Some(accesses)
    };
    Some([until(first)?, until(first + 1)?])
}

/// The windows of a kernel and the requests that it makes up to the last of them; `None` for other programs. `sources` gives its accesses from
/// the begin.
///
/// Errors: windows that do not fit beside each other, caches that cannot be.
pub(crate) fn sampled<'g>(
    config: &MachineConfig,
    sampling: Sampling,
    sources: impl Fn() -> Result<Vec<Source<'g>>, ScenarioError>,
) -> Result<Option<(Vec<Window<'g>>, Recorded)>, ScenarioError> {
    let Some([begin, end]) = sources()?.first_mut().and_then(whole) else { return Ok(None) };
    let Sampling { windows, warm, measured } = sampling;
    let part = (end - begin) / u64::from(windows.max(1));
    if measured == 0 || measured > part / 2 || warm > part / 2 {
        let message = format!("windows of {warm} and {measured} accesses do not fit into {windows} parts of {part}");
        return Err(ScenarioError::value("memory.kernel", message));
    }
    let mut pass = Pass {
        caches: Caches::new(config.cores, &config.levels).map_err(ScenarioError::of_world)?,
        levels: config.levels.len(),
        left: Vec::new(),
        seen: Vec::new(),
    };
    let mut sources = sources()?;
    let mut recorded = Recorded::default();
    let (mut all, mut at) = (Vec::new(), 0);
    for number in 0..u64::from(windows) {
        let here = begin + number * part + part / 2 - warm;
        pass.go_on(&mut sources, here - at);
        let kept = sources.iter().filter_map(Source::again).collect();
        all.push(Window { sources: kept, caches: pass.caches.clone() });
        let begins = pass.seen.len();
        pass.go_on(&mut sources, warm);
        let measured_from = pass.seen.len();
        recorded.accesses += pass.go_on(&mut sources, measured);
        recorded.windows.push([begins, measured_from, pass.seen.len()]);
        at = here + warm + measured;
    }
    recorded.seen = pass.seen;
    Ok(Some((all, recorded)))
}

/// Programs that go through caches, without time.
struct Pass {
    caches: Caches,
    levels: usize,
    /// Changed lines that left the last level: no memory is there to take them.
    left: Vec<u64>,
    seen: Vec<Seen>,
}

impl Pass {
    /// Makes so many accesses of each core, in turn; returns how many there were.
    fn go_on(&mut self, sources: &mut [Source<'_>], accesses: u64) -> u64 {
        let mut made = 0;
        for _ in 0..accesses {
            for (core, source) in sources.iter_mut().enumerate() {
                let Some(access) = source.next_access() else { continue };
                made += 1;
                let line = access.address / CACHE_LINE_BYTES;
                let found = self.caches.access(core, line, access.kind != AccessKind::Load, &mut self.left);
                self.left.clear();
                if found == self.levels {
                    self.seen.push(Seen { line, counter: access.function.into() });
                }
            }
        }
        made
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ahead::{Part, record};
    use crate::program::{Data, Program};
    use flashyard_memory::{AnnotationRules, LevelConfig, Rmat};
    use flashyard_units::Hertz;

    const RMAT: Rmat = Rmat { scale: 10, edges_per_vertex: 8, seed: 3 };
    const SAMPLING: Sampling = Sampling { windows: 5, warm: 300, measured: 200 };

    fn config() -> MachineConfig {
        let level = |bytes, ways| LevelConfig { bytes, ways, cycles: 4, shared: false };
        MachineConfig {
            cores: 1,
            clock: Hertz::new(1_000_000_000),
            width: 4,
            window: 64,
            queue: 32,
            levels: vec![level(1024, 2), level(8192, 4)],
            core_misses: 8,
            last_misses: 8,
            uncached_from: None,
            annotations: AnnotationRules::default(),
        }
    }

    fn windows(
        program: Program,
        data: &Data,
        sampling: Sampling,
    ) -> Result<(Vec<Window<'_>>, Recorded), ScenarioError> {
        let found = sampled(&config(), sampling, || program.sources(1, data, 1))?;
        Ok(found.expect("it is a kernel"))
    }

    #[test]
    fn windows_ask_for_what_the_computation_asks_for_there() {
        for program in
            [Program::Components(RMAT), Program::PageRank(RMAT), Program::ShortestPaths(RMAT), Program::Triangles(RMAT)]
        {
            let data = program.data(None).expect("the graph is possible");
            let (kept, recorded) = windows(program, &data, SAMPLING).expect("they fit");
            let mut source = program.sources(1, &data, 1).expect("it has sources");
            let [begin, end] = whole(&mut source[0]).expect("it is a kernel");
            assert!(end - begin > 5 * 1000, "{program:?}: {begin} to {end}");
            assert_eq!((kept.len(), recorded.windows.len(), recorded.accesses), (5, 5, 5 * 200));
            // A machine in virtual time that runs all of it asks for the same, and the same program goes on from each window.
            let part = (end - begin) / 5;
            for (number, window) in kept.iter().enumerate() {
                let here = begin + number as u64 * part + part / 2 - 300;
                let mut sources = program.sources(1, &data, 1).expect("it has sources");
                let timed =
                    record(&config(), &mut sources, Part::Accesses(here), Part::Accesses(500)).expect("it runs");
                let [[_, from, to]] = timed.windows[..] else { panic!("there is one window") };
                let [begins, _, ends] = recorded.windows[number];
                assert_eq!(recorded.seen[begins..ends], timed.seen[from..to], "{program:?} {number}");
                let mut goes_on = window.sources();
                let mut pass = Pass { caches: window.caches(), levels: 2, left: Vec::new(), seen: Vec::new() };
                pass.go_on(&mut goes_on, 500);
                assert_eq!(pass.seen, timed.seen[from..to]);
            }
        }
    }

    #[test]
    fn networks_learn_nothing_that_is_measured() {
        let program = Program::PageRank(RMAT);
        let data = program.data(None).expect("the graph is possible");
        let (_, recorded) = windows(program, &data, SAMPLING).expect("they fit");
        let each = recorded.windows.iter().map(|[_, measured, _]| &recorded.seen[measured - 20..*measured]);
        assert_eq!(recorded.before(100), each.flatten().copied().collect::<Vec<_>>());
        // With no bound it is all that is not measured, up to the last measured part.
        let measured: usize = recorded.windows.iter().map(|[_, measured, end]| end - measured).sum();
        assert_eq!(recorded.before(u32::MAX).len(), recorded.seen.len() - measured);
        assert_eq!(recorded.between(1)[..], recorded.seen[recorded.windows[0][2]..recorded.windows[1][0]]);
    }

    #[test]
    fn windows_that_overlap_are_refused_and_other_programs_have_none() {
        let program = Program::Triangles(Rmat { scale: 4, ..RMAT });
        let data = program.data(None).expect("the graph is possible");
        let refused =
            windows(program, &data, Sampling { windows: 50, ..SAMPLING }).err().expect("they overlap").to_string();
        assert!(refused.contains("windows of 300 and 200 accesses do not fit into 50 parts"), "{refused}");
        let bfs = Program::Bfs(RMAT);
        let data = bfs.data(None).expect("the graph is possible");
        assert!(sampled(&config(), SAMPLING, || bfs.sources(1, &data, 1)).expect("it is no mistake").is_none());
    }
}
