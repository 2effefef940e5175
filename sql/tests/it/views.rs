//! The names a user meets in SQL: tables with nanoseconds, a view per event type, Perfetto's names.

use std::path::Path;

use crate::{asked::answer, support::Little};
use datafusion::{
    logical_expr::{ident, lit},
    physical_plan::{ExecutionPlanProperties, displayable},
};
use serde_json::json;
use sigmund_model::tables::EVENTS;
use sigmund_sql::{ErrorKind, Fleet, Parameters, SuperTrace};

fn event_type(level: &str, code: i64, name: &str, fields: &[(&str, &str)]) -> serde_json::Value {
    let (names, types): (Vec<_>, Vec<_>) = fields.iter().copied().unzip();
    json!({"level": level, "code": code, "name": name, "field_names": names, "field_types": types})
}

#[tokio::test]
async fn tables_have_nanoseconds_beside_ticks() {
    let mut little = Little::new();
    little.info("tick_hz", 2e9).info("first_tick", 1000).info("last_tick", 9000);
    little
        .row("active", json!({"ts_tick": 3001, "dur_tick": 5, "thread": 1, "lwp": 2, "end_reason": "yield"}));
    little.row("lwps", json!({"lwp": 2, "ts_tick": 1000, "on_cpu_tick": 8, "unmounted_tick": 4}));
    let trace = SuperTrace::open(little.write()).await.unwrap();
    assert_eq!(answer(&trace, "SELECT ts_tick, ts_ns, dur_ns FROM active").await, ["3001 1000 3"]);
    assert_eq!(answer(&trace, "SELECT on_cpu_ns, unmounted_ns, dur_ns FROM lwps").await, ["4 2 "]);
    assert_eq!(answer(&trace, "SELECT COUNT(*) FROM raw_active").await, ["1"]);
}

#[tokio::test]
async fn without_the_rate_of_the_clock_nanoseconds_are_null() {
    let mut little = Little::new();
    little.row("active", json!({"ts_tick": 3001, "dur_tick": 5, "thread": 1, "lwp": 2}));
    let trace = SuperTrace::open(little.write()).await.unwrap();
    assert_eq!(answer(&trace, "SELECT dur_tick, dur_ns FROM active").await, ["5 "]);
}

#[tokio::test]
async fn an_event_type_has_a_view_with_its_fields_in_their_types() {
    let mut little = Little::new();
    let fields = [
        ("next_pid", "i64"),
        ("comm", "text"),
        ("addr", "pointer"),
        ("load", "f64"),
        ("ok", "bool"),
        ("who", "thread"),
    ];
    little.row("event_types", event_type("KERN", 5, "sched_switch", &fields));
    little.row(
        "events",
        json!({"ts_tick": 1, "level": "KERN", "code": 5, "name": "sched_switch", "cpu": 3,
               "args": [-7, null, -1, 1.5f64.to_bits() as i64, 1, 0], "texts": [null, "my prog"]}),
    );
    let trace = SuperTrace::open(little.write()).await.unwrap();
    let query = "SELECT cpu, next_pid, comm, addr, load, ok, who FROM sched_switch";
    assert_eq!(answer(&trace, query).await, ["3 -7 my prog 18446744073709551615 1.5 true "]);
}

#[tokio::test]
async fn parameters_of_listings_have_no_names_and_are_numbered() {
    let mut little = Little::new();
    little.row("event_types", event_type("KERN", 1, "IRQ", &[("", "i64")]));
    little.row("events", json!({"level": "KERN", "code": 1, "name": "IRQ", "args": [24], "texts": ["eth0"]}));
    let trace = SuperTrace::open(little.write()).await.unwrap();
    assert_eq!(answer(&trace, "SELECT param1, param1_text FROM IRQ").await, ["24 eth0"]);
}

