//! User threads: results, panics, yielding, the mutex.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use fut::{Builder, Policy, Runtime, spawn, sync::Mutex, yield_now};

fn runtime(lwps: usize) -> Runtime {
    Runtime::builder().lwps(lwps).build().unwrap()
}

#[test]
fn join_gives_the_result_or_what_the_thread_panicked_with() {
    let (sum, panic) = runtime(2).run(|| {
        let sum = spawn(|| 40 + 2).join().unwrap();
        let panic = spawn(|| panic!("on purpose")).join().unwrap_err();
        (sum, panic.downcast_ref::<&str>().map(|s| s.to_string()))
    });
    assert_eq!((sum, panic.as_deref()), (42, Some("on purpose")));
}

#[test]
fn a_thread_that_yields_lets_the_others_go_first() {
    let fifo = Runtime::builder().lwps(1).policy(Policy::SharedFifo).build().unwrap();
    let order = fifo.run(|| {
        let order = Arc::new(Mutex::new(Vec::new()));
        let threads: Vec<_> = (0..3)
            .map(|n| {
                let order = Arc::clone(&order);
                spawn(move || {
                    for round in 0..2 {
                        order.lock().push((round, n));
                        yield_now();
                    }
                })
            })
            .collect();
        threads.into_iter().for_each(|t| t.join().unwrap());
        Arc::into_inner(order).unwrap().into_inner()
    });
    assert_eq!(order, [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2)]);
}

#[test]
fn the_mutex_excludes_and_blocks_the_thread_not_the_lwp() {
    let total = runtime(4).run(|| {
        let total = Arc::new(Mutex::new(0_u64));
        let threads: Vec<_> = (0..100)
            .map(|_| {
                let total = Arc::clone(&total);
                spawn(move || {
                    for _ in 0..100 {
                        let mut guard = total.lock();
                        let seen = *guard;
                        yield_now();
                        *guard = seen + 1;
                    }
                })
            })
            .collect();
        threads.into_iter().for_each(|t| t.join().unwrap());
        *total.lock()
    });
    assert_eq!(total, 10_000);
}

#[test]
fn ten_thousand_threads_are_born_and_die() {
    let ran = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&ran);
    runtime(3).run(move || {
        for batch in 0..100 {
            let named = |n| Builder::new().name(format!("batch {batch}, {n}"));
            let count = |_| {
                let counted = Arc::clone(&counted);
                named(batch).spawn(move || counted.fetch_add(1, Ordering::Relaxed))
            };
            let threads: Vec<_> = (0..100).map(count).collect();
            let joined: Vec<usize> = threads.into_iter().map(|t| t.join().unwrap()).collect();
            assert_eq!(joined.len(), 100);
        }
    });
    assert_eq!(ran.load(Ordering::Relaxed), 10_000);
}

#[test]
fn a_runtime_that_is_dropped_leaves_blocked_threads_behind() {
    let mutex = Arc::new(Mutex::new(()));
    let held = Arc::clone(&mutex);
    let runtime = runtime(2);
    runtime.run(move || {
        let guard = held.lock();
        let waits = Arc::clone(&held);
        drop(spawn(move || drop(waits.lock())));
        yield_now();
        std::mem::forget(guard);
    });
    drop(runtime);
    assert!(mutex.try_lock().is_none());
}
