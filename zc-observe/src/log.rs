//! The log: events on standard error, as text or as JSON lines.

use tracing_subscriber::EnvFilter;

use crate::cli::global::{Global, LogFormat};

/// Starts the log of this process. A second start changes nothing.
pub fn start(global: &Global) {
    let filter = EnvFilter::new(global.log_level.as_str());
    let builder = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_target(false)
        .with_ansi(global.color.on_stderr());
    // The only error is that the process has a log already.
    let _ = match global.log_format {
        LogFormat::Text => builder.try_init(),
        LogFormat::Json => builder.json().flatten_event(true).try_init(),
    };
}
