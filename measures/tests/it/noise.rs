//! `noise`: drawn by hand, and on random machines against looking at every tick.

use std::collections::BTreeMap;

use crate::support::{
    LWPS, THREADS, TICKS,
    damage::some_damaged,
    drawn::{Drawn, ask, cells, number_in, text_in},
    number, tid,
};
use sigmund_measures::{Answer, By, Interrupt, Interval, Life, Request, Span};
use sigmund_model::{EndReason, LwpState, ThreadState};

// thread 1  |active          |stalled|active   |blocked|ready|active |unknown|active
//           0                20      25        40      50    53      60      70    80
// on LWP     70               70      70                      71              71
// CPU 0       timer 5-8, disk 12-18 with timer in it 14-15, softirq TIMER 30-31, net 41-43 (it is blocked)
// CPU 1       net 55-57
// spans     |parse 2-45 --------------------------|    |parse 52-59|   parse 65-75 (gap), parse 76- (no end)
#[test]
fn what_interrupts_preemptions_and_waits_took_is_taken_away() {
    use EndReason::{Block, Dispatched, Lost, Preempted, Returned, TraceEnd, Woken};
    use ThreadState::{Active, Blocked, Ready, Stalled, Unknown};
    let states = [
        (0, Active, 70, Preempted),
        (20, Stalled, 70, Dispatched),
        (25, Active, 70, Block),
        (40, Blocked, 0, Woken),
        (50, Ready, 0, Dispatched),
        (53, Active, 71, Lost),
        (60, Unknown, 0, Dispatched),
        (70, Active, 71, TraceEnd),
    ];
    let on = |cpu| [(0, LwpState::Running, cpu, TraceEnd)];
    let drawn = Drawn::default().thread(1, 7, &states, 80);
    let mut drawn = drawn.lwp(70, 7, &on(0), 80).lwp(71, 7, &on(1), 80);
    let history = drawn.builder.history();
    let mut interrupt = |kind: &str, name: &str, from, to, cpu, depth| Interrupt {
        interval: Interval::new(from, to),
        cpu,
        kind: history.words.intern(kind),
        number: None,
        name: Some(history.words.intern(name)),
        lwp: Some(70 + cpu),
        thread: None,
        depth,
        end: Returned,
    };
    let interrupts = vec![
        interrupt("timer", "local_timer", 5, 8, 0, 0),
        interrupt("irq", "disk", 12, 18, 0, 0),
        interrupt("timer", "local_timer", 14, 15, 0, 1),
        interrupt("softirq", "TIMER", 30, 31, 0, 0),
        interrupt("softirq", "NET_RX", 41, 43, 0, 0),
        interrupt("softirq", "NET_RX", 55, 57, 1, 0),
    ];
    history.interrupts = interrupts;
    let name = Some(history.words.intern("parse"));
    let span = |from, to, end| Span {
        interval: Interval::new(from, to),
        thread: Some(1),
        lwp: Some(70),
        is_function: false,
        name,
        depth: 0,
        active: None,
        source: None,
        end,
    };
    history.spans =
        vec![span(2, 45, Returned), span(52, 59, Returned), span(65, 75, Returned), span(76, 80, TraceEnd)];
    let history = drawn.build();
    let columns = ["thread", "curve", "count", "total_tick", "min_tick", "max_tick"];
    let request = Request { subject: Some("parse".into()), ..Request::default() };
    let answer = ask("noise", &history, &request);
    assert_eq!(
        cells(&answer, &columns),
        [
            "1 wall 2 50 7 43",
            // 3 and 1 and 1 of the first.
            "1 without-timer 2 45 7 38",
            // 5 of disk, without the timer in it; 2 of NET_RX in the second.
            "1 without-interrupts 2 38 5 33",
            // 5 stalled and 5 blocked; 1 ready.
            "1 pure 2 27 4 23",
            "1 timer 1 5 5 5",
            "1 irq 1 5 5 5",
            "1 softirq 1 2 2 2",
            "1 off-cpu 2 6 1 5",
            "1 waits 1 5 5 5",
        ]
    );
    assert_eq!(
        answer.notes,
        [
            "1 spans are not counted: events are missing in them.",
            "1 spans are not counted: they did not end."
        ]
    );
    // Of all its life.
    let life = cells(&ask("noise", &history, &Request::default()), &columns[1..4]);
    assert_eq!(life[0], "wall 1 80");
    assert_eq!(life[3], "pure 1 40", "80 - 5 - 5 - 2 - (5 + 3) - 10 - 10");
    assert_eq!(
        life[4..],
        ["timer 1 5", "irq 1 5", "softirq 1 2", "off-cpu 1 8", "waits 1 10", "unknown 1 10"]
    );
    // A span counts by its end.
    let window = Request { window: Interval::new(46, 60), ..request.clone() };
    assert_eq!(cells(&ask("noise", &history, &window), &columns)[0], "1 wall 1 7 7 7");
}

