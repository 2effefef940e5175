//! Locks: user threads that block on them, acquire and release them.

use sigmund_model::{
    Event, Thread, ThreadState, Ticks, Wait, WaitKind,
    vocabulary::{Meaning, Role},
};

use super::owner_of;
use crate::{
    error::Error,
    input_event_types::InputEventType,
    machine::{Machine, Placed},
    pairing::{LockRequest, Owner, is_lock},
};

impl Machine {
    pub(super) fn pair_lock(
        &mut self,
        kind: &InputEventType,
        event: &Event,
        placed: &Placed,
    ) -> Result<(), Error> {
        let (Some(known), Some(owner)) = (kind.known, owner_of(placed)) else { return Ok(()) };
        let number = |role| known.field(role).and_then(|field| event.params.get(field)?.number);
        let (Some(address), Some(wait_kind)) = (number(Role::Object), number(Role::WaitKind)) else {
            return Ok(());
        };
        let Some(wait_kind) = WaitKind::from_number(wait_kind as u64).filter(|kind| is_lock(*kind)) else {
            return Ok(());
        };
        let pid = kind.pid.or(placed.lwp.and_then(|lwp| self.lwps.get(lwp)?.pid));
        let (lock, tick) = ((pid, address as u64), event.tick);
        let pairing = &mut self.intervals.pairing;
        if !pairing.locks.is_written() {
            return Ok(());
        }
        if known.meaning() == Meaning::LockRelease {
            return pairing.locks.releases(owner, lock, wait_kind, tick);
        }
        let call_site = pairing.spans.innermost(owner);
        let in_gap = self.gaps.hide_threads(pid);
        // For an LWP that carries no user threads, its system call determines how long it has waited.
        let may_go_on = match owner {
            Owner::Thread(thread) => {
                self.threads.get_mut(thread).is_none_or(|entry| std::mem::take(&mut entry.may_request))
            }
            Owner::Lwp(_) => true,
        };
        let pairing = &mut self.intervals.pairing;
        pairing.locks.takes(LockRequest {
            may_go_on,
            in_gap,
            owner,
            lwp: placed.lwp,
            cpu: placed.cpu,
            lock,
            kind: wait_kind,
            since: tick,
            call_site,
        })
    }

    /// A user thread has left its LWP, and is in state `state` now.
    pub(in crate::machine) fn pair_departure(
        &mut self,
        thread: Thread,
        left_in: ThreadState,
        wait: Wait,
        state: ThreadState,
        tick: Ticks,
    ) -> Result<(), Error> {
        let owner = Owner::Thread(thread);
        let Some(entry) = self.threads.get_mut(thread) else { return Ok(()) };
        // The thread was unparked while it was mounted. If it did not block after that, it was awake.
        if left_in != ThreadState::Blocked
            && let Some(wakeup) = entry.wakeup.take()
        {
            self.intervals.pairing.wakeups.write(&wakeup, None)?;
        }
        let (pid, lwp) = (entry.pid, entry.last_lwp);
        let pairing = &mut self.intervals.pairing;
        let lock = wait.kind.filter(|kind| left_in == ThreadState::Blocked && is_lock(*kind)).zip(wait.on);
        match lock {
            Some((kind, on)) if matches!(state, ThreadState::Blocked | ThreadState::Ready) => {
                if !pairing.locks.is_written() {
                    return Ok(());
                }
                let cpu = lwp.and_then(|lwp| self.lwps.get(lwp)?.place.cpu());
                let call_site = pairing.spans.innermost(owner);
                let (lock, since, in_gap) = ((pid, on), tick, self.gaps.hide_threads(pid));
                let may_go_on = std::mem::take(&mut entry.may_request);
                pairing.locks.blocks(LockRequest {
                    owner,
                    lwp,
                    cpu,
                    lock,
                    kind,
                    since,
                    call_site,
                    may_go_on,
                    in_gap,
                })?;
                if state == ThreadState::Ready { pairing.locks.wakes(owner, tick) } else { Ok(()) }
            }
            _ if left_in == ThreadState::Blocked => {
                // If it is blocked on a lock, the beginning of the wait is unknown, because it may have been unparked
                // before. In a gap, it may block again.
                entry.may_request = lock.is_some() || state == ThreadState::Unknown;
                pairing.locks.blocks_elsewhere(owner, tick)
            }
            _ => Ok(()),
        }
    }
}
