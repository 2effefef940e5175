//! Pajé files read with pj_dump, compared with the emitted timelines.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    io,
    process::{Command, Output, Stdio},
};

use sigmund_export::{
    sinks::paje::read_name,
    timeline::{Actors, Change, Counter, Sink, Track},
};
use sigmund_model::Ticks;

use crate::{
    known_timelines::{self, RandomTimeline},
    paje::{self, check_clean, written},
    paje_check,
    random_changes::RandomChanges,
    tally::Tally,
};

/// Runs pj_dump on a file; `None` if it is not installed.
fn run_pj_dump(file: &[u8]) -> Option<Output> {
    if Command::new("pj_dump").arg("--help").stdout(Stdio::null()).status().is_err() {
        crate::skipped::skipped("needs pj_dump (Debian: pajeng)");
        return None;
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("timeline.trace");
    std::fs::write(&path, file).unwrap();
    Some(Command::new("pj_dump").args(["-u", "-l", "9"]).arg(&path).output().unwrap())
}

/// pj_dump's table of a file that it must accept.
fn pj_dump(file: &[u8]) -> Option<Table> {
    let output = run_pj_dump(file)?;
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && errors.is_empty(), "pj_dump rejects it: {errors}");
    Some(Table::new(String::from_utf8(output.stdout).unwrap()))
}

/// pj_dump's table.
struct Table {
    text: String,
}

/// `State, container, type, start, end, duration, depth, value`
struct State<'a> {
    container: &'a str,
    ty: &'a str,
    start: u64,
    end: u64,
    value: &'a str,
}

impl Table {
    fn new(text: String) -> Table {
        Table { text }
    }

    fn rows<const N: usize>(&self, what: &str) -> Vec<[&str; N]> {
        let rows = self.text.lines().filter(|line| line.split(", ").next() == Some(what));
        rows.map(|row| row.splitn(N, ", ").collect::<Vec<_>>().try_into().unwrap()).collect()
    }

    fn states(&self) -> Vec<State<'_>> {
        let rows = self.rows("State").into_iter();
        rows.map(|[_, container, ty, start, end, _, _, value]| State {
            container,
            ty,
            start: nanos(start),
            end: nanos(end),
            value,
        })
        .collect()
    }
}

/// Parses `12.000000400` exactly.
fn nanos(seconds: &str) -> u64 {
    let (whole, decimals) = seconds.split_once('.').unwrap();
    assert_eq!(decimals.len(), 9, "{seconds}");
    whole.parse::<u64>().unwrap() * 1_000_000_000 + decimals.parse::<u64>().unwrap()
}

/// The containers' names, by their aliases.
fn containers(file: &[u8]) -> HashMap<String, String> {
    let file = std::str::from_utf8(file).unwrap();
    let created = file.lines().filter(|line| line.starts_with("6 "));
    created
        .map(|line| {
            let alias = line.split(' ').nth(2).unwrap();
            (alias.to_string(), line.split('"').nth(1).unwrap().to_string())
        })
        .collect()
}

/// Sums that the tally does not have: occupants and counters.
#[derive(Default)]
struct Carried {
    /// Ticks by (row, occupant).
    nanos: BTreeMap<(String, String), u64>,
    now: HashMap<String, (String, u64)>,
    /// The last value by (row, instant).
    counters: BTreeMap<(String, u64), u64>,
    unknown_wakers: u64,
}

impl Carried {
    fn continue_with(&mut self, row: String, with: Option<String>, at: u64) {
        if let Some((before, since)) = self.now.remove(&row) {
            *self.nanos.entry((row.clone(), before)).or_default() += at - since;
        }
        if let Some(with) = with {
            self.now.insert(row, (with, at));
        }
    }

