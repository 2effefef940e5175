//! Histograms of distributions: how many lengths are from 1 to 2 ticks, from 2 to 5, from 5 to 10, and so on.

use crate::{Answer, Column, Distribution, Interval, Value, percent};

/// The lengths of a distribution, counted in buckets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Histogram {
    /// The buckets from the first that has any to the last, without holes: lengths from `from` on and less than `to`.
    pub buckets: Vec<(Interval, usize)>,
}

impl Histogram {
    /// Buckets in steps of 1, 2 and 5 times powers of ten: 0 to 1 tick, 1 to 2, 2 to 5, 5 to 10, 10 to 20 ... The last
    /// ends at `i64::MAX` and contains it. Of more than 10^7 lengths those that are within 0.4 % of a bound may be counted
    /// on its other side.
    pub fn new(distribution: &Distribution) -> Histogram {
        let mut rest = distribution.iter().peekable();
        let mut buckets = Vec::new();
        for bucket in steps() {
            if rest.peek().is_none() {
                break;
            }
            let is_in = |(length, _): &(i64, usize)| *length < bucket.to || bucket.to == i64::MAX;
            let mut count = 0;
            while let Some((_, more)) = rest.next_if(is_in) {
                count += more;
            }
            if count > 0 || !buckets.is_empty() {
                buckets.push((bucket, count));
            }
        }
        Histogram { buckets }
    }

    /// How many lengths there are.
    pub fn count(&self) -> usize {
        self.buckets.iter().map(|(_, count)| count).sum()
    }

    /// Each bucket with the number of lengths in it and in those before it.
    fn cumulative(&self) -> impl Iterator<Item = (Interval, usize, usize)> {
        let mut sum = 0;
        self.buckets.iter().map(move |(bucket, count)| {
            sum += count;
            (*bucket, *count, sum)
        })
    }

    /// As a table, a row for each bucket.
    pub fn answer(&self) -> Answer {
        let mut answer = Answer::new(vec![
            Column::length("from_tick", "The shortest length that is in this bucket."),
            Column::length("to_tick", "The shortest length that is in the next one."),
            Column::count("count", "How many lengths are in it."),
            Column::percent("percent", "That, of all."),
            Column::percent("cumulative_percent", "Those in it and in the buckets before it, of all."),
        ]);
        let all = self.count() as i64;
        for (bucket, count, sum) in self.cumulative() {
            answer.push(vec![
                bucket.from.into(),
                bucket.to.into(),
                count.into(),
                Value::Fraction(percent(count as i64, all)),
                Value::Fraction(percent(sum as i64, all)),
            ]);
        }
        answer
    }

    /// As text: a line for each bucket with its bounds as `label` writes a length, its count, the cumulative per cent, and
    /// a bar of at most `width` characters. The longest bar has `width`; a bucket that has any has at least one.
    pub fn text(&self, width: usize, label: &dyn Fn(i64) -> String) -> String {
        let most = self.buckets.iter().map(|(_, count)| *count).max().unwrap_or(0);
        let all = self.count();
        let lines: Vec<[String; 4]> = self
            .cumulative()
            .map(|(bucket, count, sum)| {
                let length = if count == 0 { 0 } else { bar(count, most, width) };
                let percent = format!("{:.1}%", percent(sum as i64, all as i64));
                [
                    format!("{}..{}", label(bucket.from), label(bucket.to)),
                    count.to_string(),
                    percent,
                    "#".repeat(length),
                ]
            })
            .collect();
        let widest = |column: usize| lines.iter().map(|line| line[column].chars().count()).max().unwrap_or(0);
        let (bounds, counts, percents) = (widest(0), widest(1), widest(2));
        lines
            .iter()
            .map(|[bound, count, percent, bar]| {
                let line = format!("{bound:>bounds$}  {count:>counts$}  {percent:>percents$}  {bar}");
                line.trim_end().to_string() + "\n"
            })
            .collect()
    }
}

/// `count` of `most` as a bar: rounded, and at least 1.
fn bar(count: usize, most: usize, width: usize) -> usize {
    let length = (count as u128 * width as u128 + most as u128 / 2) / most.max(1) as u128;
    (length as usize).clamp(1, width.max(1))
}

/// All buckets, in order.
fn steps() -> impl Iterator<Item = Interval> {
    let powers = (0..19).map(|power| 10_i64.pow(power));
    let bounds = powers.flat_map(|power| [1, 2, 5].map(|step| power.checked_mul(step)));
    let mut from = 0;
    bounds.flatten().chain([i64::MAX]).map(move |to| {
        let bucket = Interval { from, to };
        from = to;
        bucket
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn() -> Histogram {
        Histogram::new(&[1, 1, 1, 3, 4, 2, 40, 49, 50, 10].into_iter().collect())
    }

    #[test]
    fn buckets_are_in_steps_of_1_2_and_5_without_holes() {
        let buckets: Vec<_> = drawn().buckets.iter().map(|(at, count)| (at.from, at.to, *count)).collect();
        assert_eq!(buckets, [(1, 2, 3), (2, 5, 3), (5, 10, 0), (10, 20, 1), (20, 50, 2), (50, 100, 1)]);
        let rows = drawn().answer().rows.to_vec();
        let row = [20_i64.into(), 50_i64.into(), 2_i64.into(), Value::Fraction(20.0), Value::Fraction(90.0)];
        assert_eq!(rows[4], row);
    }

    #[test]
    fn every_length_is_in_one_bucket() {
        let lengths = [i64::MIN, -1, 0, 1, 999, 1000, 5_000_000_000_000_000_000, i64::MAX - 1, i64::MAX];
        let all = Histogram::new(&lengths.into_iter().collect());
        assert_eq!(all.count(), lengths.len());
        // A negative length counts as 0.
        assert_eq!(all.buckets.first().map(|(at, count)| (at.from, at.to, *count)), Some((0, 1, 3)));
        assert_eq!(
            all.buckets.last().map(|(at, count)| (at.from, at.to, *count)),
            Some((5_000_000_000_000_000_000, i64::MAX, 3))
        );
        for bounds in all.buckets.windows(2) {
            assert_eq!(bounds[0].0.to, bounds[1].0.from);
        }
        assert_eq!(Histogram::new(&Distribution::default()), Histogram::default());
    }

    #[test]
    fn bars_are_as_long_as_their_counts() {
        let text = drawn().text(6, &|length| length.to_string());
        let lines = [
            "   1..2  3   30.0%  ######",
            "   2..5  3   60.0%  ######",
            "  5..10  0   60.0%",
            " 10..20  1   70.0%  ##",
            " 20..50  2   90.0%  ####",
            "50..100  1  100.0%  ##",
        ];
        assert_eq!(text.lines().collect::<Vec<_>>(), lines);
        assert_eq!(Histogram::default().text(6, &|length| length.to_string()), "");
        let rare = Histogram::new(&std::iter::repeat_n(1, 1000).chain([7]).collect());
        assert!(rare.text(10, &|length| format!("{length} ns")).ends_with("5 ns..10 ns     1  100.0%  #\n"));
    }
}
