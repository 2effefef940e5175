//! A set-user-ID program is started by a user with fewer rights: their environment has no effect, and no message shows
//! them the contents of a file.
//!
//! The program is this test again: a copy that belongs to root, started as `nobody`.

#[path = "common/skipped.rs"]
mod skipped;

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::Path,
    process::{Command, Output},
};

use fut::{
    Init, Recording,
    control::{self, State},
    keys,
    shm::Geometry,
};

const SECRET: &str = "root:$6$a-secret-of-roots:19000";
const NOBODY: &str = "65534";
/// Where the program writes its own trace.
const TRACE: &str = "FUT_TEST_TRACE";

/// Not a test by itself: what runs in the other process.
#[test]
fn program() {
    let Some(trace) = std::env::var_os(TRACE) else { return };
    let init = match fut::init() {
        Init::NotAsked => "not asked",
        Init::Recording | Init::AlreadyRecording => "recording",
        Init::Failed(_) => "failed",
    };
    let recording = Recording::start(Path::new(&trace), Geometry::default());
    // SAFETY: takes nothing and cannot fail.
    let is_root = unsafe { libc::geteuid() } == 0;
    let socket = match control::state() {
        State::Listening(socket) => socket.display().to_string(),
        other => format!("{other:?}"),
    };
    println!("root: {is_root}; init: {init}; keys: {:#x}; socket: {socket}", keys::mask());
    drop(recording.map(Recording::finish));
}

/// Runs the program as `nobody`, in an environment that wants everything.
fn run(program: &Path, folder: &Path) -> Output {
    let mut command = Command::new("setpriv");
    command.args(["--reuid", NOBODY, "--regid", NOBODY, "--clear-groups"]).arg(program);
    command.args(["--exact", "program", "--nocapture"]).env(TRACE, folder.join("trace.fut"));
    command.env(fut::ENV_ARENA_DIR, folder.join("arenas")).env(fut::ENV_MODE, "overwrite");
    command.env(fut::ENV_PACKETS, "65536").env(fut::ENV_KEYMASK_FILE, folder.join("secret"));
    command.env("XDG_RUNTIME_DIR", folder.join("runtime")).env("TMPDIR", folder.join("tmp"));
    command.env(control::ENV_CONTROL, "0").current_dir("/").output().unwrap()
}

#[test]
fn a_set_user_id_program_obeys_no_variable_and_shows_no_file() {
    // SAFETY: takes nothing and cannot fail.
    if unsafe { libc::geteuid() } != 0 || Command::new("setpriv").arg("--version").output().is_err() {
        return skipped::skipped("a set-user-ID program of root's needs root, and setpriv");
    }
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let mode = |name: &str, mode: u32| {
        fs::set_permissions(path(name), fs::Permissions::from_mode(mode)).unwrap();
    };
    for name in ["arenas", "runtime", "tmp"] {
        fs::create_dir(path(name)).unwrap();
        mode(name, 0o777);
    }
    fs::write(path("secret"), SECRET).unwrap();
    mode("secret", 0o600);
    fs::copy(std::env::current_exe().unwrap(), path("program")).unwrap();
    mode("program", 0o4755);
    mode("", 0o755);

    let done = run(&path("program"), folder.path());
    let (said, stderr) = (String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
    assert!(done.status.success(), "{said}{stderr}");
    if !said.contains("root: true") {
        return skipped::skipped("the folder for temporary files does not allow set-user-ID programs");
    }
    assert!(!stderr.contains("secret") && !stderr.contains("root:"), "{stderr}");
    assert!(said.contains(&format!("init: not asked; keys: {:#x}", keys::DEFAULT)), "{said}");
    assert!(said.contains("socket: /") && !said.contains(&path("").display().to_string()), "{said}");
    for name in ["arenas", "runtime", "tmp"] {
        assert_eq!(fs::read_dir(path(name)).unwrap().count(), 0, "{name}");
    }
    // It may do what it does by itself.
    assert!(path("trace.fut").exists());
}

#[test]
fn a_message_about_a_key_mask_never_shows_the_file_it_is_in() {
    let error = fut::parse_keymask(SECRET, "/etc/shadow").unwrap_err().to_string();
    assert!(error.starts_with("/etc/shadow:1: expected a key (") && !error.contains("secret"), "{error}");
}
