//! The report of a deadlock, and that creating it is harmless: inspected threads may be unparked meanwhile, by a plain
//! thread or by another runtime, and end.

mod again;

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex as StdMutex,
        atomic::{AtomicUsize, Ordering},
        mpsc,
    },
    thread,
    time::Duration,
};

use fut::{
    Builder, Deadlock, Policy, Priority, Runtime, WaitKind,
    model::Thread,
    sync::{Mutex, MutexGuard},
};

/// So large that the allocator returns it to the kernel: reading it afterwards faults.
const LARGE: usize = 160 << 10;
const THREADS: usize = 64;
const ROUNDS: usize = 4;

/// What a user thread waits for: memory of its own.
struct Lock {
    mutex: Mutex<()>,
    _large: [u8; LARGE],
}

/// A thread that waits: its number, and where its mutex is.
struct Waits {
    name: String,
    address: usize,
}

/// Many threads wait, each for a mutex that a plain thread holds: until it lets go, at about the moment when the runtime
/// looks for a deadlock.
fn a_round(policy: Policy, priority: Priority, delay: Duration) {
    let reports = Arc::new(StdMutex::new(Vec::<Deadlock>::new()));
    let told = Arc::clone(&reports);
    let tell = move |deadlock: &Deadlock| told.lock().unwrap().push(deadlock.clone());
    let builder = Runtime::builder().lwps(2).policy(policy).on_deadlock(tell);
    let runtime = builder.build().unwrap();
    let begun = Arc::new(AtomicUsize::new(0));
    let mut made = HashMap::<Thread, Waits>::new();
    let (mut guards, mut handles) = (Vec::<MutexGuard<'static, ()>>::new(), Vec::new());
    for n in 0..THREADS {
        let lock = Arc::new(Lock { mutex: Mutex::new(()), _large: [1; LARGE] });
        let address = (&raw const lock.mutex).addr();
        let guard = lock.mutex.try_lock().unwrap();
        // SAFETY: the thread keeps its share of the lock until it has had the mutex, which this guard has before.
        guards.push(unsafe { std::mem::transmute::<MutexGuard<'_, ()>, MutexGuard<'static, ()>>(guard) });
        let name = format!("waits for lock {n:5} {}", "x".repeat(LARGE));
        let (begun, lock) = (Arc::clone(&begun), lock);
        let urgent = Builder::new().name(name.clone()).priority(priority);
        let main = runtime.spawn(move || {
            urgent.spawn(move || {
                begun.fetch_add(1, Ordering::Relaxed);
                drop(lock.mutex.lock());
            })
        });
        let thread = main.join().unwrap();
        made.insert(thread.id(), Waits { name, address });
        handles.push(thread);
    }
    while begun.load(Ordering::Relaxed) < THREADS {
        thread::yield_now();
    }
    thread::sleep(delay);
    for guard in guards {
        drop(guard);
    }
    handles.into_iter().for_each(|thread| thread.join().unwrap());
    drop(runtime);
    for thread in reports.lock().unwrap().iter().flat_map(Deadlock::threads) {
        let Some(waits) = made.get(&thread.thread) else { panic!("there was no thread {}", thread.thread) };
        assert!(waits.name.starts_with(&thread.name) && thread.name.len() >= 16, "{}", thread.name);
        assert_eq!((thread.kind, thread.address, thread.holder), (WaitKind::Mutex, waits.address, None));
    }
}

fn rounds(policy: Policy, priority: Priority) {
    let programs: Vec<_> = (0..4)
        .map(|program| {
            thread::spawn(move || {
                for round in 0..ROUNDS {
                    a_round(policy, priority, Duration::from_millis(196 + (round * 4 + program) as u64));
                }
            })
        })
        .collect();
    programs.into_iter().for_each(|program| program.join().unwrap());
}

#[test]
fn looking_for_a_deadlock_reads_nothing_of_threads_that_end_meanwhile() {
    let body = || {
        rounds(Policy::WorkStealing, Priority::Urgent);
        rounds(Policy::Affinity, Priority::Normal);
    };
    let Some(output) = again::run("looking_for_a_deadlock_reads_nothing_of_threads_that_end_meanwhile", body)
    else {
        return;
    };
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}: {said}", output.status);
}

