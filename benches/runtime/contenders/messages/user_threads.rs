//! By fut: user threads that block.

use std::{
    io::Write,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::SeqCst},
    },
    time::Duration,
};

use fut::{
    JoinSet, fs,
    process::Command,
    signal::{Signal, SignalKind},
    spawn,
    sync::{Barrier, CancellationToken, Mutex, Notify, Semaphore, broadcast, channel, oneshot, watch},
};
use rustix::process::{Signal as Number, getpid, kill_process};
use tempfile::NamedTempFile;

use crate::messages::{FILE_BYTES, Means, THREADS};

const LIMIT: Duration = Duration::from_secs(1);

/// As often as asked for. Called by a user thread.
pub(crate) fn once(means: Means, times: u64) {
    match means {
        Means::Channel => by_channels(channel::unbounded, times, |from| from.recv().expect("a message")),
        Means::Bounded => by_channels(|| channel::bounded(1), times, |from| from.recv().expect("a message")),
        Means::Timeout => {
            by_channels(channel::unbounded, times, |from| from.recv_timeout(LIMIT).expect("a message"));
        }
        Means::Select => select(times),
        Means::Oneshot => oneshot(times),
        Means::Watch => watch(times),
        Means::Broadcast => broadcast(times),
        Means::Notify => notify(times),
        Means::Semaphore => semaphore(times),
        Means::JoinSet => (0..times / THREADS).for_each(|_| join_set()),
        Means::Cancel => (0..times / THREADS).for_each(|_| cancel()),
        Means::Park => park(times),
        Means::Mutex => mutex(times),
        Means::Barrier => barrier(times),
        Means::Timer => by_channels(channel::unbounded, times, or_timer),
        Means::File => file(times),
        Means::Signal => signal(times),
        Means::Child => child(times),
    }
}

fn by_channels(
    new: impl Fn() -> (channel::Sender<u64>, channel::Receiver<u64>),
    times: u64,
    receive: impl Fn(&channel::Receiver<u64>) -> u64 + Send + Copy + 'static,
) {
    let ((there, at_other), (back, at_home)) = (new(), new());
    let other = spawn(move || (0..times).for_each(|_| back.send(receive(&at_other)).expect("a receiver")));
    for i in 0..times {
        there.send(i).expect("a receiver");
        assert_eq!(receive(&at_home), i);
    }
    other.join().expect("the other");
}

fn select(times: u64) {
    let (a, at_a) = channel::unbounded();
    let (b, at_b) = channel::unbounded();
    let (back, at_home) = channel::unbounded();
    let other = spawn(move || {
        for _ in 0..times {
            let value: u64 = fut::select! {
                recv(at_a) -> value => value.expect("a message"),
                recv(at_b) -> value => value.expect("a message"),
            };
            back.send(value).expect("a receiver");
        }
    });
    for i in 0..times {
        if i % 2 == 0 { &a } else { &b }.send(i).expect("a receiver");
        assert_eq!(at_home.recv(), Ok(i));
    }
    other.join().expect("the other");
}

fn oneshot(times: u64) {
    let (asks, asked) = channel::unbounded::<(u64, oneshot::Sender<u64>)>();
    let other = spawn(move || {
        for _ in 0..times {
            let (i, answer) = asked.recv().expect("a question");
            answer.send(i).expect("a receiver");
        }
    });
    for i in 0..times {
        let (answer, answered) = oneshot::channel();
        asks.send((i, answer)).expect("a receiver");
        assert_eq!(answered.recv(), Ok(i));
    }
    other.join().expect("the other");
}

fn watch(times: u64) {
    let ((there, mut at_other), (back, mut at_home)) = (watch::channel(0), watch::channel(0));
    let other = spawn(move || {
        for _ in 0..times {
            at_other.changed().expect("a sender");
            let value = *at_other.borrow_and_update();
            back.send(value).expect("a receiver");
        }
    });
    for i in 1..=times {
        there.send(i).expect("a receiver");
        at_home.changed().expect("a sender");
        assert_eq!(*at_home.borrow_and_update(), i);
    }
    other.join().expect("the other");
}

fn broadcast(times: u64) {
    let ((there, mut at_other), (back, mut at_home)) = (broadcast::channel(16), broadcast::channel(16));
    let other = spawn(move || {
        for _ in 0..times {
            let value: u64 = at_other.recv().expect("a message");
            back.send(value).expect("a receiver");
        }
    });
    for i in 0..times {
        there.send(i).expect("a receiver");
        assert_eq!(at_home.recv(), Ok(i));
    }
    other.join().expect("the other");
}

