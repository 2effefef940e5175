//! Tests that cannot run on this machine say so on the terminal. Print macros would not do: libtest captures what they
//! write, and shows it only of tests that fail. The tests of all crates include this file.

use std::io::Write;

/// Says that the calling test does not run because of this; on CI, where every test must run, it fails.
pub(crate) fn skipped(why: &str) {
    say("SKIPPED", why);
    assert_ne!(std::env::var("CI").as_deref(), Ok("true"), "on CI this test must run: {why}");
}

/// Says that the calling test has nothing to test in this build.
#[allow(dead_code, reason = "most tests are about every build")]
pub(crate) fn not_applicable(why: &str) {
    say("NOT APPLICABLE", why);
}

fn say(what: &str, why: &str) {
    let thread = std::thread::current();
    let test = thread.name().unwrap_or("a test");
    // One write, so that lines of two tests do not mix. If standard error is closed, nobody reads it.
    let _ = std::io::stderr().write_all(format!("{what}: {test}: {why}\n").as_bytes());
}
