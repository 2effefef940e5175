//! Comparisons: worked out on paper, of every measure with itself, and on random machines against counting tick by tick.

use std::collections::{BTreeMap, BTreeSet};

use crate::support::{Machine, Now, THREADS, TICKS, drawing::Drawing, drawn::Drawn, lives::change};
use sigmund_measures::{
    ALL, Answer, By, History, Interval, Kind, Measure, Request, Side, Subject, Value, compare, named,
    request_to_compare, slices_to_compare,
};
use sigmund_model::{EndReason, Hertz, ThreadState};

fn hz(per_second: f64) -> Hertz {
    Hertz::new(per_second).unwrap()
}

fn compared(name: &str, a: &History, b: &History, request: &Request, rates: (f64, f64)) -> Answer {
    let measure = named(name).unwrap();
    let (a, b) = (side(measure, a, request, hz(rates.0)), side(measure, b, request, hz(rates.1)));
    compare(&a, &b).unwrap()
}

fn side(measure: &Measure, history: &History, request: &Request, hz: Hertz) -> Side {
    let window = request.extent(history);
    let request = request_to_compare(measure, request);
    let answer = |window| measure.answer(history, &Request { window, ..request.clone() }).unwrap();
    let slices = slices_to_compare(window, hz).into_iter().map(answer).collect();
    Side { whole: answer(request.window), slices, window, hz }
}

fn rows(answer: &Answer, columns: &str) -> Vec<String> {
    crate::support::drawing::listing(answer, columns)
}

/// 80 ticks of 10 in a second: thread 1 is active for the first ticks of each second, then ready. `scale` ticks for one.
fn seconds(active: [i64; 8], scale: i64) -> History {
    let states = active.iter().enumerate().flat_map(|(second, active)| {
        let from = second as i64 * 10;
        [
            (from * scale, ThreadState::Active, 100, EndReason::Yield),
            ((from + active) * scale, ThreadState::Ready, 0, EndReason::Yield),
        ]
    });
    Drawn::default().thread(1, 70, &states.collect::<Vec<_>>(), 80 * scale).build()
}

//          second  0      1      2      3      4 to 7 alike
// A  active        ######.. ####.... ######.. ####....         500 ms/s; odd 600, even 400: a spread of 200
// B  active        ######## in each second                     800 ms/s
#[test]
fn a_difference_is_news_if_it_exceeds_that_between_two_halves() {
    let a = seconds([6, 4, 6, 4, 6, 4, 6, 4], 1);
    let compared = |b: &History, rate| compared("states", &a, b, &Request::default(), (10.0, rate));
    let columns = "name state figure unit a b difference difference_percent spread verdict";
    assert_eq!(
        rows(&compared(&seconds([8; 8], 1), 10.0), columns),
        [
            "work/* active total ns/s 500000000.0 800000000.0 300000000.0 60.0 200000000.0 differs",
            "work/* ready total ns/s 500000000.0 200000000.0 -300000000.0 -60.0 200000000.0 differs",
            "work/* active count 1/s 1.0 1.0 0.0 0.0 0.0 within the spread",
            "work/* ready count 1/s 1.0 1.0 0.0 0.0 0.0 within the spread",
        ]
    );
    // As much as the spread is no news; nor is another clock.
    for (active, scale, difference) in [(7, 1, "200000000.0"), (7, 3, "200000000.0"), (5, 7, "0.0")] {
        let rows = rows(&compared(&seconds([active; 8], scale), 10.0 * scale as f64), "difference verdict");
        assert_eq!(rows[0].trim_start_matches('-'), format!("{difference} within the spread"), "{rows:?}");
    }
    // The spread of B counts, too.
    let b = seconds([2, 10, 2, 10, 2, 10, 2, 9], 1);
    assert_eq!(rows(&compared(&b, 10.0), "spread verdict")[0], "775000000.0 within the spread");
}

