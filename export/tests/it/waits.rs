//! A listing of user threads that block for every kind of thing, and take locks: what no fixture has.

use std::fmt::Write;

/// Rounds: in each, a thread takes two locks, gives them back in the order in which it took them, and blocks.
pub(crate) const ROUNDS: u64 = 200;

/// Two LWPs on two CPUs, with four threads each that take turns. A thread that blocks for another's end names it by its
/// number, which is 3. Kinds 14 and 15 have no meaning yet.
pub(crate) fn listing() -> String {
    let mut text = String::from("type\tdate_tick\tpid\tcpu\tname\tparams\n");
    text += "KERN\t1000\t0\t0\tKERN_CONTEXT_SWITCH\t70\nKERN\t1000\t0\t1\tKERN_CONTEXT_SWITCH\t71\n";
    let mut tick = 1000;
    let mut mounted = [0, 0];
    for round in 0..ROUNDS {
        let cpu = round as usize % 2;
        let mut user = |name: &str, params: &str| {
            tick += 7 + round % 5;
            writeln!(text, "USER\t{tick}\t{}\t{cpu}\t{name}\t{params}", 70 + cpu).unwrap();
        };
        let next = 1 + 4 * cpu as u64 + round / 2 % 4;
        if round >= 10 {
            user("USER_THREAD_READY", &format!("{next}"));
        }
        let (reason, kind) = (if mounted[cpu] == 0 { 0 } else { 3 }, round % 16);
        let on = if kind == 10 { 3 } else { 0x1000 + round % 3 };
        user("USER_CONTEXT_SWITCH", &format!("next={next} reason={reason} on={on} blocked_for={kind}"));
        mounted[cpu] = next;
        let mutex = format!("lock={} kind=1", 0x1000 + cpu);
        let rwlock = format!("lock=8192 kind={}", 2);
        user("LOCK_ACQUIRE", &mutex);
        user("LOCK_ACQUIRE", &rwlock);
        user("LOCK_RELEASE", &mutex);
        user("LOCK_RELEASE", &rwlock);
    }
    text
}
