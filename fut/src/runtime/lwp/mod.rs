//! The main loop of an LWP: take a ready thread, run it until it leaves, take the next.
//!
//! The merge relies on the order of the steps at a switch. First the next thread is chosen, then the switch is
//! recorded, and only then the thread that left is made available to other LWPs. So no LWP can record a switch to a
//! thread before the LWP that the thread left has recorded its own switch.

mod current;
mod polling;
mod staying;
mod take;
mod watch;

use std::{
    cell::Cell,
    sync::atomic::{AtomicBool, AtomicU64, Ordering},
};

use corosensei::CoroutineResult;
use sigmund_model::{LeaveReason, WaitKind};

use super::{
    pool::{Priority, Shared},
    ready::{Home, Look, Woke},
    stack::{Stack, StackCache},
    thread::{
        Birth, Body, Doing, Exit, Ids, Leave, LeaveWord, Parked, ThreadRef, record_ready, slab,
        slab::BlockCache,
    },
    thread_counts::CountsOfLwp,
};
use crate::{scheduler, session};
use current::Entered;
use polling::Polling;
pub(super) use staying::{Joined, LwpThread, Stays};
pub(super) use take::{Choice, Stealable};

/// The kind of an LWP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// It runs any ready thread. The number is its number among the workers.
    Worker(usize),
    /// It runs threads of blocking calls, which may block in the kernel.
    Blocking,
    /// It waits for I/O and timers, and runs urgent threads that it has made ready.
    Reactor,
}

/// The state of an LWP. Only its kernel thread accesses it.
pub(super) struct Lwp {
    shared: &'static Shared,
    role: Role,
    tid: u32,
    /// Where other LWPs queue threads that are pinned to this one.
    home: &'static Home,
    /// The ready queues of a worker.
    choice: Option<Choice>,
    /// The descriptors and timers that a worker serves.
    polling: Option<Polling>,
    mounted: Cell<Option<ThreadRef>>,
    /// Runs next, before all threads in the queues: it has waited for the end of the mounted thread, which is ending.
    handed_over: Cell<Option<ThreadRef>>,
    /// Number of threads that began here and have not ended. Meaningful only if threads cannot end on another LWP.
    begun: Cell<usize>,
    counts: CountsOfLwp,
    blocks: BlockCache,
    stacks: StackCache,
    ids: Ids,
}

/// State of a worker that the reactor and its quanta read and set.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(super) struct WorkerStatus {
    /// A request: the mounted thread shall leave at its next safe point.
    pub(super) preempt: AtomicBool,
    /// Number of dispatches. It does not change while the same thread is mounted.
    pub(super) dispatches: AtomicU64,
    pub(super) tid: AtomicU64,
    /// It sleeps, or is about to (rule 5 of `reactor/mod.rs`).
    rests: AtomicBool,
}

impl WorkerStatus {
    pub(super) fn is_resting(&self) -> bool {
        self.rests.load(Ordering::Relaxed)
    }
}

/// Runs the calling thread as a worker until the runtime is shut down.
pub(super) fn work(shared: &'static Shared, choice: Choice) -> Stays {
    let number = choice.number();
    let lwp = Lwp::new(shared, Role::Worker(number), &shared.homes[number], Some(choice));
    let lwp = Entered::new(&lwp);
    shared.worker_status[number].tid.store(u64::from(lwp.tid), Ordering::Relaxed);
    while let Some(thread) = lwp.wait_for_thread(number) {
        lwp.switch_to(thread, Left::unknown());
        lwp.carry(thread);
    }
    lwp.stays()
}

/// Runs the calling thread as an LWP of another kind until `body` returns. The function that `body` gets carries a
/// thread until the thread leaves, and returns whether all threads that began on this LWP have ended.
pub(super) fn serve(
    shared: &'static Shared,
    role: Role,
    home: &'static Home,
    body: impl FnOnce(&dyn Fn(ThreadRef) -> bool),
) -> Stays {
    let lwp = Lwp::new(shared, role, home, None);
    let lwp = Entered::new(&lwp);
    body(&|thread| {
        lwp.switch_to(thread, Left::unknown());
        lwp.carry(thread);
        lwp.begun.get() == 0
    });
    lwp.stays()
}

