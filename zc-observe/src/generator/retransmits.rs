//! What TCP sent again: such payload passes the receive path twice.

use std::io;
use std::os::fd::{AsFd, AsRawFd};

/// Where `struct tcp_info` has `tcpi_bytes_retrans` (from 4.19 on).
const BYTES_RETRANS: usize = 208;

/// Payload bytes that the connection retransmitted so far.
pub(super) fn bytes(socket: impl AsFd) -> io::Result<u64> {
    let mut info = [0u8; BYTES_RETRANS + 8];
    let mut length = info.len() as libc::socklen_t;
    // SAFETY: the buffer is live and as long as told.
    let result = unsafe {
        libc::getsockopt(
            socket.as_fd().as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_INFO,
            info.as_mut_ptr().cast(),
            &raw mut length,
        )
    };
    if result != 0 {
        return Err(io::Error::last_os_error());
    }
    let bytes = info
        .last_chunk()
        .filter(|_| length as usize >= info.len())
        .ok_or_else(|| io::Error::other("this kernel's tcp_info ends before tcpi_bytes_retrans"))?;
    Ok(u64::from_ne_bytes(*bytes))
}
