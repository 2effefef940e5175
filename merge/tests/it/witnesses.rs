//! The two witnesses of a user event's CPU (the probe and `sched_switch`) when a switch is missing in the trace: which
//! events prove that it is missing, and which do not.
//!
//! In the drawings `=` is an LWP on a CPU by the kernel's switches, `u` a user event of LWP 70.

use crate::supertrace::{Inputs, Merged, switch};

/// LWP 70 was on CPU 0, and is runnable in its run queue from tick 140 on; LWP 99 is on that CPU. LWP 98 is on CPU 1.
const PREEMPTED: &str = "\
    KERN 90  0  1 sched_switch prev_state=0,next_pid=98
    KERN 100 0  0 sched_switch prev_state=0,next_pid=70
    USER 110 70 0 USER_CONTEXT_SWITCH 5
    KERN 140 70 0 sched_switch prev_state=0,next_pid=99
    KERN 150 99 0 SYSTEM_CALL 142
    KERN 160 98 1 SYSTEM_CALL 142
";

/// The rows of `losses`.
fn losses(merged: &Merged) -> Vec<String> {
    merged.table("losses", &["severity", "count", "detail"])
}

/// Merges [`PREEMPTED`], followed by these events.
fn merged(events: &str) -> Merged {
    Inputs::new().listing("drawn.tsv", &format!("{PREEMPTED}{events}")).merge()
}

const TAKEOVER: &str = "gap 1 the kernel did not trace a switch from one LWP to another; \
    first CPU 0: LWP 70 in place of LWP 99, at tick 200 or before";

// CPU 0   |=70=|=99=| u u 70 =|0
#[test]
fn an_untraced_switch_between_two_lwps_is_not_a_disagreement() {
    let merged = merged(
        "USER 200 70 0 USER_EVENT first
         USER 210 70 0 USER_EVENT second
         KERN 220 70 0 SYSTEM_CALL 142
         KERN 230 70 0 sched_switch prev_state=1,next_pid=0",
    );
    // A later switch confirms that LWP 70 was on CPU 0.
    assert_eq!(merged.witnesses(), (3, 0, 0));
    assert_eq!(losses(&merged), [TAKEOVER]);
    let events = merged.table("events", &["ts_tick", "cpu", "lwp", "thread"]);
    assert_eq!(events[6..], ["200 0 70 5", "210 0 70 5", "220 0 70 5", "230 0 70 5"]);
    assert_eq!(
        merged.table("active", &["ts_tick", "dur_tick", "thread", "cpu"]),
        ["110 30 5 0", "200 30 5 0"]
    );
    let states = merged.table("lwp_states", &["lwp", "ts_tick", "dur_tick", "state"]);
    // LWP 99 was on CPU 0 at its own last event; the time until LWP 70's event is unknown.
    for row in [
        "99 140 10 running",
        "99 150 80 unknown",
        "70 140 10 runnable",
        "70 150 50 unknown",
        "70 200 30 running",
    ] {
        assert!(states.iter().any(|state| state == row), "{row}: {states:?}");
    }
}

// CPU 0   |=70=|=75=|·· ? ··|u=70=|     LWP 75 left at an unobserved time; LWP 70 may have been on it since
// LWP 70  |5555| 5: |·· ? ··|55555|     ':' stalled
#[test]
fn a_preempted_lwp_is_runnable_only_up_to_the_last_event_of_another_lwp_on_its_cpu() {
    let merged = merged(
        "KERN 170 99 0 sched_switch prev_state=1,next_pid=75
         KERN 180 75 0 SYSTEM_CALL 142
         USER 5100180 70 0 USER_EVENT first
         KERN 5100200 70 0 sched_switch prev_state=1,next_pid=0",
    );
    let states = merged.table("lwp_states", &["lwp", "ts_tick", "dur_tick", "state"]);
    let of = |lwp: &str| states.iter().filter(|row| row.starts_with(lwp)).cloned().collect::<Vec<_>>();
    let of_70 = [
        "70 100 40 running",
        "70 140 40 runnable",
        "70 180 5100000 unknown",
        "70 5100180 20 running",
        "70 5100200 0 sleeping",
    ];
    assert_eq!(of("70 "), of_70);
    assert_eq!(of("75 "), ["75 170 10 running", "75 180 5100020 unknown"]);
    let states = merged.table("thread_states", &["ts_tick", "dur_tick", "state"]);
    let of_5 = [
        "110 30 active",
        "140 40 stalled",
        "180 5100000 mounted",
        "5100180 20 active",
        "5100200 0 in-kernel",
    ];
    assert_eq!(states, of_5);
    assert_eq!(merged.table("cpus", &["cpu", "busy_tick", "idle_tick"])[0], "0 100 0");
    assert_eq!(merged.table("losses", &["kind", "count", "unknown_tick"]), ["contradiction 1 10200020"]);
}

// CPU 0   |idle|·· ? ··|=70=|     the CPU was idle, and LWP 70 in its run queue; it was dispatched at an unobserved time
#[test]
fn without_a_switch_the_dispatch_on_an_idle_cpu_is_at_an_unobserved_time() {
    let merged = merged(
        "KERN 170 99 0 sched_switch prev_state=1,next_pid=0
         KERN 180 0 0 cpu_idle _
         USER 300 70 0 USER_EVENT first
         KERN 320 70 0 sched_switch prev_state=1,next_pid=0",
    );
    let states = merged.table("lwp_states", &["lwp", "ts_tick", "dur_tick", "state"]);
    for row in ["70 140 40 runnable", "70 180 120 unknown", "70 300 20 running"] {
        assert!(states.iter().any(|state| state == row), "{row}: {states:?}");
    }
    assert_eq!(merged.table("cpus", &["cpu", "busy_tick", "idle_tick"])[0], "0 90 10");
    assert_eq!(merged.table("losses", &["kind", "count", "unknown_tick"]), ["contradiction 1 120"]);
}

