//! `interrupts`: drawn by hand, and on random machines against counting every tick.

use std::collections::BTreeMap;

use crate::support::{
    CPUS, TICKS,
    damage::some_damaged,
    drawn::{ask, cells, number_in, text_in},
    number, tid,
};
use sigmund_measures::{By, HistoryBuilder, Interrupt, Interval, Level, Life, Request};
use sigmund_model::EndReason;

// CPU 0   ...|disk          |net  |disk  |...  |net
//            10             14    17     20    30  34
// on it   LWP 70 with thread 1                 idle
// CPU 1   ...|disk (exit not seen)
//            12  13
#[test]
fn own_time_is_without_the_interrupts_inside() {
    let mut builder = HistoryBuilder::default();
    let history = builder.history();
    let (irq, disk, net) =
        (history.words.intern("irq"), history.words.intern("disk"), history.words.intern("net"));
    let disk = Interrupt {
        interval: Interval::new(10, 20),
        cpu: 0,
        kind: irq,
        number: Some(5),
        name: Some(disk),
        lwp: Some(70),
        thread: Some(1),
        depth: 0,
        end: EndReason::Returned,
    };
    let net =
        Interrupt { interval: Interval::new(14, 17), number: Some(6), name: Some(net), depth: 1, ..disk };
    let idle = Interrupt { interval: Interval::new(30, 34), lwp: Some(0), thread: None, depth: 0, ..net };
    let cut =
        Interrupt { interval: Interval::new(12, 13), cpu: 1, end: EndReason::Unseen, thread: None, ..disk };
    history.interrupts = vec![disk, net, idle, cut];
    let life = Life { name: Some("work"), pid: None, interval: Interval::new(0, 40), created_by: None };
    history.names.threads.insert(1, life);
    history.names.lwps.insert(70, life);
    history.extent = Some(Interval::new(0, 40));
    let history = builder.build();
    let columns = [
        "kind",
        "number",
        "name",
        "count",
        "total_tick",
        "max_tick",
        "wall_tick",
        "unended",
        "hit",
        "hit_tick",
        "hit_percent",
    ];
    let all = cells(&ask("interrupts", &history, &Request::default()), &columns);
    assert_eq!(all, ["irq 5 disk 2 8 7 11 1 1(work) 7 87.50", "irq 6 net 2 7 4 7 0 idle 4 57.14"]);
    // 10 to 14, and 17 to 19; 15 to 17 of the other.
    let window = Request { window: Interval::new(15, 19), ..Request::default() };
    let part = cells(&ask("interrupts", &history, &window), &columns);
    assert_eq!(part, ["irq 5 disk 1 2 2 4 0 1(work) 2 100.00", "irq 6 net 1 2 2 2 0 1(work) 2 100.00"]);
    let one = Request { threads: Some([1].into()), ..Request::default() };
    let one = cells(&ask("interrupts", &history, &one), &["name", "count", "total_tick"]);
    assert_eq!(one, ["disk 1 7", "net 1 3"]);
    let lwps = Request { level: Some(Level::Lwps), cpus: Some([0].into()), ..Request::default() };
    let lwps = cells(&ask("interrupts", &history, &lwps), &["name", "total_tick", "hit", "hit_tick"]);
    assert_eq!(lwps, ["disk 7 LWP 70(work) 7", "net 7 idle 4"]);
    // With a grouping, a row for each that was hit.
    let grouped = |by, group: &str| {
        let request = Request { by: Some(by), ..Request::default() };
        cells(
            &ask("interrupts", &history, &request),
            &[group, "hit_name", "name", "count", "total_tick", "hit"],
        )
    };
    assert_eq!(
        grouped(By::Lwp, "lwp"),
        ["70 work disk 2 8 LWP 70(work)", "0 idle net 1 4 idle", "70 work net 1 3 LWP 70(work)",]
    );
    assert_eq!(
        grouped(By::Thread, "thread"),
        [
            "1 work disk 1 7 1(work)",
            "- - net 1 4 idle",
            "1 work net 1 3 1(work)",
            "- - disk 1 1 LWP 70(work)"
        ]
    );
    assert_eq!(
        grouped(By::Name, "hit_name"),
        ["work work disk 2 8 1(work)", "- - net 1 4 idle", "work work net 1 3 1(work)"]
    );
}

#[test]
fn that_no_interrupts_are_recorded_is_said() {
    let mut history = HistoryBuilder::default().build();
    assert!(ask("interrupts", &history, &Request::default()).notes.is_empty());
    history.has_no_interrupts = true;
    assert_eq!(ask("interrupts", &history, &Request::default()).notes, ["No interrupts are recorded."]);
}

