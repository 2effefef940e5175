//! What is recorded, of which LWPs, and the size of the buffers.

use sigmund_model::Pid;

/// ftrace's name of the time-stamp counter: the very counter that probes read.
pub(super) const CLOCK_TSC: &str = "x86-tsc";

/// Whose events are recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// The machine's scheduling and interrupts, and what this program and its children do.
    Program(Pid),
    /// Only what concerns this program and its children. Switches between it and others are seen, those among
    /// others are not.
    Only(Pid),
    /// All of the whole machine.
    System,
}

/// Which events are recorded, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecorderOptions {
    /// Tracepoints of LWPs on CPUs, and of the causes, `system:event`.
    pub machine_events: Vec<String>,
    /// Tracepoints of what programs do, `system:event`.
    pub program_events: Vec<String>,
    /// Conditions on the fields of an event, for the kernel to check.
    pub filters: Vec<EventFilter>,
    /// Size of the kernel's buffer for each CPU and instance, in KiB.
    pub buffer_kb_per_cpu: usize,
    /// Size of the pieces ("sub-buffers") that are taken out of a buffer, in KiB. `None` is the kernel's own choice,
    /// a page. Kernels before 6.8 have no other.
    pub sub_buffer_kb: Option<usize>,
    /// ftrace's name of the clock.
    pub clock: String,
}

/// Records of an event are kept where this holds: `sched:sched_switch`, `prev_prio < 100 || next_prio < 100`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventFilter {
    /// `system:event`.
    pub event: String,
    /// The condition, as the kernel's `filter` files take it (Documentation/trace/events.rst, 5).
    pub condition: String,
}

impl Default for RecorderOptions {
    /// Who is on which CPU and why, interrupts; and the program's system calls.
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
