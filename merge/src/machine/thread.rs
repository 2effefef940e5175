//! User threads come to LWPs and leave them.

use sigmund_model::{EndReason, Event, LeaveReason, Lwp, Pid, Thread, ThreadState, Ticks, Wait};

use super::{
    Machine, Placed,
    contradictions::Contradiction,
    lwp::{LwpEntry, Mounted, Written},
    roster::Roster,
};
use crate::{
    error::Error,
    pairing::{Owner, Queue, Wakeup},
};

/// A user thread about which something is known.
#[derive(Debug)]
pub(super) struct ThreadEntry {
    pub(super) thread: Thread,
    pub(super) first: Ticks,
    pub(super) pid: Option<Pid>,
    /// The process according to what the kernel reports about the LWP that carried, created or unparked the thread.
    /// Used if the thread's own events do not state its process.
    pub(super) carrier_pid: Option<Pid>,
    pub(super) created_by: Option<Thread>,
    pub(super) state: ThreadState,
    pub(super) state_since: Ticks,
    pub(super) lwp: Option<Lwp>,
    pub(super) cpu: Option<sigmund_model::Cpu>,
    /// What the thread waits for, while it is blocked.
    pub(super) wait: Wait,
    pub(super) last_lwp: Option<Lwp>,
    /// Whether the thread was unparked while it was still mounted and about to block.
    pub(super) unparked: bool,
    /// Whether the state of the thread is unknown, and it may be mounted on an LWP that has no more user events.
    pub(super) may_be_mounted: bool,
    /// When the thread was last mounted; 0 if that switch is missing.
    mounted_since: Ticks,
    /// Whether the thread is in the list of threads that the next gap of an LWP affects.
    pub(super) is_listed: bool,
    pub(super) active: u64,
    pub(super) recorded: Written,
    pub(super) dispatches: u64,
    pub(super) migrations: u64,
    /// Number of preemptions while mounted. `None` if it is unknown for some departure of its LWP whether it was a
    /// preemption.
    pub(super) stalls: Option<u64>,
    /// A wakeup of the thread, until its dispatch.
    pub(super) wakeup: Option<Wakeup>,
    /// The ready queue in which the thread is counted.
    pub(super) queue: Option<Queue>,
    /// Whether the thread may have been requesting a lock since before its state was known.
    pub(super) may_request: bool,
    /// How often it was unknown whether the thread was active.
    pub(super) doubts: u32,
}

impl ThreadEntry {
    pub(super) fn new(thread: Thread, state: ThreadState, first: Ticks) -> ThreadEntry {
        ThreadEntry {
            thread,
            first,
            pid: None,
            carrier_pid: None,
            created_by: None,
            state,
            state_since: first,
            lwp: None,
            cpu: None,
            wait: Wait::default(),
            last_lwp: None,
            unparked: false,
            may_be_mounted: false,
            mounted_since: first,
            is_listed: false,
            active: 0,
            recorded: Written::default(),
            dispatches: 0,
            migrations: 0,
            stalls: Some(0),
            wakeup: None,
            queue: None,
            may_request: state == ThreadState::Unknown,
            doubts: u32::from(matches!(state, ThreadState::Unknown | ThreadState::Mounted)),
        }
    }
}

/// How the previously mounted thread has left.
#[derive(Clone, Copy, Debug)]
pub(super) struct Left {
    state: ThreadState,
    wait: Wait,
    reason: EndReason,
}

impl Left {
    pub(super) fn new(reason: LeaveReason, wait: Wait) -> Left {
        let (state, reason) = match reason {
            LeaveReason::Unknown => (ThreadState::Unmounted, EndReason::UserSwitch),
            LeaveReason::Yield => (ThreadState::Ready, EndReason::Yield),
            LeaveReason::Quantum => (ThreadState::Ready, EndReason::Quantum),
            LeaveReason::Block => (ThreadState::Blocked, EndReason::Block),
            LeaveReason::Exit => (ThreadState::Exited, EndReason::Exit),
        };
        Left { state, wait, reason }
    }

    /// For a thread whose own switch is missing.
    pub(super) fn resync() -> Left {
        Left { state: ThreadState::Unmounted, wait: Wait::default(), reason: EndReason::Resync }
    }
}

