//! Sockets that block the user thread and not the LWP. Loopback only.

#[path = "common/kind.rs"]
mod kind;

use std::{
    io::{self, ErrorKind, IoSlice, Read, Write},
    net::{Shutdown, SocketAddr},
    os::{linux::net::SocketAddrExt, unix::net::SocketAddr as UnixAddr},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use fut::{
    JoinHandle, Policy, Runtime,
    net::{Readiness, TcpListener, TcpStream, UdpSocket, UnixDatagram, UnixListener, UnixStream},
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

fn connected() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let (server, from) = listener.accept().unwrap();
    assert_eq!(from, client.local_addr().unwrap());
    assert_eq!(server.local_addr().unwrap(), client.peer_addr().unwrap());
    (client, server)
}

/// Echoes what comes, until the other side ends.
fn echo(mut stream: TcpStream) {
    let mut buffer = [0; 256];
    loop {
        match stream.read(&mut buffer).unwrap() {
            0 => return,
            n => stream.write_all(&buffer[..n]).unwrap(),
        }
    }
}

#[test]
fn a_server_echoes_to_100_clients() {
    for (lwps, policy) in
        [(1, Policy::WorkStealing), (4, Policy::WorkStealing), (4, Policy::SharedFifo), (4, Policy::Affinity)]
    {
        let runtime = builder().lwps(lwps).policy(policy).build().unwrap();
        runtime.run(|| {
            let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
            let address = listener.local_addr().unwrap();
            let server = spawn(move || {
                let sessions = listener.incoming().take(100).map(|stream| stream.unwrap());
                join_all(sessions.map(|stream| spawn(move || echo(stream))).collect());
            });
            let client = |n: usize| {
                spawn(move || {
                    let mut stream = TcpStream::connect(address).unwrap();
                    for round in 0..20 {
                        let request = format!("client {n}, round {round}");
                        stream.write_all(request.as_bytes()).unwrap();
                        let mut answer = vec![0; request.len()];
                        stream.read_exact(&mut answer).unwrap();
                        assert_eq!(answer, request.as_bytes());
                    }
                })
            };
            join_all((0..100).map(client).collect());
            server.join().unwrap();
        });
    }
}

#[test]
fn a_large_buffer_is_written_in_parts_while_the_other_side_reads() {
    const LEN: usize = 8 << 20;
    runtime(1).run(|| {
        let (client, server) = connected();
        let writer = spawn(move || {
            let data: Vec<u8> = (0..LEN).map(|n| (n % 251) as u8).collect();
            (&client).write_all(&data).unwrap();
            client.shutdown(Shutdown::Write).unwrap();
            // The other direction is still open.
            let mut answer = String::new();
            (&client).read_to_string(&mut answer).unwrap();
            answer
        });
        let mut data = Vec::new();
        (&server).read_to_end(&mut data).unwrap();
        assert_eq!(data.len(), LEN);
        assert!(data.iter().enumerate().all(|(n, byte)| *byte == (n % 251) as u8));
        assert_eq!((&server).write_vectored(&[IoSlice::new(b"all "), IoSlice::new(b"there")]).unwrap(), 9);
        drop(server);
        assert_eq!(writer.join().unwrap(), "all there");
    });
}

#[test]
fn a_socket_is_usable_after_a_timeout() {
    runtime(1).run(|| {
        let (mut client, mut server) = connected();
        server.set_read_timeout(Some(SHORT)).unwrap();
        assert_eq!(server.read_timeout().unwrap(), Some(SHORT));
        let mut byte = [0];
        for _ in 0..3 {
            assert_eq!(server.read(&mut byte).unwrap_err().kind(), ErrorKind::TimedOut);
        }
        client.write_all(&[7]).unwrap();
        assert_eq!((server.read(&mut byte).unwrap(), byte), (1, [7]));

        client.set_write_timeout(Some(SHORT)).unwrap();
        let much = vec![0; 65536];
        let error = std::iter::repeat_with(|| client.write(&much)).find_map(Result::err).unwrap();
        assert_eq!(error.kind(), ErrorKind::TimedOut);
        let drained = spawn(move || {
            server.set_read_timeout(None).unwrap();
            io::copy(&mut server, &mut io::sink()).unwrap()
        });
        client.set_write_timeout(None).unwrap();
        client.write_all(&[1; 1000]).unwrap();
        drop(client);
        assert!(drained.join().unwrap() > 1000);
    });
}

#[test]
fn a_limit_of_zero_is_refused() {
    runtime(1).run(|| {
        let (client, server) = connected();
        let refused = client.set_read_timeout(Some(Duration::ZERO)).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::InvalidInput);
        let to = server.peer_addr().unwrap();
        let refused = TcpStream::connect_timeout(&to, Duration::ZERO).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::InvalidInput);
    });
}

