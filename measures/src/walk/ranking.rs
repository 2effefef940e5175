//! Finds the largest sums of many culprits, in little memory.

use std::cmp::{Ordering, Reverse};

use sigmund_model::WaitKind;

use super::{
    Actor, Blame, Sum,
    labels::{Label, Labels},
};
use crate::{History, map::Map};

/// Sums by culprit. Only the largest are kept.
///
/// Slices come latest first. A thread that began in a slice has no time in earlier slices. So its sum is final as soon
/// as that slice was added. It is kept if it is one of the largest, and otherwise added to the sum of all others.
pub(super) struct Ranking {
    /// The number of sums to keep.
    most: usize,
    /// Sums that earlier slices may increase.
    open: Map<Label, Sum>,
    /// Final sums.
    known: Vec<(Label, Sum)>,
    others: Others,
}

/// The sum of the culprits that are not among the largest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Others {
    pub(super) culprits: usize,
    pub(super) sum: Sum,
}

/// The largest sums, and the sum of the others.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Largest {
    pub(super) sums: Vec<(Label, Sum)>,
    pub(super) others: Others,
}

impl Ranking {
    pub(super) fn new(most: usize) -> Ranking {
        Ranking { most, open: Map::default(), known: Vec::new(), others: Others::default() }
    }

    pub(super) fn add(&mut self, label: Label, sum: Sum) {
        self.open.entry(label).or_default().add(sum);
    }

    /// To be called after each slice. `begin` is the beginning of the slice.
    pub(super) fn settle(&mut self, history: &History, labels: &Labels, begin: i64) {
        if self.most == usize::MAX {
            return;
        }
        let is_known = |label: &Label| {
            let begun = thread_of(*label).and_then(|thread| history.names.threads.begin(thread));
            begun.is_some_and(|begun| begun >= begin)
        };
        self.known.extend(self.open.extract_if(|label, _| is_known(label)));
        if self.known.len() > self.most.saturating_mul(4) {
            self.others.add(cut(&mut self.known, self.most, history, labels));
        }
        if self.open.capacity() > 4 * self.open.len() {
            self.open.shrink_to_fit();
        }
    }

    /// The text of the largest sum that has a text.
    pub(super) fn largest(&self, history: &History, labels: &Labels) -> Option<String> {
        let texts =
            self.open.iter().filter_map(|(label, sum)| Some((sum.ticks, labels.text(history, *label)?)));
        let largest = texts.max_by(|(a, of_a), (b, of_b)| a.cmp(b).then_with(|| of_b.cmp(of_a)));
        largest.map(|(_, text)| text)
    }

    /// The result. To be called after all slices.
    pub(super) fn finish(self, history: &History, labels: &Labels) -> Largest {
        let Ranking { most, open, known: mut sums, mut others } = self;
        sums.extend(open);
        sums.retain(|(_, sum)| sum.ticks > 0);
        others.add(cut(&mut sums, most, history, labels));
        Largest { sums, others }
    }
}

impl Largest {
    /// The ticks of all.
    pub(super) fn ticks(&self) -> i64 {
        self.sums.iter().map(|(_, sum)| sum.ticks).sum::<i64>() + self.others.sum.ticks
    }

    /// Adds another result for the same key. It may have the same culprits.
    pub(super) fn merge(&mut self, other: Largest) {
        self.sums.extend(other.sums);
        self.others.add(other.others);
    }

    /// Reduces the sums to the `most` largest, after merges.
    pub(super) fn cut(&mut self, most: usize, history: &History, labels: &Labels) {
        self.sums.sort_unstable_by_key(|(label, _)| *label);
        self.sums.dedup_by(|(label, sum), (before, into)| {
            let is_same = label == before;
            if is_same {
                into.add(*sum);
            }
            is_same
        });
        // Scaled sums may be less than a tick.
        self.sums.retain(|(_, sum)| sum.ticks > 0);
        self.others.add(cut(&mut self.sums, most, history, labels));
    }
}

