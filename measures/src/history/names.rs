//! Names and lives of user threads, LWPs and processes.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use super::lives::{Life, Lives};
use crate::Actor;

/// All of them, by their numbers. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct Names {
    /// User threads.
    pub threads: Lives<u64>,
    /// LWPs.
    pub lwps: Lives<u32>,
    /// The names of processes.
    pub processes: Arc<HashMap<u32, Arc<str>>>,
    /// Other creators than those of lives; `None` if they were not looked up.
    pub creators: Option<Creators>,
}

/// Who created LWPs, and user threads that no user thread created. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct Creators(pub Arc<BTreeMap<Actor, Actor>>);

impl Names {
    /// `15`, or `15(work/6)`; `idle` for the idle task.
    pub fn lwp_label(&self, lwp: u32) -> String {
        if lwp == 0 {
            return "idle".to_string();
        }
        labelled(lwp, self.lwps.get(lwp))
    }

    /// `15`, or `15(work/6)`.
    pub fn thread_label(&self, thread: u64) -> String {
        labelled(thread, self.threads.get(thread))
    }

    /// When a user thread or LWP was created, and by which other one; `None` if that is not known.
    pub(crate) fn created(&self, actor: Actor) -> Option<(i64, Actor)> {
        let life = match actor {
            Actor::Thread(thread) => self.threads.get(thread),
            Actor::Lwp(lwp) => self.lwps.get(lwp),
        }?;
        let by_other = || self.creators.as_ref()?.0.get(&actor).copied();
        let creator = life.created_by.map(Actor::Thread).or_else(by_other)?;
        (creator != actor).then_some((life.interval.from, creator))
    }

    /// The name of a process: its own, or that of the LWP that leads it.
    pub fn process_name(&self, pid: u32) -> Option<&str> {
        let own = self.processes.get(&pid).map(AsRef::as_ref);
        own.or_else(|| self.lwps.get(pid).and_then(|life| life.name))
    }
}

fn labelled(number: impl std::fmt::Display, life: Option<Life<'_>>) -> String {
    match life.and_then(|life| life.name) {
        Some(name) => format!("{number}({name})"),
        None => number.to_string(),
    }
}