// LWP 70    |running|sleeping|running|           CPU 0, without interrupts in the trace
//           0       30       50      100
// thread 1  |mounted on LWP 80 (no kernel events)|
#[test]
fn what_nobody_recorded_is_null_and_a_note() {
    let of_70 = [
        (0, LwpState::Running, 0, EndReason::Slept),
        (30, LwpState::Sleeping, 0, EndReason::Dispatched),
        (50, LwpState::Running, 0, EndReason::TraceEnd),
    ];
    let one =
        [(0, ThreadState::Mounted, 80, EndReason::Yield), (60, ThreadState::Ready, 0, EndReason::TraceEnd)];
    let mut history = Drawn::default().lwp(70, 7, &of_70, 100).thread(1, 7, &one, 100).build();
    history.has_no_interrupts = true;
    let lwps = ask("noise", &history, &Request { by: Some(By::Lwp), ..Request::default() });
    let columns = ["curve", "count", "total_tick"];
    assert_eq!(
        cells(&lwps, &columns),
        ["wall 1 100", "without-timer - -", "without-interrupts - -", "pure 1 80", "waits 1 20"]
    );
    assert_eq!(lwps.notes.len(), 1);
    assert!(lwps.notes[0].starts_with("No interrupts are recorded: "), "{:?}", lwps.notes);
    history.has_no_interrupts = false;
    let threads = ask("noise", &history, &Request::default());
    assert_eq!(
        cells(&threads, &columns),
        [
            "wall 1 100",
            "without-timer - -",
            "without-interrupts - -",
            "pure - -",
            "off-cpu 1 40",
            "unknown 1 60"
        ]
    );
    assert!(threads.notes[0].starts_with("1 were never seen on a CPU"), "{:?}", threads.notes);
    let active = ask("active-time", &history, &Request::default());
    assert_eq!(cells(&active, &["thread", "active_tick", "life_tick", "percent"]), ["1 - 100 -"]);
    let summary = ask("summary", &history, &Request::default());
    let columns = ["what", "number", "total_tick", "percent", "switches", "preemptions"];
    assert_eq!(cells(&summary, &columns), ["thread 1 - - 1 -", "lwp 70 80 80.00 2 0", "cpu 0 80 80.00 2 0"]);
}

// An event that names LWP 70 at 0 shows that it lives; its first state is known at 30.
#[test]
fn a_life_before_its_first_state_is_unknown_for_all_lwps_and_for_one() {
    let of_70 =
        [(30, LwpState::Sleeping, 0, EndReason::Dispatched), (50, LwpState::Running, 0, EndReason::TraceEnd)];
    let mut drawn = Drawn::default().lwp(70, 7, &of_70, 100);
    let history = drawn.builder.history();
    history.extent = Some(Interval::new(0, 100));
    let life = Life { name: Some("server"), pid: Some(7), interval: Interval::new(0, 100), created_by: None };
    history.names.lwps.insert(70, life);
    let history = drawn.build();
    let columns = ["curve", "count", "total_tick"];
    let expected = [
        "wall 1 100",
        "without-timer 1 100",
        "without-interrupts 1 100",
        "pure 1 50",
        "waits 1 20",
        "unknown 1 30",
    ];
    for lwps in [None, Some([70].into())] {
        let request = Request { by: Some(By::Lwp), lwps, ..Request::default() };
        assert_eq!(cells(&ask("noise", &history, &request), &columns), expected, "{:?}", request.lwps);
    }
}

