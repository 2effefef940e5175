//! Programs of all kinds, each recorded on the real kernel: its own account of what it did is compared with the
//! super-trace.

mod lwps;
mod program;
mod ptraced;
mod runtimes;
mod short;
