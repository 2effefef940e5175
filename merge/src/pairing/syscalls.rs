//! System calls: from `sys_enter` to `sys_exit` of one LWP.
//!
//! 1. An exit of a call other than the open one gives no row and closes no call. The exit number −1 (of `rt_sigreturn`,
//!    and of calls that a tracer has skipped) matches any open call.
//! 2. An entry while a call is open ends the open call, whose exit is missing. That call is known up to the last switch
//!    of its LWP. If two events report the same call (`sys_enter` and `sys_enter_read`), they make one row.
//! 3. If an LWP ends within a call, the call ends at the LWP's last switch.

use sigmund_model::{Cpu, EndReason, Lwp, Thread, Ticks};

use super::names::{NameId, Names};
use crate::{
    error::Error,
    tables::{SyscallRow, SyscallRows},
};

/// Maximum number of arguments of a system call.
const MOST_ARGS: usize = 6;

/// The names of system calls with numbers below this are found by index, without a hash.
const NUMBERS: usize = 1024;

/// Whether an LWP is in a system call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    /// Unknown: the LWP has no recorded system call yet, or events are missing.
    #[default]
    Unknown,
    Outside,
    Inside,
}

/// The system call of an LWP. The next call overwrites the previous one in place, to avoid a copy.
#[derive(Debug, Default)]
pub(crate) struct Call {
    state: State,
    /// The current call, or the last one.
    open: OpenCall,
}

impl Call {
    /// The reason why an LWP in this call leaves its CPU while runnable.
    pub(crate) fn reason_to_leave_runnable(&self) -> EndReason {
        match self.state {
            State::Unknown => EndReason::Runnable,
            State::Inside if self.open.yields => EndReason::SchedYield,
            State::Outside | State::Inside => EndReason::Preempted,
        }
    }

    /// Whether system calls of the LWP are traced.
    pub(crate) fn is_known(&self) -> bool {
        self.state != State::Unknown
    }

    /// The call that the LWP is in.
    #[inline]
    pub(crate) fn open(&self) -> Option<&OpenCall> {
        (self.state == State::Inside).then_some(&self.open)
    }

    /// The LWP is in no call.
    #[inline]
    pub(crate) fn leave(&mut self) {
        self.state = State::Outside;
    }

    /// It becomes unknown whether the LWP is in a call.
    pub(crate) fn lose(&mut self) {
        self.state = State::Unknown;
    }

    /// The LWP leaves its CPU, to sleep or not: the call has lasted at least until now.
    pub(crate) fn leaves_cpu(&mut self, sleeps: bool, tick: Ticks) {
        if self.state == State::Inside {
            self.open.known_until = tick;
            self.open.slept |= sleeps;
        }
    }

    /// From now on, the LWP's time on CPUs in this call is unknown.
    pub(crate) fn lose_cpu(&mut self) {
        self.open.on_cpu_before = None;
    }
}

/// A call that has begun.
#[derive(Debug, Default)]
pub(crate) struct OpenCall {
    since: Ticks,
    /// The CPU at the entry.
    cpu: Option<Cpu>,
    thread: Option<Thread>,
    is_of_idle_carrier: bool,
    number: Option<i64>,
    name: Option<NameId>,
    /// The event type of its entry.
    event_kind: usize,
    /// The arguments. Only the first `args_len` belong to this call.
    args: [i64; MOST_ARGS],
    args_len: u8,
    /// The LWP's time on CPUs at the entry; `None` once the time since then is unknown.
    on_cpu_before: Option<u64>,
    known_until: Ticks,
    slept: bool,
    yields: bool,
}

/// What is known about an LWP when it enters a system call.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AtEntry {
    pub(crate) cpu: Option<Cpu>,
    /// The user thread that it carries.
    pub(crate) thread: Option<Thread>,
    /// Whether it carries user threads, but none now. If it sleeps, it waits for work.
    pub(crate) is_idle_carrier: bool,
    /// The LWP's time on CPUs until now.
    pub(crate) on_cpu: Option<u64>,
}

impl OpenCall {
    pub(crate) fn is_of_idle_carrier(&self) -> bool {
        self.is_of_idle_carrier
    }

    pub(crate) fn since(&self) -> Ticks {
        self.since
    }

    pub(crate) fn number(&self) -> Option<i64> {
        self.number
    }

    pub(crate) fn cpu(&self) -> Option<Cpu> {
        self.cpu
    }

    pub(crate) fn thread(&self) -> Option<Thread> {
        self.thread
    }

    pub(crate) fn slept(&self) -> bool {
        self.slept
    }

    pub(crate) fn name(&self) -> Option<NameId> {
        self.name
    }

    pub(crate) fn args(&self) -> &[i64] {
        &self.args[..usize::from(self.args_len)]
    }

    /// The last instant at which the call is known to be open. For a call without an exit.
    pub(crate) fn known_until(&self) -> Ticks {
        self.known_until
    }
}

