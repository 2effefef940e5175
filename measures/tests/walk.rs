//! The walk back: drawn by hand, and on random machines against walking tick by tick through snapshots.

mod support;

use std::collections::BTreeMap;

use sigmund_measures::{
    Actor, Blame, By, Context, History, HistoryBuilder, Interrupt, Interval, Life, LwpStay, Piece, Source,
    Syscall, ThreadStay, Wakeup, What, walk_back,
};
use sigmund_model::{EndReason, LwpState, ThreadState, WaitKind};
use support::{CPUS, LWPS, Machine, Now, THREADS, TICKS, ThreadNow, number, tid};

use LwpState::{Runnable, Running, Sleeping};
use ThreadState::{Active, Blocked, InKernel, New, Ready, Stalled};

fn at(from: i64, to: i64) -> Interval {
    Interval { from, to }
}

#[derive(Default)]
struct Drawing(HistoryBuilder);

impl Drawing {
    /// A user thread of process 70: from, to, state, LWP.
    fn thread(&mut self, thread: u64, states: &[(i64, i64, ThreadState, u32)]) -> &mut Self {
        for (from, to, state, lwp) in states {
            let lwp = (*lwp != 0).then_some(*lwp);
            let is_blocked = *state == Blocked;
            let (waits_for, object) = if is_blocked { (Some(WaitKind::Mutex), 0x10) } else { (None, 0) };
            let stay = ThreadStay { state: *state, lwp, waits_for, object, end: None };
            self.0.thread_state(thread, at(*from, *to), stay);
        }
        let interval = at(states[0].0, 100);
        let life = Life { name: None, pid: Some(70), interval, created_by: None };
        self.0.history().names.threads.insert(thread, life);
        self
    }

    /// An LWP of process 70: from, to, state, CPU.
    fn lwp(&mut self, lwp: u32, states: &[(i64, i64, LwpState, u32)]) -> &mut Self {
        for (from, to, state, cpu) in states {
            self.0.lwp_state(lwp, at(*from, *to), LwpStay { state: *state, cpu: Some(*cpu), end: None });
        }
        let life = Life { name: None, pid: Some(70), interval: at(states[0].0, 100), created_by: None };
        self.0.history().names.lwps.insert(lwp, life);
        self
    }

    fn wakeup(&mut self, tick: i64, latency: i64, context: Context, waker: Actor, woken: Actor) -> &mut Self {
        let mut wakeup = Wakeup {
            tick,
            is_unpark: matches!(woken, Actor::Thread(_)),
            context,
            waker_lwp: None,
            waker_thread: None,
            lwp: None,
            thread: None,
            cpu: Some(0),
            target_cpu: None,
            latency: Some(latency),
        };
        match waker {
            Actor::Thread(thread) => wakeup.waker_thread = Some(thread),
            Actor::Lwp(lwp) => wakeup.waker_lwp = Some(lwp),
        }
        match woken {
            Actor::Thread(thread) => wakeup.thread = Some(thread),
            Actor::Lwp(lwp) => wakeup.lwp = Some(lwp),
        }
        self.0.history().wakeups.push(wakeup);
        self
    }

    fn interrupt(&mut self, from: i64, to: i64, cpu: u32, kind: &str) -> &mut Self {
        let kind = self.0.history().words.intern(kind);
        self.0.history().interrupts.push(Interrupt {
            interval: at(from, to),
            cpu,
            kind,
            number: Some(1),
            name: None,
            lwp: None,
            thread: None,
            depth: 0,
            end: EndReason::Returned,
        });
        self
    }

    fn call(&mut self, from: i64, to: i64, lwp: u32, name: &str) -> &mut Self {
        let name = self.0.history().words.intern(name);
        let (interval, end) = (at(from, to), EndReason::Returned);
        self.0.history().syscalls.push(Syscall {
            interval,
            lwp,
            thread: None,
            name,
            ret: None,
            off_cpu: None,
            end,
        });
        self
    }

    fn build(&mut self) -> History {
        std::mem::take(&mut self.0).build()
    }
}

