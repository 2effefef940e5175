//! A request: which threads, when, and how rows are grouped.

use std::{collections::BTreeSet, sync::Arc};

use crate::{Canvas, Column, History, Interval, Value};

/// What a row of an answer stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum By {
    /// A user thread.
    Thread,
    /// An LWP.
    Lwp,
    /// A process.
    Process,
    /// A name: all threads (or LWPs) with this name together.
    Name,
    /// A name with its numbers replaced: `worker/12` belongs to `worker/*`.
    Pattern,
}

impl By {
    /// All of them.
    pub const ALL: [By; 5] = [By::Thread, By::Lwp, By::Process, By::Name, By::Pattern];

    /// Its word: thread, lwp, process, name or pattern.
    pub fn name(self) -> &'static str {
        match self {
            By::Thread => "thread",
            By::Lwp => "lwp",
            By::Process => "process",
            By::Name => "name",
            By::Pattern => "pattern",
        }
    }

    /// By its word.
    pub fn from_name(word: &str) -> Option<By> {
        By::ALL.into_iter().find(|by| by.name() == word)
    }
}

/// The level that a measure is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Level {
    /// User threads on LWPs.
    Threads,
    /// LWPs on CPUs.
    Lwps,
}

/// A question.
#[derive(Clone, Debug)]
pub struct Request {
    /// Only what is in this window counts.
    pub window: Interval,
    /// These user threads; all if `None`.
    pub threads: Option<BTreeSet<u64>>,
    /// These LWPs, and what is on them; all if `None`.
    pub lwps: Option<BTreeSet<u32>>,
    /// What is on these CPUs; all if `None`.
    pub cpus: Option<BTreeSet<u32>>,
    /// What a row stands for. If `None`: a user thread, or an LWP if the trace has no user threads.
    pub by: Option<By>,
    /// The level, if it was given explicitly.
    pub level: Option<Level>,
    /// How many worst cases to list, for measures that list them.
    pub worst: usize,
    /// The name of a span or function, or the lock, that the question is about.
    pub subject: Option<String>,
    /// Whether a span or function outside of the window has that name. Then it is no error if none in the window has
    /// it.
    pub is_subject_known: bool,
    /// Whether the question is about the pairs of FROM and TO marks, not about a span.
    pub is_of_pairs: bool,
    /// Whether the answer also has to have the lengths that its rows summarize.
    pub with_lengths: bool,
    /// How a timeline is drawn.
    pub canvas: Canvas,
    /// Whether the trace is known to have user threads. The answer does not depend on it, but what has to be read for it.
    pub has_user_threads: bool,
}

impl Default for Request {
    fn default() -> Request {
        Request {
            window: Interval::ALL,
            threads: None,
            lwps: None,
            cpus: None,
            by: None,
            level: None,
            worst: 0,
            subject: None,
            is_subject_known: false,
            is_of_pairs: false,
            with_lengths: false,
            canvas: Canvas::default(),
            has_user_threads: false,
        }
    }
}

impl Request {
    /// What a row stands for, with the default resolved.
    pub fn by(&self, history: &History) -> By {
        self.by.unwrap_or(match self.level(history) {
            Level::Threads => By::Thread,
            Level::Lwps => By::Lwp,
        })
    }

    /// The level of the request. If it was not given explicitly, it is that of LWPs if rows are LWPs, if only LWPs are
    /// selected, or if there are no user threads. Otherwise it is that of user threads.
    pub fn level(&self, history: &History) -> Level {
        if let Some(level) = self.level {
            return level;
        }
        let only_lwps = self.threads.is_none() && self.lwps.is_some() && self.by.is_none();
        // If threads are selected, the level is that of threads, even if none of them lived in the window.
        let has_no_threads = self.threads.is_none() && history.names.threads.is_empty();
        if self.by == Some(By::Lwp) || only_lwps || has_no_threads { Level::Lwps } else { Level::Threads }
    }

    /// Whether rows are of user threads, of which some are selected, on any CPU. Most measures need no states of LWPs then.
    pub(crate) fn is_of_own_threads(&self) -> bool {
        self.threads.is_some() && self.is_of_threads_on_any_cpu()
    }

    /// Whether it is known before anything is read that the level is that of user threads, on any CPU. The states of user
    /// threads are sufficient then for measures that have rows of one level.
    pub(crate) fn is_of_threads_on_any_cpu(&self) -> bool {
        let only_lwps = self.threads.is_none() && self.lwps.is_some() && self.by.is_none();
        let is_of_threads = match self.level {
            Some(level) => level == Level::Threads,
            None => {
                (self.threads.is_some() || self.has_user_threads) && self.by != Some(By::Lwp) && !only_lwps
            }
        };
        is_of_threads && self.cpus.is_none()
    }

    /// The window, cut to the trace.
    pub fn extent(&self, history: &History) -> Interval {
        let all = history.extent.unwrap_or(Interval { from: 0, to: 0 });
        Interval::new(self.window.from.max(all.from), self.window.to.min(all.to))
    }

    /// Whether a user thread is selected.
    pub fn has_thread(&self, thread: u64) -> bool {
        self.threads.as_ref().is_none_or(|threads| threads.contains(&thread))
    }

