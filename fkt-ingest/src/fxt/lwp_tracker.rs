//! The LWP and the user thread of a record, as far as the codes show.
//!
//! * A kernel's record has its LWP and its CPU. Entries to the kernel are nested per LWP, and `ret_from_sys_call` ends
//!   the innermost: a system call, a trap or an interrupt.
//! * A program's record has the program's id of the thread: with PM2 the user thread, elsewhere `pthread_self()`, or 0.
//!   PM2 numbers its LWPs, and records which thread is on which: `fut_new_lwp`, then `fut_switch_to`. Number 0 is the
//!   LWP that began to record, the process itself. The kernel's ids of the others are not in the file, so they get ids
//!   that no kernel assigns, from [`FIRST_NUMBERED`] on, and names that show it.
//! * StarPU's `fut_new_lwp` has the kernel's id of the LWP itself.

use std::collections::HashMap;

use sigmund_model::{Effect, LeaveReason, Lwp, Reported, Thread, Wait};

use super::codes::KernelEntry;

/// Ids for LWPs that the file only numbers. Linux assigns none above 2^22.
pub(super) const FIRST_NUMBERED: u32 = 1 << 30;

/// The largest id that Linux assigns to an LWP (`PID_MAX_LIMIT`).
const MAX_PID: u64 = 1 << 22;

/// LWPs beyond this number are not tracked.
const MAX_LWPS: usize = 1 << 16;

/// Largest nesting depth that is tracked.
const MAX_NESTED: usize = 16;

/// The state after the records so far.
#[derive(Debug, Default)]
pub(super) struct LwpTracker {
    /// Open entries to the kernel, by LWP; the idle task of each CPU has its own.
    entries: HashMap<(Option<u16>, u64), Vec<KernelEntry>>,
    /// The LWP of each user thread that is mounted, or was the last one before.
    lwps: HashMap<u64, (Lwp, IsMounted)>,
    /// By LWP, the thread that is mounted and the one before.
    mounted: HashMap<Lwp, (u64, Option<u64>)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum IsMounted {
    Yes,
    NoLonger,
}

/// The LWP with this number in PM2; `process` is the process that recorded.
pub(super) fn numbered(number: u64, process: Option<u32>) -> Option<Lwp> {
    match (u32::try_from(number).ok()?, process) {
        (0, Some(process)) => Some(Lwp(process)),
        (number, _) => Some(Lwp(FIRST_NUMBERED.checked_add(number)?)),
    }
}

/// The content of a `fut_new_lwp` record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NewLwp {
    /// The kernel's id.
    Known(Lwp),
    /// A number, and the thread it carries.
    Numbered { number: u64, carries: u64 },
}

impl NewLwp {
    /// A pointer to a thread is larger than any id; a record with a thread's id is not StarPU's.
    pub(super) fn of(id: u64, number: u64, carries: u64) -> NewLwp {
        match u32::try_from(carries) {
            Ok(lwp) if id == 0 && lwp > 0 && carries <= MAX_PID => NewLwp::Known(Lwp(lwp)),
            _ => NewLwp::Numbered { number, carries },
        }
    }
}

impl LwpTracker {
    /// An entry to the kernel.
    pub(super) fn enter(&mut self, cpu: Option<u16>, pid: u64, entry: KernelEntry) -> Effect {
        if self.entries.len() < MAX_LWPS {
            let open = self.entries.entry(stack_of(cpu, pid)).or_default();
            if open.len() >= MAX_NESTED {
                open.remove(0);
            }
            open.push(entry);
        }
        entry.interrupt().map_or(Effect::None, Effect::InterruptEnter)
    }

    /// The end of the innermost entry.
    pub(super) fn leave(&mut self, cpu: Option<u16>, pid: u64) -> Effect {
        let ended = self.entries.get_mut(&stack_of(cpu, pid)).and_then(Vec::pop);
        ended.and_then(KernelEntry::interrupt).map_or(Effect::None, Effect::InterruptExit)
    }

    /// The LWP of a record with this thread, and the thread mounted on it.
    pub(super) fn of_thread(&self, id: u64) -> (Option<Lwp>, Reported<Thread>) {
        let Some(thread) = Thread::from_switch(id) else { return (None, Reported::Nothing) };
        match self.lwps.get(&id) {
            Some((lwp, IsMounted::Yes)) => (Some(*lwp), Reported::Some(thread)),
            // The switch is recorded before the stack changes.
            Some((lwp, IsMounted::NoLonger)) => (Some(*lwp), Reported::Nothing),
            None => (None, Reported::Some(thread)),
        }
    }

    /// An LWP of PM2 begins with this thread.
    pub(super) fn new_lwp(&mut self, lwp: Lwp, thread: u64) -> Effect {
        self.mount(lwp, thread)
    }

    /// The LWP of this thread switches to another thread.
    pub(super) fn switch(&mut self, id: u64, next: u64) -> Effect {
        match self.lwps.get(&id) {
            Some((lwp, _)) => self.mount(*lwp, next),
            None => user_switch(next),
        }
    }

    fn mount(&mut self, lwp: Lwp, thread: u64) -> Effect {
        if self.mounted.len() < MAX_LWPS || self.mounted.contains_key(&lwp) {
            let (leaving, forgotten) =
                self.mounted.get(&lwp).map_or((None, None), |(now, before)| (Some(*now), *before));
            if let Some(forgotten) =
                forgotten.filter(|id| self.lwps.get(id) == Some(&(lwp, IsMounted::NoLonger)))
            {
                self.lwps.remove(&forgotten);
            }
            if let Some(leaving) = leaving.filter(|id| self.lwps.get(id) == Some(&(lwp, IsMounted::Yes))) {
                self.lwps.insert(leaving, (lwp, IsMounted::NoLonger));
            }
            self.lwps.insert(thread, (lwp, IsMounted::Yes));
            self.mounted.insert(lwp, (thread, leaving));
        }
        user_switch(thread)
    }
}

fn user_switch(next: u64) -> Effect {
    Effect::UserSwitch {
        next: Thread::from_switch(next),
        reason: LeaveReason::Unknown,
        wait: Wait::default(),
    }
}

/// LWP 0 is the idle task of a CPU.
fn stack_of(cpu: Option<u16>, pid: u64) -> (Option<u16>, u64) {
    if pid == 0 { (cpu, 0) } else { (None, pid) }
}
