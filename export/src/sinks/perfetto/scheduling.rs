//! Writes the timeline's changes of CPUs and LWPs as `sched_switch` and `sched_waking`, from which the viewer derives
//! its CPU tracks and the states of threads.
//!
//! The recorded `sched_switch` events are not used: the timeline's changes exist for every source of the kernel trace
//! (perf's context switches have other names), respect filters and coarse states, and contain the merge's corrections.
//! The changes of one instant are in any order, and one event needs several of them (a switch: the previous LWP, its
//! state, the next LWP). So changes are collected until the instant ends; then the difference from the previous state
//! is written.
//!
//! A state that no switch and no waking implies (such as an LWP's state at the beginning of the trace) is written as a
//! `GenericKernelTaskStateEvent`, which Perfetto defines for kernels other than Linux; readers from before 2025 ignore
//! it.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use foldhash::fast::RandomState;
use sigmund_model::{LwpState, Ticks};

use super::{
    batch::Batch,
    bundles::{Bundles, PRIORITY, SEQUENCE, Switch, Waking, comm, tid},
    processes,
    schema::{packet, task_state},
    wire::Wire,
};
use crate::timeline::{Actors, CpuId, LwpId, ThreadId, Track};

/// The states of CPUs and LWPs: as written, and as of the current instant.
pub(super) struct Scheduling {
    actors: Arc<Actors>,
    cpus: Vec<CpuSide>,
    lwps: Vec<LwpSide>,
    /// The LWPs of user threads that are mounted.
    lwp_of_thread: HashMap<ThreadId, LwpId, RandomState>,
    /// CPUs and LWPs that changed at this instant.
    changed: Vec<CpuId>,
    touched: Vec<LwpId>,
    pub(super) bundles: Bundles,
}

#[derive(Clone, Default)]
struct CpuSide {
    /// The LWP on it: as written, and now.
    written: Option<LwpId>,
    now: Option<LwpId>,
    changed: bool,
}

#[derive(Clone, Default)]
struct LwpSide {
    state: Option<LwpState>,
    /// The last state of this instant other than `Running`: the state in which it left its CPU.
    left: Option<Option<LwpState>>,
    /// The state that a reader assumes.
    shown: Option<LwpState>,
    /// The CPU it is on, as written.
    on: Option<CpuId>,
    /// The CPU on which it was last written to run or to be runnable.
    cpu: Option<CpuId>,
    waker: Option<Waker>,
    mounted: Option<ThreadId>,
    touched: bool,
    /// Another LWP had the same tid before, and its end is not yet written.
    replaces: bool,
}

#[derive(Clone, Copy)]
enum Waker {
    Lwp(LwpId),
    /// An interrupt on this CPU.
    Interrupt(CpuId),
}

impl Scheduling {
    pub(super) fn new(actors: Arc<Actors>) -> Scheduling {
        let mut lwps = vec![LwpSide::default(); actors.lwps.len()];
        let mut tids = HashSet::<_, RandomState>::default();
        for (lwp, side) in actors.lwps.iter().zip(&mut lwps) {
            side.replaces = !tids.insert(lwp.lwp);
        }
        Scheduling {
            cpus: vec![CpuSide::default(); actors.cpus.len()],
            lwps,
            lwp_of_thread: HashMap::default(),
            changed: Vec::new(),
            touched: Vec::new(),
            bundles: Bundles::new(&actors),
            actors,
        }
    }

    pub(super) fn cpu(&mut self, cpu: CpuId, lwp: Option<LwpId>) {
        let side = &mut self.cpus[cpu.index()];
        side.now = lwp;
        if !std::mem::replace(&mut side.changed, true) {
            self.changed.push(cpu);
        }
    }

    pub(super) fn lwp(&mut self, lwp: LwpId, state: Option<LwpState>, cpu: Option<CpuId>) {
        let side = &mut self.lwps[lwp.index()];
        side.state = state;
        side.cpu = cpu.or(side.cpu);
        if state != Some(LwpState::Running) {
            side.left = Some(state);
        }
        if !std::mem::replace(&mut side.touched, true) {
            self.touched.push(lwp);
        }
    }

