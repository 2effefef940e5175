//! Waits for locks of the kernel: from `contention_begin` to `contention_end` of one LWP, or of one interrupt.

use super::rows;

fn waits(events: &str) -> Vec<String> {
    let head = "KERN 100 0  0 KERN_CONTEXT_SWITCH 70
                KERN 100 0  1 KERN_CONTEXT_SWITCH 71\n";
    let columns = "ts_tick wait_tick hold_tick thread lwp object kind contended call_site end_reason";
    rows(&format!("{head}{events}"), "locks", columns)
}

// A mutex (32) is waited for spinning (1), then asleep, inside of which its spinlock is contended.
#[test]
fn a_wait_is_one_row_however_it_goes_on_and_the_locks_inside_it_have_rows_of_their_own() {
    let found = waits(
        "USER 105 70 0 USER_CONTEXT_SWITCH 5
         KERN 110 70 0 contention_begin    64,33
         KERN 114 70 0 contention_begin    64,32
         KERN 115 70 0 contention_begin    72,1
         KERN 117 70 0 contention_end      72,0
         KERN 120 70 0 KERN_CONTEXT_SWITCH 0
         KERN 130 71 1 contention_begin    64,32
         KERN 140 0  0 KERN_CONTEXT_SWITCH 70
         KERN 141 70 0 contention_end      64,0
         KERN 150 71 1 contention_end      64,0",
    );
    let expected = [
        "115 2 ? 5 70 72 kernel-spinlock true ? woken",
        "110 31 ? 5 70 64 kernel-mutex true ? woken",
        "130 20 ? ? 71 64 kernel-mutex true ? woken",
    ];
    assert_eq!(found, expected);
}

#[test]
fn the_call_site_is_the_system_call() {
    let found = waits(
        "KERN 110 70 0 sys_enter        id=11(munmap)
         KERN 112 70 0 contention_begin 64,4
         KERN 119 70 0 contention_end   64,0
         KERN 120 70 0 sys_exit         id=11,ret=0
         KERN 130 70 0 contention_begin 64,2
         KERN 135 70 0 contention_end   64,0",
    );
    let expected = [
        "112 7 ? ? 70 64 kernel-rwsem-write true munmap woken",
        "130 5 ? ? 70 64 kernel-rwsem-read true ? woken",
    ];
    assert_eq!(found, expected);
}

// The interrupted LWP waits for the same lock; the interrupt and the idle CPU are nobody's.
#[test]
fn an_interrupt_and_an_idle_cpu_wait_for_themselves() {
    let found = waits(
        "KERN 110 70 0 contention_begin    64,1
         KERN 112 70 0 IRQ                 24
         KERN 113 70 0 contention_begin    72,1
         KERN 116 70 0 contention_end      72,0
         KERN 117 70 0 IRQ_EXIT            24
         KERN 119 70 0 contention_end      64,0
         KERN 120 71 1 KERN_CONTEXT_SWITCH 0
         KERN 121 0  1 contention_begin    64,1
         KERN 125 0  1 contention_end      64,0",
    );
    let expected = [
        "113 3 ? ? ? 72 kernel-spinlock true ? woken",
        "110 9 ? ? 70 64 kernel-spinlock true ? woken",
        "121 4 ? ? ? 64 kernel-spinlock true ? woken",
    ];
    assert_eq!(found, expected);
}

#[test]
fn an_end_without_a_begin_is_no_wait_and_one_that_is_open_at_the_end_of_the_trace_lasts_until_then() {
    let found = waits(
        "KERN 109 71 1 contention_end   80,0
         KERN 120 71 1 contention_begin 72,8
         KERN 160 71 1 OTHER",
    );
    assert_eq!(found, ["120 40 ? ? 71 72 kernel-rt-mutex true ? trace-end"]);
}

// The LWP with this number is created a second time: the first one's end was not seen.
#[test]
fn how_long_a_wait_lasted_whose_lwp_ended_unseen_is_not_known() {
    let found = waits(
        "KERN 110 70 0 contention_begin   64,1
         KERN 150 71 1 sched_process_fork parent_pid=1,child_pid=70
         KERN 160 71 1 OTHER",
    );
    assert_eq!(found, ["110 ? ? ? 70 64 kernel-spinlock false ? unseen"]);
}
