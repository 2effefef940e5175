//! Filters in combination, the order of rows, and the formats.

use crate::support::Little;
use serde_json::{Value, json};
use sigmund_model::{Cpu, Level};
use sigmund_query::{ErrorKind, EventPattern, Filter, Format, LwpList, ThreadRef, list};
use sigmund_sql::SuperTrace;

async fn printed(trace: &SuperTrace, filter: &Filter, format: Format) -> String {
    let mut out = Vec::new();
    list(trace, filter, format, &mut out).await.unwrap();
    String::from_utf8(out).unwrap()
}

async fn ticks(trace: &SuperTrace, filter: &Filter) -> Vec<i64> {
    let lines = printed(trace, filter, Format::Ndjson).await;
    let tick = |line: &str| serde_json::from_str::<Value>(line).unwrap()["date_tick"].as_i64().unwrap();
    lines.lines().map(tick).collect()
}

fn threads(names: &[&str]) -> Vec<ThreadRef> {
    names.iter().map(|n| n.parse().unwrap()).collect()
}

fn events(patterns: &[&str]) -> Vec<EventPattern> {
    patterns.iter().map(|p| p.parse().unwrap()).collect()
}

/// Two threads of one name on two LWPs, switches and wakeups, ticks 0 to 5 at 1 GHz.
fn some_events() -> Little {
    let mut little = Little::new();
    little.info("tick_hz", 1e9).info("first_tick", 100);
    for (level, code, name) in [("KERN", 1, "sched_switch"), ("KERN", 2, "sched_waking"), ("USER", 3, "say")]
    {
        little.row("event_types", json!({"level": level, "code": code, "name": name}));
    }
    for (thread, name) in [(1, "work"), (2, "work"), (3, "other")] {
        little.row("threads", json!({"thread": thread, "name": name}));
    }
    for row in [
        json!({"ts_tick": 100, "level": "KERN", "code": 1, "name": "sched_switch", "cpu": 0, "lwp": 9, "target_thread": 1}),
        json!({"ts_tick": 101, "level": "USER", "code": 3, "name": "say", "cpu": 0, "lwp": 10, "thread": 1}),
        json!({"ts_tick": 102, "level": "KERN", "code": 2, "name": "sched_waking", "cpu": 1, "lwp": 11, "thread": 3, "target_thread": 2}),
        json!({"ts_tick": 103, "level": "USER", "code": 3, "name": "say", "cpu": 1, "lwp": 11, "thread": 2}),
        json!({"ts_tick": 104, "level": "USER", "code": 3, "name": "say", "cpu": 1, "lwp": 11, "thread": 3}),
        json!({"ts_tick": 105, "level": "KERN", "code": 1, "name": "sched_switch"}),
    ] {
        little.row("events", row);
    }
    little
}

#[tokio::test]
async fn values_of_a_filter_are_alternatives_and_filters_narrow_each_other() {
    let little = some_events();
    let trace = SuperTrace::open(little.write()).await.unwrap();
    let all = Filter::default;
    let at = async |filter: Filter| ticks(&trace, &filter).await;
    assert_eq!(at(all()).await, [100, 101, 102, 103, 104, 105]);
    assert_eq!(at(Filter { threads: threads(&["1"]), ..all() }).await, [100, 101]);
    assert_eq!(at(Filter { threads: threads(&["work"]), ..all() }).await, [100, 101, 102, 103]);
    assert_eq!(at(Filter { threads: threads(&["1", "other"]), ..all() }).await, [100, 101, 102, 104]);
    assert_eq!(at(Filter { threads: threads(&["nobody"]), ..all() }).await, [0i64; 0]);
    assert_eq!(at(Filter { threads: threads(&["nobody", "1"]), ..all() }).await, [100, 101]);
    assert_eq!(at(Filter { lwps: "9,10".parse::<LwpList>().unwrap().0, ..all() }).await, [100, 101]);
    assert_eq!(at(Filter { cpus: vec![Cpu(1)], ..all() }).await, [102, 103, 104]);
    assert_eq!(at(Filter { level: Some(Level::User), ..all() }).await, [101, 103, 104]);
    assert_eq!(at(Filter { events: events(&["sched"]), ..all() }).await, [100, 102, 105]);
    assert_eq!(
        at(Filter { events: events(&["CONTEXT_SWITCH", "^say$"]), ..all() }).await,
        [100, 101, 103, 104, 105]
    );
    assert_eq!(at(Filter { events: events(&["nothing"]), ..all() }).await, [0i64; 0]);
    let both = Filter { threads: threads(&["work"]), cpus: vec![Cpu(1)], level: Some(Level::User), ..all() };
    assert_eq!(at(both).await, [103]);
    let window = |from: &str, to: &str| Filter {
        from: Some(from.parse().unwrap()),
        to: Some(to.parse().unwrap()),
        ..all()
    };
    assert_eq!(at(window("101", "104")).await, [101, 102, 103, 104]);
    assert_eq!(at(window("+1ns", "0.004us")).await, [101, 102, 103, 104]);
    assert_eq!(at(Filter { events: events(&["say"]), ..window("102", "9s") }).await, [103, 104]);
}

