//! A user thread that has begun stays on its LWP: values that belong to that LWP can be kept across any call. Work is
//! still distributed: threads that have not begun go to any idle LWP, and no wakeup is lost.

mod common;

use std::{
    cell::Cell,
    collections::{BTreeSet, HashMap},
    env,
    io::Write,
    panic::{AssertUnwindSafe, catch_unwind},
    process::Command,
    rc::Rc,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering},
        mpsc,
    },
    thread,
    time::{Duration, Instant},
};

use fut::{
    Builder, JoinHandle, Policy, Priority, Recording, Runtime,
    model::{Event, EventStream},
    shm::Geometry,
    spawn,
    sync::channel::{bounded, unbounded},
    yield_now,
};

const CASE: &str = "FUT_TEST_PINNED";
const POLICIES: [Policy; 3] = [Policy::WorkStealing, Policy::SharedFifo, Policy::Affinity];
/// A wait of this length means a lost wakeup.
const LONG: Duration = Duration::from_secs(20);

fn runtime(lwps: usize) -> Runtime {
    Runtime::builder().lwps(lwps).build().unwrap()
}

fn join_all<T>(threads: Vec<JoinHandle<T>>) -> Vec<T> {
    threads.into_iter().map(|t| t.join().unwrap_or_else(|e| std::panic::resume_unwind(e))).collect()
}

/// The LWP that runs the caller, asked of the kernel.
fn lwp() -> u32 {
    // SAFETY: takes no argument and cannot fail.
    unsafe { libc::syscall(libc::SYS_gettid) as u32 }
}

/// The name of that LWP.
fn lwp_name() -> String {
    std::fs::read_to_string("/proc/thread-self/comm").unwrap().trim_end().to_string()
}

/// Keeps an LWP busy.
fn compute(time: Duration) {
    let start = Instant::now();
    while start.elapsed() < time {
        std::hint::spin_loop();
    }
}

/// Eight threads keep a reference into a thread-local across a switch, and take what is there. On another LWP, two of
/// them would take the same vector.
#[test]
fn what_a_thread_local_lends_is_good_across_a_switch() {
    thread_local!(static KEPT: Cell<Vec<u8>> = const { Cell::new(Vec::new()) });
    if env::var_os(CASE).is_some() {
        let body = || {
            for round in 0..8_000 {
                KEPT.with(|cell| {
                    yield_now();
                    drop(cell.replace(vec![7; 64 + round % 64]));
                    yield_now();
                    assert!(cell.take().iter().all(|byte| *byte == 7));
                    KEPT.with(|now| assert!(std::ptr::eq(cell, now), "it is that of another LWP"));
                });
            }
        };
        return runtime(2).run(move || drop(join_all((0..8).map(|_| spawn(body)).collect())));
    }
    let test = "what_a_thread_local_lends_is_good_across_a_switch";
    let program = Command::new(env::current_exe().unwrap())
        .args([test, "--exact", "--nocapture"])
        .env(CASE, "1")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&program.stderr);
    assert!(program.status.success(), "{}: {said}", program.status);
}

#[test]
fn an_rc_in_a_thread_local_is_counted_right() {
    thread_local!(static SHARED: Rc<()> = Rc::new(()));
    let counts = runtime(2).run(|| {
        let body = || {
            let lwp = lwp();
            for _ in 0..2000 {
                let mine = SHARED.with(Rc::clone);
                yield_now();
                drop(mine);
            }
            (lwp, self::lwp())
        };
        let on: BTreeSet<_> = join_all((0..8).map(|_| spawn(body)).collect()).into_iter().collect();
        assert!(on.iter().all(|(first, last)| first == last), "{on:?}");
        // Counted on each LWP once all have ended: by threads that keep all LWPs busy until each has one.
        let there = Arc::new(AtomicUsize::new(0));
        let count = |_| {
            let there = Arc::clone(&there);
            spawn(move || {
                there.fetch_add(1, Ordering::Relaxed);
                let since = Instant::now();
                while there.load(Ordering::Relaxed) < 2 && since.elapsed() < LONG {
                    std::hint::spin_loop();
                }
                SHARED.with(Rc::strong_count)
            })
        };
        let counts: Vec<_> = (0..2).map(count).collect();
        while there.load(Ordering::Relaxed) < 1 {
            yield_now();
        }
        join_all(counts)
    });
    assert_eq!(counts, [1, 1]);
}

