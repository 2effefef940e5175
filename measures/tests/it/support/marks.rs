//! Random events that FROM and TO select, of a random machine.

use sigmund_measures::{Context, Mark};

use super::{CPUS, Now, TICKS, number, slow_walk::mix, tid};

/// Events at random, on CPUs that run something. Some are the last of what ran a tick before.
pub(crate) fn marks(ticks: &[Now], seed: u64) -> Vec<Mark> {
    let mut marks = Vec::new();
    for place in 0..60 {
        let random = mix(seed, 100 + place);
        let (tick, cpu) = ((random % TICKS as u64) as usize, (random >> 20) as usize % CPUS);
        let now = &ticks[tick];
        let in_interrupt = !now.interrupts[cpu].is_empty();
        let is_last = (random >> 44).is_multiple_of(3) && !in_interrupt;
        let now = &ticks[tick.saturating_sub(usize::from(is_last))];
        let lwp = now.cpus[cpu];
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
            key: (random >> 40) % 3,
            is_from,
            is_to: !(random >> 33).is_multiple_of(3) && (!is_from || (random >> 36).is_multiple_of(2)),
        });
    }
    marks.sort_by_key(|mark| mark.tick);
    marks
}
