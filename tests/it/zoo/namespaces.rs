//! A program in a PID namespace of its own: it calls its LWPs by other numbers than the kernel's events.

use std::{
    fs,
    process::Command,
    time::{Duration, Instant},
};

use super::program::{self, Account};
use crate::{
    kernel,
    sigmund::{Running, Sigmund},
};

const NAME: &str = "namespaces";
const TEST: &str = "zoo::namespaces::computes";
const TRACE: &str = "RUN.supertrace";
const LWPS: usize = 2;
/// How long each user thread computes, by the clock of its LWP's CPU time.
const COMPUTES: Duration = Duration::from_millis(50);

fut::events! {
    /// Something was computed.
    fn computed(round: u64);
}

/// Records the program, by a command that makes a namespace.
fn recorded(sigmund: &Sigmund, unshare: &[&str]) -> Account {
    let mut command = sigmund.command();
    command.args(["record", "-o", "RUN", "--", "unshare"]).args(unshare).args(program::command_line(TEST));
    program::told(&mut command, NAME);
    let said = Running::of(command).finish();
    assert_eq!(said.status, 0, "{said:?}");
    Account::of(&said)
}

fn witnesses(sigmund: &Sigmund) -> (f64, f64) {
    let count = |key| sigmund.fact(TRACE, key).parse::<f64>().unwrap();
    let agree = count("witness_agree");
    (agree, agree + count("witness_disagree") + count("witness_single"))
}

#[test]
fn a_program_in_a_pid_namespace_has_the_kernel_events_of_its_own_lwps() {
    let Some(_alone) = kernel::as_root() else { return };
    if !kernel::has_tool("unshare") {
        return;
    }
    for unshare in [&["--pid", "--fork"][..], &["--pid", "--fork", "--mount-proc"]] {
        let sigmund = Sigmund::new();
        let account = recorded(&sigmund, unshare);
        // It is the first process of its namespace.
        assert_eq!(account.number("pid"), 1);
        let (agree, all) = witnesses(&sigmund);
        assert!(
            all >= account.number("events") as f64 && agree >= 0.95 * all,
            "{unshare:?}: {agree} of {all} agree"
        );
        // Its LWPs are called what they are called outside, and are of a process that is not 1.
        let outside = "SELECT count(*) FROM lwps WHERE name LIKE 'lwp/%' AND carries_threads AND lwp > 300 AND pid > 300";
        assert_eq!(sigmund.number(TRACE, outside), LWPS as i64, "{unshare:?}");
        assert_eq!(
            sigmund.number(TRACE, "SELECT count(*) FROM losses WHERE detail LIKE '%PID namespace%'"),
            0
        );
        // What the kernel added up is found, too.
        let active = "SELECT sum(active_ns) FROM threads WHERE name LIKE 'computes %'";
        let (active, own) = (sigmund.number(TRACE, active) as f64, account.number("cpu_ns") as f64);
        assert!(
            active > 0.7 * own && active < 1.3 * own + 2e7,
            "{unshare:?}: active {active} ns, by itself {own} ns"
        );
        // An LWP that was not found: no other LWP's events are taken for its own.
        without_numbers(&sigmund, account.number("events"));
    }
}

/// The same run, as if no LWP had been found in time.
fn without_numbers(sigmund: &Sigmund, events: i64) {
    let path = sigmund.path("RUN/run.json");
    let mut manifest: serde_json::Value = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
    let side = &mut manifest["user_side"][0];
    assert!(side["namespace"]["pid"].as_u64().unwrap() > 1, "{side}");
    side["namespace"]["lwps"] = serde_json::json!([]);
    fs::write(&path, manifest.to_string()).unwrap();
    let said = sigmund.run(["merge", "RUN", "-o", TRACE, "--force"]);
    assert!(said.stderr.contains("another PID namespace"), "{said:?}");
    let (agree, all) = witnesses(sigmund);
    assert!(agree == 0.0 && all >= events as f64, "{agree} of {all} agree");
    assert_eq!(sigmund.number(TRACE, "SELECT count(*) FROM active"), 0);
    assert_eq!(
        sigmund.number(TRACE, "SELECT count(*) FROM computed WHERE cpu IS NULL OR lwp < 1000000000"),
        0
    );
    let checked = sigmund.run(["check", TRACE]);
    assert!(checked.stdout.contains("another PID namespace"), "{checked:?}");
}

#[test]
fn a_recorder_in_a_pid_namespace_takes_no_other_lwp_for_one_of_the_program() {
    let Some(_alone) = kernel::as_root() else { return };
    if !kernel::has_tool("unshare") {
        return;
    }
    let sigmund = Sigmund::new();
    let mut command = Command::new("unshare");
    command.args(["--pid", "--fork", "--mount-proc", crate::sigmund::program(), "record", "-o", "RUN", "--"]);
    command.args(program::command_line(TEST)).current_dir(sigmund.folder());
    program::told(&mut command, NAME);
    let said = Running::of(command).finish();
    assert_eq!(said.status, 0, "{said:?}");
    let account = Account::of(&said);
    assert!(said.stderr.contains("this recorder runs in a PID namespace"), "{said:?}");
    let (agree, all) = witnesses(&sigmund);
    assert!(agree == 0.0 && all >= account.number("events") as f64, "{agree} of {all} agree");
    assert_eq!(sigmund.number(TRACE, "SELECT count(*) FROM active"), 0);
    assert!(sigmund.number(TRACE, "SELECT count(*) FROM losses WHERE detail LIKE '%PID namespace%'") > 0);
    let checked = sigmund.run(["check", TRACE]);
    assert!(checked.stdout.contains("another PID namespace"), "{checked:?}");
}

/// The program.
#[test]
#[ignore = "a program for another test"]
fn computes() {
    if !program::is(NAME) {
        return;
    }
    let runtime = fut::Runtime::builder().lwps(LWPS).build().unwrap();
    let done: Vec<(u64, Duration)> = runtime.run(|| {
        let threads: Vec<_> = (0..LWPS).map(computes_on).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let events: u64 = done.iter().map(|(rounds, _)| rounds).sum();
    let cpu_ns: u128 = done.iter().map(|(_, cpu)| cpu.as_nanos()).sum();
    println!("account pid={} events={events} cpu_ns={cpu_ns}", std::process::id());
}

/// A user thread on this LWP. Gives how many events it has recorded, and its time on CPUs.
fn computes_on(lwp: usize) -> fut::JoinHandle<(u64, Duration)> {
    let body = || {
        let (start, mut rounds) = (own_cpu_time(), 0);
        let begun = Instant::now();
        while own_cpu_time() - start < COMPUTES && begun.elapsed() < Duration::from_secs(20) {
            (0..2000).for_each(|_| std::hint::spin_loop());
            computed(rounds);
            rounds += 1;
        }
        (rounds, own_cpu_time() - start)
    };
    fut::Builder::new().name(format!("computes {lwp}")).lwp(lwp).spawn(body)
}

/// That of the LWP, which a user thread that has begun does not leave.
fn own_cpu_time() -> Duration {
    let used = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(used.tv_sec.unsigned_abs(), used.tv_nsec.unsigned_abs() as u32)
}
