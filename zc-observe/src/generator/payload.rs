//! The payload: a fixed pattern by position, in whole pages.

use std::io;
use std::num::NonZeroUsize;
use std::ptr::NonNull;

use nix::sys::mman::{MapFlags, ProtFlags, mmap_anonymous, munmap};

/// The pattern repeats after this many bytes, in whole pages.
const PERIOD: usize = 65_536;

/// The byte at a position of a stream or datagram.
fn byte(position: usize) -> u8 {
    let mixed = (position % PERIOD).wrapping_mul(0x9E37_79B1) >> 13;
    (mixed ^ (mixed >> 8)) as u8
}

/// Memory that messages are sent from; never written to after it is filled. It begins
/// at a page: 65,507 bytes that begin elsewhere span more pages than an skb has frags.
#[derive(Debug)]
pub(super) struct Payload {
    start: NonNull<u8>,
    length: usize,
    /// Length of a segment that the pattern begins anew with.
    segment: usize,
}

// SAFETY: the mapping belongs to the value alone, and is only read once it is shared.
unsafe impl Send for Payload {}

impl Payload {
    /// For messages of `size` bytes. With segments each one begins the pattern anew, as
    /// each arrives as a datagram.
    pub(super) fn new(size: usize, segment: Option<u16>) -> io::Result<Self> {
        let segment = segment.map_or(usize::MAX, usize::from);
        let length = size + PERIOD;
        let whole = NonZeroUsize::new(length).ok_or(io::ErrorKind::InvalidInput)?;
        // SAFETY: a new private mapping touches no other memory.
        let start = unsafe {
            mmap_anonymous(
                None,
                whole,
                ProtFlags::PROT_READ | ProtFlags::PROT_WRITE,
                MapFlags::MAP_PRIVATE,
            )
        }?;
        let mut payload = Self {
            start: start.cast(),
            length,
            segment,
        };
        payload.fill();
        Ok(payload)
    }

    fn fill(&mut self) {
        // SAFETY: the mapping is readable and writable over its length, and borrowed
        // mutably here.
        let bytes = unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.length) };
        for (position, slot) in bytes.iter_mut().enumerate() {
            *slot = byte(position % self.segment);
        }
    }

    fn bytes(&self) -> &[u8] {
        // SAFETY: the mapping is readable over its length until it is dropped.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.length) }
    }

    /// `length` bytes, at most a message, from a position of the stream or datagram.
    pub(super) fn at(&self, position: u64, length: usize) -> &[u8] {
        let start = (position % PERIOD as u64) as usize;
        let end = (start + length).min(self.length);
        &self.bytes()[start..end]
    }

    /// Whether these bytes are the ones from a position on.
    pub(super) fn matches(&self, position: u64, bytes: &[u8]) -> bool {
        let mut position = position;
        bytes.chunks(self.length - PERIOD).all(|chunk| {
            let same = self.at(position, chunk.len()) == chunk;
            position += chunk.len() as u64;
            same
        })
    }
}

impl Drop for Payload {
    fn drop(&mut self) {
        // SAFETY: the mapping was made with this address and length and nothing borrows
        // it any more; pages that the kernel still sends from are held by it.
        let unmapped = unsafe { munmap(self.start.cast(), self.length) };
        if let Err(error) = unmapped {
            tracing::debug!("cannot unmap {} bytes: {error}", self.length);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pattern_tells_positions_apart() {
        let payload = Payload::new(4096, None).unwrap();
        assert_eq!(payload.start.as_ptr() as usize % 4096, 0);
        let sent = payload.at(70_000, 4096).to_vec();
        assert!(payload.matches(70_000, &sent));
        for shift in [1, 16, 256, 1448, 4096] {
            assert!(!payload.matches(70_000 + shift, &sent), "{shift}");
        }
        let mut changed = sent.clone();
        changed[4095] ^= 1;
        assert!(!payload.matches(70_000, &changed));
    }

    #[test]
    fn more_than_a_message_is_compared_too() {
        let payload = Payload::new(1000, None).unwrap();
        let stream: Vec<u8> = (0..200_000).map(byte).collect();
        assert!(payload.matches(0, &stream));
        assert!(payload.matches(3, &stream[3..]));
        assert!(!payload.matches(0, &stream[1..]));
    }

    #[test]
    fn each_segment_begins_anew() {
        let payload = Payload::new(300, Some(100)).unwrap();
        let message = payload.at(0, 300);
        assert_eq!(message[..100], message[200..]);
        assert!(
            Payload::new(100, None)
                .unwrap()
                .matches(0, &message[100..200])
        );
    }
}
