//! The values in a channel, in blocks. Growing moves no value, and allocates nothing under the lock of the channel.
//!
//! ```text
//!   front          middle                    back           spare
//!   | 1 2 3 |      | 4 … 19 | 20 … 51 |      | 52 53 |      |       |
//!   pop ◀──                                      ◀── push
//! ```
//! 1. While there are few values, all are in `front`, which is a ring. When `front` is full, values go to `back`, until
//!    `front` is empty and the next block takes its place.
//! 2. If there are values, there are some in `front`.
//! 3. When `back` is full, it becomes the last block of `middle`, and the spare block takes its place. If there is no
//!    spare block, a value can be pushed only after [`Room`] was added.

use std::{collections::VecDeque, mem};

/// Number of values in the first block.
const FIRST: usize = 16;
/// Maximum number of values in a block, and maximum size of their memory in bytes. The smaller limit applies.
const MOST: usize = 4096;
const MOST_BYTES: usize = 256 << 10;

pub(super) struct Buffer<T> {
    front: VecDeque<T>,
    middle: VecDeque<VecDeque<T>>,
    back: VecDeque<T>,
    /// Empty.
    spare: VecDeque<T>,
    /// Empty, and no longer needed.
    emptied: VecDeque<T>,
    len: usize,
}

/// Capacities that a buffer needs for another value.
#[derive(Clone, Copy, Debug)]
pub(super) struct Needs {
    block: usize,
    middle: usize,
}

/// Memory for a buffer.
pub(super) struct Room<T> {
    block: VecDeque<T>,
    middle: VecDeque<VecDeque<T>>,
}

impl Needs {
    /// Allocates this memory. Must not be called while the lock is held.
    pub(super) fn allocate<T>(self) -> Room<T> {
        Room { block: VecDeque::with_capacity(self.block), middle: VecDeque::with_capacity(self.middle) }
    }
}

impl<T> Buffer<T> {
    pub(super) fn new() -> Buffer<T> {
        Buffer {
            front: VecDeque::new(),
            middle: VecDeque::new(),
            back: VecDeque::new(),
            spare: VecDeque::new(),
            emptied: VecDeque::new(),
            len: 0,
        }
    }

