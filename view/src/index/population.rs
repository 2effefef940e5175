//! The number of rows in each state over time: integrals over equal buckets of the trace, exact at the edges of
//! buckets.

/// The number of buckets of a trace.
pub(crate) const BUCKETS: usize = 1 << 14;

/// The integrals while intervals are added, in any order.
pub(crate) struct Counting {
    from: i64,
    width: u64,
    states: usize,
    /// Ticks in the first and last buckets of intervals, by bucket and state.
    partial: Vec<i128>,
    /// Changes of the number of intervals that cover whole buckets, by the bucket at whose beginning they occur.
    changes: Vec<i128>,
}

impl Counting {
    /// Integrals over the trace `[from, to]`.
    pub(crate) fn new(from: i64, to: i64, states: usize) -> Counting {
        let width = (to.abs_diff(from) / BUCKETS as u64 + 1).max(1);
        let cells = (BUCKETS + 1) * states;
        Counting { from, width, states, partial: vec![0; cells], changes: vec![0; cells] }
    }

    /// The number of states that it counts.
    pub(crate) fn states(&self) -> usize {
        self.states
    }

    fn bucket(&self, tick: i64) -> (usize, u64) {
        let offset = tick.saturating_sub(self.from).max(0) as u64;
        ((offset / self.width).min(BUCKETS as u64) as usize, offset % self.width)
    }

    /// Adds an interval in a state.
    pub(crate) fn add(&mut self, from: i64, to: i64, state: usize) {
        let ((first, begin), (last, end)) = (self.bucket(from), self.bucket(to));
        let at = |bucket: usize| bucket * self.states + state;
        // The ticks from `from` to the end of its bucket are added, then whole buckets; the ticks after `to` are
        // subtracted.
        self.partial[at(first)] += i128::from(self.width - begin);
        self.partial[at(last)] -= i128::from(self.width - end);
        if first < BUCKETS {
            self.changes[at(first + 1)] += 1;
        }
        if last < BUCKETS {
            self.changes[at(last + 1)] -= 1;
        }
    }

    /// Adds the intervals that another one has counted in the same trace.
    pub(crate) fn add_all(&mut self, other: &Counting) {
        let add = |(sum, more): (&mut i128, &i128)| *sum += more;
        self.partial.iter_mut().zip(&other.partial).for_each(add);
        self.changes.iter_mut().zip(&other.changes).for_each(add);
    }

    /// The integrals: ticks in each state, by bucket.
    pub(crate) fn finish(self) -> Population {
        let mut ticks = vec![0; BUCKETS * self.states];
        let mut covering = vec![0_i128; self.states];
        for bucket in 0..BUCKETS {
            for (state, covering) in covering.iter_mut().enumerate() {
                let place = bucket * self.states + state;
                *covering += self.changes[place];
                let whole = *covering * i128::from(self.width);
                // In a damaged trace, ticks can have any value.
                ticks[place] = u64::try_from((self.partial[place] + whole).max(0)).unwrap_or(u64::MAX);
            }
        }
        Population { from: self.from, width: self.width, states: self.states, ticks }
    }
}

/// Ticks of each state in each bucket.
#[derive(Clone, Debug)]
pub(crate) struct Population {
    pub(crate) from: i64,
    pub(crate) width: u64,
    pub(crate) states: usize,
    pub(crate) ticks: Vec<u64>,
}

impl Population {
    /// The mean number of rows in each state in `[from, to)`. Within a bucket, it is assumed to be constant.
    pub(crate) fn mean(&self, from: i64, to: i64) -> Vec<f32> {
        let offset = |tick: i64| {
            (tick.saturating_sub(self.from).max(0) as f64 / self.width as f64).min(BUCKETS as f64)
        };
        let (from, to) = (offset(from), offset(to));
        let mut sums = vec![0.0_f64; self.states];
        let mut at = from;
        while at < to {
            let bucket = at as usize;
            let end = ((bucket + 1) as f64).min(to);
            let part = end - at;
            let row = self.ticks.iter().skip(bucket * self.states).take(self.states);
            sums.iter_mut().zip(row).for_each(|(sum, ticks)| *sum += *ticks as f64 * part);
            at = end;
        }
        let length = (to - from) * self.width as f64;
        sums.into_iter().map(|sum| if length > 0.0 { (sum / length) as f32 } else { 0.0 }).collect()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn buckets_sum_to_the_intervals(
            intervals in prop::collection::vec((0_i64..5_000_000, 0_i64..3_000_000, 0_usize..3), 0..60),
        ) {
            let (from, to) = (1000, 5_000_000);
            let mut halves = [Counting::new(from, to, 3), Counting::new(from, to, 3)];
            let end = |start: i64, length: i64| (start + length).min(to);
            for (place, (start, length, state)) in intervals.iter().enumerate() {
                let start = from.max(*start);
                halves[place % 2].add(start, end(start, *length), *state);
            }
            let [mut counting, half] = halves;
            counting.add_all(&half);
            let population = counting.finish();
            for bucket in (0..BUCKETS).step_by(911) {
                let width = population.width as i64;
                let (a, b) = (from + bucket as i64 * width, from + (bucket as i64 + 1) * width);
                let mut expected = [0_i64; 3];
                for (start, length, state) in &intervals {
                    let start = from.max(*start);
                    expected[*state] += (end(start, *length).min(b) - start.max(a)).max(0);
                }
                let found = &population.ticks[3 * bucket..3 * bucket + 3];
                let expected: Vec<u64> = expected.iter().map(|ticks| *ticks as u64).collect();
                prop_assert_eq!(found, &expected[..]);
            }
        }
    }
}
