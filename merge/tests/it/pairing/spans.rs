//! Spans and functions of user threads, on any LWP, and of LWPs that carry no user thread.

use super::rows;

fn spans(events: &str) -> Vec<String> {
    rows(events, "spans", "ts_tick dur_tick thread lwp kind name depth active_tick source end_reason")
}

// LWP 70  |A[A|              the span continues when its thread moves to LWP 71; in between the thread is not active
// LWP 71        |AA]A|
#[test]
fn a_span_continues_across_a_migration_and_counts_only_active_time() {
    let found = spans(
        "KERN 100 0  0 KERN_CONTEXT_SWITCH 70
         KERN 100 0  1 KERN_CONTEXT_SWITCH 71
         USER 110 70 0 USER_CONTEXT_SWITCH 5
         USER 120 70 0 SPAN_BEGIN          4096(step,at,lu.c:42)
         USER 130 70 0 USER_CONTEXT_SWITCH 0
         USER 150 71 1 USER_CONTEXT_SWITCH 5
         USER 170 71 1 SPAN_END            4096",
    );
    assert_eq!(found, ["120 50 5 70 span step 0 30 lu.c:42 returned"]);
}

#[test]
fn a_span_is_not_active_while_the_lwp_of_its_thread_is_off_cpu() {
    let found = spans(
        "KERN 100 0  0 sched_switch        prev_state=0,next_pid=70
         USER 100 70 0 USER_CONTEXT_SWITCH 5
         USER 110 70 0 SPAN_BEGIN          1(step)
         KERN 120 70 0 sched_switch        prev_state=0,next_pid=99
         KERN 150 99 0 sched_switch        prev_state=1,next_pid=70
         USER 155 70 0 SPAN_END            1",
    );
    assert_eq!(found, ["110 45 5 70 span step 0 15 ? returned"]);
}

#[test]
fn a_span_without_an_end_ends_with_the_enclosing_span_and_an_end_without_a_begin_is_no_row() {
    let found = spans(
        "KERN 100 0  0 KERN_CONTEXT_SWITCH 70
         USER 100 70 0 USER_CONTEXT_SWITCH 5
         USER 105 70 0 SPAN_END            3(other)
         USER 110 70 0 SPAN_BEGIN          1(outer)
         USER 112 70 0 SPAN_BEGIN          2(inner)
         USER 120 70 0 SPAN_END            1(outer)
         USER 125 70 0 SPAN_END            2(inner)",
    );
    assert_eq!(found, ["112 8 5 70 span inner 1 8 ? enclosing", "110 10 5 70 span outer 0 10 ? returned"]);
}

#[test]
fn spans_of_two_threads_on_one_lwp_are_paired_separately() {
    let found = spans(
        "KERN 100 0  0 KERN_CONTEXT_SWITCH 70
         USER 100 70 0 USER_CONTEXT_SWITCH 5
         USER 110 70 0 SPAN_BEGIN          1(step)
         USER 120 70 0 USER_CONTEXT_SWITCH 6
         USER 130 70 0 SPAN_BEGIN          1(step)
         USER 140 70 0 USER_CONTEXT_SWITCH 5
         USER 145 70 0 SPAN_END            1(step)
         USER 150 70 0 USER_CONTEXT_SWITCH 6
         USER 160 70 0 SPAN_END            1(step)",
    );
    assert_eq!(found, ["110 35 5 70 span step 0 15 ? returned", "130 30 6 70 span step 0 20 ? returned"]);
}

// Reason 4: the thread exits.
#[test]
fn spans_end_with_their_thread_and_with_the_trace() {
    let found = spans(
        "KERN 100 0  0 KERN_CONTEXT_SWITCH 70
         USER 100 70 0 USER_CONTEXT_SWITCH 5
         USER 110 70 0 SPAN_BEGIN          1(step)
         USER 120 70 0 USER_CONTEXT_SWITCH 6,4
         USER 130 70 0 SPAN_BEGIN          1(step)
         USER 140 70 0 MESSAGE             1",
    );
    assert_eq!(found, ["110 10 5 70 span step 0 10 ? exit", "130 10 6 70 span step 0 10 ? trace-end"]);
}

#[test]
fn functions_are_paired_by_name_or_by_address() {
    let found = spans(
        "KERN 100 0  0 KERN_CONTEXT_SWITCH 70
         USER 100 70 0 USER_CONTEXT_SWITCH 5
         USER 110 70 0 FUNC_ENTER          4096(solve)
         USER 112 70 0 PROF_IN             1(step,at,lu.c:42)
         USER 114 70 0 FUNC_ENTER          8192(row)
         USER 115 70 0 FUNC_EXIT           8192(row)
         USER 116 70 0 PROF_OUT            2(step,at,lu.c:50)
         USER 120 70 0 FUNC_EXIT           4096(solve)",
    );
    let expected = [
        "114 1 5 70 function row 2 1 ? returned",
        "112 4 5 70 function step 1 4 lu.c:42 returned",
        "110 10 5 70 function solve 0 10 ? returned",
    ];
    assert_eq!(found, expected);
}

#[test]
fn spans_of_an_lwp_without_user_threads_belong_to_the_lwp() {
    let found = spans(
        "KERN 100 0  0 sched_switch prev_state=0,next_pid=80
         USER 110 80 0 SPAN_BEGIN   1(step)
         KERN 120 80 0 sched_switch prev_state=1,next_pid=0
         KERN 140 0  0 sched_switch prev_state=0,next_pid=80
         USER 145 80 0 SPAN_END     1(step)",
    );
    assert_eq!(found, ["110 35 ? 80 span step 0 15 ? returned"]);
}

#[test]
fn a_span_names_the_start_of_the_one_around_it() {
    let found = rows(
        "KERN 100 0  0 KERN_CONTEXT_SWITCH 70
         USER 100 70 0 USER_CONTEXT_SWITCH 5
         USER 110 70 0 SPAN_BEGIN          1(outer)
         USER 112 70 0 SPAN_BEGIN          2(inner)
         USER 114 70 0 SPAN_BEGIN          3(innermost)
         USER 116 70 0 SPAN_END            2
         USER 118 70 0 SPAN_BEGIN          2(inner)
         USER 120 70 0 SPAN_END            2
         USER 125 70 0 SPAN_BEGIN          3(innermost)
         USER 130 70 0 MESSAGE             1",
        "spans",
        "ts_tick depth parent_tick end_reason",
    );
    let expected = [
        "114 2 112 enclosing",
        "112 1 110 returned",
        "118 1 110 returned",
        "125 1 110 trace-end",
        "110 0 ? trace-end",
    ];
    assert_eq!(found, expected);
}
