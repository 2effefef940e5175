//! The reactor: descriptors of all kinds, urgent threads, and that no thread waits for an event that has already
//! occurred.

#[path = "common/kind.rs"]
mod kind;

use std::{
    fs::File,
    io::{self, ErrorKind, PipeReader, PipeWriter, Read, Write},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
        mpsc,
    },
    time::{Duration, Instant},
};

use fut::{
    Builder, JoinHandle, Priority, Runtime,
    net::{Interest, Readiness, UnixStream},
    spawn, yield_now,
};
use kind::builder;

fn runtime(lwps: usize) -> Runtime {
    builder().lwps(lwps).build().unwrap()
}

fn join_all<T>(threads: Vec<JoinHandle<T>>) -> Vec<T> {
    threads.into_iter().map(|t| t.join().unwrap()).collect()
}

/// Short, and long enough for a test to see that something has not happened.
const SHORT: Duration = Duration::from_millis(20);

/// ```text
/// one    finds nothing ──────────────────── returns, tries again, takes a message
/// other  finds nothing ──────────────────────── returns, tries again, takes a message
/// reactor               both messages, one event
/// ```
/// The first to come back must not use up the event for the second.
#[test]
fn one_event_is_enough_for_two_callers() {
    let (tell, told) = mpsc::channel();
    let runtime = runtime(2);
    let main = runtime.spawn(move || {
        let (sender, receiver) = std::os::unix::net::UnixDatagram::pair().unwrap();
        receiver.set_nonblocking(true).unwrap();
        let receiver = Arc::new(Readiness::new(receiver).unwrap());
        // The event that says that it is writable is not the one we want.
        fut::sleep(SHORT);
        let found_nothing = Arc::new(AtomicUsize::new(0));
        let caller = |_| {
            let (receiver, found_nothing) = (Arc::clone(&receiver), Arc::clone(&found_nothing));
            let tell = tell.clone();
            spawn(move || {
                let call = |socket: &std::os::unix::net::UnixDatagram| {
                    let received = socket.recv(&mut [0; 4]);
                    if received.is_err() && found_nothing.fetch_add(1, Ordering::Relaxed) < 2 {
                        // The call takes so long that everything happens meanwhile.
                        fut::sleep(5 * SHORT);
                    }
                    received
                };
                tell.send(receiver.io(Interest::Readable, call).unwrap()).unwrap();
            })
        };
        let callers: Vec<_> = (0..2).map(caller).collect();
        while found_nothing.load(Ordering::Relaxed) < 2 {
            yield_now();
        }
        sender.send(b"one").unwrap();
        sender.send(b"two").unwrap();
        join_all(callers);
    });
    for _ in 0..2 {
        let received = told.recv_timeout(Duration::from_secs(20)).expect("both receive a message");
        assert_eq!(received, 3);
    }
    main.join().unwrap();
}

fn pipe() -> (Readiness<PipeReader>, Readiness<PipeWriter>) {
    let (reader, writer) = io::pipe().unwrap();
    let (reader, writer) = (Readiness::new(reader).unwrap(), Readiness::new(writer).unwrap());
    reader.set_nonblocking(true).unwrap();
    writer.set_nonblocking(true).unwrap();
    (reader, writer)
}

#[test]
fn a_pipe_is_ready_to_be_read_and_written() {
    runtime(1).run(|| {
        let (reader, writer) = pipe();
        let deadline = || Instant::now() + SHORT;
        assert_eq!(reader.wait_readable_until(deadline()).unwrap_err().kind(), ErrorKind::TimedOut);
        writer.wait_writable().unwrap();
        writer.get_ref().write_all(b"ab").unwrap();
        // As often as one asks, not only once for each change.
        (0..3).for_each(|_| reader.wait_readable().unwrap());
        let read = |mut pipe: &PipeReader| {
            let mut byte = [0];
            pipe.read(&mut byte).map(|n| (n, byte[0]))
        };
        assert_eq!(reader.io(Interest::Readable, read).unwrap(), (1, b'a'));
        reader.wait_readable().unwrap();
        assert_eq!(reader.io(Interest::Readable, read).unwrap(), (1, b'b'));
        let late = reader.io_until(Interest::Readable, deadline(), read).unwrap_err();
        assert_eq!(late.kind(), ErrorKind::TimedOut);

        // Full, and then not any more.
        let full = std::iter::repeat_with(|| writer.get_ref().write(&[0; 4096])).find_map(Result::err);
        assert_eq!(full.unwrap().kind(), ErrorKind::WouldBlock);
        assert_eq!(writer.wait_writable_until(deadline()).unwrap_err().kind(), ErrorKind::TimedOut);
        let drains = spawn(move || {
            let mut room = vec![0; 65536];
            reader.io(Interest::Readable, |mut pipe: &PipeReader| pipe.read(&mut room)).unwrap();
            reader
        });
        writer.wait_writable().unwrap();
        let reader = drains.join().unwrap();
        // The last reader goes: the writer is told.
        drop(reader);
        writer.wait_writable().unwrap();
        assert_eq!(writer.get_ref().write(b"x").unwrap_err().kind(), ErrorKind::BrokenPipe);
    });
}

