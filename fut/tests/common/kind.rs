//! The kind of runtime of a test. Most run with the pinned one, and again, in the binary `migrating`, with the other.

/// Whether this is the binary for migrating runtimes.
pub(crate) const MIGRATING: bool = matches!(env!("CARGO_CRATE_NAME").as_bytes(), b"migrating");

/// Options of a runtime of the kind of this binary.
pub(crate) fn builder() -> fut::RuntimeBuilder {
    let builder = fut::Runtime::builder();
    if !MIGRATING {
        return builder;
    }
    // SAFETY: the user threads of these tests keep nothing of an LWP across a call that can switch.
    unsafe { builder.migrating() }
}
