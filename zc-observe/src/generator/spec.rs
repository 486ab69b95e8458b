//! What is sent.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use super::error::SpecError;

/// Payload bytes that fit in one datagram of IPv4: 65,535 less the two headers.
pub const MAX_DATAGRAM: usize = 65_507;
/// Segments that one send may hold (`UDP_MAX_SEGMENTS` before 6.8, which doubled it).
pub const MAX_SEGMENTS: usize = 64;

/// The protocol over IP.
#[derive(Clone, Copy, Debug, Eq, PartialEq, clap::ValueEnum)]
pub enum Transport {
    /// A stream.
    Tcp,
    /// Datagrams; zero-copy since Linux 5.0.
    Udp,
}

/// The version of IP.
#[derive(Clone, Copy, Debug, Eq, PartialEq, clap::ValueEnum)]
pub enum Family {
    /// IPv4.
    #[value(name = "4")]
    V4,
    /// IPv6.
    #[value(name = "6")]
    V6,
}

/// How payload gets to the kernel.
#[derive(Clone, Copy, Debug, Eq, PartialEq, clap::ValueEnum)]
pub enum Engine {
    /// Plain sends: the kernel copies.
    Copy,
    /// `MSG_ZEROCOPY`.
    Zerocopy,
}

/// What is sent, and how.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Spec {
    /// The protocol over IP.
    pub transport: Transport,
    /// The version of IP.
    pub family: Family,
    /// How payload gets to the kernel.
    pub engine: Engine,
    /// Payload bytes of a message.
    pub size: usize,
    /// Messages to send in all, over all flows; with `listen` over UDP, datagrams to take.
    pub count: Option<u64>,
    /// Time to send for.
    pub duration: Option<Duration>,
    /// Sockets, each with a sender (and receiver) thread.
    pub flows: usize,
    /// Payload bytes a second, over all flows; `None` for no limit.
    pub rate: Option<u64>,
    /// Sends between two looks at the error queue.
    pub reap_every: u64,
    /// Payload bytes of a segment (`UDP_SEGMENT`); UDP only.
    pub gso: Option<u16>,
    /// `TCP_NODELAY`.
    pub nodelay: bool,
    /// `TCP_CORK`; over UDP each datagram in two sends, the first with `MSG_MORE`.
    pub cork: bool,
    /// `SO_BINDTODEVICE` of the senders.
    pub device: Option<String>,
    /// CPU that the senders run on.
    pub sender_cpu: Option<usize>,
    /// CPU that the receivers run on.
    pub receiver_cpu: Option<usize>,
    /// Whether receivers compare every byte with what was sent.
    pub verify: bool,
    /// Send there, without receivers of our own.
    pub connect: Option<SocketAddr>,
    /// Receive there, without senders of our own.
    pub listen: Option<SocketAddr>,
}

impl Spec {
    /// Zero-copy over loopback on one socket, with no end: 64 KiB messages over TCP,
    /// 1400 bytes over UDP.
    #[must_use]
    pub const fn new(transport: Transport, family: Family) -> Self {
        Self {
            transport,
            family,
            engine: Engine::Zerocopy,
            size: match transport {
                Transport::Tcp => 65_536,
                Transport::Udp => 1_400,
            },
            count: None,
            duration: None,
            flows: 1,
            rate: None,
            reap_every: 32,
            gso: None,
            nodelay: false,
            cork: false,
            device: None,
            sender_cpu: None,
            receiver_cpu: None,
            verify: false,
            connect: None,
            listen: None,
        }
    }

    /// The size of a message where none is given: with segments, as many as fit.
    #[must_use]
    pub fn default_size(transport: Transport, family: Family, gso: Option<u16>) -> usize {
        match gso {
            Some(segment) if segment > 0 => {
                let segment = usize::from(segment);
                segment * (MAX_DATAGRAM / segment).clamp(1, MAX_SEGMENTS)
            }
            _ => Self::new(transport, family).size,
        }
    }

    /// Whether all of this can be had at once.
    ///
    /// # Errors
    /// Names the value that is out of bounds, or the two that exclude each other.
    pub fn check(&self) -> Result<(), SpecError> {
        let conflict = |why: &str| Err(SpecError::Conflict(why.to_owned()));
        if self.size == 0 || self.size > 1 << 30 {
            return conflict("size: from 1 byte to 1GiB");
        }
        if self.flows == 0 || self.flows > 1024 {
            return conflict("flows: from 1 to 1024");
        }
        if self.reap_every == 0 {
            return conflict("reap-every: at least 1");
        }
        if self.rate == Some(0) {
            return conflict("rate: at least 1 byte a second");
        }
        if self.transport == Transport::Udp && self.size > MAX_DATAGRAM {
            return conflict("size: a datagram holds at most 65507 bytes");
        }
        match self.gso {
            Some(_) if self.transport == Transport::Tcp => {
                return conflict("gso: for UDP only; TCP segments by itself");
            }
            Some(0) => return conflict("gso: at least 1 byte"),
            Some(segment) if self.size.div_ceil(usize::from(segment)) > MAX_SEGMENTS => {
                return conflict("gso: size is more than 64 segments");
            }
            _ => {}
        }
        if self.nodelay && self.transport == Transport::Udp {
            return conflict("nodelay: for TCP only");
        }
        if self.cork && self.gso.is_some() {
            return conflict("cork: not together with gso");
        }
        if self.connect.is_some() && self.listen.is_some() {
            return conflict("connect: not together with listen; each side is a run of its own");
        }
        if self.connect.is_none() && self.device.as_deref().is_some_and(|name| name != "lo") {
            return conflict("device: needs connect; without it traffic stays on lo");
        }
        for address in [self.connect, self.listen].into_iter().flatten() {
            if address.is_ipv4() != (self.family == Family::V4) {
                return conflict("the address is not of this family");
            }
        }
        Ok(())
    }

    /// An ephemeral port of loopback.
    pub(super) const fn loopback(&self) -> SocketAddr {
        let address = match self.family {
            Family::V4 => IpAddr::V4(Ipv4Addr::LOCALHOST),
            Family::V6 => IpAddr::V6(Ipv6Addr::LOCALHOST),
        };
        SocketAddr::new(address, 0)
    }

    /// The part of `total` that flow number `flow` gets.
    pub(super) fn share(&self, total: u64, flow: usize) -> u64 {
        let (flows, flow) = (self.flows as u64, flow as u64);
        total / flows + u64::from(flow < total % flows)
    }
}

impl fmt::Display for Transport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Tcp => "tcp",
            Self::Udp => "udp",
        })
    }
}

impl fmt::Display for Family {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::V4 => "4",
            Self::V6 => "6",
        })
    }
}

impl fmt::Display for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Copy => "copy",
            Self::Zerocopy => "zerocopy",
        })
    }
}
