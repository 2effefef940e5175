//! The machine's cost per event: `cargo test --release -p sigmund-merge --lib machine -- --ignored --nocapture`.

use std::fs;

use sigmund_model::{Cpu, Effect, Event, LeaveReason, Level, Lwp, LwpState, Thread, Ticks, Wait};

use super::{Intervals, Machine, Placed};
use crate::{merge::MergeOptions, tables::Directory};

const EVENTS: u64 = 2_000_000;
const CPUS: u64 = 8;
const LWPS: u64 = 64;
const THREADS: u64 = 1000;

/// The number of events of each kind in a hundred: kernel switches, wakeups, user switches, plain user events. The rest
/// are system calls.
struct Mix {
    name: &'static str,
    switches: u64,
    wakeups: u64,
    user_switches: u64,
    user: u64,
}

/// The LWP on each CPU. It makes the events consistent.
struct World {
    random: u64,
    on: Vec<u64>,
    carries: Vec<u64>,
    next_thread: u64,
}

impl World {
    fn below(&mut self, end: u64) -> u64 {
        self.random = self.random.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        (self.random >> 33) % end
    }

    fn event(&mut self, mix: &Mix, tick: u64, event: &mut Event) -> Level {
        let cpu = self.below(CPUS);
        let lwp = self.on[cpu as usize];
        event.tick = Ticks(tick);
        (event.cpu, event.lwp) = (Some(Cpu(cpu as u32)), Some(Lwp(lwp as u32 + 7000)));
        let mut roll = self.below(100);
        let mut is = |share: u64| {
            let hit = roll < share;
            roll = if hit { u64::MAX } else { roll - share };
            hit
        };
        let level;
        (event.effect, level) = if is(mix.switches) {
            // The LWPs of a CPU take turns on it.
            let next = (lwp + CPUS) % LWPS;
            self.on[cpu as usize] = next;
            let next = Lwp(next as u32 + 7000);
            let prev_state = Some(LwpState::Runnable.into());
            (Effect::KernelSwitch { prev: event.lwp, prev_state, next }, Level::Kern)
        } else if is(mix.wakeups) {
            let lwp = Lwp(((lwp + CPUS) % LWPS) as u32 + 7000);
            (Effect::LwpWakeup { lwp, cpu: event.cpu }, Level::Kern)
        } else if is(mix.user_switches) {
            let before = self.carries[lwp as usize];
            self.next_thread = (self.next_thread + 1) % THREADS;
            let next = 1 + self.next_thread;
            let next = if self.carries.contains(&next) { before } else { next };
            self.carries[lwp as usize] = next;
            let next = Some(Thread(next));
            (Effect::UserSwitch { next, reason: LeaveReason::Yield, wait: Wait::default() }, Level::User)
        } else if is(mix.user) {
            (Effect::None, Level::User)
        } else {
            (Effect::None, Level::Kern)
        };
        level
    }
}

#[test]
#[ignore = "measures, and says nothing about right or wrong"]
fn nanoseconds_an_event() {
    let mixes = [
        Mix { name: "plain events", switches: 0, wakeups: 0, user_switches: 0, user: 50 },
        Mix { name: "system calls and some switches", switches: 5, wakeups: 3, user_switches: 5, user: 40 },
        Mix { name: "scheduling only", switches: 40, wakeups: 30, user_switches: 30, user: 0 },
    ];
    for mix in mixes {
        let folder = tempfile::tempdir().unwrap();
        let directory =
            Directory::create(&folder.path().join("out"), &MergeOptions::default(), None).unwrap();
        let mut machine = Machine::new(Intervals::create(&directory, &[]).unwrap(), true);
        machine.follow_from_start();
        let on = (0..CPUS).collect();
        let mut world = World { random: 1, on, carries: vec![0; LWPS as usize], next_thread: 0 };
        let mut event = Event::default();
        let batch: Vec<(Level, Event)> =
            (0..EVENTS / 4).map(|n| (world.event(&mix, 10 * n, &mut event), event.clone())).collect();
        let start = cpu_time();
        for round in 0..4 {
            let shift = round * 10 * (EVENTS / 4);
            for (level, event) in &batch {
                event_at(&mut machine, *level, event, shift);
            }
        }
        let ns = (cpu_time() - start) as f64 / EVENTS as f64;
        println!("{}: {ns:.1} ns an event", mix.name);
    }
}

/// Nanoseconds that this thread has run (`/proc/thread-self/schedstat`). Independent of other load on the machine.
fn cpu_time() -> u64 {
    let stat = fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    stat.split(' ').next().and_then(|ns| ns.parse().ok()).unwrap()
}

fn event_at(machine: &mut Machine, level: Level, event: &Event, shift: u64) {
    let event =
        Event { tick: Ticks(event.tick.0 + shift), params: sigmund_model::Params::default(), ..*event };
    machine.take(level, None, &event, None, &mut Placed::default()).unwrap();
}
