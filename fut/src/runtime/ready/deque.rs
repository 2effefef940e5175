//! The ready threads of one LWP: a bounded queue with one owner, from which other LWPs steal.
//!
//! ```text
//!   oldest                          newest
//!   top ──▶ | a | b | c | d | ◀── bottom         the owner pushes at the bottom
//!    ▲                     ▲
//!    thieves take here     the owner may take here
//! ```
//! This is the deque of Chase and Lev (SPAA 2005) with the orderings of Lê, Pop, Cohen and Zappa Nardelli (PPoPP 2013).
//! It is bounded, so that no memory has to be reclaimed: threads that do not fit go to the queue that all LWPs share.
//!
//! 1. Only the owner writes `bottom`. `top` only grows, and only by compare-and-swap: the taker that increments it from
//!    `t` owns the thread in slot `t`.
//! 2. Slot `t` is written again only after `top` has passed it, because the owner pushes only while not all slots are
//!    in use. So a taker that has read the slot too late fails at its compare-and-swap.
//! 3. An owner without thieves takes with plain loads and stores.
//! 4. Every store to `bottom` is a Release. A thief may see a lower `bottom` that was stored after a newer slot was
//!    written; then it must also see that slot. (The model found this; see `model`.)
//! 5. The owner takes at the bottom by lowering `bottom` and then reading `top`. A thief reads `top` and then `bottom`.
//!    Both have a full fence in between. So at least one sees the other's access. For the last thread, both use
//!    compare-and-swap on `top`.
//!
//! The owner is a type. An [`Owner`] can be moved to another thread, that of the LWP, but neither copied nor shared (it
//! is not `Sync`). Thieves have a [`Thief`], which can only steal.

use std::{cell::Cell, marker::PhantomData, mem::size_of};

#[cfg(loom)]
use crate::model_check::atomic::fence;
use crate::model_check::{
    Arc,
    atomic::{AtomicPtr, AtomicUsize, Ordering},
};

/// The end of a deque at which its LWP pushes and takes. The slots hold addresses of `T`.
#[derive(Debug)]
pub(in crate::runtime) struct Owner<T: Sync + 'static> {
    deque: Arc<Deque<T>>,
    /// Not `Sync`: rule 1.
    _one_thread: PhantomData<Cell<()>>,
}

/// The end of a deque at which other LWPs steal.
#[derive(Debug)]
pub(in crate::runtime) struct Thief<T: Sync + 'static>(Arc<Deque<T>>);

/// The shared part of a deque.
#[derive(Debug)]
struct Deque<T: 'static> {
    top: OwnLine<AtomicUsize>,
    bottom: OwnLine<AtomicUsize>,
    alone: bool,
    slots: Box<[AtomicPtr<T>]>,
}

/// A value on its own cache line (on a pair of lines, because the prefetcher fetches pairs).
#[derive(Debug)]
#[repr(align(128))]
struct OwnLine<T>(T);

/// The result of an attempt to take.
#[derive(Debug, PartialEq, Eq)]
#[must_use]
enum Steal<T: 'static> {
    Nothing,
    /// Another taker got the item. A retry may succeed.
    Missed,
    Got(&'static T),
}

impl<T: Sync> Owner<T> {
    /// A deque with thieves. It has room for `slots` threads, a power of two.
    pub(in crate::runtime) fn new(slots: usize) -> (Owner<T>, Thief<T>) {
        let deque = Arc::new(Deque::new(slots, false));
        (Owner { deque: Arc::clone(&deque), _one_thread: PhantomData }, Thief(deque))
    }

    /// A deque without thieves.
    pub(in crate::runtime) fn alone(slots: usize) -> Owner<T> {
        Owner { deque: Arc::new(Deque::new(slots, true)), _one_thread: PhantomData }
    }

    /// Whether the deque is empty. Thieves may empty it at any time; only the owner adds items.
    #[inline]
    pub(in crate::runtime) fn is_empty(&self) -> bool {
        self.deque.is_empty()
    }

    /// Adds `item` as the newest. Returns it as the error if there is no room.
    #[inline]
    pub(in crate::runtime) fn push(&self, item: &'static T) -> Result<(), &'static T> {
        self.deque.push(item)
    }

    /// Takes the newest item.
    #[inline]
    pub(in crate::runtime) fn take_newest(&self) -> Option<&'static T> {
        self.deque.take_newest()
    }

