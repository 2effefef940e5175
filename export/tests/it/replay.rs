//! A replay emits the contents of the tables.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
    sync::Arc,
};

use arrow::{array::AsArray, datatypes::Int64Type};
use sigmund_export::{
    replay::{Replayed, read_actors, replay},
    timeline::{Actors, LwpId, Team, ThreadId, Track},
};
use sigmund_merge::{MergeOptions, merge};
use sigmund_model::{Level, WaitKind};
use sigmund_query::Filter;
use sigmund_sql::SuperTrace;

use crate::{tally::Tally, waits};

/// The paper's listing, and a kernel trace of a shell's loop.
const INPUTS: [&str; 2] = ["paper/figure2.tsv", "small-tsc-v7-zstd.dat"];

async fn open(folder: &Path, input: &str) -> SuperTrace {
    let input = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/fixtures").join(input);
    let out = folder.join("t.supertrace");
    merge(&[input], &out, &MergeOptions { force: true, ..MergeOptions::default() }, |_| {}).unwrap();
    SuperTrace::open(out).await.unwrap()
}

async fn replayed(trace: &SuperTrace, filter: &Filter) -> (Arc<Actors>, Tally, Replayed) {
    let actors = Arc::new(read_actors(trace, filter).await.unwrap());
    let mut tally = Tally::default();
    let replayed = replay(trace, filter, &actors, &mut tally, |_, _| Ok(())).await.unwrap();
    (actors, tally, replayed)
}

/// `(number, state) -> ticks` by SQL.
async fn sums(trace: &SuperTrace, query: &str) -> BTreeMap<(i64, String), u64> {
    let mut sums = BTreeMap::new();
    for batch in trace.sql(query).await.unwrap().collect().await.unwrap() {
        let (who, ticks) =
            (batch.column(0).as_primitive::<Int64Type>(), batch.column(2).as_primitive::<Int64Type>());
        for row in 0..batch.num_rows() {
            let state = batch.column(1).as_string::<i32>().value(row).to_string();
            sums.insert((who.value(row), state), ticks.value(row) as u64);
        }
    }
    sums
}

/// The same sums from a tally, of user threads or of LWPs.
fn emitted_sums(actors: &Actors, tally: &Tally, threads: bool) -> BTreeMap<(i64, String), u64> {
    let mut labels: BTreeMap<String, i64> = BTreeMap::new();
    if threads {
        let number = |id: ThreadId| actors[id].thread.0 as i64;
        labels.extend(actors.thread_ids().map(|id| (format!("{:?}", Track::Thread(id)), number(id))));
    } else {
        let number = |id: LwpId| actors[id].lwp.0.into();
        labels.extend(actors.lwp_ids().map(|id| (format!("{:?}", Track::Lwp(id)), number(id))));
    }
    let mut sums = BTreeMap::new();
    for ((track, state), ticks) in &tally.ticks_in_state {
        if let Some(number) = labels.get(track) {
            *sums.entry((*number, (*state).to_string())).or_default() += ticks;
        }
    }
    sums
}

/// Ticks of each user thread in each state, with the kind of wait.
const THREAD_STATES: &str = "SELECT thread, concat(CAST(state AS VARCHAR), CASE WHEN blocked_for IS NULL THEN '' ELSE \
     concat(' (', CAST(blocked_for AS VARCHAR), ')') END) AS doing, CAST(sum(dur_tick) AS BIGINT) FROM \
     raw_thread_states WHERE state <> 'exited' GROUP BY thread, doing";

#[tokio::test]
async fn kinds_of_waits_and_holds_of_locks_are_replayed() {
    let folder = tempfile::tempdir().unwrap();
    let listing = folder.path().join("waits.tsv");
    std::fs::write(&listing, waits::listing()).unwrap();
    let out = folder.path().join("t.supertrace");
    merge(&[listing], &out, &MergeOptions::default(), |_| {}).unwrap();
    let trace = SuperTrace::open(out).await.unwrap();
    let (actors, tally, of_all) = replayed(&trace, &Filter::default()).await;
    let by_threads = sums(&trace, THREAD_STATES).await;
    assert_eq!(emitted_sums(&actors, &tally, true), by_threads);
    let kinds: BTreeSet<&str> =
        by_threads.keys().filter_map(|(_, doing)| doing.strip_prefix("blocked")).collect();
    assert_eq!(kinds.len(), 1 + WaitKind::ALL.len(), "{kinds:?}");
    assert_eq!(tally.holds.values().sum::<u64>(), 2 * waits::ROUNDS);
    assert_eq!((of_all.holds, of_all.holds_without_end), (2 * waits::ROUNDS, 0));

    // In the middle: one or two locks are held when it begins, and when it ends.
    let (first, last) = (trace.first_tick().unwrap().0, trace.last_tick().unwrap().0);
    let at = |tick: u64| Some(tick.to_string().parse().unwrap());
    let filter = Filter { from: at(first + (last - first) / 3), to: at(last - 30), ..Filter::default() };
    let (_, tally, of_some) = replayed(&trace, &filter).await;
    let holds = tally.holds.values().sum::<u64>();
    assert!(of_some.holds == holds && 0 < holds && holds < 2 * waits::ROUNDS, "{of_some:?}");
}

