//! Locks: one row for each request, from the request to the release.
//!
//! 1. A wait begins when a user thread blocks on a lock. Where taking this lock is recorded, it ends when the thread has
//!    taken it, however often it was woken in vain. Elsewhere it ends with the unpark, and each blocked stretch is a row.
//! 2. A request that was not contended begins when the lock is taken. It is seen only where that is recorded.
//! 3. Locks that exclude each other have one holder. If another takes one, the release is missing: `unseen`, and how long it
//!    was held is not known.
//! 4. A lock is released by its holder; one that excludes others also by another thread, if that one has not taken it: a
//!    guard may move. Which of several readers a release by another thread is of, is not known.
//! 5. A futex is a wait only: of a system call that slept.
//! 6. One that may have been waiting before it was known what it does has a wait of unknown length, if any.
//! 7. Behind a gap of its process, a lock may be in other hands: its holder is not known, and a hold that no release of its
//!    own ends is known up to the gap.

use std::collections::HashMap;

use foldhash::fast::RandomState;
use sigmund_model::{EndReason, Lwp, Pid, Ticks, WaitKind};

use super::spans::Owner;
use crate::{error::Error, tables::OptionalTable};

/// Locks that are remembered. Of a program with more, waits for the others end with the unpark.
const MOST_LOCKS: usize = 1 << 20;

/// A lock: addresses are those of one process.
type Lock = (Option<Pid>, u64);

/// A request for a lock.
#[derive(Clone, Debug)]
pub(crate) struct LockRequest {
    pub(crate) owner: Owner,
    pub(crate) lwp: Option<Lwp>,
    pub(crate) lock: Lock,
    pub(crate) kind: WaitKind,
    pub(crate) since: Ticks,
    pub(crate) call_site: Option<String>,
    /// Whether its owner may have been requesting this lock before (rule 6).
    pub(crate) may_go_on: bool,
    /// Whether events of its process are missing now (rule 7).
    pub(crate) in_gap: bool,
}

/// One that waits, or did.
#[derive(Clone, Debug)]
struct Waiting {
    request: LockRequest,
    holder: Option<Owner>,
    /// When it was made ready; it has not taken the lock since.
    woken: Option<Ticks>,
    /// Its row is written already: it ended with the unpark.
    is_written: bool,
}

#[derive(Clone, Debug)]
struct Hold {
    request: LockRequest,
    holder: Option<Owner>,
    contended: bool,
    wait: Option<u64>,
    taken: Ticks,
    /// Whether events of its process were missing then.
    in_gap: bool,
    /// Another reader's release may have been of this one.
    may_be_released: bool,
}

/// The table, waits and holds.
pub(crate) struct Locks {
    rows: OptionalTable,
    waiting: HashMap<Owner, Waiting, RandomState>,
    /// Holds of each lock that was ever recorded to be taken.
    holds: HashMap<Lock, Vec<Hold>, RandomState>,
    /// The locks that each owner holds.
    held_by: HashMap<Owner, Vec<Lock>, RandomState>,
    /// When gaps in the events of each process opened, in order.
    gaps: HashMap<Option<Pid>, Vec<Ticks>, RandomState>,
}

impl Hold {
    /// A lock that is taken when it is requested.
    fn of(request: LockRequest, holder: Option<Owner>, contended: bool, wait: Option<u64>) -> Hold {
        let taken = request.since;
        let in_gap = request.in_gap;
        Hold { request, holder, contended, wait, taken, in_gap, may_be_released: false }
    }
}

fn excludes(kind: WaitKind) -> bool {
    kind != WaitKind::RwLockRead
}

/// Whether waiting for this is waiting for a lock.
pub(crate) fn is_lock(kind: WaitKind) -> bool {
    matches!(kind, WaitKind::Mutex | WaitKind::RwLockRead | WaitKind::RwLockWrite)
}

impl Locks {
    pub(super) fn new(rows: OptionalTable) -> Locks {
        Locks {
            rows,
            waiting: HashMap::default(),
            holds: HashMap::default(),
            held_by: HashMap::default(),
            gaps: HashMap::default(),
        }
    }

