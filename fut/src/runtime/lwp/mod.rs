//! What an LWP does: take a ready thread, run it until it leaves, take the next.
//!
//! The order of things at a switch, which the merge relies on: the next thread is chosen first, then the switch is
//! recorded, and only then the thread that left is made available to other LWPs. So no LWP can record that it goes
//! on with a thread before the one it left has recorded that.

mod current;
mod staying;
mod take;

use std::{
    cell::Cell,
    sync::atomic::{AtomicBool, AtomicU64, Ordering},
};

use corosensei::CoroutineResult;
use sigmund_model::{LeaveReason, WaitKind};

use super::{
    pool::{Priority, Shared},
    ready::{Home, Woke},
    stack::{Stack, StackCache},
    thread::{
        Birth, Body, Doing, Exit, Ids, Leave, LeaveWord, Parked, ThreadRef, say_ready, slab, slab::BlockCache,
    },
};
use crate::{scheduler, session};
use current::Entered;
pub(super) use staying::{LwpThread, Stays};
pub(super) use take::{Choice, Stealable};

/// What kind of LWP it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// It runs whatever is ready; its number among those that do.
    Worker(usize),
    /// It runs threads while they may block in the kernel.
    Blocking,
    /// It waits for I/O and time, and runs urgent threads that it has readied.
    Reactor,
}

/// An LWP. Touched only by the kernel thread it is.
pub(super) struct Lwp {
    shared: &'static Shared,
    role: Role,
    tid: u32,
    /// As threads know it that keep to it.
    home: &'static Home,
    /// Of a worker.
    choice: Option<Choice>,
    mounted: Cell<Option<ThreadRef>>,
    /// Goes on next, before all in the queues: the mounted thread ends, and this one has waited for that.
    handed_over: Cell<Option<ThreadRef>>,
    /// Threads that began here and have not ended. Means nothing where they may end elsewhere.
    begun: Cell<usize>,
    blocks: BlockCache,
    stacks: StackCache,
    ids: Ids,
}

/// What other threads want to know of a worker, or tell it.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(super) struct Desk {
    /// The mounted thread shall leave at its next safe point.
    pub(super) preempt: AtomicBool,
    /// Dispatches so far: whether the same thread is mounted still.
    pub(super) dispatches: AtomicU64,
    pub(super) tid: AtomicU64,
}

/// The life of a worker.
pub(super) fn work(shared: &'static Shared, choice: Choice) -> Stays {
    let number = choice.number();
    let lwp = Lwp::new(shared, Role::Worker(number), &shared.homes[number], Some(choice));
    let lwp = Entered::new(&lwp);
    shared.desks[number].tid.store(u64::from(lwp.tid), Ordering::Relaxed);
    while let Some(thread) = lwp.wait_for_thread(number) {
        lwp.switch_to(thread, Left::unknown());
        lwp.carry(thread);
    }
    lwp.stays()
}