fn pieces(history: &History, actor: Actor, from: i64, to: i64) -> Vec<(i64, i64, Actor, What)> {
    let pieces = walk_back(history, actor, at(from, to));
    pieces.iter().map(|piece| (piece.interval.from, piece.interval.to, piece.actor, piece.what)).collect()
}

const X: Actor = Actor::Thread(1);
const Y: Actor = Actor::Thread(2);
const MUTEX: What = What::BlockedOn { kind: Some(WaitKind::Mutex), object: 0x10 };

// thread 1 |--active--|------- blocked ----------|--ready--|--active--|
//          0          10                         40        50         60
// thread 2 |ready|---- active, irq 12-15 ---|stalled|--- active ------|ready
//          0     5                          20      30                50
// LWP 100  |--running, CPU 0, thread 1--|---------- asleep -----------|
//          0                            10                            60
// LWP 101  |---- running, CPU 1, thread 2 --|in queue|---- running ---| then thread 1
//          0     5                          20       30               50          60
// LWP 900                                   | on 1   |
fn two_levels() -> History {
    let mut drawing = Drawing::default();
    drawing
        .thread(1, &[(0, 10, Active, 100), (10, 40, Blocked, 0), (40, 50, Ready, 0), (50, 60, Active, 101)])
        .thread(2, &[(0, 5, Ready, 0), (5, 20, Active, 101), (20, 30, Stalled, 101), (30, 50, Active, 101)])
        .lwp(100, &[(0, 10, Running, 0), (10, 60, Sleeping, 0)])
        .lwp(101, &[(0, 20, Running, 1), (20, 30, Runnable, 1), (30, 60, Running, 1)])
        .lwp(900, &[(20, 30, Running, 1)])
        .interrupt(12, 15, 1, "irq")
        .wakeup(40, 10, Context::Task, Y, X);
    drawing.build()
}

#[test]
fn the_walk_follows_an_unpark_and_finds_the_stalled_holder() {
    use What::{Interrupt, Running, WaitingForCpu, WaitingForLwp};
    let history = two_levels();
    let expected = [
        (0, 5, Y, WaitingForLwp),
        (5, 12, Y, Running),
        (12, 15, Y, Interrupt(0)),
        (15, 20, Y, Running),
        (20, 30, Y, WaitingForCpu),
        (30, 40, Y, Running),
        (40, 50, X, WaitingForLwp),
        (50, 60, X, Running),
    ];
    assert_eq!(pieces(&history, X, 0, 60), expected);
    // The window cuts at both ends.
    let cut = [(22, 30, Y, WaitingForCpu), (30, 40, Y, Running), (40, 47, X, WaitingForLwp)];
    assert_eq!(pieces(&history, X, 22, 47), cut);
    // In the middle of the wait nobody has ended it.
    assert_eq!(pieces(&history, X, 5, 30), [(5, 10, X, Running), (10, 30, X, MUTEX)]);

    let walk = walk_back(&history, X, at(0, 60));
    let blames = |place: usize| walk[place].blames(&history, By::Thread);
    assert_eq!(blames(4), [(Blame::Who(Actor::Lwp(900)), 10)]);
    // LWP 100 slept, LWP 101 carried thread 2: each has half of it.
    assert_eq!(blames(6), [(Blame::Who(Y), 5), (Blame::LwpAsleep, 5)]);
    assert_eq!((walk[5].lwp, walk[5].cpu, walk[7].link), (Some(101), Some(1), None));
    let link = sigmund_measures::Link::Woke { woken: X, since: 10, wait: MUTEX };
    assert!(walk[..6].iter().all(|piece| piece.link == Some(link)));
}