impl Largest {
    /// The culprits with their ticks, the largest first. Only if no culprits are grouped.
    pub(super) fn blames(self, history: &History, labels: &Labels) -> Vec<(Blame, i64)> {
        let blame = |(label, sum): (Label, Sum)| match label {
            Label::One(blame) => Some((blame, sum.ticks)),
            Label::Group(_) => None,
        };
        self.sorted(history, labels).into_iter().filter_map(blame).collect()
    }

    /// The texts of the culprits, or of their groups, with their ticks; the largest first.
    pub(crate) fn texts(self, history: &History, labels: &Labels) -> Vec<(String, i64)> {
        let text = |(label, sum): (Label, Sum)| Some((labels.text(history, label)?, sum.ticks));
        self.sorted(history, labels).into_iter().filter_map(text).collect()
    }

    fn sorted(self, history: &History, labels: &Labels) -> Vec<(Label, Sum)> {
        let mut sums = self.sums;
        sums.retain(|(_, sum)| sum.ticks > 0);
        sums.sort_unstable_by(|(a, of_a), (b, of_b)| {
            of_b.ticks.cmp(&of_a.ticks).then_with(|| labels.order(history, *a, *b))
        });
        sums
    }

    /// Scales the ticks so that they sum to `total`. The largest remainders are rounded up; the sum of the others
    /// counts as one of the sums. If all sums are 0, everything becomes `unknown`.
    pub(super) fn scale(&mut self, total: i64, unknown: Label, history: &History, labels: &Labels) {
        let Largest { sums, others } = self;
        let all = sums.iter().map(|(_, sum)| sum).chain([&others.sum]);
        let before: i128 = all.map(|sum| i128::from(sum.ticks)).sum();
        if before == 0 {
            *sums = vec![(unknown, Sum { count: 1, ticks: total })];
            *others = Others::default();
            return;
        }
        let mut rest = total;
        let mut scale = |sum: &mut Sum| {
            let scaled = i128::from(sum.ticks) * i128::from(total);
            sum.ticks = (scaled / before) as i64;
            rest -= sum.ticks;
            scaled % before
        };
        let mut remainders: Vec<(i128, Option<usize>)> = Vec::with_capacity(sums.len() + 1);
        for (place, (_, sum)) in sums.iter_mut().enumerate() {
            remainders.push((scale(sum), Some(place)));
        }
        if others.culprits > 0 {
            remainders.push((scale(&mut others.sum), None));
        }
        remainders.sort_unstable_by(|(a, at), (b, bt)| {
            let by_label = || match (at, bt) {
                (Some(at), Some(bt)) => labels.order(history, sums[*at].0, sums[*bt].0),
                (at, bt) => at.is_none().cmp(&bt.is_none()),
            };
            b.cmp(a).then_with(by_label)
        });
        for (_, place) in remainders.into_iter().take(rest.max(0) as usize) {
            match place {
                Some(place) => sums[place].1.ticks += 1,
                None => others.sum.ticks += 1,
            }
        }
    }
}

impl Others {
    fn add(&mut self, other: Others) {
        self.culprits += other.culprits;
        self.sum.add(other.sum);
    }
}

/// The thread that a culprit is based on.
fn thread_of(label: Label) -> Option<u64> {
    match label {
        Label::One(Blame::Who(Actor::Thread(thread)))
        | Label::One(Blame::Object(_, _, Some(Actor::Thread(thread)))) => Some(thread),
        Label::One(Blame::Object(Some(WaitKind::Join), thread, None)) => u64::try_from(thread).ok(),
        _ => None,
    }
}

