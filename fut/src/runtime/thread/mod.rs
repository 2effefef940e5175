//! One user thread: a block of memory with its words, its name, what it runs, and its stack once it has run.
//!
//! Blocks are made in slabs, used again, and never freed: a reference to one is good for ever, and nobody counts
//! references. Someone who unparks a thread that has ended meanwhile wakes nobody, or another thread for nothing,
//! and whoever blocks checks its condition again anyway. The slabs also make all threads findable, without a list
//! that each birth would have to write to; see [`slab`].

mod ids;
mod join_word;
mod park_word;
mod payload;
pub(super) mod slab;
mod tag;

use std::{
    borrow::Cow,
    cell::{Cell, UnsafeCell},
    hash::{Hash, Hasher},
    mem::ManuallyDrop,
    panic::{AssertUnwindSafe, catch_unwind},
    ptr,
    sync::atomic::{AtomicPtr, AtomicU8, AtomicU32, AtomicU64, Ordering, fence},
    thread,
};

use corosensei::{Coroutine, Yielder};
use sigmund_model::Thread;

pub(super) use ids::Ids;
pub(super) use join_word::Awaited;
pub(super) use park_word::Parked;

use super::{
    discard::discard,
    local::Locals,
    lwp,
    pool::{Priority, Shared},
    ready::Home,
    stack::{BODY_LEN, Stack},
    waits::WaitSlot,
};
use crate::scheduler;
use join_word::{Ended, JoinWord};
use park_word::{ParkWord, Unparked};
use payload::Payload;
use tag::NameTag;

/// What a user thread tells the LWP that it leaves.
#[derive(Clone, Copy)]
pub(super) enum Leave {
    /// Others first.
    Yield,
    /// The same, because its quantum is over.
    Quantum,
    /// It blocks until it is unparked; what it waits for stands in its wait slot.
    Park,
    /// It blocks until this thread has ended.
    Join(ThreadRef),
}

/// A [`Leave`] in one word, so that it passes the switch in a register.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(super) struct LeaveWord(usize);

impl From<Leave> for LeaveWord {
    #[inline(always)]
    fn from(leave: Leave) -> LeaveWord {
        LeaveWord(match leave {
            Leave::Yield => 0,
            Leave::Quantum => 1,
            Leave::Park => 2,
            Leave::Join(other) => ptr::from_ref(other.0).expose_provenance(),
        })
    }
}

impl From<LeaveWord> for Leave {
    #[inline(always)]
    fn from(word: LeaveWord) -> Leave {
        match word.0 {
            0 => Leave::Yield,
            1 => Leave::Quantum,
            2 => Leave::Park,
            // SAFETY: no block is at such a low address, so this is the one that was made a word of; blocks live for
            // ever.
            other => Leave::Join(ThreadRef(unsafe { &*ptr::with_exposed_provenance(other) })),
        }
    }
}

/// What is left to do for a thread that has ended.
#[derive(Clone, Copy, Debug)]
pub(super) enum Exit {
    /// Nothing: its block belongs to who joins it.
    Joinable,
    /// Nobody will: the LWP gives the block back.
    Detached,
}

/// The life of a thread whose payload is of a certain type: [`run`].
type Run = unsafe fn(ThreadRef) -> Exit;

/// What stands above the beginning of a stack that is in use.
pub(super) struct Body {
    /// Where the thread stands. It owns nothing but the stack, so it need not be dropped.
    pub(super) coroutine: ManuallyDrop<Coroutine<(), LeaveWord, Exit, Stack>>,
    /// The stack once more: the coroutine would have to be moved to get at its own.
    pub(super) stack: Stack,
}

const _: () = assert!(size_of::<Body>() <= BODY_LEN && align_of::<Body>() <= 16);

/// What a thread is doing, as those see it who look from outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Doing {
    /// Its block is free.
    Nothing = 0,
    New = 1,
    Ready = 2,
    Mounted = 3,
    Blocked = 4,
}

/// The block of a user thread.
#[repr(C, align(64))]
pub(super) struct UserThread {
    park: ParkWord,
    doing: AtomicU8,
    priority: Cell<Priority>,
    /// Tid of the LWP that carried it last; 0 before the first dispatch.
    last_lwp: AtomicU32,
    /// The LWP it keeps to, if it does.
    home: Cell<Option<&'static Home>>,
    id: AtomicU64,
    join: JoinWord,
    /// Its stack and where it stands on it, at the top of that stack; null before the first dispatch.
    body: AtomicPtr<Body>,
    // Second cache line.
    /// The way back to the LWP. Read only by the thread itself.
    yielder: Cell<*const Yielder<(), LeaveWord>>,
    /// Null before its first birth.
    shared: AtomicPtr<Shared>,
    run: Cell<Option<Run>>,
    /// Lowest address of its stack; 0 before the first dispatch.
    stack_limit: Cell<usize>,
    pub(super) waits: WaitSlot,
    locals: UnsafeCell<Option<Box<Locals>>>,
    name: UnsafeCell<Option<Cow<'static, str>>>,
    tag: NameTag,
    payload: Payload,
}

