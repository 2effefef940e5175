//! Makes the histories of slices, from rows that come last first.
//!
//! Rows of a table come in runs. The rows of a run are in the order of the table, and come before the rows of all
//! earlier runs in it. A row is kept as long as a slice may need it.

use std::{collections::VecDeque, mem, sync::Arc};

use sigmund_model::{EndReason, LwpState, ThreadState};

use super::{
    EventAt, Fault, Gap, History, Interrupt, LockRequest, LwpStay, Mark, Names, Span, States, Syscall,
    ThreadStay, Wakeup, Word, Words, derived::OnCpuAround,
};
use crate::{Interval, Slice, map::Map};

/// A row of a table.
pub trait Row {
    /// The time in which it is of interest. A slice has the rows whose interval overlaps or touches it.
    fn interval(&self) -> Interval;

    /// Replaces its words.
    fn replace_words(&mut self, _: &dyn Fn(Word) -> Word) {}
}

/// A row of `thread_states`.
pub type ThreadRow = (u64, Interval, ThreadStay);
/// A row of `lwp_states`.
pub type LwpRow = (u32, Interval, LwpStay);

impl Row for ThreadRow {
    fn interval(&self) -> Interval {
        // The state `exited` lasts to the end of the trace, but only its beginning is of interest.
        match self.2.state {
            ThreadState::Exited => Interval::new(self.1.from, self.1.from),
            _ => self.1,
        }
    }
}

impl Row for LwpRow {
    fn interval(&self) -> Interval {
        match self.2.state {
            LwpState::Exited => Interval::new(self.1.from, self.1.from),
            _ => self.1,
        }
    }
}

impl Row for Wakeup {
    /// It lasts to the dispatch.
    fn interval(&self) -> Interval {
        Interval::new(self.tick, self.tick.saturating_add(self.latency.unwrap_or(0)))
    }
}

impl Row for Interrupt {
    fn interval(&self) -> Interval {
        self.interval
    }

    fn replace_words(&mut self, with: &dyn Fn(Word) -> Word) {
        self.kind = with(self.kind);
        self.name = self.name.map(with);
    }
}

impl Row for Syscall {
    fn interval(&self) -> Interval {
        self.interval
    }

    fn replace_words(&mut self, with: &dyn Fn(Word) -> Word) {
        self.name = with(self.name);
    }
}

impl Row for Span {
    fn interval(&self) -> Interval {
        self.interval
    }

    fn replace_words(&mut self, with: &dyn Fn(Word) -> Word) {
        self.name = self.name.map(with);
        self.source = self.source.map(with);
    }
}

impl Row for LockRequest {
    /// From the request to the end of the hold. A wait without a known end lasts forever.
    fn interval(&self) -> Interval {
        if self.is_contended && self.wait.is_none() && self.hold.is_none() {
            return Interval::new(self.tick, i64::MAX);
        }
        let length = self.wait.unwrap_or(0).saturating_add(self.hold.unwrap_or(0));
        Interval::new(self.tick, self.tick.saturating_add(length))
    }

    fn replace_words(&mut self, with: &dyn Fn(Word) -> Word) {
        self.kind = with(self.kind);
        self.call_site = self.call_site.map(with);
    }
}

impl Row for EventAt {
    fn interval(&self) -> Interval {
        Interval::new(self.tick(), self.tick())
    }
}

impl Row for Fault {
    fn interval(&self) -> Interval {
        self.at.interval()
    }
}

impl Row for Mark {
    fn interval(&self) -> Interval {
        Interval::new(self.tick, self.tick)
    }
}

/// The rows of a table that later slices, which are earlier in time, may need.
#[derive(Debug)]
struct Kept<R>(VecDeque<Vec<R>>);

impl<R> Default for Kept<R> {
    fn default() -> Kept<R> {
        Kept(VecDeque::new())
    }
}

impl<R: Row> Kept<R> {
    fn len(&self) -> usize {
        self.0.iter().map(Vec::len).sum()
    }

    /// The rows that overlap or touch an interval, in the order of the table.
    fn touching(&self, slice: Interval) -> impl Iterator<Item = &R> + Clone {
        let touches = move |row: &&R| {
            let interval = row.interval();
            interval.from <= slice.to && interval.to >= slice.from
        };
        self.0.iter().flatten().filter(touches)
    }

    /// Adds the rows that overlap or touch an interval.
    fn copy_touching(&self, slice: Interval, to: &mut Vec<R>)
    where
        R: Copy,
    {
        to.reserve(self.len());
        to.extend(self.touching(slice));
    }

    /// Removes the rows that begin after a tick.
    fn forget_after(&mut self, tick: i64) {
        for run in &mut self.0 {
            run.retain(|row| row.interval().from <= tick);
            if run.capacity() > 2 * run.len() {
                run.shrink_to_fit();
            }
        }
        self.0.retain(|run| !run.is_empty());
        // Few rows of each of many runs remain, so they are put into a single run.
        if self.0.len() > MOST_RUNS {
            self.0 = VecDeque::from([mem::take(&mut self.0).into_iter().flatten().collect()]);
        }
    }
}

