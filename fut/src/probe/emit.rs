//! Recording one event: the hot path. Opening the next packet and attaching are elsewhere.

use std::{
    mem::MaybeUninit,
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
    unsafe { record_to(current(), event, params, then) };
}

/// Like [`record_and`], for the ring with this control block.
///
/// # Safety
/// `control` is mapped, and belongs to the calling LWP: it is the one that `current` returns, or nothing else uses it
/// and its packets have room.
#[inline(always)]
pub(super) unsafe fn record_to<F: Fields>(
    control: NonNull<Control>,
    event: &EventDecl,
    params: F,
    then: impl Fn(&Control),
) {
    let tick = clock::ticks();
    let words = params.words();
    let len = RECORD_HEAD_LEN + 8 * words;
    // SAFETY: it is mapped, as the caller guarantees, and all its fields are atomic.
    let fields = unsafe { control.as_ref() };
    // For events without texts, the compiler removes this test.
    if words > MAX_RECORD_WORDS {
        local_fetch_add(&fields.lost, 1);
        return;
    }
    let position = local_fetch_add(&fields.cursor, len as u64);
    let (sequence, offset) = (position >> 32, position as u32 as usize);
    // Rule 2 of the ring: the reservation is granted if it ends inside the packet.
    if offset + len > PACKET_LEN {
        let slow = Slow { code: event.code(), control, position, tick };
        if F::MOST_WORDS.max(words) <= FEW_WORDS {
            // SAFETY: the number of words was tested.
            unsafe { slow.record::<FEW_WORDS>(params) };
        } else {
            // SAFETY: records with more words were counted as lost above.
            unsafe { slow.record::<MAX_RECORD_WORDS>(params) };
        }
        // The slow path may have attached the LWP to a ring.
        if let Some(fields) = ring() {
            then(fields);
        }
        return;
    }
    let place = (sequence & own(&fields.mask)) as usize * PACKET_LEN + offset;
    let packets = own(&fields.base) as *mut u8;
    // SAFETY: rule 2: `place..place + len` is inside the packets at `packets`, and reserved for this record.
    let record = unsafe { packets.add(place) }.cast::<u64>();
    // SAFETY: as above; records are aligned to 8 bytes.
    unsafe { commit(record, event.code(), params, cpu_of(fields), tick) };
    then(fields);
}

/// The control block of this LWP, if it has a ring. LWPs without a ring share the stand-in; writing to it would move
/// its cache line between their CPUs.
#[inline(always)]
pub(crate) fn ring() -> Option<&'static Control> {
    // SAFETY: `current` returns a control block that stays mapped as long as its LWP is attached.
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

/// A word of the control block that only this LWP writes, when it attaches. This is a plain load, because the compiler
/// makes it the operand of another instruction. An atomic load needs a register, and events with six parameters have
/// none left.
#[inline(always)]
fn own(word: &AtomicU64) -> u64 {
    // SAFETY: valid and aligned, as it is borrowed. No data race: nobody else writes to it.
    unsafe { word.as_ptr().read() }
}

#[inline(always)]
fn cpu_of(fields: &Control) -> u16 {
    let cpu = fields.cpu.load(Ordering::Relaxed) as *const u32;
    // SAFETY: `attach` stored the address of this LWP's CPU number, or of a constant. The kernel changes it without the
    // compiler's knowledge, hence volatile.
    let cpu = unsafe { cpu.read_volatile() };
    // No kernel has 65535 CPUs. The kernel's -1 for "unknown" (RSEQ_CPU_ID_UNINITIALIZED) becomes `CPU_UNKNOWN`.
    cpu as u16
}

const _: () = assert!(u32::MAX as u16 == CPU_UNKNOWN);

/// For events with up to this number of words, the slow path uses a small buffer on the stack. Events with texts need a
/// large one.
const FEW_WORDS: usize = 8;

/// The slow path of [`record`]: the packet is full, or the LWP has no ring yet.
struct Slow {
    code: u32,
    control: NonNull<Control>,
    /// The reservation that was not granted.
    position: u64,
    tick: u64,
}

impl Slow {
    /// Copies the parameters to the stack here, and only here. If there are more than two and they were passed on by
    /// reference, the compiler would store them to the stack before the fast path, too.
    ///
    /// # Safety
    /// The parameters have at most `MOST` words.
    #[inline(always)]
    unsafe fn record<const MOST: usize>(self, params: impl Fields) {
        let mut words = [const { MaybeUninit::<u64>::uninit() }; MOST];
        // SAFETY: there is room for all words, as the caller guarantees.
        unsafe { params.write(words.as_mut_ptr().cast()) };
        // SAFETY: `write` has stored this number of words.
        let words = unsafe { std::slice::from_raw_parts(words.as_ptr().cast(), params.words()) };
        self.record_words(Words(words));
    }

    #[cold]
    #[inline(never)]
    fn record_words(self, words: Words) {
        let Slow { code, mut control, position, mut tick } = self;
        if control == NonNull::from(&super::CURRENT_NONE) {
            match session::attach() {
                Attached::Now(attached) => {
                    control = attached;
                    // Attaching makes system calls and touches new pages, which can take milliseconds. The LWP may be
                    // on another CPU by now. The time stamp has to match the CPU that is read below, and must not
                    // precede the attach.
                    tick = clock::ticks();
                }
                Attached::Not => return,
            }
        } else {
            // SAFETY: this is not the stand-in, so it is the ring of this LWP, which is attached.
            let producer = unsafe { Producer::of_lwp(control) };
            if producer.make_room(position, Ticks(tick)) == Room::Lost {
                return;
            }
        }
        let len = RECORD_HEAD_LEN + 8 * words.words();
        loop {
            // SAFETY: the ring of this LWP, which is attached.
            let producer = unsafe { Producer::of_lwp(control) };
            let fields = producer.control();
            let position = local_fetch_add(&fields.cursor, len as u64);
            let offset = position as u32 as usize;
            if offset + len <= PACKET_LEN {
                let record = producer.place(position >> 32, offset);
                // SAFETY: rule 2 of the ring.
                unsafe { commit(record, code, words, cpu_of(fields), tick) };
                return;
            }
            if producer.make_room(position, Ticks(tick)) == Room::Lost {
                return;
            }
        }
    }
}

/// Parameters as the words of a record.
#[derive(Clone, Copy)]
struct Words<'record>(&'record [u64]);

// SAFETY: stores every word once. A slice has at most `MAX_RECORD_WORDS` of them, because `record_to` counts longer
// records as lost.
unsafe impl Fields for Words<'_> {
    const MOST_WORDS: usize = MAX_RECORD_WORDS;

    fn words(self) -> usize {
        self.0.len()
    }

    unsafe fn write(self, to: *mut u64) {
        for (at, word) in self.0.iter().enumerate() {
            let place = to.wrapping_add(at);
            // SAFETY: one of the words for which `to` is valid.
            unsafe { AtomicU64::from_ptr(place) }.store(*word, Ordering::Relaxed);
        }
    }
}
