//! The running kernel's BTF: where a field lies, what an enumerator is worth, how
//! many arguments a function takes.
//!
//! Only the few types that are asked about are looked at: a kernel has more than a
//! hundred thousand, and reading them all into a tree takes longer than everything
//! else that the daemon does before it is ready.

mod layout;

use layout::{ENTRY, Type, kind, u32_at};

/// Where the kernel shows its BTF.
pub const VMLINUX: &str = "/sys/kernel/btf/vmlinux";

/// Why there is no BTF.
#[derive(Debug, thiserror::Error)]
pub enum BtfError {
    /// The kernel shows none.
    #[error(
        "{VMLINUX}: {error}: this kernel was built without CONFIG_DEBUG_INFO_BTF, or its sysfs is \
         not mounted here; field offsets are unknown without it, so no probe can be loaded"
    )]
    Read {
        /// What the kernel said.
        error: std::io::Error,
    },
    /// The bytes are not BTF as we know it.
    #[error("BTF of {length} bytes: {problem} at byte {at}; field offsets are unknown without it")]
    Malformed {
        /// Size of the data.
        length: usize,
        /// What is wrong.
        problem: &'static str,
        /// Where.
        at: usize,
    },
}

const MAGIC: u16 = 0xeb9f;
/// How deep typedefs and anonymous members may nest before the data is taken for broken.
const MAX_DEPTH: u32 = 32;

/// A kernel's types.
#[derive(Clone, Debug)]
pub struct KernelBtf {
    data: Vec<u8>,
    /// First byte of the string section.
    strings: usize,
    /// Position of each type; type id 1 comes first.
    types: Vec<u32>,
    /// Positions of the structs and unions that have a name.
    structs: Vec<u32>,
    /// Positions of the enums.
    enums: Vec<u32>,
    /// Positions of the functions.
    functions: Vec<u32>,
}

/// A member of a struct, seen from the start of the struct that was asked about.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Field {
    /// Offset in bits.
    pub bits: u32,
    /// Width in bits if it is a bit field, else 0.
    pub width: u32,
}

impl KernelBtf {
    /// Reads the running kernel's BTF.
    ///
    /// # Errors
    /// [`BtfError`] if the kernel has none or it cannot be understood.
    pub fn load() -> Result<Self, BtfError> {
        let data = std::fs::read(VMLINUX).map_err(|error| BtfError::Read { error })?;
        Self::from_bytes(data)
    }

    /// Reads BTF in this machine's byte order.
    ///
    /// # Errors
    /// [`BtfError::Malformed`] if it cannot be understood.
    pub fn from_bytes(data: Vec<u8>) -> Result<Self, BtfError> {
        let length = data.len();
        let bad = |problem, at| BtfError::Malformed {
            length,
            problem,
            at,
        };
        if data.get(..2) != Some(&MAGIC.to_ne_bytes()) {
            return Err(bad("no magic number of this byte order", 0));
        }
        let word = |at| {
            u32_at(&data, at)
                .map(|word| word as usize)
                .ok_or_else(|| bad("cut short", at))
        };
        let (header, type_off, type_len, str_off) = (word(4)?, word(8)?, word(12)?, word(16)?);
        let (mut at, end, strings) = (
            header + type_off,
            header + type_off + type_len,
            header + str_off,
        );
        if end > length || strings > length {
            return Err(bad("a section ends behind the data", 8));
        }
        let mut btf = Self {
            data,
            strings,
            types: Vec::new(),
            structs: Vec::new(),
            enums: Vec::new(),
            functions: Vec::new(),
        };
        while at < end {
            let Some(ty) = btf.type_at(at) else {
                return Err(bad("a type is cut short", at));
            };
            let position = u32::try_from(at).map_err(|_| bad("more than 4 GiB of types", at))?;
            btf.types.push(position);
            match ty.kind {
                kind::STRUCT | kind::UNION if ty.name != 0 => btf.structs.push(position),
                kind::ENUM | kind::ENUM64 => btf.enums.push(position),
                kind::FUNC => btf.functions.push(position),
                _ => {}
            }
            at += ENTRY
                + ty.trailer()
                    .ok_or_else(|| bad("a type of an unknown kind", at))?;
        }
        if at != end {
            return Err(bad("the last type is cut short", end));
        }
        Ok(btf)
    }

    /// Offset in bytes of a field, or `None` if this kernel does not have it or it does not
    /// start at a byte. The path goes through named members, separated by dots, and through
    /// anonymous structs and unions by itself: `("sk_buff", "dev")`, `("net", "ns.inum")`.
    #[must_use]
    pub fn offset(&self, strukt: &str, path: &str) -> Option<u32> {
        let field = self.field(strukt, path)?;
        field.bits.is_multiple_of(8).then_some(field.bits / 8)
    }

    /// Offset in bits of a field.
    #[must_use]
    pub fn bit_offset(&self, strukt: &str, path: &str) -> Option<u32> {
        Some(self.field(strukt, path)?.bits)
    }