    #[inline]
    pub(super) fn len(&self) -> usize {
        self.len
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The capacities that must be added before another value can be pushed. The buffer holds at most `capacity`
    /// values.
    #[inline]
    pub(super) fn needs(&self, capacity: usize) -> Option<Needs> {
        let is_in_front = self.front.len() == self.len && self.front.len() < self.front.capacity();
        if is_in_front || self.back.len() < self.back.capacity() {
            return None;
        }
        self.needs_block(capacity)
    }

    #[cold]
    fn needs_block(&self, capacity: usize) -> Option<Needs> {
        let is_middle_full = !self.back.is_empty() && self.middle.len() == self.middle.capacity();
        if self.spare.capacity() > 0 && !is_middle_full {
            return None;
        }
        let most = (MOST_BYTES / size_of::<T>().max(1)).clamp(FIRST, MOST);
        let middle = if is_middle_full { 2 * self.middle.len() + 4 } else { 0 };
        Some(Needs { block: self.len.clamp(FIRST, most).min(capacity), middle })
    }

    /// Adds the memory that `needs` has requested. Returns the unused part, which must be dropped while the lock is not
    /// held.
    #[must_use = "it must not be dropped under the lock"]
    pub(super) fn add(&mut self, mut room: Room<T>) -> Room<T> {
        if room.middle.capacity() > self.middle.capacity() {
            room.middle.append(&mut self.middle);
            mem::swap(&mut room.middle, &mut self.middle);
        }
        let place = if self.front.capacity() == 0 { &mut self.front } else { &mut self.spare };
        if room.block.capacity() > place.capacity() {
            mem::swap(&mut room.block, place);
        }
        room
    }

    /// Appends a value. Allocates nothing if `needs` was `None`.
    #[inline]
    pub(super) fn push(&mut self, value: T) {
        if self.front.len() == self.len && self.front.len() < self.front.capacity() {
            self.front.push_back(value);
        } else {
            if self.back.len() == self.back.capacity() {
                self.next_back();
            }
            self.back.push_back(value);
        }
        self.len += 1;
    }

    #[cold]
    fn next_back(&mut self) {
        let full = mem::replace(&mut self.back, mem::take(&mut self.spare));
        if !full.is_empty() {
            self.middle.push_back(full);
        }
    }

    /// Removes the oldest value.
    #[inline]
    pub(super) fn pop(&mut self) -> Option<T> {
        let value = self.front.pop_front()?;
        self.len -= 1;
        if self.front.is_empty() && self.len > 0 {
            self.next_front();
        }
        Some(value)
    }

    #[cold]
    fn next_front(&mut self) {
        let next = self.middle.pop_front().unwrap_or_else(|| mem::take(&mut self.back));
        let mut emptied = mem::replace(&mut self.front, next);
        if emptied.capacity() > self.spare.capacity() {
            mem::swap(&mut emptied, &mut self.spare);
        }
        if emptied.capacity() > 0 {
            self.emptied = emptied;
        }
    }

    /// Whether there is an empty block to drop while the lock is not held. Checked after each `pop`.
    #[inline]
    pub(super) fn has_emptied(&self) -> bool {
        self.emptied.capacity() > 0 && size_of::<T>() > 0
    }

    #[cold]
    pub(super) fn take_emptied(&mut self) -> VecDeque<T> {
        mem::take(&mut self.emptied)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    /// Pushes and pops like a channel, and counts the blocks.
    struct Channel {
        buffer: Buffer<u32>,
        capacity: usize,
        allocated: usize,
    }

    impl Channel {
        fn push(&mut self, value: u32) {
            while let Some(needs) = self.buffer.needs(self.capacity) {
                self.allocated += 1;
                drop(self.buffer.add(needs.allocate()));
            }
            let before = [self.buffer.front.capacity(), self.buffer.back.capacity()];
            let middle = self.buffer.middle.capacity();
            self.buffer.push(value);
            assert!(middle == self.buffer.middle.capacity() && before[0] == self.buffer.front.capacity());
        }
    }

    #[test]
    fn values_keep_their_order_and_blocks_are_reused() {
        for capacity in [1, 3, 17, 100, usize::MAX] {
            let mut channel = Channel { buffer: Buffer::new(), capacity, allocated: 0 };
            let (mut pushed, mut popped, mut dice) = (0, 0, 7_u32);
            for round in 0..2_000 {
                dice = dice.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                for _ in 0..(dice >> 8) % if round % 50 == 0 { 20_000 } else { 40 } {
                    if channel.buffer.len() < capacity {
                        channel.push(pushed);
                        pushed += 1;
                    }
                }
                dice = dice.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                for _ in 0..(dice >> 8) % if round % 50 == 25 { 30_000 } else { 40 } {
                    let value = channel.buffer.pop();
                    assert!(channel.buffer.take_emptied().is_empty());
                    assert_eq!(value, (popped < pushed).then_some(popped));
                    popped += u32::from(value.is_some());
                }
                assert_eq!(channel.buffer.len(), (pushed - popped) as usize);
                assert_eq!(channel.buffer.is_empty(), pushed == popped);
            }
            if capacity <= 17 {
                assert!(channel.allocated <= 4, "{capacity}: {}", channel.allocated);
            }
        }
    }

    #[test]
    fn values_without_a_size_need_no_block() {
        let mut buffer = Buffer::new();
        for _ in 0..1000 {
            assert!(buffer.needs(usize::MAX).is_none());
            buffer.push(());
        }
        assert_eq!((0..2000).filter(|_| buffer.pop().is_some()).count(), 1000);
        assert!(!buffer.has_emptied());
    }
}