    /// Whether this LWP is the first with its tid.
    pub(super) fn is_first_of_tid(&self, lwp: LwpId) -> bool {
        !self.lwps[lwp.index()].replaces
    }

    pub(super) fn mounted(&mut self, lwp: LwpId, thread: Option<ThreadId>) {
        if let Some(before) = std::mem::replace(&mut self.lwps[lwp.index()].mounted, thread)
            && self.lwp_of_thread.get(&before) == Some(&lwp)
        {
            self.lwp_of_thread.remove(&before);
        }
        if let Some(thread) = thread {
            self.lwp_of_thread.insert(thread, lwp);
        }
    }

    /// An LWP is woken. The waking is written when the LWP's state becomes runnable.
    pub(super) fn wakeup(&mut self, by: Option<Track>, of: LwpId) {
        self.lwps[of.index()].waker = match by {
            None => None,
            Some(Track::Cpu(cpu)) => Some(Waker::Interrupt(cpu)),
            Some(Track::Lwp(lwp)) => Some(Waker::Lwp(lwp)),
            Some(Track::Thread(thread)) => self.lwp_of_thread.get(&thread).copied().map(Waker::Lwp),
        };
    }

    pub(super) fn migration(&mut self, at: u64, of: LwpId, from: CpuId, to: CpuId) {
        self.bundles.migration(&self.actors, at, of, from, to);
    }

    /// Ends the instant: writes its changes.
    #[inline]
    pub(super) fn settle(&mut self, tick: Ticks, at: u64, batch: &mut Batch) {
        if !self.changed.is_empty() {
            self.switches(tick, at);
        }
        if !self.touched.is_empty() {
            self.states(at, batch);
        }
    }

    fn switches(&mut self, tick: Ticks, at: u64) {
        let mut changed = std::mem::take(&mut self.changed);
        for cpu in changed.drain(..) {
            let side = &mut self.cpus[cpu.index()];
            side.changed = false;
            let (prev, next) = (side.written, side.now);
            if prev == next {
                continue;
            }
            side.written = next;
            let early = prev.is_some_and(|prev| self.continues_on_lower_cpu(prev, cpu));
            let at = if early { at.saturating_sub(1) } else { at };
            let prev_state = prev.map_or(0, |prev| self.leave(prev, cpu, tick));
            if let Some(next) = next {
                let next = &mut self.lwps[next.index()];
                (next.shown, next.on, next.waker) = (Some(LwpState::Running), Some(cpu), None);
            }
            self.bundles.switch(&self.actors, cpu, &Switch { at, prev_state, next });
        }
        self.changed = changed;
    }

    /// Whether this LWP continues at this instant on a CPU with a smaller number. (Usually an LWP is runnable in
    /// between, but not in a coarse timeline.) The reader sorts simultaneous events by CPU, and would read the arrival
    /// before the departure. So the departure is written a nanosecond earlier.
    fn continues_on_lower_cpu(&self, lwp: LwpId, from: CpuId) -> bool {
        let side = &self.lwps[lwp.index()];
        side.touched
            && side.state == Some(LwpState::Running)
            && side.cpu.is_some_and(|to| self.actors[to] < self.actors[from])
    }

    /// An LWP leaves its CPU. Returns its state as the kernel's number.
    fn leave(&mut self, lwp: LwpId, cpu: CpuId, tick: Ticks) -> i64 {
        let died = self.actors[lwp].died.is_some_and(|died| died <= tick);
        let side = &mut self.lwps[lwp.index()];
        let state = match side.left.unwrap_or(side.state) {
            None if died => Some(LwpState::Exited),
            // It continues on another CPU: it was runnable for zero time.
            Some(LwpState::Running) if side.touched => Some(LwpState::Runnable),
            // Its departure is not in the timeline.
            Some(LwpState::Running) => None,
            state => state,
        };
        if side.on == Some(cpu) {
            (side.shown, side.on) = (state, None);
        }
        prev_state(state)
    }

