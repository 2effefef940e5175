//! LTTng's names of kernel events, which Trace Compass's kernel analyses expect.
//!
//! LTTng's kernel tracer uses other names for the kernel's tracepoints: `tid` for ftrace's `pid`; some names begin with
//! the subsystem (`irq_softirq_entry`), and each system call has its own event. The analyses of Trace Compass expect
//! these names (`LttngEventLayout` and `Lttng26EventLayout` to `Lttng29EventLayout` in
//! org.eclipse.tracecompass.lttng2.kernel.core, `KernelStateProvider` and its handlers in
//! org.eclipse.tracecompass.analysis.os.linux.core; read as of 2019). An event without a field that its handler
//! requires would stop the analysis, so it gets another name.

use super::form::TsdlType;

/// The names of one event.
#[derive(Debug)]
pub(super) struct UsualName {
    /// Name in ftrace and perf.
    kernel: &'static str,
    /// Name in LTTng.
    pub(super) lttng: &'static str,
    /// Renamed fields: name in the kernel, name in LTTng.
    fields: &'static [(&'static str, &'static str)],
    /// Numbers that the handler requires, by LTTng's names.
    numbers: &'static [&'static str],
    /// Texts that the handler requires.
    texts: &'static [&'static str],
}

const PID: &[(&str, &str)] = &[("pid", "tid")];

