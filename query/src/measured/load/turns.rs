//! Finds the events at which a CPU changes from one LWP to another, or an LWP from one user thread to another. Most
//! events are neither.

use std::collections::HashMap;

use foldhash::fast::RandomState;
use sigmund_measures::EventAt;

/// The last event of an LWP that belongs to a user thread: its row, and the user thread.
#[derive(Clone, Copy, Default)]
struct OnLwp(Option<(usize, u64)>);

/// The last event on a CPU.
struct OnCpu {
    row: usize,
    lwp: Option<u32>,
    /// The place of the LWP in `Turns::on_lwps`.
    place: usize,
}

/// Which LWP was on each CPU, and which user thread on each LWP, so far.
#[derive(Default)]
struct Turns {
    is_turn: Vec<bool>,
    on_cpus: HashMap<u32, OnCpu, RandomState>,
    on_lwps: Vec<OnLwp>,
    places: HashMap<u32, usize, RandomState>,
}

/// The rows of the turns, sorted. On each CPU, the events of one LWP form runs; on each LWP, those of one user thread.
/// The first and the last event of each run are turns. So the first and the last event of each CPU and LWP are always
/// included, because nothing is known of the time before and after.
pub(super) fn turns(events: &[EventAt]) -> Vec<usize> {
    let mut turns = Turns { is_turn: vec![false; events.len()], ..Turns::default() };
    for (row, event) in events.iter().enumerate() {
        let place = turns.on_cpu(row, event);
        // An event in an interrupt belongs to no user thread, and ends no run.
        if let (Some(place), Some(thread)) = (place, event.thread()) {
            turns.on_lwp(row, place, thread);
        }
    }
    let Turns { mut is_turn, on_cpus, on_lwps, .. } = turns;
    let of_lwps = on_lwps.iter().filter_map(|on| on.0.map(|(row, _)| row));
    on_cpus.values().map(|on| on.row).chain(of_lwps).for_each(|row| is_turn[row] = true);
    (0..events.len()).filter(|row| is_turn[*row]).collect()
}

impl Turns {
    /// Handles the next event of a CPU. Returns the place of its LWP.
    fn on_cpu(&mut self, row: usize, event: &EventAt) -> Option<usize> {
        let lwp = event.lwp();
        let Some(cpu) = event.cpu() else { return lwp.map(|lwp| self.place(lwp)) };
        // Most events are of the LWP that was last seen on the CPU. Then its place need not be looked up.
        if let Some(on) = self.on_cpus.get_mut(&cpu).filter(|on| on.lwp == lwp) {
            on.row = row;
            return lwp.map(|_| on.place);
        }
        let place = lwp.map(|lwp| self.place(lwp));
        let now = OnCpu { row, lwp, place: place.unwrap_or_default() };
        self.is_turn[row] = true;
        if let Some(before) = self.on_cpus.insert(cpu, now) {
            self.is_turn[before.row] = true;
        }
        place
    }

    /// Handles the next event of a user thread on an LWP.
    fn on_lwp(&mut self, row: usize, place: usize, thread: u64) {
        match self.on_lwps[place].0.replace((row, thread)) {
            Some((_, before)) if before == thread => {}
            before => {
                self.is_turn[row] = true;
                before.into_iter().for_each(|(before, _)| self.is_turn[before] = true);
            }
        }
    }

    fn place(&mut self, lwp: u32) -> usize {
        *self.places.entry(lwp).or_insert_with(|| {
            self.on_lwps.push(OnLwp::default());
            self.on_lwps.len() - 1
        })
    }
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
