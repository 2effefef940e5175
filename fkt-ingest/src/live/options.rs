//! Which events are recorded, of which LWPs, and the size of the buffers.

use sigmund_model::Pid;

/// ftrace's name of the time-stamp counter, which is also the clock of probes.
pub(super) const CLOCK_TSC: &str = "x86-tsc";

/// The LWPs whose events are recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// The machine's scheduling and interrupts, and the other events of this program and its children.
    Program(Pid),
    /// Only events that concern this program and its children. Switches between its LWPs and others are recorded,
    /// switches among others are not.
    Only(Pid),
    /// All events of the whole machine.
    System,
}

/// Which events are recorded, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecorderOptions {
    /// Tracepoints of scheduling and its causes, `system:event`.
    pub machine_events: Vec<String>,
    /// Tracepoints of programs' activity, `system:event`.
    pub program_events: Vec<String>,
    /// Conditions on the fields of an event, which the kernel evaluates.
    pub filters: Vec<EventFilter>,
    /// Size of the kernel's buffer for each CPU and instance, in KiB.
    pub buffer_kb_per_cpu: usize,
    /// Size of the pieces ("sub-buffers") in which a buffer is read, in KiB. `None` is the kernel's default, a page.
    /// Kernels before 6.8 do not support other sizes.
    pub sub_buffer_kb: Option<usize>,
    /// ftrace's name of the clock.
    pub clock: String,
}

/// Records of an event are kept if the condition holds: `sched:sched_switch`, `prev_prio < 100 || next_prio < 100`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventFilter {
    /// `system:event`.
    pub event: String,
    /// The condition, in the syntax of the kernel's `filter` files (Documentation/trace/events.rst, 5).
    pub condition: String,
}

impl Default for RecorderOptions {
    /// Switches and wakeups of all LWPs, and interrupts; and the program's system calls.
    fn default() -> RecorderOptions {
        let owned = |events: &[&str]| events.iter().map(|e| (*e).to_owned()).collect();
        RecorderOptions {
            machine_events: owned(&[
                "sched:sched_switch",
                "sched:sched_waking",
                "sched:sched_wakeup",
                "sched:sched_wakeup_new",
                "sched:sched_migrate_task",
                "sched:sched_process_fork",
                "task:task_newtask",
                "sched:sched_process_exec",
                "sched:sched_process_exit",
                "irq:irq_handler_entry",
                "irq:irq_handler_exit",
                "irq:softirq_entry",
                "irq:softirq_exit",
                "irq:softirq_raise",
            ]),
            program_events: owned(&["raw_syscalls:sys_enter", "raw_syscalls:sys_exit"]),
            filters: Vec::new(),
            buffer_kb_per_cpu: 8192,
            sub_buffer_kb: None,
            clock: CLOCK_TSC.to_owned(),
        }
    }
}
