//! Measures of slices of a super-trace are those of the whole.

use std::path::Path;

use sigmund_measures::{ALL, Answer, By, Canvas, GANTT, Measure, Needs, Subject};
use sigmund_model::{Cpu, Lwp};
use sigmund_query::{Filter, LwpRef, MeasureOptions, SliceSize, measure_in_slices, with_history};
use sigmund_sql::SuperTrace;

use crate::{
    kernel,
    record::recorded,
    sigmund::{Sigmund, program},
    views::{listing, listing_of},
};

/// Thread 5 is unparked twice by LWP 80, while that carries no thread. The first time, the LWP was woken for it at 300. The second
/// time, it was woken at 400, but has carried thread 6 since.
const POLLED: &str = "\
# tick_hz=1000000000
type date_tick pid cpu thr code name params
KERN 100 0 0 ? - sched_switch prev_state=0 next_pid=70
KERN 100 0 1 ? - sched_switch prev_state=0 next_pid=80
USER 105 70 0 ? - USER_CONTEXT_SWITCH next=5 reason=0 on=0 blocked_for=0
KERN 110 80 1 ? - sched_switch prev_state=1 next_pid=0
USER 200 70 0 5 - USER_CONTEXT_SWITCH next=0 reason=3 on=0 blocked_for=0
KERN 300 70 0 ? - sched_waking pid=80
KERN 310 0 1 ? - sched_switch prev_state=0 next_pid=80
USER 330 80 1 ? - USER_THREAD_READY ready=5
USER 340 70 0 ? - USER_CONTEXT_SWITCH next=5 reason=0 on=0 blocked_for=0
KERN 360 80 1 ? - sched_switch prev_state=1 next_pid=0
KERN 400 70 0 ? - sched_waking pid=80
USER 402 70 0 5 - USER_CONTEXT_SWITCH next=0 reason=3 on=0 blocked_for=0
KERN 405 0 1 ? - sched_switch prev_state=0 next_pid=80
USER 407 80 1 ? - USER_CONTEXT_SWITCH next=6 reason=0 on=0 blocked_for=0
USER 410 80 1 6 - USER_CONTEXT_SWITCH next=0 reason=3 on=0 blocked_for=0
USER 420 80 1 ? - USER_THREAD_READY ready=5
USER 430 70 0 ? - USER_CONTEXT_SWITCH next=5 reason=0 on=0 blocked_for=0
USER 440 70 0 5 - USER_CONTEXT_SWITCH next=0 reason=3 on=0 blocked_for=0
";

const WHOLE: SliceSize = SliceSize { rows: usize::MAX, ticks: i64::MAX };

/// Filters of each kind that leave something of the trace.
fn filters(trace: &SuperTrace) -> Vec<Filter> {
    let (first, last) = (trace.first_tick().unwrap().0, trace.last_tick().unwrap().0);
    let at = |part: u64| format!("{}", (last - first) * part / 10 + first).parse().ok();
    let all = Filter::default();
    let mut filters = vec![
        all.clone(),
        Filter { from: at(3), to: at(8), ..all.clone() },
        Filter { cpus: vec![Cpu(0)], from: at(2), ..all.clone() },
        Filter { to: at(6), ..all.clone() },
    ];
    let threads: Vec<u64> = trace.threads().unwrap().iter().map(|(thread, _)| thread.0).collect();
    let of = |threads: &[u64]| {
        let threads = threads.iter().map(|thread| thread.to_string().parse().unwrap()).collect();
        Filter { threads, ..all.clone() }
    };
    for thread in [1, threads.len() / 2, threads.len().saturating_sub(1)] {
        filters.extend(threads.get(thread).map(|thread| of(&[*thread])));
    }
    if let [first, .., last] = threads[..] {
        filters.push(Filter { from: at(4), to: at(7), ..of(&[first, last]) });
        filters.push(Filter { cpus: vec![Cpu(0)], ..of(&[last]) });
    }
    filters.push(Filter { lwps: vec![LwpRef::Number(Lwp(70))], ..all });
    filters
}

