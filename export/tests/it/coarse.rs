//! A coarse timeline has the same totals to the tick, fewer changes, and obeys all rules of a timeline.

use std::collections::BTreeMap;
use std::io;

use sigmund_export::coarse::{Coarse, LeftOut};
use sigmund_export::timeline::{
    Actors, Change, Counter, CpuId, LwpId, ProcessId, Sink, Slice, SliceKind, ThreadId, Track,
};
use sigmund_model::{LwpState, ThreadState, Ticks, WaitKind};

use crate::cpu_time;
use crate::known_timelines::{self, RandomTimeline};
use crate::tally::Tally;

/// Sums the states of every track by bucket, with the checks of [`Tally`].
struct Sums {
    tally: Tally,
    first: u64,
    bucket: u64,
    now: BTreeMap<String, (String, u64)>,
    /// Ticks by track, state and bucket.
    ticks: BTreeMap<(String, String, u64), u64>,
    open: BTreeMap<String, Vec<(SliceKind, String, u64)>>,
    /// Track, name, bounds.
    slices: Vec<(String, String, u64, u64)>,
    changes: u64,
    text: Option<Vec<String>>,
}

impl Sums {
    fn new(actors: &Actors, bucket: u64) -> Sums {
        Sums {
            tally: Tally::default(),
            first: actors.clock.first.0,
            bucket,
            now: BTreeMap::new(),
            ticks: BTreeMap::new(),
            open: BTreeMap::new(),
            slices: Vec::new(),
            changes: 0,
            text: None,
        }
    }

    fn state(&mut self, track: String, what: String, tick: u64) {
        let before = self.now.insert(track.clone(), (what, tick));
        let Some((before, mut from)) = before.filter(|(before, _)| before != "None") else { return };
        while from < tick {
            let bucket = (from - self.first) / self.bucket;
            let end = tick.min((bucket + 1) * self.bucket + self.first);
            *self.ticks.entry((track.clone(), before.clone(), bucket)).or_default() += end - from;
            from = end;
        }
    }
}

impl Sink for Sums {
    fn change(&mut self, tick: Ticks, change: &Change<'_>) -> io::Result<()> {
        self.tally.change(tick, change)?;
        self.changes += 1;
        self.text.iter_mut().for_each(|text| text.push(format!("{} {change:?}", tick.0)));
        match change {
            Change::CpuLwp(cpu, lwp) => self.state(format!("{cpu:?} LWP"), format!("{lwp:?}"), tick.0),
            Change::CpuThread(cpu, thread) => {
                self.state(format!("{cpu:?} thread"), format!("{thread:?}"), tick.0)
            }
            Change::LwpThread(lwp, thread) => {
                self.state(format!("{lwp:?} thread"), format!("{thread:?}"), tick.0)
            }
            Change::Lwp { lwp, state, .. } => self.state(format!("{lwp:?}"), format!("{state:?}"), tick.0),
            Change::Thread { thread, state, .. } => {
                self.state(format!("{thread:?}"), format!("{state:?}"), tick.0);
            }
            Change::Enter(track, Slice { kind, name }) => {
                self.open.entry(format!("{track:?}")).or_default().push((*kind, (*name).into(), tick.0));
            }
            Change::Leave(track, kind) => {
                let track = format!("{track:?}");
                let (entered, name, from) = self.open.get_mut(&track).unwrap().pop().unwrap();
                assert_eq!(entered, *kind, "{track} {name}");
                self.slices.push((track, name, from, tick.0));
            }
            _ => {}
        }
        Ok(())
    }

    fn finish(&mut self) -> io::Result<()> {
        assert!(self.now.values().all(|(what, _)| what == "None"), "{:?}", self.now);
        self.tally.finish()
    }
}

/// A timeline, exact and coarse.
fn both(actors: &Actors, least: u64, emit: impl Fn(&mut dyn Sink)) -> (Sums, Sums, LeftOut) {
    // The sums use a multiple of the length, so that their number is limited.
    let bucket = least.max(1) * (1 + 1000 / least.max(1));
    let mut exact = Sums::new(actors, bucket);
    emit(&mut exact);
    let mut coarse = Coarse::new(Sums::new(actors, bucket), actors, Ticks(least));
    emit(&mut coarse);
    let left_out = coarse.left_out();
    (exact, coarse.into_inner(), left_out)
}

