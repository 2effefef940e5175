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
    listing_of(LISTING)
}

/// A listing whose first seven columns are separated by spaces.
pub(crate) fn listing_of(lines: &str) -> String {
    let line = |line: &str| {
        let cells: Vec<&str> = if line.starts_with('#') { vec![line] } else { line.splitn(8, ' ').collect() };
        cells.join("\t") + "\n"
    };
    lines.lines().map(line).collect()
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
    assert_eq!(slices, "ts,dur,category,name,utid\n9,31,syscall,sys_read,70\n75,5,irq,eth0,\n");
    let states = asked(
        &sigmund,
        "SELECT s.end_state, count(*) AS times FROM sched_slice s JOIN thread t ON s.utid = t.utid
         WHERE t.tid = 70 GROUP BY 1 ORDER BY 2, 1",
    );
    assert_eq!(states, "end_state,times\nR,1\nS,1\n,1\n");
    let woken =
        "SELECT ts, utid, state, waker_utid, irq_context FROM thread_state WHERE waker_utid IS NOT NULL";
    assert_eq!(asked(&sigmund, woken), "ts,utid,state,waker_utid,irq_context\n25,70,R,80,0\n");
    // Who does not ask for a waker does not pay for the join.
    let plan = |columns: &str| {
        asked(&sigmund, &format!("EXPLAIN SELECT {columns} FROM thread_state GROUP BY state"))
    };
    assert!(plan("state, max(waker_utid)").contains("Join") && !plan("state, sum(dur)").contains("Join"));
    let counters = asked(&sigmund, "SELECT ts, value FROM counter WHERE name = 'run-queue' ORDER BY ts");
    assert_eq!(counters, "ts,value\n25,1.0\n30,0.0\n50,1.0\n70,0.0\n");
}

// Shapes of queries from Perfetto's documentation (docs/analysis: getting-started, common-queries; docs/data-sources:
// cpu-scheduling), with names of this trace.
#[test]
fn queries_of_perfettos_documentation_run_unchanged() {
    let sigmund = Sigmund::with_listing("t", &listing());
    let rows = |query: &str| asked(&sigmund, query).lines().skip(1).map(String::from).collect::<Vec<_>>();
    assert_eq!(rows("SELECT ts, dur, name FROM slice ORDER BY ts LIMIT 10"), ["9,31,sys_read", "75,5,eth0"]);
    let of_slice = "FROM slice JOIN thread_track ON thread_track.id = slice.track_id";
    assert_eq!(rows(&format!("SELECT utid {of_slice} WHERE slice.name = 'sys_read'")), ["70"]);
    assert_eq!(rows("SELECT tid, is_main_thread FROM thread WHERE utid = 70").len(), 1);
    let thread = format!(
        "SELECT thread.tid AS tid {of_slice} JOIN thread USING(utid) WHERE slice.name = 'sys_read' GROUP BY tid"
    );
    assert_eq!(rows(&thread), ["70"]);
    let deep = rows(
        "select ts, dur, cpu, end_state, priority, process.name, thread.name
         from sched_slice left join thread using(utid) left join process using(upid) order by ts",
    );
    assert_eq!(deep, rows(
        "SELECT sched.ts, sched.dur, sched.cpu, sched.end_state, sched.priority, process.name, thread.name
         FROM sched LEFT JOIN thread USING (utid) LEFT JOIN process USING (upid) ORDER BY sched.ts ASC",
    ));
    assert!(!deep.is_empty());
    let per_cpu =
        rows("SELECT cpu, SUM(dur) AS busy, MAX(ts_end) AS until FROM sched GROUP BY cpu ORDER BY cpu");
    assert_eq!(per_cpu, ["0,110,130", "1,130,130"]);
    let states =
        "SELECT utid, SUM(IIF(state = 'R', dur, 0)) AS runnable, SUM(IIF(state = 'D', dur, 0)) AS disk
                  FROM thread_state WHERE utid = 70 GROUP BY utid";
    assert_eq!(rows(states), ["70,25,0"]);
    let counters = rows(
        "SELECT ts, cpu, value FROM counter JOIN cpu_counter_track ON counter.track_id = cpu_counter_track.id
         WHERE cpu_counter_track.name = 'run-queue' AND value > 0 ORDER BY ts",
    );
    assert_eq!(counters, ["25,0,1.0", "50,0,1.0"]);
    let of_processes =
        "SELECT upid FROM counter JOIN process_counter_track ON process_counter_track.id = counter.track_id";
    sigmund.run(["sql", "t.supertrace", of_processes]).found_nothing();
    let percentiles = "SELECT name, COUNT(dur) AS count_slice, AVG(dur) / 1000000 AS avg_dur_ms,
                              CAST(MAX(dur) AS DOUBLE) / 1000000 AS max_dur_ms, PERCENTILE(dur,50) / 1000000 AS P50_dur_ms
                       FROM slice WHERE name LIKE '%ea%' GROUP BY name ORDER BY count_slice DESC LIMIT 10";
    assert_eq!(rows(percentiles).len(), 1);
    // SPAN_LEFT_JOIN(slice_with_utid PARTITIONED utid, thread_state PARTITIONED utid).
    let cpu_time = "SELECT slice_name, state, SUM(dur) AS time
        FROM overlap_left((SELECT ts, dur, slice.name AS slice_name, utid FROM slice
                           JOIN thread_track ON thread_track.id = slice.track_id JOIN thread USING (utid)),
                          (SELECT ts, dur, utid, state FROM thread_state), utid)
        GROUP BY slice_name, state ORDER BY state";
    assert_eq!(rows(cpu_time), ["sys_read,R,5", "sys_read,Running,11", "sys_read,S,15"]);
}

