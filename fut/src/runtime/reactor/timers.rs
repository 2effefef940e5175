//! Timers, which unpark user threads and wake futures.
//!
//! The timers form a radix heap (Ahuja, Mehlhorn, Orlin, Tarjan, "Faster Algorithms for the Shortest Path Problem",
//! 1990). This works because time only advances. Each timer is in a bucket: that of the highest bit in which its time
//! differs from the time up to which all timers have been taken. A timer is added at the end of a bucket, and moves to
//! another one only when the time reaches its bucket. So memory is read sequentially. In a tree or a binary heap of
//! 10^4 timers, the search for a place reads cache lines that are in no cache.
//!
//! A timer that is removed before it is due stays in its bucket until the time reaches the bucket, or until half of all
//! timers are removed ones. Its waker is dropped at once. To remove a timer that has already been taken needs no
//! search: its time is not after the time up to which all have been taken.

use std::{
    cmp::Reverse,
    collections::{HashMap, HashSet},
    hash::{BuildHasherDefault, Hasher},
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    task::Waker,
    time::{Duration, Instant},
};

use super::waiter::Waiter;
use crate::runtime::thread::ThreadRef;

#[derive(Debug)]
pub(super) struct Timers {
    /// Number of timers in the buckets, including removed ones. Read without the lock.
    count: AtomicUsize,
    state: Mutex<State>,
    /// The origin of all times.
    born: Instant,
    /// How late the first timer may be served, so that more are due by then.
    slack: Duration,
}

#[derive(Debug)]
struct State {
    /// Bucket n has the timers whose times differ from `taken` in bit n, and in no higher bit. Since they are after
    /// `taken`, they have a 1 in that bit.
    buckets: [Bucket; 64],
    /// One bit for each bucket: whether it is not empty.
    full: u64,
    /// Number of timers in the buckets.
    count: usize,
    /// The wakers of timers that wake a task instead of a thread, by the number of the timer.
    tasks: HashMap<u64, Waker, BuildHasherDefault<NumberHasher>>,
    /// The numbers of removed timers that are still in a bucket.
    removed: HashSet<u64, BuildHasherDefault<NumberHasher>>,
    next_number: u64,
    /// All timers up to this time have been taken.
    taken: u64,
    /// When the thread that waits for the next timer looks for it again. `None`: only when it is told to.
    looked_for_at: Option<u64>,
}

#[derive(Debug)]
struct Bucket {
    added: Vec<Added>,
    /// The earliest time of all timers in the bucket, including removed ones.
    first: u64,
}

/// A timer that was added; ordered by time, and by number for equal times.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::runtime) struct Timer {
    /// Time in ns since the timers were made.
    at: u64,
    number: u64,
}

#[derive(Clone, Copy, Debug)]
struct Added {
    timer: Timer,
    /// `None` if the timer wakes a task.
    thread: Option<ThreadRef>,
}

/// This number of removed timers may always stay in the buckets.
const FEW: usize = 64;

/// How many places before a thread is unparked its data is prefetched.
const AHEAD: usize = 4;