#[tokio::test]
async fn odd_names_of_events_and_fields_are_quoted_and_kept_apart() {
    let mut little = Little::new();
    let odd = "a\"b.c; DROP TABLE events --";
    little.row(
        "event_types",
        event_type("USER", 1, odd, &[("x y\"", "i64"), ("cpu", "i64"), ("x y\"", "i64")]),
    );
    little.row("event_types", event_type("USER", 2, "events", &[("n", "i64")]));
    little.row("event_types", event_type("USER", 3, "Events", &[]));
    little.row("event_types", event_type("USER", 4, "sched_slice", &[]));
    little.row("events", json!({"level": "USER", "code": 1, "name": odd, "cpu": 2, "args": [7, 8, 9]}));
    little.row("events", json!({"level": "USER", "code": 2, "name": "events", "args": [5]}));
    let trace = SuperTrace::open(little.write()).await.unwrap();
    let query = r#"SELECT cpu, "x y""", "field_cpu", "field_x y""" FROM "a""b.c; DROP TABLE events --""#;
    assert_eq!(answer(&trace, query).await, ["2 7 8 9"]);
    assert_eq!(answer(&trace, "SELECT n FROM event_events").await, ["5"]);
    assert_eq!(answer(&trace, "SELECT count(*) FROM events").await, ["2"]);
    assert_eq!(trace.event_view("events"), Some("event_events"));
    assert_eq!(trace.event_view("sched_slice"), Some("event_sched_slice"));
    assert_eq!(trace.event_view("Events"), Some("Events"));
}

#[tokio::test]
async fn types_of_one_name_share_a_view_with_the_fields_of_all() {
    let mut little = Little::new();
    little.row("event_types", event_type("KERN", 1, "tick", &[("a", "i64"), ("b", "i64")]));
    little.row("event_types", event_type("USER", 1, "tick", &[("b", "text"), ("c", "u64")]));
    little.row("events", json!({"ts_tick": 1, "level": "KERN", "code": 1, "name": "tick", "args": [1, 2]}));
    little.row(
        "events",
        json!({"ts_tick": 2, "level": "USER", "code": 1, "name": "tick", "args": [null, 4], "texts": ["two"]}),
    );
    little.row("event_types", event_type("KERN", 2, "twin", &[("a", "i64")]));
    little.row("event_types", event_type("USER", 3, "twin", &[("a", "i64")]));
    little.row("events", json!({"ts_tick": 3, "level": "USER", "code": 3, "name": "twin", "args": [6]}));
    let trace = SuperTrace::open(little.write()).await.unwrap();
    assert_eq!(answer(&trace, "SELECT a, b, c FROM tick ORDER BY ts_tick").await, ["1 2 ", " two 4"]);
    assert_eq!(answer(&trace, "SELECT a FROM twin").await, ["6"]);
}

#[tokio::test]
async fn perfetto_finds_its_own_names() {
    let mut little = Little::new();
    little.info("tick_hz", 1e9).info("first_tick", 100);
    for (tick, lwp, state, reason) in
        [(100, 7, "running", "preempted"), (110, 7, "runnable", "dispatched"), (100, 0, "running", "slept")]
    {
        let letters = if lwp == 0 { "S" } else { "R+" };
        let row = json!({"ts_tick": tick, "dur_tick": 10, "lwp": lwp, "state": state, "cpu": 1,
                         "end_reason": reason, "end_state": letters});
        little.row("lwp_states", row);
    }
    let trace = SuperTrace::open(little.write()).await.unwrap();
    assert_eq!(
        answer(&trace, "SELECT ts, dur, cpu, utid, end_state FROM sched_slice").await,
        ["0 10 1 7 R+"]
    );
    let states = answer(&trace, "SELECT ts, utid, state FROM thread_state ORDER BY ts").await;
    assert_eq!(states, ["0 7 Running", "10 7 R+"]);
    assert_eq!(answer(&trace, "SELECT count(DISTINCT id), min(id) >= 0 FROM thread_state").await, ["2 true"]);
}

/// A switch from one state to the next may take no tick.
#[tokio::test]
async fn states_without_a_length_have_ids_of_their_own() {
    let mut little = Little::new();
    for (state, reason) in [("running", "preempted"), ("runnable", "dispatched")] {
        let row =
            json!({"ts_tick": 100, "dur_tick": 0, "lwp": 7, "state": state, "cpu": 1, "end_reason": reason});
        little.row("lwp_states", row);
    }
    let trace = SuperTrace::open(little.write()).await.unwrap();
    assert_eq!(answer(&trace, "SELECT count(DISTINCT id) FROM thread_state").await, ["2"]);
}

