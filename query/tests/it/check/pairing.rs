//! Invariants of the intervals that the merge paired, and of processes: holding, broken, and not applicable.

use serde_json::{Value, json};
use sigmund_query::Verdict;

use super::report;
use crate::support::Little;

const INVARIANTS: [(&str, &str); 11] = [
    ("interrupts-nest", "interrupts"),
    ("one-syscall-per-lwp", "syscalls"),
    ("syscall-off-cpu-time", "syscalls"),
    ("spans-nest", "spans"),
    ("span-active-time", "spans"),
    ("spans-within-life", "spans"),
    ("one-holder-per-lock", "locks"),
    ("lock-times", "locks"),
    ("wakeups-end-in-dispatches", "wakeups"),
    ("counters-not-negative", "counters"),
    ("lwps-within-processes", "processes"),
];

fn interrupt(cpu: i64, depth: i64, from: i64, to: i64) -> Value {
    json!({"cpu": cpu, "kind": "irq", "depth": depth, "ts_tick": from, "dur_tick": to - from})
}

/// A row of `interrupts` or `spans` inside of the one that begins at `parent`.
fn inside(parent: i64, mut row: Value) -> Value {
    row["parent_tick"] = json!(parent);
    row
}

fn syscall(lwp: i64, name: Option<&str>, from: i64, to: i64) -> Value {
    json!({"lwp": lwp, "name": name, "ts_tick": from, "dur_tick": to - from, "off_cpu_tick": to - from})
}

fn span(thread: Option<i64>, lwp: i64, depth: i64, from: i64, to: i64) -> Value {
    json!({"thread": thread, "lwp": lwp, "kind": "span", "depth": depth, "ts_tick": from, "dur_tick": to - from, "active_tick": to - from})
}

/// Requested 5 ticks before it is taken.
fn hold(thread: i64, object: i64, kind: &str, taken: i64, to: Option<i64>) -> Value {
    json!({"thread": thread, "object": object, "kind": kind, "ts_tick": taken - 5, "wait_tick": 5, "hold_tick": to.map(|to| to - taken)})
}

fn lwp(lwp: i64, pid: Option<i64>, from: i64, to: Option<i64>) -> Value {
    json!({"lwp": lwp, "pid": pid, "ts_tick": from, "dur_tick": to.map(|to| to - from)})
}

/// ```text
/// tick            100  110  120  130  140  150  160  170  180  190  200
/// CPU 0, depth 0   |==============|                   |==|
///        depth 1   |====|====|
/// LWP 10           |       running       | sleeps     |  running ...
/// thread 1              | span of depth 0, two of 1 |           thread 1 ends at 180, another one begins at 190
/// ```
fn sound() -> Little {
    let mut little = Little::new();
    little.info("first_tick", 100).info("last_tick", 200);
    for row in [
        interrupt(0, 0, 100, 130),
        inside(100, interrupt(0, 1, 100, 110)),
        inside(100, interrupt(0, 1, 110, 120)),
        interrupt(0, 0, 170, 175),
        interrupt(1, 0, 120, 180),
        inside(120, interrupt(1, 1, 180, 180)),
    ] {
        little.row("interrupts", row);
    }
    little.row("syscalls", syscall(10, Some("read"), 100, 150)).row("syscalls", syscall(10, None, 150, 160));
    little.row("syscalls", syscall(11, Some("read"), 120, 150));
    // By another LWP of its process, which gets the number 10.
    little.row("syscalls", syscall(10, Some("execve"), 140, 190));
    for row in [
        span(Some(1), 10, 0, 110, 160),
        inside(110, span(Some(1), 10, 1, 110, 130)),
        inside(110, span(Some(1), 11, 1, 130, 160)),
        span(Some(2), 10, 0, 120, 170),
        span(None, 10, 0, 105, 165),
        span(None, 11, 0, 150, 170),
    ] {
        little.row("spans", row);
    }
    let life = |thread: i64, pid: i64, from: i64, dur: Option<i64>| json!({"thread": thread, "pid": pid, "ts_tick": from, "dur_tick": dur});
    little.row("threads", life(1, 70, 100, Some(80))).row("threads", life(1, 70, 190, None));
    little.row("threads", life(2, 70, 100, None)).row("threads", life(3, 71, 100, None));
    for row in [
        hold(1, 9, "mutex", 110, Some(130)),
        hold(2, 9, "mutex", 130, Some(150)),
        // Of another process, shared, and of unknown length.
        hold(3, 9, "mutex", 120, Some(140)),
        hold(1, 8, "rwlock-read", 110, Some(150)),
        hold(2, 8, "rwlock-read", 120, Some(140)),
        hold(2, 9, "mutex", 160, None),
        hold(1, 9, "mutex", 165, Some(170)),
    ] {
        little.row("locks", row);
    }
    let state = |lwp: i64, ts: i64, dur: i64, state: &str| json!({"ts_tick": ts, "dur_tick": dur, "lwp": lwp, "state": state, "cpu": 0});
    little.row("lwp_states", state(10, 100, 50, "running")).row("lwp_states", state(10, 150, 20, "sleeping"));
    little.row("lwp_states", state(10, 170, 30, "running"));
    let state = |ts: i64, state: &str, lwp: Option<i64>| json!({"ts_tick": ts, "dur_tick": 50, "thread": 2, "state": state, "lwp": lwp});
    little
        .row("thread_states", state(100, "ready", None))
        .row("thread_states", state(150, "active", Some(10)));
    little.row("wakeups", json!({"level": "KERN", "ts_tick": 160, "lwp": 10, "latency_tick": 10}));
    little.row("wakeups", json!({"level": "KERN", "ts_tick": 180, "lwp": 10}));
    little.row("wakeups", json!({"level": "USER", "ts_tick": 120, "thread": 2, "latency_tick": 30}));
    little.row("counters", json!({"ts_tick": 100, "kind": "run-queue", "cpu": 0, "value": 0}));
    let life = |pid: i64, from: i64, dur: Option<i64>| json!({"pid": pid, "ts_tick": from, "dur_tick": dur});
    little.row("processes", life(70, 100, Some(50))).row("processes", life(70, 160, None));
    little.row("lwps", lwp(10, Some(70), 110, Some(150))).row("lwps", lwp(70, Some(70), 160, None));
    little.row("lwps", lwp(0, None, 100, None));
    little
}

