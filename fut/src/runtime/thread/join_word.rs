//! The state word shared by a user thread and its only handle.
//!
//! ```text
//!   RUNNING ──▶ waiter ──▶ ENDED         the handle's owner waits, the thread ends
//!      │  └────────────────▲             the thread ends first
//!      └─────▶ DETACHED                  the handle was dropped first
//!
//!   waiter ──▶ RUNNING                   its waiter gives up: at its deadline, or because the runtime was dropped
//! ```
//! A handle has one owner, so there is at most one waiter. The thread makes one transition, at its end. Before that,
//! the owner of the handle makes at most one, and takes it back if it gives up. The second of the two takes or drops
//! the result.

use std::{
    ptr::{self, NonNull},
    time::Instant,
};

use sigmund_model::Thread;

use super::{ThreadRef, UserThread};
use crate::{
    model_check::atomic::{AtomicBool, AtomicUsize, Ordering},
    runtime::{
        carried::Carried,
        parker::Parker,
        waits::{WaitKind, WaitsFor},
    },
};

const RUNNING: usize = 0;
const ENDED: usize = 1;
const DETACHED: usize = 2;
/// Set in the address of a waiter that is not a user thread of the same runtime.
const OUTSIDE: usize = 4;

/// The state word.
#[derive(Debug)]
pub(super) struct JoinWord(AtomicUsize);

/// A waiter for the end of a user thread: a plain thread, a user thread of another runtime, or one with a deadline. It
/// is located on the waiter's stack.
#[derive(Debug)]
pub(in crate::runtime) struct OutsideWaiter {
    waiter: Parker,
    woken: AtomicBool,
}

/// The result of a wait from outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub(in crate::runtime) enum Awaited {
    /// The thread has ended.
    Ended,
    /// It will never end: its runtime was dropped.
    Never,
    /// The deadline passed before it ended.
    TimedOut,
}

/// The waiters of the thread at its end.
#[derive(Debug)]
#[must_use]
pub(super) enum Ended {
    /// There is none yet: the result stays for the handle's owner.
    NoWaiter,
    /// This user thread waits: the caller has to make it ready.
    Waiter(ThreadRef),
    /// A waiter outside the runtime. It was woken.
    OutsideWaiter,
    /// The handle was dropped: the caller drops the result.
    Detached,
}

impl JoinWord {
    pub(super) fn new() -> JoinWord {
        JoinWord(AtomicUsize::new(RUNNING))
    }

    pub(super) fn reset(&self) {
        self.0.store(RUNNING, Ordering::Relaxed);
    }

    /// Called by the thread after its result was stored. When this returns, the thread's block may already be reused,
    /// unless the caller has to drop the result.
    pub(super) fn end(&self) -> Ended {
        // Release: pairs with the Acquire in `is_ended`, `wait` and `detach`; publishes the result.
        // Acquire: pairs with the Release in `wait` and `detach`.
        match self.0.swap(ENDED, Ordering::AcqRel) {
            RUNNING => Ended::NoWaiter,
            DETACHED => {
                // The word is only read to check whether the thread continues. It does: it still has to drop its result.
                self.0.store(DETACHED, Ordering::Relaxed);
                Ended::Detached
            }
            outside if outside & OUTSIDE != 0 => {
                let waiter = ptr::with_exposed_provenance(outside & !OUTSIDE);
                // SAFETY: `wait_outside` stored the address of a waiter that is valid until it is woken.
                unsafe { OutsideWaiter::wake(waiter) };
                Ended::OutsideWaiter
            }
            waiter => {
                // SAFETY: `wait` stored the address of a user thread's block; blocks are never freed.
                let waiter = unsafe { &*ptr::with_exposed_provenance::<UserThread>(waiter) };
                Ended::Waiter(ThreadRef(waiter))
            }
        }
    }

    pub(super) fn is_ended(&self) -> bool {
        // Acquire: pairs with the Release in `end`; makes the result visible.
        self.0.load(Ordering::Acquire) == ENDED
    }

    /// Enters `waiter`, which has already left its LWP. Returns `false` if the thread has ended.
    pub(super) fn wait(&self, waiter: ThreadRef) -> bool {
        self.change(ptr::from_ref(waiter.0).expose_provenance())
    }

    fn wait_outside(&self, waiter: NonNull<OutsideWaiter>) -> bool {
        self.change(waiter.as_ptr().expose_provenance() | OUTSIDE)
    }

