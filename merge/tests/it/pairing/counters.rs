//! Counters: LWPs in run queues, user threads in ready queues.

use super::rows;

fn counters(events: &str) -> Vec<String> {
    rows(events, "counters", "ts_tick kind cpu pid value")
}

// LWP 70  |==on==|runnable|==|
// LWP 80     |run.|==on===|          at 110, 80 leaves the queue and 70 enters it: the length is the same
#[test]
fn a_switch_from_a_preempted_to_a_queued_lwp_does_not_change_the_run_queue_length() {
    let found = counters(
        "KERN 100 0  0 sched_switch prev_state=0,next_pid=70
         KERN 105 70 0 sched_wakeup pid=80,target_cpu=0
         KERN 110 70 0 sched_switch prev_state=0,next_pid=80
         KERN 120 80 0 sched_switch prev_state=1,next_pid=70",
    );
    assert_eq!(found, ["105 run-queue 0 ? 1", "120 run-queue 0 ? 0"]);
}

#[test]
fn a_runnable_lwp_that_is_moved_leaves_one_run_queue_and_enters_another() {
    let found = counters(
        "KERN 100 0  0 sched_switch       prev_state=0,next_pid=70
         KERN 100 0  1 sched_switch       prev_state=0,next_pid=71
         KERN 110 70 0 sched_switch       prev_state=0,next_pid=72
         KERN 120 71 1 sched_wakeup       pid=70,target_cpu=1
         KERN 130 71 1 sched_switch       prev_state=1,next_pid=70",
    );
    let expected =
        ["110 run-queue 0 ? 1", "120 run-queue 0 ? 0", "120 run-queue 1 ? 1", "130 run-queue 1 ? 0"];
    assert_eq!(found, expected);
}

// Reason 1 is a yield, 3 a block.
#[test]
fn the_ready_queue_counts_new_yielded_and_unparked_threads() {
    let found = counters(
        "KERN 100 0  0 KERN_CONTEXT_SWITCH 70
         USER 101 70 0 USER_CONTEXT_SWITCH 5
         USER 110 70 0 USER_THREAD_NEW     6
         USER 120 70 0 USER_CONTEXT_SWITCH 6,1
         USER 130 70 0 USER_CONTEXT_SWITCH 5,3
         USER 140 70 0 USER_THREAD_READY   6
         USER 150 70 0 USER_CONTEXT_SWITCH 6,4",
    );
    let expected =
        ["110 ready-queue ? ? 1", "130 ready-queue ? ? 0", "140 ready-queue ? ? 1", "150 ready-queue ? ? 0"];
    assert_eq!(found, expected);
}
