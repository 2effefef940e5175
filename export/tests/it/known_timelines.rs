//! Known timelines as input for sinks: a small one that can be checked by hand, and random ones of any length.

use std::io;

use sigmund_export::timeline::{
    Actors, Change, Clock, Counter, CpuId, EventTypeId, Hold, LwpActor, LwpId, Names, Process, ProcessId,
    RecordedEvent, Sink, Slice, SliceKind, ThreadActor, ThreadId, Track,
};
use sigmund_model::{
    Context, Cpu, EventType, Field, FieldType, Hertz, Level, Lwp, LwpState, Params, Pid, Thread, ThreadState,
    Ticks, WaitKind,
};

/// Names that are hard for formats.
pub(crate) const HOSTILE_NAMES: [&str; 7] = [
    "a \"quoted\" name",
    "two\nlines\tand a tab",
    "back\\slash, comma; semicolon % # {brace}",
    "Ünïcode \u{1F980}",
    "\u{fffd}\u{1}\u{7f}",
    " ",
    "",
];

/// Two CPUs, one process with two LWPs and three user threads, and one LWP of an unknown process.
pub(crate) fn actors(last: u64) -> Actors {
    let lwp = |lwp, name: &str, process, carries_threads| LwpActor {
        lwp: Lwp(lwp),
        name: Some(name.into()),
        process: ProcessId(process),
        born: Ticks(1000),
        died: None,
        carries_threads,
    };
    let mut thread_names = Names::default();
    let mut thread = |thread, name: Option<&str>, created_by: Option<u64>| ThreadActor {
        thread: Thread(thread),
        name: name.map(|name| thread_names.add(name)),
        process: ProcessId(0),
        born: Ticks(1000),
        died: None,
        created_by: created_by.map(Thread),
    };
    let event = |level, code, name: &str, fields: &[(&str, FieldType)]| EventType {
        level,
        code: Some(code),
        name: name.into(),
        key: 0,
        fields: fields.iter().map(|(name, ty)| Field { name: (*name).into(), ty: *ty }).collect(),
        format: String::new(),
    };
    Actors {
        clock: Clock {
            first: Ticks(1000),
            last: Ticks(last),
            rate: Hertz::new(2.5e9),
            realtime_at_first: Some(1_700_000_000_000_000_000),
        },
        name: "story".into(),
        cpus: vec![Cpu(0), Cpu(3)],
        processes: vec![
            Process { pid: Some(Pid(70)), name: Some("sumtime".into()) },
            Process { pid: None, name: None },
        ],
        lwps: vec![
            lwp(70, "sumtime", 0, true),
            lwp(71, "sumtime \"2\"\n", 0, true),
            lwp(9, "kworker/0:1", 1, false),
        ],
        threads: vec![
            thread(1, Some("main"), None),
            thread(2, Some("work/6 \"x\""), Some(1)),
            thread(3, None, Some(1)),
        ],
        thread_names,
        teams: Vec::new(),
        event_types: vec![
            event(
                Level::Kern,
                372,
                "sched_switch",
                &[
                    ("prev_comm", FieldType::Text),
                    ("prev_pid", FieldType::I64),
                    ("prev_prio", FieldType::I64),
                    ("prev_state", FieldType::I64),
                    ("next_comm", FieldType::Text),
                    ("next_pid", FieldType::I64),
                    ("next_prio", FieldType::I64),
                ],
            ),
            event(Level::User, 40, "received_msg", &[("len", FieldType::U64), ("from", FieldType::Text)]),
        ],
    }
}

