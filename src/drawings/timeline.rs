//! Draws what each thread did over time, from left to right: as text or as a picture.

use anyhow::{Result, bail};
use clap::ValueEnum;
use sigmund_measures::{By, History, Needs, Request, gantt, gantt_svg};
use sigmund_query::{Filter, Made, MeasureOptions, with_history};
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
    let needs = ("gantt", Needs::STATES);
    let options = MeasureOptions { by: question.measure.by, ..MeasureOptions::default() };
    let draw = |history: &History, request: &Request| {
        let text = || fitted(terminal::width(), |width| gantt(history, request, width, &instants));
        match &question.drawing.svg {
            Some(_) => gantt_svg(history, request, PICTURE_WIDTH, &instants),
            None => text()
                .map(|text| Some(shortened(&text)).filter(|(_, lines)| *lines > 0).map(|(text, _)| text)),
        }
    };
    let Made { result, notes, gaps } = with_history(trace, needs, filter, &options, draw).await?;
    let lines = usize::from(result.is_some());
    match (result, &question.drawing.svg) {
        (Some(drawing), Some(path)) => write_picture(path, &drawing)?,
        (Some(timeline), None) => terminal::coloured(&timeline, &colour)?,
        (None, _) => notice("no thread or LWP that is asked about was alive in this time"),
    }
    notes.iter().for_each(|note| notice(note));
    Ok(gaps::finish(lines, gaps, question.measure.strict))
}

/// A drawing with lines as wide as the terminal, if the terminal has room for more than the labels. `draw` gets the
/// width of bars.
fn fitted(terminal: Option<usize>, draw: impl Fn(usize) -> Result<String, String>) -> Result<String, String> {
    let mut drawing = draw(BAR_WIDTH)?;
    let Some(terminal) = terminal else { return Ok(drawing) };
    let mut width = BAR_WIDTH;
    // The width also decides which instants fit on the axis, so this may need several steps.
    for _ in 0..3 {
        let Some(rest) = beside_bars(&drawing) else { return Ok(drawing) };
        let fitting = terminal.saturating_sub(rest).max(LEAST_BAR_WIDTH);
        if fitting == width {
            break;
        }
        width = fitting;
        drawing = draw(width)?;
    }
    Ok(drawing)
}

/// How many characters the longest line has in addition to its bar; `None` without a bar.
fn beside_bars(drawing: &str) -> Option<usize> {
    let bar = drawing.lines().find_map(bar)?;
    let is_bounded = |line: &(usize, &str)| line.0 == 0 || self::bar(line.1).is_some();
    // Only the axis, and lines with a bar.
    let lines = drawing.lines().enumerate().filter(is_bounded);
    let longest = lines.map(|(_, line)| line.chars().count()).max()?;
    Some(longest.saturating_sub(bar.1 - bar.0))
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

/// The first lines of a timeline, and its number of threads. Each line between the axis and the legend is a thread.
fn shortened(drawing: &str) -> (String, usize) {
    let lines: Vec<&str> = drawing.lines().collect();
    let [axis, threads @ .., legend] = lines.as_slice() else { return (drawing.to_string(), 0) };
    let Some(more) = threads.len().checked_sub(MOST_LINES).filter(|more| *more > 0) else {
        return (drawing.to_string(), threads.len());
    };
    let mut shown = vec![*axis];
    shown.extend(&threads[..MOST_LINES]);
    shown.push(legend);
    let more = counted(more as u64, "more line");
    let more = format!(
        "not drawn: {more}; --thread, --lwp, --process, --cpu, --from and --to select, --svg FILE draws all"
    );
    shown.push(&more);
    (shown.join("\n"), threads.len())
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

    // 5(a|b) |AAAAAA| A 100%
    //         width
    fn drawn(width: usize, threads: usize) -> String {
        let line = |thread| format!("{thread}(a|b) |{}| A 100%\n", "A".repeat(width));
        let lines: String = (0..threads).map(line).collect();
        format!("0 ns{}9 ns\n{lines}A active and a legend that is longer than anything\n", " ".repeat(width))
    }

    #[test]
    fn a_timeline_is_as_wide_as_the_terminal() {
        let widest = |terminal| {
            let drawing = fitted(terminal, |width| Ok(drawn(width, 1))).unwrap();
            drawing.lines().take(2).map(str::len).max().unwrap()
        };
        // 0(a|b) |, and behind the bar | A 100%: 16 characters.
        assert_eq!(widest(None), 80 + 16);
        assert_eq!(widest(Some(60)), 60);
        assert_eq!(widest(Some(200)), 200);
        assert_eq!(widest(Some(10)), 20 + 16);
    }

    #[test]
    fn a_timeline_has_200_lines_and_counts_the_others() {
        let (all, lines) = shortened(&drawn(30, 200));
        assert_eq!((all.lines().count(), lines), (202, 200));
        let (some, lines) = shortened(&drawn(30, 1234));
        assert_eq!((some.lines().count(), lines), (203, 1234));
        assert!(some.ends_with(
            "not drawn: 1034 more lines; --thread, --lwp, --process, --cpu, --from and --to select, --svg FILE draws all"
        ));
        assert!(some.contains("\n199(a|b)") && !some.contains("\n200(a|b)") && some.contains("\nA active"));
        assert_eq!(shortened("0 ns   9 ns\n").1, 0);
    }
}