    pub(crate) fn is_written(&self) -> bool {
        self.rows.is_written()
    }

    /// Events of a process are missing from here on.
    pub(crate) fn gap_opens(&mut self, pid: Option<Pid>, tick: Ticks) {
        if self.is_written() {
            self.gaps.entry(pid).or_default().push(tick);
        }
    }

    /// When a lock that was taken may have got into other hands unseen.
    fn gap_since(&self, hold: &Hold) -> Option<Ticks> {
        let (pid, _) = hold.request.lock;
        let tick = hold.taken;
        if hold.in_gap {
            return Some(tick);
        }
        let first = |gaps: &Vec<Ticks>| gaps.get(gaps.partition_point(|gap| *gap < tick)).copied();
        match pid {
            _ if self.gaps.is_empty() => None,
            Some(_) => [pid, None].iter().filter_map(|pid| first(self.gaps.get(pid)?)).min(),
            None => self.gaps.values().filter_map(first).min(),
        }
    }

    /// An owner blocks on a lock.
    pub(crate) fn blocks(&mut self, mut request: LockRequest) -> Result<(), Error> {
        let owner = request.owner;
        if let Some(waiting) = self.waiting.get_mut(&owner)
            && waiting.request.lock == request.lock
            && waiting.woken.is_some()
            && !waiting.is_written
            && self.holds.contains_key(&request.lock)
        {
            // It was woken in vain.
            waiting.woken = None;
            return Ok(());
        }
        let again = |before: &Waiting| before.is_written && before.request.lock == request.lock;
        request.may_go_on |= self.waiting.get(&owner).is_some_and(again);
        self.end_wait(owner, request.since, EndReason::Woken)?;
        let is_certain = |hold: &&Hold| !hold.may_be_released && self.gap_since(hold).is_none();
        let holders = self.holds.get(&request.lock).into_iter().flatten().filter(is_certain);
        let holder = holders.max_by_key(|hold| excludes(hold.request.kind)).map(|hold| hold.request.owner);
        self.waiting.insert(owner, Waiting { request, holder, woken: None, is_written: false });
        Ok(())
    }

    /// An owner blocks on something else, or goes on without having blocked.
    pub(crate) fn blocks_elsewhere(&mut self, owner: Owner, tick: Ticks) -> Result<(), Error> {
        if self.waiting.is_empty() { Ok(()) } else { self.end_wait(owner, tick, EndReason::Woken) }
    }

    /// An owner that may have been blocked is made ready.
    #[inline]
    pub(crate) fn wakes(&mut self, owner: Owner, tick: Ticks) -> Result<(), Error> {
        if self.waiting.is_empty() { Ok(()) } else { self.wakes_waiting(owner, tick) }
    }

    fn wakes_waiting(&mut self, owner: Owner, tick: Ticks) -> Result<(), Error> {
        let Some(waiting) = self.waiting.get_mut(&owner) else { return Ok(()) };
        waiting.woken.get_or_insert(tick);
        if waiting.is_written || self.holds.contains_key(&waiting.request.lock) {
            return Ok(());
        }
        waiting.is_written = true;
        let Waiting { request, holder, .. } = waiting.clone();
        let wait = tick.0.saturating_sub(request.since.0);
        self.write(&request, holder, Some(wait), None, true, EndReason::Woken)
    }

