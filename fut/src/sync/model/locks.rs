//! Models of mutual exclusion: the spin lock, the mutex, the read-write lock.

use loom::{cell::UnsafeCell, sync::Arc, thread};

use super::{check, passed};
use crate::sync::{Mutex, RwLock, spin_lock::RawSpin};

#[test]
fn loom_spin_lock_excludes() {
    check(None, || {
        let shared = Arc::new((RawSpin::new(), UnsafeCell::new(0)));
        let other = Arc::clone(&shared);
        let add = |shared: &(RawSpin, UnsafeCell<i32>)| {
            let _held = shared.0.lock();
            // SAFETY: the lock is held; loom fails the model if that is not enough.
            shared.1.with_mut(|count| unsafe { *count += 1 });
        };
        let thread = thread::spawn(move || add(&other));
        add(&shared);
        thread.join().unwrap();
        add(&shared);
    });
}

#[test]
fn loom_mutex_excludes_two_and_loses_no_wakeup() {
    check(Some(7), || {
        let mutex = Arc::new(Mutex::new(0));
        let other = Arc::clone(&mutex);
        let thread = thread::spawn(move || {
            *other.lock() += 1;
            *other.lock() += 1;
        });
        *mutex.lock() += 1;
        thread.join().unwrap();
        assert_eq!(*mutex.lock(), 3);
    });
}

/// One thread waits, one barges, and one locks the mutex twice. This covers overtaking and handing over.
#[test]
fn loom_mutex_excludes_three() {
    check(Some(3), || {
        let mutex = Arc::new(Mutex::new(0));
        let threads = [0, 1].map(|_| {
            let mutex = Arc::clone(&mutex);
            thread::spawn(move || *mutex.lock() += 1)
        });
        *mutex.lock() += 1;
        *mutex.lock() += 1;
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        assert_eq!(*mutex.lock(), 4);
    });
}

#[test]
fn loom_mutex_that_timed_out_is_not_held_and_one_that_was_handed_over_is() {
    check(None, || {
        let mutex = Arc::new(Mutex::new(0));
        let other = Arc::clone(&mutex);
        let thread =
            thread::spawn(move || other.try_lock_until(passed()).map(|mut value| *value += 1).is_some());
        *mutex.lock() += 1;
        let locked = thread.join().unwrap();
        // The mutex is free again: it can be locked at once.
        assert_eq!(mutex.try_lock().map(|value| *value), Some(1 + i32::from(locked)));
    });
}

/// The thread that gives up may be the one that was woken. Then the other one must not sleep for ever.
#[test]
fn loom_mutex_passes_a_wakeup_on_when_the_woken_one_gives_up() {
    check(Some(4), || {
        let mutex = Arc::new(Mutex::new(0));
        let (hasty, patient) = (Arc::clone(&mutex), Arc::clone(&mutex));
        let hasty = thread::spawn(move || drop(hasty.try_lock_until(passed())));
        let patient = thread::spawn(move || *patient.lock() += 1);
        *mutex.lock() += 1;
        hasty.join().unwrap();
        patient.join().unwrap();
        assert_eq!(mutex.try_lock().map(|value| *value), Some(2));
    });
}

#[test]
fn loom_rwlock_excludes_writers_and_loses_no_wakeup() {
    check(Some(3), || {
        let lock = Arc::new(RwLock::new(0));
        let (writes, reads) = (Arc::clone(&lock), Arc::clone(&lock));
        let writer = thread::spawn(move || *writes.write() += 1);
        let reader = thread::spawn(move || *reads.read());
        *lock.write() += 1;
        writer.join().unwrap();
        assert!(reader.join().unwrap() <= 2);
        assert_eq!(lock.try_read().map(|value| *value), Some(2));
    });
}

/// A reader holds the lock, a writer waits, a second reader waits after it. When the writer gives up, the second reader
/// must get the lock, although the first still holds it.
#[test]
fn loom_rwlock_lets_readers_in_when_the_writer_before_them_gives_up() {
    check(Some(4), || {
        let lock = Arc::new(RwLock::new(0));
        let held = lock.read();
        let (writes, reads) = (Arc::clone(&lock), Arc::clone(&lock));
        let writer = thread::spawn(move || writes.try_write_until(passed()).is_some());
        let reader = thread::spawn(move || *reads.read());
        assert_eq!(reader.join().unwrap(), 0);
        assert!(!writer.join().unwrap());
        drop(held);
        assert!(lock.try_write().is_some());
    });
}
