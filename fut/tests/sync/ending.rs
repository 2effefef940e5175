//! Ends of threads: sets of them, time limits, cancellation. And lazy values.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use fut::{
    JoinSet, Runtime, WaitKind, select, sleep, spawn,
    sync::{CancellationToken, LazyLock, Notify, channel::never},
    yield_now,
};

use super::{LONG, SOON, blocked, join_all, on_one_and_four_lwps};

#[test]
fn a_set_is_joined_in_the_order_of_the_ends() {
    on_one_and_four_lwps(|| {
        let mut set = JoinSet::new();
        assert!(set.join_next().is_none());
        let doors: Vec<_> = (0..3).map(|_| Arc::new(Notify::new())).collect();
        for (n, door) in doors.iter().cloned().enumerate() {
            set.spawn(move || {
                door.notified();
                n
            });
        }
        assert!(set.try_join_next().is_none() && set.join_next_timeout(SOON).is_none());
        for n in [1, 2, 0] {
            doors[n].notify_one();
            assert_eq!(set.join_next().unwrap().unwrap(), n);
        }
        assert!(set.is_empty());
        for n in 0..100 {
            set.spawn(move || n);
        }
        assert_eq!(set.join_all().into_iter().sum::<usize>(), 4_950);
    });
}

#[test]
fn a_set_has_the_panics_of_its_threads_and_may_be_left() {
    on_one_and_four_lwps(|| {
        let mut set = JoinSet::new();
        set.spawn(|| panic!("as it should"));
        assert!(set.join_next().unwrap().is_err());
        let ended = Arc::new(AtomicUsize::new(0));
        for _ in 0..3 {
            let ended = Arc::clone(&ended);
            set.spawn(move || {
                ended.fetch_add(1, Ordering::SeqCst);
            });
        }
        set.detach_all();
        assert_eq!(set.len(), 0);
        drop(set);
        while ended.load(Ordering::SeqCst) < 3 {
            yield_now();
        }
    });
}

#[test]
fn a_join_with_a_time_limit_gives_the_handle_back() {
    let body = |door: Arc<Notify>, handle: fut::JoinHandle<u32>| {
        let begun = Instant::now();
        let handle = handle.join_timeout(SOON).expect_err("it has not ended");
        assert!(begun.elapsed() >= SOON);
        let handle = handle.join_timeout(Duration::ZERO).expect_err("it has not ended");
        door.notify_one();
        assert_eq!(handle.join_timeout(LONG).ok().unwrap().unwrap(), 5);
    };
    let waiting = |door: &Arc<Notify>| {
        let door = Arc::clone(door);
        move || {
            door.notified();
            5
        }
    };
    for lwps in [1, 4] {
        let runtime = Runtime::builder().lwps(lwps).build().unwrap();
        let door = Arc::new(Notify::new());
        body(Arc::clone(&door), runtime.spawn(waiting(&door)));
        runtime.run(move || {
            body(Arc::clone(&door), spawn(waiting(&door)));
            let panics = spawn(|| panic!("as it should"));
            assert!(panics.join_timeout(LONG).ok().unwrap().is_err());
        });
    }
}

/// Ends and time limits meet at random.
#[test]
fn joins_with_time_limits_lose_no_end() {
    on_one_and_four_lwps(|| {
        join_all((0..300_u64).map(|n| {
            spawn(move || {
                let mut handle = spawn(move || {
                    sleep(Duration::from_micros(n % 40));
                    n
                });
                loop {
                    match handle.join_timeout(Duration::from_micros(n % 7 * 10)) {
                        Ok(result) => return assert_eq!(result.unwrap(), n),
                        Err(back) => handle = back,
                    }
                }
            })
        }));
    });
}

#[test]
fn a_time_limit_ends_the_join_of_a_thread_whose_runtime_is_gone() {
    let runtime = Runtime::builder().lwps(1).build().unwrap();
    let waits = runtime.spawn(|| Notify::new().notified());
    drop(runtime);
    assert!(waits.join_timeout(LONG).ok().unwrap().unwrap_err().is::<fut::RuntimeDropped>());
}

// With as many others as the list of children has room for, each new child searched the whole list: 3 ms.
#[test]
fn a_child_token_that_comes_and_goes_does_not_cost_more_because_there_are_many_others() {
    let cost = |others: usize| {
        let token = CancellationToken::new();
        let _others: Vec<_> = (0..others).map(|_| token.child_token()).collect();
        let began = Instant::now();
        (0..1000).for_each(|_| drop(token.child_token()));
        began.elapsed()
    };
    let (some, full) = (cost(40_000), cost(65_535));
    assert!(full < 20 * some + Duration::from_millis(100), "{full:?}, and {some:?} with fewer others");
}

#[test]
fn a_token_is_cancelled_with_its_descendants() {
    on_one_and_four_lwps(|| {
        let token = CancellationToken::new();
        let (child, other) = (token.child_token(), token.child_token());
        let grandchild = child.child_token();
        child.cancel();
        assert!(child.is_cancelled() && grandchild.is_cancelled());
        assert!(!token.is_cancelled() && !other.is_cancelled());
        assert!(!token.cancelled_timeout(SOON));
        let waiting: Vec<_> = (0..40)
            .map(|n| {
                let token = if n % 2 == 0 { token.clone() } else { other.child_token() };
                spawn(move || token.cancelled())
            })
            .collect();
        assert_eq!(blocked(waiting[0].id()).0, WaitKind::Channel);
        let outside = {
            let token = other.clone();
            thread::spawn(move || token.cancelled())
        };
        token.cancel();
        token.cancel();
        join_all(waiting);
        outside.join().unwrap();
        assert!(token.child_token().is_cancelled() && token.cancelled_timeout(LONG));
        let selected = select! {
            recv(token.receiver()) -> _ => true,
            recv(never::<()>()) -> _ => false,
        };
        assert!(selected);
    });
}