// thread 1   |-fork 7------ member 2 -- member 3 -------------- join 7-|  fork 9 …
// thread 2                       |-fork 8-- member 4 -- join 8-|
#[tokio::test]
async fn teams_that_were_forked_and_joined_are_among_the_actors() {
    let lines = [
        "100\tUSER_CONTEXT_SWITCH\tnext=1",
        "110\tUSER_TEAM_FORK\tteam=7",
        "120\tUSER_THREAD_NEW\tnew=2",
        "130\tUSER_TEAM_MEMBER\tteam=7 member=2",
        "140\tUSER_CONTEXT_SWITCH\tnext=2",
        "150\tUSER_TEAM_FORK\tteam=8",
        "160\tUSER_THREAD_NEW\tnew=4",
        "170\tUSER_TEAM_MEMBER\tteam=8 member=4",
        // A member of a team whose fork is missing.
        "172\tUSER_TEAM_MEMBER\tteam=6 member=4",
        "180\tUSER_TEAM_JOIN\tteam=8",
        "190\tUSER_TEAM_JOIN\tteam=6",
        "200\tUSER_CONTEXT_SWITCH\tnext=1",
        "210\tUSER_THREAD_NEW\tnew=3",
        "220\tUSER_TEAM_MEMBER\tteam=7 member=3",
        "300\tUSER_TEAM_JOIN\tteam=7",
        // A team whose join is missing.
        "310\tUSER_TEAM_FORK\tteam=9",
    ];
    let folder = tempfile::tempdir().unwrap();
    let (listing, out) = (folder.path().join("teams.tsv"), folder.path().join("t.supertrace"));
    let line = |line: &str| {
        let (tick, rest) = line.split_once('\t').unwrap();
        format!("USER\t{tick}\t70\t0\t{rest}\n")
    };
    let text: String = lines.into_iter().map(line).collect();
    std::fs::write(&listing, format!("type\tdate_tick\tpid\tcpu\tname\tparams\n{text}")).unwrap();
    merge(&[listing], &out, &MergeOptions::default(), |_| {}).unwrap();
    let trace = SuperTrace::open(out).await.unwrap();

    let teams = |actors: &Actors| {
        let number = |id: &ThreadId| actors[*id].thread.0;
        let row = |team: &Team| {
            let members: Vec<u64> = team.members.iter().map(number).collect();
            (number(&team.by), team.forked.0, team.joined.0, members)
        };
        actors.teams.iter().map(row).collect::<Vec<_>>()
    };
    let of = async |filter| teams(&read_actors(&trace, &filter).await.unwrap());
    let (outer, inner) = ((1, 110, 300, vec![2, 3]), (2, 150, 180, vec![4]));
    assert_eq!(of(Filter::default()).await, [outer, inner.clone()]);
    // The outer team is not joined in this window.
    let at = |tick: u64| Some(tick.to_string().parse().unwrap());
    assert_eq!(of(Filter { from: at(145), to: at(250), ..Filter::default() }).await, [inner]);
    let of_some = |threads: [&str; 2]| Filter {
        threads: threads.iter().map(|thread| thread.parse().unwrap()).collect(),
        ..Filter::default()
    };
    assert_eq!(of(of_some(["1", "3"])).await, [(1, 110, 300, vec![3])]);
    assert_eq!(of(of_some(["3", "4"])).await, []);
    assert_eq!(of(Filter { level: Some(Level::Kern), ..Filter::default() }).await, []);
}

