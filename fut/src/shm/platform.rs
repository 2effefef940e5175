//! The platform of the ring: atomics, the length of a packet, and three operations on memory.
//!
//! `ring` is compiled against this module. For tests it is compiled once more against `loom_model::platform`, where the
//! atomics are loom's and packets are tiny.

use std::ptr::NonNull;
#[cfg(any(feature = "drain", not(target_arch = "x86_64")))]
use std::sync::atomic::Ordering;

use super::ring::Control;

pub(super) use std::sync::atomic::{AtomicU32, AtomicU64, fence};

#[cfg(feature = "probes")]
pub(super) use super::local::local_fetch_add;
pub(super) use crate::trace::PACKET_HEAD_LEN;

/// Length of a packet in memory in bytes, including its header.
pub const PACKET_LEN: usize = 64 << 10;

/// A point at which a signal handler may interrupt. In the model, this calls handlers; real handlers need no call.
#[cfg(feature = "probes")]
#[inline(always)]
pub(super) fn interruption_point() {}

/// Copies the words at `from` to `to`, first to last, each with Acquire.
///
/// # Safety
/// `from` is aligned, and `to.len()` bytes, a multiple of 8, are mapped there.
#[cfg(feature = "drain")]
#[inline]
pub(super) unsafe fn copy_words(from: NonNull<AtomicU64>, to: &mut [u8]) {
    // SAFETY: the caller guarantees it; both sides access the words only as atomics.
    let words = unsafe { std::slice::from_raw_parts(from.as_ptr(), to.len() / 8) };
    for (to, word) in to.chunks_exact_mut(8).zip(words) {
        // Acquire: pairs with the Release of a tick in `probe::emit`. The words copied after a non-zero tick are those
        // of the record that the tick committed.
        to.copy_from_slice(&word.load(Ordering::Acquire).to_le_bytes());
    }
}

/// Fills `len` bytes with zeros.
///
/// # Safety
/// `from` is aligned, and `len` bytes, a multiple of 8, are mapped there. Nothing else writes them meanwhile. A
/// snapshot may read them; it detects that it must discard what it has read (rule 10 of the ring).
#[inline]
pub(super) unsafe fn fill_with_zeros(from: NonNull<AtomicU64>, len: usize) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: the instruction writes `len` bytes, which the caller guarantees to be valid. It is in assembly, because a
    // snapshot may read concurrently, and the compiler must not conclude undefined behaviour from that.
    unsafe {
        std::arch::asm!(
            "rep stosq",
            inout("rdi") from.as_ptr() => _,
            inout("rcx") len / 8 => _,
            in("rax") 0_u64,
            options(nostack, preserves_flags),
        );
    }
    #[cfg(not(target_arch = "x86_64"))]
    for index in 0..len / 8 {
        // SAFETY: the word is inside the `len` bytes that the caller guarantees.
        let word = unsafe { from.add(index).as_ref() };
        word.store(0, Ordering::Relaxed);
    }
}

const _: () = assert!(size_of::<Control>() == 192);

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
            state_at: AtomicU64::new(0),
            released: AtomicU64::new(0),
            _drain_end: [const { AtomicU64::new(0) }; 7],
            overwrites: AtomicU64::new(0),
            claimed: AtomicU64::new(0),
            closed_bytes: AtomicU64::new(0),
            ended_at: AtomicU64::new(0),
            users: AtomicU64::new(0),
            _producer_end: [const { AtomicU64::new(0) }; 3],
        }
    }
}
