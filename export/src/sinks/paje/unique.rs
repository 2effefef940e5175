//! Unique names of containers: Pajé and readers of pj_dump's table identify containers by name.

use std::{borrow::Cow, collections::HashMap};

use crate::timeline::{Actors, LwpId, ProcessId, ThreadId};

use super::hierarchy::{ContainerKind, Row};

/// Names in use, and how many times each was requested.
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

    /// Removes names that will not be requested again.
    fn forget(&mut self, names: impl IntoIterator<Item = String>) {
        for name in names {
            self.asked.remove(&name);
        }
    }
}

/// The names of the actors' own rows.
pub(super) struct Names {
    unique: UniqueNames,
    machine: String,
    cpus: Vec<String>,
    processes: Vec<String>,
    lwps: Vec<String>,
    /// The names of user threads whose labels are not unique. There may be millions of other user threads.
    threads: HashMap<u32, Box<str>>,
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
        let threads = unique_thread_labels(actors, &mut unique);
        Names { unique, machine, cpus, processes, lwps, threads }
    }

    /// The name of an actor's own row.
    pub(super) fn of<'n>(&'n self, row: Row, actors: &Actors) -> Cow<'n, str> {
        let index = row.index as usize;
        let name = match row.kind.actor() {
            ContainerKind::Cpu => &self.cpus[index],
            ContainerKind::Process => &self.processes[index],
            ContainerKind::Lwp => &self.lwps[index],
            ContainerKind::Thread => {
                let unique = self.threads.get(&row.index);
                return unique.map_or_else(
                    || actors.thread_label(ThreadId(row.index)).into(),
                    |name| (&**name).into(),
                );
            }
            _ => &self.machine,
        };
        name.into()
    }

    /// The name of an additional row of an actor. It must be the only row of its kind of this actor.
    pub(super) fn additional(&mut self, row: Row, actors: &Actors) -> String {
        let name = format!("{} of {}", row.kind.of().row_name, self.of(row, actors));
        let name = self.unique.make_unique(name);
        if row.kind.actor() == ContainerKind::Thread {
            // Names of threads are unique, so the names of their additional rows are unique, too.
            self.unique.forget([name.clone()]);
        }
        name
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

/// The names of user threads that differ from their labels. Threads with the same label have the same number, and
/// threads are sorted by number. So the names in use are kept only while the threads of one number are named.
fn unique_thread_labels(actors: &Actors, unique: &mut UniqueNames) -> HashMap<u32, Box<str>> {
    let (mut names, mut from) = (HashMap::new(), 0);
    let mut only_label = String::new();
    for of_number in actors.threads.chunk_by(|a, b| a.thread == b.thread) {
        let to = from + of_number.len() as u32;
        let label =
            |index: u32| (actors.thread_label(ThreadId(index)), actors.threads[index as usize].process);
        if of_number.len() == 1 {
            only_label.clear();
            actors.push_thread_label(ThreadId(from), &mut only_label);
            if !unique.asked.contains_key(&only_label) {
                from = to;
                continue;
            }
        }
        let labels: Vec<_> = (from..to).map(label).collect();
        let mut of_this_number = Vec::new();
        for (index, name) in (from..to).zip(unique_labels(actors, labels, unique)) {
            if of_number.len() > 1 || name != label(index).0 {
                names.insert(index, name.as_str().into());
            }
            of_this_number.push(name);
        }
        unique.forget(of_this_number);
        from = to;
    }
    names
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
