//! Work beside Python: the calling thread hears of progress and of Ctrl-C, and others do the work.

use crate::error::FlashyardError;
use flashyard_workbench::Watch;
use pyo3::prelude::*;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

/// Time between two looks at progress and signals.
const PERIOD: Duration = Duration::from_millis(50);

/// A watcher that only counts.
#[derive(Default)]
pub(crate) struct Counter {
    all: AtomicU64,
    done: AtomicU64,
    stops: AtomicBool,
    label: Mutex<String>,
}

impl Watch for Counter {
    fn begin(&self, steps: u64, label: &str) {
        self.done.store(0, Ordering::Relaxed);
        self.all.store(steps, Ordering::Relaxed);
        if let Ok(mut place) = self.label.lock() {
            label.clone_into(&mut place);
        }
    }

    fn advance(&self, steps: u64) {
        self.done.fetch_add(steps, Ordering::Relaxed);
    }

    fn end(&self) {}

    fn stops(&self) -> bool {
        self.stops.load(Ordering::Relaxed)
    }
}

impl Counter {
    /// The share that is done, and its label.
    fn share(&self) -> (f64, String) {
        let (done, all) = (self.done.load(Ordering::Relaxed), self.all.load(Ordering::Relaxed).max(1));
        (done as f64 / all as f64, self.label.lock().map(|label| label.clone()).unwrap_or_default())
    }
}

/// Does `work` on another thread without Python's lock. Meanwhile `progress` is called with the share that is done and a word for it, and
/// signals are looked for; an exception of either stops the work, and is raised when it has stopped.
pub(crate) fn beside<R: Send>(
    py: Python<'_>,
    progress: Option<&Py<PyAny>>,
    work: impl FnOnce(&Counter) -> R + Send,
) -> PyResult<R> {
    let counter = Counter::default();
    let (done, raised) = py.detach(|| {
        std::thread::scope(|scope| {
            let (tell, ended) = mpsc::channel();
            let counter = &counter;
            scope.spawn(move || drop(tell.send(work(counter))));
            let mut raised = None;
            loop {
                match ended.recv_timeout(PERIOD) {
                    Ok(done) => break (Some(done), raised),
                    Err(RecvTimeoutError::Disconnected) => break (None, raised),
                    Err(RecvTimeoutError::Timeout) if raised.is_none() => {
                        raised = Python::attach(|py| look(py, progress, counter)).err();
                        counter.stops.store(raised.is_some(), Ordering::Relaxed);
                    }
                    Err(RecvTimeoutError::Timeout) => {}
                }
            }
        })
    });
    if let Some(error) = raised {
        return Err(error);
    }
    done.ok_or_else(|| FlashyardError::new_err("a mistake in the program: a thread of its own has panicked"))
}

/// Looks for signals, and tells progress.
fn look(py: Python<'_>, progress: Option<&Py<PyAny>>, counter: &Counter) -> PyResult<()> {
    py.check_signals()?;
    progress.map_or(Ok(()), |progress| progress.call1(py, counter.share()).map(drop))
}
