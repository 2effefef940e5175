//! The table. If several rows match an event's name, the first one whose required fields the event has applies.

use super::{
    FieldRow, FunctionKey, InterruptKind as Irq, Meaning,
    Pattern::{self, Begins, Ends, Is},
    Role, Row,
};
use crate::{
    Level::{self, Kern, User},
    names,
};

const fn needs(role: Role, name: &'static str) -> FieldRow {
    FieldRow { role, name, unnamed: None, required: true }
}

const fn has(role: Role, name: &'static str) -> FieldRow {
    FieldRow { role, name, unnamed: None, required: false }
}

/// Required; in sources that do not name fields, the field is at this position.
const fn needs_at(role: Role, name: &'static str, unnamed: usize) -> FieldRow {
    FieldRow { role, name, unnamed: Some(unnamed), required: true }
}

const fn has_at(role: Role, name: &'static str, unnamed: usize) -> FieldRow {
    FieldRow { role, name, unnamed: Some(unnamed), required: false }
}

/// The first field, whatever its name: the address of a function, of an instruction in it, or of a span's description.
const CODE: FieldRow = needs_at(Role::Code, "", 0);

const fn row(level: Level, pattern: Pattern, meaning: Meaning, fields: &'static [FieldRow]) -> Row {
    Row { level, pattern, meaning, fields }
}

/// A vector of x86 (`irq_vectors`).
const fn vector(pattern: Pattern, meaning: Meaning) -> Row {
    const VECTOR: &[FieldRow] = &[needs(Role::Number, "vector")];
    row(Kern, pattern, meaning, VECTOR)
}

const fn enters(kind: Irq) -> Meaning {
    Meaning::InterruptEnter(kind)
}

const fn exits(kind: Irq) -> Meaning {
    Meaning::InterruptExit(kind)
}

