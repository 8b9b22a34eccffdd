//! Paths and their answers.

use crate::feed::{Frame, Past};
use crate::guard::{self, Refusal, Token};
use crate::metrics::metrics;
use axum::Router;
use axum::body::Bytes;
use axum::extract::{ConnectInfo, DefaultBodyLimit, Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{Html, IntoResponse, Response};
use axum::routing::{get, post};
use flashyard_report::{LiveCommand, RAW_BIT_ERROR_RATE_MAX};
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::{Semaphore, watch};
use tokio_stream::wrappers::WatchStream;
use tokio_stream::{Stream, StreamExt};

/// Takes a command for the engine. It is called on the thread that serves and must not wait for the engine; an `Err` is
/// shown to the person who gave the command.
pub type Control = Box<dyn Fn(LiveCommand) -> Result<(), String> + Send + Sync>;

/// Streams of events at a time; a client beyond them must come back later.
pub const STREAMS_MAX: usize = 32;
/// Length of a command in bytes; the longest that makes sense is a tenth of it.
pub const CONTROL_BYTES_MAX: usize = 4096;
/// A client whose stream broke asks again after this time.
pub(crate) const RETRY: Duration = Duration::from_secs(1);
/// Something is sent at least this often, so that a client that is gone is noticed.
pub(crate) const KEEP_ALIVE: Duration = Duration::from_secs(5);

/// Page with style and program, built from `web/dash`; `make web` makes it again.
const PAGE: &str = include_str!("../../../../web/dist/dash.html");

/// No page may frame ours, so that nothing can be laid over its buttons; the rest of the policy stands in the page.
const HEADERS: [(HeaderName, &str); 6] = [
    (header::CONTENT_SECURITY_POLICY, "frame-ancestors 'none'"),
    (header::X_FRAME_OPTIONS, "DENY"),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::REFERRER_POLICY, "no-referrer"),
    (header::CACHE_CONTROL, "no-store"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
];

/// State shared by the handlers.
pub(crate) struct Shared {
    latest: watch::Receiver<Option<Frame>>,
    past: Arc<Mutex<Past>>,
    control: Control,
    token: Token,
    streams: Arc<Semaphore>,
}

impl Shared {
    pub(crate) fn new(
        latest: watch::Receiver<Option<Frame>>,
        past: Arc<Mutex<Past>>,
        control: Control,
        token: Token,
    ) -> Self {
        Self { latest, past, control, token, streams: Arc::new(Semaphore::new(STREAMS_MAX)) }
    }

    /// The latest frame; nothing is there to show before the first.
    fn frame(&self) -> Result<Frame, Refusal> {
        let none = || (StatusCode::SERVICE_UNAVAILABLE, "the run has not begun; ask again".to_owned());
        self.latest.borrow().clone().ok_or_else(none)
    }
}

pub(crate) fn router(shared: Shared) -> Router {
    Router::new()
        .route("/", get(async || Html(PAGE)))
        .route("/events", get(events))
        .route("/snapshot", get(snapshot))
        .route("/metrics", get(prometheus))
        .route("/control", post(control))
        .layer(DefaultBodyLimit::max(CONTROL_BYTES_MAX))
        .layer(middleware::from_fn(guarded))
        .with_state(Arc::new(shared))
}

/// Refuses strangers, and puts the headers of every answer.
pub(crate) async fn guarded(request: Request, next: Next) -> Response {
    let mut response = match guard::host(request.headers()) {
        Ok(_) => next.run(request).await,
        Err(refusal) => refusal.into_response(),
    };
    for (name, value) in HEADERS {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    response
}

/// The past as one event, then the latest frame whenever the client has room for it.
async fn events(
    State(shared): State<Arc<Shared>>,
) -> Result<Sse<impl Stream<Item = Result<Event, Infallible>>>, Refusal> {
    let place = Arc::clone(&shared.streams).try_acquire_owned().map_err(|_| {
        (StatusCode::SERVICE_UNAVAILABLE, format!("{STREAMS_MAX} pages are watching already; close one"))
    })?;
    let history = shared.past.lock().unwrap_or_else(PoisonError::into_inner).history();
    let first = Event::default().event("history").retry(RETRY).data(history);
    let frames = WatchStream::new(shared.latest.clone()).filter_map(move |frame| {
        // The place is taken for as long as the stream lives.
        let _ = &place;
        frame.map(|frame| Event::default().data(&*frame.json))
    });
    let stream = tokio_stream::once(first).chain(frames).map(Ok);
    Ok(Sse::new(stream).keep_alive(KeepAlive::new().interval(KEEP_ALIVE)))
}

async fn snapshot(State(shared): State<Arc<Shared>>) -> Result<impl IntoResponse, Refusal> {
    Ok(([(header::CONTENT_TYPE, "application/json")], shared.frame()?.json.to_string()))
}

async fn prometheus(State(shared): State<Arc<Shared>>) -> Result<impl IntoResponse, Refusal> {
    let kind = [(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")];
    Ok((kind, metrics(&shared.frame()?.snapshot)))
}

/// Hands a command on; 202 says that it was taken, the snapshots show its effect.
async fn control(
    State(shared): State<Arc<Shared>>,
    ConnectInfo(peer): ConnectInfo<SocketAddr>,
    headers: HeaderMap,
    body: Bytes,
) -> Result<(StatusCode, &'static str), Refusal> {
    guard::command(&headers, guard::host(&headers)?, peer)?;
    shared.token.check(&headers)?;
    let command: LiveCommand = serde_json::from_slice(&body)
        .map_err(|error| (StatusCode::BAD_REQUEST, format!("this is no command: {error}")))?;
    if !command.is_in_range() {
        return Err((StatusCode::BAD_REQUEST, format!("error rates go from 0 to {RAW_BIT_ERROR_RATE_MAX}")));
    }
    if let Some(drive) = command.drive() {
        let frame = shared.frame()?;
        if !frame.snapshot.drives.iter().any(|known| known.name == drive) {
            return Err((StatusCode::NOT_FOUND, format!("there is no drive {drive:?}")));
        }
    }
    (shared.control)(command).map_err(|text| (StatusCode::CONFLICT, text))?;
    Ok((StatusCode::ACCEPTED, "taken"))
}
