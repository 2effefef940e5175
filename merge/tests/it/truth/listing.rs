//! A schedule as a handwritten listing: columns in any order, some left out, and many values left to be inferred.

use std::collections::BTreeSet;

use crate::truth::{
    chance::Chance,
    schedule::{Act, Detail, Off, Step, Waits},
};

/// A listing, and the expected event for each of its lines.
pub(crate) struct Listing {
    /// The file.
    pub(crate) text: String,
    /// Its lines of events, in the order of time.
    pub(crate) lines: Vec<String>,
    /// For each of them, the cells of [`EVENT_COLUMNS`].
    pub(crate) expected: Vec<String>,
    /// Number of user events that contain their CPU.
    pub(crate) witnesses: u64,
}

/// The columns of each event that are compared.
pub(crate) const EVENT_COLUMNS: [&str; 9] =
    ["ts_tick", "level", "name", "cpu", "lwp", "thread", "context", "target_lwp", "target_thread"];

/// Writes a schedule as a listing.
pub(crate) fn write(seed: u64, mut steps: Vec<Step>, detail: Detail) -> Listing {
    let mut chance = Chance::new(!seed);
    swap_equal_ticks(&mut chance, &mut steps);
    let columns = columns(&mut chance);
    let thr_is_known = chance.one_in(4);
    let line_end = if chance.one_in(4) { "\r\n" } else { "\n" };
    let mut switched = BTreeSet::new();
    let mut listing = Listing { text: String::new(), lines: vec![], expected: vec![], witnesses: 0 };
    for step in &steps {
        let user = level(step.act) == "USER";
        // The CPU of an LWP, and the LWP of a CPU, can be inferred after a switch of the kernel.
        let hides_pid = switched.contains(&step.cpu) && chance.one_in(6);
        let hides_cpu = !hides_pid && step.lwp != 0 && chance.one_in(if user { 2 } else { 6 });
        listing.witnesses += u64::from(user && !hides_cpu);
        if let Act::KernelSwitch { .. } = step.act {
            switched.insert(step.cpu);
        }
        let cells = columns.iter().map(|column| match *column {
            "type" => level(step.act).into(),
            "date_tick" => step.tick.to_string(),
            "pid" if hides_pid => "-".into(),
            "pid" => step.lwp.to_string(),
            "cpu" if hides_cpu => "-".into(),
            "cpu" => step.cpu.to_string(),
            "thr" if thr_is_known && chance.one_in(3) => or_mark(step.thread),
            "code" if step.tick % 2 == 0 => "-".into(),
            "code" => "23014".into(),
            "name" | "event" => name(step.act, detail).into(),
            "params" | "param(s)" => params(step.act, detail),
            _ => "-".into(),
        });
        listing.lines.push(cells.collect::<Vec<String>>().join("\t"));
        listing.expected.push(expected(step, detail));
    }
    listing.text = file(&mut chance, &columns, &steps, &listing.lines, line_end);
    listing
}

/// Events of different CPUs with one tick have no order of their own, if they do not concern the same LWP or thread.
fn swap_equal_ticks(chance: &mut Chance, steps: &mut [Step]) {
    for place in 1..steps.len() {
        let (before, step) = (&steps[place - 1], &steps[place]);
        if before.tick == step.tick && concerns(before).is_disjoint(&concerns(step)) && chance.one_in(2) {
            steps.swap(place - 1, place);
        }
    }
}

#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Who {
    Cpu(u32),
    Lwp(u32),
    Thread(u64),
}

fn concerns(step: &Step) -> BTreeSet<Who> {
    let mut who = BTreeSet::from([Who::Cpu(step.cpu)]);
    let (lwp, thread) = targets(step.act);
    who.extend([Some(step.lwp).filter(|lwp| *lwp != 0), lwp].into_iter().flatten().map(Who::Lwp));
    who.extend([step.thread, thread].into_iter().flatten().map(Who::Thread));
    who
}

fn columns(chance: &mut Chance) -> Vec<&'static str> {
    let mut columns = vec!["type", "date_tick", "pid", "cpu"];
    columns.extend(chance.pick(&["name", "event"]));
    columns.extend(chance.pick(&["params", "param(s)"]));
    for optional in ["thr", "code", "of_no_meaning"] {
        if chance.one_in(2) {
            columns.push(optional);
        }
    }
    chance.shuffle(&mut columns);
    columns
}

