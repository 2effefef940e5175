//! Names and lives of user threads, LWPs and processes.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use crate::Interval;

/// A user thread or an LWP: a row of `threads` or `lwps`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Life {
    /// Its name, if it has one.
    pub name: Option<Arc<str>>,
    /// Its process, if known.
    pub pid: Option<u32>,
    /// From its creation to its end; to the end of the trace if it has none.
    pub interval: Interval,
    /// The user thread that created it.
    pub created_by: Option<u64>,
}

/// All of them, by their numbers.
#[derive(Clone, Debug, Default)]
pub struct Names {
    /// User threads.
    pub threads: BTreeMap<u64, Life>,
    /// LWPs.
    pub lwps: BTreeMap<u32, Life>,
    /// The names of processes.
    pub processes: HashMap<u32, Arc<str>>,
}

impl Names {
    /// `15`, or `15(work/6)`; `idle` for the idle task.
    pub fn lwp_label(&self, lwp: u32) -> String {
        if lwp == 0 {
            return "idle".to_string();
        }
        labelled(lwp, self.lwps.get(&lwp))
    }

    /// `15`, or `15(work/6)`.
    pub fn thread_label(&self, thread: u64) -> String {
        labelled(thread, self.threads.get(&thread))
    }

    /// The name of a process: its own, or that of the LWP that leads it.
    pub fn process_name(&self, pid: u32) -> Option<Arc<str>> {
        let own = self.processes.get(&pid).cloned();
        own.or_else(|| self.lwps.get(&pid).and_then(|life| life.name.clone()))
    }
}

fn labelled(number: impl std::fmt::Display, life: Option<&Life>) -> String {
    match life.and_then(|life| life.name.as_deref()) {
        Some(name) => format!("{number}({name})"),
        None => number.to_string(),
    }
}
