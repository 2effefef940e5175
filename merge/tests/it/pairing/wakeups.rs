//! Wakeups: from the wakeup of an LWP or a user thread to its next dispatch.

use super::rows;

fn wakeups(events: &str) -> Vec<String> {
    let head = "KERN 100 0  0 sched_switch prev_state=0,next_pid=70
                KERN 100 0  1 sched_switch prev_state=0,next_pid=80\n";
    let columns = "ts_tick level context waker_lwp waker_thread lwp thread cpu target_cpu latency_tick";
    rows(&format!("{head}{events}"), "wakeups", columns)
}

// CPU 0   |=70=|        |=70=|
// CPU 1   |==80==w==========|      w: sched_waking at 120; sched_wakeup follows at 125
#[test]
fn the_latency_of_a_wakeup_begins_with_the_waking() {
    let found = wakeups(
        "KERN 110 70 0 sched_switch prev_state=1,next_pid=0
         KERN 120 80 1 sched_waking pid=70
         KERN 125 0  0 sched_wakeup pid=70,target_cpu=0
         KERN 130 0  0 sched_switch prev_state=0,next_pid=70",
    );
    assert_eq!(found, ["120 KERN task 80 ? 70 ? 1 0 10"]);
}

// CPU 0   |=70=|=======90=======|
// CPU 1   |=====80====w=|=70=|=80=|     w: sched_wakeup at 120, for CPU 1
#[test]
fn a_runnable_lwp_waits_for_the_cpu_whose_run_queue_it_was_put_in() {
    let found = rows(
        "KERN 100 0  0 sched_switch prev_state=0,next_pid=70
         KERN 100 0  1 sched_switch prev_state=0,next_pid=80
         KERN 110 70 0 sched_switch prev_state=1,next_pid=90
         KERN 120 80 1 sched_wakeup pid=70,target_cpu=1
         KERN 130 80 1 sched_switch prev_state=0,next_pid=70
         KERN 150 70 1 sched_switch prev_state=1,next_pid=80",
        "lwp_states",
        "ts_tick lwp state cpu",
    );
    let of = |lwp: &str| found.iter().filter(|row| row.contains(lwp)).cloned().collect::<Vec<_>>();
    let expected = [
        "100 70 running 0",
        "110 70 sleeping 0",
        "120 70 runnable 1",
        "130 70 running 1",
        "150 70 sleeping 1",
    ];
    assert_eq!(of(" 70 "), expected);
    // Preempted, it waits where it was.
    assert_eq!(of(" 80 "), ["100 80 running 1", "130 80 runnable 1", "150 80 running 1"]);
}

#[test]
fn a_wakeup_needs_only_sched_waking_or_sched_wakeup() {
    let waking = wakeups(
        "KERN 110 70 0 sched_switch prev_state=1,next_pid=0
         KERN 120 80 1 sched_waking pid=70
         KERN 130 0  0 sched_switch prev_state=0,next_pid=70",
    );
    assert_eq!(waking, ["120 KERN task 80 ? 70 ? 1 ? 10"]);
    let wakeup = wakeups(
        "KERN 110 70 0 sched_switch prev_state=1,next_pid=0
         KERN 120 80 1 sched_wakeup pid=70,target_cpu=0
         KERN 130 0  0 sched_switch prev_state=0,next_pid=70",
    );
    assert_eq!(wakeup, ["120 KERN task 80 ? 70 ? 1 0 10"]);
}

#[test]
fn the_wakeup_of_a_running_or_runnable_lwp_has_no_latency() {
    let found = wakeups(
        "KERN 110 80 1 sched_waking pid=70
         KERN 111 70 0 sched_wakeup pid=70,target_cpu=0
         KERN 120 70 0 sched_switch prev_state=0,next_pid=99
         KERN 125 80 1 sched_wakeup pid=70,target_cpu=0
         KERN 130 99 0 sched_switch prev_state=1,next_pid=70",
    );
    let expected = ["110 KERN task 80 ? 70 ? 1 ? ?", "125 KERN task 80 ? 70 ? 1 ? ?"];
    assert_eq!(found, expected);
}

