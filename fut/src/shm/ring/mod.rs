//! The ring of packets of one LWP: how probes reserve and commit records, and how the drain takes them out.
//!
//! Rules of the protocol. "Producer" is the LWP that owns the ring, with the signal handlers that run on it: they
//! interrupt each other, and each runs to its end before the interrupted one continues. "Drain" is one other thread,
//! mostly of another process.
//!
//! Each side is a type. [`Ring`] is for any reader: it only loads atomics. A `Producer` is for the LWP that took
//! the ring, and does not leave it (neither `Copy`, `Send` nor `Sync`); it is made by taking a free ring, and once more
//! for every slow probe from what the LWP's thread-local says. A `Consumer` is for the one drain, and its calls take it
//! exclusively.
//!
//! 1. `cursor` is `sequence << 32 | offset`: the packet being filled, and the next free byte in it. Only the
//!    producer writes it. A record is *reserved* by adding its length with one `xadd`, which no handler can split.
//! 2. A reservation whose end is at most [`PACKET_LEN`] is *granted*: these bytes are the reserver's alone.
//! 3. A granted record is written head word first, then the parameters, and the tick last. A tick is never 0 and
//!    a free packet is all zeros, so **a record with a tick is committed**; one without is still being written,
//!    or was never finished. Its head has its length.
//! 4. The first reservation that is not granted begins at an offset of at most `PACKET_LEN`; later ones begin after
//!    it. The first one writes its offset to `end` of the packet: the reserved part is now final.
//! 5. A reservation that is not granted opens the next packet, if there is one, and moves the cursor to it by a compare-and-swap
//!    on `cursor`; if a handler did so meanwhile, the swap fails and the reservation is tried anew. A packet's head is
//!    written before the swap.
//! 6. If there is no next packet, the record is *lost*, `lost` counts it. Nothing ever waits.
//!
//! In discard mode, the next packet is there when the drain has released it:
//!
//! 7. The drain takes packet `s` when `cursor` has left it, `end` is set, and every record before `end` is
//!    committed. It copies, fills the packet with zeros, and releases it by storing `s + 1` to `released`. Two
//!    openers of one packet write the same head, except the first tick and the losses, of which either is true. A
//!    record that is never committed while its LWP lives (a handler left a probe by `longjmp`) holds the drain up there.
//! 8. When the producer is dead, the drain also takes what it left: committed records are kept, holes are counted.
//!
//! In overwrite mode (the flight recorder), the next packet takes the place of the oldest:
//!
//! 9. An opener *claims* a packet by adding 1 to `claimed`: no two claim the same, so none wipes out what a handler
//!    has recorded meanwhile. It takes the packet's `label` off, fills it with zeros, writes its head, labels it
//!    `s + 1`, and then swaps. If the swap fails, a handler has opened a later one: the claimed packet stays empty, and
//!    its `end` says so.
//! 10. A snapshot reads packet `s` like a seqlock: the label is `s + 1` before copying and after. Words are copied
//!     first to last, so a record is whole when its tick was copied. A packet before the cursor with another label was
//!     overwritten if `s + count` is claimed, and is empty otherwise.
//! 11. What the handlers that come in the middle of one probe record before they return fits into `count - 2` packets.
//!     Nobody checks that: a program that breaks it (15 MiB of events with rings of 16 MiB, from one handler) may find
//!     the interrupted record written across a newer one.
//!
//! `shm/loom_model` checks these rules with loom: it runs this code with small packets, against all interleavings with the
//! drain and with handlers at every point where one can come.

#[cfg(feature = "drain")]
mod consumer;
#[cfg(feature = "probes")]
mod look;
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

/// The control block of a ring, at its start. A cache line for the producer's probes, one for the drain, one for what
/// the producer needs once a packet. Every word is atomic, the unused ones too: a process that misbehaves may write to any of
/// them while another one holds a reference.
#[repr(C, align(64))]
pub(crate) struct Control {
    /// Rule 1. First, because probes add to it through the thread-local pointer itself.
    pub(crate) cursor: AtomicU64,
    /// Address of packet 0 in the producer's memory.
    pub(crate) base: AtomicU64,
    /// Number of packets, a power of two, less one.
    pub(crate) mask: AtomicU64,
    /// Address of the word that holds the CPU number (rseq) in the producer's memory.
    pub(crate) cpu: AtomicU64,
    /// The user thread that is mounted; 0 is none.
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
    /// Rule 9: the packet that is claimed next.
    pub(crate) claimed: AtomicU64,
    /// Bytes of records in all packets whose end is known.
    pub(crate) closed_bytes: AtomicU64,
    /// When its LWP ended, for those that look for the ring that ended first.
    pub(crate) ended_at: AtomicU64,
    /// How many LWPs have used the ring: a snapshot sees by it that another LWP has it now.
    pub(crate) users: AtomicU64,
    pub(in crate::shm) _producer_end: [AtomicU64; 3],
}

/// The user of a ring. These words are together in the arena, not in the rings: a ring that was never used
/// takes no memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum RingState {
    /// Nobody.
    Free = 0,
    /// An LWP is being attached, or the drain is cleaning up.
    Busy = 1,
    /// An LWP writes to it.
    Live = 2,
    /// Its LWP is gone; the drain has not taken everything yet.
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

