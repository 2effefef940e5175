//! Histograms of distributions: how many lengths are from 1 to 2 ns, from 2 to 5, from 5 to 10, and so on.

use sigmund_model::Hertz;

use crate::{
    Answer, Column, Distribution, Interval, Value, percent,
    scale::{Unit, round_lengths},
};

/// The lengths of a distribution, counted in buckets.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Histogram {
    /// The buckets, without holes, from the first that contains a length to the last.
    buckets: Vec<Bucket>,
    unit: Unit,
}

/// A bucket and how many lengths are in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Bucket {
    /// Lengths in ticks: from `from` on and less than `to`.
    ticks: Interval,
    /// The same in the unit in which lengths are shown.
    shown: Interval,
    count: usize,
}

impl Histogram {
    /// Buckets in steps of 1, 2 and 5 times powers of ten: 0 to 1, 1 to 2, 2 to 5, 5 to 10, 10 to 20 ... The last one
    /// ends at `i64::MAX` and contains it. The bounds are in nanoseconds if the rate of ticks is known, else in ticks.
    /// No bucket is shorter than a tick, so with a clock slower than 1 GHz the first buckets are wider.
    ///
    /// Beyond 10^7 lengths, a length within 0.4 % of a bound may be counted on the wrong side of it.
    pub fn new(distribution: &Distribution, tick_rate: Option<Hertz>) -> Histogram {
        let unit = Unit::new(tick_rate);
        let mut rest = distribution.iter().peekable();
        let mut buckets = Vec::new();
        for (ticks, shown) in steps(unit) {
            if rest.peek().is_none() {
                break;
            }
            let is_in = |(length, _): &(i64, usize)| *length < ticks.to || ticks.to == i64::MAX;
            let mut count = 0;
            while let Some((_, more)) = rest.next_if(is_in) {
                count += more;
            }
            if count > 0 || !buckets.is_empty() {
                buckets.push(Bucket { ticks, shown, count });
            }
        }
        Histogram { buckets, unit }
    }

    /// The number of lengths.
    pub fn count(&self) -> usize {
        self.buckets.iter().map(|bucket| bucket.count).sum()
    }

    /// Each bucket with the number of lengths in it and in those before it.
    fn cumulative(&self) -> impl Iterator<Item = (&Bucket, usize)> {
        let mut sum = 0;
        self.buckets.iter().map(move |bucket| {
            sum += bucket.count;
            (bucket, sum)
        })
    }

    /// The histogram as a table, with a row for each bucket.
    pub fn answer(&self) -> Answer {
        let mut answer = Answer::new(vec![
            Column::length("from_tick", "The shortest length that is in this bucket."),
            Column::length("to_tick", "The shortest length that is in the next bucket."),
            Column::count("count", "The number of lengths in this bucket."),
            Column::percent("percent", "count as a percentage of all lengths."),
            Column::percent("cumulative_percent", "The same for this bucket and all buckets before it."),
        ]);
        let all = self.count() as i64;
        for (bucket, sum) in self.cumulative() {
            answer.push(vec![
                bucket.ticks.from.into(),
                bucket.ticks.to.into(),
                bucket.count.into(),
                Value::Fraction(percent(bucket.count as i64, all)),
                Value::Fraction(percent(sum as i64, all)),
            ]);
        }
        answer
    }

