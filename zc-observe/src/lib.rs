//! zc-observe shows when Linux zero-copy transmit falls back to copying: what was
//! copied, where, who sent it, why, and what to do.
//!
//! Data flows one way: the programs' maps ([`probes`]) become a [`snapshot`], which
//! the [`causes`] turn into a verdict.

pub mod attribute;
pub mod causes;
pub mod cli;
pub mod commands;
pub mod error;
pub mod generator;
pub mod kernel;
pub mod log;
pub mod metrics;
pub mod probes;
pub mod report;
pub mod snapshot;
pub mod web;
