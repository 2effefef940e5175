//! By tokio: tasks that are polled.

use std::{io::Write, sync::Arc, time::Duration};

use rustix::process::{Signal as Number, getpid, kill_process};
use tempfile::NamedTempFile;
use tokio::{
    fs,
    process::Command,
    select,
    signal::unix::{SignalKind, signal},
    spawn,
    sync::{Barrier, Mutex, Notify, Semaphore, broadcast, mpsc, oneshot, watch},
    task::{JoinSet, yield_now},
    time::{sleep, timeout},
};
use tokio_util::sync::CancellationToken;

use crate::messages::{FILE_BYTES, Means, THREADS};

const LIMIT: Duration = Duration::from_secs(1);

/// As often as asked for. Awaited by a task.
pub(crate) async fn once(means: Means, times: u64) {
    match means {
        Means::Channel => by_channels(times).await,
        Means::Bounded => by_bounded_channels(times).await,
        Means::Timeout => with_timeouts(times).await,
        Means::Select => by_select(times).await,
        Means::Oneshot => by_oneshot(times).await,
        Means::Watch => by_watch(times).await,
        Means::Broadcast => by_broadcast(times).await,
        Means::Notify | Means::Park => by_notify(times).await,
        Means::Semaphore => by_semaphore(times).await,
        Means::JoinSet => {
            for _ in 0..times / THREADS {
                join_set().await;
            }
        }
        Means::Cancel => {
            for _ in 0..times / THREADS {
                cancel().await;
            }
        }
        Means::Mutex => by_mutex(times).await,
        Means::Barrier => by_barrier(times).await,
        Means::Timer => with_timers(times).await,
        Means::File => read_file(times).await,
        Means::Signal => by_signal(times).await,
        Means::Child => start_children(times).await,
    }
}

async fn by_channels(times: u64) {
    let ((there, mut at_other), (back, mut at_home)) = (mpsc::unbounded_channel(), mpsc::unbounded_channel());
    let other = spawn(async move {
        for _ in 0..times {
            let value: u64 = at_other.recv().await.expect("a message");
            back.send(value).expect("a receiver");
        }
    });
    for i in 0..times {
        there.send(i).expect("a receiver");
        assert_eq!(at_home.recv().await, Some(i));
    }
    other.await.expect("the other");
}

async fn by_bounded_channels(times: u64) {
    let ((there, mut at_other), (back, mut at_home)) = (mpsc::channel(1), mpsc::channel(1));
    let other = spawn(async move {
        for _ in 0..times {
            let value: u64 = at_other.recv().await.expect("a message");
            back.send(value).await.expect("a receiver");
        }
    });
    for i in 0..times {
        there.send(i).await.expect("a receiver");
        assert_eq!(at_home.recv().await, Some(i));
    }
    other.await.expect("the other");
}

async fn with_timeouts(times: u64) {
    let ((there, mut at_other), (back, mut at_home)) = (mpsc::unbounded_channel(), mpsc::unbounded_channel());
    let other = spawn(async move {
        for _ in 0..times {
            let value: u64 = timeout(LIMIT, at_other.recv()).await.expect("in time").expect("a message");
            back.send(value).expect("a receiver");
        }
    });
    for i in 0..times {
        there.send(i).expect("a receiver");
        assert_eq!(timeout(LIMIT, at_home.recv()).await, Ok(Some(i)));
    }
    other.await.expect("the other");
}

async fn by_select(times: u64) {
    let (a, mut at_a) = mpsc::unbounded_channel();
    let (b, mut at_b) = mpsc::unbounded_channel();
    let (back, mut at_home) = mpsc::unbounded_channel();
    let other = spawn(async move {
        for _ in 0..times {
            let value: u64 = select! {
                value = at_a.recv() => value.expect("a message"),
                value = at_b.recv() => value.expect("a message"),
            };
            back.send(value).expect("a receiver");
        }
    });
    for i in 0..times {
        if i % 2 == 0 { &a } else { &b }.send(i).expect("a receiver");
        assert_eq!(at_home.recv().await, Some(i));
    }
    other.await.expect("the other");
}

async fn by_oneshot(times: u64) {
    let (asks, mut asked) = mpsc::unbounded_channel::<(u64, oneshot::Sender<u64>)>();
    let other = spawn(async move {
        for _ in 0..times {
            let (i, answer) = asked.recv().await.expect("a question");
            answer.send(i).expect("a receiver");
        }
    });
    for i in 0..times {
        let (answer, answered) = oneshot::channel();
        asks.send((i, answer)).expect("a receiver");
        assert_eq!(answered.await, Ok(i));
    }
    other.await.expect("the other");
}

