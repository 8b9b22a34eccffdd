//! The thread that serves, and the handle that its owner keeps.

use crate::connections::Connections;
use crate::feed::{Past, feed};
use crate::guard::Token;
use crate::routes::{Control, Shared, router};
use flashyard_report::{LiveEvent, Snapshot};
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Duration;
use tokio::runtime::Builder;
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{mpsc, watch};

/// Snapshots between the engine and the thread that serves: more than a second of them.
const QUEUE: usize = 16;
/// Events kept while that queue is full; the oldest are lost first.
const UNSENT_MAX: usize = 1_000;
/// How long clients may take to notice that the server ends.
pub(crate) const GRACE: Duration = Duration::from_millis(300);

/// Why a dashboard could not be started.
#[derive(Debug, thiserror::Error)]
pub enum DashError {
    /// The address cannot be listened on.
    #[error("cannot serve the dashboard on {address}; name another address or port")]
    Listen {
        /// The address requested.
        address: SocketAddr,
        /// The system's error.
        source: io::Error,
    },
    /// The system gives no random numbers.
    #[error("/dev/urandom: no random numbers for the token of the dashboard")]
    Token(#[source] io::Error),
    /// The system gives no thread or no way to wait for sockets.
    #[error("cannot start the thread of the dashboard")]
    Thread(#[from] io::Error),
}

/// A dashboard that is being served; it ends when this is dropped.
#[derive(Debug)]
pub struct Dash {
    address: SocketAddr,
    token: Token,
    /// `None` once the end has begun.
    snapshots: Option<mpsc::Sender<Snapshot>>,
    /// Events of snapshots for which there was no room.
    unsent: Vec<LiveEvent>,
    thread: Option<JoinHandle<()>>,
}

impl Dash {
    /// Starts to serve on `address`; port 0 takes any that is free. Commands from the page go to `control`.
    ///
    /// Errors: an address that cannot be listened on, or no thread.
    pub fn start(address: SocketAddr, control: Control) -> Result<Self, DashError> {
        let listener = listen(address).map_err(|source| DashError::Listen { address, source })?;
        let address = listener.local_addr()?;
        let token = Token::random().map_err(DashError::Token)?;
        let runtime = Builder::new_current_thread().enable_io().enable_time().build()?;
        let listener = {
            let _inside = runtime.enter();
            tokio::net::TcpListener::from_std(listener)?
        };
        let (snapshots, published) = mpsc::channel(QUEUE);
        let name = "dashboard".to_owned();
        let asked = token.clone();
        let serving = move || runtime.block_on(serve(listener, published, control, asked));
        let thread = thread::Builder::new().name(name).spawn(serving)?;
        Ok(Self { address, token, snapshots: Some(snapshots), unsent: Vec::new(), thread: Some(thread) })
    }

    /// Where it is served.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Address of the page, with the token that commands need. Without the part behind the `#`, which browsers never
    /// send, the page only looks.
    pub fn url(&self) -> String {
        format!("http://{}/#token={}", self.address, self.token.text())
    }

    /// Token that programs send with a command as `Authorization: Bearer TOKEN`.
    pub fn token(&self) -> &str {
        self.token.text()
    }

    /// Shows a snapshot. Never waits: when the thread that serves is behind, the snapshot is dropped, and its events
    /// go with the next one.
    pub fn publish(&mut self, mut snapshot: Snapshot) {
        let Some(snapshots) = &self.snapshots else { return };
        if !self.unsent.is_empty() {
            snapshot.events.splice(..0, self.unsent.drain(..));
        }
        if let Err(TrySendError::Full(unsent) | TrySendError::Closed(unsent)) = snapshots.try_send(snapshot) {
            self.unsent = unsent.events;
            self.unsent.drain(..self.unsent.len().saturating_sub(UNSENT_MAX));
        }
    }

    /// Stops serving and waits until it has stopped, which takes less than a second.
    pub fn stop(self) {
        drop(self);
    }
}

impl Drop for Dash {
    fn drop(&mut self) {
        // Without a publisher, the thread that serves ends.
        self.snapshots = None;
        if let Some(thread) = self.thread.take() {
            // A panic there has been printed; there is nothing left to save.
            let _ = thread.join();
        }
    }
}

pub(crate) fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let listener = TcpListener::bind(address)?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}

/// Serves until the publisher is gone.
async fn serve(listener: tokio::net::TcpListener, published: mpsc::Receiver<Snapshot>, control: Control, token: Token) {
    let past = Arc::new(Mutex::new(Past::default()));
    let (frames, latest) = watch::channel(None);
    let app = router(Shared::new(latest, Arc::clone(&past), control, token));
    let connections = Connections::serve(listener, app);
    // `feed` drops `frames` when it ends, and with it every stream of events ends.
    feed(published, past, frames).await;
    connections.end(GRACE).await;
}
