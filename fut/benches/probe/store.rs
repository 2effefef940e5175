//! The operations that every probe needs, measured alone: reading the clock, reserving space, and storing a record
//! there.

use std::cell::{Cell, RefCell};

use fut::clock::ticks;

use crate::BURST;

/// As large as a ring, and written like one, from the end again to the beginning. So its lines are as far from the CPU
/// as those of records.
const WORDS: usize = (4 << 20) / 8;

/// Reads the clock and stores three words, one record after the other.
pub(crate) fn plain() -> impl Fn(u64) {
    let buffer = RefCell::new(vec![0_u64; 4 * BURST as usize]);
    move |calls| {
        for (i, place) in buffer.borrow_mut().chunks_exact_mut(4).take(calls as usize).enumerate() {
            place.copy_from_slice(&[ticks(), i as u64, i as u64, i as u64]);
        }
    }
}

/// Reads the clock and stores `N - 1` words, in space that one `xadd` reserves.
pub(crate) fn reserved<const N: usize>() -> impl Fn(u64) {
    let buffer = RefCell::new(vec![[0_u64; N]; WORDS / N]);
    let cursor = Cell::new(0_u64);
    move |calls| {
        let mut buffer = buffer.borrow_mut();
        for i in 0..calls {
            let tick = ticks();
            let record = local_add(&cursor, 1) as usize % (WORDS / N);
            let mut words = [i; N];
            words[0] = tick;
            buffer[record] = words;
        }
    }
}

#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn local_add(word: &Cell<u64>, n: u64) -> u64 {
    let mut before = n;
    // SAFETY: the instruction accesses one word that is borrowed and that no other thread uses.
    unsafe {
        std::arch::asm!(
            "xadd qword ptr [{word}], {before}",
            word = in(reg) word.as_ptr(),
            before = inout(reg) before,
            options(nostack),
        );
    }
    before
}

#[cfg(not(target_arch = "x86_64"))]
#[inline(always)]
fn local_add(word: &Cell<u64>, n: u64) -> u64 {
    word.replace(word.get() + n)
}