impl Lwp {
    fn new(shared: &'static Shared, role: Role, home: &'static Home, choice: Option<Choice>) -> Lwp {
        session::attach_now();
        // SAFETY: the call takes no arguments and cannot fail.
        let tid = unsafe { libc::syscall(libc::SYS_gettid) } as u32;
        let worker = choice.as_ref().map(Choice::number);
        let polling = choice.as_ref().map(|choice| {
            let reactor = &shared.reactor;
            Polling::new(reactor.set(reactor.worker_set(choice.number())))
        });
        Lwp {
            shared,
            role,
            tid,
            home,
            choice,
            polling,
            mounted: Cell::new(None),
            handed_over: Cell::new(None),
            begun: Cell::new(0),
            counts: shared.counts_of(worker),
            blocks: BlockCache::default(),
            stacks: StackCache::new(&shared.stacks),
            ids: Ids::default(),
        }
    }

    fn stays(&self) -> Stays {
        if self.shared.is_pinned && self.begun.get() > 0 { Stays::Yes } else { Stays::No }
    }

    /// The next thread for this worker, which sleeps until there is one. `None` when the runtime is shut down.
    fn wait_for_thread(&self, number: usize) -> Option<ThreadRef> {
        let idle = &self.shared.idle;
        let choice = self.choice.as_ref()?;
        if self.poll_before_search()
            && let Some(thread) = self.take_next()
        {
            // This LWP does not count as searching, so no waker relies on it.
            return Some(thread);
        }
        idle.begin_search();
        loop {
            self.note_next(choice);
            for _ in 0..self.shared.spins {
                if self.shared.is_shut_down() {
                    return None;
                }
                if let Some(thread) = self.take_any(choice) {
                    self.found(thread);
                    return Some(thread);
                }
                std::hint::spin_loop();
            }
            if let Some(thread) = self.steal_next(choice) {
                self.found(thread);
                return Some(thread);
            }
            let look =
                || Look { work: self.shared.is_shut_down() || self.sees_work(), next: self.sees_next() };
            let watch = self.plan_watch(choice);
            let rests = &self.shared.worker_status[number].rests;
            rests.store(true, Ordering::Relaxed);
            let woke = idle.sleep(number, watch, look, self.shared.patience(), self);
            // This must come before anything else (rule 5 of `reactor/mod.rs`).
            rests.store(false, Ordering::Relaxed);
            self.shared.reactor.stopped_resting();
            match woke {
                Woke::Search => {}
                Woke::Own | Woke::Polled => {
                    if self.shared.is_shut_down() {
                        return None;
                    }
                    if let Some(thread) = self.take_any(choice) {
                        return Some(thread);
                    }
                    idle.begin_search();
                }
                Woke::AllAsleep => {
                    // The handler of a deadlock may take long. No other LWP may rely on this one meanwhile (rule 3 of `idle`).
                    idle.found_own(|| self.sees_work_for_all() || self.sees_next());
                    self.shared.all_asleep();
                    idle.begin_search();
                }
            }
        }
    }

    /// Called when the search has found this thread.
    fn found(&self, thread: ThreadRef) {
        let idle = &self.shared.idle;
        match thread.home() {
            Some(_) => idle.found_own(|| self.sees_work_for_all() || self.sees_next()),
            None => idle.found(),
        }
    }

    /// Runs `thread`, and then ready threads one after the other, until none is ready.
    fn carry(&self, mut thread: ThreadRef) {
        loop {
            // SAFETY: the thread was taken out of a ready queue, here or by the caller.
            let body = unsafe { thread.body(|stack| self.begin(thread, stack)) };
            // SAFETY: the body is at the top of the thread's stack, which this LWP owns as long as it runs the thread.
            let left = self.resume(thread, unsafe { &mut *body });
            let next = match left {
                CoroutineResult::Return(exit) => {
                    // The stack is not read from the thread's block, which may belong to another thread by now. SAFETY:
                    // this LWP owns the stack, with the body on it, until it gives the stack back.
                    let stack = unsafe { (*body).stack };
                    self.stacks.give_back(stack);
                    self.begun.set(self.begun.get().wrapping_sub(1));
                    self.counts.ended();
                    let next = self.handed_over.take().or_else(|| self.take_next());
                    self.switch(next, Left::because(LeaveReason::Exit));
                    if matches!(exit, Exit::Detached) {
                        thread.give_back();
                    }
                    next
                }
                CoroutineResult::Yield(leave) => {
                    let leave = Leave::from(leave);
                    let yields = matches!(leave, Leave::Yield | Leave::Quantum);
                    if matches!(leave, Leave::Quantum) {
                        self.poll_at_quantum();
                    }
                    let next = if yields { self.take_for_yield(thread) } else { self.take_next() };
                    if yields && next.is_none() && self.role != Role::Reactor && !self.shared.is_shut_down() {
                        // No other thread is ready: the thread continues, which is not a switch.
                        continue;
                    }
                    self.switch(next, Left::of(thread, leave));
                    self.let_go(thread, leave);
                    next
                }
            };
            match next {
                Some(next) => thread = next,
                None => return,
            }
        }
    }

