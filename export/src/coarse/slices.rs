//! Slices are held until they are known to be long. All slices around a long one are long, so they still nest.

use sigmund_model::Ticks;

use super::pending_changes::{PendingChange, PendingChanges};
use super::{Buckets, Numbers};
use crate::timeline::{Actors, Change, Slice, SliceKind, Track};

/// Most slices that are held on one track.
const DEPTH: usize = 65_536;

#[derive(Debug)]
pub(super) struct Slices {
    numbers: Numbers,
    tracks: Vec<Open>,
    /// Tracks with slices that are held.
    pending: Vec<Track>,
}

/// The open slices of a track, from the outermost.
#[derive(Debug, Default)]
struct Open {
    stack: Vec<OpenSlice>,
    /// Their names, concatenated.
    names: String,
    /// Index of the first slice that is not known to be long.
    waiting_from: usize,
    /// Slices inside of these that are left out.
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
        let numbers = Numbers::of(actors);
        let mut tracks = Vec::new();
        tracks.resize_with(numbers.cpus + numbers.lwps + actors.threads.len(), Open::default);
        Slices { numbers, tracks, pending: Vec::new() }
    }

    /// Begins a slice; `false` if it is nested too deeply to be held.
    pub(super) fn enter(&mut self, track: Track, tick: Ticks, number: u64, slice: Slice<'_>) -> bool {
        let open = &mut self.tracks[self.numbers.track(track)];
        if open.too_deep > 0 || open.stack.len() - open.waiting_from >= DEPTH {
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

    /// Ends the innermost slice; `false` if it was too short.
    pub(super) fn leave(
        &mut self,
        track: Track,
        tick: Ticks,
        number: u64,
        kind: SliceKind,
        buckets: Buckets,
        pending_changes: &mut PendingChanges,
    ) -> bool {
        let open = &mut self.tracks[self.numbers.track(track)];
        if open.too_deep > 0 {
            open.too_deep -= 1;
            return true;
        }
        open.settle(track, tick, buckets, pending_changes);
        let is_long = open.waiting_from == open.stack.len();
        if is_long {
            pending_changes.push(tick, number, PendingChange::Plain(Change::Leave(track, kind)));
        }
        if let Some(slice) = open.stack.pop() {
            open.names.truncate(slice.name_at);
        }
        open.waiting_from = open.waiting_from.min(open.stack.len());
        is_long
    }

    /// Slices that began a bucket ago are long.
    pub(super) fn settle(&mut self, now: Ticks, buckets: Buckets, pending_changes: &mut PendingChanges) {
        let (tracks, numbers) = (&mut self.tracks, self.numbers);
        self.pending.retain(|track| {
            let open = &mut tracks[numbers.track(*track)];
            open.settle(*track, now, buckets, pending_changes);
            open.is_pending = open.waiting_from < open.stack.len();
            open.is_pending
        });
    }
}

impl Open {
    fn settle(&mut self, track: Track, now: Ticks, buckets: Buckets, pending_changes: &mut PendingChanges) {
        while let Some(slice) = self.stack.get(self.waiting_from) {
            if !buckets.is_long(slice.from, now) {
                return;
            }
            let end = self.stack.get(self.waiting_from + 1).map_or(self.names.len(), |next| next.name_at);
            let name = self.names[slice.name_at..end].into();
            pending_changes.push(slice.from, slice.number, PendingChange::Enter(track, slice.kind, name));
            self.waiting_from += 1;
        }
    }
}
