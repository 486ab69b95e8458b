use super::*;

/// Writes BTF.
struct Writer {
    types: Vec<u8>,
    strings: Vec<u8>,
    next: u32,
}

impl Writer {
    fn new() -> Self {
        Self {
            types: Vec::new(),
            strings: vec![0],
            next: 1,
        }
    }

    fn string(&mut self, text: &str) -> u32 {
        if text.is_empty() {
            return 0;
        }
        let at = self.strings.len();
        self.strings.extend_from_slice(text.as_bytes());
        self.strings.push(0);
        at.try_into().unwrap()
    }

    /// A type: its name, kind, flag, size or type, number of members and the words behind it.
    fn add(
        &mut self,
        name: &str,
        kind: u32,
        flag: bool,
        size_or_type: u32,
        vlen: u32,
        words: &[u32],
    ) -> u32 {
        let name = self.string(name);
        for word in [
            name,
            u32::from(flag) << 31 | kind << 24 | vlen,
            size_or_type,
        ]
        .iter()
        .chain(words)
        {
            self.types.extend_from_slice(&word.to_ne_bytes());
        }
        self.next += 1;
        self.next - 1
    }

    /// A struct or union of (name, type, bit offset, bit width) members.
    fn composite(
        &mut self,
        name: &str,
        kind: u32,
        size: u32,
        members: &[(&str, u32, u32, u32)],
    ) -> u32 {
        let flag = members.iter().any(|member| member.3 != 0);
        let words: Vec<u32> = members
            .iter()
            .flat_map(|&(name, ty, bits, width)| [self.string(name), ty, width << 24 | bits])
            .collect();
        self.add(
            name,
            kind,
            flag,
            size,
            members.len().try_into().unwrap(),
            &words,
        )
    }

    fn bytes(&self) -> Vec<u8> {
        let (types, strings): (u32, u32) = (
            self.types.len().try_into().unwrap(),
            self.strings.len().try_into().unwrap(),
        );
        let mut data = MAGIC.to_ne_bytes().to_vec();
        data.extend_from_slice(&[1, 0]);
        for word in [24, 0, types, types, strings] {
            data.extend_from_slice(&u32::to_ne_bytes(word));
        }
        data.extend_from_slice(&self.types);
        data.extend_from_slice(&self.strings);
        data
    }
}

/// Every kind of type once, and what the kernel's structs are made of: anonymous members
/// behind a qualifier, a typedef'd named member, bit fields, a second struct of one name.
fn sample() -> Writer {
    let mut w = Writer::new();
    let int = w.add("int", kind::INT, false, 4, 0, &[32]);
    let ptr = w.add("", 2, false, int, 0, &[]);
    let _array = w.add("", kind::ARRAY, false, 0, 0, &[int, int, 16]);
    let _fwd = w.add("net", 7, false, 0, 0, &[]);
    let _twin = w.composite("sk_buff", kind::STRUCT, 8, &[("other", int, 0, 0)]);
    let flags = w.composite(
        "",
        kind::STRUCT,
        4,
        &[("len", int, 0, 0), ("zerocopy", int, 17, 1)],
    );
    let qualified = w.add("", kind::CONST, false, flags, 0, &[]);
    let inner = w.composite(
        "",
        kind::UNION,
        8,
        &[("dev", ptr, 0, 0), ("", qualified, 0, 0)],
    );
    let common = w.composite("common", kind::STRUCT, 8, &[("family", int, 32, 0)]);
    let common_t = w.add("common_t", kind::TYPEDEF, false, common, 0, &[]);
    w.composite(
        "sk_buff",
        kind::STRUCT,
        32,
        &[
            ("next", ptr, 0, 0),
            ("", inner, 64, 0),
            ("common", common_t, 128, 0),
            ("self", ptr, 192, 0),
        ],
    );
    w.add("", kind::FUNC_PROTO, false, int, 2, &[0, ptr, 0, int]);
    let proto = w.next - 1;
    w.add("skb_copy_ubufs", kind::FUNC, false, proto, 1, &[]);
    w.add("a_variable", kind::VAR, false, int, 0, &[0]);
    w.add(".data", kind::DATASEC, false, 8, 1, &[int, 0, 4]);
    w.add("float", 16, false, 4, 0, &[]);
    w.add("tag", kind::DECL_TAG, false, int, 0, &[0]);
    w.add("user", kind::TYPE_TAG, false, int, 0, &[]);
    let (a, b) = (w.string("SOCK_DEAD"), w.string("SOCK_ZEROCOPY"));
    w.add("sock_flags", kind::ENUM, false, 4, 2, &[a, 0, b, 21]);
    let negative = w.string("BELOW");
    w.add("", kind::ENUM, true, 4, 1, &[negative, u32::MAX]);
    let wide = w.string("WIDE");
    w.add("", kind::ENUM64, false, 8, 1, &[wide, 1, 2]);
    w
}