#[tokio::test]
async fn perfettos_slices_have_ids_and_threads() {
    let mut little = Little::new();
    little.info("tick_hz", 1e9).info("first_tick", 100);
    little.row("lwps", json!({"lwp": 70, "pid": 70, "name": "main", "ts_tick": 100}));
    little.row("processes", json!({"pid": 70, "name": "server", "ts_tick": 100}));
    little.row("threads", json!({"thread": 5, "pid": 70, "name": "worker", "ts_tick": 100}));
    for (tick, thread, depth, name) in
        [(110, Some(5), 0, "request"), (110, Some(5), 1, "parse"), (110, None, 0, "poll")]
    {
        let row = json!({"ts_tick": tick, "dur_tick": 5, "thread": thread, "lwp": 70, "kind": "span", "name": name, "depth": depth,
                         "parent_tick": (depth > 0).then_some(110)});
        little.row("spans", row);
    }
    little.row("syscalls", json!({"ts_tick": 110, "dur_tick": 2, "lwp": 70, "name": "read"}));
    little.row("interrupts", json!({"ts_tick": 110, "dur_tick": 1, "cpu": 0, "kind": "irq", "name": "eth0"}));
    little.row("cpus", json!({"cpu": 0}));
    let trace = SuperTrace::open(little.write()).await.unwrap();
    assert_eq!(answer(&trace, "SELECT count(DISTINCT id), count(*) FROM slices").await, ["5 5"]);
    let same =
        "SELECT count(*) FROM slice a JOIN slices b ON a.id = b.id AND a.name = b.name AND a.depth = b.depth";
    assert_eq!(answer(&trace, same).await, ["5"]);
    let of_threads = "SELECT name, utid, thread, thread_name, is_main_thread, pid, process_name FROM thread_slice ORDER BY name";
    let expected = [
        "parse 4294967301 5 worker 0 70 server",
        "poll 70  main 1 70 server",
        "request 4294967301 5 worker 0 70 server",
        "sys_read 70  main 1 70 server",
    ];
    assert_eq!(answer(&trace, of_threads).await, expected);
    // A user thread is a thread, and what it is inside of has an id.
    let by_name =
        "SELECT slice.name, thread.name, tid FROM slice JOIN thread_track ON slice.track_id = thread_track.id
                   JOIN thread USING (utid) WHERE slice.name <> 'sys_read' ORDER BY 1";
    assert_eq!(answer(&trace, by_name).await, ["parse worker ", "poll main 70", "request worker "]);
    for view in ["slice", "thread_slice"] {
        let parents = format!("SELECT s.name, p.name FROM {view} s JOIN slice p ON s.parent_id = p.id");
        assert_eq!(answer(&trace, &parents).await, ["parse request"], "{view}");
        let outermost = format!("SELECT count(*) FROM {view} WHERE parent_id IS NULL AND depth = 0");
        let count = if view == "slice" { "4" } else { "3" };
        assert_eq!(answer(&trace, &outermost).await, [count], "{view}");
    }
    let tracks = "SELECT id, name, cpu, upid FROM counter_track ORDER BY id";
    assert_eq!(answer(&trace, tracks).await, ["-1 run-queue 0 ", "70 ready-queue  70"]);
}

#[tokio::test]
async fn views_of_tables_that_were_left_out_are_left_out_and_others_stay() {
    let mut little = Little::new();
    little.info("left_out_tables", "processes,spans").left_out = vec!["processes", "spans"];
    let trace = SuperTrace::open(little.write()).await.unwrap();
    for view in ["counter", "thread", "thread_track", "cpu_counter_track", "sched"] {
        assert!(trace.sql(&format!("SELECT * FROM {view}")).await.is_ok(), "{view}");
    }
    for view in ["process", "slice", "slices", "thread_slice", "counter_track"] {
        assert!(trace.sql(&format!("SELECT * FROM {view}")).await.is_err(), "{view}");
    }
}

#[tokio::test]
async fn filters_and_columns_reach_parquet_through_the_views() {
    let mut little = Little::new();
    little.info("tick_hz", 1e9).rows_per_group = 10;
    little.row("event_types", event_type("KERN", 5, "irq", &[("n", "i64")]));
    for tick in 0..100 {
        little.row(
            "events",
            json!({"ts_tick": tick, "level": "KERN", "code": 5, "name": "irq", "cpu": 1, "args": [tick]}),
        );
    }
    let trace = SuperTrace::open(little.write()).await.unwrap();

    let plan = answer(&trace, "EXPLAIN SELECT cpu FROM events WHERE ts_tick >= 95").await.join("\n");
    assert!(plan.contains("projection=[cpu]"), "{plan}");
    assert!(plan.contains("predicate=ts_tick") && plan.contains("pruning_predicate"), "{plan}");
    assert!(!plan.contains("1000000000"), "the nanoseconds are computed though nobody asked:\n{plan}");

    let plan = answer(&trace, "EXPLAIN ANALYZE SELECT n FROM irq WHERE ts_tick >= 95").await.join("\n");
    assert!(plan.contains("row_groups_pruned_statistics=10 total → 1 matched"), "{plan}");

    let plan = answer(&trace, "EXPLAIN SELECT * FROM events ORDER BY ts_tick").await.join("\n");
    assert!(!plan.contains("SortExec"), "events lie in the order of time:\n{plan}");
}

