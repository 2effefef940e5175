//! A program that forks, dies, execs, makes threads, truncates its arena and scribbles over it, under a recorder that is
//! root: the recorder stays alive, takes no more memory and descriptors than at the beginning, and leaves nothing behind.
//!
//! `SIGMUND_SOAK_SECONDS` says for how long (5 if not given; an hour by hand), `SIGMUND_SOAK` which misdeeds:
//! `SIGMUND_SOAK=truncate,scribble SIGMUND_SOAK_SECONDS=3600 cargo test --test it soak`.

use std::{
    fs::{self, File},
    io::Write,
    ops::Range,
    os::unix::process::CommandExt,
    path::Path,
    process::{Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process};

use crate::{
    kernel,
    sigmund::{Running, Sigmund},
};

/// Says in the environment for how many seconds this test binary is to be the program.
const PROGRAM_SECONDS: &str = "SIGMUND_TEST_SOAK";
/// Which misdeeds, with commas.
const CHOSEN: &str = "SIGMUND_SOAK";
/// In a child that has become the program once more.
const AGAIN: &str = "SIGMUND_TEST_SOAK_AGAIN";

const ALL: [&str; 6] = ["end", "kill", "threads", "exec", "truncate", "scribble"];

fut::events! {
    /// Something is done.
    fn misdeed(number: u64);
}

fn chosen() -> Vec<String> {
    let chosen = std::env::var(CHOSEN).unwrap_or_else(|_| ALL.join(","));
    let chosen: Vec<String> = chosen.split(',').map(String::from).collect();
    assert!(chosen.iter().all(|deed| ALL.contains(&deed.as_str())), "{CHOSEN}: {chosen:?} of {ALL:?}");
    chosen
}

#[test]
fn the_recorder_outlives_whatever_a_program_does_and_leaves_nothing_behind() {
    let Some(_alone) = kernel::as_root() else { return };
    let seconds = std::env::var("SIGMUND_SOAK_SECONDS").map_or(5, |seconds| seconds.parse().unwrap());
    let sigmund = Sigmund::new();
    let mut command = sigmund.command();
    command.args(["record", "--no-merge", "--user-buffer", "256", "-o", "RUN", "--"]);
    command.arg(std::env::current_exe().unwrap());
    command.args(["--exact", "soak::misbehaves", "--ignored", "--nocapture", "--test-threads=1"]);
    command.env(PROGRAM_SECONDS, seconds.to_string()).env(CHOSEN, chosen().join(","));
    // A group of its own, by which whatever is left of it is found.
    command.process_group(0);
    let recorder = Running::of(command);
    let pid = recorder.pid();
    let samples = Sample::take_from(pid, Duration::from_secs(seconds));
    let said = recorder.finish();
    assert_eq!(said.status, 0, "{said:?}");
    assert!(said.stdout.contains("did its misdeeds"), "{said:?}");
    assert_eq!(kernel::held_by(pid), Vec::<String>::new());
    assert_eq!(left_of_group(pid), Vec::<u32>::new());
    stays_flat(&samples);

    let merged = sigmund.run(["merge", "RUN", "-o", "RUN.supertrace"]);
    // 2: what was scribbled over is damaged, and everything else is there.
    assert!(sigmund.path("RUN.supertrace").is_dir(), "{merged:?}");
    assert!(sigmund.number("RUN.supertrace", "SELECT count(*) FROM misdeed") > 0);
}

/// What the recorder has, at one time.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sample {
    resident_kb: u64,
    shared_kb: u64,
    files: u64,
}

impl Sample {
    /// Ten and more in the time that the program is given.
    pub(crate) fn take_from(recorder: u32, time: Duration) -> Vec<Sample> {
        let (start, every) = (Instant::now(), (time / 50).min(Duration::from_secs(1)));
        let mut samples = Vec::new();
        while start.elapsed() < time {
            thread::sleep(every);
            let Some(sample) = Sample::of(recorder) else { break };
            samples.push(sample);
        }
        samples
    }

    fn of(process: u32) -> Option<Sample> {
        let status = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
        let kb = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name))?;
            line.trim().trim_end_matches(" kB").parse::<u64>().ok()
        };
        // An ended process that nobody has waited for has no memory.
        let (resident_kb, shared_kb) = (kb("VmRSS:")?, kb("RssShmem:")?);
        let files = fs::read_dir(format!("/proc/{process}/fd")).ok()?.count() as u64;
        Some(Sample { resident_kb, shared_kb, files })
    }
}

/// The most of the last fifth of the time against the most of the second: before, buffers are made.
pub(crate) fn stays_flat(samples: &[Sample]) {
    let fifth = samples.len() / 5;
    assert!(fifth >= 2, "the recorder was alive for {} samples only", samples.len());
    let most = |range: Range<usize>| {
        samples[range].iter().fold(Sample::default(), |most, sample| Sample {
            resident_kb: most.resident_kb.max(sample.resident_kb),
            shared_kb: most.shared_kb.max(sample.shared_kb),
            files: most.files.max(sample.files),
        })
    };
    let (early, late) = (most(fifth..2 * fifth), most(samples.len() - fifth..samples.len()));
    let told = format!("early {early:?}, late {late:?}");
    // Private memory: names of traces, and what the allocator keeps. Each arena that is not given back is more than that.
    assert!(late.resident_kb - late.shared_kb <= early.resident_kb - early.shared_kb + 16 * 1024, "{told}");
    assert!(late.shared_kb <= early.shared_kb + 32 * 1024, "{told}");
    assert!(late.files <= early.files + 16, "{told}");
}

