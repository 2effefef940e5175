//! A line of a timeline, drawn from its end to its beginning.

use super::shown::{SHOWN, Shown, largest};
use crate::Interval;

/// The columns of a timeline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Scale {
    pub(super) window: Interval,
    /// As many as requested, but no column is shorter than a tick.
    pub(super) columns: usize,
}

impl Scale {
    pub(super) fn new(window: Interval, columns: usize) -> Scale {
        Scale { window, columns: columns.min(usize::try_from(window.ticks()).unwrap_or(usize::MAX)) }
    }

    /// The first tick of a column; of the column after the last, the end of the window.
    pub(super) fn begin(self, column: usize) -> i64 {
        let ticks = i128::from(self.window.ticks()) * column as i128 / self.columns.max(1) as i128;
        self.window.from + ticks as i64
    }

    /// The first column that begins at this tick of the window or later.
    fn first_from(self, tick: i64) -> usize {
        let ticks = i128::from(tick) - i128::from(self.window.from);
        let near = (ticks * self.columns as i128 / i128::from(self.window.ticks().max(1))) as usize;
        (near..self.columns).find(|column| self.begin(*column) >= tick).unwrap_or(self.columns)
    }
}

/// Columns that follow each other and show the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Run {
    pub(super) columns: usize,
    pub(super) shown: Shown,
}

/// One user thread or LWP, as far as it is drawn: from `at` to the end of the window.
#[derive(Clone, Debug)]
pub(super) struct Line {
    /// The latest column first.
    runs: Vec<Run>,
    /// As long as all columns show that it is not alive: what they would show if that did not count. A life that is
    /// shorter than half a column would otherwise have an empty line.
    while_there: Vec<Run>,
    /// Ticks of each state in the window, in the order of [`Shown::ALL`].
    pub(super) sums: [i64; SHOWN],
    at: i64,
    /// The column that contains the tick before `at`, its first tick, and what is known of it.
    column: usize,
    begins: i64,
    shares: [i64; SHOWN],
}

impl Line {
    pub(super) fn new(scale: Scale) -> Line {
        let column = scale.columns.saturating_sub(1);
        Line {
            runs: Vec::new(),
            while_there: Vec::new(),
            sums: [0; SHOWN],
            at: scale.window.to,
            column,
            begins: scale.begin(column),
            shares: [0; SHOWN],
        }
    }

    /// Everything from here on is drawn.
    pub(super) fn at(&self) -> i64 {
        self.at
    }

    /// The ticks in which it is alive and at a selected place.
    pub(super) fn selected(&self) -> i64 {
        let states = Shown::ALL.into_iter().filter(|shown| shown.is_state());
        states.map(|shown| self.sums[shown as usize]).fold(0, i64::saturating_add)
    }

    /// What it shows from this tick on, up to where it is drawn already.
    pub(super) fn extend(&mut self, scale: Scale, from: i64, shown: Shown) {
        let from = from.max(scale.window.from);
        add(&mut self.sums[shown as usize], self.at.saturating_sub(from).max(0));
        while from < self.at {
            let until = self.begins.max(from);
            add(&mut self.shares[shown as usize], self.at.saturating_sub(until));
            self.at = until;
            if until == self.begins {
                self.close(scale, 1);
                // Whole columns of the same.
                let first = scale.first_from(from);
                if self.at > self.begins && first <= self.column {
                    self.shares[shown as usize] = 1;
                    self.at = scale.begin(first);
                    self.close(scale, self.column + 1 - first);
                }
            }
        }
    }

    /// Ends so many columns with these shares.
    fn close(&mut self, scale: Scale, columns: usize) {
        let shown = largest(&self.shares);
        push(&mut self.runs, Run { columns, shown });
        if let [Run { shown: Shown::NotThere, .. }] = self.runs.as_slice() {
            self.shares[Shown::NotThere as usize] = 0;
            let is_there = self.shares.iter().any(|share| *share > 0);
            let shown = if is_there { largest(&self.shares) } else { Shown::NotThere };
            push(&mut self.while_there, Run { columns, shown });
        } else {
            self.while_there = Vec::new();
        }
        self.shares = [0; SHOWN];
        self.column = self.column.saturating_sub(columns);
        self.begins = scale.begin(self.column);
    }

    /// What the columns show, the earliest first.
    pub(super) fn into_runs(self) -> Vec<Run> {
        let is_empty = matches!(self.runs.as_slice(), [Run { shown: Shown::NotThere, .. }]);
        let mut runs = if is_empty { self.while_there } else { self.runs };
        runs.reverse();
        runs
    }
}

/// The ticks of a damaged file may be further apart than numbers reach.
fn add(sum: &mut i64, ticks: i64) {
    *sum = sum.saturating_add(ticks);
}

fn push(runs: &mut Vec<Run>, run: Run) {
    match runs.last_mut().filter(|last| last.shown == run.shown) {
        Some(last) => last.columns += run.columns,
        None => runs.push(run),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // Ticks of a damaged file may be anything.
    #[test]
    fn a_window_may_be_longer_than_numbers_are() {
        let scale = Scale::new(Interval { from: i64::MIN, to: i64::MAX }, 4);
        let mut line = Line::new(scale);
        line.extend(scale, 0, Shown::Active);
        line.extend(scale, i64::MIN, Shown::Ready);
        assert_eq!(line.at(), i64::MIN);
        assert_eq!(line.selected(), i64::MAX);
        assert_eq!(line.into_runs().iter().map(|run| run.columns).sum::<usize>(), 4);
    }
}
