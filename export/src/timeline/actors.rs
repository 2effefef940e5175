//! The actors of a trace (CPUs, processes, LWPs, user threads) and its clock: known before the first change.
//!
//! The kernel reuses tids, so two LWPs of a trace may have the same tid. Each actor has its own id, which is an index.

use std::ops::Index;

use sigmund_model::{Cpu, EventType, Hertz, Lwp, Nanos, Pid, Thread, Ticks};

use super::{NameId, Names};

macro_rules! ids {
    ($($(#[$doc:meta])* $id:ident in $field:ident: $actor:ty;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $id(pub u32);

        impl $id {
            /// The id as an index.
            pub fn index(self) -> usize {
                self.0 as usize
            }
        }

        impl Index<$id> for Actors {
            type Output = $actor;

            fn index(&self, id: $id) -> &$actor {
                &self.$field[id.index()]
            }
        }
    )*};
}

ids! {
    /// Index of a CPU in [`Actors::cpus`].
    CpuId in cpus: Cpu;
    /// Index of a process in [`Actors::processes`].
    ProcessId in processes: Process;
    /// Index of an LWP in [`Actors::lwps`].
    LwpId in lwps: LwpActor;
    /// Index of a user thread in [`Actors::threads`].
    ThreadId in threads: ThreadActor;
    /// Index of a declared event in [`Actors::event_types`].
    EventTypeId in event_types: EventType;
}

/// The actors, the clock and the declared events.
#[derive(Clone, Debug)]
pub struct Actors {
    /// The clock of ticks.
    pub clock: Clock,
    /// The super-trace's name, for titles.
    pub name: String,
    /// The CPUs, sorted by number.
    pub cpus: Vec<Cpu>,
    /// The processes, sorted by pid. If the process of some LWPs is unknown, a process without a pid follows.
    pub processes: Vec<Process>,
    /// The LWPs, sorted by tid and birth.
    pub lwps: Vec<LwpActor>,
    /// The user threads, sorted by number and birth.
    pub threads: Vec<ThreadActor>,
    /// The names of the user threads.
    pub thread_names: Names,
    /// The teams of user threads that were forked and joined, sorted by the time of the fork.
    pub teams: Vec<Team>,
    /// The declared events of both sides.
    pub event_types: Vec<EventType>,
}

/// The clock of a trace.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    /// The beginning of the export: time 0 of formats with relative times.
    pub first: Ticks,
    /// The end of the export.
    pub last: Ticks,
    /// Ticks per second, if known.
    pub rate: Option<Hertz>,
    /// Nanoseconds since 1970 at `first`, if known.
    pub realtime_at_first: Option<i64>,
}

impl Clock {
    /// Time since `first`, to the nearest nanosecond. Without a rate, a tick counts as a nanosecond.
    pub fn nanos(&self, tick: Ticks) -> Nanos {
        let ticks = tick.0.saturating_sub(self.first.0);
        let Some(rate) = self.rate else { return Nanos(ticks) };
        Nanos((ticks as f64 * (1e9 / rate.per_second())).round() as u64)
    }
}

/// A process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Process {
    /// Its pid; `None` for all actors whose process is unknown: kernel threads, and programs without user threads.
    pub pid: Option<Pid>,
    /// Its name.
    pub name: Option<String>,
}

/// An LWP.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LwpActor {
    /// Its tid.
    pub lwp: Lwp,
    /// Its command name.
    pub name: Option<String>,
    /// Its process.
    pub process: ProcessId,
    /// Its creation, or its first known instant.
    pub born: Ticks,
    /// Its end, if it ended.
    pub died: Option<Ticks>,
    /// Whether it carries user threads.
    pub carries_threads: bool,
}

/// A user thread: 56 bytes, because there may be millions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThreadActor {
    /// Its number.
    pub thread: Thread,
    /// Its name, in [`Actors::thread_names`].
    pub name: Option<NameId>,
    /// Its process.
    pub process: ProcessId,
    /// Its creation, or its first known instant.
    pub born: Ticks,
    /// Its end, if it ended.
    pub died: Option<Ticks>,
    /// The number of the user thread that created it; [`Actors::creator`] finds that one.
    pub created_by: Option<Thread>,
}

/// User threads that were created in a scope of another thread, which continued when all of them had ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Team {
    /// The thread that forked and joined it.
    pub by: ThreadId,
    /// When it was forked.
    pub forked: Ticks,
    /// When it was joined.
    pub joined: Ticks,
    /// The actors among its threads, in the order of creation.
    pub members: Vec<ThreadId>,
}

impl Actors {
    /// The ids of all CPUs.
    pub fn cpu_ids(&self) -> impl DoubleEndedIterator<Item = CpuId> + ExactSizeIterator + use<> {
        (0..self.cpus.len() as u32).map(CpuId)
    }

    /// The ids of all processes.
    pub fn process_ids(&self) -> impl DoubleEndedIterator<Item = ProcessId> + ExactSizeIterator + use<> {
        (0..self.processes.len() as u32).map(ProcessId)
    }

    /// The ids of all LWPs.
    pub fn lwp_ids(&self) -> impl DoubleEndedIterator<Item = LwpId> + ExactSizeIterator + use<> {
        (0..self.lwps.len() as u32).map(LwpId)
    }

    /// The ids of all user threads.
    pub fn thread_ids(&self) -> impl DoubleEndedIterator<Item = ThreadId> + ExactSizeIterator + use<> {
        (0..self.threads.len() as u32).map(ThreadId)
    }

    /// The name of a user thread.
    pub fn thread_name(&self, thread: ThreadId) -> Option<&str> {
        self[thread].name.map(|name| self.thread_names.text(name))
    }

    /// `15 daemon`.
    pub fn thread_label(&self, thread: ThreadId) -> String {
        let mut label = String::new();
        self.push_thread_label(thread, &mut label);
        label
    }

    /// Appends the [label](Self::thread_label) of a user thread.
    pub(crate) fn push_thread_label(&self, thread: ThreadId, label: &mut String) {
        let mut digits = itoa::Buffer::new();
        let number = digits.format(self[thread].thread.0);
        let (before, after) = match self.thread_name(thread) {
            Some(name) => (number, name),
            None => ("thread", number),
        };
        [before, " ", after].into_iter().for_each(|part| label.push_str(part));
    }

    /// The user thread that created this one, if it is one of the actors. If several actors have its number, the last
    /// of them.
    pub fn creator(&self, thread: ThreadId) -> Option<ThreadId> {
        let number = self[thread].created_by?;
        let after = self.threads.partition_point(|thread| thread.thread <= number);
        let last = after.checked_sub(1).filter(|last| self.threads[*last].thread == number)?;
        Some(ThreadId(last as u32))
    }
}

impl Process {
    /// `sumtime (1234)`.
    pub fn label(&self) -> String {
        match (self.pid, &self.name) {
            (Some(pid), Some(name)) => format!("{name} ({pid})"),
            (Some(pid), None) => format!("process {pid}"),
            (None, Some(name)) => name.clone(),
            (None, None) => "other LWPs".into(),
        }
    }
}

impl LwpActor {
    /// `sumtime (1235)`.
    pub fn label(&self) -> String {
        match &self.name {
            Some(name) => format!("{name} ({})", self.lwp),
            None => format!("LWP {}", self.lwp),
        }
    }
}
