//! The walk back, tick by tick through snapshots.

use std::collections::BTreeMap;

use sigmund_measures::{Actor, Blame, By, Context, History, Life, Piece, Source, Syscall, Wakeup, What};
use sigmund_model::{LwpState, ThreadState, WaitKind};

use super::{
    LWPS, Machine, Now, THREADS, TICKS, ThreadNow,
    damage::{Had, had_cpu},
    number, tid,
};

use LwpState::{Runnable, Running, Sleeping};
use ThreadState::{Active, Blocked, InKernel, Ready, Stalled};

/// Numbers that look random.
pub(crate) fn mix(seed: u64, place: u64) -> u64 {
    let mut x = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ place.wrapping_mul(0xd1b5_4a32_d192_ed03);
    x ^= x >> 29;
    x = x.wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x ^ (x >> 32)
}

/// Gaps in which states are unknown, and wakings before their wakeups.
pub(crate) fn damage(machine: &mut Machine, seed: u64) {
    let window = |place| {
        let from = (mix(seed, place) % 380) as usize;
        from..from + 1 + (mix(seed, place + 1) % 25) as usize
    };
    let last = machine.ticks.len();
    if !seed.is_multiple_of(3) {
        for thread in 0..THREADS {
            for tick in window(10 * thread as u64).filter(|tick| *tick < last) {
                let state = ThreadState::Unknown;
                machine.ticks[tick].threads[thread] =
                    ThreadNow { state, lwp: None, waits_for: None, object: 0 };
            }
        }
        for lwp in 0..LWPS {
            for tick in window(1000 + 10 * lwp as u64).filter(|tick| *tick < last) {
                machine.ticks[tick].lwps[lwp].state = LwpState::Unknown;
            }
        }
    }
    for (place, wakeup) in machine.wakeups.iter_mut().enumerate() {
        let earlier = (mix(seed, 5000 + place as u64) % 6) as i64;
        if !wakeup.is_unpark && earlier > 2 {
            wakeup.tick = (wakeup.tick - earlier).max(0);
            wakeup.latency = wakeup.latency.map(|latency| latency + earlier);
        }
    }
}

/// A machine as snapshots, and what the walk needs beside them.
pub(crate) struct Slow<'m> {
    pub(crate) ticks: &'m [Now],
    pub(crate) history: &'m History,
    /// Where the interrupts of the machine are in the history, which sorts them.
    pub(crate) interrupts: Vec<u32>,
}

/// What a walk says of one tick.
pub(crate) type Tick = (Actor, Option<u32>, Option<u32>, What);