async fn by_watch(times: u64) {
    let ((there, mut at_other), (back, mut at_home)) = (watch::channel(0), watch::channel(0));
    let other = spawn(async move {
        for _ in 0..times {
            at_other.changed().await.expect("a sender");
            let value = *at_other.borrow_and_update();
            back.send(value).expect("a receiver");
        }
    });
    for i in 1..=times {
        there.send(i).expect("a receiver");
        at_home.changed().await.expect("a sender");
        assert_eq!(*at_home.borrow_and_update(), i);
    }
    other.await.expect("the other");
}

async fn by_broadcast(times: u64) {
    let ((there, mut at_other), (back, mut at_home)) = (broadcast::channel(16), broadcast::channel(16));
    let other = spawn(async move {
        for _ in 0..times {
            let value: u64 = at_other.recv().await.expect("a message");
            back.send(value).expect("a receiver");
        }
    });
    for i in 0..times {
        there.send(i).expect("a receiver");
        assert_eq!(at_home.recv().await, Ok(i));
    }
    other.await.expect("the other");
}

async fn by_notify(times: u64) {
    let both = Arc::new((Notify::new(), Notify::new()));
    let of_other = Arc::clone(&both);
    let other = spawn(async move {
        for _ in 0..times {
            of_other.0.notified().await;
            of_other.1.notify_one();
        }
    });
    for _ in 0..times {
        both.0.notify_one();
        both.1.notified().await;
    }
    other.await.expect("the other");
}

async fn by_semaphore(times: u64) {
    let both = Arc::new((Semaphore::new(0), Semaphore::new(0)));
    let of_other = Arc::clone(&both);
    let other = spawn(async move {
        for _ in 0..times {
            of_other.0.acquire().await.expect("it is open").forget();
            of_other.1.add_permits(1);
        }
    });
    for _ in 0..times {
        both.0.add_permits(1);
        both.1.acquire().await.expect("it is open").forget();
    }
    other.await.expect("the other");
}

async fn join_set() {
    let mut set = JoinSet::new();
    (0..THREADS).for_each(|i| _ = set.spawn(async move { i }));
    let mut sum = 0;
    while let Some(i) = set.join_next().await {
        sum += i.expect("a task panicked");
    }
    assert_eq!(sum, THREADS * (THREADS - 1) / 2);
}

async fn cancel() {
    let token = CancellationToken::new();
    let wait = |_| {
        let child = token.child_token();
        spawn(async move { child.cancelled().await })
    };
    let all: Vec<_> = (0..THREADS).map(wait).collect();
    yield_now().await;
    token.cancel();
    for one in all {
        one.await.expect("a task panicked");
    }
}

async fn by_mutex(times: u64) {
    async fn one(count: Arc<Mutex<u64>>, times: u64) {
        for _ in 0..times {
            let mut count = count.lock().await;
            yield_now().await;
            *count += 1;
        }
    }
    let count = Arc::new(Mutex::new(0));
    let other = spawn(one(Arc::clone(&count), times));
    one(Arc::clone(&count), times).await;
    other.await.expect("the other");
    assert_eq!(*count.lock().await, 2 * times);
}

async fn by_barrier(times: u64) {
    let barrier = Arc::new(Barrier::new(2));
    let of_other = Arc::clone(&barrier);
    let other = spawn(async move {
        for _ in 0..times {
            of_other.wait().await;
        }
    });
    for _ in 0..times {
        barrier.wait().await;
    }
    other.await.expect("the other");
}

async fn with_timers(times: u64) {
    let ((there, mut at_other), (back, mut at_home)) = (mpsc::unbounded_channel(), mpsc::unbounded_channel());
    let other = spawn(async move {
        for _ in 0..times {
            let value = or_timer(&mut at_other).await;
            back.send(value).expect("a receiver");
        }
    });
    for i in 0..times {
        there.send(i).expect("a receiver");
        assert_eq!(or_timer(&mut at_home).await, i);
    }
    other.await.expect("the other");
}

async fn or_timer(from: &mut mpsc::UnboundedReceiver<u64>) -> u64 {
    select! {
        value = from.recv() => value.expect("a message"),
        () = sleep(LIMIT) => panic!("a second for a message"),
    }
}

async fn read_file(times: u64) {
    let mut file = NamedTempFile::new().expect("a file");
    file.write_all(&[7; FILE_BYTES]).expect("room");
    for _ in 0..times {
        assert_eq!(fs::read(file.path()).await.expect("a file").len(), FILE_BYTES);
    }
}

async fn by_signal(times: u64) {
    let mut signal = signal(SignalKind::user_defined1()).expect("a handler");
    for _ in 0..times {
        kill_process(getpid(), Number::USR1).expect("this process");
        signal.recv().await.expect("a signal");
    }
}

async fn start_children(times: u64) {
    for _ in 0..times {
        assert!(Command::new("true").status().await.expect("a process").success());
    }
}
