//! The table of an answer, which grows slice by slice.
//!
//! Slices come latest first. A thread that began in a slice has no time in earlier slices. So its rows are made as soon
//! as that slice was added. With millions of threads, this keeps sums only for the threads that continue in earlier
//! slices; for the others it keeps the rows.

use std::{cmp::Reverse, collections::hash_map::Entry, io};

use rayon::prelude::*;

use crate::{
    Answer, Column, Distribution, Group, History, Request, Rows, Slice, Spill, Value, map::Map, parallel,
    rows,
};

/// Sums of groups, and the rows of those whose sums are complete.
pub(crate) struct Growing<T> {
    sums: Map<Group, T>,
    made: Made,
    /// Whether the lengths that rows summarize are kept.
    with_lengths: bool,
}

/// Groups whose rows one thread makes at a time. Enough to share their texts, and few enough for each CPU to get some.
const CHUNK: usize = 2048;

/// Rows of complete groups, in any order.
#[derive(Default)]
struct Made {
    rows: rows::Made,
    /// The number of rows.
    len: u32,
    /// One for each row, or none at all.
    distributions: Vec<Distribution>,
    /// Where the rows belong in the answer.
    places: Vec<Place>,
}

/// Takes the rows of one group.
pub(crate) struct Runs<'m, 'h> {
    made: &'m mut Made,
    /// The number of the group.
    number: u64,
    order: Reverse<i64>,
    /// Whether the current run has no row yet.
    begins: bool,
    with_lengths: bool,
    buffers: &'m mut Buffers<'h>,
}

/// Memory for the cells of one row after the other.
#[derive(Default)]
struct Buffers<'h> {
    /// The first cells of each row of a group.
    head: Vec<Value<'h>>,
    cells: Vec<Value<'h>>,
}

impl<'h> Runs<'_, 'h> {
    /// Sets the first cells of all rows: those of the group.
    pub(crate) fn head(&mut self, history: &'h History, group: &Group) {
        self.buffers.head.clear();
        group.add_cells(history, &mut self.buffers.head);
    }

    /// Begins a run: rows that stay together. Runs with a larger `order` come first. Among equal ones the smaller group comes first,
    /// then the earlier run of the group.
    pub(crate) fn begin(&mut self, order: i64) {
        self.order = Reverse(order);
        self.begins = true;
    }

    /// Adds a row to the run. `cells` follow those of the group.
    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item = Value<'h>>, lengths: Option<Distribution>) {
        let Runs { made, number, order, with_lengths, buffers, .. } = self;
        buffers.cells.clear();
        buffers.cells.extend_from_slice(&buffers.head);
        buffers.cells.extend(cells);
        let goes_on = !std::mem::take(&mut self.begins);
        if !made.places.last().is_some_and(|last| goes_on && last.rows.has_room()) {
            let (first, rows) = (made.len, made.rows.begin());
            made.places.push(Place { order: *order, number: *number, first, rows });
        }
        if let Some(last) = made.places.last_mut() {
            made.rows.add(&mut last.rows, &buffers.cells);
        }
        made.len += 1;
        made.distributions.extend(lengths.filter(|_| *with_lengths));
    }
}

struct Place {
    order: Reverse<i64>,
    /// The number of the group.
    number: u64,
    /// The index of its first row in `Made`, to find the distributions.
    first: u32,
    rows: rows::Place,
}

impl<T: Default> Growing<T> {
    pub(crate) fn new(request: &Request) -> Growing<T> {
        Growing { sums: Map::default(), made: Made::default(), with_lengths: request.with_lengths }
    }

    /// The sums of a group that may still grow.
    pub(crate) fn of(&mut self, group: Group) -> &mut T {
        self.sums.entry(group).or_default()
    }
}

impl<T> Growing<T> {
    /// Adds sums to the sums of a group. Most of millions of groups have none yet.
    pub(crate) fn add(&mut self, group: Group, sums: T, merge: impl FnOnce(&mut T, T)) {
        match self.sums.entry(group) {
            Entry::Vacant(none) => _ = none.insert(sums),
            Entry::Occupied(mut of_group) => merge(of_group.get_mut(), sums),
        }
    }
}

impl<T> Growing<T> {
    /// Moves the rows that were made out of memory. Where they belong in the answer, and the lengths that they summarize, is kept.
    pub(crate) fn spill(&mut self, to: &Spill) -> io::Result<()> {
        self.made.rows.spill(to)
    }
}

