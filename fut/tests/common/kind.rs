//! The kind of runtime of a test. A test binary tests the pinned one, and runs itself once more, with the other.

use std::{env, process::Command};

/// With this in its environment, a test binary tests migrating runtimes.
const MIGRATING: &str = "FUT_TEST_MIGRATING";

pub(crate) fn is_migrating() -> bool {
    env::var_os(MIGRATING).is_some()
}

/// Options of a runtime of the kind that is tested.
pub(crate) fn builder() -> fut::RuntimeBuilder {
    let builder = fut::Runtime::builder();
    if !is_migrating() {
        return builder;
    }
    // SAFETY: the user threads of these tests keep nothing of an LWP across a call that can switch.
    unsafe { builder.migrating() }
}

/// One test at a time: the tests of the pinned runtime go on meanwhile.
#[test]
fn all_tests_hold_in_a_migrating_runtime() {
    if is_migrating() {
        return;
    }
    let mut again = Command::new(env::current_exe().unwrap());
    let output = again.args(["--test-threads", "1"]).env(MIGRATING, "1").output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}\n{}", String::from_utf8_lossy(&output.stderr));
    assert!(said.contains(" passed; 0 failed"), "{said}");
}