#[tokio::test]
async fn every_state_and_every_event_is_replayed() {
    let folder = tempfile::tempdir().unwrap();
    for input in INPUTS {
        let trace = open(folder.path(), input).await;
        let (actors, tally, replayed) = replayed(&trace, &Filter::default()).await;
        let states = |table: &str, who: &str| {
            format!(
                "SELECT CAST({who} AS BIGINT), CAST(state AS VARCHAR), CAST(sum(dur_tick) AS BIGINT) FROM {table} \
                 WHERE state <> 'exited' GROUP BY {who}, state"
            )
        };
        let by_threads = sums(&trace, THREAD_STATES).await;
        assert_eq!(emitted_sums(&actors, &tally, true), by_threads, "{input}");
        let by_lwps = sums(&trace, &states("raw_lwp_states", "lwp")).await;
        assert_eq!(emitted_sums(&actors, &tally, false), by_lwps, "{input}");
        assert!(!by_threads.is_empty() || !by_lwps.is_empty());

        let events = sums(&trace, "SELECT CAST(0 AS BIGINT), 'n', count(*) FROM events").await;
        assert_eq!(replayed.events, events[&(0, "n".into())], "{input}");
        assert_eq!((replayed.events, replayed.unknown_actors), (tally.events, 0), "{input}");
    }
}

#[tokio::test]
async fn system_calls_and_interrupts_of_a_kernel_trace_are_slices() {
    let folder = tempfile::tempdir().unwrap();
    let trace = open(folder.path(), "small-tsc-v7-zstd.dat").await;
    let (_, tally, replayed) = replayed(&trace, &Filter::default()).await;
    let count = |query: String| async move { sums(&trace, &query).await[&(0, "n".into())] };
    let entered =
        tally.slices.iter().filter(|((track, _), _)| track.starts_with("Lwp")).map(|(_, n)| n).sum::<u64>();
    let calls =
        count("SELECT CAST(0 AS BIGINT), 'n', count(*) FROM events WHERE name = 'sys_enter'".into()).await;
    assert_eq!(entered, calls);
    assert!(calls > 0 && tally.slices.keys().any(|(_, name)| name == "write"), "{:?}", tally.slices);
    assert!(tally.wakeups > 0);
    assert!(replayed.slices_without_end < replayed.events / 100, "{replayed:?}");
    assert_eq!(replayed.cut_slices, 0);
}

/// Replays a listing: columns type, date_tick, pid, cpu, name, params, by spaces.
async fn replay_listing(lines: &[&str]) -> (Tally, Replayed) {
    let folder = tempfile::tempdir().unwrap();
    let (listing, out) = (folder.path().join("l.tsv"), folder.path().join("t.supertrace"));
    let line = |line: &&str| format!("{}\n", line.splitn(6, ' ').collect::<Vec<_>>().join("\t"));
    let text: String = lines.iter().map(line).collect();
    std::fs::write(&listing, format!("type\tdate_tick\tpid\tcpu\tname\tparams\n{text}")).unwrap();
    merge(&[listing], &out, &MergeOptions::default(), |_| {}).unwrap();
    let trace = SuperTrace::open(out).await.unwrap();
    let (_, tally, replayed) = replayed(&trace, &Filter::default()).await;
    (tally, replayed)
}

fn left(tally: &Tally) -> Vec<(&str, u64, u64)> {
    tally.left.iter().map(|(name, begin, end)| (name.as_str(), *begin, *end)).collect()
}

// LWP 7   |-0--------------------------0-|   |-15--- -1|
//               exit of 1: not its own
#[tokio::test]
async fn an_exit_of_another_system_call_does_not_end_the_open_one() {
    let (tally, replayed) = replay_listing(&[
        "KERN 100 7 0 sys_enter id=0",
        "KERN 200 7 0 sys_exit id=1",
        "KERN 300 7 0 sys_exit id=0",
        "KERN 400 7 0 sys_enter id=15",
        // The kernel does not report which system call ended.
        "KERN 500 7 0 sys_exit id=-1",
        "KERN 600 7 0 sys_enter_read fd=3",
        "KERN 650 7 0 sys_exit_write ret=1",
        "KERN 700 7 0 sys_exit_read ret=1",
        "KERN 800 7 0 sys_enter id=0(read)",
        // The exit is missing: the call is known up to its LWP's last switch in it.
        "KERN 900 7 0 sys_enter id=1(write)",
        "KERN 950 7 0 sys_exit id=1(write)",
    ])
    .await;
    let expected =
        [("0", 100, 300), ("15", 400, 500), ("read", 600, 700), ("read", 800, 800), ("write", 900, 950)];
    assert_eq!(left(&tally), expected);
    assert_eq!((replayed.slices, replayed.slices_without_end), (5, 1));
}

