//! The open slices and holds, and their ends.
//!
//! Slices of a track nest: one that would end after its enclosing slice is cut to the end of that slice.

use std::{
    cmp::{Ordering, Reverse},
    collections::{BinaryHeap, HashMap},
};

use crate::timeline::{Hold, SliceKind, Track};

/// The end of an interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// The innermost slice of a track.
    Slice(Track, SliceKind),
    /// A hold of a lock, by the actor that acquired it.
    Hold(Track, Hold),
}

/// The open slices and holds.
#[derive(Default)]
pub(super) struct OpenIntervals {
    /// Ends and kinds of the open slices of each track, the innermost last.
    slices: HashMap<Track, Vec<(i64, SliceKind)>, foldhash::fast::FixedState>,
    ends: BinaryHeap<Reverse<PlannedEnd>>,
    opened: u64,
}

/// A future end. Ends at one tick are in the order of the begins.
struct PlannedEnd {
    tick: i64,
    number: u64,
    interval: Planned,
}

enum Planned {
    Slice(Track),
    Hold(Track, Hold),
}

impl OpenIntervals {
    /// Begins a slice that ends at `to`. Returns whether it was cut, because the enclosing slice ends earlier.
    pub(super) fn begin_slice(&mut self, track: Track, kind: SliceKind, to: i64) -> bool {
        let open = self.slices.entry(track).or_default();
        let end = open.last().map_or(to, |(enclosing_end, _)| to.min(*enclosing_end));
        open.push((end, kind));
        self.plan(end, Planned::Slice(track));
        end < to
    }

    /// Begins a hold that ends at `to`.
    pub(super) fn begin_hold(&mut self, by: Track, hold: Hold, to: i64) {
        self.plan(to, Planned::Hold(by, hold));
    }

    /// The tick of the next end.
    pub(super) fn next_end(&self) -> Option<i64> {
        self.ends.peek().map(|Reverse(end)| end.tick)
    }

    /// Removes the interval that ends next.
    pub(super) fn end_next(&mut self) -> Option<End> {
        let Reverse(PlannedEnd { interval, .. }) = self.ends.pop()?;
        match interval {
            Planned::Hold(by, hold) => Some(End::Hold(by, hold)),
            Planned::Slice(track) => {
                let (_, kind) = self.slices.get_mut(&track)?.pop()?;
                Some(End::Slice(track, kind))
            }
        }
    }

    fn plan(&mut self, tick: i64, interval: Planned) {
        self.opened += 1;
        self.ends.push(Reverse(PlannedEnd { tick, number: self.opened, interval }));
    }
}

impl PartialEq for PlannedEnd {
    fn eq(&self, other: &PlannedEnd) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for PlannedEnd {}

impl PartialOrd for PlannedEnd {
    fn partial_cmp(&self, other: &PlannedEnd) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for PlannedEnd {
    fn cmp(&self, other: &PlannedEnd) -> Ordering {
        (self.tick, self.number).cmp(&(other.tick, other.number))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::timeline::ThreadId;

    const TRACK: Track = Track::Thread(ThreadId(0));

    // a  |---------|
    // b     |---|
    #[test]
    fn nested_slices_end_innermost_first() {
        let mut open = OpenIntervals::default();
        assert!(!open.begin_slice(TRACK, SliceKind::Span, 100));
        assert!(!open.begin_slice(TRACK, SliceKind::Function, 50));
        assert_eq!(
            (open.next_end(), open.end_next()),
            (Some(50), Some(End::Slice(TRACK, SliceKind::Function)))
        );
        assert_eq!((open.next_end(), open.end_next()), (Some(100), Some(End::Slice(TRACK, SliceKind::Span))));
        assert_eq!((open.next_end(), open.end_next()), (None, None));
    }

    // a  |---------|
    // b     |---------|     is cut to the end of a
    #[test]
    fn a_slice_that_does_not_nest_is_cut() {
        let mut open = OpenIntervals::default();
        assert!(!open.begin_slice(TRACK, SliceKind::Span, 100));
        assert!(open.begin_slice(TRACK, SliceKind::Function, 150));
        let ends: Vec<_> = std::iter::from_fn(|| Some((open.next_end()?, open.end_next()?))).collect();
        let end = |kind| (100, End::Slice(TRACK, kind));
        assert_eq!(ends, [end(SliceKind::Function), end(SliceKind::Span)]);
    }
}
