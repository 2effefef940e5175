//! The open slices and holds, and their ends.
//!
//! Slices of a track nest: one that would end after its enclosing slice is cut to the end of that slice.

use std::{
    cmp::{Ordering, Reverse},
    collections::{BinaryHeap, HashMap, hash_map::Entry},
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

/// The open slices and holds. Tracks without an open slice take no memory: there may be millions of them.
#[derive(Default)]
pub(super) struct OpenIntervals {
    /// The index in `slices` of the innermost open slice of each track.
    innermost: HashMap<Track, u32, foldhash::fast::FixedState>,
    slices: Vec<OpenSlice>,
    /// Indices in `slices` of slices that have ended.
    free: Vec<u32>,
    ends: BinaryHeap<Reverse<PlannedEnd>>,
    opened: u64,
}

struct OpenSlice {
    end: i64,
    kind: SliceKind,
    /// The index of the enclosing slice.
    enclosing: Option<u32>,
}

/// A future end. Ends at the same tick are in the order of the begins.
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
        let place = self.free.pop().unwrap_or(self.slices.len() as u32);
        let enclosing = self.innermost.insert(track, place);
        let end = enclosing.map_or(to, |enclosing| to.min(self.slices[enclosing as usize].end));
        let slice = OpenSlice { end, kind, enclosing };
        match self.slices.get_mut(place as usize) {
            Some(free) => *free = slice,
            None => self.slices.push(slice),
        }
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
            Planned::Slice(track) => Some(End::Slice(track, self.end_innermost(track)?)),
        }
    }

    fn end_innermost(&mut self, track: Track) -> Option<SliceKind> {
        let Entry::Occupied(mut innermost) = self.innermost.entry(track) else { return None };
        let place = *innermost.get();
        let OpenSlice { kind, enclosing, .. } = self.slices[place as usize];
        self.free.push(place);
        match enclosing {
            Some(enclosing) => innermost.insert(enclosing),
            None => innermost.remove(),
        };
        Some(kind)
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

    #[test]
    fn tracks_without_open_slices_take_no_memory() {
        let mut open = OpenIntervals::default();
        for number in 0..1000 {
            open.begin_slice(Track::Thread(ThreadId(number)), SliceKind::Span, 10);
            open.begin_slice(Track::Thread(ThreadId(number)), SliceKind::Span, 10);
            while open.end_next().is_some() {}
        }
        assert_eq!((open.innermost.len(), open.slices.len(), open.free.len()), (0, 2, 2));
    }
}
