//! The states of user threads and LWPs, and what ends them.

use std::{
    borrow::Cow,
    fmt::{self, Write},
};

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
    /// What a user thread is doing. The states of a thread follow each other without gaps.
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
        /// Mounted, its LWP is off-CPU for an unknown reason.
        OffCpu = "off-cpu",
        /// Mounted; whether its LWP is on a CPU is unknown.
        Mounted = "mounted",
        /// Unmounted, waiting for something.
        Blocked = "blocked",
        /// Unmounted; whether it is ready or blocked is unknown.
        Unmounted = "unmounted",
        /// Ended.
        Exited = "exited",
        /// Events are missing, and no event since then has shown it. It may have exited.
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
        /// Waiting, uninterruptibly (usually for a disk).
        DiskSleep = "disk-sleep",
        /// A kernel thread that waits for work (`TASK_IDLE`, the kernel's `I`).
        Idle = "idle",
        /// Stopped or traced.
        Stopped = "stopped",
        /// Dead.
        Exited = "exited",
        /// Off-CPU for an unknown reason.
        OffCpu = "off-cpu",
        /// Events are missing, and no event since then has shown it. It may have exited.
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
        /// The kernel preempted the LWP: it was still runnable, and had not called `sched_yield`.
        Preempted = "preempted",
        /// The LWP left its CPU by `sched_yield`: it was still runnable.
        SchedYield = "sched-yield",
        /// The LWP left its CPU while runnable; whether it was preempted or yielded is unknown.
        Runnable = "runnable",
        /// The LWP went to sleep in the kernel.
        Slept = "slept",
        /// A kernel context switch that does not give its reason.
        KernelSwitch = "kernel-switch",
        /// Made runnable, or ready.
        Woken = "woken",
        /// Put on a CPU, or on an LWP.
        Dispatched = "dispatched",
        /// A system call, a handler, a function or a span ended.
        Returned = "returned",
        /// A lock was released.
        Released = "released",
        /// Its own end is missing from the trace. It ended with the interval that encloses it, or before.
        Enclosing = "enclosing",
        /// Its own end is missing from the trace, but a later event shows that it has ended.
        Unseen = "unseen",
        /// The trace contradicted itself here (events are missing).
        Resync = "resync",
        /// Events are missing from here on: its real end is unknown.
        Lost = "lost",
        /// The trace ends.
        TraceEnd = "trace-end",
    }
}

/// The state in which an LWP leaves its CPU, in the kernel's bits: `prev_state` of `sched_switch`.
///
/// `task_state_array` (fs/proc/array.c) and `__trace_sched_switch_state` (include/trace/events/sched.h), v6.12: 1 `S`,
/// 2 `D`, 4 `T`, 8 `t`, 0x10 `X`, 0x20 `Z`, 0x40 `P`, 0x80 `I`; 0 is `R`. `TASK_REPORT_MAX` 0x100 is a `+` after the
/// letters: preempted inside the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TaskState(u16);

impl TaskState {
    const BITS: u16 = 0x1ff;
    const IN_KERNEL: u16 = 0x100;
    const LETTERS: [(u16, char); 8] =
        [(1, 'S'), (2, 'D'), (4, 'T'), (8, 't'), (0x10, 'X'), (0x20, 'Z'), (0x40, 'P'), (0x80, 'I')];

    /// From the number in `prev_state`; bits that the kernel does not report are dropped.
    pub fn from_number(prev_state: i64) -> TaskState {
        TaskState(prev_state as u16 & TaskState::BITS)
    }

    /// From the letters that the kernel and trace-cmd print: `S`, `R+`, `D|K`. A letter that is not one of the kernel's
    /// counts as an uninterruptible sleep, unless other letters are more specific.
    pub fn from_letters(letters: &str) -> TaskState {
        let bit = |letter: char| match TaskState::LETTERS.iter().find(|(_, known)| *known == letter) {
            Some((bit, _)) => *bit,
            None if letter == '+' => TaskState::IN_KERNEL,
            None if matches!(letter, 'R' | '|') => 0,
            // trace-cmd's letters for the same bits (plugin_sched_switch of libtraceevent 1.8).
            None if letter == 'x' => 0x40,
            None if letter == 'W' => 0x80,
            None => 2,
        };
        TaskState(letters.chars().fold(0, |bits, letter| bits | bit(letter)))
    }

    /// What it means for the LWP.
    pub fn state(self) -> LwpState {
        match self.0 & !TaskState::IN_KERNEL {
            0 => LwpState::Runnable,
            bits if bits & 0x30 != 0 => LwpState::Exited,
            bits if bits & 0x0c != 0 => LwpState::Stopped,
            bits if bits & 0x01 != 0 => LwpState::Sleeping,
            0x80 => LwpState::Idle,
            _ => LwpState::DiskSleep,
        }
    }
}

impl TaskState {
    /// The kernel's letters: `S`, `R+`.
    pub fn letters(self) -> Cow<'static, str> {
        match self.0 {
            0 => "R".into(),
            1 => "S".into(),
            2 => "D".into(),
            0x80 => "I".into(),
            TaskState::IN_KERNEL => "R+".into(),
            _ => self.to_string().into(),
        }
    }
}

impl fmt::Display for TaskState {
    /// The kernel's letters.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut letters = TaskState::LETTERS.iter().filter(|(bit, _)| self.0 & bit != 0);
        match letters.next() {
            None => f.write_char('R')?,
            Some((_, first)) => f.write_char(*first)?,
        }
        letters.try_for_each(|(_, letter)| write!(f, "|{letter}"))?;
        if self.0 & TaskState::IN_KERNEL != 0 { f.write_char('+') } else { Ok(()) }
    }
}

/// The state in which an LWP left its CPU, and the kernel's own bits for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PrevState {
    /// The LWP's state after the switch.
    pub state: LwpState,
    /// The kernel's own bits, if the source has them.
    pub reported: Option<TaskState>,
}

impl From<TaskState> for PrevState {
    fn from(reported: TaskState) -> PrevState {
        PrevState { state: reported.state(), reported: Some(reported) }
    }
}

impl From<LwpState> for PrevState {
    fn from(state: LwpState) -> PrevState {
        PrevState { state, reported: None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_and_letters_of_a_state_are_the_same_state() {
        use LwpState::*;
        let cases = [
            (0, "R", Runnable),
            (0x100, "R+", Runnable),
            (1, "S", Sleeping),
            (2, "D", DiskSleep),
            (4, "T", Stopped),
            (8, "t", Stopped),
            (0x10, "X", Exited),
            (0x20, "Z", Exited),
            (0x80, "I", Idle),
            (3, "S|D", Sleeping),
        ];
        for (bits, letters, state) in cases {
            let task_state = TaskState::from_number(bits);
            assert_eq!((task_state.state(), task_state.to_string().as_str()), (state, letters));
            assert_eq!(task_state.letters(), letters);
            assert_eq!(TaskState::from_letters(letters), task_state);
        }
        assert_eq!(TaskState::from_number(0x402).to_string(), "D", "TASK_NOLOAD is not reported");
        assert_eq!(TaskState::from_letters("K").state(), DiskSleep);
        assert_eq!(TaskState::from_letters("W").state(), Idle, "as trace-cmd writes it");
    }
}
