//! Unique names of containers: Pajé and readers of pj_dump's table identify containers by name.

use std::collections::HashMap;

use crate::timeline::{Actors, LwpId, ProcessId, ThreadId};

use super::hierarchy::{ContainerKind, Row};

/// Names in use, and how often each was requested.
#[derive(Default)]
pub(super) struct UniqueNames {
    asked: HashMap<String, u32>,
}

impl UniqueNames {
    /// Returns this name, with ` #2` appended if it is in use.
    pub(super) fn make_unique(&mut self, name: String) -> String {
        let Some(asked) = self.asked.get_mut(&name) else {
            self.asked.insert(name.clone(), 1);
            return name;
        };
        let mut number = *asked;
        let given = loop {
            number += 1;
            let candidate = format!("{name} #{number}");
            if !self.asked.contains_key(&candidate) {
                break candidate;
            }
        };
        self.asked.insert(name, number);
        self.asked.insert(given.clone(), 1);
        given
    }
}

/// The names of the actors' own rows.
pub(super) struct Names {
    pub(super) unique: UniqueNames,
    machine: String,
    cpus: Vec<String>,
    processes: Vec<String>,
    lwps: Vec<String>,
    threads: Vec<String>,
}

impl Names {
    /// Uses labels where they are unique. The main LWP of a process has the label of the process, so the process is
    /// named `sumtime (70) process`. Threads of several processes with the same label are named `1 main @ sumtime
    /// (70)`.
    pub(super) fn new(actors: &Actors) -> Names {
        let mut unique = UniqueNames::default();
        let machine =
            unique.make_unique(if actors.name.is_empty() { "machine".into() } else { actors.name.clone() });
        let cpus = actors.cpus.iter().map(|cpu| unique.make_unique(format!("CPU {cpu}"))).collect();
        let processes = actors.processes.iter().map(|process| {
            let named = process.pid.is_some() && process.name.is_some();
            unique.make_unique(if named { format!("{} process", process.label()) } else { process.label() })
        });
        let processes = processes.collect();
        let of_lwps = actors.lwps.iter().map(|lwp| (lwp.label(), lwp.process)).collect();
        let lwps = unique_labels(actors, of_lwps, &mut unique);
        let of_threads = actors.threads.iter().map(|thread| (thread.label(), thread.process)).collect();
        let threads = unique_labels(actors, of_threads, &mut unique);
        Names { unique, machine, cpus, processes, lwps, threads }
    }

    /// The name of an actor's own row.
    pub(super) fn of(&self, row: Row) -> &str {
        let index = row.index as usize;
        match row.kind.actor() {
            ContainerKind::Cpu => &self.cpus[index],
            ContainerKind::Process => &self.processes[index],
            ContainerKind::Lwp => &self.lwps[index],
            ContainerKind::Thread => &self.threads[index],
            _ => &self.machine,
        }
    }

    /// The name of an additional row of an actor.
    pub(super) fn additional(&mut self, row: Row) -> String {
        let name = format!("{} of {}", row.kind.of().row_name, self.of(row));
        self.unique.make_unique(name)
    }
}

/// The row that contains an actor's own row.
pub(super) fn parent(actors: &Actors, row: Row) -> Row {
    let index = row.index;
    match row.kind {
        ContainerKind::Lwp => actors[LwpId(index)].process.into(),
        ContainerKind::Thread => actors[ThreadId(index)].process.into(),
        ContainerKind::Machine | ContainerKind::Cpu | ContainerKind::Process => Row::MACHINE,
        _ => row.actor(),
    }
}

fn unique_labels(actors: &Actors, labels: Vec<(String, ProcessId)>, unique: &mut UniqueNames) -> Vec<String> {
    let mut processes: HashMap<String, Option<ProcessId>> = HashMap::new();
    for (label, process) in &labels {
        // `None` if actors of several processes have the label.
        let known = processes.entry(label.clone()).or_insert(Some(*process));
        *known = known.filter(|first| first == process);
    }
    let unique = |(label, process): (String, ProcessId)| {
        let of_several = processes[&label].is_none();
        unique.make_unique(if of_several { format!("{label} @ {}", actors[process].label()) } else { label })
    };
    labels.into_iter().map(unique).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_name_is_given_once() {
        let mut names = UniqueNames::default();
        let given = ["a", "a #2", "a", "a", "b", "a #2"].map(|name| names.make_unique(name.into()));
        assert_eq!(given, ["a", "a #2", "a #3", "a #4", "b", "a #2 #2"]);
    }

    #[test]
    fn many_alike_take_no_quadratic_time() {
        let mut names = UniqueNames::default();
        for _ in 0..200_000 {
            names.make_unique("thread 5".into());
        }
        assert_eq!(names.make_unique("thread 5".into()), "thread 5 #200001");
    }
}
