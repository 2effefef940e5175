//! Kernel sides that were recorded for a part of the time only. Outside of that, an event has one witness, and no LWP
//! is known to be on a CPU or in a run queue.
//!
//! In the drawings `=` is an LWP on a CPU by the kernel's switches, `u` a user event of LWP 70, `·` unknown.

use sigmund_merge::{KernelSide, Manifest, UserSide};

use crate::supertrace::{Inputs, Merged, ftrace_text, switch, user_file::user_trace};

impl Merged {
    fn states_of(&self, lwp: u32) -> Vec<String> {
        let states = self.table("lwp_states", &["lwp", "ts_tick", "dur_tick", "state"]);
        let prefix = format!("{lwp} ");
        states.iter().filter_map(|row| row.strip_prefix(&prefix)).map(String::from).collect()
    }

    fn gaps(&self) -> Vec<String> {
        let losses = self.table("losses", &["kind", "severity", "level", "cpu", "from_tick", "to_tick"]);
        losses.into_iter().filter(|row| row.starts_with("not-recorded")).collect()
    }

    fn active_lwps(&self) -> Vec<String> {
        self.table("active", &["ts_tick", "dur_tick", "lwp", "cpu"])
    }

    /// Ticks between two instants in which the states of LWPs are known.
    fn claimed(&self, from: i64, to: i64) -> i64 {
        let table = self.read("lwp_states");
        let last = self.summary.span.unwrap().1.0 as i64;
        let rows = table.numbers("ts_tick").into_iter().zip(table.numbers("dur_tick"));
        let states = table.lines(&["state"]);
        rows.zip(states)
            .filter(|(_, state)| state != "unknown" && state != "exited")
            .map(|((since, length), _)| {
                let since = since.unwrap();
                let end = length.map_or(last, |length| since + length);
                (end.min(to) - since.max(from)).max(0)
            })
            .sum()
    }
}

// listing of the kernel           |=70=|=99=|=70=|
// listing of the program    u u     u          u      u u
#[test]
fn a_listing_of_the_kernel_covers_the_time_from_its_first_to_its_last_event() {
    let merged = Inputs::new()
        .listing(
            "kernel.tsv",
            "KERN 1000 0  0 sched_switch prev_state=0,next_pid=70
             KERN 1400 70 0 sched_switch prev_state=0,next_pid=99
             KERN 1600 99 0 sched_switch prev_state=0,next_pid=70
             KERN 2000 70 0 SYSTEM_CALL 1",
        )
        .listing(
            "user.tsv",
            "USER 100  70 0 USER_CONTEXT_SWITCH 5
             USER 200  70 0 USER_EVENT 1
             USER 1200 70 0 USER_EVENT 2
             USER 1800 70 0 USER_EVENT 3
             USER 2200 70 0 USER_EVENT 4
             USER 2300 70 1 USER_EVENT 5",
        )
        .merge();
    assert_eq!(merged.witnesses(), (2, 0, 4));
    assert_eq!(merged.active_lwps(), ["1000 400 70 0", "1600 400 70 0"]);
    assert_eq!(merged.gaps(), ["not-recorded note KERN 0 2000 ?"]);
    assert_eq!(
        merged.states_of(70),
        ["1000 400 running", "1400 200 runnable", "1600 400 running", "2000 300 unknown"]
    );
    assert_eq!(merged.states_of(99), ["1400 200 running", "1600 400 runnable", "2000 300 unknown"]);
    let states = merged.table("thread_states", &["ts_tick", "dur_tick", "state"]);
    assert_eq!(
        states,
        ["100 900 mounted", "1000 400 active", "1400 200 stalled", "1600 400 active", "2000 300 mounted"]
    );
}

