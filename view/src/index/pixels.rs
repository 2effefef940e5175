//! Rows as pixels: the exact share of each state in the time of each pixel, and the occupants.
//!
//! Pixel `i` of `n` over `[from, to)` has the ticks from `from + ⌊(to - from)·i/n⌋` to the beginning of the next pixel.

use super::{
    partition::{MOST_SUMS, Majority, NOBODY, Stay, Values},
    row::Row,
};

/// A window of time, divided into pixels.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Grid {
    pub(crate) from: i64,
    pub(crate) to: i64,
    pub(crate) pixels: u16,
}

impl Grid {
    /// The tick at which a pixel begins. For `pixel == pixels`, the end of the window.
    pub(crate) fn edge(&self, pixel: u16) -> i64 {
        let length = i128::from(self.to) - i128::from(self.from);
        let offset = length * i128::from(pixel) / i128::from(self.pixels.max(1));
        (i128::from(self.from) + offset) as i64
    }
}

/// The appearance of a row in a window.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Picture {
    /// Few intervals: all of them, except those without an occupant.
    Intervals(Vec<Stay>),
    /// Runs of equal pixels of states: first pixel, number of pixels, k, then k × (state, share of the time in
    /// 1/65535).
    States(Vec<u16>),
    /// Runs of equal pixels: first pixel, number of pixels, share of the occupied time in 1/65535, occupant.
    Identities(Vec<[u32; 4]>),
}

/// A row is sent as intervals if it has at most one interval for this number of pixels.
const FEW: usize = 2;

/// Draws a row.
pub(crate) fn picture(row: &Row<'_>, grid: Grid) -> Picture {
    let few = usize::from(grid.pixels) / FEW;
    let is_short = grid.to.saturating_sub(grid.from) <= i64::from(grid.pixels);
    if is_short || row.about(grid.from, grid.to) <= few {
        let (mut stays, _) = row.stays(grid.from, grid.to, usize::MAX);
        if row.values() == Values::Identities {
            stays.retain(|stay| stay.value != NOBODY);
        }
        return Picture::Intervals(stays);
    }
    match row.values() {
        Values::States(states) => Picture::States(states_of(row, grid, states)),
        Values::Identities => Picture::Identities(identities_of(row, grid)),
    }
}

/// The share of a time in a pixel, in 1/65535; never 0.
fn share(time: u64, pixel: u64) -> u16 {
    let share = (u128::from(time) * 65535 + u128::from(pixel) / 2) / u128::from(pixel.max(1));
    u16::try_from(share).unwrap_or(u16::MAX).max(1)
}

fn states_of(row: &Row<'_>, grid: Grid, states: usize) -> Vec<u16> {
    let mut runs: Vec<u16> = Vec::new();
    // The index at which the last run begins, and the pixel after this run.
    let (mut last, mut after) = (0, u16::MAX);
    let mut cursor = row.cursor();
    let mut edge = grid.edge(0);
    let mut before = cursor.sums_at(edge);
    let mut shares: Vec<u16> = Vec::with_capacity(2 * MOST_SUMS);
    for pixel in 0..grid.pixels {
        let next = grid.edge(pixel + 1);
        let sums = cursor.sums_at(next);
        shares.clear();
        for state in 0..states {
            let time = sums[state] - before[state];
            if time > 0 {
                shares.extend([state as u16, share(time, next.abs_diff(edge))]);
            }
        }
        (before, edge) = (sums, next);
        if shares.is_empty() {
            continue;
        }
        if after == pixel && runs[last + 3..] == shares[..] {
            runs[last + 1] += 1;
        } else {
            last = runs.len();
            runs.extend([pixel, 1, (shares.len() / 2) as u16]);
            runs.extend(&shares);
        }
        after = pixel + 1;
    }
    runs
}

