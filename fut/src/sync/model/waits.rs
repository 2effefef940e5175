//! Models of waiting: condition variable, semaphore, channel, barrier, once cell, future.

use std::{
    future::poll_fn,
    task::{Poll, Waker},
};

use loom::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
};

use super::{check, passed};
use crate::sync::{Barrier, Condvar, Mutex, OnceCell, Semaphore, block_on, channel};

#[test]
fn loom_condvar_loses_no_notification() {
    check(Some(4), || {
        let door = Arc::new((Mutex::new(false), Condvar::new()));
        let other = Arc::clone(&door);
        let opener = thread::spawn(move || {
            *other.0.lock() = true;
            other.1.notify_one();
        });
        let open = door.1.wait_while(door.0.lock(), |open| !*open);
        assert!(*open);
        drop(open);
        opener.join().unwrap();
    });
}

/// Two threads wait, one of them with a deadline, and there is one notification. If the thread without a deadline did
/// not get it, the other one did, and must not return "timed out".
#[test]
fn loom_condvar_does_not_spend_a_notification_on_one_that_timed_out() {
    check(Some(3), || {
        let shared = Arc::new((Mutex::new(0), Condvar::new()));
        let (hasty, notifier) = (Arc::clone(&shared), Arc::clone(&shared));
        let hasty = thread::spawn(move || {
            let mut waiting = hasty.0.lock();
            *waiting += 1;
            let (guard, result) = hasty.1.wait_until(waiting, passed());
            drop(guard);
            if !result.timed_out() {
                hasty.1.notify_one();
            }
        });
        let notifier = thread::spawn(move || {
            *notifier.0.lock() += 10;
            notifier.1.notify_one();
        });
        let guard = shared.1.wait_while(shared.0.lock(), |value| *value < 10);
        drop(guard);
        hasty.join().unwrap();
        notifier.join().unwrap();
    });
}

#[test]
fn loom_semaphore_gives_each_permit_once() {
    check(Some(4), || {
        let semaphore = Arc::new(Semaphore::new(1));
        let inside = Arc::new(loom::cell::UnsafeCell::new(0));
        let threads = [0, 1].map(|_| {
            let (semaphore, inside) = (Arc::clone(&semaphore), Arc::clone(&inside));
            thread::spawn(move || {
                let _permit = semaphore.acquire().unwrap();
                // SAFETY: there is one permit; loom fails the model if this is wrong.
                inside.with_mut(|count| unsafe { *count += 1 });
            })
        });
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        assert_eq!(semaphore.available_permits(), 1);
    });
}

/// One thread requests 2 permits of 1 and gives up. The permit that it got so far goes to the next waiter.
#[test]
fn loom_semaphore_that_times_out_gives_back_what_it_had() {
    check(Some(4), || {
        let semaphore = Arc::new(Semaphore::new(1));
        let (hasty, patient) = (Arc::clone(&semaphore), Arc::clone(&semaphore));
        let hasty = thread::spawn(move || hasty.try_acquire_many_for(2, std::time::Duration::ZERO).is_ok());
        let patient = thread::spawn(move || drop(patient.acquire().unwrap()));
        assert!(!hasty.join().unwrap());
        patient.join().unwrap();
        assert_eq!(semaphore.available_permits(), 1);
    });
}

#[test]
fn loom_semaphore_wakes_its_waiters_when_it_is_closed() {
    check(None, || {
        let semaphore = Arc::new(Semaphore::new(0));
        let other = Arc::clone(&semaphore);
        let waiter = thread::spawn(move || other.acquire().is_err());
        semaphore.close();
        assert!(waiter.join().unwrap());
    });
}

#[test]
fn loom_channel_of_one_keeps_the_order_and_loses_no_wakeup() {
    check(Some(4), || {
        let (sender, receiver) = channel::bounded(1);
        let producer = thread::spawn(move || (0..3).for_each(|n| sender.send(n).unwrap()));
        let received: Vec<i32> = receiver.iter().collect();
        assert_eq!(received, [0, 1, 2]);
        producer.join().unwrap();
    });
}

#[test]
fn loom_channel_of_none_goes_from_hand_to_hand() {
    check(Some(4), || {
        let (sender, receiver) = channel::bounded(0);
        let producer = thread::spawn(move || sender.send(1));
        assert_eq!(receiver.recv(), Ok(1));
        assert!(producer.join().unwrap().is_ok());
    });
}

/// Either the sender that times out has the value, or the receiver has it. Never both, never none.
#[test]
fn loom_channel_neither_loses_nor_duplicates_a_value_at_a_deadline() {
    check(Some(4), || {
        let (sender, receiver) = channel::bounded(0);
        let producer = thread::spawn(move || sender.send_deadline(Box::new(1), passed()).is_ok());
        let received = receiver.recv_deadline(passed()).is_ok();
        assert_eq!(producer.join().unwrap(), received);
    });
}

#[test]
fn loom_channel_wakes_the_receiver_when_the_last_sender_goes() {
    check(None, || {
        let (sender, receiver) = channel::unbounded::<()>();
        let other = thread::spawn(move || drop(sender));
        assert!(receiver.recv().is_err());
        other.join().unwrap();
    });
}

#[test]
fn loom_once_cell_is_made_once_and_seen_by_all() {
    check(Some(4), || {
        let cell = Arc::new(OnceCell::new());
        let threads = [1, 2].map(|n| {
            let cell = Arc::clone(&cell);
            thread::spawn(move || **cell.get_or_init(|| Box::new(n)))
        });
        let seen = threads.map(|thread| thread.join().unwrap());
        assert_eq!(seen[0], seen[1]);
    });
}

#[test]
fn loom_once_cell_wakes_the_others_when_making_fails() {
    check(Some(4), || {
        let cell = Arc::new(OnceCell::new());
        let other = Arc::clone(&cell);
        let fails = thread::spawn(move || other.get_or_try_init(|| Err::<i32, ()>(())).copied());
        assert_eq!(*cell.get_or_init(|| 2), 2);
        // The thread that fails came first, or found the value.
        assert!(matches!(fails.join().unwrap(), Err(()) | Ok(2)));
    });
}

#[test]
fn loom_barrier_opens_for_all_and_one_leads() {
    check(Some(4), || {
        let barrier = Arc::new(Barrier::new(2));
        let other = Arc::clone(&barrier);
        let thread = thread::spawn(move || other.wait().is_leader());
        assert_ne!(barrier.wait().is_leader(), thread.join().unwrap());
    });
}

/// The waker may be used before, while and after the future is polled.
#[test]
fn loom_block_on_loses_no_wake() {
    check(Some(4), || {
        let shared = Arc::new((AtomicBool::new(false), loom::sync::Mutex::new(None::<Waker>)));
        let other = Arc::clone(&shared);
        let wakes = thread::spawn(move || {
            other.0.store(true, Ordering::Release);
            let waker = other.1.lock().unwrap().take();
            waker.into_iter().for_each(Waker::wake);
        });
        block_on(poll_fn(|context| {
            *shared.1.lock().unwrap() = Some(context.waker().clone());
            if shared.0.load(Ordering::Acquire) { Poll::Ready(()) } else { Poll::Pending }
        }));
        wakes.join().unwrap();
    });
}
