//! The layout of BTF: heads of types and what follows them.

/// Kinds of types, as `enum` in the kernel's `uapi/linux/btf.h` numbers them.
pub(super) mod kind {
    pub(in crate::kernel) const INT: u32 = 1;
    pub(in crate::kernel) const ARRAY: u32 = 3;
    pub(in crate::kernel) const STRUCT: u32 = 4;
    pub(in crate::kernel) const UNION: u32 = 5;
    pub(in crate::kernel) const ENUM: u32 = 6;
    pub(in crate::kernel) const TYPEDEF: u32 = 8;
    pub(in crate::kernel) const VOLATILE: u32 = 9;
    pub(in crate::kernel) const CONST: u32 = 10;
    pub(in crate::kernel) const RESTRICT: u32 = 11;
    pub(in crate::kernel) const FUNC: u32 = 12;
    pub(in crate::kernel) const FUNC_PROTO: u32 = 13;
    pub(in crate::kernel) const VAR: u32 = 14;
    pub(in crate::kernel) const DATASEC: u32 = 15;
    pub(in crate::kernel) const DECL_TAG: u32 = 17;
    pub(in crate::kernel) const TYPE_TAG: u32 = 18;
    pub(in crate::kernel) const ENUM64: u32 = 19;
}

/// Size of `struct btf_type` and of `struct btf_member`.
pub(super) const ENTRY: usize = 12;

/// The head of a type.
#[derive(Clone, Copy)]
pub(super) struct Type {
    /// Its position.
    pub(super) at: usize,
    /// Where its name lies in the strings; 0 if it has none.
    pub(super) name: u32,
    /// One of [`kind`].
    pub(super) kind: u32,
    /// Number of members, enumerators or arguments.
    pub(super) members: usize,
    /// What it says depends on the kind.
    pub(super) flag: bool,
    /// Size, or the type that this one refers to.
    pub(super) size_or_type: u32,
}

impl Type {
    /// Reads the head at a position.
    pub(super) fn read(data: &[u8], at: usize) -> Option<Self> {
        let info = u32_at(data, at + 4)?;
        Some(Self {
            at,
            name: u32_at(data, at)?,
            // Older kernels leave bits 16 to 23, 29 and 30 at zero; newer ones give them to
            // the number of members and to the kind.
            kind: info >> 24 & 0x7f,
            members: (info & 0xff_ffff) as usize,
            flag: info >> 31 == 1,
            size_or_type: u32_at(data, at + 8)?,
        })
    }

    /// Bytes that follow the head, or `None` for a kind that we do not know.
    pub(super) fn trailer(&self) -> Option<usize> {
        match self.kind {
            kind::INT | kind::VAR | kind::DECL_TAG => Some(4),
            kind::ARRAY => Some(12),
            kind::STRUCT | kind::UNION | kind::DATASEC | kind::ENUM64 => Some(12 * self.members),
            kind::ENUM | kind::FUNC_PROTO => Some(8 * self.members),
            0 | 20.. => None,
            _ => Some(0),
        }
    }
}

/// A word of this machine's byte order.
pub(super) fn u32_at(data: &[u8], at: usize) -> Option<u32> {
    let bytes = data.get(at..at.checked_add(4)?)?;
    Some(u32::from_ne_bytes(bytes.try_into().ok()?))
}
