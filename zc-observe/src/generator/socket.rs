//! Sockets of both sides, and the one system call per message.

use std::ffi::c_int;
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use socket2::{Domain, Protocol, SockAddr, Socket, Type};

use super::error::GenerateError;
use super::sender::Stop;
use super::spec::{Engine, Spec, Transport};

/// How long one system call may hold up a thread that should end.
pub(super) const PATIENCE: Duration = Duration::from_millis(40);
/// How long to wait for the other side to accept.
pub(super) const CONNECT: Duration = Duration::from_secs(5);
/// Receive buffer of a UDP socket, if it may be had; the kernel doubles it.
const RECEIVE_BUFFER: usize = 4 << 20;

/// Sets an option that is a number.
pub(super) fn set(socket: &Socket, level: c_int, name: c_int, value: c_int) -> io::Result<()> {
    let length = size_of::<c_int>() as libc::socklen_t;
    // SAFETY: the pointer is to a c_int that lives through the call, of that length.
    let done = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            level,
            name,
            (&raw const value).cast(),
            length,
        )
    };
    if done == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

/// Sends these bytes on a connected socket.
pub(super) fn send(socket: &Socket, bytes: &[u8], flags: c_int) -> io::Result<usize> {
    // SAFETY: the slice is readable; with MSG_ZEROCOPY the kernel holds its pages by
    // references of its own, so that they outlive even the mapping.
    let sent = unsafe {
        libc::send(
            socket.as_raw_fd(),
            bytes.as_ptr().cast(),
            bytes.len(),
            flags | libc::MSG_NOSIGNAL,
        )
    };
    usize::try_from(sent).map_err(|_| io::Error::last_os_error())
}

/// Takes up to `length` bytes (TCP) or the next datagram (UDP) without copying them
/// here, and says how many they were.
pub(super) fn discard(socket: &Socket, length: usize) -> io::Result<usize> {
    // SAFETY: with MSG_TRUNC, TCP never writes to the buffer. UDP writes up to the
    // length given, which is 0 there.
    let taken = unsafe {
        libc::recv(
            socket.as_raw_fd(),
            std::ptr::null_mut(),
            length,
            libc::MSG_TRUNC,
        )
    };
    usize::try_from(taken).map_err(|_| io::Error::last_os_error())
}

fn open(spec: &Spec, address: SocketAddr) -> Result<Socket, GenerateError> {
    let (kind, protocol) = match spec.transport {
        Transport::Tcp => (Type::STREAM, Protocol::TCP),
        Transport::Udp => (Type::DGRAM, Protocol::UDP),
    };
    Socket::new(Domain::for_address(address), kind, Some(protocol)).map_err(GenerateError::io(
        format!("open a {}{} socket", spec.transport, spec.family),
    ))
}

/// A socket that sends to `to`; `None` if the run was stopped first.
pub(super) fn sender(
    spec: &Spec,
    to: SocketAddr,
    stop: Stop<'_>,
) -> Result<Option<Socket>, GenerateError> {
    let socket = open(spec, to)?;
    if spec.engine == Engine::Zerocopy {
        set(&socket, libc::SOL_SOCKET, libc::SO_ZEROCOPY, 1).map_err(|source| {
            GenerateError::Unsupported {
                transport: spec.transport,
                source,
            }
        })?;
    }
    if let Some(device) = &spec.device {
        socket
            .bind_device(Some(device.as_bytes()))
            .map_err(GenerateError::io(format!(
                "bind a socket to the device {device}"
            )))?;
    }
    if let Some(segment) = spec.gso {
        set(
            &socket,
            libc::SOL_UDP,
            libc::UDP_SEGMENT,
            c_int::from(segment),
        )
        .map_err(GenerateError::io("set UDP_SEGMENT, which needs Linux 4.18"))?;
    }
    socket
        .set_write_timeout(Some(PATIENCE))
        .map_err(GenerateError::io("set SO_SNDTIMEO"))?;
    if spec.transport == Transport::Tcp {
        socket
            .set_tcp_nodelay(spec.nodelay)
            .map_err(GenerateError::io("set TCP_NODELAY"))?;
        let connected =
            connect(&socket, to, stop).map_err(GenerateError::io(format!("connect to {to}")))?;
        if !connected {
            return Ok(None);
        }
        socket
            .set_tcp_cork(spec.cork)
            .map_err(GenerateError::io("set TCP_CORK"))?;
    } else {
        socket
            .connect(&SockAddr::from(to))
            .map_err(GenerateError::io(format!("connect to {to}")))?;
    }
    Ok(Some(socket))
}

/// Connects a stream; false if the run was stopped first.
fn connect(socket: &Socket, to: SocketAddr, stop: Stop<'_>) -> io::Result<bool> {
    socket.set_nonblocking(true)?;
    match socket.connect(&SockAddr::from(to)) {
        Err(error) if error.raw_os_error() != Some(libc::EINPROGRESS) => return Err(error),
        _ => {}
    }
    let began = Instant::now();
    let slice = PollTimeout::try_from(PATIENCE).unwrap_or(PollTimeout::ZERO);
    loop {
        let mut polled = [PollFd::new(socket.as_fd(), PollFlags::POLLOUT)];
        match poll(&mut polled, slice) {
            Ok(0) | Err(Errno::EINTR) => {}
            Ok(_) => break,
            Err(errno) => return Err(errno.into()),
        }
        if stop.soon() {
            return Ok(false);
        }
        if began.elapsed() >= CONNECT {
            return Err(io::Error::from_raw_os_error(libc::ETIMEDOUT));
        }
    }
    if let Some(error) = socket.take_error()? {
        return Err(error);
    }
    socket.set_nonblocking(false)?;
    Ok(true)
}

/// A socket that receives at `at`: over TCP a listener. And the address that it got.
pub(super) fn receiver(spec: &Spec, at: SocketAddr) -> Result<(Socket, SocketAddr), GenerateError> {
    let socket = open(spec, at)?;
    if spec.transport == Transport::Udp {
        // Forcing it needs CAP_NET_ADMIN; without, net.core.rmem_max is the limit. Either
        // way the window asks how much it became.
        let size = c_int::try_from(RECEIVE_BUFFER).unwrap_or(c_int::MAX);
        if set(&socket, libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, size).is_err() {
            socket
                .set_recv_buffer_size(RECEIVE_BUFFER)
                .map_err(GenerateError::io("set SO_RCVBUF"))?;
        }
    } else {
        socket
            .set_reuse_address(true)
            .map_err(GenerateError::io("set SO_REUSEADDR"))?;
    }
    socket
        .bind(&SockAddr::from(at))
        .map_err(GenerateError::io(format!("bind to {at}")))?;
    if spec.transport == Transport::Tcp {
        socket
            .listen(1024)
            .map_err(GenerateError::io(format!("listen on {at}")))?;
    }
    socket
        .set_read_timeout(Some(PATIENCE))
        .map_err(GenerateError::io("set SO_RCVTIMEO"))?;
    let address = socket
        .local_addr()
        .map_err(GenerateError::io("read the socket's address"))?;
    let address = address.as_socket().unwrap_or(at);
    Ok((socket, address))
}

/// Whether a call ended because its time was up, or was interrupted.
pub(super) fn is_timeout(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut | io::ErrorKind::Interrupted
    )
}
