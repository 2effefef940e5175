//! User threads come to LWPs and leave them.

use sigmund_model::{EndReason, Event, LeaveReason, Lwp, Pid, Thread, ThreadState, Ticks};

use super::{
    Machine, Placed,
    contradictions::Contradiction,
    lwp::{LwpEntry, Mounted},
};
use crate::error::Error;

/// A user thread of which something is known.
#[derive(Debug)]
pub(super) struct ThreadEntry {
    pub(super) thread: Thread,
    pub(super) first: Ticks,
    pub(super) pid: Option<Pid>,
    pub(super) created_by: Option<Thread>,
    pub(super) state: ThreadState,
    pub(super) state_since: Ticks,
    pub(super) lwp: Option<Lwp>,
    pub(super) cpu: Option<sigmund_model::Cpu>,
    pub(super) blocked_on: Option<u64>,
    pub(super) last_lwp: Option<Lwp>,
    /// Unparked while it was still mounted, on its way to block.
    unparked: bool,
    pub(super) active: u64,
    pub(super) dispatches: u64,
    pub(super) migrations: u64,
    pub(super) stalls: u64,
}

impl ThreadEntry {
    fn new(thread: Thread, state: ThreadState, first: Ticks) -> ThreadEntry {
        ThreadEntry {
            thread,
            first,
            pid: None,
            created_by: None,
            state,
            state_since: first,
            lwp: None,
            cpu: None,
            blocked_on: None,
            last_lwp: None,
            unparked: false,
            active: 0,
            dispatches: 0,
            migrations: 0,
            stalls: 0,
        }
    }
}

/// How the thread that was mounted before has left.
#[derive(Clone, Copy, Debug)]
pub(super) struct Left {
    state: ThreadState,
    on: Option<u64>,
    reason: EndReason,
}

impl Left {
    pub(super) fn new(reason: LeaveReason, on: Option<u64>) -> Left {
        let (state, reason) = match reason {
            LeaveReason::Unknown => (ThreadState::Unmounted, EndReason::UserSwitch),
            LeaveReason::Yield => (ThreadState::Ready, EndReason::Yield),
            LeaveReason::Quantum => (ThreadState::Ready, EndReason::Quantum),
            LeaveReason::Block => (ThreadState::Blocked, EndReason::Block),
            LeaveReason::Exit => (ThreadState::Exited, EndReason::Exit),
        };
        Left { state, on: on.filter(|_| state == ThreadState::Blocked), reason }
    }

    /// Its own switch is missing.
    pub(super) fn resync() -> Left {
        Left { state: ThreadState::Unmounted, on: None, reason: EndReason::Resync }
    }
}

impl Machine {
    /// The LWP goes on with `next`.
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
            next.and_then(|next| self.threads.get(&next)?.lwp).filter(|other| *other != lwp)
        {
            let detail = format!("thread {}: on LWP {elsewhere}, then on LWP {lwp}", next.map_or(0, |t| t.0));
            self.contradictions.add(Contradiction::TwoLwps, tick, detail);
            self.change_mounted(elsewhere, Mounted::Nobody, tick, EndReason::Resync)?;
        }
        self.change_mounted(lwp, Mounted::from(next), tick, left.reason)?;
        if let Some(thread) = before.thread() {
            self.unmounted(thread, left, tick)?;
        }
        next.map_or(Ok(()), |next| self.mounted(next, lwp, tick))
    }

    /// The LWP's side of a user context switch.
    fn change_mounted(
        &mut self,
        lwp: Lwp,
        mounted: Mounted,
        tick: Ticks,
        reason: EndReason,
    ) -> Result<(), Error> {
        let entry = self.lwps.entry(lwp).or_insert_with(|| LwpEntry::new(lwp, tick));
        self.intervals.close_stretch(entry, &mut self.threads, tick, reason)?;
        entry.mounted = mounted;
        self.intervals.open_stretch(entry, tick);
        Ok(())
    }

    /// The side of the thread that leaves.
    fn unmounted(&mut self, thread: Thread, left: Left, tick: Ticks) -> Result<(), Error> {
        let Some(entry) = self.threads.get_mut(&thread) else { return Ok(()) };
        let unparked = std::mem::take(&mut entry.unparked);
        let state = match left.state {
            ThreadState::Blocked if unparked => ThreadState::Ready,
            state => state,
        };
        self.intervals.enter_thread_state(entry, state, None, left.on, tick, left.reason)?;
        if state == ThreadState::Exited {
            let Some(mut entry) = self.threads.remove(&thread) else { return Ok(()) };
            self.intervals.close_thread_state(&mut entry, tick, EndReason::Exit)?;
            self.intervals.thread(&entry, Some(tick))?;
        }
        Ok(())
    }

    /// The side of the thread that comes.
    fn mounted(&mut self, thread: Thread, lwp: Lwp, tick: Ticks) -> Result<(), Error> {
        let Some(carrier) = self.lwps.get(&lwp) else { return Ok(()) };
        let state = carrier.place.thread_state();
        let new = || ThreadEntry::new(thread, state, tick);
        let entry = self.threads.entry(thread).or_insert_with(new);
        entry.pid = entry.pid.or(carrier.pid);
        entry.dispatches += 1;
        entry.migrations += u64::from(entry.last_lwp.is_some_and(|last| last != lwp));
        entry.last_lwp = Some(lwp);
        self.intervals.enter_thread_state(entry, state, Some(carrier), None, tick, EndReason::Dispatched)
    }

    /// A user thread is created.
    pub(super) fn thread_new(&mut self, thread: Thread, event: &Event, placed: &Placed) -> Result<(), Error> {
        let mut entry = ThreadEntry::new(thread, ThreadState::New, event.tick);
        entry.created_by = placed.thread;
        entry.pid = placed.lwp.and_then(|lwp| self.lwps.get(&lwp)?.pid);
        if let Some(name) = event.params.iter().find_map(|p| p.text).filter(|name| !name.is_empty()) {
            self.intervals.thread_names.insert(thread, name.into());
        }
        // One that is known already was seen before its creation was: keep what is known.
        self.threads.entry(thread).or_insert(entry);
        Ok(())
    }

    /// A user thread is made ready.
    pub(super) fn thread_ready(&mut self, thread: Thread, tick: Ticks) -> Result<(), Error> {
        let new = || ThreadEntry::new(thread, ThreadState::Ready, tick);
        let entry = self.threads.entry(thread).or_insert_with(new);
        if entry.lwp.is_some() {
            entry.unparked = true;
            return Ok(());
        }
        self.intervals.enter_thread_state(entry, ThreadState::Ready, None, None, tick, EndReason::Woken)
    }
}
