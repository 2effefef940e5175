//! Random system calls, of the LWPs of a random machine.

use sigmund_measures::{History, Interval, SeriesBuilder, Syscall};
use sigmund_model::EndReason;

use super::{LWPS, TICKS, random::Random, tid};

/// System calls at any time, also on CPUs.
pub(crate) fn add_calls(history: &mut History, seed: u64) {
    let mut random = Random::new(seed ^ 0xca11);
    let mut calls = SeriesBuilder::default();
    history.syscalls.clear();
    for lwp in 0..LWPS {
        let mut from = random.below(30) as i64;
        while from < TICKS {
            let to = (from + 1 + random.below(40) as i64).min(TICKS);
            let interval = Interval::new(from, to);
            let name = history.words.intern(["read", "poll"][random.below(2)]);
            calls.push(tid(lwp).into(), interval, history.syscalls.len() as u32);
            history.syscalls.push(Syscall {
                interval,
                lwp: tid(lwp),
                thread: None,
                name,
                ret: Some([-4096, -4095, -1, 0, 7][random.below(5)]),
                off_cpu: None,
                end: EndReason::Returned,
            });
            from = to + random.below(30) as i64;
        }
    }
    history.calls = calls.build();
}
