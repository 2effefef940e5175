//! The producer's side of a ring: beginning one, making room, losing. Reserving and committing is `probe::emit`'s.

use std::{marker::PhantomData, ptr::NonNull, sync::atomic::Ordering};

use sigmund_model::{Lwp, Pid, Ticks};

use super::{
    super::platform::{
        AtomicU32, AtomicU64, PACKET_HEAD_LEN, PACKET_LEN, fence, interruption_point, local_fetch_add,
    },
    Control, OFFSET_MASK, Ring, RingState,
};

/// Where the cursor is put when a record is lost: behind `PACKET_LEN`, so that rule 4 is not taken for a first,
/// and low, so that counting on from there never reaches the sequence.
const FULL: u64 = PACKET_LEN as u64 + 8;

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
        let base = fields.base.load(Ordering::Relaxed) as *mut AtomicU64;
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
    pub(crate) fn begin(&self, overwrites: bool, pid: Pid, lwp: Lwp, cpu: NonNull<u32>, now: Ticks) {
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
        control.overwrites.store(u64::from(overwrites), Ordering::Relaxed);
        control.claimed.store(1, Ordering::Relaxed);
        control.closed_bytes.store(0, Ordering::Relaxed);
        control.users.store(control.users.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        if overwrites {
            // Those of the LWP before.
            (0..self.count).for_each(|sequence| self.head(sequence).label.store(0, Ordering::Relaxed));
            self.reopen_packet(0, now);
        } else {
            self.write_head(0, now);
        }
        control.cursor.store(PACKET_HEAD_LEN as u64, Ordering::Relaxed);
    }

    /// Writes the head of a packet that is about to be filled (rule 5).
    fn write_head(&self, sequence: u64, now: Ticks) {
        let (control, head) = (self.control(), self.head(sequence));
        head.first_tick.store(now.0, Ordering::Relaxed);
        head.thread.store(control.mounted.load(Ordering::Relaxed), Ordering::Relaxed);
        head.lost.store(control.lost.load(Ordering::Relaxed), Ordering::Relaxed);
        head.bytes_before.store(control.closed_bytes.load(Ordering::Relaxed), Ordering::Relaxed);
        interruption_point();
        // Release: pairs with the Acquire in `snapshot_packet`; the packet is zeros and a head.
        head.label.store(sequence + 1, Ordering::Release);
    }

    /// Makes the oldest packet the one with this number (rule 9).
    fn reopen_packet(&self, sequence: u64, now: Ticks) {
        // Release: pairs with the Acquire of the label in `snapshot_packet`, which then sees that it was claimed.
        self.head(sequence).label.store(0, Ordering::Release);
        // Release: pairs with the Acquire fence in `snapshot_packet`; who copied a zero sees that the label is off.
        fence(Ordering::Release);
        interruption_point();
        self.wipe(sequence);
        interruption_point();
        self.write_head(sequence, now);
    }

    /// Address of a granted record.
    pub(crate) fn place(&self, sequence: u64, offset: usize) -> *mut u64 {
        self.word_at(sequence, offset).as_ptr().cast()
    }

    /// What to do when the reservation that began at `position` was not granted (rules 4 to 6).
    pub(crate) fn make_room(&self, position: u64, now: Ticks) -> Room {
        let control = self.control();
        let (sequence, offset) = (position >> 32, position & OFFSET_MASK);
        interruption_point();
        if offset <= PACKET_LEN as u64 {
            local_fetch_add(&control.closed_bytes, offset - PACKET_HEAD_LEN as u64);
            interruption_point();
            // Release: pairs with the Acquire in `closed_end`.
            self.head(sequence).end.store(offset, Ordering::Release);
        }
        interruption_point();
        let current = control.cursor.load(Ordering::Relaxed);
        if current >> 32 != sequence {
            return Room::TryAgain;
        }
        interruption_point();
        if control.overwrites.load(Ordering::Relaxed) != 0 {
            self.take_oldest(current, now);
            return Room::TryAgain;
        }
        let next = sequence + 1;
        // Acquire: pairs with the Release in `release`; the zeros of the packet are seen.
        let has_packet = next - control.released.load(Ordering::Acquire) < self.count;
        interruption_point();
        if has_packet {
            self.write_head(next, now);
        } else {
            local_fetch_add(&control.lost, 1);
        }
        let new = if has_packet { next << 32 | PACKET_HEAD_LEN as u64 } else { sequence << 32 | FULL };
        interruption_point();
        let _swapped = self.swap_cursor(current, new);
        if has_packet { Room::TryAgain } else { Room::Lost }
    }

    /// Opens a packet in the place of the oldest (rule 9).
    fn take_oldest(&self, current: u64, now: Ticks) {
        let next = local_fetch_add(&self.control().claimed, 1);
        interruption_point();
        self.reopen_packet(next, now);
        interruption_point();
        if !self.swap_cursor(current, next << 32 | PACKET_HEAD_LEN as u64) {
            interruption_point();
            self.head(next).end.store(PACKET_HEAD_LEN as u64, Ordering::Release);
        }
    }

    /// `false` when a handler came between, and has moved it already.
    fn swap_cursor(&self, current: u64, new: u64) -> bool {
        let cursor = &self.control().cursor;
        // Release: pairs with the Acquire in `position`; publishes the new packet's head.
        cursor.compare_exchange(current, new, Ordering::Release, Ordering::Relaxed).is_ok()
    }
}