    fn receive(&mut self, at: u64, change: &Change<'_>) {
        match change {
            Change::CpuLwp(cpu, lwp) => {
                self.continue_with(format!("c{}", cpu.0), lwp.map(|l| format!("l{}", l.0)), at);
            }
            Change::CpuThread(cpu, thread) => {
                self.continue_with(format!("ct{}", cpu.0), thread.map(|t| format!("t{}", t.0)), at);
            }
            Change::LwpThread(lwp, thread) => {
                self.continue_with(format!("lt{}", lwp.0), thread.map(|t| format!("t{}", t.0)), at);
            }
            Change::Count(counter, value) => {
                let row = match counter {
                    Counter::ReadyQueue(process) => format!("p{}", process.0),
                    Counter::RunQueue(cpu) => format!("c{}", cpu.0),
                };
                self.counters.insert((row, at), *value);
            }
            Change::Wakeup { by: None, .. } => self.unknown_wakers += 1,
            _ => {}
        }
    }
}

/// Both sums at once.
struct EmittedSums<'a> {
    actors: &'a Actors,
    tally: Tally,
    carried: Carried,
}

impl Sink for EmittedSums<'_> {
    fn change(&mut self, tick: Ticks, change: &Change<'_>) -> io::Result<()> {
        self.carried.receive(self.actors.clock.nanos(tick).0, change);
        self.tally.change(tick, change)
    }

    fn finish(&mut self) -> io::Result<()> {
        self.tally.finish()
    }
}

/// The tally's name of each track, and the alias of its row.
fn tracks(actors: &Actors) -> impl Iterator<Item = (String, String)> {
    let cpus = actors.cpu_ids().map(|id| (Track::Cpu(id), format!("c{}", id.0)));
    let lwps = actors.lwp_ids().map(|id| (Track::Lwp(id), format!("l{}", id.0)));
    let threads = actors.thread_ids().map(|id| (Track::Thread(id), format!("t{}", id.0)));
    cpus.chain(lwps).chain(threads).map(|(track, alias)| (format!("{track:?}"), alias))
}

fn compare(actors: &Actors, mut emit: impl FnMut(&mut dyn Sink) -> io::Result<()>) {
    let mut truth = EmittedSums { actors, tally: Tally::default(), carried: Carried::default() };
    emit(&mut truth).unwrap();
    let file = written(actors, &mut emit);
    check_clean(&file);
    let Some(table) = pj_dump(&file) else { return };
    let containers = containers(&file);
    states_agree(&truth, &table, &containers);
    slices_agree(&truth.tally, actors, &table, &containers);
    carried_agree(&truth.carried, &table, &containers);

    let (events, links) = (table.rows::<5>("Event").len() as u64, table.rows::<10>("Link").len() as u64);
    let EmittedSums { tally, carried, .. } = &truth;
    assert_eq!(events, tally.events + carried.unknown_wakers);
    assert_eq!(links, tally.wakeups + tally.migrations - carried.unknown_wakers);
}

fn states_agree(truth: &EmittedSums<'_>, table: &Table, containers: &HashMap<String, String>) {
    let mut read: BTreeMap<(&str, &str), (u64, u64)> = BTreeMap::new();
    for state in table.states() {
        if ["user thread state", "LWP state"].contains(&state.ty) {
            // The field of the object that is waited for may follow the value.
            let value = state.value.split(", ").next().unwrap();
            let (count, nanos) = read.entry((state.container, value)).or_default();
            *count += 1;
            *nanos += state.end - state.start;
        }
    }
    let aliases: HashMap<String, String> = tracks(truth.actors).collect();
    let rate = truth.actors.clock.rate.unwrap().per_second();
    assert_eq!(read.len(), truth.tally.states.len());
    for (key, expected_count) in &truth.tally.states {
        let (track, state) = key;
        let (count, nanos) = read[&(containers[&aliases[track]].as_str(), *state)];
        assert_eq!(count, *expected_count, "{key:?}");
        let expected = truth.tally.ticks_in_state[key] as f64 * 1e9 / rate;
        // Both ends of each are rounded to the nearest nanosecond.
        let tolerance = count as f64;
        assert!((nanos as f64 - expected).abs() <= tolerance, "{key:?}: {nanos} ns, expected {expected} ns");
    }
}