/// The lock of standard error belongs to a kernel thread, which may take it several times.
#[test]
fn the_lock_of_standard_error_is_held_by_one_lwp_at_a_time() {
    let holder = Arc::new(Mutex::new((0_u32, 0_u32)));
    let held = Arc::clone(&holder);
    runtime(4).run(move || {
        let body = |_| {
            let holder = Arc::clone(&held);
            spawn(move || {
                for _ in 0..200 {
                    let mut guard = std::io::stderr().lock();
                    let (by, times) = *holder.lock().unwrap();
                    assert!(times == 0 || by == lwp(), "two LWPs hold it");
                    *holder.lock().unwrap() = (lwp(), times + 1);
                    yield_now();
                    guard.write_all(b"").unwrap();
                    assert_eq!(holder.lock().unwrap().0, lwp(), "the one that holds it is not this");
                    holder.lock().unwrap().1 -= 1;
                    drop(guard);
                    yield_now();
                    yield_now();
                }
            })
        };
        join_all((0..12).map(body).collect());
    });
    assert_eq!(holder.lock().unwrap().1, 0);
}

/// One thread makes eight that compute and never leave: they begin on several LWPs.
#[test]
fn threads_that_have_not_begun_are_spread_over_the_lwps() {
    for policy in POLICIES {
        let runtime = Runtime::builder().lwps(4).policy(policy).build().unwrap();
        let lwps = runtime.run(|| {
            let body = || {
                compute(Duration::from_millis(10));
                lwp()
            };
            join_all((0..12).map(|_| spawn(body)).collect()).into_iter().collect::<BTreeSet<_>>()
        });
        assert!(lwps.len() > 1, "{policy:?}: all on {lwps:?}");
    }
}

/// A thread that does whatever can make it leave, and says on which LWPs it has been.
fn leaves_in_every_way(n: u64) -> BTreeSet<u32> {
    let mut seen = BTreeSet::from([lwp()]);
    let (there, back) = (bounded::<u64>(0), unbounded::<u64>());
    let (receive, answer) = (there.1.clone(), back.0.clone());
    let partner = spawn(move || {
        let mut seen = BTreeSet::from([lwp()]);
        while let Ok(number) = receive.recv() {
            seen.insert(lwp());
            answer.send(number).unwrap();
        }
        seen
    });
    let mutex = Arc::new(fut::sync::Mutex::new(0));
    let (mine, theirs) = fut::net::UnixStream::pair().unwrap();
    for round in 0..5 {
        yield_now();
        seen.insert(lwp());
        there.0.send(round).unwrap();
        seen.insert(lwp());
        assert_eq!(back.1.recv(), Ok(round));
        seen.insert(lwp());
        fut::sleep(Duration::from_micros(n % 7 * 50));
        seen.insert(lwp());
        let contends = Arc::clone(&mutex);
        let contender = spawn(move || {
            let mut guard = contends.lock();
            yield_now();
            *guard += 1;
        });
        yield_now();
        *mutex.lock() += 1;
        seen.insert(lwp());
        contender.join().unwrap();
        seen.insert(lwp());
        let inside = fut::blocking(lwp);
        seen.insert(lwp());
        assert!(!seen.contains(&inside), "the closure ran on the caller's own LWP");
        fut::scope(|s| {
            s.spawn(|| (&mine).write_all(b"x").unwrap());
            let mut byte = [0];
            std::io::Read::read_exact(&mut &theirs, &mut byte).unwrap();
            seen.insert(lwp());
        });
        seen.insert(lwp());
        let until = Instant::now() + Duration::from_micros(300);
        while Instant::now() < until {
            fut::checkpoint();
        }
        seen.insert(lwp());
    }
    drop(there);
    let others = partner.join().unwrap();
    assert_eq!(others.len(), 1, "the partner was on {others:?}");
    seen
}

