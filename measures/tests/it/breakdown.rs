//! `breakdown`, drawn by hand, and on random machines against counting tick by tick.

use std::collections::{BTreeMap, BTreeSet};

use crate::support::drawing::{Drawing, listing};
use crate::support::slow_walk::{damage, mix};
use crate::support::{LWPS, Machine, THREADS, TICKS, number, tid};
use sigmund_measures::{Answer, By, EventAt, Fault, History, Interval, Request, Syscall, named};
use sigmund_model::{EndReason, LwpState, ThreadState};

const COLUMNS: &str = "what which count part_tick total_tick on_cpu_tick longest_tick errors";

fn ask(history: &History, request: &Request) -> Answer {
    named("breakdown").unwrap().answer(history, request).unwrap()
}

//          0      10    20    30    40    50   58 60  70 72 75   80     90     95   98  100
// thread 1 |active            |stalled|active   |kern |active  |blocked|unknown|active on 102
// LWP 101  |             |read             |    |futex  |  getpid of length 0
// LWP 102                                                                           |write
// CPU 0          |disk 10..14, in it net 11..12|disk 45..47
fn drawn() -> History {
    use ThreadState::*;
    let mut drawing = Drawing::default();
    let states = [
        (0, Active, Some(101)),
        (30, Stalled, Some(101)),
        (40, Active, Some(101)),
        (60, InKernel, Some(101)),
        (70, Active, Some(101)),
        (80, Blocked, None),
        (90, Unknown, None),
        (95, Active, Some(102)),
    ];
    drawing.thread(1, "one", &states, 100);
    use LwpState::{Runnable, Running, Sleeping};
    let of_101 = [
        (0, Running, 0),
        (30, Runnable, 0),
        (40, Running, 0),
        (60, Sleeping, 0),
        (70, Running, 0),
        (80, Sleeping, 0),
    ];
    drawing.lwp(101, "pool/1", &of_101, 100);
    drawing.lwp(102, "pool/2", &[(0, Sleeping, 1), (95, Running, 1)], 100);
    drawing.call(101, Some(1), "read", (20, 50), -11);
    drawing.call(101, Some(1), "futex", (58, 72), 0);
    drawing.call(101, Some(1), "getpid", (75, 75), -4096);
    drawing.call(102, Some(1), "write", (98, 100), -5);
    drawing.edit().syscalls.last_mut().unwrap().end = EndReason::TraceEnd;
    drawing.interrupt("disk", (10, 14), 0);
    drawing.interrupt("net", (11, 12), 1);
    // While the thread is stalled: not from it.
    drawing.interrupt("disk", (35, 36), 0);
    drawing.interrupt("disk", (45, 47), 0);
    drawing.build(100)
}

#[test]
fn parts_of_a_life_are_disjoint() {
    let history = drawn();
    // User: 0..20 without 4 of interrupts, 50..58, 72..75, 75..80, 95..98.
    assert_eq!(
        listing(&ask(&history, &Request::default()), COLUMNS),
        [
            "user - 5 35 35 35 16 -",
            "syscall read 1 28 30 20 30 1",
            "syscall futex 1 14 14 4 14 0",
            "blocked - 1 10 10 0 10 -",
            "interrupt disk 2 5 5 5 3 -",
            "unknown - 1 5 5 0 5 -",
            "syscall write 1 2 2 2 2 0",
            "interrupt net 1 1 1 1 1 -",
            "syscall getpid 1 0 0 0 0 0",
        ]
    );
    let cut = Request { window: Interval::new(35, 65), by: Some(By::Process), ..Request::default() };
    assert_eq!(
        listing(&ask(&history, &cut), &format!("pid {COLUMNS} percent")),
        [
            "70 syscall read 1 13 15 10 15 1 43.3",
            "70 user - 1 8 8 8 8 - 26.7",
            "70 syscall futex 1 7 7 2 7 0 23.3",
            "70 interrupt disk 1 2 2 2 2 - 6.7",
        ]
    );
    let of_lwp = Request { lwps: Some([102].into()), ..Request::default() };
    assert_eq!(
        listing(&ask(&history, &of_lwp), COLUMNS),
        ["sleeping - 1 95 95 0 95 -", "user - 1 3 3 3 3 -", "syscall write 1 2 2 2 2 0"]
    );
    let on_cpu = Request { cpus: Some([1].into()), by: Some(By::Thread), ..Request::default() };
    assert_eq!(
        listing(&ask(&history, &on_cpu), COLUMNS),
        ["user - 1 3 3 3 3 -", "syscall write 1 2 2 2 2 0"]
    );
}