/// What an event reports about a system call.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CallEvent<'e> {
    pub(crate) event_kind: usize,
    pub(crate) number: Option<i64>,
    pub(crate) name: Option<&'e str>,
}

/// How a call has ended.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CallEnd {
    pub(crate) at: Ticks,
    pub(crate) ret: Option<i64>,
    /// The LWP's time on CPUs until then.
    pub(crate) on_cpu: Option<u64>,
    pub(crate) reason: EndReason,
}

/// The table, and the names of calls.
pub(crate) struct Syscalls {
    rows: Option<SyscallRows>,
    names: Names,
    by_number: Vec<Option<NameId>>,
    sched_yield: Option<NameId>,
    exit: Option<NameId>,
    exit_group: Option<NameId>,
}

impl Syscalls {
    pub(super) fn new(rows: Option<SyscallRows>) -> Syscalls {
        let mut names = Names::default();
        let [sched_yield, exit, exit_group] =
            ["sched_yield", "exit", "exit_group"].map(|name| names.id(name));
        Syscalls { rows, names, by_number: vec![None; NUMBERS], sched_yield, exit, exit_group }
    }

    /// The id of the name. Names by number are found without a hash.
    #[inline]
    fn name_id(&mut self, event: &CallEvent<'_>) -> Option<NameId> {
        let name = event.name?;
        let slot = event.number.and_then(|number| self.by_number.get_mut(usize::try_from(number).ok()?));
        match slot {
            Some(Some(id)) if self.names.of(*id) == name => Some(*id),
            Some(slot) => {
                *slot = self.names.id(name);
                *slot
            }
            None => self.names.id(name),
        }
    }

    pub(crate) fn name(&self, id: NameId) -> &str {
        self.names.of(id)
    }

    /// A call begins. Returns its exit code if it ends its LWP, or its process (then `true`).
    #[inline]
    pub(crate) fn enter(
        &mut self,
        call: &mut Call,
        event: &CallEvent<'_>,
        args: impl Iterator<Item = i64>,
        at_entry: AtEntry,
        tick: Ticks,
    ) -> Option<(i64, bool)> {
        let name = self.name_id(event);
        call.state = State::Inside;
        let open = &mut call.open;
        open.since = tick;
        open.cpu = at_entry.cpu;
        open.thread = at_entry.thread;
        open.is_of_idle_carrier = at_entry.is_idle_carrier;
        open.number = event.number;
        open.name = name;
        open.event_kind = event.event_kind;
        open.on_cpu_before = at_entry.on_cpu;
        open.known_until = tick;
        (open.slept, open.yields) = (false, false);
        // Trailing zeros are left out.
        let mut given = 0;
        for ((slot, arg), len) in open.args.iter_mut().zip(args).zip(1..) {
            *slot = arg;
            given = if arg == 0 { given } else { len };
        }
        open.args_len = given;
        name?;
        open.yields = name == self.sched_yield;
        let exits = name == self.exit || name == self.exit_group;
        exits.then(|| (open.args().first().copied().unwrap_or(0), name == self.exit_group))
    }

    /// Whether an entry reports the call that is already open. That is so if it is another event, or a duplicate: perf
    /// writes some samples twice.
    pub(crate) fn is_same_entry(&mut self, open: &OpenCall, event: &CallEvent<'_>, tick: Ticks) -> bool {
        (open.event_kind != event.event_kind || open.since == tick)
            && open.known_until == open.since
            && self.is_same_call(open, event)
    }

    /// Whether an exit belongs to the open call.
    #[inline]
    pub(crate) fn is_exit_of(&mut self, open: &OpenCall, event: &CallEvent<'_>) -> bool {
        (event.number == Some(-1) && event.name.is_none()) || self.is_same_call(open, event)
    }

    #[inline]
    fn is_same_call(&mut self, open: &OpenCall, event: &CallEvent<'_>) -> bool {
        match (open.number, event.number) {
            (Some(number), Some(same)) => number == same,
            _ => match (open.name, self.name_id(event)) {
                (Some(name), Some(same)) => name == same,
                _ => false,
            },
        }
    }

    /// Writes a call that has ended.
    #[inline]
    pub(crate) fn write(&mut self, lwp: Lwp, call: &OpenCall, end: CallEnd) -> Result<(), Error> {
        let Some(rows) = &mut self.rows else { return Ok(()) };
        let on_cpu = call.on_cpu_before.zip(end.on_cpu).map(|(before, now)| now - before);
        let row = SyscallRow {
            since: call.since,
            end: end.at,
            lwp,
            thread: call.thread,
            number: call.number,
            name: call.name.map(NameId::number),
            args: call.args(),
            ret: end.ret,
            off_cpu: on_cpu.map(|on_cpu| (end.at.0 - call.since.0).saturating_sub(on_cpu)),
            reason: end.reason,
        };
        rows.push(row, self.names.all())
    }

    pub(super) fn finish(self) -> Result<(), Error> {
        self.rows.map_or(Ok(()), |rows| rows.finish(self.names.all()))
    }
}