#[test]
fn connecting_where_nobody_listens_is_refused() {
    runtime(1).run(|| {
        let gone = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        assert_eq!(TcpStream::connect(gone).unwrap_err().kind(), ErrorKind::ConnectionRefused);
        let within = TcpStream::connect_timeout(&gone, Duration::from_secs(60)).unwrap_err();
        assert_eq!(within.kind(), ErrorKind::ConnectionRefused);
        // The second address is tried when the first one fails.
        let listener = TcpListener::bind("localhost:0").unwrap();
        let there = listener.local_addr().unwrap();
        TcpStream::connect(&[gone, there][..]).unwrap();
        let none: &[SocketAddr] = &[];
        assert_eq!(TcpStream::connect(none).unwrap_err().kind(), ErrorKind::InvalidInput);
    });
}

#[test]
fn a_listener_accepts_while_others_compute() {
    let runtime = builder().lwps(2).quantum(Duration::from_millis(1)).build().unwrap();
    runtime.run(|| {
        let done = Arc::new(AtomicBool::new(false));
        let computes = |_| {
            let done = Arc::clone(&done);
            spawn(move || {
                while !done.load(Ordering::Relaxed) {
                    (0..1000).for_each(|n| {
                        std::hint::black_box(n);
                    });
                    fut::checkpoint();
                }
            })
        };
        let busy: Vec<_> = (0..8).map(computes).collect();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        // From a plain thread, which needs no LWP of this runtime.
        let client = std::thread::spawn(move || {
            for _ in 0..10 {
                let mut stream = std::net::TcpStream::connect(address).unwrap();
                stream.write_all(b"ping").unwrap();
                let mut answer = [0; 4];
                stream.read_exact(&mut answer).unwrap();
            }
        });
        listener.incoming().take(10).for_each(|stream| echo(stream.unwrap()));
        done.store(true, Ordering::Relaxed);
        join_all(busy);
        client.join().unwrap();
    });
}

#[test]
fn unix_streams_are_paired_and_listen_at_paths_and_abstract_names() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("socket");
    runtime(1).run(move || {
        let (mut one, mut other) = UnixStream::pair().unwrap();
        let reader = spawn(move || {
            let mut text = String::new();
            other.read_to_string(&mut text).unwrap();
            text
        });
        yield_now();
        one.write_all(b"through a pair").unwrap();
        drop(one);
        assert_eq!(reader.join().unwrap(), "through a pair");

        let name = format!("fut-net-test-{}", std::process::id());
        let abstract_name = UnixAddr::from_abstract_name(name).unwrap();
        let at_path = UnixListener::bind(&path).unwrap();
        let at_name = UnixListener::bind_addr(&abstract_name).unwrap();
        let to_path = spawn(move || UnixStream::connect(path).unwrap());
        let to_name = spawn(move || UnixStream::connect_addr(&abstract_name).unwrap());
        for (listener, client) in [(at_path, to_path), (at_name, to_name)] {
            let (mut server, _) = listener.accept().unwrap();
            let mut client = client.join().unwrap();
            client.write_all(b"x").unwrap();
            let mut byte = [0];
            server.read_exact(&mut byte).unwrap();
            assert_eq!(&byte, b"x");
        }
    });
}