const fn same(kernel: &'static str, numbers: &'static [&'static str]) -> UsualName {
    UsualName { kernel, lttng: kernel, fields: &[], numbers, texts: &[] }
}

const fn of_pid(kernel: &'static str, numbers: &'static [&'static str]) -> UsualName {
    UsualName { kernel, lttng: kernel, fields: PID, numbers, texts: &[] }
}

const fn renamed(kernel: &'static str, lttng: &'static str, numbers: &'static [&'static str]) -> UsualName {
    UsualName { kernel, lttng, fields: &[], numbers, texts: &[] }
}

static USUAL_NAMES: &[UsualName] = &[
    UsualName {
        kernel: "sched_switch",
        lttng: "sched_switch",
        fields: &[("prev_pid", "prev_tid"), ("next_pid", "next_tid")],
        numbers: &["prev_tid", "prev_prio", "prev_state", "next_tid", "next_prio"],
        texts: &["prev_comm", "next_comm"],
    },
    of_pid("sched_wakeup", &["tid", "prio"]),
    of_pid("sched_wakeup_new", &["tid", "prio"]),
    of_pid("sched_waking", &["tid", "prio"]),
    of_pid("sched_migrate_task", &["tid", "dest_cpu"]),
    of_pid("sched_process_exit", &["tid"]),
    of_pid("sched_process_free", &["tid"]),
    of_pid("sched_process_wait", &[]),
    UsualName {
        kernel: "sched_process_exec",
        lttng: "sched_process_exec",
        fields: &[("pid", "tid"), ("old_pid", "old_tid")],
        numbers: &["tid"],
        texts: &["filename"],
    },
    UsualName {
        kernel: "sched_process_fork",
        lttng: "sched_process_fork",
        fields: &[("parent_pid", "parent_tid"), ("child_pid", "child_tid")],
        numbers: &["parent_tid", "child_tid"],
        texts: &["child_comm"],
    },
    of_pid("sched_pi_setprio", &["tid", "newprio"]),
    of_pid("sched_stat_wait", &[]),
    of_pid("sched_stat_sleep", &[]),
    of_pid("sched_stat_iowait", &[]),
    of_pid("sched_stat_blocked", &[]),
    of_pid("sched_stat_runtime", &[]),
    same("irq_handler_entry", &["irq"]),
    same("irq_handler_exit", &["irq"]),
    renamed("softirq_entry", "irq_softirq_entry", &["vec"]),
    renamed("softirq_exit", "irq_softirq_exit", &["vec"]),
    renamed("softirq_raise", "irq_softirq_raise", &["vec"]),
    renamed("hrtimer_start", "timer_hrtimer_start", &[]),
    renamed("hrtimer_cancel", "timer_hrtimer_cancel", &[]),
    renamed("hrtimer_expire_entry", "timer_hrtimer_expire_entry", &[]),
    renamed("hrtimer_expire_exit", "timer_hrtimer_expire_exit", &[]),
    renamed("mm_page_alloc", "kmem_mm_page_alloc", &[]),
    renamed("mm_page_free", "kmem_mm_page_free", &[]),
    renamed("local_timer_entry", "x86_irq_vectors_local_timer_entry", &["vector"]),
    renamed("local_timer_exit", "x86_irq_vectors_local_timer_exit", &["vector"]),
    renamed("reschedule_entry", "x86_irq_vectors_reschedule_entry", &["vector"]),
    renamed("reschedule_exit", "x86_irq_vectors_reschedule_exit", &["vector"]),
    renamed("call_function_entry", "x86_irq_vectors_call_function_entry", &["vector"]),
    renamed("call_function_exit", "x86_irq_vectors_call_function_exit", &["vector"]),
    renamed("call_function_single_entry", "x86_irq_vectors_call_function_single_entry", &["vector"]),
    renamed("call_function_single_exit", "x86_irq_vectors_call_function_single_exit", &["vector"]),
    renamed("irq_work_entry", "x86_irq_vectors_irq_work_entry", &["vector"]),
    renamed("irq_work_exit", "x86_irq_vectors_irq_work_exit", &["vector"]),
];

/// Prefixes of the name of a system call.
pub(super) const SYSCALL_ENTRY: &str = "syscall_entry_";
pub(super) const SYSCALL_EXIT: &str = "syscall_exit_";

/// Suffix of an event that lacks a field that Trace Compass's handler requires.
const INCOMPLETE: &str = "_incomplete";

/// Prefix of a user event that Trace Compass would treat as a kernel event.
const USER: &str = "user:";

impl UsualName {
    /// Finds a kernel event by its name in the kernel or in LTTng.
    pub(super) fn of(event: &str) -> Option<&'static UsualName> {
        USUAL_NAMES.iter().find(|usual| usual.kernel == event || usual.lttng == event)
    }

    /// LTTng's name of a field.
    pub(super) fn field<'n>(&self, name: &'n str) -> &'n str {
        self.fields.iter().find(|(kernel, _)| *kernel == name).map_or(name, |(_, lttng)| lttng)
    }

    /// The name of an event with these fields, by LTTng's names.
    pub(super) fn name(&self, fields: &[(&str, Option<TsdlType>)]) -> String {
        let has = |name: &str, fits: fn(&TsdlType) -> bool| {
            fields.iter().any(|(field, ty)| *field == name && ty.as_ref().is_some_and(fits))
        };
        let numbers = self.numbers.iter().all(|name| has(name, |ty| matches!(ty, TsdlType::Integer(_))));
        let texts = self.texts.iter().all(|name| has(name, |ty| *ty == TsdlType::Text));
        if numbers && texts { self.lttng.into() } else { format!("{}{INCOMPLETE}", self.lttng) }
    }
}

/// The name of a user event.
pub(super) fn user_event(name: &str) -> String {
    let is_kernels = USUAL_NAMES.iter().any(|usual| usual.lttng == name)
        || [SYSCALL_ENTRY, SYSCALL_EXIT, "compat_syscall_", "lttng_statedump_", USER]
            .iter()
            .any(|prefix| name.starts_with(prefix));
    if is_kernels { format!("{USER}{name}") } else { name.to_owned() }
}

/// LTTng's name of the event of a system call, such as `sys_enter_openat`.
pub(super) fn syscall(event: &str) -> Option<String> {
    let entry = event.strip_prefix("sys_enter_").map(|call| format!("{SYSCALL_ENTRY}{call}"));
    entry.or_else(|| Some(format!("{SYSCALL_EXIT}{}", event.strip_prefix("sys_exit_")?)))
}

/// Whether an event whose parameter `id` is the system call is its entry or its exit.
pub(super) fn raw_syscall(event: &str) -> Option<&'static str> {
    match event {
        "sys_enter" => Some(SYSCALL_ENTRY),
        "sys_exit" => Some(SYSCALL_EXIT),
        _ => None,
    }
}
