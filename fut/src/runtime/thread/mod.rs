//! A user thread: a block with its state words, name, and closure or result; and its stack after the first dispatch.
//!
//! Blocks are allocated in slabs, reused, and never freed. So a reference to a block is always valid, without reference
//! counting. Unparking a thread that has ended meanwhile has no effect, or wakes another thread spuriously; blocked
//! threads check their conditions again anyway. The slabs also allow listing all threads, without a list to which each
//! creation would have to write; see [`slab`].

mod ids;
mod join_word;
mod park_word;
mod payload;
mod prefetch;
pub(super) mod slab;
mod tag;

use std::{
    borrow::Cow,
    cell::{Cell, UnsafeCell},
    hash::{Hash, Hasher},
    mem::ManuallyDrop,
    panic::{AssertUnwindSafe, catch_unwind},
    ptr,
    sync::atomic::{AtomicBool, AtomicPtr, AtomicU8, AtomicU32, AtomicU64, Ordering, fence},
    thread,
    time::Instant,
};

use corosensei::{Coroutine, Yielder};
use sigmund_model::Thread;

pub(super) use ids::Ids;
pub(super) use join_word::Awaited;
pub(super) use park_word::Parked;
pub(super) use prefetch::prefetch;

use super::{
    discard::discard,
    local::Locals,
    lwp,
    permit::Permit,
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

/// Why a user thread leaves its LWP. It is passed to that LWP.
#[derive(Clone, Copy)]
pub(super) enum Leave {
    /// It yields.
    Yield,
    /// It yields because its quantum is over.
    Quantum,
    /// It blocks until it is unparked. Its wait slot describes what it waits for.
    Park,
    /// It blocks until this thread has ended.
    Join(ThreadRef),
}

/// A [`Leave`] in one word, which is passed in a register at a switch.
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
            // SAFETY: blocks have higher addresses than the constants. So this is the address of a block, stored by the
            // conversion above; blocks are never freed.
            other => Leave::Join(ThreadRef(unsafe { &*ptr::with_exposed_provenance(other) })),
        }
    }
}

/// What remains to be done for a thread that has ended.
#[derive(Clone, Copy, Debug)]
pub(super) enum Exit {
    /// Nothing: its block belongs to the owner of its handle.
    Joinable,
    /// It was detached: the LWP frees the block.
    Detached,
}

/// [`run`], instantiated for the type of a thread's payload.
type Run = unsafe fn(ThreadRef) -> Exit;

/// The data above the top of a stack in use.
pub(super) struct Body {
    /// The suspended execution. It owns nothing but the stack, so it need not be dropped.
    pub(super) coroutine: ManuallyDrop<Coroutine<(), LeaveWord, Exit, Stack>>,
    /// A copy of the stack: taking the stack out of the coroutine would require moving the coroutine.
    pub(super) stack: Stack,
}

const _: () = assert!(size_of::<Body>() <= BODY_LEN && align_of::<Body>() <= 16);

/// What a thread is doing, for inspection by other threads.
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
    /// The token of [`park`](crate::park). Other kinds of waits do not use it.
    permit: Permit,
    priority: Cell<Priority>,
    /// Tid of the LWP that last carried the thread; 0 before the first dispatch.
    last_lwp: AtomicU32,
    /// The LWP to which the thread is pinned, if any.
    home: Cell<Option<&'static Home>>,
    id: AtomicU64,
    join: JoinWord,
    /// The stack of the thread and its suspended execution, stored at the top of the stack; null before the first
    /// dispatch.
    body: AtomicPtr<Body>,
    // Second cache line.
    /// For switching back to the LWP. Read only by the thread itself.
    yielder: Cell<*const Yielder<(), LeaveWord>>,
    /// Null before the block's first use.
    shared: AtomicPtr<Shared>,
    run: Cell<Option<Run>>,
    /// The stack of the thread. Before the first dispatch, only if the thread was given one when it was created.
    stack: Cell<Option<Stack>>,
    pub(super) waits: WaitSlot,
    /// Like [`Birth::in_blocking`].
    in_blocking: AtomicBool,
    /// The thread never runs again (`left_behind.rs`).
    left_behind: AtomicBool,
    locals: UnsafeCell<Option<Box<Locals>>>,
    /// Called when the thread ends, or is left behind.
    at_end: UnsafeCell<Option<AtEnd>>,
    name: UnsafeCell<Option<Cow<'static, str>>>,
    tag: NameTag,
    payload: Payload,
}