// LWP 200 |--running--|---- asleep in read ----|w---|--runnable--|--running--|
//         0           10                       28   30           35          40
#[test]
fn an_interrupt_that_wakes_is_what_was_waited_for() {
    use What::{InSystemCall, WaitingFor, WaitingForCpu};
    let lwp = Actor::Lwp(200);
    let walk = |context, waker, kind: &str| {
        let mut drawing = Drawing::default();
        let states =
            [(0, 10, Running, 0), (10, 30, Sleeping, 0), (30, 35, Runnable, 0), (35, 40, Running, 0)];
        drawing.lwp(200, &states).lwp(300, &[(0, 40, Running, 1)]).call(9, 36, 200, "read");
        drawing.interrupt(27, 29, 0, kind).wakeup(28, 7, context, Actor::Lwp(waker), lwp);
        let history = drawing.build();
        let pieces = pieces(&history, lwp, 0, 40);
        assert_eq!(pieces[pieces.len() - 3..][0], (28, 30, lwp, WaitingForCpu));
        assert_eq!(pieces[pieces.len() - 2..][0], (30, 35, lwp, WaitingForCpu));
        assert_eq!(pieces[pieces.len() - 1], (35, 40, lwp, What::Running));
        (history.words.get("read"), pieces[..pieces.len() - 3].to_vec())
    };
    let before = (0, 10, lwp, What::Running);
    let by_softirq = walk(Context::Softirq, 200, "softirq").1;
    assert_eq!(by_softirq, [before, (10, 28, lwp, WaitingFor(Source::Interrupt(0)))]);
    // The entry of the timer's interrupt is not traced; what was open is a softirq.
    let by_timer = walk(Context::Irq, 200, "softirq").1;
    assert_eq!(by_timer, [before, (10, 28, lwp, WaitingFor(Source::Context(Context::Irq)))]);
    let (read, by_idle) = walk(Context::Idle, 0, "irq");
    assert_eq!(by_idle, [before, (10, 28, lwp, InSystemCall(read))]);
    let by_other = walk(Context::Task, 300, "irq").1;
    assert_eq!(by_other, [(0, 28, Actor::Lwp(300), What::Running)]);
}

// thread 1 |------------- active ---------------------|
//          0                  20                      60
// thread 2                    |new  |---- active -----|   created by thread 1
//                             20    30                60
#[test]
fn what_was_before_a_creation_is_the_creators() {
    let mut drawing = Drawing::default();
    drawing
        .thread(1, &[(0, 60, Active, 100)])
        .thread(2, &[(20, 30, New, 0), (30, 60, Active, 101)])
        .lwp(100, &[(0, 60, Running, 0)])
        .lwp(101, &[(0, 60, Running, 1)]);
    let mut history = drawing.build();
    let with_creator = |created_by, history: &mut History| {
        history.names.threads.get_mut(&2).unwrap().created_by = created_by;
        pieces(history, Y, 0, 60)
    };
    let of_two = [(20, 30, Y, What::WaitingForLwp), (30, 60, Y, What::Running)];
    let mut expected = vec![(0, 20, X, What::Running)];
    expected.extend(of_two);
    assert_eq!(with_creator(Some(1), &mut history), expected);
    for nobody in [None, Some(2)] {
        expected[0] = (0, 20, Y, What::Unknown);
        assert_eq!(with_creator(nobody, &mut history), expected);
    }
}

#[test]
fn threads_that_wake_each_other_at_one_tick_end_in_the_unknown() {
    let mut drawing = Drawing::default();
    for thread in [1, 2] {
        drawing.thread(thread, &[(0, 20, Blocked, 0), (20, 30, Ready, 0)]);
    }
    drawing.wakeup(20, 10, Context::Task, X, Y).wakeup(20, 10, Context::Task, Y, X);
    let history = drawing.build();
    let walk = pieces(&history, X, 0, 30);
    assert_eq!(walk.len(), 2);
    assert_eq!((walk[0].0, walk[0].1, walk[0].3), (0, 20, What::Unknown));
    assert_eq!(walk[1], (20, 30, X, What::WaitingForLwp));
}

/// Numbers that look random.
fn mix(seed: u64, place: u64) -> u64 {
    let mut x = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ place.wrapping_mul(0xd1b5_4a32_d192_ed03);
    x ^= x >> 29;
    x = x.wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x ^ (x >> 32)
}

