//! Misbehaving peers: each side ends the conversation in time, in bounded memory, and leaks nothing.

use std::{
    fs,
    io::{Read, Write},
    mem,
    os::{
        fd::AsRawFd,
        unix::net::{UnixListener, UnixStream},
    },
    path::Path,
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::{Duration, Instant},
};

use fut::{
    Recording,
    control::{self, AskError, Process, Reply, Request, State},
    shm::Geometry,
};

/// Both sides of this test are this process, which has one place for its socket: one test.
#[test]
fn a_peer_that_does_not_behave_costs_neither_time_nor_memory_nor_descriptors() {
    let folder = tempfile::tempdir().unwrap();
    // SAFETY: no other thread of this process reads the environment yet.
    unsafe { std::env::set_var("XDG_RUNTIME_DIR", folder.path()) };
    let place = folder.path().join("fut");
    fs::create_dir(&place).unwrap();
    let path = place.join(format!("{}.sock", std::process::id()));
    let hostile = UnixListener::bind(&path).unwrap();
    a_client_has_one_deadline_whatever_the_server_does(&hostile);
    a_client_that_is_cancelled_does_not_wait_any_longer(&hostile);
    drop(hostile);

    let recording = Recording::start(&folder.path().join("user.fut"), Geometry::default()).unwrap();
    let State::Listening(socket) = control::state() else { panic!("{:?}", control::state()) };
    assert_eq!(socket, path);
    unexpected_descriptors_are_closed(&socket);
    silent_slow_or_many_clients_do_not_delay_others(&socket);
    recording.finish().unwrap();
}

fn find() -> Process {
    Process::find(std::process::id()).unwrap()
}

/// A conversation of at most this long with a server that does this.
fn ask_against(
    listener: &UnixListener,
    within: Duration,
    is_cancelled: &dyn Fn() -> bool,
    server: impl FnOnce(UnixStream) + Send,
) -> (Result<Reply, AskError>, Duration) {
    thread::scope(|scope| {
        scope.spawn(move || server(listener.accept().unwrap().0));
        let began = Instant::now();
        let answer = find().ask_within(&Request::Status, within, is_cancelled);
        (answer, began.elapsed())
    })
}

fn a_client_has_one_deadline_whatever_the_server_does(listener: &UnixListener) {
    let within = Duration::from_millis(200);
    let in_time = |what: &str, (answer, took): (Result<Reply, AskError>, Duration)| {
        assert!(took < Duration::from_secs(2), "{what}: {took:?}");
        answer.unwrap_err()
    };
    // Until the client has gone.
    let drips = |mut stream: UnixStream| {
        while stream.write_all(b"f").is_ok() {
            thread::sleep(Duration::from_millis(10));
        }
    };
    let error = in_time("drips", ask_against(listener, within, &|| false, drips));
    assert!(matches!(error, AskError::Silent(_)), "{error}");

    let silent = |mut stream: UnixStream| _ = stream.read_to_end(&mut Vec::new());
    let error = in_time("accepts", ask_against(listener, within, &|| false, silent));
    assert!(matches!(error, AskError::Silent(_)), "{error}");

    let endless = |mut stream: UnixStream| while stream.write_all(&[b'x'; 1 << 16]).is_ok() {};
    let error = in_time("endless", ask_against(listener, within, &|| false, endless));
    assert!(matches!(error, AskError::Silent(_) | AskError::Protocol { .. }), "{error}");

    // A megabyte that would be a million columns, and as many cells a row.
    let wide = |mut stream: UnixStream| {
        let _ = stream.read(&mut [0; 64]).unwrap();
        let tabs = "\t".repeat(1 << 20);
        _ = write!(stream, "fut-control 1 ok\ncolumns{tabs}\nrow{tabs}\nend\n");
    };
    let wide = ask_against(listener, Duration::from_secs(1), &|| false, wide);
    let error = in_time("wide", wide).to_string();
    assert!(error.contains("expected a fact, columns or a row") && error.len() < 200, "{error}");
}

fn a_client_that_is_cancelled_does_not_wait_any_longer(listener: &UnixListener) {
    let cancelled = AtomicBool::new(false);
    let (answer, took) = thread::scope(|scope| {
        scope.spawn(|| {
            thread::sleep(Duration::from_millis(50));
            cancelled.store(true, Ordering::Relaxed);
        });
        let silent = |mut stream: UnixStream| _ = stream.read_to_end(&mut Vec::new());
        let is_cancelled = || cancelled.load(Ordering::Relaxed);
        ask_against(listener, Duration::from_secs(60), &is_cancelled, silent)
    });
    assert!(matches!(answer, Err(AskError::Cancelled(_))), "{answer:?}");
    assert!(took < Duration::from_secs(2), "{took:?}");
}