// SAFETY: the cells are accessed only by the current owner of the thread. The owner is its creator, then the LWP that
// has taken it out of a ready queue, and the thread itself on that LWP. Queues and state words pass the ownership on
// with Release and Acquire. What its closure owns is `Send` (required by `spawn`). What is on its stack stays on its
// LWP, unless the program has promised that it may move (`RuntimeBuilder::migrating`). All other fields are atomic.
unsafe impl Sync for UserThread {}

/// A reference to a user thread, with which it can be unparked.
#[derive(Clone, Copy)]
pub(crate) struct ThreadRef(&'static UserThread);

// SAFETY: a reference to a `Sync` type.
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

/// A function that is called when a thread ends: after its user-locals were dropped, and before the threads that join
/// it are woken. If the thread is left behind (`left_behind.rs`), another thread calls it. It gets the number of the
/// thread.
pub(super) type AtEnd = Box<dyn FnOnce(Thread) + Send>;

/// The properties of a new thread, except its closure.
pub(super) struct Birth {
    pub(super) id: Thread,
    pub(super) name: Option<Cow<'static, str>>,
    pub(super) priority: Priority,
    pub(super) home: Option<&'static Home>,
    pub(super) shared: &'static Shared,
    /// The stack. `None`: any stack of the usual size, taken at the first dispatch.
    pub(super) stack: Option<Stack>,
    pub(super) at_end: Option<AtEnd>,
    /// The thread is for an LWP for blocking calls, which continues after its runtime was dropped.
    pub(super) in_blocking: bool,
}

impl UserThread {
    fn unused() -> UserThread {
        UserThread {
            park: ParkWord::new(),
            doing: AtomicU8::new(Doing::Nothing as u8),
            permit: Permit::default(),
            priority: Cell::new(Priority::Normal),
            home: Cell::new(None),
            last_lwp: AtomicU32::new(0),
            id: AtomicU64::new(0),
            join: JoinWord::new(),
            body: AtomicPtr::new(ptr::null_mut()),
            yielder: Cell::new(ptr::null()),
            shared: AtomicPtr::new(ptr::null_mut()),
            run: Cell::new(None),
            stack: Cell::new(None),
            waits: WaitSlot::new(),
            in_blocking: AtomicBool::new(false),
            left_behind: AtomicBool::new(false),
            locals: UnsafeCell::new(None),
            at_end: UnsafeCell::new(None),
            name: UnsafeCell::new(None),
            tag: NameTag::default(),
            payload: Payload::new(),
        }
    }
}

/// Operations of the current owner of the thread.
impl ThreadRef {
    /// Initialises an unused block as a new thread, without queueing it.
    ///
    /// # Safety
    /// The caller has just taken the block from the free ones.
    pub(super) unsafe fn begin<T: Send, F: FnOnce() -> T + Send>(self, birth: Birth, body: F) {
        let UserThread { park, join, last_lwp, id, name, payload, .. } = self.0;
        park.reset();
        join.reset();
        self.0.permit.reset();
        self.0.waits.reset();
        self.0.in_blocking.store(birth.in_blocking, Ordering::Relaxed);
        self.0.left_behind.store(false, Ordering::Relaxed);
        last_lwp.store(0, Ordering::Relaxed);
        id.store(birth.id.0, Ordering::Relaxed);
        // Release: pairs with the Acquire fence of inspecting threads. A thread that sees any of the following writes
        // also sees the number.
        fence(Ordering::Release);
        self.0.priority.set(birth.priority);
        self.0.home.set(birth.home);
        self.0.shared.store(ptr::from_ref(birth.shared).cast_mut(), Ordering::Relaxed);
        self.0.run.set(Some(run::<T, F>));
        self.0.body.store(ptr::null_mut(), Ordering::Relaxed);
        self.0.stack.set(birth.stack);
        self.0.tag.set(birth.name.as_deref().unwrap_or(""));
        if birth.name.is_some() {
            // SAFETY: the caller owns the block, which is not a thread yet.
            unsafe { *name.get() = birth.name };
        }
        if birth.at_end.is_some() {
            // SAFETY: as above.
            unsafe { *self.0.at_end.get() = birth.at_end };
        }
        // SAFETY: as above.
        unsafe { payload.put(body) };
        self.set_doing(Doing::New);
    }

    /// The stack of the thread and its suspended execution. For a new thread they are made here: `stack` gets the stack
    /// that the thread was given at its creation, if any, and returns the one to use.
    ///
    /// # Safety
    /// The caller took the thread out of a ready queue, so it is the only owner.
    #[inline]
    pub(super) unsafe fn body(self, stack: impl FnOnce(Option<Stack>) -> Stack) -> *mut Body {
        let body = self.0.body.load(Ordering::Relaxed);
        if !body.is_null() {
            return body;
        }
        let stack = stack(self.0.stack.get());
        let place = stack.place_of_body().cast::<Body>();
        self.0.stack.set(Some(stack));
        self.0.body.store(place, Ordering::Relaxed);
        let coroutine = Coroutine::with_stack(stack, move |yielder: &Yielder<(), LeaveWord>, ()| {
            self.0.yielder.set(yielder);
            match self.0.run.get() {
                // SAFETY: `begin` set it together with the payload of its type, and it is called only once.
                Some(run) => unsafe { run(self) },
                None => Exit::Detached,
            }
        });
        // SAFETY: the place is above the top of the stack, aligned, and belongs to the owner of the stack.
        unsafe { place.write(Body { coroutine: ManuallyDrop::new(coroutine), stack }) };
        place
    }

    /// Parks the thread, unless it was unparked meanwhile. Called after the switch, or after the thread was held.
    pub(super) fn park(self) -> Parked {
        self.0.park.park()
    }

    /// Makes the thread wait for the end of `other`. Called after the switch. Returns `false` if `other` has already
    /// ended.
    pub(super) fn wait_for_end_of(self, other: ThreadRef) -> bool {
        other.0.join.wait(self)
    }

    /// Stores that LWP `tid` carries the thread now. Returns the previous LWP, if it was another one.
    #[inline]
    pub(super) fn carried_by(self, tid: u32) -> Option<u32> {
        let before = self.0.last_lwp.load(Ordering::Relaxed);
        if before == tid {
            return None;
        }
        self.0.last_lwp.store(tid, Ordering::Relaxed);
        (before != 0).then_some(before)
    }

    /// The block of the thread, for queues.
    #[inline]
    pub(super) fn block(self) -> &'static UserThread {
        self.0
    }

    /// The thread of a block taken from a queue.
    #[inline]
    pub(super) fn of_block(block: &'static UserThread) -> ThreadRef {
        ThreadRef(block)
    }

    pub(super) fn priority(self) -> Priority {
        self.0.priority.get()
    }

    /// The LWP to which the thread is pinned, if any.
    #[inline]
    pub(super) fn home(self) -> Option<&'static Home> {
        self.0.home.get()
    }

    #[inline]
    pub(super) fn set_home(self, home: Option<&'static Home>) {
        self.0.home.set(home);
    }

    /// Called before the first dispatch of the thread, if there is no LWP for blocking calls: it then goes to the other
    /// LWPs.
    pub(super) fn is_in_no_blocking_call(self) {
        self.0.in_blocking.store(false, Ordering::Relaxed);
    }

    /// Stores that the thread never runs again. Returns `false` if that was stored before.
    pub(super) fn set_left_behind(self) -> bool {
        // Release: pairs with the Acquire in `join_from_outside`; publishes what the thread has done.
        !self.0.left_behind.swap(true, Ordering::AcqRel)
    }

    /// Takes the function that is to be called at the end of the thread. The thread is ending now, or was left behind.
    ///
    /// # Safety
    /// The caller is the thread itself, or the only thread that has left it behind.
    pub(super) unsafe fn take_at_end(self) -> Option<AtEnd> {
        // SAFETY: it was written before the thread began. The caller guarantees that no other thread accesses it.
        unsafe { &mut *self.0.at_end.get() }.take()
    }

    #[inline]
    pub(super) fn set_doing(self, doing: Doing) {
        // Release: pairs with the Acquire in `doing`; publishes the properties of a new thread.
        self.0.doing.store(doing as u8, Ordering::Release);
    }
}

