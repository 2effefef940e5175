//! Locks: one row for each request, from the request to the release.
//!
//! 1. A wait begins when a user thread blocks on a lock. If acquisitions of this lock are recorded, it ends when the
//!    thread has acquired the lock, regardless of earlier wakeups without success. Otherwise it ends with the unpark,
//!    and each blocked interval is a row.
//! 2. A request without contention begins when the lock is acquired. It is known only if acquisitions are recorded.
//! 3. An exclusive lock has one holder. If another thread acquires it, the release is missing: the end reason is
//!    `unseen`, and the length of the hold is unknown.
//! 4. A lock is released by its holder. An exclusive lock may also be released by another thread that has not acquired
//!    it, because a guard may move. If another thread releases a read lock, it is unknown which of several holds ends.
//! 5. A futex has only a wait, which is that of a system call that slept. A kernel lock has only waits, too; see
//!    [`kernel_locks`](super::kernel_locks).
//! 6. If the owner may have been waiting before its state was known, it is unknown how long it has waited, or whether
//!    it has.
//! 7. After a gap in the events of its process, a lock may have another holder. So its holder is unknown, and a hold
//!    without its own release is known up to the gap.

use std::collections::HashMap;

use foldhash::fast::RandomState;
use sigmund_model::{Cpu, EndReason, Lwp, Pid, Ticks, WaitKind};

use super::{
    kernel_locks::{KernelLocks, KernelWait, KernelWaiter},
    spans::Owner,
};
use crate::{error::Error, tables::OptionalTable};

/// Maximum number of locks that are tracked. Waits for further locks end with the unpark.
const MOST_LOCKS: usize = 1 << 20;

/// A lock: process and address. Addresses are relative to a process.
type Lock = (Option<Pid>, u64);

/// A request for a lock.
#[derive(Clone, Debug)]
pub(crate) struct LockRequest {
    pub(crate) owner: Owner,
    pub(crate) lwp: Option<Lwp>,
    pub(crate) cpu: Option<Cpu>,
    pub(crate) lock: Lock,
    pub(crate) kind: WaitKind,
    pub(crate) since: Ticks,
    pub(crate) call_site: Option<String>,
    /// Whether its owner may have requested this lock earlier (rule 6).
    pub(crate) may_go_on: bool,
    /// Whether a gap in the events of its process is open (rule 7).
    pub(crate) in_gap: bool,
}

/// A wait for a lock, open or ended.
#[derive(Clone, Debug)]
struct Waiting {
    request: LockRequest,
    holder: Option<Owner>,
    /// When the owner was made ready. It has not acquired the lock since.
    woken: Option<Ticks>,
    /// Whether the row of this wait is already written, because it ended with the unpark.
    is_written: bool,
}

#[derive(Clone, Debug)]
struct Hold {
    request: LockRequest,
    holder: Option<Owner>,
    contended: bool,
    wait: Option<u64>,
    taken: Ticks,
    /// Whether a gap in the events of its process was open at that time.
    in_gap: bool,
    /// Whether a release by another thread may have ended this hold.
    may_be_released: bool,
}

/// The table, waits and holds.
pub(crate) struct Locks {
    rows: OptionalTable,
    waiting: HashMap<Owner, Waiting, RandomState>,
    /// Holds of each lock with a recorded acquisition.
    holds: HashMap<Lock, Vec<Hold>, RandomState>,
    /// The locks that each owner holds.
    held_by: HashMap<Owner, Vec<Lock>, RandomState>,
    /// Begins of gaps in the events of each process, in order.
    gaps: HashMap<Option<Pid>, Vec<Ticks>, RandomState>,
    kernel: KernelLocks,
}

impl Hold {
    /// A request for a lock that is acquired immediately.
    fn of(request: LockRequest, holder: Option<Owner>, contended: bool, wait: Option<u64>) -> Hold {
        let taken = request.since;
        let in_gap = request.in_gap;
        Hold { request, holder, contended, wait, taken, in_gap, may_be_released: false }
    }
}

fn excludes(kind: WaitKind) -> bool {
    kind != WaitKind::RwLockRead
}

