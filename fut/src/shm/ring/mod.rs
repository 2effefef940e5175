//! The ring of packets of one LWP: how probes reserve and commit records, and how the drain takes them out.
//!
//! These are the rules of the protocol. The "producer" is the LWP that owns the ring, including the signal handlers
//! that run on it. Handlers interrupt the probes and each other, and each runs to its end before the interrupted one
//! continues. The "drain" is one other thread, usually of another process.
//!
//! Each side is a type. [`Ring`] is for any reader: it only loads atomics. A `Producer` is for the LWP that took the
//! ring, and cannot leave that LWP (it is neither `Copy`, `Send` nor `Sync`). It is created by taking a free ring, and
//! again from the LWP's thread-local in every slow probe. A `Consumer` is for the only drain, and its methods take it
//! by `&mut`.
//!
//! 1. `cursor` is `sequence << 32 | offset`: the packet being filled, and the next free byte in it. Only the producer
//!    writes it. A record is *reserved* by adding its length with one `xadd`, which no handler can split.
//! 2. A reservation whose end is at most [`PACKET_LEN`] is *granted*: only the reserver accesses these bytes.
//! 3. A granted record is written in this order: the header word, the parameters, the tick. A tick is never 0, and a
//!    free packet is all zeros. So **a record with a tick is committed**. A record without a tick is still being
//!    written, or was never finished. Its header contains its length.
//! 4. The first reservation that is not granted begins at an offset of at most `PACKET_LEN`; later ones begin after it.
//!    The first one writes its offset to `end` of the packet: the reserved part is now final.
//! 5. A reservation that is not granted opens the next packet, if there is one. It moves the cursor there by a
//!    compare-and-swap on `cursor`. If a handler has done so meanwhile, the swap fails and the reservation is retried.
//!    The header of the packet is written before the swap.
//! 6. If there is no next packet, the record is *lost*, and counted in `lost`. Nothing ever waits.
//!
//! In discard mode, the next packet is available when the drain has released it:
//!
//! 7. The drain takes packet `s` when `cursor` has left it, `end` is set, and every record before `end` is committed.
//!    It copies the packet, fills it with zeros, and releases it by storing `s + 1` to `released`. Two openers of one
//!    packet write the same header, except the first tick and the losses; for these, either value is correct. A record
//!    that is never committed while its LWP exists (a handler left a probe by `longjmp`) stops the drain at that
//!    packet.
//! 8. After the producer has ended, the drain also takes the rest. Committed records are kept, holes are counted.
//!
//! Where a recording is cut into parts, the drain also copies what it cannot take yet:
//!
//! 8a. It copies the records of the packet that it would take next, up to the first one that is not committed, and
//!     writes nothing to the ring. Words are copied first to last, so a record is complete if its tick was copied. The
//!     records before the first uncommitted one no longer change. So the packet begins with the same records when it is
//!     taken.
//!
//! In overwrite mode (the flight recorder), the next packet replaces the oldest:
//!
//! 9. An opener *claims* a packet by adding 1 to `claimed`. No two openers claim the same packet, so none erases what a
//!    handler has recorded meanwhile. The opener clears the packet's `label`, fills the packet with zeros, writes its
//!    header, sets the label to `s + 1`, and then swaps the cursor. If the swap fails, a handler has opened a later
//!    packet. Then the claimed packet stays empty, which its `end` shows.
//! 10. A snapshot reads packet `s` like a seqlock: the label must be `s + 1` before and after copying. Words are copied
//!     first to last, so a record is complete if its tick was copied. A packet before the cursor with another label was
//!     overwritten if `s + count` is claimed, and is empty otherwise.
//! 11. Handlers may interrupt one probe. All records that they make before they return must fit into `count - 2`
//!     packets. This is not checked. If a program violates it (15 MiB of events with rings of 16 MiB, from one
//!     handler), the interrupted record may overwrite part of a newer one.
//!
//! `shm/loom_model` checks these rules with loom: it runs this code with small packets, in all interleavings with the
//! drain and with handlers at every interruption point.

#[cfg(feature = "drain")]
mod consumer;
#[cfg(feature = "probes")]
mod inspection;
#[cfg(feature = "probes")]
mod producer;
#[cfg(feature = "drain")]
mod records;
#[cfg(feature = "drain")]
mod snapshot;

use std::{marker::PhantomData, ptr::NonNull, sync::atomic::Ordering};

