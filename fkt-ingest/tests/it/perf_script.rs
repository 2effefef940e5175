//! The output of `perf script`, line by line, and our events in its format.

use std::path::Path;
use std::process::Command;

use sigmund_model::{Cpu, Event, EventType};

/// One line: `comm pid/tid [cpu] seconds.nanoseconds: what`.
#[derive(Clone, Debug)]
pub(crate) struct Line {
    pub(crate) cpu: Cpu,
    /// In nanoseconds.
    pub(crate) time: u64,
    /// `-1` for an LWP that is being released.
    pub(crate) tid: i64,
    /// `sched:sched_switch: prev_comm=…`, `PERF_RECORD_…`
    pub(crate) what: String,
}

/// Runs perf and returns its output.
pub(crate) fn perf(args: &[&str], path: &Path) -> String {
    let output = Command::new("perf").args(args).arg("-i").arg(path).output().unwrap();
    assert!(output.status.success(), "perf {args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// All events of a recording except those that perf synthesised before it.
pub(crate) fn script(path: &Path) -> Vec<Line> {
    let args = "script -f --ns -F comm,pid,tid,cpu,time,event,trace --show-task-events --show-mmap-events \
                --show-switch-events";
    let text = perf(&args.split(' ').collect::<Vec<_>>(), path);
    text.lines().filter_map(line).filter(|line| line.time != 0).collect()
}

fn line(text: &str) -> Option<Line> {
    let bracket = text.find(" [").filter(|at| text[at + 2..].find(']') == Some(3))?;
    let (name_and_tid, rest) = text.split_at(bracket);
    let (cpu, rest) = rest[2..].split_once(']')?;
    let (time, what) = rest.split_once(": ")?;
    let (seconds, nanos) = time.trim().split_once('.')?;
    Some(Line {
        cpu: Cpu(cpu.parse().ok()?),
        time: seconds.parse::<u64>().ok()? * 1_000_000_000 + nanos.parse::<u64>().ok()?,
        tid: name_and_tid.trim_end().rsplit_once('/')?.1.parse().ok()?,
        what: what.split_whitespace().collect::<Vec<_>>().join(" "),
    })
}

/// Compares all parameters of an event with a line of perf's. `Err` is the one that differs.
pub(crate) fn compare(line: &Line, event: &Event, ty: &EventType) -> Result<(), String> {
    let number = |name: &str| event.params.get(ty.field(name)?)?.number;
    let text = |name: &str| event.params.get(ty.field(name)?)?.text;
    if event.tick.0 != line.time {
        return Err(format!("time {}", event.tick.0));
    }
    if event.params.len() != ty.fields.len() {
        return Err(format!("{} of {} parameters", event.params.len(), ty.fields.len()));
    }
    // An LWP that is being released has no number for perf, but its events have one.
    let lwp = event.lwp.map_or(-1, |lwp| i64::from(lwp.0));
    if lwp != line.tid && line.tid != -1 {
        return Err(format!("LWP {lwp}"));
    }
    let words = record_words(ty, line.what.contains("CPU_WIDE"), &number, &text);
    if let Some((start, end)) = words {
        let same = line.what.starts_with(&start) && line.what.ends_with(&end);
        return if same { Ok(()) } else { Err(format!("{start} … {end}")) };
    }
    let printed = line.what.split_once(": ").ok_or("no event's name")?;
    if printed.0.rsplit(':').next() != Some(&ty.name) {
        return Err(format!("event {}", ty.name));
    }
    if let Some(words) = system_call_words(ty, &number) {
        return if words == printed.1 { Ok(()) } else { Err(words) };
    }
    // With a blank at both ends, so that each field is one or more words.
    let printed = format!(" {} ", printed.1.replace("] [", "  ").replace('[', "").replace(']', " "));
    for (field, param) in ty.fields.iter().zip(event.params.iter()) {
        let candidates = candidates(&ty.name, &field.name, param.number, param.text);
        if !candidates.iter().any(|word| printed.contains(&format!(" {word} "))) {
            return Err(format!("{}: none of {candidates:?}", field.name));
        }
    }
    Ok(())
}

/// Beginning and end of perf's text for records that are not samples.
fn record_words<'a>(
    ty: &EventType,
    whole_cpu: bool,
    number: &impl Fn(&str) -> Option<i64>,
    text: &impl Fn(&str) -> Option<&'a str>,
) -> Option<(String, String)> {
    let n = |name: &str| number(name).map_or("?".to_owned(), |number| number.to_string());
    let whole = |words: String| Some((words.clone(), words));
    match ty.name.as_str() {
        "perf_comm" => {
            let exec = if number("exec")? == 1 { " exec" } else { "" };
            whole(format!("PERF_RECORD_COMM{exec}: {}:{}/{}", text("comm")?, n("pid"), n("tid")))
        }
        "perf_fork" | "perf_exit" => whole(format!(
            "PERF_RECORD_{}({}:{}):({}:{})",
            if ty.name == "perf_fork" { "FORK" } else { "EXIT" },
            n("pid"),
            n("tid"),
            n("parent_pid"),
            n("parent_tid")
        )),
        "perf_mmap" => {
            let hex = |name: &str| match number(name)? {
                0 => Some("0".to_owned()),
                number => Some(format!("{number:#x}")),
            };
            let (addr, len, pgoff) = (hex("addr")?, hex("len")?, hex("pgoff")?);
            let prot = number("prot")?;
            let letter = |bit: i64, letter| if prot & bit != 0 { letter } else { '-' };
            let shared = if number("flags")? & 1 != 0 { 's' } else { 'p' };
            let prot: String = [letter(1, 'r'), letter(2, 'w'), letter(4, 'x'), shared].iter().collect();
            let start = format!("PERF_RECORD_MMAP2 {}/{}: [{addr}({len}) @ {pgoff} ", n("pid"), n("tid"));
            Some((start, format!("]: {prot} {}", text("filename")?)))
        }
        "perf_switch_out" => {
            let preempt = if number("preempted")? == 1 { "OUT preempt" } else { "OUT" };
            Some(switch_words(whole_cpu, preempt, "next", number("next_tid")))
        }
        "perf_switch_in" => Some(switch_words(whole_cpu, "IN", "prev", number("prev_tid"))),
        _ => None,
    }
}

/// An LWP without a number is -1 for perf.
fn switch_words(whole_cpu: bool, way: &str, other: &str, tid: Option<i64>) -> (String, String) {
    match whole_cpu {
        true => {
            let start = format!("PERF_RECORD_SWITCH_CPU_WIDE {way} {other} pid/tid: ");
            (start, format!("/{}", tid.unwrap_or(-1)))
        }
        false => (format!("PERF_RECORD_SWITCH {way}"), way.to_owned()),
    }
}

fn system_call_words(ty: &EventType, number: &impl Fn(&str) -> Option<i64>) -> Option<String> {
    match ty.name.as_str() {
        "sys_enter" => {
            let args: Option<Vec<String>> =
                (0..6).map(|i| Some(format!("{:x}", number(&format!("args{i}"))?))).collect();
            Some(format!("NR {} ({})", number("id")?, args?.join(", ")))
        }
        "sys_exit" => Some(format!("NR {} = {}", number("id")?, number("ret")?)),
        _ => None,
    }
}

/// The formats in which perf may print a field.
fn candidates(event: &str, field: &str, number: Option<i64>, text: Option<&str>) -> Vec<String> {
    // For a fork, the parent is the LWP of the event.
    let name = field.strip_prefix("parent_").filter(|_| event == "sched_process_fork").unwrap_or(field);
    let Some(number) = number else {
        let words: Vec<&str> = text.unwrap_or("?").split_whitespace().collect();
        return vec![format!("{name}={}", words.join(" ")).trim_end().to_owned()];
    };
    let mut words = vec![format!("{name}={number}"), format!("{name}={number:03}")];
    match (event, field) {
        ("sched_switch", "prev_state") => words = vec![format!("{name}={}", state(number))],
        ("irq_handler_exit", "ret") => {
            words = vec![format!("{name}={}", if number == 0 { "unhandled" } else { "handled" })];
        }
        (_, "group_dead") => words = vec![format!("{name}={}", number != 0)],
        _ => {}
    }
    words
}

/// As the kernel's own format prints `prev_state` (include/trace/events/sched.h, v6.12).
fn state(state: i64) -> String {
    let letters =
        [(1, "S"), (2, "D"), (4, "T"), (8, "t"), (0x10, "X"), (0x20, "Z"), (0x40, "P"), (0x80, "I")];
    let set: Vec<&str> = letters.iter().filter(|(bit, _)| state & bit != 0).map(|(_, l)| *l).collect();
    let letters = if set.is_empty() { "R".to_owned() } else { set.join("|") };
    if state & 0x100 != 0 { letters + "+" } else { letters }
}
