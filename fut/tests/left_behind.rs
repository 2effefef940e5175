//! What others use together with user threads whose runtime was dropped: it goes on to the next waiter.

use std::{
    sync::{Arc, mpsc},
    thread,
    time::{Duration, Instant},
};

use fut::{
    Runtime, blocking,
    sync::{Condvar, Mutex, Notify, RwLock, Semaphore, channel, watch},
};

const SOON: Duration = Duration::from_secs(5);

/// A runtime whose only user thread waits in `body`.
fn waits(body: impl FnOnce() + Send + 'static) -> Runtime {
    waits_in(Runtime::builder().lwps(1).build().unwrap(), body)
}

fn waits_in(runtime: Runtime, body: impl FnOnce() + Send + 'static) -> Runtime {
    let (tell, told) = mpsc::channel();
    drop(runtime.spawn(move || {
        tell.send(()).unwrap();
        body();
    }));
    told.recv().unwrap();
    // Mostly it waits by now.
    thread::sleep(Duration::from_millis(20));
    runtime
}

fn migrating() -> Runtime {
    // SAFETY: the threads of these tests use nothing that belongs to an LWP.
    unsafe { Runtime::builder().migrating() }.lwps(1).build().unwrap()
}

/// The ways in which a runtime ends before its threads.
const ENDS: [fn(Runtime); 3] = [
    drop,
    |runtime| drop(runtime.shutdown(Duration::from_millis(10)).unwrap_err()),
    |runtime| {
        runtime.shutdown_background();
        // It does not wait for the LWP, which looks after its thread when it stops.
        thread::sleep(Duration::from_millis(50));
    },
];

/// A plain thread that has to wait for it gets it.
fn goes_on(mutex: &Arc<Mutex<u32>>) {
    for _ in 0..3 {
        let held = mutex.try_lock_for(SOON).expect("it is free");
        let theirs = Arc::clone(mutex);
        let waits = thread::spawn(move || theirs.try_lock_for(SOON).map(|mut value| *value += 1));
        thread::sleep(Duration::from_millis(20));
        drop(held);
        waits.join().unwrap().expect("it was unlocked");
    }
}

#[test]
fn a_mutex_goes_on_to_plain_threads() {
    for end in ENDS {
        let mutex = Arc::new(Mutex::new(0));
        let held = mutex.lock();
        let theirs = Arc::clone(&mutex);
        end(waits(move || drop(theirs.lock())));
        drop(held);
        goes_on(&mutex);
    }
}

/// The only thread is woken to try again, or is handed the mutex, and never runs again.
#[test]
fn a_mutex_goes_on_although_a_thread_was_woken_that_never_ran_again() {
    let mutex = Arc::new(Mutex::new(0));
    let held = mutex.lock();
    let theirs = Arc::clone(&mutex);
    let runtime = waits(move || drop(theirs.lock()));
    let (tell, told) = mpsc::channel();
    // Keeps the LWP until after the drop has begun.
    drop(runtime.spawn(move || {
        tell.send(()).unwrap();
        thread::sleep(Duration::from_millis(100));
    }));
    told.recv().unwrap();
    drop(held);
    drop(runtime);
    goes_on(&mutex);
}

#[test]
fn an_rwlock_goes_on_to_plain_threads() {
    for end in ENDS {
        let lock = Arc::new(RwLock::new(0));
        let held = lock.read();
        let theirs = Arc::clone(&lock);
        end(waits(move || drop(theirs.write())));
        assert!(lock.try_read_for(SOON).is_some(), "no writer waits any more");
        drop(held);
        assert!(lock.try_write_for(SOON).is_some());
    }
}

#[test]
fn permits_go_to_plain_threads() {
    for end in ENDS {
        let semaphore = Arc::new(Semaphore::new(1));
        let theirs = Arc::clone(&semaphore);
        end(waits(move || drop(theirs.acquire_many(2))));
        assert_eq!(semaphore.available_permits(), 1, "it has given back what it had");
        semaphore.add_permits(1);
        assert_eq!(semaphore.available_permits(), 2);
    }
}

#[test]
fn a_notification_goes_to_a_plain_thread() {
    for end in ENDS {
        let notify = Arc::new(Notify::new());
        let theirs = Arc::clone(&notify);
        end(waits(move || theirs.notified()));
        notify.notify_one();
        assert!(notify.notified_timeout(SOON), "it was kept as a permit");
    }
}

#[test]
fn a_condition_is_notified_to_a_plain_thread() {
    for end in ENDS {
        let shared = Arc::new((Mutex::new(false), Condvar::new()));
        let theirs = Arc::clone(&shared);
        let runtime = waits(move || drop(theirs.1.wait(theirs.0.lock())));
        let theirs = Arc::clone(&shared);
        let waits = thread::spawn(move || {
            let (_open, result) = theirs.1.wait_timeout(theirs.0.lock(), SOON);
            result.timed_out()
        });
        thread::sleep(Duration::from_millis(20));
        end(runtime);
        *shared.0.lock() = true;
        shared.1.notify_one();
        assert!(!waits.join().unwrap());
    }
}

