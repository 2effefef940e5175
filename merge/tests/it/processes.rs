//! Kernel events about processes: the process of an LWP, and its new number after `exec`. Also the state of a user
//! thread whose LWP is stopped.

use crate::supertrace::Merged;

// LWP 71 of process 70 calls execve: the leader, 70, ends, and 71 continues as 70. A wakeup with the new
// number is recorded before the exec event.
//
// CPU 0   |=70=|x
// CPU 1   |==71==|==70==|idle
const EXECUTES: &str = "
    type date_tick pid cpu thr name                params
    KERN 100       0   0   -   sched_switch        prev_state=0,next_pid=70
    KERN 110       70  0   -   task_newtask        pid=71,comm=p,clone_flags=65536
    KERN 111       70  0   -   sched_process_fork  parent_pid=70,child_pid=71
    KERN 120       0   1   -   sched_switch        prev_state=0,next_pid=71
    USER 130       71  1   -   USER_CONTEXT_SWITCH 5
    KERN 150       70  0   -   sched_switch        prev_state=16,next_pid=0
    KERN 170       70  1   -   sched_waking        pid=99,target_cpu=0
    KERN 180       70  1   -   sched_process_exec  filename=p,pid=70,old_pid=71
    USER 190       70  1   ?   MESSAGE             1
    KERN 200       70  1   -   sched_switch        prev_state=1,next_pid=0";

#[test]
fn an_lwp_that_executes_a_program_continues_with_the_number_of_its_process() {
    let merged = Merged::of(&EXECUTES.replace(
        "KERN 100       0   0",
        "KERN 90        1   2   -   task_newtask        pid=70,comm=p,clone_flags=17
    KERN 91        1   2   -   sched_process_fork  parent_pid=1,child_pid=70
    KERN 100       0   0",
    ));
    let states = merged.table("lwp_states", &["ts_tick", "dur_tick", "lwp", "state", "end_reason"]);
    let of = |lwp: &str| -> Vec<String> {
        let is_of = |line: &&String| line.split(' ').nth(2) == Some(lwp);
        states.iter().filter(is_of).cloned().collect()
    };
    assert_eq!(of("71"), ["120 50 71 running exit", "170 ? 71 exited ?"]);
    let leader = [
        "100 50 70 running exit",
        "150 ? 70 exited ?",
        "170 30 70 running slept",
        "200 0 70 sleeping trace-end",
    ];
    assert_eq!(of("70"), leader);
    let lwps = merged.table("lwps", &["lwp", "pid", "ts_tick", "dur_tick"]);
    for row in ["71 70 111 59", "70 70 91 59", "70 70 170 ?"] {
        assert!(lwps.iter().any(|line| line == row), "{row} in {lwps:?}");
    }
    // Both user events, before and after the exec, belong to it.
    assert_eq!(merged.table("active", &["ts_tick", "dur_tick", "thread", "lwp"]), ["130 40 5 71"]);
    let user = merged.table("events", &["ts_tick", "level", "lwp", "cpu"]);
    assert!(user.contains(&"190 USER 70 1".to_string()), "{user:?}");
    assert_eq!(merged.summary.losses, []);
}

// A shell forks, and its child executes a program: no event but the switch that it leaves its CPU by has the new name.
#[test]
fn a_program_that_a_shell_started_has_its_own_name() {
    let merged = Merged::of(
        "type date_tick pid cpu thr name           params
         KERN 100 0  0 - sched_switch       prev_comm=swapper/0,prev_pid=0,prev_state=0,next_comm=sh,next_pid=60
         KERN 110 60 0 - sched_process_fork comm=sh,pid=60,child_comm=sh,child_pid=70
         KERN 120 0  1 - sched_switch       prev_comm=swapper/1,prev_pid=0,prev_state=0,next_comm=sh,next_pid=70
         KERN 130 70 1 - sched_process_exec filename=/usr/bin/server,pid=70,old_pid=70
         KERN 140 70 1 - sched_switch       prev_comm=server,prev_pid=70,prev_state=1,next_comm=swapper/1,next_pid=0
         KERN 150 60 0 - sched_switch       prev_comm=sh,prev_pid=60,prev_state=1,next_comm=swapper/0,next_pid=0",
    );
    assert_eq!(merged.table("lwps", &["lwp", "name"]), ["60 sh", "70 server"]);
}

