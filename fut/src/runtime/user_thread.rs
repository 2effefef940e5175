//! One user thread: its stack, its name, and the word that says what it is doing.
//!
//! ```text
//!             dispatch              asks to block            switched out
//!    READY ────────────▶ RUNNING ──────────────────▶ PARKING ────────────▶ PARKED
//!      ▲                  │  ▲ ▲                        │                    │
//!      │ yield            │  │ └── NOTIFIED: unparked   │ unpark             │ unpark
//!      ├──────────────────┘  │     before it blocked    ▼                    │
//!      ├─────────────────────┴───────────────── WOKEN: unparked while        │
//!      └────────────────────────────────────── still switching out ◀── … ────┘
//! ```
//! Who changes the word: the thread itself (RUNNING → PARKING), the LWP that switches it out (PARKING → PARKED, or
//! WOKEN → READY), the LWP that dispatches it (READY → RUNNING), and whoever unparks it (the rest).

use std::{
    cell::{Cell, UnsafeCell},
    sync::{
        Arc,
        atomic::{AtomicU8, AtomicU32, Ordering},
    },
};

use corosensei::{Coroutine, CoroutineResult, Yielder};
use sigmund_model::{LeaveReason, Thread};

use super::{pool::Shared, stack::Stack};
use crate::scheduler;

/// What a user thread tells the LWP it leaves.
#[derive(Clone, Copy, Debug)]
pub(super) enum Leave {
    Yield,
    /// It waits for what is at this address.
    Block(usize),
}

type Body = Coroutine<(), Leave, (), Stack>;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
enum State {
    Ready = 0,
    Running = 1,
    Notified = 2,
    Parking = 3,
    Woken = 4,
    Parked = 5,
}

impl State {
    fn from_number(number: u8) -> State {
        match number {
            0 => State::Ready,
            1 => State::Running,
            2 => State::Notified,
            3 => State::Parking,
            4 => State::Woken,
            _ => State::Parked,
        }
    }
}

/// What unparking came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
enum Unpark {
    /// It was parked; the caller puts it into the ready queue.
    Queue,
    /// It was on its way out; the LWP it leaves will put it there.
    StillSwitchingOut,
    /// It was running: its next blocking returns at once. Or it was ready anyway.
    Noted,
}

/// What switching a thread out came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub(super) enum SwitchedOut {
    /// It waits to be unparked.
    Parked,
    /// It was unparked meanwhile; the caller puts it into the ready queue.
    Queue,
}

/// A user thread.
pub(crate) struct UserThread {
    pub(super) id: Thread,
    pub(super) name: Option<Box<str>>,
    shared: Arc<Shared>,
    state: AtomicU8,
    /// Tid of the LWP that carried it last; 0 before the first dispatch.
    last_lwp: AtomicU32,
    /// Its stack and where it stands on it. Belongs to the LWP that has it RUNNING or is switching it out.
    body: UnsafeCell<Option<Body>>,
    /// Set while it runs: the way back to the LWP. Read only by the thread itself.
    yielder: Cell<Option<*const Yielder<(), Leave>>>,
}

// SAFETY: `body` and `yielder` are touched only by the LWP that dispatched the thread, and by the thread on it. The
// ready queue hands the thread from one LWP to the next under its lock. What the thread's closure owns is `Send`
// (`spawn` asks for it); what it keeps on its stack moves with the stack, as documented at `spawn`.
unsafe impl Send for UserThread {}
// SAFETY: as above; all other fields are atomic or never change.
unsafe impl Sync for UserThread {}

impl UserThread {
    /// A thread that will run `body` on `stack`; it is READY, and in no queue.
    pub(super) fn new(
        id: Thread,
        name: Option<Box<str>>,
        shared: Arc<Shared>,
        stack: Stack,
        body: impl FnOnce() + 'static,
    ) -> Arc<UserThread> {
        let thread = Arc::new(UserThread {
            id,
            name,
            shared,
            state: AtomicU8::new(State::Ready as u8),
            last_lwp: AtomicU32::new(0),
            body: UnsafeCell::new(None),
            yielder: Cell::new(None),
        });
        let this = Arc::as_ptr(&thread);
        let body = Coroutine::with_stack(stack, move |yielder: &Yielder<(), Leave>, ()| {
            // SAFETY: the LWP that resumes this coroutine holds an `Arc` of the thread while it does.
            let thread = unsafe { &*this };
            thread.yielder.set(Some(yielder));
            body();
        });
        // SAFETY: nobody else knows the thread yet.
        unsafe { *thread.body.get() = Some(body) };
        thread
    }

    /// Its number.
    pub(crate) fn id(&self) -> Thread {
        self.id
    }

