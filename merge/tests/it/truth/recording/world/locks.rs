//! Locks of user threads: what is requested, held and released.
//!
//! Locks at addresses from [`FIRST_LOCK`] on are recorded: each acquisition and release is an event. Of the others,
//! only the switches of threads that block on them are recorded.

use super::{Request, ThreadId, Waits, What, World};

/// The address of the first lock whose holds are recorded.
pub(in crate::truth::recording) const FIRST_LOCK: u64 = 64;
const LOCKS: u64 = 4;

const MUTEX: u64 = 1;
const READ: u64 = 2;
const WRITE: u64 = 3;

/// Whether this wait is a wait for a lock.
pub(in crate::truth::recording) fn is_lock(waits: Waits) -> bool {
    waits.on != 0 && (MUTEX..=WRITE).contains(&waits.kind)
}

/// A lock whose holds are recorded.
#[derive(Default)]
pub(super) struct Lock {
    /// The holders, with the mode and the index of the request.
    holds: Vec<(u64, u64, usize)>,
}

impl Lock {
    pub(super) fn is_held_by(&self, thread: u64) -> bool {
        self.holds.iter().any(|(holder, ..)| *holder == thread)
    }

    fn is_free_for(&self, kind: u64) -> bool {
        self.holds.iter().all(|(_, held, _)| kind == READ && *held == READ)
    }
}

impl World<'_> {
    fn any_lock(&mut self) -> Waits {
        let on = FIRST_LOCK + self.chance.below(LOCKS);
        // The last two are readers-writer locks.
        let kind = if on < FIRST_LOCK + 2 { MUTEX } else { READ + self.chance.below(2) };
        Waits { on, kind }
    }

    /// What a mounted thread does with a lock.
    pub(super) fn lock(&mut self, lwp: u32) -> What {
        let Some((process, thread)) = self.lwps.get(&lwp).and_then(|lwp| Some((lwp.process, lwp.thread?)))
        else {
            return What::Message;
        };
        let any = self.any_lock();
        let requested =
            self.request_of((process, thread)).map(|request| Waits { on: request.lock, kind: request.kind });
        let wanted =
            requested.filter(|wanted| wanted.on >= FIRST_LOCK && !self.chance.one_in(4)).unwrap_or(any);
        let moves = self.chance.one_in(8);
        let Some(lock) = self.processes[process].locks.get(&wanted.on) else {
            return What::LockAcquire(wanted);
        };
        let own = lock.holds.iter().find(|(holder, ..)| *holder == thread);
        match (own, lock.holds.first()) {
            (Some((_, kind, _)), _) => What::LockRelease(Waits { kind: *kind, ..wanted }),
            _ if lock.is_free_for(wanted.kind) => What::LockAcquire(wanted),
            // A guard has moved.
            (None, Some((_, kind, _))) if moves && *kind != READ => {
                What::LockRelease(Waits { kind: *kind, ..wanted })
            }
            _ => What::Message,
        }
    }

    /// What a thread that is about to block might wait for, if that is to be a lock that is recorded.
    pub(super) fn lock_to_wait_for(&mut self, process: usize, thread: u64) -> Option<Waits> {
        let requested =
            self.request_of((process, thread)).map(|request| Waits { on: request.lock, kind: request.kind });
        if let Some(again) = requested.filter(|again| again.on >= FIRST_LOCK) {
            return (!self.chance.one_in(4)).then_some(again);
        }
        let any = self.any_lock();
        let races = self.chance.one_in(8);
        let lock = self.processes[process].locks.get(&any.on)?;
        let waits = !lock.is_held_by(thread) && (races || !lock.is_free_for(any.kind));
        waits.then_some(any)
    }

    fn request_of(&self, (process, thread): ThreadId) -> Option<&Request> {
        self.processes[process].requests.get(&thread).map(|place| &self.history.requests[*place])
    }

    /// A thread leaves its LWP, perhaps because it waits for a lock.
    pub(super) fn leave_by_lock(&mut self, id: ThreadId, lwp: u32, reason: u64, waits: Waits) {
        let (process, thread) = id;
        let blocks = reason == 3 && is_lock(waits);
        let again = self.request_of(id).is_some_and(|r| r.lock == waits.on && waits.on >= FIRST_LOCK);
        if blocks && again {
            let place = self.processes[process].requests[&thread];
            self.history.requests[place].stretches.push((self.tick, None));
        } else if reason >= 3 {
            self.give_up(id);
        }
        if blocks && !again {
            let lock = self.processes[process].locks.get(&waits.on);
            let holders = lock
                .map_or(vec![], |lock| lock.holds.iter().map(|(holder, ..)| (process, *holder)).collect());
            let stretches = vec![(self.tick, None)];
            self.request(id, lwp, waits, holders, stretches);
        }
        if blocks && self.processes[process].unparked.contains(&thread) {
            self.wakes_request(id);
        }
    }

    fn request(
        &mut self,
        id: ThreadId,
        lwp: u32,
        lock: Waits,
        holders: Vec<ThreadId>,
        stretches: Vec<(u64, Option<u64>)>,
    ) {
        self.processes[id.0].requests.insert(id.1, self.history.requests.len());
        self.history.requests.push(Request {
            thread: id,
            lwp,
            lock: lock.on,
            kind: lock.kind,
            requested_kind: lock.kind,
            since: self.tick,
            holders,
            stretches,
            taken: None,
            released: None,
            is_given_up: false,
        });
    }

    /// It does something else, if it has not the lock yet.
    fn give_up(&mut self, (process, thread): ThreadId) {
        if let Some(place) = self.processes[process].requests.remove(&thread) {
            self.history.requests[place].is_given_up = true;
        }
    }

    /// A waiting thread is unparked.
    pub(super) fn wakes_request(&mut self, (process, thread): ThreadId) {
        let Some(place) = self.processes[process].requests.get(&thread).copied() else { return };
        let request = &mut self.history.requests[place];
        if let Some((_, woken)) = request.stretches.last_mut() {
            woken.get_or_insert(self.tick);
        }
        if request.lock < FIRST_LOCK {
            self.give_up((process, thread));
        }
    }

    pub(super) fn acquire(&mut self, lwp: u32, lock: Waits) {
        let Some((process, thread)) = self.lwps.get(&lwp).and_then(|lwp| Some((lwp.process, lwp.thread?)))
        else {
            return;
        };
        let id = (process, thread);
        if self.request_of(id).is_none_or(|request| request.lock != lock.on) {
            self.give_up(id);
            self.request(id, lwp, lock, vec![], vec![]);
        }
        let Some(place) = self.processes[process].requests.remove(&thread) else { return };
        let request = &mut self.history.requests[place];
        (request.taken, request.kind) = (Some(self.tick), lock.kind);
        self.processes[process].locks.entry(lock.on).or_default().holds.push((thread, lock.kind, place));
    }

    pub(super) fn release(&mut self, lwp: u32, lock: Waits) {
        let Some((process, thread)) = self.lwps.get(&lwp).and_then(|lwp| Some((lwp.process, lwp.thread?)))
        else {
            return;
        };
        let Some(held) = self.processes[process].locks.get_mut(&lock.on) else { return };
        let own = held.holds.iter().position(|(holder, ..)| *holder == thread);
        let (_, _, place) = held.holds.remove(own.unwrap_or(0));
        self.history.requests[place].released = Some(self.tick);
    }
}