/// Who an interrupt hit: a user thread, else what ran on its CPU.
fn hit(interrupt: &Interrupt, of_lwps: bool) -> String {
    match (interrupt.thread.filter(|_| !of_lwps), interrupt.lwp.unwrap()) {
        (Some(thread), _) => format!("{thread}(work/{})", thread - number(0)),
        (None, 0) => "idle".into(),
        (None, lwp) => format!("LWP {lwp}(lwp/{})", lwp - tid(0)),
    }
}

#[test]
fn interrupts_are_those_of_counting_every_tick() {
    for seed in 0..300 {
        let machine = some_damaged(seed);
        let drawn = machine.interrupts.clone();
        let (ticks, history) = machine.history();
        let window = if seed % 2 == 0 { Interval::new(0, TICKS) } else { Interval::new(37, 311) };
        let only = (seed / 2 % 3 == 0).then_some(1);
        let cpus = only.map(|only| [only as u32].into());
        let everybody = Request { window, cpus, ..Request::default() };
        let of_lwps = Request { level: Some(Level::Lwps), ..everybody.clone() };
        let some = Request { threads: Some([number(0), number(3)].into()), ..everybody.clone() };
        for request in [of_lwps, everybody, some] {
            let is_of_lwps = request.level.is_some();
            let hits = |place: usize| {
                let thread = drawn[place].thread;
                request.threads.as_ref().is_none_or(|threads| thread.is_some_and(|t| threads.contains(&t)))
            };
            let mut own = vec![0; drawn.len()];
            let (mut wall, mut hit_by_name) = (BTreeMap::new(), BTreeMap::new());
            // By the user thread that was hit; those that hit nobody come first.
            let mut by_thread: BTreeMap<(Option<u64>, String), i64> = BTreeMap::new();
            let name = |place: usize| history.words.text(drawn[place].name.unwrap()).to_string();
            let mut interrupted = 0;
            for now in (window.from..window.to).map(|tick| &ticks[tick as usize]) {
                for cpu in (0..CPUS).filter(|cpu| only.is_none_or(|only| *cpu == only)) {
                    for place in now.interrupts[cpu].iter().filter(|place| hits(**place)) {
                        *wall.entry(name(*place)).or_insert(0) += 1;
                    }
                    if let Some(place) = now.interrupts[cpu].last().filter(|place| hits(**place)) {
                        interrupted += 1;
                        own[*place] += 1;
                        let who = hit(&drawn[*place], is_of_lwps);
                        *hit_by_name.entry((name(*place), who)).or_insert(0) += 1;
                        *by_thread.entry((drawn[*place].thread, name(*place))).or_default() += 1;
                    }
                }
            }
            let answer = ask("interrupts", &history, &request);
            let mut names = Vec::new();
            for row in &answer.rows.to_vec() {
                let figure = |column| number_in(&answer, row, column);
                let text = text_in(&answer, row, "name");
                let of_name: Vec<i64> = (0..drawn.len())
                    .filter(|place| name(*place) == text && own[*place] > 0)
                    .map(|place| own[place])
                    .collect();
                let figures =
                    (figure("count"), figure("total_tick"), figure("max_tick"), figure("wall_tick"));
                let expected = (
                    of_name.len() as i64,
                    of_name.iter().sum(),
                    of_name.iter().max().copied().unwrap_or(0),
                    wall.get(&text).copied().unwrap_or(0),
                );
                assert_eq!(figures, expected, "seed {seed} {text}");
                let of_this = hit_by_name.iter().filter(|((name, _), _)| *name == text);
                let most = of_this.map(|(_, ticks)| *ticks).max();
                let who = text_in(&answer, row, "hit");
                assert_eq!(Some(figure("hit_tick")), most, "seed {seed} {text}");
                assert_eq!(hit_by_name.get(&(text.clone(), who)).copied(), most, "seed {seed} {text}");
                names.push(text);
            }
            // Own times sum to the time in which CPUs were interrupted.
            let rows = answer.rows.to_vec();
            let total: i64 = rows.iter().map(|row| number_in(&answer, row, "total_tick")).sum();
            assert_eq!(total, interrupted, "seed {seed}");
            assert_eq!(names.len(), wall.len(), "seed {seed}");
            if !is_of_lwps {
                let grouped = ask("interrupts", &history, &Request { by: Some(By::Thread), ..request });
                let mut found = cells(&grouped, &["thread", "name", "total_tick"]);
                let mut expected: Vec<String> = by_thread
                    .iter()
                    .map(|((thread, name), ticks)| {
                        let thread = thread.map_or("-".into(), |thread| thread.to_string());
                        format!("{thread} {name} {ticks}")
                    })
                    .collect();
                found.retain(|row| !row.ends_with(" 0"));
                found.sort();
                expected.sort();
                assert_eq!(found, expected, "seed {seed}");
            }
        }
    }
}