#[tokio::test]
async fn a_session_only_reads() {
    let little = Little::new();
    let trace = SuperTrace::open(little.write()).await.unwrap();
    for query in [
        "CREATE TABLE t AS SELECT 1",
        "DROP VIEW events",
        "INSERT INTO raw_events SELECT * FROM raw_events",
        "COPY events TO 'x.parquet'",
        "SET datafusion.execution.batch_size = 1",
        "CREATE EXTERNAL TABLE t STORED AS PARQUET LOCATION '/tmp'",
        "EXPLAIN ANALYZE COPY events TO 'x.parquet'",
        "CREATE FUNCTION f() RETURNS INT RETURN 1",
    ] {
        let error = trace.sql(query).await.expect_err(query);
        assert!(error.to_string().contains("only read"), "{query}: {error}");
        assert_eq!(error.kind(), ErrorKind::Refused, "{query}");
    }
    let advice = [
        ("CREATE VIEW v AS SELECT 1", "WITH name AS"),
        ("INCLUDE PERFETTO MODULE slices.with_context", "leave it out"),
        (
            "CREATE VIRTUAL TABLE j USING SPAN_JOIN(a PARTITIONED utid, b PARTITIONED utid)",
            "overlap(a, b, key)",
        ),
    ];
    for (query, advice) in advice {
        let error = trace.sql(query).await.expect_err(query);
        assert!(error.kind() == ErrorKind::Refused && error.to_string().contains(advice), "{query}: {error}");
    }
    for query in ["SELEC 1", "SELECT nothing FROM events", "SELECT * FROM '/etc/passwd'"] {
        assert_eq!(trace.sql(query).await.expect_err(query).kind(), ErrorKind::Query, "{query}");
    }
    assert!(trace.sql("SHOW TABLES").await.is_ok());
    assert!(trace.sql("DESCRIBE events").await.is_ok());
}

#[tokio::test]
async fn in_file_order_reads_file_by_file_without_a_sort() {
    let mut little = Little::new();
    for file in 0..12i64 {
        for tick in 0..10 {
            little.row("events", json!({"ts_tick": file * 9 + tick, "level": "KERN", "name": "e", "cpu": 1}));
        }
        little.next_part("events");
    }
    let trace = SuperTrace::open(little.write()).await.unwrap();
    let events = trace.raw(&EVENTS).await.unwrap().filter(ident("cpu").eq(lit(1))).unwrap();
    let plan = trace.in_file_order(events).create_physical_plan().await.unwrap();
    assert_eq!(plan.output_partitioning().partition_count(), 1);
    let plan = displayable(plan.as_ref()).indent(false).to_string();
    for other in ["Sort", "Repartition", "Merge", "Coalesce"] {
        assert!(!plan.contains(other), "{plan}");
    }

    let query = "EXPLAIN SELECT max(ts_tick) OVER (ROWS BETWEEN 1 PRECEDING AND 1 PRECEDING) FROM raw_events";
    let window = trace.sql(query).await.unwrap().into_frame();
    let plan = trace.in_file_order(window).to_string().await.unwrap();
    assert!(plan.contains("BoundedWindowAggExec") && !plan.contains("SortExec"), "{plan}");
}

