//! Functions of several tests for reading traces.
#![allow(dead_code, reason = "not every test needs all of it")]

use std::{
    path::Path,
    time::{Duration, Instant},
};

use fut::trace::{LwpPackets, Packet, UserTrace};

/// Whether the long variant of a test is asked for.
pub(crate) fn long() -> bool {
    std::env::var_os("FUT_LONG").is_some()
}

/// The status of a child process. `None` if it has not ended within 10 s; then it is killed.
pub(crate) fn status_of(child: libc::pid_t) -> Option<i32> {
    let (began, mut status) = (Instant::now(), 0);
    while began.elapsed() < Duration::from_secs(10) {
        // SAFETY: `status` is valid for writing.
        match unsafe { libc::waitpid(child, &raw mut status, libc::WNOHANG) } {
            0 => std::thread::sleep(Duration::from_millis(5)),
            ended => return (ended == child).then_some(status),
        }
    }
    // SAFETY: a child of this process, which has not been waited for.
    unsafe { libc::kill(child, libc::SIGKILL) };
    None
}

/// A trace that is whole.
pub(crate) fn opened(path: &Path) -> UserTrace {
    let trace = UserTrace::open(path).unwrap();
    assert_eq!(trace.losses(), []);
    trace
}

/// The code of a declared event.
pub(crate) fn code(trace: &UserTrace, name: &str) -> u32 {
    trace.declarations().iter().find(|d| d.event.name == name).unwrap().event.code.unwrap()
}

/// The packets of an LWP, numbered without a gap.
pub(crate) fn packets(lwp: &LwpPackets) -> impl Iterator<Item = Packet> {
    let first = lwp.heads().next().map_or(0, |head| head.sequence);
    (0..lwp.len()).map(move |index| {
        let packet = lwp.packet(index).unwrap().unwrap().unwrap();
        assert_eq!(packet.head.sequence, first + index as u64, "LWP {}", lwp.lwp);
        packet
    })
}

/// The words of all records with this code.
pub(crate) fn words(trace: &UserTrace, code: u32) -> Vec<(u64, u64)> {
    let mut words = Vec::new();
    for packet in trace.lwps().iter().flat_map(packets) {
        let records = packet.records().filter(|r| r.head.code == code);
        words.extend(records.map(|r| (r.word(0).unwrap_or(0), r.word(1).unwrap_or(0))));
    }
    words
}
