//! The types of containers, states, links and events.
//!
//! ViTE 1.2 keeps one stack of states per container for all types: a `SetState` of one type ends the state of another.
//! So concurrent states have separate rows: containers nested in the actor's.

use sigmund_model::Level;

use crate::timeline::{CpuId, LwpId, ProcessId, SliceKind, ThreadId, Track};

use super::lines::{Alias, alias, only};

/// A kind of container.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum ContainerKind {
    Machine,
    Cpu,
    /// In a CPU: the user thread that it executes.
    CpuThread,
    /// In a CPU: interrupts, nested.
    CpuSlices,
    Process,
    Lwp,
    /// In an LWP: the user thread that is mounted.
    LwpThread,
    /// In an LWP: system calls; spans and functions of LWPs without user threads; nested.
    LwpSlices,
    Thread,
    /// In a user thread: spans and functions, nested.
    ThreadSlices,
}

/// Properties that all containers of a kind share.
pub(super) struct ContainerKindInfo {
    /// Alias of the container type.
    pub(super) ty: Alias,
    /// The parent container type.
    pub(super) parent: Alias,
    /// The type's name.
    pub(super) name: &'static str,
    /// Prefix of the containers' aliases.
    pub(super) prefix: &'static str,
    /// For an additional row, the part of its name before ` of ` and the actor's name. (ViTE shows only the first few
    /// characters.)
    pub(super) row_name: &'static str,
    /// Its states; `None` for a row with slices.
    pub(super) states: Option<States>,
}

/// A type of states, of which one is current at a time.
pub(super) struct States {
    /// Its alias.
    pub(super) ty: Alias,
    /// Its name.
    pub(super) name: &'static str,
    /// Prefix of its values' aliases.
    pub(super) prefix: &'static str,
}

/// By [`ContainerKind`].
#[rustfmt::skip]
pub(super) const KINDS: [ContainerKindInfo; 10] = [
    ContainerKindInfo { ty: only("M"), parent: only("0"), name: "machine", prefix: "m", row_name: "", states: None },
    ContainerKindInfo { ty: only("C"), parent: only("M"), name: "CPU", prefix: "c", row_name: "",
        states: Some(States { ty: only("SC"), name: "LWP on the CPU", prefix: "vc" }) },
    ContainerKindInfo { ty: only("CT"), parent: only("C"), name: "CPU's user thread", prefix: "ct", row_name: "user thread",
        states: Some(States { ty: only("SCT"), name: "user thread on the CPU", prefix: "vct" }) },
    ContainerKindInfo { ty: only("CS"), parent: only("C"), name: "CPU's slices", prefix: "cs", row_name: "interrupts", states: None },
    ContainerKindInfo { ty: only("P"), parent: only("M"), name: "process", prefix: "p", row_name: "", states: None },
    ContainerKindInfo { ty: only("L"), parent: only("P"), name: "LWP", prefix: "l", row_name: "",
        states: Some(States { ty: only("SL"), name: "LWP state", prefix: "vl" }) },
    ContainerKindInfo { ty: only("LT"), parent: only("L"), name: "LWP's user thread", prefix: "lt", row_name: "user thread",
        states: Some(States { ty: only("SLT"), name: "user thread on the LWP", prefix: "vlt" }) },
    ContainerKindInfo { ty: only("LS"), parent: only("L"), name: "LWP's slices", prefix: "ls", row_name: "calls", states: None },
    ContainerKindInfo { ty: only("T"), parent: only("P"), name: "user thread", prefix: "t", row_name: "",
        states: Some(States { ty: only("ST"), name: "user thread state", prefix: "vt" }) },
    ContainerKindInfo { ty: only("TS"), parent: only("T"), name: "user thread's slices", prefix: "ts", row_name: "spans", states: None },
];

impl ContainerKind {
    pub(super) fn of(self) -> &'static ContainerKindInfo {
        &KINDS[self as usize]
    }

    /// The kind of the actor's own row.
    pub(super) fn actor(self) -> ContainerKind {
        match self {
            ContainerKind::CpuThread | ContainerKind::CpuSlices => ContainerKind::Cpu,
            ContainerKind::LwpThread | ContainerKind::LwpSlices => ContainerKind::Lwp,
            ContainerKind::ThreadSlices => ContainerKind::Thread,
            _ => self,
        }
    }

    /// `an LWP`.
    pub(super) fn with_article(self) -> String {
        let article = if self == ContainerKind::Lwp { "an" } else { "a" };
        format!("{article} {}", self.of().name)
    }
}

/// A container: one row of the picture.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Row {
    pub(super) kind: ContainerKind,
    /// Index of its actor.
    pub(super) index: u32,
}

impl Row {
    pub(super) const MACHINE: Row = Row { kind: ContainerKind::Machine, index: 0 };