/// The head of a packet while it is in memory. The drain makes the one of the file of it.
#[repr(C)]
struct LivePacketHead {
    /// Its sequence number and 1; 0 while it is being opened (rule 9).
    label: AtomicU64,
    /// Rule 4; 0 until it is known.
    end: AtomicU64,
    first_tick: AtomicU64,
    thread: AtomicU64,
    lost: AtomicU64,
    /// Bytes of records in the packets before.
    bytes_before: AtomicU64,
}

const _: () = assert!(size_of::<LivePacketHead>() <= PACKET_HEAD_LEN * size_of::<AtomicU64>() / 8);

/// A ring in an arena, to look at.
#[derive(Clone, Copy)]
pub struct Ring<'arena> {
    control: NonNull<Control>,
    state: NonNull<AtomicU32>,
    packets: NonNull<AtomicU64>,
    count: u64,
    _arena: PhantomData<&'arena Control>,
}

// SAFETY: a `Ring` is three addresses in a mapping that outlives it, and loads atomics there.
unsafe impl Send for Ring<'_> {}
// SAFETY: as above.
unsafe impl Sync for Ring<'_> {}

impl<'arena> Ring<'arena> {
    /// A ring whose state is at `state`, its control block at `control`, and `count` packets at `packets`.
    ///
    /// # Safety
    /// All stay mapped for `'arena`, are aligned to 64 bytes (the state to 4), zero or left by this protocol, and
    /// `count` is a power of two.
    pub(super) unsafe fn from_raw(
        state: NonNull<AtomicU32>,
        control: NonNull<Control>,
        packets: NonNull<AtomicU64>,
        count: u64,
    ) -> Ring<'arena> {
        Ring { control, state, packets, count, _arena: PhantomData }
    }

    fn state_word(&self) -> &'arena AtomicU32 {
        // SAFETY: `from_raw` requires a state that stays mapped; `of_lwp` gets the address of the same.
        unsafe { self.state.as_ref() }
    }

    fn control(&self) -> &'arena Control {
        // SAFETY: `from_raw` and `of_lwp` require a control block that stays mapped; all its fields are atomic.
        unsafe { self.control.as_ref() }
    }

    /// Who uses it.
    pub fn state(&self) -> RingState {
        // Acquire: pairs with the Release in `set_state`; what was written before the change is seen.
        RingState::from_number(self.state_word().load(Ordering::Acquire))
    }

    fn set_state(&self, state: RingState) {
        // Release: pairs with the Acquire in `state` and `take_over`.
        self.state_word().store(state as u32, Ordering::Release);
    }

    /// The LWP it belongs to.
    pub fn lwp(&self) -> Lwp {
        Lwp(self.control().lwp.load(Ordering::Relaxed))
    }

    /// The process it belongs to.
    pub fn pid(&self) -> Pid {
        Pid(self.control().pid.load(Ordering::Relaxed))
    }

    /// Bytes of records that its LWP has written so far, as far as is known without its last packets' ends.
    #[cfg(feature = "probes")]
    pub(crate) fn bytes(&self) -> u64 {
        let (_, offset) = self.position();
        // Behind the end: the bytes of this packet are counted already (rule 4).
        let open = if offset > PACKET_LEN as u64 { 0 } else { offset.saturating_sub(PACKET_HEAD_LEN as u64) };
        self.control().closed_bytes.load(Ordering::Relaxed).saturating_add(open)
    }

    /// Records lost so far.
    pub fn lost(&self) -> u64 {
        self.control().lost.load(Ordering::Relaxed)
    }

    /// How many packets it has.
    #[cfg(feature = "drain")]
    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    /// The packet that is filled now, and the offset after what is reserved in it.
    pub(crate) fn position(&self) -> (u64, u64) {
        // Acquire: pairs with the Release in `make_room`: the packet's head is seen, and that those before it are left;
        // and with that of `local_fetch_add`: what was committed before the last reservation is seen.
        let cursor = self.control().cursor.load(Ordering::Acquire);
        (cursor >> 32, cursor & OFFSET_MASK)
    }

    fn packet(&self, sequence: u64) -> NonNull<AtomicU64> {
        let place = (sequence & (self.count - 1)) as usize;
        // SAFETY: `place` is below `count`, and `count` packets are mapped at `packets` (`from_raw`).
        unsafe { self.packets.add(place * (PACKET_LEN / 8)) }
    }

    fn head(&self, sequence: u64) -> &'arena LivePacketHead {
        // SAFETY: a packet is mapped, aligned, and begins with this head, whose fields are all atomic words.
        unsafe { self.packet(sequence).cast().as_ref() }
    }

    /// The address of the word at `offset` of a packet.
    fn word_at(&self, sequence: u64, offset: usize) -> NonNull<AtomicU64> {
        debug_assert!(offset.is_multiple_of(8) && offset < PACKET_LEN);
        // SAFETY: inside the packet, and records begin and end at multiples of 8.
        unsafe { self.packet(sequence).add(offset / 8) }
    }

    /// Makes a packet one without records, and whose end is not known.
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
