//! A killed program: everything up to its last committed record is in the trace, and nothing twice.
//!
//! The program is this test again, in a process of its own; it publishes the number of the last event that it has
//! recorded in shared memory, so that there is a second witness. `FUT_LONG=1` kills it 1000 times.

use std::{
    collections::BTreeMap,
    fs::File,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::atomic::{AtomicU64, Ordering},
    time::{Duration, Instant},
};

use fut::{
    Init,
    drain::{Drain, DrainSummary},
    shm::Arena,
    trace::UserTrace,
};

fut::events! {
    /// The how-manieth event of its thread this is.
    fn counted(thread: u64, number: u64);
}

const THREADS: usize = 2;
/// How the program shall end, and the file of its witness.
const ENV_END: &str = "FUT_TEST_END";
const ENV_WITNESS: &str = "FUT_TEST_WITNESS";

/// Numbers that both processes see: what each thread has recorded.
struct Witness(*mut libc::c_void);

impl Witness {
    fn map(path: &Path) -> Witness {
        use std::os::fd::AsRawFd;
        let file = File::options().read(true).write(true).open(path).unwrap();
        file.set_len(4096).unwrap();
        let (prot, fd) = (libc::PROT_READ | libc::PROT_WRITE, file.as_raw_fd());
        // SAFETY: a fresh mapping of a file that is as long.
        let at = unsafe { libc::mmap(std::ptr::null_mut(), 4096, prot, libc::MAP_SHARED, fd, 0) };
        assert_ne!(at, libc::MAP_FAILED);
        Witness(at)
    }

    fn of(&self, thread: usize) -> &AtomicU64 {
        assert!(thread < THREADS);
        // SAFETY: inside the page that `map` made; a cache line for each thread.
        let at = unsafe { self.0.cast::<AtomicU64>().add(8 * thread) };
        // SAFETY: aligned, never unmapped, and only used as an atomic.
        unsafe { &*at }
    }
}

// SAFETY: the page is only used through atomics.
unsafe impl Sync for Witness {}

/// Not a test by itself: what runs in the other process.
#[test]
fn program() {
    let Some(end) = std::env::var_os(ENV_END) else { return };
    assert!(matches!(fut::init(), Init::Recording));
    let witness = Witness::map(Path::new(&std::env::var_os(ENV_WITNESS).unwrap()));
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let (witness, end) = (&witness, end.to_str().unwrap());
            scope.spawn(move || record_until(end, thread, witness.of(thread)));
        }
    });
}

fn record_until(end: &str, thread: usize, witness: &AtomicU64) {
    for number in 1_u64.. {
        counted(thread as u64, number);
        witness.store(number, Ordering::Release);
        // About as fast as a program that does something, too.
        (0..100).for_each(|_| std::hint::spin_loop());
        if number == 20_000 && thread == 0 {
            die(end);
        }
    }
}

fn die(how: &str) {
    match how {
        "segv" => {
            // SAFETY: none: this is the crash that is wanted.
            unsafe { std::ptr::null_mut::<u8>().write_volatile(1) }
        }
        "abort" => std::process::abort(),
        // SAFETY: ends the process.
        "_exit" => unsafe { libc::_exit(3) },
        "exec" => {
            use std::os::unix::process::CommandExt;
            let again = Command::new(std::env::current_exe().unwrap())
                .args(["--exact", "program"])
                .env(ENV_END, "_exit")
                .env(ENV_WITNESS, std::env::var_os(ENV_WITNESS).unwrap().into_string().unwrap() + ".2")
                .stdout(Stdio::null())
                .exec();
            panic!("{again}");
        }
        // Until somebody kills it.
        _ => {}
    }
}

/// A program under a recorder.
struct Recorded {
    folder: tempfile::TempDir,
    program: Child,
    drains: Vec<(Drain<Arena>, PathBuf)>,
}

