//! The first event, wakeup or migration of each bucket on each track.

use std::collections::HashMap;

use crate::timeline::{EventKind, Track};

/// What happens at one instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Instant {
    Event(EventKind),
    Wakeup,
    Migration,
}

/// The bucket in which each was told last.
#[derive(Debug, Default)]
pub(super) struct Firsts {
    told: HashMap<(Instant, Option<Track>), u64, foldhash::fast::RandomState>,
}

impl Firsts {
    /// Whether nothing of this kind was told on this track in this bucket. From now on, it was.
    #[inline]
    pub(super) fn is_first(&mut self, instant: Instant, track: Option<Track>, bucket: u64) -> bool {
        self.told.insert((instant, track), bucket) != Some(bucket)
    }
}
