//! Many walks, computed on all CPUs, slice by slice.

use super::{Actor, Paused, Piece, Walks};
use crate::{History, Interval, Slice, parallel};

/// The smallest number of walks in a task. A task makes its walks one after the other.
const CHUNK: usize = 4096;

/// Walks that have reached the beginning of a slice, each with its origin.
pub(crate) struct Walking<O> {
    open: Vec<(O, Paused)>,
}

impl<O> Default for Walking<O> {
    fn default() -> Walking<O> {
        Walking { open: Vec::new() }
    }
}

impl<O: Copy + Send + Sync> Walking<O> {
    /// Continues, in a slice, the walks that have not ended and those that begin in it. `start` gives the origin, actor
    /// and interval of an instance. Each task has its own sum, and `add` adds each piece to it. `add` also learns
    /// whether the piece continues the piece before it (see [`Walks::go_on`]). The sums are returned in no order.
    pub(crate) fn add_slice<I: Sync, T: Send>(
        &mut self,
        history: &History,
        slice: Slice,
        instances: &[I],
        start: impl Fn(&I) -> (O, Actor, Interval) + Sync,
        new: impl Fn() -> T + Sync,
        add: impl Fn(&mut T, O, &Piece, bool) + Sync,
    ) -> Vec<T> {
        let begin = slice.interval.from;
        let go_on = |task: &mut Task<'_, O, T>, of: O, at: Paused| {
            let Task { walks, sum, open } = task;
            let at = walks.go_on(at, begin, |piece, goes_on| add(sum, of, piece, goes_on));
            if !at.is_over() {
                open.push((of, at));
            }
        };
        let task = || Task { walks: Walks::new(history), sum: new(), open: Vec::new() };
        let (open, length) = (std::mem::take(&mut self.open), length(instances.len()));
        let open = open.chunks(self::length(open.len())).map(|open| (open, &[] as &[I]));
        let begun = instances.chunks(length).map(|begun| (&[] as &[(O, Paused)], begun));
        let chunks: Vec<_> = open.chain(begun).collect();
        let parts = parallel::map(chunks, |(open, begun)| {
            let mut task = task();
            open.iter().for_each(|(of, at)| go_on(&mut task, *of, *at));
            for instance in begun {
                let (of, actor, interval) = start(instance);
                go_on(&mut task, of, Paused::new(actor, interval));
            }
            (task.sum, task.open)
        });
        let add_open = |(sum, mut open): (T, Vec<(O, Paused)>)| {
            self.open.append(&mut open);
            sum
        };
        parts.into_iter().map(add_open).collect()
    }
}

/// Makes walks one after the other.
struct Task<'h, O, T> {
    walks: Walks<'h>,
    sum: T,
    open: Vec<(O, Paused)>,
}

/// The length of chunks. Few long chunks, because each has its own sum.
fn length(count: usize) -> usize {
    count.div_ceil(rayon::current_num_threads() * 4).max(CHUNK)
}
