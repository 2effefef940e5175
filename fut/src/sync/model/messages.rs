//! Models of notify, oneshot, watch and broadcast.

use loom::{sync::Arc, thread};

use super::{check, passed};
use crate::sync::{Notify, broadcast, oneshot, watch};

/// There are two notifications and two threads. The thread with a deadline must not lose a notification that it was
/// given.
#[test]
fn loom_notify_does_not_spend_a_notification_on_one_that_timed_out() {
    check(Some(3), || {
        let notify = Arc::new(Notify::new());
        let (hasty, notifier) = (Arc::clone(&notify), Arc::clone(&notify));
        let hasty = thread::spawn(move || {
            if hasty.notified_deadline(passed()) {
                hasty.notify_one();
            }
        });
        let notifier = thread::spawn(move || notifier.notify_one());
        notify.notified();
        hasty.join().unwrap();
        notifier.join().unwrap();
    });
}

/// A notification of one thread is for the thread that waits, or is kept; a notification of all changes nothing about that.
#[test]
fn loom_notify_waiters_neither_takes_nor_leaves_a_permit() {
    check(None, || {
        let notify = Arc::new(Notify::new());
        let other = Arc::clone(&notify);
        let waits = thread::spawn(move || other.notified_deadline(passed()));
        notify.notify_one();
        notify.notify_waiters();
        assert_ne!(waits.join().unwrap(), notify.notified_deadline(passed()));
    });
}

/// Either the receiver that gives up has the value, or it gets it at its next attempt.
#[test]
fn loom_oneshot_loses_no_value_at_a_deadline() {
    check(None, || {
        let (sender, mut receiver) = oneshot::channel();
        let sends = thread::spawn(move || sender.send(Box::new(1)).is_ok());
        let value = receiver.recv_deadline(passed()).or_else(|_| receiver.recv().map_err(drop));
        assert_eq!(value, Ok(Box::new(1)));
        assert!(sends.join().unwrap());
    });
}

#[test]
fn loom_oneshot_wakes_either_end_when_the_other_goes() {
    check(Some(4), || {
        let (mut sender, receiver) = oneshot::channel::<()>();
        let goes = thread::spawn(move || drop(receiver));
        sender.closed();
        goes.join().unwrap();
        let (sender, receiver) = oneshot::channel::<()>();
        let goes = thread::spawn(move || drop(sender));
        assert!(receiver.recv().is_err());
        goes.join().unwrap();
    });
}

#[test]
fn loom_watch_misses_no_change_and_sees_the_last() {
    check(Some(3), || {
        let (sender, mut receiver) = watch::channel(0);
        let sends = thread::spawn(move || {
            sender.send(1).unwrap();
            sender.send(2).unwrap();
        });
        while receiver.changed().is_ok() {}
        assert_eq!(*receiver.borrow(), 2);
        sends.join().unwrap();
    });
}

#[test]
fn loom_watch_wakes_the_sender_when_the_last_receiver_goes() {
    check(None, || {
        let (sender, receiver) = watch::channel(0);
        let other = receiver.clone();
        let goes = thread::spawn(move || drop(receiver));
        drop(other);
        sender.closed();
        goes.join().unwrap();
    });
}

#[test]
fn loom_broadcast_gives_each_value_to_both() {
    check(Some(3), || {
        let (sender, mut first) = broadcast::channel(2);
        let mut second = first.resubscribe();
        let receives = thread::spawn(move || (second.recv(), second.recv(), second.recv()));
        sender.send(1).unwrap();
        drop(sender);
        assert_eq!((first.recv(), first.recv()), (Ok(1), Err(broadcast::RecvError::Closed)));
        let theirs = receives.join().unwrap();
        assert_eq!((theirs.0, theirs.1.is_err(), theirs.2.is_err()), (Ok(1), true, true));
    });
}
