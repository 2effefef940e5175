//! Every measure, computed from slices of time, has the answer of the whole.

use crate::support::{
    LWPS, THREADS, TICKS,
    drawn::{Drawn, cells},
    number,
    random::Random,
    slices::ask_in_slices,
    tid,
    world::world,
};
use rayon::prelude::*;
use sigmund_measures::{
    ALL, Answer, BRAIDS, By, Canvas, FOLDED, GANTT, History, Interval, Level, Measure, Request, Subject,
    Value, named,
};
use sigmund_model::{EndReason::*, LwpState, ThreadState};

/// Requests of every form.
fn request(random: &mut Random) -> Request {
    let window = match random.below(3) {
        0 => Interval::ALL,
        1 => Interval::new(0, TICKS),
        _ => {
            let from = random.below(300) as i64;
            Interval::new(from, from + random.below(TICKS as usize) as i64)
        }
    };
    let mut some = |most: usize| -> Option<Vec<usize>> {
        random.one_in(4).then(|| (0..most).filter(|_| random.one_in(2)).collect())
    };
    let (threads, lwps, cpus) = (some(THREADS), some(LWPS), some(2));
    let by = [None, None].into_iter().chain(By::ALL.map(Some)).nth(random.below(2 + By::ALL.len())).flatten();
    Request {
        window,
        threads: threads.map(|places| places.into_iter().map(number).collect()),
        lwps: lwps.map(|places| places.into_iter().map(tid).collect()),
        cpus: cpus.map(|places| places.into_iter().map(|place| place as u32).collect()),
        by,
        level: random.one_in(4).then_some(if by == Some(By::Thread) { Level::Threads } else { Level::Lwps }),
        worst: if random.one_in(4) { 1 + random.below(9) } else { 0 },
        subject: None,
        is_subject_known: false,
        is_of_pairs: false,
        with_lengths: true,
        canvas: Canvas { columns: 1 + random.below(120), most_lines: 1 + random.below(2 * THREADS) },
        has_user_threads: true,
    }
}

/// The request, about what the measure can be asked about.
fn about(measure: &Measure, request: Request, random: &mut Random) -> Request {
    let (name, is_named) = (["request", "parse"][random.below(2)], random.below(3));
    let name = || Some(name.to_string());
    let subject = if measure.name.contains("lock") || measure.name == "critical-sections" {
        let locks = ["0x10", "0x11", "0x20"];
        random.one_in(2).then(|| locks[random.below(3)].to_string())
    } else {
        match measure.subject {
            Subject::Required(_) => name(),
            Subject::Optional(_) if is_named < 2 => name(),
            Subject::OptionalOrPair(_) | Subject::RequiredOrPair(_) if is_named < 2 => name(),
            _ => None,
        }
    };
    let is_of_pairs = subject.is_none()
        && matches!(measure.subject, Subject::Pair | Subject::OptionalOrPair(_) | Subject::RequiredOrPair(_));
    Request { subject, is_of_pairs, ..request }
}

/// Up to 40 borders, or one at each tick.
fn borders(random: &mut Random) -> Vec<i64> {
    if random.one_in(8) {
        return (-1..TICKS + 2).collect();
    }
    let mut borders: Vec<i64> =
        (0..1 + random.below(40)).map(|_| random.below(TICKS as usize + 2) as i64).collect();
    borders.sort_unstable();
    borders
}

