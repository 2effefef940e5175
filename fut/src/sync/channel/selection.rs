//! Which of several operations was selected, when a thread waits for all of them.
//!
//! ```text
//!   OPEN ──▶ index    by the other side of an operation, under the lock of its channel, with the waiter in its list
//!      └───▶ WITHDRAWN    by the thread itself: it tries again, or its time is over
//! ```
//! 1. The transition from OPEN happens once, so at most one operation is selected. A thread that finds another state
//!    than OPEN removes the waiter from the list, and tries the next waiter.
//! 2. The other side moves the value and answers the waiter before it releases the lock. So once the selecting thread
//!    has held that lock, it finds the operation complete.
//! 3. The thread removes its waiters from all lists, each under the lock of its channel, before the selection ceases to
//!    exist. So a waiter in a list has a valid selection.

use crate::model_check::atomic::{AtomicUsize, Ordering};

const OPEN: usize = usize::MAX;
const WITHDRAWN: usize = usize::MAX - 1;

/// The state word, on the stack of the thread that selects.
#[derive(Debug)]
pub(super) struct Selection(AtomicUsize);

/// One operation of a selection. Stored in the waiter of the operation.
#[derive(Clone, Copy, Debug)]
pub struct Choice {
    selection: *const Selection,
    index: usize,
}

// SAFETY: the selection is `Sync`, and valid while the choice is used (`claim`).
unsafe impl Send for Choice {}

impl Selection {
    pub(super) fn new() -> Selection {
        Selection(AtomicUsize::new(OPEN))
    }

    /// The choice for operation number `index`.
    pub(super) fn choice(&self, index: usize) -> Choice {
        Choice { selection: self, index }
    }

    /// The number of the selected operation.
    pub(super) fn selected(&self) -> Option<usize> {
        // Relaxed: the lock of the channel orders what the other side did (rule 2).
        Some(self.0.load(Ordering::Relaxed)).filter(|index| *index < WITHDRAWN)
    }

    /// Withdraws. `false` if an operation was selected before.
    #[must_use]
    pub(super) fn withdraw(&self) -> bool {
        self.0.compare_exchange(OPEN, WITHDRAWN, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }
}

impl Choice {
    /// Selects this operation. `false` if another one was selected, or the thread has withdrawn.
    ///
    /// # Safety
    /// The waiter with this choice is in a list, whose lock the caller holds (rule 3).
    #[must_use]
    pub(super) unsafe fn claim(self) -> bool {
        // SAFETY: the caller guarantees it.
        let selection = unsafe { &*self.selection };
        // Relaxed: as in `selected`.
        selection.0.compare_exchange(OPEN, self.index, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }

    /// Whether this choice belongs to a selection other than that of `own`, and can still be selected.
    ///
    /// # Safety
    /// As for [`claim`](Choice::claim).
    pub(super) unsafe fn is_open_to(self, own: Choice) -> bool {
        // SAFETY: the caller guarantees it.
        let state = unsafe { &*self.selection }.0.load(Ordering::Relaxed);
        !std::ptr::eq(self.selection, own.selection) && state == OPEN
    }
}
