//! Connections: accepted up to a limit, timed out while they say nothing, and ended
//! with the daemon however slow the other side is.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::task::JoinSet;

/// Connections that are served at a time, over all addresses.
const CONNECTIONS: usize = 256;
/// How long a client may take to send a request, and stay idle between two.
const SILENCE: Duration = Duration::from_secs(75);
/// How long to wait when the process has no file descriptor left.
const PAUSE: Duration = Duration::from_millis(100);

/// Accepts on all listeners until it is stopped.
#[derive(Debug)]
pub struct Server {
    listeners: JoinSet<()>,
    stop: watch::Sender<bool>,
}

impl Server {
    /// Starts to accept.
    #[must_use]
    pub fn start(listeners: Vec<TcpListener>, router: &Router) -> Self {
        let (stop, stopped) = watch::channel(false);
        let slots = Arc::new(Semaphore::new(CONNECTIONS));
        let mut tasks = JoinSet::new();
        for listener in listeners {
            tasks.spawn(listen(
                listener,
                router.clone(),
                slots.clone(),
                stopped.clone(),
            ));
        }
        Self {
            listeners: tasks,
            stop,
        }
    }

    /// Accepts no more and lets answers that are under way end, for `grace` at most.
    pub async fn stop(mut self, grace: Duration) {
        self.stop.send_replace(true);
        let ended = async { while self.listeners.join_next().await.is_some() {} };
        if tokio::time::timeout(grace, ended).await.is_err() {
            tracing::info!("connections that were still open are cut");
        }
    }
}

async fn listen(
    listener: TcpListener,
    router: Router,
    slots: Arc<Semaphore>,
    mut stopped: watch::Receiver<bool>,
) {
    let open = GracefulShutdown::new();
    loop {
        let (stream, slot) = tokio::select! {
            _ = stopped.wait_for(|stop| *stop) => break,
            Some(accepted) = accept(&listener, &slots) => accepted,
        };
        serve(stream, slot, &router, &open);
    }
    drop(listener);
    open.shutdown().await;
}

/// A connection, once there is room for one; `None` only if the semaphore was closed,
/// which nobody does.
async fn accept(
    listener: &TcpListener,
    slots: &Arc<Semaphore>,
) -> Option<(TcpStream, OwnedSemaphorePermit)> {
    let slot = slots.clone().acquire_owned().await.ok()?;
    loop {
        match listener.accept().await {
            Ok((stream, _)) => return Some((stream, slot)),
            Err(error) if of_the_connection(&error) => {}
            Err(error) => {
                tracing::warn!("cannot accept a connection: {error}");
                tokio::time::sleep(PAUSE).await;
            }
        }
    }
}

fn serve(stream: TcpStream, slot: OwnedSemaphorePermit, router: &Router, open: &GracefulShutdown) {
    let service = TowerToHyperService::new(router.clone());
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(SILENCE)
        .serve_connection(TokioIo::new(stream), service);
    let connection = open.watch(connection);
    tokio::spawn(async move {
        if let Err(error) = connection.await {
            tracing::debug!("a connection ended: {error}");
        }
        drop(slot);
    });
}

/// Whether it concerns the one connection and not the listener.
fn of_the_connection(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionAborted
            | io::ErrorKind::ConnectionReset
            | io::ErrorKind::ConnectionRefused
            | io::ErrorKind::Interrupted
    )
}
