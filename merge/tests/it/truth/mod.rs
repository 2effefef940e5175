//! The merge against known truth: random schedules of user threads on LWPs on CPUs are simulated and written as
//! listings with little information; everything that the merge infers must equal what the simulator did.
//!
//! ```text
//!   seed, size ─► schedule ─┬─► listing ─► sigmund_merge::merge ─► Parquet ─► found ─┐
//!                           └─► answer ─────────────────────────────────────────────┴─► equal?
//! ```

mod answer;
mod chance;
mod listing;
mod recording;
mod schedule;

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
};

use proptest::{
    prelude::{ProptestConfig, TestCaseError, any, proptest},
    strategy::Strategy,
};
use sigmund_merge::Summary;

use self::{
    answer::{Answer, Interval, ThreadAnswer, join},
    chance::Chance,
    listing::{EVENT_COLUMNS, Listing},
    recording::{Sides, Size as World, Told},
    schedule::{Detail, Size},
};
use crate::supertrace::{Merged, Table};

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_merge_finds_what_the_simulator_did(seed in any::<u64>(), size in sizes(), detail in details()) {
        let (steps, answer) = schedule::run(seed, size, detail);
        let listing = listing::write(seed, steps, detail);
        check(&listing, &answer).map_err(TestCaseError::fail)?;
    }
}

/// Seeds of small recordings with losses. `SIGMUND_TRUTH_SEEDS` asks for more; there are more of the others then, too.
const SEEDS: u64 = 1000;

/// So many seeds of each [`SEEDS`].
fn seeds(usually: u64) -> std::ops::Range<u64> {
    let asked = std::env::var("SIGMUND_TRUTH_SEEDS").ok().and_then(|n| n.parse().ok());
    0..usually.max(usually * asked.unwrap_or(SEEDS) / SEEDS)
}

fn recordings(
    seeds: impl Iterator<Item = u64>,
    sides: Sides,
    losing: bool,
    size: impl Fn(&mut Chance) -> World,
) -> Told {
    let mut told = Told::default();
    for seed in seeds {
        let size = size(&mut Chance::new(!seed));
        match recording::try_once(seed, size, sides, losing) {
            Ok(of_this) => told += of_this,
            Err(wrong) => panic!("seed {seed}, {size:?}: {wrong}"),
        }
    }
    println!("{told:?}");
    told
}

fn small(chance: &mut Chance) -> World {
    World {
        cpus: 1 + chance.below(6) as u32,
        lwps: 1 + chance.below(12) as usize,
        processes: 1 + chance.below(3) as usize,
        threads: 1 + chance.below(20) as usize,
        events: 1 + chance.below(400) as usize,
    }
}

/// With processes of several LWPs, of which some execute programs.
fn busy(chance: &mut Chance) -> World {
    World { lwps: 24, processes: 1, threads: 4, events: 1500, ..small(chance) }
}

fn large(chance: &mut Chance) -> World {
    World {
        cpus: 1 + chance.below(64) as u32,
        lwps: 100 + chance.below(157) as usize,
        processes: 1 + chance.below(8) as usize,
        threads: 400,
        events: 20_000,
    }
}

#[test]
fn a_large_machine_is_no_different() {
    recordings(seeds(1), Sides::Both, false, large);
    let told = recordings(seeds(2), Sides::Both, true, large);
    assert!(told.kernel_gaps > 20 && told.user_gaps > 20);
}

#[test]
fn a_hundred_thousand_user_threads_are_told_apart() {
    let crowd =
        |_: &mut Chance| World { cpus: 64, lwps: 256, processes: 2, threads: 52_000, events: 250_000 };
    let told = recordings(0..1, Sides::Both, false, crowd);
    assert!(told.threads > 100_000, "{}", told.threads);
}

#[test]
fn one_side_alone_says_what_it_can() {
    for losing in [false, true] {
        recordings(seeds(50), Sides::Kernel, losing, small);
        recordings(seeds(50), Sides::User, losing, small);
    }
}

