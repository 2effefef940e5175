//! Plain threads: they wait as user threads do, for user threads and for each other.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
    time::Instant,
};

use fut::{
    Runtime,
    sync::{Barrier, Condvar, Mutex, OnceCell, RwLock, Semaphore, channel},
};

use super::{LONG, SOON, join_all};

/// Runs `body` in some user threads and in some plain ones, and waits for all.
fn on_both(body: impl Fn(u64) + Clone + Send + 'static) {
    let runtime = Runtime::builder().lwps(2).build().unwrap();
    let users: Vec<_> = (0..4)
        .map(|n| {
            let body = body.clone();
            runtime.spawn(move || body(n))
        })
        .collect();
    let plain: Vec<_> = (4..8)
        .map(|n| {
            let body = body.clone();
            thread::spawn(move || body(n))
        })
        .collect();
    plain.into_iter().for_each(|thread| thread.join().unwrap());
    join_all(users);
}

#[test]
fn locks_exclude_user_threads_and_plain_threads() {
    let shared = Arc::new((Mutex::new(0), RwLock::new(0), Semaphore::new(2), AtomicUsize::new(0)));
    let all = Arc::clone(&shared);
    on_both(move |_| {
        for _ in 0..500 {
            *shared.0.lock() += 1;
            *shared.1.write() += 1;
            assert!(*shared.1.read() > 0);
            let permit = shared.2.acquire().unwrap();
            assert!(shared.3.fetch_add(1, Ordering::SeqCst) < 2);
            fut::yield_now();
            shared.3.fetch_sub(1, Ordering::SeqCst);
            drop(permit);
        }
    });
    assert_eq!((*all.0.lock(), *all.1.read()), (4_000, 4_000));
}

#[test]
fn both_meet_at_a_barrier_and_wait_for_a_condition_and_a_value() {
    let shared = Arc::new((Barrier::new(8), Mutex::new(0), Condvar::new(), OnceCell::new()));
    on_both(move |n| {
        for round in 1..=20 {
            let leads = shared.0.wait().is_leader();
            let mut turn = shared.1.lock();
            if leads {
                *turn = round;
                shared.2.notify_all();
            }
            drop(shared.2.wait_while(turn, |turn| *turn < round));
        }
        if n == 0 {
            shared.3.set(7).unwrap();
        }
        assert_eq!(*shared.3.wait(), 7);
    });
}

#[test]
fn values_go_from_plain_threads_to_user_threads_and_back() {
    for capacity in [0, 1, 64] {
        let (requests, inbox) = channel::bounded::<u64>(capacity);
        let (answers, outbox) = channel::bounded::<u64>(capacity);
        let runtime = Runtime::builder().lwps(2).build().unwrap();
        let server = runtime.spawn(move || inbox.iter().for_each(|n| answers.send(2 * n).unwrap()));
        let client = thread::spawn(move || (0..1_000).for_each(|n| requests.send(n).unwrap()));
        assert!(outbox.iter().eq((0..1_000).map(|n| 2 * n)));
        client.join().unwrap();
        server.join().unwrap();
    }
}

#[test]
fn a_plain_thread_gives_up_at_its_deadline() {
    let mutex = Mutex::new(());
    let guard = mutex.lock();
    let begun = Instant::now();
    assert!(mutex.try_lock_for(SOON).is_none());
    assert!(begun.elapsed() >= SOON);
    drop(guard);
    assert!(mutex.try_lock_for(LONG).is_some());
    let (sender, receiver) = channel::bounded::<()>(0);
    assert!(receiver.recv_timeout(SOON).is_err());
    assert!(sender.send_timeout((), SOON).is_err());
    assert!(Condvar::new().wait_timeout(mutex.lock(), SOON).1.timed_out());
}

/// The blocks of plain threads are reused.
#[test]
fn many_plain_threads_one_after_the_other_wait() {
    let (sender, receiver) = channel::bounded(0);
    for n in 0..100 {
        let sender = sender.clone();
        let thread = thread::spawn(move || sender.send(n).unwrap());
        assert_eq!(receiver.recv(), Ok(n));
        thread.join().unwrap();
    }
}

/// Waits in the destructor of a thread-local, also in one that comes after all others of this crate.
#[test]
fn a_plain_thread_waits_in_the_destructors_of_its_thread_locals() {
    struct Waits(channel::Receiver<u32>, fut::sync::oneshot::Sender<u32>, channel::Sender<fut::Unparker>);
    impl Drop for Waits {
        fn drop(&mut self) {
            let nothing = channel::never::<u32>();
            let selected = fut::select! {
                recv(self.0) -> value => value.unwrap(),
                recv(nothing) -> _ => 0,
            };
            self.2.send(fut::unparker()).unwrap();
            fut::park();
            let value = selected + self.0.recv().unwrap();
            let (other, _) = fut::sync::oneshot::channel();
            std::mem::replace(&mut self.1, other).send(value).unwrap();
        }
    }
    std::thread_local! {
        static FIRST: std::cell::RefCell<Option<Waits>> = const { std::cell::RefCell::new(None) };
    }
    let (values, receiver) = channel::bounded(0);
    let (sender, mut result) = fut::sync::oneshot::channel();
    let (unparkers, unparker) = channel::bounded(1);
    thread::spawn(move || {
        // Registered first, destroyed last or first: both before and after what this crate has.
        FIRST.with_borrow_mut(|first| *first = Some(Waits(receiver, sender, unparkers)));
        Semaphore::new(1).acquire().unwrap().forget();
        let _ = Mutex::new(()).lock();
        let _ = channel::never::<()>().recv_timeout(SOON);
    });
    let limit = std::time::Duration::from_secs(20);
    thread::sleep(SOON);
    values.send_timeout(3, limit).unwrap();
    unparker.recv_timeout(limit).unwrap().unpark();
    thread::sleep(SOON);
    values.send_timeout(4, limit).unwrap();
    assert_eq!(result.recv_timeout(limit), Ok(7));
}

/// As std's `join`: the token of `std::thread::park` belongs to the program.
#[test]
fn joining_from_a_plain_thread_leaves_its_park_token_alone() {
    let runtime = Runtime::builder().lwps(1).build().unwrap();
    thread::current().unpark();
    runtime.spawn(|| fut::sleep(SOON)).join().unwrap();
    runtime.run(|| fut::sleep(SOON));
    let begun = Instant::now();
    thread::park_timeout(std::time::Duration::from_secs(10));
    assert!(begun.elapsed() < std::time::Duration::from_secs(5), "the token was consumed");
}