impl Slow<'_> {
    pub(crate) fn is_same(&self, actor: Actor, a: i64, b: i64) -> bool {
        let (a, b) = (&self.ticks[a as usize], &self.ticks[b as usize]);
        match actor {
            Actor::Thread(thread) => a.threads[thread as usize - 1] == b.threads[thread as usize - 1],
            Actor::Lwp(lwp) => {
                let (a, b) = (a.lwps[lwp as usize - 100], b.lwps[lwp as usize - 100]);
                (a.state, a.cpu) == (b.state, b.cpu)
            }
        }
    }

    /// Each tick from the last back to `from`.
    pub(crate) fn walk(&self, actor: Actor, from: i64, tick: i64) -> Vec<Tick> {
        self.walk_with_waits(actor, from, tick).into_iter().map(|(tick, _)| tick).collect()
    }

    /// The same, each with what the one waited for whose wakeup led to its actor.
    pub(crate) fn walk_with_waits(
        &self,
        mut actor: Actor,
        from: i64,
        mut tick: i64,
    ) -> Vec<(Tick, Option<What>)> {
        let mut seen = Vec::new();
        let mut link = None;
        let mut jumps = 0;
        'walk: while tick > from {
            if jumps > 64 {
                let lwp = if let Actor::Lwp(lwp) = actor { Some(lwp) } else { None };
                seen.extend((from..tick).map(|_| ((actor, lwp, None, What::Unknown), link)));
                break 'walk;
            }
            let life = match actor {
                Actor::Thread(thread) => self.history.names.threads.get(thread),
                Actor::Lwp(lwp) => self.history.names.lwps.get(lwp),
            };
            let life = life.expect("its life");
            if let Some(creator) = life.created_by.filter(|_| tick <= life.interval.from) {
                (actor, link) = (Actor::Thread(creator), None);
                jumps += 1;
                continue;
            }
            let now = &self.ticks[tick as usize - 1];
            let carrier = match actor {
                Actor::Thread(thread) => now.threads[thread as usize - 1].lwp,
                Actor::Lwp(lwp) => Some(lwp as usize - 100),
            };
            let cpu = carrier.map(|carrier| now.lwps[carrier].cpu);
            let (lwp, cpu32) = (carrier.map(tid), cpu.map(|cpu| cpu as u32));
            let call = || {
                let inside = |call: &&Syscall| Some(call.lwp) == lwp && call.interval.contains(tick - 1);
                What::InSystemCall(self.history.syscalls.iter().find(inside).map(|call| call.name))
            };
            // What it is at this tick; for a wait also whose wakeup ends it.
            let mut wait = None;
            let what = match actor {
                Actor::Thread(thread) => {
                    let stay = now.threads[thread as usize - 1];
                    match stay.state {
                        Active => What::Running,
                        Stalled => What::WaitingForCpu,
                        Ready => What::WaitingForLwp,
                        Blocked => {
                            wait = Some(actor);
                            What::BlockedOn { kind: stay.waits_for, object: stay.object }
                        }
                        InKernel => {
                            wait = lwp.map(Actor::Lwp);
                            call()
                        }
                        _ => What::Unknown,
                    }
                }
                Actor::Lwp(_) => match now.lwps[carrier.unwrap()].state {
                    Running => What::Running,
                    Runnable => What::WaitingForCpu,
                    Sleeping => {
                        wait = Some(actor);
                        call()
                    }
                    _ => What::Unknown,
                },
            };
            let Some(target) = wait else {
                let interrupt = cpu.and_then(|cpu| now.interrupts[cpu].last().copied());
                let what = match (what, interrupt) {
                    (What::Running, Some(place)) => What::Interrupt(self.interrupts[place]),
                    _ => what,
                };
                let cpu = cpu32.filter(|_| what != What::Unknown);
                seen.push(((actor, lwp, cpu, what), link));
                (tick, jumps) = (tick - 1, 0);
                continue;
            };
            let mut since = tick - 1;
            while since > 0 && self.is_same(actor, since - 1, tick - 1) && life_began(&life) < since {
                since -= 1;
            }
            let last = tick - 1;
            let goes_on = tick == TICKS || self.is_same(actor, last, tick);
            let next = (tick < TICKS).then(|| &self.ticks[tick as usize]);
            let runs_next = next.is_some_and(|next| match actor {
                Actor::Thread(thread) => {
                    matches!(next.threads[thread as usize - 1].state, Active | Ready | Stalled)
                }
                Actor::Lwp(lwp) => matches!(next.lwps[lwp as usize - 100].state, Running | Runnable),
            });
            let is_of = |wakeup: &&Wakeup| match target {
                Actor::Thread(thread) => wakeup.is_unpark && wakeup.thread == Some(thread),
                Actor::Lwp(lwp) => !wakeup.is_unpark && wakeup.lwp == Some(lwp),
            };
            let ended = |wakeup: &&Wakeup| match wakeup.latency {
                Some(latency) => (since..=tick).contains(&wakeup.tick) && wakeup.tick + latency >= tick,
                None => wakeup.tick == tick,
            };
            let mut candidates: Vec<&Wakeup> =
                self.history.wakeups.iter().filter(is_of).filter(ended).collect();
            candidates.sort_by_key(|wakeup| (wakeup.latency.is_some(), wakeup.tick));
            let wakeup = candidates.last().filter(|_| !goes_on && runs_next);
            let mut fill = |tick: &mut i64, until: i64, cpu, what| {
                while *tick > until.max(from) {
                    seen.push(((actor, lwp, cpu, what), link));
                    *tick -= 1;
                    jumps = 0;
                }
            };
            let Some(wakeup) = wakeup else {
                fill(&mut tick, since, cpu32, what);
                continue;
            };
            fill(&mut tick, wakeup.tick, wakeup.target_cpu.or(cpu32), What::WaitingForCpu);
            if tick <= from {
                break 'walk;
            }
            let then = &self.ticks[wakeup.tick as usize];
            let waker = match wakeup.context {
                Context::Irq => {
                    let open = then.interrupts[wakeup.cpu.unwrap() as usize].last();
                    let source = open.map_or(Source::Context(Context::Irq), |place| {
                        Source::Interrupt(self.interrupts[*place])
                    });
                    fill(&mut tick, since, cpu32, What::WaitingFor(source));
                    continue;
                }
                Context::Idle => None,
                _ => {
                    let lwp = wakeup.waker_lwp.unwrap();
                    let carried = then.threads.iter().position(|thread| thread.lwp.map(tid) == Some(lwp));
                    let thread = wakeup.waker_thread.or(carried.map(number));
                    let kind = if let What::BlockedOn { kind, .. } = what { kind } else { None };
                    let has_noticed = matches!(kind, Some(WaitKind::Sleep | WaitKind::Io));
                    (!has_noticed).then(|| thread.map_or(Actor::Lwp(lwp), Actor::Thread))
                }
            };
            match waker.filter(|waker| *waker != actor && *waker != target) {
                Some(waker) => {
                    (actor, link) = (waker, Some(what));
                    jumps += 1;
                }
                None => {
                    if let What::BlockedOn { kind: Some(WaitKind::Sleep), object } = what
                        && wakeup.context != Context::Idle
                        && (since..tick).contains(&object)
                    {
                        fill(&mut tick, object, cpu32, What::WaitingForLwp);
                    }
                    fill(&mut tick, since, cpu32, what);
                }
            }
        }
        seen
    }
}