#[test]
fn an_eventfd_counts_what_others_tell() {
    runtime(2).run(|| {
        // SAFETY: takes no pointer.
        let fd = unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) };
        // SAFETY: it was opened just now, and belongs to nobody else.
        let file: File = unsafe { std::os::fd::FromRawFd::from_raw_fd(fd) };
        let event = Arc::new(Readiness::new(file).unwrap());
        let tell = Arc::clone(&event);
        let teller = spawn(move || {
            for _ in 0..1000 {
                tell.get_ref().write_all(&1_u64.to_ne_bytes()).unwrap();
                yield_now();
            }
        });
        let mut told = 0;
        while told < 1000 {
            let mut count = [0; 8];
            event.io(Interest::Readable, |mut file: &File| file.read_exact(&mut count)).unwrap();
            told += u64::from_ne_bytes(count);
        }
        assert_eq!(told, 1000);
        teller.join().unwrap();
    });
}

#[test]
fn what_the_kernel_cannot_wait_for_is_told_so() {
    runtime(1).run(|| {
        let error = Readiness::new(tempfile::tempfile().unwrap()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported);
        assert!(error.to_string().starts_with("fut::net::Readiness::new: descriptor "), "{error}");
        assert!(error.to_string().contains("regular files"), "{error}");

        let (reader, _writer) = io::pipe().unwrap();
        let once = Readiness::new(&reader).unwrap();
        let error = Readiness::new(&reader).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::AlreadyExists);
        drop(once);
        Readiness::new(&reader).unwrap();
    });
}

/// Two threads, on different LWPs if they are spread, read one pipe in turns: it moves between the sets of these LWPs,
/// and then stays.
#[test]
fn a_descriptor_that_moves_between_lwps_loses_no_event() {
    let (sent, done) = mpsc::channel();
    let runtime = runtime(2);
    let main = runtime.spawn(move || {
        let (reader, writer) = io::pipe().unwrap();
        let reader = Arc::new(Readiness::new(reader).unwrap());
        reader.set_nonblocking(true).unwrap();
        let turns = Arc::new([fut::sync::Semaphore::new(1), fut::sync::Semaphore::new(0)]);
        let (ask, asked) = mpsc::channel();
        let writes = std::thread::spawn(move || {
            for n in asked {
                // At once, or after the reader has found nothing.
                std::thread::sleep(Duration::from_micros(n % 3 * 100));
                (&writer).write_all(b"x").unwrap();
            }
        });
        let reads = |number: usize| {
            let (reader, turns, ask) = (Arc::clone(&reader), Arc::clone(&turns), ask.clone());
            spawn(move || {
                for n in 0..100_u64 {
                    turns[number].acquire().unwrap().forget();
                    ask.send(n).unwrap();
                    let read = |mut pipe: &PipeReader| pipe.read(&mut [0]);
                    assert_eq!(reader.io(Interest::Readable, read).unwrap(), 1);
                    turns[1 - number].add_permits(1);
                }
            })
        };
        let readers: Vec<_> = (0..2).map(reads).collect();
        // They begin on different LWPs, if this thread does not leave its own.
        std::thread::sleep(SHORT);
        join_all(readers);
        drop(ask);
        writes.join().unwrap();
        sent.send(()).unwrap();
    });
    done.recv_timeout(Duration::from_secs(20)).expect("each byte is read");
    main.join().unwrap();
}

