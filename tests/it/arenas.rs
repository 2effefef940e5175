//! What recorded programs do with their arenas and their children costs themselves something, and never the recorder.
//!
//! The programs are this test itself, with [`ROLE`] in the environment.

use std::{
    env,
    fs::{self, File, OpenOptions},
    os::unix::fs::FileExt,
    path::Path,
    process::{Command, Stdio},
    thread,
    time::Duration,
};

use fut::{Init, trace::UserTrace};

use crate::{
    kernel,
    sigmund::{Running, Sigmund, program, user_traces},
};

const TRACE: &str = "RUN.supertrace";
const ROLE: &str = "SIGMUND_TEST_ROLE";
/// Events of the child that behaves.
const EVENTS: u64 = 1000;
const CHILDREN: u64 = 200;

fut::events! {
    fn arena_test(number: u64);
}

/// What the recorded programs do.
#[test]
fn plays_its_role() {
    let Ok(role) = env::var(ROLE) else { return };
    assert!(matches!(fut::init(), Init::Recording | Init::Failed(_)));
    match role.as_str() {
        "truncates" => beside_a_child_that_behaves(truncates),
        "scribbles" => beside_a_child_that_behaves(scribbles),
        "forks" => (0..CHILDREN).for_each(|number| wait_for(forked(|| arena_test(number)))),
        "forks at once" => {
            let child = || {
                arena_test(1);
                thread::sleep(Duration::from_millis(1500));
            };
            let children: Vec<_> = (0..30).map(|_| forked(child)).collect();
            children.into_iter().for_each(wait_for);
        }
        other => panic!("{other}"),
    }
}

/// A child that does this and ends.
fn forked(body: impl FnOnce()) -> libc::pid_t {
    // SAFETY: the child does what tests of this file do, and ends without returning into the harness.
    let pid = unsafe { libc::fork() };
    if pid == 0 {
        body();
        // SAFETY: ends the child.
        unsafe { libc::_exit(0) };
    }
    pid
}

fn wait_for(child: libc::pid_t) {
    // SAFETY: a child of ours, whose status is not asked for.
    unsafe { libc::waitpid(child, std::ptr::null_mut(), 0) };
}

/// A child records while this process does what it likes with its arena. The child then ends, and this process is killed.
fn beside_a_child_that_behaves(body: fn(&Arena)) -> ! {
    arena_test(0);
    let child = forked(|| {
        for number in 0..EVENTS {
            arena_test(number);
            thread::sleep(Duration::from_micros(300));
        }
    });
    let arena = Arena::of_this_process();
    body(&arena);
    wait_for(child);
    rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL).unwrap();
    unreachable!("nobody survives that")
}

/// Where this process has its arena mapped.
struct Arena {
    /// As `/proc/self/map_files` writes it.
    range: String,
    start: u64,
    len: u64,
}

impl Arena {
    fn of_this_process() -> Arena {
        let maps = fs::read_to_string("/proc/self/maps").unwrap();
        let line = maps.lines().find(|line| line.contains("memfd:fut-arena") || line.contains(".arena"));
        let range = line.and_then(|line| line.split(' ').next()).expect("an arena").to_string();
        let (start, end) = range.split_once('-').unwrap();
        let [start, end] = [start, end].map(|address| u64::from_str_radix(address, 16).unwrap());
        Arena { range, start, len: end - start }
    }
}

/// Makes the arena shorter, if it can; and whatever is in the folder of arenas.
fn truncates(arena: &Arena) {
    let folder = env::var_os(fut::ENV_ARENA_DIR).unwrap();
    let others = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    for path in others.chain([Path::new("/proc/self/map_files").join(&arena.range)]) {
        if let Ok(file) = OpenOptions::new().read(true).write(true).open(path) {
            let _ = file.set_len(0);
        }
    }
}

/// Writes anything anywhere in its arena, for half a second.
fn scribbles(arena: &Arena) {
    let memory = OpenOptions::new().write(true).open("/proc/self/mem").unwrap();
    let mut state = 88_172_645_463_325_252_u64;
    for turn in 0..200_000_u64 {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        // The head and the states of the rings, the metadata, and the first rings.
        let offset = match turn % 8 {
            0 => 16 + state % 80,
            1 => 4096 + state % 64,
            2 => state % (1 << 20),
            _ => (1 << 20) + state % (8 << 20),
        };
        let value = [state, u64::MAX, 0, state % 65_600, ((state % 8) << 32) | (state % 65_600)]
            [(state >> 32) as usize % 5];
        assert!(offset / 8 * 8 + 8 <= arena.len);
        memory.write_all_at(&value.to_ne_bytes(), arena.start + offset / 8 * 8).unwrap();
    }
}

/// The recorder with this test as its program, in a role.
fn recorded(sigmund: &Sigmund, options: &[&str], role: &str) -> Running {
    let mut command = sigmund.command();
    command.args(["record", "-o", "RUN"]).args(options).arg("--").arg(env::current_exe().unwrap());
    command.args(["--exact", "arenas::plays_its_role"]).env(ROLE, role);
    Running::of(command)
}

