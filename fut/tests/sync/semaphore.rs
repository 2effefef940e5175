//! The semaphore.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use fut::{
    spawn,
    sync::{Semaphore, TryAcquireError},
    yield_now,
};

use super::{Dice, SOON, join_all, on_one_and_four_lwps};

#[test]
fn no_more_than_its_permits_are_inside() {
    on_one_and_four_lwps(|| {
        let semaphore = Arc::new(Semaphore::new(3));
        let counts = Arc::new((AtomicUsize::new(0), AtomicUsize::new(0)));
        join_all((0..40).map(|_| {
            let (semaphore, counts) = (Arc::clone(&semaphore), Arc::clone(&counts));
            spawn(move || {
                let (inside, most) = &*counts;
                let _permit = semaphore.acquire().unwrap();
                most.fetch_max(inside.fetch_add(1, Ordering::Relaxed) + 1, Ordering::Relaxed);
                // The first ones stay until three have met.
                while most.load(Ordering::Relaxed) < 3 {
                    yield_now();
                }
                inside.fetch_sub(1, Ordering::Relaxed);
            })
        }));
        assert_eq!(counts.1.load(Ordering::Relaxed), 3);
        assert_eq!(semaphore.available_permits(), 3);
    });
}

#[test]
fn one_that_asks_for_many_is_not_overtaken_by_those_who_ask_for_few() {
    on_one_and_four_lwps(|| {
        let semaphore = Arc::new(Semaphore::new(2));
        let one = semaphore.acquire().unwrap();
        let many = {
            let semaphore = Arc::clone(&semaphore);
            spawn(move || semaphore.acquire_many(2).unwrap().forget())
        };
        while semaphore.available_permits() > 0 {
            yield_now();
        }
        // It has the free one, and waits for the other.
        assert_eq!(semaphore.try_acquire().unwrap_err(), TryAcquireError::NoPermits);
        drop(one);
        many.join().unwrap();
        assert_eq!(semaphore.available_permits(), 0);
    });
}

#[test]
fn permits_split_merge_and_are_forgotten() {
    let semaphore = Arc::new(Semaphore::new(5));
    let mut three = semaphore.try_acquire_many(3).unwrap();
    assert!(three.split(4).is_none());
    let two = three.split(2).unwrap();
    assert_eq!((three.num_permits(), two.num_permits()), (1, 2));
    three.merge(two);
    assert_eq!(three.num_permits(), 3);
    three.forget();
    assert_eq!(semaphore.available_permits(), 2);
    assert_eq!(semaphore.forget_permits(10), 2);
    assert_eq!(semaphore.available_permits(), 0);
    semaphore.add_permits(1);
    let owned = Arc::clone(&semaphore).try_acquire_owned().unwrap();
    assert_eq!(semaphore.available_permits(), 0);
    drop(owned);
    assert_eq!(semaphore.available_permits(), 1);
}

#[test]
fn closing_fails_current_and_later_requests() {
    on_one_and_four_lwps(|| {
        let semaphore = Arc::new(Semaphore::new(1));
        let waiters: Vec<_> = (0..40)
            .map(|_| {
                let semaphore = Arc::clone(&semaphore);
                spawn(move || semaphore.acquire_many(2).is_err())
            })
            .collect();
        while semaphore.available_permits() > 0 {
            yield_now();
        }
        semaphore.close();
        assert!(join_all(waiters).into_iter().all(|closed| closed));
        assert!(semaphore.is_closed());
        assert_eq!(semaphore.try_acquire().unwrap_err(), TryAcquireError::Closed);
        // What the first waiter had got so far is free again.
        assert_eq!(semaphore.available_permits(), 1);
    });
}

#[test]
fn the_time_is_over_and_what_was_given_so_far_goes_back() {
    on_one_and_four_lwps(|| {
        let semaphore = Semaphore::new(1);
        assert_eq!(semaphore.try_acquire_many_for(2, SOON).unwrap_err(), TryAcquireError::NoPermits);
        assert_eq!(semaphore.available_permits(), 1);
        let permit = semaphore.try_acquire_for(SOON).unwrap();
        assert_eq!(semaphore.try_acquire_for(SOON).unwrap_err(), TryAcquireError::NoPermits);
        drop(permit);
        assert_eq!(semaphore.available_permits(), 1);
    });
}

#[test]
fn no_permit_is_lost_or_made() {
    on_one_and_four_lwps(|| {
        let semaphore = Arc::new(Semaphore::new(5));
        let inside = Arc::new(AtomicUsize::new(0));
        join_all((1..=20).map(|seed| {
            let (semaphore, inside) = (Arc::clone(&semaphore), Arc::clone(&inside));
            spawn(move || {
                let mut dice = Dice(seed * 6_700_417);
                for _ in 0..100 {
                    let n = dice.roll(5) as u32 + 1;
                    let permit = match dice.roll(2) {
                        0 => semaphore.acquire_many(n).ok(),
                        _ => semaphore.try_acquire_many_for(n, Duration::from_micros(dice.roll(300))).ok(),
                    };
                    if let Some(permit) = permit {
                        let now = inside.fetch_add(permit.num_permits(), Ordering::Relaxed);
                        assert!(now + permit.num_permits() <= 5);
                        yield_now();
                        inside.fetch_sub(permit.num_permits(), Ordering::Relaxed);
                    }
                }
            })
        }));
        assert_eq!(semaphore.available_permits(), 5);
    });
}