impl<T: Send> Growing<T> {
    /// Adds the sums of a slice, and makes rows as [`settle`](Self::settle) does. A user thread occurs at most once in
    /// `parts`, and in the order of their numbers they are fastest.
    ///
    /// Most of millions of threads begin and end in one slice: their rows are made at once, and nothing is looked up.
    pub(crate) fn add_slice<'h>(
        &mut self,
        (history, slice): (&History, Slice),
        parts: Vec<Vec<(Group, T)>>,
        merge: impl Fn(&mut T, T),
        is_open: impl Fn(u64) -> bool + Sync,
        runs: impl Fn(&Group, T, &mut Runs<'_, 'h>) + Sync,
    ) {
        let is_done = |(group, _): &(Group, T)| is_done((history, slice), group, &is_open);
        let parts: Vec<(Vec<_>, Vec<_>)> = parallel::map(parts, |part| part.into_iter().partition(is_done));
        let mut complete = Vec::with_capacity(parts.iter().map(|(done, _)| done.len()).sum());
        for (done, others) in parts {
            for (group, sums) in done {
                let later = if self.sums.is_empty() { None } else { self.sums.remove(&group) };
                let sums = match later {
                    Some(mut later) => {
                        merge(&mut later, sums);
                        later
                    }
                    None => sums,
                };
                complete.push((group, sums));
            }
            others.into_iter().for_each(|(group, sums)| self.add(group, sums, &merge));
        }
        self.make(complete, &runs);
        self.settle(history, slice, is_open, runs);
    }

    /// To be called after each slice. Makes the rows of the user threads that began in the slice and have no earlier
    /// state. Threads for which `is_open` returns true have to wait.
    pub(crate) fn settle<'h>(
        &mut self,
        history: &History,
        slice: Slice,
        is_open: impl Fn(u64) -> bool,
        runs: impl Fn(&Group, T, &mut Runs<'_, 'h>) + Sync,
    ) {
        let is_done = |group: &Group, _: &mut T| is_done((history, slice), group, &is_open);
        let complete: Vec<(Group, T)> = self.sums.extract_if(is_done).collect();
        if self.sums.capacity() > 4 * self.sums.len() {
            self.sums.shrink_to_fit();
        }
        // What is looked up for one thread is beside that of the next.
        self.make(in_order(complete), runs);
    }

    /// To be called after all slices.
    pub(crate) fn finish<'h>(
        mut self,
        columns: Vec<Column>,
        runs: impl Fn(&Group, T, &mut Runs<'_, 'h>) + Sync,
    ) -> Answer {
        let rest = std::mem::take(&mut self.sums).into_iter().collect();
        self.make(in_order(rest), runs);
        self.made.answer(columns)
    }

    /// Makes the rows of groups on all CPUs. Groups without a number are in their own order.
    fn make<'h>(&mut self, groups: Vec<(Group, T)>, runs: impl Fn(&Group, T, &mut Runs<'_, 'h>) + Sync) {
        let with_lengths = self.with_lengths;
        let chunks = parallel::chunks(groups, CHUNK).enumerate();
        let make = |(chunk, groups)| Made::new((chunk * CHUNK, groups), with_lengths, &runs);
        let made = parallel::map(chunks, make);
        made.into_iter().for_each(|made| self.made.append(made));
    }
}

/// Groups in their order, with what belongs to them.
fn in_order<T>(groups: Vec<(Group, T)>) -> Vec<(Group, T)> {
    let order = order_of(groups.iter().map(|(group, _)| group.clone()).zip(0..).collect());
    let mut groups: Vec<Option<(Group, T)>> = groups.into_iter().map(Some).collect();
    order.into_iter().filter_map(|place| groups[place as usize].take()).collect()
}

/// The places of groups, in the order of the groups.
fn order_of(mut groups: Vec<(Group, u32)>) -> Vec<u32> {
    groups.par_sort_unstable();
    groups.into_iter().map(|(_, place)| place).collect()
}

/// Whether a group is a user thread that is complete and not open.
fn is_done((history, slice): (&History, Slice), group: &Group, is_open: impl Fn(u64) -> bool) -> bool {
    matches!(group, Group::Thread(thread) if is_complete(history, slice, *thread) && !is_open(*thread))
}

/// Whether a user thread began in a slice, and has no earlier state: no slice before it has more of the thread. (A slice may have
/// only some of the states, or none.)
pub(crate) fn is_complete(history: &History, slice: Slice, thread: u64) -> bool {
    let Some(begin) = history.names.threads.begin(thread) else { return false };
    let first = history.threads.of(thread).get(0);
    slice.interval.from <= begin && first.is_none_or(|(first, _)| begin <= first.from)
}