// CPU 0   |=70=|=99=|           |=70=|=99=|     two recordings, 3 · 10^9 ticks apart
// CPU 1   |=98=|idle               |=98=|idle
// LWP 70     u         u      u    u            u
#[test]
fn between_two_recordings_no_state_of_an_lwp_is_known() {
    const LATER: u64 = 3_000_000_000;
    let recording = |at: u64| {
        vec![
            (at, 0, 0, switch(0, "R", 70)),
            (at + 1000, 1, 0, switch(0, "R", 98)),
            (at + 2000, 0, 70, switch(70, "R", 99)),
            (at + 3000, 1, 98, switch(98, "S", 0)),
            (at + 4000, 0, 99, "sys_enter: NR 142 (0, 0, 0, 0, 0, 0)".to_string()),
        ]
    };
    let drawn = |rows: &[(u64, u32, u32, String)], name: &str, inputs: Inputs| {
        let rows: Vec<_> =
            rows.iter().map(|(at, cpu, lwp, event)| (*at, *cpu, *lwp, event.as_str())).collect();
        inputs.ftrace(name, &rows)
    };
    let (first, second) = (1_000_000, 1_004_000 + LATER);
    let inputs = drawn(&recording(first), "first.txt", Inputs::new());
    let merged = drawn(&recording(second), "second.txt", inputs)
        .user_trace(&[
            (500, 0, 70),
            (first + 500, 0, 70),
            (first + 1_000_000, 0, 70),
            (second - 1_000_000, 1, 70),
            (second + 500, 0, 70),
            (second + 1_000_000, 0, 70),
        ])
        .merge();
    let end = first + 4000;
    assert_eq!(merged.witnesses(), (2, 0, 4), "{:?}", merged.summary.losses);
    assert_eq!(merged.claimed(0, first as i64), 0);
    assert_eq!(merged.claimed(end as i64, second as i64), 0);
    assert_eq!(merged.claimed(second as i64 + 4000, i64::MAX), 0);
    let gap = |cpu: u32| format!("not-recorded gap KERN {cpu} {end} {second}");
    let tail = |cpu: u32| format!("not-recorded note KERN {cpu} {} ?", second + 4000);
    assert_eq!(merged.gaps(), [gap(0), tail(0), gap(1), tail(1)]);
    let of_98 = [
        format!("{} 2000 running", first + 1000),
        format!("{} 1000 sleeping", first + 3000),
        format!("{end} {} unknown", second + 1000 - end),
        format!("{} 2000 running", second + 1000),
        format!("{} 1000 sleeping", second + 3000),
        format!("{} 996000 unknown", second + 4000),
    ];
    assert_eq!(merged.states_of(98), of_98);
    // CPU 1 is known again from its first switch in the second recording on.
    let busy = merged.table("cpus", &["cpu", "busy_tick"]);
    assert_eq!(busy, ["0 8000", "1 4000"]);
}

// CPU 0   |=70=|=99=|              |e e e |=70=|     e: system calls of LWP 99 before the first switch of CPU 0
// CPU 1   |=98=|                |=97=|
#[test]
fn in_a_second_recording_a_cpu_is_known_from_its_first_switch_on() {
    let (call, second) = ("sys_enter: NR 142 (0, 0, 0, 0, 0, 0)", 9_000_000);
    let merged = Inputs::new()
        .ftrace(
            "first.txt",
            &[
                (1_000_000, 1, 3, call),
                (1_000_100, 0, 0, &switch(0, "R", 70)),
                (1_000_200, 1, 0, &switch(0, "R", 98)),
                (1_004_000, 0, 70, &switch(70, "S", 99)),
            ],
        )
        .ftrace(
            "second.txt",
            &[
                (second, 1, 0, &switch(0, "R", 97)),
                (second + 1000, 0, 99, call),
                (second + 2000, 0, 99, call),
                (second + 5000, 0, 99, &switch(99, "S", 70)),
                (second + 6000, 0, 70, call),
            ],
        )
        .merge();
    let losses = merged.table("losses", &["kind", "cpu", "from_tick", "to_tick", "unknown_tick"]);
    let expected = [
        "not-recorded 0 1004000 9000000 ?".to_string(),
        "before-first-switch 0 9001000 9005000 4000".to_string(),
        "before-first-switch 1 1000000 1000200 200".to_string(),
        "not-recorded 1 1004000 9000000 ?".to_string(),
    ];
    assert_eq!(losses, expected);
    // Its system calls and its first switch show it on CPU 0, each only for an instant.
    let of_99 =
        ["1004000 0 running", "1004000 8001000 unknown", "9005000 0 running", "9005000 1000 sleeping"];
    assert_eq!(merged.states_of(99), of_99);
}

