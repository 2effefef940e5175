//! `locks`, drawn by hand, and on random machines against counting tick by tick.

use std::collections::{BTreeMap, BTreeSet};

use crate::support::damage::{label, some_damaged};
use crate::support::drawing::{Drawing, listing};
use crate::support::{LWPS, Now, TICKS, number, tid};
use sigmund_measures::{By, Context, History, Interval, Request, Wakeup, named};
use sigmund_model::{LwpState, ThreadState, WaitKind};

const SUMS: &str =
    "kind call_site requests contended wait_tick longest_wait_tick holds hold_tick longest_hold_tick holders";
const CONVOY: &str = "call_site waited_tick holder_active_tick convoy_tick holder_unknown_tick no_holder_tick lock_convoy_tick holder_state holder_state_tick culprit culprit_tick";

fn ask(history: &History, request: &Request) -> sigmund_measures::Answer {
    named("locks").unwrap().answer(history, request).unwrap()
}

//          0    10   15   20        35   40   50   60   70   75   78   85   95  100
// thread 1 |active        |stalled       |act |kern|unkn|active on 102             |
// holds         |=====================================.....|
// CPU 0    |LWP 101       |LWP 109  |idle|101 |idle
// thread 2 |active   |blocked                                |rdy  |active           |
// holds              |waits                                     |====|
// thread 3 |active             |blocked (from 30)                    |active        |
// holds                        |waits                                |=======|
fn drawn() -> Drawing {
    use ThreadState::*;
    let mut drawing = Drawing::default();
    let one = [
        (0, Active, Some(101)),
        (20, Stalled, Some(101)),
        (40, Active, Some(101)),
        (50, InKernel, Some(101)),
        (60, Unknown, None),
        (70, Active, Some(102)),
    ];
    drawing.thread(1, "one", &one, 100);
    let two = [(0, Active, Some(103)), (15, Blocked, None), (76, Ready, None), (78, Active, Some(103))];
    drawing.thread(2, "two", &two, 100);
    drawing.thread(3, "three", &[(0, Active, Some(104)), (30, Blocked, None), (85, Active, Some(104))], 100);
    drawing.thread(9, "hog", &[(0, Ready, None), (20, Active, Some(109)), (35, Blocked, None)], 100);
    use LwpState::{Runnable, Running, Sleeping};
    let carries =
        [(0, Running, 0), (20, Runnable, 0), (40, Running, 0), (50, Sleeping, 0), (60, LwpState::Unknown, 0)];
    drawing.lwp(101, "pool/1", &carries, 100);
    drawing.lwp(102, "pool/2", &[(70, Running, 1)], 100);
    drawing.lwp(109, "pool/9", &[(0, Sleeping, 0), (20, Running, 0), (35, Sleeping, 0)], 100);
    drawing.lwp(120, "plain", &[(0, Running, 2), (20, Sleeping, 2), (50, Running, 2)], 100);
    drawing.lwp(0, "idle", &[(35, Running, 0)], 40);
    drawing.call(101, Some(1), "read", (48, 61), 0);
    drawing.mutex(1, 0x5000, (10, 0, 65), "main at m.c:1");
    drawing.mutex(2, 0x5000, (15, 63, 7), "work at w.c:2");
    drawing.mutex(3, 0x5000, (30, 55, 10), "work at w.c:2");
    drawing
}

#[test]
fn a_convoy_is_when_the_holder_does_not_run_while_others_wait() {
    let history = drawn().build(100);
    let all = ask(&history, &Request::default());
    assert_eq!(
        listing(&all, SUMS),
        ["mutex work at w.c:2 2 2 118 63 2 17 10 2", "mutex main at m.c:1 1 0 0 0 1 65 65 1"]
    );
    // Thread 1 is active in 15..20, 40..50, 70..75, thread 2 in 78..85; nobody has it in 75..78.
    assert_eq!(
        listing(&all, CONVOY),
        [
            "work at w.c:2 70 27 30 10 3 30 stalled 20 9(hog) 15",
            "main at m.c:1 0 0 0 0 0 30 stalled 20 9(hog) 15"
        ]
    );
    let window = Request { window: Interval::new(30, 60), ..Request::default() };
    let cut = ask(&history, &window);
    assert_eq!(
        listing(&cut, SUMS),
        ["mutex work at w.c:2 2 2 60 30 0 - - 2", "mutex main at m.c:1 1 0 0 0 1 30 30 1"]
    );
    // Stalled in 30..40, in-kernel in 50..60.
    assert_eq!(listing(&cut, CONVOY)[0], "work at w.c:2 30 10 20 0 0 20 in-kernel 10 read 10");
}