// thread 1 |active|unknown, on 101|active|unknown on no LWP|active on 101|
// LWP 101    |read                  |    |poll                    |
//          0 5    10              20    25 30              40     45    50
// The trace has lost what the LWP did from 10 to 20, too.
#[test]
fn a_call_is_as_long_as_it_was_also_where_the_state_is_unknown() {
    use ThreadState::{Active, Unknown};
    let mut drawing = Drawing::default();
    let states = [
        (0, Active, Some(101)),
        (10, Unknown, Some(101)),
        (20, Active, Some(101)),
        (30, Unknown, None),
        (40, Active, Some(101)),
    ];
    drawing.thread(1, "one", &states, 50);
    let of_101 = [(0, LwpState::Running, 0), (10, LwpState::Unknown, 0), (20, LwpState::Running, 0)];
    drawing.lwp(101, "pool/1", &of_101, 50);
    drawing.call(101, Some(1), "getpid", (12, 13), 0);
    drawing.call(101, Some(1), "read", (5, 12), 0);
    drawing.call(101, Some(1), "futex", (13, 22), 0);
    drawing.call(101, Some(1), "poll", (25, 45), -4);
    let history = drawing.build(50);
    assert_eq!(
        listing(&ask(&history, &Request::default()), &format!("{COLUMNS} percent")),
        [
            "unknown - 2 20 20 0 10 - 40.0",
            "user - 3 13 13 13 5 - 26.0",
            // Where no LWP is known, no call is.
            "syscall poll 1 10 10 10 10 1 20.0",
            "syscall read 1 5 7 5 7 0 10.0",
            "syscall futex 1 2 9 2 9 0 4.0",
            "syscall getpid 1 0 1 0 1 0 0.0",
        ]
    );
    let by_lwp = Request { by: Some(By::Lwp), window: Interval::new(8, 30), ..Request::default() };
    assert_eq!(
        listing(&ask(&history, &by_lwp), COLUMNS),
        [
            "unknown - 1 10 10 0 10 -",
            "syscall poll 1 5 5 5 5 1",
            "user - 1 3 3 3 3 -",
            "syscall futex 1 2 9 2 9 0",
            "syscall read 1 2 4 2 4 0",
            "syscall getpid 1 0 1 0 1 0",
        ]
    );
}

#[test]
fn page_faults_are_counted_where_they_occurred() {
    let mut history = drawn();
    let fault = |tick, lwp, thread, is_user| Fault {
        at: EventAt::new(tick, Some(lwp), Some(lwp - 101), thread),
        is_user,
    };
    history.faults = vec![
        fault(5, 101, Some(1), true),
        fault(6, 101, Some(1), true),
        fault(25, 101, Some(1), false),
        fault(97, 102, Some(1), true),
        // On an LWP that carries no user thread.
        fault(98, 102, None, true),
    ];
    let faults = |request: &Request| {
        let rows = listing(&ask(&history, request), &format!("{COLUMNS} percent"));
        rows.into_iter().filter(|row| row.starts_with("fault")).collect::<Vec<_>>()
    };
    assert_eq!(faults(&Request::default()), ["fault kernel 1 0 - - - - 0.0", "fault user 3 0 - - - - 0.0"]);
    let cut = Request { window: Interval::new(6, 97), ..Request::default() };
    assert_eq!(faults(&cut), ["fault kernel 1 0 - - - - 0.0", "fault user 1 0 - - - - 0.0"]);
    let on_one = Request { cpus: Some([1].into()), ..Request::default() };
    assert_eq!(faults(&on_one), ["fault user 1 0 - - - - 0.0"]);
    let of_lwp = Request { lwps: Some([102].into()), by: Some(By::Lwp), ..Request::default() };
    assert_eq!(faults(&of_lwp), ["fault user 2 0 - - - - 0.0"]);
}

#[test]
fn page_faults_of_lwps_and_selected_threads_are_those_while_one_was_carried() {
    let mut history = drawn();
    let fault = |tick, lwp, cpu| Fault { at: EventAt::new(tick, Some(lwp), Some(cpu), None), is_user: true };
    // LWP 101 carries the thread until 80, LWP 102 from 95 on.
    history.faults =
        vec![fault(5, 101, 0), fault(79, 101, 0), fault(80, 101, 0), fault(94, 102, 1), fault(95, 102, 1)];
    let request = Request { by: Some(By::Lwp), threads: Some([1].into()), ..Request::default() };
    let rows = listing(&ask(&history, &request), "lwp what count");
    let faults: Vec<_> = rows.into_iter().filter(|row| row.contains("fault")).collect();
    assert_eq!(faults, ["101 fault 2", "102 fault 1"]);
    let nobody = Request { threads: Some([7].into()), ..request };
    assert_eq!(listing(&ask(&history, &nobody), "lwp what count"), Vec::<String>::new());
}

#[derive(Default)]
struct Expected {
    part: i64,
    total: i64,
    on_cpu: i64,
    /// By its place, and which of the calls of a thread it is: one that goes on elsewhere meanwhile comes back to another.
    calls: BTreeMap<(usize, usize), i64>,
}

/// Gaps in which the states of mounted threads are unknown, but not their LWPs.
fn forget_states(machine: &mut Machine, seed: u64) {
    for thread in 0..THREADS {
        let from = (mix(seed, 2000 + thread as u64) % 380) as usize;
        for now in &mut machine.ticks[from..from + 20] {
            now.threads[thread].state = ThreadState::Unknown;
        }
    }
}

