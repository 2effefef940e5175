//! The events of a simulated world, and its history: the truth.

use std::collections::{BTreeMap, BTreeSet};

/// A user thread: the index of its process, and its number in it.
pub(in crate::recording) type ThreadId = (usize, u64);

/// One event, and the truth about it.
#[derive(Clone, Debug)]
pub(in crate::recording) struct Event {
    pub(in crate::recording) tick: u64,
    pub(in crate::recording) cpu: u32,
    pub(in crate::recording) lwp: u32,
    /// Distinguishes the LWPs that had this number.
    pub(in crate::recording) life: usize,
    pub(in crate::recording) thread: Option<ThreadId>,
    pub(in crate::recording) context: &'static str,
    pub(in crate::recording) what: What,
    /// The LWP that the event concerns, and the user thread mounted on it.
    pub(in crate::recording) target: Option<(u32, Option<ThreadId>)>,
    /// Of a user event.
    pub(in crate::recording) process: Option<usize>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::recording) enum What {
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
pub(in crate::recording) struct Waits {
    pub(in crate::recording) on: u64,
    pub(in crate::recording) kind: u64,
}

impl Event {
    pub(in crate::recording) fn is_user(&self) -> bool {
        self.process.is_some()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::recording) enum LwpIs {
    On(u32),
    Runnable,
    Sleeping,
    DiskSleep,
    /// Created, and not woken yet.
    Fresh,
    Dead,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::recording) enum ThreadIs {
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
pub(in crate::recording) struct Interval {
    /// The CPU of an interrupt.
    pub(in crate::recording) cpu: u32,
    pub(in crate::recording) lwp: u32,
    /// The number that its LWP had when it began, if that is another.
    pub(in crate::recording) entered_as: Option<u32>,
    pub(in crate::recording) thread: Option<ThreadId>,
    pub(in crate::recording) start: u64,
    /// The exit; `None` if there is none.
    pub(in crate::recording) end: Option<u64>,
    /// When its LWP, of a span its user thread, has ended in it.
    pub(in crate::recording) died: Option<u64>,
    /// Of a system call.
    pub(in crate::recording) number: i64,
    pub(in crate::recording) args: [u64; 2],
    /// Of an interrupt or a span: those around it.
    pub(in crate::recording) depth: usize,
}

/// A request for a lock.
#[derive(Clone, Debug)]
pub(in crate::recording) struct Request {
    pub(in crate::recording) thread: ThreadId,
    pub(in crate::recording) lwp: u32,
    pub(in crate::recording) lock: u64,
    /// The kind that it was acquired as, or is waited for.
    pub(in crate::recording) kind: u64,
    /// The kind that it was requested as: of a lock for readers and writers, another may be acquired.
    pub(in crate::recording) requested_kind: u64,
    pub(in crate::recording) since: u64,
    /// The holders when the wait began.
    pub(in crate::recording) holders: Vec<ThreadId>,
    /// When it blocked, and when it was made ready after that; empty if it was not contended.
    pub(in crate::recording) stretches: Vec<(u64, Option<u64>)>,
    pub(in crate::recording) taken: Option<u64>,
    pub(in crate::recording) released: Option<u64>,
    /// The thread did something else before it acquired the lock.
    pub(in crate::recording) is_given_up: bool,
}

/// A process that the kernel reports.
#[derive(Clone, Debug)]
pub(in crate::recording) struct ProcessLife {
    pub(in crate::recording) pid: u32,
    pub(in crate::recording) parent: Option<u32>,
    pub(in crate::recording) created: u64,
    pub(in crate::recording) ended: Option<u64>,
    pub(in crate::recording) exit_code: Option<u64>,
    /// Number of its live LWPs.
    pub(in crate::recording) lwps: usize,
    /// The one that is in `execve`.
    pub(in crate::recording) executed_by: Option<u32>,
}

/// The history of a world.
#[derive(Debug, Default)]
pub(in crate::recording) struct History {
    pub(in crate::recording) events: Vec<Event>,
    pub(in crate::recording) lwps: BTreeMap<u32, Vec<(u64, LwpIs)>>,
    pub(in crate::recording) threads: BTreeMap<ThreadId, Vec<(u64, ThreadIs)>>,
    pub(in crate::recording) syscalls: Vec<Interval>,
    pub(in crate::recording) interrupts: Vec<Interval>,
    pub(in crate::recording) spans: Vec<Interval>,
    /// Requests for locks.
    pub(in crate::recording) requests: Vec<Request>,
    /// The processes that the kernel reports.
    pub(in crate::recording) processes: Vec<ProcessLife>,
    /// When an LWP was put into the run queue of a CPU.
    pub(in crate::recording) queues: BTreeMap<u32, Vec<(u64, u32)>>,
    /// The processes that LWPs of a number belonged to.
    pub(in crate::recording) owners: BTreeMap<u32, BTreeSet<usize>>,
}

impl History {
    /// How many LWPs with this number have ended.
    pub(in crate::recording) fn lives(&self, lwp: u32) -> usize {
        self.lwps.get(&lwp).map_or(0, |log| log.iter().filter(|(_, is)| *is == LwpIs::Dead).count())
    }
}
