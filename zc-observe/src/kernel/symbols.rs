//! The kernel's functions by name and by address, from `/proc/kallsyms`.

use super::modules::{self, Module};

const KALLSYMS: &str = "/proc/kallsyms";

/// Why there are no symbols.
#[derive(Debug, thiserror::Error)]
#[error("{KALLSYMS}: {error}: the kernel shows no symbols here; call sites cannot be named")]
pub struct SymbolsError {
    /// What the kernel said.
    error: std::io::Error,
}

/// All functions of the kernel and its modules.
#[derive(Clone, Debug, Default)]
pub struct Symbols {
    /// The names, one after the other.
    names: String,
    /// Sorted by address; of those at one address the first that kallsyms names comes first.
    entries: Vec<Entry>,
    /// Names of the modules that the entries point to; 0 is the kernel itself.
    owners: Vec<String>,
    /// Modules as they were loaded when the symbols were read.
    modules: Vec<Module>,
    /// End of the kernel's own code, 0 if unknown.
    end_of_text: u64,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    address: u64,
    name: u32,
    length: u16,
    owner: u16,
}

/// A function.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Symbol<'a> {
    /// Its name, suffixes kept.
    pub name: &'a str,
    /// Its first byte; 0 if the kernel hides addresses.
    pub address: u64,
    /// Its module, or `None` for the kernel itself.
    pub module: Option<&'a str>,
}

/// A return address by name.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Resolved<'a> {
    /// The function that the call was made from, suffixes kept.
    pub function: &'a str,
    /// Offset of the return address in it.
    pub offset: u64,
    /// Its module, or `None` for the kernel itself.
    pub module: Option<&'a str>,
}

impl Symbols {
    /// Reads the running kernel's symbols.
    ///
    /// # Errors
    /// [`SymbolsError`] if `/proc/kallsyms` cannot be read.
    pub fn load() -> Result<Self, SymbolsError> {
        let text = std::fs::read(KALLSYMS).map_err(|error| SymbolsError { error })?;
        Ok(Self::parse(
            &String::from_utf8_lossy(&text),
            modules::loaded(),
        ))
    }

    /// Reads the text of `/proc/kallsyms`, given the modules that were loaded at that time.
    #[must_use]
    pub fn parse(kallsyms: &str, modules: Vec<Module>) -> Self {
        let mut symbols = Self {
            owners: vec![String::new()],
            modules,
            ..Self::default()
        };
        for line in kallsyms.lines() {
            let mut words = line.split_ascii_whitespace();
            let (Some(address), Some(kind), Some(name)) =
                (words.next(), words.next(), words.next())
            else {
                continue;
            };
            let Ok(address) = u64::from_str_radix(address, 16) else {
                continue;
            };
            if name == "_etext" {
                symbols.end_of_text = address;
            }
            // The compiler's padding in front of functions is no code that anything calls from.
            if !matches!(kind, "t" | "T" | "w" | "W")
                || name.starts_with("__pfx_")
                || name.starts_with("__cfi_")
            {
                continue;
            }
            let owner = symbols.owner(words.next());
            let (Ok(start), Ok(length)) = (
                u32::try_from(symbols.names.len()),
                u16::try_from(name.len()),
            ) else {
                continue;
            };
            symbols.names.push_str(name);
            symbols.entries.push(Entry {
                address,
                name: start,
                length,
                owner,
            });
        }
        symbols.entries.sort_by_key(|entry| entry.address);
        symbols.names.shrink_to_fit();
        symbols.entries.shrink_to_fit();
        symbols
    }

    /// Reads the symbols again if modules came or went. Says whether it did.
    ///
    /// # Errors
    /// [`SymbolsError`] if `/proc/kallsyms` cannot be read; the old symbols stay.
    pub fn refresh(&mut self) -> Result<bool, SymbolsError> {
        if modules::loaded() == self.modules {
            return Ok(false);
        }
        *self = Self::load()?;
        Ok(true)
    }

    /// Whether the kernel hides addresses from us (`kernel.kptr_restrict`): names can then
    /// be looked up, addresses can't.
    #[must_use]
    pub fn hidden(&self) -> bool {
        self.entries.last().is_none_or(|entry| entry.address == 0)
    }

