//! The cost of synchronisation, compared with that of std between kernel threads: `cargo bench -p sigmund-fut --bench
//! sync`.
//!
//! Each figure is the median of several rounds, in nanoseconds per operation. std's channels use the algorithms of
//! crossbeam's.

use std::{
    hint::black_box,
    sync::{Arc, mpsc},
    thread,
    time::{Duration, Instant},
};

use fut::{
    Recording, Runtime, keys,
    shm::Geometry,
    spawn,
    sync::{Condvar, Mutex, OnceCell, RwLock, Semaphore, channel},
};

const ROUNDS: usize = 15;

fn main() {
    println!("{:<52} {:>9} {:>9}", "ns", "fut", "std");
    on_lwps(1, uncontended);
    on_lwps(1, || ping_pong("1 LWP"));
    on_lwps(2, || ping_pong("2 LWPs"));
    on_lwps(2, contended);
    recorded();
}

/// The same with every key on. The records fit into the rings, whose pages were written before.
fn recorded() {
    let folder = tempfile::tempdir().expect("a folder");
    let recording =
        Recording::start(&folder.path().join("user.fut"), Geometry::default()).expect("a recording");
    keys::set(keys::ALL).expect("switched");
    on_lwps(1, || {
        let (mutex, rwlock) = (Mutex::new(0_u32), RwLock::new(0_u32));
        let settled = |mut operation: Box<dyn FnMut(u32)>| {
            for _ in 0..8 {
                (0..10_000).for_each(&mut operation);
                thread::sleep(Duration::from_millis(50));
            }
            measure(1000, |count| (0..count).for_each(&mut operation))
        };
        let lock = settled(Box::new(move |n| *black_box(&mutex).lock() += n));
        row("Mutex: lock + unlock, recorded", lock, None);
        let read = settled(Box::new(move |_| _ = black_box(*black_box(&rwlock).read())));
        row("RwLock: read + unlock, recorded", read, None);
    });
    println!("lost of these records: {}", recording.finish().expect("recorded").lost);
}

fn on_lwps(lwps: usize, body: fn()) {
    Runtime::builder().lwps(lwps).build().expect("a runtime").run(body);
}

fn row(name: &str, fut: f64, std: Option<f64>) {
    let std = std.map_or("".into(), |std| format!("{std:.1}"));
    println!("{name:<52} {fut:>9.1} {std:>9}");
}

/// The median of the nanoseconds for one operation. A round does `count` operations.
fn measure(count: u32, mut round: impl FnMut(u32)) -> f64 {
    let mut costs: Vec<f64> = (0..ROUNDS)
        .map(|_| {
            let start = Instant::now();
            round(count);
            start.elapsed().as_secs_f64() * 1e9 / f64::from(count)
        })
        .collect();
    costs.sort_by(f64::total_cmp);
    costs[ROUNDS / 2]
}

fn each(mut operation: impl FnMut(u32)) -> f64 {
    measure(200_000, |count| (0..count).for_each(&mut operation))
}

fn uncontended() {
    let (ours, theirs) = (Mutex::new(0_u32), std::sync::Mutex::new(0_u32));
    let std = each(|n| *black_box(&theirs).lock().unwrap() += n);
    row("Mutex: lock + unlock", each(|n| *black_box(&ours).lock() += n), Some(std));
    row("Mutex: try_lock + unlock", each(|n| *black_box(&ours).try_lock().unwrap() += n), None);

    let (ours, theirs) = (RwLock::new(0_u32), std::sync::RwLock::new(0_u32));
    let std = each(|_| _ = black_box(*black_box(&theirs).read().unwrap()));
    row("RwLock: read + unlock", each(|_| _ = black_box(*black_box(&ours).read())), Some(std));
    let std = each(|n| *black_box(&theirs).write().unwrap() += n);
    row("RwLock: write + unlock", each(|n| *black_box(&ours).write() += n), Some(std));

    let (ours, theirs) = (Condvar::new(), std::sync::Condvar::new());
    let std = each(|_| black_box(&theirs).notify_one());
    row("Condvar: notify_one, nobody waits", each(|_| black_box(&ours).notify_one()), Some(std));

    let semaphore = Semaphore::new(1);
    row("Semaphore: acquire + give back", each(|_| drop(black_box(&semaphore).acquire())), None);

    let (ours, theirs) = (OnceCell::from(1), std::sync::OnceLock::from(1));
    let std = each(|_| _ = black_box(black_box(&theirs).get_or_init(|| 2)));
    row(
        "OnceCell: get_or_init, made",
        each(|_| _ = black_box(black_box(&ours).get_or_init(|| 2))),
        Some(std),
    );

    let (sender, receiver) = channel::bounded(1);
    let (std_sender, std_receiver) = mpsc::sync_channel(1);
    let std = each(|n| {
        std_sender.send(n).unwrap();
        black_box(std_receiver.recv().unwrap());
    });
    let ours = each(|n| {
        sender.send(n).unwrap();
        black_box(receiver.recv().unwrap());
    });
    row("channel, bounded(1): send + recv in one thread", ours, Some(std));

    let (sender, receiver) = channel::unbounded();
    let (std_sender, std_receiver) = mpsc::channel();
    let std = each(|n| {
        std_sender.send(n).unwrap();
        black_box(std_receiver.recv().unwrap());
    });
    let ours = each(|n| {
        sender.send(n).unwrap();
        black_box(receiver.recv().unwrap());
    });
    row("channel, unbounded: send + recv in one thread", ours, Some(std));
}

/// Round trips between two threads, through two channels of capacity 1.
fn ping_pong(lwps: &str) {
    let (ping, pinged) = channel::bounded(1);
    let (pong, ponged) = channel::bounded(1);
    let echo = spawn(move || pinged.iter().for_each(|n: u32| pong.send(n).unwrap()));
    let ours = measure(20_000, |count| {
        for n in 0..count {
            ping.send(n).unwrap();
            black_box(ponged.recv().unwrap());
        }
    });
    drop(ping);
    echo.join().unwrap();

    let (ping, pinged) = mpsc::sync_channel(1);
    let (pong, ponged) = mpsc::sync_channel(1);
    let echo = thread::spawn(move || pinged.iter().for_each(|n: u32| pong.send(n).unwrap()));
    let std = measure(500, |count| {
        for n in 0..count {
            ping.send(n).unwrap();
            black_box(ponged.recv().unwrap());
        }
    });
    drop(ping);
    echo.join().unwrap();
    row(&format!("ping-pong through bounded(1), {lwps}: there and back"), ours, Some(std));
}

/// Four threads that do nothing but lock and unlock one mutex.
fn contended() {
    const THREADS: u32 = 4;
    let mutex = Arc::new(Mutex::new(0_u32));
    let ours = measure(40_000, |count| {
        let threads = [(); THREADS as usize].map(|()| {
            let mutex = Arc::clone(&mutex);
            spawn(move || (0..count / THREADS).for_each(|n| *mutex.lock() += n))
        });
        threads.into_iter().for_each(|thread| thread.join().unwrap());
    });
    let mutex = Arc::new(std::sync::Mutex::new(0_u32));
    let std = measure(40_000, |count| {
        let threads = [(); THREADS as usize].map(|()| {
            let mutex = Arc::clone(&mutex);
            thread::spawn(move || (0..count / THREADS).for_each(|n| *mutex.lock().unwrap() += n))
        });
        threads.into_iter().for_each(|thread| thread.join().unwrap());
    });
    row("Mutex, 4 threads on 2 LWPs at once: lock + unlock", ours, Some(std));
}