impl Timers {
    pub(super) fn new(slack: Duration) -> Timers {
        let (count, state) = Default::default();
        Timers { count, state, born: Instant::now(), slack }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // No code of the program runs under this lock, so the state is consistent even if it is poisoned.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The time in ns since the timers were made. An earlier instant counts as that moment.
    fn ns(&self, at: Instant) -> u64 {
        u64::try_from(at.saturating_duration_since(self.born).as_nanos()).unwrap_or(u64::MAX)
    }

    /// Adds a timer. Returns it, and whether it is due before the waiting thread looks for timers again. In that case,
    /// the waiting thread must be notified. A program that sets a time limit for each wait, and removes it each time,
    /// notifies the waiting thread only once per such time limit.
    pub(super) fn add(&self, at: Instant, waiter: Waiter) -> (Timer, bool) {
        let at = self.ns(at);
        let mut state = self.state();
        // A timer that is due already is taken next.
        let at = at.max(state.taken.saturating_add(1));
        let timer = Timer { at, number: state.next_number };
        state.next_number += 1;
        let thread = waiter.thread();
        if let Waiter::Task(waker) = waiter {
            state.tasks.insert(timer.number, waker);
        }
        state.push(Added { timer, thread });
        self.count.store(state.count, Ordering::Relaxed);
        let is_sooner = state.looked_for_at.is_none_or(|then| at < then);
        if is_sooner {
            state.looked_for_at = Some(at);
        }
        (timer, is_sooner)
    }

    /// Removes a timer. Returns whether it has already been taken, which means that its time has come.
    pub(super) fn remove(&self, timer: Timer) -> bool {
        let mut state = self.state();
        if timer.at <= state.taken {
            return true;
        }
        state.removed.insert(timer.number);
        let waker = if state.tasks.is_empty() { None } else { state.tasks.remove(&timer.number) };
        state.drop_if_many();
        self.count.store(state.count, Ordering::Relaxed);
        drop(state);
        // Wakers are code of the program, so they are dropped while the lock is not held.
        drop(waker);
        false
    }

    /// Whether there is no timer. Removed timers that `next` would still consider count as timers.
    pub(super) fn is_empty(&self) -> bool {
        self.count.load(Ordering::Relaxed) == 0
    }

    /// When the first timer is to be served; it may be one that was removed. The caller must wait until then. Takes the
    /// lock in any case, which orders this call with `add`.
    pub(super) fn next(&self) -> Option<Instant> {
        let mut state = self.state();
        let first = state.first();
        state.looked_for_at = first;
        drop(state);
        self.born.checked_add(Duration::from_nanos(first?).saturating_add(self.slack))
    }

    /// If the first timer is as late as the slack allows, removes all timers that are due. Calls `each` with their
    /// waiters.
    pub(super) fn take_due(&self, now: Instant, mut each: impl FnMut(Waiter)) {
        let now = self.ns(now);
        let slack = u64::try_from(self.slack.as_nanos()).unwrap_or(u64::MAX);
        let mut state = self.state();
        if state.first().is_none_or(|first| first > now.saturating_sub(slack)) {
            return;
        }
        let mut taken = state.take(now);
        // The last timer comes first, because they are taken from the end.
        taken.sort_unstable_by_key(|added| Reverse(added.timer));
        let mut waiters: Vec<Waiter> = taken.into_iter().filter_map(|added| state.waiter(added)).collect();
        self.count.store(state.count, Ordering::Relaxed);
        drop(state);
        while let Some(waiter) = waiters.pop() {
            let ahead = waiters.len().checked_sub(AHEAD).and_then(|place| waiters[place].thread());
            ahead.into_iter().for_each(ThreadRef::prefetch);
            each(waiter);
        }
    }
}

impl Default for State {
    fn default() -> State {
        State {
            buckets: [const { Bucket { added: Vec::new(), first: u64::MAX } }; 64],
            full: 0,
            count: 0,
            tasks: HashMap::default(),
            removed: HashSet::default(),
            next_number: 0,
            taken: 0,
            looked_for_at: None,
        }
    }
}

impl State {
    /// The bucket of a time, which must be after `taken`.
    fn bucket_of(&self, at: u64) -> usize {
        (at ^ self.taken).checked_ilog2().unwrap_or(0) as usize
    }

    fn push(&mut self, added: Added) {
        let place = self.bucket_of(added.timer.at);
        let bucket = &mut self.buckets[place];
        bucket.first = bucket.first.min(added.timer.at);
        bucket.added.push(added);
        self.full |= 1 << place;
        self.count += 1;
    }

    /// The earliest time, including those of removed timers.
    fn first(&self) -> Option<u64> {
        Some(self.buckets.get(self.full.trailing_zeros() as usize)?.first)
    }