#[test]
fn longer_traces_compare_by_their_rates() {
    let (a, mut b) = (seconds([5; 8], 1), seconds([5; 8], 1));
    b.extent = Some(Interval::new(0, 160));
    let answer = compared("states", &a, &b, &Request::default(), (10.0, 10.0));
    let found = rows(&answer, "state figure a b");
    assert!(found.contains(&"active total 500000000.0 250000000.0".to_string()), "{found:?}");
    // In B nothing is known of the second half, but of both odd and even seconds.
    let request = Request { window: Interval::new(0, 80), ..Request::default() };
    let answer = compared("states", &a, &b, &request, (10.0, 10.0));
    assert!(rows(&answer, "verdict").iter().all(|verdict| verdict == "within the spread"));
    let nothing = Request { window: Interval::new(500, 600), ..Request::default() };
    let states = named("states").unwrap();
    let sides = (side(states, &a, &request, hz(10.0)), side(states, &b, &nothing, hz(10.0)));
    let error = compare(&sides.0, &sides.1).unwrap_err();
    assert!(error.contains("B: expected a window with time in it"), "{error}");
}

/// 80 ticks, two spans and two locks in each second; `parse` lasts so long, and the wait in it.
fn program(parse: i64, wait: i64, extra: Option<&str>) -> History {
    let mut drawing = Drawing::default();
    drawing.thread(1, "work/1", &[(0, ThreadState::Active, Some(101))], 80);
    drawing.thread(2, "work/2", &[(0, ThreadState::Active, Some(102))], 80);
    for second in 0..8 {
        let from = second * 10;
        drawing.span(1, "parse", (from, from + parse), 0, None);
        drawing.span(2, "reply", (from, from + 2), 0, None);
        drawing.mutex(1, 0x1000, (from, wait, 2), "parse");
        drawing.mutex(2, 0x2000, (from, 1, 2), "reply");
    }
    if let Some(name) = extra {
        drawing.span(2, name, (33, 35), 0, None);
    }
    drawing.build(80)
}

#[test]
fn what_became_slower_is_the_first_row() {
    let request = Request::default();
    let (before, slow) = (program(3, 1, None), program(6, 1, None));
    let functions = compared("functions", &before, &slow, &request, (10.0, 10.0));
    let first = rows(&functions, "function unit a b verdict");
    assert_eq!(first[0], "parse ns/s 300000000.0 600000000.0 differs");
    assert!(first.contains(&"parse ns 300000000.0 600000000.0 differs".to_string()), "{first:?}");
    assert!(first.iter().filter(|row| row.ends_with("differs")).all(|row| row.starts_with("parse")));

    let locks = compared("locks", &before, &program(3, 5, None), &request, (10.0, 10.0));
    let first = rows(&locks, "kind call_site unit verdict");
    assert_eq!(first[0], "mutex parse ns/s differs");
    let wait = rows(&locks, "call_site figure a b verdict");
    assert!(wait.contains(&"parse wait 100000000.0 500000000.0 differs".to_string()), "{wait:?}");
}

#[test]
fn what_is_in_one_of_them_only_is_so_said() {
    let (with, without) = (program(3, 1, Some("flush")), program(3, 1, None));
    for (a, b, verdict) in [(&with, &without, "only in A"), (&without, &with, "only in B")] {
        let answer = compared("functions", a, b, &Request::default(), (10.0, 10.0));
        let found = rows(&answer, "function verdict");
        assert_eq!(found[0], format!("flush {verdict}"), "{found:?}");
        assert!(found.iter().all(|row| row.starts_with("flush") || row.ends_with("within the spread")));
    }
    // In both, but in one second of each. Its total says the same again.
    let answer = compared("functions", &with, &with, &Request::default(), (10.0, 10.0));
    let found = rows(&answer, "function figure verdict");
    assert!(found.contains(&"flush inclusive too few".to_string()), "{found:?}");
}

