//! One LWP: its place, the thread that it carries, and its times.

use sigmund_model::{Cpu, Lwp, LwpState, Pid, TaskState, Thread, ThreadState, Ticks};

use super::contradictions::Contradiction;
use crate::pairing::{Call, Queue, Wakeup};

/// The evidence that an LWP is on a CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum By {
    /// The kernel.
    Kernel,
    /// A probe of the LWP itself. Valid until kernel events show something else.
    Probe,
}

/// The place of an LWP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// No event has shown the LWP yet.
    Unknown,
    On(Cpu, By),
    Off(LwpState),
    /// The place was known, but since then events are missing, or something contradicted it.
    Lost,
}

impl Place {
    /// The CPU, if it is known to be on one.
    pub(super) fn cpu(self) -> Option<Cpu> {
        match self {
            Place::On(cpu, _) => Some(cpu),
            Place::Unknown | Place::Off(_) | Place::Lost => None,
        }
    }

    /// The state of a thread that is mounted on an LWP in this place.
    pub(super) fn thread_state(self) -> ThreadState {
        match self {
            Place::Unknown | Place::Lost => ThreadState::Mounted,
            Place::On(..) => ThreadState::Active,
            Place::Off(LwpState::Runnable) => ThreadState::Stalled,
            Place::Off(LwpState::Sleeping | LwpState::DiskSleep | LwpState::Idle) => ThreadState::InKernel,
            Place::Off(LwpState::Stopped) => ThreadState::Stopped,
            Place::Off(_) => ThreadState::OffCpu,
        }
    }
}

/// The user thread that an LWP carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mounted {
    Unknown,
    Nobody,
    Thread(Thread),
}

impl Mounted {
    pub(super) fn thread(self) -> Option<Thread> {
        match self {
            Mounted::Thread(thread) => Some(thread),
            Mounted::Unknown | Mounted::Nobody => None,
        }
    }
}

impl From<Option<Thread>> for Mounted {
    fn from(thread: Option<Thread>) -> Mounted {
        thread.map_or(Mounted::Nobody, Mounted::Thread)
    }
}

/// What the LWP does with the CPU that it is on, and since when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stretch {
    OffCpu,
    Active { thread: Thread, cpu: Cpu, since: Ticks },
    Unmounted { since: Ticks },
}

/// Number of user events that were recorded, and of the words of their parameters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Written {
    pub(super) events: u64,
    pub(super) words: u64,
}

impl Written {
    pub(super) fn add(&mut self, more: Written) {
        self.events += more.events;
        self.words += more.words;
    }
}

/// The state of an LWP.
#[derive(Debug)]
pub(super) struct LwpEntry {
    pub(super) lwp: Lwp,
    pub(super) first: Ticks,
    pub(super) pid: Option<Pid>,
    pub(super) place: Place,
    pub(super) place_since: Ticks,
    /// The contradiction because of which the place of the LWP is unknown.
    pub(super) doubted: Option<Contradiction>,
    /// When the LWP recorded its last event that names its recorder.
    pub(super) last_seen: Ticks,
    pub(super) last_cpu: Option<Cpu>,
    /// The time of a waking that no wakeup has followed yet.
    pub(super) waking: Option<Ticks>,
    /// Whether the LWP is known to exist, on its CPU or woken, while nothing more has been seen of it.
    is_heard_of: bool,
    /// Whether the creation of the LWP was seen, and nothing since.
    pub(super) is_new: bool,
    /// The CPU whose run queue the LWP is in, or was in last.
    pub(super) queue: Option<Cpu>,
    /// The run queue that the LWP was put in when it became runnable.
    pub(super) waits_in: Option<Cpu>,
    /// When the LWP was last moved from one run queue to another. It was on no CPU at that time.
    pub(super) moved: Ticks,
    pub(super) mounted: Mounted,
    /// The last instant at which an event showed the mounted thread.
    pub(super) mounted_seen: Ticks,
    pub(super) stretch: Stretch,
    pub(super) exiting: bool,
    /// Whether the LWP is in the list of LWPs that the next gap of a CPU affects.
    pub(super) is_listed: bool,
    pub(super) carries_threads: bool,
    pub(super) events: u64,
    /// What the LWP recorded while no user thread was mounted.
    pub(super) recorded: Written,
    /// What the LWP recorded since its mounted thread last changed. It is added to that thread when it changes again.
    pub(super) recorded_since: Written,
    pub(super) on_cpu: u64,
    pub(super) active: u64,
    pub(super) unmounted: u64,
    /// Number of user events of this stay on a CPU, if only the probe has shown the LWP there.
    pub(super) unconfirmed: u64,
    pub(super) witness_agree: u64,
    pub(super) witness_disagree: u64,
    /// The system call that the LWP is in.
    pub(super) call: Call,
    /// The argument of the LWP's `exit`, or of `exit_group` (then `true`).
    pub(super) exit_code: Option<(i64, bool)>,
    /// A wakeup of the LWP, until its dispatch.
    pub(super) wakeup: Option<Wakeup>,
    /// Whether a waking has already reported the wakeup that follows.
    pub(super) is_waking: bool,
    /// That waking, if the LWP was awake. The LWP may have left its CPU by the time of the wakeup.
    pub(super) early_waking: Option<Wakeup>,
    /// The state in which the LWP is about to leave its CPU, or has just left it, in the kernel's notation.
    pub(super) left_in: Option<TaskState>,
    /// The run queue in which the LWP is counted.
    pub(super) counted_in: Option<Queue>,
    /// How often the place of the LWP was unknown.
    pub(super) doubts: u32,
    /// Whether the creation of the LWP was traced.
    pub(super) was_created: bool,
    pub(super) cpu_time_ns: Option<u64>,
    pub(super) attached_on_cpu: Option<u64>,
    attached: Option<(u64, u64)>,
}

