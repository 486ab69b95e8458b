//! Our own traffic: zero-copy sends whose outcome the application knows exactly.
//!
//! A [`Spec`] says what is sent. [`run`] sends it over loopback to receivers of its
//! own (or to another host), reads every notification from the sockets' error queues
//! and counts in [`Counters`], which others may read meanwhile.

mod completions;
mod counters;
mod error;
mod limits;
mod outstanding;
mod pace;
mod payload;
mod receive;
mod retransmits;
mod run;
mod send;
mod sender;
mod socket;
mod spec;
pub mod syntax;
mod thread;
mod window;

pub use counters::{Counters, Totals};
pub use error::{GenerateError, SpecError};
pub use run::run;
pub use spec::{Engine, Family, MAX_DATAGRAM, MAX_SEGMENTS, Spec, Transport};
