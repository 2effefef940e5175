//! Blocking calls, and panics: an LWP counts its own.

use super::*;

#[test]
fn a_blocking_call_runs_elsewhere_and_borrows_from_its_caller() {
    for lwps in [1, 3] {
        runtime(lwps).run(|| {
            let mine = lwp();
            let mut numbers = vec![1, 2, 3];
            let (sum, there) = fut::blocking(|| {
                numbers.push(4);
                (numbers.iter().sum::<i32>(), lwp())
            });
            assert_eq!((sum, numbers.len()), (10, 4));
            assert_ne!(there, mine);
            assert_eq!(lwp(), mine);
            // One in another runs where it is, and there, too, a user thread can wait.
            let (inner, woken) = fut::blocking(|| {
                let here = lwp();
                let other = spawn(|| fut::sleep(Duration::from_millis(1)));
                other.join().unwrap();
                yield_now();
                assert_eq!(lwp(), here, "it stays where it is");
                (fut::blocking(lwp) == here, true)
            });
            assert!(inner && woken);
        });
    }
    // Outside of a runtime it is just a call.
    assert_eq!(fut::blocking(lwp), lwp());
}

/// What has panicked comes out of `blocking` on the caller's LWP, whose count of panics is right again, as is that of
/// the LWP that ran it.
#[test]
fn a_panic_in_a_blocking_call_is_the_callers() {
    let runtime = runtime(2);
    runtime.run(|| {
        let thread = |n: u32| {
            spawn(move || {
                let mine = lwp();
                for round in 0..20 {
                    let panic = catch_unwind(|| {
                        fut::blocking(|| {
                            if n < 9 {
                                panic!("{n}, {round}")
                            }
                        })
                    });
                    assert_eq!(*panic.unwrap_err().downcast::<String>().unwrap(), format!("{n}, {round}"));
                    assert_eq!(lwp(), mine);
                    assert!(!thread::panicking());
                    assert!(!fut::blocking(thread::panicking));
                }
            })
        };
        join_all((0..6).map(thread).collect());
    });
    nobody_panics_any_more(&runtime, 2);
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
                    assert!(since.elapsed() < LONG, "not all LWPs run a thread");
                    std::hint::spin_loop();
                }
                thread::panicking()
            })
        })
        .collect();
    for look in looks {
        assert!(!look.join().unwrap(), "an LWP counts a panic that is over");
    }
}

/// Leaves its LWP in every way that a destructor can.
struct LeavesWhenDropped(u32);

impl Drop for LeavesWhenDropped {
    fn drop(&mut self) {
        let (mine, panics) = (lwp(), thread::panicking());
        for _ in 0..5 {
            yield_now();
            assert_eq!(lwp(), mine);
        }
        fut::sleep(Duration::from_micros(u64::from(self.0 % 5) * 40));
        assert_eq!(lwp(), mine);
        fut::blocking(|| ());
        assert_eq!(lwp(), mine);
        spawn(yield_now).join().unwrap();
        assert_eq!(lwp(), mine);
        assert!(panics && thread::panicking());
    }
}

#[test]
fn a_destructor_that_yields_while_its_thread_unwinds_stays_on_its_lwp() {
    let runtime = runtime(3);
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
        join_all((0..9).map(thread).collect());
    });
    nobody_panics_any_more(&runtime, 3);
}