fn hostile_program_costs_nobody_else_anything(role: &str) {
    let Some(_alone) = kernel::as_root() else { return };
    let sigmund = Sigmund::new();
    let said = recorded(&sigmund, &[], role).finish();
    assert!(said.status >= 0, "the recorder was killed: {said:?}");
    assert_eq!(kernel::held_by(said.pid), Vec::<String>::new());
    assert_eq!(sigmund.fact(TRACE, "kernel_side"), "tracefs");
    assert_eq!(sigmund.fact(TRACE, "ended"), "signal 9", "{said:?}");
    assert!(sigmund.number(TRACE, "SELECT count(*) FROM events WHERE name = 'sched_switch'") > 100);
    let recorded = user_traces(&sigmund.path("RUN")).iter().map(|trace| events_in(trace)).collect::<Vec<_>>();
    assert_eq!(recorded.iter().max(), Some(&EVENTS), "{recorded:?}");
}

#[test]
fn a_program_that_truncates_its_arena_leaves_the_kernel_side_and_the_other_processes_whole() {
    hostile_program_costs_nobody_else_anything("truncates");
}

#[test]
fn a_program_that_scribbles_over_its_arena_leaves_the_kernel_side_and_the_other_processes_whole() {
    hostile_program_costs_nobody_else_anything("scribbles");
}

/// The test's own events in a user trace; none in one that cannot be read.
fn events_in(trace: &Path) -> u64 {
    let Ok(trace) = UserTrace::open(trace) else { return 0 };
    let declaration = trace.declarations().iter().find(|d| d.event.name == "arena_test");
    let Some(code) = declaration.and_then(|declaration| declaration.event.code) else { return 0 };
    let packets = trace.lwps().iter().flat_map(|lwp| (0..lwp.len()).map(|index| lwp.packet(index)));
    let packets = packets.filter_map(|packet| packet?.ok()?.ok());
    packets.map(|packet| packet.records().filter(|record| record.head.code == code).count() as u64).sum()
}

/// Kilobytes of shared memory that a process has mapped and touched.
fn shared_kb(process: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("RssShmem:")).unwrap_or_default();
    line.split_whitespace().next().and_then(|kb| kb.parse().ok()).unwrap_or(0)
}

#[test]
fn a_recorder_of_a_program_that_forks_holds_the_arenas_of_those_that_live() {
    let _alone = kernel::alone();
    let sigmund = Sigmund::new();
    let mut recorder = recorded(&sigmund, &["--user-only", "--no-merge"], "forks");
    let (mut most_kb, mut most_descriptors) = (0, 0);
    while recorder.child.try_wait().unwrap().is_none() {
        let descriptors = fs::read_dir(format!("/proc/{}/fd", recorder.pid())).map_or(0, Iterator::count);
        most_kb = most_kb.max(shared_kb(recorder.pid()));
        most_descriptors = most_descriptors.max(descriptors);
        thread::sleep(Duration::from_millis(2));
    }
    recorder.finish().found();
    // Each of them has 5 MB and three descriptors while it lives; one lives at a time.
    assert!(most_kb < 250_000, "{most_kb} KB of shared memory at one time");
    assert!(most_descriptors < 120, "{most_descriptors} descriptors at one time");
    assert!(most_kb > 0 && most_descriptors > 5, "it was looked at: {most_kb} KB, {most_descriptors}");
    let traces = user_traces(&sigmund.path("RUN"));
    assert_eq!(traces.len() as u64, CHILDREN + 1);
    let events: u64 = traces.iter().map(|trace| events_in(trace)).sum();
    assert_eq!(events, CHILDREN, "the event of each child");
}

#[test]
fn processes_that_the_recorder_has_no_descriptors_for_are_counted() {
    if !kernel::has_tool("prlimit") {
        return;
    }
    let _alone = kernel::alone();
    let sigmund = Sigmund::new();
    let mut command = Command::new("prlimit");
    command.args(["--nofile=100:100", program(), "record", "--user-only", "-o", "RUN", "--"]);
    command.arg(env::current_exe().unwrap()).args(["--exact", "arenas::plays_its_role"]);
    let said = Running::of({
        command.env(ROLE, "forks at once").current_dir(sigmund.folder()).stdin(Stdio::null());
        command
    });
    let said = said.finish();
    assert!(
        said.stderr
            .contains("19 processes were not recorded, the first because the recorder holds 12 arenas"),
        "{said:?}"
    );
    assert_eq!(
        said.stderr.matches("fut: this program is not recorded").count(),
        1,
        "one child speaks for all: {said:?}"
    );
    let run: serde_json::Value =
        serde_json::from_reader(File::open(sigmund.path("RUN/run.json")).unwrap()).unwrap();
    assert_eq!(run["unrecorded_processes"], 19);
    assert_eq!(user_traces(&sigmund.path("RUN")).len(), 12);
    let lost = "SELECT count FROM losses WHERE kind = 'not-recorded' AND level = 'USER'";
    assert_eq!(sigmund.number(TRACE, lost), 19);
}
