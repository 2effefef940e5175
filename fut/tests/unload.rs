//! A recording shared library in Rust may be closed at any time: threads that recorded end normally, and no unmapped
//! code is called.
//!
//! The program that loads it is this test again, in a process of its own.

use std::{
    env,
    ffi::CString,
    fs,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
    process::Command,
    sync::Barrier,
    thread,
};

use fut::{drain::Drain, shm::Arena};

mod common;

/// The library to load.
const PLUGIN: &str = "FUT_TEST_PLUGIN";

/// Not a test by itself: what runs in the other process.
#[test]
fn program() {
    let Some(plugin) = env::var_os(PLUGIN) else { return };
    let name = CString::new(plugin.as_bytes()).unwrap();
    // SAFETY: a library whose constructors do nothing.
    let library = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW) };
    assert!(!library.is_null(), "{}", plugin.display());
    // SAFETY: `library` is open.
    let start = unsafe { libc::dlsym(library, c"plugin_start".as_ptr()) };
    // SAFETY: as above.
    let call = unsafe { libc::dlsym(library, c"plugin_call".as_ptr()) };
    // SAFETY: the plugin defines it so.
    let start = unsafe { std::mem::transmute::<*mut libc::c_void, extern "C" fn() -> i32>(start) };
    // SAFETY: as above.
    let call = unsafe { std::mem::transmute::<*mut libc::c_void, extern "C" fn(u64)>(call) };
    // On a thread that ends: what a thread leaves to its destructors keeps a library loaded.
    assert_eq!(thread::spawn(move || start()).join().unwrap(), 0);
    let (recorded, closed) = (Barrier::new(3), Barrier::new(3));
    thread::scope(|scope| {
        for thread in 0..2 {
            let (recorded, closed) = (&recorded, &closed);
            scope.spawn(move || {
                (0..10).for_each(|number| call(10 * thread + number));
                recorded.wait();
                closed.wait();
                // And it ends, which the library wants to know.
            });
        }
        recorded.wait();
        // SAFETY: `library` is open, and nobody in this program calls it from here on.
        assert_eq!(unsafe { libc::dlclose(library) }, 0);
        closed.wait();
    });
    // SAFETY: the child ends at once.
    let child = unsafe { libc::fork() };
    if child == 0 {
        // SAFETY: ends the process.
        unsafe { libc::_exit(0) };
    }
    let mut status = 0;
    // SAFETY: `status` is a valid place.
    assert_eq!((unsafe { libc::waitpid(child, &raw mut status, 0) }, status), (child, 0));
}

/// The library: cargo builds it for nobody's tests, so it is built here, in the profile of this test.
fn plugin() -> PathBuf {
    let profile = env::current_exe().unwrap().ancestors().nth(2).unwrap().to_path_buf();
    let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(["build", "--quiet", "-p", "sigmund-fut", "--example", "plugin", "--target-dir"]);
    command.arg(profile.parent().unwrap()).current_dir(env!("CARGO_MANIFEST_DIR"));
    if profile.ends_with("release") {
        command.arg("--release");
    }
    let done = command.output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    profile.join("examples/libplugin.so")
}

fn arena_in(folder: &Path, pid: u32) -> PathBuf {
    folder.join(format!("{pid}.arena"))
}

#[test]
fn a_library_that_records_stays_loaded_when_it_is_closed() {
    let plugin = plugin();
    // With the thread that answers, and without.
    for control in ["0", "1"] {
        let folder = tempfile::tempdir().unwrap();
        let mut command = Command::new(env::current_exe().unwrap());
        command.args(["--exact", "program", "--nocapture"]).env(PLUGIN, &plugin);
        command.env(fut::ENV_ARENA_DIR, folder.path()).env(fut::control::ENV_CONTROL, control);
        command.env("XDG_RUNTIME_DIR", folder.path()).stdout(std::process::Stdio::null());
        let mut program = command.spawn().unwrap();
        let pid = program.id();
        let status = program.wait().unwrap();
        assert!(status.success(), "control {control}: {status}");

        let trace = folder.path().join("user.fut");
        let arena = arena_in(folder.path(), pid);
        Drain::new(Arena::open(&arena).unwrap(), &trace).unwrap().finish().unwrap();
        let trace = common::opened(&trace);
        let mut numbers: Vec<u64> =
            common::words(&trace, common::code(&trace, "plugged")).into_iter().map(|(n, _)| n).collect();
        numbers.sort_unstable();
        assert_eq!(numbers, (0..20).collect::<Vec<_>>());
        let ends = common::words(&trace, common::code(&trace, "LWP_DETACH"));
        assert_eq!(ends.len(), 2, "each LWP has told that it ends");
        fs::remove_file(arena).unwrap();
    }
}
