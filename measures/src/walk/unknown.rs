//! Finds the ends of the times in which the trace does not show what a user thread or LWP did. A walk back enters such
//! a time at its end.

use sigmund_model::{LwpState, ThreadState};

use crate::{Actor, History, Interval, parallel};

/// The ticks in a slice at which such a time of an actor ends, sorted. (A walk may also jump into the middle of such a
/// time.)
pub(crate) fn ends_of_unknown(history: &History, slice: Interval) -> Vec<i64> {
    let threads: Vec<_> = history.threads.iter().collect();
    let of_threads = parallel::fold(&threads, Vec::new, |ends, (thread, track)| {
        let thread = *thread;
        let created = history.names.created(Actor::Thread(thread));
        let states = track.iter().map(|(interval, stay)| {
            use ThreadState::{Exited, InKernel, Stopped, Unknown};
            let is_unknown = matches!(stay.state, Exited | Unknown)
                || (matches!(stay.state, InKernel | Stopped) && stay.lwp.is_none());
            (interval, is_unknown)
        });
        add(ends, created.map(|(tick, _)| tick), states);
    });
    let mut ends = of_threads.concat();
    for (lwp, track) in history.lwps.iter() {
        let created = history.names.created(Actor::Lwp(lwp as u32));
        let states = track.iter().map(|(interval, stay)| {
            (interval, matches!(stay.state, LwpState::OffCpu | LwpState::Exited | LwpState::Unknown))
        });
        add(&mut ends, created.map(|(tick, _)| tick), states);
    }
    ends.retain(|tick| slice.from < *tick && *tick <= slice.to);
    ends.sort_unstable();
    ends.dedup();
    ends
}

/// Adds the ends for one actor. `created` is its creation, if its creator is known. `states` are in time order, each
/// with whether it is unknown.
fn add(ends: &mut Vec<i64>, created: Option<i64>, states: impl Iterator<Item = (Interval, bool)>) {
    let mut known_to = created;
    for (interval, is_unknown) in states {
        if known_to.is_none_or(|known_to| known_to < interval.from) {
            ends.push(interval.from);
        }
        if is_unknown {
            ends.push(interval.to);
        }
        known_to = Some(interval.to);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_ends_where_a_hole_or_an_unknown_state_does() {
        let states = [(10, 20, false), (20, 25, true), (25, 30, false), (40, 50, false)];
        let ends = |created| {
            let mut ends = Vec::new();
            let states = states.iter().map(|(from, to, is_unknown)| (Interval::new(*from, *to), *is_unknown));
            add(&mut ends, created, states);
            ends
        };
        assert_eq!(ends(None), [10, 25, 40]);
        assert_eq!(ends(Some(10)), [25, 40]);
        assert_eq!(ends(Some(8)), [10, 25, 40]);
    }
}
