//! Plain threads: calls that need not wait work, and those that must wait panic with their names.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
    thread,
};

use fut::{
    Runtime,
    sync::{Barrier, Condvar, Mutex, OnceCell, RwLock, Semaphore, channel},
};

use super::{LONG, message};

#[track_caller]
fn panics_with_its_name<T>(name: &str, call: impl FnOnce() -> T) {
    let panic = catch_unwind(AssertUnwindSafe(call)).err().expect("it should have panicked");
    let (message, expected) = (message(&*panic), format!("fut::sync::{name} was called outside a runtime"));
    assert!(message.starts_with(&expected), "{message}");
}

#[test]
fn what_would_have_to_wait_panics_with_its_name() {
    let mutex = Mutex::new(());
    let guard = mutex.lock();
    panics_with_its_name("Mutex::lock", || mutex.lock());
    panics_with_its_name("Mutex::try_lock_for", || mutex.try_lock_for(LONG));
    drop(guard);
    let condvar = Condvar::new();
    panics_with_its_name("Condvar::wait", || condvar.wait(mutex.lock()));
    panics_with_its_name("Condvar::wait_timeout", || condvar.wait_timeout(mutex.lock(), LONG));
    assert!(mutex.try_lock().is_some());

    let lock = RwLock::new(());
    let guard = lock.read();
    panics_with_its_name("RwLock::write", || lock.write());
    drop(guard);
    let guard = lock.write();
    panics_with_its_name("RwLock::read", || lock.read());
    drop(guard);
    assert!(lock.try_write().is_some());

    let semaphore = Semaphore::new(0);
    panics_with_its_name("Semaphore::acquire", || semaphore.acquire());
    panics_with_its_name("Barrier::wait", || Barrier::new(2).wait());
    panics_with_its_name("OnceCell::wait", || *OnceCell::<u32>::new().wait());

    let (sender, receiver) = channel::bounded(0);
    panics_with_its_name("channel::Receiver::recv", || receiver.recv());
    panics_with_its_name("channel::Sender::send", || sender.send(1));
    panics_with_its_name("channel::Receiver::recv_timeout", || receiver.recv_timeout(LONG));
}

/// A plain thread feeds user threads that wait, by each of the calls that it may use.
#[test]
fn a_plain_thread_may_do_what_need_not_wait() {
    let (numbers, received) = channel::unbounded();
    let shared = Arc::new((Mutex::new(false), Condvar::new(), Semaphore::new(0), OnceCell::new()));
    let outside = Arc::clone(&shared);
    let feeder = thread::spawn(move || {
        (0..1_000).for_each(|n| numbers.send(n).unwrap());
        drop(numbers);
        outside.2.add_permits(1);
        outside.3.set("set").unwrap();
        // The user thread holds it only to look.
        loop {
            if let Some(mut open) = outside.0.try_lock() {
                *open = true;
                break;
            }
            thread::yield_now();
        }
        outside.1.notify_all();
    });
    let runtime = Runtime::builder().lwps(2).build().unwrap();
    let (sum, word) = runtime.run(move || {
        let sum: u64 = received.iter().sum();
        shared.2.acquire().unwrap().forget();
        drop(shared.1.wait_while(shared.0.lock(), |open| !*open));
        (sum, *shared.3.wait())
    });
    assert_eq!((sum, word), (499_500, "set"));
    feeder.join().unwrap();
}