// The end of the first LWP 70 is missing.
#[test]
fn the_name_of_a_new_lwp_is_not_that_of_the_one_before_with_its_number() {
    let merged = Merged::of(
        "type date_tick pid cpu thr name           params
         KERN 100 0  0 - sched_switch       prev_comm=swapper/0,prev_pid=0,prev_state=0,next_comm=old,next_pid=70
         KERN 110 70 0 - sched_switch       prev_comm=old,prev_pid=70,prev_state=1,next_comm=sh,next_pid=60
         KERN 120 60 0 - sched_process_fork comm=sh,pid=60,child_comm=new,child_pid=70
         KERN 130 60 0 - sched_switch       prev_comm=sh,prev_pid=60,prev_state=1,next_comm=swapper/0,next_pid=0",
    );
    assert_eq!(merged.table("lwps", &["ts_tick", "lwp", "name"]), ["100 70 old", "110 60 sh", "120 70 new"]);
}

#[test]
fn if_the_process_is_unknown_the_exec_event_ends_the_old_number() {
    let merged = Merged::of(&EXECUTES.replace("KERN 170       70  1", "KERN 170       71  1"));
    let states = merged.table("lwp_states", &["ts_tick", "dur_tick", "lwp", "state", "end_reason"]);
    let expected = [
        "100 50 70 running exit",
        "150 ? 70 exited ?",
        "120 60 71 running exit",
        "180 ? 71 exited ?",
        "180 20 70 running slept",
        "200 0 70 sleeping trace-end",
        // Woken, but without an event on a CPU.
        "170 30 99 unknown trace-end",
    ];
    assert_eq!(states, expected);
    assert_eq!(merged.summary.losses, []);
}

#[test]
fn the_process_of_an_lwp_is_known_from_the_event_that_created_it() {
    // 71 is a thread of 70, and 72 of 71's process; 73 is a new process; the process of 80's creator is unknown.
    let merged = Merged::of(
        "type date_tick pid cpu thr name                params
         KERN 90        1   0   -   task_newtask        pid=70,clone_flags=17
         KERN 91        1   0   -   sched_process_fork  parent_pid=1,child_pid=70
         KERN 100       70  0   -   task_newtask        pid=71,clone_flags=4001536
         KERN 101       70  0   -   sched_process_fork  parent_pid=70,child_pid=71
         KERN 110       71  0   -   task_newtask        pid=72,clone_flags=4001536
         KERN 111       71  0   -   sched_process_fork  parent_pid=71,child_pid=72
         KERN 120       71  0   -   task_newtask        pid=73,clone_flags=17
         KERN 121       71  0   -   sched_process_fork  parent_pid=71,child_pid=73
         KERN 130       9   0   -   task_newtask        pid=80,clone_flags=4001536
         KERN 131       9   0   -   sched_process_fork  parent_pid=9,child_pid=80",
    );
    let mut lwps = merged.table("lwps", &["lwp", "pid"]);
    lwps.retain(|line| !["1 ?", "9 ?"].contains(&line.as_str()));
    assert_eq!(lwps, ["70 70", "71 70", "72 70", "73 73", "80 ?"]);
}

// CPU 0   |=70=|  stopped  | runnable |=70=|
#[test]
fn a_user_thread_is_stopped_while_its_lwp_is() {
    let merged = Merged::of(
        "type date_tick pid cpu thr name                params
         KERN 100       0   0   -   sched_switch        prev_state=0,next_pid=70
         USER 110       70  0   -   USER_CONTEXT_SWITCH 5
         KERN 150       70  0   -   sched_switch        prev_state=4,next_pid=0
         KERN 250       0   0   -   sched_wakeup        pid=70,target_cpu=0
         KERN 260       0   0   -   sched_switch        prev_state=0,next_pid=70
         KERN 270       70  0   -   sched_switch        prev_state=8,next_pid=0",
    );
    let states = merged.table("thread_states", &["ts_tick", "dur_tick", "state", "end_reason"]);
    let expected = [
        "110 40 active slept",
        "150 100 stopped woken",
        "250 10 stalled dispatched",
        "260 10 active slept",
        "270 0 stopped trace-end",
    ];
    assert_eq!(states, expected);
}