async fn compare(
    trace: &SuperTrace,
    measure: &Measure,
    filter: &Filter,
    options: &MeasureOptions,
    ticks: i64,
) -> bool {
    let of = |size| measure_in_slices(trace, measure, filter, options, size);
    let small = SliceSize { rows: 0, ticks };
    match (of(WHOLE).await, of(small).await) {
        (Ok(whole), Ok(sliced)) => {
            let of = format!("{} {filter:?} {options:?} of {ticks} ticks", measure.name);
            assert_same(&whole.answer, &sliced.answer, &of);
            assert_eq!(whole.gaps, sliced.gaps, "{of}");
            // Rows that a measure does not need make no difference.
            let needs = Needs { only_asleep: false, only_lives: false, only_waited: false, ..measure.needs };
            let answer = |history: &_, request: &_| measure.answer(history, request);
            let with_all = with_history(trace, (measure.name, needs), filter, options, answer).await;
            let mut with_all = with_all.unwrap();
            // About the filter: in a recording of a whole machine, LWP 70 may be anything.
            with_all.result.notes.append(&mut with_all.notes);
            assert_same(&with_all.result, &whole.answer, &format!("{of}, with all rows"));
            let is_drawn = whole.answer.timeline.is_some_and(|timeline| timeline.lines() > 0);
            !whole.answer.rows.is_empty() || is_drawn
        }
        (Err(whole), Err(sliced)) => {
            assert_eq!(whole.to_string(), sliced.to_string());
            false
        }
        (whole, sliced) => panic!("{} {filter:?} {options:?}: {whole:?} {sliced:?}", measure.name),
    }
}

fn assert_same(whole: &Answer, sliced: &Answer, of: &str) {
    for (place, (expected, found)) in whole.rows.iter().zip(sliced.rows.iter()).enumerate() {
        assert_eq!(expected, found, "{of}: row {place}");
    }
    assert_eq!(whole, sliced, "{of}");
}

/// All measures and filters; with slices of so many parts of the trace.
fn compare_all(path: &Path, parts: i64) {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let trace = SuperTrace::open(path).await.unwrap();
        let (first, last) = (trace.first_tick().unwrap().0 as i64, trace.last_tick().unwrap().0 as i64);
        let ticks = ((last - first) / parts).max(1);
        let span = trace.sql("SELECT min(name) FROM spans").await.unwrap().to_text().await.unwrap();
        let span = span.lines().last().map(str::trim).filter(|name| !name.is_empty()).map(str::to_string);
        let groupings: Vec<Option<By>> = [None].into_iter().chain(By::ALL.map(Some)).collect();
        let (mut with_rows, mut asked) = (0, 0);
        for measure in ALL.iter().chain([&GANTT]) {
            for filter in filters(&trace) {
                for worst in [0, 3] {
                    let lists_cases = ["summary", "latency", "reactivity", "explain", "critical-path"]
                        .contains(&measure.name);
                    if worst > 0 && !lists_cases {
                        continue;
                    }
                    let (subject, pair) = match measure.subject {
                        Subject::None | Subject::Optional(_) => (None, None),
                        Subject::Required(_) | Subject::RequiredOrPair(_) => (span.clone(), None),
                        Subject::OptionalOrPair(_) | Subject::Pair => {
                            let pair = ("sched_waking".parse().unwrap(), "sched_switch".parse().unwrap());
                            (None, Some(pair))
                        }
                    };
                    // Each grouping in turn: the tests of measures have all of them.
                    let by = groupings[asked % groupings.len()];
                    asked += 1;
                    let canvas = Canvas { columns: 33, most_lines: 7 };
                    let options = MeasureOptions { by, worst, subject, pair, with_lengths: true, canvas };
                    with_rows += usize::from(compare(&trace, measure, &filter, &options, ticks).await);
                }
            }
        }
        assert!(with_rows > asked / 3, "{with_rows} of {asked}");
    });
}

#[test]
fn slices_of_a_drawn_trace_have_the_answer_of_the_whole() {
    let sigmund = Sigmund::with_listing("t", &listing());
    for parts in [3, 40] {
        compare_all(&sigmund.path("t.supertrace"), parts);
    }
}

