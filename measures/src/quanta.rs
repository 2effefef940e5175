//! `--quanta`: how long user threads stay on their LWPs, and LWPs on their CPUs.

use std::cmp::Reverse;

use crate::map::Map;

use sigmund_model::{EndReason, LwpState, ThreadState};

use crate::{
    Answer, Column, Distribution, Group, History, Level, LwpStay, Measure, Needs, Request, ThreadStay, Track,
    distribution::Lengths,
};

/// How long user threads stay on their LWPs, and LWPs on their CPUs.
pub(crate) const QUANTA: Measure = Measure {
    name: "quanta",
    question: "How long does my thread run before it leaves, and what ends that?",
    heading: crate::measure::headings::SCHEDULING,
    subject: crate::measure::Subject::None,
    definition: "A quantum of a user thread is from its dispatch on an LWP to its leaving; mounted on another LWP is another \
        quantum, also without a leaving in between. Its length is its active ticks (with interrupts); wall ticks are \
        beside it. A preemption of its LWP, or a sleep in the kernel, does not end it. It ends by yield, quantum, \
        block, exit, user-switch (the runtime gave no reason), or lost: events are missing from there on. LWPs: from \
        the switch in to the switch out, which is by preempted, sched-yield, runnable (one of the two), slept, \
        kernel-switch, exit or lost; all of it is active. A quantum counts whole, if its end is in the window, and \
        by the LWP and CPU where it ends. One whose begin is not known, or in which it is not known whether the LWP \
        was on a CPU, is not counted; a note says how many. One that the end of the trace cuts is none.",
    needs: Needs { only_lives: true, ..Needs::STATES },
    answer,
};

/// A stay on an LWP, or on a CPU.
#[derive(Clone, Copy, Debug)]
struct Quantum {
    from: i64,
    to: i64,
    /// `None` if that is not known.
    active: Option<i64>,
    preemptions: u64,
    is_begin_known: bool,
    lwp: u32,
    ended_by: EndReason,
}

#[derive(Default)]
struct Sum {
    active: Lengths,
    wall: i64,
    preemptions: u64,
}

const ENDS: &[EndReason] = &[
    EndReason::Yield,
    EndReason::Quantum,
    EndReason::Block,
    EndReason::Exit,
    EndReason::UserSwitch,
    EndReason::Preempted,
    EndReason::SchedYield,
    EndReason::Runnable,
    EndReason::Slept,
    EndReason::KernelSwitch,
];

fn answer(history: &History, request: &Request) -> Result<Answer, String> {
    let (by, level) = (request.by(history), request.level(history));
    let mut groups: Map<Group, Map<&'static str, Sum>> = Map::default();
    let mut uncounted = 0;
    let mut count = |sums: &mut Map<&'static str, Sum>, quantum: Quantum| {
        if quantum.ended_by == EndReason::TraceEnd || !request.window.contains(quantum.to) {
            return;
        }
        let cpu = || history.lwps.of(quantum.lwp.into()).before(quantum.to)?.1.cpu;
        if !request.has_place(Some(quantum.lwp), request.cpus.as_ref().and_then(|_| cpu())) {
            return;
        }
        let (Some(active), true) = (quantum.active, quantum.is_begin_known) else {
            uncounted += 1;
            return;
        };
        let end = if ENDS.contains(&quantum.ended_by) { quantum.ended_by } else { EndReason::Lost };
        let sum = sums.entry(end.name()).or_default();
        sum.active.push(active);
        sum.wall += quantum.to - quantum.from;
        sum.preemptions += quantum.preemptions;
    };
    match level {
        Level::Threads => {
            for thread in history.names.threads.keys().filter(|thread| request.has_thread(**thread)) {
                let sums = groups.entry(Group::of_thread(history, by, *thread)).or_default();
                of_thread(history.threads.of(*thread), |quantum| count(sums, quantum));
            }
        }
        Level::Lwps => {
            for lwp in history.names.lwps.keys().filter(|lwp| **lwp != 0 && request.has_lwp(**lwp)) {
                let sums = groups.entry(Group::of_lwp(history, by, *lwp)).or_default();
                of_lwp(*lwp, history.lwps.of((*lwp).into()), |quantum| count(sums, quantum));
            }
        }
    }
    let mut answer = rows(history, request, groups);
    if uncounted > 0 {
        answer.notes.push(format!(
            "{uncounted} quanta are not counted: it is not known when they began, or when they were active."
        ));
    }
    Ok(answer)
}

