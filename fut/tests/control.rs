//! A recording is controlled over its socket: by a client of this crate, and by misbehaving clients.

use std::{
    fs,
    io::{Read, Write},
    net::Shutdown,
    os::unix::{
        fs::{MetadataExt, PermissionsExt},
        net::UnixStream,
    },
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use fut::{
    Recording, Runtime,
    control::{self, AskError, Cell, Process, Reply, Request, State},
    keys,
    model::{EventType, Field, FieldType, Level},
    shm::Geometry,
    sync::Mutex,
    trace::{Declaration, UserTrace},
};

mod common;
#[path = "common/skipped.rs"]
mod skipped;

fut::events! {
    fn kept(number: u64);
    fn dropped(number: u64, why: &str) in keys::SYNC;
}

fn ask(request: &Request) -> Result<Reply, AskError> {
    Process::find(std::process::id())?.ask(request)
}

fn number(reply: &Reply, fact: &str) -> u64 {
    reply.number(fact).unwrap_or_else(|| panic!("{fact}: {reply:?}"))
}

/// The cells of the rows whose `key` column is `value`, by the names of their columns.
fn find<'a>(reply: &'a Reply, key: &str, value: &Cell) -> impl Fn(&str) -> &'a Cell + use<'a> {
    let column = |name: &str| reply.columns.iter().position(|column| column == name).expect("a column");
    let row = reply.rows.iter().find(|row| row[column(key)] == *value);
    let row = row.unwrap_or_else(|| panic!("{key} {value:?}: {reply:?}"));
    move |name| &row[column(name)]
}

/// Sends bytes, closes, and gives what comes back.
fn send(socket: &Path, bytes: &[u8]) -> String {
    let mut stream = UnixStream::connect(socket).unwrap();
    // The server may have answered and gone before it has all of them.
    let _ = stream.write_all(bytes);
    let _ = stream.shutdown(Shutdown::Write);
    let mut answer = String::new();
    let _ = stream.read_to_string(&mut answer);
    answer
}

/// Whether a test can go on. If not, it says so; on CI it fails.
fn needs(condition: bool, what: &str) -> bool {
    if !condition {
        skipped::skipped(what);
    }
    condition
}

#[test]
fn a_recording_is_controlled_from_outside() {
    let folder = tempfile::tempdir().unwrap();
    // SAFETY: no other thread of this process reads the environment yet.
    unsafe { std::env::set_var("XDG_RUNTIME_DIR", folder.path()) };
    assert_eq!(control::state(), State::NotStarted);
    assert!(matches!(ask(&Request::List), Err(AskError::NotRecording(_))));

    let path = folder.path().join("user.fut");
    let recording = Recording::start(&path, Geometry::default()).unwrap();
    let State::Listening(socket) = control::state() else { panic!("{:?}", control::state()) };
    only_its_user_may_look(folder.path(), &socket);
    let numbers = what_is_switched_is_recorded_or_not();
    what_is_no_request_changes_nothing(&socket);
    a_silent_client_holds_nobody_up_for_long(&socket);
    another_user_is_refused(&socket);
    the_lwps_and_their_buffers();
    threads_say_what_they_wait_for();
    no_descriptor_stays_open();
    recording.finish().unwrap();

    let refused = ask(&Request::Keys(Some(keys::ALL))).unwrap_err().to_string();
    assert!(refused.contains("this process no longer records"), "{refused}");
    assert_eq!(keys::mask(), 0);
    let trace = UserTrace::open(&path).unwrap();
    let recorded = |name| common::words(&trace, common::code(&trace, name)).into_iter().map(|w| w.0);
    assert!(recorded("kept").eq(numbers.0), "{:?}", recorded("kept").collect::<Vec<_>>());
    assert!(recorded("dropped").eq(numbers.1), "{:?}", recorded("dropped").collect::<Vec<_>>());
}

fn only_its_user_may_look(runtime: &Path, socket: &Path) {
    assert_eq!(socket, runtime.join("fut").join(format!("{}.sock", std::process::id())));
    let mode = |path: &Path| fs::symlink_metadata(path).unwrap().mode() & 0o777;
    assert_eq!((mode(socket.parent().unwrap()), mode(socket)), (0o700, 0o600));
}

