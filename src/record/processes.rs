//! The LWPs that exist when the kernel side has begun, and their processes: the kernel's events report only those that are
//! made later.

use std::fs;

use sigmund_merge::ProcessLwps;

use super::cpu_times::numbers_in;

/// All LWPs, as `/proc` shows them. One that is made meanwhile may be missing, and has its event.
pub(super) fn read() -> Vec<ProcessLwps> {
    if !shows_the_numbers_of_the_kernel() {
        return Vec::new();
    }
    let lwps = |pid: u32| numbers_in(&format!("/proc/{pid}/task")).collect::<Vec<u32>>();
    let found = numbers_in("/proc").map(|pid| ProcessLwps { pid, lwps: lwps(pid) });
    found.filter(|process| !process.lwps.is_empty()).collect()
}

/// Whether this process is in the first PID namespace: in another, `/proc` has other numbers than the kernel's events.
pub(super) fn shows_the_numbers_of_the_kernel() -> bool {
    // PROC_PID_INIT_INO, include/linux/proc_ns.h.
    fs::read_link("/proc/self/ns/pid").is_ok_and(|name| name.as_os_str() == "pid:[4026531836]")
}