// SAFETY: the cells are touched only by whoever has the thread: the one who makes it, then the LWP that has taken it
// out of a ready queue and the thread itself on it. Queues and words hand it from one to the next with Release and
// Acquire. What its closure owns is `Send` (`spawn` asks for it); what it keeps on its stack stays on its LWP, unless the
// program has promised that it may move (`RuntimeBuilder::migrating`). All else is atomic.
unsafe impl Sync for UserThread {}

/// A user thread, as those know it who may unpark it.
#[derive(Clone, Copy)]
pub(crate) struct ThreadRef(&'static UserThread);

// SAFETY: a reference to what is `Sync`.
unsafe impl Send for ThreadRef {}

impl PartialEq for ThreadRef {
    fn eq(&self, other: &ThreadRef) -> bool {
        ptr::eq(self.0, other.0)
    }
}

impl Eq for ThreadRef {}

impl Hash for ThreadRef {
    fn hash<H: Hasher>(&self, state: &mut H) {
        ptr::hash(self.0, state);
    }
}

impl std::fmt::Debug for ThreadRef {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "ThreadRef({})", self.id())
    }
}

/// What a new thread is made of, beside what it runs.
pub(super) struct Birth {
    pub(super) id: Thread,
    pub(super) name: Option<Cow<'static, str>>,
    pub(super) priority: Priority,
    pub(super) home: Option<&'static Home>,
    pub(super) shared: &'static Shared,
}

impl UserThread {
    fn unused() -> UserThread {
        UserThread {
            park: ParkWord::new(),
            doing: AtomicU8::new(Doing::Nothing as u8),
            priority: Cell::new(Priority::Normal),
            home: Cell::new(None),
            last_lwp: AtomicU32::new(0),
            id: AtomicU64::new(0),
            join: JoinWord::new(),
            body: AtomicPtr::new(ptr::null_mut()),
            yielder: Cell::new(ptr::null()),
            shared: AtomicPtr::new(ptr::null_mut()),
            run: Cell::new(None),
            stack_limit: Cell::new(0),
            waits: WaitSlot::new(),
            locals: UnsafeCell::new(None),
            name: UnsafeCell::new(None),
            tag: NameTag::default(),
            payload: Payload::new(),
        }
    }
}

/// What whoever has the thread does.
impl ThreadRef {
    /// Makes a thread out of an unused block. It is in no queue yet.
    ///
    /// # Safety
    /// The block was taken out of the slab by the caller just now.
    pub(super) unsafe fn begin<T: Send, F: FnOnce() -> T + Send>(self, birth: Birth, body: F) {
        let UserThread { park, join, last_lwp, id, name, payload, .. } = self.0;
        park.reset();
        join.reset();
        last_lwp.store(0, Ordering::Relaxed);
        id.store(birth.id.0, Ordering::Relaxed);
        // Release: pairs with the Acquire fence of those who look. Who sees anything of what follows, sees the number.
        fence(Ordering::Release);
        self.0.priority.set(birth.priority);
        self.0.home.set(birth.home);
        self.0.shared.store(ptr::from_ref(birth.shared).cast_mut(), Ordering::Relaxed);
        self.0.run.set(Some(run::<T, F>));
        self.0.body.store(ptr::null_mut(), Ordering::Relaxed);
        self.0.tag.set(birth.name.as_deref().unwrap_or(""));
        if birth.name.is_some() {
            // SAFETY: the caller has the block, and it is no thread yet.
            unsafe { *name.get() = birth.name };
        }
        // SAFETY: as above.
        unsafe { payload.put(body) };
        self.set_doing(Doing::New);
    }