#[test]
fn a_thread_that_has_begun_never_changes_its_lwp() {
    for policy in POLICIES {
        let builder = Runtime::builder().lwps(4).policy(policy).quantum(Duration::from_micros(200));
        let seen = builder.build().unwrap().run(|| {
            let priorities = [Priority::Normal, Priority::Normal, Priority::Background, Priority::Urgent];
            let thread = |n: u64| {
                let priority = priorities[n as usize % 4];
                Builder::new().priority(priority).spawn(move || leaves_in_every_way(n))
            };
            join_all((0..16).map(thread).collect())
        });
        let moved = seen.iter().filter(|lwps| lwps.len() > 1).count();
        assert_eq!(moved, 0, "{policy:?}: {seen:?}");
        let all: BTreeSet<_> = seen.into_iter().flatten().collect();
        assert!(all.len() > 1, "{policy:?}: everything ran on {all:?}");
    }
}

#[test]
fn an_urgent_thread_is_on_the_reactors_lwp_from_its_first_instruction() {
    for policy in POLICIES {
        let runtime = Runtime::builder().lwps(2).policy(policy).build().unwrap();
        let names = runtime.run(|| {
            let urgent = Builder::new().priority(Priority::Urgent).spawn(|| {
                let mut names = vec![lwp_name()];
                for _ in 0..20 {
                    yield_now();
                    names.push(lwp_name());
                    fut::sleep(Duration::from_micros(10));
                    names.push(lwp_name());
                }
                names
            });
            urgent.join().unwrap()
        });
        assert!(names.iter().all(|name| name == "lwp/reactor"), "{policy:?}: {names:?}");
    }
}

/// A message goes round through threads on all LWPs, which have nothing else to do: each wakes the next one's LWP.
/// With `busy`, they have.
fn a_message_goes_round(policy: Policy, busy: bool) {
    let (tell, told) = mpsc::channel();
    let runtime = Runtime::builder().lwps(4).policy(policy).build().unwrap();
    let main = runtime.spawn(move || {
        let channels: Vec<_> = (0..8).map(|_| unbounded::<u32>()).collect();
        let begun = Arc::new(AtomicUsize::new(0));
        let done = Arc::new(AtomicBool::new(false));
        let members: Vec<_> = (0..8)
            .map(|n| {
                let (receive, send) = (channels[n].1.clone(), channels[(n + 1) % 8].0.clone());
                let begun = Arc::clone(&begun);
                spawn(move || {
                    begun.fetch_add(1, Ordering::Relaxed);
                    // So that others are begun elsewhere.
                    compute(Duration::from_millis(3));
                    while let Ok(number) = receive.recv() {
                        // The last round tells all to end.
                        let _ = send.send(number.saturating_sub(1));
                        if number == 0 {
                            break;
                        }
                    }
                    lwp()
                })
            })
            .collect();
        let load: Vec<_> = (0..if busy { 6 } else { 0 })
            .map(|n| {
                let done = Arc::clone(&done);
                spawn(move || {
                    while !done.load(Ordering::Relaxed) {
                        match n % 3 {
                            0 => yield_now(),
                            1 => fut::sleep(Duration::from_micros(20)),
                            _ => drop(spawn(|| compute(Duration::from_micros(20))).join()),
                        }
                    }
                })
            })
            .collect();
        while begun.load(Ordering::Relaxed) < 8 {
            yield_now();
        }
        channels[0].0.send(if busy { 100 } else { 1_000 }).unwrap();
        let lwps: BTreeSet<_> = join_all(members).into_iter().collect();
        done.store(true, Ordering::Relaxed);
        join_all(load);
        tell.send(lwps).unwrap();
    });
    let lwps = told.recv_timeout(LONG).unwrap_or_else(|_| {
        fut::live_threads().iter().for_each(|thread| eprintln!("  {thread:?}"));
        panic!("{policy:?}, busy {busy}: a wakeup was lost")
    });
    assert!(lwps.len() > 1, "{policy:?}: all on {lwps:?}");
    main.join().unwrap();
}