#[test]
fn rows_of_one_key_are_one() {
    // By thread, both are work/... with a number of their own: names stay. By process they share a name and no number.
    let history = program(3, 1, None);
    for (by, names) in [(By::Thread, vec!["work/1", "work/2"]), (By::Pattern, vec!["work/*"])] {
        let request = Request { by: Some(by), ..Request::default() };
        let answer = compared("noise", &history, &history, &request, (10.0, 10.0));
        let found: BTreeSet<String> = rows(&answer, "name").into_iter().collect();
        assert_eq!(found.into_iter().collect::<Vec<_>>(), names);
    }
    let mut history = history;
    change(&mut history.names.threads, 2, |life| life.name = Some("work/1"));
    let request = Request { by: Some(By::Thread), ..Request::default() };
    let answer = compared("noise", &history, &history, &request, (10.0, 10.0));
    assert!(answer.notes.iter().any(|note| note.contains("rows with the same key")), "{:?}", answer.notes);
    let found = rows(&answer, "name curve figure a");
    assert!(found.contains(&"work/1 wall total 2000000000.0".to_string()), "{found:?}");
    assert!(!found.iter().any(|row| row.contains("p50")), "{found:?}");
}

#[test]
fn a_history_does_not_differ_from_itself_in_any_measure() {
    let mut answered = BTreeSet::new();
    for seed in 0..20 {
        let mut history = Machine::new(seed).history().1;
        crate::support::locks::add_locks(&mut history, seed);
        for measure in ALL {
            for by in [None, Some(By::Lwp), Some(By::Thread)] {
                let is_about_spans =
                    !matches!(measure.subject, Subject::None | Subject::Pair) && measure.name != "locks";
                let subject = is_about_spans.then(|| "request".to_string());
                let request = Request { by, subject, ..Request::default() };
                let side = side(measure, &history, &request, hz(50.0));
                let answer = match compare(&side, &side) {
                    Ok(answer) => answer,
                    Err(message) => panic!("{}: {message}", measure.name),
                };
                let place = answer.column("verdict").unwrap();
                for row in &answer.rows.to_vec() {
                    let is_quiet = [Value::from("within the spread"), "too few".into()].contains(&row[place]);
                    assert!(is_quiet, "seed {seed}: {}: {row:?}", measure.name);
                }
                if !answer.rows.is_empty() {
                    answered.insert(measure.name);
                }
            }
        }
    }
    // These rest on events, which the machines have not.
    let silent: Vec<&str> = ALL.iter().map(|m| m.name).filter(|name| !answered.contains(name)).collect();
    assert_eq!(silent, ["reactivity", "switch-cost"]);
}

