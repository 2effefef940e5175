//! A program of several LWPs that knows nothing of the recorder: the kernel side alone says which LWPs are its.

use std::{
    collections::BTreeSet,
    fs,
    process::Stdio,
    sync::{
        Arc, Barrier,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use super::program::{self, Account};
use crate::{
    kernel::{self, Process},
    sigmund::{Running, Sigmund},
};

const NAME: &str = "plain";
const GOES_ON: &str = "plain and goes on";
const TEST: &str = "zoo::plain::has_five_lwps";
const LWPS: usize = 4;

fn lwps_of(sigmund: &Sigmund, pid: i64) -> BTreeSet<String> {
    let rows = sigmund.sql("RUN.supertrace", &format!("SELECT lwp FROM lwps WHERE pid = {pid}"));
    rows.into_iter().map(|mut row| row.remove(0)).collect()
}

fn listed(lwps: &str) -> BTreeSet<String> {
    lwps.split(',').map(String::from).collect()
}

#[test]
fn the_lwps_of_a_program_that_was_started_are_those_that_proc_shows() {
    let Some(_alone) = kernel::as_root() else { return };
    let sigmund = Sigmund::new();
    let mut command = sigmund.command();
    command.args(["record", "-o", "RUN", "--"]).args(program::command_line(TEST));
    program::told(&mut command, NAME);
    let said = Running::of(command).finish();
    assert_eq!(said.status, 0, "{said:?}");
    let account = Account::of(&said);
    let expected = listed(account.text("lwps"));
    assert!(expected.len() > LWPS, "{expected:?}");
    assert_eq!(lwps_of(&sigmund, account.number("pid")), expected);
}

#[test]
fn the_lwps_of_a_process_that_ran_before_are_those_that_proc_shows() {
    let Some(_alone) = kernel::as_root() else { return };
    let sigmund = Sigmund::new();
    let said = sigmund.path("said");
    let [binary, args @ ..] = &program::command_line(TEST)[..] else { unreachable!("it has a binary") };
    let mut command = std::process::Command::new(binary);
    command.args(args).stdout(fs::File::create(&said).unwrap()).stdin(Stdio::null());
    program::told(&mut command, GOES_ON);
    let mut child = command.spawn().unwrap();
    let process = Process::of(&child);
    let start = Instant::now();
    let account = loop {
        if let Some(account) = Account::in_text(&fs::read_to_string(&said).unwrap()) {
            break account;
        }
        assert!(start.elapsed() < Duration::from_secs(20), "no account");
        thread::sleep(Duration::from_millis(2));
    };
    let pid = process.number().to_string();
    sigmund.run(["record", "--pid", &pid, "--for", "300ms", "-o", "RUN"]).found();
    process.kill();
    child.wait().unwrap();
    // Its leader waits for the others all the time: an LWP without events has no row.
    let pid = account.number("pid");
    let others = |mut lwps: BTreeSet<String>| {
        lwps.remove(&pid.to_string());
        lwps
    };
    assert_eq!(others(lwps_of(&sigmund, pid)), others(listed(account.text("lwps"))));
}

/// The program. Each of its LWPs does something from time to time.
#[test]
#[ignore = "a program for another test"]
fn has_five_lwps() {
    let goes_on = program::is(GOES_ON);
    if !program::is(NAME) && !goes_on {
        return;
    }
    let (there, ends) = (Arc::new(Barrier::new(LWPS + 1)), Arc::new(AtomicBool::new(false)));
    let threads: Vec<_> = (0..LWPS)
        .map(|_| {
            let (there, ends) = (Arc::clone(&there), Arc::clone(&ends));
            thread::spawn(move || {
                there.wait();
                while !ends.load(Ordering::Relaxed) {
                    thread::sleep(Duration::from_millis(5));
                }
            })
        })
        .collect();
    there.wait();
    let tasks = fs::read_dir("/proc/self/task").unwrap();
    let lwps: Vec<String> = tasks.map(|task| task.unwrap().file_name().into_string().unwrap()).collect();
    println!("account pid={} lwps={}", std::process::id(), lwps.join(","));
    let start = Instant::now();
    while goes_on && start.elapsed() < Duration::from_secs(30) {
        thread::sleep(Duration::from_millis(5));
    }
    ends.store(true, Ordering::Relaxed);
    threads.into_iter().for_each(|thread| thread.join().unwrap());
}