    pub(super) fn alias(self) -> Alias {
        alias(self.kind.of().prefix, self.index)
    }

    /// Its index among all possible rows.
    pub(super) fn index_of_all(self) -> usize {
        self.index as usize * KINDS.len() + self.kind as usize
    }

    pub(super) fn ty(self) -> Alias {
        self.kind.of().ty
    }

    /// The row of this kind that belongs to the same actor.
    pub(super) fn additional(self, kind: ContainerKind) -> Row {
        Row { kind, index: self.index }
    }

    /// The actor's own row.
    pub(super) fn actor(self) -> Row {
        self.additional(self.kind.actor())
    }

    /// The row of a track's states.
    pub(super) fn of_track(track: Track) -> Row {
        match track {
            Track::Cpu(cpu) => Row::from(cpu),
            Track::Lwp(lwp) => Row::from(lwp),
            Track::Thread(thread) => Row::from(thread),
        }
    }

    /// The row of a track's slices.
    pub(super) fn of_slices(track: Track) -> Row {
        match track {
            Track::Cpu(cpu) => Row::from(cpu).additional(ContainerKind::CpuSlices),
            Track::Lwp(lwp) => Row::from(lwp).additional(ContainerKind::LwpSlices),
            Track::Thread(thread) => Row::from(thread).additional(ContainerKind::ThreadSlices),
        }
    }
}

impl From<CpuId> for Row {
    fn from(CpuId(index): CpuId) -> Row {
        Row { kind: ContainerKind::Cpu, index }
    }
}

impl From<ProcessId> for Row {
    fn from(ProcessId(index): ProcessId) -> Row {
        Row { kind: ContainerKind::Process, index }
    }
}

impl From<LwpId> for Row {
    fn from(LwpId(index): LwpId) -> Row {
        Row { kind: ContainerKind::Lwp, index }
    }
}

impl From<ThreadId> for Row {
    fn from(ThreadId(index): ThreadId) -> Row {
        Row { kind: ContainerKind::Thread, index }
    }
}

/// A state type for slices of this kind.
pub(super) struct SliceType {
    /// Its index among all possible types.
    pub(super) index: usize,
    kind: SliceKind,
    of: ContainerKind,
}

/// Number of indices.
pub(super) const SLICE_TYPES: usize = KINDS.len() * SliceKind::ALL.len();

impl SliceType {
    pub(super) fn new(kind: SliceKind, row: Row) -> SliceType {
        let of = row.kind.actor();
        SliceType { index: of as usize * SliceKind::ALL.len() + kind as usize, kind, of }
    }

    pub(super) fn alias(&self) -> Alias {
        alias("S", self.index as u64)
    }

    /// `system call of an LWP`.
    pub(super) fn name(&self) -> String {
        let kind = match self.kind {
            SliceKind::Syscall => "system call",
            other => other.name(),
        };
        format!("{kind} of {}", self.of.with_article())
    }
}

/// A type of links between these kinds of actors.
#[derive(Clone, Copy)]
pub(super) struct LinkType {
    /// For a migration, the kind of actor that migrates.
    pub(super) migrant: Option<ContainerKind>,
    pub(super) from: ContainerKind,
    pub(super) to: ContainerKind,
}

impl LinkType {
    /// Its index among all possible types.
    pub(super) fn index(self) -> u64 {
        let place = |kind: ContainerKind| kind as u64;
        let migrant = self.migrant.map_or(0, place);
        (migrant * KINDS.len() as u64 + place(self.from)) * KINDS.len() as u64 + place(self.to)
    }

    /// Number of indices.
    pub(super) const COUNT: u64 = (KINDS.len() * KINDS.len() * KINDS.len()) as u64;

    pub(super) fn alias(self) -> Alias {
        alias("K", self.index())
    }

    /// `wakeup of an LWP by a user thread`, `migration of a user thread to an LWP`.
    pub(super) fn name(self) -> String {
        let (from, to) = (self.from.with_article(), self.to.with_article());
        match self.migrant {
            None => format!("wakeup of {to} by {from}"),
            Some(migrant) if self.from == self.to => {
                format!("migration of {} to {to}", migrant.with_article())
            }
            Some(migrant) => format!("migration of {} from {from} to {to}", migrant.with_article()),
        }
    }
}

/// A type of events on one kind of row.
pub(super) struct EventsOf {
    pub(super) level: Level,
    pub(super) on: ContainerKind,
}

impl EventsOf {
    pub(super) fn alias(&self) -> Alias {
        alias("E", (self.on as usize * Level::ALL.len() + self.level as usize) as u64)
    }

    /// `user event on an LWP`.
    pub(super) fn name(&self) -> String {
        let level = match self.level {
            Level::Kern => "kernel",
            Level::User => "user",
        };
        format!("{level} event on {}", self.on.with_article())
    }
}