#[test]
fn parts_are_those_of_counting_every_tick() {
    for seed in 0..300 {
        let mut machine = Machine::new(seed);
        if seed % 3 > 0 {
            damage(&mut machine, seed);
            forget_states(&mut machine, seed);
        }
        let (ticks, mut history) = machine.history();
        crate::support::calls::add_calls(&mut history, seed);
        let window = if seed % 2 == 0 { Interval::ALL } else { Interval::new(37, 311) };
        let by_lwp = seed % 4 >= 2;
        let mut rows: BTreeMap<(u64, &str, String), Expected> = BTreeMap::new();
        let mut life: BTreeMap<u64, i64> = BTreeMap::new();
        let mut last: BTreeMap<u64, (usize, usize)> = BTreeMap::new();
        for tick in (0..TICKS).filter(|tick| window.contains(*tick)) {
            let now = &ticks[tick as usize];
            let of_threads = (0..THREADS).map(|thread| {
                let stay = now.threads[thread];
                (number(thread), stay.state.name(), stay.lwp)
            });
            let of_lwps = (0..LWPS).map(|lwp| (tid(lwp).into(), now.lwps[lwp].state.name(), Some(lwp)));
            let all: Vec<_> = if by_lwp { of_lwps.collect() } else { of_threads.collect() };
            for (id, state, lwp) in all {
                let is_on_cpu = ["active", "running"].contains(&state);
                let interrupt = lwp.filter(|_| is_on_cpu).and_then(|lwp| {
                    let open = history
                        .interrupts
                        .iter()
                        .filter(|irq| irq.cpu as usize == now.lwps[lwp].cpu && irq.interval.contains(tick));
                    open.max_by_key(|irq| irq.depth)
                });
                let call = lwp.and_then(|lwp| {
                    let is_it = |call: &Syscall| call.lwp == tid(lwp) && call.interval.contains(tick);
                    history.syscalls.iter().position(is_it)
                });
                let text = |word| history.words.text(word).to_string();
                if let Some(place) = call {
                    let row = rows.entry((id, "syscall", text(history.syscalls[place].name))).or_default();
                    row.total += 1;
                    row.on_cpu += i64::from(is_on_cpu);
                    let (last, count) = last.entry(id).or_insert((place, 0));
                    if *last != place {
                        (*last, *count) = (place, *count + 1);
                    }
                    *row.calls.entry((place, *count)).or_default() += 1;
                }
                let key = match (interrupt, call) {
                    _ if state == "unknown" => (id, state, "-".to_string()),
                    (Some(interrupt), _) => (id, "interrupt", text(interrupt.name.unwrap())),
                    (None, Some(call)) => (id, "syscall", text(history.syscalls[call].name)),
                    (None, None) => (id, if is_on_cpu { "user" } else { state }, "-".to_string()),
                };
                let is_call = key.1 == "syscall";
                let row = rows.entry(key).or_default();
                row.part += 1;
                if !is_call {
                    row.total += 1;
                    row.on_cpu += i64::from(is_on_cpu);
                }
                *life.entry(id).or_default() += 1;
            }
        }
        let by = Some(if by_lwp { By::Lwp } else { By::Thread });
        let answer = ask(&history, &Request { window, by, ..Request::default() });
        let id = if by_lwp { "lwp" } else { "thread" };
        let found = listing(&answer, &format!("{id} what which part_tick total_tick on_cpu_tick"));
        let expected = rows.iter().map(|((id, what, which), row)| {
            format!("{id} {what} {which} {} {} {}", row.part, row.total, row.on_cpu)
        });
        let found: BTreeSet<String> = found.into_iter().collect();
        assert_eq!(found, expected.collect(), "seed {seed}");
        let calls = listing(&answer, &format!("{id} what which count longest_tick errors"));
        let calls = calls.into_iter().filter(|row| row.contains("syscall"));
        let expected = rows.iter().filter(|((_, what, _), _)| *what == "syscall");
        let expected = expected.map(|((id, what, which), row)| {
            let is_error =
                |(place, _): &&(usize, usize)| (-4095..0).contains(&history.syscalls[*place].ret.unwrap());
            let errors = row.calls.keys().filter(is_error).count();
            format!("{id} {what} {which} {} {} {errors}", row.calls.len(), row.calls.values().max().unwrap())
        });
        assert_eq!(calls.collect::<BTreeSet<_>>(), expected.collect(), "seed {seed}");
        let mut sums: BTreeMap<u64, i64> = BTreeMap::new();
        for row in listing(&answer, &format!("{id} part_tick")) {
            let (id, ticks) = row.split_once(' ').unwrap();
            *sums.entry(id.parse().unwrap()).or_default() += ticks.parse::<i64>().unwrap();
        }
        assert_eq!(sums, life, "seed {seed}: parts sum to the life");
    }
}
