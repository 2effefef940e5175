//! Events, without their parameters.

/// When and where an event was recorded: a row of `events`. It takes only 24 bytes, because events are the most
/// frequent rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventAt {
    tick: i64,
    thread: u64,
    lwp: u32,
    cpu: u32,
}

/// Stands for an unknown CPU or LWP; no CPU or LWP has this number. For a user thread, the 64-bit number with all bits
/// set does.
const NONE: u32 = u32::MAX;

impl EventAt {
    /// An event at a tick, with its LWP, CPU and user thread as far as these are known.
    pub fn new(tick: i64, lwp: Option<u32>, cpu: Option<u32>, thread: Option<u64>) -> EventAt {
        EventAt {
            tick,
            thread: thread.unwrap_or(u64::MAX),
            lwp: lwp.unwrap_or(NONE),
            cpu: cpu.unwrap_or(NONE),
        }
    }

    /// When.
    pub fn tick(self) -> i64 {
        self.tick
    }

    /// The LWP that was on the CPU; 0 is the idle task.
    pub fn lwp(self) -> Option<u32> {
        (self.lwp != NONE).then_some(self.lwp)
    }

    /// The CPU.
    pub fn cpu(self) -> Option<u32> {
        (self.cpu != NONE).then_some(self.cpu)
    }

    /// The user thread that was executing; `None` in interrupts.
    pub fn thread(self) -> Option<u64> {
        (self.thread != u64::MAX).then_some(self.thread)
    }
}
