//! Finds the actor that has a number at an instant. Numbers are reused: it is the last actor with this number that was
//! created up to the instant.

use std::hash::BuildHasher;

use foldhash::fast::RandomState;
use hashbrown::HashTable;
use sigmund_model::{Cpu, Lwp, Thread, Ticks};

use crate::timeline::{Actors, CpuId, LwpId, ThreadId};

/// The actors by number. All methods must be given the actors from which it was made.
pub(super) struct ActorIds {
    cpus: ByNumber,
    lwps: ByNumber,
    threads: ByNumber,
}

/// Finds the first actor with a number. The actors with the same number follow it, in the order of their births.
enum ByNumber {
    /// The numbers are consecutive, as is usual for user threads. So an index is the difference of two numbers.
    WithoutHoles { first: u64, len: usize },
    /// The index of the first actor with each number, by the hash of the number.
    Hashed { firsts: HashTable<u32>, hasher: RandomState },
}

impl ActorIds {
    pub(super) fn of(actors: &Actors) -> ActorIds {
        ActorIds {
            cpus: ByNumber::new(actors.cpus.len(), |index| actors.cpus[index].0.into()),
            lwps: ByNumber::new(actors.lwps.len(), |index| actors.lwps[index].lwp.0.into()),
            threads: ByNumber::new(actors.threads.len(), |index| actors.threads[index].thread.0),
        }
    }

    #[inline]
    pub(super) fn cpu(&self, actors: &Actors, cpu: Cpu) -> Option<CpuId> {
        let first = self.cpus.first(cpu.0.into(), |index| actors.cpus[index].0.into())?;
        Some(CpuId(first as u32))
    }

    #[inline]
    pub(super) fn lwp(&self, actors: &Actors, lwp: Lwp, at: Ticks) -> Option<LwpId> {
        let lwps = &actors.lwps;
        let first = self.lwps.first(lwp.0.into(), |index| lwps[index].lwp.0.into())?;
        let after = |index: usize| lwps.get(index).filter(|other| other.lwp == lwp).map(|other| other.born);
        Some(LwpId(last_born(first, at, after) as u32))
    }

    #[inline]
    pub(super) fn thread(&self, actors: &Actors, thread: Thread, at: Ticks) -> Option<ThreadId> {
        let threads = &actors.threads;
        let first = self.threads.first(thread.0, |index| threads[index].thread.0)?;
        let after =
            |index: usize| threads.get(index).filter(|other| other.thread == thread).map(|other| other.born);
        Some(ThreadId(last_born(first, at, after) as u32))
    }
}

/// The last actor with the number of `first` that was born up to the instant; `first` if there is none. `born` returns
/// the birth of an actor, or `None` if the actor has another number.
fn last_born(first: usize, at: Ticks, born: impl Fn(usize) -> Option<Ticks>) -> usize {
    let has_begun = |index: usize| born(index).is_some_and(|born| born <= at);
    let mut last = first;
    // A number is reused after its actor has ended. Most numbers have one actor, and few have many.
    let mut step = 1;
    while has_begun(last + step) {
        last += step;
        step *= 2;
    }
    while step > 1 {
        step /= 2;
        if has_begun(last + step) {
            last += step;
        }
    }
    last
}

impl ByNumber {
    /// For `len` actors that are sorted by these numbers.
    fn new(len: usize, number: impl Fn(usize) -> u64) -> ByNumber {
        let first = if len == 0 { 0 } else { number(0) };
        if (0..len).all(|index| number(index).checked_sub(first) == Some(index as u64)) {
            return ByNumber::WithoutHoles { first, len };
        }
        let (mut firsts, hasher) = (HashTable::new(), RandomState::default());
        let hash_of = |index: &u32| hasher.hash_one(number(*index as usize));
        for index in (0..len).filter(|index| *index == 0 || number(index - 1) != number(*index)) {
            let index = index as u32;
            firsts.insert_unique(hash_of(&index), index, hash_of);
        }
        ByNumber::Hashed { firsts, hasher }
    }

    #[inline]
    fn first(&self, of: u64, number: impl Fn(usize) -> u64) -> Option<usize> {
        match self {
            ByNumber::WithoutHoles { first, len } => {
                usize::try_from(of.checked_sub(*first)?).ok().filter(|index| index < len)
            }
            ByNumber::Hashed { firsts, hasher } => {
                let is_first = |index: &u32| number(*index as usize) == of;
                firsts.find(hasher.hash_one(of), is_first).map(|index| *index as usize)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_actor_is_found_by_number_with_holes_and_without() {
        for numbers in [vec![], vec![7], vec![3, 4, 5, 6], vec![1, 2, 4, 5, 900], vec![0, u64::MAX]] {
            let by_number = ByNumber::new(numbers.len(), |index| numbers[index]);
            for sought in [0, 1, 2, 3, 4, 5, 6, 7, 8, 899, 900, 901, u64::MAX - 1, u64::MAX] {
                let expected = numbers.iter().position(|number| *number == sought);
                let found = by_number.first(sought, |index| numbers[index]);
                assert_eq!(found, expected, "{sought} of {numbers:?}");
            }
        }
    }

    // number  7                    8
    // born    10 20 30 40 50 60    5
    #[test]
    fn of_several_with_one_number_it_is_the_last_that_was_born() {
        let rows = [(7, 10), (7, 20), (7, 30), (7, 40), (7, 50), (7, 60), (8, 5)];
        let by_number = ByNumber::new(rows.len(), |index| rows[index].0);
        let at = |number: u64, at: u64| {
            let first = by_number.first(number, |index| rows[index].0)?;
            let born = |index: usize| rows.get(index).filter(|row| row.0 == number).map(|row| Ticks(row.1));
            Some(last_born(first, Ticks(at), born))
        };
        for (tick, expected) in
            [(0, 0), (10, 0), (19, 0), (20, 1), (35, 2), (40, 3), (59, 4), (60, 5), (99, 5)]
        {
            assert_eq!(at(7, tick), Some(expected), "at {tick}");
        }
        assert_eq!((at(8, 0), at(8, 9), at(9, 9)), (Some(6), Some(6), None));
    }
}
