//! Which kind of runtime a test is for. Most are for the pinned one, and once more, in the binary `migrating`, for the
//! other.

/// Whether this is the binary for migrating runtimes.
pub(crate) const MIGRATING: bool = matches!(env!("CARGO_CRATE_NAME").as_bytes(), b"migrating");

/// Choices for a runtime of the kind that this binary is for.
pub(crate) fn builder() -> fut::RuntimeBuilder {
    let builder = fut::Runtime::builder();
    if !MIGRATING {
        return builder;
    }
    // SAFETY: the user threads of these tests keep nothing of an LWP across a call that can switch.
    unsafe { builder.migrating() }
}
