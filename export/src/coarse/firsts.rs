//! The first event, wakeup or migration of each bucket on each track.

use std::collections::HashMap;

use crate::timeline::{EventTypeId, Track};

/// A change without duration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Instant {
    Event(EventTypeId),
    Wakeup,
    Migration,
}

/// The last bucket in which each was emitted.
#[derive(Debug, Default)]
pub(super) struct Firsts {
    last: HashMap<(Instant, Option<Track>), u64, foldhash::fast::RandomState>,
}

impl Firsts {
    /// Whether none of this kind was emitted on this track in this bucket. Records that one is.
    #[inline]
    pub(super) fn is_first(&mut self, instant: Instant, track: Option<Track>, bucket: u64) -> bool {
        self.last.insert((instant, track), bucket) != Some(bucket)
    }
}
