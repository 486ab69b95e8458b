//! `zc-observe daemon`, as typed.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::listen::ListenAddress;
use crate::probes::Mode;

/// `zc-observe daemon`.
#[derive(Args, Clone, Debug)]
#[command(after_help = EXAMPLES)]
pub struct DaemonArgs {
    /// Address to serve on: HOST:PORT, [IPV6]:PORT, or :PORT for every address; repeatable
    #[arg(
        long = "web.listen-address",
        value_name = "ADDRESS",
        default_value = "127.0.0.1:9814"
    )]
    pub listen: Vec<ListenAddress>,

    /// Path of the metrics
    #[arg(
        long = "web.telemetry-path",
        value_name = "PATH",
        default_value = "/metrics",
        value_parser = telemetry_path
    )]
    pub telemetry_path: String,

    /// Best method that probes may use; each falls back to the next one that this kernel permits
    #[arg(
        long,
        value_enum,
        value_name = "TIER",
        env = "ZC_OBSERVE_PROBES",
        default_value_t = Mode::Auto
    )]
    pub probes: Mode,

    /// Fail if a probe is refused or missing, instead of doing without it
    #[arg(long)]
    pub strict: bool,

    /// Load and attach, print a table of the probes, and end
    #[arg(long, conflicts_with_all = ["generate", "ready_file"])]
    pub check: bool,

    /// Send canary traffic over loopback all the while, such as tcp4 or
    /// udp6:size=1400,rate=1MB/s; repeatable
    #[arg(long, value_name = "SPEC")]
    pub generate: Vec<String>,

    /// File to write once the probes are live and every address accepts; removed at the end
    #[arg(long, value_name = "PATH")]
    pub ready_file: Option<PathBuf>,

    /// Time between two lines on standard output
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = interval)]
    pub interval: Duration,

    /// No line every interval; the first lines and the summary stay
    #[arg(long)]
    pub quiet: bool,
}

/// Examples of use, and how it ends.
const EXAMPLES: &str = "\
Examples:
  zc-observe daemon
      Counts every zero-copy send of this host; metrics on http://127.0.0.1:9814/metrics
  zc-observe daemon --generate tcp4 --generate udp6:size=1400,rate=1MB/s
      The same with canary traffic over loopback, which is always copied
  zc-observe daemon --web.listen-address :9814 --quiet
      For Prometheus on another host
  zc-observe daemon --check
      What this kernel permits, probe by probe

Exit codes: 0 ended by SIGTERM, or --check done; 1 failed (for example the port is in use);
2 wrong command line; 3 the host does not permit it, or --strict and a probe is missing;
130 ended by Ctrl-C.";

fn telemetry_path(text: &str) -> Result<String, String> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/_.-".contains(&byte);
    if !text.starts_with('/') || !text.bytes().all(plain) {
        Err("a path starts with / and holds letters, digits and /_.- only".to_owned())
    } else if text == "/" || text.starts_with("/-/") {
        Err("this path is the daemon's own".to_owned())
    } else {
        Ok(text.to_owned())
    }
}

fn interval(text: &str) -> Result<Duration, String> {
    let time = humantime::parse_duration(text).map_err(|error| error.to_string())?;
    if time < Duration::from_millis(100) {
        Err("the shortest interval is 100ms".to_owned())
    } else {
        Ok(time)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn telemetry_paths() {
        for good in ["/metrics", "/a/b.c", "/-metrics"] {
            assert_eq!(telemetry_path(good).as_deref(), Ok(good));
        }
        for bad in ["", "/", "metrics", "/-/ready", "/{x}", "/a b", "/a?b"] {
            assert!(telemetry_path(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn intervals_have_units_and_a_floor() {
        assert_eq!(interval("1m"), Ok(Duration::from_secs(60)));
        assert!(interval("0s").is_err());
        assert!(interval("5").is_err());
    }
}