fn slices_agree(tally: &Tally, actors: &Actors, table: &Table, containers: &HashMap<String, String>) {
    let mut expected: BTreeMap<(String, String), u64> = BTreeMap::new();
    let aliases: HashMap<String, String> = tracks(actors).collect();
    for ((track, name), count) in &tally.slices {
        // The additional row of the actor: `ts0` for `t0`.
        let alias = &aliases[track];
        let row = format!("{}s{}", &alias[..1], &alias[1..]);
        expected.insert((containers[&row].clone(), name.clone()), *count);
    }
    let mut read: BTreeMap<(String, String), u64> = BTreeMap::new();
    let beside = ["spans of ", "calls of ", "interrupts of "];
    for state in table.states() {
        if beside.iter().any(|prefix| state.container.starts_with(prefix)) {
            let name = read_name(state.value).unwrap();
            *read.entry((state.container.into(), name)).or_default() += 1;
        }
    }
    assert_eq!(read, expected);
}

fn carried_agree(carried: &Carried, table: &Table, containers: &HashMap<String, String>) {
    let name = |alias: &String| containers[alias].clone();
    let expected: BTreeMap<(String, String), u64> =
        carried.nanos.iter().map(|((row, with), nanos)| ((name(row), name(with)), *nanos)).collect();
    let mut read: BTreeMap<(String, String), u64> = BTreeMap::new();
    for state in table.states() {
        if ["LWP on the CPU", "user thread on the CPU", "user thread on the LWP"].contains(&state.ty) {
            *read.entry((state.container.into(), state.value.into())).or_default() += state.end - state.start;
        }
    }
    assert_eq!(read, expected);

    let expected: BTreeMap<(String, u64), u64> =
        carried.counters.iter().map(|((row, at), value)| ((name(row), *at), *value)).collect();
    let variables = table.rows::<7>("Variable");
    let read: BTreeMap<(String, u64), u64> = variables
        .iter()
        .map(|[_, container, _, start, _, _, value]| {
            (((*container).into(), nanos(start)), value.parse::<f64>().unwrap() as u64)
        })
        .collect();
    assert_eq!(read.len(), variables.len(), "two values at one instant");
    assert_eq!(read, expected);
}

#[test]
fn the_small_timeline_is_read_as_it_was_emitted() {
    compare(&known_timelines::actors(11000), |sink| known_timelines::small(sink));
}

#[test]
fn random_timelines_are_read_as_they_were_emitted() {
    for seed in 1..20 {
        let random = RandomTimeline::new(seed, 2000);
        compare(&random.actors, |sink| random.emit(sink));
    }
}

#[test]
fn all_kinds_of_changes_at_random_are_read_as_they_were_emitted() {
    for seed in 1..20 {
        let everything = RandomChanges::new(seed, 3000);
        compare(&everything.actors, |sink| everything.emit(sink));
    }
}

#[test]
fn an_empty_timeline_is_a_valid_file() {
    compare(&known_timelines::actors(11000), |sink| sink.finish());
    let mut nobody = known_timelines::actors(1000);
    (nobody.cpus, nobody.processes, nobody.lwps, nobody.threads) = (vec![], vec![], vec![], vec![]);
    nobody.clock.last = nobody.clock.first;
    compare(&nobody, |sink| sink.finish());
}

#[test]
fn long_and_hostile_names_are_accepted() {
    let mut names = paje::long_names();
    names.extend(known_timelines::HOSTILE_NAMES.map(String::from));
    let (actors, emit) = paje::named(&names);
    let Some(table) = pj_dump(&written(&actors, &emit)) else { return };
    assert_eq!(table.states().len(), names.len());
    // All names are different: divided names have different continuations.
    let values: HashSet<&str> = table.states().iter().map(|state| state.value).collect();
    assert_eq!(values.len(), names.len());
    let containers: HashSet<&str> = table.states().iter().map(|state| state.container).collect();
    assert_eq!(containers.len(), names.len());
}