#[test]
fn every_row_of_a_whole_recording_is_true_and_nothing_is_unknown() {
    let told = recordings(seeds(400), Sides::Both, false, small);
    assert_eq!((told.lost_events, told.unknown_rows), (0, 0));
}

#[test]
fn with_pages_and_packets_missing_every_row_is_true_and_little_is_unknown() {
    let told = recordings(seeds(SEEDS), Sides::Both, true, small);
    assert!(told.kernel_gaps > 0 && told.user_gaps > 0);
    assert!(told.syscalls > 0 && told.interrupts > 0 && told.spans > 0);
}

// LWP 70  |==···|exit             |==·   71 is the leader of its process from now on, with its number
// LWP 71       |==··execve··==·==·|
#[test]
fn an_lwp_that_executes_a_program_gets_the_number_of_its_process() {
    for (losing, sides) in [(false, Sides::Both), (true, Sides::Both), (true, Sides::Kernel)] {
        let told = recordings(seeds(100), sides, losing, busy);
        assert!(told.execs > 20, "{told:?}");
    }
}

// CPU 0   |==X==|====L====|   the switch from X to L is not traced; L's own events show that it is there
#[test]
fn switches_that_the_kernel_did_not_trace_are_noticed_and_no_witness_is_called_a_liar() {
    let mut untraced = 0;
    for seed in seeds(400) {
        let size = World { lwps: 12, ..small(&mut Chance::new(!seed)) };
        untraced += match recording::try_untraced(seed, size) {
            Ok(untraced) => untraced,
            Err(wrong) => panic!("seed {seed}, {size:?}: {wrong}"),
        };
    }
    println!("{untraced} switches were not traced");
    assert!(untraced > 100, "{untraced}");
}

// CPU 0   |==X==|··|==L==|··     any switches are missing, all of the first ones of some CPUs too
#[test]
fn no_state_is_claimed_at_an_instant_at_which_it_was_not_although_switches_are_missing() {
    let mut claimed = recording::Claimed::default();
    for seed in seeds(400) {
        let size = small(&mut Chance::new(!seed));
        claimed += match recording::try_any_untraced(seed, size) {
            Ok(of_this) => of_this,
            Err(wrong) => panic!("seed {seed}, {size:?}: {wrong}"),
        };
    }
    println!("{claimed:?}");
    let recording::Claimed { untraced, known, unknown, said_unknown } = claimed;
    assert!(untraced > 2_000, "{claimed:?}");
    // It would be easy to claim nothing; and of what is not claimed, the losses say most.
    assert!(unknown > 0 && unknown < known, "{claimed:?}");
    assert!(said_unknown > unknown / 4, "{claimed:?}");
}

#[test]
fn a_schedule_shows_everything_that_it_is_about() {
    let size = Size { cpus: 4, carriers: 6, others: 3, threads: 12, events: 2000 };
    let (steps, answer) = schedule::run(1, size, Detail { kernel_states: true, reasons: true, exits: true });
    let states: BTreeSet<&str> =
        answer.threads.values().flat_map(|t| t.states.keys().map(|state| first_word(state))).collect();
    assert_eq!(states, ["active", "blocked", "exited", "in-kernel", "ready", "stalled"].into());
    assert!(answer.threads.values().any(|t| t.migrations > 0));
    let intervals = || answer.threads.values().flat_map(|t| &t.active);
    let cpus_of_one_lwp: BTreeSet<u32> = intervals().filter(|i| i.lwp == 7000).map(|i| i.cpu).collect();
    assert!(cpus_of_one_lwp.len() > 1, "LWPs migrate");
    let in_interrupt_of_idle = steps.iter().any(|s| s.context == "irq" && s.lwp == 0);
    assert!(in_interrupt_of_idle && steps.iter().any(|s| s.context == "irq" && s.lwp != 0));
    assert!(steps.iter().any(|s| s.context == "task" && s.lwp >= 7000 && s.thread.is_none()));
    assert!(steps.windows(2).any(|w| w[0].tick == w[1].tick && w[0].cpu != w[1].cpu));
}

