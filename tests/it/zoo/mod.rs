//! Programs of all kinds, each recorded on the real kernel: its own account of what it did is compared with the
//! super-trace.

pub(crate) mod daemons;
mod executes;
pub(crate) mod limited;
mod lwps;
mod namespaces;
mod plain;
mod program;
mod ptraced;
mod runtimes;
mod short;
mod stopped;
