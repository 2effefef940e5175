//! A recording always stops: whoever does not answer, does not end, or does not write. And signals are heard meanwhile.

use std::{
    fs,
    io::Write,
    os::unix::{fs::PermissionsExt, net::UnixListener},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    thread::sleep,
    time::{Duration, Instant},
};

use fut::{FlightRecorder, control};
use rustix::process::Signal;
use tempfile::TempDir;

use crate::{
    kernel::{self, Process},
    sigmund::{Running, Sigmund, program},
};

/// Says that this test binary is to be the program, and which one.
const PROGRAM: &str = "SIGMUND_TEST_PROGRAM";

/// The kernel side stops first, so it is off in this time, whatever else is waited for.
const SOON: Duration = Duration::from_secs(5);

#[track_caller]
fn until(what: &str, mut condition: impl FnMut() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < 4 * SOON, "{what}");
        sleep(Duration::from_millis(2));
    }
}

/// Instances of a recorder that trace.
fn tracing(recorder: u32) -> Vec<String> {
    let instances = Path::new("/sys/kernel/tracing/instances");
    let is_on = |name: &String| {
        fs::read_to_string(instances.join(name).join("tracing_on")).is_ok_and(|on| on.trim() == "1")
    };
    kernel::held_by(recorder).into_iter().filter(is_on).collect()
}

/// A process that records its own flight, started without a recorder.
fn flight(command: &mut Command) -> (TempDir, Process) {
    let folder = tempfile::tempdir().unwrap();
    command.env(fut::ENV_ARENA_DIR, folder.path()).env(fut::ENV_MODE, "overwrite");
    (folder, Process::start(command))
}

#[test]
fn a_recording_of_a_stopped_process_ends_when_its_time_is_over() {
    let Some(_alone) = kernel::as_root() else { return };
    let sigmund = Sigmund::new();
    let (_folder, sumtime) = flight(Command::new(program()).args(["sumtime", "16", "2", "400000"]));
    let pid = sumtime.number().to_string();
    until("it can be asked", || sigmund.run(["ctl", &pid, "status"]).status == 0);
    sumtime.stop();
    let start = Instant::now();
    let said = sigmund.run(["record", "--no-merge", "-o", "RUN", "--for", "200ms", "--pid", &pid]);
    assert!(start.elapsed() < SOON, "{:?}: {said:?}", start.elapsed());
    assert!(said.stderr.contains("is stopped"), "{said:?}");
    assert_eq!(kernel::held_by(said.pid), Vec::<String>::new());
    said.found();
    assert!(
        sigmund.path("RUN/kernel.dat").is_file() && !sigmund.path(&format!("RUN/user-{pid}.fut")).exists()
    );
}

/// Listens where a process of fut does, and answers a byte at a time, for ever.
#[test]
#[ignore = "a program for other tests"]
fn drips() {
    if std::env::var_os(PROGRAM).is_none_or(|name| name != "drips") {
        return;
    }
    let _flight = FlightRecorder::start(FlightRecorder::GEOMETRY).unwrap();
    let socket = || match control::state() {
        control::State::Listening(path) => Some(path),
        _ => None,
    };
    until("it listens", || socket().is_some());
    let path = socket().unwrap();
    fs::remove_file(&path).unwrap();
    let listener = UnixListener::bind(&path).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    fs::write(std::env::var_os("SIGMUND_TEST_READY").unwrap(), "").unwrap();
    loop {
        let Ok((mut stream, _)) = listener.accept() else { continue };
        while stream.write_all(b"x").is_ok() {
            sleep(Duration::from_millis(100));
        }
    }
}

#[test]
fn signals_are_heard_and_the_kernel_is_off_while_a_process_drips_its_answer() {
    let Some(_alone) = kernel::as_root() else { return };
    let sigmund = Sigmund::new();
    let ready = sigmund.path("ready");
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "stops::drips", "--ignored", "--nocapture"]).env(PROGRAM, "drips");
    let drips = kernel::Process::start(command.env("SIGMUND_TEST_READY", &ready));
    until("it listens", || ready.exists());
    let pid = drips.number().to_string();
    let recorder = sigmund.start(["record", "--no-merge", "-o", "RUN", "--for", "300ms", "--pid", &pid]);
    // The kernel side does not wait for the answer.
    until("the kernel side is written", || sigmund.path("RUN/kernel.dat").exists());
    assert_eq!(kernel::held_by(recorder.pid()), Vec::<String>::new());
    let manifest = fs::read_to_string(sigmund.path("RUN/run.json")).unwrap();
    assert!(
        manifest.contains("\"unfinished\": true"),
        "it has not waited for the process at all: {manifest}"
    );
    // Nobody waits 10 s for the answer here.
    let start = Instant::now();
    kernel::send(recorder.pid(), Signal::INT);
    let said = recorder.finish();
    assert!(start.elapsed() < SOON, "{:?}: {said:?}", start.elapsed());
    assert!(said.stderr.contains("no longer waits for its answer"), "{said:?}");
    assert_eq!(kernel::held_by(said.pid), Vec::<String>::new());
    assert!(sigmund.path("RUN/kernel.dat").is_file() && sigmund.path("RUN/run.json").is_file());
}

