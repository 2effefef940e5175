//! Processes: from their creation to the end of their last LWP.

use super::rows;

fn processes(events: &str) -> Vec<String> {
    let head = "KERN 80 1 2 perf_comm tid=1,pid=1,comm=init\n";
    rows(&format!("{head}{events}"), "processes", "pid parent ts_tick dur_tick exit_code")
}

const LIFE: &str = "
    KERN 90  1  2 task_newtask       pid=70,clone_flags=17
    KERN 91  1  2 sched_process_fork parent_pid=1,child_pid=70
    KERN 100 0  0 sched_switch       prev_state=0,next_pid=70
    KERN 110 70 0 sys_enter          id=231(exit_group),args0=3
    KERN 112 70 0 sched_process_exit pid=70
    KERN 120 70 0 sched_switch       prev_state=16,next_pid=0\n";

fn of(pid: &str, rows: Vec<String>) -> Vec<String> {
    rows.into_iter().filter(|row| row.split(' ').next() == Some(pid)).collect()
}

#[test]
fn a_process_lasts_from_its_fork_to_its_last_switch_and_has_an_exit_code() {
    assert_eq!(of("70", processes(LIFE)), ["70 1 91 29 3"]);
}

#[test]
fn a_reused_pid_is_another_process() {
    let again = "KERN 130 1  2 task_newtask       pid=70,clone_flags=17
                 KERN 131 1  2 sched_process_fork parent_pid=1,child_pid=70
                 KERN 140 0  0 sched_switch       prev_state=0,next_pid=70
                 KERN 150 70 0 sys_enter          id=39(getpid)";
    assert_eq!(of("70", processes(&format!("{LIFE}{again}"))), ["70 1 91 29 3", "70 1 131 ? ?"]);
}

// The process of LWP 95 is unknown.
#[test]
fn a_reused_pid_does_not_keep_the_parent() {
    let again = "KERN 130 95 2 task_newtask       pid=70,clone_flags=17
                 KERN 131 95 2 sched_process_fork parent_pid=95,child_pid=70
                 KERN 140 0  0 sched_switch       prev_state=0,next_pid=70
                 KERN 150 70 0 sys_enter          id=39(getpid)";
    assert_eq!(of("70", processes(&format!("{LIFE}{again}"))), ["70 1 91 29 3", "70 ? 131 ? ?"]);
}

// Flags 65536 (CLONE_THREAD): LWP 71 belongs to process 70, and outlives its leader.
#[test]
fn a_process_ends_with_its_last_lwp() {
    let found = processes(
        "KERN 90  1  2 task_newtask       pid=70,clone_flags=17
         KERN 91  1  2 sched_process_fork parent_pid=1,child_pid=70
         KERN 100 0  0 sched_switch       prev_state=0,next_pid=70
         KERN 105 70 0 task_newtask       pid=71,clone_flags=65536
         KERN 106 70 0 sched_process_fork parent_pid=70,child_pid=71
         KERN 110 0  1 sched_switch       prev_state=0,next_pid=71
         KERN 120 70 0 sys_enter          id=60(exit)
         KERN 121 70 0 sched_process_exit pid=70
         KERN 122 70 0 sched_switch       prev_state=16,next_pid=0
         KERN 140 71 1 sys_enter          id=60(exit),args0=2
         KERN 141 71 1 sched_process_exit pid=71
         KERN 145 71 1 sched_switch       prev_state=16,next_pid=0",
    );
    assert_eq!(of("70", found), ["70 1 91 54 2"]);
}