#[tokio::test]
async fn many_fields_of_one_name_have_columns_up_to_a_limit_that_is_told() {
    let mut little = Little::new();
    let fields = vec![("x", "i64"); 8000];
    little.row("event_types", event_type("USER", 1, "wide", &fields));
    little.row("event_types", event_type("USER", 2, "narrow", &[("x", "i64"), ("x", "i64")]));
    let args: Vec<i64> = (1..=8000).collect();
    little.row("events", json!({"ts_tick": 1, "level": "USER", "code": 1, "name": "wide", "args": args}));
    let trace = SuperTrace::open(little.write()).await.unwrap();
    assert_eq!(answer(&trace, "SELECT count(field_x) FROM narrow").await, ["0"]);
    assert_eq!(trace.notes(), Vec::<String>::new());
    let query = "SELECT x, field_x, field_x_2, field_x_999 FROM wide";
    assert_eq!(answer(&trace, query).await, ["1 2 3 1000"]);
    let notes = trace.notes();
    let [note] = notes.as_slice() else { panic!("{notes:?}") };
    assert!(note.contains("the view wide has 1000 columns of fields, and 7000 fields"), "{note}");
    // What the note says is true.
    assert_eq!(answer(&trace, "SELECT args[8000] FROM events WHERE name = 'wide'").await, ["8000"]);
    assert!(trace.sql("SELECT field_x_1000 FROM wide").await.is_err());
}

#[tokio::test]
async fn many_types_of_one_name_share_a_view_of_limited_size() {
    let mut little = Little::new();
    for code in 0..5000 {
        let own = format!("only_{code}");
        little.row("event_types", event_type("USER", code, "many", &[("x", "i64"), (&own, "i64")]));
    }
    little.row("events", json!({"level": "USER", "code": 7, "name": "many", "args": [3, 4]}));
    let trace = SuperTrace::open(little.write()).await.unwrap();
    assert_eq!(answer(&trace, "SELECT x, only_7, only_8 FROM many").await, ["3 4 "]);
    assert!(trace.notes()[0].contains("fields of many are in none"), "{:?}", trace.notes());
}

#[tokio::test]
async fn a_trace_of_many_event_types_opens_and_answers_about_one_of_them() {
    let mut little = Little::new();
    for code in 0..20_000 {
        let mut declared = event_type("USER", code, &format!("event_{code}"), &[("a", "i64"); 3]);
        declared["events"] = json!(u32::from(code >= 19_998));
        little.row("event_types", declared);
    }
    little.row("events", json!({"level": "USER", "code": 19_999, "name": "event_19999", "args": [1, 2, 3]}));
    let trace = SuperTrace::open(little.write()).await.unwrap();
    assert_eq!(answer(&trace, "SELECT a, field_a, field_a_2 FROM event_19999").await, ["1 2 3"]);
    let listed = "SELECT table_name FROM information_schema.tables WHERE table_name LIKE 'event_1%'";
    assert_eq!(answer(&trace, listed).await, ["event_19998", "event_19999"], "those that occur");
    assert!(answer(&trace, "SELECT 1 FROM event_0").await.is_empty());
}

#[tokio::test]
async fn a_drawn_table_cannot_steer_a_terminal_and_has_a_line_for_each_row() {
    let mut little = Little::new();
    let hostile = "\x1b[2J\u{9b}\u{202e}\nforged\té";
    little.row("event_types", event_type("USER", 1, hostile, &[(hostile, "text")]));
    little.row("threads", json!({"thread": 1, "name": hostile}));
    little.row("events", json!({"level": "USER", "code": 1, "name": hostile, "texts": [hostile]}));
    let trace = SuperTrace::open(little.write()).await.unwrap();
    let of_event = format!("SELECT * FROM \"{hostile}\"");
    for query in ["SELECT * FROM threads", "SELECT name, texts FROM events", &of_event] {
        let text = trace.sql(query).await.unwrap().to_text().await.unwrap();
        assert!(text.contains(r"\u{1b}[2J\u{9b}\u{202e}\nforged\té"), "{query}: {text}");
        assert!(
            !text.contains(|c: char| (c.is_control() && c != '\n') || c == '\u{202e}'),
            "{query}: {text:?}"
        );
        assert_eq!(text.lines().count(), 5, "{query}: {text}");
    }
    let drawn = trace.sql("SELECT * FROM active").await.unwrap().draw().await.unwrap();
    assert!(drawn.rows == 0 && drawn.text.contains("end_reason"), "{drawn:?}");
}