type Figures = BTreeMap<(i64, String), Vec<i64>>;

/// Without figures where they are not known.
fn figures(answer: &Answer, column: &str) -> BTreeMap<(i64, String), Option<[i64; 4]>> {
    let names = ["count", "total_tick", "min_tick", "max_tick"];
    let row = |(row, cells): (&Vec<_>, String)| {
        let is_known = cells != "- - - -";
        let figures = is_known.then(|| names.map(|name| number_in(answer, row, name)));
        ((number_in(answer, row, column), text_in(answer, row, "curve")), figures)
    };
    answer.rows.to_vec().iter().zip(cells(answer, &names)).map(row).collect()
}

/// What each tick was: pure, irq (all interrupts of the machine are), off-cpu, waits or unknown.
fn add(figures: &mut Figures, who: i64, ticks: &[&str]) {
    let count = |what: &[&str]| ticks.iter().filter(|tick| what.contains(tick)).count() as i64;
    // What was never on a CPU, but may have been: of what it would have taken nothing is known.
    let is_seen = count(&["pure", "irq"]) > 0 || count(&["unknown"]) == 0;
    let rows = [
        ("without-timer", ticks.len() as i64),
        ("without-interrupts", count(&["pure", "off-cpu", "waits", "unknown"])),
        ("pure", count(&["pure"])),
    ];
    for (row, ticks) in rows {
        figures.entry((who, row.into())).or_default().extend(is_seen.then_some(ticks));
    }
    let parts = ["irq", "off-cpu", "waits", "unknown"].map(|part| (part, count(&[part])));
    let parts = parts.into_iter().filter(|(_, ticks)| *ticks > 0);
    for (row, ticks) in parts.chain([("wall", ticks.len() as i64)]) {
        figures.entry((who, row.into())).or_default().push(ticks);
    }
}