/// Calls `each` with every stay of a user thread on an LWP.
fn of_thread(track: Track<'_, ThreadStay>, mut each: impl FnMut(Quantum)) {
    let mut open: Option<Quantum> = None;
    let mut before: Option<(i64, EndReason)> = None;
    for (interval, stay) in track.iter() {
        let is_mounted = !matches!(stay.state, ThreadState::Unknown | ThreadState::Exited);
        let lwp = stay.lwp.filter(|_| is_mounted);
        if let Some(quantum) = open.take_if(|quantum| (Some(quantum.lwp), quantum.to) != (lwp, interval.from))
        {
            each(quantum);
        }
        let ended = before.filter(|(at, _)| *at == interval.from).map(|(_, end)| end);
        before = stay.end.map(|end| (interval.to, end));
        let Some(lwp) = lwp else { continue };
        let quantum = open.get_or_insert(Quantum {
            from: interval.from,
            to: interval.from,
            active: Some(0),
            preemptions: 0,
            is_begin_known: ended == Some(EndReason::Dispatched),
            lwp,
            ended_by: EndReason::Lost,
        });
        match stay.state {
            ThreadState::Active => {
                quantum.active = quantum.active.map(|active| active + interval.ticks());
                let is_preempted = matches!(stay.end, Some(EndReason::Preempted | EndReason::Runnable));
                quantum.preemptions += u64::from(is_preempted);
            }
            ThreadState::Mounted if interval.ticks() > 0 => quantum.active = None,
            _ => {}
        }
        quantum.to = interval.to;
        quantum.ended_by = stay.end.unwrap_or(EndReason::Lost);
    }
    open.into_iter().for_each(each);
}

/// Calls `each` with every stay of an LWP on a CPU.
fn of_lwp(lwp: u32, track: Track<'_, LwpStay>, mut each: impl FnMut(Quantum)) {
    let mut before: Option<(i64, EndReason)> = None;
    for (interval, stay) in track.iter() {
        if stay.state == LwpState::Running {
            let ended_by = stay.end.unwrap_or(EndReason::Lost);
            each(Quantum {
                from: interval.from,
                to: interval.to,
                active: Some(interval.ticks()),
                preemptions: u64::from(matches!(ended_by, EndReason::Preempted | EndReason::Runnable)),
                is_begin_known: before == Some((interval.from, EndReason::Dispatched)),
                lwp,
                ended_by,
            });
        }
        before = stay.end.map(|end| (interval.to, end));
    }
}

fn rows(history: &History, request: &Request, groups: Map<Group, Map<&'static str, Sum>>) -> Answer {
    let mut columns = Group::columns(request.by(history), request.level(history));
    columns.push(Column::text("ended_by", "What ended them; `all` for all of the group together."));
    columns.extend(Distribution::columns());
    columns.extend([
        Column::length("wall_tick", "The sum of their wall time."),
        Column::length("wall_mean_tick", "Their mean wall time, rounded down."),
        Column::count(
            "preemptions",
            "Times the LWP left its CPU runnable, but not by sched_yield, as far as that is known.",
        ),
    ]);
    let mut answer = Answer::new(columns);
    let mut groups: Vec<_> = groups.into_iter().filter(|(_, sums)| !sums.is_empty()).map(summed).collect();
    groups.sort_by_cached_key(|(group, sums)| (Reverse(sums[0].1.total()), group.clone()));
    for (group, sums) in groups {
        for (ended_by, active, wall, preemptions) in sums {
            let mut row = group.cells(history);
            row.push(ended_by.into());
            row.extend(active.cells());
            row.extend([wall.into(), (wall / active.count().max(1) as i64).into(), preemptions.into()]);
            answer.push_with_lengths(row, active);
        }
    }
    answer
}

type Row = (&'static str, Distribution, i64, u64);

/// The sums of a group: first of all, then by what ended them, the longest first.
fn summed((group, sums): (Group, Map<&'static str, Sum>)) -> (Group, Vec<Row>) {
    let mut all = Lengths::default();
    sums.values().for_each(|sum| all.merge(sum.active.clone()));
    let wall = sums.values().map(|sum| sum.wall).sum();
    let preemptions = sums.values().map(|sum| sum.preemptions).sum();
    let mut rows: Vec<Row> =
        sums.into_iter().map(|(end, sum)| (end, sum.active.into(), sum.wall, sum.preemptions)).collect();
    rows.sort_by_key(|(end, active, ..): &Row| (Reverse(active.total()), *end));
    rows.insert(0, ("all", all.into(), wall, preemptions));
    (group, rows)
}