    fn states(&mut self, at: u64, batch: &mut Batch) {
        let mut touched = std::mem::take(&mut self.touched);
        for lwp in touched.drain(..) {
            let side = &mut self.lwps[lwp.index()];
            (side.touched, side.left) = (false, None);
            if std::mem::take(&mut side.replaces) {
                self.replace(lwp, at, batch);
            }
            let side = &self.lwps[lwp.index()];
            if side.state != side.shown && side.on.is_none() {
                self.state(lwp, at, batch);
            }
        }
        self.touched = touched;
    }

    /// Writes a state that is not implied by a switch.
    fn state(&mut self, lwp: LwpId, at: u64, batch: &mut Batch) {
        let actors = &self.actors;
        let side = &mut self.lwps[lwp.index()];
        let Some((state, generic)) = side.state.and_then(|state| Some((state, generic_state(state)?))) else {
            return;
        };
        side.shown = Some(state);
        let waker = side.waker.take().filter(|_| state == LwpState::Runnable);
        let Some((target_cpu, waker)) = side.cpu.zip(waker) else {
            return batch.packet(|out| {
                out.number(packet::TIMESTAMP, at);
                out.number(packet::TRUSTED_PACKET_SEQUENCE_ID, SEQUENCE);
                out.message(packet::GENERIC_KERNEL_TASK_STATE_EVENT, |out| {
                    out.number(task_state::CPU, 0);
                    out.text(task_state::COMM, comm(actors, Some(lwp)));
                    out.number(task_state::TID, tid(actors, Some(lwp)));
                    out.number(task_state::STATE, generic);
                    out.signed(task_state::PRIO, PRIORITY);
                });
            });
        };
        let waking = Waking { at, of: lwp, target_cpu, flags: 0 };
        match waker {
            Waker::Interrupt(cpu) => self.bundles.waking(actors, cpu, &Waking { flags: HARDIRQ, ..waking }),
            Waker::Lwp(by) => match self.lwps[by.index()].on {
                Some(cpu) => self.bundles.waking(actors, cpu, &waking),
                None => self.bundles.waking_by(actors, target_cpu, by, &waking),
            },
        }
    }

    /// An LWP appears with the tid of another one: the other's end is written a nanosecond earlier.
    fn replace(&mut self, lwp: LwpId, at: u64, batch: &mut Batch) {
        let cpu = self.lwps[lwp.index()].cpu.or(self.actors.cpu_ids().next());
        if let Some(cpu) = cpu {
            self.bundles.free(&self.actors, cpu, at.saturating_sub(1), lwp);
        }
        processes::describe_lwp(&self.actors, lwp, at, batch);
    }
}

/// `TRACE_FLAG_HARDIRQ` (include/linux/trace_events.h, v6.12).
const HARDIRQ: u64 = 0x08;

/// `prev_state` as the kernel writes it (`task_state_array`, fs/proc/array.c, v6.12). The trace has no kernel version,
/// so the reader interprets larger bits as in old kernels (0x40 is parked now, and was dead then); they are not
/// written. If the reason is unknown, both kinds of sleep are set, which no kernel writes and the reader shows as `SD`.
fn prev_state(state: Option<LwpState>) -> i64 {
    match state {
        Some(LwpState::Runnable | LwpState::Running) => 0,
        Some(LwpState::Sleeping) => 1,
        Some(LwpState::DiskSleep | LwpState::Idle) => 2,
        Some(LwpState::Stopped) => 4,
        Some(LwpState::Exited) => 0x10,
        Some(LwpState::OffCpu | LwpState::Unknown) | None => 3,
    }
}

fn generic_state(state: LwpState) -> Option<u64> {
    match state {
        LwpState::Runnable => Some(task_state::RUNNABLE),
        LwpState::Sleeping => Some(task_state::INTERRUPTIBLE_SLEEP),
        LwpState::DiskSleep | LwpState::Idle => Some(task_state::UNINTERRUPTIBLE_SLEEP),
        LwpState::Stopped => Some(task_state::STOPPED),
        LwpState::Running | LwpState::Exited | LwpState::OffCpu | LwpState::Unknown => None,
    }
}