/// `measure: keys | figures with units`, one line each.
#[test]
fn what_is_compared_of_every_measure_is_known() {
    let mut found = Vec::new();
    for measure in ALL {
        let history = History { extent: Some(Interval::new(0, 80)), ..History::default() };
        // About pairs no name is needed, and there are none.
        let is_of_pairs = !matches!(measure.subject, Subject::None | Subject::Optional(_));
        let request = Request { by: Some(By::Pattern), is_of_pairs, ..Request::default() };
        let without = side(measure, &history, &request, hz(10.0));
        let mut with = without.clone();
        // No number is there twice: a figure with the values of an earlier one is left out.
        let cells = (1..).zip(&with.whole.columns).map(|(number, column)| match column.kind {
            Kind::Text => Value::from("text"),
            Kind::Percent | Kind::Fraction => Value::Fraction(number as f64),
            _ => Value::Number(number),
        });
        with.whole.rows = [cells.collect::<Vec<_>>()].into_iter().collect();
        let compared = compare(&with, &without).unwrap();
        assert!(rows(&compared, "verdict").iter().all(|verdict| verdict == "only in A"), "{}", measure.name);
        let keys = compared.columns.iter().map(|column| &*column.name).take_while(|name| *name != "figure");
        let keys: Vec<&str> = keys.collect();
        let mut figures = rows(&compared, "figure unit");
        let place = |figure: &str| with.whole.column(figure).or(with.whole.column(&format!("{figure}_tick")));
        figures.sort_by_key(|figure| place(figure.split(' ').next().unwrap()).unwrap());
        found.push(format!("{}: {} | {}", measure.name, keys.join(", "), figures.join(", ")));
    }
    let lengths = "count 1/s, total ns/s, p50 ns, p99 ns";
    let expected = [
        "summary: what, number, name | total ns/s, switches 1/s, migrations 1/s, preemptions 1/s".into(),
        "active-time: name | active ns/s, life ns/s".into(),
        "states: name, state, reason, culprit | count 1/s, total ns/s".into(),
        "breakdown: name, what, which | count 1/s, part ns/s, total ns/s, on_cpu ns/s, errors 1/s".into(),
        format!(
            "functions: name, kind, function | inclusive ns/s, self ns/s, inclusive_active ns/s, \
             self_active ns/s, active_unknown 1/s, {lengths}"
        ),
        format!("latency: name, kind | {lengths}"),
        format!("reactivity: row, what, culprit | {lengths}"),
        "explain: band, category, who, waits_for, culprit | total ns/s, mean ns".into(),
        "critical-path: cause, culprit | count 1/s, total ns/s".into(),
        "locks: name, kind, call_site | requests 1/s, contended 1/s, wait ns/s, holds 1/s, hold ns/s, \
         waited ns/s, holder_active ns/s, convoy ns/s, holder_unknown ns/s, no_holder ns/s"
            .into(),
        format!("critical-sections: name, depth | {lengths}"),
        format!("interrupts: hit_name, kind, number, name | {lengths}, wall ns/s, unended 1/s"),
        format!("noise: name, curve | {lengths}"),
        format!("quanta: name, ended_by | {lengths}, wall ns/s, preemptions 1/s"),
        format!("switch-cost: name, from | {lengths}"),
    ];
    assert_eq!(found, expected);
}

type Key = (String, Option<String>, Option<String>);

/// What a user thread does in a tick: state, reason and culprit, by pattern.
fn key(now: &Now, thread: usize, irqs: &[String], calls: &[String]) -> Key {
    let stay = now.threads[thread];
    let on = stay.lwp.map(|lwp| now.lwps[lwp]);
    let (mut state, mut reason, mut culprit) = (stay.state.name(), None, None);
    match (stay.state, on) {
        (ThreadState::Active, Some(lwp)) => {
            if let Some(place) = now.interrupts[lwp.cpu].last() {
                (state, reason) = ("interrupted", Some(irqs[*place].clone()));
            }
        }
        (ThreadState::Stalled, Some(lwp)) => {
            culprit = Some(match now.cpus[lwp.cpu].map(|other| now.lwps[other].carries) {
                None => "idle".to_string(),
                Some(Some(_)) => "work/*".to_string(),
                Some(None) => "lwp/*".to_string(),
            });
        }
        (ThreadState::InKernel, Some(lwp)) => reason = lwp.call.map(|call| calls[call].clone()),
        (ThreadState::Blocked, _) => reason = stay.waits_for.map(|kind| kind.name().to_string()),
        _ => {}
    }
    (state.to_string(), reason, culprit)
}

/// The ticks of each key in each of 8 slices; a key may be in a slice with none of its ticks.
fn counted(seed: u64) -> (BTreeMap<Key, [Option<i64>; 8]>, History) {
    let machine = Machine::new(seed);
    let irqs: Vec<_> = machine.interrupts.iter().map(|irq| irq.name.unwrap()).collect();
    let calls: Vec<_> = machine.syscalls.iter().map(|call| call.name).collect();
    let (ticks, history) = machine.history();
    let texts = |words: Vec<_>| words.into_iter().map(|w| history.words.text(w).into()).collect::<Vec<_>>();
    let (irqs, calls) = (texts(irqs), texts(calls));
    let mut sums: BTreeMap<Key, [Option<i64>; 8]> = BTreeMap::new();
    for (tick, now) in ticks.iter().enumerate().take(TICKS as usize) {
        let slice = tick * 8 / TICKS as usize;
        for thread in 0..THREADS {
            let key = key(now, thread, &irqs, &calls);
            if key.0 == "interrupted" {
                sums.entry(("active".into(), None, None)).or_default()[slice].get_or_insert(0);
            }
            *sums.entry(key).or_default()[slice].get_or_insert(0) += 1;
        }
    }
    (sums, history)
}