    /// Where its stack is, and where it stands on it; a new thread gets `stack`.
    ///
    /// # Safety
    /// The caller took the thread out of a ready queue, so nothing else has it.
    #[inline]
    pub(super) unsafe fn body(self, stack: impl FnOnce() -> Stack) -> *mut Body {
        let body = self.0.body.load(Ordering::Relaxed);
        if !body.is_null() {
            return body;
        }
        let stack = stack();
        let place = stack.place_of_body().cast::<Body>();
        self.0.stack_limit.set(stack.limit_address());
        self.0.body.store(place, Ordering::Relaxed);
        let coroutine = Coroutine::with_stack(stack, move |yielder: &Yielder<(), LeaveWord>, ()| {
            self.0.yielder.set(yielder);
            match self.0.run.get() {
                // SAFETY: `begin` set it together with the payload it is for, and it is called once.
                Some(run) => unsafe { run(self) },
                None => Exit::Detached,
            }
        });
        // SAFETY: the place is above where the stack begins, aligned, and belongs to whoever has the stack.
        unsafe { place.write(Body { coroutine: ManuallyDrop::new(coroutine), stack }) };
        place
    }

    /// After the switch, or after it was held: it waits, unless it was unparked meanwhile.
    pub(super) fn park(self) -> Parked {
        self.0.park.park()
    }

    /// After the switch: it waits for the end of `other`; `false` if that has ended.
    pub(super) fn wait_for_end_of(self, other: ThreadRef) -> bool {
        other.0.join.wait(self)
    }

    /// Notes that LWP `tid` carries it now, and gives the one before, if it was another.
    #[inline]
    pub(super) fn carried_by(self, tid: u32) -> Option<u32> {
        let before = self.0.last_lwp.load(Ordering::Relaxed);
        if before == tid {
            return None;
        }
        self.0.last_lwp.store(tid, Ordering::Relaxed);
        (before != 0).then_some(before)
    }

    /// Its block, as queues hold it.
    #[inline]
    pub(super) fn block(self) -> &'static UserThread {
        self.0
    }

    /// The thread whose block came out of a queue.
    #[inline]
    pub(super) fn of_block(block: &'static UserThread) -> ThreadRef {
        ThreadRef(block)
    }

    pub(super) fn priority(self) -> Priority {
        self.0.priority.get()
    }

    /// The LWP it keeps to, if it does.
    #[inline]
    pub(super) fn home(self) -> Option<&'static Home> {
        self.0.home.get()
    }

    #[inline]
    pub(super) fn set_home(self, home: Option<&'static Home>) {
        self.0.home.set(home);
    }

    #[inline]
    pub(super) fn set_doing(self, doing: Doing) {
        // Release: pairs with the Acquire in `doing`; what the thread was born with is seen.
        self.0.doing.store(doing as u8, Ordering::Release);
    }
}

/// Has the CPU fetch what a thread that waits in a queue will need: first its block, and a turn later its stack.
#[inline]
pub(super) fn prefetch(block_soon: *const UserThread, stack_next: *const UserThread) {
    prefetch_line(block_soon.cast());
    // SAFETY: null, or a block, which lives for ever. Whose it is by now does not matter.
    if let Some(next) = unsafe { stack_next.as_ref() } {
        let body = next.body.load(Ordering::Relaxed).cast::<u8>();
        // The body, and the frames that leaving has left below it.
        for line in 0..5 {
            prefetch_line(body.wrapping_sub(64 * line));
        }
    }
}

#[inline(always)]
fn prefetch_line(address: *const u8) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch accesses nothing and never faults.
    unsafe {
        std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T0 }>(address.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = address;
}

/// What the thread itself does.
impl ThreadRef {
    /// Leaves the LWP, and returns when the thread is dispatched again; in a migrating runtime perhaps by another one.
    #[inline]
    pub(super) fn leave(self, leave: Leave) {
        // SAFETY: the thread itself calls this, so its coroutine runs, has set its yielder, and that is alive.
        unsafe { (*self.0.yielder.get()).suspend(leave.into()) };
    }

    /// Lowest address of its stack.
    pub(super) fn stack_limit(self) -> usize {
        self.0.stack_limit.get()
    }

    pub(super) fn take_token(self) -> bool {
        self.0.park.take_token()
    }

    pub(super) fn locals(self) -> *mut Option<Box<Locals>> {
        self.0.locals.get()
    }

    /// The runtime it belongs to.
    #[inline]
    pub(super) fn shared(self) -> &'static Shared {
        self.runtime().expect("a thread that was begun has a runtime")
    }
}

/// What anybody does.
impl ThreadRef {
    /// Its number.
    pub(crate) fn id(self) -> Thread {
        Thread(self.0.id.load(Ordering::Relaxed))
    }

    /// Makes it ready if it is blocked; otherwise its next blocking returns at once.
    pub(crate) fn unpark(self) {
        match self.0.park.unpark() {
            Unparked::MakeReady => lwp::make_ready(self),
            Unparked::TokenLeft => {}
        }
    }

