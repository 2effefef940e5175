//! How long walks take on many rows. Run it alone: `cargo test --release -p sigmund-measures --test walk_speed -- --ignored
//! --nocapture`.

mod support;

use std::time::Instant;

use sigmund_measures::{Actor, Context, Mark, Request, Span, named};
use sigmund_model::{EndReason, LwpState, ThreadState};
use support::sketch::{Drawing, X, Y, at};

// Two threads that hand over to each other, a round of 10 ticks: 1 runs 5, unparks 2 and blocks, 2 runs 5 and unparks 1.
#[test]
#[ignore = "a measurement"]
fn walks_of_many_spans_take_time_linear_in_the_rows() {
    const ROUNDS: i64 = 1_000_000;
    let mut drawing = Drawing::default();
    let (mut first, mut second) = (Vec::new(), Vec::new());
    let mut spans = Vec::new();
    let name = drawing.0.history().words.intern("request");
    for round in 0..ROUNDS {
        let start = round * 10;
        first.extend([
            (start, start + 5, ThreadState::Active, 100),
            (start + 5, start + 10, ThreadState::Blocked, 0),
        ]);
        second.extend([
            (start, start + 5, ThreadState::Blocked, 0),
            (start + 5, start + 10, ThreadState::Active, 101),
        ]);
        drawing.wakeup(start + 5, 0, Context::Task, X, Y).wakeup(start + 10, 0, Context::Task, Y, X);
        spans.push(Span {
            interval: at(start, start + 13),
            thread: Some(1),
            lwp: Some(100),
            is_function: false,
            name: Some(name),
            depth: 0,
            active: None,
            source: None,
            end: EndReason::Returned,
        });
        for (tick, thread) in [(start + 1, 1), (start + 7, 2)] {
            drawing.0.history().marks.push(Mark {
                tick,
                cpu: Some(0),
                context: Context::Task,
                lwp: Some(99 + thread as u32),
                thread: Some(thread),
                key: 0,
                is_from: thread == 1,
                is_to: thread == 2,
            });
        }
    }
    let end = ROUNDS * 10;
    drawing.thread(1, &first).thread(2, &second);
    drawing.lwp(100, &[(0, end, LwpState::Running, 0)]).lwp(101, &[(0, end, LwpState::Running, 1)]);
    drawing.0.history().spans = spans;
    let began = Instant::now();
    let mut history = drawing.build();
    history.extent = Some(at(0, end));
    println!("{} rows built in {:?}", first.len() * 2 + 5 * ROUNDS as usize, began.elapsed());
    let request = Request { subject: Some("request".into()), ..Request::default() };
    for measure in ["critical-path", "explain", "reactivity"] {
        let began = Instant::now();
        let answer = (named(measure).unwrap().answer)(&history, &request).unwrap();
        println!("{measure}: {} rows in {:?}", answer.rows.len(), began.elapsed());
    }
    let began = Instant::now();
    let pieces = sigmund_measures::walk_back(&history, Actor::Thread(1), at(0, end));
    println!("one walk of {} pieces in {:?}", pieces.len(), began.elapsed());
}