    pub(super) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    /// Notes that LWP `tid` carries it now, and gives the one before, if it was another.
    pub(super) fn carried_by(&self, tid: u32) -> Option<u32> {
        let before = self.last_lwp.load(Ordering::Relaxed);
        self.last_lwp.store(tid, Ordering::Relaxed);
        (before != 0 && before != tid).then_some(before)
    }

    /// Runs it on the current LWP until it leaves; `None` when it has ended, its stack is then given back.
    ///
    /// # Safety
    /// The caller took it out of the ready queue, or switched it out itself: nobody else runs it.
    pub(super) unsafe fn resume(&self) -> Option<Leave> {
        // A thread that was unparked before it yielded stays NOTIFIED: its next blocking shall return at once.
        let _notified = self.exchange(State::Ready, State::Running);
        // SAFETY: as the caller vouches, this LWP alone has the thread.
        let slot = unsafe { &mut *self.body.get() };
        let body = slot.as_mut()?;
        match body.resume(()) {
            CoroutineResult::Yield(leave) => Some(leave),
            CoroutineResult::Return(()) => {
                if let Some(body) = slot.take() {
                    self.shared.stacks.give_back(body.into_stack());
                }
                None
            }
        }
    }

    /// Leaves the LWP, and returns when the thread is dispatched again, perhaps by another one.
    pub(super) fn leave(&self, leave: Leave) {
        if let Some(yielder) = self.yielder.get() {
            // SAFETY: the thread itself calls this, so its coroutine runs and its yielder is alive.
            unsafe { (*yielder).suspend(leave) };
        }
    }

    /// Before blocking: `false` if somebody has unparked the thread already, which then must not block.
    pub(super) fn begin_to_park(&self) -> bool {
        // AcqRel: pairs with `unpark`; what the unparker did before is seen.
        let parking = self.exchange(State::Running, State::Parking);
        if parking.is_err() {
            self.set(State::Running);
        }
        parking.is_ok()
    }

    /// After the switch: the LWP that the thread left is off its stack.
    pub(super) fn switched_out(&self, leave: Leave) -> SwitchedOut {
        match leave {
            Leave::Yield => {
                // It stays NOTIFIED if it is; see `resume`.
                let _notified = self.exchange(State::Running, State::Ready);
                SwitchedOut::Queue
            }
            Leave::Block(_) if self.exchange(State::Parking, State::Parked).is_ok() => SwitchedOut::Parked,
            Leave::Block(_) => {
                self.set(State::Ready);
                SwitchedOut::Queue
            }
        }
    }

    /// Makes it ready, if it is blocked or about to be; otherwise its next attempt to block returns at once.
    pub(crate) fn unpark(self: &Arc<UserThread>) {
        match self.try_unpark() {
            Unpark::Queue => {
                scheduler::thread_ready(self.id);
                self.shared.ready.push(Arc::clone(self));
            }
            Unpark::StillSwitchingOut | Unpark::Noted => {}
        }
    }

    fn try_unpark(&self) -> Unpark {
        loop {
            let state = self.state();
            let (next, outcome) = match state {
                State::Parked => (State::Ready, Unpark::Queue),
                State::Parking => (State::Woken, Unpark::StillSwitchingOut),
                State::Running => (State::Notified, Unpark::Noted),
                State::Ready | State::Notified | State::Woken => return Unpark::Noted,
            };
            if outcome == Unpark::StillSwitchingOut {
                // The record comes before the LWP can see WOKEN and queue the thread.
                scheduler::thread_ready(self.id);
            }
            if self.exchange(state, next).is_ok() {
                return outcome;
            }
        }
    }

    fn state(&self) -> State {
        State::from_number(self.state.load(Ordering::Acquire))
    }

    fn set(&self, state: State) {
        self.state.store(state as u8, Ordering::Release);
    }

    fn exchange(&self, from: State, to: State) -> Result<u8, u8> {
        self.state.compare_exchange(from as u8, to as u8, Ordering::AcqRel, Ordering::Acquire)
    }
}

impl Drop for UserThread {
    fn drop(&mut self) {
        // A thread that has not ended when its runtime goes: unwinding its stack would run its destructors on some
        // other thread, in the middle of something. Its stack is leaked instead.
        std::mem::forget(self.body.get_mut().take());
    }
}

impl Leave {
    /// As the switch event says it: the reason, and what the thread waits for.
    pub(super) fn reason(self) -> (LeaveReason, usize) {
        match self {
            Leave::Yield => (LeaveReason::Yield, 0),
            Leave::Block(on) => (LeaveReason::Block, on),
        }
    }
}