impl Machine {
    /// The LWP switches to `next`.
    pub(super) fn mount(
        &mut self,
        lwp: Lwp,
        next: Option<Thread>,
        left: Left,
        tick: Ticks,
    ) -> Result<(), Error> {
        let before = self.lwp(lwp, tick).mounted;
        if before == Mounted::from(next) {
            return Ok(());
        }
        if let Some(elsewhere) =
            next.and_then(|next| self.threads.get(next)?.lwp).filter(|other| *other != lwp)
        {
            let detail = format!("thread {}: on LWP {elsewhere}, then on LWP {lwp}", next.map_or(0, |t| t.0));
            self.contradictions.add(Contradiction::TwoLwps, tick, detail);
            self.doubt_mounted(elsewhere, Contradiction::TwoLwps, tick)?;
            self.change_mounted(elsewhere, Mounted::Nobody, tick, EndReason::Resync)?;
        }
        self.change_mounted(lwp, Mounted::from(next), tick, left.reason)?;
        if let Some(thread) = before.thread() {
            self.unmounted(thread, left, tick)?;
        }
        let since = if left.reason == EndReason::Resync { Ticks(0) } else { tick };
        next.map_or(Ok(()), |next| self.mounted(next, lwp, since, tick))
    }

    /// The thread that an LWP was assumed to carry is certain up to the last event that showed it. What that thread did
    /// from there to `tick` is unknown.
    pub(super) fn doubt_mounted(&mut self, lwp: Lwp, what: Contradiction, tick: Ticks) -> Result<(), Error> {
        let Some(carrier) = self.lwps.get(lwp) else { return Ok(()) };
        let seen = carrier.mounted_seen;
        let Some(entry) = carrier.mounted.thread().and_then(|thread| self.threads.get(thread)) else {
            return Ok(());
        };
        let certain = entry.state_since.max(seen);
        if certain >= tick {
            return Ok(());
        }
        let thread = entry.thread;
        self.change_mounted(lwp, Mounted::Unknown, certain, EndReason::Resync)?;
        if let Some(entry) = self.threads.get_mut(thread) {
            self.intervals.lose_thread(entry, certain)?;
        }
        self.contradictions.unknown(what, tick.0 - certain.0);
        Ok(())
    }

    /// The part of a user context switch that concerns the LWP.
    pub(super) fn change_mounted(
        &mut self,
        lwp: Lwp,
        mounted: Mounted,
        tick: Ticks,
        reason: EndReason,
    ) -> Result<(), Error> {
        self.lwp(lwp, tick);
        let Some(entry) = self.lwps.get_mut(lwp) else { return Ok(()) };
        self.intervals.close_stretch(entry, &mut self.threads, tick, reason)?;
        settle_recorded(entry, &mut self.threads);
        entry.mounted = mounted;
        entry.mounted_seen = tick;
        self.intervals.open_stretch(entry, tick);
        if mounted != Mounted::Unknown {
            self.gaps.close_lwp(lwp, tick);
        }
        Ok(())
    }

    /// The part that concerns the thread that leaves.
    fn unmounted(&mut self, thread: Thread, left: Left, tick: Ticks) -> Result<(), Error> {
        let Some(entry) = self.threads.get_mut(thread) else { return Ok(()) };
        let unparked = std::mem::take(&mut entry.unparked);
        let state = match left.state {
            ThreadState::Exited => ThreadState::Exited,
            _ if self.gaps.hide_threads(entry.pid) => ThreadState::Unknown,
            ThreadState::Blocked if unparked => ThreadState::Ready,
            ThreadState::Blocked if self.gaps.hid_threads_since(entry.pid, entry.mounted_since) => {
                ThreadState::Unknown
            }
            state => state,
        };
        self.intervals.enter_thread_state(entry, state, None, tick, left.reason)?;
        if state == ThreadState::Blocked {
            entry.wait = left.wait;
        }
        if state == ThreadState::Unknown && self.gaps.hide_threads(entry.pid) {
            // The thread may continue unobserved in the open gap, and end what it has begun.
            let wakeup = entry.wakeup.take();
            self.intervals.pairing.lose_thread(Owner::Thread(thread), wakeup, tick)?;
        }
        self.pair_departure(thread, left.state, left.wait, state, tick)?;
        if state == ThreadState::Exited {
            return self.thread_gone(thread, tick);
        }
        self.list_unmounted(thread);
        Ok(())
    }

    fn thread_gone(&mut self, thread: Thread, tick: Ticks) -> Result<(), Error> {
        self.pair_thread_end(thread, tick)?;
        let Some(mut entry) = self.threads.remove(thread) else { return Ok(()) };
        self.intervals.close_thread_state(&mut entry, tick, EndReason::Exit)?;
        self.intervals.thread(&entry, Some(tick))
    }