/// With more runs than this, they are joined.
const MOST_RUNS: usize = 16;

/// The last stay on a CPU before the slice that is made next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LastOnCpu {
    /// When the last LWP left it.
    pub to: i64,
    /// Whether it is known that the LWP left the CPU then. If not, the trace has a gap there, or ends.
    pub is_left: bool,
}

impl LastOnCpu {
    /// The end of a stay on a CPU. The idle task (0) does not leave a CPU to itself.
    pub fn of(lwp: u32, interval: Interval, stay: &LwpStay) -> LastOnCpu {
        let is_unknown =
            matches!(stay.end, None | Some(EndReason::Lost | EndReason::Resync | EndReason::TraceEnd));
        LastOnCpu { to: interval.to, is_left: lwp != 0 && !is_unknown }
    }
}

/// Makes the histories of slices.
#[derive(Debug, Default)]
pub struct Slicer {
    /// The parts that are the same in all slices, without rows.
    shared: History,
    threads: Kept<ThreadRow>,
    lwps: Kept<LwpRow>,
    wakeups: Kept<Wakeup>,
    interrupts: Kept<Interrupt>,
    syscalls: Kept<Syscall>,
    spans: Kept<Span>,
    locks: Kept<LockRequest>,
    events: Kept<EventAt>,
    faults: Kept<Fault>,
    marks: Kept<Mark>,
    /// The beginning of the first stay on each CPU in the slices so far.
    first_on_cpu: Map<u32, i64>,
    /// The last stay on each CPU that ends before a slice, as far as it was looked up.
    last_on_cpu: Map<u32, Option<LastOnCpu>>,
    /// The tick before which it was looked up last, and how many rows of `lwps` there were.
    looked_before: Option<(i64, usize)>,
    without_on_cpu: bool,
    without_mounted: bool,
}

macro_rules! tables {
    ($($name:ident: $row:ty),*) => {
        impl Slicer {
            $(
                #[doc = concat!("Adds rows of `", stringify!($name), "` that are before all that were added. Their words are those of `words`.")]
                pub fn $name(&mut self, mut rows: Vec<$row>, words: &Words) {
                    self.translate(&mut rows, words);
                    if !rows.is_empty() {
                        self.$name.0.push_front(rows);
                    }
                }
            )*

            /// The number of rows that are kept.
            pub fn rows(&self) -> usize {
                let counts = [$(self.$name.len()),*];
                counts.iter().sum()
            }

            /// Removes the rows that no slice before a tick needs.
            fn forget_after(&mut self, tick: i64) {
                rayon::scope(|scope| {
                    $(
                        let kept = &mut self.$name;
                        scope.spawn(move |_| kept.forget_after(tick));
                    )*
                });
            }
        }
    };
}

tables! {
    threads: ThreadRow,
    lwps: LwpRow,
    wakeups: Wakeup,
    interrupts: Interrupt,
    syscalls: Syscall,
    spans: Span,
    locks: LockRequest,
    events: EventAt,
    faults: Fault,
    marks: Mark
}

impl Slicer {
    /// A slicer for a trace with this extent, these gaps, and these names.
    pub fn new(extent: Option<Interval>, gaps: Arc<Vec<Gap>>, names: Names) -> Slicer {
        Slicer { shared: History { extent, gaps, names, ..History::default() }, ..Slicer::default() }
    }

    /// Leaves out which LWP had each CPU.
    pub fn without_on_cpu(&mut self) {
        self.without_on_cpu = true;
    }

    /// Leaves out what LWPs carried.
    pub fn without_mounted(&mut self) {
        self.without_mounted = true;
    }

    /// Notes that the whole trace has no interrupts.
    pub fn without_interrupts(&mut self) {
        self.shared.has_no_interrupts = true;
    }

    /// Translates the words of rows into words of the history.
    fn translate<R: Row>(&mut self, rows: &mut [R], words: &Words) {
        if words.len() == 0 {
            return;
        }
        let translated: Vec<Word> = words.iter().map(|(_, text)| self.shared.words.intern(text)).collect();
        let translate = |word: Word| translated[word.place()];
        rows.iter_mut().for_each(|row| row.replace_words(&translate));
    }

    /// Returns those of `cpus` for which the last LWP before a tick is unknown. For these, call
    /// [`set_last_on_cpu`](Self::set_last_on_cpu). For the others it was set before, or is among the rows.
    pub fn unknown_cpus(&mut self, before: i64, cpus: &[u32]) -> Vec<u32> {
        self.look_for_last_on_cpus(before);
        cpus.iter().copied().filter(|cpu| !self.last_on_cpu.contains_key(cpu)).collect()
    }

