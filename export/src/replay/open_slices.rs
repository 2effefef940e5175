//! The open slices of each track. Slices that do not nest in the trace are cut so that they do.

use std::collections::HashMap;

use crate::timeline::{SliceKind, Track};

/// Distinguishes slices of one kind: the address of a span's call site, the number of a system call.
pub(super) type Key = i64;

/// The slices that are open.
#[derive(Default)]
pub(super) struct OpenSlices {
    open: HashMap<Track, Vec<(SliceKind, Key)>, foldhash::fast::FixedState>,
}

impl OpenSlices {
    /// Begins a slice.
    pub(super) fn enter(&mut self, track: Track, kind: SliceKind, key: Key) {
        self.open.entry(track).or_default().push((kind, key));
    }

    /// Ends a slice, and those inside of it, whose ends are missing. Returns their kinds, innermost first; none if it is not
    /// open, because its begin is missing.
    pub(super) fn leave(&mut self, track: Track, kind: SliceKind, key: Key) -> Vec<SliceKind> {
        let Some(open) = self.open.get_mut(&track) else { return Vec::new() };
        let at = open.iter().rposition(|slice| *slice == (kind, key));
        at.map_or(Vec::new(), |at| open.drain(at..).rev().map(|(kind, _)| kind).collect())
    }

    /// The same for the innermost slice of this kind, with any key.
    pub(super) fn leave_any(&mut self, track: Track, kind: SliceKind) -> Vec<SliceKind> {
        let Some(open) = self.open.get_mut(&track) else { return Vec::new() };
        let at = open.iter().rposition(|(of, _)| *of == kind);
        at.map_or(Vec::new(), |at| open.drain(at..).rev().map(|(kind, _)| kind).collect())
    }

    /// Ends all slices of a track. Returns their kinds, innermost first.
    pub(super) fn leave_all(&mut self, track: Track) -> Vec<SliceKind> {
        self.open
            .remove(&track)
            .map_or(Vec::new(), |open| open.into_iter().rev().map(|(kind, _)| kind).collect())
    }

    /// Whether no slice is open on a track.
    pub(super) fn is_empty(&self, track: Track) -> bool {
        self.open.get(&track).is_none_or(Vec::is_empty)
    }

    /// The tracks that have had a slice.
    pub(super) fn tracks(&self) -> Vec<Track> {
        self.open.keys().copied().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::timeline::{LwpId, ThreadId};

    // enter a, enter b, leave a: the end of b is missing, it ends with a.
    #[test]
    fn a_slice_ends_with_those_inside_of_it() {
        let track = Track::Thread(ThreadId(0));
        let mut slices = OpenSlices::default();
        slices.enter(track, SliceKind::Span, 1);
        slices.enter(track, SliceKind::Function, 2);
        assert_eq!(slices.leave(track, SliceKind::Span, 3), []);
        assert_eq!(slices.leave(track, SliceKind::Span, 1), [SliceKind::Function, SliceKind::Span]);
        assert_eq!(slices.leave(track, SliceKind::Function, 2), []);
        assert!(slices.is_empty(track));
    }

    // enter read, enter a span in it, leave whatever call is open.
    #[test]
    fn the_innermost_slice_of_a_kind_ends_whatever_its_key() {
        let track = Track::Lwp(LwpId(0));
        let mut slices = OpenSlices::default();
        slices.enter(track, SliceKind::Syscall, 1);
        slices.enter(track, SliceKind::Span, 2);
        assert_eq!(slices.leave_any(track, SliceKind::Irq), []);
        assert_eq!(slices.leave_any(track, SliceKind::Syscall), [SliceKind::Span, SliceKind::Syscall]);
        assert!(slices.is_empty(track));
    }
}
