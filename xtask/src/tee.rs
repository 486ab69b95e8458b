//! Output that is shown line by line, behind a name, and kept.

use std::io::{self, Write};
use std::sync::{Arc, Mutex};

/// Shows what is written, line by line, and keeps it.
#[derive(Debug)]
pub(crate) struct Tee {
    prefix: String,
    line: Vec<u8>,
    kept: Kept,
}

/// What a [`Tee`] was given.
#[derive(Clone, Debug, Default)]
pub(crate) struct Kept(Arc<Mutex<Vec<u8>>>);

impl Kept {
    /// The text so far.
    pub(crate) fn text(&self) -> String {
        let kept = match self.0.lock() {
            Ok(kept) => kept,
            Err(poisoned) => poisoned.into_inner(),
        };
        String::from_utf8_lossy(&kept).into_owned()
    }

    fn add(&self, bytes: &[u8]) {
        match self.0.lock() {
            Ok(mut kept) => kept.extend_from_slice(bytes),
            Err(poisoned) => poisoned.into_inner().extend_from_slice(bytes),
        }
    }
}

impl Tee {
    /// Shows lines behind `prefix`, which may be empty.
    pub(crate) fn new(prefix: &str, kept: &Kept) -> Self {
        Self {
            prefix: prefix.to_owned(),
            line: Vec::new(),
            kept: kept.clone(),
        }
    }

    fn show(&mut self) {
        println!("{}{}", self.prefix, String::from_utf8_lossy(&self.line));
        self.line.clear();
    }
}

impl Write for Tee {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.kept.add(bytes);
        for &byte in bytes {
            if byte == b'\n' {
                self.show();
            } else {
                self.line.push(byte);
            }
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for Tee {
    fn drop(&mut self) {
        if !self.line.is_empty() {
            self.show();
        }
    }
}
