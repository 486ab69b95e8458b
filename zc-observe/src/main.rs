//! The command line of zc-observe.

fn main() {}
