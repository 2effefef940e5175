//! User threads that borrow from the one that creates them.

#[path = "common/kind.rs"]
mod kind;

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use fut::{Builder, Policy, Runtime, scope, yield_now};
use kind::builder;

fn runtime(lwps: usize) -> Runtime {
    builder().lwps(lwps).build().unwrap()
}

fn said(panic: Box<dyn std::any::Any + Send>) -> String {
    let text = panic.downcast_ref::<&str>().map(ToString::to_string);
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default()
}

#[test]
fn scoped_threads_borrow_and_give_back_what_they_borrowed() {
    for lwps in [1, 4] {
        runtime(lwps).run(|| {
            let mut numbers: Vec<u64> = (0..1000).collect();
            let sums: Vec<u64> = scope(|s| {
                let parts = numbers.chunks_mut(100).map(|part| {
                    s.spawn(move || {
                        part.iter_mut().for_each(|n| *n *= 2);
                        yield_now();
                        part.iter().sum::<u64>()
                    })
                });
                let parts: Vec<_> = parts.collect();
                parts.into_iter().map(|part| part.join().unwrap()).collect()
            });
            assert_eq!(sums.iter().sum::<u64>(), 999_000);
            assert!(numbers.iter().copied().eq((0..1000).map(|n| n * 2)));
        });
    }
}

/// A result may borrow as well: it is dropped before the scope is over, joined or not.
#[test]
fn results_that_borrow_are_dropped_before_the_scope_ends() {
    struct CountsItsDrop<'a>(&'a AtomicUsize);
    impl Drop for CountsItsDrop<'_> {
        fn drop(&mut self) {
            yield_now();
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }
    runtime(2).run(|| {
        for _ in 0..100 {
            let dropped = AtomicUsize::new(0);
            scope(|s| {
                s.spawn(|| CountsItsDrop(&dropped));
                let joined = s.spawn(|| CountsItsDrop(&dropped)).join().unwrap();
                assert!(std::ptr::eq(joined.0, &raw const dropped));
                let kept = s.spawn(|| CountsItsDrop(&dropped));
                while !kept.is_finished() {
                    yield_now();
                }
            });
            assert_eq!(dropped.into_inner(), 3);
        }
    });
}

#[test]
fn a_panic_of_the_body_waits_for_the_threads() {
    runtime(2).run(|| {
        let ended = AtomicBool::new(false);
        let panic = catch_unwind(AssertUnwindSafe(|| {
            scope(|s| {
                s.spawn(|| {
                    fut::sleep(Duration::from_millis(20));
                    ended.store(true, Ordering::Relaxed);
                });
                panic!("the body");
            })
        }));
        assert!(ended.into_inner(), "the thread had not ended");
        assert_eq!(said(panic.unwrap_err()), "the body");
    });
}

#[test]
fn a_panic_that_is_not_joined_is_reported_by_the_scope() {
    runtime(2).run(|| {
        let ended = AtomicUsize::new(0);
        let panic = catch_unwind(AssertUnwindSafe(|| {
            scope(|s| {
                s.spawn(|| panic!("one of them"));
                for _ in 0..10 {
                    s.spawn(|| {
                        yield_now();
                        ended.fetch_add(1, Ordering::Relaxed);
                    });
                }
            });
        }));
        assert_eq!(said(panic.unwrap_err()), "a scoped user thread panicked");
        assert_eq!(ended.into_inner(), 10);
    });
}

#[test]
fn a_panic_that_is_joined_is_the_joiners() {
    runtime(2).run(|| {
        let text = scope(|s| said(s.spawn(|| panic!("joined")).join().unwrap_err()));
        assert_eq!(text, "joined");
    });
}

