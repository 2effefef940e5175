//! Wakeups and counters when events of a CPU were lost. ftrace's text has a line for the loss between two events.

use crate::supertrace::{Inputs, Merged, switch};

/// Merges lines `CPU TICK LWP EVENT`. A line `CPU lost`: events of the CPU were lost before its next line.
fn merged(drawn: &str) -> Merged {
    let mut text = "# tracer: nop\n".to_string();
    for line in drawn.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let words: Vec<&str> = line.splitn(4, ' ').collect();
        text += &match words[..] {
            [cpu, "lost"] => format!("CPU:{cpu} [LOST 5 EVENTS]\n"),
            [cpu, tick, lwp, event] => format!(" p-{lwp} [00{cpu}] d..2. {tick}: {event}\n"),
            _ => panic!("{line}"),
        };
    }
    Inputs::new().file("trace.txt", text).merge()
}

fn waking(event: &str, lwp: u32) -> String {
    format!("{event}: comm=p pid={lwp} prio=120 target_cpu=000")
}

/// The rows of `wakeups` and `counters`. LWP 70 sleeps from 1200 on, LWP 80 is on CPU 1, then the events `then` follow.
fn wakeups(then: &[(u32, u64, u32, String)], gap_of_cpu_0_before: Option<u64>) -> (Vec<String>, Vec<String>) {
    let mut drawn = format!(
        "0 1000 0 {}\n1 1100 0 {}\n0 1200 70 {}\n",
        switch(0, "R", 70),
        switch(0, "R", 80),
        switch(70, "S", 0)
    );
    for (cpu, tick, lwp, event) in then {
        if gap_of_cpu_0_before == Some(*tick) {
            drawn += "0 lost\n";
        }
        drawn += &format!("{cpu} {tick} {lwp} {event}\n");
    }
    let merged = merged(&drawn);
    let wakeups = merged.table("wakeups", &["ts_tick", "lwp", "target_cpu", "latency_tick"]);
    (wakeups, merged.table("counters", &["ts_tick", "cpu", "value"]))
}

// CPU 0   |=70=|idle  ···  |=70=     there may have been an earlier dispatch in the gap
// CPU 1   |==80==w===========
#[test]
fn a_wakeup_whose_dispatch_may_be_lost_has_no_latency_and_one_after_the_gap_has() {
    let then = [
        (1, 1300, 80, waking("sched_waking", 70)),
        (1, 1310, 80, waking("sched_wakeup", 70)),
        (0, 1400, 0, switch(0, "R", 70)),
        (0, 1500, 70, switch(70, "S", 0)),
        (1, 1600, 80, waking("sched_waking", 70)),
        (1, 1610, 80, waking("sched_wakeup", 70)),
        (0, 1650, 0, switch(0, "R", 70)),
        (0, 1700, 70, switch(70, "S", 0)),
    ];
    let (whole, counters) = wakeups(&then, None);
    assert_eq!(whole, ["1300 70 0 100", "1600 70 0 50"]);
    assert_eq!(counters, ["1310 0 1", "1400 0 0", "1610 0 1", "1650 0 0"]);
    let (lossy, counters) = wakeups(&then, Some(1400));
    assert_eq!(lossy, ["1300 70 ? ?", "1600 70 0 50"]);
    // The gap precedes the evidence that it was in the queue; the second wait is counted.
    assert_eq!(counters, ["1610 0 1", "1650 0 0"]);
}

// CPU 0   |=70=[ ··· |=70=]      the wait may have ended in the gap, and another one for the same lock begun
#[test]
fn a_wait_for_a_lock_of_the_kernel_is_known_up_to_a_gap() {
    let waits = |gap: &str| {
        let merged = merged(&format!(
            "0 1000 0 {}
             0 1100 70 contention_begin: lock_addr=64 flags=1
             {gap}
             0 1300 70 contention_end: lock_addr=64 ret=0
             0 1400 70 contention_begin: lock_addr=64 flags=1
             0 1450 70 contention_end: lock_addr=64 ret=0",
            switch(0, "R", 70),
        ));
        merged.table("locks", &["ts_tick", "wait_tick", "lwp", "kind", "end_reason"])
    };
    assert_eq!(waits(""), ["1100 200 70 kernel-spinlock woken", "1400 50 70 kernel-spinlock woken"]);
    assert_eq!(waits("0 lost"), ["1100 0 70 kernel-spinlock lost", "1400 50 70 kernel-spinlock woken"]);
}

// CPU 0   |=1=|==70==|exit        71, of process 70, may have been created in the gap
// CPU 1   |=80=··· =80=
#[test]
fn a_process_has_no_known_end_if_another_of_its_lwps_may_have_been_created_in_a_gap() {
    let ends = |gap: &str| {
        let merged = merged(&format!(
            "0 1000 0 {}
             0 1010 1 task_newtask: pid=70 comm=p clone_flags=17
             0 1020 1 sched_process_fork: comm=p pid=1 child_comm=p child_pid=70
             1 1030 0 {}
             {gap}
             1 1100 80 sched_waking: comm=p pid=1 prio=120 target_cpu=000
             0 1200 1 {}
             0 1300 70 {}",
            switch(0, "R", 1),
            switch(0, "R", 80),
            switch(1, "R", 70),
            switch(70, "X", 0),
        ));
        merged.table("processes", &["pid", "ts_tick", "dur_tick"])
    };
    assert_eq!(ends(""), ["70 1020 280"]);
    assert_eq!(ends("1 lost"), ["70 1020 ?"]);
}
