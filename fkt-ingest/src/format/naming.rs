//! Names of well-known numbers: system calls, and the states of LWPs. The number itself is kept.

use std::sync::LazyLock;

use sigmund_model::vocabulary::{KnownEvent, Meaning, Role};
use sigmund_model::{EventType, Params};
use syscalls::x86_64::Sysno;

/// Letters of `prev_state` (`task_state_array`, fs/proc/array.c, v6.12); the `+` of `R+` means "preempted"
/// (`TASK_REPORT_MAX`).
const TASK_STATES: [(i64, &str); 10] = [
    (0, "R"),
    (0x01, "S"),
    (0x02, "D"),
    (0x04, "T"),
    (0x08, "t"),
    (0x10, "X"),
    (0x20, "Z"),
    (0x40, "P"),
    (0x80, "I"),
    (0x100, "R+"),
];

/// Which parameter of an event has a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Naming {
    None,
    SystemCall(usize),
    TaskState(usize),
}

impl Naming {
    /// The naming of this event. System calls are named on x86-64 only, because other machines number them differently.
    pub(super) fn of(event: &EventType, is_x86_64: bool) -> Naming {
        let Some(known) = KnownEvent::of(event) else { return Naming::None };
        // The name of `sys_enter_read` already contains its system call.
        let is_named = known.named_by(&event.name).is_some();
        let naming = match known.meaning() {
            Meaning::SyscallEnter | Meaning::SyscallExit if is_x86_64 && !is_named => {
                known.field(Role::Number).map(Naming::SystemCall)
            }
            Meaning::Switch => known.field(Role::PrevState).map(Naming::TaskState),
            _ => None,
        };
        naming.unwrap_or(Naming::None)
    }

    #[inline]
    pub(super) fn apply(self, params: &mut Params) {
        let (index, name) = match self {
            Naming::None => return,
            Naming::SystemCall(index) => (index, params.number(index).and_then(system_call)),
            Naming::TaskState(index) => (index, params.number(index).and_then(task_state)),
        };
        if let Some(name) = name {
            params.name_constant(index, name);
        }
    }
}

/// Names by number, for lookup in one step.
static SYSTEM_CALLS: LazyLock<Vec<Option<&'static str>>> = LazyLock::new(|| {
    (0..SYSTEM_CALL_NUMBERS).map(|number| Sysno::new(number).map(|call| call.name())).collect()
});

/// More than the highest number on x86-64 (some 470).
const SYSTEM_CALL_NUMBERS: usize = 1024;

#[inline]
fn system_call(number: i64) -> Option<&'static str> {
    SYSTEM_CALLS.get(usize::try_from(number).ok()?).copied()?
}

fn task_state(number: i64) -> Option<&'static str> {
    TASK_STATES.iter().find(|(bits, _)| *bits == number).map(|(_, letter)| *letter)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_numbers_have_names_and_others_have_none() {
        assert_eq!((system_call(9), system_call(202)), (Some("mmap"), Some("futex")));
        assert_eq!((system_call(-1), system_call(100_000)), (None, None));
        assert_eq!((task_state(2), task_state(0x100), task_state(3)), (Some("D"), Some("R+"), None));
    }
}
