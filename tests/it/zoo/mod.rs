//! Programs of all kinds, each recorded on the real kernel: its own account of what it did is compared with the
//! super-trace.

pub(crate) mod daemons;
pub(crate) mod limited;
mod lwps;
mod program;
mod ptraced;
mod runtimes;
mod short;