/// Gaps in which states are unknown, and wakings before their wakeups.
fn damage(machine: &mut Machine, seed: u64) {
    let window = |place| {
        let from = (mix(seed, place) % 380) as usize;
        from..from + 1 + (mix(seed, place + 1) % 25) as usize
    };
    let last = machine.ticks.len();
    if seed % 3 != 0 {
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
struct Slow<'m> {
    ticks: &'m [Now],
    history: &'m History,
    /// Where the interrupts of the machine are in the history, which sorts them.
    interrupts: Vec<u32>,
}

/// What a walk says of one tick.
type Tick = (Actor, Option<u32>, Option<u32>, What);

impl Slow<'_> {
    fn is_same(&self, actor: Actor, a: i64, b: i64) -> bool {
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
    fn walk(&self, mut actor: Actor, from: i64, mut tick: i64) -> Vec<Tick> {
        let mut seen = Vec::new();
        let mut jumps = 0;
        'walk: while tick > from {
            if jumps > 64 {
                let lwp = if let Actor::Lwp(lwp) = actor { Some(lwp) } else { None };
                seen.extend((from..tick).map(|_| (actor, lwp, None, What::Unknown)));
                break 'walk;
            }
            let life = match actor {
                Actor::Thread(thread) => &self.history.names.threads[&thread],
                Actor::Lwp(lwp) => &self.history.names.lwps[&lwp],
            };
            if let Some(creator) = life.created_by.filter(|_| tick <= life.interval.from) {
                actor = Actor::Thread(creator);
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
                seen.push((actor, lwp, cpu, what));
                (tick, jumps) = (tick - 1, 0);
                continue;
            };
            let mut since = tick - 1;
            while since > 0 && self.is_same(actor, since - 1, tick - 1) && life_began(life) < since {
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
                None => (since + 1..=tick).contains(&wakeup.tick),
            };
            let mut candidates: Vec<&Wakeup> =
                self.history.wakeups.iter().filter(is_of).filter(ended).collect();
            candidates.sort_by_key(|wakeup| (wakeup.latency.is_some(), wakeup.tick));
            let wakeup = candidates.last().filter(|_| !goes_on && runs_next);
            let mut fill = |tick: &mut i64, until: i64, cpu, what| {
                while *tick > until.max(from) {
                    seen.push((actor, lwp, cpu, what));
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
                    Some(thread.map_or(Actor::Lwp(lwp), Actor::Thread))
                }
            };
            match waker.filter(|waker| *waker != actor && *waker != target) {
                Some(waker) => {
                    actor = waker;
                    jumps += 1;
                }
                None => fill(&mut tick, since, cpu32, what),
            }
        }
        seen
    }
}

