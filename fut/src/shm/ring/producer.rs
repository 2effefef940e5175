//! The producer's side of a ring: beginning a ring, opening packets, counting losses. Reserving and committing are in
//! `probe::emit`.

use std::{marker::PhantomData, ops::Deref, ptr::NonNull, sync::atomic::Ordering};

use sigmund_model::{Lwp, Pid, Ticks};

use super::{
    super::platform::{
        AtomicU32, AtomicU64, PACKET_HEAD_LEN, PACKET_LEN, fence, interruption_point, local_fetch_add,
    },
    Control, OFFSET_MASK, Ring, RingState,
};

/// The cursor's offset after a record was lost. It is greater than `PACKET_LEN`, so that the reservation is not taken
/// for the first one of rule 4. It is also low, so that further additions never overflow into the sequence.
const FULL: u64 = PACKET_LEN as u64 + 8;

/// The result of [`Producer::make_room`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub(crate) enum Room {
    /// There is a new packet: reserve again.
    TryAgain,
    /// There is no packet: the record was counted as lost.
    Lost,
}

/// The handle of the LWP that owns a ring (rule 1). The LWP's signal handlers may create their own handles. A handle
/// cannot be sent to another thread, nor shared with it.
pub(crate) struct Producer<'arena> {
    ring: Ring<'arena>,
    _of_its_lwp: PhantomData<*const ()>,
}

/// Rule 1 as a type: these lines do not compile if a producer can be copied, sent or shared.
const _: () = {
    trait AmbiguousIf<T> {
        fn checked() {}
    }
    struct Copied;
    struct Sent;
    struct Shared;
    impl<T> AmbiguousIf<()> for T {}
    impl<T: Copy> AmbiguousIf<Copied> for T {}
    impl<T: Send> AmbiguousIf<Sent> for T {}
    impl<T: Sync> AmbiguousIf<Shared> for T {}
    let _ = <Producer<'static> as AmbiguousIf<_>>::checked;
};

impl<'arena> Deref for Producer<'arena> {
    type Target = Ring<'arena>;

    fn deref(&self) -> &Ring<'arena> {
        &self.ring
    }
}

impl<'arena> Ring<'arena> {
    /// Takes a free ring and sets it to `Busy`. `None` if the ring is in use.
    pub(crate) fn take_free(self) -> Option<Producer<'arena>> {
        self.take_over(RingState::Free)
    }

    /// Takes the ring of an ended LWP, in overwrite mode. In discard mode such a ring belongs to the drain.
    pub(crate) fn take_ended(self) -> Option<Producer<'arena>> {
        let overwrites = self.control().overwrites.load(Ordering::Relaxed) != 0;
        if overwrites { self.take_over(RingState::Ended) } else { None }
    }

    fn take_over(self, from: RingState) -> Option<Producer<'arena>> {
        let busy = RingState::Busy as u32;
        // AcqRel: pairs with `set_state`; makes the writes of the previous owner visible.
        let taken =
            self.state_word().compare_exchange(from as u32, busy, Ordering::AcqRel, Ordering::Relaxed);
        taken.is_ok().then_some(Producer { ring: self, _of_its_lwp: PhantomData })
    }

    /// The tick at which the LWP of the ring ended.
    pub(crate) fn ended_at(&self) -> u64 {
        self.control().ended_at.load(Ordering::Relaxed)
    }
}