/// The two halves of 8 slices, in seven ways.
const HALVES: [([usize; 4], [usize; 4]); 7] = [
    ([0, 2, 4, 6], [1, 3, 5, 7]),
    ([0, 1, 4, 5], [2, 3, 6, 7]),
    ([0, 1, 2, 3], [4, 5, 6, 7]),
    ([0, 3, 4, 7], [1, 2, 5, 6]),
    ([0, 2, 5, 7], [1, 3, 4, 6]),
    ([0, 1, 6, 7], [2, 3, 4, 5]),
    ([0, 3, 5, 6], [1, 2, 4, 7]),
];

#[test]
fn totals_and_spreads_of_states_are_those_of_counting_every_tick() {
    let (mut differ, mut others) = (0, 0);
    for seed in 0..300 {
        let ((a, history_a), (b, history_b)) = (counted(seed), counted(seed + 1000));
        let answer = compared("states", &history_a, &history_b, &Request::default(), (50.0, 50.0));
        let place = |name| answer.column(name).unwrap();
        let text = |row: &[Value], name| match &row[place(name)] {
            Value::Text(text) => Some(text.to_string()),
            _ => None,
        };
        let number = |row: &[Value], name| match row[place(name)] {
            Value::Fraction(number) => Some(number.round() as i64),
            _ => None,
        };
        let mut found = BTreeMap::new();
        for row in answer.rows.to_vec().iter().filter(|row| text(row, "figure").as_deref() == Some("total")) {
            let key = (text(row, "state").unwrap(), text(row, "reason"), text(row, "culprit"));
            let figures = [number(row, "a"), number(row, "b"), number(row, "spread")];
            found.insert(key, (figures, text(row, "verdict").unwrap()));
        }
        let mut expected = BTreeMap::new();
        let keys: BTreeSet<&Key> = a.keys().chain(b.keys()).collect();
        for key in keys {
            // A tick is 20 ms, a half 4 s.
            let whole = |sums: &[Option<i64>; 8]| sums.iter().flatten().sum::<i64>() * 20_000_000 / 8;
            let half = |sums: &[Option<i64>; 8], slices: [usize; 4]| {
                slices.iter().filter_map(|slice| sums[*slice]).sum::<i64>() * 5_000_000
            };
            let spread = |sums: &[Option<i64>; 8]| {
                let is_in = |odd: usize| (0..8).any(|slice| slice % 2 == odd && sums[slice].is_some());
                let difference = |(a, b)| i64::abs(half(sums, a) - half(sums, b));
                (is_in(0) && is_in(1)).then(|| HALVES.map(difference).into_iter().max().unwrap())
            };
            let (of_a, of_b) = (a.get(key), b.get(key));
            let (spread, verdict) = match (of_a, of_b) {
                (Some(a), Some(b)) => match (spread(a), spread(b)) {
                    (Some(x), Some(y)) if (whole(a) - whole(b)).abs() > x.max(y) => {
                        (Some(x.max(y)), "differs")
                    }
                    (Some(x), Some(y)) => (Some(x.max(y)), "within the spread"),
                    _ => (None, "too few"),
                },
                (Some(a), None) => (spread(a), "only in A"),
                (None, Some(b)) => (spread(b), "only in B"),
                (None, None) => unreachable!(),
            };
            differ += usize::from(verdict == "differs");
            others += usize::from(verdict == "within the spread");
            expected.insert(key.clone(), ([of_a.map(whole), of_b.map(whole), spread], verdict.to_string()));
        }
        assert_eq!(found, expected, "seed {seed}");
    }
    // The machines are alike: most of their differences are noise.
    assert!(differ > 50 && others > 4 * differ, "{differ} differ, {others} do not");
}