// first    |=70=========================|=99=|        second.txt continues with the same CPUs, and begins earlier
// second                |=====|=70=|=99=|===== …
#[test]
fn there_is_no_gap_if_another_kernel_source_continues() {
    let merged = Inputs::new()
        .ftrace(
            "first.txt",
            &[(1_000_000, 0, 0, &switch(0, "R", 70)), (1_004_000, 0, 70, &switch(70, "S", 99))],
        )
        .ftrace(
            "second.txt",
            &[
                (1_003_000, 1, 0, &switch(0, "R", 98)),
                (1_006_000, 0, 99, &switch(99, "S", 70)),
                (1_009_000, 0, 70, &switch(70, "S", 0)),
            ],
        )
        .user_trace(&[(1_001_000, 0, 70), (1_007_000, 0, 70), (1_008_000, 0, 70)])
        .merge();
    assert_eq!(merged.gaps(), Vec::<String>::new());
    assert_eq!(merged.witnesses(), (3, 0, 0));
    assert_eq!(
        merged.states_of(70)[..3],
        ["1000000 4000 running", "1004000 2000 sleeping", "1006000 3000 running"]
    );
}

// kernel   |=70=|=99=|=70=|
// calls    c   c   c   c   c   c   c      a source with only system calls has no switches
// user        u                   u
#[test]
fn a_source_without_switches_does_not_extend_the_known_time() {
    let call = "sys_enter: NR 142 (0, 0, 0, 0, 0, 0)";
    let calls: Vec<_> = (0..8).map(|n| (1_000_000 + n * 1_000_000, 1, 98, call)).collect();
    let merged = Inputs::new()
        .ftrace(
            "kernel.txt",
            &[
                (1_000_000, 0, 0, &switch(0, "R", 70)),
                (2_000_000, 0, 70, &switch(70, "R", 99)),
                (3_000_000, 0, 99, &switch(99, "R", 70)),
            ],
        )
        .ftrace("calls.txt", &calls)
        .user_trace(&[(1_500_000, 0, 70), (7_500_000, 1, 70)])
        .merge();
    assert_eq!(merged.witnesses(), (1, 0, 1));
    assert_eq!(merged.claimed(3_000_000, i64::MAX), 0);
    assert_eq!(merged.gaps(), ["not-recorded note KERN 0 3000000 ?"]);
}

// A run of the recorder whose manifest has the time at which the kernel side stopped, after its last event.
#[test]
fn the_kernel_side_of_a_run_is_known_until_it_stopped() {
    let merged = |stopped_tick| {
        let kernel = ftrace_text(&[
            (1_000_000, 0, 0, &switch(0, "R", 70)),
            (2_000_000, 0, 70, "sys_enter: NR 142 (0, 0, 0, 0, 0, 0)"),
        ]);
        let user = user_trace(&[(1_500_000, 0, 70), (4_000_000, 0, 70), (7_000_000, 1, 70)]);
        let kernel_side =
            KernelSide { file: Some("kernel.dat".into()), stopped_tick, ..KernelSide::default() };
        let user_side = vec![UserSide { file: "user-60.fut".into(), pid: 60, ..UserSide::default() }];
        let manifest = Manifest { kernel_side, user_side, ..Manifest::default() };
        let files = [("kernel.dat", kernel.as_bytes()), ("user-60.fut", &user)];
        Inputs::new().run(&files, Some(&manifest)).merge()
    };
    let states = |merged: &Merged| merged.states_of(70);
    let known = merged(Some(5_000_000));
    assert_eq!(known.witnesses(), (2, 0, 1));
    assert_eq!(known.gaps(), ["not-recorded note KERN 0 5000000 ?"]);
    assert_eq!(states(&known), ["1000000 4000000 running", "5000000 2000000 unknown"]);
    // Without that time, it is known up to its last event.
    let unstated = merged(None);
    assert_eq!(unstated.witnesses(), (1, 0, 2));
    assert_eq!(unstated.gaps(), ["not-recorded note KERN 0 2000000 ?"]);
    // A recorder that stops after the program has no gap at all.
    let whole = merged(Some(8_000_000));
    assert_eq!((whole.gaps().len(), whole.witnesses().2), (0, 0));
}

