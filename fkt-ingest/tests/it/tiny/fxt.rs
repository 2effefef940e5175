//! FxT, in both byte orders and word sizes, of user programs and of the kernel.

use super::Tiny;
use crate::fxt_made::{Made, record};

pub(super) fn all() -> Vec<Tiny> {
    let variants = [
        ("fxt-user-64", false, true, false),
        ("fxt-user-32", false, false, false),
        ("fxt-user-64-big", true, true, false),
        ("fxt-user-32-big", true, false, false),
        ("fxt-kernel-32", false, false, true),
        ("fxt-kernel-32-big", true, false, true),
    ];
    let tiny = |(name, big_endian, wide, kernel)| {
        let made = Made { big_endian, wide, kernel };
        let bytes = if kernel { kernel_file(made) } else { user_file(made) };
        Tiny { name, bytes, events: if kernel { 4 } else { 5 } }
    };
    variants.map(tiny).into()
}

/// Two LWPs, a switch between threads, and a text in the arguments.
fn user_file(made: Made) -> Vec<u8> {
    made.file(&[
        record(1_000_000, 0, 0xfff6, &[0, 41]),
        record(1_000_100, 7, 0x101, &[1, 2, 3]),
        record(1_000_200, 7, 0x230, &[5, 6]),
        record(1_000_300, 8, 0x5100, &[0x6161_6161, 0]),
        record(1_000_400, 7, 0xfffc, &[1, 2]),
    ])
}

/// Ends of interrupts have codes that are not shifted.
fn kernel_file(made: Made) -> Vec<u8> {
    made.file(&[
        record(100, 777, 0x101, &[]),
        record(200, 777, 0x301, &[778]),
        record(300, 778, 0x240, &[]),
        record(400, 778, 0x301, &[777]),
    ])
}
