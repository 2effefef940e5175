//! How an idle LWP looks at the threads that others run next: rule 3 of `ready/next.rs`, rule 11 of `ready/idle/mod.rs`.

use std::{cell::Cell, time::Duration};

use super::{Choice, Lwp};
use crate::{
    clock,
    runtime::{ready::Watch, thread::ThreadRef},
};

/// How many ticks (some 20 µs) a thread must have been there to be taken. Its waker may be in the system call that has
/// woken this LWP, and block soon afterwards: if taken sooner, threads that talk to each other move at each message.
const OLD: u64 = 50_000;

/// How long an LWP first watches; each time twice as long, until it finds a thread to take, or nobody puts any.
const SHORTEST: Duration = Duration::from_micros(50);
/// Waking once in this time takes some 1 % of a CPU.
const LONGEST: Duration = Duration::from_millis(1);

/// What a worker has seen of the others.
pub(super) struct Seen {
    /// Of each worker: how often it had put a thread there, and the tick at which that was first seen.
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
    /// At the beginning of a search.
    pub(super) fn note_next(&self, choice: &Choice) {
        for (other, seen) in self.shared.stealable.iter().zip(&choice.seen.puts) {
            let puts = other.next.puts();
            if seen.get().0 != puts {
                seen.set((puts, clock::ticks()));
            }
        }
    }

    /// At its end: waits until a thread that was there is old, and takes it, or any that is ready before.
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

    /// Before it goes to sleep: how to watch.
    pub(super) fn plan_watch(&self, choice: &Choice) -> Watch {
        let Seen { sum, pause, .. } = &choice.seen;
        let puts = self.shared.stealable.iter().fold(0_u32, |sum, one| sum.wrapping_add(one.next.puts()));
        let expects = sum.replace(puts) != puts || self.sees_next();
        let time = pause.get();
        pause.set(if expects { (time * 2).min(LONGEST) } else { SHORTEST });
        Watch { expects, time }
    }

    /// Whether any LWP has a thread that it runs next: this one has none when it goes to sleep, but may have put one as a poller.
    pub(super) fn sees_next(&self) -> bool {
        self.shared.stealable.iter().any(|one| !one.next.is_empty())
    }
}
