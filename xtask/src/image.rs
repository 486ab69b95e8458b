//! Unpacks a kernel image on the host. An emulated processor takes seconds for that,
//! and QEMU starts an unpacked kernel directly (by its PVH entry). The price: the
//! part that would place the kernel at a random address does not run.

use std::io::Write;
use std::process::{Command, Stdio};
use std::thread;

use anyhow::{Context, Result, bail};

/// Offsets in the image's setup header (x86 boot protocol 2.08).
const SETUP_SECTORS: usize = 0x1f1;
const PAYLOAD_OFFSET: usize = 0x248;
const PAYLOAD_LENGTH: usize = 0x24c;

/// The ELF kernel inside of a bzImage.
pub(crate) fn unpack(image: &[u8]) -> Result<Vec<u8>> {
    let payload = payload(image).context("this is no bzImage")?;
    let program = match payload {
        [0xfd, b'7', b'z', b'X', b'Z', 0, ..] => "xz",
        [0x28, 0xb5, 0x2f, 0xfd, ..] => "zstd",
        _ => bail!("the kernel is packed with neither xz nor zstd"),
    };
    // After the packed kernel comes its unpacked size.
    let (packed, size) = payload.split_last_chunk().context("this is no bzImage")?;
    let kernel = decompress(program, packed)?;
    if kernel.len() != u32::from_le_bytes(*size) as usize || !kernel.starts_with(b"\x7fELF") {
        bail!(
            "{program} unpacked {} bytes that are not the ELF kernel",
            kernel.len()
        );
    }
    Ok(kernel)
}

fn payload(image: &[u8]) -> Option<&[u8]> {
    let number = |at: usize| -> Option<usize> {
        let bytes = image.get(at..at + 4)?.try_into().ok()?;
        usize::try_from(u32::from_le_bytes(bytes)).ok()
    };
    let sectors = match *image.get(SETUP_SECTORS)? {
        0 => 4,
        sectors => usize::from(sectors),
    };
    let start = (sectors + 1) * 512 + number(PAYLOAD_OFFSET)?;
    image.get(start..start.checked_add(number(PAYLOAD_LENGTH)?)?)
}

fn decompress(program: &str, packed: &[u8]) -> Result<Vec<u8>> {
    let mut child = Command::new(program)
        .args(["--decompress", "--stdout"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .with_context(|| format!("cannot start {program}"))?;
    let stdin = child.stdin.take();
    let output = thread::scope(|scope| {
        scope.spawn(move || {
            // A short write shows in the size of what comes out.
            stdin.map(|mut stdin| stdin.write_all(packed))
        });
        child.wait_with_output()
    })
    .with_context(|| format!("cannot wait for {program}"))?;
    if !output.status.success() {
        bail!("{program} cannot unpack the kernel: {}", output.status);
    }
    Ok(output.stdout)
}

#[cfg(test)]
mod tests {
    use super::payload;

    fn image(payload: &[u8], length: u32) -> Vec<u8> {
        let mut image = vec![0; 3 * 512 + 8];
        image[0x1f1] = 2;
        image[0x248..0x24c].copy_from_slice(&8_u32.to_le_bytes());
        image[0x24c..0x250].copy_from_slice(&length.to_le_bytes());
        image.extend_from_slice(payload);
        image
    }

    #[test]
    fn payload_lies_behind_the_setup_sectors() {
        assert_eq!(payload(&image(b"packed.rest", 6)), Some(&b"packed"[..]));
    }

    #[test]
    fn a_cut_image_has_no_payload() {
        assert_eq!(payload(&image(b"packed", 7)), None);
        assert_eq!(payload(&image(b"packed", u32::MAX)), None);
        assert_eq!(payload(b"short"), None);
    }
}