impl LwpEntry {
    pub(super) fn new(lwp: Lwp, pid: Option<Pid>, first: Ticks) -> LwpEntry {
        LwpEntry {
            lwp,
            first,
            pid,
            place: Place::Unknown,
            place_since: first,
            doubted: None,
            last_seen: first,
            last_cpu: None,
            waking: None,
            is_heard_of: false,
            is_new: false,
            queue: None,
            waits_in: None,
            moved: Ticks(0),
            mounted: Mounted::Unknown,
            mounted_seen: first,
            stretch: Stretch::OffCpu,
            exiting: false,
            is_listed: false,
            carries_threads: false,
            events: 0,
            recorded: Written::default(),
            recorded_since: Written::default(),
            on_cpu: 0,
            active: 0,
            unmounted: 0,
            unconfirmed: 0,
            witness_agree: 0,
            witness_disagree: 0,
            call: Call::default(),
            exit_code: None,
            wakeup: None,
            is_waking: false,
            early_waking: None,
            left_in: None,
            counted_in: None,
            doubts: 0,
            was_created: false,
            cpu_time_ns: None,
            attached_on_cpu: None,
            attached: None,
        }
    }

    /// The LWP has recorded an event. Either the event names its recorder (`is_said`), or the event is assumed to be
    /// that of the LWP on its CPU.
    #[inline]
    pub(super) fn count(&mut self, is_said: bool, tick: Ticks) {
        self.events += 1;
        if is_said {
            self.last_seen = tick;
        }
    }

    /// The LWP is woken, on a CPU or off. It is known to exist from here on, but its place is unknown.
    pub(super) fn heard_of(&mut self, tick: Ticks) {
        if self.place == Place::Unknown && !std::mem::replace(&mut self.is_heard_of, true) {
            self.place_since = tick;
        }
    }

    /// The state in the table `lwp_states` for the place of the LWP; `None` if nothing has been seen of it.
    pub(super) fn state(&self) -> Option<LwpState> {
        match self.place {
            Place::Unknown => self.is_heard_of.then_some(LwpState::Unknown),
            Place::On(..) => Some(LwpState::Running),
            Place::Off(state) => Some(state),
            Place::Lost => Some(LwpState::Unknown),
        }
    }

    /// Whether the LWP is runnable in the run queue of this CPU. In the run queue of another CPU, it waits until it is
    /// migrated.
    pub(super) fn waits_for(&self, cpu: Cpu) -> bool {
        self.place == Place::Off(LwpState::Runnable) && self.queue == Some(cpu)
    }

    /// The LWP's time on CPUs until now.
    pub(super) fn on_cpu_until(&self, tick: Ticks) -> u64 {
        match self.place {
            Place::On(..) => self.on_cpu + (tick.0 - self.place_since.0),
            Place::Unknown | Place::Off(_) | Place::Lost => self.on_cpu,
        }
    }

    /// The LWP begins to record. No thread is mounted yet.
    pub(super) fn attach(&mut self, pid: Pid, cpu_time_ns: Option<u64>, tick: Ticks) {
        self.pid = Some(pid);
        self.carries_threads = true;
        self.attached = cpu_time_ns.map(|ns| (ns, self.on_cpu_until(tick)));
    }

    /// The LWP stops recording. Its own measurement of its time on CPUs is compared with the time according to the
    /// switches.
    pub(super) fn detach(&mut self, cpu_time_ns: Option<u64>, tick: Ticks) {
        if let (Some(now_ns), Some((then_ns, then_on_cpu))) = (cpu_time_ns, self.attached.take()) {
            self.cpu_time_ns = Some(now_ns.saturating_sub(then_ns));
            self.attached_on_cpu = Some(self.on_cpu_until(tick) - then_on_cpu);
        }
    }
}
