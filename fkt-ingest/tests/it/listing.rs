//! The effect of a listing's lines on the state.

use std::io::{BufWriter, Write};

use fkt_ingest::Listing;
use sigmund_model::{Context, Effect, Event, Lwp, TaskState};

use crate::memory;

fn effects(lines: &[&str]) -> Vec<(Effect, Context)> {
    let header = "type\tdate_tick\tpid\tcpu\tthr\tcode\tname\tparams";
    let text = [&[header], lines].concat().join("\n");
    let mut listing = Listing::from_bytes("listing".as_ref(), text.as_bytes()).unwrap();
    assert_eq!(listing.losses, []);
    let (mut event, mut effects) = (Event::default(), Vec::new());
    while listing.streams[0].events.next_into(&mut event).unwrap() {
        effects.push((event.effect, event.context));
    }
    effects
}

// CPU 0  |irq 24 |softirq 1|     softirq 3, whose exit nobody lists in the second listing
#[test]
fn interrupts_of_each_kind_last_until_their_exits_where_those_are_listed() {
    let line = |tick: u64, name: &str, params: &str| format!("KERN\t{tick}\t7\t0\t-\t-\t{name}\t{params}");
    let lines = [
        line(1, "irq_handler_entry", "irq=24"),
        line(2, "irq_handler_exit", "irq=24"),
        line(3, "IRQ", ""),
        line(4, "softirq_entry", "vec=1"),
        line(5, "softirq_exit", "vec=1"),
    ];
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    let shown = [
        (Effect::InterruptEnter(24), Context::Task),
        (Effect::InterruptExit(24), Context::Task),
        (Effect::InterruptEnter(-1), Context::Task),
    ];
    let softirq = [Effect::InterruptEnter(-2), Effect::InterruptExit(-2)].map(|e| (e, Context::Task));
    assert_eq!(effects(&lines), [&shown[..], &softirq[..]].concat());
    assert_eq!(effects(&lines[..4]), [&shown[..], &[(Effect::None, Context::Softirq)]].concat());
}

#[test]
fn a_switch_may_name_the_lwp_that_leaves() {
    let lines = [
        "KERN\t1\t7\t0\t-\t-\tsched_switch\tprev_pid=7, prev_state=128, next_pid=8",
        "KERN\t2\t8\t0\t-\t-\tKERN_CONTEXT_SWITCH\t9",
    ];
    let idle = Some(TaskState::from_number(0x80).into());
    let switches = [(Some(Lwp(7)), idle, Lwp(8)), (None, None, Lwp(9))];
    let expected = switches
        .map(|(prev, prev_state, next)| (Effect::KernelSwitch { prev, prev_state, next }, Context::Task));
    assert_eq!(effects(&lines), expected);
}

/// A listing of so many lines; each stretch of `ascending` lines is earlier than the one before.
fn long(lines: u64, ascending: u64) -> tempfile::NamedTempFile {
    let file = tempfile::NamedTempFile::new().unwrap();
    let mut out = BufWriter::new(&file);
    writeln!(out, "type\tdate_tick\tpid\tcpu\tname\tparams").unwrap();
    let stretches = lines / ascending;
    for line in 0..lines {
        let tick = (stretches - line / ascending) * ascending + line % ascending;
        writeln!(out, "KERN\t{tick}\t7\t0\tsched_switch\tprev_state=0 next_pid={}", tick % 50).unwrap();
    }
    drop(out);
    file
}

// 300 thousand lines in memory would be 125 MB.
#[test]
fn memory_does_not_grow_with_a_listing_whatever_the_order_of_its_lines() {
    const LINES: u64 = 300_000;
    for ascending in [LINES, LINES / 10, 10] {
        let file = long(LINES, ascending);
        let (events, in_order) = memory::bounded(|| {
            let mut listing = Listing::open(file.path()).unwrap().unwrap();
            let (mut event, mut events, mut last, mut in_order) = (Event::default(), 0, None, true);
            while listing.streams[0].events.next_into(&mut event).unwrap() {
                in_order &= last < Some(event.tick);
                last = Some(event.tick);
                events += 1;
            }
            (events, in_order)
        });
        assert_eq!((events, in_order), (LINES, true), "{ascending}");
    }
}
