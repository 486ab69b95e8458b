//! The programs, and what they share.

mod complete;
mod copy;
mod count;
mod device;
mod follow;
mod kernel;
mod maps;
mod queue;
mod send;
mod sender;
mod skb;
mod socket;
mod stack;
mod uring;