    fn empty(&mut self, place: usize) -> Vec<Added> {
        self.full &= !(1 << place);
        let bucket = &mut self.buckets[place];
        bucket.first = u64::MAX;
        let added = std::mem::take(&mut bucket.added);
        self.count -= added.len();
        added
    }

    /// Takes all timers up to a time, including removed ones, in no order.
    fn take(&mut self, until: u64) -> Vec<Added> {
        let mut taken = Vec::new();
        if until <= self.taken {
            return taken;
        }
        // All timers in the buckets before that of `until` are due, some of those in its bucket, and none in the
        // buckets after it.
        let last = self.bucket_of(until);
        let mut left = Vec::new();
        while self.full.trailing_zeros() as usize <= last {
            let mut added = self.empty(self.full.trailing_zeros() as usize);
            let later = added.extract_if(.., |added| added.timer.at > until);
            left.extend(later);
            match taken.is_empty() {
                true => taken = added,
                false => taken.append(&mut added),
            }
        }
        self.taken = until;
        left.into_iter().for_each(|added| self.push(added));
        taken
    }

    /// The waiter of a timer that was taken; `None` if the timer was removed before.
    fn waiter(&mut self, added: Added) -> Option<Waiter> {
        if !self.removed.is_empty() && self.removed.remove(&added.timer.number) {
            return None;
        }
        match added.thread {
            Some(thread) => Some(Waiter::Thread(thread)),
            None => self.tasks.remove(&added.timer.number).map(Waiter::Task),
        }
    }

