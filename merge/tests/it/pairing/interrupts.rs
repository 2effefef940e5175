//! Interrupts: from the entry of a handler to its exit, on one CPU.

use super::rows;

fn interrupts(events: &str) -> Vec<String> {
    rows(events, "interrupts", "ts_tick dur_tick cpu kind number name lwp thread depth end_reason")
}

// CPU 0   |AAA[24 [softirq [1 1] ] 24]
#[test]
fn interrupts_nest_and_have_the_interrupted_lwp_and_user_thread() {
    let events = "KERN 100 0  0 KERN_CONTEXT_SWITCH 70
         USER 101 70 0 USER_CONTEXT_SWITCH 5
         KERN 110 70 0 irq_handler_entry   irq=24,name=eth0
         KERN 112 70 0 softirq_entry       vec=3(NET_RX)
         KERN 113 70 0 irq_handler_entry   irq=1,name=i8042
         KERN 114 70 0 sched_wakeup        pid=99
         KERN 115 70 0 irq_handler_exit    irq=1
         KERN 116 70 0 sched_wakeup        pid=98
         KERN 118 70 0 softirq_exit        vec=3(NET_RX)
         KERN 120 70 0 irq_handler_exit    irq=24";
    let found = interrupts(events);
    let expected = [
        "113 2 0 irq 1 i8042 70 5 2 returned",
        "112 6 0 softirq 3 NET_RX 70 5 1 returned",
        "110 10 0 irq 24 eth0 70 5 0 returned",
    ];
    assert_eq!(found, expected);
    assert_eq!(rows(events, "interrupts", "ts_tick parent_tick"), ["113 112", "112 110", "110 ?"]);
}

#[test]
fn events_within_a_softirq_do_not_end_it() {
    let found = interrupts(
        "KERN 100 0 0 KERN_CONTEXT_SWITCH 70
         KERN 105 0 1 KERN_CONTEXT_SWITCH 0
         KERN 110 0 1 softirq_entry       vec=1(TIMER)
         KERN 112 0 1 sched_waking        pid=70
         KERN 114 0 1 softirq_exit        vec=1(TIMER)",
    );
    assert_eq!(found, ["110 4 1 softirq 1 TIMER 0 ? 0 returned"]);
}

// CPU 0   |===[24 · ···===[25 25]     no exit of 24: it is known up to the last event within it
#[test]
fn an_interrupt_without_an_exit_is_known_up_to_the_last_event_within_it() {
    let found = interrupts(
        "KERN 100 0  0 KERN_CONTEXT_SWITCH 70
         KERN 110 70 0 IRQ           24(eth0)
         KERN 112 70 0 softirq_raise _
         KERN 120 70 0 KERN_CONTEXT_SWITCH 71
         KERN 130 71 0 IRQ           25
         KERN 131 71 0 IRQ_EXIT      25",
    );
    assert_eq!(found, ["110 2 0 irq 24 eth0 70 ? 0 unseen", "130 1 0 irq 25 ? 71 ? 0 returned"]);
}

#[test]
fn the_exit_of_an_outer_interrupt_ends_the_nested_ones() {
    let found = interrupts(
        "KERN 100 0  0 KERN_CONTEXT_SWITCH 70
         KERN 110 70 0 IRQ      24
         KERN 112 70 0 IRQ      1
         KERN 114 70 0 softirq_raise _
         KERN 120 70 0 IRQ_EXIT 24
         KERN 125 70 0 IRQ_EXIT 24",
    );
    assert_eq!(found, ["112 2 0 irq 1 ? 70 ? 1 unseen", "110 10 0 irq 24 ? 70 ? 0 returned"]);
}

#[test]
fn an_interrupt_that_is_open_at_the_end_of_the_trace_ends_there() {
    let found = interrupts(
        "KERN 100 0  0 KERN_CONTEXT_SWITCH 70
         KERN 100 0  1 KERN_CONTEXT_SWITCH 71
         KERN 110 70 0 IRQ      24
         KERN 112 71 1 IRQ      1
         KERN 113 71 1 IRQ_EXIT 1
         KERN 140 71 1 cpu_frequency _",
    );
    assert_eq!(found, ["112 1 1 irq 1 ? 71 ? 0 returned", "110 30 0 irq 24 ? 70 ? 0 trace-end"]);
}
