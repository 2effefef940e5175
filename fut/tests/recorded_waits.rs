//! What a user thread waits for is in the trace: each kind of wait, with its object.

mod common;

use std::{
    collections::{BTreeMap, BTreeSet},
    ffi::CString,
    future::poll_fn,
    io::{Read, Write},
    os::fd::AsRawFd,
    path::Path,
    ptr::from_ref,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::Poll,
    time::Duration,
};

use fut::{
    JoinHandle, JoinSet, LiveState, Recording, Runtime, WaitKind,
    model::{Effect, Event, EventStream, LeaveReason, Thread, Wait},
    process::Command,
    shm::Geometry,
    signal::{Signal, SignalKind},
    spawn,
    sync::{Barrier, CancellationToken, Condvar, Mutex, Notify, OnceCell, RwLock, Semaphore},
    sync::{broadcast, channel, oneshot, watch},
    yield_now,
};

/// The first wait of a thread.
struct Expected {
    what: &'static str,
    thread: Thread,
    wait: Wait,
}

#[derive(Default)]
struct Waits {
    expected: Vec<Expected>,
}

impl Waits {
    /// Lets a thread wait, and then ends the wait. The object is the one that a live look at the thread shows.
    fn add<T: Send + 'static, R>(
        &mut self,
        what: &'static str,
        kind: WaitKind,
        waits: impl FnOnce() -> T + Send + 'static,
        end: impl FnOnce(&JoinHandle<T>) -> R,
    ) -> u64 {
        let thread = spawn(waits);
        let (live, address) = blocked(thread.id());
        assert_eq!(live, kind, "{what}");
        let _ended = end(&thread);
        let object = address as u64;
        // An unpark may come from anybody.
        let on = Some(object).filter(|_| kind != WaitKind::Park);
        let wait = Wait { kind: Some(kind), on };
        self.expected.push(Expected { what, thread: thread.id(), wait });
        thread.join().unwrap();
        object
    }

    /// The same if the object is known.
    fn add_on<T: Send + 'static, R>(
        &mut self,
        what: &'static str,
        (kind, object): (WaitKind, u64),
        waits: impl FnOnce() -> T + Send + 'static,
        end: impl FnOnce(&JoinHandle<T>) -> R,
    ) {
        assert_eq!(self.add(what, kind, waits, end), object, "{what}");
    }
}

/// For what a thread waits, as soon as it waits.
fn blocked(thread: Thread) -> (WaitKind, usize) {
    loop {
        let live = fut::live_threads().into_iter().find(|live| live.thread == thread);
        match live.unwrap_or_else(|| panic!("thread {thread} has ended")).state {
            LiveState::Blocked { kind, address, .. } => return (kind, address),
            _ => yield_now(),
        }
    }
}

fn address<T>(object: &Arc<T>) -> u64 {
    from_ref(&**object).addr() as u64
}

fn locks(waits: &mut Waits) {
    let mutex = Arc::new(Mutex::new(()));
    let (guard, theirs) = (mutex.lock(), Arc::clone(&mutex));
    let of = (WaitKind::Mutex, address(&mutex));
    waits.add_on("Mutex::lock", of, move || drop(theirs.lock()), |_| drop(guard));

    let rwlock = Arc::new(RwLock::new(()));
    let (guard, theirs) = (rwlock.write(), Arc::clone(&rwlock));
    let on_read =
        waits.add("RwLock::read", WaitKind::RwLockRead, move || drop(theirs.read()), |_| drop(guard));
    let (guard, theirs) = (rwlock.read(), Arc::clone(&rwlock));
    let on_write = (WaitKind::RwLockWrite, on_read);
    waits.add_on("RwLock::write", on_write, move || drop(theirs.write()), |_| drop(guard));

    let door = Arc::new((Mutex::new(()), Condvar::new()));
    let theirs = Arc::clone(&door);
    let of = (WaitKind::Condvar, from_ref(&door.1).addr() as u64);
    waits.add_on("Condvar::wait", of, move || drop(theirs.1.wait(theirs.0.lock())), |_| door.1.notify_one());

    let semaphore = Arc::new(Semaphore::new(0));
    let theirs = Arc::clone(&semaphore);
    let acquires = move || drop(theirs.acquire().unwrap());
    waits.add("Semaphore::acquire", WaitKind::Semaphore, acquires, |_| semaphore.add_permits(1));

    let barrier = Arc::new(Barrier::new(2));
    let theirs = Arc::clone(&barrier);
    let arrives = move || theirs.wait();
    waits.add("Barrier::wait", WaitKind::Barrier, arrives, |_| barrier.wait());

    let cell = Arc::new(OnceCell::new());
    let maker = {
        let cell = Arc::clone(&cell);
        spawn(move || {
            cell.get_or_init(fut::park);
        })
    };
    blocked(maker.id());
    let theirs = Arc::clone(&cell);
    let gets = move || *theirs.get_or_init(|| ());
    waits.add("OnceCell::get_or_init", WaitKind::OnceCell, gets, |_| maker.unparker().unpark());
    maker.join().unwrap();
}

