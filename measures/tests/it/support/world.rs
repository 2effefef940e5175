//! A random machine with everything that a measure can be asked about: locks, calls, functions, events, faults, gaps, marks.

use std::{collections::BTreeMap, sync::Arc};

use sigmund_measures::{EventAt, Fault, Gap, History, Interval, LockRequest, SeriesBuilder, Span};

use super::{
    CPUS, LWPS, Machine, THREADS, TICKS, calls::add_calls, lives::change, locks::add_futexes,
    locks::add_locks, marks::marks, number, random::Random, slices::rebuilt, slow_walk::damage, tid,
};

/// What a merge would make of it.
pub(crate) fn world(seed: u64) -> History {
    let mut machine = Machine::new(seed);
    if seed % 4 == 3 {
        damage(&mut machine, seed);
    }
    let (ticks, mut history) = machine.history();
    history.marks = marks(&ticks, seed);
    add_locks(&mut history, seed);
    keep_waits_apart(&mut history.locks);
    add_futexes(&mut history, seed);
    if seed % 2 == 1 {
        add_calls(&mut history, seed);
    }
    let mut random = Random::new(seed ^ 0x3017d);
    for span in &mut history.spans {
        span.is_function = random.one_in(2);
        span.source = random.one_in(3).then(|| history.words.intern("a.c:7"));
    }
    for tick in 0..=TICKS {
        let now = &ticks[tick as usize];
        for cpu in 0..CPUS {
            let lwp = now.cpus[cpu];
            let thread = lwp.and_then(|lwp| now.lwps[lwp].carries).map(number);
            let at = EventAt::new(tick, Some(lwp.map_or(0, tid)), Some(cpu as u32), thread);
            for _ in 0..[0, 0, 1, 2][random.below(4)] {
                history.events.push(at);
            }
            if random.one_in(20) {
                history.faults.push(Fault { at, is_user: random.one_in(2) });
            }
        }
    }
    for _ in 0..random.below(4) {
        let from = random.below(TICKS as usize) as i64;
        let interval = Interval::new(from, from + random.below(20) as i64);
        let cpu = random.one_in(2).then(|| random.below(CPUS) as u32);
        let lwp = random.one_in(2).then(|| tid(random.below(LWPS)));
        Arc::make_mut(&mut history.gaps).push(Gap { interval, cpu, lwp, is_sum: random.one_in(4) });
    }
    Arc::make_mut(&mut history.gaps).sort_by_key(|gap| gap.interval);
    if seed.is_multiple_of(3) {
        // Of several processes, and created by each other.
        for place in 0..THREADS {
            change(&mut history.names.threads, number(place), |life| {
                life.pid = [Some(70), Some(71), None][random.below(3)];
                life.created_by = (place > 0 && random.one_in(2)).then(|| number(random.below(place)));
            });
        }
        create(&mut history, &mut random);
        for place in 0..LWPS {
            change(&mut history.names.lwps, tid(place), |life| {
                life.pid = [Some(70), Some(71), None][random.below(3)];
            });
        }
    }
    if seed % 13 == 5 {
        history.interrupts.clear();
        history.has_no_interrupts = true;
    }
    if seed % 11 == 10 {
        // Of LWPs alone.
        history.names.threads = Default::default();
        (history.threads, history.mounted) = Default::default();
        history.unparks = Default::default();
        history.wakeups.iter_mut().for_each(|wakeup| (wakeup.thread, wakeup.waker_thread) = (None, None));
        history.spans.iter_mut().for_each(|span| span.thread = None);
        keep_nested(&mut history.spans);
        history.locks.iter_mut().for_each(|request| request.thread = None);
    }
    rebuilt(&history)
}

/// Threads are created at some tick before they are on an LWP for the first time.
fn create(history: &mut History, random: &mut Random) {
    let mut states = SeriesBuilder::default();
    for thread in history.threads.keys() {
        let of_thread = history.threads.of(thread);
        let first = of_thread.get(0).filter(|(_, stay)| stay.lwp.is_none() && random.one_in(2));
        let created = first.map(|(first, _)| first.from + random.below(first.ticks() as usize) as i64);
        for (interval, stay) in of_thread.iter() {
            let from = created.map_or(interval.from, |created| interval.from.max(created));
            states.push(thread, Interval { from, to: interval.to }, *stay);
        }
        if let Some(created) = created {
            change(&mut history.names.threads, thread, |life| life.interval.from = created);
            history.wakeups.retain(|wakeup| wakeup.thread != Some(thread) || wakeup.tick >= created);
        }
    }
    history.threads = states.build();
}

/// A thread waits for one lock at a time: leaves out what does not.
fn keep_waits_apart(locks: &mut Vec<LockRequest>) {
    let mut until: BTreeMap<Option<u64>, i64> = BTreeMap::new();
    locks.retain(|request| {
        let until = until.entry(request.thread).or_default();
        let is_apart = request.thread.is_none() || !request.is_contended || request.tick >= *until;
        if is_apart && request.is_contended {
            *until = request.tick + request.wait.unwrap_or(0);
        }
        is_apart
    });
}

/// What several threads did on one LWP need not nest: leaves out what does not.
fn keep_nested(spans: &mut Vec<Span>) {
    let mut open: BTreeMap<Option<u32>, Vec<Interval>> = BTreeMap::new();
    spans.sort_by_key(|span| (span.interval.from, -span.interval.to));
    spans.retain_mut(|span| {
        let open = open.entry(span.lwp).or_default();
        while open.last().is_some_and(|around| around.to <= span.interval.from) {
            open.pop();
        }
        let is_inside = open.last().is_none_or(|around| span.interval.to <= around.to);
        if is_inside {
            span.depth = open.len() as u32;
            open.push(span.interval);
        }
        is_inside
    });
}