    /// An owner has taken a lock.
    pub(crate) fn takes(&mut self, request: LockRequest) -> Result<(), Error> {
        let (owner, tick) = (request.owner, request.since);
        let in_gap = request.in_gap;
        let waited = self.waiting.get(&owner).is_some_and(|waiting| waiting.request.lock == request.lock);
        let waiting = if waited { self.waiting.remove(&owner) } else { None };
        let hold = match waiting {
            // That this lock is recorded was not known when it was woken.
            Some(Waiting { is_written: true, .. }) => Hold::of(request, None, true, None),
            Some(Waiting { request: first, holder, .. }) => {
                let wait = Some(tick.0 - first.since.0).filter(|_| !first.may_go_on);
                let first = LockRequest { kind: request.kind, ..first };
                Hold { taken: tick, ..Hold::of(first, holder, true, wait) }
            }
            None => {
                self.end_wait(owner, tick, EndReason::Woken)?;
                let wait = (!request.may_go_on).then_some(0);
                Hold::of(request, None, false, wait)
            }
        };
        let hold = Hold { in_gap, ..hold };
        let (lock, kind) = (hold.request.lock, hold.request.kind);
        if self.holds.len() >= MOST_LOCKS && !self.holds.contains_key(&lock) {
            return Ok(());
        }
        let holds = self.holds.entry(lock).or_default();
        let others = std::mem::take(holds);
        let (ended, going_on): (Vec<Hold>, Vec<Hold>) =
            others.into_iter().partition(|other| excludes(kind) || excludes(other.request.kind));
        *holds = going_on;
        holds.push(hold);
        self.held_by.entry(owner).or_default().push(lock);
        ended.iter().try_for_each(|hold| {
            self.no_longer_held(hold);
            self.write_hold(hold, None, EndReason::Unseen)
        })
    }

    /// An owner is about to release a lock.
    pub(crate) fn releases(
        &mut self,
        owner: Owner,
        lock: Lock,
        kind: WaitKind,
        tick: Ticks,
    ) -> Result<(), Error> {
        // What is released now was taken before recording began; what follows is recorded.
        if self.holds.len() < MOST_LOCKS {
            self.holds.entry(lock).or_default();
        }
        let Some(holds) = self.holds.get_mut(&lock) else { return Ok(()) };
        let of_kind = |hold: &Hold| hold.request.kind == kind;
        let own = holds.iter().rposition(|hold| of_kind(hold) && hold.request.owner == owner);
        if own.is_none() && !excludes(kind) {
            holds.iter_mut().filter(|hold| of_kind(hold)).for_each(|hold| hold.may_be_released = true);
            return Ok(());
        }
        let Some(place) = own.or_else(|| holds.iter().rposition(of_kind)) else { return Ok(()) };
        let hold = holds.remove(place);
        self.no_longer_held(&hold);
        match self.gap_since(&hold).filter(|_| own.is_none()) {
            // It had lost it before, perhaps.
            Some(gap) => self.write_hold(&hold, Some(gap), EndReason::Lost),
            None => self.write_hold(&hold, Some(tick), EndReason::Released),
        }
    }

    fn no_longer_held(&mut self, hold: &Hold) {
        let Some(held) = self.held_by.get_mut(&hold.request.owner) else { return };
        if let Some(place) = held.iter().rposition(|lock| *lock == hold.request.lock) {
            held.swap_remove(place);
        }
        if held.is_empty() {
            self.held_by.remove(&hold.request.owner);
        }
    }

    /// Nothing is known any more about what an owner waits for and holds.
    pub(crate) fn lose(&mut self, owner: Owner, tick: Ticks) -> Result<(), Error> {
        self.end_wait(owner, tick, EndReason::Lost)?;
        let mut lost = Vec::new();
        for lock in self.held_by.remove(&owner).unwrap_or_default() {
            let holds = self.holds.get_mut(&lock);
            lost.extend(
                holds.into_iter().flat_map(|holds| holds.extract_if(.., |hold| hold.request.owner == owner)),
            );
        }
        lost.sort_by_key(|hold| (hold.taken, hold.request.lock));
        lost.iter().try_for_each(|hold| self.write_hold(hold, Some(tick), EndReason::Lost))
    }

    /// An owner has ended. What it holds may be released by another.
    pub(crate) fn ends(&mut self, owner: Owner, tick: Ticks) -> Result<(), Error> {
        if self.waiting.is_empty() { Ok(()) } else { self.end_wait(owner, tick, EndReason::Exit) }
    }

