//! The end of a runtime that waits for its threads.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use fut::{Builder, blocking, sleep, spawn, sync::CancellationToken};

use super::kind::builder;

const LONG: Duration = Duration::from_secs(60);

/// Each thread makes the next, and ends: at no moment is there none, although most have ended.
fn chain(left: usize, ended: Arc<AtomicUsize>) {
    if left > 0 {
        let next = Arc::clone(&ended);
        spawn(move || chain(left - 1, next));
    }
    if left.is_multiple_of(100) {
        sleep(Duration::from_micros(300));
    }
    ended.fetch_add(1, Ordering::Relaxed);
}

#[test]
fn a_runtime_ends_when_its_last_thread_has() {
    for lwps in [1, 3] {
        let runtime = builder().lwps(lwps).build().unwrap();
        let ended = Arc::new(AtomicUsize::new(0));
        for _ in 0..4 {
            let ended = Arc::clone(&ended);
            runtime.spawn(move || chain(2000, ended));
        }
        runtime.shutdown(LONG).unwrap();
        assert_eq!(ended.load(Ordering::Relaxed), 4 * 2001);
    }
}

#[test]
fn threads_that_are_told_to_end_do_so_before_the_runtime() {
    let runtime = builder().lwps(2).build().unwrap();
    let (stop, ended) = (CancellationToken::new(), Arc::new(AtomicUsize::new(0)));
    for number in 0..50 {
        let (stop, ended) = (stop.clone(), Arc::clone(&ended));
        runtime.spawn(move || {
            stop.cancelled();
            if number % 2 == 0 {
                sleep(Duration::from_millis(5));
            } else {
                blocking(|| std::thread::sleep(Duration::from_millis(5)));
            }
            ended.fetch_add(1, Ordering::Relaxed);
        });
    }
    stop.cancel();
    runtime.shutdown(LONG).unwrap();
    assert_eq!(ended.load(Ordering::Relaxed), 50);
}

#[test]
fn threads_that_do_not_end_are_named_at_the_limit() {
    let runtime = builder().lwps(2).build().unwrap();
    let (begun, went) = fut::sync::channel::bounded(3);
    let told = begun.clone();
    runtime.run(move || {
        let stay = |name| {
            let told = told.clone();
            Builder::new().name(name).spawn(move || {
                told.send(()).unwrap();
                sleep(LONG * 1000);
            });
        };
        stay("stays");
        stay("stays too");
        // It has ended, and is not joined.
        Box::leak(Box::new(spawn(|| ())));
    });
    (0..2).for_each(|_| went.recv().unwrap());
    let start = Instant::now();
    let error = runtime.shutdown(Duration::from_millis(30)).unwrap_err();
    assert!(start.elapsed() >= Duration::from_millis(30));
    assert_eq!((error.count, error.threads.as_slice()), (2, ["stays".into(), "stays too".into()].as_slice()));
    assert_eq!(error.to_string(), "2 user threads had not ended at the limit: stays, stays too");
}
