//! Recording one event: the hot path. Opening the next packet and attaching are elsewhere.

use std::{
    ptr::{self, NonNull},
    sync::atomic::{AtomicU64, Ordering},
};

use sigmund_model::Ticks;

use super::{Fields, current::current, event::EventDecl};
use crate::{
    clock,
    session::{self, Attached},
    shm::{
        PACKET_LEN,
        local::local_fetch_add,
        ring::{Control, Producer, Room},
    },
    trace::{CPU_UNKNOWN, MAX_RECORD_WORDS, RECORD_HEAD_LEN, RecordHead},
};

/// Records one event regardless of the key mask: test [`enabled`](super::keys::enabled) first.
///
/// Called by the functions that [`events!`](crate::events) generates. An event with more than 255 words of parameters
/// (four long texts) is counted as lost.
#[inline(always)]
pub fn record(event: &EventDecl, params: impl Fields) {
    record_and(event, params, |_| {});
}

/// Records one event, and then calls `then` with the control block of the LWP, if it has a ring.
#[inline(always)]
pub(crate) fn record_and(event: &EventDecl, params: impl Fields, then: impl Fn(&Control)) {
    // SAFETY: `current` returns the stand-in, or a control block that is mapped as long as its LWP is attached.
    unsafe { record_to(current(), event.code(), params, then) };
}

/// As [`record_and`], to the ring with this control block.
///
/// # Safety
/// `control` is mapped, and belongs to the calling LWP: it is the one that `current` returns, or one that nothing else
/// uses and whose packets have room.
#[inline(always)]
pub(super) unsafe fn record_to(
    control: NonNull<Control>,
    code: u32,
    params: impl Fields,
    then: impl Fn(&Control),
) {
    let tick = clock::ticks();
    let words = params.words();
    let len = RECORD_HEAD_LEN + 8 * words;
    // SAFETY: mapped, as the caller guarantees, and all its fields are atomic.
    let fields = unsafe { control.as_ref() };
    // For events without texts, the compiler removes this test.
    if words > MAX_RECORD_WORDS {
        local_fetch_add(&fields.lost, 1);
        return;
    }
    let position = local_fetch_add(&fields.cursor, len as u64);
    let (sequence, offset) = (position >> 32, position as u32 as usize);
    // Rule 2 of the ring: granted if it ends inside the packet.
    if offset + len > PACKET_LEN {
        record_slowly(code, params, control, position, tick);
        // The slow path may have attached the LWP to a ring.
        if let Some(fields) = ring() {
            then(fields);
        }
        return;
    }
    let place = (sequence & fields.mask.load(Ordering::Relaxed)) as usize * PACKET_LEN + offset;
    let packets = fields.base.load(Ordering::Relaxed) as *mut u8;
    // SAFETY: rule 2: `place..place + len` is inside the packets at `packets`, and reserved for this record.
    let record = unsafe { packets.add(place) }.cast::<u64>();
    // SAFETY: as above; records are aligned to 8 bytes.
    unsafe { commit(record, code, params, cpu_of(fields), tick) };
    then(fields);
}

/// The control block of this LWP, if it has a ring. LWPs without one share the stand-in: writing to it would move its
/// cache line between them.
#[inline(always)]
pub(crate) fn ring() -> Option<&'static Control> {
    // SAFETY: `current` gives a control block that stays mapped as long as its LWP is attached.
    let control: &Control = unsafe { current().as_ref() };
    (!ptr::eq(control, &super::CURRENT_NONE)).then_some(control)
}

/// Writes a granted record (rule 3 of the ring).
///
/// # Safety
/// `record` is reserved space for a record with these parameters.
#[inline(always)]
unsafe fn commit(record: *mut u64, code: u32, params: impl Fields, cpu: u16, tick: u64) {
    let words = params.words();
    let head = RecordHead { code, words: words as u8, flags: 0, cpu };
    // SAFETY: the second word of the record.
    let word = unsafe { record.add(1) };
    // SAFETY: aligned, and reserved by the caller.
    unsafe { AtomicU64::from_ptr(word) }.store(head.to_word(), Ordering::Relaxed);
    // SAFETY: the parameters follow the record header of 16 bytes.
    let first_param = unsafe { record.add(2) };
    // SAFETY: the reserved space is long enough for them.
    unsafe { params.write(first_param) };
    // SAFETY: the first word of the record: aligned, and reserved by the caller. Release: pairs with the Acquire in
    // `Ring::copy_packet`; commits the record.
    unsafe { AtomicU64::from_ptr(record) }.store(tick, Ordering::Release);
}

#[inline(always)]
fn cpu_of(fields: &Control) -> u16 {
    let cpu = fields.cpu.load(Ordering::Relaxed) as *const u32;
    // SAFETY: `attach` stored the address of this LWP's CPU number, or of a constant. The kernel changes it without the
    // compiler's knowledge, hence volatile.
    let cpu = unsafe { cpu.read_volatile() };
    // No kernel has 65535 CPUs; the kernel's -1 for "unknown" (RSEQ_CPU_ID_UNINITIALIZED) becomes `CPU_UNKNOWN`.
    cpu as u16
}

const _: () = assert!(u32::MAX as u16 == CPU_UNKNOWN);

/// The slow path of [`record`]: the packet is full, or the LWP has no ring yet.
#[cold]
#[inline(never)]
fn record_slowly(
    code: u32,
    params: impl Fields,
    mut control: NonNull<Control>,
    position: u64,
    mut tick: u64,
) {
    if control == NonNull::from(&super::CURRENT_NONE) {
        match session::attach() {
            Attached::Now(attached) => {
                control = attached;
                // Attaching makes system calls and touches new pages, which can take milliseconds, and the LWP may be
                // on another CPU by now. The time stamp has to match the CPU that is read below, and must not precede
                // the attach.
                tick = clock::ticks();
            }
            Attached::Not => return,
        }
    } else {
        // SAFETY: it is not the stand-in, so it is the ring of this LWP, which is attached.
        let producer = unsafe { Producer::of_lwp(control) };
        if producer.make_room(position, Ticks(tick)) == Room::Lost {
            return;
        }
    }
    let len = RECORD_HEAD_LEN + 8 * params.words();
    loop {
        // SAFETY: the ring of this LWP, which is attached.
        let producer = unsafe { Producer::of_lwp(control) };
        let fields = producer.control();
        let position = local_fetch_add(&fields.cursor, len as u64);
        let offset = position as u32 as usize;
        if offset + len <= PACKET_LEN {
            let record = producer.place(position >> 32, offset);
            // SAFETY: rule 2 of the ring.
            unsafe { commit(record, code, params, cpu_of(fields), tick) };
            return;
        }
        if producer.make_room(position, Ticks(tick)) == Room::Lost {
            return;
        }
    }
}
