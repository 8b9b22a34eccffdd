//! Connections of a page: no more than so many, and none that hesitates.
//!
//! Each holds a descriptor of the process, which serves its drives by descriptors as well: clients of a page must not keep hosts out.

use axum::Router;
use axum::extract::ConnectInfo;
use axum::extract::Extension;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use std::future::{Future, poll_fn};
use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::task::JoinHandle;

/// Connections at a time, those of streams among them; a client beyond them waits until another one goes. [A]
pub const CONNECTIONS_MAX: usize = 64;
/// A client that does not send a whole request for so long, at the beginning or after an answer, is left. [A] The clients are browsers and
/// Prometheus, which send theirs at once.
pub const HESITATION_MAX: Duration = Duration::from_secs(10);
/// Time between two attempts where the system has no descriptor left. [A]
const RETRY: Duration = Duration::from_secs(1);

/// Connections that are being served.
pub(crate) struct Connections {
    accepting: JoinHandle<()>,
    places: Arc<Semaphore>,
    end: watch::Sender<bool>,
}

impl Connections {
    /// Begins to take connections; `app` answers what they ask. To be called within a runtime.
    pub(crate) fn serve(listener: TcpListener, app: Router) -> Self {
        let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
        let (end, ended) = watch::channel(false);
        let accepting = tokio::spawn(accept(listener, app, Arc::clone(&places), ended));
        Self { accepting, places, end }
    }

    /// Takes no more connections, and waits for the last answers until `patience` is over. Clients that do not listen any more are cut
    /// off with the runtime.
    pub(crate) async fn end(self, patience: Duration) {
        self.accepting.abort();
        // An error means that there are none.
        let _ = self.end.send(true);
        let all = self.places.acquire_many(CONNECTIONS_MAX as u32);
        let _ = tokio::time::timeout(patience, all).await;
    }
}

async fn accept(listener: TcpListener, app: Router, places: Arc<Semaphore>, ended: watch::Receiver<bool>) {
    while let Ok(place) = Arc::clone(&places).acquire_owned().await {
        let (stream, peer) = next(&listener).await;
        tokio::spawn(answer(stream, peer, app.clone(), ended.clone(), place));
    }
}

async fn next(listener: &TcpListener) -> (TcpStream, SocketAddr) {
    loop {
        match listener.accept().await {
            Ok(taken) => return taken,
            // A client that is gone again says nothing about the next.
            Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => {}
            Err(_) => tokio::time::sleep(RETRY).await,
        }
    }
}

/// Serves a connection, which has its place until it is over.
async fn answer(
    stream: TcpStream,
    peer: SocketAddr,
    app: Router,
    mut ended: watch::Receiver<bool>,
    _place: OwnedSemaphorePermit,
) {
    let service = TowerToHyperService::new(app.layer(Extension(ConnectInfo(peer))));
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(HESITATION_MAX);
    let mut connection = pin!(builder.serve_connection(TokioIo::new(stream), service));
    // Its sender is gone at the end as well.
    let mut end = pin!(async move { ended.wait_for(|&is_over| is_over).await.is_ok() });
    let mut is_ending = false;
    let done = poll_fn(|context| {
        if !is_ending && end.as_mut().poll(context).is_ready() {
            is_ending = true;
            connection.as_mut().graceful_shutdown();
        }
        connection.as_mut().poll(context)
    });
    // Clients break connections off as they like.
    let _ = done.await;
}
