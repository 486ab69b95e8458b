//! Addresses to listen on, as typed.

use std::fmt;
use std::str::FromStr;

/// `HOST:PORT`, `[IPV6]:PORT`, or `:PORT` for every address of this host.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct ListenAddress {
    /// Name or address without brackets; empty for every address.
    pub host: String,
    /// Port; 0 lets the kernel choose.
    pub port: u16,
}

/// Why a text is not a [`ListenAddress`].
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum ListenAddressError {
    /// No port.
    #[error("no port: write HOST:PORT, [IPV6]:PORT or :PORT")]
    NoPort,
    /// The port is not a number of 16 bits.
    #[error("'{0}' is not a port (0 to 65535)")]
    Port(String),
    /// An IPv6 address without brackets, or brackets around something else.
    #[error("write an IPv6 address in brackets, as in [::1]:9814")]
    Brackets,
}

impl FromStr for ListenAddress {
    type Err = ListenAddressError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (host, port) = text.rsplit_once(':').ok_or(ListenAddressError::NoPort)?;
        let host = match host.strip_prefix('[') {
            Some(rest) => {
                let inner = rest.strip_suffix(']').ok_or(ListenAddressError::Brackets)?;
                if !inner.contains(':') {
                    return Err(ListenAddressError::Brackets);
                }
                inner
            }
            None if host.contains([':', '[', ']']) => return Err(ListenAddressError::Brackets),
            None => host,
        };
        let number = if port.bytes().all(|byte| byte.is_ascii_digit()) {
            port
        } else {
            ""
        };
        let port = number
            .parse()
            .map_err(|_| ListenAddressError::Port(port.to_owned()))?;
        Ok(Self {
            host: host.to_owned(),
            port,
        })
    }
}

impl fmt::Display for ListenAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.host.contains(':') {
            write!(f, "[{}]:{}", self.host, self.port)
        } else {
            write!(f, "{}:{}", self.host, self.port)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_keep_their_form() {
        for text in ["127.0.0.1:9814", "[::1]:9814", "localhost:0", ":9814"] {
            assert_eq!(text.parse::<ListenAddress>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn wrong_ones_say_why() {
        for (text, why) in [
            ("9814", ListenAddressError::NoPort),
            ("::1:9814", ListenAddressError::Brackets),
            ("[::1:9814", ListenAddressError::Brackets),
            ("[host]:9814", ListenAddressError::Brackets),
            ("host:", ListenAddressError::Port(String::new())),
            ("host:http", ListenAddressError::Port("http".to_owned())),
            ("host:+80", ListenAddressError::Port("+80".to_owned())),
            ("host:65536", ListenAddressError::Port("65536".to_owned())),
        ] {
            assert_eq!(text.parse::<ListenAddress>(), Err(why), "{text}");
        }
    }
}
