//! `--interrupts`: how long each interrupt took, and which threads it hit.

use std::cmp::Reverse;

use crate::map::Map;

use crate::{
    Answer, By, Column, Culprit, Distribution, Group, History, Interrupt, Interval, Level, Measure, Needs,
    Request, Value, Word,
    distribution::Lengths,
    percent,
    sliced::{Slice, Sliced},
};

/// How long each interrupt took, and whom it hit.
pub(crate) const INTERRUPTS: Measure = Measure {
    name: "interrupts",
    question: "Which interrupts took how long, and whom did they hit?",
    heading: crate::measure::headings::WAY,
    subject: crate::measure::Subject::None,
    lists_cases: false,
    is_of_one_level: false,
    definition: include_str!("definitions/interrupts.md"),
    needs: Needs { interrupts: true, ..Needs::NONE },
    computed: start,
};

#[derive(Default)]
struct Sum {
    own: Lengths,
    wall: i64,
    unended: u64,
    hit: Map<Option<Victim>, i64>,
}

/// The thread or LWP that was interrupted, as the table has it.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Victim {
    Thread(u64),
    Lwp(u32),
}

/// Identifies an interrupt in an earlier slice: its CPU, depth and interval.
type Known = (u32, u32, Interval);

/// The key of a row. If rows are grouped: the group that was hit, or `None` inside for no thread. And the interrupt.
type Key = (Option<Option<Group>>, (Word, Option<i64>, Option<Word>));

struct Interrupts {
    request: Request,
    sums: Map<Key, Sum>,
    /// For interrupts that began before the slices so far: their own times in those slices.
    begun: Map<Known, i64>,
}

fn start(request: &Request) -> Box<dyn Sliced> {
    Box::new(Interrupts { request: request.clone(), sums: Map::default(), begun: Map::default() })
}

impl Sliced for Interrupts {
    fn add(&mut self, history: &History, slice: Slice) -> Result<(), String> {
        let (by, own) = (rows_by(&self.request, history), own_times(history, slice.interval));
        let later = std::mem::take(&mut self.begun);
        for (interrupt, own) in history.interrupts.iter().zip(own) {
            let Some(part) = interrupt.interval.clipped(slice.interval) else { continue };
            if !selects(&self.request, interrupt) {
                continue;
            }
            let thread = interrupt.thread.filter(|_| by != By::Lwp).map(Victim::Thread);
            let victim = thread.or(interrupt.lwp.map(Victim::Lwp));
            let group = self.request.by.map(|_| group(history, by, victim));
            let key = (group, (interrupt.kind, interrupt.number, interrupt.name));
            let sum = self.sums.entry(key).or_default();
            sum.wall += part.ticks();
            *sum.hit.entry(victim).or_insert(0) += own;
            let known = (interrupt.cpu, interrupt.depth, interrupt.interval);
            let is_later = !slice.owns(interrupt.interval);
            let own = own + if is_later { later.get(&known).copied().unwrap_or(0) } else { 0 };
            if slice.begins(interrupt.interval) {
                sum.own.push(own);
                sum.unended += u64::from(interrupt.end != sigmund_model::EndReason::Returned);
            } else {
                self.begun.insert(known, own);
            }
        }
        Ok(())
    }

    fn finish(self: Box<Self>, history: &History) -> Result<Answer, String> {
        let mut answer = rows(history, &self.request, self.sums);
        if history.has_no_interrupts {
            answer.notes.push("No interrupts are recorded.".to_string());
        }
        Ok(answer)
    }
}

/// How rows are grouped. By thread, a trace without user threads has rows of LWPs.
fn rows_by(request: &Request, history: &History) -> By {
    match request.by(history) {
        By::Thread if request.level(history) == Level::Lwps => By::Lwp,
        by => by,
    }
}

/// The group that an interrupt hit. With rows by user thread, only user threads have a group.
fn group(history: &History, by: By, victim: Option<Victim>) -> Option<Group> {
    match victim? {
        Victim::Thread(thread) => Some(Group::of_thread(history, by, thread)),
        Victim::Lwp(lwp) if by == By::Lwp || (by != By::Thread && lwp != 0) => {
            Some(Group::of_lwp(history, by, lwp))
        }
        Victim::Lwp(_) => None,
    }
}