impl Recorded {
    fn start(end: &str, mode: &str) -> Recorded {
        let shm = Path::new("/dev/shm");
        let folder = if shm.is_dir() { tempfile::tempdir_in(shm) } else { tempfile::tempdir() }.unwrap();
        for name in ["witness", "witness.2"] {
            File::create_new(folder.path().join(name)).unwrap().set_len(4096).unwrap();
        }
        let program = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "program"])
            .env(ENV_END, end)
            .env(ENV_WITNESS, folder.path().join("witness"))
            .env(fut::ENV_ARENA_DIR, folder.path())
            .env(fut::ENV_MODE, mode)
            .env(fut::ENV_PACKETS, "16")
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        Recorded { folder, program, drains: Vec::new() }
    }

    /// Opens arenas that are new, as a recorder does, and takes what is finished.
    fn poll(&mut self) {
        for entry in std::fs::read_dir(self.folder.path()).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_some_and(|e| e == "arena") {
                let trace = self.folder.path().join(format!("{}.fut", self.drains.len()));
                let arena = Arena::open(&path).unwrap();
                std::fs::remove_file(path).unwrap();
                self.drains.push((Drain::new(arena, &trace).unwrap(), trace));
            }
        }
        let taken: usize = self.drains.iter_mut().map(|(drain, _)| drain.poll().unwrap()).sum();
        if taken == 0 {
            std::thread::sleep(Duration::from_micros(200));
        }
    }

    fn poll_until(&mut self, done: impl Fn(&mut Recorded) -> bool) {
        let start = Instant::now();
        while !done(self) {
            self.poll();
            assert!(start.elapsed() < Duration::from_secs(60), "the program hangs");
        }
        self.poll();
    }

    fn finish(self) -> (tempfile::TempDir, Vec<(DrainSummary, UserTrace)>) {
        let finish = |(drain, path): (Drain<Arena>, PathBuf)| {
            let summary = drain.finish().unwrap();
            (summary, UserTrace::open(&path).unwrap())
        };
        (self.folder, self.drains.into_iter().map(finish).collect())
    }
}

/// The numbers that each thread recorded, in the order of the trace.
fn recorded(trace: &UserTrace) -> BTreeMap<u64, Vec<u64>> {
    assert_eq!(trace.losses(), []);
    let code = trace.declarations().iter().find(|d| d.event.name == "counted").unwrap().event.code.unwrap();
    let mut numbers = BTreeMap::<u64, Vec<u64>>::new();
    for lwp in trace.lwps() {
        for packet in (0..lwp.len()).map(|index| lwp.packet(index).unwrap().unwrap().unwrap()) {
            for record in packet.records().filter(|r| r.head.code == code) {
                numbers.entry(record.word(0).unwrap()).or_default().push(record.word(1).unwrap());
            }
        }
    }
    numbers
}

/// All events counted by the witness are in the trace or counted as lost, and at most one more for each thread.
fn nothing_is_missing(witness: &Witness, summary: &DrainSummary, trace: &UserTrace, what: &str) {
    let numbers = recorded(trace);
    let published: Vec<u64> = (0..THREADS).map(|thread| witness.of(thread).load(Ordering::Acquire)).collect();
    for (thread, numbers) in &numbers {
        assert!(numbers.windows(2).all(|pair| pair[0] < pair[1]), "{what}: thread {thread}: order");
        assert!(numbers.last() <= Some(&(published[*thread as usize] + 1)), "{what}: thread {thread}");
    }
    let stored: u64 = numbers.values().map(|numbers| numbers.len() as u64).sum();
    let (least, most) = (published.iter().sum::<u64>(), published.iter().sum::<u64>() + THREADS as u64);
    assert!(
        (least..=most).contains(&(stored + summary.lost)),
        "{what}: {stored}, {summary:?}, {published:?}"
    );
    assert!(summary.unfinished <= THREADS as u64, "{what}: {summary:?}");
}

