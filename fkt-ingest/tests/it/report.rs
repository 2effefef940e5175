//! The output of `trace-cmd report`, line by line, in a form that can be compared with events.

use sigmund_model::{Event, EventType};

/// One line: `  hackbench-17683 [001] 982.313702: sys_exit:  NR 1 = 1`.
#[derive(Debug)]
pub(crate) struct Line {
    /// The task's name; `<...>` if trace-cmd does not know it.
    pub(crate) comm: String,
    pub(crate) pid: u32,
    pub(crate) cpu: u32,
    /// As printed: `982.313702` or `2548730563316`.
    pub(crate) time: String,
    pub(crate) name: String,
    pub(crate) rest: String,
}

/// The events of a report; and `(cpu, count)` of its `EVENTS DROPPED` lines, some of which have no count.
pub(crate) fn parse(report: &str) -> (Vec<Line>, Vec<(u32, Option<u64>)>) {
    let mut dropped = Vec::new();
    let mut lines = Vec::new();
    for line in report.lines() {
        if let Some(rest) = line.strip_prefix("CPU:") {
            let (cpu, rest) = rest.split_once(" [").unwrap();
            dropped.push((cpu.parse().unwrap(), rest.split(' ').next().and_then(|n| n.parse().ok())));
            continue;
        }
        lines.extend(event(line));
    }
    (lines, dropped)
}

fn event(line: &str) -> Option<Line> {
    let bracket = line.match_indices(" [").map(|(at, _)| at).find(|at| {
        line[at + 2..].split_once(']').is_some_and(|(cpu, _)| cpu.bytes().all(|b| b.is_ascii_digit()))
    })?;
    let (task, rest) = line.split_at(bracket);
    let (comm, pid) = task.trim().rsplit_once('-')?;
    let pid = pid.parse().ok()?;
    let (cpu, rest) = rest[2..].split_once(']')?;
    let (time, rest) = rest.split_once(": ")?;
    let (name, rest) = rest.split_once(':')?;
    Some(Line {
        comm: comm.to_owned(),
        pid,
        cpu: cpu.parse().ok()?,
        time: time.trim().to_owned(),
        name: name.to_owned(),
        rest: rest.trim().to_owned(),
    })
}

/// The text of the event in the report's format. `None` for events that only name fields (`pid=7`).
fn words(event: &Event, ty: &EventType) -> Option<String> {
    let number = |name: &str| event.params.get(ty.field(name)?)?.number;
    let text = |name: &str| event.params.get(ty.field(name)?)?.text;
    Some(match ty.name.as_str() {
        "sys_enter" => {
            let args: Option<Vec<String>> =
                (0..6).map(|i| Some(format!("{:x}", number(&format!("args{i}"))?))).collect();
            format!("NR {} ({})", number("id")?, args?.join(", "))
        }
        "sys_exit" => format!("NR {} = {}", number("id")?, number("ret")?),
        "sched_switch" => format!(
            "{}:{} [{}] {} ==> {}:{} [{}]",
            text("prev_comm")?,
            number("prev_pid")?,
            number("prev_prio")?,
            state(number("prev_state")?),
            text("next_comm")?,
            number("next_pid")?,
            number("next_prio")?
        ),
        "sched_wakeup" | "sched_wakeup_new" => format!(
            "{}:{} [{}] CPU:{:03}",
            text("comm")?,
            number("pid")?,
            number("prio")?,
            number("target_cpu")?
        ),
        _ => return None,
    })
}

/// `prev_state` in the format of trace-cmd's plugin. Its letters are those of an older kernel; the bits are compared.
fn state(state: i64) -> String {
    let letters = "SDTtZXxW".chars().enumerate();
    let set: Vec<String> =
        letters.filter(|(bit, _)| state & (1 << bit) != 0).map(|(_, c)| c.to_string()).collect();
    if set.is_empty() { "R".to_owned() } else { set.join("|") }
}

/// Compares the parameters; returns how many fields were compared.
pub(crate) fn compare_params(line: &Line, event: &Event, ty: &EventType) -> usize {
    if let Some(words) = words(event, ty) {
        assert_eq!(words, line.rest, "{line:?}");
        return event.params.len();
    }
    let mut compared = 0;
    for word in line.rest.split_whitespace() {
        let Some((name, value)) = word.split_once('=') else { continue };
        let Some(param) = ty.field(name).and_then(|at| event.params.get(at)) else { continue };
        match (param.number, param.text) {
            (Some(number), _) => {
                let Ok(value) = value.parse::<i64>() else { continue };
                assert_eq!(number, value, "{name} in {line:?}");
            }
            // A text may contain blanks.
            (_, Some(text)) => assert!(line.rest.contains(&format!("{name}={text}")), "{name} in {line:?}"),
            _ => panic!("{name} is unknown in {line:?}"),
        }
        compared += 1;
    }
    compared
}