/// The columns for the group of a row, if rows are grouped.
fn group_columns(by: By) -> Vec<Column> {
    let level = if by == By::Lwp { Level::Lwps } else { Level::Threads };
    let mut columns = Group::columns(by, level);
    // The column `name` already has the name of the interrupt.
    for column in columns.iter_mut().filter(|column| column.name == "name") {
        *column = Column::text("hit_name", "The name of those that were hit; NULL if they have none.");
    }
    columns
}

fn rows(history: &History, request: &Request, sums: Map<Key, Sum>) -> Answer {
    let mut columns = request.by.map(|_| group_columns(rows_by(request, history))).unwrap_or_default();
    let group_cells = columns.len();
    // In a row of a group, this is the member of the group that lost most.
    let by = match (request.by, rows_by(request, history)) {
        (None, by) | (_, by @ By::Lwp) => by,
        (Some(_), _) => By::Thread,
    };
    columns.extend([
        Column::text("kind", "irq, softirq, timer, ipi, vector or nmi."),
        Column::count("number", "Its number."),
        Column::text("name", "Its handler, or the softirq."),
    ]);
    columns.extend(Distribution::columns());
    columns.extend([
        Column::length("wall_tick", "Their sum with the interrupts that are inside of them."),
        Column::count("unended", "Interrupts whose exit was not seen; each counts with its known length."),
        Column::text("hit", "Who lost the most time to these interrupts."),
        Column::length("hit_tick", "How much time it lost."),
        Column::percent("hit_percent", "hit_tick as a percentage of total_tick."),
    ]);
    let mut answer = Answer::new(columns);
    let mut rows: Vec<_> = sums.into_iter().collect();
    let text = |word: Word| history.words.text(word);
    rows.sort_by_cached_key(|((group, (kind, number, name)), sum)| {
        (Reverse(sum.own.total()), text(*kind), *number, name.map(text), group.clone())
    });
    for ((group, (kind, number, name)), sum) in rows {
        let own: Distribution = sum.own.into();
        let (victim, ticks) = most(history, by, sum.hit);
        let mut row: Vec<Value<'_>> = match group.flatten() {
            Some(Group::Lwp(0)) => vec![0_u32.into(), "idle".into()],
            Some(group) => group.cells(history),
            None => vec![Value::Null; group_cells],
        };
        row.extend([
            text(kind).to_string().into(),
            number.into(),
            name.map(|name| text(name).to_string()).into(),
        ]);
        row.extend(own.cells());
        row.extend([
            sum.wall.into(),
            sum.unended.into(),
            victim.label(history).into(),
            ticks.into(),
            Value::Fraction(percent(ticks, own.total())),
        ]);
        answer.push_with_lengths(row, own);
    }
    answer
}

/// For each interrupt, the ticks inside the window in which it was the innermost of its CPU.
fn own_times(history: &History, window: Interval) -> Vec<i64> {
    let mut own = vec![0; history.interrupts.len()];
    for (_, track) in history.innermost.iter() {
        for (part, place) in track.within(window) {
            if let Some(own) = own.get_mut(*place as usize) {
                *own += part.ticks();
            }
        }
    }
    own
}

fn selects(request: &Request, interrupt: &Interrupt) -> bool {
    request.has_thread_or_none(interrupt.thread) && request.has_place(interrupt.lwp, Some(interrupt.cpu))
}

/// The group that lost most.
fn most(history: &History, by: By, hit: Map<Option<Victim>, i64>) -> (Culprit, i64) {
    let mut groups: Map<Culprit, i64> = Map::default();
    for (victim, ticks) in hit {
        let culprit = match victim {
            None => Culprit::Unknown,
            Some(Victim::Lwp(0)) => Culprit::Idle,
            Some(Victim::Lwp(lwp)) => Culprit::Group(Group::of_lwp(history, by, lwp)),
            Some(Victim::Thread(thread)) => Culprit::Group(Group::of_thread(history, by, thread)),
        };
        *groups.entry(culprit).or_insert(0) += ticks;
    }
    let most = groups.into_iter().max_by(|(a, of_a), (b, of_b)| of_a.cmp(of_b).then_with(|| b.cmp(a)));
    most.unwrap_or((Culprit::Unknown, 0))
}