#[test]
fn a_program_that_ignores_signals_is_left_when_its_time_is_over() {
    let Some(_alone) = kernel::as_root() else { return };
    let sigmund = Sigmund::new();
    let ignores = "trap '' INT TERM HUP; while :; do sleep 0.1; done";
    let start = Instant::now();
    // Long enough for the shell to have begun to ignore them.
    let options = ["record", "--no-merge", "-o", "RUN", "--for", "1500ms", "--"];
    // Its output must not be ours: we would wait for its end.
    let quiet = format!("exec >/dev/null 2>&1; {ignores}");
    let recorder = sigmund.start(options.iter().chain(&["sh", "-c", &quiet]));
    let shell = kernel::program_of(recorder.pid(), "sh");
    let said = recorder.finish();
    assert!(start.elapsed() < 2 * SOON, "{:?}: {said:?}", start.elapsed());
    assert!(said.stderr.contains("it continues unrecorded"), "{said:?}");
    assert!(Path::new(&format!("/proc/{}", shell.number())).exists(), "it was killed");
    assert_eq!(kernel::held_by(said.pid), Vec::<String>::new());
    said.found();
}

#[test]
fn the_second_signal_ends_a_program_that_ignores_the_first_and_a_signal_at_the_gate_ends_all() {
    let Some(_alone) = kernel::as_root() else { return };
    let sigmund = Sigmund::new();
    let options = ["record", "--no-merge", "-o", "RUN", "--"];
    let recorder =
        sigmund.start(options.iter().chain(&["sh", "-c", "trap '' INT TERM; while :; do :; done"]));
    let _shell = kernel::program_of(recorder.pid(), "sh");
    sleep(Duration::from_millis(100));
    kernel::send(recorder.pid(), Signal::INT);
    sleep(Duration::from_millis(100));
    let start = Instant::now();
    kernel::send(recorder.pid(), Signal::TERM);
    let said = recorder.finish();
    assert!(start.elapsed() < SOON, "{:?}: {said:?}", start.elapsed());
    assert!(said.stderr.contains("ended with signal 9"), "{said:?}");
    said.found();

    // What is to become the program is stopped before.
    let recorder = sigmund.start(["record", "--no-merge", "-o", "GATE", "--for", "100ms", "--", "true"]);
    let held = kernel::program_of(recorder.pid(), "hold");
    // It has connected to the gate, and waits for the kernel side to begin.
    let fds = format!("/proc/{}/fd", held.number());
    let is_socket =
        |link: PathBuf| fs::read_link(link).is_ok_and(|to| to.to_string_lossy().starts_with("socket:"));
    until("it is at the gate", || {
        fs::read_dir(&fds).is_ok_and(|mut all| all.any(|link| link.is_ok_and(|link| is_socket(link.path()))))
    });
    held.stop();
    let start = Instant::now();
    let said = recorder.finish();
    assert!(start.elapsed() < 2 * SOON, "{:?}: {said:?}", start.elapsed());
    assert_eq!(kernel::held_by(said.pid), Vec::<String>::new());
    if said.status != 0 {
        // It was stopped in time, and `true` has not run.
        said.complained(&["not started when the time was over"]);
        assert!(!sigmund.path("GATE").exists());
    }
}

#[test]
fn the_second_signal_ends_a_merge_at_once() {
    let _alone = kernel::alone();
    let sigmund = Sigmund::new();
    // It waits for the other end of the FIFO, and does not look at the flag. (It may also refuse what is no file.)
    let fifo = sigmund.path("slow.tsv");
    assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    let merge = sigmund.start(["merge", "slow.tsv", "-o", "OUT.supertrace"]);
    sleep(Duration::from_millis(300));
    let start = Instant::now();
    for _ in 0..2 {
        kernel::try_send(merge.pid(), Signal::INT);
        sleep(Duration::from_millis(50));
    }
    let said = merge.finish();
    assert!(start.elapsed() < SOON, "{:?}: {said:?}", start.elapsed());
    assert_eq!(said.status, 2, "{said:?}");
}

/// A file system of its own on a file, which can be frozen: whoever writes to it then waits.
struct Freezer {
    folder: PathBuf,
}

impl Freezer {
    fn mount(place: &Path) -> Option<Freezer> {
        let (image, folder) = (place.join("image"), place.join("disk"));
        fs::create_dir(&folder).unwrap();
        fs::File::create(&image).unwrap().set_len(64 << 20).unwrap();
        let run = |command: &mut Command| {
            command.stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok_and(|status| status.success())
        };
        let made = run(Command::new("mkfs.ext4").arg("-q").arg(&image))
            && run(Command::new("mount").args(["-o", "loop"]).arg(&image).arg(&folder));
        kernel::needs(made, "needs mkfs.ext4 and loop devices").then_some(Freezer { folder })
    }

    fn freeze(&self, how: &str) -> bool {
        Command::new("fsfreeze")
            .arg(how)
            .arg(&self.folder)
            .stderr(Stdio::null())
            .status()
            .is_ok_and(|status| status.success())
    }
}

impl Drop for Freezer {
    fn drop(&mut self) {
        self.freeze("--unfreeze");
        let _ = Command::new("umount").arg("--lazy").arg(&self.folder).status();
    }
}

#[test]
fn a_disk_that_hangs_does_not_keep_the_kernel_tracing() {
    let Some(_alone) = kernel::as_root() else { return };
    let sigmund = Sigmund::new();
    let Some(disk) = Freezer::mount(sigmund.folder()) else { return };
    let sumtime = [program(), "sumtime", "16", "2", "1000"];
    let options = ["record", "--no-merge", "-o", "disk/RUN", "--for", "1s", "--"];
    let recorder: Running = sigmund.start(options.iter().chain(&sumtime));
    let _sumtime = kernel::program_of(recorder.pid(), "sumtime");
    sleep(Duration::from_millis(300));
    assert!(disk.freeze("--freeze"));
    let start = Instant::now();
    until("the kernel side stops", || tracing(recorder.pid()).is_empty());
    assert!(start.elapsed() < SOON, "the kernel traced for {:?}", start.elapsed());
    assert!(disk.freeze("--unfreeze"));
    let said = recorder.finish();
    assert_eq!(kernel::held_by(said.pid), Vec::<String>::new());
    said.found();
}
