//! A timeline of threads as text.

use super::gantt::{Line, Shown, Timeline};
use crate::{History, Request, percent};

/// What each selected thread (or LWP) did in a window, one line each, in at most `width` columns. It needs the states
/// of both levels. `label` writes an instant of the time axis, given in ticks of the main clock.
///
/// A column shows the letter of the state with the largest share of its time; of equal shares, the first in the legend.
/// So a state may appear in no column. Therefore each line ends with the share of every state that the thread was in
/// during its life, however short (`<1%`). A thread that is not alive in the window has no line. A life of less than
/// half a column still has a line.
///
/// If LWPs or CPUs are selected, a thread that is alive but not known to be on one of these is drawn as not in the
/// filter. Shares are relative to the rest of its life. A thread without any such time has no line.
///
/// # Errors
///
/// If `width` is 0, or no part of the trace is in the window.
pub fn gantt(
    history: &History,
    request: &Request,
    width: usize,
    label: &dyn Fn(i64) -> String,
) -> Result<String, String> {
    let timeline = Timeline::new(history, request, width)?;
    let widest = timeline.lines.iter().map(|line| printable(&line.label).chars().count()).max().unwrap_or(0);
    let mut text = format!("{:widest$} {}\n", "", axis(&timeline, label));
    for line in &timeline.lines {
        let columns: String = line.columns.iter().map(|shown| shown.letter()).collect();
        text += &format!("{:widest$} |{columns}| {}\n", printable(&line.label), shares(line));
    }
    let legend: Vec<String> = Shown::ALL
        .into_iter()
        .filter(|shown| timeline.has(*shown))
        .map(|shown| format!("{} {}", shown.letter(), shown.name(timeline.level)))
        .collect();
    if !legend.is_empty() {
        text += &format!("{}\n", legend.join(", "));
    }
    Ok(text)
}

/// The time axis: the start of every tenth column, where there is room, and the end.
fn axis(timeline: &Timeline, label: &dyn Fn(i64) -> String) -> String {
    let mut axis = String::new();
    let mut length = 0;
    for column in (0..timeline.columns).step_by(10).chain([timeline.columns]) {
        let place = column + 1;
        if length > 0 && length + 1 > place {
            continue;
        }
        let mark = format!("{}{}", " ".repeat(place - length), label(timeline.begin(column)));
        length += mark.chars().count();
        axis += &mark;
    }
    axis
}

/// The shares of a line, for example `A 51%, s 30%, k <1%`, of the time in which the thread was alive and in the
/// filter.
fn shares(line: &Line) -> String {
    let life = line.selected();
    let share = |shown: Shown| {
        let ticks = line.sums[shown as usize];
        let share = percent(ticks, life);
        match ticks {
            0 => None,
            _ if share < 1.0 => Some(format!("{} <1%", shown.letter())),
            // Rounded down, so that only the whole is 100 %.
            _ => Some(format!("{} {}%", shown.letter(), share as i64)),
        }
    };
    let shares: Vec<String> =
        Shown::ALL.into_iter().filter(|shown| shown.is_state()).filter_map(share).collect();
    shares.join(", ")
}

/// A name in one line.
fn printable(label: &str) -> String {
    label.chars().map(|character| if character.is_control() { ' ' } else { character }).collect()
}
