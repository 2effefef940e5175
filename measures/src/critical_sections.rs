//! `--critical-sections`: how long locks are held, and how deep in each other (Feather-Trace, figures 4 to 9).

use std::{cmp::Reverse, collections::BinaryHeap};

use crate::map::Map;

use crate::{
    Answer, Column, Distribution, Group, History, Measure, Needs, Request, Value,
    distribution::Lengths,
    groups::{Groups, Owner},
    locks::{Lock, Locks, Selection},
};

/// Lengths of critical sections, by nesting depth.
pub(crate) const CRITICAL_SECTIONS: Measure = Measure {
    name: "critical-sections",
    question: "How long are my critical sections, and how deeply do they nest?",
    heading: crate::measure::headings::WAY,
    subject: crate::measure::Subject::None,
    definition: "A critical section is a recorded hold of a lock: from the acquisition to the release, or as far as it is \
        known (events missing, end of the trace), wherever its thread migrates and whatever its state is. Its depth is the \
        number of locks that the same thread (or LWP without user threads) holds at the acquisition: acquired before, or \
        at the same tick and earlier in the trace, and not released by then. Holds that were not recorded, or whose \
        release is missing, are neither rows nor part of a depth. Depth counts all locks, selected or not. A row is a lock \
        (its process and address) and a depth, or, with a grouping, a group and a depth. Lengths are cut to the window; \
        sections of length 0 count where they are in it. Every section counts in one row, so total_tick sums to the time \
        held.",
    needs: Needs { locks: true, lwp_states: true, ..Needs::NONE },
    answer,
};

/// How many other locks each hold is inside of; `None` where there is no hold.
fn depths(history: &History) -> Vec<Option<u32>> {
    let mut order: Vec<(i64, u32)> = Vec::with_capacity(history.locks.len());
    for (place, lock) in history.locks.iter().enumerate() {
        if let Some(hold) = lock.holding() {
            order.push((hold.from, place as u32));
        }
    }
    order.sort_unstable();
    let mut depths = vec![None; history.locks.len()];
    // The ends of what each holds.
    let mut held: Map<Option<Owner>, BinaryHeap<Reverse<i64>>> = Map::default();
    for (acquired, place) in order {
        let lock = &history.locks[place as usize];
        let Some(hold) = lock.holding() else { continue };
        let ends = held.entry(lock.owner()).or_default();
        while ends.peek().is_some_and(|Reverse(end)| *end <= acquired) {
            ends.pop();
        }
        depths[place as usize] = Some(ends.len() as u32);
        ends.push(Reverse(hold.to));
    }
    depths
}

/// Whom a row is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Of {
    Lock(u32),
    Group(u32),
}

fn answer(history: &History, request: &Request) -> Result<Answer, String> {
    let mut columns = match request.by {
        Some(by) => Group::columns(by, request.level(history)),
        None => vec![
            Column::count("process", "The process of the lock; NULL if it is not known."),
            Column::count("object", "The address of the lock."),
        ],
    };
    columns.push(Column::count("depth", "Locks that the same thread held at the acquisition."));
    columns.extend(Distribution::columns());
    let (mut groups, mut locks) = (Groups::new(history, request), Locks::default());
    let selection = Selection::new(request);
    let mut lengths: Map<(Of, u32), Lengths> = Map::default();
    for (lock, depth) in history.locks.iter().zip(depths(history)) {
        let hold = lock.holding().and_then(|hold| hold.clipped(request.window));
        let (Some(hold), Some(depth)) = (hold, depth) else { continue };
        if !selection.has(history, lock) {
            continue;
        }
        let of = match request.by {
            None => Of::Lock(locks.number(history, lock)),
            Some(_) => match groups.number(lock.thread, lock.lwp) {
                Some(group) => Of::Group(group),
                None => continue,
            },
        };
        lengths.entry((of, depth)).or_default().push(hold.ticks());
    }
    let mut rows: Vec<_> = lengths
        .into_iter()
        .map(|((of, depth), lengths)| {
            let (lock, group) = match of {
                Of::Lock(number) => (Some(locks.lock(number)), None),
                Of::Group(number) => (None, Some(groups.group(number))),
            };
            (lock, group, depth, Distribution::from(lengths))
        })
        .collect();
    // First those that are held longest in sum, each with its depths in order.
    let mut totals: Map<(Option<Lock>, Option<&Group>), i64> = Map::default();
    for (lock, group, _, lengths) in &rows {
        *totals.entry((*lock, *group)).or_default() += lengths.total();
    }
    rows.sort_by_cached_key(|(lock, group, depth, _)| {
        (Reverse(totals.get(&(*lock, *group)).copied()), *lock, *group, *depth)
    });
    let mut answer = Answer::new(columns);
    for (lock, group, depth, lengths) in &rows {
        let mut cells: Vec<Value> = match (lock, group) {
            (Some(lock), _) => vec![lock.process.into(), lock.object.into()],
            (None, Some(group)) => group.cells(history),
            (None, None) => Vec::new(),
        };
        cells.push((*depth).into());
        cells.extend(lengths.cells());
        answer.push(cells);
    }
    Ok(answer)
}