#[test]
fn a_guard_cancels_when_a_thread_panics_and_not_when_it_is_disarmed() {
    on_one_and_four_lwps(|| {
        let token = CancellationToken::new();
        assert!(!token.clone().drop_guard().disarm().is_cancelled());
        let guard = token.clone().drop_guard();
        let panics = spawn(move || {
            let _guard = guard;
            panic!("as it should")
        });
        token.cancelled();
        assert!(panics.join().is_err());
    });
}

#[test]
fn children_that_were_dropped_are_forgotten() {
    let token = CancellationToken::new();
    (0..10_000).for_each(|_| drop(token.child_token()));
    token.cancel();
    assert!(token.is_cancelled());
}

#[test]
fn a_lazy_value_is_computed_once_and_a_panic_is_kept() {
    static COMPUTED: AtomicUsize = AtomicUsize::new(0);
    on_one_and_four_lwps(|| {
        COMPUTED.store(0, Ordering::SeqCst);
        let lazy = Arc::new(LazyLock::new(|| {
            yield_now();
            COMPUTED.fetch_add(1, Ordering::SeqCst)
        }));
        let uses = (0..20).map(|_| {
            let lazy = Arc::clone(&lazy);
            spawn(move || **lazy)
        });
        assert!(join_all(uses.collect::<Vec<_>>()).into_iter().all(|n| n == 0));
        assert_eq!(COMPUTED.load(Ordering::SeqCst), 1);
        let panics = Arc::new(LazyLock::<u32>::new(|| panic!("as it should")));
        for _ in 0..2 {
            let panics = Arc::clone(&panics);
            assert!(spawn(move || **panics).join().is_err());
        }
    });
}

/// A token whose own token is gone is reached from any ancestor, whichever goes first, and however deep.
#[test]
fn cancelling_reaches_descendants_whose_parents_were_dropped() {
    on_one_and_four_lwps(|| {
        let root = CancellationToken::new();
        let grandchild = root.child_token().child_token();
        let mut deep = root.child_token();
        for _ in 0..200_000 {
            deep = deep.child_token();
        }
        let waits = {
            let deep = deep.clone();
            spawn(move || deep.cancelled_timeout(Duration::from_secs(20)))
        };
        root.cancel();
        assert!(grandchild.is_cancelled() && deep.is_cancelled() && waits.join().unwrap());
        let orphan = CancellationToken::new().child_token();
        assert!(!orphan.child_token().is_cancelled());
        orphan.cancel();
        assert!(orphan.child_token().is_cancelled());
    });
}

/// Tokens are dropped while an ancestor is cancelled: each descendant is reached.
#[test]
fn tokens_that_leave_the_tree_while_it_is_cancelled_are_cancelled() {
    let runtime = super::builder().lwps(2).build().unwrap();
    runtime.run(|| {
        for _ in 0..2_000 {
            let root = CancellationToken::new();
            let (child, other) = (root.child_token(), root.child_token());
            let middle = child.child_token();
            let (leaf, other_leaf) = (middle.child_token(), other.child_token());
            let cancels = spawn(move || root.cancel());
            let drops = spawn(move || drop(middle));
            drop((child, other));
            cancels.join().unwrap();
            drops.join().unwrap();
            assert!(leaf.is_cancelled() && other_leaf.is_cancelled());
        }
    });
}

#[test]
fn a_set_knows_of_an_end_when_the_locals_of_the_thread_are_gone() {
    struct Slow;
    impl Drop for Slow {
        fn drop(&mut self) {
            sleep(Duration::from_millis(1500));
        }
    }
    fut::user_local! { static LOCAL: Slow = Slow; }
    super::builder().lwps(1).build().unwrap().run(|| {
        let mut set = JoinSet::new();
        set.spawn(|| LOCAL.with(|_| ()));
        loop {
            let begun = Instant::now();
            let joined = set.try_join_next();
            assert!(begun.elapsed() < Duration::from_millis(1000), "{:?}", begun.elapsed());
            if joined.is_some() {
                return;
            }
            sleep(Duration::from_millis(1));
        }
    });
}

#[test]
fn a_set_outlives_the_runtime_of_its_threads() {
    let runtime = super::builder().lwps(1).build().unwrap();
    let mut set = runtime.run(|| {
        let mut set = JoinSet::new();
        set.spawn(|| 7);
        // One that waits, and one that never begins.
        let (begun, has_begun) = fut::sync::oneshot::channel();
        set.spawn(move || {
            begun.send(()).unwrap();
            Notify::new().notified();
            8
        });
        has_begun.recv().unwrap();
        set.spawn(|| 9);
        set
    });
    drop(runtime);
    let mut results = Vec::new();
    while !set.is_empty() {
        results.push(set.join_next_timeout(Duration::from_secs(20)).expect("it is told of all"));
    }
    results.sort_by_key(|result| result.as_ref().ok().copied());
    assert_eq!(results.len(), 3);
    let is_dropped = |result: &std::thread::Result<i32>| {
        result.as_ref().is_err_and(|error| error.is::<fut::RuntimeDropped>())
    };
    assert!(is_dropped(&results[0]));
    // The others may have run before that, or never have begun.
    assert!(results.iter().all(|result| result.is_ok() || is_dropped(result)));
}
