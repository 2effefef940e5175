//! Arenas that a recorder hands out: whatever a process does with its own, the recorder and other processes continue.
//!
//! Most of it happens in processes of their own: this test starts itself, with [`ROLE`] in the environment.

#[path = "common/skipped.rs"]
mod skipped;

use std::{
    env,
    fs::{self, File},
    io::IoSliceMut,
    mem::MaybeUninit,
    os::{
        fd::{AsRawFd, OwnedFd},
        unix::process::CommandExt,
    },
    path::Path,
    process::{Child, Command, Output, Stdio},
    sync::{
        Barrier,
        atomic::{AtomicU64, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use fut::{
    Init, Runtime,
    drain::{ArenaServer, Drain, ProcessArena, snapshot},
    shm::{Geometry, Mode},
    trace::UserTrace,
};
use rustix::{
    fs::{FallocateFlags, SealFlags, fallocate, fcntl_add_seals, ftruncate},
    io::Errno,
    net::{
        AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SocketAddrUnix, SocketFlags,
        SocketType, connect, recvmsg, socket_with,
    },
};

fut::events! {
    fn happened(number: u64);
}

const ROLE: &str = "FUT_TEST_ROLE";
const SMALL: Geometry = Geometry { packets: 4, rings: 8 };

/// This test program, started again as a process with a role.
fn role(name: &str, folder: &Path) -> Command {
    let mut command = Command::new(env::current_exe().unwrap());
    command.args(["--exact", "plays_its_role", "--nocapture"]).env(ROLE, name);
    command.env(fut::ENV_ARENA_DIR, folder).env(fut::control::ENV_CONTROL, "0");
    command
}

/// The main function of the processes that the other tests start.
#[test]
fn plays_its_role() {
    let Ok(role) = env::var(ROLE) else { return };
    match role.as_str() {
        "starts at once" => starts_at_once(),
        "runs" => runs(),
        "forks" => forks(200),
        "becomes another" => {
            assert!(matches!(fut::init(), Init::Recording));
            happened(1);
            let error = Command::new("sleep").arg("100").exec();
            panic!("{error}");
        }
        "closes everything" => closes_everything(),
        "scribbles" => scribbles(),
        other => panic!("{other}"),
    }
}

fn start(server: &mut Command) -> Killed {
    Killed(server.stdout(Stdio::null()).spawn().unwrap())
}

/// Kills its process when it is dropped.
struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn server(folder: &Path, mode: Mode) -> ArenaServer {
    ArenaServer::start(folder, SMALL, mode, None).unwrap()
}

/// The next arena that is handed out.
fn next(server: &ArenaServer) -> ProcessArena {
    let mut arena = None;
    until("an arena is handed out", || {
        arena = server.take().next();
        arena.is_some()
    });
    arena.unwrap()
}

fn until(what: &str, mut condition: impl FnMut() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < Duration::from_secs(20), "not within 20 s: {what}");
        thread::sleep(Duration::from_millis(1));
    }
}

fn descriptors() -> usize {
    fs::read_dir("/proc/self/fd").unwrap().count()
}

/// Requests an arena, as a process does.
fn ask(folder: &Path) -> (String, Option<OwnedFd>) {
    let socket = socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None).unwrap();
    connect(&socket, &SocketAddrUnix::new(folder.join("arenas")).unwrap()).unwrap();
    let mut bytes = [0; 512];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut parts = [IoSliceMut::new(&mut bytes)];
    let len = recvmsg(&socket, &mut parts, &mut control, RecvFlags::CMSG_CLOEXEC).unwrap().bytes;
    let memory = control.drain().find_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut descriptors) => descriptors.next(),
        _ => None,
    });
    (String::from_utf8_lossy(&bytes[..len]).into_owned(), memory)
}

// Starting.

