//! How an idle LWP watches the threads that other LWPs run next: rule 3 of `ready/next.rs`, rule 11 of
//! `ready/idle/mod.rs`.

use std::{cell::Cell, time::Duration};

use super::{Choice, Lwp};
use crate::{
    clock,
    runtime::{ready::Watch, thread::ThreadRef},
};

/// An LWP takes a thread that another one runs next only after it has been there for this number of ticks (some 20 µs).
/// The waker of the thread may be in the system call that has woken this LWP, and may block soon afterwards. If threads
/// were taken sooner, threads that talk to each other would move at each message.
const OLD: u64 = 50_000;

/// How long an LWP watches at first. The time doubles at each watch, until the LWP takes a thread, or no LWP puts any.
const SHORTEST: Duration = Duration::from_micros(50);
/// Longest time of a watch. Waking once in this time takes some 1 % of a CPU.
const LONGEST: Duration = Duration::from_millis(1);

/// What a worker has seen of the threads that other workers run next.
pub(super) struct Seen {
    /// For each worker: how often it had put such a thread, and the tick at which this number was first seen.
    puts: Box<[Cell<(u32, u64)>]>,
    /// The sum of all puts when this worker last went to sleep.
    sum: Cell<u32>,
    pause: Cell<Duration>,
}

impl Seen {
    pub(super) fn new(workers: usize) -> Seen {
        Seen {
            puts: (0..workers).map(|_| Cell::new((0, 0))).collect(),
            sum: Cell::new(0),
            pause: Cell::new(SHORTEST),
        }
    }
}

impl Lwp {
    /// Called at the beginning of a search.
    pub(super) fn note_next(&self, choice: &Choice) {
        for (other, seen) in self.shared.stealable.iter().zip(&choice.seen.puts) {
            let puts = other.next.puts();
            if seen.get().0 != puts {
                seen.set((puts, clock::ticks()));
            }
        }
    }

    /// Called at the end of a search. If another worker has a thread that was there before, waits until it is old, and
    /// takes it. If any other thread becomes ready meanwhile, takes that one.
    #[cold]
    pub(super) fn steal_next(&self, choice: &Choice) -> Option<ThreadRef> {
        let candidate = || {
            let mut of_others = self.shared.stealable.iter().zip(&choice.seen.puts);
            of_others.find(|(other, seen)| other.next.is_there_since(seen.get().0))
        };
        while let Some((other, seen)) = candidate() {
            let (puts, since) = seen.get();
            if clock::ticks().wrapping_sub(since) > OLD {
                choice.seen.pause.set(SHORTEST);
                return other.next.steal_if_old(puts).map(ThreadRef::of_block);
            }
            if self.shared.is_shut_down() {
                return None;
            }
            if let Some(ready) = self.take_any(choice) {
                return Some(ready);
            }
            std::hint::spin_loop();
        }
        None
    }

    /// How to watch. Called before the LWP goes to sleep.
    pub(super) fn plan_watch(&self, choice: &Choice) -> Watch {
        let Seen { sum, pause, .. } = &choice.seen;
        let puts = self.shared.stealable.iter().fold(0_u32, |sum, one| sum.wrapping_add(one.next.puts()));
        let expects = sum.replace(puts) != puts || self.sees_next();
        let time = pause.get();
        pause.set(if expects { (time * 2).min(LONGEST) } else { SHORTEST });
        Watch { expects, time }
    }

    /// Whether any LWP has a thread that it runs next. This LWP has none when it goes to sleep, but as a poller it may
    /// have put one.
    pub(super) fn sees_next(&self) -> bool {
        self.shared.stealable.iter().any(|one| !one.next.is_empty())
    }
}
