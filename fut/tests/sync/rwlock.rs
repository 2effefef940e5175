//! The lock for readers and writers.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use fut::{
    spawn,
    sync::{RwLock, RwLockWriteGuard},
    yield_now,
};

use super::{Dice, LONG, SOON, join_all, on_one_and_four_lwps};

#[test]
fn readers_share_and_a_writer_is_alone() {
    on_one_and_four_lwps(|| {
        let lock = RwLock::new(1);
        let readers = (lock.read(), lock.read());
        assert!(lock.try_write().is_none());
        assert!(lock.try_write_for(SOON).is_none());
        assert!(lock.try_read().is_some());
        drop(readers);
        *lock.write() += 1;
        let writer = lock.write();
        assert!(lock.try_read().is_none() && lock.try_write().is_none());
        assert!(lock.try_read_for(SOON).is_none());
        let reader = RwLockWriteGuard::downgrade(writer);
        assert_eq!((*reader, *lock.read()), (2, 2));
        assert!(lock.try_write().is_none());
    });
}

#[test]
fn a_reader_does_not_overtake_a_writer_that_waits() {
    on_one_and_four_lwps(|| {
        let lock = Arc::new(RwLock::new(0));
        let reader = lock.read();
        let writer = {
            let lock = Arc::clone(&lock);
            spawn(move || *lock.write() = 1)
        };
        while lock.try_read().is_some() {
            yield_now();
        }
        // The writer waits.
        let behind = {
            let lock = Arc::clone(&lock);
            spawn(move || *lock.read())
        };
        (0..10).for_each(|_| yield_now());
        drop(reader);
        assert_eq!(behind.join().unwrap(), 1);
        writer.join().unwrap();
    });
}

/// ```text
/// reader  |-- holds --------------------------------|
/// writer     waits ---- gives up
/// reader        waits after it --- gets in
/// ```
#[test]
fn readers_get_in_when_the_writer_before_them_gives_up() {
    on_one_and_four_lwps(|| {
        let lock = Arc::new(RwLock::new(0));
        let held = lock.read();
        let gave_up = Arc::new(AtomicBool::new(false));
        let writer = {
            let (lock, gave_up) = (Arc::clone(&lock), Arc::clone(&gave_up));
            spawn(move || {
                let wrote = lock.try_write_for(SOON).is_some();
                gave_up.store(true, Ordering::Relaxed);
                wrote
            })
        };
        while lock.try_read().is_some() && !gave_up.load(Ordering::Relaxed) {
            yield_now();
        }
        let reader = {
            let lock = Arc::clone(&lock);
            spawn(move || lock.try_read_for(LONG).map(|value| *value))
        };
        assert_eq!(reader.join().unwrap(), Some(0));
        assert!(!writer.join().unwrap());
        drop(held);
        assert!(lock.try_write().is_some());
    });
}

#[test]
fn a_panicking_writer_lets_go() {
    on_one_and_four_lwps(|| {
        let lock = Arc::new(RwLock::new(1));
        let panics = {
            let lock = Arc::clone(&lock);
            spawn(move || {
                let mut value = lock.write();
                *value = 2;
                yield_now();
                panic!("on purpose");
            })
        };
        assert!(panics.join().is_err());
        assert_eq!(*lock.read(), 2);
    });
}

/// Two halves that only writers change, and only together.
#[test]
fn what_readers_see_is_whole() {
    on_one_and_four_lwps(|| {
        let lock = Arc::new(RwLock::new((0_usize, 0_usize)));
        let writes: usize = join_all((1..=24).map(|seed| {
            let lock = Arc::clone(&lock);
            spawn(move || {
                let mut dice = Dice(seed * 104_729);
                let mut writes = 0;
                for _ in 0..100 {
                    let soon = Duration::from_micros(dice.roll(200));
                    match dice.roll(4) {
                        0 => {
                            let mut pair = lock.write();
                            pair.0 += 1;
                            yield_now();
                            pair.1 += 1;
                            writes += 1;
                            if dice.roll(2) == 0 {
                                let pair = RwLockWriteGuard::downgrade(pair);
                                yield_now();
                                assert_eq!(pair.0, pair.1);
                            }
                        }
                        1 => {
                            if let Some(mut pair) = lock.try_write_for(soon) {
                                pair.0 += 1;
                                pair.1 += 1;
                                writes += 1;
                            }
                        }
                        2 => {
                            if let Some(pair) = lock.try_read_for(soon) {
                                assert_eq!(pair.0, pair.1);
                            }
                        }
                        _ => {
                            let pair = lock.read();
                            yield_now();
                            assert_eq!(pair.0, pair.1);
                        }
                    }
                }
                writes
            })
        }))
        .into_iter()
        .sum();
        assert_eq!(lock.try_write().map(|pair| *pair), Some((writes, writes)));
    });
}