/// Processes of this group.
fn left_of_group(group: u32) -> Vec<u32> {
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let numbers = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let is_in = |pid: &u32| {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        // The name may have anything in it. Behind it: state, parent, group.
        stat.rsplit(')').next().and_then(|behind| behind.split_whitespace().nth(2))
            == Some(&group.to_string())
    };
    numbers.filter(is_in).collect()
}

/// The program: it makes a child for each misdeed.
#[test]
#[ignore = "a program for another test"]
fn misbehaves() {
    let Some(seconds) = std::env::var(PROGRAM_SECONDS).ok().and_then(|seconds| seconds.parse().ok()) else {
        return;
    };
    let _ = fut::init();
    if std::env::var_os(AGAIN).is_some() {
        (0..100).for_each(misdeed);
        return;
    }
    let (start, deeds) = (Instant::now(), chosen());
    // In an hour, not more files than a folder should have.
    let pause = Duration::from_millis(if seconds > 60 { 250 } else { 20 });
    for number in 0.. {
        if start.elapsed() >= Duration::from_secs(seconds) {
            break;
        }
        let deed = &deeds[number as usize % deeds.len()];
        misdeed(number);
        if deed == "threads" {
            threads();
        }
        let not_its_own = arenas();
        // SAFETY: the child records, does its deed and ends; it takes no lock that another thread of the parent may have
        // had (the harness's main thread waits for this one).
        let child = unsafe { libc::fork() };
        assert!(child >= 0, "fork: {}", std::io::Error::last_os_error());
        if child == 0 {
            (0..100).for_each(misdeed);
            commit(deed, &not_its_own);
            // SAFETY: ends the child, which must not go on in the test harness.
            unsafe { libc::_exit(0) };
        }
        thread::sleep(pause);
        // SAFETY: `waitpid` takes a null pointer for a status that nobody wants.
        while unsafe { libc::waitpid(-1, std::ptr::null_mut(), libc::WNOHANG) } > 0 {}
    }
    // SAFETY: as above; what still runs ends soon.
    while unsafe { libc::waitpid(-1, std::ptr::null_mut(), 0) } > 0 {}
    println!("did its misdeeds");
}

/// Its own arena only: what it has inherited is its parent's, whose memory it would damage.
fn commit(deed: &str, not_its_own: &[Arena]) {
    match deed {
        "kill" => _ = kill_process(Pid::from_raw(std::process::id() as i32).unwrap(), Signal::KILL),
        "threads" => threads(),
        "exec" => {
            let mut command = Command::new(std::env::current_exe().unwrap());
            command.args(std::env::args_os().skip(1)).env(AGAIN, "1").stdout(Stdio::null());
            let _ = command.exec();
        }
        "truncate" => own_arenas(not_its_own).iter().for_each(truncate),
        "scribble" => own_arenas(not_its_own).into_iter().for_each(scribble),
        _ => {}
    }
}

/// LWPs come and go.
fn threads() {
    let threads: Vec<_> = (0..8).map(|_| thread::spawn(|| (0..100).for_each(misdeed))).collect();
    threads.into_iter().for_each(|thread| _ = thread.join());
}

/// Where an arena is in memory, and the number of its file.
type Arena = (Range<usize>, String);

fn own_arenas(not_its_own: &[Arena]) -> Vec<Range<usize>> {
    let own: Vec<_> = arenas().into_iter().filter(|arena| !not_its_own.contains(arena)).collect();
    if own.is_empty() {
        let _ = std::io::stderr().write_all(b"no arena found to misbehave with\n");
    }
    own.into_iter().map(|(range, _)| range).collect()
}

/// Memory that this process shares and may write, of files that are arenas.
fn arenas() -> Vec<Arena> {
    let maps = fs::read_to_string("/proc/self/maps").unwrap();
    let is_arena = |line: &&str| line.contains(" rw-s ") && line.contains("arena");
    // from-to rw-s offset device inode name
    let arena = |line: &str| {
        let mut words = line.split_whitespace();
        let (from, to) = words.next()?.split_once('-')?;
        let range = usize::from_str_radix(from, 16).ok()?..usize::from_str_radix(to, 16).ok()?;
        Some((range, words.nth(3)?.to_string()))
    };
    maps.lines().filter(is_arena).filter_map(arena).collect()
}

/// Only if the kernel lets it: sealed memory keeps its length.
fn truncate(arena: &Range<usize>) {
    let file = format!("/proc/self/map_files/{:x}-{:x}", arena.start, arena.end);
    if let Ok(file) = File::options().read(true).write(true).open(Path::new(&file)) {
        let _ = file.set_len(4096);
        thread::sleep(Duration::from_millis(5));
        let _ = file.set_len(0);
    }
}

/// Numbers that look like lengths and cursors, all over what is likely to be read.
fn scribble(arena: Range<usize>) {
    let mut random = u64::from(std::process::id()) | 1;
    for place in (arena.start..arena.end.min(arena.start + (3 << 20))).step_by(8) {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        let word = if random.is_multiple_of(3) { random } else { random >> (random % 64) };
        // SAFETY: `place` is aligned, and in a mapping of this process that may be written; only this thread is left to be
        // harmed by it, and it records no more.
        unsafe { (place as *mut u64).write_volatile(word) };
    }
}