/// Checks that must hold for every timeline and every length.
fn assert_is_coarse(actors: &Actors, least: u64, emit: impl Fn(&mut dyn Sink)) -> (Sums, Sums) {
    let (exact, mut coarse, left_out) = both(actors, least, emit);
    assert_eq!(exact.tally.ticks_in_state, coarse.tally.ticks_in_state, "length {least}");
    assert_eq!(exact.ticks, coarse.ticks, "length {least}");
    let mut long: Vec<_> =
        exact.slices.iter().filter(|(.., from, to)| least <= 1 || to - from >= least).cloned().collect();
    long.sort();
    coarse.slices.sort();
    assert_eq!(long, coarse.slices, "length {least}");
    assert_eq!(left_out.slices as usize, exact.slices.len() - long.len());
    assert_eq!(left_out.events, exact.tally.events - coarse.tally.events);
    assert_eq!(left_out.wakeups, exact.tally.wakeups - coarse.tally.wakeups);
    assert_eq!(left_out.migrations, exact.tally.migrations - coarse.tally.migrations);
    assert_eq!(left_out.counts, exact.tally.counts - coarse.tally.counts);
    assert_eq!(left_out.too_deep, 0);
    (exact, coarse)
}

const LENGTHS: [u64; 9] = [0, 1, 2, 3, 17, 200, 1000, 30_000, 10_000_000];

#[test]
fn totals_of_random_timelines_stay_the_same_to_the_tick() {
    for seed in 1..12 {
        let random = RandomTimeline::new(seed, 4000);
        for least in LENGTHS {
            assert_is_coarse(&random.actors, least, |sink| random.emit(sink).unwrap());
        }
    }
}

#[test]
fn totals_of_all_tracks_of_a_busy_machine_stay_the_same_to_the_tick() {
    for seed in 1..12 {
        let machine = Machine::new(seed);
        for least in LENGTHS {
            let (exact, coarse) =
                assert_is_coarse(&machine.actors, least, |sink| machine.emit(sink).unwrap());
            if least == 10_000_000 {
                assert!(coarse.changes < exact.changes / 3, "{} of {}", coarse.changes, exact.changes);
            }
        }
    }
}

#[test]
fn nothing_is_lost_at_0_and_at_1_tick() {
    let machine = Machine::new(5);
    for least in [0, 1] {
        let mut exact = Sums { text: Some(Vec::new()), ..Sums::new(&machine.actors, 1000) };
        machine.emit(&mut exact).unwrap();
        let sums = Sums { text: Some(Vec::new()), ..Sums::new(&machine.actors, 1000) };
        let mut coarse = Coarse::new(sums, &machine.actors, Ticks(least));
        machine.emit(&mut coarse).unwrap();
        assert_eq!(coarse.left_out(), LeftOut::default());
        assert_eq!(coarse.into_inner().text, exact.text);
    }
}

#[test]
fn the_small_timeline_keeps_its_totals() {
    for least in [500, 1000, 2000, 5000, 20_000] {
        assert_is_coarse(&known_timelines::actors(11_000), least, |sink| {
            known_timelines::small(sink).unwrap()
        });
    }
}

// bucket   1000      1010      1020      1030      1040
// exact    |A |S|A |S|A   |BBBBBBBBBBBBBBBBBB|R|A|      A 1000 S 1002 A 1003 S 1005 A 1007 B 1012 R 1031 A 1033, to 1036
// coarse   |AAAAAAA|S|AA  |BBBBBBBBBBBBBBBBBB|R|A|      B is long: exact. A has 2+2+3 ticks in the first bucket
#[test]
fn short_states_of_a_bucket_become_one_each_and_a_long_one_keeps_its_bounds() {
    let actors = known_timelines::actors(2000);
    let thread = ThreadId(0);
    let states = [
        (1000, ThreadState::Active, Some(CpuId(0))),
        (1002, ThreadState::Stalled, None),
        (1003, ThreadState::Active, Some(CpuId(0))),
        (1005, ThreadState::Stalled, None),
        (1007, ThreadState::Active, Some(CpuId(1))),
        (1012, ThreadState::Blocked, None),
        (1031, ThreadState::Ready, None),
        (1033, ThreadState::Active, Some(CpuId(1))),
    ];
    let change =
        |state, cpu| Change::Thread { thread, state, lwp: None, cpu, blocked_on: None, blocked_for: None };
    let emit = |sink: &mut dyn Sink| {
        for (tick, state, cpu) in states {
            sink.change(Ticks(tick), &change(Some(state), cpu)).unwrap();
        }
        sink.change(Ticks(1036), &change(None, None)).unwrap();
        sink.finish().unwrap();
    };
    let mut coarse =
        Coarse::new(Sums { text: Some(Vec::new()), ..Sums::new(&actors, 10) }, &actors, Ticks(10));
    emit(&mut coarse);
    let line = |tick: u64, state, cpu| format!("{tick} {:?}", change(state, cpu));
    let expected = [
        // Not always on the same CPU.
        line(1000, Some(ThreadState::Active), None),
        line(1007, Some(ThreadState::Stalled), None),
        line(1010, Some(ThreadState::Active), Some(CpuId(1))),
        line(1012, Some(ThreadState::Blocked), None),
        line(1031, Some(ThreadState::Ready), None),
        line(1033, Some(ThreadState::Active), Some(CpuId(1))),
        line(1036, None, None),
    ];
    assert_eq!(coarse.left_out().short_states, 7);
    assert_eq!(coarse.into_inner().text.unwrap(), expected);
}