fn starts_at_once() {
    let barrier = Barrier::new(8);
    let started = thread::scope(|scope| {
        let start = || {
            barrier.wait();
            fut::init()
        };
        let threads: Vec<_> = (0..8).map(|_| scope.spawn(start)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect::<Vec<_>>()
    });
    let count = |kind: fn(&&Init) -> bool| started.iter().filter(kind).count();
    assert_eq!(count(|i| matches!(i, Init::Recording)), 1, "{started:?}");
    assert_eq!(count(|i| matches!(i, Init::AlreadyRecording)), 7, "{started:?}");
    happened(1);
}

#[test]
fn threads_that_start_at_once_have_one_session_with_one_arena() {
    for _ in 0..10 {
        let folder = tempfile::tempdir().unwrap();
        let output = role("starts at once", folder.path()).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        let names: Vec<_> = fs::read_dir(folder.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
        assert!(matches!(names.as_slice(), [one] if one.to_string_lossy().ends_with(".arena")), "{names:?}");
    }
}

// Without an arena.

/// A runtime, and children that would record, too.
fn runs() {
    let runtime = Runtime::builder().lwps(2).build().expect("a runtime, recorded or not");
    assert_eq!(runtime.run(|| fut::spawn(|| 42).join().unwrap()), 42);
    for _ in 0..3 {
        // SAFETY: the child records an event and ends at once.
        let pid = unsafe { libc::fork() };
        if pid == 0 {
            happened(1);
            // SAFETY: ends the child without its parent's handlers.
            unsafe { libc::_exit(0) };
        }
        // SAFETY: a child of ours; its status is not asked for.
        unsafe { libc::waitpid(pid, std::ptr::null_mut(), 0) };
    }
    println!("it ran");
}

/// It ran, and one line of standard error contains the reason why it was not recorded.
fn ran_unrecorded(output: &Output, why: &str) {
    let said = String::from_utf8_lossy(&output.stderr);
    let ran = String::from_utf8_lossy(&output.stdout).contains("it ran");
    assert!(output.status.success() && ran, "{output:?}");
    let lines: Vec<_> = said.lines().filter(|line| line.starts_with("fut: ")).collect();
    assert!(
        matches!(lines.as_slice(), [line] if line.contains("not recorded") && line.contains(why)),
        "{said}"
    );
}

#[test]
fn a_program_that_cannot_reach_its_arena_runs_unrecorded_and_says_so_once() {
    let folder = tempfile::tempdir().unwrap();
    ran_unrecorded(&role("runs", Path::new("/nonexistent/arenas")).output().unwrap(), "No such file");
    ran_unrecorded(&role("runs", Path::new("/proc/version")).output().unwrap(), "Not a directory");
    // A killed recorder: its socket exists, without a listener.
    let socket = socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None).unwrap();
    rustix::net::bind(&socket, &SocketAddrUnix::new(folder.path().join("arenas")).unwrap()).unwrap();
    drop(socket);
    ran_unrecorded(&role("runs", folder.path()).output().unwrap(), "no recorder listens here now");
}

#[test]
fn a_program_without_the_right_to_its_arena_runs_unrecorded_and_says_so_once() {
    if !rustix::process::geteuid().is_root() {
        return skipped::skipped("needs root, to be another user");
    }
    let folder = tempfile::tempdir().unwrap();
    let server = server(folder.path(), Mode::Discard);
    // A folder from which every user may run this test.
    let program = tempfile::tempdir().unwrap();
    fs::set_permissions(program.path(), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let copy = program.path().join("arenas");
    fs::copy(env::current_exe().unwrap(), &copy).unwrap();
    let run = || {
        let mut command = Command::new(&copy);
        command.args(["--exact", "plays_its_role", "--nocapture"]).env(ROLE, "runs");
        command.env(fut::ENV_ARENA_DIR, folder.path()).uid(65534).current_dir("/");
        command.output().unwrap()
    };
    ran_unrecorded(&run(), "Permission denied");
    // It sees the folder, but the socket is not its own.
    fs::set_permissions(folder.path(), std::os::unix::fs::PermissionsExt::from_mode(0o711)).unwrap();
    ran_unrecorded(&run(), "Permission denied");
    assert_eq!(server.take().count(), 0);
    // And a server that is for that user.
    drop(server);
    let server = ArenaServer::start(folder.path(), SMALL, Mode::Discard, Some(65534)).unwrap();
    let output = run();
    assert!(
        output.status.success() && !String::from_utf8_lossy(&output.stderr).contains("fut: "),
        "{output:?}"
    );
    // Its children, too.
    assert_eq!(server.take().filter(ProcessArena::has_begun).count(), 4);
}

// What a process can do with its arena.

#[test]
fn no_process_can_shrink_or_grow_an_arena() {
    let folder = tempfile::tempdir().unwrap();
    let server = server(folder.path(), Mode::Discard);
    let (answer, memory) = ask(folder.path());
    assert_eq!(answer, "fut-arena 3");
    let memory = memory.unwrap();
    let len = rustix::fs::fstat(&memory).unwrap().st_size as u64;
    assert_eq!(ftruncate(&memory, 0), Err(Errno::PERM));
    assert_eq!(ftruncate(&memory, 2 * len), Err(Errno::PERM));
    assert_eq!(fcntl_add_seals(&memory, SealFlags::WRITE), Err(Errno::PERM));
    // Holes are allowed, and read as zeros.
    let hole = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
    fallocate(&memory, hole, 0, len).unwrap();
    let arena = next(&server);
    assert!(!arena.has_begun() && !arena.has_ended());
    let mut drain = Drain::new(arena, &folder.path().join("holes.fut")).unwrap();
    assert_eq!(drain.poll().unwrap(), 0);
    drop(memory);
    // Another test may be starting a process, which has a copy of each descriptor until `exec`.
    until("nobody has it any more", || drain.arena().has_ended());
    assert_eq!(drain.finish().unwrap().records, 0);
}

/// Writes anything anywhere in its arena, until it is killed.
fn scribbles() {
    let folder = env::var(fut::ENV_ARENA_DIR).unwrap();
    let (_, memory) = ask(Path::new(&folder));
    let memory = File::from(memory.unwrap());
    let len = memory.metadata().unwrap().len() as usize;
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: a mapping of its own, at an address that the kernel chooses.
    let start =
        unsafe { libc::mmap(std::ptr::null_mut(), len, protection, libc::MAP_SHARED, memory.as_raw_fd(), 0) };
    assert_ne!(start, libc::MAP_FAILED);
    let word_at = |offset: usize| {
        assert!(offset + 8 <= len && offset.is_multiple_of(8));
        // SAFETY: in the mapping.
        let word = unsafe { start.cast::<AtomicU64>().add(offset / 8) };
        // SAFETY: it stays mapped, and is aligned; an atomic, since the recorder reads it.
        unsafe { &*word }
    };
    let mut state = u64::from(std::process::id());
    let mut random = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    let ring_len = 65536 * (1 + SMALL.packets as usize);
    let store = |offset: usize, value: u64| word_at(offset).store(value, Ordering::Relaxed);
    loop {
        // Published, now and then, with rings that are used and in all states.
        store(0, u64::from_le_bytes(*b"FUTARENA"));
        store(24, random() % 12);
        store(4096 + 8 * (random() % 4) as usize, random() & 0x3_0000_0003);
        let ring = (1 << 20) + (random() % u64::from(SMALL.rings)) as usize * ring_len;
        let offset = match random() % 8 {
            0 => (random() % 96) as usize / 8 * 8,
            1 => 4096 + 16384 + (random() % (1 << 19)) as usize / 8 * 8,
            2 | 3 => ring + (random() % 192) as usize / 8 * 8,
            4 => ring + 65536 * (1 + (random() % 4) as usize) + (random() % 48) as usize / 8 * 8,
            _ => ring + 65536 + (random() % (4 * 65536)) as usize / 8 * 8,
        };
        let value = match random() % 6 {
            0 => random(),
            1 => u64::MAX,
            2 => 0,
            3 => random() % 65600,
            // A cursor, and a record's head.
            4 => ((random() % 8) << 32) | (random() % 65600),
            _ => random() & 0x0003_ff1f_0fff_ffff,
        };
        store(offset, value);
    }
}

#[test]
fn a_process_that_scribbles_over_its_arena_costs_its_own_events_only() {
    for mode in [Mode::Discard, Mode::Overwrite] {
        let folder = tempfile::tempdir().unwrap();
        let server = server(folder.path(), mode);
        let process = start(&mut role("scribbles", folder.path()));
        let arena = next(&server);
        until("it scribbles", || arena.has_begun());
        let path = folder.path().join("scribbled.fut");
        let mut drain = Drain::new(arena, &path).unwrap();
        let (start, mut polls) = (Instant::now(), 0);
        while start.elapsed() < Duration::from_millis(700) {
            // 8 rings of 4 packets: whatever they say, a poll takes no more.
            assert!(drain.poll().unwrap() <= 32);
            if mode == Mode::Overwrite {
                let taken = folder.path().join(format!("snapshot-{polls}.fut"));
                snapshot(std::borrow::Borrow::borrow(drain.arena()), &taken).unwrap();
                let _ = UserTrace::open(&taken);
                fs::remove_file(&taken).unwrap();
            }
            polls += 1;
        }
        assert!(polls > 1, "{polls} polls in 700 ms");
        drop(process);
        until("it has ended", || drain.arena().has_ended());
        drain.close().1.unwrap();
        // Whatever it contains, opening it must not panic.
        let _ = UserTrace::open(&path);
    }
}

// Who has ended.

fn forks(children: u64) {
    assert!(matches!(fut::init(), Init::Recording));
    for number in 0..children {
        // SAFETY: the child records an event and ends at once.
        let pid = unsafe { libc::fork() };
        if pid == 0 {
            happened(number);
            // SAFETY: ends the child without its parent's handlers.
            unsafe { libc::_exit(0) };
        }
        // SAFETY: a child of ours; its status is not asked for.
        unsafe { libc::waitpid(pid, std::ptr::null_mut(), 0) };
    }
}

#[test]
fn the_arena_of_a_child_is_drained_and_given_back_when_the_child_has_ended() {
    let folder = tempfile::tempdir().unwrap();
    let server = server(folder.path(), Mode::Discard);
    let mut process = start(&mut role("forks", folder.path()));
    let (mut live, mut most, mut records, mut ended) = (Vec::new(), 0, 0, 0);
    let mut finish = |arena: ProcessArena| {
        let path = folder.path().join(format!("{ended}.fut"));
        records += Drain::new(arena, &path).unwrap().finish().unwrap().records;
        fs::remove_file(path).unwrap();
        ended += 1;
    };
    let before = descriptors();
    let mut exited = false;
    until("all have ended", || {
        exited = exited || process.0.try_wait().unwrap().is_some();
        live.extend(server.take());
        let over: Vec<_> = live.extract_if(.., |arena| arena.has_ended()).collect();
        over.into_iter().for_each(&mut finish);
        most = most.max(live.len());
        exited && live.is_empty()
    });
    // The parent, one child after the other, and those that ended since this was looked at last.
    assert!(most < 60, "{most} arenas at one time");
    assert_eq!(ended, 201);
    // Each child's event, and that it attached.
    assert!(records >= 400, "{records} records");
    // Other tests of this process have some for a while.
    until("the descriptors are given back", || descriptors() <= before + 1);
    assert_eq!(server.unrecorded().processes, 0);
}

#[test]
fn the_arena_of_a_program_that_became_another_is_given_back_while_the_process_lives() {
    let folder = tempfile::tempdir().unwrap();
    let server = server(folder.path(), Mode::Discard);
    let mut process = start(&mut role("becomes another", folder.path()));
    let arena = next(&server);
    until("the first program is gone", || arena.has_ended());
    assert!(arena.has_begun());
    assert_eq!(process.0.try_wait().unwrap(), None, "the process lives");
    let summary = Drain::new(arena, &folder.path().join("user.fut")).unwrap().finish().unwrap();
    assert!(summary.records >= 2 && summary.lost == 0, "{summary:?}");
}

fn closes_everything() {
    assert!(matches!(fut::init(), Init::Recording));
    // SAFETY: nothing of this process needs a descriptor from here on.
    unsafe { libc::close_range(0, u32::MAX, 0) };
    loop {
        happened(1);
        thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn a_program_that_closes_all_its_descriptors_stays_recorded() {
    let folder = tempfile::tempdir().unwrap();
    let server = server(folder.path(), Mode::Discard);
    let process = start(&mut role("closes everything", folder.path()));
    let arena = next(&server);
    until("it has begun", || arena.has_begun());
    thread::sleep(Duration::from_millis(50));
    assert!(!arena.has_ended());
    drop(process);
    until("it has ended", || arena.has_ended());
    let summary = Drain::new(arena, &folder.path().join("user.fut")).unwrap().finish().unwrap();
    assert!(summary.records >= 10, "{summary:?}");
}

// What strangers do with the socket.

#[test]
fn a_silent_client_delays_no_other_and_has_a_bounded_number_of_arenas() {
    let folder = tempfile::tempdir().unwrap();
    let server = server(folder.path(), Mode::Discard);
    let kept: Vec<_> = (0..100).map(|_| ask(folder.path())).collect();
    assert_eq!(kept.iter().filter(|(_, memory)| memory.is_some()).count(), 64);
    let refused: Vec<_> = kept.iter().filter(|(answer, _)| answer != "fut-arena 3").collect();
    assert!(refused.iter().all(|(answer, _)| answer.contains("already has 64 arenas")), "{refused:?}");
    let unrecorded = server.unrecorded();
    assert_eq!(unrecorded.processes, 36);
    assert!(unrecorded.why.unwrap().contains("already has 64 arenas"));
    let process = start(&mut role("closes everything", folder.path()));
    let mut arenas = Vec::new();
    until("another process records", || {
        arenas.extend(server.take());
        arenas.iter().any(ProcessArena::has_begun)
    });
    drop((process, kept));
    until("all are gone", || arenas.iter().all(ProcessArena::has_ended));
}
