//! Programs that the recorder is tried on, one kind a file. Each prints its own account of what it did, which is compared
//! with the super-trace.

mod executes;
mod namespaces;
mod plain;
mod program;
mod stopped;
