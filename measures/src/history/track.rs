//! The intervals of one thread, LWP or CPU, found by time.

use std::iter;

use crate::Interval;

/// The intervals of one key.
#[derive(Debug)]
pub struct Track<'s, T> {
    pub(super) from: &'s [i64],
    pub(super) to: &'s [i64],
    pub(super) values: &'s [T],
}

impl<T> Clone for Track<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Track<'_, T> {}

impl<'s, T> Track<'s, T> {
    /// How many intervals there are.
    pub fn len(self) -> usize {
        self.values.len()
    }

    /// Whether there is none.
    pub fn is_empty(self) -> bool {
        self.values.is_empty()
    }

    /// The interval at a place in the order of time.
    pub fn get(self, place: usize) -> Option<(Interval, &'s T)> {
        let value = self.values.get(place)?;
        Some((Interval { from: self.from[place], to: self.to[place] }, value))
    }

    /// All intervals in the order of time.
    pub fn iter(self) -> impl DoubleEndedIterator<Item = (Interval, &'s T)> {
        (0..self.len()).filter_map(move |place| self.get(place))
    }

    /// The place of the interval that contains a tick.
    pub fn place_at(self, tick: i64) -> Option<usize> {
        let place = self.from.partition_point(|from| *from <= tick).checked_sub(1)?;
        (tick < self.to[place]).then_some(place)
    }

    /// The place of the interval that contains the instant just before a tick. That interval ends at the tick or later.
    pub fn place_before(self, tick: i64) -> Option<usize> {
        let mut place = self.from.partition_point(|from| *from < tick).checked_sub(1)?;
        // Intervals of length 0 contain no instant, so they are skipped.
        while place > 0 && self.to[place] == self.from[place] && self.to[place - 1] >= tick {
            place -= 1;
        }
        (tick <= self.to[place]).then_some(place)
    }

    /// How many intervals begin at a tick or before.
    pub fn count_from(self, tick: i64) -> usize {
        self.from.partition_point(|from| *from <= tick)
    }

    /// How many intervals begin before a tick.
    pub(crate) fn count_before(self, tick: i64) -> usize {
        self.from.partition_point(|from| *from < tick)
    }

    /// How many intervals end at a tick or before.
    pub(crate) fn count_to(self, tick: i64) -> usize {
        self.to.partition_point(|to| *to <= tick)
    }

    /// Where the hole begins that contains the instant just before a tick. `i64::MIN` if there is no interval before
    /// the tick.
    pub fn hole_before(self, tick: i64) -> i64 {
        let place = self.from.partition_point(|from| *from < tick).checked_sub(1);
        place.map_or(i64::MIN, |place| self.to[place])
    }

    /// The interval that contains a tick.
    pub fn at(self, tick: i64) -> Option<(Interval, &'s T)> {
        self.get(self.place_at(tick)?)
    }

    /// The interval that contains the instant just before a tick.
    pub fn before(self, tick: i64) -> Option<(Interval, &'s T)> {
        self.get(self.place_before(tick)?)
    }

    /// The intervals that overlap `window`, clipped to it, in the order of time.
    pub fn within(self, window: Interval) -> impl Iterator<Item = (Interval, &'s T)> {
        self.within_from(self.to.partition_point(|to| *to < window.from), window)
    }

    /// As [`within`](Self::within), with each interval both clipped and whole.
    pub(crate) fn within_whole(self, window: Interval) -> impl Iterator<Item = (Interval, Interval, &'s T)> {
        let first = self.to.partition_point(|to| *to < window.from);
        let rest = (first..self.len()).filter_map(move |place| self.get(place));
        rest.take_while(move |(interval, _)| interval.from < window.to)
            .filter_map(move |(interval, value)| Some((interval.clipped(window)?, interval, value)))
    }

    /// Like [`at`](Self::at), for ticks that are near each other: `hint` is where the last search ended.
    pub fn at_near(self, tick: i64, hint: &mut usize) -> Option<(Interval, &'s T)> {
        *hint = near(self.from, |from| *from <= tick, *hint);
        let (interval, value) = self.get(hint.checked_sub(1)?)?;
        (tick < interval.to).then_some((interval, value))
    }

    /// Like [`before`](Self::before), for ticks that are near each other: `hint` is where the last search ended.
    pub(crate) fn before_near(self, tick: i64, hint: &mut usize) -> Option<(Interval, &'s T)> {
        *hint = near(self.from, |from| *from < tick, *hint);
        let mut place = hint.checked_sub(1)?;
        while place > 0 && self.to[place] == self.from[place] && self.to[place - 1] >= tick {
            place -= 1;
        }
        self.get(place).filter(|(interval, _)| tick <= interval.to)
    }

    /// Like [`hole_before`](Self::hole_before), for ticks that are near each other.
    pub(crate) fn hole_before_near(self, tick: i64, hint: &mut usize) -> i64 {
        *hint = near(self.from, |from| *from < tick, *hint);
        hint.checked_sub(1).map_or(i64::MIN, |place| self.to[place])
    }

