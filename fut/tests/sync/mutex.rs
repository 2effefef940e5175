//! The mutex.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use fut::{spawn, sync::Mutex, yield_now};

use super::{Dice, LONG, SOON, join_all, on_one_and_four_lwps};

#[test]
fn it_is_small_and_can_be_a_static() {
    static COUNT: Mutex<u32> = Mutex::new(0);
    assert_eq!(*COUNT.lock(), 0);
    assert_eq!(size_of::<Mutex<()>>(), 24);
}

#[test]
fn it_excludes_while_threads_yield_inside() {
    on_one_and_four_lwps(|| {
        let total = Arc::new(Mutex::new(0_u64));
        join_all((0..50).map(|_| {
            let total = Arc::clone(&total);
            spawn(move || {
                for round in 0..200 {
                    let mut guard = total.lock();
                    let seen = *guard;
                    if round % 7 == 0 {
                        yield_now();
                    }
                    *guard = seen + 1;
                }
            })
        }));
        assert_eq!(*total.lock(), 10_000);
    });
}

/// ```text
/// holder  |-- holds --|-- takes it again --|-- asks: handed over, so it waits --|
/// waiter     asks, waits    | woken too late: in front | has it |
/// ```
#[test]
fn a_waiter_is_overtaken_once_at_most_by_one_that_takes_it_again_and_again() {
    on_one_and_four_lwps(|| {
        let mutex = Arc::new(Mutex::new(()));
        let got_it = Arc::new(AtomicBool::new(false));
        let guard = mutex.lock();
        let waiter = {
            let (mutex, got_it) = (Arc::clone(&mutex), Arc::clone(&got_it));
            spawn(move || {
                let _guard = mutex.lock();
                got_it.store(true, Ordering::Relaxed);
            })
        };
        yield_now();
        drop(guard);
        // Never lets go while it yields: without the hand-over this would go on for ever on one LWP.
        while !got_it.load(Ordering::Relaxed) {
            let _guard = mutex.lock();
            yield_now();
        }
        waiter.join().unwrap();
    });
}

#[test]
fn a_panic_while_it_is_held_unlocks_and_does_not_poison_it() {
    on_one_and_four_lwps(|| {
        let mutex = Arc::new(Mutex::new(1));
        let panics = {
            let mutex = Arc::clone(&mutex);
            spawn(move || {
                *mutex.lock() = 2;
                let _guard = mutex.lock();
                yield_now();
                panic!("on purpose");
            })
        };
        let waits = {
            let mutex = Arc::clone(&mutex);
            spawn(move || *mutex.lock())
        };
        assert!(panics.join().is_err());
        assert!(matches!(waits.join(), Ok(1 | 2)));
        assert_eq!(*mutex.lock(), 2);
    });
}

#[test]
fn a_wait_with_a_limit_ends_without_the_mutex_or_with_it() {
    on_one_and_four_lwps(|| {
        let mutex = Arc::new(Mutex::new(()));
        let guard = mutex.lock();
        assert!(mutex.try_lock().is_none());
        assert!(mutex.try_lock_for(SOON).is_none());
        assert!(mutex.try_lock_until(Instant::now()).is_none());
        let patient = {
            let mutex = Arc::clone(&mutex);
            spawn(move || mutex.try_lock_for(LONG).is_some())
        };
        let for_ever = {
            let mutex = Arc::clone(&mutex);
            spawn(move || mutex.try_lock_for(Duration::MAX).is_some())
        };
        yield_now();
        drop(guard);
        assert!(patient.join().unwrap() && for_ever.join().unwrap());
        assert!(mutex.try_lock().is_some());
    });
}

/// Deadlines and hand-overs meet at random; the count says whether each that had the mutex had it alone, and that the
/// test ends says that no wake-up went to one that had given up.
#[test]
fn deadlines_lose_no_wakeup_of_others() {
    on_one_and_four_lwps(|| {
        let total = Arc::new(Mutex::new(0_usize));
        let had_it = Arc::new(AtomicUsize::new(0));
        join_all((1..=20).map(|seed| {
            let (total, had_it) = (Arc::clone(&total), Arc::clone(&had_it));
            spawn(move || {
                let mut dice = Dice(seed * 7919);
                for _ in 0..100 {
                    let guard = match dice.roll(4) {
                        0 => Some(total.lock()),
                        1 => total.try_lock_until(Instant::now()),
                        _ => total.try_lock_for(Duration::from_micros(dice.roll(300))),
                    };
                    if let Some(mut guard) = guard {
                        let seen = *guard;
                        (0..dice.roll(4)).for_each(|_| yield_now());
                        *guard = seen + 1;
                        had_it.fetch_add(1, Ordering::Relaxed);
                    }
                }
            })
        }));
        assert_eq!(total.try_lock().map(|total| *total), Some(had_it.load(Ordering::Relaxed)));
    });
}
