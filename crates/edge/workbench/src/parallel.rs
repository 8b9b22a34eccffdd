//! Independent runs on several threads, with one watcher. Results come back in the order of the work, whatever the threads did. A run that
//! panics is a run that failed: it takes no other one with it.

use flashyard_scenario::ScenarioError;
use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, Once};

/// A watcher of work that takes time. It is called from several threads.
pub trait Watch: Sync {
    /// Work begins that consists of so many steps, in a word.
    fn begin(&self, steps: u64, label: &str);

    /// So many steps more are done.
    fn advance(&self, steps: u64);

    /// The work has ended, whole or not.
    fn end(&self);

    /// Whether the work is to stop as soon as it can.
    fn stops(&self) -> bool;
}

/// Steps of a run.
const STEPS: u64 = 1000;

/// A run that ended in a panic: a mistake in the program.
#[derive(Clone, Debug, thiserror::Error)]
#[error("a mistake in the program, please report it with the scenario: {0}")]
pub struct Panicked(String);

impl From<Panicked> for ScenarioError {
    fn from(panicked: Panicked) -> Self {
        Self::Program(panicked.to_string())
    }
}

thread_local! {
    /// Message and place of the last panic of this thread.
    static LAST: RefCell<String> = const { RefCell::new(String::new()) };
    /// Whether this thread is in a run, whose panic is told with its error.
    static IS_GUARDED: Cell<bool> = const { Cell::new(false) };
}

/// Keeps the words of panics in runs, which are told once, with their errors; others are told as before. Hooks are of the process, in which
/// several callers may run at once: there is one for all of them.
fn keep_words() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| match IS_GUARDED.get() {
            true => _ = LAST.with(|last| last.replace(panic.to_string().replace('\n', " "))),
            false => before(panic),
        }));
    });
}

/// Does `work`; a panic in it is an error like others.
fn guarded<R, E: From<Panicked>>(work: impl FnOnce() -> Result<R, E>) -> Result<R, E> {
    IS_GUARDED.set(true);
    // A run owns all that it changes, so nothing half changed outlives it.
    let result = catch_unwind(AssertUnwindSafe(work));
    IS_GUARDED.set(false);
    result.unwrap_or_else(|_| Err(Panicked(LAST.take()).into()))
}

/// Does `work(index, observer)` for every index below `count` on `threads` threads (all cores without it).
/// `None` where it was not done because the watcher stopped it or because another run failed.
pub fn run_all<R: Send, E: Send + From<Panicked>>(
    count: usize,
    threads: Option<usize>,
    label: &str,
    watch: &dyn Watch,
    work: impl Fn(usize, &mut dyn FnMut(f64) -> bool) -> Result<R, E> + Sync,
) -> Vec<Option<Result<R, E>>> {
    Crew { count, threads, stops_at_failure: true, watch }.carry_out(label, work)
}

/// Like [`run_all`], but runs go on when another one fails: what can be finished is.
pub fn run_each<R: Send, E: Send + From<Panicked>>(
    count: usize,
    threads: Option<usize>,
    label: &str,
    watch: &dyn Watch,
    work: impl Fn(usize, &mut dyn FnMut(f64) -> bool) -> Result<R, E> + Sync,
) -> Vec<Option<Result<R, E>>> {
    Crew { count, threads, stops_at_failure: false, watch }.carry_out(label, work)
}

struct Crew<'a> {
    count: usize,
    threads: Option<usize>,
    stops_at_failure: bool,
    watch: &'a dyn Watch,
}

