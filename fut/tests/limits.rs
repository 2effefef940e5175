//! Without more descriptors or threads, building a runtime fails, and one that was built continues. Each case is a
//! separate process, because limits apply to a process.

mod again;

use std::{
    fs::File,
    io::{self, ErrorKind, PipeReader, Read, Write},
    os::fd::{AsRawFd, FromRawFd, OwnedFd},
    sync::Arc,
    time::{Duration, Instant},
};

use fut::{
    Builder, Policy, Priority, Runtime, blocking, net, sleep, spawn,
    sync::{Condvar, Mutex, OnceCell, RwLock, Semaphore, channel},
};

fn limit(resource: libc::__rlimit_resource_t, to: u64) {
    let limit = libc::rlimit { rlim_cur: to, rlim_max: to };
    // SAFETY: `limit` is there during the call.
    assert_eq!(unsafe { libc::setrlimit(resource, &raw const limit) }, 0);
}

fn descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

fn passes(name: &str, body: impl FnOnce()) {
    let Some(output) = again::run(name, body) else { return };
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}: {said}", output.status);
}

/// Each call that has a deadline, to the end of it.
fn timed_waits() {
    let soon = Duration::from_millis(2);
    sleep(soon);
    let held = Arc::new(Mutex::new(()));
    let other = Arc::clone(&held);
    let guard = held.lock();
    assert!(spawn(move || other.try_lock_for(soon).is_none()).join().unwrap());
    assert!(Condvar::new().wait_timeout(guard, soon).1.timed_out());
    let lock = Arc::new(RwLock::new(()));
    let reader = lock.read();
    let other = Arc::clone(&lock);
    assert!(spawn(move || other.try_write_for(soon).is_none()).join().unwrap());
    drop(reader);
    assert!(Semaphore::new(0).try_acquire_for(soon).is_err());
    let (_sender, receiver) = channel::bounded::<()>(1);
    assert_eq!(receiver.recv_timeout(soon), Err(channel::RecvTimeoutError::Timeout));
    assert_eq!(*OnceCell::new().get_or_init(|| 5), 5);
}

#[test]
fn at_the_limit_of_descriptors_a_runtime_is_not_built_and_one_that_was_goes_on() {
    passes("at_the_limit_of_descriptors_a_runtime_is_not_built_and_one_that_was_goes_on", || {
        limit(libc::RLIMIT_NOFILE, 64);
        let runtime = Runtime::builder().lwps(2).build().unwrap();
        let listener = runtime.run(|| net::TcpListener::bind("127.0.0.1:0")).unwrap();
        let address = listener.local_addr().unwrap();
        let mut files = Vec::new();
        while let Ok(file) = File::open("/dev/null") {
            files.push(file);
        }
        let error = Runtime::builder().build().unwrap_err();
        assert!(error.to_string().contains("descriptors for the reactor"), "{error}");
        runtime.run(move || {
            timed_waits();
            let urgent = Builder::new().priority(Priority::Urgent);
            urgent.spawn(timed_waits).join().unwrap();
            assert_eq!(blocking(|| 42), 42);
            let refused = |error: io::Error| error.raw_os_error() == Some(libc::EMFILE);
            assert!(net::TcpListener::bind("127.0.0.1:0").is_err_and(refused));
            assert!(net::TcpStream::connect(address).is_err_and(refused));
            assert!(net::UdpSocket::bind("127.0.0.1:0").is_err_and(refused));
            assert!(net::UnixStream::pair().is_err_and(refused));
            // One for the client, none for the server.
            drop(files.pop());
            let _client = net::TcpStream::connect(address).unwrap();
            assert!(listener.accept().is_err_and(refused));
        });
    });
}