#[tokio::test]
async fn one_long_name_does_not_make_every_row_of_a_table_as_long() {
    let mut little = Little::new();
    little.row("threads", json!({"thread": 0, "name": "x".repeat(1 << 20)}));
    for thread in 1..5000 {
        little.row("threads", json!({"thread": thread, "name": "short"}));
    }
    let trace = SuperTrace::open(little.write()).await.unwrap();
    let text = trace.sql("SELECT thread, name FROM threads").await.unwrap().to_text().await.unwrap();
    assert!(text.len() < 256 << 20, "{} bytes", text.len());
    // Alone it is shown in one line, too: as much of it as a line can have.
    let one = trace.sql("SELECT name FROM threads WHERE thread = 0").await.unwrap().to_text().await.unwrap();
    assert_eq!(one.lines().count(), 5);
    assert!(one.contains(&("x".repeat(32_000) + "…")));
}

#[tokio::test]
async fn the_catalog_has_a_sentence_for_every_table_view_and_column() {
    let mut little = Little::new();
    little.row("event_types", event_type("USER", 5, "tick", &[("n", "i64")]));
    let trace = SuperTrace::open(little.write()).await.unwrap();
    let relations = trace.relations();
    let names: Vec<&str> = relations.iter().map(|relation| relation.name.as_str()).collect();
    assert!(
        ["events", "off_cpu", "sched_slice", "raw_events"].iter().all(|name| names.contains(name)),
        "{names:?}"
    );
    for relation in &relations {
        assert!(!relation.sentence.is_empty(), "{relation:?}");
        for column in trace.describe(&relation.name).await.unwrap() {
            assert!(!column.sentence.is_empty(), "{}: {column:?}", relation.name);
            let is_time = column.column.ends_with("_tick") || column.column.ends_with("_ns");
            assert!(!is_time || !column.unit.is_empty(), "{}: {column:?}", relation.name);
        }
    }
    let described = answer(&trace, "DESCRIBE off_cpu").await;
    assert!(described.iter().any(|line| line.starts_with("dur_ns BIGINT ns How long")), "{described:?}");
}

#[tokio::test]
async fn a_mistyped_table_gets_the_nearest_names() {
    let trace = SuperTrace::open(Little::new().write()).await.unwrap();
    for query in ["SELECT * FROM evnets", "DESCRIBE evnets", "SELECT 1 FROM lwps JOIN evnets ON true"] {
        let error = trace.sql(query).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Query);
        assert!(error.to_string().contains("found `evnets`; nearest: events"), "{error}");
    }
    let error = trace.sql("SELECT ts_tik FROM events").await.unwrap_err().to_string();
    assert!(error.contains("ts_tick"), "{error}");
}

#[tokio::test]
async fn parameters_are_values_and_never_a_part_of_the_query() {
    let mut little = Little::new();
    little.info("it's", 1);
    let trace = SuperTrace::open(little.write()).await.unwrap();
    let with = async |query: &str, values: &[(&str, &str)]| {
        let values = values.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
        match trace.sql_with(query, &Parameters(values)).await {
            Ok(result) => result.to_text().await.unwrap().lines().nth(3).unwrap_or_default().to_string(),
            Err(error) => error.to_string(),
        }
    };
    assert!(with("SELECT $n + 1 AS n", &[("n", "-41")]).await.contains("-40"));
    assert!(with("SELECT $n AS n", &[("n", "1.5")]).await.contains("1.5"));
    assert!(with("SELECT value FROM info WHERE key = $key", &[("key", "it's")]).await.contains("1"));
    assert!(
        with("SELECT count(*) FROM info WHERE key = $key", &[("key", "' OR 1=1 --")]).await.contains("0")
    );
    for (value, of) in [("NULL", "true"), ("'NULL'", "false"), ("null", "false")] {
        assert!(with("SELECT $x IS NULL AS n", &[("x", value)]).await.contains(of), "{value}");
    }
    assert!(with("SELECT NOT $x AS n", &[("x", "TRUE")]).await.contains("false"));
    assert!(with("SELECT $thred", &[("thread", "1")]).await.contains("found $thred; nearest: thread"));
}

