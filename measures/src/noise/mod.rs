//! `--noise`: what a span, or a thread, would have taken without interrupts, preemptions and waits.

mod parts;

use crate::{
    Answer, By, Column, Distribution, Group, History, Level, Measure, Needs, Request, Span,
    collect::collect,
    groups::Owner,
    instances::unknown_name,
    stays::asked_owners,
    tally::{self, Tally},
};
use parts::{Part, Parts, Splitter};

/// What a span, or a thread, would have taken without interrupts, preemptions and waits.
pub(crate) const NOISE: Measure = Measure {
    name: "noise",
    question: "How long would my span take if nothing interrupted it, and what did interrupt it?",
    heading: crate::measure::headings::WAY,
    subject: crate::measure::Subject::Optional("SPAN"),
    definition: "For each span or function of the name that is asked for (without one, for the life of each selected user \
        thread or LWP, cut to the window) its wall time is split, exactly: timer (interrupts of kind timer, irqs \
        named timer, softirqs TIMER and HRTIMER), other interrupts by kind (each without those inside of it), \
        off-cpu (runnable and not running, on either level: stalled, ready, new), waits (blocked, asleep in the \
        kernel, stopped), unknown, and pure, which is the rest. Interrupts count while the user thread is active \
        (the LWP on a CPU). Curves, of which each is a distribution: wall; without-timer (wall less timer); \
        without-interrupts (less all interrupts); pure. After the curves come the parts that were taken away, each \
        over the spans in which it occurred. A span counts whole, if its end is in the window, by the user thread \
        that it is of (by LWP: the LWP on which it began). One that did not end, or of which a part is unknown, is \
        counted apart, in a note.",
    needs: Needs { interrupts: true, spans: true, ..Needs::STATES },
    answer,
};

/// A distribution: a curve, or a part that was taken away.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Row {
    Wall,
    WithoutTimer,
    WithoutInterrupts,
    Pure,
    Part(Part),
}

fn answer(history: &History, request: &Request) -> Result<Answer, String> {
    let (by, level) = (request.by(history), request.level(history));
    let new = || Curves { splitter: Splitter::new(history), tally: Tally::new(), unknown: 0, unended: 0 };
    let parts = match &request.subject {
        Some(subject) => {
            let name = history.words.get(subject);
            if name.is_none() || history.spans.iter().all(|span| span.name != name) {
                return Err(unknown_name(history, subject));
            }
            let add = |curves: &mut Curves<'_>, span: &Span| {
                if span.name == name {
                    curves.add_span(history, request, span);
                }
            };
            collect(&history.spans, new, add)
        }
        None => {
            let window = request.extent(history);
            let owners = asked_owners(history, request);
            collect(&owners, new, |curves: &mut Curves<'_>, owner| {
                let parts = curves.splitter.split(*owner, window, request);
                let group = match owner {
                    Owner::Thread(thread) => Group::of_thread(history, by, *thread),
                    Owner::Lwp(lwp) => Group::of_lwp(history, by, *lwp),
                };
                if parts.wall > 0 {
                    add(&mut curves.tally, group, &parts);
                }
            })
        }
    };
    let (mut tally, mut unknown, mut unended) = (Tally::new(), 0, 0);
    for part in parts {
        tally.merge(part.tally);
        unknown += part.unknown;
        unended += part.unended;
    }
    let mut columns = Group::columns(by, level);
    columns.push(Column::text(
        "curve",
        "wall, without-timer, without-interrupts, pure; or what was taken away.",
    ));
    columns.extend(Distribution::columns());
    let mut answer = Answer::new(columns);
    let mut rows = tally.finish();
    // Groups by their wall time, as they are; inside of one the curves come first.
    let mut places = crate::map::Map::default();
    for (place, (group, ..)) in rows.iter().enumerate() {
        places.entry(group.clone()).or_insert(place);
    }
    rows.sort_by_key(|(group, row, _)| (places.get(group).copied(), *row));
    for (group, row, lengths) in rows {
        answer.push_with_lengths(tally::cells(history, &group, row.name(), &lengths), lengths);
    }
    for (count, why) in [(unknown, "events are missing in them"), (unended, "they did not end")] {
        if count > 0 {
            answer.notes.push(format!("{count} spans are not counted: {why}."));
        }
    }
    Ok(answer)
}

impl Row {
    fn name(self) -> &'static str {
        match self {
            Row::Wall => "wall",
            Row::WithoutTimer => "without-timer",
            Row::WithoutInterrupts => "without-interrupts",
            Row::Pure => "pure",
            Row::Part(part) => part.name(),
        }
    }
}

/// Collects the curves of some spans or threads.
struct Curves<'h> {
    splitter: Splitter<'h>,
    tally: Tally<Row>,
    unknown: u64,
    unended: u64,
}

impl Curves<'_> {
    fn add_span(&mut self, history: &History, request: &Request, span: &Span) {
        let (by, level) = (request.by(history), request.level(history));
        let is_selected = request.window.contains(span.interval.to) && selects(history, request, span);
        let group = group(history, by, level, span);
        let Some((owner, group)) = Owner::new(span.thread, span.lwp).zip(group).filter(|_| is_selected)
        else {
            return;
        };
        if span.end != sigmund_model::EndReason::Returned {
            self.unended += 1;
            return;
        }
        let parts = self.splitter.split(owner, span.interval, &Request::default());
        match parts.of(Part::Unknown) {
            0 => add(&mut self.tally, group, &parts),
            _ => self.unknown += 1,
        }
    }
}

fn add(tally: &mut Tally<Row>, group: Group, parts: &Parts) {
    let rows = tally.of(group);
    let mut push = |row, ticks| rows.entry(row).or_default().push(ticks);
    let without_timer = parts.wall - parts.of(Part::Timer);
    push(Row::Wall, parts.wall);
    push(Row::WithoutTimer, without_timer);
    push(Row::WithoutInterrupts, without_timer - parts.other_interrupts());
    push(Row::Pure, parts.pure());
    for part in Part::ALL.iter().filter(|part| parts.of(**part) > 0) {
        push(Row::Part(*part), parts.of(*part));
    }
}

/// The group of a span; one without a user thread is in no row of user threads.
fn group(history: &History, by: By, level: Level, span: &Span) -> Option<Group> {
    match (level, span.thread) {
        (Level::Threads, Some(thread)) => Some(Group::of_thread(history, by, thread)),
        (Level::Threads, None) if by == By::Thread => None,
        _ => span.lwp.map(|lwp| Group::of_lwp(history, by, lwp)),
    }
}

/// Whether the thread of a span is selected, and the place where it began.
fn selects(history: &History, request: &Request, span: &Span) -> bool {
    let cpu = || history.lwps.of(span.lwp?.into()).at(span.interval.from)?.1.cpu;
    let is_thread = match &request.threads {
        None => true,
        Some(threads) => span.thread.is_some_and(|thread| threads.contains(&thread)),
    };
    is_thread && request.has_place(span.lwp, request.cpus.as_ref().and_then(|_| cpu()))
}