#[test]
fn without_more_threads_a_runtime_is_not_built_and_one_that_was_goes_on() {
    passes("without_more_threads_a_runtime_is_not_built_and_one_that_was_goes_on", || {
        let runtime = Runtime::builder().lwps(2).build().unwrap();
        // SAFETY: takes no memory. The limit does not hold for root.
        let is_root = unsafe { libc::geteuid() } == 0;
        // SAFETY: as above; of this process only, which does nothing else.
        assert!(!is_root || unsafe { libc::setresuid(54_321, 54_321, 54_321) } == 0);
        limit(libc::RLIMIT_NPROC, 1);
        assert!(std::thread::Builder::new().spawn(|| ()).is_err(), "the limit holds");
        assert!(Runtime::builder().build().is_err());
        let begun = Instant::now();
        runtime.run(|| {
            let calls = (0..4).map(|n| spawn(move || blocking(|| n)));
            let calls: Vec<_> = calls.collect();
            assert!(calls.into_iter().map(|call| call.join().unwrap()).eq(0..4));
            timed_waits();
        });
        assert!(begun.elapsed() < Duration::from_secs(20));
    });
}

/// A message goes around between threads of both LWPs, by sockets.
fn messages_between_lwps(threads: usize) {
    let pairs: Vec<_> = (0..threads).map(|_| net::UnixStream::pair().unwrap()).collect();
    let (mut readers, mut writers): (Vec<_>, Vec<_>) = pairs.into_iter().unzip();
    writers.rotate_left(1);
    writers[threads - 1].write_all(&[0]).unwrap();
    let ring = readers.drain(..).zip(writers).map(|(mut reader, mut writer)| {
        spawn(move || {
            let mut byte = [0];
            for _ in 0..100 {
                reader.read_exact(&mut byte).unwrap();
                byte[0] = byte[0].wrapping_add(1);
                // The last message stays: its reader has gone.
                let _ = writer.write_all(&byte);
            }
        })
    });
    ring.collect::<Vec<_>>().into_iter().for_each(|thread| thread.join().unwrap());
}

/// Two for each LWP and two more, four, or two: whatever is left suffices.
#[test]
fn where_descriptors_are_few_the_lwps_of_a_runtime_share_them() {
    passes("where_descriptors_are_few_the_lwps_of_a_runtime_share_them", || {
        [2, 3, 4, 5, 6].into_iter().for_each(shares_descriptors);
    });
}

fn shares_descriptors(left: usize) {
    limit(libc::RLIMIT_NOFILE, 64);
    let mut files = Vec::new();
    while let Ok(file) = File::open("/dev/null") {
        files.push(file);
    }
    files.truncate(files.len() - left);
    let runtime = Runtime::builder().lwps(2).policy(Policy::Affinity).build().unwrap();
    drop(files);
    // On the first LWP.
    runtime.run(|| {
        timed_waits();
        let urgent = Builder::new().priority(Priority::Urgent);
        urgent.spawn(timed_waits).join().unwrap();
        assert_eq!(blocking(|| 42), 42);
        messages_between_lwps(8);
        // A thread that never leaves its LWP keeps nobody else's events.
        let stop = Arc::new(std::sync::atomic::AtomicBool::new(false));
        let busy = Builder::new().lwp(1).spawn({
            let stop = Arc::clone(&stop);
            move || while !stop.load(std::sync::atomic::Ordering::Relaxed) {}
        });
        let (mut one, mut other) = net::UnixStream::pair().unwrap();
        let reader = Builder::new().lwp(0).spawn(move || one.read_exact(&mut [0]).unwrap());
        sleep(Duration::from_millis(2));
        other.write_all(&[1]).unwrap();
        reader.join().unwrap();
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
        busy.join().unwrap();
    });
}

#[test]
fn a_process_with_room_for_8_descriptors_has_a_runtime_of_two_lwps() {
    passes("a_process_with_room_for_8_descriptors_has_a_runtime_of_two_lwps", || {
        let open = descriptors() - 1;
        limit(libc::RLIMIT_NOFILE, 8);
        let runtime = Runtime::builder().lwps(2).build().unwrap();
        runtime.run(timed_waits);
        // Reading the folder takes one.
        let taken = descriptors() - 1 - open;
        assert!(taken <= 4, "{taken} descriptors beside {open}");
    });
}