#[test]
fn fields_are_found_through_anonymous_and_named_members() {
    let btf = KernelBtf::from_bytes(sample().bytes()).unwrap();
    assert_eq!(btf.offset("sk_buff", "next"), Some(0));
    assert_eq!(btf.offset("sk_buff", "dev"), Some(8));
    assert_eq!(btf.offset("sk_buff", "len"), Some(8));
    assert_eq!(btf.offset("sk_buff", "common"), Some(16));
    assert_eq!(btf.offset("sk_buff", "common.family"), Some(20));
    assert_eq!(btf.offset("sk_buff", "self"), Some(24));
}

#[test]
fn of_two_structs_of_one_name_the_one_with_the_field_counts() {
    let btf = KernelBtf::from_bytes(sample().bytes()).unwrap();
    assert_eq!(btf.offset("sk_buff", "other"), Some(0));
    assert_eq!(btf.offset("sk_buff", "dev"), Some(8));
}

#[test]
fn bit_fields_have_a_bit_offset_and_no_byte_offset() {
    let btf = KernelBtf::from_bytes(sample().bytes()).unwrap();
    assert_eq!(
        btf.field("sk_buff", "zerocopy"),
        Some(Field {
            bits: 64 + 17,
            width: 1
        })
    );
    assert_eq!(btf.bit_offset("sk_buff", "zerocopy"), Some(81));
    assert_eq!(btf.offset("sk_buff", "zerocopy"), None);
}

#[test]
fn what_is_not_there_is_none() {
    let btf = KernelBtf::from_bytes(sample().bytes()).unwrap();
    assert_eq!(btf.offset("sk_buff", "gone"), None);
    assert_eq!(
        btf.offset("sk_buff", "next.len"),
        None,
        "pointers are not followed"
    );
    assert_eq!(btf.offset("sk_buff", ""), None);
    assert_eq!(btf.offset("sk_buf", "dev"), None);
    assert_eq!(btf.offset("sk_buffer", "dev"), None);
    assert_eq!(btf.size("net"), None, "a forward declaration has no size");
    assert_eq!(btf.enumerator("sock_flags", "SOCK_ZERO"), None);
    assert_eq!(btf.function_args("sk_buff"), None);
}

#[test]
fn sizes_enumerators_and_functions() {
    let btf = KernelBtf::from_bytes(sample().bytes()).unwrap();
    assert_eq!(btf.size("common"), Some(8));
    assert_eq!(btf.enumerator("sock_flags", "SOCK_ZEROCOPY"), Some(21));
    assert_eq!(btf.enumerator("", "BELOW"), Some(u64::MAX));
    assert_eq!(btf.enumerator("", "WIDE"), Some(2 << 32 | 1));
    assert_eq!(btf.function_args("skb_copy_ubufs"), Some(2));
    assert!(btf.has_function("skb_copy_ubufs"));
    assert!(!btf.has_function("skb_copy_ubuf"));
}

#[test]
fn broken_data_is_refused_and_never_read_beyond() {
    let good = sample().bytes();
    let problem = |data: &[u8]| {
        KernelBtf::from_bytes(data.to_vec())
            .unwrap_err()
            .to_string()
    };
    assert!(problem(&[]).contains("no magic number"));
    assert!(problem(&good[..8]).contains("cut short"));
    let mut swapped = good.clone();
    swapped.swap(0, 1);
    assert!(problem(&swapped).contains("byte order"));
    let mut unknown = sample();
    unknown.add("later", 99, false, 0, 0, &[]);
    assert!(problem(&unknown.bytes()).contains("unknown kind"));
    for cut in 0..good.len() - sample().strings.len() {
        assert!(
            KernelBtf::from_bytes(good[..cut].to_vec()).is_err(),
            "cut at {cut}"
        );
    }
}

#[test]
fn a_struct_that_contains_itself_ends() {
    let mut w = Writer::new();
    w.composite("loop", kind::STRUCT, 8, &[("", 1, 0, 0)]);
    let btf = KernelBtf::from_bytes(w.bytes()).unwrap();
    assert_eq!(btf.offset("loop", "field"), None);
}

#[test]
fn this_kernel_has_what_everything_stands_on() {
    let btf = KernelBtf::load().expect("BTF of this kernel");
    assert_eq!(btf.function_args("skb_copy_ubufs"), Some(2));
    assert!(
        btf.size("sk_buff")
            .is_some_and(|size| (200..512).contains(&size))
    );
    assert!(btf.enumerator("sock_flags", "SOCK_ZEROCOPY").is_some());
}