#[test]
fn a_unix_client_waits_when_too_many_wait_to_be_accepted() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("socket");
    runtime(1).run(move || {
        let listener = UnixListener::bind(&path).unwrap();
        // listen(2) again makes the queue shorter.
        // SAFETY: the descriptor is open; no memory is passed.
        assert_eq!(unsafe { libc::listen(std::os::fd::AsRawFd::as_raw_fd(&listener), 1) }, 0);
        let connected = Arc::new(AtomicUsize::new(0));
        let client = |_| {
            let (path, connected) = (path.clone(), Arc::clone(&connected));
            spawn(move || {
                let stream = UnixStream::connect(path).unwrap();
                connected.fetch_add(1, Ordering::Relaxed);
                stream
            })
        };
        let clients: Vec<_> = (0..8).map(client).collect();
        fut::sleep(SHORT);
        assert!(connected.load(Ordering::Relaxed) < 8, "the queue holds two");
        let accepted: Vec<_> = (0..8).map(|_| listener.accept().unwrap()).collect();
        assert_eq!(join_all(clients).len(), accepted.len());
    });
}

#[test]
fn datagrams_arrive_whole_and_in_order() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("socket");
    runtime(2).run(move || {
        let receiver = UdpSocket::bind("127.0.0.1:0").unwrap();
        let to = receiver.local_addr().unwrap();
        let sender = UdpSocket::bind("127.0.0.1:0").unwrap();
        let from = sender.local_addr().unwrap();
        let received = spawn(move || {
            let mut buffer = [0; 16];
            let peeked = receiver.peek_from(&mut buffer).unwrap();
            assert_eq!(peeked, receiver.recv_from(&mut buffer).unwrap());
            receiver.connect(peeked.1).unwrap();
            receiver.send(b"answer").unwrap();
            receiver.set_read_timeout(Some(SHORT)).unwrap();
            assert_eq!(receiver.recv(&mut buffer).unwrap_err().kind(), ErrorKind::TimedOut);
            peeked
        });
        yield_now();
        sender.send_to(b"request", to).unwrap();
        let mut buffer = [0; 16];
        assert_eq!(sender.recv_from(&mut buffer).unwrap(), (6, to));
        assert_eq!(received.join().unwrap(), (7, from));

        let (one, other) = UnixDatagram::pair().unwrap();
        let numbers = spawn(move || {
            let mut number = [0; 4];
            (0..2000).map(|_| other.recv(&mut number).map(|_| u32::from_le_bytes(number)).unwrap()).collect()
        });
        // More than the socket holds: the sender waits.
        (0..2000_u32).for_each(|n| assert_eq!(one.send(&n.to_le_bytes()).unwrap(), 4));
        let numbers: Vec<u32> = numbers.join().unwrap();
        assert!(numbers.into_iter().eq(0..2000));

        // One to which the sender is not connected: the kernel does not report when it has room.
        let receiver = UnixDatagram::bind(&path).unwrap();
        let sender = spawn(move || {
            let socket = UnixDatagram::unbound().unwrap();
            (0..2000_u32).for_each(|n| assert_eq!(socket.send_to(&n.to_le_bytes(), &path).unwrap(), 4));
            socket.set_write_timeout(Some(SHORT)).unwrap();
            let full = (0..100_000_u32).find_map(|n| socket.send_to(&n.to_le_bytes(), &path).err());
            full.map(|error| error.kind())
        });
        fut::sleep(SHORT);
        let mut number = [0; 4];
        for n in 0..2000_u32 {
            receiver.recv(&mut number).unwrap();
            assert_eq!(u32::from_le_bytes(number), n);
        }
        assert_eq!(sender.join().unwrap(), Some(ErrorKind::TimedOut));
    });
}

