//! Sockets and timers as futures see them.

use std::{
    future::poll_fn,
    io::Write,
    pin::{Pin, pin},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll, Wake, Waker},
    time::{Duration, Instant},
};

use fut::{
    block_on,
    compat::{sleep, sleep_until},
    net::{TcpStream, UnixStream},
    spawn,
};
use futures::{
    AsyncReadExt, AsyncWriteExt,
    future::{join, select},
};
use futures_io::AsyncRead;

use super::{connected, kind::builder};

/// More than sockets buffer.
const LONG: usize = 16 << 20;

/// Bytes that show where they are.
fn pattern(len: usize) -> Vec<u8> {
    (0..len).map(|at| (at ^ (at >> 8) ^ (at >> 16)) as u8).collect()
}

/// Everything that is written by these traits arrives, although both sides have to wait for each other; then the end does.
macro_rules! transfers {
    ($name:ident, $read:path, $write:path, $close:ident) => {
        #[test]
        fn $name() {
            use $read as ReadExt;
            use $write as WriteExt;

            fn transfer<S>(mut from: S, mut to: S)
            where
                S: ReadExt + WriteExt + Unpin + Send + 'static,
            {
                let sent = spawn(move || {
                    block_on(async move {
                        WriteExt::write_all(&mut from, &pattern(LONG)).await.unwrap();
                        WriteExt::$close(&mut from).await.unwrap();
                        from
                    })
                });
                let mut received = Vec::new();
                block_on(ReadExt::read_to_end(&mut to, &mut received)).unwrap();
                sent.join().unwrap();
                assert!(received == pattern(LONG), "{} of {LONG} bytes", received.len());
            }

            for lwps in [1, 2] {
                builder().lwps(lwps).build().unwrap().run(|| {
                    let (client, server) = connected();
                    let tcp = spawn(move || transfer(client, server));
                    let (one, other) = UnixStream::pair().unwrap();
                    transfer(one, other);
                    tcp.join().unwrap();
                });
            }
        }
    };
}

transfers!(bytes_pass_by_the_traits_of_futures_io, futures::AsyncReadExt, futures::AsyncWriteExt, close);
transfers!(bytes_pass_by_the_traits_of_tokio, tokio::io::AsyncReadExt, tokio::io::AsyncWriteExt, shutdown);

#[test]
fn one_user_thread_serves_two_sockets_in_one_future() {
    builder().lwps(1).build().unwrap().run(|| {
        let ((mut a, mut at_a), (mut b, mut at_b)) = (connected(), connected());
        let served = spawn(move || {
            block_on(async {
                // The second answers first, and the first is not lost.
                let (mut one, mut other) = ([0; 5], [0; 5]);
                join(async { AsyncReadExt::read_exact(&mut at_a, &mut one).await.unwrap() }, async {
                    AsyncReadExt::read_exact(&mut at_b, &mut other).await.unwrap();
                    AsyncWriteExt::write_all(&mut at_b, b"seen").await.unwrap();
                })
                .await;
                (one, other)
            })
        });
        fut::sleep(Duration::from_millis(5));
        Write::write_all(&mut b, b"later").unwrap();
        let mut seen = [0; 4];
        std::io::Read::read_exact(&mut b, &mut seen).unwrap();
        Write::write_all(&mut a, b"first").unwrap();
        assert_eq!(served.join().unwrap(), (*b"first", *b"later"));
    });
}

#[test]
fn a_sleep_ends_a_read_that_takes_too_long_and_the_socket_stays_usable() {
    builder().lwps(1).build().unwrap().run(|| {
        let (mut client, mut server) = connected();
        let start = Instant::now();
        let mut byte = [0];
        let timed_out = block_on(async {
            let read = pin!(async { AsyncReadExt::read(&mut server, &mut byte).await.is_err() });
            let late = pin!(async {
                sleep(Duration::from_millis(20)).await;
                true
            });
            select(read, late).await.factor_first().0
        });
        assert!(timed_out && start.elapsed() >= Duration::from_millis(20));
        Write::write_all(&mut client, &[7]).unwrap();
        assert_eq!(block_on(AsyncReadExt::read(&mut server, &mut byte)).unwrap(), 1);
        assert_eq!(byte, [7]);
    });
}