/// Gives what must be in the trace, of `kept` and of `dropped`.
fn what_is_switched_is_recorded_or_not() -> (Vec<u64>, Vec<u64>) {
    let both = |number| {
        kept(number);
        dropped(number, "because");
    };
    both(0);
    let reply = ask(&Request::Disable("drop*".into())).unwrap();
    assert_eq!((number(&reply, "matched"), number(&reply, "changed")), (1, 1));
    both(1);
    let reply = ask(&Request::Disable("drop*".into())).unwrap();
    assert_eq!((number(&reply, "matched"), number(&reply, "changed")), (1, 0), "it was off");
    assert_eq!(number(&ask(&Request::Enable("nothing_like_it".into())).unwrap(), "matched"), 0);
    the_list_says_what_is_on();
    ask(&Request::Enable("dropped".into())).unwrap();
    both(2);
    let reply = ask(&Request::Keys(Some(keys::ALL & !keys::SYNC))).unwrap();
    assert_eq!(number(&reply, "key_mask_before"), keys::DEFAULT);
    assert_eq!(find(&reply, "key", &"sync".into())("state"), &"off".into());
    both(3);
    let reply = ask(&Request::Keys(Some(keys::ALL))).unwrap();
    assert_eq!(number(&reply, "key_mask"), keys::ALL);
    both(4);
    (vec![0, 1, 2, 3, 4], vec![0, 2, 4])
}

/// As a program in C declares one.
fn declare(name: &str, key: u64) {
    let fields = vec![Field { name: "number".into(), ty: FieldType::U64 }];
    let (level, format) = (Level::User, String::new());
    let event = EventType { level, code: Some(0x102), name: name.into(), key, fields, format };
    fut::declare(Declaration { event, file: "server.c".into(), line: 7 }).unwrap();
}

fn the_list_says_what_is_on() {
    declare("of_c", 1 << 40);
    let reply = ask(&Request::List).unwrap();
    let of_c = find(&reply, "name", &"of_c".into());
    assert_eq!((of_c("key"), of_c("state")), (&"0x10000000000".into(), &"on".into()));
    assert_eq!((of_c("fields"), of_c("declared_at")), (&"number: u64".into(), &"server.c:7".into()));
    let dropped = find(&reply, "name", &"dropped".into());
    assert_eq!((dropped("state"), dropped("key")), (&"off".into(), &"sync".into()));
    assert_eq!(dropped("fields"), &"number: u64, why: text".into());
    let Cell::Text(place) = dropped("declared_at") else { panic!("a place") };
    assert!(place.contains("control.rs:"), "{place}");
    let kept = find(&reply, "name", &"kept".into());
    // Two so far, and the drain has no reason to take a packet that is not full.
    assert_eq!((kept("state"), kept("in_buffers")), (&"on".into(), &Cell::Number(2)));
}

fn what_is_no_request_changes_nothing(socket: &Path) {
    let switches = || {
        let reply = ask(&Request::List).unwrap();
        let states: Vec<_> = reply.rows.iter().map(|row| (row[0].clone(), row[2].clone())).collect();
        (states, keys::mask())
    };
    let before = switches();
    let long = [b"fut-control 1 disable ".to_vec(), vec![b'*'; 5000], b"\n".to_vec()].concat();
    let pattern = [b"fut-control 1 disable ".to_vec(), vec![b'*'; 300], b"\n".to_vec()].concat();
    let requests: [&[u8]; 12] = [
        b"",
        b"\n",
        b"fut-control 1 disable *",
        b"fut-control 2 disable *\n",
        b"disable *\n",
        b"fut-control 1 disable *\nfut-control 1 disable *\n",
        b"fut-control 1 disable [a-z]*\n",
        b"fut-control 1 disable *\xff\n",
        b"fut-control 1 keys 0\n",
        b"fut-control 1 keys 0xg\n",
        &long,
        &pattern,
    ];
    for request in requests {
        let answer = send(socket, request);
        let shown = String::from_utf8_lossy(request);
        assert!(
            answer.starts_with("fut-control 1 error\t") && answer.ends_with("\nend\n"),
            "{shown}: {answer}"
        );
    }
    assert_eq!(switches(), before);
    assert!(matches!(ask(&Request::Disable("a\nb".into())), Err(AskError::Refused { .. })));
}

fn a_silent_client_holds_nobody_up_for_long(socket: &Path) {
    let mut silent = UnixStream::connect(socket).unwrap();
    silent.write_all(b"fut-control 1 li").unwrap();
    ask(&Request::Status).unwrap();
    let mut answer = String::new();
    silent.read_to_string(&mut answer).unwrap();
    assert!(answer.contains("found 16 bytes without a newline"), "{answer}");
}

