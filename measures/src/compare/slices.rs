//! A window in equal slices, and how much they differ.

use rayon::prelude::*;
use sigmund_model::Hertz;

use super::{
    figures::Figure,
    table::{Key, Table},
};
use crate::{History, Interval, Measure, Request};

/// At least so many slices.
const FEWEST: i64 = 8;
/// At most so many: some measures read the whole history for each.
const MOST: i64 = 16;

/// The answers of the odd slices (the first, the third, ...), and of the even ones.
pub(super) struct Slices {
    odd: Vec<Table>,
    even: Vec<Table>,
}

impl Slices {
    pub(super) fn new(
        measure: &Measure,
        history: &History,
        request: &Request,
        hz: Hertz,
    ) -> Result<Slices, String> {
        let windows = cut(request.extent(history), hz);
        let table = |window: &Interval| -> Result<Table, String> {
            let answer = (measure.answer)(history, &Request { window: *window, ..request.clone() })?;
            Ok(Table::new(&answer, hz, *window))
        };
        let tables: Result<Vec<Table>, String> = windows.par_iter().map(table).collect();
        let mut slices = Slices { odd: Vec::new(), even: Vec::new() };
        for (place, table) in tables?.into_iter().enumerate() {
            if place % 2 == 0 { slices.odd.push(table) } else { slices.even.push(table) }
        }
        Ok(slices)
    }
}

/// Equal slices, to the tick.
fn cut(window: Interval, hz: Hertz) -> Vec<Interval> {
    let ticks = i128::from(window.ticks());
    let seconds = (ticks as f64 / hz.per_second()) as i64;
    let count = i128::from(seconds.clamp(FEWEST, MOST)).min(ticks);
    let at = |place: i128| window.from.saturating_add((ticks * place / count.max(1)) as i64);
    (0..count).map(|place| Interval::new(at(place), at(place + 1))).collect()
}

/// The difference between the odd and the even slices; `None` if one half has no value.
pub(super) fn spread(slices: &Slices, key: &Key, figure: &Figure) -> Option<f64> {
    Some((half(&slices.odd, key, figure)? - half(&slices.even, key, figure)?).abs())
}

fn half(tables: &[Table], key: &Key, figure: &Figure) -> Option<f64> {
    let mut values: Vec<f64> = tables.iter().filter_map(|table| table.raw(key, figure)).collect();
    if values.is_empty() {
        return None;
    }
    if figure.unit.is_sum() {
        let seconds: f64 = tables.iter().map(|table| table.seconds).sum();
        return Some(values.iter().sum::<f64>() / seconds);
    }
    values.sort_by(f64::total_cmp);
    values.get((values.len() - 1) / 2).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_are_seconds_but_at_least_8_and_at_most_16() {
        let hz = Hertz::new(10.0).unwrap();
        let count = |to| cut(Interval::new(0, to), hz).len();
        assert_eq!([40, 80, 99, 120, 1000, 3, 0].map(count), [8, 8, 9, 12, 16, 3, 0]);
        let window = Interval::new(-7, 96);
        let slices = cut(window, hz);
        assert_eq!((slices[0].from, slices.last().unwrap().to), (-7, 96));
        assert!(slices.windows(2).all(|pair| pair[0].to == pair[1].from));
        assert!(slices.iter().all(|slice| (10..=11).contains(&slice.ticks())), "{slices:?}");
        let all = cut(Interval::ALL, hz);
        assert_eq!(all.len(), 16);
    }
}
