//! The expected contents of a timeline's archive, by location id.

use std::{
    collections::{BTreeMap, HashMap},
    io,
};

use sigmund_export::timeline::{Actors, Change, Counter, DetailedState, Sink, Track};
use sigmund_model::Ticks;

use super::read::{Read, RegionSums};
use crate::tally::Tally;

/// A name with Python's `unicode_escape`.
pub(crate) fn escape(name: &str) -> String {
    let escape = |c: char| match c {
        '\\' => "\\\\".into(),
        '\n' => "\\n".into(),
        '\t' => "\\t".into(),
        '\r' => "\\r".into(),
        ' '..='~' => c.to_string(),
        _ if (c as u32) < 0x100 => format!("\\x{:02x}", c as u32),
        _ if (c as u32) < 0x10000 => format!("\\u{:04x}", c as u32),
        _ => format!("\\U{:08x}", c as u32),
    };
    name.chars().map(escape).collect()
}

/// The expected sums of an archive, computed from a timeline.
pub(crate) struct ArchiveSums {
    actors: Actors,
    pub(crate) tally: Tally,
    regions: RegionSums,
    metrics: HashMap<u64, [u64; 2]>,
    /// Number of acquisitions and releases of locks, by location.
    locks: BTreeMap<u64, [u64; 2]>,
    now: HashMap<u64, (String, Ticks)>,
    open: HashMap<u64, Vec<(String, Ticks)>>,
}

impl ArchiveSums {
    pub(crate) fn new(actors: &Actors) -> ArchiveSums {
        let (actors, tally, regions) = (actors.clone(), Tally::default(), RegionSums::new());
        ArchiveSums {
            actors,
            tally,
            regions,
            metrics: HashMap::new(),
            locks: BTreeMap::new(),
            now: HashMap::new(),
            open: HashMap::new(),
        }
    }

    /// Id of the first location of a track: 4 × the index of the CPU, LWP or user thread, in this order.
    pub(crate) fn location(&self, track: Track) -> u64 {
        let before = [0, self.actors.cpus.len(), self.actors.cpus.len() + self.actors.lwps.len()];
        let index = match track {
            Track::Cpu(cpu) => before[0] + cpu.index(),
            Track::Lwp(lwp) => before[1] + lwp.index(),
            Track::Thread(thread) => before[2] + thread.index(),
        };
        4 * index as u64
    }

    /// Asserts that the readers printed the expected sums.
    pub(crate) fn check(&self, read: &Read) {
        assert_eq!(read.regions, self.regions);
        let metrics: HashMap<_, _> = read.metrics.iter().map(|(id, metric)| (*id, *metric)).collect();
        assert_eq!(metrics, self.metrics);
        assert_eq!(read.locks, self.locks);
        self.check_tally(read);
    }

    /// Asserts the sums that all formats are compared with.
    fn check_tally(&self, read: &Read) {
        for id in self.actors.thread_ids() {
            let track = Track::Thread(id);
            let of = |lane: u64| {
                let location = self.location(track) + lane;
                read.regions.iter().filter(move |((at, _), _)| *at == location)
            };
            let label = format!("{track:?}");
            for ((_, state), [enters, leaves, ticks]) in of(0) {
                let sum = |(key, ticks): (&(String, &str), &u64)| {
                    (key.0 == label && key.1 == state).then_some(*ticks)
                };
                assert_eq!(Some(*ticks), self.tally.ticks_in_state.iter().find_map(sum), "{label} {state}");
                let begun = self.tally.states.iter().find_map(sum);
                assert_eq!((Some(*enters), enters), (begun, leaves), "{label} {state}");
            }
            let states = |(key, _): &(&(String, &str), &u64)| key.0 == label;
            assert_eq!(of(0).count(), self.tally.states.iter().filter(states).count(), "{label}");
            let slices: u64 = of(2).map(|(_, sums)| sums[0]).sum();
            let entered = self.tally.slices.iter().filter(|(key, _)| key.0 == label).map(|(_, count)| count);
            assert_eq!(slices, entered.sum::<u64>(), "{label}");
        }
        let instants = |name: &str| {
            let of_name = read.regions.iter().filter(|((at, region), _)| at % 4 == 3 && region == name);
            of_name.map(|(_, sums)| sums[0]).sum::<u64>()
        };
        assert_eq!(instants("wakeup"), self.tally.wakeups);
        assert_eq!(instants("migration"), self.tally.migrations);
        assert_eq!(instants("received_msg") + instants("sched_switch"), self.tally.events);
        assert_eq!(read.metrics.values().map(|metric| metric[0]).sum::<u64>(), self.tally.counts);
    }

