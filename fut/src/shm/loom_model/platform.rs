//! The platform of the ring in the model: loom's atomics, packets of one or two records, and handlers at given points.

use std::{cell::RefCell, collections::VecDeque, ptr::NonNull, rc::Rc, sync::atomic::Ordering};

pub(super) use loom::sync::atomic::{AtomicU32, AtomicU64, fence};

use super::ring::Control;

/// Length of a packet header, which has only the words of a live one.
pub(super) const PACKET_HEAD_LEN: usize = 48;
/// Length of a packet with one or two records without parameters.
pub(crate) const PACKET_LEN: usize = PACKET_HEAD_LEN + 16 * super::RECORDS_IN_PACKET;

loom::thread_local! {
    static HANDLERS: RefCell<Handlers> = RefCell::new(Handlers::default());
}

/// The signal handlers of one thread.
#[derive(Default)]
pub(super) struct Handlers {
    /// Number of interruption points passed so far.
    pub(super) passed: usize,
    /// The points at which a handler runs. A handler passes points itself.
    pub(super) at: VecDeque<usize>,
    pub(super) handler: Option<Rc<dyn Fn()>>,
}

/// Accesses the handlers of the calling thread.
pub(super) fn with_handlers<T>(f: impl FnOnce(&mut Handlers) -> T) -> T {
    HANDLERS.with(|handlers| f(&mut handlers.borrow_mut()))
}

pub(super) fn interruption_point() {
    let due = with_handlers(|handlers| {
        handlers.passed += 1;
        if handlers.at.front() != Some(&handlers.passed) {
            return None;
        }
        handlers.at.pop_front();
        handlers.handler.clone()
    });
    if let Some(handler) = due {
        handler();
    }
}

/// Stands for one instruction, which no handler interrupts. It is a Release, like every store of x86-64; see `local`.
pub(super) fn local_fetch_add(word: &AtomicU64, n: u64) -> u64 {
    word.fetch_add(n, Ordering::Release)
}

pub(super) unsafe fn copy_words(from: NonNull<AtomicU64>, to: &mut [u8]) {
    for (index, to) in to.chunks_exact_mut(8).enumerate() {
        // SAFETY: the pointer is valid for that many words, as the caller guarantees.
        let word = unsafe { from.add(index).as_ref() };
        to.copy_from_slice(&word.load(Ordering::Acquire).to_le_bytes());
    }
}

pub(super) unsafe fn fill_with_zeros(from: NonNull<AtomicU64>, len: usize) {
    for index in 0..len / 8 {
        // SAFETY: the pointer is valid for that many words, as the caller guarantees.
        let word = unsafe { from.add(index).as_ref() };
        // One interruption in the middle suffices: a handler cannot distinguish one zeroed word from two.
        if index == len / 16 {
            interruption_point();
        }
        word.store(0, Ordering::Relaxed);
    }
}

impl Control {
    pub(super) fn zero() -> Control {
        let zero = || AtomicU64::new(0);
        Control {
            cursor: zero(),
            base: zero(),
            mask: zero(),
            cpu: zero(),
            mounted: zero(),
            lost: zero(),
            pid: AtomicU32::new(0),
            lwp: AtomicU32::new(0),
            state_at: zero(),
            released: zero(),
            _drain_end: [(); 7].map(|()| zero()),
            overwrites: zero(),
            claimed: zero(),
            closed_bytes: zero(),
            ended_at: zero(),
            users: zero(),
            _producer_end: [(); 3].map(|()| zero()),
        }
    }
}