#[test]
fn slices_of_a_recording_have_the_answer_of_the_whole() {
    let Some(alone) = kernel::as_root() else { return };
    let (sigmund, _) = recorded();
    drop(alone);
    compare_all(&sigmund.path("RUN.supertrace"), 7);
}

#[test]
fn slices_of_a_server_with_locks_have_the_answer_of_the_whole() {
    if !kernel::may_record() {
        return;
    }
    let waits = "SELECT count(*) FROM locks WHERE contended AND wait_tick > 0";
    // Where other processes have the CPUs, there may be a recording in which nobody waits.
    let recorded = (0..5).find_map(|_| {
        let sigmund = Sigmund::new();
        crate::schemata::record(&sigmund, &[]);
        (sigmund.number("RUN.supertrace", waits) > 0).then_some(sigmund)
    });
    compare_all(&recorded.expect("nobody waited for a lock").path("RUN.supertrace"), 5);
}

/// The rows of other threads and of LWPs are read where they show why the LWP was awake.
#[test]
fn a_question_about_one_thread_knows_since_when_its_poller_was_awake() {
    let sigmund = Sigmund::with_listing("t", &listing_of(POLLED));
    for size in ["thread => 5", "\"from\" => '320', thread => 5", "\"by\" => 'name'"] {
        let waits = sigmund.sql(
            "t.supertrace",
            &format!("SELECT kind, total_tick, min_tick, max_tick FROM latency({size}) WHERE kind = 'wakeup-to-user'"),
        );
        assert_eq!(waits, [["wakeup-to-user", "50", "10", "40"]], "{size}");
    }
}

/// Of tables with many pages, those are read that have rows of the thread or of the window.
#[test]
fn the_states_of_one_thread_and_of_a_window_are_those_of_the_table() {
    let Some(_alone) = kernel::as_root() else { return };
    let sigmund = Sigmund::new();
    sigmund.run(["record", "-o", "RUN", "--", program(), "sumtime", "13", "2", "10"]).found();
    let rows = sigmund.number("RUN.supertrace", "SELECT count(*) FROM thread_states");
    assert!(rows > 4 * 16_384, "{rows} rows are few pages");
    let first = sigmund.number("RUN.supertrace", "SELECT min(ts_tick) FROM events");
    let last = sigmund.number("RUN.supertrace", "SELECT max(ts_tick) FROM events");
    for part in 0..8 {
        let thread = 1 + 4000 * part % 16_000;
        let (from, to) = (first + (last - first) * part / 9, first + (last - first) * (part + 1) / 9);
        for (asked, is_in) in [
            (format!("thread => {thread}"), format!("thread = {thread}")),
            (
                format!("thread => {thread}, \"from\" => '{from}', \"to\" => '{to}'"),
                format!("thread = {thread} AND ts_tick <= {to} AND ts_tick + dur_tick > {from}"),
            ),
            (
                format!("\"from\" => '{from}', \"to\" => '{to}'"),
                format!("ts_tick <= {to} AND ts_tick + dur_tick > {from}"),
            ),
        ] {
            let (from, to) = if asked.contains("from") { (from, to + 1) } else { (first, last + 1) };
            // The measure has interrupts beside active time.
            let by_measure = format!(
                "SELECT CASE state WHEN 'interrupted' THEN 'active' ELSE CAST(state AS VARCHAR) END AS of, \
                 sum(total_tick) AS n FROM states({asked}) GROUP BY of HAVING n > 0 ORDER BY of"
            );
            let by_table = format!(
                "SELECT CAST(state AS VARCHAR) AS state, \
                 sum(least(ts_tick + dur_tick, {to}) - greatest(ts_tick, {from})) AS n \
                 FROM thread_states WHERE dur_tick IS NOT NULL AND {is_in} GROUP BY state HAVING n > 0 ORDER BY state"
            );
            let expected = sigmund.sql("RUN.supertrace", &by_table);
            assert_eq!(sigmund.sql("RUN.supertrace", &by_measure), expected, "{asked}");
        }
    }
}