    /// The first dispatch of a thread. The thread gets a stack, and a home if it is pinned to this LWP.
    #[inline]
    fn begin(&self, thread: ThreadRef, reserved: Option<Stack>) -> Stack {
        self.begun.set(self.begun.get().wrapping_add(1));
        if self.shared.is_pinned || self.role == Role::Blocking {
            thread.set_home(Some(self.home));
        }
        reserved.unwrap_or_else(|| self.stacks.take())
    }

    #[inline]
    fn resume(&self, thread: ThreadRef, body: &mut Body) -> CoroutineResult<LeaveWord, Exit> {
        self.mounted.set(Some(thread));
        thread.set_doing(Doing::Mounted);
        let left = body.coroutine.resume(());
        self.mounted.set(None);
        left
    }

    /// Records the switch from the thread that leaves to `next`.
    #[inline]
    fn switch(&self, next: Option<ThreadRef>, left: Left) {
        match next {
            Some(next) => self.switch_to(next, left),
            None => scheduler::switch(None, left.reason, left.on, left.blocked_for),
        }
    }

    #[inline]
    fn switch_to(&self, next: ThreadRef, left: Left) {
        if let Some(from) = next.carried_by(self.tid) {
            scheduler::thread_migrate(next.id(), from);
        }
        if let Role::Worker(number) = self.role
            && self.shared.has_quanta
        {
            let status = &self.shared.worker_status[number];
            status.dispatches.store(status.dispatches.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
            status.preempt.store(false, Ordering::Relaxed);
        }
        scheduler::switch(Some(next.id()), left.reason, left.on, left.blocked_for);
    }

    /// Makes a thread that has left available to others.
    fn let_go(&self, thread: ThreadRef, leave: Leave) {
        if !self.shared.is_pinned && self.role != Role::Blocking {
            self.keep_while_unwinding(thread);
        }
        match leave {
            Leave::Yield | Leave::Quantum => {
                thread.set_doing(Doing::Ready);
                self.queue_last(thread);
            }
            Leave::Park => {
                thread.set_doing(Doing::Blocked);
                match thread.park() {
                    Parked::Waiting => {}
                    Parked::TokenTaken => self.make_ready(thread),
                }
            }
            Leave::Join(other) => {
                thread.set_doing(Doing::Blocked);
                if !thread.wait_for_end_of(other) {
                    self.make_ready(thread);
                }
            }
        }
    }

    /// Called in a migrating runtime. The standard library counts panics for each kernel thread, from the start of
    /// unwinding to its end. So a thread that leaves in between has to come back here. Other threads that leave in that
    /// time cannot be distinguished from it; they come back, too, which is harmless.
    #[inline]
    fn keep_while_unwinding(&self, thread: ThreadRef) {
        let unwinds = std::thread::panicking();
        if unwinds || thread.home().is_some() {
            thread.set_home(unwinds.then_some(self.home));
        }
    }

    fn make_ready(&self, thread: ThreadRef) {
        record_ready(thread);
        self.queue(thread);
    }

    fn is_worker(&self) -> bool {
        self.choice.is_some()
    }
}

/// How the previous thread left, for the switch event.
#[derive(Clone, Copy)]
struct Left {
    reason: LeaveReason,
    /// Address of the object that it waits for.
    on: usize,
    blocked_for: Option<WaitKind>,
}

impl Left {
    fn because(reason: LeaveReason) -> Left {
        Left { reason, on: 0, blocked_for: None }
    }

    /// For a switch at which no user thread was mounted before.
    fn unknown() -> Left {
        Left::because(LeaveReason::Unknown)
    }