#[test]
fn a_thread_that_another_lwp_readies_wakes_its_own() {
    for policy in POLICIES {
        a_message_goes_round(policy, false);
        a_message_goes_round(policy, true);
    }
}

/// CPU time of the calling LWP, and of the process.
fn cpu_times() -> (Duration, Duration) {
    let of = |clock| {
        let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: `time` is a valid place.
        unsafe { libc::clock_gettime(clock, &raw mut time) };
        Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
    };
    (of(libc::CLOCK_THREAD_CPUTIME_ID), of(libc::CLOCK_PROCESS_CPUTIME_ID))
}

/// Two threads of one LWP unpark each other all the time. No other LWP could run them, so no other is woken.
#[test]
fn lwps_sleep_while_only_another_has_work() {
    if env::var_os(CASE).is_none() {
        // A process of its own: the CPU time of other tests would count.
        let program = Command::new(env::current_exe().unwrap())
            .args(["lwps_sleep_while_only_another_has_work", "--exact", "--nocapture"])
            .env(CASE, "1")
            .output()
            .unwrap();
        assert!(program.status.success(), "{}", String::from_utf8_lossy(&program.stderr));
        return;
    }
    let (mine, all) = runtime(4).run(|| {
        let (there, back) = (unbounded::<u32>(), unbounded::<u32>());
        let (receive, answer) = (there.1, back.0);
        let home = lwp();
        let partner = |receive: fut::sync::channel::Receiver<u32>,
                       answer: fut::sync::channel::Sender<u32>| {
            spawn(move || {
                let here = lwp();
                while let Ok(number) = receive.recv() {
                    answer.send(number).unwrap();
                }
                here
            })
        };
        // Begun here, since this thread leaves at once and the others are asleep or late.
        let partner = partner(receive, answer);
        there.0.send(0).unwrap();
        back.1.recv().unwrap();
        let before = cpu_times();
        let until = Instant::now() + Duration::from_millis(300);
        while Instant::now() < until {
            there.0.send(1).unwrap();
            back.1.recv().unwrap();
        }
        let after = cpu_times();
        drop(there.0);
        let theirs = partner.join().unwrap();
        let (mine, all) = (after.0 - before.0, after.1 - before.1);
        // Elsewhere it would be another test: of waking each other's LWP.
        if theirs == home { (mine, all) } else { (all, all) }
    });
    assert!(all < mine.mul_f64(1.25), "{mine:?} of this LWP, {all:?} of all");
}

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

/// What an LWP's thread-local lends to a thread that never ends may be in use on another LWP when the runtime is
/// dropped: the LWP must not end before it.
#[test]
fn what_a_thread_local_has_lent_outlives_a_runtime_that_is_dropped() {
    static DROPPED: AtomicUsize = AtomicUsize::new(0);
    struct Lent;
    impl Drop for Lent {
        fn drop(&mut self) {
            DROPPED.fetch_add(1, Ordering::Relaxed);
        }
    }
    thread_local!(static LENT: Lent = const { Lent });
    for priority in [Priority::Normal, Priority::Urgent] {
        let runtime = runtime(2);
        let lent = Arc::new(AtomicBool::new(false));
        let tell = Arc::clone(&lent);
        drop(runtime.spawn(move || {
            drop(Builder::new().priority(priority).spawn(move || {
                LENT.with(|_lent| {
                    tell.store(true, Ordering::Relaxed);
                    fut::sleep(Duration::from_secs(3600));
                });
            }));
        }));
        while !lent.load(Ordering::Relaxed) {
            thread::yield_now();
        }
        drop(runtime);
        assert_eq!(DROPPED.load(Ordering::Relaxed), 0, "{priority:?}");
    }
    // Without such a thread, the LWP ends and drops it.
    runtime(1).run(|| LENT.with(|_| ()));
    assert_eq!(DROPPED.load(Ordering::Relaxed), 1);
}

