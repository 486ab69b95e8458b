//! What is tested in guests: each test, with each kind of probe, on each kernel.

/// Kernels, as `--kernel` takes them.
pub(crate) const KERNELS: &[&str] = &["6.1", "6.12", "7.3"];

/// Values of `ZC_OBSERVE_PROBES`.
pub(crate) const PROBES: &[&str] = &["fentry", "kprobe", "tracepoint"];

/// A test program of `zc-observe/tests` that runs in guests.
#[derive(Debug)]
pub(crate) struct GuestTest {
    /// Its name.
    pub(crate) name: &'static str,
    /// Modules that it needs.
    pub(crate) modules: &'static [&'static str],
}

/// The tests.
pub(crate) const TESTS: &[GuestTest] = &[GuestTest {
    name: "identities",
    modules: &["ifb", "tun", "veth"],
}];

/// Arguments for every test program: identities hold only while one test sends.
pub(crate) const ARGS: &[&str] = &["--test-threads=1", "--nocapture"];