fn identities_of(row: &Row<'_>, grid: Grid) -> Vec<[u32; 4]> {
    let mut runs: Vec<[u32; 4]> = Vec::new();
    let mut cursor = row.cursor();
    cursor.seek(grid.from);
    for pixel in 0..grid.pixels {
        let (from, to) = (grid.edge(pixel), grid.edge(pixel + 1));
        let (mut busy, mut majority) = (0, Majority { value: NOBODY, surplus: 0 });
        while let Some(stay) = cursor.current().filter(|stay| stay.from < to) {
            if stay.from >= from
                && let Some((time, most)) = cursor.skip_block(to)
            {
                busy += time;
                majority.add(most.value, most.surplus);
                continue;
            }
            if stay.value != NOBODY {
                let time = stay.to.min(to).saturating_sub(stay.from.max(from)).max(0) as u64;
                busy += time;
                majority.add(stay.value, time);
            }
            if stay.to > to {
                break;
            }
            cursor.step();
        }
        if busy == 0 {
            continue;
        }
        let who = if majority.surplus >= busy - majority.surplus { majority.value } else { NOBODY };
        let share = u32::from(share(busy, to.abs_diff(from)));
        match runs.last_mut() {
            Some([first, pixels, same, whom])
                if *first + *pixels == u32::from(pixel) && (*same, *whom) == (share, who) =>
            {
                *pixels += 1;
            }
            _ => runs.push([u32::from(pixel), 1, share, who]),
        }
    }
    runs
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::index::{
        gather::Owned,
        partition::TrackSet,
        run::{Interval, NONE, Run, Scratch},
    };

    /// Rows that begin at 100, in parts and runs that are cut at random. `cuts` has shares of the intervals, and
    /// whether a part ends there.
    fn parts_of(rows: &[Vec<(u64, u32)>], values: Values, cuts: &[(f64, bool)]) -> Vec<Owned> {
        let mut intervals = Vec::new();
        for (row, stays) in rows.iter().enumerate() {
            let mut at = 100;
            for (length, value) in stays {
                let to = at + *length as i64;
                // Tables have no intervals for gaps.
                if *value != NOBODY {
                    intervals.push(Interval { row: row as u32, value: *value, from: at, to });
                }
                at = to;
            }
        }
        intervals.sort_by_key(|interval| interval.to);
        let mut cuts: Vec<(usize, bool)> =
            cuts.iter().map(|(share, part)| ((intervals.len() as f64 * share) as usize, *part)).collect();
        cuts.sort_unstable();
        cuts.push((intervals.len(), true));
        let (mut ends, mut scratch) = (vec![NONE; rows.len()], Scratch::default());
        let (mut parts, mut runs, mut begin) = (Vec::new(), Vec::new(), 0);
        for (end, is_part) in cuts {
            runs.push(Run::new(&mut intervals[begin..end], &mut ends, values, &mut scratch, |_| {}));
            begin = end;
            if is_part {
                parts.push(Owned::part(&runs, rows.len(), values, 100));
                runs.clear();
            }
        }
        parts
    }

    fn row_of(parts: &[Owned], values: Values, row: usize) -> Row<'_> {
        let sets: Vec<TrackSet<'_>> = parts.iter().map(|part| part.set(values).unwrap()).collect();
        Row::new(sets.into_iter(), values, row)
    }

    fn cuts() -> impl Strategy<Value = Vec<(f64, bool)>> {
        prop::collection::vec((0.0..1.0_f64, prop::bool::ANY), 0..6)
    }

    fn slow_sums(stays: &[(u64, u32)], from: i64, to: i64, states: usize) -> Vec<u64> {
        let mut sums = vec![0; states];
        let mut at = 100_i64;
        for (length, state) in stays {
            let end = at + *length as i64;
            sums[*state as usize] += end.min(to).saturating_sub(at.max(from)).max(0) as u64;
            at = end;
        }
        sums
    }

    fn lengths() -> impl Strategy<Value = u64> {
        // Lengths: zero, short ones, around 2^32, and beyond.
        prop_oneof![8 => 0_u64..50, 2 => 50_u64..100_000, 1 => (1_u64 << 32) - 2..(1 << 32) + 2, 1 => 1_u64 << 33..1 << 40]
    }

    proptest! {
        #[test]
        fn sums_of_any_window_are_those_of_the_intervals(
            rows in prop::collection::vec(prop::collection::vec((lengths(), 0_u32..12), 0..400), 1..5),
            a in 0.0..1.2_f64, b in 0.0..1.2_f64, cuts in cuts(),
        ) {
            let parts = parts_of(&rows, Values::States(12), &cuts);
            for (row, stays) in rows.iter().enumerate() {
                let length: u64 = stays.iter().map(|(length, _)| length).sum();
                let tick = |share: f64| 90 + (length as f64 * share) as i64;
                let (from, to) = (tick(a.min(b)), tick(a.max(b)));
                let sums = row_of(&parts, Values::States(12), row).sums(from, to);
                prop_assert_eq!(&sums[..12], &slow_sums(stays, from, to, 12)[..]);
            }
        }

        #[test]
        fn intervals_of_any_window_are_those_that_were_put_in(
            stays in prop::collection::vec((lengths(), 0_u32..12), 0..400),
            a in 0.0..1.2_f64, b in 0.0..1.2_f64, cuts in cuts(),
        ) {
            let parts = parts_of(std::slice::from_ref(&stays), Values::States(12), &cuts);
            let row = row_of(&parts, Values::States(12), 0);
            let length: u64 = stays.iter().map(|(length, _)| length).sum();
            let tick = |share: f64| 90 + (length as f64 * share) as i64;
            let (from, to) = (tick(a.min(b)), tick(a.max(b)));
            let (mut at, mut expected) = (100_i64, Vec::new());
            for (length, value) in stays {
                let stay = Stay { from: at, to: at + length as i64, value };
                if length > 0 && stay.from < to && stay.to > from {
                    expected.push(stay);
                }
                at = stay.to;
            }
            prop_assert!(row.about(from, to) >= expected.len().min(128));
            prop_assert_eq!(row.stays(from, to, usize::MAX), (expected.clone(), false));
            let few = row.stays(from, to, 3);
            prop_assert_eq!(few, (expected[..expected.len().min(3)].to_vec(), expected.len() > 3));
        }

        #[test]
        fn pixels_sum_to_the_intervals_and_no_state_vanishes(
            stays in prop::collection::vec((lengths(), 0_u32..12), 0..1500),
            a in 0.0..1.2_f64, b in 0.0..1.2_f64, pixels in 1_u16..300, cuts in cuts(),
        ) {
            let parts = parts_of(std::slice::from_ref(&stays), Values::States(12), &cuts);
            let row = row_of(&parts, Values::States(12), 0);
            let length: u64 = stays.iter().map(|(length, _)| length).sum();
            let tick = |share: f64| 90 + (length as f64 * share) as i64;
            let grid = Grid { from: tick(a.min(b)), to: tick(a.max(b)) + 1, pixels };
            let runs = match picture(&row, grid) {
                Picture::States(runs) => runs,
                Picture::Intervals(found) => {
                    let mut sums = vec![0; 12];
                    for stay in found {
                        sums[stay.value as usize] += stay.to.min(grid.to).saturating_sub(stay.from.max(grid.from)).max(0) as u64;
                    }
                    prop_assert_eq!(sums, slow_sums(&stays, grid.from, grid.to, 12));
                    return Ok(());
                }
                Picture::Identities(_) => unreachable!("a set of states"),
            };
            let mut seen = vec![vec![0; 12]; usize::from(pixels)];
            let mut rest = &runs[..];
            while let [first, count, k, ..] = *rest {
                let shares = &rest[3..3 + 2 * usize::from(k)];
                for pixel in &mut seen[usize::from(first)..usize::from(first + count)] {
                    for pair in shares.chunks_exact(2) {
                        pixel[usize::from(pair[0])] = pair[1];
                    }
                }
                rest = &rest[3 + 2 * usize::from(k)..];
            }
            for (pixel, seen) in seen.iter().enumerate() {
                let (from, to) = (grid.edge(pixel as u16), grid.edge(pixel as u16 + 1));
                let times = slow_sums(&stays, from, to, 12);
                for (time, seen) in times.into_iter().zip(seen) {
                    let expected = if time == 0 { 0 } else { share(time, to.abs_diff(from)) };
                    prop_assert_eq!(*seen, expected);
                    prop_assert_eq!(time == 0, *seen == 0);
                }
            }
        }

        #[test]
        fn who_is_named_was_there_at_least_half_of_the_busy_time(
            stays in prop::collection::vec((lengths(), prop_oneof![4 => 0_u32..4, 2 => Just(NOBODY), 6 => Just(1)]), 0..1500),
            pixels in 1_u16..100, cuts in cuts(),
        ) {
            let parts = parts_of(std::slice::from_ref(&stays), Values::Identities, &cuts);
            let row = row_of(&parts, Values::Identities, 0);
            let length: u64 = stays.iter().map(|(length, _)| length).sum();
            let grid = Grid { from: 100, to: 101 + length as i64, pixels };
            let Picture::Identities(runs) = picture(&row, grid) else { return Ok(()) };
            let mut covered = vec![None; usize::from(pixels)];
            for [first, count, share, who] in runs {
                for pixel in first..first + count {
                    covered[pixel as usize] = Some((share, who));
                }
            }
            for (pixel, found) in covered.into_iter().enumerate() {
                let (from, to) = (grid.edge(pixel as u16), grid.edge(pixel as u16 + 1));
                let (mut at, mut times) = (100_i64, [0_u64; 4]);
                for (length, who) in &stays {
                    let end = at + *length as i64;
                    if *who != NOBODY {
                        times[*who as usize] += end.min(to).saturating_sub(at.max(from)).max(0) as u64;
                    }
                    at = end;
                }
                let busy: u64 = times.iter().sum();
                match found {
                    None => prop_assert_eq!(busy, 0),
                    Some((found, who)) => {
                        prop_assert_eq!(found, u32::from(share(busy, to.abs_diff(from))));
                        if who != NOBODY {
                            prop_assert!(2 * times[who as usize] >= busy);
                        }
                    }
                }
            }
        }
    }
}