fn verdict(report: &sigmund_query::Report, name: &str) -> Verdict {
    report.item(name).unwrap_or_else(|| panic!("{name}")).verdict
}

#[tokio::test]
async fn pairs_of_a_sound_trace_hold() {
    let r = report(&sound()).await;
    for (name, _) in INVARIANTS {
        let item = r.item(name).unwrap();
        assert_eq!(item.verdict, Verdict::Ok, "{item:?}");
    }
    let checked = |name| r.item(name).unwrap().figures[0].value;
    assert_eq!(
        INVARIANTS.map(|(name, _)| checked(name)),
        [6.0, 3.0, 4.0, 6.0, 6.0, 4.0, 4.0, 7.0, 2.0, 1.0, 2.0]
    );
}

#[tokio::test]
async fn an_invariant_is_not_applicable_where_its_table_is_empty_or_was_left_out() {
    let mut empty = sound();
    let mut left_out = sound();
    let tables = INVARIANTS.map(|(_, table)| table);
    for table in tables {
        empty.clear(table);
    }
    // Its LWPs are another table, which cannot be left out.
    empty.clear("lwps");
    left_out.left_out.extend(tables);
    left_out.info("left_out_tables", tables.join(","));
    let (empty, left_out) = (report(&empty).await, report(&left_out).await);
    for (name, table) in INVARIANTS {
        assert_eq!(verdict(&empty, name), Verdict::NotApplicable, "{name}");
        let item = left_out.item(name).unwrap();
        assert_eq!(item.verdict, Verdict::NotApplicable, "{name}");
        assert_eq!(item.detail, format!("the table {table} was left out"));
    }
}