impl Crew<'_> {
    fn carry_out<R: Send, E: Send + From<Panicked>>(
        &self,
        label: &str,
        work: impl Fn(usize, &mut dyn FnMut(f64) -> bool) -> Result<R, E> + Sync,
    ) -> Vec<Option<Result<R, E>>> {
        let available = std::thread::available_parallelism().map_or(1, usize::from);
        let threads = self.threads.unwrap_or(available).clamp(1, self.count.max(1));
        let results: Vec<Mutex<Option<Result<R, E>>>> = (0..self.count).map(|_| Mutex::new(None)).collect();
        let next = AtomicUsize::new(0);
        let failed = AtomicBool::new(false);
        self.watch.begin(self.count as u64 * STEPS, label);
        keep_words();
        std::thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(|| {
                    loop {
                        let index = next.fetch_add(1, Ordering::Relaxed);
                        if index >= self.count || self.watch.stops() || failed.load(Ordering::Relaxed) {
                            break;
                        }
                        let mut done = 0;
                        let mut observer = |share: f64| {
                            let now = (share * STEPS as f64) as u64;
                            if now > done {
                                self.watch.advance(now - done);
                                done = now;
                            }
                            !self.watch.stops() && !failed.load(Ordering::Relaxed)
                        };
                        let result = guarded(|| work(index, &mut observer));
                        failed.fetch_or(self.stops_at_failure && result.is_err(), Ordering::Relaxed);
                        if let Ok(mut place) = results[index].lock() {
                            *place = Some(result);
                        }
                    }
                });
            }
        });
        self.watch.end();
        results.into_iter().map(|place| place.into_inner().unwrap_or(None)).collect()
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Watches nothing and lets everything go on.
    pub(crate) struct Unwatched;

    impl Watch for Unwatched {
        fn begin(&self, _: u64, _: &str) {}

        fn advance(&self, _: u64) {}

        fn end(&self) {}

        fn stops(&self) -> bool {
            false
        }
    }

    #[test]
    fn a_run_that_panics_or_fails_leaves_the_others_their_results() {
        let results = run_each(4, Some(2), "runs", &Unwatched, |index, _| match index {
            1 => panic!("attempt to add with overflow"),
            2 => Err(ScenarioError::Override("x".to_owned())),
            _ => Ok(index),
        });
        let results: Vec<_> = results.into_iter().map(|result| result.expect("each was done")).collect();
        assert!(matches!((&results[0], &results[3]), (Ok(0), Ok(3))));
        let told = results[1].as_ref().expect_err("it panicked").to_string();
        assert!(told.contains("a mistake in the program") && told.contains("attempt to add with overflow"), "{told}");
        assert!(told.contains("parallel.rs:") && !told.contains('\n'), "{told}");
        assert!(results[2].is_err());
    }

    #[test]
    fn callers_at_once_each_have_the_words_of_their_panics() {
        let caller = |number: usize| {
            let work = |index: usize, _: &mut dyn FnMut(f64) -> bool| -> Result<(), ScenarioError> {
                // The one that began first ends first, while the other one goes on.
                std::thread::sleep(std::time::Duration::from_millis(20 * (1 + number as u64)));
                panic!("caller {number}, run {index}")
            };
            let results = run_each(3, Some(1), "runs", &Unwatched, work);
            let told =
                results.into_iter().map(|result| result.expect("it was done").expect_err("it panicked").to_string());
            for (index, told) in told.enumerate() {
                assert!(told.contains(&format!("caller {number}, run {index}")), "{told}");
            }
        };
        std::thread::scope(|scope| (0..3).for_each(|number| _ = scope.spawn(move || caller(number))));
    }

    /// Stops after so many steps.
    struct Stops(AtomicUsize);

    impl Watch for Stops {
        fn begin(&self, _: u64, _: &str) {}

        fn advance(&self, steps: u64) {
            self.0.fetch_add(steps as usize, Ordering::Relaxed);
        }

        fn end(&self) {}

        fn stops(&self) -> bool {
            self.0.load(Ordering::Relaxed) >= 1500
        }
    }

    #[test]
    fn a_watcher_that_stops_keeps_what_is_finished() {
        let results = run_all(3, Some(1), "runs", &Stops(AtomicUsize::new(0)), |index, observer| {
            let goes_on = observer(0.5) && observer(1.0);
            if goes_on { Ok(index) } else { Err(ScenarioError::Interrupted) }
        });
        assert!(matches!(results[0], Some(Ok(0))));
        assert!(matches!(results[1], Some(Err(ScenarioError::Interrupted))));
        assert!(results[2].is_none());
    }
}
