//! Call sites: which function called the copy.

use crate::kernel::host::Version;
use crate::kernel::symbols::strip_suffixes;
use crate::snapshot::{CopyFunction, Frame};

/// A call to a copying function that proves a cause.
#[derive(Debug)]
pub struct Site {
    /// What copied.
    pub function: CopyFunction,
    /// Who called it.
    pub caller: Call,
    /// Who called the caller, where that is what tells.
    pub caller2: Option<Call>,
    /// What the second caller tells beyond the cause.
    pub why: Option<&'static str>,
    /// Kernels that have it.
    pub kernels: Kernels,
    /// Whose buffers are copied there.
    pub owners: Owners,
}

/// A function as it appears on a stack.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Call {
    /// The source function, without suffixes.
    pub function: &'static str,
    /// Its module, if it can be one; it may be built into the kernel all the same.
    pub module: Option<&'static str>,
}

impl Call {
    /// Whether a frame is in this function.
    #[must_use]
    pub fn matches(&self, frame: &Frame) -> bool {
        let same = frame
            .function
            .as_deref()
            .is_some_and(|name| strip_suffixes(name) == self.function);
        same && (frame.module.is_none() || frame.module.as_deref() == self.module)
    }
}

/// A range of kernel versions, both ends included.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Kernels {
    /// The first; `None` if older than all that we support.
    pub since: Option<Version>,
    /// The last; `None` if it is still there.
    pub until: Option<Version>,
}

impl Kernels {
    /// Whether a version is in the range.
    #[must_use]
    pub fn contains(&self, version: Version) -> bool {
        self.since.is_none_or(|since| since <= version)
            && self.until.is_none_or(|until| version <= until)
    }
}

/// Whose buffers a site copies.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Owners {
    /// Everybody's (`skb_orphan_frags_rx`, or no orphaning at all).
    All,
    /// Those that cannot wait (`skb_orphan_frags`): vhost, `PACKET_TX_RING`, xen-netback;
    /// not `MSG_ZEROCOPY` and `io_uring`.
    CannotWait,
}

/// All kernels that we support.
pub(super) const EVERY: Kernels = Kernels {
    since: None,
    until: None,
};

/// All kernels since a version.
pub(super) const fn since(major: u16, minor: u16) -> Kernels {
    Kernels {
        since: Some(Version(major, minor)),
        until: None,
    }
}

/// All kernels until a version.
pub(super) const fn until(major: u16, minor: u16) -> Kernels {
    Kernels {
        since: None,
        until: Some(Version(major, minor)),
    }
}

/// A function of the kernel itself.
pub(super) const fn core(function: &'static str) -> Call {
    Call {
        function,
        module: None,
    }
}

/// A function that can be in a module.
pub(super) const fn module(function: &'static str, module: &'static str) -> Call {
    Call {
        function,
        module: Some(module),
    }
}

impl Site {
    /// A call to `skb_copy_ubufs`.
    pub(super) const fn orphan(caller: Call, owners: Owners) -> Self {
        let function = CopyFunction::SkbCopyUbufs;
        Self {
            function,
            caller,
            caller2: None,
            why: None,
            kernels: EVERY,
            owners,
        }
    }

    /// A call to `__pskb_pull_tail`, which no owner is spared.
    pub(super) const fn pull(caller: Call) -> Self {
        let function = CopyFunction::PskbPullTail;
        Self {
            function,
            caller,
            caller2: None,
            why: None,
            kernels: EVERY,
            owners: Owners::All,
        }
    }

    /// The same in some kernels only.
    pub(super) const fn on(self, kernels: Kernels) -> Self {
        Self { kernels, ..self }
    }

    /// The same from a certain second caller.
    pub(super) const fn via(self, caller2: Call) -> Self {
        Self {
            caller2: Some(caller2),
            ..self
        }
    }

    /// The same with what it tells beyond the cause.
    pub(super) const fn because(self, why: &'static str) -> Self {
        Self {
            why: Some(why),
            ..self
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(function: &str, module: Option<&str>) -> Frame {
        Frame {
            address: 1,
            function: Some(function.into()),
            offset: 0,
            module: module.map(str::to_owned),
        }
    }

    #[test]
    fn a_module_function_must_be_in_its_module_or_built_in() {
        let tun = module("tun_net_xmit", "tun");
        assert!(tun.matches(&frame("tun_net_xmit", Some("tun"))));
        assert!(tun.matches(&frame("tun_net_xmit", None)));
        assert!(!tun.matches(&frame("tun_net_xmit", Some("other"))));
        assert!(!core("skb_clone").matches(&frame("skb_clone", Some("other"))));
        assert!(core("skb_clone").matches(&frame("skb_clone.constprop.0", None)));
        assert!(!core("skb_clone").matches(&frame("skb_clone_sk", None)));
    }

    #[test]
    fn ranges_include_both_ends() {
        assert!(until(6, 16).contains(Version(6, 16)) && !until(6, 16).contains(Version(6, 17)));
        assert!(since(6, 17).contains(Version(6, 17)) && !since(6, 17).contains(Version(6, 16)));
        assert!(EVERY.contains(Version(5, 10)));
    }
}