fn first_word(text: &str) -> &str {
    text.split(' ').next().unwrap_or_default()
}

fn sizes() -> impl Strategy<Value = Size> {
    (1..=8_u32, 1..=10_u32, 0..=6_u32, 1..=24_u64, 1..=2000_usize).prop_map(
        |(cpus, carriers, others, threads, events)| Size { cpus, carriers, others, threads, events },
    )
}

fn details() -> impl Strategy<Value = Detail> {
    (any::<bool>(), any::<bool>(), 0..4).prop_map(|(kernel_states, reasons, exits)| Detail {
        kernel_states,
        reasons,
        exits: exits > 0,
    })
}

fn check(listing: &Listing, answer: &Answer) -> Result<(), String> {
    let merged = Merged::of_bytes(listing.text.as_ref());
    let merged = merged.map_err(|error| format!("{error}\n{}", listing.text))?;
    let trace = merged.out();
    check_events(&trace, listing)?;
    check_summary(&trace, &merged.summary, listing)?;
    check_active(&trace, listing, answer)?;
    // Sums belong to no line; but a failure shrinks until its cause is the last line.
    check_sums(&trace, answer)
        .map_err(|wrong| format!("{}\n{wrong}", neighbourhood(&listing.lines, listing.lines.len() - 1)))
}

fn check_sums(trace: &Path, answer: &Answer) -> Result<(), String> {
    check_thread_states(trace, answer)?;
    check_threads(trace, answer)?;
    check_lwps(trace, answer)?;
    check_lwp_states(trace)?;
    check_recorded(trace)?;
    check_cpus(trace, answer)
}

/// Compares every event, in the order of the sorted listing: time, name, and CPU, LWP and user thread.
fn check_events(trace: &Path, listing: &Listing) -> Result<(), String> {
    let found = Table::read(trace, "events").lines(&EVENT_COLUMNS);
    for (place, expected) in listing.expected.iter().enumerate() {
        let found = found.get(place).map_or("nothing", String::as_str);
        if found != expected {
            let around = neighbourhood(&listing.lines, place);
            let columns = EVENT_COLUMNS.join(" ");
            return Err(format!("{around}\n{columns}\nexpected {expected}\nfound    {found}"));
        }
    }
    equal("number of events", &listing.expected.len(), &found.len())
}

fn check_summary(trace: &Path, summary: &Summary, listing: &Listing) -> Result<(), String> {
    let losses = Table::read(trace, "losses").lines(&["kind", "detail"]);
    equal("losses", &Vec::new(), &losses)?;
    let found = (summary.witness_agree, summary.witness_disagree);
    equal("witnesses that agree, and disagree", &(listing.witnesses, 0), &found)
}

/// Compares every active interval of threads. `check_threads` compares their sums.
fn check_active(trace: &Path, listing: &Listing, answer: &Answer) -> Result<(), String> {
    let table = Table::read(trace, "active");
    let mut found: BTreeMap<u64, Vec<Interval>> = BTreeMap::new();
    let columns = ["thread", "ts_tick", "dur_tick", "lwp", "cpu"].map(|name| known(&table, name));
    for row in 0..columns[0].len() {
        let [thread, start, length, lwp, cpu] = columns.each_ref().map(|column| column[row]);
        let interval = Interval { start, end: start + length, lwp: lwp as u32, cpu: cpu as u32 };
        join(found.entry(thread).or_default(), interval);
    }
    for (thread, expected) in answer.threads.iter().map(|(n, t)| (n, &t.active)) {
        let none = Vec::new();
        let found = found.get(thread).unwrap_or(&none);
        if let Some(place) = first_difference(expected, found) {
            let (expected, found) = (expected.get(place), found.get(place));
            let tick = expected.or(found).map_or(0, |i| i.start).to_string();
            let line = listing.expected.iter().position(|e| e.split(' ').next() == Some(&tick));
            let around = neighbourhood(&listing.lines, line.unwrap_or(0));
            return Err(format!("{around}\nthread {thread} active: expected {expected:?}\nfound {found:?}"));
        }
    }
    Ok(())
}

