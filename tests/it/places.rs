//! Outputs where a hostile user has prepared something, and inputs that are not what they seem.

use std::{
    fs::{self, Permissions},
    os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink},
    path::Path,
    process::Command,
    time::{Duration, Instant},
};

use crate::{
    kernel,
    sigmund::{Reported, Sigmund, figure, program, said},
};

const NOBODY: u32 = 65534;

/// The command's end, which must come: `timeout` kills one that waits for a FIFO.
fn soon(sigmund: &Sigmund, args: &[&str]) -> Reported {
    let mut command = Command::new("timeout");
    command.args(["-s", "KILL", "20", program()]).args(args).current_dir(sigmund.folder());
    let said = said(command);
    assert_ne!(said.status, -1, "it waited: {said:?}");
    said
}

fn fifo(path: &Path) {
    assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
}

/// A folder of another user.
fn folder_of_nobody(sigmund: &Sigmund, name: &str) {
    fs::create_dir(sigmund.path(name)).unwrap();
    chown(sigmund.path(name), Some(NOBODY), Some(NOBODY)).unwrap();
}

fn modes_in(folder: &Path, found: &mut Vec<(String, u32)>) {
    let mode = |path: &Path| fs::symlink_metadata(path).unwrap().mode() & 0o777;
    found.push((folder.display().to_string(), mode(folder)));
    for entry in fs::read_dir(folder).unwrap().flatten() {
        match entry.file_type().unwrap().is_dir() {
            true => modes_in(&entry.path(), found),
            false => found.push((entry.path().display().to_string(), mode(&entry.path()))),
        }
    }
}

#[test]
fn what_is_recorded_merged_and_exported_is_for_its_owner_alone() {
    let _alone = kernel::alone();
    let sigmund = Sigmund::new();
    sigmund.run(["record", "-o", "RUN", "--", program(), "sumtime", "3", "2", "10"]).found();
    sigmund.run(["export", "RUN.supertrace", "--format", "otf2", "-o", "archive"]).found();
    sigmund.run(["export", "RUN.supertrace", "--format", "ctf", "-o", "ctf"]).found();
    sigmund.run(["export", "RUN.supertrace", "--format", "chrome", "-o", "picture.json"]).found();
    let mut found = Vec::new();
    for name in ["RUN", "RUN.supertrace", "archive", "ctf"] {
        modes_in(&sigmund.path(name), &mut found);
    }
    assert!(found.len() > 25, "{found:?}");
    for (path, mode) in &found {
        let expected = if Path::new(path).is_dir() { 0o700 } else { 0o600 };
        assert_eq!(*mode, expected, "{path}: {mode:o}");
    }
    assert_eq!(fs::metadata(sigmund.path("picture.json")).unwrap().mode() & 0o777, 0o600);
}

#[test]
fn a_recording_into_a_folder_of_somebody_else_or_that_others_may_write_is_refused() {
    let _alone = kernel::alone();
    let sigmund = Sigmund::new();
    let record = |name: &str| sigmund.run(["record", "--force", "-o", name, "--", "true"]);
    fs::create_dir(sigmund.path("open")).unwrap();
    fs::set_permissions(sigmund.path("open"), Permissions::from_mode(0o777)).unwrap();
    record("open").complained(&["open", "others may write", "mode 0777"]);
    fs::create_dir(sigmund.path("mine")).unwrap();
    symlink(sigmund.path("mine"), sigmund.path("link")).unwrap();
    record("link").complained(&["link", "expected a folder, found a symbolic link"]);
    if kernel::needs(kernel::is_root(), "folders of another user need root") {
        folder_of_nobody(&sigmund, "theirs");
        record("theirs").complained(&["theirs", "belongs to user 65534"]);
        // Full of what a recorder leaves, and links among it.
        symlink("/etc/passwd", sigmund.path("theirs/kernel.dat")).unwrap();
        record("theirs").complained(&["theirs", "belongs to user 65534"]);
        assert!(sigmund.path("theirs/kernel.dat").symlink_metadata().is_ok());
    }
}

// The attack that overwrote any file of root's: links with the names that a recorder gives, in an empty folder of the
// attacker's, planted while the program runs.
#[test]
fn names_planted_while_it_records_overwrite_nothing() {
    if !kernel::needs(kernel::is_root(), "folders of another user need root") {
        return;
    }
    let _alone = kernel::alone();
    let sigmund = Sigmund::new();
    sigmund.write("victim", b"precious");
    let plant = "import os\nfor name in ('kernel.dat.unfinished', 'kernel.dat', 'user-1.fut', 'run.snapshots'):\n \
        os.path.lexists('RUN/' + name) or os.symlink('../victim', 'RUN/' + name)";
    fs::write(sigmund.path("plant.py"), plant).unwrap();
    // By the recorded program itself, which runs as root here: so nothing but the recorder's care is in the way.
    let said = sigmund.run(["record", "-o", "RUN", "--", "python3", "plant.py"]);
    assert_eq!(fs::read(sigmund.path("victim")).unwrap(), b"precious", "{said:?}");
}

