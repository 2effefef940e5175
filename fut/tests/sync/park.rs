//! Parking, and futures.

use std::{
    future::{pending, poll_fn},
    sync::{
        Arc, Mutex as StdMutex,
        atomic::{AtomicBool, AtomicUsize, Ordering},
        mpsc,
    },
    task::{Poll, Waker},
    thread,
    time::{Duration, Instant},
};

use fut::{
    LiveState, Runtime, WaitKind, block_on, park, park_timeout, spawn, sync::Mutex, unparker, yield_now,
};

use super::{LONG, SOON, blocked, on_one_and_four_lwps};

#[test]
fn an_unpark_before_the_park_is_kept_and_only_one() {
    let body = || {
        unparker().unpark();
        unparker().unpark();
        park();
        let begun = Instant::now();
        park_timeout(SOON);
        assert!(begun.elapsed() >= SOON);
    };
    on_one_and_four_lwps(body);
    body();
}

#[test]
fn the_token_survives_other_waits() {
    on_one_and_four_lwps(|| {
        let mutex = Arc::new(Mutex::new(()));
        let guard = mutex.lock();
        let waiter = {
            let mutex = Arc::clone(&mutex);
            spawn(move || {
                drop(mutex.lock());
                park();
            })
        };
        assert_eq!(blocked(waiter.id()).0, WaitKind::Mutex);
        waiter.unparker().unpark();
        (0..10).for_each(|_| yield_now());
        drop(guard);
        waiter.join().unwrap();
    });
}

#[test]
fn threads_unpark_each_other_in_turn() {
    on_one_and_four_lwps(|| {
        static TURN: AtomicUsize = AtomicUsize::new(0);
        TURN.store(0, Ordering::Relaxed);
        let main = unparker();
        let take_turns = |parity: usize, other: fut::Unparker| {
            for round in (parity..1_000).step_by(2) {
                while TURN.load(Ordering::Acquire) != round {
                    park();
                }
                TURN.store(round + 1, Ordering::Release);
                other.unpark();
            }
        };
        let thread = spawn(move || take_turns(1, main));
        take_turns(0, thread.unparker());
        thread.join().unwrap();
    });
}

#[test]
fn a_plain_thread_parks_and_is_unparked_by_a_user_thread() {
    let runtime = Runtime::builder().lwps(1).build().unwrap();
    let (plain, done) = (unparker(), Arc::new(AtomicBool::new(false)));
    assert_eq!(plain.id(), None);
    let theirs = Arc::clone(&done);
    let thread = runtime.spawn(move || {
        theirs.store(true, Ordering::Release);
        plain.unpark();
    });
    while !done.load(Ordering::Acquire) {
        park();
    }
    thread.join().unwrap();
}

#[test]
fn an_unparker_of_a_thread_that_has_ended_does_nothing() {
    on_one_and_four_lwps(|| {
        let thread = spawn(unparker);
        let its = thread.join().unwrap();
        let begun = Instant::now();
        let next = spawn(move || {
            its.unpark();
            park_timeout(SOON);
        });
        next.join().unwrap();
        assert!(begun.elapsed() >= SOON);
    });
}

/// Whether it is open, and who waits.
type Gate = StdMutex<(bool, Option<Waker>)>;

/// Not ready until the gate is opened.
fn gate() -> (Arc<Gate>, impl Future<Output = ()>) {
    let gate = Arc::new(StdMutex::new((false, None::<Waker>)));
    let theirs = Arc::clone(&gate);
    let future = poll_fn(move |context| {
        let mut gate = theirs.lock().unwrap();
        gate.1 = Some(context.waker().clone());
        if gate.0 { Poll::Ready(()) } else { Poll::Pending }
    });
    (gate, future)
}

fn open(gate: &Gate) {
    let mut gate = gate.lock().unwrap();
    gate.0 = true;
    gate.1.take().into_iter().for_each(Waker::wake);
}

#[test]
fn a_future_blocks_its_user_thread_only() {
    let runtime = Runtime::builder().lwps(1).build().unwrap();
    runtime.run(|| {
        let (gate, future) = gate();
        let waits = spawn(move || block_on(future));
        let (kind, address) = blocked(waits.id());
        assert_eq!(kind, WaitKind::Future);
        assert_ne!(address, 0);
        // A plain thread wakes it.
        thread::spawn(move || open(&gate)).join().unwrap();
        waits.join().unwrap();
    });
}

#[test]
fn a_plain_thread_runs_a_future_that_a_user_thread_wakes() {
    let runtime = Runtime::builder().lwps(1).build().unwrap();
    let (gate, future) = gate();
    let opener = runtime.spawn(move || {
        fut::sleep(SOON);
        open(&gate);
    });
    block_on(future);
    opener.join().unwrap();
}

#[test]
fn a_future_that_wakes_itself_lets_others_run() {
    let runtime = Runtime::builder().lwps(1).build().unwrap();
    runtime.run(|| {
        let done = Arc::new(AtomicBool::new(false));
        let theirs = Arc::clone(&done);
        let other = spawn(move || theirs.store(true, Ordering::Release));
        block_on(poll_fn(|context| {
            context.waker().wake_by_ref();
            if done.load(Ordering::Acquire) { Poll::Ready(()) } else { Poll::Pending }
        }));
        other.join().unwrap();
    });
}

#[test]
fn a_future_that_panics_unwinds_its_thread_and_wakers_outlive_it() {
    on_one_and_four_lwps(|| {
        let kept = Arc::new(StdMutex::new(None));
        let theirs = Arc::clone(&kept);
        let thread = spawn(move || {
            block_on(poll_fn(|context| -> Poll<()> {
                *theirs.lock().unwrap() = Some(context.waker().clone());
                panic!("as it should")
            }));
        });
        assert!(thread.join().is_err());
        let waker = kept.lock().unwrap().take().unwrap();
        waker.wake_by_ref();
        waker.wake();
    });
}

/// Reports of a runtime whose only thread runs `body`.
fn reports(body: fn()) -> Option<WaitKind> {
    let (tell, told) = mpsc::channel();
    let builder = Runtime::builder().lwps(1).on_deadlock(move |deadlock| {
        let _ = tell.send(deadlock.threads()[0].kind);
    });
    let runtime = builder.build().unwrap();
    let _waits = runtime.spawn(body);
    told.recv_timeout(Duration::from_secs(1)).ok()
}

#[test]
fn a_parked_thread_may_be_a_deadlock_and_a_future_or_a_deadline_is_none() {
    let reported: Vec<_> = [park as fn(), || block_on(pending()), || park_timeout(LONG)]
        .map(|body| thread::spawn(move || reports(body)))
        .into_iter()
        .map(|thread| thread.join().unwrap())
        .collect();
    assert_eq!(reported, [Some(WaitKind::Park), None, None]);
}

#[test]
fn a_parked_thread_is_shown_as_such() {
    on_one_and_four_lwps(|| {
        let thread = spawn(park);
        assert_eq!(blocked(thread.id()), (WaitKind::Park, 0));
        let live = fut::live_threads().into_iter().find(|live| live.thread == thread.id()).unwrap();
        assert!(matches!(live.state, LiveState::Blocked { holder: None, .. }));
        thread.unparker().unpark();
        thread.join().unwrap();
    });
}
