//! A runtime in which user threads that have begun move between LWPs. What both kinds of runtime have to do is tested with
//! both: `common/kind.rs`.

mod woken;

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use fut::{Policy, Runtime, RuntimeBuilder, spawn, yield_now};

fn builder() -> RuntimeBuilder {
    // SAFETY: the user threads of these tests keep nothing of an LWP across a call that can switch.
    unsafe { Runtime::builder().migrating() }
}

/// The LWP that runs the caller, asked of the kernel.
#[inline(never)]
fn lwp() -> u32 {
    // SAFETY: takes no argument and cannot fail.
    unsafe { libc::syscall(libc::SYS_gettid) as u32 }
}

/// The same for [`thread::panicking`]: found anew at each call.
#[inline(never)]
fn panicking() -> bool {
    thread::panicking()
}

#[test]
fn a_thread_that_has_begun_moves_to_an_lwp_that_has_time() {
    for (policy, moves) in
        [(Policy::WorkStealing, true), (Policy::SharedFifo, true), (Policy::Affinity, false)]
    {
        let runtime = builder().lwps(3).policy(policy).build().unwrap();
        let moved = runtime.run(|| {
            let thread = || {
                let mut lwps = vec![lwp()];
                for _ in 0..100 {
                    let until = Instant::now() + Duration::from_micros(20);
                    while Instant::now() < until {}
                    yield_now();
                    lwps.push(lwp());
                }
                lwps.windows(2).filter(|pair| pair[0] != pair[1]).count()
            };
            let threads: Vec<_> = (0..12).map(|_| spawn(thread)).collect();
            threads.into_iter().map(|t| t.join().unwrap()).sum::<usize>()
        });
        assert_eq!(moved > 0, moves, "{moved} moves under {policy:?}");
    }
}

/// A thread on each LWP at once, which looks.
fn nobody_panics_any_more(runtime: &Runtime, lwps: usize) {
    let there = Arc::new(AtomicUsize::new(0));
    let looks: Vec<_> = (0..lwps)
        .map(|_| {
            let there = Arc::clone(&there);
            runtime.spawn(move || {
                there.fetch_add(1, Ordering::Relaxed);
                let since = Instant::now();
                while there.load(Ordering::Relaxed) < lwps {
                    assert!(since.elapsed() < Duration::from_secs(20), "not all LWPs run a thread");
                    std::hint::spin_loop();
                }
                panicking()
            })
        })
        .collect();
    for look in looks {
        assert!(!look.join().unwrap(), "an LWP counts a panic that is over");
    }
}

/// Leaves its LWP in every way that a destructor can.
struct LeavesWhenDropped(u64);

impl Drop for LeavesWhenDropped {
    fn drop(&mut self) {
        let mine = lwp();
        let check = |what| assert_eq!((lwp(), panicking()), (mine, true), "after {what}");
        for _ in 0..5 {
            yield_now();
            check("a yield");
        }
        fut::sleep(Duration::from_micros(self.0 % 5 * 40));
        check("a sleep");
        fut::blocking(|| ());
        check("a blocking call");
        spawn(yield_now).join().unwrap();
        check("a join");
    }
}

/// The standard library counts panics for each LWP: a thread that unwinds comes back to the LWP where it began to.
#[test]
fn a_destructor_that_yields_while_its_thread_unwinds_comes_back_to_its_lwp() {
    for policy in [Policy::WorkStealing, Policy::SharedFifo] {
        let runtime = builder().lwps(3).policy(policy).build().unwrap();
        runtime.run(|| {
            let thread = |n| {
                spawn(move || {
                    for _ in 0..10 {
                        let leaves = AssertUnwindSafe(LeavesWhenDropped(n));
                        let panic = catch_unwind(|| {
                            let _leaves = leaves;
                            panic!("on purpose")
                        });
                        assert!(panic.is_err());
                        yield_now();
                    }
                })
            };
            let threads: Vec<_> = (0..9).map(thread).collect();
            threads.into_iter().for_each(|t| t.join().unwrap());
        });
        nobody_panics_any_more(&runtime, 3);
    }
}

#[test]
fn a_panic_in_a_blocking_call_is_the_callers() {
    let runtime = builder().lwps(2).build().unwrap();
    runtime.run(|| {
        let thread = |n: u32| {
            spawn(move || {
                for round in 0..20 {
                    let panic = catch_unwind(|| {
                        fut::blocking(|| {
                            if n < 9 {
                                panic!("{n}, {round}")
                            }
                        })
                    });
                    assert_eq!(*panic.unwrap_err().downcast::<String>().unwrap(), format!("{n}, {round}"));
                    assert!(!panicking());
                    assert!(!fut::blocking(panicking));
                }
            })
        };
        let threads: Vec<_> = (0..6).map(thread).collect();
        threads.into_iter().for_each(|t| t.join().unwrap());
    });
    nobody_panics_any_more(&runtime, 2);
}

/// ```text
/// LWP 0  |== polls ==|== runs a thread that never leaves ===========|
/// LWP 1  |-- asleep ------------|== reads ==|
/// socket                     readable
/// ```
#[test]
fn a_busy_lwp_does_not_keep_a_socket_from_an_idle_one() {
    use std::{
        io::{Read, Write},
        sync::atomic::{AtomicBool, Ordering},
        time::{Duration, Instant},
    };
    let runtime = builder().lwps(2).build().unwrap();
    runtime.run(|| {
        for _ in 0..10 {
            let (one, mut other) = std::os::unix::net::UnixStream::pair().unwrap();
            let one = fut::net::UnixStream::from_std(one).unwrap();
            let reads = spawn(move || (&one).read(&mut [0]).map(|n| (n, Instant::now())).unwrap());
            fut::sleep(Duration::from_millis(2));
            let begun = std::sync::Arc::new(AtomicBool::new(false));
            let has_begun = begun.clone();
            let writes = std::thread::spawn(move || {
                while !has_begun.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
                other.write_all(b"x").unwrap();
                other
            });
            // This thread does not leave its LWP for so long.
            let end = Instant::now() + Duration::from_millis(300);
            begun.store(true, Ordering::Relaxed);
            while Instant::now() < end {
                std::hint::spin_loop();
            }
            let (read, at) = reads.join().unwrap();
            assert_eq!(read, 1);
            assert!(at < end, "it was read only when the busy LWP was free");
            drop(writes.join());
        }
    });
}

/// ```text
/// LWP 0  |== adds a timer ==|== runs a thread that never leaves =====|
/// LWP 1  |-- asleep ---------------|== runs the one that has slept ==|
/// timer                            due
/// ```
#[test]
fn a_busy_lwp_does_not_keep_a_timer_from_an_idle_one() {
    use std::time::{Duration, Instant};
    let runtime = builder().lwps(2).build().unwrap();
    runtime.run(|| {
        for _ in 0..10 {
            let sleeps = spawn(|| {
                fut::sleep(Duration::from_millis(5));
                Instant::now()
            });
            fut::sleep(Duration::from_millis(2));
            let end = Instant::now() + Duration::from_millis(300);
            while Instant::now() < end {
                std::hint::spin_loop();
            }
            assert!(sleeps.join().unwrap() < end, "it was due only when the busy LWP was free");
        }
    });
}
