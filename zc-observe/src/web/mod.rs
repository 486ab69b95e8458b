//! HTTP: the metrics, health, readiness, and a page of links. Read-only.

mod listen;
mod routes;
mod serve;

pub use listen::{ListenError, bind};
pub use routes::{Scrape, ScrapeFailure, State, router};
pub use serve::Server;
