//! Programs in narrow places, where a recorder may be out of reach or recording has no room. Each prints what it could do,
//! which has to be the same with and without a recorder.

use std::{
    env,
    fs::{self, File},
    path::Path,
    process::Command,
};

use fut::{Init, Runtime};

/// Which of them this test binary is to be.
const ROLE: &str = "SIGMUND_ZOO_LIMITED";
/// An empty folder.
const FOLDER: &str = "SIGMUND_ZOO_FOLDER";

/// Events that each of them records, if it can, beside those of user threads.
pub(crate) const STEPS: u64 = 500;
const THREADS: u64 = 50;

fut::events! {
    /// A step.
    fn limited_step(number: u64);
}

/// A program: its name, what makes its place narrow, and whether it can be recorded there.
pub(crate) struct Limited {
    pub(crate) name: &'static str,
    narrow: fn(),
    /// It records before that.
    begins_before: bool,
    /// Why it cannot be recorded: words of its message.
    pub(crate) unrecorded: Option<&'static str>,
}

const fn limited(name: &'static str, narrow: fn(), unrecorded: Option<&'static str>) -> Limited {
    Limited { name, narrow, begins_before: false, unrecorded }
}

pub(crate) const ALL: [Limited; 7] = [
    limited("own /dev/shm", own_shared_memory, Some("its recorder cannot be reached")),
    limited("nobody", becomes_nobody, Some("its recorder cannot be reached")),
    limited("little address space", little_address_space, Some("no address space")),
    limited("few descriptors", few_descriptors, None),
    limited("chroot", empty_root, Some("its recorder cannot be reached")),
    Limited { begins_before: true, ..limited("nobody, later", becomes_nobody, None) },
    Limited { begins_before: true, ..limited("chroot, later", empty_root, None) },
];

/// How this test binary is called to be one.
pub(crate) fn words() -> Vec<String> {
    let program = env::current_exe().unwrap().into_os_string().into_string().unwrap();
    let args = ["--exact", "zoo::limited::plays_its_role", "--ignored", "--nocapture", "--test-threads=1"];
    std::iter::once(program).chain(args.map(String::from)).collect()
}

/// Has a command run one of them.
pub(crate) fn prepare(command: &mut Command, limited: &Limited, empty_folder: &Path) {
    command.env(ROLE, limited.name).env(FOLDER, empty_folder);
}

#[test]
#[ignore = "a program for other tests"]
fn plays_its_role() {
    let Ok(role) = env::var(ROLE) else { return };
    let limited = ALL.iter().find(|limited| limited.name == role).unwrap();
    let begin = || assert!(!matches!(fut::init(), Init::AlreadyRecording));
    if limited.begins_before {
        begin();
    }
    (limited.narrow)();
    if !limited.begins_before {
        begin();
    }
    (0..STEPS).for_each(limited_step);
    let runtime = Runtime::builder().lwps(2).build().map_err(|error| error.to_string());
    let ended = runtime.map(|runtime| {
        runtime.run(|| {
            let threads: Vec<_> =
                (0..THREADS).map(|number| fut::spawn(move || limited_step(number))).collect();
            threads.into_iter().filter_map(|thread| thread.join().ok()).count()
        })
    });
    println!("account: {ended:?} threads, {}, {}", descriptors(), memory());
}

/// Events of one of them.
pub(crate) fn events() -> u64 {
    STEPS + THREADS
}

/// How many descriptors it can have more.
fn descriptors() -> String {
    let mut files = Vec::new();
    let mut made = std::io::pipe();
    while files.len() < 100
        && let Ok((one, other)) = made
    {
        files.extend([File::from(std::os::fd::OwnedFd::from(one)), std::os::fd::OwnedFd::from(other).into()]);
        made = std::io::pipe();
    }
    format!("{} more descriptors", files.len())
}

/// Whether it gets memory that it has room for.
fn memory() -> String {
    let mut memory = Vec::<u8>::new();
    format!("50 MiB: {}", memory.try_reserve_exact(50 << 20).is_ok())
}

fn own_shared_memory() {
    // SAFETY: of the calling thread, and those that it makes; no memory is concerned.
    done("unshare", unsafe { libc::unshare(libc::CLONE_NEWNS) });
    mount(c"none", c"/", c"none", libc::MS_REC | libc::MS_PRIVATE, c"");
    mount(c"tmpfs", c"/dev/shm", c"tmpfs", 0, c"size=64k");
    assert_eq!(fs::read_dir("/dev/shm").unwrap().count(), 0);
}

fn mount(
    from: &std::ffi::CStr,
    to: &std::ffi::CStr,
    kind: &std::ffi::CStr,
    flags: libc::c_ulong,
    options: &std::ffi::CStr,
) {
    // SAFETY: all are C strings, also the options of a tmpfs.
    let mounted =
        unsafe { libc::mount(from.as_ptr(), to.as_ptr(), kind.as_ptr(), flags, options.as_ptr().cast()) };
    done("mount", mounted);
}

fn becomes_nobody() {
    const NOBODY: u32 = 65534;
    // SAFETY: of an empty list, nothing is read.
    done("setgroups", unsafe { libc::setgroups(0, std::ptr::null()) });
    // SAFETY: it takes no memory.
    done("setresgid", unsafe { libc::setresgid(NOBODY, NOBODY, NOBODY) });
    // SAFETY: as above.
    done("setresuid", unsafe { libc::setresuid(NOBODY, NOBODY, NOBODY) });
}

/// 512 MiB more than the test binary has already, which is large: some of it each thread reserves for its allocations.
fn little_address_space() {
    let statm = fs::read_to_string("/proc/self/statm").unwrap();
    let pages: u64 = statm.split(' ').next().unwrap().parse().unwrap();
    limit(libc::RLIMIT_AS, pages * 4096 + (512 << 20));
}

fn few_descriptors() {
    limit(libc::RLIMIT_NOFILE, 8);
}

fn limit(resource: libc::__rlimit_resource_t, to: u64) {
    let limit = libc::rlimit { rlim_cur: to, rlim_max: to };
    // SAFETY: `limit` is there during the call.
    done("setrlimit", unsafe { libc::setrlimit(resource, &raw const limit) });
}

/// Neither `/dev` nor `/proc` is there.
fn empty_root() {
    let folder = env::var(FOLDER).unwrap();
    let folder = std::ffi::CString::new(folder).unwrap();
    // SAFETY: a C string.
    done("chroot", unsafe { libc::chroot(folder.as_ptr()) });
    // SAFETY: as above.
    done("chdir", unsafe { libc::chdir(c"/".as_ptr()) });
}

#[track_caller]
fn done(what: &str, result: i32) {
    assert_eq!(result, 0, "{what}: {}", std::io::Error::last_os_error());
}