    /// Takes the removed timers out of the buckets, if they are half of all.
    fn drop_if_many(&mut self) {
        if self.removed.len() <= FEW || self.removed.len() < self.count / 2 {
            return;
        }
        for place in 0..self.buckets.len() {
            for added in self.empty(place) {
                if !self.removed.remove(&added.timer.number) {
                    self.push(added);
                }
            }
        }
    }
}

/// Hashes numbers that are assigned one after the other.
#[derive(Default)]
struct NumberHasher(u64);

impl Hasher for NumberHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u64((self.0 << 8) ^ u64::from(*byte)));
    }

    fn write_u64(&mut self, number: u64) {
        // The map uses the lowest and the highest bits.
        self.0 = number.wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(32) ^ number;
    }
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeMap, sync::Arc, task::Wake};

    use super::*;

    fn timers(slack_ms: u64) -> (Timers, impl Fn(u64) -> Instant) {
        let timers = Timers::new(Duration::from_millis(slack_ms));
        let born = timers.born;
        (timers, move |ms| born + Duration::from_millis(ms))
    }

    fn noop() -> Waiter {
        Waiter::Task(Waker::noop().clone())
    }

    fn taken(timers: &Timers, now: Instant) -> usize {
        let mut count = 0;
        timers.take_due(now, |_| count += 1);
        count
    }

    #[test]
    fn who_waits_is_told_of_timers_that_are_due_before_it_looks_again() {
        let (timers, at) = timers(0);
        let add = |ms| timers.add(at(ms), noop());
        assert_eq!(timers.next(), None);
        let (first, is_sooner) = add(10);
        assert!(is_sooner);
        assert!(!add(20).1 && !add(10).1, "it has been told to look, and looks again at 10");
        assert!(!timers.remove(first));
        assert!(!add(15).1, "it looks at 10 nevertheless");
        assert_eq!(timers.next(), Some(at(10)));
        assert_eq!([taken(&timers, at(10)), taken(&timers, at(10))], [1, 0]);
        assert_eq!(timers.next(), Some(at(15)));
        assert!(!add(16).1 && add(14).1 && !add(14).1 && add(13).1);
        assert_eq!(taken(&timers, at(13)), 1);
        assert_eq!(timers.next(), Some(at(14)));
    }

    /// Otherwise the waiting thread would look again at once, for ever.
    #[test]
    fn a_removed_timer_whose_time_has_come_is_waited_for_no_more() {
        let (timers, at) = timers(0);
        let (timer, _) = timers.add(at(10), noop());
        assert!(!timers.remove(timer));
        assert!(!timers.is_empty(), "next has it");
        assert_eq!(timers.next(), Some(at(10)));
        assert_eq!(taken(&timers, at(10)), 0);
        assert!(timers.is_empty() && timers.next().is_none());
    }

    #[test]
    fn a_waker_is_dropped_when_its_timer_is_removed() {
        struct Nothing;
        impl Wake for Nothing {
            fn wake(self: Arc<Self>) {}
        }
        let (timers, at) = timers(0);
        let held = Arc::new(Nothing);
        let (timer, _) = timers.add(at(10), Waiter::Task(Waker::from(Arc::clone(&held))));
        assert_eq!(Arc::strong_count(&held), 2);
        timers.remove(timer);
        assert_eq!(Arc::strong_count(&held), 1);
    }

    #[test]
    fn the_first_may_be_late_by_the_slack_and_then_all_that_are_due_are_taken() {
        let (timers, at) = timers(10);
        for ms in [5, 8, 14, 16] {
            timers.add(at(ms), noop());
        }
        assert_eq!(timers.next(), Some(at(15)));
        assert_eq!([taken(&timers, at(14)), taken(&timers, at(15))], [0, 3]);
        assert_eq!(timers.next(), Some(at(26)));
    }

    /// Compares with an ordered map, for random schedules: near and far times, times before the last one that was
    /// looked at, and hundreds of timers that are removed.
    #[test]
    fn timers_are_taken_in_order_and_removed_ones_are_not() {
        struct Number(u64, Arc<Mutex<Vec<u64>>>);
        impl Wake for Number {
            fn wake(self: Arc<Self>) {
                self.1.lock().unwrap().push(self.0);
            }
        }
        let mut seed = 7_u64;
        let mut draw = |most: u64| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (seed >> 33) % (most + 1)
        };
        let (mut most_left_out, mut all_taken) = (0, [0; 2]);
        for round in 0..100 {
            let (timers, at) = timers(0);
            let woken: Arc<Mutex<Vec<u64>>> = Arc::default();
            let (mut expected, mut all, mut left) = (Vec::new(), Vec::new(), BTreeMap::new());
            let (mut now, far) = (0, if round % 2 == 0 { 40 } else { 1 << 30 });
            for number in 0..1000 {
                match draw(4) {
                    0 | 1 => {
                        let ms = (now + draw(far)).saturating_sub(draw(20));
                        let waker = Waker::from(Arc::new(Number(number, Arc::clone(&woken))));
                        let (timer, _) = timers.add(at(ms), Waiter::Task(waker));
                        all.push(timer);
                        left.insert(timer, number);
                    }
                    2 | 3 if !all.is_empty() => {
                        let before = timers.state().count;
                        let timer = all.swap_remove(draw(all.len() as u64 - 1) as usize);
                        assert_eq!(timers.remove(timer), left.remove(&timer).is_none());
                        let state = timers.state();
                        assert!(state.removed.len() <= FEW.max(state.count / 2));
                        most_left_out = most_left_out.max(before - state.count);
                    }
                    _ => {
                        now += draw((far / 100).max(3));
                        timers.take_due(at(now), Waiter::wake);
                        let until = Timer { at: now * 1_000_000, number: u64::MAX };
                        let later = left.split_off(&until);
                        expected.extend(std::mem::replace(&mut left, later).into_values());
                    }
                }
                let state = timers.state();
                assert_eq!(state.count - state.removed.len(), left.len());
                assert_eq!(state.tasks.len(), left.len());
                assert!(state.first() <= left.keys().next().map(|timer| timer.at).or(Some(u64::MAX)));
            }
            assert_eq!(*woken.lock().unwrap(), expected);
            all_taken[round % 2] += expected.len();
        }
        assert!(all_taken.iter().all(|taken| *taken > 300), "of near and far ones: {all_taken:?}");
        assert!(most_left_out > FEW, "those that were removed have been taken out: {most_left_out}");
    }
}
