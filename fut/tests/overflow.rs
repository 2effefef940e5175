//! A program whose user thread overflows its stack or faults otherwise, and the report of one whose user threads are
//! all blocked. Each case is a separate process: this test program, run again.

mod again;

use std::{
    io::{BufRead, BufReader},
    os::unix::process::ExitStatusExt,
    process::Stdio,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use fut::{
    Builder, Runtime, spawn,
    sync::{Mutex, Semaphore},
};

/// Clears the screen, and turns what follows around.
const HOSTILE: &str = "\x1b[2J\u{9b}2J\u{202e}é\n";
const SHOWN: &str = r#""\u{1b}[2J\u{9b}2J\u{202e}é\n""#;

/// Uses a page of stack, and calls itself.
#[inline(never)]
fn deeper(level: u64) -> u64 {
    let mut page = std::hint::black_box([level; 512]);
    page[0] = if level == u64::MAX { 0 } else { deeper(level + 1) };
    std::hint::black_box(page).iter().fold(0, |sum, word| sum ^ word)
}

fn fault() -> u64 {
    // SAFETY: none: this is the fault that the test is about.
    unsafe { std::ptr::with_exposed_provenance::<u64>(8).read_volatile() }
}

fn in_a_user_thread(name: &'static str, body: fn() -> u64) {
    let runtime = Runtime::builder().lwps(1).build().unwrap();
    runtime.run(move || Builder::new().name(name).spawn(body).join().map_or(0, |n| n));
}

/// That `case`, in a process of its own, ends by the overflow of this thread, and says so.
fn overflows(test: &str, thread: &str, case: impl FnOnce()) {
    let Some(output) = again::run(test, case) else { return };
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains(&format!(" \"{thread}\" has overflowed its stack")), "{}: {said}", output.status);
    assert_eq!(output.status.signal(), Some(libc::SIGABRT));
}

/// Makes this process see a kernel before Linux 6.13: `madvise` refuses `MADV_GUARD_INSTALL`.
fn on_an_older_kernel() {
    const MADV_GUARD_INSTALL: u32 = 102;
    let statement = |code: u32, jt: u8, jf: u8, k: u32| libc::sock_filter { code: code as u16, jt, jf, k };
    let load = |offset| statement(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, offset);
    let skip_unless = |equal, skip| statement(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, 0, skip, equal);
    let give = |what| statement(libc::BPF_RET | libc::BPF_K, 0, 0, what);
    // `struct seccomp_data`: the number of the call at 0, its third argument at 32.
    let mut filter = [
        load(0),
        skip_unless(libc::SYS_madvise as u32, 3),
        load(32),
        skip_unless(MADV_GUARD_INSTALL, 1),
        give(libc::SECCOMP_RET_ERRNO | libc::EINVAL as u32),
        give(libc::SECCOMP_RET_ALLOW),
    ];
    let program = libc::sock_fprog { len: filter.len() as u16, filter: filter.as_mut_ptr() };
    // SAFETY: takes no memory; all threads that this one makes get it.
    assert_eq!(unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) }, 0);
    // SAFETY: the program is there during the call, and the kernel copies it.
    let set = unsafe { libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const program) };
    assert_eq!(set, 0);
}

#[test]
fn an_overflow_says_which_thread() {
    let case = || in_a_user_thread("digs deep", || deeper(0));
    overflows("an_overflow_says_which_thread", "digs deep", case);
}

/// The frame is as large as 16 stacks with their guards. Code of Rust touches its pages from the first on.
#[test]
fn a_frame_larger_than_many_stacks_is_an_overflow_of_its_own_thread() {
    #[inline(never)]
    fn large() -> u64 {
        let mut frame = std::hint::black_box([0_u8; 16 * (68 << 10)]);
        frame[5] = 5;
        std::hint::black_box(&frame).iter().map(|byte| u64::from(*byte)).sum()
    }
    let case = || in_a_user_thread("takes much", large);
    overflows("a_frame_larger_than_many_stacks_is_an_overflow_of_its_own_thread", "takes much", case);
}

