//! The first event, wakeup or migration of each bucket on each track.

use std::collections::HashSet;

use foldhash::fast::RandomState;

use crate::timeline::{EventTypeId, Track};

/// The kind of a change without duration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum InstantKind {
    Event(EventTypeId),
    Wakeup,
    Migration,
}

/// The kinds that were emitted in the current bucket, with their tracks.
#[derive(Debug, Default)]
pub(super) struct FirstsOfBuckets {
    bucket: u64,
    emitted: HashSet<(InstantKind, Option<Track>), RandomState>,
}

impl FirstsOfBuckets {
    /// Whether this is the first of its kind on this track in this bucket. Marks it as emitted. Buckets do not decrease.
    #[inline]
    pub(super) fn is_first(&mut self, kind: InstantKind, track: Option<Track>, bucket: u64) -> bool {
        if self.bucket != bucket {
            self.bucket = bucket;
            self.forget();
        }
        self.emitted.insert((kind, track))
    }

    #[cold]
    fn forget(&mut self) {
        // Clearing takes time in proportion to the capacity. So one bucket with many elements must not slow down all
        // later ones.
        if self.emitted.len() < self.emitted.capacity() / 8 {
            self.emitted = HashSet::default();
        } else {
            self.emitted.clear();
        }
    }
}