/// Both wait for a thread of another runtime that sleeps: one for its end, one for a mutex that it holds.
#[test]
fn a_thread_that_waits_for_one_of_another_runtime_is_not_in_a_deadlock() {
    let (tell, told) = mpsc::channel();
    let tell = StdMutex::new(tell);
    let handler = move |deadlock: &Deadlock| tell.lock().unwrap().send(deadlock.clone()).unwrap();
    let waits = Runtime::builder().lwps(2).on_deadlock(handler).build().unwrap();
    let works = Runtime::builder().lwps(1).build().unwrap();
    let (mutex, taken) = (Arc::new(Mutex::new(())), Arc::new(AtomicUsize::new(0)));
    let (held, begun) = (Arc::clone(&mutex), Arc::clone(&taken));
    let worker = works.spawn(move || {
        let guard = held.lock();
        begun.fetch_add(1, Ordering::Release);
        fut::sleep(Duration::from_millis(700));
        drop(guard);
    });
    while taken.load(Ordering::Acquire) == 0 {
        thread::yield_now();
    }
    let threads = [waits.spawn(move || worker.join().unwrap()), waits.spawn(move || drop(mutex.lock()))];
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    let report = told.try_recv().ok();
    assert!(report.is_none(), "{}", report.unwrap());
}

fn reports_of(runtime: fut::RuntimeBuilder) -> (Runtime, mpsc::Receiver<Deadlock>) {
    let (tell, told) = mpsc::channel();
    let tell = StdMutex::new(tell);
    let handler = move |deadlock: &Deadlock| tell.lock().unwrap().send(deadlock.clone()).unwrap();
    (runtime.on_deadlock(handler).build().unwrap(), told)
}

/// Two threads lock two mutexes in opposite order.
fn deadlock_of_two(runtime: &Runtime) {
    let (first, second) = (Arc::new(Mutex::new(())), Arc::new(Mutex::new(())));
    let (theirs, their_second) = (Arc::clone(&first), Arc::clone(&second));
    let barrier = Arc::new(fut::sync::Barrier::new(2));
    let theirs = (theirs, their_second, Arc::clone(&barrier));
    drop(runtime.spawn(move || {
        let _first = theirs.0.lock();
        theirs.2.wait();
        drop(theirs.1.lock());
    }));
    drop(runtime.spawn(move || {
        let _second = second.lock();
        barrier.wait();
        drop(first.lock());
    }));
}

#[test]
fn waiting_for_a_channel_that_a_plain_thread_feeds_is_no_deadlock() {
    use fut::sync::{CancellationToken, broadcast, channel, oneshot, watch};
    let patience = Duration::from_millis(500);
    let (runtime, told) = reports_of(Runtime::builder().lwps(2));
    let (sender, receiver) = channel::unbounded::<u32>();
    let theirs = receiver.clone();
    let waits = runtime.spawn(move || theirs.iter().count());
    thread::sleep(patience);
    sender.send(1).unwrap();
    thread::sleep(patience);
    assert!(told.try_recv().is_err());
    drop(sender);
    assert_eq!(waits.join().unwrap(), 1);
    let (never, nothing) = channel::bounded::<u32>(0);
    let (one, received) = oneshot::channel::<u32>();
    let (watched, mut changes) = watch::channel(0);
    let (news, mut heard) = broadcast::channel::<u32>(1);
    let token = CancellationToken::new();
    let cancelled = token.clone();
    let threads: [Box<dyn FnOnce() + Send>; 5] = [
        Box::new(move || _ = fut::select! { recv(nothing) -> value => value.is_ok() }),
        Box::new(move || _ = received.recv()),
        Box::new(move || _ = changes.changed()),
        Box::new(move || _ = heard.recv()),
        Box::new(move || cancelled.cancelled()),
    ];
    for thread in threads {
        drop(runtime.spawn(thread));
    }
    thread::sleep(patience);
    drop((never, one, watched, news));
    token.cancel();
    runtime.shutdown(Duration::from_secs(20)).unwrap();
    assert!(told.try_recv().is_err());
}