/// Operations of the thread itself.
impl ThreadRef {
    /// Leaves the LWP. Returns when the thread is dispatched again; in a migrating runtime, this may be on another LWP.
    #[inline]
    pub(super) fn leave(self, leave: Leave) {
        // SAFETY: the thread itself calls this, so its coroutine runs, and its yielder is set and valid.
        unsafe { (*self.0.yielder.get()).suspend(leave.into()) };
    }

    /// Lowest address of its stack.
    pub(super) fn stack_limit(self) -> usize {
        self.0.stack.get().map_or(0, |stack| stack.limit_address())
    }

    pub(super) fn take_token(self) -> bool {
        self.0.park.take_token()
    }

    pub(super) fn locals(self) -> *mut Option<Box<Locals>> {
        self.0.locals.get()
    }

    /// The runtime that the thread belongs to.
    #[inline]
    pub(super) fn shared(self) -> &'static Shared {
        self.runtime().expect("a thread that was begun has a runtime")
    }
}

/// Operations of any thread.
impl ThreadRef {
    /// The number of the thread.
    pub(crate) fn id(self) -> Thread {
        Thread(self.0.id.load(Ordering::Relaxed))
    }

    /// Makes the thread ready if it is parked. Otherwise its next parking returns at once.
    pub(crate) fn unpark(self) {
        match self.0.park.unpark() {
            Unparked::MakeReady => lwp::make_ready(self),
            Unparked::TokenLeft => {}
        }
    }