    /// Like [`count_from`](Self::count_from), for ticks that are near each other.
    pub(crate) fn count_from_near(self, tick: i64, hint: &mut usize) -> usize {
        *hint = near(self.from, |from| *from <= tick, *hint);
        *hint
    }

    /// Like [`within`](Self::within), for windows that are near each other: `hint` is where the last search ended.
    pub fn within_near(
        self,
        window: Interval,
        hint: &mut usize,
    ) -> impl Iterator<Item = (Interval, &'s T)> + use<'s, T> {
        *hint = near(self.to, |to| *to < window.from, *hint);
        self.within_from(*hint, window)
    }

    /// The intervals of [`within`](Self::within). `first` is the place of the first of them.
    fn within_from(
        self,
        first: usize,
        window: Interval,
    ) -> impl Iterator<Item = (Interval, &'s T)> + use<'s, T> {
        let rest = (first..self.len()).filter_map(move |place| self.get(place));
        rest.take_while(move |(interval, _)| interval.from < window.to)
            .filter_map(move |(interval, value)| Some((interval.clipped(window)?, value)))
    }

    /// As [`within`](Self::within), with the holes between the intervals as `None`. So the parts sum to the window.
    pub fn partition(self, window: Interval) -> impl Iterator<Item = (Interval, Option<&'s T>)> {
        parts(self.within(window), window)
    }

    /// Like [`partition`](Self::partition), for windows that are near each other: `hint` is where the last search ended.
    pub fn partition_near(
        self,
        window: Interval,
        hint: &mut usize,
    ) -> impl Iterator<Item = (Interval, Option<&'s T>)> + use<'s, T> {
        parts(self.within_near(window, hint), window)
    }
}

/// The intervals inside of a window, and the holes between them.
fn parts<'s, T: 's>(
    inside: impl Iterator<Item = (Interval, &'s T)>,
    window: Interval,
) -> impl Iterator<Item = (Interval, Option<&'s T>)> {
    let mut inside = inside.peekable();
    let mut at = window.from;
    iter::from_fn(move || {
        if at >= window.to {
            return None;
        }
        // Intervals of length 0 are no part of the window.
        while inside.next_if(|(interval, _)| interval.ticks() == 0).is_some() {}
        let hole_ends = inside.peek().map_or(window.to, |(interval, _)| interval.from);
        if at < hole_ends {
            let hole = Interval::new(at, hole_ends);
            at = hole_ends;
            return Some((hole, None));
        }
        let (interval, value) = inside.next()?;
        at = interval.to;
        Some((interval, Some(value)))
    })
}

/// The partition point of a list, searched from `hint` on in steps that double. This is fast if the point is near
/// `hint`, where the memory was read recently.
pub fn near<T>(list: &[T], is_before: impl Fn(&T) -> bool, hint: usize) -> usize {
    let hint = hint.min(list.len());
    let (mut low, mut high) = (hint, hint);
    let mut step = 1;
    if list.get(hint).is_some_and(&is_before) {
        while list.get(high).is_some_and(&is_before) {
            low = high + 1;
            high += step;
            step *= 2;
        }
    } else {
        while low > 0 && !is_before(&list[low - 1]) {
            high = low - 1;
            low = low.saturating_sub(step);
            step *= 2;
        }
    }
    let high = high.min(list.len());
    low + list[low..high].partition_point(is_before)
}

/// Calls `each` with the intervals of a track, and its holes, that overlap any of `runs` inside of `within`. `runs` are
/// sorted and disjoint. Each interval is cut to `within` and to the end of the runs; it may contain instants that are
/// in no run. The number of steps is the number of runs or of intervals, whichever is smaller. `hints` is where the
/// last searches ended, in the track and in the runs.
pub(crate) fn stretches<'s, T>(
    track: Track<'s, T>,
    runs: &[Interval],
    within: Interval,
    hints: &mut (usize, usize),
    mut each: impl FnMut(Interval, Option<&'s T>),
) {
    let (of_track, run) = hints;
    let mut at = within.from;
    loop {
        *run = near(runs, |run| run.to <= at, *run);
        let Some(next) = runs.get(*run) else { return };
        at = at.max(next.from);
        if at >= within.to {
            return;
        }
        let place = track.count_from_near(at, of_track);
        let here = place.checked_sub(1).and_then(|place| track.get(place));
        let (end, value) = match here.filter(|(interval, _)| at < interval.to) {
            Some((interval, value)) => (interval.to, Some(value)),
            None => (track.get(place).map_or(i64::MAX, |(next, _)| next.from), None),
        };
        let to = end.min(within.to).min(runs[runs.len() - 1].to);
        each(Interval::new(at, to), value);
        at = to;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_search_from_a_hint_finds_what_one_without_finds() {
        let list: Vec<i64> = (0..40).map(|place| place / 3 * 2).collect();
        for tick in -1..30 {
            for hint in 0..45 {
                let expected = list.partition_point(|from| *from <= tick);
                assert_eq!(near(&list, |from| *from <= tick, hint), expected, "{tick} from {hint}");
            }
        }
        assert_eq!(near::<i64>(&[], |_| true, 3), 0);
    }
}