/// Two that wait in one direction. Each message wakes both; neither is lost, and both get to the end.
#[test]
fn two_threads_wait_for_one_socket() {
    for lwps in [1, 4] {
        runtime(lwps).run(|| {
            let (one, other) = UnixDatagram::pair().unwrap();
            let other = Arc::new(other);
            let reader = |_| {
                let socket = Arc::clone(&other);
                spawn(move || {
                    let mut received = 0_u32;
                    let mut message = [0; 4];
                    while socket.recv(&mut message).unwrap() == 4 && message != [0; 4] {
                        received += 1;
                    }
                    received
                })
            };
            let readers: Vec<_> = (0..2).map(reader).collect();
            for n in 1..=5000_u32 {
                one.send(&n.to_le_bytes()).unwrap();
                if n % 7 == 0 {
                    yield_now();
                }
            }
            // One for each of them.
            one.send(&[0; 4]).unwrap();
            one.send(&[0; 4]).unwrap();
            assert_eq!(join_all(readers).iter().sum::<u32>(), 5000);
        });
    }
}

#[test]
fn an_event_that_comes_with_the_deadline_is_not_lost() {
    runtime(2).run(|| {
        let (one, other) = UnixDatagram::pair().unwrap();
        other.set_read_timeout(Some(Duration::from_micros(300))).unwrap();
        const MESSAGES: u32 = 500;
        let receiver = spawn(move || {
            let (mut received, mut message) = (0, [0; 4]);
            while received < MESSAGES {
                match other.recv(&mut message) {
                    Ok(_) => {
                        assert_eq!(u32::from_le_bytes(message), received);
                        received += 1;
                    }
                    Err(error) => assert_eq!(error.kind(), ErrorKind::TimedOut),
                }
            }
        });
        for n in 0..MESSAGES {
            fut::sleep(Duration::from_micros(300));
            one.send(&n.to_le_bytes()).unwrap();
        }
        receiver.join().unwrap();
    });
}

#[test]
fn one_thread_reads_while_another_writes() {
    runtime(2).run(|| {
        let (client, server) = connected();
        let (client, server) = (Arc::new(client), Arc::new(server));
        let pump = |socket: &Arc<TcpStream>| {
            let (reads, writes) = (Arc::clone(socket), Arc::clone(socket));
            let writer = spawn(move || {
                (&*writes).write_all(&vec![9; 1 << 20]).unwrap();
                writes.shutdown(Shutdown::Write).unwrap();
            });
            let reader = spawn(move || io::copy(&mut &*reads, &mut io::sink()).unwrap());
            (writer, reader)
        };
        for (writer, reader) in [pump(&client), pump(&server)] {
            writer.join().unwrap();
            assert_eq!(reader.join().unwrap(), 1 << 20);
        }
    });
}

#[test]
fn a_peer_that_closes_ends_the_wait() {
    runtime(1).run(|| {
        let (client, mut server) = connected();
        let reader = spawn(move || server.read(&mut [0]).unwrap());
        yield_now();
        drop(client);
        assert_eq!(reader.join().unwrap(), 0);

        let (client, server) = connected();
        let client = Arc::new(client);
        let waits = Arc::clone(&client);
        let reader = spawn(move || (&*waits).read(&mut [0]).unwrap());
        yield_now();
        client.shutdown(Shutdown::Both).unwrap();
        assert_eq!(reader.join().unwrap(), 0);
        assert_eq!((&*client).write(b"x").unwrap_err().kind(), ErrorKind::BrokenPipe);
        drop(server);
    });
}

#[test]
fn sockets_nobody_waits_for_are_dropped_and_their_keys_used_again() {
    runtime(2).run(|| {
        for _ in 0..500 {
            let (one, other) = UnixStream::pair().unwrap();
            // An event is on its way, or not, when the key is free again.
            (&one).write_all(b"x").unwrap();
            drop(other);
            drop(one);
        }
        let (one, other) = UnixStream::pair().unwrap();
        let mut std = other.into_std().unwrap();
        (&one).write_all(b"x").unwrap();
        // In blocking mode again, and not in the reactor.
        std.read_exact(&mut [0]).unwrap();
        let other = UnixStream::from_std(std).unwrap();
        let clone = other.try_clone().unwrap();
        drop(other);
        (&one).write_all(b"y").unwrap();
        (&clone).read_exact(&mut [0]).unwrap();
    });
}