    /// Whether something that belongs to this user thread is selected. With `None` (it belongs to no user thread), it
    /// is selected unless the request is for certain user threads, or for the level of threads.
    pub fn has_thread_or_none(&self, thread: Option<u64>) -> bool {
        match thread {
            Some(thread) => self.has_thread(thread),
            None => self.threads.is_none() && self.level != Some(Level::Threads),
        }
    }

    /// Whether an LWP is selected.
    pub fn has_lwp(&self, lwp: u32) -> bool {
        self.lwps.as_ref().is_none_or(|lwps| lwps.contains(&lwp))
    }

    /// Whether a CPU is selected.
    pub fn has_cpu(&self, cpu: u32) -> bool {
        self.cpus.as_ref().is_none_or(|cpus| cpus.contains(&cpu))
    }

    /// Whether a place is selected. An unknown place is selected only if the request selects no places.
    pub fn has_place(&self, lwp: Option<u32>, cpu: Option<u32>) -> bool {
        (self.lwps.is_none() || lwp.is_some_and(|lwp| self.has_lwp(lwp)))
            && (self.cpus.is_none() || cpu.is_some_and(|cpu| self.has_cpu(cpu)))
    }
}

/// The threads or LWPs that a row of an answer stands for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Group {
    /// One user thread.
    Thread(u64),
    /// One LWP.
    Lwp(u32),
    /// A process; `None` if it is not known.
    Process(Option<u32>),
    /// A name; `None` for those without one.
    Name(Option<Arc<str>>),
}

impl Group {
    /// The group of a user thread. With rows by LWP, the thread itself is its group.
    pub fn of_thread(history: &History, by: By, thread: u64) -> Group {
        let life = || history.names.threads.get(thread);
        let name = || life().and_then(|life| life.name);
        match by {
            By::Thread | By::Lwp => Group::Thread(thread),
            By::Process => Group::Process(life().and_then(|life| life.pid)),
            By::Name => Group::Name(name().map(Arc::from)),
            By::Pattern => Group::Name(name().map(pattern)),
        }
    }

    /// The group of an LWP.
    pub fn of_lwp(history: &History, by: By, lwp: u32) -> Group {
        let life = || history.names.lwps.get(lwp);
        let name = || life().and_then(|life| life.name);
        match by {
            By::Thread | By::Lwp => Group::Lwp(lwp),
            By::Process => Group::Process(life().and_then(|life| life.pid)),
            By::Name => Group::Name(name().map(Arc::from)),
            By::Pattern => Group::Name(name().map(pattern)),
        }
    }

    /// The group of what belongs to no user thread and no LWP, or to none that has a group. Its cells are NULL.
    pub fn nobody(by: By) -> Group {
        match by {
            By::Thread | By::Lwp | By::Process => Group::Process(None),
            By::Name | By::Pattern => Group::Name(None),
        }
    }

    /// The first columns of an answer, which identify the group of a row.
    pub fn columns(by: By, level: Level) -> Vec<Column> {
        let name = Column::text("name", "Its name.");
        match (by, level) {
            (By::Thread, Level::Threads) => vec![Column::count("thread", "The user thread."), name],
            (By::Thread | By::Lwp, _) => vec![Column::count("lwp", "The LWP."), name],
            (By::Process, _) => vec![Column::count("pid", "The process; NULL if it is not known."), name],
            (By::Name | By::Pattern, _) => {
                vec![Column::text("name", "The name; NULL for those without one.")]
            }
        }
    }

    /// The cells of these [`columns`](Self::columns), with spare room for the measure's own cells.
    pub fn cells<'h>(&self, history: &'h History) -> Vec<Value<'h>> {
        let mut cells = Vec::with_capacity(ROOM);
        self.add_cells(history, &mut cells);
        cells
    }

    pub(crate) fn add_cells<'h>(&self, history: &'h History, cells: &mut Vec<Value<'h>>) {
        let names = &history.names;
        match self {
            Group::Thread(thread) => {
                cells
                    .extend([(*thread).into(), names.threads.get(*thread).and_then(|life| life.name).into()]);
            }
            Group::Lwp(lwp) => {
                cells.extend([(*lwp).into(), names.lwps.get(*lwp).and_then(|life| life.name).into()]);
            }
            Group::Process(pid) => {
                cells.extend([(*pid).into(), pid.and_then(|pid| names.process_name(pid)).into()]);
            }
            Group::Name(name) => cells.push(name.as_deref().map(str::to_string).into()),
        }
    }
}

/// The number of cells for which a row has room from the beginning.
const ROOM: usize = 16;

/// A name with each number in it as `*`.
pub fn pattern(name: &str) -> Arc<str> {
    let mut pattern = String::with_capacity(name.len());
    for character in name.chars() {
        if !character.is_ascii_digit() {
            pattern.push(character);
        } else if !pattern.ends_with('*') {
            pattern.push('*');
        }
    }
    pattern.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_in_names_are_one_pattern() {
        let patterns = ["request", "worker/12", "a1b22c", "7", ""].map(pattern);
        assert_eq!(patterns.each_ref().map(|p| &**p), ["request", "worker/*", "a*b*c", "*", ""]);
    }
}
