//! `--states`: how long each thread was in each state, and why.

use std::collections::{BTreeMap, HashSet};

use crate::map::Map;

use sigmund_model::{LwpState, ThreadState, WaitKind};

use crate::{
    Answer, By, Column, Culprit, Group, History, Interval, Level, Measure, Needs, Request, Value,
    measure::{Subject, headings},
    percent, who_had_cpu,
};

/// How long each thread was in each state.
pub(crate) const STATES: Measure = Measure {
    name: "states",
    question: "What did my thread do all the time?",
    heading: headings::TIME,
    subject: Subject::None,
    definition: "For each user thread (or LWP), the time in each state: active (on a CPU, without interrupts), interrupted (by \
        which interrupt), stalled (its LWP is runnable and off-CPU; who had the CPU), in-kernel (its LWP sleeps; in which \
        system call), blocked (for what kind of thing, and which), ready, and the other states of `thread_states`. LWPs: \
        running, interrupted, runnable (who had the CPU), sleeping (in which system call) and so on. States are cut to the \
        window, and sum to the life of the thread in it, exactly. Where events are missing the state is unknown.",
    needs: Needs { wakeups: true, interrupts: true, syscalls: true, ..Needs::STATES },
    answer,
};

/// What a row is of, beside its group.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Why {
    state: &'static str,
    /// What it waits for, the system call or the interrupt.
    reason: Option<String>,
    object: Option<i64>,
    culprit: Option<Culprit>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    count: u64,
    ticks: i64,
}

struct States<'h> {
    history: &'h History,
    by: By,
    sums: Map<Group, Map<Why, Sum>>,
}

fn answer(history: &History, request: &Request) -> Result<Answer, String> {
    let (by, level, window) = (request.by(history), request.level(history), request.extent(history));
    let mut states = States { history, by, sums: Map::default() };
    match level {
        Level::Threads => {
            for thread in history.names.threads.keys().filter(|thread| request.has_thread(**thread)) {
                let group = Group::of_thread(history, by, *thread);
                for (interval, stay) in history.threads.of(*thread).within(window) {
                    if stay.state != ThreadState::Exited
                        && request.has_place(stay.lwp, stay.cpu(history, interval))
                    {
                        states.thread(&group, interval, stay);
                    }
                }
            }
        }
        Level::Lwps => {
            for lwp in history.names.lwps.keys().filter(|lwp| **lwp != 0 && request.has_lwp(**lwp)) {
                let group = Group::of_lwp(history, by, *lwp);
                for (interval, stay) in history.lwps.of((*lwp).into()).within(window) {
                    if stay.state != LwpState::Exited && request.has_place(Some(*lwp), stay.cpu) {
                        states.lwp(&group, *lwp, interval, stay);
                    }
                }
            }
        }
    }
    Ok(states.finish(level))
}

impl crate::ThreadStay {
    /// The CPU that its LWP was on, or left.
    pub(crate) fn cpu(&self, history: &History, interval: Interval) -> Option<u32> {
        history.lwps.of(self.lwp?.into()).at(interval.from)?.1.cpu
    }
}