    /// Takes the oldest item.
    #[inline]
    pub(in crate::runtime) fn take_oldest(&self) -> Option<&'static T> {
        self.deque.take_oldest_surely()
    }

    /// The position after the newest item, for [`has_taken`](Owner::has_taken).
    #[inline]
    pub(in crate::runtime) fn end(&self) -> usize {
        self.deque.bottom.0.load(Ordering::Relaxed)
    }

    /// Whether all items before position `end` have been taken.
    #[inline]
    pub(in crate::runtime) fn has_taken(&self, end: usize) -> bool {
        self.deque.top.0.load(Ordering::Relaxed).wrapping_sub(end) as isize >= 0
    }

    /// The item `after` places after the oldest. A hint for prefetching: it may be outdated, or null.
    #[inline]
    pub(in crate::runtime) fn hint(&self, after: usize) -> *const T {
        let top = self.deque.top.0.load(Ordering::Relaxed);
        self.deque.slot(top.wrapping_add(after)).load(Ordering::Relaxed)
    }
}

impl<T: Sync> Thief<T> {
    /// Whether the deque appeared empty. Other threads may change it at any time.
    #[inline]
    pub(in crate::runtime) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Takes the oldest item.
    #[inline]
    pub(in crate::runtime) fn steal(&self) -> Option<&'static T> {
        self.0.take_oldest_surely()
    }
}

impl<T> Deque<T> {
    fn new(slots: usize, alone: bool) -> Deque<T> {
        const { assert!(size_of::<&T>() == size_of::<*mut T>()) };
        assert!(slots.is_power_of_two());
        Deque {
            top: OwnLine(AtomicUsize::new(0)),
            bottom: OwnLine(AtomicUsize::new(0)),
            alone,
            slots: (0..slots).map(|_| AtomicPtr::default()).collect(),
        }
    }

    fn slot(&self, position: usize) -> &AtomicPtr<T> {
        &self.slots[position & (self.slots.len() - 1)]
    }

    #[inline]
    fn is_empty(&self) -> bool {
        let top = self.top.0.load(Ordering::Relaxed);
        self.bottom.0.load(Ordering::Relaxed).wrapping_sub(top) as isize <= 0
    }

    /// Called by the owner. Adds `item` as the newest. Returns it as the error if there is no room.
    #[inline]
    fn push(&self, item: &'static T) -> Result<(), &'static T> {
        let bottom = self.bottom.0.load(Ordering::Relaxed);
        // Acquire: pairs with the swap in `take_oldest`; the taker has read the slot before `top` passed it (rule 2).
        let top = self.top.0.load(Ordering::Acquire);
        if bottom.wrapping_sub(top) >= self.slots.len() {
            return Err(item);
        }
        self.slot(bottom).store(std::ptr::from_ref(item).cast_mut(), Ordering::Relaxed);
        // Release: pairs with the Acquire in `take_oldest`; publishes the slot and the thread's block.
        self.bottom.0.store(bottom.wrapping_add(1), Ordering::Release);
        Ok(())
    }

    /// Called by the owner. Takes the newest item.
    #[inline]
    fn take_newest(&self) -> Option<&'static T> {
        let bottom = self.bottom.0.load(Ordering::Relaxed);
        // Only the owner adds, and `top` never exceeds `bottom`: if they are equal, the deque is empty.
        if self.top.0.load(Ordering::Relaxed) == bottom {
            return None;
        }
        let newest = bottom.wrapping_sub(1);
        if self.alone {
            self.bottom.0.store(newest, Ordering::Relaxed);
            return Some(self.item(newest));
        }
        // Rule 5.
        self.lower_bottom(newest);
        let top = self.top.0.load(Ordering::SeqCst);
        let left = newest.wrapping_sub(top) as isize;
        if left > 0 {
            return Some(self.item(newest));
        }
        // SeqCst: pairs with the compare-and-swap in `take_oldest` (rule 1).
        let won = left == 0
            && self
                .top
                .0
                .compare_exchange(top, top.wrapping_add(1), Ordering::SeqCst, Ordering::Relaxed)
                .is_ok();
        let item = won.then(|| self.item(newest));
        // Release: pairs with the Acquire in `take_oldest`, like every store to `bottom` (rule 4). A thread that reads
        // this value also sees the slots.
        self.bottom.0.store(bottom, Ordering::Release);
        item
    }

    /// Stores with Release, and orders the store before all loads that follow.
    #[inline]
    fn lower_bottom(&self, bottom: usize) {
        #[cfg(not(loom))]
        // One `xchg`, which is cheaper than a store and a fence.
        self.bottom.0.swap(bottom, Ordering::SeqCst);
        #[cfg(loom)]
        {
            // Loom does not model the fence effect of a SeqCst swap, so it gets an explicit fence.
            self.bottom.0.store(bottom, Ordering::Release);
            fence(Ordering::SeqCst);
        }
    }