/// Compares the time in each state. States have no gaps: each begins where the previous one ended.
fn check_thread_states(trace: &Path, answer: &Answer) -> Result<(), String> {
    let table = Table::read(trace, "thread_states");
    let (threads, starts) = (known(&table, "thread"), known(&table, "ts_tick"));
    let lengths = table.numbers("dur_tick");
    let states = table.lines(&["state", "blocked_on", "blocked_for"]);
    let mut times: BTreeMap<u64, BTreeMap<&str, u64>> = BTreeMap::new();
    let mut ends: BTreeMap<u64, Option<u64>> = BTreeMap::new();
    for row in 0..threads.len() {
        let (thread, start) = (threads[row], starts[row]);
        let before = ends.get(&thread).copied().unwrap_or(answer.threads.get(&thread).map(|t| t.first));
        let what = format!("thread {thread}: start of its state {}", states[row]);
        equal(&what, &before, &Some(start))?;
        let length = lengths[row].map(|length| length as u64);
        ends.insert(thread, length.map(|length| start + length));
        let length = length.unwrap_or(answer.end - start);
        *times.entry(thread).or_default().entry(&states[row]).or_default() += length;
    }
    for (thread, expected) in &answer.threads {
        let mut found = times.remove(thread).unwrap_or_default();
        found.retain(|_, time| *time > 0);
        let expected_states: BTreeMap<&str, u64> =
            expected.states.iter().map(|(state, time)| (state.as_str(), *time)).collect();
        equal(&format!("thread {thread}: time in each state"), &expected_states, &found)?;
        let end = expected.end.is_none().then_some(answer.end);
        equal(&format!("thread {thread}: end of its last state"), &end, &ends[thread])?;
    }
    equal("threads that never were", &BTreeMap::new(), &times)
}

fn check_threads(trace: &Path, answer: &Answer) -> Result<(), String> {
    let columns =
        ["thread", "name", "ts_tick", "dur_tick", "active_tick", "dispatches", "migrations", "stalls"];
    let mut found = Table::read(trace, "threads").lines(&columns);
    let row = |(n, t): (&u64, &ThreadAnswer)| {
        let life = t.end.map_or("?".into(), |end| (end - t.first).to_string());
        let ThreadAnswer { first, dispatches, migrations, stalls, .. } = t;
        let (active, stalls) = (t.active_time(), stalls.map_or("?".into(), |stalls| stalls.to_string()));
        format!("{n} work/{n} {first} {life} {active} {dispatches} {migrations} {stalls}")
    };
    let mut expected: Vec<String> = answer.threads.iter().map(row).collect();
    expected.sort();
    found.sort();
    match first_difference(&expected, &found) {
        None => Ok(()),
        Some(place) => equal(&columns.join(" "), &expected.get(place), &found.get(place)),
    }
}

/// Compares the time on CPUs, which is either active or unmounted.
fn check_lwps(trace: &Path, answer: &Answer) -> Result<(), String> {
    let table = Table::read(trace, "lwps");
    let columns = ["lwp", "on_cpu_tick", "active_tick", "unmounted_tick"].map(|name| known(&table, name));
    for row in 0..columns[0].len() {
        let [lwp, on_cpu, active, unmounted] = columns.each_ref().map(|column| column[row]);
        let expected = answer.lwps.get(&(lwp as u32)).copied().unwrap_or_default();
        equal(&format!("LWP {lwp}: on-CPU and active time"), &expected, &(on_cpu, active))?;
        equal(&format!("LWP {lwp}: active + unmounted"), &on_cpu, &(active + unmounted))?;
    }
    let missing: Vec<_> = answer.lwps.keys().filter(|l| !columns[0].contains(&u64::from(**l))).collect();
    equal("LWPs that are missing", &Vec::new(), &missing)
}