    /// Like [`unpark`](ThreadRef::unpark), but `make_ready` queues the thread.
    #[inline]
    pub(super) fn unpark_into(self, make_ready: impl FnOnce(ThreadRef)) {
        match self.0.park.unpark() {
            Unparked::MakeReady => make_ready(self),
            Unparked::TokenLeft => {}
        }
    }

    /// Takes ownership of the thread, if it is parked. It does not run before the caller parks it again (rule 5 of
    /// `park_word.rs`).
    #[must_use]
    pub(super) fn hold(self) -> bool {
        self.0.park.hold()
    }

    /// The runtime of the thread to which this block belongs or last belonged.
    #[inline]
    pub(super) fn runtime(self) -> Option<&'static Shared> {
        // SAFETY: null, or stored by `begin` from a `'static` reference.
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

    /// The size of its stack. Called by the thread itself.
    pub(super) fn stack_size(self) -> Option<usize> {
        self.0.stack.get().map(|stack| stack.size())
    }

    pub(super) fn is_in_blocking(self) -> bool {
        self.0.in_blocking.load(Ordering::Relaxed)
    }

    pub(super) fn name_tag(self) -> String {
        self.0.tag.get()
    }

    pub(super) fn last_lwp(self) -> u32 {
        self.0.last_lwp.load(Ordering::Relaxed)
    }

    /// The token of [`park`](crate::park).
    pub(super) fn permit(self) -> &'static Permit {
        &self.0.permit
    }

    pub(super) fn waits(self) -> &'static WaitSlot {
        &self.0.waits
    }
}

/// Operations of the owner of the thread's handle.
impl ThreadRef {
    pub(super) fn is_ended(self) -> bool {
        self.0.join.is_ended()
    }

