//! Timelines of threads, drawn by hand, and on random machines against counting tick by tick.

use crate::support::drawing::Drawing;
use crate::support::{THREADS, damage::some_damaged};
use sigmund_measures::{By, Canvas, GANTT, History, Interval, Request, Timeline};
use sigmund_model::{LwpState, ThreadState};

fn label(tick: i64) -> String {
    tick.to_string()
}

fn timeline(history: &History, request: &Request, canvas: Canvas) -> Result<Timeline, String> {
    let answer = GANTT.answer(history, &Request { canvas, ..request.clone() })?;
    Ok(answer.timeline.unwrap())
}

fn gantt(history: &History, request: &Request, columns: usize) -> Result<String, String> {
    Ok(timeline(history, request, Canvas { columns, most_lines: 100 })?.text(&label))
}

fn gantt_svg(history: &History, request: &Request) -> String {
    let canvas = Canvas { columns: 500, most_lines: 100 };
    timeline(history, request, canvas).unwrap().svg(500, &label)
}

//           0         10        20        30        40        50
// one   1   |active   |stalled  |active |k|active              |
// two<  2        |new |active             |blocked |unknown |exited
fn drawn() -> Drawing {
    use ThreadState::*;
    let mut drawing = Drawing::default();
    let one = [
        (0, Active, Some(101)),
        (10, Stalled, Some(101)),
        (20, Active, Some(101)),
        (28, InKernel, Some(101)),
        (30, Active, Some(102)),
    ];
    drawing.thread(1, "one", &one, 50);
    let two = [
        (5, New, None),
        (10, Active, Some(103)),
        (30, Blocked, None),
        (40, Unknown, None),
        (47, Exited, None),
    ];
    drawing.thread(2, "two<", &two, 50);
    drawing.thread(3, "later", &[(60, Active, Some(103))], 61);
    use LwpState::{Running, Sleeping};
    drawing.lwp(101, "pool\n1", &[(0, Running, 0), (30, Sleeping, 0)], 50);
    drawing
}

#[test]
fn a_column_shows_the_state_with_the_largest_share() {
    let history = drawn().build(50);
    let ask = |request: &Request, width| gantt(&history, request, width);
    assert_eq!(
        ask(&Request::default(), 25).unwrap(),
        "         0         20        40   50\n\
         1(one)  |AAAAAsssssAAAAkAAAAAAAAAA| A 76%, s 20%, k 4%\n\
         2(two<) |..rrrAAAAAAAAAAbbbbb????.| A 47%, r 11%, b 23%, ? 16%\n\
         A active, s stalled, k in kernel, r ready, b blocked, ? unknown, . not alive\n"
    );
    // Columns of 10 ticks: the two ticks in the kernel are in none, and of equal shares (5 each) ready is first.
    assert_eq!(
        ask(&Request::default(), 5).unwrap(),
        "         0    50\n\
         1(one)  |AsAAA| A 76%, s 20%, k 4%\n\
         2(two<) |rAAb?| A 47%, r 11%, b 23%, ? 16%\n\
         A active, s stalled, k in kernel, r ready, b blocked, ? unknown, . not alive\n"
    );
    // No column is shorter than a tick.
    let cut = Request { window: Interval::new(27, 31), threads: Some([1].into()), ..Request::default() };
    assert_eq!(ask(&cut, 80).unwrap(), "        27  31\n1(one) |AkkA| A 50%, k 50%\nA active, k in kernel\n");
    let lwps = Request { by: Some(By::Lwp), ..Request::default() };
    assert_eq!(
        ask(&lwps, 10).unwrap(),
        "             0         50\n101(pool 1) |AAAAAAkkkk| A 60%, k 40%\nA running, k sleeping\n"
    );
}

// Thread 1 lives from 0 to 50, and thread 2 from 12 to 14.
#[test]
fn a_life_that_is_shorter_than_half_of_a_column_is_in_one() {
    let mut drawing = Drawing::default();
    drawing.thread(1, "long", &[(0, ThreadState::Active, Some(101))], 50);
    drawing.thread(2, "short", &[(12, ThreadState::Active, Some(102))], 14);
    let text = gantt(&drawing.build(50), &Request::default(), 5).unwrap();
    let lines: Vec<&str> = text.lines().skip(1).take(2).collect();
    assert_eq!(lines, ["1(long)  |AAAAA| A 100%", "2(short) |.A...| A 100%"]);
}

#[test]
fn what_a_filter_hides_is_not_what_is_not_alive() {
    let history = drawn().build(50);
    let ask = |request: &Request| gantt(&history, request, 25).unwrap();
    // Thread 2 is never on LWP 101: no line. Shares are of the time on it.
    let on_101 = Request { threads: Some([1, 2].into()), lwps: Some([101].into()), ..Request::default() };
    assert_eq!(
        ask(&on_101),
        "        0         20        40   50\n\
         1(one) |AAAAAsssssAAAAk----------| A 60%, s 33%, k 6%\n\
         A active, s stalled, k in kernel, - not in the filter\n"
    );
    // It lives from 5 to 47, is mounted from 10 to 30, and is blocked or ready on no LWP.
    let on_103 = Request { threads: Some([2].into()), lwps: Some([103].into()), ..Request::default() };
    assert_eq!(
        ask(&on_103),
        "        0         20        40   50\n\
         2(two<) |..---AAAAAAAAAA---------.| A 100%\n\
         A active, - not in the filter, . not alive\n"
            .replacen("        0", "         0", 1)
    );
    let cut = Request { window: Interval::new(25, 35), ..on_103.clone() };
    assert_eq!(
        ask(&cut),
        "         25        35\n2(two<) |AAAAA-----| A 100%\nA active, - not in the filter\n"
    );
    // The LWP is on CPU 0; of what it does on CPU 1 there is nothing to draw.
    let of_lwp = Request { by: Some(By::Lwp), cpus: Some([1].into()), ..Request::default() };
    assert_eq!(ask(&of_lwp), "  0         20        40   50\n");
    let svg = gantt_svg(&history, &on_103);
    assert!(svg.contains("<title>2(two&lt;): not in the filter, 5 to 10</title>"), "{svg}");
    assert!(svg.contains(">- not in the filter<"), "{svg}");
    assert!(!gantt_svg(&history, &Request::default()).contains("not in the filter"));
}

