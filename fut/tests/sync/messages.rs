//! Notify, oneshot, watch and broadcast.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
};

use fut::{
    WaitKind, spawn,
    sync::{Notify, broadcast, oneshot, watch},
    yield_now,
};

use super::{Dice, LONG, SOON, blocked, join_all, on_one_and_four_lwps};

#[test]
fn a_notification_is_kept_for_one_and_wakes_in_order() {
    on_one_and_four_lwps(|| {
        let notify = Arc::new(Notify::new());
        notify.notify_one();
        notify.notify_one();
        notify.notified();
        assert!(!notify.notified_timeout(SOON));
        let order = Arc::new(AtomicUsize::new(0));
        let waiting: Vec<_> = (0..3)
            .map(|_| {
                let (theirs, order) = (Arc::clone(&notify), Arc::clone(&order));
                let thread = spawn(move || {
                    theirs.notified();
                    order.fetch_add(1, Ordering::SeqCst)
                });
                let address = Arc::as_ptr(&notify).addr();
                assert_eq!(blocked(thread.id()), (WaitKind::Notify, address));
                thread
            })
            .collect();
        for (n, thread) in waiting.into_iter().enumerate() {
            notify.notify_one();
            assert_eq!(thread.join().unwrap(), n);
        }
    });
}

#[test]
fn notify_waiters_wakes_all_that_wait_and_leaves_no_permit() {
    on_one_and_four_lwps(|| {
        let notify = Arc::new(Notify::new());
        let waiting: Vec<_> = (0..40)
            .map(|_| {
                let notify = Arc::clone(&notify);
                // A thread that waits again is not woken twice.
                spawn(move || {
                    notify.notified();
                    notify.notified_timeout(SOON)
                })
            })
            .collect();
        for thread in &waiting {
            blocked(thread.id());
        }
        notify.notify_waiters();
        assert!(join_all(waiting).into_iter().all(|again| !again));
        assert!(!notify.notified_timeout(SOON));
    });
}

#[test]
fn notifications_and_deadlines_lose_nothing() {
    on_one_and_four_lwps(|| {
        let shared = Arc::new((Notify::new(), AtomicUsize::new(0)));
        let theirs = Arc::clone(&shared);
        // A notification that the waiter was given is not also a timeout.
        let waiter = spawn(move || {
            let mut dice = Dice(7);
            let mut got = 0;
            while got < 200 {
                let limit = std::time::Duration::from_micros(dice.roll(100));
                if theirs.0.notified_timeout(limit) {
                    got += 1;
                    theirs.1.fetch_add(1, Ordering::SeqCst);
                }
            }
        });
        for n in 0..200 {
            shared.0.notify_one();
            while shared.1.load(Ordering::SeqCst) == n {
                yield_now();
            }
        }
        waiter.join().unwrap();
    });
}

#[test]
fn one_value_goes_through_a_oneshot() {
    on_one_and_four_lwps(|| {
        let (sender, receiver) = oneshot::channel();
        let waits = spawn(move || receiver.recv());
        assert_eq!(blocked(waits.id()).0, WaitKind::Channel);
        sender.send(5).unwrap();
        assert_eq!(waits.join().unwrap(), Ok(5));

        let (sender, mut receiver) = oneshot::channel();
        assert_eq!(receiver.try_recv(), Err(oneshot::TryRecvError::Empty));
        assert_eq!(receiver.recv_timeout(SOON), Err(oneshot::RecvTimeoutError::Timeout));
        sender.send(6).unwrap();
        receiver.close();
        assert_eq!(receiver.recv_timeout(LONG), Ok(6));
        assert_eq!(receiver.try_recv(), Err(oneshot::TryRecvError::Disconnected));
        assert!(receiver.recv().is_err());
    });
}

#[test]
fn a_oneshot_whose_other_end_was_dropped_is_disconnected() {
    on_one_and_four_lwps(|| {
        let (sender, receiver) = oneshot::channel::<u32>();
        let waits = spawn(move || receiver.recv());
        blocked(waits.id());
        // Unwinding drops it, too.
        let panics = spawn(move || {
            let _sender = sender;
            panic!("as it should");
        });
        assert!(panics.join().is_err());
        assert!(waits.join().unwrap().is_err());

        let (mut sender, receiver) = oneshot::channel();
        assert!(!sender.closed_timeout(SOON) && !sender.is_closed());
        let waits = spawn(move || {
            sender.closed();
            sender.send(1)
        });
        blocked(waits.id());
        drop(receiver);
        assert_eq!(waits.join().unwrap(), Err(1));

        let value = Arc::new(());
        let (sender, receiver) = oneshot::channel();
        sender.send(Arc::clone(&value)).unwrap();
        drop(receiver);
        assert_eq!(Arc::strong_count(&value), 1);
    });
}