    /// The part that concerns the thread that is mounted.
    fn mounted(&mut self, thread: Thread, lwp: Lwp, since: Ticks, tick: Ticks) -> Result<(), Error> {
        let Some(carrier) = self.lwps.get(lwp) else { return Ok(()) };
        let state = carrier.place.thread_state();
        // A thread from before the recording is not known to be requesting a lock. A thread that began in a gap may be.
        let may_request = self.gaps.have_hidden_threads();
        let entry = self
            .threads
            .entry(thread, || ThreadEntry { may_request, ..ThreadEntry::new(thread, state, tick) });
        entry.pid = entry.pid.or(carrier.pid);
        if entry.pid.is_none() {
            entry.carrier_pid = self.processes.of(lwp).or(entry.carrier_pid);
        }
        entry.dispatches += 1;
        entry.migrations += u64::from(entry.last_lwp.is_some_and(|last| last != lwp));
        entry.last_lwp = Some(lwp);
        entry.mounted_since = since;
        entry.may_be_mounted = false;
        if let Some(wakeup) = entry.wakeup.take() {
            // The thread may have been dispatched before, unobserved.
            let is_first = !wakeup.in_gap && entry.state != ThreadState::Unknown;
            self.intervals.pairing.wakeups.write(&wakeup, Some(tick).filter(|_| is_first))?;
        }
        self.intervals.enter_thread_state(entry, state, Some(carrier), tick, EndReason::Dispatched)
    }

    /// A user thread is created.
    pub(super) fn thread_new(&mut self, thread: Thread, event: &Event, placed: &Placed) -> Result<(), Error> {
        if self.threads.get(thread).is_some_and(|known| known.state == ThreadState::Unknown) {
            // The end of an earlier thread was missing, and its number is used again.
            self.thread_gone(thread, event.tick)?;
        }
        let pid = placed.lwp.and_then(|lwp| self.lwps.get(lwp)?.pid);
        let carrier_pid = placed.lwp.and_then(|lwp| self.processes.of(lwp));
        let state = if self.gaps.hide_threads(pid) { ThreadState::Unknown } else { ThreadState::New };
        if let Some(name) = event.params.iter().find_map(|p| p.text).filter(|name| !name.is_empty()) {
            self.intervals.thread_names.insert(thread, name.into());
        }
        // A thread that was seen before its creation keeps its state.
        self.threads.entry(thread, || ThreadEntry {
            created_by: placed.thread,
            pid,
            carrier_pid,
            ..ThreadEntry::new(thread, state, event.tick)
        });
        if let Some(entry) = self.threads.get_mut(thread) {
            self.intervals.count_ready(entry, event.tick)?;
        }
        self.list_unmounted(thread);
        Ok(())
    }

    /// A user thread is made ready.
    pub(super) fn thread_ready(&mut self, thread: Thread, by: Option<Lwp>, tick: Ticks) -> Result<(), Error> {
        let pid = by.and_then(|lwp| self.lwps.get(lwp)?.pid);
        let is_hidden = self.gaps.hide_threads(pid);
        let state = if is_hidden { ThreadState::Unknown } else { ThreadState::Ready };
        let may_request = self.gaps.have_hidden_threads();
        let carrier_pid = by.and_then(|lwp| self.processes.of(lwp));
        let new = || ThreadEntry { pid, carrier_pid, may_request, ..ThreadEntry::new(thread, state, tick) };
        let entry = self.threads.entry(thread, new);
        if entry.lwp.is_some() {
            entry.unparked = true;
            return Ok(());
        }
        if entry.state != ThreadState::Unknown || !(is_hidden || entry.may_be_mounted) {
            self.intervals.enter_thread_state(entry, state, None, tick, EndReason::Woken)?;
        }
        self.list_unmounted(thread);
        Ok(())
    }
}

/// Adds what an LWP has recorded to the thread that it carries.
pub(super) fn settle_recorded(entry: &mut LwpEntry, threads: &mut Roster<Thread, ThreadEntry>) {
    let recorded = std::mem::take(&mut entry.recorded_since);
    match entry.mounted.thread().and_then(|thread| threads.get_mut(thread)) {
        Some(thread) => thread.recorded.add(recorded),
        None => entry.recorded.add(recorded),
    }
}
