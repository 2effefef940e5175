//! The longest waits, one row each, with the waker and with who had the CPU.

use std::collections::BTreeSet;

use super::waits::{Kind, Wait};
use crate::{
    Answer, By, Column, Context, Culprit, Group, History, Interval, Level, Slice, Wakeup, map::Map,
    who_had_cpu, who_had_lwps,
};

/// Keeps the longest `limit` waits.
pub(super) struct Worst {
    limit: usize,
    waits: Vec<(Group, Wait)>,
}

impl Worst {
    pub(super) fn new(limit: usize) -> Worst {
        Worst { limit, waits: Vec::new() }
    }

    pub(super) fn add(&mut self, actor: Group, wait: Wait) {
        if self.limit == 0 {
            return;
        }
        self.waits.push((actor, wait));
        // Sorted only from time to time, so that an addition takes log N on average.
        if self.waits.len() >= self.limit.saturating_mul(2).saturating_add(1000) {
            self.cut();
        }
    }

    /// Adds those of another.
    pub(super) fn merge(&mut self, other: Worst) {
        other.waits.into_iter().for_each(|(actor, wait)| self.add(actor, wait));
    }

    fn cut(&mut self) {
        self.waits.sort_by(|(a, wait_a), (b, wait_b)| {
            let (length_a, length_b) = (wait_a.to - wait_a.from, wait_b.to - wait_b.from);
            length_b.cmp(&length_a).then(wait_a.from.cmp(&wait_b.from)).then_with(|| a.cmp(b))
        });
        self.waits.truncate(self.limit);
    }
}

/// A wait that is listed.
struct Row {
    actor: Group,
    wait: Wait,
    /// Who had the CPU, or this LWP, during the wait, and for how long.
    shares: Map<(Option<u32>, Culprit), i64>,
    waker: Option<String>,
}

/// The longest waits, and what the slices so far have shown of them.
pub(super) struct Listed {
    rows: Vec<Row>,
    /// For each process, its LWPs.
    lwps: Map<Option<u32>, Vec<u32>>,
    /// LWPs that carried a user thread in the window. Only these count.
    carriers: BTreeSet<u32>,
    /// The beginning of the earliest wait, or of the wakeup that it began with.
    first: i64,
    /// The beginning of the slices so far.
    begin: i64,
}

impl Listed {
    pub(super) fn new(mut worst: Worst, history: &History) -> Listed {
        worst.cut();
        let mut lwps: Map<_, Vec<u32>> = Map::default();
        for (lwp, life) in history.names.lwps.iter() {
            lwps.entry(life.pid).or_default().push(lwp);
        }
        let first = worst.waits.iter().map(|(_, wait)| begin(wait)).min().unwrap_or(i64::MAX);
        let row = |(actor, wait)| Row { actor, wait, shares: Map::default(), waker: None };
        let rows = worst.waits.into_iter().map(row).collect();
        Listed { rows, lwps, carriers: BTreeSet::new(), first, begin: i64::MAX }
    }

    /// The waits, each from its wakeup on.
    pub(super) fn times(&self) -> Vec<Interval> {
        self.rows.iter().map(|row| Interval::new(begin(&row.wait), row.wait.to)).collect()
    }

    pub(super) fn looks_back(&self) -> bool {
        self.first < self.begin
    }

    pub(super) fn add(&mut self, history: &History, slice: Slice, by: By) {
        self.begin = slice.interval.from;
        if !slice.is_before_window() {
            let carries = |lwp: &u64| history.mounted.of(*lwp).within(slice.interval).next().is_some();
            self.carriers.extend(history.mounted.keys().filter(carries).map(|lwp| lwp as u32));
        }
        for Row { actor, wait, shares, waker } in &mut self.rows {
            if let Some(wakeup) = wait.wakeup.filter(|wakeup| slice.interval.contains(wakeup.tick)) {
                *waker = Some(waker_label(history, &wakeup));
            }
            let Some(part) = Interval::new(wait.from, wait.to).clipped(slice.interval) else { continue };
            let mut add = |lwp: Option<u32>, of_part: Map<Culprit, i64>| {
                for (culprit, ticks) in of_part {
                    *shares.entry((lwp, culprit)).or_insert(0) += ticks;
                }
            };
            match actor {
                Group::Thread(thread) => {
                    let pid = history.names.threads.get(*thread).and_then(|life| life.pid);
                    for lwp in self.lwps.get(&pid).into_iter().flatten() {
                        add(Some(*lwp), who_had_lwps(history, by, &[*lwp], part));
                    }
                }
                _ => add(None, who_had_cpu(history, by, wait.queue, part)),
            }
        }
    }