use sigmund_model::{Lwp, Pid};

pub(crate) use super::platform::PACKET_LEN;
use super::platform::{self, AtomicU32, AtomicU64, PACKET_HEAD_LEN};

#[cfg(feature = "drain")]
pub(crate) use consumer::{Consumer, Taken};
#[cfg(feature = "probes")]
pub(crate) use producer::{Producer, Room};
#[cfg(feature = "drain")]
pub(crate) use snapshot::SnapshotOfRing;

const OFFSET_MASK: u64 = u32::MAX as u64;

/// The control block of a ring, at its start. It has one cache line for the producer's probes, one for the drain, and
/// one for words that the producer uses once per packet. Every word is atomic, including unused ones, because a
/// misbehaving process may write to any of them while another process holds a reference.
#[repr(C, align(64))]
pub(crate) struct Control {
    /// Rule 1. This is the first field, because probes add to it directly through the thread-local pointer.
    pub(crate) cursor: AtomicU64,
    /// Address of packet 0 in the producer's memory.
    pub(crate) base: AtomicU64,
    /// Number of packets, a power of two, minus one.
    pub(crate) mask: AtomicU64,
    /// Address of the word that holds the CPU number (rseq) in the producer's memory.
    pub(crate) cpu: AtomicU64,
    /// The mounted user thread; 0 for none.
    pub(crate) mounted: AtomicU64,
    /// Rule 6.
    pub(crate) lost: AtomicU64,
    pub(crate) pid: AtomicU32,
    pub(crate) lwp: AtomicU32,
    /// Address of the ring's state in the producer's memory.
    pub(crate) state_at: AtomicU64,
    /// Rule 7.
    pub(crate) released: AtomicU64,
    pub(in crate::shm) _drain_end: [AtomicU64; 7],
    /// 0 in discard mode, 1 in overwrite mode.
    pub(crate) overwrites: AtomicU64,
    /// Rule 9: the packet to be claimed next.
    pub(crate) claimed: AtomicU64,
    /// Bytes of records in all packets whose end is known.
    pub(crate) closed_bytes: AtomicU64,
    /// The tick at which the ring's LWP ended. Used to find the ring that ended first.
    pub(crate) ended_at: AtomicU64,
    /// Number of LWPs that have used the ring. With it, a snapshot detects that another LWP uses the ring now.
    pub(crate) users: AtomicU64,
    pub(in crate::shm) _producer_end: [AtomicU64; 3],
}

/// The state of a ring. The states are stored together in the arena, not in the rings, so that an unused ring takes no
/// memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum RingState {
    /// Not in use.
    Free = 0,
    /// An LWP is being attached, or the drain is freeing the ring.
    Busy = 1,
    /// An LWP writes to the ring.
    Live = 2,
    /// The LWP of the ring has ended; the drain has not taken everything yet.
    Ended = 3,
}

impl RingState {
    fn from_number(number: u32) -> RingState {
        match number {
            0 => RingState::Free,
            2 => RingState::Live,
            3 => RingState::Ended,
            _ => RingState::Busy,
        }
    }
}

/// The header of a packet in memory. The drain converts it to the header in the file.
#[repr(C)]
struct LivePacketHead {
    /// The sequence number of the packet plus 1; 0 while the packet is being opened (rule 9).
    label: AtomicU64,
    /// Rule 4; 0 until it is known.
    end: AtomicU64,
    first_tick: AtomicU64,
    thread: AtomicU64,
    lost: AtomicU64,
    /// Bytes of records in the preceding packets.
    bytes_before: AtomicU64,
}

const _: () = assert!(size_of::<LivePacketHead>() <= PACKET_HEAD_LEN * size_of::<AtomicU64>() / 8);

/// A read-only view of a ring in an arena.
#[derive(Clone, Copy)]
pub struct Ring<'arena> {
    control: NonNull<Control>,
    state: NonNull<AtomicU32>,
    packets: NonNull<AtomicU64>,
    count: u64,
    _arena: PhantomData<&'arena Control>,
}

// SAFETY: a `Ring` is three addresses in a mapping that outlives it, at which it only accesses atomics.
unsafe impl Send for Ring<'_> {}
// SAFETY: as above.
unsafe impl Sync for Ring<'_> {}

