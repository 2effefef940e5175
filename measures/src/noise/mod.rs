//! `--noise`: what a span, or a thread, would have taken without interrupts, preemptions and waits.

mod parts;

use crate::{
    Answer, By, Column, Distribution, Group, History, Level, Measure, Needs, Request, Span,
    instances::unknown_name,
    tally::{self, Tally},
};
use parts::{Owner, Part, Parts, Splitter};

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

/// A distribution: a curve, or what was taken away.
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
    let mut tally = Tally::new();
    let mut splitter = Splitter::new(history);
    let (mut unknown, mut unended) = (0, 0);
    match &request.subject {
        Some(subject) => {
            let name = history.words.get(subject);
            if name.is_none() || history.spans.iter().all(|span| span.name != name) {
                return Err(unknown_name(history, subject));
            }
            for span in history.spans.iter().filter(|span| name.is_some() && span.name == name) {
                let owner = owner(span);
                let is_selected =
                    request.window.contains(span.interval.to) && selects(history, request, span);
                let Some((owner, group)) = owner.zip(group(history, by, level, span)).filter(|_| is_selected)
                else {
                    continue;
                };
                if span.end != sigmund_model::EndReason::Returned {
                    unended += 1;
                    continue;
                }
                let parts = splitter.split(owner, span.interval, &Request::default());
                match parts.of(Part::Unknown) {
                    0 => add(&mut tally, group, &parts),
                    _ => unknown += 1,
                }
            }
        }
        None => {
            let window = request.extent(history);
            for (owner, group) in selected(history, request, level, by) {
                let parts = splitter.split(owner, window, request);
                if parts.wall > 0 {
                    add(&mut tally, group, &parts);
                }
            }
        }
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
        answer.push(tally::cells(history, &group, row.name(), &lengths));
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

fn owner(span: &Span) -> Option<Owner> {
    span.thread.map(Owner::Thread).or(span.lwp.map(Owner::Lwp))
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

/// The selected user threads or LWPs.
fn selected<'h>(
    history: &'h History,
    request: &'h Request,
    level: Level,
    by: By,
) -> Box<dyn Iterator<Item = (Owner, Group)> + 'h> {
    let names = &history.names;
    match level {
        Level::Threads => {
            let threads = names.threads.keys().copied().filter(|thread| request.has_thread(*thread));
            Box::new(
                threads.map(move |thread| (Owner::Thread(thread), Group::of_thread(history, by, thread))),
            )
        }
        Level::Lwps => {
            let lwps = names.lwps.keys().copied().filter(|lwp| *lwp != 0 && request.has_lwp(*lwp));
            Box::new(lwps.map(move |lwp| (Owner::Lwp(lwp), Group::of_lwp(history, by, lwp))))
        }
    }
}
