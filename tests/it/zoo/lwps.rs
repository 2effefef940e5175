//! A program of 300 LWPs, more than any machine has CPUs: each has its own events and its own time.

use std::{sync::Barrier, thread};

use super::program::{self, TRACE, account, is_whole, recorded};
use crate::kernel;

const LWPS: u64 = 300;

fut::events! {
    fn zoo_lwp(tid: u64, number: u64);
}

#[test]
#[ignore = "a program for another test"]
fn has_300_lwps() {
    if !program::is_program() {
        return;
    }
    fut::init();
    let all_there = Barrier::new(LWPS as usize);
    let lines: Vec<String> = thread::scope(|scope| {
        let all_there = &all_there;
        let lwps: Vec<_> = (0..LWPS).map(|number| scope.spawn(move || one(number, all_there))).collect();
        lwps.into_iter().map(|lwp| lwp.join().unwrap()).collect()
    });
    lines.iter().for_each(|line| account(line));
}

/// Each records as many events as its number, and ten.
fn one(number: u64, all_there: &Barrier) -> String {
    // SAFETY: `gettid` takes nothing, and cannot fail.
    let tid = unsafe { libc::gettid() } as u64;
    all_there.wait();
    for event in 0..number + 10 {
        zoo_lwp(tid, event);
    }
    format!("{tid} {}", number + 10)
}

#[test]
fn each_of_300_lwps_has_its_own_events() {
    let Some(_alone) = kernel::as_root() else { return };
    let (sigmund, account) = recorded("zoo::lwps::has_300_lwps", &[]);
    assert_eq!(account.len() as u64, LWPS);
    let by_lwp = "SELECT concat(CAST(lwp AS VARCHAR), ' ', CAST(count(*) AS VARCHAR)) FROM zoo_lwp
        WHERE tid = lwp GROUP BY lwp";
    let mut found: Vec<String> = sigmund.sql(TRACE, by_lwp).into_iter().map(|row| row[0].clone()).collect();
    let mut expected = account;
    found.sort();
    expected.sort();
    assert_eq!(found, expected);
    assert_eq!(sigmund.number(TRACE, "SELECT count(*) FROM zoo_lwp WHERE tid <> lwp"), 0);
    is_whole(&sigmund);
}
