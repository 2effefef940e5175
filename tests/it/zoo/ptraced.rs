//! A program under a debugger, which stops it at each of its system calls.

use std::{io, os::unix::process::CommandExt, process::Command};

use super::program::{self, TRACE, command_line, is_whole, recorded};
use crate::kernel;

const NAME: &str = "ptraced";
const EVENTS: u64 = 200;

fut::events! {
    fn zoo_ptraced(number: u64);
}

#[test]
#[ignore = "a program for another test"]
fn is_stopped_at_each_system_call() {
    if !program::is(NAME) {
        return;
    }
    let _ = fut::init();
    for number in 0..EVENTS {
        zoo_ptraced(number);
        // SAFETY: `getppid` takes nothing, and cannot fail.
        unsafe { libc::getppid() };
    }
    println!("account events={EVENTS}");
}

/// The debugger: it runs the program above, and lets it go on at each stop.
#[test]
#[ignore = "a program for another test"]
fn stops_another_program() {
    if !program::is(NAME) {
        return;
    }
    let line = command_line("zoo::ptraced::is_stopped_at_each_system_call");
    let mut command = Command::new(&line[0]);
    command.args(&line[1..]);
    // SAFETY: `ptrace` is a system call, which the child may make before it executes another program.
    unsafe { command.pre_exec(|| trace(libc::PTRACE_TRACEME, 0, 0)) };
    let child = command.spawn().unwrap().id() as libc::pid_t;
    let mut stops = 0_u64;
    loop {
        let mut status = 0;
        // SAFETY: `status` is written by the call.
        let lwp = unsafe { libc::waitpid(-1, &mut status, libc::__WALL) };
        assert!(lwp > 0, "{}", io::Error::last_os_error());
        if libc::WIFEXITED(status) {
            if lwp == child {
                assert_eq!(libc::WEXITSTATUS(status), 0);
                break;
            }
            continue;
        }
        assert!(libc::WIFSTOPPED(status), "status {status:#x}");
        if stops == 0 {
            // The harness runs the test in a thread of its own.
            trace(libc::PTRACE_SETOPTIONS, child, libc::PTRACE_O_TRACECLONE).unwrap();
        }
        stops += 1;
        // Traps are ours, and so is the first stop of a new LWP; what else stops it is a signal that it gets.
        let signal = libc::WSTOPSIG(status);
        let deliver = if [libc::SIGTRAP, libc::SIGSTOP].contains(&signal) { 0 } else { signal };
        trace(libc::PTRACE_SYSCALL, lwp, deliver).unwrap();
    }
    assert!(stops > 2 * EVENTS, "{stops} stops");
}

fn trace(request: libc::c_uint, pid: libc::pid_t, data: libc::c_int) -> io::Result<()> {
    // SAFETY: none of these requests reads or writes memory of this process.
    match unsafe { libc::ptrace(request, pid, 0, libc::c_long::from(data)) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

#[test]
fn a_program_under_a_debugger_is_recorded_like_any_other() {
    let Some(_alone) = kernel::as_root() else { return };
    let (sigmund, account) = recorded("zoo::ptraced::stops_another_program", NAME);
    assert_eq!(account.number("events"), EVENTS as i64);
    assert_eq!(sigmund.number(TRACE, "SELECT count(*) FROM zoo_ptraced"), EVENTS as i64);
    // Each of its two stops a system call has taken it off its CPU.
    let stopped = "SELECT count(*) FROM lwp_states WHERE state = 'stopped'
        AND lwp IN (SELECT DISTINCT lwp FROM zoo_ptraced)";
    assert!(sigmund.number(TRACE, stopped) > EVENTS as i64);
    is_whole(&sigmund);
}