    fn of(thread: ThreadRef, leave: Leave) -> Left {
        match leave {
            Leave::Yield => Left::because(LeaveReason::Yield),
            Leave::Quantum => Left::because(LeaveReason::Quantum),
            Leave::Park | Leave::Join(_) => {
                let waits = thread.waits();
                Left { reason: LeaveReason::Block, on: waits.address(), blocked_for: waits.kind() }
            }
        }
    }
}

/// The calling user thread; `None` outside a user thread.
#[inline]
pub(super) fn mounted() -> Option<ThreadRef> {
    current::with(|lwp| lwp.mounted.get()).flatten()
}

/// Number of the set of `shared` that serves what the calling user thread waits for.
#[inline]
pub(super) fn poll_set(shared: &Shared) -> usize {
    mounted().map_or_else(|| shared.reactor.own_set(), |thread| poll_set_of(shared, thread))
}

pub(super) use polling::set_of_caller as poll_set_of;

/// Whether the mounted thread shall leave because its quantum is over.
#[inline]
pub(super) fn is_preempted() -> bool {
    current::with(|lwp| match lwp.role {
        Role::Worker(number) => lwp.shared.worker_status[number].preempt.load(Ordering::Relaxed),
        Role::Reactor => lwp.shared.reactor.is_slice_over(),
        Role::Blocking => false,
    })
    .unwrap_or(false)
}

/// Whether the caller is on an LWP for blocking calls.
pub(super) fn may_block() -> bool {
    current::with(|lwp| lwp.role == Role::Blocking).unwrap_or(false)
}

/// Makes a blocked thread ready.
pub(super) fn make_ready(thread: ThreadRef) {
    record_ready(thread);
    let shared = thread.shared();
    // Read this first: once the thread is in a queue, it may run and end.
    let wants_reactor = thread.priority() == Priority::Urgent && thread.home().is_none();
    let queued = current::with(|lwp| {
        let ours = std::ptr::eq(lwp.shared, shared);
        if ours {
            lwp.queue_woken(thread);
        }
        ours.then_some(lwp.role)
    });
    let queued = queued.flatten();
    if queued.is_none() {
        thread.waits().was_fed();
        shared.queue(thread);
    }
    if wants_reactor && queued != Some(Role::Reactor) {
        shared.reactor.notice_urgent();
    }
}

/// Makes a thread ready that has waited for the end of the caller, which is ending. If possible, the thread runs next.
pub(super) fn hand_over(waiter: ThreadRef) {
    let handed_over = current::with(|lwp| {
        let may_come = waiter.home().is_none_or(|home| std::ptr::eq(home, lwp.home));
        let takes_it = lwp.is_worker() && waiter.priority() == Priority::Normal && may_come;
        let ours = std::ptr::eq(lwp.shared, waiter.shared()) && takes_it;
        if ours {
            record_ready(waiter);
            lwp.handed_over.set(Some(waiter));
        }
        ours
    });
    if handed_over != Some(true) {
        make_ready(waiter);
    }
}

/// Creates a thread of the runtime `shared`, without queueing it. On an LWP of that runtime, it uses the LWP's own
/// counts.
pub(super) fn begin<T: Send, F: FnOnce() -> T + Send>(
    shared: &'static Shared,
    birth: impl FnOnce(sigmund_model::Thread) -> Birth,
    body: F,
) -> ThreadRef {
    let counts = current::with(|lwp| std::ptr::eq(lwp.shared, shared).then_some(lwp.counts)).flatten();
    counts.unwrap_or_else(|| shared.counts_of(None)).created();
    let (block, id) = current::with(|lwp| (lwp.blocks.take(), lwp.ids.next()))
        .unwrap_or_else(|| (slab::take(), Ids::next_outside()));
    let birth = birth(id);
    debug_assert!(std::ptr::eq(birth.shared, shared));
    scheduler::thread_new(id, birth.name.as_deref().unwrap_or(""));
    // SAFETY: the block was just taken from the free ones.
    unsafe { block.begin(birth, body) };
    block
}

/// Puts a new thread into a ready queue.
pub(super) fn queue_new(shared: &'static Shared, thread: ThreadRef) {
    let queued = current::with(|lwp| {
        let ours = std::ptr::eq(lwp.shared, shared) && lwp.is_worker();
        if ours {
            lwp.queue(thread);
        }
        ours
    });
    if queued != Some(true) {
        shared.queue(thread);
    }
}

/// Frees the block of a thread that has ended, for reuse.
pub(super) fn give_back_block(thread: ThreadRef) {
    if current::with(|lwp| lwp.blocks.give_back(thread)).is_none() {
        slab::give_back(thread);
    }
}
