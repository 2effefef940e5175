//! A program that becomes another one by `execve` in an LWP that is not the leader: the kernel ends the leader, and the
//! caller goes on under the leader's number.

use std::{env, os::unix::process::CommandExt, process::Command, thread};

use super::program;
use crate::kernel;

const NAME: &str = "executes";
const AGAIN: &str = "executes again";
const TEST: &str = "zoo::executes::becomes_another_program_in_a_second_lwp";
const EVENTS: u64 = 100;

fut::events! {
    /// Recorded so many times before `execve`.
    fn before_exec(number: u64);
    /// And after it.
    fn after_exec(number: u64);
}

#[test]
fn an_lwp_that_is_not_the_leader_executes_and_goes_on_under_the_number_of_its_process() {
    let Some(_alone) = kernel::as_root() else { return };
    let (sigmund, account) = program::recorded(TEST, NAME);
    let (old, pid) = (account.number("old"), account.number("pid"));
    assert_eq!(account.number("new_pid"), pid);
    let new = account.number("new");

    let count = |what: &str| sigmund.number("RUN.supertrace", &format!("SELECT count(*) FROM {what}"));
    assert_eq!(count(&format!("before_exec WHERE lwp = {old}")), EVENTS as i64);
    assert_eq!(count(&format!("after_exec WHERE lwp = {new}")), EVENTS as i64);
    // The old number has ended, once, and nothing is known of it after that.
    assert_eq!(count(&format!("lwp_states WHERE lwp = {old} AND state = 'exited'")), 1);
    assert_eq!(count(&format!("lwps WHERE lwp = {old} AND pid = {pid} AND dur_tick IS NOT NULL")), 1);
    let last = format!(
        "SELECT state FROM lwp_states WHERE lwp = {old} ORDER BY ts_tick DESC, dur_tick NULLS FIRST LIMIT 1"
    );
    assert_eq!(sigmund.sql("RUN.supertrace", &last), [["exited"]]);
    // It ends before the new program records anything, and after its own last event.
    let order = format!(
        "SELECT (SELECT max(ts_tick) FROM before_exec) < ts_tick AND ts_tick < (SELECT min(ts_tick) FROM after_exec)
         FROM lwp_states WHERE lwp = {old} AND state = 'exited'"
    );
    assert_eq!(sigmund.sql("RUN.supertrace", &order), [["true"]]);
}

/// The program.
#[test]
#[ignore = "a program for another test"]
fn becomes_another_program_in_a_second_lwp() {
    if program::is(AGAIN) {
        let _ = fut::init();
        (0..EVENTS).for_each(after_exec);
        println!("account new={} new_pid={}", program::lwp(), std::process::id());
        return;
    }
    if !program::is(NAME) {
        return;
    }
    let _ = fut::init();
    let executes = thread::spawn(|| {
        (0..EVENTS).for_each(before_exec);
        println!("account old={} pid={}", program::lwp(), std::process::id());
        let mut command = Command::new(env::current_exe().unwrap());
        command.args(env::args_os().skip(1));
        program::told(&mut command, AGAIN);
        panic!("execve: {}", command.exec());
    });
    executes.join().unwrap();
}
