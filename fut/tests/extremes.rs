//! Unusual calls of safe code, with extreme values of their types. None of them has side effects on the runtime.

use std::{
    cell::Cell,
    io::{Read, Write},
    os::{
        fd::{AsFd, BorrowedFd, OwnedFd},
        unix::net::UnixStream,
    },
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
        mpsc,
    },
    thread,
    time::{Duration, Instant},
};

use fut::{
    Runtime, net, sleep, spawn,
    sync::{Barrier, Condvar, Mutex, RwLock, Semaphore, channel},
    yield_now,
};

/// What `main` gives; the test fails if it does not end.
fn in_time<T: Send + 'static>(runtime: Runtime, main: impl FnOnce() -> T + Send + 'static) -> T {
    let (send, receive) = mpsc::channel();
    thread::spawn(move || {
        let _ = send.send(runtime.run(main));
    });
    receive.recv_timeout(Duration::from_secs(20)).expect("it ends")
}

fn runtime(lwps: usize) -> Runtime {
    Runtime::builder().lwps(lwps).build().unwrap()
}

#[test]
fn a_wait_for_as_long_as_the_clock_can_say_leaves_the_others_theirs() {
    in_time(runtime(2), || {
        let started = Arc::new(AtomicUsize::new(0));
        let longest =
            (0..64).rev().filter_map(|bit| Instant::now().checked_add(Duration::from_secs(1 << bit)));
        let times: Vec<Instant> = longest.collect();
        let (sender, receiver) = channel::bounded::<()>(1);
        let threads: Vec<_> = times
            .into_iter()
            .map(|deadline| {
                let (receiver, started) = (receiver.clone(), Arc::clone(&started));
                spawn(move || {
                    started.fetch_add(1, Ordering::Relaxed);
                    receiver.recv_deadline(deadline)
                })
            })
            .collect();
        drop(spawn(|| sleep(Duration::MAX)));
        let held = Arc::new(Mutex::new(()));
        let guard = held.lock();
        let waits = spawn({
            let held = Arc::clone(&held);
            move || held.try_lock_for(Duration::MAX).is_some()
        });
        while started.load(Ordering::Relaxed) < threads.len() {
            yield_now();
        }
        sleep(Duration::from_millis(5));
        drop(guard);
        assert!(waits.join().unwrap());
        drop(sender);
        assert!(threads.into_iter().all(|t| t.join().unwrap().is_err()));
    });
}

#[test]
fn a_quantum_of_any_length_leaves_the_timers_going() {
    for quantum in [Duration::ZERO, Duration::from_secs(1 << 40), Duration::MAX] {
        let runtime = Runtime::builder().lwps(1).quantum(quantum).build().unwrap();
        in_time(runtime, || sleep(Duration::from_millis(2)));
    }
}

#[test]
fn notifying_all_ends_though_all_wait_again() {
    let runtime = Runtime::builder().lwps(6).build().unwrap();
    in_time(runtime, || {
        static WAITS: AtomicUsize = AtomicUsize::new(0);
        let shared = Arc::new((Condvar::new(), AtomicBool::new(false)));
        let threads: Vec<_> = (0..200)
            .map(|_| {
                let shared = Arc::clone(&shared);
                spawn(move || {
                    let own = Mutex::new(());
                    while !shared.1.load(Ordering::Relaxed) {
                        WAITS.fetch_add(1, Ordering::Relaxed);
                        drop(shared.0.wait_timeout(own.lock(), Duration::from_millis(50)));
                    }
                })
            })
            .collect();
        while WAITS.load(Ordering::Relaxed) < 200 {
            yield_now();
        }
        for _ in 0..500 {
            shared.0.notify_all();
        }
        shared.1.store(true, Ordering::Relaxed);
        threads.into_iter().for_each(|t| t.join().unwrap());
    });
}

/// On one LWP without a quantum, calls whose time is over let those run for whom they wait.
#[test]
fn calls_that_do_not_wait_keep_nobody_off_the_lwp() {
    use std::io::PipeReader;

    use fut::net::{Interest, Readiness};
    in_time(runtime(1), || {
        let (reader, mut writer) = std::io::pipe().unwrap();
        let reader = Readiness::new(reader).unwrap();
        reader.set_nonblocking(true).unwrap();
        let written = spawn(move || writer.write_all(&[1]).unwrap());
        let mut byte = [0];
        let mut read = || {
            let call = |mut pipe: &PipeReader| pipe.read(&mut byte);
            reader.io_until(Interest::Readable, Instant::now(), call)
        };
        while read().is_err() {}
        written.join().unwrap();

        let mut handle = spawn(yield_now);
        loop {
            match handle.join_timeout(Duration::from_nanos(1)) {
                Ok(ended) => break ended.unwrap(),
                Err(again) => handle = again,
            }
        }

        static IS_DONE: AtomicBool = AtomicBool::new(false);
        drop(spawn(|| IS_DONE.store(true, Ordering::Relaxed)));
        while !IS_DONE.load(Ordering::Relaxed) {
            sleep(Duration::ZERO);
        }
    });
}

