//! The page of volumes that serve: their trees, from status to status. It only looks; `flashyard ctl` changes them.

use crate::connections::Connections;
use crate::guard::Refusal;
use crate::routes::{KEEP_ALIVE, RETRY, STREAMS_MAX, guarded};
use crate::server::{DashError, GRACE, listen};
use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::middleware;
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{Html, IntoResponse};
use axum::routing::get;
use std::collections::VecDeque;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use tokio::runtime::Builder;
use tokio::sync::{Semaphore, mpsc, watch};
use tokio_stream::wrappers::WatchStream;
use tokio_stream::{Stream, StreamExt};

/// Page with style and program, built from `web/volumes`; `make web` makes it again.
const PAGE: &str = include_str!("../../../../web/dist/volumes.html");
/// Statuses between their maker and the thread that serves.
const QUEUE: usize = 4;
/// Statuses that a new page gets: a minute at two a second.
const KEPT: usize = 120;

/// The status of volumes at a moment.
#[derive(Debug)]
pub struct VolumesFrame {
    /// As `flashyard ctl SOCKET status --json` prints it.
    pub status: String,
    /// In the text format of Prometheus.
    pub metrics: String,
}

type Frame = Arc<VolumesFrame>;

/// A page that is being served; it ends when this is dropped.
#[derive(Debug)]
pub struct VolumesDash {
    address: SocketAddr,
    /// `None` once the end has begun.
    frames: Option<mpsc::Sender<Frame>>,
    thread: Option<JoinHandle<()>>,
}

impl VolumesDash {
    /// Starts to serve on `address`; port 0 takes any that is free.
    ///
    /// Errors: an address that cannot be listened on, or no thread.
    pub fn start(address: SocketAddr) -> Result<Self, DashError> {
        let listener = listen(address).map_err(|source| DashError::Listen { address, source })?;
        let address = listener.local_addr()?;
        let runtime = Builder::new_current_thread().enable_io().enable_time().build()?;
        let listener = {
            let _inside = runtime.enter();
            tokio::net::TcpListener::from_std(listener)?
        };
        let (frames, published) = mpsc::channel(QUEUE);
        let serving = move || runtime.block_on(serve(listener, published));
        let thread = thread::Builder::new().name("dashboard".to_owned()).spawn(serving)?;
        Ok(Self { address, frames: Some(frames), thread: Some(thread) })
    }

    /// Address of the page.
    pub fn url(&self) -> String {
        format!("http://{}/", self.address)
    }

    /// Shows a status. Never waits: one for which there is no room is left out.
    pub fn publish(&self, frame: VolumesFrame) {
        if let Some(frames) = &self.frames {
            // A page that is behind gets the next one.
            let _ = frames.try_send(Arc::new(frame));
        }
    }
}

impl Drop for VolumesDash {
    fn drop(&mut self) {
        self.frames = None;
        if let Some(thread) = self.thread.take() {
            // A panic there has been printed; there is nothing left to save.
            let _ = thread.join();
        }
    }
}

/// State shared by the handlers.
struct Shared {
    latest: watch::Receiver<Option<Frame>>,
    past: Arc<Mutex<VecDeque<Frame>>>,
    streams: Arc<Semaphore>,
}

impl Shared {
    fn frame(&self) -> Result<Frame, Refusal> {
        let none = || (StatusCode::SERVICE_UNAVAILABLE, "the volumes have not begun; ask again".to_owned());
        self.latest.borrow().clone().ok_or_else(none)
    }
}

/// Serves until the publisher is gone.
async fn serve(listener: tokio::net::TcpListener, mut published: mpsc::Receiver<Frame>) {
    let past = Arc::new(Mutex::new(VecDeque::new()));
    let (frames, latest) = watch::channel(None);
    let shared = Shared { latest, past: Arc::clone(&past), streams: Arc::new(Semaphore::new(STREAMS_MAX)) };
    let app = Router::new()
        .route("/", get(async || Html(PAGE)))
        .route("/events", get(events))
        .route("/snapshot", get(snapshot))
        .route("/metrics", get(metrics))
        .layer(middleware::from_fn(guarded))
        .with_state(Arc::new(shared));
    let connections = Connections::serve(listener, app);
    while let Some(frame) = published.recv().await {
        let mut past = past.lock().unwrap_or_else(PoisonError::into_inner);
        past.push_back(Arc::clone(&frame));
        let surplus = past.len().saturating_sub(KEPT);
        past.drain(..surplus);
        frames.send_replace(Some(frame));
    }
    // Every stream of events ends with it.
    drop(frames);
    connections.end(GRACE).await;
}

/// The past as one event, then the latest status whenever the client has room for it.
async fn events(
    State(shared): State<Arc<Shared>>,
) -> Result<Sse<impl Stream<Item = Result<Event, Infallible>>>, Refusal> {
    let place = Arc::clone(&shared.streams).try_acquire_owned().map_err(|_| {
        (StatusCode::SERVICE_UNAVAILABLE, format!("{STREAMS_MAX} pages are watching already; close one"))
    })?;
    let history = {
        let past = shared.past.lock().unwrap_or_else(PoisonError::into_inner);
        let all: Vec<&str> = past.iter().map(|frame| frame.status.as_str()).collect();
        format!("[{}]", all.join(","))
    };
    let first = Event::default().event("history").retry(RETRY).data(history);
    let frames = WatchStream::from_changes(shared.latest.clone()).filter_map(move |frame| {
        // The place is taken for as long as the stream lives.
        let _ = &place;
        frame.map(|frame| Event::default().data(&frame.status))
    });
    let stream = tokio_stream::once(first).chain(frames).map(Ok);
    Ok(Sse::new(stream).keep_alive(KeepAlive::new().interval(KEEP_ALIVE)))
}

async fn snapshot(State(shared): State<Arc<Shared>>) -> Result<impl IntoResponse, Refusal> {
    Ok(([(header::CONTENT_TYPE, "application/json")], shared.frame()?.status.clone()))
}

async fn metrics(State(shared): State<Arc<Shared>>) -> Result<impl IntoResponse, Refusal> {
    let kind = [(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")];
    Ok((kind, shared.frame()?.metrics.clone()))
}
