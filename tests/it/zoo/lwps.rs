//! A program of 300 LWPs, more than any machine has CPUs: each has its own events and its own time.

use std::{collections::HashMap, sync::Barrier, thread};

use super::program::{self, TRACE, is_whole, recorded};
use crate::kernel;

const NAME: &str = "300 LWPs";
const LWPS: u64 = 300;

fut::events! {
    fn zoo_lwp(tid: u64, number: u64);
}

#[test]
#[ignore = "a program for another test"]
fn has_300_lwps() {
    if !program::is(NAME) {
        return;
    }
    let _ = fut::init();
    let all_there = Barrier::new(LWPS as usize);
    let lines: Vec<String> = thread::scope(|scope| {
        let all_there = &all_there;
        let lwps: Vec<_> = (0..LWPS).map(|number| scope.spawn(move || one(number, all_there))).collect();
        lwps.into_iter().map(|lwp| lwp.join().unwrap()).collect()
    });
    println!("account {}", lines.join(" "));
}

/// Each records as many events as its number, and ten.
fn one(number: u64, all_there: &Barrier) -> String {
    // SAFETY: `gettid` takes nothing, and cannot fail.
    let tid = unsafe { libc::gettid() } as u64;
    all_there.wait();
    for event in 0..number + 10 {
        zoo_lwp(tid, event);
    }
    format!("{tid}={}", number + 10)
}

#[test]
fn each_of_300_lwps_has_its_own_events() {
    let Some(_alone) = kernel::as_root() else { return };
    let (sigmund, account) = recorded("zoo::lwps::has_300_lwps", NAME);
    assert_eq!(account.pairs().len() as u64, LWPS);
    let by_lwp = "SELECT lwp, count(*) FROM zoo_lwp WHERE tid = lwp GROUP BY lwp";
    let found = sigmund.sql(TRACE, by_lwp).into_iter().map(|row| (row[0].clone(), row[1].clone()));
    assert_eq!(&found.collect::<HashMap<_, _>>(), account.pairs());
    assert_eq!(sigmund.number(TRACE, "SELECT count(*) FROM zoo_lwp WHERE tid <> lwp"), 0);
    is_whole(&sigmund);
}