// thread 1 |active|waits for 0x6000|active|sleeps|active|sleeps|active|
// holds    |====================================================|
// thread 2   |blocked, waits                                    |active|
//          0 5    20               30     35     42     44     51     60
#[test]
fn a_holder_that_sleeps_until_different_instants_sleeps_all_the_same() {
    use ThreadState::{Active, Blocked};
    let mut drawing = Drawing::default();
    drawing.thread(1, "one", &[(0, Active, Some(101))], 20);
    drawing.waits(1, (20, 30), WaitKind::Mutex, 0x6000);
    drawing.thread(1, "one", &[(30, Active, Some(101))], 35);
    drawing.waits(1, (35, 42), WaitKind::Sleep, 123_456_742);
    drawing.thread(1, "one", &[(42, Active, Some(101))], 44);
    drawing.waits(1, (44, 51), WaitKind::Sleep, 123_456_751);
    drawing.thread(1, "one", &[(51, Active, Some(101))], 60);
    drawing.thread(2, "two", &[(5, Blocked, None), (60, Active, Some(102))], 70);
    drawing.mutex(1, 0x5000, (0, 0, 60), "main at m.c:1");
    drawing.mutex(2, 0x5000, (5, 55, 7), "work at w.c:2");
    let answer = ask(&drawing.build(70), &Request::default());
    assert_eq!(
        listing(&answer, "convoy_tick holder_state holder_state_tick culprit culprit_tick")[0],
        "24 blocked 24 sleep 14"
    );
}

#[test]
fn holders_that_are_not_known_make_no_convoy() {
    let mut drawing = drawn();
    drawing.edit().locks.clear();
    drawing.lock("futex", (None, Some(120)), 0x6000, (20, 30, None), None);
    let answer = ask(&drawing.build(100), &Request::default());
    assert_eq!(listing(&answer, SUMS), ["futex - 1 1 30 30 0 - - -"]);
    assert_eq!(listing(&answer, CONVOY), ["- 30 - - - - - - - - -"]);
}

// Thread 1 holds the lock from 10 to 70, and is ready in 30..60; thread 2 waits for it in 20..70.
// LWP 101  |thread 1     |thread 9    |asleep   |thread 1
//          0             30           50        60       100
// LWP 102  |thread 8 ...                                 |       LWP 103 never carries a thread
#[test]
fn the_culprit_of_a_ready_holder_is_what_the_lwps_carried() {
    use ThreadState::{Active, Blocked, Ready};
    let mut drawing = Drawing::default();
    drawing.thread(1, "one", &[(0, Active, Some(101)), (30, Ready, None), (60, Active, Some(101))], 100);
    drawing.thread(2, "two", &[(0, Ready, None), (20, Blocked, None)], 100);
    drawing.thread(8, "eight", &[(0, Active, Some(102))], 100);
    drawing.thread(9, "nine", &[(0, Ready, None), (30, Active, Some(101)), (50, Ready, None)], 100);
    use LwpState::{Running, Sleeping};
    drawing.lwp(101, "pool/1", &[(0, Running, 0), (50, Sleeping, 0), (60, Running, 0)], 100);
    drawing.lwp(102, "pool/2", &[(0, Running, 1)], 100);
    drawing.lwp(103, "pool/3", &[(0, Sleeping, 1)], 100);
    drawing.mutex(1, 0x5000, (10, 0, 60), "main at m.c:1");
    drawing.mutex(2, 0x5000, (20, 50, 10), "work at w.c:2");
    let history = drawing.build(100);
    // Of 30 ticks on two LWPs, thread 8 had half.
    let columns = "lock_convoy_tick holder_state holder_state_tick culprit culprit_tick";
    assert_eq!(listing(&ask(&history, &Request::default()), columns)[0], "30 ready 30 8(eight) 15");
}