impl Made {
    /// Makes the rows of some groups, each run with its place in the answer. `first` is the number of the first group.
    fn new<'h, T>(
        (first, groups): (usize, Vec<(Group, T)>),
        with_lengths: bool,
        runs: impl Fn(&Group, T, &mut Runs<'_, 'h>),
    ) -> Made {
        let (mut made, mut buffers) = (Made::default(), Buffers::default());
        for (place, (group, sums)) in (first..).zip(groups) {
            let number = match group {
                Group::Thread(thread) => thread,
                Group::Lwp(lwp) => lwp.into(),
                Group::Process(_) | Group::Name(_) => place as u64,
            };
            buffers.head.clear();
            let (made, buffers) = (&mut made, &mut buffers);
            let mut out = Runs { made, number, order: Reverse(0), begins: true, with_lengths, buffers };
            runs(&group, sums, &mut out);
        }
        made.rows.seal();
        made
    }

    /// The rows in their order.
    fn answer(self, columns: Vec<Column>) -> Answer {
        let Made { rows, mut distributions, mut places, .. } = self;
        places.par_sort_unstable_by_key(|place| (place.order, place.number, place.first));
        if !distributions.is_empty() {
            let of = |row: u32| std::mem::take(&mut distributions[row as usize]);
            let rows = places.iter().flat_map(|place| place.first..place.first + place.rows.count());
            distributions = rows.map(of).collect();
        }
        let rows = Rows::in_order(rows, places.into_iter().map(|place| place.rows));
        Answer { columns, rows, distributions, ..Answer::default() }
    }

    fn append(&mut self, other: Made) {
        let before = self.len;
        let moved = self.rows.append(other.rows);
        self.len += other.len;
        self.distributions.extend(other.distributions);
        let places = other.places.into_iter();
        self.places.extend(places.map(|place| Place {
            first: before + place.first,
            rows: moved(place.rows),
            ..place
        }));
    }
}

#[cfg(test)]
mod tests {
    use sigmund_model::ThreadState;

    use super::*;
    use crate::{Interval, Life, LivesBuilder, SeriesBuilder, ThreadStay};

    /// The user threads 1 to 4: 3 has the number of one that had ended, and of 4 nothing is known before its creation.
    fn history() -> History {
        let mut lives = LivesBuilder::default();
        for (thread, from, to) in [(3, 5, 20), (1, 0, 90), (2, 50, 100), (3, 60, 100), (4, 70, 100)] {
            let interval = Interval::new(from, to);
            lives.push(thread, Life { name: None, pid: None, interval, created_by: None });
        }
        let mut states = SeriesBuilder::default();
        for (thread, from) in [(1, 0), (2, 50), (3, 60), (4, 65)] {
            let stay =
                ThreadStay { state: ThreadState::Ready, end: None, lwp: None, waits_for: None, object: 0 };
            states.push(thread, Interval::new(from, 90), stay);
        }
        let mut history = History { threads: states.build(), ..History::default() };
        history.names.threads = lives.build();
        history
    }

    fn runs(group: &Group, sum: i64, out: &mut Runs<'_, '_>) {
        let Group::Thread(thread) = *group else { return };
        out.begin(sum);
        out.row([thread.into(), sum.into()], None);
        out.row([thread.into(), (-sum).into()], None);
    }

    #[test]
    fn rows_of_threads_that_cannot_have_more_are_made_and_put_in_order_at_the_end() {
        let (history, request) = (history(), Request::default());
        let mut growing: Growing<i64> = Growing::new(&request);
        let slice =
            |from, to| Slice { interval: Interval { from, to }, window: Interval { from: 0, to: 100 } };
        for thread in 1..=4 {
            *growing.of(Group::Thread(thread)) += 10 + thread as i64 % 2;
        }
        growing.settle(&history, slice(40, 100), |thread| thread == 2, runs);
        assert_eq!((growing.sums.len(), growing.made.len), (4, 0));
        growing.settle(&history, slice(40, 100), |_| false, runs);
        let mut open: Vec<&Group> = growing.sums.keys().collect();
        open.sort_unstable();
        assert_eq!(open, [1, 3, 4].map(Group::Thread).iter().collect::<Vec<_>>());
        for thread in [1, 3, 4] {
            *growing.of(Group::Thread(thread)) += 1;
        }
        growing.settle(&history, slice(0, 40), |_| false, runs);
        assert_eq!(growing.sums.keys().collect::<Vec<_>>(), [&Group::Thread(4)]);
        let columns = vec![Column::count("thread", "Its number."), Column::count("sum", "Its sum.")];
        let rows = growing.finish(columns, runs).rows;
        let expected = [(1, 12), (1, -12), (3, 12), (3, -12), (4, 11), (4, -11), (2, 10), (2, -10)];
        assert_eq!(
            rows,
            expected.map(|(thread, sum): (i64, i64)| vec![thread.into(), sum.into()]).into_iter().collect()
        );
    }
}
