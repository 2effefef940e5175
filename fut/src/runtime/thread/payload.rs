//! The storage for a user thread's closure, and later its result, in the block of the thread. A value that is too large
//! is boxed, and the storage holds the box.

use std::{
    cell::UnsafeCell,
    mem::{MaybeUninit, align_of, size_of},
};

/// Size in bytes: a closure with a dozen captured words needs no allocation.
const LEN: usize = 96;

/// The storage. Does not drop its contents.
#[repr(C, align(16))]
pub(super) struct Payload(UnsafeCell<MaybeUninit<[u8; LEN]>>);

impl Payload {
    pub(super) fn new() -> Payload {
        Payload(UnsafeCell::new(MaybeUninit::uninit()))
    }

    const fn fits<V>() -> bool {
        size_of::<V>() <= LEN && align_of::<V>() <= 16
    }

    /// Stores `value`, overwriting the previous contents without dropping them.
    ///
    /// # Safety
    /// Nothing else uses the storage, and its contents are no longer needed.
    #[inline]
    pub(super) unsafe fn put<V>(&self, value: V) {
        let place = self.0.get();
        if const { Payload::fits::<V>() } {
            // SAFETY: the value fits and is aligned; only the caller uses the storage.
            unsafe { place.cast::<V>().write(value) };
        } else {
            let boxed = Box::into_raw(Box::new(value));
            // SAFETY: a pointer fits and is aligned; only the caller uses the storage.
            unsafe { place.cast::<*mut V>().write(boxed) };
        }
    }

    /// Takes the value out.
    ///
    /// # Safety
    /// A `V` was stored last, and has not been taken since; nothing else uses the storage.
    #[inline]
    pub(super) unsafe fn take<V>(&self) -> V {
        let place = self.0.get();
        if const { Payload::fits::<V>() } {
            // SAFETY: the caller guarantees it.
            return unsafe { place.cast::<V>().read() };
        }
        // SAFETY: the caller guarantees it; `put` wrote a pointer.
        let boxed = unsafe { place.cast::<*mut V>().read() };
        // SAFETY: `put` made the pointer from a box, and this is the only copy.
        *unsafe { Box::from_raw(boxed) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_and_large_values_come_back() {
        let payload = Payload::new();
        // SAFETY: the value is put and taken in turn, by one thread.
        unsafe { payload.put([7_u64; 12]) };
        // SAFETY: as above.
        assert_eq!(unsafe { payload.take::<[u64; 12]>() }, [7; 12]);
        // SAFETY: as above.
        unsafe { payload.put((String::from("large"), [9_u64; 200])) };
        // SAFETY: as above.
        let (text, numbers) = unsafe { payload.take::<(String, [u64; 200])>() };
        assert_eq!((text.as_str(), numbers), ("large", [9; 200]));
    }
}
