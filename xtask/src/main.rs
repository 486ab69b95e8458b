//! `cargo xtask`: everything that is done to zc-observe.

fn main() {}