#[test]
fn a_timeline_of_nothing_is_an_error_that_says_so() {
    let history = drawn().build(50);
    assert!(gantt(&history, &Request::default(), 0).unwrap_err().contains("at least 1"));
    let outside = Request { window: Interval::new(50, 70), ..Request::default() };
    let error = gantt(&history, &outside, 10).unwrap_err();
    assert!(error.contains("expected ticks of 0 to 50, found 50 to 70"), "{error}");
    let nobody = Request { threads: Some([77].into()), ..Request::default() };
    assert_eq!(gantt(&history, &nobody, 10).unwrap(), "  0         50\n");
}

#[test]
fn the_threads_with_the_smallest_numbers_have_lines_and_the_others_are_counted() {
    let mut drawing = Drawing::default();
    for thread in 1..=9 {
        drawing.thread(thread, "", &[(0, ThreadState::Active, Some(101))], 50);
    }
    let history = drawing.build(50);
    let ask = |most_lines| {
        let canvas = Canvas { columns: 4, most_lines };
        let timeline = timeline(&history, &Request::default(), canvas).unwrap();
        let text = timeline.text(&label);
        let drawn: Vec<String> = text.lines().skip(1).map(str::to_string).collect();
        (timeline.lines(), timeline.more, drawn)
    };
    assert_eq!(ask(9).0, 9);
    assert_eq!((ask(9).1, ask(10).1, ask(0).1), (0, 0, 9));
    let (lines, more, drawn) = ask(2);
    assert_eq!((lines, more), (2, 7));
    assert_eq!(drawn, ["1() |AAAA| A 100%", "2() |AAAA| A 100%", "A active"]);
}

#[test]
fn the_space_beside_bars_is_that_of_the_longest_line() {
    let history = drawn().build(50);
    let canvas = Canvas { columns: 25, most_lines: 100 };
    let timeline = timeline(&history, &Request::default(), canvas).unwrap();
    let text = timeline.text(&label);
    let longest = text.lines().take(3).map(|line| line.chars().count()).max().unwrap();
    assert_eq!(timeline.beside_bars(25, &label), longest - 25);
    // The axis is the longest: a label of 2 characters begins after one column.
    assert!(timeline.beside_bars(1, &|_| "x".repeat(90)) > 90);
}

#[test]
fn the_svg_has_a_rectangle_for_each_stretch() {
    let history = drawn().build(50);
    let svg = gantt_svg(&history, &Request::default());
    assert_eq!(svg.matches("<title>").count(), 5 + 4, "{svg}");
    assert!(svg.contains("<title>1(one): stalled, 10 to 20</title>"), "{svg}");
    assert!(svg.contains("<title>2(two&lt;): blocked, 30 to 40</title>") && !svg.contains("two<"));
    // Fifty columns of ten pixels.
    assert!(svg.contains("width=\"100.0\" height=\"14\" fill=\"#f4786e\""), "{svg}");
    assert!(svg.starts_with("<svg ") && svg.ends_with("</svg>\n") && !svg.contains("href"));
}

#[test]
fn columns_are_those_of_counting_every_tick() {
    const ORDER: [(char, &[&str]); 8] = [
        ('A', &["active"]),
        ('s', &["stalled"]),
        ('k', &["in-kernel"]),
        ('r', &["new", "ready"]),
        ('b', &["blocked"]),
        ('t', &["stopped"]),
        ('o', &["off-cpu", "unmounted"]),
        ('?', &["unknown", "mounted"]),
    ];
    for seed in 0..200 {
        let (ticks, history) = some_damaged(seed).history();
        let window = if seed % 2 == 0 { Interval::new(0, 400) } else { Interval::new(37, 311) };
        let width = 1 + seed as usize % 97;
        let text = gantt(&history, &Request { window, ..Request::default() }, width).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        for thread in 0..THREADS {
            let begin = |column: usize| window.from + window.ticks() * column as i64 / width as i64;
            let letter = |column: usize| {
                let count = |(_, names): &(char, &[&str])| {
                    let seen = (begin(column)..begin(column + 1))
                        .filter(|tick| names.contains(&ticks[*tick as usize].threads[thread].state.name()));
                    seen.count()
                };
                let most = ORDER.iter().map(count).max().unwrap();
                ORDER.iter().find(|state| count(state) == most).unwrap().0
            };
            let expected: String = (0..width).map(letter).collect();
            let found = lines[thread + 1].split('|').nth(1).unwrap();
            assert_eq!(found, expected, "seed {seed}, thread {thread}");
        }
    }
}
