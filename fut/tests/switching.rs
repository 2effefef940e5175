//! Probes that are switched on and off all the time, while threads, signal handlers and forked children run through
//! them.
//!
//! The rings are not drained here. They are soon full, and from then on each LWP counts every record as lost: so the
//! exact number of enabled probes is known, and nothing has to be stored.

use std::{
    path::PathBuf,
    sync::atomic::{AtomicBool, AtomicU64, Ordering},
    thread,
    time::Duration,
};

use fut::{Init, declared_events, keys, shm::Arena, switch_events};

const THREADS: usize = 3;
/// A switch takes a quarter of a millisecond beside threads that use both CPUs, and five times that unoptimised.
const SWITCHES: u64 = if cfg!(debug_assertions) { 10_000 } else { 100_000 };
const FORKS: u64 = 50;
const GROUPS: u64 = 10;
/// Probes of one group.
const EACH: u64 = 20;

const fn key(group: u64) -> u64 {
    1 << (20 + group)
}

/// Each module declares the same ten events, which is allowed: two hundred probes.
macro_rules! modules {
    ($($module:ident)*) => {
        $(mod $module {
            fut::events! {
                fn e0(n: u64) in super::key(0);
                fn e1(n: u64) in super::key(1);
                fn e2(n: u64) in super::key(2);
                fn e3(n: u64) in super::key(3);
                fn e4(n: u64) in super::key(4);
                fn e5(n: u64) in super::key(5);
                fn e6(n: u64) in super::key(6);
                fn e7(n: u64) in super::key(7);
                fn e8(n: u64) in super::key(8);
                fn e9(n: u64) in super::key(9);
            }

            #[inline(never)]
            pub(crate) fn all(n: u64) {
                e0(n);
                e1(n);
                e2(n);
                e3(n);
                e4(n);
                e5(n);
                e6(n);
                e7(n);
                e8(n);
                e9(n);
            }
        })*

        fn all(n: u64) {
            $($module::all(n);)*
        }
    };
}

modules!(a b c d e f g h i j k l m n o p q r s t);

static STOP: AtomicBool = AtomicBool::new(false);
/// How often each thread has run through all probes.
static PASSES: [AtomicU64; THREADS] = [const { AtomicU64::new(0) }; THREADS];
static SIGNALS: AtomicU64 = AtomicU64::new(0);

fn run_through_all_probes(thread: usize) {
    if thread == 0 {
        // A thread that can take no signal at all is switched as well.
        block_all_signals();
    }
    while !STOP.load(Ordering::Relaxed) {
        all(thread as u64);
        // Release: pairs with the Acquire in `wait_for_passes`; what a pass has lost is seen.
        PASSES[thread].fetch_add(1, Ordering::Release);
    }
}

fn block_all_signals() {
    // SAFETY: a signal set is plain bits.
    let mut signals: libc::sigset_t = unsafe { std::mem::zeroed() };
    // SAFETY: `signals` is valid.
    unsafe { libc::sigfillset(&raw mut signals) };
    // SAFETY: `signals` is valid, and the old set is not asked for.
    unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, &raw const signals, std::ptr::null_mut()) };
}

/// So many whole passes of every thread, beside the one that it is in.
fn wait_for_passes(passes: u64) {
    let seen: Vec<u64> = PASSES.iter().map(|p| p.load(Ordering::Relaxed)).collect();
    for (thread, seen) in PASSES.iter().zip(seen) {
        // Acquire: pairs with the Release in `run_through_all_probes`.
        while thread.load(Ordering::Acquire) <= seen + passes {
            thread::sleep(Duration::from_micros(50));
        }
    }
}

extern "C" fn on_signal(_: libc::c_int) {
    all(SIGNALS.fetch_add(1, Ordering::Relaxed));
}

fn interrupt_a_thousand_times_a_second(on: bool) {
    let every = libc::timeval { tv_sec: 0, tv_usec: if on { 1000 } else { 0 } };
    let timer = libc::itimerval { it_interval: every, it_value: every };
    let action = on_signal as extern "C" fn(libc::c_int) as libc::sighandler_t;
    // SAFETY: the handler records events, which is meant for signal handlers.
    unsafe { libc::signal(libc::SIGPROF, action) };
    // SAFETY: `timer` is valid, and the old one is not asked for.
    unsafe { libc::setitimer(libc::ITIMER_PROF, &raw const timer, std::ptr::null_mut()) };
}

/// Children that are made while another thread switches have whole probes, and record for themselves.
fn fork_and_run_through_all_probes() {
    // SAFETY: the child records events and ends with `_exit`, nothing else.
    let pid = unsafe { libc::fork() };
    assert!(pid >= 0);
    if pid == 0 {
        all(0);
        // SAFETY: ends the child at once; the test harness in it must not go on.
        unsafe { libc::_exit(0) };
    }
    let mut status = 0;
    // SAFETY: `status` is a valid place.
    let waited = unsafe { libc::waitpid(pid, &raw mut status, 0) };
    assert_eq!((waited, status), (pid, 0));
}

struct Losses(Arena);

impl Losses {
    fn now(&self) -> u64 {
        self.0.rings().map(|ring| ring.lost()).sum()
    }

    /// What is lost in `passes` passes or a few more.
    fn in_passes(&self, passes: u64) -> u64 {
        // What had begun before the switch has finished after one pass more.
        wait_for_passes(1);
        let before = self.now();
        wait_for_passes(passes);
        self.now() - before
    }
}

fn record() -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    // SAFETY: no other thread of this process reads the environment yet.
    unsafe { std::env::set_var(fut::ENV_ARENA_DIR, dir.path()) };
    // SAFETY: as above.
    unsafe { std::env::set_var(fut::ENV_PACKETS, "2") };
    assert!(matches!(fut::init(), Init::Recording));
    let arena = dir.path().join(format!("{}.arena", std::process::id()));
    (dir, arena)
}

#[test]
fn what_is_off_records_nothing_however_often_it_is_switched() {
    all(0);
    let (_dir, arena) = record();
    let losses = Losses(Arena::open(&arena).unwrap());
    thread::scope(|scope| {
        for thread in 0..THREADS {
            scope.spawn(move || run_through_all_probes(thread));
        }
        wait_for_passes(100);
        assert!(losses.now() > 0, "the rings are full by now");

        interrupt_a_thousand_times_a_second(true);
        let forks = scope.spawn(|| (0..FORKS).for_each(|_| fork_and_run_through_all_probes()));
        for switch in 0..SWITCHES {
            keys::set(switch.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 16).unwrap();
        }
        forks.join().unwrap();
        assert!(SIGNALS.load(Ordering::Relaxed) > 0, "the timer did not fire");
        interrupt_a_thousand_times_a_second(false);

        for group in 0..GROUPS {
            keys::set(0).unwrap();
            assert_eq!(losses.in_passes(20), 0, "all are off");
            keys::set(key(group)).unwrap();
            assert!(losses.in_passes(20) >= 20 * EACH * THREADS as u64, "group {group} is on");
            assert_eq!(switch_events(&format!("e{group}"), false).unwrap(), 1);
            assert_eq!(losses.in_passes(20), 0, "group {group} is switched off by name");
            assert_eq!(switch_events("*", true).unwrap(), declared_events().count());
            assert!(losses.in_passes(20) >= 20 * EACH * THREADS as u64, "and on again");
        }
        let on: Vec<&str> =
            declared_events().filter(|event| event.is_on()).map(|event| event.name()).collect();
        assert_eq!(on, ["e9"]);
        STOP.store(true, Ordering::Relaxed);
    });
}