// CPU 0   |   i             r |=99=|=70=      i: a side-band event of LWP 70, 44 ms before the first switch of the
// LWP 70       ·· ? ·· |=98=|:::::            CPU; r: the runtime that the kernel reports: 0.19 ms
#[test]
fn before_the_first_switch_of_a_cpu_an_lwp_is_known_to_be_there_only_at_its_events() {
    let call = "sys_enter: NR 142 (0, 0, 0, 0, 0, 0)";
    let merged = Inputs::new()
        .ftrace(
            "trace.txt",
            &[
                (1_000_000, 0, 70, call),
                (1_000_050, 0, 70, call),
                (45_000_000, 0, 99, &switch(99, "S", 70)),
                (45_000_100, 0, 70, &switch(70, "S", 0)),
            ],
        )
        .merge();
    // Each event contains its LWP and its CPU.
    assert_eq!(merged.table("events", &["cpu", "lwp"])[..2], ["0 70", "0 70"]);
    let states = merged.table("lwp_states", &["lwp", "ts_tick", "dur_tick", "state"]);
    let expected = ["99 45000000 0 running", "70 45000000 100 running", "70 45000100 0 sleeping"];
    for row in expected {
        assert!(states.iter().any(|state| state == row), "{row}: {states:?}");
    }
    assert!(!states.iter().any(|row| row.starts_with("70 1000")), "{states:?}");
    let losses = merged.table("losses", &["kind", "severity", "cpu", "from_tick", "to_tick", "unknown_tick"]);
    assert_eq!(losses, ["before-first-switch note 0 1000000 45000000 44000000"]);
}

#[test]
fn without_a_later_switch_such_an_event_has_one_witness() {
    let merged = merged("USER 200 70 0 USER_EVENT first");
    assert_eq!(merged.witnesses(), (1, 0, 1));
    assert_eq!(losses(&merged), [TAKEOVER]);
}

// CPU 0   |=70=|=99= u u =99=|=70=     the clock of the user side is wrong: LWP 99 was on CPU 0 all the time
#[test]
fn an_event_is_a_disagreement_if_another_lwp_is_still_on_the_cpu() {
    let merged = merged(
        "USER 200 70 0 USER_EVENT first
         USER 210 70 0 USER_EVENT second
         KERN 220 99 0 sched_switch prev_state=0,next_pid=70
         USER 230 70 0 USER_EVENT third
         KERN 240 70 0 sched_switch prev_state=1,next_pid=0",
    );
    assert_eq!(merged.witnesses(), (2, 2, 0));
    let off_cpu = "gap 1 an LWP recorded an event while off-CPU; \
        first LWP 70 on CPU 0, where LWP 99 was before and is still";
    assert_eq!(losses(&merged), [TAKEOVER, off_cpu]);
}

// CPU 0   |=70=|=99=|idle u idle|=70=     the same on a CPU that was idle
#[test]
fn an_event_is_a_disagreement_if_the_cpu_is_still_idle() {
    let merged = merged(
        "KERN 170 99 0 sched_switch prev_state=1,next_pid=0
         USER 200 70 0 USER_EVENT first
         KERN 220 0  0 sched_switch prev_state=0,next_pid=70",
    );
    assert_eq!(merged.witnesses(), (1, 1, 0));
}

// CPU 0   |=70=|=99=           LWP 70 waits in the run queue of CPU 0
// CPU 1   |=98=   u
#[test]
fn an_event_of_a_runnable_lwp_on_another_cpu_is_a_disagreement() {
    let elsewhere = merged("USER 200 70 1 USER_EVENT first");
    assert_eq!(elsewhere.witnesses(), (1, 1, 0));
}

// CPU 0   |=70=|=99=|=70=|=99=   u     LWP 70 sleeps
#[test]
fn an_event_of_an_lwp_that_sleeps_is_a_disagreement() {
    let asleep = merged(
        "KERN 170 99 0 sched_switch prev_state=0,next_pid=70
         KERN 180 70 0 sched_switch prev_state=1,next_pid=99
         USER 200 70 0 USER_EVENT first",
    );
    assert_eq!(asleep.witnesses(), (1, 1, 0));
}

// CPU 0   |=70=|=99=| u    70 =|0      LWP 70 was on CPU 0, so it cannot be on CPU 1 before a switch
// CPU 1   |=98=          u
#[test]
fn a_wrong_cpu_is_a_disagreement_even_after_an_untraced_switch() {
    let merged = merged(
        "USER 200 70 0 USER_EVENT first
         USER 210 70 1 USER_EVENT second
         KERN 230 70 0 sched_switch prev_state=1,next_pid=0",
    );
    assert_eq!(merged.witnesses(), (2, 1, 0));
    assert_eq!(merged.table("events", &["ts_tick", "cpu", "cpu_seen"])[7], "210 0 1");
    assert_eq!(losses(&merged), [TAKEOVER]);
}
