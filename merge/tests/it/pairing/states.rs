//! The reasons why LWPs leave their CPUs, and the states that follow.

use super::rows;

fn states(events: &str) -> Vec<String> {
    rows(events, "lwp_states", "ts_tick dur_tick lwp state end_reason end_state")
}

// LWP 70  |==|y|==|p     y: in sched_yield; p: preempted. No system call of LWP 80 is traced.
#[test]
fn a_runnable_lwp_leaves_its_cpu_by_sched_yield_or_preempted_or_for_an_unknown_reason() {
    let found = states(
        "KERN 100 0  0 sched_switch prev_state=0,next_pid=70
         KERN 105 70 0 sys_enter    id=24(sched_yield)
         KERN 110 70 0 sched_switch prev_state=0,next_pid=80
         KERN 120 80 0 sched_switch prev_state=256,next_pid=70
         KERN 125 70 0 sys_exit     id=24,ret=0
         KERN 130 70 0 sched_switch prev_state=0,next_pid=80
         KERN 140 80 0 cpu_frequency _",
    );
    let expected = [
        "100 10 70 running sched-yield R",
        "110 10 80 running runnable R+",
        "110 10 70 runnable dispatched R",
        "120 10 70 running preempted R",
        "120 10 80 runnable dispatched R+",
        "130 10 70 runnable trace-end R",
        "130 10 80 running trace-end ?",
    ];
    assert_eq!(found, expected);
}

// prev_state 128: TASK_IDLE, a kernel thread that waits for work; 2: uninterruptible; 4: stopped.
#[test]
fn states_follow_the_state_letters_of_the_kernel() {
    let left = |prev_state: u32| {
        let found = states(&format!(
            "KERN 100 0  0 sched_switch prev_state=0,next_pid=70
             KERN 110 70 0 sched_switch prev_state={prev_state},next_pid=0
             KERN 120 0  0 cpu_idle     _"
        ));
        assert_eq!(found.len(), 2, "{found:?}");
        found.join(" | ")
    };
    assert_eq!(left(1), "100 10 70 running slept S | 110 10 70 sleeping trace-end ?");
    assert_eq!(left(2), "100 10 70 running slept D | 110 10 70 disk-sleep trace-end ?");
    assert_eq!(left(4), "100 10 70 running slept T | 110 10 70 stopped trace-end ?");
    assert_eq!(left(128), "100 10 70 running slept I | 110 10 70 idle trace-end ?");
}

// LWP 70 leaves its CPU four times: by sched_yield, asleep, and twice preempted.
#[test]
fn stalls_count_only_preemptions_and_are_null_without_traced_system_calls() {
    let events = "KERN 100 0  0 sched_switch        prev_state=0,next_pid=70
         USER 101 70 0 USER_CONTEXT_SWITCH 5
         KERN 105 70 0 sys_enter           id=24(sched_yield)
         KERN 110 70 0 sched_switch        prev_state=0,next_pid=0
         KERN 111 0  0 sched_switch        prev_state=0,next_pid=70
         KERN 112 70 0 sys_exit            id=24,ret=0
         KERN 120 70 0 sched_switch        prev_state=1,next_pid=0
         KERN 130 0  0 sched_switch        prev_state=0,next_pid=70
         KERN 140 70 0 sched_switch        prev_state=0,next_pid=0
         KERN 141 0  0 sched_switch        prev_state=0,next_pid=70
         KERN 150 70 0 sched_switch        prev_state=0,next_pid=0";
    assert_eq!(rows(events, "threads", "thread stalls"), ["5 2"]);
    let untraced: String =
        events.lines().filter(|line| !line.contains("sys_")).map(|l| format!("{l}\n")).collect();
    assert_eq!(rows(&untraced, "threads", "thread stalls"), ["5 ?"]);
}
