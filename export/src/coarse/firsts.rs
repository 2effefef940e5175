//! The first event, wakeup or migration of each bucket on each track.

use std::collections::HashMap;

use crate::timeline::{EventTypeId, Track};

/// What happens at one instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Instant {
    Event(EventTypeId),
    Wakeup,
    Migration,
}

/// The bucket in which each was told last.
#[derive(Debug, Default)]
pub(super) struct Firsts {
    emitted: HashMap<(Instant, Option<Track>), u64, foldhash::fast::RandomState>,
}

impl Firsts {
    /// Whether nothing of this kind was told on this track in this bucket. From now on, it was.
    #[inline]
    pub(super) fn is_first(&mut self, instant: Instant, track: Option<Track>, bucket: u64) -> bool {
        self.emitted.insert((instant, track), bucket) != Some(bucket)
    }
}