    /// Blocks the caller until the thread ends. For callers that have a deadline, are not user threads of the same
    /// runtime, or are in a blocking call.
    pub(super) fn join_from_outside(self, deadline: Option<Instant>) -> Awaited {
        // Acquire: pairs with the Release in `set_left_behind`.
        let never_ends = || self.shared().carried.is_over() || self.0.left_behind.load(Ordering::Acquire);
        self.0.join.join_from_outside(self.id(), &self.shared().carried, never_ends, deadline)
    }

    /// The name of the thread.
    ///
    /// # Safety
    /// The caller owns the handle, or is the thread itself, so that the block is not freed meanwhile.
    pub(super) unsafe fn name(self) -> Option<&'static str> {
        // SAFETY: the name was written before the thread began, and is not written again before the block is freed.
        unsafe { &*self.0.name.get() }.as_deref()
    }

    /// Returns the result of the thread, and frees its block.
    ///
    /// # Safety
    /// The thread has ended, `T` is the type of its result, and the caller owns the handle and drops it.
    pub(super) unsafe fn take_result<T>(self) -> thread::Result<T> {
        // SAFETY: the caller guarantees it.
        let result = unsafe { self.0.payload.take() };
        self.give_back();
        result
    }

    /// Drops the handle. The result is dropped by the thread or by the owner of the handle, depending on timing. In
    /// both cases a panic while it is dropped is caught.
    ///
    /// # Safety
    /// `T` is the type of the thread's result, and the caller owns the handle.
    pub(super) unsafe fn detach<T>(self) {
        if !self.0.join.detach() {
            // SAFETY: the thread has ended; the caller guarantees the rest.
            discard(unsafe { self.take_result::<T>() });
        }
    }

    /// Frees the block of the thread. It may belong to another thread from now on.
    pub(super) fn give_back(self) {
        self.set_doing(Doing::Nothing);
        self.0.id.store(0, Ordering::Relaxed);
        // SAFETY: the thread has ended and its handle is dropped, so nothing else accesses the name.
        let name = unsafe { &mut *self.0.name.get() };
        if name.is_some() {
            *name = None;
        }
        lwp::give_back_block(self);
    }
}

/// The main function of a user thread, on its own stack.
///
/// # Safety
/// The payload of the thread is an `F`.
unsafe fn run<T: Send, F: FnOnce() -> T + Send>(thread: ThreadRef) -> Exit {
    // SAFETY: the caller guarantees it.
    let body = unsafe { thread.0.payload.take::<F>() };
    // A panic must not unwind into the LWP's stack; its payload is part of the result.
    let result = catch_unwind(AssertUnwindSafe(body));
    // SAFETY: the thread itself drops its locals, on its own stack, while it can still block and yield.
    unsafe { super::local::drop_all(thread) };
    // SAFETY: the closure was taken out; nothing else accesses the payload before `end`.
    unsafe { thread.0.payload.put(result) };
    // SAFETY: the thread itself calls this.
    if let Some(at_end) = unsafe { thread.take_at_end() } {
        at_end(thread.id());
    }
    match thread.0.join.end() {
        Ended::NoWaiter | Ended::OutsideWaiter => Exit::Joinable,
        Ended::Waiter(waiter) => {
            lwp::hand_over(waiter);
            Exit::Joinable
        }
        Ended::Detached => {
            // SAFETY: the result was stored above, and nothing else takes it.
            discard(unsafe { thread.0.payload.take::<thread::Result<T>>() });
            // Drops user-locals that the result's destructor has created. SAFETY: as above; no code of the program runs
            // in this thread after that.
            unsafe { super::local::drop_all(thread) };
            Exit::Detached
        }
    }
}

/// Records that `thread` is ready. Called before any other LWP can dispatch it.
pub(super) fn record_ready(thread: ThreadRef) {
    thread.set_doing(Doing::Ready);
    scheduler::thread_ready(thread.id());
}
