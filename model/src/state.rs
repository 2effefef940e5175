//! The states of user threads and LWPs, and what ends them.

macro_rules! named {
    ($(#[$doc:meta])* $name:ident { $($(#[$vdoc:meta])* $variant:ident $(($number:literal))? = $text:literal,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum $name { $($(#[$vdoc])* $variant $(= $number)?,)* }

        impl $name {
            /// Every value, in the order of declaration.
            pub const ALL: &'static [$name] = &[$($name::$variant,)*];

            /// The word used in tables and listings.
            pub fn name(self) -> &'static str {
                match self { $($name::$variant => $text,)* }
            }
        }
    };
}
pub(crate) use named;

named! {
    /// What a user thread is doing. The states of a thread follow each other without holes.
    ThreadState {
        /// Created, not dispatched yet.
        New = "new",
        /// In the ready queue.
        Ready = "ready",
        /// Mounted on an LWP that is on a CPU: it executes.
        Active = "active",
        /// Mounted, but its LWP is runnable and off-CPU. Only a merged trace can show it.
        Stalled = "stalled",
        /// Mounted, and its LWP sleeps in the kernel.
        InKernel = "in-kernel",
        /// Mounted, and its LWP is stopped by a signal or a debugger.
        Stopped = "stopped",
        /// Mounted, its LWP is off-CPU, and the trace does not say why.
        OffCpu = "off-cpu",
        /// Mounted, and the trace does not say whether its LWP is on a CPU.
        Mounted = "mounted",
        /// Unmounted, waiting for something.
        Blocked = "blocked",
        /// Unmounted, and the trace does not say whether ready or blocked.
        Unmounted = "unmounted",
        /// Gone.
        Exited = "exited",
        /// Events are missing, and nothing since then has shown it: it may be anywhere, and may be gone.
        Unknown = "unknown",
    }
}

named! {
    /// What an LWP is doing.
    LwpState {
        /// On a CPU.
        Running = "running",
        /// In a run queue: preempted, or woken and not yet switched to.
        Runnable = "runnable",
        /// Waiting, interruptibly.
        Sleeping = "sleeping",
        /// Waiting, uninterruptibly (disk, mostly).
        DiskSleep = "disk-sleep",
        /// Stopped or traced.
        Stopped = "stopped",
        /// Dead.
        Exited = "exited",
        /// Not on a CPU, and the trace does not say why.
        OffCpu = "off-cpu",
        /// Events are missing, and nothing since then has shown it: it may be anywhere, and may be gone.
        Unknown = "unknown",
    }
}

named! {
    /// What ended an interval.
    EndReason {
        /// The user thread yielded.
        Yield = "yield",
        /// The user thread's quantum was over.
        Quantum = "quantum",
        /// The user thread blocked.
        Block = "block",
        /// The user thread, or the LWP, exited.
        Exit = "exit",
        /// A user context switch that does not give its reason.
        UserSwitch = "user-switch",
        /// The kernel preempted the LWP: it was still runnable.
        Preempted = "preempted",
        /// The LWP went to sleep in the kernel.
        Slept = "slept",
        /// A kernel context switch that does not give its reason.
        KernelSwitch = "kernel-switch",
        /// Made runnable, or ready.
        Woken = "woken",
        /// Put on a CPU, or on an LWP.
        Dispatched = "dispatched",
        /// The trace contradicted itself here (events are missing).
        Resync = "resync",
        /// Events are missing from here on: when it really ended is not known.
        Lost = "lost",
        /// The trace ends.
        TraceEnd = "trace-end",
    }
}

impl LwpState {
    /// The state an LWP leaves a CPU in, from `prev_state` of `sched_switch` (`task_state_array`,
    /// fs/proc/array.c, v6.12: 1 S, 2 D, 4 T, 8 t, 0x10 X, 0x20 Z, 0x40 P, 0x80 I; `TASK_REPORT_MAX`
    /// 0x100 is "preempted", printed `R+`).
    pub fn from_prev_state(prev_state: i64) -> LwpState {
        match prev_state & 0xff {
            0 => LwpState::Runnable,
            s if s & 0x30 != 0 => LwpState::Exited,
            s if s & 0x0c != 0 => LwpState::Stopped,
            s if s & 0x01 != 0 => LwpState::Sleeping,
            _ => LwpState::DiskSleep,
        }
    }
}