impl<'arena> Ring<'arena> {
    /// A ring whose state is at `state`, its control block at `control`, and `count` packets at `packets`.
    ///
    /// All of these stay mapped for `'arena`, are aligned to 64 bytes (the state to 4), and are zero or written by this
    /// protocol. `count` is a power of two.
    pub(super) unsafe fn from_raw(
        state: NonNull<AtomicU32>,
        control: NonNull<Control>,
        packets: NonNull<AtomicU64>,
        count: u64,
    ) -> Ring<'arena> {
        Ring { control, state, packets, count, _arena: PhantomData }
    }

    fn state_word(&self) -> &'arena AtomicU32 {
        // SAFETY: `from_raw` requires a state that stays mapped; `of_lwp` gets the address of that same state.
        unsafe { self.state.as_ref() }
    }

    fn control(&self) -> &'arena Control {
        // SAFETY: `from_raw` and `of_lwp` require a control block that stays mapped; all its fields are atomic.
        unsafe { self.control.as_ref() }
    }

    /// The state of the ring.
    pub fn state(&self) -> RingState {
        // Acquire: pairs with the Release in `set_state`; makes writes before the change visible.
        RingState::from_number(self.state_word().load(Ordering::Acquire))
    }

    fn set_state(&self, state: RingState) {
        // Release: pairs with the Acquire in `state` and `take_over`.
        self.state_word().store(state as u32, Ordering::Release);
    }

    /// The LWP that the ring belongs to.
    pub fn lwp(&self) -> Lwp {
        Lwp(self.control().lwp.load(Ordering::Relaxed))
    }

    /// The process that the ring belongs to.
    pub fn pid(&self) -> Pid {
        Pid(self.control().pid.load(Ordering::Relaxed))
    }

    /// Bytes of records that the LWP of the ring has written so far. Approximate while the ends of its last packets are
    /// unknown.
    #[cfg(feature = "probes")]
    pub(crate) fn bytes(&self) -> u64 {
        let (_, offset) = self.position();
        // If the offset is after the end, the bytes of this packet are already counted (rule 4).
        let open = if offset > PACKET_LEN as u64 { 0 } else { offset.saturating_sub(PACKET_HEAD_LEN as u64) };
        self.control().closed_bytes.load(Ordering::Relaxed).saturating_add(open)
    }

    /// Number of records lost so far.
    pub fn lost(&self) -> u64 {
        self.control().lost.load(Ordering::Relaxed)
    }

    /// Number of packets of the ring.
    #[cfg(feature = "drain")]
    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    /// The current packet, and the offset after the last reservation in it.
    pub(crate) fn position(&self) -> (u64, u64) {
        // Acquire: pairs with the Release in `make_room`, so the packet's header is visible and the preceding packets
        // are left. It also pairs with the Release of `local_fetch_add`, so records committed before the last
        // reservation are visible.
        let cursor = self.control().cursor.load(Ordering::Acquire);
        (cursor >> 32, cursor & OFFSET_MASK)
    }

    fn packet(&self, sequence: u64) -> NonNull<AtomicU64> {
        let place = (sequence & (self.count - 1)) as usize;
        // SAFETY: `place` is below `count`, and `count` packets are mapped at `packets` (`from_raw`).
        unsafe { self.packets.add(place * (PACKET_LEN / 8)) }
    }

    fn head(&self, sequence: u64) -> &'arena LivePacketHead {
        // SAFETY: a packet is mapped, aligned, and begins with this header, whose fields are all atomic words.
        unsafe { self.packet(sequence).cast().as_ref() }
    }

    /// The address of the word at `offset` of a packet.
    fn word_at(&self, sequence: u64, offset: usize) -> NonNull<AtomicU64> {
        debug_assert!(offset.is_multiple_of(8) && offset < PACKET_LEN);
        // SAFETY: the word is inside the packet, and records begin and end at multiples of 8.
        unsafe { self.packet(sequence).add(offset / 8) }
    }

    /// Clears the records and the end of a packet.
    ///
    /// # Safety
    /// Nothing else writes to the packet: by rule 7 for the consumer, by rule 9 for the producer.
    unsafe fn wipe(&self, sequence: u64) {
        self.head(sequence).end.store(0, Ordering::Relaxed);
        let records = self.word_at(sequence, PACKET_HEAD_LEN);
        // SAFETY: the packet is mapped, and nothing else writes to it.
        unsafe { platform::fill_with_zeros(records, PACKET_LEN - PACKET_HEAD_LEN) };
    }
}