#[test]
fn a_super_trace_or_an_export_of_somebody_else_is_not_replaced() {
    if !kernel::needs(kernel::is_root(), "folders of another user need root") {
        return;
    }
    let sigmund = Sigmund::with_listing("out", &figure(2));
    folder_of_nobody(&sigmund, "theirs.supertrace");
    fs::create_dir(sigmund.path("theirs.supertrace/info")).unwrap();
    let merged = sigmund.run(["merge", "out.tsv", "-o", "theirs.supertrace", "--force"]);
    merged.complained(&["theirs.supertrace", "belongs to user 65534"]);
    assert!(sigmund.path("theirs.supertrace/info").is_dir());
    sigmund.write("theirs", b"years");
    chown(sigmund.path("theirs"), Some(NOBODY), Some(NOBODY)).unwrap();
    let export = |name: &str| {
        let said = sigmund.run(["export", "out.supertrace", "--format", "otf2", "-o", name, "--force"]);
        said.complained(&[name])
    };
    export("theirs");
    assert_eq!(fs::read(sigmund.path("theirs")).unwrap(), b"years");
}

#[test]
fn an_export_does_not_replace_a_folder_that_is_none_of_its_own_nor_a_device() {
    let sigmund = Sigmund::with_listing("out", &figure(2));
    fs::create_dir(sigmund.path("work")).unwrap();
    sigmund.write("work/thesis", b"years");
    fifo(&sigmund.path("fifo"));
    for (format, name, found) in [
        ("otf2", "work", "found another folder"),
        ("paje", "work", "found another folder"),
        ("paje", "fifo", "found a FIFO"),
    ] {
        let said = soon(&sigmund, &["export", "out.supertrace", "--format", format, "-o", name, "--force"]);
        said.complained(&[name, found]);
    }
    assert_eq!(fs::read(sigmund.path("work/thesis")).unwrap(), b"years");
    sigmund.run(["export", "out.supertrace", "--format", "ctf", "-o", "ctf"]).found();
    sigmund.run(["export", "out.supertrace", "--format", "otf2", "-o", "ctf", "--force"]).found();
    assert!(sigmund.path("ctf/traces.otf2").is_file() && !sigmund.path("ctf/metadata").exists());
}

/// A run with this kernel side.
fn write_run(sigmund: &Sigmund, file: &str) {
    let _ = fs::create_dir(sigmund.path("RUN"));
    let manifest = format!(
        r#"{{"command":[],"ended":"","host":"","kernel":"","cpus":1,"recorder":"","snapshots":[],"user_side":[],
        "kernel_side":{{"file":"{file}","means":"tracefs","why":null,"lost":[]}}}}"#
    );
    sigmund.write("RUN/run.json", manifest.as_bytes());
}

#[test]
fn run_json_names_regular_files_of_its_folder_and_nothing_else() {
    let sigmund = Sigmund::new();
    let both = |words: &[&str]| {
        soon(&sigmund, &["merge", "RUN", "-o", "out.supertrace"]).complained(words);
        soon(&sigmund, &["info", "RUN"]).complained(words);
    };
    for file in ["/etc/shadow", "../secret", "..", "a/b", ""] {
        write_run(&sigmund, file);
        both(&["expected the name of a file in this folder", file]);
    }
    fifo(&sigmund.path("RUN/pipe"));
    symlink("/etc/shadow", sigmund.path("RUN/link")).unwrap();
    fs::create_dir(sigmund.path("RUN/folder")).unwrap();
    for (file, found) in [("pipe", "a FIFO"), ("link", "a symbolic link"), ("folder", "a folder")] {
        write_run(&sigmund, file);
        both(&[file, "expected a regular file", found]);
    }
    // The manifest itself.
    fs::remove_file(sigmund.path("RUN/run.json")).unwrap();
    fifo(&sigmund.path("RUN/run.json"));
    both(&["run.json", "expected a regular file, found a FIFO"]);
}