    fn left(&mut self, location: u64, (region, since): (String, Ticks), tick: Ticks) {
        let sums = self.regions.entry((location, escape(&region))).or_default();
        *sums = [sums[0] + 1, sums[1] + 1, sums[2] + tick.0 - since.0];
    }

    fn switch(&mut self, location: u64, tick: Ticks, region: Option<String>) {
        if let Some(before) = self.now.remove(&location) {
            self.left(location, before, tick);
        }
        if let Some(region) = region {
            self.now.insert(location, (region, tick));
        }
    }

    fn instant(&mut self, track: Option<Track>, tick: Ticks, region: String) {
        let unknown_place =
            4 * (self.actors.cpus.len() + self.actors.lwps.len() + self.actors.threads.len()) as u64;
        let location = track.map_or(unknown_place, |track| self.location(track) + 3);
        self.left(location, (region, tick), tick);
    }
}

impl Sink for ArchiveSums {
    fn change(&mut self, tick: Ticks, change: &Change<'_>) -> io::Result<()> {
        self.tally.change(tick, change)?;
        match *change {
            Change::CpuLwp(cpu, lwp) => {
                let region = lwp.map(|lwp| self.actors[lwp].label());
                self.switch(self.location(Track::Cpu(cpu)), tick, region);
            }
            Change::CpuThread(cpu, thread) => {
                let region = thread.map(|thread| self.actors.thread_label(thread));
                self.switch(self.location(Track::Cpu(cpu)) + 1, tick, region);
            }
            Change::LwpThread(lwp, thread) => {
                let region = thread.map(|thread| self.actors.thread_label(thread));
                self.switch(self.location(Track::Lwp(lwp)) + 1, tick, region);
            }
            Change::Lwp { lwp, state, .. } => {
                self.switch(self.location(Track::Lwp(lwp)), tick, state.map(|state| state.name().into()));
            }
            Change::Thread { thread, state, blocked_for, .. } => {
                self.switch(
                    self.location(Track::Thread(thread)),
                    tick,
                    state.map(|state| DetailedState::new(state, blocked_for).name().into()),
                );
            }
            Change::Enter(track, slice) => {
                let open = self.open.entry(self.location(track) + 2).or_default();
                open.push((slice.name.into(), tick));
            }
            Change::Leave(track, _) => {
                let location = self.location(track) + 2;
                let innermost = self.open.get_mut(&location).unwrap().pop().unwrap();
                self.left(location, innermost, tick);
            }
            Change::Wakeup { of, .. } => self.instant(Some(of), tick, "wakeup".into()),
            Change::Migration { of, .. } => self.instant(Some(of), tick, "migration".into()),
            Change::Count(counter, value) => {
                let actors = self.actors.cpus.len() + self.actors.lwps.len() + self.actors.threads.len();
                let queue = match counter {
                    Counter::ReadyQueue(process) => process.index(),
                    Counter::RunQueue(cpu) => self.actors.processes.len() + cpu.index(),
                };
                let metric = self.metrics.entry((4 * actors + 1 + queue) as u64).or_default();
                *metric = [metric[0] + 1, value];
            }
            Change::Locked { by, .. } => self.locks.entry(self.location(by)).or_default()[0] += 1,
            Change::Unlocked { by, .. } => self.locks.entry(self.location(by)).or_default()[1] += 1,
            Change::Event(event) => {
                let name = self.actors[event.kind].name.clone();
                self.instant(event.track(), tick, name);
            }
        }
        Ok(())
    }

    fn finish(&mut self) -> io::Result<()> {
        self.tally.finish()
    }
}
