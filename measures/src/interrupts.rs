//! `--interrupts`: how long each interrupt took, and whom it hit.

use std::cmp::Reverse;

use crate::map::Map;

use crate::{
    Answer, By, Column, Culprit, Distribution, Group, History, Interrupt, Interval, Measure, Needs, Request,
    Value, Word,
    distribution::Lengths,
    percent,
    sliced::{Computed, Slice, Sliced},
};

/// How long each interrupt took, and whom it hit.
pub(crate) const INTERRUPTS: Measure = Measure {
    name: "interrupts",
    question: "Which interrupts took how long, and whom did they hit?",
    heading: crate::measure::headings::WAY,
    subject: crate::measure::Subject::None,
    definition: "For each kind, number and name of interrupt (softirqs are interrupts, too) how many there were, and the \
        distribution of their own time: from entry to exit, without the interrupts that are inside of it. Both are \
        cut to the window; an interrupt counts if any of it is inside. wall_tick is the sum with those inside. One \
        whose exit was not seen counts as long as it is known; unended says how many these are. Whom it hit is the \
        user thread that was active (by LWP: the LWP on the CPU; idle for the idle task) and stays the same for all \
        of its length; the row names who lost most. Only interrupts that hit the selected user threads, LWPs and \
        CPUs count.",
    needs: Needs { interrupts: true, ..Needs::NONE },
    computed: Computed::Sliced(start),
};

#[derive(Default)]
struct Sum {
    own: Lengths,
    wall: i64,
    unended: u64,
    hit: Map<Option<Victim>, i64>,
}

/// Who was interrupted, as the table says.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Victim {
    Thread(u64),
    Lwp(u32),
}

/// An interrupt, as found again in an earlier slice: CPU, depth and interval.
type Known = (u32, u32, Interval);

struct Interrupts {
    request: Request,
    sums: Map<(Word, Option<i64>, Option<Word>), Sum>,
    /// The own times in later slices of interrupts that began before them.
    begun: Map<Known, i64>,
}

fn start(request: &Request) -> Box<dyn Sliced> {
    Box::new(Interrupts { request: request.clone(), sums: Map::default(), begun: Map::default() })
}

impl Sliced for Interrupts {
    fn add(&mut self, history: &History, slice: Slice) -> Result<(), String> {
        let (by, own) = (self.request.by(history), own_times(history, slice.interval));
        let later = std::mem::take(&mut self.begun);
        for (interrupt, own) in history.interrupts.iter().zip(own) {
            let Some(part) = interrupt.interval.clipped(slice.interval) else { continue };
            if !selects(&self.request, interrupt) {
                continue;
            }
            let sum = self.sums.entry((interrupt.kind, interrupt.number, interrupt.name)).or_default();
            sum.wall += part.ticks();
            let thread = interrupt.thread.filter(|_| by != By::Lwp).map(Victim::Thread);
            *sum.hit.entry(thread.or(interrupt.lwp.map(Victim::Lwp))).or_insert(0) += own;
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
        Ok(rows(history, self.request.by(history), self.sums))
    }
}

fn rows(history: &History, by: By, sums: Map<(Word, Option<i64>, Option<Word>), Sum>) -> Answer {
    let mut columns = vec![
        Column::text("kind", "irq, softirq, timer, ipi, vector or nmi."),
        Column::count("number", "Its number."),
        Column::text("name", "Its handler, or the softirq."),
    ];
    columns.extend(Distribution::columns());
    columns.extend([
        Column::length("wall_tick", "Their sum with the interrupts that are inside of them."),
        Column::count("unended", "Those whose exit was not seen; they count as long as they are known."),
        Column::text("hit", "Who lost most to them."),
        Column::length("hit_tick", "How much that was."),
        Column::percent("hit_percent", "Its share of their own time."),
    ]);
    let mut answer = Answer::new(columns);
    let mut rows: Vec<_> = sums.into_iter().collect();
    let text = |word: Word| history.words.text(word);
    rows.sort_by_cached_key(|((kind, number, name), sum)| {
        (Reverse(sum.own.total()), text(*kind), *number, name.map(text))
    });
    for ((kind, number, name), sum) in rows {
        let own: Distribution = sum.own.into();
        let (victim, ticks) = most(history, by, sum.hit);
        let mut row: Vec<Value> = vec![
            text(kind).to_string().into(),
            number.into(),
            name.map(|name| text(name).to_string()).into(),
        ];
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

/// Of each interrupt the ticks inside the window in which it was the innermost of its CPU.
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
    let is_thread = match &request.threads {
        None => true,
        Some(threads) => interrupt.thread.is_some_and(|thread| threads.contains(&thread)),
    };
    is_thread && request.has_place(interrupt.lwp, Some(interrupt.cpu))
}

/// Who lost most, grouped as the request says.
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
