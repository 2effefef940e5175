//! Kernels and sandboxes that do not let a program modify its code: it continues unrecorded, and the error has the
//! reason.

#[path = "common/skipped.rs"]
mod skipped;

use std::{env, process::Command};

use fut::{Init, StartError, SwitchError};

fut::events! {
    fn happened(number: u64);
}

const WHAT: &str = "FUT_TEST_REFUSED";

/// What a sandbox refuses. Each is tried in a process of its own: there is no way back.
const SANDBOXES: [&str; 2] = ["mprotect", "membarrier"];

/// From now on, what is writable never becomes executable (Linux 6.3).
fn refuse_mprotect() -> bool {
    const PR_SET_MDWE: libc::c_int = 65;
    const PR_MDWE_REFUSE_EXEC_GAIN: libc::c_ulong = 1;
    // SAFETY: takes numbers only.
    unsafe { libc::prctl(PR_SET_MDWE, PR_MDWE_REFUSE_EXEC_GAIN, 0, 0, 0) == 0 }
}

/// From now on, `membarrier` fails with EPERM.
fn refuse_membarrier() -> bool {
    const LOAD: u16 = (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16;
    const IF_EQUAL: u16 = (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16;
    const RETURN: u16 = (libc::BPF_RET | libc::BPF_K) as u16;
    let step = |code, jt, jf, k| libc::sock_filter { code, jt, jf, k };
    let mut filter = [
        // The number of the system call is the first word.
        step(LOAD, 0, 0, 0),
        step(IF_EQUAL, 0, 1, libc::SYS_membarrier as u32),
        step(RETURN, 0, 0, libc::SECCOMP_RET_ERRNO | libc::EPERM as u32),
        step(RETURN, 0, 0, libc::SECCOMP_RET_ALLOW),
    ];
    let program = libc::sock_fprog { len: filter.len() as u16, filter: filter.as_mut_ptr() };
    // SAFETY: takes numbers only.
    let no_new_privileges = unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) };
    // SAFETY: `program` and the filter it points to are valid during the call.
    let set = unsafe { libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const program) };
    (no_new_privileges, set) == (0, 0)
}

/// In the sandbox: recording does not start, and says what to do.
fn start_in_sandbox(what: &str) {
    let refused = if what == "mprotect" { refuse_mprotect() } else { refuse_membarrier() };
    if !refused {
        println!("SANDBOX NOT AVAILABLE");
        return;
    }
    happened(1);
    let Init::Failed(error) = fut::init() else { panic!("code cannot be changed in this sandbox") };
    match &error {
        StartError::Switch(SwitchError::Protect(_)) => assert_eq!(what, "mprotect"),
        StartError::Switch(SwitchError::Membarrier(_)) => assert_eq!(what, "membarrier"),
        other => panic!("{other}"),
    }
    let said = error.to_string();
    assert!(said.contains(what) && said.contains("--cfg fut_no_patching"), "{said}");
    happened(2);
}

#[test]
fn a_sandbox_that_forbids_to_change_code_is_told_by_name_with_the_way_out() {
    if let Ok(what) = env::var(WHAT) {
        return start_in_sandbox(&what);
    }
    if cfg!(any(fut_no_patching, not(target_arch = "x86_64"))) {
        return skipped::not_applicable("probes that are not patched need no permission");
    }
    for what in SANDBOXES {
        let dir = tempfile::tempdir().unwrap();
        let mut inside = Command::new(env::current_exe().unwrap());
        inside.args(["--nocapture", "a_sandbox"]).env(WHAT, what).env(fut::ENV_ARENA_DIR, dir.path());
        let done = inside.output().unwrap();
        let (said, stderr) = (String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
        assert!(done.status.success(), "{what}: {said}{stderr}");
        if said.contains("SANDBOX NOT AVAILABLE") {
            skipped::skipped(&format!("{what} cannot be refused here"));
        }
        let left: Vec<_> = std::fs::read_dir(dir.path()).unwrap().collect();
        assert!(left.is_empty(), "{what}: {left:?}");
    }
}
