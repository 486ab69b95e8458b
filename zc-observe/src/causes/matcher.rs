//! From the stack of a deep copy to its cause.

use super::{Cause, Owners, Site, UNKNOWN, all};
use crate::kernel::host::Version;
use crate::snapshot::{Api, CopyFunction, DeepCopies, Frame};

/// Why payload was copied.
#[derive(Clone, Debug)]
pub struct Verdict {
    /// The cause.
    pub cause: &'static Cause,
    /// What the second caller tells beyond it, such as `bridge_flood` for a clone.
    pub why: Option<&'static str>,
    /// For the cause `unknown`: what kept us from knowing.
    pub why_unknown: Option<WhyUnknown>,
    /// Whether this owner is not copied there on any kernel that we know: the cause is what
    /// the stack shows, and the kernel is not one that we tested.
    pub unexpected_owner: bool,
}

/// What kept us from knowing a cause.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum WhyUnknown {
    /// No return address.
    #[error("the stack did not show the caller")]
    NoStack,
    /// An address, and no name.
    #[error("the caller's address has no symbol (kernel.kptr_restrict, CAP_SYSLOG)")]
    NoSymbol,
    /// It takes the caller's caller.
    #[error("{caller} does this for several reasons, and the stack did not show who called it")]
    NoSecondCaller {
        /// The caller, as the kernel names it.
        caller: String,
    },
    /// Not in the list.
    #[error("{caller} is not a caller that this version knows")]
    Unmatched {
        /// The caller as the kernel names it, with its module and its own caller.
        caller: String,
    },
}

/// Names the cause of deep copies from one call site.
#[must_use]
pub fn classify_copies(copies: &DeepCopies, kernel: Version) -> Verdict {
    classify(
        copies.function,
        copies.caller.as_ref(),
        copies.caller2.as_ref(),
        copies.api,
        kernel,
    )
}

/// Names the cause of a deep copy. A site that names the second caller goes before one that
/// does not; the kernel's version decides only between sites that are the same otherwise,
/// since distributions port changes back.
#[must_use]
pub fn classify(
    function: CopyFunction,
    caller: Option<&Frame>,
    caller2: Option<&Frame>,
    api: Api,
    kernel: Version,
) -> Verdict {
    let Some(caller) = caller else {
        return unknown(WhyUnknown::NoStack);
    };
    let Some(name) = caller.function.as_deref() else {
        return unknown(WhyUnknown::NoSymbol);
    };

    let here =
        || sites().filter(|(_, site)| site.function == function && site.caller.matches(caller));
    let best = here()
        .filter(|(_, site)| {
            site.caller2
                .is_none_or(|call| caller2.is_some_and(|frame| call.matches(frame)))
        })
        .max_by_key(|(_, site)| (site.caller2.is_some(), site.kernels.contains(kernel)));

    if let Some((cause, site)) = best {
        let why = site.why;
        return Verdict {
            cause,
            why,
            why_unknown: None,
            unexpected_owner: !may_copy(site, api),
        };
    }
    let second = caller2.and_then(|frame| frame.function.as_deref());
    if second.is_none() && here().next().is_some() {
        return unknown(WhyUnknown::NoSecondCaller {
            caller: name.to_owned(),
        });
    }
    let module = caller
        .module
        .as_ref()
        .map_or_else(String::new, |module| format!(" [{module}]"));
    let second = second.map_or_else(String::new, |second| format!(" called by {second}"));
    unknown(WhyUnknown::Unmatched {
        caller: format!("{name}{module}{second}"),
    })
}

fn sites() -> impl Iterator<Item = (&'static Cause, &'static Site)> {
    all().flat_map(|cause| cause.sites.iter().map(move |site| (cause, site)))
}

const fn may_copy(site: &Site, api: Api) -> bool {
    match site.owners {
        Owners::All => true,
        Owners::CannotWait => !matches!(api, Api::MsgZerocopy | Api::IoUring),
    }
}

const fn unknown(why: WhyUnknown) -> Verdict {
    Verdict {
        cause: &UNKNOWN,
        why: None,
        why_unknown: Some(why),
        unexpected_owner: false,
    }
}

#[cfg(test)]
mod tests;
