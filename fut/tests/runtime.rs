//! User threads: results, panics, yielding, the mutex.

#[path = "common/kind.rs"]
mod kind;

use std::{
    hint,
    io::{Read, Write},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
        mpsc,
    },
    time::{Duration, Instant},
};

use fut::{Builder, LiveState, Policy, Priority, Runtime, WaitKind, spawn, sync::Mutex, yield_now};
use kind::{builder, is_migrating};

fn runtime(lwps: usize) -> Runtime {
    builder().lwps(lwps).build().unwrap()
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
    let fifo = builder().lwps(1).policy(Policy::SharedFifo).build().unwrap();
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

/// They yield to each other and to nobody else, so that the LWP never looks for another thread.
#[test]
fn a_runtime_that_is_dropped_does_not_wait_for_threads_that_yield_for_ever() {
    for policy in [Policy::WorkStealing, Policy::SharedFifo, Policy::Affinity] {
        let runtime = builder().lwps(1).policy(policy).build().unwrap();
        let begun = Arc::new(AtomicUsize::new(0));
        for _ in 0..2 {
            let begun = Arc::clone(&begun);
            drop(runtime.spawn(move || {
                begun.fetch_add(1, Ordering::Relaxed);
                loop {
                    yield_now();
                }
            }));
        }
        while begun.load(Ordering::Relaxed) < 2 {
            std::thread::yield_now();
        }
        let (tell, told) = mpsc::channel();
        std::thread::spawn(move || {
            drop(runtime);
            tell.send(()).unwrap();
        });
        told.recv_timeout(Duration::from_secs(20))
            .unwrap_or_else(|_| panic!("{policy:?}: it waits for them"));
    }
}

#[test]
fn sleeping_blocks_the_thread_not_the_lwp() {
    let order = runtime(1).run(|| {
        let order = Arc::new(Mutex::new(Vec::new()));
        let sleeper = |ms: u64| {
            let order = Arc::clone(&order);
            spawn(move || {
                fut::sleep(Duration::from_millis(ms));
                order.lock().push(ms);
            })
        };
        let threads = [sleeper(60), sleeper(30), sleeper(1)];
        threads.into_iter().for_each(|t| t.join().unwrap());
        Arc::into_inner(order).unwrap().into_inner()
    });
    assert_eq!(order, [1, 30, 60]);
}

#[test]
fn sleeps_that_may_be_late_end_together_and_none_too_early() {
    let slack = Duration::from_millis(200);
    let ends = builder().lwps(1).timer_slack(slack).build().unwrap().run(|| {
        let begin = Instant::now();
        let sleeper = |ms: u64| {
            spawn(move || {
                fut::sleep(Duration::from_millis(ms));
                (Duration::from_millis(ms), begin.elapsed())
            })
        };
        let threads = [sleeper(1), sleeper(50), sleeper(100)];
        threads.map(|thread| thread.join().unwrap())
    });
    for (asked, slept) in ends {
        assert!(slept >= asked, "{ends:?}");
    }
    // The first waits for the others: without, it were 99 ms earlier.
    assert!(ends[0].1 >= slack && ends[2].1.abs_diff(ends[0].1) < Duration::from_millis(90), "{ends:?}");
}

#[test]
fn a_thread_leaves_at_a_safe_point_when_its_quantum_is_over() {
    let runtime = builder().lwps(1).quantum(Duration::from_millis(1)).build().unwrap();
    let rounds = runtime.run(|| {
        let done = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&done);
        let computes = spawn(move || {
            let mut rounds = 0_u64;
            while !seen.load(Ordering::Relaxed) {
                fut::checkpoint();
                rounds += 1;
            }
            rounds
        });
        // With one LWP, this runs again only because the other leaves.
        yield_now();
        done.store(true, Ordering::Relaxed);
        computes.join().unwrap()
    });
    assert!(rounds > 0);
}

// LWP 0 | hog, without safe points …   X is queued behind it, and no other thread runs there
// LWP 1 | yields for ever …            so it never looks for work elsewhere
#[test]
fn a_thread_behind_one_that_never_leaves_waits_for_quanta_and_not_for_ever() {
    let runtime = builder().lwps(2).quantum(Duration::from_millis(5)).build().unwrap();
    let (ran, waited) = runtime.run(|| {
        let done = Arc::new(AtomicBool::new(false));
        let begun = Arc::new(AtomicBool::new(false));
        let (until, begins) = (Arc::clone(&done), Arc::clone(&begun));
        let busy = spawn(move || {
            begins.store(true, Ordering::Relaxed);
            while !until.load(Ordering::Relaxed) {
                yield_now();
            }
        });
        // The hog: it can begin on the other LWP only.
        while !begun.load(Ordering::Relaxed) {
            hint::spin_loop();
        }
        let ran = Arc::new(AtomicBool::new(false));
        let runs = Arc::clone(&ran);
        let start = Instant::now();
        let behind = spawn(move || runs.store(true, Ordering::Relaxed));
        while !ran.load(Ordering::Relaxed) && start.elapsed() < Duration::from_secs(10) {
            hint::spin_loop();
        }
        let seen = (ran.load(Ordering::Relaxed), start.elapsed());
        done.store(true, Ordering::Relaxed);
        busy.join().unwrap();
        behind.join().unwrap();
        seen
    });
    // Two quanta, and what the kernel gives to others meanwhile.
    assert!(ran && waited < Duration::from_secs(5), "{ran}, {waited:?}");
}