// LWP 120  |running|futex: asleep        |runnable|running|   exit at 40; woken at 28 by thread 1 on LWP 101
// LWP 121  |running|futex: asleep                     |running|   exit at 60; woken at 50 by a timer
//          0       20                    28       35  50
#[test]
fn a_futex_has_a_waker() {
    let mut drawing = drawn();
    drawing.edit().locks.clear();
    for (lwp, wait) in [(120, 20), (121, 40), (122, 30)] {
        drawing.lock("futex", (None, Some(lwp)), i64::from(lwp), (20, wait, None), None);
    }
    let wakeup = |tick, lwp, context, latency| Wakeup {
        tick,
        is_unpark: false,
        context,
        waker_lwp: Some(101),
        waker_thread: (context == Context::Task).then_some(1),
        lwp: Some(lwp),
        thread: None,
        cpu: Some(0),
        target_cpu: None,
        latency,
    };
    drawing.edit().wakeups = vec![
        wakeup(28, 120, Context::Task, Some(7)),
        wakeup(50, 121, Context::Irq, Some(2)),
        // Before the wait, after it, and of no effect.
        wakeup(15, 122, Context::Task, Some(2)),
        wakeup(49, 122, Context::Task, Some(2)),
        wakeup(30, 122, Context::Task, None),
    ];
    let answer = ask(&drawing.build(100), &Request::default());
    assert_eq!(listing(&answer, "object waker waker_tick"), ["121 irq 40", "122 - -", "120 1(one) 20"]);
}

#[test]
fn a_lock_of_the_kernel_is_of_no_process_and_blocks_no_user_thread() {
    let mut drawing = drawn();
    drawing.edit().locks.clear();
    for (kind, from) in [("rwlock-write", 20), ("kernel-rwsem-write", 25)] {
        drawing.lock(kind, (Some(2), Some(103)), 0x6000, (from, 20, None), Some("mmap"));
    }
    let history = drawing.build(100);
    let mut rows = listing(&ask(&history, &Request::default()), "process kind call_site contended wait_tick");
    rows.sort();
    assert!(rows[0].starts_with("- kernel-rwsem-write mmap 1 20"), "{rows:?}");
    assert!(rows[1].ends_with(" rwlock-write mmap 1 20"), "{rows:?}");
    let (_, place) = history.lock_waits.of(2).before(40).unwrap();
    assert_eq!(history.words.text(history.locks[*place as usize].kind), "rwlock-write");
}

// A writer waits in 16..30; reader 1 is active until 20, then stalled; reader 2 is blocked.
#[test]
fn of_several_readers_one_that_runs_is_enough() {
    let mut drawing = drawn();
    drawing.edit().locks.clear();
    drawing.lock("rwlock-read", (Some(1), Some(101)), 0x7000, (10, 0, Some(40)), None);
    drawing.lock("rwlock-read", (Some(2), Some(103)), 0x7000, (12, 0, Some(28)), None);
    drawing.lock("rwlock-write", (Some(3), Some(104)), 0x7000, (16, 14, Some(1)), None);
    let history = drawing.build(100);
    let answer = ask(&history, &Request::default());
    assert_eq!(listing(&answer, CONVOY)[0], "- 14 4 10 0 0 10 stalled 10 9(hog) 10");
    // Grouped by name, and selected by thread: the holders are known all the same.
    let request = Request { by: Some(By::Name), threads: Some([3].into()), ..Request::default() };
    assert_eq!(listing(&ask(&history, &request), "name convoy_tick culprit"), ["three 10 hog"]);
    let subject = |subject: &str| Request { subject: Some(subject.into()), ..Request::default() };
    assert_eq!(ask(&history, &subject("0x7000")).rows.len(), 2);
    assert_eq!(ask(&history, &subject("28672")).rows.len(), 2);
    assert_eq!(ask(&history, &subject("0x7001")).rows.len(), 0);
}

/// What the holder of a lock does at a tick.
enum Holder {
    Nobody,
    Active,
    Unknown,
    Off(String, Option<String>),
}