#[tokio::test]
async fn a_time_in_seconds_needs_the_rate_of_the_clock() {
    let little = Little::new();
    let trace = SuperTrace::open(little.write()).await.unwrap();
    let filter = Filter { from: Some("1ms".parse().unwrap()), ..Filter::default() };
    let error = list(&trace, &filter, Format::Tsv, &mut Vec::new()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::UnknownClockRate);
    assert!(error.to_string().contains("expected ticks, found `1ms`"), "{error}");
}

#[tokio::test]
async fn rows_of_equal_ticks_keep_the_order_of_the_merge_across_files() {
    let mut little = Little::new();
    little.rows_per_group = 64;
    little.row(
        "event_types",
        json!({"level": "USER", "name": "e", "field_names": ["n"], "field_types": ["i64"]}),
    );
    let mut expected = Vec::new();
    for n in 0..40_000i64 {
        if n > 0 && n % 1000 == 0 {
            little.next_part("events");
        }
        // Ten rows a tick, also across the border of two files.
        little.row(
            "events",
            json!({"ts_tick": (n + 5) / 10, "level": "USER", "name": "e", "thread": n % 3, "args": [n]}),
        );
        expected.extend((n % 3 == 1).then_some(n));
    }
    let trace = SuperTrace::open(little.write()).await.unwrap();
    let filter = Filter { threads: threads(&["1"]), ..Filter::default() };
    let printed = printed(&trace, &filter, Format::Tsv).await;
    let numbers: Vec<i64> =
        printed.lines().skip(1).map(|l| l.rsplit('=').next().unwrap().parse().unwrap()).collect();
    assert_eq!(numbers, expected);
}

fn with_odd_texts() -> Little {
    let mut little = Little::new();
    let fields = json!(["prev_comm", "next_pid", "who", "at"]);
    let types = json!(["text", "i64", "thread", "pointer"]);
    little.row("event_types", json!({"level": "KERN", "code": 7, "name": "sched_switch", "field_names": fields, "field_types": types}));
    little.row("event_types", json!({"level": "USER", "code": 8, "name": "a\tb"}));
    little.row("threads", json!({"thread": 1, "name": "the daemon"}));
    little.row(
        "events",
        json!({"ts_tick": 5, "level": "KERN", "code": 7, "name": "sched_switch", "cpu": 0, "lwp": 4,
            "args": [null, 6152, 1, -1], "texts": ["my \"prog\"\t,"]}),
    );
    little.row("events", json!({"ts_tick": 6, "level": "USER", "code": 8, "name": "a\tb", "thread": 1, "args": [24, null], "texts": ["eth0"]}));
    little
}

// Row groups of 3 rows: several CPUs look for the events of a thread, each in a part of the time.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn events_of_a_thread_are_in_order_however_many_cpus_look_for_them() {
    let mut little = Little::new();
    little.rows_per_group = 3;
    little.info("tick_hz", 1e9).info("first_tick", 100);
    little.row("event_types", json!({"level": "USER", "code": 3, "name": "say"}));
    little
        .row("threads", json!({"thread": 1, "name": "work"}))
        .row("threads", json!({"thread": 2, "name": "other"}));
    // Each tick occurs five times, across the borders of row groups.
    let event = |number: i64| (100 + number / 5, 1 + number % 2, number);
    for (tick, thread, number) in (0..200).map(event) {
        let row = json!({"ts_tick": tick, "level": "USER", "code": 3, "name": "say", "cpu": 0, "lwp": number, "thread": thread});
        little.row("events", row);
    }
    let trace = SuperTrace::open(little.write()).await.unwrap();
    for name in ["1", "work"] {
        for (from, to) in [(0, 1000), (110, 131), (139, 139)] {
            let filter = Filter {
                threads: threads(&[name]),
                from: Some(from.to_string().parse().unwrap()),
                to: Some(to.to_string().parse().unwrap()),
                ..Filter::default()
            };
            let lines = printed(&trace, &filter, Format::Ndjson).await;
            let lwp = |line: &str| serde_json::from_str::<Value>(line).unwrap()["pid"].as_i64().unwrap();
            let found: Vec<i64> = lines.lines().map(lwp).collect();
            let is_asked = |(tick, thread, _): &(i64, i64, i64)| *thread == 1 && (from..=to).contains(tick);
            let expected = (0..200).map(event).filter(is_asked).map(|(.., number)| number);
            assert_eq!(found, expected.collect::<Vec<_>>(), "{name} {from} {to}");
        }
    }
}