// LWP 0 | hog, with safe points | X | hog | X | …
#[test]
fn beside_a_thread_with_safe_points_that_never_yields_each_wait_is_bounded_by_the_quantum() {
    let builder = builder().lwps(2).policy(Policy::Affinity).quantum(Duration::from_millis(5));
    let runtime = builder.build().unwrap();
    let longest = runtime.run(|| {
        let done = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&done);
        let hog = Builder::new().lwp(0).spawn(move || {
            while !seen.load(Ordering::Relaxed) {
                fut::checkpoint();
            }
        });
        let other = Builder::new().lwp(0).spawn(|| {
            let wait = |_| {
                let start = Instant::now();
                yield_now();
                start.elapsed()
            };
            (0..40).map(wait).max()
        });
        let longest = other.join().unwrap();
        done.store(true, Ordering::Relaxed);
        hog.join().unwrap();
        longest
    });
    // One and a half, and what the kernel gives to others meanwhile.
    assert!(longest.is_some_and(|longest| longest < Duration::from_secs(2)), "{longest:?}");
}

#[test]
fn a_blocking_call_leaves_the_lwp_to_the_others() {
    let (from_other, read) = runtime(1).run(|| {
        let (mut end, mut other_end) = std::io::pipe().unwrap();
        // Reads from a pipe that only another thread of the same LWP will fill.
        let reader = spawn(move || {
            let mut byte = [0];
            fut::blocking(|| end.read_exact(&mut byte)).unwrap();
            byte[0]
        });
        yield_now();
        let from_other = spawn(move || other_end.write(&[42]).unwrap()).join().unwrap();
        (from_other, reader.join().unwrap())
    });
    assert_eq!((from_other, read), (1, 42));
}

#[test]
fn threads_of_all_policies_run_and_those_with_an_lwp_keep_to_it() {
    for policy in [Policy::WorkStealing, Policy::SharedFifo, Policy::Affinity] {
        let runtime = builder().lwps(3).policy(policy).build().unwrap();
        let moved = runtime.run(move || {
            let thread = |n: usize| {
                Builder::new().lwp(n).spawn(move || {
                    let tid = || std::fs::read_link("/proc/thread-self").unwrap();
                    let first = tid();
                    (0..50)
                        .filter(|_| {
                            yield_now();
                            tid() != first
                        })
                        .count()
                })
            };
            let threads: Vec<_> = (0..30).map(thread).collect();
            threads.into_iter().map(|t| t.join().unwrap()).sum::<usize>()
        });
        assert!(policy != Policy::Affinity || moved == 0, "{moved} moves under {policy:?}");
    }
}

#[test]
fn background_threads_run_when_nothing_else_is_ready() {
    let order = runtime(1).run(|| {
        let order = Arc::new(Mutex::new(Vec::new()));
        let push = |what: &'static str| {
            let order = Arc::clone(&order);
            move || order.lock().push(what)
        };
        let background = Builder::new().priority(Priority::Background).spawn(push("background"));
        let normal = spawn(push("normal"));
        let urgent = Builder::new().priority(Priority::Urgent).spawn(push("urgent"));
        [background, normal, urgent].into_iter().for_each(|t| t.join().unwrap());
        Arc::into_inner(order).unwrap().into_inner()
    });
    // Pinned, the urgent one is on the reactor's LWP, beside these.
    let on_workers: Vec<_> = order.iter().filter(|what| **what != "urgent").collect();
    assert_eq!((on_workers, order.len()), (vec![&"normal", &"background"], 3));
    assert!(!is_migrating() || order[0] == "urgent", "{order:?}");
}