#[test]
fn sleeps_end_in_the_order_of_their_deadlines_after_a_reset_too() {
    builder().lwps(1).build().unwrap().run(|| {
        let start = Instant::now();
        let after = |ms| start + Duration::from_millis(ms);
        let mut moved = Box::pin(sleep_until(after(5)));
        // Polled with the first deadline, and then moved behind the other.
        let _ = block_on(poll_fn(|context| Poll::Ready(moved.as_mut().poll(context))));
        moved.reset(after(40));
        let order = std::cell::RefCell::new(Vec::new());
        block_on(join(
            async {
                moved.as_mut().await;
                order.borrow_mut().push("moved");
            },
            async {
                sleep_until(after(20)).await;
                order.borrow_mut().push("other");
            },
        ));
        assert_eq!(*order.borrow(), ["other", "moved"]);
        assert!(start.elapsed() >= Duration::from_millis(40));
    });
}

#[derive(Default)]
struct Count(AtomicUsize);

impl Wake for Count {
    fn wake(self: Arc<Count>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

fn poll_once(stream: &mut TcpStream, count: &Arc<Count>) -> bool {
    let waker = Waker::from(Arc::clone(count));
    Pin::new(stream).poll_read(&mut Context::from_waker(&waker), &mut [0; 8]).is_ready()
}

#[test]
fn the_future_that_was_polled_last_is_woken_and_a_dropped_socket_wakes_nobody() {
    builder().lwps(1).build().unwrap().run(|| {
        let (mut client, mut server) = connected();
        let (first, last) = (Arc::new(Count::default()), Arc::new(Count::default()));
        // What is ready at once, that a new socket is writable, is not counted for reading.
        fut::sleep(Duration::from_millis(2));
        for _ in 0..100 {
            assert!(!poll_once(&mut server, &first) && !poll_once(&mut server, &last));
        }
        // No more wakers are kept than one.
        assert_eq!((Arc::strong_count(&first), Arc::strong_count(&last)), (1, 2));
        Write::write_all(&mut client, b"x").unwrap();
        fut::sleep(Duration::from_millis(10));
        let woken = [&first, &last].map(|count| count.0.load(Ordering::Relaxed));
        assert_eq!(woken, [0, 1]);
        assert!(poll_once(&mut server, &last) && !poll_once(&mut server, &last));
        drop(server);
        assert_eq!(Arc::strong_count(&last), 1);
    });
}

#[test]
fn a_waker_that_panics_ends_no_lwp() {
    struct Panics;
    impl Wake for Panics {
        fn wake(self: Arc<Panics>) {
            // Without a message on standard error.
            std::panic::resume_unwind(Box::new("a waker of the program"));
        }
    }
    builder().lwps(1).build().unwrap().run(|| {
        let (mut client, mut server) = connected();
        let waker = Waker::from(Arc::new(Panics));
        let mut context = Context::from_waker(&waker);
        assert!(Pin::new(&mut server).poll_read(&mut context, &mut [0; 8]).is_pending());
        let mut timer = pin!(sleep(Duration::from_millis(1)));
        assert!(timer.as_mut().poll(&mut context).is_pending());
        Write::write_all(&mut client, b"x").unwrap();
        fut::sleep(Duration::from_millis(10));
        assert_eq!(block_on(AsyncReadExt::read(&mut server, &mut [0; 8])).unwrap(), 1);
    });
}

#[test]
fn a_plain_thread_polls_a_socket_and_fails_when_the_runtime_has_ended() {
    let runtime = builder().lwps(1).build().unwrap();
    let (mut client, mut server) = runtime.run(connected);
    let reader = std::thread::spawn(move || {
        let mut byte = [0];
        block_on(AsyncReadExt::read_exact(&mut server, &mut byte)).unwrap();
        let after = block_on(AsyncReadExt::read_exact(&mut server, &mut byte));
        (byte, after.unwrap_err().to_string())
    });
    std::thread::sleep(Duration::from_millis(10));
    Write::write_all(&mut client, &[9]).unwrap();
    std::thread::sleep(Duration::from_millis(10));
    drop(runtime);
    let (byte, error) = reader.join().unwrap();
    assert_eq!(byte, [9]);
    assert!(error.contains("the runtime in which this descriptor was registered has ended"), "{error}");
}