/// What Perfetto's documentation writes before a query: relations of the session, and a span join.
#[test]
fn views_of_perfettos_documentation_run_unchanged() {
    let sigmund = Sigmund::with_listing("t", &listing());
    let before = "INCLUDE PERFETTO MODULE slices.with_context;";
    let included = sigmund.run(["sql", "t.supertrace", before]);
    let notice = "slices.with_context: nothing is included";
    assert!(included.status == 0 && included.stderr.contains(notice), "{included:?}");
    let joined = "
        INCLUDE PERFETTO MODULE slices.with_context;
        CREATE VIEW slice_with_utid AS
        SELECT ts, dur, slice.name as slice_name, slice.id as slice_id, utid, thread.name as thread_name
        FROM slice JOIN thread_track ON thread_track.id = slice.track_id JOIN thread USING (utid);

        CREATE VIRTUAL TABLE slice_thread_state_breakdown
        USING SPAN_LEFT_JOIN(
          slice_with_utid PARTITIONED utid,
          thread_state PARTITIONED utid
        );

        SELECT slice_name, state, SUM(dur) AS time FROM slice_thread_state_breakdown
        GROUP BY slice_name, state ORDER BY state;";
    assert_eq!(
        asked(&sigmund, joined),
        "slice_name,state,time\nsys_read,R,5\nsys_read,Running,11\nsys_read,S,15\n"
    );
    let tables = "DROP VIEW IF EXISTS calls; CREATE PERFETTO TABLE calls AS SELECT name, dur FROM slice;
                  CREATE OR REPLACE PERFETTO VIEW calls AS SELECT name FROM slice; SELECT * FROM calls ORDER BY 1";
    assert_eq!(asked(&sigmund, tables), "name\neth0\nsys_read\n");
}

#[test]
fn fields_of_events_have_sentences() {
    let sigmund = Sigmund::with_listing("t", &listing());
    let of = |view: &str| {
        let shown = sigmund.run(["sql", "t.supertrace", "--schema", view, "--format", "tsv"]).found();
        assert!(shown.lines().all(|line| line.split('\t').count() == 4 && !line.ends_with('\t')), "{shown}");
        shown
    };
    let switch = of("sched_switch");
    assert!(switch.contains("next_pid\tBIGINT\t\tThe LWP that is switched in."), "{switch}");
    assert!(of("irq_handler_entry").contains("The number of an interrupt or a system call."));
    assert!(of("sys_enter").contains("args0\tBIGINT\t\tThe first argument of a system call."));
    assert!(of("sys_exit").contains("ret\tBIGINT\t\tThe return value of a system call."));
    of("USER_CONTEXT_SWITCH");
}

/// What SQLite has and others do not, as Perfetto's documentation and users write it.
#[test]
fn operators_and_functions_of_perfettos_sql_mean_the_same() {
    let sigmund = Sigmund::with_listing("t", &listing());
    for (query, expected) in [
        ("SELECT name FROM slice WHERE name GLOB 'sys_*'", "sys_read"),
        ("SELECT name FROM slice WHERE name NOT GLOB 'sys_*'", "eth0"),
        ("SELECT name FROM slice WHERE name REGEXP '^e.*0$'", "eth0"),
        ("SELECT name FROM slice WHERE name GLOB '[a-f]th?'", "eth0"),
        ("SELECT trace_start(), trace_end(), trace_dur() - max(ts + dur) >= 0 FROM slice", "0,130,true"),
        ("SELECT max(1, 3, 2), min(4, NULL), iif(min(1, 2) = 1, 'a', 'b')", "3,,a"),
        (
            "SELECT min(max(5, 0), 3), max(min(2, max(1, NULL)), 3), max((SELECT max(dur) FROM slice), 100)",
            "3,,100",
        ),
        ("SELECT CAST('12' AS LONG) + CAST(1.5 AS INT64), CAST(1 AS DOUBLE) / 2", "13,0.5"),
    ] {
        let answer = asked(&sigmund, query);
        assert_eq!(answer.lines().skip(1).collect::<Vec<_>>(), [expected], "{query}");
    }
    // In a view of the session, too, and a text is left as it is.
    let view = "CREATE VIEW calls AS SELECT name, 'x GLOB y' AS text FROM slice WHERE name GLOB 's*'; SELECT * FROM calls";
    assert_eq!(asked(&sigmund, view), "name,text\nsys_read,x GLOB y\n");
}

