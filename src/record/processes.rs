//! The processes and LWPs that exist when the kernel side begins to record. Kernel events report only those that are
//! created later.

use std::fs;

use sigmund_merge::ProcessLwps;

use super::cpu_times::numbers_in;

/// All LWPs that `/proc` shows. An LWP that is created in the meantime may be missing, but then it has an event.
pub(super) fn read() -> Vec<ProcessLwps> {
    if !shows_the_numbers_of_the_kernel() {
        return Vec::new();
    }
    let lwps = |pid: u32| numbers_in(&format!("/proc/{pid}/task")).collect::<Vec<u32>>();
    let found = numbers_in("/proc").map(|pid| ProcessLwps { pid, lwps: lwps(pid) });
    found.filter(|process| !process.lwps.is_empty()).collect()
}

/// Whether this process is in the initial PID namespace. In another namespace, the numbers in `/proc` differ from those
/// in kernel events.
pub(super) fn shows_the_numbers_of_the_kernel() -> bool {
    // PROC_PID_INIT_INO, include/linux/proc_ns.h.
    fs::read_link("/proc/self/ns/pid").is_ok_and(|name| name.as_os_str() == "pid:[4026531836]")
}
