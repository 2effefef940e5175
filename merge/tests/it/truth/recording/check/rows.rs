//! Rows of states, compared with a log of the same time.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
};

use super::Log;
use crate::supertrace::Table;

/// The states that a log is in between two ticks.
pub(super) fn during<T: Copy>(
    log: &Log<T>,
    from: u64,
    to: u64,
) -> impl Iterator<Item = (u64, u64, Option<T>)> {
    let first = log.partition_point(|(tick, _)| *tick <= from);
    let before = (first > 0).then(|| log[first - 1].1);
    let head = std::iter::once((from, before));
    let inside = log[first..].iter().take_while(move |(tick, _)| *tick < to).map(|(t, is)| (*t, Some(*is)));
    let all: Vec<_> = head.chain(inside).collect();
    let ends: Vec<u64> = all[1..].iter().map(|(tick, _)| *tick).chain([to]).collect();
    all.into_iter().zip(ends).map(|((start, is), end)| (start, end, is)).filter(|(start, end, _)| start < end)
}

pub(super) fn at<T: Copy>(log: &Log<T>, tick: u64) -> Option<T> {
    let place = log.partition_point(|(t, _)| *t <= tick);
    (place > 0).then(|| log[place - 1].1)
}

/// A tick strictly within a row.
pub(super) fn inside(ticks: &BTreeSet<u64>, row: &Row) -> Option<u64> {
    ticks.range(row.start + 1..row.end.unwrap_or(u64::MAX).max(row.start + 1)).next().copied()
}

/// A row of `lwp_states` or `thread_states`.
#[derive(Clone, Debug)]
pub(super) struct Row {
    pub(super) start: u64,
    pub(super) end: Option<u64>,
    pub(super) state: String,
    pub(super) lwp: Option<i64>,
    pub(super) cpu: Option<i64>,
    /// Of a user thread.
    pub(super) waits: Waiting,
}

/// The object that a blocked thread waits for, and its kind.
pub(super) type Waiting = (Option<i64>, Option<String>);

pub(super) struct Rows {
    pub(super) by_number: BTreeMap<u64, Vec<Row>>,
}

impl Rows {
    pub(super) fn read(out: &Path, table: &str, number: &str) -> Rows {
        let table = Table::read(out, table);
        let (starts, lengths, states) =
            (table.numbers("ts_tick"), table.numbers("dur_tick"), table.lines(&["state"]));
        let (numbers, lwps, cpus) = (table.numbers(number), table.numbers("lwp"), table.numbers("cpu"));
        let waits = match number {
            "thread" => (table.numbers("blocked_on"), table.lines(&["blocked_for"])),
            _ => (vec![None; starts.len()], vec!["?".into(); starts.len()]),
        };
        let mut by_number: BTreeMap<u64, Vec<Row>> = BTreeMap::new();
        for row in 0..starts.len() {
            let start = starts[row].expect("a start") as u64;
            by_number.entry(numbers[row].expect("a number") as u64).or_default().push(Row {
                start,
                end: lengths[row].map(|length| start + length as u64),
                state: states[row].clone(),
                lwp: lwps[row],
                cpu: cpus[row],
                waits: (waits.0[row], Some(waits.1[row].clone()).filter(|kind| kind != "?")),
            });
        }
        for rows in by_number.values_mut() {
            // Of two with one start, the one with no length comes first; the end of a life comes last of all.
            rows.sort_by_key(|row| (row.start, row.end.is_none(), row.end));
        }
        Rows { by_number }
    }

    pub(super) fn len(&self) -> usize {
        self.by_number.values().map(Vec::len).sum()
    }

    /// Each begins where the one before ended, from the first settling event to the end of the trace or of the life.
    pub(super) fn check_no_holes<'t>(
        &self,
        trace_end: u64,
        settles: impl Iterator<Item = (u64, &'t BTreeSet<u64>)>,
    ) -> Result<(), String> {
        for (number, ticks) in settles {
            let rows = self.by_number.get(&number).map_or(&[][..], Vec::as_slice);
            let mut covered = None;
            for row in rows {
                let hole = match covered {
                    Some((end, false)) if end != row.start => Some(end),
                    Some((end, true)) => ticks.range(end + 1..row.start.max(end + 1)).next().copied(),
                    None => ticks.range(..row.start).next().copied(),
                    _ => None,
                };
                if let Some(tick) = hole {
                    return Err(format!("{number}: nothing between {tick} and {row:?}\n{rows:?}"));
                }
                covered = Some((row.end.unwrap_or(row.start), row.end.is_none()));
            }
            let rest = match covered {
                Some((end, false)) if end != trace_end => Some(end),
                Some((end, true)) => ticks.range(end + 1..).next().copied(),
                None => ticks.first().copied(),
                _ => None,
            };
            if let Some(tick) = rest {
                return Err(format!("{number}: nothing from {tick} on\n{rows:?}"));
            }
        }
        Ok(())
    }
}
