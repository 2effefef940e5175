//! Random requests for locks, by the threads of a random machine.

use sigmund_measures::{History, LockRequest, Wakeup};
use sigmund_model::EndReason;

use super::{LWPS, THREADS, TICKS, number, random::Random, tid};

/// Adds requests for two mutexes (0x10, 0x11) and a readers-writer lock (0x20). What threads did is not touched: they
/// hold locks in whatever state they are.
pub(crate) fn add_locks(history: &mut History, seed: u64) {
    let mut random = Random::new(seed ^ 0x10c5);
    let mut rows = Vec::new();
    for (object, kind) in [(0x10, "mutex"), (0x11, "mutex"), (0x20, "rwlock-read"), (0x20, "rwlock-write")] {
        let readers = if kind == "rwlock-read" { 3 } else { 1 };
        for _ in 0..readers {
            let mut free = 1 + random.below(30) as i64;
            while free < TICKS {
                let acquired = (free + random.below(6) as i64).min(TICKS - 1);
                let wait = if random.one_in(3) { 0 } else { random.below(50) as i64 };
                let tick = (acquired - wait).max(0);
                let hold = random.below(40) as i64;
                let plain = random.one_in(4);
                let end = match random.below(8) {
                    0 => EndReason::Unseen,
                    1 => EndReason::Woken,
                    _ => EndReason::Released,
                };
                let site = ["parse at a.c:1", "serve"].get(random.below(3));
                let thread = (!plain).then(|| number(random.below(THREADS)));
                let lwp = Some(tid(random.below(LWPS)));
                rows.push(LockRequest {
                    tick,
                    wait: Some(acquired - tick),
                    hold: (end == EndReason::Released).then_some(hold.min(TICKS - acquired).max(0)),
                    thread,
                    lwp,
                    cpu: cpu_at(history, lwp, tick),
                    object,
                    kind: history.words.intern(kind),
                    holder: None,
                    holder_lwp: None,
                    is_contended: acquired > tick,
                    call_site: site.map(|site| history.words.intern(site)),
                    end,
                });
                free = acquired + hold;
            }
        }
    }
    rows.sort_by_key(|row| row.tick);
    history.locks = rows;
}

/// The CPU that an LWP is on, or in whose run queue it is.
fn cpu_at(history: &History, lwp: Option<u32>, tick: i64) -> Option<u32> {
    history.lwps.of(lwp?.into()).at(tick)?.1.cpu
}

/// Adds waits of LWPs for futexes, which wakeups in the kernel ended.
pub(crate) fn add_futexes(history: &mut History, seed: u64) {
    let mut random = Random::new(seed ^ 0xf07e);
    let kind = history.words.intern("futex");
    let is_of_lwp = |wakeup: &&Wakeup| !wakeup.is_unpark && wakeup.lwp.is_some();
    let wakeups: Vec<Wakeup> = history.wakeups.iter().filter(is_of_lwp).copied().collect();
    for wakeup in wakeups {
        if random.one_in(2) {
            continue;
        }
        let tick = (wakeup.tick - random.below(30) as i64).max(0);
        let end = (wakeup.tick + wakeup.latency.unwrap_or(0) + random.below(20) as i64).min(TICKS);
        history.locks.push(LockRequest {
            tick,
            wait: Some(end - tick),
            hold: None,
            thread: None,
            lwp: wakeup.lwp,
            cpu: cpu_at(history, wakeup.lwp, tick),
            object: 0x30 + random.below(2) as i64,
            kind,
            holder: None,
            holder_lwp: None,
            is_contended: true,
            call_site: None,
            end: EndReason::Woken,
        });
    }
    history.locks.sort_by_key(|row| row.tick);
}