/// Shows that the checker is needed.
#[test]
fn pj_dump_accepts_faults_that_the_checker_reports() {
    for planted in paje_check::planted() {
        let file = planted.file();
        let Some(output) = run_pj_dump(file.as_bytes()) else { return };
        let emitted = String::from_utf8_lossy(&output.stderr);
        assert_eq!(!output.status.success(), planted.refused_by_pj_dump, "{planted:?}: {emitted}");
    }
}

/// ```text
/// CPU 0      |= LWP 70 =|        |== LWP 71 ==|
/// CPU 3      |   irq 24 {softirq}              |
/// thread 1   | active   | stalled| blocked     |   span "outer" { function "f" } on it
/// thread 2              | ready  | active      |
/// ns        0         1000     2000         4000
/// ```
#[test]
fn the_small_timeline_row_by_row() {
    let Some(table) = pj_dump(&written(&known_timelines::actors(11000), known_timelines::small)) else {
        return;
    };
    let mut read: Vec<String> = table
        .states()
        .iter()
        .map(|state| format!("{:4}-{:4} {}: {}", state.start, state.end, state.container, state.value))
        .collect();
    read.sort();
    assert_eq!(
        read,
        [
            "   0- 480 sumtime %222%22%0A (71): sleeping",
            "   0-1000 1 main: active",
            "   0-1000 CPU 0: sumtime (70)",
            "   0-1000 sumtime (70): running",
            "   0-1000 user thread of CPU 0: 1 main",
            "   0-2000 user thread of sumtime (70): 1 main",
            "  80-4000 spans of 1 main: outer",
            " 120-1200 spans of 1 main: sumtime::node",
            " 160- 200 calls of sumtime (70): futex",
            " 400- 560 interrupts of CPU 3: irq 24 eth0",
            " 440- 520 interrupts of CPU 3: NET_RX",
            " 480-2000 sumtime %222%22%0A (71): runnable",
            "1000-2000 1 main: stalled",
            "1000-2000 2 work/6 %22x%22: ready",
            "1000-4000 sumtime (70): runnable",
            "2000-4000 1 main: blocked (mutex), 0xbeef",
            "2000-4000 2 work/6 %22x%22: active",
            "2000-4000 CPU 0: sumtime %222%22%0A (71)",
            "2000-4000 sumtime %222%22%0A (71): running",
            "2000-4000 user thread of CPU 0: 2 work/6 %22x%22",
            "2000-4000 user thread of sumtime %222%22%0A (71): 2 work/6 %22x%22",
        ]
    );
    let mut links: Vec<String> = table
        .rows::<10>("Link")
        .iter()
        .map(|[_, _, ty, start, end, _, value, from, to, _]| {
            assert_eq!(start, end);
            format!("{} {ty}: {value}, from {from} to {to}", nanos(start))
        })
        .collect();
    links.sort();
    assert_eq!(
        links,
        [
            "1000 wakeup of a user thread by a user thread: wakeup, from 1 main to 2 work/6 %22x%22",
            "2000 migration of a user thread to an LWP: 2 work/6 %22x%22, from sumtime (70) to sumtime %222%22%0A (71)",
            "2000 migration of an LWP to a CPU: sumtime (70), from CPU 3 to CPU 0",
            "480 wakeup of an LWP by a CPU: wakeup, from CPU 3 to sumtime %222%22%0A (71)",
        ]
    );
    assert_eq!(
        table.rows::<6>("Event"),
        [[
            "Event",
            "1 main",
            "user event on a user thread",
            "0.000000180",
            "received_msg",
            "len=64, from=24(eth0)"
        ]]
    );
}