/// ```text
/// parent   registers ──── forks ─────────────── waits for the child ── waits for a byte ── reads it
/// child                       └─ deregisters, registers, yields, ends
/// ```
/// The two share the kernel's epoll.
#[test]
fn a_child_process_leaves_its_parents_descriptors_registered() {
    let (sent, done) = mpsc::channel();
    let runtime = runtime(1);
    let main = runtime.spawn(move || {
        let (reader, writer) = pipe();
        // SAFETY: the child makes no call but those below, and ends.
        let child = unsafe { libc::fork() };
        if child == 0 {
            drop(reader);
            let (other, _other_writer) = io::pipe().unwrap();
            let is_refused = Readiness::new(other).is_err();
            for _ in 0..100 {
                std::thread::sleep(Duration::from_micros(50));
                yield_now();
            }
            // SAFETY: ends the child.
            unsafe { libc::_exit(if is_refused { 7 } else { 8 }) }
        }
        let ended = fut::blocking(|| {
            let mut status = 0;
            // SAFETY: `status` is valid during the call.
            let ended = unsafe { libc::waitpid(child, &raw mut status, 0) };
            (ended, status)
        });
        assert_eq!(ended, (child, 7 << 8), "the child has no runtime to register with");
        let writes = std::thread::spawn(move || {
            std::thread::sleep(SHORT);
            writer.get_ref().write_all(b"x").unwrap();
            writer
        });
        let read = |mut pipe: &PipeReader| pipe.read(&mut [0]);
        sent.send(reader.io(Interest::Readable, read).unwrap()).unwrap();
        writes.join().unwrap();
    });
    assert_eq!(done.recv_timeout(Duration::from_secs(20)).expect("the byte is read"), 1);
    main.join().unwrap();
}

/// Runtimes whose LWPs wait in the kernel, or are about to, or make threads ready, are dropped.
#[test]
fn a_runtime_is_dropped_while_its_lwps_poll() {
    let (sent, done) = mpsc::channel();
    std::thread::spawn(move || {
        for round in 0..100 {
            let runtime = runtime(2);
            let (one, mut other) = std::os::unix::net::UnixStream::pair().unwrap();
            let (begin, begun) = mpsc::channel();
            drop(runtime.spawn(move || {
                let sleeps = spawn(|| fut::sleep(Duration::from_secs(3600)));
                let stream = UnixStream::from_std(one).unwrap();
                begin.send(()).unwrap();
                while (&stream).read(&mut [0; 64]).is_ok_and(|n| n > 0) {}
                sleeps.join().unwrap();
            }));
            begun.recv().unwrap();
            match round % 3 {
                0 => {}
                1 => std::thread::sleep(Duration::from_micros(round * 10)),
                _ => (0..10).for_each(|_| other.write_all(b"x").unwrap()),
            }
            drop(runtime);
        }
        sent.send(()).unwrap();
    });
    done.recv_timeout(Duration::from_secs(60)).expect("all are dropped");
}

/// One LWP whose threads yield for ever, so that it never rests: its timers and descriptors have their turn.
#[test]
fn threads_that_yield_for_ever_starve_no_timer_and_no_descriptor() {
    let (sent, done) = mpsc::channel();
    let runtime = runtime(1);
    let main = runtime.spawn(move || {
        let stop = Arc::new(AtomicBool::new(false));
        let yields = |_| {
            let stop = Arc::clone(&stop);
            spawn(move || {
                while !stop.load(Ordering::Relaxed) {
                    yield_now();
                }
            })
        };
        let yields: Vec<_> = (0..3).map(yields).collect();
        let (reader, writer) = pipe();
        let writes = std::thread::spawn(move || {
            for _ in 0..20 {
                std::thread::sleep(Duration::from_millis(1));
                writer.get_ref().write_all(b"x").unwrap();
            }
            writer
        });
        for _ in 0..20 {
            fut::sleep(Duration::from_millis(1));
            let read = |mut pipe: &PipeReader| pipe.read(&mut [0]);
            assert_eq!(reader.io(Interest::Readable, read).unwrap(), 1);
        }
        stop.store(true, Ordering::Relaxed);
        join_all(yields);
        drop(writes.join().unwrap());
        sent.send(()).unwrap();
    });
    done.recv_timeout(Duration::from_secs(20)).expect("they have their turn");
    main.join().unwrap();
}

