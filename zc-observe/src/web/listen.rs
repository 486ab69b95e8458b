//! Listening sockets.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};

use tokio::net::TcpListener;

use crate::cli::listen::ListenAddress;

/// Why an address cannot be listened on.
#[derive(Debug, thiserror::Error)]
pub enum ListenError {
    /// The name has no address.
    #[error("cannot listen on {address}: the name does not resolve ({reason}); use an address")]
    Resolve {
        /// As typed.
        address: ListenAddress,
        /// What the resolver said.
        reason: String,
    },
    /// Somebody listens there already.
    #[error(
        "cannot listen on {address}: the port is in use; stop the program that uses it or choose another with --web.listen-address"
    )]
    InUse {
        /// As typed.
        address: ListenAddress,
    },
    /// The port is privileged.
    #[error(
        "cannot listen on {address}: the kernel permits ports below net.ipv4.ip_unprivileged_port_start to CAP_NET_BIND_SERVICE only; choose a higher port"
    )]
    NotPermitted {
        /// As typed.
        address: ListenAddress,
    },
    /// Not an address of this host.
    #[error("cannot listen on {address}: this host does not have that address; use one of its own")]
    NotHere {
        /// As typed.
        address: ListenAddress,
    },
    /// Anything else.
    #[error("cannot listen on {address}: {reason}")]
    Other {
        /// As typed.
        address: ListenAddress,
        /// What the kernel said.
        reason: io::Error,
    },
}

impl ListenError {
    /// Whether the host does not permit it.
    #[must_use]
    pub const fn exit_not_permitted(&self) -> bool {
        matches!(self, Self::NotPermitted { .. })
    }
}

/// Listens on the first address that a name resolves to. Without a host: on all
/// addresses of both families, or of IPv4 where the host has no IPv6.
///
/// # Errors
/// When the name does not resolve or the kernel refuses.
pub async fn bind(address: &ListenAddress) -> Result<TcpListener, ListenError> {
    let refused = |reason: io::Error| {
        let address = address.clone();
        match reason.kind() {
            io::ErrorKind::AddrInUse => ListenError::InUse { address },
            io::ErrorKind::AddrNotAvailable => ListenError::NotHere { address },
            io::ErrorKind::PermissionDenied => ListenError::NotPermitted { address },
            _ => ListenError::Other { address, reason },
        }
    };
    if address.host.is_empty() {
        let any = SocketAddr::from((Ipv6Addr::UNSPECIFIED, address.port));
        return match TcpListener::bind(any).await {
            Err(error) if no_ipv6(&error) => {
                let any = SocketAddr::from((Ipv4Addr::UNSPECIFIED, address.port));
                TcpListener::bind(any).await.map_err(refused)
            }
            other => other.map_err(refused),
        };
    }
    let unresolved = |reason: String| ListenError::Resolve {
        address: address.clone(),
        reason,
    };
    let mut resolved = tokio::net::lookup_host((address.host.as_str(), address.port))
        .await
        .map_err(|error| unresolved(error.to_string()))?;
    let first = resolved
        .next()
        .ok_or_else(|| unresolved("no address".to_owned()))?;
    TcpListener::bind(first).await.map_err(refused)
}

fn no_ipv6(error: &io::Error) -> bool {
    matches!(
        error.raw_os_error(),
        Some(libc::EAFNOSUPPORT | libc::EADDRNOTAVAIL)
    )
}
