//! How many different threads held a lock.

use crate::{Names, groups::Owner, map::Map};

/// The holders of a lock, each once.
#[derive(Clone, Debug, Default)]
pub(super) struct HeldBy {
    few: Map<Option<Owner>, ()>,
    /// A bit for each user thread of the trace, if many of them held the lock.
    threads: Vec<u64>,
}

/// A lock has bits for all user threads only if more than one in this many has held it. That is 8 bytes for each
/// holder.
const FEW: usize = 64;

impl HeldBy {
    pub(super) fn insert(&mut self, owner: Option<Owner>) {
        self.few.insert(owner, ());
    }

    /// Adds those of another.
    pub(super) fn merge(&mut self, other: HeldBy, names: &Names) {
        if self.few.is_empty() && self.threads.is_empty() {
            *self = other;
        } else {
            self.few.extend(other.few);
            if self.threads.is_empty() {
                self.threads = other.threads;
            } else {
                self.threads.iter_mut().zip(other.threads).for_each(|(bits, others)| *bits |= others);
            }
        }
        if self.few.len() > (names.threads.len() / FEW).max(FEW) {
            self.make_bits(names);
        }
    }

    fn make_bits(&mut self, names: &Names) {
        self.threads.resize(names.threads.len().div_ceil(64), 0);
        let bits = &mut self.threads;
        self.few.retain(|owner, ()| {
            let thread = if let Some(Owner::Thread(thread)) = owner { Some(*thread) } else { None };
            let Some(place) = thread.and_then(|thread| names.threads.place_of(thread)) else { return true };
            bits[place / 64] |= 1 << (place % 64);
            false
        });
        self.few.shrink_to_fit();
    }

    /// How many there are.
    pub(super) fn len(&self, names: &Names) -> usize {
        // Some of `few` may also have a bit.
        let mut all = self.clone();
        if !all.threads.is_empty() {
            all.make_bits(names);
        }
        all.few.len() + all.threads.iter().map(|bits| bits.count_ones() as usize).sum::<usize>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Interval, Life};

    #[test]
    fn each_holder_counts_once_whether_there_are_few_or_many() {
        let mut names = Names::default();
        let life = Life { name: None, pid: None, interval: Interval::new(0, 9), created_by: None };
        names.threads = (0..10_000).map(|thread| (3 * thread, life)).collect();
        let mut all = HeldBy::default();
        for slice in 0..50_u64 {
            let mut of_slice = HeldBy::default();
            of_slice.insert(None);
            of_slice.insert(Some(Owner::Lwp(7)));
            // Threads 0, 3, ..., each of which is in two slices; and one that is not known.
            (slice * 90..slice * 90 + 180)
                .for_each(|thread| of_slice.insert(Some(Owner::Thread(3 * thread))));
            of_slice.insert(Some(Owner::Thread(1)));
            all.merge(of_slice, &names);
            assert_eq!(all.len(&names), 3 + (slice as usize * 90 + 180), "{slice}");
        }
        assert!(!all.threads.is_empty() && all.few.len() <= 10_000 / FEW);
    }
}