#[test]
fn thousands_of_sockets_wait_at_once() {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current.unwrap_or(u64::MAX);
    // Two descriptors each; some are for others.
    let pairs = (limit.saturating_sub(200) / 2).min(4000) as usize;
    if pairs < 4000 {
        println!("with {pairs} pairs only: RLIMIT_NOFILE is {limit}");
    }
    runtime(2).run(move || {
        let mut ends = Vec::new();
        let reader = |_| {
            let (end, mut other_end) = UnixStream::pair().unwrap();
            ends.push(end);
            spawn(move || {
                let mut number = [0; 4];
                other_end.read_exact(&mut number).unwrap();
                u32::from_le_bytes(number)
            })
        };
        let readers: Vec<_> = (0..pairs).map(reader).collect();
        for (n, end) in ends.iter().enumerate() {
            (&mut &*end).write_all(&(n as u32).to_le_bytes()).unwrap();
        }
        assert!(join_all(readers).into_iter().eq(0..pairs as u32));
    });
}

#[test]
fn another_runtime_may_use_a_socket_while_its_own_lives() {
    let (first, second) = (runtime(1), runtime(1));
    let (mut one, other) = first.run(|| UnixStream::pair().unwrap());
    let other = Arc::new(other);
    let waits = Arc::clone(&other);
    let elsewhere = second.spawn(move || {
        let mut byte = [0];
        (&*waits).read_exact(&mut byte).unwrap();
        // This time, the socket's own runtime ends meanwhile.
        (byte[0], (&*waits).read(&mut byte).unwrap_err().to_string())
    });
    std::thread::sleep(SHORT);
    first.run(move || {
        one.write_all(&[42]).unwrap();
        std::mem::forget(one);
    });
    std::thread::sleep(SHORT);
    drop(first);
    let (byte, error) = elsewhere.join().unwrap();
    assert_eq!((byte, error.as_str()), (42, "the runtime in which this descriptor was registered has ended"));
    // And when it has to wait only now.
    let error = second.run(move || (&*other).read(&mut [0]).unwrap_err());
    assert!(error.to_string().ends_with("has ended"), "{error}");
}

#[test]
fn making_a_socket_outside_of_a_runtime_panics_with_the_name_of_the_call() {
    let said = |call: fn()| {
        let panic = std::panic::catch_unwind(call).unwrap_err();
        panic.downcast_ref::<String>().cloned().unwrap_or_default()
    };
    let calls: [(&str, fn()); 6] = [
        ("fut::net::TcpListener::bind", || drop(TcpListener::bind("127.0.0.1:0"))),
        ("fut::net::TcpStream::connect", || drop(TcpStream::connect("127.0.0.1:1"))),
        ("fut::net::UdpSocket::bind", || drop(UdpSocket::bind("127.0.0.1:0"))),
        ("fut::net::UnixStream::pair", || drop(UnixStream::pair())),
        ("fut::net::UnixStream::from_std", || {
            drop(UnixStream::from_std(std::os::unix::net::UnixStream::pair().unwrap().0));
        }),
        ("fut::net::Readiness::new", || drop(Readiness::new(io::pipe().unwrap().0))),
    ];
    for (name, call) in calls {
        let said = said(call);
        assert!(said.starts_with(&format!("{name} was called outside a runtime")), "{said}");
    }
}

/// A short read means that a stream is empty, and the next one waits without a call; but not for an end that the kernel
/// has already reported.
#[test]
fn an_end_that_comes_with_the_last_bytes_is_read() {
    for closes_first in [true, false] {
        runtime(2).run(move || {
            for _ in 0..100 {
                let (mut one, mut other) = connected();
                let reads = spawn(move || {
                    let mut buffer = [0; 16];
                    let first = one.read(&mut buffer).unwrap();
                    let rest =
                        std::iter::repeat_with(|| one.read(&mut buffer).unwrap()).take_while(|n| *n > 0);
                    first + rest.sum::<usize>()
                });
                if !closes_first {
                    yield_now();
                }
                other.write_all(b"abc").unwrap();
                drop(other);
                assert_eq!(reads.join().unwrap(), 3);
            }
        });
    }
}
