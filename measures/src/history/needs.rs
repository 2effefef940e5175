//! Which tables a measure needs.

/// Tables of a super-trace, to be loaded into a [`History`](crate::History).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Needs {
    /// `thread_states`.
    pub thread_states: bool,
    /// Of `thread_states`, only where a thread stops being a [member](crate::ends_membership), and which thread an LWP carried when
    /// it was woken. Nothing else may be asked of the states of threads then.
    pub only_leaving: bool,
    /// Of `thread_states`, only when threads were in an unknown state.
    pub only_unknown: bool,
    /// `lwp_states`.
    pub lwp_states: bool,
    /// `wakeups`.
    pub wakeups: bool,
    /// `interrupts`.
    pub interrupts: bool,
    /// `syscalls`.
    pub syscalls: bool,
    /// Of the system calls, only the times and names of those in which the LWP was off CPUs, or may have been. It slept
    /// in no others.
    pub only_asleep: bool,
    /// `spans`.
    pub spans: bool,
    /// Of the spans, only those with the requested name, and some of each other name.
    pub only_named: bool,
    /// `locks`.
    pub locks: bool,
    /// Of the locks, only the requests that had to wait.
    pub only_waits: bool,
    /// Of the states, only the rows while somebody waits for a lock: one of the requested threads, if the request selects threads.
    pub only_waited: bool,
    /// Page faults, from `events`.
    pub faults: bool,
    /// `events`: when and where. Only those at which a CPU changes from one LWP to another, or an LWP from one user
    /// thread to another.
    pub turns: bool,
    /// The FROM and TO events of a question about pairs of events.
    pub marks: bool,
    /// Who created LWPs, and user threads that no user thread created, from `events`.
    pub creators: bool,
    /// Which LWP had each CPU. Derived from the states of LWPs.
    pub on_cpu: bool,
    /// What each LWP carried. Derived from the states of user threads.
    pub mounted: bool,
    /// Of all these, only the rows in the lives of the requested threads, if the request selects threads.
    pub only_lives: bool,
    /// With `only_lives`: a measure that looks back needs what happened before these lives, too.
    pub before_lives: bool,
    /// Of the states, if the request selects user threads, only the rows of these, and those of LWPs while they carry one of these.
    /// With `on_cpu`, also the rows while one of these is stalled, without what the others wait for: they show what ran on its CPU.
    pub only_own: bool,
    /// With `only_own`: also the rows while an LWP that carries no user thread is awake and has not yet unparked one of these: they
    /// show whether it was woken for that.
    pub pollers: bool,
    /// With `only_own`: of LWPs, only these rows.
    pub only_pollers: bool,
}

impl Needs {
    /// None.
    pub const NONE: Needs = Needs {
        thread_states: false,
        only_leaving: false,
        only_unknown: false,
        lwp_states: false,
        wakeups: false,
        interrupts: false,
        syscalls: false,
        only_asleep: false,
        spans: false,
        only_named: false,
        locks: false,
        only_waits: false,
        only_waited: false,
        faults: false,
        turns: false,
        marks: false,
        creators: false,
        on_cpu: false,
        mounted: false,
        only_lives: false,
        before_lives: false,
        only_own: false,
        pollers: false,
        only_pollers: false,
    };
    /// The states of both levels, and what follows from them.
    pub const STATES: Needs =
        Needs { thread_states: true, lwp_states: true, on_cpu: true, mounted: true, ..Needs::NONE };
    /// The states of both levels, and nothing that follows from them.
    pub(crate) const ONLY_STATES: Needs = Needs { on_cpu: false, mounted: false, ..Needs::STATES };
    /// All of them.
    pub const ALL: Needs = Needs {
        wakeups: true,
        interrupts: true,
        syscalls: true,
        spans: true,
        locks: true,
        faults: true,
        turns: true,
        marks: true,
        creators: true,
        ..Needs::STATES
    };
    /// What is needed to find where a [walk back](crate::walk_back) goes, and where it comes to an unknown state.
    pub(crate) const WAY_BACK: Needs = Needs { wakeups: true, creators: true, ..Needs::STATES };
    /// What is needed to find pairs of FROM and TO events.
    pub(crate) const PAIRS: Needs =
        Needs { only_leaving: true, marks: true, interrupts: true, creators: false, ..Needs::WAY_BACK };
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
