//! Locks: one row for each request. The switch of a user thread that blocks has reason 3, the lock, and its kind.

use super::rows;

fn locks(events: &str) -> Vec<String> {
    let head = "KERN 100 0  0 KERN_CONTEXT_SWITCH 70
                KERN 100 0  1 KERN_CONTEXT_SWITCH 71
                USER 105 70 0 USER_CONTEXT_SWITCH 5
                USER 105 71 1 USER_CONTEXT_SWITCH 6\n";
    requests(&format!("{head}{events}"))
}

fn requests(events: &str) -> Vec<String> {
    let columns =
        "ts_tick wait_tick hold_tick thread lwp object kind holder holder_lwp contended call_site end_reason";
    rows(events, "locks", columns)
}

// 5   [====][====]            takes the lock again before 6, which was unparked, takes it
// 6      |wait···x wait···[==]
#[test]
fn a_contended_request_waits_until_it_acquires_the_lock_even_if_unparked_before() {
    let found = locks(
        "USER 110 70 0 LOCK_ACQUIRE        64,1
         USER 120 71 1 USER_CONTEXT_SWITCH 0,3,64,1
         USER 130 70 0 LOCK_RELEASE        64,1
         USER 131 70 0 USER_THREAD_READY   6
         USER 132 70 0 LOCK_ACQUIRE        64,1
         USER 140 71 1 USER_CONTEXT_SWITCH 6
         USER 141 71 1 USER_CONTEXT_SWITCH 0,3,64,1
         USER 150 70 0 LOCK_RELEASE        64,1
         USER 151 70 0 USER_THREAD_READY   6
         USER 160 71 1 USER_CONTEXT_SWITCH 6
         USER 162 71 1 LOCK_ACQUIRE        64,1
         USER 170 71 1 LOCK_RELEASE        64,1",
    );
    let expected = [
        "110 0 20 5 70 64 mutex ? ? false ? released",
        "132 0 18 5 70 64 mutex ? ? false ? released",
        "120 42 8 6 71 64 mutex 5 ? true ? released",
    ];
    assert_eq!(found, expected);
}

#[test]
fn without_recorded_holds_each_wait_is_a_row_and_ends_at_the_unpark() {
    let found = locks(
        "USER 120 71 1 USER_CONTEXT_SWITCH 0,3,64,1
         USER 131 70 0 USER_THREAD_READY   6
         USER 140 71 1 USER_CONTEXT_SWITCH 6
         USER 141 71 1 USER_CONTEXT_SWITCH 0,3,64,1
         USER 151 70 0 USER_THREAD_READY   6",
    );
    let expected = ["120 11 ? 6 71 64 mutex ? ? true ? woken", "141 10 ? 6 71 64 mutex ? ? true ? woken"];
    assert_eq!(found, expected);
}

// Read locks (kind 2) do not exclude each other; the writer (kind 3) waits for both.
#[test]
fn readers_hold_a_lock_together_and_a_writer_alone() {
    let found = locks(
        "USER 110 70 0 LOCK_ACQUIRE        64,2
         USER 112 71 1 LOCK_ACQUIRE        64,2
         USER 120 70 0 USER_CONTEXT_SWITCH 7
         USER 121 70 0 USER_CONTEXT_SWITCH 5,3,64,3
         USER 125 71 1 LOCK_RELEASE        64,2
         USER 130 70 0 LOCK_RELEASE        64,2
         USER 130 70 0 USER_THREAD_READY   7
         USER 132 70 0 USER_CONTEXT_SWITCH 7
         USER 133 70 0 LOCK_ACQUIRE        64,3
         USER 140 70 0 LOCK_RELEASE        64,3",
    );
    let writer = |holder| format!("121 12 7 7 70 64 rwlock-write {holder} ? true ? released");
    assert_eq!(
        found[..2],
        [
            "112 0 13 6 71 64 rwlock-read ? ? false ? released",
            "110 0 20 5 70 64 rwlock-read ? ? false ? released",
        ]
    );
    // Two threads held the lock when the wait began: either is a correct holder.
    assert!(found[2..] == [writer(5)] || found[2..] == [writer(6)], "{found:?}");
}

#[test]
fn a_hold_may_be_released_by_another_thread() {
    let found = locks(
        "USER 110 70 0 LOCK_ACQUIRE 64,1
         USER 130 71 1 LOCK_RELEASE 64,1",
    );
    assert_eq!(found, ["110 0 20 5 70 64 mutex ? ? false ? released"]);
}

#[test]
fn a_hold_ends_at_an_unobserved_time_if_another_thread_acquires_the_lock() {
    let found = locks(
        "USER 110 70 0 LOCK_ACQUIRE 64,1
         USER 130 71 1 LOCK_ACQUIRE 64,1
         USER 140 71 1 MESSAGE      1",
    );
    let expected =
        ["110 0 ? 5 70 64 mutex ? ? false ? unseen", "130 0 10 6 71 64 mutex ? ? false ? trace-end"];
    assert_eq!(found, expected);
}