/// Yielding threads, waiting ones, new ones and background ones, in numbers that never end: each kind goes on.
#[test]
fn no_thread_starves_on_an_lwp() {
    for policy in POLICIES {
        let runtime = Runtime::builder().lwps(1).policy(policy).build().unwrap();
        let (tell, told) = mpsc::channel();
        let turns: Arc<[AtomicU32; 3]> = Arc::default();
        let counts = Arc::clone(&turns);
        let main = runtime.spawn(move || {
            let done = Arc::new(AtomicBool::new(false));
            let counts_in = |kind: usize| {
                let (counts, done) = (Arc::clone(&counts), Arc::clone(&done));
                move || {
                    counts[kind].fetch_add(1, Ordering::Relaxed);
                    !done.load(Ordering::Relaxed)
                }
            };
            let yields = counts_in(0);
            let yields = spawn(move || {
                while yields() {
                    yield_now()
                }
            });
            // Two that ready each other.
            let (there, back) = (unbounded::<()>(), unbounded::<()>());
            let wakes = counts_in(1);
            let waits = spawn(move || {
                while there.1.recv().is_ok() {
                    let _ = back.0.send(());
                }
            });
            let wakes = spawn(move || {
                while wakes() && there.0.send(()).is_ok() {
                    let _ = back.1.recv();
                }
            });
            // One after the other is new.
            let new = counts_in(2);
            fn again(new: Arc<dyn Fn() -> bool + Send + Sync>) {
                if new() {
                    drop(spawn(move || again(new)));
                }
            }
            again(Arc::new(new));
            // Readied by the reactor.
            for _ in 0..20 {
                fut::sleep(Duration::from_micros(200));
            }
            while counts.iter().any(|count| count.load(Ordering::Relaxed) < 100) {
                yield_now();
            }
            done.store(true, Ordering::Relaxed);
            join_all(vec![yields, wakes, waits]);
            tell.send(()).unwrap();
        });
        told.recv_timeout(LONG).unwrap_or_else(|_| panic!("{policy:?}: turns of each kind: {turns:?}"));
        main.join().unwrap();
    }
}

/// No thread is told to come from another LWP, and each is shown on one only.
#[test]
fn a_trace_shows_no_migration() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("user.fut");
    let recording = Recording::start(&path, Geometry::default()).unwrap();
    let blocked = runtime(3).run(|| {
        let thread = |n: u64| spawn(move || drop(leaves_in_every_way(n)));
        join_all((0..12).map(thread).collect());
        fut::current().unwrap()
    });
    assert_eq!(recording.finish().unwrap().lost, 0);
    let trace = common::opened(&path);
    let types = trace.event_types();
    let mut on: HashMap<u64, BTreeSet<u32>> = HashMap::new();
    for mut stream in trace.streams() {
        let mut event = Event::default();
        while stream.next_into(&mut event).unwrap() {
            let name = types[event.kind as usize].name.as_str();
            assert_ne!(name, "USER_THREAD_MIGRATE");
            if let fut::model::Effect::UserSwitch { next: Some(next), .. } = event.effect {
                on.entry(next.0).or_default().insert(event.lwp.unwrap().0);
            }
        }
    }
    assert!(on.contains_key(&blocked.0) && on.len() > 12 * 6, "{} threads ran", on.len());
    let moved = on.values().filter(|lwps| lwps.len() > 1).count();
    assert_eq!(moved, 0);
}