    /// Looks in the rows for the last LWP on each CPU before a tick.
    fn look_for_last_on_cpus(&mut self, before: i64) {
        if self.looked_before == Some((before, self.lwps.len())) {
            return;
        }
        self.looked_before = Some((before, self.lwps.len()));
        let mut last: Map<u32, LastOnCpu> = Map::default();
        let is_before =
            |(_, interval, stay): &&LwpRow| stay.state == LwpState::Running && interval.to < before;
        for (lwp, interval, stay) in self.lwps.0.iter().flatten().filter(is_before) {
            let Some(cpu) = stay.cpu else { continue };
            let found = LastOnCpu::of(*lwp, *interval, stay);
            let last = last.entry(cpu).or_insert(found);
            if last.to <= interval.to {
                *last = found;
            }
        }
        self.last_on_cpu.retain(|_, last| last.is_none_or(|last| last.to < before));
        self.last_on_cpu.extend(last.into_iter().map(|(cpu, last)| (cpu, Some(last))));
    }

    /// Sets the last stay on a CPU that ends before all rows; `None` if there is none.
    pub fn set_last_on_cpu(&mut self, cpu: u32, last: Option<LastOnCpu>) {
        self.last_on_cpu.insert(cpu, last);
    }

    /// The history of a slice that is before all slices made so far. All rows that overlap or touch it must have been
    /// added. Afterwards, removes the rows that no earlier slice needs.
    pub fn slice(&mut self, slice: Slice) -> History {
        if !self.without_on_cpu {
            self.look_for_last_on_cpus(slice.interval.from);
        }
        let history = self.history(slice.interval);
        self.forget_after(slice.interval.from);
        history
    }

    /// All rows as one history.
    pub fn into_history(mut self) -> History {
        self.history(Interval::ALL)
    }

    /// The gaps, and the names of threads, LWPs and processes.
    pub fn into_known(self) -> (Arc<Vec<Gap>>, Names) {
        (self.shared.gaps, self.shared.names)
    }

    /// The parts that are the same in all slices, without rows.
    pub fn shared(&self) -> &History {
        &self.shared
    }

    fn history(&mut self, slice: Interval) -> History {
        let mut history = self.shared.clone();
        let Slicer {
            threads, lwps, wakeups, interrupts, syscalls, spans, locks, events, faults, marks, ..
        } = &*self;
        let mut firsts: Map<u32, i64> = Map::default();
        rayon::scope(|scope| {
            scope.spawn(|_| syscalls.copy_touching(slice, &mut history.syscalls));
            scope.spawn(|_| spans.copy_touching(slice, &mut history.spans));
            scope.spawn(|_| locks.copy_touching(slice, &mut history.locks));
            scope.spawn(|_| wakeups.copy_touching(slice, &mut history.wakeups));
            scope.spawn(|_| interrupts.copy_touching(slice, &mut history.interrupts));
            scope.spawn(|_| events.copy_touching(slice, &mut history.events));
            faults.copy_touching(slice, &mut history.faults);
            marks.copy_touching(slice, &mut history.marks);
            if !self.without_on_cpu {
                firsts = first_on_cpus(lwps.touching(slice), slice);
            }
        });
        let last = self.last_on_cpu.iter().filter_map(|(cpu, last)| Some((*cpu, (*last)?)));
        history.derive(States {
            threads: (threads.touching(slice), threads.len()),
            lwps: (lwps.touching(slice), lwps.len()),
            around: OnCpuAround { before: last.collect(), after: self.first_on_cpu.clone() },
            on_cpu: !self.without_on_cpu,
            mounted: !self.without_mounted,
        });
        self.first_on_cpu.extend(firsts);
        history
    }
}

/// The beginning of the first stay on each CPU. A row that begins before the slice is also a row of the next slice.
fn first_on_cpus<'r>(rows: impl Iterator<Item = &'r LwpRow>, slice: Interval) -> Map<u32, i64> {
    let mut firsts: Map<u32, i64> = Map::default();
    for (_, interval, stay) in rows.filter(|(_, interval, _)| interval.from > slice.from) {
        if let (LwpState::Running, Some(cpu)) = (stay.state, stay.cpu) {
            let first = firsts.entry(cpu).or_insert(interval.from);
            *first = interval.from.min(*first);
        }
    }
    firsts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_that_was_held_is_of_interest_until_its_release_even_if_its_wait_may_have_begun_in_a_gap() {
        let request = |wait, hold| LockRequest {
            tick: 100,
            wait,
            hold,
            thread: Some(1),
            lwp: None,
            cpu: None,
            object: 16,
            kind: Words::default().intern("mutex"),
            holder: None,
            holder_lwp: None,
            is_contended: true,
            call_site: None,
            end: EndReason::Released,
        };
        assert_eq!(request(Some(20), Some(30)).interval(), Interval::new(100, 150));
        assert_eq!(request(None, Some(30)).interval(), Interval::new(100, 130));
        assert_eq!(request(Some(20), None).interval(), Interval::new(100, 120));
        assert_eq!(request(None, None).interval(), Interval::new(100, i64::MAX), "it may still wait");
    }
}