#[test]
fn a_view_lives_as_long_as_its_session() {
    let sigmund = Sigmund::with_listing("t", &listing());
    let define = "CREATE VIEW mine AS SELECT thread, dur_tick FROM active WHERE thread = $t";
    let with = |rest: &str| {
        let queries = format!("{define}; {rest}");
        sigmund.run(["sql", "t.supertrace", "-p", "t=5", &queries, "--format", "csv"])
    };
    let of_5 = asked(&sigmund, "SELECT count(*) AS n, sum(dur_tick) AS ticks FROM active WHERE thread = 5");
    assert_eq!(with("SELECT count(*) AS n, sum(dur_tick) AS ticks FROM mine").found(), of_5);
    assert!(with("SHOW TABLES").found().contains("public,mine,VIEW"));
    assert!(with("DESCRIBE mine").found().contains("dur_tick"));
    with("CREATE VIEW mine AS SELECT 1").complained(&["mine", "is defined already"]);
    with("CREATE VIEW two AS SELECT * FROM min").complained(&["found `min`; nearest: mine"]);
    with("DROP VIEW mine; SELECT * FROM mine").complained(&["found `mine`"]);
    sigmund.run(["sql", "t.supertrace", define, "-p", "t=5"]).found();
    sigmund
        .run(["sql", "t.supertrace", "CREATE VIEW a AS SELECT 1; CREATE -- b\nVIEW b AS SELECT 2"])
        .found();
    let kept = "CREATE VIEW a AS SELECT 1 AS x; CREATE VIEW IF NOT EXISTS A AS SELECT * FROM nothing; SELECT x FROM a";
    assert_eq!(sigmund.run(["sql", "t.supertrace", kept, "--format", "csv"]).found(), "x\n1\n");
    let typed =
        "CREATE PERFETTO TABLE t(when_ INT, id JOINID(slice.id)) AS SELECT 1, 2; SELECT when_, id FROM t";
    assert_eq!(sigmund.run(["sql", "t.supertrace", typed, "--format", "csv"]).found(), "when_,id\n1,2\n");
    sigmund.run(["sql", "t.supertrace", "CREATE VIEW a AS SELECT 1; SELECT 1 WHERE 1 = 2"]).found_nothing();
    let union = "CREATE VIEW u AS SELECT ts, dur, utid, 1 AS w FROM sched UNION ALL SELECT ts, dur, utid, 0.5 FROM thread_state;
                 SELECT count(*) > 0 AS some FROM overlap(u, sched, utid) WHERE w = 0.5";
    assert_eq!(asked(&sigmund, union), "some\ntrue\n");
    sigmund.run(["sql", "t.supertrace", "SELECT * FROM mine"]).complained(&["found `mine`"]);
    for (taken, said) in [
        ("CREATE OR REPLACE VIEW events AS SELECT 1", "this super-trace has"),
        ("CREATE VIEW sched_switch AS SELECT 1", "this super-trace has"),
        ("CREATE VIEW other.mine AS SELECT 1", "without a dot"),
        ("CREATE VIEW \"other.mine\" AS SELECT 1", "without a dot"),
        ("CREATE VIEW v AS SELECT slice.name, thread.name FROM slice, thread", "found `name` twice"),
        ("DROP VIEW event", "found `event`; nearest: events"),
        ("DROP VIEW events", "only read"),
        ("DROP TABLE spans", "only read"),
        ("CREATE VIEW mine AS SELECT * FROM nothing", "found `nothing`"),
        (
            "CREATE VIRTUAL TABLE j USING SPAN_JOIN(sched PARTITIONED cpu, slice PARTITIONED utid)",
            "overlap(a, b, key)",
        ),
    ] {
        sigmund.run(["sql", "t.supertrace", taken]).complained(&[said]);
    }
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
    sigmund
        .run(["sql", "t.supertrace", "CREATE VIEW syscalls AS SELECT 1"])
        .complained(&["this super-trace has"]);
    sigmund.run(["check", "t.supertrace"]).found();
    sigmund.run(["info", "t.supertrace"]).found();
    sigmund.run(["export", "t.supertrace", "--format", "paje", "-o", "t.trace"]).found();
    let wrong = sigmund.run(["merge", "t.tsv", "-o", "u.supertrace", "--tables", "calls"]);
    wrong.complained(&["calls", "syscalls"]);
}