impl Slow<'_> {
    /// Who was mounted on an LWP at a tick; the place of the LWP.
    pub(crate) fn carried(&self, lwp: usize, tick: i64) -> Option<Actor> {
        let on = |thread: &ThreadNow| thread.lwp == Some(lwp);
        self.ticks[tick as usize].threads.iter().position(on).map(|thread| Actor::Thread(number(thread)))
    }

    /// Who had a CPU at a tick.
    pub(crate) fn had_cpu(&self, cpu: usize, tick: i64) -> Blame {
        match had_cpu(self.ticks, cpu, tick) {
            Had::Lwp(lwp) => Blame::Who(self.carried(lwp, tick).unwrap_or(Actor::Lwp(tid(lwp)))),
            Had::Idle => Blame::Idle,
            Had::Unknown => Blame::Unknown,
        }
    }

    /// LWPs that carry user threads at all.
    pub(crate) fn carriers(&self) -> impl Iterator<Item = usize> {
        (0..LWPS).filter(|lwp| (0..TICKS).any(|tick| self.carried(*lwp, tick).is_some()))
    }

    /// Blames sum to the piece; each tick of a wait for a CPU is of who had it; of a wait for an LWP each LWP's ticks
    /// count alike.
    pub(crate) fn check_blames(&self, piece: &Piece) {
        let blames = piece.blames(self.history, By::Thread);
        assert_eq!(blames.iter().map(|(_, ticks)| ticks).sum::<i64>(), piece.interval.ticks());
        let mut slow: BTreeMap<Blame, i64> = BTreeMap::new();
        for tick in piece.interval.from..piece.interval.to {
            let now = &self.ticks[tick as usize];
            if piece.what == What::WaitingForCpu {
                let blame = self.had_cpu(piece.cpu.unwrap() as usize, tick);
                *slow.entry(blame).or_default() += 1;
            } else if piece.what == What::WaitingForLwp {
                for lwp in self.carriers() {
                    let blame = match (self.carried(lwp, tick), now.lwps[lwp].state) {
                        (Some(thread), _) => Blame::Who(thread),
                        (None, Running) => Blame::LwpWithoutThread,
                        (None, Runnable) => Blame::LwpStalled,
                        (None, Sleeping) => Blame::LwpAsleep,
                        _ => Blame::Unknown,
                    };
                    *slow.entry(blame).or_default() += 1;
                }
            }
        }
        let of_lwps = if piece.what == What::WaitingForLwp { self.carriers().count() as i64 } else { 1 };
        for (blame, ticks) in slow {
            let found = blames.iter().find(|(other, _)| *other == blame).map_or(0, |(_, ticks)| *ticks);
            assert!((found * of_lwps - ticks).abs() < of_lwps, "{blame:?}: {found} of {ticks}: {piece:?}");
        }
    }
}

/// When it was created, if its creator is known.
pub(crate) fn life_began(life: &Life) -> i64 {
    if life.created_by.is_some() { life.interval.from } else { i64::MIN }
}

pub(crate) fn each_tick(pieces: &[Piece]) -> Vec<Tick> {
    let of_piece = |piece: &Piece| {
        let ticks = piece.interval.ticks() as usize;
        std::iter::repeat_n((piece.actor, piece.lwp, piece.cpu, piece.what), ticks)
    };
    pieces.iter().rev().flat_map(of_piece).collect()
}
