//! Panics in unusual places: while an unused value is dropped, in a panic's payload, in a handler. None of them costs
//! the runtime an LWP. And variables of user threads that use each other while they are dropped.

use std::{
    cell::RefCell,
    panic::panic_any,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
        mpsc,
    },
    time::{Duration, Instant},
};

use fut::{AccessError, JoinHandle, Policy, Priority, Runtime, scope, spawn, sync::Semaphore, yield_now};

/// Panics when it is dropped, with another of its kind, as often as it says.
struct Bomb(u32);

impl Drop for Bomb {
    fn drop(&mut self) {
        if let Some(rest) = self.0.checked_sub(1) {
            panic_any(Bomb(rest));
        }
    }
}

fn runtime(lwps: usize) -> Runtime {
    Runtime::builder().lwps(lwps).build().unwrap()
}

/// Its result; the test fails if that does not come: an LWP was lost.
fn in_time<T>(thread: JoinHandle<T>) -> T {
    let deadline = Instant::now() + Duration::from_secs(20);
    while !thread.is_finished() {
        assert!(Instant::now() < deadline, "the thread does not end");
        std::thread::sleep(Duration::from_millis(1));
    }
    thread.join().unwrap_or_else(|_| panic!("the thread panicked"))
}

/// That the only LWP of the runtime still carries threads after `body`.
fn survives(policy: Policy, priority: Priority, body: fn()) {
    let runtime = Runtime::builder().lwps(1).policy(policy).build().unwrap();
    let first = runtime.spawn(move || {
        let thread = fut::Builder::new().priority(priority).spawn(body);
        while !thread.is_finished() {
            yield_now();
        }
        drop(thread);
    });
    in_time(first);
    assert_eq!(in_time(runtime.spawn(|| spawn(|| 42).join().unwrap())), 42);
}

#[test]
fn what_panics_while_it_is_dropped_costs_no_lwp() {
    fut::user_local! {
        static LOCAL: RefCell<Option<Bomb>> = RefCell::new(None);
    }
    let bodies: [fn(); 7] = [
        // What it panicked with; nobody joins it.
        || drop(spawn(|| panic_any(Bomb(u32::MAX)))),
        || panic_any(Bomb(3)),
        // What it returned.
        || drop(spawn(|| Bomb(u32::MAX))),
        || {
            let ended = spawn(|| Bomb(2));
            while !ended.is_finished() {
                yield_now();
            }
            drop(ended);
        },
        // What it has captured.
        || {
            let captured = Bomb(5);
            drop(spawn(move || drop(captured)));
        },
        // A variable of its own.
        || LOCAL.with(|local| *local.borrow_mut() = Some(Bomb(u32::MAX))),
        // A result that borrows.
        || {
            scope(|s| {
                s.spawn(|| Bomb(u32::MAX));
                s.spawn(|| panic_any(Bomb(2)));
            });
        },
    ];
    for body in bodies {
        survives(Policy::WorkStealing, Priority::Normal, body);
        survives(Policy::Affinity, Priority::Normal, body);
        survives(Policy::WorkStealing, Priority::Urgent, body);
    }
}

#[test]
fn a_handler_of_deadlocks_that_panics_costs_no_lwp() {
    let (tell, told) = mpsc::sync_channel(1);
    let builder = Runtime::builder().lwps(1).on_deadlock(move |_| {
        tell.send(()).unwrap();
        panic_any(Bomb(1));
    });
    let runtime = builder.build().unwrap();
    let door = Arc::new(Semaphore::new(0));
    let waits = Arc::clone(&door);
    let thread = runtime.spawn(move || drop(waits.acquire()));
    told.recv_timeout(Duration::from_secs(20)).expect("a deadlock is told");
    door.add_permits(1);
    in_time(thread);
}