// Recordings of two boots: the ticks of one side are all before those of the other.
#[test]
fn a_kernel_side_of_another_boot_gives_no_event_a_second_witness() {
    for shift in [0, 500_000_000_000_u64] {
        let merged = Inputs::new()
            .ftrace(
                "kernel.txt",
                &[
                    (100_000_000_000, 0, 0, &switch(0, "R", 70)),
                    (100_001_000_000, 0, 70, &switch(70, "S", 99)),
                    (100_002_000_000, 0, 99, &switch(99, "S", 70)),
                    (100_003_000_000, 1, 98, "sys_enter: NR 142 (0, 0, 0, 0, 0, 0)"),
                ],
            )
            .user_trace(&[(shift + 1000, 0, 70), (shift + 2000, 1, 70), (shift + 3000, 0, 71)])
            .merge();
        assert_eq!(merged.witnesses(), (0, 0, 3), "{shift}");
        assert_eq!(merged.active_lwps().iter().filter(|row| !row.ends_with("70 0")).count(), 0);
    }
}

// CPU 0   |=70=|=8==|          |=7== … sched_waking was recorded, sched_wakeup was not
// LWP 7        | sleeping |run-|
//                         ^ waking
#[test]
fn without_wakeups_an_lwp_is_runnable_from_its_waking_on() {
    let merged = Inputs::new()
        .listing(
            "kernel.tsv",
            "KERN 100 0 0 sched_switch prev_pid=0,prev_state=0,next_pid=7
             KERN 200 7 0 sched_switch prev_pid=7,prev_state=1,next_pid=8
             KERN 300 8 0 sched_waking pid=7,target_cpu=0
             KERN 900 8 0 sched_switch prev_pid=8,prev_state=1,next_pid=7
             KERN 950 7 0 sched_waking pid=8,target_cpu=0
             KERN 990 7 0 SYSTEM_CALL 1",
        )
        .merge();
    let of_7 = ["100 100 running", "200 100 sleeping", "300 600 runnable", "900 90 running"];
    assert_eq!(merged.states_of(7), of_7);
    // The trace has no wakeups, so it is runnable to the end.
    assert_eq!(merged.states_of(8), ["200 700 running", "900 50 sleeping", "950 40 runnable"]);
}

#[test]
fn with_wakeups_an_lwp_is_runnable_from_its_wakeup_on() {
    let merged = Inputs::new()
        .listing(
            "kernel.tsv",
            "KERN 100 0 0 sched_switch prev_pid=0,prev_state=0,next_pid=7
             KERN 200 7 0 sched_switch prev_pid=7,prev_state=1,next_pid=8
             KERN 300 8 0 sched_waking pid=7,target_cpu=0
             KERN 310 8 0 sched_wakeup pid=7,target_cpu=0
             KERN 900 8 0 sched_switch prev_pid=8,prev_state=1,next_pid=7
             KERN 950 7 0 sched_waking pid=8,target_cpu=0
             KERN 990 7 0 SYSTEM_CALL 1",
        )
        .merge();
    assert_eq!(
        merged.states_of(7),
        ["100 100 running", "200 110 sleeping", "310 590 runnable", "900 90 running"]
    );
    assert_eq!(merged.states_of(8), ["200 700 running", "900 90 sleeping"], "its wakeup has not come");
}

