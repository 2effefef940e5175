//! The events of a simulated world, and its history: the truth.

use std::collections::{BTreeMap, BTreeSet};

/// A user thread: the index of its process, and its number in it.
pub(in crate::truth::recording) type ThreadId = (usize, u64);

/// One event, and the truth about it.
#[derive(Clone, Debug)]
pub(in crate::truth::recording) struct Event {
    pub(in crate::truth::recording) tick: u64,
    pub(in crate::truth::recording) cpu: u32,
    pub(in crate::truth::recording) lwp: u32,
    /// Distinguishes the LWPs that had this number.
    pub(in crate::truth::recording) life: usize,
    pub(in crate::truth::recording) thread: Option<ThreadId>,
    pub(in crate::truth::recording) context: &'static str,
    pub(in crate::truth::recording) what: What,
    /// The LWP that the event concerns, and the user thread mounted on it.
    pub(in crate::truth::recording) target: Option<(u32, Option<ThreadId>)>,
    /// Of a user event.
    pub(in crate::truth::recording) process: Option<usize>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::truth::recording) enum What {
    Switch {
        left: LwpIs,
        next: u32,
    },
    Wakeup {
        lwp: u32,
        cpu: u32,
    },
    /// The LWP is about to be woken.
    Waking(u32),
    /// The LWP is moved to another run queue.
    Migrate {
        lwp: u32,
        cpu: u32,
    },
    /// An LWP is about to be created: in the process of its creator, or for a new one.
    NewTask {
        lwp: u32,
        in_own_process: bool,
    },
    Fork(u32),
    Exit,
    /// A program is executed, by an LWP whose number was `old`.
    Exec {
        old: u32,
    },
    IrqEntry,
    IrqExit,
    SyscallEnter {
        number: i64,
        args: [u64; 2],
    },
    SyscallExit(i64),
    /// A kernel event that changes nothing.
    Quiet,
    Attach,
    Detach,
    UserSwitch {
        next: u64,
        reason: u64,
        waits: Waits,
    },
    ThreadNew(u64),
    ThreadReady(u64),
    SpanBegin(u64),
    SpanEnd(u64),
    LockAcquire(Waits),
    LockRelease(Waits),
    Message,
}

/// What a thread waits for: the address of the thing, and the number of its kind; 0 is none. Only a reason to block makes
/// it true.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::truth::recording) struct Waits {
    pub(in crate::truth::recording) on: u64,
    pub(in crate::truth::recording) kind: u64,
}

impl Event {
    pub(in crate::truth::recording) fn is_user(&self) -> bool {
        self.process.is_some()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::truth::recording) enum LwpIs {
    On(u32),
    Runnable,
    Sleeping,
    DiskSleep,
    /// Created, and not woken yet.
    Fresh,
    Dead,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::truth::recording) enum ThreadIs {
    New,
    Ready,
    Blocked(Waits),
    On(u32),
    Exited,
    /// Its LWP was killed while it was mounted.
    Gone,
}

/// A system call, an interrupt or a span.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::truth::recording) struct Interval {
    /// The CPU of an interrupt.
    pub(in crate::truth::recording) cpu: u32,
    pub(in crate::truth::recording) lwp: u32,
    /// The number that its LWP had when it began, if that is another.
    pub(in crate::truth::recording) entered_as: Option<u32>,
    pub(in crate::truth::recording) thread: Option<ThreadId>,
    pub(in crate::truth::recording) start: u64,
    /// The exit; `None` if there is none.
    pub(in crate::truth::recording) end: Option<u64>,
    /// When its LWP, of a span its user thread, has ended in it.
    pub(in crate::truth::recording) died: Option<u64>,
    /// Of a system call.
    pub(in crate::truth::recording) number: i64,
    pub(in crate::truth::recording) args: [u64; 2],
    /// Of an interrupt or a span: those around it.
    pub(in crate::truth::recording) depth: usize,
}

/// A request for a lock.
#[derive(Clone, Debug)]
pub(in crate::truth::recording) struct Request {
    pub(in crate::truth::recording) thread: ThreadId,
    pub(in crate::truth::recording) lwp: u32,
    pub(in crate::truth::recording) lock: u64,
    /// The kind that it was acquired as, or is waited for.
    pub(in crate::truth::recording) kind: u64,
    /// The kind that it was requested as: of a lock for readers and writers, another may be acquired.
    pub(in crate::truth::recording) requested_kind: u64,
    pub(in crate::truth::recording) since: u64,
    /// The holders when the wait began.
    pub(in crate::truth::recording) holders: Vec<ThreadId>,
    /// When it blocked, and when it was made ready after that; empty if it was not contended.
    pub(in crate::truth::recording) stretches: Vec<(u64, Option<u64>)>,
    pub(in crate::truth::recording) taken: Option<u64>,
    pub(in crate::truth::recording) released: Option<u64>,
    /// The thread did something else before it acquired the lock.
    pub(in crate::truth::recording) is_given_up: bool,
}

/// A process that the kernel reports.
#[derive(Clone, Debug)]
pub(in crate::truth::recording) struct ProcessLife {
    pub(in crate::truth::recording) pid: u32,
    pub(in crate::truth::recording) parent: Option<u32>,
    pub(in crate::truth::recording) created: u64,
    pub(in crate::truth::recording) ended: Option<u64>,
    pub(in crate::truth::recording) exit_code: Option<u64>,
    /// Number of its live LWPs.
    pub(in crate::truth::recording) lwps: usize,
    /// The one that is in `execve`.
    pub(in crate::truth::recording) executed_by: Option<u32>,
}

/// The history of a world.
#[derive(Debug, Default)]
pub(in crate::truth::recording) struct History {
    pub(in crate::truth::recording) events: Vec<Event>,
    pub(in crate::truth::recording) lwps: BTreeMap<u32, Vec<(u64, LwpIs)>>,
    pub(in crate::truth::recording) threads: BTreeMap<ThreadId, Vec<(u64, ThreadIs)>>,
    pub(in crate::truth::recording) syscalls: Vec<Interval>,
    pub(in crate::truth::recording) interrupts: Vec<Interval>,
    pub(in crate::truth::recording) spans: Vec<Interval>,
    /// Requests for locks.
    pub(in crate::truth::recording) requests: Vec<Request>,
    /// The processes that the kernel reports.
    pub(in crate::truth::recording) processes: Vec<ProcessLife>,
    /// When an LWP was put into the run queue of a CPU.
    pub(in crate::truth::recording) queues: BTreeMap<u32, Vec<(u64, u32)>>,
    /// The processes that LWPs of a number belonged to.
    pub(in crate::truth::recording) owners: BTreeMap<u32, BTreeSet<usize>>,
}

impl History {
    /// How many LWPs with this number have ended.
    pub(in crate::truth::recording) fn lives(&self, lwp: u32) -> usize {
        self.lwps.get(&lwp).map_or(0, |log| log.iter().filter(|(_, is)| *is == LwpIs::Dead).count())
    }
}
