//! How an idle LWP looks at the threads that others run next: rule 3 of `ready/next.rs`, rule 11 of `ready/idle/mod.rs`.

use std::{cell::Cell, time::Duration};

use super::{Choice, Lwp};
use crate::{
    clock,
    runtime::{ready::Look, thread::ThreadRef},
};

/// How many ticks (some 20 µs) a thread must have been there to be taken. Its waker may be in the system call that has
/// woken this LWP, and block soon afterwards: if taken sooner, threads that talk to each other move at each message.
const OLD: u64 = 50_000;

/// How long it first watches; each time twice as long.
const SHORTEST: Duration = Duration::from_micros(50);
/// So such a thread waits at most for this time while an LWP is idle. Waking so often takes some 1 % of that LWP's CPU.
const LONGEST: Duration = Duration::from_millis(1);

/// What a worker has seen of the others.
pub(super) struct Watch {
    /// How often each had put a thread there, when the search began.
    seen: Box<[Cell<u32>]>,
    /// The sum at the last check before a sleep.
    sum: Cell<u32>,
    pause: Cell<Duration>,
}

impl Watch {
    pub(super) fn new(workers: usize) -> Watch {
        Watch {
            seen: (0..workers).map(|_| Cell::new(0)).collect(),
            sum: Cell::new(0),
            pause: Cell::new(SHORTEST),
        }
    }
}

impl Lwp {
    /// At the beginning of a search.
    pub(super) fn note_next(&self, choice: &Choice) {
        let of_others = self.shared.stealable.iter().zip(&choice.watch.seen);
        of_others.for_each(|(other, seen)| seen.set(other.next.puts()));
    }

    /// At its end: a thread that was there at its beginning, once it is old.
    #[cold]
    pub(super) fn steal_next(&self, choice: &Choice) -> Option<ThreadRef> {
        let start = clock::ticks();
        let candidate = || {
            let mut of_others = self.shared.stealable.iter().zip(&choice.watch.seen);
            of_others.find(|(other, seen)| other.next.is_there_since(seen.get()))
        };
        while let Some((other, seen)) = candidate() {
            if clock::ticks().wrapping_sub(start) > OLD {
                choice.watch.pause.set(SHORTEST);
                return other.next.steal_if_old(seen.get()).map(ThreadRef::of_block);
            }
            if self.shared.is_shut_down() || self.sees_work() {
                return None;
            }
            std::hint::spin_loop();
        }
        None
    }

    /// At the last check before it sleeps: whether to watch.
    pub(super) fn look_at_next(&self, choice: &Choice) -> Look {
        let Watch { sum, pause, .. } = &choice.watch;
        let of_others =
            || self.shared.stealable.iter().enumerate().filter(|(number, _)| *number != choice.number());
        let now = of_others().fold(0_u32, |sum, (_, other)| sum.wrapping_add(other.next.puts()));
        if sum.replace(now) == now && of_others().all(|(_, other)| other.next.is_empty()) {
            pause.set(SHORTEST);
            return Look::Nothing;
        }
        let time = pause.get();
        pause.set((time * 2).min(LONGEST));
        Look::Watch(time)
    }
}