#[test]
fn watchers_see_the_last_value_and_are_woken_by_changes() {
    on_one_and_four_lwps(|| {
        let (sender, receiver) = watch::channel(0_u64);
        let watchers: Vec<_> = (0..20)
            .map(|_| {
                let mut receiver = receiver.clone();
                spawn(move || {
                    let mut seen = Vec::new();
                    while receiver.changed().is_ok() {
                        seen.push(*receiver.borrow_and_update());
                    }
                    assert!(seen.is_sorted());
                    *receiver.borrow()
                })
            })
            .collect();
        assert_eq!(blocked(watchers[0].id()).0, WaitKind::Channel);
        for n in 1..=500 {
            sender.send(n).unwrap();
            if n % 7 == 0 {
                yield_now();
            }
        }
        drop(sender);
        assert!(join_all(watchers).into_iter().all(|last| last == 500));
    });
}

#[test]
fn a_watched_value_is_seen_or_not() {
    on_one_and_four_lwps(|| {
        let (sender, mut receiver) = watch::channel(1);
        assert_eq!(receiver.has_changed(), Ok(false));
        assert_eq!(receiver.changed_timeout(SOON), Err(watch::RecvTimeoutError::Timeout));
        assert_eq!(sender.send_replace(2), 1);
        assert!(!sender.send_if_modified(|_| false));
        assert!(receiver.borrow().has_changed());
        assert_eq!(receiver.has_changed(), Ok(true));
        assert_eq!(*receiver.borrow_and_update(), 2);
        assert!(!receiver.borrow().has_changed());
        let mut late = sender.subscribe();
        assert!(late.same_channel(&receiver) && sender.receiver_count() == 2);
        let waits = spawn(move || late.wait_for(|value| *value == 9).map(|value| *value));
        (3..=9).for_each(|n| sender.send(n).unwrap());
        assert_eq!(waits.join().unwrap(), Ok(9));
        let closes = sender.clone();
        let waits = spawn(move || closes.closed());
        blocked(waits.id());
        drop(receiver);
        waits.join().unwrap();
        assert!(sender.send(10).is_err());
        assert_eq!(*sender.borrow(), 9);
        let mut last = sender.subscribe();
        drop(sender);
        assert!(last.changed().is_err() && last.has_changed().is_err());
    });
}

#[test]
fn each_receiver_gets_each_value() {
    on_one_and_four_lwps(|| {
        let (sender, first) = broadcast::channel(1_000);
        let receivers: Vec<_> = (0..10)
            .map(|_| first.resubscribe())
            .map(|mut receiver| {
                spawn(move || std::iter::from_fn(|| receiver.recv().ok()).collect::<Vec<u64>>())
            })
            .collect();
        drop(first);
        assert_eq!(blocked(receivers[0].id()).0, WaitKind::Channel);
        // Plain threads send.
        let senders = [0, 1].map(|parity| {
            let sender = sender.clone();
            thread::spawn(move || (0..400).for_each(|n| assert_eq!(sender.send(2 * n + parity).unwrap(), 10)))
        });
        drop(sender);
        let received = join_all(receivers);
        senders.into_iter().for_each(|thread| thread.join().unwrap());
        for mut values in received.clone() {
            assert_eq!(values, received[0], "in the same order");
            values.sort_unstable();
            assert!(values.into_iter().eq(0..800));
        }
    });
}

#[test]
fn a_slow_receiver_is_told_what_it_lost() {
    let (sender, mut receiver) = broadcast::channel(4);
    (0..10).for_each(|n| assert_eq!(sender.send(n).unwrap(), 1));
    assert_eq!(receiver.len(), 10);
    assert_eq!(receiver.recv(), Err(broadcast::RecvError::Lagged(6)));
    assert!((6..10).all(|n| receiver.recv() == Ok(n)));
    assert_eq!(receiver.try_recv(), Err(broadcast::TryRecvError::Empty));
    assert_eq!(receiver.recv_timeout(SOON), Err(broadcast::TryRecvError::Empty));
    sender.send(10).unwrap();
    drop(sender);
    assert_eq!(receiver.recv(), Ok(10));
    assert_eq!(receiver.recv(), Err(broadcast::RecvError::Closed));
}

#[test]
fn a_broadcast_value_is_dropped_with_its_last_reader() {
    let value = Arc::new(());
    let count = || Arc::strong_count(&value) - 1;
    let (sender, mut first) = broadcast::channel(4);
    let (second, third) = (sender.subscribe(), sender.subscribe());
    (0..3).for_each(|_| assert_eq!(sender.send(Arc::clone(&value)).unwrap(), 3));
    assert_eq!(count(), 3);
    (0..3).for_each(|_| drop(first.recv().unwrap()));
    drop(second);
    assert_eq!(count(), 3);
    drop(third);
    assert_eq!(count(), 0);
    (0..9).for_each(|_| assert_eq!(sender.send(Arc::clone(&value)).unwrap(), 1));
    assert_eq!(count(), 4);
    drop(first);
    assert_eq!(count(), 0);
    assert!(sender.send(Arc::clone(&value)).is_err());
    assert_eq!(count(), 0);
}
