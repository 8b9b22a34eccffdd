//! Independent runs on several threads, with one progress bar and Ctrl-C. Results come back in the order of
//! the work, whatever the threads did.

use anyhow::{Context, Result};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

/// Steps of the bar for one run.
const STEPS: u64 = 1000;

static INTERRUPTED: AtomicBool = AtomicBool::new(false);

/// Lets Ctrl-C end the runs instead of the program.
pub(crate) fn catch_interrupt() -> Result<()> {
    ctrlc::set_handler(|| INTERRUPTED.store(true, Ordering::Relaxed)).context("Ctrl-C cannot be caught")
}

/// Whether Ctrl-C was pressed.
pub(crate) fn interrupted() -> bool {
    INTERRUPTED.load(Ordering::Relaxed)
}

/// Does `work(index, observer)` for every index below `count` on `threads` threads (all cores without it).
/// `None` where it was not done because of Ctrl-C or because another run failed.
pub(crate) fn run_all<R: Send, E: Send>(
    count: usize,
    threads: Option<usize>,
    label: &str,
    work: impl Fn(usize, &mut dyn FnMut(f64) -> bool) -> Result<R, E> + Sync,
) -> Vec<Option<Result<R, E>>> {
    let available = std::thread::available_parallelism().map_or(1, usize::from);
    let threads = threads.unwrap_or(available).clamp(1, count.max(1));
    let results: Vec<Mutex<Option<Result<R, E>>>> = (0..count).map(|_| Mutex::new(None)).collect();
    let next = AtomicUsize::new(0);
    let failed = AtomicBool::new(false);
    let bar = progress_bar(count, label);
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
                    let result = work(index, &mut observer);
                    failed.fetch_or(result.is_err(), Ordering::Relaxed);
                    if let Ok(mut place) = results[index].lock() {
                        *place = Some(result);
                    }
                }
            });
        }
    });
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