#[tokio::test]
async fn texts_that_would_break_a_line_are_quoted() {
    let little = with_odd_texts();
    let trace = SuperTrace::open(little.write()).await.unwrap();
    let tsv = printed(&trace, &Filter::default(), Format::Tsv).await;
    let lines: Vec<&str> = tsv.lines().skip(1).collect();
    let params = r#"prev_comm="my \"prog\"\t," next_pid=6152 who=1("the daemon") at=0xffffffffffffffff"#;
    assert_eq!(lines[0], format!("KERN\t5\t4\t0\t?\t7\tsched_switch\t{params}"));
    assert_eq!(lines[1], "USER\t6\t?\t?\t1(the daemon)\t8\t\"a\\tb\"\t24(eth0) ?");
    let csv = printed(&trace, &Filter::default(), Format::Csv).await;
    let quoted = params.replace('"', "\"\"");
    assert_eq!(csv.lines().nth(1).unwrap(), format!("KERN,5,4,0,?,7,sched_switch,\"{quoted}\""));
}

#[tokio::test]
async fn json_has_named_parameters_as_an_object() {
    let little = with_odd_texts();
    let trace = SuperTrace::open(little.write()).await.unwrap();
    let expected = json!([
        {"type": "KERN", "date_tick": 5, "pid": 4, "cpu": 0, "thr": null, "thr_name": null, "code": 7, "name": "sched_switch",
         "params": {"prev_comm": "my \"prog\"\t,", "next_pid": 6152, "who": {"number": 1, "name": "the daemon"}, "at": u64::MAX}},
        {"type": "USER", "date_tick": 6, "pid": null, "cpu": null, "thr": 1, "thr_name": "the daemon", "code": 8, "name": "a\tb",
         "params": [{"number": 24, "name": "eth0"}, null]},
    ]);
    let array: Value =
        serde_json::from_str(&printed(&trace, &Filter::default(), Format::Json).await).unwrap();
    assert_eq!(array, expected);
    let lines = printed(&trace, &Filter::default(), Format::Ndjson).await;
    let lines: Vec<Value> = lines.lines().map(|l| serde_json::from_str(l).unwrap()).collect();
    assert_eq!(Value::Array(lines), expected);
}

#[tokio::test]
async fn an_empty_trace_lists_nothing() {
    let little = Little::new();
    let trace = SuperTrace::open(little.write()).await.unwrap();
    assert_eq!(list(&trace, &Filter::default(), Format::Tsv, &mut Vec::new()).await.unwrap(), 0);
    assert_eq!(printed(&trace, &Filter::default(), Format::Json).await, "[]\n");
}

#[tokio::test]
async fn terminal_control_characters_are_escaped_in_the_human_format() {
    let mut little = Little::new();
    let hostile = "\x1b[2J\u{9b}\u{7f}\u{202e}\nforged\té";
    let ty = json!({"level": "USER", "code": 1, "name": hostile, "field_names": [hostile], "field_types": ["text"]});
    little.row("event_types", ty);
    little.row("threads", json!({"thread": 1, "name": hostile}));
    little.row(
        "events",
        json!({"level": "USER", "code": 1, "name": hostile, "thread": 1, "texts": ["\u{9b}2J\u{202e}"]}),
    );
    let trace = SuperTrace::open(little.write()).await.unwrap();
    let text = printed(&trace, &Filter::default(), Format::Human).await;
    assert!(!text.contains(|c: char| (c.is_control() && c != '\n') || c == '\u{202e}'), "{text:?}");
    assert_eq!(text.lines().count(), 2, "{text}");
    assert!(text.contains(r"\u{9b}2J\u{202e}") && text.contains('é'), "{text}");
    // For programs the names are what they are.
    let json = printed(&trace, &Filter::default(), Format::Ndjson).await;
    let event: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(event["name"], hostile);
}

#[tokio::test]
async fn each_of_many_types_of_one_name_is_found_by_its_number() {
    let mut little = Little::new();
    for code in 0..5000 {
        let field = format!("of_{code}");
        let ty = json!({"level": "USER", "code": code, "name": "many", "field_names": [field], "field_types": ["i64"]});
        little.row("event_types", ty);
        little.row(
            "events",
            json!({"ts_tick": code, "level": "USER", "code": code, "name": "many", "args": [1]}),
        );
    }
    let trace = SuperTrace::open(little.write()).await.unwrap();
    let text = printed(&trace, &Filter::default(), Format::Human).await;
    assert!(text.contains("of_0=1") && text.contains("of_4999=1"));
    assert_eq!(text.matches("of_").count(), 5000);
}
