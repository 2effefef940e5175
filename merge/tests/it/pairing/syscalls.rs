//! System calls: from `sys_enter` to `sys_exit` on one LWP.

use super::rows;

fn syscalls(events: &str) -> Vec<String> {
    rows(events, "syscalls", "ts_tick dur_tick lwp thread number name args ret on_cpu_tick end_reason")
}

// CPU 0   |=70=|        10 ticks of the call
// CPU 1        .  |=70=|10 more
// call       [--sleeps---]
#[test]
fn a_call_continues_across_switches_and_migrations_and_on_cpu_time_excludes_sleep() {
    let found = syscalls(
        "KERN 100 0  0 sched_switch prev_state=0,next_pid=70
         KERN 110 70 0 sys_enter    id=0(read),args0=3,args1=4096,args2=64
         KERN 120 70 0 sched_switch prev_state=1,next_pid=0
         KERN 150 0  1 sched_wakeup pid=70,target_cpu=1
         KERN 160 0  1 sched_switch prev_state=0,next_pid=70
         KERN 170 70 1 sys_exit     id=0,ret=64",
    );
    assert_eq!(found, ["110 60 70 ? 0 read [3, 4096, 64] 64 20 returned"]);
}

#[test]
fn a_call_belongs_to_the_user_thread_that_was_mounted_at_its_entry() {
    let found = syscalls(
        "KERN 100 0  0 KERN_CONTEXT_SWITCH 70
         USER 105 70 0 USER_CONTEXT_SWITCH 5
         KERN 110 70 0 sys_enter    id=1(write),args0=1
         KERN 115 70 0 sys_exit     id=1,ret=0
         USER 120 70 0 USER_CONTEXT_SWITCH 0
         KERN 130 70 0 sys_enter    id=202(futex)
         KERN 140 70 0 sys_exit     id=202,ret=-11",
    );
    let expected = ["110 5 70 5 1 write [1] 0 5 returned", "130 10 70 ? 202 futex [] -11 10 returned"];
    assert_eq!(found, expected);
}

// read  [---|asleep|···   its exit is missing: the LWP slept in the call, and no later event shows it in the call
// write                [--]
#[test]
fn a_call_without_an_exit_is_known_up_to_the_last_switch_away_within_it() {
    let found = syscalls(
        "KERN 100 0  0 sched_switch prev_state=0,next_pid=70
         KERN 110 70 0 sys_enter    id=0(read),args0=3
         KERN 120 70 0 sched_switch prev_state=1,next_pid=0
         KERN 150 0  0 sched_wakeup pid=70,target_cpu=0
         KERN 160 0  0 sched_switch prev_state=0,next_pid=70
         KERN 170 70 0 sys_enter    id=1(write)
         KERN 180 70 0 sys_exit     id=1,ret=1",
    );
    assert_eq!(found, ["110 10 70 ? 0 read [3] ? ? unseen", "170 10 70 ? 1 write [] 1 10 returned"]);
}

#[test]
fn an_exit_of_another_call_closes_nothing_and_an_exit_without_an_entry_is_no_row() {
    let found = syscalls(
        "KERN 100 0  0 KERN_CONTEXT_SWITCH 70
         KERN 105 70 0 sys_exit     id=35,ret=0
         KERN 110 70 0 sys_enter    id=0(read)
         KERN 115 70 0 sys_exit     id=1,ret=5
         KERN 120 70 0 sys_exit     id=0,ret=3
         KERN 125 70 0 sys_exit     id=0,ret=4",
    );
    assert_eq!(found, ["110 10 70 ? 0 read [] 3 10 returned"]);
}

// rt_sigreturn restores the registers of the interrupted program, with −1 in place of the call's number.
#[test]
fn an_exit_with_number_minus_one_ends_the_open_call() {
    let found = syscalls(
        "KERN 100 0  0 KERN_CONTEXT_SWITCH 70
         KERN 110 70 0 sys_enter    id=15(rt_sigreturn)
         KERN 112 70 0 sys_exit     id=-1,ret=7",
    );
    assert_eq!(found, ["110 2 70 ? 15 rt_sigreturn [] 7 2 returned"]);
}

