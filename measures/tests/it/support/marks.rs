//! Random events that FROM and TO select, of a random machine.

use sigmund_measures::{Context, Mark};

use super::{CPUS, LWPS, Now, TICKS, number, slow_walk::mix, tid};

/// Events at random, on CPUs that run something. Some are the last of what ran a tick before, which may be a switch to what runs
/// now, or the exit of an interrupt; some move another LWP.
pub(crate) fn marks(ticks: &[Now], seed: u64) -> Vec<Mark> {
    let mut marks = Vec::new();
    for place in 0..60 {
        let random = mix(seed, 100 + place);
        let (tick, cpu) = ((random % TICKS as u64) as usize, (random >> 20) as usize % CPUS);
        let (now, before) = (&ticks[tick], &ticks[tick.saturating_sub(1)]);
        let is_last = (random >> 44).is_multiple_of(3);
        let is_exit = is_last && now.interrupts[cpu].len() < before.interrupts[cpu].len();
        let in_interrupt = !now.interrupts[cpu].is_empty() || is_exit;
        let is_last = is_last && !in_interrupt;
        let next = now.cpus[cpu];
        let now = if is_last { before } else { now };
        let lwp = now.cpus[cpu];
        let other = (random >> 48).is_multiple_of(5).then_some((random >> 52) as usize % LWPS);
        let target = if is_last && lwp != next { next } else { other };
        let context = match (in_interrupt, lwp) {
            (true, _) => Context::Irq,
            (false, Some(_)) => Context::Task,
            (false, None) => Context::Idle,
        };
        let is_from = (random >> 30).is_multiple_of(3);
        marks.push(Mark {
            tick: tick as i64,
            cpu: Some(cpu as u32),
            context,
            lwp: Some(lwp.map_or(0, tid)),
            thread: lwp.and_then(|lwp| now.lwps[lwp].carries).filter(|_| !in_interrupt).map(number),
            target_lwp: target.map(tid),
            target_thread: target.and_then(|lwp| ticks[tick].lwps[lwp].carries).map(number),
            key: (random >> 40) % 3,
            is_from,
            is_to: !(random >> 33).is_multiple_of(3) && (!is_from || (random >> 36).is_multiple_of(2)),
        });
    }
    marks.sort_by_key(|mark| mark.tick);
    marks
}