    /// The histogram as text. Each bucket has a line with its bounds, its count, the cumulative per cent, and a bar.
    /// The longest bar has `width` characters; each bucket that contains a length has at least one.
    ///
    /// `label` writes a bound. It gets the bound as a number, and how many of its unit are a second: `None` for ticks
    /// without a known rate. The upper bound of the last bucket is `i64::MAX`.
    pub fn text(&self, width: usize, label: &dyn Fn(i64, Option<Hertz>) -> String) -> String {
        let label = |length| label(length, self.unit.per_second());
        let most = self.buckets.iter().map(|bucket| bucket.count).max().unwrap_or(0);
        let all = self.count();
        let lines: Vec<[String; 4]> = self
            .cumulative()
            .map(|(Bucket { shown, count, .. }, sum)| {
                let length = if *count == 0 { 0 } else { bar(*count, most, width) };
                let percent = format!("{:.1}%", percent(sum as i64, all as i64));
                [
                    format!("{}..{}", label(shown.from), label(shown.to)),
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

/// The length of the bar for `count`, when `most` has `width` characters: rounded, and at least 1.
fn bar(count: usize, most: usize, width: usize) -> usize {
    let length = (count as u128 * width as u128 + most as u128 / 2) / most.max(1) as u128;
    (length as usize).clamp(1, width.max(1))
}

/// All buckets in order, in ticks and in the displayed unit. A bucket shorter than a tick becomes part of the previous
/// one.
fn steps(unit: Unit) -> impl Iterator<Item = (Interval, Interval)> {
    let bounds = round_lengths().map(move |bound| (unit.first_tick(bound), bound));
    let mut bounds = bounds.take_while(|(tick, _)| *tick < i64::MAX).chain([(i64::MAX, i64::MAX)]).peekable();
    let mut from = (0, 0);
    std::iter::from_fn(move || {
        let mut to = bounds.next()?;
        while let Some(same) = bounds.next_if(|(tick, _)| *tick == to.0) {
            to = same;
        }
        let bucket = (Interval { from: from.0, to: to.0 }, Interval { from: from.1, to: to.1 });
        from = to;
        Some(bucket)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn() -> Histogram {
        Histogram::new(&[1, 1, 1, 3, 4, 2, 40, 49, 50, 10].into_iter().collect(), None)
    }

    fn bounds(bucket: &Bucket) -> (i64, i64, usize) {
        (bucket.ticks.from, bucket.ticks.to, bucket.count)
    }

    /// The lines of a histogram of lengths in ticks of a clock, without bars.
    fn lines(lengths: &[i64], hz: f64) -> Vec<String> {
        let label = |length: i64, rate: Option<Hertz>| {
            assert_eq!(rate, Hertz::new(1e9));
            if length == i64::MAX { "...".to_string() } else { format!("{length} ns") }
        };
        let histogram = Histogram::new(&lengths.iter().copied().collect(), Hertz::new(hz));
        let lines = histogram.text(1, &label);
        lines.lines().map(|line| line.split_whitespace().take(5).collect::<Vec<_>>().join(" ")).collect()
    }

    // At 2.594 GHz 1 us is 2594 ticks, 2 us are 5188 and 5 us are 12970.
    #[test]
    fn buckets_are_round_in_the_unit_that_is_shown() {
        let lengths = [2593, 2594, 5187, 5188, 12_969, 12_970];
        assert_eq!(
            lines(&lengths, 2.594e9),
            [
                "500 ns..1000 ns 1 16.7%",
                "1000 ns..2000 ns 2 50.0%",
                "2000 ns..5000 ns 2 83.3%",
                "5000 ns..10000 ns 1 100.0%"
            ]
        );
        // A tick of 41.67 ns is more than 20 ns and less than 50; four are more than 100 ns, and five more than 200.
        assert_eq!(
            lines(&[0, 1, 2, 4, 5], 24e6),
            [
                "0 ns..20 ns 1 20.0%",
                "20 ns..50 ns 1 40.0%",
                "50 ns..100 ns 1 60.0%",
                "100 ns..200 ns 1 80.0%",
                "200 ns..500 ns 1 100.0%"
            ]
        );
        let answer = Histogram::new(&lengths.into_iter().collect(), Hertz::new(2.594e9)).answer();
        assert_eq!(answer.rows.to_vec()[1][..3], [2594_i64.into(), 5188_i64.into(), 2_i64.into()]);
    }

    #[test]
    fn buckets_are_in_steps_of_1_2_and_5_without_holes() {
        let buckets: Vec<_> = drawn().buckets.iter().map(bounds).collect();
        assert_eq!(buckets, [(1, 2, 3), (2, 5, 3), (5, 10, 0), (10, 20, 1), (20, 50, 2), (50, 100, 1)]);
        let answer = drawn().answer();
        let rows = answer.rows.to_vec();
        let row = [20_i64.into(), 50_i64.into(), 2_i64.into(), Value::Fraction(20.0), Value::Fraction(90.0)];
        assert_eq!(rows[4], row);
    }

    #[test]
    fn every_length_is_in_one_bucket() {
        let lengths = [i64::MIN, -1, 0, 1, 999, 1000, 5_000_000_000_000_000_000, i64::MAX - 1, i64::MAX];
        for hz in [None, Some(1.0), Some(24e6), Some(1e9), Some(2.594e9), Some(1e300)] {
            let all = Histogram::new(&lengths.into_iter().collect(), hz.and_then(Hertz::new));
            assert_eq!(all.count(), lengths.len());
            for buckets in all.buckets.windows(2) {
                assert_eq!(buckets[0].ticks.to, buckets[1].ticks.from);
                assert_eq!(buckets[0].shown.to, buckets[1].shown.from);
            }
        }
        let all = Histogram::new(&lengths.into_iter().collect(), None);
        // A negative length counts as 0.
        assert_eq!(all.buckets.first().map(bounds), Some((0, 1, 3)));
        assert_eq!(all.buckets.last().map(bounds), Some((5_000_000_000_000_000_000, i64::MAX, 3)));
        assert_eq!(Histogram::new(&Distribution::default(), None), Histogram::default());
    }

    #[test]
    fn bars_are_as_long_as_their_counts() {
        let text = drawn().text(6, &|length, _| length.to_string());
        let lines = [
            "   1..2  3   30.0%  ######",
            "   2..5  3   60.0%  ######",
            "  5..10  0   60.0%",
            " 10..20  1   70.0%  ##",
            " 20..50  2   90.0%  ####",
            "50..100  1  100.0%  ##",
        ];
        assert_eq!(text.lines().collect::<Vec<_>>(), lines);
        assert_eq!(Histogram::default().text(6, &|length, _| length.to_string()), "");
        let rare = Histogram::new(&std::iter::repeat_n(1, 1000).chain([7]).collect(), None);
        assert!(
            rare.text(10, &|length, _| format!("{length} ns")).ends_with("5 ns..10 ns     1  100.0%  #\n")
        );
    }
}