// span    |=================|        long
//   f       |==============|         long
//     g       |=|  |=|               short: left out, and the leaves meet their enters
#[test]
fn short_slices_are_left_out_of_long_ones() {
    let actors = known_timelines::actors(2000);
    let track = Track::Thread(ThreadId(0));
    let mut coarse =
        Coarse::new(Sums { text: Some(Vec::new()), ..Sums::new(&actors, 10) }, &actors, Ticks(10));
    let enter = |name: &'static str| Change::Enter(track, Slice { kind: SliceKind::Function, name });
    let leave = Change::Leave(track, SliceKind::Function);
    let emitted = [
        (1000, enter("span")),
        (1002, enter("f")),
        (1004, enter("g")),
        (1006, leave),
        (1009, enter("g")),
        (1011, leave),
        (1017, leave),
        (1019, leave),
    ];
    emitted.iter().for_each(|(tick, change)| coarse.change(Ticks(*tick), change).unwrap());
    coarse.finish().unwrap();
    assert_eq!(coarse.left_out().slices, 2);
    let expected =
        [emitted[0], emitted[1], emitted[6], emitted[7]].map(|(tick, change)| format!("{tick} {change:?}"));
    assert_eq!(coarse.into_inner().text.unwrap(), expected);
}

#[test]
fn the_least_greatest_and_last_value_of_a_counter_in_a_bucket_are_kept() {
    let actors = known_timelines::actors(2000);
    let mut coarse =
        Coarse::new(Sums { text: Some(Vec::new()), ..Sums::new(&actors, 10) }, &actors, Ticks(10));
    let count = |value| Change::Count(Counter::ReadyQueue(ProcessId(0)), value);
    for (tick, value) in [(1000, 5), (1001, 3), (1002, 4), (1003, 9), (1005, 3), (1009, 7), (1010, 8)] {
        coarse.change(Ticks(tick), &count(value)).unwrap();
    }
    coarse.finish().unwrap();
    assert_eq!(coarse.left_out().counts, 3);
    let expected = [(1001, 3), (1003, 9), (1009, 7), (1010, 8)].map(|(t, v)| format!("{t} {:?}", count(v)));
    assert_eq!(coarse.into_inner().text.unwrap(), expected);
}

// Recursion deeper than the buffer: the innermost slices are left out, the others keep their bounds.
#[test]
fn nesting_that_is_too_deep_to_buffer_is_cut_and_counted() {
    let actors = known_timelines::actors(10_000_000);
    let track = Track::Thread(ThreadId(0));
    let mut coarse = Coarse::new(Sums::new(&actors, 1_000_000), &actors, Ticks(1_000_000));
    for depth in 0..100_000 {
        let slice = Slice { kind: SliceKind::Function, name: "f" };
        coarse.change(Ticks(1000 + depth), &Change::Enter(track, slice)).unwrap();
    }
    for depth in 0..100_000 {
        let leave = Change::Leave(track, SliceKind::Function);
        coarse.change(Ticks(5_000_000 + depth), &leave).unwrap();
    }
    coarse.finish().unwrap();
    assert_eq!(coarse.left_out().too_deep, 100_000 - 65_536);
    let slices = coarse.into_inner().slices;
    assert_eq!((slices.len(), slices[65_535].2, slices[65_535].3), (65_536, 1000, 5_099_999));
}

// For any number of changes: in each bucket, each track has at most one change for each state, one for no state, and
// one for a long state that begins; a counter has three, and each kind of instant one.
#[test]
fn the_number_of_changes_is_bounded_by_tracks_states_and_buckets() {
    for changes in [20_000, 80_000] {
        let random = RandomTimeline::new(3, changes);
        let actors = &random.actors;
        // 64 buckets for any number of changes.
        let least = (actors.clock.last.0 - actors.clock.first.0) / 64;
        let (exact, coarse, _) = both(actors, least, |sink| random.emit(sink).unwrap());
        // Active, stalled, ready, blocked, and blocked for each kind of wait.
        let states = 4 + WaitKind::ALL.len() as u64;
        let per_track = states + 1 + 1 + 2;
        assert!(coarse.changes < 65 * (actors.threads.len() as u64 * per_track + 3), "{}", coarse.changes);
        assert!(exact.changes > changes / 2);
    }
}

