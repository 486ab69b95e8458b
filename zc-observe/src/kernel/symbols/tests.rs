use super::*;

const KALLSYMS: &str = "\
0000000000000000 A fixed_percpu_data
ffffffff81000000 T _stext
ffffffff81000000 T _text
ffffffff81001000 t foo.part.0
ffffffff81001100 t foo.constprop.0.isra.1
ffffffff81001200 t foo.cold
ffffffff81001300 t foo.constprop.0.cold
ffffffff81001400 T foo
ffffffff81001500 T __pfx_foobar
ffffffff81001510 T foobar
ffffffff81001600 W weak
ffffffff81001700 t start_xmit
ffffffff81002000 T last
ffffffff81003000 R _etext
ffffffff81004000 D a_variable
ffffffffc0001000 t tun_net_xmit	[tun]
ffffffffc0001500 t start_xmit	[virtio_net]
";

fn symbols() -> Symbols {
    let modules = modules::parse(
        "tun 4096 0 - Live 0xffffffffc0001000\nvirtio_net 2048 0 - Live 0xffffffffc0001500\n",
    );
    Symbols::parse(KALLSYMS, modules)
}

fn resolved(address: u64) -> Option<(String, u64, Option<String>)> {
    let symbols = symbols();
    let found = symbols.resolve(address)?;
    Some((
        found.function.to_owned(),
        found.offset,
        found.module.map(str::to_owned),
    ))
}

#[test]
fn candidates_are_the_function_and_then_its_variants() {
    let symbols = symbols();
    let names: Vec<_> = symbols
        .candidates("foo")
        .iter()
        .map(|symbol| symbol.name)
        .collect();
    assert_eq!(names, ["foo", "foo.constprop.0.isra.1", "foo.part.0"]);
    let both: Vec<_> = symbols
        .candidates("start_xmit")
        .iter()
        .map(|symbol| symbol.module)
        .collect();
    assert_eq!(both, [None, Some("virtio_net")]);
    assert_eq!(symbols.candidates("fo"), []);
    assert_eq!(symbols.candidates("a_variable"), [], "not a function");
}

#[test]
fn an_address_is_given_only_if_it_is_the_only_one() {
    let symbols = symbols();
    assert_eq!(symbols.address("foo"), Some(0xffff_ffff_8100_1400));
    assert_eq!(symbols.address("weak"), Some(0xffff_ffff_8100_1600));
    assert_eq!(symbols.address("start_xmit"), None);
    assert_eq!(symbols.address("gone"), None);
}

#[test]
fn a_return_address_belongs_to_the_function_that_called() {
    assert_eq!(
        resolved(0xffff_ffff_8100_1410),
        Some(("foo".into(), 0x10, None))
    );
    // A call as the last instruction returns to the first byte behind the function.
    assert_eq!(
        resolved(0xffff_ffff_8100_1400),
        Some(("foo.constprop.0.cold".into(), 0x100, None))
    );
    assert_eq!(
        resolved(0xffff_ffff_c000_1475),
        Some(("tun_net_xmit".into(), 0x475, Some("tun".into())))
    );
    assert_eq!(
        resolved(0xffff_ffff_8100_0001).unwrap().0,
        "_stext",
        "the first of two names"
    );
}

#[test]
fn an_address_outside_of_all_code_has_no_name() {
    assert_eq!(resolved(0), None);
    assert_eq!(resolved(0xffff_ffff_80ff_ffff), None);
    assert_eq!(resolved(0xffff_ffff_8100_2fff).unwrap().0, "last");
    assert_eq!(
        resolved(0xffff_ffff_8100_3001),
        None,
        "behind the kernel's text"
    );
    assert_eq!(
        resolved(0xffff_ffff_c000_1d01),
        None,
        "behind the last module"
    );
}

#[test]
fn hidden_addresses_leave_the_names() {
    let zeros: String = KALLSYMS
        .lines()
        .map(|line| format!("0000000000000000{}\n", &line[16..]))
        .collect();
    let symbols = Symbols::parse(&zeros, Vec::new());
    assert!(symbols.hidden());
    assert_eq!(symbols.address("foo"), None);
    assert_eq!(symbols.candidates("weak").len(), 1);
    assert_eq!(symbols.resolve(0xffff_ffff_8100_1410), None);
    assert!(Symbols::parse("", Vec::new()).hidden());
    assert!(!self::symbols().hidden());
}

#[test]
fn suffixes_are_stripped_down_to_the_source_name() {
    assert_eq!(strip_suffixes("foo"), "foo");
    assert_eq!(strip_suffixes("foo.constprop.0.cold"), "foo");
    assert_eq!(
        strip_suffixes("__netif_receive_skb_core.constprop.0"),
        "__netif_receive_skb_core"
    );
    assert!(is_variant(".part.0"));
    assert!(is_variant(".part.0.constprop.12"));
    assert!(!is_variant(".part"));
    assert!(!is_variant(".part.0.cold"));
    assert!(!is_variant("bar"));
}

#[test]
fn this_kernel_has_the_copying_function() {
    let mut symbols = Symbols::load().expect("symbols of this kernel");
    let copy = symbols.candidates("skb_copy_ubufs");
    assert_eq!(copy.len(), 1);
    assert_eq!(copy[0].module, None);
    if !symbols.hidden() {
        let inside = symbols
            .resolve(copy[0].address + 5)
            .expect("an address in it");
        assert_eq!((inside.function, inside.offset), ("skb_copy_ubufs", 5));
    }
    assert!(
        !symbols.refresh().expect("a second look"),
        "no module came or went"
    );
}
