//! Measures the cost of recording on this machine. To do so, it runs the code of a probe on a separate ring.
//!
//! The ring is not that of the LWP: `record_to` gets its control block as an argument. So a signal handler that runs
//! meanwhile records to the usual ring, and none of the measured records gets into a trace. The median ignores the
//! bursts that such a handler interrupts.

use std::{ptr::NonNull, sync::atomic::Ordering};

use super::{
    EventDecl, Fields,
    current::{current, no_cpu},
    emit::record_to,
};
use crate::{
    clock::ticks,
    shm::{PACKET_LEN, ring::Control},
    trace::{PACKET_HEAD_LEN, ProbeCosts, RECORD_HEAD_LEN},
};

/// Records in a burst. They stay in the L1 cache.
const BURST: usize = 64;
/// Number of bursts of each kind. The result is their median.
const BURSTS: usize = 7;
const WORDS: usize = 6;

const _: () = assert!(PACKET_HEAD_LEN + BURST * (RECORD_HEAD_LEN + 8 * WORDS) <= PACKET_LEN);

static EVENT: EventDecl = EventDecl::with_code(1);

/// A ring of one packet, used only by `measure`.
struct Scratch {
    control: Control,
    _packet: Vec<u64>,
}

impl Scratch {
    fn new() -> Scratch {
        let mut packet = vec![0; PACKET_LEN / size_of::<u64>()];
        let control = Control::zero();
        control.base.store(packet.as_mut_ptr() as u64, Ordering::Relaxed);
        // The probe loads the CPU number through this pointer, as it does for a real ring.
        control.cpu.store(no_cpu().as_ptr() as u64, Ordering::Relaxed);
        Scratch { control, _packet: packet }
    }

    fn empty(&self) {
        self.control.cursor.store(PACKET_HEAD_LEN as u64, Ordering::Relaxed);
    }

    #[inline(always)]
    fn record(&self, params: impl Fields) {
        // The result is not used, but this look-up is part of the cost of a probe.
        let _ = current();
        // SAFETY: the control block and the packet are valid as long as `self`. `mask` is 0, so there is one packet. A
        // burst fits into it, as asserted above, and `empty` is called before each burst.
        unsafe { record_to(NonNull::from(&self.control), &EVENT, params, |_| {}) };
    }
}

/// Measures the costs. Takes 41 µs (100 µs unoptimised) on an AMD EPYC guest, TSC 2.6 GHz, median of 7 starts; the rest
/// of `Recording::start` takes 700 µs.
pub(crate) fn measure() -> ProbeCosts {
    let scratch = Scratch::new();
    let clock_read = burst(&scratch, || _ = std::hint::black_box(ticks()));
    let without = burst(&scratch, || scratch.record(()));
    let words = std::hint::black_box(1_u64);
    let with = burst(&scratch, || scratch.record((words, words, words, words, words, words)));
    // Storing words overlaps with reading the clock, so the difference is often smaller than its error.
    let per_word = (with - without).max(0.0) / WORDS as f64;
    ProbeCosts { clock_read, record: without, per_word }
}

/// Ticks of one call: the median over the bursts.
#[inline(always)]
fn burst(scratch: &Scratch, call: impl Fn()) -> f64 {
    let mut lengths = [0; BURSTS];
    for length in &mut lengths {
        scratch.empty();
        let start = ticks();
        (0..BURST).for_each(|_| call());
        *length = ticks().wrapping_sub(start);
    }
    lengths.sort_unstable();
    lengths[BURSTS / 2] as f64 / BURST as f64
}