    /// A wait for a futex, which is over.
    pub(crate) fn futex(
        &mut self,
        owner: Owner,
        lwp: Lwp,
        address: i64,
        (since, until): (Ticks, Ticks),
        reason: EndReason,
    ) -> Result<(), Error> {
        self.rows.row(|mut row| {
            let thread = if let Owner::Thread(thread) = owner { Some(thread.0) } else { None };
            row.count(since.0).count(until.0 - since.0).maybe_int(None).maybe_count(thread).int(lwp.0);
            row.int(address).text("futex").maybe_int(None).maybe_int(None).bool(true).maybe_text(None);
            row.text(reason.name());
        })
    }

    fn end_wait(&mut self, owner: Owner, tick: Ticks, reason: EndReason) -> Result<(), Error> {
        self.waiting.remove(&owner).map_or(Ok(()), |waiting| self.write_wait(waiting, tick, reason))
    }

    fn write_wait(&mut self, waiting: Waiting, tick: Ticks, reason: EndReason) -> Result<(), Error> {
        let Waiting { request, holder, woken, is_written } = waiting;
        if is_written {
            return Ok(());
        }
        let (until, reason) = match (woken, reason) {
            // It may have been about to take it.
            (Some(woken), EndReason::Lost | EndReason::TraceEnd) => (woken, reason),
            // One that was woken, and goes on without it, has waited until then.
            (Some(woken), _) => (woken, EndReason::Woken),
            (None, _) => (tick, reason),
        };
        let wait = Some(until.0.saturating_sub(request.since.0));
        let wait = wait.filter(|_| !request.may_go_on || !self.holds.contains_key(&request.lock));
        self.write(&request, holder, wait, None, true, reason)
    }

    fn write_hold(&mut self, hold: &Hold, until: Option<Ticks>, reason: EndReason) -> Result<(), Error> {
        let held = until.map(|until| until.0.saturating_sub(hold.taken.0));
        self.write(&hold.request, hold.holder, hold.wait, held, hold.contended, reason)
    }

    fn write(
        &mut self,
        request: &LockRequest,
        holder: Option<Owner>,
        wait: Option<u64>,
        hold: Option<u64>,
        contended: bool,
        reason: EndReason,
    ) -> Result<(), Error> {
        let (holder, holder_lwp) = match holder {
            Some(Owner::Thread(thread)) => (Some(thread.0), None),
            Some(Owner::Lwp(lwp)) => (None, Some(lwp)),
            None => (None, None),
        };
        self.rows.row(|mut row| {
            row.count(request.since.0).maybe_count(wait).maybe_count(hold);
            match request.owner {
                Owner::Thread(thread) => row.count(thread.0).maybe_int(request.lwp.map(|lwp| lwp.0.into())),
                Owner::Lwp(lwp) => row.maybe_int(None).int(lwp.0),
            };
            row.count(request.lock.1).text(request.kind.name()).maybe_count(holder);
            row.maybe_int(holder_lwp.map(|lwp| lwp.0.into())).bool(contended);
            row.maybe_text(request.call_site.as_deref()).text(reason.name());
        })
    }

    /// The trace ends.
    pub(crate) fn end_trace(&mut self, tick: Ticks) -> Result<(), Error> {
        let mut waiting: Vec<Waiting> = std::mem::take(&mut self.waiting).into_values().collect();
        waiting.sort_by_key(|waiting| (waiting.request.since, waiting.request.lock));
        waiting.into_iter().try_for_each(|waiting| self.write_wait(waiting, tick, EndReason::TraceEnd))?;
        let mut holds: Vec<Hold> = std::mem::take(&mut self.holds).into_values().flatten().collect();
        holds.sort_by_key(|hold| (hold.taken, hold.request.lock));
        holds.iter().try_for_each(|hold| match self.gap_since(hold) {
            _ if hold.may_be_released => self.write_hold(hold, None, EndReason::Unseen),
            Some(gap) => self.write_hold(hold, Some(gap), EndReason::Lost),
            None => self.write_hold(hold, Some(tick), EndReason::TraceEnd),
        })
    }

    pub(super) fn finish(self) -> Result<(), Error> {
        self.rows.finish()
    }
}
