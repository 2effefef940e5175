//! The times in which LWPs carried the selected user threads, for requests whose rows are of LWPs.

use sigmund_model::ThreadState;

use crate::{History, Interval, Level, Request, map::Map};

/// If a request is about LWPs and selects user threads, an LWP counts while it carries one of these threads.
///
/// A slice has the rows that touch it. So if a run begins before the slice, it continues in the slice before, for an
/// unknown time.
#[derive(Clone, Debug, Default)]
pub(crate) struct Carried {
    /// The runs of each LWP in which it counts: sorted, disjoint, and not adjacent. `None` if LWPs count all the time.
    runs: Option<Map<u32, Vec<Interval>>>,
}

impl Carried {
    pub(crate) fn new(history: &History, request: &Request) -> Carried {
        let Some(threads) = request.threads.as_ref().filter(|_| request.level(history) == Level::Lwps) else {
            return Carried::default();
        };
        let mut runs: Map<u32, Vec<Interval>> = Map::default();
        for thread in threads {
            for (interval, stay) in history.threads.of(*thread).iter() {
                let is_mounted = !matches!(stay.state, ThreadState::Unknown | ThreadState::Exited);
                let Some(lwp) = stay.lwp.filter(|_| is_mounted && interval.ticks() > 0) else { continue };
                let of_lwp = runs.entry(lwp).or_default();
                match of_lwp.last_mut() {
                    Some(last) if last.to == interval.from => last.to = interval.to,
                    _ => of_lwp.push(interval),
                }
            }
        }
        runs.values_mut().for_each(join);
        Carried { runs: Some(runs) }
    }

    /// Whether an LWP ever counts.
    pub(crate) fn has(&self, lwp: u32) -> bool {
        self.runs.as_ref().is_none_or(|runs| runs.contains_key(&lwp))
    }

    /// Whether LWPs count all the time, because nothing is selected.
    pub(crate) fn is_all(&self) -> bool {
        self.runs.is_none()
    }

    /// Whether an LWP counts at a tick.
    pub(crate) fn at(&self, lwp: u32, tick: i64) -> bool {
        self.find(lwp, |run| run.to <= tick, |run| run.from <= tick)
    }

    /// Whether an LWP counts just before a tick.
    pub(crate) fn before(&self, lwp: u32, tick: i64) -> bool {
        self.find(lwp, |run| run.to < tick, |run| run.from < tick)
    }

    fn find(
        &self,
        lwp: u32,
        is_earlier: impl Fn(&Interval) -> bool,
        has_begun: impl Fn(&Interval) -> bool,
    ) -> bool {
        let Some(runs) = &self.runs else { return true };
        let runs = runs.get(&lwp).map_or(&[][..], Vec::as_slice);
        runs.get(runs.partition_point(is_earlier)).is_some_and(has_begun)
    }

    /// Calls `each` with each part of an interval in which an LWP counts, and with the run that contains the part.
    pub(crate) fn each_part(&self, lwp: u32, interval: Interval, mut each: impl FnMut(Interval, Interval)) {
        let Some(runs) = &self.runs else { return each(interval, Interval::ALL) };
        let runs = runs.get(&lwp).map_or(&[][..], Vec::as_slice);
        let first = runs.partition_point(|run| run.to <= interval.from);
        for run in runs[first..].iter().take_while(|run| run.from < interval.to) {
            each(Interval::new(interval.from.max(run.from), interval.to.min(run.to)), *run);
        }
    }

    /// An interval cut where an LWP begins and ends to count, and whether it counts in each piece.
    pub(crate) fn pieces(&self, lwp: u32, interval: Interval) -> Vec<(Interval, bool)> {
        let (mut pieces, mut at) = (Vec::new(), interval.from);
        self.each_part(lwp, interval, |part, _| {
            if at < part.from {
                pieces.push((Interval::new(at, part.from), false));
            }
            pieces.push((part, true));
            at = part.to;
        });
        if at < interval.to {
            pieces.push((Interval::new(at, interval.to), false));
        }
        pieces
    }

    /// How many ticks of an interval an LWP counts for.
    pub(crate) fn ticks(&self, lwp: u32, interval: Interval) -> i64 {
        let mut ticks = 0;
        self.each_part(lwp, interval, |part, _| ticks += part.ticks());
        ticks
    }
}

/// Sorts intervals, and joins those that overlap or are adjacent.
fn join(intervals: &mut Vec<Interval>) {
    intervals.sort_unstable();
    intervals.dedup_by(|next, last| {
        let goes_on = next.from <= last.to;
        if goes_on {
            last.to = last.to.max(next.to);
        }
        goes_on
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{SeriesBuilder, ThreadStay};

    // thread 1  |--active on 70--|stalled on 70|blocked|--active on 71--|
    //           0                10            15      20               30
    // thread 2                                 |--active on 70--|
    //                                          15               25
    // thread 3  is not asked about                              |--active on 70--|
    #[test]
    fn an_lwp_counts_while_it_carries_a_selected_thread() {
        use ThreadState::{Active, Blocked, Stalled};
        let mut states = SeriesBuilder::default();
        for (thread, from, to, state, lwp) in [
            (1, 0, 10, Active, Some(70)),
            (1, 10, 15, Stalled, Some(70)),
            (1, 15, 20, Blocked, None),
            (1, 20, 30, Active, Some(71)),
            (2, 15, 25, Active, Some(70)),
            (3, 25, 40, Active, Some(70)),
        ] {
            let stay = ThreadStay { state, lwp, waits_for: None, object: 0, end: None };
            states.push(thread, Interval::new(from, to), stay);
        }
        let history = History { threads: states.build(), ..History::default() };
        let request =
            Request { threads: Some([1, 2].into()), level: Some(Level::Lwps), ..Request::default() };
        let carried = Carried::new(&history, &request);
        let parts = |lwp, from, to| {
            let mut parts = Vec::new();
            carried.each_part(lwp, Interval::new(from, to), |part, _| parts.push((part.from, part.to)));
            parts
        };
        assert_eq!(
            (parts(70, 5, 50), parts(71, 0, 25), parts(72, 0, 50)),
            (vec![(5, 25)], vec![(20, 25)], vec![])
        );
        let pieces = |lwp, from, to| {
            let pieces = carried.pieces(lwp, Interval::new(from, to)).into_iter();
            pieces.map(|(piece, counts)| (piece.from, piece.to, counts)).collect::<Vec<_>>()
        };
        assert_eq!(pieces(70, 5, 50), [(5, 25, true), (25, 50, false)]);
        assert_eq!(pieces(71, 15, 25), [(15, 20, false), (20, 25, true)]);
        assert_eq!(pieces(72, 0, 5), [(0, 5, false)]);
        assert_eq!([70, 71, 72].map(|lwp| carried.has(lwp)), [true, true, false]);
        assert_eq!([0, 24, 25].map(|tick| carried.at(70, tick)), [true, true, false]);
        assert_eq!([0, 1, 25, 26].map(|tick| carried.before(70, tick)), [false, true, true, false]);
        let all = Carried::new(&history, &Request { level: Some(Level::Threads), ..request });
        assert!(all.is_all() && all.has(72) && all.at(72, 9) && all.ticks(72, Interval::new(3, 9)) == 6);
    }
}