impl States<'_> {
    fn thread(&mut self, group: &Group, interval: Interval, stay: &crate::ThreadStay) {
        let state = stay.state.name();
        let cpu = stay.cpu(self.history, interval);
        match (stay.state, stay.lwp) {
            (ThreadState::Active, _) => self.on_cpu(group, state, cpu, interval),
            (ThreadState::Stalled, _) => self.waiting(group, state, cpu, interval),
            (ThreadState::InKernel, Some(lwp)) => self.asleep(group, state, lwp, interval),
            (ThreadState::Blocked, _) => {
                let reason = stay.waits_for.map(|kind| kind.name().to_string());
                let object = (stay.object != 0 && self.is_told(stay.waits_for)).then_some(stay.object);
                self.add(group, Why { state, reason, object, culprit: None }, interval.ticks(), 1);
            }
            _ => {
                self.add(group, Why { state, reason: None, object: None, culprit: None }, interval.ticks(), 1)
            }
        }
    }

    /// Whether what is waited for is one object for all threads of a row: each joins another thread, or waits for a
    /// descriptor of its own. A point in time is no object.
    fn is_told(&self, waits_for: Option<WaitKind>) -> bool {
        match waits_for {
            Some(WaitKind::Sleep) => false,
            Some(WaitKind::Join | WaitKind::Io | WaitKind::Scope | WaitKind::OnceCell) => {
                self.by == By::Thread
            }
            _ => true,
        }
    }

    fn lwp(&mut self, group: &Group, lwp: u32, interval: Interval, stay: &crate::LwpStay) {
        let state = stay.state.name();
        match stay.state {
            LwpState::Running => self.on_cpu(group, state, stay.cpu, interval),
            LwpState::Runnable => self.waiting(group, state, stay.cpu, interval),
            LwpState::Sleeping | LwpState::DiskSleep => self.asleep(group, state, lwp, interval),
            _ => {
                self.add(group, Why { state, reason: None, object: None, culprit: None }, interval.ticks(), 1)
            }
        }
    }

    /// On a CPU: what interrupts took of it is counted apart.
    fn on_cpu(&mut self, group: &Group, state: &'static str, cpu: Option<u32>, interval: Interval) {
        let history = self.history;
        let interrupts = cpu.map(|cpu| history.innermost.of(cpu.into()));
        let mut rest = interval.ticks();
        let mut seen = HashSet::new();
        for (part, place) in interrupts.into_iter().flat_map(|track| track.within(interval)) {
            let interrupt = &history.interrupts[*place as usize];
            let name = interrupt.name.unwrap_or(interrupt.kind);
            let reason = Some(history.words.text(name).to_string());
            rest -= part.ticks();
            let count = u64::from(seen.insert(*place));
            self.add(
                group,
                Why { state: "interrupted", reason, object: None, culprit: None },
                part.ticks(),
                count,
            );
        }
        self.add(group, Why { state, reason: None, object: None, culprit: None }, rest, 1);
    }

    /// In a run queue: by who had the CPU.
    fn waiting(&mut self, group: &Group, state: &'static str, cpu: Option<u32>, interval: Interval) {
        for (culprit, ticks) in who_had_cpu(self.history, self.by, cpu, interval) {
            self.add(group, Why { state, reason: None, object: None, culprit: Some(culprit) }, ticks, 1);
        }
    }

    /// Asleep in the kernel: by the system call.
    fn asleep(&mut self, group: &Group, state: &'static str, lwp: u32, interval: Interval) {
        let call = self.history.call_at(lwp, interval.from);
        let reason = call.map(|call| self.history.words.text(call.name).to_string());
        self.add(group, Why { state, reason, object: None, culprit: None }, interval.ticks(), 1);
    }

    fn add(&mut self, group: &Group, why: Why, ticks: i64, count: u64) {
        if !self.sums.contains_key(group) {
            self.sums.insert(group.clone(), Map::default());
        }
        if let Some(sums) = self.sums.get_mut(group) {
            let sum = sums.entry(why).or_default();
            sum.ticks += ticks;
            sum.count += count;
        }
    }

    fn finish(self, level: Level) -> Answer {
        let mut columns = Group::columns(self.by, level);
        columns.extend([
            Column::text("state", "The state."),
            Column::text("reason", "What it waited for, the system call it slept in, or the interrupt."),
            Column::count(
                "object",
                "The object it waited for: the address of a lock; in rows of one thread also the user thread or the descriptor.",
            ),
            Column::text("culprit", "Who had the CPU while it was runnable."),
            Column::count("count", "How many times."),
            Column::length("total_tick", "The time in this state."),
            Column::percent("percent", "Of the time in all states."),
        ]);
        let mut answer = Answer::new(columns);
        let sorted: BTreeMap<_, _> = self.sums.into_iter().collect();
        for (group, sums) in sorted {
            let life: i64 = sums.values().map(|sum| sum.ticks).sum();
            let mut sums: Vec<_> =
                sums.into_iter().filter(|(_, sum)| sum.ticks > 0 || sum.count > 0).collect();
            sums.sort_by(|(a, of_a), (b, of_b)| of_b.ticks.cmp(&of_a.ticks).then_with(|| a.cmp(b)));
            for (why, sum) in sums {
                let mut row = group.cells(self.history);
                let culprit = why.culprit.map(|culprit| culprit.label(self.history));
                row.extend([
                    why.state.into(),
                    why.reason.into(),
                    why.object.into(),
                    culprit.into(),
                    sum.count.into(),
                    sum.ticks.into(),
                    Value::Fraction(percent(sum.ticks, life)),
                ]);
                answer.push(row);
            }
        }
        answer
    }
}
