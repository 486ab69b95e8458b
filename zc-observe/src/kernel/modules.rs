//! The modules that are loaded, from `/proc/modules`.

use std::ops::Range;

/// A loaded module.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Module {
    /// Its name.
    pub name: String,
    /// Its memory; starts at 0 if the kernel hides addresses.
    pub memory: Range<u64>,
}

impl Module {
    /// Whether an address lies in it.
    #[must_use]
    pub fn contains(&self, address: u64) -> bool {
        self.memory.contains(&address)
    }
}

/// The modules loaded now; none where the kernel has no modules.
#[must_use]
pub fn loaded() -> Vec<Module> {
    parse(&std::fs::read_to_string("/proc/modules").unwrap_or_default())
}

/// Reads the text of `/proc/modules`. Reference counts, which change all the time, are
/// left out, so that two lists are equal if the same modules are loaded at the same place.
#[must_use]
pub fn parse(text: &str) -> Vec<Module> {
    text.lines().filter_map(module).collect()
}

fn module(line: &str) -> Option<Module> {
    let words: Vec<_> = line.split_ascii_whitespace().collect();
    let [name, size, _references, _users, _state, base, ..] = words.as_slice() else {
        return None;
    };
    let size: u64 = size.parse().ok()?;
    let base = u64::from_str_radix(base.strip_prefix("0x")?, 16).ok()?;
    Some(Module {
        name: (*name).to_owned(),
        memory: base..base.saturating_add(size),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_equal_whatever_the_reference_counts() {
        let before = parse(
            "tun 69632 0 - Live 0xffffffffc0a56000\nveth 45056 2 tun,other, Live 0xffffffffc0a40000 (E)\n",
        );
        assert_eq!(before.len(), 2);
        assert_eq!(before[0].name, "tun");
        assert!(before[0].contains(0xffff_ffff_c0a5_6000));
        assert!(before[0].contains(0xffff_ffff_c0a6_6fff));
        assert!(!before[0].contains(0xffff_ffff_c0a6_7000));
        let after = parse(
            "tun 69632 7 - Live 0xffffffffc0a56000\nveth 45056 0 - Live 0xffffffffc0a40000 (E)\n",
        );
        assert_eq!(before, after);
        assert_ne!(before, parse("tun 69632 7 - Live 0xffffffffc0a56000\n"));
    }
}
