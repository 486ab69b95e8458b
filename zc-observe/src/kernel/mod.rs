//! What the running kernel is: its types, symbols and constants, and what it permits.

pub mod btf;
pub mod globals;
pub mod modules;
pub mod offsets;
pub mod symbols;
