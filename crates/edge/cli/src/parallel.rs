//! Independent runs on several threads, with one progress bar and Ctrl-C. Results come back in the order of
//! the work, whatever the threads did. A run that panics is a run that failed: it takes no other one with it.

use anyhow::{Context, Result};
use flashyard_scenario::ScenarioError;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

/// Steps of the bar for one run.
const STEPS: u64 = 1000;

static INTERRUPTED: AtomicBool = AtomicBool::new(false);
/// Set when it was pressed again.
static AGAIN: AtomicBool = AtomicBool::new(false);

/// Lets Ctrl-C end the runs instead of the program.
pub(crate) fn catch_interrupt() -> Result<()> {
    let pressed = || {
        let before = INTERRUPTED.swap(true, Ordering::Relaxed);
        AGAIN.fetch_or(before, Ordering::Relaxed);
    };
    ctrlc::set_handler(pressed).context("Ctrl-C cannot be caught")
}

/// Whether Ctrl-C was pressed.
pub(crate) fn interrupted() -> bool {
    INTERRUPTED.load(Ordering::Relaxed)
}

/// Whether Ctrl-C was pressed twice.
pub(crate) fn interrupted_again() -> bool {
    AGAIN.load(Ordering::Relaxed)
}

/// A run that ended in a panic: a mistake in the program.
#[derive(Debug)]
pub(crate) struct Panicked(String);

impl std::fmt::Display for Panicked {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "a mistake in the program, please report it with the scenario: {}", self.0)
    }
}

impl std::error::Error for Panicked {}

impl From<Panicked> for ScenarioError {
    fn from(panicked: Panicked) -> Self {
        Self::Program(panicked.to_string())
    }
}

thread_local! {
    /// Message and place of the last panic of this thread.
    static LAST: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Does `work`; a panic in it is an error like others.
fn guarded<R, E: From<Panicked>>(work: impl FnOnce() -> Result<R, E>) -> Result<R, E> {
    // A run owns all that it changes, so nothing half changed outlives it.
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|_| Err(Panicked(LAST.take()).into()))
}

/// Does `work(index, observer)` for every index below `count` on `threads` threads (all cores without it).
/// `None` where it was not done because of Ctrl-C or because another run failed.
pub(crate) fn run_all<R: Send, E: Send + From<Panicked>>(
    count: usize,
    threads: Option<usize>,
    label: &str,
    work: impl Fn(usize, &mut dyn FnMut(f64) -> bool) -> Result<R, E> + Sync,
) -> Vec<Option<Result<R, E>>> {
    carry_out(count, threads, label, true, work)
}

/// Like [`run_all`], but runs go on when another one fails: what can be finished is.
pub(crate) fn run_each<R: Send, E: Send + From<Panicked>>(
    count: usize,
    threads: Option<usize>,
    label: &str,
    work: impl Fn(usize, &mut dyn FnMut(f64) -> bool) -> Result<R, E> + Sync,
) -> Vec<Option<Result<R, E>>> {
    carry_out(count, threads, label, false, work)
}

fn carry_out<R: Send, E: Send + From<Panicked>>(
    count: usize,
    threads: Option<usize>,
    label: &str,
    stops_at_failure: bool,
    work: impl Fn(usize, &mut dyn FnMut(f64) -> bool) -> Result<R, E> + Sync,
) -> Vec<Option<Result<R, E>>> {
    let available = std::thread::available_parallelism().map_or(1, usize::from);
    let threads = threads.unwrap_or(available).clamp(1, count.max(1));
    let results: Vec<Mutex<Option<Result<R, E>>>> = (0..count).map(|_| Mutex::new(None)).collect();
    let next = AtomicUsize::new(0);
    let failed = AtomicBool::new(false);
    let bar = progress_bar(count, label);
    // The panic of a run is reported with its error, once.
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(|panic| {
        let text = panic.to_string().replace('\n', " ");
        LAST.with(|last| last.replace(text));
    }));
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    if index >= count || interrupted() || failed.load(Ordering::Relaxed) {
                        break;
                    }
                    let mut done = 0;
                    let mut observer = |share: f64| {
                        let now = (share * STEPS as f64) as u64;
                        if now > done {
                            bar.inc(now - done);
                            done = now;
                        }
                        !interrupted() && !failed.load(Ordering::Relaxed)
                    };
                    let result = guarded(|| work(index, &mut observer));
                    failed.fetch_or(stops_at_failure && result.is_err(), Ordering::Relaxed);
                    if let Ok(mut place) = results[index].lock() {
                        *place = Some(result);
                    }
                }
            });
        }
    });
    std::panic::set_hook(hook);
    bar.finish_and_clear();
    results.into_iter().map(|place| place.into_inner().unwrap_or(None)).collect()
}

fn progress_bar(count: usize, label: &str) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(Some(count as u64 * STEPS), ProgressDrawTarget::stderr());
    let template = "{prefix} {bar:40} {percent:>3} % {elapsed} (about {eta} left)";
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style);
    }
    bar.set_prefix(label.to_owned());
    bar.enable_steady_tick(Duration::from_millis(200));
    bar
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_that_panics_or_fails_leaves_the_others_their_results() {
        let results = run_each(4, Some(2), "runs", |index, _| match index {
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
}