impl<'arena> Producer<'arena> {
    /// The ring of the calling LWP, from its control block.
    ///
    /// # Safety
    /// `control` points to a control block that `begin` has filled in for the calling LWP. Its memory stays mapped for
    /// `'arena`. The LWP has not ended the ring.
    pub(crate) unsafe fn of_lwp(control: NonNull<Control>) -> Producer<'arena> {
        // SAFETY: the caller guarantees that the pointer is valid.
        let fields = unsafe { control.as_ref() };
        let base = fields.base.load(Ordering::Relaxed) as *mut AtomicU64;
        let count = fields.mask.load(Ordering::Relaxed) + 1;
        // `begin` stored these addresses, which are not null. The address of the control block is only a fallback.
        let packets = NonNull::new(base).unwrap_or(control.cast());
        let state =
            NonNull::new(fields.state_at.load(Ordering::Relaxed) as *mut AtomicU32).unwrap_or(control.cast());
        let ring = Ring { control, state, packets, count, _arena: PhantomData };
        Producer { ring, _of_its_lwp: PhantomData }
    }

    /// The ring of a model's producer.
    ///
    /// # Safety
    /// The calling thread has taken the ring.
    #[cfg(all(test, loom))]
    #[allow(dead_code, reason = "the ring that is not the model's has no use for it")]
    pub(crate) unsafe fn of_ring(ring: Ring<'arena>) -> Producer<'arena> {
        Producer { ring, _of_its_lwp: PhantomData }
    }

    /// The control block of the ring, to which probes write.
    pub(crate) fn control(&self) -> &'arena Control {
        self.ring.control()
    }

    /// Sets the state to `Live`. Called after `begin`.
    pub(crate) fn go_live(&self) {
        self.set_state(RingState::Live);
    }

    /// Sets the state to `Ended`: the LWP no longer writes to the ring.
    pub(crate) fn end(self, now: Ticks) {
        self.control().ended_at.store(now.0, Ordering::Relaxed);
        self.set_state(RingState::Ended);
    }

    /// Frees the ring without using it. Called before `begin`.
    pub(crate) fn give_back(self) {
        self.set_state(RingState::Free);
    }

    /// Fills in the control block and the first packet for an LWP. The state stays `Busy`.
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
        control.users.store(control.users.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
        if overwrites {
            // Clears the labels of the previous LWP.
            (0..self.count).for_each(|sequence| self.head(sequence).label.store(0, Ordering::Relaxed));
            self.reopen_packet(0, now);
        } else {
            self.write_head(0, now);
        }
        control.cursor.store(PACKET_HEAD_LEN as u64, Ordering::Relaxed);
    }

    /// Writes the header of a packet that is being opened (rule 5).
    fn write_head(&self, sequence: u64, now: Ticks) {
        let (control, head) = (self.control(), self.head(sequence));
        head.first_tick.store(now.0, Ordering::Relaxed);
        head.thread.store(control.mounted.load(Ordering::Relaxed), Ordering::Relaxed);
        head.lost.store(control.lost.load(Ordering::Relaxed), Ordering::Relaxed);
        head.bytes_before.store(control.closed_bytes.load(Ordering::Relaxed), Ordering::Relaxed);
        interruption_point();
        // Release: pairs with the Acquire in `snapshot_packet`; publishes the header and the zeros of the packet.
        head.label.store(sequence + 1, Ordering::Release);
    }

    /// Clears the oldest packet and gives it this number (rule 9).
    fn reopen_packet(&self, sequence: u64, now: Ticks) {
        // Release: pairs with the Acquire of the label in `snapshot_packet`, which then sees that the packet was
        // claimed.
        self.head(sequence).label.store(0, Ordering::Release);
        // Release: pairs with the Acquire fence in `snapshot_packet`. A reader that has copied a zero also sees the
        // cleared label.
        fence(Ordering::Release);
        interruption_point();
        // SAFETY: rule 9: this LWP has claimed the packet, or begins the ring.
        unsafe { self.wipe(sequence) };
        interruption_point();
        self.write_head(sequence, now);
    }

    /// Address of a granted record.
    pub(crate) fn place(&self, sequence: u64, offset: usize) -> *mut u64 {
        self.word_at(sequence, offset).as_ptr().cast()
    }

    /// Handles a reservation at `position` that was not granted (rules 4 to 6).
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
        // Acquire: pairs with the Release in `release`; makes the zeros of the packet visible.
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

    /// Opens a packet by overwriting the oldest (rule 9).
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

    /// Moves the cursor. `false` if a handler has interrupted and already moved it.
    fn swap_cursor(&self, current: u64, new: u64) -> bool {
        let cursor = &self.control().cursor;
        // Release: pairs with the Acquire in `position`; publishes the new packet's header.
        cursor.compare_exchange(current, new, Ordering::Release, Ordering::Relaxed).is_ok()
    }
}
