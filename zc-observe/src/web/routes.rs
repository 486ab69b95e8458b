//! What is answered where.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use axum::Router;
use axum::extract;
use axum::http::{StatusCode, header};
use axum::response::{Html, IntoResponse, Response};
use axum::routing::get;

/// Why there are no metrics.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum ScrapeFailure {
    /// The probes are not live yet, or not any more.
    NotReady,
    /// The maps could not be read: one sentence.
    Failed(String),
}

/// Takes one snapshot and renders it; may block.
pub type Scrape = dyn Fn() -> Result<String, ScrapeFailure> + Send + Sync;

/// What the routes share.
pub struct State {
    /// Path of the metrics.
    pub telemetry_path: String,
    /// Whether probes are live.
    pub ready: AtomicBool,
    /// Renders the metrics.
    pub scrape: Box<Scrape>,
}

impl fmt::Debug for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("State")
            .field("telemetry_path", &self.telemetry_path)
            .field("ready", &self.ready)
            .finish_non_exhaustive()
    }
}

type Shared = extract::State<Arc<State>>;

/// The routes. HEAD is answered as GET without a body, other methods with 405.
pub fn router(state: Arc<State>) -> Router {
    Router::new()
        .route("/", get(index))
        .route("/-/healthy", get(healthy))
        .route("/-/ready", get(ready))
        .route(&state.telemetry_path, get(metrics))
        .with_state(state)
}

async fn healthy() -> &'static str {
    "healthy\n"
}

async fn ready(extract::State(state): Shared) -> Response {
    if state.ready.load(Ordering::Acquire) {
        "ready\n".into_response()
    } else {
        (
            StatusCode::SERVICE_UNAVAILABLE,
            "not ready: probes are not live\n",
        )
            .into_response()
    }
}

async fn metrics(extract::State(state): Shared) -> Response {
    let scraped = tokio::task::spawn_blocking(move || (state.scrape)()).await;
    match scraped {
        Ok(Ok(text)) => {
            ([(header::CONTENT_TYPE, crate::metrics::TEXT_FORMAT)], text).into_response()
        }
        Ok(Err(ScrapeFailure::NotReady)) => {
            (StatusCode::SERVICE_UNAVAILABLE, "probes are not live\n").into_response()
        }
        Ok(Err(ScrapeFailure::Failed(why))) => {
            tracing::warn!("a scrape failed: {why}");
            (StatusCode::INTERNAL_SERVER_ERROR, format!("{why}\n")).into_response()
        }
        Err(error) => {
            tracing::error!("a scrape did not end: {error}");
            (
                StatusCode::INTERNAL_SERVER_ERROR,
                "the scrape did not end\n",
            )
                .into_response()
        }
    }
}

async fn index(extract::State(state): Shared) -> Html<String> {
    let path = &state.telemetry_path;
    Html(format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head><meta charset=\"utf-8\">\
         <title>zc-observe</title></head>\n<body>\n<h1>zc-observe {}</h1>\n\
         <p>Zero-copy transmit of this host, and where it falls back to copying.</p>\n<ul>\n\
         <li><a href=\"{path}\">Metrics</a></li>\n\
         <li><a href=\"/-/healthy\">Healthy</a></li>\n\
         <li><a href=\"/-/ready\">Ready</a></li>\n</ul>\n</body>\n</html>\n",
        env!("CARGO_PKG_VERSION")
    ))
}