#[test]
fn the_call_site_of_a_request_is_the_innermost_open_span_or_function() {
    let found = locks(
        "USER 106 70 0 SPAN_BEGIN   1(outer)
         USER 107 70 0 PROF_IN      2(step,at,lu.c:42)
         USER 110 70 0 LOCK_ACQUIRE 64,1
         USER 120 70 0 LOCK_RELEASE 64,1
         USER 121 70 0 PROF_OUT     3(step,at,lu.c:50)
         USER 122 70 0 LOCK_ACQUIRE 64,1
         USER 124 70 0 LOCK_RELEASE 64,1",
    );
    let expected = [
        "110 0 10 5 70 64 mutex ? ? false step at lu.c:42 released",
        "122 0 2 5 70 64 mutex ? ? false outer released",
    ];
    assert_eq!(found, expected);
}

// A thread exits (reason 4) while it holds a lock, and another thread releases the lock.
#[test]
fn a_hold_continues_after_its_thread_exits() {
    let found = locks(
        "USER 110 70 0 LOCK_ACQUIRE        64,1
         USER 120 70 0 USER_CONTEXT_SWITCH 7,4
         USER 130 70 0 LOCK_RELEASE        64,1",
    );
    assert_eq!(found, ["110 0 20 5 70 64 mutex ? ? false ? released"]);
}

// CPU 0   |=80=[futex asleep ]=80=|      128: FUTEX_WAIT_PRIVATE
#[test]
fn a_futex_call_is_a_wait_only_if_it_slept() {
    let found = requests(
        "KERN 100 0  0 sched_switch prev_state=0,next_pid=80
         KERN 110 80 0 sys_enter    id=202(futex),args0=4096,args1=128
         KERN 112 80 0 sched_switch prev_state=1,next_pid=0
         KERN 130 0  0 sched_wakeup pid=80,target_cpu=0
         KERN 135 0  0 sched_switch prev_state=0,next_pid=80
         KERN 136 80 0 sys_exit     id=202,ret=0
         KERN 140 80 0 sys_enter    id=202(futex),args0=4096,args1=128
         KERN 141 80 0 sys_exit     id=202,ret=-11
         KERN 142 80 0 sys_enter    id=202(futex),args0=4096,args1=129
         KERN 143 80 0 sched_switch prev_state=1,next_pid=0
         KERN 144 0  0 sched_switch prev_state=0,next_pid=80
         KERN 145 80 0 sys_exit     id=202,ret=1",
    );
    assert_eq!(found, ["110 26 ? ? 80 4096 futex ? ? true ? woken"]);
}

#[test]
fn a_futex_call_of_a_runtimes_lwp_without_a_user_thread_is_no_lock_wait() {
    let futex = "KERN 110 70 0 sys_enter    id=202(futex),args0=4096,args1=128
         KERN 112 70 0 sched_switch prev_state=1,next_pid=0
         KERN 135 0  0 sched_switch prev_state=0,next_pid=70
         KERN 136 70 0 sys_exit     id=202,ret=0";
    let with = |mounted: &str| {
        let begin = "KERN 100 0  0 sched_switch prev_state=0,next_pid=70
            USER 101 70 0 USER_CONTEXT_SWITCH 5\n";
        requests(&format!("{begin}{mounted}{futex}"))
    };
    assert_eq!(with("USER 105 70 0 USER_CONTEXT_SWITCH 0\n"), [""; 0]);
    assert_eq!(with(""), ["110 26 ? 5 70 4096 futex ? ? true ? woken"]);
}

// 70 and 71 are on CPUs 0 and 1; while 71 waits for the lock, it moves to CPU 0.
#[test]
fn the_cpu_is_that_of_the_request() {
    let found = rows(
        "KERN 100 0  0 KERN_CONTEXT_SWITCH 70
         KERN 100 0  1 KERN_CONTEXT_SWITCH 71
         USER 105 70 0 USER_CONTEXT_SWITCH 5
         USER 106 71 1 USER_CONTEXT_SWITCH 6
         USER 110 70 0 LOCK_ACQUIRE        64,1
         USER 120 71 1 USER_CONTEXT_SWITCH 0,3,64,1
         USER 130 70 0 LOCK_RELEASE        64,1
         USER 131 70 0 USER_THREAD_READY   6
         KERN 132 71 1 KERN_CONTEXT_SWITCH 0
         KERN 134 70 0 KERN_CONTEXT_SWITCH 71
         USER 140 71 0 USER_CONTEXT_SWITCH 6
         USER 142 71 0 LOCK_ACQUIRE        64,1
         USER 150 71 0 LOCK_RELEASE        64,1
         KERN 160 71 0 sys_enter           id=202(futex),args0=4096,args1=128
         KERN 161 71 0 KERN_CONTEXT_SWITCH 0
         KERN 170 0  1 KERN_CONTEXT_SWITCH 71
         KERN 171 71 1 sys_exit            id=202,ret=0
         KERN 180 0  0 contention_begin    72,1
         KERN 185 0  0 contention_end      72,0",
        "locks",
        "ts_tick lwp cpu object kind",
    );
    let expected =
        ["110 70 0 64 mutex", "120 71 1 64 mutex", "160 71 0 4096 futex", "180 ? 0 72 kernel-spinlock"];
    assert_eq!(found, expected);
}