#[tokio::test]
async fn each_fault_of_a_pair_is_found_with_its_place() {
    let negative = |mut row: Value, column: &str| {
        row[column] = json!(-1);
        row
    };
    let longer = |mut row: Value, column: &str| {
        row[column] = json!(row["dur_tick"].as_i64().unwrap() + 1);
        row
    };
    let own = hold(1, 7, "mutex", 110, Some(120));
    let woken = |level: &str, number: &str, from: i64, latency: i64| json!({"level": level, number: 10, "ts_tick": from, "latency_tick": latency});
    let faults = [
        // Overlaps one of its depth; is inside of none, or longer than the one that it is inside of.
        ("interrupts-nest", "interrupts", interrupt(0, 0, 129, 140), 129),
        ("interrupts-nest", "interrupts", inside(140, interrupt(0, 1, 140, 150)), 140),
        ("interrupts-nest", "interrupts", inside(170, interrupt(0, 1, 172, 176)), 172),
        ("interrupts-nest", "interrupts", inside(100, interrupt(0, 2, 121, 125)), 121),
        // Says that it is inside of another one, of none, or, at depth 0, of one.
        ("interrupts-nest", "interrupts", inside(101, interrupt(0, 1, 121, 125)), 121),
        ("interrupts-nest", "interrupts", interrupt(0, 1, 121, 125), 121),
        ("interrupts-nest", "interrupts", inside(120, interrupt(1, 0, 181, 182)), 181),
        ("spans-nest", "spans", inside(105, span(Some(2), 10, 1, 121, 122)), 121),
        ("one-syscall-per-lwp", "syscalls", syscall(10, Some("futex"), 159, 165), 159),
        ("one-syscall-per-lwp", "syscalls", syscall(11, None, 100, 121), 120),
        ("syscall-off-cpu-time", "syscalls", longer(syscall(12, None, 170, 180), "off_cpu_tick"), 170),
        ("syscall-off-cpu-time", "syscalls", negative(syscall(12, None, 170, 180), "off_cpu_tick"), 170),
        ("spans-nest", "spans", span(Some(1), 10, 0, 159, 170), 159),
        ("spans-nest", "spans", inside(110, span(Some(1), 10, 2, 125, 135)), 125),
        ("spans-nest", "spans", span(None, 10, 0, 164, 170), 164),
        ("spans-nest", "spans", inside(150, span(None, 11, 1, 149, 160)), 149),
        ("span-active-time", "spans", longer(span(Some(2), 10, 0, 170, 180), "active_tick"), 170),
        ("span-active-time", "spans", negative(span(Some(2), 10, 0, 170, 180), "active_tick"), 170),
        // After its end and before the next of its number; across both; of a thread that is in no table.
        ("spans-within-life", "spans", span(Some(1), 10, 0, 181, 182), 181),
        ("spans-within-life", "spans", span(Some(1), 10, 0, 170, 195), 170),
        ("spans-within-life", "spans", span(Some(9), 10, 0, 150, 160), 150),
        ("one-holder-per-lock", "locks", hold(2, 9, "mutex", 169, Some(180)), 169),
        ("one-holder-per-lock", "locks", hold(2, 9, "rwlock-write", 149, Some(160)), 149),
        ("lock-times", "locks", negative(own.clone(), "wait_tick"), 105),
        ("lock-times", "locks", negative(own, "hold_tick"), 105),
        // It runs already; it only begins to sleep; it does not run before it was woken.
        ("wakeups-end-in-dispatches", "wakeups", woken("KERN", "lwp", 160, 11), 160),
        ("wakeups-end-in-dispatches", "wakeups", woken("KERN", "lwp", 140, 10), 140),
        ("wakeups-end-in-dispatches", "wakeups", woken("KERN", "lwp", 180, -10), 180),
        ("wakeups-end-in-dispatches", "wakeups", woken("USER", "thread", 140, 10), 140),
        (
            "wakeups-end-in-dispatches",
            "wakeups",
            json!({"level": "USER", "thread": 2, "ts_tick": 90, "latency_tick": 10}),
            90,
        ),
        ("counters-not-negative", "counters", json!({"ts_tick": 110, "kind": "run-queue", "value": -1}), 110),
        // Before its process, across the ends of two with its number, of none, after the end.
        ("lwps-within-processes", "lwps", lwp(13, Some(70), 99, Some(140)), 13),
        ("lwps-within-processes", "lwps", lwp(13, Some(70), 140, Some(170)), 13),
        ("lwps-within-processes", "lwps", lwp(13, Some(71), 120, Some(130)), 13),
        ("lwps-within-processes", "lwps", lwp(13, Some(70), 140, None), 13),
    ];
    // Those of different tables do not touch each other: one of each table at a time.
    let mut left = faults.to_vec();
    while !left.is_empty() {
        let mut planted: Vec<(&str, &str, Value, i64)> = Vec::new();
        left.retain(|fault| {
            let is_next = planted.iter().all(|(_, table, ..)| *table != fault.1);
            if is_next {
                planted.push(fault.clone());
            }
            !is_next
        });
        let mut little = sound();
        for (_, table, row, _) in &planted {
            little.row(table, row.clone());
        }
        let r = report(&little).await;
        for (name, _, row, first) in &planted {
            let item = r.item(name).unwrap();
            assert_eq!(item.verdict, Verdict::Broken, "{row} {item:?}");
            let what = if *name == "lwps-within-processes" { "LWP" } else { "at tick" };
            let detail = format!("first: {what} {first}");
            assert_eq!((item.figures[1].value, item.detail.as_str()), (1.0, detail.as_str()), "{row}");
        }
        let is_planted = |name: &&str| planted.iter().any(|(planted, ..)| planted == name);
        let others = INVARIANTS.map(|(name, _)| name).into_iter().filter(|name| !is_planted(name));
        let broken: Vec<_> = others.filter(|other| verdict(&r, other) == Verdict::Broken).collect();
        assert_eq!(broken, [""; 0], "{planted:?}");
    }
}