#[test]
fn what_became_possible_in_time_is_selected_though_the_thread_runs_late() {
    use fut::sync::channel::{after, at};
    in_time(runtime(1), || {
        let busy = || {
            drop(spawn(|| {
                let begun = Instant::now();
                while begun.elapsed() < Duration::from_millis(8) {}
            }));
        };
        busy();
        let (due, limit) = (Duration::from_millis(2), Duration::from_millis(4));
        assert!(fut::select! { recv(after(due)) -> _ => true, default(limit) => false });
        busy();
        let now = Instant::now() + due;
        assert!(at(now).recv_deadline(now).is_ok());
    });
}

#[test]
fn a_blocking_call_has_as_much_stack_as_its_caller() {
    fn deep(frames: usize) -> usize {
        let frame = std::hint::black_box([0_u8; 1024]);
        if frames == 0 { frame.len() } else { deep(frames - 1) + usize::from(frame[0]) }
    }
    in_time(runtime(1), || {
        let large = fut::Builder::new().stack_size(8 << 20);
        let thread = large.spawn(|| (deep(2000), fut::blocking(|| deep(2000))));
        assert_eq!(thread.join().unwrap(), (1024, 1024));
    });
}

#[test]
fn permits_are_counted_also_beyond_four_billion() {
    let semaphore = Semaphore::new(Semaphore::MAX_PERMITS);
    let mut permits = semaphore.acquire_many(u32::MAX).unwrap();
    let more = semaphore.acquire_many(2).unwrap();
    let merged = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| permits.merge(more)));
    assert!(merged.is_err());
    drop(permits);
    assert_eq!(semaphore.available_permits(), Semaphore::MAX_PERMITS);
}

/// Forgotten guards keep their locks held, and have no other effect.
#[test]
fn guards_that_are_forgotten_only_keep_what_they_have() {
    in_time(runtime(2), || {
        let soon = Duration::from_millis(1);
        let (mutex, lock) = (Mutex::new(1), RwLock::new(1));
        std::mem::forget(mutex.lock());
        assert!(mutex.try_lock_for(soon).is_none());
        std::mem::forget(lock.read());
        assert!(lock.try_write_for(soon).is_none());
        assert_eq!(*lock.read(), 1);
        assert_eq!(mutex.into_inner(), 1);
        let semaphore = Semaphore::new(1);
        std::mem::forget(semaphore.acquire().unwrap());
        assert!(semaphore.try_acquire_for(soon).is_err());
        let (sender, receiver) = channel::bounded(0);
        std::mem::forget(receiver.clone());
        assert!(sender.send_timeout(7, soon).is_err());
        std::mem::forget(sender.clone());
        drop(sender);
        assert!(receiver.recv_timeout(soon).is_err());
        std::mem::forget(spawn(|| Barrier::new(1).wait().is_leader()));
    });
}

/// `AsFd` is safe to implement, so it may return anything.
#[test]
fn a_descriptor_that_changes_or_panics_harms_no_other() {
    struct Changes(Cell<usize>, [OwnedFd; 2]);
    impl AsFd for Changes {
        fn as_fd(&self) -> BorrowedFd<'_> {
            let turn = self.0.replace(self.0.get() + 1);
            assert!(turn != 6, "on purpose");
            self.1[turn % 2].as_fd()
        }
    }
    in_time(runtime(2), || {
        for _ in 0..20 {
            let (one, other) = UnixStream::pair().unwrap();
            let panics = spawn(|| {
                let changes = net::Readiness::new(Changes(Cell::new(0), [one.into(), other.into()])).unwrap();
                let soon = || Instant::now() + Duration::from_millis(1);
                while changes.wait_readable_until(soon()).is_err() {}
            });
            assert!(panics.join().is_err());
            let (mut one, mut other) = net::UnixStream::pair().unwrap();
            let reads = spawn(move || {
                let mut byte = [0];
                one.read_exact(&mut byte).map(|()| byte[0])
            });
            sleep(Duration::from_micros(100));
            other.write_all(&[42]).unwrap();
            assert_eq!(reads.join().unwrap().unwrap(), 42);
        }
    });
}

#[fut::trace]
fn with_an_inner_attribute() -> u8 {
    #![allow(clippy::let_and_return)]
    let two = 2;
    two
}

fut::user_local! { static LAST: u8 = 1 }

#[test]
fn macros_take_what_those_of_the_standard_library_take() {
    in_time(runtime(1), || assert_eq!(with_an_inner_attribute(), 1 + LAST.with(|last| *last)));
}
