//! Slices are buffered until they are known to be long. All slices that enclose a long slice are long, so slices still
//! nest.

use sigmund_model::Ticks;

use super::pending_changes::{PendingChange, PendingChanges};
use super::{Buckets, TrackIndices};
use crate::living::Living;
use crate::timeline::{Actors, Change, Slice, SliceKind, Track};

/// Maximum number of slices that are buffered on one track.
const MAX_BUFFERED: usize = 65_536;

#[derive(Debug)]
pub(super) struct Slices {
    indices: TrackIndices,
    tracks: Living<OpenSlices>,
    /// Tracks with buffered slices.
    pending: Vec<Track>,
}

/// The open slices of a track, the outermost first.
#[derive(Debug, Default)]
struct OpenSlices {
    stack: Vec<OpenSlice>,
    /// Their names, concatenated.
    names: String,
    /// Index of the first slice that is not yet known to be long.
    buffered_from: usize,
    /// The number of slices that are open inside these, and are left out.
    too_deep: u64,
    is_pending: bool,
}

#[derive(Clone, Copy, Debug)]
struct OpenSlice {
    kind: SliceKind,
    from: Ticks,
    number: u64,
    name_at: usize,
}

impl Slices {
    pub(super) fn new(actors: &Actors) -> Slices {
        let indices = TrackIndices::of(actors);
        let tracks = indices.cpus + indices.lwps + actors.threads.len();
        Slices { indices, tracks: Living::new(tracks), pending: Vec::new() }
    }

    /// Begins a slice. Returns `false` if it is nested too deeply to be buffered.
    pub(super) fn enter(&mut self, track: Track, tick: Ticks, number: u64, slice: Slice<'_>) -> bool {
        let open = self.tracks.get_or_insert_with(self.indices.track(track), OpenSlices::default);
        if open.too_deep > 0 || open.stack.len() - open.buffered_from >= MAX_BUFFERED {
            open.too_deep += 1;
            return false;
        }
        let name_at = open.names.len();
        open.names.push_str(slice.name);
        open.stack.push(OpenSlice { kind: slice.kind, from: tick, number, name_at });
        if !open.is_pending {
            open.is_pending = true;
            self.pending.push(track);
        }
        true
    }

    /// Ends the innermost slice. Returns `false` if it was too short.
    pub(super) fn leave(
        &mut self,
        track: Track,
        tick: Ticks,
        number: u64,
        kind: SliceKind,
        buckets: Buckets,
        pending_changes: &mut PendingChanges,
    ) -> bool {
        let index = self.indices.track(track);
        let open = self.tracks.get_or_insert_with(index, OpenSlices::default);
        if open.too_deep > 0 {
            open.too_deep -= 1;
            return true;
        }
        open.settle(track, tick, buckets, pending_changes);
        let is_long = open.buffered_from == open.stack.len();
        if is_long {
            pending_changes.push(tick, number, PendingChange::Plain(Change::Leave(track, kind)));
        }
        if let Some(slice) = open.stack.pop() {
            open.names.truncate(slice.name_at);
        }
        open.buffered_from = open.buffered_from.min(open.stack.len());
        if open.stack.is_empty() && !open.is_pending {
            self.tracks.remove(index);
        }
        is_long
    }

    /// Emits the slices that began a bucket ago: they are long.
    pub(super) fn settle(&mut self, now: Ticks, buckets: Buckets, pending_changes: &mut PendingChanges) {
        let (tracks, indices) = (&mut self.tracks, self.indices);
        self.pending.retain(|track| {
            let index = indices.track(*track);
            let Some(open) = tracks.get_mut(index) else { return false };
            open.settle(*track, now, buckets, pending_changes);
            open.is_pending = open.buffered_from < open.stack.len();
            let is_pending = open.is_pending;
            if open.stack.is_empty() {
                tracks.remove(index);
            }
            is_pending
        });
    }
}

impl OpenSlices {
    fn settle(&mut self, track: Track, now: Ticks, buckets: Buckets, pending_changes: &mut PendingChanges) {
        while let Some(slice) = self.stack.get(self.buffered_from) {
            if !buckets.is_long(slice.from, now) {
                return;
            }
            let end = self.stack.get(self.buffered_from + 1).map_or(self.names.len(), |next| next.name_at);
            let name = self.names[slice.name_at..end].into();
            pending_changes.push(slice.from, slice.number, PendingChange::Enter(track, slice.kind, name));
            self.buffered_from += 1;
        }
    }
}
