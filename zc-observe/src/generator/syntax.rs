//! Specs as text: `tcp4`, `udp6:size=1400,rate=1MB/s`, `tcp4:connect=HOST:PORT`.

use std::fmt;
use std::net::{SocketAddr, ToSocketAddrs};
use std::str::FromStr;
use std::time::Duration;

use bytesize::ByteSize;

use super::error::SpecError;
use super::spec::{Engine, Family, Spec, Transport};

/// The keys, in the order in which a spec is written.
const KEYS: [&str; 14] = [
    "engine",
    "size",
    "count",
    "duration",
    "flows",
    "rate",
    "reap-every",
    "gso",
    "nodelay",
    "cork",
    "device",
    "sender-cpu",
    "receiver-cpu",
    "verify",
];

/// Bytes with a unit: `64KiB`, `1400`.
///
/// # Errors
/// What is wrong with the text.
pub fn bytes(text: &str) -> Result<u64, String> {
    text.parse::<ByteSize>()
        .map(|size| size.as_u64())
        .map_err(|_| "is no size: write 1400, 64KiB or 1MB".to_owned())
}

/// Bytes a second: `1GB/s`.
///
/// # Errors
/// What is wrong with the text.
pub fn rate(text: &str) -> Result<u64, String> {
    bytes(text.strip_suffix("/s").unwrap_or(text))
        .map_err(|_| "is no rate: write 1MB/s or 100KiB/s, in bytes".to_owned())
}

/// `HOST:PORT`, resolved to an address of this family.
///
/// # Errors
/// What is wrong with the text.
pub fn address(text: &str, family: Family) -> Result<SocketAddr, String> {
    text.to_socket_addrs()
        .map_err(|error| format!("is no HOST:PORT that resolves: {error}"))?
        .find(|address| address.is_ipv4() == (family == Family::V4))
        .ok_or_else(|| format!("has no address of IPv{family}"))
}

/// A value, or why it is none.
fn value<T>(
    key: &'static str,
    text: &str,
    parse: impl FnOnce(&str) -> Result<T, String>,
) -> Result<T, SpecError> {
    parse(text).map_err(|why| SpecError::Value {
        key,
        value: text.to_owned(),
        why,
    })
}

fn number<T: FromStr>(text: &str) -> Result<T, String> {
    text.parse()
        .map_err(|_| "is no number in bounds".to_owned())
}

fn switch(text: &str) -> Result<bool, String> {
    match text {
        "" | "true" => Ok(true),
        "false" => Ok(false),
        _ => Err("is neither true nor false".to_owned()),
    }
}

fn duration(text: &str) -> Result<Duration, String> {
    humantime::parse_duration(text).map_err(|error| format!("is no time such as 10s: {error}"))
}

fn engine(text: &str) -> Result<Engine, String> {
    match text {
        "copy" => Ok(Engine::Copy),
        "zerocopy" => Ok(Engine::Zerocopy),
        _ => Err("is neither copy nor zerocopy".to_owned()),
    }
}

impl FromStr for Spec {
    type Err = SpecError;

    fn from_str(text: &str) -> Result<Self, SpecError> {
        let (kind, options) = text.split_once(':').unwrap_or((text, ""));
        let (transport, family) = match kind {
            "tcp4" => (Transport::Tcp, Family::V4),
            "tcp6" => (Transport::Tcp, Family::V6),
            "udp4" => (Transport::Udp, Family::V4),
            "udp6" => (Transport::Udp, Family::V6),
            _ => return Err(SpecError::Kind(kind.to_owned())),
        };
        let mut spec = Self::new(transport, family);
        let mut size = None;
        for option in options.split(',').filter(|option| !option.is_empty()) {
            let (key, text) = option.split_once('=').unwrap_or((option, ""));
            match key {
                "engine" => spec.engine = value("engine", text, engine)?,
                "size" => size = Some(value("size", text, bytes)?),
                "count" => spec.count = Some(value("count", text, number)?),
                "duration" => spec.duration = Some(value("duration", text, duration)?),
                "flows" => spec.flows = value("flows", text, number)?,
                "rate" => spec.rate = Some(value("rate", text, rate)?),
                "reap-every" => spec.reap_every = value("reap-every", text, number)?,
                "gso" => spec.gso = Some(value("gso", text, number)?),
                "nodelay" => spec.nodelay = value("nodelay", text, switch)?,
                "cork" => spec.cork = value("cork", text, switch)?,
                "device" => spec.device = Some(text.to_owned()),
                "sender-cpu" => spec.sender_cpu = Some(value("sender-cpu", text, number)?),
                "receiver-cpu" => spec.receiver_cpu = Some(value("receiver-cpu", text, number)?),
                "verify" => spec.verify = value("verify", text, switch)?,
                "connect" => {
                    spec.connect = Some(value("connect", text, |text| address(text, family))?);
                }
                _ => {
                    return Err(SpecError::Key {
                        key: key.to_owned(),
                        known: format!("{}, connect", KEYS.join(", ")),
                    });
                }
            }
        }
        spec.size = size.map_or_else(
            || Self::default_size(transport, family, spec.gso),
            |size| usize::try_from(size).unwrap_or(usize::MAX),
        );
        spec.check()?;
        Ok(spec)
    }
}