/// Where the answers differ.
fn difference(whole: &Answer, sliced: &Answer) -> Option<String> {
    let names =
        |answer: &Answer| answer.columns.iter().map(|column| column.name.to_string()).collect::<Vec<_>>();
    let cell = |value: &Value| match value {
        Value::Fraction(number) => format!("{number:.9}"),
        other => format!("{other:?}"),
    };
    let lines = |answer: &Answer| -> Vec<String> {
        answer.rows.to_vec().iter().map(|row| row.iter().map(cell).collect::<Vec<_>>().join(" ")).collect()
    };
    let (expected, found) = (lines(whole), lines(sliced));
    let rows = expected.iter().zip(&found).find(|(expected, found)| expected != found);
    if let Some((expected, found)) = rows {
        return Some(format!("{:?}\n  whole  {expected}\n  slices {found}", names(whole)));
    }
    let is_same = names(whole) == names(sliced)
        && expected == found
        && whole.distributions == sliced.distributions
        && whole.timeline == sliced.timeline
        && whole.notes == sliced.notes;
    let rest =
        |answer: &Answer| (names(answer), answer.rows.len(), answer.notes.clone(), answer.timeline.clone());
    (!is_same).then(|| format!("whole {:?}, slices {:?}", rest(whole), rest(sliced)))
}

/// Whether the answer has rows; or where it differs.
fn check(measure: &Measure, history: &History, seed: u64) -> Result<bool, String> {
    let mut random = Random::new(seed ^ 0x51_1ce5);
    let request = request(&mut random);
    let request = about(measure, request, &mut random);
    let borders = borders(&mut random);
    let different =
        match (measure.answer(history, &request), ask_in_slices(measure, history, &request, &borders)) {
            (Ok(whole), Ok(sliced)) => match difference(&whole, &sliced) {
                None => {
                    let is_drawn = whole.timeline.is_some_and(|timeline| timeline.lines() > 0);
                    return Ok(!whole.rows.is_empty() || is_drawn);
                }
                Some(different) => different,
            },
            (Err(whole), Err(sliced)) if whole == sliced => return Ok(false),
            (whole, sliced) => format!("whole {:?}, slices {:?}", whole.map(|_| ()), sliced.map(|_| ())),
        };
    Err(format!("{} seed {seed} {request:?} borders {borders:?}: {different}", measure.name))
}

/// `SLICES=states` checks one measure, `SLICES_SEEDS` so many worlds.
#[test]
fn slices_have_the_answer_of_the_whole() {
    let seeds = std::env::var("SLICES_SEEDS").ok().and_then(|seeds| seeds.parse().ok()).unwrap_or(200);
    let only = std::env::var("SLICES").ok();
    let is_asked = |measure: &&Measure| only.as_deref().is_none_or(|only| measure.name == only);
    let measures: Vec<&Measure> = ALL.iter().chain([&FOLDED, &BRAIDS, &GANTT]).filter(is_asked).collect();
    let (mut with_rows, mut failed) = (vec![0; measures.len()], vec![Vec::new(); measures.len()]);
    let of_seed = |seed: u64| -> Vec<Result<bool, String>> {
        let history = world(seed);
        measures.iter().map(|measure| check(measure, &history, seed)).collect()
    };
    let checked: Vec<_> = (0..seeds).into_par_iter().map(of_seed).collect();
    for (place, result) in checked.into_iter().flat_map(|results| results.into_iter().enumerate()) {
        match result {
            Ok(has_rows) => with_rows[place] += usize::from(has_rows),
            Err(different) => failed[place].push(different),
        }
    }
    let first = failed.iter().filter_map(|failed| Some((failed.len(), failed.first()?)));
    let first: Vec<String> =
        first.map(|(count, first)| format!("{count} of {seeds}; first {first}")).collect();
    assert!(first.is_empty(), "{}", first.join("\n\n"));
    for (measure, with_rows) in measures.iter().zip(with_rows) {
        assert!(with_rows * 3 > seeds as usize, "{}: {with_rows} answers have rows", measure.name);
    }
}

/// The cells of an answer from slices between these borders, which has to be that of the whole.
fn same(name: &str, history: &History, request: &Request, borders: &[i64], columns: &[&str]) -> Vec<String> {
    let measure = named(name).unwrap();
    let whole = measure.answer(history, request).unwrap();
    let sliced = ask_in_slices(measure, history, request, borders).unwrap();
    assert_eq!(difference(&whole, &sliced), None);
    cells(&sliced, columns)
}

