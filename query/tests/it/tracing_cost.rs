//! What recording cost, worked out by hand.
//!
//! ```text
//! process 60, a record 20 ticks and a word 2          process 80, a record 100 ticks and a word 10
//! LWP 70  thread 1  switch, note, note                LWP 90  thread 7  switch
//!         none      plain                             LWP 91  (process not known) plain
//! ```

use crate::support::Little;
use serde_json::{Value, json};
use sigmund_model::{Lwp, Thread, Ticks};
use sigmund_query::{Recorder, TracingCost, share, tracing_cost};
use sigmund_sql::SuperTrace;

fn two_processes() -> Little {
    let mut little = Little::new();
    let declared = |name: &str, fields: &[&str]| {
        let names: Vec<String> = (0..fields.len()).map(|i| format!("f{i}")).collect();
        json!({"level": "USER", "name": name, "field_names": names, "field_types": fields})
    };
    little.row("event_types", declared("switch", &["thread", "u8", "pointer"]));
    // As another process declares it, once more.
    little.row("event_types", declared("switch", &["thread", "u8", "pointer"]));
    little.row("event_types", declared("note", &["u64", "text"]));
    little.row("event_types", declared("plain", &[]));
    let names = ["a", "b", "c", "d"];
    little.row("event_types", json!({"level": "KERN", "name": "note", "field_names": names, "field_types": ["u8", "u8", "u8", "text"]}));
    let mut event = |lwp: u32, thread: Value, name: &str, args: Value, texts: Value| {
        little.row("events", json!({"level": "USER", "lwp": lwp, "thread": thread, "name": name, "args": args, "texts": texts}));
    };
    // The name of a number is not in the record.
    event(70, json!(1), "switch", json!([1, 3, 0]), json!([null, "block"]));
    event(70, json!(1), "note", json!([5, null]), json!([null, "eight by"]));
    event(70, json!(1), "note", json!([6, null]), json!([null, "nine byte"]));
    event(70, json!(null), "plain", json!([]), json!([]));
    event(90, json!(7), "switch", json!([7, 0, 0]), json!([]));
    event(91, json!(null), "plain", json!([]), json!([]));
    little.row(
        "events",
        json!({"level": "KERN", "lwp": 70, "thread": 1, "name": "note", "args": [1, 2, 3, 4]}),
    );
    little.row("lwps", json!({"lwp": 70, "pid": 60, "name": "lwp/0", "unmounted_tick": 100}));
    little.row("lwps", json!({"lwp": 90, "pid": 80, "unmounted_tick": 100}));
    little.row("threads", json!({"thread": 1, "name": "daemon", "active_tick": 740}));
    little.row("threads", json!({"thread": 7, "active_tick": 0}));
    little.row("threads", json!({"thread": 8, "active_tick": 260}));
    little
}

async fn cost(little: &Little, top: usize) -> Option<TracingCost> {
    let trace = SuperTrace::open(little.write()).await.unwrap();
    tracing_cost(&trace, top).await.unwrap()
}

fn with_prices() -> Little {
    let mut little = two_processes();
    little.info("probe_ticks_60", 20).info("probe_word_ticks_60", 2).info("probe_clock_ticks_60", 19);
    little.info("probe_ticks_80", 100).info("probe_word_ticks_80", 10).info("probe_clock_ticks_80", 30);
    // It became another program, which measured the same.
    little.info("probe_ticks_80", 100).info("probe_word_ticks_80", 10);
    little
}

#[tokio::test]
async fn an_event_costs_the_price_of_a_record_and_its_words_in_its_process() {
    let cost = cost(&with_prices(), 10).await.unwrap();
    // Thread 1: three records; 3 words, 1 + 1 + 1, and 1 + 1 + 2. Thread 7: one, with 3.
    let (daemon, seven) = (3.0 * 20.0 + 10.0 * 2.0, 100.0 + 3.0 * 10.0);
    // LWP 70 with no thread: one without words. LWP 91: one, at the mean price.
    let (alone, foreign) = (20.0, 60.0);
    let seen: Vec<_> = cost.top.iter().map(|one| (one.recorder, one.events, one.ticks)).collect();
    assert_eq!(
        seen,
        [
            (Recorder::Thread(Thread(7)), 1, seven),
            (Recorder::Thread(Thread(1)), 3, daemon),
            (Recorder::Lwp(Lwp(91)), 1, foreign),
            (Recorder::Lwp(Lwp(70)), 1, alone),
        ]
    );
    assert_eq!((cost.events, cost.words), (6, 13));
    assert_eq!((cost.ticks, cost.threads_ticks), (290.0, 210.0));
    assert_eq!(share(cost.threads_ticks, cost.active), Some(0.21), "of threads that recorded nothing, too");
    let names: Vec<_> = cost.top.iter().map(|one| one.name.as_deref()).collect();
    assert_eq!(names, [None, Some("daemon"), None, Some("lwp/0")]);
    let executed: Vec<_> = cost.top.iter().map(|one| one.executed).collect();
    assert_eq!(executed, [Ticks(0), Ticks(740), Ticks(0), Ticks(100)]);
    assert_eq!(share(seven, Ticks(0)), None);
}

#[tokio::test]
async fn sums_cover_all_recorders_although_only_the_top_are_listed() {
    let cost = cost(&with_prices(), 1).await.unwrap();
    assert_eq!((cost.top.len(), cost.events, cost.ticks), (1, 6, 290.0));
}

#[tokio::test]
async fn a_trace_without_the_price_of_recording_has_no_estimate() {
    assert_eq!(cost(&two_processes(), 10).await, None);
}

#[tokio::test]
async fn a_program_without_events_has_no_recording_cost() {
    let mut little = with_prices();
    little.clear("events");
    let cost = cost(&little, 10).await.unwrap();
    assert_eq!((cost.events, cost.ticks, cost.top.len()), (0, 0.0, 0));
}
