//! The thread that an LWP runs next: the last one that was woken by its threads.
//!
//! A thread that wakes another one mostly blocks soon afterwards: two threads talk to each other, or a thread unlocks
//! and then locks again. Then the woken thread continues on this LWP, with its data in the cache, before another LWP
//! could have taken it. So it is not put where others steal at once. But if its waker computes for long, an idle LWP
//! takes it.
//!
//! 1. Only the LWP itself puts a thread here, and it counts how often. The thread that was here before goes to a queue.
//! 2. The LWP that exchanges the thread for null, or for another thread, owns it.
//! 3. A thief takes a thread only if it was here when the thief looked before, which it knows from an unchanged count.
//!    So it looks twice, some time apart. (In rare cases this is wrong and it takes a new thread; that does no harm.)
//!
//! Rule 11 of `idle/mod.rs` describes when idle LWPs look.

use std::{cell::Cell, ptr};

use crate::model_check::{
    Arc,
    atomic::{AtomicPtr, AtomicU32, Ordering},
};

/// The end that the LWP uses.
#[derive(Debug)]
pub(in crate::runtime) struct NextOwner<T: Sync + 'static> {
    next: Arc<Next<T>>,
    /// Whether the LWP has put a thread and not taken it since; a thief may have taken it. This field also makes the
    /// type not `Sync`: rule 1.
    has_put: Cell<bool>,
}

/// The end that other LWPs use.
#[derive(Debug)]
pub(in crate::runtime) struct NextThief<T: Sync + 'static>(Arc<Next<T>>);

#[derive(Debug)]
#[repr(align(128))]
struct Next<T: 'static> {
    /// Null if there is none.
    item: AtomicPtr<T>,
    puts: AtomicU32,
}

/// Makes both ends, without a thread.
pub(in crate::runtime) fn next<T: Sync>() -> (NextOwner<T>, NextThief<T>) {
    let next = Arc::new(Next { item: AtomicPtr::new(ptr::null_mut()), puts: AtomicU32::new(0) });
    (NextOwner { next: Arc::clone(&next), has_put: Cell::new(false) }, NextThief(next))
}

impl<T: Sync> NextOwner<T> {
    /// Puts `item` here, and returns the thread that was here before.
    #[inline]
    pub(in crate::runtime) fn put(&self, item: &'static T) -> Option<&'static T> {
        let Next { item: slot, puts } = &*self.next;
        puts.store(puts.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
        let item = ptr::from_ref(item).cast_mut();
        if !self.has_put.replace(true) {
            // The slot is null, because only this LWP puts threads. Release: publishes the thread's block; pairs with
            // the Acquire of the thread that takes it.
            slot.store(item, Ordering::Release);
            return None;
        }
        // Release: as above. The value that the swap returns was stored by this LWP.
        to_reference(slot.swap(item, Ordering::Release))
    }

    #[inline]
    pub(in crate::runtime) fn take(&self) -> Option<&'static T> {
        if !self.has_put.get() {
            return None;
        }
        self.has_put.set(false);
        // Relaxed: the value that the swap returns was stored by this LWP.
        to_reference(self.next.item.swap(ptr::null_mut(), Ordering::Relaxed))
    }
}

impl<T: Sync> NextThief<T> {
    pub(in crate::runtime) fn is_empty(&self) -> bool {
        self.0.item.load(Ordering::Relaxed).is_null()
    }

    /// How often a thread was put here (modulo 2^32).
    pub(in crate::runtime) fn puts(&self) -> u32 {
        self.0.puts.load(Ordering::Relaxed)
    }

    /// Whether there is a thread that was already here when `puts` was read (rule 3).
    pub(in crate::runtime) fn is_there_since(&self, puts: u32) -> bool {
        !self.is_empty() && self.puts() == puts
    }

    /// Takes that thread, if it is still here.
    pub(in crate::runtime) fn steal_if_old(&self, puts: u32) -> Option<&'static T> {
        if self.puts() == puts { self.steal() } else { None }
    }

    /// Takes the thread, unless another taker gets it first.
    pub(in crate::runtime) fn steal(&self) -> Option<&'static T> {
        let Next { item: slot, .. } = &*self.0;
        let item = slot.load(Ordering::Relaxed);
        if item.is_null() {
            return None;
        }
        // Acquire: pairs with the Release of `put`.
        let taken = slot.compare_exchange(item, ptr::null_mut(), Ordering::Acquire, Ordering::Relaxed);
        to_reference(taken.ok()?)
    }
}

/// Converts a pointer taken from a slot.
fn to_reference<T>(item: *mut T) -> Option<&'static T> {
    // SAFETY: the pointer is null, or `put` stored it from a `'static` reference.
    unsafe { item.as_ref() }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    static ITEMS: [u8; 3] = [0, 1, 2];

    #[test]
    fn the_last_one_stays_and_a_thief_waits_until_it_is_old() {
        let (owner, thief) = next();
        assert_eq!((owner.take(), thief.steal(), thief.is_empty()), (None, None, true));
        let seen = thief.puts();
        assert_eq!((owner.put(&ITEMS[0]), thief.steal_if_old(seen)), (None, None), "it is new");
        assert_eq!(owner.put(&ITEMS[1]), Some(&ITEMS[0]));
        assert_eq!(owner.take(), Some(&ITEMS[1]));
        assert_eq!(owner.put(&ITEMS[2]), None);
        let seen = thief.puts();
        assert_eq!(thief.steal_if_old(seen), Some(&ITEMS[2]), "it was here before");
        assert_eq!((owner.take(), thief.steal_if_old(seen), thief.is_empty()), (None, None, true));
    }
}

#[cfg(all(test, loom))]
mod model {
    use loom::thread;

    use super::*;

    static ITEMS: [u8; 3] = [0, 1, 2];

    /// The LWP puts three threads and takes one in between, while two thieves steal. Each thread is taken exactly once.
    #[test]
    fn every_thread_that_is_put_is_taken_exactly_once() {
        let mut builder = loom::model::Builder::new();
        builder.preemption_bound = Some(2);
        builder.check(|| {
            let (owner, thief) = next();
            let thieves: Vec<_> = (0..2)
                .map(|_| {
                    let thief = NextThief(Arc::clone(&thief.0));
                    thread::spawn(move || {
                        let seen = thief.puts();
                        thief.steal_if_old(seen)
                    })
                })
                .collect();
            let mut taken: Vec<&u8> = Vec::new();
            for item in &ITEMS {
                taken.extend(owner.put(item));
                if *item == 1 {
                    taken.extend(owner.take());
                }
            }
            for thief in thieves {
                taken.extend(thief.join().unwrap());
            }
            taken.extend(owner.take());
            taken.sort_unstable();
            assert_eq!(taken, Vec::from_iter(&ITEMS));
        });
    }
}
