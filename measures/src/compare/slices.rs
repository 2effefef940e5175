//! Cuts a window into equal slices, and computes how much they differ.

use sigmund_model::Hertz;

use super::{
    figures::Figure,
    table::{Key, Table},
};
use crate::{Answer, Interval};

/// The fewest slices.
const FEWEST: i64 = 8;
/// The most slices. Some measures read the whole history for each.
const MOST: i64 = 16;

/// Masks that divide the slices into two halves. A slice's half is the parity of the masked bits of its place. The
/// first mask gives the odd and the even slices.
const HALVINGS: std::ops::Range<usize> = 1..8;

/// The answers for the slices, in the order of time.
pub(super) struct Slices(Vec<Table>);

impl Slices {
    pub(super) fn new(answers: &[Answer], window: Interval, hz: Hertz) -> Slices {
        let windows = slices_to_compare(window, hz);
        Slices(answers.iter().zip(windows).map(|(answer, window)| Table::new(answer, hz, window)).collect())
    }

    /// The largest difference between two halves; `None` if the odd or the even slices have no value.
    pub(super) fn spread(&self, key: &Key, figure: &Figure) -> Option<f64> {
        let values: Vec<(Option<f64>, f64)> =
            self.0.iter().map(|table| (table.raw(key, figure), table.seconds)).collect();
        let is_there = |odd| values.iter().skip(odd).step_by(2).any(|(value, _)| value.is_some());
        if !is_there(0) || !is_there(1) {
            return None;
        }
        let difference = |halving: usize| {
            let half = |is_second| {
                let is_in = |(place, _): &(usize, _)| (place & halving).count_ones() % 2 == is_second;
                half(values.iter().enumerate().filter(is_in).map(|(_, value)| *value), figure)
            };
            Some((half(0)? - half(1)?).abs())
        };
        HALVINGS.filter_map(difference).max_by(f64::total_cmp)
    }
}

/// The slices of a window that show how much a trace differs within itself. They are equal to within one tick. An empty
/// window has none.
pub fn slices_to_compare(window: Interval, hz: Hertz) -> Vec<Interval> {
    let ticks = i128::from(window.ticks());
    let seconds = (ticks as f64 / hz.per_second()) as i64;
    let count = i128::from(seconds.clamp(FEWEST, MOST)).min(ticks);
    let at = |place: i128| window.from.saturating_add((ticks * place / count.max(1)) as i64);
    (0..count).map(|place| Interval::new(at(place), at(place + 1))).collect()
}

/// For a sum: the sum per second. For another figure: the median of the known values.
fn half(values: impl Iterator<Item = (Option<f64>, f64)>, figure: &Figure) -> Option<f64> {
    if figure.unit.is_sum() {
        let add =
            |(sum, seconds), (value, of): (Option<f64>, f64)| (sum + value.unwrap_or(0.0), seconds + of);
        let (sum, seconds) = values.fold((0.0, 0.0), add);
        return (seconds > 0.0).then(|| sum / seconds);
    }
    let mut values: Vec<f64> = values.filter_map(|(value, _)| value).collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len().checked_sub(1)? / 2).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_are_seconds_but_at_least_8_and_at_most_16() {
        let hz = Hertz::new(10.0).unwrap();
        let count = |to| slices_to_compare(Interval::new(0, to), hz).len();
        assert_eq!([40, 80, 99, 120, 1000, 3, 0].map(count), [8, 8, 9, 12, 16, 3, 0]);
        let window = Interval::new(-7, 96);
        let slices = slices_to_compare(window, hz);
        assert_eq!((slices[0].from, slices.last().unwrap().to), (-7, 96));
        assert!(slices.windows(2).all(|pair| pair[0].to == pair[1].from));
        assert!(slices.iter().all(|slice| (10..=11).contains(&slice.ticks())), "{slices:?}");
        let all = slices_to_compare(Interval::ALL, hz);
        assert_eq!(all.len(), 16);
    }
}