/// Sends a request with `count` copies of a descriptor, and gives the answer.
fn send_with_descriptors(socket: &Path, request: &[u8], count: usize) -> String {
    let mut stream = UnixStream::connect(socket).unwrap();
    let file = fs::File::open("/dev/null").unwrap();
    let mut part = libc::iovec { iov_base: request.as_ptr().cast_mut().cast(), iov_len: request.len() };
    // SAFETY: computes, and touches no memory.
    let space = unsafe { libc::CMSG_SPACE(4 * count as u32) } as usize;
    let mut control = vec![0_u64; space.div_ceil(8)];
    // SAFETY: plain data, of which zeros are valid.
    let mut message: libc::msghdr = unsafe { mem::zeroed() };
    message.msg_iov = &raw mut part;
    message.msg_iovlen = 1;
    message.msg_control = control.as_mut_ptr().cast();
    message.msg_controllen = space;
    // SAFETY: `message` points to control bytes with their length.
    let header = unsafe { libc::CMSG_FIRSTHDR(&raw const message) };
    // SAFETY: `control` is aligned, and long enough for a header.
    let header = unsafe { header.as_mut() }.unwrap();
    header.cmsg_level = libc::SOL_SOCKET;
    header.cmsg_type = libc::SCM_RIGHTS;
    // SAFETY: computes, and touches no memory.
    header.cmsg_len = unsafe { libc::CMSG_LEN(4 * count as u32) } as usize;
    // SAFETY: a header in `control`.
    let data = unsafe { libc::CMSG_DATA(header) }.cast::<i32>();
    for index in 0..count {
        // SAFETY: `control` has room for so many.
        let place = unsafe { data.add(index) };
        // SAFETY: as above.
        unsafe { place.write_unaligned(file.as_raw_fd()) };
    }
    // SAFETY: `message` points to `request` and `control`, with their lengths.
    let sent = unsafe { libc::sendmsg(stream.as_raw_fd(), &raw const message, 0) };
    assert_eq!(sent, request.len() as isize);
    let mut answer = String::new();
    let _ = stream.read_to_string(&mut answer);
    answer
}

fn unexpected_descriptors_are_closed(socket: &Path) {
    let open = || fs::read_dir("/proc/self/fd").unwrap().count();
    let settled = |expected: usize| {
        (0..100).any(|_| {
            thread::sleep(Duration::from_millis(2));
            open() == expected
        })
    };
    let before = open();
    for count in [1, 2, 3, 64, 253] {
        let answer = send_with_descriptors(socket, b"fut-control 1 snapshot\n", count);
        let expected =
            if count == 1 { "expected an empty regular file" } else { "expected one descriptor at most" };
        assert!(answer.contains(expected), "{count}: {answer}");
        let _ = send_with_descriptors(socket, b"fut-control 1 status\n", count);
        // A line that never ends.
        let _ = send_with_descriptors(socket, &[b'x'; 5000], count);
    }
    assert!(settled(before), "{} descriptors, {before} before", open());
}

fn silent_slow_or_many_clients_do_not_delay_others(socket: &Path) {
    // None receives its answer, and two of three never send a request.
    let many: Vec<UnixStream> = (0..400)
        .map(|number| {
            let mut stream = UnixStream::connect(socket).unwrap();
            match number % 3 {
                0 => stream.write_all(b"fut-control 1 list\n").unwrap(),
                1 => stream.write_all(b"fut-con").unwrap(),
                _ => {}
            }
            stream
        })
        .collect();
    let began = Instant::now();
    for _ in 0..3 {
        find().ask(&Request::Status).unwrap();
    }
    assert!(began.elapsed() < Duration::from_millis(1500), "{:?}", began.elapsed());
    drop(many);

    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut drips = UnixStream::connect(socket).unwrap();
            while !stop.load(Ordering::Relaxed) && drips.write_all(b"f").is_ok() {
                thread::sleep(Duration::from_millis(5));
            }
        });
        let began = Instant::now();
        for _ in 0..3 {
            find().ask(&Request::Status).unwrap();
        }
        assert!(began.elapsed() < Duration::from_millis(1500), "{:?}", began.elapsed());
        stop.store(true, Ordering::Relaxed);
    });
}