impl fmt::Display for Spec {
    /// Only what differs from the defaults.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plain = Self::new(self.transport, self.family);
        let mut options = Vec::new();
        let mut add = |key: &str, text: Option<String>| {
            if let Some(text) = text {
                options.push(format!("{key}={text}"));
            }
        };
        let differs = |differs: bool, text: String| differs.then_some(text);
        add(
            "engine",
            differs(self.engine != plain.engine, self.engine.to_string()),
        );
        let usual = Self::default_size(self.transport, self.family, self.gso);
        add("size", differs(self.size != usual, self.size.to_string()));
        add("count", self.count.map(|count| count.to_string()));
        add(
            "duration",
            self.duration.map(|time| {
                humantime::format_duration(time)
                    .to_string()
                    .replace(' ', "")
            }),
        );
        add("flows", differs(self.flows != 1, self.flows.to_string()));
        add("rate", self.rate.map(|rate| format!("{rate}B/s")));
        add(
            "reap-every",
            differs(
                self.reap_every != plain.reap_every,
                self.reap_every.to_string(),
            ),
        );
        add("gso", self.gso.map(|size| size.to_string()));
        add("nodelay", differs(self.nodelay, "true".to_owned()));
        add("cork", differs(self.cork, "true".to_owned()));
        add("device", self.device.clone());
        add("sender-cpu", self.sender_cpu.map(|cpu| cpu.to_string()));
        add("receiver-cpu", self.receiver_cpu.map(|cpu| cpu.to_string()));
        add("verify", differs(self.verify, "true".to_owned()));
        add("connect", self.connect.map(|to| to.to_string()));
        write!(f, "{}{}", self.transport, self.family)?;
        if !options.is_empty() {
            write!(f, ":{}", options.join(","))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spec_is_written_as_it_was_read() {
        for text in [
            "tcp4",
            "udp6:size=700,rate=1000000B/s",
            "udp4:gso=1400",
            "tcp6:engine=copy,size=4096,count=7,duration=2m,flows=3,reap-every=1,nodelay=true",
            "udp4:cork=true,device=ifb0,sender-cpu=1,receiver-cpu=0,verify=true,connect=10.0.0.2:9",
            "tcp6:connect=[::1]:80",
        ] {
            assert_eq!(text.parse::<Spec>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn units_and_defaults() {
        let spec: Spec = "udp6:size=1KiB,rate=1MB/s,verify".parse().unwrap();
        assert_eq!((spec.size, spec.rate), (1024, Some(1_000_000)));
        assert!(spec.verify);
        let spec: Spec = "udp4:gso=1400".parse().unwrap();
        assert_eq!(spec.size, 46 * 1400);
        let spec: Spec = "udp4:gso=100".parse().unwrap();
        assert_eq!(spec.size, 6400);
    }

    #[test]
    fn errors_name_the_key_and_what_is_known() {
        let error = |text: &str| text.parse::<Spec>().unwrap_err().to_string();
        assert!(error("sctp4").contains("tcp4, tcp6, udp4 or udp6"));
        let wrong = error("tcp4:sise=1");
        assert!(wrong.contains("'sise'") && wrong.contains("size") && wrong.contains("connect"));
        for (text, key) in [
            ("tcp4:size=big", "size"),
            ("tcp4:size=0", "size"),
            ("udp4:size=65508", "size"),
            ("tcp4:gso=100", "gso"),
            ("udp4:gso=10,size=1000", "gso"),
            ("udp4:gso=70000", "gso"),
            ("udp4:nodelay", "nodelay"),
            ("tcp4:engine=uring", "engine"),
            ("tcp4:rate=fast", "rate"),
            ("tcp4:connect=::1", "connect"),
            ("tcp4:connect=[::1]:80", "connect"),
            ("tcp4:device=eth0", "device"),
            ("tcp4:flows=0", "flows"),
        ] {
            assert!(error(text).starts_with(key), "{text}: {}", error(text));
        }
    }
}