/// Reduces the sums to the largest ones, and returns the sum of the rest. Of equal sums, the first counts as larger.
fn cut(sums: &mut Vec<(Label, Sum)>, most: usize, history: &History, labels: &Labels) -> Others {
    let mut others = Others::default();
    if sums.len() > most {
        let order = |(a, of_a): &(Label, Sum), (b, of_b): &(Label, Sum)| -> Ordering {
            let by_ticks = Reverse(of_a.ticks).cmp(&Reverse(of_b.ticks));
            by_ticks.then_with(|| labels.order(history, *a, *b))
        };
        sums.select_nth_unstable_by(most, order);
        for (_, sum) in sums.drain(most..) {
            others.add(Others { culprits: 1, sum });
        }
    }
    others
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Interval, Life};

    fn who(thread: u64) -> Label {
        Label::One(Blame::Who(Actor::Thread(thread)))
    }

    #[test]
    fn what_is_known_early_is_what_is_known_at_the_end() {
        let mut history = History::default();
        for thread in 0..200_u64 {
            // The later their number, the later they began.
            let interval = Interval::new(thread as i64 * 10, 3_000);
            let life = Life { name: None, pid: None, interval, created_by: None };
            history.names.threads.insert(thread, life);
        }
        let labels = Labels::default();
        let (mut settling, mut whole) = (Ranking::new(5), Ranking::new(5));
        let mut all: Map<u64, i64> = Map::default();
        for begin in (0..20).rev().map(|slice| slice * 100) {
            for thread in (0..200_u64).filter(|thread| (*thread as i64) * 10 < begin + 100) {
                let sum = Sum { count: 1, ticks: (thread * thread % 97 + begin as u64 / 100) as i64 };
                settling.add(who(thread), sum);
                whole.add(who(thread), sum);
                *all.entry(thread).or_default() += sum.ticks;
            }
            settling.settle(&history, &labels, begin);
            assert!(settling.open.keys().all(|label| thread_of(*label) < Some(begin as u64 / 10)));
            assert!(settling.known.len() <= 20);
        }
        let (mut found, mut expected) = (settling.finish(&history, &labels), whole.finish(&history, &labels));
        found.sums.sort_unstable_by_key(|(label, _)| *label);
        expected.sums.sort_unstable_by_key(|(label, _)| *label);
        assert_eq!(found, expected);
        let mut all: Vec<(Reverse<i64>, u64)> = all.into_iter().map(|(a, b)| (Reverse(b), a)).collect();
        all.sort_unstable();
        let mut largest: Vec<Label> = all[..5].iter().map(|(_, thread)| who(*thread)).collect();
        largest.sort_unstable();
        assert_eq!(found.sums.iter().map(|(label, _)| *label).collect::<Vec<_>>(), largest);
        assert_eq!(found.others.culprits, all.iter().filter(|(ticks, _)| ticks.0 > 0).count() - 5);
        assert_eq!(found.others.sum.ticks, all[5..].iter().map(|(ticks, _)| ticks.0).sum::<i64>());
    }

    #[test]
    fn what_had_a_number_before_may_have_time_in_earlier_slices() {
        let mut lives = crate::LivesBuilder::default();
        for (thread, from) in [(7, 100), (8, 10), (8, 100)] {
            let interval = Interval::new(from, from + 50);
            lives.push(thread, Life { name: None, pid: None, interval, created_by: None });
        }
        let mut history = History::default();
        history.names.threads = lives.build();
        let mut ranking = Ranking::new(5);
        [7, 8].into_iter().for_each(|thread| ranking.add(who(thread), Sum { count: 1, ticks: 5 }));
        ranking.settle(&history, &Labels::default(), 90);
        assert_eq!(ranking.open.keys().collect::<Vec<_>>(), [&who(8)]);
    }

    #[test]
    fn of_equal_culprits_those_with_the_smaller_numbers_are_left() {
        let (history, labels) = (History::default(), Labels::default());
        let mut ranking = Ranking::new(3);
        for thread in [9, 7, 12, 3] {
            ranking.add(who(thread), Sum { count: 1, ticks: 5 });
        }
        ranking.add(Label::One(Blame::Idle), Sum { count: 1, ticks: 5 });
        ranking.add(Label::One(Blame::Unknown), Sum::default());
        let Largest { mut sums, others } = ranking.finish(&history, &labels);
        sums.sort_unstable_by_key(|(label, _)| *label);
        assert_eq!(sums.iter().map(|(label, _)| *label).collect::<Vec<_>>(), [3, 7, 9].map(who));
        assert_eq!(others, Others { culprits: 2, sum: Sum { count: 2, ticks: 10 } });
    }
}