/// Two CPUs on which 40 LWPs and 40 user threads take turns, with waits, system calls and interrupts.
struct Machine {
    actors: Actors,
    seed: u64,
}

impl Machine {
    fn new(seed: u64) -> Machine {
        let mut actors = known_timelines::actors(1_000_000);
        for number in 0..40 {
            actors.lwps.push(actors.lwps[number % 3].clone());
            actors.threads.push(actors.threads[number % 3]);
        }
        Machine { actors, seed }
    }

    fn emit(&self, sink: &mut dyn Sink) -> io::Result<()> {
        let mut seed = self.seed;
        let mut below = |limit: u64| {
            seed ^= seed >> 12;
            seed ^= seed << 25;
            seed ^= seed >> 27;
            (seed.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) % limit
        };
        let lwps = self.actors.lwps.len() as u64;
        let mut tick = self.actors.clock.first.0;
        let mut depth = vec![0; lwps as usize];
        let mut last = tick;
        for _ in 0..4000 {
            // Bursts at one instant, and long waits.
            tick += match below(40) {
                0 => below(3000),
                1..20 => below(60),
                _ => below(3),
            };
            last = tick;
            let at = Ticks(tick);
            let (cpu, who) = (CpuId(below(2) as u32), below(lwps) as u32);
            let (lwp, thread) = (LwpId(who), ThreadId(who));
            let state = LwpState::ALL[below(5) as usize];
            match below(8) {
                0 => sink.change(at, &Change::CpuLwp(cpu, (who > 0).then_some(lwp)))?,
                1 => sink.change(at, &Change::CpuThread(cpu, (who > 0).then_some(thread)))?,
                2 => sink.change(at, &Change::LwpThread(lwp, (who % 3 > 0).then_some(thread)))?,
                3 | 4 => sink.change(at, &Change::Lwp { lwp, state: Some(state), cpu: Some(cpu) })?,
                5 => {
                    depth[who as usize] += 1;
                    let slice = Slice { kind: SliceKind::Syscall, name: "read" };
                    sink.change(at, &Change::Enter(Track::Lwp(lwp), slice))?;
                }
                6 if depth[who as usize] > 0 => {
                    depth[who as usize] -= 1;
                    sink.change(at, &Change::Leave(Track::Lwp(lwp), SliceKind::Syscall))?;
                }
                _ => {
                    let (of, from, to) = (Track::Lwp(lwp), Track::Cpu(CpuId(0)), Track::Cpu(CpuId(1)));
                    sink.change(at, &Change::Migration { of, from, to })?;
                }
            }
        }
        let last = Ticks(last);
        for (index, depth) in depth.iter().enumerate() {
            let lwp = LwpId(index as u32);
            for _ in 0..*depth {
                sink.change(last, &Change::Leave(Track::Lwp(lwp), SliceKind::Syscall))?;
            }
            sink.change(last, &Change::Lwp { lwp, state: None, cpu: None })?;
            sink.change(last, &Change::LwpThread(lwp, None))?;
        }
        for cpu in self.actors.cpu_ids() {
            sink.change(last, &Change::CpuLwp(cpu, None))?;
            sink.change(last, &Change::CpuThread(cpu, None))?;
        }
        sink.finish()
    }
}

struct Nothing(u64);

impl Sink for Nothing {
    fn change(&mut self, _: Ticks, _: &Change<'_>) -> io::Result<()> {
        self.0 += 1;
        Ok(())
    }

    fn finish(&mut self) -> io::Result<()> {
        Ok(())
    }
}

// cargo test --release -p sigmund-export --test it -- --ignored --nocapture coarse::speed
#[test]
#[ignore = "measures"]
fn speed() {
    let random = RandomTimeline::new(1, 10_000_000);
    let start = cpu_time::of_this_thread();
    random.emit(&mut Nothing(0)).unwrap();
    eprintln!("the timeline alone: {:?}", cpu_time::of_this_thread() - start);
    for least in [100, 2500, 250_000, 1_000_000_000] {
        let mut coarse = Coarse::new(Nothing(0), &random.actors, Ticks(least));
        let start = cpu_time::of_this_thread();
        random.emit(&mut coarse).unwrap();
        let (taken, left_out) = (cpu_time::of_this_thread() - start, coarse.left_out());
        eprintln!("{least} ticks: {taken:?}, {} changes, {left_out:?}", coarse.into_inner().0);
    }
}
