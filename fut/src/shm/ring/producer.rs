//! The producer's side of a ring: beginning one, making room, losing. Reserving and committing is `probe::emit`'s.

use std::{
    marker::PhantomData,
    ptr::NonNull,
    sync::atomic::{AtomicU32, AtomicU64, Ordering},
};

use sigmund_model::{Lwp, Pid, Ticks};

use super::{Control, OFFSET_MASK, PACKET_LEN, Ring, RingState};
use crate::{
    shm::local::local_fetch_add,
    trace::{PACKET_HEAD_LEN, PACKET_MAGIC},
};

/// Where the cursor is put when a record is lost: behind `PACKET_LEN`, so that rule 4 is not taken for a first,
/// and low, so that counting on from there never reaches the sequence.
const FULL: u64 = PACKET_LEN as u64 + 8;

impl Control {
    pub(crate) const fn zero() -> Control {
        Control {
            cursor: AtomicU64::new(0),
            base: AtomicU64::new(0),
            mask: AtomicU64::new(0),
            cpu: AtomicU64::new(0),
            mounted: AtomicU64::new(0),
            lost: AtomicU64::new(0),
            pid: AtomicU32::new(0),
            lwp: AtomicU32::new(0),
            state_at: AtomicU64::new(0),
            released: AtomicU64::new(0),
            _drain_end: [0; 7],
        }
    }
}

/// What making room came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub(crate) enum Room {
    /// There is a packet: reserve again.
    TryAgain,
    /// There is none: the record was counted as lost.
    Lost,
}

impl<'arena> Ring<'arena> {
    /// The ring that a probe found through its thread.
    ///
    /// # Safety
    /// `control` points to a control block that `begin` has filled in, in memory that stays mapped for `'arena`.
    pub(crate) unsafe fn of_producer(control: NonNull<Control>) -> Ring<'arena> {
        // SAFETY: the caller vouches for the pointer.
        let fields = unsafe { control.as_ref() };
        let base = fields.base.load(Ordering::Relaxed) as *mut u8;
        let count = fields.mask.load(Ordering::Relaxed) + 1;
        // `begin` stored these addresses, which are not null; the block itself stands in otherwise.
        let packets = NonNull::new(base).unwrap_or(control.cast());
        let state =
            NonNull::new(fields.state_at.load(Ordering::Relaxed) as *mut AtomicU32).unwrap_or(control.cast());
        Ring { control, state, packets, count, _arena: PhantomData }
    }

    /// Changes the state from `from` to `to`, if it is `from`.
    pub(crate) fn take_over(&self, from: RingState, to: RingState) -> bool {
        let state = self.state_word();
        // AcqRel: pairs with `set_state`; the winner sees what the one before left.
        state.compare_exchange(from as u32, to as u32, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }

    /// Fills in the control block and the first packet for an LWP, in the state `Busy`.
    pub(crate) fn begin(&self, pid: Pid, lwp: Lwp, cpu: NonNull<u32>, now: Ticks) {
        let control = self.control();
        control.base.store(self.packets.as_ptr() as u64, Ordering::Relaxed);
        control.mask.store(self.count - 1, Ordering::Relaxed);
        control.state_at.store(self.state.as_ptr() as u64, Ordering::Relaxed);
        control.cpu.store(cpu.as_ptr() as u64, Ordering::Relaxed);
        control.mounted.store(0, Ordering::Relaxed);
        control.lost.store(0, Ordering::Relaxed);
        control.pid.store(pid.0, Ordering::Relaxed);
        control.lwp.store(lwp.0, Ordering::Relaxed);
        control.released.store(0, Ordering::Relaxed);
        self.open_packet(0, now);
        control.cursor.store(PACKET_HEAD_LEN as u64, Ordering::Relaxed);
    }

    /// Writes the head of a packet that is about to be filled (rule 5).
    fn open_packet(&self, sequence: u64, now: Ticks) {
        let (control, head) = (self.control(), self.head(sequence));
        head.sequence.store(sequence, Ordering::Relaxed);
        head.first_tick.store(now.0, Ordering::Relaxed);
        head.thread.store(control.mounted.load(Ordering::Relaxed), Ordering::Relaxed);
        head.lost.store(control.lost.load(Ordering::Relaxed), Ordering::Relaxed);
        head.magic.store(u32::from_le_bytes(PACKET_MAGIC), Ordering::Relaxed);
    }

    /// Address of a granted record.
    pub(crate) fn place(&self, sequence: u64, offset: usize) -> *mut u64 {
        self.word(sequence, offset).as_ptr()
    }

    /// What to do when the reservation that began at `position` was not granted (rules 4 to 6).
    pub(crate) fn make_room(&self, position: u64, now: Ticks) -> Room {
        let control = self.control();
        let (sequence, offset) = (position >> 32, position & OFFSET_MASK);
        if offset <= PACKET_LEN as u64 {
            // Release: pairs with the Acquire in `closed_end`.
            self.head(sequence).end.store(offset as u32, Ordering::Release);
        }
        let current = control.cursor.load(Ordering::Relaxed);
        if current >> 32 != sequence {
            return Room::TryAgain;
        }
        let next = sequence + 1;
        // Acquire: pairs with the Release in `release`; the zeros of the packet are seen.
        let has_packet = next - control.released.load(Ordering::Acquire) < self.count;
        if has_packet {
            self.open_packet(next, now);
        } else {
            local_fetch_add(&control.lost, 1);
        }
        let new = if has_packet { next << 32 | PACKET_HEAD_LEN as u64 } else { sequence << 32 | FULL };
        // Release: pairs with the Acquire in `cursor_sequence`; publishes the new packet's head. That the swap
        // fails when a handler came between is all that is asked of it.
        let _swapped = control.cursor.compare_exchange(current, new, Ordering::Release, Ordering::Relaxed);
        if has_packet { Room::TryAgain } else { Room::Lost }
    }
}
