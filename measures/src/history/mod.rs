//! A super-trace in memory: what each user thread, LWP and CPU did, and when.
//!
//! Measures read it. [`HistoryBuilder`] builds it from the tables that the measure needs ([`Needs`]). Tables that were
//! not loaded are empty here.

mod cursors;
mod derived;
mod events;
mod lives;
mod names;
mod needs;
mod rows;
mod series;
mod slicer;
mod track;
mod words;

use std::sync::Arc;

use crate::Interval;

pub(crate) use cursors::Searches;
pub use events::EventAt;
pub use lives::{Life, Lives, LivesBuilder};
pub use names::{Creators, Names};
pub use needs::Needs;
pub use rows::{
    Context, Fault, Gap, Interrupt, LockRequest, LwpStay, Mark, Span, Syscall, ThreadStay, Wakeup,
};
pub use series::{Series, SeriesBuilder};
pub use slicer::{LastOnCpu, LwpRow, Row, Slicer, ThreadRow};
pub use track::Track;
pub use track::near;
pub(crate) use track::stretches;
pub use words::{Word, Words};

/// What happened, as far as it was loaded.
#[derive(Clone, Debug, Default)]
pub struct History {
    /// From the first event to the last.
    pub extent: Option<Interval>,
    /// What user threads did, by their numbers.
    pub threads: Series<ThreadStay>,
    /// What LWPs did, by their tids.
    pub lwps: Series<LwpStay>,
    /// Which LWP was on each CPU, by the CPU's number: from `lwps`.
    pub on_cpu: Series<u32>,
    /// Which user thread was mounted on each LWP, by its tid: from `threads`.
    pub mounted: Series<u64>,
    /// Wakeups, sorted by time.
    pub wakeups: Vec<Wakeup>,
    /// The places in `wakeups` of the unparks of each user thread. Each interval lasts to the dispatch that the unpark
    /// led to, if that is known.
    pub unparks: Series<u32>,
    /// The places in `wakeups` of the wakeups of each LWP, by its tid, as in `unparks`.
    pub wakings: Series<u32>,
    /// Interrupts, sorted by their beginning. With equal beginnings, the outer comes first.
    pub interrupts: Vec<Interrupt>,
    /// System calls, in no order.
    pub syscalls: Vec<Syscall>,
    /// The place in `syscalls` of the call that each LWP was in, by its tid.
    pub calls: Series<u32>,
    /// The place in `interrupts` of the innermost interrupt at each instant, by the CPU's number.
    pub innermost: Series<u32>,
    /// Spans and functions, sorted by their beginning. With equal beginnings, the outer comes first.
    pub spans: Vec<Span>,
    /// Requests for locks, sorted by time.
    pub locks: Vec<LockRequest>,
    /// The places in `locks` of the requests of each user thread that had to wait. Each interval lasts to the end of
    /// the wait, if that is known.
    pub lock_waits: Series<u32>,
    /// Events at which a CPU changes from one LWP to another, or an LWP from one user thread to another. Sorted by
    /// time; at the same tick in the order of the table.
    pub events: Vec<EventAt>,
    /// Page faults, sorted by time.
    pub faults: Vec<Fault>,
    /// Whether the whole trace has no interrupts, so that their time was not recorded. (A slice may have none for other
    /// reasons.)
    pub has_no_interrupts: bool,
    /// Where events are missing, sorted by their begin.
    pub gaps: Arc<Vec<Gap>>,
    /// Events that FROM and TO of a question select, sorted by time; of equal time in the order of the events.
    pub marks: Vec<Mark>,
    /// Names and lives of user threads, LWPs and processes. Always loaded.
    pub names: Names,
    /// Names of other things.
    pub words: Words,
}

/// Collects a [`History`]. Rows come in any order.
#[derive(Clone, Debug, Default)]
pub struct HistoryBuilder {
    history: History,
    threads: Vec<ThreadRow>,
    lwps: Vec<LwpRow>,
}

impl HistoryBuilder {
    /// The history without the states, to add rows to.
    pub fn history(&mut self) -> &mut History {
        &mut self.history
    }

    /// A row of `thread_states`.
    pub fn thread_state(&mut self, thread: u64, interval: Interval, stay: ThreadStay) {
        self.threads.push((thread, interval, stay));
    }