#[test]
fn a_runtime_that_is_dropped_gives_its_descriptors_back() {
    passes("a_runtime_that_is_dropped_gives_its_descriptors_back", || {
        let before = descriptors();
        for _ in 0..30 {
            let runtime = Runtime::builder().lwps(1).build().unwrap();
            runtime.run(|| {
                sleep(Duration::from_micros(10));
                drop(net::UdpSocket::bind("127.0.0.1:0").unwrap());
            });
        }
        assert_eq!(descriptors(), before);
    });
}

/// By a worker's thread, one on the reactor's LWP, and one in a blocking call.
#[test]
fn a_runtime_may_be_dropped_by_one_of_its_own_threads() {
    passes("a_runtime_may_be_dropped_by_one_of_its_own_threads", || {
        for (priority, blocks) in
            [(Priority::Normal, false), (Priority::Urgent, false), (Priority::Normal, true)]
        {
            let runtime = Arc::new(Runtime::builder().lwps(2).build().unwrap());
            let (send, receive) = std::sync::mpsc::channel();
            let (gate, opened) = (Arc::new(Semaphore::new(0)), Arc::clone(&runtime));
            let waits = Arc::clone(&gate);
            let thread = runtime.spawn(move || {
                let drops = move || {
                    // As an urgent thread that was blocked, it goes on with the reactor's LWP.
                    drop(waits.acquire());
                    let drops = move || {
                        drop(opened);
                        send.send(()).unwrap();
                    };
                    // It does not come back from such a call.
                    if blocks { blocking(drops) } else { drops() }
                };
                Builder::new().priority(priority).spawn(drops)
            });
            drop(thread.join().unwrap());
            drop(runtime);
            gate.add_permits(1);
            receive.recv_timeout(Duration::from_secs(20)).expect("it was dropped");
        }
    });
}

#[test]
fn a_runtime_may_be_dropped_by_its_handler_of_deadlocks() {
    passes("a_runtime_may_be_dropped_by_its_handler_of_deadlocks", || {
        let (send, receive) = std::sync::mpsc::sync_channel(1);
        let runtime = Arc::new(std::sync::Mutex::new(None::<Runtime>));
        let dropped = Arc::clone(&runtime);
        let handler = move |_: &fut::Deadlock| {
            drop(dropped.lock().unwrap().take());
            send.send(()).unwrap();
        };
        let built = Runtime::builder().lwps(2).on_deadlock(handler).build().unwrap();
        drop(built.spawn(|| drop(Semaphore::new(0).acquire())));
        *runtime.lock().unwrap() = Some(built);
        receive.recv_timeout(Duration::from_secs(20)).expect("it was dropped");
    });
}

/// From now on, this system call fails with `error`, in all threads that the caller makes.
fn refuse(call: libc::c_long, error: i32) {
    const LOAD: u16 = (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16;
    const IF_EQUAL: u16 = (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16;
    const RETURN: u16 = (libc::BPF_RET | libc::BPF_K) as u16;
    let step = |code, jt, jf, k| libc::sock_filter { code, jt, jf, k };
    let mut filter = [
        // The number of the system call is the first word.
        step(LOAD, 0, 0, 0),
        step(IF_EQUAL, 0, 1, call as u32),
        step(RETURN, 0, 0, libc::SECCOMP_RET_ERRNO | error as u32),
        step(RETURN, 0, 0, libc::SECCOMP_RET_ALLOW),
    ];
    let program = libc::sock_fprog { len: filter.len() as u16, filter: filter.as_mut_ptr() };
    // SAFETY: takes numbers only.
    assert_eq!(unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) }, 0);
    // SAFETY: `program` and the filter it points to are valid during the call.
    let set = unsafe { libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const program) };
    assert_eq!(set, 0);
}

fn cpu_time() -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is valid during the call.
    assert_eq!(unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &raw mut time) }, 0);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// `epoll_pwait2` is of Linux 5.11, and sandboxes that do not know a system call refuse it.