fn holder(history: &History, ticks: &[Now], tick: i64, object: i64, of_lwps: bool) -> Holder {
    let now = &ticks[tick as usize];
    let is_hold = |lock: &&sigmund_measures::LockRequest| {
        lock.object == object && lock.hold.is_some_and(|hold| hold > 0)
    };
    let span = |lock: &sigmund_measures::LockRequest| {
        let acquired = lock.tick + lock.wait.unwrap();
        (acquired, acquired + lock.hold.unwrap())
    };
    let mut all: Vec<_> = history.locks.iter().filter(is_hold).collect();
    all.sort_by_key(|lock| span(lock).0);
    let held = all.into_iter().filter(|lock| {
        let (acquired, released) = span(lock);
        acquired <= tick && tick < released
    });
    let (mut first, mut is_unknown) = (Holder::Nobody, false);
    for lock in held {
        let lwp_of = |lwp: usize| now.lwps[lwp];
        let (state, lwp) = match lock.thread {
            Some(thread) => {
                let stay = now.threads[thread as usize - 1];
                (stay.state.name(), stay.lwp)
            }
            None => {
                let lwp = lock.lwp.unwrap() as usize - 100;
                (lwp_of(lwp).state.name(), Some(lwp))
            }
        };
        if state == "active" || state == "running" {
            return Holder::Active;
        }
        if state == "unknown" || state == "mounted" {
            is_unknown = true;
            continue;
        }
        let call = |lwp: usize| {
            let of = |call: &&sigmund_measures::Syscall| call.lwp == tid(lwp) && call.interval.contains(tick);
            history.syscalls.iter().find(of).map(|call| history.words.text(call.name).to_string())
        };
        let culprit = match (state, lwp) {
            ("stalled" | "runnable", Some(lwp)) => Some(label(ticks, lwp_of(lwp).cpu, tick, of_lwps)),
            ("in-kernel" | "sleeping", Some(lwp)) => call(lwp),
            ("blocked", _) => {
                let stay = now.threads[lock.thread.unwrap() as usize - 1];
                let kind = stay.waits_for.unwrap();
                match kind {
                    WaitKind::Sleep => Some(kind.name().to_string()),
                    _ => Some(format!("{} {}", kind.name(), stay.object)),
                }
            }
            _ => None,
        };
        if let Holder::Nobody = first {
            first = Holder::Off(state.into(), culprit);
        }
    }
    if is_unknown { Holder::Unknown } else { first }
}