#[test]
fn noise_is_that_of_looking_at_every_tick() {
    let mut seen_over_gaps = 0;
    for seed in 0..300 {
        let machine = some_damaged(seed);
        let spans = machine.spans.clone();
        let (ticks, history) = machine.history();
        let window = if seed % 2 == 0 { Interval::new(0, TICKS) } else { Interval::new(37, 311) };
        let is_hit = |tick: i64, cpu: usize| !ticks[tick as usize].interrupts[cpu].is_empty();
        let of_thread = |tick: i64, thread: usize| {
            let now = &ticks[tick as usize];
            let on = now.threads[thread].lwp.map(|lwp| now.lwps[lwp].cpu);
            match (now.threads[thread].state, on) {
                (ThreadState::Active, Some(cpu)) => {
                    if is_hit(tick, cpu) {
                        "irq"
                    } else {
                        "pure"
                    }
                }
                (ThreadState::Stalled | ThreadState::Ready, _) => "off-cpu",
                (ThreadState::Unknown | ThreadState::Mounted, _) => "unknown",
                _ => "waits",
            }
        };
        let of_lwp = |tick: i64, lwp: usize| {
            let now = ticks[tick as usize].lwps[lwp];
            match now.state {
                LwpState::Running => {
                    if is_hit(tick, now.cpu) {
                        "irq"
                    } else {
                        "pure"
                    }
                }
                LwpState::Runnable => "off-cpu",
                LwpState::Unknown => "unknown",
                _ => "waits",
            }
        };
        let (mut in_spans, mut threads, mut lwps) = (Figures::new(), Figures::new(), Figures::new());
        let mut over_gaps = 0;
        let named = spans.iter().filter(|span| history.words.text(span.name.unwrap()) == "request");
        for span in named.filter(|span| span.end == EndReason::Returned && window.contains(span.interval.to))
        {
            let thread = span.thread.unwrap();
            let inside: Vec<_> = (span.interval.from..span.interval.to)
                .map(|tick| of_thread(tick, thread as usize - 1))
                .collect();
            // Of no part of a span that counts the state is unknown.
            if inside.contains(&"unknown") {
                over_gaps += 1;
            } else {
                add(&mut in_spans, thread as i64, &inside);
            }
        }
        for thread in 0..THREADS {
            let life: Vec<_> = (window.from..window.to).map(|tick| of_thread(tick, thread)).collect();
            add(&mut threads, number(thread) as i64, &life);
        }
        for lwp in 0..LWPS {
            let life: Vec<_> = (window.from..window.to).map(|tick| of_lwp(tick, lwp)).collect();
            add(&mut lwps, tid(lwp).into(), &life);
        }
        // LWPs while they carry one of these.
        let mut carriers = Figures::new();
        for lwp in 0..LWPS {
            let carries = |tick: &i64| matches!(ticks[*tick as usize].lwps[lwp].carries, Some(0 | 3));
            let life: Vec<_> =
                (window.from..window.to).filter(carries).map(|tick| of_lwp(tick, lwp)).collect();
            if !life.is_empty() {
                add(&mut carriers, tid(lwp).into(), &life);
            }
        }
        let subject = Some("request".to_string());
        let selected = Some([number(0), number(3)].into());
        for (by, column, subject, threads, expected) in [
            (By::Thread, "thread", subject, None, in_spans),
            (By::Thread, "thread", None, None, threads),
            (By::Lwp, "lwp", None, None, lwps),
            (By::Lwp, "lwp", None, selected, carriers),
        ] {
            let occurs = spans.iter().any(|span| history.words.text(span.name.unwrap()) == "request");
            if subject.is_some() && !occurs {
                continue;
            }
            let request = Request { window, by: Some(by), subject, threads, ..Request::default() };
            let answer = ask("noise", &history, &request);
            let of_lengths = |lengths: &Vec<i64>| {
                let (min, max) = (*lengths.iter().min()?, *lengths.iter().max()?);
                Some([lengths.len() as i64, lengths.iter().sum(), min, max])
            };
            let expected: BTreeMap<_, _> =
                expected.iter().map(|(key, lengths)| (key.clone(), of_lengths(lengths))).collect();
            let seen = figures(&answer, column);
            assert_eq!(seen, expected, "seed {seed} {by:?} {:?}", request.subject);
            let note = " spans are not counted: events are missing in them.";
            let notes = answer.notes.iter().find_map(|text| text.strip_suffix(note));
            let number = notes.map_or(0, |number| number.parse().unwrap());
            assert_eq!(number, if request.subject.is_some() { over_gaps } else { 0 }, "seed {seed}");
            seen_over_gaps += number;
            // What was taken away and the pure time sum to the wall time.
            for ((who, _), wall) in seen.iter().filter(|((_, row), _)| row == "wall") {
                let parts = seen.iter().filter(|((other, row), _)| {
                    other == who && !["wall", "without-timer", "without-interrupts"].contains(&row.as_str())
                });
                let total = |figures: &Option<[i64; 4]>| figures.map_or(0, |[_, total, ..]| total);
                assert_eq!(parts.map(|(_, part)| total(part)).sum::<i64>(), total(wall), "seed {seed}");
            }
        }
    }
    assert!(seen_over_gaps > 30, "{seen_over_gaps}");
}

#[test]
fn an_unknown_span_is_an_error_with_the_nearest_names() {
    let mut builder = sigmund_measures::HistoryBuilder::default();
    let name = builder.history().words.intern("request");
    builder.history().words.intern("requests of nobody");
    builder.history().spans.push(sigmund_measures::Span {
        interval: Interval::new(0, 5),
        thread: Some(1),
        lwp: None,
        is_function: false,
        name: Some(name),
        depth: 0,
        active: None,
        source: None,
        end: sigmund_model::EndReason::Returned,
    });
    let history = builder.build();
    let noise = sigmund_measures::named("noise").unwrap();
    let asked = |subject: &str| {
        noise.answer(&history, &Request { subject: Some(subject.into()), ..Request::default() }).map(|_| ())
    };
    let error = "expected the name of a span or function, found `requets`; the trace has request";
    assert_eq!(asked("requets"), Err(error.into()));
    // A word of the trace that names no span.
    assert!(asked("requests of nobody").is_err());
    assert_eq!(asked("request"), Ok(()));
}