    /// The functions that a source function may have become: itself first, then the
    /// compiler's variants `.isra.N`, `.constprop.N`, `.part.N` and combinations, by name.
    /// Never `.cold` parts, which are not entered by calls.
    #[must_use]
    pub fn candidates(&self, name: &str) -> Vec<Symbol<'_>> {
        let mut found: Vec<_> = self
            .entries
            .iter()
            .filter(|entry| {
                let full = self.name(entry);
                full.strip_prefix(name)
                    .is_some_and(|rest| rest.is_empty() || is_variant(rest))
            })
            .map(|entry| self.symbol(entry))
            .collect();
        found.sort_by_key(|symbol| (symbol.name.len() != name.len(), symbol.name));
        found
    }

    /// Address of the function of exactly this name; `None` if there is none or more than
    /// one, or addresses are hidden.
    #[must_use]
    pub fn address(&self, name: &str) -> Option<u64> {
        let mut found = self.entries.iter().filter(|entry| self.name(entry) == name);
        let address = found.next()?.address;
        (address != 0 && found.next().is_none()).then_some(address)
    }

    /// Where the function of exactly this name begins and the next one does.
    #[must_use]
    pub fn extent(&self, name: &str) -> Option<(u64, u64)> {
        let start = self.address(name)?;
        let next = self.entries.partition_point(|entry| entry.address <= start);
        Some((start, self.entries.get(next)?.address))
    }

    /// Names the function that a return address leads back into. A call can be a function's
    /// last instruction, so the byte before the address is the one that is looked up.
    #[must_use]
    pub fn resolve(&self, return_address: u64) -> Option<Resolved<'_>> {
        let call = return_address.checked_sub(1)?;
        let behind = self.entries.partition_point(|entry| entry.address <= call);
        let address = self.entries.get(behind.checked_sub(1)?)?.address;
        let first = self
            .entries
            .partition_point(|entry| entry.address < address);
        let entry = self.entries.get(first)?;
        let symbol = self.symbol(entry);
        if address == 0 || !self.covers(&symbol, call) {
            return None;
        }
        Some(Resolved {
            function: symbol.name,
            offset: return_address - address,
            module: symbol.module,
        })
    }

    /// Whether an address behind a symbol still belongs to what the symbol is part of.
    fn covers(&self, symbol: &Symbol<'_>, address: u64) -> bool {
        match symbol.module {
            None => symbol.address >= self.end_of_text || address < self.end_of_text,
            Some(name) => self
                .modules
                .iter()
                .find(|module| module.name == name)
                .is_none_or(|module| !module.contains(symbol.address) || module.contains(address)),
        }
    }

    fn name(&self, entry: &Entry) -> &str {
        let start = entry.name as usize;
        self.names
            .get(start..start + usize::from(entry.length))
            .unwrap_or_default()
    }

    fn symbol(&self, entry: &Entry) -> Symbol<'_> {
        let module = self
            .owners
            .get(usize::from(entry.owner))
            .map(String::as_str);
        Symbol {
            name: self.name(entry),
            address: entry.address,
            module: module.filter(|name| !name.is_empty()),
        }
    }

    /// Index of a module in `owners`, from kallsyms' `[name]`.
    fn owner(&mut self, bracketed: Option<&str>) -> u16 {
        let Some(name) = bracketed.map(|word| word.trim_matches(['[', ']'])) else {
            return 0;
        };
        // kallsyms lists a module's symbols together, so it is nearly always the last one.
        let index = self
            .owners
            .iter()
            .rposition(|owner| owner == name)
            .unwrap_or_else(|| {
                self.owners.push(name.to_owned());
                self.owners.len() - 1
            });
        u16::try_from(index).unwrap_or(0)
    }
}

/// Whether a suffix names a variant of a function that is entered by calls.
fn is_variant(mut suffix: &str) -> bool {
    while let Some(rest) = suffix.strip_prefix('.') {
        let (kind, rest) = rest.split_once('.').unwrap_or((rest, ""));
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        if !matches!(kind, "isra" | "constprop" | "part") || digits == 0 {
            return false;
        }
        suffix = &rest[digits..];
    }
    suffix.is_empty()
}

/// The source function's name: `foo.constprop.0.cold` is part of `foo`.
#[must_use]
pub fn strip_suffixes(name: &str) -> &str {
    // No C identifier has a dot.
    match name.find('.') {
        Some(0) | None => name,
        Some(dot) => &name[..dot],
    }
}

#[cfg(test)]
mod tests;