/// The small timeline, with every kind of change.
///
/// ```text
/// CPU 0      |= LWP 70 =|        |== LWP 71 ==|
/// CPU 3      |   irq 24 {softirq}              |
/// thread 1   | active   | stalled| blocked     |   span "outer" { function "f" } on it
/// thread 2              | ready  | active      |
/// ticks     1000      3500     6000         11000
/// ```
pub(crate) fn small(sink: &mut dyn Sink) -> io::Result<()> {
    let (cpu0, cpu3) = (CpuId(0), CpuId(1));
    let (lwp70, lwp71) = (LwpId(0), LwpId(1));
    let (main, work) = (ThreadId(0), ThreadId(1));
    let mut params = Params::default();
    let mut emit = |tick: u64, change: Change<'_>| sink.change(Ticks(tick), &change);

    emit(1000, lwp(lwp70, Some(LwpState::Running), Some(cpu0)))?;
    emit(1000, lwp(lwp71, Some(LwpState::Sleeping), None))?;
    emit(1000, Change::CpuLwp(cpu0, Some(lwp70)))?;
    emit(1000, Change::LwpThread(lwp70, Some(main)))?;
    emit(1000, thread(main, Some(ThreadState::Active), Some(lwp70), Some(cpu0)))?;
    emit(1000, Change::CpuThread(cpu0, Some(main)))?;
    emit(1200, enter(Track::Thread(main), SliceKind::Span, "outer"))?;
    emit(1300, enter(Track::Thread(main), SliceKind::Function, "sumtime::node"))?;
    emit(1400, enter(Track::Lwp(lwp70), SliceKind::Syscall, "futex"))?;
    params.push_number(64);
    params.push_named(24, "eth0");
    let received = RecordedEvent {
        kind: EventTypeId(1),
        cpu: Some(cpu0),
        lwp: Some(lwp70),
        thread: Some(main),
        context: Some(Context::Task),
        cpu_seen: Some(Cpu(0)),
        params: &params,
    };
    emit(1450, Change::Event(&received))?;
    emit(1500, Change::Leave(Track::Lwp(lwp70), SliceKind::Syscall))?;
    emit(2000, enter(Track::Cpu(cpu3), SliceKind::Irq, "irq 24 eth0"))?;
    emit(2100, enter(Track::Cpu(cpu3), SliceKind::Softirq, "NET_RX"))?;
    emit(2200, Change::Wakeup { by: Some(Track::Cpu(cpu3)), of: Track::Lwp(lwp71) })?;
    emit(2200, lwp(lwp71, Some(LwpState::Runnable), Some(cpu0)))?;
    emit(2200, Change::Count(Counter::RunQueue(cpu0), 1))?;
    emit(2300, Change::Leave(Track::Cpu(cpu3), SliceKind::Softirq))?;
    emit(2400, Change::Leave(Track::Cpu(cpu3), SliceKind::Irq))?;
    emit(3500, Change::Wakeup { by: Some(Track::Thread(main)), of: Track::Thread(work) })?;
    emit(3500, thread(work, Some(ThreadState::Ready), None, None))?;
    emit(3500, Change::Count(Counter::ReadyQueue(ProcessId(0)), 1))?;
    emit(3500, Change::CpuLwp(cpu0, None))?;
    emit(3500, Change::CpuThread(cpu0, None))?;
    emit(3500, lwp(lwp70, Some(LwpState::Runnable), Some(cpu0)))?;
    emit(3500, thread(main, Some(ThreadState::Stalled), Some(lwp70), None))?;
    emit(4000, Change::Leave(Track::Thread(main), SliceKind::Function))?;
    emit(6000, Change::LwpThread(lwp70, None))?;
    emit(6000, blocked(main, WaitKind::Mutex, 0xbeef))?;
    emit(6000, lwp(lwp71, Some(LwpState::Running), Some(cpu0)))?;
    emit(6000, Change::CpuLwp(cpu0, Some(lwp71)))?;
    emit(6000, Change::Count(Counter::RunQueue(cpu0), 0))?;
    let (from, to) = (Track::Lwp(lwp70), Track::Lwp(lwp71));
    emit(6000, Change::Migration { of: Track::Thread(work), from, to })?;
    emit(6000, Change::Migration { of: from, from: Track::Cpu(cpu3), to: Track::Cpu(cpu0) })?;
    emit(6000, Change::LwpThread(lwp71, Some(work)))?;
    emit(6000, thread(work, Some(ThreadState::Active), Some(lwp71), Some(cpu0)))?;
    emit(6000, Change::CpuThread(cpu0, Some(work)))?;
    emit(6000, Change::Count(Counter::ReadyQueue(ProcessId(0)), 0))?;
    emit(11000, Change::Leave(Track::Thread(main), SliceKind::Span))?;
    emit(11000, Change::CpuLwp(cpu0, None))?;
    emit(11000, Change::CpuThread(cpu0, None))?;
    emit(11000, Change::LwpThread(lwp71, None))?;
    for id in [lwp70, lwp71] {
        emit(11000, lwp(id, None, None))?;
    }
    for id in [main, work] {
        emit(11000, thread(id, None, None, None))?;
    }
    sink.finish()
}

fn lwp<'a>(lwp: LwpId, state: Option<LwpState>, cpu: Option<CpuId>) -> Change<'a> {
    Change::Lwp { lwp, state, cpu }
}

fn thread<'a>(
    thread: ThreadId,
    state: Option<ThreadState>,
    lwp: Option<LwpId>,
    cpu: Option<CpuId>,
) -> Change<'a> {
    Change::Thread { thread, state, lwp, cpu, blocked_on: None, blocked_for: None }
}

fn blocked<'a>(thread: ThreadId, kind: WaitKind, object: i64) -> Change<'a> {
    let (blocked_on, blocked_for) = (Some(object), Some(kind));
    let state = Some(ThreadState::Blocked);
    Change::Thread { thread, state, lwp: None, cpu: None, blocked_on, blocked_for }
}

fn enter(track: Track, kind: SliceKind, name: &str) -> Change<'_> {
    Change::Enter(track, Slice { kind, name })
}

/// A random timeline of this many changes, and its actors. It obeys the rules of a timeline.
pub(crate) struct RandomTimeline {
    pub(crate) actors: Actors,
    seed: u64,
    changes: u64,
}

