//! One LWP: its place, the thread that it carries, and its times.

use sigmund_model::{Cpu, Lwp, LwpState, Pid, TaskState, Thread, ThreadState, Ticks};

use super::contradictions::Contradiction;
use crate::pairing::{Call, Queue, Wakeup};

/// The source of the knowledge that an LWP is on a CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum By {
    /// The kernel.
    Kernel,
    /// A probe of the LWP itself; valid until the kernel shows something else.
    Probe,
}

/// Where an LWP is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// Nothing has been seen of it yet.
    Unknown,
    On(Cpu, By),
    Off(LwpState),
    /// It was known, and events are missing since, or something contradicted it.
    Lost,
}

impl Place {
    /// What a thread that is mounted on an LWP in this place does.
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

/// What the LWP does with the CPU it is on, since when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stretch {
    OffCpu,
    Active { thread: Thread, cpu: Cpu, since: Ticks },
    Unmounted { since: Ticks },
}

/// User events that were recorded, and the words of their parameters.
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
    /// It is not known where it is because of this.
    pub(super) doubted: Option<Contradiction>,
    /// When it recorded its last event that names its recorder.
    pub(super) last_seen: Ticks,
    pub(super) last_cpu: Option<Cpu>,
    /// The time of a waking whose wakeup has not followed yet.
    pub(super) waking: Option<Ticks>,
    /// Whether it is known to be there, on its CPU or woken: nothing more has been seen of it.
    is_heard_of: bool,
    /// Whether its creation was seen, and nothing since.
    pub(super) is_new: bool,
    /// The CPU whose run queue it is in, or was in last.
    pub(super) queue: Option<Cpu>,
    /// The run queue that it was put in when it became runnable.
    pub(super) waits_in: Option<Cpu>,
    /// When it was moved from one run queue to another last: it was on no CPU then.
    pub(super) moved: Ticks,
    pub(super) mounted: Mounted,
    /// The last instant at which an event showed the mounted thread.
    pub(super) mounted_seen: Ticks,
    pub(super) stretch: Stretch,
    pub(super) exiting: bool,
    /// Whether it is in the list of LWPs that the next gap of a CPU concerns.
    pub(super) is_listed: bool,
    pub(super) carries_threads: bool,
    pub(super) events: u64,
    /// What it recorded while no user thread was mounted.
    pub(super) recorded: Written,
    /// What it recorded since its mounted thread last changed: it counts for that thread, when that changes again.
    pub(super) recorded_since: Written,
    pub(super) on_cpu: u64,
    pub(super) active: u64,
    pub(super) unmounted: u64,
    /// User events of this stay on a CPU that only their probe has put there.
    pub(super) unconfirmed: u64,
    pub(super) witness_agree: u64,
    pub(super) witness_disagree: u64,
    /// The system call that it is in.
    pub(super) call: Call,
    /// What it gave to `exit`, or its process to `exit_group` (then `true`).
    pub(super) exit_code: Option<(i64, bool)>,
    /// A wakeup of it, up to its dispatch.
    pub(super) wakeup: Option<Wakeup>,
    /// Whether a waking has reported the wakeup that follows.
    pub(super) is_waking: bool,
    /// That waking, if the LWP was awake: it may have left its CPU when the wakeup follows.
    pub(super) early_waking: Option<Wakeup>,
    /// The state in which it is about to leave its CPU, or has just left it, as the kernel writes it.
    pub(super) left_in: Option<TaskState>,
    /// The run queue that it is counted in.
    pub(super) counted_in: Option<Queue>,
    /// How often it was not known where it is.
    pub(super) doubts: u32,
    /// Whether its creation was traced.
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

    /// It has recorded an event, which says so itself (`is_said`), or which is taken to be its own because it is on that
    /// CPU.
    #[inline]
    pub(super) fn count(&mut self, is_said: bool, tick: Ticks) {
        self.events += 1;
        if is_said {
            self.last_seen = tick;
        }
    }

    /// It is woken, on a CPU or off: its place is unknown from here on.
    pub(super) fn heard_of(&mut self, tick: Ticks) {
        if self.place == Place::Unknown && !std::mem::replace(&mut self.is_heard_of, true) {
            self.place_since = tick;
        }
    }

    /// The word of the table `lwp_states` for where it is; `None` if nothing has been seen of it.
    pub(super) fn state(&self) -> Option<LwpState> {
        match self.place {
            Place::Unknown => self.is_heard_of.then_some(LwpState::Unknown),
            Place::On(..) => Some(LwpState::Running),
            Place::Off(state) => Some(state),
            Place::Lost => Some(LwpState::Unknown),
        }
    }

    /// Whether it is runnable in the run queue of this CPU. In the run queue of another CPU it waits until it is migrated.
    pub(super) fn waits_for(&self, cpu: Cpu) -> bool {
        self.place == Place::Off(LwpState::Runnable) && self.queue == Some(cpu)
    }

    /// Its time on CPUs until now.
    pub(super) fn on_cpu_until(&self, tick: Ticks) -> u64 {
        match self.place {
            Place::On(..) => self.on_cpu + (tick.0 - self.place_since.0),
            Place::Unknown | Place::Off(_) | Place::Lost => self.on_cpu,
        }
    }

    /// It begins to record; no thread is mounted yet.
    pub(super) fn attach(&mut self, pid: Pid, cpu_time_ns: Option<u64>, tick: Ticks) {
        self.pid = Some(pid);
        self.carries_threads = true;
        self.attached = cpu_time_ns.map(|ns| (ns, self.on_cpu_until(tick)));
    }

    /// It stops recording: what it has measured itself is compared with what the switches say.
    pub(super) fn detach(&mut self, cpu_time_ns: Option<u64>, tick: Ticks) {
        if let (Some(now_ns), Some((then_ns, then_on_cpu))) = (cpu_time_ns, self.attached.take()) {
            self.cpu_time_ns = Some(now_ns.saturating_sub(then_ns));
            self.attached_on_cpu = Some(self.on_cpu_until(tick) - then_on_cpu);
        }
    }
}