#[test]
fn waiting_for_a_lock_that_a_plain_thread_holds_is_no_deadlock() {
    let (runtime, told) = reports_of(Runtime::builder().lwps(2));
    let lock = Arc::new((Mutex::new(()), fut::sync::RwLock::new(())));
    let (theirs, of_writer) = (Arc::clone(&lock), Arc::clone(&lock));
    let guards = (lock.0.lock(), lock.1.write());
    let threads =
        [runtime.spawn(move || drop(theirs.0.lock())), runtime.spawn(move || drop(of_writer.1.read()))];
    thread::sleep(Duration::from_secs(1));
    assert!(told.try_recv().is_err());
    drop(guards);
    for thread in threads {
        thread.join().unwrap();
    }
    assert!(told.try_recv().is_err());
}

#[test]
fn waiting_for_what_a_thread_of_another_runtime_sends_is_no_deadlock() {
    use fut::sync::{channel, watch};
    let (runtime, told) = reports_of(Runtime::builder().lwps(1));
    let other = Runtime::builder().lwps(1).build().unwrap();
    let (receiver, mut changes) = other.run(|| {
        let ((sender, receiver), (watched, changes)) = (channel::bounded(1), watch::channel(0));
        drop(fut::spawn(move || {
            fut::sleep(Duration::from_secs(1));
            sender.send(1).unwrap();
            watched.send(2).unwrap();
        }));
        (receiver, changes)
    });
    let changed = runtime.spawn(move || changes.changed().is_ok());
    assert_eq!(runtime.run(move || receiver.recv()), Ok(1));
    assert!(changed.join().unwrap());
    assert!(told.try_recv().is_err());
}

/// The LWP that calls the handler is not there for others meanwhile, and they do not wait for it.
#[test]
fn a_handler_that_takes_its_time_keeps_nobody_else() {
    let limit = Duration::from_secs(20);
    let (begun, handler) = mpsc::channel();
    let (end, ended) = mpsc::channel();
    let ended = StdMutex::new(ended);
    let handle = move |_: &Deadlock| {
        begun.send(()).unwrap();
        _ = ended.lock().unwrap().recv_timeout(limit);
    };
    let runtime = Runtime::builder().lwps(4).on_deadlock(handle).build().unwrap();
    let notify = Arc::new(fut::sync::Notify::new());
    let theirs = Arc::clone(&notify);
    let notified = runtime.spawn(move || theirs.notified());
    handler.recv_timeout(limit).unwrap();
    let at = std::time::Instant::now();
    // A new thread may run on any LWP.
    runtime.spawn(|| ()).join().unwrap();
    assert!(at.elapsed() < limit / 2, "{:?}", at.elapsed());
    end.send(()).unwrap();
    notify.notify_one();
    notified.join().unwrap();
}

/// What was reported first may have been none; the next one is reported nevertheless, and each once.
#[test]
fn a_report_does_not_hide_the_next_deadlock() {
    let limit = Duration::from_secs(20);
    let (runtime, told) = reports_of(Runtime::builder().lwps(2));
    let notify = Arc::new(fut::sync::Notify::new());
    let theirs = Arc::clone(&notify);
    let notified = runtime.spawn(move || {
        theirs.notified();
        theirs.notified();
    });
    let report = told.recv_timeout(limit).unwrap();
    assert_eq!(report.threads().len(), 1);
    notify.notify_one();
    // It waits where a plain thread has notified it before: it may be notified again.
    thread::sleep(Duration::from_secs(1));
    assert!(told.try_recv().is_err());
    notify.notify_one();
    notified.join().unwrap();
    deadlock_of_two(&runtime);
    let report = told.recv_timeout(limit).unwrap();
    assert_eq!(report.cycle().len(), 2);
    thread::sleep(Duration::from_secs(1));
    assert!(told.try_recv().is_err(), "it is reported once");
}