/// The next thread gets the same block.
#[test]
fn no_thread_inherits_a_variable_that_a_destructor_has_made_again() {
    struct MakesAgain;
    impl Drop for MakesAgain {
        fn drop(&mut self) {
            REFUSED.fetch_add(usize::from(NUMBERS.try_with(|_| ()).is_err()), Ordering::Relaxed);
            let _ = NUMBERS.try_with(|numbers| numbers.borrow_mut().push(666));
        }
    }
    static REFUSED: AtomicUsize = AtomicUsize::new(0);
    static INHERITED: AtomicUsize = AtomicUsize::new(0);
    fut::user_local! {
        static NUMBERS: RefCell<Vec<u64>> = RefCell::default();
        static MAKES: MakesAgain = MakesAgain;
    }
    // Returns a value whose destructor uses the variables of whoever drops it.
    let result = || {
        INHERITED.fetch_add(NUMBERS.with(|numbers| numbers.borrow().len()), Ordering::Relaxed);
        NUMBERS.with(|numbers| numbers.borrow_mut().push(1));
        MAKES.with(|_| ());
        MakesAgain
    };
    runtime(1).run(move || {
        for _ in 0..200 {
            spawn(result).join().map(drop).unwrap();
            drop(spawn(result));
            yield_now();
        }
    });
    assert_eq!(INHERITED.load(Ordering::Relaxed), 0, "numbers of threads that have ended");
    // Of each thread, `MAKES` was made last and so dropped first: `NUMBERS` was there still.
    assert_eq!(REFUSED.load(Ordering::Relaxed), 0);
}

#[test]
fn variables_are_dropped_from_the_last_and_none_is_made_a_second_time() {
    #[derive(Default)]
    struct Tells(&'static str);
    static ORDER: Mutex<Vec<(&str, Result<(), AccessError>)>> = Mutex::new(Vec::new());
    fut::user_local! {
        static FIRST: Tells = Tells("first");
        static SECOND: Tells = Tells("second");
        static LATE: Tells = Tells("late");
    }
    impl Drop for Tells {
        fn drop(&mut self) {
            let itself = match self.0 {
                "first" => FIRST.try_with(|_| LATE.with(|_| ())),
                "second" => SECOND.try_with(|_| ()).or_else(|_| FIRST.try_with(|_| ())),
                // The one before was dropped.
                _ => FIRST.try_with(|_| ()),
            };
            if self.0 == "first" {
                LATE.with(|_| ());
            }
            ORDER.lock().unwrap().push((self.0, itself));
        }
    }
    runtime(1).run(|| {
        spawn(|| {
            FIRST.with(|_| ());
            SECOND.with(|_| ());
        })
        .join()
        .unwrap();
    });
    let destroyed = Err(AccessError::Destroyed);
    assert_eq!(*ORDER.lock().unwrap(), [("second", Ok(())), ("first", destroyed), ("late", destroyed)]);
    assert_eq!(FIRST.try_with(|_| ()), Err(AccessError::OutsideOfRuntime));
}

/// The value that its own making has made stays; the other is dropped while nothing is borrowed.
#[test]
fn a_variable_may_be_used_while_it_is_made() {
    struct UsesAnother;
    impl Drop for UsesAnother {
        fn drop(&mut self) {
            OTHERS.iter().for_each(|other| other.with(|n| assert_eq!(*n, 1)));
        }
    }
    fn make() -> (u32, UsesAnother) {
        let depth = DEPTH.with(|depth| depth.replace_with(|d| *d + 1));
        if depth < 3 {
            RECURSIVE.with(|_| ());
        }
        (depth, UsesAnother)
    }
    static OTHERS: [fut::UserLocal<u32>; 64] = [const { fut::UserLocal::new(|| 1) }; 64];
    fut::user_local! {
        static DEPTH: RefCell<u32> = RefCell::new(0);
        static RECURSIVE: (u32, UsesAnother) = make();
    }
    runtime(1).run(|| assert_eq!(RECURSIVE.with(|value| value.0), 3));
}