/// Compares what threads and LWPs recorded with the events.
pub(crate) fn check_recorded(trace: &Path) -> Result<(), String> {
    let mut of_events: BTreeMap<String, i64> = BTreeMap::new();
    for line in Table::read(trace, "events").lines(&["level", "thread", "lwp"]) {
        let words: Vec<&str> = line.split(' ').collect();
        match words[..] {
            ["USER", "?", lwp] => *of_events.entry(format!("LWP {lwp}")).or_default() += 1,
            ["USER", thread, _] => *of_events.entry(format!("thread {thread}")).or_default() += 1,
            _ => {}
        }
    }
    let mut found: BTreeMap<String, i64> = BTreeMap::new();
    for (table, of, column) in [("threads", "thread", "thread"), ("lwps", "LWP", "lwp")] {
        let table = Table::read(trace, table);
        for (number, events) in table.numbers(column).into_iter().zip(table.numbers("recorded_events")) {
            let who = format!("{of} {}", number.unwrap_or_default());
            *found.entry(who).or_default() += events.unwrap_or_default();
        }
    }
    found.retain(|_, events| *events > 0);
    equal("recorded events", &of_events, &found)
}

/// Checks that no two LWPs run on one CPU at the same time.
fn check_lwp_states(trace: &Path) -> Result<(), String> {
    let table = Table::read(trace, "lwp_states");
    let (starts, lengths, cpus) = (known(&table, "ts_tick"), table.numbers("dur_tick"), table.numbers("cpu"));
    let states = table.lines(&["state"]);
    let running = (0..starts.len()).filter(|row| states[*row] == "running");
    let interval = |row: usize| (cpus[row], starts[row], starts[row] + lengths[row].unwrap_or(0) as u64);
    let mut running: Vec<_> = running.map(interval).collect();
    running.sort_unstable();
    let overlap = running.windows(2).find(|w| w[0].0 == w[1].0 && w[0].2 > w[1].1);
    equal("two LWPs on one CPU (cpu, from, to)", &None, &overlap)
}

fn check_cpus(trace: &Path, answer: &Answer) -> Result<(), String> {
    let table = Table::read(trace, "cpus");
    let columns = ["cpu", "busy_tick", "idle_tick"].map(|name| known(&table, name));
    for row in 0..columns[0].len() {
        let [cpu, busy, idle] = columns.each_ref().map(|column| column[row]);
        let expected = answer.cpus.get(&(cpu as u32)).copied().unwrap_or_default();
        equal(&format!("CPU {cpu}: busy and idle time"), &expected, &(busy, idle))?;
    }
    Ok(())
}

/// A column without NULLs, of numbers that are not negative.
fn known(table: &Table, column: &str) -> Vec<u64> {
    let number = |n: Option<i64>| n.and_then(|n| u64::try_from(n).ok());
    table
        .numbers(column)
        .into_iter()
        .map(|n| number(n).unwrap_or_else(|| panic!("{column}: {n:?}")))
        .collect()
}

fn first_difference<T: PartialEq>(expected: &[T], found: &[T]) -> Option<usize> {
    (0..expected.len().max(found.len())).find(|place| expected.get(*place) != found.get(*place))
}

fn equal<T: PartialEq + std::fmt::Debug>(what: &str, expected: &T, found: &T) -> Result<(), String> {
    if expected == found { Ok(()) } else { Err(format!("{what}: expected {expected:?}, found {found:?}")) }
}

/// The lines around a line, which is marked.
fn neighbourhood(lines: &[String], place: usize) -> String {
    let around = place.saturating_sub(6)..(place + 4).min(lines.len());
    let mark = |line| if line == place { ">" } else { " " };
    around.map(|line| format!("{} {}", mark(line), lines[line])).collect::<Vec<_>>().join("\n")
}