/// More than there were guard pages for when their number was a constant, without the guards that cost nothing.
#[test]
fn an_overflow_is_noticed_at_once_on_older_kernels_too() {
    const STACKS: usize = 16_100;
    let case = || {
        on_an_older_kernel();
        let runtime = Runtime::builder().lwps(1).stack_size(16 << 10).build().unwrap();
        runtime.run(|| {
            static BEGUN: AtomicUsize = AtomicUsize::new(0);
            let gate = Arc::new(Semaphore::new(0));
            for _ in 0..STACKS {
                let gate = Arc::clone(&gate);
                drop(spawn(move || {
                    BEGUN.fetch_add(1, Ordering::Relaxed);
                    drop(gate.acquire());
                }));
            }
            while BEGUN.load(Ordering::Relaxed) < STACKS {
                fut::yield_now();
            }
            Builder::new().name("the last").spawn(|| deeper(0)).join().unwrap();
        });
    };
    overflows("an_overflow_is_noticed_at_once_on_older_kernels_too", "the last", case);
}

#[test]
fn another_fault_stays_one() {
    let case = || in_a_user_thread("reads nowhere", fault);
    let Some(output) = again::run("another_fault_stays_one", case) else { return };
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!said.contains("overflowed"), "{said}");
    assert_eq!(output.status.signal(), Some(libc::SIGSEGV));
}

#[test]
fn the_name_in_the_message_of_an_overflow_cannot_steer_the_terminal() {
    let name = "the_name_in_the_message_of_an_overflow_cannot_steer_the_terminal";
    let Some(output) = again::run(name, || in_a_user_thread(HOSTILE, || deeper(0))) else { return };
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains(&format!(" {SHOWN} has overflowed its stack")), "{said:?}");
    assert!(!said.contains(|c: char| c.is_control() && c != '\n'), "{said:?}");
}

#[test]
fn the_names_in_the_report_of_a_deadlock_cannot_steer_the_terminal() {
    let name = "the_names_in_the_report_of_a_deadlock_cannot_steer_the_terminal";
    let case = || {
        in_a_user_thread(HOSTILE, || {
            let lock = Arc::new(Mutex::new(()));
            let _held = lock.lock();
            let other = Arc::clone(&lock);
            let waits = Builder::new().name(HOSTILE).spawn(move || drop(other.lock()));
            waits.join().map_or(0, |()| 0)
        });
    };
    let Some(mut command) = again::command(name, case) else { return };
    let mut child = command.stderr(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    let mut said = String::new();
    let mut stderr = BufReader::new(child.stderr.take().unwrap());
    while !said.contains("held by thread") && stderr.read_line(&mut said).unwrap() > 0 {}
    // It would wait for ever.
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(said.contains("fut: deadlock: ") && said.contains(SHOWN), "{said:?}");
    assert!(!said.contains(|c: char| c.is_control() && c != '\n'), "{said:?}");
}

/// What the documentation of the stack size says of panics.
#[test]
fn a_panic_is_caught_on_a_small_stack_and_its_backtrace_needs_a_larger_one() {
    let name = "a_panic_is_caught_on_a_small_stack_and_its_backtrace_needs_a_larger_one";
    const SIZE: &str = "FUT_TEST_STACK";
    let case = || {
        let size = std::env::var(SIZE).unwrap().parse().unwrap();
        let runtime = Runtime::builder().lwps(1).stack_size(size).build().unwrap();
        assert!(runtime.spawn(|| panic!("of a user thread")).join().is_err());
    };
    for (size, backtrace) in [(16, "0"), (64, "1"), (64, "full")] {
        let Some(mut command) = again::command(name, case) else { return };
        let output =
            command.env(SIZE, (size << 10).to_string()).env("RUST_BACKTRACE", backtrace).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(
            output.status.success() && said.contains("of a user thread"),
            "{size} KiB, {backtrace}: {said}"
        );
    }
}
