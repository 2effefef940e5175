//! The sums of a timeline, with which the output of a format's reader is compared. Also checks the rules of a timeline.

use std::{
    collections::{BTreeMap, HashMap},
    io,
};

use sigmund_export::timeline::{Change, DetailedState, Hold, Sink, Track};
use sigmund_model::{Ticks, WaitKind};

/// Sums of a timeline.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    last: Ticks,
    /// Ticks by (track, state).
    pub(crate) ticks_in_state: BTreeMap<(String, &'static str), u64>,
    /// Number of times that each state began.
    pub(crate) states: BTreeMap<(String, &'static str), u64>,
    /// Slices that were entered, by (track, name).
    pub(crate) slices: BTreeMap<(String, String), u64>,
    /// Slices that were left, in the order of their ends: name, begin, end.
    pub(crate) left: Vec<(String, u64, u64)>,
    /// Changes by kind.
    pub(crate) events: u64,
    pub(crate) wakeups: u64,
    pub(crate) migrations: u64,
    pub(crate) counts: u64,
    /// Holds of locks, by track.
    pub(crate) holds: BTreeMap<String, u64>,
    now: HashMap<Track, (&'static str, Ticks)>,
    open: HashMap<Track, Vec<(String, Ticks)>>,
    held: HashMap<u64, (Track, Hold)>,
}

impl Sink for Tally {
    fn change(&mut self, tick: Ticks, change: &Change<'_>) -> io::Result<()> {
        assert!(tick >= self.last, "time decreases from {:?} to {tick:?} at {change:?}", self.last);
        self.last = tick;
        match change {
            Change::Lwp { lwp, state, .. } => self.state(tick, Track::Lwp(*lwp), state.map(|s| s.name())),
            Change::Thread { thread, state, blocked_for, .. } => {
                let doing = state.map(|state| DetailedState::new(state, *blocked_for).name());
                self.state(tick, Track::Thread(*thread), doing);
            }
            Change::Enter(track, slice) => {
                self.open.entry(*track).or_default().push((slice.name.into(), tick));
                *self.slices.entry((label(*track), slice.name.into())).or_default() += 1;
            }
            Change::Leave(track, _) => {
                let left = self.open.entry(*track).or_default().pop();
                let (name, begin) = left.unwrap_or_else(|| panic!("nothing is open on {track:?}"));
                self.left.push((name, begin.0, tick.0));
            }
            Change::Wakeup { .. } => self.wakeups += 1,
            Change::Migration { .. } => self.migrations += 1,
            Change::Count(..) => self.counts += 1,
            Change::Event(_) => self.events += 1,
            Change::Locked { by, hold } => {
                let all = self.holds.values().sum::<u64>();
                assert_eq!(hold.number, all + 1, "holds are numbered as they begin");
                *self.holds.entry(label(*by)).or_default() += 1;
                let excludes =
                    |(_, other): &(Track, Hold)| other.lock == hold.lock && hold.kind == WaitKind::Mutex;
                assert!(!self.held.values().any(excludes), "{hold:?} overlaps {:?}", self.held);
                assert_eq!(self.held.insert(hold.number, (*by, *hold)), None);
            }
            Change::Unlocked { by, hold } => {
                assert_eq!(self.held.remove(&hold.number), Some((*by, *hold)), "ends as it began");
            }
            Change::CpuLwp(..) | Change::CpuThread(..) | Change::LwpThread(..) => {}
        }
        Ok(())
    }

    fn finish(&mut self) -> io::Result<()> {
        assert!(self.open.values().all(Vec::is_empty), "slices are open at the end: {:?}", self.open);
        assert_eq!(self.now, HashMap::new(), "states are open at the end");
        assert_eq!(self.held, HashMap::new(), "locks are held at the end");
        Ok(())
    }
}

impl Tally {
    fn state(&mut self, tick: Ticks, track: Track, state: Option<&'static str>) {
        if let Some((before, since)) = self.now.remove(&track) {
            *self.ticks_in_state.entry((label(track), before)).or_default() += tick.0 - since.0;
        }
        if let Some(state) = state {
            *self.states.entry((label(track), state)).or_default() += 1;
            self.now.insert(track, (state, tick));
        }
    }
}

fn label(track: Track) -> String {
    format!("{track:?}")
}

#[test]
fn the_known_timelines_obey_the_rules_of_a_timeline() {
    let mut tally = Tally::default();
    crate::known_timelines::small(&mut tally).unwrap();
    assert_eq!(tally.ticks_in_state[&("Thread(ThreadId(0))".into(), "stalled")], 2500);
    assert_eq!((tally.events, tally.wakeups, tally.migrations, tally.counts), (1, 2, 2, 4));
    for seed in 1..50 {
        crate::known_timelines::RandomTimeline::new(seed, 1000).emit(&mut Tally::default()).unwrap();
    }
}