impl Slow<'_> {
    /// Who was mounted on an LWP at a tick; the place of the LWP.
    fn carried(&self, lwp: usize, tick: i64) -> Option<Actor> {
        let on = |thread: &ThreadNow| thread.lwp == Some(lwp);
        self.ticks[tick as usize].threads.iter().position(on).map(|thread| Actor::Thread(number(thread)))
    }

    /// Blames sum to the piece; each tick of a wait for a CPU is of who had it; of a wait for an LWP each LWP's ticks
    /// count alike.
    fn check_blames(&self, piece: &Piece) {
        let blames = piece.blames(self.history, By::Thread);
        assert_eq!(blames.iter().map(|(_, ticks)| ticks).sum::<i64>(), piece.interval.ticks());
        let mut slow: BTreeMap<Blame, i64> = BTreeMap::new();
        for tick in piece.interval.from..piece.interval.to {
            let now = &self.ticks[tick as usize];
            if piece.what == What::WaitingForCpu {
                let cpu = piece.cpu.unwrap() as usize;
                let runs = |lwp: &usize| now.lwps[*lwp].state == Running && now.lwps[*lwp].cpu == cpu;
                let blame = match (0..LWPS).find(runs) {
                    Some(lwp) => Blame::Who(self.carried(lwp, tick).unwrap_or(Actor::Lwp(tid(lwp)))),
                    None if now.cpus[cpu].is_none() => Blame::Idle,
                    None => Blame::Unknown,
                };
                *slow.entry(blame).or_default() += 1;
            } else if piece.what == What::WaitingForLwp {
                for lwp in 0..LWPS {
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
        let of_lwps = if piece.what == What::WaitingForLwp { LWPS as i64 } else { 1 };
        for (blame, ticks) in slow {
            let found = blames.iter().find(|(other, _)| *other == blame).map_or(0, |(_, ticks)| *ticks);
            assert!((found * of_lwps - ticks).abs() < of_lwps, "{blame:?}: {found} of {ticks}: {piece:?}");
        }
    }
}

/// When it was created, if its creator is known.
fn life_began(life: &Life) -> i64 {
    if life.created_by.is_some() { life.interval.from } else { i64::MIN }
}

fn each_tick(pieces: &[Piece]) -> Vec<Tick> {
    let of_piece = |piece: &Piece| {
        let ticks = piece.interval.ticks() as usize;
        std::iter::repeat_n((piece.actor, piece.lwp, piece.cpu, piece.what), ticks)
    };
    pieces.iter().rev().flat_map(of_piece).collect()
}

#[test]
fn a_walk_is_that_of_walking_tick_by_tick() {
    let mut counts: BTreeMap<&'static str, usize> = BTreeMap::new();
    let (mut jumps, mut creations) = (0, 0);
    for seed in 0..300 {
        let mut machine = Machine::new(seed);
        damage(&mut machine, seed);
        let interrupts = machine.interrupts.clone();
        let (ticks, mut history) = machine.history();
        let place =
            |interrupt| history.interrupts.iter().position(|other| other == interrupt).unwrap() as u32;
        let interrupts = interrupts.iter().map(place).collect();
        if seed % 2 == 0 {
            for (place, life) in history.names.threads.values_mut().enumerate().skip(1) {
                life.created_by = Some(number(place - 1));
                life.interval.from = (mix(seed, 7000 + place as u64) % 200) as i64;
            }
        }
        let slow = Slow { ticks: &ticks, history: &history, interrupts };
        for question in 0..40 {
            let (a, b) = (mix(seed, 8000 + question), mix(seed, 9000 + question));
            let from = (a % 300) as i64;
            let to = if question < 4 { TICKS } else { from + (b % (TICKS - from) as u64) as i64 };
            let actor = match a % 9 {
                thread @ 0..5 => Actor::Thread(number(thread as usize)),
                lwp => Actor::Lwp(tid(lwp as usize - 5)),
            };
            let pieces = walk_back(&history, actor, at(from, to));
            assert_eq!(pieces.iter().map(|piece| piece.interval.ticks()).sum::<i64>(), to - from);
            let mut end = from;
            for piece in &pieces {
                assert_eq!((piece.interval.from, piece.interval.ticks() > 0), (end, true), "no hole");
                end = piece.interval.to;
                *counts.entry(piece.what.name()).or_default() += 1;
                jumps += usize::from(matches!(piece.link, Some(sigmund_measures::Link::Woke { .. })));
                creations += usize::from(matches!(piece.link, Some(sigmund_measures::Link::Created(_))));
            }
            let (seen, expected) = (each_tick(&pieces), slow.walk(actor, from, to));
            for (place, tick) in (from..to).rev().enumerate() {
                let which = || format!("seed {seed}: {actor:?} {from}..{to}, at {tick}");
                assert_eq!(seen[place], expected[place], "{}", which());
            }
            assert_eq!(seen.len(), expected.len());
            let blamed =
                |piece: &Piece| piece.blames(&history, By::Thread).iter().map(|(_, t)| t).sum::<i64>();
            assert!(pieces.iter().all(|piece| blamed(piece) == piece.interval.ticks()));
        }
    }
    // Every rule was needed.
    for what in
        ["running", "interrupt", "waiting for a CPU", "waiting for an LWP", "waiting for an interrupt"]
            .into_iter()
            .chain(["blocked", "in system call", "unknown"])
    {
        assert!(counts.get(what).is_some_and(|count| *count > 100), "{what}: {counts:?}");
    }
    assert!(jumps > 1000 && creations > 100, "{jumps} {creations}");
    assert_eq!(CPUS, 2);
}            for piece in &pieces {
                slow.check_blames(piece);
            }
        }
    }
    // Every rule was needed.
    for what in
        ["running", "interrupt", "waiting for a CPU", "waiting for an LWP", "waiting for an interrupt"]
            .into_iter()
            .chain(["blocked", "in system call", "unknown"])
    {
        assert!(counts.get(what).is_some_and(|count| *count > 100), "{what}: {counts:?}");
    }
    assert!(jumps > 1000 && creations > 100, "{jumps} {creations}");
    assert_eq!(CPUS, 2);
}