    /// A row of `lwp_states`.
    pub fn lwp_state(&mut self, lwp: u32, interval: Interval, stay: LwpStay) {
        self.lwps.push((lwp, interval, stay));
    }

    /// The history.
    pub fn build(mut self) -> History {
        let states = States {
            threads: (self.threads.iter(), self.threads.len()),
            lwps: (self.lwps.iter(), self.lwps.len()),
            around: Default::default(),
            on_cpu: true,
            mounted: true,
        };
        self.history.derive(states);
        self.history
    }
}

/// Rows from which the states of a history are made, with the most that there can be.
struct States<T, L> {
    threads: (T, usize),
    lwps: (L, usize),
    /// What was on the CPUs before and after the rows.
    around: derived::OnCpuAround,
    /// Whether to derive which LWP had each CPU.
    on_cpu: bool,
    /// Whether to derive what each LWP carried.
    mounted: bool,
}

impl History {
    /// Makes the states, sorts the lists, and derives what follows from both.
    fn derive<'r, T, L>(&mut self, states: States<T, L>)
    where
        T: Iterator<Item = &'r ThreadRow> + Clone + Send + Sync,
        L: Iterator<Item = &'r LwpRow> + Clone + Send + Sync,
    {
        let States { threads, lwps, around, on_cpu: with_on_cpu, mounted: with_mounted } = states;
        let History {
            wakeups,
            unparks,
            wakings,
            interrupts,
            innermost,
            syscalls,
            calls,
            spans,
            locks,
            lock_waits,
            words,
            ..
        } = self;
        // These parts do not depend on each other, so they are made in parallel.
        rayon::scope(|scope| {
            scope.spawn(|_| {
                wakeups.sort_by_key(|wakeup| wakeup.tick);
                (*unparks, *wakings) = derived::wakeups_by_target(wakeups);
            });
            scope.spawn(|_| {
                *calls = derived::calls(syscalls);
            });
            scope.spawn(|_| spans.sort_by_key(|span| (span.interval.from, span.depth)));
            scope.spawn(|_| {
                locks.sort_by_key(|request| request.tick);
                *lock_waits = derived::lock_waits(locks, words);
            });
            scope.spawn(|_| {
                interrupts.sort_by_key(|interrupt| (interrupt.interval.from, interrupt.depth));
                *innermost = derived::innermost(interrupts);
            });
        });
        self.events.sort_by_key(|event| event.tick());
        self.faults.sort_by_key(|fault| fault.at.tick());
        if !self.gaps.is_sorted_by_key(|gap| gap.interval) {
            Arc::make_mut(&mut self.gaps).sort_by_key(|gap| gap.interval);
        }
        self.marks.sort_by_key(|mark| mark.tick);
        let extent = self.extent.unwrap_or(Interval::new(0, 0));
        let History { threads: of_threads, lwps: of_lwps, on_cpu, mounted, gaps, .. } = self;
        rayon::scope(|scope| {
            let ((threads, most), (lwps, most_lwps)) = (threads, lwps);
            if with_mounted {
                let threads = threads.clone();
                scope.spawn(move |_| *mounted = derived::mounted(threads, most));
            }
            if with_on_cpu {
                let lwps = lwps.clone();
                scope.spawn(move |_| *on_cpu = derived::on_cpu(lwps, gaps, extent, &around));
            }
            scope.spawn(move |_| *of_lwps = derived::states(lwps, most_lwps));
            *of_threads = derived::states(threads, most);
        });
    }

    /// The user thread that an LWP carried just before a tick.
    pub fn mounted_before(&self, lwp: u32, tick: i64) -> Option<u64> {
        self.mounted.of(lwp.into()).before(tick).map(|(_, thread)| *thread)
    }

    /// The system call that an LWP was in at a tick.
    pub fn call_at(&self, lwp: u32, tick: i64) -> Option<&Syscall> {
        let (_, place) = self.calls.of(lwp.into()).at(tick)?;
        self.syscalls.get(*place as usize)
    }

    /// The user thread that an LWP carried at a tick.
    pub fn mounted_at(&self, lwp: u32, tick: i64) -> Option<u64> {
        self.mounted.of(lwp.into()).at(tick).map(|(_, thread)| *thread)
    }
}
