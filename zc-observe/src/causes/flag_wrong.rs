//! The completion is wrong although nothing was copied, or says too little.

use super::{Cause, Class, Need, Severity};

pub(super) const CAUSES: &[&Cause] = &[&MERGED_NOTIFICATION, &URING_LINKED, &FAILED_SEND];

const fn cause(
    id: &'static str,
    title: &'static str,
    explanation: &'static str,
    fix: &'static str,
) -> Cause {
    let (needs, severity) = (&[Need::Completions], Severity::Critical);
    Cause {
        id,
        class: Class::FlagWrong,
        title,
        explanation,
        fix,
        severity,
        needs,
        sites: &[],
    }
}

static MERGED_NOTIFICATION: Cause = cause(
    "merged_notification",
    "notifications of different outcomes were merged",
    "The kernel merges the notifications of consecutive sends in the error queue without looking at their \
     outcome; the first one's stands for all.",
    "Read the error queue after every send if outcomes matter, or count with this observer.",
);

static URING_LINKED: Cause = cause(
    "uring_linked",
    "io_uring reports copies that did not happen",
    "Since 6.12 the notifications of sends that share a packet are linked, and only the first learns that its \
     pages were used; the others carry IORING_NOTIF_USAGE_ZC_COPIED.",
    "Do not act on that bit for small sends with MSG_MORE, or count with this observer.",
);

static FAILED_SEND: Cause = cause(
    "failed_send",
    "a send that failed was reported",
    "A send can fail after its buffer got an id; what the completion then says is about nothing sent.",
    "Ignore completions of sends that returned an error.",
);