    /// Called by the owner or a thief. Takes the oldest item.
    #[inline]
    fn take_oldest(&self) -> Steal<T> {
        // Acquire: pairs with the compare-exchange of another taker, which is the one below.
        let top = self.top.0.load(Ordering::SeqCst);
        #[cfg(loom)]
        fence(Ordering::SeqCst);
        // SeqCst: pairs with `lower_bottom` (rule 5). Acquire: pairs with the Release in `push`.
        let bottom = self.bottom.0.load(Ordering::SeqCst);
        #[cfg(loom)]
        fence(Ordering::Acquire);
        if bottom.wrapping_sub(top) as isize <= 0 {
            return Steal::Nothing;
        }
        let item = self.slot(top).load(Ordering::Relaxed);
        if self.alone {
            self.top.0.store(top.wrapping_add(1), Ordering::Relaxed);
            // SAFETY: as below; nothing else takes (rule 3).
            return Steal::Got(unsafe { &*item });
        }
        // SeqCst: pairs with the compare-and-swap in `take_newest` (rule 1).
        match self.top.0.compare_exchange(top, top.wrapping_add(1), Ordering::SeqCst, Ordering::Relaxed) {
            // SAFETY: rule 1: this taker owns the slot, and `push` stored a reference in it.
            Ok(_) => Steal::Got(unsafe { &*item }),
            Err(_) => Steal::Missed,
        }
    }

    /// Retries as long as another taker gets the item.
    #[inline]
    fn take_oldest_surely(&self) -> Option<&'static T> {
        loop {
            match self.take_oldest() {
                Steal::Got(item) => return Some(item),
                Steal::Nothing => return None,
                Steal::Missed => {}
            }
        }
    }

    fn item(&self, position: usize) -> &'static T {
        let item = self.slot(position).load(Ordering::Relaxed);
        // SAFETY: this is called only for a slot that the owner has won, and into which `push` stored a reference.
        unsafe { &*item }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn numbers(count: u32) -> Vec<&'static u32> {
        (0..count).map(|n| &*Box::leak(Box::new(n))).collect()
    }

    #[test]
    fn the_owner_takes_the_newest_and_a_thief_the_oldest() {
        let ((deque, thief), items) = (Owner::new(4), numbers(5));
        items[..4].iter().for_each(|&item| deque.push(item).unwrap());
        assert_eq!(deque.push(items[4]), Err(items[4]), "it has room for four");
        assert_eq!(deque.take_newest(), Some(items[3]));
        assert_eq!(thief.steal(), Some(items[0]));
        deque.push(items[4]).unwrap();
        assert_eq!(deque.take_newest(), Some(items[4]));
        assert_eq!(deque.take_newest(), Some(items[2]));
        assert_eq!(deque.take_newest(), Some(items[1]));
        assert_eq!((deque.take_newest(), deque.take_oldest(), thief.steal()), (None, None, None));
        assert!(deque.is_empty() && thief.is_empty());
    }

    #[test]
    fn a_batch_is_taken_when_its_newest_is() {
        let ((deque, thief), items) = (Owner::new(4), numbers(3));
        items[..2].iter().for_each(|&item| deque.push(item).unwrap());
        let end = deque.end();
        deque.push(items[2]).unwrap();
        assert!(!deque.has_taken(end) && thief.steal().is_some());
        assert!(!deque.has_taken(end) && deque.take_oldest().is_some());
        assert!(deque.has_taken(end) && !deque.is_empty());
    }
}

#[cfg(all(test, loom))]
mod model {
    use loom::thread;

    use super::*;

    static ITEMS: [u8; 4] = [0, 1, 2, 3];

    /// The owner pushes four items into two slots and takes them, while two thieves steal. Each item is taken exactly
    /// once.
    #[test]
    fn every_thread_is_taken_exactly_once() {
        let mut builder = loom::model::Builder::new();
        builder.preemption_bound = Some(3);
        builder.check(|| {
            let (deque, thief) = Owner::new(2);
            let thieves: Vec<_> = (0..2)
                .map(|_| {
                    let thief = Thief(Arc::clone(&thief.0));
                    thread::spawn(move || match thief.0.take_oldest() {
                        Steal::Got(item) => vec![*item],
                        Steal::Nothing | Steal::Missed => Vec::new(),
                    })
                })
                .collect();
            let mut taken = Vec::new();
            for item in &ITEMS {
                if deque.push(item).is_err() {
                    taken.push(*item);
                }
                if *item == 1 {
                    taken.extend(deque.take_newest());
                }
            }
            taken.extend(std::iter::from_fn(|| deque.take_newest()));
            for thief in thieves {
                taken.extend(thief.join().unwrap());
            }
            taken.extend(std::iter::from_fn(|| deque.take_newest()));
            taken.sort_unstable();
            assert_eq!(taken, ITEMS);
        });
    }
}
