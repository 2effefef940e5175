//! `--critical-sections`: how long locks are held, and how deeply holds are nested (Feather-Trace, figures 4 to 9).

use std::{cmp::Reverse, collections::BinaryHeap};

use crate::{
    Answer, Column, Distribution, Group, History, Interval, Measure, Needs, Request,
    distribution::Lengths,
    groups::Groups,
    locks::{Lock, Selection, locks},
    map::Map,
    numbering::{ByNumber, number},
    parallel,
    sliced::{Slice, Sliced},
};

/// Lengths of critical sections, by nesting depth.
pub(crate) const CRITICAL_SECTIONS: Measure = Measure {
    name: "critical-sections",
    question: "How long are my critical sections, and how deeply do they nest?",
    heading: crate::measure::headings::WAY,
    subject: crate::measure::Subject::None,
    lists_cases: false,
    is_of_one_level: false,
    definition: include_str!("definitions/critical-sections.md"),
    needs: Needs { locks: true, ..Needs::NONE },
    computed: start,
};

/// A row is of a lock or of a group.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Of {
    Lock(Lock),
    Group(Group),
}

/// The sections so far.
struct Sections {
    request: Request,
    lengths: Map<Of, Map<u32, Lengths>>,
    /// Whether a hold that overlaps the window began before the slice.
    has_begun: bool,
}

fn start(request: &Request) -> Box<dyn Sliced> {
    Box::new(Sections { request: request.clone(), lengths: Map::default(), has_begun: false })
}

impl Sliced for Sections {
    fn add(&mut self, history: &History, slice: Slice) -> Result<(), String> {
        let request = self.request.clone();
        let selection = Selection::new(&request);
        let (locks, lock_of) = if request.by.is_none() { locks(history) } else { Default::default() };
        let (owners, owner_of) = number(history.locks.len(), |place| history.locks[place].owner());
        let by_owner = ByNumber::new(owners.len(), &owner_of);
        drop(owner_of);
        let numbers: Vec<u32> = (0..owners.len() as u32).collect();
        let new = || {
            let groups = Groups::new(history, &request);
            let (lengths, has_begun) = (Map::default(), false);
            Holds { history, slice, request: &request, selection: &selection, groups, lengths, has_begun }
        };
        let parts = parallel::fold(&numbers, new, |holds, owner| holds.add(by_owner.of(*owner), &lock_of));
        self.has_begun = false;
        for Holds { groups, lengths, has_begun, .. } in parts {
            for ((number, depth), lengths) in lengths {
                let of = match locks.get(number as usize) {
                    Some(lock) => Of::Lock(*lock),
                    None => Of::Group(groups.group(number).clone()),
                };
                self.lengths.entry(of).or_default().entry(depth).or_default().merge(lengths);
            }
            self.has_begun |= has_begun;
        }
        Ok(())
    }

    fn looks_back(&self) -> bool {
        self.has_begun
    }

    fn finish(self: Box<Self>, history: &History) -> Result<Answer, String> {
        Ok(table(history, &self.request, self.lengths))
    }
}

/// Collects the holds of some threads in a slice.
struct Holds<'h> {
    history: &'h History,
    slice: Slice,
    request: &'h Request,
    selection: &'h Selection<'h>,
    groups: Groups<'h>,
    /// By the number of the lock or group, and by depth.
    lengths: Map<(u32, u32), Lengths>,
    has_begun: bool,
}

impl Holds<'_> {
    /// Adds the holds of one thread. `requests` are its requests in the order of time. `lock_of` is empty if rows are
    /// of groups.
    fn add(&mut self, requests: &[u32], lock_of: &[u32]) {
        let locks = &self.history.locks;
        let hold = |place: &u32| Some((locks[*place as usize].holding()?, *place));
        let mut holds: Vec<(Interval, u32)> = requests.iter().filter_map(hold).collect();
        let order = |(hold, place): &(Interval, u32)| (hold.from, *place);
        if !holds.is_sorted_by_key(order) {
            holds.sort_unstable_by_key(order);
        }
        // The ends of the holds that are open.
        let mut ends: BinaryHeap<Reverse<i64>> = BinaryHeap::new();
        for (hold, place) in holds {
            while ends.peek().is_some_and(|Reverse(end)| *end <= hold.from) {
                ends.pop();
            }
            let depth = ends.len() as u32;
            ends.push(Reverse(hold.to));
            let lock = &locks[place as usize];
            let Some(part) = hold.clipped(self.request.window) else { continue };
            if !self.slice.interval.contains(hold.from) {
                self.has_begun |= hold.from < self.slice.interval.from;
                continue;
            }
            if !self.selection.has(self.history, lock) {
                continue;
            }
            let number = match lock_of.get(place as usize) {
                Some(number) => *number,
                None => match self.groups.number(lock.thread, lock.lwp) {
                    Some(number) => number,
                    None => continue,
                },
            };
            self.lengths.entry((number, depth)).or_default().push(part.ticks());
        }
    }
}

fn table(history: &History, request: &Request, all: Map<Of, Map<u32, Lengths>>) -> Answer {
    let mut columns = match request.by {
        Some(by) => Group::columns(by, request.level(history)),
        None => vec![
            Column::count("process", "The process of the lock; NULL if it is not known."),
            Column::object("object", "The address of the lock."),
        ],
    };
    columns.push(Column::count("depth", "Locks that the same thread held at the acquisition."));
    columns.extend(Distribution::columns());
    // Locks or groups with the largest sums of holds come first, each with its depths in order.
    let mut rows: Vec<_> = all.into_iter().collect();
    let total = |depths: &Map<u32, Lengths>| depths.values().map(Lengths::total).fold(0, i64::saturating_add);
    rows.sort_by_cached_key(|(of, depths)| (Reverse(total(depths)), of.clone()));
    let mut answer = Answer::new(columns);
    for (of, depths) in rows {
        let cells_of = match of {
            Of::Lock(lock) => vec![lock.process.into(), lock.object.into()],
            Of::Group(group) => group.cells(history),
        };
        let mut depths: Vec<(u32, Lengths)> = depths.into_iter().collect();
        depths.sort_unstable_by_key(|(depth, _)| *depth);
        for (depth, lengths) in depths {
            let mut cells = cells_of.clone();
            cells.push(depth.into());
            let lengths = Distribution::from(lengths);
            cells.extend(lengths.cells());
            answer.push_with_lengths(cells, lengths);
        }
    }
    answer
}