// CPU 0   |=70=|s|r|=70=|
// CPU 1   |==80=w===w'===|      w: sched_waking at 108, while 70 runs; it sleeps from 110 on; w': sched_wakeup at 125
#[test]
fn a_wakeup_whose_waking_came_before_its_lwp_slept_begins_with_the_wakeup_and_has_that_waker() {
    let found = wakeups(
        "KERN 108 80 1 sched_waking pid=70
         KERN 110 70 0 sched_switch prev_state=1,next_pid=0
         KERN 125 81 1 sched_wakeup pid=70,target_cpu=0
         KERN 130 0  0 sched_switch prev_state=0,next_pid=70",
    );
    assert_eq!(found, ["125 KERN task 80 ? 70 ? 1 0 5"]);
    // Without a wakeup, the dispatch may belong to another one.
    let lone = wakeups(
        "KERN 108 80 1 sched_waking pid=70
         KERN 110 70 0 sched_switch prev_state=1,next_pid=0
         KERN 130 0  0 sched_switch prev_state=0,next_pid=70
         KERN 140 80 1 sched_waking pid=70",
    );
    assert_eq!(lone, ["108 KERN task 80 ? 70 ? 1 ? ?", "140 KERN task 80 ? 70 ? 1 ? ?"]);
}

#[test]
fn the_waker_in_an_interrupt_is_the_interrupted_lwp_without_a_user_thread() {
    let found = wakeups(
        "USER 105 80 1 USER_CONTEXT_SWITCH 5
         KERN 110 70 0 sched_switch        prev_state=1,next_pid=0
         KERN 119 80 1 irq_handler_entry   irq=24,name=eth0
         KERN 120 80 1 sched_waking        pid=70
         KERN 121 80 1 irq_handler_exit    irq=24
         KERN 130 0  0 sched_switch        prev_state=0,next_pid=70
         KERN 140 70 0 sched_switch        prev_state=1,next_pid=0
         KERN 150 80 1 sched_waking        pid=70
         KERN 155 0  0 sched_switch        prev_state=0,next_pid=70",
    );
    assert_eq!(found, ["120 KERN irq 80 ? 70 ? 1 ? 10", "150 KERN task 80 5 70 ? 1 ? 5"]);
}

#[test]
fn the_wakeup_of_an_lwp_has_the_user_thread_mounted_on_it() {
    let found = wakeups(
        "USER 105 70 0 USER_CONTEXT_SWITCH 5
         KERN 110 70 0 sched_switch        prev_state=1,next_pid=0
         KERN 120 80 1 sched_waking        pid=70
         KERN 130 0  0 sched_switch        prev_state=0,next_pid=70",
    );
    assert_eq!(found, ["120 KERN task 80 ? 70 5 1 ? 10"]);
}

#[test]
fn a_wakeup_without_a_later_dispatch_has_no_latency() {
    let found = wakeups(
        "KERN 110 70 0 sched_switch prev_state=1,next_pid=0
         KERN 120 80 1 sched_waking pid=70
         KERN 140 80 1 cpu_frequency _",
    );
    assert_eq!(found, ["120 KERN task 80 ? 70 ? 1 ? ?"]);
}

// 5   |A|wait····|r|A|       unparked at 120, dispatched at 130
#[test]
fn an_unpark_is_a_wakeup_of_a_user_thread() {
    let found = wakeups(
        "USER 105 70 0 USER_CONTEXT_SWITCH 5
         USER 105 80 1 USER_CONTEXT_SWITCH 6
         USER 110 70 0 USER_CONTEXT_SWITCH 0,3
         USER 120 80 1 USER_THREAD_READY   5
         USER 130 70 0 USER_CONTEXT_SWITCH 5",
    );
    assert_eq!(found, ["120 USER task 80 6 ? 5 1 ? 10"]);
}

// Unparked at 120 while mounted. If the thread then blocks at 125 (reason 3), the unpark makes it ready; if it yields
// (reason 1), it is ready without the unpark.
#[test]
fn the_unpark_of_a_mounted_thread_has_a_latency_only_if_the_thread_then_blocks() {
    let unparked = |reason| {
        wakeups(&format!(
            "USER 105 70 0 USER_CONTEXT_SWITCH 5
             USER 105 80 1 USER_CONTEXT_SWITCH 6
             USER 120 80 1 USER_THREAD_READY   5
             USER 125 70 0 USER_CONTEXT_SWITCH 0,{reason}
             USER 130 70 0 USER_CONTEXT_SWITCH 5"
        ))
    };
    assert_eq!(unparked(3), ["120 USER task 80 6 ? 5 1 ? 10"]);
    assert_eq!(unparked(1), ["120 USER task 80 6 ? 5 1 ? ?"]);
}