    /// Has it for the caller, if it is parked: it does not run before the caller parks it again (rule 5 of its word).
    #[must_use]
    pub(super) fn hold(self) -> bool {
        self.0.park.hold()
    }

    /// The runtime of the thread whose block this is, or was.
    #[inline]
    pub(super) fn runtime(self) -> Option<&'static Shared> {
        // SAFETY: null, or stored by `begin` from a reference that is good for ever.
        unsafe { self.0.shared.load(Ordering::Relaxed).as_ref() }
    }

    pub(super) fn doing(self) -> Doing {
        // Acquire: pairs with the Release in `set_doing`.
        match self.0.doing.load(Ordering::Acquire) {
            1 => Doing::New,
            2 => Doing::Ready,
            3 => Doing::Mounted,
            4 => Doing::Blocked,
            _ => Doing::Nothing,
        }
    }

    pub(super) fn name_tag(self) -> String {
        self.0.tag.get()
    }

    pub(super) fn last_lwp(self) -> u32 {
        self.0.last_lwp.load(Ordering::Relaxed)
    }

    pub(super) fn waits(self) -> &'static WaitSlot {
        &self.0.waits
    }
}

/// What the owner of its handle does.
impl ThreadRef {
    pub(super) fn is_ended(self) -> bool {
        self.0.join.is_ended()
    }

    /// Blocks the caller, which is not a user thread of its runtime, or is in a blocking call.
    pub(super) fn join_from_outside(self) -> Awaited {
        self.0.join.join_from_outside(self.id(), &self.shared().carried)
    }

    /// Its name.
    ///
    /// # Safety
    /// The caller owns the handle, or is the thread: so it is not given back meanwhile.
    pub(super) unsafe fn name(self) -> Option<&'static str> {
        // SAFETY: written before the thread began, and not again before it is given back.
        unsafe { &*self.0.name.get() }.as_deref()
    }

    /// Its result, and its block is free again.
    ///
    /// # Safety
    /// The thread has ended, `T` is what it returns, and the caller owns the handle and gives it up.
    pub(super) unsafe fn take_result<T>(self) -> thread::Result<T> {
        // SAFETY: as the caller vouches.
        let result = unsafe { self.0.payload.take() };
        self.give_back();
        result
    }

    /// Gives the handle up. A result whose dropping panics ends there, whether the thread or the one that had its
    /// handle drops it: which of the two it is, is a matter of timing.
    ///
    /// # Safety
    /// `T` is what the thread returns, and the caller owns the handle.
    pub(super) unsafe fn detach<T>(self) {
        if !self.0.join.detach() {
            // SAFETY: it has ended; the rest the caller vouches for.
            discard(unsafe { self.take_result::<T>() });
        }
    }

    /// Its block may be that of another thread from now on.
    pub(super) fn give_back(self) {
        self.set_doing(Doing::Nothing);
        self.0.id.store(0, Ordering::Relaxed);
        // SAFETY: it has ended and its handle is given up: nobody has the name any more.
        let name = unsafe { &mut *self.0.name.get() };
        if name.is_some() {
            *name = None;
        }
        lwp::give_back_block(self);
    }
}

/// The life of a user thread, on its own stack.
///
/// # Safety
/// An `F` stands in its payload.
unsafe fn run<T: Send, F: FnOnce() -> T + Send>(thread: ThreadRef) -> Exit {
    // SAFETY: as the caller vouches.
    let body = unsafe { thread.0.payload.take::<F>() };
    // It must not unwind into the LWP's stack, and what it panicked with belongs to who joins.
    let result = catch_unwind(AssertUnwindSafe(body));
    // SAFETY: the thread itself drops its locals, on its own stack, while it can still do anything a thread can.
    unsafe { super::local::drop_all(thread) };
    // SAFETY: the closure was taken out; nothing else looks before `end`.
    unsafe { thread.0.payload.put(result) };
    match thread.0.join.end() {
        Ended::Nobody | Ended::Outsider => Exit::Joinable,
        Ended::Waiter(waiter) => {
            lwp::hand_over(waiter);
            Exit::Joinable
        }
        Ended::Detached => {
            // SAFETY: put in just now, and nothing else will take it.
            discard(unsafe { thread.0.payload.take::<thread::Result<T>>() });
            // Those that its destructor has made.
            // SAFETY: as above; nothing of the user's runs any more now.
            unsafe { super::local::drop_all(thread) };
            Exit::Detached
        }
    }
}

/// Says that `thread` is ready, before anybody can act on it.
pub(super) fn say_ready(thread: ThreadRef) {
    thread.set_doing(Doing::Ready);
    scheduler::thread_ready(thread.id());
}
