//! A random timeline with every kind of change, of an unrealistic machine.

use std::{collections::HashMap, io};

use sigmund_export::timeline::{
    Actors, Change, Counter, CpuId, EventTypeId, LwpId, ProcessId, RecordedEvent, Sink, Slice, SliceKind,
    ThreadId, Track,
};
use sigmund_model::{Context, LwpState, Params, ThreadState, Ticks, WaitKind};

use crate::known_timelines::{HOSTILE_NAMES, RandomTimeline};

pub(crate) struct RandomChanges {
    pub(crate) actors: Actors,
    seed: u64,
    changes: u64,
}

/// The values at one instant, so that they can be ended.
#[derive(Default)]
struct Now {
    open: HashMap<Track, Vec<SliceKind>>,
    lwps: HashMap<LwpId, LwpState>,
    threads: HashMap<ThreadId, ThreadState>,
    cpu_lwp: HashMap<CpuId, LwpId>,
    cpu_thread: HashMap<CpuId, ThreadId>,
    lwp_thread: HashMap<LwpId, ThreadId>,
}

/// A linear congruential generator (Knuth, MMIX); only its high bits are used.
struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % limit
    }

    fn one_of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len())]
    }

    fn maybe<T>(&mut self, value: T) -> Option<T> {
        (self.below(4) > 0).then_some(value)
    }
}

impl RandomChanges {
    /// A timeline of this many changes.
    pub(crate) fn new(seed: u64, changes: u64) -> RandomChanges {
        RandomChanges { actors: RandomTimeline::new(seed, changes).actors, seed, changes }
    }

    pub(crate) fn emit(&self, sink: &mut dyn Sink) -> io::Result<()> {
        let mut dice = Dice(self.seed);
        let mut now = Now::default();
        let mut tick = self.actors.clock.first.0;
        for _ in 0..self.changes {
            tick += dice.below(40) as u64;
            self.step(&mut dice, &mut now, Ticks(tick), sink)?;
        }
        now.end(self.actors.clock.last, sink)?;
        sink.finish()
    }

    fn step(&self, dice: &mut Dice, now: &mut Now, at: Ticks, sink: &mut dyn Sink) -> io::Result<()> {
        let cpu = CpuId(dice.below(self.actors.cpus.len()) as u32);
        let lwp = LwpId(dice.below(self.actors.lwps.len()) as u32);
        let thread = ThreadId(dice.below(self.actors.threads.len()) as u32);
        let process = ProcessId(dice.below(self.actors.processes.len()) as u32);
        let tracks = [Track::Cpu(cpu), Track::Lwp(lwp), Track::Thread(thread)];
        let change = match dice.below(12) {
            0 => Change::CpuLwp(cpu, set_or_remove(&mut now.cpu_lwp, cpu, dice.maybe(lwp))),
            1 => Change::CpuThread(cpu, set_or_remove(&mut now.cpu_thread, cpu, dice.maybe(thread))),
            2 => Change::LwpThread(lwp, set_or_remove(&mut now.lwp_thread, lwp, dice.maybe(thread))),
            3 => {
                let state = dice.one_of(LwpState::ALL);
                let state = dice.maybe(state).filter(|state| *state != LwpState::Exited);
                Change::Lwp { lwp, state: set_or_remove(&mut now.lwps, lwp, state), cpu: dice.maybe(cpu) }
            }
            4 => {
                let state = dice.one_of(ThreadState::ALL);
                let state = dice.maybe(state).filter(|state| *state != ThreadState::Exited);
                let state = set_or_remove(&mut now.threads, thread, state);
                let blocked_on = (state == Some(ThreadState::Blocked)).then_some(-16);
                // It is ignored in other states.
                let blocked_for = WaitKind::from_number(dice.0 % 16);
                let (lwp, cpu) = (dice.maybe(lwp), dice.maybe(cpu));
                Change::Thread { thread, state, lwp, cpu, blocked_on, blocked_for }
            }
            5 | 6 => {
                let track = dice.one_of(&tracks);
                let kind = match track {
                    Track::Cpu(_) => dice.one_of(&[SliceKind::Irq, SliceKind::Softirq]),
                    Track::Lwp(_) => dice.one_of(&[SliceKind::Syscall, SliceKind::Span, SliceKind::Function]),
                    Track::Thread(_) => dice.one_of(&[SliceKind::Span, SliceKind::Function]),
                };
                now.open.entry(track).or_default().push(kind);
                Change::Enter(track, Slice { kind, name: dice.one_of(&HOSTILE_NAMES) })
            }
            7 => {
                let track = dice.one_of(&tracks);
                match now.open.entry(track).or_default().pop() {
                    Some(kind) => Change::Leave(track, kind),
                    None => return Ok(()),
                }
            }
            8 => {
                let by = dice.one_of(&tracks);
                Change::Wakeup { by: dice.maybe(by), of: dice.one_of(&tracks[1..]) }
            }
            9 if dice.below(2) == 0 => {
                Change::Migration { of: tracks[1], from: tracks[0], to: Track::Cpu(CpuId(0)) }
            }
            9 => Change::Migration { of: tracks[2], from: tracks[1], to: Track::Lwp(LwpId(0)) },
            10 => {
                let counter = dice.one_of(&[Counter::ReadyQueue(process), Counter::RunQueue(cpu)]);
                Change::Count(counter, dice.below(100) as u64)
            }
            _ => return self.event(dice, at, [cpu.0, lwp.0, thread.0], sink),
        };
        sink.change(at, &change)
    }

    fn event(
        &self,
        dice: &mut Dice,
        at: Ticks,
        [cpu, lwp, thread]: [u32; 3],
        sink: &mut dyn Sink,
    ) -> io::Result<()> {
        let kind = EventTypeId(dice.below(self.actors.event_types.len()) as u32);
        let mut params = Params::default();
        for _ in 0..dice.below(3) {
            params.push_text(dice.one_of(&HOSTILE_NAMES));
        }
        let event = RecordedEvent {
            kind,
            cpu: dice.maybe(CpuId(cpu)),
            lwp: dice.maybe(LwpId(lwp)),
            thread: dice.maybe(ThreadId(thread)),
            context: Some(dice.one_of(Context::ALL)),
            cpu_seen: None,
            params: &params,
        };
        sink.change(at, &Change::Event(&event))
    }
}

fn set_or_remove<K: std::hash::Hash + Eq, V: Copy>(
    now: &mut HashMap<K, V>,
    key: K,
    value: Option<V>,
) -> Option<V> {
    match value {
        Some(value) => now.insert(key, value),
        None => now.remove(&key),
    };
    value
}

impl Now {
    fn end(self, last: Ticks, sink: &mut dyn Sink) -> io::Result<()> {
        for (track, open) in self.open {
            for kind in open.into_iter().rev() {
                sink.change(last, &Change::Leave(track, kind))?;
            }
        }
        for cpu in self.cpu_lwp.into_keys() {
            sink.change(last, &Change::CpuLwp(cpu, None))?;
        }
        for cpu in self.cpu_thread.into_keys() {
            sink.change(last, &Change::CpuThread(cpu, None))?;
        }
        for lwp in self.lwp_thread.into_keys() {
            sink.change(last, &Change::LwpThread(lwp, None))?;
        }
        for lwp in self.lwps.into_keys() {
            sink.change(last, &Change::Lwp { lwp, state: None, cpu: None })?;
        }
        for thread in self.threads.into_keys() {
            let change = Change::Thread {
                thread,
                state: None,
                lwp: None,
                cpu: None,
                blocked_on: None,
                blocked_for: None,
            };
            sink.change(last, &change)?;
        }
        Ok(())
    }
}