/// Whether this kind of wait is for a lock.
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
            kernel: KernelLocks::default(),
        }
    }

    pub(crate) fn is_written(&self) -> bool {
        self.rows.is_written()
    }

    /// A gap in the events of a process begins.
    pub(crate) fn gap_opens(&mut self, pid: Option<Pid>, tick: Ticks) {
        if self.is_written() {
            self.gaps.entry(pid).or_default().push(tick);
        }
    }

    /// The instant from which the acquired lock may have another holder without that being observed.
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
            // The owner was woken without acquiring the lock.
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

    /// An owner blocks on something else, or continues without having blocked.
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

    /// An owner has acquired a lock.
    pub(crate) fn takes(&mut self, request: LockRequest) -> Result<(), Error> {
        let (owner, tick) = (request.owner, request.since);
        let in_gap = request.in_gap;
        let waited = self.waiting.get(&owner).is_some_and(|waiting| waiting.request.lock == request.lock);
        let waiting = if waited { self.waiting.remove(&owner) } else { None };
        let hold = match waiting {
            // When the owner was woken, it was not known yet that acquisitions of this lock are recorded.
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
        // The released hold began before recording; later holds are recorded.
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
            // The owner may have lost the lock before.
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

    /// The waits and holds of an owner are no longer known.
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
        lost.iter().try_for_each(|hold| self.write_unreleased(hold, tick, EndReason::Lost))
    }

    /// An owner has ended. Another thread may release its locks.
    pub(crate) fn ends(&mut self, owner: Owner, tick: Ticks) -> Result<(), Error> {
        if self.waiting.is_empty() { Ok(()) } else { self.end_wait(owner, tick, EndReason::Exit) }
    }

    /// A wait for a futex that has ended.
    pub(crate) fn futex(
        &mut self,
        owner: Owner,
        (lwp, cpu): (Lwp, Option<Cpu>),
        address: i64,
        (since, until): (Ticks, Ticks),
        reason: EndReason,
    ) -> Result<(), Error> {
        self.rows.row(|mut row| {
            let thread = if let Owner::Thread(thread) = owner { Some(thread.0) } else { None };
            row.count(since.0).count(until.0 - since.0).maybe_int(None).maybe_count(thread).int(lwp.0);
            row.maybe_int(cpu.map(|cpu| cpu.0.into()))
                .int(address)
                .text("futex")
                .maybe_int(None)
                .maybe_int(None)
                .bool(true)
                .maybe_text(None);
            row.text(reason.name());
        })
    }

    /// The kernel begins to wait for one of its own locks.
    pub(crate) fn kernel_waits(&mut self, wait: KernelWait) {
        self.kernel.begins(wait);
    }

    /// The kernel no longer waits for this lock.
    pub(crate) fn kernel_wait_ends(
        &mut self,
        waiter: KernelWaiter,
        object: i64,
        tick: Ticks,
    ) -> Result<(), Error> {
        let wait = self.kernel.ends(waiter, object);
        wait.map_or(Ok(()), |wait| self.write_kernel_wait(&wait, Some(tick), EndReason::Woken))
    }

    /// The kernel waits for no lock here any more, or it is unknown whether it does.
    pub(crate) fn kernel_waits_end(
        &mut self,
        waiter: KernelWaiter,
        tick: Ticks,
        reason: EndReason,
    ) -> Result<(), Error> {
        let waits = self.kernel.take(waiter);
        waits.iter().rev().try_for_each(|wait| self.write_kernel_wait(wait, Some(tick), reason))
    }

    /// The ends of these waits were not seen, so their lengths are unknown.
    pub(crate) fn kernel_waits_are_lost(&mut self, waiter: KernelWaiter) -> Result<(), Error> {
        let waits = self.kernel.take(waiter);
        waits.iter().rev().try_for_each(|wait| self.write_kernel_wait(wait, None, EndReason::Unseen))
    }

    fn write_kernel_wait(
        &mut self,
        wait: &KernelWait,
        until: Option<Ticks>,
        reason: EndReason,
    ) -> Result<(), Error> {
        self.rows.row(|mut row| {
            let length = until.map(|until| until.0.saturating_sub(wait.since.0));
            let lwp = if let KernelWaiter::Lwp(lwp) = wait.waiter { Some(lwp.0.into()) } else { None };
            row.count(wait.since.0).maybe_count(length).maybe_int(None);
            row.maybe_count(wait.thread.map(|thread| thread.0)).maybe_int(lwp);
            row.maybe_int(wait.cpu.map(|cpu| cpu.0.into()));
            row.int(wait.object).text(wait.kind).maybe_int(None).maybe_int(None).bool(length.is_some());
            row.maybe_text(wait.call_site.as_deref()).text(reason.name());
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
            // The owner may have been about to acquire the lock.
            (Some(woken), EndReason::Lost | EndReason::TraceEnd) => (woken, reason),
            // The owner was woken and continues without the lock. So it waited until the wakeup.
            (Some(woken), _) => (woken, EndReason::Woken),
            (None, _) => (tick, reason),
        };
        let wait = Some(until.0.saturating_sub(request.since.0));
        let wait = wait.filter(|_| !request.may_go_on || !self.holds.contains_key(&request.lock));
        self.write(&request, holder, wait, None, true, reason)
    }

    /// Writes a hold whose release was not seen. It is known at most up to this tick.
    fn write_unreleased(&mut self, hold: &Hold, tick: Ticks, reason: EndReason) -> Result<(), Error> {
        match self.gap_since(hold).filter(|gap| *gap < tick) {
            _ if hold.may_be_released => self.write_hold(hold, None, EndReason::Unseen),
            Some(gap) => self.write_hold(hold, Some(gap), EndReason::Lost),
            None => self.write_hold(hold, Some(tick), reason),
        }
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
            row.maybe_int(request.cpu.map(|cpu| cpu.0.into()));
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
        let waits = self.kernel.take_all();
        waits.iter().try_for_each(|wait| self.write_kernel_wait(wait, Some(tick), EndReason::TraceEnd))?;
        let mut holds: Vec<Hold> = std::mem::take(&mut self.holds).into_values().flatten().collect();
        holds.sort_by_key(|hold| (hold.taken, hold.request.lock));
        holds.iter().try_for_each(|hold| self.write_unreleased(hold, tick, EndReason::TraceEnd))
    }

    pub(super) fn finish(self) -> Result<(), Error> {
        self.rows.finish()
    }
}
