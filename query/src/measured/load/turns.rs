//! The events at which a CPU goes from one LWP to another, or an LWP from one user thread to another: most are at neither.

use std::collections::HashMap;

use foldhash::fast::RandomState;
use sigmund_measures::EventAt;

/// Of each CPU or LWP: the row of its last event, and who was on it.
type Last = HashMap<u32, (usize, Option<u64>), RandomState>;

/// The rows, in order, of the first and the last event of each LWP in a row on a CPU, and of each user thread in a row on an
/// LWP. What was before the events and after them is not known: the first and the last of each CPU and LWP are among these.
pub(super) fn turns(events: &[EventAt]) -> Vec<usize> {
    let mut is_turn = vec![false; events.len()];
    let (mut of_cpus, mut of_lwps) = (Last::default(), Last::default());
    let mut comes = |last: &mut Last, place: Option<u32>, row: usize, who: Option<u64>| {
        let Some(place) = place else { return };
        match last.insert(place, (row, who)) {
            Some((_, before)) if before == who => {}
            Some((before, _)) => {
                is_turn[before] = true;
                is_turn[row] = true;
            }
            None => is_turn[row] = true,
        }
    };
    for (row, event) in events.iter().enumerate() {
        comes(&mut of_cpus, event.cpu(), row, event.lwp().map(u64::from));
        // An event in an interrupt is of no user thread, and ends nobody's turn.
        if let Some(thread) = event.thread() {
            comes(&mut of_lwps, event.lwp(), row, Some(thread));
        }
    }
    for (row, _) in of_cpus.into_values().chain(of_lwps.into_values()) {
        is_turn[row] = true;
    }
    (0..events.len()).filter(|row| is_turn[*row]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each pair of events that follow each other on a CPU, or an LWP, and are of different ones.
    fn pairs(events: &[EventAt]) -> Vec<[EventAt; 2]> {
        let mut pairs = Vec::new();
        for (row, event) in events.iter().enumerate() {
            let before =
                |is_same: &dyn Fn(&&EventAt) -> bool| events[..row].iter().rev().find(is_same).copied();
            let on_cpu = before(&|other| other.cpu() == event.cpu() && event.cpu().is_some());
            pairs.extend(on_cpu.filter(|other| other.lwp() != event.lwp()).map(|other| [other, *event]));
            let is_same = |other: &&EventAt| {
                other.lwp() == event.lwp() && event.lwp().is_some() && other.thread().is_some()
            };
            let on_lwp = before(&is_same).filter(|_| event.thread().is_some());
            pairs
                .extend(on_lwp.filter(|other| other.thread() != event.thread()).map(|other| [other, *event]));
        }
        pairs
    }

    #[test]
    fn all_pairs_of_different_ones_are_left_wherever_rows_are_divided() {
        let mut seed = 7_u32;
        let mut draw = |most: u32| {
            seed = seed.wrapping_mul(1_103_515_245).wrapping_add(12_345);
            (seed >> 16) % (most + 1)
        };
        for _ in 0..300 {
            let event = |tick: i64, draw: &mut dyn FnMut(u32) -> u32| {
                let [lwp, cpu, thread] = [3, 2, 4].map(|most| Some(draw(most)).filter(|number| *number > 0));
                EventAt::new(tick, lwp, cpu, thread.map(u64::from))
            };
            let mut events: Vec<EventAt> = Vec::new();
            while events.len() < 40 {
                let next = event(events.len() as i64, &mut draw);
                // Most are of whoever was there.
                let of = events.last().copied().filter(|_| draw(3) > 0).unwrap_or(next);
                events.push(EventAt::new(next.tick(), of.lwp(), of.cpu(), of.thread()));
            }
            let parts = events.split_at(draw(40) as usize);
            let left: Vec<EventAt> = [parts.0, parts.1]
                .into_iter()
                .flat_map(|part| turns(part).into_iter().map(|row| part[row]).collect::<Vec<_>>())
                .collect();
            assert_eq!(pairs(&events), pairs(&left), "{events:?}");
        }
        let same: Vec<EventAt> = (0..9).map(|tick| EventAt::new(tick, Some(7), Some(0), Some(1))).collect();
        assert_eq!(turns(&same), [0, 8]);
    }
}