/// Runs as an LWP of another kind, for as long as `body` does. That is given what carries a thread, and says then whether
/// all have ended that began here.
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
        // SAFETY: takes no argument and cannot fail.
        let tid = unsafe { libc::syscall(libc::SYS_gettid) } as u32;
        Lwp {
            shared,
            role,
            tid,
            home,
            choice,
            mounted: Cell::new(None),
            handed_over: Cell::new(None),
            begun: Cell::new(0),
            blocks: BlockCache::default(),
            stacks: StackCache::new(&shared.stacks),
            ids: Ids::default(),
        }
    }

    fn stays(&self) -> Stays {
        if self.shared.is_pinned && self.begun.get() > 0 { Stays::Yes } else { Stays::No }
    }

    /// The next thread for this worker; it sleeps until there is one. `None` when the runtime is shut down.
    fn wait_for_thread(&self, number: usize) -> Option<ThreadRef> {
        let idle = &self.shared.idle;
        let choice = self.choice.as_ref()?;
        idle.begin_search();
        loop {
            for _ in 0..self.shared.spins {
                if self.shared.is_shut_down() {
                    return None;
                }
                if let Some(thread) = self.take_any(choice) {
                    match thread.home() {
                        Some(_) => idle.found_own(|| self.sees_work_for_all()),
                        None => idle.found(),
                    }
                    return Some(thread);
                }
                std::hint::spin_loop();
            }
            let is_work = || self.shared.is_shut_down() || self.sees_work();
            match idle.sleep(number, is_work, self.shared.patience()) {
                Woke::Search => {}
                Woke::Own => {
                    if self.shared.is_shut_down() {
                        return None;
                    }
                    if let Some(thread) = self.take_any(choice) {
                        return Some(thread);
                    }
                    idle.begin_search();
                }
                Woke::AllAsleep => self.shared.all_asleep(),
            }
        }
    }

    /// Runs `thread`, and one after the other without a pause, until none is ready.
    fn carry(&self, mut thread: ThreadRef) {
        loop {
            // SAFETY: it was taken out of a ready queue, here or by the caller.
            let body = unsafe { thread.body(|| self.begin(thread)) };
            // SAFETY: at the top of a stack that this LWP has, as long as it has the thread.
            let left = self.resume(thread, unsafe { &mut *body });
            let next = match left {
                CoroutineResult::Return(exit) => {
                    // Not through the thread: its block may be that of another by now.
                    // SAFETY: the stack is this LWP's until it gives it back, and so is the body on it.
                    let stack = unsafe { (*body).stack };
                    self.stacks.give_back(stack);
                    self.begun.set(self.begun.get().wrapping_sub(1));
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
                    let next = if yields { self.take_for_yield(thread) } else { self.take_next() };
                    if yields && next.is_none() && self.role != Role::Reactor && !self.shared.is_shut_down() {
                        // Nobody else wants the LWP: the thread continues, which is no switch.
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

    /// The first dispatch of a thread: it gets a stack, and a home if it is to keep to this LWP.
    #[inline]
    fn begin(&self, thread: ThreadRef) -> Stack {
        self.begun.set(self.begun.get().wrapping_add(1));
        if self.shared.is_pinned || self.role == Role::Blocking {
            thread.set_home(Some(self.home));
        }
        self.stacks.take()
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
            let desk = &self.shared.desks[number];
            desk.dispatches.store(desk.dispatches.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
            desk.preempt.store(false, Ordering::Relaxed);
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

    /// Of a migrating runtime: the standard library counts panics for each kernel thread, from their beginning to their
    /// end. So a thread that leaves between comes back here. It cannot be told from others that leave meanwhile; they
    /// come back, too, which does no harm.
    #[inline]
    fn keep_while_unwinding(&self, thread: ThreadRef) {
        let unwinds = std::thread::panicking();
        if unwinds || thread.home().is_some() {
            thread.set_home(unwinds.then_some(self.home));
        }
    }

    fn make_ready(&self, thread: ThreadRef) {
        say_ready(thread);
        self.queue(thread);
    }

    fn is_worker(&self) -> bool {
        self.choice.is_some()
    }
}

/// How the thread before has left, as the switch event says it.
#[derive(Clone, Copy)]
struct Left {
    reason: LeaveReason,
    /// What it waits for.
    on: usize,
    blocked_for: Option<WaitKind>,
}

impl Left {
    fn because(reason: LeaveReason) -> Left {
        Left { reason, on: 0, blocked_for: None }
    }

    /// There was none.
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

/// The user thread that calls this, if it is one.
#[inline]
pub(super) fn mounted() -> Option<ThreadRef> {
    current::with(|lwp| lwp.mounted.get()).flatten()
}

/// Whether the mounted thread shall leave: its quantum is over.
#[inline]
pub(super) fn is_preempted() -> bool {
    current::with(|lwp| match lwp.role {
        Role::Worker(number) => lwp.shared.desks[number].preempt.load(Ordering::Relaxed),
        Role::Reactor => lwp.shared.reactor.is_slice_over(),
        Role::Blocking => false,
    })
    .unwrap_or(false)
}

/// Whether the caller is on an LWP that is there to block.
pub(super) fn may_block() -> bool {
    current::with(|lwp| lwp.role == Role::Blocking).unwrap_or(false)
}

/// Makes a thread ready that was blocked.
pub(super) fn make_ready(thread: ThreadRef) {
    say_ready(thread);
    let shared = thread.shared();
    // Once it is in a queue, it may be no more.
    let wants_reactor = thread.priority() == Priority::Urgent && thread.home().is_none();
    let queued = current::with(|lwp| {
        let ours = std::ptr::eq(lwp.shared, shared);
        if ours {
            lwp.queue(thread);
        }
        ours.then_some(lwp.role)
    });
    let queued = queued.flatten();
    if queued.is_none() {
        shared.queue(thread);
    }
    if wants_reactor && queued != Some(Role::Reactor) {
        shared.reactor.notice_urgent();
    }
}

/// Makes a thread ready that has waited for the end of the caller, which ends now: it continues next.
pub(super) fn hand_over(waiter: ThreadRef) {
    let handed_over = current::with(|lwp| {
        let may_come = waiter.home().is_none_or(|home| std::ptr::eq(home, lwp.home));
        let takes_it = lwp.is_worker() && waiter.priority() == Priority::Normal && may_come;
        let ours = std::ptr::eq(lwp.shared, waiter.shared()) && takes_it;
        if ours {
            say_ready(waiter);
            lwp.handed_over.set(Some(waiter));
        }
        ours
    });
    if handed_over != Some(true) {
        make_ready(waiter);
    }
}

/// A new thread of the caller's runtime, or of `shared` if the caller is not of it, in no queue yet.
pub(super) fn begin<T: Send, F: FnOnce() -> T + Send>(
    shared: &'static Shared,
    birth: impl FnOnce(sigmund_model::Thread) -> Birth,
    body: F,
) -> ThreadRef {
    let (block, id) = current::with(|lwp| (lwp.blocks.take(), lwp.ids.next()))
        .unwrap_or_else(|| (slab::take(), Ids::next_outside()));
    let birth = birth(id);
    debug_assert!(std::ptr::eq(birth.shared, shared));
    scheduler::thread_new(id, birth.name.as_deref().unwrap_or(""));
    // SAFETY: the block was taken just now.
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

/// Gives back the block of a thread that is no more.
pub(super) fn give_back_block(thread: ThreadRef) {
    if current::with(|lwp| lwp.blocks.give_back(thread)).is_none() {
        slab::give_back(thread);
    }
}
