//! What the running kernel is: its types, symbols and constants, and what it permits.

pub mod btf;
pub mod capabilities;
pub mod globals;
pub mod host;
pub mod modules;
pub mod offsets;
pub mod refusal;
pub mod symbols;
