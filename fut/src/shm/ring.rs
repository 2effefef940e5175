//! The ring of packets of one LWP: how probes reserve and commit records, and how the drain takes them out.
//!
//! Rules of the protocol. "Producer" is the LWP that owns the ring, with the signal handlers that run on it: they
//! interrupt each other, and each runs to its end before the interrupted one goes on. "Drain" is one other thread,
//! mostly of another process.
//!
//! 1. `cursor` is `sequence << 32 | offset`: the packet being filled, and the next free byte in it. Only the
//!    producer writes it. A record is *reserved* by adding its length with one `xadd`, which no handler can split.
//! 2. A reservation whose end is at most [`PACKET_LEN`] is *granted*: these bytes are the reserver's alone.
//! 3. A granted record is written parameters first, then the head word, and the tick last. A tick is never 0 and
//!    a free packet is all zeros, so **a record with a tick is committed**; one without is still being written,
//!    or was never finished.
//! 4. The first reservation that is not granted begins at an offset of at most `PACKET_LEN`; later ones begin behind
//!    it. Whoever made the first writes its offset to `end` of the packet: what was reserved is now known for good.
//! 5. Whoever is not granted moves the cursor to the next packet, if the drain has released that, by a
//!    compare-and-swap on `cursor`; if a handler did so meanwhile, the swap fails and the reservation is tried
//!    anew. A packet's head is written before the swap; two that write it at once write the same, except the
//!    first tick and the losses, of which either is true.
//! 6. No packet released: the record is *lost*, `lost` counts it. Nothing ever waits.
//! 7. The drain takes packet `s` when `cursor` has left it, `end` is set, and every record before `end` is
//!    committed. It copies, fills the packet with zeros, and releases it by storing `s + 1` to `released`.
//! 8. When the producer is dead, the drain also takes what it left: committed records are kept, holes are counted.

use std::{
    marker::PhantomData,
    ptr::NonNull,
    sync::atomic::{AtomicU32, AtomicU64, Ordering},
};

use sigmund_model::{Lwp, Pid, Thread, Ticks};

#[cfg(feature = "probes")]
use super::local::local_fetch_add;
use crate::trace::{
    PACKET_HEAD_LEN, PACKET_MAGIC, PacketFlags, PacketHead, PacketKind, RECORD_HEAD_LEN, RecordHead,
};

/// Length of a packet in memory, head included.
pub const PACKET_LEN: usize = 64 << 10;

/// Where the cursor is put when a record is lost: behind `PACKET_LEN`, so that rule 4 is not taken for a first,
/// and low, so that counting on from there never reaches the sequence.
const FULL: u64 = PACKET_LEN as u64 + 8;

const OFFSET_MASK: u64 = u32::MAX as u64;

/// The control block of a ring, at its start. A cache line for the producer, one for the drain.
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
    _producer_end: [u64; 1],
    /// Rule 7.
    pub(crate) released: AtomicU64,
    /// A [`RingState`].
    pub(crate) state: AtomicU32,
    _drain_end: [u32; 13],
}

#[cfg(feature = "probes")]
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
            _producer_end: [0; 1],
            released: AtomicU64::new(0),
            state: AtomicU32::new(0),
            _drain_end: [0; 13],
        }
    }
}

/// Who uses a ring.
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

/// The head of a packet while it is in memory. `to_head` makes the one of the file of it.
#[repr(C)]
struct LivePacketHead {
    magic: AtomicU32,
    /// Rule 4; 0 until it is known.
    end: AtomicU32,
    sequence: AtomicU64,
    first_tick: AtomicU64,
    thread: AtomicU64,
    lost: AtomicU64,
}

const _: () = assert!(size_of::<LivePacketHead>() <= PACKET_HEAD_LEN);
const _: () = assert!(size_of::<Control>() == 128);

/// A ring in an arena.
#[derive(Clone, Copy)]
pub struct Ring<'arena> {
    control: NonNull<Control>,
    packets: NonNull<u8>,
    count: u64,
    _arena: PhantomData<&'arena Control>,
}