#[test]
fn inputs_that_are_no_files_are_refused_and_not_waited_for() {
    let sigmund = Sigmund::new();
    fifo(&sigmund.path("fifo"));
    let _socket = std::os::unix::net::UnixListener::bind(sigmund.path("socket")).unwrap();
    for (input, found) in [("fifo", "a FIFO"), ("socket", "a socket"), ("/dev/zero", "a character device")] {
        let merged = soon(&sigmund, &["merge", input, "-o", "out.supertrace"]);
        merged.complained(&[input, "expected a regular file", found]);
        soon(&sigmund, &["info", input]).complained(&[input, "expected a regular file", found]);
    }
    // Folders with FIFOs in them: a CTF trace, a perf.data, a super-trace.
    for (folder, name) in [("ctf", "metadata"), ("perf", "data"), ("bare", "user-1.fut")] {
        fs::create_dir(sigmund.path(folder)).unwrap();
        fifo(&sigmund.path(folder).join(name));
        soon(&sigmund, &["merge", folder, "-o", "out.supertrace"]).complained(&[folder]);
        soon(&sigmund, &["info", folder]).complained(&[folder]);
    }
    let traced = Sigmund::with_listing("out", &figure(2));
    let part = traced.path("out.supertrace/events/part-00000.parquet");
    fs::remove_file(&part).unwrap();
    fifo(&part);
    soon(&traced, &["sql", "out.supertrace", "SELECT 1"]).complained(&["part-00000.parquet", "a FIFO"]);
}

#[test]
fn what_holds_nothing_is_an_error_that_says_what_was_looked_for() {
    let sigmund = Sigmund::new();
    fs::create_dir(sigmund.path("nothing")).unwrap();
    let words = ["nothing", "run.json", "kernel.dat", "user-PID.fut", "metadata"];
    sigmund.run(["merge", "nothing", "-o", "out.supertrace"]).complained(&words);
    sigmund.run(["info", "nothing"]).complained(&words);
    write_run(&sigmund, "kernel.dat");
    sigmund.run(["merge", "RUN", "-o", "out.supertrace"]).complained(&["RUN/kernel.dat", "No such file"]);
    let manifest = fs::read_to_string(sigmund.path("RUN/run.json")).unwrap();
    sigmund.write("RUN/run.json", manifest.replace("\"kernel.dat\"", "null").as_bytes());
    let words = ["RUN", "run.json", "a kernel side (kernel.dat or kernel.perf) or a user side", "neither"];
    sigmund.run(["merge", "RUN", "-o", "out.supertrace"]).complained(&words);
    assert!(!sigmund.path("out.supertrace").exists());
}

/// A recorder writes the events of an LWP when they fill a packet of 64 KiB: of a killed one, the rest is lost.
fn wait_for_a_packet(user_trace: &Path) {
    let start = Instant::now();
    let size = || fs::metadata(user_trace).map_or(0, |file| file.len());
    while size() < 65_536 && start.elapsed() < Duration::from_secs(20) {
        std::thread::sleep(Duration::from_millis(2));
    }
}

#[test]
fn a_run_whose_recorder_was_killed_is_finished_by_merge_and_says_so() {
    let Some(_alone) = kernel::as_root() else { return };
    let sigmund = Sigmund::new();
    let kills = std::env::var("SIGMUND_KILLS").map_or(3, |kills| kills.parse().unwrap());
    for kill in 0..kills {
        let recorder =
            sigmund.start(["record", "--force", "-o", "RUN", "--", program(), "sumtime", "14", "4", "60000"]);
        let program = kernel::program_of(recorder.pid(), "sumtime");
        std::thread::sleep(Duration::from_millis(250 + (kill * 370) % 600));
        wait_for_a_packet(&sigmund.path(&format!("RUN/user-{}.fut", program.number())));
        let during = soon(&sigmund, &["merge", "RUN", "-o", "during.supertrace"]);
        during.complained(&["RUN", "is being recorded"]);
        kernel::send(recorder.pid(), rustix::process::Signal::KILL);
        program.kill();
        recorder.finish();
        soon(&sigmund, &["info", "RUN"]).found();
        let said = sigmund.run(["merge", "RUN", "-o", "out.supertrace", "--force"]);
        assert!(
            said.stderr.contains("RUN: its recorder was killed, or had no room on the disk: finished with"),
            "{said:?}"
        );
        let count = |level| {
            let query = format!("SELECT count(*) FROM events WHERE level = '{level}'");
            sigmund.number("out.supertrace", &query)
        };
        assert!(count("KERN") > 100 && count("USER") > 100, "{} and {}", count("KERN"), count("USER"));
        assert_eq!(sigmund.fact("out.supertrace", "ended"), "recorder killed");
        assert!(sigmund.number("out.supertrace", "SELECT count(*) FROM losses WHERE kind = 'truncated'") > 0);
        assert!(sigmund.path("RUN/kernel.dat").is_file());
        let names: Vec<String> = fs::read_dir(sigmund.path("RUN"))
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .filter(|name| !name.ends_with(".fut"))
            .collect();
        assert_eq!(names.len(), 2, "kernel.dat and run.json: {names:?}");
        // From now on it is like any other.
        let again = sigmund.run(["merge", "RUN", "-o", "out.supertrace", "--force"]);
        assert!(!again.stderr.contains("finished"), "{again:?}");
    }
    sigmund.run(["record", "-o", "NEXT", "--no-merge", "--", "true"]).found();
}
