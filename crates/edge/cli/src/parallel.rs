//! The progress bar of work on several threads, and Ctrl-C.

use anyhow::{Context, Result};
use flashyard_workbench::{Panicked, Watch};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

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

/// A bar on standard error for each piece of work, which Ctrl-C ends.
#[derive(Default)]
pub(crate) struct Terminal(Mutex<Option<ProgressBar>>);

impl Terminal {
    fn bar(&self) -> Option<ProgressBar> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Watch for Terminal {
    fn begin(&self, steps: u64, label: &str) {
        let bar = ProgressBar::with_draw_target(Some(steps), ProgressDrawTarget::stderr());
        let template = "{prefix} {bar:40} {percent:>3} % {elapsed} (about {eta} left)";
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        bar.set_prefix(label.to_owned());
        bar.enable_steady_tick(Duration::from_millis(200));
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(bar);
    }

    fn advance(&self, steps: u64) {
        self.bar().inspect(|bar| bar.inc(steps));
    }

    fn end(&self) {
        self.bar().inspect(|bar| bar.finish_and_clear());
    }

    fn stops(&self) -> bool {
        interrupted()
    }
}

/// [`flashyard_workbench::run_all`] with a bar on the terminal.
pub(crate) fn run_all<R: Send, E: Send + From<Panicked>>(
    count: usize,
    threads: Option<usize>,
    label: &str,
    work: impl Fn(usize, &mut dyn FnMut(f64) -> bool) -> Result<R, E> + Sync,
) -> Vec<Option<Result<R, E>>> {
    flashyard_workbench::run_all(count, threads, label, &Terminal::default(), work)
}

/// A number of threads.
pub(crate) fn threads(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(number @ 1..=4096) => Ok(number),
        _ => Err("give a whole number from 1 to 4096, or leave it out for all cores".to_owned()),
    }
}