/// One LWP that never gets free, and the reactor: a socket, a timer, and urgent threads that yield for ever.
#[test]
fn urgent_threads_that_yield_for_ever_do_not_starve_timers_and_descriptors() {
    let runtime = runtime(1);
    let done = Arc::new(AtomicBool::new(false));
    let (mut one, mut other) = std::os::unix::net::UnixStream::pair().unwrap();
    let ended = Arc::clone(&done);
    let main = runtime.spawn(move || {
        let urgent = |_| {
            let done = Arc::clone(&ended);
            Builder::new().priority(Priority::Urgent).spawn(move || {
                // Readied by the reactor once, so that it runs there.
                fut::sleep(Duration::from_millis(1));
                while !done.load(Ordering::Relaxed) {
                    yield_now();
                }
            })
        };
        let urgents: Vec<_> = (0..3).map(urgent).collect();
        other.set_nonblocking(true).unwrap();
        let echoes = Builder::new().priority(Priority::Urgent).spawn(move || {
            let socket = UnixStream::from_std(other.try_clone().unwrap()).unwrap();
            let mut byte = [0];
            (&socket).read_exact(&mut byte).unwrap();
            fut::sleep(Duration::from_millis(1));
            other.write_all(&byte).unwrap();
        });
        // They begin, and block; from then on the only worker is busy.
        yield_now();
        while !ended.load(Ordering::Relaxed) {
            std::hint::spin_loop();
        }
        echoes.join().unwrap();
        join_all(urgents);
    });
    std::thread::sleep(SHORT);
    one.write_all(&[42]).unwrap();
    let mut byte = [0];
    one.read_exact(&mut byte).unwrap();
    assert_eq!(byte, [42]);
    done.store(true, Ordering::Relaxed);
    main.join().unwrap();
}

/// An urgent thread that computes on the reactor's LWP, with safe points, lets the reactor serve timers and
/// descriptors.
#[test]
fn an_urgent_thread_that_computes_leaves_the_reactor_at_safe_points() {
    let runtime = runtime(1);
    let main = runtime.spawn(|| {
        let done = Arc::new(AtomicBool::new(false));
        let (stop, stops) = (Arc::clone(&done), Arc::clone(&done));
        let computes = Builder::new().priority(Priority::Urgent).spawn(move || {
            fut::sleep(Duration::from_millis(1));
            while !done.load(Ordering::Relaxed) {
                fut::checkpoint();
            }
        });
        let sleeps = Builder::new().priority(Priority::Urgent).spawn(move || {
            fut::sleep(SHORT);
            stops.store(true, Ordering::Relaxed);
        });
        // They begin, and block; from then on the only worker is busy.
        yield_now();
        while !stop.load(Ordering::Relaxed) {
            std::hint::spin_loop();
        }
        computes.join().unwrap();
        sleeps.join().unwrap();
    });
    main.join().unwrap();
}

/// A thread that I/O or time readies has its turn, even though those that yield are never all gone.
#[test]
fn threads_that_yield_for_ever_do_not_keep_back_one_that_was_readied_from_outside() {
    runtime(1).run(|| {
        let done = Arc::new(AtomicBool::new(false));
        let turns = Arc::new(AtomicUsize::new(0));
        let yields = |_| {
            let (done, turns) = (Arc::clone(&done), Arc::clone(&turns));
            spawn(move || {
                while !done.load(Ordering::Relaxed) {
                    turns.fetch_add(1, Ordering::Relaxed);
                    std::thread::sleep(Duration::from_micros(200));
                    yield_now();
                }
            })
        };
        let others: Vec<_> = (0..5).map(yields).collect();
        let mut waited = Vec::new();
        for _ in 0..10 {
            fut::sleep(Duration::from_micros(500));
            waited.push(turns.swap(0, Ordering::Relaxed));
        }
        done.store(true, Ordering::Relaxed);
        join_all(others);
        // Asleep for two or three turns, then ready for one or two; a machine that stands still adds some.
        waited.sort_unstable();
        assert!(waited[5] < 50, "the others had {waited:?} turns meanwhile");
    });
}

/// Whether the kernel allows a real-time reactor or not, the runtime is there, and says which.
#[test]
fn a_realtime_reactor_is_an_offer() {
    let runtime = builder().lwps(1).realtime_reactor(true).build().unwrap();
    match runtime.is_reactor_realtime() {
        Ok(realtime) => assert!(realtime),
        Err(error) => assert_eq!(error.kind(), ErrorKind::PermissionDenied),
    }
    // What an urgent thread blocks on is no longer on the reactor's LWP, nor is what is made there of its class.
    let policy = runtime.run(|| {
        let urgent = Builder::new().priority(Priority::Urgent).spawn(|| {
            fut::sleep(Duration::from_millis(1));
            // SAFETY: about the calling thread.
            fut::blocking(|| unsafe { libc::sched_getscheduler(0) })
        });
        yield_now();
        urgent.join().unwrap()
    });
    assert_eq!(policy, libc::SCHED_OTHER);
    assert!(!builder().lwps(1).build().unwrap().is_reactor_realtime().unwrap());
}
