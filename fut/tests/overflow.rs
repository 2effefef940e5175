//! What happens to a program whose user thread runs off its stack, or faults otherwise. Each case is a process of its
//! own: this test, run once more.

use std::{
    env,
    os::unix::process::ExitStatusExt,
    process::{Command, Output},
};

use fut::{Builder, Runtime};

const CASE: &str = "FUT_TEST_OVERFLOW";

/// Uses a page of stack, and calls itself.
#[inline(never)]
fn deeper(level: u64) -> u64 {
    let mut page = std::hint::black_box([level; 512]);
    page[0] = if level == u64::MAX { 0 } else { deeper(level + 1) };
    std::hint::black_box(page).iter().fold(0, |sum, word| sum ^ word)
}

fn fault() -> u64 {
    // SAFETY: none: this is the fault that the test is about.
    unsafe { std::ptr::with_exposed_provenance::<u64>(8).read_volatile() }
}

/// Runs the test `name` of this program as a process that does `case`.
fn run(name: &str, case: &str) -> Output {
    let program = env::current_exe().unwrap();
    Command::new(program).args([name, "--exact", "--nocapture"]).env(CASE, case).output().unwrap()
}

fn in_a_user_thread(name: &'static str, body: fn() -> u64) {
    let runtime = Runtime::builder().lwps(1).build().unwrap();
    runtime.run(move || Builder::new().name(name).spawn(body).join().map_or(0, |n| n));
}

#[test]
fn an_overflow_says_which_thread() {
    if env::var_os(CASE).is_some() {
        return in_a_user_thread("digs deep", || deeper(0));
    }
    let output = run("an_overflow_says_which_thread", "overflow");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains(" \"digs deep\" has overflowed its stack"), "{said}");
    assert_eq!(output.status.signal(), Some(libc::SIGABRT));
}

#[test]
fn another_fault_stays_one() {
    if env::var_os(CASE).is_some() {
        return in_a_user_thread("reads nowhere", fault);
    }
    let output = run("another_fault_stays_one", "fault");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!said.contains("overflowed"), "{said}");
    assert_eq!(output.status.signal(), Some(libc::SIGSEGV));
}