// SAFETY: a `Ring` is two addresses in a mapping that outlives it; what stands there is atomics, or bytes that
// the protocol gives to one side at a time.
unsafe impl Send for Ring<'_> {}
// SAFETY: as above.
unsafe impl Sync for Ring<'_> {}

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
    /// A ring whose control block is at `control`, with `count` packets at `packets`.
    ///
    /// # Safety
    /// Both stay mapped for `'arena`, are aligned to 64 bytes, zero or left by this protocol, and `count` is a
    /// power of two.
    pub(super) unsafe fn from_raw(control: NonNull<u8>, packets: NonNull<u8>, count: u64) -> Ring<'arena> {
        Ring { control: control.cast(), packets, count, _arena: PhantomData }
    }

    /// The ring that a probe found through its thread.
    ///
    /// # Safety
    /// `control` points to a control block that `attach` has filled in, in memory that stays mapped for `'arena`.
    #[cfg(feature = "probes")]
    pub(crate) unsafe fn of_producer(control: NonNull<Control>) -> Ring<'arena> {
        // SAFETY: the caller vouches for the pointer.
        let fields = unsafe { control.as_ref() };
        let base = fields.base.load(Ordering::Relaxed) as *mut u8;
        let count = fields.mask.load(Ordering::Relaxed) + 1;
        // `attach` stored the address of packet 0, which is not null; the block is its own stand-in otherwise.
        let packets = NonNull::new(base).unwrap_or(control.cast());
        Ring { control, packets, count, _arena: PhantomData }
    }

    pub(crate) fn control(&self) -> &'arena Control {
        // SAFETY: `from_raw` and `of_producer` require a control block that stays mapped; all its fields are atomic.
        unsafe { self.control.as_ref() }
    }

    /// Who uses it.
    pub fn state(&self) -> RingState {
        // Acquire: pairs with the Release in `set_state`; what was written before the change is seen.
        RingState::from_number(self.control().state.load(Ordering::Acquire))
    }

    pub(crate) fn set_state(&self, state: RingState) {
        // Release: pairs with the Acquire in `state` and `take_over`.
        self.control().state.store(state as u32, Ordering::Release);
    }

    /// Changes the state from `from` to `to`, if it is `from`.
    pub(crate) fn take_over(&self, from: RingState, to: RingState) -> bool {
        let state = &self.control().state;
        // AcqRel: pairs with `set_state`; the winner sees what the one before left.
        state.compare_exchange(from as u32, to as u32, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }

    /// The LWP it belongs to.
    pub fn lwp(&self) -> Lwp {
        Lwp(self.control().lwp.load(Ordering::Relaxed))
    }

    /// The process it belongs to.
    pub fn pid(&self) -> Pid {
        Pid(self.control().pid.load(Ordering::Relaxed))
    }

    /// Records lost so far.
    pub fn lost(&self) -> u64 {
        self.control().lost.load(Ordering::Relaxed)
    }

    fn packet(&self, sequence: u64) -> NonNull<u8> {
        let place = (sequence & (self.count - 1)) as usize;
        // SAFETY: `place` is below `count`, and `count` packets are mapped at `packets` (`from_raw`).
        unsafe { self.packets.add(place * PACKET_LEN) }
    }

    fn head(&self, sequence: u64) -> &'arena LivePacketHead {
        // SAFETY: a packet is mapped, aligned, and begins with this head, whose fields are all atomic.
        unsafe { self.packet(sequence).cast().as_ref() }
    }

    fn word(&self, sequence: u64, offset: usize) -> &'arena AtomicU64 {
        debug_assert!(offset.is_multiple_of(8) && offset < PACKET_LEN);
        // SAFETY: inside the packet, and records begin and end at multiples of 8.
        let address = unsafe { self.packet(sequence).add(offset) };
        // SAFETY: aligned as said, mapped, and only accessed as an atomic by either side while both may use it.
        unsafe { address.cast::<AtomicU64>().as_ref() }
    }
}

