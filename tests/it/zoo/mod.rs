//! Programs that the recorder is tried on: this test binary itself, one file a kind. Each gives its own account of what it
//! did.

pub(crate) mod daemons;
pub(crate) mod limited;
