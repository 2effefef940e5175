//! A listing in any order gives the same result as its lines in the order of time, however little is kept in memory.

use std::fmt::Write;
use std::path::Path;

use sigmund_model::{Event, EventType, Hertz, Loss, Thread};

use super::ordered::Limits;
use super::*;

const HEADER: &str = "# tick_hz=1000000000\ntype\tdate_tick\tpid\tcpu\tthr\tcode\tname\tparams\n";

/// Properties of a listing, and its events as text.
type Content = (Vec<EventType>, Option<Hertz>, Vec<(Thread, String)>, Vec<Loss>, Vec<String>);

fn content(text: &str, limits: &Limits) -> Content {
    let name = Path::new("listing");
    let listing =
        Listing::of_input(name, &Input::from_bytes(name, text.as_bytes().to_vec()), limits).unwrap();
    let Listing { types, streams, tick_hz, mut thread_names, losses } = listing;
    thread_names.sort();
    let (mut event, mut events) = (Event::default(), Vec::new());
    for mut stream in streams {
        while stream.events.next_into(&mut event).unwrap() {
            events.push(format!("{event:?}"));
        }
    }
    (types, tick_hz, thread_names, losses, events)
}

/// Numbers that look random.
fn random(state: &mut u64) -> u64 {
    *state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
    *state >> 33
}

/// Lines with their ticks; sometimes, time goes back.
fn lines(seed: u64) -> Vec<(u64, String)> {
    let (mut state, mut lines, mut tick) = (seed, Vec::new(), 1000_u64);
    for _ in 0..100 {
        let n = random(&mut state);
        tick = if n % 16 < seed % 16 { random(&mut state) % 500 } else { tick + n % 3 };
        let line = match random(&mut state) % 7 {
            0 => format!("USER\t{tick}\t{}\t0\t-\t-\tUSER_CONTEXT_SWITCH\tnext={}(work/{n})", n % 9, n % 5),
            1 => format!("USER\t{tick}\t7\t0\t{}(name {n})\t-\tWORK\t{n}", n % 5),
            2 => format!("USER\t{tick}\t7\t0\t-\t{}\tWORK\tpart={n} text", n % 3),
            3 => format!("KERN\t{tick}\t7\t1\t-\t-\tsoftirq_entry\tvec={}", n % 3),
            4 => {
                format!("KERN\t{tick}\t7\t1\t-\t-\tirq_handler_{}\tirq=1", ["entry", "exit"][n as usize % 2])
            }
            5 => format!("KERN\t{tick}\t7\t{}\t-\t-\tsched_switch\tprev_state=1 next_pid={n}\r", n % 4),
            _ => format!("KERN\t{tick}\t7\t0\t-\t-\té{}\t\"a b\" ?", n % 4),
        };
        lines.push((tick, line));
    }
    lines
}

fn text(lines: &[(u64, String)]) -> String {
    lines.iter().fold(HEADER.to_owned(), |mut text, (_, line)| {
        writeln!(text, "{line}").unwrap();
        text
    })
}

#[test]
fn the_order_of_lines_does_not_matter_whatever_is_held_in_memory() {
    for seed in 0..64 {
        let lines = lines(seed);
        let mut sorted = lines.clone();
        sorted.sort_by_key(|(tick, _)| *tick);
        let expected = content(&text(&sorted), &Limits::USUAL);
        assert_eq!(expected.4.len(), lines.len());
        for (block, stretches, batch) in [(1 << 16, 256, 1 << 20), (7, 256, 1), (100, 3, 1), (64, 1, 999)] {
            let found = content(&text(&lines), &Limits { block, stretches, batch });
            assert_eq!(found, expected, "seed {seed}, {block}, {stretches}, {batch}");
        }
    }
}

#[test]
fn damaged_lines_have_no_place_in_time() {
    let damage = ["USER\t9999\tx\t0\t-\t-\tWORK", "KERN\t0\t1\t1\t-\t-\t\t", "USER", "# a comment", ""];
    let mut lines = lines(7);
    for (at, line) in damage.iter().enumerate() {
        lines.insert(13 * at + 5, (0, line.to_string()));
    }
    let damaged = text(&lines);
    lines.retain(|(_, line)| !damage.contains(&line.as_str()));
    let whole = content(&text(&lines), &Limits::USUAL);
    for limits in [Limits::USUAL, Limits { block: 50, stretches: 1, batch: 300 }] {
        let mut found = content(&damaged, &limits);
        let details: Vec<String> = std::mem::take(&mut found.3).into_iter().map(|loss| loss.detail).collect();
        assert_eq!(
            details,
            [
                "listing: line 8: expected a number, - or ? in column pid, found \"x\"",
                "listing: line 21: expected a name in column name, found \"\"",
                "listing: line 34: expected a name in column name, found \"\"",
            ]
        );
        assert_eq!(found, whole);
    }
}

#[test]
fn a_line_that_is_too_long_is_damaged_and_the_others_are_kept() {
    let long = "x".repeat(lines::LONGEST);
    let text = format!("\u{feff}{HEADER}USER\t1\t7\t0\t-\t-\tWORK\t{long}\nUSER\t2\t7\t0\t-\t-\tWORK\t");
    let (_, tick_hz, _, losses, events) = content(&text, &Limits::USUAL);
    assert_eq!((tick_hz, events.len(), losses.len()), (Hertz::new(1e9), 1, 1));
    let detail = &losses[0].detail;
    assert!(
        detail.starts_with("listing: line 3: expected a line of at most 1048576 bytes, found"),
        "{detail}"
    );
}
