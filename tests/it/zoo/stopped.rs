//! A program that is stopped by a signal for a while: its user thread is stopped too, and not in the kernel.

use std::{
    process::Command,
    time::{Duration, Instant},
};

use super::program;
use crate::kernel;

const NAME: &str = "stopped";
const TEST: &str = "zoo::stopped::stops_itself";
const STOPPED_MS: i64 = 100;

#[test]
fn a_user_thread_is_stopped_as_long_as_its_program() {
    let Some(_alone) = kernel::as_root() else { return };
    let (sigmund, account) = program::recorded(TEST, NAME);
    let (lwp, longest) = (account.number("lwp"), account.number("longest_ns"));
    let sum = |table: &str, state: &str| {
        let query =
            format!("SELECT coalesce(sum(dur_ns), 0) FROM {table} WHERE lwp = {lwp} AND state = '{state}'");
        sigmund.number("RUN.supertrace", &query)
    };
    let stopped = sum("thread_states", "stopped");
    let told = format!("stopped for {stopped} ns, at most {longest} by the program");
    assert!(stopped >= STOPPED_MS * 1_000_000 && stopped <= longest, "{told}");
    assert_eq!(stopped, sum("lwp_states", "stopped"), "{told}");
    let in_kernel = sum("thread_states", "in-kernel");
    assert!(in_kernel + stopped <= longest, "in the kernel for {in_kernel} ns, {told}");
}

/// The program.
#[test]
#[ignore = "a program for another test"]
fn stops_itself() {
    if !program::is(NAME) {
        return;
    }
    // Somebody else has to make it go on: as soon as it is stopped, and then some time later.
    let goes_on = format!(
        "until grep -q '^State:.T' /proc/{pid}/status; do sleep 0.002; done; sleep 0.{STOPPED_MS}; kill -CONT {pid}",
        pid = std::process::id()
    );
    let mut other = Command::new("sh").args(["-c", &goes_on]).spawn().unwrap();
    let runtime = fut::Runtime::builder().lwps(1).build().unwrap();
    let (lwp, stopped): (i64, Duration) = runtime.run(|| {
        let start = Instant::now();
        // SAFETY: takes a number. To this LWP, so that it is stopped when the call returns.
        assert_eq!(unsafe { libc::raise(libc::SIGSTOP) }, 0);
        (program::lwp(), start.elapsed())
    });
    println!("account lwp={lwp} longest_ns={}", stopped.as_nanos());
    other.wait().unwrap();
}
