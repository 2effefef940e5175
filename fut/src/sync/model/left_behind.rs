//! Models of waiters whose threads never run again. They are taken out of the queue at any moment after they have
//! queued (rule 7 of `sync/mod.rs`).

use loom::{sync::Arc, thread};

use super::{check, runtime::leave_behind};
use crate::sync::{Condvar, Mutex, Notify, RwLock, Semaphore, broadcast, channel, oneshot, watch};

#[test]
fn loom_mutex_goes_on_to_the_next_when_a_waiter_is_left_behind() {
    check(Some(3), || {
        let mutex = Arc::new(Mutex::new(0));
        let (left, patient) = (Arc::clone(&mutex), Arc::clone(&mutex));
        let left = thread::spawn(move || leave_behind(|| *left.lock() += 1));
        let patient = thread::spawn(move || *patient.lock() += 1);
        *mutex.lock() += 1;
        let got_it = left.join().unwrap();
        patient.join().unwrap();
        assert_eq!(mutex.try_lock().map(|value| *value), Some(2 + i32::from(got_it)));
        // The word has no bit of a waiter left: the mutex is locked without looking at the queue, and unlocked.
        *mutex.lock() += 1;
        assert!(mutex.try_lock().is_some());
    });
}

#[test]
fn loom_rwlock_goes_on_to_the_next_when_a_writer_is_left_behind() {
    check(Some(3), || {
        let lock = Arc::new(RwLock::new(0));
        let (left, patient) = (Arc::clone(&lock), Arc::clone(&lock));
        let left = thread::spawn(move || leave_behind(|| *left.write() += 1));
        let patient = thread::spawn(move || *patient.read());
        drop(lock.read());
        let got_it = left.join().unwrap();
        patient.join().unwrap();
        assert_eq!(lock.try_write().map(|value| *value), Some(i32::from(got_it)));
    });
}

#[test]
fn loom_semaphore_gets_the_permits_back_when_a_waiter_is_left_behind() {
    check(Some(3), || {
        let semaphore = Arc::new(Semaphore::new(1));
        let left = Arc::clone(&semaphore);
        let left = thread::spawn(move || leave_behind(|| drop(left.acquire_many(2).unwrap())));
        let other = Arc::clone(&semaphore);
        let other = thread::spawn(move || drop(other.acquire().unwrap()));
        semaphore.add_permits(1);
        left.join().unwrap();
        other.join().unwrap();
        assert_eq!(semaphore.available_permits(), 2);
    });
}

/// There is one notification, and two threads wait. One of them is left behind: the other gets the notification.
#[test]
fn loom_notify_notifies_another_when_a_waiter_is_left_behind() {
    check(Some(3), || {
        let notify = Arc::new(Notify::new());
        let (left, notifier) = (Arc::clone(&notify), Arc::clone(&notify));
        let left = thread::spawn(move || {
            if leave_behind(|| left.notified()) {
                left.notify_one();
            }
        });
        let notifier = thread::spawn(move || notifier.notify_one());
        notify.notified();
        left.join().unwrap();
        notifier.join().unwrap();
    });
}

/// The same for a condition.
#[test]
fn loom_condvar_notifies_another_when_a_waiter_is_left_behind() {
    check(Some(2), || {
        let door = Arc::new((Mutex::new(false), Condvar::new()));
        let (left, opener) = (Arc::clone(&door), Arc::clone(&door));
        let left =
            thread::spawn(move || leave_behind(|| drop(left.1.wait_while(left.0.lock(), |open| !*open))));
        let opener = thread::spawn(move || {
            *opener.0.lock() = true;
            opener.1.notify_one();
        });
        drop(door.1.wait_while(door.0.lock(), |open| !*open));
        left.join().unwrap();
        opener.join().unwrap();
    });
}

/// A value is lost only with a receiver that was waiting for it.
#[test]
fn loom_channel_has_no_receiver_that_was_left_behind() {
    check(Some(3), || {
        let (sender, receiver) = channel::bounded(0);
        let other = receiver.clone();
        let left = thread::spawn(move || leave_behind(|| drop(receiver.recv())));
        let early = sender.try_send(1).is_ok();
        assert!(!left.join().unwrap());
        assert!(sender.try_send(2).is_err(), "{early}");
        drop(other);
    });
}

/// The value is dropped once, whoever has it.
#[test]
fn loom_oneshot_drops_the_value_for_a_receiver_that_was_left_behind() {
    check(None, || {
        let (sender, receiver) = oneshot::channel();
        let left = thread::spawn(move || leave_behind(|| drop(receiver.recv())));
        let value = std::sync::Arc::new(());
        drop(sender.send(std::sync::Arc::clone(&value)));
        left.join().unwrap();
        assert_eq!(std::sync::Arc::strong_count(&value), 1);
    });
}

#[test]
fn loom_watch_wakes_the_others_when_a_receiver_is_left_behind() {
    check(Some(3), || {
        let (sender, mut receiver) = watch::channel(0);
        let mut other = receiver.clone();
        let left = thread::spawn(move || leave_behind(|| other.changed().unwrap()));
        let sends = thread::spawn(move || sender.send(1).unwrap());
        receiver.changed().unwrap();
        left.join().unwrap();
        sends.join().unwrap();
    });
}

#[test]
fn loom_broadcast_wakes_the_others_when_a_receiver_is_left_behind() {
    check(Some(3), || {
        let (sender, mut receiver) = broadcast::channel(1);
        let mut other = receiver.resubscribe();
        let left = thread::spawn(move || leave_behind(|| drop(other.recv())));
        let sends = thread::spawn(move || sender.send(1).unwrap());
        assert_eq!(receiver.recv(), Ok(1));
        left.join().unwrap();
        sends.join().unwrap();
    });
}

/// What is sent goes to the thread that still receives.
#[test]
fn loom_select_is_in_no_channel_once_it_was_left_behind() {
    check(Some(3), || {
        let (sender, receiver) = channel::bounded(0);
        let (_other, never) = channel::bounded::<()>(0);
        let left = {
            let receiver = receiver.clone();
            thread::spawn(move || {
                leave_behind(|| {
                    crate::select! {
                        recv(receiver) -> _ => (),
                        recv(never) -> _ => (),
                    }
                })
            })
        };
        let early = sender.try_send(1).is_ok();
        left.join().unwrap();
        assert!(sender.try_send(2).is_err(), "{early}");
        drop(receiver);
    });
}
