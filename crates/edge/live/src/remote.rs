//! Work for the engine from other threads: figures, controls.

use crate::hook::{EngineAccess, Hook};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};

/// Something to do on the engine's thread.
type Errand = Box<dyn FnOnce(&mut EngineAccess<'_>) + Send>;

/// Does on the engine's thread what its handles ask for, a few things a turn.
pub struct Remote {
    errands: Receiver<Errand>,
}

/// Errands of one turn at most: clients of the enclosure wait meanwhile.
const ERRANDS_MAX: usize = 8;

/// A way to the engine, from any thread.
#[derive(Clone)]
pub struct Handle {
    errands: Sender<Errand>,
    waker: Arc<mio::Waker>,
}

impl Remote {
    /// A hook for an engine with this waker, and the first handle to it.
    pub fn new(waker: Arc<mio::Waker>) -> (Self, Handle) {
        let (sender, errands) = channel();
        (Self { errands }, Handle { errands: sender, waker })
    }
}

impl Hook for Remote {
    fn turn(&mut self, engine: &mut EngineAccess<'_>) {
        self.errands.try_iter().take(ERRANDS_MAX).for_each(|errand| errand(engine));
    }
}

/// The engine has ended, and with it whatever was asked of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the engine has ended")]
pub struct Ended;

impl Handle {
    /// Does `act` on the engine's thread between two turns, and waits for what it returns. It must be short.
    ///
    /// Errors: the engine has ended.
    pub fn call<R: Send + 'static>(
        &self,
        act: impl FnOnce(&mut EngineAccess<'_>) -> R + Send + 'static,
    ) -> Result<R, Ended> {
        let (reply, answer) = channel();
        let errand = move |engine: &mut EngineAccess<'_>| {
            // The caller may have gone.
            let _ = reply.send(act(engine));
        };
        self.errands.send(Box::new(errand)).map_err(|_| Ended)?;
        self.waker.wake().map_err(|_| Ended)?;
        answer.recv().map_err(|_| Ended)
    }
}