#[test]
fn convoys_are_those_of_counting_every_tick() {
    let mut unknown = 0;
    for seed in 0..300 {
        let (ticks, mut history) = some_damaged(seed).history();
        crate::support::locks::add_locks(&mut history, seed);
        let window = if seed % 2 == 0 { Interval::ALL } else { Interval::new(37, 311) };
        let lwps: Option<BTreeSet<u32>> = (seed / 2 % 3 == 0).then(|| [100, 102].into());
        let request = Request { window, lwps: lwps.clone(), ..Request::default() };
        // Of selected LWPs culprits are LWPs.
        let of_lwps = lwps.is_some();
        let words = &history.words;
        let asked: Vec<_> = history
            .locks
            .iter()
            .filter(|lock| lwps.as_ref().is_none_or(|lwps| lwps.contains(&lock.lwp.unwrap())))
            .collect();
        let key = |lock: &sigmund_measures::LockRequest| {
            let site = lock.call_site.map_or("-", |site| words.text(site));
            format!("{} {} {site}", lock.object, words.text(lock.kind))
        };
        // By row: of waits that overlap once, those of a holder active, not active, unknown, none; and waits and holds.
        let mut rows: BTreeMap<String, [i64; 7]> = BTreeMap::new();
        let mut convoys: BTreeMap<i64, i64> = BTreeMap::new();
        let mut states: BTreeMap<(i64, String), i64> = BTreeMap::new();
        let mut culprits: BTreeMap<(i64, String, Option<String>), i64> = BTreeMap::new();
        // What LWPs carried while the holder was ready.
        let mut had_lwps: BTreeMap<(i64, String), i64> = BTreeMap::new();
        let inside = |tick: &i64| window.contains(*tick);
        let carries = |lwp: &usize| {
            (0..TICKS).filter(inside).any(|tick| ticks[tick as usize].lwps[*lwp].carries.is_some())
        };
        let carriers: Vec<usize> = (0..LWPS).filter(carries).collect();
        for tick in (0..TICKS).filter(|tick| window.contains(*tick)) {
            for object in [0x10, 0x11, 0x20] {
                let now = &ticks[tick as usize];
                let waits = asked.iter().filter(|lock| {
                    lock.object == object && lock.tick <= tick && tick < lock.tick + lock.wait.unwrap()
                });
                let mut seen = BTreeSet::new();
                let does = holder(&history, &ticks, tick, object, of_lwps);
                for lock in waits {
                    let row = rows.entry(key(lock)).or_default();
                    row[5] += 1;
                    if seen.insert(key(lock)) {
                        row[match does {
                            Holder::Active => 1,
                            Holder::Off(..) => 2,
                            Holder::Unknown => 3,
                            Holder::Nobody => 4,
                        }] += 1;
                        row[0] += 1;
                    }
                }
                if let (false, Holder::Off(state, culprit)) = (seen.is_empty(), does) {
                    *convoys.entry(object).or_default() += 1;
                    *states.entry((object, state.clone())).or_default() += 1;
                    for lwp in carriers.iter().map(|lwp| now.lwps[*lwp]).filter(|_| state == "ready") {
                        let label = match (lwp.carries, lwp.state) {
                            (Some(thread), _) => format!("{}(work/{thread})", number(thread)),
                            (None, LwpState::Running) => "LWP without a thread".into(),
                            (None, LwpState::Runnable) => "LWP stalled".into(),
                            (None, LwpState::Unknown) => "unknown".into(),
                            (None, _) => "LWP asleep".into(),
                        };
                        *had_lwps.entry((object, label)).or_default() += 1;
                    }
                    *culprits.entry((object, state, culprit)).or_default() += 1;
                }
                for lock in asked.iter().filter(|lock| lock.object == object) {
                    let acquired = lock.tick + lock.wait.unwrap();
                    if lock.hold.is_some_and(|hold| acquired <= tick && tick < acquired + hold) {
                        rows.entry(key(lock)).or_default()[6] += 1;
                    }
                }
            }
        }
        let answer = ask(&history, &request);
        let found = listing(
            &answer,
            "object kind call_site waited_tick holder_active_tick convoy_tick holder_unknown_tick no_holder_tick wait_tick hold_tick",
        );
        let found: BTreeSet<String> = found.iter().map(|row| row.replace(" -", " 0")).collect();
        for (key, sums) in &rows {
            let mut sums = *sums;
            unknown += sums[3];
            if sums[1] + sums[2] + sums[3] == 0 {
                // No holder is known: NULL, unless nobody waited.
                sums[4] = 0;
            }
            let row = sums.iter().fold(key.clone(), |row, sum| format!("{row} {sum}"));
            let row = row.replace(" -", " 0");
            assert!(found.contains(&row), "seed {seed}: {row}\n{found:#?}");
        }
        let main = "object lock_convoy_tick holder_state_tick culprit_tick";
        for row in listing(&answer, &format!("{main} holder_state culprit")) {
            let cells: Vec<&str> = row.splitn(6, ' ').collect();
            let object: i64 = cells[0].parse().unwrap();
            let Some(convoy) = convoys.get(&object) else { continue };
            assert_eq!(cells[1], convoy.to_string(), "seed {seed}: {row}");
            let state = cells[4].to_string();
            let most = states.iter().filter(|((of, _), _)| *of == object).map(|(_, ticks)| *ticks).max();
            assert_eq!(states.get(&(object, state.clone())).copied(), most, "seed {seed}: {row}");
            assert_eq!(most.unwrap().to_string(), cells[2], "seed {seed}: {row}");
            if state == "ready" {
                let of_lock =
                    || had_lwps.iter().filter(|((of, _), _)| *of == object).map(|(_, ticks)| *ticks);
                let (sum, largest) = (of_lock().sum::<i64>(), of_lock().max().unwrap());
                assert_eq!(had_lwps[&(object, cells[5].to_string())], largest, "seed {seed}: {row}");
                let share = largest * most.unwrap() / sum;
                assert!((share..=share + 1).contains(&cells[3].parse().unwrap()), "seed {seed}: {row}");
                continue;
            }
            let of_state = culprits.iter().filter(|((of, is, _), _)| *of == object && *is == state);
            let (culprit, most) = (cells[5], of_state.map(|(_, ticks)| *ticks).max());
            let culprit = (culprit != "-").then(|| culprit.to_string());
            let share = culprits.get(&(object, state, culprit.clone())).copied();
            assert_eq!(share, most, "seed {seed}: {row}");
            if culprit.is_some() {
                assert_eq!(cells[3], most.unwrap().to_string(), "seed {seed}: {row}");
            }
        }
        // What is waited is known exactly to be one of these.
        for row in
            listing(&answer, "waited_tick holder_active_tick convoy_tick holder_unknown_tick no_holder_tick")
        {
            if let Ok(cells) = row.split(' ').map(str::parse).collect::<Result<Vec<i64>, _>>() {
                assert_eq!(cells[0], cells[1..].iter().sum::<i64>(), "seed {seed}");
            }
        }
    }
    assert!(unknown > 500, "{unknown}");
}