fn messages(waits: &mut Waits) {
    let (sender, receiver) = channel::bounded::<u32>(1);
    let theirs = receiver.clone();
    let receives = move || theirs.recv();
    let of = waits.add("Receiver::recv", WaitKind::Channel, receives, |_| sender.send(1).unwrap());
    sender.send(2).unwrap();
    let theirs = sender.clone();
    let of = (WaitKind::ChannelSpace, of);
    waits.add_on("Sender::send", of, move || theirs.send(3).unwrap(), |_| receiver.recv());
    receiver.recv().unwrap();

    let (stop, stopped) = channel::unbounded::<()>();
    let selects = move || {
        fut::select! {
            recv(receiver) -> _ => panic!("nothing is sent"),
            recv(stopped) -> _ => (),
        }
    };
    waits.add("select!", WaitKind::Select, selects, |_| drop(stop));

    let receives = || channel::after(Duration::from_millis(200)).recv();
    waits.add("after", WaitKind::Channel, receives, |_| ());

    let (sender, receiver) = oneshot::channel();
    let receives = move || receiver.recv();
    waits.add("oneshot::Receiver::recv", WaitKind::Channel, receives, |_| sender.send(1).unwrap());
    let (mut sender, receiver) = oneshot::channel::<u32>();
    waits.add("oneshot::Sender::closed", WaitKind::Channel, move || sender.closed(), |_| drop(receiver));

    let (sender, mut receiver) = watch::channel(0);
    let changes = move || receiver.changed().unwrap();
    waits.add("watch::Receiver::changed", WaitKind::Channel, changes, |_| sender.send(1).unwrap());
    let (sender, receiver) = watch::channel(0);
    waits.add("watch::Sender::closed", WaitKind::Channel, move || sender.closed(), |_| drop(receiver));

    let (sender, mut receiver) = broadcast::channel(1);
    let receives = move || receiver.recv();
    waits.add("broadcast::Receiver::recv", WaitKind::Channel, receives, |_| sender.send(1));

    let notify = Arc::new(Notify::new());
    let theirs = Arc::clone(&notify);
    let of = (WaitKind::Notify, address(&notify));
    waits.add_on("Notify::notified", of, move || theirs.notified(), |_| notify.notify_one());

    let token = CancellationToken::new();
    let child = token.child_token();
    waits.add(
        "CancellationToken::cancelled",
        WaitKind::Channel,
        move || child.cancelled(),
        |_| token.cancel(),
    );
}