/// What the producer does, beside what `probe::emit` does itself.
#[cfg(feature = "probes")]
impl Ring<'_> {
    /// Fills in the control block and the first packet for an LWP, in the state `Busy`.
    pub(crate) fn begin(&self, pid: Pid, lwp: Lwp, cpu: NonNull<u32>, now: Ticks) {
        let control = self.control();
        control.base.store(self.packets.as_ptr() as u64, Ordering::Relaxed);
        control.mask.store(self.count - 1, Ordering::Relaxed);
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

/// What the drain took out of a packet.
#[cfg(feature = "drain")]
#[derive(Debug)]
pub(crate) struct Taken {
    pub(crate) head: PacketHead,
    pub(crate) payload: Vec<u8>,
    /// Records that were begun and never committed.
    pub(crate) holes: u64,
}

/// What the drain does.
#[cfg(feature = "drain")]
impl Ring<'_> {
    /// The packet that is filled now.
    pub(crate) fn cursor_sequence(&self) -> u64 {
        // Acquire: pairs with the Release in `make_room`.
        self.control().cursor.load(Ordering::Acquire) >> 32
    }

    /// The next packet to take.
    pub(crate) fn next_to_take(&self) -> u64 {
        self.control().released.load(Ordering::Relaxed)
    }

    /// Where the records of a packet that the cursor has left end, if that is known (rule 7).
    pub(crate) fn closed_end(&self, sequence: u64) -> Option<usize> {
        // Acquire: pairs with the Release in `make_room`.
        let end = self.head(sequence).end.load(Ordering::Acquire) as usize;
        (PACKET_HEAD_LEN..=PACKET_LEN).contains(&end).then_some(end)
    }

    /// Where records may stand in the packet of a producer that is dead (rule 8).
    pub(crate) fn last_end(&self, sequence: u64) -> usize {
        let cursor = self.control().cursor.load(Ordering::Acquire);
        let open = if cursor >> 32 == sequence { (cursor & OFFSET_MASK) as usize } else { PACKET_LEN };
        self.closed_end(sequence).unwrap_or(open).min(PACKET_LEN)
    }

    /// Copies the committed records of a packet up to `end`. Without `final_`, `None` if one is not committed yet.
    pub(crate) fn copy_packet(&self, sequence: u64, end: usize, final_: bool) -> Option<Taken> {
        let mut payload = Vec::with_capacity(end.saturating_sub(PACKET_HEAD_LEN));
        let (mut at, mut holes, mut last_tick) = (PACKET_HEAD_LEN, 0, 0);
        while at + RECORD_HEAD_LEN <= end {
            // Acquire: pairs with the Release of the tick in `probe::emit`; the rest of the record is seen.
            let tick = self.word(sequence, at).load(Ordering::Acquire);
            let head = self.word(sequence, at + 8).load(Ordering::Relaxed);
            if tick == 0 && !final_ {
                return None;
            }
            if tick == 0 && head == 0 {
                // Reserved and nothing written: how long it is, only the next thing that is not zero can say.
                holes += u64::from(at == PACKET_HEAD_LEN || !self.was_zero(sequence, at - 8));
                at += 8;
                continue;
            }
            let len = RecordHead::from_word(head).record_len();
            if at + len > end {
                holes += 1;
                break;
            }
            if tick == 0 {
                holes += 1;
            } else {
                last_tick = last_tick.max(tick);
                for offset in (at..at + len).step_by(8) {
                    payload.extend_from_slice(
                        &self.word(sequence, offset).load(Ordering::Relaxed).to_le_bytes(),
                    );
                }
            }
            at += len;
        }
        let head = self.head(sequence);
        let head = PacketHead {
            kind: PacketKind::EVENTS,
            flags: if holes > 0 { PacketFlags::UNFINISHED } else { PacketFlags::default() },
            length: payload.len() as u32,
            pid: self.pid(),
            lwp: self.lwp(),
            sequence,
            first_tick: Ticks(head.first_tick.load(Ordering::Relaxed)),
            thread: Thread::from_switch(head.thread.load(Ordering::Relaxed)),
            lost: head.lost.load(Ordering::Relaxed),
            last_tick: Ticks(last_tick),
        };
        Some(Taken { head, payload, holes })
    }

    /// Fills a packet that was taken with zeros, and gives it back to the producer (rule 7).
    pub(crate) fn release(&self, sequence: u64) {
        self.clear(sequence);
        // Release: pairs with the Acquire in `make_room`.
        self.control().released.store(sequence + 1, Ordering::Release);
    }

    /// Fills a packet with zeros, for the next user of the ring.
    pub(crate) fn clear(&self, sequence: u64) {
        // SAFETY: the packet is mapped and by rule 7 (or because its producer is dead) nobody else uses it.
        unsafe { self.packet(sequence).write_bytes(0, PACKET_LEN) };
    }

    fn was_zero(&self, sequence: u64, at: usize) -> bool {
        self.word(sequence, at).load(Ordering::Relaxed) == 0
    }
}