/// Only as root: a thread of this test becomes another user.
fn another_user_is_refused(socket: &Path) {
    // SAFETY: takes nothing and cannot fail.
    if !needs(unsafe { libc::geteuid() } == 0, "being another user needs root") {
        return;
    }
    let path: PathBuf = socket.to_path_buf();
    let as_nobody = move || {
        // SAFETY: the system call itself changes the user of this thread only; the thread ends soon.
        let changed = unsafe { libc::syscall(libc::SYS_setresuid, -1, 65534, -1) };
        assert_eq!(changed, 0);
        let error = UnixStream::connect(&path).expect_err("the folder keeps others out");
        assert_eq!(error.kind(), std::io::ErrorKind::PermissionDenied);
        path
    };
    let path = std::thread::spawn(as_nobody).join().unwrap();
    // Even if all users can reach the socket: the kernel reports the peer's user.
    let runtime = path.parent().unwrap().parent().unwrap().to_path_buf();
    let doors = [runtime.as_path(), path.parent().unwrap(), &path];
    doors.iter().for_each(|door| fs::set_permissions(door, fs::Permissions::from_mode(0o777)).unwrap());
    let asked = path.clone();
    let as_nobody = move || {
        // SAFETY: as above.
        unsafe { libc::syscall(libc::SYS_setresuid, -1, 65534, -1) };
        send(&asked, b"fut-control 1 disable *\n")
    };
    let answer = std::thread::spawn(as_nobody).join().unwrap();
    assert_eq!(answer, "fut-control 1 error\tuser 65534 is not allowed: expected user 0 or root\nend\n");
    assert_eq!(number(&ask(&Request::Disable("kept".into())).unwrap(), "changed"), 1, "it was still on");
    ask(&Request::Enable("kept".into())).unwrap();
    let private = [(doors[1], 0o700), (doors[2], 0o600)];
    private.iter().for_each(|(door, mode)| {
        fs::set_permissions(door, fs::Permissions::from_mode(*mode)).unwrap();
    });
}

fn the_lwps_and_their_buffers() {
    let reply = ask(&Request::Status).unwrap();
    assert_eq!(reply.fact("mode"), Some(&"discard".into()));
    assert_eq!(reply.fact("drained_by"), Some(&"a thread of its own".into()));
    assert_eq!(number(&reply, "pid"), u64::from(std::process::id()));
    // SAFETY: takes nothing and cannot fail.
    let tid = unsafe { libc::gettid() } as u64;
    let lwp = find(&reply, "lwp", &Cell::Number(tid));
    assert_eq!(
        (lwp("state"), lwp("lost"), lwp("in_use")),
        (&"live".into(), &Cell::Number(0), &Cell::Number(1))
    );
    // Attached (24 bytes), five times `kept` (24), three times `dropped` (40).
    assert_eq!((lwp("bytes"), lwp("packets")), (&Cell::Number(24 + 5 * 24 + 3 * 40), &Cell::Number(1)));
    assert_eq!(reply.rows.len(), 1, "the threads that ask, answer and drain record nothing: {reply:?}");
}

fn threads_say_what_they_wait_for() {
    let runtime = Runtime::builder().lwps(2).build().unwrap();
    runtime.run(|| {
        let mutex = Arc::new(Mutex::new(()));
        let held = mutex.lock();
        let theirs = Arc::clone(&mutex);
        let waiter = fut::Builder::new().name("waiter").spawn(move || drop(theirs.lock()));
        let reply = loop {
            let reply = ask(&Request::Threads).unwrap();
            if find(&reply, "name", &"waiter".into())("state") == &"blocked".into() {
                break reply;
            }
            std::thread::sleep(Duration::from_millis(1));
        };
        let us = fut::current().expect("a user thread").0;
        let waiter_row = find(&reply, "name", &"waiter".into());
        assert_eq!((waiter_row("waits_for"), waiter_row("held_by")), (&"mutex".into(), &Cell::Number(us)));
        assert!(matches!(waiter_row("on"), Cell::Text(address) if address.starts_with("0x")), "{reply:?}");
        let holder = find(&reply, "thread", &Cell::Number(us));
        assert_eq!((holder("state"), holder("waits_for")), (&"mounted".into(), &Cell::Nothing));
        assert_eq!(holder("name"), waiter_row("held_by_name"));
        assert_eq!(number(&reply, "threads") as usize, reply.rows.len());
        drop(held);
        waiter.join().unwrap();
    });
}

fn no_descriptor_stays_open() {
    let open = || fs::read_dir("/proc/self/fd").unwrap().count();
    let file = fs::File::open("/dev/null").unwrap();
    let snapshot = || Process::find(std::process::id()).unwrap().snapshot(&file);
    let refused = snapshot().unwrap_err().to_string();
    assert!(refused.contains("expected an empty regular file"), "{refused}");
    // The server closes the connection after its answer.
    std::thread::sleep(Duration::from_millis(20));
    let before = open();
    (0..50).for_each(|_| _ = snapshot());
    std::thread::sleep(Duration::from_millis(20));
    assert_eq!(open(), before);
}
