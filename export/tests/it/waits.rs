//! A listing of user threads that block with every kind of wait, and take locks, which no fixture contains.

use std::fmt::Write;

use sigmund_model::WaitKind;

/// Number of rounds. In each, a thread takes two locks, releases them in the same order, and blocks.
pub(crate) const ROUNDS: u64 = 200;

/// Two LWPs on two CPUs, each with four threads that take turns. A thread that waits for another's end records its
/// number, which is 3. The number after the last kind has no meaning yet.
pub(crate) fn listing() -> String {
    let mut text = String::from("type\tdate_tick\tpid\tcpu\tname\tparams\n");
    text += "KERN\t1000\t0\t0\tKERN_CONTEXT_SWITCH\t70\nKERN\t1000\t0\t1\tKERN_CONTEXT_SWITCH\t71\n";
    let mut tick = 1000;
    let mut mounted = [0, 0];
    let numbers = WaitKind::ALL.len() as u64 + 2;
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
        let (reason, kind) = (if mounted[cpu] == 0 { 0 } else { 3 }, round % numbers);
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
