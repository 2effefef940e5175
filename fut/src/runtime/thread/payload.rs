//! The place in a user thread's block for what it shall run, and later for what came out: the closure, then the
//! result. What is too large stands in a box, and the box in the place.

use std::{
    cell::UnsafeCell,
    mem::{MaybeUninit, align_of, size_of},
};

/// Bytes of the place: a closure with a dozen captured words needs no allocation.
const LEN: usize = 96;

/// See above. Does not drop what is in it.
#[repr(C, align(16))]
pub(super) struct Payload(UnsafeCell<MaybeUninit<[u8; LEN]>>);

impl Payload {
    pub(super) fn new() -> Payload {
        Payload(UnsafeCell::new(MaybeUninit::uninit()))
    }

    const fn fits<V>() -> bool {
        size_of::<V>() <= LEN && align_of::<V>() <= 16
    }

    /// Puts `value` in, over whatever was there.
    ///
    /// # Safety
    /// Nobody else uses the place, and nothing in it is needed any more.
    #[inline]
    pub(super) unsafe fn put<V>(&self, value: V) {
        let place = self.0.get();
        if const { Payload::fits::<V>() } {
            // SAFETY: it fits, is aligned, and is the caller's.
            unsafe { place.cast::<V>().write(value) };
        } else {
            let boxed = Box::into_raw(Box::new(value));
            // SAFETY: a pointer fits and is aligned; the place is the caller's.
            unsafe { place.cast::<*mut V>().write(boxed) };
        }
    }

    /// Takes what is in.
    ///
    /// # Safety
    /// A `V` was put in last, and was not taken; nothing else uses the place.
    #[inline]
    pub(super) unsafe fn take<V>(&self) -> V {
        let place = self.0.get();
        if const { Payload::fits::<V>() } {
            // SAFETY: as the caller vouches.
            return unsafe { place.cast::<V>().read() };
        }
        // SAFETY: as the caller vouches; `put` wrote a pointer.
        let boxed = unsafe { place.cast::<*mut V>().read() };
        // SAFETY: `put` made it from a box, and nothing else has it.
        *unsafe { Box::from_raw(boxed) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_and_large_values_come_back() {
        let payload = Payload::new();
        // SAFETY: put and taken in turn, by one thread.
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