fn threads(waits: &mut Waits) {
    let other = spawn(fut::park);
    let (number, unparker) = (other.id().0, other.unparker());
    blocked(other.id());
    let joins = move || other.join().unwrap();
    waits.add_on("JoinHandle::join", (WaitKind::Join, number), joins, |_| unparker.unpark());

    let (mut set, end) = (JoinSet::new(), Arc::new(Notify::new()));
    let theirs = Arc::clone(&end);
    set.spawn(move || theirs.notified());
    let joins = move || set.join_next().unwrap().unwrap();
    waits.add("JoinSet::join_next", WaitKind::Channel, joins, |_| end.notify_one());

    let is_open = Arc::new(AtomicBool::new(false));
    let theirs = Arc::clone(&is_open);
    let enters = move || {
        fut::scope(|scope| {
            scope.spawn(|| {
                while !theirs.load(Ordering::Relaxed) {
                    yield_now()
                }
            });
        });
    };
    waits.add("scope", WaitKind::Scope, enters, |_| is_open.store(true, Ordering::Relaxed));

    waits.add("park", WaitKind::Park, fut::park, |thread| thread.unparker().unpark());
    let slept = Duration::from_millis(150);
    let asked = slept.as_nanos() as u64;
    waits.add_on("sleep", (WaitKind::Sleep, asked), move || fut::sleep(slept), |_| ());

    let (send, receive) = std::sync::mpsc::channel();
    let is_ready = AtomicBool::new(false);
    let future = move || {
        fut::block_on(poll_fn(|context| {
            send.send(context.waker().clone()).unwrap();
            if is_ready.swap(true, Ordering::Relaxed) { Poll::Ready(()) } else { Poll::Pending }
        }));
    };
    waits.add("block_on", WaitKind::Future, future, |_| receive.recv().unwrap().wake());
}

fn kernel(waits: &mut Waits, folder: &Path) {
    let (mut here, mut there) = fut::net::UnixStream::pair().unwrap();
    let number = there.as_raw_fd() as u64;
    let reads = move || there.read(&mut [0]).unwrap();
    waits.add_on("UnixStream::read", (WaitKind::Io, number), reads, |_| here.write_all(b"x").unwrap());

    let signal = Signal::new(SignalKind::user_defined1()).unwrap();
    waits.add(
        "Signal::recv",
        WaitKind::Io,
        move || signal.recv().unwrap(),
        |_| {
            // SAFETY: the signal has a handler now.
            assert_eq!(unsafe { libc::raise(libc::SIGUSR1) }, 0);
        },
    );

    let mut child = Command::new("sleep").arg("0.2").spawn().unwrap();
    waits.add("Child::wait", WaitKind::Io, move || child.wait().unwrap(), |_| ());

    let path = folder.join("fifo");
    let named = CString::new(path.to_str().unwrap()).unwrap();
    // SAFETY: the name ends with 0.
    assert_eq!(unsafe { libc::mkfifo(named.as_ptr(), 0o600) }, 0);
    let theirs = path.clone();
    let opens = move || drop(fut::fs::read(theirs).unwrap());
    waits.add("fs::read", WaitKind::Join, opens, |_| {
        drop(std::fs::OpenOptions::new().write(true).open(&path).unwrap());
    });
}

/// The first wait of each user thread that waited.
fn recorded(path: &Path) -> BTreeMap<Thread, Wait> {
    let mut first = BTreeMap::new();
    for mut stream in common::opened(path).streams() {
        let (mut event, mut mounted) = (Event::default(), None);
        while stream.next_into(&mut event).unwrap() {
            let Effect::UserSwitch { next, reason, wait } = event.effect else { continue };
            if let (Some(thread), LeaveReason::Block) = (mounted, reason) {
                first.entry(thread).or_insert(wait);
            }
            mounted = next;
        }
        assert!(stream.take_losses().is_empty());
    }
    first
}

#[test]
fn each_wait_is_recorded_with_its_kind_and_object() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("user.fut");
    let recording = Recording::start(&path, Geometry::default()).unwrap();
    let of_files = folder.path().to_path_buf();
    let expected = Runtime::builder().lwps(1).build().unwrap().run(move || {
        let mut waits = Waits::default();
        locks(&mut waits);
        messages(&mut waits);
        threads(&mut waits);
        kernel(&mut waits, &of_files);
        waits.expected
    });
    recording.finish().unwrap();

    let recorded = recorded(&path);
    for Expected { what, thread, wait } in &expected {
        assert_eq!(recorded.get(thread), Some(wait), "{what}");
    }
    let kinds: BTreeSet<Option<WaitKind>> = expected.iter().map(|expected| expected.wait.kind).collect();
    assert_eq!(kinds.len(), WaitKind::ALL.len(), "each kind has a wait here");
}