#[test]
fn a_value_is_not_given_to_a_receiver_that_is_gone() {
    for end in ENDS {
        let (sender, receiver) = channel::bounded(0);
        let theirs = receiver.clone();
        end(waits(move || _ = theirs.recv()));
        assert!(sender.try_send(1).is_err(), "nobody waits");
        let (other, never) = channel::bounded::<i32>(0);
        let theirs = receiver.clone();
        end(waits(move || {
            fut::select! { recv(theirs) -> _ => (), recv(never) -> _ => () }
        }));
        assert!(sender.try_send(1).is_err(), "nobody waits");
        assert!(other.try_send(1).is_err(), "nobody waits");
        drop(receiver);
    }
}

#[test]
fn a_watched_value_can_be_read_although_a_sender_is_gone() {
    for end in ENDS {
        let (sender, receiver) = watch::channel(0);
        let held = receiver.borrow();
        end(waits(move || _ = sender.send(1)));
        let theirs = receiver.clone();
        let (tell, told) = mpsc::channel();
        thread::spawn(move || tell.send(*theirs.borrow()));
        assert_eq!(told.recv_timeout(SOON), Ok(0));
        drop(held);
    }
}

/// A call that is under way goes on, and so do its waits.
#[test]
fn a_blocking_call_goes_on_after_the_drop() {
    for end in ENDS {
        let (sender, receiver) = channel::bounded(0);
        let (tell, told) = channel::bounded(1);
        end(waits(move || {
            blocking(|| {
                let received: u32 = receiver.recv().unwrap();
                tell.send(received).unwrap();
            });
        }));
        sender.send_timeout(7, SOON).unwrap();
        assert_eq!(told.recv_timeout(SOON), Ok(7));
    }
}

#[test]
fn threads_of_a_migrating_runtime_leave_their_queues_too() {
    let mutex = Arc::new(Mutex::new(0));
    let held = mutex.lock();
    let theirs = Arc::clone(&mutex);
    drop(waits_in(migrating(), move || drop(theirs.lock())));
    drop(held);
    goes_on(&mutex);
}

/// A thread that keeps its LWP does not keep others from what the parked ones wait for.
#[test]
fn parked_threads_leave_their_queues_although_an_lwp_still_runs() {
    let mutex = Arc::new(Mutex::new(0));
    let held = mutex.lock();
    let theirs = Arc::clone(&mutex);
    let runtime = waits(move || drop(theirs.lock()));
    let waiter = runtime.spawn(|| {
        thread::sleep(Duration::from_secs(2));
        42
    });
    thread::sleep(Duration::from_millis(20));
    let begun = Instant::now();
    let error = runtime.shutdown(Duration::from_millis(50)).unwrap_err();
    assert_eq!(error.count, 2);
    assert!(begun.elapsed() < Duration::from_millis(1500), "{:?}", begun.elapsed());
    drop(held);
    goes_on(&mutex);
    // The thread that keeps its LWP continues until it leaves it.
    assert_eq!(waiter.join().unwrap(), 42);
}

/// Neither a thread that does not leave its LWP, nor a destructor of a thread-local of that, nor an urgent thread on the
/// reactor's LWP delays the end.
#[test]
fn a_shutdown_keeps_its_limit() {
    struct Slow;
    impl Drop for Slow {
        fn drop(&mut self) {
            thread::sleep(Duration::from_secs(2));
        }
    }
    std::thread_local!(static SLOW: Slow = const { Slow });
    let sleeps = || thread::sleep(Duration::from_secs(2));
    for how in 0..4 {
        let runtime = Runtime::builder().lwps(2).build().unwrap();
        runtime.run(move || match how {
            0 => drop(fut::spawn(sleeps)),
            1 => drop(fut::Builder::new().priority(fut::Priority::Urgent).spawn(sleeps)),
            2 => SLOW.with(|_| ()),
            _ => drop(fut::spawn(move || blocking(sleeps))),
        });
        thread::sleep(Duration::from_millis(20));
        let begun = Instant::now();
        let ended = runtime.shutdown(Duration::from_millis(100));
        assert!(begun.elapsed() < Duration::from_millis(1500), "{how}: {:?}", begun.elapsed());
        assert_eq!(ended.is_ok(), how == 2);
    }
    let runtime = Runtime::builder().lwps(1).build().unwrap();
    drop(runtime.spawn(sleeps));
    thread::sleep(Duration::from_millis(20));
    let begun = Instant::now();
    runtime.shutdown_background();
    assert!(begun.elapsed() < Duration::from_millis(1500), "{:?}", begun.elapsed());
}

/// The threads of an LWP that was left still use its stack, the runtime's timers and descriptors: they find them, or errors.
#[test]
fn a_thread_that_outlives_its_runtime_goes_on_until_it_leaves_its_lwp() {
    let (tell, told) = mpsc::channel();
    let runtime = Runtime::builder().lwps(1).build().unwrap();
    drop(runtime.spawn(move || {
        thread::sleep(Duration::from_millis(200));
        let listener = fut::net::TcpListener::bind("127.0.0.1:0");
        let inner = fut::spawn(|| 1);
        tell.send(listener.is_err()).unwrap();
        drop(inner);
        fut::sleep(Duration::from_millis(1));
        tell.send(true).unwrap();
    }));
    thread::sleep(Duration::from_millis(20));
    runtime.shutdown(Duration::ZERO).unwrap_err();
    told.recv_timeout(SOON).unwrap();
    assert!(told.recv_timeout(Duration::from_millis(500)).is_err(), "it has left its LWP");
}