#[test]
fn one_call_reported_by_two_events_is_one_row() {
    let found = syscalls(
        "KERN 100 0  0 KERN_CONTEXT_SWITCH 70
         KERN 110 70 0 sys_enter      id=0(read),args0=3
         KERN 110 70 0 sys_enter_read __syscall_nr=0,fd=3
         KERN 118 70 0 sys_exit_read  __syscall_nr=0,ret=9
         KERN 118 70 0 sys_exit       id=0,ret=9",
    );
    assert_eq!(found, ["110 8 70 ? 0 read [3] 9 8 returned"]);
}

// perf writes some samples twice, at one tick.
#[test]
fn a_call_that_is_recorded_twice_at_one_tick_is_one_row() {
    let found = syscalls(
        "KERN 100 0  0 KERN_CONTEXT_SWITCH 70
         KERN 110 70 0 sys_enter id=3(close),args0=3
         KERN 110 70 0 sys_enter id=3(close),args0=3
         KERN 118 70 0 sys_exit  id=3,ret=0
         KERN 118 70 0 sys_exit  id=3,ret=0",
    );
    assert_eq!(found, ["110 8 70 ? 3 close [3] 0 8 returned"]);
}

// CPU 0   |=70=[exit--x   the last switch of the LWP ends the call in which it exits
#[test]
fn a_call_in_which_the_lwp_exits_ends_at_its_last_switch() {
    let found = syscalls(
        "KERN 100 0  0 sched_switch       prev_state=0,next_pid=70
         KERN 110 70 0 sys_enter          id=60(exit),args0=3
         KERN 115 70 0 sched_process_exit pid=70
         KERN 120 70 0 sched_switch       prev_state=16,next_pid=0
         KERN 130 0  1 sched_switch       prev_state=0,next_pid=80",
    );
    assert_eq!(found, ["110 10 70 ? 60 exit [3] ? 10 exit"]);
}

// CPU 0   |=70=[===asleep····   |
// CPU 1   |=71=======[==========|   a call that is open at the end of the trace ends there
#[test]
fn calls_that_are_open_at_the_end_of_the_trace_end_with_it() {
    let found = syscalls(
        "KERN 100 0  0 sched_switch prev_state=0,next_pid=70
         KERN 100 0  1 sched_switch prev_state=0,next_pid=71
         KERN 110 70 0 sys_enter    id=0(read)
         KERN 120 70 0 sched_switch prev_state=1,next_pid=0
         KERN 130 71 1 sys_enter    id=1(write)
         KERN 140 0  0 cpu_idle     _",
    );
    assert_eq!(found, ["110 30 70 ? 0 read [] ? 10 trace-end", "130 10 71 ? 1 write [] ? 10 trace-end"]);
}

// LWP 71 of process 70 calls execve: it becomes LWP 70 within the call.
#[test]
fn execve_by_an_lwp_that_is_not_the_leader_returns_as_the_leader() {
    let found = syscalls(
        "KERN 90  1  2 task_newtask       pid=70,comm=p,clone_flags=17
         KERN 91  1  2 sched_process_fork parent_pid=1,child_pid=70
         KERN 100 0  0 sched_switch       prev_state=0,next_pid=70
         KERN 110 70 0 task_newtask       pid=71,comm=p,clone_flags=65536
         KERN 111 70 0 sched_process_fork parent_pid=70,child_pid=71
         KERN 120 0  1 sched_switch       prev_state=0,next_pid=71
         KERN 140 71 1 sys_enter          id=59(execve),args0=16
         KERN 150 70 0 sched_switch       prev_state=16,next_pid=0
         KERN 180 70 1 sched_process_exec filename=p,pid=70,old_pid=71
         KERN 190 70 1 sys_exit           id=59,ret=0",
    );
    assert_eq!(found, ["140 50 70 ? 59 execve [16] 0 ? returned"]);
}