pub(super) static ROWS: &[Row] = &[
    // LTTng: a thread's number is `tid`, a process's is `pid`. These rows come before the kernel's own names: by those,
    // LTTng's context field `pid` would be taken for the thread that a wakeup concerns.
    row(
        Kern,
        Is("sched_switch"),
        Meaning::Switch,
        &[
            needs(Role::PrevLwp, "prev_tid"),
            has(Role::PrevName, "prev_comm"),
            has(Role::PrevState, "prev_state"),
            needs(Role::NextLwp, "next_tid"),
            has(Role::NextName, "next_comm"),
        ],
    ),
    row(
        Kern,
        Is("sched_waking"),
        Meaning::Waking,
        &[needs(Role::Lwp, "tid"), has(Role::LwpName, "comm"), has(Role::TargetCpu, "target_cpu")],
    ),
    row(
        Kern,
        Is("sched_wakeup"),
        Meaning::Wakeup,
        &[needs(Role::Lwp, "tid"), has(Role::LwpName, "comm"), has(Role::TargetCpu, "target_cpu")],
    ),
    row(
        Kern,
        Is("sched_wakeup_new"),
        Meaning::Wakeup,
        &[needs(Role::Lwp, "tid"), has(Role::LwpName, "comm"), has(Role::TargetCpu, "target_cpu")],
    ),
    row(
        Kern,
        Is("sched_migrate_task"),
        Meaning::Migrate,
        &[needs(Role::Lwp, "tid"), needs(Role::TargetCpu, "dest_cpu")],
    ),
    row(
        Kern,
        Is("sched_process_fork"),
        Meaning::LwpNew,
        &[
            needs(Role::Lwp, "child_tid"),
            has(Role::Process, "child_pid"),
            has(Role::ParentProcess, "parent_pid"),
            has(Role::LwpName, "child_comm"),
        ],
    ),
    // Names of the kernel (ftrace, perf): a thread's number is `pid`.
    row(
        Kern,
        Is("sched_switch"),
        Meaning::Switch,
        &[
            needs(Role::PrevLwp, "prev_pid"),
            has(Role::PrevName, "prev_comm"),
            has(Role::PrevState, "prev_state"),
            needs(Role::NextLwp, "next_pid"),
            has(Role::NextName, "next_comm"),
        ],
    ),
    row(
        Kern,
        Is("sched_waking"),
        Meaning::Waking,
        &[needs_at(Role::Lwp, "pid", 0), has(Role::LwpName, "comm"), has(Role::TargetCpu, "target_cpu")],
    ),
    row(
        Kern,
        Is("sched_wakeup"),
        Meaning::Wakeup,
        &[needs_at(Role::Lwp, "pid", 0), has(Role::LwpName, "comm"), has(Role::TargetCpu, "target_cpu")],
    ),
    row(
        Kern,
        Is("sched_wakeup_new"),
        Meaning::Wakeup,
        &[needs_at(Role::Lwp, "pid", 0), has(Role::LwpName, "comm"), has(Role::TargetCpu, "target_cpu")],
    ),
    row(
        Kern,
        Is("sched_migrate_task"),
        Meaning::Migrate,
        &[needs(Role::Lwp, "pid"), needs(Role::TargetCpu, "dest_cpu")],
    ),
    row(
        Kern,
        Is("sched_process_exec"),
        Meaning::Exec,
        &[needs(Role::Lwp, "pid"), needs(Role::OldLwp, "old_pid")],
    ),
    row(
        Kern,
        Is("task_newtask"),
        Meaning::Clone,
        &[needs(Role::Lwp, "pid"), needs(Role::CloneFlags, "clone_flags")],
    ),
    // ftrace and perf: `child_pid` is the LWP if there is no `child_tid`.
    row(
        Kern,
        Is("sched_process_fork"),
        Meaning::LwpNew,
        &[needs_at(Role::Lwp, "child_pid", 0), has(Role::LwpName, "child_comm")],
    ),
    row(
        Kern,
        Is("sched_process_exit"),
        Meaning::LwpExit,
        &[has(Role::Lwp, "tid"), has(Role::LastOfProcess, "group_dead")],
    ),
    row(
        Kern,
        Is("sched_process_exec"),
        Meaning::Exec,
        &[needs(Role::Lwp, "tid"), needs(Role::OldLwp, "old_tid")],
    ),
    row(
        Kern,
        Is("task_newtask"),
        Meaning::Clone,
        &[needs(Role::Lwp, "tid"), needs(Role::CloneFlags, "clone_flags")],
    ),
    row(
        Kern,
        Is("lttng_statedump_process_state"),
        Meaning::LwpOfProcess,
        &[
            needs(Role::Lwp, "tid"),
            needs(Role::Process, "pid"),
            has(Role::ParentProcess, "ppid"),
            has(Role::LwpName, "name"),
        ],
    ),
    // perf's own records.
    row(
        Kern,
        Is("perf_comm"),
        Meaning::LwpOfProcess,
        &[needs(Role::Lwp, "tid"), needs(Role::Process, "pid"), has(Role::LwpName, "comm")],
    ),
    row(
        Kern,
        Is("perf_fork"),
        Meaning::LwpOfProcess,
        &[needs(Role::Lwp, "tid"), needs(Role::Process, "pid"), has(Role::ParentProcess, "ppid")],
    ),
    row(
        Kern,
        Is("perf_mmap"),
        Meaning::LwpOfProcess,
        &[needs(Role::Lwp, "tid"), needs(Role::Process, "pid")],
    ),
    // Interrupts.
    row(
        Kern,
        Is("irq_handler_entry"),
        enters(Irq::Irq),
        &[needs_at(Role::Number, "irq", 0), has(Role::Name, "name")],
    ),
    row(Kern, Is("irq_handler_exit"), exits(Irq::Irq), &[needs_at(Role::Number, "irq", 0)]),
    row(Kern, Is("softirq_entry"), enters(Irq::Softirq), &[needs_at(Role::Number, "vec", 0)]),
    row(Kern, Is("softirq_exit"), exits(Irq::Softirq), &[needs_at(Role::Number, "vec", 0)]),
    row(Kern, Is("irq_softirq_entry"), enters(Irq::Softirq), &[needs(Role::Number, "vec")]),
    row(Kern, Is("irq_softirq_exit"), exits(Irq::Softirq), &[needs(Role::Number, "vec")]),
    vector(Is("local_timer_entry"), enters(Irq::Timer)),
    vector(Is("local_timer_exit"), exits(Irq::Timer)),
    vector(Is("reschedule_entry"), enters(Irq::Ipi)),
    vector(Is("reschedule_exit"), exits(Irq::Ipi)),
    vector(Is("call_function_entry"), enters(Irq::Ipi)),
    vector(Is("call_function_exit"), exits(Irq::Ipi)),
    vector(Is("call_function_single_entry"), enters(Irq::Ipi)),
    vector(Is("call_function_single_exit"), exits(Irq::Ipi)),
    vector(Is("irq_work_entry"), enters(Irq::Ipi)),
    vector(Is("irq_work_exit"), exits(Irq::Ipi)),
    vector(Is("x86_platform_ipi_entry"), enters(Irq::Ipi)),
    vector(Is("x86_platform_ipi_exit"), exits(Irq::Ipi)),
    // thermal_apic_entry, error_apic_entry, …
    vector(Ends("_entry"), enters(Irq::Vector)),
    vector(Ends("_exit"), exits(Irq::Vector)),
    row(
        Kern,
        Is("nmi_handler"),
        Meaning::NmiHandled,
        &[needs(Role::DurationNs, "delta_ns"), has(Role::Name, "handler")],
    ),
    row(
        Kern,
        Is("contention_begin"),
        Meaning::KernelLockWait,
        &[needs_at(Role::Object, "lock_addr", 0), has_at(Role::LockFlags, "flags", 1)],
    ),
    row(Kern, Is("contention_end"), Meaning::KernelLockWaitEnd, &[needs_at(Role::Object, "lock_addr", 0)]),
    row(Kern, Is("page_fault_user"), Meaning::UserFault, &[]),
    row(Kern, Is("page_fault_kernel"), Meaning::KernelFault, &[]),
    // LTTng.
    row(Kern, Is("x86_exceptions_page_fault_user"), Meaning::UserFault, &[]),
    row(Kern, Is("x86_exceptions_page_fault_kernel"), Meaning::KernelFault, &[]),
    // System calls: one event for all (raw_syscalls), or one event each (ftrace and perf; LTTng).
    row(
        Kern,
        Is("sys_enter"),
        Meaning::SyscallEnter,
        &[needs_at(Role::Number, "id", 0), has_at(Role::Argument, "args0", 1)],
    ),
    row(
        Kern,
        Is("sys_exit"),
        Meaning::SyscallExit,
        &[needs_at(Role::Number, "id", 0), has_at(Role::Return, "ret", 1)],
    ),
    row(Kern, Begins("sys_enter_"), Meaning::SyscallEnter, &[has(Role::Number, "__syscall_nr")]),
    row(
        Kern,
        Begins("sys_exit_"),
        Meaning::SyscallExit,
        &[has(Role::Number, "__syscall_nr"), has(Role::Return, "ret")],
    ),
    row(Kern, Begins("syscall_entry_"), Meaning::SyscallEnter, &[]),
    row(Kern, Begins("syscall_exit_"), Meaning::SyscallExit, &[has(Role::Return, "ret")]),
    row(Kern, Begins("compat_syscall_entry_"), Meaning::SyscallEnter, &[]),
    row(Kern, Begins("compat_syscall_exit_"), Meaning::SyscallExit, &[has(Role::Return, "ret")]),
    // The paper's names, as in listings.
    row(
        Kern,
        Is(names::KERN_CONTEXT_SWITCH),
        Meaning::Switch,
        &[
            needs_at(Role::NextLwp, "next_pid", 0),
            has(Role::PrevLwp, "prev_pid"),
            has(Role::PrevState, "prev_state"),
        ],
    ),
    // A listing's sched_switch may omit the LWP that is switched out.
    row(
        Kern,
        Is("sched_switch"),
        Meaning::Switch,
        &[
            needs_at(Role::NextLwp, "next_pid", 0),
            has(Role::PrevState, "prev_state"),
            has(Role::NextName, "next_comm"),
        ],
    ),
    row(Kern, Is(names::IRQ), enters(Irq::Irq), &[has_at(Role::Number, "irq", 0), has(Role::Name, "name")]),
    row(Kern, Is(names::IRQ_EXIT), exits(Irq::Irq), &[has_at(Role::Number, "irq", 0)]),
    // Names of libfxt.
    row(Kern, Is("switch_to"), Meaning::Switch, &[needs(Role::NextLwp, "next_pid")]),
    row(Kern, Is("do_fork"), Meaning::LwpNew, &[needs(Role::Lwp, "child_pid")]),
    row(User, Is("fut_switch_to"), Meaning::UserSwitch, &[needs(Role::Thread, "next")]),
    row(User, Is("fut_thread_birth"), Meaning::ThreadNew, &[needs(Role::Thread, "thread")]),
    // Runtimes.
    row(
        User,
        Is(names::USER_CONTEXT_SWITCH),
        Meaning::UserSwitch,
        &[
            needs_at(Role::Thread, "next", 0),
            has_at(Role::Reason, "reason", 1),
            has_at(Role::Object, "on", 2),
            has_at(Role::WaitKind, "blocked_for", 3),
        ],
    ),
    row(User, Is("USER_THREAD_NEW"), Meaning::ThreadNew, &[needs_at(Role::Thread, "new", 0)]),
    row(User, Is("USER_THREAD_READY"), Meaning::ThreadReady, &[needs_at(Role::Thread, "ready", 0)]),
    row(User, Is("LWP_ATTACH"), Meaning::LwpAttach, &[has_at(Role::CpuTimeNs, "cpu_time_ns", 0)]),
    row(User, Is("LWP_DETACH"), Meaning::LwpDetach, &[has_at(Role::CpuTimeNs, "cpu_time_ns", 0)]),
    row(
        User,
        Is(names::LOCK_ACQUIRE),
        Meaning::LockAcquire,
        &[needs_at(Role::Object, "lock", 0), needs_at(Role::WaitKind, "kind", 1)],
    ),
    row(
        User,
        Is(names::LOCK_RELEASE),
        Meaning::LockRelease,
        &[needs_at(Role::Object, "lock", 0), needs_at(Role::WaitKind, "kind", 1)],
    ),
    row(User, Is("SPAN_BEGIN"), Meaning::SpanBegin, &[CODE]),
    row(User, Is("SPAN_END"), Meaning::SpanEnd, &[CODE]),
    row(User, Is("PROF_IN"), Meaning::FunctionEnter(FunctionKey::Name), &[CODE]),
    row(User, Is("PROF_OUT"), Meaning::FunctionExit(FunctionKey::Name), &[CODE]),
    row(User, Is("FUNC_ENTER"), Meaning::FunctionEnter(FunctionKey::Address), &[CODE]),
    row(User, Is("FUNC_EXIT"), Meaning::FunctionExit(FunctionKey::Address), &[CODE]),
];
