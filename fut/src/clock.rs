//! The clock of the probes: the TSC, and snapshots of other clocks against it.

use sigmund_model::{ClockDomain, Nanos, Snapshot, Ticks};

/// Reads the time-stamp counter, in ticks. On other architectures than x86-64, reads `CLOCK_MONOTONIC_RAW`, in
/// nanoseconds.
#[inline(always)]
pub fn ticks() -> u64 {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: every x86-64 has the instruction.
    unsafe {
        core::arch::x86_64::_rdtsc()
    }
    #[cfg(not(target_arch = "x86_64"))]
    nanoseconds(libc::CLOCK_MONOTONIC_RAW)
}

/// All earlier instructions complete before any later one begins, including a later read of the clock (`lfence`).
#[cfg(all(feature = "runtime", not(loom)))]
#[inline(always)]
pub(crate) fn wait_for_earlier_instructions() {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: every x86-64 has the instruction (SSE2).
    unsafe {
        core::arch::x86_64::_mm_lfence();
    }
}

/// The clocks in the clock snapshots of a recording.
pub const SNAPSHOT_DOMAINS: [ClockDomain; 4] =
    [ClockDomain::MonotonicRaw, ClockDomain::Monotonic, ClockDomain::Boottime, ClockDomain::Realtime];

/// Reads one instant both on the TSC and on `domain`. Of eight bracketed reads, the tightest is returned.
///
/// `None` for clocks that cannot be read with a system call.
pub fn snapshot(domain: ClockDomain) -> Option<Snapshot> {
    let id = match domain {
        ClockDomain::MonotonicRaw => libc::CLOCK_MONOTONIC_RAW,
        ClockDomain::Monotonic => libc::CLOCK_MONOTONIC,
        ClockDomain::Boottime => libc::CLOCK_BOOTTIME,
        ClockDomain::Realtime => libc::CLOCK_REALTIME,
        ClockDomain::Tsc | ClockDomain::Local | ClockDomain::Ticks => return None,
    };
    let bracket = || {
        let before = Ticks(ticks());
        let ns = Nanos(nanoseconds(id));
        Snapshot { before, after: Ticks(ticks()), ns }
    };
    (0..8).map(|_| bracket()).min_by_key(|s| s.after.0.saturating_sub(s.before.0))
}

/// A snapshot of every clock of [`SNAPSHOT_DOMAINS`].
pub fn snapshots() -> Vec<(ClockDomain, Snapshot)> {
    SNAPSHOT_DOMAINS.iter().filter_map(|domain| Some((*domain, snapshot(*domain)?))).collect()
}

/// CPU time that the calling LWP has used since it was created, in nanoseconds.
#[cfg(feature = "probes")]
pub(crate) fn lwp_cpu_time() -> u64 {
    nanoseconds(libc::CLOCK_THREAD_CPUTIME_ID)
}

fn nanoseconds(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is valid for writing. The clocks passed here exist since Linux 2.6.39, so the call fills it in.
    unsafe { libc::clock_gettime(clock, &raw mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
