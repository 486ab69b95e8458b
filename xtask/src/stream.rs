//! A byte stream from the guest up to a marker: QEMU loses what is still on its way
//! when the machine powers off, so the guest says when its output is complete.

use std::io::{self, Read, Write};

/// Copies `from` to `to` up to the marker. `true` if the marker came, `false` if the
/// stream ended without it.
pub(crate) fn copy_until(
    mut from: impl Read,
    to: &mut impl Write,
    marker: &[u8],
) -> io::Result<bool> {
    let mut held = Vec::new();
    let mut chunk = [0; 16 * 1024];
    loop {
        let read = match from.read(&mut chunk) {
            Ok(0) => {
                to.write_all(&held)?;
                to.flush()?;
                return Ok(false);
            }
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        held.extend_from_slice(chunk.get(..read).unwrap_or_default());
        let found = held
            .windows(marker.len())
            .position(|window| window == marker);
        let ready = found.unwrap_or_else(|| held.len() - begun(&held, marker));
        to.write_all(held.get(..ready).unwrap_or_default())?;
        to.flush()?;
        if found.is_some() {
            return Ok(true);
        }
        held.drain(..ready);
    }
}

/// How many bytes at the end of `held` may be the begin of the marker.
fn begun(held: &[u8], marker: &[u8]) -> usize {
    (1..marker.len().min(held.len() + 1))
        .rev()
        .find(|&length| {
            marker
                .get(..length)
                .is_some_and(|begin| held.ends_with(begin))
        })
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::copy_until;
    use std::io::Read;

    /// Gives its bytes in pieces of a fixed size.
    struct Pieces<'a>(&'a [u8], usize);

    impl Read for Pieces<'_> {
        fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
            let size = self.1.min(self.0.len()).min(into.len());
            let (now, rest) = self.0.split_at(size);
            into[..size].copy_from_slice(now);
            self.0 = rest;
            Ok(size)
        }
    }

    #[test]
    fn marker_is_found_however_it_is_cut() {
        for size in 1..20 {
            let mut to = Vec::new();
            let complete = copy_until(Pieces(b"a<en<end>rest", size), &mut to, b"<end>").unwrap();
            assert!(complete);
            assert_eq!(to, b"a<en");
        }
    }

    #[test]
    fn without_a_marker_everything_comes_and_is_incomplete() {
        for size in 1..20 {
            let mut to = Vec::new();
            let complete = copy_until(Pieces(b"abc<en", size), &mut to, b"<end>").unwrap();
            assert!(!complete);
            assert_eq!(to, b"abc<en");
        }
    }
}
