//! Datagrams over loopback with `IORING_OP_SEND_ZC`.

use std::net::UdpSocket;
use std::os::fd::AsRawFd;

use io_uring::{IoUring, cqueue, opcode, types};

/// `IORING_SEND_ZC_REPORT_USAGE`: the notification tells of a copy (from 6.2 on, and in
/// stable 6.1).
const REPORT_USAGE: u16 = 1 << 3;
/// `IORING_NOTIF_USAGE_ZC_COPIED`.
const COPIED: u32 = 1 << 31;

/// Sends one after the other, and says how many notifications told of a copy.
pub(crate) fn send(count: u64, size: u32) -> u64 {
    let receiver = UdpSocket::bind("127.0.0.1:0").unwrap();
    let sender = UdpSocket::bind("127.0.0.1:0").unwrap();
    sender.connect(receiver.local_addr().unwrap()).unwrap();
    let (payload, mut inbox) = (vec![7u8; size as usize], vec![0u8; size as usize]);
    let mut ring = IoUring::new(8).unwrap();
    let mut told = 0;
    for _ in 0..count {
        let entry = opcode::SendZc::new(types::Fd(sender.as_raw_fd()), payload.as_ptr(), size)
            .zc_flags(REPORT_USAGE)
            .build();
        // SAFETY: socket and payload live until both completions are here.
        unsafe { ring.submission().push(&entry) }.unwrap();
        let mut notified = false;
        while !notified {
            ring.submit_and_wait(1).unwrap();
            for completion in ring.completion() {
                if cqueue::notif(completion.flags()) {
                    notified = true;
                    told += u64::from(completion.result() as u32 & COPIED != 0);
                } else {
                    assert_eq!(completion.result(), size as i32);
                }
            }
        }
        assert_eq!(receiver.recv(&mut inbox).unwrap(), size as usize);
    }
    told
}
