//! `zc-observe generate`, as typed.

use std::time::Duration;

use clap::{Args, ValueEnum};

use super::listen::ListenAddress;
use crate::generator::{Engine, Family, Transport, syntax};

/// `zc-observe generate`.
#[derive(Args, Clone, Debug)]
#[command(after_help = EXAMPLES)]
pub struct GenerateArgs {
    /// Protocol over IP
    #[arg(long, value_enum, default_value_t = Transport::Tcp)]
    pub transport: Transport,

    /// Version of IP
    #[arg(long, value_enum, default_value_t = Family::V4)]
    pub family: Family,

    /// How payload gets to the kernel: plain sends, or MSG_ZEROCOPY
    #[arg(long, value_enum, default_value_t = Engine::Zerocopy)]
    pub engine: Engine,

    /// Payload of a message [default: 64KiB over TCP, 1400 over UDP, as many segments as
    /// fit with --gso]
    #[arg(long, value_name = "BYTES", value_parser = size)]
    pub size: Option<usize>,

    /// Messages to send, over all flows; with --listen over UDP, datagrams to take
    #[arg(long, value_name = "N")]
    pub count: Option<u64>,

    /// Time to send for [default: 10s, unless --count or --listen is given]
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub duration: Option<Duration>,

    /// Sockets, each with a thread; with --listen over TCP, connections to take
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub flows: usize,

    /// Most payload a second over all flows, such as 1GB/s, in bytes [default: no limit]
    #[arg(long, value_name = "RATE", value_parser = rate)]
    pub rate: Option<u64>,

    /// Sends between two looks at the error queue
    #[arg(long, value_name = "N", default_value_t = 32)]
    pub reap_every: u64,

    /// Payload of a segment (UDP_SEGMENT); over UDP only
    #[arg(long, value_name = "BYTES")]
    pub gso: Option<u16>,

    /// Set TCP_NODELAY
    #[arg(long)]
    pub nodelay: bool,

    /// Set TCP_CORK; over UDP send each datagram in two parts, the first with MSG_MORE
    #[arg(long)]
    pub cork: bool,

    /// Bind the senders to this device (SO_BINDTODEVICE)
    #[arg(long, value_name = "NAME")]
    pub device: Option<String>,

    /// CPU that the senders run on
    #[arg(long, value_name = "CPU")]
    pub sender_cpu: Option<usize>,

    /// CPU that the receivers run on
    #[arg(long, value_name = "CPU")]
    pub receiver_cpu: Option<usize>,

    /// Compare every byte at the receiver
    #[arg(long)]
    pub verify: bool,

    /// Receive only, here, for a run elsewhere with --connect
    #[arg(long, value_name = "ADDRESS:PORT", conflicts_with = "connect")]
    pub listen: Option<ListenAddress>,

    /// Send only, to there
    #[arg(long, value_name = "HOST:PORT")]
    pub connect: Option<String>,

    /// Form of the result: for people, as the kernel's own msg_zerocopy test prints it, or
    /// JSON
    #[arg(long, value_enum, default_value_t = Format::Table)]
    pub format: Format,

    /// The same as --format json
    #[arg(long, conflicts_with = "format")]
    pub json: bool,

    /// Also print a line every interval
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub interval: Option<Duration>,
}

/// `--format`.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub enum Format {
    /// For people.
    Table,
    /// As the kernel's own test prints it.
    Classic,
    /// One JSON object.
    Json,
}

/// Examples of use, and how it ends.
const EXAMPLES: &str = "\
Examples:
  zc-observe generate --count 20000
      20,000 zero-copy sends of 64 KiB over loopback, which is always copied
  zc-observe generate --transport udp --family 6 --gso 1400 --verify --duration 5s
      Datagrams in batches of segments, every byte compared
  zc-observe generate --engine copy --sender-cpu 0 --receiver-cpu 1
      The same without zero-copy, to compare the CPU seconds per GB
  zc-observe generate --listen :9000        (on one host)
  zc-observe generate --connect HOST:9000   (on the other one)
      Over a real device

Exit codes: 0 done; 1 failed, or a send has no notification, or payload was lost or changed;
2 wrong command line; 3 the host does not permit it (what is missing is named);
130 ended by Ctrl-C.";

fn size(text: &str) -> Result<usize, String> {
    let bytes = syntax::bytes(text)?;
    usize::try_from(bytes).map_err(|_| "is too large".to_owned())
}

fn rate(text: &str) -> Result<u64, String> {
    syntax::rate(text)
}

fn time(text: &str) -> Result<Duration, String> {
    match humantime::parse_duration(text) {
        Ok(Duration::ZERO) => Err("must be longer than nothing".to_owned()),
        Ok(time) => Ok(time),
        Err(error) => Err(format!("is no time such as 10s: {error}")),
    }
}
