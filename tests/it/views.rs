//! The views of `sigmund sql` on a trace whose answers can be worked out on paper.

use crate::sigmund::Sigmund;

// CPU 0   |=70=|---idle---|=70=|=90=|=70=|        70 sleeps in read, is woken at 120 and runs at 130; 90 preempts it at 150
// CPU 1   |=80=|w                                 80 wakes 70 (sched_waking at 120)
// thread 5 is on LWP 70 from 105 on: blocked at 200 on mutex 0x1000, unparked at 220 by 6, dispatched at 230
const LISTING: &str = "\
# tick_hz=1000000000
type date_tick pid cpu thr code name params
KERN 100 0 0 ? - sched_switch prev_state=0 next_pid=70
KERN 100 0 1 ? - sched_switch prev_state=0 next_pid=80
USER 105 70 0 ? - USER_CONTEXT_SWITCH next=5 reason=0 on=0 blocked_for=0
USER 106 80 1 ? - USER_CONTEXT_SWITCH next=6 reason=0 on=0 blocked_for=0
KERN 109 70 0 ? - sys_enter id=0(read) args0=3
KERN 110 70 0 ? - sched_switch prev_state=1 next_pid=0
KERN 120 80 1 ? - sched_waking pid=70
KERN 125 80 1 ? - sched_wakeup pid=70 target_cpu=0
KERN 130 0 0 ? - sched_switch prev_state=0 next_pid=70
KERN 140 70 0 ? - sys_exit id=0 ret=1
KERN 150 70 0 ? - sched_switch prev_state=0 next_pid=90
KERN 170 90 0 ? - sched_switch prev_state=1 next_pid=70
KERN 175 70 0 ? - irq_handler_entry irq=24 name=eth0
KERN 180 70 0 ? - irq_handler_exit irq=24
USER 200 70 0 5 - USER_CONTEXT_SWITCH next=0 reason=3 on=4096 blocked_for=1
USER 220 80 1 6 - USER_THREAD_READY ready=5
USER 230 70 0 ? - USER_CONTEXT_SWITCH next=5 reason=0 on=0 blocked_for=0
";

pub(crate) fn listing() -> String {
    let line = |line: &str| {
        let cells: Vec<&str> = if line.starts_with('#') { vec![line] } else { line.splitn(8, ' ').collect() };
        cells.join("\t") + "\n"
    };
    LISTING.lines().map(line).collect()
}

fn asked(sigmund: &Sigmund, query: &str) -> String {
    sigmund.run(["sql", "t.supertrace", query, "--format", "csv"]).found()
}

#[test]
fn latencies_and_locks_have_the_names_of_the_field() {
    let sigmund = Sigmund::with_listing("t", &listing());
    let run_queue = asked(
        &sigmund,
        "SELECT ts_tick, kind, latency_tick, lwp, cpu, waker_lwp FROM run_queue_latency ORDER BY ts_tick",
    );
    assert_eq!(
        run_queue,
        "ts_tick,kind,latency_tick,lwp,cpu,waker_lwp\n120,wakeup,10,70,0,80\n150,involuntary,20,70,0,\n"
    );
    let ready =
        asked(&sigmund, "SELECT ts_tick, kind, latency_tick, thread, waker_thread FROM ready_latency");
    assert_eq!(ready, "ts_tick,kind,latency_tick,thread,waker_thread\n220,unpark,10,5,6\n");
    let wakeups = asked(&sigmund, "SELECT ts_tick, level, latency_ns FROM wakeup_latency ORDER BY ts_tick");
    assert_eq!(wakeups, "ts_tick,level,latency_ns\n120,KERN,10\n220,USER,10\n");
    let off = asked(
        &sigmund,
        "SELECT ts_tick, dur_tick, lwp, state, syscall FROM off_cpu WHERE lwp < 80 ORDER BY ts_tick",
    );
    assert_eq!(
        off,
        "ts_tick,dur_tick,lwp,state,syscall\n110,15,70,sleeping,read\n125,5,70,runnable,read\n150,20,70,runnable,\n"
    );
    let waits = asked(&sigmund, "SELECT ts_tick, wait_tick, thread, object, kind FROM lock_wait");
    assert_eq!(waits, "ts_tick,wait_tick,thread,object,kind\n200,20,5,4096,mutex\n");
    sigmund.run(["sql", "t.supertrace", "SELECT * FROM lock_hold"]).found_nothing();
}

#[test]
fn perfettos_tables_join_by_their_ids() {
    let sigmund = Sigmund::with_listing("t", &listing());
    let slices = asked(
        &sigmund,
        "SELECT s.ts, s.dur, s.category, s.name, t.utid FROM slice s LEFT JOIN thread_track t ON s.track_id = t.id
         ORDER BY s.ts",
    );
    assert_eq!(slices, "ts,dur,category,name,utid\n9,31,syscall,read,70\n75,5,irq,eth0,\n");
    let states = asked(
        &sigmund,
        "SELECT s.end_state, count(*) AS times FROM sched_slice s JOIN thread t ON s.utid = t.utid
         WHERE t.tid = 70 GROUP BY 1 ORDER BY 2, 1",
    );
    assert_eq!(states, "end_state,times\nR,1\nS,1\n,1\n");
    let counters = asked(&sigmund, "SELECT ts, value FROM counter WHERE name = 'run-queue' ORDER BY ts");
    assert_eq!(counters, "ts,value\n25,1.0\n30,0.0\n50,1.0\n70,0.0\n");
}

#[test]
fn tables_come_first_and_only_events_that_occur_are_listed() {
    let sigmund = Sigmund::with_listing("t", &listing());
    let shown = asked(&sigmund, "SHOW TABLES");
    let names: Vec<&str> = shown.lines().skip(1).map(|line| line.split(',').nth(2).unwrap()).collect();
    let at =
        |name: &str| names.iter().position(|n| *n == name).unwrap_or_else(|| panic!("{name} in {names:?}"));
    assert!(at("active") < at("events") && at("wakeups") < at("lock_wait"), "{names:?}");
    assert!(at("lock_wait") < at("raw_events") && at("raw_events") < at("USER_CONTEXT_SWITCH"), "{names:?}");
}

#[test]
fn tables_that_nobody_asked_for_are_left_out_and_named() {
    let sigmund = Sigmund::new();
    sigmund.write("t.tsv", listing().as_bytes());
    sigmund.run(["merge", "t.tsv", "-o", "t.supertrace", "--tables", "wakeups"]).found();
    assert_eq!(asked(&sigmund, "SELECT count(*) AS n FROM wakeups"), "n\n2\n");
    assert!(!sigmund.path("t.supertrace/syscalls").exists());
    sigmund.run(["sql", "t.supertrace", "SELECT * FROM syscalls"]).complained(&["syscalls", "--tables"]);
    sigmund.run(["check", "t.supertrace"]).found();
    sigmund.run(["info", "t.supertrace"]).found();
    sigmund.run(["export", "t.supertrace", "--format", "paje", "-o", "t.trace"]).found();
    let wrong = sigmund.run(["merge", "t.tsv", "-o", "u.supertrace", "--tables", "calls"]);
    wrong.complained(&["calls", "syscalls"]);
}