#[tokio::test]
async fn several_super_traces_are_schemas_of_one_session() {
    let trace_of = |threads: u64| {
        let mut little = Little::new();
        for thread in 0..threads {
            little.row("active", json!({"ts_tick": 3001, "dur_tick": 5, "thread": thread, "lwp": 2}));
        }
        little.row("event_types", event_type("USER", 7, "received", &[("len", "u64")]));
        little
    };
    let (a, b) = (trace_of(1), trace_of(3));
    let mut trace = SuperTrace::open(a.write()).await.unwrap();
    trace.name("a").unwrap();
    trace.attach("b", SuperTrace::open(b.write()).await.unwrap()).unwrap();
    let counts = "SELECT (SELECT count(*) FROM active) AS x, (SELECT count(*) FROM a.active) AS y, (SELECT count(*) FROM b.active) AS z";
    assert_eq!(answer(&trace, counts).await, ["1 1 3"]);
    let both = "SELECT x.thread FROM a.active AS x JOIN b.active AS y ON x.thread = y.thread";
    assert_eq!(answer(&trace, both).await, ["0"]);
    assert_eq!(answer(&trace, "SELECT count(*) FROM b.received").await, ["0"]);
    assert!(answer(&trace, "DESCRIBE b.active").await.iter().any(|row| row.starts_with("dur_ns")));
    assert_eq!(trace.describe("b.active").await.unwrap(), trace.describe("active").await.unwrap());
    let error = trace.describe("b.actve").await.err().unwrap().to_string();
    assert!(error.contains("nearest: active"), "{error}");
    let error = trace.sql("SELECT * FROM b.actve").await.err().unwrap().to_string();
    assert!(error.contains("nearest: active"), "{error}");
    let other = || async { SuperTrace::open(trace_of(0).write()).await.unwrap() };
    for taken in ["a", "b", "public", "information_schema"] {
        let error = trace.attach(taken, other().await).err().unwrap().to_string();
        assert!(error.contains("another name") && error.contains(taken), "{error}");
    }
}

// Views are planned when they are first named: when the fleet is there, and names without a schema are of all hosts.
#[tokio::test]
async fn in_a_fleet_the_views_of_a_host_are_of_that_host() {
    let littles: Vec<Little> = (1..=2)
        .map(|host| {
            let mut little = Little::new();
            little.info("tick_hz", 1e9).info("first_tick", 1).info("last_tick", 9);
            for thread in 0..host {
                little.row("thread_states", json!({"ts_tick": 1, "dur_tick": 2, "thread": thread, "state": "new", "end_reason": "dispatched"}));
            }
            little
        })
        .collect();
    let mut hosts = Vec::new();
    for (name, little) in ["a", "b"].into_iter().zip(&littles) {
        hosts.push((name.to_owned(), SuperTrace::open(little.write()).await.unwrap()));
    }
    let fleet = Fleet::of(Path::new("fleet"), hosts).unwrap().trace;
    let views = ["ready_latency", "thread_states"];
    for view in views {
        let of = |schema: &str| format!("SELECT count(*) FROM {schema}{view}");
        assert_eq!(answer(&fleet, &of("a.")).await, ["1"], "{view}");
        assert_eq!(answer(&fleet, &of("b.")).await, ["2"], "{view}");
        assert_eq!(answer(&fleet, &of("")).await, ["3"], "{view}");
    }
}

#[tokio::test]
async fn every_column_of_every_view_can_be_aggregated() {
    let mut little = Little::new();
    little.info("tick_hz", 1e9).info("first_tick", 1).info("last_tick", 9);
    for thread in [1, 2] {
        little.row("thread_states", json!({"ts_tick": 1, "dur_tick": 2, "thread": thread, "state": "new", "end_reason": "dispatched"}));
    }
    let trace = SuperTrace::open(little.write()).await.unwrap();
    let mut aggregated = 0;
    for relation in trace.relations() {
        for column in
            trace.describe(&relation.name).await.unwrap().iter().filter(|column| !column.ty.contains('['))
        {
            let query = format!("SELECT max(\"{}\"), count(*) FROM \"{}\"", column.column, relation.name);
            let result = trace.sql(&query).await.unwrap().to_text().await;
            assert!(result.is_ok(), "{query}: {result:?}");
            aggregated += 1;
        }
    }
    assert!(aggregated > 150, "{aggregated}");
    assert_eq!(answer(&trace, "SELECT max(latency_tick) FROM ready_latency").await, ["2"]);
}

#[tokio::test]
async fn null_comes_last() {
    let trace = SuperTrace::open(Little::new().write()).await.unwrap();
    let rows = "FROM (VALUES (2), (NULL), (1)) AS t(x) ORDER BY x";
    assert_eq!(answer(&trace, &format!("SELECT x {rows}")).await, ["1", "2", ""]);
    assert_eq!(answer(&trace, &format!("SELECT x {rows} DESC")).await, ["2", "1", ""]);
    assert_eq!(answer(&trace, &format!("SELECT x {rows} DESC NULLS FIRST")).await, ["", "2", "1"]);
}