// A waking while the LWP is still on its CPU does not end a later sleep.
#[test]
fn a_waking_before_a_sleep_does_not_end_it() {
    let merged = Inputs::new()
        .listing(
            "kernel.tsv",
            "KERN 100 0 0 sched_switch prev_pid=0,prev_state=0,next_pid=7
             KERN 150 7 0 sched_waking pid=7,target_cpu=0
             KERN 200 7 0 sched_switch prev_pid=7,prev_state=1,next_pid=8
             KERN 900 8 0 sched_switch prev_pid=8,prev_state=1,next_pid=7
             KERN 990 7 0 SYSTEM_CALL 1",
        )
        .merge();
    assert_eq!(merged.states_of(7), ["100 100 running", "200 700 sleeping", "900 90 running"]);
}

// CPU 1   7                 LWP 7 wakes LWP 9 on CPU 1, and has no other event for 78 s
// CPU 0                |=7=|
#[test]
fn an_lwp_with_an_event_on_a_second_cpu_was_not_on_the_first_until_then() {
    let merged = Inputs::new()
        .listing(
            "kernel.tsv",
            "KERN 100      7 1 sched_waking pid=9,target_cpu=1
             KERN 78000100 7 0 sched_switch prev_state=1,next_pid=0",
        )
        .merge();
    assert!(merged.states_of(7).iter().all(|row| !row.ends_with("running") || row.ends_with(" 0 running")));
    assert_eq!(merged.table("lwps", &["lwp", "on_cpu_tick"]), ["7 0", "9 0"]);
    assert!(merged.states_of(7).contains(&"100 78000000 unknown".to_string()), "{:?}", merged.states_of(7));
}

// CPU 0   |=8===========        CPU 1 |? =7=      LWP 7 is woken to a CPU without an event so far
#[test]
fn an_lwp_that_is_woken_to_a_cpu_without_events_is_unknown_until_it_is_dispatched() {
    let merged = |drawn: &str| Inputs::new().listing("kernel.tsv", drawn).merge().states_of(7);
    let woken = merged(
        "KERN 100 0 0 sched_switch prev_state=0,next_pid=8
         KERN 200 8 0 sched_wakeup pid=7,target_cpu=1
         KERN 900 0 1 sched_switch prev_state=0,next_pid=7
         KERN 990 7 1 SYSTEM_CALL 1",
    );
    assert_eq!(woken, ["200 700 unknown", "900 90 running"]);
    let waking = merged(
        "KERN 100 0 0 sched_switch prev_state=0,next_pid=8
         KERN 200 8 0 sched_waking pid=7,target_cpu=1
         KERN 900 0 1 sched_switch prev_state=0,next_pid=7
         KERN 990 7 1 SYSTEM_CALL 1",
    );
    assert_eq!(waking, ["200 700 unknown", "900 90 running"]);
    // A new LWP is on no CPU before its first wakeup.
    let created = merged(
        "KERN 100 0 0 sched_switch prev_state=0,next_pid=8
         KERN 150 8 0 sched_process_fork child_pid=7
         KERN 200 8 0 sched_wakeup_new pid=7,target_cpu=1
         KERN 900 0 1 sched_switch prev_state=0,next_pid=7
         KERN 990 7 1 SYSTEM_CALL 1",
    );
    assert_eq!(created, ["200 700 runnable", "900 90 running"]);
    // Without a dispatch, it is unknown to the end of the trace.
    let never = merged(
        "KERN 100 0 0 sched_switch prev_state=0,next_pid=8\nKERN 200 8 0 sched_wakeup pid=7,target_cpu=1\nKERN 300 8 0 SYSTEM_CALL 1",
    );
    assert_eq!(never, ["200 100 unknown"]);
}
