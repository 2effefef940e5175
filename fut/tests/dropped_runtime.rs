//! Joining a user thread whose runtime was dropped before the thread ended: an error, and no wait for ever.

use std::{
    any::Any,
    sync::{Arc, mpsc},
    thread,
    time::Duration,
};

use fut::{Builder, JoinHandle, Priority, Runtime, RuntimeDropped, blocking, spawn, sync::Semaphore};

fn runtime(lwps: usize) -> Runtime {
    Runtime::builder().lwps(lwps).build().unwrap()
}

/// A user thread that has begun, and waits for ever.
fn waits_for_ever(runtime: &Runtime) -> JoinHandle<u32> {
    let (tell, told) = mpsc::channel();
    let handle = runtime.spawn(move || {
        tell.send(()).unwrap();
        drop(Semaphore::new(0).acquire());
        7
    });
    told.recv().unwrap();
    handle
}

/// What `body` gives, on a kernel thread of its own; the test fails if it does not end.
fn in_time<T: Send + 'static>(body: impl FnOnce() -> T + Send + 'static) -> T {
    let (send, receive) = mpsc::channel();
    thread::spawn(move || send.send(body()));
    receive.recv_timeout(Duration::from_secs(20)).expect("it ends")
}

#[track_caller]
fn is_told(joined: Result<u32, Box<dyn Any + Send>>) {
    let error = joined.expect_err("it has not ended");
    let error = error.downcast_ref::<RuntimeDropped>().expect("it has not panicked either");
    assert!(error.to_string().contains("its runtime was dropped before it ended"), "{error}");
}

#[test]
fn a_thread_of_a_dropped_runtime_is_not_waited_for() {
    let runtime = runtime(2);
    let (begun, never_begun) = (
        waits_for_ever(&runtime),
        runtime.spawn(|| {
            loop {
                fut::yield_now();
            }
        }),
    );
    let ended = runtime.spawn(|| 42);
    while !ended.is_finished() {
        thread::yield_now();
    }
    drop(runtime);
    is_told(in_time(|| begun.join()));
    is_told(in_time(|| never_begun.join()));
    assert_eq!(ended.join().unwrap(), 42);
}

#[test]
fn waiters_for_a_thread_get_an_error_when_its_runtime_is_dropped() {
    // Joined by a plain thread, and by a user thread of another runtime: on a worker, on the reactor's LWP, in a blocking
    // call.
    let other = Arc::new(runtime(2));
    for how in 0..4 {
        let runtime = runtime(1);
        let handle = waits_for_ever(&runtime);
        let (tell, told) = mpsc::channel();
        let theirs = Arc::clone(&other);
        let joins = move || {
            tell.send(()).unwrap();
            handle.join()
        };
        let waits = thread::spawn(move || match how {
            0 => joins(),
            1 => theirs.run(joins),
            2 => theirs.run(|| Builder::new().priority(Priority::Urgent).spawn(joins).join().unwrap()),
            _ => theirs.run(|| blocking(joins)),
        });
        told.recv().unwrap();
        if how % 2 == 0 {
            // Mostly it waits by now; either order has to be right.
            thread::sleep(Duration::from_millis(5));
        }
        drop(runtime);
        is_told(in_time(|| waits.join().unwrap()));
    }
}

#[test]
fn threads_that_end_and_threads_that_do_not_are_distinguished_while_the_runtime_is_dropped() {
    for round in 0..50 {
        let runtime = runtime(2);
        let gate = Arc::new(Semaphore::new(0));
        let threads: Vec<_> = (0..20)
            .map(|number| {
                let gate = Arc::clone(&gate);
                runtime.spawn(move || {
                    let _ = gate.acquire().map(std::mem::forget);
                    number
                })
            })
            .collect();
        let joins = threads.into_iter().enumerate().map(|(number, handle)| {
            thread::spawn(move || match handle.join() {
                Ok(found) => assert_eq!(found, number),
                Err(error) => assert!(error.is::<RuntimeDropped>()),
            })
        });
        let joins: Vec<_> = joins.collect();
        gate.add_permits(round % 21);
        drop(runtime);
        in_time(|| joins.into_iter().for_each(|joined| joined.join().unwrap()));
    }
}

/// The thread that drops its own runtime continues until it leaves its LWP: if it ends before, it has a result.
#[test]
fn the_thread_that_drops_its_runtime_has_a_result_if_it_ends() {
    for (priority, blocks, waits) in [
        (Priority::Normal, false, false),
        (Priority::Normal, false, true),
        (Priority::Urgent, false, false),
        (Priority::Urgent, false, true),
        (Priority::Normal, true, true),
    ] {
        let runtime = Arc::new(runtime(2));
        let (send, receive) = mpsc::channel::<Arc<Runtime>>();
        let thread = Builder::new().priority(priority);
        let drops = move || {
            let mine = receive.recv().unwrap();
            let other = spawn(|| drop(Semaphore::new(0).acquire()));
            let drops = || {
                drop(mine);
                if waits {
                    // Nobody takes it up again.
                    drop(other.join());
                    drop(Semaphore::new(0).acquire());
                }
                42
            };
            if blocks { blocking(drops) } else { drops() }
        };
        let handle = runtime.run(move || thread.spawn(drops));
        send.send(runtime).unwrap();
        let joined = in_time(|| handle.join());
        if waits { is_told(joined) } else { assert_eq!(joined.unwrap(), 42) }
    }
}

#[test]
fn a_runtime_whose_stacks_no_memory_can_hold_is_not_built() {
    for size in [usize::MAX, usize::MAX - 4095, isize::MAX as usize, 1 << 47] {
        let error = Runtime::builder().lwps(1).stack_size(size).build().unwrap_err();
        assert!(error.to_string().contains(&format!("stacks of {size} bytes")), "{error}");
    }
}