// main  |--------------------------------|
// sort      |---------------|
//             |-PROF-|        another address in sort, the same function
#[tokio::test]
async fn functions_of_c_programs_are_slices() {
    let (tally, replayed) = replay_listing(&[
        "USER 100 7 0 FUNC_ENTER function=4096(main at sort.c:50) call_site=1",
        "USER 200 7 0 FUNC_ENTER function=8192(sort at sort.c:20) call_site=4100(main at sort.c:60)",
        "USER 210 7 0 PROF_IN function=8200(sort at sort.c:21)",
        "USER 290 7 0 PROF_OUT function=8300(sort at sort.c:29, main at sort.c:60)",
        "USER 300 7 0 FUNC_EXIT function=8192(sort at sort.c:20) call_site=4100(main at sort.c:60)",
        // Stripped: only addresses.
        "USER 310 7 0 PROF_IN function=9000",
        "USER 320 7 0 PROF_OUT function=9010",
        // Of a function that was entered before the trace began.
        "USER 330 7 0 PROF_OUT function=9900(before at sort.c:90)",
        "USER 400 7 0 FUNC_EXIT function=4096(main at sort.c:50) call_site=1",
    ])
    .await;
    let expected = [("sort", 210, 290), ("sort", 200, 300), ("?", 310, 320), ("main", 100, 400)];
    assert_eq!(left(&tally), expected);
    assert_eq!((replayed.slices, replayed.slices_without_end), (4, 0));
}

#[tokio::test]
async fn the_wakeup_of_a_new_lwp_is_replayed_without_a_waking() {
    let (tally, _) = replay_listing(&[
        "KERN 100 7 0 sched_wakeup_new pid=8 target_cpu=1",
        // Of an unknown actor.
        "KERN 200 7 0 sched_waking reason=1",
        "KERN 300 0 1 sched_switch prev_pid=0 prev_state=0 next_pid=8",
    ])
    .await;
    assert_eq!(tally.wakeups, 1);
}

#[tokio::test]
async fn a_window_cuts_states_and_a_thread_filter_leaves_the_others_out() {
    let folder = tempfile::tempdir().unwrap();
    let trace = open(folder.path(), "paper/figure2.tsv").await;
    let thread = trace.threads().unwrap().iter().next().expect("the paper has threads").0;
    let (first, last) = (trace.first_tick().unwrap().0, trace.last_tick().unwrap().0);
    let (from, to) = (first + (last - first) / 4, last - (last - first) / 4);
    let filter = Filter {
        threads: vec![thread.to_string().parse().unwrap()],
        from: Some(from.to_string().parse().unwrap()),
        to: Some(to.to_string().parse().unwrap()),
        ..Filter::default()
    };
    let (actors, tally, _) = replayed(&trace, &filter).await;
    assert_eq!((actors.clock.first.0, actors.clock.last.0), (from, to));
    assert!(actors.threads.iter().all(|actor| actor.thread == thread));
    let query = format!(
        "SELECT thread, CAST(state AS VARCHAR), CAST(sum(least(ts_tick + dur_tick, {to}) - greatest(ts_tick, {from})) \
         AS BIGINT) FROM raw_thread_states WHERE thread = {thread} AND state <> 'exited' AND ts_tick <= {to} AND \
         ts_tick + dur_tick >= {from} GROUP BY thread, state"
    );
    assert_eq!(emitted_sums(&actors, &tally, true), sums(&trace, &query).await);
    assert!(emitted_sums(&actors, &tally, false).is_empty());
}

#[tokio::test]
async fn actors_that_ended_before_a_window_are_not_counted_as_unknown() {
    let folder = tempfile::tempdir().unwrap();
    let trace = open(folder.path(), "small-tsc-v7-zstd.dat").await;
    let (first, last) = (trace.first_tick().unwrap().0, trace.last_tick().unwrap().0);
    // The first of the seven children ends after four fifths of the trace.
    let from = last - (last - first) / 10;
    let filter = Filter { from: Some(from.to_string().parse().unwrap()), ..Filter::default() };
    let (actors, _, of_window) = replayed(&trace, &filter).await;
    let (everybody, _, _) = replayed(&trace, &Filter::default()).await;
    assert!(actors.lwps.len() < everybody.lwps.len());
    assert_eq!(of_window.unknown_actors, 0);
}

#[tokio::test]
async fn the_kernel_level_has_no_user_threads_and_the_user_level_no_states_of_lwps() {
    let folder = tempfile::tempdir().unwrap();
    let trace = open(folder.path(), "paper/figure2.tsv").await;
    let kernel = Filter { level: Some(Level::Kern), ..Filter::default() };
    let (actors, tally, _) = replayed(&trace, &kernel).await;
    assert_eq!(actors.threads.len(), 0);
    assert!(tally.events > 0 && tally.ticks_in_state.keys().all(|(track, _)| track.starts_with("Lwp")));
    let user = Filter { level: Some(Level::User), ..Filter::default() };
    let (_, tally, _) = replayed(&trace, &user).await;
    assert!(tally.events > 0 && tally.ticks_in_state.keys().all(|(track, _)| track.starts_with("Thread")));
}
