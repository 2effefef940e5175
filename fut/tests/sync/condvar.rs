//! The condition variable.

use std::sync::Arc;

use fut::{
    spawn,
    sync::{Condvar, Mutex},
    yield_now,
};

use super::{LONG, SOON, join_all, on_one_and_four_lwps};

type Shared<T> = Arc<(Mutex<T>, Condvar)>;

fn shared<T>(value: T) -> Shared<T> {
    Arc::new((Mutex::new(value), Condvar::new()))
}

/// Waits, and says whether it timed out. `0` counts those who wait.
fn waiter(shared: &Shared<usize>) -> impl FnOnce() -> bool + use<> {
    let shared = Arc::clone(shared);
    move || {
        let mut guard = shared.0.lock();
        *guard += 1;
        shared.1.wait_timeout(guard, LONG).1.timed_out()
    }
}

fn until_all_wait(shared: &Shared<usize>, count: usize) {
    while *shared.0.lock() < count {
        yield_now();
    }
}

#[test]
fn one_is_notified_or_all() {
    on_one_and_four_lwps(|| {
        let shared = shared(0);
        // More than are woken in one go.
        let waiters: Vec<_> = (0..40).map(|_| spawn(waiter(&shared))).collect();
        until_all_wait(&shared, 40);
        shared.1.notify_one();
        shared.1.notify_all();
        assert!(join_all(waiters).iter().all(|timed_out| !timed_out));
    });
}

#[test]
fn each_notification_wakes_one() {
    on_one_and_four_lwps(|| {
        let shared = shared(0);
        let waiters: Vec<_> = (0..10).map(|_| spawn(waiter(&shared))).collect();
        until_all_wait(&shared, 10);
        (0..10).for_each(|_| shared.1.notify_one());
        assert!(join_all(waiters).iter().all(|timed_out| !timed_out));
    });
}

#[test]
fn a_condition_is_waited_for() {
    on_one_and_four_lwps(|| {
        let shared = shared(0);
        let counter = {
            let shared = Arc::clone(&shared);
            spawn(move || {
                for _ in 0..100 {
                    *shared.0.lock() += 1;
                    shared.1.notify_all();
                    yield_now();
                }
            })
        };
        let guard = shared.1.wait_while(shared.0.lock(), |count| *count < 100);
        assert_eq!(*guard, 100);
        drop(guard);
        counter.join().unwrap();
    });
}

#[test]
fn nobody_notifies_and_the_time_is_over() {
    on_one_and_four_lwps(|| {
        let shared = shared(0);
        let (guard, result) = shared.1.wait_timeout(shared.0.lock(), SOON);
        assert!(result.timed_out());
        let (guard, result) = shared.1.wait_timeout_while(guard, SOON, |count| *count == 0);
        assert!(result.timed_out());
        let (guard, result) = shared.1.wait_timeout_while(guard, SOON, |count| *count == 1);
        assert!(!result.timed_out());
        drop(guard);
        // It left the queue: this notification is for nobody.
        shared.1.notify_one();
        assert!(shared.1.wait_timeout(shared.0.lock(), SOON).1.timed_out());
    });
}

/// A queue by hand: what goes in comes out, with waits of all kinds on both sides.
#[test]
fn a_queue_made_of_it_loses_nothing() {
    on_one_and_four_lwps(|| {
        let shared = shared(Vec::new());
        let consumers: Vec<_> = (0..4)
            .map(|n| {
                let shared = Arc::clone(&shared);
                spawn(move || {
                    let mut sum = 0;
                    for _ in 0..500 {
                        let mut queue = shared.0.lock();
                        while queue.is_empty() {
                            queue = match n {
                                0 => shared.1.wait_timeout(queue, std::time::Duration::from_micros(50)).0,
                                _ => shared.1.wait(queue),
                            };
                        }
                        sum += queue.pop().unwrap();
                    }
                    sum
                })
            })
            .collect();
        join_all((0..2_000).map(|n| {
            let shared = Arc::clone(&shared);
            spawn(move || {
                shared.0.lock().push(n);
                shared.1.notify_one();
            })
        }));
        assert_eq!(join_all(consumers).iter().sum::<i64>(), (0..2_000).sum::<i64>());
    });
}
