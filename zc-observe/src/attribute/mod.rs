//! Whose traffic it was and on what: devices, processes, control groups.

pub mod cgroups;
pub mod devices;
pub mod senders;
pub mod sockets;
