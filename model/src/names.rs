//! The two names of an event: the paper's, and the kernel's own.
//!
//! A trace keeps the names it was recorded with. Filters and selectors accept either.

/// The user context switch; its first parameter is the user thread that is dispatched.
pub const USER_CONTEXT_SWITCH: &str = "USER_CONTEXT_SWITCH";
/// A user thread has taken a lock: its address, and the [number](crate::WaitKind::number) of the kind of wait for it.
pub const LOCK_ACQUIRE: &str = "LOCK_ACQUIRE";
/// A user thread is about to release a lock; the same parameters.
pub const LOCK_RELEASE: &str = "LOCK_RELEASE";
/// Prefix of the kinds of the kernel's own locks. The kinds of a process's locks do not have it.
pub const KERNEL_LOCK: &str = "kernel-";
/// A user thread forks a team: the team's number, unique in the process.
pub const USER_TEAM_FORK: &str = "USER_TEAM_FORK";
/// A user thread is created for a team: the team's number, and the thread's.
pub const USER_TEAM_MEMBER: &str = "USER_TEAM_MEMBER";
/// All threads of a team have ended, and the thread that forked it continues: the team's number.
pub const USER_TEAM_JOIN: &str = "USER_TEAM_JOIN";
/// The kernel's context switch in a listing; its parameter is the LWP that is switched in.
pub const KERN_CONTEXT_SWITCH: &str = "KERN_CONTEXT_SWITCH";
/// Entry to an interrupt handler in a listing; its parameter is the interrupt's number.
pub const IRQ: &str = "IRQ";
/// Exit from an interrupt handler.
pub const IRQ_EXIT: &str = "IRQ_EXIT";
/// A named event of the program: its parameter is its name.
pub const USER_EVENT: &str = "USER_EVENT";

/// Whether requests for this kind of lock have only waits, and no holds or releases. That is so for futexes and for
/// locks of the kernel.
pub fn has_waits_only(lock_kind: &str) -> bool {
    lock_kind == "futex" || lock_kind.starts_with(KERNEL_LOCK)
}

/// Kernel tracepoints that have a name in the paper's vocabulary.
const ALIASES: &[(&str, &str)] = &[
    ("sched_switch", KERN_CONTEXT_SWITCH),
    ("irq_handler_entry", IRQ),
    ("irq_handler_exit", IRQ_EXIT),
    ("sys_enter", "SYSTEM_CALL"),
];

/// The kernel's name for the first parameter of an event that has a name in the paper's vocabulary.
pub fn first_field(name: &str) -> Option<&'static str> {
    Some(match name {
        KERN_CONTEXT_SWITCH => "next_pid",
        IRQ | IRQ_EXIT => "irq",
        "SYSTEM_CALL" => "id",
        _ => return None,
    })
}

/// Both names of an event, given either. One element if it has only one.
pub fn synonyms(name: &str) -> Vec<&str> {
    let other = ALIASES.iter().find_map(|(kernel, paper)| match name {
        _ if name == *kernel => Some(*paper),
        _ if name == *paper => Some(*kernel),
        _ => None,
    });
    std::iter::once(name).chain(other).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn either_name_finds_both() {
        assert_eq!(synonyms("IRQ"), ["IRQ", "irq_handler_entry"]);
        assert_eq!(synonyms("sched_switch"), ["sched_switch", "KERN_CONTEXT_SWITCH"]);
        assert_eq!(synonyms("received_msg"), ["received_msg"]);
    }
}