    pub(super) fn finish(self, history: &History, level: Level) -> Answer {
        let of_actor = match level {
            Level::Threads => By::Thread,
            Level::Lwps => By::Lwp,
        };
        let mut columns = Group::columns(of_actor, level);
        columns.extend([
            Column::text("kind", "What began the wait: a wakeup, a yield, a preemption ..."),
            Column::instant("ts_tick", "When it began to wait."),
            Column::length("latency_tick", "How long it waited."),
        ]);
        match level {
            Level::Threads => columns.push(Column::count("lwp", "The LWP that it was put on.")),
            Level::Lwps => {
                columns.push(Column::count("queue_cpu", "The CPU in whose run queue it was."));
            }
        }
        columns.extend([
            Column::count("cpu", "The CPU on which it, or its LWP, ran then; NULL if it was on none."),
            Column::text("waker", "Who woke or created it: a user thread, an LWP, an interrupt."),
            Column::text("culprit", "Who had that CPU, or the LWPs of its process, longest during the wait."),
            Column::length("culprit_tick", "For how long; for several LWPs, the sum."),
        ]);
        let names = &history.names;
        let mut answer = Answer::new(columns);
        for Row { actor, wait, shares, waker } in self.rows {
            let mut of_culprits: Map<Culprit, i64> = Map::default();
            for ((lwp, culprit), ticks) in shares {
                if lwp.is_none_or(|lwp| self.carriers.contains(&lwp)) {
                    *of_culprits.entry(culprit).or_insert(0) += ticks;
                }
            }
            let longest = of_culprits.into_iter().filter(|(_, ticks)| *ticks > 0);
            let longest = longest.max_by(|(a, of_a), (b, of_b)| of_a.cmp(of_b).then_with(|| b.cmp(a)));
            let created_by = || match (&actor, wait.kind) {
                (Group::Thread(thread), Kind::Creation) => {
                    let creator = names.threads.get(*thread)?.created_by?;
                    Some(names.thread_label(creator))
                }
                _ => None,
            };
            let waker = waker.or_else(created_by);
            let mut row = actor.cells(history);
            row.extend([
                wait.kind.name().into(),
                wait.from.into(),
                (wait.to - wait.from).into(),
                if level == Level::Threads { wait.lwp } else { wait.queue }.into(),
                wait.cpu.into(),
                waker.into(),
                longest.as_ref().map(|(culprit, _)| culprit.label(history)).into(),
                longest.map(|(_, ticks): (Culprit, i64)| ticks).into(),
            ]);
            answer.push(row);
        }
        answer
    }
}

/// The beginning of a wait, or of the wakeup that it began with.
fn begin(wait: &Wait) -> i64 {
    wait.wakeup.map_or(wait.from, |wakeup| wakeup.tick.min(wait.from))
}

/// Who made a wakeup: `15(work/6)`, `LWP 812(cc1)`, the name of an interrupt, `idle`, `unknown`.
fn waker_label(history: &History, wakeup: &Wakeup) -> String {
    match (wakeup.context, wakeup.waker_thread, wakeup.waker_lwp) {
        (Context::Irq | Context::Softirq | Context::Nmi, ..) => {
            let inside = wakeup.cpu.and_then(|cpu| history.innermost.of(cpu.into()).at(wakeup.tick));
            let interrupt = inside.and_then(|(_, place)| history.interrupts.get(*place as usize));
            let name = interrupt.map(|interrupt| interrupt.name.unwrap_or(interrupt.kind));
            name.map_or(wakeup.context.name(), |name| history.words.text(name)).to_string()
        }
        (_, Some(thread), _) => history.names.thread_label(thread),
        (_, None, Some(0)) => "idle".to_string(),
        (_, None, Some(lwp)) => format!("LWP {}", history.names.lwp_label(lwp)),
        (_, None, None) => wakeup.context.name().to_string(),
    }
}
