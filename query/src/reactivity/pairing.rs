//! Pairs events with their answers in one pass over both, in the order of time.
//!
//! ```text
//! from   1     2        3        4
//! to              A  B       C          1-A, 2-A, 3-C; 4 is unanswered
//! ```

use std::collections::VecDeque;

use sigmund_model::{Cpu, Lwp, Thread, Ticks};

/// The tick and the place of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment {
    /// Its tick.
    pub tick: Ticks,
    /// The CPU it was on.
    pub cpu: Option<Cpu>,
    /// The LWP it was on.
    pub lwp: Option<Lwp>,
    /// The user thread that was executing.
    pub thread: Option<Thread>,
}

/// An event and its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pair {
    /// The event.
    pub from: Moment,
    /// Its answer.
    pub to: Moment,
}

impl Pair {
    /// The ticks from the event to its answer.
    pub fn ticks(&self) -> Ticks {
        Ticks(self.to.tick.0 - self.from.tick.0)
    }
}

/// The pairs of a trace, and the number of events without an answer.
#[derive(Clone, Debug, Default)]
pub struct Reactivity {
    /// Every event that has an answer, in the order of time.
    pub pairs: Vec<Pair>,
    /// The number of events without an answer.
    pub unanswered: u64,
    /// The lengths, shortest first.
    sorted: Vec<Ticks>,
}

impl Reactivity {
    /// The number of pairs.
    pub fn count(&self) -> usize {
        self.pairs.len()
    }

    /// The shortest.
    pub fn min(&self) -> Option<Ticks> {
        self.sorted.first().copied()
    }

    /// The 50th percentile.
    pub fn median(&self) -> Option<Ticks> {
        self.percentile(50.0)
    }

    /// The 99th percentile.
    pub fn p99(&self) -> Option<Ticks> {
        self.percentile(99.0)
    }

    /// The longest.
    pub fn max(&self) -> Option<Ticks> {
        self.sorted.last().copied()
    }

    /// The percentile by nearest rank: the smallest length that at least `percent` % of the pairs do not exceed. It is
    /// always a length that occurred. `None` without pairs.
    pub fn percentile(&self, percent: f64) -> Option<Ticks> {
        let rank = (percent / 100.0 * self.sorted.len() as f64).ceil() as usize;
        self.sorted.get(rank.max(1).min(self.sorted.len()).checked_sub(1)?).copied()
    }
}

/// The state of the pass, which takes events in time order.
#[derive(Debug, Default)]
pub(crate) struct Pairing {
    /// Events that wait for an answer, in the order of time.
    waiting: VecDeque<Moment>,
    pairs: Vec<Pair>,
}

impl Pairing {
    /// Takes the next event, which FROM, TO or both select. An event is never its own answer.
    pub(crate) fn event(&mut self, moment: Moment, is_from: bool, is_to: bool) {
        if is_to {
            while self.waiting.front().is_some_and(|from| from.tick < moment.tick) {
                let from = self.waiting.pop_front();
                self.pairs.extend(from.map(|from| Pair { from, to: moment }));
            }
        }
        if is_from {
            self.waiting.push_back(moment);
        }
    }

    pub(crate) fn finish(self) -> Reactivity {
        let mut sorted: Vec<Ticks> = self.pairs.iter().map(Pair::ticks).collect();
        sorted.sort_unstable();
        Reactivity { pairs: self.pairs, unanswered: self.waiting.len() as u64, sorted }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `f` selects an event as from, `t` as to, `b` as both; the tick is the place in the text.
    fn pair(line: &str) -> Reactivity {
        let mut pairing = Pairing::default();
        for (tick, what) in line.chars().enumerate().filter(|(_, c)| *c != ' ') {
            let moment = Moment { tick: Ticks(tick as u64), cpu: None, lwp: None, thread: None };
            pairing.event(moment, matches!(what, 'f' | 'b'), matches!(what, 't' | 'b'));
        }
        pairing.finish()
    }

    fn ticks(reactivity: &Reactivity) -> Vec<(u64, u64)> {
        reactivity.pairs.iter().map(|p| (p.from.tick.0, p.to.tick.0)).collect()
    }

    #[test]
    fn each_event_is_paired_with_the_first_answer_after_it() {
        let reactivity = pair("t f f t t f t f");
        assert_eq!(ticks(&reactivity), [(2, 6), (4, 6), (10, 12)]);
        assert_eq!(reactivity.unanswered, 1);
    }

    #[test]
    fn an_event_is_not_its_own_answer() {
        assert_eq!(ticks(&pair("b b b")), [(0, 2), (2, 4)]);
    }

    #[test]
    fn an_answer_at_the_same_tick_is_not_paired() {
        let mut pairing = Pairing::default();
        let at = |tick| Moment { tick: Ticks(tick), cpu: None, lwp: None, thread: None };
        pairing.event(at(5), true, false);
        pairing.event(at(5), false, true);
        pairing.event(at(6), false, true);
        assert_eq!(ticks(&pairing.finish()), [(5, 6)]);
    }

    #[test]
    fn percentiles_are_lengths_that_occurred() {
        let mut pairing = Pairing::default();
        for n in 1..=100u64 {
            let at = |tick| Moment { tick: Ticks(tick), cpu: None, lwp: None, thread: None };
            pairing.event(at(n * 1000), true, false);
            pairing.event(at(n * 1000 + n), false, true);
        }
        let r = pairing.finish();
        let ticks = [r.min(), r.median(), r.p99(), r.max()].map(|t| t.unwrap().0);
        assert_eq!((r.count(), ticks), (100, [1, 50, 99, 100]));
        assert_eq!(pair("f").median(), None);
        assert_eq!(pair("f t").p99(), Some(Ticks(2)));
    }
}
