//! The first event, wakeup or migration of each bucket on each track.

use std::collections::HashMap;

use crate::timeline::{EventTypeId, Track};

/// The kind of a change without duration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum InstantKind {
    Event(EventTypeId),
    Wakeup,
    Migration,
}

/// The last bucket in which each kind was emitted on each track.
#[derive(Debug, Default)]
pub(super) struct FirstsOfBuckets {
    last: HashMap<(InstantKind, Option<Track>), u64, foldhash::fast::RandomState>,
}

impl FirstsOfBuckets {
    /// Whether this is the first of its kind on this track in this bucket. Marks it as emitted.
    #[inline]
    pub(super) fn is_first(&mut self, kind: InstantKind, track: Option<Track>, bucket: u64) -> bool {
        self.last.insert((kind, track), bucket) != Some(bucket)
    }
}