    /// Where a field lies. Of several types of the same name, the first that has it counts.
    #[must_use]
    pub fn field(&self, strukt: &str, path: &str) -> Option<Field> {
        self.named(&self.structs, strukt)
            .find_map(|ty| self.walk(ty, path))
    }

    /// Size in bytes of a struct or union.
    #[must_use]
    pub fn size(&self, strukt: &str) -> Option<u32> {
        self.named(&self.structs, strukt)
            .map(|ty| ty.size_or_type)
            .next()
    }

    /// Value of an enumerator; the enum's name is "" where it has none.
    #[must_use]
    pub fn enumerator(&self, enumeration: &str, name: &str) -> Option<u64> {
        self.named(&self.enums, enumeration)
            .find_map(|ty| self.value(ty, name))
    }

    /// How many arguments a function takes.
    #[must_use]
    pub fn function_args(&self, name: &str) -> Option<usize> {
        let function = self.named(&self.functions, name).next()?;
        let prototype = self.type_by_id(function.size_or_type)?;
        (prototype.kind == kind::FUNC_PROTO).then_some(prototype.members)
    }

    /// Whether the kernel's BTF has the function, as fentry needs.
    #[must_use]
    pub fn has_function(&self, name: &str) -> bool {
        self.named(&self.functions, name).next().is_some()
    }

    fn named<'a>(&'a self, positions: &'a [u32], name: &'a str) -> impl Iterator<Item = Type> + 'a {
        positions
            .iter()
            .map(|&at| at as usize)
            .filter(|&at| self.is_named(at, name))
            .filter_map(|at| self.type_at(at))
    }

    fn is_named(&self, at: usize, name: &str) -> bool {
        let Some(start) = u32_at(&self.data, at).map(|name| self.strings + name as usize) else {
            return false;
        };
        let end = start + name.len();
        self.data.get(end) == Some(&0) && self.data.get(start..end) == Some(name.as_bytes())
    }

    fn walk(&self, ty: Type, path: &str) -> Option<Field> {
        let (name, rest) = path
            .split_once('.')
            .map_or((path, None), |(name, rest)| (name, Some(rest)));
        let (field, member) = self.member(ty, name, MAX_DEPTH)?;
        let Some(rest) = rest else { return Some(field) };
        let inner = self.walk(self.composite(member)?, rest)?;
        Some(Field {
            bits: field.bits + inner.bits,
            width: inner.width,
        })
    }

    /// A member by its name, and its type.
    fn member(&self, ty: Type, name: &str, depth: u32) -> Option<(Field, u32)> {
        let depth = depth.checked_sub(1)?;
        (0..ty.members).find_map(|index| {
            let at = ty.at + ENTRY * (index + 1);
            let (id, raw) = (u32_at(&self.data, at + 4)?, u32_at(&self.data, at + 8)?);
            let here = if ty.flag {
                Field {
                    bits: raw & 0xff_ffff,
                    width: raw >> 24,
                }
            } else {
                Field {
                    bits: raw,
                    width: 0,
                }
            };
            if u32_at(&self.data, at)? == 0 {
                let (inner, id) = self.member(self.composite(id)?, name, depth)?;
                Some((
                    Field {
                        bits: here.bits + inner.bits,
                        width: inner.width,
                    },
                    id,
                ))
            } else {
                self.is_named(at, name).then_some((here, id))
            }
        })
    }

    fn value(&self, ty: Type, name: &str) -> Option<u64> {
        let (size, wide) = if ty.kind == kind::ENUM64 {
            (12, true)
        } else {
            (8, false)
        };
        (0..ty.members)
            .map(|index| ty.at + ENTRY + size * index)
            .find(|&at| self.is_named(at, name))
            .and_then(|at| {
                let low = u32_at(&self.data, at + 4)?;
                Some(if wide {
                    u64::from(low) | u64::from(u32_at(&self.data, at + 8)?) << 32
                } else if ty.flag {
                    i64::from(low.cast_signed()).cast_unsigned()
                } else {
                    u64::from(low)
                })
            })
    }

    /// The struct or union behind typedefs and qualifiers.
    fn composite(&self, mut id: u32) -> Option<Type> {
        for _ in 0..MAX_DEPTH {
            let ty = self.type_by_id(id)?;
            match ty.kind {
                kind::STRUCT | kind::UNION => return Some(ty),
                kind::TYPEDEF | kind::VOLATILE | kind::CONST | kind::RESTRICT | kind::TYPE_TAG => {
                    id = ty.size_or_type
                }
                _ => return None,
            }
        }
        None
    }

    fn type_by_id(&self, id: u32) -> Option<Type> {
        let index = (id as usize).checked_sub(1)?;
        self.type_at(*self.types.get(index)? as usize)
    }

    fn type_at(&self, at: usize) -> Option<Type> {
        Type::read(&self.data, at)
    }
}

#[cfg(test)]
mod tests;