impl RandomTimeline {
    pub(crate) fn new(seed: u64, changes: u64) -> RandomTimeline {
        let mut actors = actors(1000 + changes * 40);
        for (index, name) in HOSTILE_NAMES.iter().enumerate() {
            let thread = Thread(100 + index as u64);
            actors.threads.push(ThreadActor {
                thread,
                name: Some(actors.thread_names.add(name)),
                ..actors.threads[2]
            });
        }
        RandomTimeline { actors, seed, changes }
    }

    /// Emits it.
    pub(crate) fn emit(&self, sink: &mut dyn Sink) -> io::Result<()> {
        let mut dice = Dice(self.seed);
        let mut tick = self.actors.clock.first.0;
        let mut open: Vec<Vec<SliceKind>> = vec![Vec::new(); self.actors.threads.len()];
        let mut states = vec![None; self.actors.threads.len()];
        let mut holds: Vec<Vec<Hold>> = vec![Vec::new(); self.actors.threads.len()];
        let mut held = 0;
        let mut params = Params::default();
        for number in 0..self.changes {
            tick += dice.below(40);
            let at = Ticks(tick);
            let index = dice.below(self.actors.threads.len() as u64) as usize;
            let track = Track::Thread(ThreadId(index as u32));
            match dice.below(9) {
                0..3 => {
                    let state = STATES[dice.below(STATES.len() as u64) as usize];
                    states[index] = Some(state);
                    let (lwp, cpu) = (LwpId(dice.below(2) as u32), CpuId(dice.below(2) as u32));
                    let mounted = matches!(state, ThreadState::Active | ThreadState::Stalled);
                    let cpu = (state == ThreadState::Active).then_some(cpu);
                    let id = ThreadId(index as u32);
                    let change = match WaitKind::from_number(dice.0 >> 8 & 15) {
                        Some(kind) if state == ThreadState::Blocked => blocked(id, kind, tick as i64),
                        _ => thread(id, Some(state), mounted.then_some(lwp), cpu),
                    };
                    sink.change(at, &change)?;
                }
                3 => {
                    let kind = if dice.below(2) == 0 { SliceKind::Span } else { SliceKind::Function };
                    open[index].push(kind);
                    let name = HOSTILE_NAMES[dice.below(HOSTILE_NAMES.len() as u64) as usize];
                    sink.change(at, &enter(track, kind, name))?;
                }
                4 => {
                    if let Some(kind) = open[index].pop() {
                        sink.change(at, &Change::Leave(track, kind))?;
                    }
                }
                5 => {
                    let by = Some(Track::Thread(ThreadId(0)));
                    sink.change(at, &Change::Wakeup { by, of: track })?;
                }
                7 if dice.below(2) == 0 && !holds[index].is_empty() => {
                    // Not always the lock taken last.
                    let place = dice.below(holds[index].len() as u64) as usize;
                    let hold = holds[index].remove(place);
                    sink.change(at, &Change::Unlocked { by: track, hold })?;
                }
                7 => {
                    held += 1;
                    let lock = dice.below(5) as u32;
                    let hold = Hold {
                        number: held,
                        lock,
                        address: 16 * u64::from(lock),
                        kind: WaitKind::RwLockRead,
                    };
                    holds[index].push(hold);
                    sink.change(at, &Change::Locked { by: track, hold })?;
                }
                6 => sink.change(at, &Change::Count(Counter::ReadyQueue(ProcessId(0)), dice.below(100)))?,
                _ => {
                    params.clear();
                    params.push_number(number as i64);
                    params.push_text(HOSTILE_NAMES[dice.below(HOSTILE_NAMES.len() as u64) as usize]);
                    let event = RecordedEvent {
                        kind: EventTypeId(1),
                        cpu: Some(CpuId(0)),
                        lwp: Some(LwpId(0)),
                        thread: Some(ThreadId(index as u32)),
                        context: Some(Context::Task),
                        cpu_seen: None,
                        params: &params,
                    };
                    sink.change(at, &Change::Event(&event))?;
                }
            }
        }
        let last = self.actors.clock.last;
        for (index, open) in open.iter_mut().enumerate() {
            let id = ThreadId(index as u32);
            while let Some(kind) = open.pop() {
                sink.change(last, &Change::Leave(Track::Thread(id), kind))?;
            }
            for hold in holds[index].drain(..) {
                sink.change(last, &Change::Unlocked { by: Track::Thread(id), hold })?;
            }
            if states[index].is_some() {
                sink.change(last, &thread(id, None, None, None))?;
            }
        }
        sink.finish()
    }
}

const STATES: [ThreadState; 4] =
    [ThreadState::Active, ThreadState::Stalled, ThreadState::Ready, ThreadState::Blocked];

/// xorshift64*, as in G. Marsaglia, "Xorshift RNGs", 2003.
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) % limit
    }
}
