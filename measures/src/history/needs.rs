//! Which tables a measure needs.

/// Tables of a super-trace, to be loaded into a [`History`](crate::History).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Needs {
    /// `thread_states`.
    pub thread_states: bool,
    /// `lwp_states`.
    pub lwp_states: bool,
    /// `wakeups`.
    pub wakeups: bool,
    /// `interrupts`.
    pub interrupts: bool,
    /// `syscalls`.
    pub syscalls: bool,
    /// Of these only the times and names of those in which the LWP was off CPUs, or may have been: it slept in no other.
    pub only_asleep: bool,
    /// `spans`.
    pub spans: bool,
    /// Of these only the ones that have the name that is asked about, and some of each other name.
    pub only_named: bool,
    /// `locks`.
    pub locks: bool,
    /// Of these only the requests that had to wait.
    pub only_waits: bool,
    /// Page faults, from `events`.
    pub faults: bool,
    /// `events`, when and where: those at which a CPU goes from one LWP to another, or an LWP from one user thread to another.
    pub turns: bool,
    /// Who had each CPU and what each LWP carried, which follows from the states.
    pub culprits: bool,
    /// Of these only the rows in which one of the threads that are asked about lives, if some are.
    pub only_lives: bool,
}

impl Needs {
    /// None.
    pub const NONE: Needs = Needs {
        thread_states: false,
        lwp_states: false,
        wakeups: false,
        interrupts: false,
        syscalls: false,
        only_asleep: false,
        spans: false,
        only_named: false,
        locks: false,
        only_waits: false,
        faults: false,
        turns: false,
        culprits: false,
        only_lives: false,
    };
    /// The states of both levels, and what follows from them.
    pub const STATES: Needs = Needs { thread_states: true, lwp_states: true, culprits: true, ..Needs::NONE };
    /// All of them.
    pub const ALL: Needs = Needs {
        wakeups: true,
        interrupts: true,
        syscalls: true,
        spans: true,
        locks: true,
        faults: true,
        turns: true,
        ..Needs::STATES
    };
    /// What shows where a [walk back](crate::walk_back) goes, and where it comes to something unknown.
    pub(crate) const WAY_BACK: Needs = Needs { wakeups: true, ..Needs::STATES };
    /// What a [walk back](crate::walk_back) needs.
    pub(crate) const WALK: Needs = Needs {
        interrupts: true,
        syscalls: true,
        only_asleep: true,
        locks: true,
        only_waits: true,
        ..Needs::WAY_BACK
    };
}
