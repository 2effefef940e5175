//! What recording cost, worked out by hand.
//!
//! ```text
//! process 60, a record 20 ticks and a word 2          process 80, a record 100 ticks and a word 10
//! LWP 70  thread 1  3 records, 10 words               LWP 90  thread 7  a record, 3 words
//!         none      a record                          LWP 91  (process not known) a record
//! ```

use crate::support::Little;
use serde_json::{Value, json};
use sigmund_model::{Lwp, Thread, Ticks};
use sigmund_query::{Recorder, TracingCost, share, tracing_cost};
use sigmund_sql::SuperTrace;

fn two_processes() -> Little {
    let mut little = Little::new();
    let recorded = |events, words| json!({"recorded_events": events, "recorded_words": words});
    let mut row = |table: &'static str, values: Value, recorded: Value| {
        let mut values = values;
        values.as_object_mut().unwrap().extend(recorded.as_object().unwrap().clone());
        little.row(table, values);
    };
    row("lwps", json!({"lwp": 70, "pid": 60, "name": "lwp/0", "unmounted_tick": 100}), recorded(1, 0));
    row("lwps", json!({"lwp": 90, "pid": 80, "unmounted_tick": 100}), recorded(0, 0));
    row("lwps", json!({"lwp": 91, "unmounted_tick": 0}), recorded(1, 0));
    row("threads", json!({"thread": 1, "pid": 60, "name": "daemon", "active_tick": 740}), recorded(3, 10));
    row("threads", json!({"thread": 7, "pid": 80, "active_tick": 0}), recorded(1, 3));
    row("threads", json!({"thread": 8, "pid": 60, "active_tick": 260}), recorded(0, 0));
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
    let mut little = Little::new();
    little.info("probe_ticks_60", 20);
    let cost = cost(&little, 10).await.unwrap();
    assert_eq!((cost.events, cost.ticks, cost.top.len()), (0, 0.0, 0));
}
