//! Searches in a history that start where the previous search for the same thread, LWP or CPU ended.

use super::{History, LwpStay, Series, ThreadStay, Track};
use crate::{Interval, carried::Carried, map::Map};

/// For each key of a series, where the last search ended.
#[derive(Debug)]
pub(crate) struct Cursors<'h, T> {
    series: &'h Series<T>,
    cursors: Map<u64, Cursor<'h, T>>,
}

/// The intervals of one key, and where the last search in them ended.
#[derive(Debug)]
pub(crate) struct Cursor<'h, T> {
    pub(crate) track: Track<'h, T>,
    hint: usize,
    hint_within: usize,
    /// For [`stretches`](super::stretches).
    pub(crate) hints: (usize, usize),
}

impl<'h, T> Cursors<'h, T> {
    pub(crate) fn new(series: &'h Series<T>) -> Cursors<'h, T> {
        Cursors { series, cursors: Map::default() }
    }

    pub(crate) fn of(&mut self, key: u64) -> &mut Cursor<'h, T> {
        let series = self.series;
        self.cursors.entry(key).or_insert_with(|| Cursor {
            track: series.of(key),
            hint: 0,
            hint_within: 0,
            hints: (0, 0),
        })
    }
}

impl<'h, T> Cursor<'h, T> {
    /// As [`Track::at`].
    pub(crate) fn at(&mut self, tick: i64) -> Option<(Interval, &'h T)> {
        self.track.at_near(tick, &mut self.hint)
    }

    /// As [`Track::before`].
    pub(crate) fn before(&mut self, tick: i64) -> Option<(Interval, &'h T)> {
        self.track.before_near(tick, &mut self.hint)
    }

    /// As [`Track::hole_before`].
    pub(crate) fn hole_before(&mut self, tick: i64) -> i64 {
        self.track.hole_before_near(tick, &mut self.hint)
    }

    /// As [`Track::count_from`].
    pub(crate) fn count_from(&mut self, tick: i64) -> usize {
        self.track.count_from_near(tick, &mut self.hint)
    }

    /// As [`Track::within`].
    pub(crate) fn within(
        &mut self,
        window: Interval,
    ) -> impl Iterator<Item = (Interval, &'h T)> + use<'h, T> {
        self.track.within_near(window, &mut self.hint_within)
    }

    /// As [`Track::partition`].
    pub(crate) fn partition(
        &mut self,
        window: Interval,
    ) -> impl Iterator<Item = (Interval, Option<&'h T>)> + use<'h, T> {
        self.track.partition_near(window, &mut self.hint_within)
    }
}

/// Cursors in all series.
#[derive(Debug)]
pub(crate) struct Searches<'h> {
    pub(crate) history: &'h History,
    pub(crate) threads: Cursors<'h, ThreadStay>,
    pub(crate) lwps: Cursors<'h, LwpStay>,
    pub(crate) on_cpu: Cursors<'h, u32>,
    pub(crate) mounted: Cursors<'h, u64>,
    pub(crate) innermost: Cursors<'h, u32>,
    pub(crate) calls: Cursors<'h, u32>,
    pub(crate) unparks: Cursors<'h, u32>,
    pub(crate) wakings: Cursors<'h, u32>,
    /// The times in which LWPs count. Searches are for a single request; this is empty until it is needed.
    pub(crate) carried: Option<Carried>,
}

impl<'h> Searches<'h> {
    pub(crate) fn new(history: &'h History) -> Searches<'h> {
        Searches {
            history,
            threads: Cursors::new(&history.threads),
            lwps: Cursors::new(&history.lwps),
            on_cpu: Cursors::new(&history.on_cpu),
            mounted: Cursors::new(&history.mounted),
            innermost: Cursors::new(&history.innermost),
            calls: Cursors::new(&history.calls),
            unparks: Cursors::new(&history.unparks),
            wakings: Cursors::new(&history.wakings),
            carried: None,
        }
    }
}
