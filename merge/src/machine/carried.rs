//! User threads that are older than the kept part of a recording. The facts that the recorder carried over about them
//! (`source/carried.rs`) apply when the kept part begins. The rows of these threads begin there.
//!
//! If such a thread waits for a lock, the wait may have begun earlier: its length is unknown (rule 6 of
//! `pairing/locks.rs`).

use fut::trace::CarriedState;
use sigmund_model::{Pid, ThreadState, Ticks, Wait};

use super::{
    Machine,
    thread::{Left, ThreadEntry},
};
use crate::{error::Error, source::CarriedThread};

impl Machine {
    /// A user thread existed before the first event that is kept.
    pub(crate) fn carry_over(
        &mut self,
        carried: &CarriedThread,
        pid: Option<Pid>,
        tick: Ticks,
    ) -> Result<(), Error> {
        self.go_to(tick)?;
        let CarriedThread { thread, ref name, created_by, state } = *carried;
        if !name.is_empty() {
            self.intervals.thread_names.insert(thread, name.clone());
        }
        let (at_first, wait) = match state {
            CarriedState::New => (ThreadState::New, Wait::default()),
            CarriedState::Ready => (ThreadState::Ready, Wait::default()),
            CarriedState::Blocked(wait) => (ThreadState::Blocked, wait),
            CarriedState::Unmounted => (ThreadState::Unmounted, Wait::default()),
            CarriedState::Mounted(_) | CarriedState::Unknown => (ThreadState::Unknown, Wait::default()),
        };
        if self.threads.get(thread).is_some() {
            return Ok(());
        }
        if let CarriedState::Mounted(lwp) = state {
            pid.map_or(Ok(()), |pid| self.belongs_to(lwp, pid))?;
            self.lwp(lwp, tick).carries_threads = true;
            self.mount(lwp, Some(thread), Left::resync(), tick)?;
        }
        let entry = self.threads.entry(thread, || ThreadEntry::new(thread, at_first, tick));
        (entry.pid, entry.created_by, entry.wait, entry.dispatches) = (pid, created_by, wait, 0);
        entry.may_request = true;
        self.intervals.count_ready(entry, tick)?;
        if at_first == ThreadState::Blocked {
            self.pair_departure(thread, ThreadState::Blocked, wait, ThreadState::Blocked, tick)?;
        }
        self.list_unmounted(thread);
        Ok(())
    }
}