fn sleeps_without_pwait2(name: &str, error: i32) {
    passes(name, || {
        refuse(libc::SYS_epoll_pwait2, error);
        let runtime = Runtime::builder().lwps(1).build().unwrap();
        let (began, cpu_began) = (Instant::now(), cpu_time());
        runtime.run(|| sleep(Duration::from_millis(300)));
        assert!(began.elapsed() >= Duration::from_millis(300));
        let used = cpu_time() - cpu_began;
        assert!(used < Duration::from_millis(100), "it slept for 300 ms, and used {used:?} of a CPU");
        runtime.run(timed_waits);
    });
}

#[test]
fn timers_sleep_on_a_kernel_without_epoll_pwait2() {
    sleeps_without_pwait2("timers_sleep_on_a_kernel_without_epoll_pwait2", libc::ENOSYS);
}

#[test]
fn timers_sleep_in_a_sandbox_without_epoll_pwait2() {
    sleeps_without_pwait2("timers_sleep_in_a_sandbox_without_epoll_pwait2", libc::EPERM);
}

/// Nobody looks for such a limit again and again once its time has come.
#[test]
fn a_time_limit_that_was_not_reached_leaves_an_idle_runtime_asleep() {
    passes("a_time_limit_that_was_not_reached_leaves_an_idle_runtime_asleep", || {
        let runtime = Runtime::builder().lwps(1).build().unwrap();
        let used = runtime.run(|| {
            let (sender, receiver) = channel::bounded(1);
            let sends = spawn(move || sender.send(5).unwrap());
            assert_eq!(receiver.recv_timeout(Duration::from_millis(50)), Ok(5));
            sends.join().unwrap();
            let (sender, receiver) = channel::bounded(1);
            let plain = std::thread::spawn(move || {
                std::thread::sleep(Duration::from_millis(400));
                sender.send(()).unwrap();
            });
            let began = cpu_time();
            receiver.recv().unwrap();
            let used = cpu_time() - began;
            plain.join().unwrap();
            used
        });
        assert!(used < Duration::from_millis(100), "it waited for 400 ms, and used {used:?} of a CPU");
    });
}

/// The owner of a descriptor lends it to a registration that is leaked, and closes it. The number is used again.
#[test]
fn a_leaked_registration_does_not_keep_the_number_of_its_descriptor() {
    // A process of its own, so that no other test has this number.
    const NUMBER: i32 = 100;
    let at_number = |file: &dyn AsRawFd| {
        // SAFETY: nobody else uses this number.
        assert_eq!(unsafe { libc::dup2(file.as_raw_fd(), NUMBER) }, NUMBER);
        // SAFETY: it was made just now, and belongs to nobody else.
        unsafe { OwnedFd::from_raw_fd(NUMBER) }
    };
    passes("a_leaked_registration_does_not_keep_the_number_of_its_descriptor", || {
        Runtime::builder().lwps(1).build().unwrap().run(move || {
            let (first, _first_writer) = io::pipe().unwrap();
            let (second, mut writer) = io::pipe().unwrap();
            let lent = at_number(&first);
            std::mem::forget(net::Readiness::new(&lent).unwrap());
            drop(lent);
            let reader = net::Readiness::new(PipeReader::from(at_number(&second))).unwrap();
            reader.set_nonblocking(true).unwrap();
            let again = net::Readiness::new(reader.get_ref()).unwrap_err();
            assert_eq!(again.kind(), ErrorKind::AlreadyExists, "this one is not leaked");
            let writes = std::thread::spawn(move || {
                std::thread::sleep(Duration::from_millis(20));
                writer.write_all(b"x").unwrap();
            });
            let deadline = Instant::now() + Duration::from_secs(20);
            let read = |mut pipe: &PipeReader| pipe.read(&mut [0]);
            assert_eq!(reader.io_until(net::Interest::Readable, deadline, read).unwrap(), 1);
            writes.join().unwrap();
        });
    });
}