/// Two threads that each hold the lock for which the other waits, as reported to the handler.
#[test]
fn a_deadlock_report_shows_which_thread_waits_for_which() {
    let (tell, told) = mpsc::sync_channel(1);
    let builder = builder().lwps(2).on_deadlock(move |deadlock| tell.send(deadlock.clone()).unwrap());
    let runtime = builder.build().unwrap();
    let main = runtime.spawn(|| {
        let (a, b) = (Arc::new(Mutex::new(())), Arc::new(Mutex::new(())));
        let grabs = |name: &'static str, first: &Arc<Mutex<()>>, second: &Arc<Mutex<()>>| {
            let (first, second) = (Arc::clone(first), Arc::clone(second));
            Builder::new().name(name).spawn(move || {
                let _first = first.lock();
                fut::sleep(Duration::from_millis(20));
                drop(second.lock());
            })
        };
        let threads = [grabs("one", &a, &b), grabs("other", &b, &a)];
        threads.into_iter().for_each(|t| t.join().unwrap());
    });
    let deadlock = told.recv_timeout(Duration::from_secs(60)).expect("a deadlock is told");
    let (one, other) = (&deadlock.threads()[1], &deadlock.threads()[2]);
    assert_eq!((one.name.as_str(), one.kind, one.holder), ("one", WaitKind::Mutex, Some(other.thread)));
    assert_eq!((other.name.as_str(), other.kind, other.holder), ("other", WaitKind::Mutex, Some(one.thread)));
    assert_eq!(deadlock.cycle(), [one.thread, other.thread]);
    let text = deadlock.to_string();
    assert!(text.contains(&format!("waits for the end of thread {} \"one\"", one.thread)), "{text}");
    drop(main);
}

#[test]
fn a_runtime_call_outside_of_a_runtime_panics_with_its_name() {
    let said = |call: fn()| {
        let panic = std::panic::catch_unwind(call).unwrap_err();
        panic.downcast_ref::<String>().cloned().unwrap_or_default()
    };
    assert!(said(|| drop(spawn(|| ()))).starts_with("fut::spawn was called outside a runtime"));
    assert!(said(|| fut::sleep(Duration::ZERO)).starts_with("fut::sleep was called outside a runtime"));
}

#[test]
fn live_threads_are_found_with_what_they_wait_for() {
    let (main, live) = runtime(1).run(|| {
        let mutex = Arc::new(Mutex::new(()));
        let (held, waited) = (mutex.lock(), Arc::clone(&mutex));
        let waits = Builder::new().name("waits").spawn(move || drop(waited.lock()));
        yield_now();
        let live = fut::live_threads();
        let waits_id = waits.id();
        drop(held);
        waits.join().unwrap();
        let state = |id| live.iter().find(|t| t.thread == id).map(|t| (t.name.clone(), t.state));
        (state(fut::current().unwrap()).unwrap(), state(waits_id).unwrap())
    });
    assert_eq!(main, ("main".to_string(), LiveState::Mounted));
    assert_eq!(live.0, "waits");
    assert!(matches!(live.1, LiveState::Blocked { kind: WaitKind::Mutex, .. }), "{live:?}");
}

#[test]
fn variables_of_user_threads_are_dropped_when_they_end() {
    struct CountsDrops(Arc<AtomicUsize>);
    impl Drop for CountsDrops {
        fn drop(&mut self) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }
    fut::user_local! {
        static OWNED: std::cell::RefCell<Vec<CountsDrops>> = std::cell::RefCell::default();
    }
    let drops = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&drops);
    runtime(3).run(move || {
        let threads = (0..20).map(|n| {
            let counted = Arc::clone(&counted);
            spawn(move || {
                for _ in 0..n {
                    OWNED.with(|owned| owned.borrow_mut().push(CountsDrops(Arc::clone(&counted))));
                    yield_now();
                }
                assert_eq!(OWNED.with(|owned| owned.borrow().len()), n);
            })
        });
        let threads: Vec<_> = threads.collect();
        threads.into_iter().for_each(|t| t.join().unwrap());
    });
    assert_eq!(drops.load(Ordering::Relaxed), (0..20).sum::<usize>());
}

#[test]
fn detached_threads_drop_what_they_return_and_panics_of_dropping_are_contained() {
    struct Panics;
    impl Drop for Panics {
        fn drop(&mut self) {
            panic!("on purpose, while it is dropped");
        }
    }
    let ran = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&ran);
    runtime(2).run(move || {
        for _ in 0..10 {
            let counted = Arc::clone(&counted);
            drop(spawn(move || {
                counted.fetch_add(1, Ordering::Relaxed);
                Panics
            }));
        }
        while counted.load(Ordering::Relaxed) < 10 {
            yield_now();
        }
        // A handle that is dropped after the end drops the result itself, with the same outcome.
        let ended = spawn(|| Panics);
        while !ended.is_finished() {
            yield_now();
        }
        drop(ended);
    });
    assert_eq!(ran.load(Ordering::Relaxed), 10);
}
