//! A simulation of tasks on CPUs: each CPU always does the first task of the list that may begin, and of those that can wait
//! only if there is no other. What the tasks are is up
//! to [`designs`](crate::designs).

use std::{
    cmp::Reverse,
    collections::{BTreeSet, BinaryHeap},
};

/// Which CPUs may do a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// The first CPU alone: the one thread of a merge.
    Merge,
    /// Any, but the first one prefers the merge's own tasks.
    Any,
}

/// A piece of work.
#[derive(Clone, Debug)]
pub(crate) struct Task {
    pub(crate) ns: u64,
    pub(crate) place: Place,
    /// Others come first.
    pub(crate) can_wait: bool,
    /// Tasks that have to be done before, by their positions in the list.
    pub(crate) after: Vec<usize>,
}

/// How long it took.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Run {
    pub(crate) ns: u64,
    /// Time in which the first CPU did tasks that no other may do.
    pub(crate) merge_ns: u64,
}

/// Tasks that may begin, in the order of the list.
#[derive(Default)]
struct Ready {
    merge: BTreeSet<usize>,
    /// Those that can wait come last.
    any: BTreeSet<(bool, usize)>,
}

impl Ready {
    fn add(&mut self, number: usize, task: &Task) {
        match task.place {
            Place::Merge => self.merge.insert(number),
            Place::Any => self.any.insert((task.can_wait, number)),
        };
    }

    /// What a CPU does next.
    fn take(&mut self, cpu: usize) -> Option<usize> {
        let of_merge = if cpu == 0 { self.merge.pop_first() } else { None };
        of_merge.or_else(|| self.any.pop_first().map(|(_, task)| task))
    }
}

/// Does all tasks on so many CPUs.
///
/// # Panics
/// If tasks wait for each other in a cycle, or for one that is not in the list.
pub(crate) fn run(tasks: &[Task], cpus: usize) -> Run {
    let mut waits_for: Vec<usize> = tasks.iter().map(|task| task.after.len()).collect();
    let mut followers = vec![Vec::new(); tasks.len()];
    for (number, task) in tasks.iter().enumerate() {
        task.after.iter().for_each(|before| followers[*before].push(number));
    }
    let mut ready = Ready::default();
    for (number, task) in tasks.iter().enumerate().filter(|(_, task)| task.after.is_empty()) {
        ready.add(number, task);
    }
    let mut idle: BTreeSet<usize> = (0..cpus).collect();
    let mut busy = BinaryHeap::new();
    let (mut now, mut merge_ns, mut done) = (0, 0, 0);
    loop {
        // The first CPU chooses first.
        idle.retain(|cpu| {
            let Some(task) = ready.take(*cpu) else { return true };
            let Task { ns, place, .. } = tasks[task];
            merge_ns += if place == Place::Merge { ns } else { 0 };
            busy.push(Reverse((now + ns, *cpu, task)));
            false
        });
        let Some(Reverse((end, cpu, task))) = busy.pop() else { break };
        now = end;
        done += 1;
        idle.insert(cpu);
        for follower in &followers[task] {
            waits_for[*follower] -= 1;
            if waits_for[*follower] == 0 {
                ready.add(*follower, &tasks[*follower]);
            }
        }
    }
    assert_eq!(done, tasks.len(), "tasks wait for each other");
    Run { ns: now, merge_ns }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn task(ns: u64, place: Place, after: &[usize]) -> Task {
        Task { ns, place, can_wait: false, after: after.to_vec() }
    }

    // d decodes, m merges, e encodes; each e takes 3, the others 1. A block is decoded, merged and encoded.
    //
    //   CPU 0 | d0 m0 m1 e1       |
    //   CPU 1 |    d1 e0    e2..  |      two blocks: d0 0–1, m0 1–2, d1 0–1 on CPU 1
    #[test]
    fn two_blocks_on_two_cpus() {
        let tasks = [
            task(1, Place::Any, &[]),
            task(1, Place::Any, &[]),
            task(1, Place::Merge, &[0]),
            task(1, Place::Merge, &[1, 2]),
            task(3, Place::Any, &[2]),
            task(3, Place::Any, &[3]),
        ];
        // CPU 0: d0 0–1, m0 1–2, m1 2–3, e1 3–6. CPU 1: d1 0–1, idle 1–2, e0 2–5.
        assert_eq!(run(&tasks, 2), Run { ns: 6, merge_ns: 2 });
        // One CPU does all of it: 2 + 2 + 6.
        assert_eq!(run(&tasks, 1), Run { ns: 10, merge_ns: 2 });
        // With more, d 0–1, m0 1–2, m1 2–3, e1 3–6: the same.
        assert_eq!(run(&tasks, 8).ns, 6);
    }

    //   CPU 0 | M0 M1 M2 M3 |           M takes 2, and each A, which follows it, 3
    //   CPU 1 |    A0    A2  |
    //   CPU 2 |       A1    A3 |
    #[test]
    fn the_tasks_of_the_merge_are_a_limit_whatever_the_number_of_cpus() {
        let mut tasks = Vec::new();
        for block in 0..4_usize {
            let before = block.checked_sub(1).map(|before| 2 * before);
            tasks.push(task(2, Place::Merge, &before.into_iter().collect::<Vec<_>>()));
            tasks.push(task(3, Place::Any, &[2 * block]));
        }
        // M3 ends at 8, A3 at 11.
        assert_eq!(run(&tasks, 3), Run { ns: 11, merge_ns: 8 });
        assert_eq!(run(&tasks, 100), Run { ns: 11, merge_ns: 8 });
    }

    #[test]
    #[should_panic(expected = "wait for each other")]
    fn a_cycle_is_no_schedule() {
        run(&[task(1, Place::Any, &[1]), task(1, Place::Any, &[0])], 2);
    }
}
