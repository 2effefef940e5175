//! Random machines that lost events, and what is known at one of their ticks.

use sigmund_model::{LwpState, ThreadState};

use super::{LWPS, Machine, Now, number, slow_walk::damage, tid};

/// A random machine. For a third of the seeds there are gaps in it, and its wakings come before its wakeups.
pub(crate) fn some_damaged(seed: u64) -> Machine {
    let mut machine = Machine::new(seed);
    if !is_damaged(seed) {
        return machine;
    }
    let (whole, wakeups) = (machine.ticks.clone(), machine.wakeups.clone());
    damage(&mut machine, seed);
    machine.hides_cpus = true;
    // A waking before the LWP left its CPU does not count as its wakeup.
    for (wakeup, old) in machine.wakeups.iter_mut().zip(wakeups) {
        let Some(lwp) = old.lwp.filter(|_| !old.is_unpark).map(|lwp| (lwp - tid(0)) as usize) else {
            continue;
        };
        let sleeps = |tick: &i64| whole[*tick as usize].lwps[lwp].state == LwpState::Sleeping;
        let since = (0..old.tick).rev().take_while(sleeps).last().unwrap_or(old.tick);
        let early = (since - wakeup.tick).max(0);
        wakeup.tick += early;
        wakeup.latency = wakeup.latency.map(|latency| latency - early);
    }
    for now in &mut machine.ticks {
        for place in 0..LWPS {
            let carried = mounted_on(now, place);
            now.lwps[place].carries = carried;
            if let (Some(thread), LwpState::Unknown) = (carried, now.lwps[place].state) {
                now.threads[thread].state = ThreadState::Mounted;
            }
        }
    }
    let ticks = &machine.ticks;
    for wakeup in &mut machine.wakeups {
        let then = &ticks[wakeup.tick as usize];
        let place = wakeup.lwp.map(|lwp| (lwp - tid(0)) as usize);
        if let Some(place) = place.filter(|_| !wakeup.is_unpark) {
            wakeup.thread = then.lwps[place].carries.map(number);
        }
        // Over a gap it is not known to which dispatch a wakeup led.
        let is_lost = |now: &Now| match (wakeup.is_unpark, wakeup.thread, place) {
            (true, Some(thread), _) => now.threads[thread as usize - 1].state == ThreadState::Unknown,
            (_, _, Some(place)) => now.lwps[place].state == LwpState::Unknown,
            _ => false,
        };
        let until = |latency| (wakeup.tick + latency) as usize;
        wakeup.latency = wakeup
            .latency
            .filter(|latency| !ticks[wakeup.tick as usize..until(*latency)].iter().any(is_lost));
    }
    machine
}

/// Whether `some_damaged` makes gaps for a seed.
pub(crate) fn is_damaged(seed: u64) -> bool {
    seed % 3 == 1
}

/// The user thread that is known to be on the LWP at a place.
fn mounted_on(now: &Now, lwp: usize) -> Option<usize> {
    now.threads.iter().position(|thread| thread.lwp == Some(lwp))
}

/// Who had a CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Had {
    /// The LWP at a place.
    Lwp(usize),
    Idle,
    Unknown,
}

/// Who had a CPU at a tick. It is idle after an LWP was seen to leave it, and not known after one was lost on it. (What
/// comes unseen after that would be a gap of the CPU in a trace, which `damage` does not make.)
pub(crate) fn had_cpu(ticks: &[Now], cpu: usize, tick: i64) -> Had {
    let on = |tick: usize| {
        let lwps = &ticks[tick].lwps;
        (0..LWPS).find(|lwp| lwps[*lwp].state == LwpState::Running && lwps[*lwp].cpu == cpu)
    };
    if let Some(lwp) = on(tick as usize) {
        return Had::Lwp(lwp);
    }
    let last = (0..tick as usize).rev().find_map(|then| Some((then, on(then)?)));
    let is_left = |(then, lwp): (usize, usize)| ticks[then + 1].lwps[lwp].state != LwpState::Unknown;
    if last.is_some_and(is_left) { Had::Idle } else { Had::Unknown }
}

/// Who had a CPU at a tick, as answers name it: of LWPs without the user threads on them.
pub(crate) fn label(ticks: &[Now], cpu: usize, tick: i64, of_lwps: bool) -> String {
    match had_cpu(ticks, cpu, tick) {
        Had::Idle => "idle".into(),
        Had::Unknown => "unknown".into(),
        Had::Lwp(lwp) => match ticks[tick as usize].lwps[lwp].carries.filter(|_| !of_lwps) {
            Some(thread) => format!("{}(work/{thread})", number(thread)),
            None => format!("LWP {}(lwp/{lwp})", tid(lwp)),
        },
    }
}