// LWP 70   |asleep|running          |asleep|running on another CPU |asleep
//          0      10                25     30                      40
// thread 1 |ready |active      |ready                  |active|ready
//          0      10           24                      35     40
#[test]
fn a_quantum_that_ends_at_the_begin_of_the_window_is_found_before_it() {
    use ThreadState::{Active, Ready};
    let lwp = [
        (0, LwpState::Sleeping, 0, Dispatched),
        (10, LwpState::Running, 0, Slept),
        (25, LwpState::Sleeping, 0, Dispatched),
        (30, LwpState::Running, 1, Slept),
        (40, LwpState::Sleeping, 0, TraceEnd),
    ];
    let thread = [
        (0, Ready, 0, Dispatched),
        (10, Active, 70, Yield),
        (24, Ready, 0, Dispatched),
        (35, Active, 70, Yield),
        (40, Ready, 0, TraceEnd),
    ];
    let history = Drawn::default().lwp(70, 7, &lwp, 50).thread(1, 7, &thread, 50).build();
    let only = Request { threads: Some([1].into()), level: Some(Level::Lwps), ..Request::default() };
    let window = Request { window: Interval::new(25, 30), ..only.clone() };
    let columns = ["lwp", "ended_by", "count", "total_tick"];
    for borders in [&[][..], &[5], &[5, 24], &[20, 27]] {
        assert_eq!(
            same("quanta", &history, &window, borders, &columns),
            ["70 all 1 14", "70 slept 1 14"],
            "{borders:?}"
        );
    }
}

// LWP 70   |on CPU 1  |on CPU 0|asleep|on CPU 1|
//          0          10       14     20       30
// thread 1 |active|ready             |active   |
//          0      5                  20        30
#[test]
fn where_an_lwp_was_matters_even_where_it_carried_none_of_the_threads() {
    let lwp = [
        (0, LwpState::Running, 1, Preempted),
        (10, LwpState::Running, 0, Slept),
        (14, LwpState::Sleeping, 0, Dispatched),
        (20, LwpState::Running, 1, TraceEnd),
    ];
    let thread = [
        (0, ThreadState::Active, 70, Yield),
        (5, ThreadState::Ready, 0, Dispatched),
        (20, ThreadState::Active, 70, TraceEnd),
    ];
    let history = Drawn::default().lwp(70, 7, &lwp, 30).thread(1, 7, &thread, 30).build();
    let only = Request { threads: Some([1].into()), level: Some(Level::Lwps), ..Request::default() };
    let columns = ["what", "number", "total_tick", "switches", "migrations"];
    for borders in [&[][..], &[7, 18], &[5, 11, 18]] {
        let rows = same("summary", &history, &only, borders, &columns);
        assert_eq!(rows[0], "lwp 70 15 2 1", "{borders:?}");
    }
}

// LWP 70   |running on CPU 1|runnable on CPU 0|running on CPU 0|
//          0                10                20               30
#[test]
fn a_preemption_at_a_border_is_on_the_cpu_that_was_left() {
    let lwp = [
        (0, LwpState::Running, 1, Preempted),
        (10, LwpState::Runnable, 0, Dispatched),
        (20, LwpState::Running, 0, TraceEnd),
    ];
    let thread = [
        (0, ThreadState::Active, 70, Preempted),
        (10, ThreadState::Stalled, 70, Dispatched),
        (20, ThreadState::Active, 70, TraceEnd),
    ];
    let history = Drawn::default().lwp(70, 7, &lwp, 30).thread(1, 7, &thread, 30).build();
    let on_1 = Request { threads: Some([1].into()), cpus: Some([1].into()), ..Request::default() };
    let columns = ["what", "number", "total_tick", "preemptions"];
    for borders in [&[][..], &[10], &[9, 10, 11]] {
        let rows = same("summary", &history, &on_1, borders, &columns);
        assert_eq!(rows[0], "thread 1 10 1", "{borders:?}");
    }
}
