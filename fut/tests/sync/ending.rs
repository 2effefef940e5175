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
