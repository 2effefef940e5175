//! Draws what each thread did over time, from left to right: as text or as a picture.

use anyhow::{Context, Result, bail};
use clap::ValueEnum;
use sigmund_measures::{By, Canvas, GANTT, Timeline};
use sigmund_query::{Filter, MeasureOptions, Measured, measure};
use sigmund_sql::SuperTrace;

use super::{label, write_picture};
use crate::{
    Found,
    cli::{FormatArg, Question},
    gaps,
    output::{counted, notice},
    terminal::{self, Colour},
};

/// The width of a bar in columns, unless it is fitted to a terminal.
const BAR_WIDTH: usize = 80;
/// The minimum width of a bar. A narrower one would show nothing, so on a narrower terminal lines are wrapped.
const LEAST_BAR_WIDTH: usize = 20;
/// The most lines that are drawn as text.
const MOST_LINES: usize = 200;
/// The most lines of a picture. It is as high as 18 pixels for each.
const MOST_PICTURE_LINES: usize = 10_000;
/// The width of a picture in pixels.
const PICTURE_WIDTH: usize = 1000;

pub(super) async fn run(trace: &SuperTrace, filter: &Filter, question: &Question) -> Result<Found> {
    let format = question.format.of_table()?;
    if format != FormatArg::Human {
        let name = format.to_possible_value().map_or(String::new(), |value| value.get_name().to_string());
        bail!(
            "--gantt --format {name}: a timeline is text, or with --svg a picture; the intervals that it draws are rows of SQL: \
             `sigmund sql {} \"SELECT * FROM thread_states\" --format {name}`, and lwp_states",
            trace.path().display()
        );
    }
    if let Some(by @ (By::Name | By::Pattern | By::Process)) = question.measure.by {
        bail!("--gantt --by {}: expected thread or lwp, which have a line each", by.name());
    }
    let hz = trace.tick_hz();
    let first = trace.first_tick().map_or(0, |tick| tick.0 as i64);
    let instants = |tick: i64| label(tick - first, hz, question.unit);
    let is_picture = question.drawing.svg.is_some();
    let ask = async |columns: usize| -> Result<(Timeline, Measured)> {
        let most_lines = if is_picture { MOST_PICTURE_LINES } else { MOST_LINES };
        let canvas = Canvas { columns, most_lines };
        let options = MeasureOptions { by: question.measure.by, canvas, ..MeasureOptions::default() };
        let mut measured = measure(trace, &GANTT, filter, &options).await?;
        let timeline = measured.answer.timeline.take();
        Ok((timeline.context("a timeline was not drawn")?, measured))
    };
    let (mut timeline, Measured { answer, gaps }) =
        ask(if is_picture { PICTURE_WIDTH } else { BAR_WIDTH }).await?;
    let lines = timeline.lines();
    match &question.drawing.svg {
        _ if lines == 0 => notice("no thread or LWP that is asked about was alive in this time"),
        Some(path) => {
            write_picture(path, &timeline.svg(PICTURE_WIDTH, &instants))?;
            not_drawn(&timeline, "").iter().for_each(|line| notice(line));
        }
        None => {
            let width = fitting(terminal::width(), |width| timeline.beside_bars(width, &instants));
            if width != BAR_WIDTH {
                timeline = ask(width).await?.0;
            }
            let more = not_drawn(&timeline, &format!(", --svg FILE draws up to {MOST_PICTURE_LINES} lines"));
            let text = timeline.text(&instants) + &more.unwrap_or_default();
            terminal::coloured(&text, &colour)?;
        }
    }
    answer.notes.iter().for_each(|note| notice(note));
    Ok(gaps::finish(lines, gaps, question.measure.strict))
}

/// A line about the threads that are not drawn.
fn not_drawn(timeline: &Timeline, otherwise: &str) -> Option<String> {
    let more = counted(Some(timeline.more as u64).filter(|more| *more > 0)?, "more line");
    Some(format!("not drawn: {more}; --thread, --lwp, --process, --cpu, --from and --to select{otherwise}"))
}

/// The width of bars with which lines are as wide as the terminal, if it has room for more than the labels.
/// `beside_bars` returns how much room a line needs beside a bar of this width.
fn fitting(terminal: Option<usize>, beside_bars: impl Fn(usize) -> usize) -> usize {
    let Some(terminal) = terminal else { return BAR_WIDTH };
    let mut width = BAR_WIDTH;
    // The width also decides which instants fit on the axis, so this may need several steps.
    for _ in 0..4 {
        let fitting = terminal.saturating_sub(beside_bars(width)).max(LEAST_BAR_WIDTH);
        if fitting == width {
            break;
        }
        width = fitting;
    }
    width
}

/// The beginning and the end of the bar in a line.
fn bar(line: &str) -> Option<(usize, usize)> {
    let bounds: Vec<usize> =
        line.chars().enumerate().filter(|(_, c)| *c == '|').map(|(place, _)| place).collect();
    // A name may contain this character, too, so the last two are taken.
    match bounds.as_slice() {
        [.., begin, end] => Some((begin + 1, *end)),
        _ => None,
    }
}

/// The colour of each character in a line of a timeline. The letters of states have colours, in the bar and in the
/// legend. A colour has the same meaning as its letter.
fn colour(line: &str) -> Vec<Option<Colour>> {
    let mut colours = vec![None; line.chars().count()];
    if let Some((begin, end)) = bar(line) {
        for (place, letter) in line.chars().enumerate().take(end).skip(begin) {
            colours[place] = of_state(letter);
        }
    }
    colours
}

fn of_state(letter: char) -> Option<Colour> {
    match letter {
        'A' => Some(Colour::Green),
        's' => Some(Colour::Red),
        'k' => Some(Colour::Cyan),
        'r' => Some(Colour::Yellow),
        'b' => Some(Colour::Blue),
        '?' => Some(Colour::Magenta),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timeline_is_as_wide_as_the_terminal() {
        // 0(a|b) |, and behind the bar | A 100%: 16 characters.
        let width = |terminal| fitting(terminal, |_| 16);
        assert_eq!([None, Some(60), Some(200), Some(10)].map(width), [80, 44, 184, 20]);
        // With bars of less than 50 columns, the axis needs more room.
        assert_eq!(fitting(Some(60), |width| if width < 50 { 20 } else { 16 }), 40);
    }

    #[test]
    fn the_bar_of_a_line_is_found_whatever_its_name_is() {
        assert_eq!(bar("5(a|b) |AAAA| A 100%"), Some((8, 12)));
        assert_eq!(bar("A active, k in kernel"), None);
    }
}