fn notify(times: u64) {
    let both = Arc::new((Notify::new(), Notify::new()));
    let of_other = Arc::clone(&both);
    let other = spawn(move || {
        for _ in 0..times {
            of_other.0.notified();
            of_other.1.notify_one();
        }
    });
    for _ in 0..times {
        both.0.notify_one();
        both.1.notified();
    }
    other.join().expect("the other");
}

fn semaphore(times: u64) {
    let both = Arc::new((Semaphore::new(0), Semaphore::new(0)));
    let of_other = Arc::clone(&both);
    let other = spawn(move || {
        for _ in 0..times {
            of_other.0.acquire().expect("it is open").forget();
            of_other.1.add_permits(1);
        }
    });
    for _ in 0..times {
        both.0.add_permits(1);
        both.1.acquire().expect("it is open").forget();
    }
    other.join().expect("the other");
}

fn join_set() {
    let mut set = JoinSet::new();
    (0..THREADS).for_each(|i| _ = set.spawn(move || i));
    let mut sum = 0;
    while let Some(i) = set.join_next() {
        sum += i.expect("a user thread panicked");
    }
    assert_eq!(sum, THREADS * (THREADS - 1) / 2);
}

fn cancel() {
    let token = CancellationToken::new();
    let wait = |_| {
        let child = token.child_token();
        spawn(move || child.cancelled())
    };
    let all: Vec<_> = (0..THREADS).map(wait).collect();
    fut::yield_now();
    token.cancel();
    all.into_iter().for_each(|one| one.join().expect("a user thread panicked"));
}

fn park(times: u64) {
    let turn = Arc::new(AtomicU64::new(0));
    let of_other = Arc::clone(&turn);
    let home = fut::unparker();
    let (tell, told) = oneshot::channel();
    let wait_for = |turn: &AtomicU64, mine: u64| {
        while turn.load(SeqCst) != mine {
            fut::park();
        }
    };
    let other = spawn(move || {
        tell.send(fut::unparker()).expect("a receiver");
        for i in 0..times {
            wait_for(&of_other, 2 * i + 1);
            of_other.store(2 * i + 2, SeqCst);
            home.unpark();
        }
    });
    let there = told.recv().expect("the other");
    for i in 0..times {
        turn.store(2 * i + 1, SeqCst);
        there.unpark();
        wait_for(&turn, 2 * i + 2);
    }
    other.join().expect("the other");
}

fn mutex(times: u64) {
    let count = Arc::new(Mutex::new(0));
    let one = move |count: Arc<Mutex<u64>>| {
        for _ in 0..times {
            let mut count = count.lock();
            fut::yield_now();
            *count += 1;
        }
    };
    let of_other = Arc::clone(&count);
    let other = spawn(move || one(of_other));
    one(Arc::clone(&count));
    other.join().expect("the other");
    assert_eq!(*count.lock(), 2 * times);
}

fn barrier(times: u64) {
    let barrier = Arc::new(Barrier::new(2));
    let of_other = Arc::clone(&barrier);
    let other = spawn(move || (0..times).for_each(|_| _ = of_other.wait()));
    (0..times).for_each(|_| _ = barrier.wait());
    other.join().expect("the other");
}

fn or_timer(from: &channel::Receiver<u64>) -> u64 {
    let late = channel::after(LIMIT);
    fut::select! {
        recv(from) -> value => value.expect("a message"),
        recv(late) -> _ => panic!("a second for a message"),
    }
}

fn file(times: u64) {
    let mut file = NamedTempFile::new().expect("a file");
    file.write_all(&[7; FILE_BYTES]).expect("room");
    for _ in 0..times {
        assert_eq!(fs::read(file.path()).expect("a file").len(), FILE_BYTES);
    }
}

fn signal(times: u64) {
    let signal = Signal::new(SignalKind::user_defined1()).expect("a handler");
    for _ in 0..times {
        kill_process(getpid(), Number::USR1).expect("this process");
        signal.recv().expect("a signal");
    }
}

fn child(times: u64) {
    for _ in 0..times {
        assert!(Command::new("true").status().expect("a process").success());
    }
}