fn file(chance: &mut Chance, columns: &[&str], steps: &[Step], lines: &[String], line_end: &str) -> String {
    let both: Vec<_> = steps.iter().zip(lines).collect();
    let mut of_one_tick: Vec<_> = both.chunk_by(|(a, _), (b, _)| a.tick == b.tick).collect();
    if chance.one_in(4) {
        chance.shuffle(&mut of_one_tick);
    }
    let mut text = columns.join("\t") + line_end;
    for (_, line) in of_one_tick.concat() {
        if chance.one_in(40) {
            text += chance.pick(&["", "# drawn by hand", "   "]).unwrap_or_default();
            text += line_end;
        }
        text += line;
        text += line_end;
    }
    text
}

fn expected(step: &Step, detail: Detail) -> String {
    let Step { tick, cpu, lwp, thread, context, act } = step;
    let (target_lwp, target_thread) = targets(*act);
    let (level, name) = (level(*act), name(*act, detail));
    let (thread, target_lwp, target_thread) = (or_mark(*thread), or_mark(target_lwp), or_mark(target_thread));
    format!("{tick} {level} {name} {cpu} {lwp} {thread} {context} {target_lwp} {target_thread}")
}

/// The LWP and the user thread that an event makes run or wakes.
fn targets(act: Act) -> (Option<u32>, Option<u64>) {
    match act {
        Act::KernelSwitch { next: 0, .. } => (None, None),
        Act::KernelSwitch { next: lwp, carries, .. } | Act::Wakeup { lwp, carries } => (Some(lwp), carries),
        Act::UserSwitch { next, .. } => (None, next),
        Act::ThreadReady(thread) => (None, Some(thread)),
        _ => (None, None),
    }
}

fn level(act: Act) -> &'static str {
    match act {
        Act::UserSwitch { .. } | Act::ThreadReady(_) | Act::User(_) => "USER",
        _ => "KERN",
    }
}

fn name(act: Act, detail: Detail) -> &'static str {
    match act {
        Act::KernelSwitch { .. } if detail.kernel_states => "sched_switch",
        Act::KernelSwitch { .. } => "KERN_CONTEXT_SWITCH",
        Act::Wakeup { .. } => "sched_wakeup",
        Act::Irq(_) if detail.kernel_states => "irq_handler_entry",
        Act::Irq(_) => "IRQ",
        Act::IrqExit(_) if detail.kernel_states => "irq_handler_exit",
        Act::IrqExit(_) => "IRQ_EXIT",
        Act::UserSwitch { .. } => "USER_CONTEXT_SWITCH",
        Act::ThreadReady(_) => "USER_THREAD_READY",
        Act::Kernel(name) | Act::User(name) => name,
    }
}

fn params(act: Act, detail: Detail) -> String {
    match act {
        Act::KernelSwitch { next, left, .. } if detail.kernel_states => {
            format!("prev_state={} next_pid={next}", prev_state(left))
        }
        Act::KernelSwitch { next, .. } => next.to_string(),
        Act::Wakeup { lwp, .. } => format!("pid={lwp}"),
        Act::Irq(irq) | Act::IrqExit(irq) => format!("{irq}(eth{irq})"),
        Act::UserSwitch { next, reason, waits } => {
            let next = next.map_or("0".into(), |next| format!("{next}(work/{next})"));
            let Waits { on, kind } = waits;
            if detail.reasons { format!("{next} {} {on} {kind}", reason as u8) } else { next }
        }
        Act::ThreadReady(thread) => thread.to_string(),
        Act::Kernel(_) => "142(select)".into(),
        Act::User(_) => "8 first".into(),
    }
}

/// As `sched_switch` writes it (`task_state_array`, fs/proc/array.c, v6.12).
fn prev_state(left: Off) -> u8 {
    match left {
        Off::Runnable => 0,
        Off::Sleeping => 1,
        Off::DiskSleep => 2,
    }
}

fn or_mark(number: Option<impl ToString>) -> String {
    number.map_or("?".into(), |number| number.to_string())
}
