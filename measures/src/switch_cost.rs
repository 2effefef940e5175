//! `--switch-cost`: an upper bound of the time of a switch, from the events before and after it.

use crate::map::Map;

use sigmund_model::{LwpState, ThreadState};

use crate::{
    Answer, Column, Distribution, EventAt, Group, History, Interval, Level, Measure, Needs, Request, Track,
    distribution::Lengths,
    gaps::Gaps,
    tally::{self, Tally},
};

/// An upper bound of the time that a switch takes.
pub(crate) const SWITCH_COST: Measure = Measure {
    name: "switch-cost",
    question: "How much time does a switch from one thread to another take, at most?",
    heading: crate::measure::headings::SCHEDULING,
    subject: crate::measure::Subject::None,
    definition: "LWPs: on one CPU, from the last event of the LWP that leaves (sched_switch itself is one) to the first event \
        of the one that comes. User threads: on one LWP, from the last event of the user thread that leaves to the \
        first of the one that comes, if the LWP was on a CPU all the while. An upper bound, since events are sparse: \
        the more are traced, the closer it is; count says how many pairs it rests on. Events in interrupts belong to \
        the LWP that they interrupt, and to no user thread. One row for the LWP or user thread that comes, and for \
        what left: idle (the idle task), or other. A pair counts whole if its end is in the window, and by the LWP \
        and CPU of its end. A pair in which events may be missing, or the state of either is unknown, is not counted.",
    needs: Needs { events: true, ..Needs::STATES },
    answer,
};

fn answer(history: &History, request: &Request) -> Result<Answer, String> {
    let (by, level, gaps) = (request.by(history), request.level(history), Gaps::new(&history.gaps));
    let mut pairs: Map<(u64, &'static str), Lengths> = Map::default();
    let mut last: Map<u32, EventAt> = Map::default();
    let mut uncounted = 0;
    for event in &history.events {
        let (place, comes) = match level {
            Level::Lwps => (event.cpu(), event.lwp().map(u64::from)),
            Level::Threads => (event.lwp(), event.thread()),
        };
        let Some(place) = place else { continue };
        let Some(comes) = comes else {
            if level == Level::Lwps {
                last.remove(&place);
            }
            continue;
        };
        let Some(before) = last.insert(place, *event) else { continue };
        let left = match level {
            Level::Lwps => before.lwp().map(u64::from),
            Level::Threads => before.thread(),
        };
        let is_counted = left != Some(comes)
            && request.window.contains(event.tick())
            && request.has_place(event.lwp(), event.cpu());
        if !is_counted {
            continue;
        }
        let between = Interval::new(before.tick(), event.tick());
        let is_selected = match (level, event.lwp()) {
            (Level::Lwps, lwp) => lwp != Some(0),
            (Level::Threads, Some(lwp)) => request.has_thread(comes) && stays_on_cpu(history, lwp, between),
            (Level::Threads, None) => false,
        };
        if !is_selected {
            continue;
        }
        let lwp = event.lwp().filter(|_| level == Level::Threads);
        let are_known = match level {
            Level::Lwps => [left, Some(comes)]
                .into_iter()
                .flatten()
                .all(|lwp| is_known(history.lwps.of(lwp), between, |stay| stay.state == LwpState::Unknown)),
            Level::Threads => [left, Some(comes)].into_iter().flatten().all(|thread| {
                is_known(history.threads.of(thread), between, |stay| stay.state == ThreadState::Unknown)
            }),
        };
        if !are_known || gaps.touch(event.cpu(), lwp, between) {
            uncounted += 1;
            continue;
        }
        let from = if level == Level::Lwps && left == Some(0) { "idle" } else { "other" };
        pairs.entry((comes, from)).or_default().push(between.ticks());
    }
    let mut tally: Tally<&'static str> = Tally::new();
    for ((comes, from), lengths) in pairs {
        let group = match level {
            Level::Lwps => Group::of_lwp(history, by, comes as u32),
            Level::Threads => Group::of_thread(history, by, comes),
        };
        tally.of(group).entry(from).or_default().merge(lengths);
    }
    let mut columns = Group::columns(by, level);
    columns.push(Column::text("from", "What left: idle (the idle task) or other."));
    columns.extend(Distribution::columns());
    let mut answer = Answer::new(columns);
    for (group, from, lengths) in tally.finish() {
        answer.push_with_lengths(tally::cells(history, &group, from, &lengths), lengths);
    }
    if uncounted > 0 {
        answer.notes.push(format!("{uncounted} switches are not counted: events are missing in them."));
    }
    Ok(answer)
}

/// Whether no part of an interval is unknown.
fn is_known<T>(track: Track<'_, T>, between: Interval, is_unknown: impl Fn(&T) -> bool) -> bool {
    !track.within(between).any(|(part, stay)| part.ticks() > 0 && is_unknown(stay))
}

/// Whether an LWP was on one CPU all the time.
fn stays_on_cpu(history: &History, lwp: u32, between: Interval) -> bool {
    let stay = history.lwps.of(lwp.into()).at(between.from);
    stay.is_some_and(|(interval, stay)| stay.state == LwpState::Running && between.to <= interval.to)
}