    /// Called when the handle is dropped. Returns `false` if the thread has ended: then the caller has to drop its
    /// result.
    pub(super) fn detach(&self) -> bool {
        self.change(DETACHED)
    }

    fn change(&self, to: usize) -> bool {
        // Release: pairs with the Acquire in `end`. Acquire on failure: pairs with the Release there.
        self.0.compare_exchange(RUNNING, to, Ordering::Release, Ordering::Acquire).is_ok()
    }

    /// Blocks the calling plain thread, or user thread, until the thread `id` ends, until the deadline, or until it is
    /// known that the thread never ends. When the last becomes known, the waiters that are registered with `carried`
    /// are woken.
    pub(super) fn join_from_outside(
        &self,
        id: Thread,
        carried: &Carried,
        never_ends: impl Fn() -> bool,
        mut deadline: Option<Instant>,
    ) -> Awaited {
        let here = Parker::here();
        let waiter = OutsideWaiter { waiter: here, woken: AtomicBool::new(false) };
        let place = NonNull::from(&waiter);
        let _registered = carried.register(place.addr().get(), here);
        if !self.wait_outside(place) {
            return Awaited::Ended;
        }
        // Acquire: pairs with the Release in `wake`; makes the result visible.
        while !waiter.woken.load(Ordering::Acquire) {
            let is_late = deadline.is_some_and(|at| Instant::now() >= at);
            if is_late || never_ends() {
                if self.give_up(place) {
                    return if is_late { Awaited::TimedOut } else { Awaited::Never };
                }
                // The thread has ended, and is about to wake its waiter.
                deadline = None;
            }
            let on = WaitsFor { kind: WaitKind::Join, address: id.0 as usize, holder: None, is_fed: false };
            match deadline {
                None => here.park(&on),
                Some(at) => here.park_until(&on, at),
            }
        }
        Awaited::Ended
    }

    /// The waiter gives up, because the runtime has ended or the deadline has passed. Returns `false` if the thread has
    /// ended before.
    fn give_up(&self, waiter: NonNull<OutsideWaiter>) -> bool {
        let waiting = waiter.as_ptr().expose_provenance() | OUTSIDE;
        // Acquire on failure: pairs with the Release in `end`.
        self.0.compare_exchange(waiting, RUNNING, Ordering::Relaxed, Ordering::Acquire).is_ok()
    }
}

impl OutsideWaiter {
    /// # Safety
    /// `waiter` is on the stack of a thread that does not return before it is woken here.
    unsafe fn wake(waiter: *const OutsideWaiter) {
        // SAFETY: the caller guarantees that the waiter is valid until `woken` is set.
        let fields = unsafe { &*waiter };
        // A copy, because the original may be freed as soon as its thread sees the flag.
        let waiter = fields.waiter;
        // Release: pairs with the Acquire in `join_from_outside`.
        fields.woken.store(true, Ordering::Release);
        waiter.unpark();
    }
}

#[cfg(all(test, loom))]
mod model {
    use loom::{sync::Arc, thread};

    use super::*;
    use crate::model_check::UnsafeCell;

    /// A waiter gives up, as at its deadline, while the thread ends; then it waits without a limit. When it takes the
    /// result, it sees it. A waiter that has given up is not woken, since it may be gone.
    #[test]
    fn who_gives_up_and_waits_again_sees_the_result() {
        loom::model(|| {
            let word = Arc::new(JoinWord::new());
            let result = Arc::new(UnsafeCell::new(0));
            let ending = {
                let (word, result) = (Arc::clone(&word), Arc::clone(&result));
                thread::spawn(move || {
                    // SAFETY: only the thread writes the result, before its end.
                    result.with_mut(|result| unsafe { *result = 1 });
                    matches!(word.end(), Ended::OutsideWaiter)
                })
            };
            let wait = |gives_up: bool| {
                let waiter = OutsideWaiter { waiter: Parker::here(), woken: AtomicBool::new(false) };
                let place = NonNull::from(&waiter);
                if !word.wait_outside(place) {
                    return Some(false);
                }
                if gives_up && word.give_up(place) {
                    assert!(!waiter.woken.load(Ordering::Relaxed));
                    return None;
                }
                while !waiter.woken.load(Ordering::Acquire) {
                    thread::yield_now();
                }
                Some(true)
            };
            let was_woken = wait(true).or_else(|| wait(false)).unwrap();
            // SAFETY: the thread has ended.
            assert_eq!(result.with(|result| unsafe { *result }), 1);
            assert_eq!(ending.join().unwrap(), was_woken);
        });
    }
}
