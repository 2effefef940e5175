//! Programs that live on when the first process has ended: a daemon that forks twice, and one that a shell leaves in the
//! background. Their account is a line of a file, since nobody reads what a daemon prints.

use std::{
    env,
    fs::{File, OpenOptions},
    io::{Read, Write},
    path::Path,
    process::Command,
    thread::sleep,
    time::{Duration, Instant},
};

use fut::{Init, Runtime};

/// Which of them this test binary is to be.
const ROLE: &str = "SIGMUND_ZOO_DAEMON";
/// The file for the account.
const ACCOUNT: &str = "SIGMUND_ZOO_ACCOUNT";
/// A file that the daemon waits for before its second half. If not given, it waits for the end of the first process.
const GO: &str = "SIGMUND_ZOO_GO";
/// The number of the shell that leaves one in the background.
pub(crate) const SHELL: &str = "SIGMUND_ZOO_SHELL";
/// Longer than any test takes: nothing is left behind for ever.
const AT_MOST: Duration = Duration::from_secs(60);

/// Events of the first process, and of each half of a daemon.
pub(crate) const FIRST: u64 = 100;
pub(crate) const HALF: u64 = 300;

fut::events! {
    /// A step, of the first process or of a daemon.
    fn daemon_step(number: u64);
}

/// Forks twice and leaves a daemon, which records.
pub(crate) const TWICE: &str = "twice";
/// Is left in the background by a shell, and builds a runtime when it is told to go.
pub(crate) const LATE: &str = "late";

/// Has a command run one of them.
pub(crate) fn prepare(command: &mut Command, role: &str, account: &Path, go: Option<&Path>) {
    command.env(ROLE, role).env(ACCOUNT, account);
    if let Some(go) = go {
        command.env(GO, go);
    }
}

/// How this test binary is called to be one.
pub(crate) fn words() -> Vec<String> {
    let program = env::current_exe().unwrap().into_os_string().into_string().unwrap();
    let args = ["--exact", "zoo::daemons::plays_its_role", "--ignored", "--nocapture", "--test-threads=1"];
    std::iter::once(program).chain(args.map(String::from)).collect()
}

#[test]
#[ignore = "a program for other tests"]
fn plays_its_role() {
    match env::var(ROLE).as_deref() {
        Ok(TWICE) => forks_twice(),
        Ok(LATE) => is_late(),
        _ => {}
    }
}

fn forks_twice() {
    let first = std::process::id();
    assert!(matches!(fut::init(), Init::Recording | Init::NotAsked));
    (0..FIRST).for_each(daemon_step);
    let (mut begun, begins) = std::io::pipe().unwrap();
    let Some(child) = forked() else {
        // SAFETY: takes nothing, and fails only for the leader of a group, which a new child is not.
        unsafe { libc::setsid() };
        if forked().is_none() {
            let recorded = fut::init();
            (0..HALF).for_each(daemon_step);
            drop(begun);
            (&begins).write_all(&[1]).unwrap();
            drop(begins);
            close_standard_files();
            wait_for_go(first);
            // A recorder that does not wait has left by then.
            sleep(Duration::from_millis(100));
            (HALF..2 * HALF).for_each(daemon_step);
            account(&format!("{} {} {recorded:?}", std::process::id(), 2 * HALF));
        }
        end();
    };
    drop(begins);
    begun.read_exact(&mut [0]).unwrap();
    // SAFETY: a child of ours, whose status is not asked for.
    unsafe { libc::waitpid(child, std::ptr::null_mut(), 0) };
    end();
}

fn is_late() {
    wait_for_go(env::var(SHELL).unwrap().parse().unwrap());
    let runtime = Runtime::builder().lwps(2).build().expect("it runs without the recorder");
    let sum = runtime.run(|| {
        let threads: Vec<_> = (0..HALF).map(|number| fut::spawn(move || daemon_step(number))).collect();
        threads.into_iter().map(|thread| thread.join().map_or(0, |()| 1)).sum::<u64>()
    });
    account(&format!("{} {sum} {:?}", std::process::id(), fut::init()));
}

/// The child; `None` in it.
fn forked() -> Option<libc::pid_t> {
    // SAFETY: the child records and ends; it takes no lock that another thread of the parent may have had (the harness's main
    // thread waits for this one).
    let child = unsafe { libc::fork() };
    assert!(child >= 0, "fork: {}", std::io::Error::last_os_error());
    (child != 0).then_some(child)
}

fn end() -> ! {
    // SAFETY: ends the process, which must not go on in the test harness.
    unsafe { libc::_exit(0) }
}

/// The pipes to the recorder's caller, who waits for their end.
fn close_standard_files() {
    let null = OpenOptions::new().read(true).write(true).open("/dev/null").unwrap();
    for number in 0..3 {
        // SAFETY: replaces a descriptor of this process, which nothing else here owns.
        unsafe { libc::dup2(std::os::fd::AsRawFd::as_raw_fd(&null), number) };
    }
}

fn wait_for_go(first: u32) {
    let (go, begun) = (env::var_os(GO), Instant::now());
    let may_go = || match &go {
        Some(file) => Path::new(file).exists(),
        None => !Path::new("/proc").join(first.to_string()).exists(),
    };
    while !may_go() && begun.elapsed() < AT_MOST {
        sleep(Duration::from_millis(2));
    }
}

/// `PID EVENTS INIT`.
fn account(line: &str) {
    let path = env::var_os(ACCOUNT).unwrap();
    let mut file: File = OpenOptions::new().create(true).append(true).open(path).unwrap();
    file.write_all(format!("{line}\n").as_bytes()).unwrap();
}