#[test]
fn a_hundred_kills_lose_nothing_that_was_committed() {
    let kills = if std::env::var_os("FUT_LONG").is_some() { 1000 } else { 100 };
    let mut random = 0x9e37_79b9_7f4a_7c15_u64;
    let (mut recorded_in_all, mut lost) = (0, 0);
    for kill in 0..kills {
        let mut program = Recorded::start("never", "discard");
        program.poll_until(|program| !program.drains.is_empty());
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let until = Instant::now() + Duration::from_micros((random >> 33) % 40_000);
        program.poll_until(|_| Instant::now() >= until);
        program.program.kill().unwrap();
        program.program.wait().unwrap();
        let (folder, traces) = program.finish();
        let witness = Witness::map(&folder.path().join("witness"));
        let [(summary, trace)] = traces.as_slice() else { panic!("{} traces", traces.len()) };
        nothing_is_missing(&witness, summary, trace, &format!("kill {kill}"));
        recorded_in_all += summary.records;
        lost += summary.lost;
    }
    println!("{kills} kills, {recorded_in_all} records, {lost} counted as lost");
    assert!(recorded_in_all > 10 * kills, "{recorded_in_all} records in {kills} programs");
}

#[test]
fn a_program_that_ends_itself_leaves_its_events_to_the_last() {
    for (end, expected) in [("segv", 20_000), ("abort", 20_000), ("_exit", 20_000)] {
        let mut program = Recorded::start(end, "discard");
        program.poll_until(|program| program.program.try_wait().unwrap().is_some());
        let (folder, traces) = program.finish();
        let witness = Witness::map(&folder.path().join("witness"));
        let [(summary, trace)] = traces.as_slice() else { panic!("{end}: {} traces", traces.len()) };
        nothing_is_missing(&witness, summary, trace, end);
        if summary.lost == 0 {
            assert_eq!(recorded(trace)[&0].last(), Some(&expected), "{end}");
        }
    }
}

// The rings of the first program stay as it left them; they are taken when the process ends.
#[test]
fn a_program_that_becomes_another_keeps_the_events_of_both() {
    let mut program = Recorded::start("exec", "discard");
    program.poll_until(|program| program.program.try_wait().unwrap().is_some());
    let (folder, traces) = program.finish();
    assert_eq!(traces.len(), 2);
    for ((summary, trace), name) in traces.iter().zip(["witness", "witness.2"]) {
        nothing_is_missing(&Witness::map(&folder.path().join(name)), summary, trace, name);
        assert!(summary.records > 20_000 || summary.lost > 0, "{name}: {summary:?}");
    }
}

#[test]
fn a_flight_recorder_that_is_killed_keeps_the_last_packets() {
    let mut program = Recorded::start("never", "overwrite");
    let witness = Witness::map(&program.folder.path().join("witness"));
    // 16 packets hold 32 000 events.
    let filled = |_: &mut Recorded| (0..THREADS).all(|t| witness.of(t).load(Ordering::Acquire) > 100_000);
    program.poll_until(filled);
    program.program.kill().unwrap();
    program.program.wait().unwrap();
    let (_folder, traces) = program.finish();
    let [(summary, trace)] = traces.as_slice() else { panic!("{} traces", traces.len()) };
    assert!(summary.lost == 0 && summary.unfinished <= 2 && summary.overwritten_packets > 0, "{summary:?}");
    let numbers = recorded(trace);
    for thread in 0..THREADS {
        let (numbers, published) = (&numbers[&(thread as u64)], witness.of(thread).load(Ordering::Acquire));
        let (first, last) = (numbers[0], *numbers.last().unwrap());
        assert!(numbers.iter().copied().eq(first..=last), "thread {thread}: a gap");
        assert!((published..=published + 1).contains(&last), "thread {thread}: {last} of {published}");
        // 15 packets of 65472 bytes at least, with 32 bytes a record.
        assert!(numbers.len() > 14 * 2046, "thread {thread}: {}", numbers.len());
    }
}