#[test]
fn scopes_nest_and_threads_of_a_scope_create_others_in_it() {
    runtime(3).run(|| {
        let leaves = AtomicUsize::new(0);
        scope(|outer| {
            for _ in 0..4 {
                outer.spawn(|| {
                    let here = AtomicUsize::new(0);
                    scope(|inner| {
                        for _ in 0..4 {
                            inner.spawn(|| {
                                here.fetch_add(1, Ordering::Relaxed);
                                outer.spawn(|| leaves.fetch_add(1, Ordering::Relaxed));
                            });
                        }
                    });
                    assert_eq!(here.into_inner(), 4);
                });
            }
        });
        assert_eq!(leaves.into_inner(), 16);
    });
}

#[test]
fn scoped_threads_have_names_and_move_between_lwps() {
    let tid = || std::fs::read_link("/proc/thread-self").unwrap();
    for policy in [Policy::WorkStealing, Policy::SharedFifo, Policy::Affinity] {
        let runtime = builder().lwps(4).policy(policy).build().unwrap();
        let lwps = runtime.run(move || {
            let seen = fut::sync::Mutex::new(std::collections::HashSet::new());
            let own = vec![7_u64; 1000];
            scope(|s| {
                let threads: Vec<_> = (0..50)
                    .map(|n| {
                        let builder = Builder::new().name(format!("scoped/{n}")).lwp(n);
                        builder.spawn_scoped(s, || {
                            for _ in 0..20 {
                                assert_eq!(own.iter().sum::<u64>(), 7000);
                                seen.lock().insert(tid());
                                yield_now();
                            }
                        })
                    })
                    .collect();
                assert_eq!(threads[49].name(), Some("scoped/49"));
                threads.into_iter().for_each(|t| t.join().unwrap());
            });
            seen.into_inner().len()
        });
        assert!(policy != Policy::Affinity || lwps == 4, "on {lwps} LWPs");
    }
}

#[test]
fn a_scope_that_cannot_end_is_told_as_a_deadlock() {
    let (tell, told) = std::sync::mpsc::sync_channel(1);
    let builder = builder().lwps(1).on_deadlock(move |deadlock| tell.send(deadlock.clone()).unwrap());
    let runtime = builder.build().unwrap();
    let main = runtime.spawn(|| {
        let mutex = Arc::new(fut::sync::Mutex::new(()));
        let _held = mutex.lock();
        scope(|s| drop(s.spawn(|| drop(mutex.lock()))));
    });
    let deadlock = told.recv_timeout(Duration::from_secs(60)).expect("a deadlock is told");
    let kinds: Vec<_> = deadlock.threads().iter().map(|t| t.kind).collect();
    assert_eq!(kinds, [fut::WaitKind::Scope, fut::WaitKind::Mutex]);
    drop(main);
}

#[test]
fn a_scope_outside_of_a_runtime_panics_with_its_name() {
    let panic = catch_unwind(|| scope(|_| ())).unwrap_err();
    assert!(said(panic).starts_with("fut::scope was called outside a runtime"));
}

/// A forgotten handle blocks no thread, and the panic of its thread is not lost.
#[test]
fn a_scope_does_not_wait_for_handles_that_were_forgotten() {
    let runtime = runtime(2);
    let main = runtime.spawn(|| {
        let (ended, kept) = (AtomicUsize::new(0), String::from("borrowed"));
        let lens = scope(|s| {
            let thread = || {
                s.spawn(|| {
                    yield_now();
                    ended.fetch_add(1, Ordering::Relaxed);
                    kept.as_str()
                })
            };
            std::mem::forget(thread());
            // One whose result has a handle of another that is forgotten with it.
            std::mem::forget(s.spawn(thread));
            thread().join().unwrap().len()
        });
        assert_eq!((ended.into_inner(), lens), (3, 8));
        drop(kept);
        let panic = catch_unwind(AssertUnwindSafe(|| {
            scope(|s| std::mem::forget(s.spawn(|| panic!("nobody joins it"))));
        }));
        said(panic.unwrap_err())
    });
    let deadline = std::time::Instant::now() + Duration::from_secs(20);
    while !main.is_finished() {
        assert!(std::time::Instant::now() < deadline, "the scope waits for ever");
        std::thread::sleep(Duration::from_millis(1));
    }
    assert_eq!(main.join().unwrap(), "a scoped user thread panicked");
}
